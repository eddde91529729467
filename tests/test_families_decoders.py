"""What decoders share: real configurations as they are published, whole; kinds of layers; text models inside larger ones; refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import scalebook as sb
from scalebook.errors import ModelError

LLAMA = {
    "model_type": "llama",
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
}
SCOUT = {
    "attention_bias": False, "attention_chunk_size": 8192, "attn_scale": 0.1, "attn_temperature_tuning": True, "floor_scale": 8192,
    "for_llm_compressor": False, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "interleave_moe_layer_step": 2,
    "intermediate_size": 8192, "intermediate_size_mlp": 16384, "model_type": "llama4_text", "moe_layers": list(range(1, 48, 2)),
    "no_rope_layers": [1, 1, 1, 0] * 12, "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48,
    "num_key_value_heads": 8, "num_local_experts": 128, "use_qk_norm": False, "vocab_size": 202048,
}  # fmt: skip


def test_a_text_model_inside_a_larger_one() -> None:
    """Llama 4 Maverick's text model, as its config.json has it: 400 billion parameters, 17 billion of them active."""
    x = sb.Model.from_hf(
        {"model_type": "llama4", "text_config": SCOUT, "tie_word_embeddings": False, "vision_config": {"hidden_size": 1408}}
    )
    assert x.total_params == 400_711_848_960
    assert x.active_params() == 17_184_691_200
    assert x.not_counted == ("vision_config: not counted",)
    assert "for_llm_compressor" in x.ignored
    assert x.kv_bytes(8192) < x.kv_bytes(65536) < 8 * x.kv_bytes(8192)  # three layers of four keep their chunk only


def test_a_text_model_that_leaves_nearly_everything_to_its_class() -> None:
    """Gemma 3 4B's config.json names four sizes; the others are assumed, and said to be."""
    text = {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    x = sb.Model.from_hf({"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 1152}})
    assert x.total_params == 3_880_263_168
    assert {"num_attention_heads = 8", "head_dim = 256", "vocab_size = 262208"} <= set(x.assumptions)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text_config": {"model_type": "llama"}}, r"differs from it: hidden_size = 4096 outside and None inside"),
        ({"model_type": "lama"}, r"unknown model family \(model_type\) 'lama'; did you mean 'llama'"),
        ({"hidden_size": True}, r"hidden_size must be a whole number from 1 to 1,000,000,000; found True"),
        ({"num_hidden_layers": 20_000}, r"num_hidden_layers must be a whole number from 1 to 10,000; found 20000"),
        ({"num_key_value_heads": 5}, r"32 query heads cannot share 5 key/value heads"),
        ({"num_experts": 8}, r"fields that are not understood and could change a count: num_experts = 8"),
        ({"num_\nexperts": 8}, r"could change a count: 'num_\\nexperts' = 8"),
    ],
)
def test_refusals_name_what_was_found(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError if "share" not in message else sb.ScalebookError, match=message):
        sb.Model.from_hf({**LLAMA, **changes})


def test_fields_that_files_have_and_that_count_nothing() -> None:
    extra = {
        "top_k": 50,
        "_from_model_config": True,
        "bf16": True,
        "rope_theta": 1e4,
        "trust_remote_code": True,
        "quantization": {"bits": 4},
    }
    assert sb.Model.from_hf({**LLAMA, **extra}).total_params == 6_738_415_616


def test_quantisation_described_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), "utf-8")
    plain = sb.Model.from_hf(tmp_path).weight_bytes()
    told = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"]},
    }
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(told), "utf-8")
    assert 0.5 * plain < sb.Model.from_hf(tmp_path).weight_bytes() < 0.55 * plain


def test_what_holds_itself_many_times_is_refused_at_once() -> None:
    nested: list[Any] = [1]
    for _ in range(60):
        nested = [nested, nested]
    with pytest.raises(ModelError, match="hidden_size must be a whole number"):
        sb.Model.from_hf({**LLAMA, "hidden_size": nested})
    slow = {
        "quant_method": "compressed-tensors",
        "config_groups": {"g": {"targets": ["re:^(([a-z._0-9])+)+$#"], "weights": {"num_bits": 4, "type": "int"}}},
    }
    with pytest.raises(ModelError, match="too long or too intricate"):
        sb.Model.from_hf({**LLAMA, "quantization_config": slow}).weight_bytes()
