"""Exercises in the built pages, answered as a reader does, by the library in the browser; and the progress that is kept of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
import typed_answers
from built_site import Opened, OpenPage
from playwright.sync_api import Locator, Page, Route, expect
from typed_answers import Typed

from scalebook import exercises
from scalebook.exercises import Exercise, Verdict, grade_text
from scalebook.exercises.fields import CODE

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
KEY = "scalebook.progress.1"
STARTED = 60_000  # ms that the browser's Python may take to start on a busy machine
ALL = exercises.ids()
NUMBER, PARTS, SEGMENTS, SELECT, PROGRAM = (
    "rooflines/dot-product",
    "rooflines/time-bounds",
    "rooflines/which-binds",
    "rooflines/highest-ridge",
    "rooflines/my-time",
)
ROOFLINES = "book/rooflines.html"
LIST = "book/exercises.html"

# In place of the engine's module, where the engine is not what is tested: starts are noted, and this Python answers at once.
STAND_IN = """
export const start = (lane) => { if (lane) (window.started ??= []).push(lane); return Promise.resolve(true); };
export const ask = (request) => request.do !== "check" ? new Promise(() => {})
  : fetch("/answered-here", { method: "POST", body: JSON.stringify(request) }).then((reply) => reply.json());
export const onStatus = () => {};
"""
expect.set_options(timeout=STARTED)


def answered_here(seen: Opened, path: str, engine: str | None = STAND_IN) -> Page:
    """Goes to another page of the site, with a stand-in for the engine; None: one that cannot be fetched."""
    page = seen.page

    def reply(route: Route) -> None:
        asked = json.loads(route.request.post_data or "")
        verdict = grade_text(asked["id"], asked["answer"])
        route.fulfill(json={"ok": True, "status": verdict.status, "html": verdict._repr_html_()})

    page.route(
        "**/live/engine.js*",
        lambda route: route.fulfill(body=engine, content_type="text/javascript") if engine else route.abort(),
    )
    page.route("**/answered-here", reply)
    page.goto(page.url.replace(LIST, path))
    seen.settle()
    return page


def form_of(page: Page, id: str) -> Locator:
    return page.locator(f'form.sb-answer[data-exercise="{id}"]')


def fill(form: Locator, exercise: Exercise, texts: Typed) -> Locator:
    """Puts texts into the fields and gives the last one; options that are empty are left as they are."""
    last = form
    for field in exercise.fields:
        text, last = texts[field.key], form.locator(f'[name="{field.key}"]').first
        if field.kind != "choice":
            last.fill(text)
        elif last.evaluate("e => e.tagName") == "SELECT":
            last.select_option(text)
        elif text:
            last = form.locator(f'[name="{field.key}"][value="{text}"]')
            last.check()
    return last


def submit(form: Locator, exercise: Exercise, last: Locator) -> None:
    """With the key that submits; where there are only options, with the button."""
    if exercise.fields[-1].kind == "choice":
        form.get_by_role("button", name="Check").click()
    else:
        last.press("Control+Enter" if exercise.fields[0].kind == CODE else "Enter")


def html_of(page: Page, verdict: Verdict) -> str:
    """A verdict's HTML as the page holds it."""
    written: str = page.evaluate(
        "html => { const e = document.createElement('div'); e.innerHTML = html; e.firstChild.removeAttribute('role'); return e.innerHTML; }",
        verdict._repr_html_(),
    )
    return written


def expect_verdict(page: Page, form: Locator, verdict: Verdict) -> None:
    """Waits for a verdict, which is the one of this Python."""
    wanted = html_of(page, verdict)
    found = form.locator(".sb-verdict")
    try:
        page.wait_for_function(
            "([form, html]) => form.querySelector('.sb-verdict')?.outerHTML === html",
            arg=[form.element_handle(), wanted],
            timeout=STARTED,
        )
    except Exception:  # told with both texts
        assert (found.evaluate("e => e.outerHTML") if found.count() else "(no verdict)") == wanted, verdict.exercise
        raise


