"""DeepSeek-V4: one shared key and value, a window on each layer, and beside it all tokens compressed in groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, Cache
from scalebook.transformer.configs.families.latent import mixture
from scalebook.transformer.configs.families.shared import no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.indexer import compressed_indexer, compressor
from scalebook.transformer.layers import Layer, around, norms, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import Op, Size, Span, matmul, mixing, scan, vector

_SLIDING, _SPARSE, _HEAVY = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
_RATES = {_SPARSE: 4, _HEAVY: 128}  # tokens that become one entry
_MTP = "num_nextn_predict_layers: modules that predict further tokens are not counted"
_HASHED = "tid2eid: tables that give each token its experts are no parameters, so not counted"


def deepseek_v4(c: Fields) -> Model:
    """DeepSeek-V4: attention, experts and, around both, hyper-connections between parallel residual streams."""
    L, D, V = c.layers(), c.size("hidden_size"), c.size("vocab_size")
    streams, tied = c.size("hc_mult"), c.flag("tie_word_embeddings")
    rates = _rates(c)
    kinds = _per_layer(c, "layer_types", L, (_SLIDING, *_RATES), lambda i: _SPARSE if i > 1 and i % 2 else _HEAVY)
    hashed = c.size("num_hash_layers", default=3, zero=True)
    routed = _per_layer(c, "mlp_layer_types", L, ("hash_moe", "moe"), lambda i: "hash_moe" if i < hashed else "moe")
    c.must("n_shared_experts", 1, "the shared expert is as wide as one")
    no_count(c, "qk_rope_head_dim")
    mixer = {kind: _attention(c, D, kind, rates) for kind in dict.fromkeys(kinds)}
    wide = {kind: mixture(c, D, router_bias=kind == "moe", bias=c.flag("mlp_bias")) for kind in dict.fromkeys(routed)}
    hyper = _hyper_connections(D, streams)
    made = {
        (a, f): Layer(f"{a}, {f}", (hyper, norms(D), mixer[a], hyper, norms(D), wide[f]))
        for a, f in dict.fromkeys(zip(kinds, routed, strict=True))
    }
    layers = stacked((made[pair].kind, made[pair]) for pair in zip(kinds, routed, strict=True))
    outer = around(D=D, V=V, tied=tied, extra=_collapse(D, streams))
    left_out = (_MTP,) * bool(c.size("num_nextn_predict_layers", zero=True)) + (_HASHED,) * ("hash_moe" in routed)
    context = c.context("max_position_embeddings")
    return Model("", c.family, D, V, layers, outer, tied, context=context, not_counted=left_out)


# ---- fields ------------------------------------------------------------------------------------------------------------------


def _rates(c: Fields) -> dict[str, int]:
    """How many tokens become one entry: `compress_rates` by kind, or the older `compress_rate_csa` and `compress_rate_hca`."""
    given = c.raw("compress_rates", default=None)
    if given is not None and (not isinstance(given, Mapping) or set(given) - set(_RATES)):
        raise ModelError(
            f"the configuration of family {c.family!r}: compress_rates must be by kind, as {_RATES}; found {shown(given)}"
        )
    rates = Fields({**_RATES, **(given or {})}, c.family)
    older = {_SPARSE: "compress_rate_csa", _HEAVY: "compress_rate_hca"}
    return {kind: c.size(older[kind], default=rates.size(kind)) for kind in _RATES}


def _per_layer(c: Fields, name: str, L: int, known: tuple[str, ...], otherwise: Callable[[int], str]) -> list[str]:
    """Kinds of the layers; entries for layers beyond the last, as modules for further tokens have them, are left out."""
    ratios = c.raw("compress_ratios", default=None)
    if name == "layer_types" and not c.given(name) and isinstance(ratios, list | tuple):
        words = {0: _SLIDING, **{rate: kind for kind, rate in _RATES.items()}}
        c.config[name] = [words.get(r, f"a compression by {shown(r)}") if type(r) is int else shown(r) for r in ratios]
    listed: Any = c.config.get(name)
    if isinstance(listed, list | tuple):
        c.config[name] = list(listed[:L])
    return c.kinds(name, L, known, otherwise=otherwise)


# ---- blocks ------------------------------------------------------------------------------------------------------------------


def _attention(c: Fields, D: int, kind: str, rates: Mapping[str, int]) -> Block:
    """N heads over one vector per token that is key and value at once, of the window's tokens and of the compressed groups.

    Kept: H per token of the window, H per group, and for the sparse kind the indexer's key of each group. The result goes through
    `o_groups` projections of N·H ÷ `o_groups` to `o_lora_rank` numbers each.
    """
    N, H, R = c.size("num_attention_heads"), c.size("head_dim"), c.size("q_lora_rank")
    M, low = c.size("o_groups"), c.size("o_lora_rank")
    if N * H % M:
        raise ModelError(f"the configuration of family {c.family!r}: {N} heads of width {H} cannot be put into {M} o_groups")
    window = Span("window", c.size("sliding_window"))
    ops = [
        matmul("attention/q_down", "In[B, T, D] * W[D, R] -> Qlow[B, T, R]", D=D, R=R),
        vector("attention/q_norm", R),
        matmul("attention/q_up", "Qlow[B, T, R] * W[R, N, H] -> Q[B, T, N, H]", R=R, N=N, H=H),
        matmul("attention/kv", "In[B, T, D] * W[D, H] -> Key[B, T, H]", D=D, H=H),
        vector("attention/kv_norm", H),
        *_pairs(N, H, window),
        matmul("attention/o_down", "Head[B, T, M, P] * W[M, P, R] -> Low[B, T, M, R]", M=M, P=N * H // M, R=low),
        matmul("attention/o_up", "Low[B, T, R] * W[R, D] -> Out[B, T, D]", R=M * low, D=D),
        vector("attention/sinks", N),
    ]
    x = Block("shared key attention", tuple(ops), (Cache(1, H, 0, "latent", window),), facts={"D": D, "N": N, "K": 1, "H": H})
    if kind == _SLIDING:
        return x
    every = rates[kind]
    parts = [compressor("attention/compressor", D=D, H=H, every=every, overlap=kind == _SPARSE)]
    seen = Span("every", every)
    if kind == _SPARSE:
        heads, width = c.size("index_n_heads"), c.size("index_head_dim")
        parts.append(compressed_indexer(D=D, N=heads, H=width, q_rank=R, every=every))
        seen = Span("top", c.size("index_topk"), every)
    return replace(
        x,
        ops=(*x.ops, *_pairs(N, H, seen), *(op for part in parts for op in part.ops)),
        cache=(*x.cache, *(cache for part in parts for cache in part.cache)),
        state={name: n for part in parts for name, n in part.state.items()},
    )


def _pairs(N: Size, H: Size, span: Span) -> tuple[Op, Op]:
    return (
        mixing("attention/scores", "Q[B, T, N, H] * Key[B, S, H] -> Score[B, N, T, S]", span, N=N, H=H),
        mixing("attention/values", "Score[B, N, T, S] * Key[B, S, H] -> Head[B, T, N, H]", span, N=N, H=H),
    )


def _hyper_connections(D: Size, M: Size) -> Block:
    """M residual streams instead of one: (2 + M)·M weights per token say how they are read, mixed and written.

    They come from all streams by a matrix M·D × (2 + M)·M, with a bias and three scales; mixing costs 2·M²·D FLOPs per token.
    """
    R = (2 + M) * M
    weights = matmul("hyper/weights", "In[B, T, M, D] * W[M, D, R] -> Mix[B, T, R]", M=M, D=D, R=R)
    return Block(
        "hyper-connections", (weights, vector("hyper/bias", R), vector("hyper/scale", 3), scan("hyper/mix", 2 * M * M * D))
    )


def _collapse(D: Size, M: Size) -> tuple[Op, ...]:
    """What makes one stream of M before the last norm."""
    weights = matmul("hyper_head/weights", "In[B, T, M, D] * W[M, D, R] -> Mix[B, T, R]", M=M, D=D, R=M)
    return weights, vector("hyper_head/bias", M), vector("hyper_head/scale", 1)


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {"deepseek_v4": deepseek_v4}
