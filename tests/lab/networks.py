"""Transformers in plain jax, written from the papers and not from the library: what its counts are compared with.

`Net(config)` has the vocabulary of config.json. `init` makes the parameters, as a dict of arrays; `apply` gives the logits. Nothing is
fused or saved: attention computes every pair and masks, an expert is looked up for each token, recurrences go token by token.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

Array = jax.Array
Params = dict[str, Any]


@dataclass(frozen=True)
class Net:
    """One network: `c` are its sizes under the names of its config.json."""

    c: Mapping[str, Any]

    @property
    def head_dim(self) -> int:
        return self.c.get("head_dim") or self.c["hidden_size"] // self.c["num_attention_heads"]

    # ---- parameters ----------------------------------------------------------------------------------------------------------

    def init(self, key: Array) -> Params:
        c, D, V = self.c, self.c["hidden_size"], self.c["vocab_size"]
        params: Params = {"embedding": _draw(key, V, D), "layers": [self._layer(key, i) for i in range(c["num_hidden_layers"])]}
        params["final_norm"] = self._norm(D)
        if c.get("learned_positions"):
            params["positions"] = _draw(key, c["max_position_embeddings"], D)
        if not c.get("tie_word_embeddings"):
            params["head"] = _draw(key, D, V)
        return params

    def _norm(self, width: int) -> Params:
        scale = {"scale": jnp.ones(width)}
        return scale | {"bias": jnp.zeros(width)} if self.c.get("layer_norm") else scale

    def _layer(self, key: Array, i: int) -> Params:
        c, D = self.c, self.c["hidden_size"]
        layer: Params = {"norm": self._norm(D), "mixer": self._mixer(key, i)}
        if not c.get("parallel"):
            layer["mlp_norm"] = self._norm(D)
        if c.get("sandwich"):
            layer |= {"after_mixer": self._norm(D), "after_mlp": self._norm(D)}
        moe = "num_experts" in c and i >= c.get("first_dense", 0)
        layer["experts" if moe else "mlp"] = self._experts(key) if moe else self._mlp(key, c["intermediate_size"])
        return layer

    def _mixer(self, key: Array, i: int) -> Params:
        c, D = self.c, self.c["hidden_size"]
        N, K, H = c["num_attention_heads"], c.get("num_key_value_heads", c["num_attention_heads"]), self.head_dim
        if "kv_lora_rank" in c:
            R, nope, rope, v = c["kv_lora_rank"], c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
            latent: Params = {"kv_down": _draw(key, D, R + rope), "kv_norm": self._norm(R), "kv_up": _draw(key, R, N, nope + v)}
            latent["o"] = _draw(key, N, v, D)
            if c.get("q_lora_rank"):
                Q = c["q_lora_rank"]
                return latent | {"q_down": _draw(key, D, Q), "q_norm": self._norm(Q), "q_up": _draw(key, Q, N, nope + rope)}
            return latent | {"q": _draw(key, D, N, nope + rope)}
        p: Params = {"q": _draw(key, D, N, H), "k": _draw(key, D, K, H), "v": _draw(key, D, K, H), "o": _draw(key, N, H, D)}
        if c.get("qkv_bias"):
            p |= {"q_bias": jnp.zeros((N, H)), "k_bias": jnp.zeros((K, H)), "v_bias": jnp.zeros((K, H))}
        if c.get("o_bias"):
            p["o_bias"] = jnp.zeros(D)
        if c.get("qk_norm"):
            p |= {"q_norm": {"scale": jnp.ones(H)}, "k_norm": {"scale": jnp.ones(H)}}
        return p

    def _mlp(self, key: Array, F: int) -> Params:
        D, c = self.c["hidden_size"], self.c
        p = {"up": _draw(key, D, F), "down": _draw(key, F, D)}
        if not c.get("plain_mlp"):
            p["gate"] = _draw(key, D, F)
        return p | ({"up_bias": jnp.zeros(F), "down_bias": jnp.zeros(D)} if c.get("mlp_bias") else {})

    def _experts(self, key: Array) -> Params:
        c, D = self.c, self.c["hidden_size"]
        E, F = c["num_experts"], c["moe_intermediate_size"]
        p: Params = {
            "router": _draw(key, D, E),
            "gate": _draw(key, E, D, F),
            "up": _draw(key, E, D, F),
            "down": _draw(key, E, F, D),
        }
        if c.get("router_bias"):
            p["router_bias"] = jnp.zeros(E)
        if c.get("shared_size"):
            p["shared"] = self._mlp(key, c["shared_size"])
        return p

    # ---- what it computes ----------------------------------------------------------------------------------------------------

    def apply(self, params: Params, tokens: Array) -> Array:
        x = params["embedding"][tokens]
        if "positions" in params:
            x = x + params["positions"][: tokens.shape[1]]
        for i, layer in enumerate(params["layers"]):
            x = self._block(layer, x, i)
        x = _normed(x, params["final_norm"])
        head = params["head"] if "head" in params else params["embedding"].T
        return jnp.einsum("btd,dv->btv", x, head)

    def _block(self, p: Params, x: Array, i: int) -> Array:
        h = _normed(x, p["norm"])
        mixed = self._latent(p["mixer"], h) if "kv_down" in p["mixer"] else self._attention(p["mixer"], h, i)
        if "after_mixer" in p:
            mixed = _normed(mixed, p["after_mixer"])
        if "mlp_norm" in p:
            x = x + mixed
            h, mixed = _normed(x, p["mlp_norm"]), jnp.zeros(())
        wide = self._routed(p["experts"], h) if "experts" in p else self._forward(p["mlp"], h)
        if "after_mlp" in p:
            wide = _normed(wide, p["after_mlp"])
        return x + mixed + wide

    def _attention(self, p: Params, x: Array, i: int) -> Array:
        q, k, v = (jnp.einsum("btd,dnh->btnh", x, p[w]) + p.get(f"{w}_bias", 0) for w in "qkv")
        if "q_norm" in p:
            q, k = _normed(q, p["q_norm"]), _normed(k, p["k_norm"])
        if not self.c.get("learned_positions"):
            q, k = _rotated(q), _rotated(k)
        G = q.shape[2] // k.shape[2]
        q = q.reshape(*q.shape[:2], k.shape[2], G, q.shape[3])
        kinds = self.c.get("layer_types")
        window = self.c.get("sliding_window") if not kinds or kinds[i] == "sliding_attention" else None
        weights = _softmax(jnp.einsum("btkgh,bskh->bkgts", q, k) / math.sqrt(q.shape[-1]), window)
        heads = jnp.einsum("bkgts,bskh->btkgh", weights, v)
        return self._read_out(p, x, heads.reshape(*x.shape[:2], -1, v.shape[-1]))

    def _read_out(self, p: Params, x: Array, heads: Array) -> Array:
        return jnp.einsum("btnh,nhd->btd", heads, p["o"]) + p.get("o_bias", 0)

    def _latent(self, p: Params, x: Array) -> Array:
        nope, R = self.c["qk_nope_head_dim"], self.c["kv_lora_rank"]
        if "q_down" in p:
            q = jnp.einsum("btr,rnh->btnh", _normed(jnp.einsum("btd,dr->btr", x, p["q_down"]), p["q_norm"]), p["q_up"])
        else:
            q = jnp.einsum("btd,dnh->btnh", x, p["q"])
        down = jnp.einsum("btd,dr->btr", x, p["kv_down"])
        up = jnp.einsum("btr,rnh->btnh", _normed(down[..., :R], p["kv_norm"]), p["kv_up"])
        shared = jnp.broadcast_to(_rotated(down[..., None, R:]), (*up.shape[:3], down.shape[-1] - R))
        q = jnp.concatenate([q[..., :nope], _rotated(q[..., nope:])], axis=-1)
        k = jnp.concatenate([up[..., :nope], shared], axis=-1)
        weights = _softmax(jnp.einsum("btnh,bsnh->bnts", q, k) / math.sqrt(q.shape[-1]), None)
        return jnp.einsum("btnh,nhd->btd", jnp.einsum("bnts,bsnh->btnh", weights, up[..., nope:]), p["o"])

    def _forward(self, p: Params, x: Array) -> Array:
        up = jnp.einsum("btd,df->btf", x, p["up"]) + p.get("up_bias", 0)
        mid = jax.nn.relu(up) if "gate" not in p else jax.nn.silu(jnp.einsum("btd,df->btf", x, p["gate"])) * up
        return jnp.einsum("btf,fd->btd", mid, p["down"]) + p.get("down_bias", 0)

    def _routed(self, p: Params, x: Array) -> Array:
        scores = jax.nn.softmax(jnp.einsum("btd,de->bte", x, p["router"])) + p.get("router_bias", 0)
        weight, chosen = jax.lax.top_k(scores, self.c["num_experts_per_tok"])
        gate, up = (jnp.einsum("btd,btkdf->btkf", x, p[w][chosen]) for w in ("gate", "up"))
        out = jnp.einsum("btkf,btkfd->btkd", jax.nn.silu(gate) * up, p["down"][chosen])
        out = jnp.sum(out * weight[..., None], axis=2)
        return out + self._forward(p["shared"], x) if "shared" in p else out


def _draw(key: Array, *shape: int) -> Array:
    return jax.random.normal(key, shape) * 0.02


def _normed(x: Array, p: Params) -> Array:
    if "bias" in p:
        x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * p["scale"] + p.get("bias", 0)


def _rotated(x: Array) -> Array:
    """Rotary positions over the whole width of each head."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def _softmax(scores: Array, window: int | None) -> Array:
    t, s = jnp.arange(scores.shape[-2])[:, None], jnp.arange(scores.shape[-1])
    seen = (s <= t) & (t - s < window) if window else s <= t
    return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)


