"""`slices` against jax: which block each of eight simulated devices holds."""

import itertools

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from scalebook.layouts import Sharding, mesh, sharding

MESHES = [{"X": 8}, {"X": 4, "Y": 2}, {"X": 2, "Y": 4}, {"X": 2, "Y": 2, "Z": 2}, {"X": 8, "Y": 1}, {"data": 4, "model": 2}]


def every_sharding(axes, letters):
    """Every way to put some of the axes, in any order, on the dimensions."""
    for m in range(len(axes) + 1):
        for order in itertools.permutations(axes, m):
            for places in itertools.product(range(len(letters)), repeat=m):
                dims = tuple(tuple(a for a, p in zip(order, places, strict=True) if p == i) for i in range(len(letters)))
                yield Sharding("A", letters, dims)


def jax_slices(s, sizes, grid):
    """jax's own map from devices to blocks, by the device's coordinates in the mesh."""
    shape, held = s.shape(sizes), NamedSharding(grid, PartitionSpec(*s.spec())).devices_indices_map(s.shape(sizes))
    return {
        at: tuple((b.start or 0, n if b.stop is None else b.stop) for b, n in zip(held[device], shape, strict=True))
        for at, device in np.ndenumerate(grid.devices)
    }


@pytest.mark.parametrize("shape", MESHES, ids=str)
def test_blocks(shape):
    m = mesh(shape)
    grid = jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(tuple(shape.values())), m.axis_names)
    sizes = {"I": 16, "J": 24}
    tried = list(dict.fromkeys(every_sharding(m.axis_names, ("I", "J"))))
    assert len(tried) == {1: 3, 2: 11, 3: 49}[len(shape)]  # m ordered axes go on two dimensions in (m+1)! ways
    for s in tried:
        assert s.slices(sizes, m) == jax_slices(s, sizes, grid), str(s)


def test_blocks_hold_the_numbers():
    """An array put on the devices: each shard is the slice that `slices` says."""
    m = mesh({"X": 2, "Y": 4})
    grid = jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("X", "Y"))
    s, sizes = sharding("A[I_Y, J_X]"), {"I": 8, "J": 6}
    whole = np.arange(48).reshape(8, 6)
    put = jax.device_put(whole, NamedSharding(grid, PartitionSpec(*s.spec())))
    where = {device: at for at, device in np.ndenumerate(grid.devices)}
    blocks = s.slices(sizes, m)
    for shard in put.addressable_shards:
        (a, b), (c, d) = blocks[where[shard.device]]
        np.testing.assert_array_equal(np.asarray(shard.data), whole[a:b, c:d])
        assert shard.data.shape == s.local_shape(sizes, m)


def test_pending_sums_are_unreduced():
    s = sharding("A[I_X, J]{U_Y}")
    spec = PartitionSpec(*s.spec(), unreduced=s.unreduced)
    assert spec == PartitionSpec("X", None, unreduced={"Y"})
