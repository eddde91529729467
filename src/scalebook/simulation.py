"""Collectives executed step by step: real chunks over real directed links, checked at the end, and timed by the busiest link.

    >>> from scalebook.wiring import Segment
    >>> ring = Segment("ici0", 8, "ring", 45e9, 1e-6, 0.0)
    >>> s = simulate("all-gather", (ring,), 8 * 45_000_000)
    >>> [round(step.seconds * 1e6) for step in s.steps]  # µs: a hop, and 45 MB per link; at last half of it each way
    [1001, 1001, 1001, 501]

Nothing of the closed forms enters here: that both give the same seconds is what the tests hold.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from scalebook import schedules
from scalebook.collectives import algorithms, check_bytes
from scalebook.errors import MeshError, ScalebookError, SizeError, unknown
from scalebook.schedules import base_kind
from scalebook.transfers import Block, Grid, Transfer, backwards, schedule, shift
from scalebook.units import plural, si
from scalebook.wiring import Segment

MOST_DEVICES = 512


class Step(NamedTuple):
    """Transfers that happen at the same time, from `start`, for `seconds`: `hop` of latency and the busiest link's bytes."""

    start: float
    seconds: float
    hop: float
    op: str  # "copy": the sender keeps its data; "add": it is added to the receiver's; "move": it leaves the sender
    transfers: tuple[Transfer, ...]


class Piece(NamedTuple):
    """Part `lo` to `hi` of a block as one device holds it, and the devices whose data are summed in it."""

    lo: Fraction
    hi: Fraction
    of: tuple[int, ...]


# ---- execution ------------------------------------------------------------------------------------------------------------

_State = list[dict[tuple[Block, int], int]]  # device → (block, atom) → bits of the devices summed in it


