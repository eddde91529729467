"""One plane of a slice: its chips as tiles with their hops, the links between them, and what marks a chip and its neighbours.

A reader moves from chip to chip, so what does not depend on the chip (links, places, what can be pointed at) is kept from the last
drawings, and tiles are written out without a call for each attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from scalebook.figures.hooks import sets
from scalebook.figures.svg import Point, escape, h, number, rect, text, text_width

DARKEST, PALEST = 0.42, 0.04  # of the tint under a number, which must stay readable in both themes


@dataclass(frozen=True)
class Cells:
    """Sizes of a plane's drawing: rows and columns of chips, pixels from chip to chip and of a chip, and the margins around."""

    rows: int
    columns: int
    step: float
    left: float
    top: float

    @property
    def chip(self) -> float:
        """Side of a chip's tile."""
        return min(40.0, self.step * (0.58 if self.step >= 34 else 0.64 if self.step >= 26 else 0.8))

    @property
    def around(self) -> bool:
        """Whether a wraparound link has room to run back between two rows; else its two ends are drawn."""
        return self.step - self.chip >= 10

    @property
    def margin(self) -> float:
        """Room for wraparound links at the right and bottom, and the least at the left and top."""
        return max(8.0, self.chip / 2 + 14 - self.step / 2)

    @property
    def size(self) -> Point:
        """Width and height of the plane with its margins."""
        return self.left + self.columns * self.step + self.margin, self.top + self.rows * self.step + self.margin

    @property
    def corner(self) -> int:
        """Radius of a tile's corners."""
        return 5 if self.chip >= 22 else 3

    def x(self, column: float) -> float:
        """The middle of a column."""
        return self.left + (column + 0.5) * self.step

    def y(self, row: float) -> float:
        """The middle of a row."""
        return self.top + (row + 0.5) * self.step


# ---- links ---------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def links(cells: Cells, wraps: tuple[bool, ...]) -> str:
    """Every link between neighbours, from tile to tile, and those that close an axis, paler: one path each, so a redraw is quick."""
    half = cells.chip / 2
    left, right = _edges([cells.x(c) for c in range(cells.columns)], half)
    over, under = _edges([cells.y(r) for r in range(cells.rows)], half)
    xs, ys = [number(cells.x(c)) for c in range(cells.columns)], [number(cells.y(r)) for r in range(cells.rows)]
    drawn = [f"M{right[c]},{y}H{left[c + 1]}" for y in ys for c in range(cells.columns - 1)]
    drawn += [f"M{x},{under[r]}V{over[r + 1]}" for x in xs for r in range(cells.rows - 1)]
    made = h("path", {"d": "".join(drawn), "fill": "none", "cls": "sb-link"}) if drawn else ""
    closing = [_closing(cells, r, upright=False) for r in range(cells.rows)] if wraps[1] and cells.columns > 1 else []
    closing += [_closing(cells, c, upright=True) for c in range(cells.columns)] if wraps[0] and cells.rows > 1 else []
    if closing:
        made += h("path", {"d": "".join(closing), "fill": "none", "cls": "sb-link sb-wrap", "stroke_linejoin": "round"})
    return made


def _edges(middles: Sequence[float], half: float) -> tuple[list[str], list[str]]:
    """Where tiles begin and end."""
    return [number(m - half) for m in middles], [number(m + half) for m in middles]


def _closing(cells: Cells, at: int, *, upright: bool) -> str:
    """The wraparound link of a row or column: from the last chip back between two rows to the first one; where there is no room, its
    two ends."""
    first, last = (cells.y(0), cells.y(cells.rows - 1)) if upright else (cells.x(0), cells.x(cells.columns - 1))
    across = cells.x(at) if upright else cells.y(at)
    half, out = cells.chip / 2, cells.chip / 2 + (10 if cells.around else 6)
    if cells.around:
        aside = across - cells.step * 0.44
        ways = [[(last + half, across), (last + out, across), (last + out, aside), (first - out, aside), (first - out, across)]]
        ways[0].append((first - half, across))
    else:
        ways = [[(first - half, across), (first - out, across)], [(last + half, across), (last + out, across)]]
    turned = [[(b, a) for a, b in way] for way in ways] if upright else ways
    return "".join("M" + "L".join(f"{number(x)},{number(y)}" for x, y in way) for way in turned)


