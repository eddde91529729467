"""Collectives read from compiled programs: what jax really compiled for eight devices, and text of other compilers' manners."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

from scalebook import lab
from scalebook.errors import MeshError, ScalebookError
from scalebook.lab.hlo import by_kind, collectives_of, total_bytes
from scalebook.lab.text import Array, parse

MESH = {"X": 2, "Y": 2, "Z": 2}
BLOCK = 64 * 32 * 4  # bytes of f32[64, 32]


def compiled(f, ins, out, *shapes, mesh=MESH):
    mapped = jax.shard_map(f, mesh=lab.jax_mesh(mesh), in_specs=ins, out_specs=out, check_vma=False)
    return jax.jit(mapped).lower(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes)).compile()


@pytest.mark.parametrize(
    ("f", "ins", "out", "kind", "axes", "nbytes"),
    [
        (lambda x: lax.all_gather(x, "Y", axis=0, tiled=True), P("Y"), P(), "all-gather", ("Y",), BLOCK // 2),
        (lambda x: lax.all_gather(x, ("Z", "X"), axis=0, tiled=True), P(("Z", "X")), P(), "all-gather", ("Z", "X"), BLOCK * 3 // 4),
        (lambda x: lax.psum(x, ("X", "Z")), P(), P(), "all-reduce", ("X", "Z"), 2 * BLOCK * 3 // 4),
        (lambda x: lax.psum_scatter(x, "X", scatter_dimension=1, tiled=True), P(), P(None, "X"), "reduce-scatter", ("X",), BLOCK // 2),
        (lambda x: lax.all_to_all(x, ("Y", "X"), 0, 1, tiled=True), P(None, ("Y", "X")), P(("Y", "X")), "all-to-all", ("Y", "X"), BLOCK // 4 * 3 // 4),
        (lambda x: lax.ppermute(x, ("X", "Y", "Z"), [(i, i ^ 4) for i in range(8)]), P("X"), P("X"), "permute", ("X",), BLOCK // 2),
    ],
    ids=["gather", "gather two axes", "all-reduce", "reduce-scatter", "all-to-all", "permute"],
)  # fmt: skip
def test_each_kind_on_its_axes_with_its_bytes(f, ins, out, kind, axes, nbytes):
    found = collectives_of(compiled(f, ins, out, (64, 32)), MESH)
    assert [(c.kind, c.axes, c.bytes, c.trips) for c in found] == [(kind, axes, nbytes, 1)]
    assert found[0].dtype == "fp32" and found[0].group_size == 2 ** len(axes)


def auto(f, ins, out, *shapes):
    mesh = lab.jax_mesh(MESH)
    place = [NamedSharding(mesh, s) for s in ins]
    lowered = jax.jit(f, in_shardings=tuple(place), out_shardings=NamedSharding(mesh, out))
    return collectives_of(lowered.lower(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes)).compile(), MESH)


def test_a_pending_sum_of_which_each_device_keeps_its_slice_is_a_reduce_scatter():
    one = auto(jnp.matmul, (P("X", "Y"), P("Y")), P("X", ("Y", "Z")), (64, 32), (32, 32))
    assert [(c.kind, c.opcode, c.axes, c.bytes) for c in one] == [("reduce-scatter", "all-reduce", ("Y",), 32 * 32 * 4 // 2)]


def test_a_pending_sum_sliced_over_another_axis_stays_an_all_reduce():
    # every device of a Y group keeps the same slice: nothing is scattered
    one = auto(lambda a, b: a @ b, (P("X", "Y"), P("Y")), P("X", "Z"), (64, 32), (32, 32))
    kinds = {c.kind for c in one if c.axes == ("Y",)}
    assert kinds == {"all-reduce"}
    text = SLICED.replace("u32[8]{0} constant({0, 1, 0, 1, 0, 1, 0, 1})", "u32[8]{0} constant({0, 0, 1, 1, 0, 0, 1, 1})")
    assert [c.kind for c in collectives_of(SLICED)] == ["reduce-scatter"]
    assert [c.kind for c in collectives_of(text)] == ["all-reduce"]


def test_a_pending_sum_that_is_also_used_whole_stays_an_all_reduce():
    also = "  ROOT %t = (f32[32,16]{1,0}, f32[32,32]{1,0}) tuple(%s, %r)"
    text = SLICED.replace("ROOT %s = ", "%s = ").replace("  // end", also)
    assert [c.kind for c in collectives_of(text)] == ["all-reduce"]


SLICED = """HloModule m, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %main (p: f32[32,32]) -> f32[32,16] {
  %p = f32[32,32]{1,0} parameter(0)
  %id = u32[] partition-id()
  %table = u32[8]{0} constant({0, 1, 0, 1, 0, 1, 0, 1})
  %one = u32[1]{0} dynamic-slice(%table, %id), dynamic_slice_sizes={1}
  %at = s32[1]{0} convert(%one)
  %width = s32[1]{0} constant({16})
  %start = s32[1]{0} multiply(%at, %width)
  %offset = s32[] bitcast(%start)
  %zero = s32[] constant(0)
  %r = f32[32,32]{1,0} all-reduce(%p), channel_id=1, replica_groups=[4,2]<=[8], use_global_device_ids=true, to_apply=%add
  ROOT %s = f32[32,16]{1,0} dynamic-slice(%r, %zero, %offset), dynamic_slice_sizes={32,16}
  // end
}
"""


def test_a_collective_in_a_loop_runs_as_often_as_the_loop():
    def f(x):
        return lax.fori_loop(0, 5, lambda i, y: lax.psum(y, "X") * 0.5, x)

    found = collectives_of(compiled(f, P(), P(), (64, 32)), MESH)
    assert [(c.kind, c.bytes, c.trips) for c in found] == [("all-reduce", BLOCK, 5)]
    assert total_bytes(found) == 5 * BLOCK


def test_a_loop_of_unknown_length_gives_no_total():
    def f(x):
        return lax.while_loop(lambda y: jnp.max(y) > 1, lambda y: lax.psum(y, "X") * 0.25, x)

    found = collectives_of(compiled(f, P(), P(), (64, 32)), MESH)
    assert [c.trips for c in found if c.kind == "all-reduce" and c.shape == (64, 32)] == [None]
    assert total_bytes(found) is None


TPU = """HloModule jit_f, is_scheduled=true, num_partitions=8