def answer(page: Page, id: str, texts: Typed) -> Verdict:
    """Answers an exercise and waits for the verdict."""
    exercise, form, verdict = exercises.get(id), form_of(page, id), grade_text(id, texts)
    submit(form, exercise, fill(form, exercise, texts))
    expect_verdict(page, form, verdict)
    return verdict


def stored(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.evaluate(f"localStorage.getItem('{KEY}')") or '{"exercises": {}}')["exercises"]
    return found


def clean(seen: Opened) -> None:
    assert seen.errors == [] and seen.elsewhere == []


# ---- every exercise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", exercises.CHAPTERS)
def test_every_exercise_answered_with_rubbish_wrong_and_right(chapter: str, open_page: OpenPage) -> None:
    """The verdict is word for word that of the library in this Python; what was typed and solved is there after a reload."""
    defined = exercises.chapter(chapter)
    with open_page(f"book/{chapter}.html") as seen:
        page = seen.page
        assert page.locator("form.sb-answer").evaluate_all("all => all.map(f => f.dataset.exercise)") == [e.id for e in defined]
        for number, exercise in enumerate(defined):
            assert answer(page, exercise.id, typed_answers.rubbish(exercise)).status == "unreadable"
            assert answer(page, exercise.id, typed_answers.wrong(exercise)).status == "wrong"
            mark = page.locator(f"#exercise-{exercise.id.replace('/', '-')} .sb-solved-mark")
            expect(mark).not_to_be_visible()
            assert answer(page, exercise.id, typed_answers.right(exercise)).correct
            expect(mark).to_be_visible()
            expect(page.locator(".sb-count")).to_have_text(f" {number + 1} of {len(defined)} solved")
            assert stored(page)[exercise.id]["tried"] == 1, "what cannot be read is no try"
        page.reload()
        expect(page.locator(".sb-solved-mark:visible")).to_have_count(len(defined))
        for exercise in defined:
            form, texts = form_of(page, exercise.id), typed_answers.right(exercise)
            found = form.evaluate("form => Object.fromEntries(new FormData(form))")
            assert found == texts
            expect(form.locator(".sb-outcome")).to_be_empty()
        clean(seen)


# ---- one exercise -------------------------------------------------------------------------------------------------------


def test_the_engine_starts_when_a_reader_goes_to_an_answer(open_page: OpenPage) -> None:
    with open_page(LIST) as seen:
        page = answered_here(seen, ROOFLINES)
        page.evaluate("document.querySelector('form.sb-answer').scrollIntoView()")
        assert page.evaluate("window.started ?? []") == []
        form_of(page, NUMBER).locator("input").focus()
        page.wait_for_function("window.started?.length === 1")
        form_of(page, PROGRAM).locator("textarea").focus()
        page.wait_for_function("String(window.started) === 'fast,slow'")


def test_keyboard_alone(open_page: OpenPage) -> None:
    """From the title's link through options, a list and code to the hint, without a mouse."""
    with open_page(LIST) as seen:
        page = answered_here(seen, ROOFLINES)
        page.locator("#exercise-rooflines-which-binds .sb-exercise-title a").focus()
        for text in ("hbm", "math", "hbm"):  # the right ones: an arrow goes to the next option
            page.keyboard.press("Tab")
            page.keyboard.press("Space")
            if text == "hbm":
                page.keyboard.press("ArrowRight")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Check"
        page.keyboard.press("Enter")
        expect_verdict(page, form_of(page, SEGMENTS), grade_text(SEGMENTS, typed_answers.right(exercises.get(SEGMENTS))))

        page.locator("#exercise-rooflines-highest-ridge .sb-exercise-title a").focus()
        page.keyboard.press("Tab")
        page.keyboard.type("v6e")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect_verdict(page, form_of(page, SELECT), grade_text(SELECT, "v6e"))

        page.locator("#exercise-rooflines-my-time .sb-exercise-title a").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Control+A")
        page.keyboard.type("def my_time(f, b, p, w):\nif f / p > b / w:\nreturn f / p")  # new lines are indented for the reader
        page.keyboard.press("Enter")
        for _ in range(4):
            page.keyboard.press("Backspace")
        page.keyboard.type("return b / w")
        assert form_of(page, PROGRAM).locator("textarea").input_value() == (
            "def my_time(f, b, p, w):\n    if f / p > b / w:\n        return f / p\n    return b / w"
        )
        page.keyboard.press("Control+Enter")
        expect_verdict(page, form_of(page, PROGRAM), grade_text(PROGRAM, typed_answers.right(exercises.get(PROGRAM))))
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Check", "Tab leaves the field for code"
        clean(seen)


