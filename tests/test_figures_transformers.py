"""The figures on Transformers, read back from the SVG: lengths of parts, cells of layers, where curves, limits and marks lie."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET

import pytest
from test_explore_transformers import OWN, by_part
from test_figures import at, having, svg

from scalebook import figures
from scalebook.explore import equal_length, mixing_share
from scalebook.explore.transformers import HIDDEN, PARTS, SMALL
from scalebook.figures.curve_chart import BOTTOM, LEFT, TOP
from scalebook.figures.figure import plain
from scalebook.figures.palette import variables
from scalebook.figures.stacked_bars import BAR
from scalebook.figures.svg import powers_of_two

WIDTHS = (680, 358)
ALL = [
    *(figures.model_anatomy(x, seq_len=n, kind=k) for x in OWN for n, k in ((128, "forward"), (10**5, "decode"))),
    figures.attention_share(OWN[0], at=768),
    figures.attention_share(OWN[4:8]),
    *(figures.kv_cache(x, at=3072, batch=n) for x in OWN for n in (1, 10**6)),
    figures.kv_cache("llama-3.1-405b", chip="v5e"),
]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("figure", ALL, ids=lambda f: f"{f.kind.name}-{f.view.get('subject')}")
def test_every_picture_is_sound(figure: figures.Figure, width: int) -> None:
    drawn = figure.svg(width)
    root = ET.fromstring(drawn)
    assert at(root, "width") == [width] and 100 < at(root, "height")[0] < 900
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb\(|\bnan\b|\binf\b|None", drawn)
    assert set(re.findall(r"var\(--sb-([a-z0-9-]+)\)", drawn)) <= set(variables("light"))
    assert all(math.isfinite(n) and w >= 0 and h >= 0 for r in root.iter("rect") for n, w, h in [at(r, "x", "width", "height")])
    assert all(float(size) >= 12 for size in re.findall(r"font-size:([\d.]+)px", drawn))
    assert plain(figure.readout).endswith(".") and "  " not in plain(figure.readout) and len(figure.kind.label(figure.view)) > 60


# ---- a model's parts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("model", OWN, ids=lambda m: m.name)
def test_bars_are_as_long_as_their_shares(model: object, width: int) -> None:
    figure = figures.model_anatomy(model, seq_len=1000)
    root = svg(figure, width)
    bars = [r for r in root.iter("rect") if at(r, "height") == [BAR]]
    wanted = []
    for i, row in enumerate(figure.view["rows"]):
        amounts = by_part(model, i, seq_len=1000)  # type: ignore[arg-type]
        total = sum(amounts.values())
        large = {p: n / total for p, n in amounts.items() if n / total >= SMALL and p != "everything else"}
        rest = 1 - sum(large.values())
        drawn = [p for p in PARTS if p in large or (p == "everything else" and rest >= HIDDEN)]
        wanted += [(PARTS[p], large.get(p, rest)) for p in drawn]
        assert [p["name"] for p in row["parts"]] == drawn
    assert len(bars) == len(wanted)
    for bar, (colour, share) in zip(bars, wanted, strict=True):
        assert f"--sb-{colour})" in bar.get("style", "")
        assert at(bar, "width")[0] == pytest.approx(max(0, share * (width - 8) - 1), abs=0.02)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_layer_is_a_cell_in_its_colours(width: int) -> None:
    """Three layers of two blocks: windows pale, so with an outline; the strip is as wide as the picture."""
    root = svg(figures.model_anatomy(OWN[4]), width)
    cells = [r for r in root.iter("rect") if at(r, "height")[0] in (14.5, 13.5)]
    assert len(cells) == 6
    upper, lower = cells[::2], cells[1::2]
    assert ["fill-opacity" in r.get("style", "") for r in upper] == [True, False, True]
    assert all("cat-1" in r.get("style", "") for r in upper) and all("cat-3" in r.get("style", "") for r in lower)
    assert [at(r, "x")[0] for r in lower] == pytest.approx([0, width / 3, 2 * width / 3], abs=0.02)


def test_stretches_of_very_many_layers_are_one_cell() -> None:
    deep = figures.model_anatomy(type(OWN[0]).dense(L=5000, D=64, F=128, N=4, H=16, V=100))
    assert len(list(svg(deep).iter("rect"))) < 20


# ---- curves -----------------------------------------------------------------------------------------------------------------


def place(x: float, low: float, high: float, start: float, end: float) -> float:
    """A value's pixel on a logarithmic axis."""
    return start + (end - start) * math.log(x / low) / math.log(high / low)


