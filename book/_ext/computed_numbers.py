"""Numbers in prose: the role `eval` prints what an expression gives in the page's kernel, `given` marks a premise.

Replaces myst-nb's `eval`, which shows a no-break space as "\\xa0" and is silenced by a cell that ends in a semicolon. A page that
evaluates anything depends on the whole library, so that a change there never leaves an old number behind.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.ext.eval import RetrievalError, eval_warning
from myst_nb.ext.utils import RoleBase


def value_of(document: nodes.document, expression: str) -> str:
    """The text of an expression: a string as it is, anything else by its repr. Raises RetrievalError."""
    renderer = document["nb_renderer"].renderer if "nb_renderer" in document else None
    if renderer is None:
        raise RetrievalError("the page has no running kernel: it lacks the jupytext header")
    pattern = renderer.nb_config.eval_name_regex
    if not re.match(pattern, expression):
        raise RetrievalError(f"it does not begin with a name or a call (pattern {pattern}): compute it in a cell")
    # display() is not silenced by a semicolon at the end of the last cell
    shown = _display(renderer.nb_client, expression)
    text = next((output["data"]["text/plain"] for output in shown if "text/plain" in output.get("data", {})), None)
    failed = next((output for output in shown if output.get("output_type") == "error"), None)
    if failed is not None:
        raise RetrievalError(f"{failed.get('ename')}: {failed.get('evalue')}")
    if text is None:
        raise RetrievalError("it gives nothing that can be printed")
    return readable(text)


def readable(text: str) -> str:
    """What a value's repr becomes in the text: a string as it is, anything else its repr. Raises RetrievalError for what nobody can read."""
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
    if value is None:
        raise RetrievalError("it gives None")
    if isinstance(value, float) and len(re.sub(r"\D", "", text)) > 6:
        raise RetrievalError(f"it gives {text}: too many digits to read; print it with digits(…), si(…) or round(…)")
    return value if isinstance(value, str) else text


def _display(client: Any, expression: str) -> list[dict[str, Any]]:
    return client._client.eval_expression(f"__import__('IPython').display.display(({expression}))")


class Eval(RoleBase):
    """``{eval}`si(x, "B/s")` ``: computed when the page is built."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            text = value_of(self.document, self.text)
        except RetrievalError as problem:
            return [], [eval_warning(f"{{eval}}`{self.text}`: {problem}", self.document, self.line)]
        return [nodes.inline(self.text, text, classes=["sb-computed"])], []


class Given(RoleBase):
    """``{given}`16` ``: a premise, not a result; printed as it stands."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        return [nodes.inline(self.text, self.text, classes=["sb-given"])], []


def depend_on_library(app: Any, docname: str, content: list[str]) -> None:
    """Notes the library and these extensions as what each page is made from."""
    root = Path(app.srcdir)
    for folder in ("src/scalebook", "book/_ext"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".py", ".toml", ".json", ".csv", ".mplstyle"}:
                app.env.note_dependency(path.relative_to(root).as_posix())


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.setup_extension("myst_nb")
    app.add_role("eval", Eval(), override=True)
    app.add_role("given", Given())
    app.connect("source-read", depend_on_library)
    return {"parallel_read_safe": True}
