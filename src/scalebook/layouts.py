"""Which dimension of an array is split over which axis of the mesh: `A[I_X, J_YZ]{U_W}` as data, and what each device holds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from scalebook.errors import NotationError, SizeError, shown
from scalebook.grammar import Term
from scalebook.meshes import Mesh, mesh
from scalebook.notation import read_array, read_product, subscript
from scalebook.units import as_number, is_array, nbytes, widened
from scalebook.wiring import Segment

__all__ = ["Layout", "Mesh", "Segment", "Sharding", "check_sizes", "mesh", "mesh_of", "parse_einsum", "sharding"]

mesh_of = mesh  # for functions that have an argument called `mesh`


class Layout(NamedTuple):
    """Where an array is: mesh axes of each dimension, major to minor, and the axes over which a sum is pending.

    Axes of size 1 are left out and `pending` is sorted, so layouts are equal exactly when every device holds the same.
    """

    dims: tuple[tuple[str, ...], ...]
    pending: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sharding:
    """An array in the notation: name, dimensions, and the mesh axes that split each, major to minor, as written.

    With I = 8, J = 6 on a mesh X = 4, Y = 2, each of the 8 devices of `A[I_X, J_Y]` holds a block of 2 × 3:

    >>> s = sharding("A[I_X, J_Y]")
    >>> s.local_shape({"I": 8, "J": 6}, {"X": 4, "Y": 2})
    (2, 3)
    """

    array: str
    letters: tuple[str, ...]
    dims: tuple[tuple[str, ...], ...]
    pending: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.array, str) and _names_only((self.letters, self.pending)) and _names_only(self.dims)):
            given = ", ".join(shown(part, 30) for part in (self.array, self.letters, self.dims, self.pending))
            rule = "Sharding(name, letters, the axes of each letter, pending axes), such as Sharding('A', ('I',), (('X',),), ())"
            raise NotationError(f"Sharding({given}) is not {rule}; sharding('A[I_X]') makes it from text")
        used = [a for d in (*self.dims, self.pending) for a in d]
        if len(self.letters) != len(self.dims):
            raise NotationError(
                f"{self.array} has {len(self.letters)} dimensions {self.letters} and {len(self.dims)} splits {self.dims}"
            )
        if len(set(used)) < len(used) or len(set(self.letters)) < len(self.letters):
            raise NotationError(f"{self} names a dimension or a mesh axis twice: each has one place in an array")

    def __str__(self) -> str:
        inner = ", ".join(letter + subscript(axes) for letter, axes in zip(self.letters, self.dims, strict=False))
        return f"{self.array}[{inner}]" + (f"{{U{subscript(self.pending)}}}" if self.pending else "")

    # ---- on a mesh ------------------------------------------------------------------------------------------------------

    def bind(self, mesh: Mesh | Mapping[str, int]) -> Sharding:
        """The same with the axes of the mesh: `xy` becomes x and y where the mesh has these, `XY` one axis where it has that.

        Raises NotationError for an axis that the mesh does not have.

        >>> sharding("A[I_xy]").bind({"x": 2, "y": 2}).dims
        (('x', 'y'),)
        """
        names = mesh_of(mesh).axis_names
        if all(a in names for d in (*self.dims, self.pending) for a in d):
            return self
        return sharding(str(self), mesh)

    def layout(self, mesh: Mesh | Mapping[str, int]) -> Layout:
        """The layout on a mesh: axes of size 1 left out.

        >>> sharding("A[I_XY, J]{U_Z}").layout({"X": 4, "Y": 1, "Z": 2})
        Layout(dims=(('X',), ()), pending=('Z',))
        """
        mesh = mesh_of(mesh)
        bound = self.bind(mesh)
        keep = [tuple(a for a in d if mesh[a] > 1) for d in (*bound.dims, bound.pending)]
        return Layout(tuple(keep[:-1]), tuple(sorted(keep[-1])))

    def at(self, layout: Layout) -> Sharding:
        """The same array in another layout.

        >>> str(sharding("A[I_X, J]").at(Layout(((), ("X", "Y")))))
        'A[I, J_XY]'
        """
        if not isinstance(layout, Layout):
            how = "a Layout, such as Layout((('X',), ())), or what .layout(mesh) of a Sharding gives"
            raise NotationError(f"{self} can be had at {how}; found {shown(layout)}")
        return Sharding(self.array, self.letters, layout.dims, layout.pending)

    def factored(self, mesh: Mesh | Mapping[str, int]) -> Sharding:
        """The same on `mesh.factored()`: each axis replaced by its sub-axes of prime size.

        >>> str(sharding("A[I_X, J]").factored({"X": 4}))
        'A[I_X0X1, J]'
        """
        mesh = mesh_of(mesh)
        bound = self.bind(mesh)
        dims = [tuple(p for a in d for p in mesh.sub_axes(a)) for d in (*bound.dims, bound.pending)]
        return Sharding(self.array, self.letters, tuple(dims[:-1]), dims[-1])

    def shards(self, mesh: Mesh | Mapping[str, int]) -> int:
        """Number of different blocks: the product of the sizes of the axes that split dimensions.

        >>> sharding("A[I_X, J]").shards({"X": 4, "Y": 2})
        4
        """
        mesh = mesh_of(mesh)
        return mesh.size(tuple(a for d in self.bind(mesh).dims for a in d))

    def summands(self, mesh: Mesh | Mapping[str, int]) -> int:
        """Number of partial sums of each block: the product of the sizes of the pending axes.

        >>> sharding("A[I_X, J]{U_Y}").summands({"X": 4, "Y": 2})
        2
        """
        mesh = mesh_of(mesh)
        return mesh.size(self.bind(mesh).pending)

    def replicas(self, mesh: Mesh | Mapping[str, int]) -> int:
        """Number of devices that hold the same: devices ÷ (shards · summands).

        >>> sharding("A[I_X, J]").replicas({"X": 4, "Y": 2})
        2
        """
        mesh = mesh_of(mesh)
        return mesh.devices // (self.shards(mesh) * self.summands(mesh))

    # ---- with sizes -----------------------------------------------------------------------------------------------------

    def shape(self, sizes: Mapping[str, Any]) -> tuple[Any, ...]:
        """The whole array's shape; SizeError when a size is missing or not a positive whole number.

        >>> sharding("A[I_X, J]").shape({"I": 8, "J": 6})
        (8, 6)
        """
        check_sizes((self,), sizes)
        return tuple(as_number(sizes[letter]) for letter in self.letters)

    def local_shape(self, sizes: Mapping[str, Any], mesh: Mesh | Mapping[str, int]) -> tuple[Any, ...]:
        """The shape of one device's block: each dimension divided by the product of its axes' sizes.

        Sizes are whole numbers or NumPy arrays of them (below 2**63). Raises SizeError naming every dimension that does not divide.

        >>> sharding("A[I_XY, J]").local_shape({"I": 16, "J": 6}, {"X": 4, "Y": 2})
        (2, 6)
        """
        mesh = mesh_of(mesh)
        bound = self.bind(mesh)
        check_sizes((bound,), sizes, mesh)
        whole = {letter: as_number(sizes[letter]) for letter in bound.letters}
        return tuple(whole[letter] // mesh.size(axes) for letter, axes in zip(bound.letters, bound.dims, strict=True))

    def bytes_per_device(self, sizes: Mapping[str, Any], mesh: Mesh | Mapping[str, int], dtype: str = "bf16") -> Any:
        """Bytes of one device's block: numbers in it × bytes each. A pending sum is a whole block on each device.

        Exact for whole numbers of any size; for NumPy arrays whose product may pass 2**63, float64 (`units.widened`).

        >>> sharding("A[I_X, J]").bytes_per_device({"I": 8192, "J": 1024}, {"X": 4})
        4194304
        """
        return nbytes(math.prod(widened(*self.local_shape(sizes, mesh))), dtype)

    def slices(
        self, sizes: Mapping[str, int], mesh: Mesh | Mapping[str, int]
    ) -> dict[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Which block each device holds: its coordinates in the mesh → (start, stop) for each dimension.

        Blocks are numbered with the first axis of a subscript slowest (major), as in jax.

        >>> sharding("A[I_X, J]").slices({"I": 8, "J": 6}, {"X": 2, "Y": 2})[1, 0]
        ((4, 8), (0, 6))
        """
        mesh = mesh_of(mesh)
        bound, local = self.bind(mesh), self.local_shape(sizes, mesh)
        held = {}
        for coordinates in mesh.coordinates():
            at = dict(zip(mesh.axis_names, coordinates, strict=True))
            block = []
            for axes, n in zip(bound.dims, local, strict=True):
                index = 0
                for a in axes:
                    index = index * mesh[a] + at[a]
                block.append((index * n, (index + 1) * n))
            held[coordinates] = tuple(block)
        return held

    # ---- for jax --------------------------------------------------------------------------------------------------------

    def spec(self) -> tuple[str | tuple[str, ...] | None, ...]:
        """jax's PartitionSpec as plain data, one entry a dimension; `unreduced` is its keyword of the same name.

        >>> sharding("A[I_X, J, K_YZ]").spec()
        ('X', None, ('Y', 'Z'))
        """
        return tuple(None if not d else d[0] if len(d) == 1 else d for d in self.dims)

    @property
    def unreduced(self) -> frozenset[str]:
        """The axes of the pending sum, as jax's PartitionSpec(…, unreduced=…) takes them."""
        return frozenset(self.pending)


