"""Views of the figures on Transformers: parts that sum to the library's own counts, turning points against brute force, caches by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import scalebook as sb
from scalebook import explore
from scalebook.errors import HardwareError, ModelError, ScalebookError, SizeError
from scalebook.explore.caches import cache_variants, free_bytes, largest_batch, sequence_bytes
from scalebook.explore.lengths import LENGTHS, MOST_MODELS, bound_of_share, equal_length, mixing_share
from scalebook.explore.transformers import MOST_RUNS, PARTS, attention_words, parts_of, subject, token_costs
from scalebook.live.inputs import MODELS
from scalebook.transformer.blocks import Block, attention, experts, latent_attention, mlp
from scalebook.transformer.layers import Convention, Layer, around, norms, stacked
from scalebook.transformer.model import Kind, Model
from scalebook.transformer.ops import Span, conv, matmul, scan

D, V = 64, 1000


def made(*layers: tuple[str, Layer], tied: bool = False, name: str = "made") -> Model:
    return Model(name, "made", D, V, stacked(layers), around(D=D, V=V, tied=tied), tied)


def seeing(span: Span, K: int = 2) -> Layer:
    return Layer("x", (norms(D, D), attention(D=D, N=8, K=K, H=16, span=span), mlp(D=D, F=256)))


def recurrent() -> Layer:
    ops = (
        matmul("mixer/in", "In[B, T, D] * W[D, F] -> Up[B, T, F]", D=D, F=128),
        conv("mixer/conv", 128, 4),
        scan("mixer/scan", 4096),
    )
    return Layer("r", (norms(D), Block("mixer", ops, state={"conv": 384, "ssm": 2048})))


FULL, LATENT = Span(), latent_attention(D=D, N=8, kv_rank=32, nope=16, rope=8, v=12, q_rank=24)
MIXTURE = experts(D=D, F=32, E=16, k=2, shared=48, router_bias=True)
OWN = [
    Model.dense(L=3, D=D, F=256, N=8, K=2, H=16, V=V, name="dense"),
    Model.dense(L=2, D=D, F=256, N=8, H=8, V=V, tied=True, gated=False, name="tied"),
    made(*[("near", seeing(Span("window", 100)))] * 3, name="windows"),
    made(*[("near", seeing(Span("chunk", 128)))] * 3, name="chunks"),
    made(("near", seeing(Span("window", 100))), ("far", seeing(FULL)), ("near", seeing(Span("window", 100))), name="mixed"),
    made(("top", seeing(Span("top", 50))), ("every", seeing(Span("every", 16))), name="sparse"),
    made(("first", Layer("f", (norms(D), LATENT, mlp(D=D, F=96)))), *[("moe", Layer("m", (norms(D), LATENT, MIXTURE)))] * 4, name="latent"),
    made(("r", recurrent()), ("mlp", Layer("m", (norms(D), mlp(D=D, F=96)))), ("r", recurrent()), name="recurrent"),
]  # fmt: skip
SUBJECTS = [*MODELS, *OWN]
EACH = pytest.mark.parametrize("model", SUBJECTS, ids=lambda m: m if isinstance(m, str) else m.name)


# ---- parts ------------------------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("kind", ["forward", "decode"])
def test_parts_are_all_of_the_model(model: str | Model, kind: Kind) -> None:
    """Every path has a part; parts of each row sum to the model's own totals, and what is drawn to nearly all."""
    x = subject(model)
    belongs = parts_of(x)
    assert set(belongs.values()) <= set(PARTS)
    view = explore.model_anatomy(model, seq_len=768, kind=kind)
    assert json.loads(json.dumps(view)) == view
    rows = {row["name"]: row for row in view["rows"]}
    flops = x.flops(batch=1, seq_len=768, kind=kind)
    wanted = {"parameters": x.total_params, "FLOPs of a token": flops, "parameters that a token uses": x.active_params()}
    for name, row in rows.items():
        assert sum(p["value"] for p in row["every"]) == wanted[name]
        assert sum(p["share"] for p in row["every"]) == pytest.approx(1)
        assert [p["name"] for p in row["every"]] == [p for p in PARTS if p in {q["name"] for q in row["every"]}]
        assert 0.998 < sum(p["value"] for p in row["parts"]) < 1 + 1e-9
    assert ("parameters that a token uses" in rows) == (x.active_params() != x.total_params)
    assert view["flops"] == pytest.approx(flops / (768 if kind == "forward" else 1))
    assert view["total"] == x.total_params and view["active"]["no_embeddings"] == x.active_params("no_embeddings")
    assert view["token_bytes"] == x.kv_bytes(1) + x.index_bytes(1) and view["state_bytes"] == x.state_bytes()


