"""Derived plans executed on eight devices: the product is exact on every device, and what is compiled moves the predicted bytes."""

import numpy as np
import pytest
from lab.samples import compiled, operands, samples, wrong_devices

from scalebook import einsum, lab, mesh
from scalebook.errors import ScalebookError, SizeError
from scalebook.lab.execute import permute_pairs
from scalebook.lab.hlo import total_bytes
from scalebook.layouts import Layout

COUNT, PARTS = 560, 8


def test_the_sample_is_what_it_should_be():
    all_of_them = samples(COUNT)
    assert len(set(all_of_them)) == COUNT >= 500
    assert sum(s.batched for s in all_of_them) > 150 and sum(not s.batched for s in all_of_them) > 150
    assert sum(s.pending for s in all_of_them) > 50
    kinds = {m.kind for s in all_of_them for m in s.einsum().moves}
    assert kinds == {"all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute", "slice"}


@pytest.mark.parametrize("part", range(PARTS))
def test_plans_are_exact_on_every_device_and_move_the_predicted_bytes(part):
    wrong = []
    for n, sample in enumerate(samples(COUNT)[part::PARTS]):
        for e in (sample.einsum(), sample.einsum(sub_axes=True, idle_axes=True))[: 2 if n % 3 == 0 else 1]:
            a, b, product = operands(e)
            program = compiled(lab.function(e), *lab.shapes(e))
            if devices := wrong_devices(e, program(a, b), product):
                wrong.append(f"{sample}: devices {devices} do not hold their block\n{e.explain()}")
            if (moved := total_bytes(lab.collectives_of(program, e.mesh))) != e.bytes:
                wrong.append(f"{sample}: predicted {e.bytes} bytes, compiled {moved}\n{lab.compare(e, program)}")
    assert not wrong, "\n\n".join(wrong)


def test_a_wrong_block_on_one_replica_is_noticed():
    import jax

    e = einsum("A[I_X, J] * B[J, K] -> C[I_X, K]", {"I": 8, "J": 8, "K": 8}, {"X": 4, "Y": 2}, "fp32")
    a, b, product = operands(e)
    c = lab.function(e)(a, b)
    assert wrong_devices(e, c, product) == []
    shards = [np.array(s.data) for s in sorted(c.addressable_shards, key=lambda s: s.device.id)]
    shards[5][0, 0] += 1
    placed = [jax.device_put(x, d) for x, d in zip(shards, lab.jax_mesh(e.mesh).devices.flat, strict=True)]
    broken = jax.make_array_from_single_device_arrays(c.shape, c.sharding, placed)
    assert wrong_devices(e, broken, product) == [5]


def test_run_takes_and_gives_whole_arrays():
    e = einsum("A[I_X, J_Y] * B[J, K_Y] -> C[K, I_XY]", {"I": 8, "J": 6, "K": 4}, {"X": 2, "Y": 2}, "fp32")
    a, b, product = operands(e)
    assert np.array_equal(lab.run(e, a, b), (a @ b).T) and np.array_equal((a @ b).T, product)
    assert np.array_equal(lab.run(e, a.tolist(), b.tolist()), product)


def test_a_pending_operand_may_be_given_whole_or_in_parts_and_a_pending_result_comes_back_summed():
    e = einsum("A[I, J_X]{U_Y} * B[J_X, K] -> C[I, K]{U_X}", {"I": 4, "J": 4, "K": 4}, {"X": 2, "Y": 4}, "fp32")
    a, b, product = operands(e)
    assert a.shape == (4, 4, 4)
    assert np.array_equal(lab.run(e, a, b), product)
    assert np.array_equal(lab.run(e, a.sum(axis=0), b), product)
    assert lab.function(e)(a, b).shape == (2, 4, 4)


def test_the_result_is_cast_to_the_dtype_in_which_it_moves():
    dtypes = {"A": "bf16", "B": "int8", "C": "fp32"}
    e = einsum("A[I, J_X] * B[J_X, K] -> C[I, K]", {"I": 8, "J": 1024, "K": 8}, {"X": 2}, dtypes)
    assert [str(s.dtype) for s in lab.shapes(e)] == ["bfloat16", "int8"]
    program = compiled(lab.function(e), *lab.shapes(e))
    assert [(c.kind, c.dtype, c.bytes) for c in lab.collectives_of(program, e.mesh)] == [("all-reduce", "fp32", 8 * 8 * 4)]
    assert lab.function(e)(np.ones((8, 1024), np.int32), np.ones((1024, 8), np.int32)).dtype == np.int32  # others keep theirs


def test_an_array_of_another_shape_is_refused():
    e = einsum("A[I_X, J]{U_Y} * B[J, K] -> C[I_X, K]", {"I": 8, "J": 4, "K": 2}, {"X": 2, "Y": 2}, "fp32")
    with pytest.raises(SizeError, match=r"A\[I_X, J\]\{U_Y\} has shape \(8, 4\).*or \(2, 8, 4\) as parts.*shape \(4, 8\)"):
        lab.run(e, np.ones((4, 8)), np.ones((4, 2)))
    with pytest.raises(SizeError, match=r"B\[J, K\] has shape \(4, 2\).*found an array of shape \(4,\)"):
        lab.run(e, np.ones((8, 4)), np.ones(4))
    with pytest.raises(ScalebookError, match=r"no pending sums in or out; found A\[I_X, J\]\{U_Y\}"):
        lab.partitioned(e)


@pytest.mark.parametrize("shape", [{"X": 2, "Y": 2, "Z": 2}, {"X": 4, "Y": 2}])
def test_a_permute_gives_every_device_its_block_once(shape):
    m = mesh(shape)
    before, after = Layout((("X",), ("Y",)), ()), Layout((("X",), ()), ("Y",))
    assert permute_pairs(before, before, m) == [(i, i) for i in range(8)]
    assert permute_pairs(after, after, m) == [(i, i) for i in range(8)]
    # A[I_XY] -> A[I_YX]: block i of |X|·|Y| lies at (i // |Y|, i % |Y|) before, at (i % |X|, i // |X|) after
    X, Y = m["X"], m["Y"]
    rest = m.devices // (X * Y)
    pairs = permute_pairs(Layout((("X", "Y"),)), Layout((("Y", "X"),)), m)
    assert sorted(s for s, _ in pairs) == sorted(t for _, t in pairs) == list(range(8))
    for source, target in pairs:
        x, y = divmod(target // rest, Y)
        assert source // rest == y * X + x
