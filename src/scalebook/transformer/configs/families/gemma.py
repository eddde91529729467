"""Gemma 3n and 4: two widths of heads, keys and values that later layers share, and an embedding for every layer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, attention, experts, mlp
from scalebook.transformer.configs.families.core import by_kind, causal, finished, heads, spans
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import norms
from scalebook.transformer.model import Model
from scalebook.transformer.ops import Op, matmul, scan, table, vector


def _shares(c: Fields, L: int, kinds: list[str]) -> list[bool]:
    """Which layers use the keys and values of the last earlier layer of their kind, instead of their own: the last few."""
    n = c.size("num_kv_shared_layers", zero=True, default=0)
    if n and (n >= L or set(kinds[L - n :]) - set(kinds[: L - n])):
        raise ModelError(
            f"the configuration of family {c.family!r}: num_kv_shared_layers = {n} of {L} layers is not possible: "
            "a layer of each kind must be left that has keys and values of its own"
        )
    return [i >= L - n for i in range(L)]


def _layer_inputs(D: int, P: int) -> tuple[Op, ...]:
    """What a layer does with its own embedding of width P: a gate, a projection, a norm."""
    gate = matmul("layer_input/gate", "In[B, T, D] * W[D, P] -> Gate[B, T, P]", D=D, P=P)
    return gate, matmul("layer_input/out", "Gate[B, T, P] * W[P, D] -> Out[B, T, D]", P=P, D=D), vector("layer_input/norm", D)


def _layer_tables(c: Fields, L: int, D: int, P: int) -> tuple[Op, ...]:
    """The embeddings of all layers, one table, and a projection of the model's own embedding to them."""
    V = c.size("vocab_size_per_layer_input")
    project = matmul("layer_embeddings_in", "In[B, T, D] * W[D, F] -> Out[B, T, F]", D=D, F=L * P)
    return table("layer_embeddings", V * L * P), project, vector("layer_embeddings_norm", P)


def _pattern(c: Fields, L: int) -> Callable[[int], str]:
    """Five layers with a window, then one without, the last one always without; "5 local : 1 global" says the same of another count."""
    text = c.raw("layer_pattern", default="5 local : 1 global")
    found = re.fullmatch(r"\s*(\d{1,4}) local\s*:\s*1 global\s*", text) if isinstance(text, str) else None
    if found is None:
        raise ModelError(
            f"the configuration of family {c.family!r}: layer_pattern = {shown(text)} is not like '5 local : 1 global'"
        )
    n = int(found[1]) + 1
    return lambda i: "full_attention" if (i + 1) % n == 0 or i == L - 1 else "sliding_attention"


