"""Decoders with experts whose first configurations have other fields than transformers: Hunyuan, ERNIE, EXAONE, MiMo, Qwen 3 VL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scalebook.transformer.blocks import Block, attention, experts, mlp
from scalebook.transformer.configs.families.core import by_kind, finished, heads, lettered, qwen_experts, same, spans
from scalebook.transformer.configs.families.latent import further_tokens
from scalebook.transformer.configs.families.shared import no_count, switched, wrong
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import norms
from scalebook.transformer.model import Model
from scalebook.transformer.ops import FULL, Op, Span, vector

_FED = {"dense", "sparse"}
_ALL, _WINDOW = "full_attention", "sliding_attention"


def _uniform(c: Fields, name: str, L: int, *others: str, default: int | None = None) -> int:
    """One size, or a list of L equal ones."""
    value = c.raw(name, *others, default=default)
    if not isinstance(value, list | tuple):
        return c.size(name, *others, default=default)
    if len(value) != L or any(v != value[0] for v in value):
        raise wrong(c, name, f"one number, or a list of it for each of the {L} layers")
    c.config[name] = value[0]
    return c.size(name)


def _pairs(a: list[str], b: list[str]) -> list[str]:
    return [f"{x} {y}" for x, y in zip(a, b, strict=True)]


def qwen3_vl_moe(c: Fields) -> Model:
    """The text model of Qwen 3 VL and Omni with experts: that of Qwen 3, without windows. What is not given is not assumed."""
    c.defaults = {"attention_bias": False, "decoder_sparse_step": 1}
    L, D, b = c.layers(), c.size("hidden_size"), c.flag("attention_bias")
    N, K, H = heads(c, D)
    c.must("sliding_window", None, "no windows are counted")
    no_count(c, "use_sliding_window")
    mixer = attention(D=D, N=N, K=K, H=H, q_norm=H, k_norm=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b)
    return qwen_experts(c, L, D, ["attention"] * L, {"attention": mixer})


def hunyuan(c: Fields) -> Model:
    """Hunyuan with experts: a shared one beside them, norms on each head's queries and keys."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    if c.given("attention_head_dim"):
        c.config.setdefault("head_dim", c.size("attention_head_dim"))
    N, K, H = heads(c, D)
    b = c.flag("attention_bias")
    for name, value, why in (
        ("use_qk_norm", True, "norms on queries and keys are counted"),
        ("use_cla", False, "every layer has keys and values of its own"),
        ("use_mla", False, "keys and values are kept"),
        ("use_mixed_mlp_moe", True, "a shared expert is counted"),
        ("moe_layer_num_skipped", 0, "every layer has experts"),
        ("mlp_bias", False, "no biases in experts are counted"),
    ):
        c.must(name, value, why)
    no_count(c, "cla_share_factor", "org_vocab_size", "num_media_embeds", "dense_list", "pool_type", "class_num", "norm_type")
    E, k = _uniform(c, "num_experts", L), _uniform(c, "moe_topk", L)
    wide, shared = _uniform(c, "moe_intermediate_size", L, default=F), F * _uniform(c, "num_shared_expert", L, default=1)
    mixer = attention(D=D, N=N, K=K, H=H, q_norm=H, k_norm=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b)
    return finished(c, same(L, norms(D, D), mixer, experts(D=D, F=wide, E=E, k=k, shared=shared)), D)


