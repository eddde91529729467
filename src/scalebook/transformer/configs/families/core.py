"""Decoders with rotary positions and RMS norms, dense or with experts: what the most used families have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, attention, experts, mlp
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import Layer, around, norms, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import FULL, Op, Span

KINDS = {"full_attention", "sliding_attention", "chunked_attention", "attention"}


def heads(c: Fields, D: int) -> tuple[int, int, int]:
    """N, K, H: as many key/value heads as query heads, and a width of D ÷ N, unless the configuration says otherwise."""
    N = c.size("num_attention_heads")
    K = c.size("num_key_value_heads", default=N)
    H = c.size("head_dim", default=D // N) if D >= N or c.given("head_dim") else 0
    if H < 1:
        raise ModelError(f"the configuration of family {c.family!r}: {N} heads cannot share a width of {D}; give head_dim")
    return N, K, H


def finished(
    c: Fields, layers: tuple[Layer, ...], D: int, *, tied: bool | None = None, mtp: tuple[Op, ...] = (), **options: Any
) -> Model:
    """The layers with what stands around them, and modules for further tokens apart; `tied` is a field unless it is given."""
    V, tied = c.size("vocab_size"), c.flag("tie_word_embeddings") if tied is None else tied
    context = c.context("max_position_embeddings")
    return Model("", c.family, D, V, layers, around(D=D, V=V, tied=tied, **options), tied, mtp, context)


def same(L: int, *blocks: Block) -> tuple[Layer, ...]:
    """L equal layers."""
    return (Layer("layer", blocks, L, tuple(range(L))),)


def spans(
    c: Fields, L: int, otherwise: Callable[[int], str] | None = None, *, windows: bool = True
) -> tuple[list[str], dict[str, Span]]:
    """The kind of attention of each layer, and what each kind sees. `windows`: whether `use_sliding_window`, where a family has it, lets them be."""
    kinds = c.kinds("layer_types", L, KINDS, otherwise=otherwise)
    c.read.add("sliding_window_size")
    seen = {"full_attention": FULL, "attention": FULL}
    if "sliding_attention" in kinds:
        if not windows:
            raise ModelError(
                f"the configuration of family {c.family!r}: layer_types has sliding_attention, but use_sliding_window is false; give one of them"
            )
        seen["sliding_attention"] = Span("window", c.size("sliding_window", "sliding_window_size"))
    if "chunked_attention" in kinds:
        seen["chunked_attention"] = Span("chunk", c.size("attention_chunk_size"))
    return kinds, seen


def by_kind(kinds: Sequence[str], made: Callable[[str], tuple[Block, ...]]) -> tuple[Layer, ...]:
    """Layers from the names of their kinds: each kind is made once."""
    layers = {kind: Layer(kind, made(kind)) for kind in dict.fromkeys(kinds)}
    return stacked((kind, layers[kind]) for kind in kinds)


def lettered(c: Fields, L: int, name: str, *others: str) -> Callable[[int], str]:
    """Kinds of attention from one period of layers, a field of this name or one of `others`: a number, whose last is global, or letters, "LLLG", local and
    global, and then the last of all layers is global too. Where there is no window, all are."""
    pattern = c.raw(name, *others, default=4)
    if c.raw("sliding_window", default=None) is None:
        return lambda i: "full_attention"
    if isinstance(pattern, str) and pattern and set(pattern) <= set("LG"):
        return lambda i: "sliding_attention" if pattern[i % len(pattern)] == "L" and i < L - 1 else "full_attention"
    n = c.size(name, *others, default=4)
    return lambda i: "sliding_attention" if (i + 1) % n else "full_attention"


def causal(c: Fields, *also: str) -> None:
    """A decoder's queries see what came before; ModelError where all see all, as in an encoder. `also` are values that are as good as false."""
    found = c.raw("use_bidirectional_attention", default=None)
    if found not in (None, False, *also):
        raise ModelError(
            f"the configuration of family {c.family!r}: use_bidirectional_attention = {shown(found)} makes an encoder; decoders are counted"
        )


# ---- experts ----------------------------------------------------------------------------------------------------------------


