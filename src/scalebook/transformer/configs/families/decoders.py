"""Dense decoders since LLaMA: each is its shape with a few differences, told as options of one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, attention, mlp
from scalebook.transformer.configs.families.core import by_kind, causal, finished, heads, lettered, same, spans
from scalebook.transformer.configs.families.shared import head_width, like, no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import norms
from scalebook.transformer.model import Model
from scalebook.transformer.ops import FULL, Op, Span, mixing, vector

Kinds = Callable[[Fields, int], Callable[[int], str]]


def _every(period: int, *, first: int = 1) -> Kinds:
    """A window on all layers but each `period`th, counted so that layer 0 has the number `first`."""
    return lambda c, L: lambda i: "sliding_attention" if (i + first) % period else "full_attention"


def _pattern(name: str, *others: str) -> Kinds:
    """A window on all layers but the last of each period, which a field of this name or one of `others` gives."""
    return lambda c, L: lettered(c, L, name, *others)


def _wherever(c: Fields, L: int) -> Callable[[int], str]:
    """A window on all layers, unless it is null."""
    kind = "full_attention" if c.raw("sliding_window") is None else "sliding_attention"
    return lambda i: kind


def _from_a_layer_on(c: Fields, L: int) -> Callable[[int], str]:
    """A window from layer `max_window_layers` on, if windows are used at all."""
    slides, after = c.flag("use_sliding_window"), c.size("max_window_layers", default=L, zero=True)
    slides = slides and c.raw("sliding_window") is not None
    return lambda i: "sliding_attention" if slides and i >= after else "full_attention"


def _unturned(c: Fields, L: int) -> Callable[[int], str]:
    """A window on the layers whose positions are not rotated, if windows are used at all."""
    slides = c.flag("use_sliding_window") and c.raw("sliding_window") is not None
    every, turned = c.size("no_rope_layer_interval", default=4), c.raw("no_rope_layers", default=None)
    if turned is None:
        turned = [int((i + 1) % every != 0) for i in range(L)]
    if not isinstance(turned, list | tuple) or len(turned) != L or any(type(v) is not int or v not in (0, 1) for v in turned):
        raise ModelError(
            f"the configuration of family {c.family!r}: no_rope_layers must be a list of 1 (rotated) or 0 for each of the {L} layers; "
            f"found {shown(turned)}"
        )
    return lambda i: "sliding_attention" if slides and not turned[i] else "full_attention"


def dense(
    c: Fields,
    *,
    gated: bool = True,
    bias: str | bool = "attention_bias",
    o_bias: str | bool = True,
    mlp_bias: str | bool = False,
    qk: str = "",
    layer_norm: bool = False,
    norms_of: int = 2,
    windows: Kinds | None = None,
    always: bool = False,
    used: str = "",
    sinks: bool = False,
    extra: Callable[[int, int, int], tuple[Op, ...]] | None = None,
) -> Model:
    """L layers of attention and an MLP.

    `bias` is the field that puts a bias on queries, keys and values, or says whether they have one; `o_bias` whether the same, or another
    field, does so on the result; `qk` norms each head's queries and keys ("head") or all of them ("all"); `norms_of` norms of width D a
    layer; `windows` the kinds of layers where `layer_types` does not say, and `used` the field without which no layer may have a window;
    `always`: one window on all layers, if the configuration gives one.
    """
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    N, K, H = heads(c, D)
    b = c.flag(bias) if isinstance(bias, str) else bias
    o = b and o_bias if isinstance(o_bias, bool) else c.flag(o_bias)
    m = mlp_bias if isinstance(mlp_bias, bool) else c.flag(mlp_bias)
    scales = {"": (0, 0), "head": (H, H), "all": (N * H, K * H)}[qk]
    if windows is not None:
        kinds, seen = spans(c, L, windows(c, L), windows=c.flag(used) if used else True)
    else:
        window = c.maybe("sliding_window", default=None) if always else None
        kinds, seen = ["layer"] * L, {"layer": FULL if window is None else Span("window", window)}

    def made(kind: str) -> tuple[Block, ...]:
        mixer = attention(
            D=D, N=N, K=K, H=H, q_bias=b, k_bias=b, v_bias=b, o_bias=o, q_norm=scales[0], k_norm=scales[1],
            span=seen[kind], sinks=sinks,
        )  # fmt: skip
        more = (Block("extra", extra(D, F, H)),) if extra else ()
        return norms(*[D] * norms_of, bias=layer_norm), mixer, mlp(D=D, F=F, gated=gated, up_bias=m, down_bias=m), *more

    return finished(c, by_kind(kinds, made), D, norm_bias=layer_norm)


def starcoder2(c: Fields) -> Model:
    """StarCoder 2: LayerNorms, a plain MLP, biases everywhere, one window."""
    c.must("mlp_type", "default", "its MLP has two matrices")
    c.must("norm_type", "layer_norm", "its norms have biases")
    no_count(c, "attention_softmax_in_fp32")
    return dense(c, gated=False, bias="use_bias", mlp_bias="use_bias", layer_norm=True, always=True)


def _divided(c: Fields) -> None:
    """The heads divide the width, whatever `head_dim` says; so it may say nothing else."""
    H = head_width(c, c.size("hidden_size"), c.size("num_attention_heads"))
    c.must("head_dim", H, "the heads divide the width")


def cohere2(c: Fields) -> Model:
    """Command R7B and A: after one norm, attention and MLP side by side; a window on three layers of four. The first release names more."""
    _divided(c)
    c.must("use_embedding_sharing", c.flag("tie_word_embeddings"), "tie_word_embeddings says the same")
    c.must("order_of_interleaved_layers", "local_attn_first", "each period ends with a layer without a window")
    c.must("use_gated_activation", True, "its MLP has three matrices")
    c.must("use_parallel_block", True, "it has one norm a layer")
    c.must("use_parallel_embedding", False, "it has one table of embeddings")
    c.must("use_qk_norm", False, "it has no norms on queries and keys")
    no_count(c, "position_embedding_type")
    return dense(c, norms_of=1, windows=_pattern("sliding_window_pattern", "layer_switch"))


def apertus(c: Fields) -> Model:
    """Apertus: an MLP of two matrices around an activation with two parameters, norms on each head's queries and keys."""
    c.must("qk_norm", True, "queries and keys have norms")
    c.must("post_norm", False, "its norms come before the blocks")
    c.must("mlp_bias", False, "its MLP has no biases")
    return dense(c, gated=False, qk="head", extra=_xielu if c.raw("hidden_act") == "xielu" else None)


