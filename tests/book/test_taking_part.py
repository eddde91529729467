"""What stands under a page: versions, date, citation; links to a repository and comments only where they are set."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
import taking_part
import yaml
from bs4 import BeautifulSoup, Tag
from built_site import OpenPage

import scalebook

ROOT = Path(__file__).parents[2]
CONF = f"""
import sys
sys.path.append({str(ROOT / "book" / "_ext")!r})
extensions = ["myst_parser", "website", "taking_part"]
html_theme = "sphinx_book_theme"
html_theme_options = {{"article_footer_items": ["taking-part.html"]}}
templates_path = [{str(ROOT / "book" / "_templates")!r}]
root_doc = "index"
"""


def block(folder: Path, *settings: str, **environment: str) -> Tag:
    """What stands under a page of a small book with these settings."""
    (folder / "conf.py").write_text("\n".join([CONF, *settings]), "utf-8")
    (folder / "index.md").write_text("# A page & more\n\n[other](book/errata.md)\n", "utf-8")
    (folder / "book").mkdir(exist_ok=True)
    (folder / "book" / "errata.md").write_text("# Errata\n\n```{toctree}\n```\n", "utf-8")
    given = {name: value for name, value in os.environ.items() if name != "GITHUB_REPOSITORY"}
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-E", str(folder), str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=given | environment)
    html = (folder / "out" / "index.html").read_text("utf-8")
    found = BeautifulSoup(html, "html.parser").select_one(".sb-below")
    assert found is not None, done.stderr
    return found


def words(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split())


def test_without_a_repository_nothing_leads_there(tmp_path: Path) -> None:
    below = block(tmp_path, "book_giscus = {'repo_id': 'R', 'category': 'C', 'category_id': 'D'}")
    assert [a.get_text() for a in below.select("li a")] == ["Known errors"]
    assert "github" not in str(below)
    assert below.select(".sb-comments") == []
    assert f"scalebook {scalebook.__version__}" in words(below)
    assert re.search(r"jax \d+\.\d+", words(below)) and re.search(r"libtpu .*\d+\.\d+", words(below))


def test_with_a_repository(tmp_path: Path) -> None:
    giscus = "book_giscus = {'repo_id': 'R_1', 'category': 'Pages', 'category_id': 'DIC_2'}"
    below = block(tmp_path, giscus, GITHUB_REPOSITORY="someone/book")
    links = {a.get_text(): str(a["href"]) for a in below.select("li a")}
    assert links["Edit this page"] == "https://github.com/someone/book/edit/main/index.md"
    asked = parse_qs(urlparse(links["Report an error"]).query)
    assert asked["page"] == ["index.md"] and scalebook.__version__ in asked["versions"][0]
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE" / asked["template"][0]).read_text("utf-8"))
    fields = {part["id"] for part in form["body"]}
    assert {"page", "versions", "state"} <= fields, "the form has the fields that the link fills in"
    comments = below.select_one(".sb-comments")
    assert comments is not None
    assert yaml.safe_load(str(comments["data-giscus"])) == {
        "repo": "someone/book", "repo_id": "R_1", "category": "Pages", "category_id": "DIC_2", "term": "index",
    }  # fmt: skip
    entry = below.select_one("pre")
    assert entry is not None and "url = {https://someone.github.io/book/index.html}" in entry.get_text()


@pytest.mark.parametrize("missing", taking_part.GISCUS)
def test_comments_need_all_settings(missing: str, tmp_path: Path) -> None:
    settings = {key: "x" for key in taking_part.GISCUS if key != missing}
    assert block(tmp_path, f"book_giscus = {settings}", GITHUB_REPOSITORY="a/b").select(".sb-comments") == []


def test_citation_of_book_and_page() -> None:
    book = taking_part.bibtex("book/index", "Anything", "", "2026-01-31")
    assert book.startswith("@misc{scalebook,") and "year = {2026}" in book and "url" not in book
    page = taking_part.bibtex("book/rooflines", "Rooflines", "https://x.org/", "2026-01-31")
    assert page.startswith("@misc{scalebook-rooflines,") and "url = {https://x.org/book/rooflines.html}" in page
    assert page.count("{") == page.count("}")


def test_date_is_that_of_the_last_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = {"GIT_AUTHOR_DATE": "2020-05-17T12:00:00Z", "GIT_COMMITTER_DATE": "2020-05-17T12:00:00Z"}
        people = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True, env=os.environ | identity | people)

    assert taking_part.changed(tmp_path, "page.md") == "", "outside a repository"
    git("init")
    (tmp_path / "page.md").write_text("x", "utf-8")
    git("add", ".")
    git("commit", "-m", "x")
    assert taking_part.changed(tmp_path, "page.md") == "2020-05-17"


def test_comments_and_reports_in_a_browser(open_page: OpenPage) -> None:
    """Comments come when asked for and not before; the report carries the state of the page. The block is put in by the test."""
    with open_page("book/index.html") as seen:
        page = seen.page
        page.evaluate(
            """() => document.querySelector("article").insertAdjacentHTML("beforeend", `<section class="sb-below"><a data-do="report"
            href="https://github.com/a/b/issues/new?page=x">Report</a><div class="sb-comments"
            data-giscus='{"repo": "a/b", "repo_id": "R", "category": "C", "category_id": "D", "term": "book/index"}'>
            <button type="button" hidden>Show comments</button></div></section>`)"""
        )
        page.evaluate("history.replaceState(null, '', '?fig.B=64#fig')")
        page.evaluate(
            """async () => { document.querySelectorAll(".sb-below")[0].querySelector(".sb-below-links") && document.querySelectorAll(".sb-below")[0].remove();
            (await import(document.querySelector('script[src*="live/main.js"]').src.replace(/main\\.js.*/, "taking_part.js"))).bindTakingPart(); }"""
        )
        report = page.locator('a[data-do="report"]')
        page.evaluate("document.addEventListener('click', (e) => e.target.closest('a') && e.preventDefault())")
        report.click()
        assert parse_qs(urlparse(report.get_attribute("href")).query)["state"] == ["index.html?fig.B=64#fig"]
        assert seen.elsewhere == []
        page.get_by_role("button", name="Show comments").click()
        page.wait_for_function("document.querySelector('.sb-comments script')")
        script = page.locator(".sb-comments script")
        assert script.get_attribute("data-repo-id") == "R" and script.get_attribute("data-category-id") == "D"
        page.wait_for_timeout(200)
        assert seen.elsewhere == ["https://giscus.app/client.js"]
