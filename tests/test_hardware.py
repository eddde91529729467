"""The catalogue of chips: published values, sources, aliases, and figures that must agree with each other."""

import copy
import dataclasses
import pickle
import re
import subprocess
import sys
import tomllib
from importlib import resources

import pytest

import scalebook as sb
from scalebook import hardware
from scalebook.errors import HardwareError, ScalebookError
from scalebook.sources import Rates, Source

T, G, GIB = 1e12, 1e9, 2**30

# Typed from the vendors' tables: bf16 and int8 peaks (T/s), HBM (GiB, GB/s), links, one-way GB/s per link, chips of a pod.
TPUS = [
    ("v2", 46, None, 16, 716, 4, None, 256),
    ("v3", 123, None, 32, 900, 4, 83, 1024),
    ("v4", 275, 275, 32, 1228, 6, 50, 4096),
    ("v5e", 197, 394, 16, 819, 4, 50, 256),
    ("v5p", 459, 918, 96, 2765, 6, 100, 8960),
    ("v6e", 918, 1836, 32, 1638, 4, 100, 256),
    ("tpu7x", 2307, None, 192, 7380, 6, 100, 9216),
]


@pytest.mark.parametrize(("key", "bf16", "int8", "gib", "hbm", "links", "link", "pod"), TPUS)
def test_published_figures_of_tpus(key, bf16, int8, gib, hbm, links, link, pod):
    c = sb.chip(key)
    assert c.flops_per_s["bf16"] == bf16 * T
    assert c.flops_per_s.get("int8") == (int8 and int8 * T)
    assert c.hbm_bytes == gib * GIB
    assert c.hbm_bytes_per_s == hbm * G
    assert (c.links, c.link_bytes_per_s) == (links, link and link * G)
    assert c.pod_chips == pod
    assert c.kind == "tpu" and c.domain is None


# bf16 and fp8 dense peaks (T/s), HBM GB/s, one-way GB/s of a GPU in its node or rack, GPUs there, one-way GB/s of its network.
GPUS = [
    ("a100-40gb", 312, None, 1555.2, 300, 8, 25),
    ("a100-80gb", 312, None, 2039.04, 300, 8, 25),
    ("h100", 989.4, 1978.9, 3352, 450, 8, 50),
    ("h200", 989.4, 1978.9, 4800, 450, 8, 50),
    ("b200", 2250, 4500, 7700, 900, 8, 50),
    ("gb200", 2500, 5000, 8000, 900, 72, 50),
    ("b300", 2250, 4500, 7700, 900, 8, 100),
    ("gb300", 2500, 5000, 8000, 900, 72, 100),
    ("mi300x", 1307.4, 2614.9, 5300, 448, 8, 50),
    ("mi325x", 1300, 2610, 6000, 448, 8, None),
    ("mi355x", 2500, 5000, 8000, 535.5, 8, 50),
]


@pytest.mark.parametrize(("key", "bf16", "fp8", "hbm", "fabric", "domain", "network"), GPUS)
def test_published_figures_of_gpus(key, bf16, fp8, hbm, fabric, domain, network):
    c = sb.chip(key)
    assert c.flops_per_s["bf16"] == bf16 * T  # dense: half of what is advertised with 2:4 sparsity
    assert c.flops_per_s.get("fp8") == (fp8 and fp8 * T)
    assert c.hbm_bytes_per_s == hbm * G
    assert c.links * c.link_bytes_per_s == fabric * G == c.figures["fabric_bytes_per_s"].value
    assert c.domain == domain
    assert c.dcn_bytes_per_s == (network and network * G)


def test_figures_of_tpu7x_as_asked_in_a_pull_request():
    """https://github.com/jax-ml/scaling-book/pull/115"""
    c = sb.chip("tpu7x")
    assert (c.flops_per_s["bf16"], c.flops_per_s["fp8"], c.hbm_bytes) == (2.307e15, 4.614e15, 192 * GIB)
    assert (c.hbm_bytes_per_s, c.dcn_bytes_per_s, c.link_bytes_per_s, c.link_efficiency) == (7.38e12, 12.5e9, 1e11, 0.9)
    assert c.devices_per_chip == 2


def test_there_are_23_chips_with_different_keys():
    keys = [c.key for c in sb.chips()]
    assert len(set(keys)) == len(keys) == 23
    assert all(sb.chip(k).key == k for k in keys)


# ---- sources ------------------------------------------------------------------------------------------------------------

FIGURES = [(c.key, name) for c in sb.chips() for name in c.figures]


def test_the_catalog_has_all_its_figures():
    assert len(FIGURES) >= 500


