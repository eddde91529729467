"""What the figures of the chapter on TPUs show: a systolic array at work, arrays in their tiles, and the levels of memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from scalebook.errors import SizeError, unknown
from scalebook.explore.checks import positive
from scalebook.hardware import chip as chip_of
from scalebook.hierarchy import levels
from scalebook.systolic import Timetable
from scalebook.tiling import padding
from scalebook.units import binary, digits, si

View = dict[str, Any]
MOVED = (*(m * 10**p for p in range(5, 11) for m in (1, 2, 5)), 10**11)  # bytes that a reader can move, 100 kB to 100 GB
MOST_SIDE, MOST_ROWS = 8, 32  # of an array that is drawn, and of the matrix that passes through it


def systolic(
    rows: int = 8,
    dim: int | tuple[int, int] = 4,
    *,
    tiles: int = 1,
    cycle: int | None = None,
    cycles: Sequence[int] | None = None,
) -> View:
    """A systolic array at a few telling cycles, or at one: `cycle`, a step of a stepper.

    `rows` of A pass through an array of `dim` cells (one number, or rows and columns) that holds `tiles` tiles of weights in turn.

    >>> view = systolic(8, 4)
    >>> view["total"], [p["cycle"] for p in view["panels"]], view["busy"][10]
    (18, [2, 4, 6, 10, 14, 17], 16)

    Raises SizeError for more than 8 × 8 cells, 32 rows or 4 tiles, and for a cycle that does not occur.
    """
    R, C = (dim, dim) if isinstance(dim, int) else dim
    if not (1 <= R <= MOST_SIDE and 1 <= C <= MOST_SIDE and 1 <= rows <= MOST_ROWS and 1 <= tiles <= 4):
        raise SizeError(
            f"a picture shows 1 to {MOST_SIDE} rows and columns of cells, 1 to {MOST_ROWS} rows of A and up to 4 tiles; found {R} x {C} cells, "
            f"{rows} rows, {tiles} tiles"
        )
    table = _timetable(rows, tiles, (R, C))
    total = table.cycles
    chosen = [cycle] if cycle is not None else list(cycles) if cycles is not None else _telling(table)
    wrong = [n for n in chosen if not 0 <= n < total]
    if wrong:
        raise SizeError(f"cycle {wrong[0]} does not occur: this run has cycles 0 to {total - 1}")
    return {
        "shape": [R, C],
        "rows": rows,
        "tiles": tiles,
        "total": total,
        "busy": list(table.busy),
        "phases": list(_phases(table)),
        "useful": rows * tiles / total,  # rows · R · C · tiles useful multiply-adds of R · C · total
        "panels": [_panel(table, n) for n in chosen],
    }


@lru_cache(maxsize=64)
def _timetable(rows: int, tiles: int, shape: tuple[int, int]) -> Timetable:
    """The timetable of a run, kept while a reader steps through it."""
    return Timetable(rows, tiles, shape)


def _telling(table: Timetable) -> list[int]:
    """Half-way through the first weights, first number in, the wave, the fullest, the last row on its way, the last sum out."""
    R, C = table.shape
    fullest = max(range(table.cycles), key=lambda n: (table.busy[n], -abs(n - table.cycles // 2)))
    last_fed = table.cycles - (R + C - 1)
    return sorted({R // 2, R, R + min(2, R - 1), fullest, last_fed + (R + C - 2) // 2, table.cycles - 1})


@lru_cache(maxsize=64)
def _phases(table: Timetable) -> tuple[str, ...]:
    """What the array does, cycle by cycle.

    It drains when no number enters any more; before, it waits for weights while a cell is done with one tile and has not begun the
    next; it fills until the first number is in the last cell; what remains is the last row of A on its way into the lower rows.
    """
    R, C = table.shape
    period, found = max(table.rows, R), []
    last_in = R + (table.tiles - 1) * period + table.rows - 1 + R - 1
    for n, busy in enumerate(table.busy):
        reached = range(max(0, n - R - (R + C - 2)), n - R + 1)  # cycles since the first number could be in a cell, for all cells
        between = any(s // period < table.tiles - 1 and s % period >= table.rows for s in reached)
        found.append(
            "weights move in" if n < R
            else "all at work" if busy == R * C
            else "draining" if n > last_in
            else "waits for weights" if between
            else "filling" if n < R + R + C - 2
            else "last row enters"
        )  # fmt: skip
    return tuple(found)


def _panel(table: Timetable, cycle: int) -> View:
    R, _ = table.shape
    spots = table.at(cycle)
    cells = [
        [
            {"row": row, "held": tile is not None or waiting, "moving": moving, "tile": tile, "next": tile is not None and waiting}
            for row, tile, waiting, moving in line
        ]
        for line in spots
    ]  # fmt: skip
    outputs = [{"row": s.row, "column": c, "tile": s.tile} for c, s in enumerate(spots[R - 1]) if s.row is not None]
    return {"cycle": cycle, "phase": _phases(table)[cycle], "busy": table.busy[cycle], "cells": cells, "outputs": outputs}


def tiles(arrays: Iterable[Any] | Mapping[str, Any]) -> View:
    """Arrays in the tiles in which a TPU keeps them: (shape, dtype) or (shape, dtype, minor_to_major), or a mapping of names to such.

    >>> [(a["padded"], a["factor_text"]) for a in tiles([((100, 200), "fp32"), ((128, 4), "int32")])["arrays"]]
    [([104, 256], '1.33×'), ([128, 128], '32×')]

    Each is shown by its two fastest dimensions. Raises SizeError for an array of one dimension, or with none in the list.
    """
    named = list(arrays.items()) if isinstance(arrays, Mapping) else [("", a) for a in arrays]
    if not named:
        raise SizeError("a picture of tiles needs at least one array; found none")
    return {"arrays": [_tiled(name, *entry) for name, entry in named]}


def _tiled(name: str, shape: Sequence[int], dtype: str = "fp32", minor_to_major: Any = None) -> View:
    if len(shape) < 2:
        raise SizeError(f"a picture of tiles shows arrays of two dimensions or more; found {tuple(shape)}")
    p = padding(shape, dtype, minor_to_major=minor_to_major)
    lanes, rows = p.minor_to_major[:2]
    others = 1
    for i in p.minor_to_major[2:]:
        others *= p.shape[i]
    return {
        "name": name,
        "text": f"{p.dtype}[{', '.join(f'{n:,}' for n in p.shape)}]",
        "rows": p.shape[rows],
        "lanes": p.shape[lanes],
        "padded": [p.padded[rows], p.padded[lanes]],
        "tile": [p.tile.rows, p.tile.lanes],
        "others": others,
        "factor": float(p.factor),
        "factor_text": f"{digits(float(p.factor))}×",
        "bytes_text": binary(p.nbytes),
        "padded_text": binary(p.padded_nbytes),
    }


def memory_levels(chip: Any = "v5e", nbytes: float | None = None, *, only: Iterable[str] = ()) -> View:
    """What each level of a TPU holds, and how fast one chip gets at it; with `nbytes`, how long those take, and what holds them.

    >>> [level["rate_text"].replace("\\u00a0", " ") for level in memory_levels("v5e")["levels"]]
    ['unknown', '17.8 TB/s', '819 GB/s', '180 GB/s', '16 GB/s', '2.5 GB/s']

    `only` names the levels to show. Raises HardwareError for a chip that is no TPU.
    """
    found = levels(chip)
    wanted = list(only)
    for key in wanted:
        if key not in {x.key for x in found}:
            raise unknown("level of memory", key, [x.key for x in found], SizeError)
    moved = None if nbytes is None else positive("nbytes", nbytes)
    made = []
    for x in found:
        if wanted and x.key not in wanted:
            continue
        seconds = None if moved is None else x.seconds(moved)
        made.append(
            {"key": x.key, "name": x.name, "what": x.what, "nbytes": x.nbytes, "rate": x.bytes_per_s, "holds_text": binary(x.nbytes),
             "rate_text": si(x.bytes_per_s, "B/s"), "seconds": seconds, "seconds_text": si(seconds, "s"), "colour": _COLOUR[x.key],
             "fits": None if moved is None or x.nbytes is None else moved <= x.nbytes,
             "span": [] if moved is None or seconds is None else [x.seconds(min(moved, MOVED[0])), x.seconds(max(moved, MOVED[-1]))]}
        )  # fmt: skip
    return {
        "chip": chip_of(chip).name,
        "levels": made,
        "nbytes": moved,
        "moved": None if moved is None else si(moved, "B"),
        "stops": [] if moved is None else [[x.seconds(n), n] for x in found if x.key == "hbm" for n in MOVED],
    }


_COLOUR = {"vreg": "math", "vmem": "hbm", "hbm": "hbm", "ici": "ici", "host": "dcn", "dcn": "dcn"}
