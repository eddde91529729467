"""What a page asks of the library, as JSON in and JSON out: the state of an explorer, or a check of an answer.

    {"do": "explore", "name": "roofline", "state": {"B": 96}, "width": 680, "with": ["table", "python"]}
    {"do": "check", "id": "rooflines/bias-add", "answer": "1/4"}

A reader's mistake comes back as `{"ok": false, "error": the library's own message}`, a fault of the library with its traceback as
`bug` beside; nothing is raised. After a reply with `bug` or `restart`, a page should start Python anew.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from scalebook.errors import ScalebookError, shown, unknown, within
from scalebook.figures.figure import BROAD
from scalebook.live.explorers import named
from scalebook.live.page import table_html

Reply = dict[str, Any]
MORE = ("table", "python")


def answer(request: str) -> str:
    """The reply to a request.

    >>> reply = json.loads(answer('{"do": "explore", "name": "roofline", "state": {"B": 96}}'))
    >>> reply["ok"], reply["state"]["B"], reply["controls"]["B"]["text"]
    (True, 96, '96 tokens')
    >>> answer('{"do": "dance"}')
    '{"ok": false, "error": "unknown request \\'dance\\'. Known: explore, check"}'
    """
    try:
        reply = {"ok": True, **_reply(request)}
        return json.dumps(reply, allow_nan=False)
    except ScalebookError as mistake:
        return json.dumps({"ok": False, "error": str(mistake)})
    except BaseException as fault:
        return _fault(fault)


def _fault(fault: BaseException) -> str:
    """What is said of a fault; it may come from a reader's program, and then not even be fit to be written."""
    try:
        told = f"the library failed on this: {type(fault).__name__}: {fault}"
        return json.dumps({"ok": False, "error": told, "bug": traceback.format_exc()})
    except BaseException:
        return '{"ok": false, "error": "the library failed on this", "bug": "a fault that cannot be written"}'


def _reply(request: str) -> Reply:
    try:
        asked = json.loads(request)
    except (TypeError, ValueError, RecursionError) as error:
        raise ScalebookError(f"a request is a JSON object; found {shown(request)} ({error})") from None
    if not isinstance(asked, dict):
        raise ScalebookError(f"a request is a JSON object; found {shown(asked)}")
    what = asked.get("do")
    if not within(what, KINDS):
        raise unknown("request", what, KINDS)
    return KINDS[what](asked)


def _explore(asked: Mapping[str, Any]) -> Reply:
    """The explorer's figure in a state: settled state, picture at the width, readout, controls, and what else is asked for."""
    explorer = named(asked.get("name"))
    state = explorer.state(asked.get("state"))
    figure = explorer.live(state)
    reply: Reply = {
        "state": state,
        "svg": figure.svg(asked.get("width", BROAD)),
        "readout": figure.readout,
        "controls": {control.key: control.spec(state[control.key], state) for control in explorer.controls},
    }
    for more in _listed(asked.get("with", [])):
        if more == "table":
            reply["table"] = table_html(explorer.table(figure.view))
        elif more == "python":
            reply["python"] = explorer.python(**state)
        else:
            raise unknown("part of a reply", more, MORE)
    return reply


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ScalebookError(f"`with` is a list of {' and '.join(MORE)}; found {shown(value)}")
    return value


def _check(asked: Mapping[str, Any]) -> Reply:
    """The verdict on an answer to an exercise; `restart` when a program has changed the library, so that the next one finds it whole."""
    from scalebook import exercises  # here, since a page may have explorers only
    from scalebook.exercises.fields import CODE
    from scalebook.exercises.kept import Kept

    id, given = asked.get("id"), asked.get("answer")
    if not isinstance(id, str):
        raise ScalebookError(f"an exercise is asked for by its id, such as 'rooflines/dot-product'; found {shown(id)}")
    if not isinstance(given, str) and not (isinstance(given, dict) and all(isinstance(text, str) for text in given.values())):
        raise ScalebookError(f"an answer is a text, or texts by the names of its parts; found {shown(given)}")
    kept = Kept() if any(field.kind == CODE for field in exercises.get(id).fields) else None
    try:
        verdict = exercises.grade_text(id, given)
    finally:
        changed = kept is not None and kept.restore()
    reply: Reply = {"correct": verdict.correct, "status": verdict.status, "html": verdict._repr_html_()}
    return {**reply, "restart": True} if changed else reply


KINDS: dict[Any, Callable[[Mapping[str, Any]], Reply]] = {"explore": _explore, "check": _check}
