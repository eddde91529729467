"""A function from the text of a program: what a reader types into a field for code. It runs where the reader does."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

from scalebook.errors import ExerciseError, shown

MAX_CODE = 20_000  # characters of a program
_FILE = "<your code>"  # its name in tracebacks


def told(error: BaseException) -> str:
    """An exception in words, with the line of the reader's program where it arose, if it came from one.

    >>> told(ValueError("no chips"))
    'ValueError: no chips'
    """
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _FILE]
    try:
        text = " ".join(str(error).split())
    except Exception:  # its own __str__ may fail
        text = ""
    text = f"{type(error).__name__}: {text if len(text) <= 200 else text[:199] + '…'}" if text else type(error).__name__
    return f"{text} (line {lines[-1]} of your code)" if lines else text


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
        exec(program, space)
    except (Exception, SystemExit) as e:  # a program may do anything
        raise ExerciseError(f"the program raises {told(e)} before it can be tried; it should define {wants}") from None
    if not callable(space.get(name)):
        others = ", ".join(shown(key, 40).strip("'") for key in list(space)[:6] if not key.startswith("__"))
        raise ExerciseError(
            f"the program defines no function {name}{f', only {others}' if others else ''}; this exercise wants {wants}"
        )
    defined: Callable[..., Any] = space[name]
    return defined


def _pointed(error: SyntaxError) -> str:
    """Two lines that point at the place of a syntax error; nothing when it has none."""
    line = (error.text or "").rstrip("\n")
    if not line.strip() or len(line) > 200:
        return ""
    indent = len(line) - len(line.lstrip())
    at = min(max((error.offset or 1) - 1 - indent, 0), len(line))
    return f"\n  {line.strip()}\n  {' ' * at}^"
