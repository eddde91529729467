"""This very machine's roofline, measured: peak matmul FLOPs/s, streaming bytes/s, and real matmuls placed beside them.

Every number here is of the machine that runs it, at that moment, with whatever else it is doing. Times are medians of several
batches, each after a warm-up; a batch is as many calls as last 10 ms, awaited once, so that the cost of starting a call is spread.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from scalebook.errors import ScalebookError, SizeError, shown, unknown
from scalebook.lab.backend import devices
from scalebook.roofline import Time, Work, matmul_work
from scalebook.units import as_number, dtype_name, is_array, si

_DTYPES = {"fp32": jnp.float32, "bf16": jnp.bfloat16, "fp16": jnp.float16, "int8": jnp.int8}
_BATCHES, _BATCH_SECONDS, _MOST_CALLS = 5, 0.01, 100


@dataclass(frozen=True)
class Point:
    """One measured program: its FLOPs, the bytes it must read and write once, and the median seconds of a call.

    >>> p = Point("matmul", "fp32", 2_000_000, 1_000_000, 1e-3, 0.9e-3, 1.2e-3)
    >>> p.intensity, p.flops_per_s
    (2.0, 2000000000.0)
    """

    name: str
    dtype: str
    flops: int
    bytes: int
    seconds: float
    fastest: float
    slowest: float

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.bytes

    @property
    def flops_per_s(self) -> float:
        """FLOPs ÷ median seconds."""
        return self.flops / self.seconds

    @property
    def bytes_per_s(self) -> float:
        """Bytes ÷ median seconds."""
        return self.bytes / self.seconds

    def __str__(self) -> str:
        return (
            f"{self.name} {self.dtype}: {si(self.seconds, 's')}, {si(self.flops_per_s, 'FLOPs/s')}, {si(self.bytes_per_s, 'B/s')}"
        )


@dataclass(frozen=True)
class Measurement:
    """A machine's measured roofline: the best matmul's FLOPs/s, and the bytes/s of streaming an array that no cache holds.

    `points` are all the programs timed for it; `overhead_seconds` is what a call that does next to nothing takes.
    """

    device: str
    dtype: str
    flops_per_s: float
    hbm_bytes_per_s: float
    overhead_seconds: float
    points: tuple[Point, ...] = field(repr=False)

    @property
    def ridge(self) -> float:
        """FLOPs per byte at which arithmetic and memory take equally long here."""
        return self.flops_per_s / self.hbm_bytes_per_s

    @property
    def rates(self) -> dict[str, float | None]:
        """The measured rates by resource, as `Work.over` takes them."""
        return {"math": self.flops_per_s, "hbm": self.hbm_bytes_per_s}

    def predict(self, work: Work) -> Time:
        """The time of `work` by this roofline."""
        return work.over(self.rates)

    def attainable(self, intensity: float) -> float:
        """The roof: FLOPs/s reachable at an intensity, min(FLOPs/s, intensity · bytes/s)."""
        return min(self.flops_per_s, intensity * self.hbm_bytes_per_s)

    def explain(self) -> str:
        """The rates, the ridge, and every timed program, as text."""
        lines = [
            f"measured on {self.device}",
            f"peak      {si(self.flops_per_s, 'FLOPs/s')} ({self.dtype} matmul)",
            f"streaming {si(self.hbm_bytes_per_s, 'B/s')}",
            f"ridge     {si(self.ridge, 'FLOPs/B')}",
            f"a call    {si(self.overhead_seconds, 's')} at least",
            *(f"  {p}" for p in self.points),
        ]
        return "\n".join(lines)

    __str__ = explain


def measure_machine(dtype: str = "fp32", *, matmuls: tuple[int, ...] = (), streams: tuple[int, ...] = ()) -> Measurement:
    """The roofline of jax's default device, measured in about two seconds on a CPU.

    Times square matmuls of several sizes and takes the best rate; streams arrays (read and written in place, x·a + b) of several
    sizes in bytes and takes the rate of the largest. The sizes default to what suits a CPU or an accelerator. A published peak is
    what the hardware could do; this is what jax gets out of it here.

    Raises ScalebookError for a dtype that is not timed here.
    """
    device = devices(1)[0]
    cpu = device.platform == "cpu"
    sizes = matmuls or ((512, 1024, 1536) if cpu else (2048, 4096, 8192))
    lengths = streams or ((2**20, 2**24, 2**28) if cpu else (2**26, 2**28, 2**30))
    products = [measure_matmul(n, n, n, dtype) for n in sizes]
    flows = [_stream(nbytes) for nbytes in sorted(lengths)]
    name = f"{device.device_kind} with {os.cpu_count()} cores" if cpu else str(device.device_kind)
    return Measurement(
        device=name,
        dtype=dtype_name(dtype),
        flops_per_s=max(p.flops_per_s for p in products),
        hbm_bytes_per_s=flows[-1].bytes_per_s,
        overhead_seconds=_stream(8).seconds,
        points=(*products, *flows),
    )


def measure_matmul(I: int, J: int, K: int, dtype: str = "fp32") -> Point:
    """A[I, J] · B[J, K] → C[I, K] timed on jax's default device.

    2·I·J·K FLOPs; A and B read once, C written once. int8 products are written as int32, others in their own dtype; fp32 is computed
    in fp32 (not in passes of bf16) where the hardware would round it by default.

    Raises SizeError for a size below 1, ScalebookError for a dtype that is not timed here.
    """
    given = {"I": I, "J": J, "K": K}
    numbers = {n: None if is_array(v) else as_number(v) for n, v in given.items()}
    if bad := {n: given[n] for n, v in numbers.items() if not isinstance(v, int) or v < 1}:
        raise SizeError(
            f"measure_matmul needs whole sizes of at least 1; found {shown(bad)} in I={shown(I)}, J={shown(J)}, K={shown(K)}"
        )
    I, J, K = (int(v) for v in given.values())
    name = dtype_name(dtype)
    if name not in _DTYPES:
        raise unknown("dtype to time a matmul in", dtype, _DTYPES, ScalebookError)
    devices(1)  # starts jax with as many simulated devices as the book needs later
    out = jnp.int32 if name == "int8" else _DTYPES[name]

    @jax.jit
    def multiply(a: Any, b: Any) -> Any:
        return jnp.matmul(a, b, precision="highest" if name == "fp32" else None, preferred_element_type=out)

    a, b = jnp.ones((I, J), _DTYPES[name]), jnp.ones((J, K), _DTYPES[name])
    seconds = _timed(lambda _: multiply(a, b), None)
    work = matmul_work(I, J, K, a=name, b=name, out="int32" if name == "int8" else name).amounts
    return Point(f"matmul {I}×{J}×{K}", name, work["math"], work["hbm"], *seconds)


def _stream(nbytes: int) -> Point:
    """Each number of an fp32 array read, multiplied, added to, and written back where it was."""
    step = jax.jit(lambda x: x * 0.999 + 0.001, donate_argnums=0)
    n = max(1, nbytes // 4)
    seconds = _timed(step, jnp.ones(n, jnp.float32))
    return Point(f"stream {si(4 * n, 'B')}", "fp32", 2 * n, 8 * n, *seconds)


def _timed(call: Callable[[Any], Any], x: Any) -> tuple[float, float, float]:
    """Median, least and largest seconds of one call, over several batches; each call takes what the one before gave."""

    def batch(calls: int) -> float:
        nonlocal x
        began = time.perf_counter()
        for _ in range(calls):
            x = call(x)
        jax.block_until_ready(x)
        return (time.perf_counter() - began) / calls

    batch(1)  # compiles
    once = min(batch(1), batch(1))
    calls = max(1, min(_MOST_CALLS, round(_BATCH_SECONDS / max(once, 1e-9))))
    each = [batch(calls) for _ in range(_BATCHES)]
    return statistics.median(each), min(each), max(each)
