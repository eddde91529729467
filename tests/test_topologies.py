"""Machines: chips, hosts, wraparound, rates of the axes, and what is refused."""

import dataclasses
import itertools
import math
import re
import string

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import scalebook as sb
from scalebook.errors import HardwareError, TopologyError
from scalebook.slices import offer_of
from scalebook.wiring import Piece, segment

GB = 1e9


def axes(t):
    return {a.name: a for a in t.physical_axes}


# ---- counts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "canonical", "chips", "devices", "hosts"),
    [
        ("v5p-8", "v5p:2x2x1", 4, 4, 1),  # GoogleCloudPlatform/cluster-toolkit#6128 made it 2x2x2
        ("v5p-32", "v5p:2x2x4", 16, 16, 4),
        ("v4-2048", "v4:8x8x16", 1024, 1024, 256),  # marin-community/levanter#1202
        ("v5litepod-64", "v5e:8x8", 64, 64, 16),
        ("v5litepod-8", "v5e:2x4", 8, 8, 1),  # one machine of 8 chips
        ("v5litepod-16", "v5e:4x4", 16, 16, 4),  # four machines of 4
        ("v4-384", "v4:4x4x12", 192, 192, 48),
        ("v3-32", "v3:4x4", 16, 32, 4),
        ("v2-512", "v2:16x16", 256, 512, 64),
        ("tpu7x-128", "tpu7x:4x4x4", 64, 128, 16),
        ("v6e-8", "v6e:2x4", 8, 8, 1),
        ("v5e:1x1", "v5e:1x1", 1, 1, 1),
        ("v5p:16x20x28", "v5p:16x20x28", 8960, 8960, 2240),
        ("h100:16x8", "h100:16x8", 128, 128, 16),
        ("h100:1x4", "h100:1x4", 4, 4, 1),
        ("gb200:8x72", "gb200:8x72", 576, 576, 144),  # four GPUs a host (C25)
        ("gb200:8x64", "gb200:8x64", 512, 512, 128),
        ("a100-40gb:2x8", "a100-40gb:2x8", 16, 16, 2),
        ("t4:1x1", "t4:1x1", 1, 1, 1),
    ],
)
def test_chips_devices_and_hosts(spec, canonical, chips, devices, hosts):
    t = sb.topology(spec)
    assert (t.spec, t.chips, t.devices, t.hosts) == (canonical, chips, devices, hosts)


def test_slices_multiply():
    t = sb.topology("v5e:16x16", num_slices=4)
    assert (t.chips, t.hosts, t.num_slices, t.shape, axes(t)["dcn"].size) == (1024, 256, 4, (16, 16), 4)
    assert sb.topology(t) is t and sb.topology("v5e:16x16", 4) == t != sb.topology("v5e:16x16")
    assert sb.topology(sb.topology("v5e:16x16"), num_slices=4) == t


EVERY = [f"{k}:{'x'.join(map(str, s))}" for k in ("v2", "v3", "v4", "v5e", "v5p", "v6e", "tpu7x") for s in offer_of(k).listed]
EVERY += ["8t:4x4x4", "h100:1x8", "h100:3x8", "gb200:2x72", "gb300:1x8", "mi300x:1x2", "mi355x:4x8", "l4:2x4", "v100:1x1"]


@pytest.mark.parametrize("spec", EVERY)
@pytest.mark.parametrize("slices", [1, 3])
def test_laws_of_every_machine(spec, slices):
    t = sb.topology(spec, slices if spec[0] in "v8t" and not spec.startswith("v100") else 1)
    assert t.devices == math.prod(a.size for a in t.physical_axes)
    assert t.chips == math.prod(t.shape) * t.num_slices
    assert sb.topology(t.spec, t.num_slices) == t and hash(t) == hash(sb.topology(t.spec, t.num_slices))
    assert 1 <= t.hosts <= t.chips
    assert len(t.wraparound) == (t.chip.torus_dims or 0)
    for axis in t.physical_axes:
        assert axis.kind in ("ring", "line", "switch") and axis.hop_latency_s >= 0 and axis.launch_latency_s >= 0
        assert axis.bytes_per_s is None or axis.bytes_per_s > 1e9
    assert t.spec in t.explain() and all(a.name in t.explain() for a in t.physical_axes)


# ---- wraparound ---------------------------------------------------------------------------------------------------------

MESH, TORUS = (False, False, False), (True, True, True)


