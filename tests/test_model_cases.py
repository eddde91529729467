"""Questions that people really asked about parameters, FLOPs, caches, weights and training states: the library's answer is the right one.

`data/model_cases.jsonl` has one question a line with its source, the right value and how it is derived. Tolerances are the digits of the
right value.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import scalebook as sb
from scalebook.cli_models import affine
from scalebook.memory import (
    SCHEMES,
    activation_bytes,
    attention_score_bytes,
    deepspeed_estimate,
    training_state,
)
from scalebook.sources import tables
from scalebook.tiling import padding
from scalebook.transformer.blocks import attention, experts, mlp
from scalebook.transformer.layers import Layer, around, norms
from scalebook.transformer.model import Model
from scalebook.transformer.ops import vector
from scalebook.transformer.precision import rope_table_bytes
from scalebook.units import round_up

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case
    for case in map(json.loads, (Path(__file__).parent / "data" / "model_cases.jsonl").read_text("utf-8").splitlines())
}
GIB = 2**30


def right(case: str) -> Any:
    return CASES[case]["right_value"]


def config(name: str, **changes: Any) -> dict[str, Any]:
    """The configuration of a known model, with changes."""
    found = tables("models")["models"][name]["config"]
    return {k: None if v == "null" else v for k, v in found.items()} | changes


def llama(D: int, F: int, L: int, N: int, K: int, V: int = 32000) -> Model:
    sizes = {"hidden_size": D, "intermediate_size": F, "num_hidden_layers": L, "num_attention_heads": N, "num_key_value_heads": K}
    return Model.from_hf({"model_type": "llama", "vocab_size": V, "tie_word_embeddings": False, **sizes})


def llama2_7b() -> Model:
    return llama(4096, 11008, 32, 32, 32)


def test_every_case_is_answered_and_sourced() -> None:
    mine = Path(__file__).read_text("utf-8")
    assert [i for i in CASES if mine.count(f'right("{i}")') == 0] == []
    assert all(c["source_url"].startswith(("https://", "measured: jax")) for c in CASES.values())
    assert len(CASES) == 44


# ---- weights ----------------------------------------------------------------------------------------------------------------


def test_a_log_of_14_99_gb_is_weights_and_a_table_of_positions() -> None:
    want = right("weights-llama31-8b-rope-cache")
    x = sb.model("llama-3.1-8b")
    table = rope_table_bytes(131072, x.dims.H)
    assert x.total_params == want["params"]
    assert x.weight_bytes() / GIB == pytest.approx(want["weights_gib"], abs=5e-5)
    assert table / GIB == want["rope_cache_gib"]
    assert (x.weight_bytes() + table) / GIB == pytest.approx(want["total_gib"], abs=5e-5)


def test_an_fp8_checkpoint_of_405b_is_mixed() -> None:
    want = right("weights-llama31-405b-fp8")
    kept = [f"model.layers.{i}.self_attn.{p}_proj" for i in range(126) for p in "qkvo"]
    kept += [f"model.layers.{i}.mlp.{p}_proj" for i in (0, 125) for p in ("gate", "up", "down")]
    scheme = {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": kept}
    x = Model.from_hf(config("llama-3.1-405b", num_key_value_heads=16, quantization_config=scheme))
    plain = sb.model("llama-3.1-405b")
    assert plain.weight_bytes("fp8") / 8 / GIB == pytest.approx(want["uniform_fp8_gib_per_gpu"], abs=0.01)
    replicated = 7 * (2 * 126 + 1) * 16384 * 2 + 8 * rope_table_bytes(131072, 128)  # norms and positions are on all 8
    assert x.weight_bytes() / 8 / GIB == pytest.approx(57.705, abs=0.002)
    assert (x.weight_bytes() + replicated) / 8 / GIB == pytest.approx(want["right_gib_per_gpu"], abs=0.01)


def test_memory_is_of_all_experts() -> None:
    want = right("params-qwen2moe-memory")
    assert sb.model("qwen1.5-moe-a2.7b").weight_bytes() / GIB == pytest.approx(want["qwen15_moe_gib"], abs=5e-3)
    sizes = {
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "vocab_size": 151936,
    }
    routed = {
        "num_experts": 64,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2560,
        "shared_expert_intermediate_size": 20480,
    }
    rest = {"intermediate_size": 18944, "tie_word_embeddings": False, "use_sliding_window": False}
    x = Model.from_hf({"model_type": "qwen2_moe", **sizes, **routed, **rest})
    assert x.weight_bytes() / GIB == pytest.approx(want["qwen2_57b_gib"], abs=5e-3)


# ---- caches -----------------------------------------------------------------------------------------------------------------


def test_two_gpus_each_hold_half_of_every_token() -> None:
    want = right("kv-qwen25-14b-tp2-4090")
    x = sb.model("qwen2.5-14b")
    assert (x.kv_bytes(1), x.kv_bytes(1, tp=2)) == (want["kv_bytes_per_token_total"], want["kv_bytes_per_token_per_gpu"])
    assert x.kv_bytes(81_536, tp=2) / GIB == pytest.approx(want["kv_gib_per_gpu_for_81536"], abs=5e-4)
    assert x.weight_bytes() / 2 / GIB == pytest.approx(want["weights_gib_per_gpu"], abs=5e-4)


def test_an_error_message_already_counts_fp8() -> None:
    want = right("kv-fp8-qwen3-30b")
    x = sb.model("qwen3-30b-a3b")
    assert x.kv_bytes(1, dtype="fp8") == want["kv_bytes_per_token"]
    assert x.kv_bytes(221_000, dtype="fp8") / GIB == pytest.approx(want["need_gib_221000"], abs=5e-4)
    assert int(5.59 * GIB / x.kv_bytes(1, dtype="fp8")) == want["tokens_in_5.59GiB"]


def test_four_v6e_hold_811008_tokens_of_an_8b_model() -> None:
    want = right("kv-tpu-v6e-llama8b-tp4")
    x = sb.model("llama-3.1-8b")
    tokens = 3168 * 256
    assert tokens == want["tokens"] and tokens / 4096 == want["concurrency"]
    assert x.weight_bytes() / 4 / GIB == pytest.approx(want["weights_gib_per_chip"], abs=5e-4)
    assert x.kv_bytes(tokens, tp=4, page=256) / GIB == want["kv_gib_per_chip"]


def test_two_heads_of_8_bits_are_padded_to_four_on_a_tpu() -> None:
    want = right("kv-tpu-fp8-packing-padding")
    x = sb.model("llama-3.1-70b")
    page = 8 * x.kv_bytes(128, dtype="fp8", tp=8) / x.L  # of one layer on all 8 chips
    assert page == want["formula_page_bytes"]
    heads = padding((128, 2, x.dims.H), "fp8")  # one key and one value head are left on a chip
    assert page * heads.factor == want["real_page_bytes"]
    assert 8676 / heads.factor == want["blocks"]


def test_an_engine_without_latents_keeps_every_head() -> None:
    want = right("mla-naive-cache-v2")
    changes = {"num_hidden_layers": 60, "num_attention_heads": 128, "num_key_value_heads": 128}
    x = Model.from_hf(config("deepseek-v2-lite", **changes))
    padded = Model.from_hf(
        config("deepseek-v2-lite", **changes, qk_nope_head_dim=round_up(192, 256) - 64, v_head_dim=round_up(128, 256))
    )
    assert x.expanded_kv_bytes(1, tp=8) == want["expanded_per_gpu"]
    assert padded.expanded_kv_bytes(1, tp=8) == want["expanded_padded_to_256"]
    assert {x.kv_bytes(1, tp=n) for n in (1, 2, 8)} == {want["latent_per_gpu_any_tp"]}


def test_one_latent_is_key_and_value() -> None:
    want = right("mla-formula-lmcache")
    x = sb.model("deepseek-v3")
    assert (x.kv_bytes(1), x.expanded_kv_bytes(1)) == (want["right"], want["expanded_mha"])
    assert 2 * x.L * 512 * 2 == want["calculator"] > 1.7 * x.kv_bytes(1)


def test_65536_tokens_of_deepseek_v3() -> None:
    want = right("mla-gguf-parser")
    x = sb.model("deepseek-v3")
    assert x.expanded_kv_bytes(65_536, dtype="fp16") / GIB == want["expanded_gib"]
    assert x.kv_bytes(65_536) / GIB == pytest.approx(want["latent_bf16_gib"], abs=5e-4)
    assert x.kv_bytes(65_536, dtype="int4") / GIB == pytest.approx(want["latent_4bit_gib"], abs=5e-3)
    assert x.kv_bytes(65_536, dtype="int4") / x.L * 572 / 576 / 2**20 == want["user_mib_one_layer"]


def test_one_layer_in_four_has_a_cache() -> None:
    want = right("hybrid-qwen36-27b-lmstudio")
    x = sb.model("qwen3.8-27b")
    assert x.kv_bytes(262_144, dtype="fp16") / GIB == want["kv_gib"] and x.kv_bytes(1, dtype="fp16") == want["bytes_per_token"]
    every = sum(layer.count for layer, _ in x.blocks("attention"))
    assert x.L / every * want["kv_gib"] == want["all_64_layers_gib"]


def test_a_latent_is_on_every_device() -> None:
    x = sb.model("deepseek-v3")
    split_heads, split_requests = x.kv_bytes(1000, batch=8, tp=8), x.kv_bytes(1000, batch=1)
    assert split_heads / split_requests == right("mla-tp-replication")["ratio"]


def test_a_hybrid_cache_is_a_line_not_a_ratio() -> None:
    """Two lengths give the line, which then holds for a third; bytes ÷ tokens is another number at each."""
    assert "a + b*len" in right("kv-tokens-line-is-derived")["method"]
    x = sb.model("gemma-3-4b")
    constant, slope, start = affine(x, "bf16", 1)
    assert x.kv_bytes(100_000) == constant + slope * 100_000 and start == 1024
    per_token = [x.kv_bytes(n) / n for n in (2048, 8192, 100_000)]
    assert per_token[0] > 1.5 * per_token[1] > 1.5 * per_token[2]


def test_a_pool_sized_for_all_heads_on_one_chip_holds_a_quarter() -> None:
    x = sb.model("llama-3.1-8b")
    assert x.kv_bytes(4096) / x.kv_bytes(4096, tp=4) == right("tp-kv-capped-one-chip")["factor"]


# ---- training state ---------------------------------------------------------------------------------------------------------


def test_scores_of_a_layer_are_4_gib() -> None:
    want, x = right("attn-logits-buffer-7b"), llama2_7b()
    one = attention_score_bytes(x, batch=8, seq_len=2048)
    assert (one / GIB, x.L * one / GIB) == (want["one_buffer_gib"], want["32_layers_gib"])


def test_arguments_of_a_training_step_are_12_bytes_per_parameter() -> None:
    want = right("train-state-dsv2lite-v5p")
    logged = right("params-maxtext-dsv2lite")["log"]
    arguments = training_state(logged, "fp32", zero=3, ranks=4).total / GIB
    assert arguments == pytest.approx(want["argument_gib"], abs=0.01)
    assert arguments + 44.5 + 55.9 - 44.5 == pytest.approx(
        want["total_gib"], abs=0.05
    )  # + results + temporaries − what is given in place
    usable = sb.chip("v5p").hbm_usable_bytes_per_device
    assert usable is not None and arguments < 44.63 < usable / GIB < want["total_gib"] and "fits" in want


def test_a_framework_counts_keys_and_values_that_it_does_not_use() -> None:
    want, x = right("params-maxtext-dsv2lite"), sb.model("deepseek-v2-lite")
    unused = x.L * sum(op.params for op in attention(D=2048, N=16, K=16, H=128).ops if op.part in ("attention/k", "attention/v"))
    assert (x.total_params, unused, x.total_params + unused) == (want["checkpoint"], want["difference"], want["log"])


def test_12_16_18_and_20_bytes_per_parameter() -> None:
    want, x = right("adam-bytes-12-vs-20"), llama2_7b()
    assert training_state(x, "fp32").total / 1e9 == pytest.approx(want["maxtext_GB"], abs=5e-3)
    assert [s.total for s in SCHEMES.values()] == list(want["schemes"].values())


def test_deepspeed_prints_more_than_zero_needs() -> None:
    want, P = right("deepspeed-zero2-estimator"), 2_851_000_000
    assert deepspeed_estimate(P, zero=2, ranks=8) / GIB == pytest.approx(want["estimator_gib"], abs=5e-4)
    assert training_state(P, "mixed", zero=2, ranks=8).total / GIB == pytest.approx(
        want["theory_gib_2P_plus_14P_over_N"], abs=5e-4
    )
    three = deepspeed_estimate(P, zero=3, ranks=8, largest_layer=32_000_000)
    assert three / GIB == pytest.approx(want["zero3_estimator_gib"], abs=5e-3)
    want = right("deepspeed-zero3-observed")
    asked = {"zero": 3, "ranks": 4, "largest_layer": 131_000_000}
    assert deepspeed_estimate(6_805_000_000, **asked) / GIB == pytest.approx(want["no_offload_gib"], abs=5e-4)  # type: ignore[arg-type]
    alone = deepspeed_estimate(6_805_000_000, **asked, offload="all")  # type: ignore[arg-type]
    assert alone / GIB == pytest.approx(want["offload_gib"], abs=5e-4)


def test_megatrons_distributed_optimiser() -> None:
    want, x = right("megatron-llama7b-dp8"), llama2_7b()
    for scheme, each, gib in (
        ("megatron", "bytes_per_param_fp32_grads", "gib"),
        ("mixed", "bytes_per_param_bf16_grads", "gib_bf16"),
    ):
        total = training_state(x, scheme, zero=1, ranks=8).total
        assert total / x.total_params == want[each]
        assert total / GIB == pytest.approx(want[gib], abs=5e-3)


def test_activations_of_experts_grow_with_what_a_token_uses() -> None:
    def tokens(**changes: Any) -> int:
        sizes: dict[str, Any] = {"D": 16, "F": 32, "E": 8, "k": 2, "shared": 0, "gated": True} | changes
        layer = Layer("layer", (norms(16), experts(**sizes)))
        return int(
            activation_bytes(Model("", "", 16, 50, (layer,), around(D=16, V=50, tied=False)), batch=1, seq_len=1, remat="none")
        )

    base = tokens()
    assert tokens(k=3) - base == 2 * (16 + 3 * 32)
    assert tokens(F=64) - base == 2 * 2 * 3 * 32
    assert tokens(shared=24) - base == 2 * 3 * 24
    assert base - tokens(gated=False) == 2 * 2 * 32
    assert tokens(E=16) - base == 2 * 8  # the router's logits alone
    needs = right("megatron-activation-moe")["needs"]
    assert needs[:4] == [
        "top_k",
        "moe_ffn_hidden_size",
        "shared expert size",
        "gated factor 1.5",
    ]  # the fifth is how devices share it


def test_inputs_of_126_layers_are_63_gib() -> None:
    kept = activation_bytes(sb.model("llama-3.1-405b"), batch=2, seq_len=8192, remat="full")
    assert kept / GIB == right("host-offload-405b")["gib"]


# ---- parameters -------------------------------------------------------------------------------------------------------------

FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}


def test_685b_are_671b_with_a_module_and_scales() -> None:
    want = right("params-dsv3-671-685")
    x = Model.from_hf(config("deepseek-v3", quantization_config=FP8))
    found = x.weight_elements(mtp=True)
    assert found == {"bf16": 3_918_786_560, "fp8": 680_571_043_840, "fp32": want["fp8_scales"] + want["router_bias_f32"]}
    assert x.total_params == want["main"]
    assert x.mtp_params == want["mtp_layer_with_its_embedding_and_head"]
    assert x.total_params + x.mtp_params + want["fp8_scales"] == sum(found.values()) == 684_531_386_000
    assert x.weight_bytes(mtp=True) / GIB == pytest.approx(want["checkpoint_gib"], abs=5e-4)
    assert 2 * sum(found.values()) / GIB == pytest.approx(want["if_all_bf16_gib"], abs=5e-3)


def test_37b_with_and_without_the_embedding() -> None:
    want, x = right("params-dsv3-active"), sb.model("deepseek-v3")
    assert x.active_params() == want["active"]
    assert x.active_params("no_input_embedding") == want["excluding_input_embedding"]


def test_hub_totals_of_llama_2_hold_buffers() -> None:
    want = right("params-llama2-safetensors-extra")
    models = {"7b": llama2_7b(), "13b": llama(5120, 13824, 40, 40, 40), "70b": llama(8192, 28672, 80, 64, 8)}
    hub = (6_738_417_664, 13_015_866_880, 68_976_653_312)
    for (name, x), extra, total in zip(models.items(), want["extra"], hub, strict=True):
        assert x.total_params == want[name]
        assert total - x.total_params == extra == x.L * x.dims.H // 2  # one inverse frequency for two numbers of a head


def test_falcon_180b_stores_its_head() -> None:
    want = right("params-falcon180b-untied")
    sizes = {"hidden_size": 14848, "num_hidden_layers": 80, "num_attention_heads": 232, "num_kv_heads": 8, "vocab_size": 65024}
    falcon = {
        "model_type": "falcon",
        "new_decoder_architecture": True,
        "parallel_attn": True,
        "bias": False,
        "alibi": False,
        **sizes,
    }
    tied, file = (Model.from_hf(falcon | {"tie_word_embeddings": t}).total_params for t in (True, False))
    assert (file, tied, file - tied) == (want["file"], want["tied"], want["lm_head"])


def test_scales_are_counted_as_parameters_by_some_tables() -> None:
    want = right("params-nvfp4-packed")
    mxfp4 = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"],
    }
    kinds = ["sliding_attention", "full_attention"]
    small = {"num_hidden_layers": 24, "num_local_experts": 32, "layer_types": kinds * 12}
    x = Model.from_hf(config("gpt-oss-120b", **small, quantization_config=mxfp4))
    assert x.total_params == want["gptoss20b"]
    assert x.weight_elements()["uint8"] == want["extra"]
    assert Model.from_hf(config("gpt-oss-120b", quantization_config=mxfp4)).weight_elements()["uint8"] == want["gptoss120b_extra"]


def test_untying_adds_a_third_to_a_small_model() -> None:
    """12 layers without biases and norm weights, with 3 learned scalars each."""
    want, D, V = right("params-modded-nanogpt"), 768, 50_304
    layer = Layer("layer", (attention(D=D, N=6, K=6, H=128, extra=(vector("scalars", 3),)), mlp(D=D, F=4 * D, gated=False)), 12)
    tied, untied = (Model("", "", D, V, (layer,), around(D=D, V=V, tied=t, norm=False), t) for t in (True, False))
    assert (untied.total_params, tied.total_params) == (want["untied"], want["tied"])
    assert untied.params()["head"] == want["head"]


def test_a_gate_is_a_third_matrix() -> None:
    want = right("params-qwen15-72b-cookbook")
    sizes = {"hidden_size": 8192, "intermediate_size": 24576, "num_hidden_layers": 80, "num_attention_heads": 64}
    rest = {"num_key_value_heads": 64, "vocab_size": 152064, "tie_word_embeddings": False, "use_sliding_window": False}
    x = Model.from_hf({"model_type": "qwen2", **sizes, **rest})
    assert x.total_params == want["right"]
    assert (
        Model.dense(L=80, D=8192, F=24576, N=64, H=128, V=152064).total_params == want["right"] - 80 * 3 * 8192
    )  # without biases
    matrices = [n for p, n in x.params().items() if p.split("/")[-1] in ("embedding", "head", "q", "k", "v", "o", "up", "down")]
    assert sum(matrices) == want["two_matrix_mlp"]


# ---- FLOPs ------------------------------------------------------------------------------------------------------------------


def per_token(x: Model, T: int, convention: str) -> float:
    return float(x.flops(batch=1, seq_len=T, convention=convention)) / T  # type: ignore[arg-type]


@pytest.mark.parametrize("T", [8192, 129_024])
def test_maxtexts_table_for_llama_2_7b(T: int) -> None:
    want, x = right("flops-llama2-7b-causal"), llama2_7b()
    mixing = {}
    for convention in ("causal", "full"):
        parts = x.flops_by_part(batch=4, seq_len=T, convention=convention)
        mixing[convention] = sum(n for p, n in parts.items() if p.endswith(("scores", "values")))
        learnable = sum(parts.values()) - mixing[convention]
    assert learnable / 1e12 == pytest.approx(want[f"learnable_{T}"], rel=2e-5)
    full = want["attn_full" if T == 8192 else f"attn_full_{T}"]
    assert mixing["full"] / 1e12 == pytest.approx(full, rel=2e-5)
    if T == 8192:  # half of all pairs there, here the diagonal too: (T + 1)/T
        assert mixing["causal"] / 1e12 == pytest.approx(want["attn_causal"] * (T + 1) / T, rel=5e-5)


def test_two_logs_of_405b_follow_two_conventions() -> None:
    want, x = right("flops-405b-two-conventions"), sb.model("llama-3.1-405b")
    causal, full = (per_token(x, 8192, c) for c in ("causal", "full"))
    assert full == pytest.approx(want["noncausal"], rel=1e-5) and causal == pytest.approx(want["causal"], rel=1e-5)
    assert full == pytest.approx(want["v6e_per_token"], rel=2e-5) and causal == pytest.approx(
        want["ironwood_per_token"], rel=2e-5
    )
    v6e, ironwood = sb.chip("v6e").flops_per_s["bf16"], sb.chip("tpu7x").flops_per_s["bf16"]
    assert full * 149.482 / v6e == pytest.approx(want["mfu_v6e_noncausal"], abs=5e-5)
    assert causal * 149.482 / v6e == pytest.approx(want["mfu_v6e_causal"], abs=5e-5)
    assert causal * 499.77 / ironwood == pytest.approx(want["mfu_ironwood_causal"], abs=1e-4)


def test_two_logs_of_deepseek_v3_follow_two_conventions() -> None:
    want, x = right("flops-dsv3-two-conventions"), sb.model("deepseek-v3")
    causal, full = (per_token(x, 4096, c) for c in ("causal", "full"))
    assert full == pytest.approx(want["noncausal"], rel=3e-5) and causal == pytest.approx(want["causal"], rel=6e-5)
    assert full == pytest.approx(want["v5p_per_token"], rel=5e-5) and causal == pytest.approx(
        want["ironwood_per_token"], rel=1e-4
    )
    v5p, ironwood = sb.chip("v5p").flops_per_s["bf16"], sb.chip("tpu7x").flops_per_s["bf16"]
    assert causal * 2425.75 / ironwood == pytest.approx(want["mfu_ironwood"], abs=1e-4)
    assert full * 542.108 / v5p == pytest.approx(want["mfu_v5p_noncausal"], abs=1e-4)
    assert causal * 542.108 / v5p == pytest.approx(want["mfu_v5p_causal"], abs=2e-4)


def test_at_128k_more_than_half_is_attention() -> None:
    want, x = right("flops-70b-128k"), sb.model("llama-3.1-70b")
    parts = x.flops_by_part(batch=1, seq_len=131_072)
    total, mixing = sum(parts.values()), sum(n for p, n in parts.items() if p.endswith(("scores", "values")))
    assert total / 131_072 == pytest.approx(want["per_token"], rel=2e-5)
    assert mixing / total == pytest.approx(want["attention_share"], abs=5e-4)
    assert x.six_nd(1) == pytest.approx(want["six_n_only"], rel=2e-5)


def test_windows_of_gpt_oss() -> None:
    want, x = right("flops-gptoss-windowed"), sb.model("gpt-oss-120b")
    assert per_token(x, 8192, "causal") == pytest.approx(want["per_token"], rel=5e-4)
    assert per_token(x, 8192, "causal") == pytest.approx(want["logged"], rel=2e-3)
    weights = 6 * x.active_params("no_input_embedding")
    assert weights + 6 * 36 * 4096 * 8192 == pytest.approx(want["all_layers_full_causal"], rel=5e-4)
    assert weights + 12 * 36 * 4096 * 8192 == pytest.approx(want["all_layers_full_noncausal"], rel=5e-4)


def test_queries_of_qwen3_235b_are_twice_as_wide_as_the_model() -> None:
    want = right("flops-qwen3-235b")
    x = sb.model("qwen3-235b-a22b")
    assert x.dims.N * x.dims.H == 2 * x.D
    assert per_token(x, 4096, "causal") == pytest.approx(want["per_token"], rel=1e-4)


def test_a_loop_is_counted_once_by_the_compiler() -> None:
    want = right("flops-cost-analysis-scan")
    one = sb.einsum("x[B, D] * W[D, F] -> y[B, F]", {"B": 128, "D": 256, "F": 256}).flops
    assert (one, 16 * one) == (want["reported_scan"], want["reported_unrolled"]) and 16 * one == want["right"]


def test_a_reported_mfu_tells_how_many_chips_there_were() -> None:
    want, x = right("mfu-torchprime-405b-chips"), sb.model("llama-3.1-405b")
    tokens = 256 * 8192
    flops = [x.six_nd(tokens), *(x.flops(batch=256, seq_len=8192, convention=c) for c in ("causal", "full"))]
    for chips in (512, 256):
        peak = chips * sb.chip("v6e").flops_per_s["bf16"]
        assert [n / 40.2 / peak for n in flops] == pytest.approx(want[f"mfu_{chips}"], abs=7e-3)
    assert min((512, 256), key=lambda n: abs(flops[2] / 40.2 / n / sb.chip("v6e").flops_per_s["bf16"] - 0.2865)) == want["chips"]


def test_the_dense_peak_is_half_of_the_headline() -> None:
    want = right("mfu-fms-7b-sparsity")
    peak = sb.chip("h100").flops_per_s["bf16"]
    assert peak == pytest.approx(want["peak"], rel=2e-4)
    assert 9600 * 0.05e12 / peak == pytest.approx(want["mfu"], abs=5e-4)


def test_104_per_cent_of_the_wrong_chip() -> None:
    a100, h100 = (sb.chip(name).flops_per_s["bf16"] for name in ("a100", "h100"))
    assert 1.04 * a100 / h100 == pytest.approx(right("mfu-nanogpt-104")["mfu"], abs=5e-4)


def test_all_tokens_over_one_gpus_peak_is_eight_times_too_much() -> None:
    factor = right("mfu-world-size")["factor"]
    assert 337.59 / factor * 76_958 / 76_478 == pytest.approx(42.46, abs=0.01)


def test_the_row_of_tf32_halves_the_peak() -> None:
    peaks = sb.chip("h100").flops_per_s
    assert peaks["bf16"] / peaks["tf32"] == right("mfu-torchtitan-tf32")["factor"]


def test_a_device_of_v3_is_half_a_chip() -> None:
    want, chip = right("mfu-v3-8-device"), sb.chip("v3")
    assert chip.devices_per_chip == 2
    peak = chip.flops_per_s["bf16"]
    assert 36.722e12 / (peak / chip.devices_per_chip) == pytest.approx(want["mfu_per_core"], abs=5e-4)
    assert 36.722e12 / peak == pytest.approx(want["wrong_per_chip"], abs=5e-4)


def test_llama_65b_on_2048_a100() -> None:
    want, x = right("params-vs-6nd-llm-card"), llama(8192, 22016, 80, 64, 64)
    assert x.six_nd(380) / sb.chip("a100").flops_per_s["bf16"] == pytest.approx(want["mfu"], abs=1.5e-3)  # there with 65.2e9
    hours = x.six_nd(1.4e12) / x.six_nd(380) / 3600
    assert hours == pytest.approx(want["gpu_hours"], rel=1e-6)
