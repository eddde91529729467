"""The fields of answers, and grading what was typed into them."""

from __future__ import annotations

import pytest
import typed_answers

from scalebook import exercises
from scalebook.errors import ExerciseError
from scalebook.exercises import Exercise, grade_text
from scalebook.exercises.answers import read
from scalebook.exercises.composed import Criterion
from scalebook.exercises.fields import CODE, ONE
from scalebook.exercises.programs import MAX_CODE

ALL = [e for name in exercises.CHAPTERS for e in exercises.chapter(name)]
every = pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.id)


@every
def test_fields_are_sound(exercise: Exercise) -> None:
    keys = [field.key for field in exercise.fields]
    assert keys and len(set(keys)) == len(keys)
    for field in exercise.fields:
        assert field.kind in ("text", "choice", CODE) and field.caption
        assert bool(field.options) == (field.kind == "choice") and len(set(field.options)) == len(field.options)
        assert bool(field.example) == (field.kind != "choice")
    assert len(keys) > 1 or keys in ([ONE], [CODE])


@every
def test_the_solution_typed_is_right(exercise: Exercise) -> None:
    """By key, and where there is one field, or parts of text, as one text as well."""
    texts = typed_answers.right(exercise)
    assert grade_text(exercise.id, texts), str(grade_text(exercise.id, texts))
    whole = next(iter(texts.values())) if len(texts) == 1 else "; ".join(f"{key} = {text}" for key, text in texts.items())
    assert grade_text(exercise.id, whole).status == "right"


@every
def test_a_verdict_on_text_is_that_on_the_value(exercise: Exercise) -> None:
    """What is typed and what is passed get the same words."""
    answer, _ = typed_answers.solved(exercise)
    assert str(grade_text(exercise.id, typed_answers.right(exercise))) == str(exercise.grade(answer))


@every
def test_every_field_is_needed(exercise: Exercise) -> None:
    texts = typed_answers.right(exercise)
    for key in texts:
        assert grade_text(exercise.id, {k: v for k, v in texts.items() if k != key}).status == "unreadable"
        assert grade_text(exercise.id, {**texts, key: "  "}).status == "unreadable"
    assert grade_text(exercise.id, {**texts, "another": "1"}).status == "unreadable"


@every
def test_wrong_is_wrong_and_rubbish_unreadable(exercise: Exercise) -> None:
    assert grade_text(exercise.id, typed_answers.wrong(exercise)).status == "wrong"
    verdict = grade_text(exercise.id, typed_answers.rubbish(exercise))
    assert verdict.status == "unreadable" and len(verdict.message) < 900
    texts = typed_answers.right(exercise)
    for field in exercise.fields:  # one piece of rubbish among right ones, too
        if field.kind == "text":
            assert grade_text(exercise.id, {**texts, field.key: "wibble <b>&"}).status == "unreadable"


@every
def test_examples_can_be_read_and_give_nothing_away(exercise: Exercise) -> None:
    texts = typed_answers.right(exercise)
    examples = {field.key: field.example for field in exercise.fields if field.kind == "text"}
    for key, text in examples.items():
        verdict = grade_text(exercise.id, {**texts, key: text})
        assert verdict.readable, text
        assert isinstance(exercise.question, Criterion) or not verdict, f"{text} is the answer"
    assert not examples or not grade_text(exercise.id, {**texts, **examples})


@pytest.mark.parametrize("text", ["3.2e9", "3.2 GB", "32e8", "6.4e9 / 2", "2**5 * 1e8", "25.6 Gbit", "3,200,000,000"])
def test_numbers_as_people_write_them(text: str) -> None:
    """Every way to write a number that `read` knows works in a field: here all of them mean 3.2e9 bytes."""
    assert read(text, "B").value == 32 * 10**8
    verdict = grade_text("sharding/gathered-bytes", {"answer": text})
    assert verdict.status == "wrong" and verdict.message.startswith("3.2\u00a0GB is not right")


@pytest.mark.parametrize("quotes", ['""', "''", "``", "“”"])
@every
def test_quotes_around_a_typed_answer_do_not_count(exercise: Exercise, quotes: str) -> None:
    """Statements print answers as Python writes them, so they are typed that way, too."""
    quoted = {
        field.key: text if field.kind == "code" else f" {quotes[0]}{text}{quotes[1]}"
        for field, text in zip(exercise.fields, typed_answers.right(exercise).values(), strict=True)
    }
    assert grade_text(exercise.id, quoted), quoted


def test_a_lone_quote_cannot_be_read() -> None:
    assert grade_text("notation/write-it", '"A[I_YX, J]').status == "unreadable"


def test_any_name_of_the_array_is_taken() -> None:
    assert grade_text("notation/write-it", "W[I_YX, J]")


