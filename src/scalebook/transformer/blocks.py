"""The blocks of a layer: attention of every kind, feed-forward, experts. Each is a list of operations and what it keeps per token.

The letters are the book's: D model, N query heads, K key/value heads, G = N/K, H head width, F feed-forward, E experts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scalebook.errors import SizeError, shown
from scalebook.transformer.ops import FULL, Op, Size, Span, matmul, mixing, nothing, vector
from scalebook.units import is_array


@dataclass(frozen=True, slots=True, eq=False)
class Cache:
    """What a block keeps of each token: for each of `heads` heads a key and a value; `kind` "kv", "latent" or "index".

    Devices that split the heads hold ⌈heads ÷ devices⌉ each: one latent, or one head, is on all of them. `span` says for which tokens it is kept.
    """

    heads: Size
    key: Size
    value: Size
    kind: str = "kv"
    span: Span = FULL


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One block of a layer. `decoding`, where there is one, replaces the mixing operations when tokens are made one by one.

    `cache` grows with the sequence, `state` is kept once per sequence: elements by name. `facts` are its sizes by letter.
    """

    kind: str
    ops: tuple[Op, ...]
    cache: tuple[Cache, ...] = ()
    state: Mapping[str, Size] = field(default_factory=dict)
    decoding: tuple[Op, ...] = ()
    facts: Mapping[str, Size] = field(default_factory=dict)


def groups(N: Size, K: Size) -> Size:
    """G = N ÷ K, the query heads that share one key and value head; SizeError unless it is whole.

    >>> groups(32, 8)
    4
    """
    uneven = (K < 1) | (N % K != 0) if is_array(N) or is_array(K) else K < 1 or N % K
    if uneven.any() if is_array(uneven) else uneven:
        raise SizeError(f"{shown(N)} query heads cannot share {shown(K)} key/value heads: N must be a multiple of K")
    return N // K


def norm(part: str, width: Size, *, bias: bool = False) -> tuple[Op, ...]:
    """A norm with one scale for each element, and a bias if it is a LayerNorm with one."""
    return (vector(part, width), vector(f"{part}_bias", width)) if bias else (vector(part, width),)


def attention(
    *,
    D: Size,
    N: Size,
    K: Size,
    H: Size,
    H_v: Size = None,
    out: Size = None,
    q_bias: bool = False,
    k_bias: bool = False,
    v_bias: bool = False,
    o_bias: bool = False,
    q_norm: Size = 0,
    k_norm: Size = 0,
    gate: Size = 0,
    sinks: bool = False,
    shared_kv: bool = False,
    own_kv: bool = True,
    span: Span = FULL,
    extra: tuple[Op, ...] = (),
    name: str = "attention",
) -> Block:
    """Attention with N query heads over K key/value heads of width H (values of width `H_v`, result of width `out`, D if not given).

    `q_norm`, `k_norm` are the numbers of scales of norms on queries and keys, `gate` the width of a gate computed from the input;
    `sinks` adds one learned logit per head. `shared_kv`: the key's weight serves the value too (both are kept). `own_kv=False`: keys
    and values of an earlier layer are used, so this one has neither weights nor cache for them.
    """
    G, V, O = groups(N, K), H if H_v is None else H_v, D if out is None else out
    ops = [matmul(f"{name}/q", "In[B, T, D] * W[D, N, H] -> Q[B, T, N, H]", D=D, N=N, H=H)]
    if own_kv:
        ops.append(matmul(f"{name}/k", "In[B, T, D] * W[D, K, H] -> Key[B, T, K, H]", D=D, K=K, H=H))
        if not shared_kv:
            ops.append(matmul(f"{name}/v", "In[B, T, D] * W[D, K, H] -> Value[B, T, K, H]", D=D, K=K, H=V))
    ops += [
        mixing(f"{name}/scores", "Q[B, T, K, G, H] * Key[B, S, K, H] -> Score[B, K, G, T, S]", span, K=K, G=G, H=H),
        mixing(f"{name}/values", "Score[B, K, G, T, S] * Value[B, S, K, H] -> Head[B, T, K, G, H]", span, K=K, G=G, H=V),
        matmul(f"{name}/o", "Head[B, T, N, H] * W[N, H, D] -> Out[B, T, D]", N=N, H=V, D=O),
    ]
    if not nothing(gate):
        ops.append(matmul(f"{name}/gate", "In[B, T, D] * W[D, F] -> Gate[B, T, F]", D=D, F=gate))
    sizes = {"q_norm": q_norm, "k_norm": k_norm if own_kv else 0, "q_bias": N * H if q_bias else 0}
    sizes |= {"k_bias": K * H if k_bias and own_kv else 0, "v_bias": K * V if v_bias and own_kv and not shared_kv else 0}
    sizes |= {"o_bias": O if o_bias else 0, "sinks": N if sinks else 0}
    ops += [vector(f"{name}/{part}", n) for part, n in sizes.items() if not nothing(n)]
    cache = (Cache(K, H, V, "kv", span),) if own_kv else ()
    return Block("attention", (*ops, *extra), cache, facts={"D": D, "N": N, "K": K, "H": H})


