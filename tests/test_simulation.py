"""The step-by-step simulation: right data everywhere, links never overfull, and exactly the closed form's time."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from scalebook import simulation
from scalebook.collectives import algorithms, received
from scalebook.errors import MeshError, ScalebookError, SizeError
from scalebook.schedules import KINDS, pace, position_at, profile
from scalebook.simulation import Piece, Simulation, simulate
from scalebook.transfers import Transfer, moves
from scalebook.wiring import Segment

V = 1e9
SHAPES = ("ring", "line", "switch")


def seg(kind: str, size: int, name: str = "a", rate: float | None = 45e9, hop: float = 1e-6) -> Segment:
    return Segment(name, size, kind, rate, hop, 1e-5)


def every_algorithm_agrees(kind: str, segments: tuple[Segment, ...]) -> list[Simulation]:
    """Simulation and closed form give the same seconds; `simulate` itself has checked what the devices hold."""
    found = []
    for price in algorithms(kind, segments):
        s = simulate(kind, segments, V, price.algorithm)
        assert s.seconds == pytest.approx(price.seconds(V), rel=1e-12)
        assert s.seconds == pytest.approx(
            sum(t.seconds for t in s.steps) + s.launch * (2 if kind == "all-reduce" else 1), rel=1e-12
        )
        within_capacity(s)
        found.append(s)
    return found


def within_capacity(s: Simulation) -> None:
    """What a link carries in a step fits in the step's time after the hop; on rings and lines only neighbours are linked."""
    for step in s.steps:
        loads: dict[tuple[int, int, str], float] = defaultdict(float)
        for t in step.transfers:
            road = s.segments[t.segment]
            away = [(b - a, n) for n, (a, b) in enumerate(zip(s.devices[t.src], s.devices[t.dst], strict=True)) if a != b]
            assert t.segment in [n for _, n in away]
            if road.kind == "switch":
                loads[t.segment, t.src, "out"] += t.bytes
                loads[t.segment, t.dst, "in"] += t.bytes
            else:
                ((distance, _),) = away
                onward = {"+": 1, "-": -1}[t.direction]
                assert distance == onward or (road.kind == "ring" and (distance - onward) % road.size == 0)
                loads[t.segment, t.src, t.direction] += t.bytes
            assert step.hop >= (road.hop_latency_s or 0.0)
        for (segment, _, _), load in loads.items():
            assert load <= (step.seconds - step.hop) * s.segments[segment].bytes_per_s * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_one_segment_of_every_size(kind: str, shape: str) -> None:
    for k in [*range(1, 10), 12, 15, 16]:
        every_algorithm_agrees(kind, (seg(shape, k),))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shapes", list(itertools.product(SHAPES, repeat=2)), ids="-".join)
def test_two_segments(kind: str, shapes: tuple[str, str]) -> None:
    """Equal and unequal sizes, odd ones, size 2, unequal rates and hops."""
    for outer, inner in [(2, 2), (2, 3), (3, 2), (4, 4), (5, 3), (2, 8)]:
        every_algorithm_agrees(kind, (seg(shapes[0], outer, "a"), seg(shapes[1], inner, "b", 90e9, 2e-6)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "segments",
    [
        (seg("ring", 3, "a"), seg("ring", 3, "b"), seg("ring", 4, "c")),
        (seg("ring", 3, "a"), seg("line", 4, "b"), seg("line", 2, "c", 90e9)),
        (seg("switch", 3, "dcn", 4e9), seg("ring", 4, "a"), seg("line", 3, "b")),
        (seg("switch", 2, "dcn", 4e9), seg("line", 2, "a"), seg("ring", 4, "b"), seg("switch", 2, "core", 400e9)),
        (seg("switch", 3, "network", 47e9, 3e-6), seg("switch", 8, "nvlink", 360e9)),
        (seg("ring", 4, "ici0", 20e9), seg("line", 2, "ici0"), seg("line", 3, "ici1")),
    ],
    ids=["torus", "mixed", "slices", "slices and cores", "nodes", "one axis twice"],
)
def test_several_segments(kind: str, segments: tuple[Segment, ...]) -> None:
    every_algorithm_agrees(kind, segments)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.lists(
        st.tuples(
            st.integers(1, 6), st.sampled_from(SHAPES), st.sampled_from([4e9, 45e9, 90e9]), st.sampled_from([0.0, 1e-6, 5e-6])
        ),
        min_size=1,
        max_size=3,
    ).filter(lambda found: math.prod(size for size, *_ in found) <= 40),
)
def test_any_segments(kind: str, found: list[tuple[int, str, float, float]]) -> None:
    segments = tuple(Segment(f"p{i}", size, shape, rate, hop, 1e-5) for i, (size, shape, rate, hop) in enumerate(found))
    every_algorithm_agrees(kind, segments)


