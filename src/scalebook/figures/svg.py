"""Strings of SVG: elements, text, scales, ticks, axes, bars and hatching. Pure, so the same code draws at build time and in the page.

Colours are CSS variables only (`var(--sb-hbm)`), so a picture follows the theme of its page.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

Point = tuple[float, float]
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # no XML document may hold them


class Picture(NamedTuple):
    """A drawing: its size in pixels, and the elements inside its <svg>."""

    width: float
    height: float
    body: str


def escape(text: object) -> str:
    """Text made safe for SVG and HTML.

    >>> escape("a < b & 'c'")
    'a &lt; b &amp; &#x27;c&#x27;'
    """
    written = str(text)
    return _known(written) if len(written) < 64 else _escaped(written)


def _escaped(text: str) -> str:
    return html.escape(_UNWRITABLE.sub("\ufffd", text))


_known = lru_cache(maxsize=4096)(_escaped)  # the same few classes, colours and names are drawn again and again


def number(value: float) -> str:
    """A coordinate, to a hundredth of a pixel.

    >>> number(3.0), number(1.2345)
    ('3', '1.23')
    """
    if type(value) is int:
        return str(value)
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def h(tag: str, attributes: dict[str, Any] | None = None, *children: str) -> str:
    """One element; attributes that are None are left out, `_` in a name becomes `-`, and `cls` is `class`.

    >>> h("rect", {"x": 1.0, "cls": "bar", "rx": None})
    '<rect x="1" class="bar"/>'
    """
    written = []
    for name, value in (attributes or {}).items():
        if value is None:
            continue
        text = number(value) if isinstance(value, float | int) else escape(value)
        written.append(f' {_attribute(name)}="{text}"')
    start = f"<{tag}{''.join(written)}"
    return f"{start}>{''.join(children)}</{tag}>" if children else f"{start}/>"


@lru_cache(maxsize=256)
def _attribute(name: str) -> str:
    return "class" if name == "cls" else name.replace("_", "-")


def g(children: Iterable[str], **attributes: Any) -> str:
    """A group."""
    return h("g", attributes, "".join(children))


def rect(x: float, y: float, width: float, height: float, **attributes: Any) -> str:
    """A rectangle; a negative length is none."""
    return h("rect", {"x": x, "y": y, "width": max(0.0, width), "height": max(0.0, height), **attributes})


def line(x1: float, y1: float, x2: float, y2: float, **attributes: Any) -> str:
    """A straight line."""
    return h("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, **attributes})


def circle(x: float, y: float, r: float, **attributes: Any) -> str:
    """A circle."""
    return h("circle", {"cx": x, "cy": y, "r": r, **attributes})


def path(points: Sequence[Point], *, close: bool = False, **attributes: Any) -> str:
    """A line through points, or, closed, an area."""
    d = "M" + "L".join([f"{x:.2f},{y:.2f}" for x, y in points]) + ("Z" if close else "")
    return h("path", {"d": d, **({} if close else {"fill": "none"}), **attributes})


def fill(name: str) -> str:
    """The style that fills with a token: fill("hbm"), fill("hbm-text"), fill("on-hbm")."""
    return f"fill:var(--sb-{name})"


def stroke(name: str) -> str:
    """The style that strokes with a token."""
    return f"stroke:var(--sb-{name})"


# ---- text ---------------------------------------------------------------------------------------------------------------

_WIDTHS = {
    0.3: " ,.IJijl·'\u00a0", 0.35: "-/:;\\f|", 0.4: "!()[]rt", 0.5: "*_`sz–\"", 0.55: "?Lc", 0.6: "FPTYaekovxy",
    0.7: "ABCRVXZ", 0.75: "DGHNU", 0.8: "&OQw", 0.85: "#+<=>M^~×−→←↑↓✓✗≤≥∞", 0.95: "%m½", 1.0: "@W…—", 0.1: "\u200a",
}  # fmt: skip
_WIDTH = {c: w for w, characters in _WIDTHS.items() for c in characters}


def text_width(content: str, size: float = 13, *, bold: bool = False) -> float:
    """The width of a text in pixels, by the character widths of a wide font (DejaVu Sans), so that what fits here fits anywhere.

    >>> round(text_width("819 GB/s"))
    59
    """
    return _ems(content) * size * (1.14 if bold else 1)


@lru_cache(maxsize=4096)
def _ems(content: str) -> float:
    """The width of a text in its font size."""
    return sum(_WIDTH.get(c, 0.65) for c in content.replace("*", ""))


def shortened(content: str, room: float, size: float = 13, *, bold: bool = False) -> str:
    """A text that fits into so many pixels, its end left out where it is longer.

    >>> shortened("64 tokens", 200), shortened("a product with a long name", 100)
    ('64 tokens', 'a product wit…')
    """
    if text_width(content, size, bold=bold) <= room:
        return content
    left = room - text_width("…", size, bold=bold)
    for i, c in enumerate(content):
        left -= text_width(c, size, bold=bold)
        if left < 0:
            return content[:i].rstrip() + "…"
    return content


def per(room: float, longest: float) -> float:
    """Pixels for one unit, where `longest` fills the room; none where nothing has a length.

    >>> per(300, 60), per(300, 0)
    (5.0, 0.0)
    """
    return room / longest if longest > 1e-290 else 0.0


def text(x: float, y: float, content: str, *, size: float | None = None, style: str = "", **attributes: Any) -> str:
    """A text at a baseline; `*words*` are bold. `cls="sb-halo"` puts a rim of paper around it, so that it stays readable on lines."""
    styles = ";".join(s for s in (style, f"font-size:{number(size)}px" if size else "") if s)
    body = re.sub(r"\*([^*]+)\*", r'<tspan font-weight="600">\1</tspan>', escape(content)) if "*" in content else escape(content)
    return h("text", {"x": x, "y": y, "style": styles or None, **attributes}, body)


def raw_text(x: float, y: float, body: str, **attributes: Any) -> str:
    """A text whose content is markup already made here, such as `tspan`s."""
    return h("text", {"x": x, "y": y, **attributes}, body)


# ---- scales, ticks, axes ------------------------------------------------------------------------------------------------


class Scale(NamedTuple):
    """A map from values to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Powers of ten within a domain, every second or third where they would be more than `most`.

    >>> log_ticks(0.5, 2000)
    [1.0, 10.0, 100.0, 1000.0]
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / most))
    return [10.0**p for p in range(first, last + 1) if (p - first) % every == 0]


