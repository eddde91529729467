"""Decoders whose layers differ in attention, in what follows it, or in both: Mellum, Laguna, Kolibri, Doge, Lara."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from scalebook.errors import ModelError
from scalebook.transformer.blocks import Block, attention, experts, mlp
from scalebook.transformer.configs.families.core import by_kind, finished, heads, same, spans
from scalebook.transformer.configs.families.delta import delta
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import norms
from scalebook.transformer.model import Model
from scalebook.transformer.ops import FULL, Size, Span, matmul, vector

_WINDOW, _ALL, _LINEAR = "sliding_attention", "full_attention", "linear_attention"
_MLPS = {"dense", "sparse"}


def _routed(c: Fields, D: int, *, shared: bool = False, balanced: bool = False) -> Block:
    """Experts of width `moe_intermediate_size`; a `shared` one has a width of its own."""
    E, k, F = c.size("num_experts"), c.size("num_experts_per_tok"), c.size("moe_intermediate_size")
    width = c.size("shared_expert_intermediate_size", zero=True) if shared else 0
    return experts(D=D, F=F, E=E, k=k, shared=width, router_bias=balanced)


def _mixer(c: Fields, D: int, span: Span, *, N: int | None = None, gate: Size = 0, bias: bool = False) -> Block:
    """Attention with norms on each head's queries and keys."""
    all_heads, K, H = heads(c, D)
    return attention(
        D=D, N=all_heads if N is None else N, K=K, H=H, q_norm=H, k_norm=H, gate=gate, span=span,
        q_bias=bias, k_bias=bias, v_bias=bias, o_bias=bias,
    )  # fmt: skip


def mellum(c: Fields) -> Model:
    """Mellum: experts in every layer, or as `mlp_layer_types` says. What its module for a further token holds is not published."""
    L, D, wide, bias = c.layers(), c.size("hidden_size"), c.size("intermediate_size"), c.flag("attention_bias")
    attends, seen = spans(c, L, lambda i: _ALL)
    fed = c.kinds("mlp_layer_types", L, _MLPS, otherwise=lambda i: "sparse")

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        return norms(D, D), _mixer(c, D, seen[span], bias=bias), mlp(D=D, F=wide) if what == "dense" else _routed(c, D)

    model = finished(c, by_kind([f"{a} {b}" for a, b in zip(attends, fed, strict=True)], made), D)
    further = c.size("num_mtp_layers", default=0, zero=True)
    return replace(model, not_counted=("num_mtp_layers: a module whose shape is not known",)) if further else model


def laguna(c: Fields) -> Model:
    """Laguna: a number of heads per layer, a gate for each head or each number of it; a dense layer, then a shared and chosen experts."""
    L, D, wide, bias = c.layers(), c.size("hidden_size"), c.size("intermediate_size"), c.flag("attention_bias")
    N, _, H = heads(c, D)
    every = c.raw("num_attention_heads_per_layer", default=None)
    counts = [N] * L if every is None else c.per_layer("num_attention_heads_per_layer", L)
    gating = c.raw("gating")
    if gating not in (True, False, "per-head", "per-element"):
        c.word("gating", ("per-head", "per-element"))
    by_head = gating is True or gating == "per-head"
    attends, seen = spans(c, L, lambda i: _ALL)
    fed = c.kinds("mlp_layer_types", L, _MLPS, otherwise=lambda i: "sparse" if i else "dense")

    def made(kind: str) -> tuple[Block, ...]:
        span, what, number = kind.split()
        n = int(number)
        mixer = _mixer(c, D, seen[span], N=n, gate=n if by_head else n * H, bias=bias)
        return norms(D, D), mixer, mlp(D=D, F=wide) if what == "dense" else _routed(c, D, shared=True, balanced=True)

    return finished(c, by_kind([f"{a} {b} {n}" for a, b, n in zip(attends, fed, counts, strict=True)], made), D)


