"""Decoders with experts, each with something of its own: JetMoE, Grok, Arctic, MiniMax M3, Hunyuan 4, dots3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, Cache, attention, experts, latent_attention, mlp
from scalebook.transformer.configs.families.core import by_kind, finished, heads, same
from scalebook.transformer.configs.families.latent import mixture, mla
from scalebook.transformer.configs.families.shared import head_width, like, no_count, switched, wrong
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.indexer import indexer
from scalebook.transformer.layers import norms
from scalebook.transformer.model import Model
from scalebook.transformer.ops import FULL, Op, Span, matmul, mixing, vector

_FED = {"dense", "sparse"}
_FULL, _WINDOW, _INDEXED = "full_attention", "sliding_attention", "indexed_attention"


def jetmoe(c: Fields) -> Model:
    """JetMoE: experts in attention too. Each has queries and an output of its own; all share K keys and values, so that k · K heads attend.

    Router, experts and a bias of width D in either block; keys and values are kept once.
    """
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    K, H = c.size("num_key_value_heads"), c.size("kv_channels")
    E, k = c.size("num_local_experts"), c.size("num_experts_per_tok")
    if c.given("num_attention_heads"):
        c.must("num_attention_heads", k * K, "it is num_experts_per_tok · num_key_value_heads")
    chosen = experts(D=D, F=F, E=E, k=k, extra=(vector("experts/bias", D),))
    mixer = attention(D=D, N=k * K, K=K, H=H)
    own: dict[str, Op] = {
        "attention/q": matmul("attention/q", "In[E, C, D] * W[E, D, F] -> Q[E, C, F]", used=k, of=E, E=E, D=D, F=K * H),
        "attention/o": matmul("attention/o", "Head[E, C, F] * W[E, F, D] -> Out[E, C, D]", used=k, of=E, E=E, D=D, F=K * H),
    }
    router = matmul("attention/router", "In[B, T, D] * W[D, E] -> Route[B, T, E]", D=D, E=E)
    ops = (router, *(own.get(op.part, op) for op in mixer.ops), vector("attention/bias", D))
    return finished(c, same(L, norms(D, D), replace(mixer, ops=ops), chosen), D)


def grok(c: Fields) -> Model:
    """Grok-1: four norms a layer; experts with a gate. Source: xai-org/grok-1, model.py."""
    c.defaults = {"tie_word_embeddings": True}
    L, D, F, N = c.layers(), c.size("hidden_size"), c.size("intermediate_size"), c.size("num_attention_heads")
    K, E, k = c.size("num_key_value_heads"), c.size("num_experts", "num_local_experts"), c.size("num_experts_per_tok")
    no_count(c, "max_attn_value", "attn_output_multiplier")
    mixer = attention(D=D, N=N, K=K, H=head_width(c, D, N))
    return finished(c, same(L, norms(D, D, D, D), mixer, experts(D=D, F=F, E=E, k=k)), D)


def arctic(c: Fields) -> Model:
    """Snowflake Arctic: on every `moe_layer_frequency`-th layer, experts beside a dense MLP of width D with a norm of its own; other layers
    are dense. Source: vllm-project/vllm, model_executor/models/arctic.py."""
    c.defaults = {"tie_word_embeddings": False}
    L, D, F, N = c.layers(), c.size("hidden_size"), c.size("intermediate_size"), c.size("num_attention_heads")
    K, E, k = c.size("num_key_value_heads", default=N), c.size("num_local_experts"), c.size("num_experts_per_tok")
    every, beside = c.size("moe_layer_frequency"), c.flag("parallel_attn_mlp_res", "use_residual")
    if c.given("sliding_window"):
        c.must("sliding_window", None, "its code uses no window")
    no_count(c, "moe_train_capacity_factor", "moe_eval_capacity_factor", "moe_min_capacity", "moe_token_dropping")
    no_count(c, "enable_expert_tensor_parallelism", "quantization")
    mixer, chosen = attention(D=D, N=N, K=K, H=head_width(c, D, N)), experts(D=D, F=F, E=E, k=k)
    sparse = (norms(D, D, D), mixer, mlp(D=D, F=D), chosen) if beside else (norms(D, D), mixer, chosen)
    blocks = {"dense": (norms(D, D), mixer, mlp(D=D, F=F)), "experts": sparse}
    return finished(c, by_kind(["dense" if (i + 1) % every else "experts" for i in range(L)], blocks.__getitem__), D)


# ---- sparse attention --------------------------------------------------------------------------------------------------------


def minimax_m3(c: Fields) -> Model:
    """MiniMax M3: an indexer on sparse layers scores all keys; attention sees the best `index_topk_blocks` blocks of them.

    The indexer's queries, and its one key, are normalised; the key is kept beside the attention's keys and values. The original
    configuration has the sizes in `sparse_attention_config`. Modules for further tokens are not counted: their shape is not published.
    """
    L, D = c.layers(), c.size("hidden_size")
    N, K, H = heads(c, D)
    _unfolded(c)
    switched(c, "sparse_attention_freq", "layer_types", L, (_FULL, "minimax_m3_sparse"))
    switched(c, "sparse_disable_index_value", "layer_types", L, (_FULL, "minimax_m3_sparse"))
    switched(c, "moe_layer_freq", "mlp_layer_types", L, ("dense", "sparse"))
    for name, value, why in (
        ("use_sparse_attention", True, "sparse_attention_config describes the sparse layers"),
        ("use_qk_norm", True, "norms on queries and keys are counted"),
        ("qk_norm_type", "per_head", "norms on each head's queries and keys are counted"),
        ("use_routing_bias", True, "the router's bias is counted"),
        ("n_shared_experts", 1, "one shared expert is counted"),
    ):
        c.must(name, value, why)
    no_count(
        c, "use_gemma_norm", "index_local_blocks", "sparse_init_block", "sparse_score_type", "mtp_transformer_layers", "use_mtp"
    )
    attends = c.kinds("layer_types", L, (_FULL, "minimax_m3_sparse"), otherwise=lambda i: _FULL)
    fed = c.kinds("mlp_layer_types", L, _FED, otherwise=lambda i: "sparse")
    E, k, F = c.size("num_local_experts"), c.size("num_experts_per_tok"), c.size("intermediate_size")
    wide, shared = c.size("dense_intermediate_size"), c.size("shared_intermediate_size", zero=True)
    top = Span("top", c.size("index_topk_blocks") * c.size("index_block_size"))
    scoring = _block_indexer(D, c.size("index_n_heads"), c.size("index_head_dim"))
    full = attention(D=D, N=N, K=K, H=H, q_norm=H, k_norm=H)
    sparse = attention(D=D, N=N, K=K, H=H, q_norm=H, k_norm=H, span=top, extra=scoring.ops)
    mixers = {_FULL: full, "minimax_m3_sparse": replace(sparse, cache=(*full.cache, *scoring.cache))}

    def made(kind: str) -> tuple[Block, ...]:
        what, after = kind.split()
        chosen = mlp(D=D, F=wide) if after == "dense" else experts(D=D, F=F, E=E, k=k, shared=shared, router_bias=True)
        return norms(D, D), mixers[what], chosen

    model = finished(c, by_kind([f"{a} {b}" for a, b in zip(attends, fed, strict=True)], made), D)
    further = c.size("num_mtp_modules", default=0, zero=True)
    return replace(model, not_counted=(f"num_mtp_modules = {further}: not counted",)) if further else model


def _block_indexer(D: int, N: int, H: int) -> Block:
    """N heads score one key of width H per token; the best score in a block is the block's."""
    ops = (
        matmul("index/q", "In[B, T, D] * W[D, N, H] -> Q[B, T, N, H]", D=D, N=N, H=H),
        matmul("index/k", "In[B, T, D] * W[D, H] -> Key[B, T, H]", D=D, H=H),
        vector("index/q_norm", H),
        vector("index/k_norm", H),
        mixing("index/scores", "Q[B, T, N, H] * Key[B, S, H] -> Score[B, N, T, S]", N=N, H=H),
    )
    return Block("indexer", ops, (Cache(1, H, 0, "index"),))


