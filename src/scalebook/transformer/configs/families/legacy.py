"""The GPT-2 generation: LayerNorms with biases, an MLP of two matrices, learned positions or none, keys and values of every head.

Their tables of positions are counted as "positions". Where the widest context is a matter of a mask only, it changes no count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, Cache, attention, mlp
from scalebook.transformer.configs.families.shared import head_width, no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import Layer, around, norms, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import FULL, Op, Span, matmul, table, vector

_DECODER = "a decoder alone is counted"


def _heads(c: Fields, D: int, N: int, *, K: int | None = None, qkv: bool, o: bool, span: Span = FULL) -> Block:
    """Attention whose N heads divide the width, with biases on queries, keys and values and on the result, or without."""
    K, H = N if K is None else K, head_width(c, D, N)
    return attention(D=D, N=N, K=K, H=H, q_bias=qkv, k_bias=qkv, v_bias=qkv, o_bias=o, span=span)


def _mlp(D: int, F: int, *, bias: bool = True) -> Block:
    return mlp(D=D, F=F, gated=False, up_bias=bias, down_bias=bias)


def _same(L: int, *blocks: Block) -> tuple[Layer, ...]:
    return (Layer("layer", blocks, L, tuple(range(L))),)


def _model(
    c: Fields,
    layers: tuple[Layer, ...],
    *,
    D: int,
    context: int | None,
    norm: bool = True,
    norm_bias: bool = True,
    head_bias: bool = False,
    extra: tuple[Op, ...] = (),
) -> Model:
    """The layers, and around them embedding, last norm and head of width D."""
    V, tied = c.size("vocab_size"), c.flag("tie_word_embeddings")
    outer = around(D=D, V=V, tied=tied, norm=norm, norm_bias=norm_bias, head_bias=head_bias, extra=extra)
    return Model("", c.family, D, V, layers, outer, tied, context=context)


def _context(c: Fields) -> int | None:
    return c.context("max_position_embeddings")


def gpt2(c: Fields) -> Model:
    """GPT-2, and GPT-BigCode (StarCoder), whose `multi_query` leaves one key and value head."""
    L, D, N, T = c.layers("n_layer"), c.size("n_embd"), c.size("n_head"), c.size("n_positions")
    F = c.size("n_inner", default=4 * D)
    c.must("add_cross_attention", False, _DECODER)
    K = 1 if c.family == "gpt_bigcode" and c.flag("multi_query") else N
    no_count(c, "n_ctx", "inference_runner", "validate_runner_input", "pre_allocate_kv_cache")
    layers = _same(L, norms(D, D, bias=True), _heads(c, D, N, K=K, qkv=True, o=True), _mlp(D, F))
    return _model(c, layers, D=D, context=T, extra=(table("positions", T * D),))


def openai_gpt(c: Fields) -> Model:
    """The first GPT: norms after the blocks, so none at the end. Its own code keeps no keys and values; here they are counted."""
    L, D, N, T = c.layers("n_layer"), c.size("n_embd"), c.size("n_head"), c.size("n_positions")
    no_count(c, "n_ctx")
    layers = _same(L, norms(D, D, bias=True), _heads(c, D, N, qkv=True, o=True), _mlp(D, 4 * D))
    return _model(c, layers, D=D, norm=False, context=T, extra=(table("positions", T * D),))


def ctrl(c: Fields) -> Model:
    """CTRL: sinusoidal positions, a head with a bias."""
    L, D, N, F = c.layers("n_layer"), c.size("n_embd"), c.size("n_head"), c.size("dff")
    no_count(c, "n_ctx")
    layers = _same(L, norms(D, D, bias=True), _heads(c, D, N, qkv=True, o=True), _mlp(D, F))
    return _model(c, layers, D=D, head_bias=True, context=c.context("n_positions"))


def gptj(c: Fields) -> Model:
    """GPT-J and CodeGen: attention and MLP side by side after one norm, no biases in attention, a head with a bias."""
    L, D, N = c.layers("n_layer"), c.size("n_embd"), c.size("n_head")
    F = c.size("n_inner", default=4 * D)
    no_count(c, "n_ctx")
    layers = _same(L, norms(D, bias=True), _heads(c, D, N, qkv=False, o=False), _mlp(D, F))
    return _model(c, layers, D=D, head_bias=True, context=c.context("n_positions"))


def gpt_neo(c: Fields) -> Model:
    """GPT-Neo: global layers, and local ones whose queries see a window. Its own code keeps all keys and values for both."""
    L, D, N = c.layers("num_layers"), c.size("hidden_size"), c.size("num_heads")
    F, T = c.size("intermediate_size", default=4 * D), c.size("max_position_embeddings")
    H = head_width(c, D, N)
    kinds = {}
    for kind, span in {"global": FULL, "local": Span("window", c.size("window_size"))}.items():
        heads = replace(_heads(c, D, N, qkv=False, o=True, span=span), cache=(Cache(N, H, H),))
        kinds[kind] = Layer(kind, (norms(D, D, bias=True), heads, _mlp(D, F)))
    layers = stacked((kind, kinds[kind]) for kind in _attention_types(c, L))
    return _model(c, layers, D=D, context=T, extra=(table("positions", T * D),))


def _attention_types(c: Fields, L: int) -> list[str]:
    """The kinds of GPT-Neo's layers, given as [[["global", "local"], 12]]: the kinds in turn, and how often."""
    given = c.raw("attention_types", default=None)
    items = [_pattern(item) for item in given] if isinstance(given, list | tuple) else [(("global", "local"), 12)]
    read = (given is None or isinstance(given, list | tuple)) and all(times >= 0 for _, times in items)
    if not read or sum(len(kinds) * times for kinds, times in items) != L:
        raise ModelError(
            f"the configuration of family {c.family!r}: attention_types must name the kinds of {L} layers, as "
            f'[[["global", "local"], {L // 2}]] does of {L // 2 * 2}; found {shown(given)}'
        )
    found = [kind for kinds, times in items for kind in kinds * times]
    if c.kinds("attention_layers", L, ("global", "local"), otherwise=found.__getitem__) != found:
        raise ModelError(f"the configuration of family {c.family!r}: attention_layers are not what attention_types says")
    return found


