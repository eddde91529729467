"""Models of a shape of their own: Zaya (convolved attention, a router that is an MLP), Inkling (convolutions everywhere), HRM-Text (loops)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scalebook.transformer.blocks import Block, attention, experts, mlp
from scalebook.transformer.configs.families.hybrid import again, mixers, uncounted, untied, whole, wrong
from scalebook.transformer.configs.families.shared import no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import Layer, around, norms, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import FULL, Op, Span, conv, matmul, vector

# ---- Zaya --------------------------------------------------------------------------------------------------------------------


def zaya(c: Fields) -> Model:
    """Zaya: queries and keys pass two convolutions, half of each value comes from the token before, and a router that is an MLP over a
    state handed from layer to layer chooses one of E experts or none."""
    L, D = c.layers(), c.size("hidden_size")
    window = c.maybe("sliding_window")
    kinds = mixers(c, L, allowed=("hybrid", "hybrid_sliding"), otherwise=lambda i: "hybrid")
    if "hybrid_sliding" in kinds and window is None:
        raise wrong(c, "it has layers of kind hybrid_sliding, but no sliding_window")
    spans = {"hybrid": FULL, "hybrid_sliding": FULL if window is None else Span("window", window)}
    scales = Block("residual", tuple(vector("residual", 4 * D) for _ in range(2)))
    mixing = {kind: (norms(D, D), *_convolved_attention(c, D, span), scales) for kind, span in spans.items() if kind in kinds}
    routed = _zaya_experts(c, D)
    layers = {(kind, first): Layer("", (*mixing[kind], routed[first])) for kind in mixing for first in (True, False)}
    V, tied, bias = c.size("vocab_size"), c.flag("tie_word_embeddings"), c.flag("lm_head_bias")
    outer = around(D=D, V=V, tied=tied, head_bias=bias, extra=(vector("embedding_scale", 2 * D),))
    stack = stacked((f"{kind}, first" if i == 0 else kind, layers[kind, i == 0]) for i, kind in enumerate(kinds))
    return Model("", c.family, D, V, stack, outer, tied, context=c.context("max_position_embeddings"))


def _convolved_attention(c: Fields, D: int, span: Span) -> tuple[Block, Block]:
    """Attention, and what convolves its queries and keys: `cca_time0` taps per channel, then `cca_time1` taps that mix the channels of a head.

    Kept once per sequence: the inputs of both convolutions, (N + K)·H·(taps − 1 of each), and K·H ÷ 2 of the last token's values.
    """
    N, K, H, bias = c.size("num_attention_heads"), c.size("num_key_value_heads"), c.size("head_dim"), c.flag("attention_bias")
    near, wide = c.size("cca_time0"), c.size("cca_time1")
    if K * H % 2:
        raise wrong(c, f"half of the {K * H} channels of the values come from the token before: an even number is needed")
    attended = attention(
        D=D,
        N=N,
        K=K,
        H=H,
        q_bias=bias,
        k_bias=bias,
        v_bias=bias,
        o_bias=bias,
        span=span,
        extra=(vector("attention/temperature", K),),
    )
    channels = (N + K) * H
    ops = (
        conv("conv/near", channels, near),
        matmul("conv/wide", "X[B, T, N, J] * W[N, J, H] -> Out[B, T, N, H]", N=N + K, J=wide * H, H=H),
        vector("conv/bias", 2 * channels),
    )
    kept = {"conv": channels * (near + wide - 2), "delayed values": K * H // 2}
    return attended, Block("convolution", ops, state=kept)


def _zaya_experts(c: Fields, D: int) -> dict[bool, Block]:
    """Experts of the first layer (True) and of the others, whose router also scales the state of the layer before."""
    E, R = c.size("num_experts"), c.size("router_hidden_size")
    c.must("num_experts_per_tok", 1, "a token is sent to one expert")
    plain = experts(D=D, F=c.size("moe_intermediate_size"), E=E, k=1)
    router = (
        matmul("experts/router_down", "In[B, T, D] * W[D, R] -> Low[B, T, R]", D=D, R=R),
        matmul("experts/router_1", "Low[B, T, R] * W[R, J] -> Mid[B, T, J]", R=R, J=R),
        matmul("experts/router_2", "Mid[B, T, J] * W[J, R] -> Low[B, T, R]", J=R, R=R),
        matmul("experts/router_out", "Low[B, T, R] * W[R, E] -> Route[B, T, E]", R=R, E=E + 1),
        vector("experts/router_norms", 4 * R),  # a norm and three biases
        vector("experts/router_bias", E + 1),
    )
    ops = (*router, *(op for op in plain.ops if op.part != "experts/router"))
    return {True: replace(plain, ops=ops), False: replace(plain, ops=(*ops, vector("experts/router_scale", R)))}


# ---- Inkling -----------------------------------------------------------------------------------------------------------------


def inkling(c: Fields) -> Model:
    """Inkling: attention with learned relative positions, in a window but for every sixth layer; short convolutions after keys, values,
    attention and MLP; experts beside shared ones that the router weighs too."""
    L, D = c.layers(), c.size("hidden_size")
    local = c.places("local_layer_ids", L, default=(i for i in range(L) if (i + 1) % 6))
    kinds = mixers(c, L, allowed=("hybrid", "hybrid_sliding"), otherwise=lambda i: "hybrid_sliding" if i in local else "hybrid")
    dense = c.size("dense_mlp_idx", default=0, zero=True)
    fed = c.kinds("mlp_layer_types", L, ("dense", "sparse"), otherwise=lambda i: "dense" if i < dense else "sparse")
    F, routed = c.size("intermediate_size"), c.size("moe_intermediate_size")
    if c.given("dense_intermediate_size"):  # then intermediate_size is that of the experts
        F, routed = c.size("dense_intermediate_size"), F
    mixing = {kind: _relative_attention(c, D, sliding=kind == "hybrid_sliding") for kind in set(kinds)}
    after = {"dense": mlp(D=D, F=F, extra=(vector("mlp/scale", 1),))}
    after |= {"sparse": _inkling_experts(c, D, routed)} if "sparse" in fed else {}
    layers = {(m, a): Layer("", (norms(D, D), *mixing[m], after[a])) for m in mixing for a in after}
    untied(c)
    no_count(c, "chain_hidden_post_norm", "mtp_hidden_states_first", "mtp_local_layer_ids", "unpadded_vocab_size")
    stack = stacked((f"{m}, {a}", layers[m, a]) for m, a in zip(kinds, fed, strict=True))
    found = whole(c, stack, D=D, extra=(vector("embedding_norm", D),))
    return replace(found, not_counted=uncounted(c, "num_mtp_layers"))


def _relative_attention(c: Fields, D: int, *, sliding: bool) -> tuple[Block, Block]:
    """Attention whose positions are `d_rel` numbers per head and token against a table of distances; and its layer's four convolutions."""
    prefix = "swa_" if sliding else ""
    N, K, H = (c.size(f"{prefix}{name}") for name in ("num_attention_heads", "num_key_value_heads", "head_dim"))
    R, taps, W = c.size("d_rel"), c.size("conv_kernel_size"), c.size("sliding_window_size")
    extent = W if sliding else c.size("rel_extent")
    table = matmul("attention/distances", "Place[B, T, N, R] * W[R, J] -> Bias[B, T, N, J]", R=R, J=extent, N=N)
    extra = (
        matmul("attention/places", "In[B, T, D] * W[D, N, R] -> Place[B, T, N, R]", D=D, N=N, R=R),
        replace(table, token_flops=table.token_flops * N),  # the same weight for every head
    )
    attended = attention(D=D, N=N, K=K, H=H, q_norm=H, k_norm=H, span=Span("window", W) if sliding else FULL, extra=extra)
    widths = {"k": K * H, "v": K * H, "attention": D, "mlp": D}
    ops = tuple(conv(f"conv/{part}", width, taps) for part, width in widths.items())
    return attended, Block("short convolutions", ops, state={"conv": sum(widths.values()) * (taps - 1)})


