"""The built site, served on this machine, and a real browser to read it with. Neither is optional: without them these tests fail."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from built_site import FLAGS, SITE, Opened, OpenPage, QuietHandler, executable
from playwright.sync_api import Browser, Route, sync_playwright


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    if not (SITE / "book" / "index.html").exists():
        pytest.fail("there is no built site to test in book/_build/html; build it with: make book")
    return SITE


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address at which the site is served."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser(site: Path) -> Iterator[Browser]:
    """One browser for all tests."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(playwright.chromium), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def open_page(browser: Browser, address: str) -> OpenPage:
    """Opens a page of the site in a fresh context; requests to any other host are noted and refused.

    `script` runs in the page before its own; `idle=False` gives the page as soon as it is loaded.
    """

    @contextmanager
    def opened(
        path: str, *, width: int = 1280, height: int = 1000, script: str = "", idle: bool = True, **context: Any
    ) -> Iterator[Opened]:
        with browser.new_context(viewport={"width": width, "height": height}, bypass_csp=True, **context) as fresh:
            page = fresh.new_page()
            seen = Opened(page)

            def refuse(route: Route) -> None:
                url = route.request.url
                if url.startswith((address, "data:", "blob:")):
                    route.continue_()
                else:
                    seen.elsewhere.append(url)
                    route.abort()

            page.route("**/*", refuse)
            page.add_init_script(script)
            page.on("pageerror", lambda error: seen.errors.append(str(error)))
            page.on("console", lambda m: seen.errors.append(f"{m.type}: {m.text}") if m.type in ("error", "warning") else None)
            reply = page.goto(address + path)
            assert reply is not None and reply.ok, f"{path} cannot be opened"
            if idle:
                seen.settle()
            yield seen

    return opened
