"""The exercises of the chapter Transformer math: right answers, known wrong ones and what they betray."""

from __future__ import annotations

from typing import Any

from scalebook.exercises import transformers_meaning as meaning, transformers_values as v
from scalebook.exercises.composed import Criterion, Function, Parts, WrongFunction
from scalebook.exercises.fields import Field
from scalebook.exercises.grading import Choice, Exercise, Number, Wrong
from scalebook.transformer import Model

_EXACT = 5e-7  # of a count: small enough to tell when a norm is missing


def _params(matrices: int = 3, **sizes: Any) -> float:
    """Parameters with so many feed-forward matrices."""
    total = Model.dense(**sizes).total_params
    return float(total + (matrices - 3) * sizes["L"] * sizes["D"] * sizes["F"])


def _step(L: int, D: int, F: int, N: int, K: int, H: int, V: int, B: int, T: int) -> float:
    return float(Model.dense(L=L, D=D, F=F, N=N, K=K, H=H, V=V).flops(batch=B, seq_len=T))


def _by_hand(  # what a reader's function computes, with one thing done otherwise
    L: int, D: int, F: int, N: int, K: int, H: int, V: int, B: int, T: int, *, matrices: float = 3, table: float = 0, head: float = 1, pairs: float = 1.0, rounds: int = 3,
) -> float:  # fmt: skip
    weights = L * (2 * D * N * H + 2 * D * K * H + matrices * D * F) + (head + table) * D * V
    return rounds * B * (2 * weights * T + 4 * L * N * H * pairs)


# ---- all of them, easy first ----------------------------------------------------------------------------------------------

