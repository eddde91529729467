"""Exercises: `check("chapter/name", answer)` grades an answer with the library and says what probably went wrong.

An exercise's statement stands in the chapter's page; its definition, under the same id, in the file of this package with the
chapter's name. Right answers are computed when they are needed, never typed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from scalebook.errors import ExerciseError, unknown
from scalebook.exercises.answers import brief
from scalebook.exercises.fields import Field
from scalebook.exercises.grading import Exercise
from scalebook.exercises.verdicts import Verdict

__all__ = ["CHAPTERS", "Exercise", "Field", "Verdict", "chapter", "check", "get", "grade_text", "hint", "ids", "solution"]

CHAPTERS = ("notation", "rooflines", "tpus", "sharding", "transformers")


def chapter(name: str) -> tuple[Exercise, ...]:
    """The exercises of one chapter, easy first.

    >>> chapter("rooflines")[0].id
    'rooflines/dot-product'
    """
    if name not in CHAPTERS:
        raise unknown("chapter with exercises", name, CHAPTERS, ExerciseError)
    exercises: tuple[Exercise, ...] = importlib.import_module(f"scalebook.exercises.{name}").EXERCISES
    return exercises


def ids() -> tuple[str, ...]:
    """The id of every exercise, chapter by chapter."""
    return tuple(exercise.id for name in CHAPTERS for exercise in chapter(name))


def get(id: str) -> Exercise:
    """The exercise with an id.

    >>> get("rooflines/dot-product").expects
    'a number, in FLOPs per byte'

    Raises ExerciseError, naming the nearest ids, when there is none.
    """
    found = {exercise.id: exercise for name in CHAPTERS for exercise in chapter(name)}
    if not isinstance(id, str) or id not in found:
        raise unknown("exercise", id if isinstance(id, str) and len(id) <= 60 else brief(id), found, ExerciseError)
    return found[id]


def check(id: str, answer: object) -> Verdict:
    """Grade an answer: a number, a string with or without a unit, a dict or tuple for several parts, or a function.

    >>> check("rooflines/dot-product", "2 FLOPs/byte").diagnosis
    'That is bytes per FLOP: intensity is FLOPs divided by bytes.'
    >>> bool(check("rooflines/dot-product", 2 / 4))
    True

    An answer that cannot be read gets a verdict that says why. Raises ExerciseError only for an unknown id.
    """
    return get(id).grade(answer)


def grade_text(id: str, answer: str | Mapping[str, str]) -> Verdict:
    """Grade what was typed into an exercise's fields: one text, several by key, or `{"code": …}` with the text of a program.

    >>> grade_text("rooflines/critical-batch", {"v5p": "166", "h100": "295 rows"}).correct
    True

    A program is run, so call this only where the reader's own code may run. What cannot be read, or raises, gets a verdict
    that says why and where. Raises ExerciseError only for an unknown id.
    """
    return get(id).grade_text(answer)


def hint(id: str) -> str:
    """A hint to an exercise, which does not give it away."""
    return get(id).hint


def solution(id: str) -> str:
    """Runnable code that solves an exercise and checks itself."""
    return get(id).solution
