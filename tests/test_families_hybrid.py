"""Recurrent and hybrid families: published totals, states by hand, weights used more than once, earlier names of fields, refusals."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

import scalebook as sb
from scalebook.errors import ModelError, ScalebookError
from scalebook.transformer import recurrent
from scalebook.transformer.blocks import Block

ZAMBA2_7B = ["mamba"] * 6 + ["hybrid"] + ["mamba"] * 4 + ["hybrid"] + (["mamba"] * 5 + ["hybrid"]) * 11 + ["mamba"] * 3
CODESTRAL = {"model_type": "mamba2", "expand": 2, "head_dim": 64, "hidden_size": 4096, "intermediate_size": 8192, "n_groups": 8,
    "norm_before_gate": True, "num_heads": 128, "num_hidden_layers": 64, "rms_norm": True, "state_size": 128, "vocab_size": 32768,
    "tie_word_embeddings": False, "time_step_init_scheme": "random", "time_step_rank": 256}  # fmt: skip
MINIMAX = {"model_type": "minimax_m1", "vocab_size": 200064, "hidden_size": 6144, "intermediate_size": 9216, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 32, "num_experts_per_tok": 2,
    "attn_type_list": [int(i % 8 == 7) for i in range(80)], "shared_intermediate_size": 0, "rotary_dim": 64, "postnorm": True}  # fmt: skip
KIMI = {"model_type": "kimi_linear", "num_experts": 256, "num_experts_per_token": 8, "num_shared_experts": 1, "head_dim": 72,
    "num_expert_group": 1, "moe_layer_freq": 1, "first_k_dense_replace": 1, "mla_use_nope": True,
    "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "kda_layers": [i for i in range(1, 27) if i % 4],
        "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4}}  # fmt: skip
NEMOTRON = {
    "model_type": "nemotron_h",
    "hidden_size": 96,
    "vocab_size": 211,
    "hybrid_override_pattern": "M-E*ME",
    "n_routed_experts": 6,
}
ZAMBA2 = {"model_type": "zamba2", "hidden_size": 96, "vocab_size": 211, "num_hidden_layers": 5, "num_attention_heads": 4,
    "n_mamba_heads": 8, "adapter_rank": 6, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid", "hybrid"]}  # fmt: skip
QWEN4 = {"model_type": "qwen4_exp_text", "hidden_size": 96, "num_hidden_layers": 4, "vocab_size": 211, "hc_lowrank": 7, "num_experts": 6,
    "num_experts_per_tok": 2, "ngram_vocab_size_base": 1000, "ple_layer_ids": [1, 3], "indexer_n_heads": 4, "indexer_kv_heads": 1,
    "indexer_head_dim": 256, "indexer_budget": 8, "indexer_compress_ratio": 4}  # fmt: skip


def read(config: dict[str, Any], **changes: Any) -> sb.Model:
    return sb.Model.from_hf({**config, **changes})


@pytest.mark.parametrize(
    ("config", "published"),
    [
        (CODESTRAL, 7_285_403_648),  # Codestral Mamba: mistral.ai/news/codestral-mamba
        (MINIMAX, 456_089_655_296),  # MiniMax-M1: elements of its checkpoint
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_published_totals(config: dict[str, Any], published: int) -> None:
    assert read(config).total_params == published


def test_qwen3_next_with_its_module_for_further_tokens_is_its_checkpoint() -> None:
    """81,324,862,720 elements of Qwen/Qwen3-Next-80B-A3B-Instruct: the model and one more layer of attention and experts."""
    x = read({"model_type": "qwen3_next"}, num_nextn_predict_layers=1)
    assert x.total_params == 79_674_391_296
    assert x.total_params + x.mtp_params == 81_324_862_720


def test_qwen3_8_its_module_and_its_vision_tower_are_its_checkpoint() -> None:
    x = sb.model("qwen3.8-27b")
    D, F, N, K, H = 5120, 17408, 24, 4, 256
    layer = 2 * D + 3 * D * N * H + 2 * D * K * H + 2 * H + 3 * D * F
    y = read(
        {"model_type": "qwen3_5_text", "vocab_size": 248320, "hidden_size": D, "intermediate_size": F, "num_attention_heads": N},
        num_hidden_layers=64,
        linear_num_value_heads=48,
        mtp_num_hidden_layers=1,
    )
    assert y.total_params == x.total_params
    assert y.mtp_params == layer + 3 * D + 2 * D * D
    v, f = 1152, 4304  # 27 blocks, patches of 3 · 2 · 16 · 16, 2304 positions, and a merger of 4 patches
    tower = 27 * (4 * v * v + 2 * v * f + 9 * v + f) + 1536 * v + v + 2304 * v + 2 * v + (4 * v + 1) * 4 * v + (4 * v + 1) * D
    assert x.total_params + y.mtp_params + tower == 27_781_427_952  # published: models.toml, hub_elements


def test_the_state_of_a_delta_rule_is_what_a_runtime_reports() -> None:
    """598.5 MiB for 4 sequences in fp32 (github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1862): 48 layers, 48 heads of 128 × 128, and
    3 inputs of 10,240 channels."""
    x = sb.model("qwen3.8-27b")
    assert x.state_bytes(4, "fp32") == 4 * 4 * 48 * (48 * 128 * 128 + 3 * 10_240) == 598.5 * 2**20
    assert x.kv_bytes(262_144) == 16 * 2**30


@pytest.mark.parametrize(
    ("block", "state", "scan", "params"),
    [
        (recurrent.mamba(D=3, inner=5, state=2, rank=1, taps=4), 5 * 2 + 5 * 3, 4 * 5 * 2, 30 + 25 + 25 + 5 + 15 + 20),
        (recurrent.mamba2(D=3, N=4, K=2, H=5, state=2, taps=3), 40 + 28 * 2, 4 * 40, 3 * 52 + 28 * 4 + 60 + 12 + 20),
        (recurrent.gated_delta_net(D=3, K=1, N=2, key=5, value=7, taps=2), 70 + 24, 6 * 70, 3 * 42 + 48 + 42 + 4 + 7),
        (recurrent.kimi_delta(D=3, N=2, H=5, taps=2), 50 + 30, 6 * 50, 150 + 6 + 60 + 30 + 10 + 2 + 5),
        (recurrent.kimi_delta(D=3, N=2, H=5, taps=2, rank=1), 50 + 30, 6 * 50, 90 + 26 + 6 + 60 + 30 + 10 + 2 + 5),
        (recurrent.lightning(D=3, N=2, H=5), 50, 4 * 50, 150 + 10),
        (recurrent.rg_lru(D=3, width=6, blocks=2, taps=4), 6 + 18, 0, 54 + 30 + 36 + 33),
        (recurrent.short_conv(D=3, taps=3), 6, 0, 36 + 9),
        (recurrent.rwkv_time(D=3, inner=5), 6 + 15, 0, 60 + 10 + 9),
        (recurrent.mlstm(D=3, N=2, key=5, value=7), 2 * (35 + 5 + 1), 2 * (4 * 35 + 2 * 5), 3 * 62 + 12 + 14 + 4),
    ],
    ids=lambda value: value.kind if isinstance(value, Block) else "",
)
def test_blocks_by_hand(block: Block, state: int, scan: int, params: int) -> None:
    assert sum(block.state.values()) == state
    assert sum(op.token_flops for op in block.ops if op.kind == "scan") == scan
    assert sum(op.params for op in block.ops) == params


def test_a_recurrence_costs_the_same_at_every_length() -> None:
    x = read(CODESTRAL)
    assert x.flops(batch=1, seq_len=100, kind="decode") == x.flops(batch=1, seq_len=10**6, kind="decode")
    assert x.kv_bytes(10**6) == 0
    assert x.state_bytes(3) == 3 * x.state_bytes()


def test_shared_blocks_are_stored_once_and_used_every_time() -> None:
    """Zamba2's hybrid layers: one stack in turn, or two; each use costs its products and keeps its keys and values."""
    one, two = (read(ZAMBA2, num_mem_blocks=n) for n in (1, 2))
    D, A, F = 96, 192, 384
    assert two.total_params - one.total_params == 3 * A * A + A * D + 3 * D * F + A + D
    assert two.flops(batch=1, seq_len=7) == one.flops(batch=1, seq_len=7)
    assert two.kv_bytes(1, dtype="fp8") == one.kv_bytes(1, dtype="fp8") == 3 * 2 * A
    assert [layer.count for layer in two.layers] == [2, 1, 1, 1]


