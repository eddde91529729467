"""Delta rules beside attention: Qwen3-Next, Qwen3.5, OLMo hybrid (gated delta rule); Kimi Linear, Ling hybrid (Kimi delta attention)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scalebook.errors import shown
from scalebook.transformer.blocks import Block, attention, experts, latent_attention, mlp
from scalebook.transformer.configs.families.hybrid import (
    FULL_ATTENTION,
    LINEAR,
    heads,
    kv_heads,
    mixers,
    next_tokens,
    uncounted,
    untied,
    whole,
    wrong,
)
from scalebook.transformer.configs.families.shared import like, no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import Layer, norms, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import matmul
from scalebook.transformer.recurrent import gated_delta_net, kimi_delta

# ---- gated delta rule --------------------------------------------------------------------------------------------------------


def delta(c: Fields, D: int) -> Block:
    """The gated delta rule by the fields of Qwen's models."""
    return gated_delta_net(
        D=D,
        K=c.size("linear_num_key_heads"),
        N=c.size("linear_num_value_heads"),
        key=c.size("linear_key_head_dim"),
        value=c.size("linear_value_head_dim"),
        taps=c.size("linear_conv_kernel_dim"),
    )


def every(c: Fields, L: int, kind: str = FULL_ATTENTION) -> list[str]:
    """The layers' kinds from `layer_types`, or the delta rule but for one in `full_attention_interval` layers (4 if not given)."""
    interval = c.size("full_attention_interval", default=4)
    return mixers(c, L, allowed=(LINEAR, kind), otherwise=lambda i: LINEAR if (i + 1) % interval else kind)


def shared_experts(c: Fields, D: int) -> Block:
    """Experts beside one that all tokens use, scaled by a gate of its own, as in Qwen's models."""
    return experts(
        D=D,
        F=c.size("moe_intermediate_size"),
        E=c.size("num_experts"),
        k=c.size("num_experts_per_tok"),
        shared=c.size("shared_expert_intermediate_size"),
        shared_gate=True,
    )


def _qwen(c: Fields, D: int, kinds: list[str], after: Mapping[str, Block], routed: Callable[[int], str]) -> Model:
    """Layers of both kinds, each with the feed-forward block that `routed` names; a module for further tokens has attention."""
    mixing = {LINEAR: delta(c, D), FULL_ATTENTION: heads(c, D, bias=c.flag("attention_bias"), norm=True, gate=True)}
    layers = {m + a: Layer(m + a, (norms(D, D), mixing[m], after[a])) for m in mixing for a in after}
    names = [kind + routed(i) for i, kind in enumerate(kinds)]
    times = c.size("mtp_num_hidden_layers", "num_nextn_predict_layers", default=0, zero=True)
    c.must("mtp_use_dedicated_embeddings", False, "the module for further tokens has the model's embedding")
    last = layers[FULL_ATTENTION + routed(len(kinds) - 1)].blocks
    c.must("attn_output_gate", True, "queries are projected with a gate")
    no_count(c, "mamba_ssm_dtype")
    return whole(c, stacked((name, layers[name]) for name in names), D=D, mtp=next_tokens(D, last * times) if times else ())


def _plain(c: Fields) -> None:
    """All layers feed forward in the same way; which tables are tied is said in a text_config."""
    c.must("mlp_only_layers", [], "all layers are alike")
    if not c.family.endswith("_text"):
        c.must("tie_word_embeddings", False, "without a text_config it is not known which tables that means")


def qwen3_5(c: Fields) -> Model:
    """Qwen3.5 and later (dense): three layers of the gated delta rule, then one of gated attention. `qwen3_5` holds it as `text_config`."""
    _plain(c)
    like(c, "qwen3_5_text")
    L, D = c.layers(), c.size("hidden_size")
    return _qwen(c, D, every(c, L), {"": mlp(D=D, F=c.size("intermediate_size"))}, lambda i: "")


def qwen3_5_moe(c: Fields) -> Model:
    """The same with experts in every layer."""
    _plain(c)
    like(c, "qwen3_5_moe_text")
    L, D = c.layers(), c.size("hidden_size")
    no_count(c, "intermediate_size")
    return _qwen(c, D, every(c, L), {"": shared_experts(c, D)}, lambda i: "")