@EACH
def test_every_layer_has_its_cell(model: str | Model) -> None:
    x = subject(model)
    view = explore.model_anatomy(model)
    assert sum(n for _, n in view["runs"]) == x.L == sum(k["count"] for k in view["kinds"])
    cells = [kind for kind, n in view["runs"] for _ in range(n)]
    for i, layer in enumerate(x.layers):
        assert tuple(place for place, kind in enumerate(cells) if kind == i) == layer.at
    outside = sum(op.params for op in x.outer)
    assert sum(k["count"] * k["params"] for k in view["kinds"]) + outside == x.total_params


def by_part(model: Model, row: int = 0, **options: int) -> dict[str, int]:
    return {p["name"]: p["value"] for p in explore.model_anatomy(model, **options)["rows"][row]["every"]}


def test_parts_by_hand() -> None:
    latent, hybrid = OWN[6], OWN[7]
    assert by_part(latent) == {
        "embedding": V * D,
        "attention weights": 5 * (D * 24 + 24 + 24 * 8 * 24 + D * 40 + 32 * 8 * 16 + 32 * 8 * 12 + 8 * 12 * D + 32),
        "MLP": 3 * D * 96,
        "router": 4 * (D * 16 + 16),
        "routed experts": 4 * 3 * 16 * D * 32,
        "shared experts": 4 * 3 * D * 48,
        "everything else": 5 * D + D,
        "head": V * D,
    }
    used, flops = by_part(latent, 1), by_part(latent, 2, seq_len=10)
    assert used["routed experts"] == 4 * 3 * 2 * D * 32 and flops["routed experts"] == 10 * 2 * used["routed experts"]
    assert flops["scores and values"] == 5 * 2 * 8 * (24 + 12) * 55 and "everything else" not in flops
    assert by_part(hybrid)["recurrent blocks"] == 2 * (D * 128 + 128 * 4)
    assert by_part(hybrid, 1, seq_len=10)["recurrent blocks"] == 2 * 10 * (2 * D * 128 + 2 * 128 * 4 + 4096)
    assert by_part(OWN[1])["embedding"] == V * D and "head" not in by_part(OWN[1])
    assert by_part(OWN[1], 1, seq_len=10)["head"] == 10 * 2 * V * D


def test_layers_in_words() -> None:
    kinds = explore.model_anatomy(OWN[4])["kinds"]
    assert [(k["count"], k["places"], k["words"]) for k in kinds] == [
        (2, "0, 2", "attention, 8 heads over 2, in a window of 100; MLP"), (1, "1", "attention, 8 heads over 2; MLP")
    ]  # fmt: skip
    assert [[b["pale"] for b in k["blocks"]] for k in kinds] == [[True, False], [False, False]]
    words = [k["words"] for k in explore.model_anatomy(OWN[6])["kinds"]]
    assert words == ["latent attention, 8 heads; MLP", "latent attention, 8 heads; 2 of 16 experts and a shared one"]
    assert [attention_words(x) for x in OWN] == [
        "GQA (K = 2)", "MHA", "GQA (K = 2)", "GQA (K = 2)", "GQA (K = 2)", "GQA (K = 2)", "MLA", "no keys and values"
    ]  # fmt: skip
    assert attention_words(made(("x", seeing(FULL, K=1)))) == "MQA"
    assert attention_words(made(("x", seeing(FULL)), ("y", seeing(FULL, K=4)))) == "GQA"


