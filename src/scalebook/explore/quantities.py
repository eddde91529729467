"""Plain quantities side by side: bars, times by resource, and parts that add up to a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scalebook.errors import ScalebookError, shown, unknown, within
from scalebook.explore.checks import Rows, amount, listed, name_of, named_pairs, words
from scalebook.roofline import Time
from scalebook.units import NO_BREAK, binary, count, digits, percent, si

View = dict[str, Any]
RESOURCES = {"math": "math", "hbm": "HBM", "vmem": "VMEM", "comms": "network", "ici": "ICI", "dcn": "DCN"}
COLOURS = {"math": "math", "hbm": "hbm", "vmem": "hbm", "comms": "ici", "ici": "ici", "dcn": "dcn"}
_COUNTED = ("tokens", "sequences", "rows", "chips", "devices")
_SI = ("B", "B/s", "s", "FLOPs", "FLOPs/s")


def quantity(value: float, unit: str) -> str:
    """A value with its unit: SI prefixes for B, B/s, s, FLOPs, FLOPs/s; binary ones for "GiB"; "%" of a share;
    what is counted is written out; else three digits.

    >>> quantity(240.5, "tokens").replace(NO_BREAK, " "), quantity(96 * 2**30, "GiB").replace(NO_BREAK, " ")
    ('240 tokens', '96 GiB')
    """
    if unit in _SI:
        return si(value, unit)
    if unit == "GiB":
        return binary(value)
    if unit == "%":
        return percent(value)
    if unit in _COUNTED and value >= 10:
        return f"{count(value)}{NO_BREAK}{unit}"
    return f"{digits(value)}{NO_BREAK}{unit}".rstrip(NO_BREAK)


def bars(
    rows: Rows,
    unit: str = "",
    *,
    limit: float | None = None,
    limit_name: str = "limit",
    colour: str = "math",
    highlight: str | Iterable[str] = (),
    quantity_name: str = "",
) -> View:
    """Rows of a name and a value, as horizontal bars from zero, in the given order.

    A value beyond `limit` is hatched from there on. `highlight` names rows to stress: the others are paler.

        >>> [row["text"].replace(NO_BREAK, " ") for row in bars({"v5e": 240.5}, "tokens")["rows"]]
        ['240 tokens']

    Raises ScalebookError for values that are not finite numbers ≥ 0, and for an unknown colour or highlighted row.
    """
    pairs = named_pairs("bars", rows, lambda name, value: amount(f"the length of the bar {name!r}", value), "{name: value}")
    known = dict(pairs)
    chosen = listed("highlight", highlight)
    stressed = [name_of("a row to highlight", name) for name in chosen]
    for name in stressed:
        if name not in known:
            raise unknown("row to highlight", name, known)
    if not within(colour, COLOURS):
        raise unknown("colour of bars", colour, COLOURS)
    marked = _limit(limit, limit_name, words("unit", unit))
    end = None if marked is None else marked["value"]
    made = [
        {"name": name, "value": value, "text": quantity(value, unit), "over": end is not None and value > end,
         "stressed": not stressed or name in stressed}
        for name, value in pairs
    ]  # fmt: skip
    called = words("quantity_name", quantity_name)
    return {"rows": made, "unit": unit, "limit": marked, "colour": COLOURS[colour], "quantity": called}


def _limit(limit: Any, name: str, unit: str) -> View | None:
    if limit is None:
        return None
    value = amount("limit", limit)
    return {"value": value, "text": f"{words('limit_name', name)}: {quantity(value, unit)}"}


def times(rows: Rows) -> View:
    """Rows of a name and a `Time`: for each resource how long it is busy, and which one the others wait for.

    >>> times({"step": Time({"math": 3e-6, "hbm": 4e-6})})["rows"][0]["bound_by"]
    'hbm'

    Raises ScalebookError for a time with no parts, or with a part that is not one known, finite number of seconds ≥ 0.
    """
    made = [time_row(name, parts) for name, parts in named_pairs("times", rows, _parts, "{name: Time}")]
    return {"rows": made, "shared": is_shared(made)}


def _parts(name: str, time: Any) -> dict[str, float]:
    """The seconds of a time, by resource."""
    parts = time.parts if isinstance(time, Time) else None
    if not isinstance(parts, Mapping) or not parts or any(s is None for s in parts.values()):
        raise ScalebookError(f"a row of times is a name and a Time whose parts are all known; found {name!r}: {shown(time)}")
    return {name_of(f"a resource of {name!r}", r): amount(f"the seconds of {shown(r)} in {name!r}", s) for r, s in parts.items()}


def time_row(
    name: str, parts: Mapping[str, float], measured: float | None = None, *, names: Mapping[str, str] | None = None
) -> View:
    """The bars of one time: its parts, and a measured time if there is one; `names` may rename resources."""
    called = {**RESOURCES, **(names or {})}
    longest = max(parts.values())
    made = [{"key": COLOURS.get(r, "dcn"), "name": called.get(r, r), "seconds": s, "text": si(s, "s")} for r, s in parts.items()]
    if measured is not None:
        made.append({"key": "measured", "name": "measured", "seconds": measured, "text": si(measured, "s")})
    bound = next(r for r, s in parts.items() if s == longest)
    return {"name": name, "parts": made, "seconds": max(longest, measured or 0.0), "bound": longest, "bound_by": bound}


def is_shared(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether rows of times can share one scale: none is over 20 times another."""
    totals = [row["seconds"] for row in rows]
    return max(totals) <= 20 * min(totals) if totals and min(totals) > 0 else True


