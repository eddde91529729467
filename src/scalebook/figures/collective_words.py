"""What the picture of a collective says: its state in a few words, its result in a sentence, and its label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.figures.svg import text_width
from scalebook.units import plural, si

View = Mapping[str, Any]
SHAPES = {"ring": "ring", "line": "line, without a wraparound link", "switch": "switch"}
HOLDS = {  # what is shown for each device, and what a number in a slot means
    "all-gather": "numbers are chunks",
    "reduce-scatter": "a number says how many devices' terms are summed",
    "all-reduce": "a number says how many devices' terms are summed",
    "all-to-all": "colours are destinations, numbers origins",
    "permute": "numbers are chunks",
}


def state_words(view: View, step: int, room: float) -> str:
    """Which moment a panel shows, as long as there is room for it.

    >>> view = {"steps": [{"start": 0.0, "seconds": 1e-3}, {"start": 1e-3, "seconds": 1e-3}], "seconds": 2e-3, "step": None}
    >>> [state_words(view, n, 200).replace(chr(160), " ") for n in (0, 1, 2)]
    ['at the start', 'after step 1: 1 ms', 'at the end: 2 ms']
    """
    count = len(view["steps"])
    if view["step"] is not None and step < count:
        return f"step {step + 1} of {count} under way"
    if step == 0:
        return "at the start"
    when = view["seconds"] if step == count else view["steps"][step]["start"]
    words = "at the end" if step == count else f"after step {step}"
    long = f"{words}: {si(when, 's')}"
    return long if text_width(long, 12, bold=True) <= room else words


def _a(kind: str) -> str:
    return f"{'an' if kind.startswith('a') else 'a'} {kind}"


def label(view: View) -> str:
    """The fixed description of the picture."""
    return (
        f"{_a(view['kind']).capitalize()} over a {view['shape']} of {plural(view['devices'], 'device')}, step by step: the chunks that each device holds, "
        "and below what each link carries over time."
    )


def describe(view: View) -> str:
    """Steps, time, bytes received, and the state that is shown; what numbers mean."""
    steps = plural(len(view["steps"]), "step")
    rate = si(view["bytes_per_s"], "B/s")
    said = (
        f"{plural(view['devices'], 'device')} on a {SHAPES[view['shape']]}, {rate} one way per link: {_a(view['kind'])} of "
        f'{si(view["nbytes"], "B")} takes {steps} and <b class="sb-key-ici">{si(view["seconds"], "s")}</b>; each device must receive '
        f"{si(view['received'], 'B')}"
    )
    step = view["step"]
    if step is not None and step < len(view["steps"]):
        flying = view["flying"][step]
        most = max(f["bytes"] for f in flying)
        said += (
            f". In step {step + 1} the busiest link carries {si(most, 'B')} one way, in {si(view['steps'][step]['seconds'], 's')}"
        )
    return f"{said}; {HOLDS[view['kind']]}."
