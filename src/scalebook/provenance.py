"""Where the catalogue's figures are from: the numbered list of sources, the conflicts between them, what was measured, what is assumed.

Everything here is made from `data/chips.toml` and `data/slices.toml`; the appendix on hardware shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from scalebook.hardware import Chip, chips
from scalebook.slices import offer_of
from scalebook.sources import Reference, Source
from scalebook.tables import Cell, Entries, Entry, Link, Table
from scalebook.units import binary, count, digits, percent, si

_KINDS = {
    "vendor-doc": "vendor's documentation", "vendor-code": "vendor's source code", "vendor-measured": "vendor's measurements",
    "compile-probe": "answers of a compiler", "book": "book", "independent": "independent", "device-query": "answers of a device",
    "press": "press", "paper": "paper", "derived": "computed", "assumption": "no source",
}  # fmt: skip
_FIELDS = {
    "hbm_bytes": "HBM", "hbm_usable_bytes_per_device": "usable HBM per device", "hbm_bytes_per_s": "HBM bandwidth",
    "vmem_bytes": "VMEM", "vmem_bytes_per_s": "VMEM bandwidth", "cmem_bytes": "CMEM", "smem_bytes_per_core": "SMEM per core",
    "smem_bytes_per_sm": "shared memory per multiprocessor", "l2_bytes": "L2", "l2_bytes_per_s": "L2 bandwidth",
    "llc_bytes": "last-level cache", "regfile_bytes_per_sm": "registers per multiprocessor",
    "tmem_bytes_per_sm": "tensor memory per multiprocessor", "devices_per_chip": "devices per chip",
    "megacore": "two cores act as one device", "tensorcores": "TensorCores", "sparsecores": "SparseCores",
    "mxu_per_tensorcore": "matrix units per core", "mxu_dim": "side of a matrix unit", "vpu": "vector unit",
    "vpu_alus_per_lane": "vector units' adders per lane", "vregs": "vector registers", "xlu": "cross-lane units",
    "sms": "multiprocessors", "compute_units": "compute units", "tensor_core_flops_per_clk": "tensor core per clock",
    "clock_hz": "clock", "clock_max_hz": "highest clock", "tdp_w": "power", "power_measured_w": "power as measured",
    "pod_power_w": "power of a pod", "links": "links", "link_bytes_per_s": "rate of a link, one way",
    "link_efficiency": "share of a link that collectives get",
    "link_usable_bytes_per_s": "rate of a link that collectives get",
    "ici_both_ways_bytes_per_s": "all links, both ways, as advertised", "fabric_bytes_per_s": "all links, one way",
    "nvlink_gen": "NVLink generation", "nvswitch": "NVLink switches", "domain": "GPUs joined by fast links",
    "wiring": "wired as", "torus_dims": "dimensions of the torus", "twisted_torus": "twisted torus",
    "cube": "cube joined by optical switches", "die_to_die_bytes_per_s": "device to device of a chip",
    "die_to_die_per_ici_axis": "device to device, in links", "hop_latency_s": "latency of a hop",
    "launch_latency_s": "launch of a collective", "dcn_bytes_per_s": "network per chip, one way",
    "dcn_efficiency": "share of the network that collectives get", "dcn_hop_latency_s": "latency of a network hop",
    "node_nic_bytes_per_s": "network per node, one way", "host_nic_bytes_per_s": "network per host, one way",
    "pod_dcn_bytes_per_s": "network of a pod", "pcie_bytes_per_s": "PCIe per chip",
    "cpu_link_bytes_per_s": "link to the CPU", "chips_per_host": "chips per host", "host_vcpus": "virtual CPUs of a host",
    "host_dram_bytes": "memory of a host", "pod_chips": "chips of a pod", "pod_shape": "shape of a pod",
    "pod_all_reduce_bytes_per_s": "all-reduce of a pod", "pod_bisection_bytes_per_s": "bisection of a pod",
    "max_slice_chips": "largest slice of one job", "price_usd_per_chip_hour": "price",
}  # fmt: skip


def field_words(field: str) -> str:
    """A field of the catalogue in words.

    >>> field_words("hop_latency_s"), field_words("flops_per_s.bf16"), field_words("claimed_flops_per_s.int4")
    ('latency of a hop', 'bf16 rate', 'int4 rate, claimed')
    """
    group, _, dtype = field.partition(".")
    if dtype:
        return f"{dtype} rate" + (", claimed" if group.startswith("claimed") else "")
    return _FIELDS.get(field, field.replace("_", " "))


def value_words(value: Any, unit: str) -> str:
    """A figure as it is printed: rates decimal, capacities binary where that is a round number, shares in per cent.

    >>> [value_words(v, u).replace("\u00a0", " ") for v, u in ((197e12, "FLOPs/s"), (2**34, "bytes"), (448e9, "bytes"), (0.9, "fraction"))]
    ['197 TFLOPs/s', '16 GiB', '448 GB', '90%']
    >>> value_words((16, 20, 28), "chips")
    '16 × 20 × 28 chips'
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value.replace("->", "→")
    if isinstance(value, Mapping):
        plain = "" if _prefixed(unit) or unit.startswith("fraction") else unit
        shown = "; ".join(f"{k}: {value_words(v, '' if plain else unit)}" for k, v in value.items())
        return f"{shown} ({plain})" if plain else shown
    if isinstance(value, tuple | list):
        return f"{(' × ' if unit == 'chips' else ', ').join(digits(v, 4) for v in value)} {unit}".strip()
    if unit == "bytes":
        return si(value, "B") if value % 10**6 == 0 else binary(value, 4)
    if _prefixed(unit):
        return si(value, _prefixed(unit), 4)
    if unit.startswith("fraction") or unit == "MFU":
        return percent(value, 3) + unit.removeprefix("fraction").replace("MFU", " MFU").replace("of 918e12", "of the peak")
    return f"{count(value) if float(value).is_integer() else digits(value, 4)} {unit}".strip()


