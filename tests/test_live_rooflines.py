"""The explorers of rooflines, plans and latency: over grids, what they show is what the library's functions give by another way."""

from __future__ import annotations

import itertools
import json
import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import scalebook as sb
from scalebook.errors import MeshError, NotationError, ScalebookError, SizeError
from scalebook.explore.rivals import TIE
from scalebook.figures.figure import plain
from scalebook.live import EXPLORERS
from scalebook.live.inputs import dtypes_of, mesh_from, mesh_python, sizes_of
from scalebook.live.latency import BYTES, CHIPS, KINDS
from scalebook.live.plan_times import HIGH, LOW, MACHINES, SPEC, TOKENS
from scalebook.live.requests import answer
from scalebook.typed import read_pairs, read_sizes
from scalebook.units import binary, count, digits, percent, si


def view_of(name: str, **state: Any) -> Any:
    chosen = EXPLORERS[name]
    return chosen.live(chosen.state(state)).view


def said_by(name: str, **state: Any) -> str:
    chosen = EXPLORERS[name]
    return plain(chosen.live(chosen.state(state)).readout)


def allowed(name: str, key: str, **state: Any) -> list[Any]:
    control: Any = EXPLORERS[name].by_key[key]
    return list(control.allowed(state))


def drawn(name: str, width: int, **state: Any) -> ET.Element:
    chosen = EXPLORERS[name]
    return ET.fromstring(chosen.live(chosen.state(state)).svg(width))


def stops_of(root: ET.Element) -> list[list[float]]:
    (area,) = (e for e in root.iter("rect") if e.get("class") == "sb-drag")
    stops: list[list[float]] = json.loads(area.get("data-stops", ""))
    return stops


# ---- roofline ---------------------------------------------------------------------------------------------------------------

MATMULS = [(1, 8192, 8192), (240, 8192, 8192), (256, 8192, 8192), (8192, 384, 384), (1024, 16, 8192), (96, 28672, 1024)]


@pytest.mark.parametrize("chip", [c.key for c in sb.chips()])
def test_the_roofline_is_the_librarys_own_time(chip: str) -> None:
    """Every chip, every format it multiplies in, every format its weights can have, and six shapes."""
    for dtype, (B, D, F) in itertools.product(sb.chip(chip).flops_per_s, MATMULS):
        offered = allowed("roofline", "weights", dtype=dtype)
        for weights in offered:
            view = view_of("roofline", chip=chip, dtype=dtype, weights=weights, B=B, D=D, F=F)
            (panel,), time = view["panels"], sb.matmul_time(B, D, F, chip, a=dtype, b=weights, out=dtype)
            (point,) = panel["points"]
            x, w = sb.itemsize(dtype), sb.itemsize(weights)
            intensity = 2 * B * D * F / (x * B * (D + F) + w * D * F)
            assert point["parts"] == {"math": pytest.approx(time.math), "hbm": pytest.approx(time.hbm)}
            assert point["intensity"] == pytest.approx(intensity)
            assert point["achieved"] == pytest.approx(sb.attainable(intensity, chip, dtype))
            assert point["share"] == pytest.approx(time.math / time.lower) and point["bound_by"] == time.bound_by
            assert panel["levels"][0]["ridges"] == [pytest.approx(sb.ridge(chip, dtype))]


def test_the_readout_and_the_table_say_it() -> None:
    time = sb.matmul_time(48, 8192, 8192, "v5p", b="int8")
    said = said_by("roofline", chip="v5p", weights="int8", B=48)
    assert f"HBM binds at {si(time.lower, 's')}: at most {percent(time.math / time.hbm)} of peak" in said
    table = EXPLORERS["roofline"].table(view_of("roofline", chip="v5p", weights="int8", B=48))
    assert table.column("tokens") == [count(n) for n in sorted([48, *(2**k for k in range(14))])]
    for n, row in zip(sorted([48, *(2**k for k in range(14))]), table.rows, strict=True):
        work = sb.matmul_work(n, 8192, 8192, b="int8")
        t = work.over(sb.rates("v5p"))
        binds = {"hbm": "HBM", "math": "math"}[t.bound_by]
        wanted = (digits(work.intensity()), si(t.math, "s"), si(t.hbm, "s"), binds, percent(t.math / t.lower))
        assert row == (count(n), *wanted)


