"""A slice of TPUs: its links, which of them close an axis, the neighbours of a chip, and hops from it to every other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from scalebook import explore
from scalebook.errors import TopologyError, shown
from scalebook.figures import Figure, torus
from scalebook.layouts import Mesh
from scalebook.live.controls import Slider, Text, Toggle
from scalebook.live.explorers import Explorer
from scalebook.live.inputs import mesh_from, quoted
from scalebook.routes import Grid, neighbours
from scalebook.tables import Table
from scalebook.units import count, digits, si

Place = tuple[int, ...]


@lru_cache(maxsize=32)
def _shape(topology: str) -> Place:
    """The chips along each axis; the library's error for a machine that cannot be had or drawn."""
    return tuple(explore.torus(topology)["whole"])


@lru_cache(maxsize=32)
def _places(shape: Place) -> tuple[Place, ...]:
    return tuple(Grid(shape, (False,) * len(shape)).places())


@lru_cache(maxsize=32)
def _written(shape: Place) -> tuple[str, ...]:
    """The coordinates of every chip, as they stand in the state."""
    return tuple(",".join(map(str, place)) for place in _places(shape))


def _chips(state: Mapping[str, Any]) -> Sequence[str]:
    return _written(_shape(state["topology"]))


def _place(chip: Any) -> Place:
    """The coordinates that a text says."""
    if not isinstance(chip, str) or not re.fullmatch(r"\d{1,4}( *, *\d{1,4}){0,2}", chip, re.ASCII):
        raise TopologyError(f"chip is the coordinates of one, joined by commas, such as 1,2; found {shown(chip)}")
    return tuple(int(n) for n in chip.split(","))


def settle(state: dict[str, Any]) -> dict[str, Any]:
    """A chip that another slice does not have gives way to the nearest one that it has."""
    shape, at = _shape(state["topology"]), _place(state["chip"])
    inside = (min(i, n - 1) for i, n in zip((*at, 0, 0, 0), shape, strict=False))
    return {**state, "chip": ",".join(map(str, inside))}


@lru_cache(maxsize=16)
def _mesh(text: str, topology: str) -> Mesh:
    return mesh_from(text, topology)


def figure(topology: str, chip: str, compare: bool, mesh: str) -> Figure:
    """The slice with hops from the chip."""
    return torus(topology, from_chip=_place(chip), compare=compare, mesh=_mesh(mesh, topology) if mesh else None)


def python(topology: str, chip: str, compare: bool, mesh: str) -> str:
    """The same in code."""
    laid = f", mesh={quoted(dict(_mesh(mesh, topology).shape))}" if mesh else ""
    beside = ", compare=True" if compare else ""
    return f"import scalebook as sb\n\nsb.figures.torus({quoted(topology)}, from_chip={_place(chip)}{beside}{laid})\n"


@lru_cache(maxsize=16)
def _beside(shape: Place, wraps: tuple[bool, ...]) -> tuple[str, ...]:
    """The neighbours of every chip in words."""
    grid = Grid(shape, wraps)
    return tuple(" ".join(f"({', '.join(map(str, p))})" for p in sorted(neighbours(grid, place))) for place in _places(shape))


def table(view: Mapping[str, Any]) -> Table:
    """Every chip with its hops and its neighbours; below, what the whole slice has."""
    shape, real = tuple(view["whole"]), view["slice"]
    several = len(view["grids"]) > 1
    heads = [f"hops, {'torus' if any(g['wraps']) else 'mesh'}" if several else "hops" for g in view["grids"]]
    beside = _beside(shape, tuple(real["wraps"]))
    rows = tuple(
        (f"({', '.join(map(str, place))})", *(str(grid["hops"][i]) for grid in view["grids"]), beside[i])
        for i, place in enumerate(_places(shape))
    )
    notes = (
        f"Links: {count(real['links'])}, of which {count(real['closing'])} close an axis.",
        f"Diameter: {count(real['diameter'])} hops; mean over all pairs: {digits(real['mean'])}.",
        f"Narrowest cut into halves: {si(real['cut_bytes_per_s'], 'B/s')} one way.",
    )
    where = ", ".join(str(n) for n in view["from"])
    return Table(f"The chips of {view['spec']}, hops from ({where})", ("chip", *heads, "neighbours"), rows, notes)


EXPLORER = Explorer(
    name="torus",
    title="A slice and its links",
    controls=(
        Text("topology", "Slice", "v5e:4x4"),
        Slider("chip", "Chip", _chips, lambda chip: f"chip ({chip.replace(',', ', ')})"),
        Text("mesh", "Mesh on it (may be empty)", "X=4, Y=4"),
        Toggle("compare", "with and without wraparound"),
    ),
    start={"topology": "v5e:4x4", "chip": "0,0", "mesh": "", "compare": True},
    figure=figure,
    python=python,
    table=table,
    settle=settle,
)