def test_the_hint_is_offered_after_the_second_wrong_answer(open_page: OpenPage) -> None:
    with open_page(LIST) as seen:
        page = answered_here(seen, ROOFLINES)
        box = page.locator("#exercise-rooflines-dot-product")
        offer = box.get_by_role("button", name="Open the hint")
        answer(page, NUMBER, {"answer": "a word"})
        answer(page, NUMBER, {"answer": "3"})
        expect(offer).to_have_count(0)
        answer(page, NUMBER, {"answer": "3 seconds"})
        offer.click()
        expect(box.locator("details.sb-hint")).to_have_attribute("open", "")
        expect(box.locator("details.sb-solution")).not_to_have_attribute("open", "")
        expect(offer).to_have_count(0)
        assert page.evaluate("document.activeElement.textContent") == "Hint"
        answer(page, NUMBER, {"answer": "4"})
        expect(offer).to_have_count(0)  # it is open already
        clean(seen)


def test_a_draft_outlives_a_reload(open_page: OpenPage) -> None:
    """What was typed and not checked; and what is as it was at first is no draft."""
    with open_page(ROOFLINES) as seen:
        page = seen.page
        typed = {
            PARTS: {"lower": "1 ms <&>", "upper": ""},
            SEGMENTS: {"v5e": "", "v5p": "math", "h100": ""},
            SELECT: {"answer": "l4"},
            PROGRAM: {"code": "def my_time(a):\n\treturn 'ü'\n"},
        }
        for id, texts in typed.items():
            fill(form_of(page, id), exercises.get(id), texts)
        form_of(page, NUMBER).locator("input").fill("1")
        form_of(page, NUMBER).locator("input").fill("")
        page.reload()
        assert {id: entry["draft"] for id, entry in stored(page).items()} == typed
        for id, texts in typed.items():
            found = form_of(page, id).evaluate("form => Object.fromEntries(new FormData(form))")
            assert found == {key: text for key, text in texts.items() if text or key in found}
        clean(seen)


def test_code_without_end_is_stopped_and_the_page_lives_on(open_page: OpenPage) -> None:
    with open_page(ROOFLINES) as seen:
        page = seen.page
        program, form = exercises.get(PROGRAM), form_of(page, PROGRAM)
        answer(page, PROGRAM, typed_answers.wrong(program))  # the lane is there
        page.clock.install()
        endless = {"code": "def my_time(*given):\n    while True:\n        pass"}
        submit(form, program, fill(form, program, endless))
        expect(form.locator(".sb-outcome")).to_have_text("Checking …")
        assert answer(page, NUMBER, {"answer": "1/2"}).correct, "the other lane answers"
        page.clock.fast_forward(60_000)
        expect(form.locator(".sb-unreadable")).to_contain_text("was stopped")
        assert form.locator("textarea").input_value() == endless["code"]
        assert answer(page, PROGRAM, typed_answers.right(program)).correct
        clean(seen)


