"""A mesh: devices in a grid with named axes, X = 64 by Y = 16; laid on a machine it knows the links under each axis."""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from scalebook.errors import MeshError, shown, unknown
from scalebook.factors import divisors, primes
from scalebook.topologies import Topology, topology as topology_of
from scalebook.units import count, plural, si
from scalebook.wiring import Piece, Placement, Segment, best_placement, given, joined

MOST_SIZE = 10**15  # of an axis


@dataclass(frozen=True, eq=False)
class Mesh:
    """Named axes and their sizes, major to minor; made by `mesh()`. Equal meshes have equal axes, machine and placement.

    >>> m = mesh({"X": 4, "Y": 2})
    >>> m["X"], m.devices, m.size("XY")
    (4, 8, 8)
    """

    axes: tuple[tuple[str, int], ...]
    topology: Topology | None = None
    placement: Placement | None = None

    @cached_property
    def _hash(self) -> int:
        return hash((self.axes, self.topology and self.topology.physical_axes, self.placement))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Mesh):
            return self is other
        return self.axes == other.axes and self.placement == other.placement and self.topology == other.topology

    def __str__(self) -> str:
        axes = ", ".join(f"{a}={n}" for a, n in self.axes)
        return f"mesh {axes or 'of one device'}" + (f" on {machine_name(self.topology)}" if self.topology is not None else "")

    @cached_property
    def shape(self) -> Mapping[str, int]:
        """Sizes by axis, in order."""
        return MappingProxyType(dict(self.axes))

    @cached_property
    def axis_names(self) -> tuple[str, ...]:
        """The axes, major to minor."""
        return tuple(a for a, _ in self.axes)

    @cached_property
    def devices(self) -> int:
        """Number of devices: the product of the sizes."""
        return math.prod(n for _, n in self.axes)

    def __getitem__(self, axis: str) -> int:
        try:
            return self.shape[axis]
        except (KeyError, TypeError):
            raise unknown(f"axis of the mesh {dict(self.axes)}:", axis, self.axis_names, MeshError) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.axis_names)

    def resolve(self, axes: str | tuple[str, ...]) -> tuple[str, ...]:
        """The axes that "X", "XY", "data" or ("X", "Y") name: a whole axis name first, else one axis a letter.

        Raises MeshError for an axis that the mesh does not have, or that is named twice.

        >>> mesh({"X": 4, "Y": 2}).resolve("YX")
        ('Y', 'X')
        """
        if isinstance(axes, str):
            parts = re.findall(r"[A-Za-z][0-9]*", axes)
            names = (
                (axes,)
                if axes in self.shape or "".join(parts) != axes or not any(p in self.shape for p in parts)
                else tuple(parts)
            )
        else:
            names = tuple(axes)
        for a in names:
            self[a]
        if len(set(names)) < len(names):
            raise MeshError(f"{axes!r} names an axis twice: a group of devices has each axis once")
        return names

    def size(self, axes: str | tuple[str, ...]) -> int:
        """The number of devices in a group along these axes.

        >>> mesh({"X": 4, "Y": 2}).size(("X", "Y"))
        8
        """
        return math.prod(self[a] for a in self.resolve(axes))

    def coordinates(self) -> Iterator[tuple[int, ...]]:
        """The coordinates of every device, the first axis slowest.

        >>> list(mesh({"X": 2, "Y": 2}).coordinates())
        [(0, 0), (0, 1), (1, 0), (1, 1)]
        """
        return itertools.product(*(range(n) for _, n in self.axes))

    # ---- on the machine -------------------------------------------------------------------------------------------------

    def segments(self, axes: str | tuple[str, ...]) -> tuple[Segment, ...]:
        """The links under one or several axes, outer to inner; pieces of one physical axis that lie side by side are one segment.

        Two segments with the same `physical` (another mesh axis lies between them) share their links: at once, they do not have
        the full rate. Raises MeshError when the mesh is not laid on a machine.

        >>> [(s.physical, s.size, s.kind) for s in mesh({"X": 4, "Y": 8}, on="v5e:4x8").segments("XY")]
        [('ici0', 4, 'line'), ('ici1', 8, 'line')]
        """
        return _segments(self, self.resolve(axes))

    def is_ring(self, axes: str | tuple[str, ...]) -> bool:
        """Whether every link under these axes closes into a ring.

        >>> mesh({"X": 16, "Y": 16}, on="v5e:16x16").is_ring("X"), mesh({"X": 16}, on="v5e:4x4").is_ring("X")
        (True, False)
        """
        segments = self.segments(axes)
        return bool(segments) and all(s.kind == "ring" for s in segments)

    def bytes_per_s(self, axes: str | tuple[str, ...]) -> float | None:
        """What one device can send over all links under these axes at once, in one direction of each; None if a rate is unknown.

        >>> mesh({"X": 256}, on="v5e:16x16").bytes_per_s("X")    # two rings of 45 GB/s
        90000000000.0
        """
        rates = [s.bytes_per_s for s in self.segments(axes)]
        return None if None in rates else sum((r for r in rates if r is not None), start=0.0)

    def describe(self, axes: str | tuple[str, ...]) -> str:
        """One line: the size, the links, and what a device can send over them.

        >>> print(mesh({"X": 64, "Y": 16}, on="v5p:8x8x16").describe("X").replace("\u00a0", " "))
        X=64 on v5p:8x8x16: ring of 8 (ici0) × ring of 8 (ici1), 180 GB/s one way per device
        """
        names = self.resolve(axes)
        head = ", ".join(f"{a}={count(self[a])}" for a in names) + ("" if len(names) == 1 else f" = {count(self.size(names))}")
        if self.topology is None:
            return f"{head}, not laid on a machine"
        if not (segments := self.segments(names)):
            return f"{head} on {machine_name(self.topology)}: nothing to cross"
        whole = {p.name: p.size for p in self.topology.physical_axes}
        rates = {s.bytes_per_s for s in segments}
        shown = [f"{s.kind} of {s.size} ({_where(s, whole[s.physical])}" for s in segments]
        if len(rates) == 1:
            links = " × ".join(f"{text})" for text in shown) + f", {_rate(self.bytes_per_s(names))}"
        else:
            links = " × ".join(f"{text}, {_rate(s.bytes_per_s)})" for text, s in zip(shown, segments, strict=True))
        return f"{head} on {machine_name(self.topology)}: {links}" + (" one way per device" if rates != {None} else "")

    # ---- prime sub-axes -------------------------------------------------------------------------------------------------

    @cached_property
    def _split(self) -> dict[str, list[tuple[str, int, Piece | None]]]:
        """For each axis its sub-axes of prime size: name, size, and the piece of a link, if any."""
        out: dict[str, list[tuple[str, int, Piece | None]]] = {}
        for axis, n in self.axes:
            parts: list[tuple[int, Piece | None]] = []
            if self.placement is None:
                parts = [(p, None) for p in primes(n)]
            else:
                for piece in self.placement[axis]:
                    stride = piece.stride * piece.size
                    for p in primes(piece.size):
                        stride //= p
                        parts.append((p, Piece(piece.physical, p, stride)))
            if len(parts) < 2:
                out[axis] = [(axis, n, parts[0][1] if parts else None)]
                continue
            mark = ""
            while any(f"{axis}{mark}{i}" in self.shape for i in range(len(parts))):
                mark += "_"
            out[axis] = [(f"{axis}{mark}{i}", p, piece) for i, (p, piece) in enumerate(parts)]
        return out

    def sub_axes(self, axis: str) -> tuple[str, ...]:
        """The axes of `factored()` that make up an axis, major to minor; an axis of prime size or of size 1 is its own.

        >>> mesh({"X": 4, "Y": 2}).sub_axes("X")
        ('X0', 'X1')
        """
        self[axis]
        return tuple(name for name, _, _ in self._split[axis])

    def factored(self) -> Mesh:
        """The same devices with every axis split into sub-axes of prime size: X = 4 becomes X0 = 2 (major), X1 = 2.

        >>> dict(mesh({"X": 4, "Y": 2}).factored().shape)
        {'X0': 2, 'X1': 2, 'Y': 2}
        """
        parts = [part for axis in self.axis_names for part in self._split[axis]]
        axes = _checked({name: n for name, n, _ in parts})
        if self.placement is None:
            return Mesh(axes, self.topology)
        return Mesh(axes, self.topology, Placement(tuple((name, (piece,) if piece else ()) for name, _, piece in parts)))


