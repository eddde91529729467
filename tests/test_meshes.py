"""Meshes, and how they lie on the links of a machine: placements by hand, and pieces of a link by counting traffic."""

import contextlib
import itertools
import math
import random
import time

import pytest
from hypothesis import given, settings, strategies as st

from scalebook.errors import MeshError, ScalebookError
from scalebook.meshes import mesh
from scalebook.topologies import PhysicalAxis, topology
from scalebook.units import NO_BREAK
from scalebook.wiring import Piece, Placement, _factorings, best_placement, joined, placements, segment


def described(m, axis):
    return m.describe(axis).replace(NO_BREAK, " ")


# ---- pure algebra -------------------------------------------------------------------------------------------------------


def test_a_mesh():
    m = mesh({"X": 4, "data": 2})
    assert m["X"] == m.shape["X"] == 4
    assert (m.axis_names, m.devices, list(m)) == (("X", "data"), 8, ["X", "data"])
    assert list(m.coordinates())[:3] == [(0, 0), (0, 1), (1, 0)]
    assert str(m) == "mesh X=4, data=2"
    assert m == mesh({"X": 4, "data": 2})
    assert hash(m) == hash(mesh({"X": 4, "data": 2}))
    assert m != mesh({"data": 2, "X": 4})  # the order is major to minor
    assert mesh(m) is m
    assert mesh({}).devices == 1
    assert list(mesh({}).coordinates()) == [()]


def test_names_of_groups():
    m = mesh({"X": 4, "Y": 2, "data": 3, "x": 5, "X1": 7})
    assert m.resolve("XY") == ("X", "Y")
    assert m.resolve("X1Y") == ("X1", "Y")
    assert m.resolve("xY") == ("x", "Y")
    assert m.resolve("data") == ("data",)
    assert m.resolve(("data", "X")) == ("data", "X")
    assert m.resolve(()) == ()
    assert m.size("XY") == 8
    for wrong, says in (("XZ", "'Z'"), ("XX", "twice"), ("dta", "did you mean 'data'"), (("X", "Q"), "'Q'")):
        with pytest.raises(MeshError, match=says):
            m.resolve(wrong)
    with pytest.raises(MeshError, match="unknown axis"):
        m["Q"]
    with pytest.raises(MeshError, match="unknown axis"):
        m[0]


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ({"X": 0}, "X=0 is not a positive whole number"),
        ({"X": -2, "Y": 2.0}, "X=-2 is not a positive whole number; Y=2.0 is not"),
        ({"X": True}, "X=True"),
        ({"X": "4"}, "X='4'"),
        ({"2X": 2}, "axis name '2X'"),
        ({"a b": 2, "": 2}, "axis name 'a b' .*axis name ''"),
        ({"é": 2}, "axis name 'é'"),
        ({3: 2}, "axis name 3"),
        ({"X": 2, "Y": 2, "XY": 2}, "'XY' also reads as X, Y"),
        ({"x": 2, "y": 2, "xy": 2}, "'xy' also reads as x, y"),
        ([("X", 2)], "is a mapping"),
        (None, "is a mapping"),
    ],
)
def test_meshes_that_cannot_be(shape, says):
    with pytest.raises(MeshError, match=says):
        mesh(shape)


def test_a_name_that_only_seems_to_have_two_readings():
    assert mesh({"data": 2, "d": 2, "a": 2, "t": 2}).resolve("data") == ("data",)  # d, a, t, a would have a twice


def test_without_a_machine():
    m = mesh({"X": 4})
    for ask in (m.segments, m.is_ring, m.bytes_per_s):
        with pytest.raises(MeshError, match="not laid on a machine"):
            ask("X")
    assert m.describe("X") == "X=4, not laid on a machine"
    with pytest.raises(MeshError, match="give the machine"):
        mesh({"X": 4}, placement={"X": ["ici0"]})


def test_prime_axes():
    m = mesh({"X": 12, "Y": 2, "Z": 1})
    assert dict(m.factored().shape) == {"X0": 2, "X1": 2, "X2": 3, "Y": 2, "Z": 1}
    assert m.sub_axes("X") == ("X0", "X1", "X2")
    assert dict(mesh({"X": 4, "X0": 4}).factored().shape) == {"X_0": 2, "X_1": 2, "X00": 2, "X01": 2}
    assert m.factored().factored() == m.factored()
    on = mesh({"X": 16, "Y": 12}, on="v5p:4x4x12").factored()
    assert list(on.shape.items())[-3:] == [("Y0", 2), ("Y1", 2), ("Y2", 3)]
    assert [s.stride for a in ("Y0", "Y1", "Y2") for s in on.segments(a)] == [6, 3, 1]


