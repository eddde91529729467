"""Dense families and those of mixed layers, where recorded counts do not reach: first configurations, windows, shared keys, refusals."""

from __future__ import annotations

from typing import Any

import pytest

import scalebook as sb
from scalebook.errors import ModelError, ScalebookError

Config = dict[str, Any]
SIZES: Config = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 8, "num_attention_heads": 4, "vocab_size": 100}
SIZES |= {"num_key_value_heads": 4}


def of(family: str, **fields: Any) -> sb.Model:
    return sb.Model.from_hf({"model_type": family, **SIZES, **fields})


def windows(x: sb.Model) -> dict[int, int | None]:
    """The window of each layer with attention, by its place; None where it sees all."""
    found: dict[int, int | None] = {}
    for layer, block in x.blocks("attention"):
        span = next(op.span for op in block.ops if op.kind == "mixing")
        found |= dict.fromkeys(layer.at, None if span.kind == "full" else span.width)
    return dict(sorted(found.items()))


def local(x: sb.Model) -> list[int]:
    return [i for i, width in windows(x).items() if width]


# ---- configurations as they were first published ----------------------------------------------------------------------------


def llama_params(
    L: int, D: int, F: int, N: int, K: int, V: int, *, qkv: bool = False, o: bool = False, tied: bool = False
) -> int:
    H = D // N
    mixer = 2 * D * N * H + 2 * D * K * H + (N + 2 * K) * H * qkv + D * o
    return L * (mixer + 3 * D * F + 2 * D) + D + V * D * (1 if tied else 2)


