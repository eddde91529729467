"""The bytes that a model keeps of its sequences: against their length, as other ways of sharing keys and values would have them, and how many fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from scalebook.errors import HardwareError, ScalebookError, unknown
from scalebook.explore.checks import listed, whole
from scalebook.explore.lengths import LENGTHS, LONGEST, within_range
from scalebook.explore.quantities import bars
from scalebook.explore.transformers import attention_words, subject
from scalebook.hardware import chip as chip_of
from scalebook.transformer import Model
from scalebook.transformer.blocks import Block, Cache
from scalebook.transformer.ops import Span
from scalebook.units import binary, ceil_div, count, dtype_name, plural

View = dict[str, Any]
_VARIANTS = {"MHA": "cat-1", "GQA (K = 8)": "cat-3", "MQA": "cat-4", "MLA": "cat-6"}  # with their colours


@lru_cache(maxsize=256)
def cache_variants(model: Model) -> dict[str, Model]:
    """A model as it is, and as it would be with other ways to share keys and values: the same layers, heads and windows, by name.

    MLA as DeepSeek-V2 has it (arXiv 2405.04434): a latent as wide as 4 heads and half a head for positions. Of the others
    only the bytes mean something: their weights are left as they were.

        >>> list(cache_variants(subject("llama-3-8b")))
        ['as built: GQA (K = 8)', 'MHA', 'MQA', 'MLA']
    """
    own = attention_words(model)
    made = {f"as built: {own}": model}
    if own == "no keys and values":
        return made
    others: dict[str, Callable[[int, int, int, Span], Cache]] = {
        "MHA": lambda N, key, value, span: Cache(N, key, value, "kv", span),
        "GQA (K = 8)": lambda N, key, value, span: Cache(min(8, N), key, value, "kv", span),
        "MQA": lambda N, key, value, span: Cache(1, key, value, "kv", span),
        "MLA": lambda N, key, value, span: Cache(1, 4 * value + value // 2, 0, "latent", span),
    }
    for name, rebuild in others.items():
        if name != own and (name != "GQA (K = 8)" or own in ("MHA", "MLA")):
            layers = tuple(replace(layer, blocks=tuple(_with(b, rebuild) for b in layer.blocks)) for layer in model.layers)
            made[name] = replace(model, name=f"{model.name}, {name}", layers=layers)
    return made


def _with(block: Block, rebuild: Callable[[int, int, int, Span], Cache]) -> Block:
    """The block with other keys and values; an index by which it chooses stays."""
    if not block.cache or "N" not in block.facts:
        return block
    values = (op.sizes["H"] for op in block.ops if op.kind == "mixing" and op.part.endswith("values"))
    N, key, value = block.facts["N"], block.facts["H"], next(values, block.facts["H"])
    own = [c if c.kind != "latent" else Cache(N, key, value, "kv", c.span) for c in block.cache]
    return replace(block, cache=tuple(c if c.kind == "index" else rebuild(N, c.key, c.value, c.span) for c in own))


@lru_cache(maxsize=4096)  # while a reader moves along the lengths, the curves stay
def sequence_bytes(model: Model, seq_len: int, dtype: str = "bf16", tp: int = 1) -> int:
    """Bytes that one device of `tp` keeps of one sequence: keys and values, the keys of an index, and its share of recurrent states.

    >>> sequence_bytes(subject("llama-3-8b"), 8192) / 2**30
    1.0
    """
    states = ceil_div(model.state_bytes(1, dtype), tp)
    return int(model.kv_bytes(seq_len, 1, dtype, tp=tp) + model.index_bytes(seq_len, 1, dtype, tp=tp) + states)


def free_bytes(model: Any, chip: Any, *, tp: int = 1, weights: str = "bf16") -> int:
    """HBM that a chip has left beside its share of the weights, as if nothing else were there; negative where they do not fit.

    >>> round(free_bytes("llama-3-8b", "h100") / 2**30, 1)
    64.2
    """
    c = chip_of(chip)
    if c.hbm_bytes is None:
        raise HardwareError(f"the HBM of {c.name} is not known, so nothing can be said to fit")
    return int(c.hbm_bytes - ceil_div(subject(model).weight_bytes(weights), whole("tp", tp)))


def largest_batch(model: Any, seq_len: int, chip: Any, *, dtype: str = "bf16", tp: int = 1, weights: str = "bf16") -> int:
    """The most sequences of `seq_len` tokens whose cache fits beside the weights on each of `tp` chips: ⌊free ÷ bytes of one⌋.

    >>> largest_batch("llama-3-8b", 8192, "h100")
    64
    """
    x, S = subject(model), whole("seq_len", seq_len)
    each = sequence_bytes(x, S, dtype, whole("tp", tp))
    if each == 0:
        raise ScalebookError(f"{x.name} keeps nothing of a sequence, so no number of them fills a memory")
    return max(0, free_bytes(x, chip, tp=tp, weights=weights)) // each


def kv_cache(
    model: Any,
    *,
    at: int = 8192,
    batch: int = 1,
    chip: Any = "h100",
    dtype: str = "bf16",
    tp: int = 1,
    weights: str = "bf16",
    variants: Iterable[str] | None = None,
) -> View:
    """The bytes of `batch` sequences on each of `tp` chips against their length, the HBM beside the weights, and how many fit.

    For the model as built and as its `cache_variants` (all, or those named). `at` marks a length.

        >>> view = kv_cache("llama-3-8b", at=8192, batch=16)
        >>> [(row["name"], row["fit"]) for row in view["at"]["rows"]]
        [('as built: GQA (K = 8)', 64), ('MHA', 16), ('MQA', 513), ('MLA', 228)]

    Raises ModelError for what is no model or keeps nothing, HardwareError for a chip of unknown memory.
    """
    x, S, B, tp = subject(model), whole("at", at), whole("batch", batch), whole("tp", tp)
    within_range(S)
    dtype, weights = dtype_name(dtype), dtype_name(weights)
    every = cache_variants(x)
    chosen = list(every) if variants is None else listed("variants", variants)
    for name in chosen:
        if name not in every:
            raise unknown(f"way to share the keys and values of {x.name}", name, every)
    c, free = chip_of(chip), free_bytes(x, chip, tp=tp, weights=weights)
    lines: list[View] = []
    rows: list[View] = []
    for name in chosen:
        m = every[name]
        colour = "hbm" if m is x else _VARIANTS[name]
        points = [[n, B * sequence_bytes(m, n, dtype, tp)] for n in LENGTHS]
        lines.append({"name": name, "colour": colour, "points": points})
        each = sequence_bytes(m, S, dtype, tp)
        if each == 0:
            raise ScalebookError(f"{x.name} keeps nothing of a sequence: there is no cache to show")
        rows.append({"name": name, "value": B * each, "text": binary(B * each), "colour": colour, "fit": max(0, free) // each})
    own = rows[0]
    longest = _longest(every[chosen[0]], free, B, dtype, tp)
    fit = bars({r["name"]: r["fit"] for r in rows}, "sequences", colour="hbm", highlight=chosen[0],
               quantity_name=f"sequences of {count(S)} tokens that fit")  # fmt: skip
    guide = {"value": free, "text": f"{binary(free)} of HBM beside the weights", "short": f"{binary(free)} free", "limit": True}
    marked = longest is not None and LENGTHS[0] <= longest <= LENGTHS[-1]
    mark = {"x": longest, "y": free, "text": f"full at {count(longest)}", "name": chosen[0], "colour": "hbm"}
    return {
        "subject": x.name,
        "chip": c.name,
        "tp": tp,
        "batch": B,
        "dtype": dtype,
        "weights": weights,
        "weight_bytes": ceil_div(x.weight_bytes(weights), tp),
        "hbm_bytes": c.hbm_bytes,
        "free": free,
        "token_bytes": sequence_bytes(x, S, dtype, tp) / S,
        "state_bytes": ceil_div(x.state_bytes(1, dtype), tp),
        "windows": _windows(x),
        "longest": longest,
        "lines": lines,
        "marks": [mark] if marked else [],
        "regimes": [],
        "guides": [guide] if free > 0 else [],
        "x": {"name": "tokens in each sequence (log)", "unit": ""},
        "y": {"name": f"cache of {plural(B, 'sequence')} (log)", "unit": "GiB"},
        "at": {"x": S, "name": plural(S, "token"), "rows": rows, "fit": own["fit"]},
        "fit": fit,
    }


def _longest(model: Model, free: int, batch: int, dtype: str, tp: int) -> int | None:
    """The longest sequences of which `batch` fit; None where none does, or however long."""

    def fits(S: int) -> bool:
        return batch * sequence_bytes(model, S, dtype, tp) <= free

    if not fits(1) or fits(LONGEST):
        return None
    low, high = 1, LONGEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _windows(model: Model) -> View | None:
    """How many of the layers that keep keys and values keep only the last ones, and of how many tokens; None where all keep all."""
    every, narrow, widths = 0, 0, set[int]()
    for layer in model.layers:
        spans = [c.span for block in layer.blocks for c in block.cache if c.kind != "index"]
        every += layer.count if spans else 0
        if bounded := [s.width for s in spans if s.kind in ("window", "chunk")]:
            narrow += layer.count
            widths.update(bounded)
    return {"layers": narrow, "of": every, "width": max(widths)} if narrow else None
