"""The explorers of the chapter on Transformers: what they say against the library's values, over a grid of states; configurations that are pasted."""

from __future__ import annotations

import html
import itertools
import json
import re
import time
from typing import Any

import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings, strategies as st

import scalebook as sb
from scalebook.errors import ModelError, ScalebookError
from scalebook.explore import equal_length, largest_batch, mixing_share
from scalebook.explore.caches import free_bytes
from scalebook.explore.lengths import LENGTHS
from scalebook.figures import Figure
from scalebook.figures.figure import plain
from scalebook.live.explorers import named
from scalebook.live.inputs import MODELS, config_of
from scalebook.live.model_anatomy import EXAMPLE
from scalebook.live.requests import answer
from scalebook.units import binary, count, percent, si

NAMES = ("model_anatomy", "attention_share", "kv_cache")
SMALL = {
    "model_type": "llama", "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
}  # fmt: skip


def shown(name: str, **state: Any) -> tuple[dict[str, Any], Figure]:
    """The settled state of an explorer, and its figure in a page."""
    explorer = named(name)
    settled = explorer.state(state)
    return settled, explorer.live(settled)


def reply(**state: Any) -> dict[str, Any]:
    """What a page gets from the explorer of a model's parts."""
    asked = {"do": "explore", "name": "model_anatomy", "state": state, "with": ["table", "python"]}
    found: dict[str, Any] = json.loads(answer(json.dumps(asked)))
    return found


def stops(svg: str) -> list[list[Any]]:
    """The places of the one area in which the length is dragged."""
    ((found),) = re.findall(r'class="sb-drag" data-key="at" data-axis="x" data-stops="([^"]*)"', svg)
    listed: list[list[Any]] = json.loads(html.unescape(found))
    return listed


# ---- all three --------------------------------------------------------------------------------------------------------------


def test_the_models_to_choose_from() -> None:
    """A good dozen, of every kind of attention and feed-forward; all have a figure in each explorer."""
    assert len(MODELS) == len(set(MODELS)) > 20 and set(MODELS) <= set(sb.models())
    blocks = {block.kind for name in MODELS for layer in sb.model(name).layers for block in layer.blocks}
    assert blocks >= {"attention", "latent attention", "mlp", "experts"}
    assert any(block.state for name in MODELS for layer in sb.model(name).layers for block in layer.blocks)
    for name, model in itertools.product(NAMES, MODELS):
        _, figure = shown(name, model=model)
        assert model in plain(figure.readout) or name == "kv_cache"
        for width in (680, 358):
            assert not re.search(r"\bnan\b|\binf\b|None", figure.svg(width))


@pytest.mark.parametrize("name", NAMES)
def test_a_state_is_drawn_within_a_frame(name: str) -> None:
    """Also the largest model of many kinds of layers: 16 ms of a browser are about 5 here; the best of some runs, on a busy machine."""
    for model in ("deepseek-v3", "nemotron-nano-9b-v2"):
        shown(name, model=model)
        best = 1.0
        for at in LENGTHS[:12]:
            start = time.perf_counter()
            figure = shown(name, model=model, at=at)[1]
            _ = figure.svg(680), figure.readout
            best = min(best, time.perf_counter() - start)
        assert best < 15e-3


@pytest.mark.parametrize("name", ["attention_share", "kv_cache"])
@pytest.mark.parametrize("width", [680, 358])
def test_the_length_is_dragged_in_the_picture(name: str, width: int) -> None:
    """Every length has a place, in order; the head of the marked one stands there, and only a page has places."""
    for at in (128, 8192, 1048576):
        state, figure = shown(name, at=at)
        svg = figure.svg(width)
        places = {value: x for x, value in stops(svg)}
        assert list(places) == list(LENGTHS) and list(places.values()) == sorted(places.values())
        (head,) = re.findall(r'<line x1="([\d.]+)" [^>]*class="sb-now"', svg)
        assert float(head) == pytest.approx(places[at], abs=0.11)
        assert "sb-drag" not in named(name).figure(**state).svg(width)


# ---- a model's parts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "kind", "at"), list(itertools.product(("llama-3-8b", "deepseek-v3", "mixtral-8x7b-v0.1"), ("forward", "decode"), (128, 4096, 1048576))))  # fmt: skip
def test_the_parts_say_what_the_library_says(model: str, kind: Any, at: int) -> None:
    x = sb.model(model)
    _, figure = shown("model_anatomy", model=model, kind=kind, at=at)
    words = plain(figure.readout)
    assert f"{model} has {x.total_params:,} parameters" in words
    assert (f"of which a token uses {x.active_params():,}" in words) == (x.active_params() != x.total_params)
    each = x.flops(batch=1, seq_len=at, kind=kind) / (at if kind == "forward" else 1)
    assert f"costs {si(each, 'FLOPs')} and leaves {si(x.kv_bytes(1), 'B')} of cache" in words
    table = named("model_anatomy").table(figure.view)
    total = sum(int(n.replace(",", "")) for n in table.column("parameters") if n != "none")
    assert total == x.total_params
    for name in ("all", "no_input_embedding", "no_embeddings"):
        assert f"Parameters that a token uses, {name}: {x.active_params(name):,}." in table.notes


