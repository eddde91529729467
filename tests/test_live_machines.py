"""The explorers of the chapter on TPUs: what they show against the library's values and searches of our own, over a grid of states."""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from test_routes import cables, search

import scalebook as sb
from scalebook.errors import MeshError, ScalebookError, SizeError, TopologyError
from scalebook.explore.tpus import MOVED
from scalebook.figures import Figure, tiles
from scalebook.figures.figure import plain
from scalebook.hierarchy import levels
from scalebook.live.explorers import Explorer, named
from scalebook.live.requests import answer
from scalebook.live.tiles import shape_of
from scalebook.routes import diameter, hops, mean_hops
from scalebook.systolic import Timetable, cycles, simulate, utilisation
from scalebook.tiling import padding
from scalebook.units import binary, percent, si

NAMES = ("systolic", "torus", "tiles", "memory_levels")
HOOKS = re.compile(r"data-set|data-stops|sb-drag|sb-handle")


def shown(name: str, **state: Any) -> tuple[dict[str, Any], Figure]:
    """The settled state of an explorer, and its figure in a page."""
    explorer = named(name)
    settled = explorer.state(state)
    return settled, explorer.live(settled)


def stops(svg: str, key: str) -> list[list[Any]]:
    """The places of the one area in which a key is dragged."""
    ((found),) = re.findall(rf'class="sb-drag" data-key="{key}" data-axis="x" data-stops="([^"]*)"', svg)
    listed: list[list[Any]] = json.loads(html.unescape(found))
    return listed


def said(svg: str) -> list[str]:
    """The words in a picture."""
    return [html.unescape(re.sub(r"<[^>]+>", "", t)) for t in re.findall(r"<text[^>]*>(.*?)</text>", svg)]


# ---- all four ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [680, 358])
def test_hooks_are_in_the_page_only(name: str, width: int) -> None:
    explorer = named(name)
    state = explorer.state({})
    assert not HOOKS.search(explorer.figure(**state).svg(width))
    live = explorer.live(state).svg(width)
    assert bool(HOOKS.search(live)) == (name != "tiles")
    without = re.sub(r"<rect[^>]*(?:sb-drag|data-set)[^>]*/>", "", live)
    assert not re.search(r"data-(?:set|stops|key)", without)


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_says_what_the_figure_says(name: str) -> None:
    _, figure = shown(name)
    reply = json.loads(
        answer(json.dumps({"do": "explore", "name": name, "state": {}, "width": 358, "with": ["table", "python"]}))
    )
    assert reply["ok"] and reply["svg"] == figure.svg(358) and reply["readout"] == figure.readout
    assert set(reply["controls"]) == set(reply["state"]) == {c.key for c in named(name).controls}
    assert "<table" in reply["table"] and "sb.figures." in reply["python"]


# ---- systolic ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 5), st.integers(1, 3))
def test_the_timetable_is_what_the_simulation_finds(rows: int, R: int, C: int, tiles: int) -> None:
    """Cell by cell and cycle by cycle: the closed forms that are drawn, against the cells' own rules."""
    run = simulate([[1] * R] * rows, [[1] * (C * tiles)] * R, dim=(R, C))
    table = Timetable(rows, tiles, (R, C))
    assert (table.cycles, table.busy) == (run.cycles, run.busy)
    for state in run.states:
        for cells, spots in zip(state.cells, table.at(state.cycle), strict=True):
            for cell, spot in zip(cells, spots, strict=True):
                assert spot.row == cell.row and spot.tile == cell.tile
                assert (spot.waiting, spot.moving) == (cell.waiting is not None, cell.moving is not None)
                assert (spot.tile is not None) == (cell.weight is not None)