# ---- counting what a program does -------------------------------------------------------------------------------------------


_ELEMENTWISE = {
    "add",
    "sub",
    "mul",
    "div",
    "max",
    "neg",
    "select_n",
    "integer_pow",
    "square",
    "reduce_sum",
    "reduce_max",
    "cumsum",
    "ge",
    "lt",
    "le",
    "and",
}


def products(fn: Any, *args: Any, loops: bool = True) -> int:
    """FLOPs of all products of matrices in a function's jaxpr: 2 × output × contracted size; a scan's body as often as it runs, or once."""
    return sum(n for name, n in _counted(jax.make_jaxpr(fn)(*args).jaxpr, loops) if name == "dot_general")


def elementwise(fn: Any, *args: Any, loops: bool = True) -> dict[str, int]:
    """Operations done element by element, by name: what XLA counts beside products."""
    found: dict[str, int] = {}
    for name, n in _counted(jax.make_jaxpr(fn)(*args).jaxpr, loops):
        if name in _ELEMENTWISE:
            found[name] = found.get(name, 0) + n
    return found


def _counted(jaxpr: Any, loops: bool) -> Iterator[tuple[str, int]]:
    for eqn in jaxpr.eqns:
        name, out = eqn.primitive.name, math.prod(eqn.outvars[0].aval.shape)
        if name == "dot_general":
            (contracted, _), _ = eqn.params["dimension_numbers"]
            yield name, 2 * out * math.prod(eqn.invars[0].aval.shape[d] for d in contracted)
        elif name.startswith("reduce"):
            yield name, math.prod(eqn.invars[0].aval.shape)
        else:
            yield name, out
        times = eqn.params["length"] if name == "scan" and loops else 1
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                body = getattr(inner, "jaxpr", inner)
                if hasattr(body, "eqns"):
                    yield from ((n, times * k) for n, k in _counted(body, loops))


def compiled_flops(fn: Any, *args: Any) -> float:
    """What XLA says of the compiled program; of a loop it counts the body once."""
    cost = jax.jit(fn).lower(*args).compile().cost_analysis()
    return float(cost["flops"])
