"""One einsum at many sizes: each frontier is derived once, then evaluated over arrays of sizes as a minimum of linear forms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalebook.errors import SizeError, missing_extra, shown, unknown
from scalebook.layouts import check_sizes
from scalebook.plans import Cost, Plan, cost, frontier, order
from scalebook.settings import Setting, array_bytes, check_huge, flops


@dataclass(frozen=True)
class Sweep:
    """Cheapest plans over arrays of sizes; every array has the sizes' common shape.

    `plans[i]` is the plan at the points where `which` is i. `bytes` are received per device; `math`, `hbm` and `comms` are seconds,
    or None where nothing gives them. Where no plan fits in the memory, `which` is −1 and the rest is infinite.
    """

    plans: tuple[Plan, ...]
    which: Any
    bytes: Any
    flops_per_device: Any
    math: Any
    hbm: Any
    comms: Any

    @property
    def lower(self) -> Any:
        """Seconds with everything that is known overlapped."""
        return Cost(self.math, self.hbm, self.comms, self.bytes, self.bytes).lower


def sweep(setting: Setting, sizes: Mapping[str, Any]) -> Sweep:
    """Evaluate a setting's einsum at arrays of sizes that broadcast together.

    Points are grouped by gcd(size, devices) per letter, since only divisibility (and the memory limit) decides which layouts exist.
    Raises SizeError for unknown letters, arrays that do not broadcast together and sizes that cannot be split, MissingExtra
    without NumPy.
    """
    try:
        import numpy as np
    except ImportError:
        raise missing_extra("numpy", "fast", "a sweep over sizes") from None
    s, p = setting, setting.product
    letters = [d for d, _ in p.limits]
    if not isinstance(sizes, Mapping):
        raise SizeError(
            f"a sweep takes a mapping from dimensions to arrays of sizes, such as {{{letters[0] if letters else 'I'!r}: [64, 128]}}; "
            f"found {shown(sizes)}"
        )
    for d in sizes:
        if d not in letters:
            raise unknown(f"dimension of {s.spec.strip()}:", d, letters, SizeError)
    given = {d: _column(d, sizes.get(d, s.sizes[d])) for d in letters}
    check_huge(given)
    check_sizes(s.arrays, given, s.mesh)
    given = {d: v.astype(np.int64) for d, v in given.items()}  # no narrower type, whose products would overflow
    try:
        spread = np.broadcast_arrays(*given.values()) if letters else []
    except ValueError:
        shapes = ", ".join(f"{d} {v.shape}" for d, v in given.items() if v.ndim)
        raise SizeError(
            f"arrays of sizes must broadcast together: equal lengths, or one of them a column; found the shapes {shapes}"
        ) from None
    shape = spread[0].shape if spread else ()
    grid = {d: v.ravel() for d, v in zip(letters, spread, strict=True)}
    count = math.prod(shape)
    real = {d: v.astype(float) for d, v in grid.items()}
    nbytes = [np.broadcast_to(v, (count,)) for v in array_bytes(s.arrays, s.dtypes, real)]

    devices, blocks = math.prod(n for _, n in p.axes), [1]
    for _, n in p.axes:
        blocks = sorted({*blocks, *(k * n for k in blocks)})
    keys = [np.gcd(v, devices) for v in grid.values()]
    if s.memory_limit is not None:  # the least number of blocks that some axes make and that fits
        keys += [np.append(blocks, devices + 1)[np.searchsorted(blocks, np.ceil(v / s.memory_limit))] for v in nbytes]
    groups, member = np.unique(np.array(keys, dtype=int).reshape(len(keys), count), axis=1, return_inverse=True)

    out = {name: np.full(count, np.inf) for name in ("wire", "flops", "math", "hbm", "comms")}
    which, priced = np.full(count, -1), s.price is not None
    plans: list[Plan] = []
    for g in range(groups.shape[1]):
        points = np.flatnonzero(member.ravel() == g)
        divides, need = groups[: len(letters), g].tolist(), groups[len(letters) :, g].tolist() or p.need
        found = frontier(p._replace(limits=tuple(zip(letters, divides, strict=True)), need=tuple(need)))
        if not found:
            continue
        at = {d: v[points] for d, v in real.items()}
        some = tuple(v[points] for v in nbytes)
        work = np.broadcast_to(flops(s.arrays, at), points.shape)
        costs = [cost(plan, (some[0], some[1], some[2]), work, s.device_rates, timed=s.timed) for plan in found]
        best = first_of([order(plan, c) for plan, c in zip(found, costs, strict=True)], points.size)
        for name in ("wire", "math", "hbm", "comms"):
            if getattr(costs[0], name) is not None:
                out[name][points] = np.stack([getattr(c, name) for c in costs])[best, np.arange(points.size)]
        if (
            not s.timed and s.price is not None
        ):  # ranked by bytes, since a link's rate is unknown: seconds where the plans have some
            seconds_of = {n: s.seconds(found[n], (some[0], some[1], some[2])) for n in np.unique(best)}
            for n, t in seconds_of.items():
                priced = priced and t is not None
                out["comms"][points[best == n]] = np.inf if t is None else np.broadcast_to(t, points.shape)[best == n]
        out["flops"][points] = work / np.array([plan.split for plan in found])[best]
        for n in np.unique(best):
            which[points[best == n]] = len(plans)
            plans.append(found[n])
    wire, work, *times = (out[name].reshape(shape) for name in out)
    known = (s.device_rates["math"] is not None, s.device_rates["hbm"] is not None, priced)
    seconds = [t if k else None for t, k in zip(times, known, strict=True)]
    return Sweep(tuple(plans), which.reshape(shape), wire, work, *seconds)


def _column(letter: str, sizes: Any) -> Any:
    """The sizes of one letter as an array; SizeError for what is not an array of whole numbers."""
    import numpy as np

    try:
        out = np.asarray(sizes)
    except (ValueError, OverflowError):
        out = np.asarray(None)
    if out.dtype.kind not in "iu" and out.size:
        raise SizeError(f"{letter} is an array of whole numbers up to 10^15; found {shown(sizes)}")
    return out.astype(np.int64) if not out.size else out


def first_of(orders: list[tuple[Any, ...]], count: int) -> Any:
    """For each point, the plan whose key comes first."""
    import numpy as np

    columns = [np.stack([np.broadcast_to(key[n], (count,)) for key in orders]) for n in range(len(orders[0]))]
    return np.lexsort(tuple(reversed(columns)), axis=0)[0]
