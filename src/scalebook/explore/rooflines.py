"""What the roofline figures show: the roofs of chips, and where an operation's point lies under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from scalebook.errors import ScalebookError, shown, unknown, within
from scalebook.explore.checks import is_positive, listed, name_of, positive, whole
from scalebook.hardware import Chip, chip as chip_of
from scalebook.roofline import Work, matmul_work, rates
from scalebook.units import dtype_name, plural

View = dict[str, Any]
Rates = Mapping[str, float | None]
Machine = str | Chip | Mapping[str, Rates]
LEVELS = {"hbm": "HBM", "vmem": "VMEM"}
BATCHES = (*range(1, 8), *(n * 2**k for k in range(10) for n in range(8, 16)), 8192)  # tokens that a reader can choose


def roofline(
    chips: Machine | Sequence[str | Chip],
    points: Mapping[str, Work | float | tuple[Work, float]] | None = None,
    *,
    dtype: str | Sequence[str] = "bf16",
    levels: Sequence[str] = ("hbm",),
) -> View:
    """The roofs of one or several chips, and each point's place under them.

    `chips`: a chip, several, or machines by their rates, `{"this machine": {"math": 1e12, "hbm": 5e10}}`. A point is a `Work`;
    with measured seconds, `(work, seconds)`; or an intensity alone. Several dtypes are several ceilings; points stand under the
    first. `levels` may add "vmem": each point is then also shown as if its bytes came from there.

        >>> view = roofline("v5e", {"64 tokens": matmul_work(64, 8192, 8192)})
        >>> [round(p["intensity"], 1) for p in view["panels"][0]["points"]]
        [63.0]

    Raises HardwareError for an unknown chip or rate, ScalebookError for a point that cannot be placed.
    """
    formats = [dtype_name(d) for d in listed("dtype", dtype)]
    if not formats:
        raise ScalebookError("a roofline needs at least one dtype; found none")
    heights = listed("levels", levels)
    if not heights:
        raise ScalebookError("a roofline needs at least one memory level; found none. Known: hbm, vmem")
    for level in heights:
        if not within(level, LEVELS):
            raise unknown("memory level", level, LEVELS)
    if not isinstance(points, Mapping | None):
        raise ScalebookError(f"points are given as {{name: Work}}; found {shown(points)} of type {type(points).__name__}")
    named = {name_of("a point", name): what for name, what in (points or {}).items()}
    machines = _machines(chips, formats)
    panels = [_panel(name, each, heights, own=own, points=named) for name, each, own in machines]
    return {"panels": panels}


def matmul_roofline(
    chip: str = "v5e", B: int = 64, D: int = 8192, F: int = 8192, dtype: str = "bf16", weights: str | None = None
) -> View:
    """In[B, D] · W[D, F] on one chip, and the batches at which the point could stand instead.

    >>> matmul_roofline("v5e", B=1024)["panels"][0]["points"][0]["bound_by"]
    'math'
    """
    B, D, F = (whole(f"the size {letter}", size) for letter, size in {"B": B, "D": D, "F": F}.items())
    used = dtype_name(dtype)
    stored = used if weights is None else dtype_name(weights)
    view = roofline(chip, {plural(B, "token"): _product(B, D, F, used, stored)}, dtype=used)
    return view | {
        "state": {"chip": chip_of(chip).key, "B": B, "D": D, "F": F, "dtype": used, "weights": stored},
        "choices": [dict(c) for c in _choices(D, F, used, stored)],
    }


def _product(B: int, D: int, F: int, dtype: str, weights: str) -> Work:
    return matmul_work(B, D, F, a=dtype, b=weights, out=dtype)


@lru_cache(maxsize=64)
def _choices(D: int, F: int, dtype: str, weights: str) -> tuple[View, ...]:
    """The product at each of BATCHES, with its FLOPs and bytes: the same while only the batch or the chip changes."""
    products = [(n, _product(n, D, F, dtype, weights)) for n in BATCHES]
    return tuple({"B": n, "intensity": w.intensity(), **w.amounts} for n, w in products)


def _machines(chips: Any, formats: list[str]) -> list[tuple[str, dict[str, Rates], bool]]:
    """(name, dtype → rates, whether the machine is described by its rates only)."""
    if isinstance(chips, str | Chip):
        chips = [chips]
    if isinstance(chips, Mapping):
        if not chips or not all(isinstance(r, Mapping) for r in chips.values()):
            raise ScalebookError(
                f'a machine of your own is given as {{"its name": {{"math": FLOPs/s, "hbm": bytes/s}}}}; found {shown(chips)}'
            )
        for name, rate in chips.items():
            lacking = [r for r in ("math", "hbm") if not is_positive(rate.get(r))]
            if lacking:
                raise ScalebookError(
                    f"the machine {shown(name)} needs a positive rate for {' and '.join(lacking)}; found {shown(dict(rate))}"
                )
        return [(name_of("a machine", name), {formats[0]: _rates(name, rate)}, True) for name, rate in chips.items()]
    try:
        found = [chip_of(c) for c in chips]
    except TypeError:
        what = f"found {shown(chips)} of type {type(chips).__name__}"
        raise ScalebookError(f"a roofline is of a chip, such as 'v5e', several, or {{name: rates}}; {what}") from None
    if not found:
        raise ScalebookError("a roofline needs at least one chip; found none")
    return [(c.name, {d: rates(c, d) for d in formats}, False) for c in found]


def _rates(name: Any, rate: Mapping[str, Any]) -> dict[str, float | None]:
    """The rates of a machine of one's own that a roofline needs, checked."""
    return {r: None if rate.get(r) is None else positive(f"the rate {r!r} of {shown(name)}", rate[r]) for r in ("math", *LEVELS)}


