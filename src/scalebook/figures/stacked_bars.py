"""Parts that add up, named at the part, against a limit; what is over the limit is hatched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, escape, fill, fits, h, hatch, line, per, rect, shortened, text, text_width

BAR = 36


def draw(view: Mapping[str, Any], width: float) -> Picture:
    """One bar a row on one scale; a part's name stands in it where it fits, the others hang below like stairs."""
    limit = view["limit"]
    longest = max([row["total"] for row in view["rows"]] + ([limit["value"] * 1.05] if limit else [])) or 1
    scale = per(width - 8, longest)
    body, y = [], 50.0 if limit else 26.0
    for row in view["rows"]:
        drawn, height = _row(row, limit["value"] * scale if limit else None, y, scale, width)
        body.append(drawn)
        y += height
    if limit:
        x = limit["value"] * scale + 1
        words = shortened(limit["text"], width, bold=True)
        half = text_width(words, bold=True) / 2
        body.insert(0, line(x, 20, x, y - 26, cls="sb-limit-guide"))
        body.append(
            text(min(max(x, half), width - half), 13, words, text_anchor="middle", cls="sb-strong", style=fill("hbm-text"))
        )
    return Picture(width, y - 22, "".join(body))


def _row(row: Mapping[str, Any], limit: float | None, y: float, scale: float, width: float) -> tuple[str, float]:
    x, parts = 1.0, []
    for part in row["parts"]:
        long = part["value"] * scale
        parts.append({**part, "x": x, "long": long, "words": f"{shortened(part['name'], 0.6 * width, 12)} {part['text']}"})
        x += long
    head = h("tspan", {"font_weight": "600"}, escape(shortened(row["name"], width, bold=True)))
    verdict = row["verdict"] or row["text"]
    tone = f"{'bad' if row['over'] else 'good'}-text" if row["verdict"] else "muted"
    beside = text_width(row["name"] + verdict, bold=True) + 14 < width
    place = {"dx": 12} if beside else {"x": 0, "dy": 16}
    made = [
        h(
            "text",
            {"x": 0, "y": y - 9, "cls": "sb-halo"},
            head,
            h("tspan", {**place, "font_weight": "600", "style": fill(tone)}, escape(verdict)),
        )
    ]
    shift = 0 if beside else 16
    y += shift
    made += [rect(p["x"], y, p["long"] - 1, BAR, style=fill(p["colour"])) for p in parts]
    if limit is not None:
        if row["over"]:
            made.append(
                hatch(limit + 1, y - 4, x - limit - 1, BAR + 8, "bad")
                + rect(limit + 1, y - 4, x - limit - 1, BAR + 8, cls="sb-over")
            )
        made.append(line(limit + 1, y - 6, limit + 1, y + BAR + 6, cls="sb-limit"))
    inside = [
        p
        for p in parts
        if fits(p["words"], p["long"] if limit is None or not row["over"] else min(p["long"], limit - p["x"]), 12)
    ]
    for p in inside:
        long = min(p["long"], limit - p["x"]) if limit is not None and row["over"] else p["long"]
        made.append(
            text(p["x"] + long / 2, y + BAR / 2 + 4, p["words"], size=12, text_anchor="middle", style=fill(f"on-{p['colour']}"))
        )
    below = [p for p in parts if p not in inside]
    for i, p in enumerate(below):
        middle, base = p["x"] + p["long"] / 2, y + BAR + 17 + (len(below) - 1 - i) * 16
        wide = text_width(p["words"], 12)
        flip = middle + 5 + wide > width
        at = middle + 5 if not flip else max(middle - 5, wide)  # its end, where it stands left of its line
        made.append(line(middle, y + BAR, middle, base - 3, cls="sb-lead"))
        made.append(text(at, base, p["words"], size=12, cls="sb-halo", text_anchor="end" if flip else None))
    return "".join(made), BAR + 16 * len(below) + 52 + shift


def label(view: Mapping[str, Any]) -> str:
    """The fixed description of the picture."""
    said = [f"{r['name']} {r['text']}: {listed([p['name'] + ' ' + p['text'] for p in r['parts']])}" for r in view["rows"]]
    against = f" against {view['limit']['text']}" if view["limit"] else ""
    return f"Stacked bars{against}. {'; '.join(said)}."


def describe(view: Mapping[str, Any]) -> str:
    """Each row's total, its largest part, and whether it fits."""
    said = []
    for row in view["rows"]:
        largest = max(row["parts"], key=lambda p: p["value"])
        fit = "" if not view["limit"] else ", too much" if row["over"] else ", which fits"
        said.append(
            f"<b>{escape(row['name'])}</b> {escape(row['text'])}{fit}, the largest part {escape(largest['name'])} ({escape(largest['text'])})"
        )
    return "; ".join(said) + "."
