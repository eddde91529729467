"""Right and known wrong values of the exercises of Transformer math, and the judge of the open one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.errors import ExerciseError
from scalebook.exercises.answers import read
from scalebook.exercises.composed import Score, split
from scalebook.hardware import chip as chip_of
from scalebook.memory import training_state
from scalebook.transformer import Model
from scalebook.transformer.blocks import Block, attention, experts, latent_attention
from scalebook.transformer.layers import Layer, around, norms
from scalebook.transformer.ops import Span
from scalebook.units import binary, count, digits, percent

SIZES = ("L", "D", "F", "N", "K", "H")
NOPE, VALUE = 128, 128  # of a DeepSeek: widths of keys without positions, and of values
GOOD = {"L": 24, "D": 4544, "F": 16960, "N": 72, "K": 9, "H": 64}  # of all shapes that pass, what holds most tokens


def layer_params(D: int, F: int, N: int, K: int, H: int, matrices: int = 3) -> int:
    """Parameters of the matrices of one layer."""
    return 2 * D * N * H + 2 * D * K * H + matrices * D * F


def token_flops(T: int, **sizes: Any) -> float:
    """FLOPs of a training step per token, of sequences of T tokens."""
    return float(Model.dense(**sizes).flops(batch=1, seq_len=T) / T)


def six_n(**sizes: Any) -> float:
    return float(Model.dense(**sizes).six_nd(1))


def equal_length(D: int, F: int, N: int, K: int, H: int) -> float:
    """The length at which scores and values take the FLOPs of a layer's matrices: 2·N·H·(T + 1) = 2·params."""
    return layer_params(D, F, N, K, H) / (N * H) - 1


def free_bytes(chip: str, **sizes: Any) -> float:
    """HBM of a chip that is left beside the weights in bf16."""
    return (chip_of(chip).hbm_bytes or 0) - float(Model.dense(**sizes).weight_bytes("bf16"))


