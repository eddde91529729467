"""A chip's levels of memory: what each holds, and how long some bytes take over each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.explore.tpus import MOVED
from scalebook.figures import Figure, memory_levels
from scalebook.hardware import chips
from scalebook.live.controls import Choice, Slider
from scalebook.live.explorers import Explorer
from scalebook.tables import Table
from scalebook.units import si


def figure(chip: str, nbytes: int) -> Figure:
    """The levels of the chip, with the time of so many bytes."""
    return memory_levels(chip, nbytes)


def python(chip: str, nbytes: int) -> str:
    """The same in code."""
    return f'import scalebook as sb\n\nsb.figures.memory_levels("{chip}", {nbytes})\n'


def table(view: Mapping[str, Any]) -> Table:
    """The levels, nearest first."""
    fits = {None: "unknown", True: "yes", False: "no"}
    rows = tuple((x["name"], x["holds_text"], x["rate_text"], x["seconds_text"], fits[x["fits"]]) for x in view["levels"])
    head = ("level", "holds", "rate", f"time of {view['moved']}", "holds it")
    return Table(f"Levels of memory of {view['chip']}", head, rows)


EXPLORER = Explorer(
    name="memory_levels",
    title="How long bytes take over each level",
    controls=(
        Choice("chip", "Chip", tuple((c.key, c.name) for c in chips() if c.kind == "tpu"), segments=False),
        Slider("nbytes", "Bytes", MOVED, lambda n: si(n, "B")),
    ),
    start={"chip": "v5e", "nbytes": 10**9},
    figure=figure,
    python=python,
    table=table,
)
