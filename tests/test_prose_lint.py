"""The prose lint finds typed numbers with a unit wherever a reader sees them, and leaves everything else alone."""

from __future__ import annotations

import pytest
from prose_lint import lint, main

BAD = {
    "unit": "A v5e reads 819 GB/s.",
    "unit over a line's end": "It reads 819\nGB/s.",
    "no-break space": "It reads 819\u00a0GB/s.",
    "capacity": "One chip holds 16 GiB.",
    "attached": "One chip holds 16GB.",
    "time": "It takes 4.9 ms.",
    "greek": "It takes 43.6 µs, no more.",
    "seconds": "It takes 1 s.",
    "words of time": "Training takes 54 days.",
    "speed": "At 197 TFLOPs/s it is fast.",
    "flops": "That is 2 FLOPs per product.",
    "thousands": "It needs 1,340 tokens/s.",
    "exponent": "It needs 2e12 FLOPs.",
    "power of ten": "It needs 2 × 10^12 FLOPs.",
    "percent": "That is 26% of the peak.",
    "percent apart": "That is 26 % of the peak.",
    "percent as a word": "That is 26 percent of it.",
    "factor": "It is 2× faster.",
    "factor at the end": "Faster by 3.8×.",
    "factor with x": "It is 2x faster.",
    "times": "It is 16.4 times slower.",
    "count": "There are 256 chips.",
    "count with a word between": "Run it on 8 simulated devices.",
    "compound": "Take a 16-chip ring.",
    "tokens": "From 240 tokens on, math binds.",
    "parameters": "It has 70 billion parameters.",
    "magnitude": "It has 405B parameters.",
    "money": "A chip costs $2.50 or €2 an hour.",
    "clock": "It runs at 1.5 GHz.",
    "power": "It draws 700 W.",
    "bits": "Each number has 16 bits.",
    "heading": "## Why 819 GB/s matter",
    "list": "- first\n- it has 16 GiB",
    "numbered list": "1. it has 16 GiB",
    "emphasis": "It holds **16 GiB**.",
    "table cell": "| chip | memory |\n|---|---|\n| v5e | 16 GiB |",
    "table header": "| chip | HBM (GB) |\n|---|---|\n| v5e | 16 |",
    "note": "```{note}\nIt holds 16 GiB.\n```",
    "colon fence": ":::{warning}\nIt holds 16 GiB.\n:::",
    "title of a note": "```{admonition} It holds 16 GiB\nReally.\n```",
    "exercise": "```{exercise} rooflines/x\nA chip with 16 GiB.\n```",
    "nested": "````{note}\n```{tip}\nIt holds 16 GiB.\n```\n````",
    "figure caption": "```{figure} a.svg\n:alt: a drawing\n\nIt holds 16 GiB.\n```",
    "alternative text": "```{figure} a.svg\n:alt: a chip with 16 GiB\n\nA chip.\n```",
    "image text": "![a chip with 16 GiB](a.svg)",
    "link text": "See [the 819 GB/s](x.md).",
    "caption of a cell": '```{code-cell} ipython3\nfigure(x, caption="At 64 tokens it waits.")\n```',
    "caption of a cell, f-string": '```{code-cell} ipython3\nfigure(x, caption=f"{n} and 64 tokens.")\n```',
    "caption in a cell's header": "```{code-cell} ipython3\n---\nmystnb:\n  figure:\n    caption: It has 16 GiB.\n---\nx\n```",
    "formula": r"So $B = 240\,\text{tokens}$.",
    "formula with flops": r"So $240\,\text{FLOPs}$ it is.",
    "displayed formula": "$$\nx = 819\\,\\text{GB/s}\n$$",
    "math directive": "```{math}\n:label: eq\nx = \\frac{1}{819\\,\\mathrm{GB/s}}\n```",
    "math role": r"So {math}`t = 3\,\text{ms}`.",
    "number as a formula": r"It needs $2 \cdot 10^{12}$ FLOPs.",
    "percent in a formula": r"It is $26\%$ of it.",
    "uncited quotation": "> It holds 16 GiB.",
    "uncited inline quotation": "They say “it holds 16 GiB”.",
    "definition": "HBM\n: it holds 16 GiB",
    "footnote": "Text.[^a]\n\n[^a]: It holds 16 GiB.",
    "premise without a number": "Take {given}`some` chips.",
}

