"""The grammar of the notation: from text to names with their places, and errors that point at the piece that cannot be read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from scalebook.errors import NotationError, unknown

_TOKEN = re.compile(
    r"(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9][A-Za-z0-9_]*)|(?P<mark>->|[\[\]{},*])|(?P<space>\s+)|(?P<other>.)", re.S
)
_LETTERS = re.compile(r"(?:[A-Za-z][0-9]*)+")
_CAPITALS = re.compile(r"(?:[A-Z][0-9]*)+")
_SLIPS = {
    **dict.fromkeys("→⇒⟶=-–>", "write the arrow as ->"),
    **dict.fromkeys("@×·∗⋅", "write the product as *"),
    **dict.fromkeys("()", "write dimensions in square brackets, A[I, J]"),
    ":": "write a pending sum as {U_X}",
    ";": "separate by commas",
    **dict.fromkeys("$\\^", "write plain text, A[I_X, J], not LaTeX"),
}


class Piece(NamedTuple):
    """A name in the text and where it begins."""

    text: str
    at: int


@dataclass(frozen=True)
class Term:
    """One array as written, each name with its place: `dims[i]` are the mesh axes of dimension `letters[i]`, major to minor."""

    array: Piece
    letters: tuple[Piece, ...]
    dims: tuple[tuple[Piece, ...], ...]
    pending: tuple[Piece, ...]


def run_of(text: str, names: Collection[str]) -> list[str]:
    """The names that a text is a run of, with an underscore between them or not, longest first; [] where it is none.

    >>> run_of("datamodel", ["data", "model"]), run_of("data_model", ["data", "model"]), run_of("aab", ["a", "aa"])
    (['data', 'model'], ['data', 'model'], [])
    """
    longest = sorted(names, key=len, reverse=True)
    follows: dict[int, str | None] = {len(text): None}  # the name to take at each place from which the end can be reached
    for at in range(len(text) - 1, -1, -1):
        for name in longest:
            end = at + len(name)
            if (
                name
                and text.startswith(name, at)
                and (end in follows or (text[end : end + 1] == "_" and _ends(follows, end + 1)))
            ):
                follows[at] = name
                break
    out, at = [], 0
    while at < len(text) and at in follows:
        name = follows[at] or ""
        out.append(name)
        at += len(name)
        at += at not in follows  # the underscore
    return out


def _ends(follows: dict[int, str | None], at: int) -> bool:
    return follows.get(at) is not None


# ---- saying where -------------------------------------------------------------------------------------------------------


def _shown(char: str) -> str:
    return char if char.isprintable() else " " if char.isspace() else "\ufffd"


def _width(char: str) -> int:
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1


def pointed(text: str, at: int, length: int = 1) -> str:
    """The text, cut to a line around the place, and under it carets below the piece.

    >>> print(pointed("A[I, ?]", 5))
      A[I, ?]
           ^
    """
    first = max(0, at - 70)
    last = min(len(text), at + max(length, 1) + 50)
    before = ("…" if first else "") + "".join(map(_shown, text[first:at]))
    piece = "".join(map(_shown, text[at : min(last, at + length)]))
    after = "".join(map(_shown, text[min(last, at + length) : last])) + ("…" if last < len(text) else "")
    carets = "^" * max(1, sum(map(_width, piece)))
    return f"  {before}{piece}{after}\n  {' ' * sum(map(_width, before))}{carets}"


def misread(message: str, text: str, at: int, length: int = 1) -> NotationError:
    """The error for a piece of notation: the message, then the text with the piece pointed at."""
    return NotationError(f"{message}\n{pointed(text, at, length)}")


# ---- tokens and grammar -------------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: str  # word, number, mark, other, end
    text: str
    at: int


def _tokens(text: str) -> Iterator[_Token]:
    for m in _TOKEN.finditer(text):
        if m.lastgroup != "space":
            yield _Token(str(m.lastgroup), m[0], m.start())
    yield _Token("end", "", len(text))


class Reader:
    """A cursor over the tokens of one text; each method reads one rule of the grammar."""

    def __init__(self, text: str, known: Collection[str] | None) -> None:
        if not isinstance(text, str):
            raise NotationError(f"the notation is text such as 'A[I_X, J]'; found {text!r} of type {type(text).__name__}")
        self.text, self.known, self.i = text, known, 0
        self.tokens = list(_tokens(text))

    @property
    def next(self) -> _Token:
        return self.tokens[self.i]

    def take(self) -> _Token:
        token = self.tokens[self.i]
        self.i = min(self.i + 1, len(self.tokens) - 1)
        return token

    def at(self, mark: str) -> bool:
        return self.next.kind == "mark" and self.next.text == mark

    def fail(self, rule: str, token: _Token | None = None) -> NotationError:
        token = token or self.next
        slip = _SLIPS.get(token.text) if token.kind == "other" else None
        if token.kind == "other" and not slip and not token.text.isascii():
            slip = "names are made of the letters A-Z, a-z and digits"
        hint = f"; {slip}" if slip else ""
        what = "the text ends too early," if token.kind == "end" else f"cannot read {token.text!r}"
        return misread(f"{what} at position {token.at}: {rule}{hint}.", self.text, token.at, len(token.text))

    def product(self) -> tuple[Term, Term, Term]:
        a = self.term()
        if self.at("->"):
            raise self.fail("a product has two operands before the arrow; write A[I, J] * B[J, K] -> C[I, K]")
        self.mark("*", f"after {a.array.text}[…] comes * and the second operand, as in A[I, J] * B[J, K] -> C[I, K]")
        b = self.term()
        if self.at("*"):
            raise self.fail("a product has two operands; name the product of the first two and multiply it by the third")
        self.mark("->", f"after {b.array.text}[…] comes -> and the result, as in A[I, J] * B[J, K] -> C[I, K]")
        c = self.term()
        self.end(f"the product ends with {c.array.text}[…]")
        return a, b, c

    def one(self) -> Term:
        term = self.term()
        if self.at("*") or self.at("->"):
            raise self.fail("one array was asked for, and this is a product; give products to einsum")
        self.end(f"the array ends with {term.array.text}[…]")
        return term

    def end(self, rule: str) -> None:
        if self.next.kind != "end":
            raise self.fail(rule)

    def mark(self, mark: str, rule: str) -> _Token:
        if not self.at(mark):
            raise self.fail(rule)
        return self.take()

    def term(self) -> Term:
        array = self.next
        if array.kind != "word" or array.text.startswith("_"):
            raise self.fail("an array begins with its name, a word such as A or W_in, then its dimensions, as in A[I_X, J]")
        self.take()
        opened = self.mark(
            "[", f"after the array's name {array.text} come its dimensions in brackets, as in {array.text}[I_X, J]"
        )
        letters: list[Piece] = []
        dims: list[tuple[Piece, ...]] = []
        while not self.at("]"):
            if letters:
                if self.next.kind == "end":
                    raise misread(
                        f"the bracket [ at position {opened.at} is never closed: write ] after the last dimension.",
                        self.text,
                        opened.at,
                    )
                split = self.next.kind == "word" and self.next.text.startswith("_")
                close = f"; write {letters[-1].text}{self.next.text} without a space" if split else ""
                self.mark(",", f"after dimension {letters[-1].text} comes a comma or ]{close}")
            letter, axes = self.dimension()
            letters.append(letter)
            dims.append(axes)
        self.take()
        pending = self.pending() if self.at("{") else ()
        return self.checked(Term(Piece(array.text, array.at), tuple(letters), tuple(dims), pending))

    def dimension(self) -> tuple[Piece, tuple[Piece, ...]]:
        token = self.next
        if token.text in (",", "]") or token.kind == "end":
            raise self.fail("a dimension is missing here; write a scalar as A[], without any")
        if token.kind != "word" or token.text.startswith("_"):
            raise self.fail("a dimension is a letter or a word, with the mesh axes that split it as a subscript: I or I_X")
        self.take()
        letter, under, subscript = token.text.partition("_")
        if under:
            return Piece(letter, token.at), self.axes(letter, Piece(subscript, token.at + len(letter) + 1))
        if self.at("{"):
            raise self.fail(f"a subscript begins with an underscore; write {letter}_X or {letter}_{{data,model}}")
        return Piece(letter, token.at), ()

    def pending(self) -> tuple[Piece, ...]:
        opened, token = self.take(), self.next
        if token.kind != "word" or not token.text.startswith("U_"):
            raise self.fail("after the dimensions only a pending sum can stand; write {U_X}")
        self.take()
        axes = self.axes("U", Piece(token.text[2:], token.at + 2))
        if self.next.kind == "end":
            raise misread(f"the brace {{ at position {opened.at} is never closed: write }} after the axes.", self.text, opened.at)
        self.mark("}", "a pending sum names its axes in one subscript; write {U_XY} or {U_{data,model}}")
        return axes

    def axes(self, owner: str, subscript: Piece) -> tuple[Piece, ...]:
        if subscript.text:
            return tuple(self.resolve(owner, subscript, braces=False))
        opened = self.next
        if not self.at("{"):
            raise self.fail(f"a mesh axis must follow {owner}_ at once; write {owner}_X, or {owner} alone when nothing splits it")
        self.take()
        names: list[Piece] = []
        while True:
            token = self.next
            if token.kind == "end":
                raise misread(
                    f"the brace {{ at position {opened.at} is never closed: write }} after the axes.", self.text, opened.at
                )
            if token.kind != "word" or token.text.startswith("_"):
                raise self.fail(f"braces hold mesh axes separated by commas, as in {owner}_{{data,model}}")
            self.take()
            names += self.resolve(owner, Piece(token.text, token.at), braces=True)
            if self.at("}"):
                self.take()
                return tuple(names)
            if self.next.kind != "end":
                self.mark(",", f"braces hold mesh axes separated by commas, as in {owner}_{{data,model}}")

    def resolve(self, owner: str, piece: Piece, *, braces: bool) -> list[Piece]:
        """The axes a subscript names: a whole axis name first, else one axis a letter."""
        text, known = piece.text, self.known
        if (braces or text[0].islower()) if known is None else text in known:
            return [piece]
        if known is None and not _CAPITALS.fullmatch(text):
            raise misread(
                f"cannot tell in {owner}_{text} at position {piece.at} whether {text!r} is one mesh axis or several: capitals "
                "are one axis each (X0Y is X0 and Y), a name begins with a small letter, anything else stands in braces; "
                f"write {owner}_{{{text}}}.",
                self.text, piece.at, len(text),
            )  # fmt: skip
        parts = (
            [Piece(m[0], piece.at + m.start()) for m in re.finditer("[A-Za-z][0-9]*", text)]
            if _LETTERS.fullmatch(text)
            else [piece]
        )
        if known is None or all(p.text in known for p in parts):
            return parts
        strange = [p for p in parts if p.text not in known] if any(p.text in known for p in parts) else [piece]
        first = strange[0]
        joined = run_of(text, known)
        hint = f" Several axes stand in braces: write {owner}_{{{','.join(joined)}}}." if joined else ""
        message = (
            f"{unknown('mesh axis', first.text, known)}." if known else f"unknown mesh axis {first.text!r}: the mesh has no axes."
        )
        where = (
            f" In the subscript of {owner} at position {first.at}."
            if owner != "U"
            else f" In the pending sum at position {first.at}."
        )
        raise misread(message + where + hint, self.text, first.at, len(first.text))

    def checked(self, term: Term) -> Term:
        """The term, if no dimension and no mesh axis appears in it twice."""
        seen: set[str] = set()
        for p in term.letters:
            if p.text in seen:
                raise misread(
                    f"dimension {p.text} appears twice in {term.array.text}, again at position {p.at}: "
                    "each dimension has its own letter.",
                    self.text, p.at, len(p.text),
                )  # fmt: skip
            seen.add(p.text)
        owner: dict[str, str] = {}
        for name, axes in (*((p.text, d) for p, d in zip(term.letters, term.dims, strict=True)), ("U", term.pending)):
            for a in axes:
                if a.text in owner:
                    raise misread(self.twice(term, a, owner[a.text], name), self.text, a.at, len(a.text))
                owner[a.text] = name
        return term

    def twice(self, term: Term, axis: Piece, first: str, second: str) -> str:
        if second == "U" and first != "U":
            what = f"splits dimension {first} and has a sum pending"
            rule = "a sum can be pending only over axes that split no dimension"
        else:
            what = f"is used twice, for {first} and for {second}," if first != second else f"is used twice for {first}"
            rule = "an axis has one place in an array"
        return f"mesh axis {axis.text!r} {what} in {term.array.text}, again at position {axis.at}: {rule}."
