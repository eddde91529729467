"""The figures: what is drawn where, read back from the SVG; the words around it; the colours."""

from __future__ import annotations

import copy
import math
import re
import time
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from matplotlib.font_manager import findfont, get_font

import scalebook as sb
from scalebook import figures
from scalebook.errors import ScalebookError
from scalebook.figures import colours, tokens
from scalebook.figures.figure import caption_html, plain
from scalebook.figures.palette import SIZES, THEMES, TOKENS, css, variables
from scalebook.figures.svg import hatch, linear_ticks, text, text_width
from scalebook.roofline import Time, matmul_work
from scalebook.wiring import Segment

ROOT = Path(__file__).parents[1]
WIDTHS = (680, 358)
GIB = 2**30
TOKENS_AT = {n: matmul_work(n, 8192, 8192) for n in (1, 64, 256, 1024)}
EVERY = {
    "one point": figures.roofline("v5e", {"64 tokens": TOKENS_AT[64]}),
    "several points": figures.roofline("v5e", {f"{n} tokens": w for n, w in TOKENS_AT.items()}),
    "two levels": figures.roofline("v5e", {"p": TOKENS_AT[64]}, levels=("hbm", "vmem")),
    "no point": figures.roofline("v5e"),
    "measured": figures.roofline({"this machine": {"math": 1e11, "hbm": 1e10}}, {"p": (TOKENS_AT[64], 0.2)}),
    "two dtypes": figures.roofline("v5e", {"p": TOKENS_AT[64]}, dtype=("bf16", "int8")),
    "chips": figures.roofline(["v5e", "v5p", "v6e", "h100", "mi300x"], {"p": TOKENS_AT[256]}),
    "array": figures.sharded_array("A[I_X, J_Y]", {"X": 2, "Y": 4}),
    "vector": figures.sharded_array("x[I_X]", {"X": 16}),
    "cube": figures.sharded_array("A[B_X, T_Y, D_Z]", {"X": 2, "Y": 2, "Z": 2}),
    "pending": figures.sharded_array("A[I_X, J]{U_Y}", {"X": 2, "Y": 4}),
    "bars": figures.bars({"a": 1, "b": 3}, "tokens"),
    "bars with limit": figures.bars({"a": 1 * GIB, "b": 3 * GIB}, "GiB", limit=2 * GIB, colour="hbm"),
    "times": figures.times({"a": Time({"math": 1.0, "hbm": 2.0, "comms": 1.5}), "b": Time({"math": 3.0, "hbm": 2.0})}),
    "stacks": figures.stacks({"all": {"weights": 3 * GIB, "cache": GIB}}, limit=2 * GIB),
}


def svg(figure: figures.Figure, width: float = 680) -> ET.Element:
    return ET.fromstring(figure.svg(width))


def having(root: ET.Element, tag: str, **attributes: str) -> list[ET.Element]:
    """Elements of a kind whose attributes contain these words."""
    return [
        e
        for e in root.iter(tag)
        if all(words in e.get(name.replace("_", "-").replace("cls", "class"), "") for name, words in attributes.items())
    ]


def at(e: ET.Element, *names: str) -> list[float]:
    return [float(e.get(n, "nan")) for n in names]


