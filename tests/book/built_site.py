"""The built site and a browser, for tests of pages: where they are, and what an opened page tells."""

from __future__ import annotations

import http.server
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import BrowserType, Page

SITE = Path(__file__).parents[2] / "book" / "_build" / "html"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
SYSTEM_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def pages() -> list[str]:
    """Every page of the site, as a path below it; one that does not exist when the site is not built."""
    found = sorted(p.relative_to(SITE).as_posix() for p in SITE.glob("book/**/*.html"))
    return [*found, "search.html"] if found else ["(the site is not built)"]


def executable(chromium: BrowserType) -> str:
    """The machine's own Chromium or Chrome, else the one that playwright installed; a test fails where there is neither."""
    for name in SYSTEM_BROWSERS:
        if path := shutil.which(name):
            return path
    own = chromium.executable_path
    if Path(own).exists():
        return own
    return pytest.fail(
        f"no browser to read the pages with: none of {', '.join(SYSTEM_BROWSERS)} is installed, and playwright has none of its own. "
        "Install Chromium (on Debian and Ubuntu: apt-get install chromium) or run: .venv/bin/playwright install chromium"
    )


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@dataclass
class Opened:
    """A page in the browser, and what went wrong while it was read."""

    page: Page
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def settle(self) -> None:
        """Waits until formulas are set and fonts are there."""
        self.page.wait_for_load_state("networkidle")
        self.page.evaluate("() => Promise.all([document.fonts.ready, window.MathJax?.startup?.promise])")


OpenPage = Callable[..., AbstractContextManager[Opened]]
