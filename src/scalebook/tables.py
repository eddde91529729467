"""Tables and lists of entries that look well as text, in a notebook and in the book: a wide table scrolls inside its own box."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import NamedTuple


class Link(NamedTuple):
    """A word that leads to an address."""

    text: str
    href: str


@dataclass(frozen=True)
class Cell:
    """What stands in a cell, and, small below it, where it is from. `anchor` makes it a place to link to; what says nothing is quiet."""

    text: str
    below: str = ""
    links: tuple[Link, ...] = ()
    href: str = ""
    anchor: str = ""
    quiet: bool = False

    def __str__(self) -> str:
        return f"{self.text} ({self.below})" if self.below else self.text

    def html(self) -> str:
        """The content of the cell."""
        words = f'<a href="{escape(self.href)}">{escape(self.text)}</a>' if self.href else escape(self.text)
        if not self.below and not self.links:
            return words
        return f"{words}<small>{escape(self.below)}{_links(self.links)}</small>"


def _links(links: Iterable[Link]) -> str:
    return "".join(f' <a href="{escape(k.href)}">{escape(k.text)}</a>' for k in links)


Content = Cell | str


@dataclass(frozen=True)
class Table:
    """Rows under a head; the first cell of a row names it. `notes` stand below, a line each.

    >>> print(Table("Sizes", ("chip", "memory"), (("v5e", Cell("16 GiB", "vendor")), ("v5p", "96 GiB")), ("As sold.",)))
    Sizes
    chip  memory
    v5e   16 GiB (vendor)
    v5p   96 GiB
    As sold.
    """

    caption: str
    head: tuple[Content, ...]
    rows: tuple[tuple[Content, ...], ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [[str(c) for c in row] for row in (self.head, *self.rows)]
        width = [max(len(row[i]) for row in lines if i < len(row)) for i in range(len(self.head))]
        shown = ["  ".join(f"{c:<{w}}" for c, w in zip(row, width, strict=False)).rstrip() for row in lines]
        return "\n".join([self.caption, *shown, *self.notes])

    def __repr__(self) -> str:
        return f"Table({self.caption!r}, {len(self.rows)} rows)"

    def column(self, name: str) -> list[str]:
        """The texts of a column, without what is small below.

        >>> Table("t", ("chip", "memory"), (("v5e", Cell("16 GiB", "vendor")),)).column("memory")
        ['16 GiB']
        """
        i = [_text(c) for c in self.head].index(name)
        return [_text(row[i]) for row in self.rows]

    def _repr_html_(self) -> str:
        wordy = [max((len(_text(row[i])) for row in self.rows), default=0) > 16 for i in range(len(self.head))]
        head = "".join(f'<th{_kind(w)} scope="col">{_html(c)}</th>' for c, w in zip(self.head, wordy, strict=True))
        body = "".join(_row(row, wordy, self.head) for row in self.rows)
        notes = "".join(f"<li>{escape(n)}</li>" for n in self.notes)
        under = f'<ul class="sb-table-notes">{notes}</ul>' if notes else ""
        return (
            f'<div class="sb-table-box" role="region" tabindex="0" aria-label="{escape(self.caption)}" style="overflow-x:auto">'
            f'<table class="sb-table"><caption>{escape(self.caption)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{under}"
        )


def _row(row: tuple[Content, ...], wordy: list[bool], head: tuple[Content, ...]) -> str:
    """A row: its first cell names it; columns of words get room, columns of figures stand flush right.

    Each cell carries the head of its column, for a phone shows a row as a card.
    """
    name, *rest = row
    anchor = f' id="{escape(name.anchor)}"' if isinstance(name, Cell) and name.anchor else ""
    cells = [f'<th{_kind(wordy[0])} scope="row"{anchor}>{_html(name)}</th>']
    for content, w, top in zip(rest, wordy[1:], head[1:], strict=True):
        cells.append(f'<td{_kind(w, content)} data-head="{escape(_text(top))}">{_html(content)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _kind(wordy: bool, content: Content = "") -> str:
    quiet = isinstance(content, Cell) and content.quiet
    kinds = " ".join(name for name, has in (("sb-words", wordy), ("sb-quiet", quiet)) if has)
    return f' class="{kinds}"' if kinds else ""


def _text(content: Content) -> str:
    return content.text if isinstance(content, Cell) else content


def _html(content: Content) -> str:
    return content.html() if isinstance(content, Cell) else escape(content)


@dataclass(frozen=True)
class Entry:
    """A titled entry of a list: paragraphs, and links after them."""

    title: str
    lines: tuple[str, ...]
    links: tuple[Link, ...] = ()
    anchor: str = ""


@dataclass(frozen=True)
class Entries:
    """Entries one under the other, for what has too many words for a table.

    >>> print(Entries((Entry("HBM of v5p", ("Taken: 2.77 TB/s.", "Two spellings of one number.")),)))
    HBM of v5p
      Taken: 2.77 TB/s.
      Two spellings of one number.
    """

    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        return "\n".join("\n  ".join((e.title, *e.lines)) for e in self.entries)

    def __repr__(self) -> str:
        return f"Entries({len(self.entries)} entries)"

    def _repr_html_(self) -> str:
        parts = []
        for e in self.entries:
            anchor = f' id="{escape(e.anchor)}"' if e.anchor else ""
            lines = [escape(line) for line in e.lines]
            lines[-1:] = [line + _links(e.links) for line in lines[-1:]]
            parts.append(f"<dt{anchor}>{escape(e.title)}</dt><dd>{''.join(f'<p>{line}</p>' for line in lines)}</dd>")
        return f'<dl class="sb-entries">{"".join(parts)}</dl>'


@dataclass(frozen=True)
class Folded:
    """Tables under a line each, to be opened by the reader: what the line says, the table, and an address on the page (or "").

    >>> print(Folded((("all", Table("t", ("a",), (("1",),)), ""),)))
    all
    t
    a
    1
    """

    parts: tuple[tuple[str, Table, str], ...]

    def __str__(self) -> str:
        return "\n\n".join(f"{summary}\n{table}" for summary, table, _ in self.parts)

    def __repr__(self) -> str:
        return f"Folded({len(self.parts)} tables)"

    def _repr_html_(self) -> str:
        parts = []
        for summary, table, anchor in self.parts:
            at = f' id="{escape(anchor)}"' if anchor else ""
            parts.append(f'<details class="sb-fold"{at}><summary>{escape(summary)}</summary>{table._repr_html_()}</details>')
        return "".join(parts)
