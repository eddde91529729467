"""Reading an einsum with its sizes, mesh, dtypes and memory, and refusing what cannot be: everything that is asked of a product."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

from scalebook.errors import HardwareError, MeshError, SizeError, shown, unknown
from scalebook.graph import PriceList, layout_count
from scalebook.layouts import Mesh, Sharding, check_sizes, mesh_of, parse_einsum
from scalebook.plans import Plan, Product, Step, reduced
from scalebook.roofline import rates
from scalebook.units import dtype_name, is_array, itemsize, minimum, plural

Triple = tuple[Any, Any, Any]
MOST_LAYOUTS = {False: 12_000, True: 6_000}  # of one array, where moves are counted in bytes or timed: some ten seconds
MOST_SIZE = 10**15  # of a dimension


def whole(x: Fraction | float) -> int | float:
    """An int where the number is one."""
    return int(x) if x == int(x) else float(x)


@dataclass(frozen=True)
class Setting:
    """An einsum that was read and checked. `arrays`, `dtypes` and the bytes are those of A, B and C, in this order.

    `mesh` is the one in whose axes moves are written: the factored one if sub-axes were asked for, `given` is then the reader's.
    """

    spec: str
    arrays: tuple[Sharding, Sharding, Sharding]
    sizes: Mapping[str, int]
    mesh: Mesh
    given: Mesh
    dtypes: tuple[str, str, str]
    product: Product
    memory_limit: float | None = None
    options: tuple[bool, bool] = (False, False)  # sub_axes, idle_axes

    @cached_property
    def array_bytes(self) -> tuple[int | float, int | float, int | float]:
        """Bytes of the whole arrays."""
        return array_bytes(self.arrays, self.dtypes, self.sizes)

    @cached_property
    def flops(self) -> int:
        """FLOPs of the whole product."""
        return int(flops(self.arrays, self.sizes))

    @cached_property
    def device_rates(self) -> dict[str, float | None]:
        """FLOPs/s and HBM bytes/s of one device; None where there is no topology or no known figure.

        The matrix unit multiplies in the wider dtype of the two operands: int8 weights with bf16 activations run at the bf16 rate.
        Of two equally wide ones, such as int8 and fp8, the slower rate counts, whichever operand comes first.
        """
        topology = self.given.topology
        if topology is None:
            return {"math": None, "hbm": None}
        chip, wide = topology.chip, max(map(itemsize, self.dtypes[:2]))
        math_rates: list[float] = []
        for dtype in {dt for dt in self.dtypes[:2] if itemsize(dt) == wide}:
            try:
                math_rates += [r for r in (rates(chip, dtype, per="device")["math"],) if r is not None]
            except HardwareError:
                continue
        hbm = chip.hbm_bytes_per_s
        return {
            "math": min(math_rates, default=None),
            "hbm": None if hbm is None else hbm / (chip.devices_per_chip or 1),
        }

    @cached_property
    def price(self) -> PriceList | None:
        """The prices in seconds of the machine's links, those of unknown rate left open; None without a machine."""
        return None if self.mesh.topology is None else PriceList(self.mesh)

    def seconds(self, plan: Plan, nbytes: Triple) -> Any:
        """Seconds of a plan's moves one after the other, numbers or arrays; None if one of them is over a link of unknown rate."""
        if self.price is None:
            return None
        total: Any = 0.0
        for step in plan.steps:
            held = nbytes[step.array] * step.edge.group
            offers = self.price.of(step.edge.kind, step.edge.axes)
            if any(rate is None for rate, _, _ in offers):
                return None
            total = total + minimum(*((rate or 0.0) * held + fixed for rate, fixed, _ in offers))
        return total

    def again(self, spec: str, arrays: tuple[Sharding, Sharding, Sharding], dtypes: tuple[str, str, str]) -> Setting:
        """Another product of the same sizes on the same mesh, under the same options."""
        idle, limit = self.options[1], self.memory_limit
        new = setting(spec, arrays, self.sizes, self.mesh, dtypes, idle_axes=idle, memory_limit=limit)
        return replace(new, given=self.given, options=self.options)

    @property
    def timed(self) -> bool:
        """Whether moves are priced in seconds."""
        return self.product.price.mesh is not None


