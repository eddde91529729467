"""Mistral Large 4: sparse latent attention without a query rank, layers without positions, latents shared by several layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, latent_attention, mlp
from scalebook.transformer.configs.families.core import finished
from scalebook.transformer.configs.families.latent import by_kinds, indexer_types, mixture, mlp_types
from scalebook.transformer.configs.families.shared import no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.indexer import indexer
from scalebook.transformer.layers import norms
from scalebook.transformer.model import Model
from scalebook.transformer.ops import Span, vector
from scalebook.units import ceil_div


def mistral_large4(c: Fields) -> Model:
    """A layer's attention has positions or none, a latent of its own or an earlier layer's, an indexer or an earlier layer's choice."""
    c.defaults = {"tie_word_embeddings": False, "attention_bias": False}
    L, D = c.layers(), c.size("hidden_size")
    no_count(c, "head_dim", "num_key_value_heads", "layer_types", "final_logit_softcapping")
    rotary, types, scoring = _rotary(c, L), mlp_types(c, L, first=1), indexer_types(c, L)
    own = _owners(c, L, rotary)
    kinds = [
        f"{'positions' if rotary[i] else 'no positions'}, {'own' if own[i] else 'shared'} latent, {scoring[i]} index"
        for i in range(L)
    ]
    first = {kind: kinds.index(kind) for kind in dict.fromkeys(kinds)}
    attention = {kind: _attention(c, D, rotary[i], own[i], scoring[i] == "full") for kind, i in first.items()}
    after = {"dense": mlp(D=D, F=c.size("intermediate_size"))}
    if "sparse" in types:
        after["sparse"] = mixture(c, D, router_bias=False)
    around_attention = {kind: (norms(D, D), block) for kind, block in after.items()}
    frequencies = vector("positions", ceil_div(c.size("qk_rope_head_dim"), 2))  # of the rotations: learned
    return finished(c, by_kinds(zip(kinds, types, strict=True), attention, around_attention), D, extra=(frequencies,))


def _attention(c: Fields, D: int, rotary: bool, own: bool, scores: bool) -> Block:
    """Queries straight from the input, with a scale and a bias per head; without positions all of a key's width is in the latent."""
    N, nope, rope = c.size("num_attention_heads"), c.size("qk_nope_head_dim"), c.size("qk_rope_head_dim")
    index = None
    if scores:
        heads, width = c.size("index_n_heads"), c.size("index_head_dim")
        more = (vector("index/input_norm", 2 * D), vector("index/scale", 2 * heads))
        index = indexer(D=D, N=heads, H=width, extra=more)
    bias = c.flag("attention_bias")
    return latent_attention(
        D=D,
        N=N,
        kv_rank=c.size("kv_lora_rank"),
        nope=nope if rotary else nope + rope,
        rope=rope if rotary else 0,
        v=c.size("v_head_dim"),
        a_bias=bias,
        o_bias=bias,
        own_kv=own,
        span=Span("top", c.size("index_topk")),
        index=index,
        extra=(vector("attention/scale", 2 * N),),
    )


def _rotary(c: Fields, L: int) -> list[bool]:
    """Which layers have positions: 1 in `no_rope_layers`, else all but every `no_rope_layer_interval`-th."""
    interval, given = c.size("no_rope_layer_interval", default=4), c.raw("no_rope_layers", default=None)
    if given is None:
        return [(i + 1) % interval != 0 for i in range(L)]
    if not isinstance(given, list | tuple) or len(given) < L or any(type(g) is not int or g not in (0, 1) for g in given):
        raise ModelError(
            f"the configuration of family {c.family!r}: no_rope_layers must have a 1 (positions) or a 0 for each of {L} layers; "
            f"found {shown(given)}"
        )
    return [g == 1 for g in given[:L]]


def _owners(c: Fields, L: int, rotary: list[bool]) -> list[bool]:
    """Which layers have a latent of their own: those that `kv_source_layers` points to themselves."""
    given = c.raw("kv_source_layers", default=None)
    sources = list(range(L)) if given is None else given
    if not isinstance(sources, list | tuple) or len(sources) != L or any(type(s) is not int or not 0 <= s < L for s in sources):
        raise ModelError(
            f"the configuration of family {c.family!r}: kv_source_layers must have a layer from 0 to {L - 1} for each of the {L} layers; "
            f"found {shown(given)}"
        )
    wrong = [i for i, s in enumerate(sources) if s > i or sources[s] != s or rotary[s] != rotary[i]]
    if wrong:
        raise ModelError(
            f"the configuration of family {c.family!r}: layer {wrong[0]} cannot take its latent from layer {sources[wrong[0]]}, which must "
            "be itself or an earlier one that has its own, both with positions or both without"
        )
    return [s == i for i, s in enumerate(sources)]


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {"mistral_large4_text": mistral_large4}
