"""Bytes and seconds as plain numbers in base units, and how to print them.

Numbers in this library are FLOPs, bytes, seconds, FLOPs/s and bytes/s, never scaled: a prefix such as giga or micro exists
only in what this module prints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

from scalebook.errors import ScalebookError, SizeError, shown, unknown

_BITS = {
    "fp64": 64, "fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "fp4": 4,
    "int64": 64, "int32": 32, "int16": 16, "int8": 8, "int4": 4, "bool": 8,
}  # fmt: skip
_ALIASES = {
    "float64": "fp64", "f64": "fp64", "float32": "fp32", "f32": "fp32", "float": "fp32", "bfloat16": "bf16",
    "float16": "fp16", "f16": "fp16", "half": "fp16", "e4m3": "fp8", "e5m2": "fp8", "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8", "f8e4m3fn": "fp8", "f8e5m2": "fp8", "float4_e2m1fn": "fp4", "nvfp4": "fp4", "mxfp4": "fp4",
    "s64": "int64", "s32": "int32", "s16": "int16", "s8": "int8", "u8": "int8", "uint8": "int8", "s4": "int4",
    "uint4": "int4", "pred": "bool",
}  # fmt: skip
NO_BREAK = "\u00a0"


def dtype_name(dtype: str) -> str:
    """The library's short name of a number format.

    >>> dtype_name("bfloat16")
    'bf16'
    """
    if not isinstance(dtype, str):
        raise ScalebookError(f"a dtype is given by its name, such as 'bf16'; found {shown(dtype)}")
    name = dtype.strip().lower()
    name = _ALIASES.get(name, name)
    if name not in _BITS:
        raise unknown("dtype", dtype, _BITS)
    return name


def itemsize(dtype: str) -> int | float:
    """Bytes of one number: bits ÷ 8 (scales of block formats such as MXFP4 are counted apart, by who stores them).

    >>> itemsize("bf16"), itemsize("int4")
    (2, 0.5)
    """
    bits = _BITS[dtype_name(dtype)]
    return bits / 8 if bits % 8 else bits // 8


# ---- numbers and arrays at the border -----------------------------------------------------------------------------------

LARGEST = 1e300  # of an amount or size: beyond, a quotient of two could be infinite
_INT64 = 2**63


def is_array(value: Any) -> bool:
    """Whether a value is a NumPy array (or like one) with dimensions; NumPy's scalars are plain numbers here."""
    return hasattr(value, "__array_ufunc__") and getattr(value, "ndim", 0) > 0


def as_number(value: Any) -> Any:
    """A plain Python number, or an array of int64 or float64; None for what is no real number (text, True, 1j, None).

    NumPy's scalars become Python's, so that they have no limit. An array of uint64 that int64 cannot hold becomes float64.

    >>> as_number(3), as_number(True), as_number("3")
    (3, None, None)
    """
    if type(value) is int or type(value) is float:
        return value
    if is_array(value):
        kind = getattr(getattr(value, "dtype", None), "kind", None)
        if kind not in ("i", "u", "f"):
            return None
        wide = kind == "u" and value.size and int(value.max()) >= _INT64
        return value.astype("float64" if kind == "f" or wide else "int64")
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:
        value = value.item()
    return value if isinstance(value, Real) and not isinstance(value, bool) else None


def positive(
    value: Any,
    name: str,
    kind: type[ScalebookError] = SizeError,
    *,
    zero: bool = False,
    whole: bool = False,
    infinite: bool = False,
) -> Any:
    """`as_number(value)` if it is finite and above 0, element by element; an error naming it otherwise.

    `zero` and `infinite` allow these too, `whole` nothing but whole numbers.

    >>> positive(8192, "D")
    8192
    >>> positive(-1, "D")
    Traceback (most recent call last):
    scalebook.errors.SizeError: D must be a finite number above 0, or an array of such numbers; found -1
    """
    number, found = as_number(value), value
    if is_array(number):
        right = (number >= 0 if zero else number > 0) & ((number <= LARGEST) | (infinite & (number == math.inf)))
        if bool(right.all()) and (number.dtype.kind == "i" or not whole):
            return number
        found = value if bool(right.all()) else number[~right].tolist()[0]
    elif number is not None and (isinstance(number, int) or not whole):
        right = (number >= 0 if zero else number > 0) and (number <= LARGEST or (infinite and number == math.inf))
        if right:
            return number
    rule = f"a {'whole ' if whole else '' if infinite else 'finite '}number {'from 0 on' if zero else 'above 0'}"
    raise kind(f"{name} must be {rule}, or an array of such numbers; found {shown(found)}")


