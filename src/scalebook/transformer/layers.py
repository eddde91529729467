"""A layer as its blocks, what stands around all layers, and how many pairs of a query and a key each kind of attention computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from scalebook.transformer.blocks import Block
from scalebook.transformer.ops import Op, Size, Span, matmul, table, vector
from scalebook.units import maximum, minimum, widened

Convention = Literal["causal", "full"]
MOST_LAYERS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Layers of one kind: `count` of them, at the places `at` (from 0) where that is known. Norms are a block like any other."""

    kind: str
    blocks: tuple[Block, ...]
    count: Size = 1
    at: tuple[int, ...] = ()

    @property
    def ops(self) -> Iterator[Op]:
        """Every operation of one such layer."""
        return (op for block in self.blocks for op in block.ops)


def norms(*widths: Size, bias: bool = False, name: str = "norm") -> Block:
    """The norms of a layer, one of each width, each with a scale and maybe a bias per element; none where a width is 0."""
    return Block("norm", tuple(vector(name, w * (2 if bias else 1)) for w in widths))


def around(
    *,
    D: Size,
    V: Size,
    tied: bool,
    norm: bool = True,
    norm_bias: bool = False,
    head_bias: bool = False,
    extra: tuple[Op, ...] = (),
) -> tuple[Op, ...]:
    """What stands around the layers: the table of V embeddings, a last norm, the head (which adds nothing where it is tied)."""
    ops = [table("embedding", V * D), *extra]
    ops += [vector("final_norm", D * (2 if norm_bias else 1))] if norm else []
    ops += [matmul("head", "In[B, T, D] * W[D, V] -> Logits[B, T, V]", stored=not tied, D=D, V=V)]
    ops += [vector("head_bias", V)] if head_bias else []
    return tuple(ops)


def stacked(kinds: Iterable[tuple[str, Layer]]) -> tuple[Layer, ...]:
    """Layers in their order, each with a name for its kind, put together: one Layer per kind, with its count and its places.

    The layer that comes with a name is that of the first of its kind; layers of one name are equal.
    """
    first: dict[str, Layer] = {}
    places: dict[str, list[int]] = {}
    for i, (name, layer) in enumerate(kinds):
        first.setdefault(name, layer)
        places.setdefault(name, []).append(i)
    return tuple(Layer(name, layer.blocks, len(places[name]), tuple(places[name])) for name, layer in first.items())


def attended(span: Span, T: Size, past: Size = 0, convention: Convention = "causal") -> Size:
    """Pairs of a query and a key for T new tokens after `past` earlier ones, per head.

    Causal: a query sees itself and what came before, so all pairs are T·past + T(T+1)/2, or fewer by a window. "full" counts, as dense
    attention computes them and some published FLOPs do, every query as if it saw what the last one sees: T·(past + T).

    >>> attended(Span(), 4), attended(Span("window", 2), 4), attended(Span("chunk", 3), 4), attended(Span("every", 2), 4)
    (10, 7, 7, 4)
    """
    T, past = widened(T, past)
    if convention == "full":
        return T * kept(span, past + T)
    if span.kind == "full":
        return T * past + T * (T + 1) // 2
    return _until(span, past + T) - _until(span, past)


def kept(span: Span, S: Size) -> Size:
    """Of S tokens, those whose keys the last query sees, or that are kept for it.

    >>> kept(Span(), 100), kept(Span("window", 64), 100), kept(Span("every", 8), 100), kept(Span("top", 5, group=8), 100)
    (100, 64, 12, 5)
    """
    if span.kind == "full":
        return S
    return S // span.width if span.kind == "every" else minimum(S // span.group, span.width)


def _until(span: Span, n: Size) -> Size:
    """Pairs of the first n queries."""
    n, W = widened(n, span.width)
    if span.kind == "chunk":
        rest = n % W
        return n // W * (W * (W + 1) // 2) + rest * (rest + 1) // 2
    if span.kind == "every":
        return _grouped(n, W)
    grows = W * span.group - 1  # the last query that sees less than W keys
    return _grouped(minimum(n, grows), span.group) + maximum(n - grows, 0) * W


def _grouped(n: Size, group: Size) -> Size:
    """Σ of t ÷ group, rounded down, for t from 1 to n.

    >>> _grouped(10, 4), _grouped(10, 1)
    (10, 55)
    """
    q = n // group
    return group * (q * (q - 1) // 2) + q * (n % group + 1)
