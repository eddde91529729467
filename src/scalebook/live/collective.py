"""The collective stepper: a collective over a ring, a line or a switch, step by step, with the bytes on every link."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from scalebook.errors import ScalebookError
from scalebook.explore.steps import SHAPES, links_of, step_count
from scalebook.figures import Figure, collective
from scalebook.figures.collective_words import SUMMED, launch_words, state_words
from scalebook.hardware import chips
from scalebook.live.controls import Choice, Player, Slider
from scalebook.live.explorers import Explorer
from scalebook.live.inputs import quoted
from scalebook.tables import Table
from scalebook.units import plural, si

KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute")
BYTES = tuple(2**n for n in range(10, 35))
USUAL = {"ring": "v5p", "line": "v5e", "switch": "h100"}
View = Mapping[str, Any]


@lru_cache(maxsize=len(SHAPES))
def chips_joined(shape: str) -> tuple[tuple[str, str], ...]:
    """The chips, by key and name, whose links make this shape and have a known rate."""
    found = []
    for chip in chips():
        try:
            links = links_of(chip, 2, shape)
        except ScalebookError:  # wired otherwise
            continue
        if links.bytes_per_s is not None and links.peer_bytes_per_s is None:
            found.append((chip.key, chip.name))
    return tuple(found)


def settle(state: dict[str, Any]) -> dict[str, Any]:
    """Where a shape is chosen that the chip's links do not make, a chip whose links do."""
    of_another = (key for shape in SHAPES for key, _ in chips_joined(shape))
    wrong = state["chip"] in of_another and state["chip"] not in dict(chips_joined(state["shape"]))
    return {**state, "chip": USUAL[state["shape"]]} if wrong else state


def figure(kind: str, shape: str, chip: str, devices: int, nbytes: int, step: int) -> Figure:
    """The collective after so many steps, and what is on its way."""
    return collective(kind, chip, nbytes, devices=devices, shape=shape, step=step)


def python(kind: str, shape: str, chip: str, devices: int, nbytes: int, step: int) -> str:
    """The same in code."""
    options = f"devices={devices}, shape={quoted(shape)}, step={step}"
    return f"import scalebook as sb\n\nsb.figures.collective({quoted(kind)}, {quoted(chip)}, {nbytes}, {options})\n"


def table(view: View) -> Table:
    """What every device holds at the moment that is shown, what it sends next, and how long every step takes."""
    step, count = view["step"], len(view["steps"])
    rows = []
    for d in range(view["devices"]):
        next_ = [f for f in view["flying"][step] if f["src"] == d] if step < count else []
        sent = math.fsum(f["bytes"] for flying in view["flying"][:step] for f in flying if f["src"] == d)
        held = "; ".join(_held(view, cell) for cell in view["held"][step][d])
        sends = "; ".join(_sends(view, f) for f in next_)
        rows.append((str(d), held or "nothing", sends or "nothing", si(sent, "B")))
    notes = tuple(
        f"Step {n} begins at {si(s['start'], 's')} and takes {si(s['seconds'], 's')}; its busiest link carries {si(max(f['bytes'] for f in flying), 'B')}."
        for n, (s, flying) in enumerate(zip(view["steps"], view["flying"], strict=True), 1)
    )
    if launch := launch_words(view):
        notes = (f"Of {si(view['seconds'], 's')} in all, {launch}, in which nothing is sent.", *notes)
    moment = state_words(view, step, math.inf)
    what = f"{view['kind']} over a {view['shape']} of {plural(view['devices'], 'device')}, {moment}"
    sends_head = f"sends in step {step + 1}" if step < count else "sends"
    return Table(what[0].upper() + what[1:], ("device", f"holds {_unit(view)}", sends_head, "sent so far"), tuple(rows), notes)


def _unit(view: View) -> str:
    if view["kind"] in SUMMED:
        return f"chunks, with how many of {view['devices']} terms are summed"
    return "messages, from → to" if view["kind"] == "all-to-all" else "chunks"


def _held(view: View, cell: View) -> str:
    """A chunk that a device holds: 3; of a part, which one; of a sum, how many terms."""
    said = [_part(lo, hi) + (plural(terms, "term") if view["kind"] in SUMMED else "") for lo, hi, terms in cell["pieces"]]
    return str(cell["name"]) + (f" ({', '.join(s.strip() for s in said)})" if any(said) else "")


def _part(lo: float, hi: float) -> str:
    if hi - lo == 1:
        return ""
    halves = {(0.0, 0.5): "first half ", (0.5, 1.0): "second half "}
    return halves.get((lo, hi)) or f"from {lo:g} to {hi:g} "


def _sends(view: View, f: View) -> str:
    """What is on its way: half of chunk 3 to 4, with its bytes."""
    if f["colour"] is None:
        what = f"{f['label']} message{'' if f['amount'] <= 1 else 's'}"
    else:
        what = f"{'half of ' if f['amount'] == 0.5 else ''}chunk {f['label']}"
    return f"{what} to {f['dst']}, {si(f['bytes'], 'B')}"


EXPLORER = Explorer(
    name="collective",
    title="A collective, step by step",
    controls=(
        Choice("kind", "Collective", tuple((k, k) for k in KINDS)),
        Choice("shape", "Shape", tuple((s, s) for s in SHAPES)),
        Choice("chip", "Links of", lambda state: chips_joined(state["shape"]), segments=False),
        Slider("devices", "Devices", tuple(range(2, 9)), lambda n: plural(n, "device")),
        Slider("nbytes", "Array", BYTES, lambda n: si(n, "B")),
        Player(
            "step",
            "Steps done",
            lambda state: step_count(state["kind"], state["shape"], state["devices"]),
            lambda n: f"after {plural(n, 'step')}" if n else "at the start",
        ),
    ),
    start={"kind": "all-gather", "shape": "ring", "chip": "v5p", "devices": 8, "nbytes": 2**24, "step": 1},
    figure=figure,
    python=python,
    table=table,
    settle=settle,
)
