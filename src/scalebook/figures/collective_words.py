"""What the picture of a collective says: its state in a few words, its result in a sentence, and its label."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scalebook.figures.svg import text_width
from scalebook.units import plural, si

View = Mapping[str, Any]
SUMMED = ("reduce-scatter", "all-reduce")
SHAPES = {"ring": "ring", "line": "line, without a wraparound link", "switch": "switch"}
HOLDS = {  # what is shown for each device, and what a number in a slot means
    "all-gather": "numbers are chunks",
    "reduce-scatter": "a number says how many devices' terms are summed",
    "all-reduce": "a number says how many devices' terms are summed",
    "all-to-all": "colours are destinations, numbers origins",
    "permute": "numbers are chunks",
}


def now(view: View) -> float | None:
    """The moment that is shown: the beginning of the step that follows, or the end."""
    return None if view["step"] is None else _after(view, view["step"])


def _after(view: View, steps: int) -> float:
    return float(view["steps"][steps]["start"] if steps < len(view["steps"]) else view["seconds"])


def state_words(view: View, step: int, room: float) -> str:
    """Which moment a panel shows, as long as there is room for it.

    >>> view = {"steps": [{"start": 0.0, "seconds": 1e-3}, {"start": 1e-3, "seconds": 1e-3}], "seconds": 2e-3, "step": None}
    >>> [state_words(view, n, 200).replace(chr(160), " ") for n in (0, 1, 2)]
    ['at the start', 'after step 1: 1 ms', 'at the end: 2 ms']
    """
    if step == 0:
        return "at the start"
    words = "at the end" if step == len(view["steps"]) else f"after step {step}"
    long = f"{words}: {si(_after(view, step), 's')}"
    return long if text_width(long, 12, bold=True) <= room else words


def moment_words(view: View, room: float) -> str:
    """The moment that is shown and what is on its way, as long as there is room for it."""
    step, count = view["step"], len(view["steps"])
    words = state_words(view, step, room / 1.1)  # its letters are larger than a panel's
    long = f"{words}; on its way: step {step + 1} of {count}"
    return words if step == count or text_width(long, bold=True) > room else long


def size_words(view: View) -> str:
    """How large a chunk is."""
    return f"{'message' if view['kind'] == 'all-to-all' else 'chunk'}: {si(view['chunk_bytes'], 'B')}"


def launches(view: View) -> list[tuple[float, float]]:
    """When a collective is being started and nothing is sent: before its first step, and before the second half of an all-reduce.

    >>> launches({"steps": [{"start": 2.0, "seconds": 1.0}, {"start": 3.0, "seconds": 1.0}]})
    [(0.0, 2.0)]
    """
    found, end = [], 0.0
    for s in view["steps"]:
        if s["start"] - end > 1e-6 * s["start"]:
            found.append((end, s["start"]))
        end = s["start"] + s["seconds"]
    return found


def launch_words(view: View) -> str:
    """How long starting takes, or nothing where it takes no time."""
    spent = math.fsum(end - start for start, end in launches(view))
    return f"{si(spent, 's')} to launch" if spent else ""


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
    launch = launch_words(view)
    started = f", of which {launch}" if launch else ""
    said = (
        f"{plural(view['devices'], 'device')} on a {SHAPES[view['shape']]}, {rate} one way per link: {_a(view['kind'])} of "
        f'{si(view["nbytes"], "B")} takes {steps} and <b class="sb-key-ici">{si(view["seconds"], "s")}</b>{started}; each device must receive '
        f"{si(view['received'], 'B')}"
    )
    if view["step"] is not None:
        said += _moment(view, view["step"])
    return f"{said}; {HOLDS[view['kind']]}."


def _moment(view: View, step: int) -> str:
    """What has been sent at the moment that is shown, and what is on its way."""
    said, sent = "", [math.fsum(f["bytes"] for f in flying) for flying in view["flying"]]
    if step:
        so_far, total = si(math.fsum(sent[:step]), "B"), si(math.fsum(sent), "B")
        when = "At the end" if step == len(sent) else f"After {plural(step, 'step')}, at {si(_after(view, step), 's')},"
        said = f". {when} the links have carried {so_far} {'in all' if step == len(sent) else f'of {total}'}; what has just come has a rim"
    if step < len(sent):
        most = max(f["bytes"] for f in view["flying"][step])
        said += (
            f". In step {step + 1} the busiest link carries {si(most, 'B')} one way, in {si(view['steps'][step]['seconds'], 's')}"
        )
    return said