@pytest.mark.parametrize("chip", [c.key for c in sb.chips()])
def test_formats_are_named_and_the_peak_is_in_reach_wherever_math_binds(chip: str) -> None:
    view, said = view_of("roofline", chip=chip, B=8192), said_by("roofline", chip=chip, B=8192)
    dtype = view["state"]["dtype"]
    assert f"all in {dtype}: " in said
    assert ("Math binds" in said) == ("the peak is in reach" in said) == (view["panels"][0]["points"][0]["bound_by"] == "math")
    assert "at most 100%" not in said
    for width in (680, 358):
        words, peak = "".join(drawn("roofline", width, chip=chip).itertext()), si(sb.rates(chip, dtype)["math"], "FLOPs/s")
        assert f"{dtype} peak {peak}" in words or f"{dtype} {peak}" in words


def test_one_flop_and_other_weights() -> None:
    assert "all in bf16: 1 FLOP per byte, below" in said_by("roofline", B=1)
    assert "int8 weights multiplied in bf16: 2 FLOPs per byte, below" in said_by("roofline", B=1, weights="int8")


@pytest.mark.parametrize("width", [680, 358])
@pytest.mark.parametrize("state", [{}, {"chip": "h100", "dtype": "fp8"}, {"D": 384, "F": 384}, {"F": 16}])
def test_a_stop_is_where_the_point_goes(width: int, state: dict[str, Any]) -> None:
    """Each stop of the handle is drawn at the x at which the disc stands once its batch is set; the axes do not move."""
    stops = stops_of(drawn("roofline", width, **state))
    assert [b for _, b in stops] == allowed("roofline", "B")
    assert [x for x, _ in stops] == sorted(x for x, _ in stops)
    small = set()
    for x, B in stops[::9]:
        root = drawn("roofline", width, **state, B=int(B))
        (disc,) = (e for e in root.iter("circle") if e.get("class") == "sb-handle")
        assert float(disc.get("cx", "nan")) == pytest.approx(x, abs=0.06) and float(disc.get("r", 0)) >= 9
        small |= {e.get("d") for e in root.iter("path") if e.get("class") == "sb-stop"}
        assert stops_of(root) == stops
    assert len(small) == 1


def test_formats_give_way_to_what_a_chip_has() -> None:
    chosen = EXPLORERS["roofline"]
    assert chosen.state({"chip": "h100", "dtype": "fp8"})["dtype"] == "fp8"
    assert chosen.state({"chip": "v5e", "dtype": "fp8"})["dtype"] == "bf16"
    assert chosen.state({"dtype": "int8"})["weights"] == "int8"  # bf16 weights would be larger than the format they are used in
    assert chosen.state({"dtype": "int8", "weights": "int4"})["weights"] == "int4"
    for c in sb.chips():
        state = chosen.state({"chip": c.key})
        assert state["dtype"] in c.flops_per_s
    with pytest.raises(ScalebookError, match=r"unknown dtype .*'bf61'.* Known: bf16, int8$"):
        chosen.state({"dtype": "bf61"})
    with pytest.raises(ScalebookError, match=r"unknown weights .*'int3'.* Known: bf16, int8, int4$"):
        chosen.state({"weights": "int3"})


# ---- planner ----------------------------------------------------------------------------------------------------------------

PRODUCTS: list[dict[str, Any]] = [
    {},
    {"topology": ""},
    {"spec": "A[I_X, J] * B[J, K] -> C[I_X, K]", "sizes": "I=512, J=512, K=128", "mesh": "X=8", "topology": "", "dtype": "fp32"},
    {"spec": "A[I_X, J] * B[J, K_X] -> C[I_X, K]", "sizes": "I=64, J=512, K=512", "mesh": "X=8", "topology": "v5e:2x4"},
    {
        "spec": "In[B_data, T, D] * W[D_data, F_model] -> Out[B_data, T, F_model]",
        "sizes": "B=16, T=4096, D=8_192, F=8192",
        "mesh": "data=16, model=16",
        "dtype": "In=bf16, W=int8, Out=bf16",
    },
]