@pytest.mark.parametrize(
    ("spec", "wraps", "status"),
    [
        ("v5e:16x16", (True, True), "single"),
        ("v5e:8x16", (False, True), "single"),
        ("v5e:8x8", (False, False), "single"),
        ("v6e:4x4", (False, False), "single"),
        ("v6e:16x16", (True, True), "single"),
        ("v5p:2x2x1", MESH, "vendor+"),
        ("v5p:2x2x4", MESH, "vendor+"),
        ("v5p:2x4x4", MESH, "vendor+"),
        ("v5p:4x4x4", TORUS, "vendor+"),
        ("v5p:8x8x16", TORUS, "vendor+"),
        ("v5p:4x4x12", TORUS, "vendor+"),
        ("v4:2x4x4", MESH, "vendor+"),
        ("v4:4x4x4", TORUS, "vendor+"),
        ("tpu7x:2x2x2", MESH, "assumed"),
        ("tpu7x:4x4x8", TORUS, "assumed"),
        ("v3:16x32", (False, True), "assumed"),
        ("v3:32x32", (True, True), "assumed"),
        ("v2:16x16", (True, True), "assumed"),
    ],
)
def test_wraparound(spec, wraps, status):
    t = sb.topology(spec)
    assert (t.wraparound, t.wraparound_status) == (wraps, status)
    kinds = tuple(a.kind for a in t.physical_axes if a.name.startswith("ici"))
    assert kinds == tuple("ring" if w else "line" for w in wraps)
    if status == "assumed":
        assert any(n.startswith("wraparound: ") for n in t.notes)


# ---- rates of the axes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "names", "rates"),
    [
        ("v5p:8x8x16", ["dcn", "ici0", "ici1", "ici2"], [5.0, 90, 90, 90]),
        ("v5e:4x8", ["dcn", "ici0", "ici1"], [2.5, 45, 45]),
        ("v6e:16x16", ["dcn", "ici0", "ici1"], [10, 90, 90]),
        ("tpu7x:2x2x1", ["dcn", "ici0", "ici1", "ici2", "core"], [5, 45, 45, 45, 540]),  # two devices share the links
        ("v3:4x4", ["dcn", "ici0", "ici1", "core"], [None, 41.5, 41.5, None]),
        ("v2:4x4", ["dcn", "ici0", "ici1", "core"], [None, None, None, None]),
        ("h100:16x8", ["network", "nvlink"], [47.5, 369]),  # 400 Gb/s × 0.95, 18 × 25 × 0.82
        ("h200:2x8", ["network", "nvlink"], [48.5, 369]),
        ("b200:2x8", ["network", "nvlink"], [47.5, 846]),
        ("a100:2x8", ["network", "nvlink"], [21.25, 234]),
        ("gb200:2x72", ["network", "nvlink"], [47.5, 846]),
        ("mi300x:2x8", ["network", "fabric"], [47.5, 313.6]),
        ("mi300x:1x2", ["network", "fabric"], [47.5, 44.8]),  # no switch: one link to one neighbour; measured 47.7
        ("l4:1x4", ["network", "pcie"], [None, None]),
    ],
)
def test_axes_and_their_rates(spec, names, rates):
    t = sb.topology(spec)
    assert [a.name for a in t.physical_axes] == names
    for axis, rate in zip(t.physical_axes, rates, strict=True):
        assert axis.bytes_per_s == (None if rate is None else pytest.approx(rate * GB))
        assert (axis.status == "unknown") == (rate is None)


def test_the_measured_all_gather_of_tpu7x_is_reached():
    """Google's table: 178.8 GB/s into each chip over the two links of a 2x2x1. Two devices, two links each."""
    t = sb.topology("tpu7x:2x2x1")
    into_a_chip = 2 * sum(a.bytes_per_s for a in t.physical_axes if a.name.startswith("ici") and a.size > 1)
    assert into_a_chip == pytest.approx(178.8e9, rel=0.01)
    assert axes(t)["ici0"].launch_latency_s == 13.2e-6


