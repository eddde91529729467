"""Latent attention: published totals with their modules for further tokens, indexers, shared latents, names of fields, refusals."""

from __future__ import annotations

from typing import Any

import pytest

import scalebook as sb
from scalebook.errors import ModelError, SizeError
from scalebook.transformer.layers import attended
from scalebook.transformer.ops import Span

V3 = {
    "model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "num_nextn_predict_layers": 1, "tie_word_embeddings": False,
}  # fmt: skip
INDEX = {"index_topk": 2048, "index_head_dim": 128, "index_n_heads": 64}
GLM5 = {
    "model_type": "glm_moe_dsa", "vocab_size": 154880, "hidden_size": 6144, "intermediate_size": 12288, "num_hidden_layers": 78,
    "num_attention_heads": 64, "q_lora_rank": 2048, "qk_nope_head_dim": 192, "v_head_dim": 256, "index_n_heads": 32, "index_topk": 2048,
    "num_nextn_predict_layers": 1,
}  # fmt: skip
SMALL = {
    "vocab_size": 97, "hidden_size": 24, "intermediate_size": 52, "moe_intermediate_size": 20, "num_hidden_layers": 4,
    "num_attention_heads": 4, "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 3, "kv_lora_rank": 10,
    "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6, "index_topk": 8, "index_head_dim": 12, "index_n_heads": 3,
}  # fmt: skip
LARGE4 = {"model_type": "mistral_large4_text", **SMALL}
V4 = {
    "model_type": "deepseek_v4", "vocab_size": 211, "hidden_size": 96, "num_hidden_layers": 6, "num_attention_heads": 4, "head_dim": 20,
    "moe_intermediate_size": 56, "n_routed_experts": 8, "num_experts_per_tok": 2, "q_lora_rank": 28, "index_n_heads": 4,
    "index_head_dim": 16, "index_topk": 8, "sliding_window": 8, "layer_types": None,
}  # fmt: skip


# ---- published totals --------------------------------------------------------------------------------------------------------


def test_deepseek_v3_in_parts() -> None:
    x = sb.Model.from_hf(V3)
    assert x.total_params == 671_026_419_200
    assert x.mtp_params == 13_463_426_304
    assert x.params()["layers/experts/router_bias"] == 58 * 256
    assert x.active_params() == 37_552_297_472
    assert (x.kv_bytes(1), x.index_bytes(1)) == (70_272, 0)
    assert x.kv_bytes(1, tp=8) == x.kv_bytes(1), "one latent is on every device"


@pytest.mark.parametrize(
    ("config", "stored"),
    [
        ({**V3, **INDEX, "model_type": "deepseek_v32"}, 685_355_329_792),  # deepseek-ai/DeepSeek-V3.2
        (GLM5, 753_864_139_008),  # zai-org/GLM-5: an indexer in each of its 78 layers and in the module for a further token
        ({**GLM5, "index_topk_freq": 4, "index_skip_topk_offset": 3}, 753_329_940_480),  # zai-org/GLM-5.2: 57 layers without
        ({"model_type": "longcat_flash", "num_nextn_predict_layers": 1}, 561_862_880_256),  # meituan-longcat/LongCat-Flash-Chat
    ],
    ids=["DeepSeek-V3.2", "GLM-5", "GLM-5.2", "LongCat-Flash-Chat"],
)
def test_elements_of_published_checkpoints(config: dict[str, Any], stored: int) -> None:
    """The sum of all arrays in the files of a repository, without scales of quantisation."""
    x = sb.Model.from_hf(config)
    assert x.total_params + x.mtp_params == stored


