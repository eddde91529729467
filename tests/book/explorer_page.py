"""The explorers of the built pages, for tests: where they are, how a reader moves them, and what the library says of the same state."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from typing import Any

from built_site import SITE, Opened, pages
from playwright.sync_api import Locator, Page

from scalebook.live import requests
from scalebook.live.controls import Choice, Control, Player, Slider, Text, Toggle
from scalebook.live.explorers import Explorer, named

FIGURE = re.compile(
    r'<figure class="sb-figure sb-explorer" id="([^"]+)" data-explorer="([^"]+)" data-state="([^"]+)"(?: data-slow="")?(?: data-guess="([^"]+)")?'
)
TAG, NUMBER = re.compile(r"<[^>]*>"), re.compile(r"-?\d+(?:\.\d+)?")
REST = "id => document.querySelector(`figure#${id} > p[role=status]`) && !('busy' in document.getElementById(id).dataset)"
AS_WRITTEN = "html => { const box = document.createElement('div'); box.innerHTML = html; return box.innerHTML; }"
# what stands in the page, with the same of the library's reply as the browser writes it
SHOWN = """([id, reply]) => {
    const figure = document.getElementById(id), part = name => figure.querySelector(`.sb-${name}`), controls = {};
    const written = html => { const box = document.createElement("div"); box.innerHTML = html; return box.innerHTML; };
    for (const box of figure.querySelectorAll(".sb-control")) {
        const input = box.querySelector("input:checked, input:not([type=radio]), textarea"), output = box.querySelector("output");
        controls[box.dataset.key] = output ? [input.value, input.max, output.textContent, input.getAttribute("aria-valuetext")]
            : input?.type === "checkbox" ? input.checked : ["text", "textarea"].includes(input?.type) ? input.value.trim()
            : box.querySelector("input:checked + span, option:checked").textContent;
    }
    const drawn = [...part("stage").querySelectorAll("svg")].find(svg => svg.getBoundingClientRect().width > 0).cloneNode(true);
    drawn.classList.remove("sb-broad", "sb-narrow"); // before it is touched, the page's own picture shows the same
    return { error: part("error").hidden ? null : part("error").textContent, controls,
             readout: [part("readout").innerHTML, written(reply.readout)], svg: [drawn.outerHTML, written(reply.svg)] };
}"""
PATIENCE = 120_000  # ms: the library starts, or a planner works, on a busy machine


@dataclass(frozen=True)
class Place:
    """An explorer on a page of the site, as the page's source names it."""

    path: str
    id: str
    name: str
    start: str
    guess: str  # JSON, or "" where the figure is open

    def __str__(self) -> str:
        return f"{self.path.rpartition('/')[2].removesuffix('.html')}-{self.id}"


def places() -> list[Place]:
    """Every explorer of the site; the site's own list, so that a new one is tested without being named here."""
    found = []
    for path in pages():
        if (SITE / path).is_file():
            html = (SITE / path).read_text("utf-8")
            found += [Place(path, id, name, unescape(state), unescape(guess)) for id, name, state, guess in FIGURE.findall(html)]
    return found or [Place("(the site has no explorer)", "", "", "{}", "")]


def differences(found: str, wanted: str) -> list[str]:
    """What differs between two texts of HTML, an element a line; the first few.

    Coordinates may differ by a hundredth of a pixel, since logarithms of the browser's C library and of this machine's are rounded apart.
    """
    if TAG.sub("|", found) == TAG.sub("|", wanted) and NUMBER.split(found) == NUMBER.split(wanted):
        pairs = zip(NUMBER.findall(found), NUMBER.findall(wanted), strict=True)
        if all(abs(float(a) - float(b)) < 0.011 for a, b in pairs):
            return []
    lines = (text.replace(">", ">\n").splitlines() for text in (found, wanted))
    return list(difflib.unified_diff(*lines, "the page", "the library", lineterm="", n=0))[:12]


def as_shown(control: Control, spec: Mapping[str, Any]) -> Any:
    """What a control at a spec has: place, last place and words, whether it is on, its text, or the words of what is chosen."""
    if isinstance(control, Slider | Player):
        return [str(spec["value"]), str(spec["max"]), spec["text"], spec["text"]]
    return spec["text"] if isinstance(control, Choice) else spec["value"]