def test_latencies_and_their_notes():
    t = sb.topology("v5p:4x4x4")
    assert (axes(t)["ici0"].hop_latency_s, axes(t)["ici0"].launch_latency_s) == (1e-6, 0.0)
    assert any("launch_latency_s of TPU v5p is not known and taken as 0" in n for n in t.notes)
    assert any("hop_latency_s of TPU v5p is assumed" in n for n in t.notes)
    assert not any("dcn_hop" in n for n in t.notes)
    assert any("dcn_hop_latency_s of TPU v5p is not known" in n for n in sb.topology("v5p:4x4x4", 2).notes)
    g = axes(sb.topology("h100:2x8"))
    assert (g["nvlink"].hop_latency_s, g["network"].hop_latency_s, g["nvlink"].launch_latency_s) == (0.6e-6, 2.7e-6, 6.6e-6)


def test_what_is_not_in_a_vendors_list_is_marked():
    assert sb.topology("v5p:12x16x20").verified and sb.topology("tpu7x:16x24x24").verified and sb.topology("v4:4x16x16").verified
    for spec, why in (("8t:4x4x4", "no list of slice shapes is known"), ("tpu7x:4x8x16", "not in the vendor's list")):
        t = sb.topology(spec)
        assert not t.verified and any("unverified" in n and why in n for n in t.notes)
    assert any("at most 6,144 chips" in n for n in sb.topology("v5p:16x20x28").notes)
    assert any("twisted" in n for n in sb.topology("v4:4x8x8").notes) and not any(
        "twisted" in n for n in sb.topology("v4:8x8x8").notes
    )
    assert any(
        "8x8x16, the shape most like a cube (also offered: 4x4x64, 4x8x32, 4x16x16)" in n for n in sb.topology("v4-2048").notes
    )


# ---- bisection ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spec", "rel"), [("v5e:16x16", 1e-9), ("v6e:16x16", 1e-9), ("v4:16x16x16", 0.07), ("v3:32x32", 0.18)])
def test_bisection_of_a_pod_is_the_vendors(spec, rel):
    """v4 and v3 differ by what the two published figures of a pod differ from each other (C05)."""
    t = sb.topology(spec)
    assert t.bisection_bytes_per_s == pytest.approx(t.chip.pod_bisection_bytes_per_s, rel=rel)


@pytest.mark.parametrize(
    "spec", ["v5e:4x8", "v5e:8x16", "v5e:16x16", "v5p:2x2x1", "v5p:2x4x4", "v5p:4x4x8", "v4:4x4x4", "v3:2x2"]
)
def test_bisection_counts_the_links_of_the_narrowest_middle_cut(spec):
    t = sb.topology(spec)
    cuts = []
    for cut, size in enumerate(t.shape):
        crossing = 0
        for at in itertools.product(*map(range, t.shape)):
            for axis, n in enumerate(t.shape):
                if n == 1 or (at[axis] == n - 1 and not t.wraparound[axis]):
                    continue
                there = [*at]
                there[axis] = (at[axis] + 1) % n
                crossing += (at[cut] < size // 2) != (there[cut] < size // 2)
        if size > 1:
            cuts.append(crossing)
    assert t.bisection_bytes_per_s == min(cuts) * t.chip.link_bytes_per_s


def test_no_bisection_where_none_is_meant():
    assert [sb.topology(s).bisection_bytes_per_s for s in ("v5e:1x1", "v2:4x4", "h100:2x8")] == [None, None, None]


# ---- how it is written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        "v5p:8x8x16",
        " V5P : 8X8X16 ",
        "TPU v5p 8x8x16",
        "v5p-8x8x16",
        "tpu_v5p:8×8×16".replace("×", "x"),
        "v5p:8 x 8 x 16",
        "v5p:8×8×16",
    ],
)
def test_sloppy_spelling(spec):
    assert sb.topology(spec) == sb.topology("v5p:8x8x16")