def _prefixed(unit: str) -> str:
    """How a unit is written behind a prefix; "" for one that takes none."""
    name = unit.partition(" ")[0]
    return {"bytes/s": "B/s", "op/s": "OP/s"}.get(name, name if unit in ("FLOPs/s", "s", "Hz", "W") else "")


def plain_numbers(text: str) -> str:
    """Numbers such as 2.765e12 of a note with a prefix instead; other words stay.

    >>> plain_numbers("JAX: 2.46e12 B/s, 1.2e6 cycles").replace("\u00a0", " ")
    'JAX: 2.46 TB/s, 1.2 M cycles'
    """
    units = {"FLOPs/s": "FLOPs/s", "B/s": "B/s", "bytes/s": "B/s", "op/s": "op/s", "Hz": "Hz", "B": "B"}
    pattern = rf"\b(\d+(?:\.\d+)?e\d+)(?: ({'|'.join(map(re.escape, units))})(?!\w))?"
    return re.sub(pattern, lambda m: si(float(m[1]), units.get(m[2], ""), 4), text)


# ---- sources ------------------------------------------------------------------------------------------------------------


@cache
def _numbered() -> Mapping[str, tuple[int, Reference]]:
    """Sources by their address, with a number each, in the order in which the catalogue first uses them."""
    found: dict[str, Reference] = {}
    for c in chips():
        used: list[Reference] = [r for s in c.figures.values() for r in s.refs]
        used += [r for m in c.measurements for r in m.refs]
        used += offer_of(c.key).sources if c.torus_dims else ()
        for r in used:
            found.setdefault(_address(r), r)
    return {a: (i, r) for i, (a, r) in enumerate(found.items(), 1)}


def _address(r: Reference) -> str:
    return r.id if r.kind in ("derived", "assumption") else r.url


def number_of(reference: Reference) -> int:
    """The number of a source in the list of sources."""
    return _numbered()[_address(reference)][0]


def source_links(references: Iterable[Reference]) -> tuple[Link, ...]:
    """Links to the list of sources, by number."""
    return tuple(Link(str(n), f"#source-{n}") for n in sorted({number_of(r) for r in references}))


def conflict_links(chip: Chip, field: str) -> tuple[Link, ...]:
    """Links to the conflicts about a figure of a chip.

    >>> from scalebook.hardware import chip
    >>> conflict_links(chip("v3"), "link_bytes_per_s")
    (Link(text='C05', href='#conflict-c05'),)
    """
    return tuple(Link(n.id, f"#conflict-{n.id.lower()}") for n in chip.notes if field in n.figures)


def sourced(source: Source, conflicts: tuple[Link, ...] = ()) -> Cell:
    """A figure with its status, its sources, and the conflicts about it.

    >>> from scalebook.hardware import chip
    >>> str(sourced(chip("v5e").source("hbm_bytes_per_s"))).replace("\u00a0", " ")
    '819 GB/s (vendor+)'
    """
    return Cell(value_words(source.value, source.unit), source.status, source_links(source.refs) + conflicts)


