"""Figures in many states, both themes and both widths, in a real browser: every text inside its picture, apart and legible."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from playwright.sync_api import Browser

import scalebook as sb
from scalebook import figures
from scalebook.errors import ScalebookError
from scalebook.explore.lengths import LENGTHS
from scalebook.live import EXPLORERS
from scalebook.live.controls import Text
from scalebook.live.inputs import MODELS
from scalebook.roofline import Time, Work
from scalebook.wiring import Segment

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "book" / "_static"
FAULTS_OF_TEXT = (HERE / "faults_of_text.js").read_text("utf-8")
GIB = 2**30


def matmuls(*rows: int) -> dict[str, Work]:
    return {f"{n} tokens" if n > 1 else "1 token": sb.matmul_work(n, 8192, 8192) for n in rows}


def gallery() -> list[figures.Figure]:
    """The states that are hardest to label."""
    machine = {"this machine": {"math": 95e9, "hbm": 11e9}}
    small = {n: sb.matmul_work(n, 1024, 1024, a="fp32", b="fp32", out="fp32") for n in (2, 16, 512)}
    grid = {"X": 2, "Y": 4}
    return [
        *(figures.roofline("v5e", matmuls(n)) for n in (1, 8, 64, 240, 1024, 65536)),
        figures.roofline("v5e"),
        figures.roofline("v5e", matmuls(1, 16, 64, 256, 1024)),
        figures.roofline("v5e", {**matmuls(64, 512), "dot product": sb.dot_work(8192)}),
        figures.roofline("v5e", matmuls(16), levels=("hbm", "vmem")),
        figures.roofline("v5e", matmuls(64, 512), dtype=("bf16", "int8")),
        figures.roofline(machine, {"64 rows": (sb.matmul_work(64, 4096, 4096), 0.031)}),
        figures.roofline(machine, {f"{n} rows": (w, w.amounts["math"] / 95e9 * 1.1 + 3e-4) for n, w in small.items()}),
        figures.roofline(["v5e", "v5p", "v6e", "h100"], matmuls(256)),
        figures.roofline(["v5e", "v5p", "v6e", "tpu7x", "h100", "mi300x"], matmuls(16, 512)),
        *(
            figures.sharded_array(s, grid)
            for s in ("A[I_X, J_Y]", "A[I_X, J]", "A[I_XY, J]", "A[I_X, J]{U_Y}", "x[I_Y]", "A[B_X, T_Y, D]")
        ),
        figures.sharded_array("A[I_X, J]", {"X": 16}),
        figures.sharded_array("A[I_X, J_YZ]", {"X": 2, "Y": 2, "Z": 2}),
        figures.sharded_array("A[I_X, J_YZ]", {"X": 2, "Y": 2, "Z": 4}),
        figures.sharded_array("W[D_data, F_model]", {"data": 2, "model": 4}, sizes={"D": 8192, "F": 32768}),
        figures.bars(
            {c.name: sb.critical_batch(c) for c in sb.chips() if "bf16" in c.flops_per_s and c.hbm_bytes_per_s}, "tokens"
        ),
        figures.bars(
            {"bf16 weights, bf16 math": 240.5, "int8 weights, bf16 math": 120.2}, "tokens", highlight="int8 weights, bf16 math"
        ),
        figures.bars(
            {"v5e": 16 * GIB, "v5p": 95 * GIB, "weights of a large model": 130 * GIB}, "GiB", limit=96 * GIB, colour="hbm"
        ),
        figures.times({f"{n} tokens": sb.matmul_time(n, 8192, 8192, "v5e") for n in (1, 64, 1024)}),
        figures.times(
            {"fsdp=256": Time({"math": 4.1, "hbm": 1.2, "comms": 5.3}), "tp=4": Time({"math": 4.1, "hbm": 1.4, "comms": 2.6})}
        ),
        figures.stacks(
            {"all": {"weights": 4 * GIB, "optimizer": 16 * GIB, "activations": 74 * GIB, "logits": 2 * GIB}}, limit=95 * GIB
        ),
        figures.stacks(
            {"remat": {"weights": 4 * GIB, "optimizer": 16 * GIB, "activations": 5 * GIB, "logits": 2 * GIB}}, limit=95 * GIB
        ),
        *(figures.systolic(*a) for a in ((8, 4), (2, 4), (32, (2, 8)), (8, 8), (1, 1))),
        figures.systolic(8, 4, cycle=7),
        figures.systolic(8, 8, cycle=20, tiles=2),
        figures.systolic(4, 4, tiles=3),
        figures.tiles(
            {"indices": ((2048, 1, 128, 128, 4), "int32"), "turned": ((2048, 1, 128, 128, 4), "int32", (3, 4, 2, 1, 0))}
        ),
        figures.tiles([((100, 200), "fp32"), ((3, 300), "bf16"), ((12582912, 1), "int32"), ((50257, 768), "bf16")]),
        figures.tiles([((16, 128), "int8")]),
        figures.agreement(
            {
                name: {
                    "lines": {
                        "padded": [(k, -(-k // w) * w) for k in range(1024, 1793, 4)],
                        "unpadded": [(1024, 1024), (1400, 1400), (1792, 1792)],
                    },
                    "points": [(k, k * 1.03) for k in range(1024, 1793, 64)],
                }
                for name, w in (("TPU v5e", 128), ("TPU v6e (Trillium)", 256))
            },
            x=("K", ""),
            y=("cycles, as a share of those at the right end", ""),
            y_from=800,
        ),
        figures.agreement(
            {
                "": {
                    "lines": {"predicted": [(10**p, 1e9 * p) for p in range(6, 10)]},
                    "points": [(10**p, 1.1e9 * p) for p in range(6, 10)],
                }
            },
            x=("bytes that arrive at each chip", "B"),
            y=("rate at which they arrive", "B/s"),
            log_x=True,
        ),
        *(figures.memory_levels(*a) for a in (("v5e",), ("v5p", 1e9), ("v2",), ("tpu7x",))),
        figures.torus("v5e:4x4", from_chip=(0, 0)),
        figures.torus("v5e:4x4", compare=True),
        figures.torus("v5e:16x16", compare=True),
        figures.torus("v5e:8x16", from_chip=(7, 3)),
        figures.torus("v5e:1x1"),
        figures.torus("v5p:4x4x4", from_chip=(1, 1, 1)),
        figures.torus("v5p:4x4x4", compare=True),
        figures.torus("v5p:8x8x8"),
        figures.torus("v5e:4x4", mesh={"X": 2, "Y": 8}),
        figures.torus("v5e:16x16", mesh={"data": 64, "model": 4}),
        figures.torus("v5p:4x4x4", mesh={"X": 4, "Y": 4, "Z": 4}, from_chip=(0, 0, 0)),
        figures.torus(sb.topology("v5e:4x4", 2), mesh={"data": 2, "X": 4, "Y": 4}),
        figures.torus("tpu7x:2x2x2", mesh={"X": 4, "Y": 4}),
    ]


def sharding_gallery() -> list[figures.Figure]:
    """Collectives step by step, plans and curves."""
    pod = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
    sizes, bare = {"T": 4096, "D": 8192, "F": 28672}, {"I": 512, "J": 512, "K": 128}
    both = sb.einsum("In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]", sizes, pod)
    alone = sb.einsum("In[T_X, D] * W[D_X, F] -> Out[T_X, F]", sizes, sb.mesh({"X": 256}, on="v5e:16x16"))

    names = "Inputs[B_data, T, D_model] * W[D_data, F_model] -> Outputs[B_data, T, F_model]"
    named = sb.mesh({"data": 16, "model": 16}, on="v5e:16x16")

    def segment(k: int, shape: str) -> Segment:
        return Segment("ici0", k, shape, 45e9, 1e-6, 0.0)

    kinds = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute")
    return [
        *(figures.collective(kind, segment(8, "ring"), 8e6, step=0) for kind in kinds),
        *(figures.collective(kind, segment(8, "line"), 8e5, panels=(0, 1)) for kind in kinds),
        figures.collective("all-to-all", segment(8, "ring"), 8e6, step=1, follow=(0, 3)),
        figures.collective("reduce-scatter", segment(8, "ring"), 8e6, panels=(1, 2, 4)),
        *(figures.collective("all-to-all", segment(k, "switch"), 8e3, step=1) for k in (3, 8)),
        figures.collective("all-gather", segment(8, "ring"), 8e9, panels=(0, 1, 2, 3, 4)),
        figures.collective("all-gather", segment(2, "ring"), 8e9, step=1),
        *(figures.plan(e, alternatives=2) for e in (both, alone)),
        figures.plan(sb.einsum("A[I_X, J] * B[J_X, K] -> C[I_X, K]", bare, {"X": 8})),
        figures.plan(sb.einsum("A[I_data, J] * B[J_{data,model}, K] -> C[I_data, K_model]", bare, {"data": 4, "model": 2})),
        figures.plan(sb.einsum(names, {"B": 16, "T": 4096, "D": 8192, "F": 8192}, named)),
        figures.plan_times(both, "T", 256, 2**20, labels=("weights stay", "weights move"), counted="tokens"),
        figures.plan_times(alone, "T", 256, 2**22),
        *(figures.latency(kind, pod, ["X", "XY"]) for kind in kinds[:4]),
        figures.latency("all-gather", sb.mesh({"X": 8, "Y": 4}, on="v5e:4x8"), ["X", "Y", "XY"], low=1e3, high=1e8),
    ]


def transformer_gallery() -> list[figures.Figure]:
    """Every model that a reader may choose, taken apart; pairs of them against the length; caches that fit and that do not."""
    pairs = zip(MODELS, MODELS[1:] + MODELS[:1], strict=True)
    places = itertools.cycle([("h100", 1, 1), ("v5e", 4, 256), ("b200", 8, 4096), ("t4", 128, 16)])
    return [
        *(figures.model_anatomy(name, seq_len=n, kind=k) for name in MODELS for n, k in ((512, "forward"), (2**20, "decode"))),
        *(figures.attention_share(pair, at=n) for n, pair in zip(itertools.cycle(LENGTHS[::3]), pairs, strict=False)),
        figures.attention_share(MODELS[:4], convention="full"),
        *(
            figures.kv_cache(name, at=n, chip=chip, tp=tp, batch=batch, weights="int4")
            for name, n, (chip, tp, batch) in zip(MODELS, itertools.cycle(LENGTHS[::4]), places, strict=False)
        ),
    ]


def measured_gallery() -> list[figures.Figure]:
    """Machines and runs as a build may measure them: the picture must be legible wherever the points fall."""
    draw = random.Random(1)
    made = []
    for _ in range(80):
        machine = {"math": 10 ** draw.uniform(10, 12.2), "hbm": 10 ** draw.uniform(9.3, 11.3)}
        runs = {}
        for rows, low, high in ((1, 0.6, 8), (4, 0.8, 15), (256, 0.6, 6)):
            work = sb.matmul_work(rows, 4096, 4096, a="fp32", b="fp32", out="fp32")
            slower = math.exp(draw.uniform(math.log(low), math.log(high)))
            runs[f"{rows} row" + "s" * (rows > 1)] = (work, work.over(machine).lower * slower)
        made.append(figures.roofline({"the build machine": machine}, points=runs, dtype="fp32"))
    return made


def explorer_gallery() -> list[figures.Figure]:
    """Every explorer with each of its controls at its first, middle and last value; a mistake has no picture of its own."""
    made = []
    for explorer in EXPLORERS.values():
        start = explorer.state()
        for control in explorer.controls:
            values = [control.example] if isinstance(control, Text) else list(control.allowed(start))
            for value in dict.fromkeys((values[0], values[len(values) // 2], values[-1])):
                with contextlib.suppress(ScalebookError):
                    made.append(explorer.live(explorer.state({**start, control.key: value})))
    return made


@pytest.mark.parametrize(
    "shelf", [gallery, sharding_gallery, transformer_gallery, measured_gallery, explorer_gallery], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [680, 358])
def test_every_text_is_inside_apart_and_legible(
    browser: Browser, theme: str, width: int, shelf: Callable[[], list[figures.Figure]]
) -> None:
    made = shelf()
    rules = "".join((STATIC / name).read_text("utf-8") for name in ("tokens.css", "figures.css"))
    with mock.patch.dict(os.environ, {"SCALEBOOK_STYLES": "page"}):
        shown = "".join(f._repr_html_() for f in made)
    style = f"{rules} body {{ margin: 16px; background: var(--sb-paper); font-family: sans-serif }}"
    with browser.new_context(viewport={"width": width + 32, "height": 2000}) as context:
        page = context.new_page()
        page.set_content(f'<!doctype html><html lang="en" data-theme="{theme}"><style>{style}</style><body>{shown}</body></html>')
        found = page.evaluate(FAULTS_OF_TEXT)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator(".sb-svg:visible").count() == len(made)
    assert found["texts"] > 500
    assert found["faults"] == []
