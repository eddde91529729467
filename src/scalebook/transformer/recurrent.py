"""Blocks that keep a state instead of keys and values: state spaces, delta rules, linear attention, gated recurrences, convolutions.

A state is kept once per sequence, whatever its length. Of the recurrence itself the products are counted, as it runs token by token: an
outer product that writes into a state of p × s elements costs 2·p·s FLOPs, a read from it 2·p·s. A depthwise convolution of W channels
and t taps keeps its last t − 1 inputs: W·(t − 1) elements. (Some implementations keep t columns, one more than the next token needs.)
"""

from __future__ import annotations

from scalebook.errors import SizeError
from scalebook.transformer.blocks import Block
from scalebook.transformer.ops import Op, Size, conv, matmul, nothing, scan, vector
from scalebook.units import is_array


def _convolved(part: str, width: Size, taps: Size, bias: bool = False) -> tuple[Op, ...]:
    """A depthwise convolution, and a bias for each channel."""
    ops = (conv(part, width, taps),)
    return (*ops, vector(f"{part}_bias", width)) if bias else ops


def _each(n: Size, pieces: Size, what: str) -> Size:
    """n ÷ pieces; SizeError unless it is whole."""
    if not is_array(n) and not is_array(pieces) and (pieces < 1 or n % pieces):
        raise SizeError(f"{n} {what} do not make {pieces} equal groups: their number must be a multiple of {pieces}")
    return n // pieces


def _vectors(name: str, **sizes: Size) -> tuple[Op, ...]:
    """Parameters that are used element by element, those that are there at all."""
    return tuple(vector(f"{name}/{part}", n) for part, n in sizes.items() if not nothing(n))


def mamba(
    *,
    D: Size,
    inner: Size,
    state: Size,
    rank: Size,
    taps: Size,
    conv_bias: bool = True,
    bias: bool = False,
    norms: bool = False,
) -> Block:
    """Mamba: `inner` channels, each with a state of `state` numbers that decays by a step size chosen from the input.

    Parameters: 2·D·inner in, inner·D out, inner·(rank + 2·state) and rank·inner for step size, B and C, inner·state decays. Writing B·x and
    reading with C are 4·inner·state FLOPs per token. `bias` is of the projections in and out, `norms` are of step size, B and C.
    Kept per sequence: inner·state, and inner·(taps − 1) of the convolution. Source: Gu & Dao 2023, arXiv 2312.00752.

    >>> sum(op.params for op in mamba(D=8, inner=16, state=4, rank=2, taps=4).ops)
    752
    """
    ops = [
        matmul("mamba/gate", "In[B, T, D] * W[D, M] -> Gate[B, T, M]", D=D, M=inner),
        matmul("mamba/x", "In[B, T, D] * W[D, M] -> X[B, T, M]", D=D, M=inner),
        *_convolved("mamba/conv", inner, taps, conv_bias),
        matmul("mamba/select", "X[B, T, M] * W[M, R] -> Chosen[B, T, R]", M=inner, R=rank + 2 * state),
        matmul("mamba/step", "Chosen[B, T, R] * W[R, M] -> Step[B, T, M]", R=rank, M=inner),
        scan("mamba/scan", 4 * inner * state),
        matmul("mamba/out", "Y[B, T, M] * W[M, D] -> Out[B, T, D]", M=inner, D=D),
        *_vectors("mamba", step_bias=inner, decay=inner * state, skip=inner, norm=rank + 2 * state if norms else 0),
        *_vectors("mamba", in_bias=2 * inner if bias else 0, out_bias=D if bias else 0),
    ]
    kept = {"conv": inner * (taps - 1), "recurrent": inner * state}
    return Block("Mamba", tuple(ops), state=kept, facts={"D": D, "inner": inner, "state": state})