@dataclass(frozen=True)
class Simulation:
    """A collective that was executed: its steps, and what every device holds after each.

    `devices` are coordinates over the segments, outer to inner; transfers name devices by their index in it. `holdings(n)` is what
    they hold after n steps. `seconds` includes `launch`, before the first step.
    """

    kind: str
    algorithm: str
    nbytes: float
    segments: tuple[Segment, ...]
    devices: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    launch: float
    seconds: float
    _cuts: tuple[Fraction, ...] = field(repr=False, default=(Fraction(0), Fraction(1)))

    @property
    def links(self) -> tuple[tuple[int, int, int, str], ...]:
        """Every directed link that is used: (segment, from, to, direction)."""
        return tuple(sorted({(t.segment, t.src, t.dst, t.direction) for step in self.steps for t in step.transfers}))

    def received(self, device: int) -> float:
        """Bytes that arrive at one device, also those it only passes on."""
        return math.fsum(t.bytes for step in self.steps for t in step.transfers if t.dst == device)

    def holdings(self, step: int) -> dict[int, dict[Block, tuple[Piece, ...]]]:
        """After so many steps: device → block → the pieces of it there, with the devices whose data are summed in each."""
        if not 0 <= step <= len(self.steps):
            raise ScalebookError(f"this {self.kind} has {plural(len(self.steps), 'step')}; holdings({step}) asks for another")
        return next(itertools.islice(self._states(), step, None))()

    def states(self) -> list[dict[int, dict[Block, tuple[Piece, ...]]]]:
        """`holdings(0)`, `holdings(1)`, … up to the end, in one run."""
        return [read() for read in self._states()]

    def _states(self) -> Iterator[Callable[[], dict[int, dict[Block, tuple[Piece, ...]]]]]:
        """After no step, one, two, …: what reads the holdings of that moment."""
        state = self._begin()

        def read() -> dict[int, dict[Block, tuple[Piece, ...]]]:
            return {device: self._pieces(held) for device, held in enumerate(state)}

        yield read
        for s in self.steps:
            self._advance(state, s)
            yield read

    def retimed(self, segments: tuple[Segment, ...], nbytes: float) -> Simulation:
        """The same schedule for another number of bytes, over links of the same kinds and sizes with other rates and latencies.

        Who sends what to whom stays as it was executed and checked; bytes, starts and seconds are new.

        >>> ring = Segment("ici0", 4, "ring", 1e9, 0.0, 0.0)
        >>> simulate("all-gather", (ring,), 4).retimed((ring,), 4e9).seconds
        1.5

        Raises MeshError for segments of other kinds or sizes, or of unknown rate, SizeError for bytes that cannot be.
        """
        real = tuple(s for s in segments if s.size > 1)
        if [(s.kind, s.size) for s in real] != [(s.kind, s.size) for s in self.segments] or not self.nbytes:
            mine = _roads(self.segments)
            raise MeshError(f"the steps of {self.kind} over {mine}, {si(self.nbytes, 'B')}, are not those over {_roads(real)}")
        size = float(check_bytes(nbytes))
        share = size / self.nbytes
        runs = [
            (op, [[t._replace(bytes=t.bytes * share) for t in s.transfers] for s in steps])
            for op, steps in itertools.groupby(self.steps, lambda s: s.op)
        ]
        start = schedules.launch(real)
        steps, seconds = _clocked(real, runs, start)
        return replace(self, nbytes=size, segments=real, steps=steps, launch=start, seconds=seconds)

    def _pieces(self, held: dict[tuple[Block, int], int]) -> dict[Block, tuple[Piece, ...]]:
        found: dict[Block, list[Piece]] = {}
        for (block, atom), bits in held.items():
            found.setdefault(block, []).append(Piece(self._cuts[atom], self._cuts[atom + 1], _members(bits)))
        merged = {}
        for block, pieces in sorted(found.items(), key=lambda item: item[0] if isinstance(item[0], tuple) else (item[0],)):
            joined: list[Piece] = []
            for piece in sorted(pieces):
                if joined and joined[-1].hi == piece.lo and joined[-1].of == piece.of:
                    joined[-1] = joined[-1]._replace(hi=piece.hi)
                else:
                    joined.append(piece)
            merged[block] = tuple(joined)
        return merged

    def _begin(self) -> _State:
        every, atoms = range(len(self.devices)), range(len(self._cuts) - 1)
        summed = self.kind in ("reduce-scatter", "all-reduce")
        state: _State = []
        for d in every:
            blocks: list[Block] = [d]
            if self.kind == "all-to-all":
                blocks = [(d, e) for e in every]
            elif summed:
                blocks = list(every)
            state.append({(b, a): 1 << d for b in blocks for a in atoms})
        return state

    def _advance(self, state: _State, step: Step) -> None:
        """Send everything as it is when the step begins, then let it arrive; a cut-through path passes its links in order."""
        sent: list[tuple[dict[tuple[Block, int], int], tuple[Block, int], int]] = []
        for t in step.transfers:
            atoms = range(bisect.bisect_left(self._cuts, t.lo), bisect.bisect_left(self._cuts, t.hi))
            for key in itertools.product(t.blocks, atoms):
                source = state[t.src]
                if key not in source:
                    raise _fault(f"device {t.src} sends {t.label} before it has it")
                bits = source[key] if step.op == "copy" else source.pop(key)
                if step.op == "through":
                    state[t.dst][key] = bits
                else:
                    sent.append((state[t.dst], key, bits))
        for target, key, bits in sent:
            there = target.get(key, 0)
            if there and (step.op != "add" or there & bits):
                raise _fault(f"block {key[0]} arrives twice, or a contribution to it is added twice")
            target[key] = there | bits

    def _verify(self) -> None:
        """Run it all, and compare what every device holds with what the collective promises."""
        state = self._begin()
        for step in self.steps:
            self._advance(state, step)
        k, atoms = len(self.devices), range(len(self._cuts) - 1)
        for d in range(k):
            expected = {(b, a): bits for b, bits in _promised(self.kind, d, k) for a in atoms}
            if state[d] != expected:
                raise _fault(f"device {d} ends with the wrong blocks")

    def table(self) -> list[tuple[str, ...]]:
        """Step by step: start, duration, transfers, links in use, bytes on the busiest link."""
        rows: list[tuple[str, ...]] = [("step", "start", "takes", "transfers", "links", "busiest link")]
        for n, s in enumerate(self.steps, 1):
            loads = _loads(self.segments, s.transfers)
            links = len({(t.segment, t.src, t.dst, t.direction) for t in s.transfers})
            busiest = si(max(loads.values()), "B")
            rows.append((str(n), si(s.start, "s"), si(s.seconds, "s"), str(len(s.transfers)), str(links), busiest))
        return rows

    def __str__(self) -> str:
        steps = plural(len(self.steps), "step")
        lines = [
            f"{self.kind} of {si(self.nbytes, 'B')} over {_roads(self.segments)}: {self.algorithm}, {steps}, {si(self.seconds, 's')}"
        ]
        rows = self.table()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines += ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(lines)


def _roads(segments: tuple[Segment, ...]) -> str:
    return ", ".join(f"{s.kind} {s.physical} of {s.size}" for s in segments) or "one device"


def _promised(kind: str, device: int, k: int) -> list[tuple[Block, int]]:
    """What a device must hold at the end: each block, and the devices whose data are summed in it, as bits."""
    everyone = (1 << k) - 1
    if kind == "all-gather":
        return [(b, 1 << b) for b in range(k)]
    if kind == "all-to-all":
        return [((b, device), 1 << b) for b in range(k)]
    if kind == "permute":
        return [((device - 1) % k, 1 << (device - 1) % k)]
    return [(b, everyone) for b in ([device] if kind == "reduce-scatter" else range(k))]