def test_an_all_to_all_on_a_line_reaches_its_bisection_bound() -> None:
    """⌊k/2⌋⌈k/2⌉ messages must cross the middle link one way, and no message can take fewer than its distance in steps."""
    for k in [*range(2, 17), 32]:
        s = simulate("all-to-all", (seg("line", k, rate=1.0, hop=0.0),), float(k * k))
        assert len(s.steps) == k - 1
        assert sum(step.seconds for step in s.steps) == pytest.approx((k // 2) * (k - k // 2), rel=1e-12)


@pytest.mark.parametrize("segments", [(seg("ring", 6),), (seg("ring", 4, "a"), seg("line", 3, "b"))], ids=["ring", "torus"])
def test_the_transpose_of_a_gather_is_a_scatter(segments: tuple[Segment, ...]) -> None:
    """Read backwards, each transfer the other way round, an all-gather is a reduce-scatter, step for step as long."""
    gather, scatter = simulate("all-gather", segments, V), simulate("reduce-scatter", segments, V)
    assert gather.seconds == pytest.approx(scatter.seconds, rel=1e-15)
    assert [s.seconds for s in gather.steps] == [s.seconds for s in reversed(scatter.steps)]
    for there, back in zip(gather.steps, reversed(scatter.steps), strict=True):
        assert {(t.src, t.dst, t.blocks, t.lo) for t in there.transfers} == {
            (t.dst, t.src, t.blocks, t.lo) for t in back.transfers
        }


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce"])
@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_that_arrive(kind: str, shape: str) -> None:
    """Exactly what `received` says, on every device; on a line, reducing brings the inner devices more, and it is the mean."""
    for segments in ((seg(shape, 5),), (seg(shape, 4, "a"), seg(shape, 3, "b"))):
        k = math.prod(s.size for s in segments)
        for price in algorithms(kind, segments):
            s = simulate(kind, segments, V, price.algorithm)
            arrived = [s.received(d) for d in range(k)]
            assert sum(arrived) / k == pytest.approx(received(kind, k) * V, rel=1e-12)
            if shape != "line" or kind == "all-gather":
                assert arrived == pytest.approx([received(kind, k) * V] * k, rel=1e-12)


def test_bytes_that_arrive_in_an_all_to_all() -> None:
    """On a switch what each device must receive; on a ring of 8 also what it passes on: mean distance 16/7 of 7 messages."""
    assert simulate("all-to-all", (seg("switch", 8),), V).received(3) == pytest.approx(received("all-to-all", 8) * V)
    assert simulate("all-to-all", (seg("ring", 8),), V).received(3) == pytest.approx(16 / 64 * V)
    assert simulate("permute", (seg("ring", 8),), V).received(3) == pytest.approx(received("permute", 8) * V)


def test_a_ring_of_eight_step_by_step() -> None:
    """What the animation shows: three whole shards from each side, then half of the farthest from each."""
    s = simulate("all-gather", (seg("ring", 8, hop=1e-6),), 8 * 45e6)
    assert s.devices == tuple((i,) for i in range(8))
    assert [step.start for step in s.steps] == pytest.approx([1e-5, 1.011e-3, 2.012e-3, 3.013e-3])
    assert [len(step.transfers) for step in s.steps] == [16] * 4
    assert len(s.links) == 16
    into = [(t.src, t.label) for step in s.steps for t in step.transfers if t.dst == 0]
    assert into == [(1, "1"), (7, "7"), (1, "2"), (7, "6"), (1, "3"), (7, "5"), (1, "4 [1/2–1]"), (7, "4 [0–1/2]")]
    whole = (Fraction(0), Fraction(1))
    assert s.holdings(0)[3] == {3: (Piece(*whole, (3,)),)}
    assert set(s.holdings(1)[3]) == {2, 3, 4}
    assert s.holdings(4)[3] == {b: (Piece(*whole, (b,)),) for b in range(8)}
    assert "4 steps" in str(s)
    assert len(s.table()) == 5


def test_partial_sums_on_their_way() -> None:
    """Reduce-scatter on a line of 3: the ends' data reach the middle device's sum, and each sum has everyone's data once."""
    s = simulate("reduce-scatter", (seg("line", 3),), V)
    assert {b: p[0].of for b, p in s.holdings(0)[0].items()} == {0: (0,), 1: (0,), 2: (0,)}
    assert {b: p[0].of for b, p in s.holdings(1)[1].items()} == {0: (1, 2), 1: (1,), 2: (0, 1)}
    assert [{b: p[0].of for b, p in held.items()} for held in s.holdings(2).values()] == [{i: (0, 1, 2)} for i in range(3)]


def test_messages_wait_for_the_farthest() -> None:
    """On a line of 4 to the right: 0→3 leaves first, 0→1 last."""
    s = simulate("all-to-all", (seg("line", 4),), V)
    leaving = [[t.label for t in step.transfers if t.src == 0] for step in s.steps]
    assert leaving == [["0→3"], ["0→2"], ["0→1"]]
    middle = [[t.label for t in step.transfers if (t.src, t.dst) == (1, 2)] for step in s.steps]
    assert [len(m) for m in middle] == [1, 2, 1]


def test_lanes_keep_step() -> None:
    """A ring of 16 beside one of 8: the shorter moves half a shard a step, so that both end together in 8 steps."""
    shares = pace([profile("all-gather", "ring", 16), profile("all-gather", "ring", 8)])
    assert shares == [Fraction(2 * n, 15) for n in range(1, 8)] + [Fraction(1)]


def walked(lanes: list[list[tuple[Fraction, Fraction]]]) -> list[Fraction]:
    """`pace` found slowly: each lane is walked from its start, once to the share and once one length further."""
    shares = [Fraction(0)]
    while shares[-1] < 1:
        reached = []
        for lane in lanes:
            total, done, position = sum(load for _, load in lane), Fraction(0), position_at(lane, shares[-1]) + 1
            for length, load in lane:
                covered = min(length, max(Fraction(0), position))
                done, position = done + load * covered / length, position - length
            reached.append(done / total)
        shares.append(min(reached))
    return shares[1:]


@pytest.mark.parametrize("kind", ["all-gather", "all-to-all"])
@given(st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(2, 17)), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_common_steps_are_those_of_a_walk(kind: str, shapes: list[tuple[str, int]]) -> None:
    lanes = [profile(kind, shape, k) for shape, k in shapes]
    assert pace(lanes) == walked(lanes)


def test_the_cheapest_algorithm_is_executed() -> None:
    nodes = (seg("switch", 4, "network", 47e9, 3e-6), seg("switch", 4, "nvlink", 360e9))
    assert simulate("all-gather", nodes, 1e3).algorithm == "sequential"
    assert simulate("all-gather", nodes, 1e10).algorithm == "flat ring"


def test_a_faulty_schedule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks can fail: a step left out, or one done twice, or a shard sent before it has arrived."""
    good = simulation.schedule
    for spoil in (lambda steps: steps[:-1], lambda steps: [*steps, steps[-1]], lambda steps: steps[::-1]):
        for kind in ("all-gather", "reduce-scatter", "all-to-all"):
            monkeypatch.setattr(simulation, "schedule", lambda *args, spoil=spoil: iter(spoil(list(good(*args)))))
            with pytest.raises(AssertionError, match="a fault in the schedule"):
                simulate(kind, (seg("ring", 5),), V)


def test_a_port_counts_what_leaves_and_what_arrives() -> None:
    """Two devices that send to one third at once share its port in; on a ring, two directions are two links."""
    whole = (Fraction(0), Fraction(1))
    to_2 = [Transfer(src, 2, (src,), *whole, 10.0, 0, "") for src in (0, 1)]
    assert simulation._loads((seg("switch", 4),), to_2) == {(0, 0, "out"): 10, (0, 1, "out"): 10, (0, 2, "in"): 20}
    around = [Transfer(0, 1, (0,), *whole, 10.0, 0, "+"), Transfer(0, 3, (0,), *whole, 10.0, 0, "-")]
    assert simulation._loads((seg("ring", 4),), around) == {(0, 0, "+"): 10, (0, 0, "-"): 10}


def test_moves_are_as_many_as_the_messages_distances() -> None:
    for k in range(2, 12):
        carried = sum(m.scale for step in moves("all-to-all", "line", k) for m in step)
        assert carried == sum(abs(a - b) for a, b in itertools.product(range(k), repeat=2))
        carried = sum(m.scale for step in moves("all-to-all", "ring", k) for m in step)
        assert carried == sum(min((a - b) % k, (b - a) % k) for a, b in itertools.product(range(k), repeat=2))


def test_mistakes_are_named() -> None:
    ring = (seg("ring", 4),)
    with pytest.raises(SizeError, match="at most 512 devices; 1024"):
        simulate("all-gather", (seg("ring", 32, "a"), seg("ring", 32, "b")), V)
    with pytest.raises(MeshError, match="the rate of core has no source"):
        simulate("all-gather", (*ring, seg("switch", 2, "core", None)), V)
    with pytest.raises(ScalebookError, match="unknown collective 'gather'"):
        simulate("gather", ring, V)
    with pytest.raises(ScalebookError, match="unknown algorithm for all-gather over 1 segment 'rings'; did you mean 'ring'"):
        simulate("all-gather", ring, V, "rings")
    with pytest.raises(SizeError, match="finite"):
        simulate("all-gather", ring, -1)
    with pytest.raises(ScalebookError, match=r"has 2 steps; holdings\(3\)"):
        simulate("all-gather", ring, V).holdings(3)
