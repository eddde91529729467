"""How the axes of a mesh lie on the links of a machine: which physical axes each has, whole or in part, and which choice is best.

A physical axis of n devices can be shared: n = n₁ · n₂ gives the outer piece every n₂-th device (stride n₂) and the inner piece
n₂ neighbours. The inner piece of a ring is a line. The outer piece of a ring is a ring of n₁, of which n₂ run side by side over
the same links: each has rate ÷ n₂, and a hop crosses n₂ links. A piece of a switch is a switch with the same port; where there
is no switch but a link between every two devices, a piece of n₁ devices has the n₁ − 1 links to its members.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from scalebook.errors import MeshError, unknown
from scalebook.factors import divisors
from scalebook.topologies import PhysicalAxis, Topology

MOST_ORDERS = 24  # of the pieces on shared axes; beyond, only the order "larger pieces outside" is tried


@dataclass(frozen=True)
class Segment:
    """The part of a physical axis that a mesh axis has: `size` devices, each `stride` places from the next.

    `bytes_per_s` is what one device can send one way in one direction (None: unknown); on a ring or line it can do so in both.
    `peer_bytes_per_s`: what it can send to one other, where a link of its own joins every two devices (None: as much as to all).
    """

    physical: str
    size: int
    kind: str  # "ring", "line" or "switch"
    bytes_per_s: float | None
    hop_latency_s: float
    launch_latency_s: float
    stride: int = 1
    peer_bytes_per_s: float | None = None


class Piece(NamedTuple):
    """`size` devices of a physical axis, each `stride` places from the next."""

    physical: str
    size: int
    stride: int = 1


@dataclass(frozen=True)
class Placement:
    """The pieces of each mesh axis, outer to inner; an axis of size 1 has none."""

    axes: tuple[tuple[str, tuple[Piece, ...]], ...]

    def __getitem__(self, axis: str) -> tuple[Piece, ...]:
        return dict(self.axes)[axis]

    def __str__(self) -> str:
        def show(p: Piece) -> str:
            return f"{p.physical}({p.size})" if p.stride == 1 else f"{p.physical}({p.size} by {p.stride})"

        return ", ".join(f"{axis}: {' × '.join(map(show, pieces)) or 'nothing'}" for axis, pieces in self.axes)


def segment(piece: Piece, axis: PhysicalAxis) -> Segment:
    """What a piece of a physical axis is as a network: kind, rate and latency by the rules above.

    >>> ring = PhysicalAxis("ici0", 16, "ring", 80e9, 1e-6, 0.0, "vendor")
    >>> outer, inner = segment(Piece("ici0", 4, 4), ring), segment(Piece("ici0", 4), ring)
    >>> outer.kind, outer.bytes_per_s, outer.hop_latency_s, inner.kind, inner.bytes_per_s
    ('ring', 20000000000.0, 4e-06, 'line', 80000000000.0)
    """
    if axis.kind == "switch":
        port, peer = axis.bytes_per_s, axis.peer_bytes_per_s
        if port is not None and peer is not None:
            port = min(port, peer * max(piece.size - 1, 1))
        latencies = axis.hop_latency_s, axis.launch_latency_s
        return Segment(axis.name, piece.size, "switch", port, *latencies, piece.stride, peer)
    kind = axis.kind if piece.size * piece.stride == axis.size else "line"
    rate = None if axis.bytes_per_s is None else axis.bytes_per_s / piece.stride
    return Segment(axis.name, piece.size, kind, rate, axis.hop_latency_s * piece.stride, axis.launch_latency_s, piece.stride)


def joined(pieces: Sequence[Piece], axes: Sequence[PhysicalAxis]) -> tuple[Segment, ...]:
    """The segments of several pieces together, outer to inner: neighbouring pieces of one physical axis make one segment again.

    >>> ring = PhysicalAxis("ici0", 16, "ring", 80e9, 1e-6, 0.0, "vendor")
    >>> [(s.kind, s.size) for s in joined([Piece("ici0", 4), Piece("ici0", 4, 4)], [ring])]
    [('ring', 16)]
    """
    out = []
    for axis in axes:
        mine: list[Piece] = []
        for p in sorted((p for p in pieces if p.physical == axis.name), key=lambda p: -p.stride):
            if mine and mine[-1].stride == p.size * p.stride:
                p = Piece(p.physical, mine.pop().size * p.size, p.stride)
            mine.append(p)
        out += [segment(p, axis) for p in mine]
    return tuple(out)


# ---- all placements, best first -----------------------------------------------------------------------------------------


def _factorings(n: int, quotas: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every way to write n as a product of one divisor of each quota."""
    if not quotas:
        if n == 1:
            yield ()
        return
    for d in divisors(math.gcd(n, quotas[0])):
        for rest in _factorings(n // d, quotas[1:]):
            yield (d, *rest)


def _shares(sizes: tuple[int, ...], quotas: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every table of shares[physical axis][mesh axis] with these row products (sizes) and column products (quotas)."""
    if not sizes:
        if all(q == 1 for q in quotas):
            yield ()
        return
    for row in _factorings(sizes[0], quotas):
        for rest in _shares(sizes[1:], tuple(q // d for q, d in zip(quotas, row, strict=True))):
            yield (row, *rest)


def _rows(
    n: int, quotas: tuple[int, ...], alike: tuple[int, ...], rising: bool, last: Mapping[int, int]
) -> Iterator[tuple[int, ...]]:
    """`_factorings` in which the divisors of columns that are alike do not fall (`rising`), or do not rise, from left to right."""
    if not quotas:
        if n == 1:
            yield ()
        return
    for d in divisors(math.gcd(n, quotas[0])):
        before = last.get(alike[0], d)
        if d == before or (d > before) == rising:
            for rest in _rows(n // d, quotas[1:], alike[1:], rising, {**last, alike[0]: d}):
                yield (d, *rest)


def _sorted_shares(
    sizes: tuple[int, ...], quotas: tuple[int, ...], alike: tuple[int, ...], rising: tuple[bool, ...]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """The tables of `_shares` with columns that are alike in the order of `_rows`, row by row: one of those that only swap them."""
    if not sizes:
        if all(q == 1 for q in quotas):
            yield ()
        return
    for row in _rows(sizes[0], quotas, alike, rising[0], {}):
        number: dict[tuple[int, int], int] = {}
        still = tuple(number.setdefault(pair, len(number)) for pair in zip(alike, row, strict=True))
        for rest in _sorted_shares(sizes[1:], tuple(q // d for q, d in zip(quotas, row, strict=True)), still, rising[1:]):
            yield (row, *rest)


def _one_of_each(
    sizes: tuple[int, ...], quotas: tuple[int, ...], outer: list[int], inner: list[int]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """`_shares` without tables that differ from a better one only by a swap of mesh axes of equal size.

    Better is: the outermost switches to the first of them, the innermost to the last, the outermost torus links to the first.
    """
    rest = [j for j in range(len(sizes)) if j not in outer and j not in inner]
    order = [*outer, *inner, *rest]
    rising = tuple(j in inner for j in order)
    for table in _sorted_shares(tuple(sizes[j] for j in order), quotas, quotas, rising):
        at = dict(zip(order, table, strict=True))
        yield tuple(at[j] for j in range(len(sizes)))


def _orders(shares: tuple[tuple[int, ...], ...], torus: Sequence[int]) -> Iterator[dict[int, tuple[int, ...]]]:
    """For each shared axis of the torus, every order of its mesh axes from the outer piece to the inner one."""
    on = {j: tuple(i for i, d in enumerate(row) if d > 1) for j, row in enumerate(shares)}
    if math.prod(math.factorial(len(on[j])) for j in torus) > MOST_ORDERS:
        yield {j: tuple(sorted(axes, key=lambda i: -shares[j][i])) if j in torus else axes for j, axes in on.items()}
        return
    for choice in itertools.product(*(itertools.permutations(on[j]) for j in torus)):
        yield {**on, **dict(zip(torus, choice, strict=True))}


@lru_cache(65536)
def _gather_time(parts: tuple[tuple[int, float], ...]) -> float:
    """Seconds per byte of an all-gather over segments (size, rate) one after the other, in the best order."""
    k = math.prod(n for n, _ in parts)
    best = math.inf
    for order in itertools.permutations(parts):
        seconds, held = 0.0, 1 / k
        for n, rate in order:
            seconds += held * (n - 1) / rate
            held *= n
        best = min(best, seconds)
    return best


@lru_cache(512)
def _ranked(
    shape: tuple[tuple[str, int], ...], physical: tuple[PhysicalAxis, ...], extra_splits: int, swaps: bool = True
) -> tuple[Placement, ...]:
    axes = [p for p in physical if p.size > 1]
    names = [a for a, n in shape if n > 1]
    torus = [j for j, p in enumerate(axes) if p.kind != "switch"]
    outer = list(range(torus[0] if torus else max(len(axes) - 1, 0)))
    inner = [j for j in range(len(axes)) if j not in torus and j not in outer][::-1]
    tables: dict[Any, list[tuple[int, tuple[tuple[int, ...], ...]]]] = {}
    sizes, quotas = tuple(p.size for p in axes), tuple(n for _, n in shape if n > 1)
    for shares in _shares(sizes, quotas) if swaps else _one_of_each(sizes, quotas, outer, inner):
        slow = tuple(tuple(-d for d in shares[j]) for j in outer)  # the outermost switch to the first mesh axes
        fast = tuple(tuple(-d for d in shares[j][::-1]) for j in inner)  # the innermost to the last
        splits = sum(sum(d > 1 for d in shares[j]) - 1 for j in torus)
        tables.setdefault((slow, fast), []).append((splits, shares))
    kinds = [(p.size, p.kind, p.bytes_per_s, p.hop_latency_s, p.launch_latency_s, p.peer_bytes_per_s) for p in axes]
    alike = [kinds.index(k) for k in kinds]  # axes of the same kind are interchangeable
    found: dict[Any, tuple[Any, list[list[Piece]]]] = {}
    for switches, group in tables.items():
        fewest = min(splits for splits, _ in group)
        for splits, shares in group:
            if splits > fewest + extra_splits:
                continue
            for order in _orders(shares, torus):
                pieces = _pieces(axes, shares, order)
                rank = (*switches, splits, _total_time(pieces, {p.name: p for p in axes}), tuple(order.values()))
                same = tuple(sorted((alike[j], order[j], shares[j]) for j in range(len(axes))))
                if same not in found or rank < found[same][0]:
                    found[same] = (rank, pieces)
    ranked = [dict(zip(names, map(tuple, pieces), strict=True)) for _, pieces in sorted(found.values(), key=lambda f: f[0])]
    return tuple(Placement(tuple((a, pieces.get(a, ())) for a, _ in shape)) for pieces in ranked)


def _pieces(
    axes: list[PhysicalAxis], shares: tuple[tuple[int, ...], ...], order: dict[int, tuple[int, ...]]
) -> list[list[Piece]]:
    """The pieces of each mesh axis, when each physical axis is cut in this order from outside to inside."""
    pieces: list[list[Piece]] = [[] for _ in shares[0]] if shares else []
    for j, p in enumerate(axes):
        stride = p.size
        for i in order[j]:
            stride //= shares[j][i]
            pieces[i].append(Piece(p.name, shares[j][i], stride))
    return pieces


def _total_time(pieces: list[list[Piece]], axes: dict[str, PhysicalAxis]) -> float:
    """Seconds per byte of an all-gather along each mesh axis, summed; torus links only, those of unknown rate as 1 byte/s."""
    total = 0.0
    for mine in pieces:
        parts = []
        for p in mine:
            axis = axes[p.physical]
            if axis.kind != "switch":
                both = 2 if axis.kind == "ring" and p.size * p.stride == axis.size else 1  # a ring gathers from both sides
                parts.append((p.size, both * (axis.bytes_per_s or 1.0) / p.stride))
        total += _gather_time(tuple(sorted(parts)))
    return float(f"{total:.9g}")  # so that equal sums taken in another order tie


def placements(shape: Mapping[str, int], topology: Topology, *, extra_splits: int = 1) -> tuple[Placement, ...]:
    """Ways to lay a mesh of these axes on a machine, best first; those that differ by a renaming of equal links appear once.

    The order: (1) the outermost switch (network of slices or of GPU nodes) goes to the first mesh axes as far as it can, the
    innermost (two devices of a chip) to the last; (2) fewest shared torus axes; up to `extra_splits` more than necessary are
    listed; (3) least total time of one equal all-gather along each mesh axis, so whole rings before lines and pieces; (4) first
    mesh axis on the outermost link. Links are taken as independent: what two mesh axes do at the same time is not weighed.
    Empty when the sizes do not multiply to the devices.

    >>> from scalebook.topologies import topology
    >>> [str(p) for p in placements({"X": 4, "Y": 8}, topology("v5e:4x8"))][:2]
    ['X: ici0(4), Y: ici1(8)', 'X: ici1(4), Y: ici0(4) × ici1(2 by 4)']
    """
    return _ranked(tuple((a, int(n)) for a, n in shape.items()), tuple(topology.physical_axes), extra_splits)


def best_placement(shape: Mapping[str, int], topology: Topology) -> Placement:
    """The first of `placements`, without looking at those that only swap mesh axes of equal size: fast for many axes.

    >>> from scalebook.topologies import topology
    >>> str(best_placement({"X": 4, "Y": 4}, topology("v5e:4x4")))
    'X: ici0(4), Y: ici1(4)'
    """
    sizes = tuple((a, int(n)) for a, n in shape.items())
    return _ranked(sizes, tuple(topology.physical_axes), 0, swaps=False)[0]


# ---- a placement that the user gives ------------------------------------------------------------------------------------


def given(shape: Mapping[str, int], topology: Topology, asked: Placement | Mapping[str, Any]) -> Placement:
    """The placement that the user wrote: for each mesh axis its links, as name, (name, size) or (name, size, stride).

    Without strides, the pieces of a shared physical axis lie outer to inner in the order of the mesh axes. MeshError if the
    pieces of a mesh axis do not multiply to its size, or those of a physical axis do not fill it.
    """
    wanted = dict(asked.axes) if isinstance(asked, Placement) else asked
    if not isinstance(wanted, Mapping):
        raise MeshError(f"a placement is a mapping such as {{'X': ['ici0', 'ici1'], 'Y': ['ici2']}}; found {asked!r}")
    sizes = {p.name: p.size for p in topology.physical_axes}
    for axis in wanted:
        if axis not in shape:
            raise unknown("mesh axis in the placement", axis, shape, MeshError)
    left, out = dict(sizes), {}
    for axis, n in shape.items():
        entries = wanted.get(axis, ())
        pieces = []
        if not isinstance(entries, Sequence):
            raise MeshError(f"the placement of {axis} is {entries!r}: write a list of links, such as ['ici0', 'ici1']")
        for entry in [entries] if isinstance(entries, str) else entries:
            name, size, stride = _entry(axis, entry, sizes, topology)
            left[name] //= size
            pieces.append(Piece(name, size, stride or left[name]))
        if (product := math.prod(p.size for p in pieces)) != n:
            links = " · ".join(f"{p.physical}={p.size}" for p in pieces) or "nothing"
            raise MeshError(f"the placement gives {axis}={n} the links {links}, {product} devices: they must multiply to {n}")
        out[axis] = tuple(p for p in pieces if p.size > 1)
    for name, size in sizes.items():
        mine = sorted((p for pieces in out.values() for p in pieces if p.physical == name), key=lambda p: p.stride)
        inside = [1, *itertools.accumulate((p.size for p in mine), operator.mul)]
        if [*(p.stride for p in mine), size] != inside:
            shown = ", ".join(f"{p.size} by {p.stride}" for p in mine[::-1]) or "nothing"
            rule = "the pieces must fill it, and the stride of each is the product of the pieces inside"
            raise MeshError(f"the placement uses {shown} of {name}, which has {size} devices: {rule}")
    return Placement(tuple(out.items()))


def _entry(axis: str, entry: Any, sizes: dict[str, int], topology: Topology) -> tuple[str, int, int | None]:
    """One link of a placement: name, size, and the stride if it was given."""
    parts = (entry,) if isinstance(entry, str) else tuple(entry) if isinstance(entry, Sequence) else ()
    if not 1 <= len(parts) <= 3 or not isinstance(parts[0], str) or not all(isinstance(n, int) and n > 0 for n in parts[1:]):
        raise MeshError(f"the placement of {axis} has {entry!r}: write a link's name, (name, size) or (name, size, stride)")
    if parts[0] not in sizes:
        raise unknown(f"link of {topology.spec} in the placement of {axis}", parts[0], sizes, MeshError)
    return parts[0], parts[1] if len(parts) > 1 else sizes[parts[0]], parts[2] if len(parts) > 2 else None