# ---- every figure -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EVERY)
def test_every_picture_is_sound(name: str, width: int) -> None:
    drawn = EVERY[name].svg(width)
    root = ET.fromstring(drawn)
    assert at(root, "width") == [width] and at(root, "height")[0] < 900
    assert root.get("role") == "img" and len(root.get("aria-label", "")) > 10
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb\(|nan|inf\b|None", drawn)
    known = set(variables("light"))
    assert set(re.findall(r"var\(--sb-([a-z0-9-]+)\)", drawn)) <= known
    for e in root.iter("rect"):
        x, y, w, h = at(e, "x", "y", "width", "height")
        assert w >= 0 and h >= 0 and y + h <= float(root.get("height", 0)) + 1000 and math.isfinite(x)
    sizes = [float(s) for s in re.findall(r"font-size:([\d.]+)px", drawn)]
    assert all(s >= 12 for s in sizes)


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_says_what_it_shows(name: str) -> None:
    figure = EVERY[name]
    said = plain(figure.readout)
    assert said.endswith(".") and re.search(r"\d", said)
    assert "None" not in said and "  " not in said
    page = ET.fromstring(figure._repr_html_().replace("&nbsp;", " "))
    assert len(list(page.iter("svg"))) == 2 and page.get("id") == figure.id
    assert figure.id == copy.deepcopy(figure).id


def test_no_two_figures_share_an_address_and_a_name_is_kept() -> None:
    ids = [f.id for f in EVERY.values()]
    assert len(set(ids)) == len(ids)
    assert figures.bars({"a": 1}, name="fig-mine").id == "fig-mine"


@pytest.mark.parametrize("name", ["one point", "several points", "two levels", "array", "bars"])
def test_a_redraw_is_fast_enough_for_dragging(name: str) -> None:
    figure, best = EVERY[name], math.inf
    for _ in range(8):
        start = time.perf_counter()
        figure.kind.draw(figure.view, 680)
        best = min(best, time.perf_counter() - start)
    assert best < 15e-3  # the goal is 3 ms here, which is under 16 ms in a browser


@pytest.mark.parametrize(
    "figure",
    [
        figures.bars({"<script>alert(1)</script>": 1, 'a "b" & c': 2}, "<i>"),
        figures.roofline("v5e", {"<b>&": TOKENS_AT[64]}, caption="<img> & more."),
        figures.stacks({"<a>": {"<b>": 1}}),
        figures.times({"<a>": Time({"math": 1.0})}),
    ],
)
def test_text_is_never_markup(figure: figures.Figure) -> None:
    page = figure._repr_html_()
    tags = {e.tag for e in ET.fromstring(page).iter()}
    assert not tags & {"script", "i", "img", "a"}


def test_a_page_brings_the_styles_and_a_notebook_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = EVERY["bars"]
    monkeypatch.delenv("SCALEBOOK_STYLES", raising=False)
    assert "--sb-hbm:" in figure._repr_html_() and "--sb-hbm:" in figure._repr_svg_()
    monkeypatch.setenv("SCALEBOOK_STYLES", "page")
    assert "<style>" not in figure._repr_html_()


def test_the_finding_is_bold() -> None:
    assert caption_html("One. Two.") == "<b>One.</b> Two."
    assert caption_html("At 1.5 s it ends. Two.") == "<b>At 1.5 s it ends.</b> Two."
    assert caption_html("No stop") == "<b>No stop</b>"
    assert caption_html("One **two** `A[I]` <x>") == "One <b>two</b> <code>A[I]</code> &lt;x&gt;"


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ScalebookError, match="did you mean 'bars'"):
        figures.draw("bar", {})


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: figures.draw("bars", None), "'bars' draws the dict that scalebook.explore returns.*found None"),  # type: ignore[arg-type]
        (lambda: figures.draw("bars", {}), "found {}, which cannot be read .KeyError: 'rows'"),
        (lambda: figures.draw("bars", {"rows": 5}), "found {'rows': 5}, which cannot be read"),
        (lambda: figures.draw("roofline", EVERY["bars"].view), "'roofline' draws the dict.*cannot be read"),  # type: ignore[arg-type]
        (lambda: figures.draw([], {}), "unknown kind of figure"),  # type: ignore[arg-type]
        (lambda: figures.bars({"a": 1}, caption=5), "caption of a figure must be a text; found caption=5 of type int"),  # type: ignore[arg-type]
        (lambda: figures.bars({"a": 1}, name=None), "name of a figure must be a text"),  # type: ignore[arg-type]
        (lambda: EVERY["bars"].svg("x"), "width of a picture must be .* found 'x'"),  # type: ignore[arg-type]
        (lambda: EVERY["bars"].svg(0), "from 200 to 5000; found 0"),
        (lambda: EVERY["bars"].svg(float("nan")), "from 200 to 5000; found nan"),
    ],
)
def test_what_cannot_be_drawn_is_said(call: Any, says: str) -> None:
    with pytest.raises(ScalebookError, match=says):
        call()