@pytest.mark.parametrize("fields", PRODUCTS)
def test_the_planner_shows_einsums_plans(fields: dict[str, Any]) -> None:
    """Every move of the best plan and of those after it, with its bytes, seconds, layout and what a device holds after."""
    chosen = EXPLORERS["planner"]
    state = chosen.state(fields)
    mesh = sb.mesh(sizes_of(state["mesh"]), on=state["topology"]) if state["topology"] else sizes_of(state["mesh"])
    best = sb.einsum(state["spec"], sizes_of(state["sizes"]), mesh, dtypes_of(state["dtype"]))
    plans = [best, *best.alternatives][:4]
    assert allowed("planner", "plan", **state) == [1, 2, 3, 4][: len(plans)]
    for n, e in enumerate(plans):
        view = view_of("planner", **{**state, "plan": n + 1})
        table = chosen.table(view)
        moved = [row for row in table.rows if row[0] not in ("as given", "local product")]
        assert len(moved) == len(e.moves)
        for row, m in zip(moved, e.moves, strict=True):
            free = m.kind == "slice"
            held = m.after.bytes_per_device(e.sizes, e.mesh, e.dtypes[m.array])
            seconds = "" if free or m.seconds is None else si(m.seconds, "s")
            size = "none" if free else si(m.bytes, "B")
            assert row == (m.kind, m.array, " ".join(m.axes), size, seconds, str(m.after), binary(held))
        (local,) = (row for row in table.rows if row[0] == "local product")
        assert local[5] == str(e.local[2]) and local[4] == ("" if e.time.math is None else si(e.time.math, "s"))
        shown = {p["key"]: p["seconds"] for p in view["times"]["rows"][0]["parts"]} if view["times"] else {}
        known = {"math": e.time.math, "hbm": e.time.hbm, **({"ici": e.time.comms} if e.bytes else {})}
        assert shown == (known if e.time.known else {})
        if n:
            assert view["beside_best"] and "Beside the best plan" in chosen.live({**state, "plan": n + 1}).readout
        else:
            assert len([note for note in table.notes if note.startswith("Instead")]) == len(best.alternatives[:3])


def test_the_planner_tells_mistakes_in_the_librarys_words() -> None:
    def told(**state: Any) -> str:
        reply = json.loads(answer(json.dumps({"do": "explore", "name": "planner", "state": state})))
        assert reply["ok"] is False and "bug" not in reply
        return str(reply["error"])

    e = EXPLORERS["planner"].start
    pod = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
    for change, call in [
        ({"spec": "A[I_X"}, lambda: sb.einsum("A[I_X", {"T": 4096, "D": 8192, "F": 28672}, pod)),
        ({"sizes": "T=4096, D=8192"}, lambda: sb.einsum(str(e["spec"]), {"T": 4096, "D": 8192}, pod)),
        ({"sizes": "T=100, D=8192, F=28672"}, lambda: sb.einsum(str(e["spec"]), {"T": 100, "D": 8192, "F": 28672}, pod)),
        ({"mesh": "X=16"}, lambda: sb.mesh({"X": 16}, on="v5e:16x16")),
        ({"topology": "v5e:3x3"}, lambda: sb.mesh({"X": 16, "Y": 16}, on="v5e:3x3")),
        ({"dtype": "bf61"}, lambda: sb.einsum(str(e["spec"]), {"T": 4096, "D": 8192, "F": 28672}, pod, "bf61")),
    ]:  # fmt: skip
        with pytest.raises(ScalebookError) as own:
            call()
        assert told(**change) == str(own.value)
    assert "sizes: T is '8k'; a size is a whole number" in told(sizes="T=8k")
    assert "mesh: cannot read 'X4' in 'X4'; a mesh is given by its axes" in told(mesh="X4")
    assert "spec (Product) has 2,000 characters: a field takes at most 200" in told(spec="x" * 2000)
    assert "unknown plan (Plan) 9. Known: 1, 2, 3, 4" in told(plan=9)


def test_a_product_with_fewer_plans_shows_its_best() -> None:
    state = EXPLORERS["planner"].state({"plan": 4, "spec": "A[I] * B[I] -> C[]", "sizes": "I=16", "mesh": "X=2", "topology": ""})
    assert state["plan"] == 1