GOOD = {
    "computed": 'It reads {eval}`si(hbm, "B/s")`.',
    "computed, then a noun": "From {eval}`count(b)` tokens on.",
    "premise": "Given {given}`16 GiB` of HBM and {given}`8` devices.",
    "premise before a noun": "Take {given}`64` token vectors of {given}`8,192` numbers.",
    "words": "Two devices exchange half a FLOP per byte in ten lines; a hundred tokens.",
    "small integers": "Set $w$ = 2 and look at 3 and 4.",
    "bare number": "## 240 is true of one chip",
    "shape": "A matrix of 8,192 × 8,192, cut 2 × 4, or 8×8.",
    "chapter": "See chapter 3 tokens and Section 2 devices, figure 1 and step 4.",
    "year": "In 2026, and in the 1990s, on 30 November 2026.",
    "version": "Python 3.11 and jax 0.10.2 work.",
    "dtype": "bf16 and int8 weights, fp8 math, 8-bit weights.",
    "model": "LLaMA 3 70B and Gemma 7B are models; LLaMA 3 layers are wide.",
    "chip name": "A TPU v5e, an H100, a GB200.",
    "code": "Write `si(819e9, 'B/s')` or `16 GiB`.",
    "code fence": "```python\nx = '819 GB/s'\n```",
    "cell": '```{code-cell} ipython3\nprint("819 GB/s")\n```',
    "indented fence": "- item\n\n  ```bash\n  run --size 16GB\n  ```",
    "label of a cell": "```{code-cell} ipython3\n:tags: [remove-input]\nx = 1\n```",
    "path": "```{figure} 16GB.svg\n:width: 100%\n\nA chip.\n```",
    "address": "See <https://example.org/16GB> or https://example.org/8-chips and [this](https://example.org/16GB).",
    "tag": '<img src="x.svg" width="100%" alt="x">',
    "comment": "% It holds 16 GiB.\n\n<!-- and 819 GB/s -->",
    "front matter": "---\ntitle: 16 GiB\n---\n\nText.",
    "cited quotation": "> It holds 16 GiB.\n>\n> {cite}`vendor2025`",
    "cited inline quotation": "They say “it holds 16 GiB” {cite}`vendor2025`.",
    "formula with symbols": r"The FLOPs are $2 \cdot B \cdot D \cdot F$, and $2BDF / 4$; $2J - 1$ FLOPs for a dot product.",
    "formula with words": r"$\text{bytes} = 2\,B\,D$ and $\frac{\text{FLOPs}}{2}$ and $T_\text{math}$.",
    "displayed symbols": "```{math}\n\\frac{2 B D F}{2 B D + 2 D F} \\approx B\n```",
    "interval": "$0 \\le s \\le 1$ and $x_1$, $2^{30}$, $10^{12}$.",
    "label": "(sec-16-gib)=\n## Memory",
    "caption computed": '```{code-cell} ipython3\nfigure(x, caption=f"At {n} tokens it waits.")\n```',
    "table of bare numbers": "| n | square |\n|---|---|\n| 2 | 4 |",
    "table with computed cells": "| chip | HBM (GB) |\n|---|---|\n| v5e | {eval}`x` |",
    "ordered list": "3. One chip holds what it can.",
    "reference": "See {numref}`fig-16-gib` and {ref}`8 devices <mesh>`.",
    "argument and target of an explorer": "```{explorer} tiles-16-GiB\n:name: fig-8-chips\n:set: B=64 memory='16 GiB'\n**It waits.** More.\n```",
    "words that set a figure": "Drag to {set}`the ridge <fig-8 chips?B=240 tokens>` or {set}`=tokens(240) <fig?B=240>`.",
    "range of layers": "Layer 3 sequences are long.",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_finds(text: str) -> None:
    assert lint(text), text


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_leaves_alone(text: str) -> None:
    assert lint(text) == []


def test_names_line_words_rule_and_remedy() -> None:
    source = "---\na: 1\n---\n\n# Title\n\nFine.\nIt reads 819 GB/s\nand has 16\nGiB.\n"
    first, second = lint(source)
    assert (first.line, first.text) == (8, "819 GB/s")
    assert (second.line, second.text) == (9, "16 GiB")
    assert "a typed number with a unit" in first.message()
    assert "{eval}" in first.message() and "{given}" in first.message()


def test_names_the_line_in_a_cell() -> None:
    source = 'Text.\n\n```{code-cell} ipython3\n:tags: [remove-input]\nfigure(\n    x,\n    caption="At 64 tokens.",\n)\n```\n'
    assert [(f.line, f.text) for f in lint(source)] == [(7, "64 tokens")]


def test_main_prints_file_and_line(tmp_path, capsys) -> None:
    page = tmp_path / "page.md"
    page.write_text("Fine.\n\nIt takes 3 ms.\n", "utf-8")
    assert main([str(page)]) == 1
    assert f"{page}:3: '3 ms'" in capsys.readouterr().out
    page.write_text("Fine.\n", "utf-8")
    assert main([str(page)]) == 0