@pytest.mark.parametrize(
    ("spec", "kind", "texts"),
    [
        ("v5e:3x5", TopologyError, ["'v5e:3x5'", "no TPU v5e slice 3x5", "Offered: 1x1, 2x2", "Nearest: v5e:4x4"]),
        ("v5e:16x32", TopologyError, ["no TPU v5e slice 16x32", "v5e:16x16"]),
        ("v5p:6x6x6", TopologyError, ["A ≤ B ≤ C in multiples of 4 up to 8,960 chips", "Nearest: v5p:4x8x8"]),
        ("v5p:16x24x24", TopologyError, ["no TPU v5p slice 16x24x24", "v5p:16x20x28"]),
        ("v4:16x16x20", TopologyError, ["no TPU v4 slice", "v4:16x16x16"]),
        ("v5e:16x8", TopologyError, ["this slice is written v5e:8x16", "any order"]),
        ("v5p:2x1x2", TopologyError, ["written v5p:2x2x1"]),
        ("v5e:4x4x4", TopologyError, ["has 2 dimensions, 4x4x4 has 3", "Nearest: v5e:8x8"]),
        ("v5p:8x8", TopologyError, ["has 3 dimensions, 8x8 has 2", "Nearest: v5p:4x4x4"]),
        ("v5p:8", TopologyError, ["'v5p:8'", "every dimension", "product named v5p-8 is written with a hyphen"]),
        ("v5p-7", TopologyError, ["'v5p-7'", "counts TensorCores, 2 a chip", "Nearest: v5p-8"]),
        ("v5litepod-12", TopologyError, ["counts chips", "no TPU v5e slice has 12"]),
        ("8i:4x4", TopologyError, ["TPU 8i is not wired as a torus", "Boardfly"]),
        ("8t:100x100x100", TopologyError, ["1,000,000 chips", "pod has 9,600"]),
        ("h100:2x4", TopologyError, ["nodes of H100 SXM have 8 GPUs", "one node only", "Nearest: h100:1x8 or h100:2x8"]),
        ("h100:1x16", TopologyError, ["have 8 GPUs", "h100:2x8"]),
        ("h100:8", TopologyError, ["nodes x GPUs", "'h100:1x8'"]),
        ("h100-8", TopologyError, ["'h100-8'", "'h100:1x8'"]),
        ("h100:2x2x2", TopologyError, ["nodes x GPUs", "found 2x2x2"]),
        ("gb200:2x6", TopologyError, ["has 72 GPUs, 4 a host", "multiples of 4"]),
        ("gb200:1x73", TopologyError, ["72 GPUs"]),
        ("v5e:0x4", TopologyError, ["every number of 0x4 is from 1 to 1,000,000"]),
        ("v5e:4x99999999", TopologyError, ["4x99999999"]),
        ("v9:4x4", HardwareError, ["'v9:4x4'", "unknown chip 'v9'", "Known: v2"]),
        ("v5e", TopologyError, ["cannot read 'v5e'", "chip:shape"]),
        ("v5e:4xx4", TopologyError, ["cannot read 'v5e:4xx4'"]),
        ("v5e:-4x4", TopologyError, ["cannot read 'v5e:-4x4'"]),
        ("", TopologyError, ["cannot read ''"]),
        ("4x4", TopologyError, ["cannot read '4x4'"]),
        ("v" * 500, TopologyError, ["cannot read 'vvvv"]),
        (16, TopologyError, ["given as text", "found 16"]),
    ],
)
def test_what_cannot_be_had_is_refused_in_so_many_words(spec, kind, texts):
    with pytest.raises(kind) as error:
        sb.topology(spec)
    for text in texts:
        assert text in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("slices", [0, -1, 1.5, "2", True, np.float64(2), 1025, 999_999_937, 10**30])
def test_num_slices_is_a_whole_number(slices):
    with pytest.raises(
        TopologyError, match="num_slices is a whole number from 1 to 1,024; found " + re.escape(repr(slices)[:20])
    ):
        sb.topology("v5e:4x4", slices)
    with pytest.raises(
        TopologyError, match="num_slices is a whole number from 1 to 1,024; found " + re.escape(repr(slices)[:20])
    ):
        sb.topology(sb.topology("v5e:4x4"), slices)


def test_a_machine_is_given_back_or_made_again_with_other_slices():
    one, two = sb.topology("v5e:4x4"), sb.topology("v5e:4x4", 2)
    assert sb.topology(two) is sb.topology(two, 2) is two and sb.topology(one, None) is one
    assert sb.topology(two, 1) == sb.topology(two, num_slices=np.int64(1)) == one  # asked for, so not ignored
    assert sb.topology(one, np.int32(2)) == two == sb.topology("v5e:4x4", np.int64(2)) and type(two.num_slices) is int
    slower = dataclasses.replace(one, chip=dataclasses.replace(one.chip, link_bytes_per_s=1e9))
    assert axes(sb.topology(slower, 2))["ici0"].bytes_per_s == pytest.approx(1e9 * one.chip.link_efficiency)