def hunyuan(c: Fields) -> Model:
    """Hunyuan, dense. Its first configurations name all that the family's models with experts could be; here it must be off."""
    c.must("use_cla", False, "each layer has its own keys and values")
    c.must("use_mla", False, "keys and values are not latent")
    c.must("use_qk_norm", True, "queries and keys have norms")
    c.must("mlp_bias", False, "its MLP has no biases")
    c.must("num_experts", 1, "it has no experts")
    c.raw("head_dim", "attention_head_dim", default=None)
    no_count(c, "cla_share_factor", "num_shared_expert", "moe_topk", "org_vocab_size", "norm_type")
    return dense(c, qk="head")


def diffllama(c: Fields) -> Model:
    """DiffLlama: the scores of the second half of the heads are taken from those of the first; so each attends to values of two heads at once.

    Its own code takes the scores twice, once for each half of the values; here they are counted once.
    """
    model = dense(c, extra=_lambdas)
    (layer,) = model.layers
    mixer = next(block for block in layer.blocks if block.kind == "attention")
    if mixer.facts["K"] % 2:
        raise ModelError(f"the configuration of family 'diffllama': num_key_value_heads = {mixer.facts['K']} must be even")
    N, K, H = (mixer.facts[letter] for letter in "NKH")
    wide = mixing(
        "attention/values", "Score[B, K, G, T, S] * Value[B, S, K, H] -> Head[B, T, K, G, H]", K=K, G=N // K, H=2 * H
    )  # fmt: skip
    ops = tuple(wide if op.part == wide.part else op for op in mixer.ops)
    blocks = tuple(replace(block, ops=ops) if block is mixer else block for block in layer.blocks)
    return replace(model, layers=(replace(layer, blocks=blocks),))


def stablelm(c: Fields) -> Model:
    """StableLM: LayerNorms with biases; one norm a layer where attention and MLP stand side by side."""
    _divided(c)
    qk, beside = "all" if c.flag("qk_layernorm") else "", c.flag("use_parallel_residual")
    return dense(c, bias="use_qkv_bias", o_bias=False, qk=qk, layer_norm=True, norms_of=1 if beside else 2)


def helium(c: Fields) -> Model:
    """Helium: attention's result is as wide as the model, so its heads must be too."""
    N, _, H = heads(c, c.size("hidden_size"))
    if c.size("hidden_size") != N * H:
        raise ModelError(f"the configuration of family 'helium': num_attention_heads · head_dim, {N} · {H}, must be hidden_size")
    return dense(c, o_bias=False, mlp_bias="mlp_bias")


def bare(c: Fields, *, gated: bool) -> Model:
    """OLMo 1 and nanochat: norms without parameters, also the last one."""
    model = dense(c, gated=gated, norms_of=0)
    return replace(model, outer=tuple(op for op in model.outer if op.part != "final_norm"))


def gemma(c: Fields, *, norms_of: int = 2, qk: str = "", windows: Kinds | None = None) -> Model:
    """Gemma 1 to 3: wide heads; norms before and after each block since the second, on each head's queries and keys in the third."""
    causal(c)
    if windows is not None:
        c.raw("sliding_window", "sliding_window_size")  # the first Gemma 2 has both names
    return dense(c, norms_of=norms_of, qk=qk, windows=windows)


def _gemma3_windows(c: Fields, L: int) -> Callable[[int], str]:
    """Five layers with a window, then one without, or another period."""
    period = c.size("sliding_window_pattern", "_sliding_window_pattern", default=6)
    return lambda i: "sliding_attention" if (i + 1) % period else "full_attention"


