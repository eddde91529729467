"""Decoders with experts after the first generation: shared experts, dense layers first, routers that are balanced by a bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, attention, experts, mlp
from scalebook.transformer.configs.families.core import by_kind, finished, heads, lettered, same, spans
from scalebook.transformer.configs.families.latent import further_tokens
from scalebook.transformer.configs.families.shared import head_width, no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import MOST_LAYERS, around, norms
from scalebook.transformer.model import Model
from scalebook.transformer.ops import FULL, Span

_MLP_KINDS = {"dense", "sparse", "moe"}


def _mixer(
    c: Fields, D: int, *, qk: str = "", o_bias: bool = True, span: Span = FULL, sinks: bool = False, gate: int = 0
) -> Block:
    """Attention with `attention_bias`; norms on each head's queries and keys ("head") or on all of them at once ("all")."""
    N, K, H = heads(c, D)
    b = c.flag("attention_bias")
    scales = {"": (0, 0), "head": (H, H), "all": (N * H, K * H)}[qk]
    return attention(
        D=D, N=N, K=K, H=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b and o_bias,
        q_norm=scales[0], k_norm=scales[1], span=span, sinks=sinks, gate=gate,
    )  # fmt: skip


def _choice(c: Fields, E: str, k: str = "num_experts_per_tok") -> tuple[int, int]:
    return c.size(E), c.size(k)


def _first_dense(L: int, first: int) -> list[str]:
    return ["dense" if i < first else "experts" for i in range(L)]


def glm4_moe(c: Fields) -> Model:
    """GLM 4.5 and 4.6, and Sarvam: dense layers first, then shared and chosen experts with a balanced router. The module that predicts a
    further token has a table and a head of its own in the published checkpoints."""
    qk = "head" if c.flag("use_qk_norm", default=False) else ""
    return _dense_first(c, lambda D, span: _mixer(c, D, qk=qk, o_bias=False, span=span))


def dots1(c: Fields) -> Model:
    """dots.llm1: norms on each head's queries and keys; a window from layer `max_window_layers` on."""
    after = c.size("max_window_layers", default=MOST_LAYERS, zero=True)
    if c.raw("sliding_window", default=None) is None:
        after = MOST_LAYERS
    c.must("moe_layer_freq", 1, "experts are in every layer after the dense ones")
    c.must("topk_method", "noaux_tc", "a router with a bias is counted")
    return _dense_first(c, lambda D, span: _mixer(c, D, qk="head", span=span), after=after)


def _dense_first(c: Fields, mixer: Callable[[int, Span], Block], *, after: int | None = None) -> Model:
    """Dense layers, then experts; windows `after` so many layers, unless `layer_types` says otherwise; none where `after` is None."""
    L, D, F, width = c.layers(), c.size("hidden_size"), c.size("moe_intermediate_size"), c.size("intermediate_size")
    (E, k), first = _choice(c, "n_routed_experts"), c.size("first_k_dense_replace", zero=True)
    shared = c.size("n_shared_experts", default=0, zero=True) * F
    attends, seen = ["full_attention"] * L, {"full_attention": FULL}
    if after is not None:
        attends, seen = spans(c, L, lambda i: "sliding_attention" if i >= after else "full_attention")

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        wide = mlp(D=D, F=width) if what == "dense" else experts(D=D, F=F, E=E, k=k, shared=shared, router_bias=True)
        return norms(D, D), mixer(D, seen[span]), wide

    kinds = [f"{a} {b}" for a, b in zip(attends, _first_dense(L, first), strict=True)]
    model = finished(c, by_kind(kinds, made), D)
    return replace(model, mtp=further_tokens(c, made(f"{attends[-1]} experts"), D, own=("embedding", "head")))


