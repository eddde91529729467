"""The schedules of collectives written out: which device sends which blocks to which, step by step.

The schedule of one segment (`moves`) is put down move by move, without the closed forms of `scalebook.schedules`, so that executing
it (`scalebook.simulation`) tests them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from scalebook import schedules
from scalebook.schedules import Plan
from scalebook.wiring import Segment

Block = int | tuple[int, int]  # the device whose shard it is; in an all-to-all (from, to)


class Transfer(NamedTuple):
    """In one step, these blocks (their part from `lo` to `hi`, as fractions of a block) go from one device to another."""

    src: int
    dst: int
    blocks: tuple[Block, ...]
    lo: Fraction
    hi: Fraction
    bytes: float
    segment: int
    direction: str  # "+" or "-" along a ring or line, "" through a switch

    @property
    def label(self) -> str:
        """The chunk as text: `3`, `0,4`, `1→5`, with the fraction that is sent where it is not the whole block."""
        names = ",".join(f"{b[0]}→{b[1]}" if isinstance(b, tuple) else str(b) for b in self.blocks)
        return names if self.lo == 0 and self.hi == 1 else f"{names} [{self.lo}–{self.hi}]"


class Move(NamedTuple):
    """One unit of a schedule on one segment: positions, and the fractions offset + scale·y (modulo 1) of the item, y in [0, length)."""

    src: int
    dst: int
    direction: str
    item: tuple[int, ...]  # (origin,) of a gathered shard, (origin, target) of a message
    offset: Fraction
    scale: Fraction


# ---- one segment, move by move --------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def moves(kind: str, shape: str, k: int) -> list[list[Move]]:
    """Every move of an all-gather or all-to-all over one segment, step by step.

    >>> [(m.src, m.dst, m.item) for m in moves("all-gather", "line", 3)[1]]
    [(1, 2, (0,)), (1, 0, (2,))]
    """
    one, half, zero = Fraction(1), Fraction(1, 2), Fraction(0)
    steps: list[list[Move]] = []
    for s in range(1, schedules.step_count(shape, k) + 1):
        step: list[Move] = []
        if shape == "switch":
            for i in range(k):
                j = (i + s) % k
                step.append(Move(i, j, "", (i,) if kind == "all-gather" else (i, j), zero, one))
        elif kind == "all-gather":
            for i, (sign, name) in itertools.product(range(k), ((1, "+"), (-1, "-"))):
                dst, origin = i + sign, i - sign * (s - 1)
                if shape == "line" and not (0 <= dst < k and 0 <= origin < k):
                    continue
                # An even ring's farthest shards come half from each side, so the two directions begin with different halves.
                start = half if shape == "ring" and k % 2 == 0 and sign < 0 else zero
                step.append(Move(i, dst % k, name, (origin % k,), start, one))
        elif shape == "ring":
            for i, (sign, name) in itertools.product(range(k), ((1, "+"), (-1, "-"))):
                origin, dst = (i - sign * (s - 1)) % k, (i + sign) % k
                for distance in range(s, (k - 1) // 2 + 1):
                    step.append(Move(i, dst, name, (origin, (origin + sign * distance) % k), zero, one))
                if k % 2 == 0:
                    start = zero if sign > 0 else half
                    step.append(Move(i, dst, name, (origin, (origin + k // 2) % k), start, half))
        else:  # line: the message for the farthest device first; then it moves on without waiting
            for a, b in itertools.combinations(range(k), 2):
                at = s - k + a + b
                if a <= at < b:
                    step.append(Move(at, at + 1, "+", (a, b), zero, one))
                    mirrored = k - 1 - at
                    step.append(Move(mirrored, mirrored - 1, "-", (k - 1 - a, k - 1 - b), zero, one))
        steps.append(step)
    return steps


# ---- several segments: phases of paced lanes ------------------------------------------------------------------------------


class Grid:
    """Devices of a group as coordinates over the segments, outer to inner; index = row-major."""

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        self.sizes = tuple(s.size for s in segments)
        self.coordinates = tuple(itertools.product(*(range(n) for n in self.sizes)))
        self.strides = tuple(math.prod(self.sizes[i + 1 :]) for i in range(len(self.sizes)))

    def matching(self, fixed: dict[int, int]) -> tuple[int, ...]:
        """Indices of the devices whose coordinates agree with `fixed` on its segments."""
        choices = [(fixed[i],) if i in fixed else range(n) for i, n in enumerate(self.sizes)]
        return tuple(sum(c * w for c, w in zip(at, self.strides, strict=True)) for at in itertools.product(*choices))


def _blocks(kind: str, grid: Grid, base: tuple[int, ...], along: int, item: tuple[int, ...], done: set[int]) -> tuple[Block, ...]:
    """The blocks that an item stands for on the line of devices through `base`, once the segments in `done` have been walked."""
    others = [i for i in range(len(grid.sizes)) if i != along]
    origins = grid.matching({along: item[0], **{i: base[i] for i in others if i not in done}})
    if kind == "all-gather":
        return origins
    targets = grid.matching({along: item[1], **{i: base[i] for i in others if i in done}})
    return tuple(itertools.product(origins, targets))


def _slices(
    steps: list[tuple[Fraction, Fraction]], shares: tuple[Fraction, ...]
) -> Iterator[list[tuple[int, Fraction, Fraction]]]:
    """For each common step, the (own step, from, to) that a lane advances through."""
    edges = [Fraction(0), *itertools.accumulate(length for length, _ in steps)]
    begin = Fraction(0)
    for share in shares:
        end = schedules.position_at(steps, share)
        spans = ((i, max(begin, edges[i]) - edges[i], min(end, edges[i + 1]) - edges[i]) for i in range(len(steps)))
        yield [(i, y0, y1) for i, y0, y1 in spans if y0 < y1]
        begin = end


def _wrapped(lo: Fraction, hi: Fraction) -> list[tuple[Fraction, Fraction]]:
    if lo >= 1:
        return [(lo - 1, hi - 1)]
    if hi - lo == 1:
        return [(Fraction(0), Fraction(1))]
    return [(lo, hi)] if hi <= 1 else [(lo, Fraction(1)), (Fraction(0), hi - 1)]


def _pieces(
    units: list[list[Move]], spans: list[tuple[int, Fraction, Fraction]], start: Fraction, share: Fraction
) -> list[tuple[Move, Fraction, Fraction, float]]:
    """What a lane sends in one common step: each move with the piece of a block, from `lo` to `hi`, and its size."""
    found = []
    for index, y0, y1 in spans:
        for m in units[index]:
            for lo, hi in _wrapped(m.offset + m.scale * y0, m.offset + m.scale * y1):
                found.append((m, start + share * lo, start + share * hi, float(share * (hi - lo))))
    return found


def schedule(kind: str, plan: Plan, nbytes: float) -> Iterator[list[Transfer]]:
    """The steps of an all-gather or all-to-all by this plan."""
    if plan.flat:
        yield from _flat_ring(plan, nbytes)
        return
    grid, starts = Grid(plan.segments), [Fraction(0), *itertools.accumulate(plan.shares)]
    done: list[set[int]] = [set() for _ in plan.shares]
    block_bytes = nbytes / plan.devices / (plan.devices if kind == "all-to-all" else 1)
    for phase in plan.phases:
        shapes = [(plan.segments[lane.segment].kind, plan.segments[lane.segment].size) for lane in phase]
        profiles = [schedules.profile(kind, shape, k) for shape, k in shapes]
        common = tuple(schedules.pace(profiles))
        steps: list[list[Transfer]] = [[] for _ in common]
        for lane, (shape, k), lengths in zip(phase, shapes, profiles, strict=True):
            units, along = moves(kind, shape, k), lane.segment
            spans = list(_slices(lengths, common))
            lines = [(at, c) for at, c in enumerate(grid.coordinates) if c[along] == 0]
            for part in lane.parts:
                sent = [_pieces(units, span, starts[part], plan.shares[part]) for span in spans]
                for base, coordinates in lines:
                    blocks = {m.item: _blocks(kind, grid, coordinates, along, m.item, done[part]) for unit in units for m in unit}
                    for step, pieces in zip(steps, sent, strict=True):
                        for m, lo, hi, share in pieces:
                            held, stride = blocks[m.item], grid.strides[along]
                            src, dst = base + m.src * stride, base + m.dst * stride
                            step.append(Transfer(src, dst, held, lo, hi, block_bytes * len(held) * share, along, m.direction))
        for lane in phase:
            for part in lane.parts:
                done[part].add(lane.segment)
        yield from steps


def _flat_ring(plan: Plan, nbytes: float) -> Iterator[list[Transfer]]:
    """All-gather round one ring per part: part r enters every node at its r-th device, and leaves it at the one before that."""
    (nodes, n), k = (s.size for s in plan.segments), plan.devices
    rings = [[node * n + (r + i) % n for node in range(nodes) for i in range(n)] for r in range(n)]
    size = nbytes / k / n
    for s in range(k - 1):
        step = []
        for r, ring in enumerate(rings):
            for at in range(k):
                src, dst, block = ring[at], ring[(at + 1) % k], ring[at - s]
                segment = 1 if src // n == dst // n else 0
                step.append(Transfer(src, dst, (block,), Fraction(r, n), Fraction(r + 1, n), size, segment, ""))
        yield step


def backwards(steps: list[list[Transfer]]) -> list[list[Transfer]]:
    """The same steps with time reversed: what was copied outwards is added inwards."""
    flip = {"+": "-", "-": "+", "": ""}
    return [[t._replace(src=t.dst, dst=t.src, direction=flip[t.direction]) for t in step] for step in reversed(steps)]


def shift(segments: tuple[Segment, ...], nbytes: float) -> list[Transfer]:
    """Every device's block to the next device, link by link: inner segment first, a carry goes on along the next one outwards."""
    grid, whole = Grid(segments), (Fraction(0), Fraction(1))
    size, found = nbytes / len(grid.coordinates), []
    for block, coordinates in enumerate(grid.coordinates):
        at = block
        for i in reversed(range(len(segments))):
            k, position, stride = segments[i].size, coordinates[i], grid.strides[i]
            carry = position == k - 1
            back = carry and segments[i].kind == "line"
            for _ in range(k - 1 if back else 1):
                to = at - stride if back else at - stride * (k - 1) if carry else at + stride
                name = "" if segments[i].kind == "switch" else "-" if back else "+"
                found.append(Transfer(at, to, (block,), *whole, size, i, name))
                at = to
            if not carry:
                break
    return found
