"""What moving a sharded array costs: launch + steps × hop latency + bytes on the busiest link ÷ its one-way rate.

V is the whole array as one group of k devices holds it together, W the one-way rate of a link (per direction on rings and lines,
per port on switches). Every closed form here is attained by a schedule that `scalebook.simulation` executes chunk by chunk.

| over one segment | steps | all-gather, reduce-scatter | all-to-all |
|---|---|---|---|
| ring   | ⌊k/2⌋ | V(k−1)/k ÷ 2W | V⌊k²/4⌋/k² ÷ 2W, V/8W when k is even |
| line   | k−1   | V(k−1)/k ÷ W  | V⌊k²/4⌋/k² ÷ W, V/4W when k is even |
| switch | k−1   | V(k−1)/k ÷ W  | V(k−1)/k² ÷ W |

All-reduce is a reduce-scatter followed by an all-gather, in time as in bytes. Over several segments `scalebook.schedules` lists
the algorithms; the cheapest is taken. Nothing here knows of contention with other traffic, of links that fail, or of reductions
inside switches (NVLink SHARP), which can beat these bounds for all-reduce.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from scalebook import schedules
from scalebook.errors import MeshError, ScalebookError, SizeError, shown, unknown, within
from scalebook.meshes import Mesh, mesh as mesh_of
from scalebook.roofline import Time
from scalebook.schedules import base_kind
from scalebook.units import LARGEST, as_number, is_array, minimum, positive, si
from scalebook.wiring import Segment

_NAMES = ("none", "ring", "line", "pairwise", "sequential", "rotated", "flat ring")
_ONE_NAME = ("none", "shift")
Number = Any  # an int, a float, or a NumPy array of them


@dataclass(frozen=True)
class Price:
    """What one algorithm costs: `fixed` seconds, and `rate` seconds per byte of V (None when a link's rate is unknown)."""

    algorithm: str
    rate: float | None
    fixed: float
    phases: str = ""

    def seconds(self, nbytes: Number) -> Number:
        """fixed + rate · V."""
        return None if self.rate is None else self.fixed + self.rate * nbytes


def received(kind: str, k: Number) -> Number:
    """Bytes that each of k devices must receive, per byte of V.

    All-gather and reduce-scatter (k−1)/k, all-reduce twice that, all-to-all (k−1)/k², permute 1/k.

    >>> received("all-gather", 4), received("all-reduce", 4), received("all-to-all", 4), received("permute", 4)
    (0.75, 1.5, 0.1875, 0.25)

    What a device must receive, not what its links carry: on rings and lines messages of an all-to-all pass through others too,
    and on a line a reduce-scatter brings more to the inner devices and less to the ends than this mean. Raises ScalebookError
    for an unknown kind, SizeError for a k that is no whole number above 0.
    """
    base_kind(kind)
    k = positive(k, "k, the number of devices,", whole=True)
    if kind == "permute":
        return (k > 1) / k
    return {"all-gather": 1, "reduce-scatter": 1, "all-reduce": 2}.get(kind, 1 / k) * (k - 1) / k


@functools.lru_cache(maxsize=8192)
def algorithms(kind: str, segments: tuple[Segment, ...]) -> tuple[Price, ...]:
    """The price of every algorithm, also of those that never pay."""
    base = base_kind(kind)
    real = tuple(s for s in segments if s.size > 1)
    if not real:
        return (Price("none", 0.0, 0.0, "nothing moves"),)
    start = schedules.launch(real)
    if base == "permute":
        return (_shift(real, start),)
    times = 2 if kind == "all-reduce" else 1
    found = []
    for plan in schedules.plans(base, real):
        rate = schedules.plan_rate(plan, base)
        fixed = times * (start + schedules.plan_hops(plan, base))
        found.append(Price(plan.name, None if rate is None else times * rate, fixed, plan.describe()))
    return tuple(found)


def _shift(segments: tuple[Segment, ...], start: float) -> Price:
    hops = math.fsum((s.size - 1 if s.kind == "line" else 1) * s.hop_latency_s for s in segments)
    k = math.prod(s.size for s in segments)
    speeds = [s.bytes_per_s if s.peer_bytes_per_s is None else s.peer_bytes_per_s for s in segments]
    rates = [None if speed is None else 1 / (k * speed) for speed in speeds]
    rate = None if None in rates else max(r for r in rates if r is not None)
    return Price("shift", rate, start + hops, " then ".join(s.physical for s in reversed(segments)))


@functools.lru_cache(maxsize=8192)
def prices(kind: str, segments: tuple[Segment, ...]) -> tuple[Price, ...]:
    """The algorithms worth having: none of them is beaten by another in both `fixed` and `rate`. The cost is the least of them.

    >>> from scalebook.wiring import Segment
    >>> ring = Segment("ici0", 16, "ring", 45e9, 1e-6, 10e-6)
    >>> p = prices("all-gather", (ring,))[0]
    >>> p.algorithm, round(p.fixed * 1e6), round(1 / p.rate / 1e9)  # µs; GB/s: 2 · 45 · 16/15
    ('ring', 18, 96)

    Segments of size 1 are ignored. Where a link's rate is unknown, `rate` is None. Raises ScalebookError for an unknown kind.
    """
    every = algorithms(kind, segments)
    if any(p.rate is None for p in every):
        return every[:1]
    kept: list[Price] = []
    for p in sorted(every, key=lambda p: (p.rate or 0.0, p.fixed)):
        if not kept or p.fixed < kept[-1].fixed:
            kept.append(p)
    return tuple(kept)


# ---- what a user calls ----------------------------------------------------------------------------------------------------


def _axes(mesh: Mesh, axes: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(axes, str) and not (isinstance(axes, Sequence) and all(isinstance(a, str) for a in axes)):
        raise MeshError(f"mesh axes are given as 'X', 'XY', ('X', 'Y') or a long name; found {shown(axes)}")
    if not axes:
        raise MeshError(
            f"a collective runs over at least one mesh axis; none was given. The mesh has: {', '.join(mesh.axis_names)}"
        )
    return mesh.resolve(axes if isinstance(axes, str) else tuple(axes))


def check_bytes(nbytes: Number) -> Number:
    """`nbytes` itself, if it is a finite number ≥ 0 or an array of them; SizeError otherwise."""
    number = as_number(nbytes)  # a NumPy scalar is an ordinary number
    if is_array(number):
        if bool(((number >= 0) & (number <= LARGEST)).all()):
            return number
    elif number is not None and 0 <= number <= LARGEST:
        return number
    raise SizeError(f"nbytes must be a finite number of bytes, 0 or more, or an array of such numbers; found {shown(nbytes)}")


def _exact(nbytes: Number, share: Fraction) -> Number:
    """nbytes · share; ints stay ints where they divide."""
    if isinstance(nbytes, int) and nbytes * share.numerator % share.denominator == 0:
        return nbytes * share.numerator // share.denominator
    return nbytes * float(share)


def _collective(
    kind: str, nbytes: Number, mesh: Mesh | Mapping[str, int], axes: str | Sequence[str], algorithm: str | None
) -> Time:
    mesh = mesh if isinstance(mesh, Mesh) else mesh_of(mesh)
    names, size = _axes(mesh, axes), check_bytes(nbytes)
    k = math.prod(mesh[a] for a in names)
    share = {"all-reduce": Fraction(2 * (k - 1), k), "all-to-all": Fraction(k - 1, k * k), "permute": Fraction(min(k - 1, 1), k)}
    wire = _exact(size, share.get(kind, Fraction(k - 1, k)))
    where = f"{kind} over {', '.join(names)} ({k} device{'s' * (k != 1)})"
    if algorithm is not None and mesh.topology is None:
        raise ScalebookError(
            f"algorithm={shown(algorithm)} was asked for, but the mesh lies on no topology; give mesh(…, on=…) one"
        )
    if k == 1:
        if algorithm is not None:
            _check_name(kind, algorithm, where)
        return Time({"comms": 0.0}, bytes=wire, latency=0.0, note=f"{where}: nothing moves")
    if mesh.topology is None:
        return Time({"comms": None}, bytes=wire, latency=None, note=f"{where}: no topology, so bytes only")
    segments = tuple(s for s in mesh.segments(names) if s.size > 1)
    return _priced(kind, size, segments, algorithm, wire, where)


def _check_name(kind: str, algorithm: str, where: str) -> None:
    """ScalebookError for an algorithm that a group of any size cannot have: for one device, to which every one is the same."""
    names = _ONE_NAME if kind == "permute" else _NAMES
    if not (within(algorithm, names) or (names is _NAMES and isinstance(algorithm, str) and algorithm.startswith("rotated "))):
        raise unknown(f"algorithm for {where}", algorithm, names)


def _priced(kind: str, nbytes: Number, segments: tuple[Segment, ...], algorithm: str | None, wire: Number, where: str) -> Time:
    choice = prices(kind, segments)
    if algorithm is not None:
        every = {p.algorithm: p for p in algorithms(kind, segments)}
        if not within(algorithm, every):
            raise unknown(f"algorithm for {where}", algorithm, every)
        choice = (every[algorithm],)
    roads = ", ".join(_road(s) for s in segments)
    silent = [s.physical for s in segments if not s.hop_latency_s]
    also = f"; no hop latency is known for {', '.join(silent)}: counted as 0" if silent else ""
    if choice[0].rate is None:
        return Time(
            {"comms": None}, bytes=wire, latency=choice[0].fixed, note=f"{where} on {roads}: a link's rate is unknown{also}"
        )
    costs = [p.seconds(nbytes) for p in choice]
    seconds = minimum(*costs)
    latency: Number = costs[0] * 0 + choice[0].fixed
    best = costs[0]
    for p, cost in zip(choice[1:], costs[1:], strict=True):
        latency = (cost < best) * p.fixed + (cost >= best) * latency
        best = minimum(best, cost)
    used = [p for p, cost in zip(choice, costs, strict=True) if getattr(cost, "ndim", 0) or cost == seconds]
    words = " or ".join(f"{p.algorithm}, {p.phases}" if len(segments) > 1 else p.algorithm for p in used)
    return Time({"comms": seconds}, bytes=wire, latency=latency, note=f"{where}: {words}; on {roads}{also}")


def _road(s: Segment) -> str:
    return f"{s.kind} {s.physical} of {s.size} at {si(s.bytes_per_s, 'B/s')} one-way"


def all_gather(
    nbytes: Number, mesh: Mesh | Mapping[str, int], axes: str | Sequence[str], *, algorithm: str | None = None
) -> Time:
    """Every device of a group ends with the whole array, of which each held 1/k.

    Ring: launch + ⌊k/2⌋·hop + V(k−1)/k ÷ 2W, shards going both ways round; line and switch: (k−1) hops, V(k−1)/k ÷ W. V is
    `nbytes`, the array as one group along `axes` holds it afterwards: |W|/|Y| for gathering X out of W[D_X, F_Y].

    >>> import scalebook as sb
    >>> m = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
    >>> t = all_gather(2**30, m, "X")
    >>> round((t.comms - t.latency) * 1e3, 2), t.bytes == 2**30 * 15 // 16  # ms: 2^30 · 15/16 ÷ (2 · 45 GB/s)
    (11.18, True)

    Several axes: the cheapest of one axis after the other and all at once (`scalebook.schedules`); `algorithm=` takes one by
    name. Too fast where links are shared with other traffic, and for arrays below about 1 GiB on GPUs, where protocols change
    with size: by a half at 16 MiB in a node of B200s, by four across nodes. Raises MeshError for an axis unknown or listed twice,
    SizeError for a bad `nbytes`, ScalebookError for an unknown algorithm. Published times it is tested against: tpu7x
    (AI-Hypercomputer/tpu-recipes, microbenchmarks/ironwood), H100 (NVIDIA/nccl-tests issue 326).
    """
    return _collective("all-gather", nbytes, mesh, axes, algorithm)


def reduce_scatter(
    nbytes: Number, mesh: Mesh | Mapping[str, int], axes: str | Sequence[str], *, algorithm: str | None = None
) -> Time:
    """Every device of a group holds a partial sum of the whole array, and ends with 1/k of the full sum.

    An all-gather with time reversed, so it takes exactly as long. V is `nbytes`, the array as each device holds it before.

    >>> import scalebook as sb
    >>> m = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
    >>> reduce_scatter(2**30, m, "X").comms == all_gather(2**30, m, "X").comms
    True

    The additions are taken to cost nothing: they read and write HBM while links, 10 to 20 times slower, are busy. On a line the
    inner devices receive more than `.bytes`, which is the mean, and the ends less. Errors as in `all_gather`.
    """
    return _collective("reduce-scatter", nbytes, mesh, axes, algorithm)


def all_reduce(
    nbytes: Number, mesh: Mesh | Mapping[str, int], axes: str | Sequence[str], *, algorithm: str | None = None
) -> Time:
    """Every device of a group holds a partial sum of the whole array, and ends with all of the full sum.

    A reduce-scatter, then an all-gather: ring 2·(launch + ⌊k/2⌋·hop) + 2V(k−1)/k ÷ 2W. V is `nbytes`, the array as each device
    holds it.

    >>> import scalebook as sb
    >>> m = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
    >>> t = all_reduce(2**30, m, "X")
    >>> t.comms == reduce_scatter(2**30, m, "X").comms + all_gather(2**30, m, "X").comms
    True

    Counts the launch twice, though both halves are often started as one. Too slow where a switch adds (NVLink SHARP), and for
    small arrays over many devices, for which trees need fewer steps. Tested against B200 (stas00/ml-engineering, network): within
    15 % from 1 GiB on, in one node and across four; far too fast below. Errors as in `all_gather`.
    """
    return _collective("all-reduce", nbytes, mesh, axes, algorithm)


def all_to_all(
    nbytes: Number, mesh: Mesh | Mapping[str, int], axes: str | Sequence[str], *, algorithm: str | None = None
) -> Time:
    """Every device of a group sends a different 1/k² of the array to every other: the split moves to another dimension.

    Even ring: launch + ⌊k/2⌋·hop + V/4 ÷ 2W; line: launch + (k−1)·hop + V/4 ÷ W, both what their middle must carry (k odd: ⌊k²/4⌋/k²
    for 1/4); switch: V(k−1)/k² ÷ W. V is `nbytes`, the array as the group holds it together; a device holds V/k before and after.

    >>> import scalebook as sb
    >>> m = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
    >>> t = all_to_all(2**30, m, "X")
    >>> round((t.comms - t.latency) * 1e3, 2), t.bytes == 2**30 * 15 // 256  # ms: 2^30 ÷ (8 · 45 GB/s)
    (2.98, True)

    Several axes: one phase along each, for the whole local data, in parts at once where that helps. All messages are taken to be
    of one size: uneven routing, as of tokens to experts, is as slow as its largest. The TPU compiler's own model assumes twice this
    time. Errors as in `all_gather`.
    """
    return _collective("all-to-all", nbytes, mesh, axes, algorithm)


def permute(nbytes: Number, mesh: Mesh | Mapping[str, int], axes: str | Sequence[str], *, algorithm: str | None = None) -> Time:
    """Every device sends its block, 1/k of the array, to the next device of its group, the last to the first.

    launch + distance·hop + V/k ÷ W. V is `nbytes`, the array as the group holds it together. Each link carries one block in one
    direction, passed on by the devices between without being stored. The distance is 1 on a ring or switch; on a line, k−1, the way
    back from the last device to the first; over several segments their sum, a carry moving on along the next one.

    >>> import scalebook as sb
    >>> m = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
    >>> t = permute(2**30, m, "X")
    >>> round((t.comms - t.latency) * 1e3, 2), t.bytes == 2**26  # ms: 2^26 ÷ 45 GB/s
    (1.49, True)

    Too fast for other permutations, such as one that exchanges two axes: their blocks travel further and share links. Errors as
    in `all_gather`.
    """
    return _collective("permute", nbytes, mesh, axes, algorithm)
