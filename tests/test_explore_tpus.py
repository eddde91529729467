"""Views of the figures on TPUs: what they say, against numbers by hand, and that every state is plain data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scalebook import explore, figures
from scalebook.errors import HardwareError, ScalebookError, SizeError


def test_a_systolic_array_in_its_telling_cycles() -> None:
    view = explore.systolic(8, 4)
    assert view["total"] == 18
    assert view["useful"] == pytest.approx(8 * 16 / (18 * 16))
    by_cycle = {p["cycle"]: p for p in view["panels"]}
    assert sorted(by_cycle) == [2, 4, 6, 10, 14, 17]
    assert by_cycle[10]["phase"] == "all at work"
    assert [[c["row"] for c in line] for line in by_cycle[6]["cells"]] == [
        [2, 1, 0, None], [1, 0, None, None], [0, None, None, None], [None] * 4
    ]  # fmt: skip
    assert [(o["row"], o["column"]) for o in by_cycle[10]["outputs"]] == [(3, 0), (2, 1), (1, 2), (0, 3)]
    assert view["busy"] == [0, 0, 0, 0, 1, 3, 6, 10, 13, 15, 16, 16, 15, 13, 10, 6, 3, 1]


def test_one_cycle_for_a_stepper() -> None:
    for n in range(18):
        (panel,) = explore.systolic(8, 4, cycle=n)["panels"]
        assert panel["cycle"] == n
    with pytest.raises(SizeError, match="cycles 0 to 17"):
        explore.systolic(8, 4, cycle=18)
    with pytest.raises(SizeError, match="up to 4 tiles"):
        explore.systolic(8, 9)


def test_tiles_show_the_two_fastest_dimensions() -> None:
    (a,) = explore.tiles([((2048, 1, 128, 128, 4), "int32")])["arrays"]
    assert (a["rows"], a["lanes"], a["padded"], a["others"], a["factor"]) == (128, 4, [128, 128], 2048 * 128, 32.0)
    (b,) = explore.tiles({"turned": ((2048, 1, 128, 128, 4), "int32", (3, 4, 2, 1, 0))})["arrays"]
    assert (b["rows"], b["lanes"], b["padded"], b["factor"]) == (4, 128, [4, 128], 1.0)
    with pytest.raises(SizeError, match="two dimensions"):
        explore.tiles([((5,), "fp32")])
    with pytest.raises(SizeError, match="at least one array"):
        explore.tiles([])


def test_levels_of_memory_with_times() -> None:
    view = explore.memory_levels("v5e", 1e9)
    said = {x["key"]: x["seconds_text"].replace("\u00a0", " ") for x in view["levels"]}
    assert said == {"vreg": "unknown", "vmem": "56.2 µs", "hbm": "1.22 ms", "ici": "5.56 ms", "host": "62.5 ms", "dcn": "400 ms"}
    assert [x["key"] for x in explore.memory_levels("v5e", only=("hbm", "dcn"))["levels"]] == ["hbm", "dcn"]
    with pytest.raises(HardwareError, match="GPU"):
        explore.memory_levels("h100")
    with pytest.raises(SizeError, match="level of memory"):
        explore.memory_levels("v5e", only=("hbn",))


@pytest.mark.parametrize(
    "view",
    [explore.systolic(3, (2, 5), tiles=2), explore.tiles([((3, 300), "bf16")]), explore.memory_levels("v5p", 1e9)],
    ids=["systolic", "tiles", "memory_levels"],
)
def test_views_are_plain_data(view: dict[str, Any]) -> None:
    assert json.loads(json.dumps(view)) == view


def test_what_the_figures_say() -> None:
    assert repr(figures.systolic(8, 4)) == (
        "Figure(systolic: 8 rows through 4 × 4 cells: 18 cycles, and the cells are at work 44% of the time.)"
    )
    assert "takes 104\u00a0KiB for 78.1\u00a0KiB of data (1.33×)" in repr(figures.tiles([((100, 200), "fp32")]))
    assert "a factor of 7,120" in repr(figures.memory_levels("v5e"))
    assert "only the rate of HBM is known" in repr(figures.memory_levels("v2"))


def test_predictions_beside_points() -> None:
    panel = {
        "lines": {"predicted": [(1, 90.0), (2, 180.0), (4, 360.0)], "other": [(1, 1.0), (4, 2.0)]},
        "points": [(1, 100.0), (4, 300.0)],
    }
    view = explore.agreement({"a": panel}, x=("size", "B"), y=("rate", "B/s"))
    assert [p["error"] for p in view["panels"][0]["points"]] == [pytest.approx(-0.1), pytest.approx(0.2)]
    assert [p["text"] for p in view["panels"][0]["points"]] == ["\u221210%", "+20%"]
    assert view["worst"] == pytest.approx(0.2)
    assert [line["dashed"] for line in view["panels"][0]["lines"]] == [False, True]
    assert json.loads(json.dumps(view)) == view
    assert "at most 20% off (too high)" in repr(figures.agreement({"a": panel}, x=("size", "B"), y=("rate", "B/s")))


@pytest.mark.parametrize(
    ("error", "text"),
    [(0.0, "<0.1%"), (7.7e-5, "<0.1%"), (-0.00099, "<0.1%"), (0.0011, "+0.11%"), (-0.085, "\u22128.5%")],
)
def test_an_error_below_a_thousandth_has_no_digits(error: float, text: str) -> None:
    panel = {"lines": {"predicted": [(1, 1.0), (3, 2.0)]}, "points": [(2, 1.0)], "errors": {2: error}}
    (point,) = explore.agreement({"a": panel}, x=("x", ""), y=("y", ""))["panels"][0]["points"]
    assert point["text"] == text


def test_errors_may_be_given_and_need_not_be_known() -> None:
    panel = {"lines": {"predicted": [(1, 1.0), (3, 2.0)]}, "points": [(2, 1.0)]}
    assert explore.agreement({"a": panel}, x=("x", ""), y=("y", ""))["worst"] is None
    assert explore.agreement({"a": {**panel, "errors": {2: 0.5}}}, x=("x", ""), y=("y", ""))["worst"] == 0.5


@pytest.mark.parametrize(
    ("panels", "words"),
    [
        ({}, "at least one panel"),
        ({"a": {"lines": {"p": [(1, 1)]}}}, "one line and one point"),
        ({"a": {"lines": {"p": [(1, 1)]}, "points": [(1, 1)], "colours": {"p": "red"}}}, "colour of a line"),
    ],
)
def test_predictions_refuse_what_cannot_be_drawn(panels: dict[str, Any], words: str) -> None:
    with pytest.raises(ScalebookError, match=words):
        explore.agreement(panels, x=("x", ""), y=("y", ""))
