"""The roofline explorer: one matmul on one chip; what binds, and from how many tokens on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.explore.rooflines import BATCHES
from scalebook.figures import Figure, matmul_roofline
from scalebook.hardware import chip as chip_of, chips
from scalebook.live.controls import Choice, Slider
from scalebook.live.explorers import Explorer
from scalebook.roofline import Work
from scalebook.tables import Table
from scalebook.units import count, digits, itemsize, percent, plural, si

SIDES = (16, 32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192, 10240, 12288, 14336, 16384, 18432,
         20480, 24576, 28672, 32768, 49152, 65536)  # fmt: skip
STORED = ("fp32", "bf16", "int8", "int4")  # of weights, beside the format in which they are multiplied
EVERYWHERE = {
    *STORED,
    *(dtype for c in chips() for dtype in c.flops_per_s),
}  # formats that some chip has, or that weights are stored in
Options = tuple[tuple[str, str], ...]


def _dtypes(state: Mapping[str, Any]) -> Options:
    """The formats in which the chip's matrix unit multiplies."""
    return tuple((dtype, dtype) for dtype in chip_of(state["chip"]).flops_per_s)


def _weights(state: Mapping[str, Any]) -> Options:
    """The format of the arithmetic, and what is smaller: converted on the way to the matrix unit."""
    smaller = [w for w in STORED if itemsize(w) < itemsize(state["dtype"])]
    return tuple((w, w) for w in (state["dtype"], *smaller))


def settle(state: dict[str, Any]) -> dict[str, Any]:
    """A format that another chip lacks gives way to the first that it has; weights are not kept larger than they are used."""
    known = [dtype for dtype, _ in _dtypes(state)]
    if state["dtype"] in EVERYWHERE and state["dtype"] not in known:
        state = {**state, "dtype": known[0]}
    if state["dtype"] in known and state["weights"] in EVERYWHERE and state["weights"] not in dict(_weights(state)):
        state = {**state, "weights": state["dtype"]}
    return state


def figure(chip: str, dtype: str, weights: str, B: int, D: int, F: int) -> Figure:
    """The roof of the chip, and under it the point of In[B, D] · W[D, F]."""
    return matmul_roofline(chip=chip, B=B, D=D, F=F, dtype=dtype, weights=weights)


def python(chip: str, dtype: str, weights: str, B: int, D: int, F: int) -> str:
    """The same in code."""
    kept = "" if weights == dtype else f', weights="{weights}"'
    return f'import scalebook as sb\n\nsb.figures.matmul_roofline(chip="{chip}", B={B}, D={D}, F={F}, dtype="{dtype}"{kept})\n'


def table(view: Mapping[str, Any]) -> Table:
    """The batch of the point, and those at the small dots: intensity, times, what binds, and the share of the peak."""
    panel, state = view["panels"][0], view["state"]
    level, peak = panel["levels"][0], panel["ceilings"][0]["peak"]
    rows = []
    for c in view["choices"]:
        if c["B"] & (c["B"] - 1) and c["B"] != state["B"]:
            continue
        time = Work({"math": c["math"], "hbm": c["hbm"]}).over({"math": peak, "hbm": level["bytes_per_s"]})
        binds = "math" if time.bound_by == "math" else level["name"]
        rows.append((count(c["B"]), digits(c["intensity"]), si(time.math, "s"), si(time.hbm, "s"), binds,
                     percent(time.math / time.lower)))  # fmt: skip
    head = ("tokens", "FLOPs per byte", "math", level["name"], "binds", "of peak")
    sizes = f"D = {count(state['D'])}, F = {count(state['F'])}"
    what = f"{state['dtype']} arithmetic, {state['weights']} weights"
    ridge = (
        f"The ridge is at {digits(level['ridges'][0])} FLOPs per byte; {si(peak, 'FLOPs/s')}, {si(level['bytes_per_s'], 'B/s')}."
    )
    return Table(f"In[B, D] · W[D, F] on {panel['name']}: {sizes}, {what}", head, tuple(rows), (ridge,))


EXPLORER = Explorer(
    name="roofline",
    title="A matmul under a chip's roof",
    controls=(
        Slider("B", "Tokens B", BATCHES, lambda n: plural(n, "token")),
        Choice("chip", "Chip", tuple((c.key, c.name) for c in chips()), segments=False),
        Choice("dtype", "Arithmetic in", _dtypes, segments=False),
        Choice("weights", "Weights stored in", _weights, segments=False),
        Slider("D", "Input width D", SIDES, count),
        Slider("F", "Output width F", SIDES, count),
    ),
    start={"chip": "v5e", "dtype": "bf16", "weights": "bf16", "B": 64, "D": 8192, "F": 8192},
    figure=figure,
    python=python,
    table=table,
    settle=settle,
)
