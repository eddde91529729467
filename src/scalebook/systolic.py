"""The matrix unit as a systolic array, simulated cycle by cycle: which cell holds which weight, and what passes through it when.

A weight-stationary array has R rows and C columns of cells. Each cell keeps one weight. In every cycle it takes a number of A from
its left neighbour and a partial sum from the neighbour above, adds weight × number to the sum, and passes both on: the number to
the right, the sum downwards. Row r of the array receives column r of A, one cycle later than the row above it, so that every sum
meets its next factor. What leaves the last row is a row of the product.

    >>> run = simulate([[1, 2], [3, 4]], [[5, 6], [7, 8]])
    >>> run.product, run.cycles
    (((19, 22), (43, 50)), 6)

Weights enter from above, one a column and cycle, while the array still works with the last ones: a cell changes to its next weight
when the first number of the next tile passes. This is the model of textbooks and simulators (Kung 1982; Samajdar et al. 2018, whose
cycles for one tile are the same); a vendor's unit may load faster or hold more than one number in a cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from scalebook.errors import SizeError
from scalebook.units import ceil_div, maximum

Matrix = Sequence[Sequence[Any]]
MOST_CELLS = 1 << 22  # cells × cycles that are simulated; the closed forms have no limit


class Cell(NamedTuple):
    """One cell in one cycle: its weight, the number that passes and where in A it is from, the sum it hands down."""

    weight: Any = None  # in use; None before the first one
    waiting: Any = None  # for the next tile, already in place
    moving: Any = None  # on its way to a row below
    row: int | None = None  # of A; None when nothing passes
    number: Any = None
    total: Any = None
    tile: int | None = None  # which tile of weights the weight in use belongs to


class Output(NamedTuple):
    """A finished sum that leaves the last row of the array: tile, row of A, column of the array, value."""

    tile: int
    row: int
    column: int
    value: Any


@dataclass(frozen=True)
class State:
    """The whole array in one cycle, and what leaves it at the end of the cycle."""

    cycle: int
    cells: tuple[tuple[Cell, ...], ...]
    outputs: tuple[Output, ...] = ()

    @property
    def busy(self) -> int:
        """Cells that multiply in this cycle."""
        return sum(cell.row is not None for row in self.cells for cell in row)


@dataclass(frozen=True)
class Run:
    """A finished simulation: product, cycles, cells at work in each cycle, and the states where they were kept."""

    shape: tuple[int, int]
    rows: int  # of A
    tiles: int
    product: tuple[tuple[Any, ...], ...]
    cycles: int
    busy: tuple[int, ...]
    states: tuple[State, ...] = field(default=(), repr=False)

    @property
    def share_busy(self) -> float:
        """Cell-cycles in which something was multiplied, padding included, as a share of all."""
        return sum(self.busy) / (self.cycles * self.shape[0] * self.shape[1])


def cycles(I: Any, J: Any, K: Any, *, dim: int | tuple[int, int] = 128) -> Any:
    """Cycles of A[I, J] · B[J, K] on one array of R × C cells: R + (tiles − 1)·max(I, R) + I + R + C − 2.

    The weights of the first tile take R cycles; then a tile of weights after another meets all I rows, but no sooner than the next
    weights are there, which takes R cycles again; the last row needs R + C − 2 cycles more to cross the array.

    >>> cycles(128, 128, 128), cycles(1024, 256, 256)
    (510, 4478)

    `dim` is R = C, or (R, C). Takes numbers and NumPy arrays. Raises SizeError for an array without cells.
    """
    R, C = _shape(dim)
    tiles = ceil_div(J, R) * ceil_div(K, C)
    return R + (tiles - 1) * maximum(I, R) + I + R + C - 2


def utilisation(I: Any, J: Any, K: Any, *, dim: int | tuple[int, int] = 128) -> Any:
    """The share of an array's multiply-adds that is useful: I·J·K ÷ (R·C·cycles); what is padding counts as idle.

    With many tiles it tends to I/max(I, R) · JK/(R⌈J/R⌉·C⌈K/C⌉): too few rows, or dimensions that do not fill the tiles.

    >>> round(utilisation(8, 8192, 8192), 3), round(utilisation(4096, 64, 8192), 3)
    (0.062, 0.499)
    """
    R, C = _shape(dim)
    return I * J * K / (R * C * cycles(I, J, K, dim=dim))


class Spot(NamedTuple):
    """What is at one cell in one cycle: the row of A that passes, the tile of the weight in use, and weights waiting or passing."""

    row: int | None
    tile: int | None
    waiting: bool  # the next tile's weight is in place
    moving: bool  # a weight for a row below passes


@dataclass(frozen=True)
class Timetable:
    """When everything happens in an array, from the closed forms alone: what `simulate` finds by its local rules, at no cost.

    The first row of A meets tile t in the first cell in cycle R + t·max(I, R), in cell (r, c) r + c cycles later. All weights of a
    column are in place R − 1 + c cycles after the first of their tile entered the array.

    >>> table = Timetable(8, 1, (4, 4))
    >>> table.cycles, table.busy[10], [[spot.row for spot in line] for line in table.at(7)][0]
    (18, 16, [3, 2, 1, 0])
    """

    rows: int  # of A
    tiles: int
    shape: tuple[int, int]

    @property
    def cycles(self) -> int:
        """Cycles until the last sum has left."""
        R, C = self.shape
        return int(cycles(self.rows, R, C * self.tiles, dim=(R, C)))

    @cached_property
    def busy(self) -> tuple[int, ...]:
        """Cells that multiply, cycle by cycle."""
        R, C = self.shape
        reached = [0]  # cells that a number has reached d cycles after it entered: those with r + c below d
        for d in range(R + C - 1):
            reached.append(reached[-1] + min(d, R - 1) - max(0, d - C + 1) + 1)
        found = [0] * self.cycles
        for tile in range(self.tiles):
            begin = R + tile * max(self.rows, R)
            for d in range(self.rows + R + C - 2):
                left = max(0, d + 1 - self.rows)
                found[begin + d] += reached[min(d + 1, R + C - 1)] - reached[min(left, R + C - 1)]
        return tuple(found)

    def at(self, cycle: int) -> list[list[Spot]]:
        """Every cell of the array in a cycle."""
        R, C = self.shape
        I, tiles, period = self.rows, self.tiles, max(self.rows, R)
        # a tile's weights begin to enter when the numbers of the last tile do, those of the first tile at once
        loads = [0, *range(R, R + (tiles - 1) * period, period)]
        entered: list[tuple[int | None, int | None]] = []  # by r + c: the row that passes, the tile of the weight in use
        for d in range(R + C - 1):
            since = cycle - d - R
            tile = min(tiles - 1, since // period) if since >= 0 else None
            at = I if tile is None else since - tile * period
            entered.append((at if at < I else None, tile))
        made = []
        for r in range(R):
            line = []
            for c in range(C):
                row, tile = entered[r + c]
                following = 0 if tile is None else tile + 1
                waiting = following < tiles and cycle >= loads[following] + c + R - 1
                since = cycle - c
                last = 0 if since < R else min(tiles - 1, 1 + (since - R) // period)
                line.append(Spot(row, tile, waiting, r <= since - loads[last] < R - 1))
            made.append(line)
        return made


def simulate(A: Matrix, B: Matrix, *, dim: int | tuple[int, int] | None = None, states: bool = True) -> Run:
    """A[I, J] · B[J, K] on an array of `dim` = (R, C) cells, by default as large as B; a larger B comes in tiles, padded with zeros.

    >>> run = simulate([[1, 2, 3]], [[1], [1], [1]], dim=2)
    >>> run.product, run.tiles, run.cycles == cycles(1, 3, 1, dim=2)
    (((6,),), 2, True)

    `states=False` keeps only the result and the number of busy cells. Raises SizeError for matrices that do not fit together and for
    more than four million cell-cycles.
    """
    I, J, K = _sizes(A, B)
    R, C = _shape(dim if dim is not None else (J, K))
    n = cycles(I, J, K, dim=(R, C))
    if n * R * C > MOST_CELLS:
        raise SizeError(
            f"simulating {I} x {J} x {K} on {R} x {C} cells takes {n:,} cycles, {n * R * C:,} cell-cycles; at most {MOST_CELLS:,} are "
            f"simulated: use smaller sizes, or `cycles` and `utilisation`, which are closed forms"
        )
    places = [(j, k) for k in range(0, K, C) for j in range(0, J, R)]
    product: list[list[Any]] = [[0] * K for _ in range(I)]
    kept, busy = [], []
    for state in _states(A, [_tile(B, j, k, R, C) for j, k in places], [j for j, _ in places], R, C):
        for out in state.outputs:
            column = places[out.tile][1] + out.column
            if column < K:
                product[out.row][column] += out.value
        busy.append(state.busy)
        if states:
            kept.append(state)
    return Run((R, C), I, len(places), tuple(map(tuple, product)), len(busy), tuple(busy), tuple(kept))


# ---- the machine -----------------------------------------------------------------------------------------------------------


def _states(A: Matrix, tiles: Sequence[Matrix], starts: Sequence[int], R: int, C: int) -> Iterator[State]:
    """Cycle after cycle, from local rules only, until the last sum has left."""
    I, J = len(A), len(A[0])
    begin = [R + t * max(I, R) for t in range(len(tiles))]  # when the first number of a tile enters the first row
    loads = [b - R if t == 0 else begin[t - 1] for t, b in enumerate(begin)]  # when its first weight enters
    left = len(tiles) * I * C

    def everywhere(value: Any) -> list[list[Any]]:
        return [[value] * C for _ in range(R)]

    cells = everywhere(Cell())
    first = everywhere(False)  # whether the number that passes is a tile's first, so that weights change
    target = everywhere(0)  # the row to which a moving weight goes
    cycle = 0
    while left:
        now, now_first, now_target = everywhere(None), everywhere(False), everywhere(0)
        outputs = []
        for r in range(R):
            for c in range(C):
                here = cells[r][c]
                if c:
                    beside = cells[r][c - 1]
                    row, number, starts_tile = beside.row, beside.number, first[r][c - 1]
                else:
                    row, number, starts_tile = _fed(A, starts, begin, cycle - r, r, I, J)
                tile, weight, waiting = here.tile, here.weight, here.waiting
                if starts_tile:
                    weight, waiting, tile = waiting, None, 0 if tile is None else tile + 1
                above = cells[r - 1][c].total if r else 0
                total = above + weight * number if row is not None else None
                moving, to = (cells[r - 1][c].moving, target[r - 1][c]) if r else _loaded(tiles, loads, cycle - c, c, R)
                if moving is not None and to == r:
                    moving, waiting = None, moving
                now[r][c] = Cell(weight, waiting, moving, row, number, total, tile)
                now_first[r][c], now_target[r][c] = starts_tile, to
                if r == R - 1 and row is not None and tile is not None:
                    outputs.append(Output(tile, row, c, total))
        cells, first, target = now, now_first, now_target
        left -= len(outputs)
        yield State(cycle, tuple(map(tuple, cells)), tuple(outputs))
        cycle += 1


def _fed(A: Matrix, starts: Sequence[int], begin: Sequence[int], at: int, r: int, I: int, J: int) -> tuple[int | None, Any, bool]:
    """What enters row r of the array: row of A, number, whether it is a tile's first."""
    for t, b in enumerate(begin):
        if b <= at < b + I:
            j = starts[t] + r
            return at - b, A[at - b][j] if j < J else 0, at == b
    return None, None, False


