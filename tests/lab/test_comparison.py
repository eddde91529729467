"""A prediction beside the compiled program: rows, ratio, agreement."""

from types import SimpleNamespace

import pytest
from lab.samples import compiled

from scalebook import einsum, lab
from scalebook.errors import ScalebookError
from scalebook.lab.comparison import Row

SIZES = {"I": 32, "J": 16, "K": 16}


def test_fsdp_agrees_to_the_byte():
    e = einsum("A[I_X, J] * B[J_X, K] -> C[I_X, K]", SIZES, {"X": 4, "Y": 2}, "fp32")
    seen = lab.compare(e, compiled(lab.partitioned(e), *lab.shapes(e)))
    assert seen.rows == (Row("all-gather", ("X",), 16 * 16 * 4 * 3 // 4, 16 * 16 * 4 * 3 // 4),)
    assert seen.agree and seen.ratio == 1 and "differ" not in str(seen)
    assert [line.split() for line in seen.explain().replace("\u00a0", "").splitlines()] == [
        ["collective", "axes", "predicted", "compiled", "ratio"],
        ["all-gather", "X", "768B", "768B", "1", "agree"],
        ["all", "768B", "768B", "1", "agree"],
    ]
    assert seen._repr_html_().count("<tr>") == 3


def one(kind, axes, nbytes, trips=1):
    return SimpleNamespace(kind=kind, axes=axes, bytes=nbytes, trips=trips)


def predicted(*moves):
    return SimpleNamespace(mesh={"X": 2, "Y": 2}, collectives=moves)


def test_other_bytes_other_axes_other_kinds_differ():
    ours = predicted(one("all-gather", ("X",), 100), one("all-reduce", ("Y", "X"), 60))
    seen = lab.compare(ours, (one("all-gather", ("X",), 150), one("all-reduce", ("X", "Y"), 60), one("permute", None, 7)))
    assert [(r.kind, r.ratio, r.agrees(0)) for r in seen.rows] == [
        ("all-gather", 1.5, False),
        ("all-reduce", 1.0, True),
        ("permute", None, False),
    ]
    assert not seen.agree and seen.predicted_bytes == 160 and seen.compiled_bytes == 217
    assert seen.table()[2][:4] == ("permute", "not whole axes", "none", "7\u00a0B")
    missing = lab.compare(ours, ())
    assert not missing.agree and missing.ratio == 0
    assert lab.compare(ours, (one("all-gather", ("X",), 101), one("all-reduce", ("X", "Y"), 60)), tolerance=0.01).agree


def test_several_of_a_kind_add_up_and_loops_count():
    ours = predicted(one("all-gather", ("X",), 40), one("all-gather", ("X",), 20))
    assert lab.compare(ours, (one("all-gather", ("X",), 20, trips=3),)).agree
    unknown = lab.compare(ours, (one("all-gather", ("X",), 20, trips=None),))
    assert not unknown.agree and unknown.ratio is None and unknown.table()[-1][3] == "unknown"


def test_nothing_moves_on_either_side():
    e = einsum("A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]", SIZES, {"X": 4, "Y": 2}, "fp32")
    seen = lab.compare(e, compiled(lab.partitioned(e), *lab.shapes(e)))
    assert seen.agree and seen.rows == () and seen.ratio == 1
    assert lab.compare(e, (one("permute", ("X",), 8),)).ratio is None


GOOD = predicted(one("all-gather", ("X",), 100))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: lab.compare(None, None), r"takes an Einsum.*found None of type NoneType"),
        (lambda: lab.compare(SimpleNamespace(mesh={"X": 2}, collectives=5), ()), "takes an Einsum"),
        (lambda: lab.compare(GOOD, None), "compiled function or its text is needed, .*found None"),
        (lambda: lab.compare(GOOD, (1, 2)), r"as lab.collectives_of returns it; found \(1, 2\)"),
        (lambda: lab.compare(GOOD, (), mesh=5), "a mesh is axes and sizes"),
        (lambda: lab.compare(GOOD, (), mesh={"X": 2.0}), "X=2.0 is not a positive whole number"),
        (lambda: lab.compare(GOOD, (), tolerance="x"), "tolerance .* found 'x'"),
        (lambda: lab.compare(GOOD, (), tolerance=-1), "tolerance .* found -1"),
    ],
)
def test_what_cannot_be_compared_is_said(call, says):
    with pytest.raises(ScalebookError, match=says):
        call()
