"""What a reader waits for on the built pages, measured in the real browser: for `make bench`. Needs the site that `make book` builds."""

from __future__ import annotations

import functools
import gzip
import http.server
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from built_site import FLAGS, SITE, QuietHandler, executable
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

TEXT = (".html", ".css", ".js", ".mjs", ".json", ".svg")
COLD, REDRAW, WEIGHT = 3.0, 0.016, 500_000  # the goals: seconds, seconds, bytes
FIRST, NEXT = "book/rooflines.html", "book/tpus.html"
MOVED = {
    "roofline": "book/rooflines.html",
    "sharded_array": "book/notation.html",
    "collective": "book/sharding.html",
    "torus": "book/tpus.html",
    "systolic": "book/tpus.html",
}

FIRST_ANSWER = """async () => {
  const { ask } = await import("/_static/live/engine.js");
  const since = performance.now();
  const reply = await ask({ do: "explore", name: "roofline", state: {}, width: 680 });
  if (!reply.ok) throw new Error(reply.error);
  return (performance.now() - since) / 1000;
}"""
# the explorer's first slider, moved to and fro by one; the time from each move to the new picture
MOVE = """async ([name, moves]) => {
  const figure = document.querySelector(`figure[data-explorer="${name}"]`);
  const slider = figure.querySelector(".sb-range input, .sb-player input");
  figure.scrollIntoView({ block: "center" });
  const redrawn = () => new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`${name} is not redrawn`)), 60000);
    const watch = new MutationObserver(() => (watch.disconnect(), clearTimeout(late), resolve(performance.now())));
    watch.observe(figure.querySelector(".sb-stage"), { childList: true });
  });
  const times = [];
  for (let k = 0; k <= moves; k++) {
    slider.valueAsNumber += slider.valueAsNumber < slider.max && k % 2 === 0 ? 1 : -1;
    const since = performance.now();
    const done = redrawn();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    const time = ((await done) - since) / 1000;
    if (k) times.push(time);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  return times.sort((a, b) => a - b)[Math.floor(0.95 * (times.length - 1))];
}"""


def parts_before(page: Page, address: str, path: str) -> dict[str, int]:
    """The files sent for a page before the library starts, with their bytes, compressed as a server does."""
    names: set[str] = set()
    page.on("request", lambda request: names.add(request.url.removeprefix(address).partition("?")[0]))
    page.goto(address + path)
    page.wait_for_load_state("networkidle")
    page.evaluate("() => Promise.all([document.fonts.ready, window.MathJax?.startup?.promise])")
    files = [SITE / name for name in names if not name.startswith("_static/pyodide/") and (SITE / name).is_file()]
    contents = {file.relative_to(SITE).as_posix(): file.read_bytes() for file in files}
    return {name: len(gzip.compress(found) if name.endswith(TEXT) else found) for name, found in contents.items()}


def profile(browser: Browser, folder: Path) -> BrowserContext:
    """A browser that keeps in a folder what it has read, as a reader's does; a context of another keeps no large file."""
    chromium = browser.browser_type
    return chromium.launch_persistent_context(folder, executable_path=executable(chromium), args=FLAGS)


def first_answers(browser: Browser, address: str) -> list[float]:
    """Seconds to the first answer in a browser that has read nothing, and on the page after it."""
    times = []
    with tempfile.TemporaryDirectory() as folder, profile(browser, Path(folder)) as context:
        page = context.new_page()
        for path in (FIRST, NEXT):
            page.goto(address + path)
            times.append(float(page.evaluate(FIRST_ANSWER)))
    return times


def fresh(browser: Browser, work: Callable[[Page], Any]) -> Any:
    """What some work gives on a page of a browser that has read nothing."""
    with browser.new_context(viewport={"width": 1280, "height": 1000}) as context:
        return work(context.new_page())


def rows() -> Iterator[tuple[str, float, float, str]]:
    """What, goal, measured, unit; nothing but a note when there is no site."""
    if not (SITE / FIRST).exists():
        print("(no rows for the pages: there is no built site; make book builds it)")
        return
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(playwright.chromium), args=FLAGS)
        cold, after = map(min, zip(*(first_answers(browser, address) for _ in range(3)), strict=True))
        yield "first live answer, cold", COLD, cold, "s"
        yield "first live answer, next page", COLD, after, "s"
        for name, path in MOVED.items():

            def moved(page: Page, name: str = name, path: str = path) -> float:
                page.goto(address + path)
                return float(page.evaluate(MOVE, [name, 60]))

            yield f"slider to redraw, {name.replace('_', ' ')}, p95", REDRAW, fresh(browser, moved), "s"
        sizes = [
            fresh(browser, lambda page, path=path: parts_before(page, address, path)) for path in sorted({FIRST, *MOVED.values()})
        ]
        yield "heaviest page before live parts", WEIGHT, float(max(sum(parts.values()) for parts in sizes)), "B"
        browser.close()
    server.shutdown()