@pytest.mark.parametrize("key", [c.key for c in sb.chips()])
def test_every_figure_has_value_unit_source_status_and_date(key):
    c = sb.chip(key)
    for name in c.figures:
        s = c.source(name)
        assert s.value is not None, name
        assert s.refs and all(
            r.id and r.title and r.kind and re.match(r"https?://|jax 0|libtpu 0|src/", r.url) for r in s.refs
        ), name
        assert s.status in Source.MEANING and s.read == "2026-11-30", name
        if s.status == "assumed":
            assert s.note, f"{key}.{name}: an assumption says why"


@pytest.mark.parametrize("key", [c.key for c in sb.chips()])
def test_every_field_that_is_set_has_a_source_and_none_is_made_up(key):
    c = sb.chip(key)
    described = {"key", "name", "vendor", "kind", "figures", "unknown", "notes", "measurements"}
    for f in dataclasses.fields(c):
        value = getattr(c, f.name)
        if f.name in described or value is None:
            continue
        for name in [f"{f.name}.{d}" for d in value] if isinstance(value, Rates) else [f.name]:
            assert c.source(name).value == (value[name.split(".")[1]] if isinstance(value, Rates) else value)
    assert not set(c.unknown) & set(c.figures)


def test_a_source_reads_line_by_line():
    text = str(sb.chip("v5p").source("hbm_bytes_per_s"))
    assert text.splitlines()[:2] == ["2765000000000.0 bytes/s", "  status: vendor (a vendor's page)"]
    assert "https://docs.cloud.google.com/tpu/docs/v5p" in text and "read: 2026-11-30" in text and "C02" in text


def test_unknown_figures_are_absent_and_say_why():
    assert "fp8" not in sb.chip("v5e").flops_per_s and "int8" not in sb.chip("tpu7x").flops_per_s
    assert sb.chip("v2").link_bytes_per_s is None and sb.chip("l4").links is None and sb.chip("v5e").tdp_w is None
    with pytest.raises(HardwareError, match=r"TPU v5e: flops_per_s.fp8 is not known: JAX table: not available natively"):
        sb.chip("v5e").source("flops_per_s.fp8")
    with pytest.raises(HardwareError, match=r"unknown figure of TPU v5e 'hbm_bytes_per_sec'; did you mean .*'hbm_bytes_per_s'"):
        sb.chip("v5e").source("hbm_bytes_per_sec")


def test_claimed_rates_are_kept_apart():
    for key, rate in (("v5e", 788e12), ("v5p", 1840e12), ("v6e", 3680e12), ("t4", 260e12)):
        c = sb.chip(key)
        assert c.claimed_flops_per_s["int4"] == rate and "int4" not in c.flops_per_s
    assert all(not c.claimed_flops_per_s for c in sb.chips() if c.key not in ("v5e", "v5p", "v6e", "t4"))


def test_notes_carry_the_judgments_where_sources_disagree():
    by_id = {n.id: n for n in sb.chip("tpu7x").notes}
    assert {"C04", "C06", "C07", "C10", "C11"} <= set(by_id)
    assert "one way per link = both ways per chip ÷ 2 ÷ links" in str(by_id["C06"])
    assert [n.id for n in sb.chip("v3").notes] == ["C01", "C05"]


def test_measurements_have_sources():
    (fit,) = [m for m in sb.chip("tpu7x").measurements if m.id == "ag_7x_alpha"]
    assert fit.value == sb.chip("tpu7x").launch_latency_s == 13.2e-6
    assert all(m.refs and m.unit and m.read for c in sb.chips() for m in c.measurements)


# ---- figures against each other -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["v2", "v3", "v4", "v5e", "v5p"])
def test_peak_is_what_the_matrix_units_do_at_their_clock(key):
    """cores × units × dim² multiply-adds a cycle; one multiply-add is two operations."""
    c = sb.chip(key)
    assert c.tensorcores * c.mxu_per_tensorcore * c.mxu_dim**2 * 2 * c.clock_hz == pytest.approx(c.flops_per_s["bf16"], rel=0.01)


def test_h100_peak_is_what_its_tensor_cores_do():
    c = sb.chip("h100")
    a_cycle = c.figures["tensor_core_flops_per_clk"].value * 4 * c.figures["sms"].value
    assert a_cycle * c.clock_hz == pytest.approx(c.flops_per_s["bf16"], rel=0.005)
    assert (
        a_cycle * c.figures["clock_max_hz"].value > 1.05 * c.flops_per_s["bf16"]
    )  # the maximum clock is not the one of the peak


