"""The systolic array: its product, its cycles against the closed form, and what lies where in a cycle, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from scalebook.errors import SizeError
from scalebook.systolic import Run, cycles, simulate, utilisation

SIZE = st.integers(1, 6)


def product(A: list[list[int]], B: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*B, strict=True)) for row in A)


def matrix(rows: int, columns: int, seed: int) -> list[list[int]]:
    return [[(seed + 7 * r + 3 * c) ** 2 % 19 - 9 for c in range(columns)] for r in range(rows)]


@settings(max_examples=80, deadline=None)
@given(SIZE, SIZE, SIZE, st.integers(1, 4), st.integers(1, 4), st.integers(0, 50))
def test_the_product_is_exact_and_the_cycles_are_the_closed_form(I: int, J: int, K: int, R: int, C: int, seed: int) -> None:
    A, B = matrix(I, J, seed), matrix(J, K, seed + 1)
    run = simulate(A, B, dim=(R, C), states=False)
    assert run.product == product(A, B)
    assert run.cycles == cycles(I, J, K, dim=(R, C))
    assert sum(run.busy) == run.tiles * I * R * C  # each row meets each cell once a tile
    assert run.tiles == -(-J // R) * -(-K // C)


def test_cycles_by_hand() -> None:
    # 4 cycles for the weights, 8 rows, and 3 + 3 more until the last row has crossed the array
    assert cycles(8, 4, 4, dim=4) == 4 + 8 + 6
    # one row only: the second of two tiles waits until its weights are there, 4 cycles after the first
    assert cycles(1, 4, 8, dim=4) == 4 + 4 + 1 + 6
    # many rows: loading hides behind them
    assert cycles(100, 4, 8, dim=4) == 4 + 100 + 100 + 6
    # SCALE-Sim's count for one tile of a weight-stationary array: 2R + C + T − 2
    assert cycles(50, 32, 16, dim=(32, 16)) == 2 * 32 + 16 + 50 - 2


def place(run: Run, cycle: int, r: int, c: int) -> tuple[int | None, int | None]:
    cell = run.states[cycle].cells[r][c]
    return cell.row, cell.number


def test_where_everything_is_in_a_small_array() -> None:
    A, B = [[1, 2], [3, 4], [5, 6]], [[10, 20], [30, 40]]
    run = simulate(A, B)
    assert run.cycles == 2 + 3 + 2
    # cycle 0: the last row's first weight enters on top of column 0
    assert run.states[0].cells[0][0].moving == 30
    assert run.states[0].busy == 0
    # cycle 1: it has reached its row, 10 is in place; column 1 is one cycle later
    assert run.states[1].cells[1][0].waiting == 30
    assert run.states[1].cells[0][0].waiting == 10
    assert run.states[1].cells[0][1].moving == 40
    # cycle 2: A[0, 0] meets 10; cycle 3: A[0, 1] meets 30, and the sum leaves
    assert place(run, 2, 0, 0) == (0, 1)
    assert run.states[2].cells[0][0].total == 10
    assert place(run, 3, 1, 0) == (0, 2)
    assert place(run, 3, 0, 1) == (0, 1)
    assert [(o.row, o.column, o.value) for o in run.states[3].outputs] == [(0, 0, 1 * 10 + 2 * 30)]
    # row m of A is at cell (r, c) in cycle 2 + m + r + c, and nowhere else
    for state in run.states:
        for r in range(2):
            for c in range(2):
                m = state.cycle - 2 - r - c
                assert place(run, state.cycle, r, c) == ((m, A[m][r]) if 0 <= m < 3 else (None, None))
    assert run.states[-1].outputs[0].value == 5 * 20 + 6 * 40


def test_the_next_weights_arrive_while_the_last_are_in_use() -> None:
    run = simulate(matrix(5, 2, 1), matrix(2, 4, 2), dim=2)
    assert run.tiles == 2
    # tile 0 meets row 0 of the array's first cell in cycles 2 to 6, tile 1 in 7 to 11, with no gap between
    first = [s.cells[0][0] for s in run.states]
    assert [cell.tile for cell in first[2:12]] == [0] * 5 + [1] * 5
    assert [cell.row for cell in first[2:12]] == [0, 1, 2, 3, 4] * 2
    assert first[4].waiting is not None


@pytest.mark.parametrize(
    ("I", "J", "K", "share"),
    [
        (8, 128 * 64, 128 * 64, 8 / 128),  # eight rows behind the 128 cycles of each load
        (128, 128 * 64, 128 * 64, 1.0),
        (10**6, 64, 128, 0.5),  # a head of 64: half of the rows of the array hold zeros
        (10**6, 129, 128, 129 / 256),
    ],
)
def test_utilisation_tends_to_its_limit(I: int, J: int, K: int, share: float) -> None:
    assert utilisation(I, J, K, dim=128) == pytest.approx(share, rel=0.01)
    assert utilisation(I, J, K, dim=128) <= share


def test_utilisation_is_the_useful_part_of_what_was_simulated() -> None:
    run = simulate(matrix(9, 5, 3), matrix(5, 7, 4), dim=4)
    assert utilisation(9, 5, 7, dim=4) == pytest.approx(run.share_busy * (5 * 7) / (8 * 8))


def test_arrays_of_numbers() -> None:
    import numpy

    sizes = numpy.array([1, 128, 4096])
    assert cycles(sizes, 256, 256).tolist() == [cycles(int(n), 256, 256) for n in sizes]


@pytest.mark.parametrize(
    ("A", "B", "dim", "words"),
    [
        ([[1, 2]], [[1]], None, "A has 2 columns, B has 1 rows"),
        ([[1, 2], [3]], [[1], [2]], None, "rows of one length"),
        ([[1]], [[1]], 0, "at least one row and one column"),
        ([[1] * 8] * 4096, [[1] * 8] * 8, 128, "cell-cycles"),
    ],
)
def test_errors_say_what_is_wrong(A: list[list[int]], B: list[list[int]], dim: int | None, words: str) -> None:
    with pytest.raises(SizeError, match=words):
        simulate(A, B, dim=dim)
