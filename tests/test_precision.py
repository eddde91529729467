"""Bytes of mixed checkpoints: scales counted tensor by tensor, patterns of names, and refusals by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

import scalebook as sb
from scalebook.errors import ModelError
from scalebook.transformer.configs.quantization import METHODS
from scalebook.transformer.configs.quantization_options import rule
from scalebook.transformer.model import Model
from scalebook.transformer.precision import Scale
from scalebook.transformer.stored import Stored, stored

D, F, N, K, H, V, L = 256, 384, 4, 2, 64, 1000, 3
LLAMA = {
    "model_type": "llama", "hidden_size": D, "intermediate_size": F, "num_attention_heads": N, "num_key_value_heads": K, "head_dim": H,
    "num_hidden_layers": L, "vocab_size": V, "tie_word_embeddings": False,
}  # fmt: skip
MATRICES = [
    (N * H, D),
    (K * H, D),
    (K * H, D),
    (D, N * H),
    (F, D),
    (F, D),
    (D, F),
]  # rows and columns of q, k, v, o, gate, up, down
PLAIN = 2 * V * D + (2 * L + 1) * D
LAYER = sum(rows * columns for rows, columns in MATRICES)


def quantised(**scheme: Any) -> Model:
    return Model.from_hf(LLAMA | {"quantization_config": scheme})


def each(count: Any) -> int:
    """A count summed over the matrices of all layers."""
    return int(L * sum(count(rows, columns) for rows, columns in MATRICES))


GROUP = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 64}


def tensors(weights: dict[str, Any], form: str, **more: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, **more}
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"], "config_groups": {"group_0": group}}


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        (
            {"quant_method": "fp8", "weight_block_size": [128, 100], "activation_scheme": "dynamic"},
            {"bf16": PLAIN, "fp8": L * LAYER, "fp32": each(lambda r, c: -(-r // 128) * -(-c // 100))},
        ),
        (
            {"quant_method": "fp8", "activation_scheme": "static"},
            {"bf16": PLAIN, "fp8": L * LAYER, "fp32": each(lambda r, c: 2)},
        ),
        ({"quant_method": "fbgemm_fp8"}, {"bf16": PLAIN, "fp8": L * LAYER, "fp32": each(lambda r, c: r)}),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": False, "sym": True},
            {"bf16": PLAIN + each(lambda r, c: r * c // 64), "int4": L * LAYER + each(lambda r, c: r * c // 64), "int32": each(lambda r, c: c)},
        ),
        (
            {"quant_method": "gptq", "bits": 8, "group_size": -1, "lm_head": True},
            {"bf16": PLAIN - V * D + each(lambda r, c: r) + V, "int8": L * LAYER + V * D + each(lambda r, c: r) + V, "int32": each(lambda r, c: c) + D},
        ),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"},
            {"bf16": PLAIN + each(lambda r, c: r * c // 64), "int4": L * LAYER + each(lambda r, c: r * c // 64)},
        ),
        (
            tensors(GROUP, "pack-quantized"),
            {"bf16": PLAIN + each(lambda r, c: r * c // 64), "int4": L * LAYER, "int64": each(lambda r, c: 2)},
        ),
        (
            tensors({"num_bits": 8, "type": "float", "strategy": "channel"}, "float-quantized", input_activations={"dynamic": True}),
            {"bf16": PLAIN + each(lambda r, c: r), "fp8": L * LAYER},
        ),
        (
            tensors({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}, "float-quantized"),
            {"bf16": PLAIN + each(lambda r, c: -(-r // 128) * -(-c // 128)), "fp8": L * LAYER},
        ),
        (
            tensors({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}, "nvfp4-pack-quantized"),
            {"bf16": PLAIN, "fp4": L * LAYER, "fp8": each(lambda r, c: r * c // 16), "fp32": each(lambda r, c: 1)},
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
            {"bf16": PLAIN, "fp4": L * LAYER, "fp8": each(lambda r, c: r * c // 16), "fp32": each(lambda r, c: 2)},
        ),
        (
            {"quant_method": "bitsandbytes", "load_in_8bit": True},
            {"bf16": PLAIN, "int8": L * LAYER, "fp32": each(lambda r, c: r), "uint8": each(lambda r, c: 1)},
        ),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            {"bf16": PLAIN, "fp4": L * LAYER, "fp32": each(lambda r, c: 16 + r * c // 64)},
        ),
    ],
    ids=lambda x: x.get("quant_method", "") if isinstance(x, dict) else "",
)  # fmt: skip
def test_numbers_of_a_checkpoint_by_hand(scheme: dict[str, Any], expected: dict[str, int]) -> None:
    x = quantised(**scheme)
    assert x.weight_elements() == expected
    bits = {"bf16": 16, "fp32": 32, "fp8": 8, "fp4": 4, "int4": 4, "int8": 8, "uint8": 8, "int32": 32, "int64": 64}
    assert x.weight_bytes() == sum(n * bits[dtype] for dtype, n in expected.items()) // 8
    assert x.weight_bytes() == sum(x.weight_bytes_by_format().values())
    assert x.weight_bytes("bf16") == 2 * x.total_params  # one dtype for all is as it was
    assert type(x.weight_bytes()) is int


def test_gpt_oss_120b_is_as_large_as_its_card_says() -> None:
    """60.8 GiB, and 12.8 GiB for 20b: OpenAI's model card, arXiv 2508.10925, table 1."""
    kinds = ["sliding_attention", "full_attention"]
    scheme = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"],
    }
    sizes = {
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "head_dim": 64,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "vocab_size": 201088,
    }
    for layers, experts, gib in ((36, 128, 60.8), (24, 32, 12.8)):
        more = {
            "num_hidden_layers": layers,
            "num_local_experts": experts,
            "num_experts_per_tok": 4,
            "layer_types": kinds * (layers // 2),
        }
        config = {
            "model_type": "gpt_oss",
            "sliding_window": 128,
            "tie_word_embeddings": False,
            "attention_bias": True,
            **sizes,
            **more,
        }
        x = Model.from_hf(config | {"quantization_config": scheme})
        assert x.weight_bytes() / 2**30 == pytest.approx(gib, abs=0.05)
    assert (
        sb.model("gpt-oss-120b").total_params
        == Model.from_hf(config | {"num_hidden_layers": 36, "num_local_experts": 128, "layer_types": kinds * 18}).total_params
    )


# ---- names ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("model.layers.0.mlp", [F * D, F * D, D * F]),
        ("model.layers.1.self_attn.o_proj", [D * N * H]),
        ("self_attn.o_proj", [D * N * H] * L),
        ("model.language_model.layers.2.self_attn.k_proj", [K * H * D]),
        ("model.layers.*.mlp.down_proj", [D * F] * L),
        ("re:.*down_proj$", [D * F] * L),
        ("re:model\\.layers\\.[01]\\.mlp\\.up.*", [F * D] * 2),
        ("re:language_model.model.layers.0.mlp.up_proj", [F * D]),
        ("vision_tower", []),
        ("model.embed_tokens", []),
    ],
)
def test_names_say_what_is_left_out(name: str, of: list[int]) -> None:
    x = quantised(quant_method="fbgemm_fp8", modules_to_not_convert=[name])
    assert x.weight_elements()["fp8"] == L * LAYER - sum(of)


