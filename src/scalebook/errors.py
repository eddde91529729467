"""What a user can do wrong, as a few kinds of one error. Each message says what was asked, what was found, the rule, what to do."""

from __future__ import annotations

import difflib
import itertools
import reprlib
from collections.abc import Container, Iterable

_LIMITED = reprlib.Repr()
_LIMITED.maxlevel, _LIMITED.maxdict, _LIMITED.maxlist, _LIMITED.maxtuple = 3, 12, 24, 24
_LIMITED.maxstring = _LIMITED.maxother = _LIMITED.maxlong = 80
_LISTED = 800  # characters of known names in one message


class ScalebookError(ValueError):
    """A user's mistake, told in one message; every error that the library raises on purpose is of this kind."""


class NotationError(ScalebookError):
    """A piece of the sharding notation that cannot be read, or that says something impossible."""


class HardwareError(ScalebookError):
    """A chip that is not in the catalogue, or a figure of a chip that is not known."""


class TopologyError(ScalebookError):
    """A machine that cannot be had."""


class MeshError(ScalebookError):
    """A mesh that cannot be laid on its machine, or an axis that the mesh does not have."""


class SizeError(ScalebookError):
    """A size that is missing, not a positive whole number, or not a multiple of the devices that split it."""


class ModelError(ScalebookError):
    """A model that is not known, or a configuration that cannot be counted with certainty."""


class ExerciseError(ScalebookError):
    """An exercise that does not exist, or an answer that cannot be read."""


class MissingExtra(ScalebookError):
    """A feature that needs a package which is not installed."""


def shown(value: object, most: int = 60) -> str:
    """What a user gave, for a message: its repr on one line, at most about `most` characters; never an error of its own.

    >>> shown("X"), shown("abcdef" * 1000, 10), shown(10**5000)
    ("'X'", "'abcdef…def'", 'a whole number of 16610 bits')
    """
    head, tail = most - most // 3, most // 3
    if isinstance(value, int) and value.bit_length() > 3 * most:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, str):
        return repr(value if len(value) <= most else f"{value[: head - 1]}…{value[-tail:]}")
    if isinstance(value, (bytes, list, tuple)) and len(value) > most:
        value = value[:most]  # an entry has a character at least, so no more can be shown
    try:
        short = (
            _LIMITED.repr(value) if isinstance(value, (list, tuple, dict, set, frozenset)) else repr(value)
        )  # one may hold itself many times
        text = " ".join(short.split())  # NumPy's has several lines
    except Exception:  # a repr may do anything; what is wrong is told all the same
        return f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: head - 1]}…{text[-tail:]}"


def within(name: object, names: Container[object]) -> bool:
    """`name in names`, where what cannot be hashed, such as a list, is simply not among them.

    >>> within("X", {"X": 4}), within(["X"], {"X": 4})
    (True, False)
    """
    try:
        return name in names
    except TypeError:
        return False


def unknown(what: str, asked: object, known: Iterable[str], kind: type[ScalebookError] = ScalebookError) -> ScalebookError:
    """The error for a name that is not in a list: names the nearest ones, then all, or of very many the first.

    >>> str(unknown("dtype", "bf61", ["bf16", "fp32"]))
    "unknown dtype 'bf61'; did you mean 'bf16'? Known: bf16, fp32"
    """
    names = [str(n) for n in known]
    written = asked[:80].lower() if isinstance(asked, str) else ""
    near = difflib.get_close_matches(written, [n.lower() for n in names], n=2)
    close = [n for n in names if n.lower() in near]
    hint = f"; did you mean {' or '.join(repr(n) for n in close)}?" if close else "."
    listed = [n for n, end in zip(names, itertools.accumulate(len(n) + 2 for n in names), strict=True) if end <= _LISTED]
    more = f" and {len(names) - len(listed)} more" if len(listed) < len(names) else ""
    return kind(f"unknown {what} {shown(asked)}{hint} Known: {', '.join(listed)}{more}")


def missing_extra(package: str, extra: str, what: str) -> MissingExtra:
    """The error for an optional package that is not installed.

    >>> str(missing_extra("numpy", "fast", "a sweep"))
    'a sweep needs the package numpy, which is not installed; install it with: pip install "scalebook[fast]"'
    """
    return MissingExtra(
        f'{what} needs the package {package}, which is not installed; install it with: pip install "scalebook[{extra}]"'
    )
