"""A figure and where it was read: the value, its unit, how well it is established, the sources and the date."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, ClassVar

from scalebook.errors import HardwareError, ScalebookError
from scalebook.units import dtype_name


@dataclass(frozen=True)
class Reference:
    """Where a figure was read: `kind` says what it is (vendor-doc, vendor-code, independent, paper, press, …)."""

    id: str
    title: str
    url: str
    kind: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.title} ({self.kind}), {self.url}"


@dataclass(frozen=True)
class Source:
    """One figure with its unit, how well it is established (`status`), where and when it was read."""

    value: Any
    unit: str
    status: str
    refs: tuple[Reference, ...]
    read: str
    note: str = ""
    scope: str = ""

    MEANING: ClassVar[Mapping[str, str]] = {
        "vendor+": "a vendor's page or code, and at least one other source",
        "vendor": "a vendor's page",
        "vendor-code": "a vendor's source code",
        "agree": "two or more sources, none of them the vendor",
        "single": "one source, not the vendor",
        "measured": "a published measurement",
        "probe": "a compiler's answer, not hardware",
        "derived": "computed from other figures",
        "assumed": "no source; the note says why this value",
        "definition": "by definition",
    }

    def __str__(self) -> str:
        lines = [f"{self.value} {self.unit}".strip(), f"  status: {self.status} ({self.MEANING[self.status]})"]
        lines += [f"  source: {r}" for r in self.refs]
        lines += [f"  read: {self.read}"] if self.read else []
        lines += [f"  note: {self.note}"] if self.note else []
        return "\n".join(lines)


@dataclass(frozen=True)
class Note:
    """A judgment where sources disagree: what each claims, what the catalogue takes, and why. `figures`: those that it is about."""

    id: str
    topic: str
    claims: tuple[str, ...]
    judgment: str
    why: str
    confidence: str
    figures: tuple[str, ...] = ()

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Note:
        """The note of an entry of the catalogue."""
        said, about = tuple(entry["claims"]), tuple(entry.get("figures", ()))
        return cls(entry["id"], entry["topic"], said, entry["judgment"], entry["why"], entry["confidence"], about)

    def __str__(self) -> str:
        return f"{self.id} {self.topic}: {self.judgment} (confidence {self.confidence}). {self.why}"


@dataclass(frozen=True)
class Measurement:
    """Something measured on a chip: a share of its peak, a latency, a curve by size (then `value` is a mapping)."""

    id: str
    what: str
    value: Any
    unit: str
    refs: tuple[Reference, ...]
    read: str
    note: str = ""


class _NoFigure(HardwareError, KeyError):
    """A KeyError, so that `in` and `.get` work as for any mapping, with a message for people."""

    __str__ = Exception.__str__


class Rates(Mapping[str, float]):
    """A read-only, hashable mapping from dtype to operations per second; names of dtypes in any of their spellings.

    >>> Rates({"bf16": 197e12}, "TPU v5e")["bfloat16"]
    197000000000000.0
    """

    __slots__ = ("_chip", "_rates")

    def __init__(self, rates: Mapping[str, float], chip: str) -> None:
        self._rates, self._chip = tuple(rates.items()), chip

    def __getitem__(self, dtype: str) -> float:
        name = dtype_name(dtype)
        for key, rate in self._rates:
            if key == name:
                return rate
        known = ", ".join(self) or "none"
        raise _NoFigure(f"{self._chip} has no known {name} rate, and none is made up; known for: {known}")

    def __contains__(self, dtype: object) -> bool:
        try:
            return isinstance(dtype, str) and self[dtype] > 0
        except ScalebookError:  # no rate for it, or no dtype at all
            return False

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._rates)

    def __len__(self) -> int:
        return len(self._rates)

    def __hash__(self) -> int:
        return hash(self._rates)

    def __repr__(self) -> str:
        return repr(dict(self._rates))


def tables(name: str) -> dict[str, Any]:
    """The tables of data/<name>.toml. The copy of the library on the book's pages has them as JSON, which is read ten times faster."""
    data = resources.files("scalebook").joinpath("data")
    ready = data.joinpath(f"{name}.json")
    if ready.is_file():
        return dict(json.loads(ready.read_text(encoding="utf-8")))
    import tomllib  # here, since a page does without

    return tomllib.loads(data.joinpath(f"{name}.toml").read_text(encoding="utf-8"))