def test_a_library_that_cannot_be_fetched_is_told(open_page: OpenPage) -> None:
    """What was typed stays."""
    with open_page(LIST) as seen:
        page = answered_here(seen, ROOFLINES, engine=None)
        form = form_of(page, NUMBER)
        form.locator("input").fill("1/2")
        form.locator("input").press("Enter")
        expect(form.locator(".sb-unreadable")).to_contain_text("cannot be fetched")
        expect(form.locator("input")).to_have_value("1/2")


# ---- progress -----------------------------------------------------------------------------------------------------------


def with_progress(page: Page, exercises_: object) -> None:
    page.evaluate(
        "([key, text]) => localStorage.setItem(key, text)",
        [KEY, json.dumps({"format": "scalebook progress", "version": 1, "exercises": exercises_})],
    )
    page.reload()
    expect(page.locator(".sb-progress-count, span.sb-count").first).not_to_be_empty()  # the page is live


SOLVED = {"rooflines/dot-product": {"solved": "2026-03-01", "last": "2026-03-01", "tried": 2}, "tpus/peak": {"tried": 1}}


def test_all_exercises_with_progress(open_page: OpenPage) -> None:
    """Counts, states, the filter, and a link to every statement."""
    with open_page(LIST) as seen:
        page = seen.page
        items = page.locator("li[data-exercise]")
        assert items.evaluate_all("all => all.map(i => i.dataset.exercise)") == list(ALL)
        assert items.locator("a").all_inner_texts() == [exercises.get(id).title for id in ALL]
        expect(page.locator(".sb-progress-count")).to_have_text(f"0 of {len(ALL)} solved")
        with_progress(page, SOLVED)
        expect(page.locator(".sb-progress-count")).to_have_text(f"1 of {len(ALL)} solved")
        expect(page.locator('li[data-exercise="rooflines/dot-product"] .sb-state')).to_have_text("✓ solved on 2026-03-01")
        expect(page.locator('li[data-exercise="tpus/peak"] .sb-state')).to_have_text("tried once")
        counts = [f"{int(name == 'rooflines')} of {len(exercises.chapter(name))} solved" for name in exercises.CHAPTERS]
        expect(page.locator(".sb-count")).to_have_text(counts)
        page.get_by_label("open", exact=True).check()
        expect(page.locator("li[data-exercise]:visible")).to_have_count(len(ALL) - 1)
        expect(page.locator('li[data-exercise="rooflines/dot-product"]')).not_to_be_visible()
        page.get_by_label("all", exact=True).check()
        page.locator('li[data-exercise="rooflines/dot-product"] a').click()
        page.wait_for_url(f"**/{ROOFLINES}#exercise-rooflines-dot-product")
        expect(page.locator("#exercise-rooflines-dot-product .sb-solved-mark")).to_be_visible()
        expect(page.locator(".sb-count")).to_have_text(f" 1 of {len(exercises.chapter('rooflines'))} solved")
        clean(seen)


def test_progress_is_exported_reset_and_imported(open_page: OpenPage, tmp_path: Path) -> None:
    with open_page(LIST) as seen:
        page, note = seen.page, seen.page.locator(".sb-progress-note")
        draft = {"tpus/read-hbm": {"draft": {"answer": "20 ms"}}}
        with_progress(page, SOLVED | draft)
        with page.expect_download() as download:
            page.get_by_role("button", name="Export").click()
        file = tmp_path / "progress.json"
        download.value.save_as(file)
        data = json.loads(file.read_text("utf-8"))
        assert (
            data["exercises"] == SOLVED | draft and data["version"] == 1 and download.value.suggested_filename.endswith(".json")
        )

        page.once("dialog", lambda dialog: dialog.dismiss())
        page.get_by_role("button", name="Reset").click()
        expect(note).to_have_text("Nothing was changed.")
        assert stored(page) == SOLVED | draft
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Reset").click()
        expect(page.locator(".sb-progress-count")).to_have_text(f"0 of {len(ALL)} solved")
        assert stored(page) == {}

        # merged: the earlier solution, the later day, the larger number of tries, one's own draft
        with_progress(
            page,
            {
                "rooflines/dot-product": {"solved": "2026-05-01", "last": "2026-05-02", "tried": 1},
                "tpus/peak": {"solved": "2026-05-01"},
                "tpus/read-hbm": {"draft": {"answer": "mine"}},
            },
        )
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Import").click()
        chooser.value.set_files(file)
        expect(note).to_have_text("Imported: 3 exercises.")
        assert stored(page) == {
            "rooflines/dot-product": {"solved": "2026-03-01", "last": "2026-05-02", "tried": 2},
            "tpus/peak": {"solved": "2026-05-01", "tried": 1},
            "tpus/read-hbm": {"draft": {"answer": "mine"}},
        }
        expect(page.locator(".sb-progress-count")).to_have_text(f"2 of {len(ALL)} solved")
        clean(seen)


