"""Published measurements of single operations: matrix products, copies in memory, collectives, each with its source.

The rows are in `data/measured/microbench.csv`, in base units; its head says what the columns mean. Nothing here is used to predict:
the rows are there to hold predictions against.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from scalebook.errors import ScalebookError, unknown


@dataclass(frozen=True)
class Benchmark:
    """One row: what ran on what, its size, and the value in the unit that the source defines.

    `kind`: "measured" by who published it, "reported" in a thread or README, "compiler" for a compiler's own schedule.
    """

    machine: str
    operation: str
    chips: int | None  # that take part; None where the source does not say
    size: int
    size_unit: str
    value: float
    unit: str
    kind: str
    source: str


@cache
def _rows() -> tuple[Benchmark, ...]:
    text = resources.files("scalebook").joinpath("data/measured/microbench.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        Benchmark(
            machine=r["machine"],
            operation=r["operation"],
            chips=int(r["chips"]) if r["chips"] else None,
            size=int(r["size"]),
            size_unit=r["size_unit"],
            value=float(r["value"]),
            unit=r["unit"],
            kind=r["kind"],
            source=r["source"],
        )
        for r in rows
    )


def benchmarks(machine: str | None = None, operation: str | None = None, kind: str | None = None) -> tuple[Benchmark, ...]:
    """The rows of a machine (or of all whose name begins so), an operation and a kind; all that are not given.

    >>> best = max(benchmarks("tpu7x", "matmul bf16"), key=lambda b: b.value)
    >>> best.size, round(best.value / 1e12), best.unit
    (32768, 956, 'FLOPs/s per device')

    Raises ScalebookError for a machine, an operation or a kind that no row has, and for a combination that none has.
    """
    found = _rows()
    for what, asked in (("machine", machine), ("operation", operation), ("kind", kind)):
        if asked is None:
            continue
        known = dict.fromkeys(getattr(b, what) for b in _rows())
        begins = what == "machine"
        if not any(k == asked or (begins and k.startswith(asked)) for k in known):
            raise unknown(f"{what} of a benchmark", asked, known)
        found = tuple(b for b in found if (v := getattr(b, what)) == asked or (begins and v.startswith(asked)))
    if not found:
        asked_for = ", ".join(f"{n}={v!r}" for n, v in (("machine", machine), ("operation", operation), ("kind", kind)) if v)
        raise ScalebookError(f"no benchmark has {asked_for} together; leave one out, or see benchmarks() for all rows")
    return found
