"""The share of attention in the FLOPs of a model as its sequences grow: when scores and values matter, and for which models they never do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from scalebook.errors import ScalebookError, unknown
from scalebook.explore.checks import listed, whole
from scalebook.explore.transformers import subject, token_costs
from scalebook.transformer import Model
from scalebook.transformer.layers import Convention, attended
from scalebook.transformer.ops import Span
from scalebook.units import count, percent, plural

View = dict[str, Any]
LENGTHS = tuple(sorted([2**n for n in range(7, 21)] + [3 * 2**n for n in range(6, 19)]))  # 128 to 1,048,576
CONVENTIONS = ("causal", "full")
MOST_MODELS = 4
LONGEST = 2**40  # no sequence is longer: what has not happened by then is said never to
_COLOURS = ("cat-1", "cat-7", "cat-3", "cat-4")


def mixing_share(model: Any, seq_len: int, convention: Convention = "causal") -> float:
    """The share of scores and values in the FLOPs of all products of a forward pass over `seq_len` tokens.

    mixing ÷ (mixing + S · token_flops), with mixing = Σ pair_flops · attended(span, S); training multiplies both by three.

    >>> round(mixing_share("llama-3-8b", 8192), 3)
    0.125
    """
    S = whole("seq_len", seq_len)
    each, pairs = token_costs(subject(model))
    mixing = sum(flops * attended(span, S, 0, convention) for span, flops in pairs)
    return float(mixing / (mixing + each * S))


def equal_length(model: Any, convention: Convention = "causal") -> int | None:
    """The length from which scores and values cost as many FLOPs as all other products together; None where that is never so.

    Of N heads of width H in L layers, all pairs counted causally, it is S = W ÷ (2·L·N·H) − 1, with W the FLOPs of a token elsewhere.

        >>> equal_length("llama-3-8b"), equal_length("llama-3-8b", "full")
        (57255, 28628)

    A window or chunks in every layer bound the mixing of a token: then there may be no such length.
    """
    each, pairs = token_costs(subject(model))

    def reached(S: int) -> bool:
        return bool(sum(flops * attended(span, S, 0, convention) for span, flops in pairs) >= each * S)

    if not pairs or not reached(LONGEST):
        return None
    low, high = 0, 1
    while not reached(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def bound_of_share(model: Any, convention: Convention = "causal") -> float:
    """The share of scores and values that no length exceeds: 1 where some layer sees all keys.

    >>> bound_of_share("llama-3-8b")
    1.0
    """
    each, pairs = token_costs(subject(model))
    if any(span.kind in ("full", "every") for span, _ in pairs):
        return 1.0
    most = sum(flops * _most_seen(span, convention) for span, flops in pairs)
    return float(most / (most + each))


def _most_seen(span: Span, convention: Convention) -> float:
    """Keys that a query sees on average in a sequence that has no end."""
    return (span.width + 1) / 2 if span.kind == "chunk" and convention == "causal" else float(span.width)


def attention_share(
    models: Any, *, at: int | None = None, convention: Convention = "causal", low: int = LENGTHS[0], high: int = LENGTHS[-1]
) -> View:
    """The share of attention's scores and values against the length, for one model or up to four; `at` marks a length.

    >>> view = attention_share(["llama-3-8b"], at=8192)
    >>> view["at"]["rows"][0]["text"], view["marks"][0]["text"]
    ('13%', '57,255')

    Raises ScalebookError for no or too many models, an unknown convention, or two models of one name.
    """
    if convention not in CONVENTIONS:
        raise unknown("convention", convention, CONVENTIONS)
    chosen = [subject(m) for m in ([models] if isinstance(models, Model) else listed("models", models))]
    names = [x.name for x in chosen]
    if not 1 <= len(chosen) <= MOST_MODELS or len(set(names)) < len(names):
        raise ScalebookError(f"this figure compares 1 to {MOST_MODELS} models of different names; found {names}")
    first, last = whole("low", low), whole("high", high)
    if not 2 * first <= last:
        raise ScalebookError(f"lengths go from `low` to at least twice of it; found low={first:,}, high={last:,}")
    lines: list[View] = []
    marks: list[View] = []
    for x, colour in zip(chosen, _COLOURS, strict=False):
        equal, bound = equal_length(x, convention), bound_of_share(x, convention)
        points = [list(point) for point in _points(x, convention, first, last)]
        turn = {"equal": equal, "bound": bound, "bound_text": percent(bound), "mixes": bool(token_costs(x)[1])}
        lines.append({"name": x.name, "colour": colour, "points": points, **turn})
        if equal is not None and first <= equal <= last:
            marks.append({"x": equal, "y": 0.5, "text": count(equal), "name": x.name, "colour": colour})
    return {
        "subject": "Attention against the weights",
        "convention": convention,
        "lines": lines,
        "marks": marks,
        "regimes": [],
        "guides": [{"value": 0.5, "text": "half: as much as all the rest", "short": "half", "limit": False}],
        "x": {"name": "tokens in the sequence (log)", "unit": ""},
        "y": {"name": "share of scores and values in all FLOPs", "unit": "%", "linear": [0.0, 1.0]},
        "at": None if at is None else _share_at(chosen, whole("at", at), convention, first, last),
    }


def _share_at(models: Sequence[Model], at: int, convention: Convention, low: int, high: int) -> View:
    within_range(at, low, high)
    shares = [(x, colour, mixing_share(x, at, convention)) for x, colour in zip(models, _COLOURS, strict=False)]
    rows = [{"name": x.name, "value": share, "text": percent(share), "colour": colour} for x, colour, share in shares]
    return {"x": at, "name": plural(at, "token"), "rows": rows}


def within_range(at: int, low: int = LENGTHS[0], high: int = LENGTHS[-1]) -> None:
    """Refuses a marked length that the axis does not have."""
    if not low <= at <= high:
        raise ScalebookError(f"the marked length is from {low:,} to {high:,}; found {at:,}")


@lru_cache(maxsize=64)
def _points(model: Model, convention: Convention, low: int, high: int) -> tuple[tuple[int, float], ...]:
    """The curve of a model, the same while only the marked length changes."""
    return tuple((S, mixing_share(model, S, convention)) for S in _grid(low, high))


def _grid(low: int, high: int, points: int = 48) -> list[int]:
    """Whole numbers evenly spaced on a logarithmic axis."""
    ratio = (high / low) ** (1 / (points - 1))
    return sorted({*(round(low * ratio**i) for i in range(points - 1)), low, high})
