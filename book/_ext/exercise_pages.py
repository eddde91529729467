"""The directive `exercise`: a statement in the page, its definition in the library, one to one; `exercise-list`: all of them.

    ```{exercise} rooflines/dot-product
    The statement, with {given}`1,000` premises marked.
    ```

prints the statement with a number, a form to answer it in, the line that grades an answer in Python, and folded away the hint, the
runnable solution and what its answer means. Without scripts all of it is there but the form.
The build fails for an id that the library does not define, for one that stands twice, and for a defined exercise without a statement.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from answer_forms import TOOLS, form_html
from docutils import nodes
from docutils.statemachine import StringList
from explorers import markup
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from scalebook.errors import ExerciseError
from scalebook.exercises import CHAPTERS, Exercise as Definition, chapter, get
from scalebook.units import plural

LOGGER = logging.getLogger(__name__)
SOLVED = '<span class="sb-solved-mark">✓<span class="sb-visually-hidden"> solved</span></span>'


class listed(nodes.list_item):
    """An exercise in a list."""


class details(nodes.General, nodes.Element):
    """A folded block with a summary."""


def _open(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<details class="{node["css"]}"><summary>{translator.encode(node["summary"])}</summary>\n')


def _close(translator: Any, node: nodes.Element) -> None:
    translator.body.append("</details>\n")


def _open_listed(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<li data-exercise="{translator.attval(node["exercise"])}">')


def _close_listed(translator: Any, node: nodes.Element) -> None:
    translator.body.append('<span class="sb-state"></span></li>\n')


def _anchor(id: str) -> str:
    """The name of an exercise's place in its page."""
    return "exercise-" + id.replace("/", "-")


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
        name = _anchor(exercise.id)
        box["names"].append(name)
        self.state.document.note_explicit_target(box, box)
        heading = nodes.paragraph(classes=["sb-exercise-title"])
        itself = nodes.reference("", f"Exercise {number}.", refuri=f"#{name}", reftitle="Link to this exercise", internal=True)
        heading += [nodes.strong("", "", itself), nodes.Text(f" {exercise.title}"), markup(html=SOLVED)]
        box += heading
        self.state.nested_parse(self.content, self.content_offset, box)
        box += markup(html=form_html(exercise, number))
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


class ExerciseList(SphinxDirective):
    """``{exercise-list}``: a section for each chapter, with its exercises in order and what the reader has solved of them."""

    def run(self) -> list[nodes.Node]:
        """Buttons and counts, for which a script is needed, then the sections."""
        return [markup(html=TOOLS), *map(self.section, CHAPTERS)]

    def section(self, name: str) -> nodes.Element:
        docname = posixpath.join(posixpath.dirname(self.env.docname), name)
        path = Path(self.env.doc2path(docname))
        title = re.search(r"^# (.+)$", path.read_text("utf-8"), re.M) if path.exists() else None
        if title is None:
            raise self.error(f"{{exercise-list}}: the chapter {docname} has exercises, and there is no page with a title for it")
        self.env.note_dependency(str(path))
        section = nodes.section(
            "", nodes.title("", title[1]), ids=[nodes.make_id(f"exercises-{name}")], names=[f"exercises-{name}"]
        )
        defined = chapter(name)
        section += nodes.paragraph("", plural(len(defined), "exercise"), classes=["sb-count"])
        section += nodes.enumerated_list("", *map(self.item, defined), classes=["sb-exercise-list"])
        return section

    def item(self, exercise: Definition) -> nodes.Element:
        link = addnodes.pending_xref(
            "",
            nodes.inline("", exercise.title),
            refdomain="std",
            reftype="ref",
            reftarget=_anchor(exercise.id),
            refexplicit=True,
            refwarn=True,
            refdoc=self.env.docname,
        )
        return listed("", nodes.paragraph("", "", link), exercise=exercise.id)


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
    app.setup_extension("explorers")
    app.add_node(details, html=(_open, _close))
    app.add_node(listed, html=(_open_listed, _close_listed))
    app.add_directive("exercise", Exercise)
    app.add_directive("exercise-list", ExerciseList)
    app.connect("env-purge-doc", forget)
    app.connect("env-check-consistency", all_placed)
    return {"parallel_read_safe": False}
