"""Quantities: values with powers of FLOPs, bytes and seconds, arithmetic on them that stays small, and the units people write."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from fractions import Fraction

from scalebook.errors import ExerciseError

Dims = tuple[int, int, int]  # powers of FLOPs, bytes, seconds
PLAIN: Dims = (0, 0, 0)
_MAX_BITS = 4096  # of a numerator and denominator together

_NAMED_DIMS: dict[Dims, str] = {
    PLAIN: "a plain number",
    (1, 0, 0): "FLOPs",
    (0, 1, 0): "bytes",
    (0, 0, 1): "seconds",
    (1, 0, -1): "FLOPs per second",
    (0, 1, -1): "bytes per second",
    (1, -1, 0): "FLOPs per byte",
    (-1, 1, 0): "bytes per FLOP",
}
_COUNTED = "row token sequence example chip device gpu tpu element number layer head parameter time".split()
_MULTIPLES = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_MULTIPLES["trillion"] = 10**12
_DECIMAL = {
    "": 0,
    "k": 3,
    "K": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
    "Z": 21,
    "m": -3,
    "u": -6,
    "µ": -6,
    "μ": -6,
    "n": -9,
    "p": -12,
}
_DECIMAL |= {
    "kilo": 3,
    "mega": 6,
    "giga": 9,
    "tera": 12,
    "peta": 15,
    "exa": 18,
    "milli": -3,
    "micro": -6,
    "nano": -9,
    "pico": -12,
}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "kibi": 1, "mebi": 2, "gibi": 3, "tebi": 4, "pebi": 5}
_PREFIXES: dict[str, Fraction] = {p: Fraction(10) ** n for p, n in _DECIMAL.items()} | {
    p: Fraction(1024) ** n for p, n in _BINARY.items()
}
_SYMBOLS: dict[str, tuple[Fraction, Dims]] = {
    **dict.fromkeys(("FLOP", "FLOPs", "FLOPS", "Flop", "Flops", "flop", "flops"), (Fraction(1), (1, 0, 0))),
    **dict.fromkeys(("B", "byte", "bytes", "Byte", "Bytes"), (Fraction(1), (0, 1, 0))),
    **dict.fromkeys(("b", "bit", "bits"), (Fraction(1, 8), (0, 1, 0))),
    **dict.fromkeys(("s", "sec", "second", "seconds"), (Fraction(1), (0, 0, 1))),
    "Bps": (Fraction(1), (0, 1, -1)),
    "bps": (Fraction(1, 8), (0, 1, -1)),
}
_MINUTES = {"min": 60, "minute": 60, "minutes": 60, "h": 3600, "hour": 3600, "hours": 3600}


@dataclass(frozen=True)
class Quantity:
    """A value in base units, the powers of FLOPs, bytes and seconds it has, and whether it was written without any unit."""

    value: Fraction | float
    dims: Dims = PLAIN
    bare: bool = True

    def fits(self, dims: Dims) -> bool:
        """Whether it can answer a question for `dims`: a bare number is taken in the question's own unit."""
        return self.bare or self.dims == dims


def describe(dims: Dims) -> str:
    """A dimension in words.

    >>> describe((1, -1, 0))
    'FLOPs per byte'
    """
    powers = [f"{name}^{n}" for name, n in zip(("FLOPs", "bytes", "seconds"), dims, strict=True) if n]
    return _NAMED_DIMS.get(dims) or " · ".join(powers)


# ---- arithmetic, bounded ------------------------------------------------------------------------------------------------


def finite(value: float) -> float:
    """The value, refused when it is infinite or not a number."""
    if not math.isfinite(value):
        raise ExerciseError(f"the answer is {value}, which is not a finite number")
    return value


def bounded(value: Fraction | float) -> Fraction | float:
    """The value, refused when it is infinite or has too many digits."""
    if isinstance(value, float):
        return finite(value)
    if value.numerator.bit_length() + value.denominator.bit_length() > _MAX_BITS:
        raise ExerciseError("a number in it is too large or has too many digits")
    try:
        float(value)
    except OverflowError:
        raise ExerciseError("a number in it is too large") from None
    return value


