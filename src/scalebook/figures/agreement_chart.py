"""Predictions as lines, what was measured as hollow circles with the error beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scalebook.figures.placing import Box, Placer
from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import (
    Picture,
    Scale,
    axis_x,
    axis_y,
    circle,
    escape,
    g,
    linear_ticks,
    log_ticks,
    path,
    stroke,
    text,
    text_width,
)
from scalebook.units import digits, percent, plural, si

View = Mapping[str, Any]
LEFT, TOP, HIGH, GAP = 62.0, 52.0, 210.0, 26.0


def draw(view: View, width: float) -> Picture:
    """Panels side by side where there is room, else one below the other; all on the same axes."""
    panels = view["panels"]
    side = len(panels) if width >= 560 else 1
    room = (width - GAP * (side - 1)) / side
    body, y = [], 0.0
    for i, panel in enumerate(panels):
        drawn, high = _panel(view, panel, room, named=i % side == 0)
        at = f"translate({(i % side) * (room + GAP):g},{y:g})"
        body.append(g([drawn], transform=at))
        if i % side == side - 1 or i == len(panels) - 1:
            y += high + 12
    return Picture(width, y - 12, "".join(body))


def _scales(view: View, room: float) -> tuple[Scale, Scale]:
    every = [p for panel in view["panels"] for line in panel["lines"] for p in line["points"]]
    marks = [(p["x"], p["y"]) for panel in view["panels"] for p in panel["points"]]
    xs, ys = [p[0] for p in every + marks], [p[1] for p in every + marks]
    x = Scale(min(xs), max(xs), LEFT, room - 14, log=view["x"]["log"])
    return x, Scale(view["y"]["from"], max(ys) * 1.06, TOP + HIGH, TOP)


def _panel(view: View, panel: View, room: float, *, named: bool) -> tuple[str, float]:
    x, y = _scales(view, room)
    several = len(view["panels"]) > 1
    made = [text(LEFT, 13, panel["name"], cls="sb-strong")] if several else []
    top_name = view["y"]["name"] if named else ""
    made.append(axis_y(y, LEFT, room - 14, linear_ticks(y.low, y.high, 5), _shown(view["y"]["unit"]), ""))
    if top_name:
        made.append(text(0, 34, f"↑ {top_name}", cls="sb-tick"))
    ticks = view["x"]["ticks"] or (log_ticks(x.low, x.high, 5) if x.log else linear_ticks(x.low, x.high, 3))
    made.append(axis_x(x, TOP + HIGH, ticks, _shown(view["x"]["unit"]), view["x"]["name"]))
    placer = Placer(Box(LEFT, TOP - 8, room, TOP + HIGH))
    for line in panel["lines"]:
        points = [(x(a), y(b)) for a, b in line["points"]]
        placer.block_line(points, 7)
        dashes = ";stroke-dasharray:4 4;stroke-width:1.5" if line["dashed"] else ""
        made.append(path(points, cls="sb-slope", style=stroke(line["colour"]) + dashes))
    for p in panel["points"]:
        cx, cy = x(p["x"]), y(p["y"])
        placer.block(Box(cx - 7, cy - 7, cx + 7, cy + 7))
        made.append(circle(cx, cy, 4.5, cls="sb-hollow", style=f"{stroke('ink')};stroke-width:1.6"))
    made += _names(view, panel, x, y, placer)
    return "".join(made), TOP + HIGH + 40


def _names(view: View, panel: View, x: Scale, y: Scale, placer: Placer) -> list[str]:
    """Names of the lines and of the points, then the errors, each where it covers least."""
    made = []
    for line in panel["lines"]:
        middle = line["points"][len(line["points"]) // (3 if line["dashed"] else 2)]
        made.append(_label(line["name"], x(middle[0]), y(middle[1]), placer, style=f"fill:var(--sb-{_ink(line['colour'])})"))
    mark = panel["points"][-2 if len(panel["points"]) > 3 else 0]
    made.append(_label(view["measured"], x(mark["x"]), y(mark["y"]), placer, style=""))
    if len(panel["points"]) <= 8:
        made += [
            _label(p["text"], x(p["x"]), y(p["y"]), placer, style="fill:var(--sb-muted)", bold=False)
            for p in panel["points"]
            if p["text"]
        ]
    return made


def _ink(colour: str) -> str:
    return colour if colour == "muted" else f"{colour}-text"


def _label(words: str, cx: float, cy: float, placer: Placer, *, style: str, bold: bool = True) -> str:
    wide = text_width(words, 12, bold=bold)
    boxes = [
        Box(cx + dx, cy + dy, cx + dx + wide, cy + dy + 15)
        for dy in (10, -24, 24, -38, 40, -54)
        for dx in (8, -wide - 8, -wide / 2, 22, -wide - 22)
    ]
    best, _ = placer.place(boxes, near=(cx, cy))
    return text(
        boxes[best].left, boxes[best].top + 12, words, size=12, cls="sb-strong sb-halo" if bold else "sb-halo", style=style
    )


def _shown(unit: str) -> Callable[[float], str]:
    return (lambda v: si(v, unit)) if unit else (lambda v: digits(v, 4))


def label(view: View) -> str:
    """The fixed description of the picture."""
    names = [
        f"{panel['name'] + ': ' if panel['name'] else ''}{listed([x['name'] for x in panel['lines']])}"
        for panel in view["panels"]
    ]
    return f"{view['y']['name']} against {view['x']['name']}; lines: {'; '.join(names)}; circles: {view['measured']}."


def describe(view: View) -> str:
    """How far the predictions are from the points, at most."""
    total = sum(len(panel["points"]) for panel in view["panels"])
    if view["worst"] is None:
        return f"{plural(total, 'point')} {escape(view['measured'])}."
    low = "too low" if view["worst"] < 0 else "too high"
    return f"Of <b>{plural(total, 'point')}</b> the prediction is at most <b>{percent(abs(view['worst']))}</b> off ({low})."