# ---- laid on machines: by hand ------------------------------------------------------------------------------------------

LAID = [
    ({"X": 64, "Y": 16}, "v5p:8x8x16", 1, "X: ici0(8) × ici1(8), Y: ici2(16)"),
    ({"Y": 16, "X": 64}, "v5p:8x8x16", 1, "Y: ici2(16), X: ici0(8) × ici1(8)"),
    ({"X": 8, "Y": 8, "Z": 16}, "v5p:8x8x16", 1, "X: ici0(8), Y: ici1(8), Z: ici2(16)"),
    ({"X": 1024}, "v5p:8x8x16", 1, "X: ici0(8) × ici1(8) × ici2(16)"),
    ({"X": 16, "Y": 16}, "v5e:16x16", 1, "X: ici0(16), Y: ici1(16)"),
    ({"X": 1, "Y": 256}, "v5e:16x16", 1, "X: nothing, Y: ici0(16) × ici1(16)"),
    # 32 · 8: X takes a ring and half of the other; X as neighbours (45 GB/s) is better than X as a ring at an eighth of the rate
    ({"X": 32, "Y": 8}, "v5e:16x16", 1, "X: ici0(16) × ici1(2), Y: ici1(8 by 2)"),
    ({"X": 4, "Y": 8}, "v5e:4x8", 1, "X: ici0(4), Y: ici1(8)"),
    ({"X": 8, "Y": 4}, "v5e:4x8", 1, "X: ici1(8), Y: ici0(4)"),
    # the network of slices goes to the first axis, even if another would fit it as a whole
    ({"X": 2, "Y": 256}, "v5e:16x16", 2, "X: dcn(2), Y: ici0(16) × ici1(16)"),
    ({"X": 256, "Y": 2}, "v5e:16x16", 2, "X: dcn(2) × ici0(16) × ici1(8 by 2), Y: ici1(2)"),
    # GPUs: nodes first, the switch of a node last
    ({"X": 16, "Y": 8}, "h100:16x8", 1, "X: network(16), Y: nvlink(8)"),
    ({"X": 8, "Y": 16}, "h100:16x8", 1, "X: network(8 by 2), Y: network(2) × nvlink(8)"),
    ({"X": 32, "Y": 4}, "h100:16x8", 1, "X: network(16) × nvlink(2 by 4), Y: nvlink(4)"),
    # two devices a chip: the last axis has both
    ({"X": 64, "Y": 16}, "7x:8x8x8", 1, "X: ici0(8) × ici1(8), Y: ici2(8) × core(2)"),
    ({"X": 2, "Y": 16}, "7x:2x2x4", 1, "X: ici0(2), Y: ici1(2) × ici2(4) × core(2)"),
]


@pytest.mark.parametrize(("shape", "machine", "slices", "laid"), LAID)
def test_default_placements(shape, machine, slices, laid):
    assert str(mesh(shape, on=topology(machine, num_slices=slices)).placement) == laid


def test_the_links_of_an_axis():
    m = mesh({"X": 64, "Y": 16}, on=topology("v5p:8x8x16"))
    link = m.topology.physical_axes[1]
    assert [(s.physical, s.size, s.kind) for s in m.segments("X")] == [("ici0", 8, "ring"), ("ici1", 8, "ring")]
    assert [(s.physical, s.size, s.kind) for s in m.segments("Y")] == [("ici2", 16, "ring")]
    assert m.is_ring("X")
    assert m.is_ring("XY")
    assert m.bytes_per_s("X") == 2 * link.bytes_per_s
    assert m.bytes_per_s("XY") == 3 * link.bytes_per_s
    assert described(m, "X") == "X=64 on v5p:8x8x16: ring of 8 (ici0) × ring of 8 (ici1), 180 GB/s one way per device"
    assert described(m, "XY").startswith(
        "X=64, Y=16 = 1,024 on v5p:8x8x16: ring of 8 (ici0) × ring of 8 (ici1) × ring of 16 (ici2)"
    )
    lines = mesh({"X": 4, "Y": 8}, on="v5e:4x8")
    assert [(s.physical, s.size, s.kind) for s in lines.segments("XY")] == [("ici0", 4, "line"), ("ici1", 8, "line")]
    assert not lines.is_ring("X")


