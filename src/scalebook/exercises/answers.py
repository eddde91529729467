"""Read an answer as a reader writes it: "3.2e9", "3.2 GB", "4 GiB", "1/8", "2*8192*28672", "819 GB/s", "12%".

Nothing is evaluated by Python: a small grammar of numbers, + − × ÷ **, parentheses and units is read token by token, and every
intermediate result is bounded, so that "9**9**9" is refused at once.
"""

from __future__ import annotations

import re
import reprlib
from fractions import Fraction

from scalebook.errors import ExerciseError
from scalebook.exercises.quantities import PLAIN, Dims, Quantity, bounded, finite, over, plus, power, times, unit

MAX_LENGTH = 200  # characters of an answer
_MAX_DEPTH = 25  # parentheses within parentheses
_MAX_EXPONENT = 400  # of "1e400"
_EXAMPLE = {
    "B": "320 KiB",
    "s": "1.5 ms",
    "FLOPs/s": "312 TFLOPs/s",
    "B/s": "819 GB/s",
    "FLOPs/B": "2 FLOPs/byte",
    "FLOPs": "3 TFLOPs",
    "": "12%",
    "rows": "100 rows",
    "tokens": "100 tokens",
}


def dimension(unit: str) -> Dims:
    """The dimension of a unit as exercises state it: "s", "B", "FLOPs/B", "rows", or "" for a plain number.

    >>> dimension("FLOPs/s")
    (1, 0, -1)
    """
    return _Parser(unit).whole().dims if unit else PLAIN


def example(unit: str) -> str:
    """A number in a unit, as one may write it.

    >>> example("s"), example("B"), example("")
    ('1.5 ms', '320 KiB', '1,200 / 7')
    """
    return _EXAMPLE[unit] if unit and unit in _EXAMPLE else "1,200 / 7"


def read(answer: object, unit: str = "") -> Quantity:
    """The quantity that an answer states: a string, or a number of any kind.

    >>> read("320 KiB", "B").value, read("1/8").value, read("819 GB/s", "B/s").value
    (Fraction(327680, 1), Fraction(1, 8), Fraction(819000000000, 1))

    Where two readings are possible ("1/8 GB" as (1/8) GB or 1/(8 GB), "TFLOPS" as an amount or a rate), the one in the question's
    unit is taken. Raises ExerciseError for what is not a finite number.
    """
    try:
        quantity = _read(answer, unit)
    except ExerciseError:
        raise
    except BaseException:  # a foreign object's own failure, of whatever kind
        if type(answer) in _PLAIN:
            raise
        raise _no_number(answer, unit) from None
    size = abs(float(quantity.value))
    if quantity.value != 0 and not 1e-100 <= size <= 1e100:
        raise ExerciseError(f"the answer is too {'large' if size > 1 else 'small'} to be meant")
    return quantity


_PLAIN = (str, int, float, complex, bool, Fraction, type(None))  # types that do nothing of their own


def kind_of(value: object) -> str:
    """The name of a value's type, whatever that type says of itself.

    >>> kind_of(3)
    'int'
    """
    name: str = type.__dict__["__name__"].__get__(type(value))
    return name if len(name) <= 60 else name[:59] + "…"


def _no_number(answer: object, unit: str) -> ExerciseError:
    return ExerciseError(f"the answer is of type {kind_of(answer)}; this question wants a number{_in(unit)}")


def _read(answer: object, unit: str) -> Quantity:
    if isinstance(answer, str):
        return _read_text(str.__str__(answer), unit)
    if answer is None or isinstance(answer, (bool, complex)):
        raise ExerciseError(f"the answer is {brief(answer)}; this question wants a number{_in(unit)}")
    if isinstance(answer, (int, Fraction)):
        return Quantity(bounded(Fraction(answer)))
    try:
        if isinstance(answer, (bytes, bytearray)):  # float() would read its digits
            raise TypeError
        value = float(answer)  # type: ignore[arg-type]  # anything that says it is a number: numpy, jax, Decimal
    except BaseException:  # a foreign object's own failure, told below
        raise _no_number(answer, unit) from None
    return Quantity(finite(value))


