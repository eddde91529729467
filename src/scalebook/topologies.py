"""How chips are wired: TPU slices with their torus axes, GPU nodes with their switches, and the network above.

Shapes, wraparound and product names are in `data/slices.toml`, each with its source. A shape that no vendor's list or rule has is
refused; where no list is known it is accepted and marked unverified.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass, field
from typing import SupportsIndex

from scalebook.errors import HardwareError, TopologyError, shown
from scalebook.hardware import Chip, Reference, chip as chip_of
from scalebook.slices import Shape, named, offer_of, shape_of_product, twistable, verified_shape
from scalebook.units import count, plural, si


@dataclass(frozen=True)
class PhysicalAxis:
    """One dimension of a machine. `bytes_per_s` is what one device can send over it in one direction: nominal × efficiency.

    On a ring or a line a device has such a link in both directions (at the ends of a line in one); on a switch it is the
    one-way rate of the device's port. None where no source gives the rate. A latency of which nothing is known is 0, and the
    topology's notes say so. `peer_bytes_per_s` is given where a "switch" is none, but a link between every two devices: what one
    device can send to one other. A group of k then has k − 1 such links a device, however large its port.
    """

    name: str
    size: int
    kind: str  # "ring", "line" or "switch"
    bytes_per_s: float | None
    hop_latency_s: float
    launch_latency_s: float
    status: str
    peer_bytes_per_s: float | None = None


@dataclass(frozen=True)
class Topology:
    """A machine: `num_slices` TPU slices of one shape, or GPU nodes. Made by `topology(…)`.

    >>> t = topology("v5e:8x16", num_slices=2)
    >>> t.chips, t.hosts, t.wraparound
    (256, 64, (False, True))
    """

    spec: str
    chip: Chip
    shape: Shape
    num_slices: int
    hosts: int  # machines as a program sees them (virtual machines, processes)
    wraparound: tuple[bool, ...]  # per torus axis; of a GPU machine empty
    wraparound_status: str
    verified: bool  # a vendor's list or rule has this shape
    physical_axes: tuple[PhysicalAxis, ...]  # outermost first
    notes: tuple[str, ...] = ()
    sources: tuple[Reference, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        many = f", {plural(self.num_slices, 'slice')}" if self.num_slices > 1 else ""
        return f"<machine {self.spec}{many}: {plural(self.chips, 'chip')}, {plural(self.devices, 'device')}, {plural(self.hosts, 'host')}>"

    @property
    def chips(self) -> int:
        """Chips of the whole machine: the product of the shape, times the slices."""
        return math.prod(self.shape) * self.num_slices

    @property
    def devices(self) -> int:
        """Devices as a program sees them: chips × devices per chip."""
        return self.chips * (self.chip.devices_per_chip or 1)

    @property
    def bisection_bytes_per_s(self) -> float | None:
        """Nominal bytes/s one way across the narrowest cut of one TPU slice into halves; None for GPUs and unknown links.

        A ring is cut twice, a line once: links cut × one-way link rate, at the axis where that is least.

        >>> topology("v5e:16x16").bisection_bytes_per_s / 1e12    # as the vendor says: 1.6 TB/s
        1.6
        """
        rate, size = self.chip.link_bytes_per_s, math.prod(self.shape)
        if self.chip.kind != "tpu" or rate is None or size == 1:
            return None
        cuts = [size // n * (2 if wraps else 1) for n, wraps in zip(self.shape, self.wraparound, strict=True) if n > 1]
        return min(cuts) * rate

    def explain(self) -> str:
        """What the machine is and what each of its axes can carry, as text."""
        lines = [f"{self.spec}" + (f" × {plural(self.num_slices, 'slice')}" if self.num_slices > 1 else "")]
        lines[0] += f": {plural(self.chips, 'chip')}, {plural(self.devices, 'device')}, {plural(self.hosts, 'host')}"
        for axis in self.physical_axes:
            rate = si(axis.bytes_per_s, "B/s") + (" per device and direction" if axis.bytes_per_s else "")
            lines.append(f"  {axis.name}: {axis.kind} of {count(axis.size)}, {rate} ({axis.status})")
        return "\n".join(
            [
                *lines,
                *(f"  note: {n}" for n in self.notes),
                *(f"  source: {s}" for s in self.sources),
            ]
        )


def _latency(chip: Chip, name: str, notes: list[str]) -> float:
    """A latency of the chip, 0 where nothing is known; either way a note when it is not established."""
    value: float | None = getattr(chip, name)
    if value is None:
        notes.append(f"{name} of {chip.name} is not known and taken as 0")
        return 0.0
    source = chip.source(name)
    if source.status == "assumed":
        notes.append(f"{name} of {chip.name} is assumed: {source.note}")
    return value


def _rate(chip: Chip, nominal: str, efficiency: str, share: int = 1) -> tuple[float | None, str]:
    """Nominal × efficiency ÷ share, with the weaker status of the two; None where either is unknown."""
    rate, part = getattr(chip, nominal), getattr(chip, efficiency)
    if rate is None or part is None:
        return None, "unknown"
    both = [chip.source(efficiency).status, chip.source(nominal).status]
    return rate * part / share, next(
        (s for s in ("assumed", "single", "derived", "agree", "measured") if s in both),
        both[0],
    )


def _tpu(asked: str, chip: Chip, shape: Shape, num_slices: int, notes: list[str]) -> Topology:
    """TPU slices: the network between them, one axis per dimension of the torus, and the devices of a chip."""
    if chip.torus_dims is None:
        raise TopologyError(
            f"{asked!r}: {chip.name} is not wired as a torus but as {chip.wiring}; its machines cannot be described"
        )
    verified, offer = verified_shape(asked, chip, shape), offer_of(chip.key)
    if not verified:
        why = "it is not in the vendor's list but follows the rule of v5p" if offer.listed else "no list of slice shapes is known"
        notes.append(f"{chip.name} {named(shape)} is unverified: {why}")
    if offer.largest_job_chips and math.prod(shape) > offer.largest_job_chips:
        notes.append(f"the vendor schedules jobs of at most {count(offer.largest_job_chips)} chips on one slice")
    if "twisted_torus" in chip.figures and twistable(shape):
        notes.append("this shape can be wired as a twisted torus, which helps all-to-all; it is modelled untwisted")
    notes += [f"{what}: {text}" for what, text in (("wraparound", offer.wrap_note), ("hosts", offer.vm_note)) if text]
    devices = chip.devices_per_chip or 1
    if chip.devices_per_chip is None:
        notes.append(f"devices per chip of {chip.name}: {chip.unknown.get('devices_per_chip', 'not known')}")
    launch, hop = (
        _latency(chip, "launch_latency_s", notes),
        _latency(chip, "hop_latency_s", notes),
    )
    dcn_hop = _latency(chip, "dcn_hop_latency_s", notes if num_slices > 1 else [])
    dcn, dcn_status = _rate(chip, "dcn_bytes_per_s", "dcn_efficiency", devices)
    link, link_status = _rate(chip, "link_bytes_per_s", "link_efficiency", devices)
    wraps = offer.wraps(shape)
    axes = [PhysicalAxis("dcn", num_slices, "switch", dcn, dcn_hop, launch, dcn_status)]
    for i, (size, wrap) in enumerate(zip(shape, wraps, strict=True)):
        axes.append(
            PhysicalAxis(
                f"ici{i}",
                size,
                "ring" if wrap else "line",
                link,
                hop,
                launch,
                link_status,
            )
        )
    if devices > 1:
        notes.append(f"the {devices} devices of a chip share its links: each device is given 1/{devices} of their rate")
        inside, inside_status = _rate(chip, "die_to_die_bytes_per_s", "link_efficiency")
        axes.append(PhysicalAxis("core", devices, "switch", inside, 0.0, launch, inside_status))
    return Topology(
        spec=f"{chip.key}:{named(shape)}",
        chip=chip,
        shape=shape,
        num_slices=num_slices,
        hosts=num_slices * offer.hosts(shape),
        wraparound=wraps,
        wraparound_status=offer.wrap_status,
        verified=verified,
        physical_axes=tuple(axes),
        notes=tuple(notes),
        sources=offer.sources,
    )


def _check_nodes(asked: str, chip: Chip, nodes: int, gpus: int) -> None:
    """TopologyError for more GPUs in a domain than it has, or for several nodes that are not whole."""
    domain, host = chip.domain or 8, chip.chips_per_host or chip.domain or 8
    rack = domain > host  # a domain of several hosts may be used host by host, that of one host only whole
    part_ok = nodes == 1 or gpus == domain or chip.domain is None or (rack and gpus % host == 0)
    if gpus <= domain and part_ok:
        return
    unit = (
        f"an NVLink domain of {chip.name} has {domain} GPUs, {host} a host"
        if rack
        else f"nodes of {chip.name} have {domain} GPUs"
    )
    rule = f"several domains are used in multiples of {host} GPUs" if rack else "part of a node is possible on one node only"
    whole = sorted({max(1, round(nodes * gpus / domain)), nodes})
    near = " or ".join(f"{chip.key}:{n}x{domain}" for n in whole)
    raise TopologyError(f"{asked!r}: {nodes} x {gpus}, but {unit}, and {rule}. Nearest: {near}")


def _gpu(asked: str, chip: Chip, shape: Shape, num_slices: int, notes: list[str]) -> Topology:
    """GPU nodes (or racks): the network between them, and the switch inside."""
    if num_slices != 1:
        raise TopologyError(
            f"{asked!r} with num_slices={num_slices}: slices are of TPUs; more GPU nodes go into the shape: '{chip.key}:16x8'"
        )
    if len(shape) != 2:
        raise TopologyError(
            f"{asked!r}: GPUs are written nodes x GPUs, such as '{chip.key}:16x8' for 16 nodes of 8; found {named(shape)}"
        )
    nodes, gpus = shape
    _check_nodes(asked, chip, nodes, gpus)
    if chip.domain and gpus < chip.domain:
        notes.append(f"{gpus} of the {chip.domain} GPUs that are joined")
    used = chip.links or 0
    if chip.wiring == _NO_SWITCH:
        used = min(used, gpus - 1)
        notes.append(
            f"no switch: every pair of GPUs has a link of its own, so {gpus} GPUs use {used} of the {chip.links} links of each"
        )
    if chip.domain is None:
        notes.append(f"{chip.name} has no links of its own to other GPUs, and its rate over PCIe is not known")
    if chip.dcn_bytes_per_s is None and nodes > 1:
        notes.append(f"the network of {chip.name} nodes is not known: what crosses nodes gets no time")
    launch, hop = (
        _latency(chip, "launch_latency_s", notes),
        _latency(chip, "hop_latency_s", notes),
    )
    dcn_hop = _latency(chip, "dcn_hop_latency_s", notes if nodes > 1 else [])
    network, network_status = _rate(chip, "dcn_bytes_per_s", "dcn_efficiency")
    link, link_status = _rate(chip, "link_bytes_per_s", "link_efficiency")
    inside = "pcie" if chip.domain is None else "nvlink" if chip.vendor == "NVIDIA" else "fabric"
    return Topology(
        spec=f"{chip.key}:{nodes}x{gpus}",
        chip=chip,
        shape=shape,
        num_slices=1,
        hosts=nodes * -(-gpus // (chip.chips_per_host or chip.domain or 8)),
        wraparound=(),
        wraparound_status="definition",
        verified=chip.domain is not None,
        physical_axes=(
            PhysicalAxis("network", nodes, "switch", network, dcn_hop, launch, network_status),
            PhysicalAxis(
                inside,
                gpus,
                "switch",
                None if link is None else link * used,
                hop,
                launch,
                link_status,
                link if chip.wiring == _NO_SWITCH else None,
            ),
        ),
        notes=tuple(dict.fromkeys(notes)),
    )


_SPEC = re.compile(
    r"(?P<chip>.*?\w)\s*[:\s_-]\s*(?P<shape>\d+(?:\s*[x×*]\s*\d+)*)",
    re.IGNORECASE | re.ASCII,
)
_NO_SWITCH = "full mesh, no switch"
_LONGEST = 80  # characters of a specification; more is not one
_LARGEST = 10**6  # of one dimension; more is a slip of the finger
MAX_SLICES = 1024  # more than any machine has had


def topology(spec: str | Topology, num_slices: SupportsIndex | None = None) -> Topology:
    """The machine written "chip:shape": a TPU slice in chips ("v5p:8x8x16"), or GPU nodes x GPUs per node ("h100:16x8").

    >>> t = topology("v5p:8x8x16")
    >>> t.chips, t.hosts, t.wraparound
    (1024, 256, (True, True, True))
    >>> [(a.name, a.size, a.kind) for a in topology("h100:16x8").physical_axes]
    [('network', 16, 'switch'), ('nvlink', 8, 'switch')]

    Product names are read as the vendor means them: v5p-8 counts TensorCores, v5litepod-64 chips.

    >>> topology("v5p-8").spec, topology("v5litepod-64").spec
    ('v5p:2x2x1', 'v5e:8x8')

    `num_slices` equal TPU slices (one, when it is not given) are joined by the data-center network; a Topology is given back as it
    is, or made again with the number that is asked for. Raises TopologyError for a machine that cannot be had,
    with the nearest ones, and HardwareError for a chip that is not in the catalogue. Sources: `data/slices.toml`; `.explain()`
    shows them.
    """
    if not isinstance(spec, (str, Topology)):
        raise TopologyError(f"a machine is given as text, such as 'v5e:16x16' or 'h100:16x8'; found {shown(spec)}")
    slices = _slices(spec, num_slices)
    if isinstance(spec, Topology):
        if slices in (None, spec.num_slices):
            return spec
        return _BUILDERS[spec.chip.kind](spec.spec, spec.chip, spec.shape, slices or 1, [])
    match = _SPEC.fullmatch(spec.strip()) if len(spec) <= _LONGEST else None
    if match is None:
        raise TopologyError(
            f"cannot read {shown(spec, _LONGEST)}: a machine is written chip:shape, such as 'v5e:16x16', 'v5p:8x8x16' or 'h100:16x8'"
        )
    try:
        chip = chip_of(match["chip"])
    except HardwareError as error:
        raise HardwareError(f"{spec!r}: {error}") from None
    shape = tuple(int(n) for n in re.findall(r"\d+", match["shape"]))
    if not all(1 <= n <= _LARGEST for n in shape):
        raise TopologyError(f"{spec!r}: every number of {match['shape']} is from 1 to {count(_LARGEST)}")
    notes: list[str] = []
    if len(shape) == 1:
        if chip.kind == "gpu":
            raise TopologyError(
                f"{spec!r}: GPUs are written nodes x GPUs; for one node of {shape[0]} write '{chip.key}:1x{shape[0]}'"
            )
        if ":" in spec:
            raise TopologyError(
                f"{spec!r}: a TPU shape has every dimension, such as 'v5e:4x8' or 'v5p:4x4x8'; "
                f"the product named {chip.key}-{shape[0]} is written with a hyphen"
            )
        shape, note = shape_of_product(spec, chip, shape[0])
        notes.append(note)
    return _BUILDERS[chip.kind](spec, chip, shape, slices or 1, notes)


_BUILDERS = {"tpu": _tpu, "gpu": _gpu}


def _slices(spec: str | Topology, num_slices: SupportsIndex | None) -> int | None:
    """The number of slices that was asked for, NumPy's integers too; None if none was."""
    if num_slices is None:
        return None
    try:
        slices = 0 if isinstance(num_slices, bool) else operator.index(num_slices)
    except TypeError:
        slices = 0
    if not 1 <= slices <= MAX_SLICES:
        machine = spec.spec if isinstance(spec, Topology) else spec
        raise TopologyError(
            f"{shown(machine)}: num_slices is a whole number from 1 to {count(MAX_SLICES)}; found {shown(num_slices)}"
        )
    return slices
