"""A collective step by step: devices as columns, chunks as rows, what is on its way, and below what every link carries when.

A stepper is redrawn at every frame of a drag, so what there is much of (cells, numbers in them) is written directly and, where it
looks alike, as one path.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from scalebook.figures.collective_lanes import lanes
from scalebook.figures.collective_words import SUMMED, describe, label, moment_words, size_words, state_words
from scalebook.figures.svg import Picture, Point, fill, line, path, rect, text, text_width

__all__ = ["describe", "draw", "label"]

View = Mapping[str, Any]
SLOT, TAG = 18, 16  # heights of a chunk's row, of a chunk on its way
ACROSS = 4  # panels in a row
HALVES = 26  # a column in which the two halves of a chunk have room for a number each
SMALL = 12  # of the numbers in cells


def draw(view: View, width: float) -> Picture:
    """With a step: the devices, their links and what is on its way; else small panels. Below, the links over time."""
    if view["step"] is None:
        body, bottom = _panels(view, width)
    else:
        body, bottom = _stage(view, width)
    below, end = lanes(view, width, bottom + (42 if view["step"] is None else 48))
    return Picture(width, end, body + below)


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
    outlines: list[str] = []
    numbers: list[str] = []
    filled: dict[str, list[str]] = {}
    for d, cells in enumerate(view["held"][step]):
        x = left + d * column + (column - size) / 2
        for cell in cells:
            y = top + cell["row"] * SLOT
            _fill(view, cell, x, y, size, filled, numbers)
            if cell["came"] and view["step"] is not None:
                from_, to = cell["pieces"][0][0] * size, cell["pieces"][-1][1] * size
                outlines.append(_box(x + from_ + 0.75, y + 0.75, to - from_ - 1.5, SLOT - 3.5))
    yield _slots(view["devices"], view["rows"], left, top, column, size)
    for style, boxes in filled.items():
        yield f'<path d="{"".join(boxes)}" style="{style}"/>'
    yield from numbers
    if outlines:
        yield f'<path d="{"".join(outlines)}" class="sb-came"/>'


@lru_cache(maxsize=64)
def _slots(devices: int, rows: int, left: float, top: float, column: float, size: float) -> str:
    """The places of all chunks, empty."""
    at = itertools.product(range(devices), range(rows))
    boxes = (_box(left + d * column + (column - size) / 2, top + row * SLOT, size, SLOT - 2) for d, row in at)
    return f'<path d="{"".join(boxes)}" class="sb-empty"/>'


def _fill(view: View, cell: View, x: float, y: float, size: float, filled: dict[str, list[str]], numbers: list[str]) -> None:
    """The pieces of a chunk that are there, by how they look, and the numbers in them."""
    colour, k, summed = f"cat-{cell['colour'] + 1}", view["devices"], view["kind"] in SUMMED
    on, ink = f"fill:var(--sb-on-{colour})", "fill:var(--sb-ink)"
    for lo, hi, terms in cell["pieces"]:
        pale = summed and terms < k
        style = f"fill:var(--sb-{colour})" + (f";fill-opacity:{0.12 + 0.28 * terms / k:.2f}" if pale else "")
        left, right = x + lo * size + (0.75 if lo > 0 else 0), x + hi * size - (0.75 if hi < 1 else 0)
        filled.setdefault(style, []).append(_box(left, y, right - left, SLOT - 2))
        words = cell["label"] or (str(terms) if summed else "")
        if words and text_width(words, SMALL) <= right - left:
            numbers.append(_number(x + (lo + hi) / 2 * size, y + SLOT - 5.5, words, ink if pale else on))


def _box(x: float, y: float, wide: float, high: float) -> str:
    """A rectangle as part of a path."""
    return f"M{x:.2f},{y:g}h{wide:.2f}v{high:g}h-{wide:.2f}z"


def _number(x: float, y: float, words: str, style: str) -> str:
    """A short text without markup, in the middle of its place."""
    return f'<text x="{x:.2f}" y="{y:g}" style="{style};font-size:{SMALL}px" text-anchor="middle">{words}</text>'


# ---- one step, with what is on its way --------------------------------------------------------------------------------------


def _stage(view: View, width: float) -> tuple[str, float]:
    k, step = view["devices"], view["step"]
    left = 50.0 if width >= 480 else 0.0
    column = (width - left) / k
    y = 52.0 if view["shape"] == "line" else 92.0
    widest = max((_wide(f) for step_ in view["flying"] for f in step_), default=0.0)
    half = max(7.0, min(30.0, column * 0.5, column - widest) / 2)  # a tag stands between two devices, not on them
    middle = [left + (d + 0.5) * column for d in range(k)]
    size_said = size_words(view)
    said = moment_words(view, width - text_width(size_said, SMALL) - 12)
    parts = [text(0, 13, said, cls="sb-strong"), text(width, 13, size_said, cls="sb-note", text_anchor="end")]
    parts += _wires(view, middle, half, y, left, width)
    for d in range(k):
        parts.append(rect(middle[d] - half, y - 12, 2 * half, 24, cls="sb-device", rx=4))
        parts.append(text(middle[d], y + 5, str(d), text_anchor="middle", cls="sb-strong"))
    if step < len(view["flying"]):
        parts += [_tag(view, f, middle, y, left, width) for f in view["flying"][step]]
    top = y + 28
    parts += _cells(view, step, left, top, column, min(column - 4, 52))
    if left:
        words = ("chunks", "held", "", "rim: new") if step and view["rows"] > 3 else ("chunks", "held")
        start = top + view["rows"] * SLOT / 2 - (14 if len(words) > 2 else 0)
        parts += [text(0, start + 14 * i, w, cls="sb-tick") for i, w in enumerate(words) if w]
    return "".join(parts), top + view["rows"] * SLOT


def _arc(middle: Sequence[float], half: float, y: float, left: float, width: float) -> list[Point]:
    """The way of the wraparound link, from the last device over the top to the first."""
    right = width - 2
    return [(middle[-1] + half, y), (right, y), (right, 38), (left + 2, 38), (left + 2, y), (middle[0] - half, y)]


def _wires(view: View, middle: Sequence[float], half: float, y: float, left: float, width: float) -> list[str]:
    if view["shape"] == "switch":
        bus = [rect(middle[0] - half, 28, middle[-1] - middle[0] + 2 * half, 14, cls="sb-device", rx=4)]
        return bus + [line(x, 42, x, y - 12, cls="sb-wire") for x in middle]
    links = "".join(f"M{a + half:.2f},{y:g}H{b - half:.2f}" for a, b in itertools.pairwise(middle))
    made = [f'<path d="{links}" class="sb-wire"/>']
    if view["shape"] == "ring":
        made.append(path(_arc(middle, half, y, left, width), cls="sb-wire"))
        if view["step"] >= len(view["flying"]):
            made.append(text((left + width) / 2, 56, "wraparound link", text_anchor="middle", cls="sb-note"))
    return made


def _wide(f: View) -> float:
    """The width of a tag, point included."""
    return max(20.0, text_width(f["label"], SMALL) + 11)


def _tag(view: View, f: View, middle: Sequence[float], y: float, left: float, width: float) -> str:
    """A chunk on its way, pointing where it goes: to the right above the link, to the left below it."""
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
    back, point = x - way * wide / 2, x + way * wide / 2
    edge = point - way * tip
    d = f"M{back:.2f},{top:g}L{edge:.2f},{top:g}L{point:.2f},{at:g}L{edge:.2f},{top + TAG:g}L{back:.2f},{top + TAG:g}Z"
    lone = f["colour"] is not None
    style = fill(f"cat-{f['colour'] + 1}") if lone else fill("paper")
    ink = fill(f"on-cat-{f['colour'] + 1}") if lone else fill("ici-text")
    drawn = f'<path d="{d}" style="{style}" class="{"sb-tag" if lone else "sb-tag sb-tag-many"}"/>'
    return drawn + _number(x - way * tip / 3, at + 4.5, f["label"], ink)
