"""LongCat-Flash: layers of two attentions and two MLPs, and a mixture with experts that do nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scalebook.errors import ModelError, shown
from scalebook.transformer.blocks import Block, experts, mlp
from scalebook.transformer.configs.families.core import finished
from scalebook.transformer.configs.families.latent import further_tokens, is_null, mla
from scalebook.transformer.configs.families.shared import no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import Layer, norms
from scalebook.transformer.model import Model
from scalebook.transformer.ops import Op, Size, matmul, vector


def longcat_flash(c: Fields) -> Model:
    """LongCat-Flash: two attentions and two MLPs in each layer, and one mixture, some of whose choices are experts that do nothing.

    A token chooses k of E + Z; the Z have no weights, so that k · E ÷ (E + Z) experts are active on average. (transformers' own code
    allocates gate and up for them too, which no checkpoint stores.)
    """
    L, D, N, F = c.layers("num_layers"), c.size("hidden_size"), c.size("num_attention_heads"), c.size("ffn_hidden_size")
    if c.given("num_hidden_layers") and c.raw("num_hidden_layers") != L:
        c.must("num_hidden_layers", 2 * L, "each layer has two attentions")
    c.must("attention_method", "MLA", "attention is latent here")
    c.must("zero_expert_type", "identity", "experts that do nothing")
    c.must("router_bias", False, "no published model has one")
    no_count(c, "mla_scale_q_lora", "mla_scale_kv_lora")
    mixer, dense = mla(c, D, N), mlp(D=D, F=F)
    blocks = (norms(D, D, D, D), mixer, dense, mixer, dense, _idle_experts(c, D))
    mtp = further_tokens(c, (norms(D, D), mixer, dense), D, own=("embedding",))
    return finished(c, (Layer("layer", blocks, L, tuple(range(L))),), D, mtp=mtp)


def _idle_experts(c: Fields, D: int) -> Block:
    E, k, F = c.size("n_routed_experts"), c.size("moe_topk"), c.size("expert_ffn_hidden_size")
    idle = 0 if is_null(c, "zero_expert_num") else c.size("zero_expert_num", zero=True)
    if k > E + idle:
        raise ModelError(f"the configuration of family {c.family!r}: a token cannot use {shown(k)} of {E + idle} experts")
    x, choices = experts(D=D, F=F, E=E, k=min(k, E)), E + idle

    def on_average(op: Op) -> Op:
        active: Size = op.params * k // choices
        return replace(op, active=active, token_flops=2 * active)

    router = matmul("experts/router", "In[B, T, D] * W[D, E] -> Route[B, T, E]", D=D, E=choices)
    working = tuple(on_average(op) for op in x.ops if op.part != router.part)
    return replace(x, ops=(router, vector("experts/router_bias", choices), *working))


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {"longcat_flash": longcat_flash}
