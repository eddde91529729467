"""Hops, neighbours and distances of slices, against a breadth-first search over links laid by hand."""

from __future__ import annotations

import itertools
from collections import deque
from statistics import mean

import pytest
from hypothesis import given, settings, strategies as st

import scalebook as sb
from scalebook.errors import TopologyError
from scalebook.routes import Grid, diameter, distances, grid_of, hops, links, mean_hops, neighbours

Place = tuple[int, ...]


def cables(shape: tuple[int, ...], wraps: tuple[bool, ...]) -> set[frozenset[Place]]:
    """Every cable: from each chip to the next one along each axis, and from the last to the first where the axis closes."""
    laid = set()
    for place in itertools.product(*map(range, shape)):
        for axis, n in enumerate(shape):
            following = place[axis] + 1
            if following == n:
                if not wraps[axis]:
                    continue
                following = 0
            other = (*place[:axis], following, *place[axis + 1 :])
            if other != place:
                laid.add(frozenset((place, other)))
    return laid


def search(shape: tuple[int, ...], wraps: tuple[bool, ...], start: Place) -> dict[Place, int]:
    """Hops from one chip to all, by walking along cables."""
    beside: dict[Place, list[Place]] = {}
    for a, b in map(tuple, cables(shape, wraps)):
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    found, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for there in beside.get(here, ()):
            if there not in found:
                found[there] = found[here] + 1
                waiting.append(there)
    return found


GRIDS = st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=3).map(
    lambda axes: Grid(tuple(n for n, _ in axes), tuple(w for _, w in axes))
)


@settings(max_examples=60, deadline=None)
@given(GRIDS, st.data())
def test_hops_and_distances_are_those_of_a_search(grid: Grid, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from(grid.places()))
    found = search(grid.shape, grid.wraparound, start)
    assert dict(zip(grid.places(), distances(grid, start), strict=True)) == found
    assert {p: hops(grid, start, p) for p in grid.places()} == found
    assert set(neighbours(grid, start)) == {p for p, d in found.items() if d == 1}
    assert len(neighbours(grid, start)) == len(set(neighbours(grid, start)))
    others = [d for p, d in found.items() if p != start]
    assert mean_hops(grid, start) == pytest.approx(mean(others) if others else 0)


@settings(max_examples=40, deadline=None)
@given(GRIDS)
def test_diameter_mean_and_cables_are_those_of_all_searches(grid: Grid) -> None:
    every = [d for start in grid.places() for p, d in search(grid.shape, grid.wraparound, start).items() if p != start]
    assert diameter(grid) == max(every, default=0)
    assert mean_hops(grid) == pytest.approx(mean(every) if every else 0)
    assert links(grid) == len(cables(grid.shape, grid.wraparound))


@pytest.mark.parametrize(
    ("spec", "farthest", "cabled"),
    [
        ("v5e:4x4", 6, 24),  # two lines of 4: 3 + 3; 4 rows of 3 cables, and 4 columns
        ("v5e:8x16", 15, 8 * 16 + 16 * 7),  # a line of 8: 7, a ring of 16: 8
        ("v5e:16x16", 16, 512),  # two rings of 16; two cables a chip
        ("v5p:4x4x4", 6, 192),  # three rings of 4; three cables a chip
        ("v5p:2x2x1", 2, 4),
        ("v4:2x2x2", 3, 12),  # the edges of a cube
    ],
)
def test_slices_by_hand(spec: str, farthest: int, cabled: int) -> None:
    assert diameter(spec) == farthest
    assert links(spec) == cabled


def test_wraparound_can_be_compared() -> None:
    slice_ = sb.topology("v5p:4x4x4")
    assert grid_of(slice_).wraparound == (True, True, True)
    assert diameter(grid_of(slice_, wraparound=False)) == 9
    assert diameter(grid_of(slice_, wraparound=(True, False, False))) == 2 + 3 + 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: hops("v5e:4x4", (0, 4), (0, 0)), r"no chip \(0, 4\) in a slice 4x4: its chips are \(0, 0\) to \(3, 3\)"),
        (lambda: neighbours("v5e:4x4", (0,)), r"no chip \(0,\)"),
        (lambda: distances("v5e:4x4", (0, -1)), r"no chip \(0, -1\)"),
        (lambda: diameter("h100:1x8"), "joined by switches"),
        (lambda: Grid((4, 4), (True,)), "per axis"),
        (lambda: Grid((4, 0), (True, True)), "positive size"),
        (lambda: grid_of("v5e:4x4", wraparound=(True,)), "per axis"),
    ],
)
def test_what_cannot_be_asked(call: object, words: str) -> None:
    with pytest.raises(TopologyError, match=words):
        call()  # type: ignore[operator]
