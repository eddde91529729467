"""What the figures' functions accept as a number, a name or a list; anything else is refused with what was asked and found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scalebook.errors import ScalebookError, SizeError, shown
from scalebook.units import as_number, is_array

LARGEST, LEAST = 1e60, 1e-60  # wide enough for any machine, narrow enough that no product of a few leaves the range of floats
MOST = 10**15  # of a size
Rows = Mapping[str, Any] | Iterable[tuple[str, Any]]


def amount(what: str, value: Any) -> float:
    """A finite number that is not negative, as an int or a float of Python.

    >>> amount("bytes", 3)
    3

    Raises ScalebookError for anything else, and beyond 10⁶⁰.
    """
    number = _plain(value)
    if number is None or not 0 <= number <= LARGEST:
        raise ScalebookError(f"{what} must be a finite number that is not negative, at most 1e60; found {shown(value)}")
    return number


def is_positive(value: Any) -> bool:
    """Whether a value is a number from 10⁻⁶⁰ to 10⁶⁰: what has a place on a logarithmic axis.

    >>> is_positive(3.0), is_positive(0), is_positive(float("inf"))
    (True, False, False)
    """
    number = _plain(value)
    return number is not None and LEAST <= number <= LARGEST


def positive(what: str, value: Any) -> float:
    """A number from 10⁻⁶⁰ to 10⁶⁰, as an int or a float of Python; ScalebookError for anything else.

    >>> positive("seconds", 0.5)
    0.5
    """
    number = _plain(value)
    if number is None or not LEAST <= number <= LARGEST:
        raise ScalebookError(f"{what} must be a positive finite number, from 1e-60 to 1e60; found {shown(value)}")
    return number


def _plain(value: Any) -> float | None:
    """A real number as an int or a float of Python; None for anything else, and for what no float can hold."""
    number = None if is_array(value) else as_number(value)
    try:
        return number if number is None or isinstance(number, int) else float(number)
    except OverflowError:
        return None


def whole(what: str, value: Any, kind: type[ScalebookError] = SizeError, *, least: int = 1, most: int = MOST) -> int:
    """A whole number, Python's or NumPy's, within bounds.

    >>> whole("B", 64)
    64

    Raises an error of `kind` for fractions, truth values, text and arrays, and out of bounds.
    """
    number = None if is_array(value) else as_number(value)
    if not isinstance(number, int) or not least <= number <= most:
        rule = "a positive whole number" if least == 1 else f"a whole number from {least:,}"
        raise kind(f"{what} must be {rule}, at most {most:,}; found {shown(value)}")
    return number


def words(what: str, value: Any) -> str:
    """A text; ScalebookError for anything else.

    >>> words("unit", "GiB")
    'GiB'
    """
    if not isinstance(value, str):
        raise ScalebookError(f"{what} must be a text; found {shown(value)} of type {type(value).__name__}")
    return value


def name_of(what: str, value: Any) -> str:
    """A name: a text, or a number, which is written out.

    >>> name_of("a row", "weights"), name_of("a row", 64)
    ('weights', '64')
    """
    if isinstance(value, str):
        return value
    if (number := _plain(value)) is not None:
        return shown(number)
    raise ScalebookError(f"the name of {what} must be a text; found {shown(value)} of type {type(value).__name__}")


def listed(what: str, value: Any) -> list[Any]:
    """The members of a list, tuple or other collection (a text or number is one member); ScalebookError for what has no members.

    >>> listed("levels", ("hbm", "vmem")), listed("levels", "hbm")
    (['hbm', 'vmem'], ['hbm'])
    """
    if isinstance(value, str) or (hasattr(value, "__float__") and not is_array(value)):
        return [value]
    try:
        return list(value)
    except TypeError:
        raise ScalebookError(
            f"{what} must be one name or a list of them; found {shown(value)} of type {type(value).__name__}"
        ) from None


def named_pairs(what: str, given: Any, read: Callable[[str, Any], Any], rule: str) -> list[tuple[str, Any]]:
    """Pairs of a name and a value, from a mapping or a list of pairs, each value read by `read(name, value)`.

    >>> named_pairs("bars", {"a": 1}, lambda name, value: value + 1, "{name: value}")
    [('a', 2)]

    Raises ScalebookError when there are none, or for what is no pair; `rule` says how they are given.
    """
    try:
        rows = list(given.items()) if isinstance(given, Mapping) else list(given)
    except TypeError:
        raise ScalebookError(f"{what} are given as {rule}; found {shown(given)} of type {type(given).__name__}") from None
    if not rows:
        raise ScalebookError(f"{what}: a figure of rows needs at least one row; found none. They are given as {rule}")
    for row in rows:
        if not isinstance(row, tuple | list) or len(row) != 2:
            raise ScalebookError(f"{what}: rows are pairs of a name and a value, {rule}; found {shown(row)}")
    return [((name := name_of(f"a row of {what}", key)), read(name, value)) for key, value in rows]