%fused.1 (p.0: bf16[1024,512]) -> bf16[1024,4096] {
  %p.0 = bf16[1024,512]{1,0:T(8,128)(2,1)S(1)} parameter(0)
  ROOT %ag.1 = bf16[1024,4096]{1,0:T(8,128)(2,1)} all-gather(bf16[1024,512]{1,0:T(8,128)(2,1)S(1)} %p.0), channel_id=7, replica_groups=[1,8]<=[8], dimensions={1}
}

%fused.2 (p.2: bf16[1024,512]) -> bf16[1024,4096] {
  %p.2 = bf16[1024,512]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT %ag.2 = bf16[1024,4096]{1,0:T(8,128)(2,1)} all-gather(%p.2), channel_id=7, replica_groups=[1,8]<=[8], dimensions={1}
}

%wrapped (w: bf16[256,128]) -> bf16[32,128] {
  %w = bf16[256,128]{1,0} parameter(0)
  ROOT %rs = bf16[32,128]{1,0} reduce-scatter(%w), channel_id=9, replica_groups=[1,8]<=[8], dimensions={0}, to_apply=%add
}

ENTRY %main (x: bf16[1024,512], w: bf16[256,128]) -> bf16[1024,4096] {
  %x = bf16[1024,512]{1,0:T(8,128)(2,1)} parameter(0), metadata={op_name="args[0] (\\"a\\")"}
  %w = bf16[256,128]{1,0} parameter(1)
  %f.1 = bf16[1024,4096]{1,0} fusion(%x), kind=kCustom, calls=%fused.1
  %f.2 = bf16[1024,4096]{1,0} fusion(%x), kind=kCustom, calls=%fused.2
  %gs = (bf16[1024,512]{1,0}, bf16[2048,512]{1,0}) all-gather-start(%x), channel_id=1, replica_groups=mesh['a'=4,'b'=2] {'b'}, dimensions={0}
  %gd = bf16[2048,512]{1,0} all-gather-done(%gs)
  %ps = (bf16[1024,512]{1,0}, bf16[1024,512]{1,0}, u32[]{:S(2)}, u32[]{:S(2)}) collective-permute-start(%x), channel_id=2, source_target_pairs={{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7},{7,0}}
  %pd = bf16[1024,512]{1,0} collective-permute-done(%ps)
  %rsum = bf16[1024,512]{1,0} all-reduce-start(%x), channel_id=3, replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%add
  %rd = bf16[1024,512]{1,0} all-reduce-done(%rsum)
  %two = (bf16[8,8]{1,0}, /*index=1*/f32[16]{0}) all-reduce(%c, %d), channel_id=4, replica_groups={}, to_apply=%add
  %as = ((bf16[256,128]{1,0}), bf16[32,128]{1,0}, s32[]) async-start(%w), calls=%wrapped
  %ad = bf16[32,128]{1,0} async-done(%as), calls=%wrapped
  %alone = bf16[1024,512]{1,0} all-reduce(%x), channel_id=5, replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}}, to_apply=%add
  ROOT %out = bf16[1024,4096]{1,0} add(%f.1, %f.2)
}
"""


def test_text_in_the_manner_of_accelerators():
    X = 1024 * 512 * 2
    found = {c.channel_id: c for c in collectives_of(TPU, {"X": 4, "Y": 2})}
    assert len(found) == len(collectives_of(TPU)) == 6  # one channel in two fusions counts once; groups of one do not count
    got = {n: (c.kind, c.bytes, c.axes, c.asynchronous, c.fused) for n, c in found.items()}
    assert got == {
        7: ("all-gather", 1024 * 4096 * 2 * 7 // 8, ("X", "Y"), False, True),
        9: ("reduce-scatter", 32 * 128 * 2 * 7, ("X", "Y"), True, False),
        1: ("all-gather", X, ("Y",), True, False),
        2: ("permute", X, ("X", "Y"), True, False),
        3: ("all-reduce", 2 * X * 3 // 4, ("X1", "Y"), True, False),
        4: ("all-reduce", 2 * (8 * 8 * 2 + 16 * 4) * 7 // 8, ("X", "Y"), False, False),
    }
    assert by_kind(tuple(found.values())) == {"all-gather": 2, "reduce-scatter": 1, "permute": 1, "all-reduce": 2}
    assert str(found[1]).replace("\u00a0", " ") == "all-gather over Y in groups of 2: 1.05 MB received per device"


def test_shapes_and_their_bytes():
    assert [Array(t, (3, 5)).bytes for t in ("f32", "bf16", "f8e4m3fn", "s4", "pred", "u64", "c64")] == [
        60,
        30,
        15,
        8,
        15,
        120,
        120,
    ]
    assert [Array(t, ()).dtype for t in ("f32", "bf16", "s8", "u32")] == ["fp32", "bf16", "int8", "u32"]
    program = parse(TPU)
    assert program.entry == "main" and program.devices == 8
    start = program.instruction("main", "ps")
    assert start is not None and [str(a) for a in start.shape[:2]] == ["bf16[1024,512]"] * 2 and start.operands == ("x",)


def reduced(header="", groups="replica_groups={}", array="f32[8,8]"):
    return f"""HloModule m{header}

