"""MaxText's own configurations, trimmed to the fields that matter, count like those of Hugging Face; what is not known is refused by name.

From AI-Hypercomputer/maxtext src/maxtext/configs/models/*.yml, read 2026-12-01 at the commits named.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import scalebook as sb
from scalebook.errors import ModelError
from scalebook.transformer.configs.maxtext_blocks import BLOCKS
from scalebook.transformer.model import Model

FILES = {
    "llama-3.1-405b": """  # llama3.1-405b.yml @3e7d8b8
        base_emb_dim: 16384
        base_num_query_heads: 128
        base_num_kv_heads: 8
        base_num_decoder_layers: 126
        base_mlp_dim: 53248
        head_dim: 128
        mlp_activations: ["silu","linear"]
        vocab_size: 128256
        enable_dropout: false
        logits_via_embedding: false
        normalization_layer_epsilon: 1.0e-5
        rope_max_timescale: 500_000
        decoder_block: "llama2"
        """,
    "mistral-7b-v0.3": """  # mistral-7b.yml @3e7d8b8, with the vocabulary of v0.3
        base_emb_dim: 4096
        base_num_query_heads: 32
        base_num_kv_heads: 8
        base_mlp_dim: 14336
        base_num_decoder_layers: 32
        head_dim: 128
        vocab_size: 32768
        rope_max_timescale: 1_000_000
        decoder_block: "mistral"
        """,
    "mixtral-8x7b-v0.1": """  # mixtral-8x7b.yml @807d011
        base_emb_dim: 4096
        base_num_query_heads: 32
        base_num_kv_heads: 8
        base_mlp_dim: 14336
        base_moe_mlp_dim: 14336
        base_num_decoder_layers: 32
        head_dim: 128
        vocab_size: 32000
        num_experts: 8
        num_experts_per_tok: 2
        decoder_block: "mixtral"
        """,
    "gemma-2b": """  # gemma-2b.yml @5505348; the published vocabulary has 256000 entries, MaxText's 256128
        base_emb_dim: 2048
        base_num_query_heads: 8
        base_num_kv_heads: 1
        base_mlp_dim: 16384
        base_num_decoder_layers: 18
        head_dim: 256
        mlp_activations: ["gelu","linear"]
        vocab_size: 256000
        decoder_block: "gemma"
        logits_via_embedding: true
        """,
    "gemma-2-27b": """  # gemma2-27b.yml @7985c14, the vocabulary as published
        base_emb_dim: 4608
        base_num_query_heads: 32
        base_num_kv_heads: 16
        base_mlp_dim: 36864
        base_num_decoder_layers: 23
        head_dim: 128
        mlp_activations: ["gelu","linear"]
        vocab_size: 256000
        decoder_block: "gemma2"
        logits_via_embedding: True
        final_logits_soft_cap: 30.0
        attn_logits_soft_cap: 50.0
        sliding_window_size: 4096
        use_post_attn_norm: True
        use_post_ffw_norm: True
        """,
    "gemma-3-4b": """  # gemma3-4b.yml @37e719e, the vocabulary as published
        base_num_decoder_layers: 34
        base_emb_dim: 2560
        base_num_query_heads: 8
        base_num_kv_heads: 4
        base_mlp_dim: 10240
        head_dim: 256
        mlp_activations: ["gelu","linear"]
        vocab_size: 262_208
        decoder_block: "gemma3"
        normalization_layer_epsilon: 1e-6
        logits_via_embedding: true
        sliding_window_size: 1024
        use_post_attn_norm: true
        use_post_ffw_norm: true
        rope_linear_scaling_factor: 8.0
        vision_encoder_block: "gemma3"
        hidden_size_for_vit: 1152
        image_placeholder: <start_of_image>
        """,
    "qwen2.5-7b": """  # qwen2.5-7b.yml @75264ef
        base_emb_dim: 3584
        base_num_query_heads: 28
        base_num_kv_heads: 4
        base_mlp_dim: 18944
        base_num_decoder_layers: 28
        head_dim: 128
        vocab_size: 152064
        decoder_block: "qwen2"
        use_qk_norm: false
        attention_bias: true
        logits_via_embedding: false
        normalize_embedding_logits: false
        tokenizer_type: "huggingface"
        """,
    "qwen3-0.6b": """  # qwen3-0.6b.yml @5505348
        base_emb_dim: 1024
        base_num_query_heads: 16
        base_num_kv_heads: 8
        base_mlp_dim: 3072
        base_num_decoder_layers: 28
        head_dim: 128
        vocab_size: 151936
        decoder_block: "qwen3"
        use_qk_norm: true
        logits_via_embedding: true
        """,
    "qwen3-235b-a22b": """  # qwen3-235b-a22b.yml @5505348
        decoder_block: "qwen3_moe"
        base_emb_dim: 4096
        base_mlp_dim: 1536
        base_num_query_heads: 64
        base_num_kv_heads: 4
        base_num_decoder_layers: 94
        head_dim: 128
        vocab_size: 151936
        use_qk_norm: true
        num_experts: 128
        num_experts_per_tok: 8
        base_moe_mlp_dim: 1536
        load_balance_loss_weight: 0.001
        norm_topk_prob: true
        """,
    "deepseek-v2-lite": """  # deepseek2-16b.yml @6aa8b84
        base_emb_dim: 2048
        base_num_query_heads: 16
        base_num_kv_heads: 16
        base_mlp_dim: 10944
        base_moe_mlp_dim: 1408
        base_num_decoder_layers: 27
        first_num_dense_layers: 1
        vocab_size: 102400
        num_experts: 64
        num_experts_per_tok: 6
        shared_experts: 2
        routed_scaling_factor: 1.0
        routed_score_func: "softmax"
        routed_bias: false
        decoder_block: "deepseek"
        attention_type: "mla"
        q_lora_rank: 0
        kv_lora_rank: 512
        qk_nope_head_dim: 128
        qk_rope_head_dim: 64
        v_head_dim: 128
        max_position_embeddings: 163840
        mscale: 0.707
        """,
    "deepseek-v3": """  # deepseek3-671b.yml @5505348; ranks and widths of heads as base.yml has them
        base_emb_dim: 7168
        base_num_query_heads: 128
        base_num_kv_heads: 128
        base_mlp_dim: 18432
        base_moe_mlp_dim: 2048
        base_num_decoder_layers: 61
        first_num_dense_layers: 3
        vocab_size: 129280
        num_experts: 256
        num_experts_per_tok: 8
        shared_experts: 1
        routed_bias: true
        decoder_block: "deepseek"
        attention_type: "mla"
        q_lora_rank: 1536
        """,
    "gpt-oss-120b": """  # gpt-oss-120b.yml @153e5fe
        base_emb_dim: 2880
        base_num_query_heads: 64
        base_num_kv_heads: 8
        head_dim: 64
        sliding_window_size: 128
        attention_bias: true
        attention_sink: true
        base_mlp_dim: 2880
        base_moe_mlp_dim: 2880
        mlp_activations: ["sigmoid","linear"]
        mlp_activations_limit: 7.0
        routed_bias: true
        mlp_bias: true
        num_experts: 128
        num_experts_per_tok: 4
        base_num_decoder_layers: 36
        vocab_size: 201088
        decoder_block: "gpt_oss"
        inhomogeneous_layer_cycle_interval: 2
        """,
    "llama-4-scout-17b-16e": """  # llama4-17b-16e.yml @5505348
        decoder_block: "llama4"
        base_emb_dim: 5120
        base_num_decoder_layers: 48
        base_num_query_heads: 40
        base_num_kv_heads: 8
        base_mlp_dim: 8192
        base_moe_mlp_dim: 8192
        vocab_size: 202048
        num_experts: 16
        shared_experts: 1
        num_experts_per_tok: 1
        use_qk_norm: true
        nope_layer_interval: 4
        interleave_moe_layer_step: 1
        inhomogeneous_layer_cycle_interval: 4
        temperature_tuning: true
        chunk_attn_window_size: 8192
        """,
}


def written(folder: Path, text: str) -> Path:
    file = folder / "model.yml"
    file.write_text("\n".join(line.strip() for line in text.splitlines()), "utf-8")
    return file


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_maxtext_is_the_published_model(name: str, tmp_path: Path) -> None:
    x, known = Model.from_maxtext(written(tmp_path, FILES[name])), sb.model(name)
    assert x.total_params == known.total_params
    assert x.params() == known.params()
    assert [x.kv_bytes(n, tp=2) for n in (1, 100_000)] == [known.kv_bytes(n, tp=2) for n in (1, 100_000)]
    for kind in ("train", "decode"):
        assert x.flops(batch=2, seq_len=9000, kind=kind) == known.flops(batch=2, seq_len=9000, kind=kind)
    assert x.name == "model"


GPT3 = {
    "base_emb_dim": 12288, "base_num_query_heads": 96, "base_num_kv_heads": 96, "base_mlp_dim": 49152, "base_num_decoder_layers": 96,
    "head_dim": 128, "trainable_position_size": 16384, "mlp_activations": ["gelu"], "vocab_size": 50304, "logits_via_embedding": True,
    "fused_qkv": True, "opt_type": "adam_pax", "decoder_block": "gpt3", "target_eval_loss": 2.69, "eval_per_device_batch_size": 1.0,
}  # fmt: skip
LLAMA = {
    "decoder_block": "llama2", "base_emb_dim": 64, "base_num_query_heads": 4, "base_num_kv_heads": 2, "base_mlp_dim": 96,
    "base_num_decoder_layers": 2, "head_dim": 16, "vocab_size": 100,
}  # fmt: skip


def test_gpt3_by_hand() -> None:
    """gpt3-175b.yml @8fe4688: matrices, biases and LayerNorms of 96 layers, two tables, a last norm."""
    D, F, L = 12288, 49152, 96
    layer = 4 * D * D + 4 * D + 2 * D * F + F + D + 4 * D
    assert Model.from_maxtext(GPT3).total_params == L * layer + (50304 + 16384) * D + 2 * D


def test_qwen3_next_alternates() -> None:
    """qwen3-next-80b-a3b.yml @23be6e4: 79,674,391,296 parameters are those of the published model without its further-token head."""
    sizes = {
        "base_emb_dim": 2048,
        "base_num_decoder_layers": 48,
        "base_num_query_heads": 16,
        "base_num_kv_heads": 2,
        "head_dim": 256,
    }
    experts = {
        "base_mlp_dim": 512,
        "base_moe_mlp_dim": 512,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "norm_topk_prob": True,
    }
    rest = {"decoder_block": "qwen3_next", "vocab_size": 151936, "inhomogeneous_layer_cycle_interval": 4, "gdn_chunk_size": 64}
    x = Model.from_maxtext({**sizes, **experts, **rest})
    assert x.total_params == 79_674_391_296
    assert x.kv_bytes(1) == 12 * 2 * 2 * 256 * 2


def test_defaults_are_those_of_maxtext_and_told() -> None:
    x = Model.from_maxtext({"vocab_size": 32000})
    assert x.dims == (16, 2048, 7168, 16, 16, 128, 32000)
    assert "base_emb_dim = 2048" in x.assumptions and "head_dim = 128" in x.assumptions


def test_how_a_run_is_made_changes_nothing() -> None:
    run = {
        "per_device_batch_size": 4, "ici_fsdp_parallelism": 16, "remat_policy": "full", "max_target_length": 8192, "steps": 100,
        "sa_block_q": 512, "attention": "flash", "dataset_path": "gs://x", "checkpoint_period": 100, "use_iota_embed": True,
        "hidden_size_for_vit": 1408, "learning_rate": 1e-4, "weight_dtype": "bfloat16", "scan_layers": False, "megablox": True,
    }  # fmt: skip
    x = Model.from_maxtext(LLAMA | run)
    assert x.params() == Model.from_maxtext(LLAMA).params() and set(x.ignored) == set(run)


def test_biases_of_llama() -> None:
    more = (
        Model.from_maxtext(LLAMA | {"attention_bias": True, "mlp_bias": True}).total_params
        - Model.from_maxtext(LLAMA).total_params
    )
    assert more == 2 * (64 + 2 * 32 + 64 + 2 * 96 + 64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoder_block": "gemma9"}, r"unknown decoder_block of MaxText 'gemma9'; did you mean 'gemma.*Known: llama2"),
        ({"decoder_block": ["llama2"]}, r"unknown decoder_block of MaxText \['llama2'\]"),
        ({"global_parameter_scale": 2}, r"global_parameter_scale = 2 is not understood"),
        ({"mtp_num_layers": 1}, r"mtp_num_layers = 1 is not understood"),
        ({"num_kv_shared_layers": 4}, r"num_kv_shared_layers = 4 is not understood"),
        ({"num_experts": 8}, r"num_experts = 8 is not understood \(it has no experts\)"),
        ({"attention_type": "mla"}, r"attention_type = 'mla' is not understood"),
        ({"use_qk_norm": True}, r"use_qk_norm = True is not understood"),
        ({"mlp_activations": ["gelu"]}, r"mlp_activations must be two, the second \"linear\"; found \['gelu'\]"),
        ({"base_num_kv_heads": 3}, r"4 query heads cannot share 3 key/value heads"),
        ({"base_mlp_dim": 0}, r"base_mlp_dim must be a whole number from 1"),
        ({"vocab_size": None}, r"has no vocab_size"),
        ({"num_extra_layers": 3}, r"not understood and could change a count: num_extra_layers = 3"),
    ],
)
def test_what_is_not_understood_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Model.from_maxtext(LLAMA | change)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", r"holds \['a', 'b'\]; a MaxText configuration is a mapping"),
        ("a: [1", r"a MaxText configuration cannot be read from .*model.yml"),
        ("a: !!python/object/apply:os.getcwd []", r"cannot be read .*could not determine a constructor"),
    ],
)
def test_files_that_cannot_be_read(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        Model.from_maxtext(written(tmp_path, text))


def test_every_block_is_tried_here() -> None:
    mine = Path(__file__).read_text("utf-8")
    assert [b for b in BLOCKS if f'decoder_block: "{b}"' not in mine and f'"decoder_block": "{b}"' not in mine] == []
