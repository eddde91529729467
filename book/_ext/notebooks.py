"""The book as notebooks: notebooks/<chapter>.ipynb from each chapter with cells, notebooks/exercises/<chapter>.ipynb from its exercises.

    python book/_ext/notebooks.py           writes them
    python book/_ext/notebooks.py --check   fails, and says which and what to do, when a committed one is not what would be written

They are committed without outputs, and with no value that depends on a machine. Addresses come from `book_repository` and `book_address`
in _config.yml, else from GITHUB_REPOSITORY. A check takes notebooks as current that were made where no repository was known, as long as
_config.yml names none.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from to_notebook.book import Book
from to_notebook.cells import Notebook
from to_notebook.pages import Page
from to_notebook.parsing import ROOT, PageError, settings

FOLDER = "notebooks"


def repositories(environment: Mapping[str, str]) -> list[str]:
    """The repositories for which committed notebooks may be made, the one to write them for first; "": none is known."""
    configured = settings()["book_repository"]
    return [configured] if configured else list(dict.fromkeys((environment.get("GITHUB_REPOSITORY", ""), "")))


def notebooks(book: Book) -> list[Notebook]:
    """Every notebook of the book."""
    pages = [Page(name, book) for name in book.with_notebook]
    return [n for page in pages for n in (page.notebook(), page.exercise_notebook()) if n is not None]


@cache
def made(repository: str) -> dict[str, str]:
    """Every notebook for a repository: its path there, and its text."""
    return {notebook.path: notebook.text() for notebook in notebooks(Book.at(repository))}


def committed(root: Path = ROOT) -> dict[str, str]:
    """Every notebook that is there."""
    files = sorted((root / FOLDER).rglob("*.ipynb"))
    return {p.relative_to(root).as_posix(): p.read_text("utf-8") for p in files if ".ipynb_checkpoints" not in p.parts}


def stale(there: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    """What is wrong with the notebooks that are there, one line each."""
    missing = [f"{path} is missing: run make notebooks and commit it" for path in wanted if path not in there]
    old = [
        f"{path} is stale: run make notebooks and commit it" for path in wanted if path in there and there[path] != wanted[path]
    ]
    strange = [f"{path} is made from no page: remove it" for path in there if path not in wanted]
    return missing + old + strange


def check(there: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """What is wrong, by the first of the repositories for which nothing is, else by the one that notebooks are written for."""
    faults = []
    for repository in repositories(environment):
        faults.append(stale(there, made(repository)))
        if not faults[-1]:
            return []
    return faults[0]


def write(wanted: Mapping[str, str], root: Path = ROOT) -> None:
    """Writes what changed, and removes what no page makes any more."""
    there = committed(root)
    for path in there.keys() - wanted.keys():
        (root / path).unlink()
    for path, text in wanted.items():
        if there.get(path) != text:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, "utf-8", newline="\n")


def main(arguments: list[str]) -> int:
    """The command."""
    options = argparse.ArgumentParser(prog="notebooks.py", description="The book as notebooks.")
    options.add_argument("--check", action="store_true", help="write nothing; fail when a committed notebook is stale")
    try:
        if options.parse_args(arguments).check:
            faults = check(committed(), os.environ)
            print(*faults, sep="\n", end="\n" * bool(faults), file=sys.stderr)
            return 1 if faults else 0
        write(made(repositories(os.environ)[0]))
    except PageError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
