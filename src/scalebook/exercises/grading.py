"""Kinds of questions, and how an answer to each is judged. The right value is computed by the library when an answer comes in.

`Number` and `Choice` ask for one thing, `Parts` for several, `Function` for code, `Criterion` for any answer that does the job.
Every function of a definition takes the exercise's premises (`given`) as keywords, so that the same exercise can be asked again
with others: `exercise.variant(chip="v6e")`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from string import Template
from typing import Any, ClassVar, Protocol

from scalebook.errors import ExerciseError, unknown
from scalebook.exercises.answers import MAX_LENGTH, brief, dimension, example, read
from scalebook.exercises.fields import CODE, ONE, Field
from scalebook.exercises.programs import function
from scalebook.exercises.quantities import Quantity, describe
from scalebook.exercises.verdicts import Verdict, off_by, sentence
from scalebook.units import binary, digits, si

Given = Mapping[str, Any]


class Question(Protocol):
    """What a kind of question can do."""

    @property
    def variable(self) -> str:
        """The Python variable that holds the answer."""
        ...

    def grade(self, id: str, answer: object, given: Given) -> Verdict:
        """The verdict on an answer; raises ExerciseError when it cannot be read."""
        ...

    def expects(self) -> str:
        """What to answer, in words."""
        ...

    def fields(self) -> tuple[Field, ...]:
        """What there is to fill in."""
        ...


@dataclass(frozen=True)
class Wrong:
    """A known wrong answer: how one gets there, computed like the right one, and what to say to it."""

    value: Callable[..., Any]
    diagnosis: str


COUNTED = ("rows", "tokens")  # units of which there are whole numbers only
YOURS, OURS = 6, 4  # significant digits of a reader's value, and of the library's beside it


def shown(value: float, unit: str, n: int = OURS, *, capacity: bool = False) -> str:
    """A value with its unit, as verdicts print it; bytes of memory with binary prefixes.

    >>> shown(166.0, "rows"), shown(240.54, "rows"), shown(8191, "", YOURS)
    ('166\xa0rows', '240.5\xa0rows', '8,191')
    >>> shown(65536, "B"), shown(65536, "B", capacity=True)
    ('65.54\xa0kB', '64\xa0KiB')
    """
    if capacity:
        return binary(value, n)
    if unit == "s" and abs(value) >= 1000:
        return f"{digits(value, n)}\u00a0s"
    if unit in ("B", "s", "FLOPs", "FLOPs/s", "B/s"):
        return si(value, unit, n)
    noun = unit.removesuffix("s") if value == 1 and unit in COUNTED else unit
    return f"{digits(value, n)}\u00a0{noun}".rstrip("\u00a0")


# ---- one number ---------------------------------------------------------------------------------------------------------

_BINARY = (  # factors of a binary prefix taken for a decimal one
    (1024 / 1000, "KiB for kB? 1 KiB is 1,024 bytes, 1 kB is 1,000."),
    (1024**2 / 1000**2, "MiB for MB? 1 MiB is 1,024² bytes, 1 MB is 1,000²."),
    (1024**3 / 1000**3, "GiB for GB? 1 GiB is 1,024³ bytes, 1 GB is 1,000³."),
)
_DECIMAL = (
    (1e3, "a prefix? The factor is 1,000."),
    (1e6, "a prefix? The factor is a million."),
    (1e9, "a prefix? The factor is a thousand million."),
    (1e12, "a prefix? The factor is a million millions."),
)
_SAME = 0.002  # how near a ratio must come to such a factor


def slip(ratio: float, unit: str) -> str:
    """What a ratio yours ÷ right betrays about units, for when no known wrong answer explains it; "" when nothing.

    >>> slip(8, "B")
    'Is it bits for bytes? A byte has 8 bits.'
    >>> slip(8, "FLOPs/B"), slip(8, "rows")
    ('', '')

    Per bit there is an eighth of what there is per byte, so of FLOPs/B only an eighth points to bits.
    """
    over, _, under = unit.partition("/")
    if (over == "B" and _about(ratio, 8)) or ("B" in (over, under) and _about(ratio, 1 / 8)):
        return "Is it bits for bytes? A byte has 8 bits."
    for factor, diagnosis in (*(_BINARY if "B" in (over, under) else ()), *_DECIMAL):
        if _about(ratio, factor) or _about(ratio, 1 / factor):
            return f"Is it {diagnosis}"
    return ""


def _about(ratio: float, factor: float) -> bool:
    return abs(ratio / factor - 1) < _SAME


@dataclass(frozen=True)
class Number:
    """One number: `spec(**given)` in base `unit`, right within the relative `tolerance`.

    `unit` is one of units' base units ("s", "B", "FLOPs", "FLOPs/s", "B/s", "FLOPs/B"), something counted ("rows", "tokens"), or "". Of rows
    and tokens there are whole numbers only, so the two next to the exact value are right as well. Bytes that are a
    `capacity`, of memory rather than of traffic, are shown in KiB, MiB and GiB.
    """

    variable: ClassVar[str] = "answer"

    spec: Callable[..., Any]
    unit: str = ""
    tolerance: float = 0.01
    wrong: tuple[Wrong, ...] = ()
    capacity: bool = False

    def expects(self) -> str:
        """What to answer, in words."""
        words = {"": "a number", "FLOPs/B": "a number, in FLOPs per byte", "s": "a time, in seconds", "B": "a number of bytes"}
        return words.get(self.unit, f"a number, in {self.unit}")

    def fields(self) -> tuple[Field, ...]:
        """One field for text, with its unit."""
        words = {"FLOPs/B": "FLOPs per byte", "s": "seconds", "B": "bytes"}
        return (Field(ONE, "Answer", "text", unit=words.get(self.unit, self.unit), example=example(self.unit)),)

    def near(self, value: float, target: float) -> bool:
        """Whether a value is within the tolerance of a target, or a whole number of rows or tokens next to it."""
        exact = round(target, 9)
        if self.unit in COUNTED and value > 0 and math.isfinite(target) and value in (math.floor(exact), math.ceil(exact)):
            return True
        return abs(value - target) <= self.tolerance * abs(target)

    def grade(self, id: str, answer: object, given: Given) -> Verdict:
        """Right, or size and direction of the error and its likely cause."""
        quantity: Quantity = read(answer, self.unit)
        wanted = dimension(self.unit)
        if not quantity.fits(wanted):
            found = "something counted" if quantity.dims == (0, 0, 0) else describe(quantity.dims)
            name = describe(wanted) + (f" ({self.unit})" if self.unit and self.unit != describe(wanted) else "")
            return Verdict(id, "unit", f"the answer is in {found}; the question asks for {name}.")
        value, target = float(quantity.value), float(self.spec(**given))
        ratio = value / target if target else None
        yours = self._told(value, YOURS)
        if self.near(value, target):
            return Verdict(id, "right", f"right: {yours}; the library computes {self._told(target)}.", ratio=ratio)
        size = off_by(ratio) if ratio is not None else "it should be zero"
        return Verdict(
            id,
            "wrong",
            f"{yours} is not right: {size}.",
            diagnosis=self.diagnose(value, target, given),
            ratio=ratio,
        )

    def _told(self, value: float, *digits: int) -> str:
        """A value in words: with all its digits where the answer has to be exact and is a whole number without a unit."""
        if self.tolerance < 1e-3 and not self.unit and value.is_integer() and abs(value) < 2**53:
            return f"{int(value):,}"
        return shown(value, self.unit, *digits, capacity=self.capacity)

    def diagnose(self, value: float, target: float, given: Given) -> str:
        """The nearest known wrong answer's diagnosis if within the tolerance, else what the factor betrays, else nothing."""
        known = [(w, float(w.value(**given))) for w in self.wrong]
        hits = [(abs(value - v), w.diagnosis) for w, v in known if self.near(value, v)]
        if hits:
            return min(hits)[1]
        if not target or not value:
            return ""
        ratio = value / target
        if self.unit == "FLOPs/B" and self.near(1 / value, target):
            return "Is it upside down? Intensity is FLOPs divided by bytes."
        if abs(ratio - 1) >= 4 * self.tolerance or slip(ratio, self.unit):
            return slip(ratio, self.unit)
        return "Close: carry more digits, or look for a small term left out."


