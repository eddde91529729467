"""From a MaxText configuration to a Model, by the words of Hugging Face and the same counting.

What is not given has the default of MaxText's base.yml (AI-Hypercomputer/maxtext src/maxtext/configs/base.yml @000b810).

MaxText's own count of DeepSeek models was higher in versions whose latent attention still made the key and value projections of ordinary
attention, which it does not use: by 2·D·N·H in each layer, with H = head_dim = 128.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalebook.errors import ModelError, missing_extra, shown, unknown
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.configs.maxtext_blocks import BLOCKS
from scalebook.transformer.configs.reader import read_hf, read_json
from scalebook.transformer.model import Model

Config = dict[str, Any]

DEFAULTS: Mapping[str, Any] = {
    "base_emb_dim": 2048,
    "base_num_query_heads": 16,
    "base_num_kv_heads": 16,
    "base_mlp_dim": 7168,
    "base_num_decoder_layers": 16,
    "head_dim": 128,
    "mlp_activations": ["silu", "linear"],
    "logits_via_embedding": False,
    "num_experts": 1,
    "num_experts_per_tok": 1,
    "base_moe_mlp_dim": -1,
    "shared_experts": 0,
    "first_num_dense_layers": 0,
    "routed_bias": False,
    "mlp_bias": False,
    "attention_bias": False,
    "attention_sink": False,
    "attention_type": "global",
    "use_qk_norm": False,
    "use_post_attn_norm": False,
    "use_post_ffw_norm": False,
    "sliding_window_size": 0,
    "chunk_attn_window_size": 0,
    "inhomogeneous_layer_cycle_interval": 1,
    "interleave_moe_layer_step": 1,
    "nope_layer_interval": -1,
    "q_lora_rank": 0,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "indexer_head_dim": 128,
    "indexer_n_heads": 64,
    "indexer_topk": 2048,
    "gdn_conv_kernel_dim": 4,
    "gdn_key_head_dim": 128,
    "gdn_value_head_dim": 128,
    "gdn_num_key_heads": 16,
    "gdn_num_value_heads": 32,
    "trainable_position_size": -1,
    "use_indexer": False,
}
_WORDS = {"qwen2": ("attention_bias is on q, k and v, not on the result",)}
# what changes counts and is not counted here: only its neutral value is read
_NEUTRAL: Mapping[str, Any] = {
    "global_parameter_scale": 1,
    "attention_output_dim": -1,
    "global_head_dim": 0,
    "global_num_kv_heads": 0,
    "share_kv_projections": False,
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
    "moe_expert_input_dim": -1,
    "mtp_num_layers": 0,
    "first_num_hash_layers": 0,
    "moba": False,
    "o_lora_rank": 0,
    "o_groups": 0,
    "compress_ratios": [],
    "mhc_expansion_rate": 1,
    "engram_layers": [],
}
# how a run is made: machines, data, steps, kernels, encoders for pictures and sound
_RUN = re.compile(
    r"^(ici|dcn|sa|local_sa|local_sa|wi_tile|wo_tile|adam|muon|opt|eval|checkpoint|tokenizer|hf|grain|tfds|dataset|train|profiler|xprof|decode|"
    r"inference|compile|gcs|goodput|enable|ragged|engram_(max|num|head|vocab|kernel|seed)|learning|warmup|remat|quant|save|load|log|scan|"
    r"num_pipeline|pipeline|moe_fsdp|monitor|vertex|wandb)_|_for_(vit|audio)$|_soft_cap$|_parallelism$|^(per_device_batch_size|eval_per_device_batch_size|"
    r"gradient_accumulation_steps|max_target_length|steps|num_epoch|num_slices|gdn_chunk_size|moba_chunk_size|max_prefill_predict_length|vision_\w+|"
    r"image_\w+|n_routing_groups|topk_routing_group|num_layers_per_pipeline_stage|scan_layers|use_\w*(gmm|splash|sort|kernel|attention|mrope|"
    r"multimodal|audio|iota_embed|sharding|experts|schedule)|fused_\w+|normalize_\w+|megablox|sparse_matmul|capacity_factor|norm_topk_prob|"
    r"attention|causal_block_size|mesh_axes|data_sharding|hardware|shard_mode|param_scan_axis|logical_axis_rules|batch_split_factor|"
    r"mla_qk_head_chunk_size|prefill_chunk_size|jax_cache_dir|custom_mesh\w*|routed_score_func|num_moe_\w+|mscale|rope_\w+|beta_\w+|temperature_tuning|cast_\w+|float32_\w+|steps|run_name|model_name|base_output_directory)$"
)


def read_maxtext(source: Mapping[str, Any] | str | os.PathLike[str]) -> Model:
    """The model that a MaxText configuration describes; ModelError with the reason where that cannot be said with certainty."""
    given = source if isinstance(source, Mapping) else _load(source)
    block = given.get("decoder_block", "llama2")
    if not isinstance(block, str) or block not in BLOCKS:
        raise unknown("decoder_block of MaxText", block, BLOCKS, ModelError)
    run = [k for k in given if isinstance(k, str) and _RUN.search(k) and k not in DEFAULTS]
    c = Fields({k: v for k, v in given.items() if k not in run}, f"MaxText {block}")
    c.defaults = DEFAULTS
    c.read.update(("decoder_block", "model_name", "use_multimodal", "max_position_embeddings"))
    for name, value in _NEUTRAL.items():
        c.must(name, value, "it changes counts")
    config = BLOCKS[block](c)
    ignored = tuple(sorted((*c.rest(), *run)))
    if "max_position_embeddings" in given:
        config["max_position_embeddings"] = given["max_position_embeddings"]
    label = given.get("model_name", "this configuration") if isinstance(source, Mapping) else Path(source).stem
    words = _WORDS.get(block, ())
    found = read_hf(config)
    return replace(found, name=str(label), assumptions=(*words, *c.assumed), ignored=ignored)


def _load(source: str | os.PathLike[str]) -> Config:
    if not isinstance(source, str | os.PathLike):
        raise ModelError(f"a MaxText configuration is a dict or a yml file; found {shown(source)}")
    try:
        import yaml
    except ImportError:
        raise missing_extra("pyyaml", "yaml", "reading a MaxText configuration") from None

    def parse(text: str) -> Any:
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as e:
            raise ValueError(str(e)) from None

    return read_json(Path(source), "config.yml", "a MaxText configuration", parse, most=200_000)  # the parser is slow
