"""Ways through a slice: which chips are neighbours, how many links lie between two, how far the farthest is.

Chips sit in a grid; each axis of it is a ring (the ends are joined) or a line. A message crosses one link a hop and takes a shortest
way, axis by axis, so hops of the axes add up. A twisted torus is not modelled.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalebook.errors import TopologyError
from scalebook.topologies import Topology, topology

Place = tuple[int, ...]


@dataclass(frozen=True)
class Grid:
    """Chips in a grid, and which of its axes close into rings. Made by `grid_of(…)`."""

    shape: tuple[int, ...]
    wraparound: tuple[bool, ...]

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.wraparound) or not all(isinstance(n, int) and n > 0 for n in self.shape):
            raise TopologyError(
                f"a grid has a positive size and a yes or no of wraparound per axis; found {self.shape} and {self.wraparound}"
            )

    @property
    def chips(self) -> int:
        """Chips of the grid: the product of its shape."""
        return math.prod(self.shape)

    def places(self) -> list[Place]:
        """The coordinates of every chip, the first axis slowest."""
        return list(itertools.product(*map(range, self.shape)))


def grid_of(machine: Grid | Topology | str, wraparound: bool | Sequence[bool] | None = None) -> Grid:
    """The grid of one slice, with the wraparound it has, or, to compare, with all axes (or those given) closed or open.

    >>> grid_of("v5e:8x16")
    Grid(shape=(8, 16), wraparound=(False, True))
    >>> diameter(grid_of("v5e:4x4")), diameter(grid_of("v5e:4x4", wraparound=True))
    (6, 4)

    Raises TopologyError for GPUs: a switch joins them, and there are no hops to count.
    """
    if isinstance(machine, Grid):
        shape, closed = machine.shape, machine.wraparound
    else:
        t = topology(machine)
        if t.chip.kind != "tpu":
            raise TopologyError(
                f"{t.spec}: GPUs are joined by switches, every pair alike; hops are counted on TPU slices: 'v5e:4x4'"
            )
        shape, closed = t.shape, t.wraparound
    if wraparound is not None:
        closed = (wraparound,) * len(shape) if isinstance(wraparound, bool) else tuple(wraparound)
    return Grid(shape, closed)


def _place(grid: Grid, place: Sequence[int]) -> Place:
    """Coordinates that were checked."""
    at = tuple(place)
    if len(at) != len(grid.shape) or not all(isinstance(i, int) and 0 <= i < n for i, n in zip(at, grid.shape, strict=True)):
        shape = "x".join(map(str, grid.shape))
        last = tuple(n - 1 for n in grid.shape)
        raise TopologyError(f"there is no chip {at} in a slice {shape}: its chips are {(0,) * len(last)} to {last}")
    return at


def hops(machine: Grid | Topology | str, a: Sequence[int], b: Sequence[int]) -> int:
    """Links on a shortest way from chip a to chip b: the sum over axes of d on a line, min(d, n − d) on a ring of n.

    >>> hops("v5e:16x16", (0, 0), (15, 8)), hops("v5e:8x8", (0, 0), (7, 4))
    (9, 11)

    Raises TopologyError for coordinates that the slice does not have.
    """
    grid = grid_of(machine)
    return sum(
        _along(n, wraps, i, j)
        for n, wraps, i, j in zip(grid.shape, grid.wraparound, _place(grid, a), _place(grid, b), strict=True)
    )


def _along(n: int, wraps: bool, i: int, j: int) -> int:
    d = abs(i - j)
    return min(d, n - d) if wraps else d


def neighbours(machine: Grid | Topology | str, chip: Sequence[int]) -> tuple[Place, ...]:
    """The chips one link away: two per ring, one or two per line, none on an axis of one chip.

    >>> neighbours("v5e:16x16", (0, 0))
    ((1, 0), (15, 0), (0, 1), (0, 15))
    >>> neighbours("v5e:4x4", (0, 0))
    ((1, 0), (0, 1))
    """
    grid = grid_of(machine)
    at = _place(grid, chip)
    found: dict[Place, None] = {}
    for axis, (n, wraps) in enumerate(zip(grid.shape, grid.wraparound, strict=True)):
        for step in (1, -1):
            i = at[axis] + step
            if wraps or 0 <= i < n:
                found[(*at[:axis], i % n, *at[axis + 1 :])] = None
    found.pop(at, None)
    return tuple(found)


def distances(machine: Grid | Topology | str, start: Sequence[int]) -> tuple[int, ...]:
    """Hops from one chip to every chip, in the order of `Grid.places()`.

    >>> distances("v5e:2x4", (0, 0))
    (0, 1, 2, 3, 1, 2, 3, 4)
    """
    grid = grid_of(machine)
    at = _place(grid, start)
    rows = [[_along(n, wraps, i, j) for j in range(n)] for n, wraps, i in zip(grid.shape, grid.wraparound, at, strict=True)]
    return tuple(map(sum, itertools.product(*rows)))


def diameter(machine: Grid | Topology | str) -> int:
    """Hops between the two chips that are farthest apart: the sum over axes of n − 1 on a line, ⌊n/2⌋ on a ring.

    >>> diameter("v5e:16x16"), diameter("v5e:8x8"), diameter("v5p:16x20x28")
    (16, 14, 32)
    """
    grid = grid_of(machine)
    return sum(n // 2 if wraps else n - 1 for n, wraps in zip(grid.shape, grid.wraparound, strict=True))


def mean_hops(machine: Grid | Topology | str, start: Sequence[int] | None = None) -> float:
    """Mean hops to another chip: from `start`, or over all pairs of different chips; 0 where there is one chip only.

    Over all pairs of an axis, a chip and itself included: (n² − 1)/(3n) on a line; n/4 on a ring of even n, (n² − 1)/(4n) of odd n.
    The axes add up, and the pairs of a chip with itself are taken out: × chips/(chips − 1).

    >>> mean_hops("v5e:4x4", (0, 0)), round(mean_hops("v5e:4x4"), 2), round(mean_hops(grid_of("v5e:4x4", wraparound=True)), 2)
    (3.2, 2.67, 2.13)
    """
    grid = grid_of(machine)
    if grid.chips == 1:
        return 0.0
    if start is not None:
        return sum(distances(grid, start)) / (grid.chips - 1)
    total = 0.0
    for n, wraps in zip(grid.shape, grid.wraparound, strict=True):
        total += (n * n - n % 2) / (4 * n) if wraps else (n * n - 1) / (3 * n)
    return total * grid.chips / (grid.chips - 1)


def links(machine: Grid | Topology | str) -> int:
    """Cables of a slice, each counted once: a ring of n has n (one of 2 chips or fewer n − 1), a line n − 1.

    >>> links("v5e:16x16"), links("v5e:4x4"), links("v5p:4x4x4")
    (512, 24, 192)
    """
    grid = grid_of(machine)
    total = 0
    for n, wraps in zip(grid.shape, grid.wraparound, strict=True):
        total += grid.chips // n * (n if wraps and n > 2 else n - 1)
    return total
