"""The directive `exercise`: a statement in the page, its definition in the library, one to one.

    ```{exercise} rooflines/dot-product
    The statement, with {given}`1,000` premises marked.
    ```

prints the statement with a number, the line that grades an answer, and folded away the hint, the runnable solution and what its answer
means; no script is needed.
The build fails for an id that the library does not define, for one that stands twice, and for a defined exercise without a statement.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from scalebook.errors import ExerciseError
from scalebook.exercises import CHAPTERS, Exercise as Definition, chapter, get

LOGGER = logging.getLogger(__name__)


class details(nodes.General, nodes.Element):
    """A folded block with a summary."""


def _open(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<details class="{node["css"]}"><summary>{translator.encode(node["summary"])}</summary>\n')


def _close(translator: Any, node: nodes.Element) -> None:
    translator.body.append("</details>\n")


def _code(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="python")


class Exercise(SphinxDirective):
    """``{exercise} chapter/name`` with the statement as its content."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The statement, the line that grades, hint and solution."""
        id = self.arguments[0].strip()
        self.assert_has_content()
        try:
            exercise = get(id)
        except ExerciseError as problem:
            raise self.error(f"{{exercise}} {id}: {problem}") from None
        placed = placed_exercises(self.env)
        here = placed.setdefault(self.env.docname, [])
        where = next((docname for docname, found in placed.items() if id in found), None)
        if where is not None:
            raise self.error(f"{{exercise}} {id}: stands already in {where}; an exercise has one statement")
        here.append(id)
        return [self.box(exercise, len(here))]

    def box(self, exercise: Definition, number: int) -> nodes.Element:
        """The whole box."""
        box = nodes.container(classes=["sb-exercise"])
        name = "exercise-" + exercise.id.replace("/", "-")
        box["names"].append(name)
        self.state.document.note_explicit_target(box, box)
        heading = nodes.paragraph(classes=["sb-exercise-title"])
        heading += [nodes.strong("", f"Exercise {number}."), nodes.Text(f" {exercise.title}")]
        box += heading
        self.state.nested_parse(self.content, self.content_offset, box)
        box += _code(exercise.call)
        box += self.folded("Hint", [self.markdown(exercise.hint)])
        meaning = [self.markdown(exercise.meaning)] if exercise.meaning else []
        box += self.folded("Solution", [_code(exercise.solution.strip("\n")), *meaning])
        return box

    def folded(self, summary: str, content: list[nodes.Node]) -> nodes.Element:
        return details("", *content, summary=summary, css=f"sb-fold sb-{summary.lower()}")

    def markdown(self, text: str) -> nodes.Element:
        block = nodes.container(classes=["sb-fold-text"])
        self.state.nested_parse(StringList(text.splitlines(), self.get_source_info()[0]), self.content_offset, block)
        return block


def placed_exercises(env: Any) -> dict[str, list[str]]:
    """The ids of the exercises on each page, in their order there."""
    if not hasattr(env, "scalebook_exercises"):
        env.scalebook_exercises = {}
    found: dict[str, list[str]] = env.scalebook_exercises
    return found


def forget(app: Any, env: Any, docname: str) -> None:
    """A page that is read anew starts without exercises."""
    placed_exercises(env).pop(docname, None)


def all_placed(app: Any, env: Any) -> None:
    """Warns for each exercise of the library that no page states, and for one outside its chapter."""
    pages = {docname.rpartition("/")[2]: found for docname, found in placed_exercises(env).items()}
    for name in CHAPTERS:
        defined, found = [e.id for e in chapter(name)], pages.get(name, [])
        for id in defined:
            if id not in found:
                LOGGER.warning(
                    "exercise %s is defined in scalebook.exercises.%s and not stated in the page %s [exercise]", id, name, name
                )
        if [i for i in found if i in defined] != [i for i in defined if i in found]:
            LOGGER.warning(
                "the exercises of %s stand in another order in the page than in scalebook.exercises.%s [exercise]", name, name
            )
    for page, found in pages.items():
        for id in found:
            if id.partition("/")[0] != page:
                LOGGER.warning("exercise %s is stated in the page %s; it belongs to its chapter [exercise]", id, page)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_node(details, html=(_open, _close))
    app.add_directive("exercise", Exercise)
    app.connect("env-purge-doc", forget)
    app.connect("env-check-consistency", all_placed)
    return {"parallel_read_safe": False}
