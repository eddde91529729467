"""Moving one array from a layout to another: the cheapest sequence of collectives, without a product.

>>> r = reshard("A[I_X, J] -> A[I, J_X]", {"I": 1024, "J": 1024}, {"X": 8})
>>> [str(m) for m in r.moves], r.bytes == 2 * 1024 * 1024 // 8 * 7 // 8
(['all-to-all_X  A[I_X, J] -> A[I, J_X]'], True)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType

from scalebook.errors import NotationError
from scalebook.graph import PriceList, layout_graph, walks
from scalebook.layouts import Mesh, Sharding, check_sizes, mesh_of, sharding
from scalebook.plans import Step
from scalebook.products import Move, priced_move
from scalebook.roofline import Time
from scalebook.settings import priced_in_seconds, whole
from scalebook.units import digits, dtype_name, itemsize, plural, si


@dataclass(frozen=True, repr=False)
class Reshard:
    """A change of layout: `moves` in order, `bytes` that each device receives, `time` with the part comms (None without links)."""

    before: Sharding
    after: Sharding
    sizes: Mapping[str, int]
    mesh: Mesh
    dtype: str
    moves: tuple[Move, ...]

    @cached_property
    def collectives(self) -> tuple[Move, ...]:
        """The moves that communicate."""
        return tuple(m for m in self.moves if m.kind != "slice")

    @cached_property
    def bytes(self) -> int | float:
        """Bytes that each device receives."""
        return whole(sum((Fraction(m.bytes) for m in self.moves), Fraction(0)))

    @cached_property
    def time(self) -> Time:
        """Seconds of communication, one move after the other."""
        seconds = [m.seconds for m in self.moves]
        known = [s for s in seconds if s is not None]
        return Time({"comms": math.fsum(known) if len(known) == len(seconds) else None}, bytes=self.bytes)

    @property
    def spec(self) -> str:
        """The change as written."""
        return f"{self.before} -> {self.after}"

    def table(self) -> list[tuple[str, str, str, str]]:
        """Each move as (what, how the layout changes, bytes received per device, seconds), as printed."""
        return [
            (
                f"{m.kind}{'' if not m.axes else ' over ' + ', '.join(m.axes)}",
                f"{m.before} -> {m.after}",
                "free" if m.kind == "slice" else si(m.bytes, "B"),
                "" if m.seconds is None or m.kind == "slice" else si(m.seconds, "s"),
            )
            for m in self.moves
        ]

    def explain(self) -> str:
        """The moves as text, and what they add up to."""
        rows = self.table()
        widths = [max((len(r[i]) for r in rows), default=0) for i in range(4)]
        lines = [self.spec] + ["  " + "  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)).rstrip() for r in rows]
        seconds = self.time.comms
        lines.append(
            f"Each device receives {si(self.bytes, 'B')}"
            + (f" in {si(seconds, 's')}." if seconds is not None else "; seconds need a mesh on a topology.")
            if self.bytes
            else "Nothing is communicated."
        )
        return "\n".join(lines)

    __str__ = explain

    def __repr__(self) -> str:
        return f"<{self.spec}: {plural(len(self.collectives), 'collective')}, {digits(float(self.bytes))} bytes>"


def reshard(spec: str, sizes: Mapping[str, int], mesh: Mesh | Mapping[str, int], dtype: str = "bf16") -> Reshard:
    """The cheapest way to bring an array from one layout to another, by time where links are known, else by bytes.

    >>> import scalebook as sb
    >>> r = reshard("A[I_X, J] -> A[I, J_X]", {"I": 8192, "J": 8192}, sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16"))
    >>> round(r.time.comms * 1e6)  # µs: 8 hops + 2·8192² bytes ÷ 8 ÷ 45 GB/s
    381

    A sum may be pending before; it is finished unless it is still pending afterwards. Raises NotationError for what cannot be read,
    two different arrays, or a sum that nothing makes pending; SizeError for sizes that are missing or do not divide.
    """
    m = mesh_of(mesh)
    left, right = _both(spec, m)
    check_sizes([left, right], sizes, m)
    used = {a for s in (left, right) for d in (*s.dims, s.pending) for a in d}
    axes = tuple((a, n) for a, n in m.axes if n > 1 and a in used)
    devices = math.prod(n for _, n in axes)
    limits = tuple(math.gcd(int(sizes[d]), devices) for d in left.letters)
    price = PriceList(m if priced_in_seconds(m, axes) else None)
    graph = layout_graph(limits, axes)
    start, end = graph.number[left.layout(m)], graph.number[right.layout(m)]
    found = walks(start, limits, axes, price).get(end)
    if not found:
        raise NotationError(
            f"no sequence of moves leads from {left} to {right}: a sum that is pending afterwards must be pending before, "
            f"over the same axes. Mesh: {dict(m.shape)}"
        )
    nbytes = math.prod(int(sizes[d]) for d in left.letters) * itemsize(dtype)
    best = min(found, key=lambda w: (w.rate * nbytes + w.fixed, w.fixed) if price.mesh else (w.rate, w.fixed))
    steps = [Step(0, graph.nodes[before], graph.nodes[e.to], e, algorithm) for before, e, algorithm in best.steps()]
    moves = tuple(priced_move(left, nbytes, s, price if price.mesh else None) for s in steps)
    own = MappingProxyType({d: int(sizes[d]) for d in left.letters})
    return Reshard(left, right, own, m, dtype_name(dtype), moves)


def _both(spec: str, m: Mesh) -> tuple[Sharding, Sharding]:
    """The two layouts of one array."""
    if not isinstance(spec, str) or spec.count("->") != 1:
        raise NotationError(f"a change of layout is text such as 'A[I_X, J] -> A[I, J_X]'; found {spec!r}")
    left, right = (sharding(text.strip(), m) for text in spec.split("->"))
    if (left.array, left.letters) != (right.array, right.letters):
        raise NotationError(f"{left} and {right} are different arrays: a change of layout keeps name and dimensions. In {spec!r}")
    return left, right