def test_nothing_is_drawn_as_nothing() -> None:
    """Times of zero have bars of no length, alone, beside others, and on scales of their own."""
    alone = figures.times({"a": Time({"math": 0.0})})
    assert plain(alone.readout) == "a: nothing takes any time, 0\u00a0s."
    beside = figures.times({"a": Time({"math": 0.0}), "b": Time({"math": 1.0, "hbm": 0.0}), "c": Time({"math": 100.0})})
    for figure, positive in ((alone, 0), (beside, 2)):
        lengths = [at(e, "width")[0] for e in having(svg(figure), "rect", style="fill:var(--sb-math)")]
        assert sum(n > 0 for n in lengths) == positive
        assert not re.search(r"nan|inf\b", figure._repr_html_())


ANYTHING = st.deferred(
    lambda: st.one_of(
        st.none(), st.booleans(), st.integers(-3, 9), st.sampled_from([10**15, 10**400, -(10**400)]), st.floats(), st.text(max_size=9),
        st.binary(max_size=3), st.sampled_from([np.int64(3), np.float32(2.5), np.array([1, 2]), np.array(2), Fraction(1, 3), 2j, object, len]),
        st.sampled_from(["v5e", "h100", "math", "hbm", "bf16", "A[I_X, J]", "I", "X"]),
        st.builds(Time, st.dictionaries(NAMES, ANYTHING, max_size=3)), st.sampled_from([matmul_work(64, 512, 512), (matmul_work(1, 2, 3), 0.5)]),
        st.lists(ANYTHING, max_size=3), st.tuples(NAMES, ANYTHING), st.lists(st.tuples(NAMES, ANYTHING), max_size=3),
        st.dictionaries(NAMES, ANYTHING, max_size=3), st.dictionaries(NAMES, st.floats(0), min_size=1, max_size=3),
        st.dictionaries(NAMES, st.dictionaries(NAMES, st.floats(0), min_size=1, max_size=3), min_size=1, max_size=2),
    )
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(["math", "hbm", "comms", "a", "I", "X", ""]), st.text(max_size=60), st.integers(0, 5), st.none()
)
CALLS: dict[str, list[str]] = {
    "bars": ["unit", "limit", "limit_name", "colour", "highlight", "quantity_name", "caption", "alt", "question", "name"],
    "times": ["caption", "alt"],
    "stacks": ["unit", "limit", "limit_name", "caption"],
    "roofline": ["points", "dtype", "levels", "caption"],
    "matmul_roofline": ["chip", "B", "D", "F", "dtype", "weights"],
    "sharded_array": ["sizes", "device", "dtype", "caption"],
    "collective": ["axes", "devices", "shape", "step", "panels", "algorithm", "follow", "caption"],
    "draw": ["caption"],
}
FIRST: dict[str, list[Any]] = {
    "bars": [{"a": 1, "b": 2.5}],
    "times": [{"a": Time({"math": 1.0})}],
    "stacks": [{"a": {"b": 1}}],
    "roofline": ["v5e", {"mine": {"math": 1e12, "hbm": 1e10}}, ["v5e", "v5p"]],
    "matmul_roofline": [],
    "sharded_array": [("A[I_X, J]", {"X": 2})],
    "collective": [("all-to-all", Segment("ici0", 4, "ring", 1e9, 0.0, 0.0), 1e6), ("all-gather", "v5p", 1e6)],
    "draw": [("bars", EVERY["bars"].view), ("times", EVERY["bars"].view)],
}


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_is_given_is_drawn_or_refused_in_words(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(CALLS)))
    given_first = data.draw(st.sampled_from(FIRST[name]) if FIRST[name] else st.just(()))
    first = list(given_first) if isinstance(given_first, tuple) else [given_first]
    wrong = data.draw(st.lists(st.integers(0, len(first)), max_size=1))
    for i in wrong:
        first[i : i + 1] = [data.draw(ANYTHING)] if i < len(first) else []
    chosen = data.draw(st.lists(st.sampled_from(CALLS[name]), max_size=2, unique=True))
    options = {option: data.draw(ANYTHING) for option in chosen}
    try:
        figure = getattr(figures, name)(*first, **options)
    except ScalebookError as error:
        assert len(str(error)) < 1500
        return
    page = figure._repr_html_()
    drawn = re.sub(r"<(text|tspan|title)[^>]*>[^<]*|aria-label=\"[^\"]*\"", "", figure.svg(358))
    assert not re.search(r"\b(nan|inf)\b", drawn)
    ET.fromstring(page.replace("&nbsp;", " "))
    repr(figure).encode("utf-8", "surrogatepass")


