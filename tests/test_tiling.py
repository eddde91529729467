"""What a TPU pads: against the TPU compiler's own layouts, published out-of-memory messages, and XLA's formula for places."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from scalebook.errors import HardwareError, SizeError
from scalebook.tiling import Padding, matmul_padding, padded_bytes, padded_shape, padding
from scalebook.units import itemsize

DATA = Path(__file__).parent / "data"
COMPILED: list[list[Any]] = json.loads((DATA / "compiler_layouts.json").read_text("utf-8"))["rows"]
CASES: list[dict[str, Any]] = json.loads((DATA / "padding_cases.json").read_text("utf-8"))


def order_of(layout: str) -> tuple[int, ...]:
    return tuple(int(n) for n in layout.split(":")[0].split(","))


def test_bytes_and_tiles_of_the_tpu_compiler() -> None:
    assert len(COMPILED) == 360
    assert {row[0] for row in COMPILED} == {"fp32", "bf16", "int8", "fp8", "int4", "bool"}
    for dtype, shape, layout, nbytes in COMPILED:
        ours = padding(shape, dtype, minor_to_major=order_of(layout))
        assert 512 * math.ceil(ours.padded_nbytes / 512) == nbytes, (dtype, shape, layout)
        tile = layout.split(":")[1].removesuffix("E(4)")
        if len(shape) == 1:
            assert tile.startswith(f"T({ours.tile.rows * ours.tile.lanes})"), (dtype, shape, layout)
        if len(shape) > 1 and not tile.startswith(("T(32,", "T(64,")):  # taller tiles, only where the dimension is their multiple
            assert str(ours.tile) == tile, (dtype, shape, layout)


def test_the_compiler_takes_an_order_with_the_fewest_bytes() -> None:
    better = 0
    for dtype, shape, layout, nbytes in COMPILED:
        best = padding(shape, dtype, minor_to_major="best")
        assert 512 * math.ceil(best.padded_nbytes / 512) == nbytes, (dtype, shape, layout)
        better += best.padded_nbytes < padded_bytes(shape, dtype)
    assert better > 50  # so the order given is often not the best


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_published_cases(case: dict[str, Any]) -> None:
    ours = padding(case["shape"], case["dtype"], minor_to_major=case["minor_to_major"])
    assert ours.nbytes == case["bytes"]
    assert ours.padded_nbytes == case["padded_bytes"]
    assert ours.factor == case["factor"]


def places(p: Padding) -> list[int]:
    """Where each number lies, by XLA's linear_index_with_tile, in numbers (one level of tiling; packing only permutes in a tile)."""
    major_first = tuple(reversed(p.minor_to_major))
    sizes = [p.shape[i] for i in major_first]
    tile = [*([1] * (len(sizes) - 2)), p.tile.rows, p.tile.lanes]
    found = []
    for e in itertools.product(*map(range, sizes)):
        combined = [(i // t, -(-n // t)) for i, n, t in zip(e, sizes, tile, strict=True)]
        combined += [(i % t, t) for i, t in zip(e, tile, strict=True)]
        index = 0
        for i, n in combined:
            index = index * n + i
        found.append(index)
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 20), min_size=2, max_size=3),
    st.sampled_from(["fp32", "bf16", "int8", "int4"]),
    st.randoms(use_true_random=False),
)
def test_every_number_has_a_place_of_its_own_within_the_padded_bytes(shape: list[int], dtype: str, random: Any) -> None:
    order = list(range(len(shape)))
    random.shuffle(order)
    p = padding(shape, dtype, minor_to_major=order)
    where = places(p)
    assert len(set(where)) == math.prod(shape)
    assert max(where) < p.padded_nbytes / itemsize(dtype)
    assert p.padded_nbytes % 512 == 0 or p.tile.rows * p.tile.lanes * itemsize(dtype) < 512


def test_by_hand() -> None:
    assert padded_shape((100, 200)) == (104, 256)
    assert padded_shape((3, 300), "bf16") == (4, 384)
    assert padded_shape((2, 128), "fp8") == (4, 128)
    assert padded_shape((7, 1, 64)) == (7, 1, 128)
    assert padded_shape((1025,)) == (2048,)
    assert padding((128, 64), "bf16").factor == 2
    assert padding((128, 128), "bf16").factor == 1
    assert padding((1024, 4), minor_to_major="best").minor_to_major == (0, 1)
    assert padding((8, 4), minor_to_major=(0, 1)).factor == Fraction(128, 8)


def test_the_matrix_unit_pads_both_dimensions_of_the_weights() -> None:
    assert matmul_padding(512, 64, 8192) == (512, 128, 8192)
    assert matmul_padding(512, 64, 8192, "v6e") == (512, 256, 8192)
    assert matmul_padding(1, 300, 300, "v5p", "fp32") == (1, 384, 384)
    assert matmul_padding(1, 128, 128, "v5p", "int8")[0] == 4
    with pytest.raises(HardwareError, match="H100"):
        matmul_padding(8, 8, 8, "h100")


@pytest.mark.parametrize(
    ("shape", "options", "words"),
    [
        ((), {}, "one dimension or more"),
        ((0, 3), {}, "whole number from 1 on"),
        ((2, 3), {"minor_to_major": (0, 0)}, "no order of the dimensions"),
        ((2, 3), {"dtype": "fp64"}, "32 bits"),
    ],
)
def test_errors_say_what_is_wrong(shape: tuple[int, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(SizeError, match=words):
        padding(shape, **options)


def test_cycles_that_the_compiler_expects_follow_the_padded_width() -> None:
    """Exactly in whole tiles (within 3 %), on a v6e everywhere within 8 %; a v5e does better at half tiles, never worse."""
    data = json.loads((DATA / "compiler_cycles.json").read_text("utf-8"))["cycles"]
    assert set(data) == {"v5e", "v6e"}
    for chip, by_k in data.items():
        for k, n in by_k.items():
            K, dim = int(k), {"v5e": 128, "v6e": 256}[chip]
            ratio = (n / by_k["1792"]) / (matmul_padding(8192, 8192, K, chip)[2] / 1792)
            assert (0.97 if K % dim == 0 else 0.92) < ratio < (1.03 if K % dim == 0 or chip == "v5e" else 1.08), (chip, K, ratio)
