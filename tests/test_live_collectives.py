"""The collective stepper: what it shows is what the library computes, for every collective, shape and number of devices."""

from __future__ import annotations

import json
import math
import re
import time
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import scalebook as sb
from scalebook import explore, figures
from scalebook.collectives import algorithms
from scalebook.errors import MeshError, ScalebookError
from scalebook.explore.steps import links_of, step_count
from scalebook.figures.collective_words import launches
from scalebook.figures.figure import plain
from scalebook.live import EXPLORERS
from scalebook.live.collective import KINDS, chips_joined
from scalebook.live.requests import answer
from scalebook.wiring import Segment

PLAY = EXPLORERS["collective"]
SHAPES = ("ring", "line", "switch")
GRID = [(kind, shape, k) for kind in KINDS for shape in SHAPES for k in range(2, 9)]
CHIP = {"ring": "v5p", "line": "v5e", "switch": "h100"}


def state(kind: str, shape: str, k: int, step: int = 0, nbytes: int = 2**24) -> dict[str, Any]:
    return PLAY.state({"kind": kind, "shape": shape, "chip": CHIP[shape], "devices": k, "nbytes": nbytes, "step": step})


def simulated(kind: str, shape: str, k: int, nbytes: int = 2**24) -> sb.simulation.Simulation:  # type: ignore[name-defined]
    return sb.simulate(kind, (links_of(CHIP[shape], k, shape),), nbytes)


# ---- the values are the library's -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", [2**10, 2**34])
@pytest.mark.parametrize(("kind", "shape", "k"), GRID)
def test_times_are_those_of_the_simulation_and_of_the_closed_form(kind: str, shape: str, k: int, nbytes: int) -> None:
    view = PLAY.figure(**state(kind, shape, k, nbytes=nbytes)).view
    run, links = simulated(kind, shape, k, nbytes), links_of(CHIP[shape], k, shape)
    assert view["seconds"] == pytest.approx(run.seconds, rel=1e-12)
    assert [(s["start"], s["seconds"]) for s in view["steps"]] == [
        pytest.approx((s.start, s.seconds), rel=1e-12) for s in run.steps
    ]
    (price,) = algorithms(kind, (links,))  # one algorithm for each collective over one segment
    assert view["seconds"] == pytest.approx(price.seconds(nbytes), rel=1e-9) and view["algorithm"] == price.algorithm
    assert step_count(kind, shape, k) == len(run.steps) == PLAY.by_key["step"].end(state(kind, shape, k))  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "shape", "k"), GRID)
def test_the_bytes_on_links_are_what_the_simulation_moved(kind: str, shape: str, k: int) -> None:
    run = simulated(kind, shape, k)
    view = PLAY.figure(**state(kind, shape, k)).view
    for n, (flying, step) in enumerate(zip(view["flying"], run.steps, strict=True)):
        moved: dict[tuple[int, int, str], float] = {}
        for t in step.transfers:
            moved[t.src, t.dst, t.direction] = moved.get((t.src, t.dst, t.direction), 0.0) + t.bytes
        assert {(f["src"], f["dst"], f["direction"]): f["bytes"] for f in flying} == pytest.approx(moved, rel=1e-12)
        lanes = [(lane["src"], b["bytes"]) for lane in view["lanes"] for b in lane["busy"] if b["step"] == n]
        assert math.fsum(b for _, b in lanes) == pytest.approx(math.fsum(moved.values()), rel=1e-12)
    for d in range(k):
        arrived = math.fsum(f["bytes"] for flying in view["flying"] for f in flying if f["dst"] == d)
        assert arrived == pytest.approx(run.received(d), rel=1e-12)


@pytest.mark.parametrize(("kind", "shape", "k"), GRID)
def test_devices_hold_what_the_simulation_says_and_in_the_end_what_is_promised(kind: str, shape: str, k: int) -> None:
    run = simulated(kind, shape, k)
    held = PLAY.figure(**state(kind, shape, k)).view["held"]
    for n in range(len(run.steps) + 1):
        for d, blocks in run.holdings(n).items():
            wanted = {
                ("{}→{}".format(*b) if isinstance(b, tuple) else str(b)): tuple(
                    (float(p.lo), float(p.hi), len(p.of)) for p in pieces
                )
                for b, pieces in blocks.items()
            }
            assert {c["name"]: c["pieces"] for c in held[n][d]} == wanted
    whole, summed = ((0.0, 1.0, 1),), ((0.0, 1.0, k),)
    promised = {
        "all-gather": lambda d: {str(b): whole for b in range(k)},
        "reduce-scatter": lambda d: {str(d): summed},
        "all-reduce": lambda d: {str(b): summed for b in range(k)},
        "all-to-all": lambda d: {f"{b}→{d}": whole for b in range(k)},
        "permute": lambda d: {str((d - 1) % k): whole},
    }[kind]
    assert [{c["name"]: c["pieces"] for c in device} for device in held[-1]] == [promised(d) for d in range(k)]