def mamba2(
    *,
    D: Size,
    N: Size,
    K: Size,
    H: Size,
    state: Size,
    taps: Size,
    conv_bias: bool = True,
    in_bias: bool = False,
    out_bias: bool = False,
    norm: bool = True,
) -> Block:
    """Mamba-2: N heads of H channels with one decay each; B and C of `state` numbers are shared by groups of N ÷ K heads.

    In: D·(2·N·H + 2·K·state + N). Writing and reading a state of H × state are 4·N·H·state FLOPs per token. Kept per sequence: N·H·state, and
    (N·H + 2·K·state)·(taps − 1) of the convolution. Source: Dao & Gu 2024, arXiv 2405.21060. SizeError unless N is a multiple of K.

    >>> mamba2(D=4096, N=128, K=1, H=64, state=128, taps=4).state
    {'conv': 25344, 'recurrent': 1048576}
    """
    _each(N, K, "Mamba heads")
    inner, shared = N * H, 2 * K * state
    ops = [
        matmul("mamba/gate", "In[B, T, D] * W[D, N, H] -> Gate[B, T, N, H]", D=D, N=N, H=H),
        matmul("mamba/x", "In[B, T, D] * W[D, N, H] -> X[B, T, N, H]", D=D, N=N, H=H),
        matmul("mamba/select", "In[B, T, D] * W[D, R] -> Chosen[B, T, R]", D=D, R=shared),
        matmul("mamba/step", "In[B, T, D] * W[D, N] -> Step[B, T, N]", D=D, N=N),
        *_convolved("mamba/conv", inner + shared, taps, conv_bias),
        scan("mamba/scan", 4 * inner * state),
        matmul("mamba/out", "Y[B, T, N, H] * W[N, H, D] -> Out[B, T, D]", N=N, H=H, D=D),
        *_vectors("mamba", step_bias=N, decay=N, skip=N, norm=inner if norm else 0),
        *_vectors("mamba", in_bias=2 * inner + shared + N if in_bias else 0, out_bias=D if out_bias else 0),
    ]
    kept = {"conv": (inner + shared) * (taps - 1), "recurrent": inner * state}
    return Block("Mamba-2", tuple(ops), state=kept, facts={"D": D, "heads": N, "width": H, "state": state})


def gated_delta_net(*, D: Size, K: Size, N: Size, key: Size, value: Size, taps: Size) -> Block:
    """Gated delta rule: N states of key × value numbers; K heads of queries and keys are shared by groups of N ÷ K value heads.

    Each token decays a state, reads what it holds under its key, and writes the difference to its value: 3 products with the state, 6·N·key·value
    FLOPs. Decay and strength of writing are one number per head. Kept per sequence: N·key·value, and (2·K·key + N·value)·(taps − 1) of the
    convolution. Source: Yang et al. 2024, arXiv 2412.06464. SizeError unless N is a multiple of K.

    >>> gated_delta_net(D=5120, K=16, N=48, key=128, value=128, taps=4).state
    {'conv': 30720, 'recurrent': 786432}
    """
    _each(N, K, "value heads")
    ops = [
        matmul("delta/q", "In[B, T, D] * W[D, K, H] -> Q[B, T, K, H]", D=D, K=K, H=key),
        matmul("delta/k", "In[B, T, D] * W[D, K, H] -> Key[B, T, K, H]", D=D, K=K, H=key),
        matmul("delta/v", "In[B, T, D] * W[D, N, H] -> Value[B, T, N, H]", D=D, N=N, H=value),
        matmul("delta/gate", "In[B, T, D] * W[D, N, H] -> Gate[B, T, N, H]", D=D, N=N, H=value),
        matmul("delta/strength", "In[B, T, D] * W[D, N] -> Strength[B, T, N]", D=D, N=N),
        matmul("delta/decay", "In[B, T, D] * W[D, N] -> Decay[B, T, N]", D=D, N=N),
        *_convolved("delta/conv", 2 * K * key + N * value, taps),
        scan("delta/scan", 6 * N * key * value),
        matmul("delta/o", "Head[B, T, N, H] * W[N, H, D] -> Out[B, T, D]", N=N, H=value, D=D),
        *_vectors("delta", decay_bias=N, decay_scale=N, norm=value),
    ]
    kept = {"conv": (2 * K * key + N * value) * (taps - 1), "recurrent": N * key * value}
    return Block("gated delta rule", tuple(ops), state=kept, facts={"D": D, "heads": N, "width": value, "state": key})


