"""What a reader would type into the fields of an exercise: right answers from the library's own solutions, wrong ones, and rubbish."""

from __future__ import annotations

from typing import Any

import scalebook
from scalebook.exercises import Exercise
from scalebook.exercises.fields import CODE

Typed = dict[str, str]  # a text for each field, by key
UNREADABLE_CODE = "def answer(:\n    return 1"


def solved(exercise: Exercise) -> tuple[object, str]:
    """What the solution leaves as the answer, and the solution's code without the line that checks it."""
    code = exercise.solution.removesuffix(f"{exercise.call}\n")
    space: dict[str, Any] = {"sb": scalebook}
    exec(code, space)
    return space[exercise.question.variable], code


def right(exercise: Exercise) -> Typed:
    """The solution's answer as text."""
    answer, code = solved(exercise)
    if exercise.fields[0].kind == CODE:
        return {CODE: code}
    if isinstance(answer, dict):
        return {field.key: str(answer[field.key]) for field in exercise.fields}
    return {exercise.fields[0].key: str(answer)}


def wrong(exercise: Exercise) -> Typed:
    """Readable answers that are not right: the first field that can be is changed, the others are as they should be."""
    texts = right(exercise)
    for field in exercise.fields:
        if field.kind == CODE:
            tries = [f"def {exercise.question.variable}(*given):\n    return -1\n"]
        elif field.kind == "choice":
            tries = [option for option in field.options if option != texts[field.key]]
        else:
            tries = ["-3.25", "A[I, J]", "1", "A[I_X, J_Y]", "In[T, D] * W[D, F] -> Out[T, F]"]
        for text in tries:
            if exercise.grade_text({**texts, field.key: text}).status == "wrong":
                return {**texts, field.key: text}
    raise AssertionError(f"no wrong answer to {exercise.id} was found")


def rubbish(exercise: Exercise) -> Typed:
    """Nothing that can be read: words without meaning, a program that is none, no option at all."""
    texts = {"text": "wibble <b>&", "choice": "", CODE: UNREADABLE_CODE}
    return {field.key: texts[field.kind] for field in exercise.fields}
