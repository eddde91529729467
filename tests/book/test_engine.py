"""The page's own Python in a real browser: what is in it, that it says what the library says, how fast, and what happens when it cannot."""

from __future__ import annotations

import ast
import functools
import http.server
import io
import json
import math
import re
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from built_site import QuietHandler
from page_bench import COLD, REDRAW, WEIGHT, parts_before, profile
from playwright.sync_api import Browser, Page
from test_repository import CORE, FILES, SOURCE, part

from scalebook.live.explorers import EXPLORERS
from scalebook.live.requests import answer

SLACK = 5  # times the goal: another machine, and a busy one
ENDLESS = {"do": "check", "id": "rooflines/my-time", "answer": {"code": "while True:\n    pass"}}
ROOFLINES = "book/rooflines.html"

ASK = """async ([requests, options]) => {
  const { ask } = await import("/_static/live/engine.js");
  return Promise.all(requests.map((request) => ask(request, options)));
}"""
# the files of the page as a worker puts them together, but here, where a test may run what it likes
PYTHON = """async (program) => {
  const { files } = await import("/_static/live/files.js");
  const { loadPyodide } = await import(`${files.runtime}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: files.runtime, stdLibURL: files.stdlib, lockFileContents: files.lock });
  python.unpackArchive(await (await fetch(files.library)).arrayBuffer(), "zip", { extractDir: "/lib/scalebook" });
  python.runPython('import sys; sys.path.insert(0, "/lib/scalebook")');
  return python.runPython(program);
}"""


def explore(name: str = "roofline", **state: Any) -> dict[str, Any]:
    """The request for an explorer's figure with all that goes with it."""
    return {"do": "explore", "name": name, "state": state, "width": 680, "with": ["table", "python"]}


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """The site at an address of its own, and every path that was asked for with the status of the reply."""
    asked: list[tuple[str, int]] = []

    class Noting(QuietHandler):
        def log_request(self, code: Any = "-", size: Any = "-") -> None:
            asked.append((self.path.partition("?")[0], int(code)))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Noting, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", asked
    server.shutdown()
    server.server_close()


@pytest.fixture
def fresh(browser: Browser, served: tuple[str, list[tuple[str, int]]]) -> Iterator[Page]:
    """A page of a browser that has read nothing yet."""
    served[1].clear()
    with browser.new_context(viewport={"width": 1280, "height": 1000}) as context:
        page = context.new_page()
        page.set_default_timeout(120_000)
        yield page


@pytest.fixture(scope="module")
def live(browser: Browser, served: tuple[str, list[tuple[str, int]]]) -> Iterator[Page]:
    """A page whose library has answered."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(served[0] + ROOFLINES)
        assert page.evaluate(ASK, [[explore()], {}])[0]["ok"]
        yield page


def first_answer(page: Page, address: str) -> float:
    """Seconds from the first thought of the library on a page to its first answer."""
    page.goto(address)
    assert page.evaluate(ASK, [[explore()], {}])[0]["ok"]
    marks = page.evaluate(
        "Object.fromEntries(performance.getEntriesByType('mark').toReversed().map((mark) => [mark.name, mark.startTime]))"
    )
    return (marks["scalebook:first-answer"] - marks["scalebook:start"]) / 1000


# ---- what is in it ----------------------------------------------------------------------------------------------------------


def core() -> set[str]:
    """Every module of the core, by its file; widgets are for notebooks."""
    paths = [path for path in FILES if part(path) in CORE | {""} and path.name != "widgets.py"]
    return {
        path.relative_to(SOURCE.parent).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__") for path in paths
    }


def in_archive(site: Path, name: str) -> list[str]:
    """The files in an archive of the site."""
    (path,) = (site / "_static" / "pyodide").glob(f"{name}-*.zip")
    return zipfile.ZipFile(path).namelist()


def test_every_module_of_the_core_imports(fresh: Page, served: tuple[str, list[Any]], site: Path) -> None:
    """In the standard library as it was cut, with all that functions of the core import, and none is missing from the archive or too much."""
    names = {
        name.removesuffix(".pyc").replace("/", ".").removesuffix(".__init__")
        for name in in_archive(site, "scalebook")
        if name.endswith(".pyc")
    }
    assert names == core()
    inner = set()
    for path in FILES:
        if part(path) in CORE and path.name != "widgets.py":
            nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
            inner |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
            inner |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    wanted = sorted(names | {name for name in inner if name.partition(".")[0] in sys.stdlib_module_names})
    assert len(wanted) > 100
    fresh.goto(served[0] + ROOFLINES)
    program = f"""
import importlib
wrong = []
for name in {wanted!r}:
    try:
        importlib.import_module(name)
    except ImportError as error:
        wrong.append(f"{{name}}: {{error}}")