def test_what_is_assumed_ignored_or_left_out_is_said() -> None:
    config = {k: v for k, v in SMALL.items() if k != "attention_bias"} | {"rope_theta": 5e5, "vision_config": {"depth": 2}}
    got = reply(config=json.dumps(config))
    assert got["ok"] and "Not given and assumed: attention_bias = false" in plain(got["readout"])
    assert "Left out: vision_config: not counted" in plain(got["readout"])
    assert "Not counted: vision_config: not counted." in BeautifulSoup(got["table"], "html.parser").get_text()
    assert "Not given" not in reply(config=json.dumps(SMALL))["readout"]


def test_a_pasted_configuration_takes_the_models_place() -> None:
    for text in (EXAMPLE, json.dumps(SMALL), json.dumps(SMALL, indent=4), "\ufeff" + json.dumps(SMALL)):
        x = sb.Model.from_hf(config_of(text))
        got = reply(config=text, model="llama-3-8b")
        assert got["ok"] and f"<b>{x.total_params:,}</b> parameters" in got["readout"] and got["state"]["config"] == text.strip()
    assert reply(config="  \n ")["state"]["config"] == ""


@pytest.mark.parametrize(
    "more", [{}, {"_name_or_path": "a'b\"c\\d"}, {"rope_scaling": {"type": "yarn", "factor": 2.0}, "use_cache": None}]
)
def test_copied_code_holds_the_configuration(more: dict[str, Any]) -> None:
    explorer = named("model_anatomy")
    state = explorer.state({"config": json.dumps({**SMALL, **more}), "at": 768})
    code = explorer.python(**state)
    *lines, last = code.strip().splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    assert names["config"] == {**SMALL, **more} and eval(last, names).view == explorer.figure(**state).view


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1]", 'a config.json is an object of fields, {"model_type": …}; found [1]'),
        ("3", "a config.json is an object of fields"),
        ('{"a": }', "the text is no config.json: Expecting value: line 1 column 7 (char 6); it begins with"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ('{"a": -Infinity}', "-Infinity is no number of JSON"),
        ("{'a': 1}", "the text is no config.json: Expecting property name enclosed in double quotes"),
        ("[" * 15_000, "the text is no config.json: it is nested too deeply; it begins with '[[["),
        ('{"hidden_size": ' + "9" * 9000 + "}", "the text is no config.json: Exceeds the limit"),
        ("{}", "the configuration has no model_type"),
        ('{"model_type": "lama"}', "unknown model family (model_type) 'lama'; did you mean 'llama'"),
        (json.dumps({**SMALL, "num_hidden_layers": 0}), "num_hidden_layers must be a whole number from 1 to 10,000; found 0"),
        (json.dumps({**SMALL, "hidden_sise": 5}), "fields that are not understood and could change a count: hidden_sise = 5"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_told_in_the_librarys_words(text: str, told: str) -> None:
    got = reply(config=text)
    assert (
        got["ok"] is False and told in got["error"] and "bug" not in got and "\n" not in got["error"] and len(got["error"]) < 1500
    )
    with pytest.raises(ModelError):
        sb.Model.from_hf(config_of(text))


def test_a_text_that_is_too_long() -> None:
    told = reply(config="x" * 20_001)["error"]
    assert told.startswith("config (or a config.json, pasted here) has 20,001 characters: a field takes at most 20,000")
    assert reply(config=json.dumps({**SMALL, "comment": "x" * 19_000}))["ok"]


VALUES = st.none() | st.booleans() | st.integers(-3, 10**10) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5) | st.lists(st.integers(0, 9), max_size=3)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*SMALL, "head_dim", "quantization_config", "text_config", "architectures", "x"]), VALUES, max_size=3
    )
)
def test_no_configuration_finds_a_fault(changes: dict[str, Any]) -> None:
    got = reply(config=json.dumps({**SMALL, **changes}))
    assert got["ok"] or (got["error"] and "bug" not in got), got


def test_many_layers_and_long_names_stay_small() -> None:
    got = reply(config=json.dumps({**SMALL, "num_hidden_layers": 10_000, "_name_or_path": "n" * 5000}))
    assert got["ok"] and len(got["svg"]) < 20_000 and len(got["readout"]) < 1000


