"""Parameters and FLOPs of each family against networks in plain jax: initialised, traced, and compiled by XLA on a CPU."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from lab.networks import Net, compiled_flops, elementwise, products
from lab.networks_recurrent import Recurrent

import scalebook as sb

BASE = {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 512}
GQA = {**BASE, "num_key_value_heads": 2, "head_dim": 48}
MOE = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 96}
LATENT = {"kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 40}
MIX = ["sliding_attention", "full_attention", "sliding_attention"]
# name: (sizes both have, what config.json adds, what the network is told)
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "llama, MHA": (BASE, {"model_type": "llama"}, {}),
    "llama, GQA, tied": ({**GQA, "tie_word_embeddings": True}, {"model_type": "llama"}, {}),
    "llama, MQA": ({**GQA, "num_key_value_heads": 1}, {"model_type": "llama"}, {}),
    "qwen2, biases": (
        {**BASE, "num_key_value_heads": 2, "tie_word_embeddings": False},
        {"model_type": "qwen2"},
        {"qkv_bias": True},
    ),
    "qwen3, QK-norm": ({**GQA, "tie_word_embeddings": False}, {"model_type": "qwen3"}, {"qk_norm": True}),
    "mistral, window": ({**GQA, "sliding_window": 16, "tie_word_embeddings": False}, {"model_type": "mistral"}, {}),
    "gemma3, local and global": (
        {**GQA, "sliding_window": 16, "layer_types": MIX, "tie_word_embeddings": True},
        {"model_type": "gemma3_text"},
        {"qk_norm": True, "sandwich": True},
    ),
    "gpt2, learned positions": (
        {"vocab_size": 512, "tie_word_embeddings": True},
        {"model_type": "gpt2", "n_embd": 256, "n_layer": 3, "n_head": 8, "n_positions": 64},
        {
            **BASE,
            "intermediate_size": 1024,
            "max_position_embeddings": 64,
            "learned_positions": True,
            "layer_norm": True,
            "qkv_bias": True,
            "o_bias": True,
            "plain_mlp": True,
            "mlp_bias": True,
        },
    ),
    "cohere, parallel": (
        {**BASE, "num_key_value_heads": 4, "tie_word_embeddings": True},
        {"model_type": "cohere"},
        {"parallel": True},
    ),
    "qwen3-moe": (
        {**GQA, **MOE, "tie_word_embeddings": False},
        {"model_type": "qwen3_moe", "decoder_sparse_step": 1},
        {"qk_norm": True},
    ),
    "deepseek-v2, latent, experts": (
        {
            **BASE,
            **LATENT,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 96,
            "q_lora_rank": None,
            "tie_word_embeddings": False,
        },
        {"model_type": "deepseek_v2", "n_routed_experts": 6, "n_shared_experts": 2, "first_k_dense_replace": 1},
        {"num_experts": 6, "first_dense": 1, "shared_size": 192},
    ),
    "deepseek-v3, query rank": (
        {
            **BASE,
            **LATENT,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 96,
            "q_lora_rank": 80,
            "tie_word_embeddings": False,
        },
        {"model_type": "deepseek_v3", "n_routed_experts": 6, "n_shared_experts": 1, "first_k_dense_replace": 2},
        {"num_experts": 6, "first_dense": 2, "shared_size": 96, "router_bias": True},
    ),
    "bamba, Mamba-2": (
        {
            **GQA,
            "mamba_n_heads": 16,
            "mamba_d_head": 32,
            "mamba_d_state": 24,
            "mamba_n_groups": 2,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
        },
        {"model_type": "bamba", "tie_word_embeddings": False, "attn_layer_indices": [1]},
        {"layer_types": ["mamba", "attention", "mamba"]},
    ),
    "qwen3.5, gated delta rule": (
        {
            **GQA,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "linear_key_head_dim": 24,
            "linear_value_head_dim": 40,
            "linear_num_key_heads": 4,
            "linear_num_value_heads": 8,
            "linear_conv_kernel_dim": 4,
        },
        {"model_type": "qwen3_5_text", "tie_word_embeddings": False},
        {"qk_norm": True, "gated_attention": True},
    ),
    "minimax, lightning, experts": (
        {**GQA, "num_experts_per_tok": 2, "intermediate_size": 96, "tie_word_embeddings": False},
        {
            "model_type": "minimax",
            "num_local_experts": 6,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        },
        {**MOE, "layer_types": ["lightning", "full", "lightning"]},
    ),
}
B, T = 2, 48


def pair(name: str) -> tuple[sb.Model, Net, Any]:
    common, config, told = FAMILIES[name]
    kind = (
        Recurrent
        if {"mamba", "linear_attention", "lightning"} & set(told.get("layer_types", common.get("layer_types", ())))
        else Net
    )
    net = kind({**common, **told})
    return sb.Model.from_hf({**common, **config}), net, net.init(jax.random.key(0))


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_equal_a_real_initialisation(name: str) -> None:
    x, _, params = pair(name)
    assert x.total_params == sum(leaf.size for leaf in jax.tree.leaves(params))


def dense_attention(x: sb.Model) -> int:
    """Forward FLOPs where attention computes every pair, windows or not: what a mask does not save."""
    pairs = sum(n * op.pair_flops for _, n, op, _ in x.computed()) * B * T * T
    return x.flops(batch=B, seq_len=T, kind="forward") - windowed(x) + pairs  # type: ignore[no-any-return]


def windowed(x: sb.Model) -> int:
    """FLOPs of scores and values as the model counts them."""
    parts = x.flops_by_part(batch=B, seq_len=T, kind="forward")
    return sum(n for part, n in parts.items() if part.endswith(("/scores", "/values")))


@pytest.mark.parametrize("name", FAMILIES)
def test_products_of_the_program_are_the_products_counted(name: str) -> None:
    """Exact: every product of matrices that jax traces, forward; and three times as many with the gradients of all weights."""
    x, net, params = pair(name)
    tokens = jnp.zeros((B, T), jnp.int32)
    forward = products(net.apply, params, tokens)
    assert forward == dense_attention(x)

    def loss(p: Any) -> Any:
        return jnp.sum(net.apply(p, tokens) ** 2)

    assert products(jax.grad(loss), params) == 3 * forward


@pytest.mark.parametrize("name", FAMILIES)
def test_xla_counts_the_same_within_one_percent(name: str) -> None:
    """XLA's count is that of the products, a loop's body once, and of what is done element by element; named, that is all there is."""
    x, net, params = pair(name)
    tokens = jnp.zeros((B, T), jnp.int32)
    counted = compiled_flops(net.apply, params, tokens)
    in_loops = dense_attention(x) - products(net.apply, params, tokens, loops=False)
    beside = elementwise(net.apply, params, tokens, loops=False)
    assert counted == pytest.approx(dense_attention(x) - in_loops + sum(beside.values()), rel=0.01), beside
    assert sum(beside.values()) < 0.03 * dense_attention(x)


class Checkpointed(Net):
    """The same network, each layer under jax.checkpoint."""

    policy: Any = None

    def _block(self, p: Any, x: Any, i: int) -> Any:
        return jax.checkpoint(lambda p, x: Net._block(self, p, x, i), policy=self.policy)(p, x)


class SavingWeights(Checkpointed):
    policy = staticmethod(jax.checkpoint_policies.dots_with_no_batch_dims_saveable)


@pytest.mark.parametrize(("kind", "remat"), [(Net, "none"), (SavingWeights, "selective"), (Checkpointed, "full")])
def test_recomputation_is_what_jax_traces(kind: type[Net], remat: str) -> None:
    """Exact but for one thing: with "full", jax leaves out the last product of each layer, whose result the backward pass does not need."""
    x, net, params = pair("llama, GQA, tied")
    tokens = jnp.zeros((B, T), jnp.int32)
    again = kind(net.c)

    def loss(p: Any) -> Any:
        return jnp.sum(again.apply(p, tokens) ** 2)

    counted = x.flops(batch=B, seq_len=T, convention="full", remat=remat)
    last = x.flops_by_part(batch=B, seq_len=T, kind="forward")["layers/mlp/down"] if remat == "full" else 0
    assert products(jax.grad(loss), params) == counted - last


def test_a_scan_over_layers_is_counted_once_by_xla_and_as_often_as_it_runs_here() -> None:
    x, net, params = pair("llama, GQA, tied")
    tokens = jnp.zeros((B, T), jnp.int32)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *params["layers"])

    def scanned(outer: Any, layers: Any) -> Any:
        h, _ = jax.lax.scan(lambda h, p: (net._block(p, h, 0), None), outer["embedding"][tokens], layers)
        return h @ outer["embedding"].T

    outer = {"embedding": params["embedding"]}
    parts = x.flops_by_part(batch=B, seq_len=T, kind="forward", convention="full")
    layers, head = sum(n for part, n in parts.items() if part != "head"), parts["head"]
    assert products(scanned, outer, stacked) == layers + head
    assert compiled_flops(scanned, outer, stacked) == pytest.approx(layers / 3 + head, rel=0.02)
