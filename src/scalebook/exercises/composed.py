"""Questions with more than one value: several parts, a function to write, or any answer that does the job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

from scalebook.errors import ExerciseError, unknown
from scalebook.exercises.answers import MAX_LENGTH, brief, kind_of, read
from scalebook.exercises.fields import CODE, Field
from scalebook.exercises.grading import YOURS, Choice, Given, Number, plain, shown
from scalebook.exercises.kept import run
from scalebook.exercises.programs import told
from scalebook.exercises.verdicts import Verdict, off_by, sentence

_BETWEEN = re.compile(r"[;\n]|,\s+|,(?=\s*[A-Za-z_]\w*\s*[=:])")  # between parts in one line of text; "1,000" stays whole


def split(answer: object, names: Sequence[str]) -> dict[str, object]:
    """An answer to several parts, by name: from a dict, a sequence in order, or text with or without names.

    >>> split("lower = 2 ms; upper = 3 ms", ["lower", "upper"])
    {'lower': '2 ms', 'upper': '3 ms'}
    >>> split("1,000, 2,000", ["lower", "upper"])
    {'lower': '1,000', 'upper': '2,000'}

    Raises ExerciseError for a part that is missing, unknown or answered twice.
    """
    example = "{" + ", ".join(f'"{name}": …' for name in names) + "}"
    text = "; ".join(f"{name} = …" for name in names)
    rule = f"answer with a dict {example}, a tuple of {len(names)} in this order, or text like '{text}'"
    by_name = {plain(name): name for name in names}
    if isinstance(answer, str):
        if len(answer) > MAX_LENGTH * len(names):
            raise ExerciseError(f"the answer has {len(answer):,} characters; {rule}")
        pieces = [piece.strip() for piece in _BETWEEN.split(answer.strip()) if piece.strip()]
        pairs = [re.split(r"[=:]", piece, maxsplit=1) for piece in pieces]
        if not pairs or any(len(pair) < 2 for pair in pairs):
            return _in_order(pieces, names, rule)
        if len({plain(key) for key, _ in pairs}) < len(pairs):
            raise ExerciseError(f"a part is answered twice in {answer[:60]!r}; {rule}")
        answer = {key.strip(): value.strip() for key, value in pairs}
    if isinstance(answer, Mapping):
        strange = [key for key in answer if not isinstance(key, str) or plain(key) not in by_name]
        if strange:
            key = strange[0]
            raise unknown("part", key if isinstance(key, str) and len(key) <= 40 else brief(key), names, ExerciseError)
        found = {by_name[plain(key)]: value for key, value in answer.items()}
        missing = [name for name in names if name not in found]
        if missing:
            raise ExerciseError(f"no answer to {', '.join(missing)}; {rule}")
        return {name: found[name] for name in names}
    if isinstance(answer, (set, frozenset, bytes)) or not hasattr(type(answer), "__iter__"):
        raise ExerciseError(f"the answer is of type {kind_of(answer)}; {rule}")
    try:
        values = list(islice(iter(answer), len(names) + 1))  # type: ignore[call-overload]
    except BaseException:  # a foreign object's own failure, such as a 0-d array
        raise ExerciseError(f"the answer, of type {kind_of(answer)}, has no parts; {rule}") from None
    return _in_order(values, names, rule)


def _in_order(values: Sequence[object], names: Sequence[str], rule: str) -> dict[str, object]:
    if len(values) == len(names):
        return dict(zip(names, values, strict=True))
    few = "too many answers" if len(values) > len(names) else f"{len(values)} answered"
    raise ExerciseError(f"{few} of {len(names)} parts; {rule}")


@dataclass(frozen=True)
class Parts:
    """Several named values at once, answered as a dict, a sequence in order, or text: "lower = 2 ms; upper = 3 ms"."""

    variable: ClassVar[str] = "answer"
    parts: Mapping[str, Number | Choice]

    def expects(self) -> str:
        """What to answer, in words."""
        return "; ".join(f"{name}: {part.expects()}" for name, part in self.parts.items())

    def fields(self) -> tuple[Field, ...]:
        """A field for each part, called by its name."""
        return tuple(replace(field, key=name, label=name) for name, part in self.parts.items() for field in part.fields())

    def grade(self, id: str, answer: object, given: Given) -> Verdict:
        """Right when every part is; the rows say which are."""
        verdicts: dict[str, Verdict] = {}
        unread: list[str] = []
        for name, value in split(answer, list(self.parts)).items():
            try:
                verdicts[name] = self.parts[name].grade(id, value, given)
            except ExerciseError as e:
                unread.append(f"{name}: {e}")
        if len(unread) == 1:
            raise ExerciseError(unread[0])
        if unread:  # the lines that point at a place are of one part, so they go
            raise ExerciseError(" ".join(sentence(why.partition("\n")[0]) for why in unread))
        right = [name for name, v in verdicts.items() if v.correct]
        rows = tuple((name, "✓" if v.correct else "✗", v.message) for name, v in verdicts.items())
        if len(right) == len(verdicts):
            return Verdict(id, "right", "right in all parts.", rows=rows)
        why = "\n".join(f"{name}: {v.diagnosis}" for name, v in verdicts.items() if v.diagnosis)
        return Verdict(id, "wrong", f"{len(right)} of {len(verdicts)} parts right.", diagnosis=why, rows=rows)


# ---- code ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WrongFunction:
    """A function that readers write by mistake, and what to say to it."""

    function: Callable[..., Any]
    diagnosis: str


@dataclass(frozen=True)
class Function:
    """A function to write: called with each of `cases` and compared with `spec`; `signature` is how the page names it."""

    signature: str
    spec: Callable[..., Any]
    cases: tuple[tuple[Any, ...], ...]
    unit: str = ""
    tolerance: float = 1e-6
    wrong: tuple[WrongFunction, ...] = ()

    @property
    def variable(self) -> str:
        """The function's name."""
        return self.signature.partition("(")[0]

    def expects(self) -> str:
        """What to answer, in words."""
        return f"a Python function {self.signature}"

    def fields(self) -> tuple[Field, ...]:
        """One field for code, which begins with the signature."""
        return (Field(CODE, "Your function", CODE, example=f"def {self.signature}:\n    return "),)

    def same(self, yours: object, spec: float) -> bool:
        """Whether one result agrees with the specified one."""
        try:
            value = float(read(yours, self.unit).value)
        except ExerciseError:
            return False
        return abs(value - spec) <= self.tolerance * abs(spec)

    def grade(self, id: str, answer: object, given: Given) -> Verdict:
        """Right when every case agrees; otherwise the first failing input, with your result beside the specified one."""
        if not callable(answer):
            what = "text" if isinstance(answer, str) else f"of type {kind_of(answer)}"
            raise ExerciseError(
                f"the answer is {what}; this exercise wants {self.expects()}: define it, then pass the function itself"
            )
        results: list[object] = []
        for number, case in enumerate(self.cases):
            spec = float(self.spec(*case))
            asked = f"{self.variable}({', '.join(f'{v:g}' if isinstance(v, (int, float)) else brief(v) for v in case)})"
            try:
                yours = run(answer, *case)
            except BaseException as e:  # the reader's own code may raise anything
                why = f"{asked} raises {told(e)}"
                return Verdict(
                    id, "wrong", f"right on {number} of {len(self.cases)} inputs, then {why}", header=("input",), rows=((asked,),)
                )
            results.append(yours)
            if self.same(yours, spec):
                continue
            return self.failed(id, asked, yours, spec, self.diagnose(answer, results, number))
        return Verdict(id, "right", f"right on all {len(self.cases)} inputs.", ratio=1.0)

    def failed(self, id: str, asked: str, yours: object, spec: float, diagnosis: str) -> Verdict:
        """The verdict on the first input that disagrees."""
        ratio: float | None = None
        if yours is None:
            size, mine = "it returns None: is a `return` missing?", "None"
        else:
            try:
                value = float(read(yours, self.unit).value)
                ratio = value / spec if spec else None
                size, mine = (off_by(ratio) if ratio is not None else "it should be zero"), shown(value, self.unit, YOURS)
            except ExerciseError as e:
                size, mine = str(e), brief(yours)
        row = (asked, mine, shown(spec, self.unit, YOURS))
        message = f"the first input that fails is {asked}: {sentence(size)}"
        return Verdict(id, "wrong", message, diagnosis=diagnosis, ratio=ratio, header=("input", "yours", "spec"), rows=(row,))

    def diagnose(self, answer: Callable[..., Any], results: list[object], failed: int) -> str:
        """The diagnosis of the known wrong function that agrees with the reader's on every case."""
        for case in self.cases[failed + 1 :]:
            try:
                results.append(run(answer, *case))
            except BaseException:
                return ""
        for wrong in self.wrong:
            if all(self.same(r, float(wrong.function(*case))) for r, case in zip(results, self.cases, strict=True)):
                return wrong.diagnosis
        return ""


