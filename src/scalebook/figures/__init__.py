"""Figures of the book as SVG strings: the same drawing at build time, in the page and in a notebook. Standard library only.

    figures.roofline("v5e", points={"64 tokens": sb.matmul_work(64, 8192, 8192)}, caption="HBM binds. …")

Each function takes what the matching function of `scalebook.explore` takes, and the words around the picture:

- `caption`: its first sentence, or what stands in `**…**`, is the finding;
- `alt`: replaces the description for those who do not see the picture;
- `question`: a heading; `name`: the figure's address on its page.
"""

from __future__ import annotations

from typing import Any

from scalebook import explore
from scalebook.errors import unknown, within
from scalebook.figures import (
    agreement_chart,
    anatomy_bars,
    array_on_mesh,
    bar_chart,
    cache_curves,
    collective_steps,
    curve_chart,
    memory_ladder,
    padded_tiles,
    plan_flow,
    roofline_chart,
    share_curves,
    stacked_bars,
    systolic_array,
    time_bars,
    torus_map,
)
from scalebook.figures.figure import Figure, Kind
from scalebook.figures.svg import Picture

__all__ = [
    "KINDS",
    "Figure",
    "Kind",
    "Picture",
    "agreement",
    "attention_share",
    "bars",
    "collective",
    "draw",
    "kv_cache",
    "latency",
    "matmul_roofline",
    "memory_levels",
    "model_anatomy",
    "plan",
    "plan_times",
    "roofline",
    "sharded_array",
    "stacks",
    "systolic",
    "tiles",
    "times",
    "torus",
]

KINDS = {
    kind.name: kind
    for kind in (
        Kind("roofline", roofline_chart.draw, roofline_chart.describe, roofline_chart.label),
        Kind("sharded_array", array_on_mesh.draw, array_on_mesh.describe, array_on_mesh.label),
        Kind("bars", bar_chart.draw, bar_chart.describe, bar_chart.label),
        Kind("times", time_bars.draw, time_bars.describe, time_bars.label),
        Kind("torus", torus_map.draw, torus_map.describe, torus_map.label),
        Kind("systolic", systolic_array.draw, systolic_array.describe, systolic_array.label),
        Kind("tiles", padded_tiles.draw, padded_tiles.describe, padded_tiles.label),
        Kind("memory_levels", memory_ladder.draw, memory_ladder.describe, memory_ladder.label),
        Kind("collective", collective_steps.draw, collective_steps.describe, collective_steps.label),
        Kind("plan", plan_flow.draw, plan_flow.describe, plan_flow.label),
        Kind("curves", curve_chart.draw, curve_chart.describe, curve_chart.label),
        Kind("agreement", agreement_chart.draw, agreement_chart.describe, agreement_chart.label),
        Kind("model_anatomy", anatomy_bars.draw, anatomy_bars.describe, anatomy_bars.label),
        Kind("attention_share", share_curves.draw, share_curves.describe, share_curves.label),
        Kind("kv_cache", cache_curves.draw, cache_curves.describe, cache_curves.label),
        Kind("stacks", stacked_bars.draw, stacked_bars.describe, stacked_bars.label),
    )
}


def draw(kind: str, view: dict[str, Any], *, caption: str = "", alt: str = "", question: str = "", name: str = "") -> Figure:
    """A figure of a kind from a view of `scalebook.explore`.

    >>> draw("bars", explore.bars({"a": 1, "b": 2}))
    Figure(bars: From 1 (a) to 2 (b).)

    Raises ScalebookError for an unknown kind, and for a view that is not of this kind.
    """
    if not within(kind, KINDS):
        raise unknown("kind of figure", kind, KINDS)
    figure = Figure(KINDS[kind], view, caption=caption, alt=alt, question=question, name=name)
    _ = figure.readout  # refuses a view that is not of this kind where it was given, not where it is shown
    return figure


def roofline(
    chips: Any, points: Any = None, *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any
) -> Figure:
    """The roofs of chips with points under them: see `explore.roofline`.

    >>> roofline("v5e")
    Figure(roofline: On TPU v5e HBM binds below 241 FLOPs per byte, math above.)
    """
    return draw("roofline", explore.roofline(chips, points, **options), caption=caption, alt=alt, question=question, name=name)


def matmul_roofline(*, caption: str = "", alt: str = "", question: str = "", name: str = "", **state: Any) -> Figure:
    """One matmul under one chip's roof, by its state: see `explore.matmul_roofline`."""
    return draw("roofline", explore.matmul_roofline(**state), caption=caption, alt=alt, question=question, name=name)


def sharded_array(
    text: Any, mesh: Any, *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any
) -> Figure:
    """An array cut up over a mesh, and the block each device holds: see `explore.sharded_array`."""
    return draw(
        "sharded_array", explore.sharded_array(text, mesh, **options), caption=caption, alt=alt, question=question, name=name
    )