def powers_of_two(low: float, high: float, most: int = 8) -> list[float]:
    """Powers of two within a domain, every second, fifth or tenth where they would be more than `most`: for bytes.

    >>> powers_of_two(2**28, 2**43, 4) == [2**30, 2**35, 2**40]
    True
    """
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    every = next((n for n in (1, 2, 5, 10) if last // n - (first - 1) // n <= most), 20)
    return [2.0**p for p in range(first, last + 1) if p % every == 0]


def linear_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round values within a domain.

    >>> linear_ticks(0, 100)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    """
    raw = (high - low) / count
    base = 10.0 ** math.floor(math.log10(raw))
    step = base * next(m for m in (1, 2, 5, 10) if base * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def axis_x(scale: Scale, y: float, ticks: Iterable[float], show: Callable[[float], str], name: str) -> str:
    """A line with ticks, their numbers, and a name, flush right, with an arrow to more."""
    parts = [line(scale.start, y, scale.end, y, cls="sb-axis-line")]
    for t in ticks:
        x = scale(t)
        anchor = "end" if x > scale.end - 16 else "start" if x < 14 else "middle"  # never off the edge
        parts.append(line(x, y, x, y + 4, cls="sb-axis-line"))
        parts.append(text(x, y + 17, show(t), cls="sb-tick", text_anchor=anchor))
    if name:
        parts.append(text(scale.end, y + 35, f"{name} →", cls="sb-tick", text_anchor="end"))
    return "".join(parts)


def axis_y(scale: Scale, left: float, right: float, ticks: Iterable[float], show: Callable[[float], str], name: str) -> str:
    """No line, only a faint grid with its numbers, and a horizontal name on top."""
    parts = []
    for t in ticks:
        y = scale(t)
        parts.append(line(left, y, right, y, cls="sb-grid"))
        parts.append(text(left - 8, y + 4, show(t), cls="sb-tick", text_anchor="end"))
    if name:
        parts.append(text(0, scale.end - 12, f"↑ {name}", cls="sb-tick"))
    return "".join(parts)


# ---- bars ---------------------------------------------------------------------------------------------------------------


def hatch(x: float, y: float, width: float, height: float, name: str = "idle", *, gap: float = 8.5) -> str:
    """A hatched rectangle: idle, or with name="bad" too much. Drawn line by line, so it needs no pattern and no id on the page."""
    if width <= 0 or height <= 0:
        return ""
    lines = []
    first = math.ceil((x - y - height) / gap)  # lines u - v = k * gap, so that neighbours continue each other
    for k in range(first, math.floor((x + width - y) / gap) + 1):
        c = k * gap
        u1, u2 = max(x, y + c), min(x + width, y + height + c)
        if u2 > u1:
            lines.append(f"M{u1:.1f},{u1 - c:.1f}l{u2 - u1:.1f},{u2 - u1:.1f}")
    ground = rect(x, y, width, height, style=f"{fill(name)};fill-opacity:.13")
    return ground + h("path", {"d": "".join(lines), "style": stroke(name), "stroke_width": 1.4, "fill": "none"})


def bar(x: float, y: float, width: float, height: float, label: str, name: str, *, size: float = 13, bold: bool = False) -> str:
    """A bar that holds its own label where the label fits; `fits` says whether."""
    parts = rect(x, y, width, height, style=fill(name), rx=2)
    if label and fits(label, width, size, bold=bold):
        weight = "sb-strong" if bold else None
        parts += text(
            x + width / 2,
            y + height / 2 + size * 0.35,
            label,
            size=size,
            style=fill(f"on-{name}"),
            text_anchor="middle",
            cls=weight,
        )
    return parts


def fits(label: str, width: float, size: float = 13, *, bold: bool = False) -> bool:
    """Whether a label fits inside a bar, with room on both sides."""
    return text_width(label, size, bold=bold) + 10 <= width


def digits_or_power(value: float) -> str:
    """A tick of a small logarithmic axis: written out up to 10,000, else as a power of ten.

    >>> digits_or_power(1000.0), digits_or_power(1e6)
    ('1,000', '10⁶')
    """
    if 1e-3 < value < 1e5:
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"
    power = str(round(math.log10(value)))
    return "10" + power.translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