def minimax_m2(c: Fields) -> Model:
    """MiniMax M2: experts in every layer, norms over all queries and all keys. Its modules for further tokens are not counted."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    E, k = _choice(c, "num_local_experts")
    N, K, H = heads(c, D)
    c.must("use_qk_norm", True, "its norms on queries and keys are counted")
    c.must("qk_norm_type", "per_layer", "norms over all queries and all keys are counted")
    c.must("use_routing_bias", True, "the router's bias is counted")
    c.must("shared_intermediate_size", 0, "no shared expert is counted")
    kinds = c.raw("attn_type_list", default=None)
    if kinds is not None and (not isinstance(kinds, list | tuple) or len(kinds) != L or any(v != 1 for v in kinds)):
        raise ModelError(
            f"the configuration of family 'minimax_m2': attn_type_list must be {L} times 1, full attention; found {shown(kinds)}"
        )
    further = c.flag("use_mtp", default=False) and c.size("num_mtp_modules", default=0, zero=True)
    no_count(c, "num_mtp_modules", "mtp_transformer_layers", "mlp_intermediate_size", "shared_moe_mode")
    model = finished(
        c,
        same(
            L,
            norms(D, D),
            attention(D=D, N=N, K=K, H=H, q_norm=N * H, k_norm=K * H),
            experts(D=D, F=F, E=E, k=k, router_bias=True),
        ),
        D,
    )
    return replace(model, not_counted=(f"num_mtp_modules = {further}: not counted",)) if further else model


def llama4(c: Fields) -> Model:
    """Llama 4: chunked attention on three layers of four, experts on every `interleave_moe_layer_step`th, one shared expert there."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    (E, k), wide = _choice(c, "num_local_experts"), c.size("intermediate_size_mlp")
    no_rope = c.raw("no_rope_layers", default=None)
    interval = c.size("no_rope_layer_interval", default=4)
    if no_rope and (not isinstance(no_rope, list | tuple) or len(no_rope) != L or any(v not in (0, 1) for v in no_rope)):
        raise ModelError(
            f"the configuration of family 'llama4_text': no_rope_layers must be a list of 0 or 1 for each of the {L} layers"
        )
    turned = list(no_rope) if no_rope else [int((i + 1) % interval != 0) for i in range(L)]
    chunks = c.raw("attention_chunk_size") is not None
    attends, seen = spans(c, L, lambda i: "chunked_attention" if turned[i] and chunks else "full_attention")
    given, step = c.raw("moe_layers", default=None), c.size("interleave_moe_layer_step")
    chosen = c.places("moe_layers", L) if given is not None else set(range(step - 1, L, step))
    kinds = [f"{a} {'experts' if i in chosen else 'dense'}" for i, a in enumerate(attends)]

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        block = mlp(D=D, F=wide) if what == "dense" else experts(D=D, F=F, E=E, k=k, shared=F)
        return norms(D, D), _mixer(c, D, span=seen[span]), block

    return finished(c, by_kind(kinds, made), D)


def olmoe(c: Fields) -> Model:
    """OLMoE, and FlexOlmo, whose norms come after the blocks: norms over all queries and all keys, experts in every layer."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    E, k = _choice(c, "num_experts")
    if D % c.size("num_attention_heads"):
        raise ModelError(f"the configuration of family {c.family!r}: num_attention_heads must divide hidden_size, {D}")
    return finished(c, same(L, norms(D, D), _mixer(c, D, qk="all"), experts(D=D, F=F, E=E, k=k)), D)


def phimoe(c: Fields) -> Model:
    """Phi 3.5 MoE: LayerNorms with biases."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    E, k = _choice(c, "num_local_experts")
    window = c.maybe("sliding_window", default=None)
    span = FULL if window is None else Span("window", window)
    mixer = _mixer(c, D, span=span)
    bias = c.flag("lm_head_bias")
    return finished(c, same(L, norms(D, D, bias=True), mixer, experts(D=D, F=F, E=E, k=k)), D, norm_bias=True, head_bias=bias)


def granitemoe(c: Fields) -> Model:
    """Granite 3 with experts, with a shared one where the family has it."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    E, k = _choice(c, "num_local_experts")
    shared = 0 if c.family == "granitemoe" else c.size("shared_intermediate_size", zero=True)
    return finished(c, same(L, norms(D, D), _mixer(c, D), experts(D=D, F=F, E=E, k=k, shared=shared)), D)


def afmoe(c: Fields) -> Model:
    """AFMoE (Arcee Trinity): gated attention with windows on three layers of four, four norms a layer, shared and chosen experts."""
    L, D, F, wide = c.layers(), c.size("hidden_size"), c.size("moe_intermediate_size"), c.size("intermediate_size")
    (E, k), first = _choice(c, "num_experts"), c.size("num_dense_layers", zero=True)
    shared, every = c.size("num_shared_experts", zero=True) * F, c.size("global_attn_every_n_layers")
    N, _, H = heads(c, D)
    attends, seen = spans(c, L, lambda i: "sliding_attention" if (i + 1) % every else "full_attention")
    c.read.add("sliding_window")

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        block = mlp(D=D, F=wide) if what == "dense" else experts(D=D, F=F, E=E, k=k, shared=shared, router_bias=True)
        return norms(D, D, D, D), _mixer(c, D, qk="head", span=seen[span], gate=N * H), block

    return finished(c, by_kind([f"{a} {b}" for a, b in zip(attends, _first_dense(L, first), strict=True)], made), D)


def solar_open(c: Fields) -> Model:
    """Solar Open: shared and chosen experts in every layer."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("moe_intermediate_size")
    E, k = _choice(c, "n_routed_experts")
    shared = c.size("n_shared_experts", zero=True) * F
    first = c.size("first_k_dense_replace", default=0, zero=True)
    wide = c.size("intermediate_size") if first else 0
    no_count(c, "intermediate_size")
    c.must("use_qk_norm", False, "no norms on queries and keys are counted")

    def made(kind: str) -> tuple[Block, ...]:
        block = mlp(D=D, F=wide) if kind == "dense" else experts(D=D, F=F, E=E, k=k, shared=shared, router_bias=True)
        return norms(D, D), _mixer(c, D, o_bias=False), block

    return finished(c, by_kind(_first_dense(L, first), made), D)


