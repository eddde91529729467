"""What a sharded array's figure says in a sentence, and its label for those who do not see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import escape, text_width
from scalebook.units import binary, plural


def coordinate_name(axis: str) -> str:
    """An axis as a coordinate: X is written x=0, data is data=0.

    >>> coordinate_name("X"), coordinate_name("data")
    ('x', 'data')
    """
    return axis.lower() if len(axis) == 1 else axis


def mesh_words(view: Mapping[str, Any], room: float) -> str:
    """What stands over the mesh, as long as there is room for it."""
    sizes = " by ".join(f"{a['axis']}={a['size']}" for a in view["mesh"]) or "one device"
    long = f"the mesh, {sizes}: what each device holds"
    each = "" if view["bytes"] is None else f", {binary(view['bytes'])} each"
    short = f"mesh {sizes}: who holds what"
    return next((words for words in (long + each, short + each, long) if text_width(words, 12) <= room), short)


def size_words(view: Mapping[str, Any]) -> str:
    """The sizes of the array, its number format and its bytes."""
    shape = " × ".join(f"{d['size']:,}" for d in view["dims"])
    return f"{shape} in {view['dtype']}: {binary(view['array_bytes'])}"


def slab_words(k: int, depth: int, name: str, room: float) -> str:
    """Which places of the first dimension a slab stands for.

    >>> slab_words(1, 1, "B", 60), slab_words(1, 64, "B", 90), slab_words(1, 64, "B", 50)
    ('B = 1', 'B = 64:128', '64:128')
    """
    places = f"{k}" if depth == 1 else f"{k * depth}:{(k + 1) * depth}"
    long = f"{name} = {places}"
    return long if depth == 1 or text_width(long, 12) <= room else places if text_width(places, 12) <= room else f"part {k + 1}"


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
    if view["bytes"] is not None:
        whole = "" if view["blocks"] == 1 else f" of {binary(view['array_bytes'])}"
        said += f": <b>{binary(view['bytes'])}</b>{whole} in {view['dtype']}"
    if view["terms"] > 1:
        said += f", but only term {d['term'] + 1} of {view['terms']} of each number: a sum over {_keys(view, view['pending'])} is still to be done"
    others = len(view["holders"]) - 1
    if not others:
        return f"{said}. No other device holds it: nothing is replicated{_in_all(view)}."
    holding = f"{plural(others, 'other device')} {'holds' if others == 1 else 'hold'} the same"
    return f"{said}. {holding}: replicated over {_keys(view, view['unused'])}{_in_all(view)}."


def _in_all(view: Mapping[str, Any]) -> str:
    """Copies, and what the devices hold together."""
    if view["bytes"] is None:
        return ""
    times, copies = len(view["devices"]) // view["blocks"], len(view["holders"])
    said = "one copy of each block" if copies == 1 else f"{copies} copies of each block"
    if view["terms"] > 1:
        said = said.replace("block", "term")
    return f", {said}" + (f". All devices together hold {times} times the bytes of the array" if times > 1 else "")


def _keys(view: Mapping[str, Any], axes: Sequence[str]) -> str:
    colours = {a["axis"]: a["colour"] for a in view["mesh"]}
    return listed([f'<b class="sb-key-{colours[a]}">{escape(a)}</b>' for a in axes])
