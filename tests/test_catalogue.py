"""The printed catalogue against the file it is made from, read here without the library."""

from __future__ import annotations

import re
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import scalebook as sb
from scalebook import catalogue, provenance
from scalebook.errors import ScalebookError
from scalebook.tables import Cell, Entries, Folded, Table
from scalebook.units import NO_BREAK

DATA = Path(sb.__file__).parent / "data"
CHIPS: dict[str, Any] = tomllib.loads((DATA / "chips.toml").read_text("utf-8"))
SLICES: dict[str, Any] = tomllib.loads((DATA / "slices.toml").read_text("utf-8"))
TOPICS = ("memory", "links", "machines", "cores")
EVERY: list[Table | Entries | Folded] = [
    *(catalogue.peaks(kind) for kind in ("tpu", "gpu")),
    *(catalogue.side_by_side(topic, kind) for topic in TOPICS for kind in ("tpu", "gpu")),
    catalogue.slices(), catalogue.all_shapes(), catalogue.all_figures(), provenance.conflicts(), provenance.measured(),
    provenance.assumed(), provenance.sources(), provenance.statuses(),
]  # fmt: skip


def figures(key: str) -> dict[str, dict[str, Any]]:
    """The figures of a chip in the file, rates by "flops_per_s.bf16"."""
    flat = {}
    for name, entry in CHIPS["chips"][key]["figures"].items():
        if "value" in entry:
            flat[name] = entry
        else:
            flat |= {f"{name}.{dtype}": e for dtype, e in entry.items()}
    return flat


def row_of(table: Table, name: str) -> dict[str, str]:
    i = table.column("chip").index(name)
    return {str(h): table.column(str(h))[i] for h in table.head}


# ---- the numbers --------------------------------------------------------------------------------------------------------

COLUMNS = [  # topic, kind, head, field, unit of the column
    ("memory", "tpu", "HBM, GiB", "hbm_bytes", 2**30), ("memory", "tpu", "usable, GiB per device", "hbm_usable_bytes_per_device", 2**30),
    ("memory", "tpu", "HBM, GB/s", "hbm_bytes_per_s", 1e9), ("memory", "tpu", "VMEM, MiB", "vmem_bytes", 2**20),
    ("memory", "gpu", "HBM, GiB", "hbm_bytes", 2**30), ("memory", "gpu", "HBM, GB/s", "hbm_bytes_per_s", 1e9),
    ("memory", "gpu", "L2, MiB", "l2_bytes", 2**20), ("links", "tpu", "links", "links", 1),
    ("links", "tpu", "one link, one way, GB/s", "link_bytes_per_s", 1e9), ("links", "gpu", "one link, one way, GB/s", "link_bytes_per_s", 1e9),
    ("links", "tpu", "share that collectives get", "link_efficiency", 1), ("links", "tpu", "a hop, µs", "hop_latency_s", 1e-6),
    ("links", "gpu", "launch, µs", "launch_latency_s", 1e-6), ("links", "gpu", "GPUs joined", "domain", 1),
    ("machines", "tpu", "chips per host", "chips_per_host", 1), ("machines", "tpu", "PCIe per chip, GB/s", "pcie_bytes_per_s", 1e9),
    ("machines", "tpu", "network per chip, one way, GB/s", "dcn_bytes_per_s", 1e9), ("machines", "tpu", "pod, chips", "pod_chips", 1),
    ("machines", "gpu", "network per node, GB/s", "node_nic_bytes_per_s", 1e9), ("machines", "gpu", "power, W", "tdp_w", 1),
    ("cores", "tpu", "side of a matrix unit", "mxu_dim", 1), ("cores", "tpu", "clock, GHz", "clock_hz", 1e9), ("cores", "gpu", "multiprocessors", "sms", 1),
]  # fmt: skip


@pytest.mark.parametrize(("topic", "kind", "head", "field", "unit"), COLUMNS, ids=lambda v: str(v))
def test_every_figure_stands_in_its_column(topic: str, kind: str, head: str, field: str, unit: float) -> None:
    table = catalogue.side_by_side(topic, kind)
    shown = dict(zip(table.column("chip"), table.column(head), strict=True))
    known = 0
    for key, entry in CHIPS["chips"].items():
        if entry["kind"] != kind or entry["name"] not in shown:
            continue
        figure = figures(key).get(field)
        if figure is None:
            assert shown[entry["name"]] == "not known"
        else:
            known += 1
            assert float(shown[entry["name"]].replace(",", "")) == pytest.approx(figure["value"] / unit, rel=5e-4)
    assert known >= 3


