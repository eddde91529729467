"""Cells, and notebooks as files hold them: without outputs, the same bytes wherever they are made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import nbformat

FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}  # the first for Colab, with a title; the second for Jupyter


@dataclass(frozen=True)
class Cell:
    """One cell. `printed`: the expressions of a page's text that have become numbers in it, with what stands for them."""

    kind: str  # "markdown" or "code"
    source: str
    title: str = ""  # of a cell whose code is folded away
    printed: tuple[tuple[str, str], ...] = ()

    @property
    def whole(self) -> str:
        """The source with its title, which Colab shows in place of the code."""
        return f"# @title {self.title}\n{self.source}" if self.title else self.source


@dataclass
class Notebook:
    """A notebook to be written to `path`, relative to the root of the repository."""

    path: str
    cells: list[Cell] = field(default_factory=list)

    def node(self) -> Any:
        """As nbformat has it; raises ValidationError if it is none."""
        seen: dict[str, int] = {}
        nodes = []
        for cell in self.cells:
            key = hashlib.sha256(f"{self.path}\n{cell.kind}\n{cell.whole}".encode()).hexdigest()[:12]
            seen[key] = seen.get(key, 0) + 1
            id = key if seen[key] == 1 else f"{key}-{seen[key]}"
            make = nbformat.v4.new_markdown_cell if cell.kind == "markdown" else nbformat.v4.new_code_cell
            nodes.append(make(cell.whole, id=id, metadata=dict(FOLDED) if cell.title else {}))
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        notebook = nbformat.v4.new_notebook(cells=nodes, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})
        nbformat.validate(notebook)
        return notebook

    def text(self) -> str:
        """The file's text."""
        return str(nbformat.writes(self.node())).rstrip("\n") + "\n"
