"""What a chip can do: the catalogue of chips, each figure with its source.

The figures are in `data/chips.toml`; the file is read when the first chip is asked for. A figure without a value, a unit, a
source and a status cannot be loaded. What is unknown is absent (None), never guessed; what is assumed says so in its status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from scalebook.errors import HardwareError, shown, unknown, within
from scalebook.sources import Measurement, Note, Rates, Reference, Source, tables
from scalebook.units import NO_BREAK, binary, si

__all__ = ["Chip", "Measurement", "Note", "Rates", "Reference", "Source", "chip", "chips"]


@dataclass(frozen=True)
class Chip:
    """One chip (a GPU, or a TPU chip with all its cores). Rates are nominal; bandwidths one-way; None is unknown.

    >>> c = chip("v5p")
    >>> c.links * c.link_bytes_per_s * c.link_efficiency    # what a chip can send to all its neighbours at once, bytes/s
    540000000000.0
    >>> c.source("hbm_bytes_per_s").status
    'vendor'
    """

    key: str
    name: str
    vendor: str
    kind: str  # "tpu" or "gpu"
    flops_per_s: Rates  # dense matrix units, by dtype; only confirmed rates
    claimed_flops_per_s: Rates  # stated by one source and contradicted or unconfirmed: never used by the library
    hbm_bytes: int | None = None
    hbm_usable_bytes_per_device: int | None = None  # what a program can have on one device, where that is known
    hbm_bytes_per_s: float | None = None
    vmem_bytes: int | None = None
    vmem_bytes_per_s: float | None = None
    devices_per_chip: int | None = None  # devices as a program sees them
    links: int | None = None
    link_bytes_per_s: float | None = None  # one link, one direction, nominal
    link_efficiency: float | None = None  # share of it that collectives get
    hop_latency_s: float | None = None
    launch_latency_s: float | None = None  # fixed cost of a collective
    die_to_die_bytes_per_s: float | None = None  # one device to the other of its chip, one direction
    dcn_bytes_per_s: float | None = None  # data-center network, per chip, one direction
    dcn_efficiency: float | None = None
    dcn_hop_latency_s: float | None = None
    node_nic_bytes_per_s: float | None = None
    pcie_bytes_per_s: float | None = None
    chips_per_host: int | None = None
    domain: int | None = None  # GPUs joined by NVLink or its like; None on TPUs
    torus_dims: int | None = None  # 2 or 3 on TPUs
    wiring: str | None = None
    pod_chips: int | None = None
    pod_shape: tuple[int, ...] | None = None
    pod_bisection_bytes_per_s: float | None = None
    pod_all_reduce_bytes_per_s: float | None = None
    tensorcores: int | None = None
    mxu_per_tensorcore: int | None = None
    mxu_dim: int | None = None
    clock_hz: float | None = None
    tdp_w: float | None = None
    figures: Mapping[str, Source] = field(default_factory=dict, repr=False, compare=False)
    unknown: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)  # figure → why it is not known
    notes: tuple[Note, ...] = field(default=(), repr=False, compare=False)
    measurements: tuple[Measurement, ...] = field(default=(), repr=False, compare=False)

    def __repr__(self) -> str:
        dtype = "bf16" if "bf16" in self.flops_per_s else next(iter(self.flops_per_s), None)
        peak = [] if dtype is None else [f"{si(self.flops_per_s[dtype], 'FLOPs/s')} {dtype}"]
        memory = [f"{binary(self.hbm_bytes)} at {si(self.hbm_bytes_per_s, 'B/s')}"]
        return f"<chip {self.key}: {', '.join([self.name, *peak, *memory])}>".replace(NO_BREAK, " ")

    def source(self, name: str) -> Source:
        """The source of a figure by its field: "hbm_bytes_per_s", "flops_per_s.bf16", or one without a field ("l2_bytes").

        >>> chip("v5e").source("link_bytes_per_s").refs[0].url
        'https://docs.cloud.google.com/tpu/docs/v5e'

        A field that was changed with `dataclasses.replace` says so. Raises HardwareError for a figure that is not known, with the
        reason where there is one, and lists those that have a source.
        """
        if within(name, self.figures):
            return self._as_changed(name, self.figures[name])
        if within(name, self.unknown):
            have = ", ".join(self.figures)
            raise HardwareError(f"{self.name}: {name} is not known: {self.unknown[name]}. Figures with a source: {have}")
        raise unknown(f"figure of {self.name}", name, self.figures, HardwareError)

    def _as_changed(self, name: str, source: Source) -> Source:
        group, _, dtype = name.partition(".")
        value = getattr(self, group, source.value)
        value = value.get(dtype) if dtype else value
        if value == source.value:
            return source
        return Source(value, source.unit, "assumed", (), "", note=f"set by hand; the catalogue has {source.value}")


def _squeezed(name: str) -> str:
    """A name in lower case without spaces, hyphens and the like."""
    return "".join(c for c in name.lower() if c.isalnum())


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value


@dataclass(frozen=True)
class _Reader:
    """Turns entries of the catalogue into figures; refuses those without value, unit, source or status."""

    library: Mapping[str, Reference]
    read: str

    def references(self, where: str, entry: Mapping[str, Any]) -> tuple[Reference, ...]:
        missing = [k for k in ("value", "unit", "source") if k not in entry or entry[k] == []]
        if missing:
            rule = "a figure has a value, a unit, a source and a status"
            raise HardwareError(f"{where} has no {' and no '.join(missing)}: {rule}")
        for s in entry["source"]:
            if s not in self.library:
                raise unknown(f"source of {where}", s, self.library, HardwareError)
        return tuple(self.library[s] for s in entry["source"])

    def figure(self, where: str, e: Mapping[str, Any]) -> Source:
        refs = self.references(where, e)
        if e.get("status") not in Source.MEANING:
            raise unknown(f"status of {where}", e.get("status"), Source.MEANING, HardwareError)
        read, note, scope = e.get("read", self.read), e.get("note", ""), e.get("scope", "")
        return Source(_frozen(e["value"]), e["unit"], e["status"], refs, read, note, scope)

    def figures(self, key: str, entries: Mapping[str, Any]) -> dict[str, Source]:
        found: dict[str, Source] = {}
        for name, e in entries.items():
            if name in ("flops_per_s", "claimed_flops_per_s"):
                found |= {f"{name}.{d}": self.figure(f"{key}.{name}.{d}", f) for d, f in e.items()}
            else:
                found[name] = self.figure(f"{key}.{name}", e)
        return found

    def measurement(self, m: Mapping[str, Any]) -> Measurement:
        refs = self.references(f"measurement {m['id']}", m)
        return Measurement(m["id"], m["what"], _frozen(m["value"]), m["unit"], refs, m.get("read", self.read), m.get("note", ""))


def _rates(group: str, figures: Mapping[str, Source], chip: str) -> Rates:
    return Rates({k.removeprefix(f"{group}."): s.value for k, s in figures.items() if k.startswith(f"{group}.")}, chip)


def _load(data: Mapping[str, Any]) -> tuple[dict[str, Chip], dict[str, str]]:
    """Chips by key, and key by squeezed alias, from the tables of a file. HardwareError for a figure that is not complete."""
    if not data.get("read"):
        raise HardwareError('the catalogue does not say when it was read: it needs `read = "YYYY-MM-DD"`')
    library = {k: Reference(k, r["title"], r["ref"], r["kind"], r.get("note", "")) for k, r in data["sources"].items()}
    reader = _Reader(library, data["read"])
    notes = [(n["chips"], Note.of(n)) for n in data.get("notes", ())]
    measured = [(m["chips"], reader.measurement(m)) for m in data.get("measurements", ())]
    plain = {f.name for f in fields(Chip)}
    found: dict[str, Chip] = {}
    aliases: dict[str, str] = {}
    for key, e in data["chips"].items():
        figures = reader.figures(key, e["figures"])
        found[key] = Chip(
            key=key,
            name=e["name"],
            vendor=e["vendor"],
            kind=e["kind"],
            flops_per_s=_rates("flops_per_s", figures, e["name"]),
            claimed_flops_per_s=_rates("claimed_flops_per_s", figures, e["name"]),
            figures=figures,
            unknown=e.get("unknown", {}),
            notes=tuple(n for on, n in notes if key in on),
            measurements=tuple(m for on, m in measured if key in on),
            **{k: s.value for k, s in figures.items() if k in plain},
        )
        for alias in (key, e["name"], *e["aliases"]):
            if aliases.setdefault(_squeezed(alias), key) != key:
                raise HardwareError(f"the name {alias!r} stands for two chips: {aliases[_squeezed(alias)]} and {key}")
    return found, aliases


@cache
def _catalog() -> tuple[dict[str, Chip], dict[str, str]]:
    return _load(tables("chips"))


def chips() -> tuple[Chip, ...]:
    """Every chip of the catalogue: TPUs from the oldest on, then GPUs.

    >>> [c.key for c in chips()][:4]
    ['v2', 'v3', 'v4', 'v5e']
    """
    return tuple(_catalog()[0].values())


def chip(name: str | Chip) -> Chip:
    """The chip of that name, in any usual spelling; a Chip is given back as it is.

    >>> chip("v5p") is chip("TPU v5p") is chip("tpu_v5p"), chip("H100 SXM").key, chip("Trillium").key
    (True, 'h100', 'v6e')

    Raises HardwareError with the nearest names when the catalogue has no such chip.
    """
    if isinstance(name, Chip):
        return name
    by_key, aliases = _catalog()
    if not isinstance(name, str):
        raise HardwareError(f"a chip is given by its name, such as 'v5p' or 'H100'; found {shown(name)}")
    key = aliases.get(_squeezed(name))
    if key is None:
        raise unknown("chip", name, by_key, HardwareError)
    return by_key[key]
