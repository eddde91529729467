"""Predictions beside what was measured or compiled: lines and points on the same axes, with the error of each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scalebook.errors import ScalebookError, unknown
from scalebook.units import percent

View = dict[str, Any]
Points = Sequence[tuple[float, float]]
_COLOURS = ("math", "hbm", "ici", "dcn", "muted")


def agreement(
    panels: Mapping[str, Mapping[str, Any]],
    *,
    x: tuple[str, str],
    y: tuple[str, str],
    log_x: bool = False,
    measured: str = "measured",
    y_from: float = 0.0,
    x_ticks: Sequence[float] = (),
) -> View:
    """One panel per name: `lines` {name: points}, of which the first is the prediction, `points` [(x, y)], and `errors` {x: share}.

    `x` and `y` are the names of the axes with their units, `x_ticks` the values to mark. `errors` is computed from the prediction where
    that has a point at this x and `errors` is left out.

        >>> view = agreement({"v5e": {"lines": {"predicted": [(1, 2), (2, 4)]}, "points": [(1, 2.5), (2, 4)]}}, x=("size", "B"), y=("rate", "B/s"))
        >>> [p["text"] for p in view["panels"][0]["points"]], round(view["worst"], 6)
        (['−20%', '<0.1%'], -0.2)

    Raises ScalebookError for a panel without a line or without points, and for an unknown colour.
    """
    made = [_panel(name, dict(panel)) for name, panel in panels.items()]
    if not made:
        raise ScalebookError("a picture of predictions needs at least one panel; found none")
    errors = [p["error"] for panel in made for p in panel["points"] if p["error"] is not None]
    worst = max(errors, key=abs) if errors else None
    return {"panels": made, "x": {"name": x[0], "unit": x[1], "log": log_x, "ticks": list(x_ticks)}, "y": {"name": y[0], "unit": y[1], "from": y_from},
            "measured": measured, "worst": worst}  # fmt: skip


def _panel(name: str, panel: Mapping[str, Any]) -> View:
    lines, points = panel.get("lines"), panel.get("points")
    if not lines or not points:
        raise ScalebookError(f"the panel {name!r} needs at least one line and one point; found {sorted(panel)}")
    colours = panel.get("colours", {})
    for colour in colours.values():
        if colour not in _COLOURS:
            raise unknown("colour of a line", colour, _COLOURS)
    names = list(lines)
    predicted = dict(lines[names[0]])
    errors = panel.get("errors")
    if errors is None:
        errors = {a: predicted[a] / b - 1 for a, b in points if a in predicted and b}
    return {
        "name": name,
        "lines": [
            {"name": n, "points": [list(p) for p in lines[n]], "dashed": i > 0, "colour": colours.get(n, "math" if i == 0 else "muted")}
            for i, n in enumerate(names)
        ],
        "points": [{"x": a, "y": b, "error": errors.get(a), "text": _signed(errors[a]) if a in errors else ""} for a, b in points],
    }  # fmt: skip


def _signed(error: float) -> str:
    """An error with its sign: +0.3%, −8.5%; below a thousandth only that."""
    if abs(error) < 0.001:
        return "<0.1%"
    return f"{'−' if error < 0 else '+'}{percent(abs(error))}"