def ernie(c: Fields) -> Model:
    """ERNIE 4.5 with experts, on every `moe_layer_interval`-th layer between a first and a last one. A further token is predicted by a
    dense layer. `use_bias` is on all but the router and the chosen experts."""
    L, D, F, wide = c.layers(), c.size("hidden_size"), c.size("moe_intermediate_size"), c.size("intermediate_size")
    E, k, b = c.size("moe_num_experts"), c.size("moe_k"), c.flag("use_bias")
    shared = c.size("moe_num_shared_experts", zero=True) * F
    start, step = c.size("moe_layer_start_index", zero=True), c.size("moe_layer_interval")
    last = L - 1 if c.raw("moe_layer_end_index") in (-1, None) else c.size("moe_layer_end_index", zero=True)
    c.must("moe_use_aux_free", True, "the router's bias is counted")
    c.must("use_rmsnorm", True, "its norms have no biases")
    no_count(c, "moe_capacity", "moe_gate", "moe_gate_act", "is_quantized")
    N, K, H = heads(c, D)
    mixer = attention(D=D, N=N, K=K, H=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b)
    dense = (norms(D, D), mixer, mlp(D=D, F=wide, up_bias=b, down_bias=b))
    beside = mlp(D=D, F=shared, up_bias=b, down_bias=b, name="shared_expert").ops if shared else ()
    biases = tuple(op for op in beside if op.kind == "vector")
    chosen = (norms(D, D), mixer, experts(D=D, F=F, E=E, k=k, shared=shared, router_bias=True, extra=biases))
    kinds = ["experts" if (i + 1) % step == 0 and start <= i <= last else "dense" for i in range(L)]
    model = finished(c, by_kind(kinds, {"dense": dense, "experts": chosen}.__getitem__), D, head_bias=b)
    return replace(model, mtp=further_tokens(c, dense, D, scales=2))


def exaone_moe(c: Fields) -> Model:
    """EXAONE with experts: windows by a pattern, dense layers first, norms on each head's queries and keys, no biases. Further tokens are
    predicted by dense layers, which share one projection and three norms."""
    L, D = c.layers(), c.size("hidden_size")
    N, K, H = heads(c, D)
    first = c.size("first_k_dense_replace", default=1, zero=True)
    switched(c, "is_moe_layer", "mlp_layer_types", L, ("dense", "sparse"))
    no_count(c, "first_last_k_dense_replace")
    fed = c.kinds("mlp_layer_types", L, _FED, otherwise=lambda i: "sparse" if i >= first else "dense")
    if c.given("first_last_k_dense_replace"):
        c.must("first_last_k_dense_replace", fed.count("dense"), "mlp_layer_types says how many layers are dense")
    attends, seen = spans(c, L, lettered(c, L, "sliding_window_pattern"))
    no_count(c, "sliding_window_pattern")
    dense, chosen = mlp(D=D, F=c.size("intermediate_size")), _balanced(c, D, "num_experts", "num_shared_experts")

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        return (
            norms(D, D),
            attention(D=D, N=N, K=K, H=H, q_norm=H, k_norm=H, span=seen[span]),
            dense if what == "dense" else chosen,
        )

    model = finished(c, by_kind(_pairs(attends, fed), made), D)
    extra = further_tokens(c, made(f"{_ALL} dense"), D)
    joint = ("mtp/project", "mtp/norms")
    return replace(model, mtp=(*extra[:2], *(op for op in extra[2:] if op.part not in joint)))


def _balanced(c: Fields, D: int, E: str, shared: str, extra: tuple[Op, ...] = ()) -> Block:
    """Experts with a router that a bias balances, and `shared` ones of the same width."""
    F, k = c.size("moe_intermediate_size"), c.size("num_experts_per_tok")
    return experts(D=D, F=F, E=c.size(E), k=k, shared=c.size(shared, default=0, zero=True) * F, router_bias=True, extra=extra)


