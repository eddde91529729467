"""The joint choice of plans for several products: a shortest path over the layouts assumed and the edges paid so far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scalebook.errors import ScalebookError
from scalebook.graph import Edge, tidy
from scalebook.layouts import Layout
from scalebook.plans import Plan, Step
from scalebook.settings import Setting

Key = tuple[Any, ...]  # of an edge: pass (None when the copy is kept), array, role, layout before, layout after
STATES, BEAM = 20_000, 40  # partial choices kept at each product in the full search, and in the quick one that bounds it


# ---- edges ------------------------------------------------------------------------------------------------------------


def edge_key(step: Step, s: Setting, phase: int, keep: frozenset[str]) -> Key:
    """What makes two moves one: same array, same layouts, same pass (or a copy that is kept), both of an operand or both of a result."""
    name = s.arrays[step.array].array
    return (None if name in keep and step.array < 2 else phase, name, step.array == 2, step.before, step.after)


def parts(step: Step, s: Setting) -> list[Step]:
    """A move over several axes as moves over one axis each, where that costs the same, so that a part of it can be shared.

    In bytes, gathers (the minor axis first) and reduce-scatters (the major axis first) add up; in seconds nothing is taken apart.
    """
    e, at, split = step.edge, step.before, step.edge.split
    if s.timed or len(e.axes) == 1 or e.kind not in ("all-gather", "reduce-scatter"):
        return [step]
    out = []
    for axis in reversed(e.axes) if e.kind == "all-gather" else e.axes:
        k, dims = s.mesh[axis], list(at.dims)
        if e.src is not None:
            dims[e.src] = dims[e.src][:-1]
        elif e.dst is not None:
            dims[e.dst] = (*dims[e.dst], axis)
        after = Layout(tuple(dims), tuple(a for a in at.pending if a != axis))
        out.append(Step(step.array, at, after, Edge(e.kind, (axis,), e.src, e.dst, e.to, k, split), step.algorithm))
        at, split = after, split // k if e.src is not None else split * k
    return out


def joined(steps: Sequence[Step]) -> Step:
    """Parts that follow each other as one move again."""
    first, last = steps[0], steps[-1]
    axes = [x.edge.axes[0] for x in steps]
    whole = tuple(reversed(axes) if first.edge.kind == "all-gather" else axes)
    edge = first.edge._replace(axes=whole, to=last.edge.to, k=math.prod(x.edge.k for x in steps))
    return Step(first.array, first.before, last.after, edge, first.algorithm)


def edge_price(s: Setting, step: Step) -> float:
    """Seconds of a move, or bytes received per device."""
    nbytes, e = s.array_bytes[step.array], step.edge
    if not s.timed:
        return e.weight * nbytes
    rate, fixed = next((r, f) for r, f, name in s.product.price.of(e.kind, e.axes) if name == step.algorithm)
    return (rate or 0.0) * e.group * nbytes + fixed


# ---- the search -------------------------------------------------------------------------------------------------------


class Option(NamedTuple):
    """One way to do one product: layouts it assumes for free arrays, edges with their prices, FLOPs and memory time, the plan."""

    assumes: tuple[tuple[str, Layout], ...]
    edges: tuple[tuple[Key, float], ...]
    other: tuple[float, ...]
    setting: Setting
    plan: Plan
    ranked: tuple[Plan, ...]


class Partial(NamedTuple):
    """Products done so far: costs, layouts assumed and edges paid that later products may use, the last option, the rest."""

    costs: tuple[float, ...]
    assumed: dict[str, Layout]
    paid: frozenset[Key]
    option: Option | None
    before: Partial | None


class Search:
    """A shortest path over (layouts assumed, edges paid) that later products may use: one option per product, together cheapest.

    Costs are vectors of communication, math and memory time, since the slowest of them decides at the end (bytes, FLOPs and moves
    where nothing is timed). A partial choice is dropped when another, after buying the edges that only the first has paid, is no
    dearer; or when even the least that the rest must cost takes it above a complete choice that is known.
    """

    def __init__(self, stages: list[list[Option]]) -> None:
        self.stages = stages
        self.timed = stages[0][0].setting.timed
        self.price: dict[Key, float] = {}
        self.last: dict[Any, int] = {}  # the last product that can use an edge, or that depends on a variable
        left: dict[Key, int] = {}
        for n, stage in enumerate(stages):
            for o in stage:
                for key, cost_of in o.edges:  # of two algorithms, the one that is cheaper at this size
                    self.price[key] = min(cost_of, self.price.get(key, cost_of))
                self.last |= dict.fromkeys((x for x, _ in (*o.edges, *o.assumes)), n)
        self.least: list[list[tuple[tuple[tuple[str, Layout], ...], tuple[float, ...]]]] = []
        for stage in reversed(stages):  # an edge that m of the products to come may share costs each at least 1/m of it
            for key in {key for o in stage for key, _ in o.edges}:
                left[key] = left.get(key, 0) + 1
            best: dict[Any, tuple[float, ...]] = {}
            for o in stage:
                costs = (sum(self.price[k] / left[k] for k, _ in o.edges), *o.other)
                best[o.assumes] = tuple(map(min, best.get(o.assumes, costs), costs))
            self.least.insert(0, list(best.items()))

    def run(self, width: int, bound: tuple[float, ...] | None = None) -> list[Partial]:
        """Complete choices, best first, keeping at most so many partial ones; [] when the bound excludes all."""
        states = [Partial((0.0,) * (1 + len(self.stages[0][0].other)), {}, frozenset(), None, None)]
        for n, stage in enumerate(self.stages):
            new: dict[Any, list[Partial]] = {}
            for state in states:
                for o in stage:
                    if all(state.assumed.get(v, layout) == layout for v, layout in o.assumes):
                        x = self.extend(state, o, n)
                        new.setdefault(frozenset(x.assumed.items()), []).append(x)
            states = []
            for bucket in new.values():
                rest = self.rest(n + 1, bucket[0].assumed)
                states += self.useful(x for x in bucket if bound is None or not self.hopeless(x, rest, bound))
            states = sorted(states, key=self.rank)[:width]
        return states

    def extend(self, state: Partial, o: Option, n: int) -> Partial:
        """A partial choice with one more product done."""
        keys = {key for key, _ in o.edges}
        extra = sum(self.price[key] for key in keys - state.paid)
        costs = tuple(tidy(x + y) for x, y in zip(state.costs, (extra, *o.other), strict=True))
        assumed = {v: x for v, x in (*state.assumed.items(), *o.assumes) if self.last[v] > n}
        return Partial(costs, assumed, frozenset(k for k in state.paid | keys if self.last[k] > n), o, state)

    def rest(self, n: int, assumed: Mapping[str, Layout]) -> tuple[float, ...]:
        """The least that the products from number n on can cost; infinite if none suits the layouts assumed."""
        total: tuple[float, ...] = (0.0,) * (1 + len(self.stages[0][0].other))
        for stage in self.least[n:]:
            fit = [costs for assumes, costs in stage if all(assumed.get(v, x) == x for v, x in assumes)]
            total = tuple(t + min((c[i] for c in fit), default=math.inf) for i, t in enumerate(total))
        return total

    def hopeless(self, x: Partial, rest: tuple[float, ...], bound: tuple[float, ...]) -> bool:
        """Whether a partial choice cannot end below the bound."""
        credit = sum(self.price[k] for k in x.paid)
        ends = [a + b for a, b in zip(x.costs, rest, strict=True)]
        ends[0] = max(x.costs[0], ends[0] - credit)
        slack = 1 + 1e-9
        return max(ends) > max(bound) * slack if self.timed else ends[0] > bound[0] * slack

    def useful(self, bucket: Iterable[Partial]) -> list[Partial]:
        """The partial choices that no other makes useless."""
        kept: list[Partial] = []
        for x in sorted(bucket, key=self.rank):
            if not any(self.beats(y, x) for y in kept):
                kept.append(x)
        return kept

    def beats(self, y: Partial, x: Partial) -> bool:
        """Whether y, with what x has paid for added, costs no more than x."""
        first = tidy(y.costs[0] + sum(self.price[k] for k in x.paid - y.paid))
        if self.timed:
            return first <= x.costs[0] and all(a <= b for a, b in zip(y.costs[1:], x.costs[1:], strict=True))
        return (first, *y.costs[1:]) <= x.costs

    def rank(self, x: Partial) -> tuple[float, ...]:
        """Time with everything overlapped, then the sum; or bytes, FLOPs, moves."""
        return (max(x.costs), sum(x.costs), *x.costs) if self.timed else x.costs


def choose(stages: list[list[Option]]) -> list[Option]:
    """One option per product, together cheapest; ScalebookError if none suit each other."""
    search = Search(stages)
    rough = search.run(BEAM)
    if not rough:
        raise ScalebookError("no layouts of the free arrays suit all products")
    fine = search.run(STATES, rough[0].costs)
    out = []
    at: Partial | None = min([*fine[:1], rough[0]], key=search.rank)
    while at is not None and at.option is not None:
        out.append(at.option)
        at = at.before
    return out[::-1]
