"""Curves on logarithmic axes, named at their ends; the ranges in which each is lowest are tinted, and turning points are marked.

The vertical axis may be linear; `guides` are levels that the curves are read against, one of them maybe a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scalebook.figures.hooks import drag, play_head
from scalebook.figures.placing import Box, Placer
from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import (
    Picture,
    Point,
    Scale,
    axis_x,
    axis_y,
    circle,
    escape,
    fill,
    line,
    linear_ticks,
    log_ticks,
    path,
    powers_of_two,
    rect,
    stroke,
    text,
    text_width,
)
from scalebook.units import binary, count, percent, plural, si

__all__ = ["describe", "draw", "label"]

View = Mapping[str, Any]
LEFT, TOP, BOTTOM, APART = 58, 46, 300, 16
NAME = 18  # from the top to the y axis's name where a size is marked, whose handle stands between


def draw(view: View, width: float) -> Picture:
    """The chart; names of lines stand at the right, each joined to the end of its line, or below where they are long."""
    names = max(text_width(c["name"], 12, bold=True) for c in view["lines"])
    beside = names + 28 <= 0.36 * width
    right = width - names - 28 if beside else width - (12 if view["at"] else 8)
    points = [p for c in view["lines"] for p in c["points"]]
    x = Scale(min(p[0] for p in points), max(p[0] for p in points), LEFT, right, log=True)
    y = _scale_y(view, [p[1] for p in points])
    body = [_regimes(view, x)]
    name = view["y"]["name"]
    body.append(axis_y(y, LEFT, right, _ticks_y(y, view["y"]["unit"]), _shown(view["y"]["unit"]), "" if view["at"] else name))
    if view["at"]:
        body.append(text(0, NAME, f"↑ {name}", cls="sb-tick"))
    body.append(
        axis_x(x, BOTTOM, log_ticks(x.low, x.high, 8 if width >= 480 else 3 if beside else 4), _shown(view["x"]["unit"]), "")
    )
    body.append(text(right, BOTTOM + 35, f"{view['x']['name']} →", cls="sb-tick", text_anchor="end"))
    curves = [[(x(a), y(b)) for a, b in c["points"]] for c in view["lines"]]
    body.append(_guides(view, y, right))
    body += [path(curve, cls="sb-slope", style=_drawn(c)) for c, curve in zip(view["lines"], curves, strict=True)]
    body += [_marks(view, x, y, curves), _boundaries(view, x, y), _marked(view, x, y)]
    if beside:
        return Picture(width, BOTTOM + 44.0, "".join([*body, _ends(view, y, right)]))
    for row, c in enumerate(
        sorted(view["lines"], key=lambda c: -float(c["points"][-1][1]))
    ):  # from the highest end to the lowest, as in the chart
        at = BOTTOM + 62 + 18 * row
        body.append(line(0, at, 18, at, cls="sb-lead-line", style=_drawn(c)))
        body.append(text(24, at + 4, c["name"], size=12, cls="sb-strong"))
    return Picture(width, BOTTOM + 56.0 + 18 * len(view["lines"]), "".join(body))


def _scale_y(view: View, values: Sequence[float]) -> Scale:
    """The vertical axis: from and to what the view says, or logarithmic around all curves and guides."""
    if "linear" in view["y"]:
        low, high = view["y"]["linear"]
        return Scale(low, high, BOTTOM, TOP)
    values = [*values, *(guide["value"] for guide in view.get("guides", ()))]
    return Scale(min(values) / 1.5, max(values) * 1.5, BOTTOM, TOP, log=True)


def _ticks_y(y: Scale, unit: str) -> list[float]:
    if not y.log:
        return linear_ticks(y.low, y.high)
    return powers_of_two(y.low, y.high, 6) if unit == "GiB" else log_ticks(y.low, y.high, 6)


def _guides(view: View, y: Scale, right: float) -> str:
    """Levels across the chart, each with its words: a limit, or one that is only compared with."""
    parts = []
    for guide in view.get("guides", ()):
        at, limit = y(guide["value"]), guide["limit"]
        parts.append(line(LEFT, at, right, at, cls="sb-limit" if limit else "sb-guide sb-guide-strong"))
        tone = fill("hbm-text") if limit else ""
        parts.append(text(LEFT + 6, at - 6, _guide_words(guide, right), size=12, cls="sb-strong sb-halo", style=tone))
    return "".join(parts)


def _guide_words(guide: View, right: float) -> str:
    """What stands at a level: less where there is little room."""
    return str(guide["text"] if text_width(guide["text"], 12, bold=True) < right - LEFT - 6 else guide["short"])


def _drawn(c: View) -> str:
    """How a line is drawn, in the chart and in its key."""
    return stroke(c["colour"]) + (";stroke-dasharray:5 4" if c.get("dashed") else "")


def _shown(unit: str) -> Callable[[float], str]:
    if unit in ("%", "GiB"):
        return percent if unit == "%" else binary
    return (lambda v: si(v, unit)) if unit else (lambda v: count(v) if v < 1e5 else si(v))


def _regimes(view: View, x: Scale) -> str:
    parts = []
    for r in view["regimes"]:
        parts.append(rect(x(r["low"]), TOP, x(r["high"]) - x(r["low"]), BOTTOM - TOP, style=fill(r["colour"]), cls="sb-tint"))
    return "".join(parts)


def _boundaries(view: View, x: Scale, y: Scale) -> str:
    """Where one plan overtakes another, with the size."""
    parts, names = [], []
    placer = Placer(Box(x.start, TOP, x.end, BOTTOM))
    if view["at"]:
        _keep_free(placer, view, x, y)
    for r in view["regimes"][1:]:
        at = x(r["low"])
        words = f"{view['letter']} = {count(round(r['low']))}"
        wide = text_width(words, 12, bold=True)
        parts.append(line(at, TOP, at, BOTTOM, cls="sb-guide"))
        boxes = [Box(left, BOTTOM - up, left + wide, BOTTOM - up + 16) for up in (20, 38, 56) for left in (at + 6, at - 6 - wide)]
        best = boxes[placer.place(boxes)[0]]
        names.append(text(best.left, best.top + 12, words, size=12, cls="sb-strong sb-halo"))
    return "".join(parts + names)


def _marks(view: View, x: Scale, y: Scale, curves: Sequence[Sequence[Point]]) -> str:
    """Turning points: a dot, and what it is, where it covers least."""
    if not view["marks"]:
        return ""
    placer = Placer(Box(LEFT, TOP, x.end, BOTTOM))
    if view["at"]:
        _keep_free(placer, view, x, y)
    for curve in curves:
        placer.block_line([*curve[::4], curve[-1]])
    for guide in view.get("guides", ()):
        at = y(guide["value"])
        placer.block(Box(LEFT + 6, at - 20, LEFT + 6 + text_width(_guide_words(guide, x.end), 12, bold=True), at))
    parts = []
    for m in view["marks"]:
        cx, cy, wide = x(m["x"]), y(m["y"]), text_width(m["text"], 12, bold=True)
        placer.block(Box(cx - 7, cy - 7, cx + 7, cy + 7))
        boxes = [
            Box(cx + dx, cy + dy, cx + dx + wide, cy + dy + 16)
            for dy in (10, -26, 22, -38)
            for dx in (-wide / 2, 4, -wide - 4, 16, -wide - 16)
        ]
        best, _ = placer.place(boxes, near=(cx, cy))
        parts.append(circle(cx, cy, 6, style=fill(m["colour"]), cls="sb-handle"))
        parts.append(text(boxes[best].left, boxes[best].top + 12, m["text"], size=12, cls="sb-strong sb-halo"))
    return "".join(parts)


def _height(row: View) -> float:
    """The value of a line at the marked size: seconds, or what the view counts."""
    return float(row["seconds"] if "seconds" in row else row["value"])


def _keep_free(placer: Placer, view: View, x: Scale, y: Scale) -> None:
    """Takes the line of the marked size and its dots."""
    at = x(view["at"]["x"])
    placer.block_line([(at, TOP), (at, BOTTOM)])
    for row in view["at"]["rows"]:
        placer.block(Box(at - 7, y(_height(row)) - 7, at + 7, y(_height(row)) + 7))


def _marked(view: View, x: Scale, y: Scale) -> str:
    """The marked size: a line to move sideways, with a dot on each curve."""
    if not view["at"]:
        return ""
    at = x(view["at"]["x"])
    dots = [circle(at, y(_height(row)), 5, cls="sb-hollow", style=stroke(row["colour"])) for row in view["at"]["rows"]]
    stops = view.get("stops")
    area = ""
    if view.get("live") and stops:
        reached = [(x(value), value) for value in stops["values"]]
        area = drag(x.start - 10, TOP - 16, x.end - x.start + 20, BOTTOM - TOP + 16, stops["key"], reached)
    return "".join([play_head(at, TOP, BOTTOM), *dots, area])


def _ends(view: View, y: Scale, right: float) -> str:
    """Names at the ends of lines, kept apart, each joined to its line."""
    ends = sorted(((y(c["points"][-1][1]), c) for c in view["lines"]), key=lambda end: end[0])
    at = [e for e, _ in ends]
    for i in range(1, len(at)):
        at[i] = max(at[i], at[i - 1] + APART)
    over = at[-1] - BOTTOM
    if over > 0:
        at = [a - over for a in at]
    parts = []
    for (end, c), place in zip(ends, at, strict=True):
        parts.append(path([(right + 1, end), (right + 8, place), (right + 18, place)], style=_drawn(c), cls="sb-lead-line"))
        parts.append(text(right + 23, place + 4, c["name"], size=12, cls="sb-strong"))
    return "".join(parts)


def label(view: View) -> str:
    """The fixed description of the picture."""
    names = ", ".join(c["name"] for c in view["lines"])
    return f"{view['subject']}: curves on two logarithmic axes, {view['y']['name']} against {view['x']['name']}, for {names}."


def describe(view: View) -> str:
    """Who is fastest where; or where latency and bandwidth take equally long."""
    if view["at"]:
        return _at(view)
    if view["marks"]:
        said = [
            f"<b>{escape(m['name'])}</b>: {si(m['fixed'], 's')} however small the array, and as long again for the bytes at {escape(m['text'])}"
            for m in view["marks"]
        ]
        return f"{escape(view['subject'])}. {'; '.join(said)}."
    letter, said = escape(view["letter"]), []
    for i, r in enumerate(view["regimes"]):
        where = (
            "throughout"
            if len(view["regimes"]) == 1
            else f"up to {letter} = {count(round(r['high']))}"
            if i == 0
            else f"from {letter} = {count(round(r['low']))}"
        )
        moves = view["lines"][r["line"]]["moves"]
        said.append(f"{where} <b>{escape(r['name'])}</b>" + (f" ({escape('; '.join(moves))})" if moves else ""))
    if not said:
        return f"{escape(view['subject'])}: {plural(len(view['lines']), 'line')}."
    return f"{escape(view['subject'])}. Fastest: {'; '.join(said)}."


def _at(view: View) -> str:
    """What each line says at the marked size: of a collective also what its time is made of, of a plan whether it is the fastest."""
    rows, name = view["at"]["rows"], escape(view["at"]["name"])
    if "latency" in rows[0]:
        said = [
            f"{escape(r['name'])} {si(r['seconds'], 's')}, of which {si(r['latency'], 's')} latency: {_binds(r)}" for r in rows
        ]
        return f"{escape(view['subject'])}. {name}: {'; '.join(said)}."
    best = rows[view["at"]["best"]]
    others = [f"{escape(r['name'])} {si(r['seconds'], 's')}" for r in rows if r is not best]
    turns = [f"at {escape(view['letter'])} = {count(round(r['low']))} to <b>{escape(r['name'])}</b>" for r in view["regimes"][1:]]
    end = f" The fastest changes {listed(turns)}." if turns else ""
    return f"{name}: fastest <b>{escape(best['name'])}</b>, {si(best['seconds'], 's')}; {', '.join(others)}.{end}"


def _binds(row: View) -> str:
    return "<b>latency</b> binds" if 2 * row["latency"] > row["seconds"] else "<b>bandwidth</b> binds"
