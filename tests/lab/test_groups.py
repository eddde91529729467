"""Groups of devices in compiled text: every way of writing them, and back to mesh axes."""

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from scalebook.errors import ScalebookError
from scalebook.lab.groups import axes_of, parse_groups, prime_axes

MESHES = [{"X": 2, "Y": 2, "Z": 2}, {"X": 4, "Y": 2}, {"data": 2, "model": 4}, {"X": 8}, {"X": 2, "Y": 1, "Z": 3}]


def groups_by_definition(mesh, axes):
    """Devices that agree in all other axes, listed with the first of `axes` slowest."""
    where = list(itertools.product(*(range(n) for n in mesh.values())))
    names = list(mesh)
    others = [i for i, a in enumerate(names) if a not in axes]
    groups = {}
    for d, at in enumerate(where):
        groups.setdefault(tuple(at[i] for i in others), []).append(d)
    return tuple(tuple(sorted(g, key=lambda d: tuple(where[d][names.index(a)] for a in axes))) for g in groups.values())


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("channel_id=1, replica_groups={{0,2},{1,3},{4,6},{5,7}}, use_global_device_ids=true", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("replica_groups={{0, 1}, {2, 3}}, to_apply=%add", ((0, 1), (2, 3))),
        ("replica_groups=[2,4]<=[8], dimensions={0}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("replica_groups=[4,2]<=[2,2,2]T(0,2,1), dimensions={0}", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("replica_groups=mesh['a'=2,'b'=4] {'b'}, use_global_device_ids=true", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("replica_groups=mesh['a'=2,'b'=1,'c'=4] {'a'}, metadata={}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("replica_groups=mesh['a'=4,'b'=2], device_ids=([2,2,2]T(2,1,0)) {'b'}", ((0, 4), (2, 6), (1, 5), (3, 7))),
        ("replica_groups=mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {'b'}", ((0, 2), (1, 3))),
        ("replica_groups=mesh['a'=8] {'a':(1)2}", ((0, 4), (1, 5), (2, 6), (3, 7))),  # the outer 2 of 8
        ("replica_groups=mesh['a'=8] {'a':(2)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),  # the middle 2
        ("replica_groups=mesh['a'=2,'b'=2] {'b','a'}", ((0, 2, 1, 3),)),
        ("source_target_pairs={{0,1},{1,0}}, metadata={}", ((0, 1), (1, 0))),
        ("replica_groups={}, to_apply=%add", ((0, 1, 2, 3, 4, 5, 6, 7),)),
        ("replica_groups={{}}, to_apply=%add", ((0, 1, 2, 3, 4, 5, 6, 7),)),
        ("dimensions={0}", ((0, 1, 2, 3, 4, 5, 6, 7),)),
        ("source_target_pairs={}, channel_id=1", ()),
    ],
)
def test_every_way_of_writing_groups(text, groups):
    assert parse_groups(text, devices=8) == groups


@pytest.mark.parametrize(
    "text",
    [
        "replica_groups=[2,0]<=[4]",
        "replica_groups=[2,2]<=[5]",
        "replica_groups=[2,2]<=[2,2]T(0,2)",
        "replica_groups=[1,99999999]<=[99999999]",
        "replica_groups=mesh['a'=x] {'a'}",
        "replica_groups=mesh['a'=99999999] {'a'}",
        "replica_groups=mesh['a'=8] {'a':(2)0}",
        "replica_groups=mesh['a'=4], device_ids=(0,1) {'a'}",
        "source_target_pairs={{0,1,2}}",
    ],
)
def test_groups_that_contradict_themselves_are_refused(text):
    with pytest.raises(ScalebookError, match="cannot read the groups of a collective"):
        parse_groups(text, devices=8)


def test_a_fifth_way_is_refused_with_its_text():
    with pytest.raises(ScalebookError, match=r"cannot read the groups.*@groups_7"):
        parse_groups("replica_groups=@groups_7, dimensions={0}")
    with pytest.raises(ScalebookError, match=r"'c', which its mesh \['a'=2,'b'=2\] does not have"):
        parse_groups("replica_groups=mesh['a'=2,'b'=2] {'c'}")


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_axes_come_back_in_order(mesh):
    real = [a for a, n in mesh.items() if n > 1]
    for r in range(1, len(real) + 1):
        for axes in itertools.permutations(real, r):
            assert axes_of(groups_by_definition(mesh, axes), mesh) == axes


def test_groups_that_are_no_axes():
    assert axes_of(((0, 1), (2, 3), (4, 6), (5, 7)), {"X": 2, "Y": 2, "Z": 2}) is None
    assert axes_of(((0, 3), (1, 2)), {"X": 2, "Y": 2}) is None
    assert axes_of(((0, 1),), {"X": 2, "Y": 2}) is None  # not all groups
    assert axes_of(((0, 9),), {"X": 2, "Y": 2}) is None
    half = ((0, 2), (1, 3), (4, 6), (5, 7))
    assert axes_of(half, {"X": 2, "Y": 4}) is None
    assert axes_of(half, prime_axes({"X": 2, "Y": 4})) == ("Y0",)


def test_axes_of_a_permute_are_those_along_which_data_moves():
    mesh = {"X": 2, "Y": 2, "Z": 2}
    assert axes_of(((0, 0), (2, 1), (1, 2), (3, 3), (4, 4), (6, 5), (5, 6), (7, 7)), mesh, pairs=True) == ("Y", "Z")
    assert axes_of(tuple((i, 7 - i) for i in range(8)), mesh, pairs=True) == ("X", "Y", "Z")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MESHES), st.data())
def test_lists_iota_and_mesh_text_say_the_same(mesh, data):
    axes = tuple(data.draw(st.permutations([a for a, n in mesh.items() if n > 1])))
    axes = axes[: data.draw(st.integers(1, len(axes)))]
    names, sizes = list(mesh), list(mesh.values())
    wanted = groups_by_definition(mesh, axes)
    lists = "replica_groups={" + ",".join("{" + ",".join(map(str, g)) + "}" for g in wanted) + "}"
    order = [i for i, a in enumerate(names) if a not in axes] + [names.index(a) for a in axes]
    iota = f"replica_groups=[{len(wanted)},{len(wanted[0])}]<=[{','.join(map(str, sizes))}]T({','.join(map(str, order))})"
    text = ",".join(f"'{a}'={n}" for a, n in mesh.items())
    chosen = ",".join(f"'{a}'" for a in axes)
    assert parse_groups(lists) == parse_groups(iota) == parse_groups(f"replica_groups=mesh[{text}] {{{chosen}}}") == wanted
