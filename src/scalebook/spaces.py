"""Every layout of an array on a mesh, and the collectives that lead from one to another: nodes and edges of a graph.

Which layouts exist depends on the divisibility of the dimensions, never on the sizes themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from scalebook.layouts import Layout

Axes = tuple[tuple[str, int], ...]  # the mesh axes in play and their sizes, all above 1
Dims = tuple[tuple[str, ...], ...]
Limits = tuple[int, ...]  # for each dimension, gcd(its size, devices): what its shard count must divide


class Edge(NamedTuple):
    """Collective `kind` over `axes` (k devices a group), from dimension `src` to `dst`; before it each device holds 1/split."""

    kind: str
    axes: tuple[str, ...]
    src: int | None
    dst: int | None
    to: int
    k: int
    split: int

    @property
    def weight(self) -> float:
        """Bytes each device receives ÷ bytes of the whole array."""
        return received_share(self.kind, self.k) / self.split

    @property
    def group(self) -> float:
        """Bytes of the array as one group holds it (after a gather, before a scatter) ÷ bytes of the whole array."""
        return (1 if self.kind in ("reduce-scatter", "all-reduce") else self.k) / self.split


def received_share(kind: str, k: float) -> float:
    """Bytes received per device ÷ bytes a device holds before the move, for a group of k devices.

    >>> received_share("all-gather", 4), received_share("reduce-scatter", 4), received_share("all-reduce", 4)
    (3, 0.75, 1.5)
    """
    if kind == "slice":
        return 0
    if kind == "permute":
        return 1
    return {"all-gather": k - 1, "all-to-all": (k - 1) / k, "reduce-scatter": (k - 1) / k, "all-reduce": 2 * (k - 1) / k}[kind]


@dataclass(frozen=True, eq=False)
class Graph:
    """Every layout of an array, in a fixed order, and the moves out of each.

    Permutes lead from a layout to every other with as many shards in each dimension. They are most of the edges, so they are
    not listed but made where a walk takes one: `peers[group[n]]` are the layouts that node n can be permuted to, itself included.
    """

    nodes: tuple[Layout, ...]
    number: dict[Layout, int]  # of each layout, its place in `nodes`
    split: tuple[int, ...]  # devices that hold different blocks; the local block is 1/split
    moves: tuple[tuple[Edge, ...], ...]  # out of each layout, permutes apart
    peers: tuple[tuple[int, ...], ...]
    group: tuple[int, ...]
    axes: Axes
    places: tuple[int, ...]  # of each layout, where every axis is: _BITS for each
    changes: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def changed(self, n: int, t: int) -> tuple[str, ...]:
        """The axes that are not in the same place, with the same stride, in two layouts: those a permute runs over."""
        differ = self.places[n] ^ self.places[t]
        if differ not in self.changes:
            mask = 2**_BITS - 1
            self.changes[differ] = tuple(a for i, (a, _) in enumerate(self.axes) if differ >> i * _BITS & mask)
        return self.changes[differ]

    def permute(self, n: int, t: int) -> Edge:
        """The permute from one layout to another of its group."""
        axes, size = self.changed(n, t), dict(self.axes)
        return Edge("permute", axes, None, None, t, math.prod(size[a] for a in axes), self.split[n])

    @cached_property
    def edges(self) -> tuple[tuple[Edge, ...], ...]:
        """The moves out of each layout, permutes included."""
        return tuple(
            (*moves, *(self.permute(n, t) for t in self.peers[self.group[n]] if t != n)) for n, moves in enumerate(self.moves)
        )


def layout_count(dims: int, axes: int) -> int:
    """How many layouts an array of so many dimensions has on so many mesh axes, if all sizes divide.

    m of the n axes in some order, cut into d dimensions, and sums pending over any of the rest: Σ n!/(n−m)! · C(m+d−1, m) · 2^(n−m).

    >>> layout_count(2, 2), layout_count(2, 5)
    (18, 3552)
    """
    most = axes if dims else 0
    return sum(math.perm(axes, m) * math.comb(m + max(dims, 1) - 1, m) * 2 ** (axes - m) for m in range(most + 1))


def layout_space(limits: Limits, axes: Axes) -> Iterator[tuple[Dims, tuple[str, ...]]]:
    """Every way to put mesh axes on the dimensions, in order, and to leave sums pending over others, that divides evenly.

    >>> [dims for dims, pending in layout_space((4,), (("X", 2),)) if not pending]
    [((),), (('X',),)]
    """
    size, names = dict(axes), [a for a, _ in axes]
    for m in range(len(names) + 1 if limits else 1):  # a scalar has nothing to split
        for chosen in itertools.permutations(names, m):
            rest = [a for a in names if a not in chosen]
            waiting = [p for r in range(len(rest) + 1) for p in itertools.combinations(sorted(rest), r)]
            for cuts in itertools.combinations_with_replacement(range(m + 1), max(len(limits) - 1, 0)):
                edges = (0, *cuts, m) if limits else (0,)
                dims = tuple(chosen[i:j] for i, j in itertools.pairwise(edges))
                if all(lim % math.prod(size[a] for a in d) == 0 for lim, d in zip(limits, dims, strict=True)):
                    yield from ((dims, p) for p in waiting)


def _put(dims: Dims, *changes: tuple[int, tuple[str, ...]]) -> Dims:
    out = list(dims)
    for i, axes in changes:
        out[i] = axes
    return tuple(out)


def _moves(
    dims: Dims, pending: tuple[str, ...], size: dict[str, int]
) -> Iterator[tuple[str, tuple[str, ...], int | None, int | None, Dims, tuple[str, ...]]]:
    """The moves out of one layout, permutes apart."""
    for i, axes in enumerate(dims):
        for m in range(1, len(axes) + 1):  # only minor (innermost) axes leave a dimension
            keep, off = axes[:-m], axes[-m:]
            yield "all-gather", off, i, None, _put(dims, (i, keep)), pending
            for j in range(len(dims)):
                if j != i:
                    yield "all-to-all", off, i, j, _put(dims, (i, keep), (j, dims[j] + off)), pending
    taken = {*pending, *itertools.chain(*dims)}
    for a in size:
        if a not in taken:
            for j in range(len(dims)):
                yield "slice", (a,), None, j, _put(dims, (j, dims[j] + (a,))), pending
    for r in range(1, len(pending) + 1):
        for some in itertools.combinations(pending, r):
            rest = tuple(a for a in pending if a not in some)
            yield "all-reduce", some, None, None, dims, rest
            for order in itertools.permutations(some):
                for j in range(len(dims)):
                    yield "reduce-scatter", order, None, j, _put(dims, (j, dims[j] + order)), rest


@lru_cache(64)
def layout_graph(limits: Limits, axes: Axes) -> Graph:
    """All layouts that the limits allow, and all moves between them."""
    size = dict(axes)
    raw = list(dict.fromkeys(layout_space(limits, axes)))
    index = {node: n for n, node in enumerate(raw)}
    counts = [tuple(math.prod(size[a] for a in d) for d in dims) for dims, _ in raw]
    alike: dict[tuple[tuple[int, ...], tuple[str, ...]], list[int]] = {}
    for n, (_, pending) in enumerate(raw):
        alike.setdefault((counts[n], pending), []).append(n)
    at = {key: i for i, key in enumerate(alike)}
    split = tuple(math.prod(c) for c in counts)
    product: dict[tuple[str, ...], int] = {}
    out = []
    for n, (dims, pending) in enumerate(raw):
        edges = []
        for kind, moved, src, dst, new, rest in _moves(dims, pending, size):
            to = index.get((new, rest))
            if to is not None:
                if moved not in product:
                    product[moved] = math.prod(size[a] for a in moved)
                edges.append(Edge(kind, moved, src, dst, to, product[moved], split[n]))
        out.append(tuple(edges))
    nodes = tuple(Layout(dims, pending) for dims, pending in raw)
    return Graph(
        nodes=nodes,
        number={s: n for n, s in enumerate(nodes)},
        split=split,
        moves=tuple(out),
        peers=tuple(map(tuple, alike.values())),
        group=tuple(at[counts[n], pending] for n, (_, pending) in enumerate(raw)),
        axes=axes,
        places=_places(raw, axes),
    )


_BITS = 24  # room for the place of one axis in a layout


def _places(raw: list[tuple[Dims, tuple[str, ...]]], axes: Axes) -> tuple[int, ...]:
    """For each layout one number that says of every axis its dimension and stride (how many blocks apart its neighbours are)."""
    size, shift = dict(axes), {a: i * _BITS for i, (a, _) in enumerate(axes)}
    code: dict[tuple[int, int], int] = {}
    out = []
    for dims, _ in raw:
        place = 0
        for i, d in enumerate(dims):
            stride = 1
            for a in reversed(d):
                place += code.setdefault((i, stride), len(code) + 1) << shift[a]
                stride *= size[a]
        out.append(place)
    return tuple(out)
