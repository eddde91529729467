"""Primes and divisors against trial division, and at the sizes where trial division takes too long."""

from __future__ import annotations

import time

from hypothesis import given, strategies as st

from scalebook.factors import divisors, is_prime, primes


def test_against_trial_division() -> None:
    for n in range(1, 2500):
        by_trial = tuple(d for d in range(1, n + 1) if n % d == 0)
        assert divisors(n) == by_trial and is_prime(n) == (len(by_trial) == 2)


@given(st.lists(st.sampled_from([2, 3, 5, 1009, 10007, 999983, 1000003]), max_size=5))
def test_a_product_of_primes_falls_apart_into_them(parts: list[int]) -> None:
    n = 1
    for p in parts:
        n *= p
    assert primes(n) == tuple(sorted(parts))


def test_large_numbers_take_no_time() -> None:
    start = time.process_time()
    assert primes(31622777 * 31622743) == (31622743, 31622777)
    assert primes(999999999999989) == (999999999999989,) and divisors(10**15)[-2:] == (5 * 10**14, 10**15)
    assert time.process_time() - start < 1
