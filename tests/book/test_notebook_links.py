"""From the pages of the site to their notebooks: the download works always, Colab is offered where the repository is known."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import notebook_links
import pytest
from bs4 import BeautifulSoup
from to_notebook.book import Book
from to_notebook.parsing import ROOT

import notebooks

COMMITTED = notebooks.committed()
BOOK = Book()


@pytest.mark.parametrize("path", COMMITTED)
def test_each_chapter_offers_its_notebooks(path: str, site: Path) -> None:
    page = site / "book" / f"{Path(path).stem}.html"
    links = [a["href"] for a in BeautifulSoup(page.read_text("utf-8"), "html.parser").find_all("a", href=True)]
    assert f"../_static/{path}" in links
    assert (site / "_static" / path).read_text("utf-8") == COMMITTED[path]
    colab = [link for link in links if "colab.research.google.com" in link]
    known = notebooks.settings()["book_repository"] or os.environ.get("GITHUB_REPOSITORY", "")
    assert any(link.endswith(f"/{known}/blob/main/{path}") for link in colab) if known else colab == []


@pytest.mark.parametrize("name", BOOK.with_notebook)
def test_equations_have_the_numbers_of_the_site(name: str, site: Path) -> None:
    html = BeautifulSoup((site / "book" / f"{name}.html").read_text("utf-8"), "html.parser")
    numbered = {str(e["id"]).removeprefix("equation-"): e.select_one(".eqno") for e in html.select("[id^=equation-]")}
    shown = {label: int(re.findall(r"\((\d+)\)", e.get_text())[0]) for label, e in numbered.items() if e is not None}
    assert shown == {label: number for label, number in BOOK.numbers.items() if label in shown}
    source = BOOK.source(name)
    assert set(shown) == {label for label in BOOK.numbers if f":label: {label}\n" in source}


@pytest.mark.parametrize(
    ("repository", "groups"), [("", ["download-buttons"]), ("me/mine", ["download-buttons", "launch-buttons"])]
)
def test_buttons(repository: str, groups: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    app = SimpleNamespace(srcdir=ROOT, config=SimpleNamespace(book_repository=repository, book_address=""))
    context: dict[str, Any] = {
        "header_buttons": [{"label": "download-buttons", "buttons": [{"text": ".md"}]}],
        "pathto": lambda path, resource: f"../{path}",
    }
    notebook_links.add_links(app, "book/tpus", "page.html", context, None)
    buttons = context["header_buttons"]
    assert [group["label"] for group in buttons] == groups
    assert [b["text"] for b in buttons[0]["buttons"]] == [".ipynb", "exercises .ipynb", ".md"]
    assert buttons[0]["buttons"][1]["url"] == "../_static/notebooks/exercises/tpus.ipynb"
    if repository:
        colab = "https://colab.research.google.com/github/me/mine/blob/main/notebooks/"
        assert [b["url"] for b in buttons[1]["buttons"]] == [f"{colab}tpus.ipynb", f"{colab}exercises/tpus.ipynb"]
    before = [len(group["buttons"]) for group in buttons]
    notebook_links.add_links(app, "book/references", "page.html", context, None)
    assert [len(group["buttons"]) for group in buttons] == before
