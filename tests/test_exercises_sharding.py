"""The exercises of Sharded matrix multiplication, worked out by hand with a v5e's 45 GB/s a link and 1 µs a hop."""

from __future__ import annotations

import pytest

import scalebook as sb
from scalebook import exercises
from scalebook.exercises import sharding_meaning

V16, V96 = 16 * 2**20, 96 * 2**20

BY_HAND = {
    "sharding/gathered-bytes": 2 * 8192 * 28672 * 15 / 16,
    "sharding/partial-sums": {"whole": 2 * (2 * 4096 * 8192) * 15 / 16, "split": 2 * 4096 * 8192 * 15 / 16},
    "sharding/ring-or-line": {"ring": 8e-6 + V16 * 15 / 16 / 90e9, "line": 7e-6 + V16 * 7 / 8 / 45e9},
    "sharding/turning-point": 4e-6 * 180e9 * 8 / 7,
    "sharding/re-deal": 8e-6 + 2 * 4096**2 / 8 / 45e9,
    "sharding/two-rings": 16e-6 + V96 * 255 / 256 / 180e9,
    "sharding/which-operand": {"few": "A", "many": "B"},
    "sharding/backward": {"dIn": "all-gather", "dW": "reduce-scatter"},
    "sharding/my-all-gather": lambda n, k, w, hop: (k - k % 2) / 2 * hop + (n - n / k) / w / 2,
    "sharding/weights-stay": 3010,
    "sharding/choose-layouts": "In[T_X, D_Y] * W[D, F_Y] -> Out[T_X, F_Y]",
}


def test_every_exercise_is_worked_by_hand() -> None:
    assert [e.id for e in exercises.chapter("sharding")] == list(BY_HAND)


@pytest.mark.parametrize("id", BY_HAND)
def test_hand_worked_answer_is_right(id: str) -> None:
    verdict = sb.check(id, BY_HAND[id])
    assert verdict, str(verdict)


@pytest.mark.parametrize("exercise", exercises.chapter("sharding"), ids=lambda e: e.id)
def test_what_the_answer_means_is_said_in_a_few_sentences(exercise: exercises.Exercise) -> None:
    assert 80 <= len(exercise.meaning) <= 560 and exercise.meaning.endswith(".")


def test_link_and_hop_are_those_of_the_catalogue() -> None:
    for m, axis, kind in ((sharding_meaning.pod(), "X", "ring"), (sharding_meaning.line(), "Y", "line")):
        (segment,) = m.segments(axis)
        assert (segment.bytes_per_s, segment.hop_latency_s, segment.launch_latency_s) == (
            sharding_meaning.LINK,
            sharding_meaning.HOP,
            0,
        )
        assert segment.kind == kind


def test_the_turn_is_where_the_two_plans_take_equally_long() -> None:
    """Weights stay: re-deal In over both axes, gather it over Y, scatter H over X. Weights move: gather In over Y, W over X."""
    D, F, pod = 4096, 14336, sharding_meaning.pod()

    def stay(T: int) -> float:
        In, H = 2 * T * D, 2 * T * F
        return (
            sb.all_to_all(In, pod, "XY").seconds
            + sb.all_gather(In / 16, pod, "Y").seconds
            + sb.reduce_scatter(H / 16, pod, "X").seconds
        )

    def move(T: int) -> float:
        return sb.all_gather(2 * T * D / 16, pod, "Y").seconds + sb.all_gather(2 * D * F / 16, pod, "X").seconds

    T = sharding_meaning.turn(D, F)
    assert stay(T) >= move(T) and stay(T - 256) < move(T - 256)
    exact = sharding_meaning.meeting(D, F)
    assert T - 256 < exact <= T and stay(exact) == pytest.approx(move(exact), rel=1e-9)


def test_by_their_bytes_alone_the_plans_meet_at_a_fixed_share_of_D_and_hops_take_it_lower() -> None:
    """Per row of In an all-to-all over two rings of 16 takes a share of the scatter of H that D, F and the link do not change."""
    for D, F in ((8192, 28672), (4096, 14336)):
        pod = sharding_meaning.pod()
        redealt, summed = sb.all_to_all(2 * D, pod, "XY"), sb.reduce_scatter(2 * F / 16, pod, "X")
        per_row = (redealt.seconds - redealt.latency) / (summed.seconds - summed.latency)
        assert sharding_meaning.meeting(D, F, hops=False) == pytest.approx(D / (1 + per_row), rel=1e-9)
        assert sharding_meaning.meeting(D, F) < sharding_meaning.meeting(D, F, hops=False) < D
        assert sharding_meaning.meeting(D, F, together=True) < sharding_meaning.meeting(D, F)