def extents(root: ET.Element) -> list[tuple[str, float, float]]:
    """Every line of text that is not turned, with its left and right end by the widths of a wide font."""
    found = []
    for e in root.iter("text"):
        if "rotate" in e.get("transform", ""):
            continue
        cls = e.get("class", "")
        given_size = re.search(r"font-size:([\d.]+)px", e.get("style", ""))
        size = float(given_size[1]) if given_size else 12 if "sb-note" in cls or "sb-tick" in cls else 13
        lines = [(at(e, "x")[0], e.text or "")]
        for part in e:
            x, words = (at(part, "x")[0], "") if part.get("x") else lines.pop()
            lines.append((x, words + "".join(part.itertext()) + (part.tail or "")))
        share = {"end": 1.0, "middle": 0.5}.get(e.get("text-anchor", ""), 0.0)
        for x, words in lines:
            wide = text_width(words, size, bold="sb-strong" in cls)
            found.append((words, x - share * wide, x + (1 - share) * wide))
    return found


LONG = "the attention projection of a long prompt in the second layer"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("batch", [1, 20, 100, 300, 1000, 8000])
@pytest.mark.parametrize("length", [20, 26, 32, 61])
def test_long_names_of_points_stay_in_the_picture(length: int, batch: int, width: int) -> None:
    name = LONG[:length].strip()
    for others in ({}, {"a second point whose name is long too": matmul_work(64, 8192, 8192)}):
        figure = figures.roofline("v5e", {name: matmul_work(batch, 8192, 8192), **others})
        for words, left, right in extents(svg(figure, width)):
            assert left >= -1 and right <= width + 1, f"{words!r} reaches from {left:.0f} to {right:.0f}"
        assert name in plain(figure.readout) and name in figure.svg(width)


@pytest.mark.parametrize(
    "figure",
    [
        figures.bars({LONG: 1, "b": 3}, "tokens", limit=2, limit_name=LONG),
        figures.times({LONG: Time({"math": 1.0, LONG: 2.0}), "b": Time({"hbm": 1.0})}),
        figures.stacks({LONG: {LONG: 2 * GIB, "b": GIB}}, limit=2 * GIB, limit_name=LONG),
        figures.roofline(["v5e", "v5p", "h100"], {LONG: TOKENS_AT[64], "b": TOKENS_AT[1]}),
        figures.roofline({LONG: {"math": 1e12, "hbm": 1e10}, "b": {"math": 1e12, "hbm": 1e11}}),
    ],
    ids=["bars", "times", "stacks", "chips", "machines"],
)
def test_other_long_names_stay_in_the_picture_too(figure: figures.Figure) -> None:
    for width in WIDTHS:
        for words, left, right in extents(svg(figure, width)):
            assert left >= -3 and right <= width + 1, f"{words!r} reaches from {left:.0f} to {right:.0f} of {width}"
    assert LONG in plain(figure.readout)


# ---- where things are ---------------------------------------------------------------------------------------------------


def axis_positions(root: ET.Element, values: dict[str, float]) -> dict[float, ET.Element]:
    return {v: e for words, v in values.items() for e in root.iter("text") if "".join(e.itertext()) == words}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("batch", [1, 64, 300, 5000])
