"""Mamba-2 layers beside attention: Granite 4, Bamba, Falcon-H1, Nemotron-H; and what all hybrid families read in the same way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, attention, experts, mlp
from scalebook.transformer.configs.families.core import finished
from scalebook.transformer.configs.families.shared import no_count
from scalebook.transformer.configs.fields import LARGEST, Fields
from scalebook.transformer.layers import Layer, norms, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import FULL, Op, Span, matmul, vector
from scalebook.transformer.recurrent import mamba2

LINEAR, FULL_ATTENTION = "linear_attention", "full_attention"
_EARLIER = {"mamba": LINEAR, "attention": FULL_ATTENTION}  # what configurations called the two before


# ---- what hybrid families have in common -------------------------------------------------------------------------------------


def wrong(c: Fields, message: str) -> ModelError:
    """An error about a configuration of this family."""
    return ModelError(f"the configuration of family {c.family!r}: {message}")


def mixers(
    c: Fields,
    L: int,
    *,
    name: str = "layer_types",
    allowed: Collection[str] = (LINEAR, FULL_ATTENTION),
    otherwise: Callable[[int], str] | None = None,
) -> list[str]:
    """How each layer mixes tokens, in today's words or in those of earlier configurations ("mamba", "attention")."""
    words = {*allowed, *(old for old, new in _EARLIER.items() if new in allowed)}
    return [_EARLIER.get(word, word) for word in c.kinds(name, L, words, otherwise=otherwise)]


def kv_heads(c: Fields, N: int) -> int:
    """K, which is N where the field is null."""
    return c.maybe("num_key_value_heads") or N