def _loaded(tiles: Sequence[Matrix], loads: Sequence[int], at: int, c: int, R: int) -> tuple[Any, int]:
    """The weight that enters column c from above, and the row it is for: the last row's comes first."""
    for tile, b in zip(tiles, loads, strict=True):
        if b <= at < b + R:
            return tile[R - 1 - (at - b)][c], R - 1 - (at - b)
    return None, 0


def _tile(B: Matrix, j: int, k: int, R: int, C: int) -> Matrix:
    """R × C numbers of B from (j, k) on, zeros beyond its edge."""
    J, K = len(B), len(B[0])
    return [[B[j + r][k + c] if j + r < J and k + c < K else 0 for c in range(C)] for r in range(R)]


def _shape(dim: int | tuple[int, int]) -> tuple[int, int]:
    R, C = (dim, dim) if isinstance(dim, int) else dim
    if min(R, C) < 1:
        raise SizeError(f"an array has at least one row and one column of cells; found {R} x {C}")
    return R, C


def _sizes(A: Matrix, B: Matrix) -> tuple[int, int, int]:
    widths = [{len(row) for row in m} for m in (A, B)]
    if any(len(w) != 1 or 0 in w for w in widths):
        raise SizeError(f"a matrix has rows of one length, at least one number; found lengths {[sorted(w) for w in widths]}")
    (J,), (K,) = widths
    if len(B) != J:
        raise SizeError(f"A[I, J] · B[J, K] share J: A has {J} columns, B has {len(B)} rows")
    return len(A), J, K
