"""Questions that people really asked about machines, collectives and layouts: the library's answer is the right one.

`data/cases.jsonl` has one question a line with its source, the right value and how it is derived. What jax itself says to the
sharding errors is in lab/test_cases_jax.py.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import scalebook as sb
from scalebook.bandwidths import bus_bandwidth
from scalebook.errors import HardwareError, MeshError, SizeError
from scalebook.resharding import reshard
from scalebook.units import ceil_div, round_up

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case for case in map(json.loads, (Path(__file__).parent / "data" / "cases.jsonl").read_text("utf-8").splitlines())
}
LAB = {"shard-explicit-mesh-default"}  # only jax can answer
MIB, GIB = 2**20, 2**30


def right(case: str) -> dict[str, Any]:
    return dict(CASES[case]["right_value"])


def test_every_case_is_answered_and_sourced() -> None:
    mine = Path(__file__).read_text("utf-8")
    jaxed = (Path(__file__).parent / "lab" / "test_cases_jax.py").read_text("utf-8")
    assert [i for i in CASES if mine.count(f'right("{i}")') + jaxed.count(f'"{i}"') == 0] == []
    assert all(c["source_url"].startswith(("https://", "measured: jax")) for c in CASES.values())
    assert len(CASES) >= 20 and set(CASES) >= LAB


# ---- collectives --------------------------------------------------------------------------------------------------------


def test_eight_h100s_gather_at_360_of_450_not_of_900() -> None:
    want = right("nccl-h100-360")
    h100 = sb.chip("h100")
    assert h100.links and h100.link_bytes_per_s
    assert h100.links * h100.link_bytes_per_s == want["line_rate_one_way"] * 1e9
    V = 16 * GIB
    t = sb.all_gather(V, sb.mesh({"X": 8}, on="h100:1x8"), "X")
    low, high = want["achievable"]
    assert low * 0.99 < bus_bandwidth("all-gather", V, t.comms, 8) / 1e9 < high * 1.01


def test_bus_bandwidth_of_an_all_reduce_in_the_switch_exceeds_the_line_rate() -> None:
    want = right("nccl-h100-allreduce-nvls")
    V = 8 * GIB
    assert bus_bandwidth("all-reduce", V, V / 275e9, 8) / 1e9 == pytest.approx(want["busbw"])
    h100 = sb.chip("h100")
    assert h100.links and h100.link_bytes_per_s
    assert (
        want["busbw"] * 1e9 > h100.links * h100.link_bytes_per_s
    )  # so bytes did not all cross the wires twice: the switch added
    ring = sb.all_reduce(V, sb.mesh({"X": 8}, on="h100:1x8"), "X")  # without it
    assert 360 < bus_bandwidth("all-reduce", V, ring.comms, 8) / 1e9 < 370


def test_expert_parallelism_moves_tokens_four_times_a_layer() -> None:
    """Two all-to-alls forward, two backward; each holds tokens · k · h on every one of 8 devices, and 7/8 of it leaves."""
    tokens, k, h, devices = 8192, 2, 8192, 8
    one = sb.all_to_all(devices * tokens * k * h * 2, {"X": devices}, "X")
    assert 4 * one.bytes / 1e9 == pytest.approx(right("ep-all-to-all-volume")["GB"], rel=1e-4)
    # the same from the notation: tokens are split, then experts
    slots = {"E": devices, "C": devices * tokens * k // devices, "D": h}
    moved = reshard("x[E, C_X, D] -> x[E_X, C, D]", slots, {"X": devices})
    assert [m.kind for m in moved.collectives] == ["all-to-all"] and moved.bytes == one.bytes


def test_700_of_2000_gb_per_s_is_35_per_cent() -> None:
    one_second = sb.Work({"hbm": 700e9}).over({"hbm": 2e12})
    assert one_second.hbm == pytest.approx(right("mbu-aie-book")["mbu"])


# ---- layouts ------------------------------------------------------------------------------------------------------------


def test_sizes_of_single_arrays_in_a_report_of_the_compiler() -> None:
    want = right("hbm-gemma7b-tpu-v2v3")
    sizes = {"V": 256_000, "D": 3072, "F": 24_576}
    assert sb.sharding("E[V, D]").bytes_per_device(sizes, {}) / GIB == pytest.approx(want["embedding_gib"], abs=5e-5)
    assert sb.sharding("W[D, F]").bytes_per_device(sizes, {}) / MIB == want["ffn_matrix_mib"]
    core = sb.chip("v3").hbm_usable_bytes_per_device  # 15.48 GiB: less than the arguments, so no smaller batch helps
    assert core is not None and core / GIB == pytest.approx(15.48, abs=0.005) and core < want["arguments_gib"] * GIB


def test_five_elements_do_not_go_on_four_devices() -> None:
    want = right("shard-arange5-out")
    with pytest.raises(SizeError, match=r"5 is not a multiple of 4"):
        sb.sharding("x[I_X]").local_shape({"I": 5}, {"X": 4, "Y": 2})
    padded = round_up(5, 4)
    assert f"pad to {padded}" in want["remedy"]
    assert sb.sharding("x[I_X]").local_shape({"I": padded}, {"X": 4, "Y": 2}) == (2,)
    assert sb.sharding("x[I]").local_shape({"I": 5}, {"X": 4, "Y": 2}) == (5,)


def test_a_batch_of_one_does_not_go_on_eight_devices() -> None:
    want = right("shard-map-batch1")
    mesh, sizes = {"dp": 1, "fsdp": 8, "sp": 1, "tp": 1}, {"B": 1, "S": 2560, "N": 32, "H": 128}
    with pytest.raises(SizeError, match=r"1 is not a multiple of 8"):
        sb.sharding("q[B_{dp,fsdp}, S_{sp}, N_{tp}, H]").local_shape(sizes, mesh)
    assert "sp or tp" in want["fix"]
    for axis, local in (("sp", (1, 320, 32, 128)), ("tp", (1, 2560, 4, 128))):
        other = {**dict.fromkeys(mesh, 1), axis: 8}
        assert sb.sharding("q[B_{dp,fsdp}, S_{sp}, N_{tp}, H]").local_shape(sizes, other) == local


def splits(size: int, ways: int) -> bool:
    """Whether a dimension of this size goes on so many devices."""
    try:
        sb.sharding("x[N_X]").local_shape({"N": size}, {"X": ways})
    except SizeError:
        return False
    return True


def test_52_heads_go_on_their_divisors_only() -> None:
    want = right("tp-52-heads")
    valid = [n for n in range(1, 53) if splits(52, n)]
    assert valid == want["valid"]
    assert [n for n in valid if 8 % n == 0] == want["per_node_8"]


def test_splitting_features_cuts_through_a_head() -> None:
    """4 key/value heads of 128 over 8 devices: as one dimension of 512 it goes, half a head each; as heads it does not."""
    want = right("tp-kv-replicate-hf")
    sizes = {"B": 4, "T": 178, "K": 4, "H": 128, "F": 4 * 128}
    local = sb.sharding("k[B, T, F_X]").local_shape(sizes, {"X": 8})
    assert local == (4, 178, 64) and math.prod(local) == want["elements"]
    with pytest.raises(SizeError, match="4 is not a multiple of 8"):
        sb.sharding("k[B, T, K_X, H]").local_shape(sizes, {"X": 8})
    # the remedy: heads over 4 devices, copies over the other 2
    m = {"X": 4, "R": 2}
    kept = sb.sharding("k[B, T, K_X, H]")
    assert kept.local_shape(sizes, m)[2] == want["kv_heads_per_gpu_with_replication"]
    assert kept.bytes_per_device(sizes, m) * 8 == want["kv_total_factor"] * sb.sharding("k[B, T, K, H]").bytes_per_device(
        sizes, {}
    )


def test_two_key_value_heads_go_on_two_devices() -> None:
    assert max(n for n in range(1, 17) if splits(2, n)) == right("tp-kv2-torchtitan")["max_tp"]


def test_a_vocabulary_is_rounded_up_to_what_the_devices_divide() -> None:
    want = right("vocab-50257-tp2")
    assert [round_up(50_257, 1 * 1), round_up(50_257, 1 * 2), round_up(50_257, 128 * 8)] == [
        want["tp1"],
        want["tp2"],
        want["default_128_tp8"],
    ]
    assert splits(want["tp2"], 2) and not splits(want["tp1"], 2)
    extra = right("vocab-extra-ids-megatron")["padded"]
    assert round_up(32_000, 128 * 2) == 32_000 and round_up(32_000 + 2, 128 * 2) == extra
    assert ceil_div(extra, 256) == 126


def test_full_rematerialisation_holds_eight_times_the_bytes() -> None:
    """Gathered whole and cut again: 16 KiB on every device, where an all-to-all and a permute move 2 KiB blocks only."""
    want = right("spmd-full-remat")
    m, sizes = {"x": 4, "y": 2}, {"A": 16, "B": 16, "C": 16}
    before, after = sb.sharding("a[A_{y}, B, C_{x}]"), sb.sharding("a[A, B_{x,y}, C]")
    assert before.bytes_per_device(sizes, m, "fp32") == want["before"]
    assert sb.sharding("a[A, B, C]").bytes_per_device(sizes, m, "fp32") == want["during"]
    assert after.bytes_per_device(sizes, m, "fp32") == want["after"]
    best = reshard("a[A_{y}, B, C_{x}] -> a[A, B_{x,y}, C]", sizes, m, "fp32")
    largest = max(s.bytes_per_device(sizes, m, "fp32") for move in best.moves for s in (move.before, move.after))
    assert largest == want["before"]  # no device ever holds more than its block
    assert best.bytes < sb.all_gather(16**3 * 4, m, ("x", "y")).bytes / 3


# ---- machines -----------------------------------------------------------------------------------------------------------


def test_two_slices_of_256_have_their_data_axis_on_the_network() -> None:
    """`create_hybrid_device_mesh(mesh_shape=(1, 256), dcn_mesh_shape=(2, 1))`: sizes multiply axis by axis."""
    call = right("mesh-dcn-experimental")["call"]
    assert "mesh_shape=(1,256), dcn_mesh_shape=(2,1)" in call
    machine = sb.topology("v5e:16x16", num_slices=2)
    m = sb.mesh({"data": 2, "X": 256}, on=machine)
    assert [(s.physical, s.size) for s in m.segments("data")] == [("dcn", 2)]
    assert [(s.physical, s.size) for s in m.segments("X")] == [("ici0", 16), ("ici1", 16)]
    with pytest.raises(MeshError, match="512"):
        sb.mesh({"data": 1, "X": 256}, on=machine)


def test_the_number_in_a_product_name() -> None:
    gke, levanter = right("hw-v5p-8-gke"), right("hw-v4-2048")
    for name, want in (
        ("v5p-8", gke), ("v5p-32", gke["v5p-32"]), ("v4-2048", levanter), ("v5litepod-64", levanter["v5litepod-64"])
    ):  # fmt: skip
        t = sb.topology(name)
        assert (t.chips, t.hosts) == (want["chips"], want["hosts"]), name
        assert "x".join(map(str, t.shape)) == want.get("topology", "x".join(map(str, t.shape))), name


def test_dense_peaks() -> None:
    """Those of the five GPUs that the catalogue has; the other two are refused, not guessed."""
    want = right("hw-peak-dense")
    for name, key in (("H100 SXM", "H100 SXM"), ("H200", "H200"), ("A100", "a100-80gb"), ("A100", "a100-40gb")):
        assert sb.chip(key).flops_per_s["bf16"] / 1e12 == pytest.approx(want[name], abs=0.05)
    for name in ("H100 NVL", "RTX 4090"):
        with pytest.raises(HardwareError, match="unknown chip"):
            sb.chip(name)


def test_ironwood() -> None:
    want, c = right("hw-tpu7x"), sb.chip("tpu7x")
    assert (c.flops_per_s["bf16"], c.flops_per_s["fp8"]) == (want["bf16"], want["fp8"])
    assert (c.hbm_bytes, c.hbm_bytes_per_s) == (want["hbm_GB"] * GIB, want["hbm_bw"])
    assert (c.dcn_bytes_per_s, c.link_bytes_per_s, c.link_efficiency) == (
        want["dcn"],
        want["ici_link_one_way_nominal"],
        want["ici_efficiency"],
    )
    assert sb.rates("tpu7x", per="device")["math"] == want["bf16"] / 2


# ---- numbers in books ---------------------------------------------------------------------------------------------------


def test_flops_per_byte_of_the_network_from_one_table() -> None:
    v5p = sb.chip("v5p")
    assert v5p.dcn_bytes_per_s is not None
    assert v5p.flops_per_s["bf16"] / v5p.dcn_bytes_per_s == right("book-dcn-intensity")["value"]


def test_constants_that_drifted_have_one_value_here() -> None:
    assert "one hardware table" in right("book-constants-drift")["remedy"]
    v5e, v5p, h100 = sb.chip("v5e"), sb.chip("v5p"), sb.chip("h100")
    assert (v5e.hbm_bytes_per_s, v5e.pcie_bytes_per_s, v5p.flops_per_s["bf16"]) == (819e9, 16e9, 459e12)
    assert h100.flops_per_s["bf16"] == pytest.approx(989.4e12, rel=1e-4)
    # what is computed from them uses the same values
    assert sb.rates("v5e")["hbm"] == v5e.hbm_bytes_per_s and sb.rates("h100")["math"] == h100.flops_per_s["bf16"]
    assert sb.ridge("v5e") == 197e12 / 819e9


def test_an_intensity_belongs_to_a_chip() -> None:
    """A vector unit of 7 TFLOPs/s beside the memory of two chips: the number means nothing without the chip's name."""
    want = right("book-v5e-vpu-misread")
    ridges = {}
    for name in ("v5e", "v5p"):
        seconds = sb.Work({"math": 7e12, "hbm": 1.0}).over({"math": 1.0, "hbm": sb.chip(name).hbm_bytes_per_s})
        ridges[name] = seconds.math * seconds.hbm  # 7e12 ÷ bytes/s
    assert ridges["v5e"] == pytest.approx(want["v5e"], rel=2e-3)
    assert ridges["v5p"] == pytest.approx(2.53, rel=2e-3)