@lru_cache(maxsize=512)
def own_links(cells: Cells, here: tuple[int, int], near: tuple[tuple[int, int], ...]) -> str:
    """The links from a chip to its neighbours in the plane, each a (row, column)."""
    half, (row, column) = cells.chip / 2, here
    d = ""
    for r, c in near:
        if abs(r - row) + abs(c - column) > 1:  # the first and the last of an axis
            d += _closing(cells, column if r != row else row, upright=r != row)
        elif r == row:
            d += f"M{number(cells.x(min(c, column)) + half)},{number(cells.y(r))}H{number(cells.x(max(c, column)) - half)}"
        else:
            d += f"M{number(cells.x(c))},{number(cells.y(min(r, row)) + half)}V{number(cells.y(max(r, row)) - half)}"
    return h("path", {"d": d, "fill": "none", "cls": "sb-own", "stroke_linejoin": "round"}) if d else ""


# ---- chips ---------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _tiles(cells: Cells) -> tuple[tuple[str, str], ...]:
    """For each chip of a plane the beginnings of its tile and of the number in it."""
    side, letters = number(cells.chip), 14 if cells.chip >= 30 else 12
    box = f'width="{side}" height="{side}" rx="{cells.corner}"'
    words = f'class="sb-strong" text-anchor="middle" style="font-size:{letters}px"'
    return tuple(
        (
            f'<rect x="{number(cells.x(c) - cells.chip / 2)}" y="{number(cells.y(r) - cells.chip / 2)}" {box}',
            f'<text x="{number(cells.x(c))}" y="{number(cells.y(r) + 4.5)}" {words}>',
        )
        for r in range(cells.rows)
        for c in range(cells.columns)
    )


def chips(cells: Cells, hops: Sequence[int], farthest: int, start: int | None) -> Iterator[str]:
    """The tiles of a plane with their hops, darker where they are fewer; `start`: which of them hops are counted from."""
    tints = [number(DARKEST - (DARKEST - PALEST) * (n - 1) / max(1, farthest - 1)) for n in range(farthest + 1)]
    for i, ((box, words), n) in enumerate(zip(_tiles(cells), hops, strict=True)):
        if i == start:
            yield f'{box} class="sb-source"/>{_start_words(cells, i)}'
        else:
            yield f'{box} class="sb-hop" fill-opacity="{tints[n]}"/>{words}{n}</text>'


def _start_words(cells: Cells, i: int) -> str:
    words = "from" if text_width("from", 12) + 4 <= cells.chip else "0"
    size = 12 if words == "from" or cells.chip < 30 else 14
    x, y = cells.x(i % cells.columns), cells.y(i // cells.columns)
    return text(x, y + 4.5, words, cls="sb-on-source", text_anchor="middle", size=size)


@lru_cache(maxsize=1024)
def outline(cells: Cells, row: int, column: int) -> str:
    """The mark of a neighbour."""
    side = cells.chip + 3
    return rect(cells.x(column) - side / 2, cells.y(row) - side / 2, side, side, cls="sb-chosen", rx=cells.corner + 1)


@lru_cache(maxsize=64)
def hits(cells: Cells, plane: int, whole: tuple[int, ...]) -> str:
    """What makes each chip of a plane one that can be pointed at: its place and the room around it, without gaps.

    `whole` is the shape of the slice with its axes of one chip; the value that is set is the chip's coordinates, "1,2".
    """
    side, made = number(cells.step), []
    shown = [i for i, n in enumerate(whole) if n > 1]
    for r in range(cells.rows):
        for c in range(cells.columns):
            at = [0] * len(whole)
            for axis, value in zip(reversed(shown), (c, r, plane), strict=False):
                at[axis] = value
            hook = escape(sets(chip=",".join(map(str, at))))
            x, y = number(cells.left + c * cells.step), number(cells.top + r * cells.step)
            box = f'x="{x}" y="{y}" width="{side}" height="{side}"'
            made.append(f'<rect {box} fill="none" pointer-events="all" data-set="{hook}"/>')
    return "".join(made)