@pytest.mark.parametrize(
    ("id", "answer", "says"),
    [
        ("partial-sums", {"whole": 125829120, "split": 2 * 4096 * 8192 / 16 * 15 / 16}, "from each of the others"),
        ("partial-sums", {"whole": 125829120, "split": 2 * 4096 * 8192 * 15}, "whole arrays"),
        ("ring-or-line", {"ring": V16 * 15 / 16 / 90e9, "line": V16 * 7 / 8 / 45e9}, "line: That is the time for the bytes"),
        ("ring-or-line", {"ring": V16 * 15 / 16 / 45e9, "line": 4e-6 + V16 * 7 / 8 / 45e9}, "seven hops"),
        ("two-rings", V96 * 255 / 256 / 180e9, "add the hops"),
        ("two-rings", 8e-6 + V96 * 255 / 256 / 180e9, "the hops of one axis"),
        ("re-deal", 2 * 4096**2 / 8 / 45e9, "add the hops"),
        ("turning-point", 4e-6 * 180e9, "a piece already"),
        ("weights-stay", 3806, "Count the hops"),
        ("weights-stay", 3700, "Count the hops"),
        ("weights-stay", 2063, "one after another"),
        ("backward", {"dIn": "all-gather", "dW": "all-gather"}, "larger than the sums"),
        ("my-all-gather", lambda n, k, w, hop: (k - 1) * hop + n * (k - 1) / k / w, "That is the line"),
        ("my-all-gather", lambda n, k, w, hop: -(-k // 2) * hop + n * (k - 1) / k / 2 / w, "round down"),
        ("my-all-gather", lambda n, k, w, hop: k // 2 * hop + n * (k - 1) / 2 / w, "k − 1 whole arrays"),
    ],
)
def test_what_people_really_get_wrong_is_named(id: str, answer: object, says: str) -> None:
    verdict = sb.check(f"sharding/{id}", answer)
    assert not verdict and says in verdict.diagnosis, str(verdict)


def test_without_the_library_any_first_size_that_it_can_split_is_right_too() -> None:
    assert sb.check("sharding/weights-stay", 3072)


@pytest.mark.parametrize("wrong", [1 / 8, 8])
def test_a_factor_of_eight_that_is_no_mistake_of_units_is_not_called_one(wrong: float) -> None:
    right = 2 * 4096 * 8192 * 7 / 8
    verdict = exercises.get("sharding/partial-sums").variant(X=8).grade({"whole": 2 * right, "split": wrong * right})
    assert not verdict and "bits" not in verdict.diagnosis


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("In[T_X, D] * W[D, F_Y] -> Out[T_X, F_Y]", "In[T_X, D] is too large"),
        ("In[T_XY, D] * W[D_X, F_Y] -> Out[T_XY, F]", "The network binds: "),
    ],
)
def test_an_open_answer_that_fails_says_why(answer: str, says: str) -> None:
    verdict = sb.check("sharding/choose-layouts", answer)
    assert verdict.status == "wrong" and says in verdict.diagnosis


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (3, "of type int"),
        ("x" * 300, "300 characters"),
        ("A[T, D] * W[D, F] -> Out[T, K]", "is in neither"),
        ("A[I, J] * W[J, K] -> Out[I, K]", "with subscripts of your choice"),
        ("In[T, D_X] * W[D_X, F] -> Out[T, F]{U_X}", "no sum is left pending"),
        ("In[T_Z, D] * W[D, F] -> Out[T, F]", "unknown mesh axis"),
        ("In[T, D", "never closed"),
    ],
)
def test_an_open_answer_that_cannot_be_read_says_why(answer: object, says: str) -> None:
    verdict = sb.check("sharding/choose-layouts", answer)
    assert verdict.status == "unreadable" and says in verdict.message


def test_any_layouts_that_do_the_job_are_right() -> None:
    best = sb.check("sharding/choose-layouts", "In[T_XY, D] * W[D, F_Y] -> Out[T_X, F_Y]")
    other = sb.check("sharding/choose-layouts", "In[T, D_XY] * W[D, F_X] -> Out[T_Y, F_X]")
    assert best and best.ratio == 1
    assert other and other.ratio is not None and 0.75 < other.ratio < 0.8
