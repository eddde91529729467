"""What a roofline says in one sentence, and its label for those who do not see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scalebook.figures.svg import escape
from scalebook.units import digits, percent, si


def label(view: Mapping[str, Any]) -> str:
    """The fixed description of the picture."""
    names = listed([panel["name"] for panel in view["panels"]])
    points = [p["name"] for p in view["panels"][0]["points"] if p["name"]]
    marked = f", with {listed(points)} marked" if points else ""
    return f"Roofline of {names}: FLOPs per second reached against FLOPs per byte moved, both axes logarithmic{marked}."


def describe(view: Mapping[str, Any]) -> str:
    """Where the ridge is, and on which side of it each point stands."""
    if len(view["panels"]) > 1:
        return _several(view["panels"])
    panel = view["panels"][0]
    points, ridge = panel["points"], panel["levels"][0]["ridges"][0]
    memory = panel["levels"][0]["name"]
    name = escape(panel["name"])
    if not points:
        return (
            f"On {name} {_key('hbm', memory)} binds below {_intensity(ridge)}, {_key('math', 'math')} above"
            + "".join(f"; from {v['name']} the ridge is at {digits(v['ridges'][0])}" for v in panel["levels"][1:])
            + "."
        )
    if len(points) == 1:
        return _one(points[0], panel, ridge, view.get("state"))
    sides = [
        (_key("hbm", memory), [p for p in points if p["bound_by"] != "math"]),
        (_key("math", "math"), [p for p in points if p["bound_by"] == "math"]),
    ]
    said = [f"{what} binds {listed([escape(p['name']) for p in on])}" for what, on in sides if on]
    measured = [f"{_share(p['measured']['share'])} at {escape(p['name'])}" for p in points if p["measured"]]
    end = f" Measured, of the peak: {listed(measured)}." if measured else ""
    return f"On {name}, whose ridge is at {_intensity(ridge)}, {', and '.join(said)}.{end}"


def _one(point: Mapping[str, Any], panel: Mapping[str, Any], ridge: float, state: Mapping[str, Any] | None) -> str:
    """One point; `state`, of a matmul, names its number formats."""
    memory = panel["levels"][0]["name"]
    side = "below" if point["intensity"] < ridge else "above" if point["intensity"] > ridge else "at"
    by_math = point["bound_by"] == "math"
    binds = _key("math", "Math") if by_math else _key("hbm", memory[:1].upper() + memory[1:])
    idle = _share(1 - min(point["parts"].values()) / point["seconds"])
    waits = memory if by_math else "the matrix unit"
    most = "the peak is in reach" if by_math else f"at most {_share(point['share'])} of peak"
    at = f" at {si(point['seconds'], 's')}" if point["timed"] else ""
    named = f"{escape(point['name'])} on" if point["name"] else "On"
    said = (
        f"{named} {escape(panel['name'])}{_formats(state) if state else ''}: {_intensity(point['intensity'])}, {side} the ridge at {digits(ridge)}. "
        f"{binds} binds{at}: {most}, and {waits} idles {idle} of the time."
    )
    for at in point["by_level"][1:]:
        level = next(v for v in panel["levels"] if v["level"] == at["level"])
        said += f" From {level['name']} it would be {_share(at['share'])} of peak."
    if point["measured"]:
        said += f" Measured: {percent(point['measured']['share'])} of peak, {percent(point['measured']['achieved'] / point['achieved'])} of what the roof allows."
    return said


def _formats(state: Mapping[str, Any]) -> str:
    """In which formats the numbers of a matmul are kept and multiplied."""
    used, kept = escape(state["dtype"]), escape(state["weights"])
    return f", all in {used}" if used == kept else f", {kept} weights multiplied in {used}"


def _several(panels: Sequence[Mapping[str, Any]]) -> str:
    ridges = [f"{digits(p['levels'][0]['ridges'][0])} on {escape(p['name'])}" for p in panels]
    said = f"The ridge, in FLOPs per byte, is at {listed(ridges)}."
    for i, point in enumerate(panels[0]["points"]):
        on = {
            w: [escape(p["name"]) for p in panels if (p["points"][i]["bound_by"] == "math") == (w == "math")]
            for w in ("hbm", "math")
        }
        parts = [f"{_key(w, 'HBM' if w == 'hbm' else w)} binds on {listed(names)}" for w, names in on.items() if names]
        said += f" {escape(point['name']) or 'The point'}: {', '.join(parts)}."
    return said


def listed(names: Sequence[str]) -> str:
    """Names as a list in words.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))


def _intensity(ratio: float) -> str:
    """An intensity with its unit: 1 FLOP per byte, 63 FLOPs per byte."""
    value = digits(ratio)
    return f"{value} FLOP{'' if value == '1' else 's'} per byte"


def _share(share: float) -> str:
    """A share as a percentage that says 100% only of all."""
    return percent(share, 3 if 0.99 < share < 1 else 2)


def _key(colour: str, words: str) -> str:
    return f'<b class="sb-key-{colour}">{escape(words)}</b>'
