"""Patterns: one derivation for all meshes must give what a derivation for each mesh gives."""

from __future__ import annotations

import random

import numpy as np
import pytest

import scalebook as sb
from scalebook.errors import MeshError, ScalebookError, SizeError
from scalebook.graph import PriceList
from scalebook.patterns import pattern
from scalebook.products import einsum

SPECS = [
    "In[B_X, D] * W[D_X, F] -> Out[B_X, F]",
    "In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]",
    "A[I_XY, J] * B[J, K_XY] -> C[I, K_XY]",
    "A[I_X, J_Y] * B[J_X, K_Y] -> C[I_Y, K_X]",
    "In[E, C_X, D] * W[E_X, D, F_Y] -> H[E_X, C, F_Y]",
]


@pytest.mark.parametrize("spec", SPECS)
def test_equals_einsum_on_any_mesh(spec: str) -> None:
    """Random meshes of unequal axes, not powers of stand-in sizes only, and sizes that all devices divide."""
    rng, p = random.Random(spec), pattern(spec)
    for _ in range(25):
        mesh = dict(zip("XY", rng.sample([1, 2, 3, 4, 6, 8, 12, 16, 32, 100, 128], 2), strict=True))
        mesh = {a: n for a, n in mesh.items() if a in p.axes}
        devices = np.prod(list(mesh.values()))
        sizes = {d: int(devices) * rng.choice([1, 2, 5, 16, 64, 500]) for d in "IJKBDFTEC"}
        assert p.evaluate(sizes, mesh).bytes == pytest.approx(einsum(spec, sizes, mesh).bytes, rel=1e-12), (mesh, sizes)


def test_three_axes_and_equal_axes_are_never_below() -> None:
    spec, rng = "In[T_XY, D_Z] * W[D_X, F_YZ] -> H[T_X, F_YZ]", random.Random(1)
    p, ratios = pattern(spec), []
    for _ in range(12):
        mesh = {a: rng.choice([2, 4, 8]) for a in "XYZ"}
        sizes = {d: 512 * rng.choice([1, 4, 64]) for d in "TDF"}
        ratios.append(p.evaluate(sizes, mesh).bytes / einsum(spec, sizes, mesh).bytes)
    assert min(ratios) >= 1 - 1e-12 and sorted(ratios)[len(ratios) // 2] == pytest.approx(1) and max(ratios) < 1.5


def test_arrays_of_meshes_and_sizes() -> None:
    """All ways to split 256 devices, times token counts, at once; axes of size 1 included."""
    p, X = pattern(SPECS[1]), 2 ** np.arange(9)[:, None]
    T = 256 * np.array([1, 16, 256])
    v = p.evaluate({"T": T, "D": 8192, "F": 28672 * 8}, {"X": X, "Y": 256 // X})
    assert v.bytes.shape == v.which.shape == (9, 3)
    for i, x in enumerate(X[:, 0]):
        for j, t in enumerate(T):
            mesh = {"X": int(x), "Y": int(256 // x)}
            one = p.evaluate({"T": int(t), "D": 8192, "F": 28672 * 8}, mesh)
            assert v.bytes[i, j] == one.bytes and v.flops_per_device[i, j] == one.flops_per_device
            exact = einsum(p_spec := SPECS[1], {"T": int(t), "D": 8192, "F": 28672 * 8}, mesh)
            assert v.bytes[i, j] >= exact.bytes * (1 - 1e-12), p_spec
            if x != 16:
                assert v.bytes[i, j] == pytest.approx(exact.bytes)


def test_priced_by_the_links_of_a_machine() -> None:
    m = sb.mesh({"X": 16, "Y": 8}, on="v5p:4x4x8")
    prices, rate = PriceList(m), sb.rates("v5p", per="device")["math"]

    def price(kind: str, axes: tuple[str, ...]) -> tuple[float, float]:
        r, fixed, _ = prices.of(kind, axes)[0]
        return r or 0.0, fixed

    T = 128 * 2 ** np.arange(11)
    v = pattern(SPECS[1]).evaluate({"T": T, "D": 8192, "F": 28672}, {"X": 16, "Y": 8}, price=price, flops_per_s=rate)
    for i, t in enumerate(T):
        e = einsum(SPECS[1], {"T": int(t), "D": 8192, "F": 28672}, m)
        best = max(e.time.math, e.time.comms)
        assert best * (1 - 1e-9) <= max(v.math[i], v.comms[i]) <= best * 1.05
    assert [s.array for s in v.plans[v.which[-1]].stages] == [0, 1] and {s.array for s in v.plans[v.which[0]].stages} == {0, 2}


def test_sizes_that_do_not_divide() -> None:
    p = pattern("A[I_X, J] * B[J, K] -> C[I_X, K]")
    v = p.evaluate({"I": np.array([8, 10]), "J": 8, "K": 8}, {"X": 4})
    assert v.which.tolist() == [v.which[0], -1] and v.bytes.tolist() == [0, np.inf]
    assert p.evaluate({"I": 10, "J": 8, "K": 8}, {"X": 4}).which == -1


def test_unsplit_dimensions_stay_whole() -> None:
    spec = "A[I_X, J] * B[J, K] -> C[I, K_X]"
    free = pattern(spec).evaluate({"I": 4, "J": 4, "K": 4096}, {"X": 4})
    held = pattern(spec, unsplit="IJ").evaluate({"I": 4, "J": 4, "K": 4096}, {"X": 4})
    assert free.bytes == held.bytes == 4 * 4 * 2 * 3 / 4
    plans = pattern(spec, unsplit="J").plans()
    assert all("X" not in axes for plan in plans for d, axes in plan.divides if d == "J")
    assert any(d == "J" for plan in pattern("A[I, J_X] * B[J, K] -> C[I, K]").plans() for d, _ in plan.divides)


def test_mistakes_are_named() -> None:
    p = pattern(SPECS[0])
    with pytest.raises(SizeError, match="no size of dimension F"):
        p.evaluate({"B": 8, "D": 8}, {"X": 2})
    with pytest.raises(SizeError, match="no size of mesh axis X"):
        p.evaluate({"B": 8, "D": 8, "F": 8}, {})
    with pytest.raises(ScalebookError, match="unknown dimension 'Q'"):
        pattern(SPECS[0], unsplit=["Q"])
    with pytest.raises(MeshError, match="at most 4 mesh axes"):
        pattern("A[I_XYZWV] * B[] -> C[I_XYZWV]")
