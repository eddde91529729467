"""Where the parameters and the FLOPs of a Transformer sit: its parts, its layers in their order, and what it keeps of a token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from scalebook.errors import ModelError, shown, unknown
from scalebook.explore.checks import whole
from scalebook.transformer import ACTIVE, Model, model as model_of
from scalebook.transformer.blocks import Block
from scalebook.transformer.layers import Layer
from scalebook.transformer.ops import Op, Span, nothing
from scalebook.typed import shorten
from scalebook.units import count, is_array, percent, si

View = dict[str, Any]
KINDS = ("forward", "decode")
PARTS = {  # in the order in which a token meets them, with their colours; neighbours far apart
    "embedding": "cat-4",
    "attention weights": "cat-1",
    "scores and values": "cat-8",
    "recurrent blocks": "cat-2",
    "MLP": "cat-3",
    "router": "idle",
    "routed experts": "cat-6",
    "shared experts": "cat-5",
    "everything else": "idle",
    "head": "cat-7",
}
REST = "everything else"
SMALL, HIDDEN = (
    0.002,
    0.001,
)  # a part below the first share is drawn with the rest, a rest below the second not at all; the table has all
MOST_RUNS = 500  # stretches of equal layers that are drawn


def subject(model: Any) -> Model:
    """The model of a name of `sb.models()`, or a Model itself, whose sizes are plain numbers.

    >>> subject("llama-3-8b").L
    32

    Raises ModelError for anything else, and for a model of NumPy arrays.
    """
    if isinstance(model, str):
        return model_of(model)
    if not isinstance(model, Model):
        raise ModelError(f"a figure shows a Model, or one by its name, such as 'llama-3-8b'; found {shown(model)}")
    if is_array(model.total_params) or is_array(model.kv_bytes(1)):
        raise ModelError(f"a figure shows one model; the sizes of {model.name!r} are arrays: choose one value of each")
    return model


def parts_of(model: Model) -> dict[str, str]:
    """The part of `PARTS` that each path of `model.params()` and `model.flops_by_part()` belongs to.

    >>> found = parts_of(subject("llama-3-8b"))
    >>> found["layers/mlp/up"], found["layers/attention/scores"], found["head"]
    ('MLP', 'scores and values', 'head')
    """
    found = {op.part: _around(op) for op in model.outer}
    for layer in model.layers:
        for block in layer.blocks:
            part = _part(block)
            for op in (*block.ops, *block.decoding):
                found[f"layers/{op.part}"] = _inside(op, part)
    return found


def _around(op: Op) -> str:
    return "embedding" if op.kind == "table" else "head" if op.part in ("head", "head_bias") else REST


def _inside(op: Op, part: str) -> str:
    if op.kind == "mixing":
        return "scores and values"
    first, _, rest = op.part.partition("/")
    if first == "shared_expert":
        return "shared experts"
    if first == "experts":
        return "router" if rest.startswith("router") else "routed experts"
    return part


def _part(block: Block) -> str:
    """What a block is, by what it does: whatever a family calls it."""
    if block.state or any(op.kind == "scan" for op in block.ops):
        return "recurrent blocks"
    if block.cache or any(op.kind == "mixing" for op in block.ops):
        return "attention weights"
    if block.kind in ("mlp", "experts"):
        return "MLP" if block.kind == "mlp" else "routed experts"
    return REST


def model_anatomy(model: Any, *, seq_len: int = 4096, kind: str = "forward") -> View:
    """Shares of the parts of a model: of its parameters, of those that a token uses, and of the FLOPs of a token.

    FLOPs are those of a forward pass over `seq_len` tokens, per token; with "decode" those of the last of them, made alone.

        >>> view = model_anatomy("llama-3-8b", seq_len=4096)
        >>> [(row["name"], row["text"].replace("\\u00a0", " ")) for row in view["rows"]]
        [('parameters', '8,030,261,248'), ('FLOPs of a token', '16.1 GFLOPs')]

    Raises ModelError for what is no model, ScalebookError for an unknown kind, SizeError for no length.
    """
    x = subject(model)
    if kind not in KINDS:
        raise unknown("kind of FLOPs", kind, KINDS)
    S = whole("seq_len", seq_len)
    belongs = parts_of(x)
    total, active = x.total_params, x.active_params()
    amounts = {"parameters": _summed(x.params(), belongs)}
    texts = {"parameters": f"{total:,}"}
    if active != total:
        used: dict[str, int] = {}
        for path, times, op, _ in x.computed():
            used[path] = used.get(path, 0) + times * op.active
        amounts["parameters that a token uses"] = _summed(used, belongs)
        texts["parameters that a token uses"] = f"{active:,}, {percent(active / total)} of all"
    flops = x.flops_by_part(batch=1, seq_len=S, kind=kind)  # type: ignore[arg-type]
    amounts["FLOPs of a token"] = _summed(flops, belongs)
    each = sum(flops.values()) / (1 if kind == "decode" else S)
    texts["FLOPs of a token"] = si(each, "FLOPs")
    runs, places = _runs(x), all(layer.at for layer in x.layers)
    return {
        "subject": shorten(x.name, 60),
        "family": x.family,
        "seq_len": S,
        "kind": kind,
        "rows": [_row(name, texts[name], parts) for name, parts in amounts.items()],
        "limit": None,
        "kinds": [_kind(layer) for layer in x.layers],
        "runs": runs if places and len(runs) <= MOST_RUNS else [],
        "layers": x.L,
        "total": total,
        "active": {name: x.active_params(name) for name in ACTIVE},  # type: ignore[arg-type]
        "flops": each,
        "token_bytes": x.kv_bytes(1) + x.index_bytes(1),
        "windows": x.kv_bytes(2**20) < 2**20 * x.kv_bytes(1),
        "state_bytes": x.state_bytes(),
        "tied": bool(x.tied),
        "mtp": sum(op.params for op in x.mtp),
        "known": bool(x.source),
        "assumed": list(dict.fromkeys(x.assumptions)),
        "ignored": list(x.ignored),
        "not_counted": list(x.not_counted),
    }


def _summed(amounts: Mapping[str, int], belongs: Mapping[str, str]) -> dict[str, int]:
    """Amounts by path as amounts by part, in the order of `PARTS`; none that is nothing."""
    found = dict.fromkeys(PARTS, 0)
    for path, n in amounts.items():
        found[belongs[path]] += n
    return {part: n for part, n in found.items() if n}


def _row(name: str, text: str, amounts: Mapping[str, int]) -> View:
    total = sum(amounts.values())
    shares = {part: n / total for part, n in amounts.items()}
    drawn = {part: share for part, share in shares.items() if share >= SMALL and part != REST}
    if (rest := 1 - sum(drawn.values())) >= HIDDEN and len(drawn) < len(shares):
        drawn = {part: drawn.get(part, rest) for part in PARTS if part in drawn or part == REST}
    parts = [{"name": p, "value": s, "text": _small(s), "colour": PARTS[p]} for p, s in drawn.items()]
    every = [{"name": p, "value": n, "share": shares[p], "text": _small(shares[p])} for p, n in amounts.items()]
    return {"name": name, "text": text, "parts": parts, "every": every, "total": 1.0, "verdict": "", "over": False}


def _small(share: float) -> str:
    """A share, which says 100% only of all."""
    return "<0.1%" if 0 < share < 0.001 else percent(share, 3 if 0.99 < share < 1 else 2)


# ---- the layers, in their order ---------------------------------------------------------------------------------------------


def _kind(layer: Layer) -> View:
    """The layers of one kind: how many, where, and their blocks but the norms."""
    blocks = [b for b in layer.blocks if b.kind != "norm"]
    said = [_said(block) for block in blocks]
    drawn = [{"colour": PARTS[part], "pale": _span(b).kind != "full"} for b, (part, _) in zip(blocks, said, strict=True)]
    return {
        "name": layer.kind,
        "count": layer.count,
        "places": _places(layer.at),
        "blocks": drawn,
        "params": sum(op.params for op in layer.ops),
        "words": "; ".join(dict.fromkeys(words for _, words in said)) or "norms only",
    }


def _said(block: Block) -> tuple[str, str]:
    """The part that a block is drawn as, and what it is in a few words."""
    f = block.facts
    part = _part(block)
    if part == "attention weights":
        heads = "" if "N" not in f else f", {count(f['N'])} heads" if f["N"] == f.get("K") else f", {f['N']} heads over {f['K']}"
        return part, f"{block.kind}{heads}{_span_words(_span(block))}"
    if block.kind == "experts" and "E" in f:
        both = " and a shared one" if not nothing(f.get("shared", 0)) else ""
        return part, f"{count(f['k'])} of {count(f['E'])} experts{both}"
    return part, "MLP" if part == "MLP" else block.kind


def _span(block: Block) -> Span:
    """What its queries see: of several kinds of mixing, the one that sees least."""
    spans = [op.span for op in block.ops if op.kind == "mixing"]
    return next((s for s in spans if s.kind != "full"), spans[0] if spans else Span())


def _span_words(span: Span) -> str:
    if span.kind == "full":
        return ""
    what = {"window": "in a window of", "chunk": "in chunks of", "top": "over the best", "every": "over one key in"}[span.kind]
    return f", {what} {count(span.width)}"


def _places(at: tuple[int, ...]) -> str:
    """Where layers are, from 0: 0 to 2, or every 6th from 5; "" where that is not short or not known.

    >>> _places((0, 1, 2)), _places((5, 11, 17)), _places((4,)), _places((0, 3, 4))
    ('0 to 2', 'every 6th from 5', '4', '0, 3, 4')
    """
    if len(at) <= 1:
        return "".join(map(str, at))
    steps = {b - a for a, b in pairwise(at)}
    if steps == {1}:
        return f"{at[0]} to {at[-1]}"
    if len(steps) == 1 and len(at) > 2:
        n = steps.pop()
        end = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
        return f"every {n}{end} from {at[0]}"
    return ", ".join(map(str, at)) if len(at) <= 5 else ""


def _runs(model: Model) -> list[list[int]]:
    """Stretches of layers of one kind, in order: the number of the kind, and how many."""
    order = sorted((place, i) for i, layer in enumerate(model.layers) for place in layer.at)
    runs: list[list[int]] = []
    for _, i in order:
        if runs and runs[-1][0] == i:
            runs[-1][1] += 1
        else:
            runs.append([i, 1])
    return runs


# ---- products with and without weights --------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def token_costs(model: Model) -> tuple[int, tuple[tuple[Span, int], ...]]:
    """FLOPs of a token in all products but the mixing, and of a pair of a query and a key, by what the queries see.

    >>> weights, ((span, pair),) = token_costs(subject("llama-3-8b"))
    >>> weights, span.kind, pair
    (15009316864, 'full', 524288)
    """
    each, pairs = 0, dict[tuple[str, Any], tuple[Span, int]]()
    for times, op in _computed(model):
        each += times * op.token_flops
        if not nothing(op.pair_flops):
            key = (op.span.kind, op.span.width)
            pairs[key] = (op.span, pairs.get(key, (op.span, 0))[1] + times * op.pair_flops)
    return each, tuple(pairs.values())


def _computed(model: Model) -> Iterator[tuple[int, Op]]:
    return ((times, op) for _, times, op, _ in model.computed())


def attention_words(model: Model) -> str:
    """How the keys and values of a model are shared, in a few letters: MHA, MQA, MLA, or GQA with K.

    >>> attention_words(subject("llama-3-8b"))
    'GQA (K = 8)'
    """
    blocks = [block for layer in model.layers for block in layer.blocks if block.cache]
    if any(c.kind == "latent" for block in blocks for c in block.cache):
        return "MLA"
    heads = {(block.facts["N"], block.facts["K"]) for block in blocks if "N" in block.facts}
    if not heads:
        return "no keys and values"
    if all(N == K for N, K in heads):
        return "MHA"
    if all(K == 1 for _, K in heads):
        return "MQA"
    shared = {K for _, K in heads}
    return f"GQA (K = {count(shared.pop())})" if len(shared) == 1 else "GQA"
