"""Tables, entries and folded tables: as text, and as HTML read back."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from scalebook.tables import Cell, Entries, Entry, Folded, Link, Table

SMALL = Table(
    "Sizes <of> & things",
    ("chip", "memory", "said"),
    (
        (
            Cell("v5e", href="#chip-v5e"),
            Cell("16 GiB", "vendor", (Link("1", "#source-1"), Link("2", "#source-2"))),
            "a long sentence about it",
        ),
        (Cell("v2", anchor="here"), Cell("not known", quiet=True), ""),
    ),
    ("One <note>.",),
)


def page(shown: str) -> ET.Element:
    return ET.fromstring(f"<body>{shown}</body>")


def test_a_table_as_html() -> None:
    root = page(SMALL._repr_html_())
    box = root.find("div")
    assert box is not None and box.get("role") == "region" and box.get("tabindex") == "0" and "overflow-x" in box.get("style", "")
    assert box.get("aria-label") == root.findtext(".//caption") == "Sizes <of> & things"
    assert [e.text for e in root.iterfind(".//thead/tr/th")] == ["chip", "memory", "said"]
    assert {e.get("scope") for e in root.iterfind(".//thead//th")} == {"col"}
    rows = root.findall(".//tbody/tr")
    assert [r[0].get("scope") for r in rows] == ["row", "row"] and rows[1][0].get("id") == "here"
    first = rows[0]
    assert first[0].find("a").get("href") == "#chip-v5e"  # type: ignore[union-attr]
    small = first[1].find("small")
    assert small is not None and small.text == "vendor " and [a.get("href") for a in small] == ["#source-1", "#source-2"]
    assert rows[1][1].get("class") == "sb-quiet"
    assert [e.get("class") for e in root.iterfind(".//thead/tr/th")] == [None, None, "sb-words"]
    assert [e.text for e in root.iterfind(".//li")] == ["One <note>."]


def test_a_table_as_text_and_by_column() -> None:
    lines = str(SMALL).splitlines()
    assert lines[0] == "Sizes <of> & things" and lines[-1] == "One <note>."
    assert lines[2].startswith("v5e   16 GiB (vendor)")
    assert {line.index("a long") for line in lines if "a long" in line} == {lines[1].index("said")}
    assert SMALL.column("memory") == ["16 GiB", "not known"]
    assert repr(SMALL) == "Table('Sizes <of> & things', 2 rows)"
    with pytest.raises(ValueError):
        SMALL.column("colour")


def test_entries_and_folds_as_html() -> None:
    entries = Entries((Entry("C1: a < b", ("Taken: b.", "Because."), (Link("3", "#source-3"),), "conflict-c1"),))
    root = page(entries._repr_html_())
    assert root.findtext(".//dt") == "C1: a < b" and root.find(".//dt").get("id") == "conflict-c1"  # type: ignore[union-attr]
    assert [p.text for p in root.iterfind(".//dd/p")] == ["Taken: b.", "Because. "]
    assert root.find(".//dd/p/a").get("href") == "#source-3"  # type: ignore[union-attr]
    folded = page(Folded((("all of it", SMALL, "chip-x"),))._repr_html_())
    assert folded.find("details").get("id") == "chip-x"  # type: ignore[union-attr]
    assert folded.findtext("details/summary") == "all of it" and folded.find("details/div/table") is not None
