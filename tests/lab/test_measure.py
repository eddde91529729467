"""Measured rooflines: the arithmetic of a point, sane rates on whatever machine this is, and a matmul under its roof."""

import time

import pytest

from scalebook import Work, lab, matmul_work
from scalebook.errors import ScalebookError, SizeError


@pytest.fixture(scope="module")
def machine():
    return lab.measure_machine(matmuls=(128, 512), streams=(2**16, 2**25))


def test_rates_are_those_of_a_computer(machine):
    assert 1e8 < machine.flops_per_s < 1e16 and 1e8 < machine.hbm_bytes_per_s < 1e14
    assert 0 < machine.overhead_seconds < 0.1
    assert machine.ridge == machine.flops_per_s / machine.hbm_bytes_per_s
    assert machine.flops_per_s == max(p.flops_per_s for p in machine.points if p.name.startswith("matmul"))
    assert machine.hbm_bytes_per_s == next(p.bytes_per_s for p in machine.points if p.name.startswith("stream 33.6"))
    assert len(machine.points) == 4 and machine.device.startswith("cpu with ") and machine.dtype == "fp32"


def test_the_roof(machine):
    assert machine.attainable(machine.ridge * 100) == machine.flops_per_s
    assert machine.attainable(0.5) == pytest.approx(0.5 * machine.hbm_bytes_per_s)
    assert machine.predict(Work({"math": machine.flops_per_s, "hbm": 0})).lower == pytest.approx(1)
    assert machine.predict(matmul_work(4096, 4096, 4096, a="fp32", b="fp32", out="fp32")).bound_by == "math"


def test_a_point_counts_work_by_hand_and_time_by_the_clock():
    began = time.perf_counter()
    p = lab.measure_matmul(256, 512, 128)
    spent = time.perf_counter() - began
    assert (p.flops, p.bytes) == (2 * 256 * 512 * 128, 4 * (256 * 512 + 512 * 128 + 256 * 128))
    assert 0 < p.fastest <= p.seconds <= p.slowest and 8 * p.fastest < spent
    assert lab.measure_matmul(8, 16, 4, "int8").bytes == 8 * 16 + 16 * 4 + 4 * 8 * 4
    assert lab.measure_matmul(8, 16, 4, "bf16").bytes == 2 * (8 * 16 + 16 * 4 + 8 * 4)


def test_explain_says_that_it_was_measured(machine):
    text = machine.explain().replace("\u00a0", " ")
    assert text.startswith("measured on cpu") and "FLOPs/s (fp32 matmul)" in text and "matmul 512×512×512" in text


def test_what_cannot_be_timed():
    with pytest.raises(SizeError, match=r"whole sizes of at least 1; found \{'J': 0\} in I=8, J=0, K=4"):
        lab.measure_matmul(8, 0, 4)
    with pytest.raises(ScalebookError, match="unknown dtype to time a matmul in 'fp4'"):
        lab.measure_matmul(8, 8, 8, "fp4")
