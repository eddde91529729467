"""A figure: a view, drawn at two widths, with its readout and its caption, as HTML for pages and notebooks."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from scalebook.errors import ScalebookError, shown
from scalebook.figures.palette import SIZES, css
from scalebook.figures.svg import Picture, escape, h
from scalebook.units import as_number, is_array

BROAD, NARROW = SIZES["width-column"], SIZES["width-narrow"]
LEAST, MOST = 200, 5000  # pixels of a picture's width
_MALFORMED = (KeyError, TypeError, AttributeError, IndexError, StopIteration, ValueError, ArithmeticError)


@dataclass(frozen=True)
class Kind:
    """A kind of figure: how a view is drawn at a width, what it says in one sentence of HTML, and its fixed label."""

    name: str
    draw: Callable[[Mapping[str, Any], float], Picture]
    describe: Callable[[Mapping[str, Any]], str]
    label: Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True)
class Figure:
    """What a figure shows and says. Jupyter and the book show it by `_repr_html_`; `svg(width)` is the picture alone."""

    kind: Kind
    view: Mapping[str, Any]
    caption: str = ""
    alt: str = ""
    question: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        for field in ("caption", "alt", "question", "name"):
            if not isinstance(value := getattr(self, field), str):
                raise ScalebookError(
                    f"the {field} of a figure must be a text; found {field}={shown(value)} of type {type(value).__name__}"
                )
        if not isinstance(self.view, Mapping):
            raise ScalebookError(f"{self._rule}; found {shown(self.view)} of type {type(self.view).__name__}")

    @property
    def _rule(self) -> str:
        return f"a figure of kind {self.kind.name!r} draws the dict that scalebook.explore returns for this kind"

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Tells a view of another kind, which lacks what is drawn here, apart from other mistakes."""
        try:
            yield
        except ScalebookError:
            raise
        except _MALFORMED as error:
            found = f"found {shown(self.view)}, which cannot be read ({type(error).__name__}: {error})"
            raise ScalebookError(f"{self._rule}; {found}") from error

    @cached_property
    def id(self) -> str:
        """The figure's address on its page: its name, else one that follows from what it shows."""
        state = json.dumps([self.view, self.caption, self.question], sort_keys=True, default=str)
        return self.name or f"fig-{self.kind.name.replace('_', '-')}-{hashlib.sha256(state.encode()).hexdigest()[:8]}"

    @property
    def readout(self) -> str:
        """One sentence of HTML that says the state."""
        with self._reading():
            return self.kind.describe(self.view)

    def svg(self, width: float = BROAD, *, cls: str = "", style: str = "") -> str:
        """The picture at a width, as an <svg> element that follows the theme of its page."""
        if is_array(width) or not LEAST <= (as_number(width) or 0) <= MOST:
            raise ScalebookError(
                f"the width of a picture must be a number of pixels from {LEAST} to {MOST}; found {shown(width)}"
            )
        with self._reading():
            picture = self.kind.draw(self.view, float(width))
            alt = self.alt or self.kind.label(self.view)
        attributes = {
            "cls": f"sb-svg {cls}".strip(),
            "role": "img",
            "aria_label": alt,
            "viewBox": f"0 0 {picture.width:g} {picture.height:g}",
            "width": picture.width,
            "height": picture.height,
        }
        return h("svg", attributes, style, picture.body)

    def _repr_svg_(self) -> str:
        """The broad picture as a file of its own, with its styles inside."""
        style = f"<style>{styles()}</style>"
        return self.svg(cls="sb-alone", style=style).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)

    def _repr_html_(self) -> str:
        """The whole figure. A page that brings tokens.css and figures.css sets SCALEBOOK_STYLES=page, and no styles are repeated."""
        parts = ["" if os.environ.get("SCALEBOOK_STYLES") == "page" else f"<style>{styles()}</style>"]
        if self.question:
            parts.append(f'<p class="sb-question">{escape(self.question)}</p>')
        parts.append(f'<div class="sb-stage">{self.svg(BROAD, cls="sb-broad")}{self.svg(NARROW, cls="sb-narrow")}</div>')
        parts.append(f'<p class="sb-readout">{self.readout}</p>')
        if self.caption:
            parts.append(f"<figcaption>{caption_html(self.caption)}</figcaption>")
        return f'<figure class="sb-figure" id="{escape(self.id)}" data-kind="{self.kind.name}">{"".join(parts)}</figure>'

    def __repr__(self) -> str:
        return f"Figure({self.kind.name}: {plain(self.readout)})"


def caption_html(caption: str) -> str:
    """A caption whose finding is bold: what stands between ** and **, or else the first sentence. `code` is marked too.

    >>> caption_html("Bytes bind. Drag the point.")
    '<b>Bytes bind.</b> Drag the point.'
    """
    text = escape(caption.strip())
    if "**" in text:
        text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text, flags=re.DOTALL)
    else:
        text = re.sub(r"^(.+?[.?!])(?=\s|$)|^(.+)$", lambda m: f"<b>{m[0]}</b>", text, count=1, flags=re.DOTALL)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)


def plain(markup: str) -> str:
    """HTML without its tags."""
    return re.sub(r"<[^>]+>", "", markup)


def styles() -> str:
    """The colours and rules that a figure outside the book needs, as CSS."""
    rules = (Path(__file__).parent / "figures.css").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", css(notebook=True) + rules, flags=re.DOTALL)
    return re.sub(r"\s+", " ", text).strip()
