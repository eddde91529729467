"""Multiplying sharded arrays: the collectives that `A[..] * B[..] -> C[..]` needs follow from the layouts and the sizes.

    >>> e = einsum("A[I_X, J] * B[J_X, K] -> C[I_X, K]", {"I": 4096, "J": 1024, "K": 1024}, {"X": 4})
    >>> [(c.kind, c.array, c.axes, c.bytes) for c in e.collectives]
    [('all-gather', 'B', ('X',), 1572864)]

Each device holds a quarter of B, 2·1024·1024/4 bytes, and receives the three other quarters. Nothing here knows the name of a
parallelism: the cheapest plan is found by shortest walks between layouts (`graph`, `plans`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from scalebook import reports
from scalebook.errors import NotationError, ScalebookError, SizeError
from scalebook.graph import Edge, PriceList
from scalebook.layouts import Mesh, Sharding
from scalebook.notation import subscript
from scalebook.plans import Plan, Product, Step, cost, distinct, frontier, order
from scalebook.roofline import Time
from scalebook.settings import Setting, needed_blocks, offer, read, whole
from scalebook.sweeps import Sweep, sweep
from scalebook.units import binary


@dataclass(frozen=True)
class Move:
    """One step of a plan: `kind` over mesh `axes` takes `array` from the layout `before` to `after`.

    `bytes` is what each device receives; `nbytes` is the array as one group holds it after a gather, before a scatter. `src` and
    `dst` are the dimensions that the axes leave and join. A `slice` keeps a part of what is there already, and costs nothing.
    """

    kind: str
    array: str
    axes: tuple[str, ...]
    bytes: int | float
    seconds: float | None
    before: Sharding
    after: Sharding
    src: str | None
    dst: str | None
    nbytes: int | float
    algorithm: str = ""

    def __str__(self) -> str:
        return f"{self.kind}{subscript(self.axes)}  {self.before} -> {self.after}"


Collective = Move  # a Move that communicates: every kind but "slice"


@dataclass(frozen=True, repr=False)
class Einsum:
    """A product of two sharded arrays, with the plan to compute it and, in `ranked`, all others worth considering.

    `moves` are in order (A's, B's, then C's after the local product). `bytes` are those each device receives; `time` has the parts
    math, hbm and comms, None without a topology.
    """

    setting: Setting
    plan: Plan
    ranked: tuple[Plan, ...]

    @property
    def spec(self) -> str:
        """The einsum as written."""
        return self.setting.spec

    @property
    def A(self) -> Sharding:
        """The first operand."""
        return self.setting.arrays[0]

    @property
    def B(self) -> Sharding:
        """The second operand."""
        return self.setting.arrays[1]

    @property
    def C(self) -> Sharding:
        """The result."""
        return self.setting.arrays[2]

    @property
    def sizes(self) -> Mapping[str, int]:
        """Size of each dimension."""
        return self.setting.sizes

    @property
    def mesh(self) -> Mesh:
        """The mesh in whose axes the moves are written: with `sub_axes`, the factored one."""
        return self.setting.mesh

    @property
    def dtypes(self) -> dict[str, str]:
        """Number format of each array."""
        return {s.array: dt for s, dt in zip(self.setting.arrays, self.setting.dtypes, strict=True)}

    @property
    def flops(self) -> int:
        """FLOPs of the whole product, however it is sharded: 2 × the product of the sizes where a letter is summed, else 1 ×."""
        return self.setting.flops

    @property
    def flops_per_device(self) -> int | float:
        """FLOPs that each device executes."""
        return whole(Fraction(self.flops, self.plan.split))

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """Every step of the plan but the local product, slices included."""
        return tuple(move_of(self.setting, s) for s in self.plan.steps)

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """The moves that communicate."""
        return tuple(m for m in self.moves if m.kind != "slice")

    @cached_property
    def local(self) -> tuple[Sharding, Sharding, Sharding]:
        """A, B and C as the devices hold them for the local product."""
        a, b, c = (s.at(lay) for s, lay in zip(self.setting.arrays, self.plan.local, strict=True))
        return a, b, c

    @property
    def bytes(self) -> int | float:
        """Bytes that each device receives."""
        return whole(sum((Fraction(m.bytes) for m in self.moves), Fraction(0)))

    @cached_property
    def time(self) -> Time:
        """Seconds of math, memory traffic (local operands read, local result written) and communication of one device.

        Communication is the sum of the moves' seconds: 0 without moves, None where a move is over a link of unknown rate. Collectives
        of one plan are counted one after another; two independent ones on different axes could run together, and then cost only the
        longer of the two.
        """
        s = self.setting
        c = cost(self.plan, s.array_bytes, s.flops, s.device_rates, timed=s.timed)
        comms, latency = None, None
        if s.price is not None:
            seconds = [m.seconds for m in self.moves]
            known = [t for t in seconds if t is not None]
            comms = math.fsum(known) if len(known) == len(seconds) else None
            latency = math.fsum(offer(s.price, step, s.array_bytes[step.array])[1] for step in self.plan.steps)
        return Time({"math": c.math, "hbm": c.hbm, "comms": comms}, bytes=self.bytes, latency=latency)

    @property
    def bound_by(self) -> str:
        """The resource that takes longest; "unknown" without a topology."""
        return self.time.bound_by

    @property
    def waste(self) -> int:
        """How many times the FLOPs are done: devices along the axes in play ÷ devices that do different work."""
        devices = 1
        for _, n in self.setting.product.axes:
            devices *= n
        return devices // self.plan.split

    @cached_property
    def alternatives(self) -> tuple[Einsum, ...]:
        """The other plans worth considering, best first: each is better than this one in something (one array, FLOPs, latency)."""
        return tuple(Einsum(self.setting, p, self.ranked) for p in self.ranked if p is not self.plan)

    def sweep(self, sizes: Mapping[str, Any]) -> Sweep:
        """The cheapest plan at every point of arrays of sizes; letters that are not given keep theirs.

        >>> e = einsum("A[I_X, J] * B[J, K_X] -> C[I_X, K]", {"I": 64, "J": 64, "K": 64}, {"X": 4})
        >>> import numpy
        >>> [int(b) for b in e.sweep({"I": numpy.array([64, 6400])}).bytes]
        [6144, 6144]
        """
        return sweep(self.setting, sizes)

    def backward(self) -> tuple[Einsum, Einsum]:
        """The two transposed products: dA = dC · B in A's layout, dB = A · dC in B's layout, on the same mesh.

        The cotangent of an array has its layout without pending sums: a sum over axes where an operand was replicated comes out of
        the local product pending, and the search resolves it. Where the name dA is taken, the gradient of A is ddA.
        """
        A, B, C = self.setting.arrays
        names = gradient_names([s.array for s in (A, B, C)])
        dA, dB, dC = (Sharding(names[s.array], s.letters, s.dims, ()) for s in (A, B, C))
        types = dict(zip(("A", "B", "C"), self.setting.dtypes, strict=True))
        return (
            self._again(f"{dC} * {B} -> {dA}", (dC, B, dA), (types["C"], types["B"], types["A"])),
            self._again(f"{A} * {dC} -> {dB}", (A, dC, dB), (types["A"], types["C"], types["B"])),
        )

    def _again(self, spec: str, arrays: tuple[Sharding, Sharding, Sharding], dtypes: tuple[str, str, str]) -> Einsum:
        return solve(self.setting.again(spec, arrays, dtypes))

    def explain(self) -> str:
        """The plan as text: each move with its bytes and seconds, the local product, what binds, and why the others lost."""
        return reports.explain(self)

    def table(self) -> list[tuple[str, str, str, str]]:
        """Each step as (what, how the layout changes, bytes received per device, seconds), as printed."""
        return reports.table(self)

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"<{self.spec.strip()}: {reports.summary(self)}>"

    def _repr_html_(self) -> str:
        return reports.html(self)


def einsum(
    spec: str,
    sizes: Mapping[str, Any],
    mesh: Mesh | Mapping[str, int] | None = None,
    dtype: str | Mapping[str, str] = "bf16",
    *,
    sub_axes: bool = False,
    idle_axes: bool = False,
    memory_limit: float | None = None,
) -> Einsum:
    """The cheapest way to compute `A[..] * B[..] -> C[..]` for arrays that are sharded as written.

    >>> e = einsum("In[B_X, D] * W[D_X, F] -> Out[B_X, F]", {"B": 4096, "D": 1024, "F": 4096}, {"X": 8})
    >>> [f"{c.kind} {c.array}" for c in e.collectives], e.bytes == 2 * 1024 * 4096 * 7 // 8
    (['all-gather W'], True)

    On a mesh that lies on a topology, cheapest means time with math, memory traffic and communication side by side; on a mesh alone,
    bytes received per device, then FLOPs, then number of collectives; so too where the rate of a link under one of the axes is not
    known, and then seconds are given for the plans that do without it. `dtype` is one name or one per array; pending sums travel in
    the result's. `sub_axes` lets the search split mesh axes into their prime factors, `idle_axes` lets it use axes that the einsum
    does not name, and `memory_limit` (bytes per device) forbids layouts of which one array's local block is larger.

    Raises NotationError for what cannot be read, SizeError for sizes that are missing, not divisible or above 10^15, MeshError for
    axes that the mesh does not have or that are too many to search. The result is one product alone: `chains` shares moves between several.
    """
    return solve(read(spec, sizes, mesh, dtype, sub_axes=sub_axes, idle_axes=idle_axes, memory_limit=memory_limit))


def gradient_names(names: Sequence[str]) -> dict[str, str]:
    """A name for the gradient of each array: d and its name, with more d's where that is taken.

    >>> gradient_names(["A", "dA"])
    {'A': 'ddA', 'dA': 'dddA'}
    """
    out, taken = dict[str, str](), set(names)
    for name in names:
        new = "d" + name
        while new in taken:
            new = "d" + new
        taken.add(new)
        out[name] = new
    return out


def solve(s: Setting) -> Einsum:
    """Rank the frontier at the setting's sizes."""
    plans = frontier(s.product)
    if not plans:
        raise no_plan(s)
    nbytes, n, rates = s.array_bytes, s.flops, s.device_rates
    ranked = distinct(sorted(plans, key=lambda p: order(p, cost(p, nbytes, n, rates, timed=s.timed))))
    return Einsum(s, ranked[0], ranked)


def no_plan(s: Setting) -> ScalebookError:
    """Why there is no plan: the memory limit, and then how much would do; or a pending sum that nothing makes."""
    free = s.product._replace(need=(1, 1, 1))
    if s.memory_limit is None or not frontier(free):
        A, B, C = s.arrays
        return NotationError(
            f"no sequence of moves computes {s.spec}: a sum can only be pending in {C} over axes that split a summed dimension or were "
            f"pending in {A} or {B}, and dimensions of these sizes cannot be split further. Mesh: {dict(s.mesh.shape)}, "
            f"sizes: {', '.join(f'{d}={n}' for d, n in s.sizes.items())}"
        )
    blocks = _divisors(s.product)
    tries = sorted({nbytes / k for nbytes in s.array_bytes for k in blocks if nbytes / k > s.memory_limit})
    low, high = 0, len(tries) - 1
    while low < high:  # more memory never closes a layout
        mid = (low + high) // 2
        if frontier(s.product._replace(need=needed_blocks(s.array_bytes, tries[mid]))):
            high = mid
        else:
            low = mid + 1
    held = ", ".join(
        f"{a} {binary(n / _blocks(s, i))}" for i, (a, n) in enumerate(zip(map(str, s.arrays), s.array_bytes, strict=True))
    )
    return SizeError(
        f"no plan for {s.spec} keeps every local block within {reports.exact_bytes(s.memory_limit)} per device; the least that would do is "
        f"{binary(tries[low], 4)} ({whole(Fraction(tries[low]))} bytes). As sharded: {held}"
    )


def _divisors(p: Product) -> set[int]:
    """Every number of blocks that some axes of the mesh make."""
    out = {1}
    for _, n in p.axes:
        out |= {k * n for k in out}
    return out


def _blocks(s: Setting, array: int) -> int:
    return s.arrays[array].shards(s.mesh)


def move_of(s: Setting, step: Step) -> Move:
    """A step of a plan with its bytes and seconds at the setting's sizes."""
    return priced_move(s.arrays[step.array], s.array_bytes[step.array], step, s.price)


def priced_move(array: Sharding, nbytes: float | Fraction, step: Step, price: PriceList | None) -> Move:
    """A step of an array of so many bytes; with its seconds if there is a price list."""
    e: Edge = step.edge
    letters = array.letters
    held = Fraction(nbytes) / e.split
    group = held if e.kind in ("reduce-scatter", "all-reduce") else held * e.k
    shares = {
        "slice": Fraction(0),
        "all-gather": Fraction(e.k - 1),
        "permute": Fraction(1),
        "all-reduce": Fraction(2 * (e.k - 1), e.k),
    }
    received = held * shares.get(e.kind, Fraction(e.k - 1, e.k))
    seconds = None
    if price is not None:
        rate, fixed = offer(price, step, nbytes)
        seconds = None if rate is None else rate * float(group) + fixed
    return Move(
        kind=e.kind,
        array=array.array,
        axes=e.axes,
        bytes=whole(received),
        seconds=seconds,
        before=array.at(step.before),
        after=array.at(step.after),
        src=None if e.src is None else letters[e.src],
        dst=None if e.dst is None else letters[e.dst],
        nbytes=whole(group),
        algorithm=step.algorithm,
    )
