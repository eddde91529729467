"""The systolic array, cycle by cycle: which cells multiply which row, and what the whole run uses of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.explore.tpus import MOST_ROWS, MOST_SIDE
from scalebook.figures import Figure, systolic
from scalebook.live.controls import Choice, Player, Slider
from scalebook.live.explorers import Explorer
from scalebook.systolic import cycles
from scalebook.tables import Table
from scalebook.units import percent, plural


def _last(state: Mapping[str, Any]) -> int:
    """The last cycle of a run."""
    return int(cycles(state["rows"], state["dim"], state["dim"] * state["tiles"], dim=state["dim"])) - 1


def figure(rows: int, dim: int, tiles: int, cycle: int) -> Figure:
    """One cycle of the run."""
    return systolic(rows, dim, tiles=tiles, cycle=cycle)


def python(rows: int, dim: int, tiles: int, cycle: int) -> str:
    """The same in code."""
    return f"import scalebook as sb\n\nsb.figures.systolic({rows}, {dim}, tiles={tiles}, cycle={cycle})\n"


def table(view: Mapping[str, Any]) -> Table:
    """Every cycle: how many cells work, and what the array does."""
    R, C = view["shape"]
    rows = tuple((str(n), str(busy), phase) for n, (busy, phase) in enumerate(zip(view["busy"], view["phases"], strict=True)))
    run = f"{plural(view['rows'], 'row')} through {R} × {C} cells, {plural(view['tiles'], 'tile')} of weights"
    whole = f"Of {view['total']} cycles × {R * C} cells {percent(view['useful'])} multiply."
    return Table(f"{run}, cycle by cycle", ("cycle", "cells at work", "phase"), rows, (whole,))


EXPLORER = Explorer(
    name="systolic",
    title="A systolic array at work",
    controls=(
        Slider("rows", "Rows of A", tuple(range(1, MOST_ROWS + 1)), lambda n: plural(n, "row")),
        Slider("dim", "Cells a side", tuple(range(2, MOST_SIDE + 1)), lambda n: f"{n} × {n} cells"),
        Choice("tiles", "Tiles of weights", tuple((n, str(n)) for n in range(1, 5))),
        Player("cycle", "Cycle", _last, lambda n: f"cycle {n}"),
    ),
    start={"rows": 8, "dim": 4, "tiles": 1, "cycle": 6},
    figure=figure,
    python=python,
    table=table,
)