def test_what_has_just_come_is_what_was_on_its_way() -> None:
    view = explore.collective("all-gather", "v5p", 8e6, devices=8, shape="ring", step=0)
    for n, flying in enumerate(view["flying"]):
        sent = {(f["dst"], f["label"]) for f in flying}
        assert {(d, c["name"]) for d, cells in enumerate(view["held"][n + 1]) for c in cells if c["came"]} == sent
    assert not any(c["came"] for cells in view["held"][0] for c in cells)
    # a chunk of which half was sent on and nothing came is not new; one whose sum grew is
    view = explore.collective("reduce-scatter", "v5p", 4e6, devices=4, shape="ring", step=1)
    came = [[(c["name"], c["came"]) for c in cells] for cells in view["held"][1]]
    assert came[0] == [("0", False), ("1", True), ("3", True)]


def test_views_do_not_share_what_they_hold() -> None:
    one = explore.collective("all-gather", "v5p", 8e6, devices=4, shape="ring")
    one["held"][0][0].clear()
    one["steps"][0]["seconds"] = 5
    other = explore.collective("all-gather", "v5p", 8e6, devices=4, shape="ring")
    assert len(other["held"][0][0]) == 1 and other["steps"][0]["seconds"] < 1


# ---- whose links ------------------------------------------------------------------------------------------------------------


def test_links_are_those_of_the_chip() -> None:
    mesh = sb.mesh({"Y": 16, "X": 8}, on="v5p:4x4x8")
    assert links_of("v5p", 8, "ring") == sb.mesh({"X": 8, "Y": 16}, on="v5p:4x4x8").segments("X")[0].__class__(
        "ici0", *(getattr(mesh.segments("X")[0], n) for n in ("size", "kind", "bytes_per_s", "hop_latency_s", "launch_latency_s"))
    )
    for chip in ("h100", "a100-80gb", "gb200"):
        assert links_of(chip, 4, "switch") == sb.mesh({"X": 4}, on=f"{chip}:1x4").segments("X")[0]
    assert explore.collective("all-gather", mesh, 2**24, "X")["seconds"] == pytest.approx(
        PLAY.figure(**PLAY.start).view["seconds"]
    )


def test_a_chip_is_offered_where_its_links_make_the_shape_and_have_a_rate() -> None:
    offered = {shape: [key for key, _ in chips_joined(shape)] for shape in SHAPES}
    for shape, keys in offered.items():
        for key in keys:
            figure = PLAY.figure(**{**state("all-gather", shape, 8), "chip": key})
            assert figure.view["bytes_per_s"] > 0 and figure.view["chip"] == sb.chip(key).name
    assert offered["ring"] == offered["line"] and {"v5e", "v5p", "v6e"} <= set(offered["ring"])
    assert {"h100", "b200"} <= set(offered["switch"]) and not set(offered["ring"]) & set(offered["switch"])
    assert not {"mi300x", "t4", "tpu8i"} & set(offered["switch"])  # no switch, no rate, no GPU


def test_a_shape_brings_a_chip_that_has_it_and_a_shorter_collective_its_last_step() -> None:
    assert PLAY.state({"shape": "switch"})["chip"] == "h100" and PLAY.state({"shape": "line", "chip": "h100"})["chip"] == "v5e"
    assert PLAY.state({"shape": "line", "chip": "v6e"})["chip"] == "v6e"
    assert PLAY.state({"kind": "permute", "step": 4})["step"] == 1
    with pytest.raises(ScalebookError, match=r"unknown chip .*'v55'; did you mean"):
        PLAY.state({"chip": "v55"})
    with pytest.raises(ScalebookError, match=r"devices .* from 2 to 8; found 9"):
        PLAY.state({"devices": 9})