def stacks(
    rows: Mapping[str, Mapping[str, float]], unit: str = "GiB", *, limit: float | None = None, limit_name: str = "limit"
) -> View:
    """Rows of parts that add up, each named at its part, against a limit.

    >>> stacks({"all": {"weights": 2**30, "cache": 2**30}}, limit=3 * 2**30)["rows"][0]["verdict"].replace(NO_BREAK, " ")
    '✓ fits, 1 GiB free'

    Raises ScalebookError for a row without parts, and for parts or a limit that are not finite numbers ≥ 0.
    """
    marked = _limit(limit, limit_name, words("unit", unit))
    names: dict[str, int] = {}
    made = []
    for name, parts in named_pairs("stacks", rows, _stack, "{name: {part: value}}"):
        for part in parts:
            names.setdefault(part, len(names))
        total = sum(parts.values())
        drawn = [
            {"name": p, "value": v, "text": quantity(v, unit), "colour": f"cat-{_CATEGORY[names[p] % 8]}"}
            for p, v in parts.items()
        ]
        free = None if marked is None else marked["value"] - total
        verdict = (
            "" if free is None else f"✓ fits, {quantity(free, unit)} free" if free >= 0 else f"✗ {quantity(-free, unit)} too much"
        )
        made.append({"name": name, "parts": drawn, "total": total, "text": quantity(total, unit), "verdict": verdict,
                     "over": free is not None and free < 0})  # fmt: skip
    return {"rows": made, "unit": unit, "limit": marked}


def _stack(name: str, parts: Any) -> dict[str, float]:
    """The parts of a stacked row, by name."""
    if not isinstance(parts, Mapping) or not parts:
        raise ScalebookError(f"a stacked row is a name and its parts, {{part: value}}; found {name!r}: {shown(parts)}")
    read = {name_of(f"a part of {name!r}", p): amount(f"the part {shown(p)} of the row {name!r}", v) for p, v in parts.items()}
    if len(read) < len(parts):
        raise ScalebookError(f"the row {name!r} has two parts of one name; found {shown(list(parts))}")
    return read


_CATEGORY = (1, 6, 3, 4, 8, 5, 7, 2)  # neighbours far apart; 2 resembles HBM, so it comes last
