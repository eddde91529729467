"""matplotlib pictures in the book's two themes; computes nothing. The only module that imports matplotlib (extra `plots`).

A picture is a function of a `Theme` that returns a matplotlib figure; `show` draws it light and dark, and the page shows the one
that fits. Colours are taken by name: `theme.fill["hbm"]`, `theme.text["math"]`.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from scalebook import explore
from scalebook.errors import ScalebookError, missing_extra
from scalebook.figures.figure import caption_html
from scalebook.figures.palette import STYLE_FILES, THEMES, TOKENS
from scalebook.figures.svg import escape
from scalebook.units import digits, si

try:
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure as Drawing
    from matplotlib.ticker import FuncFormatter, NullLocator
except ImportError as error:  # pragma: no cover
    raise missing_extra("matplotlib", "plots", "scalebook.plots") from error


MOST_ROOFS = 8


@dataclass(frozen=True)
class Theme:
    """One theme's colours by name: of shapes, of text, and neutrals (ink, muted, axis, grid, paper, card)."""

    name: str
    fill: Mapping[str, str]
    text: Mapping[str, str]
    neutral: Mapping[str, str]


def theme(name: str) -> Theme:
    """The theme "light" or "dark".

    >>> theme("dark").fill["hbm"]
    '#f9a94f'
    """
    if name not in THEMES:
        raise ScalebookError(f"the themes are {' and '.join(THEMES)}; found {name!r}")
    return Theme(name, TOKENS["graphics"][name], TOKENS["text"][name], TOKENS["neutrals"][name])


@contextmanager
def style(name: str = "light") -> Iterator[Theme]:
    """matplotlib in the book's style: `with plots.style("dark") as theme: …`."""
    chosen = theme(name)
    with plt.style.context(str(STYLE_FILES[name])):
        yield chosen


@dataclass(frozen=True)
class Plot:
    """A picture in both themes, as SVG, with its caption."""

    svgs: Mapping[str, bytes]
    alt: str
    caption: str = ""

    def _repr_html_(self) -> str:
        """Both pictures, of which the page shows one; outside the book only the light one."""
        inside = os.environ.get("SCALEBOOK_STYLES") == "page"
        images = []
        for name in THEMES if inside else ("light",):
            data = base64.b64encode(self.svgs[name]).decode()
            images.append(f'<img class="only-{name}" alt="{escape(self.alt)}" src="data:image/svg+xml;base64,{data}">')
        words = f"<figcaption>{caption_html(self.caption)}</figcaption>" if self.caption else ""
        # in a box of their own: the theme hides a caption that directly follows a picture which it hides
        return f'<figure class="sb-figure sb-plot"><div>{"".join(images)}</div>{words}</figure>'


def show(draw: Callable[..., Drawing], *arguments: Any, alt: str, caption: str = "", **options: Any) -> Plot:
    """Draws `draw(theme, …)` in both themes.

    >>> plot = show(lambda theme: plt.subplots()[0], alt="nothing")
    >>> sorted(plot.svgs)
    ['dark', 'light']
    """
    if not alt.strip():
        raise ScalebookError("a picture needs an `alt` text: what it shows, for those who do not see it")
    svgs = {}
    for name in THEMES:
        with style(name) as chosen:
            drawing = draw(chosen, *arguments, **options)
            target = io.BytesIO()
            drawing.savefig(target, format="svg", metadata={"Date": None})
            plt.close(drawing)
            svgs[name] = target.getvalue()
    return Plot(svgs, alt, caption)


def name_y(axes: Any, label: str, colours: Theme) -> None:
    """Names the y axis above its numbers, horizontally, so that nobody tilts the head."""
    axes.annotate(
        f"↑ {label}",
        (0, 1),
        (-34, 14),
        xycoords="axes fraction",
        textcoords="offset points",
        color=colours.neutral["muted"],
        fontsize=9,
    )


def rooflines(chips: Sequence[str], *, dtype: str = "bf16", caption: str = "") -> Plot:
    """Roofs of several chips on one pair of axes, each named at its ceiling, with its ridge.

    >>> rooflines(["v5e", "v5p"]).alt
    'Rooflines of TPU v5e and TPU v5p: FLOPs per second reached against FLOPs per byte, both logarithmic.'
    """
    if len(chips) > MOST_ROOFS:
        raise ScalebookError(f"one chart holds up to {MOST_ROOFS} roofs that can be told apart; found {len(chips)}")
    panels = explore.roofline(list(chips), dtype=dtype)["panels"]
    names = [p["name"] for p in panels]
    said = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    alt = f"Rooflines of {said}: FLOPs per second reached against FLOPs per byte, both logarithmic."
    return show(_rooflines, panels, alt=alt, caption=caption)


