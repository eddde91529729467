"""Arrays in the tiles in which a TPU keeps them: the data filled, the tiles' edges drawn, what is padded hatched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, escape, fill, g, hatch, line, rect, text, text_width
from scalebook.units import count, percent

View = Mapping[str, Any]
GAP = 28.0
HIGH = 150.0
LEAST = 2.0  # pixels of a sliver of data or padding
MOST_LINES = 40  # tile edges drawn in a direction; beyond, none


def draw(view: View, width: float) -> Picture:
    """One array beside the other where there is room."""
    arrays = view["arrays"]
    least = max(max(text_width(words, 12) for words in _words(a)) for a in arrays) + 4
    across = max(1, min(len(arrays), int((width + GAP) // (max(least, 150) + GAP))))
    room = (width - GAP * (across - 1)) / across
    body, y = [], 0.0
    for start in range(0, len(arrays), across):
        line_of = arrays[start : start + across]
        drawn = [_array(a, room) for a in line_of]
        for i, (made, _) in enumerate(drawn):
            body.append(g([made], transform=f"translate({i * (room + GAP):g},{y:g})"))
        y += max(high for _, high in drawn) + 18
    return Picture(width, y - 10, "".join(body))


def _words(a: View) -> list[str]:
    rows, lanes = a["padded"]
    copies = f"{count(a['others'])} × " if a["others"] > 1 else ""
    return [a["name"] or a["text"], *([a["text"]] if a["name"] else []), f"padded {copies}{count(rows)} × {count(lanes)}"]


def _array(a: View, room: float) -> tuple[str, float]:
    """Names above, the two fastest dimensions to scale where their sizes allow it, the bytes below."""
    rows, lanes = a["padded"]
    ratio = min(max(lanes / rows, 0.3), 8.0)
    wide = min(room - 2, HIGH * ratio, 300.0)
    high = wide / ratio
    if high > HIGH:
        wide, high = HIGH * ratio, HIGH
    high = max(high, 12.0)
    made, y = [], 12.0
    for i, words in enumerate(_words(a)):
        made.append(text(0, y, words, size=13 if i == 0 else None, cls="sb-strong" if i == 0 else "sb-note"))
        y += 17
    y -= 4
    data_wide, data_high = _part(wide, a["lanes"] / lanes), _part(high, a["rows"] / rows)
    made += [
        hatch(0, y, wide, high),
        rect(0, y, data_wide, data_high, style=fill("paper")),
        rect(0, y, data_wide, data_high, style=fill("hbm")),
    ]
    tile_rows, tile_lanes = a["tile"]
    for n, size, upright in ((lanes // tile_lanes, wide, True), (rows // tile_rows, high, False)):
        if size / n < 3 or n > MOST_LINES:
            continue
        for i in range(n + 1):
            at = i * size / n
            made.append(line(at, y, at, y + high, cls="sb-lead") if upright else line(0, y + at, wide, y + at, cls="sb-lead"))
    made.append(rect(0, y, wide, high, style="fill:none;stroke:var(--sb-axis);stroke-width:1.5"))
    y += high + 17
    made.append(text(0, y, f"{a['bytes_text']} → *{a['padded_text']}*", size=12))
    y += 17
    more = a["factor"] - 1
    verdict = "nothing padded" if more == 0 else f"{percent(more)} more" if more < 0.1 else f"{a['factor_text']} the bytes"
    made.append(text(0, y, verdict, size=12, cls="sb-strong", style=fill("good-text" if more < 0.1 else "bad-text")))
    return "".join(made), y


def _part(size: float, share: float) -> float:
    """The pixels of the data along a side; both the data and what is padded stay visible."""
    return size if share == 1 else min(max(size * share, LEAST), size - LEAST)


def label(view: View) -> str:
    """The fixed description of the picture."""
    said = [
        f"{a['name'] + ', ' if a['name'] else ''}{a['text']} becomes {count(a['padded'][0])} by {count(a['padded'][1])}, {a['factor_text']}"
        for a in view["arrays"]
    ]
    return f"Arrays in tiles of up to 8 rows of 128 numbers, padding hatched: {listed(said)}."


def describe(view: View) -> str:
    """How much each array grows."""
    said = [
        f"<b>{escape(a['name'] or a['text'])}</b> takes {escape(a['padded_text'])} for {escape(a['bytes_text'])} of data ({escape(a['factor_text'])})"
        for a in view["arrays"]
    ]
    return listed(said) + "."