def heads(
    c: Fields,
    D: int,
    *,
    bias: bool = False,
    norm: bool = False,
    gate: bool = False,
    span: Span = FULL,
    extra: tuple[Op, ...] = (),
) -> Block:
    """Attention by the usual fields; heads of D ÷ N channels unless `head_dim` says otherwise.

    `bias` is of all four projections, `norm` one for the queries and one for the keys of a head, `gate` as wide as the result.
    """
    N = c.size("num_attention_heads")
    K = kv_heads(c, N)
    names = ("head_dim", "attention_head_dim")
    H = (c.maybe(*names) if "head_dim" in c.defaults else c.maybe(*names, default=None)) or max(D // N, 1)
    more = (vector("attention/gate_bias", N * H),) if bias and gate else ()
    return attention(
        D=D,
        N=N,
        K=K,
        H=H,
        q_bias=bias,
        k_bias=bias,
        v_bias=bias,
        o_bias=bias,
        q_norm=H if norm else 0,
        k_norm=H if norm else 0,
        gate=N * H if gate else 0,
        span=span,
        extra=(*extra, *more),
    )


def whole(c: Fields, layers: tuple[Layer, ...], *, D: int, extra: tuple[Op, ...] = (), mtp: Iterable[Op] = ()) -> Model:
    """The layers, and around them embedding, last norm, and a head that may be tied."""
    tied = "tie_word_embeddings" in {**c.defaults, **c.config} and c.flag("tie_word_embeddings")
    return finished(c, layers, D, tied=tied, mtp=tuple(mtp), extra=extra)


def untied(c: Fields) -> None:
    """Head and embedding are two tables in this family, whatever a flag might say: transformers does not tie them."""
    c.must("tie_word_embeddings", False, "head and embedding of this family are two tables")


def again(block: Block) -> Block:
    """The same block with weights that are stored in another layer: it costs its FLOPs and keeps its cache, but has no parameters."""
    return replace(block, ops=tuple(replace(op, params=0, active=0) for op in block.ops))


def uncounted(c: Fields, *names: str) -> tuple[str, ...]:
    """Modules for further tokens whose shape is not known: how many a field asks for, to be stated as not counted."""
    n = c.size(*names, default=0, zero=True)
    return (f"{n} modules for further tokens ({names[0]}): not counted",) if n else ()


def next_tokens(D: int, blocks: Iterable[Block]) -> tuple[Op, ...]:
    """A module that predicts further tokens: norms of embedding and hidden state, 2·D → D, the blocks of its layers, a last norm.

    Embedding and head are the model's own.
    """
    entry = matmul("projection", "In[B, T, J] * W[J, D] -> Out[B, T, D]", J=2 * D, D=D)
    return (vector("norm", 2 * D), entry, *(op for block in blocks for op in block.ops), vector("final_norm", D))


def expanded(c: Fields, D: int, *names: str) -> int:
    """Channels inside a Mamba block: ⌊expansion · D⌋, the expansion under any of its names."""
    factor = c.raw(*names)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor * D <= LARGEST:
        raise wrong(c, f"{names[0]} must be a number that leaves channels: from 1 ÷ {D}; found {shown(factor)}")
    return int(factor * D)


# ---- families ----------------------------------------------------------------------------------------------------------------


def _mamba2(c: Fields, D: int, inner: int, *, norm: bool = True, out_bias: bool | None = None) -> Block:
    """Mamba-2 by the fields of Granite, Bamba and Falcon-H1."""
    N, bias = c.size("mamba_n_heads"), c.flag("mamba_proj_bias")
    H = inner // N if c.raw("mamba_d_head") == "auto" else c.size("mamba_d_head")
    if inner != N * H:
        raise wrong(c, f"{N} Mamba heads of {H} channels are not the {inner} channels inside its blocks")
    return mamba2(
        D=D,
        N=N,
        K=c.size("mamba_n_groups"),
        H=H,
        state=c.size("mamba_d_state"),
        taps=c.size("mamba_d_conv"),
        conv_bias=c.flag("mamba_conv_bias"),
        in_bias=bias,
        out_bias=bias if out_bias is None else out_bias,
        norm=norm,
    )


def granite(c: Fields) -> Model:
    """Granite 4: Mamba-2 or attention in each layer, then experts with a shared MLP, or the MLP alone where there are no experts."""
    L, D, E = c.layers(), c.size("hidden_size"), c.size("num_local_experts", zero=True)
    F = c.size("shared_intermediate_size")
    c.must("normalization_function", "rmsnorm", "norms without biases are counted")
    after = experts(D=D, F=c.size("intermediate_size"), E=E, k=c.size("num_experts_per_tok"), shared=F) if E else mlp(D=D, F=F)
    at = c.places("attention_layers", L)
    kinds = mixers(c, L, otherwise=lambda i: FULL_ATTENTION if i in at else LINEAR)
    if at and at != {i for i, kind in enumerate(kinds) if kind == FULL_ATTENTION}:
        raise wrong(c, "attention_layers and layer_types do not name the same layers")
    mixing = {LINEAR: _mamba2(c, D, expanded(c, D, "mamba_expand")), FULL_ATTENTION: heads(c, D, bias=c.flag("attention_bias"))}
    layers = {kind: Layer(kind, (norms(D, D), block, after)) for kind, block in mixing.items()}
    return whole(c, stacked((kind, layers[kind]) for kind in kinds), D=D)


def bamba(c: Fields) -> Model:
    """Bamba: Mamba-2 with attention at `attn_layer_indices`, each followed by an MLP."""
    L, D, bias = c.layers(), c.size("hidden_size"), c.flag("mlp_bias")
    after = mlp(D=D, F=c.size("intermediate_size"), up_bias=bias, down_bias=bias)
    at = c.places("attn_layer_indices", L)
    layers = {
        LINEAR: Layer(LINEAR, (norms(D, D), _mamba2(c, D, expanded(c, D, "mamba_expand")), after)),
        FULL_ATTENTION: Layer(FULL_ATTENTION, (norms(D, D), heads(c, D, bias=c.flag("attention_bias")), after)),
    }
    kinds = [FULL_ATTENTION if i in at else LINEAR for i in range(L)]
    if mixers(c, L, name="layers_block_type", otherwise=kinds.__getitem__) != kinds:
        raise wrong(c, "attn_layer_indices and layer_types do not name the same layers")
    return whole(c, stacked((kind, layers[kind]) for kind in kinds), D=D)


def falcon_h1(c: Fields) -> Model:
    """Falcon-H1: attention and Mamba-2 side by side in every layer, both from the same input; the Mamba width is `mamba_d_ssm`."""
    L, D, bias = c.layers(), c.size("hidden_size"), c.flag("mlp_bias")
    c.must("attn_layer_indices", None, "every layer has attention")
    c.must("mamba_use_mlp", True, "every layer has an MLP")
    no_count(c, "mlp_expansion_factor")
    inner = c.maybe("mamba_d_ssm") or expanded(c, D, "mamba_expand")
    side = _mamba2(c, D, inner, norm=c.flag("mamba_rms_norm"), out_bias=c.flag("projectors_bias"))
    after = mlp(D=D, F=c.size("intermediate_size"), up_bias=bias, down_bias=bias)
    blocks = (norms(D, D), heads(c, D, bias=c.flag("attention_bias")), side, after)
    return whole(c, (Layer("layer", blocks, L, tuple(range(L))),), D=D)


_LETTERS = {"M": LINEAR, "*": FULL_ATTENTION, "-": "mlp", "E": "moe"}


def nemotron_h(c: Fields) -> Model:
    """Nemotron-H: each layer is one norm and one block, named by a letter of a pattern: M Mamba-2, * attention, - MLP, E experts.

    Experts and MLPs have no gate (squared ReLU). With `moe_latent_size` the routed experts work between two projections of that width.
    A module for further tokens (`num_nextn_predict_layers`) has its own pattern of layers, and the embedding and head of the model.
    """
    D, bias = c.size("hidden_size"), c.flag("mlp_bias")
    made: dict[str, Callable[[], Block]] = {
        LINEAR: lambda: _nemotron_mamba(c, D),
        FULL_ATTENTION: lambda: heads(c, D),
        "mlp": lambda: mlp(D=D, F=c.size("intermediate_size"), gated=False, up_bias=bias, down_bias=bias),
        "moe": lambda: _nemotron_experts(c, D, bias),
    }
    kinds, times, later = _pattern(c), c.size("num_nextn_predict_layers", zero=True), _mtp_pattern(c)
    needed = {*kinds, *(later if times else ())}
    layers = {kind: Layer(kind, (norms(D), make())) for kind, make in made.items() if kind in needed}
    module = next_tokens(D, (block for kind in later for block in layers[kind].blocks)) if times else ()
    untied(c)
    c.must("num_query_groups", c.size("num_key_value_heads"), "it repeats num_key_value_heads")
    no_count(c, "mamba_expand", "mamba_chunk_size", "mamba_dt_min", "mamba_dt_max", "mamba_dt_limit", "mamba_dt_init_floor")
    return whole(c, stacked((kind, layers[kind]) for kind in kinds), D=D, mtp=module * times)


def _pattern(c: Fields) -> list[str]:
    """The kind of each layer, from a pattern of letters or from a list of words; the number of layers must fit."""
    letters, words = c.raw("hybrid_override_pattern", default=None), c.raw("layers_block_type", default=None)
    kinds = [LINEAR, "moe", FULL_ATTENTION, "mlp"]
    if letters is not None:
        kinds = _spelled(c, "hybrid_override_pattern", letters)
    if words is not None:
        found = _worded(c, "layers_block_type", words)
        if letters is not None and found != kinds:
            raise wrong(c, "hybrid_override_pattern and layers_block_type do not say the same")
        kinds = found
    L = c.size("num_hidden_layers", default=len(kinds))
    if letters is None and words is None:
        if c.given("num_hidden_layers"):
            raise wrong(c, "it has no hybrid_override_pattern (or layers_block_type), which says what each layer is")
        c.assumed.append(f"layers_block_type = {kinds}")
    if len(kinds) != L:
        raise wrong(c, f"its pattern has {len(kinds)} layers, but num_hidden_layers = {L}")
    return kinds


def _mtp_pattern(c: Fields) -> list[str]:
    letters, words = c.raw("mtp_hybrid_override_pattern", default=None), c.raw("mtp_layers_block_type", default=None)
    if letters is not None:
        return _spelled(c, "mtp_hybrid_override_pattern", letters)
    return [FULL_ATTENTION, "moe"] if words is None else _worded(c, "mtp_layers_block_type", words)


def _worded(c: Fields, name: str, words: object) -> list[str]:
    if not isinstance(words, list | tuple) or not words:
        raise wrong(c, f"{name} must be a list with one word for each layer; found {shown(words)}")
    return mixers(c, len(words), name=name, allowed=_LETTERS.values())


def _spelled(c: Fields, name: str, letters: object) -> list[str]:
    if not isinstance(letters, str) or not letters or set(letters) - set(_LETTERS):
        raise wrong(c, f"{name} must be a text of the letters {', '.join(_LETTERS)}; found {shown(letters)}")
    return [_LETTERS[letter] for letter in letters]


def _nemotron_mamba(c: Fields, D: int) -> Block:
    bias = c.flag("use_bias")
    return mamba2(
        D=D,
        N=c.size("mamba_num_heads"),
        K=c.size("n_groups", "mamba_n_groups", "mamba_num_groups"),
        H=c.size("mamba_head_dim"),
        state=c.size("ssm_state_size", "mamba_state_dim"),
        taps=c.size("conv_kernel", "mamba_d_conv"),
        conv_bias=c.flag("use_conv_bias", "mamba_conv_bias"),
        in_bias=bias,
        out_bias=bias,
    )


def _nemotron_experts(c: Fields, D: int, bias: bool) -> Block:
    E, k, latent = c.size("n_routed_experts"), c.size("num_experts_per_tok"), c.maybe("moe_latent_size")
    c.must("n_shared_experts", 1, "the width of the shared expert is moe_shared_expert_intermediate_size")
    shared = c.size("moe_shared_expert_intermediate_size")
    extra: list[Op] = [vector("shared_expert/bias", shared + D)] if bias else []
    if latent is not None:
        extra.append(matmul("experts/latent_down", "In[B, T, D] * W[D, R] -> Low[B, T, R]", D=D, R=latent))
        extra.append(matmul("experts/latent_up", "Low[B, T, R] * W[R, D] -> Out[B, T, D]", R=latent, D=D))
        extra += [vector("experts/latent_bias", latent + D)] if bias else []
    return experts(
        D=D,
        F=c.size("moe_intermediate_size"),
        E=E,
        k=k,
        gated=False,
        shared=shared,
        width=latent,
        router_bias=True,
        extra=tuple(extra),
    )


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    "bamba": bamba,
    "falcon_h1": falcon_h1,
    "granitemoehybrid": granite,
    "nemotron_h": nemotron_h,
}
