"""Several products together: a move that two of them need is paid once, and intermediate layouts are chosen for all at once.

    >>> mlp = ["In[T_XY, D] * Wg[D_X, F_Y] -> G[T_X, F_Y]", "In[T_XY, D] * Wu[D_X, F_Y] -> U[T_X, F_Y]"]
    >>> c = chain(mlp, {"T": 4096, "D": 1024, "F": 1024}, {"X": 2, "Y": 2})
    >>> c.bytes_apart - c.bytes == 2048 * 1024 * 2 // 2  # gathering In over Y, once instead of twice
    True

Two products that write the same array are added, while their sums are still pending where that is cheaper. A walk is a chain of
edges keyed by array, layout before and layout after; a group of products costs the union of the edges it walks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from scalebook import reports
from scalebook.errors import NotationError, SizeError, unknown
from scalebook.graph import layout_graph
from scalebook.joint import Key, Option, choose, edge_key, edge_price, joined, parts
from scalebook.layouts import Layout, Mesh, Sharding, check_sizes, mesh_of, parse_einsum
from scalebook.plans import cost, frontier
from scalebook.products import Einsum, Move, move_of, no_plan, solve
from scalebook.roofline import Time
from scalebook.settings import check_huge, check_layouts, setting
from scalebook.units import binary, dtype_name, si

Triple = tuple[Sharding, Sharding, Sharding]


@dataclass(frozen=True)
class Line:
    """One product of a chain: its arrays as written, whether it belongs to the backward pass."""

    arrays: Triple
    phase: int = 0

    def __str__(self) -> str:
        a, b, c = self.arrays
        return f"{a} * {b} -> {c}"


@dataclass(frozen=True, repr=False)
class Chain:
    """Products with their plans, chosen together. `layouts` has every array where it rests between products."""

    products: tuple[Einsum, ...]
    phases: tuple[int, ...]
    keep: frozenset[str]
    layouts: Mapping[str, Sharding]

    @cached_property
    def moves(self) -> tuple[tuple[Move, tuple[int, ...]], ...]:
        """Every move that is paid for, once, and the products that use it, by number."""
        users: dict[Key, list[int]] = {}
        quick: dict[Key, Move] = {}
        for n, e in enumerate(self.products):
            for part in (x for step in e.plan.steps for x in parts(step, e.setting)):
                key, move = edge_key(part, e.setting, self.phases[n], self.keep), move_of(e.setting, part)
                users.setdefault(key, []).append(n)
                if key not in quick or (move.seconds or 0.0) < (quick[key].seconds or 0.0):
                    quick[key] = move
        out, done = list[tuple[Move, tuple[int, ...]]](), set[Key]()
        for n, e in enumerate(self.products):
            for step in e.plan.steps:
                run = [(x, edge_key(x, e.setting, self.phases[n], self.keep)) for x in parts(step, e.setting)]
                for used, group in itertools.groupby((x for x in run if x[1] not in done), lambda x: tuple(users[x[1]])):
                    some = list(group)
                    done |= {key for _, key in some}
                    move = quick[some[0][1]] if len(some) == 1 else move_of(e.setting, joined([x for x, _ in some]))
                    out.append((move, used))
        return tuple(out)

    @cached_property
    def collectives(self) -> tuple[Move, ...]:
        """The moves that communicate, each once."""
        return tuple(m for m, _ in self.moves if m.kind != "slice")

    @property
    def bytes(self) -> int | float:
        """Bytes that each device receives."""
        return sum(m.bytes for m in self.collectives)

    @cached_property
    def apart(self) -> tuple[Einsum, ...]:
        """The same products, each solved alone."""
        return tuple(solve(e.setting) for e in self.products)

    @property
    def bytes_apart(self) -> int | float:
        """Bytes that each device would receive if every product paid for its own moves."""
        return sum(e.bytes for e in self.apart)

    @property
    def flops(self) -> int:
        """FLOPs of all products, whole."""
        return sum(e.flops for e in self.products)

    @property
    def flops_per_device(self) -> int | float:
        """FLOPs that each device executes."""
        return sum(e.flops_per_device for e in self.products)

    @cached_property
    def time(self) -> Time:
        """Seconds of each resource, summed over the products, each shared move once."""
        total = Time({"math": 0.0, "hbm": 0.0})
        for e in self.products:
            total = total + Time({"math": e.time.math, "hbm": e.time.hbm})
        seconds = [m.seconds for m in self.collectives]
        known = [s for s in seconds if s is not None]
        machine = self.products[0].setting.price is not None
        comms = math.fsum(known) if machine and len(known) == len(seconds) else None
        return Time({**total.parts, "comms": comms}, bytes=self.bytes)

    def phase(self, number: int) -> Chain:
        """The products of the forward pass (0) or of the backward pass (1) alone."""
        chosen = [n for n, p in enumerate(self.phases) if p == number]
        return Chain(tuple(self.products[n] for n in chosen), tuple(number for _ in chosen), self.keep, self.layouts)

    def table(self) -> list[tuple[str, str, str]]:
        """Each move that is paid for: what, bytes received per device, and the products that use it."""
        names = [str(e.C) for e in self.products]
        return [
            (str(m), si(m.bytes, "B"), ", ".join(names[n] for n in sorted(set(used))))
            for m, used in self.moves
            if m.kind != "slice"
        ]

    def explain(self) -> str:
        """The products, the layouts chosen, every move with those who share it, and what sharing saves."""
        rows = self.table()
        wide = [max((len(r[n]) for r in rows), default=0) for n in range(2)]
        lines = [f"{e.C} = {e.A} * {e.B}" for e in self.products]
        lines += [f"  {what:<{wide[0]}}  {size:>{wide[1]}}  for {users}" for what, size, users in rows]
        lines.append(f"Each device receives {si(self.bytes, 'B')}; product by product it would be {si(self.bytes_apart, 'B')}.")
        if self.time.known:
            lines.append(", ".join(f"{r} {text}" for r, text in self.time.table()) + f": {self.time.bound_by} binds")
        return "\n".join(lines)

    @property
    def bound_by(self) -> str:
        """The resource that takes longest."""
        return self.time.bound_by

    def _repr_html_(self) -> str:
        head = ("move", "per device", "for")
        return reports.html_table("; ".join(e.spec for e in self.products), head, self.table(), self.explain().splitlines()[-1])

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"<chain of {len(self.products)} products: {len(self.collectives)} collectives>"


# ---- reading ------------------------------------------------------------------------------------------------------------


def transposed(lines: Sequence[Line]) -> list[Line]:
    """The backward pass: for each product, last first, the gradients of its two operands, in their layouts without pending sums."""

    def d(s: Sharding) -> Sharding:
        return Sharding("d" + s.array, s.letters, s.dims, ())

    out = []
    for line in reversed(lines):
        A, B, C = line.arrays
        out += [Line((d(C), B, d(A)), 1), Line((A, d(C), d(B)), 1)]
    return out


def read_lines(specs: Iterable[str], mesh: Mesh) -> list[Line]:
    """The products of a chain; an array that appears in several must be written alike in all."""
    if isinstance(specs, str):
        specs = [specs]
    lines, seen = [], dict[str, tuple[Sharding, str]]()
    for spec in specs:
        arrays = parse_einsum(spec, mesh)
        for s in arrays:
            before, where = seen.setdefault(s.array, (s, spec))
            if (before.letters, before.layout(mesh)) != (s.letters, s.layout(mesh)):
                raise NotationError(
                    f"{s.array} is {before} in {where!r} and {s} in {spec!r}: an array has one layout between products"
                )
        lines.append(Line(arrays))
    if not lines:
        raise NotationError("a chain has at least one product; none was given")
    return lines


def chain(
    specs: Iterable[str],
    sizes: Mapping[str, int],
    mesh: Mesh | Mapping[str, int] | None = None,
    dtype: str | Mapping[str, str] = "bf16",
    *,
    free: Iterable[str] = (),
    elementwise: Sequence[str | Sequence[str]] = (),
    backward: bool = False,
    keep: Iterable[str] = (),
    memory_limit: float | None = None,
) -> Chain:
    """The cheapest plans for several products together.

    `free` names arrays, written without subscripts, whose layouts are chosen jointly; arrays that are combined `elementwise`, such
    as ("G", "U", "H") in H = silu(G) · U, lie alike and never have a sum pending. `backward` adds the transposed products. A copy
    moved in the forward pass is moved again in the backward pass, unless its array is in `keep`: the price is memory.

    Raises NotationError for unlike layouts of one array, and what `einsum` raises.
    """
    m = mesh_of({} if mesh is None else mesh)
    lines = read_lines(specs, m)
    one = all(isinstance(g, str) for g in elementwise)
    groups = [tuple(map(str, elementwise))] if one else [names_in(g) for g in elementwise]
    forward = {s.array for line in lines for s in line.arrays}
    if backward:
        lines += transposed(lines)
        groups = [(*g, *("d" + a for a in g)) for g in groups]
    names = {s.array: s for line in lines for s in line.arrays}
    if clash := [
        a for line in lines if line.phase == 0 for a in (s.array for s in line.arrays) if backward and "d" + a in forward
    ]:
        raise NotationError(
            f"{', '.join('d' + a for a in dict.fromkeys(clash))}: the backward pass gives this name to the gradient of "
            f"{', '.join(dict.fromkeys(clash))}, and the chain has an array of that name; rename it"
        )
    loose, kept = list(names_in(free)), frozenset(names_in(keep))
    if backward:
        loose += ["d" + a for a in loose if "d" + a in names]
    for asked in [*loose, *kept, *(a for g in groups for a in g if not (backward and a.startswith("d")))]:
        if asked not in names:
            raise unknown("array of the chain", asked, names)
    types = {
        a: dtype_name(dtype if isinstance(dtype, str) else dtype.get(a, dtype.get(a.removeprefix("d"), "bf16"))) for a in names
    }
    check_huge(sizes)
    check_sizes([s for a, s in names.items() if a not in loose], sizes, m)
    check_sizes(names.values(), sizes)
    homes = candidates(names, loose, groups, sizes, m)
    stages = [_options(line, homes, sizes, m, types, memory_limit, kept) for line in lines]
    chosen = choose(stages)
    rest = {a: s for o in chosen for a, s in zip((x.array for x in o.setting.arrays), o.setting.arrays, strict=True)}
    products = tuple(Einsum(o.setting, o.plan, o.ranked) for o in chosen)
    return Chain(products, tuple(line.phase for line in lines), kept, rest)


def names_in(names: str | Iterable[str]) -> tuple[str, ...]:
    """One name, or several."""
    return (names,) if isinstance(names, str) else tuple(names)


def candidates(
    names: Mapping[str, Sharding], loose: Sequence[str], groups: Sequence[tuple[str, ...]], sizes: Mapping[str, int], m: Mesh
) -> dict[str, tuple[str, tuple[Layout, ...]]]:
    """For each free array, the variable that decides its layout and the layouts it may take. Arrays of one group share a variable."""
    axes = tuple((a, n) for a, n in m.axes if n > 1)
    out: dict[str, tuple[str, tuple[Layout, ...]]] = {}
    for group in groups:
        members = [a for a in group if a in names]
        shapes = {names[a].letters for a in members}
        if len(shapes) > 1:
            raise NotationError(
                f"{', '.join(map(str, members))} are combined element by element and differ in dimensions: {sorted(shapes)}"
            )
        held = {names[a].layout(m) for a in members if a not in loose}
        if any(x.pending for x in held):
            raise NotationError(f"{', '.join(members)}: a sum must be finished before arrays are combined element by element")
        if len(held) > 1:
            raise NotationError(
                f"{', '.join(str(names[a]) for a in members)} are combined element by element: their layouts must be equal"
            )
        if any(a in loose for a in members):
            layouts = tuple(held) or tuple(x for x in _layouts(names[members[0]], sizes, axes) if not x.pending)
            out |= dict.fromkeys(members, (members[0], layouts))
    for a in loose:
        if any(names[a].dims):
            raise NotationError(
                f"{names[a]} is free: write it without subscripts, {names[a].array}[{', '.join(names[a].letters)}]"
            )
        if a not in out:
            out[a] = (a, _layouts(names[a], sizes, axes))
    return out


def _layouts(s: Sharding, sizes: Mapping[str, int], axes: tuple[tuple[str, int], ...]) -> tuple[Layout, ...]:
    devices = math.prod(n for _, n in axes)
    check_layouts(s, len(s.letters), axes)
    return layout_graph(tuple(math.gcd(sizes[x], devices) for x in s.letters), axes).nodes


def _options(
    line: Line,
    homes: Mapping[str, tuple[str, tuple[Layout, ...]]],
    sizes: Mapping[str, int],
    m: Mesh,
    types: Mapping[str, str],
    memory_limit: float | None,
    keep: frozenset[str],
) -> list[Option]:
    """Every plan of a product, for every layout of its free arrays."""
    variables = list(dict.fromkeys(homes[s.array][0] for s in line.arrays if s.array in homes))
    choices: list[dict[str, Layout]] = [{}]
    for v in variables:
        layouts = next(homes[s.array][1] for s in line.arrays if s.array in homes and homes[s.array][0] == v)
        choices = [{**c, v: layout} for c in choices for layout in layouts]
    out = []
    for assumed in choices:
        a, b, c = (s.at(assumed[homes[s.array][0]]) if s.array in homes else s for s in line.arrays)
        dtypes = (types[a.array], types[b.array], types[c.array])
        s = setting(
            f"{a} * {b} -> {c}",
            (a, b, c),
            {x: int(sizes[x]) for y in (a, b, c) for x in y.letters},
            m,
            dtypes,
            memory_limit=memory_limit,
        )
        plans = frontier(s.product)
        for p in plans:
            price = cost(p, s.array_bytes, s.flops, s.device_rates, timed=s.timed)
            busy = (price.math or 0.0, price.hbm or 0.0) if s.timed else (s.flops / p.split, float(p.count))
            paid = [part for x in p.steps if x.edge.kind != "slice" for part in parts(x, s)]
            edges = tuple((edge_key(x, s, line.phase, keep), edge_price(s, x)) for x in paid)
            out.append(Option(tuple(assumed.items()), edges, busy, s, p, plans))
        if not plans and not variables:
            raise no_plan(s)
    if not out:
        raise SizeError(f"no layout of {', '.join(variables)} allows {line} within {binary(memory_limit)} per device")
    return out
