"""One einsum for every mesh: plans derived once per pattern, with weights as functions of the axis sizes, for searches over many meshes.

`einsum` derives anew for each mesh. A pattern collects the frontiers on a spread of stand-in meshes, from small axes to large and
lopsided ones, priced on switches (bytes received) and on rings; then any mesh is a minimum over those plans' weights.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from scalebook.errors import MeshError, SizeError, unknown
from scalebook.graph import Axes, PriceList, received_share, tidy
from scalebook.layouts import Layout, Sharding, mesh as mesh_of, parse_einsum
from scalebook.plans import Plan, Product, frontier
from scalebook.settings import array_bytes, flops, read_dtypes
from scalebook.sweeps import first_of
from scalebook.units import maximum

PRIMES = (2, 3, 5, 7)  # sizes of stand-in axes are powers of these, so that none is a product of others
POWERS: dict[int, tuple[tuple[int, ...], ...]] = {  # those powers, for so many axes
    0: (),
    1: ((1, 2, 4, 8),),
    2: ((1, 2, 4, 6, 8), (1, 2, 3, 4, 5)),
    3: ((1, 4, 8), (1, 2, 5), (1, 2, 3)),
    4: ((1, 6), (1, 4), (1, 2), (1, 2)),
}
Price = Callable[[str, tuple[str, ...]], tuple[Any, Any]]


# ---- plans without sizes ------------------------------------------------------------------------------------------------


class Stage(NamedTuple):
    """A move of a plan: array 0, 1 or 2, the layouts on both sides."""

    array: int
    kind: str
    axes: tuple[str, ...]
    before: Layout
    after: Layout


@dataclass(frozen=True)
class Skeleton:
    """A plan without sizes: its moves, the axes that split the FLOPs, and the splits that must divide (letter, axes)."""

    stages: tuple[Stage, ...]
    split: tuple[str, ...]
    divides: frozenset[tuple[str, tuple[str, ...]]]
    local: tuple[Layout, Layout, Layout]

    @property
    def count(self) -> int:
        """Number of collectives."""
        return sum(s.kind != "slice" for s in self.stages)


def skeleton(p: Product, plan: Plan) -> Skeleton:
    """A plan with its sizes forgotten."""
    stages = tuple(Stage(s.array, s.edge.kind, s.edge.axes, s.before, s.after) for s in plan.steps)
    seen = [*enumerate(p.layouts), *enumerate(plan.local), *((s.array, x) for s in stages for x in (s.before, s.after))]
    divides = {(d, axes) for n, layout in seen for d, axes in zip(p.letters[n], layout.dims, strict=True) if axes}
    return Skeleton(stages, tuple(a for a, n in p.axes if plan.split % n == 0), frozenset(divides), plan.local)


@lru_cache(1024)
def skeletons(p: Product, own: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[Skeleton, ...]:
    """Every plan that is on the frontier of some stand-in mesh with these axes; `own` are the dimensions that only their own axes split."""
    names, bound = [a for a, _ in p.axes], dict(own)
    found: dict[Skeleton, None] = {}
    for powers in itertools.product(*POWERS[len(names)]):
        size = {a: prime**power for a, prime, power in zip(names, PRIMES, powers, strict=False)}
        axes: Axes = tuple(size.items())
        limits = tuple((d, math.prod(size.get(a, 1) for a in bound.get(d, names))) for d, _ in p.limits)
        for price in (PriceList(), PriceList(rings=axes)):
            one = p._replace(axes=axes, limits=limits, price=price)
            found |= dict.fromkeys(skeleton(one, plan) for plan in frontier(one))
    return tuple(found)


# ---- what a search calls ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluation:
    """The cheapest plan at each point: bytes received per device, FLOPs per device, seconds of comms and math (None without rates).

    `plans[i]` is the plan at the points where `which` is i; −1 and infinite where sizes do not divide.
    """

    plans: tuple[Skeleton, ...]
    which: Any
    bytes: Any
    flops_per_device: Any
    comms: Any
    math: Any


@dataclass(frozen=True)
class Pattern:
    """An einsum in the notation for any sizes of its dimensions and of its mesh axes."""

    arrays: tuple[Sharding, Sharding, Sharding]
    axes: tuple[str, ...]
    unsplit: frozenset[str]

    def plans(self, active: Iterable[str] | None = None) -> tuple[Skeleton, ...]:
        """The plans worth evaluating where these axes (by default all) are larger than 1."""
        larger = set(self.axes if active is None else active)
        names = tuple(a for a in self.axes if a in larger)
        mesh = mesh_of({a: 2 if a in names else 1 for a in self.axes})
        layouts = tuple(s.layout(mesh) for s in self.arrays)
        own: dict[str, dict[str, None]] = {}
        for s in self.arrays:
            for d, axes in zip(s.letters, s.dims, strict=True):
                own.setdefault(d, {}).update(dict.fromkeys(a for a in axes if a in names))
        letters = (self.arrays[0].letters, self.arrays[1].letters, self.arrays[2].letters)
        p = Product(
            letters, (layouts[0], layouts[1], layouts[2]), tuple((d, 1) for d in sorted(own)), tuple((a, 2) for a in names)
        )
        return skeletons(p, tuple((d, tuple(own[d])) for d in sorted(self.unsplit)))

    def evaluate(
        self,
        sizes: Mapping[str, Any],
        mesh: Mapping[str, Any],
        dtype: str | Mapping[str, str] = "bf16",
        *,
        price: Price | None = None,
        flops_per_s: Any = None,
    ) -> Evaluation:
        """The cheapest plan for numbers or NumPy arrays of sizes, of dimensions and of mesh axes alike.

        Ranked by bytes, FLOPs and number of moves; with `price(kind, axes)`, which gives seconds per byte of the group's array and
        fixed seconds, by time, math beside communication where `flops_per_s` of a device is known. Each plan is legal and costed
        exactly, so the result is never below that of `einsum`; it can be above where a plan is best only between the stand-in
        meshes, where sizes are not multiples of all devices, or where axes of equal sizes let blocks be exchanged one to one.
        """
        letters = [d for s in self.arrays for d in s.letters]
        for what, names, given in (("size of dimension", letters, sizes), ("size of mesh axis", list(self.axes), mesh)):
            missing = [x for x in names if x not in given]
            if missing:
                raise SizeError(f"no {what} {', '.join(dict.fromkeys(missing))} is given; given: {', '.join(given) or 'none'}")
        types = read_dtypes(self.arrays, dtype)
        values = [*(sizes[d] for d in letters), *(mesh[a] for a in self.axes)]
        if not any(getattr(v, "ndim", 0) for v in values):
            return self._at(self.plans(a for a in self.axes if mesh[a] > 1), sizes, mesh, types, price, flops_per_s)
        import numpy as np

        spread = np.broadcast_arrays(*values)
        flat = {x: v.ravel() for x, v in zip([*letters, *self.axes], spread, strict=True)}
        shape, count = spread[0].shape, spread[0].size
        masks = sum(2**i * (flat[a] > 1).astype(int) for i, a in enumerate(self.axes)) + np.zeros(count, dtype=int)
        out = {name: np.full(count, np.inf) for name in ("bytes", "flops_per_device", "comms", "math")}
        which, plans, known = np.full(count, -1), list[Skeleton](), {"bytes", "flops_per_device"}
        for mask in np.unique(masks):
            points = np.flatnonzero(masks == mask)
            some = self.plans(a for i, a in enumerate(self.axes) if mask >> i & 1)
            at = {x: v[points] for x, v in flat.items()}
            rate = np.broadcast_to(flops_per_s, shape).ravel()[points] if getattr(flops_per_s, "ndim", 0) else flops_per_s
            part = self._at(some, at, at, types, None if price is None else _taken(price, points, shape), rate)
            for name, column in out.items():
                if getattr(part, name) is not None:
                    known.add(name)
                    column[points] = getattr(part, name)
            which[points] = np.where(part.which < 0, -1, part.which + len(plans))
            plans += some
        columns = {name: column.reshape(shape) if name in known else None for name, column in out.items()}
        return Evaluation(tuple(plans), which.reshape(shape), **columns)

    def _at(
        self,
        plans: tuple[Skeleton, ...],
        sizes: Mapping[str, Any],
        mesh: Mapping[str, Any],
        types: Any,
        price: Price | None,
        rate: Any,
    ) -> Evaluation:
        nbytes, work = array_bytes(self.arrays, types, sizes), flops(self.arrays, sizes)
        rows = []
        for p in plans:
            legal: Any = True
            for d, axes in p.divides:
                legal = legal & (sizes[d] % math.prod(mesh[a] for a in axes) == 0)
            closed = _inf_where_not(legal)
            wire, comms = 0.0 + closed, 0.0 + closed
            for s in p.stages:
                k, held = math.prod(mesh[a] for a in s.axes), math.prod(mesh[a] for d in s.before.dims for a in d)
                wire = wire + received_share(s.kind, k) * nbytes[s.array] / held
                if price is not None and s.kind != "slice":
                    per_byte, fixed = price(s.kind, s.axes)
                    group = 1 if s.kind in ("reduce-scatter", "all-reduce") else k
                    comms = comms + per_byte * group * nbytes[s.array] / held + fixed
            own = work / math.prod(mesh[a] for a in p.split) + closed
            busy = None if rate is None else own / rate
            rows.append((wire, own, comms if price is not None else None, busy, p.count))
        return _best(plans, rows)


def _inf_where_not(legal: Any) -> Any:
    if not getattr(legal, "ndim", 0):
        return 0.0 if legal else math.inf
    import numpy as np

    return np.where(legal, 0.0, np.inf)


def _taken(price: Price, points: Any, shape: tuple[int, ...]) -> Price:
    """A price whose arrays are those of some points only."""
    import numpy as np

    def taken(kind: str, axes: tuple[str, ...]) -> tuple[Any, Any]:
        rate, fixed = (np.broadcast_to(x, shape).ravel()[points] for x in price(kind, axes))
        return rate, fixed

    return taken


def _best(plans: tuple[Skeleton, ...], rows: list[tuple[Any, ...]]) -> Evaluation:
    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        wire, own, comms, busy, count = row
        if comms is None:
            return (tidy(wire), own, count)
        lower = comms if busy is None else maximum(comms, busy)
        return (tidy(lower), tidy(comms), tidy(wire), own, count)

    if not any(getattr(row[0], "ndim", 0) for row in rows):
        n = min(range(len(rows)), key=lambda i: key(rows[i]))
        wire, own, comms, busy, _ = rows[n]
        return Evaluation(plans, n if wire < math.inf else -1, wire, own, comms, busy)
    import numpy as np

    count = max(row[0].size for row in rows if getattr(row[0], "ndim", 0))
    best = first_of([key(row) for row in rows], count)
    table: list[Any] = [[row[i] for row in rows] for i in range(4)]
    columns: list[Any] = [
        None if c[0] is None else np.stack([np.broadcast_to(x, (count,)) for x in c])[best, np.arange(count)] for c in table
    ]
    wire, own, comms, busy = columns
    return Evaluation(plans, np.where(np.isfinite(wire), best, -1), wire, own, comms, busy)


def pattern(spec: str, axes: Iterable[str] | None = None, *, unsplit: Iterable[str] = ()) -> Pattern:
    """An einsum for all meshes with these axes, by default those it names; `unsplit` dimensions are never split further than written.

    >>> p = pattern("In[B_X, D] * W[D_X, F] -> Out[B_X, F]")
    >>> p.evaluate({"B": 4096, "D": 1024, "F": 4096}, {"X": 8}).bytes == 2 * 1024 * 4096 * 7 / 8
    True
    """
    arrays = parse_einsum(spec, None if axes is None else dict.fromkeys(axes, 2))
    named = dict.fromkeys(a for s in arrays for d in (*s.dims, s.pending) for a in d)
    names = tuple(named) if axes is None else tuple(dict.fromkeys(axes))
    if len(names) > len(PRIMES):
        raise MeshError(f"a pattern has at most {len(PRIMES)} mesh axes; found {', '.join(names)}")
    letters = dict.fromkeys(d for s in arrays for d in s.letters)
    for d in unsplit:
        if d not in letters:
            raise unknown("dimension", d, letters)
    return Pattern(arrays, names, frozenset(unsplit))
