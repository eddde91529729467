"""The weights of a model as checkpoints store them: matrices with the names of their modules, as Hugging Face has them, and the rest.

Names are those of the published checkpoints: experts one by one, as "mlp.experts.0.up_proj", which stands for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalebook.transformer.ops import Op, nothing, terms

if TYPE_CHECKING:
    from scalebook.transformer.model import Model

Names = Mapping[str, str]  # part of a layer -> its module; parts with one name are one matrix


def _named(before: str, module: str, *parts: str, after: str = "_proj") -> dict[str, str]:
    return {f"{before}/{part}": f"{module}.{part}{after}" for part in parts}


_ATTENTION = _named("attention", "self_attn", "q", "k", "v", "o")
_DENSE = _ATTENTION | _named("mlp", "mlp", "gate", "up", "down")
_LATENT = {
    "attention/q_down": "self_attn.q_a_proj",
    "attention/q_up": "self_attn.q_b_proj",
    "attention/kv_down": "self_attn.kv_a_proj_with_mqa",
    "attention/k_up": "self_attn.kv_b_proj",
    "attention/v_up": "self_attn.kv_b_proj",
}
_EXPERTS = _named("experts", "mlp.experts.0", "gate", "up", "down")
_SEVERAL = _DENSE | _EXPERTS | _named("shared_expert", "mlp.shared_experts", "gate", "up", "down")
_SINGLE = _DENSE | _EXPERTS | _named("shared_expert", "mlp.shared_expert", "gate", "up", "down")
_SINGLE = _SINGLE | {"shared_expert/scale": "mlp.shared_expert_gate"}
_SPARSE = {f"experts/{part}": f"block_sparse_moe.experts.0.{w}" for part, w in (("gate", "w1"), ("up", "w3"), ("down", "w2"))}
_DELTA = {f"delta/{part}": "linear_attn.in_proj_qkv" for part in "qkv"} | {"delta/gate": "linear_attn.in_proj_z"}
_DELTA = _DELTA | {
    "delta/strength": "linear_attn.in_proj_b",
    "delta/decay": "linear_attn.in_proj_a",
    "delta/o": "linear_attn.out_proj",
}
_JOINED = {"delta/gate": "linear_attn.in_proj_qkvz", **{f"delta/{part}": "linear_attn.in_proj_qkvz" for part in "qkv"}}
_JOINED = _DELTA | _JOINED | {"delta/strength": "linear_attn.in_proj_ba", "delta/decay": "linear_attn.in_proj_ba"}
_GATE_IN_Q = {"attention/gate": "self_attn.q_proj"}
_GATE_UP = {"mlp/gate": "mlp.gate_up_proj", "mlp/up": "mlp.gate_up_proj"}
_FUSED_EXPERTS = {
    "experts/gate": "mlp.experts.gate_up_proj",
    "experts/up": "mlp.experts.gate_up_proj",
    "experts/down": "mlp.experts.down_proj",
}

FAMILIES: Mapping[str, Names] = {
    **dict.fromkeys(
        "apertus arcee cohere cohere2 cwm ernie4_5 exaone4 gemma gemma2 gemma3_text granite helium llama ministral3 mistral olmo olmo2 olmo3 "
        "qwen2 qwen3 seed_oss smollm3 stablelm vaultgemma".split(),
        _DENSE,
    ),
    **dict.fromkeys(
        "deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 kimi_k25 glm4_moe glm4_moe_lite glm_moe_dsa ernie4_5_moe exaone_moe hy_v3 axk1 "
        "sarvam_mla sarvam_moe solar_open minicpm3 youtu dots1".split(),
        _SEVERAL | _LATENT,
    ),
    **dict.fromkeys("qwen2_moe qwen3_moe olmoe flex_olmo".split(), _SINGLE),
    **dict.fromkeys("qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text".split(), _SINGLE | _DELTA | _GATE_IN_Q),
    "qwen3_next": _SINGLE | _JOINED | _GATE_IN_Q,
    **dict.fromkeys("mixtral minimax_m2".split(), _ATTENTION | _SPARSE),
    **dict.fromkeys("glm glm4".split(), _DENSE | _GATE_UP),
    "phi3": _DENSE | _GATE_UP | {f"attention/{part}": "self_attn.qkv_proj" for part in "qkv"},
    "gpt_oss": _ATTENTION | _FUSED_EXPERTS,
}


@dataclass(frozen=True, slots=True)
class Stored:
    """A weight of a checkpoint: `copies` matrices of `rows` × `columns` (outputs × inputs); 1 row where it is no matrix.

    `name` is that of its module, "" where it is no matrix of a layer and not the head, or the name is not known.
    """

    part: str
    copies: int
    rows: int
    columns: int
    name: str = ""

    @property
    def elements(self) -> int:
        """Numbers of one such weight."""
        return self.copies * self.rows * self.columns


def matrix(op: Op) -> tuple[int, int, int]:
    """Copies, outputs and inputs of the weight of a product: letters of all three arrays, of weight and result, of input and weight.

    >>> from scalebook.transformer.ops import matmul
    >>> matrix(matmul("experts/down", "Mid[E, C, F] * W[E, F, D] -> Out[E, C, D]", E=8, F=32, D=16))
    (8, 16, 32)
    """
    (_, given), (_, weight), (_, result) = terms(op.einsum)
    both = [d for d in weight if d in given and d in result]
    inputs = [d for d in weight if d in given and d not in both]
    rows = [d for d in weight if d not in given]
    copies, outputs, columns = (math.prod(op.sizes[d] for d in dims) for dims in (both, rows, inputs))
    return copies, outputs, columns


def stored(model: Model, *, mtp: bool = False) -> Iterator[Stored]:
    """Every weight of a model; with `mtp`, those of the heads that predict further tokens too, as layers after the last."""
    names = FAMILIES.get(model.family, {})
    for op in model.outer:
        yield from _weights([op], {"head": "lm_head"}, "")
    for layer in model.layers:
        ops = [op for op in layer.ops if not nothing(op.params)]
        for i in layer.at or range(layer.count):
            yield from _weights(ops, names, f"model.layers.{i}.")
    if mtp:
        yield from _weights(model.mtp, {f"mtp/{part}": name for part, name in names.items()}, f"model.layers.{model.L}.")


def _weights(ops: Iterable[Op], names: Names, before: str) -> Iterator[Stored]:
    """The weights of some operations; different parts with one name are one matrix."""
    joined: dict[str, Stored] = {}
    parts: dict[str, set[str]] = {}
    for op in ops:
        if nothing(op.params):
            continue
        if op.kind != "matmul":
            yield Stored(op.part, 1, 1, op.params)
            continue
        copies, rows, columns = matrix(op)
        if op.part not in names:
            yield Stored(op.part, copies, rows, columns)
            continue
        name = names[op.part]
        old = joined.get(name)
        if old is not None and (op.part in parts[name] or (old.copies, old.columns) != (copies, columns)):
            yield old
            old = None
        parts[name] = {op.part} if old is None else parts[name] | {op.part}
        joined[name] = Stored(op.part, copies, rows + (old.rows if old else 0), columns, before + name)
    yield from joined.values()