def cohere2_moe(c: Fields) -> Model:
    """Command A with experts beside attention, after one norm; windows on three layers of four; the first layers may be dense."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    (E, k), shared = _choice(c, "num_experts"), c.size("num_shared_experts", zero=True) * F
    first, before = c.size("first_k_dense_replace", default=0, zero=True), c.size("prefix_dense_sliding_window_pattern")
    after = lettered(c, L, "sliding_window_pattern")
    attends, seen = spans(
        c, L, lambda i: after(i - first) if i >= first else "sliding_attention" if (i + 1) % before else "full_attention"
    )
    wide = c.size("prefix_dense_intermediate_size", default=F)
    sparse = c.kinds("mlp_layer_types", L, _MLP_KINDS, otherwise=lambda i: "sparse" if i >= first else "dense")

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        return (
            norms(D),
            _mixer(c, D, span=seen[span]),
            mlp(D=D, F=wide) if what == "dense" else experts(D=D, F=F, E=E, k=k, shared=shared),
        )

    return finished(c, by_kind([f"{a} {b}" for a, b in zip(attends, sparse, strict=True)], made), D)


def granitemoe_swa(c: Fields) -> Model:
    """Granite with experts, windows on three layers of four, and sinks."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    (E, k), shared = _choice(c, "num_local_experts"), c.size("shared_intermediate_size", zero=True, default=0)
    kinds, seen = spans(c, L, lambda i: "sliding_attention" if i % 4 else "full_attention")

    def made(kind: str) -> tuple[Block, ...]:
        return norms(D, D), _mixer(c, D, span=seen[kind], sinks=True), experts(D=D, F=F, E=E, k=k, shared=shared)

    return finished(c, by_kind(kinds, made), D)


def dbrx(c: Fields) -> Model:
    """DBRX: sizes of attention and experts in mappings of their own."""
    L, D = c.layers("n_layers"), c.size("d_model")
    N, attends = c.size("n_heads"), _inner(c, "attn_config", {"kv_n_heads": 1})
    K = attends.size("kv_n_heads")
    no_count(attends, "attn_pdrop", "rope_theta", "clip_qkv")
    fed = _inner(c, "ffn_config", {"ffn_hidden_size": 3584, "moe_num_experts": 4, "moe_top_k": 1})
    F, E, k = fed.size("ffn_hidden_size"), fed.size("moe_num_experts"), fed.size("moe_top_k")
    no_count(fed, "hidden_size", "d_model", "ffn_act_fn", "moe_jitter_eps", "moe_loss_weight", "moe_normalize_expert_weights")
    no_count(fed, "uniform_expert_assignment")
    for inner in (attends, fed):
        inner.rest()
        c.assumed += inner.assumed
    c.must("tie_word_embeddings", False, "no DBRX is tied")
    layers = same(L, norms(D, D), attention(D=D, N=N, K=K, H=head_width(c, D, N)), experts(D=D, F=F, E=E, k=k))
    V, context = c.size("vocab_size"), c.context("max_seq_len")
    return Model("", "dbrx", D, V, layers, around(D=D, V=V, tied=False), False, context=context)


def _inner(c: Fields, name: str, defaults: Mapping[str, int]) -> Fields:
    """The fields of a mapping inside the configuration, with the defaults of its own class."""
    given = c.raw(name, default=None)
    if not isinstance(given, Mapping | None):
        raise ModelError(f"the configuration of family {c.family!r}: {name} must be a mapping of fields; found {shown(given)}")
    inner = Fields(given or {}, c.family)
    inner.defaults = defaults
    no_count(inner, "model_type", "tie_word_embeddings", "top_k")  # what every configuration object was once written with
    return inner


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "afmoe": afmoe,
    "cohere2_moe": cohere2_moe,
    "dbrx": dbrx,
    "dots1": dots1,
    "flex_olmo": olmoe,
    "glm4_moe": glm4_moe,
    "granitemoe": granitemoe,
    "granitemoe_swa": granitemoe_swa,
    "granitemoeshared": granitemoe,
    "llama4_text": llama4,
    "minimax_m2": minimax_m2,
    "olmoe": olmoe,
    "phimoe": phimoe,
    "sarvam_moe": glm4_moe,
    "solar_open": solar_open,
}
