"""Figures that ask first: what is hidden until then, how a guess is read, and what is said of it."""

from __future__ import annotations

import json

import pytest
from built_site import OpenPage
from explorer_page import Figure, places

ASKING = [place for place in places() if place.guess]
GROWS = """figure => { const before = figure.offsetHeight, cover = figure.querySelector(".sb-guess");
    figure.classList.remove("sb-guessing"); cover.style.display = "none"; const open = figure.offsetHeight;
    figure.classList.add("sb-guessing"); cover.style.display = ""; return open - before; }"""


@pytest.mark.parametrize("path", list(dict.fromkeys(place.path for place in ASKING)) or ["(no figure asks)"])
def test_a_guess_comes_first(path: str, open_page: OpenPage) -> None:
    """Only the question shows until a number is given; then the figure opens in the state asked about and says how far the guess was."""
    with open_page(path, idle=False) as seen:
        for place in (place for place in ASKING if place.path == path):
            figure, guess = Figure(seen, place), json.loads(place.guess)
            assert abs(figure.root.evaluate(GROWS)) < 1, "the cover must be as large as what it hides"
            field, button = figure.find(".sb-guess input"), figure.find(".sb-guess button").first
            assert figure.find(".sb-guess label").text_content() == guess["ask"]
            hidden = ".sb-controls, .sb-stage, .sb-readout, figcaption, .sb-tools, .sb-guessed"
            assert figure.root.locator(f":is({hidden}):visible").count() == 0
            button.click()
            assert "Write a positive number" in (figure.find(".sb-guess-problem").text_content() or "")
            assert field.get_attribute("aria-invalid") == "true" and figure.find(".sb-readout").is_hidden()
            seen.page.keyboard.type(f"{2 * guess['answer']}")
            seen.page.keyboard.press("Enter")
            told = figure.find(".sb-guessed")
            assert (told.text_content() or "").endswith("your guess was 2 times too high.")
            assert told.evaluate("e => e === document.activeElement")
            figure.check({**figure.start, **guess.get("set", {})})
        assert seen.errors == []


GUESSES: list[tuple[str, str, float | None]] = [
    ("240", "tokens", 240),
    ("1,200 tokens", "tokens", 1200),
    ("1.2k", "tokens", 1200),
    ("3e6 B", "B", 3e6),
    ("819 GB/s", "B/s", 819e9),
    ("12 ms", "s", 0.012),
    ("35%", "%", 35),
    ("−3", "steps", -3),
    ("many", "tokens", None),
    ("", "tokens", None),
    ("1.2.3", "tokens", None),
    ("7 apples", "tokens", None),
]
VERDICTS = [
    ((120, 240, "tokens"), "It is 240\u00a0tokens: your guess was 2 times too low."),
    ((720, 240, "tokens"), "It is 240\u00a0tokens: your guess was 3 times too high."),
    ((240, 241, "tokens"), "It is 241\u00a0tokens: you hit it."),
    ((265, 241, "tokens"), "It is 241\u00a0tokens: close, a little too high."),
    ((1e9, 819e9, "B/s"), "It is 819\u00a0GB/s: your guess was 819 times too low."),
    ((2e-6, 1.5e-3, "s"), "It is 1.5\u00a0ms: your guess was 750 times too low."),
    ((-1, 35, "%"), "It is 35%."),
]


def test_guesses_are_read_and_judged(open_page: OpenPage) -> None:
    with open_page("book/index.html", idle=False) as seen:
        module = "import(new URL('../_static/live/guess.js', location.href))"
        read = f"all => {module}.then(m => all.map(([text, unit]) => m.parse(text, unit)))"
        found = seen.page.evaluate(read, [list(guess[:2]) for guess in GUESSES])
        assert [None if value != value else pytest.approx(value) for value in found] == [value for *_, value in GUESSES]
        judge = f"all => {module}.then(m => all.map(given => m.verdict(...given)))"
        assert seen.page.evaluate(judge, [list(given) for given, _ in VERDICTS]) == [words for _, words in VERDICTS]
