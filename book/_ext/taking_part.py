"""What stands under every page: when it was changed and with which versions it was made, how to cite it, and how to take part.

Links to a repository are there only when one is set (see website). Comments need more: the four settings of `book_giscus`, which
https://giscus.app gives; they come from that host, so a page asks before it loads them.
"""

from __future__ import annotations

import re
import subprocess
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from docutils.nodes import Node
from website import addresses

import scalebook
from scalebook.microbench import benchmarks

GISCUS = ("repo_id", "category", "category_id")


def versions() -> dict[str, str]:
    """The versions a page is made with; of libtpu the installed one, else the one whose recorded results the book shows."""
    found = {"scalebook": scalebook.__version__, "jax": version("jax")}
    try:
        found["libtpu"] = version("libtpu")
    except PackageNotFoundError:
        recorded = {m[1] for row in benchmarks(kind="compiler") if (m := re.search(r"libtpu (\d[\d.]*\d)", row.source))}
        found["libtpu (recorded results)"] = ", ".join(sorted(recorded))
    return found


def changed(root: Path, source: str) -> str:
    """The date of the last commit that touched a file; "" outside a repository."""
    try:
        done = subprocess.run(
            ["git", "log", "-1", "--format=%cs", "--", source], cwd=root, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def bibtex(page: str, title: str, address: str, day: str) -> str:
    """The entry with which a page is cited; of the first page, the whole book."""
    whole = page == "book/index"
    key = "scalebook" if whole else f"scalebook-{page.rpartition('/')[2]}"
    named = "scalebook: Scaling language models, computed" if whole else f"{title}. In: scalebook"
    fields = {
        "title": f"{{{named}}}",
        "author": "{The scalebook authors}",
        "year": f"{{{(day or date.today().isoformat())[:4]}}}",
        "note": f"{{Version {scalebook.__version__}{f', {day}' if day else ''}}}",
    }
    if address:
        fields["url"] = f"{{{address}{page}.html}}"
    return "\n".join([f"@misc{{{key},", *(f"  {name} = {value}," for name, value in fields.items()), "}"])


def report(repository: str, page: str, title: str) -> str:
    """The address of the form for reporting an error, filled in with page and versions; the state of explorers is added in the browser."""
    made = ", ".join(f"{name} {number}" for name, number in versions().items())
    given = {"template": "error.yml", "title": f"{title}: ", "page": f"{page}.md", "versions": made}
    return f"https://github.com/{repository}/issues/new?{urlencode(given)}"


def below(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Node | None) -> None:
    """What the template taking-part.html prints."""
    if doctree is None or not app.env.doc2path(pagename, base=False).endswith(".md"):
        return
    repository, address = addresses(app)
    source = app.env.doc2path(pagename, base=False)
    day, title = changed(Path(app.srcdir), source), re.sub(r"<[^>]+>", "", context.get("title", ""))
    giscus = app.config.book_giscus
    complete = repository and all(giscus.get(key) for key in GISCUS)
    context["below"] = {
        "changed": day,
        "versions": versions(),
        "bibtex": bibtex(pagename, title, address, day),
        "links": links(repository, pagename, title, source, context),
        "giscus": {"repo": repository, **giscus, "term": pagename} if complete else {},
    }


def links(repository: str, page: str, title: str, source: str, context: dict[str, Any]) -> list[dict[str, str]]:
    """The links under a page, those to the repository only where there is one."""
    found = []
    if repository:
        at = f"https://github.com/{repository}"
        found += [
            {"words": "Report an error", "url": report(repository, page, title), "do": "report"},
            {"words": "Edit this page", "url": f"{at}/edit/main/{source}"},
            {"words": "Discuss", "url": f"{at}/discussions"},
        ]
    if page != "book/errata":
        found.append({"words": "Known errors", "url": context["pathto"]("book/errata")})
    if printed := context.get("printed"):
        found += [
            {"words": "This page as PDF", "url": printed["page"]},
            {"words": "The book as PDF", "url": printed["book"]},
        ]
    return found


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("book_giscus", {}, "html")
    app.connect("html-page-context", below)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
