"""Several products together: sharing against hand formulas, joint layouts against exhaustive choice."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import scalebook as sb
from scalebook.chains import chain
from scalebook.errors import NotationError, ScalebookError, SizeError
from scalebook.graph import layout_graph
from scalebook.products import einsum

MLP = [
    "In[T_XY, D] * Wg[D_X, F_Y] -> G[T_X, F_Y]",
    "In[T_XY, D] * Wu[D_X, F_Y] -> U[T_X, F_Y]",
    "H[T_X, F_Y] * Wd[F_Y, D_X] -> Out[T_XY, D]",
]
FREE = [s.replace("T_X, F_Y", "T, F") for s in MLP]
GROUP = [("G", "U", "H")]
T, D, F, X, Y = 131072, 8192, 28672, 16, 8
SIZES, MESH = {"T": T, "D": D, "F": F}, {"X": X, "Y": Y}

tokens = 2 * (T // X) * D * (Y - 1) // Y  # gather or scatter activations over Y
weight = 2 * (D * F // Y) * (X - 1) // X  # gather or scatter one weight over X


def test_llama_70b_mlp_by_hand() -> None:
    """FSDP + TP + sequence parallelism, forward and backward; 1552 MB product by product, 1083 MB together."""
    c = chain(MLP, SIZES, MESH, elementwise=GROUP, backward=True)
    forward = c.phase(0)
    assert forward.bytes == 2 * tokens + 3 * weight and forward.bytes_apart == 3 * tokens + 3 * weight
    assert c.bytes == forward.bytes + 3 * tokens + 6 * weight, (
        "dOut, dIn and In once each; three weights there, three gradients back"
    )
    assert c.bytes_apart == 9 * (tokens + weight)
    assert [round(b / 1e6) for b in (c.bytes_apart, c.bytes, forward.bytes_apart, forward.bytes)] == [1552, 1083, 517, 400]
    assert c.flops == 9 * 2 * T * D * F and c.flops_per_device == c.flops // (X * Y)


def test_kept_copies_are_not_moved_again() -> None:
    all_kept = chain(MLP, SIZES, MESH, elementwise=GROUP, backward=True, keep=["In", "Wg", "Wu", "Wd"])
    assert all_kept.bytes == 4 * tokens + 6 * weight
    some = chain(MLP, SIZES, MESH, elementwise=GROUP, backward=True, keep=["In"])
    assert some.bytes == 4 * tokens + 9 * weight


def test_gradients_are_added_while_pending() -> None:
    c = chain(MLP, SIZES, MESH, elementwise=GROUP, backward=True)
    users = {(m.kind, m.array): used for m, used in c.moves}
    names = [str(e.C) for e in c.products]
    assert [names[n] for n in users["reduce-scatter", "dIn"]] == ["dIn[T_XY, D]"] * 2
    assert len(users["all-gather", "dOut"]) == 2
    text = c.explain().replace("\u00a0", " ")
    assert "1.08 GB; product by product it would be 1.55 GB" in text and "for dH[T_X, F_Y], dWd[F_Y, D_X]" in text


def test_free_layouts_come_out_as_fsdp_and_tp() -> None:
    """With H free, the joint choice equals the hand formula to the byte."""
    c = chain(FREE, SIZES, MESH, free=["G", "U", "H"], elementwise=GROUP, backward=True)
    assert c.bytes == 5 * tokens + 9 * weight
    assert str(c.layouts["H"]) == "H[T_X, F_Y]" and str(c.layouts["dH"]) == "dH[T_X, F_Y]"


def test_on_a_topology_shared_moves_cost_their_time_once() -> None:
    m = sb.mesh(MESH, on="v5p:4x4x8")
    c = chain(MLP, SIZES, m, elementwise=GROUP)
    gather = sb.all_gather(2 * T // X * D, m, "Y").comms + 3 * sb.all_gather(2 * D * F // Y, m, "X").comms
    scatter = sb.reduce_scatter(2 * T // X * D, m, "Y").comms
    assert c.time.comms == pytest.approx(gather + scatter)
    assert c.time.math == pytest.approx(sum(e.time.math for e in c.products))
    assert "math binds" in c.explain()


def test_a_part_of_a_gather_over_two_axes_can_be_shared() -> None:
    """One product needs In over X and Y, the other over Y only: Y is gathered once, then X."""
    specs = ["In[T_XY, D] * A[D] -> P[T]", "In[T_XY, D] * B[D, F_Y] -> Q[T_X, F_Y]"]
    sizes, mesh = {"T": 64, "D": 64, "F": 4096}, {"X": 4, "Y": 2}
    c = chain([specs[0].replace("A[D]", "A[D, E]").replace("P[T]", "P[T, E]"), specs[1]], sizes | {"E": 4096}, mesh)
    assert c.bytes == 2 * 64 * 64 * 7 // 8 and c.bytes_apart == c.bytes + 2 * (64 // 4) * 64 // 2
    assert [(m.kind, m.axes, used) for m, used in c.moves] == [("all-gather", ("Y",), (0, 1)), ("all-gather", ("X",), (0,))]
    alone = chain([specs[0].replace("A[D]", "A[D, E]").replace("P[T]", "P[T, E]")], sizes | {"E": 4096}, mesh)
    assert [(m.kind, m.axes, m.bytes) for m, _ in alone.moves] == [("all-gather", ("X", "Y"), 2 * 64 * 64 * 7 // 8)]
    back = chain(["A[I, J_XY] * B[J_XY, K] -> C[I_XY, K]"], {"I": 64, "J": 4096, "K": 64}, mesh)
    assert [(m.kind, m.axes, m.bytes) for m, _ in back.moves] == [("reduce-scatter", ("X", "Y"), 2 * 64 * 64 * 7 // 8)]


# ---- against exhaustive choice ------------------------------------------------------------------------------------------


def layouts_of(letters: tuple[str, ...], sizes: dict[str, int], mesh: dict[str, int]) -> list[Any]:
    import math

    devices = math.prod(mesh.values())
    return list(layout_graph(tuple(math.gcd(sizes[x], devices) for x in letters), tuple(mesh.items())).nodes)


@pytest.mark.parametrize("seed", range(8))
def test_joint_layouts_equal_exhaustive_choice(seed: int) -> None:
    """A[I,J] * B[J,K] -> H[I,K], H * C[K,L] -> Out[I,L]: no move is shared, so the best is a minimum over H of two lone products."""
    rng = random.Random(seed)
    mesh = {"X": 4, "Y": 2}
    sizes = {x: 8 * rng.choice([1, 2, 8, 64]) for x in "IJKL"}

    def place(a: str, b: str) -> str:
        where = {axis: rng.choice([a, b, ""]) for axis in mesh}
        return ", ".join("_".join(filter(None, [x, "".join(k for k, v in where.items() if v == x)])) for x in (a, b))

    first, second, out = f"A[{place('I', 'J')}] * B[{place('J', 'K')}]", f"C[{place('K', 'L')}]", f"Out[{place('I', 'L')}]"
    c = chain([f"{first} -> H[I, K]", f"H[I, K] * {second} -> {out}"], sizes, mesh, free=["H"])
    best: float | None = None
    for layout in layouts_of(("I", "K"), sizes, mesh):
        H = sb.sharding("H[I, K]").at(layout)
        try:
            total = einsum(f"{first} -> {H}", sizes, mesh).bytes + einsum(f"{H} * {second} -> {out}", sizes, mesh).bytes
        except ScalebookError:
            continue
        best = total if best is None else min(best, total)
    assert c.bytes == best == c.bytes_apart


def one_axis_at_a_time(m: Any, mesh: dict[str, int]) -> list[tuple[Any, float]]:
    """A gather or reduce-scatter over several axes as one after the other."""
    if m.kind not in ("all-gather", "reduce-scatter"):
        return [((m.array, m.before, m.after), m.bytes)]
    out, held = [], m.nbytes - m.bytes if m.kind == "all-gather" else m.nbytes
    done: tuple[str, ...] = ()
    for axis in reversed(m.axes) if m.kind == "all-gather" else m.axes:
        k, before, done = mesh[axis], done, (*done, axis)
        out.append(
            ((m.array, m.before, m.src, m.dst, before, axis), held * (k - 1) if m.kind == "all-gather" else held * (k - 1) / k)
        )
        held = held * k if m.kind == "all-gather" else held / k
    assert sum(n for _, n in out) == pytest.approx(m.bytes)
    return out


@pytest.mark.parametrize("seed", range(4))
def test_shared_walks_equal_exhaustive_choice(seed: int) -> None:
    """Two products of one operand: every pair of frontier plans, the union of their edges."""
    rng = random.Random(seed)
    sizes = {x: 8 * rng.choice([1, 4, 32]) for x in "IJKL"}
    mesh = {"X": 2, "Y": 4}
    specs = ["A[I_XY, J] * B[J_X, K_Y] -> C[I_X, K_Y]", "A[I_XY, J] * D[J_Y, L_X] -> E[I_Y, L_X]"]
    c = chain(specs, sizes, mesh)
    alone = [einsum(s, sizes, mesh) for s in specs]
    best = min(
        sum({key: nbytes for e in pair for m in e.moves for key, nbytes in one_axis_at_a_time(m, mesh)}.values())
        for pair in itertools.product(*([e, *e.alternatives] for e in alone))
    )
    assert c.bytes == pytest.approx(best) and c.bytes <= sum(e.bytes for e in alone)


def test_greedy_layouts_can_be_dear() -> None:
    """H as the first product likes it, against H chosen for both."""
    sizes, mesh = {"I": 64, "J": 4096, "K": 4096, "L": 4096}, {"X": 8}
    specs = ["A[I, J_X] * B[J_X, K] -> H[I, K]", "H[I, K] * C[K_X, L] -> Out[I, L_X]"]
    c = chain(specs, sizes, mesh, free=["H"], elementwise=[("H",)])
    assert str(c.layouts["H"]) == "H[I, K_X]"
    kept = 2 * 64 * 4096 * 7 // 8
    assert c.bytes == 2 * kept, "reduce-scatter H, multiply, reduce-scatter Out"


def test_memory_limit_holds_in_every_product() -> None:
    gathered = 2 * T // X * D
    c = chain(MLP, SIZES, MESH, memory_limit=gathered)
    assert c.bytes == 2 * tokens + 3 * weight
    assert max(s.bytes_per_device(SIZES, MESH) for m, _ in c.moves for s in (m.before, m.after)) == gathered
    with pytest.raises(SizeError, match=r"G\[T_X, F_Y\] keeps every local block within .*the least that would do is 128.MiB"):
        chain(MLP, SIZES, MESH, memory_limit=gathered - 1)
    with pytest.raises(SizeError, match="no layout of G allows"):
        chain(FREE, SIZES, MESH, free=["G", "U", "H"], elementwise=GROUP, memory_limit=2**20)


def test_mistakes_are_named() -> None:
    with pytest.raises(NotationError, match=r"In is In\[T_XY, D\].*and In\[T_X, D\]"):
        chain([MLP[0], MLP[1].replace("In[T_XY", "In[T_X")], SIZES, MESH)
    with pytest.raises(NotationError, match="write it without subscripts"):
        chain(MLP, SIZES, MESH, free=["G"])
    with pytest.raises(ScalebookError, match="unknown array of the chain 'Q'"):
        chain(MLP, SIZES, MESH, free=["Q"])
    with pytest.raises(ScalebookError, match="unknown array of the chain 'Q'"):
        chain(MLP, SIZES, MESH, keep=["Q"])
    with pytest.raises(NotationError, match="layouts must be equal"):
        chain([MLP[0], MLP[2].replace("H[T_X", "H[T")], SIZES, MESH, elementwise=[("G", "H")])
    with pytest.raises(NotationError, match="must be finished"):
        chain(["A[I, J_X] * B[J_X, K] -> C[I, K]{U_X}"], {"I": 16, "J": 16, "K": 16}, {"X": 4}, elementwise=[("C",)])
    with pytest.raises(ScalebookError, match="unknown array of the chain 'Q'"):
        chain(MLP, SIZES, MESH, elementwise=("G", "Q"))
    assert chain(MLP, SIZES, MESH, elementwise=("G", "U", "H"), backward=True, keep="In").bytes == 4 * tokens + 9 * weight
    with pytest.raises(NotationError, match="dA: the backward pass gives this name to the gradient of A"):
        chain(["A[I, J] * dA[J, K] -> C[I, K]"], {"I": 16, "J": 16, "K": 16}, {"X": 4}, backward=True)
    with pytest.raises(NotationError, match="at least one product"):
        chain([], SIZES, MESH)