@dataclass
class Figure:
    """One explorer in an opened page."""

    seen: Opened
    place: Place

    @property
    def page(self) -> Page:
        return self.seen.page

    @cached_property
    def explorer(self) -> Explorer:
        return named(self.place.name)

    @cached_property
    def start(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.place.start)
        return state

    @cached_property
    def root(self) -> Locator:
        return self.page.locator(f"figure#{self.place.id}")

    def find(self, selector: str) -> Locator:
        return self.root.locator(selector)

    def box(self, control: Control) -> Locator:
        return self.find(f'.sb-control[data-key="{control.key}"]')

    def field(self, control: Control) -> Locator:
        return self.page.locator(f'[id="{self.place.id}-{control.key}"]')

    def settle(self) -> None:
        """Waits until the picture answers the last move."""
        self.page.wait_for_function(REST, arg=self.place.id, timeout=PATIENCE)

    def reset(self) -> None:
        """Opens the figure if it waits for a guess, and puts it back to its start."""
        cover = self.find(".sb-guess [data-do=show]")
        if cover.count():
            cover.click()
        self.find("[data-do=reset]").click()
        self.settle()

    @property
    def width(self) -> int:
        width: int = self.find(".sb-stage").evaluate("stage => Math.min(680, Math.floor(stage.clientWidth))")
        return width

    def reply(self, state: Mapping[str, Any], *more: str) -> dict[str, Any]:
        """What the library, run here, says of a state."""
        asked = {"do": "explore", "name": self.place.name, "state": dict(state), "width": self.width, "with": list(more)}
        reply: dict[str, Any] = json.loads(requests.answer(json.dumps(asked)))
        return reply

    def written(self, html: str) -> str:
        text: str = self.page.evaluate(AS_WRITTEN, html)
        return text

    def check(self, state: Mapping[str, Any]) -> None:
        """The page shows what the library says: picture, readout, and each control at its value with its words; or its own error."""
        self.settle()
        reply = self.reply(state)
        shown = self.page.evaluate(SHOWN, [self.place.id, reply])
        if not reply["ok"]:
            assert shown["error"] == reply["error"], state
            return
        assert shown["error"] is None, (state, shown["error"])
        for part in ("readout", "svg"):
            differing = differences(*shown[part])
            assert not differing, "\n".join([f"the {part} in the state {state}:", *differing])
        assert shown["controls"] == {c.key: as_shown(c, reply["controls"][c.key]) for c in self.explorer.controls}, state

    def allowed(self, control: Control, state: Mapping[str, Any]) -> list[Any]:
        """First, middle and last value that a control has in a state; of a text, its example and the start."""
        if isinstance(control, Text):
            return [control.example, self.start[control.key]]
        values = control.allowed(state)
        return list(dict.fromkeys((values[0], values[len(values) // 2], values[-1])))

    def by_mouse(self, control: Control, value: Any, state: Mapping[str, Any]) -> None:
        """Puts a control at a value by the mouse."""
        box = self.box(control)
        if isinstance(control, Slider | Player):
            at = list(control.allowed(state)).index(value)
            self.slide(self.field(control), at)
        elif isinstance(control, Choice) and control.segments:
            box.locator("label").nth(list(control.allowed(state)).index(value)).click()
        elif isinstance(control, Choice):
            box.locator("select").select_option(index=list(control.allowed(state)).index(value))
        elif isinstance(control, Toggle):
            box.locator("input").set_checked(value)
        else:
            self.type(control, value)

    def slide(self, field: Locator, at: int) -> None:
        """Drags a slider's thumb to a place. The thumb's middle runs from half a thumb inside one end to half a thumb inside the other."""
        thumb, last = 16, int(field.get_attribute("max") or 0)
        field.scroll_into_view_if_needed()
        area = field.bounding_box()
        assert area is not None
        now = int(field.input_value())
        x, y = area["x"] + thumb / 2, area["y"] + area["height"] / 2
        step = (area["width"] - thumb) / max(last, 1)
        self.page.mouse.move(x + now * step, y)
        self.page.mouse.down()
        self.page.mouse.move(x + at * step, y, steps=2)
        self.page.mouse.up()

    def by_keyboard(self, control: Control, value: Any, state: Mapping[str, Any]) -> None:
        """Puts a control at a value by keys alone, from the value that it has."""
        box = self.box(control)
        if isinstance(control, Slider | Player):
            values = list(control.allowed(state))
            at = values.index(value)
            self.field(control).focus()
            self.page.keyboard.press("Home" if at < len(values) / 2 else "End")
            for _ in range(min(at, len(values) - 1 - at)):
                self.page.keyboard.press("ArrowRight" if at < len(values) / 2 else "ArrowLeft")
        elif isinstance(control, Choice):
            values = list(control.allowed(state))
            (box.locator("input:checked") if control.segments else box.locator("select")).focus()
            for _ in range(values.index(value) - values.index(state[control.key])):
                self.page.keyboard.press("ArrowDown")
            for _ in range(values.index(state[control.key]) - values.index(value)):
                self.page.keyboard.press("ArrowUp")
        elif isinstance(control, Toggle):
            box.locator("input").focus()
            if value != state[control.key]:
                self.page.keyboard.press("Space")
        else:
            self.type(control, value)

    def type(self, control: Control, text: str) -> None:
        """Types a text into a field, and Enter; where that begins a line, with Control."""
        self.field(control).focus()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.press("Delete")
        self.page.keyboard.type(text)
        self.page.keyboard.press("ControlOrMeta+Enter" if isinstance(control, Text) and control.lines > 1 else "Enter")