@lru_cache(4096)
def _segments(mesh: Mesh, axes: tuple[str, ...]) -> tuple[Segment, ...]:
    if mesh.topology is None or mesh.placement is None:
        how = f"make it with mesh({dict(mesh.axes)}, on='v5e:4x4') or another machine"
        raise MeshError(f"the {mesh} is not laid on a machine, so its axes have no links: {how}")
    return joined([p for a in axes for p in mesh.placement[a]], mesh.topology.physical_axes)


def machine_name(topology: Topology) -> str:
    """A machine with its slices: "2 slices of v5e:4x4".

    >>> machine_name(topology_of("v5e:2x2", num_slices=2)).replace("\u00a0", " ")
    '2 slices of v5e:2x2'
    """
    return topology.spec if topology.num_slices == 1 else f"{plural(topology.num_slices, 'slice')} of {topology.spec}"


def _rate(rate: float | None) -> str:
    return "rate unknown" if rate is None else si(rate, "B/s")


def _where(s: Segment, whole: int) -> str:
    if s.size == whole:
        return s.physical
    if s.kind == "switch" or s.stride == 1:
        return f"part of {s.physical}"
    suffix = "th" if s.stride % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(s.stride % 10, "th")
    return f"every {s.stride}{suffix} device of {s.physical}"


