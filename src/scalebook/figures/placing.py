"""Finds a free place for a label: of its candidate places, the one that covers least of what is already drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from scalebook.figures.svg import Point


class Box(NamedTuple):
    """A rectangle by its edges, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The common area.

        >>> Box(0, 0, 10, 10).overlap(Box(8, 5, 20, 20))
        10
        """
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return wide * high if wide > 0 and high > 0 else 0

    def distance(self, point: Point) -> float:
        """From a point to the nearest point of the box.

        >>> Box(0, 0, 10, 10).distance((13, 14))
        5.0
        """
        x, y = point
        return math.hypot(max(self.left - x, 0, x - self.right), max(self.top - y, 0, y - self.bottom))


class Placer:
    """Boxes and lines already taken within a frame, and the choice of a place for the next label."""

    def __init__(self, frame: Box) -> None:
        self.frame = frame
        self.taken: list[Box] = []
        self.lines: list[tuple[float, float, float, float, float]] = []

    def block(self, box: Box) -> None:
        """Takes a box."""
        self.taken.append(box)

    def block_line(self, points: Sequence[Point], width: float = 6) -> None:
        """Takes a line of a width."""
        self.lines += [(x1, y1, x2, y2, width) for (x1, y1), (x2, y2) in pairwise(points)]

    def cost(self, box: Box) -> float:
        """About the area that a box would cover: of lines once, of other boxes four times, and what would leave the frame twenty times.

        >>> placer = Placer(Box(0, 0, 100, 100))
        >>> placer.block_line([(0, 50), (100, 50)], 2)
        >>> placer.cost(Box(10, 45, 30, 60)), placer.cost(Box(10, 60, 30, 70)), placer.cost(Box(-10, 60, 10, 70))
        (40.0, 0, 2000)
        """
        left, top, right, bottom = box
        inside = box.overlap(self.frame)
        total = 20 * ((right - left) * (bottom - top) - inside)
        for a, b, c, d in self.taken:
            if a < right and c > left and b < bottom and d > top:
                total += 4 * (min(c, right) - max(a, left)) * (min(d, bottom) - max(b, top))
        for x1, y1, x2, y2, width in self.lines:
            total += width * _length_inside(x1, y1, x2, y2, left, top, right, bottom)
        return total

    def place(self, boxes: Iterable[Box], near: Point | None = None) -> tuple[int, float]:
        """The index and cost of the best of several boxes, which is then taken; the first of equals, and those near a point, are preferred.

        >>> placer = Placer(Box(0, 0, 100, 100))
        >>> placer.block(Box(0, 0, 50, 50))
        >>> placer.place([Box(10, 10, 20, 20), Box(60, 10, 70, 20)])
        (1, 0)
        """
        best, least, chosen = -1, math.inf, None
        for i, box in enumerate(boxes):
            cost = self.cost(box)
            if near:
                cost += 0.4 * max(0.0, box.distance(near) - 16)
            if cost < least:
                best, least, chosen = i, cost, box
            if cost == 0:
                break
        if chosen is None:
            raise ValueError("a label needs at least one place to choose from")
        self.block(chosen)
        return best, least


def _length_inside(x1: float, y1: float, x2: float, y2: float, left: float, top: float, right: float, bottom: float) -> float:
    """The length of the part of a line that lies inside a box (Liang and Barsky)."""
    if max(x1, x2) < left or min(x1, x2) > right or max(y1, y2) < top or min(y1, y2) > bottom:
        return 0
    dx, dy = x2 - x1, y2 - y1
    enter, leave = 0.0, 1.0
    for step, low, high in ((dx, left - x1, right - x1), (dy, top - y1, bottom - y1)):
        if step == 0:
            continue  # the test above has shown that it lies between the edges
        near, far = (low / step, high / step) if step > 0 else (high / step, low / step)
        enter, leave = max(enter, near), min(leave, far)
    return math.hypot(dx, dy) * (leave - enter) if leave > enter else 0
