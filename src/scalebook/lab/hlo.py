"""The collectives of a compiled program: which, on which mesh axes, how many bytes each device receives."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import Any

from scalebook.errors import MeshError, ScalebookError, shown
from scalebook.lab.groups import MOST_DEVICES, Groups, axes_of, parse_groups, prime_axes, shape_of
from scalebook.lab.slices import sliced_by_group
from scalebook.lab.text import Array, Instruction, Program, arrays_in, parse
from scalebook.meshes import Mesh
from scalebook.units import si

_KINDS = {
    "all-gather": "all-gather", "reduce-scatter": "reduce-scatter", "all-reduce": "all-reduce", "all-to-all": "all-to-all",
    "ragged-all-to-all": "all-to-all", "collective-permute": "permute", "collective-broadcast": "broadcast",
}  # fmt: skip

_Axes = tuple[dict[str, int], dict[str, int]]  # a mesh, and the same cut into prime sub-axes


@dataclass(frozen=True)
class HloCollective:
    """One collective of a compiled program.

    `kind` is the library's name for what it does, `opcode` is what the text calls it: on a CPU a reduce-scatter is written as an
    all-reduce followed by a slice, and is counted as what it does. `bytes` is what each device receives in one execution, by the
    library's convention: with k the group size, all-gather out·(k−1)/k, reduce-scatter in·(k−1)/k, all-reduce 2·(k−1)/k of
    the array, all-to-all (k−1)/k of the local array, permute the local array. `trips` is how often it runs: None in a loop whose length
    the text does not give. `axes` is None without a mesh, or when the groups are not those of any of its axes. The `groups` of a permute
    are its pairs of source and target.
    """

    kind: str
    bytes: int
    arrays: tuple[Array, ...]
    groups: Groups
    group_size: int
    axes: tuple[str, ...] | None
    opcode: str
    channel_id: int | None
    name: str
    computation: str
    trips: int | None
    asynchronous: bool
    fused: bool

    @property
    def dtype(self) -> str:
        """The dtype of what moves (of the first array, when several are combined)."""
        return self.arrays[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the local result as the text gives it (of the first array, when several are combined)."""
        return self.arrays[0].shape

    def __str__(self) -> str:
        over = "" if self.axes is None else f" over {' '.join(self.axes)}"
        times = "" if self.trips == 1 else f", {self.trips or 'unknown'} times"
        groups = "" if self.kind == "permute" else f" in groups of {self.group_size}"
        return f"{self.kind}{over}{groups}: {si(self.bytes, 'B')} received per device{times}"


def collectives_of(compiled: Any, mesh: Any = None) -> tuple[HloCollective, ...]:
    """The collectives of a compiled jax function (or its text), in program order, each counted once.

    >>> text = '''ENTRY %main (a: f32[4,8]) -> f32[8,8] {
    ...   %a = f32[4,8]{1,0} parameter(0)
    ...   ROOT %g = f32[8,8]{1,0} all-gather(%a), channel_id=1, replica_groups=[2,2]<=[4], dimensions={0}
    ... }'''
    >>> [(c.kind, c.bytes, c.axes) for c in collectives_of(text, {"X": 2, "Y": 2})]
    [('all-gather', 128, ('Y',))]

    `mesh` (of this library, of jax, or a dict) turns groups into axes; groups over part of an axis are named by its prime sub-axes.
    The start and done of an asynchronous collective count once, and so does one that the compiler repeats in several
    fusions under one channel. A collective of groups of one moves nothing and is left out. Raises ScalebookError for text
    that is no compiled program, groups written in an unknown way, a dtype whose bytes are not known, and a collective of all devices
    where neither the text nor `mesh` says how many they are.
    """
    as_text = getattr(compiled, "as_text", None)
    text = compiled if isinstance(compiled, str) else as_text() if callable(as_text) and not isinstance(compiled, type) else None
    if not isinstance(text, str):
        found_instead = f"found {shown(compiled)} of type {type(compiled).__name__}"
        raise ScalebookError(f"a compiled function or its text is needed, as from jax.jit(f).lower(…).compile(); {found_instead}")
    program = parse(text)
    shape = None if mesh is None else shape_of(mesh)
    most = prod(shape.values()) if shape else 0
    if max(program.devices, most) > MOST_DEVICES:
        raise MeshError(
            f"compiled programs are read for up to {MOST_DEVICES:,} devices; found {shown(most)} in the mesh, {program.devices} in the text"
        )
    factored = shape_of(mesh.factored()) if isinstance(mesh, Mesh) else prime_axes(shape or {})
    axes = None if shape is None else (shape, factored)
    devices = program.devices or most
    fusions = {name for name, callers in program.callers.items() if any(c.opcode == "fusion" for c in callers)}
    found: list[HloCollective] = []
    joined: set[tuple[str, int, Groups]] = set()
    for lines in program.computations.values():
        for line in lines:
            one = _collective(program, line, axes, devices, line.computation in fusions)
            if one is None:
                continue
            if one.fused and one.channel_id is not None:
                key = (one.opcode, one.channel_id, one.groups)
                if key in joined:
                    continue
                joined.add(key)
            found.append(one)
    return tuple(found)


