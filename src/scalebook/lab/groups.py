"""Which devices take part in a collective, as XLA writes it, and which mesh axes that is.

XLA has four ways of writing it: lists `{{0,1},{2,3}}`; an iota `[2,2]<=[4]` or `[2,2]<=[2,2]T(1,0)`; a mesh and some of its axes
`mesh['a'=2,'b'=2] {'b'}`, with `device_ids=(…)` when the devices are not in order; and, for a permute, pairs of source and target.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from scalebook.errors import MeshError, ScalebookError
from scalebook.factors import primes
from scalebook.meshes import Mesh, mesh as mesh_of

MOST_DEVICES = 2**22
Groups = tuple[tuple[int, ...], ...]

_LISTS = re.compile(r"(?:replica_groups|source_target_pairs)=\{((?:\{[\d,\s]*\}[,\s]*)*)\}")
_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"mesh\[([^\]]*)\](?:,\s*device_ids=\(([^)]*(?:\([^)]*\))?)\))?\s*\{([^}]*)\}")
_SUB_AXIS = re.compile(r"(.*):\((\d+)\)(\d+)$")


def parse_groups(attributes: str, devices: int = 0) -> Groups:
    """The groups of device numbers in an instruction's attributes, whichever way they are written.

    >>> parse_groups("replica_groups=[2,2]<=[2,2]T(1,0)")
    ((0, 2), (1, 3))
    >>> parse_groups("replica_groups=mesh['a'=2,'b'=2] {'b'}")
    ((0, 1), (2, 3))

    Empty groups `{}`, and none at all, mean all `devices` together: () where their number is not known. Raises ScalebookError for a
    fifth way of writing them.
    """
    everyone: Groups = (tuple(range(devices)),) * bool(devices)
    if not (found := re.search(r"(replica_groups|source_target_pairs)=", attributes)):
        return everyone
    text, value, pairs = attributes[found.start() :], attributes[found.end() :], found[1] == "source_target_pairs"
    if lists := _LISTS.match(text):
        groups = tuple(filter(None, (_ints(g) for g in re.findall(r"\{([\d,\s]*)\}", lists[1]))))
        if not pairs or all(len(pair) == 2 for pair in groups):
            return groups if pairs else groups or everyone
    elif iota := _IOTA.match(value):
        shape, across, order = _ints(iota[1]), _ints(iota[2]), _ints(iota[3] or "") or tuple(range(len(_ints(iota[2]))))
        if 0 < math.prod(shape) == math.prod(across) <= MOST_DEVICES and sorted(order) == list(range(len(across))):
            return _rows(_iota(across, order), shape[-1])
    elif mesh := _MESH.match(value):
        try:
            return _mesh_groups(*mesh.groups())
        except ScalebookError:
            raise
        except (ValueError, IndexError, ZeroDivisionError):
            pass  # sizes that are no numbers, or contradict each other
    raise ScalebookError(
        f"cannot read the groups of a collective in the compiled text: {value[:80]!r}; the four known ways are "
        "{{0,1},{2,3}}, [2,2]<=[4]T(…), mesh['a'=2]{'a'} and source_target_pairs={{0,1}}"
    )


def _ints(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text))


def _rows(ids: Sequence[int], width: int) -> Groups:
    return tuple(tuple(ids[i : i + width]) for i in range(0, len(ids), width))


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _iota(shape: Sequence[int], dims: Sequence[int]) -> list[int]:
    """0, 1, 2, … laid out in `shape`, its dimensions put in the order `dims`, read row by row."""
    strides = _strides(shape)
    return [
        sum(i * strides[d] for i, d in zip(at, dims, strict=True)) for at in itertools.product(*(range(shape[d]) for d in dims))
    ]


def _mesh_groups(axes: str, device_ids: str | None, chosen: str) -> Groups:
    written = [piece.rpartition("=") for piece in axes.split(",")]
    names, sizes = [name.strip().strip("'\"") for name, _, _ in written], [int(size) for _, _, size in written]
    if not 0 < math.prod(sizes) <= MOST_DEVICES:
        raise ValueError(f"no machine has the mesh {axes}")
    ids = list(range(math.prod(sizes)))
    if device_ids and (transposed := re.match(r"\[([\d,]+)\](?:T\(([\d,]+)\))?$", device_ids.strip())):
        across = _ints(transposed[1])
        ids = _iota(across, _ints(transposed[2] or "") or tuple(range(len(across))))
    elif device_ids:
        ids = list(_ints(device_ids))
    if len(ids) != math.prod(sizes):
        raise ValueError(f"{len(ids)} devices in the mesh {axes}")
    inner: list[tuple[int, int]] = []  # (stride, size) of the axes that a group spans, major to minor
    strides = dict(zip(names, _strides(sizes), strict=True))
    size_of = dict(zip(names, sizes, strict=True))
    for piece in filter(None, (p.strip() for p in chosen.split(","))):
        piece = piece.replace("'", "").replace('"', "")
        part = _SUB_AXIS.match(piece)
        name = part[1] if part else piece
        if name not in size_of:
            raise ScalebookError(
                f"a collective in the compiled text runs over the axis {name!r}, which its mesh [{axes}] does not have"
            )
        before, size = (
            (int(part[2]), int(part[3])) if part else (1, size_of[name])
        )  # 'a':(2)4 is the 4 parts of each of 2 outer ones
        inner.append((strides[name] * (size_of[name] // (before * size)), size))
    spans = [sum(i * s for i, (s, _) in zip(at, inner, strict=True)) for at in itertools.product(*(range(n) for _, n in inner))]
    groups, seen = [], set[int]()
    for start in range(len(ids)):
        if start not in seen:
            members = [start + step for step in spans]
            seen.update(members)
            groups.append(tuple(ids[m] for m in members))
    return tuple(groups)


# ---- back to mesh axes --------------------------------------------------------------------------------------------------


def shape_of(mesh: Any) -> dict[str, int]:
    """The axes and sizes of a mesh of this library, of jax, or given as a dict; MeshError for what `sb.mesh` refuses too."""
    shape = mesh if isinstance(mesh, Mapping) else getattr(mesh, "shape", None)
    if not isinstance(shape, Mapping):
        raise MeshError(f"a mesh is axes and sizes, such as {{'X': 4, 'Y': 2}}; found {mesh!r}")
    return dict(mesh.shape if isinstance(mesh, Mesh) else mesh_of(shape).shape)


def axes_of(groups: Groups, mesh: Mapping[str, int], *, pairs: bool = False) -> tuple[str, ...] | None:
    """The mesh axes (major to minor) over which the groups run, if they are exactly the groups of some axes; else None.

    Device numbers are positions in the mesh, its last axis running fastest.

    >>> axes_of(((0, 4, 2, 6), (1, 5, 3, 7)), {"X": 2, "Y": 2, "Z": 2})
    ('Y', 'X')

    For `pairs` of a permute: the axes along which any device's data moves.
    """
    names, sizes = tuple(mesh), tuple(mesh.values())
    where = list(itertools.product(*(range(n) for n in sizes)))
    if not groups or max(itertools.chain(*groups)) >= len(where):
        return None
    if pairs:
        return tuple(a for i, a in enumerate(names) if any(where[s][i] != where[t][i] for s, t in groups))
    first = [where[d] for d in groups[0]]
    varies = [i for i in range(len(names)) if any(c[i] != first[0][i] for c in first)]
    changes = {i: next(n for n, c in enumerate(first) if c[i] != first[0][i]) for i in varies}
    order = sorted(varies, key=lambda i: -changes[i])  # the axis that changes last is the major one
    strides = _strides(sizes)
    steps = [
        sum(c * strides[i] for c, i in zip(at, order, strict=True)) for at in itertools.product(*(range(sizes[i]) for i in order))
    ]
    fixed = [i for i in range(len(names)) if i not in varies]
    wanted = {
        frozenset(sum(c * strides[i] for c, i in zip(at, fixed, strict=True)) + s for s in steps)
        for at in itertools.product(*(range(sizes[i]) for i in fixed))
    }
    if {frozenset(g) for g in groups} != wanted:
        return None
    in_order = [groups[0][0] + s for s in steps] == list(groups[0])
    return tuple(names[i] for i in (order if in_order else varies))


def prime_axes(mesh: Mapping[str, int]) -> dict[str, int]:
    """The mesh with each axis cut into prime ones, major to minor: X of 4 becomes X0, X1; a prime axis keeps its name.

    >>> prime_axes({"X": 4, "Y": 2})
    {'X0': 2, 'X1': 2, 'Y': 2}
    """
    found: dict[str, int] = {}
    for axis, size in mesh.items():
        parts = primes(size)
        found.update({axis: size} if len(parts) < 2 else {f"{axis}{i}": p for i, p in enumerate(parts)})
    return found