def test_tokens_are_counted_as_rows_are() -> None:
    """A question for tokens has a field for tokens, and the whole numbers beside the exact value are right."""
    (field,) = exercises.get("sharding/weights-stay").fields
    assert field.caption == "Answer, in tokens"
    verdict = grade_text("sharding/weights-stay", "100 tokens")
    assert verdict.status == "wrong" and verdict.message.startswith("100\u00a0tokens is not right")
    assert grade_text("sharding/weights-stay", "1").message.startswith("1\u00a0token is")


def test_an_unknown_exercise_is_an_error() -> None:
    with pytest.raises(ExerciseError, match="unknown exercise"):
        grade_text("rooflines/nothing", "1")


def test_a_caption_names_a_unit_once() -> None:
    captions = [field.caption for field in exercises.get("tpus/two-devices").fields]
    assert captions == ["devices", "hbm, in bytes", "rate, in B/s"]


# ---- code ---------------------------------------------------------------------------------------------------------------

MINE = "rooflines/my-time"
HEAD = "def my_time(flops, bytes, flops_per_s, bytes_per_s):\n"


def graded(code: str) -> exercises.Verdict:
    return grade_text(MINE, {"code": code})


def test_code_right_and_wrong() -> None:
    assert graded(HEAD + "    return max(flops / flops_per_s, bytes / bytes_per_s)")
    assert graded(
        "import math\n\ndef my_time(f, b, p, w):\n    return helper(f / p, b / w)\n\ndef helper(x, y):\n    return math.fsum([x, y, abs(x - y)]) / 2"
    )
    verdict = graded(HEAD + "    return flops / flops_per_s + bytes / bytes_per_s")
    assert verdict.status == "wrong" and verdict.diagnosis.startswith("That adds the two times")
    assert "`return` missing" in graded(exercises.get(MINE).fields[0].example).message  # as the field begins


def test_code_that_raises_names_the_line() -> None:
    verdict = graded(HEAD + "    x = 1\n    return x / 0")
    assert verdict.status == "wrong" and "raises ZeroDivisionError: division by zero (line 3 of your code)" in verdict.message
    verdict = graded("x = 1\n\nraise RuntimeError('a\\nb')")
    assert verdict.status == "unreadable" and "raises RuntimeError: a b (line 3 of your code) before" in verdict.message
    for leaving in ("raise SystemExit", "import sys\nsys.exit(3)"):
        assert graded(leaving).status == "unreadable"
        assert "SystemExit" in graded(HEAD + "    " + leaving.replace("\n", "\n    ")).message
    deep = graded(HEAD + "    return my_time(flops, bytes, flops_per_s, bytes_per_s)")
    assert deep.status == "wrong" and "RecursionError" in deep.message


def test_an_exception_that_cannot_be_printed() -> None:
    code = "class E(Exception):\n    def __str__(self):\n        raise ValueError\n\nraise E"
    assert "the program raises E (line 5 of your code)" in graded(code).message
    assert len(graded("raise ValueError('x' * 10**6)").message) < 400


@pytest.mark.parametrize(
    ("code", "says", "pointed"),
    [
        ("def my_time(a, b:\n    return 1", "line 1 cannot be read", "  def my_time(a, b:\n             ^"),
        (HEAD + "return 1", "line 2 cannot be read", "  return 1\n"),
        (HEAD + "    retrun flops / 2", "line 2 cannot be read", "  retrun flops / 2\n"),
        ("def my_time(a):\n\treturn 1\n        return 2", "line 3 cannot be read", "  return 2"),
        ("x = '\x00'", "null bytes", ""),
        ("(" * 5000, "cannot be read", ""),
        ("x" * (MAX_CODE + 1), "20,001 characters", ""),
        ("   \n", "empty", ""),
    ],
)
def test_code_that_cannot_be_read_says_where(code: str, says: str, pointed: str) -> None:
    verdict = graded(code)
    assert verdict.status == "unreadable" and says in verdict.message
    assert pointed in verdict.diagnosis


def test_code_without_the_function() -> None:
    verdict = graded("def mytime(a):\n    return a\n\nx = 3")
    assert verdict.status == "unreadable"
    assert verdict.message == (
        "the program defines no function my_time, only mytime, x; "
        "this exercise wants a Python function my_time(flops, bytes, flops_per_s, bytes_per_s)."
    )
    assert "defines no function my_time; this" in graded("1 + 1").message
    assert "in the program my_time is 3, which is no function; this exercise wants" in graded("my_time = 3").message


def test_each_program_runs_in_a_namespace_of_its_own() -> None:
    assert graded("def helper(x, y):\n    return max(x, y)").status == "unreadable"
    verdict = graded("def my_time(f, b, p, w):\n    return helper(f / p, b / w)")
    assert verdict.status == "wrong" and "NameError" in verdict.message and "line 2" in verdict.message
    assert not hasattr(exercises, "my_time") and "my_time" not in globals()


def test_a_warning_about_code_is_not_an_error() -> None:
    assert graded(HEAD + "    if flops is 0: pass\n    return max(flops / flops_per_s, bytes / bytes_per_s)")
