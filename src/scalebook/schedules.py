"""Who talks when: each collective as phases over the physical segments of a mesh axis, and what a phase costs.

A *segment* is a ring, a line or a switch of `size` devices. A collective over several segments runs in phases. In a phase one or
more *lanes* work at the same time, each moving some parts of the array along one segment of its own. Lanes keep step: each step
advances every lane by the same share of its bytes, and lasts one hop latency plus the time of the busiest link.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from scalebook.errors import MeshError, unknown
from scalebook.wiring import Segment

KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute")
SHAPES = ("ring", "line", "switch")
_ALONE = {"ring": "ring", "line": "line", "switch": "pairwise"}
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Lane:
    """In one phase: these parts of the array move along this segment (its index)."""

    segment: int
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """An algorithm: the array in parts (`shares` of its bytes), and the phases that move them, in gathering order."""

    name: str
    segments: tuple[Segment, ...]
    shares: tuple[Fraction, ...]
    phases: tuple[tuple[Lane, ...], ...]
    flat: bool = False  # one ring through all devices of two switches, instead of phases

    @property
    def devices(self) -> int:
        """Devices of one group: the product of the segments' sizes."""
        return math.prod(s.size for s in self.segments)

    def describe(self) -> str:
        """The phases in words: `ici0 then ici1`, or with `+` between segments that work at the same time."""
        if self.flat:
            return "one ring through all devices"
        return " then ".join("+".join(self.segments[lane.segment].physical for lane in phase) for phase in self.phases)


# ---- one segment ----------------------------------------------------------------------------------------------------------


def base_kind(kind: str) -> str:
    """The pattern that a kind is made of: reduce-scatter is an all-gather run backwards, all-reduce is one then the other."""
    if kind not in KINDS:
        raise unknown("collective", kind, KINDS)
    return "all-gather" if kind in ("reduce-scatter", "all-reduce") else kind


