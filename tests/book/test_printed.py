"""The PDFs of the site: one of each page and one of the whole book, linked, readable, with links that lead somewhere."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from built_site import SITE
from pypdf import PdfReader

ROOT = Path(__file__).parents[2]


def toc() -> list[str]:
    """Every page of the book, in order."""
    given = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    return [given["root"], *(entry["file"] for part in given["parts"] for entry in part["chapters"])]


def uris(pdf: PdfReader) -> list[str]:
    """The addresses outside the document that it links to."""
    notes = [note.get_object() for page in pdf.pages for note in page.get("/Annots", [])]
    return [str(note["/A"]["/URI"]) for note in notes if "/URI" in note.get("/A", {})]


def inner(pdf: PdfReader) -> list[str]:
    """The names of the places inside the document that it links to."""
    notes = [note.get_object() for page in pdf.pages for note in page.get("/Annots", [])]
    return [str(note["/Dest"]) for note in notes if isinstance(note.get("/Dest"), str)]


@pytest.mark.parametrize("page", toc())
def test_page_is_printed_and_linked(page: str, site: Path) -> None:
    html = BeautifulSoup((site / f"{page}.html").read_text("utf-8"), "html.parser")
    linked = {str(a["href"]) for a in html.select(".sb-below a[href$='.pdf']")}
    name = page.rpartition("/")[2]
    assert linked == {f"../pdf/{name}.pdf", "../pdf/scalebook.pdf"}
    pdf = PdfReader(SITE / "pdf" / f"{name}.pdf")
    title = html.select_one("h1")
    assert title is not None
    words = title.get_text().removesuffix("#").strip()
    first = unicodedata.normalize("NFKC", pdf.pages[0].extract_text())  # a ligature is two letters
    assert " ".join(words.split()[:2]) in " ".join(first.split())
    assert [u for u in uris(pdf) if "127.0.0.1" in u or u.startswith("file:")] == []


def test_book_is_one_document(site: Path) -> None:
    """All pages in their order, no link to this machine, and every link inside leads to a place that exists."""
    pdf = PdfReader(site / "pdf" / "scalebook.pdf")
    assert len(pdf.pages) > len(toc())
    assert [u for u in uris(pdf) if "127.0.0.1" in u] == []
    places, links = pdf.named_destinations, inner(pdf)
    assert len(links) > 100
    assert sorted({name for name in links if name not in places}) == []
    starts = [places[start] for name in toc() if (start := f"/{name.rpartition('/')[2]}--") in places]
    numbers = [pdf.get_destination_page_number(start) for start in starts]
    assert len(numbers) > 5
    assert numbers == sorted(set(numbers))
