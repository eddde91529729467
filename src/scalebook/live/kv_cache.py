"""The explorer of the KV cache: its bytes against the length of the sequences, and how many of them fit beside the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook import figures
from scalebook.explore import kv_cache
from scalebook.explore.lengths import LENGTHS
from scalebook.hardware import chips
from scalebook.live.controls import Choice, Slider
from scalebook.live.explorers import Explorer
from scalebook.live.inputs import MODELS
from scalebook.tables import Table
from scalebook.units import binary, count, plural

DTYPES = ("bf16", "fp8", "int4")
BATCHES = tuple(2**n for n in range(13))
DEVICES = tuple(2**n for n in range(8))


def figure(model: str, chip: str, tp: int, weights: str, dtype: str, batch: int, at: int) -> figures.Figure:
    """The curves against the limit, the marked length, and what fits there."""
    view = kv_cache(model, at=at, batch=batch, chip=chip, dtype=dtype, tp=tp, weights=weights)
    return figures.draw("kv_cache", {**view, "stops": {"key": "at", "values": list(LENGTHS)}})


def python(model: str, chip: str, tp: int, weights: str, dtype: str, batch: int, at: int) -> str:
    """The same in code."""
    options = f'at={at}, batch={batch}, chip="{chip}", dtype="{dtype}", tp={tp}, weights="{weights}"'
    return f'import scalebook as sb\n\nsb.figures.kv_cache("{model}", {options})\n'


def table(view: Mapping[str, Any]) -> Table:
    """The bytes of each way to share keys and values, at the marked length and at every third power of two; what fits at the marked one."""
    lines, at = view["lines"], view["at"]
    lengths = {p[0]: [line["points"][i][1] for line in lines] for i, p in enumerate(lines[0]["points"]) if i % 6 == 0}
    lengths[at["x"]] = [row["value"] for row in at["rows"]]
    rows = tuple((count(n), *(binary(b) for b in lengths[n])) for n in sorted(lengths))
    split = f", one part of {count(view['tp'])}" if view["tp"] > 1 else ""
    fit = "; ".join(f"{row['name']} {count(row['fit'])}" for row in at["rows"])
    notes = (
        f"Sequences of {at['name']} that fit beside the weights: {fit}.",
        f"Of {binary(view['hbm_bytes'])} on {view['chip']}, weights in {view['weights']} take {binary(view['weight_bytes'])}{split}; "
        "activations and what a program needs besides are left out.",
        f"MLA: a latent as wide as 4 heads, and half a head for positions, as in DeepSeek-V2. Weights are those of {view['subject']} throughout.",
    )
    caption = f"{view['subject']}: cache of {plural(view['batch'], 'sequence')} in {view['dtype']}, on each of {plural(view['tp'], 'device')}"
    return Table(caption, ("tokens each", *(line["name"] for line in lines)), rows, notes)


EXPLORER = Explorer(
    name="kv_cache",
    title="How many users fit",
    controls=(
        Slider("at", "Tokens in each sequence", LENGTHS, count),
        Slider("batch", "Sequences", BATCHES, count),
        Choice("model", "Model", tuple((name, name) for name in MODELS), segments=False),
        Choice("chip", "Chip", tuple((c.key, c.name) for c in chips() if c.hbm_bytes is not None), segments=False),
        Slider("tp", "Chips that split the heads", DEVICES, count),
        Choice("dtype", "Cache", tuple((name, name) for name in DTYPES)),
        Choice("weights", "Weights", tuple((name, name) for name in DTYPES)),
    ),
    start={"model": "llama-3-8b", "chip": "h100", "tp": 1, "weights": "bf16", "dtype": "bf16", "batch": 16, "at": 8192},
    figure=figure,
    python=python,
    table=table,
)
