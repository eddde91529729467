"""Right and known wrong values of the exercises of How TPUs work, and the judge of the open one."""

from __future__ import annotations

from scalebook.collectives import all_gather, all_to_all
from scalebook.errors import ExerciseError
from scalebook.exercises.answers import read
from scalebook.exercises.composed import Score, split
from scalebook.hardware import Chip, chip as chip_of
from scalebook.hierarchy import level
from scalebook.meshes import Mesh, mesh as mesh_of
from scalebook.tiling import matmul_padding
from scalebook.topologies import topology
from scalebook.units import count, itemsize, percent


def known(value: float | None) -> float:
    if value is None:
        raise ExerciseError("this exercise needs a figure that the catalogue does not have")
    return value


def hbm_seconds(chip: str, nbytes: float | None = None) -> float:
    c = chip_of(chip)
    return known(c.hbm_bytes if nbytes is None else nbytes) / known(c.hbm_bytes_per_s)


def used_share(dim: int, rows: int) -> float:
    return min(1.0, rows / dim)


def row_mesh(machine: str) -> Mesh:
    """The last axis of a slice as X, all others as Y."""
    t = topology(machine)
    return mesh_of({"Y": t.devices // t.shape[-1], "X": t.shape[-1]}, on=t)


def gather(machine: str, nbytes: float) -> float:
    return known(all_gather(nbytes, row_mesh(machine), "X").comms)


def exchange(machine: str, each: float) -> float:
    """Seconds of an all-to-all along X in which each chip has so many bytes."""
    row = row_mesh(machine)
    return known(all_to_all(each * row["X"], row, "X").comms)


def bundles(machine: str, each: float, links_each: float) -> float:
    """Seconds of an exchange round a ring whose bundles cross so many links on average, at the usable rate, and no latency."""
    t = topology(machine)
    return each * links_each / (2 * known(t.chip.link_bytes_per_s) * known(t.chip.link_efficiency))


def gather_over(machine: str, nbytes: float, ways: float) -> float:
    """Seconds with so many one-way links at their usable rate, and no latency."""
    t = topology(machine)
    k = t.shape[-1]
    return nbytes * (k - 1) / k / (ways * known(t.chip.link_bytes_per_s) * known(t.chip.link_efficiency))


def bisection(machine: str) -> float:
    return known(topology(machine).bisection_bytes_per_s)


def over_rings(machine: str, crossed: int) -> float:
    """Bytes per second one way over so many rings, each cut twice."""
    return 2 * crossed * known(chip_in(machine).link_bytes_per_s)


def share_seconds(key: str, chip: str, params: float, chips: int) -> float:
    return params * itemsize("bf16") / chips / known(level(chip, key).bytes_per_s)


def chip_in(machine: str) -> Chip:
    return topology(machine).chip


def open_lines(machine: str) -> int:
    return sum(n - 1 for n in topology(machine).shape)


def widths(answer: object, target: float, tolerance: float, ways: int, fill: float) -> Score:
    """The judge of the open question: a D and an F whose matrix fills the matrix units of two generations."""
    parts = split(answer, ["D", "F"])
    found = {name: read(value) for name, value in parts.items()}
    for name, q in found.items():
        if not q.fits((0, 0, 0)) or q.value != int(q.value) or not 1 <= q.value <= 10**6:
            raise ExerciseError(f"{name} is a whole number from 1 to 1,000,000")
    D, F = int(found["D"].value), int(found["F"].value)
    size = D * F
    near, even, deep = abs(size / target - 1), F % ways == 0, F >= 2 * D
    shares = {}
    for chip in ("v5e", "v6e"):
        _, J, K = matmul_padding(8, D, max(1, F // ways), chip)
        shares[chip] = D * (F // ways) / (J * K)
    rows = (
        ("D · F", count(size), f"within {percent(tolerance)} of {count(target)} {'✓' if near <= tolerance else '✗'}"),
        ("F ÷ D", f"{F / D:.2f}", f"≥ 2 {'✓' if deep else '✗'}"),
        (f"F over {ways} chips", f"{F / ways:g}", f"whole {'✓' if even else '✗'}"),
        *(
            (f"matrix unit of {c} filled", percent(s, 3), f"≥ {percent(fill)} {'✓' if s >= fill else '✗'}")
            for c, s in shares.items()
        ),
    )
    why = [] if even else [f"F must be a multiple of {ways}, or the chips cannot have equal shares."]
    if not deep:
        why.append("A feed-forward block widens: F is at least twice D.")
    if near > tolerance:
        why.append("The matrix is too " + ("small" if size < target else "large") + " for the budget of parameters.")
    if even and min(shares.values()) < fill:
        why.append("Part of the last tiles is padding: which multiples do D, and F on one chip, have to be?")
    message = f"D = {count(D)}, F = {count(F)}: " + ("it meets every condition." if not why else "not yet.")
    return Score(not why, message, value=min(shares.values()), rows=rows, diagnosis="\n".join(why))