def latent_attention(
    *,
    D: Size,
    N: Size,
    kv_rank: Size,
    nope: Size,
    rope: Size,
    v: Size,
    q_rank: Size = None,
    q_norm: bool = True,
    kv_norm: bool = True,
    a_bias: bool = False,
    o_bias: bool = False,
    own_kv: bool = True,
    span: Span = FULL,
    index: Block | None = None,
    extra: tuple[Op, ...] = (),
) -> Block:
    """Multi-head latent attention (MLA): keys and values of all heads come from one latent of `kv_rank` numbers and `rope` shared ones.

    Kept per token: kv_rank + rope, whatever the number of heads. Queries are `nope` + `rope` wide, through a rank of `q_rank` unless None;
    values `v`. When decoding, the up-projection is applied to the query and to the result ("absorbed"), so that scores are taken over
    the latent itself. `index` chooses the keys (sparse attention): `span` is then "top". `own_kv=False`: the latent of an earlier layer
    is used, with up-projections of this one's own.
    """
    ops = []
    if q_rank is None:
        ops.append(matmul("attention/q", "In[B, T, D] * W[D, N, H] -> Q[B, T, N, H]", D=D, N=N, H=nope + rope))
    else:
        ops.append(matmul("attention/q_down", "In[B, T, D] * W[D, R] -> Qlow[B, T, R]", D=D, R=q_rank))
        ops.append(matmul("attention/q_up", "Qlow[B, T, R] * W[R, N, H] -> Q[B, T, N, H]", R=q_rank, N=N, H=nope + rope))
        if q_norm:
            ops.append(vector("attention/q_norm", q_rank))
        if a_bias:
            ops.append(vector("attention/q_down_bias", q_rank))
    if own_kv:
        ops.append(matmul("attention/kv_down", "In[B, T, D] * W[D, R] -> Latent[B, T, R]", D=D, R=kv_rank + rope))
    ops += [
        matmul("attention/k_up", "Latent[B, T, R] * W[R, N, H] -> Key[B, T, N, H]", R=kv_rank, N=N, H=nope),
        matmul("attention/v_up", "Latent[B, T, R] * W[R, N, H] -> Value[B, T, N, H]", R=kv_rank, N=N, H=v),
        mixing("attention/scores", "Q[B, T, N, H] * Key[B, S, N, H] -> Score[B, N, T, S]", span, N=N, H=nope + rope),
        mixing("attention/values", "Score[B, N, T, S] * Value[B, S, N, H] -> Head[B, T, N, H]", span, N=N, H=v),
        matmul("attention/o", "Head[B, T, N, H] * W[N, H, D] -> Out[B, T, D]", N=N, H=v, D=D),
    ]
    if kv_norm and own_kv:
        ops.append(vector("attention/kv_norm", kv_rank))
    if a_bias and own_kv:
        ops.append(vector("attention/kv_down_bias", kv_rank + rope))
    if o_bias:
        ops.append(vector("attention/o_bias", D))
    absorbed = (
        mixing("attention/scores", "Q[B, T, N, R] * Latent[B, S, R] -> Score[B, N, T, S]", span, N=N, R=kv_rank + rope),
        mixing("attention/values", "Score[B, N, T, S] * Latent[B, S, R] -> Head[B, T, N, R]", span, N=N, R=kv_rank),
    )
    cache = (Cache(1, kv_rank + rope, 0, "latent", span if span.kind == "window" else FULL),) if own_kv else ()
    facts = {"D": D, "N": N, "K": N, "H": nope + rope, "kv_rank": kv_rank}
    if index is None:
        return Block("latent attention", (*ops, *extra), cache, decoding=absorbed, facts=facts)
    chosen = tuple(o for o in index.ops if o.kind == "mixing")
    return Block("latent attention", (*ops, *index.ops, *extra), (*cache, *index.cache), decoding=absorbed + chosen, facts=facts)


