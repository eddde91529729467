"""Changes of layout: bytes by hand, seconds by the collectives' own functions, the cheapest by brute force, and real blocks moved."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from move_interpreter import Machine

import scalebook as sb
from scalebook.errors import NotationError, ScalebookError, SizeError
from scalebook.graph import PriceList, layout_graph
from scalebook.resharding import Reshard

POD = {"X": 16, "Y": 16}
SQUARE = {"I": 8192, "J": 8192}
V = 2 * 8192 * 8192  # bytes in bf16


def pod() -> sb.Mesh:
    return sb.mesh(POD, on="v5e:16x16")


@pytest.mark.parametrize(
    ("spec", "kinds", "nbytes"),
    [
        ("A[I_X, J] -> A[I, J_X]", ["all-to-all"], V * 15 // 256),
        ("A[I_X, J] -> A[I, J]", ["all-gather"], V * 15 // 16),
        ("A[I, J] -> A[I_X, J]", ["slice"], 0),
        ("A[I_X, J] -> A[I_X, J]", [], 0),
        ("A[I_X, J] -> A[I, J_Y]", ["slice", "all-gather"], V // 16 * 15 // 16),
        ("A[I_XY, J] -> A[I_YX, J]", ["permute"], V // 256),
        ("A[I, J]{U_X} -> A[I_X, J]", ["reduce-scatter"], V * 15 // 16),
        ("A[I, J]{U_X} -> A[I, J]", ["all-reduce"], V * 15 // 8),
        ("A[I_Y, J]{U_X} -> A[I_Y, J]{U_X}", [], 0),
    ],
)
def test_moves_and_bytes_by_hand(spec: str, kinds: list[str], nbytes: int) -> None:
    for m in (sb.mesh(POD), pod()):
        r = sb.reshard(spec, SQUARE, m)
        assert [x.kind for x in r.moves] == kinds
        assert r.bytes == nbytes and [c.kind for c in r.collectives] == [k for k in kinds if k != "slice"]


def test_seconds_are_those_of_the_collective() -> None:
    m = pod()
    for spec, kind, axes in (
        ("A[I_X, J] -> A[I, J_X]", sb.all_to_all, "X"),
        ("A[I_XY, J] -> A[I, J]", sb.all_gather, "XY"),
        ("A[I, J]{U_Y} -> A[I, J]", sb.all_reduce, "Y"),
    ):
        assert sb.reshard(spec, SQUARE, m).time.comms == pytest.approx(kind(V, m, axes).seconds)
    assert sb.reshard("A[I, J] -> A[I_X, J]", SQUARE, m).time.comms == 0
    assert sb.reshard("A[I_X, J] -> A[I, J_X]", SQUARE, POD).time.comms is None


def test_bytes_follow_the_dtype() -> None:
    two, four = (sb.reshard("A[I_X, J] -> A[I, J]", SQUARE, POD, dtype) for dtype in ("bf16", "fp32"))
    assert four.bytes == 2 * two.bytes and (two.dtype, four.dtype) == ("bf16", "fp32")


def layouts(names: tuple[str, ...]) -> list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """Every (axes of I, axes of J, pending) over these axes."""
    found = []
    for n in range(len(names) + 1):
        for order in itertools.permutations(names, n):
            rest = [a for a in names if a not in order]
            for cut in range(n + 1):
                for k in range(len(rest) + 1):
                    found += [(order[:cut], order[cut:], p) for p in itertools.combinations(sorted(rest), k)]
    return found


def written(layout: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]) -> str:
    i, j, pending = ("".join(x) for x in layout)
    return f"A[I{'_' + i if i else ''}, J{'_' + j if j else ''}]" + (f"{{U_{pending}}}" if pending else "")


def least(before: sb.Sharding, after: sb.Sharding, mesh: dict[str, int]) -> float:
    """Bytes per byte of the array by relaxing all edges until nothing changes."""
    axes = tuple(mesh.items())
    graph = layout_graph((math.prod(mesh.values()),) * 2, axes)
    best = [math.inf] * len(graph.nodes)
    best[graph.number[before.layout(mesh)]] = 0.0
    changed = True
    while changed:
        changed = False
        for s, edges in enumerate(graph.edges):
            for e in edges:
                if best[s] + e.weight < best[e.to] - 1e-12:
                    best[e.to], changed = best[s] + e.weight, True
    return best[graph.number[after.layout(mesh)]]


TWO = layouts(("X", "Y"))


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(TWO), st.sampled_from([x for x in TWO if not x[2]]), st.sampled_from([(2, 2), (2, 4), (4, 2), (3, 2)]))
def test_no_sequence_of_moves_is_cheaper_and_real_blocks_end_where_they_should(
    before: tuple[tuple[str, ...], ...], after: tuple[tuple[str, ...], ...], shape: tuple[int, int]
) -> None:
    mesh = dict(zip("XY", shape, strict=True))
    n = math.prod(shape)
    r = sb.reshard(f"{written(before)} -> {written(after)}", {"I": n, "J": n}, mesh, "fp32")  # type: ignore[arg-type]
    used = {a for x in (before, after) for d in x for a in d}
    small = {a: k for a, k in mesh.items() if a in used}
    assert float(r.bytes) == pytest.approx(4 * n * n * least(r.before, r.after, small))
    at, machine, rng = r.before.layout(mesh), Machine(mesh), np.random.default_rng(0)
    array = rng.integers(-4, 5, (n, n))
    held, received = machine.spread(array, r.before, rng), 0
    for m in r.moves:
        assert m.before.layout(mesh) == at
        held, most = machine.move(held, m)
        received, at = received + most, m.after.layout(mesh)
    assert at == r.after.layout(mesh)
    assert machine.faults(held, array, r.after) == []
    assert received <= r.bytes / 4 + len(r.moves)


@pytest.mark.parametrize("n", [256, 8192])  # latency decides, or bandwidth
def test_with_links_the_fastest_is_taken_not_the_fewest_bytes(n: int) -> None:
    """Over two rings: nothing that the graph offers is faster."""
    m, nbytes = pod(), 2 * n * n
    for spec in (
        "A[I_XY, J] -> A[I, J_XY]",
        "A[I_X, J_Y] -> A[I_Y, J_X]",
        "A[I_XY, J] -> A[I_Y, J_X]",
        "A[I_X, J]{U_Y} -> A[I, J_X]",
    ):
        r = sb.reshard(spec, {"I": n, "J": n}, m)
        axes = tuple(m.axes)
        graph, price = layout_graph((256, 256), axes), PriceList(m)
        best = {graph.number[r.before.layout(m)]: 0.0}
        for _ in range(4):  # walks of up to four moves
            for s, cost in list(best.items()):
                for e in graph.edges[s]:
                    seconds = cost + min((rate or 0.0) * e.group * nbytes + fixed for rate, fixed, _ in price.of(e.kind, e.axes))
                    best[e.to] = min(best.get(e.to, math.inf), seconds)
        assert r.time.comms == pytest.approx(best[graph.number[r.after.layout(m)]])


@pytest.mark.parametrize(
    ("spec", "kind", "says"),
    [
        ("A[I_X, J]", NotationError, "such as 'A\\[I_X, J\\] -> A\\[I, J_X\\]'"),
        ("A[I] -> A[I] -> A[I]", NotationError, "a change of layout is text"),
        (3, NotationError, "found 3"),
        ("A[I_X, J] -> B[I, J]", NotationError, "different arrays"),
        ("A[I_X, J] -> A[J, I]", NotationError, "different arrays"),
        ("A[I, J] -> A[I, J]{U_X}", NotationError, "must be pending before"),
        ("A[I_Z, J] -> A[I, J]", NotationError, "unknown mesh axis 'Z'"),
        ("A[I_X, J -> A[I, J]", NotationError, "never closed"),
    ],
)
def test_what_cannot_be_done_is_said(spec: str, kind: type[ScalebookError], says: str) -> None:
    with pytest.raises(ScalebookError, match=says) as e:
        sb.reshard(spec, SQUARE, POD)
    assert isinstance(e.value, kind)


def test_sizes_are_checked() -> None:
    with pytest.raises(SizeError, match="no size is given for J"):
        sb.reshard("A[I_X, J] -> A[I, J]", {"I": 16}, POD)
    with pytest.raises(SizeError, match="cannot split J=9 over X=16"):
        sb.reshard("A[I_X, J] -> A[I, J_X]", {"I": 16, "J": 9}, POD)


def test_it_explains_itself() -> None:
    r = sb.reshard("A[I_X, J] -> A[I, J_Y]", SQUARE, pod())
    assert isinstance(r, Reshard) and "2" not in repr(r).split(":")[0]
    text = r.explain().replace("\u00a0", " ")
    assert text == str(r).replace("\u00a0", " ")
    assert text.splitlines()[0] == "A[I_X, J] -> A[I, J_Y]"
    assert text.splitlines()[1].split()[:3] == ["slice", "over", "Y"] and text.splitlines()[1].endswith("free")
    assert text.splitlines()[-1] == "Each device receives 7.86 MB in 95.4 µs."
    assert "seconds need a mesh" in str(sb.reshard("A[I_X, J] -> A[I, J]", SQUARE, POD))
    assert str(sb.reshard("A[I, J] -> A[I_X, J]", SQUARE, POD)).endswith("Nothing is communicated.")
