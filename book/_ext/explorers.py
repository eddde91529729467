"""The directive `explorer`: a figure with its controls; and the role `set`: words that put a figure of the page into a state.

    ```{explorer} roofline
    :name: fig-play-roofline
    :question: Which binds, and from how many tokens on?
    :set: chip=v5e B=64
    :guess: {"ask": "At how many tokens …?", "unit": "tokens", "answer": "=sb.critical_batch('v5e')", "set": {"B": 256}}
    **The finding.** A caption, with {eval}`…`.
    ```

    … drag to {set}`the ridge <fig-play-roofline?B=240>` …

The figure is drawn when the page is built, by the same functions as in the browser. What cannot be read, an unknown explorer or
key, and words that point to no explorer of the page are warnings, which fail the build.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, ClassVar

from computed_numbers import value_of
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from myst_nb.ext.eval import RetrievalError
from myst_nb.ext.utils import RoleBase
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from scalebook.errors import ScalebookError
from scalebook.live.explorers import Explorer as Definition, named
from scalebook.live.page import as_json, figure_html

LOGGER = logging.getLogger(__name__)
HERE = "document.documentElement.classList.add('sb-js')"  # before the first paint, so that controls never appear late
QUESTION, CAPTION = "<!--question-->", "<!--caption-->"


class explorer_figure(nodes.General, nodes.Element):
    """The pieces of an explorer's HTML, with what stands between them as nodes."""


class markup(nodes.Special, nodes.Element):
    """HTML as it stands; not raw, so that the search does not list what is written in pictures."""


class setting(nodes.Inline, nodes.TextElement):
    """Words that set a figure."""


class Explorer(SphinxDirective):
    """``{explorer} name`` with the caption as its content."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {
        "name": directives.unchanged_required,
        "question": directives.unchanged_required,
        "set": directives.unchanged_required,
        "guess": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """The figure in its start state."""
        name = self.arguments[0].strip()
        try:
            definition = named(name)
            state = definition.state(assignments(self.options.get("set", "")))
            guess = self.guess(definition, state)
            return [self.html(definition, state, guess)]
        except (ScalebookError, RetrievalError) as problem:
            where = (self.env.docname, self.lineno + 1)
            LOGGER.warning("{explorer} %s: %s [explorer]", name, problem, location=where)
            return []

    def guess(self, definition: Definition, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """What is asked first, its answer computed."""
        if "guess" not in self.options:
            return None
        rule = ':guess: is JSON with a text "ask" and a number or "=expression" "answer", and may have "unit" and "set"'
        try:
            guess = json.loads(self.options["guess"])
        except ValueError as problem:
            raise ScalebookError(f"{rule}; found {self.options['guess']!r} ({problem})") from None
        kinds = {"ask": str, "answer": str | int | float, "unit": str, "set": dict}
        known = isinstance(guess, dict) and all(isinstance(value, kinds.get(key, ())) for key, value in guess.items())
        if not known or not {"ask", "answer"} <= set(guess):
            raise ScalebookError(f"{rule}; found {self.options['guess']!r}")
        if isinstance(guess["answer"], str):
            expression = guess["answer"].removeprefix("=")
            guess["answer"] = float(value_of(self.state.document, f"repr(float({expression}))"))
        if "set" in guess:
            definition.figure(**patched(definition, state, guess["set"]))
        return guess

    def html(self, definition: Definition, state: Mapping[str, Any], guess: Mapping[str, Any] | None) -> nodes.Element:
        """The figure's pieces, with question and caption between them."""
        id = nodes.make_id(self.options.get("name", f"explorer-{definition.name}"))
        question = (
            self.parsed(StringList([self.options["question"]], self.get_source_info()[0])) if "question" in self.options else []
        )
        caption = self.parsed(self.content)
        whole = figure_html(
            definition,
            state,
            caption_html=CAPTION if caption else "",
            question=QUESTION if question else "",
            name=id,
            guess=guess,
        )
        figure = explorer_figure(explorer=definition.name, state=dict(state))
        pieces = re.split(f"({QUESTION}|{CAPTION})", whole)
        for piece in pieces:
            figure += {QUESTION: question, CAPTION: caption}.get(piece) or markup(html=piece)
        figure["names"].append(nodes.fully_normalize_name(id))
        self.state.document.note_explicit_target(figure, figure)
        self.set_source_info(figure)
        return figure

    def parsed(self, content: StringList) -> list[nodes.Node]:
        """MyST as nodes; a single paragraph as what it holds, since it stands in one already."""
        holder = nodes.container()
        self.state.nested_parse(content, self.content_offset, holder)
        only = holder.children[0] if len(holder) == 1 else None
        return list(only.children) if isinstance(only, nodes.paragraph) else list(holder.children)