def test_a_name_stands_for_whole_steps() -> None:
    found = rule(["mlp.gate", "model.layers.1", "q_proj"], None)
    assert found.matches("model.layers.3.mlp.gate") and found.matches("model.layers.1.mlp.up_proj")
    assert not found.matches("model.layers.3.mlp.gate_proj") and not found.matches("model.layers.11.mlp.up_proj")


def test_parts_with_one_name_are_one_matrix() -> None:
    latent = {
        "model_type": "deepseek_v3", "hidden_size": 256, "intermediate_size": 256, "moe_intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 2, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
        "first_k_dense_replace": 1, "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
        "vocab_size": 100, "tie_word_embeddings": False, "num_nextn_predict_layers": 0,
    }  # fmt: skip
    scheme = {"quant_method": "fp8", "activation_scheme": "dynamic"}  # one scale per matrix
    x = Model.from_hf(latent | {"quantization_config": scheme})
    dense, sparse = 5 + 3, 5 + 3 * 4 + 3  # q_a, q_b, kv_a, kv_b, o and the feed-forward matrices
    assert x.weight_elements()["fp32"] == dense + sparse + 4  # and a bias of the router, which stays in fp32
    twice = Model.from_hf(latent | {"num_nextn_predict_layers": 2, "quantization_config": scheme})
    assert twice.weight_elements(mtp=True)["fp32"] == dense + sparse + 4 + 2 * (sparse + 4)  # two modules are not joined
    up = next(w for w in stored(x) if w.name.endswith("kv_b_proj"))
    assert (up.rows, up.columns) == (2 * (32 + 32), 64)
    assert sum(w.elements for w in stored(x)) == x.total_params


def test_stored_weights_are_all_weights() -> None:
    for name in sb.models():
        x = sb.model(name)
        assert sum(w.elements for w in stored(x, mtp=True)) == x.total_params + x.mtp_params, name


def test_modules_that_predict_further_tokens_are_layers_after_the_last() -> None:
    x = sb.model("deepseek-v3")
    assert any(w.name.startswith("model.layers.61.") for w in stored(x, mtp=True))