def widened(*values: Any) -> tuple[Any, ...]:
    """The numbers of one formula, such that no NumPy integer in it wraps around in silence, as 2**40 · 2**40 does, to 0.

    NumPy's scalars become Python's, and whole numbers alone stay exact, whatever their size. With an array or a float among them,
    all become float64 (right to 53 bits) unless the product of the largest entries leaves 10 of int64's bits to spare, for sums
    and small factors. Raises SizeError for a number that float64 cannot hold.

    >>> widened(2**80, 3)
    (1208925819614629174706176, 3)
    """
    if all(type(v) is int for v in values):
        return values
    numbers = [v if (n := as_number(v)) is None else n for v in values]
    if not any(is_array(v) or isinstance(v, float) for v in numbers):
        return tuple(numbers)
    bound = 2**10
    for v in numbers:
        if isinstance(v, int):
            bound *= max(1, abs(v))
        elif is_array(v) and v.dtype.kind == "i" and v.size:
            bound *= max(1, int(v.max()), -int(v.min()))
    if bound < _INT64:
        return tuple(numbers)
    try:
        return tuple(v.astype("float64") if is_array(v) else float(v) if isinstance(v, int) else v for v in numbers)
    except OverflowError:
        raise SizeError(
            f"a number beside an array or a fraction is at most 1e308; found {digits(max(v for v in numbers if isinstance(v, int)))}"
        ) from None


def largest(value: Any) -> Any:
    """The largest entry as a plain number; 0 of an empty array.

    >>> largest(3)
    3
    """
    return (value.max().item() if value.size else 0) if is_array(value) else value


