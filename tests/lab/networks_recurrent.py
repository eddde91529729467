"""Layers that keep a state instead of keys and values, in plain jax, token by token: Mamba-2, gated delta rule, lightning attention.

Each is a mixer of `networks.Net`; `layer_types` says which layers have it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from lab.networks import Array, Net, Params, _draw, _normed


class Recurrent(Net):
    """A network some of whose layers are recurrent: "mamba", "linear_attention" (gated delta rule) or "lightning"."""

    def _kind(self, i: int) -> str:
        return str(self.c["layer_types"][i])

    def _mixer(self, key: Array, i: int) -> Params:
        made = {"mamba": self._mamba_init, "linear_attention": self._delta_init, "lightning": self._lightning_init}
        if self._kind(i) in made:
            return made[self._kind(i)](key)
        p = super()._mixer(key, i)
        if self.c.get("gated_attention"):  # the query's projection is twice as wide: the second half is a gate
            p["gate"] = _draw(key, self.c["hidden_size"], self.c["num_attention_heads"], self.head_dim)
        return p

    def _attention(self, p: Params, x: Array, i: int) -> Array:
        mixers = {"mamba": self._mamba, "linear_attention": self._delta, "lightning": self._lightning}
        if self._kind(i) in mixers:
            return mixers[self._kind(i)](p, x)
        return super()._attention(p, x, i)

    def _read_out(self, p: Params, x: Array, heads: Array) -> Array:
        if "gate" in p:
            heads = heads * jax.nn.sigmoid(jnp.einsum("btd,dnh->btnh", x, p["gate"]))
        return super()._read_out(p, x, heads)

    # ---- Mamba-2 -------------------------------------------------------------------------------------------------------------

    def _mamba_init(self, key: Array) -> Params:
        c, D = self.c, self.c["hidden_size"]
        heads, P, S, g = c["mamba_n_heads"], c["mamba_d_head"], c["mamba_d_state"], c["mamba_n_groups"]
        width = heads * P + 2 * g * S
        return {
            "in": _draw(key, D, heads * P + width + heads),
            "conv": _draw(key, c["mamba_d_conv"], width),
            "conv_bias": jnp.zeros(width),
            "dt_bias": jnp.zeros(heads),
            "A": jnp.ones(heads),
            "skip": jnp.ones(heads),
            "norm": {"scale": jnp.ones(heads * P)},
            "out": _draw(key, heads * P, D),
        }

    def _mamba(self, p: Params, x: Array) -> Array:
        c, (B, T, _) = self.c, x.shape
        heads, P, S, g = c["mamba_n_heads"], c["mamba_d_head"], c["mamba_d_state"], c["mamba_n_groups"]
        wide = jnp.einsum("btd,de->bte", x, p["in"])
        z, mixed, dt = jnp.split(wide, [heads * P, wide.shape[-1] - heads], axis=-1)
        mixed = jax.nn.silu(_convolved(mixed, p["conv"]) + p["conv_bias"])
        v, b, read = jnp.split(mixed, [heads * P, heads * P + g * S], axis=-1)
        v = v.reshape(B, T, heads, P)
        b, read = (jnp.repeat(a.reshape(B, T, g, S), heads // g, axis=2) for a in (b, read))
        dt = jax.nn.softplus(dt + p["dt_bias"])

        def step(state: Array, at: Any) -> Any:
            v, b, read, dt = at
            state = state * jnp.exp(-p["A"] * dt)[..., None, None] + jnp.einsum("bhp,bhs->bhps", v * dt[..., None], b)
            return state, jnp.einsum("bhps,bhs->bhp", state, read)

        _, y = jax.lax.scan(step, jnp.zeros((B, heads, P, S)), jax.tree.map(lambda a: jnp.swapaxes(a, 0, 1), (v, b, read, dt)))
        y = jnp.swapaxes(y, 0, 1) + v * p["skip"][:, None]
        y = _normed(y.reshape(B, T, -1) * jax.nn.silu(z), p["norm"])
        return jnp.einsum("bte,ed->btd", y, p["out"])

    # ---- gated delta rule ----------------------------------------------------------------------------------------------------

    def _delta_init(self, key: Array) -> Params:
        c, D = self.c, self.c["hidden_size"]
        k, v = c["linear_key_head_dim"] * c["linear_num_key_heads"], c["linear_value_head_dim"] * c["linear_num_value_heads"]
        heads = c["linear_num_value_heads"]
        return {
            "qkv": _draw(key, D, 2 * k + v),
            "z": _draw(key, D, v),
            "b": _draw(key, D, heads),
            "a": _draw(key, D, heads),
            "conv": _draw(key, c["linear_conv_kernel_dim"], 2 * k + v),
            "dt_bias": jnp.zeros(heads),
            "A": jnp.ones(heads),
            "norm": {"scale": jnp.ones(c["linear_value_head_dim"])},
            "out": _draw(key, v, D),
        }

    def _delta(self, p: Params, x: Array) -> Array:
        c, (B, T, _) = self.c, x.shape
        n_k, d_k, n_v, d_v = (
            c[f"linear_{name}"] for name in ("num_key_heads", "key_head_dim", "num_value_heads", "value_head_dim")
        )
        mixed = jax.nn.silu(_convolved(jnp.einsum("btd,de->bte", x, p["qkv"]), p["conv"]))
        q, k, v = jnp.split(mixed, [n_k * d_k, 2 * n_k * d_k], axis=-1)
        q, k = (jnp.repeat(a.reshape(B, T, n_k, d_k), n_v // n_k, axis=2) for a in (q, k))
        v = v.reshape(B, T, n_v, d_v)
        beta = jax.nn.sigmoid(jnp.einsum("btd,dh->bth", x, p["b"]))
        decay = jnp.exp(-p["A"] * jax.nn.softplus(jnp.einsum("btd,dh->bth", x, p["a"]) + p["dt_bias"]))

        def step(state: Array, at: Any) -> Any:
            q, k, v, beta, decay = at
            state = state * decay[..., None, None]
            error = (v - jnp.einsum("bhkv,bhk->bhv", state, k)) * beta[..., None]
            state = state + jnp.einsum("bhk,bhv->bhkv", k, error)
            return state, jnp.einsum("bhkv,bhk->bhv", state, q)

        inputs = jax.tree.map(lambda a: jnp.swapaxes(a, 0, 1), (q, k, v, beta, decay))
        _, y = jax.lax.scan(step, jnp.zeros((B, n_v, d_k, d_v)), inputs)
        z = jnp.einsum("btd,de->bte", x, p["z"]).reshape(B, T, n_v, d_v)
        y = _normed(jnp.swapaxes(y, 0, 1), p["norm"]) * jax.nn.silu(z)
        return jnp.einsum("bte,ed->btd", y.reshape(B, T, -1), p["out"])

    # ---- lightning attention -------------------------------------------------------------------------------------------------

    def _lightning_init(self, key: Array) -> Params:
        D, N, H = self.c["hidden_size"], self.c["num_attention_heads"], self.head_dim
        draw = {"qkv": _draw(key, D, 3 * N * H), "gate": _draw(key, D, N * H), "out": _draw(key, N * H, D)}
        return {**draw, "norm": {"scale": jnp.ones(N * H)}}

    def _lightning(self, p: Params, x: Array) -> Array:
        (B, T, _), N, H = x.shape, self.c["num_attention_heads"], self.head_dim
        qkv = jax.nn.silu(jnp.einsum("btd,de->bte", x, p["qkv"])).reshape(B, T, N, 3, H)
        decay = jnp.exp(-(2.0 ** (-8 * jnp.arange(1, N + 1) / N)))[:, None, None]

        def step(state: Array, at: Array) -> Any:
            q, k, v = at[:, :, 0], at[:, :, 1], at[:, :, 2]
            state = state * decay + jnp.einsum("bnk,bnv->bnkv", k, v)
            return state, jnp.einsum("bnkv,bnk->bnv", state, q)

        _, y = jax.lax.scan(step, jnp.zeros((B, N, H, H)), jnp.swapaxes(qkv, 0, 1))
        y = _normed(jnp.swapaxes(y, 0, 1).reshape(B, T, N * H), p["norm"])
        return jnp.einsum("bte,ed->btd", y * jax.nn.sigmoid(jnp.einsum("btd,de->bte", x, p["gate"])), p["out"])


def _convolved(x: Array, weight: Array) -> Array:
    """A causal convolution of each channel with its own taps."""
    taps, T = weight.shape[0], x.shape[1]
    padded = jnp.pad(x, ((0, 0), (taps - 1, 0), (0, 0)))
    windows = jnp.stack([padded[:, i : i + T] for i in range(taps)], axis=2)
    return jnp.einsum("btkw,kw->btw", windows, weight)