FIRST: dict[str, tuple[Config, int, int]] = {
    "Baichuan2-7B": (  # as logged in a public repository that loads it
        {
            "architectures": ["BaichuanForCausalLM"], "auto_map": {"AutoConfig": "configuration_baichuan.BaichuanConfig"}, "model_type": "baichuan",
            "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 125696,
            "max_position_embeddings": 4096, "model_max_length": 4096, "tie_word_embeddings": False, "z_loss_weight": 0,
        },
        llama_params(32, 4096, 11008, 32, 32, 125696), 2 * 32 * 4096,
    ),
    "ChatGLM2-6B": (
        {
            "model_type": "chatglm", "add_bias_linear": False, "add_qkv_bias": True, "apply_query_key_layer_scaling": True,
            "apply_residual_connection_post_layernorm": False, "attention_softmax_in_fp32": True, "bias_dropout_fusion": True,
            "ffn_hidden_size": 13696, "fp32_residual_connection": False, "hidden_size": 4096, "kv_channels": 128, "layernorm_epsilon": 1e-05,
            "multi_query_attention": True, "multi_query_group_num": 2, "num_attention_heads": 32, "num_layers": 28, "original_rope": True,
            "padded_vocab_size": 65024, "post_layer_norm": True, "pre_seq_len": None, "prefix_projection": False, "quantization_bit": 0,
            "rmsnorm": True, "seq_length": 32768, "tie_word_embeddings": False, "vocab_size": 65024,
        },
        llama_params(28, 4096, 13696, 32, 2, 65024, qkv=True), 2 * 28 * 2 * 128,
    ),
    "GLM-4-9B": (
        {
            "model_type": "chatglm", "add_bias_linear": False, "add_qkv_bias": True, "classifier_dropout": None, "ffn_hidden_size": 13696,
            "hidden_size": 4096, "kv_channels": 128, "multi_query_attention": True, "multi_query_group_num": 2, "num_attention_heads": 32,
            "num_hidden_layers": 40, "num_layers": 40, "padded_vocab_size": 151552, "rope_ratio": 500, "seq_length": 131072,
            "vocab_size": 151552,
        },
        llama_params(40, 4096, 13696, 32, 2, 151552, qkv=True), 2 * 40 * 2 * 128,
    ),
    "Qwen-7B": (
        {
            "model_type": "qwen", "architectures": ["QWenLMHeadModel"], "hidden_size": 4096, "intermediate_size": 22016, "kv_channels": 128,
            "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 151936, "max_position_embeddings": 32768, "seq_length": 8192,
            "no_bias": True, "bf16": False, "fp16": False, "fp32": False, "onnx_safe": None, "rotary_pct": 1.0, "rotary_emb_base": 10000,
            "scale_attn_weights": True, "use_dynamic_ntk": True, "use_flash_attn": "auto", "tie_word_embeddings": False,
        },
        llama_params(32, 4096, 11008, 32, 32, 151936, qkv=True), 2 * 32 * 4096,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIRST)
def test_first_configurations_are_counted(name: str) -> None:
    config, params, kept = FIRST[name]
    x = sb.Model.from_hf(config)
    assert x.total_params == params
    assert x.kv_bytes(10, dtype="fp8") == 10 * kept


def test_shapes_of_llama_under_other_names() -> None:
    shape = (8, 64, 96, 4)
    for family in ("Yi", "aquila", "xverse", "internlm2"):
        assert of(family, num_key_value_heads=2).total_params == llama_params(*shape, 2, 100)
    assert of("internlm", bias=True).total_params == llama_params(*shape, 4, 100, qkv=True, o=True)
    assert of("internlm", bias=False).total_params == of("baichuan").total_params == llama_params(*shape, 4, 100)
    assert of("minicpm", scale_emb=12, scale_depth=1.4, dim_model_base=256).total_params == llama_params(
        *shape, 4, 100, tied=True
    )
    assert of("orion").total_params == llama_params(*shape, 4, 100) + (2 * 8 + 1) * 64


def test_a_chatglm_with_all_biases_and_layer_norms() -> None:
    config = FIRST["ChatGLM2-6B"][0]
    x = sb.Model.from_hf(
        {**config, "add_bias_linear": True, "rmsnorm": False, "post_layer_norm": False, "multi_query_attention": False}
    )
    D, F, L = 4096, 13696, 28
    plain = llama_params(L, D, F, 32, 32, 65024, qkv=True, o=True)
    assert x.total_params == plain + L * (2 * F + D) + L * 2 * D - D  # biases of the MLP and of norms; no last norm


def test_a_model_of_images_has_few_fields_for_its_text() -> None:
    text = {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    x = sb.Model.from_hf({"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 1152}})
    assert x.total_params == sb.model("gemma-3-4b").total_params
    assert {"num_attention_heads = 8", "head_dim = 256"} <= set(x.assumptions)
    assert x.not_counted == ("vision_config: not counted",)


def test_fields_of_first_releases_may_say_what_is_so_and_nothing_else() -> None:
    cohere: Config = {
        "num_key_value_heads": 2,
        "sliding_window": 16,
        "layer_switch": 4,
        "sliding_window_pattern": 4,
        "rotary_pct": 1.0,
    }
    cohere |= {
        "order_of_interleaved_layers": "local_attn_first",
        "position_embedding_type": "rope_gptj",
        "use_embedding_sharing": True,
    }
    cohere |= {"use_gated_activation": True, "use_parallel_block": True, "use_parallel_embedding": False, "head_dim": 16}
    assert of("cohere2", **cohere).total_params == of("cohere2", num_key_value_heads=2).total_params
    star: Config = {
        "mlp_type": "default",
        "norm_type": "layer_norm",
        "attention_softmax_in_fp32": True,
        "scale_attn_weights": True,
    }
    assert of("starcoder2", **star).total_params == of("starcoder2").total_params
    phi: Config = {"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False, "mlp_bias": False, "attention_bias": False}
    assert of("phi3", **phi).total_params == of("phi3").total_params
    assert of("apertus", qk_norm=True, post_norm=False).total_params == of("apertus").total_params
    assert (
        of("hunyuan_v1_dense", use_cla=False, use_qk_norm=True, attention_head_dim=16).total_params
        == of("hunyuan_v1_dense").total_params
    )
    assert of("gemma2", head_dim=16, sliding_window=8, sliding_window_size=8).kv_bytes(9) < of("gemma2", head_dim=16).kv_bytes(9)


REFUSED: list[tuple[str, Config, str]] = [
    ("baichuan", {"num_key_value_heads": 2}, r"num_key_value_heads = 2 is not understood \(every head has its own"),
    ("internlm2", {"bias": True}, r"bias = True is not understood"),
    ("internlm", {}, r"has no bias"),
    ("minicpm", {"num_experts": 8}, r"num_experts = 8 is not understood"),
    ("minicpm", {"sparse_config": {"topk": 64}}, r"sparse_config = .* is not understood"),
    ("qwen", {"intermediate_size": 97}, r"intermediate_size = 97 is not understood \(it is twice"),
    ("qwen", {"kv_channels": 8}, r"kv_channels = 8 is not understood"),
    ("chatglm", {"num_layers": 2, "ffn_hidden_size": 8, "num_hidden_layers": 3}, r"two names of one thing with two values: num_layers = 2, num_h"),
    ("chatglm", {"inner_hidden_size": 96, "position_encoding_2d": True, "num_layers": 8}, r"has no ffn_hidden_size"),
    ("gemma", {"use_bidirectional_attention": True}, r"use_bidirectional_attention = True makes an encoder"),
    ("gemma3_text", {"use_bidirectional_attention": True}, r"use_bidirectional_attention = True makes an encoder"),
    ("gemma4_text", {"use_bidirectional_attention": "all"}, r"use_bidirectional_attention = 'all' makes an encoder"),
    ("gemma4_text", {"layer_pattern": "half and half"}, r"layer_pattern = 'half and half' is not like '5 local : 1 global'"),
    ("gemma3n_text", {"num_kv_shared_layers": 8}, r"num_kv_shared_layers = 8 of 8 layers is not possible"),
    ("qwen3", {"layer_types": ["sliding_attention"] * 8}, r"layer_types has sliding_attention, but use_sliding_window is false"),
    ("qwen2", {"layer_types": ["chunked"] * 8}, r"layer_types has 'chunked', which is not understood"),
    ("cohere2", {"head_dim": 32}, r"head_dim = 32 is not understood \(the heads divide the width\)"),
    ("cohere2", {"order_of_interleaved_layers": "global_first"}, r"order_of_interleaved_layers = 'global_first' is not understood"),
    ("starcoder2", {"mlp_type": "gated"}, r"mlp_type = 'gated' is not understood"),
    ("phi3", {"lm_head_bias": True}, r"lm_head_bias = True is not understood"),
    ("apertus", {"qk_norm": False}, r"qk_norm = False is not understood"),
    ("hunyuan_v1_dense", {"use_cla": True}, r"use_cla = True is not understood"),
    ("helium", {"head_dim": 32}, r"num_attention_heads · head_dim, 4 · 32, must be hidden_size"),
    ("diffllama", {"num_key_value_heads": 1}, r"num_key_value_heads = 1 must be even"),
    ("smollm3", {"no_rope_layers": [1, 0]}, r"no_rope_layers must be a list of 1 \(rotated\) or 0 for each of the 8 layers"),
    ("exaone4", {"sliding_window_pattern": "LXG"}, r"sliding_window_pattern must be a whole number"),
    ("mistral", {"layer_types": ["full_attention"] * 8}, r"layer_types = .* could change a count|could change a count: layer_types"),
    ("laguna", {"gating": "per-token"}, r"gating = 'per-token' is not understood; known: per-element, per-head"),
    ("laguna", {"num_attention_heads_per_layer": [4, 4]}, r"num_attention_heads_per_layer must be one number, or a list of 8"),
    ("doge", {"keep_window_size": 8, "sliding_window": 16}, r"sliding_window = 16 must not be above keep_window_size = 8"),
    ("doge", {"is_moe": True, "num_experts": 10, "num_experts_per_tok": 10}, r"num_experts_per_tok = 10 of 3 · 3 experts"),
    ("llama", {"num_attention_heads": 128}, r"128 heads cannot share a width of 64; give head_dim"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "fields", "message"), REFUSED, ids=[f"{f}-{'-'.join(c)}" for f, c, _ in REFUSED])
def test_what_is_not_understood_is_refused_by_name(family: str, fields: Config, message: str) -> None:
    with pytest.raises(ScalebookError, match=message):
        of(family, **fields)


# ---- windows ----------------------------------------------------------------------------------------------------------------


def test_windows_are_where_each_family_has_them() -> None:
    small = {"sliding_window": 16, "head_dim": 16}
    assert set(windows(of("mistral", sliding_window=16)).values()) == {16}
    assert set(windows(of("mistral", sliding_window=None)).values()) == {None}
    assert local(of("qwen2", sliding_window=16, use_sliding_window=True, max_window_layers=5)) == [5, 6, 7]
    assert local(of("qwen3", sliding_window=16, max_window_layers=0)) == []
    assert local(of("gemma2", **small)) == local(of("vaultgemma", **small)) == [0, 2, 4, 6]
    assert local(of("gemma3_text", **small)) == [0, 1, 2, 3, 4, 6, 7]
    assert local(of("gemma3_text", **small, sliding_window_pattern=2)) == [0, 2, 4, 6]
    assert local(of("olmo3", sliding_window=16)) == local(of("cohere2", sliding_window=16)) == [0, 1, 2, 4, 5, 6]
    assert local(of("cohere2", sliding_window=16, sliding_window_pattern=2)) == [0, 2, 4, 6]
    assert local(of("cwm", **small)) == local(of("granite_swa", sliding_window=16)) == [1, 2, 3, 5, 6, 7]
    assert local(of("ministral", sliding_window=None)) == []
    assert local(of("ministral", sliding_window=16)) == list(range(8))
    assert local(of("gemma4_text", **small, layer_pattern="2 local : 1 global")) == [0, 1, 3, 4, 6]  # the last one is global


def test_smollm3_has_windows_where_positions_are_not_rotated() -> None:
    on = {"use_sliding_window": True, "sliding_window": 16, "num_key_value_heads": 2}
    assert local(of("smollm3", **on)) == [3, 7]
    assert local(of("smollm3", **on, no_rope_layers=[0, 1, 1, 1, 1, 1, 1, 0])) == [0, 7]
    assert local(of("smollm3", **{**on, "use_sliding_window": False})) == []


def test_exaone4_says_its_pattern_in_letters_or_as_a_number() -> None:
    small = {"sliding_window": 16, "num_key_value_heads": 2}
    assert local(of("exaone4", **small, sliding_window_pattern=3)) == [0, 1, 3, 4, 6, 7]
    assert local(of("exaone4", **small, sliding_window_pattern="LLG")) == [0, 1, 3, 4, 6]  # in letters, the last layer is global
    assert local(of("exaone4", sliding_window=None, sliding_window_pattern="LLLG", num_key_value_heads=2)) == []


# ---- keys and values --------------------------------------------------------------------------------------------------------


def test_gemma_3n_shares_keys_and_values_and_routes_twice() -> None:
    streams, rank, P, T = 2, 4, 8, 16
    fields = {
        "head_dim": 16,
        "num_key_value_heads": 2,
        "num_kv_shared_layers": 3,
        "sliding_window": 4,
        "altup_num_inputs": streams,
    }
    x = of("gemma3n_text", **fields, laurel_rank=rank, hidden_size_per_layer_input=P, vocab_size_per_layer_input=50)
    assert x.kv_bytes(T, dtype="fp8") == 2 * 2 * 16 * (4 * 4 + T)  # layers 0 to 3 with a window and layer 4 without keep them
    assert x.params()["layers/attention/k"] == 5 * 64 * 2 * 16
    assert x.params()["layers/altup/router"] == 8 * 64 * streams
    flops = x.flops_by_part(batch=1, seq_len=T, kind="forward")
    assert flops["layers/altup/router"] == 2 * 2 * 8 * 64 * streams * T
    assert flops["layers/altup/streams"] == 2 * 8 * 64 * streams**2 * T


def test_gemma_4_has_wider_and_fewer_heads_where_it_sees_all() -> None:
    fields = {
        "head_dim": 16,
        "global_head_dim": 32,
        "num_key_value_heads": 4,
        "num_global_key_value_heads": 1,
        "attention_k_eq_v": True,
    }
    x = of("gemma4_text", **fields, sliding_window=4, num_kv_shared_layers=2, use_double_wide_mlp=True)
    # global: 5 and 7; the last two layers use the keys of 5 and 4
    assert x.kv_bytes(10, dtype="fp8") == 5 * 4 * 2 * 16 * 4 + 1 * 1 * 2 * 32 * 10
    assert x.params()["layers/attention/v"] == 5 * 64 * 4 * 16
    assert x.params()["layers/attention/k"] == 5 * 64 * 4 * 16 + 64 * 32
    assert x.params()["layers/mlp/up"] == (6 + 2 * 2) * 64 * 96
    assert "hidden_size_per_layer_input = 0" in x.assumptions


def test_diffllama_attends_to_the_values_of_two_heads() -> None:
    flops = of("diffllama", num_key_value_heads=2).flops_by_part(batch=1, seq_len=10, kind="forward", convention="full")
    assert flops["layers/attention/scores"] == 8 * 2 * 64 * 100
    assert flops["layers/attention/values"] == 2 * flops["layers/attention/scores"]


def test_doge_chooses_keys_but_keeps_all() -> None:
    x = of("doge", num_key_value_heads=2, keep_window_size=4)
    assert x.kv_bytes(10, dtype="fp8") == 8 * 2 * 2 * 16 * 10
    scores = x.flops_by_part(batch=1, seq_len=10, kind="decode")["layers/attention/scores"]
    assert scores == 8 * 2 * 64 * 4
    assert of("doge", num_key_value_heads=2, sliding_window=4).kv_bytes(10, dtype="fp8") == 8 * 2 * 2 * 16 * 4
    routed = of("doge", is_moe=True, num_experts=10, num_experts_per_tok=2)
    plain = of("doge", is_moe=False)
    assert routed.total_params - plain.total_params == 8 * (64 * 2 * 3 + 2 * 10 * 64)
    assert routed.active_params() - plain.active_params() == 8 * (64 * 2 * 3 + 2 * 2 * 64)


# ---- mixed layers -----------------------------------------------------------------------------------------------------------


def test_lara_keeps_a_state_in_two_layers_of_five() -> None:
    fields = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 12, "linear_value_head_dim": 10}
    fields |= {
        k: v for k, v in SIZES.items() if k not in ("intermediate_size", "num_key_value_heads")
    }  # all its layers have experts
    x = sb.Model.from_hf(
        {
            "model_type": "lara_mini",
            **fields,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "sliding_window": 4,
            "num_experts": 4,
            "num_experts_per_tok": 2,
        }
    )
    channels = 2 * 2 * 12 + 4 * 10
    assert x.state_bytes(dtype="fp8") == 4 * (4 * 12 * 10 + channels * 3)  # layers 0, 2, 5, 7; a convolution of 4 taps
    assert windows(x) == {1: 4, 3: None, 4: 4, 6: 4}
    assert x.kv_bytes(10, dtype="fp8") == 2 * 2 * 16 * (3 * 4 + 10)


def test_laguna_may_have_other_numbers_of_heads_in_each_layer() -> None:
    few = {"num_hidden_layers": 2, "head_dim": 8, "num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2}
    x = of("laguna", **few, num_attention_heads_per_layer=[2, 6])
    assert x.params()["layers/attention/q"] == 64 * 8 * (2 + 6)
    assert x.params()["layers/attention/gate"] == 64 * (2 + 6)
    assert (
        of("laguna", **few, num_attention_heads_per_layer=[2, 6], gating="per-element").params()["layers/attention/gate"]
        == 64 * 8 * 8
    )
    assert [(layer.at, layer.kind.split()[1]) for layer in x.layers] == [((0,), "dense"), ((1,), "sparse")]


def test_mellum_says_that_a_module_is_left_out() -> None:
    few = {"head_dim": 8, "num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2}
    assert of("mellum", **few).not_counted == ()
    assert of("mellum", **few, num_nextn_predict_layers=1).not_counted == ("num_mtp_layers: a module whose shape is not known",)
    with pytest.raises(ModelError, match=r"mlp_layer_types has 'moe'"):
        of("mellum", **few, mlp_layer_types=["moe"] * 8)