"; ".join(wrong)
"""
    assert fresh.evaluate(PYTHON, program) == ""
    with pytest.raises(Exception, match="No module named 'sqlite3'"):
        fresh.evaluate(PYTHON, "import sqlite3")


def test_the_standard_library_is_cut(site: Path) -> None:
    names = in_archive(site, "python_stdlib")
    assert {"dataclasses.pyc", "fractions.pyc", "json/decoder.pyc"} <= set(names) and len(names) < 250
    assert all(name.endswith(".pyc") for name in names), "modules are compiled: a page compiles nothing when it starts"


# ---- what it says -----------------------------------------------------------------------------------------------------------

REQUESTS = [
    *(explore(name) for name in EXPLORERS),
    explore(B=96, chip="h100"),
    explore(B=8192, dtype="int8"),
    explore(B=97),
    explore(brave=1),
    {"do": "check", "id": "rooflines/dot-product", "answer": "2 FLOPs/byte"},
    {"do": "check", "id": "rooflines/dot-product", "answer": "1/2"},
    {"do": "dance"},
]


def apart(one: str, other: str) -> float:
    """How far two pictures are apart: the largest difference of a number with decimals, in pixels; without end where a letter differs."""
    pieces = [re.split(r"(-?\d+\.\d+)", picture) for picture in (one, other)]
    if pieces[0][::2] != pieces[1][::2]:
        return math.inf
    return max((abs(float(x) - float(y)) for x, y in zip(*(found[1::2] for found in pieces), strict=True)), default=0.0)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: "-".join(str(v) for v in [*r.values()][:3]))
def test_a_reply_is_the_library_s(live: Page, request_: dict[str, Any]) -> None:
    """To the last letter, from another Python on another machine, whose logarithms may differ in the last bit: a hundredth of a pixel."""
    (reply,) = live.evaluate(ASK, [[request_], {}])
    known = json.loads(answer(json.dumps(request_)))
    assert apart(reply.pop("svg", ""), known.pop("svg", "")) <= 0.011
    assert reply == known


def test_pictures_apart() -> None:
    assert apart("<a x='1.25'/>", "<a x='1.24'/>") == pytest.approx(0.01)
    assert apart("<a x='1.25'/>", "<b x='1.25'/>") == math.inf
    assert apart("<a x='1.25 3.5'/>", "<a x='1.25'/>") == math.inf


# ---- how fast ---------------------------------------------------------------------------------------------------------------


def test_first_answer(browser: Browser, served: tuple[str, list[tuple[str, int]]], tmp_path: Path) -> None:
    """Cold, then on the next page, whose files the browser has; no address but the site's, and every module with its version."""
    address, asked = served
    urls: list[str] = []
    asked.clear()
    with profile(browser, tmp_path) as context:
        page = context.new_page()
        context.on("request", lambda request: urls.append(request.url))
        assert first_answer(page, address + ROOFLINES) < SLACK * COLD
        heavy = {path for path, status in asked if status == 200 and "/_static/pyodide/" in path}
        assert len(heavy) == 5 and any(path.endswith(".wasm") for path in heavy)
        asked.clear()
        assert first_answer(page, address + "book/tpus.html") < SLACK * COLD
        assert {path for path, status in asked if status == 200} & heavy == set(), "files that the browser had were sent again"
    assert any(url.endswith(".wasm") for url in urls), "requests of workers are seen"
    assert [url for url in urls if not url.startswith((address, "data:", "blob:"))] == []
    modules = [url for url in urls if "/_static/live/" in url]
    assert {"engine.js", "worker.js", "files.js"} <= {Path(url.partition("?")[0]).name for url in modules}
    assert [url for url in modules if "?v=" not in url] == [], "modules of the page without their version"


def test_redraw(live: Page) -> None:
    """From a state to its picture, there and back."""
    timed = """async (states) => {
      const { ask } = await import("/_static/live/engine.js");
      const times = [];
      for (const state of states) {
        const since = performance.now();
        const reply = await ask({ do: "explore", name: "roofline", state, width: 680 }, { key: "redraw" });
        if (!reply.ok) throw new Error(reply.error);
        times.push((performance.now() - since) / 1000);
      }
      return times;
    }"""
    times = sorted(live.evaluate(timed, [{"B": 2 ** (k % 14)} for k in range(200)]))
    assert times[190] < SLACK * REDRAW


@pytest.mark.parametrize("path", [ROOFLINES, "book/notation.html", "book/tpus.html", "book/sharding.html"])
def test_weight_of_a_page(path: str, fresh: Page, served: tuple[str, list[tuple[str, int]]]) -> None:
    """What is sent before the library starts, compressed as a server does: page, styles, scripts, formulas and their fonts."""
    sizes = parts_before(fresh, served[0], path)
    assert {"engine.js", "startup.js"} <= {Path(name).name for name in sizes}
    assert sum(sizes.values()) < WEIGHT, sorted(sizes.items(), key=lambda item: -item[1])[:8]


