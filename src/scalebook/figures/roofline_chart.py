"""The roofline: what a chip can reach at each intensity, and where operations stand under that roof."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from scalebook.explore.quantities import is_shared, time_row
from scalebook.figures import time_bars
from scalebook.figures.hooks import drag
from scalebook.figures.placing import Box, Placer
from scalebook.figures.roofline_panels import draw_panels
from scalebook.figures.roofline_words import describe, label
from scalebook.figures.svg import (
    Picture,
    Point,
    Scale,
    axis_x,
    axis_y,
    circle,
    fill,
    g,
    h,
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

__all__ = ["describe", "draw", "label"]

LEFT, TOP, BOTTOM = 52, 34, 300
NAMED = 0.7  # of the chart's width, which a point's name may take; the readout has it whole
CROWDED = 100  # from this cost on (`Placer.cost`) a label covers another, or leaves the picture
TIMED = 6  # more points than this get no bars
SHARES = (0.42, 0.25, 0.6, 0.14, 0.78, 0.33, 0.5, 0.7, 0.2)  # where on its slope a name may stand
STEPS = (-1, -0.6, -0.2, 0.2, 0.6, 1)  # along a slope's name, in halves of its length


def draw(view: Mapping[str, Any], width: float) -> Picture:
    """One chip: the roof, its points, and below the same points as time. Several chips: one small roof each."""
    if len(view["panels"]) > 1:
        return draw_panels(view, width, scales)
    panel = view["panels"][0]
    x, y = scales(view, LEFT, width - 6, TOP, BOTTOM)
    choices = view.get("choices", ())
    body = [_axes(x, y, width), _Chart(panel, x, y, width).draw(_trail(choices, panel, x, y))]
    timed = [p for p in panel["points"] if p["timed"]][:TIMED]
    height = BOTTOM + 44.0
    if timed and len(timed) == len(panel["points"]):
        body.append(text(0, BOTTOM + 62, f"the same point{'s' if len(timed) > 1 else ''} as time", cls="sb-tick"))
        drawn, height = time_bars.rows(_times(timed, panel), width, BOTTOM + 72)
        body.append(drawn)
    if view.get("live"):
        stops = [(x(c["intensity"]), c["B"]) for c in choices]
        body.append(drag(x.start, TOP, x.end - x.start, BOTTOM - TOP, "B", stops))
    return Picture(width, height + 2, "".join(body))


def _trail(choices: Sequence[Mapping[str, Any]], panel: Mapping[str, Any], x: Scale, y: Scale) -> str:
    """Small dots on the roof where the point would stand at 1, 2, 4, 8, … tokens."""
    peak, rate = panel["ceilings"][0]["peak"], panel["levels"][0]["bytes_per_s"]
    at = [c["intensity"] for c in choices if c["B"] & (c["B"] - 1) == 0]
    d = "".join(f"M{x(i):.1f},{y(min(peak, i * rate)):.1f}h0" for i in at)
    return h("path", {"d": d, "cls": "sb-stop"}) if d else ""


def scales(view: Mapping[str, Any], left: float, right: float, top: float, bottom: float) -> tuple[Scale, Scale]:
    """Logarithmic scales that hold every roof and every point."""
    panels = view["panels"]
    points = [p for panel in panels for p in panel["points"]]
    intensities = [p["intensity"] for p in points] + [r for panel in panels for v in panel["levels"] for r in v["ridges"]]
    choices = view.get("choices")  # in rising order
    intensities += [c["intensity"] for c in (choices[0], choices[-1])] if choices else []
    low = min(1.0, min(intensities) / 2.2)
    high = max(20 * max(r for panel in panels for v in panel["levels"] for r in v["ridges"]), 2.2 * max(intensities))
    peaks = [c["peak"] for panel in panels for c in panel["ceilings"]]
    starts = [min(panel["levels"], key=lambda v: v["bytes_per_s"])["bytes_per_s"] * low for panel in panels]
    reached = [p["measured"]["achieved"] for p in points if p["measured"]]
    y_low = min([0.4 * s for s in starts] + [0.4 * r for r in reached])
    return Scale(low, max(high, 100 * low), left, right, log=True), Scale(y_low, 3 * max(peaks + reached), bottom, top, log=True)


def _axes(x: Scale, y: Scale, width: float) -> str:
    name = "FLOPs per byte moved (arithmetic intensity, log)" if width >= 480 else "FLOPs per byte moved (log)"
    return axis_y(y, x.start, x.end, log_ticks(y.low, y.high, 6), lambda v: si(v), "FLOPs/s achieved (log)") + axis_x(
        x, y.start, log_ticks(x.low, x.high, 8 if width >= 480 else 5), digits, name
    )


def _times(points: list[Mapping[str, Any]], panel: Mapping[str, Any]) -> Mapping[str, Any]:
    made = []
    names = {v["level"]: v["name"] for v in panel["levels"]}
    for p in points:
        parts: dict[str, float] = {}
        for at in p["by_level"]:
            parts |= at["parts"]
        made.append(
            time_row(p["name"] if len(points) > 1 else "", parts, p["measured"] and p["measured"]["seconds"], names=names)
        )
    return {"rows": made, "shared": is_shared(made)}


class _Chart:
    """One roof with everything on it; keeps account of the space that is taken, so that labels find what is free."""

    def __init__(self, panel: Mapping[str, Any], x: Scale, y: Scale, width: float) -> None:
        self.panel, self.x, self.y, self.width = panel, x, y, width
        self.peak = panel["ceilings"][0]["peak"]
        self.placer = Placer(Box(x.start + 2, 14, x.end, y.start - 2))
        self.hbm = panel["levels"][0]
        self.ridge = self.hbm["ridges"][0]
        self.single = len(panel["points"]) == 1
        self.ceiling_left = x.end
        self.placer.block(Box(0, 8, 160, 28))  # the name of the y axis

    def draw(self, trail: str = "") -> str:
        """The roof, a trail of small dots on it, and the points with their names."""
        corner = (self.x(self.ridge), self.y(self.peak))
        start = self._start(self.hbm)
        body = [self._tints(start, corner)]
        self._reserve()
        body += [self._ceiling(i) for i in range(len(self.panel["ceilings"]))]
        guides = [self._guide(p) for p in self.panel["points"]] if self.single else []
        names = [self._name(p) for p in sorted(self.panel["points"], key=lambda p: -p["intensity"])]
        slopes = [self._slope(i) for i in range(len(self.panel["levels"]))]
        body += [*guides, *(self._ridge_label(v) for v in self.panel["levels"]), *slopes]
        body += [circle(self.x(r), self.y(c["peak"]), 4, cls="sb-corner") for v in self.panel["levels"]
                 for c, r in zip(self.panel["ceilings"], v["ridges"], strict=True)]  # fmt: skip
        body += [trail, *(self._point(p) for p in self.panel["points"])]
        return g([*body, *names])

    def _start(self, level: Mapping[str, Any]) -> Point:
        """Where a slope enters the chart, at its left edge or, for a fast memory, at the left end of its ceiling."""
        intensity = max(self.x.low, self.y.low / level["bytes_per_s"])
        return self.x(intensity), self.y(min(self.peak, intensity * level["bytes_per_s"]))

    def _reserve(self) -> None:
        """Takes the lines and the discs before any label is placed."""
        for level in self.panel["levels"]:
            for c, r in zip(self.panel["ceilings"], level["ridges"], strict=True):
                self.placer.block_line([self._start(level), (self.x(r), self.y(c["peak"])), (self.x.end, self.y(c["peak"]))], 6)
            x = self.x(level["ridges"][0])
            self.placer.block_line([(x, self.y(self.peak)), (x, self.y.start)], 3)
        for p in self.panel["points"]:
            for px, py in self._spots(p):
                self.placer.block(Box(px - 10, py - 10, px + 10, py + 10))

    def _spots(self, point: Mapping[str, Any]) -> list[Point]:
        reached = [at["achieved"] for at in point["by_level"]] + ([point["measured"]["achieved"]] if point["measured"] else [])
        return [(self.x(point["intensity"]), self.y(r)) for r in reached]

    def _tints(self, start: Point, corner: Point) -> str:
        bottom, right = self.y.start, self.x.end
        return path(
            [start, corner, (corner[0], bottom), (start[0], bottom)], close=True, cls="sb-tint", style=fill("hbm")
        ) + rect(corner[0], corner[1], right - corner[0], bottom - corner[1], cls="sb-tint", style=fill("math"))

    def _ceiling(self, i: int) -> str:
        ceiling = self.panel["ceilings"][i]
        y, start = self.y(ceiling["peak"]), self.x(min(v["ridges"][i] for v in self.panel["levels"]))
        value = si(ceiling["peak"], "FLOPs/s")
        names = (f"{ceiling['name']} {value}", f"{ceiling['name'].removesuffix(' peak')} {value}")
        room = self.x.end - self.x(self.ridge) - 4
        alone = len(self.panel["ceilings"]) == 1  # then a name may begin left of the ridge, above the roof
        words = next((w for w in names if text_width(w, bold=True) < room), names[1] if alone else value)
        wide = text_width(words, bold=True)
        bases = (y - 9, y - 14, y + 21) if wide < room else (y - 9, y - 14)
        index, _ = self.placer.place([Box(self.x.end - wide, b - 11, self.x.end, b + 2) for b in bases])
        self.ceiling_left = min(self.ceiling_left, self.x.end - wide)
        return line(start, y, self.x.end, y, cls="sb-roof", style=stroke("math")) + text(
            self.x.end, bases[index], words, text_anchor="end", cls="sb-strong", style=fill("math-text")
        )

    def _guide(self, point: Mapping[str, Any]) -> str:
        px, py = self.x(point["intensity"]), self.y(max(at["achieved"] for at in point["by_level"]))
        self.placer.block_line([(px, py), (px, self.y.start)], 3)
        return line(px, py, px, self.y.start, cls="sb-guide sb-guide-strong")

    def _ridge_label(self, level: Mapping[str, Any]) -> str:
        """The ridge's value, at the foot of its guide, on a side that is free."""
        ridge = level["ridges"][0]
        x, bottom = self.x(ridge), self.y.start
        full = ["ridge" if level is self.hbm else f"{level['name']} ridge", f"{digits(ridge)} FLOPs/byte"]
        options = [
            (words, side, bottom - lift)
            for words in (full, full[1:], [digits(ridge)])
            for lift in (6, 44, 82)
            for side in (1, -1)
        ]
        boxes = []
        for words, side, base in options:
            near, far = x + 6 * side, x + (6 + max(text_width(w, 12) for w in words)) * side
            boxes.append(Box(min(near, far), base - 16 * len(words), max(near, far), base))
        words, side, base = options[self.placer.place(boxes)[0]]
        return line(x, self.y(self.peak), x, bottom, cls="sb-guide") + "".join(
            text(x + 6 * side, base - 4 - 16 * i, w, cls="sb-note", text_anchor="start" if side > 0 else "end")
            for i, w in enumerate(words[::-1])
        )

    def _slope(self, i: int) -> str:
        """A slope, named along its line where that is free: below it for one point, else above."""
        level = self.panel["levels"][i]
        start = self._start(level)
        top = max(c["peak"] for c in self.panel["ceilings"])
        corner = (self.x(top / level["bytes_per_s"]), self.y(top))
        angle = math.atan2(corner[1] - start[1], corner[0] - start[0])
        long = math.hypot(corner[0] - start[0], corner[1] - start[1])
        drawn = line(*start, *corner, cls="sb-roof" if i == 0 else "sb-slope", style=stroke("hbm"))
        names = (f"{level['name']} {si(level['bytes_per_s'], 'B/s')}", si(level["bytes_per_s"], "B/s"))
        short = [w for w in names if text_width(w, bold=True) + 16 < long]
        if not short:
            return drawn
        cos, sin = math.cos(angle), math.sin(angle)
        best, least = (short[0], 0.5, 20), math.inf
        taken: list[Point] = []
        for option in itertools.product(short, (20, -10) if self.single else (-10, 20), SHARES):
            half, share, off = text_width(option[0], bold=True) / 2, option[2] * long, option[1] - 4
            if not half + 4 <= share <= long - half - 4:
                continue
            middles = [
                (start[0] + (share + half * k) * cos - off * sin, start[1] + (share + half * k) * sin + off * cos) for k in STEPS
            ]
            cost = sum(self.placer.cost(Box(cx - 7, cy - 6, cx + 7, cy + 6)) for cx, cy in middles)
            if cost < least:
                best, least, taken = (option[0], option[2], option[1]), cost, middles
            if cost == 0:
                break
        for cx, cy in taken:
            self.placer.block(Box(cx - 6, cy - 5, cx + 6, cy + 5))
        words, share, off = best
        ax, ay = start[0] + share * long * cos, start[1] + share * long * sin
        turn = f"translate({ax:.1f},{ay:.1f}) rotate({math.degrees(angle):.2f}) translate(0,{off})"
        return drawn + text(0, 0, words, transform=turn, text_anchor="middle", cls="sb-strong", style=fill("hbm-text"))

    def _point(self, point: Mapping[str, Any]) -> str:
        spots, made = self._spots(point), []
        if len(spots) > 1:
            made.append(line(*spots[0], *spots[-1], cls="sb-guide sb-guide-strong"))
        for at, (px, py) in zip(point["by_level"], spots, strict=False):
            colour = "math" if at["bound_by"] == "math" else "hbm"
            first = at is point["by_level"][0]
            made.append(circle(px, py, 9 if self.single and first else 7, cls="sb-handle" if first else "sb-hollow",
                               style=fill(colour) if first else stroke(colour)))  # fmt: skip
        if point["measured"]:
            made.append(circle(*spots[-1], 6, cls="sb-hollow", style=stroke("ink")))
        return "".join(made)

    def _name(self, point: Mapping[str, Any]) -> str:
        """Name, value and share of peak, beside each disc of a point, where the chart is free."""
        spots = self._spots(point)
        marks = [(at["achieved"], at["share"], "" if at is point["by_level"][0] else f"from {_level_name(self.panel, at)}")
                 for at in point["by_level"]]  # fmt: skip
        if point["measured"]:
            marks.append((point["measured"]["achieved"], point["measured"]["share"], "measured" if self.single else ""))
            if not self.single:
                spots, marks = spots[-1:], marks[-1:]
        made, name = [], shortened(point["name"], NAMED * (self.x.end - self.x.start), bold=True)
        for (px, py), (reached, share, note) in zip(spots, marks, strict=True):
            rows = [(note or name, True)] if note or name else []
            if self.single and not note:
                rows += [(si(reached, "FLOPs/s"), not rows), (f"{percent(share)} of peak", False)]
            else:
                rows += [(f"{percent(share)} of peak" + (", measured" if point["measured"] and not note else ""), False)]
            made.append(self._block(px, py, rows))
        return "".join(made)

    def _block(self, px: float, py: float, rows: list[tuple[str, bool]]) -> str:
        wide = max(text_width(w, 13 if bold else 12, bold=bold) for w, bold in rows)
        high = 15.5 * len(rows)
        places = [(px - 14, py - high - 4, "end"), (px + 13, py + 6, "start"), (px + 2, py + 12, "start"), (px + 13, py - 8, "start"),
                  (px, py + 13, "middle"), (px, py - high - 12, "middle"), (px - 13, py + 4, "end"), (px - 13, py - 10, "end"),
                  (px + 12, py - high - 6, "start"), (px + 14, py + 30, "start"), (px - 14, py + 26, "end")]  # fmt: skip
        places += [(self.x.end, py + dy, "end") for dy in (12, 26)] + [(self.ceiling_left - 8, py - high - 4, "end")]
        places += [(px + dx, py + dy, a) for dy in (48, 70, 95) for dx, a in ((14, "start"), (-14, "end"), (0, "middle"))]
        edges = ((self.x.start + 4, "start"), (self.x.end, "end"))  # for long names, which fit nowhere beside the disc
        places += [(x, py + dy, a) for dy in (-high - 12, 14, 40, 70) for x, a in edges]
        shift = {"start": 0.0, "middle": 0.5, "end": 1.0}
        boxes = [Box(x - wide * shift[a], y, x + wide * (1 - shift[a]), y + high) for x, y, a in places]
        if all(self.placer.cost(box) > CROWDED for box in boxes):  # no room near the point: the nearest there is in the picture
            left, top, right, bottom = self.placer.frame
            grid = [
                Box(x, y, x + wide, y + high)
                for y in range(int(top), int(bottom - high), 8)
                for x in range(int(left), int(right - wide), 16)
            ]
            places += [(box.left, box.top, "start") for box in grid]
            boxes += grid
        index, _ = self.placer.place(boxes, near=(px, py))
        x, y, anchor = places[index]
        return "".join(
            text(x, y + 12 + 15.5 * i, words, text_anchor=anchor, cls="sb-strong" if bold else "sb-note")
            for i, (words, bold) in enumerate(rows)
        )


def _level_name(panel: Mapping[str, Any], at: Mapping[str, Any]) -> str:
    return next(str(v["name"]) for v in panel["levels"] if v["level"] == at["level"])