@pytest.mark.parametrize(
    ("where", "options", "says"),
    [
        ("v5p", {"devices": 8, "shape": "switch"}, "links of TPU v5p make a ring or a line; a switch was asked for"),
        ("h100", {"devices": 8, "shape": "ring"}, "links of H100 SXM make a switch; a ring was asked for"),
        ("v5p", {"devices": 9, "shape": "ring"}, "devices, how many .* at most 8; found 9"),
        ("v5p", {"shape": "ring"}, "devices, how many .*; found None"),
        ("v5p", {"devices": 8}, "unknown shape of a group of devices, shape= None. Known: ring, line, switch"),
        ("v2", {"devices": 8, "shape": "ring"}, "rate of ici0 has no source"),
        ("tpu8i", {"devices": 8, "shape": "ring"}, "not wired as a torus"),
        (Segment("a", 4, "ring", 1e9, 0.0, 0.0), {"devices": 4}, "devices= and shape= go with a chip"),
        (Segment("a", 4, "ring", 1e9, 0.0, 0.0), {"algorithm": "rotated"}, "unknown algorithm for all-gather over a ring"),
        (5, {}, "found 5"),
        ([5], {}, "found"),
        ("v5p", {"devices": 4, "shape": "ring", "panels": ()}, "panels= lists .* found none"),
        ("v5p", {"devices": 4, "shape": "ring", "panels": 5}, "has 2 steps: show the state after 0 to 2 of them; found 5"),
    ],
)
def test_what_cannot_be_had_is_said(where: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ScalebookError, match=says):
        explore.collective("all-gather", where, 1e6, **options)


def test_a_schedule_is_timed_anew_only_for_links_like_its_own() -> None:
    run = sb.simulate("all-to-all", (Segment("a", 4, "ring", 1e9, 1e-6, 2e-6),), 4096)
    other = (Segment("b", 4, "ring", 5e10, 3e-6, 1e-5),)
    again, anew = run.retimed(other, 12345.0), sb.simulate("all-to-all", other, 12345.0)
    assert again.seconds == pytest.approx(anew.seconds, rel=1e-12) and again.launch == anew.launch == 1e-5
    assert [s.seconds for s in again.steps] == pytest.approx([s.seconds for s in anew.steps], rel=1e-12)
    assert again.states() == [again.holdings(n) for n in range(3)] == anew.states()
    for wrong in (Segment("a", 4, "line", 1e9, 0.0, 0.0), Segment("a", 5, "ring", 1e9, 0.0, 0.0)):
        with pytest.raises(MeshError, match=r"over ring a of 4, .* are not those over"):
            run.retimed((wrong,), 1.0)


# ---- what is drawn ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [680, 358])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_play_head_can_be_dragged_to_every_step(kind: str, shape: str, width: int) -> None:
    for step in range(step_count(kind, shape, 8) + 1):
        figure = PLAY.live(state(kind, shape, 8, step))
        root = ET.fromstring(figure.svg(width))
        (area,) = (e for e in root.iter("rect") if e.get("class") == "sb-drag")
        assert (area.get("data-key"), area.get("data-axis")) == ("step", "x")
        stops = json.loads(area.get("data-stops", ""))
        (head,) = (e for e in root.iter("line") if e.get("class") == "sb-now")
        assert [n for _, n in stops] == list(range(len(figure.view["steps"]) + 1))
        assert float(head.get("x1", 0)) == pytest.approx(stops[step][0], abs=0.06)
        assert [x for x, _ in stops] == sorted(x for x, _ in stops)
        (handle,) = (e for e in root.iter("path") if e.get("class") == "sb-handle")
        xs = [float(x) for x in re.findall(r"[ML]([\d.]+)", handle.get("d", ""))]
        assert max(xs) - min(xs) >= 18


def test_a_figure_that_does_not_answer_has_no_hooks() -> None:
    for name, fixed in (
        ("stepper", PLAY.figure(**PLAY.start)),
        ("panels", figures.collective("all-gather", "v5p", 1e6, devices=4, shape="ring")),
    ):
        assert not re.search(r"sb-drag|data-set|data-key|sb-handle", fixed.svg()), name


