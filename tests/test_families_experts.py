"""Families with experts: what their original configurations say, further tokens, sparse attention, and refusals by name."""

from __future__ import annotations

from typing import Any

import pytest

import scalebook as sb
from scalebook.errors import ModelError

SIZES = {"vocab_size": 100, "hidden_size": 16, "intermediate_size": 40, "num_hidden_layers": 4, "num_attention_heads": 4}
SMALL = {**SIZES, "num_key_value_heads": 2, "head_dim": 8}


def counted(family: str, **fields: Any) -> sb.Model:
    return sb.Model.from_hf({"model_type": family, **SMALL, "tie_word_embeddings": False, **fields})


# ---- published totals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["glm-4.5", "glm-4.5-air"])
def test_a_checkpoint_is_its_layers_and_the_module_for_a_further_token(name: str) -> None:
    x = sb.model(name)
    assert x.total_params + x.mtp_params == x.published["hub_elements"]


def test_the_module_of_glm_4_5_air_by_hand() -> None:
    D, V, N, K, H, F, E = 4096, 151552, 96, 8, 128, 1408, 128
    attention = 2 * D * N * H + 2 * D * K * H + (N + 2 * K) * H  # queries and result, keys and values, biases
    experts = D * E + E + (E + 1) * 3 * D * F  # router and its bias, chosen and shared experts
    assert sb.model("glm-4.5-air").mtp_params == attention + experts + 2 * D + 2 * D * D + 3 * D + 2 * V * D == 3_616_573_568


@pytest.mark.parametrize(
    ("name", "active", "total"),
    [
        ("phi-3.5-moe", 6.6e9, 41.9e9),
        ("hy3-295b", 21e9, 295e9),
        ("mimo-v2-flash", 15e9, 309e9),
    ],
)
def test_active_and_all_parameters_round_to_what_is_published(name: str, active: float, total: float) -> None:
    x = sb.model(name)
    assert x.active_params() == pytest.approx(active, rel=0.035)
    assert x.total_params == pytest.approx(total, rel=0.001)


def test_grok_1_by_hand() -> None:
    """Its README says 314 billion, which is the layers: the table, which is the head too, comes on top."""
    D, F, N, K, H, E = 6144, 32768, 48, 8, 128, 8
    layer = 2 * D * N * H + 2 * D * K * H + D * E + E * 3 * D * F + 4 * D
    assert sb.model("grok-1").total_params == 64 * layer + 131072 * D + D
    assert 64 * layer // 10**9 == 314


# ---- original configurations ---------------------------------------------------------------------------------------------------


MIMO = {"moe_intermediate_size": 12, "n_routed_experts": 4, "num_experts_per_tok": 2, "v_head_dim": 6, "num_attention_heads": 8}


def test_mimo_as_first_published() -> None:
    """Source of the names: Xiaomi's configuration as vLLM reads it. A window of 7 before a query is one of 8 with itself."""
    now = counted(
        "mimo_v2_flash", **MIMO, sliding_window=8, layer_types=["full_attention", *["sliding_attention"] * 3],
        mlp_layer_types=["dense", *["sparse"] * 3],
    )  # fmt: skip
    then = counted(
        "mimo_v2_flash", **MIMO, sliding_window=7, sliding_window_size=7, hybrid_layer_pattern=[0, 1, 1, 1],
        moe_layer_freq=[0, 1, 1, 1], swa_num_key_value_heads=4, swa_num_attention_heads=8, swa_head_dim=8, swa_v_head_dim=6,
        add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False, attention_chunk_size=7, n_shared_experts=None,
        topk_method="noaux_tc", hybrid_block_size=None,
    )  # fmt: skip
    assert then.params() == now.params()
    assert then.kv_bytes(100) == now.kv_bytes(100) == 2 * (2 * (8 + 6) * 100 + 3 * 4 * (8 + 6) * 8)
    assert then.params()["layers/attention/sinks"] == 3 * 8


def test_further_tokens_of_mimo_are_dense_layers_with_a_window() -> None:
    D, N, K, H, V, F = 16, 8, 4, 8, 6, 40
    layer = D * N * H + D * K * (H + V) + N * V * D + N + 3 * D * F + 2 * D
    assert counted("mimo_v2_flash", **MIMO, num_nextn_predict_layers=3).mtp_params == 3 * (layer + 2 * D * D + 3 * D)