# ---- one of several -----------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """A word without case, spaces, hyphens and underscores."""
    return re.sub(r"[\s_\-]+", "", text).lower()


@dataclass(frozen=True)
class Choice:
    """One of several options, given by its name or a synonym; `spec(**given)` names the right one.

    `options` maps each option to its synonyms; `read`, when given, turns an answer into an option itself and raises a
    ScalebookError where it cannot (so a chip can be named as anywhere in the library). `wrong` maps options to diagnoses;
    `why_not(option, **given)` computes what there is to say to any wrong option.
    """

    variable: ClassVar[str] = "answer"

    spec: Callable[..., str]
    options: Callable[[], Mapping[str, tuple[str, ...]]]
    wrong: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[Any], str] | None = None
    why_not: Callable[..., str] | None = None

    def expects(self) -> str:
        """What to answer, in words."""
        return "one of: " + ", ".join(self.options())

    def fields(self) -> tuple[Field, ...]:
        """One field with the options."""
        return (Field(ONE, "Answer", "choice", options=tuple(self.options())),)

    def option(self, answer: object) -> str:
        """The option an answer names."""
        options = self.options()
        if isinstance(answer, str) and len(answer) > MAX_LENGTH:
            raise ExerciseError(f"the answer has {len(answer):,} characters; answer with {self.expects()}")
        if isinstance(answer, str) and not answer.strip():
            raise ExerciseError(f"the answer is empty; answer with {self.expects()}")
        if self.read is not None:
            try:
                name = self.read(answer)
            except ValueError as e:  # a ScalebookError, or a value that cannot even be shown
                raise ExerciseError(f"{e}. Answer with {self.expects()}") from None
        elif not isinstance(answer, str):
            raise ExerciseError(f"the answer is of type {type(answer).__name__}; answer with {self.expects()}")
        else:
            names = {plain(n): option for option, others in options.items() for n in (option, *others)}
            name = names.get(plain(answer), answer)
        if name not in options:
            raise unknown("answer", answer, options, ExerciseError)
        return name

    def grade(self, id: str, answer: object, given: Given) -> Verdict:
        """Right, or the diagnosis of that option."""
        option = self.option(answer)
        if option == self.spec(**given):
            return Verdict(id, "right", f"right: {option}.")
        computed = self.why_not(option, **given) if self.why_not is not None else ""
        diagnosis = " ".join(filter(None, (self.wrong.get(option, ""), computed)))
        return Verdict(id, "wrong", f"it is not {option}.", diagnosis=diagnosis)