@pytest.mark.parametrize(
    "text", ["no JSON", "[]", "null", '{"format": "scalebook progress", "version": 2, "exercises": {}}', "{}"]
)
def test_a_file_that_is_no_progress_changes_nothing(text: str, open_page: OpenPage) -> None:
    with open_page(LIST) as seen:
        page = seen.page
        with_progress(page, SOLVED)
        page.locator("form.sb-progress input[type=file]").set_input_files(
            {"name": "x.json", "mimeType": "application/json", "buffer": text.encode()}
        )
        expect(page.locator(".sb-progress-note")).to_contain_text("not exported progress")
        expect(page.locator(".sb-progress-note")).to_contain_text("nothing was changed")
        assert stored(page) == SOLVED
        clean(seen)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "null",
        '"x"',
        '{"exercises": [1]}',
        '{"exercises": {"rooflines/dot-product": {"solved": "<b>", "tried": "x", "draft": 3}}}',
    ],
)
def test_broken_storage_counts_as_empty(text: str, open_page: OpenPage) -> None:
    with open_page(ROOFLINES) as seen:
        page = seen.page
        page.evaluate("([key, text]) => localStorage.setItem(key, text)", [KEY, text])
        page.reload()
        expect(page.locator(".sb-count")).to_have_text(f" 0 of {len(exercises.chapter('rooflines'))} solved")
        form_of(page, NUMBER).locator("input").fill("1/2")
        page.reload()
        expect(form_of(page, NUMBER).locator("input")).to_have_value("1/2")
        clean(seen)


