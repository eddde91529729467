"""The sharding viewer: what it shows is what the library computes, for layouts, meshes and sizes of every sort."""

from __future__ import annotations

import itertools
import json
import math
import re
import time
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import scalebook as sb
from scalebook import explore, figures
from scalebook.errors import MeshError, NotationError, ScalebookError, SizeError
from scalebook.figures.array_shape import Shape
from scalebook.figures.figure import plain
from scalebook.live import EXPLORERS
from scalebook.live.requests import answer

VIEWER = EXPLORERS["sharded_array"]
SIZES = {"B": 64, "I": 128, "J": 256}
ARRAYS = (
    "x[I]", "x[I_X]", "x[I_YX]", "A[I, J]", "A[I_X, J]", "A[I, J_Y]", "A[I_X, J_Y]", "A[I_XY, J]", "A[I_YX, J]", "A[I, J]{U_X}",
    "A[I, J_Y]{U_X}", "A[I, J]{U_XY}", "A[B_X, I, J]", "A[B, I_X, J_Y]", "A[B_XY, I, J]", "A[B_Y, I, J_X]",
)  # fmt: skip
MESHES = ({"X": 2, "Y": 4}, {"X": 4, "Y": 2}, {"X": 4, "Y": 8}, {"X": 1, "Y": 3}, {"X": 2, "Y": 2, "Z": 2})
GRID = [(a, m) for a in ARRAYS for m in MESHES if m["Y"] != 3 or "Y" not in a]


def text(pairs: dict[str, int]) -> str:
    return ", ".join(f"{name}={n}" for name, n in pairs.items())


def state(
    array: str, mesh: dict[str, int], device: int = 0, dtype: str = "bf16", sizes: dict[str, int] = SIZES
) -> dict[str, Any]:
    return VIEWER.state({"array": array, "mesh": text(mesh), "sizes": text(sizes), "dtype": dtype, "device": device})


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "int8", "int4"])
@pytest.mark.parametrize(("array", "mesh"), GRID)
def test_blocks_bytes_and_copies_are_the_librarys(array: str, mesh: dict[str, int], dtype: str) -> None:
    s = sb.sharding(array)
    held = s.slices(SIZES, mesh)
    for device, (at, block) in enumerate(held.items()):
        view = VIEWER.figure(**state(array, mesh, device, dtype)).view
        assert (view["devices"][device]["at"], view["devices"][device]["block"]) == (list(at), [list(b) for b in block])
        assert view["bytes"] == s.bytes_per_device(SIZES, mesh, dtype)
        assert view["array_bytes"] == math.prod(SIZES[letter] for letter in s.letters) * sb.itemsize(dtype)
        assert (view["blocks"], view["terms"], len(view["holders"])) == (s.shards(mesh), s.summands(mesh), s.replicas(mesh))
        # counted by hand: who has the same block, and the same place along the axes of the pending sum
        names, mine = list(mesh), dict(zip(mesh, at, strict=True))
        same = [
            i
            for i, (other, what) in enumerate(held.items())
            if what == block and all(other[names.index(a)] == mine[a] for a in s.pending)
        ]
        assert view["holders"] == same


@pytest.mark.parametrize(("array", "mesh"), GRID)
def test_the_sentence_says_block_bytes_and_copies(array: str, mesh: dict[str, int]) -> None:
    s = sb.sharding(array)
    for device, block in enumerate(s.slices(SIZES, mesh).values()):
        said = plain(VIEWER.figure(**state(array, mesh, device)).readout).replace("\u00a0", " ")
        name = array.partition("[")[0]
        assert f"{name}[{', '.join(f'{a}:{b}' for a, b in block)}]" in said
        assert sb.binary(s.bytes_per_device(SIZES, mesh)).replace("\u00a0", " ") in said
        copies, what = s.replicas(mesh), "term" if s.summands(mesh) > 1 else "block"
        assert (f"{copies} copies of each {what}" if copies > 1 else f"one copy of each {what}") in said
        together = s.bytes_per_device(SIZES, mesh) * math.prod(mesh.values()) // (2 * math.prod(s.shape(SIZES)))
        assert (f"together hold {together} times" in said) == (together > 1)


def test_the_table_is_the_picture_in_numbers() -> None:
    table = VIEWER.table(VIEWER.figure(**state("A[I_X, J]{U_Y}", {"X": 2, "Y": 2, "Z": 2}, 5)).view)
    assert list(table.head) == ["device", "X", "Y", "Z", "A: I", "A: J", "term of the sum", "bytes", "the same lies on"]
    assert table.rows[0] == ("5", "1", "0", "1", "64:128", "0:256", "1 of 2", "32\u00a0KiB", "4")
    assert sorted(int(str(row[0])) for row in table.rows) == list(range(8))
    everywhere = VIEWER.table(VIEWER.figure(**state("x[I]", {"X": 3, "Y": 1})).view)
    assert everywhere.column("the same lies on") == ["1, 2", "0, 2", "0, 1"]


