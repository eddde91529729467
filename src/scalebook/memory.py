"""What training keeps in memory: the state of the optimiser by scheme, and activations by what is computed again.

    >>> from scalebook.memory import training_state
    >>> training_state(6_738_415_616, "fp32").total
    80860987392

The bytes per parameter are a matter of the scheme: 12, 16, 18 or 20 are all in use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from scalebook.errors import ModelError, ScalebookError, shown, unknown, within
from scalebook.transformer.layers import Layer
from scalebook.transformer.model import Model
from scalebook.transformer.ops import Op, Size, terms
from scalebook.units import ceil_div, itemsize, largest, nbytes, positive, wide

# ---- state ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scheme:
    """Bytes per parameter of what a training step keeps: `weights` it computes with, `gradients` as they come, `accumulation` of them
    in fp32, the fp32 `master` weights, the two `moments` of Adam. `what` says it in words, with its source."""

    what: str
    weights: int
    gradients: int
    accumulation: int
    master: int
    moments: int

    @property
    def total(self) -> int:
        """Bytes per parameter, unsharded."""
        return self.weights + self.gradients + self.accumulation + self.master + self.moments


SCHEMES: Mapping[str, Scheme] = {
    "fp32": Scheme("fp32 weights and moments; gradients live within a step only (MaxText)", 4, 0, 0, 0, 8),
    "mixed": Scheme("bf16 weights and gradients, fp32 master weights and moments (ZeRO, arXiv 1910.02054)", 2, 2, 0, 4, 8),
    "megatron": Scheme("bf16 weights, gradients in fp32 only, fp32 master weights and moments (Megatron-LM)", 2, 0, 4, 4, 8),
    "mt-nlg": Scheme("bf16 weights and gradients, and all of it in fp32 (Megatron-Turing NLG, arXiv 2201.11990)", 2, 2, 4, 4, 8),
}
ZERO = {
    0: "every rank holds everything",
    1: "master weights and moments are divided over the ranks",
    2: "gradients too",
    3: "weights too",
}


@dataclass(frozen=True, slots=True)
class TrainingState:
    """Bytes of the parts of a training state on one rank."""

    parts: Mapping[str, Size]

    @property
    def total(self) -> Size:
        """Their sum."""
        return sum(self.parts.values())


def training_state(model: Model | Size, scheme: str = "mixed", *, zero: int = 0, ranks: Size = 1) -> TrainingState:
    """Bytes of weights, gradients and optimiser on each of `ranks`, of a model or of a number of parameters P.

    Each part is bytes per parameter · P, or · ⌈P ÷ ranks⌉ where ZeRO of stage `zero` divides it. Megatron's distributed optimiser is
    stage 1: 2 + 4 + 12/ranks bytes per parameter with "megatron", 2 + 2 + 12/ranks with "mixed". FSDP is stage 3.

    >>> training_state(8_000_000_000, "megatron", zero=1, ranks=8).total / 8e9
    7.5
    """
    if not within(scheme, SCHEMES):
        raise unknown("training scheme", scheme, SCHEMES)
    if type(zero) is not int or zero not in ZERO:
        raise ScalebookError(f"a ZeRO stage is a whole number, one of {', '.join(map(str, ZERO))}; found {shown(zero)}")
    P = positive(model.total_params if isinstance(model, Model) else model, "the number of parameters", whole=True)
    ranks = positive(ranks, "ranks", whole=True)
    P, ranks = wide(32 * largest(P), params=P, ranks=ranks)
    s, share = SCHEMES[scheme], ceil_div(P, ranks)
    parts = {"weights": (s.weights, 3), "gradients": (s.gradients, 2), "accumulation": (s.accumulation, 2)}
    parts |= {"master": (s.master, 1), "moments": (s.moments, 1)}
    return TrainingState({name: each * (share if zero >= stage else P) for name, (each, stage) in parts.items() if each})


def deepspeed_estimate(params: Size, *, zero: Literal[2, 3], ranks: Size, largest_layer: Size = 0, offload: str = "none") -> Size:
    """Bytes per GPU as DeepSpeed's own estimators print them, which are not `training_state`: they add buffers, and leave out activations.

    ZeRO-2: 4·P + 16·P ÷ ranks, or 2·P with the optimiser offloaded. ZeRO-3: 4 · largest layer + 18·P ÷ ranks, or + 2·P ÷ ranks with
    `offload="optimizer"`, or nothing more with "all". Source: deepspeed/runtime/zero/stage_1_and_2.py and stage3.py.

    >>> deepspeed_estimate(6_805_000_000, zero=3, ranks=4, largest_layer=131_000_000) / 2**30
    29.007...
    """
    if zero not in (2, 3):
        raise unknown("ZeRO stage of the estimator", zero, ("2", "3"))
    known = ("none", "optimizer") if zero == 2 else ("none", "optimizer", "all")
    if offload not in known:
        raise unknown("offload", offload, known)
    P, n = positive(params, "params", whole=True), positive(ranks, "ranks", whole=True)
    P, n = wide(32 * largest(P), params=P, ranks=n)
    if zero == 2:
        return 2 * P if offload == "optimizer" else 4 * P + 16 * P // n
    shared = {"none": 18, "optimizer": 2, "all": 0}[offload]
    return 4 * positive(largest_layer, "largest_layer", whole=True, zero=True) + shared * P // n


# ---- activations ---------------------------------------------------------------------------------------------------------------

REMAT = {
    "none": "everything that the backward pass reads is kept",
    "selective": "attention scores are computed again, as flash attention does; the rest is kept",
    "full": "the input of every layer is kept, the rest computed again",
    "offload": "the same, and the inputs of the layers are moved to the host",
}
_KNOWN = ("norm", "attention", "latent attention", "mlp", "experts")


def activation_bytes(
    model: Model, *, batch: Size, seq_len: Size, remat: str = "full", dtype: str = "bf16", dropout: bool = False
) -> Size:
    """Bytes of activations that a forward pass of `batch` sequences of `seq_len` tokens leaves for the backward pass, on one device.

    Of every product its inputs, of a feed-forward layer also what goes into its activation function, of every norm its input: per
    token of a dense layer with G = N/K: D (attention) + 2·N·H + 2·K·H + D (MLP) + 2·F + 2·D numbers, F more with a gate; experts count
    k times. Scores are N·S more per token, of all pairs, masked or not. `remat` says what of it is kept (`memory.REMAT`). Not counted:
    norms and gates inside blocks, rotary positions, the head and its logits (`logits_bytes`), and with "full" the one layer that is just computed again.
    `dropout` adds its masks, a byte each, and the scores behind it.

    With GELU, N·H = D, F = 4·D and dropout that is L·s·b·h·(34 + 5·a·s/h): Korthikanti et al. 2022, arXiv 2205.05198, equation 1.

    >>> x = Model.dense(L=1, D=1024, F=4096, N=16, H=64, V=1000, gated=False)
    >>> activation_bytes(x, batch=1, seq_len=512, remat="none", dropout=True) / (512 * 1024)  # 34 + 5·16·512/1024
    74.0
    """
    if not within(remat, REMAT):
        raise unknown("remat", remat, REMAT)
    B, T = _tokens(model, batch, seq_len)
    if remat in ("full", "offload"):
        return 0 if remat == "offload" else nbytes(model.L * B * T * model.D, dtype)
    return sum(x.count * sum(_kept(x, model.D, B, T, dtype, dropout, remat == "none")) for x in model.layers)


def attention_score_bytes(model: Model, *, batch: Size, seq_len: Size, dtype: str = "fp32") -> Size:
    """Bytes of the scores of one layer where they are held whole: B · N · T · S numbers.

    >>> x = Model.dense(L=32, D=4096, F=11008, N=32, H=128, V=32000)
    >>> attention_score_bytes(x, batch=8, seq_len=2048) / 2**30
    4.0
    """
    B, T = _tokens(model, batch, seq_len)
    return nbytes(B * model.dims.N * T * T, dtype)


def logits_bytes(model: Model, *, batch: Size, seq_len: Size, dtype: str = "fp32") -> Size:
    """Bytes of the logits of a batch: B · T · V numbers. Training often has them twice, with their gradient.

    >>> logits_bytes(Model.dense(L=1, D=8, F=8, N=1, H=8, V=128256), batch=1, seq_len=8192)
    4202692608
    """
    B, T = _tokens(model, batch, seq_len)
    return nbytes(B * T * model.V, dtype)


def _tokens(model: Model, batch: Size, seq_len: Size) -> tuple[Size, Size]:
    """B and T, wide enough for all that is kept of them: less than 64 bytes for each parameter, and for that as often as there are keys."""
    if not isinstance(model, Model):
        raise ScalebookError(f"activations are those of a Model, such as scalebook.model('llama-3-8b'); found {shown(model)}")
    B, T = positive(batch, "batch", whole=True), positive(seq_len, "seq_len", whole=True)
    bound = 64 * largest(B) * largest(T) * largest(model.total_params) * (largest(T) + 1)
    wide_B, wide_T = wide(bound, batch=B, seq_len=T)
    return wide_B, wide_T


def _kept(layer: Layer, D: Size, B: Size, T: Size, dtype: str, dropout: bool, scores: bool) -> Iterator[Size]:
    """Bytes that one layer keeps, array by array."""
    for block in layer.blocks:
        if block.kind not in _KNOWN:
            raise ModelError(
                f"activations of a block of {block.kind} depend on its kernel and are not known; known: {', '.join(_KNOWN)}"
            )
        if block.kind == "norm":
            yield from (nbytes(B * T * D, dtype) for _ in block.ops)
            continue
        arrays: dict[tuple[object, ...], tuple[tuple[str, ...], Op]] = {}
        for op in block.ops:
            (first, taken), (second, also), (result, made) = terms(op.einsum) if op.einsum else [("", ())] * 3
            for name, letters in ((first, taken), (second, also), (result, made)):
                if name not in ("", "W", "Out"):
                    where = "" if name in ("In", "Qlow") else op.part.partition("/")[0]
                    arrays.setdefault((where, name, "C" in letters), (letters, op))
        for letters, op in arrays.values():
            pairs = "S" in letters and "T" in letters
            if scores or not pairs:
                n = _elements(letters, op, B, T)
                yield nbytes(n, dtype) + (n * (1 + itemsize(dtype)) if dropout and pairs else 0)
        if dropout:
            yield B * T * D


def _elements(letters: tuple[str, ...], op: Op, B: Size, T: Size) -> Size:
    """Numbers of one array; the tokens of experts, E · C, are k for each token."""
    sizes = {**op.sizes, "B": B, "T": T, "S": T}
    if "C" not in letters:
        return math.prod(sizes[d] for d in letters)
    return B * T * (op.active * sizes["E"] // op.params) * math.prod(sizes[d] for d in letters if d not in "EC")