def kimi_delta(*, D: Size, N: Size, H: Size, taps: Size, rank: Size = None) -> Block:
    """Kimi Delta Attention: the gated delta rule with a decay for each of the H channels of a key, N heads, each with a state of H × H.

    Decay and output gate are D·N·H each, or go through `rank` numbers: D·rank + rank·N·H. 6·N·H² FLOPs per token in the recurrence. Kept
    per sequence: N·H², and 3·N·H·(taps − 1) of the convolution. Source: Kimi Team 2025, arXiv 2510.26692.

    >>> kimi_delta(D=2304, N=32, H=128, taps=4, rank=128).state
    {'conv': 36864, 'recurrent': 524288}
    """
    ops = [
        matmul(f"delta/{part}", "In[B, T, D] * W[D, N, H] -> Out[B, T, N, H]", D=D, N=N, H=H)
        for part in ("q", "k", "v", *(("decay", "gate") if rank is None else ()))
    ]
    for part in () if rank is None else ("decay", "gate"):
        ops.append(matmul(f"delta/{part}_down", "In[B, T, D] * W[D, R] -> Low[B, T, R]", D=D, R=rank))
        ops.append(matmul(f"delta/{part}_up", "Low[B, T, R] * W[R, N, H] -> Out[B, T, N, H]", R=rank, N=N, H=H))
    ops += [
        matmul("delta/strength", "In[B, T, D] * W[D, N] -> Strength[B, T, N]", D=D, N=N),
        *_convolved("delta/conv", 3 * N * H, taps),
        scan("delta/scan", 6 * N * H * H),
        matmul("delta/o", "Head[B, T, N, H] * W[N, H, D] -> Out[B, T, D]", N=N, H=H, D=D),
        *_vectors("delta", decay_bias=N * H, decay_scale=N, norm=H),
    ]
    kept = {"conv": 3 * N * H * (taps - 1), "recurrent": N * H * H}
    return Block("Kimi delta attention", tuple(ops), state=kept, facts={"D": D, "heads": N, "width": H, "state": H})


def lightning(*, D: Size, N: Size, H: Size) -> Block:
    """Lightning attention: linear attention with a fixed decay per head, a norm, and a gate computed from the input: 5·D·N·H parameters.

    Writing key ⊗ value and reading with the query are 4·N·H² FLOPs per token. Kept per sequence: N·H². Source: MiniMax 2025, arXiv 2501.08313.

    >>> lightning(D=6144, N=64, H=128).state
    {'recurrent': 1048576}
    """
    ops = [
        matmul(f"lightning/{part}", "In[B, T, D] * W[D, N, H] -> Out[B, T, N, H]", D=D, N=N, H=H)
        for part in ("q", "k", "v", "gate")
    ]
    ops += [
        scan("lightning/scan", 4 * N * H * H),
        vector("lightning/norm", N * H),
        matmul("lightning/o", "Head[B, T, N, H] * W[N, H, D] -> Out[B, T, D]", N=N, H=H, D=D),
    ]
    return Block(
        "lightning attention", tuple(ops), state={"recurrent": N * H * H}, facts={"D": D, "heads": N, "width": H, "state": H}
    )


def rg_lru(*, D: Size, width: Size, blocks: Size, taps: Size) -> Block:
    """Griffin's recurrent block: two branches of `width` channels, one through a convolution and a gated linear recurrence (RG-LRU).

    The two gates of the recurrence are block-diagonal: width² ÷ blocks each. The recurrence itself is element by element: no products.
    Kept per sequence: width, and width·(taps − 1) of the convolution. Source: De et al. 2024, arXiv 2402.19427. SizeError unless the blocks are whole.

    >>> rg_lru(D=2560, width=2560, blocks=10, taps=4).state
    {'conv': 7680, 'recurrent': 2560}
    """
    H = _each(width, blocks, "channels")
    ops = [
        *(matmul(f"rg_lru/{part}", "In[B, T, D] * W[D, M] -> X[B, T, M]", D=D, M=width) for part in ("gate", "x")),
        *_convolved("rg_lru/conv", width, taps, bias=True),
        *(
            matmul(f"rg_lru/{part}", "X[B, T, N, H] * W[N, H, J] -> Gate[B, T, N, J]", N=blocks, H=H, J=H)
            for part in ("input_gate", "decay_gate")
        ),
        matmul("rg_lru/out", "Y[B, T, M] * W[M, D] -> Out[B, T, D]", M=width, D=D),
        *_vectors("rg_lru", in_bias=2 * width, out_bias=D, input_gate_bias=width, decay_gate_bias=width, decay=width),
    ]
    return Block("RG-LRU", tuple(ops), state={"conv": width * (taps - 1), "recurrent": width}, facts={"D": D, "width": width})


