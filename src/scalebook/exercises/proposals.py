"""Judges of open questions: each reads a proposal, states its conditions, and says by how much a proposal misses them."""

from __future__ import annotations

from scalebook.errors import ExerciseError, unknown
from scalebook.exercises.answers import brief, read
from scalebook.exercises.composed import Score, split
from scalebook.hardware import chip as chip_of
from scalebook.roofline import matmul_time, rates
from scalebook.units import binary, dtype_name, itemsize, percent, si

FORMATS = ("fp32", "bf16", "fp16", "fp8", "int8", "fp4", "int4")


def _proposal(answer: object) -> tuple[str, str, int]:
    """The chip, number format of the weights, and rows, as an answer proposes them."""
    parts = split(answer, ["chip", "weights", "B"])
    try:
        chip = chip_of(parts["chip"]).key  # type: ignore[arg-type]
        weights = dtype_name(parts["weights"])  # type: ignore[arg-type]
        rates(chip)
    except ValueError as e:  # a ScalebookError, or a value that cannot even be shown
        raise ExerciseError(str(e)) from None
    if weights not in FORMATS:
        raise unknown("format of weights", weights, FORMATS, ExerciseError)
    rows = read(parts["B"], "rows")
    if not rows.fits((0, 0, 0)) or rows.value != int(rows.value) or not 1 <= rows.value <= 10**6:
        raise ExerciseError(f"B is {brief(parts['B'])}; it is a whole number of rows from 1 to 1,000,000")
    return chip, weights, int(rows.value)


def balanced_decoder(answer: object, D: int, F: int, limit: float, balance: float) -> Score:
    chip, weights, B = _proposal(answer)
    time = matmul_time(B, D, F, chip, a="bf16", b=weights, compute="bf16")
    even = min(time.math, time.hbm) / max(time.math, time.hbm)
    fast = time.lower <= limit
    rows = (
        ("math", si(time.math, "s"), ""),
        ("HBM", si(time.hbm, "s"), ""),
        ("the longer", si(time.lower, "s"), f"≤ {si(limit, 's')} {'✓' if fast else '✗'}"),
        ("shorter ÷ longer", percent(even), f"≥ {percent(balance)} {'✓' if even >= balance else '✗'}"),
        ("rows per second", si(B / time.lower), ""),
        ("weights", binary(D * F * itemsize(weights)), ""),
    )
    why = [] if fast else [f"Too slow: {time.bound_by} takes longest. Fewer bytes for W, fewer rows, or another chip?"]
    if even < balance:
        idle = (
            "the matrix unit waits for memory: more rows, or fewer bytes per weight"
            if time.bound_by == "hbm"
            else "memory waits: fewer rows"
        )
        why.append(f"One resource idles: {idle}.")
    message = f"{chip_of(chip).name}, {weights} weights, B = {B}: " + ("it meets both conditions." if not why else "not yet.")
    return Score(not why, message, value=even, rows=rows, diagnosis="\n".join(why))
