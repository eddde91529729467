"""The figures of sharded products: what collectives, plans and curves show, by hand and by other functions, and where it is drawn."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import scalebook as sb
from scalebook import explore, figures
from scalebook.errors import MeshError, ScalebookError
from scalebook.explore.steps import mixed
from scalebook.figures.figure import plain
from scalebook.figures.palette import variables
from scalebook.wiring import Segment

WIDTHS = (680, 358)
KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute")


def segment(k: int, shape: str = "ring") -> Segment:
    return Segment("ici0", k, shape, 50e9, 1e-6, 0.0)


def pod() -> sb.Mesh:
    return sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")


def layer(T: int = 4096, F: int = 28672, mesh: sb.Mesh | None = None) -> sb.Einsum:
    return sb.einsum("In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]", {"T": T, "D": 8192, "F": F}, mesh or pod())


# ---- collectives ------------------------------------------------------------------------------------------------------------


def test_an_all_gather_on_a_ring_of_four_by_hand() -> None:
    view = explore.collective("all-gather", segment(4), 4e6)
    assert view["panels"] == [0, 1, 2] and view["rows"] == 4
    labels = [[[c["label"] for c in device] for device in held] for held in view["held"]]
    assert labels[0] == [["0"], ["1"], ["2"], ["3"]]
    assert labels[1] == [["0", "1", "3"], ["0", "1", "2"], ["1", "2", "3"], ["0", "2", "3"]]
    assert labels[2] == [["0", "1", "2", "3"]] * 4
    # step 1: a chunk of 1 MB each way, 1 µs + 20 µs; step 2: half a chunk each way
    assert [s["seconds"] for s in view["steps"]] == pytest.approx([21e-6, 11e-6])
    assert [f["bytes"] for f in view["flying"][0]] == [1e6] * 8 and [f["bytes"] for f in view["flying"][1]] == [0.5e6] * 8
    assert view["seconds"] == pytest.approx(sb.simulate("all-gather", (segment(4),), 4e6).seconds)


def test_sums_say_how_many_terms_they_have() -> None:
    view = explore.collective("reduce-scatter", segment(4, "line"), 4e6)
    assert {c["label"] for device in view["held"][0] for c in device} == {"1"}
    assert [[c["label"] for c in device] for device in view["held"][-1]] == [["4"]] * 4
    assert [[c["colour"] for c in device] for device in view["held"][-1]] == [[0], [1], [2], [3]]


def test_an_all_to_all_ends_with_one_colour_a_device() -> None:
    view = explore.collective("all-to-all", segment(8), 8e6)
    assert [[c["colour"] for c in device] for device in view["held"][0]] == [list(range(8))] * 8
    assert [[c["colour"] for c in device] for device in view["held"][-1]] == [[d] * 8 for d in range(8)]
    assert [[c["label"] for c in device] for device in view["held"][-1]] == [[str(n) for n in range(8)]] * 8
    assert {f["label"] for f in view["flying"][0]} == {"3½"}  # to three devices, and half of those for the opposite one


@pytest.mark.parametrize("shape", ["ring", "line", "switch"])
@pytest.mark.parametrize("k", [2, 3, 4, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_lanes_carry_what_the_steps_send_and_never_two_things_at_once(kind: str, k: int, shape: str) -> None:
    view = explore.collective(kind, segment(k, shape), k * 1e6)
    expected = {"ring": 2 * k, "line": 2 * (k - 1), "switch": k}[shape]
    assert len(view["lanes"]) == expected
    busy = 0.0
    for lane in view["lanes"]:
        end = 0.0
        for b in lane["busy"]:
            assert b["start"] >= end - 1e-12 and b["end"] > b["start"]
            end = b["end"]
            busy += b["end"] - b["start"]
        assert end <= view["seconds"] + 1e-12
    sent = sum(f["bytes"] for step in view["flying"] for f in step)
    assert busy * 50e9 == pytest.approx(sent)
    assert json.loads(json.dumps(view))["seconds"] == view["seconds"]


def test_a_mesh_gives_its_links() -> None:
    mesh = sb.mesh({"Y": 16, "X": 8}, on="v5p:4x4x8")
    view = explore.collective("all-gather", mesh, 2**20, "X")
    assert (view["shape"], view["devices"], view["bytes_per_s"]) == ("ring", 8, 90e9)
    assert explore.collective("all-gather", [segment(4)], 4)["devices"] == 4


@pytest.mark.parametrize(
    ("where", "options", "says"),
    [
        (sb.mesh({"X": 4}), {}, "lies on no topology"),
        ({"X": 4}, {}, "lies on no topology"),
        (pod(), {"axes": "XY"}, "ring ici0 of 16, ring ici1 of 16"),
        (pod(), {"axes": "X"}, "up to 8 devices; ici0 has 16"),
        (segment(1), {}, "found none"),
        (segment(4), {"step": 3}, "has 2 steps: show the state after 0 to 2"),
        (segment(4), {"panels": (0, -1)}, "found -1"),
        (segment(4), {"step": True}, "found True"),
    ],
)
def test_what_cannot_be_shown_is_said(where: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ScalebookError, match=says):
        explore.collective("all-gather", where, 1e6, **options)


def test_a_message_that_is_followed_takes_one_link_in_each_step() -> None:
    view = explore.collective("all-to-all", segment(8), 8e6, step=1, follow=(0, 3))
    found = [(lane["src"], lane["dst"], b["step"]) for lane in view["lanes"] for b in lane["busy"] if b["message"] == [0, 3]]
    assert sorted(found, key=lambda f: f[2]) == [(0, 1, 0), (1, 2, 1), (2, 3, 2)]
    root = ET.fromstring(figures.draw("collective", view).svg(680))
    busy = {
        c: sum((e.get("d") or "").count("M") for e in root.iter("path") if e.get("class") == c)
        for c in ("sb-busy", "sb-busy sb-pale")
    }
    assert busy["sb-busy"] == 3 and sum(busy.values()) == sum(len(lane["busy"]) for lane in view["lanes"])
    for wrong in ((0, 0), (0, 8), (True, 3), "03", 3):
        with pytest.raises(ScalebookError, match="follow= is a message of an all-to-all"):
            explore.collective("all-to-all", segment(8), 8e6, follow=wrong)  # type: ignore[arg-type]
    with pytest.raises(ScalebookError, match="in all-gather"):
        explore.collective("all-gather", segment(8), 8e6, follow=(0, 3))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_halves_of_a_chunk_say_how_many_terms_each_has(width: int) -> None:
    view = explore.collective("reduce-scatter", segment(8), 8e6, panels=(1, 2, 4))
    cells = [c for n in view["panels"] for device in view["held"][n] for c in device]
    expected = [[c["label"]] if c["label"] else [str(terms) for _, _, terms in c["pieces"]] for c in cells]
    assert {len(numbers) for numbers in expected} == {1, 2}
    root = ET.fromstring(figures.draw("collective", view).svg(width))
    drawn = [e.text or "" for e in root.iter("text") if e.get("text-anchor") == "middle" and "ink" in (e.get("style") or "")]
    drawn += [e.text or "" for e in root.iter("text") if "on-cat" in (e.get("style") or "")]
    assert sorted(drawn) == sorted(n for numbers in expected for n in numbers)


@pytest.mark.parametrize("width", WIDTHS)
def test_tags_stand_between_devices(width: int) -> None:
    for step in range(4):
        root = ET.fromstring(figures.collective("all-to-all", segment(8), 8e6, step=step).svg(width))
        boxes = [(float(e.get("x", 0)), float(e.get("width", 0))) for e in root.iter("rect") if e.get("class") == "sb-device"]
        tags = [e.get("d", "") for e in root.iter("path") if (e.get("class") or "").startswith("sb-tag")]
        assert len(boxes) == 8 and len(tags) == 16
        for d in tags:
            xs = [float(x) for x in re.findall(r"[ML ]?(-?[\d.]+)[ ,]-?[\d.]+", d)]
            wrap = min(xs) < width / 2 + 40 and max(xs) > width / 2 - 40 and float(re.findall(r"-?[\d.]+", d)[1]) < 60
            assert wrap or not any(min(xs) < x + w - 0.5 and max(xs) > x + 0.5 for x, w in boxes), (d, boxes)


def test_the_key_draws_a_dashed_line_dashed() -> None:
    for width in WIDTHS:
        root = ET.fromstring(EVERY["plan times"].svg(width))
        leads = [e.get("style") or "" for e in root.iter() if e.get("class") == "sb-lead-line"]
        assert [("dash" in s, "math" in s) for s in leads].count((True, True)) == 1 == sum("dash" in s for s in leads)


def test_an_axis_says_what_it_counts() -> None:
    assert explore.plan_times(layer(), "T", 256, 2**20, counted="tokens")["x"]["name"] == "T, tokens (log)"


def test_what_the_crossing_says_is_what_the_plans_do_when_they_are_executed() -> None:
    """On another machine, so that it can be simulated: below T = D the activations should move, above it the weight."""
    m = sb.mesh({"X": 4, "Y": 4, "Z": 4}, on="v5p:4x4x4")
    for T, winner in ((4096, ["In", "In", "H"]), (16384, ["In", "W"])):
        e = sb.einsum("In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]", {"T": T, "D": 8192, "F": 28672}, m)
        ran = []
        for plan in (e, *e.alternatives):
            arrays = [c.array for c in plan.collectives]
            if arrays in (["In", "In", "H"], ["In", "W"]) and "all-to-all" not in [c.kind for c in plan.collectives[1:]]:
                runs = [sb.simulate(c.kind, m.segments(c.axes), c.nbytes).seconds for c in plan.collectives]
                assert math.fsum(runs) == pytest.approx(plan.time.comms, rel=1e-9)
                ran.append((math.fsum(runs), arrays))
        assert len(ran) == 2 and min(ran)[1] == winner == [c.array for c in e.collectives]


def test_quarters_of_messages() -> None:
    assert [mixed(x) for x in (1.0, 0.25, 2.75, 1 / 3)] == ["1", "¼", "2¾", "0.3"]


# ---- plans ------------------------------------------------------------------------------------------------------------------


def test_a_plan_shows_every_move_once_with_its_bytes() -> None:
    e = layer()
    view = explore.plan(e, alternatives=2)
    edges = [*view["a"], *view["b"], *view["c"]]
    assert [(x["name"], x["size"], x["seconds"]) for x in edges] == [
        (m.kind, sb.si(m.bytes, "B"), sb.si(m.seconds, "s")) for m in e.moves
    ]
    assert view["times"]["rows"][0]["bound_by"] == "comms" and len(view["others"]) == 2
    text = "".join(p["text"] + "".join(p.get("axes", ())) for p in view["local"][2]["pieces"])
    assert text == "H[T, FY]{UX}"
    assert view["start"][1]["held"] == sb.binary(2 * 8192 * 28672 / 256)
    said = plain(figures.plan(e, alternatives=2).readout)
    assert f"; network binds at {sb.si(e.time.comms, 's')}" in said and "slower, network binds" in said and "comms" not in said


def test_a_plan_without_links_has_no_seconds() -> None:
    view = explore.plan(sb.einsum("A[I, J] * B[J_X, K] -> C[I_X, K]", {"I": 64, "J": 64, "K": 64}, {"X": 8}))
    assert view["times"] is None and all(x["seconds"] == "" for walk in "abc" for x in view[walk])
    with pytest.raises(ScalebookError, match="shows an Einsum"):
        explore.plan("A[I] * B[I] -> C[]")  # type: ignore[arg-type]


# ---- curves -----------------------------------------------------------------------------------------------------------------


def test_the_fastest_line_is_einsums_own_plan_at_every_size() -> None:
    view = explore.plan_times(layer(), "T", 256, 2**18)
    plans = [line for line in view["lines"] if line["moves"]]
    sizes = [n for n, _ in plans[0]["points"]]
    assert sizes[0] == 256 and sizes[-1] == 2**18 and all(n % 256 == 0 for n in sizes)
    for i, n in enumerate(sizes):
        assert min(line["points"][i][1] for line in plans) == pytest.approx(layer(n).time.lower, rel=1e-9)
    floor = view["lines"][-1]["points"]
    assert floor[0][1] == pytest.approx(2 * 256 * 8192 * 28672 / 256 / 197e12)


def test_regimes_meet_where_the_two_plans_take_equally_long() -> None:
    view = explore.plan_times(layer(), "T", 256, 2**20)
    first, second = view["regimes"]
    assert first["high"] == second["low"] and (first["low"], second["high"]) == (256, 2**20)
    T, m = second["low"], pod()
    stay = sum(
        t.seconds
        for t in (
            sb.all_to_all(2 * T * 8192, m, "XY"),
            sb.all_gather(2 * T * 8192 / 16, m, "Y"),
            sb.reduce_scatter(2 * T * 28672 / 16, m, "X"),
        )
    )
    move = sb.all_gather(2 * T * 8192 / 16, m, "Y").seconds + sb.all_gather(2 * 8192 * 28672 / 16, m, "X").seconds
    assert stay == pytest.approx(move, rel=1e-6)


def test_plans_that_coincide_do_not_take_turns() -> None:
    """From some 156,000 tokens on, arithmetic binds two plans of a v5p slice: their times are equal, and there is one turn only."""
    mesh = sb.mesh({"X": 4, "Y": 16}, on="v5p:4x4x4")
    view = explore.plan_times(layer(mesh=mesh), "T", 512, 2**20)
    assert [r["low"] for r in view["regimes"]] == [512, pytest.approx(7113, abs=1)] and len(view["lines"]) == 3
    for n, seconds in view["lines"][1]["points"]:
        if n > view["regimes"][1]["low"]:
            assert seconds <= 1.01 * layer(n, mesh=mesh).time.lower


def test_a_turn_that_gains_something_stays() -> None:
    """With half of F, the third plan is 12% faster than the second at a million tokens: the readout names it where it takes over."""
    figure = figures.plan_times(layer(F=14336), "T", 512, 2**20, labels=("one", "two", "three"), at=4096)
    second, third = (r["low"] for r in figure.view["regimes"][1:])
    assert f"The fastest changes at T = {sb.count(round(second))} to two and at T = {sb.count(round(third))} to three." in plain(
        figure.readout
    )


def test_one_axis_of_fsdp_has_three_regimes_and_labels_must_be_as_many() -> None:
    e = sb.einsum("In[T_X, D] * W[D_X, F] -> Out[T_X, F]", {"T": 256, "D": 8192, "F": 28672}, sb.mesh({"X": 256}, on="v5e:16x16"))
    names = [r["name"] for r in explore.plan_times(e, "T", 256, 2**22)["regimes"]]
    assert names == ["re-deal In, scatter Out", "gather In, re-deal W, re-deal Out", "gather W"]
    assert explore.plan_times(e, "T", 256, 2**22, labels=("a", "b", "c"))["regimes"][2]["name"] == "c"
    with pytest.raises(ScalebookError, match="3 plans win"):
        explore.plan_times(e, "T", 256, 2**22, labels=("a", "b"))


def test_plan_times_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ScalebookError, match="unknown dimension 'Q'"):
        explore.plan_times(layer(), "Q", 256, 1024)
    with pytest.raises(ScalebookError, match="at least two multiples of 256"):
        explore.plan_times(layer(), "T", 1, 300)
    e = sb.einsum("A[I_X, J] * B[J_X, K] -> C[I_X, K]", {"I": 64, "J": 64, "K": 64}, {"X": 8})
    with pytest.raises(MeshError, match="times of plans need links"):
        explore.plan_times(e, "I", 8, 64)


def test_latency_turns_where_both_halves_are_equal() -> None:
    view = explore.latency("all-gather", pod(), ["X", "XY"])
    assert [m["x"] for m in view["marks"]] == pytest.approx([8e-6 * 90e9 * 16 / 15, 16e-6 * 180e9 * 256 / 255])
    for m, axes in zip(view["marks"], ("X", "XY"), strict=True):
        t = sb.all_gather(m["x"], pod(), axes)
        assert t.comms == pytest.approx(2 * t.latency) and m["y"] == pytest.approx(t.comms)
    for line, axes in zip(view["lines"], ("X", "XY"), strict=True):
        for n, seconds in line["points"]:
            assert seconds == pytest.approx(sb.all_gather(n, pod(), axes).seconds)
    with pytest.raises(MeshError, match="latency needs links"):
        explore.latency("all-gather", sb.mesh({"X": 4}), "X")


# ---- drawings ---------------------------------------------------------------------------------------------------------------

EVERY = {
    **{
        f"{kind} {shape}": figures.collective(kind, segment(4, shape), 4e6)
        for kind in KINDS
        for shape in ("ring", "line", "switch")
    },
    **{f"step of {kind}": figures.collective(kind, segment(8), 8e6, step=0) for kind in KINDS},
    "last step": figures.collective("all-gather", segment(8), 8e6, step=4),
    "message": figures.collective("all-to-all", segment(8), 8e6, step=1, follow=(0, 3)),
    "step on a line": figures.collective("all-to-all", segment(5, "line"), 8e6, step=1),
    "step on a switch": figures.collective("all-to-all", segment(8, "switch"), 8e6, step=1),
    "plan": figures.plan(layer(), alternatives=2),
    "plan without moves": figures.plan(sb.einsum("A[I_X, J] * B[J, K] -> C[I_X, K]", {"I": 8, "J": 8, "K": 8}, {"X": 8})),
    "plan times": figures.plan_times(layer(), "T", 256, 2**20, labels=("weights stay", "weights move"), counted="tokens"),
    "latency": figures.latency("all-gather", pod(), ["X", "XY"]),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EVERY)
def test_every_picture_is_sound(name: str, width: int) -> None:
    drawn = EVERY[name].svg(width)
    root = ET.fromstring(drawn)
    high = float(root.get("height", 0))
    assert float(root.get("width", 0)) == width and high < 900
    assert root.get("role") == "img" and len(root.get("aria-label", "")) > 20
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb\(|nan|inf\b|None", drawn)
    assert set(re.findall(r"var\(--sb-([a-z0-9-]+)\)", drawn)) <= set(variables("light"))
    for e in root.iter("rect"):
        x, y, w, h = (float(e.get(n, "nan")) for n in ("x", "y", "width", "height"))
        assert x >= -0.01 and x + w <= width + 0.01 and y >= -0.01 and y + h <= high
    assert all(float(s) >= 12 for s in re.findall(r"font-size:([\d.]+)px", drawn))


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_says_what_it_shows(name: str) -> None:
    said = plain(EVERY[name].readout)
    assert said.endswith(".") and re.search(r"\d", said) and "None" not in said and "  " not in said


def test_the_play_head_stands_at_the_beginning_of_its_step() -> None:
    root = ET.fromstring(figures.collective("all-gather", segment(4), 4e6, step=1).svg(680))
    (head,) = (e for e in root.iter("line") if e.get("class") == "sb-now")
    share = (float(head.get("x1", 0)) - 50) / (680 - 62 - 50)
    assert share == pytest.approx(21 / 32, abs=1e-3)  # µs, of the two steps by hand above


@pytest.mark.parametrize("width", WIDTHS)
def test_chunks_are_drawn_in_the_column_of_their_device(width: int) -> None:
    view = explore.collective("all-gather", segment(4), 4e6, panels=(1,))
    root = ET.fromstring(figures.draw("collective", view).svg(width))
    numbers = [
        float(e.get("x", 0)) for e in root.iter("text") if e.get("class") == "sb-tick" and e.text in "0123" and e.get("y") == "33"
    ]
    cells = [e for e in root.iter("text") if e.get("text-anchor") == "middle" and "on-cat" in (e.get("style") or "")]
    by_column = {x: sorted(e.text or "" for e in cells if math.isclose(float(e.get("x", 0)), x, abs_tol=0.6)) for x in numbers}
    assert list(by_column.values()) == [["0", "1", "3"], ["0", "1", "2"], ["1", "2", "3"], ["0", "2", "3"]]


def test_the_boundary_of_two_regimes_is_drawn_at_its_size() -> None:
    figure = EVERY["plan times"]
    root = ET.fromstring(figure.svg(680))
    (guide,) = (e for e in root.iter("line") if e.get("class") == "sb-guide")
    first, second = (e for e in root.iter("rect") if e.get("class") == "sb-tint")
    left, right = float(first.get("x", 0)), float(second.get("x", 0)) + float(second.get("width", 0))
    share = (float(guide.get("x1", 0)) - left) / (right - left)
    low = figure.view["regimes"][1]["low"]
    assert share == pytest.approx(math.log(low / 256) / math.log(2**20 / 256), abs=1e-3)
    assert sb.count(round(low)) in figure.svg(680)