def test_shared_links():
    m = mesh({"X": 32, "Y": 8}, on="v5e:16x16")
    rate = m.topology.physical_axes[1].bytes_per_s
    hop = m.topology.physical_axes[1].hop_latency_s
    ring, pair = m.segments("X")
    assert (ring.kind, ring.size, ring.bytes_per_s) == ("ring", 16, rate)
    assert (pair.kind, pair.size, pair.bytes_per_s, pair.hop_latency_s) == ("line", 2, rate, hop)
    (y,) = m.segments("Y")
    assert (y.kind, y.size, y.stride, y.bytes_per_s, y.hop_latency_s) == ("ring", 8, 2, rate / 2, 2 * hop)
    assert [(s.kind, s.size) for s in m.segments("XY")] == [("ring", 16), ("ring", 16)]  # together they are whole again
    assert (
        described(m, "Y") == f"Y=8 on v5e:16x16: ring of 8 (every 2nd device of ici1), {rate / 2e9:.3g} GB/s one way per device"
    )
    assert "line of 2 (part of ici1)" in described(m, "X")


def test_machines_that_differ():
    one, two = topology("v5e:16x16"), topology("v5e:16x16", num_slices=2)
    assert mesh({"X": 256}, on=one) == mesh({"X": 256}, on="v5e:16x16")
    assert len({mesh({"X": 256}, on=one), mesh({"X": 256}, on="v5e:16x16"), mesh({"X": 256}), mesh({"X": 512}, on=two)}) == 3
    best, other, *_ = placements({"X": 32, "Y": 8}, one)
    assert mesh({"X": 32, "Y": 8}, on=one) == mesh({"X": 32, "Y": 8}, on=one, placement=best)
    assert mesh({"X": 32, "Y": 8}, on=one) != mesh({"X": 32, "Y": 8}, on=one, placement=other)
    assert described(mesh({"X": 2, "Y": 256}, on=two), "X").startswith("X=2 on 2 slices of v5e:16x16: switch of 2 (dcn")
    assert mesh({"X": 1, "Y": 256}, on=one).describe("X") == "X=1 on v5e:16x16: nothing to cross"
    relaid = mesh(mesh({"X": 16, "Y": 16}, on=one), placement={"X": "ici1", "Y": "ici0"})
    assert (relaid.topology, relaid.segments("X")[0].physical) == (one, "ici1")


def test_a_placement_of_ones_own():
    t = topology("v5p:8x8x16")
    m = mesh({"X": 64, "Y": 16}, on=t, placement={"Y": [("ici0", 4), ("ici1", 4)], "X": [("ici0", 2), ("ici1", 2), "ici2"]})
    # pieces lie outer to inner in the order of the mesh's axes: X has the strided pieces
    assert m.placement["X"] == (Piece("ici0", 2, 4), Piece("ici1", 2, 4), Piece("ici2", 16))
    assert m.placement["Y"] == (Piece("ici0", 4), Piece("ici1", 4))
    m = mesh(
        {"X": 64, "Y": 16}, on=t, placement={"Y": [("ici0", 4, 2), ("ici1", 4, 2)], "X": [("ici0", 2, 1), ("ici1", 2, 1), "ici2"]}
    )
    assert m.placement["X"] == (Piece("ici0", 2), Piece("ici1", 2), Piece("ici2", 16))