def wide(bound: float, **named: Any) -> tuple[Any, ...]:
    """The values by name, arrays as float64 where a result that may reach `bound` has no place in int64; numbers alone stay exact.

    SizeError for arrays whose shapes do not fit together, and for a bound that float64 has no place for.
    """
    arrays = {name: v for name, v in named.items() if is_array(v)}
    if not arrays:
        return tuple(named.values())
    import numpy

    try:
        numpy.broadcast_shapes(*(v.shape for v in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {v.shape}" for name, v in arrays.items())
        raise SizeError(f"arrays of different shapes must be broadcastable, as NumPy does it; found {shapes}") from None
    if bound > LARGEST:
        raise SizeError(f"{' and '.join(named)} are too large to count with: together beyond {LARGEST:.0e}")
    return tuple(v.astype("float64") if is_array(v) and bound >= _INT64 // 2 else v for v in named.values())


def nbytes(n: Any, dtype: str) -> Any:
    """Bytes of n numbers: n · itemsize. SizeError for half bytes of more numbers than a float can count.

    >>> nbytes(1000, "bf16"), nbytes(3, "int4")
    (2000, 1.5)
    """
    n, size = widened(n, itemsize(dtype))
    return n * size


# ---- one max and ceil for numbers and arrays ----------------------------------------------------------------------------


def maximum(*values: Any) -> Any:
    """The largest, element by element where any value is a NumPy array; plain numbers stay plain.

    >>> maximum(1, 3, 2)
    3
    """
    if any(is_array(v) for v in values):
        import numpy

        return numpy.maximum.reduce(numpy.broadcast_arrays(*values))
    return max(values)


def minimum(*values: Any) -> Any:
    """The smallest, element by element where any value is a NumPy array.

    >>> minimum(1, 3, 2)
    1
    """
    if any(is_array(v) for v in values):
        import numpy

        return numpy.minimum.reduce(numpy.broadcast_arrays(*values))
    return min(values)


def name_of_largest(named: Mapping[str, Any]) -> Any:
    """The name of the largest value, of equals the first; an array of names where any value is an array.

    >>> name_of_largest({"a": 1, "b": 3, "c": 3})
    'b'
    """
    if any(is_array(v) for v in named.values()):
        import numpy

        return numpy.array(list(named))[numpy.argmax(numpy.stack(numpy.broadcast_arrays(*named.values())), axis=0)]
    return max(named, key=lambda n: named[n])


def divided(a: Any, b: Any) -> Any:
    """a ÷ b where b is above 0, else infinite; element by element where either is an array.

    >>> divided(3, 2), divided(3, 0), divided(3, -1)
    (1.5, inf, inf)
    """
    if not is_array(b):
        return a / b if b > 0 else a * 0.0 + math.inf if is_array(a) else math.inf
    import numpy

    return numpy.where(b > 0, a / numpy.where(b > 0, b, 1), math.inf)


def ceil_div(a: Any, b: Any) -> Any:
    """a ÷ b rounded up, for numbers and arrays; ints stay ints.

    >>> ceil_div(10, 4)
    3
    """
    a, b = widened(a, b)
    return -(-a // b)


def round_up(a: Any, multiple: Any) -> Any:
    """The least multiple of `multiple` that is not below a.

    >>> round_up(50257, 128)
    50304
    """
    a, multiple = widened(a, multiple)
    return ceil_div(a, multiple) * multiple


# ---- printing -----------------------------------------------------------------------------------------------------------

_HIGHEST, _LOWEST = 27, -18  # powers of ten that are written with prefixes and zeros; beyond, as 1·10^400
_UNKNOWN = "unknown"


def _number(value: Any) -> int | float | None:
    """A number to print as int or float; None stays; ScalebookError for what is no number."""
    if value is None:
        return None
    number = as_number(value)
    if number is None or is_array(number):
        what = "print the entries of an array one by one" if is_array(number) else "a number is printed, or None as 'unknown'"
        raise ScalebookError(f"{what}; found {shown(value)}")
    return number if isinstance(number, int) else float(number)


def _special(value: float, n: int) -> str | None:
    """Text for 0, what is not finite, and what is too large or small for digits; else None."""
    if value == 0:
        return "0"
    if not isinstance(value, int) and not math.isfinite(value):
        return {"inf": "∞", "-inf": "−∞"}.get(str(value), "not a number")
    exponent = math.log10(abs(value))
    if _LOWEST <= exponent < _HIGHEST:
        return None
    power = math.floor(exponent + 1e-12)
    lead, more = f"{10 ** (exponent - power):.{n - 1}e}".split("e")  # 9.996 is shown as 10.0, so 1.00 and one power more
    sign, high = "\u2212" if value < 0 else "", power + int(more)
    return f"{sign}{float(lead):.{n}g}·10^{high}".replace("^-", "^\u2212")


def digits(value: float | None, n: int = 3) -> str:
    """n significant digits, thousands grouped, a true minus sign; a power of ten only beyond 10^27 and 10^−18.

    >>> digits(2048.3), digits(0.12345), digits(-5), digits(10**400)
    ('2,050', '0.123', '−5', '1·10^400')
    """
    value = _number(value)
    if value is None:
        return _UNKNOWN
    if (text := _special(value, n)) is not None:
        return text
    rounded = Decimal(f"{value:.{n - 1}e}")  # may reach the next power of ten: 999.6 → 1000
    text = f"{rounded:,.{max(0, n - 1 - rounded.adjusted())}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "\u2212")


def si(value: float | None, unit: str = "", n: int = 3) -> str:
    """n significant digits with a decimal prefix and a no-break space.

    >>> si(819e9, "B/s").replace(NO_BREAK, " ")
    '819 GB/s'
    >>> si(1.5e-6, "s").replace(NO_BREAK, " ")
    '1.5 µs'
    """
    value = _number(value)
    if value is None:
        return _UNKNOWN
    if (text := _special(value, n)) is not None:
        return f"{text}{NO_BREAK}{unit}".rstrip(NO_BREAK)
    rounded = float(f"{float(value):.{n - 1}e}")
    power = max(-5, min(7, math.floor(math.log10(abs(rounded)) / 3 + 1e-12)))
    prefix = ("f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E", "Z")[power + 5]
    return f"{digits(rounded / 1000.0**power, n)}{NO_BREAK}{prefix}{unit}".rstrip(NO_BREAK)


def binary(nbytes: float | None, n: int = 3) -> str:
    """Bytes with a binary prefix: for capacities, never for rates.

    >>> binary(96 * 2**30).replace(NO_BREAK, " ")
    '96 GiB'
    """
    value = _number(nbytes)
    if value is None:
        return _UNKNOWN
    if (text := _special(value, n)) is not None:
        return f"{text}{NO_BREAK}B"
    power = max(0, min(5, math.floor(math.log2(abs(value)) / 10)))
    return f"{digits(value / 1024**power, n)}{NO_BREAK}{('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[power]}"


def count(value: float | None) -> str:
    """Things that are counted, written out: 1,340.

    >>> count(1340.2)
    '1,340'
    """
    value = _number(value)
    if value is None:
        return _UNKNOWN
    text = None if abs(value) < 1 else _special(value, 3)
    return text or f"{round(value):,}".replace("-", "\u2212")


def percent(share: float | None, n: int = 2) -> str:
    """A share of one as a percentage.

    >>> percent(0.2634)
    '26%'
    """
    value = _number(share)
    if value is None:
        return _UNKNOWN
    text = digits(100 * value, n)
    return text if value != value else f"{text}%"


def plural(n: float | None, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "device"), plural(8, "device")
    ('1 device', '8 devices')
    """
    return f"{count(n)} {one if n == 1 else many or one + 's'}"
