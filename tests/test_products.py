"""einsum: derived collectives against hand derivations, an exhaustive search, and execution on simulated devices."""

from __future__ import annotations

import itertools
import math
import random
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from move_interpreter import execute

import scalebook as sb
from scalebook.collectives import received
from scalebook.errors import MeshError, NotationError, ScalebookError, SizeError
from scalebook.graph import PriceList, Walk, hull, layout_count, layout_graph, received_share, tidy, walks
from scalebook.plans import joins, undominated
from scalebook.products import einsum

# ---- by hand ------------------------------------------------------------------------------------------------------------
# spec, sizes, mesh, the collectives, bytes each device receives (bf16). In a group of k, gather and reduce-scatter move (k-1)/k of
# what the group holds, an all-reduce twice that, an all-to-all (k-1)/k of the local block.

X4, XY = {"X": 4}, {"X": 4, "Y": 2}
BY_HAND: list[tuple[str, str, dict[str, int], dict[str, int], list[str], float]] = [
    ("no split summed", "A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]", {"I": 64, "J": 64, "K": 64}, XY, [], 0),
    ("summed split in one, gather it", "A[I, J_X] * B[J, K] -> C[I, K]", {"I": 64, "J": 64, "K": 4096}, X4, ["all-gather A X"], 64 * 64 * 2 * 3 / 4),
    ("summed split in one, all-reduce", "A[I, J_X] * B[J, K] -> C[I, K]", {"I": 64, "J": 4096, "K": 16}, X4, ["all-reduce C X"], 2 * 64 * 16 * 2 * 3 / 4),
    ("summed split in both", "A[I, J_X] * B[J_X, K] -> C[I, K]", {"I": 64, "J": 4096, "K": 64}, X4, ["all-reduce C X"], 2 * 64 * 64 * 2 * 3 / 4),
    ("then scatter", "A[I, J_X] * B[J_X, K] -> C[I_X, K]", {"I": 64, "J": 4096, "K": 64}, X4, ["reduce-scatter C X"], 64 * 64 * 2 * 3 / 4),
    ("left pending", "A[I, J_X] * B[J_X, K] -> C[I, K]{U_X}", {"I": 64, "J": 64, "K": 64}, X4, [], 0),
    ("one axis twice, A small", "A[I_X, J] * B[J, K_X] -> C[I, K_X]", {"I": 64, "J": 64, "K": 4096}, X4, ["all-gather A X"], 64 * 64 * 2 * 3 / 4),
    ("one axis twice, B small", "A[I_X, J] * B[J, K_X] -> C[I_X, K]", {"I": 4096, "J": 64, "K": 64}, X4, ["all-gather B X"], 64 * 64 * 2 * 3 / 4),
    ("FSDP forward", "In[B_X, D] * W[D_X, F] -> Out[B_X, F]", {"B": 4096, "D": 64, "F": 128}, X4, ["all-gather W X"], 64 * 128 * 2 * 3 / 4),
    ("FSDP dW", "In[B_X, D] * dOut[B_X, F] -> dW[D_X, F]", {"B": 4096, "D": 64, "F": 128}, X4, ["reduce-scatter dW X"], 64 * 128 * 2 * 3 / 4),
    ("FSDP dIn", "dOut[B_X, F] * W[D_X, F] -> dIn[B_X, D]", {"B": 4096, "D": 64, "F": 128}, X4, ["all-gather W X"], 64 * 128 * 2 * 3 / 4),
    ("DP dW", "In[B_X, D] * dOut[B_X, F] -> dW[D, F]", {"B": 4096, "D": 64, "F": 128}, X4, ["all-reduce dW X"], 2 * 64 * 128 * 2 * 3 / 4),
    ("TP in", "In[B, D] * W[D, F_Y] -> H[B, F_Y]", {"B": 64, "D": 64, "F": 256}, {"Y": 4}, [], 0),
    ("TP out", "H[B, F_Y] * W[F_Y, D] -> Out[B, D]", {"B": 64, "D": 64, "F": 1024}, {"Y": 4}, ["all-reduce Out Y"], 2 * 64 * 64 * 2 * 3 / 4),
    ("SP in", "In[T_Y, D] * W[D, F_Y] -> H[T, F_Y]", {"T": 64, "D": 64, "F": 1024}, {"Y": 4}, ["all-gather In Y"], 64 * 64 * 2 * 3 / 4),
    ("SP out", "H[T, F_Y] * W[F_Y, D] -> Out[T_Y, D]", {"T": 64, "D": 64, "F": 1024}, {"Y": 4}, ["reduce-scatter Out Y"], 64 * 64 * 2 * 3 / 4),
    (
        "FSDP + TP", "In[B_X, D_Y] * W[D_X, F_Y] -> Out[B_X, F_Y]", {"B": 1024, "D": 64, "F": 256}, XY,
        ["all-gather In Y", "all-gather W X"], 1024 * 64 * 2 / 4 * 1 / 2 + 64 * 256 * 2 / 2 * 3 / 4,
    ),
    (
        "2D weight-stationary", "In[B, D_X] * W[D_X, F_Y] -> H[B, F_YX]", {"B": 8, "D": 512, "F": 512}, XY,
        ["reduce-scatter H X"], 8 * 512 * 2 / 2 * 3 / 4,
    ),
    (
        "few tokens: In moves, W stays", "In[T_X, D] * W[D_X, F] -> H[T_X, F]", {"T": 8, "D": 512, "F": 512}, X4,
        ["all-to-all In X", "reduce-scatter H X"], 8 * 512 * 2 / 4 * 3 / 4 + 8 * 512 * 2 * 3 / 4,
    ),
    ("MoE dispatch", "In[E, C_X, D] * W[E_X, D, F] -> H[E_X, C, F]", {"E": 8, "C": 16, "D": 64, "F": 512}, X4, ["all-to-all In X"], 8 * 16 * 64 * 2 / 4 * 3 / 4),
    ("MoE combine", "H[E_X, C, F] * W[E_X, F, D] -> Out[E, C_X, D]", {"E": 8, "C": 16, "D": 64, "F": 512}, X4, ["all-to-all Out X"], 8 * 16 * 64 * 2 / 4 * 3 / 4),
    ("batch split alike", "A[B_X, I, J] * M[B_X, J, K] -> C[B_X, I, K]", {"B": 8, "I": 16, "J": 16, "K": 16}, X4, [], 0),
    ("batch and summed split", "A[B_X, I, J_Y] * M[B_X, J_Y, K] -> C[B_X, I, K]", {"B": 8, "I": 16, "J": 256, "K": 16}, XY, ["all-reduce C Y"], 2 * 8 * 16 * 16 * 2 / 4 / 2),
    ("attention by heads", "Q[B_X, T, N_Y, H] * K[B_X, S, N_Y, H] -> L[B_X, N_Y, T, S]", {"B": 4, "T": 16, "S": 16, "N": 4, "H": 8}, XY, [], 0),
    ("context: keys travel", "Q[T_X, H] * K[S_X, H] -> L[T_X, S]", {"T": 256, "S": 256, "H": 8}, X4, ["all-gather K X"], 256 * 8 * 2 * 3 / 4),
    ("outer product", "A[I_X] * B[J_X] -> C[I_X, J]", {"I": 64, "J": 64}, X4, ["all-gather B X"], 64 * 2 * 3 / 4),
    ("dot product", "A[I_X] * B[I_X] -> C[]", {"I": 64}, X4, ["all-reduce C X"], 2 * 2 * 3 / 4),
    ("scaling re-deals", "A[I_X, J] * B[] -> C[I, J_X]", {"I": 64, "J": 64}, X4, ["all-to-all C X"], 64 * 64 * 2 / 4 * 3 / 4),
    ("pending operand, A small", "A[I, J]{U_X} * B[J, K] -> C[I, K]", {"I": 64, "J": 16, "K": 256}, X4, ["all-reduce A X"], 2 * 64 * 16 * 2 * 3 / 4),
    ("pending passes through", "A[I, J]{U_X} * B[J, K] -> C[I_X, K]", {"I": 64, "J": 256, "K": 16}, X4, ["reduce-scatter C X"], 64 * 16 * 2 * 3 / 4),
    ("two axes in one gather", "In[B, D] * W[D, F_XY] -> Out[B, F]", {"B": 4096, "D": 8, "F": 16}, XY, ["all-gather W XY"], 8 * 16 * 2 * 7 / 8),
    ("two axes in one all-reduce", "A[I, J_XY] * B[J_XY, K] -> C[I, K]", {"I": 16, "J": 4096, "K": 16}, XY, ["all-reduce C XY"], 2 * 16 * 16 * 2 * 7 / 8),
    ("nothing but slices", "A[I, J] * B[J, K] -> C[I_X, K]", {"I": 64, "J": 64, "K": 64}, X4, [], 0),
    ("order of axes", "A[I_XY] * B[I_YX] -> C[I_YX]", {"I": 64}, XY, ["permute A XY"], 64 * 2 / 8),
    ("axis renamed", "A[I_X] * B[I_Y] -> C[I_Y]", {"I": 2}, {"X": 2, "Y": 2}, ["permute A XY"], 2 * 2 / 2),
    ("long names", "In[B_data, D_model] * W[D_data, F_model] -> Out[B_data, F_model]", {"B": 256, "D": 64, "F": 512}, {"data": 2, "model": 4},
     ["all-gather In model", "all-gather W data"], 256 * 64 * 2 / 2 * 3 / 4 + 64 * 512 * 2 / 4 / 2),
    ("size-1 axes split nothing", "A[I, J_X] * B[J_Y, K] -> C[I, K]", {"I": 8, "J": 9, "K": 8}, {"X": 1, "Y": 1}, [], 0),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "sizes", "mesh", "expected", "nbytes"), [c[1:] for c in BY_HAND], ids=[c[0] for c in BY_HAND])