# ---- what it does when many ask, and when it cannot -------------------------------------------------------------------------


def test_the_newest_of_a_key_wins(live: Page) -> None:
    """The first is at work already; of those that wait only the last is answered, and other keys are left alone."""
    asked = """async () => {
      const { ask } = await import("/_static/live/engine.js");
      const of = (B) => ({ do: "explore", name: "roofline", state: { B } });
      const one = [1, 2, 4, 8].map((B) => ask(of(B), { key: "one" }));
      const two = ask(of(16), { key: "two" });
      const own = [32, 64].map((B) => ask(of(B)));
      return (await Promise.all([...one, two, ...own])).map((reply) => reply.superseded ? "superseded" : reply.state.B);
    }"""
    assert live.evaluate(asked) == [1, "superseded", "superseded", 8, 16, 32, 64]


def test_an_endless_answer_is_stopped(live: Page) -> None:
    """The slow lane says so and works again; the fast lane has gone on all the while."""
    stopped = """async (endless) => {
      const { ask, onStatus } = await import("/_static/live/engine.js");
      const said = [];
      onStatus((status, lane) => lane === "slow" && said.push(status));
      let over = false;
      const slow = ask(endless, { lane: "slow", key: "endless", seconds: 3 }).then((reply) => ((over = true), reply));
      const behind = ask({ do: "explore", name: "roofline", state: { B: 2 } }, { lane: "slow" });
      while (!said.includes("working")) await new Promise((resolve) => setTimeout(resolve, 50));
      const meanwhile = await ask({ do: "explore", name: "roofline", state: { B: 4 } });
      return { inTime: !over, meanwhile, reply: await slow, after: await behind, said };
    }"""
    found = live.evaluate(stopped, ENDLESS)
    assert found["inTime"] and found["meanwhile"]["state"]["B"] == 4
    assert found["reply"]["stopped"] and not found["reply"]["ok"]
    assert found["reply"]["error"].startswith("This took longer than 3 seconds and was stopped.")
    assert found["after"]["ok"] and found["after"]["state"]["B"] == 2
    assert found["said"] == ["starting", "working", "starting", "working", "ready"]


def test_an_answer_that_ends_python(live: Page) -> None:
    """Nothing catches an abort; the lane breaks off, says so, and is there again."""
    breaking = ENDLESS | {"answer": {"code": "import os\nos.abort()"}}
    (reply,) = live.evaluate(ASK, [[breaking], {"lane": "slow"}])
    assert reply["stopped"] and "broke off" in reply["error"]
    (reply,) = live.evaluate(ASK, [[explore()], {"lane": "slow"}])
    assert reply["ok"]


def test_an_answer_that_changes_the_library(live: Page) -> None:
    """The lane begins anew after it, so that no later answer is graded by what it left."""
    change = "import scalebook.exercises.composed as c\nc.Function.grade = None\ndef my_time(flops, bytes, a, b):\n    return 0"
    (reply,) = live.evaluate(ASK, [[ENDLESS | {"answer": {"code": change}}], {"lane": "slow"}])
    assert reply.get("restart") or reply.get("bug")
    again = live.evaluate("performance.getEntriesByName('scalebook:start:slow').length")
    (reply,) = live.evaluate(
        ASK, [[ENDLESS | {"answer": {"code": "def my_time(flops, bytes, a, b):\n    return 0"}}], {"lane": "slow"}]
    )
    assert reply["ok"] and reply["status"] == "wrong"
    assert again == live.evaluate("performance.getEntriesByName('scalebook:start:slow').length"), "it had begun anew before"


@pytest.mark.parametrize("missing", ["**/pyodide.asm.wasm", "**/scalebook-*.zip", "**/python_stdlib-*.zip", "**/pyodide.mjs"])
def test_without_its_files(missing: str, fresh: Page, served: tuple[str, list[Any]]) -> None:
    """One plain message for every question, at once for later ones, and a page that stands."""
    fresh.context.route(missing, lambda route: route.abort())
    fresh.goto(served[0] + ROOFLINES)
    replies = fresh.evaluate(ASK, [[explore(B=1), explore(B=2)], {}]) + fresh.evaluate(ASK, [[explore(B=4)], {}])
    assert [reply["error"] for reply in replies] == [replies[0]["error"]] * 3
    assert replies[0]["failed"] and replies[0]["error"].startswith("The library could not be started in this browser.")
    assert fresh.locator("article figure svg:visible").count() > 0


def test_archives_hold_what_was_built(site: Path) -> None:
    """Each archive can be read, and is named after what is in it."""
    for path in (site / "_static" / "pyodide").glob("*.zip"):
        assert zipfile.ZipFile(io.BytesIO(path.read_bytes())).testzip() is None