def _inkling_experts(c: Fields, D: int, F: int) -> Block:
    shared = c.size("n_shared_experts")
    extra = (
        matmul("experts/router_shared", "In[B, T, D] * W[D, E] -> Route[B, T, E]", D=D, E=shared),
        vector("experts/router_scale", 1),
    )
    E, k = c.size("n_routed_experts"), c.size("num_experts_per_tok")
    return experts(D=D, F=F, E=E, k=k, shared=F * shared, router_bias=True, extra=extra)


# ---- HRM-Text ----------------------------------------------------------------------------------------------------------------


def hrm_text(c: Fields) -> Model:
    """HRM-Text: two stacks of equal layers without scales in their norms, used in turn: `H_cycles` times `L_cycles` of the low one, then
    the high one. Weights are stored once, keys and values are kept for every use.

    Its training leaves most cycles out of the backward pass; FLOPs here count all of them.
    """
    D, bias = c.size("hidden_size"), c.flag("mlp_bias")
    high, low = c.size("H_cycles", most=1000), c.size("L_cycles", most=1000)
    given, uses = c.layers(), high * (low + 1)
    each = c.maybe("num_layers_per_stack")
    if each is not None and each * uses != given:
        raise wrong(c, f"{each} layers per stack are used {uses} times: num_hidden_layers must be {each * uses}; found {given}")
    S = given if each is None else each
    blocks = (_gated(c, D), mlp(D=D, F=c.size("intermediate_size"), up_bias=bias, down_bias=bias))
    later = tuple(map(again, blocks))
    layers = [Layer(f"{name} stack", blocks, S) for name in ("low", "high")]
    layers += [Layer(f"{name} stack, again", later, S * n) for name, n in (("low", high * low - 1), ("high", high - 1)) if n]
    V, tied = c.size("vocab_size"), c.flag("tie_word_embeddings")
    outer = around(D=D, V=V, tied=tied, norm=False, extra=(vector("start", D),))
    no_count(c, "L_bp_cycles", "prefix_lm")
    return Model("", c.family, D, V, tuple(layers), outer, tied, context=c.context("max_position_embeddings"))


def _gated(c: Fields, D: int) -> Block:
    N, H, bias = c.size("num_attention_heads"), c.size("head_dim"), c.flag("attention_bias")
    if D % N:
        raise wrong(c, f"hidden_size = {D} must be a multiple of {N} heads")
    c.must("num_key_value_heads", N, "every head has keys and values of its own")
    extra: tuple[Op, ...] = (vector("attention/gate_bias", N * H),) if bias else ()
    return attention(
        D=D,
        N=N,
        K=N,
        H=H,
        q_bias=bias,
        k_bias=bias,
        v_bias=bias,
        o_bias=bias,
        gate=N * H,
        extra=extra,
    )


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {"hrm_text": hrm_text, "inkling_text": inkling, "zaya": zaya}
