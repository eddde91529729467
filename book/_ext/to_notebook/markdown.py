"""Tokens of plain Markdown made and written: by mdformat, with formulas and tables as notebooks have them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from types import SimpleNamespace

from markdown_it.token import Token
from mdformat.renderer import MDRenderer, RenderContext, RenderTreeNode

from to_notebook.parsing import PageError

MARK, CLOSE = "\ue000", "\ue001"  # of private use: around the number of an expression that only the reader's machine can answer


def text(content: str) -> Token:
    """Plain words."""
    return Token("text", "", 0, content=content)


def as_it_is(content: str) -> Token:
    """Characters that need no escape where they stand."""
    return Token("html_inline", "", 0, content=content)


def linked(words: str, href: str) -> list[Token]:
    """Words that lead somewhere."""
    return [Token("link_open", "a", 1, attrs={"href": href}), text(words), Token("link_close", "a", -1)]


def paragraph(*children: Token) -> list[Token]:
    """Words, links and the like, as one paragraph."""
    inline = Token("inline", "", 0, content="", children=list(children), block=True)
    return [Token("paragraph_open", "p", 1, block=True), inline, Token("paragraph_close", "p", -1, block=True)]


def html(content: str) -> Token:
    """A piece of HTML between paragraphs."""
    return Token("html_block", "", 0, content=content, block=True)


def listing(content: str, language: str) -> Token:
    """Code to read."""
    return Token("fence", "code", 0, content=content.strip("\n") + "\n", info=language, markup="```", block=True)


def folded(summary: str, inner: Iterable[Token]) -> list[Token]:
    """What is shown when its summary is clicked."""
    return [html(f"<details><summary>{summary}</summary>"), *inner, html("</details>")]


# ---- writing ------------------------------------------------------------------------------------------------------------


def _in_table(node: RenderTreeNode) -> bool:
    while node.parent is not None:
        node = node.parent
        if node.type == "table":
            return True
    return False


def _math(node: RenderTreeNode, context: RenderContext) -> str:
    marks = "$" if node.type == "math_inline" else "$$"
    content = (
        re.sub(r"\\?\|", lambda m: r"\Vert " if len(m[0]) == 2 else r"\vert ", node.content) if _in_table(node) else node.content
    )
    return f"{marks}{content}{marks}"


def _table(node: RenderTreeNode, context: RenderContext) -> str:
    rows = [[_children(cell, context) for cell in row.children] for part in node.children for row in part.children]
    rules = ["---" for _ in rows[0]]
    return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], rules, *rows[1:]))


def _children(node: RenderTreeNode, context: RenderContext) -> str:
    return "".join(child.render(context) for child in node.children)


def _in_cell(written: str, node: RenderTreeNode, context: RenderContext) -> str:
    return written.replace("|", "\\|") if _in_table(node) else written


def _words(written: str, node: RenderTreeNode, context: RenderContext) -> str:
    return _in_cell(written.replace("$", "\\$"), node, context)


# What Markdown in notebooks has beyond CommonMark: formulas and tables.
FORMS = SimpleNamespace(
    RENDERERS={
        "math_inline": _math,
        "math_inline_double": _math,
        "math_block": _math,
        "span": _children,
        "amsmath": lambda node, context: node.content.strip(),
        "table": _table,
    },
    POSTPROCESSORS={"text": _words, "code_inline": _in_cell},
)


def written(found: Sequence[Token]) -> str:
    """Tokens of Markdown as text."""
    options = {"mdformat": {"number": True, "wrap": "keep"}, "parser_extension": [FORMS]}
    return MDRenderer().render(found, options, {"references": {}}).strip()


def filled_in(markdown: str, expressions: Sequence[str]) -> str:
    """Code that prints a text with the values of the expressions for which marks stand in it."""
    escaped = markdown.replace("{", "{{").replace("}", "}}")

    def place(mark: re.Match[str]) -> str:
        expression = expressions[int(mark[1])]
        return "{" + (f"({expression})" if expression.startswith("{") else expression) + "}"

    body = re.sub(f"{MARK}(\\d+){CLOSE}", place, escaped)
    code = f'from IPython.display import Markdown\n\nMarkdown(rf"""\n{body}\n""")'
    try:
        held = [ast.unparse(part.value) for part in ast.walk(ast.parse(code)) if isinstance(part, ast.FormattedValue)]
    except SyntaxError:
        held = []
    wanted = [ast.unparse(ast.parse(expressions[int(n)], mode="eval")) for n in re.findall(f"{MARK}(\\d+){CLOSE}", markdown)]
    if held != wanted:
        raise PageError(f"{wanted} cannot stand in a formatted string as they are: compute them in a cell under a name")
    return code