@pytest.mark.parametrize("kind", ["tpu", "gpu"])
def test_peaks_are_those_of_the_file_and_claims_stand_apart(kind: str) -> None:
    table = catalogue.peaks(kind)
    for key, entry in CHIPS["chips"].items():
        if entry["kind"] != kind:
            continue
        shown, rates = row_of(table, entry["name"]), figures(key)
        for dtype in map(str, table.head[1:]):
            figure = rates.get(f"flops_per_s.{dtype}")
            want = "–" if figure is None else figure["value"] / 1e12
            assert (
                shown[dtype] == want if figure is None else float(shown[dtype].replace(",", "")) == pytest.approx(want, rel=5e-5)
            )
        formats = {n.partition(".")[2] for n in rates if n.startswith("flops_per_s.")}
        assert formats <= set(map(str, table.head[1:]))
    claimed = [
        e["name"] for k, e in CHIPS["chips"].items() if e["kind"] == kind and any(f.startswith("claimed") for f in figures(k))
    ]
    assert [n for n in table.notes if n.startswith("claimed")] != [] and all(any(c in n for n in table.notes) for c in claimed)


@pytest.mark.parametrize("key", CHIPS["chips"])
def test_everything_of_a_chip_is_listed_with_its_status_or_its_reason(key: str) -> None:
    table = catalogue.everything(key)
    assert len(table.rows) == len(figures(key)) + len(CHIPS["chips"][key].get("unknown", {}))
    for row, figure in zip(table.rows, figures(key).values(), strict=False):
        cell = row[1]
        assert isinstance(cell, Cell) and cell.below == figure["status"] and len(cell.links) >= 1
        assert not re.search(r"None|\{|e\d\d", cell.text)
    reasons = list(CHIPS["chips"][key].get("unknown", {}).values())
    assert [str(r[2]) for r in table.rows[len(figures(key)) :]] == reasons
    assert len(set(table.column("figure"))) == len(table.rows)


# ---- sources, conflicts, assumptions ------------------------------------------------------------------------------------


def test_every_link_to_a_source_leads_to_it() -> None:
    root = ET.fromstring("<body>" + "".join(t._repr_html_() for t in EVERY) + "</body>")
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    inside = {a.get("href", "")[1:] for a in root.iter("a") if a.get("href", "").startswith("#")}
    assert inside <= set(ids) and len(inside) > 60
    outside = {a.get("href", "") for a in root.iter("a") if not a.get("href", "").startswith("#")}
    assert all(re.match(r"https://\S+$", a) for a in outside)


def test_a_figure_links_to_the_sources_that_the_file_names() -> None:
    rows = {str(r[0].anchor): r for r in provenance.sources().rows if isinstance(r[0], Cell)}
    cell = next(r[1] for r in catalogue.everything("v5e").rows if r[0] == "HBM bandwidth")
    assert isinstance(cell, Cell)
    sources = [k for k in cell.links if k.href.startswith("#source-")]
    titles = {rows[k.href[1:]][1].text for k in sources}  # type: ignore[union-attr]
    assert [k.text for k in cell.links if k not in sources] == ["C03"]
    assert titles == {CHIPS["sources"][i]["title"] for i in figures("v5e")["hbm_bytes_per_s"]["source"]}


def test_every_conflict_is_told_in_full() -> None:
    entries = provenance.conflicts().entries
    assert [e.title.partition(":")[0] for e in entries] == sorted(n["id"] for n in CHIPS["notes"])
    for entry, note in zip(entries, sorted(CHIPS["notes"], key=lambda n: n["id"]), strict=True):
        assert note["confidence"].split(",")[0] in entry.lines[0] and len(entry.lines) == 3
        assert not re.search(r"\d[eE]\d|\b(?:GCP|SB|MLENG|JAX|LIBTPU|TPUREC|P)_[A-Z0-9]+\b", " ".join(entry.lines)), entry.title
    told = f"{provenance.conflicts()}\n{provenance.measured()}\n{catalogue.side_by_side('links', 'tpu')}".replace(NO_BREAK, " ")
    assert re.findall(r"->|\d us\b|\^\d|~\d|\d [TGP](?![a-zA-Z])|\d[eE]\d\d", told) == []
    first = entries[0]
    assert first.lines[0] == f"Taken: 123{NO_BREAK}TFLOPs/s. Confidence: high."
    assert "Cloud TPU v3 docs: 123" in first.lines[2]
    assert [e.title for e in provenance.conflicts(sb.chip("v2")).entries] == ["C22: TPU v2 HBM bandwidth"]


def test_a_figure_links_to_the_conflicts_about_it() -> None:
    for note in CHIPS["notes"]:
        on = set().union(*({*figures(key), *CHIPS["chips"][key].get("unknown", {})} for key in note["chips"]))
        assert set(note["figures"]) <= on and (note["figures"] or note["id"] == "C24")
    for topic, chip, head, conflict in (
        ("links", "TPU v3", "one link, one way, GB/s", "C05"),
        ("memory", "TPU v5p", "HBM, GB/s", "C02"),
    ):
        table = catalogue.side_by_side(topic, "tpu")
        cell = table.rows[table.column("chip").index(chip)][[str(h) for h in table.head].index(head)]
        assert isinstance(cell, Cell) and [k.href for k in cell.links if k.text == conflict] == [f"#conflict-{conflict.lower()}"]