def _rooflines(colours: Theme, panels: Sequence[Mapping[str, Any]]) -> Drawing:
    fig, ax = plt.subplots(figsize=(7.08, 4.2))
    low, high = 1.0, 20 * max(p["levels"][0]["ridges"][0] for p in panels)
    peaks = [p["ceilings"][0]["peak"] for p in panels]
    for panel in panels:
        peak, rate, ridge = panel["ceilings"][0]["peak"], panel["levels"][0]["bytes_per_s"], panel["levels"][0]["ridges"][0]
        ax.loglog([low, ridge], [low * rate, peak], color=colours.fill["hbm"])
        ax.loglog([ridge, high], [peak, peak], color=colours.fill["math"])
        ax.plot([ridge], [peak], "o", color=colours.neutral["ink"], markersize=5)
    bottom, top = min(p["levels"][0]["bytes_per_s"] for p in panels) * 0.6, max(peaks) * 1.8
    ax.set(xlim=(low, high), ylim=(bottom, top))
    ax.set_xlabel("FLOPs per byte moved (log) →", loc="right")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: si(v)))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    name_y(ax, "FLOPs/s reached (log)", colours)
    order = sorted(panels, key=lambda p: p["ceilings"][0]["peak"])
    line_height = (top / bottom) ** (14 / 320)  # 14 of the 320 px that the axis is high
    for at, panel in zip(_apart([p["ceilings"][0]["peak"] for p in order], line_height), order, strict=True):
        peak, ridge = panel["ceilings"][0]["peak"], panel["levels"][0]["ridges"][0]
        words = f"{panel['name']}  {si(peak, 'FLOPs/s')}, ridge {digits(ridge)}"
        ax.annotate(words, (high, peak), (high * 1.12, at), va="center", color=colours.text["math"], weight="bold", fontsize=9, annotation_clip=False,
                    arrowprops={"arrowstyle": "-", "color": colours.neutral["axis"], "lw": 0.75})  # fmt: skip
    return fig


def _apart(values: Sequence[float], ratio: float) -> list[float]:
    """Rising values, each at least `ratio` times the one before, so that labels on a logarithmic axis do not touch."""
    made: list[float] = []
    for v in values:
        made.append(max(v, made[-1] * ratio) if made else v)
    return made


def critical_batches(
    batches: Mapping[str, float], *, limit: float | None = None, unit: str = "tokens", caption: str = ""
) -> Plot:
    """Critical batches as bars, the longest bold; `limit` marks a batch that one has.

    >>> critical_batches({"TPU v5e": 240.54}).alt
    'Bars: TPU v5e 241 tokens.'
    """
    view = explore.bars(batches, unit, limit=limit, limit_name="your batch")
    said = ", ".join(f"{r['name']} {r['text']}" for r in view["rows"]).replace("\u00a0", " ")
    return show(_bars, view, alt=f"Bars: {said}.", caption=caption)


def _bars(colours: Theme, view: Mapping[str, Any]) -> Drawing:
    rows = view["rows"]
    fig, ax = plt.subplots(figsize=(7.08, 0.6 + 0.28 * len(rows)))
    longest = max(row["value"] for row in rows)
    for i, row in enumerate(rows):
        ax.barh(i, row["value"], 0.66, color=colours.fill[view["colour"]])
        weight = "bold" if row["value"] == longest else "normal"
        ax.text(row["value"] + longest * 0.01, i, row["text"], va="center", color=colours.neutral["ink"], fontsize=9, weight=weight,
                bbox={"facecolor": colours.neutral["paper"], "edgecolor": "none", "pad": 1}, zorder=3)  # fmt: skip
    ax.set_yticks(range(len(rows)), [row["name"] for row in rows])
    ax.set(xlim=(0, longest * 1.18), ylim=(len(rows) - 0.4, -0.6), xticks=[])
    ax.spines["bottom"].set_visible(False)
    ax.grid(visible=False)
    if view["limit"]:
        ax.axvline(view["limit"]["value"], color=colours.fill["hbm"])
        ax.text(
            view["limit"]["value"],
            -0.75,
            view["limit"]["text"],
            ha="center",
            va="bottom",
            color=colours.text["hbm"],
            weight="bold",
            fontsize=9,
        )
    return fig