@pytest.mark.parametrize(
    ("placement", "says"),
    [
        ({"X": ["ici0", "ici1"]}, "Y=16 the links nothing, 1 devices"),
        ({"X": ["ici0"], "Y": ["ici2"]}, "X=64 the links ici0=8, 8 devices: they must multiply to 64"),
        ({"X": ["ici0", "ici0"], "Y": ["ici2"]}, "uses 8 by 1, 8 by 0 of ici0, which has 8 devices"),
        ({"X": ["ici0", "ici9"], "Y": ["ici2"]}, "did you mean 'ici[0-2]'"),
        ({"Q": ["ici0"]}, "unknown mesh axis in the placement 'Q'"),
        ({"X": [("ici0", 8, 2), "ici1"], "Y": ["ici2"]}, "8 by 2 of ici0, which has 8 devices"),
        ({"X": [("ici0", "8")], "Y": ["ici2"]}, "write a link's name"),
        ({"X": [5], "Y": ["ici2"]}, "write a link's name"),
        (["ici0"], "a placement is a mapping"),
        ({"X": 5}, "the placement of X is 5"),
    ],
)
def test_placements_that_cannot_be(placement, says):
    with pytest.raises(MeshError, match=says):
        mesh({"X": 64, "Y": 16}, on="v5p:8x8x16", placement=placement)


@pytest.mark.parametrize(
    ("shape", "machine", "says"),
    [
        ({"X": 64, "Y": 8}, "v5p:8x8x16", ["X=64 × Y=8 has 512 devices", "v5p:8x8x16 has 1,024", "Make it X=128 or Y=16"]),
        ({"X": 3}, "v5e:4x4", ["X=3 has 3 devices", "not a divisor of 16", "Make it X=16"]),
        ({"X": 3, "Y": 5}, "v5e:4x4", ["X=3 or Y=5: not a divisor of 16", "The nearest that does: {'X': 4, 'Y': 4}"]),
        ({"X": 2048}, "v5p:8x8x16", ["2,048", "Make it X=1024"]),
        ({}, "v5e:4x4", ["no axes has 1 device", "16"]),
    ],
)
def test_wrong_number_of_devices(shape, machine, says):
    with pytest.raises(MeshError) as e:
        mesh(shape, on=machine)
    for text in says:
        assert text in str(e.value)


# ---- pieces of a link, by counting what crosses it ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ring", "line"])
@pytest.mark.parametrize(
    ("n", "size", "stride"), [(16, 8, 2), (16, 2, 8), (16, 4, 1), (16, 2, 4), (8, 8, 1), (12, 3, 4), (12, 2, 2), (12, 6, 1)]
)
def test_pieces_by_traffic(kind, n, size, stride):
    """Every device sends to the next of its piece over neighbour links: the busiest link carries whole rate ÷ rate messages."""
    s = segment(Piece("ici0", size, stride), PhysicalAxis("ici0", n, kind, 1.0, 1.0, 0.5, "test"))
    outermost = size * stride == n
    assert s.kind == (kind if outermost else "line")
    load, hops = dict.fromkeys(range(n), 0), set()
    for device in range(n):
        place = device // stride % size
        if place == size - 1 and s.kind == "line":
            continue  # the end of a line has no next one
        crossed = [(device + i) % n for i in range(stride)]
        if s.kind == "line":
            assert all(link + 1 < n for link in crossed)  # nothing goes round
        hops.add(len(crossed))
        for link in crossed:
            load[link] += 1
    assert 1 / s.bytes_per_s == max(load.values())
    assert {s.hop_latency_s} == hops
    assert s.launch_latency_s == 0.5


def test_unknown_rates_stay_unknown():
    axis = PhysicalAxis("core", 4, "switch", None, 0.0, 0.0, "unknown")
    assert segment(Piece("core", 2, 2), axis).bytes_per_s is None
    assert segment(Piece("core", 2, 2), axis).kind == "switch"
    assert segment(Piece("ici0", 2, 2), PhysicalAxis("ici0", 4, "ring", None, 0.0, 0.0, "unknown")).bytes_per_s is None


def test_pieces_joined():
    ring = PhysicalAxis("ici0", 16, "ring", 80.0, 1.0, 0.0, "test")
    outer, middle, inner = Piece("ici0", 2, 8), Piece("ici0", 4, 2), Piece("ici0", 2, 1)
    sizes = [
        [(s.size, s.stride, s.kind) for s in joined(p, [ring])]
        for p in ([inner, outer, middle], [middle, inner], [outer, inner], [outer, middle])
    ]
    assert sizes == [[(16, 1, "ring")], [(8, 1, "line")], [(2, 8, "ring"), (2, 1, "line")], [(8, 2, "ring")]]


# ---- laws ---------------------------------------------------------------------------------------------------------------