def gemma4(c: Fields) -> Model:
    """Gemma 4: global layers have heads of another width, fewer of them, and one weight for keys and values; the last layers share."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    causal(c, "vision")  # image tokens may see each other; text does not
    N, K, H = heads(c, D)
    wide, b, one_kv = c.size("global_head_dim", default=512), c.flag("attention_bias"), c.flag("attention_k_eq_v")
    few = c.size("num_global_key_value_heads", default=K) if one_kv else K
    c.read.add("num_global_key_value_heads")
    trimmed = (
        {"absent": 0} if c.given("hidden_size") else {}
    )  # a model whose configuration leaves it out has none; the class says 256
    P = c.size("hidden_size_per_layer_input", default=0, zero=True, **trimmed)
    doubled, mixed = c.flag("use_double_wide_mlp"), c.flag("enable_moe_block")
    chosen = (c.size("num_experts"), c.size("top_k_experts"), c.size("moe_intermediate_size")) if mixed else None
    c.read.update(("num_experts", "top_k_experts", "moe_intermediate_size"))
    kinds, seen = spans(c, L, _pattern(c, L))
    if kinds[-1] != "full_attention":  # as the class itself does
        kinds[-1] = "full_attention"
    shares = _shares(c, L, kinds)

    def made(kind: str) -> tuple[Block, ...]:
        span, _, shared = kind.partition(" ")
        whole = span == "full_attention"
        H_here = wide if whole else H
        mixer = attention(
            D=D, N=N, K=few if whole else K, H=H_here, q_bias=b, k_bias=b, v_bias=b, o_bias=b, q_norm=H_here, k_norm=H_here,
            shared_kv=whole and one_kv, own_kv=not shared, span=seen[span],
        )  # fmt: skip
        blocks = [norms(D, D, D, D), mixer, mlp(D=D, F=2 * F if doubled and shared else F)]
        if chosen:
            E, k, F_e = chosen
            scales = (vector("experts/router_scale", D), vector("experts/scale", E))
            blocks += [norms(D, D, D), experts(D=D, F=F_e, E=E, k=k, extra=scales)]
        if P:
            blocks.append(Block("layer input", _layer_inputs(D, P)))
        return tuple(blocks)

    names = [f"{k} shared" if s else k for k, s in zip(kinds, shares, strict=True)]
    extra = _layer_tables(c, L, D, P) if P else ()
    c.read.add("vocab_size_per_layer_input")
    return finished(c, by_kind(names, made), D, extra=extra)


def gemma3n(c: Fields) -> Model:
    """Gemma 3n: several parallel streams (AltUp), a low-rank path beside attention (LAuReL), an embedding per layer, shared keys and values."""
    L, D = c.layers(), c.size("hidden_size")
    widths = c.per_layer("intermediate_size", L)
    N, K, H = heads(c, D)
    b, P = c.flag("attention_bias"), c.size("hidden_size_per_layer_input", zero=True)
    causal(c)
    streams, rank = c.size("altup_num_inputs"), c.size("laurel_rank")
    kinds, seen = spans(c, L, lambda i: "full_attention" if (i + 1) % 5 == 0 else "sliding_attention")
    shares = _shares(c, L, kinds)

    def made(kind: str) -> tuple[Block, ...]:
        span, shared, F = kind.split()
        mixer = attention(
            D=D, N=N, K=K, H=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b, q_norm=H, k_norm=H, own_kv=shared == "own", span=seen[span]
        )  # fmt: skip
        beside = (
            matmul("laurel/down", "In[B, T, D] * W[D, R] -> Low[B, T, R]", D=D, R=rank),
            matmul("laurel/up", "Low[B, T, R] * W[R, D] -> Out[B, T, D]", R=rank, D=D),
            vector("laurel/norm", D),
        )
        route = "In[B, T, D] * W[D, J] -> Route[B, T, J]"
        altup = (
            matmul("altup/router", route, D=D, J=streams),
            matmul("altup/router", route, stored=False, D=D, J=streams),  # once before the layer and once after
            scan("altup/streams", 2 * D * streams * streams),  # each stream is predicted from all
            matmul("altup/predict", "Route[B, T, J] * W[J, F] -> Out[B, T, F]", J=streams, F=streams * streams),
            matmul("altup/correct", "Route[B, T, J] * W[J, F] -> Out[B, T, F]", J=streams, F=streams),
            vector("altup/norm", D),
            vector("altup/scale", D),
        )
        inputs = Block("layer input", _layer_inputs(D, P))
        return norms(D, D, D, D), mixer, mlp(D=D, F=int(F)), Block("laurel", beside), Block("altup", altup), inputs

    names = [f"{k} {'shared' if s else 'own'} {w}" for k, s, w in zip(kinds, shares, widths, strict=True)]
    turns = [
        matmul(f"streams_{way}", "In[B, T, D] * W[D, F] -> Out[B, T, F]", D=D, F=(streams - 1) * D)
        for way in ("in", "out")
        if streams > 1
    ]
    return finished(c, by_kind(names, made), D, extra=(*_layer_tables(c, L, D, P), *turns))


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {"gemma3n_text": gemma3n, "gemma4_text": gemma4}