def _panel(
    name: str, rates_by_dtype: Mapping[str, Rates], levels: Sequence[str], *, own: bool, points: Mapping[str, Any]
) -> View:
    first = next(iter(rates_by_dtype.values()))
    peaks: dict[str, Any] = {d: r["math"] for d, r in rates_by_dtype.items()}
    known: dict[str, Any] = {level: first.get(level) for level in levels}
    missing = [level for level, rate in known.items() if rate is None]
    if missing:
        raise ScalebookError(
            f"{name} has no known bandwidth for {' and '.join(missing)}; leave it out of `levels`, which are {tuple(levels)}"
        )
    return {
        "name": name,
        "ceilings": [{"dtype": d, "peak": p, "name": "measured peak" if own else f"{d} peak"} for d, p in peaks.items()],
        "levels": [
            {"level": v, "name": "memory" if own and v == "hbm" else LEVELS[v], "bytes_per_s": known[v], "ridges": [p / known[v] for p in peaks.values()]}
            for v in levels
        ],
        "points": [_point(label, what, first, levels) for label, what in points.items()],
    }  # fmt: skip


def _point(name: str, what: Any, rate: Mapping[str, Any], levels: Sequence[str]) -> View:
    measured = None
    if isinstance(what, tuple):
        if len(what) != 2 or not isinstance(what[0], Work) or not is_positive(what[1]):
            raise ScalebookError(f"a measured point is (work, seconds) with seconds > 0; found {name!r}: {shown(what)}")
        what, measured = what[0], positive("the measured seconds", what[1])
    only_ratio = is_positive(what)
    given = {"math": what, "hbm": 1} if only_ratio else what.amounts if isinstance(what, Work) else None
    if not isinstance(given, Mapping) or not all(is_positive(given.get(r)) for r in ("math", "hbm")):
        raise ScalebookError(
            f'a point is a Work with positive "math" and "hbm", such as matmul_work(…), or a positive intensity; found {name!r}: {shown(what)}'
        )
    flops, moved = (positive(r, given[r]) for r in ("math", "hbm"))
    by_level = []
    for level in levels:
        time = Work({"math": flops, level: moved}).over({"math": rate["math"], level: rate[level]})
        reached = flops / time.lower
        by_level.append({"level": level, "achieved": reached, "share": reached / rate["math"], "bound_by": time.bound_by,
                         "seconds": time.lower, "parts": dict(time.parts)})  # fmt: skip
    point = {
        "name": name,
        "intensity": flops / moved,
        "by_level": by_level,
        **by_level[0],
        "timed": not only_ratio,
        "measured": None,
    }
    if measured is not None:
        reached = flops / measured
        point["measured"] = {"seconds": measured, "achieved": reached, "share": reached / rate["math"]}
    return point
