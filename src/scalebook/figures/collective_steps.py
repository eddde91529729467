"""A collective step by step: devices as columns, chunks as rows, what is on its way, and below what every link carries when."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scalebook.figures.collective_words import describe, label, state_words
from scalebook.figures.svg import (
    Picture,
    Point,
    Scale,
    axis_x,
    escape,
    fill,
    line,
    linear_ticks,
    path,
    rect,
    text,
    text_width,
)
from scalebook.units import digits

__all__ = ["describe", "draw", "label"]

View = Mapping[str, Any]
SLOT, LANE, TAG = 18, 18, 16  # heights of a chunk's row, of a link's lane, of a chunk on its way
ACROSS = 4  # panels in a row
HALVES = 26  # a column in which the two halves of a chunk have room for a number each
SUMMED = ("reduce-scatter", "all-reduce")


def draw(view: View, width: float) -> Picture:
    """With a step: the devices, their links and what is on its way; else small panels. Below, the links over time."""
    if view["step"] is None:
        body, bottom = _panels(view, width)
    else:
        body, bottom = _stage(view, width)
    lanes, end = _lanes(view, width, bottom + 42)
    return Picture(width, end, body + lanes)


# ---- chunks held ----------------------------------------------------------------------------------------------------------


def _panels(view: View, width: float) -> tuple[str, float]:
    shown = view["panels"]
    across = min(len(shown), ACROSS if width >= 560 else 2)
    gap = 18.0
    if view["kind"] in SUMMED and any(len(c["pieces"]) > 1 for n in shown for device in view["held"][n] for c in device):
        while across > 1 and (width - gap * (across - 1)) / across < HALVES * view["devices"]:
            across -= 1
    each = (width - gap * (across - 1)) / across
    column = min(each / view["devices"], 34.0)
    high = view["rows"] * SLOT + 54
    parts = []
    for i, n in enumerate(shown):
        x, y = (i % across) * (each + gap), (i // across) * high
        parts.append(text(x, y + 13, state_words(view, n, each), cls="sb-strong", size=12))
        for d in range(view["devices"]):
            parts.append(text(x + (d + 0.5) * column, y + 33, str(d), cls="sb-tick", text_anchor="middle"))
        parts += _cells(view, n, x, y + 39, column, column - 2)
    return "".join(parts), (len(shown) - 1) // across * high + 39 + view["rows"] * SLOT


def _cells(view: View, step: int, left: float, top: float, column: float, size: float) -> Iterator[str]:
    """One column per device, one slot per chunk: as full as the chunk is there, as strong as its sum is complete."""
    for d, cells in enumerate(view["held"][step]):
        x = left + d * column + (column - size) / 2
        for row in range(view["rows"]):
            yield rect(x, top + row * SLOT, size, SLOT - 2, cls="sb-empty", rx=2)
        for cell in cells:
            yield from _cell(view, cell, x, top + cell["row"] * SLOT, size)


def _cell(view: View, cell: View, x: float, y: float, size: float) -> Iterator[str]:
    colour, k = f"cat-{cell['colour'] + 1}", view["devices"]
    summed = view["kind"] in SUMMED
    complete = not summed or all(terms == k for _, _, terms in cell["pieces"])
    for lo, hi, terms in cell["pieces"]:
        strength = 1.0 if not summed or terms == k else 0.12 + 0.28 * terms / k
        style = fill(colour) + (f";fill-opacity:{strength:.2f}" if strength < 1 else "")
        left, right = x + lo * size + (0.75 if lo > 0 else 0), x + hi * size - (0.75 if hi < 1 else 0)
        yield rect(left, y, right - left, SLOT - 2, style=style, rx=2)
        if summed and not cell["label"] and text_width(str(terms), 12) <= right - left:
            ink = fill("ink") if strength < 1 else fill(f"on-{colour}")
            yield text(x + (lo + hi) / 2 * size, y + SLOT - 5.5, str(terms), size=12, style=ink, text_anchor="middle")
    if cell["label"] and text_width(cell["label"], 12) <= size:
        style = fill(f"on-{colour}") if complete else fill("ink")
        yield text(x + size / 2, y + SLOT - 5.5, cell["label"], size=12, style=style, text_anchor="middle")


# ---- one step, with what is on its way --------------------------------------------------------------------------------------


def _stage(view: View, width: float) -> tuple[str, float]:
    k, step = view["devices"], view["step"]
    left = 50.0 if width >= 480 else 0.0
    column = (width - left) / k
    ring, switch = view["shape"] == "ring", view["shape"] == "switch"
    y = 92.0 if ring or switch else 52.0
    widest = max((_wide(f) for step_ in view["flying"] for f in step_), default=0.0)
    half = max(7.0, min(30.0, column * 0.5, column - widest) / 2)  # a tag stands between two devices, not on them
    middle = [left + (d + 0.5) * column for d in range(k)]
    parts = [text(0, 13, state_words(view, step, width), cls="sb-strong")]
    parts += _wires(view, middle, half, y, left, width)
    for d in range(k):
        parts.append(rect(middle[d] - half, y - 12, 2 * half, 24, cls="sb-device", rx=4))
        parts.append(text(middle[d], y + 5, str(d), text_anchor="middle", cls="sb-strong"))
    if step < len(view["flying"]):
        parts += [_tag(view, f, middle, y, left, width) for f in view["flying"][step]]
    top = y + 28
    size = min(column - 4, 52)
    parts += _cells(view, step, left, top, column, size)
    if left:
        parts.append(text(0, top + view["rows"] * SLOT / 2, "chunks", cls="sb-tick"))
        parts.append(text(0, top + view["rows"] * SLOT / 2 + 14, "held", cls="sb-tick"))
    return "".join(parts), top + view["rows"] * SLOT


def _arc(middle: Sequence[float], half: float, y: float, left: float, width: float) -> list[Point]:
    """The way of the wraparound link, from the last device over the top to the first."""
    right = width - 2
    return [(middle[-1] + half, y), (right, y), (right, 38), (left + 2, 38), (left + 2, y), (middle[0] - half, y)]


def _wires(view: View, middle: Sequence[float], half: float, y: float, left: float, width: float) -> list[str]:
    if view["shape"] == "switch":
        bus = [rect(middle[0] - half, 28, middle[-1] - middle[0] + 2 * half, 14, cls="sb-device", rx=4)]
        return bus + [line(x, 42, x, y - 12, cls="sb-wire") for x in middle]
    made = [line(a + half, y, b - half, y, cls="sb-wire") for a, b in itertools.pairwise(middle)]
    if view["shape"] == "ring":
        made.append(path(_arc(middle, half, y, left, width), cls="sb-wire"))
        if view["step"] >= len(view["flying"]):
            made.append(text((left + width) / 2, 56, "wraparound link", text_anchor="middle", cls="sb-note"))
    return made


def _wide(f: View) -> float:
    """The width of a tag, point included."""
    return max(20.0, text_width(f["label"], 12) + 11)


def _tag(view: View, f: View, middle: Sequence[float], y: float, left: float, width: float) -> str:
    """A chunk on its way, pointing where it goes: to the right above the link, to the left below it."""
    words = f["label"]
    wide = _wide(f)
    way = 1 if f["direction"] != "-" else -1
    if view["shape"] == "switch":
        x, at = middle[f["src"]], 60.0
    else:
        last = len(middle) - 1
        wraps = {f["src"], f["dst"]} == {0, last} and (f["src"] == last) == (way > 0)
        x = (left + width) / 2 if wraps else (middle[f["src"]] + middle[f["dst"]]) / 2
        at = (38 if wraps else y) - way * (TAG / 2 + 1)
        way = -way if wraps else way  # over the top, what goes on to the right comes back to the left
        at = 38 - (TAG / 2 + 1) if wraps and f["direction"] != "-" else at
    top, tip = at - TAG / 2, 6.0 if view["shape"] != "switch" else 0.0
    ends = [
        (x - wide / 2, top),
        (x + wide / 2 - tip, top),
        (x + wide / 2, at),
        (x + wide / 2 - tip, top + TAG),
        (x - wide / 2, top + TAG),
    ]
    shape = [(2 * x - px, py) for px, py in ends] if way < 0 else ends
    lone = f["colour"] is not None
    style = fill(f"cat-{f['colour'] + 1}") if lone else fill("paper")
    ink = fill(f"on-cat-{f['colour'] + 1}") if lone else fill("ici-text")
    drawn = path(shape, close=True, style=style, cls="sb-tag" if lone else "sb-tag sb-tag-many")
    return drawn + text(x - way * tip / 3, at + 4.5, words, size=12, text_anchor="middle", style=ink)


# ---- links over time --------------------------------------------------------------------------------------------------------


def _lanes(view: View, width: float, top: float) -> tuple[str, float]:
    """A lane per link; on rings and lines its upper half is the way to the next device, its lower half the way back."""
    both = view["shape"] != "switch"
    lanes = view["lanes"]
    left = 50.0
    rows = len(lanes) // 2 if both else len(lanes)
    bottom = top + rows * LANE
    unit, scale = (1e3, "ms") if view["seconds"] >= 2e-3 else (1e6, "µs") if view["seconds"] >= 2e-6 else (1e9, "ns")
    time = Scale(0, view["seconds"] * unit, left, width - 8)
    words = "each link over time: above the way on, below the way back" if both else "each device's way out over time"
    if text_width(words, 12) > width:
        words = "links over time: way on, way back"
    parts = [text(0, top - 16, words, cls="sb-note")]
    now = _now(view)
    for i, lane in enumerate(lanes):
        row, lower = (i // 2, i % 2) if both else (i, 0)
        y = top + row * LANE + (lower * LANE / 2 if both else 0)
        high = (LANE / 2 if both else LANE) - 1.5
        parts.append(rect(left, y, width - 8 - left, high, cls="sb-empty"))
        for busy in lane["busy"]:
            x, end = time(busy["start"] * unit), time(busy["end"] * unit)
            later = now is not None and busy["start"] >= now - 1e-15
            pale = busy["message"] != view["follow"] if view["follow"] else later
            parts.append(
                rect(
                    x + 0.5, y, end - x - 1, high, style=fill(f"cat-{busy['colour'] + 1}"), rx=1, cls="sb-pale" if pale else None
                )
            )
        if not lower:
            name = str(lane["src"]) if not both else f"{lane['src']}–{lane['dst']}"
            parts.append(text(left - 8, y + LANE / 2 + 3.5, name, cls="sb-tick", text_anchor="end"))
    parts.append(
        axis_x(
            time, bottom + 2, linear_ticks(0, view["seconds"] * unit, 5 if width >= 480 else 4), digits, f"time, {escape(scale)}"
        )
    )
    if now is not None:
        x = time(now * unit)
        parts.append(line(x, top - 4, x, bottom + 2, cls="sb-now"))
        parts.append(path([(x - 5, top - 9), (x + 5, top - 9), (x, top - 2)], close=True, style=fill("ink")))
    return "".join(parts), bottom + 42


def _now(view: View) -> float | None:
    """The moment that is shown: the beginning of the step that follows."""
    if view["step"] is None:
        return None
    steps = view["steps"]
    return float(steps[view["step"]]["start"]) if view["step"] < len(steps) else float(view["seconds"])
