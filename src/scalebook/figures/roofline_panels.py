"""Roofs of several chips as small multiples: one chip a panel in colour, the others as faint company, all on the same axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scalebook.figures.placing import Box, Placer
from scalebook.figures.svg import (
    Picture,
    Point,
    Scale,
    circle,
    digits_or_power,
    fill,
    g,
    line,
    log_ticks,
    path,
    rect,
    shortened,
    stroke,
    text,
    text_width,
)  # fmt: skip
from scalebook.units import digits, percent, si

GUTTER, PLOT, HEAD = 18, 150, 54


def draw_panels(view: Mapping[str, Any], width: float, scales: Any) -> Picture:
    """The panels in rows; intensity is named once below, FLOPs/s once above."""
    panels = view["panels"]
    columns = min(len(panels), 4 if width >= 560 else 2)
    if len(panels) > 4 and width >= 560:
        columns = min(range(4, 2, -1), key=lambda c: (math.ceil(len(panels) / c), -len(panels) % c))
    left = 40.0
    each = (width - left - 6 - GUTTER * (columns - 1)) / columns
    body = [text(0, 12, "↑ FLOPs/s reached (log)", cls="sb-tick")]
    names = [p["name"] for p in sorted(panels[0]["points"], key=lambda p: p["intensity"]) if p["name"]]
    beside = True
    if names:
        words = f"{'the point' if len(names) == 1 else 'the points, left to right'}: {', '.join(names)}"
        beside = text_width(words, 12) + 170 < width
        words = shortened(words, width - 6, 12)
        body.append(
            text(width - 6 if beside else 0, 12 if beside else 30, words, cls="sb-tick", text_anchor="end" if beside else None)
        )
    high = 22.0 if beside else 40.0
    for row in range(math.ceil(len(panels) / columns)):
        top, bottom = high + HEAD, high + HEAD + PLOT
        for column, i in enumerate(range(row * columns, min((row + 1) * columns, len(panels)))):
            start = left + column * (each + GUTTER)
            x, y = scales(view, start, start + each, top, bottom)
            body.append(_panel(panels, i, x, y, first=column == 0))
        high = bottom + 26
    body.append(text(width - 6, high + 12, "FLOPs per byte moved (log) →", cls="sb-tick", text_anchor="end"))
    return Picture(width, high + 18, "".join(body))


def _roof(panel: Mapping[str, Any], x: Scale, y: Scale) -> tuple[Point, Point, Point]:
    """Start of the slope, corner, end of the ceiling."""
    rate, peak = panel["levels"][0]["bytes_per_s"], panel["ceilings"][0]["peak"]
    first = max(x.low, y.low / rate)
    return (x(first), y(first * rate)), (x(peak / rate), y(peak)), (x.end, y(peak))


def _panel(panels: Any, i: int, x: Scale, y: Scale, *, first: bool) -> str:
    panel = panels[i]
    bottom, top = y.start, y.end
    placer = Placer(Box(x.start, top - 16, x.end + 6, bottom - 1))
    body = []
    for t in log_ticks(y.low, y.high, 5):
        body.append(line(x.start, y(t), x.end, y(t), cls="sb-grid"))
        if first:
            body.append(text(x.start - 6, y(t) + 4, si(t), cls="sb-tick", text_anchor="end"))
    body.append(line(x.start, bottom, x.end, bottom, cls="sb-axis-line"))
    for t in log_ticks(x.low, x.high, 3):
        anchor = "end" if x(t) > x.end - 16 else "start" if x(t) < x.start + 8 else "middle"
        body.append(line(x(t), bottom, x(t), bottom + 4, cls="sb-axis-line"))
        body.append(text(x(t), bottom + 17, digits_or_power(t), cls="sb-tick", text_anchor=anchor))
    body += [path(_roof(other, x, y), cls="sb-company") for j, other in enumerate(panels) if j != i]
    start, corner, end = _roof(panel, x, y)
    body.append(path([start, corner, (corner[0], bottom), (start[0], bottom)], close=True, cls="sb-tint", style=fill("hbm")))
    body.append(rect(corner[0], corner[1], end[0] - corner[0], bottom - corner[1], cls="sb-tint", style=fill("math")))
    body.append(line(*start, *corner, cls="sb-roof", style=stroke("hbm")))
    body.append(line(*corner, *end, cls="sb-roof", style=stroke("math")))
    body.append(line(*corner, corner[0], bottom, cls="sb-guide"))
    body.append(circle(*corner, 4, cls="sb-corner"))
    body.append(_title(panel, x, top))
    placer.block_line([start, corner, end], 6)
    ridge = digits(panel["levels"][0]["ridges"][0])
    wide = text_width(ridge, bold=True)
    at = [
        Box(corner[0] + 5, bottom - 21, corner[0] + 5 + wide, bottom - 5),
        Box(corner[0] - 5 - wide, bottom - 21, corner[0] - 5, bottom - 5),
    ]
    points = [(x(p["intensity"]), y((p["measured"] or p)["achieved"]), p) for p in panel["points"]]
    for px, py, _ in points:
        placer.block(Box(px - 8, py - 8, px + 8, py + 8))
    side, _ = placer.place(at)
    body.append(
        text(
            corner[0] + (5 if side == 0 else -5), bottom - 8, ridge, cls="sb-strong", text_anchor="start" if side == 0 else "end"
        )
    )
    for px, py, p in points:
        colour = "math" if p["bound_by"] == "math" else "hbm"
        body.append(
            circle(
                px,
                py,
                6,
                cls="sb-hollow" if p["measured"] else "sb-handle",
                style=stroke(colour) if p["measured"] else fill(colour),
            )
        )
        body.append(_share(p, px, py, placer))
    return g(body)


def _title(panel: Mapping[str, Any], x: Scale, top: float) -> str:
    """Name, peak and bandwidth over a panel; a long name is cut before its bracket."""
    name = panel["name"]
    if text_width(name, bold=True) > x.end - x.start:
        name = shortened(name.split(" (")[0], x.end - x.start, bold=True)
    peak, rate = si(panel["ceilings"][0]["peak"], "FLOPs/s"), si(panel["levels"][0]["bytes_per_s"], "B/s")
    return (
        text(x.start, top - 40, name, cls="sb-strong")
        + text(x.start, top - 23, peak, size=12, style=fill("math-text"))
        + text(x.start, top - 8, rate, size=12, style=fill("hbm-text"))
    )


def _share(point: Mapping[str, Any], px: float, py: float, placer: Placer) -> str:
    words = percent((point["measured"] or point)["share"])
    wide = text_width(words, 12)
    places = [
        (px - 10, py - 5, "end"),
        (px + 10, py + 16, "start"),
        (px, py + 22, "middle"),
        (px + 9, py - 9, "start"),
        (px, py + 38, "middle"),
    ]
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}
    index, _ = placer.place([Box(x - wide * shift[a], y - 11, x + wide * (1 - shift[a]), y + 3) for x, y, a in places])
    x, y, anchor = places[index]
    return text(x, y, words, size=12, text_anchor=anchor)
