"""A systolic array at a few cycles: which cells hold a weight, which row of A passes where; below, how many work in every cycle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, circle, fill, g, hatch, line, rect, stroke, text, text_width
from scalebook.units import percent, plural

View = Mapping[str, Any]
GAP = 16.0  # between panels
HEAD, FEED, DRAIN = 40.0, 22.0, 26.0  # above a panel's cells, left of them for A, below them for the sums


def draw(view: View, width: float) -> Picture:
    """Panels side by side as far as they fit, then the cells at work over all cycles, with the panels' cycles marked."""
    R, C = view["shape"]
    panels = view["panels"]
    alone = len(panels) == 1
    largest = 44.0 if alone else 26.0
    across = 1 if alone else max(2, min(len(panels), math.floor((width + GAP) / (FEED + 19.0 * C + GAP))))
    rows = math.ceil(len(panels) / across)
    across = math.ceil(len(panels) / rows)
    cell = min(largest, (width - GAP * (across - 1)) / across / C - FEED / C)
    wide, high = FEED + cell * C, HEAD + cell * R + DRAIN
    body, y = [_key(width)], 26.0
    step = wide + (max(GAP, (width - across * wide) / max(1, across - 1)) if across > 1 else 0)
    for i, panel in enumerate(panels):
        x = (i % across) * min(step, wide + 60)
        at = f"translate({x:g},{y + (i // across) * (high + 14):g})"
        body.append(g(_panel(view, panel, cell, width if alone else 0), transform=at))
    y += rows * (high + 14) + 6
    drawn, end = _chart(view, width, y)
    return Picture(width, end, "".join([*body, drawn]))


def _key(width: float) -> str:
    """What the three fills mean, on one line."""
    made, x = "", 0.0
    size = 12
    long = [("hbm", "weight in place"), ("moving", "weight on its way"), ("math", "multiplies row n of A")]
    short = [("hbm", "weight"), ("moving", "on its way"), ("math", "multiplies row n")]
    words = long if sum(text_width(w, size) + 36 for _, w in long) <= width else short
    for name, label in words:
        made += g([_square(name, 0, 3, 12)], transform=f"translate({x:g},0)") + text(x + 17, 14, label, cls="sb-note")
        x += 17 + text_width(label, size) + 16
    return made


def _square(kind: str, x: float, y: float, side: float) -> str:
    if kind == "math":
        return rect(x, y, side, side, style=fill("math"), rx=2)
    if kind == "moving":
        return rect(x, y, side, side, style=f"{fill('paper')};{stroke('axis')}", rx=2) + circle(
            x + side / 2, y + side / 2, max(2.5, side / 5), style=fill("hbm")
        )
    return rect(x, y, side, side, style=fill("hbm"), cls="sb-pale", rx=2)


def _panel(view: View, panel: View, cell: float, room: float) -> list[str]:
    R, C = view["shape"]
    made = [text(FEED, 12, f"cycle {panel['cycle']}", cls="sb-strong"), text(FEED, 28, panel["phase"], cls="sb-note")]
    for r in range(R):
        for c in range(C):
            made.append(_cell(panel["cells"][r][c], FEED + c * cell, HEAD + r * cell, cell - 2))
    for r, first in enumerate(cells[0] for cells in panel["cells"]):
        if first["row"] is not None:  # a number of A enters here
            made.append(_arrow(3, HEAD + (r + 0.5) * cell - 1, FEED - 5, HEAD + (r + 0.5) * cell - 1))
    bottom = HEAD + R * cell
    for out in panel["outputs"]:
        x = FEED + (out["column"] + 0.5) * cell - 1
        made.append(_arrow(x, bottom + 1, x, bottom + 9))
        made.append(text(x, bottom + 22, str(out["row"]), cls="sb-tick", text_anchor="middle"))
    words = "row of the product"
    if panel["outputs"] and FEED + C * cell + 10 + text_width(words, 12) < room:
        made.append(text(FEED + C * cell + 10, bottom + 22, words, cls="sb-note"))
    return made


def _cell(cell: View, x: float, y: float, side: float) -> str:
    """Empty, with a weight in place, or at work; a dot is a weight that passes, a corner one that waits for the next tile."""
    if cell["row"] is not None:
        made = rect(x, y, side, side, style=fill("math"), rx=2)
        made += text(x + side / 2, y + side / 2 + 4.5, str(cell["row"]), size=12 if side < 30 else 13, text_anchor="middle",
                     style=fill("on-math"))  # fmt: skip
        return made
    made = rect(x, y, side, side, cls="sb-tile", rx=2)
    if cell["held"]:
        made += rect(x, y, side, side, style=fill("hbm"), cls="sb-pale", rx=2)
    if cell["moving"]:
        made += circle(x + side / 2, y + side / 2, max(2.5, side / 5), style=fill("hbm"))
    return made


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    """A short arrow in the colour of computing."""
    dx, dy = (1, 0) if x2 > x1 else (0, 1)
    head = f"M{x2 - 4 * dx - 3 * dy:g},{y2 - 4 * dy - 3 * dx:g}L{x2:g},{y2:g}L{x2 - 4 * dx + 3 * dy:g},{y2 - 4 * dy + 3 * dx:g}"
    style = f"{stroke('math')};stroke-width:1.6;fill:none"
    return line(x1, y1, x2, y2, style=style) + f'<path d="{head}" style="{style}"/>'


def _chart(view: View, width: float, y: float) -> tuple[str, float]:
    """Cells at work, cycle by cycle; what is above a bar idles."""
    R, C = view["shape"]
    total, cells = view["total"], R * C
    high, top = 56.0, y + 20
    one = width / total
    marked = {p["cycle"] for p in view["panels"]}
    made = [text(0, y + 10, f"↑ cells at work, of {cells}, in each of {total} cycles", cls="sb-tick"), hatch(0, top, width, high)]
    for n, busy in enumerate(view["busy"]):
        share = high * busy / cells
        where = (n * one, top + high - share, one - (1.0 if one > 5 else 0.0), share)
        if busy:
            made.append(rect(*where, style=fill("paper")))
            made.append(rect(*where, style=fill("math"), cls=None if n in marked else "sb-rest"))
    made.append(line(0, top + high, width, top + high, cls="sb-axis-line"))
    last = -99.0
    for n in sorted(marked):
        x = (n + 0.5) * one
        made.append(line(x, top + high, x, top + high + 5, cls="sb-axis-line"))
        words = str(n)
        half = text_width(words, 12) / 2
        if x - half > last + 6:
            made.append(text(min(max(x, half), width - half), top + high + 18, words, cls="sb-tick", text_anchor="middle"))
            last = x + half
    made.append(text(width, top + high + 36, "cycle →", cls="sb-tick", text_anchor="end"))
    return "".join(made), top + high + 42


def label(view: View) -> str:
    """The fixed description of the picture."""
    R, C = view["shape"]
    said = [f"cycle {p['cycle']}, {p['phase']}, {plural(p['busy'], 'cell')} at work" for p in view["panels"]]
    return f"A systolic array of {R} by {C} cells through which {plural(view['rows'], 'row')} of A pass: {listed(said)}."


def describe(view: View) -> str:
    """How long it takes, and which share of the time the cells work."""
    R, C = view["shape"]
    tiles = f" and {view['tiles']} tiles of weights" if view["tiles"] > 1 else ""
    return (
        f"<b>{plural(view['rows'], 'row')}</b> through {R} × {C} cells{tiles}: <b>{view['total']} cycles</b>, and the cells are "
        f"at work <b>{percent(view['useful'])}</b> of the time."
    )
