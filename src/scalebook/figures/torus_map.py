"""A slice of TPUs from above: chips as tiles, links between them, hops from one chip; 3D slices plane by plane."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from scalebook.figures.svg import Picture, escape, fill, g, line, raw_text, rect, stroke, text, text_width
from scalebook.figures.torus_plane import Cells, chips, hits, links, outline, own_links
from scalebook.figures.torus_words import describe, distance_words, grid_words, label, on_words
from scalebook.units import plural

__all__ = ["describe", "draw", "label"]

LEVEL = 20  # pixels of one row of brackets
GAP = 20  # between planes
View = Mapping[str, Any]


def draw(view: View, width: float) -> Picture:
    """The grids side by side where there is room, else one below the other; the planes of a 3D slice in lines."""
    several = len(view["grids"])
    rows, columns = ([1, *view["shape"]])[-2:]
    side = several == 2 and len(view["shape"]) < 3 and width >= 560 and (width - 40) / 2 / columns >= 24
    room = (width - 40) / 2 if side else width
    most = (820.0 if side or several == 1 else 344.0) / rows  # no taller than a screen
    body, x, y, bottom = [], 0.0, 0.0, 0.0
    if view["mesh"]:
        drawn, y = _mesh_words(view, width)
        body.append(drawn)
    top = y
    for grid in view["grids"]:
        drawn, high = _grid(view, grid, room, min(64.0, most))
        body.append(g([drawn], transform=f"translate({x:g},{y:g})"))
        bottom = max(bottom, y + high)
        x, y = (x + room + 40, top) if side else (x, y + high + 14)
    return Picture(width, bottom, "".join(body))


def _grid(view: View, grid: View, room: float, most: float) -> tuple[str, float]:
    """One grid with its words; returns the drawing and its height."""
    parts = [text(0, 14, grid_words(view, grid)), text(0, 32, distance_words(view, grid), cls="sb-note")]
    planes, rows, columns = ([1, 1, *view["shape"]])[-3:]
    y = 40.0
    if planes > 1:
        drawn, high = _strip(view, grid, room, planes)
        parts.append(g([drawn], transform=f"translate(0,{y:g})"))
        y += high + 6
    across, cells = _fit(view, rows, columns, planes, room, most, tight=len(view["grids"]) > 1)
    wide, high = cells.size
    head = 20 if planes > 1 else 0
    for p in range(planes):
        px, py = (p % across) * (wide + (GAP if room > 480 else 12)), y + (p // across) * (high + head)
        inside = _plane(view, grid, cells, p)
        if head:
            inside = text(cells.left, 14, f"plane {p}", cls="sb-note") + g([inside], transform=f"translate(0,{head})")
        parts.append(g([inside], transform=f"translate({px:.1f},{py:.1f})"))
    bottom = y + math.ceil(planes / across) * (high + head)
    if len(view["grids"]) > 1 and planes == 1 and grid["cut"]["links"]:
        parts.append(g([_cut(view, grid, cells)], transform=f"translate(0,{y:g})"))
        bottom += 18
    return "".join(parts), bottom


def _cut(view: View, grid: View, cells: Cells) -> str:
    """A dashed line through the middle of an axis, beside the wraparound links of the other one, and how many links it crosses."""
    wide, high = cells.size
    style = f"{stroke('ink')};stroke-width:1.6;stroke-dasharray:6 4"
    aside = 0.43 * cells.step
    if grid["cut"]["along"] == len(view["shape"]) - 1:
        x = cells.x((cells.columns - 1) // 2) + aside
        drawn = line(x, cells.top - 4, x, high, style=style)
        middle = x
    else:
        y = cells.y((cells.rows - 1) // 2) + aside
        drawn = line(cells.left - 4, y, wide, y, style=style)
        middle = wide / 2
    words = f"the cut crosses {plural(grid['cut']['links'], 'link')}"
    return drawn + text(max(middle, text_width(words) / 2), high + 13, words, cls="sb-note", text_anchor="middle")


def _fit(view: View, rows: int, columns: int, planes: int, room: float, most: float, *, tight: bool) -> tuple[int, Cells]:
    """How many planes stand side by side, and the largest chips that fit."""
    return _fitted((rows, columns, planes), room, most, _bracket_room(view, -2), _bracket_room(view, -1), tight)


@lru_cache(maxsize=64)
def _fitted(shape: tuple[int, int, int], room: float, most: float, left: float, top: float, tight: bool) -> tuple[int, Cells]:
    rows, columns, planes = shape
    gap, tall = GAP if room > 480 else 12, 340 if tight else 640

    def cells(across: int) -> Cells:
        wide, high = (room - gap * (across - 1)) / across, tall / math.ceil(planes / across) - 20
        step, low = most, 18.5
        for _ in range(4):  # the margin depends on the step
            margin = Cells(rows, columns, step, left, top).margin
            deep = max(low, (high - max(top, margin) - margin) / rows) if planes > 1 else most
            step = min(most, deep, (wide - max(left, margin) - margin) / columns)
        return Cells(rows, columns, step, max(left, margin), max(top, margin))

    tries = [(n, cells(n)) for n in range(planes, 0, -1) if planes % n == 0]
    return next((t for least in (26.0, 18.5) for t in tries if t[1].step >= least), tries[-1])


# ---- chips and links ----------------------------------------------------------------------------------------------------


def _plane(view: View, grid: View, cells: Cells, plane: int) -> str:
    """The chips of a plane, with their links below them and the brackets of mesh axes beside."""
    wraps = ([False, *grid["wraps"]])[-2:]
    parts = [links(cells, tuple(wraps)), *_brackets(view, cells)]
    count = cells.rows * cells.columns
    if grid["hops"] is None:
        for r, c in itertools.product(range(cells.rows), range(cells.columns)):
            box = (cells.x(c) - cells.chip / 2, cells.y(r) - cells.chip / 2, cells.chip, cells.chip)
            at = ([plane, r, c])[-len(view["shape"]) :]
            parts.append(rect(*box, cls="sb-chip", rx=cells.corner) + _coordinates(view, cells.x(c), cells.y(r), cells.chip, at))
    else:
        here, row, column = _in_plane(view["from"])
        near = [(r, c) for p, r, c in map(_in_plane, grid["near"]) if p == plane]
        if here == plane:
            parts.append(own_links(cells, (row, column), tuple(near)))
        start = row * cells.columns + column if here == plane else None
        parts += chips(cells, grid["hops"][plane * count : (plane + 1) * count], grid["farthest"], start)
        parts += [outline(cells, r, c) for r, c in near]
    if view.get("live"):
        parts.append(hits(cells, plane, tuple(view["whole"])))
    return "".join(parts)


def _in_plane(at: Sequence[int]) -> tuple[int, int, int]:
    """The plane, row and column of a chip."""
    p, r, c = ([0, 0, *at])[-3:]
    return p, r, c


def _coordinates(view: View, x: float, y: float, size: float, at: Sequence[int]) -> str:
    """Where a chip is on the mesh, a number per mesh axis in its colour, where there is room for it."""
    axes = [a for a in view["mesh"] if a["pieces"]]
    last = ",".join(str(math.prod(p["size"] for p in a["pieces"]) - 1) for a in axes)
    if text_width(last, 12) + 3 > size:
        return ""
    found = []
    for axis in axes:
        i = 0
        for p in axis["pieces"]:
            i = i * p["size"] + at[p["along"]] // p["stride"] % p["size"]
        found.append((i, axis["colour"]))
    body = ",".join(f'<tspan style="{fill(colour + "-text")}">{i}</tspan>' for i, colour in found)
    return raw_text(x, y + 4.5, body, text_anchor="middle", style="font-size:12px")


def _strip(view: View, grid: View, room: float, planes: int) -> tuple[str, float]:
    """The planes of a 3D slice as a row, with the links from each to the next."""
    words = "from each plane to the next, chip by chip"
    top = _bracket_room(view, 0)
    step = min(56.0, (room - 24) / planes)
    cells = Cells(1, planes, step, 16, 24 + top)
    parts = [text(0, 14, words, cls="sb-note"), links(cells, (False, grid["wraps"][0]))]
    parts += _brackets(view, cells, along=0)
    for p in range(planes):
        x, y, size = cells.x(p), cells.y(0), cells.chip
        parts.append(rect(x - size / 2, y - size / 2, size, size, cls="sb-chip", rx=5))
        parts.append(text(x, y + 4.5, str(p), text_anchor="middle", size=12))
    return "".join(parts), cells.size[1]


# ---- mesh axes ----------------------------------------------------------------------------------------------------------


def _on(view: View, along: int) -> list[tuple[View, View]]:
    """The mesh axes on a dimension of the slice (counted from the end), with their pieces, innermost first."""
    dim = along if along >= 0 else len(view["shape"]) + along
    if dim < 0:
        return []
    found = [(m, p) for m in view["mesh"] for p in m["pieces"] if p["along"] == dim]
    return sorted(found, key=lambda mp: mp[1]["stride"])


def _bracket_room(view: View, along: int) -> float:
    """Pixels that the brackets of a dimension take."""
    on = _on(view, along)
    if along == -2:
        return sum(10 + text_width(m["axis"], bold=True) for m, _ in on) + (4 if on else 0)
    return LEVEL * len(on) + 6 if on else 0


def _brackets(view: View, cells: Cells, along: int | None = None) -> Iterator[str]:
    """Lines beside the rows and above the columns in the colour of the mesh axis that they belong to, one per group."""
    half = cells.chip / 2
    level = cells.top - 8.0
    for m, p in _on(view, -1 if along is None else along):
        span = p["size"] * p["stride"]
        for start in range(0, cells.columns, span):
            a, b = cells.x(start) - half, cells.x(start + span - 1) + half
            yield line(a, level, b, level, cls="sb-bracket", style=stroke(m["colour"]))
            if start == 0 or b - a >= text_width(m["axis"], bold=True) + 8:
                words = fill(m["colour"] + "-text")
                yield text((a + b) / 2, level - 5, m["axis"], cls="sb-strong", style=words, text_anchor="middle")
        level -= LEVEL
    if along is not None:
        return
    level = cells.left - 8.0
    for m, p in _on(view, -2):
        span = p["size"] * p["stride"]
        for start in range(0, cells.rows, span):
            a, b = cells.y(start) - half, cells.y(start + span - 1) + half
            yield line(level, a, level, b, cls="sb-bracket", style=stroke(m["colour"]))
            words = fill(m["colour"] + "-text")
            yield text(level - 5, (a + b) / 2 + 4.5, m["axis"], cls="sb-strong", style=words, text_anchor="end")
        level -= 10 + text_width(m["axis"], bold=True)


def _mesh_words(view: View, width: float) -> tuple[str, float]:
    """Where each mesh axis lies: a line, or more where the page is narrow."""
    lines: list[tuple[float, str]] = []
    for m in view["mesh"]:
        name = f"{m['axis']} = {m['size']}"
        head = f'<tspan font-weight="600" style="{fill(m["colour"] + "-text")}">{escape(name)}</tspan>'
        room, said = width - text_width(f"{name} ", bold=True), ""
        for word in f"on {on_words(view, m)}".split():
            if said and text_width(f"{said} {word}") > room:
                lines.append((0, f"{head} {escape(said)}") if head else (width - room, escape(said)))
                head, said = "", ""
            said = f"{said} {word}".strip()
        lines.append((0, f"{head} {escape(said)}") if head else (width - room, escape(said)))
    return "".join(raw_text(x, 14 + 18 * i, words) for i, (x, words) in enumerate(lines)), 18.0 * len(lines) + 10