# ---- plans that cross -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("machine", "D", "F"), [("v5e 16x16", 8192, 28672), ("v5p 4x4x4", 4096, 14336), ("v5e 4x4", 1024, 1024)])
def test_the_marked_times_are_einsums(machine: str, D: int, F: int) -> None:
    """The fastest of the marked plans is the one that einsum finds for that many tokens, and takes as long."""
    mesh = mesh_from(*MACHINES[machine])
    peak = sb.rates(MACHINES[machine][1].partition(":")[0])["math"]
    assert peak is not None
    crossings = set()
    for T in TOKENS[::5]:
        view = view_of("plan_times", machine=machine, D=D, F=F, at=T)
        at, e = view["at"], sb.einsum(SPEC, {"T": T, "D": D, "F": F}, mesh)
        assert e.time.lower * (1 - 1e-9) <= at["rows"][at["best"]]["seconds"] <= (1 + TIE) * e.time.lower
        assert e.time.lower * (1 - 1e-9) <= min(row["seconds"] for row in at["rows"][:-1]) <= (1 + TIE) * e.time.lower
        assert at["rows"][-1]["seconds"] == pytest.approx(2 * T * D * F / mesh.devices / peak)
        assert (
            f"T = {count(T)}: fastest {at['rows'][at['best']]['name']}, {si(at['rows'][at['best']]['seconds'], 's')}"
            in said_by("plan_times", machine=machine, D=D, F=F, at=T)
        )
        crossings.add(tuple(r["low"] for r in view["regimes"]))
        table = EXPLORERS["plan_times"].table(view)
        (row,) = (r for r in table.rows if r[0] == count(T))
        assert row[1:-1] == tuple(si(r["seconds"], "s") for r in at["rows"]) and row[-1] == at["rows"][at["best"]]["name"]
    (edges,) = crossings
    own = sb.explore.plan_times(sb.einsum(SPEC, {"T": HIGH, "D": D, "F": F}, mesh), "T", LOW, HIGH, most=6)
    assert edges == tuple(r["low"] for r in own["regimes"])
    for turn in edges[1:]:
        assert count(round(turn)) in said_by("plan_times", machine=machine, D=D, F=F)


@pytest.mark.parametrize(("machine", "D", "F"), [
    ("v5e 16x16", 8192, 14336), ("v5e 16x16", 32768, 1024), ("v6e 16x16", 4096, 28672), ("v5e 4x4", 28672, 8192), ("v5p 4x4x4", 32768, 1024),
    ("v5p 4x8x8", 28672, 8192), ("v5p 4x4x4", 1024, 32768),
])  # fmt: skip
def test_a_plan_is_called_by_what_becomes_of_the_weights(machine: str, D: int, F: int) -> None:
    """Names tell the plans apart, say of each plan what is true of it, and the plans of the text are called as they are there."""
    view = view_of("plan_times", machine=machine, D=D, F=F)
    lines = [c for c in view["lines"] if c["moves"]]
    assert len({c["name"] for c in lines}) == len(lines)
    for c in lines:
        assert c["name"].startswith("weights stay") == (not any(" of W " in m for m in c["moves"]))
        assert ("weights move" in c["name"]) == any(m.startswith("all-gather of W ") for m in c["moves"])
        if c["moves"] == ["all-gather of In over Y", "all-gather of W over X"]:
            assert c["name"] == "weights move"
        if c["moves"] == ["all-to-all of In over XY", "all-gather of In over Y", "reduce-scatter of H over X"]:
            assert c["name"] == "weights stay"
    assert [view["regimes"][0]["low"], view["regimes"][-1]["high"]] == [LOW, HIGH], "every size has its plan"


def test_the_machine_is_offered_with_its_mesh() -> None:
    (control,) = (c for c in EXPLORERS["plan_times"].controls if c.key == "machine")
    words = {o[0]: o[1] for o in control.options}  # type: ignore[attr-defined,union-attr]
    assert words["v5p 4x4x4"] == "v5p 4×4×4: X=4, Y=16"


def test_weights_are_named_where_that_tells_plans_apart() -> None:
    names = [c["name"] for c in view_of("plan_times")["lines"]]
    assert names == ["weights stay", "weights move", "arithmetic alone"]
    moves = {c["name"]: c["moves"] for c in view_of("plan_times")["lines"]}
    assert not any(" of W " in m for m in moves["weights stay"]) and any(" of W " in m for m in moves["weights move"])