def offer(price: PriceList, step: Step, nbytes: Any) -> tuple[float | None, float]:
    """Seconds per byte of the group's array and fixed seconds of a move: of the algorithm it was given, or the cheapest at this size."""
    offers = price.of(step.edge.kind, step.edge.axes)
    group = float(nbytes) * step.edge.group
    named = [(rate, fixed) for rate, fixed, name in offers if name == step.algorithm]
    return named[0] if named else min(((r, f) for r, f, _ in offers), key=lambda o: (o[0] or 0.0) * group + o[1])


def flops(arrays: tuple[Sharding, Sharding, Sharding], sizes: Mapping[str, Any]) -> Any:
    """2 × the product of all sizes where a letter is summed (multiply and add), 1 × where none is; numbers or arrays."""
    A, B, C = (s.letters for s in arrays)
    letters = dict.fromkeys(A + B)
    return (1 if set(letters) <= set(C) else 2) * math.prod(sizes[d] for d in letters)


def array_bytes(arrays: tuple[Sharding, Sharding, Sharding], dtypes: tuple[str, str, str], sizes: Mapping[str, Any]) -> Triple:
    """Bytes of A, B and C, whole: the product of the sizes × the bytes of one number; numbers or arrays."""
    a, b, c = (math.prod(sizes[d] for d in s.letters) * itemsize(dt) for s, dt in zip(arrays, dtypes, strict=True))
    return a, b, c


def read(
    spec: str,
    sizes: Mapping[str, Any],
    mesh: Mesh | Mapping[str, int] | None,
    dtype: str | Mapping[str, str],
    *,
    sub_axes: bool,
    idle_axes: bool,
    memory_limit: float | None,
    most: Mapping[bool, int] = MOST_LAYOUTS,
) -> Setting:
    """Read an einsum and check it against its sizes and its mesh; `most` as of `check_layouts`."""
    given = mesh_of({} if mesh is None else mesh)
    arrays = parse_einsum(spec, given)
    check_huge(sizes)
    check_sizes(arrays, sizes, given)
    known = {d: int(sizes[d]) for s in arrays for d in s.letters if single(d, sizes[d])}
    return setting(spec, arrays, known, given, read_dtypes(arrays, dtype), sub_axes, idle_axes, memory_limit, most)


def check_huge(sizes: Any) -> None:
    """Raises SizeError for sizes above 10^15, beyond which nothing real lies and numbers could no longer be printed or stored."""
    if not isinstance(sizes, Mapping):
        return
    huge = []
    for d, n in sizes.items():
        most = n.max() if is_array(n) and n.dtype.kind in "iu" and n.size else n
        if isinstance(most, Integral) and int(most) > MOST_SIZE:
            huge.append(f"{d}: {shown(int(most))}")
    if huge:
        raise SizeError(f"sizes are whole numbers up to 10^15; found {', '.join(huge)}")


def single(letter: str, size: Any) -> bool:
    """Whether a size is one number; SizeError for an array of them."""
    if getattr(size, "ndim", 0):
        raise SizeError(
            f"{letter} is an array of {size.size} sizes; an einsum has one per dimension: use einsum(…).sweep({{{letter!r}: …}})"
        )
    return True