# ---- from text ----------------------------------------------------------------------------------------------------------


def _sharding(term: Term) -> Sharding:
    return Sharding(
        term.array.text,
        tuple(p.text for p in term.letters),
        tuple(tuple(a.text for a in d) for d in term.dims),
        tuple(a.text for a in term.pending),
    )


@lru_cache(4096)
def _read(text: str, known: tuple[str, ...] | None) -> Sharding:
    return _sharding(read_array(text, known))


def _names(mesh: Mesh | Mapping[str, int] | None) -> tuple[str, ...] | None:
    return None if mesh is None else mesh_of(mesh).axis_names


def sharding(text: str | Sharding, mesh: Mesh | Mapping[str, int] | None = None) -> Sharding:
    """One array in the notation; with a mesh, every subscript must name its axes.

    Raises NotationError with the offending piece and its position.

    >>> s = sharding("A[I_X, J_YZ]{U_W}")
    >>> s.letters, s.dims, s.pending, str(s)
    (('I', 'J'), (('X',), ('Y', 'Z')), ('W',), 'A[I_X, J_YZ]{U_W}')
    """
    if isinstance(text, Sharding):
        return text if mesh is None else text.bind(mesh)
    if not isinstance(text, str):
        raise NotationError(f"a sharding is text such as 'A[I_X, J]'; found {shown(text)} of type {type(text).__name__}")
    return _read(text, _names(mesh))


