"""MyST read by the parser that the book itself is built with: tokens, and the directives in fences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from docutils.parsers.rst.directives.misc import TestDirective
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser

ROOT = Path(__file__).parents[3]


class PageError(Exception):
    """A page holds something that cannot become part of a notebook: says where, what, and what to do."""


@dataclass(frozen=True)
class Directive:
    """A fence with a name in braces: ```` ```{name} argument ````, options, content."""

    name: str
    argument: str
    options: dict[str, str]
    content: str

    @property
    def tags(self) -> list[str]:
        """The tags of a cell."""
        return list(yaml.safe_load(self.options.get("tags", "[]")))


@cache
def settings() -> dict[str, Any]:
    """What _config.yml tells Sphinx."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"]["config"]
    return found


@cache
def parser() -> MarkdownIt:
    """The parser of the book's pages, with the extensions that _config.yml names."""
    config = MdParserConfig(
        enable_extensions=set(settings()["myst_enable_extensions"]),
        dmath_double_inline=settings()["myst_dmath_double_inline"],
    )
    return create_md_parser(config, RendererHTML)


def tokens(source: str) -> list[Token]:
    """The tokens of a piece of MyST."""
    return parser().parse(source)


def blocks(found: Sequence[Token]) -> Iterator[list[Token]]:
    """The outermost blocks: each with all that is in it."""
    block: list[Token] = []
    for token in found:
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []


def directive(token: Token) -> Directive | None:
    """The directive that a fence holds; None for a plain listing and for what is no fence."""
    info = token.info.strip()
    if token.type not in ("fence", "colon_fence") or not info.startswith("{") or "}" not in info:
        return None
    name, _, rest = info[1:].partition("}")
    read = parse_directive_text(TestDirective, rest.strip(), token.content)
    return Directive(name, rest.strip(), read.options, "\n".join(read.body))


def words(children: Sequence[Token] | None) -> str:
    """The plain words of an inline token's children."""
    return "".join(" " if c.type == "softbreak" else c.content for c in children or ())
