"""What the answers to the exercises of Transformer math mean, in words whose numbers are computed."""

from __future__ import annotations

from typing import Any

from scalebook.exercises import transformers_values as v
from scalebook.hardware import chip as chip_of
from scalebook.roofline import ridge
from scalebook.transformer import Model
from scalebook.units import binary, count, digits, percent, plural, si


def gated_mean(**sizes: Any) -> str:
    parts = Model.dense(**sizes).params()
    total = sum(parts.values())
    mlp, mixed = (sum(n for part, n in parts.items() if name in part) for name in ("mlp", "attention"))
    return (
        f"The feed-forward matrices are {percent(mlp / total)} of it, attention {percent(mixed / total)}, the table of embeddings and the head {percent((parts['embedding'] + parts['head']) / total)}; "
        f"all norms together are {count(sum(n for part, n in parts.items() if 'norm' in part))} numbers. The smaller a model, the larger the share of its vocabulary."
    )


def kv_means(L: int, N: int, K: int, H: int, S: int) -> str:
    token = 4 * L * K * H
    return (
        f"That is {si(token, 'B')} for each token, whatever the width of the model or the number of its parameters. With a key head for every query head it "
        f"would be {digits(N / K)} times as much: {binary(token * S * N / K)} for this one sequence."
    )


def flops_mean(T: int, **sizes: Any) -> str:
    x = Model.dense(**sizes)
    parts = x.flops_by_part(batch=1, seq_len=T)
    mixing = parts["layers/attention/scores"] + parts["layers/attention/values"]
    return (
        f"The rule counts a table that is looked up and not multiplied, {percent(parts['head'] / x.six_nd(T))} of its sum, and leaves out scores and values, {percent(mixing / sum(parts.values()))} of ours. "
        f"At some length the two errors cancel, and beyond it the rule is too low; at {plural(4 * T, 'token')} the ratio is {digits(x.flops(batch=1, seq_len=4 * T) / x.six_nd(4 * T))}."
    )


def equal_means(**sizes: Any) -> str:
    D, at = sizes["D"], v.equal_length(**sizes)
    return (
        f"About {digits((at + 1) / D)} times the width. At {plural(2048, 'token')} scores and values are only {percent(2048 / (2048 + at))} of a layer's FLOPs, "
        f"at {plural(131072, 'token')} {percent(131072 / (131072 + at))}. Kernels that compute what the mask hides reach the same point at half of the length."
    )


def batch_means(S: int, chip: str, **sizes: Any) -> str:
    free = v.free_bytes(chip, **sizes)
    most = int(free // Model.dense(**sizes).kv_bytes(S // 4))
    return (
        f"Beside the weights {binary(free)} are free, and each sequence takes {binary(Model.dense(**sizes).kv_bytes(S))}. At a quarter of the length {count(most)} would fit. "
        f"The chip's ridge asks for {plural(round(ridge(chip)), 'row')}: it is memory, not arithmetic, that limits how many are served at once. Activations and the runtime take some of it, too."
    )


def active_means(**sizes: Any) -> str:
    x = v.mixture(**sizes)
    total, active = x.total_params, x.active_params()
    return (
        f"A token uses {percent(active / total)} of the parameters, for {sizes['k']} of {sizes['E']} experts are {percent(sizes['k'] / sizes['E'])} of the experts only. The whole has to be in memory: {si(2 * total, 'B')} in bf16. "
        f"Without the table of embeddings, which costs no FLOPs, {count(x.active_params('no_input_embedding'))} are active, and without the head {count(x.active_params('no_embeddings'))}: say which you mean."
    )


def intensity_means(N: int, K: int, R: int, rope: int, S: int) -> str:
    mla = v.decode_intensity(v.latent(N, R, rope), S)
    return (
        f"The ridge of an H100 is at {digits(ridge('h100'))} FLOPs per byte, that of a v5e at {digits(ridge('v5e'))}. Grouped heads stay far below, at any batch and any length, for each sequence has keys of its own; "
        f"the latent, which serves {plural(N, 'head')} in {plural(2, 'product')}, comes to {percent(mla / ridge('h100'))} and {percent(mla / ridge('v5e'))} of them."
    )


def latent_means(L: int, N: int, R: int, rope: int, tp: int) -> str:
    whole = v.expanded_bytes(L, N, rope)
    return (
        f"Keys and values of all heads would be {si(whole, 'B')} a token, {digits(whole / v.latent_bytes(L, N, R, rope, 1))} times as much; split by heads, {si(whole / tp, 'B')} on each device. "
        "A latent has no heads to split: every device needs all of it. To save memory, devices must keep different sequences instead."
    )


def windows_mean(S: int, L: int, window: int, K: int, H: int) -> str:
    return (
        f"With the whole past in every layer it would be {binary(4 * L * K * H * S)}. The windows hold {binary(2 * L * K * H * window)}, however long the sequence is: beyond them the cache is a constant "
        f"and {si(2 * L * K * H, 'B')} per token. One number of bytes per token, times the length, cannot say that."
    )


def lost_means(counted: int, published: int) -> str:
    field = v.lost(counted, published)
    return (
        f"Without `{field}` the class takes as many key and value heads as query heads, so both weights grow: {count(counted - published)} parameters too many, {percent(counted / published - 1)}, "
        f"and a cache {digits(v.CONFIG['num_attention_heads'] / v.CONFIG['num_key_value_heads'])} times too large. Nothing fails, and the total still looks plausible; what the library fills in stands in `x.assumptions`."
    )


def state_means(params: float, ranks: int) -> str:
    whole, chip = v.state_bytes(params, ranks, 0), chip_of("h100")
    return (
        f"Weights in bf16 alone are {si(2 * params, 'B')}; training keeps {digits(whole / (2 * params))} times that, or the HBM of {plural(-(-whole // (chip.hbm_bytes or 1)), 'H100')}, before the first activation. "
        f"Sharing out only the moments and the copy leaves {si(v.state_bytes(params, ranks, 1), 'B')} on each device, and never less than {si(4 * params, 'B')} with more of them: weights and gradients stay whole."
    )


def shape_means(target: float, tolerance: float, V: int, chip: str, tokens: int) -> str:
    g = v.GOOD
    usual = Model.dense(L=32, D=4096, F=14336, N=32, K=8, H=128, V=V)
    held = int(((chip_of(chip).hbm_bytes or 0) - usual.weight_bytes("bf16")) // usual.kv_bytes(1))
    return (
        f"A well-known model with {count(usual.total_params)} parameters keeps {plural(held, 'token')}. With {plural(g['L'], 'layer')} and {plural(g['K'], 'key head')} of width {g['H']} it is {count(v.best_shape(target, tolerance, V, chip, tokens))}. "
        "Each condition stands for something that a count cannot judge, how well such a model learns: sizes are chosen by training, and memory is one voice of several."
    )