def assignments(text: str) -> dict[str, str]:
    """The pairs of "chip=v5e B=64", where a value with spaces stands in quotes.

    >>> assignments("chip=v5e mesh='X=2, Y=4'")
    {'chip': 'v5e', 'mesh': 'X=2, Y=4'}
    """
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise ScalebookError(
            f":set: is written key=value, with quotes around what has spaces; found {text!r} ({problem})"
        ) from None
    return dict(_pair(word) for word in words)


def _pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals:
        raise ScalebookError(f"a state is set by key=value; found {word!r}")
    return key, value


def patched(definition: Definition, start: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The state after a change, all keys that the change names as it says."""
    state = definition.state({**start, **patch})
    for key, value in patch.items():
        try:
            kept = definition.by_key[key].check(value, state) == state[key]
        except ScalebookError:
            kept = False
        if not kept:
            raise ScalebookError(f"{key}={value} cannot be had beside the rest of the state: it becomes {state[key]}")
    return state


def words_that_set(text: str) -> tuple[str, str, dict[str, str]]:
    """The words of a role `set`, the name of the figure, and what is set in it.

    >>> words_that_set("the ridge <fig-play-roofline?B=240>")
    ('the ridge', 'fig-play-roofline', {'B': '240'})
    """
    found = re.fullmatch(r"(?P<title>.+?)\s*<(?P<target>[^<>?]+)\?(?P<patch>.+)>", text, re.DOTALL)
    if found is None:
        raise ScalebookError("it is written {set}`words <name of the figure?key=value&key=value>`")
    return found["title"], found["target"], dict(_pair(word) for word in found["patch"].split("&"))


class Set(RoleBase):
    """``{set}`words <figure?key=value&key=value>` ``; a title that begins with = is computed."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The words, which the end of the page gives their state."""
        try:
            title, target, patch = words_that_set(self.text)
            if title.startswith("="):
                title = value_of(self.document, title[1:].strip())
        except (ScalebookError, RetrievalError) as problem:
            return self.refused(str(problem))
        node = setting(self.text, title, target=nodes.make_id(target), patch=patch)
        node.source, node.line = self.source, self.line + 1  # MyST counts lines from 0
        return [node], []

    def refused(self, why: str) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The words alone, and a warning."""
        where = (self.document.settings.env.docname, self.line + 1)
        LOGGER.warning("{set}`%s`: %s [explorer]", self.text, why, location=where)
        return [nodes.Text(self.text.partition("<")[0].strip())], []


def connect(app: Any, doctree: nodes.document) -> None:
    """Gives the words that set a figure its state; a warning where they point to no explorer of the page, or it cannot be so."""
    figures = {id: figure for figure in doctree.findall(explorer_figure) for id in figure["ids"]}
    for node in doctree.findall(setting):
        figure = figures.get(node["target"])
        try:
            if figure is None:
                here = ", ".join(figures) or "none"
                raise ScalebookError(f"{node['target']} is no explorer on this page, which has: {here}")
            definition = named(figure["explorer"])
            state = patched(definition, figure["state"], node["patch"])
            definition.figure(**state)
            node["set"] = {key: state[key] for key in node["patch"]}
        except ScalebookError as problem:
            LOGGER.warning("{set}`%s`: %s [explorer]", node.rawsource, problem, location=(app.env.docname, node.line))


def _figure(translator: Any, node: nodes.Element) -> None:
    """Its pieces are its children."""


def _markup(translator: Any, node: nodes.Element) -> None:
    translator.body.append(node["html"])
    raise nodes.SkipNode


def _open(translator: Any, node: nodes.Element) -> None:
    data = {"data-for": node["target"], "data-set": as_json(node["set"])} if "set" in node else {}
    translator.body.append(translator.starttag(node, "span", "", CLASS="sb-set" if data else "", **data))


def _close(translator: Any, node: nodes.Element) -> None:
    translator.body.append("</span>")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_node(explorer_figure, html=(_figure, _figure))
    app.add_node(markup, html=(_markup, None))
    app.add_node(setting, html=(_open, _close))
    app.add_directive("explorer", Explorer)
    app.add_role("set", Set())
    app.add_js_file(None, body=HERE)
    app.connect("doctree-read", connect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
