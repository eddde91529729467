"""The GPT-2 generation: names of the first configurations, what is refused by name, published totals."""

from __future__ import annotations

from typing import Any

import pytest

import scalebook as sb
from scalebook.errors import ModelError

FALCON_40B = {"vocab_size": 65024, "hidden_size": 8192, "bias": False, "parallel_attn": True, "alibi": False}
MPT = {"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432, "max_seq_len": 2048}
GPT_NEO = {"model_type": "gpt_neo", "hidden_size": 64, "num_heads": 4, "num_layers": 6, "window_size": 8}


def test_falcon_40b_under_the_name_that_it_was_published_with() -> None:
    old = sb.Model.from_hf({**FALCON_40B, "model_type": "RefinedWeb", "n_head": 128, "n_head_kv": 8, "n_layer": 60})
    new = {"num_attention_heads": 128, "num_kv_heads": 8, "num_hidden_layers": 60, "new_decoder_architecture": True}
    assert old.total_params == sb.Model.from_hf({**FALCON_40B, "model_type": "falcon", **new}).total_params == 41_303_293_952
    assert old.kv_bytes(1) == 60 * 2 * 8 * 64 * 2


def test_falcon_7b_and_1b_under_their_old_name() -> None:
    old = {"model_type": "RefinedWebModel", "bias": False, "parallel_attn": True, "alibi": False, "multi_query": True}
    x = sb.Model.from_hf({**old, "vocab_size": 65024, "hidden_size": 4544, "n_head": 71, "n_layer": 32})
    D, H = 4544, 64
    layer = D * (D + 2 * H) + D * D + 8 * D * D + 2 * D
    assert x.total_params == 65024 * D + 32 * layer + 2 * D
    assert x.kv_bytes(1) == 32 * 2 * H * 2
    rw = {**old, "bias": True, "parallel_attn": False, "alibi": True, "multi_query": False}
    # keras-team/keras-hub, falcon_presets.py
    assert (
        sb.Model.from_hf({**rw, "vocab_size": 50304, "hidden_size": 2048, "n_head": 32, "n_layer": 24}).total_params
        == 1_311_625_216
    )
    with pytest.raises(ModelError, match="has no multi_query; it is needed"):
        sb.Model.from_hf(
            {k: v for k, v in {**rw, "vocab_size": 8, "hidden_size": 8, "n_head": 1, "n_layer": 1}.items() if k != "multi_query"}
        )


def test_falcon_180b_has_its_head_apart_in_the_file() -> None:
    config = {
        "model_type": "falcon",
        "vocab_size": 65024,
        "hidden_size": 14848,
        "num_hidden_layers": 80,
        "num_attention_heads": 232,
    }
    config |= {"num_kv_heads": 8, "new_decoder_architecture": True, "bias": False, "parallel_attn": True}
    assert sb.Model.from_hf(config).total_params == 178_557_088_768
    assert sb.Model.from_hf({**config, "tie_word_embeddings": False}).total_params == 179_522_565_120


def test_starcoder_keeps_one_head_and_its_own_switches_do_not_matter() -> None:
    config = {"model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576, "n_positions": 8192}
    config |= {"vocab_size": 49152, "multi_query": True, "inference_runner": 0, "validate_runner_input": True, "n_ctx": 8192}
    x = sb.Model.from_hf(config)
    assert x.kv_bytes(1) == 40 * 2 * 128 * 2
    assert sb.Model.from_hf({**config, "multi_query": False}).kv_bytes(1) == 48 * x.kv_bytes(1)


def test_gpt_neo_sees_a_window_but_keeps_all() -> None:
    x = sb.Model.from_hf({**GPT_NEO, "attention_types": [[["global", "local"], 3]], "attention_layers": ["global", "local"] * 3})
    assert [(layer.kind, layer.at) for layer in x.layers] == [("global", (0, 2, 4)), ("local", (1, 3, 5))]
    assert x.kv_bytes(100) == 6 * 100 * 2 * 64 * 2
    pairs = 3 * 100 * 101 // 2 + 3 * (8 * 9 // 2 + 92 * 8)
    scores = x.flops_by_part(batch=1, seq_len=100, kind="forward")["layers/attention/scores"]
    assert scores == 2 * 64 * pairs
    assert sb.Model.from_hf({"model_type": "gpt_neo"}).total_params == 1_315_575_808


@pytest.mark.parametrize(
    "types",
    [
        None,
        [],
        "global",
        [["global"]],
        [[["global"], 5]],
        [[["global"], 6.0]],
        [[["local"], 6], "global"],
        [[["far"], 6]],
        [[["local"], -6]],
    ],
)
def test_gpt_neo_wants_a_kind_for_every_layer(types: Any) -> None:
    with pytest.raises(ModelError, match=r"attention_types must name the kinds of 6 layers.*found "):
        sb.Model.from_hf({**GPT_NEO, "attention_types": types})


def test_gpt_neo_wants_one_word_in_both_lists() -> None:
    with pytest.raises(ModelError, match="attention_layers are not what attention_types says"):
        sb.Model.from_hf({**GPT_NEO, "attention_types": [[["global"], 6]], "attention_layers": ["local"] * 6})


def test_mpt_as_it_was_published() -> None:
    attention = {"alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_type": "multihead_attention", "qk_ln": False}
    first = {"attn_config": attention, "expansion_ratio": 4, "no_bias": True, "learned_pos_emb": True, "embedding_fraction": 1.0}
    x = sb.Model.from_hf({**MPT, **first, "init_config": {"name": "kaiming_normal_"}, "verbose": 0})
    D = 4096
    assert x.total_params == 50432 * D + 32 * (12 * D * D + 2 * D) + D == 6_649_286_656


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"no_bias": False}, "no_bias = False is not understood"),
        ({"expansion_ratio": 8}, "expansion_ratio = 8 is not understood"),
        ({"attn_config": {"qk_ln": True}}, "qk_ln = True in attn_config is not understood"),
        (
            {"attn_config": {"attn_type": "multiquery_attention"}},
            "attn_type = 'multiquery_attention' in attn_config is not understood",
        ),
        ({"attn_config": {"alibi": False}}, "alibi = False in attn_config is not understood"),
        ({"n_heads": 3}, "3 heads cannot divide a width of 4096"),
    ],
)
def test_mpt_refuses_by_name_what_no_published_model_has(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        sb.Model.from_hf({**MPT, **changed})


def test_cross_attention_is_refused() -> None:
    for family in ("gpt2", "gpt_bigcode", "xglm"):
        with pytest.raises(ModelError, match="add_cross_attention = True is not understood"):
            sb.Model.from_hf({"model_type": family, "add_cross_attention": True})


def test_opt_350m_projects_its_narrow_embeddings() -> None:
    config = {"model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24, "ffn_dim": 4096, "num_attention_heads": 16}
    x = sb.Model.from_hf({**config, "word_embed_proj_dim": 512, "do_layer_norm_before": False, "vocab_size": 50272})
    parts = x.params()
    assert parts["embedding"] == 50272 * 512
    assert parts["project_in"] == parts["project_out"] == 512 * 1024
    assert parts["positions"] == (2048 + 2) * 1024
    assert "final_norm" not in parts
    assert (x.D, x.total_params) == (1024, 331_196_416)


def test_bloom_under_its_old_name_of_the_width() -> None:
    config = {"model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112, "vocab_size": 250880}
    config |= {
        "skip_bias_add": True,
        "attention_softmax_in_fp32": True,
        "masked_softmax_fusion": True,
        "n_inner": None,
        "seq_length": 2048,
    }
    assert sb.Model.from_hf(config).total_params == 176_247_271_424  # BigScience 2022: 176,247M
    with pytest.raises(ModelError, match="two names of one thing"):
        sb.Model.from_hf({**config, "hidden_size": 4096})
