"""What the torus figure shows: the chips of a slice, the links between them, hops from one chip, and the mesh axes that lie on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from scalebook.errors import MeshError, TopologyError, shown
from scalebook.explore.arrays import colour_of
from scalebook.meshes import Mesh, mesh as mesh_of
from scalebook.routes import Grid, diameter, distances, grid_of, links, mean_hops, neighbours
from scalebook.topologies import Topology, topology as topology_of
from scalebook.units import as_number, count

View = dict[str, Any]
MOST_ACROSS, MOST_PLANES, MOST_IN_PLANE = 16, 8, 8
_SMALLER = {False: "{}:16x16", True: "{}:8x8x8"}


def torus(
    topology: Topology | str,
    *,
    from_chip: Sequence[int] | None = None,
    compare: bool = False,
    mesh: Mesh | Mapping[str, int] | None = None,
) -> View:
    """One TPU slice: 2D slices up to 16x16 as a grid, 3D ones up to 8 planes of 8x8 as planes.

    `from_chip`: the chip from which hops are counted, and whose neighbours are marked; if left out, hops are counted from the first
    one. `compare`: the same slice with and without wraparound, whatever it really has, side by side. `mesh`: axes laid on the
    slice (or their sizes); without `from_chip`, each chip then shows its coordinates on the mesh instead of hops.

        >>> view = torus("v5e:4x4", from_chip=(0, 0), compare=True)
        >>> [(g["wraps"], g["real"], g["farthest"]) for g in view["grids"]]
        [([True, True], False, 4), ([False, False], True, 6)]

    Raises TopologyError for GPUs, larger slices, and chips that the slice does not have; MeshError for a mesh of another machine.
    """
    t, real = _machine(topology)
    shown = [i for i, n in enumerate(real.shape) if n > 1] or [0]
    shape = tuple(real.shape[i] for i in shown)
    _check_size(t, shape, 2 if compare else 1)
    start = (
        (0,) * len(real.shape) if from_chip is None and mesh is None else None if from_chip is None else _chip(from_chip, real, t)
    )
    grids = [grid_of(real, True), grid_of(real, False)] if compare else [real]
    near = [[] if from_chip is None or start is None else neighbours(g, start) for g in grids]
    return {
        "spec": t.spec,
        "chip": t.chip.name,
        "slices": t.num_slices,
        "whole": list(real.shape),
        "shape": list(shape),
        "names": [f"ici{i}" for i in shown],
        "from": None if start is None else [start[i] for i in shown],
        "slice": _slice_view(t, real),
        "grids": [_grid_view(g, real, start, shown, beside) for g, beside in zip(grids, near, strict=True)],
        "mesh": [] if mesh is None else _mesh_view(mesh, t, shown),
    }


def _machine(topology: Topology | str) -> tuple[Topology, Grid]:
    """The machine and the grid of a slice; of a text they are kept, for a reader who looks at one chip after another."""
    if isinstance(topology, str):
        return _read(topology)
    t = topology_of(topology)
    return t, grid_of(t)


@lru_cache(maxsize=64)
def _read(text: str) -> tuple[Topology, Grid]:
    t = topology_of(text)
    return t, grid_of(t)


def _chip(where: Any, grid: Grid, t: Topology) -> tuple[int, ...]:
    """The coordinates of a chip; TopologyError for what are none of the slice."""
    numbers = [as_number(i) for i in where] if hasattr(where, "__len__") and not isinstance(where, str | bytes | Mapping) else []
    at = tuple(i for i in numbers if isinstance(i, int))
    if len(at) != len(numbers) or len(at) != len(grid.shape) or not all(0 <= i < n for i, n in zip(at, grid.shape, strict=True)):
        last = tuple(n - 1 for n in grid.shape)
        zeros = (0,) * len(grid.shape)
        raise TopologyError(
            f"there is no chip {shown(where)} in a slice of {t.spec}: from_chip is the coordinates of one, {zeros} to {last}"
        )
    return at


def _check_size(t: Topology, shape: tuple[int, ...], times: int) -> None:
    """TopologyError for a slice that is too large for a picture, in which it is drawn so many times."""
    planes = shape[0] if len(shape) == 3 else 1
    if planes > 1 and planes <= MOST_PLANES < planes * times and max(shape[-2:]) <= MOST_IN_PLANE:
        raise TopologyError(
            f"{t.spec} with and without wraparound has {planes * times} planes, too many for a picture, which shows up to {MOST_PLANES}: "
            f"leave the comparison out, or draw a smaller slice, such as {t.chip.key}:4x8x8"
        )
    if max(shape[-2:]) > (MOST_IN_PLANE if planes > 1 else MOST_ACROSS) or planes > MOST_PLANES:
        rule = f"2D slices up to {MOST_ACROSS}x{MOST_ACROSS}, 3D up to {MOST_PLANES} planes of {MOST_IN_PLANE}x{MOST_IN_PLANE}"
        raise TopologyError(
            f"{t.spec} has {count(t.chips // t.num_slices)} chips a slice, too many for a picture, which shows {rule}: draw a smaller "
            f"slice, such as {_SMALLER[len(t.shape) == 3].format(t.chip.key)}, or compute with scalebook.routes, which has no such limit"
        )


def _slice_view(t: Topology, grid: Grid) -> View:
    """The slice as it is: which axes close, its links, those of them that close an axis, the longest way, what crosses the narrowest cut."""
    return {
        "wraps": list(grid.wraparound),
        "links": links(grid),
        "closing": links(grid) - links(grid_of(grid, False)),
        "diameter": diameter(grid),
        "mean": mean_hops(grid),
        "cut_bytes_per_s": t.bisection_bytes_per_s,
    }


def _grid_view(grid: Grid, real: Grid, start: Sequence[int] | None, shown: list[int], near: Iterable[Sequence[int]]) -> View:
    there = None if start is None else distances(grid, start)
    return {
        "wraps": [grid.wraparound[i] for i in shown],
        "real": grid == real,
        "hops": None if there is None else list(there),
        "farthest": diameter(grid) if there is None else max(there),
        "mean": mean_hops(grid, start),
        "diameter": diameter(grid),
        "near": [[place[i] for i in shown] for place in near],
        "cut": _cut(grid, shown),
    }


def _cut(grid: Grid, shown: list[int]) -> View:
    """The narrowest cut into halves: which of the axes shown it halves, and the links that it crosses, two a ring and one a line."""
    found = []
    for along, i in enumerate(shown):
        n = grid.shape[i]
        if n > 1:
            found.append((grid.chips // n * (2 if grid.wraparound[i] else 1), -along))
    crossed, along = min(found, default=(0, 0))
    return {"along": -along, "links": crossed}


def _mesh_view(mesh: Mesh | Mapping[str, int], t: Topology, shown: list[int]) -> list[View]:
    """Each mesh axis with the pieces of the torus it lies on, outer to inner, and what else it lies on."""
    m = mesh if isinstance(mesh, Mesh) and mesh.topology is not None else mesh_of(mesh, on=t)
    if m.topology != t or m.placement is None:
        raise MeshError(f"the {m} is laid on another machine than {t.spec}: make it with on={t.spec!r}")
    names = [f"ici{i}" for i in shown]
    axes = [a for a, n in m.axes if n > 1]
    if len(axes) > 3:
        raise MeshError(f"a picture shows up to 3 mesh axes in their colours; {m} has {len(axes)} of more than one device")
    return [
        {
            "axis": a,
            "size": m[a],
            "colour": colour_of(axes, a),
            "pieces": [
                {"along": names.index(p.physical), "size": p.size, "stride": p.stride}
                for p in m.placement[a]
                if p.physical in names
            ],
            "beyond": [p.physical for p in m.placement[a] if p.physical not in names],
        }
        for a in axes
    ]
