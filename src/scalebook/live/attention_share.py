"""The explorer of attention against the weights: the share of scores and values as sequences grow, of one model or two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook import figures
from scalebook.explore import attention_share
from scalebook.explore.lengths import CONVENTIONS, LENGTHS
from scalebook.figures.figure import plain
from scalebook.figures.share_curves import turn_words
from scalebook.live.controls import Choice, Slider
from scalebook.live.explorers import Explorer
from scalebook.live.inputs import MODELS
from scalebook.tables import Table
from scalebook.units import count, percent

NONE = "none"
SHOWN = {"causal": "below the mask only", "full": "all, as dense kernels do"}


def _models(model: str, other: str) -> list[str]:
    return [model] if other in (NONE, model) else [model, other]


def figure(model: str, other: str, at: int, convention: str) -> figures.Figure:
    """The curves of the models, and the marked length."""
    view = attention_share(_models(model, other), at=at, convention=convention)  # type: ignore[arg-type]
    return figures.draw("attention_share", {**view, "stops": {"key": "at", "values": list(LENGTHS)}})


def python(model: str, other: str, at: int, convention: str) -> str:
    """The same in code."""
    models = ", ".join(f'"{name}"' for name in _models(model, other))
    return f'import scalebook as sb\n\nsb.figures.attention_share([{models}], at={at}, convention="{convention}")\n'


def table(view: Mapping[str, Any]) -> Table:
    """The share at the marked length, and at every fourth of the curves' lengths."""
    lines = view["lines"]
    lengths = {p[0]: [line["points"][i][1] for line in lines] for i, p in enumerate(lines[0]["points"]) if i % 4 == 0}
    lengths[view["at"]["x"]] = [row["value"] for row in view["at"]["rows"]]
    rows = tuple((count(n), *(percent(share) for share in lengths[n])) for n in sorted(lengths))
    notes = tuple(f"{plain(turn_words(line))}." for line in lines)
    return Table(
        f"{view['y']['name'].capitalize()}, {view['convention']}", ("tokens", *(line["name"] for line in lines)), rows, notes
    )


EXPLORER = Explorer(
    name="attention_share",
    title="When attention matters",
    controls=(
        Slider("at", "Tokens in the sequence", LENGTHS, count),
        Choice("model", "Model", tuple((name, name) for name in MODELS), segments=False),
        Choice("other", "beside it", ((NONE, "no other"), *((name, name) for name in MODELS)), segments=False),
        Choice("convention", "Pairs counted", tuple((name, SHOWN[name]) for name in CONVENTIONS)),
    ),
    start={"model": "llama-3-8b", "other": "mistral-7b-v0.1", "at": 8192, "convention": "causal"},
    figure=figure,
    python=python,
    table=table,
)