def bars(
    rows: Any, unit: str = "", *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any
) -> Figure:
    """Horizontal bars with their values: see `explore.bars`."""
    return draw("bars", explore.bars(rows, unit, **options), caption=caption, alt=alt, question=question, name=name)


def times(rows: Any, *, caption: str = "", alt: str = "", question: str = "", name: str = "") -> Figure:
    """Times by resource, of which the longest counts: see `explore.times`."""
    return draw("times", explore.times(rows), caption=caption, alt=alt, question=question, name=name)


def stacks(
    rows: Any, unit: str = "GiB", *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any
) -> Figure:
    """Parts that add up, against a limit: see `explore.stacks`."""
    return draw("stacks", explore.stacks(rows, unit, **options), caption=caption, alt=alt, question=question, name=name)


def torus(topology: Any, *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any) -> Figure:
    """The chips of a TPU slice and the links between them, with hops from one chip: see `explore.torus`.

    >>> torus("v5e:4x4")
    Figure(torus: From chip (0, 0) of TPU v5e 4x4 the farthest chip is 6 hops away, the mean 3.2; no wraparound.)
    """
    return draw("torus", explore.torus(topology, **options), caption=caption, alt=alt, question=question, name=name)


def systolic(
    rows: int = 8, dim: Any = 4, *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any
) -> Figure:
    """A systolic array at a few cycles, or at one (`cycle=`): see `explore.systolic`."""
    return draw("systolic", explore.systolic(rows, dim, **options), caption=caption, alt=alt, question=question, name=name)


def tiles(arrays: Any, *, caption: str = "", alt: str = "", question: str = "", name: str = "") -> Figure:
    """Arrays in the tiles in which a TPU keeps them, padding hatched: see `explore.tiles`."""
    return draw("tiles", explore.tiles(arrays), caption=caption, alt=alt, question=question, name=name)


def memory_levels(
    chip: Any = "v5e",
    nbytes: float | None = None,
    *,
    caption: str = "",
    alt: str = "",
    question: str = "",
    name: str = "",
    **options: Any,
) -> Figure:
    """What each level of a TPU holds and how fast a chip gets at it: see `explore.memory_levels`."""
    return draw(
        "memory_levels", explore.memory_levels(chip, nbytes, **options), caption=caption, alt=alt, question=question, name=name
    )


def collective(
    kind: str,
    where: Any,
    nbytes: float,
    axes: Any = None,
    *,
    caption: str = "",
    alt: str = "",
    question: str = "",
    name: str = "",
    **options: Any,
) -> Figure:
    """A collective step by step, as panels or with one step under way: see `explore.collective`."""
    view = explore.collective(kind, where, nbytes, axes, **options)
    return draw("collective", view, caption=caption, alt=alt, question=question, name=name)


def plan(product: Any, *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any) -> Figure:
    """An einsum's plan as a flow from layout to layout: see `explore.plan`."""
    return draw("plan", explore.plan(product, **options), caption=caption, alt=alt, question=question, name=name)


def plan_times(
    product: Any,
    letter: str,
    low: int,
    high: int,
    *,
    caption: str = "",
    alt: str = "",
    question: str = "",
    name: str = "",
    **options: Any,
) -> Figure:
    """The times of competing plans as one size changes: see `explore.plan_times`."""
    view = explore.plan_times(product, letter, low, high, **options)
    return draw("curves", view, caption=caption, alt=alt, question=question, name=name)


def latency(
    kind: str, mesh: Any, axes: Any = "X", *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any
) -> Figure:
    """A collective's time against its bytes, and where latency and bandwidth count alike: see `explore.latency`."""
    return draw("curves", explore.latency(kind, mesh, axes, **options), caption=caption, alt=alt, question=question, name=name)


def agreement(panels: Any, *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any) -> Figure:
    """Predictions as lines, what was measured as circles, with the error of each: see `explore.agreement`."""
    return draw("agreement", explore.agreement(panels, **options), caption=caption, alt=alt, question=question, name=name)


def model_anatomy(model: Any, *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any) -> Figure:
    """Where the parameters of a model sit, and where its FLOPs: see `explore.model_anatomy`."""
    view = explore.model_anatomy(model, **options)
    return draw("model_anatomy", view, caption=caption, alt=alt, question=question, name=name)


def attention_share(
    models: Any, *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any
) -> Figure:
    """The share of attention's scores and values as sequences grow: see `explore.attention_share`."""
    view = explore.attention_share(models, **options)
    return draw("attention_share", view, caption=caption, alt=alt, question=question, name=name)


def kv_cache(model: Any, *, caption: str = "", alt: str = "", question: str = "", name: str = "", **options: Any) -> Figure:
    """What a model keeps of its sequences, and how many of them fit: see `explore.kv_cache`."""
    view = explore.kv_cache(model, **options)
    return draw("kv_cache", view, caption=caption, alt=alt, question=question, name=name)