_INDEX = {
    "sparse_num_index_heads": "index_n_heads",
    "sparse_index_dim": "index_head_dim",
    "sparse_block_size": "index_block_size",
    "sparse_topk_blocks": "index_topk_blocks",
    "sparse_local_block": "index_local_blocks",
}


def _unfolded(c: Fields) -> None:
    """The fields of MiniMax M3's `sparse_attention_config` become fields of the configuration."""
    inner: Any = c.raw("sparse_attention_config", default=None)
    if not isinstance(inner, Mapping | None):
        raise wrong(c, "sparse_attention_config", "a mapping of fields")
    for key, value in (inner or {}).items():
        name = _INDEX.get(key, key) if isinstance(key, str) else "a name that is no text"
        if c.config.get(name) not in (None, value):
            raise ModelError(
                f"the configuration of family {c.family!r}: {shown(key)} in sparse_attention_config and {shown(name)} are one thing, "
                "with two values; give one of them"
            )
        c.config[name] = value


def hy_v4(c: Fields) -> Model:
    """Hunyuan 4: latent attention with a gate and sinks, an indexer whose choice serves several layers, and m residual streams.

    Before each block m weights mix the streams to one input and m more spread its result, from all m · D numbers: 2m · mD weights, 2m biases,
    2 scales; before the last norm m · mD, m and 1.
    """
    L, D, N, m = c.layers(), c.size("hidden_size"), c.size("num_attention_heads"), c.size("hc_mult")
    c.kinds("layer_types", L, (_INDEXED,), otherwise=lambda i: _INDEXED)
    scores = c.kinds("indexer_types", L, ("full", "shared"), otherwise=lambda i: "shared" if i and (i - 1) % 4 else "full")
    if scores[0] != "full":
        raise ModelError(
            f"the configuration of family {c.family!r}: the first layer's indexer is shared, but there is none before it"
        )
    fed = c.kinds("mlp_layer_types", L, _FED, otherwise=lambda i: "sparse" if i else "dense")
    span, own = Span("top", c.size("index_topk")), _indexer(c, D)
    gate = matmul("attention/gate", "In[B, T, D] * W[D, N, H] -> Gate[B, T, N, H]", D=D, N=N, H=c.size("v_head_dim"))
    mixers = {kind: mla(c, D, N, span=span, index=own if kind == "full" else None) for kind in ("full", "shared")}
    mixers = {kind: replace(x, ops=(*x.ops, gate, vector("attention/sinks", N))) for kind, x in mixers.items()}
    streams = (*_streams("streams", D, m, 2 * m, 2), *_streams("streams", D, m, 2 * m, 2))
    width = c.size("intermediate_size")

    def made(kind: str) -> tuple[Block, ...]:
        what, after = kind.split()
        block = mlp(D=D, F=width) if after == "dense" else mixture(c, D, router_bias=True)
        return Block("norm", (*norms(D, D).ops, *streams)), mixers[what], block

    kinds = [f"{a} {b}" for a, b in zip(scores, fed, strict=True)]
    return finished(c, by_kind(kinds, made), D, extra=_streams("streams", D, m, m, 1))


