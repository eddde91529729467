"""Decoders with experts after the first generation: shared experts, dense layers first, routers that are balanced by a bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, attention, experts, mlp, norm
from scalebook.transformer.configs.families.core import by_kind, finished, heads, lettered, same, spans
from scalebook.transformer.configs.families.shared import no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import norms
from scalebook.transformer.model import Model, around
from scalebook.transformer.ops import FULL, Op, Span, matmul, vector

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


def _first_dense(c: Fields, L: int, first: int) -> list[str]:
    return ["dense" if i < first else "experts" for i in range(L)]


def _extra_layer(c: Fields, D: int, layer: tuple[Block, ...], *, own_tables: bool) -> tuple[Op, ...]:
    """One module that predicts a further token: a layer, a projection of two vectors to one, three norms, and a table and a head of its own."""
    V = c.size("vocab_size")
    ops = [op for block in layer for op in block.ops]
    ops += [matmul("mtp/projection", "In[B, T, F] * W[F, D] -> Out[B, T, D]", F=2 * D, D=D), *norm("mtp/norm", 3 * D)]
    return (*ops, vector("mtp/embedding", V * D), vector("mtp/head", V * D)) if own_tables else tuple(ops)


def glm4_moe(c: Fields) -> Model:
    """GLM 4.5 and 4.6, dots.llm1 and Sarvam: dense layers first, then shared and chosen experts with a balanced router."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("moe_intermediate_size")
    (E, k), first = _choice(c, "n_routed_experts"), c.size("first_k_dense_replace", zero=True)
    shared = c.size("n_shared_experts", default=0, zero=True) * F
    width = c.size("intermediate_size")
    qk = "head" if c.family == "dots1" or c.flag("use_qk_norm", default=False) else ""
    windows = c.family == "dots1" and c.raw("sliding_window", default=None) is not None
    after = c.size("max_window_layers", default=L, zero=True) if windows else L
    attends, seen = spans(c, L, lambda i: "sliding_attention" if i >= after else "full_attention") if c.family == "dots1" else (["full_attention"] * L, {"full_attention": FULL})  # fmt: skip

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        wide = mlp(D=D, F=width) if what == "dense" else experts(D=D, F=F, E=E, k=k, shared=shared, router_bias=True)
        return norms(D, D), _mixer(c, D, qk=qk, o_bias=c.family == "dots1", span=seen[span]), wide

    kinds = [f"{a} {b}" for a, b in zip(attends, _first_dense(c, L, first), strict=True)]
    model = finished(c, by_kind(kinds, made), D)
    n = c.size("num_nextn_predict_layers", "num_mtp_layers", absent=0, zero=True)
    if not n:
        return model
    extra = _extra_layer(c, D, made("full_attention experts"), own_tables=True)
    return replace(model, mtp=extra * n)


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
    attends, seen = spans(c, L, lambda i: "chunked_attention" if turned[i] else "full_attention")
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


def hunyuan(c: Fields) -> Model:
    """Hunyuan with experts: a shared one beside them, norms on each head's queries and keys."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    E, k = _choice(c, "num_experts", "moe_topk")
    return finished(c, same(L, norms(D, D), _mixer(c, D, qk="head"), experts(D=D, F=F, E=E, k=k, shared=F)), D)


def ernie(c: Fields) -> Model:
    """ERNIE 4.5 with experts, on every `moe_layer_interval`th layer between a first and a last one."""
    L, D, F, wide = c.layers(), c.size("hidden_size"), c.size("moe_intermediate_size"), c.size("intermediate_size")
    E, k = _choice(c, "moe_num_experts", "moe_k")
    shared = c.size("moe_num_shared_experts", zero=True) * F
    start, step = c.size("moe_layer_start_index", zero=True), c.size("moe_layer_interval")
    end = c.raw("moe_layer_end_index", default=-1)
    last = L - 1 if end in (-1, None) else c.size("moe_layer_end_index", zero=True)
    N, K, H = heads(c, D)
    b = c.flag("use_bias")
    mixer = attention(D=D, N=N, K=K, H=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b)

    def made(kind: str) -> tuple[Block, ...]:
        if kind == "dense":
            return norms(D, D), mixer, mlp(D=D, F=wide, up_bias=b, down_bias=b)
        return norms(D, D), mixer, experts(D=D, F=F, E=E, k=k, shared=shared, router_bias=True)

    if b and shared:
        c.must("use_bias", False, "biases of shared experts are not counted here")
    kinds = ["experts" if (i + 1) % step == 0 and start <= i <= last else "dense" for i in range(L)]
    return finished(c, by_kind(kinds, made), D)


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

    return finished(c, by_kind([f"{a} {b}" for a, b in zip(attends, _first_dense(c, L, first), strict=True)], made), D)


def exaone_moe(c: Fields) -> Model:
    """EXAONE with experts, and Hunyuan 3: dense layers first, shared and chosen experts, norms on each head's queries and keys."""
    L, D, F, wide = c.layers(), c.size("hidden_size"), c.size("moe_intermediate_size"), c.size("intermediate_size")
    E, k = _choice(c, "num_experts")
    shared = c.size("num_shared_experts", zero=True) * F
    first = c.size("first_k_dense_replace", default=1, zero=True)
    kinds_wide = c.kinds("mlp_layer_types", L, _MLP_KINDS, otherwise=lambda i: "dense" if i < first else "sparse")
    if c.family == "exaone_moe":
        attends, seen = spans(c, L, lettered(c, L, "sliding_window_pattern"))
    else:
        attends, seen = ["full_attention"] * L, {"full_attention": FULL}
    N, K, H = heads(c, D)
    b = c.flag("attention_bias", default=False) if c.family != "exaone_moe" else False
    m = c.flag("mlp_bias", default=False) if c.family != "exaone_moe" else False

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        mixer = attention(D=D, N=N, K=K, H=H, q_norm=H, k_norm=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b, span=seen[span])
        dense = mlp(D=D, F=wide, up_bias=m, down_bias=m)
        biases = (vector("shared_expert/bias", 2 * shared + D),) if m and shared else ()
        chosen = experts(D=D, F=F, E=E, k=k, shared=shared, router_bias=True, extra=biases)
        return norms(D, D), mixer, dense if what == "dense" else chosen

    return finished(c, by_kind([f"{a} {b}" for a, b in zip(attends, kinds_wide, strict=True)], made), D)