def _fault(what: str) -> AssertionError:
    return AssertionError(f"a fault in the schedule, not in your call: {what}")


def _members(bits: int) -> tuple[int, ...]:
    return tuple(i for i in range(bits.bit_length()) if bits >> i & 1)


def _loads(segments: tuple[Segment, ...], transfers: Sequence[Transfer]) -> dict[tuple[int, int, str], float]:
    """Bytes on every directed link; on a switch, through every device's port out and port in."""
    loads: dict[tuple[int, int, str], float] = defaultdict(float)
    for t in transfers:
        if segments[t.segment].kind == "switch":
            loads[t.segment, t.src, "out"] += t.bytes
            loads[t.segment, t.dst, "in"] += t.bytes
        else:
            loads[t.segment, t.src, t.direction] += t.bytes
    return loads


def _lasts(segments: tuple[Segment, ...], transfers: Sequence[Transfer], to_one: bool = False) -> tuple[float, float]:
    """(hop latency, seconds of the busiest link) of one step; `to_one`: every device sends to one other only."""
    hop = max(segments[t.segment].hop_latency_s for t in transfers)
    busiest = 0.0
    for (segment, _, _), load in _loads(segments, transfers).items():
        one = segments[segment].peer_bytes_per_s if to_one else None
        busiest = max(busiest, load / (one or _rate(segments[segment])))
    return hop, busiest


def _rate(segment: Segment) -> float:
    if segment.bytes_per_s is None:
        raise MeshError(f"the rate of {segment.physical} has no source, so a collective over it cannot be timed step by step")
    return segment.bytes_per_s


def _clocked(
    segments: tuple[Segment, ...], runs: Sequence[tuple[str, Sequence[Sequence[Transfer]]]], launch: float
) -> tuple[tuple[Step, ...], float]:
    """The steps of one schedule after another, each after its launch, with their times; and when the last one ends."""
    steps, clock = [], 0.0
    for op, run in runs:
        clock += launch
        for transfers in run:
            hop, busy = _lasts(segments, transfers, to_one=op == "through")
            hop = _path_hops(segments, transfers) if op == "through" else hop
            steps.append(Step(clock, hop + busy, hop, op, tuple(transfers)))
            clock += hop + busy
    return tuple(steps), clock


def _path_hops(segments: tuple[Segment, ...], transfers: Sequence[Transfer]) -> float:
    """The longest way of a block, in seconds of hop latency."""
    ways: dict[Block, float] = defaultdict(float)
    for t in transfers:
        ways[t.blocks[0]] += segments[t.segment].hop_latency_s
    return max(ways.values())


def simulate(kind: str, segments: tuple[Segment, ...], nbytes: float, algorithm: str | None = None) -> Simulation:
    """Execute a collective over these segments (outer to inner), by the cheapest algorithm or the one that is named.

    Every step takes its hop latency plus bytes ÷ rate of its busiest link; `seconds` equals the closed form. What every device
    holds at the end is checked. Raises SizeError for more than 512 devices, MeshError where a link's rate is unknown,
    ScalebookError for an unknown kind or algorithm.
    """
    base = base_kind(kind)
    size = float(check_bytes(nbytes))
    real = tuple(s for s in segments if s.size > 1)
    k = math.prod(s.size for s in real)
    if k > MOST_DEVICES:
        raise SizeError(
            f"a simulation moves every chunk and takes at most {MOST_DEVICES} devices; {k} were asked for: use the closed form"
        )
    for s in real:
        _rate(s)
    every = {p.algorithm: p for p in algorithms(kind, real)}
    if algorithm is not None and algorithm not in every:
        raise unknown(f"algorithm for {kind} over {plural(len(real), 'segment')}", algorithm, every)
    chosen = algorithm or min(every.values(), key=lambda p: p.seconds(size)).algorithm
    start = schedules.launch(real)
    grid = Grid(real)
    if not real:
        return Simulation(kind, chosen, size, real, grid.coordinates, (), 0.0, 0.0)
    runs: list[tuple[str, list[list[Transfer]]]]
    if base == "permute":
        runs = [("through", [shift(real, size)])]
    else:
        plan = next(p for p in schedules.plans(base, real) if p.name == chosen)
        forwards = list(schedule(base, plan, size))
        op = "move" if kind == "all-to-all" else "copy"
        runs = [] if kind == "reduce-scatter" else [(op, forwards)]
        if base == "all-gather" and kind != "all-gather":
            runs.insert(0, ("add", backwards(forwards)))
    steps, clock = _clocked(real, runs, start)
    cuts = {Fraction(0), Fraction(1)}.union(*({t.lo, t.hi} for step in steps for t in step.transfers))
    done = Simulation(kind, chosen, size, real, grid.coordinates, steps, start, clock, tuple(sorted(cuts)))
    done._verify()
    return done
