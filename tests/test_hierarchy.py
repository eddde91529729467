"""Levels of memory: every figure the catalogue's, unknown ones absent, and times by hand."""

from __future__ import annotations

import pytest

import scalebook as sb
from scalebook.errors import HardwareError
from scalebook.hierarchy import level, levels


def test_levels_of_a_v5e_by_hand() -> None:
    found = {x.key: (x.nbytes, x.bytes_per_s) for x in levels("v5e")}
    assert found == {
        "vreg": (None, None),
        "vmem": (128 * 2**20, 17.8e12),
        "hbm": (16 * 2**30, 819e9),
        "ici": (256 * 16 * 2**30, 4 * 50e9 * 0.9),
        "host": (512 * 2**30 / 8, 16e9),
        "dcn": (None, 3.125e9 * 0.8),
    }


def test_registers_where_their_number_is_known() -> None:
    assert level("v5p", "vreg").nbytes == 64 * 2 * 8 * 128 * 4
    assert level("v4", "vreg").nbytes == 32 * 2 * 8 * 128 * 4


def test_times() -> None:
    assert level("v5e", "hbm").seconds(819e6) == pytest.approx(1e-3)
    assert level("v5e", "ici").seconds(180e6) == pytest.approx(1e-3 + 1e-6)
    assert level("v2", "ici").seconds(1) is None
    assert level("v5p", "vmem").seconds(1) is None


def test_each_level_is_slower_than_the_one_before_where_both_are_known() -> None:
    for chip in (c for c in sb.chips() if c.kind == "tpu"):
        rates = [x.bytes_per_s for x in levels(chip) if x.bytes_per_s is not None]
        assert rates == sorted(rates, reverse=True), chip.key


def test_errors() -> None:
    with pytest.raises(HardwareError, match="is a GPU"):
        levels("h100")
    with pytest.raises(HardwareError, match="did you mean 'hbm'"):
        level("v5e", "hbn")