def test_further_tokens_of_exaone_share_what_joins_two_vectors() -> None:
    fields = {
        "moe_intermediate_size": 12,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "num_shared_experts": 1,
        "sliding_window": 8,
    }
    D, N, K, H, F = 16, 4, 2, 8, 40
    layer = 2 * D * N * H + 2 * D * K * H + 2 * H + 3 * D * F + 2 * D
    assert counted("exaone_moe", **fields, num_nextn_predict_layers=2).mtp_params == 2 * layer + 2 * D * D + 3 * D
    was = counted("exaone_moe", **fields, is_moe_layer=[False, True, True, True], sliding_window_pattern="LLLG")
    assert was.params() == counted("exaone_moe", **fields).params()
    with pytest.raises(ModelError, match="is_moe_layer must be a list of 0 or 1 for each of the 4 layers"):
        counted("exaone_moe", **fields, is_moe_layer=[False, True])


def test_a_further_token_of_ernie_is_a_dense_layer_with_two_norms_before() -> None:
    D, N, K, H, F = 16, 4, 2, 8, 40
    fields = {"moe_intermediate_size": 12, "moe_num_experts": 4, "moe_k": 2, "moe_num_shared_experts": 1}
    x = counted("ernie4_5_moe", **fields, num_nextn_predict_layers=1, moe_capacity=[4, 4, 4], moe_use_aux_free=True)
    assert x.mtp_params == 2 * D * N * H + 2 * D * K * H + 3 * D * F + 2 * D + 2 * D * D + 2 * D


def test_a_further_token_of_hunyuan_3_is_a_layer_with_experts() -> None:
    D, N, K, H, F, E = 16, 4, 2, 8, 12, 4
    fields = {"moe_intermediate_size": F, "num_experts": E, "num_experts_per_tok": 2, "num_shared_experts": 1}
    layer = 2 * D * N * H + 2 * D * K * H + 2 * H + D * E + E + (E + 1) * 3 * D * F + 2 * D
    assert counted("hy_v3", **fields, num_nextn_predict_layers=1).mtp_params == layer + 2 * D * D + 3 * D


def test_hunyuan_with_lists_of_equal_numbers() -> None:
    one = counted("hunyuan_v1_moe", num_experts=4, moe_topk=2)
    many = counted(
        "hunyuan_v1_moe", num_experts=4, moe_topk=[2] * 4, moe_intermediate_size=[40] * 4, num_shared_expert=[1] * 4,
        attention_head_dim=8, use_cla=False, use_qk_norm=True, use_mixed_mlp_moe=True,
    )  # fmt: skip
    assert many.params() == one.params()
    with pytest.raises(ModelError, match="moe_topk must be one number, or a list of it for each of the 4 layers"):
        counted("hunyuan_v1_moe", num_experts=4, moe_topk=[2, 2, 1, 2])


M3 = {"num_local_experts": 4, "num_experts_per_tok": 2, "dense_intermediate_size": 20, "shared_intermediate_size": 12}


def test_minimax_m3_with_its_sparse_attention_in_a_mapping() -> None:
    indexer = {"index_n_heads": 2, "index_head_dim": 4, "index_block_size": 4, "index_topk_blocks": 2}
    sparse = ["full_attention", *["minimax_m3_sparse"] * 3]
    flat = counted("minimax_m3_vl_text", **M3, **indexer, layer_types=sparse, mlp_layer_types=["dense", *["sparse"] * 3])
    inner = {
        "use_sparse_attention": True, "sparse_num_index_heads": 2, "sparse_index_dim": 4, "sparse_block_size": 4, "sparse_topk_blocks": 2,
        "sparse_local_block": 1, "sparse_attention_freq": [0, 1, 1, 1], "sparse_disable_index_value": [0, 1, 1, 1],
    }  # fmt: skip
    nested = counted("minimax_m3_vl_text", **M3, sparse_attention_config=inner, moe_layer_freq=[0, 1, 1, 1])
    assert nested.params() == flat.params()
    assert nested.params()["layers/index/q"] + nested.params()["layers/index/k"] == 3 * 16 * (2 + 1) * 4
    assert nested.index_bytes(100) == 2 * 3 * 4 * 100
    assert nested.kv_bytes(100) == 2 * 4 * 2 * 2 * 8 * 100  # every key and value is kept
    pairs = {part: n for part, n in nested.flops_by_part(batch=1, seq_len=100, kind="decode").items() if part.endswith("scores")}
    assert pairs == {"layers/attention/scores": 2 * 4 * 8 * (100 + 3 * 8), "layers/index/scores": 3 * 2 * 2 * 4 * 100}
    with pytest.raises(ModelError, match="are one thing, with two values"):
        counted("minimax_m3_vl_text", **M3, index_n_heads=3, sparse_attention_config=inner)
    with pytest.raises(ModelError, match="sparse_values = 3"):
        counted("minimax_m3_vl_text", **M3, sparse_attention_config={**inner, "sparse_values": 3})


