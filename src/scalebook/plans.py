"""Plans for a product of two sharded arrays: walk A, walk B, multiply locally, walk C; every plan that is best for some sizes.

A plan is a handful of coefficients, so a frontier is derived once and evaluated at any sizes, numbers or NumPy arrays.
"""

from __future__ import annotations

import itertools
import math
import operator
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from scalebook.graph import Axes, Edge, Graph, Limits, PriceList, Walk, hull, layout_graph, tidy, walks
from scalebook.layouts import Layout
from scalebook.units import maximum


class Product(NamedTuple):
    """What the search needs to know of an einsum: letters and layouts, what divides, the mesh axes in play, prices, memory."""

    letters: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    layouts: tuple[Layout, Layout, Layout]
    limits: tuple[tuple[str, int], ...]  # gcd(size, devices) of each letter
    axes: Axes
    price: PriceList = PriceList()
    need: tuple[int, int, int] = (1, 1, 1)  # least number of blocks of A, B, C that fits in memory

    def limits_of(self, array: int) -> Limits:
        """The limits of the dimensions of array 0, 1 or 2."""
        lim = dict(self.limits)
        return tuple(lim[d] for d in self.letters[array])


class Step(NamedTuple):
    """One move of a plan: array 0, 1 or 2, the layouts on both sides, the edge, and the algorithm that was priced."""

    array: int
    before: Layout
    after: Layout
    edge: Edge
    algorithm: str


@dataclass(frozen=True)
class Plan:
    """A way to compute the product, as coefficients: it costs a·|A| + b·|B| + c·|C| + fixed (seconds, or bytes and collectives).

    `wire` are the bytes received per device as multiples of |A|, |B|, |C|; each device multiplies 1/split of the whole, on
    blocks that are 1/blocks of each array.
    """

    rates: tuple[float, float, float]
    fixed: float
    split: int
    blocks: tuple[int, int, int]
    wire: tuple[float, float, float]
    local: tuple[Layout, Layout, Layout]
    steps: tuple[Step, ...]

    @property
    def count(self) -> int:
        """Number of collectives; slices are free."""
        return sum(s.edge.kind != "slice" for s in self.steps)


def _steps(graphs: Sequence[Graph], found: tuple[Walk, Walk, Walk]) -> tuple[Step, ...]:
    out = []
    for n, (g, walk) in enumerate(zip(graphs, found, strict=True)):
        if n < 2:
            at = [*walk.steps()]
            out += [Step(n, g.nodes[before], g.nodes[e.to], e, name) for before, e, name in at]
        else:
            w: Walk | None = walk
            while w is not None and w.edge is not None:
                out.append(Step(n, g.nodes[w.node], g.nodes[w.edge.to], w.edge, w.algorithm))
                w = w.before
    return tuple(out)


def _plan(graphs: Sequence[Graph], found: tuple[Walk, Walk, Walk], split: int) -> Plan:
    steps = _steps(graphs, found)
    wire = [sum(s.edge.weight for s in steps if s.array == n) for n in range(3)]
    return Plan(
        rates=(found[0].rate, found[1].rate, found[2].rate),
        fixed=tidy(sum(w.fixed for w in found)),
        split=split,
        blocks=(graphs[0].split[found[0].node], graphs[1].split[found[1].node], graphs[2].split[found[2].node]),
        wire=(wire[0], wire[1], wire[2]),
        local=(graphs[0].nodes[found[0].node], graphs[1].nodes[found[1].node], graphs[2].nodes[found[2].node]),
        steps=steps,
    )


def joins(p: Product, from_a: Mapping[int, Any], from_b: Mapping[int, Any]) -> list[tuple[int, int, Layout, int]]:
    """The local products that are legal: layouts of A and of B, the layout in which C comes out, and how the FLOPs are split.

    Every shared letter is split alike in both operands, an axis splits one letter only, and a sum that is pending in one operand
    is over an axis that the other neither uses nor has pending. C is pending where an operand was, and over the summed letters.
    """
    A, B, C = p.letters
    size = dict(p.axes)
    nodes_a, nodes_b = layout_graph(p.limits_of(0), p.axes).nodes, layout_graph(p.limits_of(1), p.axes).nodes
    shared = [(A.index(d), B.index(d)) for d in A if d in B]
    summed = [i for i, _ in shared if A[i] not in C]
    where = [(0, A.index(d)) if d in A else (1, B.index(d)) for d in C]
    match: dict[Any, list[tuple[int, Layout, set[str], set[str]]]] = {}  # layouts of B by the split of the shared letters
    for t in from_b:
        node = nodes_b[t]
        key = tuple(node.dims[j] for _, j in shared)
        used = {a for d in node.dims for a in d}
        match.setdefault(key, []).append((t, node, used - {a for d in key for a in d}, used))
    out = []
    for s in from_a:
        left = nodes_a[s]
        on_a, wait_a = {a for d in left.dims for a in d}, set(left.pending)
        summed_axes = [a for i in summed for a in left.dims[i]]
        for t, right, free, on_b in match.get(tuple(left.dims[i] for i, _ in shared), ()):
            wait_b = set(right.pending)
            if free & on_a or wait_a & on_b or wait_a & wait_b or wait_b & on_a:
                continue
            pending = tuple(sorted([*wait_a, *wait_b, *summed_axes]))
            result = Layout(tuple((left, right)[w].dims[i] for w, i in where), pending)
            out.append((s, t, result, math.prod(size[a] for a in on_a | free)))
    return out


