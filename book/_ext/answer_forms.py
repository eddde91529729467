"""Forms for readers: one to answer an exercise, made from its fields, and one for their progress. Hidden without scripts."""

from __future__ import annotations

from scalebook.exercises import Exercise, Field
from scalebook.exercises.fields import CODE
from scalebook.figures.svg import escape

SEGMENTS = 4  # so many options at most stand side by side; more of them in a list that opens
AS_TYPED = 'autocomplete="off" autocapitalize="off" autocorrect="off" spellcheck="false"'
CODE_NOTE = "It runs in your browser; a loop without end is stopped. Ctrl+Enter checks."

TOOLS = """<form class="sb-progress" aria-label="Your progress" autocomplete="off">
<p class="sb-progress-count"></p>
<fieldset class="sb-control"><legend class="sb-visually-hidden">Which exercises to show</legend><div class="sb-segments">
<label><input type="radio" name="show" value="all" checked><span>all</span></label>
<label><input type="radio" name="show" value="open"><span>open</span></label></div></fieldset>
<div class="sb-progress-file"><button type="button" class="sb-button" data-do="export">Export</button>
<button type="button" class="sb-button" data-do="import">Import</button>
<button type="button" class="sb-button" data-do="reset">Reset</button>
<input type="file" accept=".json,application/json" aria-label="A file of exported progress" hidden></div>
<p class="sb-progress-note" role="status"></p></form>
"""


def form_html(exercise: Exercise, number: int) -> str:
    """The whole form."""
    fields = exercise.fields
    name = "answer-" + exercise.id.replace("/", "-")
    lane = "slow" if any(field.kind == CODE for field in fields) else "fast"
    return (
        f'<form class="sb-answer" data-exercise="{escape(exercise.id)}" data-lane="{lane}" aria-label="Answer to exercise {number}" '
        f'autocomplete="off" novalidate>{"".join(field_html(field, f"{name}-{field.key}") for field in fields)}'
        '<button class="sb-button sb-button-strong">Check</button><div class="sb-outcome" role="status" aria-live="polite"></div></form>\n'
    )


def field_html(field: Field, id: str) -> str:
    """One field with its label."""
    caption, key = escape(field.caption), escape(field.key)
    label = f'<label for="{id}">{caption}</label>'
    if field.kind == CODE:
        rows = field.example.count("\n") + 5
        return (
            f'<div class="sb-control sb-code">{label}<textarea id="{id}" name="{key}" rows="{rows}" {AS_TYPED} '
            f'aria-describedby="{id}-note">{escape(field.example)}</textarea><p class="sb-note" id="{id}-note">{CODE_NOTE}</p></div>'
        )
    if field.kind == "text":
        wide = " sb-text-wide" if field.wide else ""
        example = escape(f"e.g. {field.example}")
        return f'<div class="sb-control sb-text{wide}">{label}<input type="text" id="{id}" name="{key}" placeholder="{example}" {AS_TYPED}></div>'
    if len(field.options) > SEGMENTS:
        options = "".join(f"<option>{escape(option)}</option>" for option in field.options)
        return f'<div class="sb-control sb-select">{label}<select id="{id}" name="{key}"><option value="">choose …</option>{options}</select></div>'
    radios = "".join(
        f'<label><input type="radio" name="{key}" value="{escape(option)}"><span>{escape(option)}</span></label>'
        for option in field.options
    )
    return f'<fieldset class="sb-control sb-choice"><legend>{caption}</legend><div class="sb-segments">{radios}</div></fieldset>'