def hy_v3(c: Fields) -> Model:
    """Hunyuan 3: a dense layer first, norms on each head's queries and keys. A further token is predicted by a layer with experts."""
    L, D, b, m = c.layers(), c.size("hidden_size"), c.flag("attention_bias"), c.flag("mlp_bias")
    N, K, H = heads(c, D)
    c.must("qk_norm", True, "norms on queries and keys are counted")
    c.must("moe_router_enable_expert_bias", True, "the router's bias is counted")
    no_count(c, "moe_router_use_sigmoid")
    first = c.size("first_k_dense_replace", default=1, zero=True)
    fed = c.kinds("mlp_layer_types", L, _FED, otherwise=lambda i: "sparse" if i >= first else "dense")
    shared = c.size("num_shared_experts", zero=True) * c.size("moe_intermediate_size")
    biases = (vector("shared_expert/bias", 2 * shared + D),) if m and shared else ()
    mixer = attention(D=D, N=N, K=K, H=H, q_norm=H, k_norm=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b)
    blocks = {
        "dense": (norms(D, D), mixer, mlp(D=D, F=c.size("intermediate_size"), up_bias=m, down_bias=m)),
        "sparse": (norms(D, D), mixer, _balanced(c, D, "num_experts", "num_shared_experts", biases)),
    }
    return replace(finished(c, by_kind(fed, blocks.__getitem__), D), mtp=further_tokens(c, blocks["sparse"], D))


def mimo(c: Fields) -> Model:
    """MiMo V2 Flash: values narrower than keys; layers with a window have sinks and, unless said otherwise, twice as many key/value heads.

    `sliding_window_size` is what a query sees before itself, `sliding_window` counts itself. A further token is predicted by a dense layer
    with a window.
    """
    L, D, b = c.layers(), c.size("hidden_size"), c.flag("attention_bias")
    N, K, H = heads(c, D)
    switched(c, "hybrid_layer_pattern", "layer_types", L, (_ALL, _WINDOW))
    switched(c, "moe_layer_freq", "mlp_layer_types", L, ("dense", "sparse"))
    c.must("hybrid_block_size", None, "hybrid_layer_pattern or layer_types says which layers have a window")
    c.must("n_shared_experts", None, "no shared expert is counted")
    c.must("topk_method", "noaux_tc", "a router with a bias is counted")
    c.must("use_qk_norm", False, "no norms on queries and keys are counted")
    c.must("mlp_bias", False, "no biases in the MLP are counted")
    no_count(c, "attention_chunk_size")
    attends = c.kinds("layer_types", L, (_ALL, _WINDOW), otherwise=lambda i: _WINDOW if i and (i + 1) % 6 else _ALL)
    before = c.maybe("sliding_window_size", default=None)
    window = Span("window", c.size("sliding_window") if before is None else before + 1)
    no_count(c, "sliding_window")
    fed = c.kinds("mlp_layer_types", L, _FED, otherwise=lambda i: "sparse" if i else "dense")
    V = c.size("v_head_dim")
    local = (c.size("swa_num_attention_heads", default=N), c.size("swa_num_key_value_heads", default=2 * K))
    wide = (c.size("swa_head_dim", default=H), c.size("swa_v_head_dim", default=V))
    sinks = {
        _ALL: c.flag("add_full_attention_sink_bias", default=False),
        _WINDOW: c.flag("add_swa_attention_sink_bias", default=True),
    }

    def attend(kind: str) -> Block:
        (n, k), (h, v) = (local, wide) if kind == _WINDOW else ((N, K), (H, V))
        span = window if kind == _WINDOW else FULL
        return attention(D=D, N=n, K=k, H=h, H_v=v, q_bias=b, k_bias=b, v_bias=b, sinks=sinks[kind], span=span)

    dense, chosen = mlp(D=D, F=c.size("intermediate_size")), _balanced(c, D, "n_routed_experts", "n_shared_experts")

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        return norms(D, D), attend(span), dense if what == "dense" else chosen

    model = finished(c, by_kind(_pairs(attends, fed), made), D)
    return replace(model, mtp=further_tokens(c, made(f"{_WINDOW} dense"), D))


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "ernie4_5_moe": ernie,
    "exaone_moe": exaone_moe,
    "hunyuan_v1_moe": hunyuan,
    "hy_v3": hy_v3,
    "mimo_v2_flash": mimo,
    "qwen3_omni_moe_text": qwen3_vl_moe,
    "qwen3_vl_moe_text": qwen3_vl_moe,
}
