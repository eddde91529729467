"""Work against rates: each resource needs amount ÷ rate seconds, and the slowest bounds the time.

A *resource* is anything that does work at a rate: the matrix unit ("math", FLOPs/s), memory ("hbm", "vmem", bytes/s), links
("comms"). `Work` is amounts by resource, `rates(chip)` is what a chip offers, and dividing one by the other gives a `Time`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scalebook.errors import HardwareError, ScalebookError, SizeError, shown, unknown, within
from scalebook.hardware import Chip, chip as chip_of
from scalebook.units import (
    as_number,
    divided,
    dtype_name,
    is_array,
    itemsize,
    maximum,
    name_of_largest,
    nbytes,
    positive,
    si,
    widened,
)

Number = Any  # an int, a float, or a NumPy array of them


@dataclass(frozen=True)
class Time:
    """Seconds that each resource is busy: `parts["math"]`, `parts["hbm"]`, `parts["comms"]`, …; None where a rate is unknown.

    `lower` = the longest part: everything overlaps. `upper` = their sum: nothing does. Reality lies between, within a factor of
    the number of parts. `seconds` is `lower`. A collective also says how many `bytes` each device receives, and how much of its
    time is `latency`: what remains when the bytes go to zero.

    >>> t = Time({"math": 3e-6, "hbm": 4e-6})
    >>> t.lower, t.upper, t.bound_by
    (4e-06, 7e-06, 'hbm')
    """

    parts: Mapping[str, Number] = field(default_factory=dict)
    bytes: Number = None
    latency: Number = None
    note: str = ""

    @property
    def known(self) -> bool:
        """Whether every part has a time."""
        return all(s is not None for s in self.parts.values())

    @property
    def lower(self) -> Number:
        """The longest part, in seconds: the time if everything overlaps."""
        return maximum(0.0, *self.parts.values()) if self.known else None

    @property
    def upper(self) -> Number:
        """The sum of the parts, in seconds: the time if nothing overlaps."""
        return sum(self.parts.values(), start=0.0) if self.known else None

    @property
    def seconds(self) -> Number:
        """`lower`."""
        return self.lower

    @property
    def bound_by(self) -> str | Any:
        """The resource with the longest part; of equals, the first. An array of names where a part is an array."""
        if not self.known or not self.parts:
            return "unknown"
        return name_of_largest(self.parts)

    def __getitem__(self, resource: str) -> Number:
        if not within(resource, self.parts):
            raise unknown("resource of this Time", resource, self.parts)
        return self.parts[resource]

    def _part(self, resource: str) -> Number:
        return self.parts.get(resource, 0.0)

    @property
    def math(self) -> Number:
        """Seconds of the matrix unit."""
        return self._part("math")

    @property
    def hbm(self) -> Number:
        """Seconds of memory traffic."""
        return self._part("hbm")

    @property
    def comms(self) -> Number:
        """Seconds of communication between devices."""
        return self._part("comms")

    def __add__(self, other: Time) -> Time:
        """One after the other, resource by resource; unknown plus anything is unknown."""
        if not isinstance(other, Time):
            return NotImplemented

        def plus(a: Number, b: Number) -> Number:
            return None if a is None or b is None else a + b

        parts = {r: plus(self.parts.get(r, 0.0), other.parts.get(r, 0.0)) for r in {**self.parts, **other.parts}}
        total = plus(self.bytes, other.bytes)
        return Time(parts, bytes=total, latency=plus(self.latency, other.latency))

    def table(self) -> list[tuple[str, str]]:
        """Each resource and its time, as printed."""
        return [(r, _printed(s, "s")) for r, s in self.parts.items()]

    def explain(self) -> str:
        """Each part, what binds, and the bounds, as text."""
        lines = [f"{r:>8}  {text}" for r, text in self.table()]
        if self.known and self.parts:
            binds: Any = self.bound_by
            names = " or ".join(r for r in self.parts if r in binds.ravel().tolist()) if is_array(binds) else binds
            lines.append(f"   lower  {_printed(self.lower, 's')}: {names} binds when everything overlaps")
            lines.append(f"   upper  {_printed(self.upper, 's')}: the sum, when nothing overlaps")
        if self.bytes is not None:
            lines.append(f"received  {_printed(self.bytes, 'B')} per device")
        if self.latency is not None:
            lines.append(f" latency  {_printed(self.latency, 's')} of it whatever the size")
        return "\n".join([*lines, *([self.note] if self.note else [])])


def _printed(value: Number, unit: str) -> str:
    """A number with its unit; of an array the least and the largest."""
    if not is_array(value):
        return si(value, unit)
    return f"{si(value.min(), unit)} to {si(value.max(), unit)}" if value.size else "none"


@dataclass(frozen=True)
class Work:
    """Amounts by resource: FLOPs of "math", bytes of "hbm", "vmem", "comms", ….

    Each is a finite number, 0 or more, or a NumPy array of them; ScalebookError otherwise.

    >>> Work({"math": 2e12, "hbm": 1e9}).intensity()
    2000.0
    """

    amounts: Mapping[str, Number]

    __array_ufunc__ = None  # so that array · work is one Work, not an array of them

    def __post_init__(self) -> None:
        if not isinstance(self.amounts, Mapping):
            raise ScalebookError(
                f"work is amounts by resource, such as {{'math': 2e12, 'hbm': 1e9}}; found {shown(self.amounts)}"
            )
        for resource, amount in self.amounts.items():
            count = isinstance(as_number(amount), int) and amount > 0  # which has no limit
            if not count:
                positive(amount, f"the amount of {shown(resource)} of a Work", ScalebookError, zero=True)

    def intensity(self, per: str = "hbm", of: str = "math") -> Number:
        """FLOPs per byte: amount of `of` ÷ amount of `per`. Infinite when nothing is moved."""
        for resource in (of, per):
            if not within(resource, self.amounts):
                raise unknown("resource of this Work", resource, self.amounts)
        above, below = as_number(self.amounts[of]), as_number(self.amounts[per])
        if is_array(above) or is_array(below):
            above, below = widened(above, below)
        return _quotient(of, above, below)

    def over(self, rates: Mapping[str, float | None]) -> Time:
        """Amount ÷ rate for each resource; a resource whose rate is None, unknown, gets None.

        Raises ScalebookError for a resource without a rate, and for a rate that is no finite number above 0.
        """
        if not isinstance(rates, Mapping):
            raise ScalebookError(f"rates are given by resource, such as rates('v5e'); found {shown(rates)}")
        missing = [r for r in self.amounts if r not in rates]
        if missing:
            raise unknown("resource", missing[0], rates)
        return Time({r: _seconds(r, amount, rates[r]) for r, amount in self.amounts.items()})

    def __add__(self, other: Work) -> Work:
        """Both, resource by resource."""
        if not isinstance(other, Work):
            return NotImplemented
        names = {**self.amounts, **other.amounts}
        return Work({r: sum(widened(self.amounts.get(r, 0), other.amounts.get(r, 0))) for r in names})

    def __mul__(self, times: Number) -> Work:
        """The same work `times` times."""
        factor = positive(times, "how many times a Work is done", ScalebookError, zero=True)
        return Work({r: math.prod(widened(amount, factor)) for r, amount in self.amounts.items()})

    __rmul__ = __mul__


def _seconds(resource: str, amount: Number, rate: Number) -> Number:
    if rate is None:
        return None
    return _quotient(resource, as_number(amount), positive(rate, f"the rate of {resource}", ScalebookError))


def _quotient(resource: str, amount: Number, rate: Number) -> Number:
    """amount ÷ rate, infinite where that is 0; SizeError where the whole number `amount` is too large for any float."""
    try:
        return divided(amount, rate)
    except OverflowError:
        raise SizeError(f"the amount of {resource} is {si(amount)}, too large to be divided by a rate: at most 1e308") from None


def rates(chip: str | Chip, dtype: str = "bf16", *, per: str = "chip") -> dict[str, float | None]:
    """What a chip (or one device of it, `per="device"`) offers: "math" in FLOPs/s of `dtype`, "hbm" and "vmem" in bytes/s.

    >>> rates("v5e")["hbm"]
    819000000000.0

    Raises HardwareError when the chip has no published rate for the dtype. VMEM is None where no source gives its bandwidth.
    """
    c = chip_of(chip)
    name = dtype_name(dtype)
    if name not in c.flops_per_s:
        have = ", ".join(c.flops_per_s)
        raise HardwareError(f"{c.name} has no known {name} rate; its matrix unit is known to compute in: {have}")
    if per not in ("chip", "device"):
        raise unknown("`per`", per, ["chip", "device"])
    share = (c.devices_per_chip or 1) if per == "device" else 1
    all_rates = {"math": c.flops_per_s[name], "hbm": c.hbm_bytes_per_s, "vmem": c.vmem_bytes_per_s}
    return {r: None if rate is None else rate / share for r, rate in all_rates.items()}


def ridge(chip: str | Chip, dtype: str = "bf16", *, level: str = "hbm") -> float:
    """The intensity at which math and memory take equally long: FLOPs/s ÷ bytes/s, in FLOPs per byte.

    >>> round(ridge("v5e"), 1)
    240.5

    `level="vmem"` takes the on-chip memory instead. Raises HardwareError where a rate is unknown.
    """
    r = rates(chip, dtype)
    if level not in ("hbm", "vmem"):
        raise unknown("memory level", level, ["hbm", "vmem"])
    below, math = r[level], r["math"]
    if below is None or math is None:
        raise HardwareError(f"{chip_of(chip).name} has no sourced {level} bandwidth, so its ridge point there is unknown")
    return math / below


def matmul_work(I: Number, J: Number, K: Number, *, a: str = "bf16", b: str = "bf16", out: str = "bf16") -> Work:
    """The work of A[I, J] · B[J, K] → C[I, K]: 2·I·J·K FLOPs; A and B read once, C written once.

    >>> matmul_work(1024, 1024, 1024).amounts
    {'math': 2147483648, 'hbm': 6291456}

    `a`, `b`, `out` are the dtypes in memory. Reading each matrix once needs an on-chip memory that holds the tiles in use; with a
    small one, tiles are read again and the real traffic is larger. NumPy arrays whose products may pass 2**63 are computed in
    float64. Raises SizeError for a dimension that is not a finite number above 0.
    """
    I, J, K = widened(positive(I, "I"), positive(J, "J"), positive(K, "K"))
    return Work({"math": 2 * I * J * K, "hbm": nbytes(I * J, a) + nbytes(J * K, b) + nbytes(I * K, out)})


def dot_work(J: Number, *, dtype: str = "bf16") -> Work:
    """The work of a dot product of two vectors of J numbers: 2J − 1 FLOPs; both read, one number written.

    >>> dot_work(1000).amounts
    {'math': 1999, 'hbm': 4002}

    Raises SizeError for a J that is not a finite number above 0.
    """
    (J,) = widened(positive(J, "J"))
    return Work({"math": 2 * J - 1, "hbm": nbytes(2 * J + 1, dtype)})


def matmul_time(
    I: Number,
    J: Number,
    K: Number,
    chip: str | Chip,
    *,
    a: str = "bf16",
    b: str = "bf16",
    out: str = "bf16",
    compute: str | None = None,
) -> Time:
    """`matmul_work` on one chip. `compute` is the dtype in which the matrix unit multiplies; by default that of `a`.

    >>> matmul_time(256, 8192, 8192, "v5e").bound_by
    'math'
    """
    return matmul_work(I, J, K, a=a, b=b, out=out).over(rates(chip, compute or a))


def critical_batch(chip: str | Chip, *, compute: str = "bf16", weights: str = "bf16", level: str = "hbm") -> float:
    """Rows B of In[B, D] · W[D, F] above which math, not reading W, takes longer, for D and F much larger than B.

    2·B·D·F / (FLOPs/s) = D·F·itemsize(weights) / (bytes/s), so B = ridge · itemsize(weights) / 2.

    >>> round(critical_batch("v5e"), 1), round(critical_batch("v5e", weights="int8"), 1)
    (240.5, 120.3)

    Neglects the activations' own traffic: `critical_batch_exact` keeps it.
    """
    return ridge(chip, compute, level=level) * itemsize(weights) / 2


def critical_batch_exact(
    D: Number, F: Number, chip: str | Chip, *, compute: str = "bf16", weights: str = "bf16", activations: str = "bf16"
) -> Number:
    """The same with In and Out counted: B such that 2·B·D·F / (FLOPs/s) = (w·D·F + x·B·(D + F)) / (bytes/s).

    B = w·D·F / (2·D·F / ridge − x·(D + F)) = w / (2 / ridge − x/D − x/F); infinite when D and F are so small that no batch makes
    it math-bound. D and F are numbers or NumPy arrays; SizeError where one is not finite and above 0.

    >>> round(critical_batch_exact(8192, 8192, "v5e"), 1)
    255.5
    """
    D, F = positive(D, "D"), positive(F, "F")
    w, x = itemsize(weights), itemsize(activations)
    room = 2 / ridge(chip, compute) - x / D - x / F  # of each weight's bytes; no product that could overflow
    return divided(w, room)


def attainable(intensity: Number, chip: str | Chip, dtype: str = "bf16", *, level: str = "hbm") -> Number:
    """The roof: FLOPs/s reachable at an intensity, min(FLOPs/s, intensity · bytes/s).

    >>> attainable(100, "v5e") / 1e12
    81.9

    `intensity` is a number or a NumPy array above 0 (infinite where nothing is moved); SizeError otherwise.
    """
    intensity = positive(intensity, "the intensity", infinite=True)
    r = rates(chip, dtype)
    peak = r["math"]
    assert peak is not None  # rates() refuses a dtype without one
    return peak / maximum(1.0, ridge(chip, dtype, level=level) / intensity)
