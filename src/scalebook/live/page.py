"""An explorer in a page: its controls and its figure as HTML, complete without a script; the page's script binds to what stands here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scalebook.figures.figure import BROAD, NARROW
from scalebook.figures.svg import h
from scalebook.live.explorers import Explorer
from scalebook.tables import Table

State = Mapping[str, Any]


def figure_html(
    explorer: Explorer,
    state: State,
    *,
    caption_html: str,
    question: str = "",
    name: str = "",
    guess: Mapping[str, Any] | None = None,
) -> str:
    """The whole figure in a state; `question` and `caption_html` are HTML, `name` its address on the page.

    `guess` asks first: {"ask": question, "unit": …, "answer": number, "set": the state that shows it}.
    """
    id = name or f"explorer-{explorer.name}"
    settled = explorer.state(state)
    figure = explorer.live(settled)
    attributes = {
        "cls": "sb-figure sb-explorer",
        "id": id,
        "data_explorer": explorer.name,
        "data_state": as_json(settled),
        "data_slow": "" if explorer.slow else None,
        "data_guess": as_json(guess) if guess else None,
    }
    parts = [
        h("p", {"cls": "sb-question", "id": f"{id}-question"}, question) if question else "",
        controls_html(explorer, settled, id, f"{id}-question" if question else None),
        h("p", {"cls": "sb-error", "id": f"{id}-error", "hidden": ""}, ""),
        h("div", {"cls": "sb-stage"}, figure.svg(BROAD, cls="sb-broad"), figure.svg(NARROW, cls="sb-narrow")),
        h("p", {"cls": "sb-readout"}, figure.readout),
        h("figcaption", {}, caption_html) if caption_html else "",
        tools_html(explorer.table(figure.view)),
    ]
    return h("figure", attributes, *parts)


def controls_html(explorer: Explorer, state: State, id: str, question: str | None = None) -> str:
    """The controls in a form, in the explorer's order; the form is named by the element of the question, which tells two of a page apart."""
    name = {"aria_labelledby": question} if question else {"aria_label": f"{explorer.title}: settings"}
    named = {"cls": "sb-controls", **name}
    return h("form", named, *(control.html(id, state[control.key], state) for control in explorer.controls))


def tools_html(table: Table) -> str:
    """The table, folded, and what can be copied."""
    folded = h("details", {"cls": "sb-table"}, h("summary", {}, "Show as table"), table_html(table))
    buttons = (
        h("button", {"type": "button", "cls": "sb-button", "data_do": do}, words)
        for do, words in (("python", "Copy as Python"), ("link", "Copy link"), ("reset", "Reset"))
    )
    return h("div", {"cls": "sb-tools"}, folded, *buttons)


def table_html(table: Table) -> str:
    """A table as it stands in a figure."""
    return table._repr_html_()


def as_json(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