def test_by_hand(spec: str, sizes: dict[str, int], mesh: dict[str, int], expected: list[str], nbytes: float) -> None:
    e = einsum(spec, sizes, mesh)
    assert [f"{c.kind} {c.array} {''.join(c.axes)}" for c in e.collectives] == expected
    assert e.bytes == nbytes == sum(c.bytes for c in e.collectives)
    assert execute(e)["wrong"] == []


def test_flops_bytes_and_time_are_algebra() -> None:
    m = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
    B, D, F = 2**14, 8192, 28672
    e = einsum("In[B_X, D] * W[D_X, F_Y] -> Out[B_X, F_Y]", {"B": B, "D": D, "F": F}, m)
    assert e.flops == 2 * B * D * F and e.flops_per_device == 2 * B * D * F // 256
    assert isinstance(e.flops_per_device, int) and isinstance(e.bytes, int)
    assert e.time.math == pytest.approx(2 * B * D * F / 256 / 197e12)
    assert e.time.hbm == pytest.approx(2 * (B / 16 * D + D * F / 16 + B * F / 256) / 819e9)
    gather = sb.all_gather(2 * D * F // 16, m, "X")
    assert (
        e.time.comms == pytest.approx(gather.comms)
        and e.bytes == gather.bytes
        and e.time.latency == pytest.approx(gather.latency)
    )
    assert e.collectives[0].seconds == pytest.approx(gather.comms) and e.collectives[0].nbytes == 2 * D * F // 16
    outer = einsum("A[I] * B[J] -> C[I, J]", {"I": 8, "J": 4})
    assert outer.flops == 32 and outer.mesh.devices == 1 and outer.collectives == ()


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute"])
@pytest.mark.parametrize("k", [2, 3, 8, 64])
def test_shares_are_those_of_the_collectives(kind: str, k: int) -> None:
    group = 1 if kind in ("reduce-scatter", "all-reduce") else k
    assert received_share(kind, k) == pytest.approx(group * received(kind, k))


# ---- regimes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("T", "moves"), [(512, {"In", "H"}), (2048, {"In", "H"}), (16384, {"In", "W"}), (131072, {"In", "W"})])
def test_weights_stay_below_8192_tokens(T: int, moves: set[str]) -> None:
    """With few tokens the activations travel to the weights, with many the weights are gathered (FSDP + TP)."""
    m = sb.mesh({"X": 16, "Y": 8}, on="v5p:4x4x8")
    e = einsum("In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]", {"T": T, "D": 8192, "F": 28672}, m)
    assert {c.array for c in e.collectives} == moves
    if "W" in moves:
        assert [(c.kind, c.axes) for c in e.collectives] == [("all-gather", ("Y",)), ("all-gather", ("X",))]


def test_crossover_lies_between_4096_and_8192_tokens() -> None:
    m = sb.mesh({"X": 16, "Y": 8}, on="v5p:4x4x8")
    e = einsum("In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]", {"T": 4096, "D": 8192, "F": 28672}, m)
    T = np.arange(1, 257) * 128
    s = e.sweep({"T": T})
    gathers = np.array([any(x.array == 1 for x in s.plans[i].steps) for i in s.which])
    assert np.array_equal(gathers, T[gathers][0] <= T), "one change of regime, no islands"
    assert 4096 < T[gathers][0] <= 8192


def test_without_topology_a_wasteful_plan_says_so() -> None:
    e = einsum("A[I, J_X] * B[J_X, K] -> C[I, K]", {"I": 64, "J": 16, "K": 64}, {"X": 8})
    assert [(c.kind, c.array) for c in e.collectives] == [("all-gather", "A"), ("all-gather", "B")]
    assert e.waste == 8 and e.flops_per_device == e.flops
    assert "Every device does all the work: 8 × the FLOPs." in e.explain()
    timed = einsum("A[I, J_X] * B[J_X, K] -> C[I, K]", {"I": 2**16, "J": 2**13, "K": 2**14}, sb.mesh({"X": 8}, on="v5e:2x4"))
    assert timed.waste == 1 and [(c.kind, c.array) for c in timed.collectives] == [
        ("all-to-all", "A"),
        ("all-gather", "B"),
        ("all-gather", "C"),
    ]


# ---- against exhaustive search ------------------------------------------------------------------------------------------

State = tuple[tuple[tuple[str, ...], ...], frozenset[str]]


def next_states(s: State, shape: tuple[int, ...], mesh: dict[str, int]) -> list[tuple[State, Fraction]]:
    """Every move, written out again from its definition: the state after it and bytes received ÷ bytes of the array."""
    dims, pending = s

    def n(axes: Any) -> int:
        return math.prod(mesh[a] for a in axes)

    def legal(d: Any) -> bool:
        return all(size % n(axes) == 0 for size, axes in zip(shape, d, strict=True))

    def swap(**at: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        return tuple(at.get(f"d{i}", d) for i, d in enumerate(dims))

    local, used, out = Fraction(1, n(a for d in dims for a in d)), {a for d in dims for a in d}, []
    for i, d in enumerate(dims):
        for cut in range(len(d)):
            k = n(d[cut:])
            out.append(((swap(**{f"d{i}": d[:cut]}), pending), local * (k - 1)))
            for j in set(range(len(dims))) - {i}:
                out.append(((swap(**{f"d{i}": d[:cut], f"d{j}": dims[j] + d[cut:]}), pending), local * Fraction(k - 1, k)))
    for a, (j, d) in itertools.product(set(mesh) - used - pending, enumerate(dims)):
        out.append(((swap(**{f"d{j}": (*d, a)}), pending), Fraction(0)))
    for r in range(1, len(pending) + 1):
        for axes in itertools.permutations(sorted(pending), r):
            k = n(axes)
            out.append(((dims, pending - set(axes)), local * Fraction(2 * (k - 1), k)))
            for j, d in enumerate(dims):
                out.append(((swap(**{f"d{j}": d + axes}), pending - set(axes)), local * Fraction(k - 1, k)))
    free = [a for a in mesh if a not in pending]
    for order in itertools.chain.from_iterable(itertools.permutations(free, r) for r in range(len(free) + 1)):
        for cuts in itertools.combinations_with_replacement(range(len(order) + 1), max(len(dims) - 1, 0)):
            ends = (0, *cuts, len(order))
            other = tuple(order[i:j] for i, j in itertools.pairwise(ends)) if dims else ()
            if other != dims and [n(d) for d in other] == [n(d) for d in dims]:
                out.append(((other, pending), local))
    return [(t, w) for t, w in out if legal(t[0])]


def all_costs(start: State, shape: tuple[int, ...], mesh: dict[str, int]) -> dict[State, Fraction]:
    """Least bytes to each layout, by relaxing until nothing changes."""
    best, todo = {start: Fraction(0)}, [start]
    while todo:
        s = todo.pop()
        for t, w in next_states(s, shape, mesh):
            if t not in best or best[s] + w < best[t]:
                best[t] = best[s] + w
                todo.append(t)
    return best


def exhaustive(spec: str, sizes: dict[str, int], mesh: dict[str, int]) -> Fraction:
    """The least bytes of any plan: all pairs of layouts, all walks."""
    shardings = [sb.sharding(t) for t in spec.replace("->", "*").split(" * ")]
    A, B, C = (s.letters for s in shardings)
    starts: list[State] = [(s.dims, frozenset(s.pending)) for s in shardings]
    shapes = [tuple(sizes[x] for x in s.letters) for s in shardings]
    nbytes = [2 * math.prod(shape) for shape in shapes]
    from_a, from_b = (all_costs(starts[i], shapes[i], mesh) for i in (0, 1))
    best, ends = None, {}
    for (a, wait_a), (b, wait_b) in itertools.product(from_a, from_b):
        at_a, at_b = dict(zip(A, a, strict=True)), dict(zip(B, b, strict=True))
        if any(at_a[x] != at_b[x] for x in set(A) & set(B)) or wait_a & wait_b:
            continue
        owner: dict[str, str] = {}
        clash = any(owner.setdefault(axis, x) != x for d in (at_a, at_b) for x, axes in d.items() for axis in axes)
        if clash or (wait_a | wait_b) & set(owner):
            continue
        summed = {axis for axis, x in owner.items() if x not in C}
        start = (tuple({**at_b, **at_a}[x] for x in C), frozenset(wait_a | wait_b | summed))
        if start not in ends:
            ends[start] = all_costs(start, shapes[2], mesh).get(starts[2])
        if ends[start] is not None:
            total = from_a[a, wait_a] * nbytes[0] + from_b[b, wait_b] * nbytes[1] + ends[start] * nbytes[2]
            best = total if best is None else min(best, total)
    assert best is not None
    return best


@st.composite
def cases(draw: Any, axes: int = 2, most: int = 3, letters: str = "BIJK") -> tuple[str, dict[str, int], dict[str, int]]:
    """A random einsum, sizes that its mesh divides, and the mesh."""
    mesh = {a: draw(st.sampled_from([2, 2, 3, 4][:most])) for a in "XYZ"[: draw(st.integers(1, axes))]}
    used = [x for x in letters if draw(st.booleans())]
    roles = {"B": "ABC", "I": "AC", "J": "AB", "K": "BC"}
    terms = []
    for name in "ABC":
        mine = draw(st.permutations([x for x in used if name in roles[x]]))
        place = {
            a: draw(st.sampled_from([*mine, "", *(["U"] if name != "C" else [])])) for a in draw(st.permutations(list(mesh)))
        }
        inner = ", ".join("_".join(filter(None, [x, "".join(a for a in place if place[a] == x)])) for x in mine)
        waiting = "".join(a for a in place if place[a] == "U")
        terms.append(f"{name}[{inner}]" + (f"{{U_{waiting}}}" if waiting else ""))
    devices = math.prod(mesh.values())
    return f"{terms[0]} * {terms[1]} -> {terms[2]}", {x: devices * draw(st.sampled_from([1, 2, 5])) for x in used}, mesh


SLOW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(cases(axes=2, letters="IJK"))
def test_no_plan_moves_fewer_bytes(case: tuple[str, dict[str, int], dict[str, int]]) -> None:
    spec, sizes, mesh = case
    assert einsum(spec, sizes, mesh, idle_axes=True).bytes == pytest.approx(float(exhaustive(spec, sizes, mesh)), rel=1e-12)


def test_no_plan_moves_fewer_bytes_on_uneven_sizes() -> None:
    """Divisibility closes layouts: J = 6 can be split over Y = 2 or Z = 3, not over X = 4."""
    spec, mesh = "A[I_X, J] * B[J_Y, K] -> C[I, K_X]", {"X": 4, "Y": 2}
    for sizes in ({"I": 4, "J": 6, "K": 8}, {"I": 8, "J": 2, "K": 4}, {"I": 12, "J": 8, "K": 20}):
        assert einsum(spec, sizes, mesh).bytes == exhaustive(spec, sizes, mesh)


THREE = {"X": 4, "Y": 2, "Z": 2}


@pytest.mark.parametrize(
    "price",
    [PriceList(sb.mesh(THREE, on="v5e:4x4")), PriceList(), PriceList(rings=tuple(THREE.items()))],
    ids=["on links", "bytes", "on rings"],
)
@pytest.mark.parametrize("begin", ["A[I_XY, J_Z]", "A[I_X, J]{U_YZ}"])
@pytest.mark.parametrize("back", [False, True])
def test_walks_keep_every_trade_of_rate_against_fixed_cost(price: PriceList, begin: str, back: bool) -> None:
    """Dijkstra's labels against sets of labels relaxed until nothing changes."""
    axes, limits = tuple(THREE.items()), (16, 16)
    g = layout_graph(limits, axes)
    start = g.number[sb.sharding(begin).layout(dict(axes))]
    out: list[list[tuple[int, Any]]] = [[] for _ in g.nodes]
    for n, edges in enumerate(g.edges):
        for e in edges:
            out[e.to if back else n].append((n if back else e.to, e))

    def pareto(labels: set[tuple[float, float]]) -> set[tuple[float, float]]:
        return {x for x in labels if not any(y != x and y[0] <= x[0] and y[1] <= x[1] for y in labels)}

    best: list[set[tuple[float, float]]] = [set() for _ in g.nodes]
    best[start], todo = {(0.0, 0.0)}, [start]
    while todo:
        s = todo.pop()
        for t, e in out[s]:
            offers = [(e.weight if r is None else r * e.group, fixed) for r, fixed, _ in price.of(e.kind, e.axes)]
            new = pareto(best[t] | {(tidy(r + x), tidy(f + y)) for r, f in best[s] for x, y in offers})
            if new != best[t]:
                best[t] = new
                todo.append(t)
    found = walks(start, limits, axes, price, back=back)
    labels = {n: {(tidy(w.rate), w.fixed) for w in found[n]} for n in found}
    assert labels == {n: some for n, some in enumerate(best) if some}
    assert max(map(len, best)) > 1 or back


@pytest.mark.parametrize("T", [16, 512, 4096, 65536])
@pytest.mark.parametrize("spec", ["In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]", "A[T, D_XY] * B[D_X, F] -> C[T_Y, F_X]"])
def test_the_frontier_keeps_the_fastest_plan(spec: str, T: int) -> None:
    """Every pair of walks and every walk home, nothing pruned: none has a smaller maximum of math, memory and communication."""
    e = einsum(spec, {"T": T, "D": 512, "F": 2048}, sb.mesh({"X": 4, "Y": 4}, on="v5e:4x4"))
    p, s = e.setting.product, e.setting
    graphs = [layout_graph(p.limits_of(n), p.axes) for n in range(3)]
    found = [
        walks(g.number[lay], p.limits_of(n), p.axes, p.price, back=n == 2)
        for n, (g, lay) in enumerate(zip(graphs, p.layouts, strict=True))
    ]
    best = math.inf
    for a, b, result, split in joins(p, found[0], found[1]):
        c = graphs[2].number[result]
        held = sum(n / g.split[at] for n, g, at in zip(s.array_bytes, graphs, (a, b, c), strict=True))
        rest = max(e.flops / split / 197e12, held / 819e9)
        for three in itertools.product(found[0][a], found[1][b], found[2].get(c, ())):
            best = min(best, max(rest, sum(w.rate * n + w.fixed for w, n in zip(three, s.array_bytes, strict=True))))
    assert e.time.lower == pytest.approx(best, rel=1e-9)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases(axes=2, most=4))
def test_prime_sub_axes_never_need_more_bytes(case: tuple[str, dict[str, int], dict[str, int]]) -> None:
    assert einsum(*case, sub_axes=True).bytes <= einsum(*case).bytes


# ---- on simulated devices -----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases(axes=3, most=4), st.booleans(), st.integers(0, 5))
def test_every_device_ends_with_the_exact_product(
    case: tuple[str, dict[str, int], dict[str, int]], sub_axes: bool, which: int
) -> None:
    spec, sizes, mesh = case
    if math.prod(mesh.values()) > 16:
        mesh, sizes = dict.fromkeys(mesh, 2), dict.fromkeys(sizes, 8)
    e = einsum(spec, sizes, mesh, sub_axes=sub_axes)
    e = (e, *e.alternatives)[which % (1 + len(e.alternatives))]
    run = execute(e)
    assert run["wrong"] == []
    for move, elements in run["counted"]:
        assert 0 <= 2 * elements - move.bytes < 4, str(move)  # exact but for the uneven halves of an all-reduce


def test_a_permute_involves_every_axis_whose_stride_changes() -> None:
    """From I_XYZ to I_ZYX the axis Y stays in the middle, yet its neighbours are 4 blocks apart before and 2 after."""
    e = einsum("A[I_XYZ] * B[] -> C[I_ZYX]", {"I": 64}, {"X": 2, "Y": 2, "Z": 4})
    assert [c.axes for c in e.collectives] == [("X", "Y", "Z")] and e.bytes == 2 * 64 // 16
    assert execute(e)["wrong"] == []


@SLOW
@given(cases(axes=2))
def test_gradients_are_exact(case: tuple[str, dict[str, int], dict[str, int]]) -> None:
    e = einsum(*case)
    for g in e.backward():
        assert execute(g)["wrong"] == []


def test_backward_is_the_transpose() -> None:
    e = einsum("In[B_X, D] * W[D_X, F] -> Out[B_X, F]", {"B": 4096, "D": 64, "F": 128}, X4)
    dIn, dW = e.backward()
    assert (dIn.spec, dW.spec) == ("dOut[B_X, F] * W[D_X, F] -> dIn[B_X, D]", "In[B_X, D] * dOut[B_X, F] -> dW[D_X, F]")
    assert [(c.kind, c.array) for c in (*dIn.collectives, *dW.collectives)] == [("all-gather", "W"), ("reduce-scatter", "dW")]
    assert dW.collectives[0].bytes == e.collectives[0].bytes, "the transpose of a gather is a scatter of as many bytes"
    assert dIn.flops == dW.flops == e.flops
    pending = einsum("A[I, J]{U_X} * B[J, K] -> C[I, K]", {"I": 64, "J": 16, "K": 256}, X4)
    assert str(pending.backward()[0].C) == "dA[I, J]", "the cotangent of a pending operand is replicated"
    mixed = einsum("A[I_X, J] * B[J, K] -> C[I_X, K]", {"I": 64, "J": 64, "K": 64}, X4, {"B": "int8", "C": "fp32"})
    assert mixed.backward()[1].dtypes == {"A": "bf16", "dC": "fp32", "dB": "int8"}


# ---- sizes, dtypes, memory, sub-axes ------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(cases(axes=2), st.sampled_from([None, "v5e"]), st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_arrays_of_sizes_give_what_numbers_give(
    case: tuple[str, dict[str, int], dict[str, int]], on: str | None, factors: list[int]
) -> None:
    spec, sizes, mesh = case
    if not sizes:
        return
    mesh = {"X": 4} if len(mesh) == 1 else {"X": 2, "Y": 2}
    sizes = {x: 4 * n for x, n in sizes.items()}
    machine = sb.mesh(mesh, on="v5e:2x2" if on else None)
    letter = sorted(sizes)[0]
    values = np.array([sizes[letter] * f for f in factors])
    swept = einsum(spec, sizes, machine).sweep({letter: values})
    for i, n in enumerate(values):
        e = einsum(spec, {**sizes, letter: int(n)}, machine)
        if on:
            assert swept.lower[i] == pytest.approx(e.time.lower, rel=1e-9)
            assert swept.comms[i] == pytest.approx(e.time.comms, rel=1e-9)
        assert swept.bytes[i] == pytest.approx(e.bytes) and swept.flops_per_device[i] == pytest.approx(e.flops_per_device)
        assert swept.plans[swept.which[i]].wire == e.plan.wire


