"""Work against rates: values by hand, laws, and the optimum by brute force."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import scalebook as sb
from scalebook.errors import HardwareError, ScalebookError, SizeError, shown
from scalebook.roofline import Time, Work

sizes = st.integers(1, 20_000)


def test_matmul_by_hand():
    work = sb.matmul_work(64, 8192, 8192)
    assert work.amounts == {"math": 2 * 64 * 8192 * 8192, "hbm": 2 * (64 * 8192 + 8192 * 8192 + 64 * 8192)}
    time = work.over(sb.rates("v5e"))
    assert time.math == pytest.approx(8589934592 / 197e12)
    assert time.hbm == pytest.approx(136314880 / 819e9)
    assert (time.bound_by, time.lower, time.upper) == ("hbm", time.hbm, time.math + time.hbm)


@pytest.mark.parametrize(
    ("chip", "dtype", "ridge"),
    [
        ("v5e", "bf16", 197e12 / 819e9),
        ("v5p", "bf16", 459e12 / 2765e9),
        ("v6e", "int8", 1836e12 / 1638e9),
        ("h100", "fp8", 1978.9e12 / 3352e9),
        ("tpu7x", "bf16", 2307 / 7.38),
    ],
)
def test_ridge_points(chip, dtype, ridge):
    assert sb.ridge(chip, dtype) == pytest.approx(ridge)


@pytest.mark.parametrize("chip", ["v2", "v3", "tpu7x"])
def test_a_device_is_half_a_chip_where_two_share_it(chip):
    whole, half = sb.rates(chip), sb.rates(chip, per="device")
    assert half["math"] == whole["math"] / 2 and half["hbm"] == whole["hbm"] / 2


@given(sizes, sizes, sizes, sizes)
def test_counts_are_algebra(I, J, K, n):
    work = sb.matmul_work(I, J, K)
    assert all(type(v) is int for v in work.amounts.values())
    assert sb.matmul_work(I, J, 2 * K).amounts["math"] == 2 * work.amounts["math"]
    assert (work * n).amounts == {r: n * v for r, v in work.amounts.items()}
    assert (work + work).amounts == (2 * work).amounts


def test_one_function_takes_a_sweep():
    batches = np.array([1, 64, 256, 4096])
    swept = sb.matmul_time(batches, 8192, 8192, "v5e")
    for i, batch in enumerate(batches.tolist()):
        one = sb.matmul_time(batch, 8192, 8192, "v5e")
        assert swept.lower[i] == one.lower and swept.upper[i] == one.upper


@given(st.floats(0, 1e3), st.floats(0, 1e3), st.floats(0, 1e3))
def test_bounds_enclose(a, b, c):
    time = Time({"math": a, "hbm": b, "comms": c})
    assert time.lower <= time.upper <= 3 * time.lower + 1e-9
    assert time.parts[time.bound_by] == time.lower


def test_unknown_parts_stay_unknown():
    time = Time({"math": 1.0, "comms": None})
    assert (time.lower, time.upper, time.seconds, time.bound_by) == (None, None, None, "unknown")
    assert (time + Time({"math": 1.0})).parts == {"math": 2.0, "comms": None}


@pytest.mark.parametrize(
    ("D", "F", "weights"), [(8192, 8192, "bf16"), (1024, 4096, "bf16"), (8192, 28672, "int8"), (640, 640, "bf16")]
)
@pytest.mark.parametrize("chip", ["v5e", "v5p", "h100"])
def test_critical_batch_is_where_math_overtakes_memory(chip, D, F, weights):
    """Brute force: walk the batch upward until math takes longer."""
    exact = sb.critical_batch_exact(D, F, chip, weights=weights)
    times = sb.matmul_time(np.arange(1, 60_000), D, F, chip, b=weights)
    math_bound = np.flatnonzero(times.math > times.hbm)
    if exact == float("inf"):
        assert not len(math_bound)
    else:
        assert math_bound[0] + 1 == np.floor(exact) + 1


@given(st.sampled_from(["v4", "v5e", "v5p", "v6e", "h100", "b200"]), st.sampled_from(["bf16", "int8", "int4"]))
def test_the_rule_is_the_limit_of_the_exact_batch(chip, weights):
    rule, exact = sb.critical_batch(chip, weights=weights), sb.critical_batch_exact(10**9, 10**9, chip, weights=weights)
    assert exact == pytest.approx(rule, rel=1e-5)
    assert sb.critical_batch_exact(4096, 4096, chip, weights=weights) > rule


@given(st.floats(1e-3, 1e6), st.sampled_from(["v5e", "h100"]))
def test_the_roof_is_what_the_time_gives(intensity, chip):
    rates = sb.rates(chip)
    work = Work({"math": intensity * 1e9, "hbm": 1e9})
    assert sb.attainable(intensity, chip) == pytest.approx(
        work.amounts["math"] / work.over({k: rates[k] for k in work.amounts}).lower
    )


def test_dot_product_tends_to_half_a_flop_per_byte():
    assert sb.dot_work(10**9).intensity() == pytest.approx(0.5, abs=1e-8)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: sb.rates("v5e", "fp8"), HardwareError, ["TPU v5e", "fp8", "bf16", "int8"]),
        (lambda: sb.ridge("h100", level="vmem"), HardwareError, ["H100", "vmem"]),
        (lambda: sb.ridge("v5e", level="l3"), ScalebookError, ["l3", "hbm"]),
        (lambda: sb.rates("v5e", per="pod"), ScalebookError, ["pod", "device"]),
        (lambda: Work({"math": -1}), ScalebookError, ["math", "-1"]),
        (lambda: Work({"math": 1}).intensity(), ScalebookError, ["hbm", "math"]),
        (lambda: Work({"disk": 1}).over({"hbm": 1.0}), ScalebookError, ["disk", "hbm"]),
        (lambda: Time({"math": 1.0})["hbm"], ScalebookError, ["hbm", "math"]),
        (lambda: sb.rates("v5z"), HardwareError, ["v5z", "v5e"]),
    ],
)
def test_mistakes_are_told(call, kind, words):
    with pytest.raises(kind) as told:
        call()
    assert all(word in str(told.value) for word in words), str(told.value)


def test_explain_says_what_binds():
    text = sb.matmul_time(64, 8192, 8192, "v5e").explain()
    assert "hbm binds" in text and "166" in text and "43.6" in text


# ---- arrays that could wrap around, and nonsense ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "uint64"])
def test_a_sweep_of_any_integers_is_what_its_entries_give(dtype):
    sides = np.array([1, 100, 255], dtype) * (np.array(1, dtype) if dtype == "uint8" else np.array(2**14, dtype))
    work, dot, batch = sb.matmul_work(sides, sides, sides), sb.dot_work(sides), sb.critical_batch_exact(sides, sides, "v5e")
    for i, n in enumerate(sides.tolist()):
        one = sb.matmul_work(n, n, n).amounts
        assert [v[i] for v in work.amounts.values()] == pytest.approx(list(one.values()), rel=1e-15)
        assert [v[i] for v in dot.amounts.values()] == list(sb.dot_work(n).amounts.values())
        assert batch[i] == sb.critical_batch_exact(n, n, "v5e")
        assert work.intensity()[i] == pytest.approx(n / 3)
    swept = sb.matmul_time(sides, sides, sides, "v5e")
    assert swept.lower.tolist() == pytest.approx([sb.matmul_time(n, n, n, "v5e").lower for n in sides.tolist()], rel=1e-15)


def test_cubes_beyond_64_bits():
    assert sb.matmul_work(*[np.array([2**22])] * 3).amounts["math"].tolist() == [2.0**67]
    assert sb.matmul_work(*[np.int64(2**22)] * 3).amounts["math"] == 2**67
    big = Work({"math": np.array([2**62])})
    assert (big * 4).amounts["math"].tolist() == (big + big + big + big).amounts["math"].tolist() == [2.0**64]
    assert sb.dot_work(np.array([2**62])).amounts["hbm"].tolist() == [2.0**64]
    assert sb.matmul_work(10**200, 10**200, 10**200).amounts["math"] == 2 * 10**600  # whole numbers have no limit
    assert sb.critical_batch_exact(10**200, 10**200, "v5e") == pytest.approx(sb.critical_batch("v5e"))


def test_an_array_times_a_work_is_a_work():
    for n in (np.array([1, 2]), np.int64(3)):
        left, right = n * Work({"math": 5}), Work({"math": 5}) * n
        assert isinstance(left, Work) and np.array_equal(left.amounts["math"], right.amounts["math"])
        assert np.array_equal(left.amounts["math"], 5 * n)


def test_critical_batch_takes_arrays():
    D = np.array([[128], [640], [8192]])
    batch = sb.critical_batch_exact(D, np.array([128, 8192]), "v5e")
    assert batch.shape == (3, 2) and batch[0].tolist() == [np.inf, np.inf] and batch[1, 0] == np.inf
    assert batch[2, 1] == sb.critical_batch_exact(8192, 8192, "v5e")


def test_a_sweep_says_what_binds_where():
    swept = sb.matmul_time(np.array([1, 64, 4096]), 8192, 8192, "v5e")
    assert swept.bound_by.tolist() == ["hbm", "hbm", "math"]
    assert Time({"math": np.array([1.0, 3.0]), "comms": 2.0}).bound_by.tolist() == ["comms", "math"]
    assert Time({"math": np.array([1.0, 3.0]), "comms": np.array([1.0, 3.0])}).bound_by.tolist() == ["math", "math"]
    text = swept.explain().replace("\u00a0", " ")
    assert "hbm  164 µs to 328 µs" in text and "math or hbm binds" in text


NONSENSE = [
    -1,
    -8192,
    0,
    float("nan"),
    True,
    None,
    "8",
    [8],
    1j,
    10**400,
    np.array([1, -1]),
    np.array([1.0, np.nan]),
    np.array([0]),
]


@pytest.mark.parametrize("wrong", [*NONSENSE, float("inf")], ids=shown)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("I", lambda n: sb.matmul_work(n, 8, 8)),
        ("J", lambda n: sb.matmul_work(8, n, 8)),
        ("K", lambda n: sb.matmul_time(8, 8, n, "v5e")),
        ("J", lambda n: sb.dot_work(n)),
        ("D", lambda n: sb.critical_batch_exact(n, 8192, "v5e")),
        ("F", lambda n: sb.critical_batch_exact(8192, n, "v5e")),
    ],
)
def test_nonsense_is_refused_by_its_letter(name, call, wrong):
    with pytest.raises(SizeError, match=f"^{name} must be a finite number above 0"):
        call(wrong)


@pytest.mark.parametrize("wrong", [w for w in (*NONSENSE, float("inf")) if w is not None], ids=shown)
def test_rates_that_are_none(wrong):
    with pytest.raises(ScalebookError, match=r"^the rate of math must be a finite number above 0"):
        Work({"math": 1}).over({"math": wrong})


@pytest.mark.parametrize("wrong", NONSENSE, ids=shown)
def test_intensities_that_are_none(wrong):
    with pytest.raises(SizeError, match=r"^the intensity must be a number above 0"):
        sb.attainable(wrong, "v5e")


def test_the_roof_of_an_infinite_intensity_and_of_arrays():
    assert sb.attainable(float("inf"), "v5e") == 197e12
    assert sb.attainable(np.array([100, 2**62, np.inf]), "v5e").tolist() == pytest.approx([81.9e12, 197e12, 197e12])


@pytest.mark.parametrize(
    "wrong", [-1, float("nan"), float("inf"), True, None, "x", [1], np.array([1, -1]), np.array([np.nan])], ids=shown
)
def test_amounts_that_are_none(wrong):
    with pytest.raises(ScalebookError, match=r"^the amount of 'math' of a Work must be a finite number from 0 on"):
        Work({"math": wrong})
    with pytest.raises(ScalebookError, match=r"^how many times a Work is done must be a finite number from 0 on"):
        Work({"math": 1}) * wrong


def test_more_mistakes_are_told():
    assert Work({"math": 1}).over({"math": None}).math is None  # unknown
    assert Work({"math": np.array([4, 4]), "hbm": np.array([0, 2])}).intensity().tolist() == [np.inf, 2]
    for call, words in (
        (lambda: sb.matmul_time(10**200, 10**200, 10**200, "v5e"), "2·10^600"),
        (lambda: Work({"math": 10**400, "hbm": 1}).intensity(), "1·10^400"),
        (lambda: Work([1]), "found [1]"),
        (lambda: Work({"math": 1}).over([1]), "found [1]"),
        (lambda: Work({"math": 1, "hbm": 1}).intensity(per=["hbm"]), "unknown resource of this Work ['hbm']"),
        (lambda: Time({"math": 1.0})[["math"]], "unknown resource of this Time ['math']"),
    ):
        with pytest.raises(ScalebookError) as told:
            call()
        assert words in str(told.value)
