"""Training state by scheme and ZeRO stage, and activations: against published formulas, and by hand array by array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import scalebook as sb
from scalebook.errors import ModelError, ScalebookError, SizeError
from scalebook.memory import (
    REMAT,
    SCHEMES,
    ZERO,
    activation_bytes,
    attention_score_bytes,
    deepspeed_estimate,
    logits_bytes,
    training_state,
)
from scalebook.transformer.blocks import latent_attention
from scalebook.transformer.layers import Layer, around, norms
from scalebook.transformer.model import Model

small = st.integers(1, 6)


# ---- state ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zero", "bytes_of_each"),
    # of 8 ranks, from ZeRO's own table (arXiv 1910.02054, figure 1): 16, 4 + 12/8, 2 + 14/8, 16/8 bytes per parameter
    [(0, 16), (1, 4 + 12 / 8), (2, 2 + 14 / 8), (3, 16 / 8)],
)
def test_stages_of_zero(zero: int, bytes_of_each: float) -> None:
    assert training_state(8_000_000, "mixed", zero=zero, ranks=8).total == 8_000_000 * bytes_of_each


def test_zeros_own_example() -> None:
    """7.5 billion parameters on 64 GPUs: 120, 31.4, 16.6 and 1.9 GB (arXiv 1910.02054, figure 1)."""
    found = [training_state(7_500_000_000, zero=stage, ranks=64).total / 1e9 for stage in ZERO]
    assert found == pytest.approx([120, 31.4, 16.6, 1.9], abs=0.05)


@given(st.integers(1, 10**9), st.integers(1, 64), st.sampled_from(list(SCHEMES)))
def test_a_higher_stage_never_needs_more_and_ranks_hold_everything(P: int, ranks: int, scheme: str) -> None:
    stages = [training_state(P, scheme, zero=stage, ranks=ranks).total for stage in ZERO]
    assert stages == sorted(stages, reverse=True)
    assert P * SCHEMES[scheme].total <= ranks * stages[3] < (P + ranks) * SCHEMES[scheme].total
    assert training_state(P, scheme, zero=3, ranks=1) == training_state(P, scheme)


def test_a_state_of_a_model_is_that_of_its_parameters_and_sweeps() -> None:
    x = sb.model("llama-3-8b")
    assert training_state(x, "megatron") == training_state(x.total_params, "megatron")
    assert training_state(x, "fp32").parts == {"weights": 4 * x.total_params, "moments": 8 * x.total_params}
    ranks = np.array([1, 3, 8])
    swept = training_state(x, "mt-nlg", zero=2, ranks=ranks).total
    assert list(swept) == [training_state(x, "mt-nlg", zero=2, ranks=int(n)).total for n in ranks]


# ---- activations ------------------------------------------------------------------------------------------------------------


@given(small, st.integers(1, 3), st.integers(1, 9), small, small)
def test_korthikantis_formula(L: int, b: int, s: int, a: int, width: int) -> None:
    """s·b·h·(34 + 5·a·s/h) bytes for a layer, 34·s·b·h with scores computed again, 2·s·b·h with everything: arXiv 2205.05198."""
    h = a * width
    x = Model.dense(L=L, D=h, F=4 * h, N=a, H=width, V=7, gated=False)
    shape: dict[str, Any] = {"batch": b, "seq_len": s}
    assert activation_bytes(x, **shape, remat="none", dropout=True) == L * s * b * (34 * h + 5 * a * s)
    assert activation_bytes(x, **shape, remat="selective", dropout=True) == L * s * b * 34 * h
    assert activation_bytes(x, **shape, remat="full") == L * 2 * s * b * h
    assert activation_bytes(x, **shape, remat="offload") == 0


@given(small, small, small, small, small)
def test_grouped_and_gated_by_hand(K: int, G: int, H: int, F: int, T: int) -> None:
    D, N = 5, K * G
    x = Model.dense(L=2, D=D, F=F, N=N, K=K, H=H, V=7)
    per_token = (D + 2 * N * H + 2 * K * H) + (D + 3 * F) + 2 * D  # in, q, k, v, heads; in, gate, up, their product; two norms
    assert activation_bytes(x, batch=3, seq_len=T, remat="selective") == 2 * 2 * 3 * T * per_token
    assert activation_bytes(x, batch=3, seq_len=T, remat="none") == 2 * 2 * 3 * T * (per_token + N * T)
    assert activation_bytes(x, batch=3, seq_len=T, remat="none", dtype="fp32") == 4 * 2 * 3 * T * (per_token + N * T)


def test_latent_attention_keeps_what_it_makes() -> None:
    block = latent_attention(D=16, N=4, kv_rank=8, nope=6, rope=2, v=5, q_rank=7)
    x = Model("", "", 16, 50, (Layer("layer", (norms(16), block)),), around(D=16, V=50, tied=False))
    numbers = 16 + (16 + 7 + 4 * 8) + (10 + 4 * 6 + 4 * 5) + 4 * 5  # norm; in, low, q; latent, keys, values; heads
    assert activation_bytes(x, batch=1, seq_len=3, remat="selective") == 2 * 3 * numbers


def test_activations_of_real_models_and_sweeps() -> None:
    for name in ("mixtral-8x7b-v0.1", "deepseek-v3", "gemma-3-4b", "gpt-oss-120b"):
        x = sb.model(name)
        by_policy = [activation_bytes(x, batch=1, seq_len=4096, remat=r) for r in REMAT]
        assert by_policy == sorted(by_policy, reverse=True) and all(type(n) is int for n in by_policy)
        lengths = np.array([512, 4096])
        swept = activation_bytes(x, batch=2, seq_len=lengths, remat="none")
        assert list(swept) == [activation_bytes(x, batch=2, seq_len=int(n), remat="none") for n in lengths]


def test_buffers_of_scores_and_logits() -> None:
    x = sb.model("llama-3-8b")
    assert attention_score_bytes(x, batch=2, seq_len=100) == 2 * 32 * 100 * 100 * 4
    assert logits_bytes(x, batch=2, seq_len=100, dtype="bf16") == 2 * 100 * 128256 * 2


# ---- mistakes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: training_state(10, "adam"), r"unknown training scheme 'adam'.*Known: fp32, mixed, megatron, mt-nlg"),
        (lambda: training_state(10, zero=4), r"a ZeRO stage is a whole number, one of 0, 1, 2, 3; found 4"),
        (lambda: training_state(10, zero=True), r"a ZeRO stage is a whole number, one of 0, 1, 2, 3; found True"),
        (lambda: training_state(-1), r"the number of parameters must be a whole number above 0.*found -1"),
        (lambda: training_state(10, ranks=0), r"ranks must be .*found 0"),
        (lambda: deepspeed_estimate(10, zero=1, ranks=1), r"unknown ZeRO stage of the estimator 1"),  # type: ignore[arg-type]
        (lambda: deepspeed_estimate(10, zero=2, ranks=1, offload="all"), r"unknown offload 'all'.*Known: none, optimizer"),
        (lambda: activation_bytes(sb.model("llama-3-8b"), batch=1, seq_len=0), r"seq_len must be .*found 0"),
        (lambda: activation_bytes(sb.model("llama-3-8b"), batch=1, seq_len=1, remat="some"), r"unknown remat 'some'"),
        (lambda: activation_bytes(sb.model("granite-4.0-h-small"), batch=1, seq_len=9, remat="none"), r"block of Mamba-2 depend on its kernel"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: Any, message: str) -> None:
    with pytest.raises((ModelError, SizeError, ScalebookError), match=message):
        call()
