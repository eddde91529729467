"""One array split over a mesh: left the array with its cuts, right each device with the block it holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalebook.figures import hooks
from scalebook.figures.array_shape import Rect, Shape
from scalebook.figures.array_words import coordinate_name, describe, label, mesh_words, size_words, slab_words
from scalebook.figures.svg import Picture, escape, fill, g, hatch, line, raw_text, rect, stroke, text, text_width

__all__ = ["describe", "draw", "label"]

GRID = 16  # dimensions up to this size show their cells
SLABS = 8  # of a first dimension that is larger, a slab is what lies between two cuts


def draw(view: Mapping[str, Any], width: float) -> Picture:
    """Array and mesh side by side where there is room, else the mesh below."""
    sizes = [d["size"] for d in view["dims"]]
    narrow = width < 560
    shape = Shape.fit(sizes, 176 if narrow else 200 if len(sizes) < 3 else 220, 28 if len(sizes) == 3 else 0, _depth(view))
    left, top = _margin(view), (62.0 if len(sizes) < 3 else 84.0) + (0 if view["bytes"] is None else 10)
    body = [
        _notation(view["spec"], view, 0, 16),
        _dimensions(view, shape, left, top),
        g(_array(view, shape), transform=f"translate({left:g},{top:g})"),
    ]
    if view["bytes"] is not None:
        body.append(text(0, 33, size_words(view), cls="sb-note"))
    end = top + shape.size[1]
    beside = left + shape.size[0] + 34
    _, columns, panels = _grid(view)
    label = _label_width(view)
    across = panels if panels * columns <= 4 else 1
    tile = min(92.0, (width - beside - label - 12 * (across - 1)) / (columns * across))
    if narrow or tile < 44:
        x, y = label, end + 62
        across = panels if (width - label - 12 * (panels - 1)) / (columns * panels) >= 64 else 1
        tile = min(92.0, (width - label - 12 * (across - 1)) / (columns * across))
        head = end + 28
    else:
        x, y, head = beside + label, 62.0, 16.0
    lines = _fold(columns, tile, width - x)
    body.append(text(x - (label if narrow or tile < 44 or head > 16 else 0), head, mesh_words(view, width - x), cls="sb-note"))
    drawn, bottom = _mesh(view, shape, x, y, tile if lines == 1 else 44.0, across, lines)
    body.append(drawn)
    return Picture(width, max(end, bottom) + 8, "".join(body))


def _margin(view: Mapping[str, Any]) -> float:
    """Room for the name of the rows at the left of the array."""
    if len(view["dims"]) == 1:
        return 6
    row = view["dims"][-2]
    return max(30.0, text_width(row["letter"] + "".join(row["axes"]), 16, bold=True) + 16)


def _grid(view: Mapping[str, Any]) -> tuple[int, int, int]:
    """Rows, columns and panels of devices: the last axis runs across, the one before it down, a third makes panels."""
    sizes = [a["size"] for a in view["mesh"]]
    panels, rows, columns = [1, 1, 1, *sizes][-3:]
    return rows, columns, panels


def _fold(columns: int, tile: float, room: float) -> int:
    """Into how many lines a row of devices must be folded so that a tile stays large enough to read."""
    return 1 if tile >= 30 else math.ceil(columns / max(1, math.floor(room / 44)))


def _label_width(view: Mapping[str, Any]) -> float:
    if len(view["mesh"]) < 2:
        return 4
    axis = view["mesh"][-2]
    return text_width(f"{coordinate_name(axis['axis'])}={axis['size'] - 1}", bold=True) + 14


def _depth(view: Mapping[str, Any]) -> int:
    """How many places of the first of three dimensions a slab stands for."""
    dims = view["dims"]
    return dims[0]["size"] // (len(dims[0]["cuts"]) + 1) if len(dims) == 3 and dims[0]["size"] > SLABS else 1


# ---- the array ----------------------------------------------------------------------------------------------------------


def _array(view: Mapping[str, Any], shape: Shape) -> list[str]:
    mine = view["devices"][view["device"]]
    parts, seen = [], set()
    for d in view["devices"]:
        if d["number"] in seen:
            continue
        seen.add(d["number"])
        strong = d["number"] == mine["number"]
        parts += [_block(r, d, view, strong=strong) for r in shape.rects(d["block"])]
    parts += _cells(view, shape)
    parts += _cut_lines(view, shape)
    parts += [rect(*r, cls="sb-chosen") for r in shape.rects(mine["block"])]
    return parts + (list(_choices(view, shape)) if view.get("live") else [])


def _choices(view: Mapping[str, Any], shape: Shape) -> Iterable[str]:
    """Over each block a place that chooses a device which holds it."""
    first = {d["number"]: i for i, d in reversed([*enumerate(view["devices"])])}
    first[view["devices"][view["device"]]["number"]] = view["device"]  # what is chosen stays so
    for device in first.values():
        for r in shape.rects(view["devices"][device]["block"]):
            yield rect(*r, fill="none", pointer_events="all", data_set=hooks.sets(device=device))


def _colour(number: int) -> str:
    return f"cat-{number % 8 + 1}"


def _block(r: Rect, device: Mapping[str, Any], view: Mapping[str, Any], *, strong: bool) -> str:
    """A block in its colour; where more than eight differ, the next eight are pale; a term of a pending sum is hatched."""
    name = _colour(device["number"])
    if view["terms"] > 1:
        return rect(*r, style=fill("paper")) + hatch(*r, name, gap=6)
    pale = device["number"] // 8 % 2
    cls = ("sb-rest" if strong else "sb-pale") if pale else None if strong else "sb-rest"
    return rect(*r, style=fill(name), cls=cls)


def _cells(view: Mapping[str, Any], shape: Shape) -> Iterable[str]:
    if max(shape.rows, shape.columns) > GRID:
        return
    for k in range(shape.slabs):
        x, y = shape.slab(k)
        for i in range(1, shape.rows):
            at = y + i * shape.high / shape.rows
            yield line(x, at, x + shape.wide, at, cls="sb-cell")
        for i in range(1, shape.columns):
            at = x + i * shape.wide / shape.columns
            yield line(at, y, at, y + shape.high, cls="sb-cell")


def _cut_lines(view: Mapping[str, Any], shape: Shape) -> Iterable[str]:
    """Cuts in the colour of their axis, a little longer than the array; cuts of slabs lie in the gaps between them."""
    colours = {a["axis"]: a["colour"] for a in view["mesh"]}
    dims = view["dims"]
    for k in range(shape.slabs):
        x, y = shape.slab(k)
        for cut in dims[-1]["cuts"]:
            at = x + cut["at"] * shape.wide / shape.columns
            yield line(at, y - 5, at, y + shape.high + 5, cls="sb-cut", style=stroke(colours[cut["axis"]]))
        if len(dims) > 1:
            for cut in dims[-2]["cuts"]:
                at = y + cut["at"] * shape.high / shape.rows
                yield line(x - 5, at, x + shape.wide + 5, at, cls="sb-cut", style=stroke(colours[cut["axis"]]))


def _dimensions(view: Mapping[str, Any], shape: Shape, left: float, top: float) -> str:
    """The dimensions' names with the axes that split them: columns above, rows at the left, slabs each over its own."""
    dims = view["dims"]
    colours = {a["axis"]: a["colour"] for a in view["mesh"]}
    made = [_subscripted(dims[-1]["letter"], dims[-1]["axes"], colours, left + shape.wide / 2, top - 12, "middle")]
    if len(dims) > 1:
        made.append(_subscripted(dims[-2]["letter"], dims[-2]["axes"], colours, left - 12, top + shape.high / 2 + 5, "end"))
    if len(dims) == 3:
        made[0] = _subscripted(dims[-1]["letter"], dims[-1]["axes"], colours, left + shape.wide / 2, top - 30, "middle")
        name = escape(dims[0]["letter"]) + _axes(dims[0]["axes"], colours)
        plain = dims[0]["letter"] + "".join(dims[0]["axes"])
        for k in range(shape.slabs):
            x, y = shape.slab(k)
            words = slab_words(k, shape.depth, plain, shape.wide + shape.gap - 8).replace(plain, name, 1)
            made.append(raw_text(left + x + shape.wide / 2, top + y - 11, words, cls="sb-note", text_anchor="middle"))
    return "".join(made)