# ---- dimensions that are alike ------------------------------------------------------------------------------------------

Kept = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # the dimensions of A, B and C that the search looks at


@lru_cache(4096)
def reduced(p: Product) -> tuple[Product, Kept]:
    """The product without dimensions that cannot matter, and the places of those that are left.

    A dimension that no axis divides is never split. Of dimensions that are split nowhere, are in the same arrays and divide alike,
    one can stand for another; with n axes a layout uses n of them at most, and a move one more.
    """
    split = {
        d for letters, lay in zip(p.letters, p.layouts, strict=True) for d, axes in zip(letters, lay.dims, strict=True) if axes
    }
    limit, alike, drop = dict(p.limits), dict[tuple[Any, ...], int](), set[str]()
    for d in dict.fromkeys(d for letters in p.letters for d in letters):
        if d in split:
            continue
        kind = (limit[d], *(d in letters for letters in p.letters))
        alike[kind] = alike.get(kind, 0) + 1
        if all(limit[d] % n for _, n in p.axes) or alike[kind] > len(p.axes) + 1:
            drop.add(d)
    a, b, c = (tuple(i for i, d in enumerate(letters) if d not in drop) for letters in p.letters)
    if not drop:
        return p, (a, b, c)
    letters = [tuple(own[i] for i in kept) for own, kept in zip(p.letters, (a, b, c), strict=True)]
    layouts = [Layout(tuple(x.dims[i] for i in kept), x.pending) for x, kept in zip(p.layouts, (a, b, c), strict=True)]
    small = p._replace(
        letters=(letters[0], letters[1], letters[2]),
        layouts=(layouts[0], layouts[1], layouts[2]),
        limits=tuple((d, n) for d, n in p.limits if d not in drop),
    )
    return small, (a, b, c)


def _restored(plan: Plan, p: Product, kept: Kept) -> Plan:
    """A plan of the reduced product as one of the product itself."""

    def whole(n: int, x: Layout) -> Layout:
        at = dict(zip(kept[n], x.dims, strict=True))
        return Layout(tuple(at.get(i, ()) for i in range(len(p.letters[n]))), x.pending)

    def place(n: int, i: int | None) -> int | None:
        return None if i is None else kept[n][i]

    steps = tuple(
        Step(
            s.array,
            whole(s.array, s.before),
            whole(s.array, s.after),
            s.edge._replace(src=place(s.array, s.edge.src), dst=place(s.array, s.edge.dst)),
            s.algorithm,
        )
        for s in plan.steps
    )
    local = [whole(n, x) for n, x in enumerate(plan.local)]
    return replace(plan, steps=steps, local=(local[0], local[1], local[2]))


# ---- the frontier -------------------------------------------------------------------------------------------------------


@lru_cache(1024)
def frontier(p: Product) -> tuple[Plan, ...]:
    """Every plan that is best for some sizes: none other is as good in A, in B, in C, in fixed cost, in FLOPs and in memory traffic.

    Memory traffic counts only where seconds are asked for. There, with more than `MANY` layouts of an array (five mesh axes, or
    four and many dimensions), walks that are fastest for no size of their array are left out: one of `.alternatives` may be
    missing, the fastest plan for a product of any sizes never is.
    """
    small, kept = reduced(p)
    if small is not p:
        return tuple(_restored(plan, p, kept) for plan in frontier(small))
    graphs = [layout_graph(p.limits_of(n), p.axes) for n in range(3)]
    starts = [g.number[layout] for g, layout in zip(graphs, p.layouts, strict=True)]
    timed = p.price.mesh is not None
    from_a, from_b, to_c = (walks(starts[n], p.limits_of(n), p.axes, p.price, p.need[n], n == 2) for n in range(3))
    if timed and max(len(g.nodes) for g in graphs) > MANY:
        from_a, from_b, to_c = ({n: hull(found) for n, found in some.items()} for some in (from_a, from_b, to_c))
    options: list[Combination] = []
    for s, t, result, split in joins(p, from_a, from_b):
        r = graphs[2].number[result]
        if r in to_c:
            held: tuple[int, ...] = (-graphs[0].split[s], -graphs[1].split[t], -graphs[2].split[r]) if timed else ()
            options.append(((from_a[s], from_b[t], to_c[r]), split, held))
    found: dict[Key, tuple[int, tuple[Walk, Walk, Walk], int]] = {}
    for batch in _batches(options):
        for n, (three, split, blocks) in batch:
            for a, b, c in itertools.product(*three):
                key = (a.rate, b.rate, c.rate, -split, tidy(a.fixed + b.fixed + c.fixed), *blocks)
                if key not in found or n < found[key][0]:
                    found[key] = (n, (a, b, c), split)
        found = {k: found[k] for k in undominated(sorted(found))}
    return tuple(_plan(graphs, walk, split) for _, walk, split in found.values())


