"""When attention matters: the share of scores and values against the length, as curves, and what that says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.figures import curve_chart
from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, escape
from scalebook.units import count

View = Mapping[str, Any]


def draw(view: View, width: float) -> Picture:
    """The curves, with a dot where each reaches one half."""
    return curve_chart.draw(view, width)


def label(view: View) -> str:
    """The fixed description of the picture."""
    return f"Curves: {view['y']['name']} against {view['x']['name']}, for {listed([c['name'] for c in view['lines']])}."


def describe(view: View) -> str:
    """The share at the marked length, and from which length on it is half, or why it never is."""
    said = []
    if view["at"]:
        rows = [f"<b>{escape(r['text'])}</b> of the FLOPs of {escape(r['name'])}" for r in view["at"]["rows"]]
        said.append(f"At {view['at']['name']} scores and values are {listed(rows)}")
    said += [turn_words(c) for c in view["lines"]]
    pairs = "pairs that the causal mask leaves" if view["convention"] == "causal" else "all pairs, masked or not"
    return f"{'. '.join(said)}. Counted: {pairs}."


def turn_words(line: View) -> str:
    """When the attention of one model costs as much as all the rest of it: as HTML."""
    name = escape(line["name"])
    if not line["mixes"]:
        return f"{name} has none: <b>never</b>"
    if line["equal"] is None:
        return f"In {name} they <b>never</b> reach half, since every layer sees a bounded number of keys: at most {line['bound_text']}"
    flat = "" if line["bound"] == 1 else f", and grow to {line['bound_text']} at most"
    return f"In {name} they cost as much as all the rest from <b>{count(line['equal'])} tokens</b> on{flat}"
