"""Bandwidths of a collective as benchmarks print them, from its bytes and its time.

*Algorithm bandwidth* is the size that the benchmark names ÷ seconds. *Bus bandwidth* is what every device receives ÷ seconds: it
does not depend on the number of devices and compares with the one-way rate of a device's links. A reduction inside the switch
(NVLink SHARP) moves fewer bytes than bus bandwidth counts, so there it may exceed that rate.
"""

from __future__ import annotations

from typing import Any

from scalebook.collectives import check_bytes, received
from scalebook.units import positive

Number = Any


def algorithm_bandwidth(kind: str, nbytes: Number, seconds: Number, devices: int) -> Number:
    """Bytes of one device's larger buffer ÷ seconds, as nccl-tests print `algbw`.

    That buffer is V = `nbytes` for all-gather, reduce-scatter and all-reduce, V/k for all-to-all and permute, V the array as the
    group of k devices holds it together.

    >>> algorithm_bandwidth("all-reduce", 2**30, 2**30 / 275e9, 8) / 1e9
    275.0

    Raises ScalebookError for an unknown kind, SizeError for bytes, seconds or devices that cannot be.
    Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.
    """
    received(kind, devices)
    share = devices if kind in ("all-to-all", "permute") else 1
    return check_bytes(nbytes) / share / positive(seconds, "seconds")


def bus_bandwidth(kind: str, nbytes: Number, seconds: Number, devices: int) -> Number:
    """Bytes that each device receives ÷ seconds, as nccl-tests print `busbw`: V · received(kind, k) ÷ seconds.

    In terms of the algorithm bandwidth: × 2(k−1)/k for all-reduce, × (k−1)/k for all-gather, reduce-scatter and all-to-all, × 1
    for permute.

    >>> bus_bandwidth("all-reduce", 2**30, 2**30 / 275e9, 8) / 1e9    # 275 · 2 · 7/8
    481.25

    Errors and source as in `algorithm_bandwidth`.
    """
    return check_bytes(nbytes) * received(kind, devices) / positive(seconds, "seconds")