def qwen3_next(c: Fields) -> Model:
    """Qwen3-Next: experts, or an MLP in `mlp_only_layers` and where `decoder_sparse_step` leaves layers out."""
    L, D, step = c.layers(), c.size("hidden_size"), c.size("decoder_sparse_step")
    E, plain = c.size("num_experts", zero=True), c.places("mlp_only_layers", L)
    routed = [E > 0 and i not in plain and (i + 1) % step == 0 for i in range(L)]
    after = {" with experts": shared_experts(c, D)} if any(routed) else {}
    if not all(routed):
        after[" with MLP"] = mlp(D=D, F=c.size("intermediate_size"))
    return _qwen(c, D, every(c, L), after, lambda i: " with experts" if routed[i] else " with MLP")


def olmo_hybrid(c: Fields) -> Model:
    """OLMo hybrid: the gated delta rule with norms before its blocks, every fourth layer attention with norms after them.

    Attention norms all its queries together, and all its keys. Where the delta rule's widths are not given, keys have ¾·D channels in all
    and values twice as many.
    """
    L, D, N = c.layers(), c.size("hidden_size"), c.size("num_attention_heads")
    K, H, bias = kv_heads(c, N), c.size("head_dim", default=max(D // N, 1)), c.flag("attention_bias")
    linear_K = c.maybe("linear_num_key_heads") or N
    key = c.maybe("linear_key_head_dim") or max(int(0.75 * D / linear_K), 1)
    linear = gated_delta_net(
        D=D,
        K=linear_K,
        N=c.maybe("linear_num_value_heads") or N,
        key=key,
        value=c.maybe("linear_value_head_dim") or 2 * key,
        taps=c.size("linear_conv_kernel_dim"),
    )
    full = attention(
        D=D,
        N=N,
        K=K,
        H=H,
        q_bias=bias,
        k_bias=bias,
        v_bias=bias,
        o_bias=bias,
        q_norm=N * H,
        k_norm=K * H,
    )
    after = mlp(D=D, F=c.size("intermediate_size"))
    layers = {kind: Layer(kind, (norms(D, D), block, after)) for kind, block in ((LINEAR, linear), (FULL_ATTENTION, full))}
    kinds = mixers(c, L, otherwise=lambda i: FULL_ATTENTION if i % 4 == 3 or (L < 4 and i == L - 1) else LINEAR)
    if len(set(kinds)) < 2:
        raise wrong(c, "it has layers of one kind only; both attention and the delta rule belong to it")
    return whole(c, stacked((kind, layers[kind]) for kind in kinds), D=D)


# ---- Kimi delta attention ----------------------------------------------------------------------------------------------------


_ROUTING = ("n_group", "num_expert_group")  # which experts may be chosen together


def _latent(c: Fields, D: int, N: int) -> Block:
    bias = c.flag("attention_bias")
    if N % kv_heads(c, N):
        raise wrong(c, f"{N} heads cannot share {kv_heads(c, N)} key/value heads")
    return latent_attention(
        D=D,
        N=N,
        kv_rank=c.size("kv_lora_rank"),
        nope=c.size("qk_nope_head_dim"),
        rope=c.size("qk_rope_head_dim"),
        v=c.size("v_head_dim"),
        q_rank=c.maybe("q_lora_rank"),
        a_bias=bias,
        o_bias=bias,
    )


def _deepseek_experts(c: Fields, D: int) -> Block:
    """Experts whose router has a correction bias, beside shared ones of the same width."""
    F = c.size("moe_intermediate_size")
    return experts(
        D=D,
        F=F,
        E=c.size("num_local_experts", "num_experts", "n_routed_experts"),
        k=c.size("num_experts_per_tok", "num_experts_per_token"),
        shared=F * c.size("n_shared_experts", "num_shared_experts", zero=True),
        router_bias=True,
    )


def _dense_first(c: Fields, L: int, first: int) -> list[str]:
    return c.kinds("mlp_layer_types", L, ("dense", "sparse"), otherwise=lambda i: "dense" if i < first else "sparse")


def _two_by_two(c: Fields, D: int, mixing: Mapping[str, Block], kinds: list[str], fed: list[str]) -> tuple[Layer, ...]:
    """Layers by how they mix tokens and by what feeds forward: an MLP ("dense") or experts ("sparse")."""
    blocks: dict[str, Block] = {}
    if "dense" in fed:
        blocks["dense"] = mlp(D=D, F=c.size("intermediate_size"))
    if "sparse" in fed:
        blocks["sparse"] = _deepseek_experts(c, D)
    layers = {(m, a): Layer("", (norms(D, D), mixing[m], blocks[a])) for m in mixing for a in blocks}
    return stacked((f"{m}, {a}", layers[m, a]) for m, a in zip(kinds, fed, strict=True))


def kimi_linear(c: Fields) -> Model:
    """Kimi Linear: Kimi delta attention, and latent attention without positions in the layers that `linear_attn_config` names from 1.

    Decay and gate of the delta attention go through as many channels as a head has. The first `first_k_dense_replace` layers have an MLP.
    """
    L, D, N = c.layers(), c.size("hidden_size"), c.size("num_attention_heads")
    inner = _linear_config(c)
    H, heads_, taps = (
        inner.size(name) if inner.given(name) else c.size(ours)
        for name, ours in (
            ("head_dim", "linear_head_dim"),
            ("num_heads", "linear_num_heads"),
            ("short_conv_kernel_size", "linear_conv_kernel_dim"),
        )
    )
    mixing = {LINEAR: kimi_delta(D=D, N=heads_, H=H, taps=taps, rank=H), FULL_ATTENTION: _latent(c, D, N)}
    kinds = mixers(c, L, otherwise=_kimi_kinds(c, inner, L).__getitem__)
    first = c.size("first_k_dense_replace", default=1, zero=True)
    c.must("moe_layer_freq", 1, "all layers after the dense ones have experts")
    no_count(c, "head_dim", "mla_use_nope", "moe_router_activation_func", "use_grouped_topk", *_ROUTING)
    inner.rest()
    untied(c)
    found = whole(c, _two_by_two(c, D, mixing, kinds, _dense_first(c, L, first)), D=D)
    return replace(found, not_counted=uncounted(c, "num_nextn_predict_layers"))


def _linear_config(c: Fields) -> Fields:
    """What published configurations say of the delta attention, apart."""
    described = c.raw("linear_attn_config", default=None)
    if described is not None and not isinstance(described, Mapping):
        raise wrong(c, f"linear_attn_config must be a mapping; found {shown(described)}")
    return Fields(described or {}, f"{c.family}, linear_attn_config")


def _kimi_kinds(c: Fields, inner: Fields, L: int) -> list[str]:
    """The layers' kinds from two lists of layers, numbered from 1, or latent attention in every fourth layer after the first."""
    if not (inner.given("full_attn_layers") and inner.given("kda_layers")):
        return [FULL_ATTENTION if i and i % 4 == 0 else LINEAR for i in range(L)]
    full, linear = ({i - 1 for i in inner.places(name, L + 1)} for name in ("full_attn_layers", "kda_layers"))
    if full & linear or full | linear != set(range(L)):
        raise wrong(c, f"full_attn_layers and kda_layers must name each of the layers 1 to {L} once")
    return [FULL_ATTENTION if i in full else LINEAR for i in range(L)]


def bailing_hybrid(c: Fields) -> Model:
    """Ling hybrid: Kimi delta attention with decay and gate computed directly, and latent attention with one gate per head in the last
    layer of each group of `layer_group_size`. The first `first_k_dense_replace` layers have an MLP."""
    L, D, N = c.layers(), c.size("hidden_size"), c.size("num_attention_heads")
    latent, group = _latent(c, D, N), c.size("layer_group_size")
    gate = matmul("attention/gate", "In[B, T, D] * W[D, F] -> Gate[B, T, F]", D=D, F=N)
    mixing = {
        LINEAR: kimi_delta(D=D, N=N, H=c.size("head_dim"), taps=c.size("short_conv_kernel_size")),
        FULL_ATTENTION: replace(latent, ops=(*latent.ops, gate)),
    }
    kinds = mixers(c, L, otherwise=lambda i: LINEAR if (i + 1) % group else FULL_ATTENTION)
    fed = _dense_first(c, L, c.size("first_k_dense_replace", zero=True))
    no_count(c, *_ROUTING)
    untied(c)
    found = whole(c, _two_by_two(c, D, mixing, kinds, fed), D=D)
    return replace(found, not_counted=uncounted(c, "num_mtp_layers", "num_nextn_predict_layers"))


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "bailing_hybrid": bailing_hybrid,
    "kimi_linear": kimi_linear,
    "olmo_hybrid": olmo_hybrid,
    "qwen3_5": qwen3_5,
    "qwen3_5_moe": qwen3_5_moe,
    "qwen3_5_moe_text": qwen3_5_moe,
    "qwen3_5_text": qwen3_5,
    "qwen3_next": qwen3_next,
}