def phi(c: Fields) -> Model:
    """Phi 1 to 2: attention and a plain MLP side by side, biases everywhere, also on the head."""
    L, D, F = c.layers(), c.size("hidden_size"), c.size("intermediate_size")
    N, K, H = heads(c, D)
    scales = H if c.flag("qk_layernorm") else 0
    mixer = attention(
        D=D, N=N, K=K, H=H, q_bias=True, k_bias=True, v_bias=True, o_bias=True, q_norm=2 * scales, k_norm=2 * scales
    )  # fmt: skip
    block = mlp(D=D, F=F, gated=False, up_bias=True, down_bias=True)
    return finished(c, same(L, norms(D, bias=True), mixer, block), D, norm_bias=True, head_bias=True)


def phi3(c: Fields) -> Model:
    """Phi 3 and 4, whose configurations name options of their first code that no published model uses."""
    for name in ("attention_bias", "mlp_bias", "lm_head_bias"):
        c.must(name, False, "no published model has these biases")
    c.must("full_attn_mod", 1, "the window, where there is one, is on every layer")
    no_count(c, "interpolate_factor")
    return dense(c, bias=False, always=True)


def hyperclovax(c: Fields) -> Model:
    """HyperCLOVA X: LLaMA with two more norms a layer, after the blocks, if they are used."""
    return dense(c, mlp_bias="mlp_bias", norms_of=4 if c.flag("use_post_norm") else 2)


def qwen3_vl(c: Fields) -> Model:
    """The text model of Qwen 3 VL: that of Qwen 3, without windows."""
    like(c, "qwen3")
    return dense(c, qk="head", windows=_from_a_layer_on)


def _sub_norms(D: int, F: int, H: int) -> tuple[Op, ...]:
    return vector("attention/sub_norm", D), vector("mlp/sub_norm", F)


def _lambdas(D: int, F: int, H: int) -> tuple[Op, ...]:
    return (vector("attention/lambda", 4 * H),)


def _xielu(D: int, F: int, H: int) -> tuple[Op, ...]:
    return (vector("mlp/activation", 2),)


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "apertus": apertus,
    "arcee": lambda c: dense(c, gated=False, mlp_bias="mlp_bias"),
    "bitnet": lambda c: dense(c, extra=_sub_norms),
    "cohere": lambda c: dense(c, norms_of=1, qk="all" if c.flag("use_qk_norm") else ""),
    "cohere2": cohere2,
    "cwm": lambda c: dense(c, bias=False, mlp_bias="mlp_bias", windows=_every(4, first=0)),
    "diffllama": diffllama,
    "ernie4_5": lambda c: dense(c, bias="use_bias", mlp_bias="use_bias"),
    "exaone": lambda c: dense(c, mlp_bias="mlp_bias"),
    "exaone4": lambda c: dense(c, bias=False, qk="head", windows=_pattern("sliding_window_pattern")),
    "gemma": gemma,
    "gemma2": lambda c: gemma(c, norms_of=4, windows=_every(2)),
    "gemma3_text": lambda c: gemma(c, norms_of=4, qk="head", windows=_gemma3_windows),
    "glm": lambda c: dense(c, o_bias=False),
    "glm4": lambda c: dense(c, o_bias=False, norms_of=4),
    "granite": lambda c: dense(c, mlp_bias="mlp_bias"),
    "granite_swa": lambda c: dense(c, mlp_bias="mlp_bias", sinks=True, windows=_every(4, first=0)),
    "helium": helium,
    "hunyuan_v1_dense": hunyuan,
    "hyperclovax": hyperclovax,
    "internlm3": lambda c: dense(c, mlp_bias="mlp_bias"),
    "iquestcoder": lambda c: dense(c, mlp_bias="mlp_bias"),
    "jais2": lambda c: dense(c, gated=False, mlp_bias="mlp_bias", layer_norm=True),
    "llama": lambda c: dense(c, mlp_bias="mlp_bias"),
    "ministral": lambda c: dense(c, bias=False, windows=_wherever),
    "ministral3": lambda c: dense(c, bias=False, always=True),
    "mistral": lambda c: dense(c, bias=False, always=True),
    "nanochat": lambda c: bare(c, gated=False),
    "nemotron": lambda c: dense(c, gated=False, mlp_bias="mlp_bias", layer_norm=True),
    "olmo": lambda c: bare(c, gated=True),
    "olmo2": lambda c: dense(c, qk="all"),
    "olmo3": lambda c: dense(c, qk="all", windows=_every(4)),
    "phi": phi,
    "phi3": phi3,
    "qwen2": lambda c: dense(c, bias=True, o_bias=False, windows=_from_a_layer_on, used="use_sliding_window"),
    "qwen3": lambda c: dense(c, qk="head", windows=_from_a_layer_on, used="use_sliding_window"),
    "qwen3_vl_text": qwen3_vl,
    "seed_oss": lambda c: dense(c, o_bias="attention_out_bias", mlp_bias="mlp_bias"),
    "smollm3": lambda c: dense(c, mlp_bias="mlp_bias", windows=_unturned),
    "stablelm": stablelm,
    "starcoder2": starcoder2,
    "vaultgemma": lambda c: dense(c, windows=_every(2)),
}
