"""The book's colours and sizes, from tokens.json, as CSS variables and as matplotlib styles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scalebook.figures.colours import label_on

HERE = Path(__file__).parent
TOKENS: dict[str, Any] = json.loads((HERE / "tokens.json").read_text(encoding="utf-8"))
SIZES: dict[str, float] = TOKENS["sizes"]
THEMES = ("light", "dark")
STYLE_FILES = {"light": HERE / "scalebook.mplstyle", "dark": HERE / "scalebook-dark.mplstyle"}
_WRITTEN = "Written by `python -m scalebook.figures.tokens --write` from tokens.json: edit that."
_DARK_NOTEBOOKS = ', html[theme="dark"], body[data-jp-theme-light="false"], body.vscode-dark'


def variables(theme: str) -> dict[str, str]:
    """Every colour of a theme by the name of its CSS variable, without `--sb-`.

    >>> variables("light")["hbm"], variables("light")["on-hbm"]
    ('#cc6200', '#121212')
    """
    graphics = TOKENS["graphics"][theme]
    texts = {f"{name}-text": value for name, value in TOKENS["text"][theme].items()}
    labels = {f"on-{name}": label_on(value) for name, value in graphics.items()}
    return {**TOKENS["neutrals"][theme], **graphics, **texts, **labels}


def css(*, notebook: bool = False) -> str:
    """The variables as CSS for both themes; `notebook` adds the ways in which notebooks say that they are dark."""

    def block(theme: str) -> str:
        rows = [f"color-scheme: {theme};"] if not notebook else []
        rows += [f"--sb-{name}: {value};" for name, value in variables(theme).items()]
        return "\n".join("  " + row for row in rows)

    sizes = "\n".join(f"  --sb-{name}: {value}px;" for name, value in SIZES.items())
    dark = 'html[data-theme="dark"]' + (_DARK_NOTEBOOKS if notebook else "")
    lone = "" if notebook else f"@media (prefers-color-scheme: dark) {{\nhtml:not([data-theme]) {{\n{block('dark')}\n}}\n}}\n"
    return (
        f"/* {_WRITTEN} */\n:root {{\n{sizes}\n}}\n"
        f':root, html[data-theme="light"] {{\n{block("light")}\n}}\n'
        f"{dark} {{\n{block('dark')}\n}}\n{lone}"
    )


def mplstyle(theme: str) -> str:
    """The matplotlib style of a theme. A figure of 7.08 inches is as wide as the page's column: 96 px are 72 pt."""
    colour = {name: value.lstrip("#") for name, value in variables(theme).items()}
    cycle = ", ".join(f"'{colour[f'cat-{i}']}'" for i in range(1, 9))

    def point(name: str) -> float:
        return round(SIZES[name] * 0.75, 2)

    return f"""# {_WRITTEN} ({theme} theme)
figure.figsize: {SIZES["width-column"] / 96:.2f}, 3.75
figure.dpi: 96
savefig.dpi: 192
savefig.transparent: True
savefig.bbox: tight
figure.constrained_layout.use: True
svg.fonttype: none
svg.hashsalt: scalebook
font.family: sans-serif
font.sans-serif: DejaVu Sans, system-ui, Segoe UI, Helvetica Neue, Arial
font.size: {point("font-label")}
axes.titlesize: {point("font-strong")}
axes.titleweight: bold
axes.titlelocation: left
axes.labelsize: {point("font-label")}
xtick.labelsize: {point("font-tick")}
ytick.labelsize: {point("font-tick")}
text.color: {colour["ink"]}
axes.labelcolor: {colour["muted"]}
axes.edgecolor: {colour["axis"]}
xtick.color: {colour["axis"]}
ytick.color: {colour["axis"]}
xtick.labelcolor: {colour["muted"]}
ytick.labelcolor: {colour["muted"]}
figure.facecolor: {colour["paper"]}
axes.facecolor: none
axes.spines.top: False
axes.spines.right: False
axes.spines.left: False
axes.linewidth: {point("line-axis")}
axes.grid: True
axes.grid.axis: y
axes.axisbelow: True
grid.color: {colour["grid"]}
grid.linewidth: {point("line-grid")}
ytick.major.size: 0
xtick.major.size: 4
xtick.minor.visible: False
ytick.minor.visible: False
lines.linewidth: {point("line-data")}
lines.markersize: 6
lines.solid_capstyle: round
patch.linewidth: 0
hatch.color: {colour["idle"]}
hatch.linewidth: 1
legend.frameon: False
axes.prop_cycle: cycler('color', [{cycle}])
"""
