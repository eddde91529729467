"""Every explorer of the built pages, moved in a real browser as a reader would, and compared with the library run here."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from built_site import Opened, OpenPage
from explorer_page import PATIENCE, Figure, Place, differences, places
from playwright.sync_api import Page

from scalebook.live.controls import Player, Slider, Text

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
PLACES = places()
PATHS = list(dict.fromkeys(place.path for place in PLACES))
SHIFTS = """addEventListener('DOMContentLoaded', () => { window.shifts = 0;
new PerformanceObserver(list => list.getEntries().forEach(e => { if (!e.hadRecentInput) window.shifts += e.value; }))
.observe({ type: 'layout-shift', buffered: true }); });"""
SET = "() => Promise.all([document.fonts.ready, window.MathJax?.startup?.promise]).then(() => { shifts = 0; })"
RUBBISH = ("?!", "", "x=,", "none-such:0x0")  # one of these is wrong in any field

every_explorer = pytest.mark.parametrize("place", PLACES, ids=str)
every_path = pytest.mark.parametrize("path", PATHS)


@pytest.fixture(scope="module")
def chapters(open_page: OpenPage) -> Iterator[dict[str, Opened]]:
    """The pages opened so far: the library starts once in each, as for a reader."""
    with ExitStack() as stack:

        class Chapters(dict[str, Opened]):
            def __missing__(self, path: str) -> Opened:
                init = {
                    "height": 900,
                    "color_scheme": "light",
                    "permissions": ["clipboard-read", "clipboard-write"],
                    "script": SHIFTS,
                }
                self[path] = stack.enter_context(open_page(path, **init))
                return self[path]

        yield Chapters()


@pytest.fixture
def figure(place: Place, chapters: dict[str, Opened]) -> Iterator[Figure]:
    """An explorer in its start state; whatever is done with it, nothing may be complained about in the console."""
    seen = chapters[place.path]
    seen.page.set_viewport_size({"width": 1280, "height": 900})
    figure = Figure(seen, place)
    figure.root.scroll_into_view_if_needed()
    figure.reset()
    yield figure
    assert seen.errors == [], "errors in the console"
    assert seen.elsewhere == [], "requests to another host"


@every_explorer
@pytest.mark.parametrize("hand", ["mouse", "keyboard"])
def test_every_control_at_its_first_middle_and_last_value(figure: Figure, hand: str) -> None:
    """Picture, readout and controls are the library's own, whichever control is moved, and by whichever hand."""
    figure.check(figure.start)
    state = figure.start
    for control in figure.explorer.controls:
        for value in figure.allowed(control, state):
            (figure.by_mouse if hand == "mouse" else figure.by_keyboard)(control, value, state)
            wanted = {**state, control.key: value}
            figure.check(wanted)
            reply = figure.reply(wanted)
            state = reply["state"] if reply["ok"] else wanted
        figure.reset()
        state = figure.start


HIT = """([id, text]) => {  // a point at which an element with this data-set is hit, in client coordinates
    const stage = document.querySelector(`figure#${id} .sb-stage`);
    for (const element of stage.querySelectorAll("[data-set]")) {
        if (element.dataset.set !== text) continue;
        element.scrollIntoView({ block: "center" });
        const { x, y, width, height } = element.getBoundingClientRect();
        for (const across of [0.5, 0.25, 0.75, 0.1, 0.9]) for (const down of [0.5, 0.25, 0.75, 0.1, 0.9]) {
            const point = [x + across * width, y + down * height];
            if (document.elementFromPoint(...point)?.closest("[data-set]")?.dataset.set === text) return point;
        }
    }
    return null;
}"""


