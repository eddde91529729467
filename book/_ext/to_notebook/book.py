"""What the pages of the book have in common: their order, the numbers of equations, what links point to, and the references."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from explorers import assignments
from markdown_it.token import Token
from myst_parser.mdit_to_docutils.base import default_slugify
from pybtex.database import BibliographyData, parse_file
from pybtex.plugin import find_plugin
from website import colab_address, known_addresses

from to_notebook.parsing import ROOT, PageError, blocks, directive, settings, tokens, words


@dataclass(frozen=True)
class Target:
    """What a label points to: a page, and a place in it, with the words of the heading if it is one."""

    page: str
    place: str = ""
    heading: str = ""

    @classmethod
    def at(cls, page: str, heading: str) -> Target:
        """A heading, whose place is named as notebooks do it."""
        return cls(page, heading.replace(" ", "-"), heading)


@dataclass
class Book:
    """The pages under `root`, and the addresses that are known: "" where not."""

    repository: str = ""
    address: str = ""
    root: Path = ROOT
    numbers: dict[str, int] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    explorers: dict[str, tuple[str, dict[str, str]]] = field(
        default_factory=dict
    )  # by the figure's name: which one, in which state
    _hrefs: list[tuple[str, str]] = field(default_factory=list)  # page, and what it links to

    def __post_init__(self) -> None:
        for page in self.pages:
            self._survey(page)

    @classmethod
    def at(cls, repository: str) -> Book:
        """The book as it is when published from a repository "owner/name"; "": nobody knows where."""
        address = settings()["book_address"]
        return cls(*known_addresses(repository, address))

    @cached_property
    def pages(self) -> list[str]:
        """The names of the pages, in the order of the table of contents."""
        toc = yaml.safe_load((self.root / "_toc.yml").read_text("utf-8"))
        return [file.removeprefix("book/") for file in (toc["root"], *_files(toc)) if (self.root / f"{file}.md").exists()]

    def source(self, page: str) -> str:
        """The text of a page."""
        return (self.root / "book" / f"{page}.md").read_text("utf-8")

    @cached_property
    def with_notebook(self) -> list[str]:
        """The pages that become notebooks: those with a cell whose code a reader sees."""
        return [page for page in self.pages if any("remove-input" not in tags for tags in _cells(self.source(page)))]

    def _survey(self, page: str) -> None:
        label = ""
        for block in blocks(tokens(self.source(page))):
            first = block[0]
            inner = [child for token in block for child in token.children or ()]
            self._hrefs += [(page, str(t.attrs["href"])) for t in inner if t.type == "link_open"]
            found = directive(first)
            if first.type == "myst_target":
                label = first.content
                self.targets[label] = Target(page, label)
                continue
            if first.type == "heading_open":
                title = words(block[1].children)
                self.titles.setdefault(page, title)
                self.targets[f"{page}#{default_slugify(title)}"] = Target.at(page, title)
                if label:
                    self.targets[label] = Target.at(page, title)
            if found and "name" in found.options:
                self.targets[found.options["name"]] = Target(page, found.options["name"])
                if found.name == "explorer":
                    self.explorers[found.options["name"]] = (found.argument, assignments(found.options.get("set", "")))
            number = found.options.get("label") if found and found.name == "math" else None
            number = first.info if first.type == "math_block_label" else number
            if number:
                self.numbers[number] = len(self.numbers) + 1
            label = ""

    def number(self, label: str) -> int:
        """The number of an equation, counted through the book."""
        if label not in self.numbers:
            raise PageError(f"no equation has the label {label}")
        return self.numbers[label]

    # ---- links ----

    def target(self, href: str, page: str) -> Target | None:
        """What a link inside the book points to: a page, or a place in it."""
        path, _, anchor = href.partition("#")
        there = path.removesuffix(".md") or page
        if there not in self.pages or (path and not path.endswith(".md")):
            return None
        return (self.targets.get(f"{there}#{anchor}") or self.targets.get(anchor)) if anchor else Target(there)

    @cached_property
    def linked(self) -> set[tuple[str, str]]:
        """The places that links of the pages point to: page and place."""
        found = [self.target(href, page) for page, href in self._hrefs]
        return {(target.page, target.place) for target in found if target and target.place}

    def link(self, href: str, page: str, folder: str) -> str:
        """A link of a page as a notebook in a folder ("notebooks", "notebooks/exercises") has it."""
        if re.match(r"[a-z]+:", href):
            return href
        found = self.target(href, page)
        if found is None:
            raise PageError(f"the link {href} leads to nothing in the book")
        place = f"#{found.place}" if found.place else ""
        if found.page == page and folder == "notebooks":
            return place or "#"
        if self.address:
            _, hash, anchor = href.partition("#")
            return f"{self.address}book/{found.page}.html{hash}{anchor}"
        up = "../" * folder.count("/")
        if found.page not in self.with_notebook:
            return f"{up}../book/{found.page}.md"
        return f"{up}{found.page}.ipynb{place}"

    def colab(self, notebook: str) -> str:
        """The address at which Colab opens a notebook of the repository; "" while that is not known."""
        return colab_address(self.repository, notebook) if self.repository else ""

    # ---- references ----

    @cached_property
    def references(self) -> BibliographyData:
        """references.bib."""
        return parse_file(str(self.root / settings()["bibtex_bibfiles"][0]))

    def author_year(self, key: str) -> str:
        """A citation in the text: "Williams et al., 2009"."""
        entry = self._entry(key)
        names = ["".join(str(n) for n in person.rich_last_names) for person in entry.persons["author"]]
        who = f"{names[0]} et al." if len(names) > 2 or names[-1] == "others" else " and ".join(names)
        return f"{who}, {entry.fields['year']}"

    def online(self, key: str) -> str:
        """Where a work can be read; "" if references.bib does not say."""
        fields = self._entry(key).fields
        return fields.get("url") or (f"https://doi.org/{fields['doi']}" if "doi" in fields else "")

    def _entry(self, key: str) -> Any:
        if key not in self.references.entries:
            raise PageError(f"references.bib has no entry {key!r}")
        return self.references.entries[key]

    def listed(self, keys: Iterable[str]) -> list[str]:
        """The entries of a list of references, in its order, as Markdown."""
        style, backend = find_plugin("pybtex.style.formatting", "plain")(), find_plugin("pybtex.backends", "markdown")()
        return [entry.text.render(backend) for entry in style.format_bibliography(self.references, list(keys))]


def _files(toc: Any) -> Iterator[str]:
    if isinstance(toc, dict):
        if "file" in toc:
            yield toc["file"]
        toc = [value for value in toc.values() if isinstance(value, list)]
    if isinstance(toc, list):
        for part in toc:
            yield from _files(part)


def _cells(source: str) -> list[list[str]]:
    found: list[Token] = tokens(source)
    return [d.tags for t in found if (d := directive(t)) and d.name == "code-cell"]
