"""What a sharded array's figure says in a sentence, and its label for those who do not see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import escape
from scalebook.units import plural


def coordinate_name(axis: str) -> str:
    """An axis as a coordinate: X is written x=0, data is data=0.

    >>> coordinate_name("X"), coordinate_name("data")
    ('x', 'data')
    """
    return axis.lower() if len(axis) == 1 else axis


def label(view: Mapping[str, Any]) -> str:
    """The fixed description of the picture."""
    shape = " by ".join(f"{d['letter']} = {d['size']}" for d in view["dims"])
    grid = " by ".join(f"{a['axis']} = {a['size']}" for a in view["mesh"])
    return f"The array {_flat(view['spec'])}, {shape}, beside a mesh of {plural(len(view['devices']), 'device')}, {grid}; each shows the block it holds."


def _flat(pieces: Iterable[Mapping[str, Any]]) -> str:
    return "".join(p["text"] + ("_" + "".join(p["axes"]) if p.get("axes") else "") for p in pieces)


def describe(view: Mapping[str, Any]) -> str:
    """What the chosen device holds, and who else holds the same."""
    d = view["devices"][view["device"]]
    at = ", ".join(f"{coordinate_name(a['axis'])}={i}" for a, i in zip(view["mesh"], d["at"], strict=True))
    held = ", ".join(f"{a}:{b}" for a, b in d["block"])
    array = view["spec"][0]["text"][:-1]
    share = "the whole array" if view["blocks"] == 1 else f"1/{view['blocks']} of the array"
    said = f"Device ({escape(at)}) holds <b>{escape(array)}[{held}]</b>, {share}"
    if view["terms"] > 1:
        said += f", but only term {d['term'] + 1} of {view['terms']} of each number: a sum over {_keys(view, view['pending'])} is still to be done"
    others = len(view["holders"]) - 1
    if others:
        return f"{said}. {plural(others, 'other device')} {'holds' if others == 1 else 'hold'} the same: replicated over {_keys(view, view['unused'])}."
    return f"{said}. No other device holds it: nothing is replicated."


def _keys(view: Mapping[str, Any], axes: Sequence[str]) -> str:
    colours = {a["axis"]: a["colour"] for a in view["mesh"]}
    return listed([f'<b class="sb-key-{colours[a]}">{escape(a)}</b>' for a in axes])
