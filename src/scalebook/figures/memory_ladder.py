"""Levels of memory as a ladder: what each holds and how fast a chip gets at it, on two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, Scale, circle, escape, fill, line, text, text_width
from scalebook.units import digits

View = Mapping[str, Any]
STEP = 46.0


def draw(view: View, width: float) -> Picture:
    """Two columns of dots beside the names; on a narrow page one below the other."""
    narrow = width < 560
    names = max(text_width(x["name"], bold=True) for x in view["levels"]) + 16
    columns = [("holds, bytes", "nbytes", "holds_text", 1024.0), ("one chip gets at it, bytes/s", "rate", "rate_text", 1000.0)]
    if view["moved"]:
        columns[1] = (f"one chip gets at it, bytes/s (time of {view['moved']})", "rate", "rate_text", 1000.0)
    body, bottom = [], 0.0
    if narrow:
        for title, key, words, base in columns:
            drawn, bottom = _column(view, title, key, words, base, names, width, bottom, named=True, what=key == "nbytes")
            body.append(drawn)
            bottom += 16
        return Picture(width, bottom - 10, "".join(body))
    half = names + (width - names) * 0.43
    for (title, key, words, base), left, right in ((columns[0], names, half), (columns[1], half + 34, width)):
        drawn, bottom = _column(view, title, key, words, base, left, right, 0.0, named=left == names, what=left == names)
        body.append(drawn)
    return Picture(width, bottom, "".join(body))


def _column(
    view: View, title: str, key: str, words: str, base: float, left: float, right: float, top: float, *, named: bool, what: bool
) -> tuple[str, float]:
    known = [x[key] for x in view["levels"] if x[key] is not None]
    room = max(text_width(_words(x, words), bold=True) for x in view["levels"]) + 14
    low, high = _around(known, base)
    scale = Scale(low, high, left + 8, right - room, log=True)
    y = top + 14
    made = [text(left, y, f"{title} →", cls="sb-tick")]
    y += 12
    rows = len(view["levels"])
    end = y + rows * STEP
    tick = low
    while tick <= high * 1.001:
        x = scale(tick)
        made.append(line(x, y, x, end, cls="sb-grid"))
        tick *= base
    for i, level in enumerate(view["levels"]):
        middle = y + (i + 0.5) * STEP - (6 if what else 0)
        if named:
            made.append(text(0, middle + 4.5, level["name"], cls="sb-strong", style=fill(f"{level['colour']}-text")))
        value = level[key]
        if value is None:
            made.append(
                text(
                    left + 8,
                    middle + 4.5,
                    "unknown" if level["key"] != "dcn" or key == "rate" else "no bound of its own",
                    cls="sb-note",
                )
            )
        else:
            x = scale(value)
            made.append(line(left + 8, middle, x, middle, cls="sb-lead"))
            made.append(circle(x, middle, 6, style=fill(level["colour"])))
            made.append(text(x + 12, middle + 4.5, _words(level, words), cls="sb-strong sb-halo"))
        if what:
            made.append(text(left + 8, middle + 22, level["what"], cls="sb-note sb-halo"))
    made.append(line(left + 8, end, scale.end, end, cls="sb-axis-line"))
    tick, show = low, _shown(base)
    last = -math.inf
    while tick <= high * 1.001:
        name, x = show(tick), scale(tick)
        if x - text_width(name, 12) / 2 > last + 8:
            made.append(line(x, end, x, end + 4, cls="sb-axis-line"))
            made.append(text(x, end + 17, name, cls="sb-tick", text_anchor="start" if x < 12 else "middle"))
            last = x + text_width(name, 12) / 2
        tick *= base
    return "".join(made), end + 24


def _words(level: View, words: str) -> str:
    more = f" ({level['seconds_text']})" if words == "rate_text" and level["seconds"] is not None else ""
    return f"{level[words]}{more}"


def _around(values: list[float], base: float) -> tuple[float, float]:
    """Powers of the base around all values."""
    low = base ** math.floor(math.log(min(values), base) + 1e-9)
    high = base ** math.ceil(math.log(max(values), base) - 1e-9)
    return low, max(high, low * base)


def _shown(base: float) -> Callable[[float], str]:
    """How a tick of a column is written: binary for capacities, decimal for rates."""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB") if base == 1024 else ("B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s")

    def show(value: float) -> str:
        power = round(math.log(value, base))
        return f"{digits(value / base**power)}\u00a0{units[power]}"

    return show


def label(view: View) -> str:
    """The fixed description of the picture."""
    said = [f"{x['name']} {x['holds_text']} at {x['rate_text']}" for x in view["levels"]]
    return f"Levels of memory of {view['chip']}, capacity and one-way rate of one chip on logarithmic axes: {listed(said)}."


def describe(view: View) -> str:
    """From the fastest known to the slowest, and their ratio."""
    known = [x for x in view["levels"] if x["rate"]]
    if len(known) < 2:
        return f"On {escape(view['chip'])} only the rate of <b>{escape(known[0]['name'])}</b> is known: {escape(known[0]['rate_text'])}."
    fast, slow = max(known, key=lambda x: x["rate"]), min(known, key=lambda x: x["rate"])
    return (
        f"On {escape(view['chip'])} from <b>{escape(fast['name'])}</b> at {escape(fast['rate_text'])} to <b>{escape(slow['name'])}</b> "
        f"at {escape(slow['rate_text'])}: a factor of <b>{digits(fast['rate'] / slow['rate'])}</b>."
    )
