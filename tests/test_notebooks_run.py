"""Every notebook runs, on a CPU with eight simulated devices, in a fresh kernel: without errors, without a word on stderr, and with
the values that its text names. In those of exercises, blanks are told apart from answers, and every solution is right."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from to_notebook.book import Book
from to_notebook.cells import Notebook

import notebooks
from scalebook.exercises import CHAPTERS, chapter

VALUES = """
for expression, text in {pairs!r}:
    value = eval(expression)
    assert (value if isinstance(value, str) else repr(value)) == text, (expression, value, text)
"""


@cache
def made() -> dict[str, Notebook]:
    return {notebook.path: notebook for notebook in notebooks.notebooks(Book())}


def executed(notebook: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The outputs of each cell of code, run in a folder where nothing of the repository lies."""
    for name in [n for n in os.environ if n.startswith(("XLA_", "JAX_", "PYTHON"))]:
        monkeypatch.delenv(name)
    for name in ("JUPYTER_PREFER_ENV_PATH", "JUPYTER_PLATFORM_DIRS", "PYTHONNOUSERSITE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    said = [o.text for found in outputs for o in found if o.output_type == "stream" and o.name == "stderr"]
    assert said == []
    return outputs


def shown(outputs: list[Any]) -> str:
    """What a cell prints and shows, as text."""
    return "".join(o.text if o.output_type == "stream" else o.data.get("text/plain", "") for o in outputs)


@pytest.mark.parametrize("path", [p for p in notebooks.committed() if "exercises" not in p])
def test_a_chapter_runs_and_its_text_has_the_values_of_its_cells(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_cells = made()[path].cells
    notebook = nbformat.reads(notebooks.committed()[path], as_version=4)
    assert [c.whole for c in made_cells] == [c.source for c in notebook.cells], (
        f"{path} is stale: run make notebooks and commit it"
    )
    checked: list[Any] = []
    for cell, node in zip(made_cells, notebook.cells, strict=True):
        checked.append(node)
        if cell.printed:
            checked.append(nbformat.v4.new_code_cell(VALUES.format(pairs=list(cell.printed))))
    notebook.cells = checked
    outputs = executed(notebook, tmp_path, monkeypatch)
    if "lab.setup()" in made_cells[1].source:
        assert shown(outputs[0]).endswith(
            "What takes one device runs on the CPU; what takes 8, on 8 devices simulated on the CPU."
        )


@pytest.mark.parametrize("name", CHAPTERS)
def test_exercises_run_as_they_are_and_with_their_solutions(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.reads(notebooks.committed()[f"notebooks/exercises/{name}.ipynb"], as_version=4)
    exercises = chapter(name)
    cells: list[Any] = []
    left = list(exercises)
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "code" and left and cell.source.endswith(left[0].call):
            cells.append(nbformat.v4.new_code_cell(left.pop(0).solution))
    assert left == []
    notebook.cells = cells
    outputs = executed(notebook, tmp_path, monkeypatch)
    for exercise, blank, solved in zip(exercises, outputs[2:-1:2], outputs[3:-1:2], strict=True):
        mark = "✗" if hasattr(exercise.question, "signature") else "?"  # an empty function is a function, with a wrong result
        assert shown(blank).startswith(f"{mark} {exercise.id}: ")
        assert shown(solved).startswith(f"✓ {exercise.id}: ")
    total = len(exercises)
    assert shown(outputs[-1]).startswith(f"{total} of {total} solved: {exercises[0].id} ")