def mixtral(c: Fields) -> Model:
    """Mixtral: every layer has experts."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    N, K, H = heads(c, D)
    E, k = c.size("num_local_experts", "num_experts"), c.size("num_experts_per_tok")
    window = c.maybe("sliding_window", default=None)
    span = FULL if window is None else Span("window", window)
    return finished(c, same(L, norms(D, D), attention(D=D, N=N, K=K, H=H, span=span), experts(D=D, F=F, E=E, k=k)), D)


def qwen2_moe(c: Fields) -> Model:
    """Qwen 1.5 and 2 with experts: a shared one with a gate beside those that are chosen; windows on every other of the first layers, if used."""
    L, D, b, shared = c.layers(), c.size("hidden_size"), c.flag("qkv_bias"), c.size("shared_expert_intermediate_size")
    N, K, H = heads(c, D)
    windows, before = c.flag("use_sliding_window"), c.size("max_window_layers", zero=True)
    slides = windows and c.raw("sliding_window") is not None
    kinds, seen = spans(
        c, L, lambda i: "sliding_attention" if slides and i % 2 == 0 and i < before else "full_attention", windows=windows
    )
    mixers = {kind: attention(D=D, N=N, K=K, H=H, q_bias=b, k_bias=b, v_bias=b, span=span) for kind, span in seen.items()}
    return qwen_experts(c, L, D, kinds, mixers, shared=shared)


def qwen3_moe(c: Fields) -> Model:
    """Qwen 3 with experts; a window, if used, is on every layer."""
    L, D, b = c.layers(), c.size("hidden_size"), c.flag("attention_bias")
    c.must("use_qk_norm", True, "norms on queries and keys are counted")
    N, K, H = heads(c, D)
    window = c.maybe("sliding_window", default=None) if c.flag("use_sliding_window", default=False) else None
    c.read.add("sliding_window")
    span = FULL if window is None else Span("window", window)
    mixer = attention(D=D, N=N, K=K, H=H, q_norm=H, k_norm=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b, span=span)
    return qwen_experts(c, L, D, ["attention"] * L, {"attention": mixer})


def qwen_experts(c: Fields, L: int, D: int, attends: Sequence[str], mixers: Mapping[str, Block], *, shared: int = 0) -> Model:
    """Experts on every `decoder_sparse_step`-th layer that `mlp_only_layers` does not name; the others are dense."""
    step, dense = c.size("decoder_sparse_step"), c.raw("mlp_only_layers", default=None)
    E, k, F = c.size("num_experts", zero=True), c.size("num_experts_per_tok"), c.size("moe_intermediate_size")
    only = c.places("mlp_only_layers", L) if dense else set()
    fed = ["dense" if i in only or not E or (i + 1) % step else "experts" for i in range(L)]
    width = c.size("intermediate_size") if "dense" in fed else 0

    def made(kind: str) -> tuple[Block, ...]:
        span, what = kind.split()
        wide = mlp(D=D, F=width) if what == "dense" else experts(D=D, F=F, E=E, k=k, shared=shared, shared_gate=bool(shared))
        return norms(D, D), mixers[span], wide

    c.read.add("intermediate_size")
    kinds = [f"{a} {b}" for a, b in zip(attends, fed, strict=True)]
    return finished(c, by_kind(kinds, made), D)


def gpt_oss(c: Fields) -> Model:
    """gpt-oss: windows on every other layer, a learned sink per head, biases in attention, router and experts."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    N, K, H = heads(c, D)
    b = c.flag("attention_bias")
    E, k = c.size("num_local_experts"), c.size("num_experts_per_tok", "experts_per_token")
    kinds, seen = spans(c, L, lambda i: "full_attention" if i % 2 else "sliding_attention")

    def made(kind: str) -> tuple[Block, ...]:
        mixer = attention(D=D, N=N, K=K, H=H, q_bias=b, k_bias=b, v_bias=b, o_bias=b, sinks=True, span=seen[kind])
        return norms(D, D), mixer, experts(D=D, F=F, E=E, k=k, router_bias=True, up_bias=True, down_bias=True)

    return finished(c, by_kind(kinds, made), D)


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "mixtral": mixtral,
    "qwen2_moe": qwen2_moe,
    "qwen3_moe": qwen3_moe,
    "gpt_oss": gpt_oss,
}