def test_a_sweep_spans_a_grid_and_marks_what_does_not_fit() -> None:
    e = einsum("A[I_X, J] * B[J, K_X] -> C[I_X, K]", {"I": 64, "J": 64, "K": 64}, X4, memory_limit=64 * 64 * 2)
    s = e.sweep({"I": np.array([[64], [256], [1024]]), "K": np.array([64, 128])})
    assert s.bytes.shape == s.which.shape == (3, 2)
    for i, n in enumerate((64, 256, 1024)):
        for j, k in enumerate((64, 128)):
            try:
                expected: float = einsum(e.spec, {"I": n, "J": 64, "K": k}, X4, memory_limit=64 * 64 * 2).bytes
            except SizeError:
                expected = math.inf
            assert s.bytes[i, j] == expected
    assert s.which[2, 0] == -1 and s.which[0, 0] >= 0


@SLOW
@given(cases(axes=2), st.integers(2, 9))
def test_doubling_sizes(case: tuple[str, dict[str, int], dict[str, int]], times: int) -> None:
    """All sizes of a matmul × n: FLOPs × n per letter; bytes at most × n per dimension, since the old plan is still there."""
    spec, sizes, mesh = case
    big = {x: n * times for x, n in sizes.items()}
    small, large = einsum(spec, sizes, mesh), einsum(spec, big, mesh)
    assert large.flops == small.flops * times ** len(sizes)
    most = sum(m.bytes * times ** len(m.before.letters) for m in small.moves)
    assert large.bytes <= most
    assert einsum(spec, sizes, mesh, "fp32").bytes == 2 * small.bytes


