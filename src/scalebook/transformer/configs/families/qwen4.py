"""Qwen4-Exp: residual streams mixed by learned weights, tables of n-grams in some layers, attention to the best blocks of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from scalebook.factors import is_prime
from scalebook.transformer.blocks import Block, Cache
from scalebook.transformer.configs.families.delta import delta, every, shared_experts
from scalebook.transformer.configs.families.hybrid import LINEAR, heads, uncounted, wrong
from scalebook.transformer.configs.families.shared import no_count
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.layers import Layer, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import Op, Span, conv, matmul, mixing, table, vector
from scalebook.units import round_up

_INDEXED = "indexed_attention"
_MOST_HEADS = 4096  # of n-grams, in all layers


def qwen4_exp(c: Fields) -> Model:
    """Qwen3.5's layers of the gated delta rule and gated attention with experts, between hyper-connections instead of norms.

    Attention sees `indexer_budget` tokens, chosen in blocks of `indexer_compress_ratio` by an index. Layers `ple_layer_ids` (from 1) add what
    tables of hashed n-grams say. There is no last norm: the mixer that joins the streams has it.
    """
    L, D, streams, R = c.layers(), c.size("hidden_size"), c.size("hc_count"), c.size("hc_lowrank")
    if streams < 2:
        raise wrong(c, "hc_count must be at least 2")
    words = c.raw("layer_types", default=None)
    if isinstance(words, list | tuple):  # published configurations say "full_attention"
        c.config["layer_types"] = [_INDEXED if word in ("full_attention", "qwen_sparse_attention") else word for word in words]
    kinds = every(c, L, _INDEXED)
    joined = Block("hyper-connections", _hyper(D, streams, R, use=True) * 2)
    after = shared_experts(c, D)
    mixing_blocks = {LINEAR: delta(c, D)} if LINEAR in kinds else {}
    if _INDEXED in kinds:
        mixing_blocks[_INDEXED] = _indexed(c, D)
    layers = {kind: Layer(kind, (joined, block, after)) for kind, block in mixing_blocks.items()}
    names = list(kinds)
    for i, tables in zip(_table_layers(c, kinds), _tables(c), strict=False):
        names[i] = f"{LINEAR}, n-grams of layer {i + 1}"
        layers[names[i]] = Layer("", (joined, mixing_blocks[LINEAR], after, _ngrams(c, D, streams, tables)))
    V, tied = c.size("vocab_size"), c.flag("tie_word_embeddings")
    outer: tuple[Op, ...] = (
        table("embedding", V * D),
        *_hyper(D, streams, R, use=False),
        matmul("head", "In[B, T, D] * W[D, V] -> Logits[B, T, V]", stored=not tied, D=D, V=V),
    )
    no_count(c, "intermediate_size", "mamba_ssm_dtype", "mtp_use_dedicated_embeddings", "attn_output_gate")
    context = c.context("max_position_embeddings")
    stack = stacked((name, layers[name]) for name in names)
    return Model("", c.family, D, V, stack, outer, tied, (), context, not_counted=uncounted(c, "mtp_num_hidden_layers"))


def _hyper(D: int, streams: int, R: int, *, use: bool) -> tuple[Op, ...]:
    """One gated residual: a norm over all streams, weights of rank R that mix them into one, and one weight per stream for the result."""
    ops = (
        vector("hyper/norm", streams * D),
        matmul("hyper/down", "In[B, T, J] * W[J, R] -> Low[B, T, R]", J=streams * D, R=R),
        matmul("hyper/up", "Low[B, T, R] * W[R, J] -> Mix[B, T, J]", R=R, J=streams * D),
    )
    return (*ops, matmul("hyper/inject", "In[B, T, J] * W[J, I] -> Weight[B, T, I]", J=streams * D, I=streams)) if use else ops


def _indexed(c: Fields, D: int) -> Block:
    """Gated attention with an index: N heads of queries against one key per block of tokens, the mean of their keys.

    The index keeps a key for every token, so that blocks can be formed.
    """
    names = ("indexer_n_heads", "indexer_head_dim", "indexer_budget", "indexer_compress_ratio")
    missing = [name for name in names if not c.given(name)]
    if missing:
        raise wrong(c, f"its attention chooses keys by an index, and it has no {', '.join(missing)}")
    N, H, budget, ratio = (c.size(name) for name in names)
    c.must("indexer_kv_heads", 1, "the index has one key for all heads")
    if budget % ratio:
        raise wrong(c, f"indexer_budget = {budget} must be a multiple of indexer_compress_ratio = {ratio}")
    index = (
        matmul("index/q", "In[B, T, D] * W[D, N, H] -> Q[B, T, N, H]", D=D, N=N, H=H),
        matmul("index/k", "In[B, T, D] * W[D, H] -> Key[B, T, H]", D=D, H=H),
        vector("index/norm", 2 * H),
        mixing("index/scores", "Q[B, T, N, H] * Key[B, S, H] -> Score[B, N, T, S]", Span("every", ratio), N=N, H=H),
    )
    block = heads(c, D, bias=c.flag("attention_bias"), norm=True, gate=True, span=Span("top", budget), extra=index)
    kept = tuple(Cache(each.heads, each.key, each.value) for each in block.cache)
    return replace(block, cache=(*kept, Cache(1, H, 0, "index")))


def _table_layers(c: Fields, kinds: list[str]) -> list[int]:
    """Layers that have tables of n-grams, from 0; the field counts from 1."""
    at = sorted(i - 1 for i in c.places("ple_layer_ids", len(kinds) + 1))
    if any(i < 0 or kinds[i] != LINEAR for i in at):
        raise wrong(c, f"ple_layer_ids must name layers of kind {LINEAR}, from 1 to {len(kinds)}")
    return at


def _tables(c: Fields) -> Iterator[int]:
    """Rows of the table of each such layer: a different prime for each hashed head, in all rounded up to a multiple."""
    n, prime = _ngram_heads(c), c.size("ngram_vocab_size_base") - 1
    multiple = c.size("make_ngram_vocab_size_divisible_by")
    for _ in range(_MOST_HEADS // n):
        rows = 0
        for _ in range(n):
            prime += 1
            while not is_prime(prime):
                prime += 1
            rows += prime
        yield int(round_up(rows, multiple))
    raise wrong(c, f"its layers have more than {_MOST_HEADS} tables of n-grams; that is not counted")


def _ngram_heads(c: Fields) -> int:
    n = (c.size("ngram_size") - 1) * c.size("heads_per_ngram")
    if not 1 <= n <= _MOST_HEADS:
        raise wrong(c, f"n-grams of ngram_size must have from 1 to {_MOST_HEADS} heads; found {n}")
    return n


def _ngrams(c: Fields, D: int, streams: int, rows: int) -> Block:
    """What a table of n-grams adds: a key for each stream and a value, three norms, and a convolution with gaps of `ngram_size` tokens.

    Kept per sequence: the convolution's inputs and the last tokens.
    """
    width = c.maybe("ple_embed_dim") or D
    n, gap, taps = _ngram_heads(c), c.size("ngram_size"), c.size("ple_conv_kernel_size")
    if width % n:
        raise wrong(c, f"ple_embed_dim = {width} must be a multiple of its {n} heads of n-grams")
    J = streams * D
    ops = (
        table("ngrams/table", rows * (width // n)),
        matmul("ngrams/k", "In[B, T, R] * W[R, J] -> Key[B, T, J]", R=width, J=J),
        matmul("ngrams/v", "In[B, T, R] * W[R, D] -> Value[B, T, D]", R=width, D=D),
        vector("ngrams/norms", 3 * J),
        conv("ngrams/conv", J, taps),
    )
    return Block("n-grams", ops, state={"conv": J * (taps - 1) * gap, "tokens": gap - 1})


FAMILIES: Mapping[str, Callable[[Fields], Model]] = {"qwen4_exp_text": qwen4_exp}
