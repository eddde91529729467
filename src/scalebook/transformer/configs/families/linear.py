"""Other recurrences, alone or beside attention: MiniMax (lightning), LFM2 (short convolutions), RecurrentGemma, RWKV-4, xLSTM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scalebook.transformer.blocks import Block, attention, experts, mlp
from scalebook.transformer.configs.families.hybrid import FULL_ATTENTION, LINEAR, heads, kv_heads, mixers, untied, whole, wrong
from scalebook.transformer.configs.families.shared import head_width, like, no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import Layer, norms, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import Span, vector
from scalebook.transformer.recurrent import lightning, mlstm, rg_lru, rwkv_channel, rwkv_time, short_conv
from scalebook.units import round_up


def minimax(c: Fields) -> Model:
    """MiniMax-01 and M1: lightning attention, with softmax attention where `layer_types`, or 1 in `attn_type_list`, says so; experts.

    A `sliding_window` limits what softmax attention sees, but all keys and values are kept.
    """
    original = c.family != "minimax"
    if original:
        like(c, "minimax")
    L, D, N = c.layers(), c.size("hidden_size"), c.size("num_attention_heads")
    c.must("shared_intermediate_size", 0, "there is no shared expert")
    full, window = heads(c, D), c.maybe("sliding_window")
    if window is not None:
        full = replace(heads(c, D, span=Span("window", window)), cache=full.cache)
    after = experts(D=D, F=c.size("intermediate_size"), E=c.size("num_local_experts"), k=c.size("num_experts_per_tok"))
    mixing = {LINEAR: lightning(D=D, N=N, H=full.facts["H"]), FULL_ATTENTION: full}
    layers = {kind: Layer(kind, (norms(D, D), block, after)) for kind, block in mixing.items()}
    if original and not c.given("attn_type_list") and not c.given("layer_types"):
        raise wrong(c, "it has no attn_type_list, which says which layers have softmax attention")
    listed = c.per_layer("attn_type_list", L, zero=True) if c.given("attn_type_list") else [int(i % 2 == 0) for i in range(L)]
    if set(listed) - {0, 1}:
        raise wrong(c, "attn_type_list must be of 0 (lightning attention) and 1 (softmax attention)")
    kinds = mixers(c, L, otherwise=lambda i: FULL_ATTENTION if listed[i] else LINEAR)
    no_count(c, "postnorm", "shared_moe_mode", "rotary_dim")
    return whole(c, stacked((kind, layers[kind]) for kind in kinds), D=D)


# ---- short convolutions ------------------------------------------------------------------------------------------------------


def _liquid_width(c: Fields) -> int:
    """F of LFM2: two thirds of the field, times a factor, rounded up to a multiple, unless that is switched off."""
    F = c.size("intermediate_size", "block_ff_dim")
    if not c.flag("block_auto_adjust_ff_dim"):
        return F
    F = 2 * F // 3
    if c.raw("block_ffn_dim_multiplier") is None:
        return F
    return int(round_up(int(c.number("block_ffn_dim_multiplier") * F), c.size("block_multiple_of")))


def _liquid(c: Fields, D: int) -> dict[str, Block]:
    """What mixes tokens in LFM2, by kind. Fields of the first configurations that repeat others must agree with them."""
    for name in ("conv_dim", "conv_dim_out", "block_dim"):
        c.must(name, D, "convolutions are as wide as the model")
    c.must("num_heads", c.size("num_attention_heads"), "it repeats num_attention_heads")
    c.must("block_use_swiglu", True, "the MLP has a gate")
    no_count(c, "block_use_xavier_init", "conv_use_xavier_init", "use_pos_enc", "block_mlp_init_scale", "block_out_init_scale")
    return {
        "conv": short_conv(D=D, taps=c.size("conv_L_cache"), bias=c.flag("conv_bias")),
        FULL_ATTENTION: heads(c, D, norm=True),
    }


def lfm2(c: Fields) -> Model:
    """LFM2: gated short convolutions, and attention with norms on queries and keys in some layers; an MLP after each."""
    L, D = c.layers(), c.size("hidden_size", "block_dim")
    after = mlp(D=D, F=_liquid_width(c))
    layers = {kind: Layer(kind, (norms(D, D), block, after)) for kind, block in _liquid(c, D).items()}
    full = c.places("full_attn_idxs", L, default=range(L))
    kinds = mixers(c, L, allowed=("conv", FULL_ATTENTION), otherwise=lambda i: FULL_ATTENTION if i in full else "conv")
    if c.given("full_attn_idxs") and full != {i for i, kind in enumerate(kinds) if kind == FULL_ATTENTION}:
        raise wrong(c, "full_attn_idxs and layer_types do not name the same layers")
    return whole(_tied(c), stacked((kind, layers[kind]) for kind in kinds), D=D)


def _tied(c: Fields) -> Fields:
    """`tie_embedding` is an earlier name of `tie_word_embeddings`."""
    c.config["tie_word_embeddings"] = c.flag("tie_word_embeddings", "tie_embedding")
    return c


def lfm2_moe(c: Fields) -> Model:
    """LFM2 with experts, whose router may have a bias, after the first `num_dense_layers`."""
    L, D, dense = c.layers(), c.size("hidden_size"), c.size("num_dense_layers", zero=True)
    after = {"": mlp(D=D, F=c.size("intermediate_size"))} if dense else {}
    if dense < L:
        after[" with experts"] = experts(
            D=D,
            F=c.size("moe_intermediate_size"),
            E=c.size("num_experts"),
            k=c.size("num_experts_per_tok"),
            router_bias=c.flag("use_expert_bias"),
        )
    layers = {m + a: Layer(m + a, (norms(D, D), block, after[a])) for m, block in _liquid(c, D).items() for a in after}
    kinds = mixers(c, L, allowed=("conv", FULL_ATTENTION))
    names = [kind + ("" if i < dense else " with experts") for i, kind in enumerate(kinds)]
    return whole(_tied(c), stacked((name, layers[name]) for name in names), D=D)


def lfm3(c: Fields) -> Model:
    """LFM3: short convolutions, attention and attention in a window, with one gate per head; maybe norms after the blocks too."""
    L, D, N = c.layers(), c.size("hidden_size"), c.size("num_attention_heads")
    K, H, bias = kv_heads(c, N), c.size("head_dim"), c.flag("attention_bias")
    gate = N if c.flag("use_attention_gate") else 0
    window = c.maybe("sliding_window")
    spans = {FULL_ATTENTION: Span(), "sliding_attention": Span() if window is None else Span("window", window)}
    mixing = {"conv": short_conv(D=D, taps=c.size("conv_L_cache"), bias=c.flag("conv_bias"))}
    for kind, span in spans.items():
        mixing[kind] = attention(
            D=D,
            N=N,
            K=K,
            H=H,
            q_bias=bias,
            k_bias=bias,
            v_bias=bias,
            o_bias=bias,
            q_norm=H,
            k_norm=H,
            gate=gate,
            span=span,
        )
    scales = norms(*[D] * (4 if c.flag("use_sandwich_norm") else 2))
    after = mlp(D=D, F=c.size("intermediate_size"))
    layers = {kind: Layer(kind, (scales, block, after)) for kind, block in mixing.items()}
    turns = ("sliding_attention", "conv", FULL_ATTENTION, "conv")
    kinds = mixers(c, L, allowed=tuple(mixing), otherwise=lambda i: turns[i % 4] if i else "conv")
    return whole(c, stacked((kind, layers[kind]) for kind in kinds), D=D)


# ---- gated recurrences -------------------------------------------------------------------------------------------------------


def recurrent_gemma(c: Fields) -> Model:
    """RecurrentGemma: RG-LRU and attention in a window, in turns given by `block_types`; an MLP of half the field's width with biases."""
    L, D, N = c.layers(), c.size("hidden_size"), c.size("num_attention_heads")
    bias, F = c.flag("attention_bias"), c.size("intermediate_size") // 2
    if F < 1:
        raise wrong(c, "intermediate_size must be at least 2: the MLP is half as wide")
    mixing = {
        "recurrent": rg_lru(D=D, width=c.maybe("lru_width") or D, blocks=N, taps=c.size("conv1d_width")),
        "attention": attention(
            D=D,
            N=N,
            K=kv_heads(c, N),
            H=c.size("head_dim", default=head_width(c, D, N)),
            q_bias=bias,
            k_bias=bias,
            v_bias=bias,
            o_bias=True,
            span=Span("window", c.size("attention_window_size")),
        ),
    }
    after = mlp(D=D, F=F, up_bias=True, down_bias=True)
    layers = {kind: Layer(kind, (norms(D, D), block, after)) for kind, block in mixing.items()}
    turns = c.raw("block_types", "_block_types")
    no_count(c, "embeddings_scale_by_sqrt_dim")
    if not isinstance(turns, list | tuple) or not turns or not all(isinstance(word, str) and word in mixing for word in turns):
        raise wrong(c, 'block_types must be a list of "recurrent" and "attention", which the layers follow in turn')
    return whole(c, stacked((turns[i % len(turns)], layers[turns[i % len(turns)]]) for i in range(L)), D=D)


