"""The chapter How TPUs work: the data typed in its cells are those of the tests, and what its captions say holds."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import scalebook as sb
from scalebook.hierarchy import levels

HERE = Path(__file__).parent
PAGE = (HERE.parent / "book" / "tpus.md").read_text("utf-8")


def assigned(name: str) -> object:
    """What a cell of the page assigns to a name, as a literal (products of numbers worked out)."""
    (source,) = re.findall(rf"^{name} = (\{{.*?^\}})", PAGE, re.M | re.S)
    return ast.literal_eval(source)


def test_compiled_layouts_are_those_recorded() -> None:
    data = json.loads((HERE / "data" / "compiler_layouts.json").read_text("utf-8"))
    recorded = {(d, tuple(s), tuple(int(n) for n in lay.split(":")[0].split(","))): n for d, s, lay, n in data["rows"]}
    typed = assigned("compiled")
    assert isinstance(typed, dict)
    assert len(typed) == 6
    assert all(recorded[key] == nbytes for key, nbytes in typed.items())
    assert f"of {{given}}`{len(data['rows'])}`" in PAGE
    assert "libtpu 0.0.42.1" in PAGE
    assert "libtpu 0.0.42.1" in data["made_with"]


def test_estimated_cycles_are_those_recorded() -> None:
    data = json.loads((HERE / "data" / "compiler_cycles.json").read_text("utf-8"))
    assert assigned("estimated") == {chip: {int(k): n for k, n in by_k.items()} for chip, by_k in data["cycles"].items()}


def test_what_captions_say_of_the_generations_and_of_growing_slices() -> None:
    old, new = sb.chip("v5p"), sb.chip("tpu7x")
    assert new.links * (new.link_bytes_per_s or 0) == old.links * (old.link_bytes_per_s or 1)  # "not at all"
    assert new.flops_per_s["bf16"] / old.flops_per_s["bf16"] > (new.hbm_bytes_per_s or 0) / (old.hbm_bytes_per_s or 1) > 1
    rates = [x.bytes_per_s for x in levels("v5e") if x.bytes_per_s]
    assert rates == sorted(rates, reverse=True) and rates[0] / rates[-1] == pytest.approx(7120)
    chips = {"2x2": 4, "8x8": 64, "16x16": 256}
    meshes = {s: sb.mesh({"X": n}, on=f"v5e:{s}") for s, n in chips.items()}
    exchange = {s: sb.all_to_all(2**24 * n, meshes[s], "X").comms or 0.0 for s, n in chips.items()}
    gather = {s: sb.all_gather(2**30, meshes[s], "X").comms or 0.0 for s in chips}
    assert exchange["8x8"] / exchange["2x2"] == pytest.approx(4, rel=0.01)
    assert exchange["16x16"] / exchange["8x8"] == pytest.approx(1, rel=0.01)  # "hold the exchange level"
    assert gather["8x8"] / gather["2x2"] == pytest.approx(63 / 64 / (3 / 4), rel=0.01)
    assert gather["8x8"] / gather["16x16"] == pytest.approx(2 * (63 / 64) / (255 / 256), rel=0.01)


def test_two_units_of_a_v6e_would_need_the_cycles_that_the_page_says() -> None:
    data = json.loads((HERE / "data" / "compiler_cycles.json").read_text("utf-8"))
    ideal = 8192 * 8192 * 1792 // (2 * 256**2)
    assert ideal == 917_504
    assert data["cycles"]["v6e"]["1792"] / ideal == pytest.approx(0.58, abs=0.01)
