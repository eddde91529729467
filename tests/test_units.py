"""Printing and the helpers for numbers and arrays."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from scalebook import units
from scalebook.errors import ScalebookError, SizeError, shown, unknown


def plain(text):
    return text.replace(units.NO_BREAK, " ")


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (819e9, "B/s", "819 GB/s"), (1.97e14, "FLOPs/s", "197 TFLOPs/s"), (0, "B", "0 B"), (999.6, "s", "1 ks"), (1e-15, "s", "1 fs"),
        (0.00128, "s", "1.28 ms"), (1.05e-6, "s", "1.05 µs"), (-2.5e9, "B", "−2.5 GB"), (1000, "B", "1 kB"), (12345, "", "12.3 k"),
        (float("inf"), "B", "∞ B"), (None, "s", "unknown"), (3.8e25, "FLOPs", "38,000 ZFLOPs"),
    ],
)  # fmt: skip
def test_si(value, unit, shown):
    assert plain(units.si(value, unit)) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 B"), (1023, "1,020 B"), (1024, "1 KiB"), (16 * 2**30, "16 GiB"), (95.74 * 2**30, "95.7 GiB"), (2**51, "2 PiB")],
)
def test_binary(value, shown):
    assert plain(units.binary(value)) == shown


@given(st.floats(min_value=1e-12, max_value=1e21))
def test_si_keeps_three_digits(value):
    number, rest = units.si(value, "B").split(units.NO_BREAK)
    scale = {
        "f": 1e-15,
        "p": 1e-12,
        "n": 1e-9,
        "µ": 1e-6,
        "m": 1e-3,
        "": 1,
        "k": 1e3,
        "M": 1e6,
        "G": 1e9,
        "T": 1e12,
        "P": 1e15,
        "E": 1e18,
        "Z": 1e21,
    }
    assert float(number.replace(",", "")) * scale[rest[:-1]] == pytest.approx(value, rel=0.00501)


@pytest.mark.parametrize(
    ("name", "size"), [("bf16", 2), ("float32", 4), ("FP8", 1), ("f8e4m3fn", 1), ("int4", 0.5), ("mxfp4", 0.5), ("bool", 1)]
)
def test_itemsize(name, size):
    assert units.itemsize(name) == size
    assert isinstance(units.itemsize(name), type(size))


@pytest.mark.parametrize("wrong", ["bf61", "", 16, None])
def test_unknown_dtype_is_named(wrong):
    with pytest.raises(ScalebookError, match=repr(wrong)):
        units.itemsize(wrong)


def test_helpers_take_numbers_and_arrays_and_keep_ints():
    assert units.maximum(1, 2) == 2 and type(units.maximum(1, 2)) is int
    assert units.ceil_div(7, 2) == 4 and type(units.round_up(7, 4)) is int
    assert list(units.maximum(np.array([1, 5]), 3)) == [3, 5]
    assert list(units.minimum(2, np.array([1, 5]), 3)) == [1, 2]
    assert list(units.round_up(np.array([1, 8, 9]), 8)) == [8, 8, 16]


@given(st.integers(0, 10**12), st.integers(1, 10**6))
def test_round_up(a, multiple):
    up = units.round_up(a, multiple)
    assert up % multiple == 0 and 0 <= up - a < multiple and units.ceil_div(a, multiple) == math.ceil(up / multiple)


# ---- what NumPy and users bring -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_of_numpy_do_not_wrap_around(name):
    top = np.iinfo(name).max
    assert math.prod(units.widened(np.dtype(name).type(top), np.dtype(name).type(top))) == int(top) ** 2
    product = math.prod(units.widened(np.array([top], name), np.array([top], name)))
    assert product.tolist() == [pytest.approx(int(top) ** 2, rel=1e-15)]
    assert (product.dtype.kind == "i") == (int(top) ** 2 < 2**53)
    assert units.round_up(np.dtype(name).type(top), 256) % 256 == 0 < units.round_up(np.array([top], name), 256)[0]
    assert units.ceil_div(np.array([top, 1], name), 1).tolist() == pytest.approx([int(top), 1])


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=4), st.integers(0, 2**80), st.sampled_from([1, 2.5]))
def test_widened_products_are_right(entries, factor, other):
    product = math.prod(units.widened(np.array(entries), factor, other))
    assert product.tolist() == pytest.approx([e * factor * other for e in entries], rel=1e-14)


def test_what_float64_cannot_hold_is_told():
    with pytest.raises(SizeError, match="at most 1e308; found 1·10\\^400"):
        units.widened(10**400, np.array([1]))
    with pytest.raises(SizeError, match="at most 1e308"):
        units.nbytes(10**400, "int4")
    assert units.nbytes(10**400, "bf16") == 2 * 10**400


NONSENSE = [-1, 0, -0.5, float("nan"), float("inf"), True, None, "8", [8], 1j, 10**400, np.array([1, 0]), np.array([1.0, np.nan]),
            np.array([True]), np.array(["8"]), np.array([1, 10**30]), np.array([[2.0], [-np.inf]])]  # fmt: skip


@pytest.mark.parametrize("wrong", NONSENSE, ids=shown)
def test_what_is_not_positive_is_refused_by_name(wrong):
    with pytest.raises(SizeError, match=r"^D must be a finite number above 0, or an array of such numbers; found "):
        units.positive(wrong, "D")


def test_what_is_positive_is_given_back():
    assert type(units.positive(np.int8(5), "D")) is int and type(units.positive(np.float32(0.5), "D")) is float
    assert units.positive(0, "D", zero=True) == 0 and units.positive(math.inf, "D", infinite=True) == math.inf
    assert units.positive(np.array([1, 255], np.uint8), "D").dtype == np.int64
    assert units.positive(np.array([1, 6e4], np.float16), "D").dtype == np.float64
    with pytest.raises(SizeError, match=r"a whole number above 0.*found 2.5"):
        units.positive(2.5, "k", whole=True)
    with pytest.raises(SizeError, match=r"found -3$"):  # the entry that is wrong, not the array
        units.positive(np.array([7, -3, 2]), "D")


PRINTERS = {f.__name__: f for f in (units.si, units.binary, units.digits, units.count, units.percent)}


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (None, ["unknown"] * 5),
        (float("nan"), ["not a number", "not a number B", "not a number", "not a number", "not a number"]),
        (float("inf"), ["∞", "∞ B", "∞", "∞", "∞%"]),
        (-float("inf"), ["−∞", "−∞ B", "−∞", "−∞", "−∞%"]),
        (10**400, ["1·10^400", "1·10^400 B", "1·10^400", "1·10^400", "1·10^402%"]),
        (-123456 * 10**5000, ["−1.23·10^5005", "−1.23·10^5005 B", "−1.23·10^5005", "−1.23·10^5005", "−1.2·10^5007%"]),
        (1.5e300, ["1.5·10^300", "1.5·10^300 B", "1.5·10^300", "1.5·10^300", "1.5·10^302%"]),
        (9.999e28, ["1·10^29", "1·10^29 B", "1·10^29", "1·10^29", "1·10^31%"]),
        (2e-30, ["2·10^−30", "2·10^−30 B", "2·10^−30", "0", "2·10^−28%"]),
        (9.876e22, ["98.8 Z", "87,700,000 PiB", "98,800,000,000,000,000,000,000", f"{round(9.876e22):,}", "9,900,000,000,000,000,000,000,000%"]),
        (np.float32(0.25), ["250 m", "0.25 B", "0.25", "0", "25%"]),
        (np.int8(100), ["100", "100 B", "100", "100", "10,000%"]),
    ],
    ids=shown,
)  # fmt: skip
def test_every_number_has_a_text(value, texts):
    assert [plain(show(value)) for show in PRINTERS.values()] == texts
    assert plain(units.plural(value, "device")) == f"{texts[3]} devices"


@pytest.mark.parametrize("wrong", ["a", "", [1], True, 1j, {}, np.array([1, 2])], ids=repr)
@pytest.mark.parametrize("show", [*PRINTERS.values(), lambda v: units.plural(v, "device")])
def test_what_is_no_number_is_not_printed(show, wrong):
    with pytest.raises(ScalebookError, match="found "):
        show(wrong)


class _Bad:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "asked", ["x" * 10**6, ["x" * 100] * 1000, 10**5000, {i: i for i in range(1000)}, np.ones((99, 99)), ("a",) * 70, b"x" * 999, _Bad()],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_messages_stay_short(asked):
    assert len(shown(asked)) <= 62 and "\n" not in shown(asked)
    assert len(str(unknown("dtype", asked, ["bf16", "fp32"]))) < 120
    assert str(unknown("dtype", asked, [])).startswith("unknown dtype ")


def test_of_very_many_names_the_first_are_listed():
    text = str(unknown("figure", "f7777", [f"f{i}" for i in range(10_000)]))
    assert "'f7777'?" in text and text.endswith(" more") and 800 < len(text) < 900
    assert str(unknown("x", 1, ["a", "b"])) == "unknown x 1. Known: a, b"


def test_short_things_are_shown_whole():
    assert shown("it's") == repr("it's") and shown({"X": 4}) == "{'X': 4}" and shown("a  b") == "'a  b'"
    assert shown("a" * 60) == repr("a" * 60) and shown("a" * 30 + "b" * 31).endswith("b'")
    assert "did you mean 'bf16'" in str(unknown("dtype", "BF61", ["bf16", "fp32"]))