def test_dtypes_are_per_array_and_sums_travel_in_the_result() -> None:
    sizes = {"B": 4096, "D": 64, "F": 128}
    e = einsum("In[B_X, D] * W[D_X, F] -> Out[B_X, F]", sizes, X4, {"W": "int8"})
    assert e.bytes == 64 * 128 * 3 // 4 and e.dtypes == {"In": "bf16", "W": "int8", "Out": "bf16"}
    e = einsum("A[I, J_X] * B[J_X, K] -> C[I_X, K]", {"I": 64, "J": 4096, "K": 64}, X4, {"C": "fp32"})
    assert e.bytes == 64 * 64 * 4 * 3 // 4 and "Sums of C travel in its dtype, fp32." in e.explain()
    half = einsum("A[I_X] * B[J_X] -> C[I_X, J]", {"I": 4, "J": 4}, X4, "int4")
    assert half.bytes == 1.5


def test_memory_limit_closes_layouts() -> None:
    sizes, spec = {"T": 2**15, "D": 1024, "F": 1024}, "In[T_X, D] * W[D_X, F] -> Out[T_X, F]"
    free = einsum(spec, sizes, X4)
    assert [(c.kind, c.array) for c in free.collectives] == [("all-gather", "W")]
    limit = 2 * 2**15 * 1024 // 4  # what In and Out take as sharded
    assert einsum(spec, sizes, X4, memory_limit=limit).plan == free.plan
    W = 2 * 1024 * 1024
    tight = einsum("In[T, D_X] * W[D, F_X] -> Out[T, F_X]", {"T": 64, "D": 1024, "F": 1024}, X4, memory_limit=W // 4)
    assert all(s.bytes_per_device(tight.sizes, tight.mesh) <= W // 4 for m in tight.moves for s in (m.before, m.after))
    with pytest.raises(
        SizeError, match=r"keeps every local block within 1.MiB.*least that would do is 16.MiB \(16777216 bytes\)"
    ):
        einsum(spec, sizes, X4, memory_limit=2**20)
    assert einsum(spec, sizes, X4, memory_limit=16777216).bytes > 0
    with pytest.raises(SizeError):
        einsum(spec, sizes, X4, memory_limit=16777215)


def test_prime_sub_axes_need_fewer_bytes() -> None:
    """I_X -> I_Y with |X| = 4, |Y| = 2: two local blocks instead of three."""
    spec, mesh, block = "A[I_X] * B[] -> C[I_Y]", {"X": 4, "Y": 2}, 2 * 64 // 4
    sizes = {"I": 64}
    coarse, fine = einsum(spec, sizes, mesh), einsum(spec, sizes, mesh, sub_axes=True)
    assert (coarse.bytes, fine.bytes) == (2 * 64 // 8 + 3 * (2 * 64 // 8), 2 * block)
    assert "X = X0·X1" in fine.explain() and "C[I_Y]" in fine.explain()
    assert execute(fine)["wrong"] == []
    with pytest.raises(MeshError, match=r"297,856 layouts: 1 dimension .* 8 sub-axes of prime size .* leave sub_axes out"):
        einsum(spec, {"I": 256}, {"X": 128, "Y": 2}, sub_axes=True)


def test_idle_axes_on_request() -> None:
    sizes = {"I": 64, "J": 64, "K": 64}
    plain = einsum("A[I, J] * B[J, K] -> C[I, K]", sizes, X4)
    idle = einsum("A[I, J] * B[J, K] -> C[I, K]{U_X}", sizes, X4, idle_axes=True)
    assert plain.flops_per_device == 2 * 64**3 and idle.flops_per_device == 2 * 64**3 // 4 and idle.bytes == 0


# ---- what is said -------------------------------------------------------------------------------------------------------


def test_explain_and_table() -> None:
    m = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
    e = einsum("In[B_X, D_Y] * W[D_X, F_Y] -> Out[B_X, F_Y]", {"B": 2**17, "D": 8192, "F": 28672}, m)
    text = e.explain().replace("\u00a0", " ")
    for piece in (
        "all-gather_X",
        "W[D_X, F_Y] -> W[D, F_Y]",
        "27.5 MB",
        "241 GFLOPs",
        "v5e:16x16",
        "comms binds",
        "× slower",
        "Other plans",
    ):
        assert piece in text
    assert [row[0] for row in e.table()] == ["all-gather_Y", "all-gather_X", "local product"]
    assert e._repr_html_().count("<tr>") == 4 and "&gt;" in e._repr_html_()
    assert str(e) == e.explain()


def test_alternatives_are_distinct_and_ranked() -> None:
    m = sb.mesh({"X": 4, "Y": 4}, on="v5e:4x4")
    e = einsum("In[B_X, D_Y] * W[D_X, F_Y] -> Out[B_X, F_Y]", {"B": 2**13, "D": 8192, "F": 4096}, m)
    plans = [e, *e.alternatives]
    assert len({tuple(map(str, p.moves)) for p in plans}) == len(plans) > 3
    times = [p.time.lower for p in plans]
    assert times == sorted(times)
    assert all(
        execute(p)["wrong"] == []
        for p in (type(p)(einsum(e.spec, {"B": 16, "D": 16, "F": 16}, m).setting, p.plan, p.ranked) for p in plans[:6])
    )


BAD: list[tuple[type[ScalebookError], str, dict[str, Any], Any, list[str]]] = [
    (NotationError, "A[I_X, J_X] * B[J, K] -> C[I, K]", {"I": 8, "J": 8, "K": 8}, X4, ["mesh axis 'X'", "used twice", "at position 9"]),
    (NotationError, "A[I, J] * B[L, K] -> C[I, K]", {"I": 8, "J": 8, "K": 8, "L": 8}, X4, ["J", "A only"]),
    (NotationError, "A[I, J] * B[J, K] -> C[I, M]", {"I": 8, "J": 8, "K": 8}, X4, ["M", "neither A nor B"]),
    (NotationError, "A[I_Q, J] * B[J, K] -> C[I, K]", {"I": 8, "J": 8, "K": 8}, X4, ["mesh axis 'Q'", "Known: X"]),
    (NotationError, "A[I, J, ?] * B[J, K] -> C[I, K]", {"I": 8, "J": 8, "K": 8}, X4, ["'?'"]),
    (NotationError, "A[I, J] -> C[I, J]", {"I": 8, "J": 8}, X4, ["two operands"]),
    (NotationError, "A[I] * B[I] -> C[I]{U_X}", {"I": 7}, X4, ["no sequence of moves", "C[I]{U_X}"]),
    (SizeError, "A[I_X, J] * B[J, K] -> C[I, K]", {"I": 10, "J": 8, "K": 8}, X4, ["[I_X] cannot split I=10 over X=4 devices: 10 is not a multiple of 4", "Mesh: {'X': 4}"]),
    (SizeError, "A[I, J] * B[J, K] -> C[I, K]", {"I": 8, "K": 8}, X4, ["for J"]),
    (SizeError, "A[I, J] * B[J, K] -> C[I, K]", {"I": 8, "J": -8, "K": 8}, X4, ["J=-8", "positive"]),
    (SizeError, "A[I, J] * B[J, K] -> C[I, K]", {"I": 8, "J": np.array([1, 2]), "K": 8}, X4, ["J is an array", "sweep"]),
    (SizeError, "A[I, J] * B[J, K] -> C[I, K]", [8, 8, 8], X4, ["mapping"]),
    (MeshError, "A[I, J] * B[J, K] -> C[I, K]", {"I": 8, "J": 8, "K": 8}, {"X": 0}, ["X=0"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "spec", "sizes", "mesh", "pieces"), BAD, ids=[f"{b[0].__name__}-{i}" for i, b in enumerate(BAD)]
)
def test_mistakes_are_named(kind: type[ScalebookError], spec: str, sizes: Any, mesh: Any, pieces: list[str]) -> None:
    with pytest.raises(kind) as found:
        einsum(spec, sizes, mesh)
    for piece in pieces:
        assert piece in str(found.value)


def test_bad_options_are_named() -> None:
    spec, sizes = "A[I, J] * B[J, K] -> C[I, K]", {"I": 8, "J": 8, "K": 8}
    with pytest.raises(ScalebookError, match="array in dtype 'Z'"):
        einsum(spec, sizes, X4, {"Z": "bf16"})
    for limit in (0, -1, float("nan"), "16GB", True):
        with pytest.raises(SizeError, match="memory_limit is bytes per device"):
            einsum(spec, sizes, X4, memory_limit=limit)  # type: ignore[arg-type]
    assert einsum(spec, sizes, X4, memory_limit=math.inf).bytes == 0


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(st.text(alphabet="AB[IJ_XY]*->{U}, ", max_size=30), st.just("A[I_X, J] * B[J, K] -> C[I, K]"), st.none()),
    st.one_of(
        st.dictionaries(st.sampled_from("IJK"), st.one_of(st.integers(-2, 9), st.floats(), st.text(max_size=2))), st.none()
    ),
    st.one_of(
        st.dictionaries(st.sampled_from(["X", "Y", "XY", ""]), st.one_of(st.integers(-1, 4), st.none())), st.text(max_size=3)
    ),
    st.one_of(
        st.sampled_from(["bf16", "int4", "", "f"]),
        st.dictionaries(st.sampled_from("ABQ"), st.sampled_from(["bf16", "x"])),
        st.none(),
    ),
    st.one_of(st.none(), st.floats(), st.integers(-1, 100)),
)
def test_nothing_but_named_errors(spec: Any, sizes: Any, mesh: Any, dtype: Any, limit: Any) -> None:
    try:
        einsum(spec, sizes, mesh, dtype, memory_limit=limit).explain()
    except ScalebookError as error:
        assert len(str(error)) > 10


# ---- machines of which not all is known ---------------------------------------------------------------------------------


def test_no_moves_take_no_seconds_even_where_links_are_unknown() -> None:
    sizes = {"I": 64, "J": 64, "K": 64}
    for on in ("v3:2x2", "l4:1x8", "tpu8t:2x2x2"):
        m = sb.mesh({"X": 4, "Y": 2}, on=on)
        e = einsum("A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]", sizes, m)
        assert e.moves == () and e.time.comms == 0.0
        assert e.sweep({"I": [64, 128]}).comms.tolist() == [0.0, 0.0]
        c = sb.chain([e.spec], sizes, m)
        assert c.time.comms == 0.0


def test_an_unknown_link_leaves_only_the_plans_unpriced_that_use_it() -> None:
    """On v3 the two devices of a chip are joined by a link of unknown rate: that is Y; X lies on the torus."""
    m = sb.mesh({"X": 4, "Y": 2}, on="v3:2x2")
    sizes = {"I": 64, "J": 64, "K": 64}
    x = einsum("A[I_X, J] * B[J_X, K] -> C[I_X, K_Y]", sizes, m)
    assert [c.kind for c in x.collectives] == ["all-gather"] and x.collectives[0].axes == ("X",)
    assert x.time.comms == x.collectives[0].seconds == sb.all_gather(x.collectives[0].nbytes, m, "X").comms > 0
    assert x.sweep({"I": [64, 640]}).comms.tolist() == pytest.approx([x.time.comms] * 2)
    y = einsum("A[I_X, J] * B[J_Y, K] -> C[I_X, K]", sizes, m)
    assert [c.axes for c in y.collectives] == [("Y",)] and y.time.comms is None and y.collectives[0].seconds is None
    assert y.sweep({"I": [64, 640]}).comms is None and "comms unknown" in y.explain()


def test_a_lone_collective_takes_exactly_what_the_collective_takes() -> None:
    m = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
    for D in (8192, 5120, 7168):
        e = einsum("In[B_X, D] * W[D_X, F_Y] -> Out[B_X, F_Y]", {"B": 2**14, "D": D, "F": 28672}, m)
        gather = sb.all_gather(2 * D * 28672 // 16, m, "X")
        assert [c.kind for c in e.collectives] == ["all-gather"]
        assert e.time.comms == e.collectives[0].seconds == gather.comms and e.time.latency == gather.latency


def test_of_two_formats_of_one_width_the_slower_rate_counts() -> None:
    m, sizes = sb.mesh({"X": 4, "Y": 2}, on="v5p:2x2x2"), {"I": 64, "J": 64, "K": 64}
    fast, slow = (sb.rates("v5p", dt, per="device")["math"] for dt in ("int8", "fp8"))
    assert slow < fast
    for types in ({"A": "int8", "B": "fp8"}, {"A": "fp8", "B": "int8"}):
        e = einsum("A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]", sizes, m, types)
        assert e.time.math == 2 * 64**3 / 8 / slow
    e = einsum("A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]", sizes, m, {"A": "int8", "B": "int8"})
    assert e.time.math == 2 * 64**3 / 8 / fast


def test_explain_names_all_slices() -> None:
    m = sb.mesh({"X": 4, "Y": 2}, on=sb.topology("v5e:2x2", num_slices=2))
    text = einsum("A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]", {"I": 64, "J": 64, "K": 64}, m).explain()
    assert "on 2 slices of v5e:2x2;" in text.replace("\u00a0", " ")


def test_gradients_have_names_of_their_own() -> None:
    e = einsum("dC[I_X, J] * A[J, K_X] -> dA[I, K_X]", {"I": 64, "J": 64, "K": 64}, X4)
    first, second = e.backward()
    for g in (first, second):
        assert len(set(g.dtypes)) == 3 and execute(g)["wrong"] == []
    assert (first.C.array, second.C.array) == ("ddC", "ddA")
    again = first.backward()
    assert all(len(set(g.dtypes)) == 3 for g in again)


# ---- mistakes that used to pass, or to end elsewhere --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "piece"),
    [
        ({"Q": [64]}, "unknown dimension of .* 'Q'. Known: I, J, K"),
        ({"I": np.array([64, 128]), "K": np.array([64, 128, 256])}, "broadcast together"),
        (None, "a sweep takes a mapping"),
        ([1], "a sweep takes a mapping"),
        ({"I": [[1], [2, 3]]}, "I is an array of whole numbers"),
        ({"I": [64.0]}, "I is an array of whole numbers"),
        ({"I": 10**5000}, "I is an array of whole numbers up to"),
        ({"I": np.array([2**63 - 64], dtype=np.uint64)}, "up to 10.15; found I: 9223372036854775744"),
    ],
)
def test_mistakes_in_sweeps_are_named(sizes: Any, piece: str) -> None:
    e = einsum("A[I_X, J] * B[J, K] -> C[I_X, K]", {"I": 64, "J": 64, "K": 64}, X4)
    with pytest.raises(SizeError, match=piece):
        e.sweep(sizes)


def test_narrow_whole_numbers_do_not_overflow() -> None:
    spec = "A[I_X, J] * B[J_X, K] -> C[I_X, K]"
    e = einsum(spec, {"I": 64, "J": 64, "K": 64}, X4)
    s = e.sweep({d: np.array([64, 128], dtype=np.uint8) for d in "IJK"})
    for i, n in enumerate((64, 128)):
        one = einsum(spec, dict.fromkeys("IJK", n), X4)
        assert (s.bytes[i], s.flops_per_device[i]) == (one.bytes, one.flops_per_device)


@pytest.mark.parametrize("n", [10**400, 10**5000, 10**16], ids=["400 digits", "5000 digits", "17 digits"])
def test_sizes_end_at_10_to_the_15(n: int) -> None:
    spec = "A[I_X, J] * B[J, K] -> C[I_X, K]"
    with pytest.raises(SizeError, match=r"up to 10\^15; found I: "):
        einsum(spec, {"I": n, "J": 64, "K": 64}, X4)
    with pytest.raises(SizeError, match=r"up to 10\^15; found I: "):
        sb.chain([spec], {"I": n, "J": 64, "K": 64}, X4)
    with pytest.raises(MeshError, match=r"above 10\^15"):
        einsum(spec, {"I": 64, "J": 64, "K": 64}, {"X": n})
    assert einsum(spec, {"I": 4 * 10**14, "J": 10**15, "K": 10**15}, X4).explain()
    assert einsum(spec, {"I": 64, "J": 64, "K": 64}, X4, memory_limit=n).explain()


def test_memory_limits_are_one_number_and_printed_to_the_byte() -> None:
    spec, sizes = "A[I_X, J] * B[J, K] -> C[I_X, K]", {"I": 64, "J": 32, "K": 64}
    for limit in (np.array([1, 2]), [1], np.array(4096)):
        with pytest.raises(SizeError, match="one number above 0"):
            einsum(spec, sizes, X4, memory_limit=limit)  # type: ignore[arg-type]
    with pytest.raises(SizeError) as found:
        einsum(spec, sizes, X4, memory_limit=4095)
    text = str(found.value).replace("\u00a0", " ")
    assert "within 4 KiB (4095 bytes)" in text and "would do is 4 KiB (4096 bytes)" in text
    assert "larger than 4 KiB (4097 bytes)." in einsum(spec, sizes, X4, memory_limit=4097).explain().replace("\u00a0", " ")


# ---- how long -----------------------------------------------------------------------------------------------------------


def test_frontiers_are_derived_once() -> None:
    from scalebook.plans import frontier

    spec, mesh = "A[I_X, J] * B[J_Y, K] -> C[I_X, K_Y]", {"X": 4, "Y": 2}
    first = einsum(spec, {"I": 64, "J": 64, "K": 64}, mesh)
    before = frontier.cache_info().misses
    for n in (128, 1024, 2**20):
        assert einsum(spec, {"I": n, "J": n, "K": 3 * n}, mesh).setting.product == first.setting.product
    assert frontier.cache_info().misses == before


def test_five_axes() -> None:
    """Nine blocks of 64·64·2/32 bytes: gather P over BC 3, permute Q 1, gather it over A 1, scatter R over DE 3, permute it 1."""
    start = time.process_time()
    e = einsum("P[I_ABC, J_DE] * Q[J_DE, K_ABC] -> R[I_ABC, K_DE]", {"I": 64, "J": 64, "K": 64}, dict.fromkeys("ABCDE", 2))
    assert e.bytes == 9 * 256 and time.process_time() - start < 5  # 0.7 s; it was 15 s
    assert execute(e)["wrong"] == []


def test_joined_axes_are_an_upper_bound_for_five() -> None:
    """X = ABC and Y = DE: a search with fewer layouts finds nothing cheaper."""
    sizes = {"I": 64, "J": 64, "K": 64}
    joined = einsum("P[I_X, J_Y] * Q[J_Y, K_X] -> R[I_X, K_Y]", sizes, {"X": 8, "Y": 4})
    assert (
        joined.bytes
        >= 2304
        == einsum("P[I_ABC, J_DE] * Q[J_DE, K_ABC] -> R[I_ABC, K_DE]", sizes, dict.fromkeys("ABCDE", 2)).bytes
    )


def test_four_axes_on_a_machine() -> None:
    start = time.process_time()
    m = sb.mesh(dict.fromkeys("ABCD", 2), on="v5e:4x4")
    e = einsum("P[I_AB, J_D] * Q[J_DC, K_AB] -> R[I_ABC, K_D]", {"I": 64, "J": 64, "K": 64}, m)
    for g in (e, *e.backward()):
        assert g.time.comms is not None
    assert time.process_time() - start < 8  # 2 s; it was 10 s


def test_many_dimensions() -> None:
    """199 dimensions that nothing splits are alike: three of each kind stand for all."""
    start = time.process_time()
    left, right = [f"L{i}" for i in range(100)], [f"R{i}" for i in range(99)]
    spec = f"A[{', '.join(left)}, J_X] * B[J_Y, {', '.join(right)}] -> C[{', '.join(left + right)}]"
    e = einsum(spec, {**dict.fromkeys(left + right, 1), "L0": 4, "L99": 8, "R98": 8, "J": 4}, {"X": 2, "Y": 2})
    few = einsum("A[L, N, J_X] * B[J_Y, R] -> C[L, N, R]", {"L": 4, "N": 8, "R": 8, "J": 4}, {"X": 2, "Y": 2})
    assert e.bytes == few.bytes and [(c.kind, c.src, c.dst) for c in e.collectives] == [
        (c.kind, *({None: None, "J": "J", "L": "L0", "N": "L99", "R": "R98"}[x] for x in (c.src, c.dst))) for c in few.collectives
    ]
    even = einsum(spec, {**dict.fromkeys(left + right, 4), "J": 4}, {"X": 2, "Y": 2})
    assert even.bytes > 0 and len(even.moves[0].before.dims) == 101 - (even.moves[0].array == "B")
    assert time.process_time() - start < 2  # 0.1 s; it was minutes


@pytest.mark.parametrize("letters", [4, 5])
def test_dimensions_that_are_alike_stand_for_each_other(letters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search over all dimensions, without the reduction, finds the same costs."""
    from scalebook import plans

    names = [f"D{i}" for i in range(letters)]
    spec = f"A[{', '.join(names)}, J_XY] * B[J_Y, K_X] -> C[{', '.join(names)}, K]"
    sizes = {**dict.fromkeys(names, 4), "J": 16, "K": 4}
    for m in (sb.mesh({"X": 2, "Y": 2}), sb.mesh({"X": 2, "Y": 2}, on="v5e:2x2")):
        p = einsum(spec, sizes, m).setting.product
        quick = {(x.rates, x.fixed, x.split, x.blocks) for x in plans.frontier(p)}
        monkeypatch.setattr(plans, "reduced", lambda p: (p, ()))
        assert {(x.rates, x.fixed, x.split, x.blocks) for x in plans.frontier.__wrapped__(p)} == quick
        monkeypatch.undo()


def test_spaces_that_are_too_large_are_refused_at_once() -> None:
    start, sizes = time.process_time(), {"I": 256, "J": 256, "K": 256}
    with pytest.raises(MeshError, match=r"A has 2,085,504 layouts: 2 dimensions .* 8 mesh axes .* up to 12,000: join axes"):
        einsum("A[I_ABCDEFG, J] * B[J, K_H] -> C[I, K]", sizes, dict.fromkeys("ABCDEFGH", 2))
    with pytest.raises(MeshError, match="sub-axes of prime size"):
        einsum("A[I_X, J] * B[J, K] -> C[I, K_X]", sizes, {"X": 256}, sub_axes=True)
    with pytest.raises(MeshError, match="up to 6,000 on a machine"):
        m = sb.mesh(dict.fromkeys("ABCDEF", 2), on="v5e:8x8")
        einsum("A[I_ABC, J_D] * B[J, K_EF] -> C[I, K]", sizes, m)
    with pytest.raises(MeshError, match="A has 2,085,504 layouts"):
        sb.chain(["A[I, J] * B[J, K] -> C[I, K]"], sizes, dict.fromkeys("ABCDEFGH", 2), free=["A"])
    assert time.process_time() - start < 1
    assert einsum("A[I_X, J] * B[J, K] -> C[I, K_X]", {**sizes, "K": 1021 * 64}, {"X": 1}, sub_axes=True).bytes == 0
    large = einsum("A[I_X, J] * B[J, K] -> C[I, K_X]", {"I": 1021, "J": 64, "K": 1021}, {"X": 1021}, sub_axes=True)
    assert large.bytes > 0, "one sub-axis of 1021 is no harder than one of 2"


def test_layouts_are_counted_without_making_them() -> None:
    for dims, axes in itertools.product(range(4), range(4)):
        mesh = tuple((a, 2) for a in "XYZ"[:axes])
        assert layout_count(dims, axes) == len(layout_graph((2**axes,) * dims, mesh).nodes)


def test_undominated_keys_are_those_that_none_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    keys = sorted({tuple(rng.randrange(40) for _ in range(4)) for _ in range(400)})
    by_pairs = [k for k in keys if not any(o != k and all(x <= y for x, y in zip(o, k, strict=True)) for o in keys)]
    assert 10 < len(by_pairs) < len(keys) / 2
    for chunk in (2048, 50, 1):
        monkeypatch.setattr("scalebook.plans.CHUNK", chunk)
        assert undominated(keys) == by_pairs
    assert undominated([]) == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12))
def test_the_hull_keeps_what_is_cheapest_for_some_size(pairs: list[tuple[int, int]]) -> None:
    """Labels as lines rate · n + fixed: at every n their minimum is the same without the others, and each has an n of its own."""
    labels = [Walk(float(r), float(f), 0, None, "", None) for r, f in undominated(sorted(set(pairs)))]
    kept = hull(tuple(labels))
    sizes = [Fraction(a, b) for a in range(1, 21) for b in range(1, 21)]
    best = [min(int(w.rate) * n + int(w.fixed) for w in labels) for n in sizes]
    assert best == [min(int(w.rate) * n + int(w.fixed) for w in kept) for n in sizes]
    corners = [Fraction(int(a.fixed - b.fixed), int(b.rate - a.rate)) for a, b in itertools.pairwise(kept)]
    assert all(x > y for x, y in itertools.pairwise(corners)), "as arrays shrink, one after the other is the cheapest"


def test_graphs_have_the_known_sizes() -> None:
    """Layouts of a matrix: two axes, each unused or pending or on one of two dimensions, and both orders where they share one."""
    assert len(layout_graph((64, 64), (("X", 4), ("Y", 8))).nodes) == 18
    assert len(layout_graph((), (("X", 4), ("Y", 8))).nodes) == 4
    assert len(layout_graph((2, 64), (("X", 4), ("Y", 8))).nodes) == 10
