"""The decoder blocks of MaxText: each one's fields in the words of Hugging Face's family that has its shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scalebook.errors import ModelError, shown
from scalebook.transformer.configs.fields import Fields

Config = dict[str, Any]


def _common(c: Fields, family: str, *, gated: bool = True, kind: str = "global") -> Config:
    """The sizes that all blocks have, in Hugging Face's words."""
    activations = c.raw("mlp_activations")
    fits = isinstance(activations, list) and all(isinstance(a, str) for a in activations)
    if not fits or (activations[1:] != ["linear"] if gated else len(activations) != 1):
        rule = 'two, the second "linear"' if gated else "one"
        raise ModelError(f"the configuration of family {c.family!r}: mlp_activations must be {rule}; found {shown(activations)}")
    c.must("attention_type", kind, f"{c.family} has no other")
    if c.given("vocab_size"):
        V = c.size("vocab_size")
    else:
        raise ModelError(f"the configuration of family {c.family!r} has no vocab_size; it is needed to count the model")
    return {
        "model_type": family,
        "hidden_size": c.size("base_emb_dim"),
        "intermediate_size": c.size("base_mlp_dim"),
        "num_hidden_layers": c.layers("base_num_decoder_layers"),
        "num_attention_heads": c.size("base_num_query_heads"),
        "num_key_value_heads": c.size("base_num_kv_heads"),
        "head_dim": c.size("head_dim"),
        "vocab_size": V,
        "tie_word_embeddings": c.flag("logits_via_embedding"),
    }


def _only(c: Fields, why: str, **values: Any) -> None:
    for name, value in values.items():
        if c.raw(name) != value:
            raise ModelError(
                f"the configuration of family {c.family!r}: {name} = {shown(c.raw(name))} is not understood ({why}); only {value} is"
            )


def _no_experts(c: Fields, family: str) -> Config:
    _only(c, "it has no experts", num_experts=1, shared_experts=0, routed_bias=False)
    return _common(c, family)


def _plain(c: Fields, family: str) -> Config:
    _only(c, "its attention is plain", attention_sink=False, use_qk_norm=False, use_post_attn_norm=False, use_post_ffw_norm=False)
    return _no_experts(c, family)


def _moe_width(c: Fields) -> int:
    """The width of an expert: base_moe_mlp_dim, or base_mlp_dim where that is −1."""
    return c.size("base_mlp_dim") if c.raw("base_moe_mlp_dim") == -1 else c.size("base_moe_mlp_dim")


def _llama(c: Fields) -> Config:
    return _plain(c, "llama") | {"attention_bias": c.flag("attention_bias"), "mlp_bias": c.flag("mlp_bias")}


def _mistral(c: Fields) -> Config:
    _only(c, "its attention sees everything", sliding_window_size=0, attention_bias=False, mlp_bias=False)
    return _plain(c, "mistral") | {"sliding_window": None}


def _mixtral(c: Fields) -> Config:
    _only(c, "Mixtral's experts are plain", shared_experts=0, routed_bias=False, mlp_bias=False, attention_bias=False)
    experts = {"num_local_experts": c.size("num_experts"), "num_experts_per_tok": c.size("num_experts_per_tok")}
    return _common(c, "mixtral") | experts | {"intermediate_size": _moe_width(c), "sliding_window": None}


def _gemma(c: Fields) -> Config:
    _only(c, "Gemma has no biases", attention_bias=False, mlp_bias=False)
    return _plain(c, "gemma")


def _gemma2(c: Fields) -> Config:
    """One layer of MaxText is two: a local one, then a global one."""
    _only(c, "Gemma 2 has norms after its blocks", use_post_attn_norm=True, use_post_ffw_norm=True, attention_bias=False)
    found = _no_experts(c, "gemma2")
    return found | {"num_hidden_layers": 2 * found["num_hidden_layers"], "sliding_window": c.size("sliding_window_size")}