def _pattern(item: Any) -> tuple[tuple[str, ...], int]:
    """Kinds and how often, which is −1 for what cannot be read as such."""
    if not isinstance(item, list | tuple) or len(item) != 2 or not isinstance(item[0], list | tuple):
        return (), -1
    kinds, times = item
    named = all(isinstance(kind, str) and kind in ("global", "local") for kind in kinds)
    return (tuple(kinds), times) if named and type(times) is int else ((), -1)


def gpt_neox(c: Fields) -> Model:
    """GPT-NeoX and Pythia."""
    L, D, N, F = c.layers(), c.size("hidden_size"), c.size("num_attention_heads"), c.size("intermediate_size")
    bias = c.flag("attention_bias")
    layers = _same(L, norms(D, D, bias=True), _heads(c, D, N, qkv=bias, o=bias), _mlp(D, F))
    return _model(c, layers, D=D, context=_context(c))


def gpt_neox_japanese(c: Fields) -> Model:
    """GPT-NeoX-Japanese: no biases, but one on the attention of the last layer."""
    L, D, N = c.layers(), c.size("hidden_size"), c.size("num_attention_heads")
    F = D * c.size("intermediate_multiple_size")
    first, last = (
        Layer(kind, (norms(D, D, bias=True), _heads(c, D, N, qkv=False, o=kind == "last"), _mlp(D, F, bias=False)))
        for kind in ("layer", "last")
    )
    layers = stacked((x.kind, x) for x in [first] * (L - 1) + [last])
    return _model(c, layers, D=D, context=_context(c))


def persimmon(c: Fields) -> Model:
    """Persimmon: biases, and LayerNorms on the queries and keys of a head."""
    L, D, N, F = c.layers(), c.size("hidden_size"), c.size("num_attention_heads"), c.size("intermediate_size")
    H = head_width(c, D, N)
    scales = 2 * H if c.flag("qk_layernorm") else 0
    heads = attention(D=D, N=N, K=N, H=H, q_bias=True, k_bias=True, v_bias=True, o_bias=True, q_norm=scales, k_norm=scales)
    return _model(c, _same(L, norms(D, D, bias=True), heads, _mlp(D, F)), D=D, context=_context(c))


def opt(c: Fields) -> Model:
    """OPT: two more positions than the context; embeddings may be narrower than the model, with a projection in and out."""
    L, D, N, F = c.layers(), c.size("hidden_size"), c.size("num_attention_heads"), c.size("ffn_dim")
    P, T = c.size("word_embed_proj_dim", default=D), c.size("max_position_embeddings")
    bias, affine = c.flag("enable_bias"), c.flag("layer_norm_elementwise_affine")
    last_norm = c.flag("do_layer_norm_before") and not c.flag("_remove_final_layer_norm", default=False)
    scales = norms(D, D, bias=True) if affine else norms()
    layers = _same(L, scales, _heads(c, D, N, qkv=bias, o=bias), _mlp(D, F, bias=bias))
    extra = [table("positions", (T + 2) * D)]
    if P != D:
        extra.append(matmul("project_in", "In[B, T, P] * W[P, D] -> Out[B, T, D]", P=P, D=D))
    if last_norm and affine:
        extra.append(vector("final_norm", 2 * D))
    if P != D:
        extra.append(matmul("project_out", "In[B, T, D] * W[D, P] -> Out[B, T, P]", D=D, P=P))
    return replace(_model(c, layers, D=P, norm=False, context=T, extra=tuple(extra)), D=D)


