"""Mamba and Mamba-2 alone, and Mamba beside attention: Falcon-Mamba, Jamba, Zamba, Zamba2."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scalebook.transformer.blocks import Block, attention, experts, mlp
from scalebook.transformer.configs.families.hybrid import (
    FULL_ATTENTION,
    LINEAR,
    again,
    expanded,
    heads,
    kv_heads,
    mixers,
    whole,
    wrong,
)
from scalebook.transformer.configs.families.shared import no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import Layer, norms, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import Op, matmul
from scalebook.transformer.recurrent import mamba, mamba2


def _rank(c: Fields, name: str, D: int) -> int:
    """The rank of the step size: ⌈D ÷ 16⌉ where it is "auto"."""
    return -(-D // 16) if c.raw(name) == "auto" else c.size(name)


def mamba_alone(c: Fields) -> Model:
    """Mamba and Falcon-Mamba: one norm and one block in each layer. Falcon-Mamba's norms of step size, B and C have no parameters."""
    D = c.size("hidden_size", "d_model")
    inner = c.size("intermediate_size", "d_inner", default=expanded(c, D, "expand"))
    block = mamba(
        D=D,
        inner=inner,
        state=c.size("state_size"),
        rank=_rank(c, "time_step_rank", D),
        taps=c.size("conv_kernel"),
        conv_bias=c.flag("use_conv_bias"),
        bias=c.flag("use_bias"),
    )
    return _alone(c, D, block)


def mamba2_alone(c: Fields) -> Model:
    """Mamba-2: one norm and one block in each layer."""
    D, N, H, bias = c.size("hidden_size", "d_model"), c.size("num_heads"), c.size("head_dim"), c.flag("use_bias")
    inner = expanded(c, D, "expand")
    if inner != N * H:
        raise wrong(c, f"{N} heads of {H} channels are not the {inner} channels inside its blocks")
    c.must("intermediate_size", inner, "it follows from expand")
    block = mamba2(
        D=D,
        N=N,
        K=c.size("n_groups", "mamba_num_groups"),
        H=H,
        state=c.size("state_size"),
        taps=c.size("conv_kernel"),
        conv_bias=c.flag("use_conv_bias"),
        in_bias=bias,
        out_bias=bias,
    )
    return _alone(c, D, block)


def _alone(c: Fields, D: int, block: Block) -> Model:
    L = c.layers("num_hidden_layers", "n_layer")
    c.must("rms_norm", True, "norms without biases are counted")
    no_count(c, "norm_before_gate")
    return whole(c, (Layer("layer", (norms(D), block), L, tuple(range(L))),), D=D)


def jamba(c: Fields) -> Model:
    """Jamba: attention in one layer of `attn_layer_period`, Mamba with norms on step size, B and C in the others; experts in some.

    Layer i has attention where i mod period is the offset, and likewise experts.
    """
    L, D, F, E = c.layers(), c.size("hidden_size"), c.size("intermediate_size"), c.size("num_experts")
    mixing = {LINEAR: _mamba(c, D, expanded(c, D, "mamba_expand"), norms_=True), FULL_ATTENTION: heads(c, D)}
    after = {"": mlp(D=D, F=F)}
    if E > 1:
        after[" with experts"] = experts(D=D, F=F, E=E, k=c.size("num_experts_per_tok"))
    layers = {m + a: Layer(m + a, (norms(D, D), mixing[m], after[a])) for m in mixing for a in after}
    c.must("mamba_inner_layernorms", True, "step size, B and C are normalised")
    no_count(c, "n_ctx", "calc_logits_for_entire_prompt")
    attends, routes = _every(c, "attn_layer"), _every(c, "expert_layer")
    kinds = [(FULL_ATTENTION if attends(i) else LINEAR) + (" with experts" if E > 1 and routes(i) else "") for i in range(L)]
    return whole(c, stacked((kind, layers[kind]) for kind in kinds), D=D)


def _every(c: Fields, name: str) -> Callable[[int], bool]:
    period, offset = c.size(f"{name}_period"), c.size(f"{name}_offset", zero=True)
    if offset >= period:
        raise wrong(c, f"{name}_offset = {offset} must be smaller than {name}_period = {period}")
    return lambda i: i % period == offset


def _mamba(c: Fields, D: int, inner: int, *, norms_: bool) -> Block:
    """Mamba by the fields of Jamba and Zamba."""
    return mamba(
        D=D,
        inner=inner,
        state=c.size("mamba_d_state"),
        rank=_rank(c, "mamba_dt_rank", D),
        taps=c.size("mamba_d_conv"),
        conv_bias=c.flag("mamba_conv_bias"),
        bias=c.flag("mamba_proj_bias"),
        norms=norms_,
    )