@pytest.mark.parametrize("key", ["v5e", "v5p", "v6e", "tpu7x"])
def test_links_add_up_to_the_both_ways_rate_of_the_chip(key):
    c = sb.chip(key)
    assert 2 * c.links * c.link_bytes_per_s == c.figures["ici_both_ways_bytes_per_s"].value


@pytest.mark.parametrize(("key", "share"), [("v3", 1.0), ("v4", 0.9), ("v5e", 1.0), ("v6e", 1.0)])
def test_published_all_reduce_of_a_pod_is_its_injection(key, share):
    """The vendor counts every link of every chip; on v4 at what collectives can carry, on v5e and v6e at the nominal rate."""
    c = sb.chip(key)
    assert c.pod_chips * c.links * c.link_bytes_per_s * share == pytest.approx(c.pod_all_reduce_bytes_per_s, rel=0.01)
    assert key not in ("v3", "v4") or c.link_efficiency == share


@pytest.mark.parametrize("c", sb.chips(), ids=lambda c: c.key)
def test_what_a_program_can_have_is_a_little_less_than_the_memory(c):
    if c.hbm_usable_bytes_per_device is not None:
        assert 0.9 * c.hbm_bytes < c.hbm_usable_bytes_per_device * c.devices_per_chip < c.hbm_bytes


@pytest.mark.parametrize("c", sb.chips(), ids=lambda c: c.key)
def test_rates_by_format_are_in_order(c):
    """Fewer bits are never slower; the exceptions are real ones (C12: Blackwell Ultra gave up int8)."""
    at_least = [("tf32", "fp32"), ("bf16", "tf32"), ("fp16", "fp32"), ("fp8", "bf16"), ("fp4", "fp8")]
    at_least += [("int8", "bf16")] if c.key not in ("b300", "gb300") else []
    for small, big in at_least:
        if small in c.flops_per_s and big in c.flops_per_s:
            assert c.flops_per_s[small] >= c.flops_per_s[big]


def test_shares_are_shares_and_latencies_are_small():
    for c in sb.chips():
        for name in ("link_efficiency", "dcn_efficiency"):
            assert getattr(c, name) is None or 0.5 < getattr(c, name) <= 1
        for name in ("hop_latency_s", "launch_latency_s", "dcn_hop_latency_s"):
            assert getattr(c, name) is None or 1e-7 < getattr(c, name) < 1e-4
    assert sb.chip("v5p").source("hop_latency_s").status == "assumed"


# ---- names --------------------------------------------------------------------------------------------------------------

ALIASES = {
    "v5p": ["v5p", "TPU v5p", "tpu_v5p", "tpu-v5p", "TPUV5P", " V5P "],
    "v5e": ["v5e", "v5litepod", "TPU v5 lite", "v5lite"],
    "v6e": ["v6e", "Trillium", "TPU v6 lite", "TPU v6e (Trillium)"],
    "tpu7x": ["7x", "tpu7x", "TPU7x", "v7x", "ironwood", "TPU7x (Ironwood)"],
    "h100": ["H100 SXM", "h100", "H100-SXM5", "NVIDIA H100 80GB HBM3", "H100 SXM 80GB"],
    "a100-40gb": ["a100-40gb", "A100 40GB", "NVIDIA A100-SXM4-40GB"],
    "a100-80gb": ["a100", "A100 80GB", "A100 SXM"],
    "gb200": ["gb200", "GB200 NVL72"],
    "mi300x": ["MI300X", "AMD Instinct MI300X"],
    "t4": ["T4", "Tesla T4"],
}


@pytest.mark.parametrize(("key", "name"), [(k, n) for k, names in ALIASES.items() for n in names])
def test_aliases(key, name):
    assert sb.chip(name) is sb.chip(key)


def test_a_chip_is_given_back_as_it_is():
    assert sb.chip(sb.chip("v5p")) is sb.chip("v5p")


@pytest.mark.parametrize(
    ("name", "text"),
    [("h10", "unknown chip 'h10'; did you mean 'h100'"), ("v5", "did you mean 'v5e' or 'v5p'"), ("", "unknown chip ''")],
)
def test_unknown_chips_name_the_nearest(name, text):
    with pytest.raises(HardwareError) as error:
        sb.chip(name)
    assert text in str(error.value) or {"'v5e'", "'v5p'"} <= set(re.findall(r"'v5.'", str(error.value)))
    assert "Known: v2, v3" in str(error.value)


def test_a_chip_is_named_by_text():
    with pytest.raises(HardwareError, match=r"a chip is given by its name.*found 5"):
        sb.chip(5)


# ---- the loader ---------------------------------------------------------------------------------------------------------