@every_explorer
def test_what_can_be_pointed_at(figure: Figure) -> None:
    """Pointing at an element that chooses, or clicking it, gives the state that it names; what is chosen stays when the mouse leaves."""
    found = list(
        dict.fromkeys(figure.find(".sb-stage svg:visible [data-set]").evaluate_all("all => all.map(e => e.dataset.set)"))
    )
    chosen = dict.fromkeys((*found[:1], *found[len(found) // 2 :][:1], *found[-1:]))
    for text, click in itertools.product(chosen, (False, True)):
        figure.reset()  # the mouse is elsewhere then
        point = figure.page.evaluate(HIT, [figure.place.id, text])
        assert point is not None, f"{text} cannot be pointed at: something lies over it"
        figure.page.mouse.move(point[0] - 1, point[1] - 1)
        figure.page.mouse.move(*point)
        if click:
            figure.page.mouse.click(*point)
        figure.check({**figure.start, **json.loads(text)})
        figure.page.mouse.move(1, 1)
        figure.check({**figure.start, **json.loads(text)})


@every_explorer
def test_handles_can_be_dragged(figure: Figure) -> None:
    """The nearest stop to the pointer wins, also while the picture changes under it; the slider has the focus then."""
    areas = figure.find(".sb-stage svg:visible .sb-drag")
    for at in range(areas.count()):
        figure.reset()
        key, axis, text = (areas.nth(at).get_attribute(f"data-{name}") or "" for name in ("key", "axis", "stops"))
        stops = json.loads(text)
        box = areas.nth(at).bounding_box()
        assert box is not None and stops and key in figure.start
        areas.nth(at).scroll_into_view_if_needed()
        where = """([id, x, y]) => { const m = document.querySelector(`figure#${id} .sb-stage svg`).getScreenCTM();
                   const p = new DOMPoint(x, y).matrixTransform(m); return [p.x, p.y]; }"""
        across = areas.nth(at).evaluate("r => [r.x, r.y, r.width, r.height].map(v => v.baseVal.value)")
        for stop, value in (stops[-1], stops[len(stops) // 2], stops[0]):
            middle = [across[0] + across[2] / 2, across[1] + across[3] / 2]
            goal = [stop, middle[1]] if axis == "x" else [middle[0], stop]
            first, last = (figure.page.evaluate(where, [figure.place.id, *p]) for p in (middle, goal))
            figure.page.mouse.move(*first)
            figure.page.mouse.down()
            figure.page.mouse.move((first[0] + last[0]) / 2, (first[1] + last[1]) / 2, steps=3)
            figure.page.mouse.move(*last, steps=3)
            figure.page.mouse.up()
            figure.check({**figure.start, key: value})
            assert figure.page.evaluate("document.activeElement.id") == f"{figure.place.id}-{key}"


@every_explorer
def test_a_mistake_is_told_in_the_librarys_own_words(figure: Figure) -> None:
    """The last good picture stays, and what was typed; the field is marked until it is mended."""
    for control in figure.explorer.controls:
        if not isinstance(control, Text):
            continue
        wrong = next(text for text in RUBBISH if not figure.reply({**figure.start, control.key: text})["ok"])
        picture = figure.find(".sb-stage").inner_html()
        figure.type(control, wrong)
        figure.check({**figure.start, control.key: wrong})
        field = figure.field(control)
        assert figure.find(".sb-stage").inner_html() == picture
        assert field.input_value() == wrong
        assert field.get_attribute("aria-invalid") == "true"
        assert field.get_attribute("aria-describedby") == figure.find(".sb-error").get_attribute("id")
        figure.page.keyboard.press("ControlOrMeta+a")
        figure.page.keyboard.press("Delete")
        figure.page.keyboard.type(figure.start[control.key])  # and no Enter: a pause is enough
        figure.page.wait_for_function(
            "id => document.querySelector(`figure#${id} .sb-error`).hidden", arg=figure.place.id, timeout=PATIENCE
        )
        figure.check(figure.start)
        assert field.get_attribute("aria-invalid") is None


@every_explorer
def test_steps_are_the_readers(figure: Figure) -> None:
    """Play goes on by whole steps, at a pace to read by, stops at the end and never starts over; back, pause and keys work."""
    figure.page.emulate_media(reduced_motion="reduce")
    for player in (control for control in figure.explorer.controls if isinstance(control, Player)):
        field, last = figure.field(player), player.end(figure.start)
        back, play, forward = (figure.box(player).locator(f"[data-do={do}]") for do in ("back", "play", "forward"))
        figure.by_keyboard(player, max(0, last - 2), figure.start)
        figure.check({**figure.start, player.key: max(0, last - 2)})
        play.click()
        assert play.text_content() == ("Pause" if last > 1 else "Play")
        shown = set()
        for _ in range(80):
            shown.add(field.input_value())
            if play.text_content() == "Play":
                break
            figure.page.wait_for_timeout(50)
        assert field.input_value() == str(last)
        assert shown <= {str(step) for step in range(max(0, last - 2), last + 1)}
        figure.check({**figure.start, player.key: last})
        back.click()
        figure.check({**figure.start, player.key: max(0, last - 1)})
        forward.click()
        figure.check({**figure.start, player.key: last})
        play.click()  # from the end, play begins anew; a second click pauses
        play.click()
        figure.check({**figure.start, player.key: 0})
        assert play.text_content() == "Play"
    figure.page.emulate_media(reduced_motion=None)


@every_explorer
def test_a_screen_reader_is_told(figure: Figure) -> None:
    """The readout is said once the reader rests, and nothing while nothing changes."""
    told = figure.find("p[role=status]")
    move(figure)
    figure.settle()
    said = "([id, text]) => document.querySelector(`figure#${id} p[role=status]`).textContent === text"
    figure.page.wait_for_function(said, arg=[figure.place.id, figure.find(".sb-readout").text_content()], timeout=3000)
    assert told.text_content() != ""


def move(figure: Figure) -> dict[str, Any]:
    """Moves the first control that leads to another readout; gives the state."""
    before = figure.reply(figure.start)["readout"]
    for control in figure.explorer.controls:
        for value in figure.allowed(control, figure.start):
            reply = figure.reply({**figure.start, control.key: value})
            if reply["ok"] and reply["readout"] != before:
                figure.by_keyboard(control, value, figure.start)
                state: dict[str, Any] = reply["state"]
                return state
    raise AssertionError("no control changes the readout")


@every_explorer
def test_table_code_and_way_back(figure: Figure) -> None:
    """The open table follows the figure; the code and the link are those of the state; reset brings the start back, at the same height."""
    heights = [figure.root.evaluate("e => e.offsetHeight")]
    figure.find("summary").click()
    figure.find("[data-do=python]").click()
    figure.settle()
    state = move(figure)
    figure.check(state)
    reply = figure.reply(state, "table", "python")
    table = figure.find("details.sb-table").evaluate("d => [...d.children].slice(1).map(e => e.outerHTML).join('')")
    assert differences(table, figure.written(reply["table"])) == []
    assert figure.find(".sb-shown code").text_content() == reply["python"]
    figure.find("[data-do=python]").click()
    figure.settle()
    assert figure.page.evaluate("navigator.clipboard.readText()") == reply["python"]
    figure.find("[data-do=link]").click()
    link = figure.find(".sb-shown code").text_content() or ""
    figure.page.wait_for_function("address => navigator.clipboard.readText().then(text => text === address)", arg=link)
    assert link.endswith(f"#{figure.place.id}") and all(f"{figure.place.id}.{key}=" in link for key in changed(figure, state))
    figure.find("summary").click()
    figure.reset()
    figure.check(figure.start)
    heights.append(figure.root.evaluate("e => e.offsetHeight"))
    assert heights[0] <= heights[1] <= heights[0] + 50, "only the readout may keep a line that it needed"


def changed(figure: Figure, state: dict[str, Any]) -> list[str]:
    return [key for key, value in state.items() if value != figure.start[key]]


@every_path
def test_states_are_kept_in_the_address(path: str, chapters: dict[str, Opened], open_page: OpenPage) -> None:
    """All figures of a page moved: the address opens them so again, on a phone and drawn for it. What it cannot mean is told."""
    figures = here(path, chapters)
    states = {}
    for figure in figures:
        figure.reset()
        states[figure.place.id] = move(figure)
        figure.settle()
    page = figures[0].page
    parts = {f"{id}.{key}" for id, state in states.items() for key in state if state[key] != started(figures, id)[key]}
    page.wait_for_function("parts => parts.every(p => location.search.includes(`${p}=`))", arg=sorted(parts))
    asked = page.evaluate("location.search")
    assert set(re.findall(r"[?&]([^=]+)=", asked)) == parts
    with open_page(f"{path}{asked}#{figures[-1].place.id}", width=390, idle=False) as seen:
        for figure in (Figure(seen, f.place) for f in figures):
            figure.check(states[figure.place.id])
        assert seen.errors == []
        wide = seen.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390
    first = figures[0]
    key = first.explorer.controls[0].key
    with open_page(f"{path}?{first.place.id}.{key}=%3F!#{first.place.id}", idle=False) as seen:
        again = Figure(seen, first.place)
        again.check({**first.start, key: "?!"})
        assert again.find(".sb-error").is_visible()
    for figure in figures:
        figure.reset()


def here(path: str, chapters: dict[str, Opened]) -> list[Figure]:
    return [Figure(chapters[path], place) for place in PLACES if place.path == path]


def started(figures: list[Figure], id: str) -> dict[str, Any]:
    return next(figure.start for figure in figures if figure.place.id == id)


@every_path
def test_a_page_wakes_without_a_jump(path: str, open_page: OpenPage) -> None:
    """Nothing is announced on load; formulas set, nothing shifts while the library starts, and what is moved before it is there is kept."""
    with open_page(path, height=900, script=SHIFTS, idle=False) as seen:
        seen.page.evaluate(SET)
        for place in [place for place in PLACES if place.path == path]:
            figure = Figure(seen, place)
            figure.settle()
            figure.root.scroll_into_view_if_needed()
            if figure.find(".sb-guess").count():
                continue
            assert figure.find("p[role=status]").text_content() == ""
            still, picture = figure.find(".sb-stage").bounding_box(), figure.find(".sb-stage svg:visible").inner_html()
            slider = next((c for c in figure.explorer.controls if isinstance(c, Slider | Player)), None)
            if slider is None:
                continue
            other = next(value for value in reversed(slider.allowed(figure.start)) if value != figure.start[slider.key])
            figure.by_keyboard(slider, other, figure.start)
            figure.check({**figure.start, slider.key: other})
            figure.by_keyboard(slider, figure.start[slider.key], figure.start)
            figure.check(figure.start)
            assert figure.find(".sb-stage").bounding_box() == still
            assert differences(picture, figure.find(".sb-stage svg").inner_html()) == []
        assert seen.page.evaluate("window.shifts") < 0.02
        assert seen.errors == []


@every_path
def test_words_in_the_text_set_their_figure(path: str, chapters: dict[str, Opened]) -> None:
    """Each gives the state that it names, whatever was moved before, and brings the figure into view."""
    figures = {figure.place.id: figure for figure in here(path, chapters)}
    page = chapters[path].page
    words = page.locator("article button.sb-set")
    assert page.locator("article span.sb-set").count() == 0, "words that set nothing"
    source = page.request.get(page.url).text()
    settings = re.findall(r'class="sb-set" data-for="([^"]+)" data-set="([^"]+)"', source)
    assert words.count() == len(settings)
    for at, (id, text) in enumerate(settings):
        figure = figures[id]
        figure.reset()
        words.nth(at).click()
        figure.check({**figure.start, **json.loads(unescape(text))})
        page.wait_for_function(
            """id => { const { top, bottom } = document.querySelector(`figure#${id} .sb-stage`).getBoundingClientRect();
                      return Math.min(bottom, innerHeight) - Math.max(top, 0) > 0.5 * Math.min(bottom - top, innerHeight); }""",
            arg=id,
        )


@every_path
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_moved_figures_are_for_everyone(path: str, theme: str, width: int, chapters: dict[str, Opened]) -> None:
    """With a figure moved, its table and its code open, and a mistake told: axe-core is silent, and nothing is wider than the page."""
    figures = here(path, chapters)
    page = chapters[path].page
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    for figure in figures:
        figure.reset()
        state = move(figure)
        figure.find("[data-do=python]").click()
        figure.check(state)
        field = next((c for c in figure.explorer.controls if isinstance(c, Text)), None)
        if field is not None:
            figure.type(field, "?!")
            figure.settle()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    page.evaluate("theme => document.documentElement.dataset.theme = theme", "light")
    page.set_viewport_size({"width": 1280, "height": 900})


def violations(page: Page) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(content=AXE)
    found = page.evaluate("axe.run('figure.sb-explorer', {resultTypes: ['violations']})")
    return [f"{v['id']} ({v['impact']}): {v['help']}: {n['html'][:160]}" for v in found["violations"] for n in v["nodes"]]


@every_path
def test_without_a_script_every_figure_is_whole(path: str, open_page: OpenPage) -> None:
    """One picture, its readout, its caption, a table that opens; no control that would do nothing."""
    with open_page(path, java_script_enabled=False, width=390, idle=False) as seen:
        for place in (place for place in PLACES if place.path == path):
            figure = Figure(seen, place)
            assert figure.find(".sb-stage svg:visible").count() == 1
            assert figure.find(".sb-readout").is_visible() and figure.find("figcaption").is_visible()
            table = figure.find("details table")
            assert not table.is_visible()
            figure.find("summary").click()
            assert table.is_visible()
            assert figure.root.locator("button:visible, input:visible, select:visible").count() == 0


@every_path
def test_in_print_every_figure_is_whole(path: str, open_page: OpenPage) -> None:
    """Nothing to be pressed, also where the figure waits for a guess on the screen."""
    with open_page(path, idle=False) as seen:
        seen.page.emulate_media(media="print")
        for place in (place for place in PLACES if place.path == path):
            figure = Figure(seen, place)
            figure.settle()
            assert figure.find(".sb-stage svg:visible").count() == 1
            assert figure.find(".sb-readout").is_visible() and figure.find("figcaption").is_visible()
            assert figure.root.locator("button:visible, input:visible, select:visible, summary:visible").count() == 0
