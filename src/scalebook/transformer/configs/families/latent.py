"""DeepSeek's generation: multi-head latent attention, dense layers first and then experts, some with an indexer for sparse attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from scalebook.errors import ModelError
from scalebook.transformer.blocks import Block, attention, experts, latent_attention, mlp
from scalebook.transformer.configs.families.core import finished
from scalebook.transformer.configs.families.shared import head_width, like, no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.indexer import indexer
from scalebook.transformer.layers import Layer, around, norms, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import FULL, Op, Span, matmul, vector

_MOST_MTP = 100


# ---- attention ---------------------------------------------------------------------------------------------------------------


def mla(c: Fields, D: int, N: int, *, v: int | None = None, span: Span = FULL, index: Block | None = None) -> Block:
    """Latent attention with the fields' usual names; `attention_bias` is on the down-projections and on the result."""
    nope, rope = c.size("qk_nope_head_dim"), c.size("qk_rope_head_dim")
    if c.given("qk_head_dim"):
        c.must("qk_head_dim", nope + rope, "it is qk_nope_head_dim + qk_rope_head_dim")
    no_count(c, "qk_head_dim", "head_dim", "q_head_dim", "num_key_value_heads")
    kv_rank, q_rank, bias = c.size("kv_lora_rank"), c.maybe("q_lora_rank"), c.flag("attention_bias")
    return latent_attention(
        D=D,
        N=N,
        kv_rank=kv_rank,
        nope=nope,
        rope=rope,
        v=c.size("v_head_dim") if v is None else v,
        q_rank=q_rank,
        a_bias=bias,
        o_bias=bias,
        span=span,
        index=index,
    )


def _indexer(c: Fields, D: int) -> Block:
    return indexer(D=D, N=c.size("index_n_heads"), H=c.size("index_head_dim"), q_rank=c.size("q_lora_rank"))


def indexer_types(c: Fields, L: int) -> list[str]:
    """Which layers score the keys themselves ("full") and which take the choice of the last that did ("shared").

    `indexer_types` or `index_topk_pattern` say it layer by layer ("FSSS"); else every `index_topk_freq`-th does, from layer
    `index_skip_topk_offset` − 1 on, and all before.
    """
    every, offset = c.size("index_topk_freq", default=1), c.size("index_skip_topk_offset", default=2, zero=True)
    pattern = c.raw("index_topk_pattern", default=None)
    if isinstance(pattern, str):
        pattern = [{"F": "full", "S": "shared"}.get(letter, letter) for letter in pattern]
    if pattern is not None and "indexer_types" not in c.config:
        c.config["indexer_types"] = pattern
    no_count(c, "use_index_cache", "index_share_for_mtp_iteration", "indexer_rope_interleave")
    found = c.kinds(
        "indexer_types", L, ("full", "shared"), otherwise=lambda i: "shared" if max(i - offset + 1, 0) % every else "full"
    )
    if found[0] != "full":
        raise ModelError(
            f"the configuration of family {c.family!r}: the first layer's indexer is shared, but there is none before it"
        )
    return found


def is_null(c: Fields, name: str) -> bool:
    """Whether a field is there and null, which is another thing than absent."""
    return name in c.config and c.config[name] is None


# ---- feed-forward ------------------------------------------------------------------------------------------------------------


def mixture(c: Fields, D: int, *, router_bias: bool, bias: bool = False, extra: tuple[Op, ...] = ()) -> Block:
    """Experts, and shared ones as one expert of their width together; `bias` is on the shared ones only."""
    F, E, k = c.size("moe_intermediate_size"), c.size("n_routed_experts", "num_experts"), c.size("num_experts_per_tok")
    shared = 0 if is_null(c, "n_shared_experts") else c.size("n_shared_experts", zero=True) * F
    if router_bias and c.given("topk_method"):
        c.must("topk_method", "noaux_tc", "a router without a bias is another model")
    if bias and shared:
        with_bias = mlp(D=D, F=shared, up_bias=True, down_bias=True, name="shared_expert")
        extra = (*(op for op in with_bias.ops if op.kind == "vector"), *extra)
    return experts(D=D, F=F, E=E, k=k, shared=shared, router_bias=router_bias, extra=extra)


def mlp_types(c: Fields, L: int, *, first: int | None = None) -> list[str]:
    """Which layers have experts ("sparse"): `mlp_layer_types`, else every `moe_layer_freq`-th from `first_k_dense_replace` on."""
    dense = (
        c.size("first_k_dense_replace", zero=True) if first is None else c.size("first_k_dense_replace", default=first, zero=True)
    )
    every = c.size("moe_layer_freq", default=1)
    if is_null(c, "n_routed_experts"):
        return ["dense"] * L
    return c.kinds(
        "mlp_layer_types", L, ("dense", "sparse"), otherwise=lambda i: "sparse" if i >= dense and i % every == 0 else "dense"
    )