ENTRY %main (p: {array}) -> {array} {{
  %p = {array}{{1,0}} parameter(0)
  ROOT %r = {array}{{1,0}} all-reduce(%p), channel_id=1, {groups}, to_apply=%add
}}
"""


@pytest.mark.parametrize("groups", ["replica_groups={}", "replica_groups={{}}", "use_global_device_ids=true"])
def test_a_collective_without_groups_is_of_all_devices(groups):
    by_text = collectives_of(reduced(", num_partitions=4", groups))
    assert [(c.kind, c.bytes, c.group_size) for c in by_text] == [("all-reduce", 2 * 8 * 8 * 4 * 3 // 4, 4)]
    by_mesh = collectives_of(reduced("", groups), {"X": 2, "Y": 4})
    assert [(c.bytes, c.group_size, c.axes) for c in by_mesh] == [(2 * 8 * 8 * 4 * 7 // 8, 8, ("X", "Y"))]
    assert collectives_of(reduced(", num_partitions=1", groups)) == collectives_of(reduced("", groups), {"X": 1}) == ()
    with pytest.raises(ScalebookError, match=r"all-reduce %r runs over all devices together.*give `mesh`"):
        collectives_of(reduced("", groups))


def test_a_dtype_that_is_none_is_not_counted_as_nothing():
    with pytest.raises(ScalebookError, match=r"unknown dtype 'zz' in zz\[8,8\]"):
        collectives_of(reduced(", num_partitions=4", array="zz[8,8]"))
    for name in ("zz", "f", "f33", "b16", "s8x", "floats"):
        with pytest.raises(ScalebookError, match=f"unknown dtype '{name}'"):
            _ = Array(name, (2,)).bytes
    known = {"f8e5m2fnuz": 8, "f8e4m3b11fnuz": 8, "f8e8m0fnu": 8, "f4e2m1fn": 4, "u2": 2, "c128": 128, "token": 0}
    assert [Array(t, (16,)).bytes for t in known] == [2 * bits for bits in known.values()]


@pytest.mark.parametrize("devices", [", num_partitions=999999999", ""])
def test_more_devices_than_there_are_is_said_at_once(devices):
    with pytest.raises(MeshError, match="up to 4,194,304 devices"):
        collectives_of(reduced(devices), {"X": 2} if devices else {"X": 10**12 + 39})


@pytest.mark.parametrize("what", [None, 5, b"HloModule", len, object, [1], {}], ids=str)
def test_what_is_no_compiled_function_is_refused(what):
    with pytest.raises(ScalebookError, match=r"compiled function or its text is needed.*found .*of type"):
        collectives_of(what)


def test_what_is_no_program_is_refused():
    with pytest.raises(ScalebookError, match="no ENTRY computation"):
        collectives_of("hello")
    with pytest.raises(ScalebookError, match="compiled function or its text"):
        collectives_of(type("X", (), {"as_text": lambda self: None})())