# ---- an exercise --------------------------------------------------------------------------------------------------------


_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "„": "“"}


def unquoted(text: Any) -> Any:
    """A typed text without a pair of quotes around it, since Python's way of writing an answer is copied into a field as well.

    >>> unquoted('"A[I, J_X]"'), unquoted("A[I, J_X]"), unquoted('"')
    ('A[I, J_X]', 'A[I, J_X]', '"')
    """
    bare = text.strip() if isinstance(text, str) else ""
    return bare[1:-1] if len(bare) > 1 and _QUOTES.get(bare[0]) == bare[-1] else text


def literal(value: object) -> str:
    """A premise as a solution writes it: 1.2e12, not 1200000000000.0.

    >>> literal(1.2e12), literal(4096), literal("v5e")
    ('1.2e12', '4096', "'v5e'")
    """
    if isinstance(value, float) and abs(value) >= 1e6:
        mantissa, _, exponent = f"{value:.15e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return repr(value)


@dataclass(frozen=True)
class Exercise:
    """One exercise: its id "chapter/name", the premises it gives, how it is judged, a hint, and a solution as a template of code.

    The statement stands in the chapter's page. In the solution `$name` becomes the premise of that name; it leaves `answer`, or the
    function to write. `why` says in one to three sentences what the answer means, as markdown; as a function of the premises where
    it names numbers, so that none is typed.
    """

    id: str
    title: str
    question: Question
    hint: str
    code: str
    given: Mapping[str, Any] = field(default_factory=dict)
    why: str | Callable[..., str] = ""

    @property
    def chapter(self) -> str:
        """The first half of the id."""
        return self.id.partition("/")[0]

    @property
    def expects(self) -> str:
        """What to answer, in words."""
        return self.question.expects()

    @property
    def fields(self) -> tuple[Field, ...]:
        """What there is to fill in on a page: one field or several, by key.

        >>> from scalebook import exercises
        >>> [(field.key, field.caption) for field in exercises.get("rooflines/time-bounds").fields]
        [('lower', 'lower, in seconds'), ('upper', 'upper, in seconds')]
        """
        return self.question.fields()

    @property
    def call(self) -> str:
        """The line that checks an answer in Python."""
        return f'sb.check("{self.id}", {self.question.variable})'

    @property
    def meaning(self) -> str:
        """What the answer means, in markdown, its numbers computed: what `why` says with these premises."""
        return self.why if isinstance(self.why, str) else self.why(**self.given)

    @property
    def solution(self) -> str:
        """Runnable code that computes the answer and checks it."""
        body = Template(self.code.strip("\n")).substitute({name: literal(value) for name, value in self.given.items()})
        return f"import scalebook as sb\n\n{body}\n{self.call}\n"

    def grade(self, answer: object) -> Verdict:
        """The verdict on an answer; what cannot be read gets a verdict that says why, never an exception."""
        return self._verdict(lambda: answer)

    def grade_text(self, answer: str | Mapping[str, str]) -> Verdict:
        """The verdict on what was typed into the fields: the text of the only one, or several texts by key; code is run."""
        return self._verdict(lambda: self._typed(answer))

    def _typed(self, answer: str | Mapping[str, str]) -> object:
        fields = self.fields
        if len(fields) > 1:
            return {key: unquoted(text) for key, text in answer.items()} if isinstance(answer, Mapping) else answer
        (key, kind) = fields[0].key, fields[0].kind
        if isinstance(answer, Mapping):
            if list(answer) != [key]:
                raise ExerciseError(f"the answer has the parts {brief(list(answer))}; this exercise has one field, {key!r}")
            answer = answer[key]
        return function(answer, self.question.variable, self.expects) if kind == CODE else unquoted(answer)

    def _verdict(self, answer: Callable[[], object]) -> Verdict:
        try:
            return self.question.grade(self.id, answer(), self.given)
        except ExerciseError as e:
            message, _, position = str(e).partition("\n")  # two lines more point at the piece that cannot be read
            message = sentence(message if len(message) <= 900 else message[:900] + "…")
            return Verdict(self.id, "unreadable", message, diagnosis=position)

    def variant(self, **given: Any) -> Exercise:
        """The same exercise with other premises.

        >>> from scalebook import exercises
        >>> exercises.get("rooflines/int8-weights").variant(chip="v6e").given["chip"]
        'v6e'
        """
        for name in given:
            if name not in self.given:
                raise unknown(f"premise of {self.id}", name, self.given, ExerciseError)
        return replace(self, given={**self.given, **given})