MACHINES = [
    ("v5p:8x8x16", 1),
    ("v5p:4x4x4", 1),
    ("v5e:16x16", 1),
    ("v5e:4x8", 2),
    ("7x:4x4x8", 1),
    ("7x:2x2x1", 1),
    ("h100:16x8", 1),
    ("v5e:16x16", 4),
]


@st.composite
def laid(draw):
    """A machine and a random mesh that fills it: its prime factors dealt to axes."""
    spec, slices = draw(st.sampled_from(MACHINES))
    t = topology(spec, num_slices=slices) if slices > 1 else topology(spec)
    shape, n, p = dict.fromkeys("WXYZ"[: draw(st.integers(1, 4))], 1), t.devices, 2
    while n > 1:
        while n % p == 0:
            shape[draw(st.sampled_from(list(shape)))] *= p
            n //= p
        p += 1
    return shape, t


def physical_coordinates(m, at):
    """Where a device of the mesh stands on each physical axis."""
    where = {p.name: 0 for p in m.topology.physical_axes}
    for axis, i in zip(m.axis_names, at, strict=True):
        for piece in reversed(m.placement[axis]):
            where[piece.physical] += i % piece.size * piece.stride
            i //= piece.size
    return tuple(where.values())


@given(laid())
@settings(max_examples=60, deadline=None)
def test_every_device_once(case):
    shape, t = case
    m = mesh(shape, on=t)
    places = {physical_coordinates(m, at) for at in m.coordinates()}
    assert places == set(itertools.product(*(range(p.size) for p in t.physical_axes)))
    for axis, n in shape.items():
        assert math.prod(s.size for s in m.segments(axis)) == n
    whole = m.segments(m.axis_names)
    assert [(s.physical, s.size, s.kind, s.bytes_per_s) for s in whole] == [
        (p.name, p.size, p.kind, p.bytes_per_s) for p in t.physical_axes if p.size > 1
    ]


@given(laid())
@settings(max_examples=40, deadline=None)
def test_prime_axes_stand_where_the_axis_does(case):
    shape, t = case
    m = mesh(shape, on=t)
    f = m.factored()
    assert all(n in (1, 2, 3, 5, 7) for n in f.shape.values())
    assert [physical_coordinates(m, at) for at in m.coordinates()] == [physical_coordinates(f, at) for at in f.coordinates()]
    for axis in shape:
        assert f.segments(m.sub_axes(axis)) == m.segments(axis)


@given(laid())
@settings(max_examples=40, deadline=None)
def test_all_placements_are_legal_and_different(case):
    shape, t = case
    found = placements(shape, t)
    assert len(found) == len(set(found))
    assert found[0] == mesh(shape, on=t).placement
    for p in found[:20]:
        assert isinstance(p, Placement)
        assert mesh(shape, on=t, placement=p).placement == p  # the check of placements given by hand accepts it
    best = [sum(len(pieces) for _, pieces in p.axes) for p in found]
    if t.physical_axes[0].size == 1 and t.physical_axes[-1].kind != "switch":  # one slice, one device a chip: fewest pieces win
        assert best[0] == min(best)


def brute_force(shape, sizes):
    """Every way to cut the physical axes into prime pieces, outer to inner, and deal these to the mesh axes; pieces joined."""
    found = set()
    primes = [[2] * int(math.log2(n)) for n in sizes]
    slots = [(j, i) for j, ps in enumerate(primes) for i in range(len(ps))]
    for owners in itertools.product(shape, repeat=len(slots)):
        if any(2 ** owners.count(a) != n for a, n in shape.items()):
            continue
        cut = [
            [(a, 2 ** len(list(g))) for a, g in itertools.groupby(o for o, (j, _) in zip(owners, slots, strict=True) if j == k)]
            for k in range(len(sizes))
        ]
        if all(len({a for a, _ in c}) == len(c) for c in cut):  # an axis has one piece of a link
            found.add(tuple(map(tuple, cut)))
    return found


