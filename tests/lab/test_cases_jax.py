"""What jax itself says in the sharding cases of data/cases.jsonl, on eight simulated devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import scalebook as sb
from scalebook import lab

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case["right_value"]
    for case in map(json.loads, (Path(__file__).parents[1] / "data" / "cases.jsonl").read_text("utf-8").splitlines())
}


def test_results_must_divide_and_the_remedy_works() -> None:
    want = CASES["shard-arange5-out"]
    mesh = lab.jax_mesh(sb.mesh({"X": 4, "Y": 2}))
    split = NamedSharding(mesh, P("X"))
    same = jax.jit(lambda x: x, out_shardings=split)
    with pytest.raises(ValueError, match=r"partitioned 4 times, but the dimension size is 5") as caught:
        same(np.arange(5))
    assert type(caught.value).__name__ == want["jax_0_10_2"].split()[0]
    padded = same(np.arange(8))
    assert {s.data.shape for s in padded.addressable_shards} == {sb.sharding("x[I_X]").local_shape({"I": 8}, {"X": 4, "Y": 2})}


def test_a_mesh_without_axis_types_is_explicit_now() -> None:
    want = CASES["shard-explicit-mesh-default"]
    x = jnp.arange(16.0)
    default = jax.make_mesh((8,), ("d",), devices=jax.devices()[:8])
    assert {t.name for t in default.axis_types} == {want["default_axis_types"]}
    with pytest.raises(ValueError, match=r"Auto"):
        jax.jit(lambda y: jax.lax.with_sharding_constraint(y, NamedSharding(default, P("d"))))(x)
    stated = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,), devices=jax.devices()[:8])
    cut = jax.jit(lambda y: jax.lax.with_sharding_constraint(y, NamedSharding(stated, P("d"))))(x)
    assert {s.data.shape for s in cut.addressable_shards} == {(2,)}
    again = jax.sharding.reshard(x, NamedSharding(default, P("d")))
    assert {s.data.shape for s in again.addressable_shards} == {(2,)}


def test_a_mesh_of_the_lab_states_its_axis_types() -> None:
    mesh = lab.jax_mesh(sb.mesh({"d": 8}))
    assert all(isinstance(t, AxisType) for t in mesh.axis_types)
    cut = jax.jit(lambda y: jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("d"))))(jnp.arange(16.0))
    assert {s.data.shape for s in cut.addressable_shards} == {(2,)}


def test_a_batch_of_one_on_eight_devices() -> None:
    assert CASES["shard-map-batch1"]["cause"].startswith("batch 1 split 8 ways")
    mesh = lab.jax_mesh(sb.mesh({"dp": 1, "fsdp": 8, "sp": 1, "tp": 1}))
    spec = P(("dp", "fsdp"), "sp", "tp", None)
    q = jnp.ones((1, 2560, 32, 128), jnp.bfloat16)
    with pytest.raises(ValueError, match="divi"):
        jax.shard_map(lambda x: x, mesh=mesh, in_specs=spec, out_specs=spec)(q)
    other = lab.jax_mesh(sb.mesh({"dp": 1, "fsdp": 1, "sp": 8, "tp": 1}))
    out = jax.shard_map(lambda x: x, mesh=other, in_specs=spec, out_specs=spec)(q)
    assert {s.data.shape for s in out.addressable_shards} == {(1, 320, 32, 128)}


def test_how_the_cpu_compiler_moves_the_array_of_the_rematerialisation_warning() -> None:
    """Whatever it does, blocks before and after are those of the layouts; the cheapest way of the library needs no whole array."""
    want = CASES["spmd-full-remat"]
    mesh = lab.jax_mesh(sb.mesh({"x": 4, "y": 2}))
    a = jax.device_put(np.arange(16**3, dtype=np.float32).reshape(16, 16, 16), NamedSharding(mesh, P("y", None, "x")))
    assert {s.data.nbytes for s in a.addressable_shards} == {want["before"]}
    out = jax.jit(lambda y: y, out_shardings=NamedSharding(mesh, P(None, ("x", "y"), None)))(a)
    assert {s.data.nbytes for s in out.addressable_shards} == {want["after"]}
    np.testing.assert_array_equal(np.asarray(out), np.asarray(a))
