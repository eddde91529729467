"""What each device holds: blocks tile the array, copies and bytes add up, and sizes that do not fit are refused by name."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from scalebook.errors import NotationError, SizeError
from scalebook.layouts import Layout, Sharding, check_sizes, mesh, parse_einsum, sharding


def test_hand_numbers():
    m = mesh({"X": 4, "Y": 2})
    s = sharding("A[I_XY, J]", m)
    sizes = {"I": 16, "J": 6}
    assert s.shape(sizes) == (16, 6)
    assert s.local_shape(sizes, m) == (2, 6)
    assert (s.shards(m), s.replicas(m), s.summands(m)) == (8, 1, 1)
    assert s.bytes_per_device(sizes, m) == 2 * 6 * 2
    assert s.bytes_per_device(sizes, m, "fp32") == 2 * 6 * 4
    assert s.bytes_per_device(sizes, m, "int4") == 6.0
    scalar = sharding("C[]{U_X}")
    assert scalar.local_shape({}, m) == ()
    assert scalar.bytes_per_device({}, m) == 2
    assert (scalar.shards(m), scalar.summands(m), scalar.replicas(m)) == (1, 4, 2)


def test_major_axis_is_slowest():
    """I_XY on X=2, Y=2: device (x, y) holds block 2x + y; I_YX: block 2y + x."""
    m = mesh({"X": 2, "Y": 2})
    xy = sharding("A[I_XY]").slices({"I": 8}, m)
    yx = sharding("A[I_YX]").slices({"I": 8}, m)
    assert xy == {(0, 0): ((0, 2),), (0, 1): ((2, 4),), (1, 0): ((4, 6),), (1, 1): ((6, 8),)}
    assert yx == {(0, 0): ((0, 2),), (0, 1): ((4, 6),), (1, 0): ((2, 4),), (1, 1): ((6, 8),)}
    assert sharding("A[I_XY]").layout(m) != sharding("A[I_YX]").layout(m)


def test_axes_of_size_one():
    m = mesh({"X": 4, "Y": 1})
    s = sharding("A[I_XY, J_Z]{U_W}", {"X": 4, "Y": 1, "Z": 1, "W": 1})
    assert str(s) == "A[I_XY, J_Z]{U_W}"  # as written
    assert s.layout({"X": 4, "Y": 1, "Z": 1, "W": 1}) == Layout((("X",), ()))
    assert sharding("A[I_YX]").layout(m) == sharding("A[I_X]").layout(m)


def test_layout_sorts_what_is_pending():
    m = {"X": 2, "Y": 2}
    assert sharding("A[I]{U_YX}").layout(m) == sharding("A[I]{U_XY}").layout(m) == Layout(((),), ("X", "Y"))


def test_binding_to_a_mesh():
    assert sharding("A[I_xy]").bind({"x": 2, "y": 2}).dims == (("x", "y"),)
    assert sharding("A[I_XY]").bind({"XY": 2}).dims == (("XY",),)
    assert sharding("A[I_{XY}]").bind({"X": 2, "Y": 2}).dims == (("X", "Y"),)
    assert sharding("A[I_xy]").local_shape({"I": 8}, {"x": 2, "y": 2}) == (2,)
    with pytest.raises(NotationError, match="did you mean 'X'"):
        sharding("A[I_x]").bind({"X": 2})
    with pytest.raises(NotationError, match="used twice"):
        sharding("A[I_X, J_xX]", {"x": 2, "X": 2})


def test_jax_spec():
    s = sharding("A[I_X, J, K_YZ]{U_data}")
    assert s.spec() == ("X", None, ("Y", "Z"))
    assert s.unreduced == {"data"}


def test_prime_axes():
    m = mesh({"X": 4, "Y": 6, "Z": 2})
    s = sharding("A[I_YX, J]{U_Z}").factored(m)
    assert s.dims == (("Y0", "Y1", "X0", "X1"), ())
    assert s.pending == ("Z",)
    whole, parts = sharding("A[I_YX]").slices({"I": 48}, m), sharding("A[I_YX]").factored(m).slices({"I": 48}, m.factored())
    assert list(whole.values()) == list(parts.values())  # the same devices in the same order


# ---- errors -------------------------------------------------------------------------------------------------------------


def refused(text, sizes, m):
    with pytest.raises(SizeError) as e:
        sharding(text).local_shape(sizes, m)
    return str(e.value)


def test_indivisible():
    assert refused("A[I_X]", {"I": 10}, {"X": 4}) == (
        "[I_X] cannot split I=10 over X=4 devices: 10 is not a multiple of 4. Mesh: {'X': 4}, shape: (10,)"
    )
    text = refused("A[I_X, J_YZ, K]", {"I": 10, "J": 12, "K": 5}, {"X": 4, "Y": 2, "Z": 4})
    assert "[I_X] cannot split I=10 over X=4 devices: 10 is not a multiple of 4" in text
    assert "[J_YZ] cannot split J=12 over Y=2 × Z=4 = 8 devices: 12 is not a multiple of 8" in text
    assert text.endswith("Mesh: {'X': 4, 'Y': 2, 'Z': 4}, shape: (10, 12, 5)")


def test_all_faults_at_once():
    text = refused("A[I_X, J, K, L, M]", {"I": 10, "J": 0, "K": 2.5, "L": True}, {"X": 4})
    assert "no size is given for M" in text
    assert "J=0 is not positive" in text
    assert "K=2.5 is not a whole number" in text
    assert "L=True is not a whole number" in text
    assert "[I_X] cannot split I=10" in text
    assert "Mesh: {'X': 4}, sizes: {'I': 10" in text


def test_products_name_each_fault_once():
    with pytest.raises(SizeError) as e:
        check_sizes(parse_einsum("A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]"), {"I": 10, "J": 2, "K": 3}, {"X": 4, "Y": 2})
    assert str(e.value).count("[I_X] cannot split") == 1
    assert str(e.value).count("[K_Y] cannot split") == 1


@pytest.mark.parametrize("sizes", [None, 5, "I=8", [("I", 8)]])
def test_sizes_are_a_mapping(sizes):
    with pytest.raises(SizeError, match="mapping"):
        sharding("A[I]").shape(sizes)


def test_numpy_sizes():
    s, m = sharding("A[I_X, J]"), {"X": 4}
    n = np.array([4, 8, 1024])
    rows, columns = s.local_shape({"I": n, "J": 3}, m)
    assert rows.tolist() == [1, 2, 256]
    assert columns == 3
    assert s.bytes_per_device({"I": n, "J": 3}, m).tolist() == [6, 12, 1536]
    assert s.local_shape({"I": np.int64(8), "J": 3}, m) == (2, 3)
    assert "cannot split I=10" in refused("A[I_X]", {"I": np.array([8, 10, 11])}, m)
    assert "I=-8 is not positive" in refused("A[I_X]", {"I": np.array([8, -8])}, m)
    assert "not a whole number" in refused("A[I_X]", {"I": np.array([8.0])}, m)


# ---- laws ---------------------------------------------------------------------------------------------------------------


@st.composite
def cases(draw):
    """A mesh, a sharding on it, and sizes that divide."""
    shape = {
        a: draw(st.integers(1, 4))
        for a in draw(st.lists(st.sampled_from(["X", "Y", "Z", "data"]), min_size=1, max_size=3, unique=True))
    }
    letters = tuple("IJK"[: draw(st.integers(0, 3))])
    places = {a: draw(st.integers(-1, len(letters))) for a in draw(st.permutations(list(shape)))}
    dims = tuple(tuple(a for a, p in places.items() if p == i) for i in range(len(letters)))
    s = Sharding("A", letters, dims, tuple(a for a, p in places.items() if p == len(letters)))
    sizes = {d: math.prod(shape[a] for a in axes) * draw(st.integers(1, 3)) for d, axes in zip(letters, dims, strict=True)}
    return s, sizes, mesh(shape)


@given(cases())
@settings(max_examples=150, deadline=None)
def test_blocks_tile_the_array(case):
    """Painted onto the array, the blocks of the devices cover each element equally often: replicas × summands times."""
    s, sizes, m = case
    times = np.zeros(s.shape(sizes), int)
    blocks = s.slices(sizes, m)
    assert list(blocks) == list(m.coordinates())
    for block in blocks.values():
        times[tuple(slice(*b) for b in block)] += 1
        assert tuple(b - a for a, b in block) == s.local_shape(sizes, m)
    assert (times == s.replicas(m) * s.summands(m)).all()
    assert len(set(blocks.values())) == s.shards(m)
    assert s.shards(m) * s.summands(m) * s.replicas(m) == m.devices
    assert s.bytes_per_device(sizes, m, "fp32") * s.shards(m) == times.size * 4


@given(cases())
@settings(max_examples=150, deadline=None)
def test_blocks_against_array_splitting(case):
    """The same by another route: an array of element numbers, cut by numpy along one mesh axis after the other."""
    s, sizes, m = case
    whole = np.arange(math.prod(s.shape(sizes))).reshape(s.shape(sizes))
    for coordinates, block in s.slices(sizes, m).items():
        at, part = dict(zip(m.axis_names, coordinates, strict=True)), whole
        for i, axes in enumerate(s.dims):
            for a in axes:
                part = np.split(part, m[a], axis=i)[at[a]]
        assert (whole[tuple(slice(*b) for b in block)] == part).all()


@given(cases())
@settings(max_examples=100, deadline=None)
def test_equal_layouts_hold_equal_blocks(case):
    """Two shardings have one layout exactly when every device holds the same block of a large enough array."""
    s, _, m = case
    n = m.devices
    sizes = dict.fromkeys(s.letters, n)
    for order in itertools.permutations(s.dims):
        t = Sharding("A", s.letters, order, s.pending)
        assert (t.layout(m) == s.layout(m)) == (t.slices(sizes, m) == s.slices(sizes, m))
    for i, axes in enumerate(s.dims):
        t = Sharding("A", s.letters, (*s.dims[:i], axes[::-1], *s.dims[i + 1 :]), s.pending)
        assert (t.layout(m) == s.layout(m)) == (t.slices(sizes, m) == s.slices(sizes, m))


@given(cases())
@settings(max_examples=100, deadline=None)
def test_at_its_own_layout(case):
    s, sizes, m = case
    t = s.at(s.layout(m))
    assert t.slices(sizes, m) == s.slices(sizes, m)
    assert t.layout(m) == s.layout(m)
    assert s.factored(m).local_shape(sizes, m.factored()) == s.local_shape(sizes, m)


# ---- sizes that could wrap around, and things that are none -------------------------------------------------------------


def test_sizes_of_numpy_do_not_wrap_around():
    s, m = sharding("A[I_X, J]"), {"X": 4}
    assert s.bytes_per_device({"I": np.int64(2**40), "J": np.int64(2**40)}, m) == 2**79
    assert s.bytes_per_device({"I": np.array([2**40]), "J": np.array([2**40])}, m).tolist() == [2.0**79]
    assert s.bytes_per_device({"I": np.array([2**20], np.int32), "J": np.array([2**20], np.int32)}, m).tolist() == [2**39]
    assert s.bytes_per_device({"I": np.int8(100), "J": np.int8(100)}, m, "fp32") == 10_000
    assert s.bytes_per_device({"I": np.array([100, 200], np.uint8), "J": np.uint8(200)}, m).tolist() == [10_000, 20_000]
    assert s.bytes_per_device({"I": 2**70, "J": np.array([1, 3])}, m).tolist() == [2.0**69, 3 * 2.0**69]
    assert [type(n) for n in s.local_shape({"I": np.int8(100), "J": np.array(7)}, m)] == [int, int]
    assert [type(n) for n in s.shape({"I": np.int8(100), "J": np.uint64(7)})] == [int, int]
    assert s.local_shape({"I": np.array([100, 200], np.uint8), "J": 1}, {"X": 100})[0].tolist() == [1, 2]


@given(st.lists(st.integers(1, 2**61), min_size=1, max_size=3), st.integers(1, 2**90), st.sampled_from(["bf16", "int4", "fp64"]))
@settings(max_examples=60, deadline=None)
def test_a_sweep_is_what_its_entries_give(entries, J, dtype):
    s = sharding("A[I, J_X]")
    swept = s.bytes_per_device({"I": np.array(entries), "J": 4 * J}, {"X": 4}, dtype)
    exact = [s.bytes_per_device({"I": n, "J": 4 * J}, {"X": 4}, dtype) for n in entries]
    assert swept.tolist() == pytest.approx(exact, rel=1e-14)


def test_devices_beyond_64_bits():
    small, most = np.array([100, 200], np.uint8), 10**15
    assert "cannot split I=100 over X=300 devices" in refused("A[I_X]", {"I": small}, {"X": 300})
    assert f"= {10**30} devices: 100 is not a multiple" in refused("A[I_XY]", {"I": small}, {"X": most, "Y": most})
    assert "I=9223372036854775808 is too large: sizes in an array are below 2**63" in refused(
        "A[I]", {"I": np.array([1, 2**63], np.uint64)}, {}
    )
    with pytest.raises(SizeError, match="at most 1e308"):
        sharding("A[I, J]").bytes_per_device({"I": 10**400, "J": np.array([1])}, {})


def test_messages_about_sizes_stay_short():
    text = refused("A[I_X]", {"I": np.ones((100, 100), int)}, {"X": 4})
    assert "cannot split I=1 over X=4 devices" in text and len(text) < 250
    assert len(refused("A[I_X, J]", {"I": "a" * 10**6, "J": 10**5000}, {"X": 4})) < 500
    assert refused("A[I_X]", {"I": np.int64(10)}, {"X": 4}).endswith("shape: (10,)")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Sharding("A", ("I",), None),
        lambda: Sharding("A", ("I",), [["X"]]),
        lambda: Sharding("A", ("I",), (("X",),), ["Y"]),
        lambda: Sharding(None, ("I",), (("X",),)),
        lambda: Sharding("A", ("I",), ("X",)),
        lambda: sharding("A[I]").at("A[I_Y]"),
        lambda: sharding("A[I]").at(sharding("A[I_Y]")),
        lambda: sharding("A[I]").at(Layout(None)),
        lambda: sharding(["A[I]"]),
    ],
)
def test_what_is_no_sharding_is_refused(call):
    with pytest.raises(NotationError, match="such as"):
        call()
