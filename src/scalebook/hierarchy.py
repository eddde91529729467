"""Where a TPU's numbers can be, from the registers to another slice: what each level holds, and how fast one chip gets at it.

    >>> for level in levels("v5e"):
    ...     print(str(level).replace("\\u00a0", " "))
    VREG: unknown, unknown
    VMEM: 128 MiB, 17.8 TB/s
    HBM: 16 GiB, 819 GB/s
    ICI: 4 TiB, 180 GB/s, 1 µs a hop
    host: 64 GiB, 16 GB/s
    DCN: unknown, 2.5 GB/s

All rates are of one chip and one way, and everything is from the catalogue: what no source gives is None, never guessed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scalebook.errors import HardwareError, unknown
from scalebook.hardware import Chip, chip as chip_of
from scalebook.units import binary, si

VREG_BYTES = 8 * 128 * 4


@dataclass(frozen=True)
class Level:
    """One level: what it holds for one chip, and the rate at which one chip gets at it; None is unknown."""

    key: str
    name: str
    what: str
    nbytes: float | None
    bytes_per_s: float | None
    latency_s: float | None = None

    def seconds(self, nbytes: float) -> float | None:
        """Latency + bytes ÷ rate; None where the rate is unknown, and no latency where that is.

        >>> level(chip_of("v5e"), "hbm").seconds(819e9)
        1.0
        """
        return None if self.bytes_per_s is None else (self.latency_s or 0.0) + nbytes / self.bytes_per_s

    def __str__(self) -> str:
        hop = "" if self.latency_s is None else f", {si(self.latency_s, 's')} a hop"
        return f"{self.name}: {binary(self.nbytes)}, {si(self.bytes_per_s, 'B/s')}{hop}"


def levels(chip: str | Chip) -> tuple[Level, ...]:
    """The levels of a TPU chip, nearest first.

    - VREG: registers × 4 KiB × cores. VMEM and HBM: as in the catalogue.
    - ICI: links × one-way rate × efficiency, when all of a chip's links are used at once; it reaches the HBM of a whole pod.
    - host: the chip's share of its host's memory, over PCIe.
    - DCN: the chip's share of the network between slices × efficiency; what it reaches has no bound of its own.

    Raises HardwareError for a GPU, whose memories are others.
    """
    c = chip_of(chip)
    if c.kind != "tpu":
        raise HardwareError(f"{c.name} is a GPU: these are the levels of a TPU, such as 'v5e'")
    registers, host_dram = _figure(c, "vregs"), _figure(c, "host_dram_bytes")
    return (
        Level("vreg", "VREG", "vector registers", _product(registers, c.tensorcores, VREG_BYTES), None),
        Level("vmem", "VMEM", "scratchpad on the chip", c.vmem_bytes, c.vmem_bytes_per_s),
        Level("hbm", "HBM", "the chip's memory", c.hbm_bytes, c.hbm_bytes_per_s),
        Level("ici", "ICI", "HBM of all chips of a pod", _product(c.pod_chips, c.hbm_bytes),
              _product(c.links, c.link_bytes_per_s, c.link_efficiency), c.hop_latency_s),
        Level("host", "host", "the host's memory, over PCIe", _product(host_dram, 1 / c.chips_per_host if c.chips_per_host else None),
              c.pcie_bytes_per_s),
        Level("dcn", "DCN", "other slices, over the data-centre network", None,
              _product(c.dcn_bytes_per_s, c.dcn_efficiency), c.dcn_hop_latency_s),
    )  # fmt: skip


def level(chip: str | Chip, key: str) -> Level:
    """One level of a chip by its key: "vreg", "vmem", "hbm", "ici", "host", "dcn"."""
    found = {x.key: x for x in levels(chip)}
    if key not in found:
        raise unknown("level of memory", key, found, HardwareError)
    return found[key]


def _figure(chip: Chip, name: str) -> float | None:
    """A figure of the catalogue that is no field of Chip."""
    return chip.figures[name].value if name in chip.figures else None


def _product(*factors: float | None) -> float | None:
    known = [f for f in factors if f is not None]
    return math.prod(known) if len(known) == len(factors) else None
