"""Every page in a real browser: wide and on a phone, light and dark."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest
from built_site import OpenPage, pages

FAULTS_OF_TEXT = (Path(__file__).parent / "faults_of_text.js").read_text("utf-8")
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
PHONE = 390

every_page = pytest.mark.parametrize("path", pages())
both_themes = pytest.mark.parametrize("theme", ["light", "dark"])


@both_themes
@every_page
@pytest.mark.parametrize("width", [1280, PHONE])
def test_page_reads_well(path: str, theme: str, width: int, open_page: OpenPage) -> None:
    """No error, no other host, no sideways scrolling, formulas set, text in pictures inside, apart and legible, axe-core silent."""
    with open_page(path, width=width, height=2000, color_scheme=theme) as seen:
        page = seen.page
        assert seen.errors == [], "errors in the console"
        assert seen.elsewhere == [], "requests to another host"
        assert page.evaluate("document.documentElement.dataset.theme") == theme

        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"the page is {wide} px wide on a screen of {width} px"

        unset = page.evaluate(
            "[...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container')).map(e => e.textContent)"
        )
        assert unset == [], "formulas that were not set"
        assert page.locator("mjx-merror").count() == 0, "formulas with an error"

        text = page.evaluate(FAULTS_OF_TEXT)
        assert text["faults"] == [], "text in pictures"

        page.evaluate("scrollTo(0, 0)")
        page.add_script_tag(content=AXE)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [
            f"{v['id']} ({v['impact']}): {v['help']}: {node['html'][:160]}"
            for v in found["violations"]
            if v["impact"] in ("serious", "critical")
            for node in v["nodes"]
        ]
        assert serious == [], "axe-core"


@every_page
def test_pictures_have_words(path: str, open_page: OpenPage) -> None:
    """Every image and every drawing says what it shows, and every drawing is there in one width only."""
    with open_page(path) as seen:
        mute = seen.page.evaluate("[...document.querySelectorAll('article img:not([alt])')].map(e => e.src)")
        assert mute == []
        unnamed = seen.page.evaluate(
            "[...document.querySelectorAll('svg.sb-svg')].filter(e => !e.getAttribute('aria-label')).length"
        )
        assert unnamed == 0
        shown = seen.page.evaluate(
            "[...document.querySelectorAll('.sb-stage')].map(s => [...s.querySelectorAll('svg.sb-svg')]"
            ".filter(e => e.getBoundingClientRect().width > 0).length)"
        )
        assert all(n == 1 for n in shown), shown


def test_chapters_work_without_scripts(open_page: OpenPage) -> None:
    """Pictures show and folds open when nothing runs."""
    with open_page("book/rooflines.html", java_script_enabled=False) as seen:
        page = seen.page
        figures = page.locator("figure.sb-figure")
        assert figures.count() > 0
        assert page.locator(".sb-svg:visible").count() == figures.count()
        fold = page.locator("details.sb-solution").first
        assert not fold.locator("pre").is_visible()
        fold.locator("summary").click()
        assert fold.locator("pre").is_visible()


def test_search_finds(open_page: OpenPage) -> None:
    """The search of the site works from its own files."""
    with open_page("search.html?q=ridge") as seen:
        seen.page.wait_for_selector("#search-results li a")
        assert "Rooflines" in seen.page.inner_text("#search-results")
        assert seen.elsewhere == []


def test_theme_can_be_chosen(open_page: OpenPage) -> None:
    """The button changes the theme, whatever the system prefers."""
    with open_page("book/index.html", color_scheme="light") as seen:
        button = seen.page.locator("button.theme-switch-button:visible").first
        modes = set()
        for _ in range(3):
            button.click()
            modes.add(seen.page.evaluate("document.documentElement.dataset.theme"))
        assert modes == {"light", "dark"}


def test_the_check_of_text_finds_faults(open_page: OpenPage) -> None:
    """A picture made wrong on purpose: each kind of fault is reported."""
    with open_page("book/index.html", color_scheme="light") as seen:
        seen.page.evaluate(
            """() => { document.querySelector("article").insertAdjacentHTML("afterbegin", `<figure id="bad"><svg class="sb-svg" width="200"
            height="90"><rect width="200" height="90" fill="#333"/><text x="150" y="20" fill="#fff">far too long a label</text>
            <text x="10" y="60" fill="#fff">one</text><text x="12" y="62" fill="#fff">two</text><text x="10" y="85" fill="#444">faint</text>
            </svg></figure>`) }"""
        )
        faults = seen.page.evaluate(FAULTS_OF_TEXT)["faults"]
    kinds = [[f for f in faults if "bad" in f and words in f] for words in ("leaves the picture", "lies on", "has contrast")]
    assert all(kinds), faults
