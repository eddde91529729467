"""What a TPU pads: arrays in memory to tiles of up to 8 × 128 numbers, matrices in the matrix unit to its width.

A vector register has 8 sublanes of 128 lanes, each a word of 32 bits, and arrays lie in memory in pieces of that form. So the
last dimension in memory order is rounded up to a multiple of 128, the one before it to the rows of a tile:

| bits of a number | numbers a word | rows of a tile, when the dimension has n | written by XLA |
|---|---|---|---|
| 32 | 1 | 1, 2, 4, 8: the least that holds n, at most 8 | T(8,128) |
| 16 | 2 | 2, 4, 8 | T(8,128)(2,1) |
| 8 | 4 | 4, 8 | T(8,128)(4,1) |
| 4 | 8 | 8 | T(8,128)(8,1) |

Numbers of fewer bits share a word with their neighbours in the *next row*, so an array needs that many rows at least. An array of one
dimension is cut into pieces of 1,024 numbers, or, when it is shorter, of the least power of two that holds it, from a row of words on.

Sources: XLA, "Tiled layout" (openxla.org/xla/tiled_layout), formats 2 to 6; and the layouts that the TPU compiler libtpu 0.0.42.1 gives
the arguments of a program for v5e and TPU7x, which these rules reproduce in all of 720 cases. Not certain: inside a program the
compiler may take other tiles: 16 rows for 16 bits ("large second minor", by default from TPU7x on according to JAX's Pallas), 32 for 8.
Old compilers gave a boolean a whole word. Kernels written by hand have rules of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from scalebook.errors import HardwareError, SizeError
from scalebook.hardware import Chip, chip as chip_of
from scalebook.units import binary, digits, dtype_name, itemsize, round_up

LANES, SUBLANES, WORD_BYTES = 128, 8, 4
_XLA = {"fp32": "f32", "fp16": "f16", "fp8": "f8", "fp4": "f4", "bool": "pred"}
Order = Sequence[int] | Literal["best"] | None


class Tile(NamedTuple):
    """The piece in which an array lies in memory: rows × lanes numbers, `packing` of them to a word of 32 bits."""

    rows: int
    lanes: int
    packing: int

    def __str__(self) -> str:
        return f"T({self.rows},{self.lanes})" + (f"({self.packing},1)" if self.packing > 1 else "")


@dataclass(frozen=True)
class Padding:
    """How an array lies in a TPU's memory: its padded sizes and bytes. `minor_to_major` is the order of its dimensions, as XLA writes it."""

    shape: tuple[int, ...]
    dtype: str
    minor_to_major: tuple[int, ...]
    tile: Tile
    padded: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers alone."""
        return math.ceil(math.prod(self.shape) * itemsize(self.dtype))

    @property
    def padded_nbytes(self) -> int:
        """Bytes that it takes in memory."""
        return math.ceil(math.prod(self.padded) * itemsize(self.dtype))

    @property
    def factor(self) -> Fraction:
        """Bytes in memory per byte of data."""
        return Fraction(math.prod(self.padded), math.prod(self.shape))

    def __str__(self) -> str:
        name = _XLA.get(self.dtype, self.dtype.replace("int", "s"))
        order = ",".join(map(str, self.minor_to_major))
        sizes = f"{binary(self.nbytes)} of data, {binary(self.padded_nbytes)} in memory"
        return f"{name}[{','.join(map(str, self.shape))}]{{{order}:{self.tile}}}: {sizes}, {digits(float(self.factor))}×"


def padding(shape: Sequence[int], dtype: str = "fp32", *, minor_to_major: Order = None) -> Padding:
    """How an array of `shape` and `dtype` lies in a TPU's memory.

    >>> print(str(padding((2048, 1, 128, 128, 4), "int32")).replace("\\u00a0", " "))
    s32[2048,1,128,128,4]{4,3,2,1,0:T(8,128)}: 512 MiB of data, 16 GiB in memory, 32×

    That a dimension of 4 lies last costs 32 times the memory (github.com/jax-ml/jax/issues/7502). The compiler often may choose the
    order in memory, and takes one with the fewest bytes, "best":

    >>> padding((2048, 1, 128, 128, 4), "int32", minor_to_major="best").factor
    Fraction(1, 1)

    `minor_to_major` lists dimensions from the one that changes fastest on; by default the last one does. Raises SizeError for sizes
    below 1, for an order that is none, and for formats of 64 bits, whose layout is not known.
    """
    name, sizes = dtype_name(dtype), tuple(shape)
    if not sizes or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in sizes):
        raise SizeError(f"an array has one dimension or more, each a whole number from 1 on; found {sizes}")
    if minor_to_major == "best":
        return min((_padding(sizes, name, o) for o in _orders(len(sizes))), key=lambda p: math.prod(p.padded))
    order = tuple(range(len(sizes) - 1, -1, -1)) if minor_to_major is None else tuple(minor_to_major)
    if sorted(order) != list(range(len(sizes))):
        raise SizeError(
            f"minor_to_major={order} is no order of the dimensions of {sizes}: it has each of 0 to {len(sizes) - 1} once"
        )
    return _padding(sizes, name, order)


def padded_shape(shape: Sequence[int], dtype: str = "fp32", *, minor_to_major: Order = None) -> tuple[int, ...]:
    """The sizes in memory: last dimension to a multiple of 128, the one before to the rows of a tile.

    >>> padded_shape((100, 200)), padded_shape((1, 300)), padded_shape((1, 300), "int8")
    ((104, 256), (1, 384), (4, 384))
    """
    return padding(shape, dtype, minor_to_major=minor_to_major).padded


def padded_bytes(shape: Sequence[int], dtype: str = "fp32", *, minor_to_major: Order = None) -> int:
    """The bytes in memory, padding included.

    >>> padded_bytes((128, 64), "bf16") == 2 * 128 * 128
    True
    """
    return padding(shape, dtype, minor_to_major=minor_to_major).padded_nbytes


def matmul_padding(I: int, J: int, K: int, chip: str | Chip = "v5e", dtype: str = "bf16") -> tuple[int, int, int]:
    """The sizes that the matrix unit works on for A[I, J] · B[J, K]: J and K to its width, I to the rows of a tile.

    >>> matmul_padding(500, 64, 300), matmul_padding(500, 64, 300, "v6e")
    ((504, 128, 384), (504, 256, 512))

    A head of 64 leaves half of a 128-wide unit idle, three quarters of a 256-wide one. The compiler may swap the operands, so that I
    lies across the unit and K passes through it; that helps only where I fills it better. Raises HardwareError for a chip whose matrix
    unit is not known. Source of the widths: `chip(…).source("mxu_dim")`.
    """
    c = chip_of(chip)
    if c.mxu_dim is None:
        raise HardwareError(f"{c.name} has no known matrix-unit width: the catalogue has it for TPUs only")
    rows = _tile_rows(I, _packing(dtype_name(dtype)))
    return round_up(I, rows), round_up(J, c.mxu_dim), round_up(K, c.mxu_dim)


# ---- rules ---------------------------------------------------------------------------------------------------------------


def _packing(dtype: str) -> int:
    if itemsize(dtype) > WORD_BYTES:
        raise SizeError(
            f"{dtype} has more than the 32 bits of a TPU's word: how it lies in memory is not known; use fp32 or less"
        )
    return int(WORD_BYTES / itemsize(dtype))


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _tile_rows(n: int, packing: int) -> int:
    """The rows of a tile for a dimension of n: the least power of two that holds it, within packing and 8."""
    return min(SUBLANES, max(packing, _power_of_two(n)))


def _padding(shape: tuple[int, ...], dtype: str, order: tuple[int, ...]) -> Padding:
    packing = _packing(dtype)
    padded = list(shape)
    if len(shape) == 1:
        piece = min(LANES * SUBLANES, max(LANES * packing, _power_of_two(shape[0])))
        tile = Tile(max(1, piece // LANES), LANES, packing)
        padded[0] = round_up(shape[0], piece)
    else:
        minor, second = order[0], order[1]
        tile = Tile(_tile_rows(shape[second], packing), LANES, packing)
        padded[minor], padded[second] = round_up(shape[minor], LANES), round_up(shape[second], tile.rows)
    return Padding(shape, dtype, order, tile, tuple(padded))


def _orders(n: int) -> list[tuple[int, ...]]:
    """Orders that differ in the two fastest dimensions, the given one first; the others stay as they are."""
    if n == 1:
        return [(0,)]
    pairs = sorted(itertools.permutations(range(n), 2), key=lambda p: (p != (n - 1, n - 2), [-i for i in p]))
    return [(*p, *(i for i in range(n - 1, -1, -1) if i not in p)) for p in pairs]
