"""Sparse attention's indexer: small heads that score all keys, of which the attention then sees only the best."""

from __future__ import annotations

from scalebook.transformer.blocks import Block, Cache
from scalebook.transformer.ops import FULL, Op, Size, Span, matmul, mixing, vector


def indexer(*, D: Size, N: Size, H: Size, q_rank: Size = None, span: Span = FULL, extra: tuple[Op, ...] = ()) -> Block:
    """A lightning indexer: N heads of width H, whose queries come from `q_rank` numbers (from the D-wide input if None), and one key for all.

    score = Σ over heads of weight · ReLU(query · key): 2·N·H + 2·N FLOPs per pair. Kept per token: H, on every device, whatever the
    attention itself keeps. Keys are normalised (a scale and a bias each). Source: DeepSeek-AI 2025, DeepSeek-V3.2-Exp.

    >>> sum(op.params for op in indexer(D=7168, N=64, H=128, q_rank=1536).ops)
    13959424
    """
    keys = (
        matmul("index/k", "In[B, T, D] * W[D, H] -> Key[B, T, H]", D=D, H=H),
        vector("index/k_norm", 2 * H),
    )
    return Block("indexer", (*_scoring(D=D, N=N, H=H, q_rank=q_rank, span=span), *keys, *extra), (Cache(1, H, 0, "index"),))


def _scoring(*, D: Size, N: Size, H: Size, q_rank: Size, span: Span) -> tuple[Op, ...]:
    q = matmul("index/q", "In[B, T, D] * W[D, N, H] -> Q[B, T, N, H]", D=D, N=N, H=H)
    if q_rank is not None:
        q = matmul("index/q", "Qlow[B, T, R] * W[R, N, H] -> Q[B, T, N, H]", R=q_rank, N=N, H=H)
    return (
        q,
        matmul("index/weight", "In[B, T, D] * W[D, N] -> Weight[B, T, N]", D=D, N=N),
        mixing("index/scores", "Q[B, T, N, H] * Key[B, S, H] -> Score[B, N, T, S]", span, N=N, H=H),
        mixing("index/sum", "Weight[B, T, N] * Score[B, N, T, S] -> Index[B, T, S]", span, N=N),
    )


def compressor(name: str, *, D: Size, H: Size, every: Size, overlap: bool, kind: str = "latent") -> Block:
    """One entry of width H for every `every` tokens: a weighted mean of their values, with weights from a softmax over the group.

    With `overlap` each token gives two values, one for its own group and one for the next. Values, weights and a bias by place: three
    arrays of width W = H, or 2·H with overlap. Kept: H per group; and, once per sequence, values and weights of the group that is not full
    yet (2 · every · W) and of the last one (2 · every · H, with overlap). Source: DeepSeek-AI 2026, DeepSeek-V4.

    >>> compressor("attention/compressor", D=4096, H=512, every=4, overlap=True).state
    {'attention/compressor': 12288}
    """
    W = 2 * H if overlap else H
    ops = (
        matmul(f"{name}/value", "In[B, T, D] * W[D, H] -> Value[B, T, H]", D=D, H=W),
        matmul(f"{name}/weight", "In[B, T, D] * W[D, H] -> Weight[B, T, H]", D=D, H=W),
        vector(f"{name}/bias", every * W),
        vector(f"{name}/norm", H),
    )
    state = 2 * every * W + (2 * every * H if overlap else 0)
    return Block("compressor", ops, (Cache(1, H, 0, kind, Span("every", every)),), {name: state})


def compressed_indexer(*, D: Size, N: Size, H: Size, q_rank: Size, every: Size) -> Block:
    """An indexer whose keys are compressed: one for every `every` tokens (DeepSeek-V4)."""
    keys = compressor("index/compressor", D=D, H=H, every=every, overlap=True, kind="index")
    scoring = _scoring(D=D, N=N, H=H, q_rank=q_rank, span=Span("every", every))
    return Block("indexer", (*scoring, *keys.ops), keys.cache, keys.state)
