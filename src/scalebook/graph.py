"""What moves cost, and the cheapest walks through the graph in which an array's layouts are nodes and collectives are edges.

An edge costs `rate` per byte of the whole array, plus `fixed` whatever the size. So a walk from one layout to another depends on
which layouts exist (the divisibility of the dimensions), never on the sizes themselves: it is found once and evaluated anywhere.
"""

from __future__ import annotations

import heapq
import itertools
import math
from functools import lru_cache
from typing import Any, NamedTuple

from scalebook.collectives import prices
from scalebook.layouts import Mesh
from scalebook.spaces import Axes, Edge, Graph, Limits, layout_count, layout_graph, received_share

__all__ = [
    "Axes", "Edge", "Graph", "Limits", "PriceList", "Walk", "hull", "layout_count", "layout_graph", "received_share", "tidy", "walks",
]  # fmt: skip

# ---- prices -------------------------------------------------------------------------------------------------------------


class PriceList(NamedTuple):
    """How moves are priced: in seconds on the links of `mesh`; in what the busiest link of `rings` of these sizes carries, in byte
    times; or, without either, in bytes received. The last two count collectives as fixed cost."""

    mesh: Mesh | None = None
    rings: Axes = ()

    def of(self, kind: str, axes: tuple[str, ...]) -> tuple[tuple[float | None, float, str], ...]:
        """For each algorithm worth having: seconds per byte of the group's array (None: count bytes), fixed seconds, its name."""
        return _offers(self, kind, axes)


@lru_cache(65536)
def _offers(price: PriceList, kind: str, axes: tuple[str, ...]) -> tuple[tuple[float | None, float, str], ...]:
    if kind == "slice":
        return ((0.0, 0.0, ""),)
    if price.rings:
        k = math.prod(n for a, n in price.rings if a in axes)
        return (({"all-to-all": 1 / 8, "permute": 1 / 8, "all-reduce": (k - 1) / k}.get(kind, (k - 1) / k / 2), 1.0, ""),)
    if price.mesh is None:
        return ((None, 1.0, ""),)
    segments = price.mesh.segments(axes)
    offers = [(p.rate, p.fixed, p.algorithm) for p in prices(kind, segments)]
    known = all(rate is not None for rate, _, _ in offers)
    if kind == "permute" and known:  # blocks cross each other: no cheaper than a re-deal of as many bytes over the same links
        least = prices("all-to-all", segments)
        rate, fixed = (
            max(getattr(p, f) or 0.0 for p in (*prices(kind, segments), min(least, key=lambda p: p.rate or 0.0)))
            for f in ("rate", "fixed")
        )
        offers = [(rate, fixed, "re-deal")]
    return tuple(offers)


def tidy(x: Any) -> Any:
    """Ten significant digits, so that equal sums taken in another order tie, whatever their magnitude; numbers or arrays.

    >>> tidy(0.1 + 0.2) == tidy(0.3), tidy(1.23456789012e-12)
    (True, 1.23456789e-12)
    """
    if not getattr(x, "ndim", 0):
        return float(f"{x:.10g}")
    import numpy as np

    scale = 10.0 ** (9 - np.floor(np.log10(np.where((x == 0) | np.isinf(x), 1.0, np.abs(x)))))
    return np.round(x * scale) / scale


Arc = tuple[float, float, int, Edge, str]  # rate per byte of the array, fixed, next layout, move, algorithm


def _scale(axes: Axes, price: PriceList) -> int:
    """Where bytes are counted, rates are whole multiples of 1/devices², so sums are exact and equal ones tie; 0 otherwise."""
    return math.prod(n for _, n in axes) ** 2 if price.mesh is None and not price.rings else 0


@lru_cache(64)
def priced(limits: Limits, axes: Axes, price: PriceList, back: bool) -> tuple[tuple[Arc, ...], ...]:
    """The graph's moves, permutes apart (turned round if `back`), each with its price."""
    g, scale = layout_graph(limits, axes), _scale(axes, price)
    offers: dict[tuple[str, tuple[str, ...]], tuple[tuple[float | None, float, str], ...]] = {}
    whole: dict[tuple[str, int, int], int] = {}
    out: list[list[Arc]] = [[] for _ in g.nodes]
    for s, edges in enumerate(g.moves):
        for e in edges:
            here, there = (e.to, s) if back else (s, e.to)
            if scale and e.kind != "slice":
                at = (e.kind, e.k, e.split)
                if at not in whole:
                    whole[at] = _whole(at, scale)
                out[here].append((whole[at], 1.0, there, e, ""))
                continue
            kind = (e.kind, e.axes)
            if kind not in offers:
                offers[kind] = price.of(*kind)
            for rate, fixed, name in offers[kind]:
                out[here].append(((rate or 0.0) * e.group, fixed, there, e, name))
    return tuple(map(tuple, out))


def _whole(move: tuple[str, int, int], scale: int) -> int:
    """The weight of a move of this kind, k and split, times the scale."""
    kind, k, split = move
    share = {"all-gather": (k - 1) * k, "permute": k, "all-reduce": 2 * (k - 1)}.get(kind, k - 1)
    return share * scale // (k * split)