def brief(value: object) -> str:
    """A value as it is written, cut to 40 characters; its type where it cannot be written (an int of 5,000 digits).

    >>> brief([0] * 10**7)
    '[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,…'
    >>> brief({n: n for n in range(1000)})
    'a dict of 1,000 entries'

    Of a large one no more is written than is shown.
    """
    try:
        if type(value) in (dict, set, frozenset) and len(value) > 40:  # type: ignore[arg-type]
            return f"a {kind_of(value)} of {len(value):,} entries"  # type: ignore[arg-type]
        if type(value) in (bytes, bytearray):
            value = value[:40]  # type: ignore[index]
        text = _WRITER.repr(value)
    except BaseException:  # a foreign object's own failure
        return f"of type {kind_of(value)}"
    return text if len(text) <= 40 else text[:39] + "…"


_WRITER = reprlib.Repr()  # as repr, but for what lies beyond 40 characters or more than 4 deep
_WRITER.maxlevel, _WRITER.maxlist, _WRITER.maxtuple, _WRITER.maxset, _WRITER.maxfrozenset, _WRITER.maxdict = 4, 14, 14, 14, 14, 14
_WRITER.maxstring = _WRITER.maxlong = _WRITER.maxother = 200


def _in(unit: str) -> str:
    return f" in {unit}" if unit else ""


def _read_text(text: str, unit: str) -> Quantity:
    shown = text if len(text) <= 60 else text[:57] + "…"
    example = (
        f"write a number{_in(unit)}, such as 3.2e9, 1/8, 2*8192*28672 or one with a unit like {_EXAMPLE.get(unit, '320 KiB')}"
    )
    if len(text) > MAX_LENGTH:
        raise ExerciseError(f"the answer has {len(text):,} characters; at most {MAX_LENGTH} are read; {example}")
    if not text.strip():
        raise ExerciseError(f"the answer is empty; {example}")
    wanted = dimension(unit)
    try:
        first = _Parser(text).whole()
    except ExerciseError as e:
        raise ExerciseError(f"cannot read the answer {shown!r}: {e}; {example}") from None
    if first.fits(wanted):
        return first
    for tight, rate in ((True, True), (False, False), (False, True)):
        try:
            other = _Parser(text, tight=tight, rate=rate).whole()
        except ExerciseError:
            continue
        if other.fits(wanted):
            return other
    return first


# ---- the grammar --------------------------------------------------------------------------------------------------------
# sum = term (± term)* ; term = signed ((× | ÷) signed)* ; signed = ± signed | power [%] [units] ; power = atom [** signed power]
# units = unit ((× | ÷) unit)*, as far as names follow: "2 GB / 819 GB/s" is (2 GB) ÷ (819 GB/s)

_SPACES = "\u00a0\u2009\u202f"  # no-break, thin, narrow no-break
_DIGITS = rf"[0-9]{{1,3}}(?P<sep>[,_' {_SPACES}])[0-9]{{3}}(?:(?P=sep)[0-9]{{3}})*(?![0-9])|[0-9][0-9_]*"
_TEN_TO = r"[eE][+\-\u2212]?[0-9]+"
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>(?:(?:{_DIGITS})(?:\.[0-9]*)?|\.[0-9]+)(?:{_TEN_TO})?)"
    r"|(?P<name>[A-Za-zµμ]+)|(?P<op>\*\*|[-+*/^()%×·÷\u2212]))"
)
_SAME_OP = {"^": "**", "×": "*", "·": "*", "÷": "/", "\u2212": "-", "per": "/"}