@pytest.mark.parametrize("width", [680, 358])
@pytest.mark.parametrize(("name", "values"), [("plan_times", TOKENS), ("latency", BYTES)])
def test_a_stop_is_where_the_line_goes(name: str, values: tuple[int, ...], width: int) -> None:
    stops = stops_of(drawn(name, width))
    assert [v for _, v in stops] == list(values)
    for x, value in stops[:: max(1, len(stops) // 6)]:
        root = drawn(name, width, at=int(value))
        (head,) = (e for e in root.iter("line") if e.get("class") == "sb-now")
        assert float(head.get("x1", "nan")) == pytest.approx(x, abs=0.06)
        for e in root.iter("rect"):
            assert float(e.get("x", 0)) >= -0.01 and float(e.get("x", 0)) + float(e.get("width", 0)) <= width + 0.01


def test_a_marked_size_must_be_one_that_the_plans_have() -> None:
    e = sb.einsum(SPEC, {"T": 512, "D": 8192, "F": 28672}, sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16"))
    for at, found in ((700, "found 700"), (256, "from 512 to 1,024; found 256"), (2**30, "found 1,073,741,824")):
        with pytest.raises(ScalebookError, match=f"the marked size of T is a multiple of 256 devices.*{found}"):
            sb.explore.plan_times(e, "T", 512, 1024, at=at)


# ---- latency ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_marked_collective_takes_the_librarys_time(kind: str) -> None:
    """Every chip and slice, five sizes: seconds and latency as the collective's own function has them, and which is more."""
    call = getattr(sb, kind.replace("-", "_"))
    chosen = EXPLORERS["latency"]
    for chip in CHIPS:
        for shape in allowed("latency", "shape", chip=chip):
            sizes = dict(zip("XYZ", map(int, str(shape).split("x")), strict=False))
            mesh = sb.mesh(sizes, on=f"{chip}:{shape}")
            for at in BYTES[::4]:
                view = view_of("latency", kind=kind, chip=chip, shape=shape, at=at)
                rows = chosen.table(view).rows
                for n, (row, line) in enumerate(zip(view["at"]["rows"], rows, strict=True)):
                    axes = "XYZ"[: n + 1]
                    t = call(at, mesh, axes)
                    assert row["seconds"] == pytest.approx(t.comms, rel=1e-12) and row["latency"] == pytest.approx(t.latency)
                    binds = "latency" if t.latency > t.comms - t.latency else "bandwidth"
                    devices = math.prod(list(sizes.values())[: n + 1])
                    assert line[:5] == (f"{axes}: {count(devices)} devices", si(t.comms, "s"), si(t.latency, "s"),
                                        percent(t.latency / t.comms), binds)  # fmt: skip


def test_the_readout_of_latency() -> None:
    said = said_by("latency", kind="all-gather", chip="v5e", shape="16x16", at=10**8)
    t = sb.all_gather(10**8, sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16"), "X")
    assert f"X: 16 devices {si(t.comms, 's')}, of which {si(t.latency, 's')} latency: bandwidth binds" in said
    assert EXPLORERS["latency"].state({"chip": "v5p"})["shape"] == "16x16x16"
    with pytest.raises(ScalebookError, match="unknown shape"):
        EXPLORERS["latency"].state({"shape": "3x3"})
    with pytest.raises(ScalebookError, match="the marked number of bytes lies from low to high"):
        sb.explore.latency("all-gather", sb.mesh({"X": 4, "Y": 4}, on="v5e:4x4"), at=10)


# ---- what is typed ----------------------------------------------------------------------------------------------------------


def test_pairs_and_sizes() -> None:
    assert read_pairs("x", ["A=int8", "B=bf16, C=fp32"], "") == {"A": "int8", "B": "bf16", "C": "fp32"}
    assert read_sizes("x", " B = 4_096 ,D=8192 ", "") == {"B": 4096, "D": 8192}
    assert sizes_of("B=1") == {"B": 1} and dtypes_of(" bf16 ") == "bf16"
    assert mesh_from("X=2, Y=2").shape == {"X": 2, "Y": 2} and mesh_from("X=4", " v5e:2x2 ").topology is not None
    for text in ("X=2, Y=4", "data=16"):
        assert eval(mesh_python(text), {"sb": sb}) == mesh_from(text)
    assert eval(mesh_python("X=16, Y=16", "v5e:16x16"), {"sb": sb}) == mesh_from("X=16, Y=16", "v5e:16x16")


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: sizes_of(""), ScalebookError, "sizes: cannot read '' in ''; sizes are pairs NAME=SIZE"),
        (lambda: sizes_of("B=0"), SizeError, "sizes: B is '0'; a size is a whole number from 1 to 1,000,000,000,000,000"),
        (lambda: sizes_of("B=1, B=2"), ScalebookError, "sizes: 'B' is given as 1 and as 2"),
        (lambda: mesh_from("X"), MeshError, "mesh: cannot read 'X' in 'X'"),
        (lambda: mesh_from("X=0.5"), MeshError, "mesh: X is '0.5'"),
        (lambda: dtypes_of("A=int8, bf16"), ScalebookError, "dtype: cannot read ' bf16'"),
        (lambda: view_of("planner", spec="A[I_Q] * B[I] -> C[]"), NotationError, "Q"),
    ],
)
def test_what_cannot_be_read_is_said(call: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=re.escape(says)):
        call()