def test_a_book_or_a_page_is_one_source_under_one_name() -> None:
    titles = provenance.sources().column("what")
    assert len(titles) == len(set(titles)) and not any("scaling-book" in title for title in titles)


def test_what_is_assumed_is_what_the_file_marks_so() -> None:
    table = provenance.assumed()
    names = [(n, e["name"]) for k, e in CHIPS["chips"].items() for n, f in figures(k).items() if f["status"] == "assumed"]
    listed = [(w, c) for w, on in zip(table.column("figure"), table.column("for"), strict=True) for c in on.split(", ")]
    assert sorted((provenance.field_words(n), c) for n, c in names) == sorted((w, c) for w, c in listed if w != "wraparound")
    assumed = {CHIPS["chips"][k]["name"] for k, e in SLICES["tpus"].items() if e["wrap_status"] == "assumed"}
    assert {c for w, c in listed if w == "wraparound"} == assumed


def test_statuses_are_counted() -> None:
    table = provenance.statuses()
    every = [f["status"] for k in CHIPS["chips"] for f in figures(k).values()]
    assert dict(zip(table.column("status"), table.column("figures"), strict=True)) == {
        s: f"{every.count(s):,}" for s in table.column("status")
    }
    assert set(every) <= set(table.column("status"))


# ---- slices -------------------------------------------------------------------------------------------------------------


def test_listed_slices_are_those_of_the_file() -> None:
    for key, entry in SLICES["tpus"].items():
        if "shapes" not in entry:
            continue
        table = catalogue.shapes(key)
        assert table.column("shape") == entry["shapes"]
        for shape, chips, devices, rings in zip(*(table.column(c) for c in ("shape", "chips", "devices", "rings")), strict=True):
            t = sb.topology(f"{key}:{shape}")
            assert (int(chips.replace(",", "")), int(devices.replace(",", ""))) == (t.chips, t.devices)
            assert (rings == "none") == (not any(t.wraparound))
    assert catalogue.shapes("v5e").column("rings") == ["none"] * 6 + ["the second axis", "both axes"]
    assert catalogue.shapes("v5p").column("rings")[3:5] == ["none", "all 3 axes"]  # 2x4x4 and 4x4x4


def test_the_rules_of_slices_are_told() -> None:
    table = catalogue.slices()
    v5p = row_of(table, "TPU v5p")
    assert v5p["closes into rings"] == "all axes if every side is a multiple of 4, else none"
    assert v5p["beyond the list"] == "A ≤ B ≤ C, multiples of 4, to 8,960 chips"
    assert table.head[1] == "closes into rings"
    assert row_of(table, "TPU v5e")["a machine has"] == "4 chips; one machine for up to 8"
    assert row_of(table, "TPU 8t")["listed"] == "not known"
    assert any("TPU v5e, TPU v6e (Trillium)" in n and "MaxText" in n for n in table.notes)


# ---- what cannot be asked, and text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: catalogue.side_by_side("memroy", "tpu"), "did you mean 'memory'"),
        (lambda: catalogue.peaks("npu"), "unknown kind of chip"),
        (lambda: catalogue.shapes("h100"), "TPU with a list of slices"),
        (lambda: catalogue.everything("v9"), "unknown chip"),
    ],
)
def test_what_cannot_be_asked(call: Any, words: str) -> None:
    with pytest.raises(ScalebookError, match=words):
        call()


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (8_031_588_843, "bytes", "7.48 GiB"), (192 * 10**9, "bytes", "192 GB"), (0.829, "fraction", "82.9%"), (True, "", "yes"),
        (0.428, "MFU", "42.8% MFU"), ({"ici": 235.8e9}, "bytes/s (own)", "ici: 235.8 GB/s"), ((2.0, 5.0), "USD", "2, 5 USD"),
        ({"128": 2.59, "256": 18.29}, "TFLOP/s/device", "128: 2.59; 256: 18.29 (TFLOP/s/device)"), (918e12, "op/s", "918 TOP/s"),
        (262144, "bytes", "256 KiB"), (8, "chips", "8 chips"), (1.5, "x", "1.5 x"), ("2D torus", "", "2D torus"),
    ],
)  # fmt: skip
def test_values_in_words(value: Any, unit: str, words: str) -> None:
    assert provenance.value_words(value, unit).replace(NO_BREAK, " ") == words


def test_the_same_tables_as_text() -> None:
    text = str(catalogue.side_by_side("memory", "tpu")).replace(NO_BREAK, " ")
    assert re.search(r"TPU v5e +16 \(vendor\+\) +15\.75 \(probe\) +1 \(probe\) +819 \(vendor\+\)", text)
    assert str(provenance.conflicts()).startswith("C01: TPU v3 bf16 peak\n  Taken: 123")