def solar_open(c: Fields) -> Model:
    """Solar Open: shared and chosen experts in every layer."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("moe_intermediate_size")
    E, k = _choice(c, "n_routed_experts")
    shared = c.size("n_shared_experts", zero=True) * F
    first = c.size("first_k_dense_replace", default=0, zero=True)
    wide = c.size("intermediate_size") if first else 0

    def made(kind: str) -> tuple[Block, ...]:
        block = mlp(D=D, F=wide) if kind == "dense" else experts(D=D, F=F, E=E, k=k, shared=shared, router_bias=True)
        return norms(D, D), _mixer(c, D, o_bias=False), block

    return finished(c, by_kind(_first_dense(c, L, first), made), D)


def cohere2_moe(c: Fields) -> Model:
    """Command A with experts beside attention, after one norm; windows on three layers of four; the first layers may be dense."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    (E, k), shared = _choice(c, "num_experts"), c.size("num_shared_experts", zero=True) * F
    attends, seen = spans(c, L, lettered(c, L, "sliding_window_pattern"))
    wide = c.size("prefix_dense_intermediate_size", default=F)
    sparse = c.kinds("mlp_layer_types", L, _MLP_KINDS, otherwise=lambda i: "sparse")

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        return (
            norms(D),
            _mixer(c, D, span=seen[span]),
            mlp(D=D, F=wide) if what == "dense" else experts(D=D, F=F, E=E, k=k, shared=shared),
        )

    return finished(c, by_kind([f"{a} {b}" for a, b in zip(attends, sparse, strict=True)], made), D)


def mimo(c: Fields) -> Model:
    """MiMo V2 Flash: values narrower than keys; layers with a window have sinks and twice as many key/value heads; one dense layer first."""
    L, D, F, wide = c.layers(), c.size("hidden_size"), c.size("moe_intermediate_size"), c.size("intermediate_size")
    (E, k), b = _choice(c, "n_routed_experts"), c.flag("attention_bias")
    N, K, H = heads(c, D)
    H_v = c.size("v_head_dim")
    attends, seen = spans(c, L, lambda i: "full_attention" if i == 0 or (i + 1) % 6 == 0 else "sliding_attention")
    sparse = c.kinds("mlp_layer_types", L, _MLP_KINDS, otherwise=lambda i: "sparse" if i else "dense")
    local = c.size("swa_num_key_value_heads", default=2 * K)

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        slides = span == "sliding_attention"
        mixer = attention(
            D=D, N=N, K=local if slides else K, H=H, H_v=H_v, q_bias=b, k_bias=b, v_bias=b, sinks=slides, span=seen[span]
        )  # fmt: skip
        return norms(D, D), mixer, mlp(D=D, F=wide) if what == "dense" else experts(D=D, F=F, E=E, k=k, router_bias=True)

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
    inner = {}
    for name, known in (
        ("attn_config", {"kv_n_heads", "clip_qkv", "rope_theta"}),
        ("ffn_config", {"ffn_hidden_size", "moe_num_experts", "moe_top_k"}),
    ):
        given = c.raw(name, default=None)
        if not isinstance(given, Mapping) or not known & set(given):
            raise ModelError(
                f"the configuration of family 'dbrx': {name} must be a mapping with {', '.join(sorted(known))}; found {given!r:.80}"
            )
        inner[name] = Fields(dict(given), "dbrx")
    ffn = inner["ffn_config"]
    N, K = c.size("n_heads"), inner["attn_config"].size("kv_n_heads")
    if D % N:
        raise ModelError(f"the configuration of family 'dbrx': {N} heads cannot divide a width of {D}")
    block = experts(D=D, F=ffn.size("ffn_hidden_size"), E=ffn.size("moe_num_experts"), k=ffn.size("moe_top_k"))
    layers = same(L, norms(D, D), attention(D=D, N=N, K=K, H=D // N), block)
    V, tied = c.size("vocab_size"), c.flag("tie_word_embeddings", default=False)
    return Model("", "dbrx", D, V, layers, around(D=D, V=V, tied=tied), tied, context=c.maybe("max_seq_len", default=None))


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "afmoe": afmoe,
    "cohere2_moe": cohere2_moe,
    "dbrx": dbrx,
    "dots1": glm4_moe,
    "ernie4_5_moe": ernie,
    "exaone_moe": exaone_moe,
    "flex_olmo": olmoe,
    "glm4_moe": glm4_moe,
    "granitemoe": granitemoe,
    "granitemoe_swa": granitemoe_swa,
    "granitemoeshared": granitemoe,
    "hunyuan_v1_moe": hunyuan,
    "hy_v3": exaone_moe,
    "llama4_text": llama4,
    "mimo_v2_flash": mimo,
    "minimax_m2": minimax_m2,
    "olmoe": olmoe,
    "phimoe": phimoe,
    "sarvam_moe": glm4_moe,
    "solar_open": solar_open,
}