def test_too_many_stretches_are_not_drawn() -> None:
    two = [("a", seeing(FULL)), ("b", recurrent())]
    assert len(explore.model_anatomy(made(*two * (MOST_RUNS // 2)))["runs"]) == MOST_RUNS
    assert explore.model_anatomy(made(*two * (MOST_RUNS // 2), two[0]))["runs"] == []


def test_no_model() -> None:
    with pytest.raises(ModelError, match=r"unknown model 'lama-3-8b'; did you mean 'llama-3-8b'"):
        explore.model_anatomy("lama-3-8b")
    with pytest.raises(ModelError, match=r"a figure shows a Model, or one by its name, such as 'llama-3-8b'; found 3"):
        explore.model_anatomy(3)
    sweep = Model.dense(L=2, D=np.array([64, 128]), F=256, N=8, H=8, V=V)
    for show in (explore.model_anatomy, explore.attention_share, explore.kv_cache):
        with pytest.raises(ModelError, match="the sizes of 'by hand' are arrays: choose one value of each"):
            show(sweep)
    with pytest.raises(ScalebookError, match=r"unknown kind of FLOPs 'train'. Known: forward, decode"):
        explore.model_anatomy("llama-3-8b", kind="train")
    with pytest.raises(SizeError, match="seq_len must be a positive whole number"):
        explore.model_anatomy("llama-3-8b", seq_len=0)


# ---- attention against the weights ------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("convention", ["causal", "full"])
def test_the_share_is_that_of_the_flops_by_part(model: str | Model, convention: Convention) -> None:
    x = subject(model)
    belongs = parts_of(x)
    for S in (1, 99, 129, 4096, 100_000):
        flops = x.flops_by_part(batch=1, seq_len=S, kind="forward", convention=convention)
        mixing = sum(n for path, n in flops.items() if belongs[path] == "scores and values")
        assert mixing_share(model, S, convention) == pytest.approx(mixing / sum(flops.values()), abs=1e-15)
        each, _ = token_costs(x)
        assert each * S == sum(flops.values()) - mixing


@EACH
@pytest.mark.parametrize("convention", ["causal", "full"])
def test_the_turn_is_where_the_share_passes_a_half(model: str | Model, convention: Convention) -> None:
    """Just below, mixing is less than the rest, at it no less; where it never is, even the longest share stays at its bound or below."""
    turn, bound = equal_length(model, convention), bound_of_share(model, convention)
    if turn is None:
        assert bound <= 0.5
    else:
        assert mixing_share(model, turn, convention) >= 0.5
        assert turn == 1 or mixing_share(model, turn - 1, convention) < 0.5
    shares = [mixing_share(model, S, convention) for S in (100, 10_000, 10**6, 10**9)]
    assert all(share <= bound + 1e-12 for share in shares)
    if bound < 1:
        assert shares[-1] == pytest.approx(bound, rel=1e-4)


def test_turns_by_hand_and_by_counting() -> None:
    """S = W ÷ (2·L·N·H) − 1, W the FLOPs of a token elsewhere; and the first length of all, counted up from one."""
    W = 2 * 3 * (2 * D * 128 + 2 * D * 32 + 3 * D * 256) + 2 * V * D
    assert equal_length(OWN[0]) == -(-W // (2 * 3 * 128)) - 1
    assert equal_length(OWN[0], "full") == -(-W // (4 * 3 * 128))
    for x in (OWN[0], OWN[1], OWN[4], OWN[6]):
        assert equal_length(x) == next(S for S in range(1, 10**5) if mixing_share(x, S) >= 0.5)
    assert equal_length(OWN[2]) is equal_length(OWN[7]) is None
    pair, weights = 4 * 128, 2 * (2 * D * 128 + 2 * D * 32 + 3 * D * 256) + 2 * V * D / 3
    assert bound_of_share(OWN[2]) == pytest.approx(100 * pair / (100 * pair + weights))
    assert bound_of_share(OWN[3]) == pytest.approx(64.5 * pair / (64.5 * pair + weights))
    assert bound_of_share(OWN[3], "full") == pytest.approx(128 * pair / (128 * pair + weights))
    assert bound_of_share(OWN[5]) == 1 and bound_of_share(OWN[7]) == 0


def test_a_published_share() -> None:
    """MaxText's table for Llama-2-7B (github.com/AI-Hypercomputer/maxtext, pull 1988): at 8,192 tokens 1299.00 learnable, 211.11 and 422.21 attention."""
    assert mixing_share("llama-2-7b", 8192) == pytest.approx(211.11 / (211.11 + 1299.00), rel=2e-4)
    assert mixing_share("llama-2-7b", 8192, "full") == pytest.approx(422.21 / (422.21 + 1299.00), rel=2e-4)


def test_shares_as_a_view() -> None:
    view = explore.attention_share(OWN[:1] + OWN[2:4], at=768)
    assert json.loads(json.dumps(view)) == view and view["at"]["name"] == "768 tokens"
    for line, x in zip(view["lines"], OWN[:1] + OWN[2:4], strict=True):
        lengths = [S for S, _ in line["points"]]
        assert lengths == sorted(set(lengths)) and (lengths[0], lengths[-1]) == (LENGTHS[0], LENGTHS[-1])
        assert all(share == mixing_share(x, S) for S, share in line["points"])
    assert [row["value"] for row in view["at"]["rows"]] == [mixing_share(x, 768) for x in OWN[:1] + OWN[2:4]]
    assert [(m["name"], m["x"], m["y"]) for m in view["marks"]] == [("dense", equal_length(OWN[0]), 0.5)]
    assert explore.attention_share(OWN[0])["at"] is None  # one model need not be in a list


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"models": []}, f"compares 1 to {MOST_MODELS} models of different names; found \\[\\]"),
        ({"models": [OWN[0], OWN[0]]}, "of different names; found \\['dense', 'dense'\\]"),
        ({"models": OWN}, "compares 1 to 4 models"),
        ({"models": OWN[:1], "convention": "half"}, "unknown convention 'half'. Known: causal, full"),
        ({"models": OWN[:1], "at": 100}, "the marked length is from 128 to 1,048,576; found 100"),
        ({"models": OWN[:1], "low": 100, "high": 150}, "from `low` to at least twice of it; found low=100, high=150"),
    ],
)
def test_shares_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ScalebookError, match=told):
        explore.attention_share(**options)


# ---- what is kept -----------------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(
    "options", [{"dtype": "bf16"}, {"dtype": "fp8", "tp": 4}, {"dtype": "int4", "tp": 16, "weights": "int4"}]
)
def test_the_batch_fits_and_one_more_does_not(model: str | Model, options: dict[str, Any]) -> None:
    x, S = subject(model), 6144
    tp, dtype, weights = int(options.get("tp", 1)), str(options["dtype"]), str(options.get("weights", "bf16"))
    n = largest_batch(model, S, "h200", **options)
    hbm = sb.chip("h200").hbm_bytes
    assert hbm is not None

    def needed(batch: int) -> float:
        states = -(-x.state_bytes(1, dtype) // tp)
        each = x.kv_bytes(S, 1, dtype, tp=tp) + x.index_bytes(S, 1, dtype, tp=tp) + states
        return float(-(-x.weight_bytes(weights) // tp) + batch * each)

    assert needed(n + 1) > hbm and (n == 0 or needed(n) <= hbm)
    view = explore.kv_cache(model, at=S, batch=3, chip="h200", **options)
    assert json.loads(json.dumps(view)) == view
    row = view["at"]["rows"][0]
    assert row["fit"] == n == view["fit"]["rows"][0]["value"] and row["value"] == 3 * sequence_bytes(x, S, dtype, tp)
    longest = view["longest"]
    if longest is not None:
        assert 3 * sequence_bytes(x, longest, dtype, tp) <= view["free"] < 3 * sequence_bytes(x, longest + 1, dtype, tp)


def test_variants_by_hand() -> None:
    """Elements per token and layer: 2·N·H, 2·8·H, 2·H, and 4½·H, which is what 2¼ key/value heads keep."""
    x = subject("llama-3-8b")
    per_layer = {name: m.kv_bytes(1) // (2 * 32) for name, m in cache_variants(x).items()}
    assert per_layer == {"as built: GQA (K = 8)": 2 * 8 * 128, "MHA": 2 * 32 * 128, "MQA": 2 * 128, "MLA": 4.5 * 128}
    assert per_layer["MLA"] == 2.25 * per_layer["MQA"]
    latent = cache_variants(OWN[6])
    assert {name: m.kv_bytes(1) // (2 * 5) for name, m in latent.items()} == {
        "as built: MLA": 40, "MHA": 8 * (24 + 12), "GQA (K = 8)": 8 * (24 + 12), "MQA": 24 + 12
    }  # fmt: skip
    assert list(cache_variants(OWN[1])) == ["as built: MHA", "GQA (K = 8)", "MQA", "MLA"]
    assert list(cache_variants(OWN[7])) == ["as built: no keys and values"]
    windows = cache_variants(OWN[4])["MHA"]
    assert windows.kv_bytes(1000) == 2 * 2 * 8 * 16 * (1000 + 2 * 100)  # bytes, of keys and values: two layers keep 100 tokens
    assert all(m.total_params == x.total_params for m in cache_variants(x).values())


def test_a_published_expansion() -> None:
    """DeepSeek-V3 as MHA: 4,997,120 bytes a token, 70,272 as built (github.com/LMCache/LMCache, pull 694)."""
    found = cache_variants(subject("deepseek-v3"))
    assert found["MHA"].kv_bytes(1) == 4_997_120 and found["as built: MLA"].kv_bytes(1) == 70_272


def test_states_and_splits() -> None:
    hybrid = made(("r", recurrent()), ("x", seeing(FULL)), name="hybrid")
    assert sequence_bytes(hybrid, 1000) == 2 * (384 + 2048) + 1000 * 2 * 2 * 2 * 16
    assert sequence_bytes(hybrid, 1000, tp=2) == (384 + 2048) + 1000 * 2 * 2 * 16
    assert (
        sequence_bytes(hybrid, 1000, tp=8) == (384 + 2048) // 4 + 1000 * 2 * 2 * 16
    )  # two heads: four devices hold each of them
    view = explore.kv_cache(OWN[4], at=384, batch=2)
    assert view["windows"] == {"layers": 2, "of": 3, "width": 100} and explore.kv_cache(hybrid)["windows"] is None
    assert explore.kv_cache(hybrid, variants=["as built: GQA (K = 2)"])["lines"][0]["colour"] == "hbm"


def test_caches_refused() -> None:
    with pytest.raises(ScalebookError, match="mlp keeps nothing of a sequence: there is no cache to show"):
        made_of_mlp = made(("m", Layer("m", (norms(D), mlp(D=D, F=96)))), name="mlp")
        explore.kv_cache(made_of_mlp)
    with pytest.raises(ScalebookError, match="keeps nothing of a sequence, so no number of them fills a memory"):
        largest_batch(made_of_mlp, 128, "h100")
    with pytest.raises(
        ScalebookError, match=r"unknown way to share the keys and values of dense 'MHB'.*Known: as built: GQA \(K = 2\), MHA"
    ):
        explore.kv_cache(OWN[0], variants=["MHB"])
    with pytest.raises(HardwareError, match="unknown chip"):
        explore.kv_cache(OWN[0], chip="h1000")
    with pytest.raises(ScalebookError, match="unknown dtype"):
        explore.kv_cache(OWN[0], dtype="bf17")
    assert free_bytes("llama-3.1-405b", "v5e") < 0 == largest_batch("llama-3.1-405b", 128, "v5e")
    view = explore.kv_cache("llama-3.1-405b", chip="v5e")
    assert view["guides"] == view["marks"] == [] and view["longest"] is None and {r["fit"] for r in view["at"]["rows"]} == {0}


@settings(max_examples=40)
@given(st.sampled_from(OWN), st.sampled_from(LENGTHS), st.integers(1, 50), st.integers(1, 9))
def test_bytes_scale_with_the_batch_and_never_fall(model: Model, S: int, batch: int, tp: int) -> None:
    one, many = (explore.kv_cache(model, at=S, batch=b, tp=tp)["lines"] for b in (1, batch))
    for a, b in zip(one, many, strict=True):
        assert [n * batch for _, n in a["points"]] == [n for _, n in b["points"]]
        assert [n for _, n in a["points"]] == sorted(n for _, n in a["points"])
