"""The operations of a Transformer: each a line of the notation, from which its parameters and its FLOPs follow.

    >>> up = matmul("mlp/up", "In[B, T, D] * W[D, F] -> Up[B, T, F]", D=4096, F=14336)
    >>> up.params, up.token_flops
    (58720256, 117440512)

A weight is the second array of a product: it has |D|·|F| parameters, and each token costs 2·|D|·|F| FLOPs.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scalebook.units import is_array

Size = Any  # a whole number, or a NumPy array of them: counts are algebra
_TERM = re.compile(r"([A-Za-z]+)\[([^\]]*)\]")


def nothing(n: Size) -> bool:
    """Whether a count is the number 0: no such part. An array is a part, even one of zeros."""
    return not is_array(n) and n == 0


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """How many of the t keys so far one query sees: all ("full"), the last `width` ("window"), those of its own chunk ("chunk"), any
    `width` of them ("top"), or one for every `width` keys ("every", keys compressed in groups). With a `group`, "top" is any `width`
    of the keys that are compressed in groups of so many."""

    kind: str = "full"
    width: Size = None
    group: Size = 1


FULL = Span()


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operation of a layer, or of what stands around the layers.

    `params` are its parameters, `active` those that one token uses; a token costs `token_flops`, a pair of a query and a key that it
    sees `pair_flops`. `einsum` is the product in the notation, "" for what is no product; `sizes` are its letters but B, T, S, C.
    """

    part: str
    kind: str  # "matmul", "mixing" (products without weights), "vector", "table" (looked up), "conv", "scan"
    params: Size = 0
    active: Size = 0
    token_flops: Size = 0
    pair_flops: Size = 0
    einsum: str = ""
    sizes: Mapping[str, Size] = field(default_factory=dict)
    span: Span = FULL


@functools.lru_cache(maxsize=1024)
def terms(einsum: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The arrays of a product with their letters.

    >>> terms("In[B, T, D] * W[D, F] -> Up[B, T, F]")[1]
    ('W', ('D', 'F'))
    """
    return tuple((name, tuple(d.strip() for d in dims.split(",") if d.strip())) for name, dims in _TERM.findall(einsum))


def matmul(part: str, einsum: str, *, used: Size = 1, of: Size = 1, stored: bool = True, **sizes: Size) -> Op:
    """A product with a weight, the second array: params = Π of its sizes, FLOPs per token = 2 · params · used ÷ of.

    `used` of `of` equal pieces take part for one token (experts); where the weight is `stored` elsewhere, as a tied head is, it costs
    FLOPs but adds no parameter.
    """
    n = math.prod(sizes[d] for d in terms(einsum)[1][1])
    active = n if used is of else n // of * used  # `of` is one of the sizes
    return Op(part, "matmul", n if stored else 0, active if stored else 0, 2 * active, 0, einsum, sizes)


def vector(part: str, n: Size, *, used: Size = 1, of: Size = 1) -> Op:
    """Parameters that are added or multiplied element by element: norms, biases, gates. No product, so no FLOPs are counted."""
    return Op(part, "vector", n, n if used is of else n // of * used)


def table(part: str, n: Size) -> Op:
    """A table of which rows are looked up: an embedding. Parameters without FLOPs."""
    return Op(part, "table", n, n)


def conv(part: str, width: Size, taps: Size) -> Op:
    """A depthwise convolution along the sequence: width · taps parameters, 2 · width · taps FLOPs per token."""
    return Op(part, "conv", width * taps, width * taps, 2 * width * taps)


def scan(part: str, token_flops: Size) -> Op:
    """A recurrence along the sequence without weights of its own: FLOPs per token, of its products only."""
    return Op(part, "scan", token_flops=token_flops)


def mixing(part: str, einsum: str, span: Span = FULL, **sizes: Size) -> Op:
    """A product of two activations over pairs of a query (T) and a key (S): FLOPs per pair = 2 · Π of the other sizes."""
    letters = {d for _, dims in terms(einsum) for d in dims} - {"B", "T", "S"}
    return Op(part, "mixing", pair_flops=2 * math.prod(sizes[d] for d in sorted(letters)), einsum=einsum, sizes=sizes, span=span)