REFUSALS = {
    "refused": "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })",
    "full": "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }",
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_browser_that_keeps_nothing(why: str, open_page: OpenPage) -> None:
    """Answers are graded and counted all the same, for as long as the page is open, and the reader is told."""
    with open_page(LIST) as seen:
        seen.page.add_init_script(REFUSALS[why])
        page = answered_here(seen, ROOFLINES)
        before = len(seen.errors)  # the theme itself may want storage
        assert answer(page, NUMBER, {"answer": "1/2"}).correct
        expect(page.locator(".sb-count")).to_have_text(f" 1 of {len(exercises.chapter('rooflines'))} solved")
        expect(form_of(page, NUMBER).locator(".sb-outcome")).to_contain_text("keeps nothing")
        assert seen.errors[before:] == []


def test_another_tab_is_followed(open_page: OpenPage) -> None:
    with open_page(LIST) as seen:
        other = seen.page.context.new_page()
        other.goto(seen.page.url)
        with_progress(other, SOLVED)
        expect(seen.page.locator(".sb-progress-count")).to_have_text(f"1 of {len(ALL)} solved")
        clean(seen)


# ---- how it looks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_answered_exercises_read_well(theme: str, width: int, open_page: OpenPage) -> None:
    """With verdicts of every kind: axe-core is silent, and nothing is wider than the screen."""
    with open_page(LIST, width=width, color_scheme=theme) as seen:
        page = answered_here(seen, ROOFLINES)
        for id, kind in {
            NUMBER: typed_answers.right,
            "rooflines/bias-add": typed_answers.rubbish,
            "rooflines/critical-batch": typed_answers.wrong,
            SEGMENTS: typed_answers.wrong,
            PROGRAM: typed_answers.wrong,
            "rooflines/choose-a-chip": typed_answers.wrong,
        }.items():
            answer(page, id, kind(exercises.get(id)))
        answer(page, "rooflines/vmem-weights", {"answer": "3 s"})
        answer(page, "rooflines/vmem-weights", {"answer": "4"})
        clean(seen)
        page.add_script_tag(content=AXE)
        found = page.evaluate("axe.run('#exercises', {resultTypes: ['violations']})")
        assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_all_exercises_read_well(theme: str, width: int, open_page: OpenPage) -> None:
    with open_page(LIST, width=width, color_scheme=theme) as seen:
        page = seen.page
        with_progress(page, SOLVED)
        clean(seen)
        page.add_script_tag(content=AXE)
        found = page.evaluate("axe.run('article', {resultTypes: ['violations']})")
        assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


SHIFTS = """() => new Promise(done => { const found = [];
  new PerformanceObserver(list => { for (const shift of list.getEntries()) found.push(...shift.sources.map(s => s.node)
    .filter(n => n?.parentElement?.closest('.sb-exercise, #exercises, .sb-exercise-list')).map(n => n.textContent.slice(0, 60))); })
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(found), 300); })"""


@pytest.mark.parametrize("width", [1280, 390])
def test_the_list_does_not_jump(width: int, open_page: OpenPage) -> None:
    """When it becomes live, whatever is solved."""
    with open_page(LIST, width=width) as seen:
        with_progress(seen.page, dict.fromkeys(ALL, SOLVED["rooflines/dot-product"]))
        expect(seen.page.locator(".sb-progress-count")).to_have_text(f"{len(ALL)} of {len(ALL)} solved")
        assert seen.page.evaluate(SHIFTS) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_jumps(width: int, open_page: OpenPage) -> None:
    """Not when the page becomes live, nor above an answer that is checked; nor below it, when the verdict has one line."""
    with open_page(LIST, width=width) as seen:
        page = answered_here(seen, f"{ROOFLINES}#exercises")
        with_progress(page, SOLVED)
        seen.settle()
        assert page.evaluate(SHIFTS) == []
        ids = [e.id for e in exercises.chapter("rooflines")]
        tops = (
            "() => [...document.querySelectorAll('.sb-exercise')].map(e => Math.round(e.getBoundingClientRect().top + scrollY))"
        )
        before, number = page.evaluate(tops), ids.index("rooflines/highest-ridge")
        assert answer(page, ids[number], {"answer": "v6e"}).correct
        assert page.evaluate(tops) == before
        answer(page, ids[number], {"answer": "v5e"})
        assert page.evaluate(tops)[: number + 1] == before[: number + 1]
        clean(seen)


def test_without_scripts_everything_but_the_forms_is_there(open_page: OpenPage) -> None:
    with open_page(ROOFLINES, java_script_enabled=False) as seen:
        page = seen.page
        defined = exercises.chapter("rooflines")
        expect(page.locator(".sb-exercise")).to_have_count(len(defined))
        expect(page.locator("form.sb-answer:visible")).to_have_count(0)
        expect(page.locator(".sb-solved-mark:visible")).to_have_count(0)
        for exercise in defined:
            assert exercise.call in page.locator(f"#exercise-{exercise.id.replace('/', '-')}").inner_text()
        page.goto(page.url.replace(ROOFLINES, LIST))
        expect(page.locator("form.sb-progress:visible")).to_have_count(0)
        expect(page.locator("li[data-exercise] a:visible")).to_have_count(len(ALL))
        expect(page.locator(".sb-count")).to_have_text(
            [f"{len(exercises.chapter(name))} exercises" for name in exercises.CHAPTERS]
        )
