"""Checks of the colours: contrast by WCAG 2, and how far apart two colours are for people who see colours differently.

The rules: a filled shape has at least 3:1 and a text 4.5:1 against the page and against a card, in both themes; a label on a
filled shape 4.5:1; any two colours of a family differ by a CIEDE2000 of 8 (6 where there are eight of them) for normal vision,
deuteranopia, protanopia and tritanopia (Machado, Oliveira and Fernandes 2009, full severity).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

Rgb = tuple[float, float, float]
VISION: dict[str, tuple[Rgb, Rgb, Rgb]] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def linear_rgb(colour: str) -> Rgb:
    """'#rrggbb' as linear RGB between 0 and 1.

    >>> linear_rgb("#ff0000")
    (1.0, 0.0, 0.0)
    """
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return r, g, b


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21.

    >>> round(contrast("#ffffff", "#000000"), 1)
    21.0
    """

    def luminance(colour: str) -> float:
        r, g, b = linear_rgb(colour)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def label_on(fill: str) -> str:
    """Black or white, whichever reads better on a fill.

    >>> label_on("#1c72d4")
    '#ffffff'
    """
    return max(("#ffffff", "#121212"), key=lambda ink: contrast(fill, ink))


def seen(colour: str, vision: str) -> Rgb:
    """Linear RGB of a colour as it looks with a kind of vision."""
    rgb = linear_rgb(colour)
    r, g, b = (min(1.0, max(0.0, sum(m * c for m, c in zip(row, rgb, strict=True)))) for row in VISION[vision])
    return r, g, b


def to_lab(rgb: Rgb) -> Rgb:
    """Linear RGB as CIELAB under D65.

    >>> [abs(round(v, 1)) for v in to_lab((1.0, 1.0, 1.0))]
    [100.0, 0.0, 0.0]
    """
    r, g, b = rgb
    xyz = (
        (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047,
        0.2126729 * r + 0.7151522 * g + 0.0721750 * b,
        (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(one: Rgb, other: Rgb) -> float:
    """The colour difference CIEDE2000 of two CIELAB colours (Sharma, Wu and Dalal 2005).

    >>> round(ciede2000((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485)), 4)
    2.0425
    """
    (l1, a1, b1), (l2, a2, b2) = one, other

    def spread(chroma: float) -> float:
        return math.sqrt(chroma**7 / (chroma**7 + 25**7))

    def cos(degrees: float) -> float:
        return math.cos(math.radians(degrees))

    g = 0.5 * (1 - spread((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = (math.degrees(math.atan2(y, x)) % 360 for x, y in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    dh = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn) / 2)
    lm, cm, hm = (l1 + l2) / 2, (c1 + c2) / 2, (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = 1 - 0.17 * cos(hm - 30) + 0.24 * cos(2 * hm) + 0.32 * cos(3 * hm + 6) - 0.2 * cos(4 * hm - 63)
    sl = 1 + 0.015 * (lm - 50) ** 2 / math.sqrt(20 + (lm - 50) ** 2)
    sc, sh = 1 + 0.045 * cm, 1 + 0.015 * cm * t
    rt = -2 * spread(cm) * math.sin(math.radians(60 * math.exp(-(((hm - 275) / 25) ** 2))))
    dl, dc, dh = (l2 - l1) / sl, (c2 - c1) / sc, dh / sh
    return math.sqrt(dl**2 + dc**2 + dh**2 + rt * dc * dh)


def difference(one: str, other: str, vision: str = "normal") -> float:
    """CIEDE2000 between two '#rrggbb' colours as they look with a kind of vision.

    >>> round(difference("#ff0000", "#00ff00")), round(difference("#ff0000", "#00ff00", "deuteranopia"))
    (87, 19)
    """
    return ciede2000(to_lab(seen(one, vision)), to_lab(seen(other, vision)))


def closest(colours: Mapping[str, str], names: Sequence[str], vision: str) -> tuple[float, str, str]:
    """The smallest difference between any two of the named colours, and which two."""
    return min((difference(colours[a], colours[b], vision), a, b) for a, b in itertools.combinations(names, 2))


def report(tokens: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """A table of every contrast and difference, and the list of those that break a rule."""
    lines: list[str] = []
    faults: list[str] = []

    def need(ratio: float, least: float, what: str) -> str:
        if ratio < least:
            faults.append(f"{what}: {ratio:.2f} is below {least}")
        return f"{ratio:5.2f}"

    for theme, grounds in tokens["backgrounds"].items():
        grounds = {**grounds, "tile": tokens["neutrals"][theme]["card"]}
        lines.append(f"{theme}: contrast against " + ", ".join(f"{k} {v}" for k, v in grounds.items()))
        for name, colour in tokens["graphics"][theme].items():
            row = [need(contrast(colour, v), 3, f"{theme} {name} on {k}") for k, v in grounds.items()]
            row.append(need(contrast(colour, label_on(colour)), 4.5, f"label on {theme} {name}"))
            lines.append(f"  {name:6} {colour}  " + "  ".join(row))
        words = {**tokens["text"][theme], **{n: tokens["neutrals"][theme][n] for n in ("ink", "muted")}}
        for name, colour in words.items():
            row = [need(contrast(colour, v), 4.5, f"{theme} text {name} on {k}") for k, v in grounds.items()]
            lines.append(f"  text {name:6} {colour}  " + "  ".join(row))
        for family, names in tokens["families"].items():
            row = []
            for vision in VISION:
                least, a, b = closest(tokens["graphics"][theme], names, vision)
                need(least, 6 if len(names) > 6 else 8, f"{theme} {family}, {vision}: {a} and {b}")
                row.append(f"{vision} {least:.1f} ({a}, {b})")
            lines.append(f"  {family}: " + "; ".join(row))
    return lines, faults
