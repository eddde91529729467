"""Links within the site: every page, file and anchor that is named exists; nothing is fetched from elsewhere."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from built_site import pages

FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "link": "href"}


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


def anchors(page: BeautifulSoup) -> set[str]:
    return {e[key] for e in page.find_all(True) for key in ("id", "name") if e.has_attr(key)}


def broken(path: Path, root: Path, seen: dict[Path, set[str]]) -> list[str]:
    """The internal links of a page that lead nowhere."""
    wrong = []
    for link in soup(path).find_all("a", href=True):
        parts = urlsplit(link["href"])
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        if not target.exists() or root not in target.parents:
            wrong.append(link["href"])
        elif parts.fragment and target.suffix == ".html":
            if target not in seen:
                seen[target] = anchors(soup(target))
            if unquote(parts.fragment) not in seen[target]:
                wrong.append(link["href"])
    return wrong


def fetched_elsewhere(path: Path) -> list[str]:
    """What a page would load from another host."""
    return [
        e[key]
        for tag, key in FETCHED.items()
        for e in soup(path).find_all(tag)
        if e.has_attr(key) and urlsplit(e[key]).netloc and not {"canonical", "search"} & set(e.get("rel", []))
    ]


@pytest.mark.parametrize("path", pages())
def test_links_resolve(path: str, site: Path) -> None:
    assert broken(site / path, site.resolve(), {}) == []


@pytest.mark.parametrize("path", pages())
def test_nothing_from_elsewhere(path: str, site: Path) -> None:
    assert fetched_elsewhere(site / path) == []


def test_entry_leads_to_the_preface(site: Path) -> None:
    """The bare address shows the book."""
    assert "book/index.html" in (site / "index.html").read_text("utf-8")


def test_no_style_loads_from_elsewhere(site: Path) -> None:
    """Stylesheets import nothing from another host."""
    wrong = [
        p.name
        for p in site.glob("_static/**/*.css")
        for word in ("url(http", "url(//", '@import "http')
        if word in p.read_text("utf-8")
    ]
    assert wrong == []


def test_no_dead_repository_link(site: Path) -> None:
    """Where no repository is set, no page links to one."""
    links = [a["href"] for path in pages() for a in soup(site / path).find_all("a", href=True)]
    assert not [
        h for h in links if h.rstrip("/") in ("https://github.com", "https://github.com//") or "executablebooks/jupyter-book" in h
    ]


def test_the_link_check_finds_faults(tmp_path: Path) -> None:
    """A page made wrong on purpose."""
    (tmp_path / "other.html").write_text('<p id="here">x</p>', "utf-8")
    page = tmp_path / "page.html"
    page.write_text(
        '<a href="other.html#here">good</a><a href="other.html#gone">1</a><a href="gone.html">2</a><a href="#gone">3</a>'
        '<script src="https://cdn.example/x.js"></script><link rel="stylesheet" href="//fonts.example/f.css">',
        "utf-8",
    )
    assert broken(page, tmp_path.resolve(), {}) == ["other.html#gone", "gone.html", "#gone"]
    assert fetched_elsewhere(page) == ["https://cdn.example/x.js", "//fonts.example/f.css"]