GOOD = """
read = "2026-11-30"
[chips.x1]
name = "X1"
vendor = "Example"
kind = "gpu"
aliases = ["X one"]
[chips.x1.figures]
hbm_bytes_per_s = { value = 1e12, unit = "bytes/s", source = ["S"], status = "vendor" }
[sources.S]
title = "A page"
ref = "https://example.org"
kind = "vendor-doc"
"""


def test_a_complete_entry_loads():
    found, aliases = hardware._load(tomllib.loads(GOOD))
    assert found["x1"].hbm_bytes_per_s == 1e12 and aliases["xone"] == "x1"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (', source = ["S"]', "", "x1.hbm_bytes_per_s has no source"),
        ('["S"]', "[]", "x1.hbm_bytes_per_s has no source"),
        ('["S"]', '["R"]', "unknown source of x1.hbm_bytes_per_s 'R'"),
        ("value = 1e12, ", "", "has no value"),
        (', unit = "bytes/s"', "", "has no unit"),
        (', status = "vendor"', "", "unknown status of x1.hbm_bytes_per_s None"),
        ('status = "vendor"', 'status = "sure"', "unknown status of x1.hbm_bytes_per_s 'sure'"),
        ('read = "2026-11-30"', "", "does not say when it was read"),
    ],
)
def test_a_figure_cannot_be_built_without_its_source(old, new, text):
    assert old in GOOD
    with pytest.raises(HardwareError, match=re.escape(text)):
        hardware._load(tomllib.loads(GOOD.replace(old, new)))


def test_a_name_stands_for_one_chip():
    twice = GOOD.replace(
        "[sources.S]", GOOD[GOOD.index("[chips.x1]") : GOOD.index("[sources.S]")].replace("x1", "x2") + "[sources.S]"
    )
    with pytest.raises(HardwareError, match="the name 'X1' stands for two chips: x1 and x2"):
        hardware._load(tomllib.loads(twice))


def test_the_file_says_nothing_of_whoever_read_it():
    text = resources.files("scalebook").joinpath("data/chips.toml").read_text(encoding="utf-8").lower()
    assert not re.search(r"\bown compile|\bmine\b", text)
    assert "ahead-of-time compile probe with jax 0.10.2 + libtpu 0.0.42.1" in text


# ---- values that behave -------------------------------------------------------------------------------------------------


def test_rates_take_any_spelling_and_name_what_is_known():
    rates = sb.chip("v5p").flops_per_s
    assert rates["bfloat16"] == rates["bf16"] and "bfloat16" in rates and "fp4" not in rates and 3 not in rates
    assert rates.get("fp4") is None
    with pytest.raises(HardwareError, match="TPU v5p has no known fp4 rate, and none is made up; known for: bf16, int8, fp8"):
        rates["fp4"]
    with pytest.raises(ScalebookError, match="unknown dtype 'bf61'"):
        rates["bf61"]


def test_chips_are_hashable_comparable_and_can_be_copied():
    c = sb.chip("v5p")
    assert hash(c) != hash(sb.chip("v5e")) and copy.deepcopy(c) == c == pickle.loads(pickle.dumps(c))
    with pytest.raises(dataclasses.FrozenInstanceError):
        c.hbm_bytes = 1


def test_a_changed_chip_says_so():
    c = dataclasses.replace(sb.chip("v5e"), hbm_bytes_per_s=2e12, flops_per_s=Rates({"bf16": 1e15}, "mine"))
    assert c != sb.chip("v5e")
    for name, value in (("hbm_bytes_per_s", 2e12), ("flops_per_s.bf16", 1e15)):
        s = c.source(name)
        assert (s.value, s.status, s.refs) == (value, "assumed", ()) and "set by hand; the catalogue has" in s.note
    assert c.source("hbm_bytes").status == "vendor+"


def test_importing_reads_no_file_and_needs_only_the_standard_library():
    code = (
        "import sys, scalebook.topologies, scalebook.hardware as h, scalebook.slices as s\n"
        "assert h._catalog.cache_info().currsize == s._offers.cache_info().currsize == 0\n"
        "outside = {m.partition('.')[0] for m in sys.modules} - set(sys.stdlib_module_names) - {'scalebook', '__main__'}\n"
        "print(sorted(m for m in outside if m in ('numpy', 'jax', 'yaml', 'matplotlib', 'scipy', 'pandas')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [["hbm_bytes"], None, {}, 3, "x" * 5000])
def test_figures_and_chips_that_cannot_be(name: object) -> None:
    with pytest.raises(HardwareError, match=r"^unknown figure of TPU v5p ") as error:
        sb.chip("v5p").source(name)
    assert len(str(error.value)) < 1000
    with pytest.raises(HardwareError, match="chip") as error:
        sb.chip(name)
    assert len(str(error.value)) < 350