def _subscripted(letter: str, axes: Sequence[str], colours: Mapping[str, str], x: float, y: float, anchor: str) -> str:
    return raw_text(x, y, escape(letter) + _axes(axes, colours), cls="sb-dim", text_anchor=anchor)


def _axes(axes: Sequence[str], colours: Mapping[str, str]) -> str:
    """Axes as a subscript, each in its colour."""
    if not axes:
        return ""
    apart = "," if any(len(a) > 1 for a in axes) else ""
    inner = apart.join(f'<tspan style="{fill(colours[a] + "-text")}">{escape(a)}</tspan>' for a in axes)
    return f'<tspan dy="3" style="font-size:12px">{inner}</tspan><tspan dy="-3">\u200a</tspan>'


def _notation(pieces: Iterable[Mapping[str, Any]], view: Mapping[str, Any], x: float, y: float) -> str:
    colours = {a["axis"]: a["colour"] for a in view["mesh"]}
    body = "".join(escape(p["text"]) + _axes(p.get("axes", ()), colours) for p in pieces)
    return raw_text(x, y, body, cls="sb-dim")


# ---- the mesh -----------------------------------------------------------------------------------------------------------


def _mesh(view: Mapping[str, Any], shape: Shape, x: float, y: float, tile: float, across: int, lines: int) -> tuple[str, float]:
    """All devices; returns the drawing and where it ends."""
    rows, columns, panels = _grid(view)
    axes = view["mesh"]
    per_line = math.ceil(columns / lines)
    deep = rows * lines * tile + (18 if lines > 1 else 0) * (rows * lines - 1)
    step_y = deep + (46 if panels > 1 else 28)
    lift = 18 if panels > 1 else 0
    parts, bottom = [], y
    small = _small_shape(view, tile - 8)
    empty = _empty_tile(small, tile - 8)  # the same for all
    for p in range(panels):
        px, py = x + (p % across) * (per_line * tile + 12), y + lift + (p // across) * step_y
        if panels > 1:
            parts.append(_coordinate(axes[0], p, px, py - 28, "start"))
        for r in range(rows):
            for c in range(columns):
                tx = px + (c % per_line) * tile
                ty = py + (r * lines + c // per_line) * (tile + (18 if lines > 1 else 0))
                if axes and (r == 0 or lines > 1):
                    words = _coordinate(axes[-1], c, tx + tile / 2 - 4, ty - 9, "middle", short=tile < 48)
                    parts.append(words)
                index = (p * rows + r) * columns + c
                chooses = hooks.sets(device=index) if view.get("live") else None
                drawn = _tile(view, small, index, tile - 8)
                parts.append(g([empty, *drawn], transform=f"translate({tx:.1f},{ty:.1f})", data_set=chooses))
                bottom = max(bottom, ty + tile - 8)
            if len(axes) > 1 and p % across == 0:
                parts.append(_coordinate(axes[-2], r, px - 8, py + (r + 0.5) * tile * lines, "end"))
    return "".join(parts), bottom


def _coordinate(axis: Mapping[str, Any], i: int, x: float, y: float, anchor: str, *, short: bool = False) -> str:
    words = str(i) if short and i else f"{coordinate_name(axis['axis'])}={i}"
    return text(
        x, y, words, text_anchor=anchor, cls="sb-strong", style=fill(f"{axis['colour']}-text"), size=12 if short else None
    )


def _small_shape(view: Mapping[str, Any], size: float) -> Shape:
    inset = 9 if size > 50 else 5
    return Shape.fit([d["size"] for d in view["dims"]], size - 2 * inset, 4 if len(view["dims"]) == 3 else 0, _depth(view))


def _empty_tile(shape: Shape, size: float) -> str:
    """A device, and the outline of the array in small."""
    dx, dy = (size - shape.size[0]) / 2, (size - shape.size[1]) / 2
    w, high = shape.wide, shape.high
    outlines = (f"M{dx + x:.2f},{dy + y:.2f}h{w:.2f}v{high:.2f}h-{w:.2f}z" for x, y in map(shape.slab, range(shape.slabs)))
    return rect(0, 0, size, size, cls="sb-tile", rx=5) + f'<path d="{"".join(outlines)}" class="sb-ghost"/>'


def _tile(view: Mapping[str, Any], shape: Shape, index: int, size: float) -> list[str]:
    """On a device, the block of the array that lies there."""
    device = view["devices"][index]
    chosen = index == view["device"]
    same = not chosen and index in view["holders"]
    dx, dy = (size - shape.size[0]) / 2, (size - shape.size[1]) / 2
    parts = [rect(0, 0, size, size, cls="sb-chosen" if chosen else "sb-same", rx=5)] if chosen or same else []
    rects = [(x + dx, y + dy, w, h) for x, y, w, h in shape.rects(device["block"])]
    parts += [_block(r, device, view, strong=chosen or same) for r in rects]
    if view["terms"] > 1:
        words = f"{device['term'] + 1} of {view['terms']}"
        words = words if text_width(words, 12) + 6 <= size else str(device["term"] + 1)
        parts.append(text(size / 2, size / 2 + 4, words, size=12, text_anchor="middle", cls="sb-halo"))
    return parts
