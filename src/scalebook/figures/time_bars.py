"""Times as bars, one for each resource: the longest counts, the others idle until it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, bar, escape, fill, fits, hatch, per, rect, shortened, text, text_width
from scalebook.units import percent

BAR, STEP, GAP = 16, 20, 12


def draw(view: Mapping[str, Any], width: float) -> Picture:
    """The rows of `explore.times`."""
    body, height = rows(view, width)
    return Picture(width, height + 2, body)


def rows(view: Mapping[str, Any], width: float, top: float = 0) -> tuple[str, float]:
    """The bars from `top` downward, and where they end. A row's name stands left where all names are short, else above its bars."""
    made = view["rows"]
    lone = len(made) == 1 and not made[0]["name"]
    resources = max(text_width(p["name"], 13, bold=True) for row in made for p in row["parts"]) + 12
    names = max(text_width(row["name"], 13, bold=True) for row in made) + 14
    beside = not lone and names + resources < 0.36 * width
    left = min(max(52.0, resources), 0.5 * width) if not beside else names + resources
    right = width - 6
    longest = max(row["seconds"] for row in made)
    height = 22 if lone else BAR
    parts, y = [], top
    for row in made:
        if not lone and not beside:
            parts.append(text(0, y + 12, shortened(row["name"], width, bold=True), cls="sb-strong"))
            y += 19
        elif beside:
            parts.append(text(0, y + BAR - 3, row["name"], cls="sb-strong"))
        scale = per(right - left, longest if view["shared"] else row["seconds"])
        end = left + row["bound"] * scale
        for part in row["parts"]:
            parts.append(_bar(part, row, left, end, y, height, scale, right))
            y += height + (6 if lone else STEP - BAR)
        y += 0 if lone else GAP - (STEP - BAR)
    return "".join(parts), y - (6 if lone else GAP)


def _bar(
    part: Mapping[str, Any], row: Mapping[str, Any], left: float, end: float, y: float, height: float, scale: float, right: float
) -> str:
    key, length, words = part["key"], part["seconds"] * scale, part["text"]
    binds = part["seconds"] == row["bound"] and key != "measured"
    base = y + height / 2 + 4.5
    weight = "sb-strong" if binds else None
    colour = "ink" if key == "measured" else f"{key}-text"
    made = text(left - 8, base, shortened(part["name"], left - 8, bold=binds), text_anchor="end", style=fill(colour), cls=weight)
    if key == "measured":
        made += rect(left, y + 0.75, length, height - 1.5, cls="sb-measured", rx=2)
        inside = fits(words, length, 12)
        if inside:
            made += text(left + length / 2, base, words, size=12, text_anchor="middle")
    else:
        made += hatch(left + length, y, end - left - length, height) + bar(
            left, y, length, height, words, key, size=12, bold=binds
        )
        inside = fits(words, length, 12, bold=binds)
    if not inside:
        after = left + length + 6
        if after + text_width(words, 12) > right:
            made += text(left + length - 6, base, words, size=12, text_anchor="end", cls="sb-halo")
        else:
            made += text(after, base, words, size=12, cls="sb-halo")
    return made


def describe(view: Mapping[str, Any]) -> str:
    """Which resource binds in each row, and how idle the others are."""
    said = []
    for row in view["rows"]:
        name = f"{escape(row['name'])}: " if row["name"] else ""
        if not row["bound"]:
            said.append(f"{name}nothing takes any time, 0\u00a0s")
            continue
        binding = next(p for p in row["parts"] if p["seconds"] == row["bound"] and p["key"] != "measured")
        others = [p for p in row["parts"] if p is not binding and p["key"] != "measured"]
        idle = ", ".join(f"{escape(p['name'])} idles {idle_share(p['seconds'] / row['bound'])}" for p in others)
        said.append(
            f'{name}<b class="sb-key-{binding["key"]}">{escape(binding["name"])}</b> binds at {binding["text"]}'
            + (f", {idle}" if idle else "")
        )
    return "; ".join(said) + "."


def idle_share(busy: float) -> str:
    """The rest of a share, as a percentage that says 100% only of all."""
    return percent(1 - busy, 3 if 0 < busy < 0.01 else 2)


def label(view: Mapping[str, Any]) -> str:
    """The fixed description of the picture."""
    said = [f"{row['name'] or 'times'}: {listed([p['name'] + ' ' + p['text'] for p in row['parts']])}" for row in view["rows"]]
    return f"Bars of time by resource. {'; '.join(said)}."