def test_dbrx_with_what_its_inner_objects_were_written_with() -> None:
    written = {
        "return_dict": True,
        "tie_word_embeddings": True,
        "top_k": 50,
        "temperature": 1.0,
        "model_type": "",
        "max_length": 20,
    }
    base = {"model_type": "dbrx", "d_model": 16, "n_heads": 4, "n_layers": 2, "vocab_size": 100, "max_seq_len": 64}
    attends, fed = {"kv_n_heads": 2}, {"ffn_hidden_size": 12, "moe_num_experts": 4, "moe_top_k": 2}
    x = sb.Model.from_hf({**base, "attn_config": {**attends, **written}, "ffn_config": {**fed, **written}})
    assert x.total_params == 2 * (2 * 16 * 16 + 2 * 16 * 8 + 16 * 4 + 4 * 3 * 16 * 12 + 2 * 16) + 2 * 100 * 16 + 16
    with pytest.raises(ModelError, match="num_shared = 1"):
        sb.Model.from_hf({**base, "attn_config": attends, "ffn_config": {**fed, "num_shared": 1}})


# ---- shapes of their own -------------------------------------------------------------------------------------------------------


def test_jetmoe_has_experts_in_attention() -> None:
    D, F, K, H, E, k = 16, 40, 2, 8, 4, 2
    fields = {**SIZES, "num_key_value_heads": K, "kv_channels": H, "num_local_experts": E, "num_experts_per_tok": k}
    x = sb.Model.from_hf({"model_type": "jetmoe", **fields, "num_attention_heads": k * K})
    attention = E * 2 * D * K * H + D * E + D + 2 * D * K * H
    assert x.total_params == 4 * (attention + E * 3 * D * F + D * E + D + 2 * D) + 100 * D + D
    assert x.total_params - x.active_params() == 4 * (E - k) * (2 * D * K * H + 3 * D * F)
    assert x.kv_bytes(1) == 2 * 4 * 2 * K * H
    with pytest.raises(ModelError, match="num_attention_heads = 3"):
        sb.Model.from_hf({"model_type": "jetmoe", **fields, "num_attention_heads": 3})


def test_arctic_of_480_billion() -> None:
    """128 experts of 3.66 billion parameters beside 10 billion: known as a model of 480 billion."""
    arctic = {
        "model_type": "arctic", "vocab_size": 32000, "hidden_size": 7168, "intermediate_size": 4864, "num_hidden_layers": 35,
        "num_attention_heads": 56, "num_key_value_heads": 8, "num_local_experts": 128, "num_experts_per_tok": 2,
        "moe_layer_frequency": 1, "parallel_attn_mlp_res": True, "use_residual": True,
    }  # fmt: skip
    D, F, H = 7168, 4864, 128
    layer = 2 * D * 56 * H + 2 * D * 8 * H + 3 * D * D + 128 * (D + 3 * D * F) + 3 * D
    x = sb.Model.from_hf(arctic)
    assert x.total_params == 35 * layer + 2 * 32000 * D + D
    assert x.total_params == pytest.approx(480e9, rel=0.005)
    plain = sb.Model.from_hf({**arctic, "parallel_attn_mlp_res": False, "use_residual": False, "moe_layer_frequency": 5})
    assert plain.total_params == x.total_params - 35 * (3 * D * D + D) - 28 * (128 * (D + 3 * D * F) - 3 * D * F)


