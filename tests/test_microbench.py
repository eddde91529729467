"""The published measurements: well-formed rows, the figures of the catalogue that rest on them, and what cannot be asked."""

from __future__ import annotations

import pytest

import scalebook as sb
from scalebook.errors import ScalebookError
from scalebook.microbench import Benchmark, benchmarks


@pytest.mark.parametrize("row", benchmarks(), ids=lambda b: f"{b.machine}-{b.operation}-{b.size}-{b.kind}")
def test_every_row_is_complete_and_no_row_beats_physics(row: Benchmark) -> None:
    assert row.kind in ("measured", "reported", "compiler") and row.source and row.size > 0
    assert row.unit.startswith(("FLOPs/s", "bytes/s")) or row.unit == "s"
    if not row.machine.startswith(("tpu7x", "v", "h100", "b200")):
        return
    machine = sb.topology(row.machine)
    assert row.chips is None or row.chips <= machine.chips
    if row.operation == "matmul bf16":
        assert row.value < machine.chip.flops_per_s["bf16"] / (machine.chip.devices_per_chip or 1)
    if row.operation == "hbm copy":
        assert machine.chip.hbm_bytes_per_s and row.value < machine.chip.hbm_bytes_per_s


def test_all_rows_are_different_and_counted() -> None:
    every = benchmarks()
    assert len({(b.machine, b.operation, b.chips, b.size) for b in every}) == len(every) == 56
    assert {k: sum(b.kind == k for b in every) for k in ("measured", "reported", "compiler")} == {
        "measured": 38,
        "reported": 5,
        "compiler": 13,
    }


def test_shares_of_the_peak_in_the_catalogue_are_those_of_the_rows() -> None:
    by_id = {m.id: m for m in sb.chip("tpu7x").measurements}
    device = sb.rates("tpu7x", per="device")["math"]
    assert device is not None
    for b in benchmarks("tpu7x", "matmul bf16"):
        assert by_id["matmul_7x_curve"].value[str(b.size)] == pytest.approx(b.value / 1e12, rel=2e-3)
    best = max(benchmarks("tpu7x", "hbm copy"), key=lambda b: b.value)
    assert best.value / (sb.chip("tpu7x").hbm_bytes_per_s or 0) == pytest.approx(by_id["hbm_7x"].value, abs=5e-4)
    gather = max(benchmarks("tpu7x", "all-gather"), key=lambda b: b.size)
    assert gather.value / 200e9 == pytest.approx(by_id["ag_7x_bw"].value, abs=5e-4)


def test_larger_is_faster_but_for_the_plateau() -> None:
    for operation in ("matmul bf16", "all-gather"):
        rates = [b.value for b in sorted(benchmarks("tpu7x", operation), key=lambda b: b.size)]
        assert rates == sorted(rates)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"machine": "h200"}, "unknown machine of a benchmark 'h200'"),
        ({"operation": "allreduce"}, "did you mean 'all-reduce'"),
        ({"kind": "guess"}, "unknown kind of a benchmark"),
        ({"machine": "h100", "operation": "matmul bf16"}, "no benchmark has machine='h100', operation='matmul bf16' together"),
    ],
)
def test_what_cannot_be_asked(asked: dict[str, str], words: str) -> None:
    with pytest.raises(ScalebookError, match=words):
        benchmarks(**asked)