@pytest.mark.parametrize("width", [680, 358])
@pytest.mark.parametrize(("kind", "shape", "k"), GRID)
def test_each_link_says_what_it_has_sent(kind: str, shape: str, k: int, width: int) -> None:
    run, last = simulated(kind, shape, k), step_count(kind, shape, k)
    for step in {0, last // 2, last}:
        root = ET.fromstring(PLAY.live(state(kind, shape, k, step)).svg(width))
        said = [e.text for e in root.iter("text") if e.get("class") == "sb-tick" and e.get("x") == str(width)]
        pairs = [(d, (d + 1) % k) for d in range({"ring": k, "line": k - 1, "switch": 0}[shape])]
        sent = [t for s in run.steps[:step] for t in s.transfers]
        if shape == "switch":
            wanted = [math.fsum(t.bytes for t in sent if t.src == d) for d in range(k)]
        else:  # the way on of a link is that of its first device, the way back that of its second; a ring of two has two links
            ways = [(a, "+", b, "-") for a, b in pairs]
            wanted = [math.fsum(t.bytes for t in sent if (t.src, t.direction) in ((a, p), (b, m))) for a, p, b, m in ways]
        assert said == [sb.si(n, "B") for n in wanted]


def test_what_is_said_follows_from_the_state() -> None:
    said = [plain(PLAY.figure(**state("all-gather", "ring", 8, n)).readout).replace("\u00a0", " ") for n in (0, 2, 4)]
    start = "8 devices on a ring, 90 GB/s one way per link: an all-gather of 16.8 MB takes 4 steps and 85.6 µs; each device must receive 14.7 MB."
    assert all(s.startswith(start) for s in said)
    assert said[0].endswith("In step 1 the busiest link carries 2.1 MB one way, in 24.3 µs; numbers are chunks.")
    assert (
        "After 2 steps, at 48.6 µs, the links have carried 67.1 MB of 117 MB; what has just come has a rim. In step 3" in said[1]
    )
    assert said[2].endswith("At the end the links have carried 117 MB in all; what has just come has a rim; numbers are chunks.")


@pytest.mark.parametrize(("chip", "shape", "kind", "starts"), [
    ("h100", "switch", "all-gather", 1), ("h100", "switch", "all-reduce", 2), ("tpu7x", "ring", "all-to-all", 1), ("tpu7x", "ring", "all-reduce", 2),
])  # fmt: skip
@pytest.mark.parametrize("width", [680, 358])
def test_the_time_to_launch_is_said_and_drawn(chip: str, shape: str, kind: str, starts: int, width: int) -> None:
    """An all-reduce is launched twice. While it is launched no lane is busy, and the picture says why."""
    live = PLAY.live(PLAY.state({"kind": kind, "shape": shape, "chip": chip, "devices": 4, "nbytes": 2**14, "step": 0}))
    launch = sb.chip(chip).launch_latency_s
    assert launch and len(launches(live.view)) == starts
    for start, end in launches(live.view):
        assert end - start == pytest.approx(launch)
        assert not any(b["start"] < end - 1e-12 and b["end"] > start + 1e-12 for lane in live.view["lanes"] for b in lane["busy"])
    words = f"{sb.si(starts * launch, 's')} to launch"
    assert f"{sb.si(live.view['seconds'], 's')}, of which {words};" in plain(live.readout)
    assert words in PLAY.table(live.view).notes[0]
    root = ET.fromstring(live.svg(width))
    assert [e.text for e in root.iter("text")].count("launch") == starts
    without = PLAY.live(state(kind, "ring", 4))
    assert launches(without.view) == [] and "launch" not in plain(without.readout) + without.svg(width) + str(
        PLAY.table(without.view)
    )


def test_the_table_says_who_holds_and_sends_what() -> None:
    table = PLAY.table(PLAY.figure(**state("all-to-all", "ring", 4, 1)).view)
    text = str(table).replace("\u00a0", " ")
    assert table.caption.startswith("All-to-all over a ring of 4 devices, after step 1") and len(table.rows) == 4
    assert table.column("holds messages, from → to")[0] == "0→0; 1→0; 3→0; 3→1 (first half); 1→3 (second half)"
    assert table.column("sends in step 2")[0].replace("\u00a0", " ") == "½ message to 1, 524 kB; ½ message to 3, 524 kB"
    assert len(table.notes) == 2 and "Step 2 begins at" in text
    table = PLAY.table(PLAY.figure(**state("reduce-scatter", "ring", 4, 1)).view)
    assert "1 (first half 1 term, second half 2 terms)" in table.column("holds chunks, with how many of 4 terms are summed")[0]
    last = PLAY.table(PLAY.figure(**state("permute", "line", 4, 1)).view)
    assert [row[1:3] for row in last.rows] == [("3", "nothing"), ("0", "nothing"), ("1", "nothing"), ("2", "nothing")]


def test_a_step_is_redrawn_fast_enough_for_dragging() -> None:
    """Half of a frame here, with slack; a browser's Python is several times slower, and `make bench` measures it there."""
    for kind in KINDS:
        for step in (0, 2):
            request = json.dumps(
                {"do": "explore", "name": "collective", "state": state(kind, "ring", 8, min(step, step_count(kind, "ring", 8)))}
            )
            assert json.loads(answer(request))["ok"]
            best = math.inf
            for _ in range(5):
                start = time.process_time()
                answer(request)
                best = min(best, time.process_time() - start)
            assert best < 0.008, (kind, step)
