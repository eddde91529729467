"""A fixed random sample of two-operand shardings on meshes of eight devices, with integer arrays, so that products are exact."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from scalebook.errors import NotationError
from scalebook.layouts import Sharding
from scalebook.meshes import Mesh, mesh
from scalebook.products import Einsum, einsum

MESHES = ({"X": 2, "Y": 2, "Z": 2}, {"X": 4, "Y": 2}, {"X": 2, "Y": 4}, {"X": 8})
FORMS = (
    ("IJ", "JK", "IK"),
    ("IJ", "JK", "KI"),
    ("JI", "KJ", "IK"),
    ("GIJ", "GJK", "GIK"),
    ("IGJ", "JGK", "GKI"),
    ("GIJ", "JK", "GIK"),
)


@dataclass(frozen=True)
class Sample:
    """One einsum: its text, sizes and mesh."""

    spec: str
    sizes: tuple[tuple[str, int], ...]
    shape: tuple[tuple[str, int], ...]

    def einsum(self, **options: bool) -> Einsum:
        return einsum(self.spec, dict(self.sizes), dict(self.shape), "fp32", **options)

    @property
    def pending(self) -> bool:
        return "{U" in self.spec

    @property
    def batched(self) -> bool:
        return "G" in self.spec


@lru_cache
def samples(n: int, *, seed: int = 2026, pending: float = 0.2) -> tuple[Sample, ...]:
    """n different shardings; about a share `pending` of them have a sum pending in an operand or in the result."""
    rng = random.Random(seed)
    found: dict[Sample, None] = {}
    while len(found) < n:
        shape = rng.choice(MESHES)
        wait = rng.random() < pending
        arrays = [
            _random_array(rng, name, letters, mesh(shape), wait) for name, letters in zip("ABC", rng.choice(FORMS), strict=True)
        ]
        if wait != any(s.pending for s in arrays):
            continue
        sizes = {d: rng.choice((8, 16, 32, 256)) for d in "GIJK"}
        sizes["G"] = 8
        used = tuple((d, sizes[d]) for d in "GIJK" if any(d in s.letters for s in arrays))
        one = Sample("{} * {} -> {}".format(*arrays), used, tuple(shape.items()))
        try:
            one.einsum()
        except NotationError:  # a sum that is pending in C and comes from nowhere
            continue
        found[one] = None
    return tuple(found)


def _random_array(rng: random.Random, name: str, letters: str, m: Mesh, wait: bool) -> Sharding:
    """Each mesh axis splits some dimension, or is idle, or has a sum pending; several in one dimension stand in any order."""
    dims: list[list[str]] = [[] for _ in letters]
    pending = []
    for axis in rng.sample(m.axis_names, len(m.axis_names)):
        place = rng.choice([None, *dims, *([pending] if wait else [])])
        if place is not None:
            place.append(axis)
    return Sharding(name, tuple(letters), tuple(map(tuple, dims)), tuple(sorted(pending)))


def operands(e: Einsum, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A and B as small whole numbers (with leading dimensions of parts where a sum is pending), and the exact product."""
    rng = np.random.default_rng(seed)
    arrays = []
    for s in (e.A, e.B):
        parts = tuple(e.mesh[a] for a in s.layout(e.mesh).pending)
        arrays.append(rng.integers(-3, 4, (*parts, *s.shape(e.sizes))).astype(np.float32))
    whole = [x.sum(axis=tuple(range(x.ndim - len(s.letters)))) for x, s in zip(arrays, (e.A, e.B), strict=True)]
    text = "{},{}->{}".format(*("".join(s.letters) for s in (e.A, e.B, e.C)))
    return arrays[0], arrays[1], np.einsum(text, *whole)


# Quick to compile: no optimisation after the partitioner has settled the collectives. Names are those of the pinned jax.
_QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True, "xla_cpu_use_fusion_emitters": False}


def compiled(f: Any, *shapes: Any) -> Any:
    """A jitted function compiled in a hurry; in the ordinary way where this jax does not know how."""
    lowered = f.lower(*shapes)
    try:
        return lowered.compile(compiler_options=_QUICK)
    except jax.errors.JaxRuntimeError as error:
        if "compile option" not in str(error):
            raise
        return lowered.compile()


def wrong_devices(e: Einsum, c: Any, product: np.ndarray) -> list[int]:
    """The devices, replicas included, that do not hold exactly their block of the product (or parts of it that add up to it)."""
    pending = e.C.layout(e.mesh).pending
    blocks = e.C.slices(e.sizes, e.mesh)
    places = list(e.mesh.coordinates())
    held = {shard.device.id: np.asarray(shard.data) for shard in c.addressable_shards}
    assert sorted(held) == list(range(len(places)))
    wrong = []
    for d, at in enumerate(places):
        alike = [
            k
            for k, x in enumerate(places)
            if all(p == q or a in pending for p, q, a in zip(x, at, e.mesh.axis_names, strict=True))
        ]
        total = sum(held[k] for k in alike)
        block = product[tuple(slice(*b) for b in blocks[at])]
        if total.reshape(total.shape[len(pending) :]).shape != block.shape or not np.array_equal(
            total.reshape(block.shape), block
        ):
            wrong.append(d)
    return wrong
