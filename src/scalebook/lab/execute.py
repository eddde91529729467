"""A derived plan executed on devices, step by step: each move is one jax collective inside `shard_map`, then the local product."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from scalebook.errors import ScalebookError, SizeError
from scalebook.lab.backend import jax_mesh
from scalebook.layouts import Layout, Mesh, Sharding
from scalebook.products import Einsum, Move

_DTYPES = {
    "fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp8": "float8_e4m3fn", "fp4": "float4_e2m1fn",
    "int64": "int64", "int32": "int32", "int16": "int16", "int8": "int8", "int4": "int4", "bool": "bool",
}  # fmt: skip


def run(e: Einsum, a: Any, b: Any) -> Any:
    """The product of two whole arrays, computed by the plan of `e` on `e.mesh.devices` devices.

    >>> from scalebook import einsum
    >>> e = einsum("A[I_X, J] * B[J_X, K] -> C[I_X, K]", {"I": 4, "J": 2, "K": 1}, {"X": 2}, "fp32")
    >>> run(e, [[1, 2], [3, 4], [5, 6], [7, 8]], [[10], [1]]).ravel().tolist()
    [12, 34, 56, 78]

    An operand with a pending sum may be given as its parts, with one leading dimension for each pending axis (in the order of
    `.pending`); given whole, one device along those axes holds it and the others hold zeros. The result comes back as a NumPy array,
    a pending sum added up. Raises SizeError when an array has not the shape that `e.sizes` says.
    """
    left, right = _parts(e, e.A, np.asarray(a)), _parts(e, e.B, np.asarray(b))
    c = np.asarray(function(e)(left, right))
    return c.sum(axis=tuple(range(len(_pending(e, e.C))))).astype(c.dtype)


def function(e: Einsum) -> Any:
    """The plan of `e` as a jitted jax function of A and B, to be called, or compiled: function(e).lower(*shapes(e)).compile().

    Arrays with a pending sum, C too, have one leading dimension for each pending axis: the parts. The local product of operands in
    the einsum's own dtypes is cast to C's before it is moved; operands of other dtypes give a product in theirs.
    """
    mesh = jax_mesh(e.mesh)
    letters = {name: i for i, name in enumerate(dict.fromkeys(x for s in (e.A, e.B, e.C) for x in s.letters))}
    own = [jnp.dtype(_DTYPES[e.dtypes[s.array]]) for s in (e.A, e.B, e.C)]
    moves = {s.array: [_step(m, e.mesh) for m in e.moves if m.array == s.array] for s in (e.A, e.B, e.C)}
    waits = [len(_pending(e, s)) for s in (e.A, e.B, e.C)]

    def body(a: Any, b: Any) -> Any:
        a, b = a.reshape(a.shape[waits[0] :]), b.reshape(b.shape[waits[1] :])
        out = own[2] if [a.dtype, b.dtype] == own[:2] else jnp.result_type(a, b)
        for step in moves[e.A.array]:
            a = step(a)
        for step in moves[e.B.array]:
            b = step(b)
        a_dims, b_dims, c_dims = ([letters[x] for x in s.letters] for s in e.local)
        c = jnp.einsum(a, a_dims, b, b_dims, c_dims, precision="highest").astype(out)
        for step in moves[e.C.array]:
            c = step(c)
        return c.reshape((1,) * waits[2] + c.shape)

    specs = [_spec(e, s) for s in (e.A, e.B, e.C)]
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(specs[0], specs[1]), out_specs=specs[2], check_vma=False))


def partitioned(e: Einsum) -> Any:
    """The same product with the same layouts as jax's own partitioner makes it: jit of an einsum with shardings in and out.

    Raises ScalebookError when an array has a pending sum, which jit cannot take as an input or output sharding on an Auto mesh.
    """
    if waiting := [str(s) for s in (e.A, e.B, e.C) if _pending(e, s)]:
        raise ScalebookError(f"jax's partitioner takes no pending sums in or out; found {', '.join(waiting)} in {e.spec}")
    mesh = jax_mesh(e.mesh)
    letters = {name: i for i, name in enumerate(dict.fromkeys(x for s in (e.A, e.B, e.C) for x in s.letters))}
    a_dims, b_dims, c_dims = ([letters[x] for x in s.letters] for s in (e.A, e.B, e.C))
    places = [NamedSharding(mesh, _spec(e, s)) for s in (e.A, e.B, e.C)]

    def multiply(a: Any, b: Any) -> Any:
        return jnp.einsum(a, a_dims, b, b_dims, c_dims, precision="highest")

    return jax.jit(multiply, in_shardings=(places[0], places[1]), out_shardings=places[2])


def shapes(e: Einsum) -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
    """Shapes and dtypes of A and B, to compile for: pending sums as leading dimensions."""
    a, b = (
        jax.ShapeDtypeStruct((*(e.mesh[x] for x in _pending(e, s)), *s.shape(e.sizes)), jnp.dtype(_DTYPES[e.dtypes[s.array]]))
        for s in (e.A, e.B)
    )
    return a, b


# ---- one move ------------------------------------------------------------------------------------------------------------


def _step(move: Move, mesh: Mesh) -> Callable[[Any], Any]:
    """The jax collective of a move, as a function of the local array."""
    letters, axes = move.before.letters, move.axes
    src = None if move.src is None else letters.index(move.src)
    dst = None if move.dst is None else letters.index(move.dst)
    match move.kind, src, dst:
        case "all-gather", int(), None:
            return lambda x: lax.all_gather(x, axes, axis=src, tiled=True)
        case "all-to-all", int(), int():
            return lambda x: lax.all_to_all(x, axes, split_axis=dst, concat_axis=src, tiled=True)
        case "reduce-scatter", None, int():
            return lambda x: lax.psum_scatter(x, axes, scatter_dimension=dst, tiled=True)
        case "all-reduce", None, None:
            return lambda x: lax.psum(x, axes)
        case "slice", None, int():
            k = mesh.size(axes)

            def keep(x: Any) -> Any:
                n = x.shape[dst] // k
                return lax.dynamic_slice_in_dim(x, lax.axis_index(axes) * n, n, axis=dst)

            return keep
        case "permute", _, _:
            pairs = permute_pairs(move.before.layout(mesh), move.after.layout(mesh), mesh)
            return lambda x: lax.ppermute(x, mesh.axis_names, pairs)
    raise ScalebookError(f"no jax collective is known for the move {move}")


def permute_pairs(before: Layout, after: Layout, mesh: Mesh) -> list[tuple[int, int]]:
    """(source, target) positions in the mesh such that every device ends with its block of `after`; one that has it already keeps it.

    >>> from scalebook import mesh
    >>> permute_pairs(Layout((("X",), ())), Layout((("Y",), ())), mesh({"X": 2, "Y": 2}))
    [(0, 0), (2, 1), (1, 2), (3, 3)]
    """
    has, wants = _items(before, mesh), _items(after, mesh)
    holders: dict[tuple[int, ...], list[int]] = {}
    for device, item in enumerate(has):
        if item != wants[device]:
            holders.setdefault(item, []).append(device)
    return [(t if has[t] == item else holders[item].pop(0), t) for t, item in enumerate(wants)]


def _items(layout: Layout, mesh: Mesh) -> list[tuple[int, ...]]:
    """For each device, the block that it holds and its place among the parts of a pending sum."""
    items = []
    for coordinates in mesh.coordinates():
        at = dict(zip(mesh.axis_names, coordinates, strict=True))
        block = [0] * len(layout.dims)
        for d, axes in enumerate(layout.dims):
            for axis in axes:
                block[d] = block[d] * mesh[axis] + at[axis]
        items.append((*block, *(at[axis] for axis in layout.pending)))
    return items


# ---- arrays and their parts ----------------------------------------------------------------------------------------------


def _pending(e: Einsum, s: Sharding) -> tuple[str, ...]:
    return s.layout(e.mesh).pending


def _spec(e: Einsum, s: Sharding) -> PartitionSpec:
    layout = s.layout(e.mesh)
    return PartitionSpec(*layout.pending, *(d if d else None for d in layout.dims))


def _parts(e: Einsum, s: Sharding, x: Any) -> Any:
    """An operand as `function` takes it: with its leading dimensions of parts."""
    counts, whole = tuple(e.mesh[a] for a in _pending(e, s)), s.shape(e.sizes)
    if x.shape == (*counts, *whole):
        return x
    if x.shape != whole:
        parts = f", or {(*counts, *whole)} as parts of the pending sum" if counts else ""
        raise SizeError(f"{s} has shape {whole} by the sizes {dict(e.sizes)}{parts}; found an array of shape {x.shape}")
    spread = np.zeros((math.prod(counts), *whole), x.dtype)
    spread[0] = x
    return spread.reshape((*counts, *whole))