# fmt: off
EXERCISES: tuple[Exercise, ...] = (
    Exercise("transformers/gated-params", "Parameters by hand",
        Number(_params, tolerance=_EXACT, wrong=(
                Wrong(lambda **g: _params(**{**g, "K": g["N"]}), "That has a key and a value head for every query head; here several share one."),
                Wrong(lambda **g: _params(matrices=2, **g), "A gated feed-forward layer has three matrices: gate, up and down."),
                Wrong(lambda **g: _params(**g) - (2 * g["L"] + 1) * g["D"], "Only the norms are missing: two in each layer and one at the end, a scale for each of D."),
                Wrong(lambda **g: _params(**g) - g["D"], "Nearly: there is one more norm, after the last layer."),
                Wrong(lambda **g: _params(**g) - g["V"] * g["D"], "The head has a matrix of its own here, as large as the table of embeddings."),
                Wrong(lambda **g: _params(**g) - 2 * g["V"] * g["D"], "Those are the layers; a table of embeddings stands before them and a head after them."),
            ),
        ),
        hint="A layer has the matrices q, k, v, o and gate, up, down, and two norms. What stands around the layers?",
        code="""
L, D, F, N, K, H, V = $L, $D, $F, $N, $K, $H, $V
attention = 2 * D * N * H + 2 * D * K * H  # q and o, k and v
layer = attention + 3 * D * F + 2 * D      # ... and two norms
answer = L * layer + 2 * V * D + D         # table, head, last norm
""",
        given={"L": 22, "D": 2048, "F": 5632, "N": 32, "K": 4, "H": 64, "V": 32000},
        why=meaning.gated_mean,
    ),
    Exercise("transformers/kv-bytes", "What a long sequence keeps",
        Number(lambda L, N, K, H, S: 4 * L * K * H * S, "B", capacity=True, wrong=(
                Wrong(lambda L, N, K, H, S: 4 * L * N * H * S, "That keeps a key and a value for every query head; they are kept for the key and value heads only."),
                Wrong(lambda L, N, K, H, S: 2 * L * K * H * S, "Half: both keys and values are kept, and a bf16 number has two bytes."),
                Wrong(lambda L, N, K, H, S: 4 * K * H * S, "That is one layer; each has keys and values of its own."),
                Wrong(lambda L, N, K, H, S: 4 * L * K * H, "That is one token."),
                Wrong(lambda L, N, K, H, S: 8 * L * K * H * S, "Twice: a bf16 number has two bytes."),
            ),
        ),
        hint="Per token and layer: K heads, each with a key and a value of H numbers, of two bytes each.",
        code="""
L, K, H, S = $L, $K, $H, $S
per_token = L * K * (H + H) * 2  # keys and values, two bytes each
answer = per_token * S
""",
        given={"L": 80, "N": 64, "K": 8, "H": 128, "S": 131072},
        why=meaning.kv_means,
    ),
    Exercise("transformers/token-flops", "FLOPs of a token, and the rule",
        Parts({
            "flops": Number(v.token_flops, "FLOPs", tolerance=0.005, wrong=(
                    Wrong(lambda T, **g: v.six_n(**g), "That is 6 times all parameters: it counts the table of embeddings, which is looked up, and leaves out scores and values."),
                    Wrong(lambda T, **g: v.six_n(**g) - 6 * g["D"] * g["V"], "Scores and values are missing: a token's query meets the keys of all tokens before it."),
                    Wrong(lambda T, **g: v.token_flops(T, **g) / 3, "That is the forward pass; the backward pass does twice as much again."),
                    Wrong(lambda T, **g: v.token_flops(T, **g) + 6 * g["L"] * g["N"] * g["H"] * (T - 1),
                          "That counts every pair of tokens; with a causal mask a token sees half of them on average."),
                    Wrong(lambda T, **g: v.token_flops(T, **g) + 6 * g["D"] * g["V"], "The table of embeddings is looked up, not multiplied: no FLOPs."),
                    Wrong(lambda T, **g: v.token_flops(T, **g) * T, "That is the whole sequence; the question is about one token of it."),
                ),
            ),
            "ratio": Number(lambda T, **g: v.token_flops(T, **g) / v.six_n(**g), tolerance=0.005, wrong=(
                    Wrong(lambda T, **g: v.six_n(**g) / v.token_flops(T, **g), "Upside down: it is the exact count divided by the rule."),
                    Wrong(lambda T, **g: v.token_flops(T, **g) / (v.six_n(**g) - 6 * g["D"] * g["V"]), "Take all parameters for the rule, the table of embeddings included."),
                ),
            ),
        }),
        hint="6 FLOPs for each parameter of a matrix, the head's included. Scores and values: 2 · 2 · N · H for a pair, and (T + 1)/2 pairs for a token, in each layer.",
        code="""
L, D, F, N, K, H, V, T = $L, $D, $F, $N, $K, $H, $V, $T
layer = 2 * D * N * H + 2 * D * K * H + 3 * D * F
pairs = (T + 1) / 2              # for one token, on average
forward = 2 * (L * layer + D * V) + L * 4 * N * H * pairs
total = L * layer + 2 * D * V + (2 * L + 1) * D
answer = {"flops": 3 * forward, "ratio": 3 * forward / (6 * total)}
""",
        given={"L": 80, "D": 8192, "F": 28672, "N": 64, "K": 8, "H": 128, "V": 128256, "T": 16384},
        why=meaning.flops_mean,
    ),
    Exercise("transformers/equal-length", "When attention is half",
        Number(v.equal_length, "tokens", tolerance=0.005, wrong=(
                Wrong(lambda **g: (v.equal_length(**g) + 1) / 2, "That is without the mask: a causal token sees half of the tokens on average."),
                Wrong(lambda **g: 2 * v.equal_length(**g), "Twice: scores and values are two products, each with a multiplication and an addition."),
                Wrong(lambda **g: 12 * g["D"], "That is 12 · D, true where each query head has a key head and F is 8/3 of D. Take these sizes."),
                Wrong(lambda **g: v.equal_length(**{**g, "K": g["N"]}), "That has a key head for every query head; fewer key heads mean smaller weights."),
                Wrong(lambda **g: 3 * g["D"] * g["F"] / (g["N"] * g["H"]), "The weights of attention belong to the matrices as well: q, k, v and o."),
            ),
        ),
        hint="Per token: 2 FLOPs for each parameter of the layer's matrices on one side, 4 · N · H · (T + 1)/2 on the other.",
        code="""
D, F, N, K, H = $D, $F, $N, $K, $H
layer = 2 * D * N * H + 2 * D * K * H + 3 * D * F
answer = layer / (N * H) - 1     # 2·layer = 2·N·H·(T + 1)
""",
        given={"D": 8192, "F": 28672, "N": 64, "K": 8, "H": 128},
        why=meaning.equal_means,
    ),
    Exercise("transformers/largest-batch", "How many fit?",
        Number(v.fitting, tolerance=_EXACT, wrong=(
                Wrong(lambda S, chip, **g: (v.free_bytes(chip, **g) + 2 * Model.dense(**g).total_params) // Model.dense(**g).kv_bytes(S),
                      "The weights lie in HBM as well: two bytes for each parameter."),
                Wrong(lambda S, chip, **g: v.fitting(chip, S, **g) // (g["N"] // g["K"]), "That keeps keys and values for every query head."),
                Wrong(lambda S, chip, **g: 2 * v.fitting(chip, S, **g), "Keys and values: both are kept."),
                Wrong(lambda S, chip, **g: v.fitting(chip, S, **g) + 1, "Round down: the last one fits only in part."),
                Wrong(lambda S, chip, **g: v.free_bytes(chip, **g) / Model.dense(**g).kv_bytes(S), "Sequences are whole: round down."),
            ),
        ),
        hint="HBM less two bytes for each parameter, divided by what one sequence keeps.",
        code="""
x = sb.Model.dense(L=$L, D=$D, F=$F, N=$N, K=$K, H=$H, V=$V)
free = sb.chip($chip).hbm_bytes - x.weight_bytes("bf16")
answer = free // x.kv_bytes($S)
""",
        given={"L": 32, "D": 4096, "F": 14336, "N": 32, "K": 8, "H": 128, "V": 128256, "S": 8192, "chip": "h100"},
        why=meaning.batch_means,
    ),
    Exercise("transformers/active-params", "Total and active",
        Parts({
            "total": Number(lambda **g: v.mixture(**g).total_params, tolerance=_EXACT, wrong=(
                    Wrong(lambda **g: g["E"] * Model.dense(**{n: s for n, s in g.items() if n not in "Ek"}).total_params,
                          "That is as many whole models; they share attention, norms, table and head."),
                    Wrong(lambda **g: v.mixture(**g).total_params - g["L"] * g["D"] * g["E"], "The router is missing: a matrix of D by E in each layer."),
                    Wrong(lambda **g: v.mixture(**g).active_params(), "That is what one token uses; the total counts all experts."),
                    Wrong(lambda **g: v.mixture(**g).total_params - g["L"] * g["D"] * g["F"] * g["E"], "Each expert has three matrices: gate, up and down."),
                ),
            ),
            "active": Number(lambda **g: v.mixture(**g).active_params(), tolerance=_EXACT, wrong=(
                    Wrong(lambda **g: v.mixture(**g).total_params * g["k"] / g["E"], "Only the experts are divided so; every token uses all of attention, table and head."),
                    Wrong(lambda **g: v.mixture(**g).active_params() - g["L"] * g["D"] * g["E"], "The router is missing: it scores all experts, for every token."),
                    Wrong(lambda **g: v.mixture(**{**g, "k": 1}).active_params(), "That is one expert; a token uses more."),
                    Wrong(lambda **g: v.mixture(**g).active_params("no_input_embedding"), "That leaves out the table of embeddings, one of the conventions; here all is counted."),
                    Wrong(lambda **g: v.mixture(**g).active_params("no_embeddings"), "That leaves out both table and head, one of the conventions; here all is counted."),
                ),
            ),
        }),
        hint="Write the total as a + E · b, with b one expert in all layers. Then the active ones are a + k · b.",
        code="""
L, D, F, N, K, H, V = $L, $D, $F, $N, $K, $H, $V
E, k = $E, $k
shared = L * (2 * D * N * H + 2 * D * K * H + D * E + 2 * D)
shared += 2 * V * D + D
expert = L * 3 * D * F
answer = {"total": shared + E * expert, "active": shared + k * expert}
""",
        given={"L": 24, "D": 3072, "F": 4096, "N": 24, "K": 8, "H": 128, "V": 64000, "E": 16, "k": 4},
        why=meaning.active_means,
    ),
    Exercise("transformers/decode-intensity", "The intensity of a cache",
        Parts({
            "grouped": Number(lambda N, K, R, rope, S: v.decode_intensity(v.grouped(N, K), S), "FLOPs/B", tolerance=0.02, wrong=(
                    Wrong(lambda N, K, R, rope, S: N, "A key that is read serves the query heads of its group, not all."),
                    Wrong(lambda N, K, R, rope, S: 1.0, "That is one query head per key head; here several share what is read."),
                    Wrong(lambda N, K, R, rope, S: 2 * N / K, "Twice: a bf16 number has two bytes."),
                    Wrong(lambda N, K, R, rope, S: N / K / 2, "Half: a multiplication with its addition is two FLOPs."),
                    Wrong(lambda N, K, R, rope, S: K, "Upside down: it is the query heads per key head that count."),
                ),
            ),
            "latent": Number(lambda N, K, R, rope, S: v.decode_intensity(v.latent(N, R, rope), S), "FLOPs/B", tolerance=0.02, wrong=(
                    Wrong(lambda N, K, R, rope, S: N, "The latent is read once and serves two products: scores and values."),
                    Wrong(lambda N, K, R, rope, S: 2 * N, "Near: the scores use all that is kept, the values only the latent, not its part for positions."),
                    Wrong(lambda N, K, R, rope, S: 1.0, "That is keys and values for each head; a latent serves all heads."),
                ),
            ),
        }),
        hint="Per token kept: how many products of which width does it take part in, and how many bytes does it have?",
        code="""
N, K, R, rope = $N, $K, $R, $rope
grouped = N / K                  # 4·N·H FLOPs for 4·K·H bytes
latent = N * (2 * (R + rope) + 2 * R) / (2 * (R + rope))
answer = {"grouped": grouped, "latent": latent}
""",
        given={"N": 64, "K": 4, "R": 512, "rope": 64, "S": 32768},
        why=meaning.intensity_means,
    ),
    Exercise("transformers/latent-bytes", "The bytes of a latent",
        Parts({
            "token": Number(lambda L, N, R, rope, tp: v.latent_bytes(L, N, R, rope, 1), "B", tolerance=0.005, wrong=(
                    Wrong(lambda L, N, R, rope, tp: 4 * L * R, "One latent serves keys and values, so it is kept once; and the numbers for positions are kept beside it."),
                    Wrong(lambda L, N, R, rope, tp: 4 * L * (R + rope), "One latent serves keys and values: it is kept once."),
                    Wrong(lambda L, N, R, rope, tp: 2 * L * R, "The numbers for positions are kept beside the latent."),
                    Wrong(lambda L, N, R, rope, tp: v.expanded_bytes(L, N, rope), "Those are keys and values of all heads, which are not kept: they are made from the latent."),
                    Wrong(lambda L, N, R, rope, tp: 2 * (R + rope), "That is one layer."),
                ),
            ),
            "device": Number(lambda L, N, R, rope, tp: v.latent_bytes(L, N, R, rope, tp), "B", tolerance=0.005, wrong=(
                    Wrong(lambda L, N, R, rope, tp: v.latent_bytes(L, N, R, rope, 1) / tp, "All heads of all devices read the whole latent: it has no heads that could be split."),
                    Wrong(lambda L, N, R, rope, tp: v.expanded_bytes(L, N, rope) / tp, "Those are a device's heads, expanded; what is kept is the latent."),
                ),
            ),
        }),
        hint="What is kept is R + rope numbers in each layer. Which device can do without some of them?",
        code="""
token = $L * ($R + $rope) * 2
answer = {"token": token, "device": token}  # a copy on each
""",
        given={"L": 60, "N": 128, "R": 512, "rope": 64, "tp": 8},
        why=meaning.latent_means,
    ),
    Exercise("transformers/windows", "A cache with windows",
        Number(v.windowed_bytes, "B", tolerance=0.0004, capacity=True, wrong=(
                Wrong(lambda S, L, window, K, H: 4 * L * K * H * S, "Half of the layers keep a window only."),
                Wrong(lambda S, L, window, K, H: 2 * L * K * H * S, "Near: the windows keep a little as well."),
                Wrong(lambda S, L, window, K, H: 4 * L * K * H * window, "Half of the layers keep all tokens."),
                Wrong(lambda S, L, window, K, H: L * K * H * (S + window), "Half: keys and values are kept, and a bf16 number has two bytes."),
            ),
        ),
        hint="Two sums: the layers that keep S tokens, and those that keep a window.",
        code="""
L, K, H, S = $L, $K, $H, $S
one = 2 * K * H * 2              # one token in one layer
answer = L // 2 * one * S + L // 2 * one * $window
""",
        given={"S": 65536, "L": 36, "window": 128, "K": 8, "H": 64},
        why=meaning.windows_mean,
    ),
    Exercise("transformers/lost-field", "The field that is missing",
        Choice(v.lost, options=lambda: dict.fromkeys(v.LOST, ()), why_not=v.not_lost),
        hint="The difference is a whole number of layers times a whole number of columns of a weight with D rows. Which one?",
        code="""
config = {
    "model_type": "llama", "vocab_size": 128256, "hidden_size": 4096,
    "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "tie_word_embeddings": False, "rope_theta": 5e5}
assert sb.Model.from_hf(config).total_params == $published
for field in config:
    if field not in ("model_type", "hidden_size"):
        rest = {k: v for k, v in config.items() if k != field}
        if sb.Model.from_hf(rest).total_params == $counted:
            answer = field
""",
        given={"counted": 8835567616, "published": 8030261248},
        why=meaning.lost_means,
    ),
    Exercise("transformers/training-state", "What training keeps",
        Parts({
            "whole": Number(lambda params, ranks: v.state_bytes(params, ranks, 0), "B", tolerance=0.005, wrong=(
                    Wrong(lambda params, ranks: 2 * params, "Those are the weights; gradients, the fp32 copy and two moments are kept as well."),
                    Wrong(lambda params, ranks: 12 * params, "Those are the fp32 copy and the moments; weights and gradients in bf16 come on top."),
                    Wrong(lambda params, ranks: 14 * params, "Gradients, or the weights in bf16, are missing: two bytes each."),
                    Wrong(lambda params, ranks: 8 * params, "That is in bf16 throughout; copy and moments have four bytes each."),
                ),
            ),
            "moments": Number(lambda params, ranks: v.state_bytes(params, ranks, 1), "B", tolerance=0.005, wrong=(
                    Wrong(lambda params, ranks: v.state_bytes(params, ranks, 2), "That shares out the gradients as well; here they are whole on each device."),
                    Wrong(lambda params, ranks: v.state_bytes(params, ranks, 3), "That shares out everything; here weights and gradients are whole on each device."),
                    Wrong(lambda params, ranks: 12 * params / ranks, "The weights and the gradients are there too, whole."),
                ),
            ),
            "all": Number(lambda params, ranks: v.state_bytes(params, ranks, 3), "B", tolerance=0.005, wrong=(
                    Wrong(lambda params, ranks: v.state_bytes(params, ranks, 2), "The weights are shared out as well: nothing is whole at rest."),
                    Wrong(lambda params, ranks: 12 * params / ranks, "That is the copy and the moments; weights and gradients are shared out, but they are there."),
                ),
            ),
        }),
        hint="Bytes per parameter: 2 for the weight, 2 for the gradient, 4 for the copy, 4 for each moment. Which of them are divided?",
        code="""
P, ranks = $params, $ranks
weights, gradients, moments = 2 * P, 2 * P, (4 + 4 + 4) * P
answer = {
    "whole": weights + gradients + moments,
    "moments": weights + gradients + moments / ranks,
    "all": (weights + gradients + moments) / ranks,
}
""",
        given={"params": 70e9, "ranks": 64},
        why=meaning.state_means,
    ),
    Exercise("transformers/my-flops", "Count a training step",
        Function(
            "my_flops(L, D, F, N, K, H, V, B, T)",
            spec=_step,
            cases=((2, 64, 160, 4, 2, 16, 100, 3, 32), (1, 8, 16, 2, 1, 4, 10, 1, 1), (32, 4096, 14336, 32, 8, 128, 128256, 4, 8192), (12, 768, 2048, 16, 4, 64, 50304, 8, 1024)),
            unit="FLOPs",
            tolerance=1e-9,
            wrong=(
                WrongFunction(lambda *g: _by_hand(*g, pairs=g[-1] ** 2), "With a causal mask a token sees itself and what came before: T(T + 1)/2 pairs, not T²."),
                WrongFunction(lambda *g: _by_hand(*g, pairs=g[-1] ** 2 / 2), "Nearly: a token also sees itself, so there are T(T + 1)/2 pairs."),
                WrongFunction(lambda *g: _by_hand(*g, pairs=0), "Scores and values are missing: products of two activations, without a weight."),
                WrongFunction(lambda *g: _by_hand(*g, pairs=g[-1] * (g[-1] + 1) / 2, head=0), "The head is missing: D times V for each token."),
                WrongFunction(lambda *g: _by_hand(*g, pairs=g[-1] * (g[-1] + 1) / 2, table=1), "The table of embeddings is looked up, not multiplied."),
                WrongFunction(lambda *g: _by_hand(*g, pairs=g[-1] * (g[-1] + 1) / 2, rounds=1), "That is the forward pass; the backward pass takes twice as much again."),
                WrongFunction(lambda *g: _by_hand(*g, pairs=g[-1] * (g[-1] + 1) / 2, matrices=2), "A gated feed-forward layer has three matrices."),
                WrongFunction(lambda *g: _by_hand(*g, pairs=g[-1] * (g[-1] + 1) / 4), "Two products for each pair: scores and values."),
                WrongFunction(lambda L, D, F, N, K, H, V, B, T: _step(L, D, F, N, N, H, V, B, T), "Keys and values have K heads, not N."),
                WrongFunction(lambda L, D, F, N, K, H, V, B, T: 6 * B * T * Model.dense(L=L, D=D, F=F, N=N, K=K, H=H, V=V).total_params,
                              "That is the rule, 6 times all parameters: the table is no product, and scores and values are not in it."),
            ),
        ),
        hint="Sum the weights that are multiplied, then the pairs. Forward: 2 FLOPs for each weight and token, 4 · N · H for each pair and layer. Then times three.",
        code="""
def my_flops(L, D, F, N, K, H, V, B, T):
    layer = 2 * D * N * H + 2 * D * K * H + 3 * D * F
    weights = L * layer + D * V  # the head, but not the table
    pairs = T * (T + 1) // 2
    return 3 * B * (2 * weights * T + L * 4 * N * H * pairs)
""",
        why="It is all there is to count for this kind of model: everything else of the chapter, windows, experts, latents, changes one of these terms. What is left out are "
        "norms, the softmax and activations, whose FLOPs are few and whose time is that of memory.",
    ),
    Exercise("transformers/choose-a-shape", "Choose a shape (open)",
        Criterion(
            "whole numbers L, D, F, N, K, H",
            asks=tuple(Field(name, name, "text", example=example) for name, example in zip(v.SIZES, ("32", "4096", "14336", "32", "8", "128"), strict=True)),
            judge=v.shaped,
            best=v.best_shape,
        ),
        hint="A token keeps 4 · L · K · H bytes. The budget fixes about L · D², and N · H is at least D: so how small can L · K · H be?",
        code="""
hbm, found = sb.chip($chip).hbm_bytes, {}
L, K, H = 24, 9, 64              # a shallow model with few key heads
for D in range(4096, 8 * K * H + 1, 64):
    for F in range(2 * D, 4 * D + 1, 64):
        size = {"L": L, "D": D, "F": F, "N": 8 * K, "K": K, "H": H}
        x = sb.Model.dense(**size, V=$V)
        if abs(x.total_params / $target - 1) <= $tolerance:
            kept = (hbm - x.weight_bytes("bf16")) // x.kv_bytes(1)
            found[kept] = size
answer = found[max(found)]
""",
        given={"target": 8e9, "tolerance": 0.02, "V": 128256, "chip": "h100", "tokens": 1000000},
        why=meaning.shape_means,
    ),
)
# fmt: on