def _gemma3(c: Fields) -> Config:
    """Five local layers, then a global one."""
    _only(c, "Gemma 3 has norms after its blocks", use_post_attn_norm=True, use_post_ffw_norm=True, attention_bias=False)
    found = _no_experts(c, "gemma3_text")
    kinds = ["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(found["num_hidden_layers"])]
    return found | {"sliding_window": c.size("sliding_window_size"), "layer_types": kinds}


def _qwen2(c: Fields) -> Config:
    _only(c, "Qwen 2 has biases on q, k and v", attention_bias=True, use_qk_norm=False, mlp_bias=False)
    found = _no_experts(c, "qwen2") | {"use_sliding_window": False}
    if found["head_dim"] * found["num_attention_heads"] != found["hidden_size"]:
        raise ModelError(
            f"the configuration of family {c.family!r}: heads × head_dim must be base_emb_dim, {found['hidden_size']}"
        )
    del found["head_dim"]
    return found


def _qwen3(c: Fields) -> Config:
    _only(c, "Qwen 3 has norms on queries and keys", use_qk_norm=True, mlp_bias=False)
    return _no_experts(c, "qwen3") | {"attention_bias": c.flag("attention_bias"), "use_sliding_window": False}


def _qwen3_moe(c: Fields) -> Config:
    _only(c, "Qwen 3 has norms on queries and keys", use_qk_norm=True, shared_experts=0, routed_bias=False, mlp_bias=False)
    experts = {"num_experts": c.size("num_experts"), "num_experts_per_tok": c.size("num_experts_per_tok")}
    found = (
        _common(c, "qwen3_moe") | experts | {"moe_intermediate_size": _moe_width(c), "attention_bias": c.flag("attention_bias")}
    )
    return found | {"decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": False}


def _qwen3_next(c: Fields) -> Config:
    """Every `inhomogeneous_layer_cycle_interval`-th layer has full attention, the others the gated delta rule; one shared expert."""
    _only(c, "Qwen3-Next has no biases", attention_bias=False, routed_bias=False, mlp_bias=False)
    F = _moe_width(c)
    experts = {"num_experts": c.size("num_experts"), "num_experts_per_tok": c.size("num_experts_per_tok")}
    found = _common(c, "qwen3_next") | experts | {"moe_intermediate_size": F, "shared_expert_intermediate_size": F}
    every = c.size("inhomogeneous_layer_cycle_interval")
    L = found["num_hidden_layers"]
    found["layer_types"] = ["linear_attention" if (i + 1) % every else "full_attention" for i in range(L)]
    linear = {
        "linear_conv_kernel_dim": "gdn_conv_kernel_dim",
        "linear_key_head_dim": "gdn_key_head_dim",
        "linear_value_head_dim": "gdn_value_head_dim",
        "linear_num_key_heads": "gdn_num_key_heads",
        "linear_num_value_heads": "gdn_num_value_heads",
    }
    return found | {"mlp_only_layers": [], "decoder_sparse_step": 1} | {ours: c.size(theirs) for ours, theirs in linear.items()}


def _deepseek(c: Fields) -> Config:
    """DeepSeek-V2 without biases of the router, V3 with them, V3.2 with an indexer."""
    _only(c, "DeepSeek has no biases", attention_bias=False, mlp_bias=False)
    indexed = c.flag("use_indexer")
    family = "deepseek_v32" if indexed else "deepseek_v3" if c.flag("routed_bias") else "deepseek_v2"
    if indexed:
        _only(c, "DeepSeek-V3.2 has a bias of the router", routed_bias=True)
    found = _common(c, family, kind="mla")
    del found["head_dim"]
    found |= {"n_routed_experts": c.size("num_experts"), "num_experts_per_tok": c.size("num_experts_per_tok")}
    found |= {"n_shared_experts": c.size("shared_experts", zero=True), "moe_intermediate_size": _moe_width(c)}
    found |= {"first_k_dense_replace": c.size("first_num_dense_layers", zero=True), "attention_bias": False}
    found["q_lora_rank"] = c.size("q_lora_rank", zero=True) or None
    sizes = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    found |= {name: c.size(name) for name in sizes} | {"num_nextn_predict_layers": 0}
    index = {"index_head_dim": "indexer_head_dim", "index_n_heads": "indexer_n_heads", "index_topk": "indexer_topk"}
    return found | ({ours: c.size(theirs) for ours, theirs in index.items()} if indexed else {})


def _gpt_oss(c: Fields) -> Config:
    """A layer with a window, then one without, in turn; biases everywhere, and a sink for each head."""
    _only(c, "gpt-oss has biases and sinks", attention_bias=True, attention_sink=True, routed_bias=True, mlp_bias=True)
    _only(c, "its layers alternate", inhomogeneous_layer_cycle_interval=2, shared_experts=0)
    found = _common(c, "gpt_oss") | {"intermediate_size": _moe_width(c), "attention_bias": True}
    kinds = ["full_attention" if i % 2 else "sliding_attention" for i in range(found["num_hidden_layers"])]
    experts = {"num_local_experts": c.size("num_experts"), "num_experts_per_tok": c.size("num_experts_per_tok")}
    return found | experts | {"sliding_window": c.size("sliding_window_size"), "layer_types": kinds}


def _gpt3(c: Fields) -> Config:
    """GPT-2's shape: a table of positions, an MLP of two matrices, biases."""
    found = _common(c, "gpt2", gated=False)
    _only(c, "GPT-3 has keys and values of every head", base_num_kv_heads=found["num_attention_heads"], num_experts=1)
    if found["head_dim"] * found["num_attention_heads"] != found["hidden_size"]:
        raise ModelError(
            f"the configuration of family {c.family!r}: heads × head_dim must be base_emb_dim, {found['hidden_size']}"
        )
    names = {
        "n_embd": "hidden_size",
        "n_inner": "intermediate_size",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
    }
    kept = {name: found[name] for name in ("model_type", "vocab_size", "tie_word_embeddings")}
    return kept | {ours: found[theirs] for ours, theirs in names.items()} | {"n_positions": c.size("trainable_position_size")}


def _llama4(c: Fields) -> Config:
    """Every `interleave_moe_layer_step`-th layer has experts; every `nope_layer_interval`-th sees everything, the others chunks."""
    _only(
        c,
        "Llama 4 has one shared expert and no biases",
        shared_experts=1,
        attention_bias=False,
        routed_bias=False,
        mlp_bias=False,
    )
    found = _common(c, "llama4_text")
    c.flag("use_qk_norm")  # a norm without parameters
    experts = {"num_local_experts": c.size("num_experts"), "num_experts_per_tok": c.size("num_experts_per_tok")}
    found |= experts | {
        "intermediate_size_mlp": found["intermediate_size"],
        "intermediate_size": _moe_width(c),
        "attention_bias": False,
    }
    every = c.size("nope_layer_interval")
    c.size("inhomogeneous_layer_cycle_interval")  # how layers are put together for a loop
    found["no_rope_layers"] = [int((i + 1) % every != 0) for i in range(found["num_hidden_layers"])]
    return found | {
        "interleave_moe_layer_step": c.size("interleave_moe_layer_step"),
        "attention_chunk_size": c.size("chunk_attn_window_size"),
    }


BLOCKS: Mapping[str, Callable[[Fields], Config]] = {
    "llama2": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "qwen3_next": _qwen3_next,
    "deepseek": _deepseek,
    "gpt_oss": _gpt_oss,
    "gpt3": _gpt3,
    "llama4": _llama4,
}