def total_bytes(collectives: tuple[HloCollective, ...]) -> int | None:
    """Bytes that each device receives in one run of the program; None when a loop's length is unknown."""
    if any(c.trips is None for c in collectives):
        return None
    return sum(c.bytes * (c.trips or 0) for c in collectives)


def by_kind(collectives: tuple[HloCollective, ...]) -> dict[str, int]:
    """How many collectives of each kind."""
    return dict(Counter(c.kind for c in collectives))


def _collective(program: Program, line: Instruction, axes: _Axes | None, devices: int, fused: bool) -> HloCollective | None:
    opcode = line.opcode.removesuffix("-start")
    if opcode not in _KINDS:
        return None
    kind, started = _KINDS[opcode], line.opcode.endswith("-start")
    shape = line.shape
    if started and opcode != "all-reduce" and isinstance(shape, tuple) and len(shape) > 1:
        shape = shape[1]  # (operands, results, …)
    arrays = arrays_in(shape)
    local = sum(a.bytes for a in arrays)
    groups = parse_groups(line.attributes, devices)
    pairs = kind == "permute"
    if not groups and not pairs:
        raise ScalebookError(
            f"{line.opcode} %{line.name} runs over all devices together, and nothing says how many they are: give `mesh`, or a text whose "
            "first line has num_partitions=… or replica_count=…"
        )
    size = max((len(g) for g in groups), default=1)
    moves = any(s != t for s, t in groups) if pairs else size > 1
    if not moves:
        return None
    if kind == "all-reduce" and not started and sliced_by_group(program, line, groups):
        kind = "reduce-scatter"
    k = size
    received = {
        "all-gather": local * (k - 1) // k,
        "reduce-scatter": local * (k - 1) // k if opcode == "all-reduce" else local * (k - 1),
        "all-reduce": 2 * local * (k - 1) // k,
        "all-to-all": local * (k - 1) // k,
    }.get(kind, local)
    channel = line.attribute("channel_id")
    return HloCollective(
        kind=kind,
        bytes=received,
        arrays=arrays,
        groups=groups,
        group_size=size,
        axes=_over(groups, axes, pairs),
        opcode=line.opcode,
        channel_id=int(channel) if channel else None,
        name=line.name,
        computation=line.computation,
        trips=program.trips(line.computation),
        asynchronous=started or any(c.opcode == "async-start" for c in program.callers.get(line.computation, ())),
        fused=fused,
    )


def _over(groups: Groups, axes: _Axes | None, pairs: bool) -> tuple[str, ...] | None:
    if axes is None:
        return None
    whole = axes_of(groups, axes[0], pairs=pairs)
    return whole if whole is not None else axes_of(groups, axes[1], pairs=pairs)