def times(a: Quantity, b: Quantity) -> Quantity:
    """a × b."""
    dims = (a.dims[0] + b.dims[0], a.dims[1] + b.dims[1], a.dims[2] + b.dims[2])
    return Quantity(bounded(a.value * b.value), dims, a.bare and b.bare)


def over(a: Quantity, b: Quantity) -> Quantity:
    """a ÷ b."""
    if b.value == 0:
        raise ExerciseError("it divides by zero")
    dims = (a.dims[0] - b.dims[0], a.dims[1] - b.dims[1], a.dims[2] - b.dims[2])
    return Quantity(bounded(a.value / b.value), dims, a.bare and b.bare)


def plus(a: Quantity, b: Quantity, sign: int) -> Quantity:
    """a + b, or a − b where sign is −1; only between quantities of one kind."""
    if a.dims != b.dims or a.bare != b.bare:
        left, right = ("a number without unit" if q.bare else describe(q.dims) for q in (a, b))
        raise ExerciseError(f"it adds or subtracts {left} and {right}")
    return Quantity(bounded(a.value + sign * b.value), a.dims, a.bare)


def power(a: Quantity, b: Quantity) -> Quantity:
    """a to the power of b; refused before it is computed when it would be too large."""
    if not b.bare:
        raise ExerciseError("an exponent cannot have a unit")
    n = Fraction(b.value)
    if a.value == 0 and n < 0:
        raise ExerciseError("it divides by zero")
    if n.denominator != 1 or isinstance(a.value, float):
        if a.value < 0 or a.dims != PLAIN or not a.bare:
            raise ExerciseError("only a positive number without unit can have a fractional exponent")
        try:
            return Quantity(finite(float(a.value) ** float(n)))
        except (OverflowError, ZeroDivisionError):
            raise ExerciseError("a power in it is too large") from None
    bits = a.value.numerator.bit_length() + a.value.denominator.bit_length()
    if abs(n) * max(bits - 2, 1) > _MAX_BITS:
        raise ExerciseError("a power in it is too large")
    k = int(n)
    return Quantity(bounded(a.value**k), (a.dims[0] * k, a.dims[1] * k, a.dims[2] * k), a.bare)


# ---- units --------------------------------------------------------------------------------------------------------------


def unit(name: str, *, rate: bool) -> Quantity:
    """One of a unit: "GiB", "ms", "TFLOPs", "rows"; with `rate`, FLOPS means FLOPs per second."""
    if name in _MULTIPLES:
        return Quantity(Fraction(_MULTIPLES[name]))
    if name.lower() in _COUNTED or name.lower().removesuffix("s") in _COUNTED:
        return Quantity(Fraction(1), bare=False)
    if name in _MINUTES:
        return Quantity(Fraction(_MINUTES[name]), (0, 0, 1), bare=False)
    for prefix, factor in _PREFIXES.items():
        symbol = name.removeprefix(prefix)
        if not name.startswith(prefix) or symbol not in _SYMBOLS:
            continue
        if symbol == "b" and factor < 10**6 and prefix != "Ki":
            break  # "kb", "mb", "b": bits or bytes, nobody knows
        scale, dims = _SYMBOLS[symbol]
        if rate and symbol == "FLOPS":
            dims = (1, 0, -1)
        return Quantity(factor * scale, dims, bare=False)
    raise ExerciseError(_unknown_unit(name))


def _unknown_unit(name: str) -> str:
    shown = name if len(name) <= 20 else name[:17] + "…"
    if name.lower() in ("nan", "inf", "infinity"):
        return f"{name!r} is not a finite number"
    if name.lower() in ("b", "kb", "mb", "gb", "tb", "pb"):
        prefix = name[:-1].upper().replace("K", "k")
        return f"{shown!r} may be bits or bytes: write {prefix}B for bytes, {prefix}bit for bits"
    known = ("FLOPs", "TFLOPs", "B", "GB", "GiB", "bytes", "bits", "s", "ms", "µs", "seconds", "rows", "tokens")
    near = difflib.get_close_matches(name, known, n=1)
    return f"{shown!r} is not a unit known here{f' (did you mean {near[0]!r}?)' if near else ''}"
