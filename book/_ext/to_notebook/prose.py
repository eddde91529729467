"""Text of a page as plain Markdown: roles, directives and links of MyST become what every notebook program can show.

Tokens of MyST are turned into tokens of Markdown, which mdformat writes. A value that only the reader's machine can tell
stands in the result as a mark; the cell that prints the text puts it in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from explorers import words_that_set
from markdown_it.token import Token
from myst_nb.ext.eval import RetrievalError

from scalebook.live.explorers import named
from to_notebook.book import Book
from to_notebook.markdown import CLOSE, MARK, as_it_is, folded, linked, listing, paragraph, text
from to_notebook.parsing import Directive, PageError, blocks, directive, tokens, words
from to_notebook.values import Values

TITLED = re.compile(r"(?P<title>.+?)\s*<(?P<target>[^<>]+)>", re.DOTALL)
NOTES = {name: name.capitalize() for name in "note tip hint important warning caution attention danger error seealso".split()}
NOTES["seealso"] = "See also"
DROPPED = {"front_matter", "myst_line_comment", "myst_block_break"}


@dataclass
class Prose:
    """The text of one page on its way into a notebook in a folder, with the values that its cells gave so far."""

    page: str
    book: Book
    values: Values
    folder: str = "notebooks"
    cited: list[str] = field(default_factory=list)
    printed: list[tuple[str, str]] = field(default_factory=list)  # expressions, and what stands for them in the text
    asked: list[str] = field(default_factory=list)  # expressions that are left to the reader's machine

    # ---- blocks ----

    def plain(self, source: str | Sequence[Token]) -> list[Token]:
        """MyST, or its tokens, as tokens of Markdown."""
        found = tokens(source) if isinstance(source, str) else source
        return [token for block in blocks(found) for token in self._block(block)]

    def _block(self, block: list[Token]) -> list[Token]:
        first = block[0]
        if first.type in DROPPED:
            return []
        if first.type == "myst_target":
            return self.place(first.content)
        held = directive(first)
        if held is not None:
            return [*self.place(held.options.get("name", "")), *self._directive(held)]
        if first.type == "math_block_label":
            return [self._formula(first.content, first.info)]
        if first.type == "dl_open":
            return self._definitions(block)
        result = [self._inner(token) for token in block]
        return result if first.type != "heading_open" else [*self.place(words(block[1].children).replace(" ", "-")), *result]

    def _inner(self, token: Token) -> Token:
        if directive(token) is not None:
            raise PageError("a directive inside a list or a quotation has no place in a notebook: put it outside")
        if token.type != "inline":
            return token
        return _changed(token, children=[new for child in token.children or () for new in self._inline(child)])

    def place(self, name: str) -> list[Token]:
        """A named place, where something links to it."""
        return paragraph(as_it_is(f'<a name="{name}"></a>')) if (self.page, name) in self.book.linked else []

    def _directive(self, found: Directive) -> list[Token]:
        make = getattr(self, f"_{found.name.replace('-', '_')}_directive", None)
        if found.name in NOTES or found.name == "admonition":
            return self._note(found)
        if make is None:
            raise PageError(
                f"the directive {{{found.name}}} has no form in a notebook yet: give it one in book/_ext/to_notebook/prose.py"
            )
        result: list[Token] = make(found)
        return result

    def _note(self, found: Directive) -> list[Token]:
        title = found.argument if found.name == "admonition" else NOTES[found.name]
        inner = self.plain(f"**{title}**\n\n{found.content}")
        return [Token("blockquote_open", "blockquote", 1, markup=">"), *inner, Token("blockquote_close", "blockquote", -1)]

    def _math_directive(self, found: Directive) -> list[Token]:
        return [self._formula("\n".join(filter(None, (found.argument, found.content))), found.options.get("label", ""))]

    def _formula(self, content: str, label: str) -> Token:
        tag = f" \\tag{{{self.book.number(label)}}}" if label else ""
        return Token("math_block", "math", 0, content=f"\n{content.strip()}{tag}\n", block=True)

    def _figure_directive(self, found: Directive) -> list[Token]:
        alt = found.options.get("alt", "")
        return self.plain(f"![{alt}]({found.argument})\n\n{found.content}")

    def _image_directive(self, found: Directive) -> list[Token]:
        return self._figure_directive(found)

    def _table_directive(self, found: Directive) -> list[Token]:
        return self.plain(f"**{found.argument}**\n\n{found.content}" if found.argument else found.content)

    def _dropdown_directive(self, found: Directive) -> list[Token]:
        return folded(found.argument, self.plain(found.content))

    def _code_block_directive(self, found: Directive) -> list[Token]:
        return [listing(found.content, found.argument)]

    _code_directive = _code_block_directive

    def _definitions(self, block: list[Token]) -> list[Token]:
        """Terms with their definitions: each term in bold, what it means below."""
        result = []
        for token in block[1:-1]:
            if token.type == "dt_open":
                result.append(Token("paragraph_open", "p", 1, block=True))
            elif token.type == "dt_close":
                result.append(Token("paragraph_close", "p", -1, block=True))
            elif token.type == "inline" and result and result[-1].type == "paragraph_open" and result[-1].map is None:
                strong = [
                    Token("strong_open", "strong", 1, markup="**"),
                    *(token.children or ()),
                    Token("strong_close", "strong", -1, markup="**"),
                ]
                result.append(self._inner(_changed(token, children=strong)))
            elif token.type not in ("dd_open", "dd_close"):
                result.append(self._inner(token))
        return result

    # ---- inside a paragraph ----

    def _inline(self, token: Token) -> list[Token]:
        if token.type == "link_open":
            return [
                _changed(token, attrs={**token.attrs, "href": self.book.link(str(token.attrs["href"]), self.page, self.folder)})
            ]
        if token.type != "myst_role":
            return [token]
        name = token.meta["name"].partition(":")[0]
        make: Callable[[str], list[Token]] | None = getattr(self, f"_{name}_role", None)
        if make is None:
            raise PageError(
                f"the role {{{name}}}`{token.content}` has no form in a notebook yet: give it one in book/_ext/to_notebook/prose.py"
            )
        return make(token.content)

    def _eval_role(self, expression: str) -> list[Token]:
        expression = " ".join(expression.split())
        if self.values.left_to_reader(expression):
            self.asked.append(expression)
            return [text(f"{MARK}{len(self.asked) - 1}{CLOSE}")]
        try:
            value = self.values.text(expression)
        except RetrievalError as problem:
            raise PageError(f"{{eval}}`{expression}`: {problem}") from None
        except Exception as problem:  # whatever the page's own code raises
            raise PageError(f"{{eval}}`{expression}` raises {type(problem).__name__}: {problem}") from problem
        self.printed.append((expression, value))
        return [text(value)]

    def _given_role(self, content: str) -> list[Token]:
        return [text(content)]

    def _set_role(self, content: str) -> list[Token]:
        """The words, and in parentheses what they would set."""
        title, figure, patch = words_that_set(content)
        shown = self._eval_role(title[1:]) if title.startswith("=") else [text(title)]
        if figure not in self.book.explorers:
            raise PageError(f"{{set}}`{content}`: no explorer has the name {figure}")
        name, given = self.book.explorers[figure]
        start = named(name).state(given)
        changed = named(name).state({**start, **patch})
        code = ", ".join(f"{key}={literal(value)}" for key, value in changed.items() if value != start[key])
        return [*shown, text(" ("), Token("code_inline", "code", 0, content=code, markup="`"), text(")")] if code else shown

    def _eq_role(self, content: str) -> list[Token]:
        return [text(f"({self.book.number(content)})")]

    def _math_role(self, content: str) -> list[Token]:
        return [Token("math_inline", "math", 0, content=content, markup="$")]

    def _ref_role(self, content: str) -> list[Token]:
        title, label = _titled(content)
        if label not in self.book.targets:
            raise PageError(f"{{ref}}`{content}`: no page has the label {label}")
        target = self.book.targets[label]
        shown = title if title != label else target.heading or self.book.titles[target.page]
        return linked(shown, self.book.link(f"{target.page}.md#{label}", self.page, self.folder))

    def _doc_role(self, content: str) -> list[Token]:
        title, page = _titled(content)
        return linked(self.book.titles[page] if title == page else title, self.book.link(f"{page}.md", self.page, self.folder))

    def _cite_role(self, content: str) -> list[Token]:
        result: list[Token] = []
        for key in (k.strip() for k in content.split(",")):
            if key not in self.cited:
                self.cited.append(key)
            who, online = self.book.author_year(key), self.book.online(key)
            result += [text("; ")] if result else []
            result += linked(who, online) if online else [text(who)]
        return [as_it_is("["), *result, as_it_is("]")]


def literal(value: str | int | float | bool) -> str:
    """A value of an explorer's state as Python code."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _titled(content: str) -> tuple[str, str]:
    """The title and the target of "title <target>"; a target alone is its own title."""
    found = TITLED.fullmatch(content)
    return (found["title"], found["target"]) if found else (content, content)


def _changed(token: Token, **changes: object) -> Token:
    new = token.copy()
    for name, value in changes.items():
        setattr(new, name, value)
    return new