MANY = 2000  # layouts of one array
Combination = tuple[tuple[tuple[Walk, ...], tuple[Walk, ...], tuple[Walk, ...]], int, tuple[int, ...]]  # walks, split, blocks


def _batches(options: list[Combination]) -> Iterator[list[tuple[int, Combination]]]:
    """Numbered pairs of operand layouts, in batches of some ten thousand plans; those with the least shares of work come first."""
    batch, size = [], 0
    for n, o in sorted(enumerate(options), key=lambda o: -o[1][1]):
        batch.append((n, o))
        size += math.prod(map(len, o[0]))
        if size > 8 * CHUNK:
            yield batch
            batch, size = [], 0
    yield batch


# Rates of A, B and C, minus the split, fixed cost and, where seconds are asked for, minus the blocks of A, B and C.
Key = tuple[float, ...]
CHUNK = 2048  # keys that are compared at once


def _at_least_as_good(by: list[Key], component: int) -> tuple[list[float], list[int]]:
    """The values that keys have in a component, and for each the set of keys that have it or a lower one, as bits of a number."""
    at: dict[float, int] = {}
    for n, k in enumerate(by):
        at[k[component]] = at.get(k[component], 0) | 1 << n
    values = sorted(at)
    return values, list(itertools.accumulate((at[x] for x in values), operator.or_))


def beaten(keys: list[Key], by: list[Key]) -> list[bool]:
    """For each key, whether one of `by` is at least as good in every component.

    >>> beaten([(1, 3), (0, 5)], [(1, 2)])
    [True, False]
    """
    sets = [(1 << len(by)) - 1] * len(keys)
    for n in range(len(by[0]) if by else 0):
        values, below = _at_least_as_good(by, n)
        for i, k in enumerate(keys):
            at = bisect_right(values, k[n])
            sets[i] &= below[at - 1] if at else 0
    return [x != 0 for x in sets]


def undominated(keys: list[Key]) -> list[Key]:
    """Of different cost tuples in sorted order, those that no other is at least as good as in every component.

    >>> undominated([(0, 5), (1, 2), (1, 3)])
    [(0, 5), (1, 2)]
    """
    keep: list[Key] = []
    for first in range(0, len(keys), CHUNK):
        chunk = keys[first : first + CHUNK]  # whatever beats a key sorts before it
        chunk = [k for k, bad in zip(chunk, beaten(chunk, keep), strict=True) if not bad]
        sets = [-1] * len(chunk)
        for n in range(len(chunk[0]) if chunk else 0):
            values, below = _at_least_as_good(chunk, n)
            at = dict(zip(values, below, strict=True))
            sets = [x & at[k[n]] for x, k in zip(sets, chunk, strict=True)]
        keep += [k for i, k in enumerate(chunk) if sets[i] == 1 << i]
    return keep


class Cost(NamedTuple):
    """What a plan costs: seconds of math, hbm and comms (None where a rate is unknown) and bytes received, numbers or arrays."""

    math: Any
    hbm: Any
    comms: Any
    wire: Any
    price: Any  # seconds of comms, or bytes received where nothing is priced in seconds

    @property
    def lower(self) -> Any:
        """The longest of the known times: all of them overlap."""
        return maximum(0.0, *(t for t in (self.math, self.hbm, self.comms) if t is not None))


def cost(plan: Plan, array_bytes: tuple[Any, Any, Any], flops: Any, rates: Mapping[str, float | None], *, timed: bool) -> Cost:
    """Evaluate a plan for arrays of so many bytes: a·|A| + b·|B| + c·|C| + fixed, beside FLOPs/split and the blocks read and written."""
    price, wire, held = 0.0, 0.0, 0.0
    for n in range(3):
        price = price + plan.rates[n] * array_bytes[n]
        wire = wire + plan.wire[n] * array_bytes[n]
        held = held + array_bytes[n] / plan.blocks[n]
    math_rate, hbm_rate = rates.get("math"), rates.get("hbm")
    return Cost(
        math=None if math_rate is None else flops / plan.split / math_rate,
        hbm=None if hbm_rate is None else held / hbm_rate,
        comms=price + plan.fixed if timed else None,
        wire=wire,
        price=price + plan.fixed if timed else price,
    )


def order(plan: Plan, c: Cost) -> tuple[float, ...]:
    """What plans are ranked by: time with everything overlapped, then time of comms, then bytes, then FLOPs, then collectives.

    Without prices in seconds: bytes, then FLOPs, then collectives.
    """
    if c.comms is not None:
        return (tidy(c.lower), tidy(c.price), tidy(c.wire), -plan.split, plan.count)
    return (tidy(c.wire), -plan.split, plan.count)


def distinct(plans: Iterable[Plan]) -> tuple[Plan, ...]:
    """Without repetitions that differ only in the algorithm of a move or in the order of moves of different arrays; the first stays."""
    seen: dict[Any, Plan] = {}
    for p in plans:
        seen.setdefault(tuple((s.array, s.before, s.after, s.edge.kind) for s in p.steps), p)
    return tuple(seen.values())
