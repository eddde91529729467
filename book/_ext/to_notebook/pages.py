"""One page of the book turned into a notebook, and its exercises into another with blanks for the answers."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from explorers import assignments
from markdown_it.token import Token

from scalebook.errors import ScalebookError
from scalebook.exercises import Exercise, get
from scalebook.live.explorers import named
from to_notebook.book import Book
from to_notebook.cells import Cell, Notebook
from to_notebook.markdown import MARK, as_it_is, filled_in, folded, linked, listing, paragraph, text, written
from to_notebook.parsing import Directive, PageError, blocks, directive, tokens
from to_notebook.prose import Prose, literal
from to_notebook.values import Values

MISSING = """
    raise ModuleNotFoundError(
        "The book's library is not installed here. In a clone of the book's repository, run: "
        "pip install --no-deps .  On Colab, run: "
        "%pip install --no-deps git+https://github.com/OWNER/NAME  "
        "with the repository that this notebook was opened from. Then run this cell again."
    )
"""
INSTALL = """
    %pip install --quiet --no-deps "scalebook @ git+https://github.com/REPOSITORY"
"""
SUMMARY = """
from scalebook.exercises import Verdict

latest = {v.exercise: v for v in Out.values() if isinstance(v, Verdict)}
solved = [name for name, verdict in latest.items() if verdict.correct]
print(len(solved), "of", TOTAL, "solved:", *solved)
"""


@dataclass
class Page:
    """A page on its way into notebooks."""

    name: str
    book: Book
    cells: list[Cell] = field(default_factory=list)
    blanks: list[Cell] = field(default_factory=list)  # the cells of the exercises' notebook
    exercises: int = 0
    _pending: list[Token] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = Values()
        self.prose = Prose(self.name, self.book, self.values)
        self.elsewhere = Prose(self.name, self.book, self.values, folder="notebooks/exercises")
        for block in blocks(tokens(self.book.source(self.name))):
            try:
                self._add(block)
            except (PageError, ScalebookError, SyntaxError) as problem:
                line = block[0].map[0] + 1 if block[0].map else 0
                raise PageError(f"book/{self.name}.md:{line}: {problem}") from problem
        self._flush()
        self._list_references()

    # ---- the page, block by block ----

    def _add(self, block: list[Token]) -> None:
        held = directive(block[0])
        make = {"code-cell": self._code, "exercise": self._exercise, "explorer": self._explorer}.get(held.name if held else "")
        if held is not None and make is not None:
            make(held)
        else:
            self._text(block, starts=block[0].type == "heading_open")

    def _text(self, source: str | Sequence[Token], starts: bool = False) -> None:
        """Text joins the text before it, but a heading begins a cell, and what the reader's machine must fill in is a cell of code."""
        before = len(self.prose.asked)
        found = self.prose.plain(source)
        if len(self.prose.asked) > before:
            self._flush()
            code = filled_in(written(found), self.prose.asked)
            self.cells.append(Cell("code", code, title="Text, with the values of this machine"))
        else:
            if starts:
                self._flush()
            self._pending += found

    def _flush(self) -> None:
        if self._pending:
            self.cells.append(Cell("markdown", written(self._pending), printed=tuple(self.prose.printed)))
        self._pending, self.prose.printed = [], []

    def _code(self, held: Directive) -> None:
        self._flush()
        code = held.content.strip("\n")
        try:
            self.values.run(code)
        except Exception as problem:  # whatever the page's own code raises
            raise PageError(f"this cell raises {type(problem).__name__}: {problem}") from problem
        self.cells.append(Cell("code", code, title=_title(code) if "remove-input" in held.tags else ""))

    def _explorer(self, held: Directive) -> None:
        definition = named(held.argument)
        given = assignments(held.options.get("set", ""))
        state = definition.state(given)
        arguments = [json.dumps(held.argument), *(f"{key}={literal(state[key])}" for key in given)]
        self._pending += self.prose.place(held.options.get("name", ""))
        if "question" in held.options:
            self._text(held.options["question"])
        if "guess" in held.options:
            self._text(f"*Guess before you run it:* {json.loads(held.options['guess'])['ask']}")
        self._flush()
        self.cells.append(Cell("code", f"sb.explorer({', '.join(arguments)})"))
        self._text(held.content)

    # ---- exercises ----

    def _exercise(self, held: Directive) -> None:
        self._flush()
        exercise = get(held.argument)
        self.exercises += 1
        title = f"### Exercise {self.exercises}. {exercise.title}"
        code, blank = listing(exercise.solution, "python"), _blank(exercise)
        for prose, cells, solution in (
            (self.prose, self.cells, [code, *self.prose.plain(exercise.meaning)]),
            (self.elsewhere, self.blanks, _told(exercise)),
        ):
            statement = prose.plain(f"{title}\n\n{held.content}")
            found = [*statement, *folded("Hint", prose.plain(exercise.hint)), *folded("Solution", solution)]
            if prose.asked and any(MARK in child.content for t in statement for child in t.children or ()):
                raise PageError("an exercise cannot ask for a value of the reader's machine")
            cells += [Cell("markdown", written(found), printed=tuple(prose.printed)), Cell("code", blank)]
            prose.printed = []

    # ---- whole notebooks ----

    def _list_references(self) -> None:
        if self.prose.cited:
            entries = "\n\n".join(self.book.listed(self.prose.cited))
            self.cells.append(Cell("markdown", written(self.prose.plain(f"## References\n\n{entries}"))))

    def notebook(self) -> Notebook:
        """The chapter."""
        path = f"notebooks/{self.name}.ipynb"
        title = self.book.titles[self.name]
        opening = [
            *self._badge(path),
            *paragraph(
                text("This notebook is the chapter "),
                *self._linked(title, self.prose),
                text(
                    " of scalebook. Run its cells from the top. The code of figures and tables is folded away. What depends on the machine is "
                    "computed when you run it, so where the text speaks of the machine that built the page, it is yours."
                ),
            ),
        ]
        return Notebook(path, [Cell("markdown", written(opening)), self._setup(self.values.uses_lab), *self.cells])

    def exercise_notebook(self) -> Notebook | None:
        """Its exercises, with blanks for the answers; None for a page without."""
        if not self.exercises:
            return None
        path = f"notebooks/exercises/{self.name}.ipynb"
        opening = [
            *self._badge(path),
            *self.elsewhere.plain(f"# Exercises: {self.book.titles[self.name]}"),
            *paragraph(
                text(
                    "Replace the dots by your answer and run the cell: it says whether it is right, and if not, what probably went wrong. "
                ),
                text("Numbers in parentheses are those of equations in the chapter "),
                *self._linked(self.book.titles[self.name], self.elsewhere),
                text("."),
            ),
        ]
        first = Cell("code", "import scalebook as sb")
        last = [Cell("markdown", "## What you have solved"), Cell("code", SUMMARY.strip().replace("TOTAL", str(self.exercises)))]
        return Notebook(path, [Cell("markdown", written(opening)), self._setup(False), first, *self.blanks, *last])

    def _linked(self, words: str, prose: Prose) -> list[Token]:
        """Words that lead to the page: on the site if its address is known, else as this repository has it."""
        if prose is self.prose and not self.book.address:
            return linked(words, f"../book/{self.name}.md")
        return linked(words, self.book.link(f"{self.name}.md", "", prose.folder))

    def _badge(self, path: str) -> list[Token]:
        address = self.book.colab(path)
        image = "https://colab.research.google.com/assets/colab-badge.svg"
        return paragraph(as_it_is(f'<a href="{address}"><img src="{image}" alt="Open in Colab"></a>')) if address else []

    def _setup(self, lab: bool) -> Cell:
        """The first cell: the library, if it is missing, and nothing else; then what there is to compute on."""
        install = INSTALL.replace("REPOSITORY", self.book.repository) if self.book.repository else MISSING
        lines = [
            "# Setup: the book's library, where it is missing. Nothing else is installed or replaced; jax stays as it is.",
            "import importlib.util",
            "",
            'if importlib.util.find_spec("scalebook") is None:',
            install.strip("\n"),
        ]
        if lab:
            lines += ["", "from scalebook import lab", "", "lab.setup()"]
        return Cell("code", "\n".join(lines))


def _told(exercise: Exercise) -> list[Token]:
    """How to see the solution: not in sight, and one line away."""
    return [listing(f'print(sb.exercises.solution("{exercise.id}"))', "python")]


def _blank(exercise: Exercise) -> str:
    """What the reader fills in, and the line that grades it."""
    question = exercise.question
    signature, parts = getattr(question, "signature", ""), getattr(question, "parts", {})
    if signature:
        return f"def {signature}:\n    ...\n\n\n{exercise.call}"
    blank = "{" + ", ".join(f"{json.dumps(name)}: ..." for name in parts) + "}" if parts else "..."
    return f"{question.variable} = {blank}\n{exercise.call}"


def _title(code: str) -> str:
    """What is to be called a cell whose code is folded away."""
    last = ast.parse(code).body[-1]
    if not isinstance(last, ast.Expr):
        return "Preparation"
    return "Figure" if "figures" in ast.dump(last) or "crossing" in ast.dump(last) else "Table"