def test_without_sizes_small_ones_are_taken() -> None:
    given = VIEWER.state({"array": "A[I_X, J_Y]", "mesh": "X=2, Y=4", "sizes": ""})
    assert VIEWER.figure(**given).view["dims"] == explore.sharded_array("A[I_X, J_Y]", {"X": 2, "Y": 4})["dims"]
    assert "sizes" not in VIEWER.python(**given).partition("(")[2]


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({"array": "A[I_X, J_X]"}, NotationError, "X"),
        ({"array": "A[I_X, J_Q]"}, NotationError, "Q"),
        ({"array": "A[I_X, K_Y]"}, SizeError, "K"),
        ({"array": "A["}, NotationError, r"A\["),
        ({"mesh": "X=3, Y=4"}, SizeError, "not a multiple"),
        ({"mesh": "X=8, Y=8"}, MeshError, "up to 3 mesh axes and 32 devices"),
        ({"mesh": "X 2"}, MeshError, "cannot read 'X 2'"),
        ({"mesh": "X=0"}, MeshError, "whole number from 1"),
        ({"sizes": "I=2.5"}, SizeError, "I is '2.5'"),
        ({"sizes": "I"}, ScalebookError, "sizes are pairs"),
        ({"dtype": "bf17"}, ScalebookError, "bf16"),
    ],
)
def test_a_mistake_is_answered_by_the_librarys_own_message(given: dict[str, str], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says) as told:
        VIEWER.figure(**VIEWER.state(given))
    reply = json.loads(answer(json.dumps({"do": "explore", "name": "sharded_array", "state": given})))
    assert reply == {"ok": False, "error": str(told.value)}


def test_a_smaller_mesh_keeps_a_device_that_it_has() -> None:
    assert VIEWER.state({"mesh": "X=2, Y=1", "device": 7})["device"] == 1
    assert VIEWER.state({"mesh": "X=4, Y=8", "device": 31})["device"] == 31


# ---- in the picture -------------------------------------------------------------------------------------------------------


def hooked(figure: figures.Figure, width: int) -> list[tuple[str, int]]:
    root = ET.fromstring(figure.svg(width))
    return [(e.tag, json.loads(e.get("data-set", ""))["device"]) for e in root.iter() if e.get("data-set")]


@pytest.mark.parametrize("width", [680, 358])
@pytest.mark.parametrize(("array", "mesh"), GRID)
def test_every_device_and_block_can_be_pointed_at(array: str, mesh: dict[str, int], width: int) -> None:
    chosen = state(array, mesh, 1)
    figure = VIEWER.live(chosen)
    found = hooked(figure, width)
    devices = list(range(math.prod(mesh.values())))
    assert [d for tag, d in found if tag == "g"] == devices
    blocks = [d for tag, d in found if tag == "rect"]
    held = [d["number"] for d in figure.view["devices"]]
    assert {held[d] for d in blocks} == set(held), "each block chooses a device that holds it"
    assert chosen["device"] in blocks, "what is chosen stays so"
    for device in devices:
        assert VIEWER.state({**chosen, "device": device})["device"] == device
    assert not re.search(r"data-set|data-key", VIEWER.figure(**chosen).svg(width))


@pytest.mark.parametrize("width", [680, 358])
@pytest.mark.parametrize(("array", "mesh"), GRID)
def test_large_sizes_make_no_larger_picture(array: str, mesh: dict[str, int], width: int) -> None:
    large = {letter: n * 1024 for letter, n in SIZES.items()}
    drawn = [VIEWER.live(state(array, mesh, 1, sizes=sizes)).svg(width) for sizes in (SIZES, large)]
    assert drawn[0].count("<rect") == drawn[1].count("<rect") < 300


def test_a_slab_is_what_lies_between_two_cuts() -> None:
    view = explore.sharded_array("A[B_X, I, J]", {"X": 4, "Y": 1}, sizes={"B": 64, "I": 8, "J": 8}, device=2)
    shape = Shape.fit([64, 8, 8], 200, 8, 16)
    assert shape.slabs == 4 and [len(shape.rects(d["block"])) for d in view["devices"]] == [1, 1, 1, 1]
    assert [shape.rects(d["block"])[0][:2] for d in view["devices"]] == [shape.slab(k) for k in range(4)]
    drawn = figures.draw("sharded_array", view).svg(680)
    for k in range(4):
        assert f"= {16 * k}:{16 * (k + 1)}<" in drawn
    whole = figures.sharded_array("A[B, I, J_X]", {"X": 2}, sizes={"B": 4096, "I": 8, "J": 8}).svg(680)
    assert "= 0:4096<" in whole and whole.count("<rect") < 40


def test_static_figures_say_nothing_of_bytes() -> None:
    figure = figures.sharded_array("A[I_X, J_Y]", {"X": 2, "Y": 4})
    assert figure.view["bytes"] is None and "bf16" not in figure._repr_html_()
    with pytest.raises(ScalebookError, match="unknown dtype 'bf17'"):
        figures.sharded_array("A[I_X]", {"X": 2}, dtype="bf17")


def test_another_device_is_drawn_fast_enough_for_pointing() -> None:
    """Half of a frame here, with slack; a browser's Python is several times slower, and `make bench` measures it there."""
    for array, mesh in itertools.product(("A[I_X, J_Y]", "A[I, J]{U_XY}"), ({"X": 2, "Y": 4}, {"X": 4, "Y": 8})):
        request = json.dumps({"do": "explore", "name": "sharded_array", "state": state(array, mesh, 3)})
        assert json.loads(answer(request))["ok"]
        best = math.inf
        for _ in range(5):
            start = time.process_time()
            answer(request)
            best = min(best, time.process_time() - start)
        assert best < 0.010, (array, mesh, best)