def mlp(
    *,
    D: Size,
    F: Size,
    gated: bool = True,
    up_bias: bool = False,
    down_bias: bool = False,
    extra: tuple[Op, ...] = (),
    name: str = "mlp",
) -> Block:
    """Feed-forward of width F: two matrices, or three where a gate multiplies the middle (SwiGLU, GeGLU); `up_bias` is of gate and up."""
    ops = [matmul(f"{name}/gate", "In[B, T, D] * W[D, F] -> Gate[B, T, F]", D=D, F=F)] if gated else []
    ops += [
        matmul(f"{name}/up", "In[B, T, D] * W[D, F] -> Up[B, T, F]", D=D, F=F),
        matmul(f"{name}/down", "Mid[B, T, F] * W[F, D] -> Out[B, T, D]", F=F, D=D),
    ]
    if up_bias:
        ops += [vector(f"{name}/gate_bias", F)] if gated else []
        ops += [vector(f"{name}/up_bias", F)]
    if down_bias:
        ops += [vector(f"{name}/down_bias", D)]
    return Block("mlp", (*ops, *extra), facts={"D": D, "F": F})


def experts(
    *,
    D: Size,
    F: Size,
    E: Size,
    k: Size,
    gated: bool = True,
    shared: Size = 0,
    shared_gate: bool = False,
    width: Size = None,
    router_bias: bool = False,
    up_bias: bool = False,
    down_bias: bool = False,
    extra: tuple[Op, ...] = (),
) -> Block:
    """A mixture of E experts of width F, of which each token uses k, and one of width `shared` that all tokens use (0: none).

    The router is D·E parameters, and E more with a `router_bias`, be it trained or adjusted to balance the load: checkpoints store it.
    `shared_gate`: a D-wide gate scales the shared expert. `width`, if not D, is what the routed experts read and write.
    """
    odd = (k < 1) | (k > E)
    if odd.any() if is_array(odd) else odd:
        raise SizeError(f"a token cannot use {shown(k)} of {shown(E)} experts: k is from 1 to E")
    R = D if width is None else width
    ops = [matmul("experts/router", "In[B, T, D] * W[D, E] -> Route[B, T, E]", D=D, E=E)]
    if router_bias:
        ops.append(vector("experts/router_bias", E))
    if gated:
        ops.append(matmul("experts/gate", "In[E, C, D] * W[E, D, F] -> Gate[E, C, F]", used=k, of=E, E=E, D=R, F=F))
    ops += [
        matmul("experts/up", "In[E, C, D] * W[E, D, F] -> Up[E, C, F]", used=k, of=E, E=E, D=R, F=F),
        matmul("experts/down", "Mid[E, C, F] * W[E, F, D] -> Out[E, C, D]", used=k, of=E, E=E, D=R, F=F),
    ]
    if up_bias:
        ops.append(vector("experts/up_bias", E * F * (2 if gated else 1), used=k, of=E))
    if down_bias:
        ops.append(vector("experts/down_bias", E * R, used=k, of=E))
    if not nothing(shared):
        ops += mlp(D=D, F=shared, gated=gated, name="shared_expert").ops
        if shared_gate:
            ops.append(matmul("shared_expert/scale", "In[B, T, D] * W[D, I] -> Scale[B, T, I]", D=D, I=1))
    return Block("experts", (*ops, *extra), facts={"D": D, "F": F, "E": E, "k": k, "shared": shared})