def parse_einsum(spec: str, mesh: Mesh | Mapping[str, int] | None = None) -> tuple[Sharding, Sharding, Sharding]:
    """The two operands and the result of a product in the notation.

    Raises NotationError with the offending piece and its position.

    >>> [str(s) for s in parse_einsum("A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]")]
    ['A[I_X, J]', 'B[J, K_Y]', 'C[I_X, K_Y]']
    """
    if not isinstance(spec, str):
        raise NotationError(
            f"a product is text such as 'A[I, J] * B[J, K] -> C[I, K]'; found {shown(spec)} of type {type(spec).__name__}"
        )
    a, b, c = read_product(spec, _names(mesh))
    return _sharding(a), _sharding(b), _sharding(c)


# ---- sizes --------------------------------------------------------------------------------------------------------------


def _fault(letter: str, size: Any) -> str | None:
    """What is wrong with a size, if anything."""
    number = as_number(size)
    if is_array(size) and getattr(size.dtype, "kind", "") == "u" and number.dtype.kind == "f":
        return f"{letter}={int(size.max())} is too large: sizes in an array are below 2**63"
    if number is None or not (number.dtype.kind == "i" if is_array(number) else isinstance(number, int)):
        return f"{letter}={shown(size)} is not a whole number"
    lowest = (int(number.min()) if number.size else 1) if is_array(number) else number
    return None if lowest > 0 else f"{letter}={shown(lowest)} is not positive"


