"""A systolic array at a few cycles: which cells hold a weight, which row of A passes where; below, how many work in every cycle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from scalebook.figures.hooks import drag, play_head
from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, circle, fill, g, hatch, line, number, rect, stroke, text, text_width
from scalebook.units import percent, plural

View = Mapping[str, Any]
GAP = 16.0  # between panels
HEAD, FEED, DRAIN = 40.0, 22.0, 26.0  # above a panel's cells, left of them for A, below them for the sums
BARS = 56.0  # height of the chart of cells at work


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
    made += _cells(panel, cell)
    arrows = []
    for r, first in enumerate(cells[0] for cells in panel["cells"]):
        if first["row"] is not None:  # a number of A enters here
            arrows.append(_arrow(3, HEAD + (r + 0.5) * cell - 1, FEED - 5, HEAD + (r + 0.5) * cell - 1))
    bottom = HEAD + R * cell
    for out in panel["outputs"]:
        x = FEED + (out["column"] + 0.5) * cell - 1
        arrows.append(_arrow(x, bottom + 1, x, bottom + 9))
        made.append(text(x, bottom + 22, str(out["row"]), cls="sb-tick", text_anchor="middle"))
    if arrows:
        made.append(f'<path d="{"".join(arrows)}" style="{stroke("math")};stroke-width:1.6;fill:none"/>')
    words = "row of the product"
    if panel["outputs"] and FEED + C * cell + 10 + text_width(words, 12) < room:
        made.append(text(FEED + C * cell + 10, bottom + 22, words, cls="sb-note"))
    return made


def _cells(panel: View, cell: float) -> Iterator[str]:
    """Cells empty, with a weight in place, or at work with the row of A that passes; a dot is a weight on its way to a row below.

    Written out, without a call for each attribute: these are most of the picture, and it is redrawn at every step.
    """
    side = cell - 2
    box = f'width="{number(side)}" height="{number(side)}" rx="2"'
    words = f'style="{fill("on-math")};font-size:{12 if side < 30 else 13}px" text-anchor="middle"'
    dot = f'r="{number(max(2.5, side / 5))}" style="{fill("hbm")}"'
    columns = [(number(FEED + c * cell), number(FEED + c * cell + side / 2)) for c in range(len(panel["cells"][0]))]
    for r, cells in enumerate(panel["cells"]):
        top = HEAD + r * cell
        y, middle, base = number(top), number(top + side / 2), number(top + side / 2 + 4.5)
        for here, (x, centre) in zip(cells, columns, strict=True):
            if here["row"] is not None:
                yield f'<rect x="{x}" y="{y}" {box} style="{fill("math")}"/><text x="{centre}" y="{base}" {words}>{here["row"]}</text>'
                continue
            yield f'<rect x="{x}" y="{y}" {box} class="sb-tile"/>'
            if here["held"]:
                yield f'<rect x="{x}" y="{y}" {box} class="sb-pale" style="{fill("hbm")}"/>'
            if here["moving"]:
                yield f'<circle cx="{centre}" cy="{middle}" {dot}/>'


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    """A short arrow, to the right or down, as a path."""
    dx, dy = (1, 0) if x2 > x1 else (0, 1)
    head = f"M{x2 - 4 * dx - 3 * dy:g},{y2 - 4 * dy - 3 * dx:g}L{x2:g},{y2:g}L{x2 - 4 * dx + 3 * dy:g},{y2 - 4 * dy + 3 * dx:g}"
    return f"M{x1:g},{y1:g}L{x2:g},{y2:g}{head}"


def _chart(view: View, width: float, y: float) -> tuple[str, float]:
    """Cells at work, cycle by cycle; what is above a bar idles. Of one cycle in a page, a play head stands on the bars."""
    R, C = view["shape"]
    total, cells = view["total"], R * C
    live = view.get("live") and len(view["panels"]) == 1
    top = y + (38 if live else 20)
    one = width / total
    marked = {p["cycle"] for p in view["panels"]}
    made = [
        text(0, y + 10, f"↑ cells at work, of {cells}, in each of {total} cycles", cls="sb-tick"),
        g([_bars(tuple(view["busy"]), cells, width)], transform=f"translate(0,{top:g})"),
    ]
    for n in sorted(marked):
        share = BARS * view["busy"][n] / cells
        if share:
            made.append(rect(n * one, top + BARS - share, _wide(one), share, style=fill("math")))
    made.append(line(0, top + BARS, width, top + BARS, cls="sb-axis-line"))
    last = -99.0
    for n in sorted(marked):
        x = (n + 0.5) * one
        made.append(line(x, top + BARS, x, top + BARS + 5, cls="sb-axis-line"))
        words = str(n)
        half = text_width(words, 12) / 2
        if x - half > last + 6:
            made.append(text(min(max(x, half), width - half), top + BARS + 18, words, cls="sb-tick", text_anchor="middle"))
            last = x + half
        if live:
            made.append(play_head(x, top - 2, top + BARS))
            made.append(_drag(total, width, top))
    made.append(text(width, top + BARS + 36, "cycle →", cls="sb-tick", text_anchor="end"))
    return "".join(made), top + BARS + 42


def _wide(one: float) -> float:
    """The width of a bar; thin ones touch."""
    return one - (1.0 if one > 5 else 0.0)


@lru_cache(maxsize=32)
def _bars(busy: tuple[int, ...], cells: int, width: float) -> str:
    """The bars of all cycles on a hatched ground, as two paths; kept, since they stay the same while a reader steps."""
    one = width / len(busy)
    wide = number(_wide(one))
    shares = [(number(n * one), number(BARS * b / cells)) for n, b in enumerate(busy) if b]
    d = "".join(f"M{x},{BARS:g}v-{high}h{wide}v{high}z" for x, high in shares)
    bars = f'<path d="{d}" style="{fill("paper")}"/><path d="{d}" class="sb-rest" style="{fill("math")}"/>' if d else ""
    return hatch(0, 0, width, BARS) + bars


@lru_cache(maxsize=32)
def _drag(total: int, width: float, top: float) -> str:
    """Where the play head is dragged: over the bars and its handle."""
    one = width / total
    return drag(0, top - 20, width, BARS + 26, "cycle", [((n + 0.5) * one, n) for n in range(total)])


def label(view: View) -> str:
    """The fixed description of the picture."""
    R, C = view["shape"]
    said = [f"cycle {p['cycle']}, {p['phase']}, {plural(p['busy'], 'cell')} at work" for p in view["panels"]]
    return f"A systolic array of {R} by {C} cells through which {plural(view['rows'], 'row')} of A pass: {listed(said)}."


def describe(view: View) -> str:
    """How long it takes, which share of the time the cells work, and, of one cycle, what happens in it."""
    R, C = view["shape"]
    tiles = f" and {view['tiles']} tiles of weights" if view["tiles"] > 1 else ""
    now = ""
    if len(view["panels"]) == 1:
        (panel,) = view["panels"]
        now = f"Cycle {panel['cycle']}, {panel['phase']}: <b>{panel['busy']} of {R * C}</b> cells multiply. "
    return (
        f"{now}<b>{plural(view['rows'], 'row')}</b> through {R} × {C} cells{tiles}: <b>{view['total']} cycles</b>, and the cells are "
        f"at work <b>{percent(view['useful'])}</b> of the time."
    )