def _number(text: str) -> Quantity:
    plain = re.sub(f"[,_' {_SPACES}]", "", text).replace("\u2212", "-").lower()
    mantissa, _, exponent = plain.partition("e")
    if exponent and (len(exponent) > 5 or abs(int(exponent)) > _MAX_EXPONENT):
        raise ExerciseError(f"the exponent in {text[:20]!r} is too large")
    return Quantity(bounded(Fraction(mantissa.rstrip(".")) * Fraction(10) ** int(exponent or 0)))


class _Parser:
    """One reading of one text. `tight`: units belong to the number before them; `rate`: FLOPS means FLOPs per second."""

    def __init__(self, text: str, *, tight: bool = True, rate: bool = False) -> None:
        self.tight, self.rate, self.depth, self.at = tight, rate, 0, 0
        self.tokens: list[tuple[str, str]] = []  # (kind, text): number, name or op
        position, text = 0, text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                piece = text[position:].lstrip()[:1]
                why = (
                    "a comma only groups thousands, the decimal sign is a point"
                    if piece == ","
                    else "only numbers, + - * / ** ( ) % and units"
                )
                raise ExerciseError(f"{piece!r} cannot stand there ({why})")
            kind = match.lastgroup if match.lastgroup != "sep" else "number"
            piece = match.group(kind or "op")
            self.tokens.append(("op", _SAME_OP[piece]) if piece in _SAME_OP else (kind or "op", piece))
            position = match.end()

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ("end", "")

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][1]

    def whole(self) -> Quantity:
        value = self.sum()
        if self.peek()[0] != "end":
            raise ExerciseError(f"{self.peek()[1][:20]!r} cannot stand there")
        return value

    def sum(self) -> Quantity:
        value = self.term()
        while self.peek() in (("op", "+"), ("op", "-")):
            sign = 1 if self.take() == "+" else -1
            value = plus(value, self.term(), sign)
        return value

    def term(self) -> Quantity:
        value = self.signed()
        while True:
            if self.peek() in (("op", "*"), ("op", "/")):
                value = times(value, self.signed()) if self.take() == "*" else over(value, self.signed())
            elif self.peek()[0] == "name" and not self.tight:
                value = times(value, self.power())
            else:
                return value

    def signed(self) -> Quantity:
        sign = 1
        while self.peek() in (("op", "+"), ("op", "-")):
            sign *= 1 if self.take() == "+" else -1
        value = self.power()
        while self.peek() == ("op", "%"):
            self.take()
            value = over(value, Quantity(Fraction(100)))
        if self.tight and self.peek()[0] == "name":
            value = times(value, self.units())
        return Quantity(sign * value.value, value.dims, value.bare)

    def units(self) -> Quantity:
        value = self.power()
        while self.peek()[0] == "name" or (self.peek() in (("op", "*"), ("op", "/")) and self.peek(1)[0] == "name"):
            divide = self.peek()[0] == "op" and self.take() == "/"
            value = over(value, self.power()) if divide else times(value, self.power())
        return value

    def power(self) -> Quantity:
        base = self.atom()
        if self.peek() != ("op", "**"):
            return base
        self.take()
        sign = 1
        while self.peek() in (("op", "+"), ("op", "-")):
            sign *= 1 if self.take() == "+" else -1
        self.depth += 1
        self.check_depth()
        exponent = self.power()
        self.depth -= 1
        return power(base, Quantity(sign * exponent.value, exponent.dims, exponent.bare))

    def atom(self) -> Quantity:
        kind, text = self.peek()
        if kind == "number":
            return _number(self.take())
        if kind == "name":
            return unit(self.take(), rate=self.rate)
        if (kind, text) != ("op", "("):
            raise ExerciseError("it ends too early" if kind == "end" else f"{text[:20]!r} cannot stand there")
        self.take()
        self.depth += 1
        self.check_depth()
        value = self.sum()
        if self.peek() != ("op", ")"):
            raise ExerciseError("a parenthesis is not closed")
        self.take()
        self.depth -= 1
        return value

    def check_depth(self) -> None:
        if self.depth > _MAX_DEPTH:
            raise ExerciseError(f"it is nested more than {_MAX_DEPTH} deep")
