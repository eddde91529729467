"""Primes and divisors of whole numbers, fast also where trial division is not: sizes go up to 10^15."""

from __future__ import annotations

import math
from functools import lru_cache

WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)  # enough to tell primes up to 3·10^24
SMALL = 1000  # below its square, trial division


def is_prime(n: int) -> bool:
    """Whether n is prime, by Miller and Rabin's test, which with these witnesses errs for no number below 3·10^24.

    >>> is_prime(10**15 + 37), is_prime(31622777 * 31622743)
    (True, False)
    """
    if n < 2:
        return False
    for p in WITNESSES:
        if n % p == 0:
            return n == p
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for a in WITNESSES:
        x = pow(a, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def _divisor(n: int) -> int:
    """A divisor of n, which is not prime and has no small one: Pollard's rho method, some n^¼ steps."""
    root = math.isqrt(n)
    if root * root == n:
        return root
    for step in range(1, 100):
        slow = fast = 2
        found = 1
        while found == 1:
            slow = (slow * slow + step) % n
            fast = (fast * fast + step) % n
            fast = (fast * fast + step) % n
            found = math.gcd(slow - fast, n)
        if found != n:
            return found
    raise ArithmeticError(f"no divisor of {n} was found")


@lru_cache(4096)
def primes(n: int) -> tuple[int, ...]:
    """The prime factors of n, smallest first.

    >>> primes(12), primes(1), primes(31622777 * 31622743)
    ((2, 2, 3), (), (31622743, 31622777))
    """
    out, p = [], 2
    while p < SMALL and p * p <= n:
        while n % p == 0:
            out.append(p)
            n //= p
        p += 1
    rest = [n] if n > 1 else []
    while rest:
        m = rest.pop()
        if m < SMALL * SMALL or is_prime(m):
            out.append(m)
        else:
            d = _divisor(m)
            rest += [d, m // d]
    return tuple(sorted(out))


@lru_cache(4096)
def divisors(n: int) -> tuple[int, ...]:
    """The divisors of n, smallest first.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    out = {1}
    for p in primes(n):
        out |= {d * p for d in out}
    return tuple(sorted(out))