def short_conv(*, D: Size, taps: Size, bias: bool = False) -> Block:
    """Gated short convolution: D·3D in (two gates and the values), `taps` taps per channel, D·D out. Kept per sequence: D·(taps − 1).

    Source: Liquid AI's LFM2, arXiv 2511.23404.

    >>> short_conv(D=2048, taps=3).state
    {'conv': 4096}
    """
    ops = [
        *(matmul(f"conv/{part}", "In[B, T, D] * W[D, M] -> X[B, T, M]", D=D, M=D) for part in ("in_gate", "out_gate", "x")),
        *_convolved("conv/conv", D, taps, bias),
        matmul("conv/out", "Y[B, T, M] * W[M, D] -> Out[B, T, D]", M=D, D=D),
        *_vectors("conv", in_bias=3 * D if bias else 0, out_bias=D if bias else 0),
    ]
    return Block("short convolution", tuple(ops), state={"conv": D * (taps - 1)}, facts={"D": D})


def rwkv_time(*, D: Size, inner: Size) -> Block:
    """RWKV-4's mixing along the sequence: key, value and receptance of `inner` channels, each a running weighted mean, element by element.

    Kept per sequence: numerator, denominator and largest exponent of each channel, and the last input of this block and of the channel
    mixing that follows it: 3·inner + 2·D. Source: Peng et al. 2023, arXiv 2305.13048.

    >>> rwkv_time(D=4096, inner=4096).state
    {'shift': 8192, 'recurrent': 12288}
    """
    ops = [matmul(f"rwkv/{part}", "In[B, T, D] * W[D, M] -> X[B, T, M]", D=D, M=inner) for part in ("k", "v", "r")]
    ops += [
        matmul("rwkv/o", "Y[B, T, M] * W[M, D] -> Out[B, T, D]", M=inner, D=D),
        *_vectors("rwkv", decay=inner, bonus=inner, shift=3 * D),
    ]
    return Block("RWKV", tuple(ops), state={"shift": 2 * D, "recurrent": 3 * inner}, facts={"D": D, "inner": inner})


def rwkv_channel(*, D: Size, F: Size) -> Block:
    """RWKV-4's mixing of channels: two matrices of width F, and a gate D·D. What it keeps is counted with `rwkv_time`."""
    ops = (
        matmul("mlp/up", "In[B, T, D] * W[D, F] -> Up[B, T, F]", D=D, F=F),
        matmul("mlp/down", "Mid[B, T, F] * W[F, D] -> Out[B, T, D]", F=F, D=D),
        matmul("mlp/r", "In[B, T, D] * W[D, M] -> Gate[B, T, M]", D=D, M=D),
        vector("mlp/shift", 2 * D),
    )
    return Block("mlp", ops, facts={"D": D, "F": F})


def mlstm(*, D: Size, N: Size, key: Size, value: Size, bias: bool = False) -> Block:
    """xLSTM's matrix memory (mLSTM): N states of key × value numbers, each with a normaliser of `key` numbers and a largest exponent.

    q and k are D·N·key each, v and the output gate D·N·value; two exponential gates per head. Writing and reading the memory, and
    reading the normaliser, are N·(4·key·value + 2·key) FLOPs per token. Kept per sequence: N·(key·value + key + 1). `bias` is of all
    projections and of the norm; the two gates always have one. Source: Beck et al. 2024, arXiv 2405.04517.

    >>> mlstm(D=4096, N=8, key=256, value=512).state
    {'recurrent': 1050632}
    """
    widths = {"q": key, "k": key, "v": value, "gate": value}
    ops = [
        *(matmul(f"mlstm/{p}", "In[B, T, D] * W[D, N, H] -> Out[B, T, N, H]", D=D, N=N, H=H) for p, H in widths.items()),
        *(matmul(f"mlstm/{p}", "In[B, T, D] * W[D, N] -> Gate[B, T, N]", D=D, N=N) for p in ("input_gate", "forget_gate")),
        scan("mlstm/scan", N * (4 * key * value + 2 * key)),
        matmul("mlstm/o", "Head[B, T, N, H] * W[N, H, D] -> Out[B, T, D]", N=N, H=value, D=D),
        *_vectors(
            "mlstm",
            norm=N * value * (2 if bias else 1),
            gates_bias=2 * N,
            in_bias=N * sum(widths.values()) if bias else 0,
            o_bias=D if bias else 0,
        ),
    ]
    return Block(
        "mLSTM", tuple(ops), state={"recurrent": N * (key * value + key + 1)}, facts={"D": D, "heads": N, "width": value}
    )
