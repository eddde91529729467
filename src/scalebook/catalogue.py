"""The catalogue of chips and slices as tables: side by side by what one asks, each figure with its status and sources.

Rows are chips, so that one compares down a column. Nothing is typed here: values come from `data/chips.toml` and `data/slices.toml`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scalebook.errors import unknown
from scalebook.hardware import Chip, chip as chip_of, chips
from scalebook.provenance import conflict_links, field_words, not_known, plain_numbers, source_links, sourced, value_words
from scalebook.slices import Offer, named, offer_of
from scalebook.sources import Source
from scalebook.tables import Cell, Content, Folded, Table
from scalebook.units import count, digits

NOT_KNOWN = Cell("not known", quiet=True)
NONE = Cell("–", quiet=True)


@dataclass(frozen=True)
class Column:
    """A column of a table of chips: its head, the field of the catalogue, and how the value is shown."""

    head: str
    field: str
    show: Callable[[Any], str] | None = None

    def cell(self, c: Chip) -> Content:
        """The figure of a chip, or that it is not known."""
        if self.field not in c.figures:
            return NOT_KNOWN
        source = c.source(self.field)
        cell = sourced(source, conflict_links(c, self.field))
        return cell if self.show is None else Cell(self.show(source.value), cell.below, cell.links)


def _scaled(by: float) -> Callable[[Any], str]:
    return lambda value: digits(value / by, 5)


def _share(value: float) -> str:
    return digits(value, 3)


TERA, GIGA, MICRO, GIB, MIB = 1e12, 1e9, 1e-6, 2**30, 2**20

_MEMORY = (
    Column("HBM, GiB", "hbm_bytes", lambda v: digits(v / GIB, 4)),
    Column("usable, GiB per device", "hbm_usable_bytes_per_device", lambda v: digits(v / GIB, 4)),
    Column("devices per chip", "devices_per_chip"),
    Column("HBM, GB/s", "hbm_bytes_per_s", _scaled(GIGA)),
)
_LINKS = (
    Column("links", "links"),
    Column("one link, one way, GB/s", "link_bytes_per_s", _scaled(GIGA)),
    Column("share that collectives get", "link_efficiency", _share),
    Column("a hop, µs", "hop_latency_s", lambda v: digits(v / MICRO, 3)),
    Column("launch, µs", "launch_latency_s", lambda v: digits(v / MICRO, 3)),
)
_NETWORK = (
    Column("network per chip, one way, GB/s", "dcn_bytes_per_s", _scaled(GIGA)),
    Column("share that collectives get", "dcn_efficiency", _share),
    Column("network hop, µs", "dcn_hop_latency_s", lambda v: digits(v / MICRO, 3)),
)
_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("memory", "tpu"): (
        *_MEMORY,
        Column("VMEM, MiB", "vmem_bytes", lambda v: digits(v / MIB, 4)),
        Column("VMEM, GB/s", "vmem_bytes_per_s", _scaled(GIGA)),
    ),
    ("memory", "gpu"): (
        _MEMORY[0],
        _MEMORY[3],
        Column("L2, MiB", "l2_bytes", lambda v: digits(v / MIB, 4)),
        Column("shared memory per multiprocessor, KiB", "smem_bytes_per_sm", lambda v: digits(v / 1024, 4)),
    ),
    ("links", "tpu"): (*_LINKS, Column("wired as", "wiring"), Column("device to device of a chip, GB/s", "die_to_die_bytes_per_s", _scaled(GIGA))),
    ("links", "gpu"): (*_LINKS, Column("GPUs joined", "domain", count)),
    ("machines", "tpu"): (
        Column("chips per host", "chips_per_host", count),
        Column("PCIe per chip, GB/s", "pcie_bytes_per_s", _scaled(GIGA)),
        *_NETWORK,
        Column("pod, chips", "pod_chips", count),
        Column("pod", "pod_shape", named),
    ),
    ("machines", "gpu"): (
        Column("GPUs per host", "chips_per_host", count),
        Column("PCIe per GPU, GB/s", "pcie_bytes_per_s", _scaled(GIGA)),
        *_NETWORK,
        Column("network per node, GB/s", "node_nic_bytes_per_s", _scaled(GIGA)),
        Column("power, W", "tdp_w", count),
    ),
    ("cores", "tpu"): (
        Column("TensorCores", "tensorcores"),
        Column("matrix units per core", "mxu_per_tensorcore"),
        Column("side of a matrix unit", "mxu_dim", count),
        Column("vector unit, sublanes × lanes", "vpu", lambda v: " × ".join(map(str, v))),
        Column("clock, GHz", "clock_hz", lambda v: digits(v / GIGA, 4)),
    ),
    ("cores", "gpu"): (
        Column("multiprocessors", "sms"),
        Column("clock of the peak, GHz", "clock_hz", lambda v: digits(v / GIGA, 4)),
        Column("highest clock, GHz", "clock_max_hz", lambda v: digits(v / GIGA, 4)),
    ),
}  # fmt: skip
_TITLES = {
    "memory": "Memory",
    "links": "Links between chips",
    "machines": "Hosts and the network between machines",
    "cores": "Inside",
}
_DTYPES = {"tpu": ("bf16", "int8", "fp8", "fp4"), "gpu": ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")}
_NAMES = {"tpu": "TPUs", "gpu": "GPUs"}


def _of_kind(kind: str) -> list[Chip]:
    if kind not in _NAMES:
        raise unknown("kind of chip", kind, _NAMES)
    return [c for c in chips() if c.kind == kind]


def peaks(kind: str) -> Table:
    """Dense peak rates by number format, in 10¹² operations/s per chip; what is claimed but not confirmed stands below.

    >>> dict(zip(peaks("tpu").column("chip"), peaks("tpu").column("bf16"), strict=True))["TPU v5e"]
    '197'
    """
    found = _of_kind(kind)
    columns = [Column(d, f"flops_per_s.{d}", _scaled(TERA)) for d in _DTYPES[kind]]
    rows = tuple((_chip_name(c), *(cell if (cell := k.cell(c)) != NOT_KNOWN else NONE for k in columns)) for c in found)
    claims = tuple(
        f"claimed for {c.name}, not confirmed and not used: {d} at {value_words(rate, 'FLOPs/s')}."
        for c in found
        for d, rate in c.claimed_flops_per_s.items()
    )
    notes = ("–: no confirmed rate, since the format is not native there or no source that was read has one.", *claims)
    why = not_known([f"flops_per_s.{d}" for d in _DTYPES[kind]], found)
    caption = f"{_NAMES[kind]}: dense peak of the matrix units, 10¹² operations per second"
    return Table(caption, ("chip", *(k.head for k in columns)), rows, (*notes, *why))


def side_by_side(topic: str, kind: str) -> Table:
    """The chips of a kind beside each other: topic "memory", "links", "machines" or "cores", kind "tpu" or "gpu".

    >>> table = side_by_side("memory", "tpu")
    >>> dict(zip(table.column("chip"), table.column("HBM, GB/s"), strict=True))["TPU v5e"]
    '819'
    """
    if topic not in _TITLES:
        raise unknown("topic", topic, _TITLES)
    found = _of_kind(kind)
    columns = _COLUMNS[topic, kind]
    rows = tuple((_chip_name(c), *(k.cell(c) for k in columns)) for c in found if any(k.field in c.figures for k in columns))
    return Table(
        f"{_NAMES[kind]}: {_TITLES[topic].lower()}",
        ("chip", *(k.head for k in columns)),
        rows,
        not_known([k.field for k in columns], found),
    )


def _chip_name(c: Chip) -> Cell:
    return Cell(c.name, href=f"#chip-{c.key}")


def everything(chip: Chip | str) -> Table:
    """Every figure of a chip with its unit, status, sources and remark, and what is not known of it.

    >>> everything("v5e").column("figure")[0]
    'bf16 rate'
    """
    c = chip_of(chip)
    rows = [(field_words(name), sourced(s, conflict_links(c, name)), _remark(s)) for name, s in c.figures.items()]
    rows += [(field_words(name), NOT_KNOWN, why) for name, why in c.unknown.items()]
    return Table(f"{c.name}: every figure of the catalogue", ("figure", "value", "remark"), tuple(rows))


def _remark(s: Source) -> str:
    return "; ".join(part for part in (s.scope, plain_numbers(s.note)) if part)


def all_figures() -> Folded:
    """Every chip with all its figures, folded."""
    return Folded(tuple((f"{c.name}: {count(len(c.figures))} figures", everything(c), f"chip-{c.key}") for c in chips()))


# ---- slices -------------------------------------------------------------------------------------------------------------


def slices() -> Table:
    """The shapes in which each TPU is offered, which axes close into rings, and what product names count.

    >>> dict(zip(slices().column("chip"), slices().column("listed"), strict=True))["TPU v5e"]
    '8 shapes, 1x1 to 16x16'
    """
    rows = []
    for c in chips():
        if c.torus_dims is None:
            continue
        o = offer_of(c.key)
        shown = (
            f"{len(o.listed)} shapes, {named(o.listed[0])} to {named(max(o.listed, key=math.prod))}" if o.listed else "not known"
        )
        listed = Cell(shown, "", source_links(o.sources), quiet=not o.listed)
        counted: Content = {"cores": "TensorCores", "chips": "chips"}.get(o.name_counts or "", NOT_KNOWN)
        machine = f"{o.chips_per_vm} chips" + (f"; one machine for up to {max(o.single_vm)}" if o.single_vm else "")
        rows.append((_chip_name(c), Cell(_wrap(o), o.wrap_status), listed, _rule(o), counted, machine))
    notes: dict[tuple[str, str], list[str]] = {}
    for c in chips():
        if c.torus_dims:
            o = offer_of(c.key)
            for what, words in (("wraparound", o.wrap_note), ("hosts", o.vm_note)):
                if words:
                    notes.setdefault((what, words), []).append(c.name)
    below = tuple(f"{what} of {', '.join(on)}: {words}." for (what, words), on in notes.items())
    head = ("chip", "closes into rings", "listed", "beyond the list", "a product's number counts", "a machine has")
    return Table("Slices of TPUs", head, tuple(rows), below)


def _rule(o: Offer) -> Content:
    if not o.multiples_of:
        return "nothing" if o.listed else NOT_KNOWN
    return Cell(f"A ≤ B ≤ C, multiples of {o.multiples_of}, to {count(o.max_chips)} chips", o.rule_status)


def _wrap(o: Offer) -> str:
    if o.wrap == "cubes":
        return "all axes if every side is a multiple of 4, else none"
    return f"an axis of {o.wrap}"


def shapes(chip: Chip | str) -> Table:
    """Every listed shape of a TPU with its chips, devices, machines, and the axes that close into rings.

    >>> shapes("v5e").column("rings")[-1], shapes("v5e").column("rings")[-2]
    ('both axes', 'the second axis')
    """
    c = chip_of(chip)
    if c.torus_dims is None:
        raise unknown("TPU with a list of slices", c.key, [k.key for k in chips() if k.torus_dims])
    o, rows = offer_of(c.key), []
    for s in o.listed:
        n = math.prod(s)
        rows.append((named(s), count(n), count(n * (c.devices_per_chip or 1)), count(o.hosts(s)), _rings(o.wraps(s))))
    return Table(f"{c.name}: listed slices", ("shape", "chips", "devices", "machines", "rings"), tuple(rows))


def _rings(wraps: tuple[bool, ...]) -> str:
    if not any(wraps):
        return "none"
    if all(wraps):
        return "both axes" if len(wraps) == 2 else f"all {len(wraps)} axes"
    return "the " + " and ".join(("first", "second", "third")[i] for i, w in enumerate(wraps) if w) + " axis"


def all_shapes() -> Folded:
    """Every TPU with its listed slices, folded."""
    found = [c for c in chips() if c.torus_dims and offer_of(c.key).listed]
    return Folded(tuple((f"{c.name}: {count(len(offer_of(c.key).listed))} listed slices", shapes(c), "") for c in found))
