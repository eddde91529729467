"""What each link of a collective carries over time: a lane per link, with the moment that is shown and the bytes sent so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.figures import hooks
from scalebook.figures.collective_words import launches, now
from scalebook.figures.svg import Scale, axis_x, hatch, line, linear_ticks, path, rect, text, text_width
from scalebook.units import digits, si

View = Mapping[str, Any]
LANE = 18  # height of a link's lane
LEFT, SENT = 50.0, 62.0  # room for the names of links, and for what they have sent
HEADS = ("each link over time: above the way on, below the way back", "links over time: way on, way back", "links over time")
SENT_HEADS = ("sent so far, both ways", "sent so far")


def lanes(view: View, width: float, top: float) -> tuple[str, float]:
    """A lane per link; on rings and lines its upper half is the way to the next device, its lower half the way back.

    With a step, what comes later is pale, a play head stands at the moment that is shown, and each link says what it has sent.
    """
    both, shown = view["shape"] != "switch", view["lanes"]
    rows = len(shown) // 2 if both else len(shown)
    moment = now(view)
    right, bottom = width - (8 if moment is None else SENT), top + rows * LANE
    whole = view["seconds"] or 1e-9  # nothing sent over links without latency takes no time, and has an axis all the same
    unit, scale = _unit(whole)
    time = Scale(0, whole * unit, LEFT, right)
    high = (LANE / 2 if both else LANE) - 1.5
    every = (top + i * (LANE / 2 if both else LANE) for i in range(len(shown)))
    grounds = "".join(f"M{LEFT:g},{y:g}h{right - LEFT:.2f}v{high:g}H{LEFT:g}z" for y in every)
    parts = [_heads(view, width, top - (16 if moment is None else 22), both), f'<path d="{grounds}" class="sb-empty"/>']
    for row, lane in enumerate(shown[:: 1 + both]):
        y = top + row * LANE + LANE / 2 + 3.5
        parts.append(_name(LEFT - 8, y, f"{lane['src']}–{lane['dst']}" if both else str(lane["src"])))
        if moment is not None:
            ways = shown[2 * row : 2 * row + 2] if both else (lane,)
            parts.append(
                _name(width, y, si(sum(b["bytes"] for way in ways for b in way["busy"] if b["step"] < view["step"]), "B"))
            )
    parts += [_launch(time(start * unit), time(end * unit), top, bottom) for start, end in launches(view)]
    parts += _busy(view, top, LEFT, (right - LEFT) / whole, high)
    if moment is not None:
        x = time(moment * unit)
        parts.append(rect(x, top, right - x, bottom - top, cls="sb-later"))
    ticks = linear_ticks(0, whole * unit, 5 if width >= 480 else 4)
    parts.append(axis_x(time, bottom + 2, ticks, digits, f"time, {scale}"))
    if moment is not None:
        parts.append(_head(view, time, unit, x, top, bottom))
    return "".join(parts), bottom + 42


def _launch(start: float, end: float, top: float, bottom: float) -> str:
    """The time in which a collective is started, and its name where there is room."""
    ground = hatch(start, top, end - start, bottom - top - 1.5)
    if text_width("launch", 12) + 8 > end - start:
        return ground
    return ground + text((start + end) / 2, (top + bottom) / 2 + 4, "launch", size=12, cls="sb-halo", text_anchor="middle")


def _name(right: float, y: float, words: str) -> str:
    """A short text without markup that ends here."""
    return f'<text x="{right:g}" y="{y:g}" class="sb-tick" text-anchor="end">{words}</text>'


def _unit(seconds: float) -> tuple[float, str]:
    return (1e3, "ms") if seconds >= 2e-3 else (1e6, "µs") if seconds >= 2e-6 else (1e9, "ns")


def _heads(view: View, width: float, y: float, both: bool) -> str:
    """What the lanes are and, with a step, what stands at their right, in the longest words that fit."""
    sent = [""] if view["step"] is None else list(SENT_HEADS) if both else [SENT_HEADS[1]]
    heads = HEADS if both else ("each device's way out over time", "ways out over time")
    pairs = [(head, more) for head in heads for more in sent]
    head, more = next((p for p in pairs if text_width("".join(p), 12) + 16 <= width), pairs[-1])
    said = text(0, y, head, cls="sb-note")
    return said + (text(width, y, more, cls="sb-note", text_anchor="end") if more else "")


def _busy(view: View, top: float, left: float, per_second: float, high: float) -> list[str]:
    """What is sent, as one path for each colour; beside a message that is followed, the others are pale."""
    both, follow = view["shape"] != "switch", view["follow"]
    drawn: dict[tuple[int, bool], list[str]] = {}
    for i, lane in enumerate(view["lanes"]):
        y = top + i * (LANE / 2 if both else LANE)
        for b in lane["busy"]:
            start = left + b["start"] * per_second + 0.5
            wide = max(0.0, (b["end"] - b["start"]) * per_second - 1)
            pale = follow is not None and b["message"] != follow
            drawn.setdefault((b["colour"], pale), []).append(f"M{start:.2f},{y:g}h{wide:.2f}v{high:g}h-{wide:.2f}z")
    return [
        f'<path d="{"".join(boxes)}" style="fill:var(--sb-cat-{colour + 1})" class="{"sb-busy sb-pale" if pale else "sb-busy"}"/>'
        for (colour, pale), boxes in drawn.items()
    ]


def _head(view: View, time: Scale, unit: float, x: float, top: float, bottom: float) -> str:
    """The play head; in a figure that answers, it can be dragged from step to step."""
    if not view.get("live"):
        stem = line(x, top - 4, x, bottom + 2, cls="sb-now")
        return stem + path([(x - 5, top - 9), (x + 5, top - 9), (x, top - 2)], close=True, style="fill:var(--sb-ink)")
    ends = [*(s["start"] for s in view["steps"]), view["seconds"]]
    area = hooks.drag(
        LEFT - 12, top - 15, time.end - LEFT + 24, bottom - top + 36, "step", [(time(t * unit), n) for n, t in enumerate(ends)]
    )
    return hooks.play_head(x, top, bottom + 2) + area