def _indexer(c: Fields, D: int) -> Block:
    return indexer(D=D, N=c.size("index_n_heads"), H=c.size("index_head_dim"), q_rank=c.size("q_lora_rank"))


def _streams(name: str, D: int, m: int, out: int, scales: int) -> tuple[Op, ...]:
    mix = matmul(f"{name}/weight", "In[B, T, D] * W[D, R] -> Mix[B, T, R]", D=m * D, R=out)
    return mix, vector(f"{name}/bias", out), vector(f"{name}/scale", scales)


def dots3(c: Fields) -> Model:
    """The text model of dots3: latent attention of two shapes, one with an indexer, one with a window (`swa_` fields); a gate for each head.

    Of the layers that are not named, the first two and every fourth have the indexer, the others the window.
    """
    like(c, "dots3_note_text")
    L, D = c.layers(), c.size("hidden_size")
    c.must("per_layer_config", None, "the swa_ fields describe layers with a window")
    dsa, windows = c.flag("use_dsa", default=True), c.flag("use_sliding_window", default=True)
    every = _INDEXED if dsa else _FULL
    attends = c.kinds(
        "layer_types", L, (_FULL, _WINDOW, _INDEXED), otherwise=lambda i: _WINDOW if windows and i > 1 and i % 4 != 1 else every
    )
    attends = [kind if kind == _WINDOW else every for kind in attends]
    first, freq = c.size("first_k_dense_replace", default=1, zero=True), c.raw("moe_layer_freq", default=1)
    if isinstance(freq, list | tuple):
        switched(c, "moe_layer_freq", "mlp_layer_types", L, ("dense", "sparse"))
    step = 1 if isinstance(freq, list | tuple) else c.size("moe_layer_freq", default=1)
    fed = c.kinds("mlp_layer_types", L, _FED, otherwise=lambda i: "sparse" if i >= first and i % step == 0 else "dense")
    wide, F, E = c.size("intermediate_size"), c.size("moe_intermediate_size"), c.size("n_routed_experts")
    k, each = c.size("num_experts_per_tok"), _either(c, "moe_shared_expert_intermediate_size", "shared_experts_intermediate_size")
    chosen = experts(D=D, F=F, E=E, k=k, shared=c.size("n_shared_experts") * each, router_bias=True)
    mixers = {kind: _dots_mixer(c, D, kind) for kind in dict.fromkeys(attends)}
    no_count(c, "head_dim", "num_key_value_heads", "sliding_window", "sliding_window_size", "mlp_bias", "swa_rope_theta")
    no_count(c, *(f"swa_{name}" for name in ("num_attention_heads", "num_key_value_heads", "q_lora_rank", "kv_lora_rank")))
    no_count(c, *(f"swa_{name}" for name in ("head_dim", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")))

    def made(kind: str) -> tuple[Block, ...]:
        what, after = kind.split()
        return norms(D, D), mixers[what], mlp(D=D, F=wide) if after == "dense" else chosen

    return finished(c, by_kind([f"{a} {b}" for a, b in zip(attends, fed, strict=True)], made), D)


def _either(c: Fields, name: str, other: str) -> int:
    return c.size(name) if c.given(name) else c.size(other)


def _dots_mixer(c: Fields, D: int, kind: str) -> Block:
    """Latent attention with one more norm, on the part of the keys that is turned, and a gate for each head."""
    bias = c.flag("attention_bias")
    if kind == _WINDOW:
        N, q_rank = c.size("swa_num_attention_heads", default=64), c.size("swa_q_lora_rank", default=1024)
        H, nope = c.size("swa_head_dim", default=256), c.size("swa_qk_nope_head_dim", default=192)
        rope, v = c.size("swa_qk_rope_head_dim", default=max(H - nope, 1)), c.size("swa_v_head_dim", default=128)
        if nope + rope != H:
            raise wrong(c, "swa_head_dim", "swa_qk_nope_head_dim + swa_qk_rope_head_dim")
        kv_rank = c.size("swa_kv_lora_rank", default=1024)
        span = Span("window", c.size("sliding_window", "sliding_window_size", default=512))
    else:
        N, q_rank, kv_rank = c.size("num_attention_heads"), c.size("q_lora_rank"), c.size("kv_lora_rank")
        nope, rope, v = c.size("qk_nope_head_dim"), c.size("qk_rope_head_dim"), c.size("v_head_dim")
        span = Span("top", c.size("index_topk")) if kind == _INDEXED else FULL
    extra = (
        vector("attention/k_norm", rope),
        matmul("attention/gate", "In[B, T, D] * W[D, N] -> Gate[B, T, N]", D=D, N=N),
    )
    return latent_attention(
        D=D,
        N=N,
        q_rank=q_rank,
        kv_rank=kv_rank,
        nope=nope,
        rope=rope,
        v=v,
        a_bias=bias,
        o_bias=bias,
        span=span,
        index=_indexer(c, D) if kind == _INDEXED else None,
        extra=extra,
    )


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "arctic": arctic,
    "dots3_note": dots3,
    "dots3_note_text": dots3,
    "grok-1": grok,
    "hy_v4": hy_v4,
    "jetmoe": jetmoe,
    "minimax_m3_vl_text": minimax_m3,
}
