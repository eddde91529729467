"""Every page as a PDF, and the whole book as one, printed by a browser when the site is built.

A machine without a browser builds the site without them, and without links to them. A page is printed again only when it changed.
The whole book is one document, made of the pages' articles with their addresses kept apart, so that links inside it work.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from docutils.nodes import Node
from website import addresses

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FOLDER, WHOLE = "pdf", "scalebook"
PAPER = {"top": "18mm", "bottom": "18mm", "left": "18mm", "right": "18mm"}
FOOTER = '<div style="width:100%;font:8px sans-serif;text-align:center"><span class="title"></span> · <span class="pageNumber"></span></div>'

# Opens what can be unfolded, except tables of figures; a link to another page becomes absolute where the site's address is known.
PREPARE = """(site) => {
  document.querySelectorAll("details:not(.sb-table)").forEach((d) => { d.open = true; });
  for (const a of document.querySelectorAll("a[href]")) {
    if (a.getAttribute("href").startsWith("#") || a.origin !== location.origin) continue;
    if (site) a.href = site + a.pathname.slice(1) + a.hash; else a.removeAttribute("href");
  }
}"""
# The article of a page, every id with the page's name before it, links to pages of the book as links inside the document.
ARTICLE = """(name) => {
  const page = location.pathname;
  const article = document.querySelector("article.bd-article");
  const named = (path, id) => `${path.split("/").pop().replace(".html", "")}--${id}`;
  for (const a of article.querySelectorAll("a[href]")) {
    const href = a.getAttribute("href");
    if (href.startsWith("#")) a.setAttribute("href", "#" + named(page, href.slice(1)));
    else if (a.origin === location.origin && a.pathname.startsWith("/book/"))
      a.setAttribute("href", "#" + (a.hash ? named(a.pathname, a.hash.slice(1)) : named(a.pathname, "")));
  }
  article.querySelectorAll("details:not(.sb-table)").forEach((d) => { d.open = true; });
  for (const e of article.querySelectorAll("[id]")) e.id = named(page, e.id);
  return `<section id="${named(page, "")}" class="sb-printed">${article.innerHTML}</section>`;
}"""
STYLES = "() => [...document.querySelectorAll('style')].map((s) => s.textContent || [...s.sheet.cssRules].map((r) => r.cssText).join(''))"
ASSEMBLE = """([articles, styles]) => {
  for (const css of styles) document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  document.querySelector("article.bd-article").innerHTML = articles.join("");
  document.title = "scalebook";
}"""
SET = "() => Promise.all([document.fonts.ready, window.MathJax?.startup?.promise])"


def browser() -> str:
    """A browser of this machine; "" where there is none."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), "")


def pages(app: Any) -> list[str]:
    """The pages of the book in their order."""
    order = [app.config.root_doc, *app.env.toctree_includes.get(app.config.root_doc, [])]
    return [name for name in order if name.startswith("book/")]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder at an address of this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def print_pages(site: Path, names: list[str], address: str) -> None:
    """Prints the pages that changed since they were printed, and, if any did, the whole book."""
    folder = site / FOLDER
    folder.mkdir(exist_ok=True)
    styles = b"".join(path.read_bytes() for path in sorted((site / "_static").glob("*.css")))
    own = Path(__file__).read_bytes()
    keys = {n: hashlib.sha256(own + styles + (site / f"{n}.html").read_bytes()).hexdigest() for n in names}
    keys[WHOLE] = hashlib.sha256("".join(keys.values()).encode()).hexdigest()
    files = {n: folder / f"{n.rpartition('/')[2]}.pdf" for n in keys}
    stamps = {n: file.with_suffix(".key") for n, file in files.items()}
    due = [n for n in keys if not (files[n].exists() and stamps[n].exists() and stamps[n].read_text("utf-8") == keys[n])]
    if not due:
        return
    from playwright.sync_api import sync_playwright

    with served(site) as here, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser(), args=FLAGS)
        page = chromium.new_page(viewport={"width": 1000, "height": 1200}, color_scheme="light")

        def printed(name: str) -> None:
            page.pdf(path=str(files[name]), format="A4", scale=0.72, margin=PAPER, print_background=True, tagged=True, outline=True,
                     display_header_footer=True, header_template="<span></span>", footer_template=FOOTER)  # fmt: skip
            stamps[name].write_text(keys[name], "utf-8")

        articles, sheets = [], set()
        for name in names:
            page.goto(f"{here}{name}.html", wait_until="load")
            page.evaluate(SET)
            if name in due:
                page.evaluate(PREPARE, address)
                printed(name)
                page.goto(f"{here}{name}.html", wait_until="load")
                page.evaluate(SET)
            sheets |= set(page.evaluate(STYLES))
            articles.append(page.evaluate(ARTICLE, name))
        page.evaluate(ASSEMBLE, [articles, sorted(sheets)])
        page.evaluate(PREPARE, address)
        printed(WHOLE)
        chromium.close()


def finish(app: Any, exception: Exception | None) -> None:
    """After the site is written: its PDFs, where there is a browser."""
    if exception is None and app.builder.format == "html" and browser():
        print_pages(Path(app.outdir), pages(app), addresses(app)[1])


def add_links(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Node | None) -> None:
    """The addresses of the printed page and the printed book, for the block under the page."""
    if browser() and pagename in pages(app):
        context["printed"] = {
            "page": context["pathto"](f"{FOLDER}/{pagename.rpartition('/')[2]}.pdf", 1),
            "book": context["pathto"](f"{FOLDER}/{WHOLE}.pdf", 1),
        }


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", add_links, priority=400)
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