@given(st.integers(1, 4), st.integers(1, 300), st.integers(1, 300), st.integers(1, 50), st.integers(1, 50))
def test_scales_are_one_for_every_block(copies: int, rows: int, columns: int, r: int, c: int) -> None:
    w = Stored("w", copies, rows, columns)
    blocks = {(i // r, j // c) for i in range(rows) for j in range(0, columns, 1) if i % r == 0}
    assert Scale("fp32", r, c).elements(w) == copies * len(blocks)
    assert Scale("fp32").elements(w) == copies and Scale("fp32", 1).elements(w) == copies * rows
    assert Scale("fp32", flat=c).elements(w) == copies * -(-rows * columns // c)


# ---- refusals ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        ({"quant_method": "hqq"}, r"quantised by 'hqq' are not known; known methods: fp8"),
        ({"quant_method": ["fp8"]}, r"quantised by \['fp8'\] are not known"),
        ({}, r"quantised by .* are not known"),
        ({"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}, r"scale_fmt = 'ue8m0' is not understood"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, r"weight_block_size must be two whole numbers.*found \[128\]"),
        ({"quant_method": "fp8", "expert_dtype": "fp4"}, r"expert_dtype = 'fp4' is not understood"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.ffx"]}, r"not known in this model: 'model.layers.0.ffx'"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["re:(("]}, r"'re:\(\(', which is no regular expression"),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, r"must be a list of names of modules; found 'lm_head'"),
        ({"quant_method": "fp8", "mixed_bits": 3}, r"fields that are not understood: mixed_bits = 3"),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, r"bits = 3 is not understood; known: 4, 8"),
        ({"quant_method": "gptq", "bits": 4}, r"group_size is not given"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, r"group_size must be a whole number above 0, or -1; found 0"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"x": {"bits": 8}}}, r"not understood: dynamic = "),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"}, r"version = 'gemv' is not understood"),
        ({"quant_method": "bitsandbytes"}, r"one of load_in_4bit and load_in_8bit must be true"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, r"quant_algo = 'MIXED_PRECISION' is not understood"),
        (tensors(GROUP, "marlin-24"), r"format = 'marlin-24' is not understood"),
        (tensors(GROUP | {"num_bits": 3}, "pack-quantized"), r"num_bits = 3 is not understood"),
        (tensors(GROUP | {"sparse": True}, "pack-quantized"), r"not understood: sparse = True"),
        (tensors(GROUP, "pack-quantized") | {"sparsity_config": {"format": "sparse-24"}}, r"sparsity_config = .* is not understood"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_when_bytes_are_asked_for(scheme: dict[str, Any], message: str) -> None:
    x = quantised(**scheme)
    assert x.total_params == Model.from_hf(LLAMA).total_params  # the rest of the model is known all the same
    with pytest.raises(ModelError, match=message):
        x.weight_bytes()
    assert x.weight_bytes("fp8") == x.total_params


def test_a_family_whose_modules_are_not_known_is_refused() -> None:
    for family in ("gpt2", "mamba2"):
        x = Model.from_hf({"model_type": family, "vocab_size": 100, "quantization_config": {"quant_method": "fbgemm_fp8"}})
        with pytest.raises(ModelError, match=rf"how [a-z]+/\w+ of family '{family}' is stored is not known; give a dtype"):
            x.weight_bytes()


def test_one_shared_expert_is_not_called_several() -> None:
    """A pattern for `shared_experts` leaves out DeepSeek's, but not Qwen's `shared_expert`, though it may have been meant to."""
    scheme = {"quantization_config": {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["re:.*shared_expert.*"]}}
    small = {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 100, "num_hidden_layers": 1}
    qwen = small | {"model_type": "qwen2_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    qwen |= {"shared_expert_intermediate_size": 48, "intermediate_size": 96}
    everything = Model.from_hf(qwen | {"quantization_config": {"quant_method": "fbgemm_fp8"}}).weight_elements()["fp8"]
    assert everything - Model.from_hf(qwen | scheme).weight_elements()["fp8"] == 3 * 64 * 48 + 64
    scheme["quantization_config"]["modules_to_not_convert"] = ["re:.*shared_experts.*"]
    with pytest.raises(ModelError, match=r"not known in this model: 're:\.\*shared_experts"):
        Model.from_hf(qwen | scheme).weight_bytes()


def test_experts_alone_in_4_bits() -> None:
    """Kimi K2 Thinking and K2.6: the ignore list that vllm-project/vllm tests with; groups of 32."""
    ignore = [
        "re:.*self_attn.*",
        "re:.*shared_experts.*",
        "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
        "re:.*lm_head.*",
        "re:vision_tower.*",
    ]
    scheme = tensors(GROUP | {"group_size": 32}, "pack-quantized") | {"ignore": ignore}
    sizes = {"hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61}
    heads = {
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
    }
    rest = {"qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 163840, "n_routed_experts": 384, "n_shared_experts": 1}
    more = {"num_experts_per_tok": 8, "first_k_dense_replace": 1, "tie_word_embeddings": False, "num_nextn_predict_layers": 0}
    x = Model.from_hf({"model_type": "kimi_k2", **sizes, **heads, **rest, **more, "quantization_config": scheme})
    experts = 60 * 384 * 3 * 7168 * 2048
    found = x.weight_elements()
    assert found["int4"] == experts and found["int64"] == 2 * 60 * 384 * 3 and found["fp32"] == 60 * 384
    assert found["bf16"] == x.total_params - experts - 60 * 384 + experts // 32


def test_every_method_is_tried_here() -> None:
    assert set(METHODS) == {"fp8", "fbgemm_fp8", "mxfp4", "gptq", "awq", "bitsandbytes", "compressed-tensors", "modelopt"}
