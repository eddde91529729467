"""The sharding viewer: type an array and a mesh, and see which device holds what, how many bytes, and how many copies there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scalebook.explore.arrays import check_mesh
from scalebook.figures import Figure, sharded_array
from scalebook.live.controls import Choice, Slider, Text
from scalebook.live.explorers import Explorer
from scalebook.live.inputs import mesh_from, quoted, sizes_of
from scalebook.tables import Table
from scalebook.units import binary

DTYPES = ("fp32", "bf16", "int8", "int4")


def _devices(state: Mapping[str, Any]) -> Sequence[int]:
    mesh = mesh_from(state["mesh"])
    check_mesh(mesh)
    return range(mesh.devices)


def figure(array: str, mesh: str, sizes: str, dtype: str, device: int) -> Figure:
    """The array, cut up, beside the devices of the mesh."""
    given = sizes_of(sizes) if sizes else None
    return sharded_array(array, mesh_from(mesh), sizes=given, dtype=dtype, device=device)


def python(array: str, mesh: str, sizes: str, dtype: str, device: int) -> str:
    """The same in code."""
    shape = quoted(dict(mesh_from(mesh).axes))
    given = f" sizes={quoted(sizes_of(sizes))}," if sizes else ""
    return f"import scalebook as sb\n\nsb.figures.sharded_array({quoted(array)}, {shape},{given} dtype={quoted(dtype)}, device={device})\n"


def table(view: Mapping[str, Any]) -> Table:
    """What each device holds, in numbers; the chosen one first."""
    chosen = view["device"]
    order = [chosen, *(i for i in range(len(view["devices"])) if i != chosen)]
    held = [(tuple(map(tuple, d["block"])), d["term"]) for d in view["devices"]]
    rows = []
    for i in order:
        d = view["devices"][i]
        same = [str(other) for other, what in enumerate(held) if what == held[i] and other != i]
        slices = (f"{start}:{stop}" for start, stop in d["block"])
        term = (f"{d['term'] + 1} of {view['terms']}",) if view["terms"] > 1 else ()
        rows.append((str(i), *map(str, d["at"]), *slices, *term, binary(view["bytes"]), ", ".join(same) or "none"))
    array = view["spec"][0]["text"][:-1]
    head = (
        "device",
        *(a["axis"] for a in view["mesh"]),
        *(f"{array}: {dim['letter']}" for dim in view["dims"]),
        *(("term of the sum",) if view["terms"] > 1 else ()),
        "bytes",
        "the same lies on",
    )
    return Table(f"What each of {len(rows)} devices holds; device {chosen} is the one shown", head, tuple(rows))


EXPLORER = Explorer(
    name="sharded_array",
    title="An array on a mesh",
    controls=(
        Text("array", "Array", "A[I_X, J_Y]"),
        Text("mesh", "Mesh", "X=2, Y=4"),
        Text("sizes", "Sizes", "I=8192, J=8192; empty: small ones"),
        Choice("dtype", "Numbers", tuple((d, d) for d in DTYPES)),
        Slider("device", "Device", _devices),
    ),
    start={"array": "A[I_X, J_Y]", "mesh": "X=2, Y=4", "sizes": "I=8192, J=8192", "dtype": "bf16", "device": 5},
    figure=figure,
    python=python,
    table=table,
)
