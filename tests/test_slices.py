"""What vendors offer: lists, rules, nearest shapes, product names."""

import itertools
import math

import pytest

import scalebook as sb
from scalebook import slices
from scalebook.errors import TopologyError
from scalebook.slices import nearest, offer_of, shape_of_product, twistable, verified_shape

WITH_LIST = ["v2", "v3", "v4", "v5e", "v5p", "v6e", "tpu7x"]


@pytest.mark.parametrize("key", [*WITH_LIST, "tpu8t"])
def test_every_list_has_sources_and_shapes_of_the_right_dimension(key):
    offer = offer_of(key)
    assert offer.sources and all(r.url.startswith("https://") for r in offer.sources)
    assert all(len(s) == sb.chip(key).torus_dims for s in offer.shapes)
    assert set(offer.listed) <= set(offer.shapes) and len(set(offer.listed)) == len(offer.listed)


@pytest.mark.parametrize("key", WITH_LIST)
def test_the_whole_pod_is_offered_and_nothing_larger(key):
    chips = [math.prod(s) for s in offer_of(key).shapes]
    assert max(chips) == sb.chip(key).pod_chips and chips == sorted(chips)


@pytest.mark.parametrize(("step", "most"), [(4, 1024), (4, 640), (2, 100)])
def test_the_rule_enumerates_every_ascending_shape(step, most):
    sides = range(step, most + 1, step)
    slow = {s for s in itertools.combinations_with_replacement(sides, 3) if math.prod(s) <= most}
    assert slices._of_rule(step, most) == slow
    assert slices._of_rule(None, most) == set()


def test_the_list_of_tpu7x_follows_the_rule_of_v5p():
    """Why a shape of tpu7x that is not listed is accepted at all: every listed one from a cube on is ascending multiples of 4."""
    cubes = [s for s in offer_of("tpu7x").listed if math.prod(s) >= 64]
    assert len(cubes) > 90 and set(cubes) <= slices._of_rule(4, 9216)


@pytest.mark.parametrize(
    ("shape", "best"),
    [((8, 9), (8, 8)), ((3, 4), (4, 4)), ((32, 32), (16, 16)), ((1, 2), (1, 1)), ((64,), (8, 8)), ((8, 8, 8), (16, 16))],
)
def test_nearest_shapes(shape, best):
    found = nearest(shape, offer_of("v5e").shapes)
    assert found[0] == best and len(found) == 3


def test_nearest_is_itself_when_offered():
    for key in WITH_LIST:
        for shape in offer_of(key).listed:
            assert nearest(shape, offer_of(key).shapes, 1) == [shape]


# https://cloud.google.com/tpu/docs/v5p-training: topology, cores, chips, hosts, supports twisted
V5P = [
    ((2, 2, 1), 8, 4, 1, False),
    ((2, 2, 2), 16, 8, 2, False),
    ((2, 4, 4), 64, 32, 8, False),
    ((4, 4, 4), 128, 64, 16, False),
    ((4, 4, 8), 256, 128, 32, True),
    ((4, 8, 8), 512, 256, 64, True),
    ((8, 8, 8), 1024, 512, 128, False),
    ((8, 8, 16), 2048, 1024, 256, True),
    ((8, 16, 16), 4096, 2048, 512, True),
    ((16, 16, 16), 8192, 4096, 1024, False),
    ((16, 16, 24), 12288, 6144, 1536, False),
]


@pytest.mark.parametrize(("shape", "cores", "chips", "hosts", "twisted"), V5P)
def test_the_vendor_table_of_v5p(shape, cores, chips, hosts, twisted):
    c = sb.chip("v5p")
    assert verified_shape("v5p", c, shape) and math.prod(shape) == chips
    assert offer_of("v5p").hosts(shape) == hosts
    assert twistable(shape) is twisted
    assert shape_of_product(f"v5p-{cores}", c, cores)[0] == shape


# https://docs.cloud.google.com/tpu/docs/v6e: topology, chips, virtual machines
@pytest.mark.parametrize(
    ("shape", "vms"),
    [((1, 1), 1), ((2, 2), 1), ((2, 4), 1), ((4, 4), 4), ((4, 8), 8), ((8, 8), 16), ((8, 16), 32), ((16, 16), 64)],
)
def test_the_vendor_table_of_v6e(shape, vms):
    assert verified_shape("v6e", sb.chip("v6e"), shape) and offer_of("v6e").hosts(shape) == vms


# tensorflow/python/tools/grpc_tpu_worker.py (2022): host bounds, times 2 x 2 x 1 chips a host
V4 = {8: (1, 1, 1), 16: (1, 1, 2), 32: (1, 1, 4), 64: (1, 2, 4), 128: (2, 2, 4), 256: (2, 2, 8), 512: (2, 4, 8), 1024: (4, 4, 8)}
V4 |= {2048: (4, 4, 16), 4096: (4, 8, 16)}


@pytest.mark.parametrize("cores", V4)
def test_default_shapes_of_v4_are_the_vendors(cores):
    x, y, z = V4[cores]
    shape, note = shape_of_product(f"v4-{cores}", sb.chip("v4"), cores)
    assert shape == (2 * x, 2 * y, z)
    assert f"v4-{cores}: the number counts TensorCores, 2 a chip" in note
    assert offer_of("v4").hosts(shape) == x * y * z


@pytest.mark.parametrize("key", WITH_LIST)
def test_every_offered_size_has_a_product(key):
    c = sb.chip(key)
    cores = c.tensorcores if offer_of(key).name_counts == "cores" else 1
    for shape in offer_of(key).listed:
        found, _ = shape_of_product("p", c, math.prod(shape) * cores)
        assert math.prod(found) == math.prod(shape)


def test_cores_are_not_chips():
    assert shape_of_product("v5p-8", sb.chip("v5p"), 8)[0] == (2, 2, 1)
    assert shape_of_product("v5litepod-8", sb.chip("v5e"), 8)[0] == (2, 4)
    with pytest.raises(TopologyError, match=r"'v5p-12': the number counts TensorCores, 2 a chip.*Nearest: v5p-8 or v5p-16"):
        shape_of_product("v5p-12", sb.chip("v5p"), 12)


def test_products_without_a_list_are_refused():
    for name in ("8t", "8i"):
        with pytest.raises(TopologyError, match=r"no list of TPU 8. products is known"):
            shape_of_product(f"{name}-8", sb.chip(name), 8)