Exchange = tuple[float, float, str, list[int]]  # rate, fixed, algorithm, the layouts that permutes of this price lead to


@lru_cache(64)
def exchanges(limits: Limits, axes: Axes, price: PriceList) -> dict[int, list[Exchange]]:
    """The permutes out of a layout, grouped by the axes they run over; filled as walks ask. Their price is the same both ways."""
    return {}


def _exchanges(g: Graph, n: int, price: PriceList) -> list[Exchange]:
    size, to = dict(g.axes), dict[tuple[str, ...], list[int]]()
    for t in g.peers[g.group[n]]:
        if t != n:
            to.setdefault(g.changed(n, t), []).append(t)
    out = []
    for moved, targets in to.items():
        share = math.prod(size[a] for a in moved) / g.split[n]
        out += [((rate or 0.0) * share, fixed, name, targets) for rate, fixed, name in price.of("permute", moved)]
    return out


class Walk(NamedTuple):
    """A walk to a layout: rate per byte of the array, fixed cost, its last move (the first, if it was found backwards), the rest."""

    rate: float
    fixed: float
    node: int
    edge: Edge | None
    algorithm: str
    before: Walk | None

    def steps(self) -> list[tuple[int, Edge, str]]:
        """Moves as (layout on the other side of the move, edge, algorithm), in the order in which they were found."""
        if self.before is None or self.edge is None:
            return []
        return [*self.before.steps(), (self.before.node, self.edge, self.algorithm)]


@lru_cache(1024)
def walks(
    start: int, limits: Limits, axes: Axes, price: PriceList, need: int = 1, back: bool = False
) -> dict[int, tuple[Walk, ...]]:
    """Dijkstra with Pareto labels: to each layout, every walk that no other beats in both rate and fixed cost.

    Layouts of fewer than `need` different blocks are closed: their local block is larger than the memory allows.
    """
    g, arcs = layout_graph(limits, axes), priced(limits, axes, price, back)
    if g.split[start] < need:
        return {}
    scale, others = _scale(axes, price), exchanges(limits, axes, price)
    labels: dict[int, list[Walk]] = {}
    least = [math.inf if n >= need else -1.0 for n in g.split]  # the lowest fixed cost among a layout's labels
    waiting: list[list[tuple[float, float]]] = [[] for _ in g.nodes]  # labels of a layout that were put on the heap
    permuted: dict[int, float] = {}  # for each group, the lowest fixed cost of its permutes so far
    heap: list[tuple[float, float, int, int, Walk | None, Edge | None, str]] = [(0, 0.0, 0, start, None, None, "")]
    tick = itertools.count(1)

    def offer(cost: float, total: float, there: int, walk: Walk, edge: Edge | None, name: str) -> None:
        for x, y in waiting[there]:
            if x <= cost and y <= total:
                return
        if not scale:
            cost, total = tidy(cost), tidy(total)
            for x, y in waiting[there]:
                if x <= cost and y <= total:
                    return
        waiting[there].append((cost, total))
        heapq.heappush(heap, (cost, total, next(tick), there, walk, edge, name))

    while heap:
        rate, fixed, _, node, before, edge, name = heapq.heappop(heap)  # rates come out in increasing order,
        if fixed >= least[node]:  # so a later label must have a lower fixed cost
            continue
        least[node] = fixed
        if before is not None and edge is None:
            edge = g.permute(node, before.node) if back else g.permute(before.node, node)
        walk = Walk(rate / scale if scale else rate, fixed, node, edge, name, before)
        labels.setdefault(node, []).append(walk)
        for r, f, there, move, algorithm in arcs[node]:
            if fixed + f < least[there]:
                offer(rate + r, fixed + f, there, walk, move, algorithm)
        group = g.group[node]
        if scale:  # all permutes of a group cost the same
            total = fixed + 1.0
            if total >= permuted.get(group, math.inf):
                continue
            permuted[group] = total
            swaps: list[Exchange] = [(scale // g.split[node], 1.0, "", list(g.peers[group]))]
        else:
            if node not in others:
                others[node] = _exchanges(g, node, price)
            swaps = others[node]
        for r, f, algorithm, targets in swaps:
            for there in targets:
                if fixed + f < least[there]:
                    offer(rate + r, fixed + f, there, walk, None, algorithm)
    return {node: tuple(found) for node, found in labels.items()}


def hull(found: tuple[Walk, ...]) -> tuple[Walk, ...]:
    """Of walks to one layout, rates rising and fixed costs falling, those that are cheapest for an array of some size.

    Rate · bytes + fixed is a line for each, and the cheapest of them is their lower envelope.
    """
    keep: list[Walk] = []
    for c in found:
        while len(keep) > 1:
            a, b = keep[-2:]
            if (b.rate - a.rate) * (a.fixed - c.fixed) < (c.rate - a.rate) * (a.fixed - b.fixed):
                break
            keep.pop()
        keep.append(c)
    return tuple(keep)
