"""Horizontal bars from zero, each with its value, and a limit where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, escape, fill, fits, hatch, line, per, rect, shortened, text, text_width

BAR, STEP = 20, 30


def draw(view: Mapping[str, Any], width: float) -> Picture:
    """Names stand left of their bars where all are short, else above them; values after the bar, or inside the longest."""
    rows, limit = _named(view["rows"], 0.4 * width - 12), view["limit"]
    names = max(text_width(row["name"], bold=True) for row in rows) + 12
    beside = names < 0.4 * width
    left = names if beside else 1.0
    step = STEP if beside else BAR + 27
    values = max(text_width(row["text"], bold=True) for row in rows) + 10
    longest = max([row["value"] for row in rows] + ([limit["value"]] if limit else [])) or 1
    right = width - 6 - (values if all(row["value"] < longest or not fits(row["text"], 120) for row in rows) else 0)
    right = max(right if limit else width - 6 - values, left + 40)
    scale = per(right - left, longest)
    top = (20.0 if view["quantity"] else 4) + (24 if limit else 0)
    body = [text(0, 12, f"{shortened(view['quantity'], width - 20)} →", cls="sb-tick")] if view["quantity"] else []
    bottom = top + step * len(rows) - (STEP - BAR) + (4 if beside else 0)
    if beside:
        body.append(line(left, top - 4, left, bottom, cls="sb-axis-line"))
    for i, row in enumerate(rows):
        body.append(_row(row, view, left, top + step * i + (0 if beside else 19), scale, width, beside=beside))
    if limit:
        body.insert(0, _limit(limit, left + limit["value"] * scale, top, bottom, width))
        body.append(line(left + limit["value"] * scale, top - 6, left + limit["value"] * scale, bottom + 2, cls="sb-limit"))
    return Picture(width, bottom + 4, "".join(body))


def _named(rows: Sequence[Mapping[str, Any]], room: float) -> list[Mapping[str, Any]]:
    """Rows with names that fit, where leaving out what stands in brackets makes them fit and keeps them apart."""
    if max(text_width(row["name"], bold=True) for row in rows) < room:
        return list(rows)
    short = [row["name"].split(" (")[0] for row in rows]
    return [{**row, "name": s} for row, s in zip(rows, short, strict=True)] if len(set(short)) == len(rows) else list(rows)


def _row(
    row: Mapping[str, Any], view: Mapping[str, Any], left: float, y: float, scale: float, width: float, *, beside: bool
) -> str:
    colour, limit, length = view["colour"], view["limit"], row["value"] * scale
    weight = "sb-strong" if row["stressed"] and not all(r["stressed"] for r in view["rows"]) else None
    base = y + BAR / 2 + 5
    made = (
        text(left - 8, base, row["name"], text_anchor="end", cls=weight)
        if beside
        else text(left, y - 6, shortened(row["name"], width - left, bold=bool(weight)), cls=weight)
    )
    inside = min(length, limit["value"] * scale) if limit else length
    made += rect(left, y, inside, BAR, style=fill(colour), rx=2, cls=None if row["stressed"] else "sb-rest")
    if row["over"]:
        made += hatch(left + inside, y, length - inside, BAR, "bad") + rect(left + inside, y, length - inside, BAR, cls="sb-over")
    words, after = row["text"] + (" ✗" if row["over"] else ""), left + length + 6
    near = limit and not row["over"] and after < left + limit["value"] * scale < after + text_width(words) + 6
    if (near or after + text_width(words, bold=True) > width) and row["stressed"] and fits(words, inside):
        return made + text(left + inside - 6, base, words, text_anchor="end", style=fill(f"on-{colour}"), cls=weight)
    if near:
        after = left + limit["value"] * scale + 8 if limit else after
    return made + text(after, base, words, cls=weight)


def _limit(limit: Mapping[str, Any], x: float, top: float, bottom: float, width: float) -> str:
    words = shortened(limit["text"], width, bold=True)
    half = text_width(words, bold=True) / 2
    at = min(max(x, half), width - half)
    return text(at, top - 12, words, text_anchor="middle", cls="sb-strong", style=fill("hbm-text")) + line(
        x, top - 6, x, bottom, cls="sb-limit-guide"
    )


def label(view: Mapping[str, Any]) -> str:
    """The fixed description of the picture."""
    against = f" against {view['limit']['text']}" if view["limit"] else ""
    return f"Bars: {listed([r['name'] + ' ' + r['text'] for r in view['rows']])}{against}."


def describe(view: Mapping[str, Any]) -> str:
    """The least and the most, and what is over the limit."""
    rows = view["rows"]
    least, most = (pick(rows, key=lambda r: r["value"]) for pick in (min, max))
    if len(rows) == 1:
        said = f"<b>{escape(rows[0]['name'])}</b>: {escape(rows[0]['text'])}"
    else:
        said = f"From {escape(least['text'])} (<b>{escape(least['name'])}</b>) to {escape(most['text'])} (<b>{escape(most['name'])}</b>)"
    if view["limit"]:
        over = [escape(r["name"]) for r in rows if r["over"]]
        said += f"; over the limit ({escape(view['limit']['text'])}): {listed(over) if over else 'none'}"
    return said + "."
