"""In which shapes a vendor offers its TPUs: listed slices, the rule beyond the list, wraparound, and what product names count.

The data are in `data/slices.toml`, each list and rule with its source.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from scalebook.errors import TopologyError
from scalebook.hardware import Chip, Reference
from scalebook.sources import tables
from scalebook.units import count, plural

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Offer:
    """What a vendor offers of one TPU.

    >>> offer_of("v5e").shapes[-1], offer_of("v5e").wraps((8, 16))
    ((16, 16), (False, True))
    """

    listed: tuple[Shape, ...]
    shapes: tuple[Shape, ...]  # listed ones and those of the rule, smallest first; empty where no list is known
    multiples_of: int | None  # the rule: A ≤ B ≤ C, each a multiple of this, at most max_chips
    max_chips: int
    rule_status: str
    largest_job_chips: int | None
    wrap: str | int
    wrap_status: str
    wrap_note: str
    name_counts: str | None
    chips_per_vm: int
    single_vm: tuple[int, ...]
    vm_note: str
    sources: tuple[Reference, ...]

    def wraps(self, shape: Shape) -> tuple[bool, ...]:
        """Which axes close into rings: all when every side is a multiple of 4 (joined cubes), or those of a given length."""
        if self.wrap == "cubes":
            return (all(n % 4 == 0 for n in shape),) * len(shape)
        return tuple(n == self.wrap for n in shape)

    def hosts(self, shape: Shape) -> int:
        """Machines as a program sees them: virtual machines of `chips_per_vm`, or one for the sizes that come as one machine."""
        chips = math.prod(shape)
        return 1 if chips in self.single_vm else -(-chips // self.chips_per_vm)


def named(shape: Iterable[int]) -> str:
    """A shape as it is written.

    >>> named((8, 16))
    '8x16'
    """
    return "x".join(map(str, shape))


def twistable(shape: Shape) -> bool:
    """Whether A x B x C, multiples of 4, has 2A = B = C or 2A = 2B = C: then the vendor can wire it as a twisted torus.

    >>> twistable((4, 4, 8)), twistable((8, 8, 8))
    (True, False)
    """
    a, b, c = shape
    return all(n % 4 == 0 for n in shape) and (2 * a == b == c or 2 * a == 2 * b == c)


def nearest(shape: Shape, offered: Iterable[Shape], n: int = 3) -> list[Shape]:
    """The n offered shapes most like this one, by the ratio of chips and the ratios of sides (sum of absolute logarithms).

    >>> nearest((8, 10), offer_of("v5e").shapes, 2)
    [(8, 8), (8, 16)]

    With another number of dimensions, sides cannot be compared: then by the ratio of chips, of equals the one most like a cube.
    """
    chips, sides = math.prod(shape), sorted(shape)

    def distance(other: Shape) -> tuple[float, float]:
        apart = abs(math.log(math.prod(other) / chips))
        if len(other) == len(sides):
            apart += sum(abs(math.log(a / b)) for a, b in zip(sorted(other), sides, strict=True))
        return apart, max(other) / min(other)

    return sorted(offered, key=distance)[:n]


def _of_rule(step: int | None, max_chips: int) -> set[Shape]:
    """Every A ≤ B ≤ C of multiples of `step` with at most max_chips chips."""
    if not step:
        return set()
    found: set[Shape] = set()
    cubes = max_chips // step**3
    for a in range(1, cubes + 1):
        for b in range(a, cubes // (a * a) + 1):
            found |= {(a * step, b * step, c * step) for c in range(b, cubes // (a * b) + 1)}
    return found


@cache
def _offers() -> dict[str, Offer]:
    data = tables("slices")
    library = {k: Reference(k, r["title"], r["ref"], r["kind"]) for k, r in data["sources"].items()}
    offers = {}
    for key, e in data["tpus"].items():
        ids = dict.fromkeys(i for part in ("source", "rule_source", "wrap_source", "vm_source") for i in e.get(part, ()))
        listed = tuple(tuple(int(n) for n in text.split("x")) for text in e.get("shapes", ()))
        every = {*listed, *_of_rule(e.get("multiples_of"), e.get("max_chips", 0))}
        offers[key] = Offer(
            listed=listed,
            shapes=tuple(sorted(every, key=lambda s: (math.prod(s), s))),
            multiples_of=e.get("multiples_of"),
            max_chips=e.get("max_chips", 0),
            rule_status=e.get("rule_status", ""),
            largest_job_chips=e.get("largest_job_chips"),
            wrap=e["wrap"],
            wrap_status=e["wrap_status"],
            wrap_note=e.get("wrap_note", ""),
            name_counts=e.get("name_counts"),
            chips_per_vm=e.get("chips_per_vm", 4),
            single_vm=tuple(e.get("single_vm", ())),
            vm_note=e.get("vm_note", ""),
            sources=tuple(library[i] for i in ids),
        )
    return offers


def offer_of(key: str) -> Offer:
    """The offer of a TPU by its key in the catalogue; KeyError for a chip that is not a torus of TPUs."""
    return _offers()[key]


def verified_shape(asked: str, chip: Chip, shape: Shape) -> bool:
    """Whether a vendor's list or rule has this shape (False: no list is known, or it is there by analogy only).

    Raises TopologyError with the nearest shapes for one that cannot be had, and with the vendor's spelling for another order
    of its sides.
    """
    offer, dims = offer_of(chip.key), chip.torus_dims
    near = " or ".join(f"{chip.key}:{named(s)}" for s in nearest(shape, offer.shapes))
    nearby = f". Nearest: {near}" if near else ""
    if len(shape) != dims:
        raise TopologyError(f"{asked!r}: a {chip.name} slice has {dims} dimensions, {named(shape)} has {len(shape)}{nearby}")
    if not offer.shapes:
        if chip.pod_chips and math.prod(shape) > chip.pod_chips:
            raise TopologyError(f"{asked!r}: {count(math.prod(shape))} chips, but a {chip.name} pod has {count(chip.pod_chips)}")
        return False
    if shape in offer.listed:
        return True
    if shape in offer.shapes:
        return offer.rule_status != "assumed"
    same = next((s for s in offer.shapes if sorted(s) == sorted(shape)), None)
    if same:
        raise TopologyError(
            f"{asked!r}: this slice is written {chip.key}:{named(same)}; the order of its dimensions is the vendor's, "
            "and mesh axes may lie on them in any order"
        )
    rule = ", ".join(named(s) for s in offer.listed[:13]) + (", …" if len(offer.listed) > 13 else "")
    if offer.multiples_of:
        rule += f", and A ≤ B ≤ C in multiples of {offer.multiples_of} up to {count(offer.max_chips)} chips"
    raise TopologyError(f"{asked!r}: there is no {chip.name} slice {named(shape)}. Offered: {rule}{nearby}")


def shape_of_product(asked: str, chip: Chip, number: int) -> tuple[Shape, str]:
    """The shape behind a product name such as v5p-8 (8 TensorCores) or v5litepod-64 (64 chips), and a note on how it was read.

    Of several shapes with that many chips it is the one most like a cube, which is the vendor's default. Raises TopologyError
    with the nearest products when there is none.
    """
    offer = offer_of(chip.key) if chip.torus_dims else None
    if offer is None or offer.name_counts is None:
        raise TopologyError(f"{asked!r}: no list of {chip.name} products is known; give the shape in chips, such as 'v5p:4x4x4'")
    per_chip = (chip.tensorcores or 1) if offer.name_counts == "cores" else 1
    what = f"TensorCores, {per_chip} a chip" if offer.name_counts == "cores" else "chips"
    of_size = [s for s in offer.shapes if math.prod(s) * per_chip == number]
    if not of_size:
        sizes = sorted(
            {math.prod(s) * per_chip for s in offer.shapes},
            key=lambda n: abs(math.log(n / number)),
        )
        near = " or ".join(f"{chip.key}-{n}" for n in sorted(sizes[:3]))
        raise TopologyError(f"{asked!r}: the number counts {what}, and no {chip.name} slice has {count(number)}. Nearest: {near}")
    shape = min(of_size, key=lambda s: (max(s) / min(s), s))
    others = [named(s) for s in of_size if s != shape]
    note = f"{asked.strip()}: the number counts {what}; {plural(math.prod(shape), 'chip')}, {named(shape)}"
    return shape, note + (f", the shape most like a cube (also offered: {', '.join(others)})" if others else "")
