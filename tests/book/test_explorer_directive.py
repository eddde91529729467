"""The directive `explorer` and the role `set`, on pages made for the purpose: what stands in the page, and what fails the build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from test_extensions import HEADER, build as build_page

from scalebook.live import EXPLORERS
from scalebook.live.page import figure_html

CELL = "# T\n\n```{code-cell} ipython3\nimport scalebook as sb\nfrom scalebook import si\n```\n\n"


def build(folder: Path, page: str) -> tuple[BeautifulSoup, list[str]]:
    """A page and the warnings that are not about exercises, which this page does not state."""
    html, warnings = build_page(folder, CELL + page, name="figures")
    return BeautifulSoup(html, "html.parser"), [w for w in warnings if "[exercise]" not in w]


GOOD = """
```{explorer} roofline
:name: fig-play
:question: Which binds on {eval}`sb.chip("v5e").name`?
:set: chip='v5e' B=1024
:guess: {"ask": "From how many tokens on?", "unit": "tokens", "answer": "=sb.critical_batch_exact(8192, 8192, 'v5e')", "set": {"B": 256}}
**Math binds.** HBM reads {eval}`si(sb.chip("v5e").hbm_bytes_per_s, "B/s")`; see {set}`one token <fig-play?B=1>`.
```

Drag to {set}`the other side <fig-play?B=64&chip=v5p>`, or to {set}`=f"{32:,} tokens" <fig-play?B=32>`.
"""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page as it is built, without a warning."""
    page, warnings = build(tmp_path_factory.mktemp("good"), GOOD)
    assert warnings == []
    return str(page)


def test_an_explorer_stands_in_its_page(good: str) -> None:
    page = BeautifulSoup(good, "html.parser")
    figure = page.find("figure", id="fig-play")
    assert figure["data-explorer"] == "roofline"
    explorer = EXPLORERS["roofline"]
    state = explorer.state({"chip": "v5e", "B": 1024})
    assert json.loads(figure["data-state"]) == state
    assert figure.find(class_="sb-question").get_text() == "Which binds on TPU v5e?"
    caption = figure.find("figcaption")
    assert caption.get_text() == "Math binds. HBM reads 819\u00a0GB/s; see one token."
    assert caption.find(class_="sb-computed").get_text() == "819\u00a0GB/s"
    guess = json.loads(figure["data-guess"])
    assert guess["ask"] == "From how many tokens on?" and 240 < guess["answer"] < 270
    # the rest is what page.figure_html gives, so that the page's script finds what it binds to
    for changed in (caption, figure.find(class_="sb-question")):
        changed.clear()
    whole = figure_html(explorer, state, caption_html="<!---->", question="<!---->", name="fig-play", guess=guess)
    wanted = BeautifulSoup(whole, "html.parser").find("figure")
    for changed in (wanted.find("figcaption"), wanted.find(class_="sb-question")):
        changed.clear()
    assert figure == wanted


def test_words_that_set_it(good: str) -> None:
    page = BeautifulSoup(good, "html.parser")
    words = [(s.get_text(), s["data-for"], json.loads(s["data-set"])) for s in page.find_all(class_="sb-set")]
    assert words == [
        ("one token", "fig-play", {"B": 1}),
        ("the other side", "fig-play", {"B": 64, "chip": "v5p"}),
        ("32 tokens", "fig-play", {"B": 32}),
    ]


def test_the_page_knows_of_its_script_before_it_is_painted(good: str) -> None:
    page = BeautifulSoup(good, "html.parser")
    assert "classList.add('sb-js')" in "".join(script.get_text() for script in page.head.find_all("script", src=False))


def explorer(head: str, *options: str) -> str:
    return "\n".join([f"```{{explorer}} {head}", *options, "**It binds.**", "```"])


FAULTS = {
    explorer("rofline", ":name: fig-a"): "unknown explorer 'rofline'; did you mean 'roofline'?",
    explorer("roofline", ":name: fig-b", ":set: tokens=4"): "unknown key of the explorer roofline 'tokens'",
    explorer("roofline", ":name: fig-c", ":set: B=many"): "is one of the",
    explorer("roofline", ":name: fig-d", ":set: B"): "a state is set by key=value; found 'B'",
    explorer("roofline", ":name: fig-e", ":set: chip='v5e"): "with quotes around what has spaces",
    explorer("roofline", ":name: fig-f", ":guess: {'ask': 1}"): ':guess: is JSON with a text "ask"',
    explorer("roofline", ":name: fig-j", ':guess: {"ask": "?", "answer": [1]}'): ':guess: is JSON with a text "ask"',
    explorer("roofline", ":name: fig-k", ':guess: {"ask": "?", "answer": 1, "hint": "?"}'): ':guess: is JSON with a text "ask"',
    explorer("roofline", ":name: fig-g", ':guess: {"ask": "?", "answer": "=nothing"}'): "name 'nothing' is not defined",
    explorer("roofline", ":name: fig-h", ':guess: {"ask": "?", "answer": 1, "set": {"b": 1}}'): "did you mean 'B'?",
    "Go to {set}`that <fig-none?B=64>`.": "fig-none is no explorer on this page, which has: fig-play",
    "Go to {set}`this <fig-play?b=64>`.": "unknown key of the explorer roofline 'b'",
    "Go to {set}`this one <fig-play?B=many>`.": "is one of the",
    "Go to {set}`this <fig-play?dtype=fp8>`.": "dtype=fp8 cannot be had beside the rest of the state: it becomes bf16",
    "It binds, {set}`here <fig-play?B=-1>`.": "found -1; the nearest is 1",
    "Go to {set}`nowhere`.": "it is written {set}`words <name of the figure?key=value&key=value>`",
    "Go to {set}`=nothing(3) <fig-play?B=64>`.": "name 'nothing' is not defined",
}


def test_faults_are_warnings_with_their_line(tmp_path: Path) -> None:
    inside = "It binds, {set}`here <fig-play?B=-1>`."
    page = GOOD + "\n" + "\n\n".join(f for f in FAULTS if f != inside) + "\n\n" + explorer("roofline", f"{inside}\n") + "\n"
    _, warnings = build(tmp_path, page)
    for text, complaint in FAULTS.items():
        line = (HEADER + CELL + page).split(text)[0].count("\n") + 1
        assert any(f"figures.md:{line}: " in w and complaint in w for w in warnings), (line, complaint, "\n".join(warnings))
    assert len(warnings) == len(FAULTS)


def test_an_unknown_option_and_two_of_one_name_are_warnings(tmp_path: Path) -> None:
    _, warnings = build(tmp_path, f"{explorer('roofline', ':step: 1')}\n\n{explorer('roofline')}\n")
    option, name = warnings
    assert "Unknown option keys: ['step']" in option and "explorer-roofline" in name
