"""The exercises of Transformer math, worked out by hand with the sizes that their statements give."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

import scalebook as sb
from scalebook import exercises
from scalebook.exercises import transformers_values as v
from scalebook.exercises.composed import Function

LAYER = 2 * 8192**2 + 2 * 8192 * 1024 + 3 * 8192 * 28672  # parameters of the matrices of one layer of Llama 3.1 70B
PER_TOKEN = 6 * (80 * LAYER + 8192 * 128256) + 6 * 80 * 8192 * 16385  # FLOPs of training it, sequences of 16,384
SIX_N = 6 * 70_553_706_496
EXPERT = 24 * 3 * 3072 * 4096  # one expert in all layers
SHARED = 24 * (3072 * (2 * 3072 + 2 * 1024 + 16 + 2)) + 2 * 64000 * 3072 + 3072


def my_flops(L: int, D: int, F: int, N: int, K: int, H: int, V: int, B: int, T: int) -> int:
    """Token by token, as one would at a desk."""
    total = 0
    for t in range(1, T + 1) if T <= 32 else ():
        total += 2 * (L * (D * N * H + D * K * H + D * K * H + N * H * D + D * F + D * F + F * D) + D * V)
        total += L * N * (2 * H * t + 2 * t * H)
    if not total:
        total = T * 2 * (L * (2 * D * H * (N + K) + 3 * D * F) + D * V) + L * N * 4 * H * (T * T + T) // 2
    return B * total * 3


BY_HAND: dict[str, Any] = {
    "transformers/gated-params": 22 * (2 * 2048**2 + 2 * 2048 * 256 + 3 * 2048 * 5632 + 2 * 2048) + 2 * 32000 * 2048 + 2048,
    "transformers/kv-bytes": "40 GiB",
    "transformers/token-flops": {"flops": PER_TOKEN, "ratio": PER_TOKEN / SIX_N},
    "transformers/equal-length": 2 * 8192 + 2 * 1024 + 3 * 28672 - 1,
    "transformers/largest-batch": 64,
    "transformers/active-params": {"total": SHARED + 16 * EXPERT, "active": SHARED + 4 * EXPERT},
    "transformers/decode-intensity": {"grouped": 16, "latent": 64 * (576 + 512) / 576},
    "transformers/latent-bytes": {"token": 60 * 576 * 2, "device": 69_120},
    "transformers/windows": 18 * 2048 * (65536 + 128),
    "transformers/lost-field": "num_key_value_heads",
    "transformers/training-state": {"whole": 16 * 70e9, "moments": 4 * 70e9 + 12 * 70e9 / 64, "all": 16 * 70e9 / 64},
    "transformers/my-flops": my_flops,
    "transformers/choose-a-shape": {"L": 29, "D": 4096, "F": 16384, "N": 64, "K": 8, "H": 64},
}


def test_every_exercise_is_worked_by_hand() -> None:
    assert [e.id for e in exercises.chapter("transformers")] == list(BY_HAND)


@pytest.mark.parametrize("id", BY_HAND)
def test_hand_worked_answer_is_right(id: str) -> None:
    verdict = sb.check(id, BY_HAND[id])
    assert verdict, str(verdict)


@pytest.mark.parametrize("exercise", exercises.chapter("transformers"), ids=lambda e: e.id)
def test_what_the_answer_means_is_said_in_a_few_sentences(exercise: exercises.Exercise) -> None:
    assert 80 <= len(exercise.meaning) <= 560 and exercise.meaning.endswith(".")


def test_the_sizes_are_those_of_real_models() -> None:
    for id, name in (
        ("gated-params", "tinyllama-v1.1"),
        ("token-flops", "llama-3.1-70b"),
        ("largest-batch", "llama-3-8b"),
    ):
        dims = sb.model(name).dims._asdict()
        given = exercises.get(f"transformers/{id}").given
        assert {letter: given[letter] for letter in dims} == dims
    mixtral = v.mixture(**sb.model("mixtral-8x7b-v0.1").dims._asdict(), E=8, k=2)
    assert (mixtral.total_params, mixtral.active_params()) == (46_702_792_704, 12_879_925_248)
    assert sb.check("transformers/kv-bytes", sb.model("llama-3.1-70b").kv_bytes(131072))
    assert sb.check("transformers/windows", sb.model("gpt-oss-120b").kv_bytes(65536))
    assert [v.latent_bytes(61, 128, 512, 64, n) for n in (1, 8)] == [sb.model("deepseek-v3").kv_bytes(1, tp=n) for n in (1, 8)]


@pytest.mark.parametrize(
    ("id", "answer", "says"),
    [
        ("gated-params", 1_100_048_384 - 45 * 2048, "Only the norms"),
        ("gated-params", 1_100_048_384 - 22 * 2048 * 5632, "three matrices"),
        ("kv-bytes", "320 GiB", "every query head"),
        ("kv-bytes", "20 GiB", "both keys and values"),
        ("token-flops", {"flops": SIX_N, "ratio": 1.137}, "looked up"),
        ("token-flops", {"flops": PER_TOKEN + 6 * 80 * 8192 * 16383, "ratio": 1.137}, "every pair"),
        ("token-flops", {"flops": PER_TOKEN, "ratio": 1 / 1.137}, "Upside down"),
        ("equal-length", 52224, "without the mask"),
        ("equal-length", 12 * 8192, "Take these sizes"),
        ("largest-batch", 79, "The weights lie in HBM"),
        ("largest-batch", 16, "every query head"),
        ("largest-batch", 65, "Round down"),
        ("active-params", {"total": 16 * (SHARED - 24 * 3072 * 16 + EXPERT), "active": SHARED + 4 * EXPERT}, "whole models"),
        ("active-params", {"total": SHARED + 16 * EXPERT, "active": (SHARED + 16 * EXPERT) / 4}, "Only the experts"),
        ("active-params", {"total": SHARED + 16 * EXPERT, "active": SHARED + 4 * EXPERT - 64000 * 3072}, "one of the conventions"),
        ("decode-intensity", {"grouped": 64, "latent": 64}, "two products"),
        ("decode-intensity", {"grouped": 16, "latent": 128}, "not its part for positions"),
        ("latent-bytes", {"token": 2 * 60 * 512 * 2, "device": 69_120}, "kept once"),
        ("latent-bytes", {"token": 69_120, "device": 8640}, "no heads that could be split"),
        ("windows", "4.5 GiB", "Half of the layers"),
        ("windows", "2.25 GiB", "a little as well"),
        ("training-state", {"whole": 16 * 70e9, "moments": 16 * 70e9 / 64, "all": 16 * 70e9 / 64}, "shares out everything"),
        ("my-flops", lambda *g: my_flops(*g) // 3, "forward pass"),
    ],
)  # fmt: skip
def test_what_people_really_get_wrong_is_named(id: str, answer: object, says: str) -> None:
    verdict = sb.check(f"transformers/{id}", answer)
    assert verdict.status == "wrong" and says in verdict.diagnosis, str(verdict)


def test_known_wrong_functions_are_apart_and_diagnosed() -> None:
    exercise = exercises.get("transformers/my-flops")
    question = exercise.question
    assert isinstance(question, Function)
    results = {w.diagnosis: [float(w.function(*case)) for case in question.cases] for w in question.wrong}
    right = [float(question.spec(*case)) for case in question.cases]
    for a, b in combinations((right, *results.values()), 2):
        assert any(abs(x - y) > 2 * question.tolerance * y for x, y in zip(a, b, strict=True))
    for wrong in question.wrong:
        assert exercise.grade(wrong.function).diagnosis == wrong.diagnosis


def test_each_field_that_could_be_lost_has_its_own_answer() -> None:
    exercise = exercises.get("transformers/lost-field")
    assert v.without("num_key_value_heads") - 8_030_261_248 == 2 * 32 * 4096 * (32 - 8) * 128 == 805_306_368
    for field in v.LOST[1:]:
        verdict = exercise.grade(field)
        stays = v.without(field) == 8_030_261_248
        assert not verdict and ("stays the same" in verdict.diagnosis) == stays
    assert "805,306,368 parameters too many" in exercise.meaning and "4 times too large" in exercise.meaning
    assert exercise.variant(counted=8_030_261_249).grade("head_dim").status == "unreadable"
    assert exercise.variant(published=1).grade("head_dim").status == "unreadable"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"F": 14336}, "too small for the budget"),
        ({"F": 18432}, "too large for the budget"),
        ({"K": 18}, "smaller?"),
        ({"L": 96, "D": 2240, "F": 8960}, "too deep"),
        ({"L": 12, "D": 6272, "F": 25088, "N": 104, "K": 13}, "too shallow"),
        ({"F": 20032}, "out of the usual range"),
        ({"F": 17700}, "Matrix units pad"),
        ({"N": 36}, "narrower than the model"),
        ({"K": 8}, "on one key head"),
        ({"K": 7}, "N must be a multiple of K"),
    ],
)
def test_a_shape_that_fails_says_why(change: dict[str, int], says: str) -> None:
    verdict = sb.check("transformers/choose-a-shape", {**v.GOOD, **change})
    assert verdict.status == "wrong" and says in verdict.diagnosis, str(verdict)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (3, "of type int"),
        ((1, 2, 3), "3 answered of 6"),
        ({**v.GOOD, "K": 0}, "K is a whole number"),
        ({**v.GOOD, "K": 8.5}, "K is a whole number"),
        ({**v.GOOD, "D": "4 GB"}, "D is a whole number"),
    ],
)
def test_a_shape_that_cannot_be_read_says_why(answer: object, says: str) -> None:
    verdict = sb.check("transformers/choose-a-shape", answer)
    assert verdict.status == "unreadable" and says in verdict.message


def test_the_best_known_shape_is_the_best_of_its_neighbours() -> None:
    given = exercises.get("transformers/choose-a-shape").given
    best = sb.check("transformers/choose-a-shape", v.GOOD)
    assert best and best.ratio == 1
    found = [
        v.shaped({"L": L, "D": D, "F": F, "N": 8 * K, "K": K, "H": 64}, **given)
        for L in range(22, 27)
        for K in range(8, 11)
        for D in range(4096, 4673, 64)
        for F in range(4 * D - 2048, 4 * D + 1, 64)
    ]
    assert max(score.value for score in found if score.passed) == v.best_shape(**given)
