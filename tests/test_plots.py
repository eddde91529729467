"""The matplotlib pictures: both themes, colours by name, labels apart, nothing that changes from run to run."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from typing import Any

import matplotlib as mpl
import pytest

mpl.use("Agg")

import scalebook as sb
from scalebook import plots
from scalebook.errors import HardwareError, ScalebookError
from scalebook.figures.palette import TOKENS

CHIPS = ["v5e", "v5p", "v6e", "h100"]


def test_rooflines_are_drawn_light_and_dark_in_the_colours_of_the_tokens() -> None:
    plot = plots.rooflines(CHIPS, caption="One. Two.")
    for name, drawn in plot.svgs.items():
        words = drawn.decode()
        ET.fromstring(words)
        for token in ("hbm", "math"):
            assert TOKENS["graphics"][name][token] in words
        assert "TPU v5p" in words and "459" in words
    assert plot.svgs["light"] != plot.svgs["dark"]


def test_a_picture_is_the_same_each_time() -> None:
    assert plots.critical_batches({"a": 1.0, "b": 2.0}).svgs == plots.critical_batches({"a": 1.0, "b": 2.0}).svgs


def test_the_page_gets_both_and_a_notebook_the_light_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plot = plots.critical_batches({c: sb.critical_batch(c) for c in CHIPS}, limit=256, caption="Found. <More>.")
    monkeypatch.setenv("SCALEBOOK_STYLES", "page")
    page = plot._repr_html_()
    assert re.findall(r'class="(only-\w+)"', page) == ["only-light", "only-dark"]
    assert "<b>Found.</b> &lt;More&gt;." in page and page.count('alt="Bars: v5e 241 tokens') == 2
    monkeypatch.delenv("SCALEBOOK_STYLES")
    assert re.findall(r'class="(only-\w+)"', plot._repr_html_()) == ["only-light"]


@pytest.mark.parametrize(("values", "ratio"), [([1.0, 1.01, 1.02], 1.2), ([1.0, 10.0], 1.2), ([5.0, 5.0, 5.0, 20.0], 1.5)])
def test_labels_are_moved_apart_and_never_below_their_line(values: list[float], ratio: float) -> None:
    placed = plots._apart(values, ratio)
    assert all(b / a >= ratio - 1e-9 for a, b in itertools.pairwise(placed))
    assert all(p >= v for p, v in zip(placed, values, strict=True))
    assert placed[0] == values[0]


def test_the_roofs_drawn_are_those_of_the_chips() -> None:
    drawn: dict[str, Any] = {}

    def draw(theme: plots.Theme) -> Any:
        figure = plots._rooflines(theme, sb.explore.roofline(["v5e", "h100"])["panels"])
        drawn["lines"] = [tuple(zip(*line.get_data(), strict=True)) for line in figure.axes[0].get_lines()]
        return figure

    plots.show(draw, alt="roofs")
    corners = [line[0] for line in drawn["lines"] if len(line) == 1]
    assert corners == [(pytest.approx(240.54, abs=0.01), 197e12), (pytest.approx(295.17, abs=0.01), 989.4e12)]
    slopes = drawn["lines"][0]
    assert slopes[0] == (1.0, pytest.approx(819e9))


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: plots.rooflines(["v99"]), HardwareError, "v99"),
        (lambda: plots.rooflines(["v5e"] * 9), ScalebookError, "up to 8"),
        (lambda: plots.theme("blue"), ScalebookError, "light and dark"),
        (lambda: plots.show(lambda theme: None, alt=" "), ScalebookError, "alt"),
        (lambda: plots.critical_batches({}), ScalebookError, "at least one row"),
    ],
)
def test_mistakes_are_told(call: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        call()
