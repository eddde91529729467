"""How an array of one to three dimensions lies on paper, and where in it a block is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Rect = tuple[float, float, float, float]


@dataclass(frozen=True)
class Shape:
    """How an array of one to three dimensions lies on paper: slabs (the first of three dimensions) of rows and columns."""

    slabs: int
    rows: int
    columns: int
    wide: float
    high: float
    gap: float
    depth: int = 1  # places of the first of three dimensions in a slab

    @classmethod
    def fit(cls, sizes: Sequence[int], side: float, gap: float, depth: int = 1) -> Shape:
        """The largest shape within a square; one cell is as high as wide while sizes are alike."""
        slabs, rows, columns = [1, 1, 1, *sizes][-3:]
        slabs //= depth
        per_row = math.ceil(math.sqrt(slabs))
        room = (side - gap * (per_row - 1)) / per_row
        ratio = min(max(columns / rows, 0.5), 2.0) if rows > 1 else 0
        wide, high = (room, room / ratio) if ratio >= 1 else (room * ratio, room)
        if rows == 1:
            wide, high = room, max(room / max(columns, 5), 9.0)
        return cls(slabs, rows, columns, wide, high, gap, depth)

    def slab(self, k: int) -> tuple[float, float]:
        """Where a slab begins."""
        per_row = math.ceil(math.sqrt(self.slabs))
        return (k % per_row) * (self.wide + self.gap), (k // per_row) * (self.high + self.gap)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the whole."""
        per_row = math.ceil(math.sqrt(self.slabs))
        down = math.ceil(self.slabs / per_row)
        return per_row * self.wide + (per_row - 1) * self.gap, down * self.high + (down - 1) * self.gap

    def rects(self, block: Sequence[Sequence[int]]) -> list[Rect]:
        """The rectangles, one a slab, that a block covers."""
        (s1, s2), (r1, r2), (c1, c2) = [(0, self.depth), (0, 1), (0, 1), *((b[0], b[1]) for b in block)][-3:]
        cw, ch = self.wide / self.columns, self.high / self.rows
        at = [self.slab(k) for k in range(s1 // self.depth, s2 // self.depth)]
        return [(x + c1 * cw, y + r1 * ch, (c2 - c1) * cw, (r2 - r1) * ch) for x, y in at]
