"""The latency explorer: a collective's time against its bytes on a slice, and which of latency and bandwidth binds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from scalebook import figures
from scalebook.explore import latency
from scalebook.hardware import chip as chip_of
from scalebook.layouts import Mesh, mesh as mesh_of
from scalebook.live.controls import Choice, Slider
from scalebook.live.explorers import Explorer
from scalebook.tables import Table
from scalebook.units import percent, si

KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute")
CHIPS = ("v4", "v5e", "v5p", "v6e")
FLAT, CUBES = ("2x2", "4x4", "4x8", "8x8", "8x16", "16x16"), ("2x2x2", "4x4x4", "4x4x8", "8x8x8", "8x8x16", "16x16x16")
BYTES = (*(m * 10**p for p in range(3, 9) for m in (1, 2, 5)), 10**9)


def _shapes(state: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Slices of the chip: squares and cubes, some with links that wrap around and some without."""
    shapes = FLAT if chip_of(state["chip"]).torus_dims == 2 else CUBES
    return tuple((shape, shape.replace("x", "×")) for shape in shapes)


def settle(state: dict[str, Any]) -> dict[str, Any]:
    """A slice that another chip is not offered in gives way to one of as many dimensions as it has."""
    offered = [shape for shape, _ in _shapes(state)]
    return {**state, "shape": offered[-1]} if state["shape"] in FLAT + CUBES and state["shape"] not in offered else state


@lru_cache(maxsize=64)
def _mesh(chip: str, shape: str) -> tuple[Mesh, list[str]]:
    """A mesh with an axis for each dimension of the slice, and the choices of axes: one, two, all."""
    sizes = dict(zip("XYZ", map(int, shape.split("x")), strict=False))
    names = "".join(sizes)
    return mesh_of(sizes, on=f"{chip}:{shape}"), [names[:n] for n in range(1, len(names) + 1)]


def figure(kind: str, chip: str, shape: str, at: int) -> figures.Figure:
    """The curves of one, two, … axes, and the marked number of bytes."""
    view = latency(kind, *_mesh(chip, shape), low=BYTES[0], high=BYTES[-1], at=at)
    return figures.draw("curves", {**view, "stops": {"key": "at", "values": list(BYTES)}})


def python(kind: str, chip: str, shape: str, at: int) -> str:
    """The same in code."""
    mesh, axes = _mesh(chip, shape)
    sizes = ", ".join(f'"{name}": {size}' for name, size in mesh.shape.items())
    listed = ", ".join(f'"{some}"' for some in axes)
    return (
        f'import scalebook as sb\n\nmesh = sb.mesh({{{sizes}}}, on="{chip}:{shape}")\n'
        f'sb.figures.latency("{kind}", mesh, [{listed}], at={at})\n'
    )


def table(view: Mapping[str, Any]) -> Table:
    """The marked number of bytes over each choice of axes, and where each turns."""
    turns = {m["name"]: m["text"] for m in view["marks"]}
    rows = []
    for r in view["at"]["rows"]:
        binds = "latency" if 2 * r["latency"] > r["seconds"] else "bandwidth"
        share = percent(r["latency"] / r["seconds"])
        rows.append((r["name"], si(r["seconds"], "s"), si(r["latency"], "s"), share, binds, turns.get(r["name"], "none here")))
    head = ("over", "time", "latency", "its share", "binds", "both equal at")
    return Table(f"{view['subject']}: {view['at']['name']}", head, tuple(rows))


EXPLORER = Explorer(
    name="latency",
    title="Latency and bandwidth of a collective",
    controls=(
        Slider("at", "Bytes", BYTES, lambda n: si(n, "B")),
        Choice("kind", "Collective", tuple((k, k) for k in KINDS), segments=False),
        Choice("chip", "Chip", tuple((c, chip_of(c).name) for c in CHIPS), segments=False),
        Choice("shape", "Slice", _shapes, segments=False),
    ),
    start={"kind": "all-gather", "chip": "v5e", "shape": "16x16", "at": 100_000},
    figure=figure,
    python=python,
    table=table,
    settle=settle,
)
