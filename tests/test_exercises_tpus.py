"""The exercises of How TPUs work: hand-worked answers are right, and mistakes get the diagnosis that fits them."""

from __future__ import annotations

import pytest

import scalebook as sb
from scalebook import exercises

BY_HAND: dict[str, object] = {
    "tpus/peak": 2 * 128 * 128 * 4 * 1.5e9,
    "tpus/read-hbm": 17_179_869_184 / 819e9,
    "tpus/systolic-cycles": 128 + 256 + 127 + 127,
    "tpus/few-rows": {"v5e": 16 / 128, "v6e": 16 / 256},
    "tpus/head-width": {"v5e": "3/4", "v6e": "3/8"},
    "tpus/fp8-cache": 128 * 16 * 128,
    "tpus/gather-ring": 2**30 * 15 / 16 / (2 * 45e9) + 8e-6,
    "tpus/gather-line": 2**30 * 7 / 8 / 45e9 + 7e-6,
    "tpus/exchange": 64 * 2**20 * 16 / 4 / (2 * 45e9) + 8e-6,
    "tpus/bisection": {"v5e": 16 * 50e9, "v5p": 2 * 8 * 12 * 100e9},
    "tpus/load-weights": {"hbm": 140e9 / 64 / 1638e9, "host": 140e9 / 64 / 32e9, "dcn": 140e9 / 64 / 10e9},
    "tpus/across-a-slice": "18 µs",
    "tpus/two-devices": {"devices": 32, "hbm": "96 GiB", "rate": "3.69 TB/s"},
    "tpus/choose-widths": {"D": 4352, "F": 10240},
}


def test_all_are_worked_by_hand() -> None:
    assert list(BY_HAND) == [e.id for e in exercises.chapter("tpus")]


@pytest.mark.parametrize("id", BY_HAND)
def test_hand_worked_answer_is_right(id: str) -> None:
    verdict = sb.check(id, BY_HAND[id])
    assert verdict, str(verdict)


@pytest.mark.parametrize(
    ("id", "answer", "says"),
    [
        ("tpus/peak", "98.3 TFLOPs/s", "two FLOPs"),
        ("tpus/peak", "49 TFLOPs/s", "the chip has several"),
        ("tpus/read-hbm", "16 GB / (819 GB/s)", "1,024³"),
        ("tpus/read-hbm", "168 ms", "Bits?"),
        ("tpus/systolic-cycles", 256, "load, to fill and to drain"),
        ("tpus/systolic-cycles", 510, "loaded first"),
        ("tpus/systolic-cycles", 639, "not in one"),
        ("tpus/systolic-cycles", 640, "dim − 1 below"),
        ("tpus/fp8-cache", "160 KiB", "data alone"),
        ("tpus/fp8-cache", "192 KiB", "whole tiles, of up to eight"),
        ("tpus/fp8-cache", "512 KiB", "at most eight rows"),
        ("tpus/gather-ring", 2**30 * 15 / 16 / 45e9, "both directions"),
        ("tpus/gather-ring", 2**30 * 15 / 16 / (4 * 45e9), "rate of a link is that of one direction"),
        ("tpus/gather-ring", 2**30 / (2 * 45e9), "(k − 1)/k"),
        ("tpus/gather-ring", 2**30 * 15 / 16 / (2 * 50e9), "nominal"),
        ("tpus/gather-ring", 1e9 * 15 / 16 / (2 * 45e9), "GiB or GB"),
        ("tpus/gather-line", 2**30 * 7 / 8 / (2 * 45e9), "too small for wraparound"),
        ("tpus/exchange", 64 * 2**20 * 16 / 4 / 45e9, "both directions"),
        ("tpus/exchange", 64 * 2**20 * 16 / 4 / (4 * 45e9), "one direction"),
        ("tpus/exchange", 2**30 * 15 / 16 / (2 * 45e9), "That is a gather"),
        ("tpus/exchange", 64 * 2**20 / (2 * 45e9), "every link on its way"),
        ("tpus/exchange", 64 * 2**20 * 16 / 4 / (2 * 50e9), "nominal"),
        ("tpus/exchange", 64e6 * 16 / 4 / (2 * 45e9), "MiB or MB"),
        ("tpus/bisection", {"v5e": 1.6e12, "v5p": 9.6e12}, "v5e: Count one direction only, and cut a ring twice but a line once"),
        ("tpus/bisection", {"v5e": 0.8e12, "v5p": 38.4e12}, "v5p: Count one direction only, and cut across the longest"),
        ("tpus/bisection", {"v5e": 0.8e12, "v5p": 25.6e12}, "v5p: Cut across the longest"),
        ("tpus/bisection", {"v5e": 0.8e12, "v5p": 2.4e12}, "v5p: The cut is a plane"),
        ("tpus/bisection", {"v5e": 0.8e12, "v5p": 1.6e12}, "v5p: That is one row of the plane"),
        ("tpus/bisection", {"v5e": 0.8e12, "v5p": 0.2e12}, "v5p: That is one ring"),
        ("tpus/bisection", {"v5e": 0.4e12, "v5p": 19.2e12}, "cut in two places"),
        ("tpus/load-weights", {"hbm": 140e9 / 1638e9, "host": 0.0684, "dcn": 0.219}, "one chip moving the whole model"),
        ("tpus/load-weights", {"hbm": 140e9 / 64 / 1638e9, "host": 0.0684, "dcn": 0.175}, "nominal"),
        ("tpus/across-a-slice", "33 µs", "half-way round"),
        ("tpus/two-devices", {"devices": 16, "hbm": "192 GiB", "rate": "7.38 TB/s"}, "devices: Those are the chips"),
        ("tpus/few-rows", {"v5e": 1, "v6e": 0.125}, "wider than that of v5e"),
        ("tpus/few-rows", {"v5e": 0.125, "v6e": 16 / 526}, "v6e: That is one tile alone"),
        ("tpus/few-rows", {"v5e": 0.125, "v6e": 16 / 65536}, "v6e: Rows of A compare"),
        ("tpus/head-width", {"v5e": 0.375, "v6e": 0.375}, "v5e: The matrix unit of v5e has half"),
        ("tpus/head-width", {"v5e": 0.75, "v6e": 0.375**2}, "v6e: Only one of the two"),
        ("tpus/choose-widths", {"D": 4096, "F": 11008}, "Part of the last tiles is padding"),
        ("tpus/choose-widths", {"D": 4096, "F": 12288}, "too large for the budget"),
        ("tpus/choose-widths", {"D": 11008, "F": 4096}, "at least twice D"),
        ("tpus/choose-widths", {"D": 4352, "F": 10243}, "multiple of 8"),
    ],
)
def test_diagnoses(id: str, answer: object, says: str) -> None:
    verdict = sb.check(id, answer)
    assert verdict.status == "wrong"
    assert says in verdict.diagnosis


