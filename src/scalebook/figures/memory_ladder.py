"""Levels of memory as a ladder: what each holds and how fast a chip gets at it, on two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scalebook.figures.hooks import drag
from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, Scale, circle, escape, fill, line, text, text_width
from scalebook.units import binary, digits, si

View = Mapping[str, Any]
STEP = 46.0


class Column(NamedTuple):
    """One of the two axes: its title, what of a level it shows, in which words, its base, and what stands small below."""

    title: str
    key: str
    words: str
    base: float
    below: str = ""


def draw(view: View, width: float) -> Picture:
    """Two columns of dots beside the names; on a narrow page one below the other. With bytes to move, the second one shows times."""
    narrow = width < 560
    names = max(text_width(x["name"], bold=True) for x in view["levels"]) + 16
    first = Column("holds, bytes", "nbytes", "holds_text", 1024.0, "what")
    second = Column("one chip gets at it, bytes/s", "rate", "rate_text", 1000.0)
    if view["moved"]:
        first = first._replace(title=f"holds, bytes (line: {view['moved']})")
        second = Column(f"one chip moves {view['moved']} in, seconds", "seconds", "seconds_text", 1000.0, "rate_text")
    body, bottom = [], 0.0
    if narrow:
        for column in (first, second):
            drawn, bottom = _column(view, column, names, width, bottom, named=True)
            body.append(drawn)
            bottom += 16
        return Picture(width, bottom - 10, "".join(body))
    half = names + (width - names) * 0.43
    for column, left, right in ((first, names, half), (second, half + 34, width)):
        drawn, bottom = _column(view, column, left, right, 0.0, named=left == names)
        body.append(drawn)
    return Picture(width, bottom, "".join(body))


def _column(view: View, column: Column, left: float, right: float, top: float, *, named: bool) -> tuple[str, float]:
    levels, timed = view["levels"], column.key == "seconds"
    known = [n for x in levels for n in (x["span"] if timed else [x[column.key]]) if n is not None]
    room = max(text_width(_words(x, column), bold=True) for x in levels) + 14
    low, high = _around(known, 10.0 if timed else column.base)
    scale = Scale(low, high, left + 8, right - room, log=True)
    y = top + 14
    end = y + 12 + len(levels) * STEP
    made = [text(left, y, f"{column.title} →", cls="sb-tick")]
    y += 12
    ticks = _ticks(low, high, column.base)
    made += [line(scale(t), y, scale(t), end, cls="sb-grid") for t in ticks]
    if column.key == "nbytes" and view["nbytes"] is not None and low <= view["nbytes"] <= high:
        x = scale(view["nbytes"])
        made.append(line(x, y, x, end, cls="sb-guide sb-guide-strong"))
    for i, level in enumerate(levels):
        middle = y + (i + 0.5) * STEP - (6 if column.below else 0)
        if named:
            made.append(text(0, middle + 4.5, level["name"], cls="sb-strong", style=fill(f"{level['colour']}-text")))
        value = level[column.key]
        if value is None:
            beyond = level["key"] == "dcn" and column.key == "nbytes"
            made.append(text(left + 8, middle + 4.5, "no bound of its own" if beyond else "unknown", cls="sb-note"))
        else:
            x = scale(value)
            made.append(line(left + 8, middle, x, middle, cls="sb-lead"))
            handle = view.get("live") and timed and level["key"] == "hbm"
            made.append(circle(x, middle, 9 if handle else 6, style=fill(level["colour"]), cls="sb-handle" if handle else None))
            bad = fill("bad-text") if level["fits"] is False and column.key == "nbytes" else ""
            made.append(text(x + 13, middle + 4.5, _words(level, column), cls="sb-strong sb-halo", style=bad))
        if column.below and (value is not None or not timed):
            made.append(text(left + 8, middle + 22, level[column.below], cls="sb-note sb-halo"))
    made.append(line(left + 8, end, scale.end, end, cls="sb-axis-line"))
    show, last = _shown(column), -math.inf
    for tick in ticks:
        name, x = show(tick), scale(tick)
        if x - text_width(name, 12) / 2 > last + 8:
            made.append(line(x, end, x, end + 4, cls="sb-axis-line"))
            made.append(text(x, end + 17, name, cls="sb-tick", text_anchor="start" if x < 12 else "middle"))
            last = x + text_width(name, 12) / 2
    if view.get("live") and timed:
        stops = [(scale(seconds), n) for seconds, n in view["stops"]]
        made.append(drag(left, y, right - left, end - y, "nbytes", stops))
    return "".join(made), end + 24


def _words(level: View, column: Column) -> str:
    return f"{level[column.words]}{' ✗' if column.key == 'nbytes' and level['fits'] is False else ''}"


def _around(values: list[float], base: float) -> tuple[float, float]:
    """Powers of the base around all values."""
    low = base ** math.floor(math.log(min(values), base) + 1e-9)
    high = base ** math.ceil(math.log(max(values), base) - 1e-9)
    return low, max(high, low * base)


def _ticks(low: float, high: float, base: float) -> list[float]:
    """The powers of a base within a domain."""
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    return [base**p for p in range(first, last + 1)]


def _shown(column: Column) -> Callable[[float], str]:
    """How a tick of a column is written: binary for capacities, decimal for rates and times."""
    if column.base == 1024:
        return binary
    unit = "s" if column.key == "seconds" else "B/s"
    return lambda value: si(value, unit)


def label(view: View) -> str:
    """The fixed description of the picture."""
    times = [f", {x['seconds_text']}" if view["moved"] else "" for x in view["levels"]]
    said = [f"{x['name']} {x['holds_text']} at {x['rate_text']}{more}" for x, more in zip(view["levels"], times, strict=True)]
    moved = f", and the time of {view['moved']}" if view["moved"] else ""
    return (
        f"Levels of memory of {view['chip']}, capacity and one-way rate of one chip{moved} on logarithmic axes: {listed(said)}."
    )


def describe(view: View) -> str:
    """From the fastest known to the slowest, and their ratio; with bytes to move, their times, and which level cannot hold them."""
    known = [x for x in view["levels"] if x["rate"]]
    moved = view["moved"]
    if len(known) < 2:
        only = f"On {escape(view['chip'])} only the rate of <b>{escape(known[0]['name'])}</b> is known: {escape(known[0]['rate_text'])}"
        return only + (f"; {escape(moved)} takes {escape(known[0]['seconds_text'])}." if moved else ".")
    if not moved:
        fast, slow = max(known, key=lambda x: x["rate"]), min(known, key=lambda x: x["rate"])
        return (
            f"On {escape(view['chip'])} from <b>{escape(fast['name'])}</b> at {escape(fast['rate_text'])} to <b>{escape(slow['name'])}</b> "
            f"at {escape(slow['rate_text'])}: a factor of <b>{digits(fast['rate'] / slow['rate'])}</b>."
        )
    fast, slow = min(known, key=lambda x: x["seconds"]), max(known, key=lambda x: x["seconds"])
    small = [x["name"] for x in view["levels"] if x["fits"] is False]
    return (
        f"On {escape(view['chip'])} {escape(moved)} takes from <b>{escape(fast['seconds_text'])}</b> ({escape(fast['name'])}) to "
        f"<b>{escape(slow['seconds_text'])}</b> ({escape(slow['name'])}), {digits(slow['seconds'] / fast['seconds'])} times as long. "
        f"{f'Too small to hold it (✗): {escape(listed(small))}' if small else 'Every level of known size holds it'}."
    )