def busiest_link(kind: str, shape: str, k: int) -> Fraction:
    """Share of V that crosses the busiest link in one direction, V being what the k devices hold together.

    All-gather: ring (k−1)/2k, as both directions carry half; line and switch (k−1)/k, for the end device, or the port, takes
    everything through one link. All-to-all: line ⌊k²/4⌋/k², what must cross its middle; ring half of that; switch (k−1)/k².

    >>> [str(busiest_link("all-to-all", shape, 8)) for shape in ("ring", "line", "switch")]
    ['1/8', '1/4', '7/64']
    """
    if shape not in SHAPES:
        raise unknown("kind of segment", shape, SHAPES, MeshError)
    if kind == "all-gather":
        return Fraction(k - 1, 2 * k) if shape == "ring" else Fraction(k - 1, k)
    if shape == "switch":
        return Fraction(k - 1, k * k)
    return Fraction(k * k // 4, 2 * k * k if shape == "ring" else k * k)


def step_count(shape: str, k: int) -> int:
    """Steps of one segment: ⌊k/2⌋ on a ring, k − 1 on a line (its diameter) and on a switch (one partner at a time).

    >>> step_count("ring", 8), step_count("line", 8), step_count("switch", 8)
    (4, 7, 7)
    """
    return k // 2 if shape == "ring" else k - 1


def profile(kind: str, shape: str, k: int) -> list[tuple[Fraction, Fraction]]:
    """(length, bytes on the busiest link) of each step; length 1 moves whole messages, the last gather of an even ring half ones.

    Bytes are in messages: V/k each in an all-gather, V/k² in an all-to-all. On a line, an all-to-all sends the message for the
    farthest device first and each message then moves on without waiting: step t loads the busiest link with min(t, k − t).

    >>> [str(load) for _, load in profile("all-to-all", "line", 6)]
    ['1', '2', '3', '2', '1']
    """
    steps, one = range(1, step_count(shape, k) + 1), Fraction(1)
    if kind == "all-gather":
        halved = len(steps) if shape == "ring" and k % 2 == 0 else 0
        return [(_HALF, _HALF) if s == halved else (one, one) for s in steps]
    if shape == "switch":
        return [(one, one) for _ in steps]
    if shape == "line":
        return [(one, Fraction(min(s, k - s))) for s in steps]
    farthest_half = _HALF if k % 2 == 0 else 0
    return [(one, Fraction(k // 2 - s + 1) - farthest_half) for s in steps]


def _one_more(lengths: Sequence[Fraction], loads: Sequence[Fraction], share: Fraction) -> Fraction:
    """The share of a lane's bytes sent one length after this share was; both sequences are running sums from 0 on."""
    sent = share * loads[-1]
    i = max(1, bisect.bisect_left(loads, sent))
    position = lengths[i - 1] + (lengths[i] - lengths[i - 1]) * (sent - loads[i - 1]) / (loads[i] - loads[i - 1]) + 1
    if position >= lengths[-1]:
        return Fraction(1)
    i = bisect.bisect_right(lengths, position)
    covered = (position - lengths[i - 1]) / (lengths[i] - lengths[i - 1])
    return (loads[i - 1] + (loads[i] - loads[i - 1]) * covered) / loads[-1]


def position_at(steps: Sequence[tuple[Fraction, Fraction]], share: Fraction) -> Fraction:
    """How far along its steps' lengths a lane is when this share of its bytes has been sent."""
    left, position = share * sum((load for _, load in steps), start=Fraction(0)), Fraction(0)
    for length, load in steps:
        if left <= load:
            return position + length * left / load
        left, position = left - load, position + length
    return position


def pace(lanes: Sequence[Sequence[tuple[Fraction, Fraction]]]) -> list[Fraction]:
    """The share of every lane's bytes sent after each common step: as few steps as let no lane advance by more than one.

    A lane passes on in a step only what arrived in an earlier one, which holds as long as it advances by at most one step of its
    own. Moving all lanes by equal shares makes a phase last exactly as long as its slowest lane.

    >>> [str(s) for s in pace([profile("all-gather", "ring", 4), profile("all-gather", "ring", 5)])]
    ['1/2', '1']
    """
    shares = [Fraction(0)]
    sums = [[list(itertools.accumulate(s, initial=Fraction(0))) for s in zip(*lane, strict=True)] for lane in lanes]
    while shares[-1] < 1:
        shares.append(min(_one_more(lengths, loads, shares[-1]) for lengths, loads in sums))
    return shares[1:]


@functools.lru_cache(maxsize=4096)
def common_steps(kind: str, shapes: tuple[tuple[str, int], ...]) -> tuple[Fraction, ...]:
    """`pace` of the lanes along segments of these (kind, size)."""
    return tuple(pace([profile(kind, shape, k) for shape, k in shapes]))


# ---- several segments -----------------------------------------------------------------------------------------------------


def lane_bytes(plan: Plan, kind: str) -> Iterator[list[float]]:
    """Phase by phase, the share of V that each lane's busiest link carries."""
    gathered = [1] * len(plan.shares)
    for phase in plan.phases:
        loads = []
        for lane in phase:
            segment = plan.segments[lane.segment]
            if kind == "all-gather":
                held = float(sum(plan.shares[p] * gathered[p] for p in lane.parts))
            else:
                held = float(sum(plan.shares[p] for p in lane.parts))
            loads.append(float(busiest_link(kind, segment.kind, segment.size)) * held * segment.size / plan.devices)
        for lane in phase:
            for part in lane.parts:
                gathered[part] *= plan.segments[lane.segment].size
        yield loads


def plan_rate(plan: Plan, kind: str) -> float | None:
    """Seconds per byte of V: in each phase the slowest lane's busiest link; None when a link's rate is unknown."""
    if plan.flat:
        return _flat_rate(*plan.segments)
    rate = 0.0
    for phase, loads in zip(plan.phases, lane_bytes(plan, kind), strict=True):
        speeds = [plan.segments[lane.segment].bytes_per_s for lane in phase]
        if any(speed is None for speed in speeds):
            return None
        rate += max(load / speed for load, speed in zip(loads, speeds, strict=True) if speed is not None)
    return rate


def plan_hops(plan: Plan, kind: str) -> float:
    """Seconds of hop latency: in each phase, common steps × the longest hop of its lanes."""
    if plan.flat:
        return (plan.devices - 1) * max(s.hop_latency_s for s in plan.segments)
    total = 0.0
    for phase in plan.phases:
        active = [plan.segments[lane.segment] for lane in phase]
        steps = common_steps(kind, tuple(sorted((s.kind, s.size) for s in active)))
        total += len(steps) * max(s.hop_latency_s for s in active)
    return total


def _flat_rate(outer: Segment, inner: Segment) -> float | None:
    """Seconds per byte of V when the array, in as many parts as a node has devices, goes round one ring per part.

    Every device passes all but one of the parts on inside its node, and one part out of it: (k−1)/k · max((n−1)/n ÷ W_inner,
    1/n ÷ W_outer) for n devices a node. So NCCL's rings use all the network ports of a node at once.
    """
    if outer.bytes_per_s is None or inner.bytes_per_s is None:
        return None
    n, k = inner.size, inner.size * outer.size
    return (k - 1) / k * max((n - 1) / n / inner.bytes_per_s, 1 / n / outer.bytes_per_s)


def launch(segments: Sequence[Segment]) -> float:
    """Seconds to start a collective: once, by the slowest kind of link it uses."""
    return max((s.launch_latency_s for s in segments if s.size > 1), default=0.0)


def _speed(segment: Segment) -> float:
    return (segment.bytes_per_s or 0.0) * (2 if segment.kind == "ring" else 1)


def _arrange(segments: tuple[Segment, ...], block: tuple[int, ...], shares: tuple[Fraction, ...], name: str) -> Plan:
    """Slowest segment first, when a gather has least to move; the segments of `block` together, each part on another of them."""
    parts = tuple(range(len(shares)))
    stages: list[tuple[float, list[tuple[Lane, ...]]]] = [
        (_speed(segments[i]), [(Lane(i, parts),)]) for i in range(len(segments)) if i not in block
    ]
    if block:
        n = len(block)
        turns = [tuple(Lane(block[(p + turn) % n], (p,)) for p in parts) for turn in range(n)]
        stages.append((sum(_speed(segments[i]) for i in block), turns))
    stages.sort(key=lambda stage: stage[0])
    return Plan(name, segments, shares, tuple(phase for _, phases in stages for phase in phases))


def _blocks(segments: tuple[Segment, ...]) -> Iterator[tuple[int, ...]]:
    """Sets of two or more torus segments, on physical axes of their own, that can work at the same time."""
    torus = [i for i, s in enumerate(segments) if s.kind != "switch"]
    for n in range(len({segments[i].physical for i in torus}), 1, -1):
        for block in itertools.combinations(torus, n):
            if len({segments[i].physical for i in block}) == n:
                yield block


def _rotated(kind: str, segments: tuple[Segment, ...], block: tuple[int, ...], name: str) -> Plan:
    """The best rotation: parts of equal size, or sized so that the last phase, the largest of a gather, ends everywhere at once."""
    n, candidates = len(block), []
    for rest in itertools.permutations(block[1:]):
        order = (block[0], *rest)
        candidates.append(_arrange(segments, order, (Fraction(1, n),) * n, name))
        last = [segments[order[(p + n - 1) % n]] for p in range(n)]
        weights = [_speed(s) * s.size / (s.size - 1) for s in last]
        if all(weights):
            fitted = [Fraction(w / sum(weights)).limit_denominator(64) for w in weights[1:]]
            shares = (1 - sum(fitted, start=Fraction(0)), *fitted)
            if min(shares) > 0:
                candidates.append(_arrange(segments, order, shares, name))
    return min(candidates, key=lambda plan: plan_rate(plan, kind) or 0.0)


@functools.lru_cache(maxsize=4096)
def plans(kind: str, segments: tuple[Segment, ...]) -> tuple[Plan, ...]:
    """Every algorithm for an all-gather or all-to-all over these segments (those of size 1 are left out).

    One segment: `ring`, `line`, `pairwise`. Several: `sequential`, one after the other, slowest first; `rotated`, where the array
    is cut into as many parts as there are torus segments and each part starts on another of them; `rotated a+b`, the same with
    only these together and the rest in sequence; over two switches, such as NVLink and a network, `flat ring`: one ring through
    all devices for each network port of a node. Segments on one physical axis share its links and never work at the same time.

    >>> [p.name for p in plans("all-gather", (Segment("ici0", 4, "ring", 9e10, 0.0, 0.0), Segment("ici1", 4, "line", 9e10, 0.0, 0.0)))]
    ['sequential', 'rotated']
    """
    segments = tuple(s for s in segments if s.size > 1)
    for s in segments:
        if s.kind not in SHAPES:
            raise unknown("kind of segment", s.kind, SHAPES, MeshError)
    if len(segments) < 2:
        name = _ALONE[segments[0].kind] if segments else "none"
        return (_arrange(segments, (), (Fraction(1),), name),)
    found = {"sequential": _arrange(segments, (), (Fraction(1),), "sequential")}
    torus = sum(s.kind != "switch" for s in segments)
    if kind == "all-gather" and len(segments) == 2 and torus == 0:
        parts = segments[1].size
        found["flat ring"] = Plan("flat ring", segments, (Fraction(1, parts),) * parts, (), flat=True)
    for block in _blocks(segments):
        name = "rotated" if len(block) == torus else "rotated " + "+".join(segments[i].physical for i in block)
        if name in found:  # another choice of segments on the same physical axes
            name += " (" + ", ".join(str(i) for i in block) + ")"
        found[name] = _rotated(kind, segments, block, name)
    return tuple(found.values())