def test_the_original_model_loses_a_tenth_of_a_v6e() -> None:
    """F = 11,008 over 8 chips is 1,376: 6 tiles of 256 for 5.375."""
    verdict = sb.check("tpus/choose-widths", {"D": 4096, "F": 11008})
    shares = {row[0]: row[1] for row in verdict.rows}
    assert shares["matrix unit of v6e filled"] == "89.6%"
    assert shares["matrix unit of v5e filled"] == "97.7%"
    assert verdict.rows[0][2].endswith("✓")


@pytest.mark.parametrize("answer", [{"D": 0, "F": 8}, {"D": "1.5", "F": 8}, {"D": 4096}, "many"])
def test_unreadable_proposals(answer: object) -> None:
    assert sb.check("tpus/choose-widths", answer).status == "unreadable"


@pytest.mark.parametrize("exercise", exercises.chapter("tpus"), ids=lambda e: e.id)
def test_what_the_answer_means_is_said_in_a_few_sentences(exercise: exercises.Exercise) -> None:
    text = exercise.meaning
    assert 80 <= len(text) <= 560
    assert text.endswith(".")
    assert "None" not in text
    assert "unknown" not in text


def test_meanings_follow_the_premises() -> None:
    assert "47.7 steps" in exercises.get("tpus/read-hbm").meaning  # 819e9 ÷ 16 GiB
    assert "99.8%" in exercises.get("tpus/peak").meaning  # 196.608 of 197 TFLOPs/s
    assert "1.31\u00a0ms" in exercises.get("tpus/gather-ring").meaning  # 2^30 ÷ 819e9
    assert "1,376" in exercises.get("tpus/choose-widths").meaning
    assert "1.62\u00a0MB" in exercises.get("tpus/across-a-slice").meaning  # 18 µs · 90 GB/s
    assert "3.74 times as long" in exercises.get("tpus/exchange").meaning  # 11.19 ms ÷ 2.991 ms


def test_capacities_are_shown_in_binary() -> None:
    assert "256\u00a0KiB" in sb.check("tpus/fp8-cache", 2**18).message
    assert "96\u00a0GiB" in str(sb.check("tpus/two-devices", {"devices": 32, "hbm": 96 * 2**30, "rate": 3.69e12}))