def ends(root: ET.Element) -> tuple[float, float]:
    """Where the horizontal axis begins and ends."""
    axis = next(e for e in root.iter("line") if e.get("class") == "sb-axis-line" and at(e, "y1", "y2") == [BOTTOM, BOTTOM])
    start, end = at(axis, "x1", "x2")
    return start, end


def curves(root: ET.Element) -> list[list[tuple[float, float]]]:
    found = having(root, "path", cls="sb-slope")
    return [[(float(a), float(b)) for a, b in re.findall(r"([\d.-]+),([\d.-]+)", e.get("d", ""))] for e in found]


@pytest.mark.parametrize("width", WIDTHS)
def test_shares_lie_on_a_linear_axis(width: int) -> None:
    figure = figures.attention_share([OWN[0], OWN[2]], at=768)
    root = svg(figure, width)
    start, end = ends(root)
    assert start == LEFT
    for line, x in zip(curves(root), (OWN[0], OWN[2]), strict=True):
        for px, py in (line[0], line[20], line[-1]):
            share = (BOTTOM - py) / (BOTTOM - TOP)
            S = 128 * 8192 ** ((px - start) / (end - start))
            assert mixing_share(x, round(S)) == pytest.approx(share, abs=0.01)
    (guide,) = having(root, "line", cls="sb-guide-strong")
    assert at(guide, "y1", "y2") == [(TOP + BOTTOM) / 2] * 2
    (turn,) = having(root, "circle", cls="sb-handle")
    equal = equal_length(OWN[0])
    assert equal is not None
    assert at(turn, "cx", "cy") == pytest.approx([place(equal, 128, 2**20, start, end), (TOP + BOTTOM) / 2], abs=0.02)
    dots = [at(e, "cx", "cy") for e in having(root, "circle", cls="sb-hollow")]
    heights = [BOTTOM - mixing_share(x, 768) * (BOTTOM - TOP) for x in (OWN[0], OWN[2])]
    assert dots == [pytest.approx([place(768, 128, 2**20, start, end), h], abs=0.02) for h in heights]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_limit_cuts_the_curve_where_memory_is_full(width: int) -> None:
    figure = figures.kv_cache("llama-3-8b", at=8192, batch=16)
    view = figure.view
    root = svg(figure, width)
    start, end = ends(root)
    values = [n for line in view["lines"] for _, n in line["points"]] + [view["free"]]
    low, high = min(values) / 1.5, max(values) * 1.5
    (limit,) = having(root, "line", cls="sb-limit")
    level = place(view["free"], low, high, BOTTOM, TOP)
    assert at(limit, "x1", "y1", "x2", "y2") == pytest.approx([LEFT, level, end, level], abs=0.02)
    (full,) = having(root, "circle", cls="sb-handle")
    assert at(full, "cx", "cy") == pytest.approx([place(view["longest"], 128, 2**20, start, end), level], abs=0.02)
    own = curves(root)[0]
    below = max(p for p in own if p[0] <= at(full, "cx")[0])
    above = min(p for p in own if p[0] >= at(full, "cx")[0])
    assert above[1] <= level <= below[1]


@pytest.mark.parametrize("width", WIDTHS)
def test_bars_below_say_how_many_fit(width: int) -> None:
    figure = figures.kv_cache("llama-3-8b", at=8192, batch=16)
    (below,) = [e for e in svg(figure, width).iter("g") if e.get("transform")]
    lengths = [at(e, "width")[0] for e in below.iter("rect")]
    fits = [row["fit"] for row in figure.view["at"]["rows"]]
    assert [n / max(lengths) for n in lengths] == pytest.approx([n / max(fits) for n in fits], abs=1e-3)
    words = "".join(below.itertext())
    assert "64\u00a0sequences" in words and "228\u00a0sequences" in words


def test_ticks_of_bytes_are_powers_of_two() -> None:
    for low, high in itertools.product((1.5 * 2**20, 2**30), (2**34, 2**50 * 1.1)):
        for most in (3, 6):
            found = powers_of_two(low, high, most)
            assert 1 <= len(found) <= most and all(low <= n <= high and math.log2(n).is_integer() for n in found)
            assert len({b / a for a, b in itertools.pairwise(found)}) <= 1