def kolibri(c: Fields) -> Model:
    """Kolibri: four norms a layer, a window on four layers of five, a shared expert beside those that are chosen."""
    L, D = c.layers(), c.size("hidden_size")
    attends, seen = spans(c, L, lambda i: _WINDOW if (i + 1) % 5 else _ALL)
    fed = _routed(c, D, shared=True, balanced=True)
    return finished(c, by_kind(attends, lambda kind: (norms(D, D, D, D), _mixer(c, D, seen[kind]), fed)), D)


def doge(c: Fields) -> Model:
    """Doge: each query attends to `keep_window_size` keys, which a number per head, made of the values, chooses. All keys are kept.

    With experts, E of them of width 1 lie on a square: a router of 2·⌊√E⌋ chooses a row and a column, beside an MLP for all tokens.
    """
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    N, K, H = heads(c, D)
    b, m = c.flag("attention_bias"), c.flag("mlp_bias")
    top, window = c.size("keep_window_size"), c.maybe("sliding_window", default=None)
    if window is not None and window > top:
        raise ModelError(
            f"the configuration of family 'doge': sliding_window = {window} must not be above keep_window_size = {top}"
        )
    span = Span("top", top) if window is None else Span("window", window)
    choice = [
        matmul("attention/choice", "Value[B, T, F] * W[F, K] -> Choice[B, T, K]", F=K * H, K=K),
        vector("attention/choice_scale", K),
    ]
    choice += [vector("attention/choice_bias", K)] if b else []
    mixer = attention(
        D=D, N=N, K=K, H=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b, q_norm=H, k_norm=H, span=span, extra=tuple(choice)
    )  # fmt: skip
    kept = tuple(replace(cache, span=FULL if window is None else span) for cache in mixer.cache)
    residual = Block("residual", (vector("residual", D), vector("residual", D)))
    blocks = [norms(D, D), replace(mixer, cache=kept), mlp(D=D, F=F, up_bias=m, down_bias=m), residual]
    if c.flag("is_moe"):
        blocks.append(_square(c, D))
    return finished(c, same(L, *blocks), D)


def _square(c: Fields, D: int) -> Block:
    """Experts of width 1 by row and column."""
    E, k = c.size("num_experts"), c.size("num_experts_per_tok")
    side = math.isqrt(E)
    if k > side * side:
        raise ModelError(
            f"the configuration of family {c.family!r}: num_experts_per_tok = {k} of {side} · {side} experts is not possible"
        )
    ops = (
        matmul("experts/router", "In[B, T, D] * W[D, E] -> Route[B, T, E]", D=D, E=2 * side),
        matmul("experts/up", "In[E, C, D] * W[E, D, F] -> Up[E, C, F]", used=k, of=E, E=E, D=D, F=1),
        matmul("experts/down", "Mid[E, C, F] * W[E, F, D] -> Out[E, C, D]", used=k, of=E, E=E, F=1, D=D),
    )
    return Block("experts", ops, facts={"D": D, "F": 1, "E": E, "k": k})


def lara(c: Fields) -> Model:
    """Lara: of five layers, two keep a state by the delta rule, two see a window, and one sees all; experts in every layer."""
    L, D, bias = c.layers(), c.size("hidden_size"), c.flag("attention_bias")
    period = (_LINEAR, _WINDOW, _LINEAR, _ALL, _WINDOW)
    kinds = c.kinds("layer_types", L, set(period), otherwise=lambda i: period[i % 5])
    seen = {_ALL: FULL}
    if _WINDOW in kinds:
        seen[_WINDOW] = Span("window", c.size("sliding_window"))
    fed = _routed(c, D, shared=True)

    def made(kind: str) -> tuple[Block, ...]:
        return norms(D, D), delta(c, D) if kind == _LINEAR else _mixer(c, D, seen[kind], bias=bias), fed

    return finished(c, by_kind(kinds, made), D)


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "doge": doge,
    "kolibri1": kolibri,
    "laguna": laguna,
    "lara_mini": lara,
    "mellum": mellum,
}