def _names_only(groups: Any) -> bool:
    """Whether this is a tuple of tuples of text."""
    return isinstance(groups, tuple) and all(isinstance(g, tuple) and all(isinstance(x, str) for x in g) for g in groups)


def check_sizes(shardings: Iterable[Sharding], sizes: Mapping[str, Any], mesh: Mesh | Mapping[str, int] | None = None) -> None:
    """Raises SizeError naming all that is wrong: sizes missing, not positive whole numbers, or not multiples of their devices.

    >>> check_sizes([sharding("A[I_X]")], {"I": 10}, {"X": 4})
    Traceback (most recent call last):
    scalebook.errors.SizeError: [I_X] cannot split I=10 over X=4 devices: 10 is not a multiple of 4. Mesh: {'X': 4}, shape: (10,)
    """
    given = tuple(shardings)
    if not isinstance(sizes, Mapping):
        raise SizeError(f"sizes are a mapping from dimensions to whole numbers, such as {{'I': 8192}}; found {shown(sizes)}")
    letters = list(dict.fromkeys(letter for s in given for letter in s.letters))
    missing = [letter for letter in letters if letter not in sizes]
    faults = {letter: f for letter in letters if letter in sizes and (f := _fault(letter, sizes[letter]))}
    wrong = [f"no size is given for {', '.join(missing)}"] * bool(missing) + list(faults.values())
    grid = mesh_of({} if mesh is None else mesh)
    for s in () if mesh is None else given:
        bound = s.bind(grid)
        for letter, axes in zip(bound.letters, bound.dims, strict=True):
            n = None if letter in missing or letter in faults else _uneven(as_number(sizes[letter]), grid.size(axes))
            if n is not None:
                uneven = shown(n)
                over = " × ".join(f"{a}={grid[a]}" for a in axes) + (f" = {grid.size(axes)}" if len(axes) > 1 else "")
                rule = f"{uneven} is not a multiple of {grid.size(axes)}"
                wrong.append(f"[{letter}{subscript(axes)}] cannot split {letter}={uneven} over {over} devices: {rule}")
    if not wrong:
        return
    on = "" if mesh is None else f"Mesh: {dict(grid.shape)}, "
    if missing or faults:
        on = f"Each size of {', '.join(map(str, given))} is a positive whole number. {on}"
    if len(given) == 1 and not missing:
        text = ", ".join(_size(sizes[x]) for x in letters)
        whole = f"shape: ({text}{',' * (len(letters) == 1)})"
    else:
        whole = f"sizes: {{{', '.join(f'{shown(x)}: {_size(n)}' for x, n in itertools.islice(sizes.items(), 30))}}}"
    raise SizeError(f"{'; '.join(dict.fromkeys(wrong))}. {on}{whole}")


def _size(n: Any) -> str:
    """A size as a message shows it: NumPy's scalars as plain numbers."""
    return shown(n if is_array(n) or (plain := as_number(n)) is None else plain)


def _uneven(n: Any, k: int) -> Any:
    """The size that k devices cannot split, or None; of a NumPy array the first one."""
    if not is_array(n):
        return n if n % k else None
    uneven = n if k >= 2**63 else n[n % k != 0]
    return int(uneven.flat[0]) if uneven.size else None
