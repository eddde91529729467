"""The torus figure: its view against a search over links, and what is drawn, read back from the SVG."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from test_routes import cables, search

import scalebook as sb
from scalebook import explore, figures
from scalebook.errors import MeshError, TopologyError
from scalebook.figures.figure import plain
from scalebook.figures.palette import variables
from scalebook.figures.svg import text_width
from scalebook.routes import Grid, diameter

WIDTHS = (680, 358)
EVERY = {
    "square": figures.torus("v5e:4x4", from_chip=(0, 0)),
    "from inside": figures.torus("v5e:4x8", from_chip=(1, 2)),
    "compared": figures.torus("v5e:4x4", compare=True),
    "half closed": figures.torus("v5e:8x16"),
    "pod": figures.torus("v5e:16x16"),
    "one chip": figures.torus("v5e:1x1"),
    "flat": figures.torus("v5p:2x2x1"),
    "cube": figures.torus("v5p:4x4x4", from_chip=(1, 2, 3)),
    "cubes compared": figures.torus("v5p:4x4x4", compare=True),
    "two cubes": figures.torus("v5p:4x4x8"),
    "eight planes": figures.torus("v5p:8x8x8"),
    "meshed": figures.torus("v5e:4x4", mesh={"X": 2, "Y": 8}),
    "meshed hops": figures.torus("v5e:4x4", mesh={"X": 4, "Y": 4}, from_chip=(0, 0)),
    "meshed cube": figures.torus("v5p:4x4x4", mesh={"X": 4, "Y": 16}),
    "meshed pod": figures.torus("v5e:16x16", mesh={"data": 64, "model": 4}),
    "slices": figures.torus(sb.topology("v5e:4x4", 2), mesh={"data": 2, "X": 4, "Y": 4}),
    "two devices a chip": figures.torus("tpu7x:2x2x2", mesh={"X": 4, "Y": 4}),
}


def svg(name: str, width: float) -> ET.Element:
    return ET.fromstring(EVERY[name].svg(width))


def number(e: ET.Element, name: str) -> float:
    return float(e.get(name, "nan"))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EVERY)
def test_every_picture_is_sound(name: str, width: int) -> None:
    figure = EVERY[name]
    drawn = figure.svg(width)
    root = ET.fromstring(drawn)
    assert number(root, "width") == width and 0 < number(root, "height") < 1000
    assert root.get("role") == "img" and len(root.get("aria-label", "")) > 10
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb\(|nan|inf\b|None", drawn)
    assert set(re.findall(r"var\(--sb-([a-z0-9-]+)\)", drawn)) <= set(variables("light"))
    assert all(float(s) >= 12 for s in re.findall(r"font-size:([\d.]+)px", drawn))
    said = plain(figure.readout)
    assert said.endswith(".") and re.search(r"\d", said) and "None" not in said and "  " not in said
    assert json.loads(json.dumps(figure.view)) == figure.view


# ---- the view -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "start"),
    [("v5e:4x4", (1, 2)), ("v5e:8x16", (7, 0)), ("v5e:16x16", (0, 15)), ("v5p:4x4x8", (3, 0, 5)), ("v5p:2x2x2", (0, 1, 0))],
)
def test_hops_are_those_of_a_search(spec: str, start: tuple[int, ...]) -> None:
    view = explore.torus(spec, from_chip=start, compare=True)
    real = sb.topology(spec)
    for grid, wraps in zip(view["grids"], (True, False), strict=True):
        found = search(real.shape, (wraps,) * len(real.shape), start)
        want = [found[p] for p in itertools.product(*map(range, real.shape))]
        assert grid["hops"] == want
        assert grid["farthest"] == max(want)
        assert grid["mean"] == pytest.approx(sum(want) / (len(want) - 1))
        assert grid["real"] == (real.wraparound == (wraps,) * len(real.shape))


@pytest.mark.parametrize("spec", ["v5e:4x4", "v5e:8x16", "v5e:16x16", "v5p:4x4x8"])
def test_the_cut_crosses_the_cables_between_two_halves(spec: str) -> None:
    """Counted cable by cable: those with one end in either half, for each axis cut across its middle; the least is the cut."""
    view = explore.torus(spec, compare=True)
    shape = sb.topology(spec).shape
    for grid, wraps in zip(view["grids"], (True, False), strict=True):
        every = cables(shape, (wraps,) * len(shape))
        crossed = [sum((a[i] < n // 2) != (b[i] < n // 2) for a, b in every) for i, n in enumerate(shape)]
        assert grid["cut"]["links"] == min(crossed) == crossed[grid["cut"]["along"]]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_cut_is_drawn_where_two_grids_are_compared(width: int) -> None:
    root = svg("compared", width)
    dashed = [e for e in root.iter("line") if "stroke-dasharray" in e.get("style", "")]
    assert len(dashed) == 2 and all(e.get("x1") == e.get("x2") for e in dashed)
    said = ["".join(e.itertext()) for e in root.iter("text")]
    assert [w for w in said if w.startswith("the cut crosses")] == ["the cut crosses 8 links", "the cut crosses 4 links"]
    tiles = [e for e in root.iter("rect") if e.get("class") in ("sb-hop", "sb-source")]
    x = number(dashed[0], "x1")
    assert all(not number(t, "x") - 2 < x < number(t, "x") + number(t, "width") + 2 for t in tiles[:16])
    assert sum(number(t, "x") < x for t in tiles[:16]) == 8
    assert "crosses 8 links instead of 4" in plain(EVERY["compared"].readout)
    assert not [e for e in svg("square", width).iter("line") if "stroke-dasharray" in e.get("style", "")]


def test_a_mesh_lies_where_its_segments_say() -> None:
    mesh = sb.mesh({"X": 2, "Y": 8}, on="v5e:4x4")
    view = explore.torus("v5e:4x4", mesh=mesh)
    assert [m["axis"] for m in view["mesh"]] == ["X", "Y"]
    for m in view["mesh"]:
        assert [(f"ici{p['along']}", p["size"], p["stride"]) for p in m["pieces"]] == [
            (s.physical, s.size, s.stride) for s in mesh.segments(m["axis"])
        ]
    assert view["from"] is None and view["grids"][0]["hops"] is None
    assert view["grids"][0]["farthest"] == 6  # the farthest pair


def test_axes_of_one_chip_are_left_out_and_those_beyond_the_torus_are_named() -> None:
    assert explore.torus("v5p:2x2x1", from_chip=(1, 1, 0))["from"] == [1, 1]
    view = explore.torus(sb.topology("v5e:4x4", 2), mesh={"data": 2, "X": 4, "Y": 4})
    assert view["mesh"][0]["beyond"] == ["dcn"] and view["mesh"][0]["pieces"] == []
    assert "one of 2 slices" in plain(EVERY["slices"].readout)
    assert "Y = 4 lies on the rows and the devices of a chip" in plain(EVERY["two devices a chip"].readout)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: explore.torus("h100:2x8"), TopologyError, "joined by switches"),
        (lambda: explore.torus("v4:8x16x16"), TopologyError, "too many for a picture.*up to 16x16.*8 planes of 8x8"),
        (lambda: explore.torus("v3:16x32"), TopologyError, "512 chips a slice"),
        (lambda: explore.torus("v5e:4x4", from_chip=(4, 0)), TopologyError, "no chip"),
        (lambda: explore.torus("v5e:4x4", mesh={"X": 8}), MeshError, "must be the same"),
        (lambda: explore.torus("v5e:4x4", mesh=sb.mesh({"X": 16}, on="v6e:4x4")), MeshError, "another machine"),
        (lambda: explore.torus("v5e:4x4", mesh={"a": 2, "b": 2, "c": 2, "d": 2}), MeshError, "up to 3 mesh axes"),
    ],
)
def test_what_cannot_be_shown(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


# ---- the drawing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["square", "from inside", "half closed", "pod", "flat"])
def test_every_chip_shows_its_hops_in_its_place(name: str, width: int) -> None:
    view = EVERY[name].view
    root = svg(name, width)
    tiles = [e for e in root.iter("rect") if e.get("class") in ("sb-hop", "sb-source")]
    middles = [(number(t, "x") + number(t, "width") / 2, number(t, "y") + number(t, "height") / 2) for t in tiles]
    xs, ys = sorted({round(x, 1) for x, _ in middles}), sorted({round(y, 1) for _, y in middles})
    assert [len(ys), len(xs)] == view["shape"]
    words = [e for e in root.iter("text") if e.get("text-anchor") == "middle"]
    for (r, y), (c, x) in itertools.product(enumerate(ys), enumerate(xs)):
        (here,) = (w for w in words if abs(number(w, "x") - x) < 1 and abs(number(w, "y") - 4.5 - y) < 1)
        hops = view["grids"][0]["hops"][r * len(xs) + c]
        assert "".join(here.itertext()) in (("from", "0") if hops == 0 else (str(hops),))
    tints = {view["grids"][0]["hops"][i]: number(t, "fill-opacity") for i, t in enumerate(tiles) if t.get("class") == "sb-hop"}
    assert [tints[h] for h in sorted(tints)] == sorted(tints.values(), reverse=True)
    assert max(tints.values()) <= 0.42


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["square", "half closed", "pod", "cube", "two cubes", "eight planes"])
def test_every_cable_is_drawn(name: str, width: int) -> None:
    """Straight links, and for each closing one a way around or two ends; planes are joined in the strip, once for all chips."""
    view = EVERY[name].view
    root = svg(name, width)
    shape, wraps = tuple(view["shape"]), tuple(view["grids"][0]["wraps"])
    flat, closed = (shape, wraps) if len(shape) == 2 else (shape[1:], wraps[1:])
    planes = shape[0] if len(shape) == 3 else 1
    straight = planes * len(cables(flat, (False,) * 2)) + (planes - 1)
    around = planes * (len(cables(flat, closed)) - len(cables(flat, (False, False)))) + (planes > 1 and wraps[0])
    straightened = "".join(e.get("d", "") for e in root.iter("path") if e.get("class") == "sb-link")
    assert straightened.count("M") == straight
    ways = [w for e in root.iter("path") if e.get("class") == "sb-link sb-wrap" for w in e.get("d", "").split("M")[1:]]
    whole, ends = [w for w in ways if w.count("L") == 5], [w for w in ways if w.count("L") == 1]
    assert len(whole) + len(ends) == len(ways)
    assert len(whole) + len(ends) / 2 == around


def test_links_end_at_the_tiles_they_join() -> None:
    root = svg("square", 680)
    tiles = [e for e in root.iter("rect") if e.get("class") in ("sb-hop", "sb-source")]
    sides = {
        (round(number(t, "x") + w, 1), round(number(t, "y") + number(t, "height") / 2, 1))
        for t in tiles
        for w in (0, number(t, "width"))
    }
    (drawn,) = (e.get("d", "") for e in root.iter("path") if e.get("class") == "sb-link")
    flat = re.findall(r"M([\d.]+),([\d.]+)H([\d.]+)", drawn)
    assert len(flat) == 12 and all((round(float(x), 1), round(float(y), 1)) in sides for a, y, b in flat for x in (a, b))


def test_brackets_span_the_chips_of_a_group() -> None:
    root = svg("meshed", 680)  # X is pairs of columns, Y all rows and, across the pairs, the columns
    lines = [e for e in root.iter("line") if e.get("class") == "sb-bracket"]
    level = {style: [e for e in lines if e.get("style") == f"stroke:var(--sb-{style})"] for style in "xy"}
    assert len(level["x"]) == 2 and len(level["y"]) == 2
    width = number(level["x"][0], "x2") - number(level["x"][0], "x1")
    across = next(e for e in level["y"] if e.get("y1") == e.get("y2"))
    tile = next(e for e in root.iter("rect") if e.get("class") == "sb-chip")
    step = number(level["x"][1], "x1") - number(level["x"][0], "x1")
    assert width == pytest.approx(step / 2 + number(tile, "width"), abs=0.1)
    assert number(across, "x2") - number(across, "x1") == pytest.approx(step * 1.5 + number(tile, "width"), abs=0.1)


def test_chips_on_a_mesh_show_their_coordinates() -> None:
    root = svg("meshed", 680)
    shown = ["".join(e.itertext()) for e in root.iter("text")]
    mesh = sb.mesh({"X": 2, "Y": 8}, on="v5e:4x4")
    for x, y in mesh.coordinates():
        assert shown.count(f"{x},{y}") == 1
    at = {"".join(e.itertext()): (number(e, "x"), number(e, "y")) for e in root.iter("text")}
    assert (
        at["0,0"][1] == at["1,0"][1] and at["0,0"][0] < at["1,0"][0] < at["0,1"][0]
    )  # pairs of neighbours, then every other one


def test_the_words_over_two_grids_say_which_is_real() -> None:
    words = ["".join(e.itertext()) for e in svg("compared", 680).iter("text")]
    assert "mesh: no wraparound (as it is)" in words and "torus: both axes wrap around (to compare)" in words
    assert "farthest 6 hops, mean 3.2" in words and "farthest 4 hops, mean 2.13" in words
    assert "falls from 3.2 to 2.13" in plain(EVERY["compared"].readout)
    inner = figures.torus("v5e:4x4", from_chip=(1, 2), compare=True)
    words_of_inner = plain(inner.readout)
    assert "From chip (1, 2) itself wraparound brings no chip nearer: at most 4 hops, 2.13 on average." in words_of_inner
    longest = [diameter(Grid((4, 4), (w, w))) for w in (False, True)]
    assert longest == [6, 4] and "longest way falls from 6 to 4 hops" in words_of_inner
    assert "crosses 8 links instead of 4" in words_of_inner


@pytest.mark.parametrize(
    ("spec", "mesh", "words"),
    [
        ("v5e:8x16", None, "only the rows wrap around"),
        ("v5e:4x4", {"X": 4, "Y": 4}, "X = 4 lies on the columns and Y = 4 lies on the rows."),
        (
            "v5e:4x4",
            {"X": 2, "Y": 8},
            "X = 2 lies on pairs of neighbours in each row and Y = 8 lies on the columns and every other",
        ),
        (
            "v5p:4x4x4",
            {"X": 4, "Y": 16},
            "X = 4 lies on the lines through the planes and Y = 16 lies on the columns and the rows.",
        ),
        ("tpu7x:2x2x1", None, "From chip (0, 0, 0) of TPU7x (Ironwood) 2x2x1"),
        ("tpu7x:2x2x1", None, "Its neighbours are (0, 1, 0) and (1, 0, 0)."),
        ("v5e:1x1", None, "From chip (0, 0) of TPU v5e 1x1"),
    ],
)
def test_axes_and_chips_have_the_names_of_the_picture_and_of_the_slice(
    spec: str, mesh: dict[str, int] | None, words: str
) -> None:
    figure = figures.torus(spec, from_chip=(0,) * len(spec.partition(":")[2].split("x")), mesh=mesh)
    assert words in plain(figure.readout)
    assert "ici" not in plain(figure.readout) + figure.svg(680)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_words_on_mesh_axes_stay_in_the_picture(width: int) -> None:
    for spec, mesh in (("v5e:4x4", {"X": 2, "Y": 8}), ("v5p:4x4x4", {"X": 2, "Y": 32})):
        root = ET.fromstring(figures.torus(spec, mesh=mesh).svg(width))
        lines = [(number(e, "x"), "".join(e.itertext())) for e in root.iter("text")]
        assert all(x + text_width(words) <= width for x, words in lines if "chip" in words or "neighbours" in words)
        said = " ".join(words for _, words in lines)
        assert "X = 2 on " in said and f"Y = {mesh['Y']} on " in said and "pairs of neighbours in each" in said