def zamba(c: Fields) -> Model:
    """Zamba: Mamba in every layer; in some, one attention and MLP with weights shared by all of them come first, on the input beside
    the embedding (2·D wide), and a projection of their own brings its result to the Mamba block."""
    L, D, heads_mamba = c.layers(), c.size("hidden_size"), c.size("n_mamba_heads")
    A = c.maybe("attention_hidden_size") or 2 * D
    inner = expanded(c, D, "mamba_expand")
    block = _mamba(c, D, inner, norms_=False)
    if inner % heads_mamba:
        raise wrong(c, f"{heads_mamba} Mamba heads cannot share {inner} channels")
    N = c.size("num_attention_heads")
    H = c.maybe("attention_head_dim") or max(2 * D // N, 1)
    shared = (norms(A, D), attention(D=A, N=N, K=kv_heads(c, N), H=H, out=D), mlp(D=D, F=c.size("intermediate_size")))
    attends = (lambda i: False) if c.given("layers_block_type") else _every(c, "attn_layer")
    c.must("tie_word_embeddings", True, "the embedding is also the head")
    kinds = mixers(
        c,
        L,
        name="layers_block_type",
        allowed=(LINEAR, "hybrid"),
        otherwise=lambda i: "hybrid" if i == 2 or (i > 2 and attends(i - 3)) else LINEAR,
    )
    return whole(c, _shared_layers(kinds, D, [shared], (norms(D), block), ()), D=D)


def _shared_layers(
    kinds: list[str], D: int, shared: list[tuple[Block, ...]], own: tuple[Block, ...], more: tuple[Op, ...]
) -> tuple[Layer, ...]:
    """Layers of which some begin with one of the `shared` stacks of blocks in turn; each stack is stored with the first that has it.

    `more` are operations that each of those has of its own, beside a projection D·D.
    """
    entry = Block("projection", (matmul("shared/projection", "In[B, T, D] * W[D, J] -> Out[B, T, J]", D=D, J=D), *more))
    first = {f"hybrid, stores {i}": Layer("", (*blocks, entry, *own)) for i, blocks in enumerate(shared)}
    later = {f"hybrid, shares {i}": Layer("", (*map(again, blocks), entry, *own)) for i, blocks in enumerate(shared)}
    layers = {LINEAR: Layer("", own), **first, **later}
    names, seen = [], 0
    for kind in kinds:
        names.append(kind if kind == LINEAR else f"hybrid, {'stores' if seen < len(shared) else 'shares'} {seen % len(shared)}")
        seen += kind != LINEAR
    return stacked((name, layers[name]) for name in names)


def zamba2(c: Fields) -> Model:
    """Zamba2: like Zamba with Mamba-2 and `num_mem_blocks` shared stacks in turn; every layer that uses one has adapters of its own.

    An adapter of rank r adds to the shared gate and up projections of the MLP (D·r + r·2F), with `use_shared_attention_adapter` also to
    queries, keys and values.
    """
    D, N, bias = c.size("hidden_size"), c.size("num_attention_heads"), c.flag("add_bias_linear")
    r = c.size("adapter_rank", "lora_rank")
    L = c.layers()
    A, H = c.size("attention_hidden_size", default=2 * D), c.size("attention_head_dim", default=max(2 * D // N, 1))
    F = c.maybe("intermediate_size", "ffn_hidden_size") or 4 * D
    stack = (
        norms(A, D),
        attention(D=A, N=N, K=kv_heads(c, N), H=H, out=D),
        mlp(D=D, F=F, up_bias=bias, down_bias=bias),
    )
    adapters = _adapter("mlp", D, r, 2 * F)
    if c.flag("use_shared_attention_adapter", "use_shared_attention_lora"):
        adapters += tuple(op for part in "qkv" for op in _adapter(f"attention/{part}", A, r, A))
    inner, H_mamba = expanded(c, D, "mamba_expand", "expansion_factor"), c.maybe("mamba_headdim", default=None)
    heads_mamba = inner // H_mamba if H_mamba and not c.given("n_mamba_heads") else c.size("n_mamba_heads")
    H_mamba = H_mamba or inner // heads_mamba
    if heads_mamba * H_mamba != inner:
        raise wrong(c, f"{heads_mamba} Mamba heads of {H_mamba} channels are not the {inner} channels inside its blocks")
    block = mamba2(
        D=D,
        N=heads_mamba,
        K=c.size("mamba_ngroups"),
        H=H_mamba,
        state=c.size("mamba_d_state", "state_size"),
        taps=c.size("mamba_d_conv", "conv_dimension"),
        in_bias=bias,
        out_bias=bias,
    )
    kinds = mixers(c, L, name="layers_block_type", allowed=(LINEAR, "hybrid"), otherwise=_zamba2_default(c, L))
    used = [i for i, kind in enumerate(kinds) if kind == "hybrid"]
    c.must("tie_word_embeddings", True, "the embedding is also the head")
    c.must("hybrid_layer_ids", used, "layers_block_type says which layers use the shared blocks")
    for name in ("use_shared_mlp_adapter", "use_shared_block_lora"):
        c.must(name, True, "each layer has an adapter of the shared MLP")
    c.must("gated_linear_unit", True, "the shared MLP has a gate")
    no_count(c, "kv_channels", "num_query_groups")
    return whole(c, _shared_layers(kinds, D, [stack] * c.size("num_mem_blocks"), (norms(D), block), adapters), D=D)


def _adapter(part: str, A: int, r: int, B: int) -> tuple[Op, ...]:
    down = matmul(f"{part}_adapter_down", "In[B, T, D] * W[D, R] -> Low[B, T, R]", D=A, R=r)
    return (down, matmul(f"{part}_adapter_up", "Low[B, T, R] * W[R, J] -> Out[B, T, J]", R=r, J=B))


def _zamba2_default(c: Fields, L: int) -> Callable[[int], str]:
    """Which of the 54 layers of the class's default use the shared blocks."""
    if L != 54 and not c.given("layers_block_type"):
        raise wrong(c, f"it has no layers_block_type (or layer_types), which says which of its {L} layers use the shared blocks")
    return lambda i: "hybrid" if i in {6, 12, 18, 24, 30, 36, 42, 47, 51} else LINEAR


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "falcon_mamba": mamba_alone,
    "jamba": jamba,
    "mamba": mamba_alone,
    "mamba2": mamba2_alone,
    "zamba": zamba,
    "zamba2": zamba2,
}