def biogpt(c: Fields) -> Model:
    """BioGPT: two more positions than the context."""
    L, D, N, F = c.layers(), c.size("hidden_size"), c.size("num_attention_heads"), c.size("intermediate_size")
    T = c.size("max_position_embeddings")
    layers = _same(L, norms(D, D, bias=True), _heads(c, D, N, qkv=True, o=True), _mlp(D, F))
    return _model(c, layers, D=D, context=T, extra=(table("positions", (T + 2) * D),))


def xglm(c: Fields) -> Model:
    """XGLM: sinusoidal positions."""
    L, D, N, F = c.layers("num_layers"), c.size("d_model"), c.size("attention_heads"), c.size("ffn_dim")
    c.must("add_cross_attention", False, _DECODER)
    layers = _same(L, norms(D, D, bias=True), _heads(c, D, N, qkv=True, o=True), _mlp(D, F))
    return _model(c, layers, D=D, context=_context(c))


def bloom(c: Fields) -> Model:
    """BLOOM: positions by a slope on the scores (ALiBi), and a norm after the embedding."""
    L, D, N = c.layers("n_layer"), c.size("hidden_size", "n_embed"), c.size("n_head")
    c.must("n_inner", None, "its MLP is 4 · D wide")
    no_count(c, "attention_softmax_in_fp32", "skip_bias_add", "skip_bias_add_qkv", "bias_dropout_fusion")
    layers = _same(L, norms(D, D, bias=True), _heads(c, D, N, qkv=True, o=True), _mlp(D, 4 * D))
    return _model(c, layers, D=D, context=c.context("seq_length"), extra=(vector("embedding_norm", 2 * D),))


def mpt(c: Fields) -> Model:
    """MPT: ALiBi, no biases anywhere. What its original code could do beside that is refused: transformers does not build it."""
    L, D, N = c.layers("n_layers"), c.size("d_model"), c.size("n_heads")
    c.must("no_bias", True, "no published model has biases")
    c.must("expansion_ratio", 4, "its MLP is 4 · D wide")
    config = c.raw("attn_config", default=None)
    known = {"attn_type": "multihead_attention", "qk_ln": False, "alibi": True, "prefix_lm": False}
    for name, value in known.items():
        if isinstance(config, Mapping) and config.get(name, value) != value:
            raise ModelError(
                f"the configuration of family {c.family!r}: {name} = {shown(config[name])} in attn_config is not understood; only {value} is"
            )
    layers = _same(L, norms(D, D), _heads(c, D, N, qkv=False, o=False), _mlp(D, 4 * D, bias=False))
    return _model(c, layers, D=D, norm_bias=False, context=c.context("max_seq_len"))


def falcon(c: Fields) -> Model:
    """Falcon, in its three shapes: every head with its own keys and values (`multi_query` false), one key/value head, or groups of heads.

    The last is `new_decoder_architecture` (40B, 180B), with two norms before attention and MLP side by side. RefinedWebModel and
    RefinedWeb are the names that 7B and 40B were published under. Kept are the key/value heads that there are; transformers' own code
    repeats those of groups for every query head first.
    """
    if c.family != "falcon":
        c.defaults = {"new_decoder_architecture": c.family == "RefinedWeb", "tie_word_embeddings": True}
    new = c.flag("new_decoder_architecture")
    L, N = c.layers("num_hidden_layers", "n_layer"), c.size("num_attention_heads", "n_head")
    D = c.size("hidden_size", "n_embed")
    F = c.size("ffn_hidden_size", default=4 * D)
    bias, parallel = c.flag("bias"), c.flag("parallel_attn")
    c.must("ff_factor", F // D if F % D == 0 else None, "ffn_hidden_size says how wide the MLP is")
    no_count(c, "apply_residual_connection_post_layernorm")
    grouped = c.size("num_kv_heads", "n_head_kv", default=N)
    K = grouped if new else 1 if c.flag("multi_query") else N
    norms_before = c.size("num_ln_in_parallel_attn", default=2 if new else 1)
    scales = norms(D, D, bias=True) if not parallel or norms_before == 2 else norms(D, bias=True)
    layers = _same(L, scales, _heads(c, D, N, K=K, qkv=bias, o=bias), _mlp(D, F, bias=bias))
    return _model(c, layers, D=D, context=_context(c))


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "RefinedWeb": falcon,
    "RefinedWebModel": falcon,
    "biogpt": biogpt,
    "bloom": bloom,
    "codegen": gptj,
    "ctrl": ctrl,
    "falcon": falcon,
    "gpt2": gpt2,
    "gpt_bigcode": gpt2,
    "gpt_neo": gpt_neo,
    "gpt_neox": gpt_neox,
    "gpt_neox_japanese": gpt_neox_japanese,
    "gptj": gptj,
    "mpt": mpt,
    "openai-gpt": openai_gpt,
    "opt": opt,
    "persimmon": persimmon,
    "xglm": xglm,
}
