"""Derived plans against jax's own partitioner: it never moves fewer bytes and is right; values are compared before bytes.

The plan may do what the compiler may: use prime sub-axes, and axes that the einsum does not name.
"""

import jax
import pytest
from lab.samples import Sample, compiled, operands, samples, wrong_devices

from scalebook import lab
from scalebook.lab.hlo import total_bytes

COUNT, PARTS = 560, 8


def _best(sample):
    return sample.einsum(sub_axes=True, idle_axes=True)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_correct_program_of_the_partitioner_moves_fewer_bytes(part):
    beaten, right = [], 0
    for sample in samples(COUNT)[part::PARTS]:
        if sample.pending:
            continue  # jit takes no pending sums in or out
        e = sample.einsum()
        a, b, product = operands(e)
        program = compiled(lab.partitioned(e), *lab.shapes(e))
        if wrong_devices(e, program(a, b), product):
            continue
        right += 1
        moved, ours = total_bytes(lab.collectives_of(program, e.mesh)), _best(sample).bytes
        if moved is None or moved < ours:
            beaten.append(f"{sample}: the partitioner moves {moved} bytes, the plan {ours}\n{lab.compare(e, program)}")
    assert not beaten, "\n\n".join(beaten)
    assert right >= 50  # of about 56 in each part: what is left out is rare


CUBE = (("X", 2), ("Y", 2), ("Z", 2))
RIGHT = Sample("A[I_Y, J_X] * B[J_X, K] -> C[I_YZ, K_X]", (("I", 1024), ("J", 32), ("K", 32)), CUBE)
WRONG = {  # each writes a minor axis before a major one; which devices go wrong, and whether fewer bytes move than any right program needs
    Sample("A[I_Y, J_X] * B[J_X, K] -> C[I_ZY, K_X]", RIGHT.sizes, CUBE): ([1, 2, 5, 6], True),
    Sample("A[I, G_YX, J_Z] * B[J_Z, G, K] -> C[G_XY, K, I_Z]", (("I", 256), ("G", 8), ("J", 8), ("K", 8)), CUBE): (
        [2, 3, 4, 5],
        True,
    ),
    Sample("A[G_Y, I_Z, J_X] * B[J_X, K_Y] -> C[G_X, I_ZY, K]", (("G", 8), ("I", 32), ("J", 32), ("K", 16)), CUBE): (
        [1, 2, 5, 6],
        False,
    ),
}


@pytest.mark.parametrize("sample", WRONG, ids=lambda s: s.spec)
def test_the_known_faults_of_the_partitioner_are_still_there(sample):
    """jax 0.10.2 (0.12.0 too, for the first) computes these products wrongly; our plans for them are exact."""
    e, better = sample.einsum(), _best(sample)
    a, b, product = operands(e)
    program = compiled(lab.partitioned(e), *lab.shapes(e))
    wrong, moved = wrong_devices(e, program(a, b), product), total_bytes(lab.collectives_of(program, e.mesh))
    devices, fewer = WRONG[sample]
    if not wrong:
        pytest.fail(
            f"jax {jax.__version__} now computes {sample.spec} rightly: take it off this list, and out of the book if it is there"
        )
    assert wrong == devices, (
        f"jax {jax.__version__} computes {sample.spec} wrongly in another way than before, on devices {wrong}"
    )
    assert moved is not None and (moved < better.bytes) == fewer
    for plan in (e, better):
        assert wrong_devices(plan, lab.function(plan)(a, b), product) == []


def test_its_neighbour_is_right():
    e = RIGHT.einsum()
    a, b, product = operands(e)
    program = compiled(lab.partitioned(e), *lab.shapes(e))
    assert wrong_devices(e, program(a, b), product) == []
    moved = total_bytes(lab.collectives_of(program, e.mesh))
    assert moved is not None and moved >= _best(RIGHT).bytes