# ---- making one ---------------------------------------------------------------------------------------------------------


def mesh(
    shape: Mapping[str, int] | Mesh, on: Topology | str | None = None, *, placement: Placement | Mapping[str, Any] | None = None
) -> Mesh:
    """Devices in a grid with named axes, major to minor; `on` a machine, the axes are laid on its links.

    Without `placement`, the best of `wiring.placements` is taken: few shared links, whole rings first. With it, yours:
    `{"X": ["ici0", "ici1"], "Y": ["ici2"]}`. Raises MeshError for bad names or sizes, two readings of a name, or sizes that
    do not multiply to the machine's devices.

    >>> mesh({"X": 4, "Y": 2}).devices
    8
    """
    if isinstance(shape, Mesh):
        if on is None and placement is None:
            return shape
        on, shape = on if on is not None else shape.topology, shape.shape
    axes = _checked(shape)
    if on is None:
        if placement is not None:
            raise MeshError("a placement says which links of a machine each axis has: give the machine too, on='v5p:8x8x16'")
        return Mesh(axes)
    on = topology_of(on)
    sizes = dict(axes)
    if math.prod(sizes.values()) != on.devices:
        raise MeshError(_mismatch(sizes, on))
    return Mesh(axes, on, given(sizes, on, placement) if placement is not None else best_placement(sizes, on))


def _checked(shape: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """The axes as pairs; MeshError with everything that is wrong with names and sizes."""
    if not isinstance(shape, Mapping):
        raise MeshError(f"a mesh is a mapping from axis names to sizes, such as {{'X': 4, 'Y': 2}}; found {shape!r}")
    wrong, axes = [], []
    for name, n in shape.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            wrong.append(f"axis name {name!r} is not a letter followed by letters, digits or underscores")
        try:
            size = 0 if isinstance(n, bool) else operator.index(n)
        except TypeError:
            size = 0
        if size < 1:
            wrong.append(f"{name}={shown(n)} is not a positive whole number")
        elif size > MOST_SIZE:
            wrong.append(f"{name}={shown(n)} is above 10^15, the largest size of an axis")
        axes.append((name, size))
    if not wrong:
        for name in shape:
            parts = re.findall(r"[A-Za-z][0-9]*", name)
            if 1 < len(parts) == len(set(parts)) and "".join(parts) == name and all(p in shape for p in parts):
                twice = f"axis {name!r} also reads as {', '.join(parts)}, which are axes too"
                wrong.append(f"{twice}, so I_{name} would have two meanings: rename one")
    if wrong:
        given_axes = ", ".join(f"{a!r}: {shown(n)}" for a, n in shape.items())
        raise MeshError(f"{'; '.join(wrong)}. Mesh: {{{given_axes}}}")
    return tuple(axes)


def _mismatch(sizes: dict[str, int], on: Topology) -> str:
    """What is wrong when a mesh does not have as many devices as its machine, and the nearest mesh that has."""
    have, need = math.prod(sizes.values()), on.devices
    product = " × ".join(f"{a}={n}" for a, n in sizes.items()) or "with no axes"
    devices = f"{count(have)} device{'' if have == 1 else 's'}"
    text = f"the mesh {product} has {devices} and {machine_name(on)} has {count(need)}: they must be the same."
    if bad := [f"{a}={n}" for a, n in sizes.items() if need % n]:
        text += f" No axis of {on.spec} can be {' or '.join(bad)}: not a divisor of {count(need)}."
    fixes = [f"{a}={need * n // have}" for a, n in sizes.items() if need * n % have == 0]
    if fixes:
        return f"{text} Make it {' or '.join(fixes)}."
    left, near = need, {}
    for a, n in sizes.items():
        choice = (left,) if a == list(sizes)[-1] else divisors(left)
        near[a] = min((abs(math.log(d / n)), d) for d in choice)[1]
        left //= near[a]
    return f"{text} The nearest that does: {near}." if near else f"{text} Name the axes, such as {{'X': {need}}}."