# ---- whole models ------------------------------------------------------------------------------------------------------------


def by_kinds(
    kinds: Iterable[tuple[str, str]], mixers: Mapping[str, Block], after: Mapping[str, tuple[Block, Block]]
) -> tuple[Layer, ...]:
    """Layers from the kinds of their attention and of what stands beside it: norms and feed-forward."""
    pairs = list(kinds)
    made = {}
    for a, f in dict.fromkeys(pairs):
        norm, ffn = after[f]
        made[a, f] = Layer(f if len(mixers) == 1 else f"{f}, {a}", (norm, mixers[a], ffn))
    return stacked((made[pair].kind, made[pair]) for pair in pairs)


def further_tokens(c: Fields, layer: Iterable[Block], D: int, *, own: tuple[str, ...] = (), scales: int = 3) -> tuple[Op, ...]:
    """Modules that predict further tokens: a layer each, with a projection of two inputs to one and three norms (`scales`), and with
    tables that checkpoints store once more as their `own`."""
    n = c.size("num_mtp_layers", "num_nextn_predict_layers", default=0, zero=True, most=_MOST_MTP)
    ops = [matmul("project", "In[B, T, R] * W[R, D] -> Out[B, T, D]", R=2 * D, D=D), vector("norms", scales * D)]
    ops += [op for block in layer for op in block.ops]
    ops += [op for op in around(D=D, V=c.size("vocab_size"), tied=False) if op.part in own]
    return tuple(replace(op, part=f"mtp/{op.part}") for op in ops) * n


def _plain_norms(D: int, kind: str) -> Block:
    return norms(D, D)


def _deepseek(
    c: Fields,
    *,
    router_bias: bool = True,
    first: int | None = None,
    index: bool = False,
    shares: bool = False,
    own: tuple[str, ...] = ("embedding", "head"),
    mlp_bias: bool = False,
    norm: Callable[[int, str], Block] = _plain_norms,
    attend: Callable[[Fields, int, int, Span, Block | None], Block] | None = None,
) -> Model:
    """Latent attention in every layer; dense layers, then mixtures of experts.

    `first`: how many are dense if the configuration does not say. `index`: sparse attention; `shares`: some layers take an earlier one's
    choice. `own`: what modules for further tokens store once more. `norm` makes a layer's norms from its kind, `attend` its attention,
    where these are not the usual ones.
    """
    L, D, N = c.layers(), c.size("hidden_size"), c.size("num_attention_heads")
    c.must("use_mla", True, "attention is latent here")
    types = mlp_types(c, L, first=first)
    scoring = indexer_types(c, L) if shares else ["full"] * L
    span = Span("top", c.size("index_topk")) if index else FULL
    mixers = {}
    for kind in dict.fromkeys(scoring):
        chooses = _indexer(c, D) if index and kind == "full" else None
        mixers[kind] = mla(c, D, N, span=span, index=chooses) if attend is None else attend(c, D, N, span, chooses)

    def after(kind: str) -> tuple[Block, Block]:
        if kind == "sparse":
            return norm(D, kind), mixture(c, D, router_bias=router_bias, bias=mlp_bias)
        return norm(D, kind), mlp(D=D, F=c.size("intermediate_size"), up_bias=mlp_bias, down_bias=mlp_bias)

    layers = by_kinds(zip(scoring, types, strict=True), mixers, {kind: after(kind) for kind in dict.fromkeys(types)})
    further = after("dense" if is_null(c, "n_routed_experts") else "sparse")
    return finished(c, layers, D, mtp=further_tokens(c, (mixers["full"], *further), D, own=own))


# ---- families ----------------------------------------------------------------------------------------------------------------


def deepseek(c: Fields) -> Model:
    """DeepSeekMoE, before latent attention."""
    c.defaults = {"tie_word_embeddings": False, "attention_bias": False}
    return _deepseek(c, router_bias=False, attend=_plain_attention)


def _plain_attention(c: Fields, D: int, N: int, span: Span, index: Block | None) -> Block:
    K, bias = c.size("num_key_value_heads", default=N), c.flag("attention_bias")
    return attention(D=D, N=N, K=K, H=head_width(c, D, N), q_bias=bias, k_bias=bias, v_bias=bias, o_bias=bias, span=span)