# ---- open ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """How well a proposal does: whether it meets every condition, what to say, and a value to compare with the best known."""

    passed: bool
    message: str
    value: float = 0.0
    rows: tuple[tuple[str, ...], ...] = ()
    diagnosis: str = ""


@dataclass(frozen=True)
class Criterion:
    """An open question: any answer that meets the conditions is right, and its score stands beside the best known one.

    `judge(answer, **given)` reads the proposal (raising ExerciseError) and scores it; `best(**given)` is the best score known;
    `asks` are the fields of a proposal.
    """

    variable: ClassVar[str] = "answer"
    wants: str
    asks: tuple[Field, ...]
    judge: Callable[..., Score]
    best: Callable[..., float]
    header: tuple[str, ...] = ("", "yours", "condition")

    def expects(self) -> str:
        """What to answer, in words."""
        return self.wants

    def fields(self) -> tuple[Field, ...]:
        """What a proposal consists of."""
        return self.asks

    def grade(self, id: str, answer: object, given: Given) -> Verdict:
        """Right when every condition holds."""
        score = self.judge(answer, **given)
        ratio = score.value / self.best(**given) if score.passed else None
        message = score.message + (f" Your score is {100 * ratio:.0f}% of the best known." if ratio is not None else "")
        status = "right" if score.passed else "wrong"
        return Verdict(id, status, message, diagnosis=score.diagnosis, ratio=ratio, header=self.header, rows=score.rows)