def test_the_point_stands_where_the_axes_say(batch: int, width: int) -> None:
    """The place of the disc, read with the axes' own numbers, is its intensity and its speed."""
    figure = figures.roofline("v5e", {"p": matmul_work(batch, 8192, 8192)})
    root = svg(figure, width)
    xs = axis_positions(root, {"10": 10, "100": 100})
    ys = axis_positions(root, {"10\u00a0T": 1e13, "100\u00a0T": 1e14})
    (disc,) = having(root, "circle", cls="sb-handle")
    cx, cy = at(disc, "cx", "cy")
    x10, x100 = (at(xs[v], "x")[0] for v in (10, 100))
    y10, y100 = (at(ys[v], "y")[0] - 4 for v in (1e13, 1e14))
    point = figure.view["panels"][0]["points"][0]
    assert 10 ** (1 + (cx - x10) / (x100 - x10)) == pytest.approx(point["intensity"], rel=0.01)
    assert 10 ** (13 + (cy - y10) / (y100 - y10)) == pytest.approx(point["achieved"], rel=0.01)


@pytest.mark.parametrize("batch", [1, 64, 1024])
def test_the_shorter_time_is_filled_up_with_idle(batch: int) -> None:
    figure = figures.roofline("v5e", {"p": matmul_work(batch, 8192, 8192)})
    point = figure.view["panels"][0]["points"][0]
    root = svg(figure)
    lengths = {k: at(having(root, "rect", style=f"fill:var(--sb-{k})", rx="2")[0], "width")[0] for k in ("math", "hbm")}
    (idle,) = (at(e, "width")[0] for e in having(root, "rect", style="fill:var(--sb-idle)"))
    assert lengths["math"] / lengths["hbm"] == pytest.approx(point["parts"]["math"] / point["parts"]["hbm"], rel=0.02)
    assert min(lengths.values()) + idle == pytest.approx(max(lengths.values()), abs=0.1)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8), st.sampled_from(WIDTHS))
def test_bars_are_as_long_as_their_values(values: list[float], width: int) -> None:
    root = svg(figures.bars([(f"r{i}", v) for i, v in enumerate(values)]), width)
    lengths = [at(e, "width")[0] for e in having(root, "rect", style="fill:var(--sb-math)")]
    assert len(lengths) == len(values)
    longest = max(values)
    for length, value in zip(lengths, values, strict=True):
        assert length == pytest.approx(max(lengths) * value / longest if longest else 0, abs=0.02)


def test_what_is_over_the_limit_begins_at_the_limit() -> None:
    root = svg(EVERY["bars with limit"])
    (limit,) = (at(e, "x1")[0] for e in having(root, "line", cls="sb-limit") if "guide" not in e.get("class", ""))
    (over,) = having(root, "rect", cls="sb-over")
    x, w = at(over, "x", "width")
    start = at(having(root, "rect", style="fill:var(--sb-hbm)")[0], "x")[0]
    assert x == pytest.approx(limit, abs=0.02)
    assert w / (limit - start) == pytest.approx((3 - 2) / 2, rel=0.01)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("spec", ["A[I_X, J_Y]", "A[I_Y, J_X]", "A[I_XY, J]", "A[I, J_Y]", "A[I, J]"])
def test_tiles_show_the_block_that_the_layout_gives(spec: str, width: int) -> None:
    """Each device's block, measured in its outline, is the slice of `Sharding.slices`."""
    mesh = {"X": 2, "Y": 4}
    root = svg(figures.sharded_array(spec, mesh, sizes={"I": 8, "J": 8}), width)
    held = sb.sharding(spec).slices({"I": 8, "J": 8}, mesh)
    tiles = [g for g in root.iter("g") if any(r.get("class") == "sb-tile" for r in g.findall("rect"))]
    assert len(tiles) == 8
    for tile, block in zip(tiles, held.values(), strict=True):
        (outline,) = (p for p in tile.findall("path") if p.get("class") == "sb-ghost")
        (drawn,) = (r for r in tile.findall("rect") if "cat-" in r.get("style", ""))
        ox, oy, ow, oh = map(float, re.findall(r"[\d.]+", outline.get("d", ""))[:4])
        x, y, w, h = at(drawn, "x", "y", "width", "height")
        got = [(y - oy) / oh * 8, (y + h - oy) / oh * 8, (x - ox) / ow * 8, (x + w - ox) / ow * 8]
        assert got == pytest.approx([*block[0], *block[1]], abs=0.02)
    copies = sb.sharding(spec).replicas(mesh)
    assert sum("sb-same" in e.get("class", "") for e in root.iter("rect")) == copies - 1


