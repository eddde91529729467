"""How many users fit: the bytes of a cache against the length, the memory beside the weights, and the sequences that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.figures import bar_chart, curve_chart
from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, escape, g
from scalebook.units import binary, count, plural, si

View = Mapping[str, Any]
GAP = 22


def draw(view: View, width: float) -> Picture:
    """The curves against the limit; below them, for the marked length, how many sequences fit."""
    curves = curve_chart.draw(view, width)
    bars = bar_chart.draw(view["fit"], width)
    below = g([bars.body], transform=f"translate(0 {curves.height + GAP:g})")
    return Picture(width, curves.height + GAP + bars.height, curves.body + below)


def label(view: View) -> str:
    """The fixed description of the picture."""
    names = listed([c["name"] for c in view["lines"]])
    return (
        f"Curves on two logarithmic axes: bytes of cache of {view['subject']} against tokens in each sequence, for {names}, "
        f"with the memory of {view['chip']} as the limit. Below, {bar_chart.label(view['fit'])[0].lower()}{bar_chart.label(view['fit'])[1:]}"
    )


def describe(view: View) -> str:
    """What fits at the marked length, against the other ways to share keys and values."""
    at, rows = view["at"], view["at"]["rows"]
    chips = (f"each of {count(view['tp'])} " if view["tp"] > 1 else "one ") + escape(view["chip"])
    weights = f"{binary(view['weight_bytes'])} of weights in {view['weights']}"
    if view["free"] <= 0:
        return f"Nothing fits: {weights} are more than the {binary(view['hbm_bytes'])} of {chips}."
    others = [f"{count(r['fit'])} as {escape(r['name'])}" for r in rows[1:]]
    beside = f"Beside {weights}, {chips} holds <b>{plural(at['fit'], 'sequence')}</b> of {at['name']}"
    said = [beside + (f"; with other keys and values: {listed(others)}" if others else "")]
    fits = "fits" if view["batch"] <= at["fit"] else "does not fit"
    full = "" if view["longest"] is None else f"; up to {count(view['longest'])} tokens each fit"
    batch = f"A batch of {count(view['batch'])} takes {escape(rows[0]['text'])}"
    said.append(f"{batch}, {si(view['token_bytes'], 'B')} a token, and {fits}{full}")
    if (w := view["windows"]) is not None:
        said.append(f"{count(w['layers'])} of {plural(w['of'], 'layer')} with keys keep the last {count(w['width'])} tokens only")
    if view["state_bytes"]:
        said.append(f"{binary(view['state_bytes'])} of each sequence are recurrent states, however long it is")
    return ". ".join(said) + "."