def setting(
    spec: str,
    arrays: tuple[Sharding, Sharding, Sharding],
    known: Mapping[str, int],
    given: Mesh,
    dtypes: tuple[str, str, str],
    sub_axes: bool = False,
    idle_axes: bool = False,
    memory_limit: float | None = None,
    most: Mapping[bool, int] = MOST_LAYOUTS,
) -> Setting:
    """What the search needs of an einsum whose pieces have been checked."""
    inner = given
    if sub_axes:
        A, B, C = arrays
        inner, arrays = given.factored(), (A.factored(given), B.factored(given), C.factored(given))
    layouts = tuple(s.layout(inner) for s in arrays)
    named = {a for lay in layouts for d in (*lay.dims, lay.pending) for a in d}
    axes = tuple((a, inner[a]) for a in inner.axis_names if inner[a] > 1 and (idle_axes or a in named))
    price = PriceList(inner if priced_in_seconds(inner, axes) else None)
    product = Product(
        letters=(arrays[0].letters, arrays[1].letters, arrays[2].letters),
        layouts=(layouts[0], layouts[1], layouts[2]),
        limits=limits(arrays, known, axes),
        axes=axes,
        price=price,
        need=needed_blocks(array_bytes(arrays, dtypes, known), memory_limit),
    )
    for s, own in zip(arrays, reduced(product)[0].letters, strict=True):
        check_layouts(s, len(own), axes, timed=price.mesh is not None, sub_axes=sub_axes, most=most)
    return Setting(
        spec, arrays, MappingProxyType(dict(known)), inner, given, dtypes, product, memory_limit, (sub_axes, idle_axes)
    )


def check_layouts(
    s: Sharding,
    dims: int,
    axes: tuple[tuple[str, int], ...],
    *,
    timed: bool = False,
    sub_axes: bool = False,
    most: Mapping[bool, int] = MOST_LAYOUTS,
) -> None:
    """Raises MeshError when an array, with so many dimensions that can be split, has more layouts than the search covers.

    It covers `most[timed]`: who cannot wait for ten seconds gives less.
    """
    layouts = layout_count(dims, len(axes))
    if layouts <= most[timed]:
        return
    what = "sub-axes of prime size" if sub_axes else "mesh axes larger than 1"
    first, size = "".join(a for a, _ in axes[:2]), math.prod(n for _, n in axes[:2])
    raise MeshError(
        f"{s.array} has {layouts:,} layouts: {plural(dims, 'dimension')} that can be split, on {len(axes)} {what} "
        f"({', '.join(f'{a}={n}' for a, n in axes)}). The search covers up to {most[timed]:,}"
        f"{' on a machine' if timed else ''}: {'leave sub_axes out, or join' if sub_axes else 'join'} axes that are always "
        f"used together into one, such as {first} into one axis of {size}"
    )


def limits(
    arrays: tuple[Sharding, ...], sizes: Mapping[str, int], axes: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """gcd(size, devices) of each letter: all that the search needs to know of the sizes."""
    devices = math.prod(n for _, n in axes)
    return tuple((d, math.gcd(sizes[d], devices)) for d in sorted({d for s in arrays for d in s.letters}))


def needed_blocks(nbytes: Triple, memory_limit: float | None) -> tuple[int, int, int]:
    """The least number of different blocks of A, B and C with which a block fits in the memory."""
    if memory_limit is None:
        return (1, 1, 1)
    if not isinstance(memory_limit, Real) or isinstance(memory_limit, bool) or not memory_limit > 0:
        raise SizeError(f"memory_limit is bytes per device, one number above 0; found {shown(memory_limit)}")
    if memory_limit == math.inf:
        return (1, 1, 1)
    exact = Fraction(int(memory_limit) if isinstance(memory_limit, Integral) else float(memory_limit))
    a, b, c = (max(1, math.ceil(Fraction(n) / exact)) for n in nbytes)
    return a, b, c


def priced_in_seconds(mesh: Mesh, axes: tuple[tuple[str, int], ...]) -> bool:
    """Whether the mesh lies on a machine whose links under these axes all have a known rate."""
    if mesh.topology is None:
        return False
    return all(s.bytes_per_s is not None for a, _ in axes for s in mesh.segments(a))


def read_dtypes(arrays: tuple[Sharding, Sharding, Sharding], dtype: str | Mapping[str, str]) -> tuple[str, str, str]:
    """The dtype of A, B and C: one for all, or one per array name; arrays that are not named are bf16."""
    if not isinstance(dtype, Mapping):
        name = dtype_name(dtype)
        return name, name, name
    names = [s.array for s in arrays]
    for asked in dtype:
        if asked not in names:
            raise unknown("array in dtype", asked, names)
    a, b, c = (dtype_name(dtype.get(n, "bf16")) for n in names)
    return a, b, c