def sources() -> Table:
    """Every source of the catalogue by its number.

    >>> sources().column("what")[0]
    'JAX 0.10.2 Pallas TPU hardware table'
    """
    rows = []
    for n, r in _numbered().values():
        href = r.url if r.url.startswith("http") else ""
        rows.append(
            (Cell(str(n), anchor=f"source-{n}"), Cell(r.title, href=href), _KINDS.get(r.kind, r.kind), plain_numbers(r.note))
        )
    return Table("Sources", ("no.", "what", "kind", "remark"), tuple(rows))


def statuses() -> Table:
    """What the status words mean, and how many figures have each.

    >>> statuses().column("status")[:3]
    ['vendor+', 'vendor', 'vendor-code']
    """
    every = [s.status for c in chips() for s in c.figures.values()]
    rows = tuple((name, meaning, count(every.count(name))) for name, meaning in Source.MEANING.items())
    return Table("How well a figure is established", ("status", "meaning", "figures"), rows)


# ---- judgments, measurements, assumptions -------------------------------------------------------------------------------


def conflicts(chip: Chip | None = None) -> Entries:
    """Where sources disagree, for all chips or one: what each says, what the catalogue takes, and why.

    >>> from scalebook.hardware import chip
    >>> conflicts(chip("v3")).entries[0].title
    'C01: TPU v3 bf16 peak'
    """
    found = {n.id: n for c in (chips() if chip is None else (chip,)) for n in c.notes}
    titles: dict[str, str] = {}
    for _, r in _numbered().values():
        titles.setdefault(r.id, re.split(r", | \(|: | with ", r.title)[0])
    entries = []
    for n in sorted(found.values(), key=lambda n: n.id):
        said = "; ".join(plain_numbers(re.sub(r"\b[A-Z][A-Z0-9_]{2,}\b", lambda m: titles.get(m[0], m[0]), c)) for c in n.claims)
        taken = f"Taken: {plain_numbers(n.judgment)}. Confidence: {n.confidence}."
        refs = [r for _, r in _numbered().values() if any(r.id in c for c in n.claims)]
        lines = (taken, _sentence(plain_numbers(n.why)), f"Read: {said}.")
        entries.append(Entry(f"{n.id}: {plain_numbers(n.topic)}", lines, source_links(refs), f"conflict-{n.id.lower()}"))
    return Entries(tuple(entries))


def _sentence(text: str) -> str:
    """A note as a sentence; a name such as v5p keeps its small letter."""
    first = text.partition(" ")[0]
    return (text[:1].upper() + text[1:] if first.isalpha() else text) + ("" if text.endswith(".") else ".")


def measured() -> Table:
    """Measured shares of the peaks, latencies and curves, each once.

    >>> "best-shape bf16 matmul, H100 SXM (H200 same): 794.5 of 989 TFLOP/s" in measured().column("what was measured")
    True
    """
    by_id: dict[str, tuple[Any, list[str]]] = {}
    for c in chips():
        for m in c.measurements:
            by_id.setdefault(m.id, (m, []))[1].append(c.name)
    rows = tuple(
        (
            m.what,
            Cell(value_words(m.value, m.unit), plain_numbers(m.note), source_links(m.refs)),
            ", ".join(on),
        )
        for m, on in by_id.values()
    )
    return Table("Measured, and what compilers and libraries assume", ("what was measured", "value", "chips"), rows)


def assumed() -> Table:
    """Every figure that has no source, by what it is: the value, why it was taken, and for which chips.

    >>> "latency of a hop" in assumed().column("figure")
    True
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    for c in chips():
        for name, s in c.figures.items():
            if s.status == "assumed":
                groups.setdefault((field_words(name), value_words(s.value, s.unit), s.note), []).append(c.name)
        if c.torus_dims and offer_of(c.key).wrap_status == "assumed":
            groups.setdefault(("wraparound", "which axes close", offer_of(c.key).wrap_note), []).append(c.name)
    rows = tuple((what, value, plain_numbers(why), ", ".join(on)) for (what, value, why), on in sorted(groups.items()))
    return Table("Assumed", ("figure", "value", "because", "for"), rows)


def not_known(names: Iterable[str], among: Iterable[Chip]) -> tuple[str, ...]:
    """The reasons why figures are not known, a line per reason.

    >>> from scalebook.hardware import chip
    >>> not_known(("link_bytes_per_s",), [chip("v2")])
    ('rate of a link, one way of TPU v2: not found in a source that could be read.',)
    """
    reasons: dict[tuple[str, str], list[str]] = {}
    for c in among:
        for name in names:
            if name in c.unknown:
                reasons.setdefault((name, c.unknown[name]), []).append(c.name)
    return tuple(f"{field_words(name)} of {', '.join(on)}: {why}." for (name, why), on in reasons.items())