@pytest.mark.parametrize(
    ("shape", "machine"), [({"X": 4, "Y": 8}, "v5e:4x8"), ({"X": 8, "Y": 8}, "v5e:8x8"), ({"X": 2, "Y": 8, "Z": 2}, "v5e:4x8")]
)
def test_all_placements_by_brute_force(shape, machine):
    """With splits unlimited, as many placements as cutting by hand gives, but for exchanges of equal links."""
    t = topology(machine)
    sizes = [p.size for p in t.physical_axes if p.size > 1]
    cuts = brute_force(shape, sizes)
    if sizes[0] == sizes[1]:
        cuts = {min(c, c[::-1]) for c in cuts}
    assert len(placements(shape, t, extra_splits=99)) == len(cuts)


ANYTHING = st.one_of(
    st.none(), st.integers(-3, 40), st.text(max_size=3), st.sampled_from(["ici0", "ici1", "X", "Y"]), st.floats()
)


@given(st.one_of(ANYTHING, st.dictionaries(ANYTHING, ANYTHING, max_size=3)), st.sampled_from([None, "v5e:4x4", "v5e:4x", 5]))
@settings(max_examples=200, deadline=None)
def test_only_named_errors(shape, machine):
    with contextlib.suppress(ScalebookError):
        mesh(shape, on=machine)


ENTRIES = st.one_of(ANYTHING, st.tuples(st.sampled_from(["ici0", "ici1", 3]), ANYTHING), st.lists(ANYTHING, max_size=2))


@given(st.one_of(ANYTHING, st.dictionaries(st.sampled_from("XYQ"), st.one_of(ANYTHING, st.lists(ENTRIES, max_size=3)))))
@settings(max_examples=200, deadline=None)
def test_only_named_errors_of_placements(placement):
    with contextlib.suppress(MeshError):
        mesh({"X": 4, "Y": 4}, on="v5e:4x4", placement=placement)


def test_enumeration_is_quick():
    """Under 0.2 s for four axes on 1,024 chips; here with slack for a busy machine."""
    start = time.process_time()
    found = placements({"p": 4, "q": 4, "r": 4, "s": 16}, topology("v5p:8x8x16"))
    assert time.process_time() - start < 0.8
    assert len(found) > 100


@pytest.mark.parametrize(
    ("spec", "slices", "letters"),
    [("v5e:8x16", 1, 5), ("v5p:4x4x8", 1, 4), ("tpu7x:2x2x4", 2, 5), ("v5e:4x8", 4, 4), ("h100:4x8", 1, 4), ("v3:4x4", 1, 5)],
)
def test_the_best_placement_is_the_first_of_all(spec, slices, letters):
    """Equal axes may be swapped without loss only if the switches and outermost links still go where they should."""
    machine, rng = topology(spec, num_slices=slices), random.Random(spec)
    for _ in range(8):
        shape, left = {}, machine.devices
        for a in "UVWXY"[: letters - 1]:
            shape[a] = rng.choice([d for d in (1, 2, 2, 2, 4, 4) if left % d == 0])
            left //= shape[a]
        shape["Z"] = left
        assert best_placement(shape, machine) == placements(shape, machine, extra_splits=0)[0], shape


def test_many_axes_and_large_numbers_are_quick():
    start = time.process_time()
    laid = mesh(dict.fromkeys("ABCDEFGHIJKL", 2), on="v5p:16x16x16")
    assert [s.physical for a in "AEI" for s in laid.segments(a)] == ["ici0", "ici1", "ici2"]
    assert dict(mesh({"X": 31622777 * 31622743}).factored().shape) == {"X0": 31622743, "X1": 31622777}
    assert mesh({"X": 999999999999989}).factored().axis_names == ("X",)
    with pytest.raises(MeshError, match="nearest that does"):
        mesh({"X": 10**15, "Y": 7}, on=topology("v5e:4x4", num_slices=1024))
    list(_factorings(999999937 * 16, (999999937 * 4, 4)))
    assert time.process_time() - start < 2  # 0.1 s; it was minutes


def test_sizes_of_axes_end_at_10_to_the_15():
    for n in (10**15 + 1, 10**5000):
        with pytest.raises(MeshError, match=r"X=.* is above 10\^15, the largest size of an axis"):
            mesh({"X": n})
    assert mesh({"X": 10**15}).devices == 10**15


def test_a_mesh_without_axes_on_a_machine_says_what_to_do():
    with pytest.raises(MeshError, match=r"with no axes has 1 device and v5e:4x4 has 16.*Name the axes, such as \{'X': 16\}"):
        mesh({}, on="v5e:4x4")