def fitting(chip: str, S: int, **sizes: Any) -> int:
    """Sequences of S tokens whose keys and values fit beside the weights."""
    return int(free_bytes(chip, **sizes) // Model.dense(**sizes).kv_bytes(S))


def mixture(L: int, D: int, F: int, N: int, K: int, H: int, V: int, E: int, k: int) -> Model:
    """A model all of whose layers have E experts of width F."""
    blocks = (norms(D, D), attention(D=D, N=N, K=K, H=H), experts(D=D, F=F, E=E, k=k))
    return Model("by hand", "mixture", D, V, (Layer("layer", blocks, L),), around(D=D, V=V, tied=False))


def decode_intensity(block: Block, S: int) -> float:
    """FLOPs per byte of scores and values for one new token over S kept in bf16; queries and results are not counted."""
    ops = block.decoding or tuple(op for op in block.ops if op.kind == "mixing")
    return float(sum(op.pair_flops for op in ops) * S / (2 * S * sum(c.heads * (c.key + c.value) for c in block.cache)))


def grouped(N: int, K: int) -> Block:
    return attention(D=N, N=N, K=K, H=1)


def latent(N: int, R: int, rope: int) -> Block:
    return latent_attention(D=N, N=N, kv_rank=R, nope=NOPE, rope=rope, v=VALUE)


def latent_bytes(L: int, N: int, R: int, rope: int, tp: int) -> int:
    """Bytes of a token's latents in bf16 on each of `tp` devices."""
    model = Model("by hand", "latent", N, 1, (Layer("layer", (latent(N, R, rope),), L),), ())
    return int(model.kv_bytes(1, tp=tp))


def expanded_bytes(L: int, N: int, rope: int) -> int:
    """The same if keys and values of all heads were kept."""
    return 2 * L * N * (NOPE + rope + VALUE)


def windowed_bytes(S: int, L: int, window: int, K: int, H: int) -> int:
    """Bytes in bf16 of a sequence whose layers are half full, half with a window."""
    kinds = {"full": Span(), "window": Span("window", window)}
    layers = tuple(Layer(name, (attention(D=K * H, N=K, K=K, H=H, span=s),), L // 2) for name, s in kinds.items())
    return int(Model("by hand", "windows", K * H, 1, layers, ()).kv_bytes(S))


# ---- a configuration that has lost a field ----------------------------------------------------------------------------------

CONFIG: Mapping[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "tie_word_embeddings": False,
    "rope_theta": 500000.0,
}
LOST = ("num_key_value_heads", "intermediate_size", "vocab_size", "head_dim", "tie_word_embeddings", "rope_theta")


def without(field: str) -> int:
    """What is counted of the configuration without a field."""
    return int(Model.from_hf({k: v for k, v in CONFIG.items() if k != field}).total_params)


def lost(counted: int, published: int) -> str:
    """The field without which this is counted."""
    if Model.from_hf(CONFIG).total_params != published:
        raise ExerciseError(f"the complete configuration does not have {count(published)} parameters")
    found = [field for field in LOST if without(field) == counted]
    if len(found) != 1:
        raise ExerciseError(f"{count(counted)} parameters are explained by {len(found)} of the fields, not by one")
    return found[0]


def not_lost(field: str, counted: int, published: int) -> str:
    """What the count would be without another field."""
    n = without(field) - published
    if not n:
        return "Without it the count stays the same, for the default is what stands there, or it is no size at all."
    return f"Without it the count changes by {count(n)}, to the default's; here it changes by {count(counted - published)}."


# ---- bytes of a training state ----------------------------------------------------------------------------------------------


def state_bytes(params: float, ranks: int, zero: int) -> float:
    """Bytes on each device of bf16 weights and gradients, an fp32 copy and two fp32 moments, shared out by a stage of ZeRO."""
    return float(training_state(int(params), "mixed", zero=zero, ranks=ranks).total)


# ---- the open question ------------------------------------------------------------------------------------------------------


def sized(answer: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in split(answer, SIZES).items():
        q = read(value)
        if not q.fits((0, 0, 0)) or q.value != int(q.value) or not 1 <= q.value <= 10**6:
            raise ExerciseError(f"{name} is a whole number from 1 to 1,000,000")
        found[name] = int(q.value)
    return found


def shaped(answer: object, target: float, tolerance: float, V: int, chip: str, tokens: int) -> Score:
    """The judge: a model of about so many parameters, of a usual shape, of whose tokens a chip keeps at least so many."""
    size = sized(answer)
    L, D, F, N, K, H = (size[name] for name in SIZES)
    if N % K:
        return Score(False, "not yet.", diagnosis=f"{N} query heads cannot share {K} key heads: N must be a multiple of K.")
    x = Model.dense(**size, V=V)
    free = (chip_of(chip).hbm_bytes or 0) - x.weight_bytes("bf16")
    held = max(0, int(free // x.kv_bytes(1)))
    rules = (
        ("parameters", count(x.total_params), f"within {percent(tolerance)} of {count(target)}", abs(x.total_params / target - 1) <= tolerance),
        ("D ÷ L", digits(D / L), "from 64 to 192", 64 <= D / L <= 192),
        ("F ÷ D", digits(F / D), "from 2 to 4", 2 <= F / D <= 4),
        ("D, F, H", f"{count(D)}, {count(F)}, {count(H)}", "multiples of 64", D % 64 == F % 64 == H % 64 == 0),
        ("N · H", count(N * H), "≥ D", N * H >= D),
        ("N ÷ K", digits(N / K), "≤ 8", N / K <= 8),
        (f"tokens kept beside {binary(x.weight_bytes('bf16'))}", count(held), f"≥ {count(tokens)}", held >= tokens),
    )  # fmt: skip
    hints = (
        f"The model is too {'small' if x.total_params < target else 'large'} for the budget.",
        "It is too " + ("deep" if D / L < 64 else "shallow") + " for its width.",
        "The feed-forward layer is out of the usual range.",
        "Matrix units pad what is not a multiple of their width.",
        "The heads together are narrower than the model.",
        "More than that many query heads on one key head is more than most models dare.",
        "What is kept of a token is 2 · L · K · H numbers: which of the three can be smaller?",
    )
    rows = tuple((name, value, f"{rule} {'✓' if ok else '✗'}") for name, value, rule, ok in rules)
    why = [hint for hint, rule in zip(hints, rules, strict=True) if not rule[3]]
    message = "it meets every condition." if not why else "not yet."
    return Score(not why, message, value=held, rows=rows, diagnosis="\n".join(why))


def best_shape(target: float, tolerance: float, V: int, chip: str, tokens: int) -> float:
    return shaped(GOOD, target, tolerance, V, chip, tokens).value
