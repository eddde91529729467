"""Algorithm and bus bandwidth against the factors that nccl-tests document."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

import scalebook as sb
from scalebook.bandwidths import algorithm_bandwidth, bus_bandwidth
from scalebook.errors import ScalebookError, SizeError

# NVIDIA/nccl-tests, doc/PERFORMANCE.md: bus bandwidth ÷ algorithm bandwidth, n ranks
FACTORS = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "reduce-scatter": lambda n: (n - 1) / n,
    "all-gather": lambda n: (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
    "permute": lambda n: 1.0,
}


@given(st.sampled_from(sorted(FACTORS)), st.integers(2, 512), st.integers(1, 10**12), st.floats(1e-6, 10))
def test_the_factor_between_the_two_is_the_documented_one(kind: str, n: int, nbytes: int, seconds: float) -> None:
    bus, algorithm = bus_bandwidth(kind, nbytes, seconds, n), algorithm_bandwidth(kind, nbytes, seconds, n)
    assert bus / algorithm == pytest.approx(FACTORS[kind](n))


def test_by_hand() -> None:
    # eight devices, 1 GB each before and after an all-to-all: 8 GB together, 1 s; each sends and receives 7/8 GB
    assert algorithm_bandwidth("all-to-all", 8e9, 1.0, 8) == 1e9
    assert bus_bandwidth("all-to-all", 8e9, 1.0, 8) == 0.875e9
    # an all-gather of 1 GB in 2.5 ms over 8: 400 GB/s, and 7/8 of it arrive
    assert algorithm_bandwidth("all-gather", 1e9, 2.5e-3, 8) == pytest.approx(400e9)
    assert bus_bandwidth("all-gather", 1e9, 2.5e-3, 8) == pytest.approx(350e9)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"])
def test_a_large_collective_over_a_switch_runs_at_the_rate_of_the_ports(kind: str) -> None:
    mesh = sb.mesh({"X": 8}, on="h100:1x8")
    call = {
        "all-gather": sb.all_gather,
        "reduce-scatter": sb.reduce_scatter,
        "all-reduce": sb.all_reduce,
        "all-to-all": sb.all_to_all,
    }
    t = call[kind](2**40, mesh, "X")
    chip = sb.chip("h100")
    assert chip.links and chip.link_bytes_per_s and chip.link_efficiency
    assert bus_bandwidth(kind, 2**40, t.comms, 8) == pytest.approx(
        chip.links * chip.link_bytes_per_s * chip.link_efficiency, rel=1e-3
    )
    assert bus_bandwidth(kind, 2**40, t.comms, 8) == pytest.approx(t.bytes / t.comms)


def test_what_cannot_be_asked() -> None:
    with pytest.raises(ScalebookError, match="did you mean 'all-gather'"):
        bus_bandwidth("allgather", 1, 1.0, 2)
    for bad in (0, -1.0, float("nan"), None):
        with pytest.raises(SizeError, match="seconds"):
            bus_bandwidth("all-gather", 1, bad, 2)
    with pytest.raises(SizeError, match="nbytes"):
        algorithm_bandwidth("all-gather", -1, 1.0, 2)
    with pytest.raises(SizeError, match="devices"):
        algorithm_bandwidth("all-gather", 1, 1.0, 0)