def test_cuts_have_the_colour_of_their_axis() -> None:
    root = svg(figures.sharded_array("A[I_X, J_Y]", {"X": 2, "Y": 4}))
    styles = [e.get("style") for e in having(root, "line", cls="sb-cut")]
    assert sorted(styles) == ["stroke:var(--sb-x)", *["stroke:var(--sb-y)"] * 3]


def test_hatching_stays_inside_its_box() -> None:
    drawn = hatch(10, 20, 47, 22)
    for x, y, dx, dy in re.findall(r"M([\d.]+),([\d.]+)l([\d.]+),([\d.]+)", drawn):
        u, v, du, dv = map(float, (x, y, dx, dy))
        assert 10 <= u <= u + du <= 57.01 and 20 <= v <= v + dv <= 42.01 and du == dv
    assert drawn.count("M") >= (47 + 22) // 8.5


# ---- small parts --------------------------------------------------------------------------------------------------------


def test_text_is_bold_between_stars_and_its_width_is_about_right() -> None:
    assert text(0, 0, "a *b* <c>") == '<text x="0" y="0">a <tspan font-weight="600">b</tspan> &lt;c&gt;</text>'
    font = get_font(findfont("DejaVu Sans"))  # by the font's own tables
    font.set_size(13, 72)
    for words in (
        "bf16 peak 197 TFLOPs/s",
        "FLOPs per byte moved (log)",
        "HBM of one v5p: 95.7 GiB",
        "the mesh, X=2 by Y=4",
        "illicit",
    ):
        font.set_text(words)
        true = font.get_width_height()[0] / 64
        assert 0.97 * true < text_width(words) < 1.2 * true


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_lie_in_the_domain_and_are_few(low: float, span: float) -> None:
    ticks = linear_ticks(low, low + span)
    assert 2 <= len(ticks) <= 12
    assert all(low - span * 1e-3 <= t <= low + span * 1.001 for t in ticks)


# ---- colours ------------------------------------------------------------------------------------------------------------


def test_every_colour_passes_and_a_wrong_one_is_found() -> None:
    assert colours.report(TOKENS)[1] == []
    wrong = copy.deepcopy(TOKENS)
    wrong["graphics"]["light"]["hbm"] = wrong["graphics"]["light"]["math"]
    wrong["text"]["dark"]["ici"] = "#333333"
    faults = colours.report(wrong)[1]
    assert any("light resources" in f for f in faults) and any("dark text ici" in f for f in faults)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [  # Sharma, Wu and Dalal (2005), table 1
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0000),
        ((50, 0, 0), (50, -1, 2), 2.3669),
        ((50, 2.49, -0.001), (50, -2.49, 0.0009), 7.1792),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_colour_differences_are_the_published_ones(one: Any, other: Any, expected: float) -> None:
    assert colours.ciede2000(one, other) == pytest.approx(expected, abs=5e-5)


def test_the_files_follow_from_the_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tokens.stale(ROOT / "book" / "_static") == []
    assert tokens.main(["--check", "--static", str(tmp_path)]) == 1
    assert "tokens.css is stale" in capsys.readouterr().out


def test_rules_use_only_variables_that_exist_in_both_themes() -> None:
    rules = (ROOT / "src/scalebook/figures/figures.css").read_text("utf-8")
    used = set(re.findall(r"var\(--sb-([a-z0-9-]+)", rules))
    for theme in THEMES:
        assert used <= set(variables(theme)) | set(SIZES)
    assert not re.search(r"#[0-9a-f]{6}", rules)
    assert css().count("--sb-hbm:") == 3 and css(notebook=True).count("--sb-hbm:") == 2
