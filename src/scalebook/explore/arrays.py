"""What the sharded-array figure shows: where an array is cut, by which mesh axis, and which block each device holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scalebook.errors import MeshError, NotationError, SizeError, shown, unknown
from scalebook.explore.checks import whole
from scalebook.layouts import Sharding, sharding
from scalebook.meshes import Mesh, mesh as mesh_of
from scalebook.units import dtype_name, nbytes

View = dict[str, Any]
MOST_DEVICES, MOST_AXES, MOST_DIMS = 32, 3, 3


def check_mesh(m: Mesh) -> None:
    """MeshError for a mesh that is too large for a picture."""
    if len(m.axes) > MOST_AXES or m.devices > MOST_DEVICES:
        raise MeshError(
            f"a picture shows up to {MOST_AXES} mesh axes and {MOST_DEVICES} devices; {m} has {len(m.axes)} axes and {m.devices} devices"
        )


def sharded_array(
    text: str | Sharding,
    mesh: Mesh | Mapping[str, int],
    *,
    sizes: Mapping[str, int] | None = None,
    device: int | Sequence[int] | Mapping[str, int] | None = None,
    dtype: str | None = None,
) -> View:
    """An array of up to three dimensions on a mesh of up to three axes, with one device chosen.

    Without `sizes`, each dimension gets a small size that its axes divide. `device`: its number, or its coordinates
    (`{"X": 1, "Y": 0}` or `(1, 0)`). With a `dtype` it is said how many bytes lie on each device.

        >>> view = sharded_array("A[I_X, J_Y]", {"X": 2, "Y": 4}, device={"X": 1, "Y": 1})
        >>> view["devices"][view["device"]]["block"]
        [[4, 8], [2, 4]]

    Raises NotationError or MeshError for what cannot be read, and for more dimensions, axes or devices than a picture shows.
    """
    m = mesh_of(mesh)
    s = sharding(text, m)
    check_mesh(m)
    if not 1 <= len(s.letters) <= MOST_DIMS:
        raise NotationError(f"a picture shows arrays of 1 to {MOST_DIMS} dimensions; {s} has {len(s.letters)}")
    chosen = (
        _sizes(sizes)
        if sizes is not None
        else {x: _small(m.size(d), i, len(s.dims)) for i, (x, d) in enumerate(zip(s.letters, s.dims, strict=True))}
    )
    held = s.slices(chosen, m)
    at = list(held)
    pending = [m.axis_names.index(a) for a in s.pending]
    blocks: dict[Any, int] = {}
    devices = [
        {"at": list(c), "block": [list(x) for x in block], "number": blocks.setdefault(block, len(blocks)), "term": _flat([c[i] for i in pending],
         [m.axes[i][1] for i in pending])} for c, block in held.items()
    ]  # fmt: skip
    number = _device(device, m, at)
    mine = devices[number]
    return {
        "spec": _spec(s),
        "dims": [
            {"letter": x, "size": chosen[x], "axes": list(d), "cuts": _cuts(chosen[x], d, m)}
            for x, d in zip(s.letters, s.dims, strict=True)
        ],
        "mesh": [{"axis": a, "size": n, "colour": colour_of(m.axis_names, a)} for a, n in m.axes],
        "devices": devices,
        "device": number,
        "holders": [i for i, d in enumerate(devices) if (d["block"], d["term"]) == (mine["block"], mine["term"])],
        "blocks": len(blocks),
        "terms": s.summands(m),
        "dtype": None if dtype is None else dtype_name(dtype),
        "bytes": None if dtype is None else s.bytes_per_device(chosen, m, dtype),
        "array_bytes": None if dtype is None else nbytes(math.prod(chosen[x] for x in s.letters), dtype),
        "pending": list(s.pending),
        "unused": [a for a, n in m.axes if n > 1 and a not in {x for d in (*s.dims, s.pending) for x in d}],
    }


def colour_of(axes: Sequence[str], axis: str) -> str:
    """The colour of a mesh axis: X, Y and Z have their own; other names take those that are left, in order.

    >>> colour_of(("data", "model"), "model")
    'y'
    """
    own = {a: a.lower() for a in axes if a.lower() in ("x", "y", "z")}
    free = [c for c in "xyz" if c not in own.values()]
    return own.get(axis) or free[[a for a in axes if a not in own].index(axis)]


def _small(ways: int, i: int, rank: int) -> int:
    """A size for show: few slabs of a third dimension, else about 8, and a multiple of the parts."""
    least = (ways if ways > 1 else 2) if rank == 3 and i == 0 else 4 if rank == 3 else 8
    return ways * math.ceil(least / ways)


def _flat(at: Sequence[int], sizes: Sequence[int]) -> int:
    index = 0
    for i, n in zip(at, sizes, strict=True):
        index = index * n + i
    return index


def _cuts(size: int, axes: Sequence[str], m: Mesh) -> list[View]:
    """Where a dimension is cut, and by which axis: the outermost one whose blocks begin there."""
    ways, cuts = m.size(tuple(axes)), []
    for k in range(1, ways):
        step = ways
        for a in axes:
            step //= m[a]
            if k % step == 0:
                cuts.append({"at": k * size // ways, "axis": a})
                break
    return cuts


def _spec(s: Sharding) -> list[View]:
    """The notation in pieces: text, and axes that are to be written as subscripts."""
    pieces: list[View] = [{"text": f"{s.array}["}]
    for i, (letter, axes) in enumerate(zip(s.letters, s.dims, strict=True)):
        pieces.append({"text": (", " if i else "") + letter, "axes": list(axes)})
    pieces.append({"text": "]"})
    return pieces + ([{"text": "{U", "axes": list(s.pending)}, {"text": "}"}] if s.pending else [])


def _sizes(sizes: Any) -> dict[str, int]:
    if not isinstance(sizes, Mapping):
        raise SizeError(f"sizes are given as {{dimension: size}}, such as {{'I': 8}}; found {shown(sizes)}")
    return {letter: whole(f"the size of {shown(letter)}", n) for letter, n in sizes.items()}


def _device(device: Any, m: Mesh, at: list[tuple[int, ...]]) -> int:
    if device is None:
        return len(at) // 2 + (1 if len(at) > 2 else 0)
    if hasattr(device, "__index__") and not getattr(device, "ndim", 0) and not isinstance(device, bool):
        if not 0 <= device < len(at):
            raise MeshError(f"device {shown(device)} is not one of 0 to {len(at) - 1} of {m}")
        return int(device)
    if isinstance(device, Mapping):
        for a in device:
            if a not in m.axis_names:
                raise unknown(f"axis of {m}:", a, m.axis_names, MeshError)
        device = tuple(device.get(a, 0) for a in m.axis_names)
    if not isinstance(device, Sequence) or isinstance(device, str | bytes) or len(device) != len(m.axes):
        raise MeshError(f"a device of {m} is a number or its coordinates, one below each size; found {shown(device)}")
    where = tuple(
        whole(f"the coordinate along {a} of a device of {m}", i, MeshError, least=0, most=n - 1)
        for i, (a, n) in zip(device, m.axes, strict=True)
    )
    return at.index(where)