def rwkv(c: Fields) -> Model:
    """RWKV-4: mixing along the sequence and of the channels, LayerNorms, one more after the embedding."""
    L, D = c.layers(), c.size("hidden_size")
    inner = c.maybe("attention_hidden_size") or D
    blocks = (norms(D, D, bias=True), rwkv_time(D=D, inner=inner), rwkv_channel(D=D, F=c.maybe("intermediate_size") or 4 * D))
    extra = (vector("embedding_norm", 2 * D), vector("final_norm_bias", D))
    no_count(c, "max_position_embeddings", "context_length")
    return whole(c, (Layer("layer", blocks, L, tuple(range(L))),), D=D, extra=extra)


def xlstm(c: Fields) -> Model:
    """xLSTM (7B): matrix memories with keys of `qk_dim_factor`·D and values of `v_dim_factor`·D channels, then a gated MLP.

    F is `ffn_proj_factor`·D, rounded up to a multiple of `ffn_round_up_to_multiple_of`.
    """
    L, D, N = c.maybe("num_blocks") or c.layers(), c.maybe("hidden_size") or c.size("embedding_dim"), c.size("num_heads")
    if (c.maybe("embedding_dim") or D) != D:
        raise wrong(c, f"embedding_dim must be hidden_size = {D}")
    key, value = (int(D * c.number(name)) for name in ("qk_dim_factor", "v_dim_factor"))
    if key < N or value < N or key % N or value % N:
        raise wrong(c, f"{N} heads cannot share keys of {key} and values of {value} channels")
    bias, step = c.flag("use_bias"), c.size("ffn_round_up_to_multiple_of")
    F = int((D * c.number("ffn_proj_factor") + step - 1) // step * step)
    c.must("add_out_norm", True, "the last norm is counted")
    untied(c)
    blocks = (
        norms(D, D, bias=bias),
        mlstm(D=D, N=N, key=key // N, value=value // N, bias=bias),
        mlp(D=D, F=F, up_bias=bias, down_bias=bias),
    )
    return whole(c, (Layer("layer", blocks, L, tuple(range(L))),), D=D)


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "lfm2": lfm2,
    "lfm2_moe": lfm2_moe,
    "lfm3": lfm3,
    "minimax": minimax,
    "minimax_m1": minimax,
    "minimax_text_01": minimax,
    "recurrent_gemma": recurrent_gemma,
    "rwkv": rwkv,
    "xlstm": xlstm,
}
