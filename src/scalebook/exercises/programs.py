"""A function from the text of a program: what a reader types into a field for code. It runs where the reader does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from scalebook.errors import ExerciseError, shown
from scalebook.exercises.answers import brief, kind_of
from scalebook.exercises.kept import run

MAX_CODE = 20_000  # characters of a program
_FILE = "<your code>"  # its name in tracebacks


def told(error: BaseException) -> str:
    """An exception in words, with the line of the reader's program where it arose, if it came from one.

    >>> told(ValueError("no chips"))
    'ValueError: no chips'
    """
    line, at = 0, BaseException.__dict__["__traceback__"].__get__(error)  # whatever its class makes of that name
    while at is not None:
        line, at = (at.tb_lineno if at.tb_frame.f_code.co_filename == _FILE else line), at.tb_next
    try:
        text = " ".join(run(str, error).split())
        text = f": {text if len(text) <= 200 else text[:199] + '…'}" if text else ""
    except BaseException:  # its own __str__ may fail
        text = ""
    return f"{kind_of(error)}{text}{f' (line {line} of your code)' if line else ''}"


def function(source: object, name: str, wants: str) -> Callable[..., Any]:
    """The function `name` that a program defines, run in a namespace of its own; `wants` says in words what is asked for.

    >>> function("def twice(x):\\n    return 2 * x", "twice", "a function twice(x)")(4)
    8

    Raises ExerciseError, with the line, for a program that cannot be read, that raises, or that lacks the function.
    """
    if not isinstance(source, str) or not source.strip():
        found = "empty" if isinstance(source, str) else f"of type {type(source).__name__}"
        raise ExerciseError(f"the answer is {found}; this exercise wants {wants}")
    if len(source) > MAX_CODE:
        raise ExerciseError(
            f"the program has {len(source):,} characters; at most {MAX_CODE:,} are read; this exercise wants {wants}"
        )
    space: dict[str, Any] = {"__name__": "answer"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `x is 1` is the reader's business
            program = compile(source, _FILE, "exec", dont_inherit=True)
    except SyntaxError as e:
        where = f"line {e.lineno}" if e.lineno else "the program"
        raise ExerciseError(f"{where} cannot be read: {e.msg}{_pointed(e)}") from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as e:  # nested too deeply, or a null character
        raise ExerciseError(f"the program cannot be read: {told(e)}; this exercise wants {wants}") from None
    try:
        run(exec, program, space)
    except BaseException as e:  # a program may do anything
        raise ExerciseError(f"the program raises {told(e)} before it can be tried; it should define {wants}") from None
    defined = {key: value for key, value in space.items() if type(key) is str and not key.startswith("__")}
    if name not in defined:
        others = ", ".join(shown(key, 40).strip("'") for key in list(defined)[:6])
        raise ExerciseError(
            f"the program defines no function {name}{f', only {others}' if others else ''}; this exercise wants {wants}"
        )
    made: Callable[..., Any] = defined[name]
    if not callable(made):
        raise ExerciseError(f"in the program {name} is {brief(made)}, which is no function; this exercise wants {wants}")
    return made


def _pointed(error: SyntaxError) -> str:
    """Two lines that point at the place of a syntax error; nothing when it has none."""
    line = (error.text or "").rstrip("\n")
    if not line.strip() or len(line) > 200:
        return ""
    indent = len(line) - len(line.lstrip())
    at = min(max((error.offset or 1) - 1 - indent, 0), len(line))
    return f"\n  {line.strip()}\n  {' ' * at}^"