# ---- attention against the weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "other"), [("llama-3-8b", "none"), ("llama-3-8b", "mistral-7b-v0.1"), ("gemma-3-12b", "deepseek-v3"), ("phi-4", "phi-4")])  # fmt: skip
@pytest.mark.parametrize("convention", ["causal", "full"])
def test_the_shares_say_what_the_library_says(model: str, other: str, convention: Any) -> None:
    for at in (128, 12288, 1048576):
        _, figure = shown("attention_share", model=model, other=other, convention=convention, at=at)
        words, table = plain(figure.readout), named("attention_share").table(figure.view)
        chosen = [model] if other in ("none", model) else [model, other]
        assert words.startswith(f"At {count(at)} tokens scores and values are ")
        for name in chosen:
            assert f"{percent(mixing_share(name, at, convention))} of the FLOPs of {name}" in words
            turn = equal_length(name, convention)
            said = "they never reach half" if turn is None else f"they cost as much as all the rest from {count(turn)} tokens on"
            assert f"In {name} {said}" in words
            lengths = [int(n.replace(",", "")) for n in table.column("tokens")]
            assert at in lengths and table.column(name) == [percent(mixing_share(name, n, convention)) for n in lengths]


def test_windows_bound_the_share() -> None:
    _, figure = shown("attention_share")
    assert "In mistral-7b-v0.1 they never reach half, since every layer sees a bounded number of keys: at most 13%" in plain(
        figure.readout
    )
    assert [m["name"] for m in figure.view["marks"]] == ["llama-3-8b"]


# ---- what is kept -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["llama-3-8b", "gemma-3-12b", "deepseek-v3", "nemotron-nano-9b-v2", "gpt2-xl"])
@pytest.mark.parametrize(("chip", "tp", "weights"), [("h100", 1, "bf16"), ("v5e", 8, "int4"), ("b200", 16, "fp8")])
def test_the_caches_say_what_the_library_says(model: str, chip: str, tp: int, weights: str) -> None:
    x = sb.model(model)
    for at, batch, dtype in ((128, 1, "fp8"), (24576, 64, "bf16")):
        options: dict[str, Any] = {"dtype": dtype, "tp": tp, "weights": weights}
        _, figure = shown("kv_cache", model=model, chip=chip, at=at, batch=batch, **options)
        words, table = plain(figure.readout), named("kv_cache").table(figure.view)
        free, n = free_bytes(model, chip, tp=tp, weights=weights), largest_batch(model, at, chip, **options)
        states = -(-x.state_bytes(1, dtype) // tp)
        each = x.kv_bytes(at, 1, dtype, tp=tp) + x.index_bytes(at, 1, dtype, tp=tp) + states
        if free <= 0:
            assert words.startswith("Nothing fits: ") and n == 0
            continue
        assert f"holds {count(n)} sequence{'' if n == 1 else 's'} of {count(at)} tokens" in words
        assert f"A batch of {batch} takes {binary(batch * each)}" in words
        assert (" and fits" in words) == (batch <= n)
        assert ("recurrent states" in words) == (x.state_bytes() > 0)
        own = table.column(table.head[1])  # type: ignore[arg-type]
        assert own[table.column("tokens each").index(count(at))] == binary(batch * each)


def test_one_latent_is_on_every_device() -> None:
    """Splitting heads leaves MLA's and MQA's cache as it is, MHA's falls by as many."""
    one, eight = (shown("kv_cache", model="deepseek-v3", tp=tp, chip="b300")[1].view["at"]["rows"] for tp in (1, 8))
    ratio = {a["name"]: a["value"] / b["value"] for a, b in zip(one, eight, strict=True)}
    assert ratio == {"as built: MLA": 1, "MHA": 8, "GQA (K = 8)": 8, "MQA": 1}


def test_a_window_bends_the_curve() -> None:
    x = sb.model("gemma-3-12b")
    _, figure = shown("kv_cache", model="gemma-3-12b", batch=1)
    points = dict(map(tuple, figure.view["lines"][0]["points"]))
    assert points[1024] == 1024 * x.kv_bytes(1) and points[2048] - points[1536] == x.kv_bytes(1) * 512 * 8 // 48
    assert "40 of 48 layers with keys keep the last 1,024 tokens only" in plain(figure.readout)


def test_mistakes_of_states() -> None:
    with pytest.raises(ScalebookError, match=r"unknown model \(Model\) 'llama-3-9b'; did you mean 'llama-3-8b'"):
        sb.explorer("kv_cache", model="llama-3-9b")
    with pytest.raises(
        ScalebookError,
        match=r"at \(Tokens in each sequence\) is one of the 27 values of its slider, from 128 to 1048576; found 1000; the nearest is 1024",
    ):
        sb.explorer("kv_cache", at=1000)
