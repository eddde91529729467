"""Families that were published with code of their own, under names that transformers does not have: LLaMA's shape or nearly.

Each shape is that of the same family in vLLM (vllm/model_executor/models). Nothing is assumed of a field that is absent, but what those
families' own configuration classes say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scalebook.transformer.blocks import attention, mlp
from scalebook.transformer.configs.families.core import finished, heads, same
from scalebook.transformer.configs.families.shared import head_width, no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import around, norms
from scalebook.transformer.model import Model


def plain(c: Fields, *, qkv: bool = False, o: bool = False, layer_norm: bool = False) -> Model:
    """LLaMA, with biases on queries, keys and values (`qkv`) or on the result (`o`), or with LayerNorms."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    N, K, H = heads(c, D)
    mixer = attention(D=D, N=N, K=K, H=H, q_bias=qkv, k_bias=qkv, v_bias=qkv, o_bias=o)
    return finished(c, same(L, norms(D, D, bias=layer_norm), mixer, mlp(D=D, F=F)), D, norm_bias=layer_norm)


def _alike(c: Fields) -> None:
    """Every head has its own keys and values, D ÷ N wide."""
    N = c.size("num_attention_heads")
    c.must("num_key_value_heads", N, "every head has its own keys and values")
    c.must("head_dim", head_width(c, c.size("hidden_size"), N), "the heads divide the width")


def llama(c: Fields) -> Model:
    """Aquila, XVERSE and the first Yi: LLaMA under another name."""
    c.defaults = {"tie_word_embeddings": False}
    return plain(c)


def internlm(c: Fields) -> Model:
    """InternLM: `bias` is that of all four matrices of attention."""
    _alike(c)
    bias = c.flag("bias")
    c.defaults = {"tie_word_embeddings": False}
    return plain(c, qkv=bias, o=bias)


def internlm2(c: Fields) -> Model:
    """InternLM 2 and 2.5."""
    c.must("bias", False, "no published model has biases")
    c.defaults = {"tie_word_embeddings": False}
    return plain(c)


def baichuan(c: Fields) -> Model:
    """Baichuan 1 and 2: the larger ones have slopes on the scores (ALiBi) for positions, which changes no count."""
    _alike(c)
    c.defaults = {"tie_word_embeddings": False}
    return plain(c)


def minicpm(c: Fields) -> Model:
    """MiniCPM 1 to 4 without experts: factors on embedding, residual and logits, tied unless it says otherwise."""
    c.must("num_experts", 0, "the model with experts is not counted yet")
    c.must("sparse_config", None, "sparse attention is not counted yet")
    no_count(c, "dim_model_base", "scale_emb", "scale_depth")
    c.defaults = {"tie_word_embeddings": True}
    return plain(c)


def orion(c: Fields) -> Model:
    """Orion: LayerNorms with biases."""
    c.must("attention_bias", False, "no published model has biases")
    c.defaults = {"tie_word_embeddings": False}
    return plain(c, layer_norm=True)


def qwen(c: Fields) -> Model:
    """The first Qwen: `intermediate_size` is that of gate and up together; biases on queries, keys and values."""
    _alike(c)
    L, D, N = c.layers(), c.size("hidden_size"), c.size("num_attention_heads")
    c.must("kv_channels", head_width(c, D, N), "the heads divide the width")
    c.must("no_bias", True, "no published model has other biases")
    F = c.size("intermediate_size") // 2
    c.must("intermediate_size", 2 * F, "it is twice the width of the MLP")
    no_count(c, "fp16", "bf16", "fp32", "onnx_safe", "softmax_in_fp32", "use_cache_quantization", "use_cache_kernel")
    c.defaults = {"tie_word_embeddings": False}
    mixer = attention(D=D, N=N, K=N, H=D // N, q_bias=True, k_bias=True, v_bias=True)
    return finished(c, same(L, norms(D, D), mixer, mlp(D=D, F=F)), D)


def chatglm(c: Fields) -> Model:
    """ChatGLM 2 and 3 and the first GLM-4: groups of heads where `multi_query_attention` says so, norms without biases unless `rmsnorm` is false."""
    c.defaults = {
        "add_bias_linear": False,
        "add_qkv_bias": False,
        "multi_query_attention": False,
        "post_layer_norm": True,
        "rmsnorm": True,
        "tie_word_embeddings": False,
    }
    L, D, F = c.layers("num_layers", "num_hidden_layers"), c.size("hidden_size"), c.size("ffn_hidden_size")
    V, N = c.size("padded_vocab_size", "vocab_size"), c.size("num_attention_heads")
    H, tied = head_width(c, D, N), c.flag("tie_word_embeddings")
    c.must("kv_channels", H, "the heads divide the width")
    c.must("pre_seq_len", None, "a prefix that is learned is not counted")
    c.must("quantization_bit", 0, "its first quantised checkpoints are not counted")
    K = c.size("multi_query_group_num") if c.flag("multi_query_attention") else N
    everywhere, layer_norm = c.flag("add_bias_linear"), not c.flag("rmsnorm")
    qkv = c.flag("add_qkv_bias") or everywhere
    no_count(
        c, "multi_query_group_num", "apply_query_key_layer_scaling", "apply_residual_connection_post_layernorm", "interleaved_qkv"
    )
    no_count(
        c, "attention_softmax_in_fp32", "fp32_residual_connection", "bias_dropout_fusion", "original_rope", "prefix_projection"
    )
    mixer = attention(D=D, N=N, K=K, H=H, q_bias=qkv, k_bias=qkv, v_bias=qkv, o_bias=everywhere)
    fed = mlp(D=D, F=F, up_bias=everywhere, down_bias=everywhere)
    layers = same(L, norms(D, D, bias=layer_norm), mixer, fed)
    outer = around(D=D, V=V, tied=tied, norm=c.flag("post_layer_norm"), norm_bias=layer_norm)
    return Model("", c.family, D, V, layers, outer, tied, context=c.context("seq_length"))


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "Yi": llama,
    "aquila": llama,
    "baichuan": baichuan,
    "chatglm": chatglm,
    "internlm": internlm,
    "internlm2": internlm2,
    "minicpm": minicpm,
    "orion": orion,
    "qwen": qwen,
    "xverse": llama,
}