def test_loops_multiply_products_and_caches_not_parameters() -> None:
    """HRM-Text: 2 high cycles of 3 low passes and a high one: 8 uses of 2 stacks."""
    config = {"model_type": "hrm_text", "hidden_size": 96, "num_attention_heads": 4, "head_dim": 20, "num_hidden_layers": 3}
    once, eight = read(config, H_cycles=1, L_cycles=1), read(config)
    assert eight.total_params == once.total_params
    assert eight.kv_bytes(10) == 4 * once.kv_bytes(10)
    head = once.flops_by_part(batch=1, seq_len=9)["head"]
    assert eight.flops(batch=1, seq_len=9) - head == 4 * (once.flops(batch=1, seq_len=9) - head)
    assert read(config, num_layers_per_stack=3, num_hidden_layers=24).kv_bytes(10) == eight.kv_bytes(10)


def test_tables_of_ngrams_have_a_prime_for_each_head() -> None:
    """Two layers of 16 hashed heads: the first 32 primes from 1000 on, padded to multiples of 128, D ÷ 16 numbers in a row."""

    def primes() -> Any:
        return (n for n in range(1000, 3000) if all(n % d for d in range(2, n)))

    first, second = (sum(islice(primes(), skip, skip + 16)) for skip in (0, 16))
    padded = sum(-(-rows // 128) * 128 for rows in (first, second))
    assert read(QWEN4).params()["layers/ngrams/table"] == padded * 6


def test_sparse_attention_keeps_what_it_does_not_see() -> None:
    x = read(QWEN4)
    assert x.kv_bytes(1000) == 1000 * x.kv_bytes(1)
    assert x.index_bytes(1000, dtype="fp8") == 1000 * 256
    decode = x.flops_by_part(batch=1, seq_len=1000, kind="decode")
    assert decode["layers/attention/scores"] == 2 * 16 * 256 * 8
    assert decode["layers/index/scores"] == 2 * 4 * 256 * 250


def test_a_window_limits_what_minimax_sees_not_what_it_keeps() -> None:
    x, y = read(MINIMAX), read(MINIMAX, sliding_window=8)
    assert x.kv_bytes(100) == y.kv_bytes(100)
    assert x.flops(batch=1, seq_len=100) > y.flops(batch=1, seq_len=100)


def test_modules_whose_shape_is_not_known_are_stated() -> None:
    x = read({"model_type": "bailing_hybrid", "num_hidden_layers": 6}, num_nextn_predict_layers=2)
    assert any("2 modules" in text for text in x.not_counted)
    assert read({"model_type": "nemotron_h"}, num_nextn_predict_layers=1).mtp_params > 0


GRANITE = {"model_type": "granitemoehybrid", "num_hidden_layers": 4}
RECURRENT_GEMMA = {"model_type": "recurrent_gemma", "num_key_value_heads": 1}
SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({**GRANITE, "attention_layers": [1, 3]}, {**GRANITE, "layer_types": ["mamba", "attention"] * 2}),
    ({**GRANITE, "layer_types": ["linear_attention"] * 4}, GRANITE),
    (NEMOTRON, {**NEMOTRON, "hybrid_override_pattern": None, "layer_types": ["mamba", "mlp", "moe", "attention", "mamba", "moe"]}),
    ({**NEMOTRON, "n_groups": 4, "conv_kernel": 3}, {**NEMOTRON, "mamba_n_groups": 4, "mamba_d_conv": 3}),
    (MINIMAX, {**{k: v for k, v in MINIMAX.items() if k not in ("attn_type_list", "rotary_dim", "postnorm")}, "model_type": "minimax",
        "layer_types": ["full_attention" if i % 8 == 7 else "linear_attention" for i in range(80)]}),
    (KIMI, {"model_type": "kimi_linear", "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 6
        + ["linear_attention", "linear_attention", "full_attention"]}),
    ({**RECURRENT_GEMMA, "_block_types": ["attention"], "head_dim": 256}, {**RECURRENT_GEMMA, "block_types": ["attention"]}),
    ({"model_type": "lfm2", "block_ff_dim": 9000, "tie_embedding": False, "conv_dim": 2560, "num_heads": 32, "full_attn_idxs": [2]},
        {"model_type": "lfm2", "intermediate_size": 9000, "tie_word_embeddings": False,
            "layer_types": ["full_attention" if i == 2 else "conv" for i in range(32)]}),
    ({"model_type": "zamba2", "hidden_size": 3584, "expansion_factor": 2, "ffn_hidden_size": 14336, "lora_rank": 128, "mamba_headdim": 64,
        "mamba_ngroups": 2, "state_size": 64, "conv_dimension": 4, "num_mem_blocks": 2, "num_hidden_layers": 81, "kv_channels": 112,
        "use_shared_block_lora": True, "use_shared_attention_lora": False, "layers_block_type": ZAMBA2_7B},
        {"model_type": "zamba2", "hidden_size": 3584, "n_mamba_heads": 112, "mamba_ngroups": 2, "num_mem_blocks": 2,
            "num_hidden_layers": 81, "layers_block_type": ZAMBA2_7B}),
    ({"model_type": "qwen3_5", "text_config": {"hidden_size": 1024, "full_attention_interval": 2}, "vision_config": {"depth": 1}},
        {"model_type": "qwen3_5_text", "hidden_size": 1024, "layer_types": ["linear_attention", "full_attention"] * 16}),
    ({"model_type": "falcon_mamba", "hidden_size": 4096, "expand": 16, "intermediate_size": 8192},
        {"model_type": "falcon_mamba", "hidden_size": 4096, "expand": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("earlier", "today"), SAME, ids=lambda config: config["model_type"])
def test_earlier_names_of_fields(earlier: dict[str, Any], today: dict[str, Any]) -> None:
    x, y = read(earlier), read(today)
    assert (x.params(), x.kv_bytes(9), x.state_bytes()) == (y.params(), y.kv_bytes(9), y.state_bytes())


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({**GRANITE, "attention_layers": [1], "layer_types": ["mamba"] * 4}, "attention_layers and layer_types"),
    ({**GRANITE, "mamba_d_head": 50}, "128 Mamba heads of 50 channels are not the 8192"),
    ({**GRANITE, "normalization_function": "layernorm"}, "normalization_function"),
    ({**NEMOTRON, "hybrid_override_pattern": "MXM"}, "letters M, \\*, -, E; found 'MXM'"),
    ({**NEMOTRON, "num_hidden_layers": 7}, "pattern has 6 layers, but num_hidden_layers = 7"),
    ({"model_type": "nemotron_h", "num_hidden_layers": 52}, "no hybrid_override_pattern"),
    ({**NEMOTRON, "n_shared_experts": 2}, "n_shared_experts = 2"),
    ({**NEMOTRON, "tie_word_embeddings": True}, "two tables"),
    ({"model_type": "jamba", "attn_layer_offset": 8}, "attn_layer_offset = 8 must be smaller"),
    ({**CODESTRAL, "rms_norm": False}, "rms_norm"),
    ({**ZAMBA2, "num_hidden_layers": 12}, "12 layers"),
    ({"model_type": "zamba2", "num_hidden_layers": 12}, "no layers_block_type"),
    ({**ZAMBA2, "tie_word_embeddings": False}, "tie_word_embeddings"),
    ({**MINIMAX, "shared_intermediate_size": 4736}, "shared_intermediate_size"),
    ({**MINIMAX, "attn_type_list": None}, "no attn_type_list"),
    ({"model_type": "lfm2", "conv_dim": 100}, "conv_dim = 100"),
    ({"model_type": "lfm2_moe", "num_hidden_layers": 4}, "layer_types must be a list"),
    ({"model_type": "recurrent_gemma", "lru_width": 2561}, "2561"),
    ({"model_type": "xlstm", "num_heads": 7}, "7 heads cannot share"),
    ({"model_type": "olmo_hybrid", "num_hidden_layers": 1}, "layers of one kind only"),
    ({**KIMI, "linear_attn_config": {"full_attn_layers": [1], "kda_layers": [2]}}, "name each of the layers 1 to 27 once"),
    ({**KIMI, "linear_attn_config": {**KIMI["linear_attn_config"], "use_full_rank_gate": True}}, "use_full_rank_gate"),  # type: ignore[dict-item]
    ({**KIMI, "routed_expert_hidden_size": 3584}, "routed_expert_hidden_size = 3584"),
    ({"model_type": "qwen3_5", "tie_word_embeddings": True}, "text_config"),
    ({"model_type": "qwen3_next", "mtp_use_dedicated_embeddings": True}, "mtp_use_dedicated_embeddings"),
    ({**QWEN4, "indexer_budget": None}, "no indexer_budget"),
    ({**QWEN4, "ple_layer_ids": [4]}, "ple_layer_ids must name layers of kind linear_attention"),
    ({**QWEN4, "heads_per_ngram": 10**6}, "heads"),
    ({"model_type": "zaya", "num_experts_per_tok": 2}, "num_experts_per_tok"),
    ({"model_type": "zaya", "layer_types": ["hybrid_sliding"] * 40}, "no sliding_window"),
    ({"model_type": "hrm_text", "num_layers_per_stack": 3}, "num_hidden_layers must be 24; found 16"),
    ({"model_type": "falcon_h1", "mamba_use_mlp": False}, "mamba_use_mlp"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "message"), REFUSED, ids=lambda value: value["model_type"] if isinstance(value, dict) else "")
def test_what_is_not_understood_is_refused_by_name(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ScalebookError, match=message) as caught:
        read(config)
    assert isinstance(caught.value, ModelError) or "multiple" in str(caught.value)