def deepseek_v2(c: Fields) -> Model:
    """DeepSeek-V2: a router without a bias."""
    if c.given("topk_method"):
        c.word("topk_method", ("greedy", "group_limited_greedy"))
    return _deepseek(c, router_bias=False, mlp_bias=c.flag("mlp_bias"))


def deepseek_v3(c: Fields) -> Model:
    """DeepSeek-V3 and R1; Kimi K2, Moonlight and Sarvam have its shape."""
    return _deepseek(c)


def kimi_k2(c: Fields) -> Model:
    """Kimi K2: DeepSeek-V3 with more experts and fewer heads."""
    like(c, "deepseek_v3")
    return _deepseek(c)


def deepseek_v32(c: Fields) -> Model:
    """DeepSeek-V3.2: an indexer in every layer chooses the keys."""
    return _deepseek(c, index=True)


def glm_moe_dsa(c: Fields) -> Model:
    """GLM-5: an indexer whose choice serves several layers from GLM-5.2 on. Its module for a further token has no tables of its own."""
    return _deepseek(c, index=True, shares=True, own=())


def glm4_moe_lite(c: Fields) -> Model:
    """GLM-4.7-Flash: one dense layer, unless the configuration says otherwise."""
    return _deepseek(c, first=1)


def axk1(c: Fields) -> Model:
    """A.X-K1: one more norm after the experts."""
    return _deepseek(c, first=1, norm=lambda D, kind: norms(D, D, D if kind == "sparse" else 0))


def axk2(c: Fields) -> Model:
    """A.X-K2: an indexer; norms with a gate of low rank; queries and a gate on the result from the normed and the plain query rank."""
    rank = c.size("gated_norm_rank")

    def gated(D: int, kind: str) -> Block:
        down = matmul("norm/gate_down", "In[B, T, D] * W[D, R] -> Low[B, T, R]", D=D, R=rank)
        up = matmul("norm/gate_up", "Low[B, T, R] * W[R, D] -> Gate[B, T, D]", R=rank, D=D)
        return Block("norm", (*norms(D, D).ops, *(down, up) * (2 if kind == "sparse" else 1)))

    return _deepseek(c, first=1, index=True, norm=gated, attend=_with_gate)


def _with_gate(c: Fields, D: int, N: int, span: Span, index: Block | None) -> Block:
    x, R, v = mla(c, D, N, span=span, index=index), 2 * c.size("q_lora_rank"), c.size("v_head_dim")
    q = matmul("attention/q_up", "Qlow[B, T, R] * W[R, N, H] -> Q[B, T, N, H]", R=R, N=N, H=x.facts["H"])
    gate = matmul("attention/gate", "Qlow[B, T, R] * W[R, N, H] -> Gate[B, T, N, H]", R=R, N=N, H=v)
    return replace(x, ops=(*(q if op.part == q.part else op for op in x.ops), gate))


def mistral4(c: Fields) -> Model:
    """Mistral Small 4: DeepSeek-V2's shape."""
    c.defaults = {"tie_word_embeddings": False, "attention_bias": False}
    return _deepseek(c, router_bias=False, first=0)


def youtu(c: Fields) -> Model:
    """Youtu-LLM: latent attention, dense layers."""
    return _dense(c, mla(c, c.size("hidden_size"), c.size("num_attention_heads")))


def minicpm3(c: Fields) -> Model:
    """MiniCPM3: values of width D ÷ N unless given."""
    D, N = c.size("hidden_size"), c.size("num_attention_heads")
    return _dense(c, mla(c, D, N, v=c.size("v_head_dim", default=head_width(c, D, N))), bias=c.flag("mlp_bias"))


def _dense(c: Fields, mixer: Block, *, bias: bool = False) -> Model:
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    blocks = (norms(D, D), mixer, mlp(D=D, F=F, up_bias=bias, down_bias=bias))
    return finished(c, (Layer("layer", blocks, L, tuple(range(L))),), D)


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "axk1": axk1,
    "axk2": axk2,
    "deepseek": deepseek,
    "deepseek_v2": deepseek_v2,
    "deepseek_v3": deepseek_v3,
    "deepseek_v32": deepseek_v32,
    "glm4_moe_lite": glm4_moe_lite,
    "glm_moe_dsa": glm_moe_dsa,
    "kimi_k2": kimi_k2,
    "kimi_k25": kimi_k2,
    "minicpm3": minicpm3,
    "mistral4": mistral4,
    "sarvam_mla": deepseek_v3,
    "youtu": youtu,
}