@pytest.mark.parametrize(
    ("config", "stored"),
    [
        ({**V3, "model_type": "deepseek_v2", "vocab_size": 102400, "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536,
          "num_hidden_layers": 60, "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
          "num_nextn_predict_layers": 0}, 235_741_434_880),  # deepseek-ai/DeepSeek-V2
        ({"model_type": "deepseek", "vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
          "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2,
          "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1}, 16_375_728_128),  # deepseek-ai/deepseek-moe-16b-base
    ],
    ids=["DeepSeek-V2", "deepseek-moe-16b"],
)  # fmt: skip
def test_models_without_further_modules(config: dict[str, Any], stored: int) -> None:
    assert sb.Model.from_hf(config).total_params == stored


# ---- fields ------------------------------------------------------------------------------------------------------------------


def test_the_original_configuration_of_kimi_k2_is_deepseek_v3_under_another_name() -> None:
    more = {
        "moe_layer_freq": 1,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "ep_size": 1,
        "seq_aux": True,
        "n_group": 1,
    }
    k2 = {**V3, **more, "vocab_size": 163840, "num_attention_heads": 64, "n_routed_experts": 384, "first_k_dense_replace": 1}
    x = sb.Model.from_hf({**k2, "model_type": "kimi_k2"})
    assert x.total_params == sb.Model.from_hf(k2).total_params == 1_026_408_232_448
    assert (
        sb.Model.from_hf({"model_type": "kimi_k25", "text_config": {**k2, "model_type": "kimi_k2"}}).total_params
        == x.total_params
    )


def test_which_layers_have_experts() -> None:
    every_other = sb.Model.from_hf({**V3, "moe_layer_freq": 2})
    assert {layer.kind: layer.count for layer in every_other.layers} == {"dense": 32, "sparse": 29}
    listed = ["sparse", "dense"] + ["sparse"] * 59
    assert {layer.kind: layer.count for layer in sb.Model.from_hf({**V3, "mlp_layer_types": listed}).layers} == {
        "sparse": 60,
        "dense": 1,
    }
    assert [layer.kind for layer in sb.Model.from_hf({**V3, "n_routed_experts": None}).layers] == ["dense"]
    alone = sb.Model.from_hf({**V3, "n_shared_experts": None}).total_params
    assert sb.Model.from_hf(V3).total_params - alone == 58 * 3 * 7168 * 2048


def test_which_layers_score_the_keys() -> None:
    by_pattern = sb.Model.from_hf({**GLM5, "index_topk_pattern": "FSS" * 26})
    by_list = sb.Model.from_hf({**GLM5, "indexer_types": ["full", "shared", "shared"] * 26})
    assert by_pattern.total_params == by_list.total_params
    assert by_list.index_bytes(1000) == 26 * 128 * 1000 * 2
    assert by_list.kv_bytes(1000) == 78 * 576 * 1000 * 2, "every layer keeps its latents"
    at = {place: layer.kind for layer in by_list.layers for place in layer.at}
    assert (at[0], at[1], at[77]) == ("dense, full", "dense, shared", "sparse, shared")
    with pytest.raises(ModelError, match="the first layer's indexer is shared"):
        sb.Model.from_hf({**GLM5, "index_topk_pattern": "S" * 78})
    with pytest.raises(ModelError, match=r"indexer_types has 'X'.*known: full, shared"):
        sb.Model.from_hf({**GLM5, "index_topk_pattern": "FX" * 39})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"topk_method": "greedy"}, "topk_method = 'greedy' is not understood"),
        ({"qk_head_dim": 128}, "qk_head_dim = 128 is not understood"),
        ({"use_mla": False}, "use_mla = False is not understood"),
        ({"mlp_layer_types": ["dense"]}, "mlp_layer_types must be a list with one word for each of the 61 layers"),
        ({"num_nextn_predict_layers": 10**6}, "must be a whole number from 0 to 100"),
        ({"num_experts_per_tok": None}, "num_experts_per_tok must be a whole number"),
    ],
)
def test_refusals_name_the_field(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        sb.Model.from_hf({**V3, **changed})


def test_more_choices_than_experts() -> None:
    with pytest.raises(SizeError, match="a token cannot use 300 of 256 experts"):
        sb.Model.from_hf({**V3, "num_experts_per_tok": 300})
    with pytest.raises(ModelError, match="a token cannot use 1000 of 768 experts"):
        sb.Model.from_hf({"model_type": "longcat_flash", "moe_topk": 1000})


def test_experts_that_do_nothing_take_a_third_of_longcats_choices() -> None:
    x = sb.Model.from_hf({"model_type": "longcat_flash"})
    all_ = x.params()["layers/experts/up"]
    busy = sum(layer.count * op.active for layer in x.layers for op in layer.ops if op.part == "experts/up")
    assert busy * 512 == all_ * 8, "12 of 512 + 256 are chosen, 8 of which have weights on average"
    assert x.active_params() == 27_954_818_048


# ---- sparse attention --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("S", [1, 8, 9, 23, 100])
def test_the_indexer_scores_all_pairs_and_attention_sees_the_best(S: int) -> None:
    x = sb.Model.from_hf({**V3, **INDEX, "model_type": "deepseek_v32", "index_topk": 8})
    parts = x.flops_by_part(batch=1, seq_len=S, kind="forward")
    assert parts["layers/index/scores"] == 61 * 2 * 64 * 128 * sum(range(1, S + 1))
    assert parts["layers/index/sum"] == 61 * 2 * 64 * sum(range(1, S + 1))
    assert parts["layers/attention/scores"] == 61 * 2 * 128 * 192 * sum(min(t, 8) for t in range(1, S + 1))
    decode = x.flops_by_part(batch=1, seq_len=S, kind="decode")
    assert decode["layers/attention/scores"] == 61 * 2 * 128 * 576 * min(S, 8)
    assert decode["layers/index/scores"] == 61 * 2 * 64 * 128 * S


@pytest.mark.parametrize(("width", "group"), [(1, 1), (5, 1), (1, 4), (5, 4), (512, 4)])
def test_pairs_of_the_best_compressed_keys(width: int, group: int) -> None:
    for past in (0, 3, 17):
        counted = sum(min(t // group, width) for t in range(past + 1, past + 41))
        assert attended(Span("top", width, group), 40, past) == counted


# ---- DeepSeek-V4 -------------------------------------------------------------------------------------------------------------


def test_deepseek_v4_keeps_a_window_and_an_entry_per_group() -> None:
    kinds = ["sliding_attention"] + ["compressed_sparse_attention"] * 2 + ["heavily_compressed_attention"] * 3
    x = sb.Model.from_hf({**V4, "layer_types": kinds})
    assert x.kv_bytes(23, dtype="fp8") == 6 * 8 * 20 + 2 * (23 // 4) * 20
    assert x.kv_bytes(300, dtype="fp8") == 6 * 8 * 20 + 2 * 75 * 20 + 3 * 2 * 20
    assert x.index_bytes(23, dtype="fp8") == 2 * (23 // 4) * 16
    sparse = 2 * 4 * (2 * 20 + 20) + 2 * 4 * (2 * 16 + 16)  # values and weights: a group of 4 twice as wide, and the last one
    assert x.state_bytes(dtype="fp8") == 2 * sparse + 3 * 2 * 128 * 20
    assert sum(n for part, n in x.params().items() if part.startswith("layers/hyper/")) == 6 * 2 * (24 * 4 * 96 + 24 + 3)


def test_deepseek_v4_in_the_words_of_its_first_configurations() -> None:
    listed = [0, 4, 128, 4, 128, 4]
    old = {"compress_ratios": [*listed, 0], "num_hash_layers": 2, "qk_rope_head_dim": 8, "compress_rate_hca": 64}
    words = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
    new = {"layer_types": [words[r] for r in listed], "mlp_layer_types": ["hash_moe"] * 2 + ["moe"] * 4}
    new |= {"compress_rates": {"heavily_compressed_attention": 64}}
    a, b = sb.Model.from_hf({**V4, **old}), sb.Model.from_hf({**V4, **new})
    assert a.params() == b.params()
    assert a.kv_bytes(1000) == b.kv_bytes(1000)
    assert any("tid2eid" in line for line in a.not_counted) and any("num_nextn_predict_layers" in line for line in a.not_counted)
    for changed, said in (
        ({"compress_ratios": [2] * 6}, "layer_types has 'a compression by 2'"),
        ({"compress_rates": {"other": 2}}, "compress_rates must be by kind"),
        ({"o_groups": 7}, "cannot be put into 7 o_groups"),
        ({"n_shared_experts": 2}, "n_shared_experts = 2 is not understood"),
    ):
        with pytest.raises(ModelError, match=said):
            sb.Model.from_hf({**V4, **changed})


# ---- Mistral Large 4, Mistral 4 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "params", "kept"),
    [
        ({}, 68_234, 1000),
        ({"indexer_types": ["full", "shared", "full", "shared"]}, 65_630, 760),
        ({"mlp_layer_types": ["sparse", "dense", "dense", "sparse"]}, 57_386, 1000),
        ({"attention_bias": True}, 68_382, 1000),
        ({"num_hidden_layers": 8, "kv_source_layers": [0, 0, 2, 3, 0, 2, 2, 3]}, 141_000, 1340),
        ({"num_hidden_layers": 8, "no_rope_layers": [1, 0, 0, 1, 1, 0, 1, 1]}, 142_698, 1960),
        ({"num_hidden_layers": 8, "kv_source_layers": [0, 0, 2, 3, 0, 2, 2, 3], "index_topk_freq": 3}, 135_792, 860),
    ],
)
def test_mistral_large_4_shares_latents(changed: dict[str, Any], params: int, kept: int) -> None:
    """Parameters and elements kept of 10 tokens, counted on transformers' own model (5.24.0), with the head."""
    x = sb.Model.from_hf({**LARGE4, **changed})
    assert x.total_params == params
    assert x.kv_bytes(10, dtype="fp8") + x.index_bytes(10, dtype="fp8") == kept


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kv_source_layers": [0, 0, 1, 3]}, "layer 2 cannot take its latent from layer 1"),
        ({"kv_source_layers": [0, 1, 2, 0]}, "layer 3 cannot take its latent from layer 0.*both with positions or both without"),
        ({"kv_source_layers": [1, 1, 2, 3]}, "layer 0 cannot take its latent from layer 1"),
        ({"kv_source_layers": [0]}, "kv_source_layers must have a layer from 0 to 3 for each of the 4 layers"),
        ({"no_rope_layers": [1, 2, 1, 1]}, "no_rope_layers must have a 1 .positions. or a 0"),
    ],
)
def test_mistral_large_4_wants_sources_that_have_a_latent(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        sb.Model.from_hf({**LARGE4, **changed})


def test_mistral_4_counts_as_transformers_does() -> None:
    config = {**{k: v for k, v in SMALL.items() if not k.startswith("index_")}, "model_type": "mistral4", "q_lora_rank": 14}
    assert sb.Model.from_hf({**config, "first_k_dense_replace": 1}).total_params == 62_408
    assert (
        sb.Model.from_hf({**config, "first_k_dense_replace": 1, "q_lora_rank": None, "attention_bias": True}).total_params
        == 63_080
    )


# ---- the notation ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["forward", "decode"])
@pytest.mark.parametrize(
    "config", [GLM5, LARGE4, V4, {"model_type": "axk2"}, {"model_type": "longcat_flash"}], ids=lambda c: c["model_type"]
)
def test_every_product_is_a_line_of_the_notation(config: dict[str, Any], kind: Any) -> None:
    x = sb.Model.from_hf(config)
    parts: dict[str, int] = {}
    for line in x.einsums(batch=768, seq_len=256, kind=kind):
        parts[line.part] = parts.get(line.part, 0) + line.times * sb.einsum(line.spec, line.sizes).flops
    counted = x.flops_by_part(batch=768, seq_len=256, kind=kind, convention="full")
    assert parts == {part: counted[part] for part in parts}
    assert set(counted) - set(parts) <= {"layers/hyper/mix"}