@pytest.mark.parametrize(("rows", "dim", "tiles"), list(itertools.product((1, 3, 8, 32), (2, 5, 8), (1, 4))))
def test_the_stepper_shows_the_run(rows: int, dim: int, tiles: int) -> None:
    run = simulate([[1] * dim] * rows, [[1] * (dim * tiles)] * dim, dim=dim)
    total = cycles(rows, dim, dim * tiles, dim=dim)
    useful = percent(utilisation(rows, dim, dim * tiles, dim=dim))
    for cycle in {0, dim, dim + 1, total // 2, total - 1}:
        settled, figure = shown("systolic", rows=rows, dim=dim, tiles=tiles, cycle=cycle)
        assert settled["cycle"] == cycle
        state = run.states[cycle]
        (panel,) = figure.view["panels"]
        assert [[c["row"] for c in line] for line in panel["cells"]] == [[c.row for c in line] for line in state.cells]
        assert [(o["row"], o["column"], o["tile"]) for o in panel["outputs"]] == [
            (o.row, o.column, o.tile) for o in state.outputs
        ]
        words = plain(figure.readout)
        assert f"Cycle {cycle}, {panel['phase']}: {state.busy} of {dim * dim} cells multiply." in words
        assert f"{total} cycle{'s' * (total > 1)}," in words and f"at work {useful} of the time" in words
        numbers = [w for w in said(figure.svg(680)) if w.isdigit()]
        assert len(numbers) == state.busy + len(state.outputs) + 1  # in the cells, below them, and the play head's cycle
    table = named("systolic").table(figure.view)
    assert table.column("cells at work") == [str(n) for n in run.busy]
    assert table.column("cycle") == [str(n) for n in range(total)]


def test_the_play_head_stands_on_its_cycle_and_can_be_dragged_to_every_one() -> None:
    _, figure = shown("systolic", rows=8, dim=4, tiles=1, cycle=10)
    svg = figure.svg(680)
    places = stops(svg, "cycle")
    assert [n for _, n in places] == list(range(18))
    ((head),) = re.findall(r'<line x1="([\d.]+)"[^>]*class="sb-now"', svg)
    assert float(head) == pytest.approx(places[10][0], abs=0.06)
    ((bar),) = re.findall(r'<rect x="([\d.]+)"[^>]*height="56" style="fill:var\(--sb-math\)"', svg)  # all cells at work
    assert float(bar) <= float(head) <= float(bar) + 680 / 18


def test_a_cycle_beyond_a_shorter_run_is_its_last() -> None:
    settled, _ = shown("systolic", rows=1, dim=2, tiles=1, cycle=100)
    assert settled["cycle"] == cycles(1, 2, 2, dim=2) - 1


def test_few_rows_wait_for_weights() -> None:
    def waits(rows: int) -> bool:
        return "waits for weights" in shown("systolic", rows=rows, dim=4, tiles=3)[1].view["phases"]

    assert [waits(n) for n in (1, 2, 3, 4, 8)] == [True, True, True, False, False]


@pytest.mark.parametrize(("rows", "dim", "tiles"), [(2, 4, 3), (8, 4, 1), (2, 4, 1), (4, 8, 3), (8, 8, 2), (5, 6, 4)])
def test_the_phases_are_what_the_page_says(rows: int, dim: int, tiles: int) -> None:
    """By the simulated run: draining when nothing enters any more, waiting while a cell is between two tiles, filling before all of
    them have begun."""
    run = simulate([[1] * dim] * rows, [[1] * (dim * tiles)] * dim, dim=dim)
    busy = [[[cell.row is not None for cell in line] for line in state.cells] for state in run.states]
    entering = [n for n, cells in enumerate(busy) if any(line[0] for line in cells)]
    top = [n for n, cells in enumerate(busy) if cells[0][0]]
    worked = {(r, c): [n for n, cells in enumerate(busy) if cells[r][c]] for r in range(dim) for c in range(dim)}
    for n, phase in enumerate(shown("systolic", rows=rows, dim=dim, tiles=tiles, cycle=0)[1].view["phases"]):
        between = any(m[0] < n < m[-1] and n not in m for m in worked.values())
        assert phase == (
            "weights move in" if n < entering[0]
            else "all at work" if run.busy[n] == dim * dim
            else "draining" if n > entering[-1]
            else "waits for weights" if between
            else "filling" if n < worked[dim - 1, dim - 1][0]
            else "last row enters"
        )  # fmt: skip
        assert phase != "last row enters" or n > top[-1]


# ---- torus -------------------------------------------------------------------------------------------------------------

SLICES = ("v5e:1x1", "v5e:4x4", "v5e:8x16", "v5e:16x16", "v5p:2x2x1", "v5p:4x4x4", "v5p:4x4x8")


def beside(shape: tuple[int, ...], wraps: tuple[bool, ...], place: tuple[int, ...]) -> set[tuple[int, ...]]:
    """The chips at the other end of each cable of a chip, cables laid one by one."""
    return {other for cable in cables(shape, wraps) if place in cable for other in cable if other != place}


def chips_of(spec: str) -> Iterator[tuple[int, ...]]:
    shape = sb.topology(spec).shape
    every = list(itertools.product(*map(range, shape)))
    yield from every[:: max(1, len(every) // 12)]


@pytest.mark.parametrize("spec", SLICES)
@pytest.mark.parametrize("compare", [False, True])
def test_neighbours_and_hops_are_those_of_a_search(spec: str, compare: bool) -> None:
    t = sb.topology(spec)
    shape = t.shape
    kept = [i for i, n in enumerate(shape) if n > 1] or [0]
    closed = [(True,) * len(shape), (False,) * len(shape)] if compare else [t.wraparound]
    for place in chips_of(spec):
        _, figure = shown("torus", topology=spec, chip=",".join(map(str, place)), compare=compare)
        for grid, wraps in zip(figure.view["grids"], closed, strict=True):
            near = beside(shape, wraps, place)
            assert {tuple(p) for p in grid["near"]} == {tuple(p[i] for i in kept) for p in near}
            found = search(shape, wraps, place)
            assert grid["hops"] == [found[p] for p in itertools.product(*map(range, shape))]
            assert max(grid["hops"]) == grid["farthest"]
        svg = figure.svg(680)
        assert svg.count('class="sb-chosen"') == sum(len(g["near"]) for g in figure.view["grids"])
        words = plain(figure.readout)
        assert all(f"({', '.join(map(str, p))})" in words for p in [place, *beside(shape, closed[0], place)])


@pytest.mark.parametrize("spec", SLICES[1:])
def test_what_the_slice_has(spec: str) -> None:
    t = sb.topology(spec)
    _, figure = shown("torus", topology=spec, compare=False)
    laid, open_ = cables(t.shape, t.wraparound), cables(t.shape, (False,) * len(t.shape))
    farthest = max(max(search(t.shape, t.wraparound, p).values()) for p in [(0,) * len(t.shape)])
    words = plain(figure.readout)
    around = len(laid) - len(open_)
    assert f"has {len(laid)} link{'s' * (len(laid) > 1)}, {around or 'none'} of them around" in words
    assert f"no two chips are further apart than {diameter(spec)} hop{'s' * (diameter(spec) > 1)}" in words
    assert diameter(spec) == farthest  # seen from a corner, whatever closes
    assert t.bisection_bytes_per_s is not None and f"carries {si(t.bisection_bytes_per_s, 'B/s')} one way" in words
    notes = " ".join(named("torus").table(figure.view).notes)
    assert f"Links: {len(laid)}, of which {around}" in notes and si(t.bisection_bytes_per_s, "B/s") in notes
    assert f"{mean_hops(spec):.3g}"[:4] in notes


@pytest.mark.parametrize("spec", ["v5e:4x4", "v5e:8x16", "v5p:4x4x4"])
def test_the_table_has_every_chip_with_its_hops_and_neighbours(spec: str) -> None:
    t = sb.topology(spec)
    start = tuple(n // 2 for n in t.shape)
    _, figure = shown("torus", topology=spec, chip=",".join(map(str, start)), compare=False)
    table = named("torus").table(figure.view)
    every = list(itertools.product(*map(range, t.shape)))
    for place, row in zip(every, table.rows, strict=True):
        name, away, near = map(str, row)
        assert name == f"({', '.join(map(str, place))})" and away == str(hops(spec, start, place))
        told = {tuple(map(int, p.split(", "))) for p in re.findall(r"\(([\d, ]+)\)", near)}
        assert told == beside(t.shape, t.wraparound, place)


@pytest.mark.parametrize(
    ("spec", "compare"), [("v5e:4x4", True), ("v5e:16x16", False), ("v5p:4x4x8", False), ("v5p:2x2x1", False)]
)
@pytest.mark.parametrize("width", [680, 358])
def test_every_chip_can_be_pointed_at_where_it_is_drawn(spec: str, compare: bool, width: int) -> None:
    """Each area that sets a chip lies around that chip's tile, and setting it gives the chip as the source."""
    _, figure = shown("torus", topology=spec, compare=compare)
    svg = figure.svg(width)
    grids = 2 if compare else 1
    every = [",".join(map(str, p)) for p in itertools.product(*map(range, sb.topology(spec).shape))]
    areas = re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="[\d.]+" fill="none"[^>]*data-set="([^"]*)"', svg
    )
    assert [json.loads(html.unescape(a[3]))["chip"] for a in areas] == every * grids
    tiles = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"[^>]*class="sb-(?:hop|source)"', svg)
    assert len(tiles) == len(areas)
    for area, tile in zip(areas, tiles, strict=True):
        x, y, side = map(float, area[:3])
        left, top, chip = map(float, tile)
        assert x < left and y < top and left + chip < x + side + 0.01 and top + chip < y + side + 0.01
    last, _ = shown("torus", topology=spec, chip=every[-1])
    assert last["chip"] == every[-1]


def test_the_links_of_the_chosen_chip_are_drawn_to_its_neighbours() -> None:
    for place, wraps, straight, around in (("0,0", False, 2, 0), ("0,0", True, 2, 2), ("1,2", True, 4, 0), ("3,1", False, 3, 0)):
        _, figure = shown("torus", topology="v5e:4x4", chip=place, compare=True)
        own = re.findall(r'd="([^"]*)" fill="none" class="sb-own"', figure.svg(680))
        d = own[0 if wraps else 1]
        assert (len(re.findall("[HV]", d)), d.count("L") // 5) == (straight, around)


def test_a_chip_stays_inside_a_smaller_slice_and_gets_more_coordinates_in_a_deeper_one() -> None:
    assert shown("torus", topology="v5e:2x4", chip="3,3")[0]["chip"] == "1,3"
    assert shown("torus", topology="v5p:4x4x4", chip="3,2")[0]["chip"] == "3,2,0"
    assert shown("torus", topology="v5e:4x4", chip="3,2,1")[0]["chip"] == "3,2"


@pytest.mark.parametrize(
    ("state", "kind", "words"),
    [
        ({"topology": "v5x:4x4"}, ScalebookError, "v5x"),
        ({"topology": "v5e:3x5"}, TopologyError, "Nearest"),
        ({"topology": ""}, TopologyError, "chip:shape"),
        ({"topology": "h100:2x8"}, TopologyError, "joined by switches"),
        ({"topology": "v4:8x16x16"}, TopologyError, "too many for a picture.*draw a smaller slice, such as v4:8x8x8"),
        ({"topology": "v5p:8x8x8", "compare": True}, TopologyError, "16 planes.*leave the comparison out.*such as v5p:4x8x8"),
        ({"topology": "v3:16x32"}, TopologyError, "such as v3:16x16"),
        ({"chip": "a"}, TopologyError, "joined by commas, such as 1,2; found 'a'"),
        ({"mesh": "X=3"}, MeshError, "must be the same"),
        ({"mesh": "X"}, MeshError, "X=4, Y=2"),
    ],
)
def test_a_slice_that_cannot_be_shown(state: dict[str, Any], kind: type[ScalebookError], words: str) -> None:
    with pytest.raises(kind, match=words):
        shown("torus", **state)
    reply = json.loads(answer(json.dumps({"do": "explore", "name": "torus", "state": state})))
    assert not reply["ok"] and "bug" not in reply and re.search(words, reply["error"])


def test_the_slices_that_a_message_offers_can_be_drawn() -> None:
    for chip in (c for c in sb.chips() if c.torus_dims):
        for compare, largest in ((True, "4x8x8"), (False, "8x8x8")):
            _, figure = shown("torus", topology=f"{chip.key}:{'16x16' if chip.torus_dims == 2 else largest}", compare=compare)
            assert figure.svg(680)


def test_a_mesh_on_the_slice_is_named_where_it_lies() -> None:
    _, figure = shown("torus", topology="v5e:4x4", mesh="X=2, Y=8")
    assert "X = 2 lies on pairs of neighbours in each row" in plain(figure.readout)
    assert figure.svg(680).count('class="sb-bracket"') == 2 * 4


# ---- tiles -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4096, 1), (1, 4096), (1, 1), (4095, 128), (8, 100_000_001), (8, 128)])
def test_a_sliver_of_data_or_of_padding_is_still_seen(shape: tuple[int, int]) -> None:
    (a,) = tiles([(shape, "fp32")]).view["arrays"]
    svg = tiles([(shape, "fp32")]).svg(358)
    (data,) = re.findall(r'<rect x="0" y="[\d.]+" width="([\d.]+)" height="([\d.]+)" style="fill:var\(--sb-hbm\)"', svg)
    (frame,) = re.findall(r'<rect x="0" y="[\d.]+" width="([\d.]+)" height="([\d.]+)" style="fill:none', svg)
    for drawn, whole, n, padded in zip(
        map(float, data), map(float, frame), (a["lanes"], a["rows"]), a["padded"][::-1], strict=True
    ):
        assert drawn >= 1.99
        assert drawn == pytest.approx(whole) if n == padded else drawn <= whole - 1.99


@pytest.mark.parametrize(
    ("shape", "dtype"),
    list(
        itertools.product(
            [(8, 100), (1, 300), (3, 5), (1024, 8, 64), (128, 2, 128), (2048, 1, 128, 128, 4)],
            ("fp32", "bf16", "int8", "fp8", "int4"),
        )
    ),
)
def test_tiles_are_the_librarys(shape: tuple[int, ...], dtype: str) -> None:
    _, figure = shown("tiles", shape=str(list(shape)), dtype=dtype, best=True)
    table = named("tiles").table(figure.view)
    orders: tuple[Any, ...] = (None, "best")
    for a, row, order in zip(figure.view["arrays"], table.rows, orders, strict=True):
        p = padding(shape, dtype, minor_to_major=order)
        lanes, rows = p.minor_to_major[:2]
        assert (a["lanes"], a["rows"], a["padded"]) == (shape[lanes], shape[rows], [p.padded[rows], p.padded[lanes]])
        assert (
            a["others"] * a["rows"] * a["lanes"]
            == sb.explore.tiles([(shape, dtype)])["arrays"][0]["others"] * shape[-1] * shape[-2]
        )
        assert a["factor"] == float(p.factor) and row[5:7] == (binary(p.nbytes), binary(p.padded_nbytes))
        assert binary(p.padded_nbytes) in plain(figure.readout)
    alone = shown("tiles", shape=str(shape), dtype=dtype, best=False)[1].view["arrays"]
    assert [a["padded"] for a in alone] == [figure.view["arrays"][0]["padded"]]


def test_shapes_as_they_are_typed() -> None:
    assert (
        shape_of("[8, 100]")
        == shape_of("8,100")
        == shape_of("(8, 100,)")
        == shape_of("8 x 100")
        == shape_of(" 8×100 ")
        == (8, 100)
    )
    for text in ("", "[]", "a, b", "8 100", "[8, -1]", "8.5, 3", "1" * 13, "1," * 9 + "1", "８, 100"):
        with pytest.raises(SizeError, match="such as"):
            shape_of(text)
    for text, words in (("[5]", "two to eight"), ("[0, 5]", "from 1 on")):
        with pytest.raises(SizeError, match=words):
            shown("tiles", shape=text)


# ---- levels of memory --------------------------------------------------------------------------------------------------

TPUS = tuple(c.key for c in sb.chips() if c.kind == "tpu")


@pytest.mark.parametrize(("chip", "nbytes"), list(itertools.product(TPUS, (MOVED[0], MOVED[7], MOVED[-1]))))
def test_times_are_the_librarys(chip: str, nbytes: int) -> None:
    _, figure = shown("memory_levels", chip=chip, nbytes=nbytes)
    rows = {str(row[0]): [str(c) for c in row[1:]] for row in named("memory_levels").table(figure.view).rows}
    seconds = {}
    for level in levels(chip):
        fits = "unknown" if level.nbytes is None else "yes" if nbytes <= level.nbytes else "no"
        assert rows[level.name] == [binary(level.nbytes), si(level.bytes_per_s, "B/s"), si(level.seconds(nbytes), "s"), fits]
        if (needed := level.seconds(nbytes)) is not None:
            seconds[level.name] = needed
    words = plain(figure.readout)
    assert si(min(seconds.values()), "s") in words and si(max(seconds.values()), "s") in words
    assert [level["name"] for level in figure.view["levels"] if level["fits"] is False] == [
        n for n, r in rows.items() if r[3] == "no"
    ]


@pytest.mark.parametrize("width", [680, 358])
def test_the_dot_of_hbm_is_dragged_along_its_times(width: int) -> None:
    handles = []
    for nbytes in MOVED:
        svg = shown("memory_levels", nbytes=nbytes)[1].svg(width)
        places = stops(svg, "nbytes")
        assert [n for _, n in places] == list(MOVED)
        ((x),) = re.findall(r'<circle cx="([\d.]+)"[^>]*class="sb-handle"', svg)
        assert float(x) == pytest.approx({n: at for at, n in places}[nbytes], abs=0.06)
        handles.append((float(x), places))
    assert handles == sorted(handles, key=lambda h: h[0])
    assert all(p == handles[0][1] for _, p in handles)  # the axis stays where it is while the dot is dragged
    steps = [b - a for (a, _), (b, _) in itertools.pairwise(handles)]
    assert steps[0] / steps[1] == pytest.approx(0.301 / 0.398, rel=0.02)  # logarithmic: from 1 to 2, from 2 to 5


def test_a_copy_of_few_bytes_between_chips_is_mostly_latency() -> None:
    view = shown("memory_levels", nbytes=MOVED[0])[1].view
    ici = next(x for x in view["levels"] if x["key"] == "ici")
    hop = sb.chip("v5e").hop_latency_s
    assert hop and ici["seconds"] == pytest.approx(hop + MOVED[0] / ici["rate"]) and hop > ici["seconds"] / 2


# ---- in code -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("systolic", {"rows": 5, "dim": 3, "tiles": 2, "cycle": 7}),
        ("torus", {"topology": "v5p:4x4x4", "chip": "1,2,3", "compare": False}),
        ("torus", {"topology": "v5e:4x4", "chip": "1,2", "mesh": "X=2, Y=8", "compare": True}),
        ("tiles", {"shape": "[3, 300]", "dtype": "int4", "best": True}),
        ("tiles", {"shape": "3 x 300", "dtype": "fp32", "best": False}),
        ("memory_levels", {"chip": "v6e", "nbytes": 10**6}),
    ],
)
def test_the_code_gives_the_same_figure(name: str, state: dict[str, Any]) -> None:
    explorer: Explorer = named(name)
    settled = explorer.state(state)
    code = explorer.python(**settled)
    *before, last = code.strip().split("\n", 2)
    names: dict[str, Any] = {}
    exec("\n".join(before), names)
    figure = eval(last, names)
    assert figure.svg(680) == explorer.figure(**settled).svg(680)
