"""What the chapter on sharded products says of jax: four cases and their transposes, three styles, and where the compiler differs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import scalebook as sb
from scalebook import lab

CASES = {
    "nothing": "A[I_X, J] * B[J, K] -> C[I_X, K]",
    "gather": "A[I_X, J] * B[J_X, K] -> C[I_X, K]",
    "sum": "A[I, J_X] * B[J_X, K] -> C[I, K]",
    "twice": "A[I_X, J] * B[J, K_X] -> C[I_X, K]",
}
USUAL, FEW = {"I": 512, "J": 512, "K": 128}, {"I": 64, "J": 512, "K": 512}


def derived(case: str, sizes: dict[str, int]) -> sb.Einsum:
    return sb.einsum(CASES[case], sizes, {"X": 8}, "fp32")


def against(e: sb.Einsum) -> lab.Comparison:
    return lab.compare(e, lab.partitioned(e).lower(*lab.shapes(e)).compile())


@pytest.mark.parametrize("case", CASES)
def test_usual_sizes_agree_to_the_byte_forward_and_backward(case: str) -> None:
    e = derived(case, USUAL)
    for one in (e, *e.backward()):
        c = against(one)
        assert c.agree, f"{one.spec}\n{c}"


def test_with_few_rows_the_compiler_moves_more_and_both_are_right() -> None:
    draw = np.random.default_rng(0).integers
    a, b = (draw(-3, 4, shape).astype(np.float32) for shape in ((64, 512), (512, 512)))
    ratios = {case: against(derived(case, FEW)).ratio for case in CASES}
    assert ratios == {"nothing": 1.0, "gather": pytest.approx(64 / 9), "sum": 1.0, "twice": pytest.approx(64 / 9)}
    for case in ("gather", "twice"):  # the small arrays move, forward and backward; the compiler moves B or its gradient
        e = derived(case, FEW)
        for one in (e, *e.backward()):
            assert {c.array.removeprefix("d") for c in one.collectives} == {"A", "C"}
            c = lab.compare(one, program := lab.partitioned(one).lower(*lab.shapes(one)).compile())
            assert c.ratio == pytest.approx(64 / 9)
            assert [x.arrays[0].shape for x in lab.collectives_of(program, {"X": 8})] == [(512, 512)]
    dB = derived("nothing", FEW).backward()[1]
    assert dB.waste == 8 and against(dB).ratio == 8
    for case in CASES:
        e = derived(case, FEW)
        assert np.array_equal(lab.run(e, a, b), a @ b)
        assert np.array_equal(np.asarray(lab.partitioned(e)(a, b)), a @ b)


def explicit(shape: tuple[int, int], *axes: str | None) -> jax.Array:
    mesh = jax.make_mesh((8,), ("X",), axis_types=(AxisType.Explicit,), devices=lab.devices(8)[:8])
    return jax.device_put(np.ones(shape, np.float32), NamedSharding(mesh, P(*axes)))


def test_explicit_axes_ask_where_we_have_a_choice() -> None:
    a, b = explicit((512, 512), None, "X"), explicit((512, 128), "X", None)
    with pytest.raises(Exception, match="ambiguous how the output should be sharded"):
        a @ b
    with jax.set_mesh(a.sharding.mesh):
        shown = [str(jax.typeof(jnp.matmul(a, b, out_sharding=spec))) for spec in (P(), P("X"), P(unreduced={"X"}))]
    assert shown == ["float32[512,128]", "float32[512@X,128]", "float32[512,128]{U:X}"]
    a, b = explicit((512, 512), "X", None), explicit((512, 128), None, "X")
    with pytest.raises(Exception, match="illegally sharded"):
        a @ b
    with jax.set_mesh(a.sharding.mesh):
        assert str(jax.typeof(jnp.matmul(a, b, out_sharding=P("X")))) == "float32[512@X,128]"


def test_what_is_gathered_forward_is_scattered_backward_by_jax_too() -> None:
    mesh = lab.jax_mesh({"X": 8})
    rows = NamedSharding(mesh, P("X"))
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((512, 512), (512, 128))]

    def loss(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.sum(jnp.matmul(a, b) ** 2)

    gradients = jax.jit(jax.grad(loss, argnums=(0, 1)), in_shardings=(rows, rows), out_shardings=(rows, rows))
    found = lab.collectives_of(gradients.lower(*shapes).compile(), {"X": 8})
    dA, dB = derived("gather", USUAL).backward()
    assert [(c.kind, c.bytes) for c in found] == [(c.kind, c.bytes) for e in (dA, dB) for c in e.collectives]


def test_by_hand_a_psum_is_the_all_reduce() -> None:
    mesh = lab.jax_mesh({"X": 8})
    f = jax.jit(jax.shard_map(lambda a, b: jax.lax.psum(a @ b, "X"), mesh=mesh, in_specs=(P(None, "X"), P("X")), out_specs=P()))
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((512, 512), (512, 128))]
    assert lab.compare(derived("sum", USUAL), f.lower(*shapes).compile()).agree
