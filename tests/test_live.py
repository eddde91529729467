"""Explorers: every control at its ends, the code and the table of each, what a page asks and gets, and the same in a notebook."""

from __future__ import annotations

import ast
import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings, strategies as st

import scalebook as sb
from scalebook.errors import MissingExtra, ScalebookError
from scalebook.live import EXPLORERS, Choice, Explorer, Live, Player, Slider, Text, Toggle, explorer
from scalebook.live.controls import Control, written
from scalebook.live.page import figure_html
from scalebook.live.requests import answer

LIVE = Path(sb.__file__).parent / "live"
FOR_A_HAND = {"live", "stops"}  # of a view: where its picture answers to a pointer
MACHINERY = {"__init__", "controls", "explorers", "inputs", "page", "requests", "widgets"}
EACH = pytest.mark.parametrize("name", EXPLORERS)


def tried(control: Control, state: dict[str, Any]) -> list[Any]:
    """Values of a control in a state: all of a few, of many the ends, the middle and those beside them; of a text what it has."""
    if isinstance(control, Text):
        return [state[control.key]]
    allowed = list(control.allowed(state))
    if len(allowed) <= 5:
        return allowed
    return [allowed[i] for i in (0, 1, len(allowed) // 2, -2, -1)]


def states(name: str) -> Iterator[tuple[Explorer, dict[str, Any], str]]:
    """The start state, and each with one control moved; the key that was moved."""
    chosen = EXPLORERS[name]
    start = chosen.state()
    yield chosen, start, ""
    for control in chosen.controls:
        for value in tried(control, start):
            if value != start[control.key]:
                yield chosen, chosen.state({**start, control.key: value}), control.key


def ask(**request: Any) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(answer(json.dumps(request)))
    return reply


def run(code: str) -> Any:
    """What the last line of some code gives."""
    *lines, last = ast.parse(code).body
    assert isinstance(last, ast.Expr), code
    names: dict[str, Any] = {}
    exec(compile(ast.Module(lines, []), "copied", "exec"), names)
    return eval(compile(ast.Expression(last.value), "copied", "eval"), names)


# ---- the explorers ----------------------------------------------------------------------------------------------------------


def test_every_file_is_an_explorer_of_its_name() -> None:
    assert {path.stem for path in LIVE.glob("*.py")} - MACHINERY == set(EXPLORERS)
    assert len(EXPLORERS) == 13 and [EXPLORERS[name].name for name in EXPLORERS] == list(EXPLORERS)


@EACH
def test_it_is_whole(name: str) -> None:
    """Start state, controls and the arguments of its functions have the same keys; a start state needs no settling."""
    chosen = EXPLORERS[name]
    assert set(chosen.start) == set(chosen.by_key) and len(chosen.by_key) == len(chosen.controls)
    assert chosen.state() == dict(chosen.start)
    assert chosen.title and all(control.label for control in chosen.controls)


@EACH
def test_each_control_moves_it(name: str) -> None:
    """Every state draws at both widths, keeps what was set, says something, and is settled: settling it again changes nothing."""
    for chosen, state, key in states(name):
        assert chosen.state(state) == state, key
        figure = chosen.live(state)
        assert figure.svg(680).startswith("<svg ") and figure.svg(358).startswith("<svg ")
        assert figure.readout and "None" not in figure.readout
    for control in EXPLORERS[name].controls:
        for value in tried(control, EXPLORERS[name].state()):
            assert EXPLORERS[name].state({control.key: value})[control.key] == value


@EACH
def test_something_is_seen_of_each_control(name: str) -> None:
    """No control without effect: some value of it changes the picture or the readout."""
    chosen = EXPLORERS[name]
    first = chosen.live(chosen.state())
    before = first.svg(680) + first.readout
    for control in chosen.controls:
        if isinstance(control, Text):
            continue
        moved = (chosen.live(chosen.state({control.key: value})) for value in tried(control, chosen.state()))
        assert any(figure.svg(680) + figure.readout != before for figure in moved), control.key


@EACH
def test_copied_code_gives_the_same_figure(name: str) -> None:
    for chosen, state, key in states(name):
        figure = run(chosen.python(**state))
        wanted = chosen.figure(**state)
        assert figure.kind.name == wanted.kind.name
        assert figure.view.keys() - FOR_A_HAND == wanted.view.keys() - FOR_A_HAND
        assert {k: v for k, v in figure.view.items() if wanted.view[k] != v} == {}, (key, chosen.python(**state))
        assert figure.svg(680) == wanted.svg(680) and figure.readout == wanted.readout


@EACH
def test_the_table_has_the_figure(name: str) -> None:
    """As wide as its head, nothing unwritten, made from the view alone (also from one that went through JSON), and in step with it."""
    seen = set()
    for chosen, state, _ in states(name):
        view = chosen.live(state).view
        table = chosen.table(view)
        assert table.rows and all(len(row) == len(table.head) for row in table.rows)
        assert not re.search(r"\bNone\b|\bnan\b", str(table))
        assert str(chosen.table(json.loads(json.dumps(view)))) == str(table)
        seen.add(str(table))
    assert len(seen) > 3


@EACH
def test_a_state_goes_through_text(name: str) -> None:
    """As it does in an address, and in the page's own requests."""
    for chosen, state, _ in states(name):
        assert chosen.state({key: written(value) for key, value in state.items()}) == state
        assert chosen.state(json.loads(json.dumps(state))) == state
        for control in chosen.controls:
            assert control.read(written(state[control.key]), state) == state[control.key]


@EACH
def test_what_is_in_the_picture_sets_the_figure(name: str) -> None:
    """Every mark that can be pointed at, and every stop of a handle, is a state that can be had; a figure without controls has none."""
    chosen = EXPLORERS[name]
    state = chosen.state()
    for width in (680, 358):
        page = BeautifulSoup(chosen.live(state).svg(width), "html.parser")
        for mark in page.find_all(attrs={"data-set": True}):
            patch = json.loads(mark["data-set"])
            assert patch and chosen.state({**state, **patch}).items() >= patch.items()
        for area in page.find_all(class_="sb-drag"):
            control, stops = chosen.by_key[area["data-key"]], json.loads(area["data-stops"])
            assert stops and area["data-axis"] in ("x", "y")
            assert all(control.check(value, state) == value for _, value in stops)
        still = chosen.figure(**state).svg(width)
        assert "data-set" not in still and "sb-drag" not in still


@EACH
def test_mistakes_have_one_message(name: str) -> None:
    chosen = EXPLORERS[name]
    with pytest.raises(ScalebookError, match=rf"unknown key of the explorer {name} 'colour'.* Known: {chosen.controls[0].key}"):
        chosen.state({"colour": 1})
    for control in chosen.controls:
        for value in (None, [1], {"a": 1}, 1 + 2j):
            with pytest.raises(ScalebookError, match=re.escape(control.key)):
                chosen.state({control.key: value})
        if not isinstance(control, Text):
            numbers = (
                [] if isinstance(control, Slider) and callable(control.values) else [-17.5]
            )  # it would be brought into range
            for value in ("no such thing", float("nan"), *numbers):
                with pytest.raises(ScalebookError, match=r"found|[Kk]nown") as told:
                    chosen.state({control.key: value})
                assert "\n" not in str(told.value)


def test_unknown_explorer() -> None:
    with pytest.raises(ScalebookError, match="unknown explorer 'rooflin'; did you mean 'roofline'"):
        explorer("rooflin")
    with pytest.raises(ScalebookError, match="unknown explorer None"):
        explorer(None)  # type: ignore[arg-type]
    assert "rooflin" not in EXPLORERS and "roofline" in EXPLORERS


# ---- controls ---------------------------------------------------------------------------------------------------------------

SIZES = Slider("n", "Size", (1, 2, 4.5, 8), lambda n: f"{n} rows")
UP_TO = Slider("n", "Size", lambda state: range(state["end"]))
STEP = Player("step", "Step", lambda state: state["end"])
KINDS = Choice("kind", "Kind", ((1, "one"), ("two words", "two")))


def test_reading() -> None:
    assert [SIZES.read(text) for text in ("1", " 2 ", "4.5", "8.0")] == [1, 2, 4.5, 8]
    assert KINDS.read("1") == 1 and KINDS.read(" two words ") == "two words"
    assert Choice("k", "k", ((True, "on"), (False, "off"))).read("false") is False
    assert STEP.read("3", {"end": 4}) == 3 and UP_TO.read("3", {"end": 4}) == 3
    assert [Toggle("t", "t").read(text) for text in ("true", "0", "False", "1")] == [True, False, False, True]


@pytest.mark.parametrize(
    ("control", "value", "told"),
    [
        (SIZES, 3, r"n \(Size\) is one of the 4 values of its slider, from 1 to 8; found 3; the nearest is 2"),
        (SIZES, "x", r"found 'x'$"),
        (SIZES, True, r"found True$"),
        (SIZES, 10**400, r"found a whole number of 1329 bits; the nearest is 8"),
        (SIZES, float("inf"), r"found inf; the nearest is 8"),
        (UP_TO, 4, r"found 4; the nearest is 3"),
        (STEP, 5, r"step \(Step\) is a whole number from 0 to 4; found 5"),
        (STEP, 1.5, r"found 1.5"),
        (KINDS, "three", r"unknown kind \(Kind\) 'three'. Known: 1, two words"),
        (KINDS, True, r"unknown kind \(Kind\) True. Known: 1, two words"),
        (Toggle("t", "On"), 1, r"t \(On\) is true or false; found 1"),
        (Text("m", "Mesh", "X=2"), "x" * 201, r"m \(Mesh\) has 201 characters: a field takes at most 200, such as 'X=2'"),
        (Text("m", "Text", "{}", lines=4, most=2000), "x" * 2001, r"has 2,001 characters: a field takes at most 2,000"),
        (Text("m", "Mesh", "X=2"), 2, r"m \(Mesh\) must be a text, such as 'X=2'; found 2 of type int"),
    ],
)
def test_refused(control: Control, value: Any, told: str) -> None:
    with pytest.raises(ScalebookError, match=told):
        control.check(value, {"end": 4})


def test_settling_and_specs() -> None:
    state = {"end": 4}
    assert UP_TO.settled(9, state) == 3 and UP_TO.settled(-1, state) == 0 and SIZES.settled(3, state) == 3
    assert STEP.settled(9, state) == 4 and STEP.settled(2, state) == 2
    assert SIZES.spec(4.5, {}) == {"value": 2, "text": "4.5 rows", "max": 3}
    assert UP_TO.spec(2, state) == {"value": 2, "text": "2", "max": 3}
    assert Slider("n", "n", lambda s: (2, 4)).spec(4, {}) == {"value": 1, "text": "4", "max": 1, "values": [2, 4]}
    assert Choice("k", "k", lambda s: ((1, "one"),)).spec(1, {}) == {"value": "1", "text": "one", "options": [["1", "one"]]}
    assert KINDS.spec("two words", {}) == {"value": "two words", "text": "two"}


# ---- in a page --------------------------------------------------------------------------------------------------------------


@EACH
def test_controls_in_a_page(name: str) -> None:
    """Native inputs with a label each, at the place of the state, ids of their own; values as the library has them."""
    chosen = EXPLORERS[name]
    state = chosen.state()
    page = BeautifulSoup(figure_html(chosen, {}, caption_html="<b>It binds.</b>", question="Which?", name="fig-x"), "html.parser")
    ids = [tag["id"] for tag in page.find_all(id=True)]
    assert len(ids) == len(set(ids)) and json.loads(page.figure["data-state"]) == state
    assert ("data-slow" in page.figure.attrs) == chosen.slow
    boxes = page.find("form", class_="sb-controls").find_all(class_="sb-control")
    assert [box["data-key"] for box in boxes] == [control.key for control in chosen.controls]
    for box, control in zip(boxes, chosen.controls, strict=True):
        value = state[control.key]
        for field in box.find_all(["input", "select", "textarea"]):
            labelled = field.get("aria-label") or field.find_parent("label") or box.find("label", attrs={"for": field.get("id")})
            assert labelled, f"{control.key} has a field without a label"
        if isinstance(control, Slider | Player):
            field = box.find("input", type="range")
            values = json.loads(box["data-values"]) if "data-values" in box.attrs else range(int(field["max"]) + 1)
            assert values[int(field["value"])] == value and len(values) == int(field["max"]) + 1
            assert list(values) == list(control.allowed(state))
            assert box.output.get_text() == field["aria-valuetext"] == control.shows(value)
        elif isinstance(control, Choice):
            chosen_ones = box.find_all(["input", "option"], attrs={"checked": True}) + box.find_all("option", selected=True)
            assert [one["value"] for one in chosen_ones] == [written(value)]
        elif isinstance(control, Toggle):
            assert ("checked" in box.input.attrs) == value
        elif control.lines > 1:
            assert box.textarea.get_text() == f"\n{value}" and int(box.textarea["rows"]) == control.lines
        else:
            assert box.input["value"] == value
    assert [b["data-do"] for b in page.find(class_="sb-tools").find_all("button")] == ["python", "link", "reset"]
    assert page.find("details", class_="sb-table").find("table") and page.find(class_="sb-error").has_attr("hidden")


@EACH
def test_a_page_gets_what_stood_there(name: str) -> None:
    """The reply for the start state is what the built page shows; more only where it is asked for."""
    chosen = EXPLORERS[name]
    reply = ask(do="explore", name=name, state={}, width=358)
    page = figure_html(chosen, {}, caption_html="")
    assert set(reply) == {"ok", "state", "svg", "readout", "controls"} and reply["ok"] is True
    assert reply["svg"].replace('class="sb-svg"', 'class="sb-svg sb-narrow"', 1) in page
    assert f'<p class="sb-readout">{reply["readout"]}</p>' in page
    assert reply["controls"].keys() == chosen.by_key.keys()
    reply = ask(do="explore", name=name, state=reply["state"], width=680, **{"with": ["table", "python"]})
    assert reply["svg"].replace('class="sb-svg"', 'class="sb-svg sb-broad"', 1) in page and reply["table"] in page
    assert reply["python"] == chosen.python(**chosen.state())


def test_what_stands_in_a_page_is_escaped() -> None:
    text = """'"><script>alert(1)</script>&"""
    for field in (Text("m", "A <b>", "x"), Text("m", "A <b>", "x", lines=4, most=2000)):
        page = field.html("f", text, {})
        assert "<script" not in page and "<b>" not in page and html.escape(text) in page


def test_mistakes_come_back() -> None:
    reply = ask(do="explore", name="roofline", state={"chip": "v5q"})
    assert reply["ok"] is False and reply["error"].startswith("unknown chip (Chip) 'v5q'") and "bug" not in reply
    assert "from 200 to 5000; found 7" in ask(do="explore", name="roofline", width=7)["error"]
    assert "unknown part of a reply 'tables'" in ask(do="explore", name="roofline", **{"with": ["tables"]})["error"]
    assert "unknown request None. Known: explore, check" in ask(name="roofline")["error"]
    assert "a request is a JSON object; found '[1'" in json.loads(answer("[1"))["error"]
    assert "a request is a JSON object; found [1]" in json.loads(answer("[1]"))["error"]


@pytest.mark.parametrize("kind", [ZeroDivisionError, RecursionError, KeyError])
def test_faults_come_back_with_their_traceback(monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    def broken(_: Any) -> Any:
        raise kind("no rows")

    monkeypatch.setattr("scalebook.live.requests.named", broken)
    reply = ask(do="explore", name="roofline")
    assert reply["ok"] is False and kind.__name__ in reply["error"] and "no rows" in reply["error"]
    assert reply["bug"].startswith("Traceback") and "in broken" in reply["bug"]


def test_checking() -> None:
    reply = ask(do="check", id="rooflines/dot-product", answer="1/2")
    assert reply["ok"] and reply["correct"] is True and reply["status"] == "right" and "sb-verdict sb-right" in reply["html"]
    assert ask(do="check", id="rooflines/dot-product", answer="2 FLOPs/byte")["correct"] is False
    assert "unknown exercise 'rooflines/dot'" in ask(do="check", id="rooflines/dot", answer="1")["error"]
    for wrong in (None, 3, ["a"], {"a": 1}):
        assert "an answer is a text" in ask(do="check", id="rooflines/dot-product", answer=wrong)["error"]
    assert "asked for by its id" in ask(do="check", id=3, answer="1")["error"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=8), inside, max_size=3),
    max_leaves=6,
)
CHIPS = st.sampled_from(
    ["v5e", "H100", "8", "1", "true", "A[I_X, J]", "X=2, Y=4", "v5e:4x4", "", "0,0", "[8, 8]", "I=16", "ring"]
)
REQUESTS = st.fixed_dictionaries(
    {"do": st.sampled_from(["explore", "explore", "explore", "check"]) | JSON},
    optional={"id": st.sampled_from(["rooflines/dot-product"]) | JSON, "answer": JSON, "width": st.integers(100, 900) | JSON,
              "with": st.lists(st.sampled_from(["table", "python"]), max_size=2) | JSON},
)  # fmt: skip


SIGNS = "AIJKXYZTDF_*,;:=[]{}()->.x 0123456789"


def changed(text: str, place: int, out: int, into: str) -> str:
    """A text with some characters at a place replaced by others."""
    return text[:place] + into + text[place + out :]


@settings(max_examples=150)
@given(st.data())
def test_no_request_raises_or_finds_a_fault(data: st.DataObject) -> None:
    """Any JSON gets an answer; whatever is set, it is a figure or one message, never a fault of the library."""
    request = data.draw(REQUESTS)
    name = data.draw(st.sampled_from(list(EXPLORERS)))
    start = EXPLORERS[name].start
    texts = st.sampled_from([written(value) for value in start.values()])
    almost = st.builds(changed, texts, st.integers(0, 60), st.integers(0, 3), st.text(SIGNS, max_size=3))
    values = st.dictionaries(st.sampled_from(list(start)), almost | CHIPS | JSON, max_size=2)
    request |= data.draw(st.fixed_dictionaries({"name": st.just(name), "state": values}))
    reply = json.loads(answer(json.dumps(request)))
    assert reply["ok"] or (reply["error"] and "bug" not in reply), reply


@given(st.text() | JSON)
def test_no_text_raises(text: Any) -> None:
    assert json.loads(answer(text))["ok"] is False


# ---- in a notebook ----------------------------------------------------------------------------------------------------------


def test_in_a_state() -> None:
    live = sb.explorer("roofline", B=1024, chip="v5p")
    assert live.state["B"] == 1024 and live.figure.view == run(live.python()).view
    assert live._repr_html_() == live.figure._repr_html_() and 'class="sb-drag"' not in live._repr_html_()
    assert repr(live).startswith("explorer('roofline', ") and "chip='v5p'" in repr(live)
    assert str(live.table()) == str(live.explorer.table(live.figure.view))
    with pytest.raises(ScalebookError, match="unknown key of the explorer roofline 'b'; did you mean 'B'"):
        sb.explorer("roofline", b=1)


def fields(box: Any) -> dict[str, Any]:
    """The widgets of a board by their labels."""
    flat = [inner for child in box.children for inner in (getattr(child, "children", None) or [child])]
    return {made.description: made for made in flat if getattr(made, "description", "")}


@EACH
def test_widgets_move_the_figure(name: str) -> None:
    """Every control as a widget; moved, it shows what the explorer in that state shows."""
    live = explorer(name)
    for control in live.explorer.controls:
        box = live.widget()
        made, picture = fields(box)[control.label], box.children[-1]
        assert picture.value == live._repr_html_()
        for value in tried(control, live.state)[-1:]:
            made.value = value
            state = live.explorer.state({**live.state, control.key: value})
            assert picture.value == Live(live.explorer, state)._repr_html_()
            assert {c.key: fields(box)[c.label].value for c in live.explorer.controls} == state


def test_a_mistake_in_a_field_is_told_in_place() -> None:
    live = explorer("sharded_array")
    box = live.widget()
    error, picture = box.children[-2:]
    before = picture.value
    field = fields(box)["Array"]
    field.value = "A[I_X, J_X]"
    assert "X" in error.value and picture.value == before
    field.value = "A[I_X, J]"
    assert error.value == "" and picture.value != before


def shown_of(live: Live, monkeypatch: pytest.MonkeyPatch) -> Any:
    import IPython.display

    made: list[Any] = []
    monkeypatch.setattr(IPython.display, "display", made.append)
    live._ipython_display_()
    return made[0]


def test_what_a_notebook_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controls where ipywidgets is installed, the figure in a page of the book, else the figure and how to get the controls."""
    live = explorer("roofline")
    assert type(shown_of(live, monkeypatch)).__name__ == "VBox"
    monkeypatch.setenv("SCALEBOOK_STYLES", "page")
    assert shown_of(live, monkeypatch).data == live._repr_html_()
    assert "<style>" not in live._repr_html_()
    monkeypatch.delenv("SCALEBOOK_STYLES")
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    data = shown_of(live, monkeypatch).data
    assert data.startswith(live._repr_html_()) and "scalebook[widgets]" in data
    with pytest.raises(MissingExtra, match=r"needs the package ipywidgets, which is not installed"):
        live.widget()
