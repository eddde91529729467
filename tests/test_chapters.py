"""The chapters' cells, read as a reader does: code that stands in the page runs on what stands in the page."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest

BOOK = Path(__file__).parents[1] / "book"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n((?::[^\n]*\n)*)(.*?)^```$", re.MULTILINE | re.DOTALL)


def visible(text: str) -> list[str]:
    """The code of the cells whose input is shown."""
    return [code for options, code in CELL.findall(text) if "remove-input" not in options and "remove-cell" not in options]


def missing(cells: list[str]) -> set[str]:
    """Names that the cells read and nothing in them binds.

    >>> sorted(missing(["a = b", "print(a, [c for c in a])"]))
    ['b']
    """
    bound, read = set(dir(builtins)), set()
    for node in (node for code in cells for node in ast.walk(ast.parse(code))):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name):
                bound.add(name)
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.ExceptHandler(name=str() as name):
                bound.add(name)
            case ast.alias():
                bound.add((node.asname or node.name).partition(".")[0])
    return read - bound


@pytest.mark.parametrize("path", sorted(BOOK.glob("*.md")), ids=lambda path: path.stem)
def test_code_that_is_shown_needs_no_code_that_is_hidden(path: Path) -> None:
    assert not missing(visible(path.read_text()))


def test_a_hidden_name_is_found() -> None:
    text = "```{code-cell} ipython3\n:tags: [remove-input]\nsizes = 1\n```\n\n```{code-cell} ipython3\nprint(sizes)\n```\n"
    assert len(CELL.findall(text)) == 2 and missing(visible(text)) == {"sizes"}