def test_machines_and_chips_are_shown_in_a_few_words():
    assert repr(sb.topology("v5p:8x8x16")) == "<machine v5p:8x8x16: 1,024 chips, 1,024 devices, 256 hosts>"
    assert repr(sb.topology("v5e:4x4", 2)) == "<machine v5e:4x4, 2 slices: 32 chips, 32 devices, 8 hosts>"
    assert repr(sb.chip("v5e")) == "<chip v5e: TPU v5e, 197 TFLOPs/s bf16, 16 GiB at 819 GB/s>"
    for c in sb.chips():
        assert len(repr(c)) < 90 and c.name in repr(c)
    for call in (lambda: sb.topology(sb.chip("v5p")), lambda: sb.mesh({"X": 4}, on=sb.chip("v5p"))):
        with pytest.raises(TopologyError, match="found <chip v5p: TPU v5p") as error:
            call()
        assert len(str(error.value)) < 200


# ---- a full mesh in place of a switch -----------------------------------------------------------------------------------


def test_a_group_in_a_full_mesh_has_only_the_links_to_its_members():
    """MI300X: 7 links of 64 GB/s × 0.7, one to each other GPU of the node."""
    m, link = sb.mesh({"A": 4, "X": 2}, on="mi300x:1x8"), 64e9 * 0.7
    pair, four = sb.all_gather(2**30, m, "X"), sb.all_gather(2**30, m, "A")
    assert pair.comms - pair.latency == pytest.approx(2**29 / link)
    assert four.comms - four.latency == pytest.approx(2**28 / link)  # each block over a link of its own
    whole = sb.all_gather(2**30, m, "AX")
    assert whole.comms - whole.latency == pytest.approx(2**27 / link)
    assert [m.bytes_per_s(a) / link for a in ("X", "A", "AX")] == pytest.approx([1, 3, 7])
    shifted = sb.permute(2**30, m, "A")  # to one other device: one link
    assert shifted.comms - shifted.latency == pytest.approx(2**28 / link)
    for kind, axis, t in (("all-gather", "X", pair), ("all-gather", "A", four), ("permute", "A", shifted)):
        assert sb.simulate(kind, m.segments(axis), 2**30).seconds == pytest.approx(t.comms)


@pytest.mark.parametrize("spec", ["mi300x:2x8", "mi325x:1x8", "mi355x:1x4", "h100:1x8"])
@pytest.mark.parametrize("n", [2, 4])
def test_a_piece_of_a_switch_keeps_its_port_and_a_piece_of_a_mesh_does_not(spec, n):
    t = sb.topology(spec)
    inside = t.physical_axes[-1]
    piece = segment(Piece(inside.name, n), inside)
    if t.chip.vendor == "NVIDIA":
        assert piece.bytes_per_s == inside.bytes_per_s and piece.peer_bytes_per_s is None
    else:
        assert piece.bytes_per_s == pytest.approx(inside.bytes_per_s * (n - 1) / (inside.size - 1))
    assert piece.kind == "switch" and segment(Piece(inside.name, inside.size), inside).bytes_per_s == inside.bytes_per_s


def test_gpus_have_no_slices():
    with pytest.raises(TopologyError, match="num_slices=2: slices are of TPUs; more GPU nodes go into the shape"):
        sb.topology("h100:2x8", 2)


# ---- fuzz ---------------------------------------------------------------------------------------------------------------

KEYS = [c.key for c in sb.chips()]
SPECS = st.one_of(
    st.text(max_size=30),
    st.text(alphabet=string.digits + "xv5ep:-_ h100", max_size=20),
    st.builds(
        lambda k, sep, s: k + sep + "x".join(map(str, s)),
        st.sampled_from(KEYS),
        st.sampled_from(":- "),
        st.lists(st.integers(0, 40), max_size=4),
    ),
)


@given(SPECS, st.integers(1, 3))
@settings(max_examples=300, deadline=None)
@example("v5p:٤x٤x٤", 1)
@example("v5e:4x4\n", 1)
@example("a" * 79 + " ", 1)
@example(" " * 80, 1)
def test_any_text_is_a_machine_or_a_named_error(spec, slices):
    try:
        t = sb.topology(spec, slices)
    except (TopologyError, HardwareError) as error:
        assert repr(spec)[1:10] in str(error)  # the offending piece is in the message
        for near in re.findall(r"[a-z0-9-]+:\d+(?:x\d+)+", str(error).partition("Nearest: ")[2]):
            assert sb.topology(near).spec == near  # what is advised can be had
    else:
        assert t.devices == math.prod(a.size for a in t.physical_axes) and sb.topology(t.spec, t.num_slices).shape == t.shape
