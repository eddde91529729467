"""What the figures' functions return, against numbers by hand and by brute force."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import scalebook as sb
from scalebook import explore
from scalebook.errors import HardwareError, MeshError, NotationError, ScalebookError
from scalebook.explore.arrays import colour_of
from scalebook.explore.quantities import quantity
from scalebook.roofline import Time, Work, matmul_work
from scalebook.units import NO_BREAK

V5E_PEAK, V5E_HBM = 197e12, 819e9  # the data sheet's two numbers


def only_point(view: dict[str, Any]) -> dict[str, Any]:
    (panel,) = view["panels"]
    (point,) = panel["points"]
    return dict(point)


# ---- roofline -----------------------------------------------------------------------------------------------------------


def test_a_point_of_the_roofline_by_hand() -> None:
    point = only_point(explore.roofline("v5e", {"64 tokens": matmul_work(64, 8192, 8192)}))
    flops, nbytes = 2 * 64 * 8192**2, 2 * (2 * 64 * 8192 + 8192**2)
    assert point["intensity"] == pytest.approx(flops / nbytes)
    assert point["parts"] == {"math": pytest.approx(flops / V5E_PEAK), "hbm": pytest.approx(nbytes / V5E_HBM)}
    assert point["bound_by"] == "hbm"
    assert point["achieved"] == pytest.approx(flops / (nbytes / V5E_HBM))
    assert point["share"] == pytest.approx(0.26198, abs=5e-6)


@settings(max_examples=50)
@given(st.integers(1, 10**6), st.sampled_from(["v5e", "v5p", "h100"]))
def test_a_point_lies_on_the_roof_and_is_bound_by_the_side_it_is_on(batch: int, chip: str) -> None:
    view = explore.matmul_roofline(chip, B=batch)
    point, panel = only_point(view), view["panels"][0]
    peak, rate = panel["ceilings"][0]["peak"], panel["levels"][0]["bytes_per_s"]
    assert point["achieved"] == pytest.approx(min(peak, point["intensity"] * rate))
    assert (point["bound_by"] == "math") == (point["intensity"] >= peak / rate)
    assert point["seconds"] == pytest.approx(2 * batch * 8192**2 / point["achieved"])


def test_two_memory_levels_give_two_places() -> None:
    point = only_point(explore.roofline("v5e", {"p": matmul_work(16, 8192, 8192)}, levels=("hbm", "vmem")))
    hbm, vmem = point["by_level"]
    rate = sb.chip("v5e").vmem_bytes_per_s
    assert rate is not None
    assert hbm["achieved"] == pytest.approx(point["intensity"] * V5E_HBM)
    assert vmem["achieved"] == pytest.approx(min(V5E_PEAK, point["intensity"] * rate))
    assert vmem["bound_by"] == "math"


def test_several_dtypes_are_several_ceilings_on_one_slope() -> None:
    (panel,) = explore.roofline("v5e", dtype=("bf16", "int8"))["panels"]
    assert [c["peak"] for c in panel["ceilings"]] == [197e12, 394e12]
    assert panel["levels"][0]["ridges"] == [pytest.approx(240.54, abs=0.01), pytest.approx(481.07, abs=0.01)]


def test_a_machine_of_ones_own_with_a_measured_point() -> None:
    work = Work({"math": 1e9, "hbm": 1e8})
    point = only_point(explore.roofline({"mine": {"math": 1e11, "hbm": 1e10}}, {"p": (work, 0.02)}))
    assert point["achieved"] == pytest.approx(1e11)
    assert point["measured"] == {"seconds": 0.02, "achieved": pytest.approx(5e10), "share": pytest.approx(0.5)}


def test_an_intensity_alone_has_a_place_but_no_time() -> None:
    point = only_point(explore.roofline("v5e", {"p": 100.0}))
    assert point["achieved"] == pytest.approx(100 * V5E_HBM)
    assert not point["timed"]


def test_the_slider_reaches_points_in_rising_order() -> None:
    view = explore.matmul_roofline("v5e", B=64)
    intensities = [c["intensity"] for c in view["choices"]]
    assert intensities == sorted(intensities)
    assert view["state"] == {"chip": "v5e", "B": 64, "D": 8192, "F": 8192, "dtype": "bf16", "weights": "bf16"}
    (chosen,) = [c for c in view["choices"] if c["B"] == 64]
    assert chosen == {"B": 64, "intensity": only_point(view)["intensity"], **matmul_work(64, 8192, 8192).amounts}


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: explore.roofline("v99"), HardwareError, "v99"),
        (lambda: explore.roofline([]), ScalebookError, "at least one chip"),
        (lambda: explore.roofline("v5p", levels=("vmem",)), ScalebookError, "no known bandwidth for vmem"),
        (lambda: explore.roofline("v5e", levels=("l2",)), ScalebookError, "unknown memory level 'l2'"),
        (lambda: explore.roofline("v5e", levels=()), ScalebookError, "at least one memory level"),
        (lambda: explore.roofline("v5e", dtype=()), ScalebookError, "at least one dtype"),
        (lambda: explore.roofline("v5e", dtype="fp8"), HardwareError, "fp8"),
        (lambda: explore.roofline("v5e", {"p": -1.0}), ScalebookError, "'p': -1.0"),
        (lambda: explore.roofline("v5e", {"p": Work({"math": 1})}), ScalebookError, "positive"),
        (lambda: explore.roofline("v5e", {"p": (Work({"math": 1, "hbm": 1}), 0)}), ScalebookError, "seconds > 0"),
        (lambda: explore.roofline({"m": {"math": 1e9}}), ScalebookError, "positive rate for hbm"),
        (lambda: explore.roofline({"math": 1e9, "hbm": 1e9}), ScalebookError, "machine of your own"),
        (lambda: explore.matmul_roofline("v5e", B=0), ScalebookError, "size B must be a positive whole number.*found 0"),
    ],
)
def test_what_is_wrong_with_a_roofline_is_said(call: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says.replace("(", "[(]")):
        call()


# ---- arrays -------------------------------------------------------------------------------------------------------------

SPECS = [
    "A[I, J]",
    "A[I_X, J]",
    "A[I, J_Y]",
    "A[I_X, J_Y]",
    "A[I_Y, J_X]",
    "A[I_XY, J]",
    "A[I_YX, J]",
    "A[I, J_XY]",
    "A[I_X, J]{U_Y}",
    "A[I_XY]",
]


@settings(max_examples=60)
@given(st.sampled_from(SPECS), st.integers(1, 4), st.integers(1, 4), st.data())
def test_blocks_tile_the_array_and_holders_hold_the_same(spec: str, x: int, y: int, data: st.DataObject) -> None:
    device = data.draw(st.integers(0, x * y - 1))
    view = explore.sharded_array(spec, {"X": x, "Y": y}, device=device)
    sizes = [d["size"] for d in view["dims"]]
    owners: dict[tuple[int, ...], set[int]] = {cell: set() for cell in itertools.product(*(range(n) for n in sizes))}
    for i, d in enumerate(view["devices"]):
        for cell in itertools.product(*(range(a, b) for a, b in d["block"])):
            owners[cell].add(i)
    copies = x * y // view["blocks"]
    assert all(len(held) == copies for held in owners.values())
    first = tuple(a for a, _ in view["devices"][device]["block"])
    same = owners[first]
    assert set(view["holders"]) <= same and len(view["holders"]) * view["terms"] == len(same) and device in view["holders"]
    assert json.loads(json.dumps(view)) == view


@settings(max_examples=40)
@given(st.sampled_from(SPECS), st.integers(1, 4), st.integers(1, 4))
def test_a_cut_is_made_by_the_outermost_axis_whose_coordinate_changes_there(spec: str, x: int, y: int) -> None:
    view = explore.sharded_array(spec, {"X": x, "Y": y})
    names = [a["axis"] for a in view["mesh"]]
    for k, dim in enumerate(view["dims"]):
        starts = {d["block"][k][0] for d in view["devices"]} - {0}
        assert [c["at"] for c in dim["cuts"]] == sorted(starts)
        for cut in dim["cuts"]:
            before = {tuple(d["at"]) for d in view["devices"] if d["block"][k][1] == cut["at"]}
            after = {tuple(d["at"]) for d in view["devices"] if d["block"][k][0] == cut["at"]}
            changed = [a for a in dim["axes"] if {c[names.index(a)] for c in before} != {c[names.index(a)] for c in after}]
            assert changed[0] == cut["axis"]


def test_real_sizes_and_long_names() -> None:
    view = explore.sharded_array(
        "W[D_data, F_model]", {"data": 2, "model": 4}, sizes={"D": 8192, "F": 32768}, device={"data": 1, "model": 2}
    )
    assert view["devices"][view["device"]]["block"] == [[4096, 8192], [16384, 24576]]
    assert [a["colour"] for a in view["mesh"]] == ["x", "y"]
    assert [colour_of(("X", "data", "Z"), a) for a in ("X", "data", "Z")] == ["x", "y", "z"]


def test_terms_of_a_pending_sum_are_told_apart() -> None:
    view = explore.sharded_array("A[I]{U_XY}", {"X": 2, "Y": 3})
    assert [d["term"] for d in view["devices"]] == [0, 1, 2, 3, 4, 5] and view["terms"] == 6 and len(view["holders"]) == 1


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: explore.sharded_array("A[I_Q, J]", {"X": 2}), NotationError, "Q"),
        (lambda: explore.sharded_array("A[I, J, K, L]", {"X": 2}), NotationError, "1 to 3 dimensions"),
        (lambda: explore.sharded_array("A[I]", {"X": 64}), MeshError, "64 devices"),
        (lambda: explore.sharded_array("A[I]", {"X": 2, "Y": 2, "Z": 2, "W": 2}), MeshError, "4 axes"),
        (lambda: explore.sharded_array("A[I]", {"X": 2}, device=2), MeshError, "device 2"),
        (lambda: explore.sharded_array("A[I]", {"X": 2}, device={"Y": 1}), MeshError, "'Y'"),
        (lambda: explore.sharded_array("A[I]", {"X": 2}, device="1"), MeshError, "'1'"),
        (lambda: explore.sharded_array("A[I_X]", {"X": 2}, sizes={"I": 3}), ScalebookError, "not a multiple"),
    ],
)
def test_what_is_wrong_with_an_array_is_said(call: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        call()


# ---- quantities ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(240.54, "tokens", "241 tokens"), (2.5, "tokens", "2.5 tokens"), (819e9, "B/s", "819 GB/s"), (96 * 2**30, "GiB", "96 GiB"),
     (0.263, "%", "26%"), (240.54, "FLOPs/byte", "241 FLOPs/byte"), (7, "", "7")],
)  # fmt: skip
def test_quantities_are_printed_by_their_unit(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit).replace(NO_BREAK, " ") == text


def test_bars_say_what_is_over_the_limit_and_what_is_stressed() -> None:
    view = explore.bars([("a", 1), ("b", 3)], "s", limit=2, highlight="b")
    assert [r["over"] for r in view["rows"]] == [False, True]
    assert [r["stressed"] for r in view["rows"]] == [False, True]
    assert view["limit"]["text"].replace(NO_BREAK, " ") == "limit: 2 s"


def test_times_share_a_scale_unless_they_differ_too_much() -> None:
    near = explore.times({"a": Time({"math": 1.0, "hbm": 2.0}), "b": Time({"math": 30.0, "hbm": 2.0})})
    far = explore.times({"a": Time({"math": 1.0, "hbm": 1.0}), "b": Time({"math": 30.0, "hbm": 2.0})})
    assert near["shared"] and not far["shared"]
    assert [r["bound_by"] for r in near["rows"]] == ["hbm", "math"]


def test_stacks_add_up_and_are_judged() -> None:
    view = explore.stacks({"a": {"w": 3 * 2**30, "kv": 2**30}, "b": {"w": 2**30}}, limit=2 * 2**30)
    assert [r["total"] for r in view["rows"]] == [4 * 2**30, 2**30]
    assert [r["verdict"].replace(NO_BREAK, " ") for r in view["rows"]] == ["✗ 2 GiB too much", "✓ fits, 1 GiB free"]
    colours = [[p["colour"] for p in r["parts"]] for r in view["rows"]]
    assert colours[0][0] == colours[1][0] != colours[0][1]  # a part keeps its colour


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: explore.bars({}), "at least one row"),
        (lambda: explore.bars({"a": -1}), "bar 'a' must be a finite number.*found -1"),
        (lambda: explore.bars({"a": float("nan")}), "nan"),
        (lambda: explore.bars({"a": "5"}), "'5'"),
        (lambda: explore.bars([1, 2]), "pairs"),
        (lambda: explore.bars({"a": 1}, colour="red"), "unknown colour"),
        (lambda: explore.bars({"a": 1}, highlight="b"), "unknown row"),
        (lambda: explore.bars({"a": 1}, limit=-2), "limit"),
        (lambda: explore.times({"a": Time({"comms": None})}), "all known"),
        (lambda: explore.stacks({"a": {}}), "stacked row"),
    ],
)
def test_what_is_wrong_with_rows_is_said(call: Any, says: str) -> None:
    with pytest.raises(ScalebookError, match=says):
        call()


def test_a_time_of_zero_is_a_time_and_numbers_of_numpy_count() -> None:
    (row,) = explore.times({"a": Time({"math": 0.0, "hbm": np.float32(0)})})["rows"]
    assert [p["seconds"] for p in row["parts"]] == [0, 0] and row["bound_by"] == "math"
    view = explore.bars({np.int64(8): np.int64(3), "b": np.float32(0.5)}, limit=np.int32(2), highlight=8)
    assert [(r["name"], r["value"], r["over"], r["stressed"]) for r in view["rows"]] == [
        ("8", 3, True, True),
        ("b", 0.5, False, False),
    ]
    assert json.loads(json.dumps(view)) == view
    assert explore.matmul_roofline(B=np.int64(64), D=np.int32(8192)) == explore.matmul_roofline(B=64)
    held = explore.sharded_array("A[I_X]", {"X": 4}, sizes={"I": np.int64(8)}, device=np.int64(2))
    assert held == explore.sharded_array("A[I_X]", {"X": 4}, sizes={"I": 8}, device=(np.int64(2),)) and held["device"] == 2
    stacked = explore.stacks({"a": {8: 3, 16: 4}}, "")["rows"][0]
    assert [p["name"] for p in stacked["parts"]] == ["8", "16"] and stacked["total"] == 7


INFINITE = float("inf")
ARRAY = np.array([1, 2])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: explore.times({"a": Time({"math": float("nan")})}), "seconds of 'math' in 'a' must be a finite number.*found nan"),
        (lambda: explore.times({"a": Time({"math": INFINITE})}), "at most 1e60; found inf"),
        (lambda: explore.times({"a": Time({"math": ARRAY})}), r"found array\(\[1, 2\]\)"),
        (lambda: explore.times({"a": Time({"math": -1})}), "not negative.*found -1"),
        (lambda: explore.times({"a": 5}), "a name and a Time.*found 'a': 5"),
        (lambda: explore.times({"a": Time({})}), "a name and a Time"),
        (lambda: explore.times(None), "given as {name: Time}; found None of type NoneType"),
        (lambda: explore.stacks({"a": {"b": 1}}, limit="x"), "limit must be a finite number.*found 'x'"),
        (lambda: explore.stacks(None), "given as {name: {part: value}}; found None"),
        (lambda: explore.stacks({"a": {"1": 1, 1: 2}}), "two parts of one name"),
        (lambda: explore.stacks({"a": {None: 1}}), "name of a part of 'a' must be a text; found None"),
        (lambda: explore.bars(None), "given as {name: value}; found None"),
        (lambda: explore.bars({"a": 1}, highlight=5), "unknown row to highlight '5'. Known: a"),
        (lambda: explore.bars({"a": 1}, highlight=None), "highlight must be one name or a list"),
        (lambda: explore.bars({"a": 1}, colour=[]), "unknown colour of bars"),
        (lambda: explore.bars({"a": 1}, 5), "unit must be a text; found 5"),
        (lambda: explore.bars({"a": 10**400}), "bar 'a' must be a finite number.* at most 1e60; found a whole number of 1329 bits"),
        (lambda: explore.bars({"a": ARRAY}), "bar 'a' must be a finite number"),
        (lambda: explore.bars({(1,): 1}), "name of a row of bars must be a text"),
        (lambda: explore.roofline(None), "roofline is of a chip.*found None"),
        (lambda: explore.roofline(5), "roofline is of a chip.*found 5 of type int"),
        (lambda: explore.roofline("v5e", [1, 2]), r"points are given as {name: Work}; found \[1, 2\]"),
        (lambda: explore.roofline("v5e", {"p": 10**400}), "a point is a Work"),
        (lambda: explore.roofline("v5e", {"p": Work({"math": ARRAY, "hbm": 1})}), "a point is a Work"),
        (lambda: explore.roofline("v5e", dtype=None), "dtype must be one name or a list of them; found None"),
        (lambda: explore.roofline("v5e", levels=5), "unknown memory level 5|levels must be"),
        (lambda: explore.roofline("v5e", levels=[[]]), "unknown memory level"),
        (lambda: explore.roofline({"m": {"math": "x", "hbm": 1}}), "machine 'm' needs a positive rate for math"),
        (lambda: explore.matmul_roofline(chip=None), "roofline is of a chip.*found None"),  # type: ignore[arg-type]
        (lambda: explore.matmul_roofline(B=True), "size B must be a positive whole number.*found True"),
        (lambda: explore.matmul_roofline(D=2.5), "size D must be"),  # type: ignore[arg-type]
        (lambda: explore.matmul_roofline(B=ARRAY), "size B must be"),
        (lambda: explore.matmul_roofline(F=10**400), "size F must be .* at most 1,000,000,000,000,000"),
        (lambda: explore.sharded_array("A[I]", {"X": 2}, sizes=5), "sizes are given as {dimension: size}"),
        (lambda: explore.sharded_array("A[I]", {"X": 2}, sizes={"I": ARRAY}), "size of 'I' must be a positive whole number"),
        (lambda: explore.sharded_array("A[I]", {"X": 2}, device=ARRAY), "a number or its coordinates"),
        (lambda: explore.sharded_array("A[I]", {"X": 2}, device={"X": ARRAY}), "coordinate along X"),
        (lambda: explore.sharded_array("A[I]", {"X": 2}, device=1.0), "a number or its coordinates"),
    ],
)  # fmt: skip
def test_what_has_the_wrong_type_is_said(call: Any, says: str) -> None:
    with pytest.raises(ScalebookError, match=says):
        call()


ON = sb.mesh({"X": 4, "Y": 4}, on="v5e:4x4")
FLOW = sb.einsum("A[I_X, J] * B[J_X, K] -> C[I_X, K]", {"I": 4096, "J": 1024, "K": 1024}, ON)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: explore.plan(5), "figures.plan shows an Einsum.*found 5"),  # type: ignore[arg-type]
        (lambda: explore.plan(FLOW, alternatives="x"), "alternatives must be a whole number from 0.*found 'x'"),  # type: ignore[arg-type]
        (lambda: explore.plan_times(None, "I", 1, 2), "figures.plan_times shows an Einsum.*found None"),  # type: ignore[arg-type]
        (lambda: explore.plan_times(FLOW, [], 1, 2), "unknown dimension"),  # type: ignore[arg-type]
        (lambda: explore.plan_times(FLOW, "I", None, 2), "least size of I must be a positive finite number.*found None"),  # type: ignore[arg-type]
        (lambda: explore.plan_times(FLOW, "I", 16, 10**400), "largest size of I must be a positive finite number"),
        (lambda: explore.plan_times(FLOW, "I", 16, 10**20), "at most 1,000,000,000,000,000"),
        (lambda: explore.plan_times(FLOW, "I", 64, 2**16, labels=5), "labels|label"),  # type: ignore[arg-type]
        (lambda: explore.plan_times(FLOW, "I", 64, 2**16, labels=[1]), "a label of a plan must be a text; found 1"),  # type: ignore[list-item]
        (lambda: explore.plan_times(FLOW, "I", 64, 2**16, most=0), "most must be a positive whole number.*found 0"),
        (lambda: explore.latency("all-gather", 5), "latency is of a mesh on a machine.*found 5"),  # type: ignore[arg-type]
        (lambda: explore.latency([], ON), "kind of a collective must be a text"),  # type: ignore[arg-type]
        (lambda: explore.latency("all-gather", ON, [5]), "a choice of axes must be a text; found 5"),  # type: ignore[list-item]
        (lambda: explore.latency("all-gather", ON, []), "one or more choices of axes.*found none"),
        (lambda: explore.latency("all-gather", ON, low=0), "least number of bytes, low, must be a positive finite number.*found 0"),
        (lambda: explore.latency("all-gather", ON, high=float("inf")), "largest number of bytes.*found inf"),
        (lambda: explore.latency("all-gather", ON, low=5, high=5), "low below high; found low=5, high=5"),
        (lambda: explore.torus("v5e:4x4", from_chip=5), r"no chip 5 in a slice of v5e:4x4.*\(0, 0\) to \(3, 3\)"),  # type: ignore[arg-type]
        (lambda: explore.torus("v5e:4x4", from_chip=(1,)), r"no chip \(1,\)"),
        (lambda: explore.torus("v5e:4x4", from_chip=(1, 4)), r"no chip \(1, 4\)"),
        (lambda: explore.torus("v5e:4x4", from_chip=(True, 0)), r"no chip \(True, 0\)"),
        (lambda: explore.torus("v5e:4x4", from_chip="00"), "no chip '00'"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_plan_a_latency_or_a_torus_is_said(call: Any, says: str) -> None:
    with pytest.raises(ScalebookError, match=says):
        call()


def test_a_chip_of_numpy_is_a_chip() -> None:
    assert explore.torus("v5e:4x4", from_chip=(np.int64(1), np.int64(2))) == explore.torus("v5e:4x4", from_chip=(1, 2))
    assert explore.torus("v5e:4x4", from_chip=np.array([1, 2])) == explore.torus("v5e:4x4", from_chip=(1, 2))