def test_windows_of_qwen_3_with_experts_are_used_only_where_it_says_so() -> None:
    fields = {"moe_intermediate_size": 12, "num_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8}
    every, none = (counted("qwen3_moe", **fields, use_sliding_window=used) for used in (True, False))
    assert (every.kv_bytes(100), none.kv_bytes(100)) == (2 * 4 * 2 * 2 * 8 * 8, 2 * 4 * 2 * 2 * 8 * 100)
    x = counted("qwen2_moe", **fields, shared_expert_intermediate_size=12, use_sliding_window=True, max_window_layers=3)
    assert x.kv_bytes(100) == 2 * 2 * 2 * 8 * (2 * 8 + 2 * 100)  # layers 0 and 2 of 4


def test_llama_4_without_chunks_sees_all() -> None:
    fields = {"intermediate_size_mlp": 48, "num_local_experts": 4, "num_experts_per_tok": 1}
    chunks, none = (counted("llama4_text", **fields, attention_chunk_size=n) for n in (8, None))
    assert chunks.kv_bytes(100) == 2 * 2 * 2 * 8 * (3 * 8 + 100)
    assert none.kv_bytes(100) == 2 * 4 * 2 * 2 * 8 * 100


def test_cohere_with_experts_and_dense_layers_first() -> None:
    fields = {"num_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8, "sliding_window_pattern": 2}
    x = counted("cohere2_moe", **fields, first_k_dense_replace=1, prefix_dense_intermediate_size=24, tie_word_embeddings=True)
    assert x.params()["layers/mlp/up"] == 16 * 24 and x.params()["layers/experts/up"] == 3 * 4 * 16 * 40
    assert x.kv_bytes(100) == 2 * 2 * 2 * 8 * (2 * 8 + 2 * 100)  # the dense one and the second of the other three see all


def test_dots3_has_latents_of_two_widths() -> None:
    dots = {
        "moe_intermediate_size": 12, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1, "q_lora_rank": 6, "kv_lora_rank": 10,
        "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 4, "index_n_heads": 2, "index_head_dim": 4, "index_topk": 8,
        "swa_num_attention_heads": 2, "swa_q_lora_rank": 5, "swa_kv_lora_rank": 7, "swa_head_dim": 8, "swa_qk_nope_head_dim": 5,
        "swa_v_head_dim": 6, "sliding_window": 8,
    }  # fmt: skip
    x = counted("dots3_note", **dots, vision_config={"depth": 2})
    assert x.kv_bytes(100) == 2 * (2 * 12 * 100 + 2 * 10 * 8)  # layers 0 and 1 choose their keys, 2 and 3 have a window
    assert x.index_bytes(100) == 2 * 2 * 4 * 100
    assert x.not_counted == ("vision_config: not counted",)
    with pytest.raises(ModelError, match="swa_head_dim must be swa_qk_nope_head_dim"):
        counted("dots3_note", **dots, swa_qk_rope_head_dim=4)


# ---- compositions and refusals -------------------------------------------------------------------------------------------------


def test_a_text_model_inside_another_is_found_by_the_name_of_the_whole() -> None:
    fields = {"moe_intermediate_size": 12, "num_experts": 4, "num_experts_per_tok": 2}
    text = counted("qwen3_moe", **fields)
    x = sb.Model.from_hf({"model_type": "qwen3_vl_moe", "text_config": {**SMALL, **fields}, "tie_word_embeddings": False})
    assert (x.family, x.params()) == ("qwen3_vl_moe_text", text.params())
    with pytest.raises(ModelError, match="has no tie_word_embeddings"):
        sb.Model.from_hf({"model_type": "qwen3_vl_moe", "text_config": {**SMALL, **fields}})


@pytest.mark.parametrize(
    ("family", "fields", "named"),
    [
        ("hunyuan_v1_moe", {"num_experts": 4, "moe_topk": 2, "use_cla": True}, "use_cla = True"),
        ("ernie4_5_moe", {"moe_num_experts": 4, "moe_k": 2, "moe_use_aux_free": False}, "moe_use_aux_free = False"),
        ("mimo_v2_flash", {**MIMO, "n_shared_experts": 1}, "n_shared_experts = 1"),
        ("mimo_v2_flash", {**MIMO, "hybrid_layer_pattern": [0, 1, 2, 1]}, "hybrid_layer_pattern must be a list of 0 or 1"),
        ("minimax_m3_vl_text", {**M3, "use_routing_bias": False}, "use_routing_bias = False"),
        ("minimax_m2", {"num_local_experts": 4, "num_experts_per_tok": 2, "attn_type_list": [1, 0, 1, 1]}, "attn_type_list"),
        ("dots1", {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12, "moe_layer_freq": 2}, "moe_layer_freq = 2"),
        ("hy_v4", {"indexer_types": ["shared", "full", "full", "full"]}, "the first layer's indexer is shared"),
        ("hy_v3", {"qk_norm": False}, "qk_norm = False"),
        ("olmoe", {"hidden_size": 18}, "num_attention_heads must divide hidden_size, 18"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_by_name(family: str, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelError, match=named):
        counted(family, **fields)
