"""What the stepper of a collective shows: who holds which chunk after each step, what is on its way, and how busy each link is."""

from __future__ import annotations

import marshal
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from scalebook.collectives import received
from scalebook.errors import MeshError, ScalebookError, shown, unknown
from scalebook.explore.checks import amount, listed, whole, words
from scalebook.hardware import Chip, chip as chip_of
from scalebook.meshes import Mesh, mesh as mesh_of
from scalebook.schedules import base_kind
from scalebook.simulation import Piece, Simulation, simulate
from scalebook.topologies import PhysicalAxis, topology as topology_of
from scalebook.transfers import Block, Transfer
from scalebook.units import plural
from scalebook.wiring import Segment

View = dict[str, Any]
Blocks = Mapping[Block, tuple[Piece, ...]]
Where = Mesh | Segment | Sequence[Segment] | str | Chip
MOST_DEVICES = 8  # columns that a picture can hold, and colours that can be told apart
FRACTIONS = {0.25: "¼", 0.5: "½", 0.75: "¾"}
SHAPES = ("ring", "line", "switch")


def collective(
    kind: str,
    where: Where,
    nbytes: float,
    axes: str | Sequence[str] | None = None,
    *,
    devices: int | None = None,
    shape: str | None = None,
    step: int | None = None,
    panels: Iterable[int] | None = None,
    algorithm: str | None = None,
    follow: Sequence[int] | None = None,
) -> View:
    """A collective over one ring, line or switch of up to 8 devices, from `scalebook.simulation`.

    `where`: a mesh on a topology, with `axes` (by default its only axis larger than 1), or a `Segment`, or a chip, with `devices`
    joined by its links as a `shape`: see `links_of`. `nbytes` is the array as the group holds it together, as in `sb.all_gather`.
    `step` shows what everyone holds after so many steps, and what is on its way in the next one; `panels` shows what everyone holds
    after each of these numbers of steps, by default at the start, half-way and at the end. `follow=(0, 3)` leaves only the message
    from 0 to 3 in full colour on the links of an all-to-all.

        >>> view = collective("all-gather", "v5p", 8e6, devices=8, shape="ring")
        >>> len(view["steps"]), view["panels"], [len(d) for d in view["held"][2]]
        (4, [0, 2, 4], [5, 5, 5, 5, 5, 5, 5, 5])

    Raises MeshError for a mesh without topology, or more than one segment or 8 devices, ScalebookError for a step that there is
    not, and what `simulate` and `links_of` raise.
    """
    base_kind(words("kind of a collective", kind))
    chip = None
    if isinstance(where, str | Chip):
        chip, segment = chip_of(where), links_of(where, devices, shape)
    elif devices is None and shape is None:
        segment = _segment(where, axes)
    else:
        raise MeshError(f"devices= and shape= go with a chip, such as 'v5p'; here the links are given: {shown(where)}")
    size = amount("nbytes", nbytes)
    view: View = marshal.loads(_timed(kind, segment, size))  # lists and dicts of its own
    if algorithm is not None and not (isinstance(algorithm, str) and algorithm == view["algorithm"]):
        raise unknown(f"algorithm for {kind} over a {segment.kind}", algorithm, [view["algorithm"]])
    count = len(view["steps"])
    chosen = [0, count // 2, count] if panels is None else listed("panels", panels)
    for n in [*chosen, *([] if step is None else [step])]:
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= count:
            raise ScalebookError(
                f"this {kind} has {plural(count, 'step')}: show the state after 0 to {count} of them; found {n!r}"
            )
    if not chosen:
        raise ScalebookError("panels= lists the numbers of steps after which everyone is shown, such as (0, 2, 4); found none")
    message = _message(kind, segment.size, follow)
    return {
        **view,
        "chip": chip and chip.name,
        "step": step,
        "follow": message,
        "panels": [] if step is not None else list(dict.fromkeys(chosen)),
    }


@lru_cache(maxsize=64)
def _timed(kind: str, segment: Segment, nbytes: float) -> bytes:
    """What does not depend on the moment that is shown, packed: unpacking it is the fastest way to a copy."""
    run, held, rows, flying = _executed(kind, segment.kind, segment.size)
    s, k, share = run.retimed((segment,), nbytes), segment.size, nbytes / run.nbytes
    view = {
        "kind": kind,
        "algorithm": s.algorithm,
        "shape": segment.kind,
        "devices": k,
        "nbytes": nbytes,
        "chunk_bytes": nbytes / k / (k if kind == "all-to-all" else 1),
        "received": received(kind, k) * nbytes,
        "bytes_per_s": segment.bytes_per_s,
        "hop": segment.hop_latency_s,
        "launch": s.launch,
        "seconds": s.seconds,
        "rows": rows,
        "steps": [{"start": x.start, "seconds": x.seconds, "hop": x.hop} for x in s.steps],
        "held": held,
        "flying": [[{**f, "bytes": f["bytes"] * share} for f in flying_] for flying_ in flying],
        "lanes": _lanes(s, segment),
    }
    return marshal.dumps(view)


def step_count(kind: str, shape: str, devices: int) -> int:
    """How many steps a collective takes.

    >>> step_count("all-gather", "ring", 8), step_count("all-gather", "line", 8)
    (4, 7)
    """
    return len(_executed(kind, shape, devices).run.steps)


# ---- over which links -------------------------------------------------------------------------------------------------------


def links_of(chip: str | Chip, devices: int | None, shape: str | None) -> Segment:
    """Devices in a ring or line of a TPU's links, or behind the switch of a GPU's node; also rings that no slice has.

        >>> links_of("v5p", 5, "ring").bytes_per_s, links_of("h100", 8, "switch").physical
        (90000000000.0, 'nvlink')

    Raises MeshError for a shape that the chip's links do not make and for other than 2 to 8 devices, and what `topology` raises.
    """
    found = chip_of(chip)
    if not isinstance(shape, str) or shape not in SHAPES:
        raise unknown("shape of a group of devices, shape=", shape, SHAPES, MeshError)
    k = whole("devices, how many take part in a collective,", devices, MeshError, least=2, most=MOST_DEVICES)
    if (shape == "switch") == (found.kind == "tpu"):
        rule = "ring or a line" if found.kind == "tpu" else "switch"
        raise MeshError(f"the links of {found.name} make a {rule}; a {shape} was asked for")
    axis = _axis(found, k)
    return Segment(
        axis.name, k, str(shape), axis.bytes_per_s, axis.hop_latency_s, axis.launch_latency_s, 1, axis.peer_bytes_per_s
    )


@lru_cache(maxsize=64)
def _axis(chip: Chip, devices: int) -> PhysicalAxis:
    """The links of the smallest machine of this chip."""
    shape = f"1x{devices}" if chip.kind == "gpu" else "2x2x1" if chip.torus_dims == 3 else "2x2"
    return next(a for a in topology_of(f"{chip.key}:{shape}").physical_axes if a.size > 1)


def _segment(where: Any, axes: str | Sequence[str] | None) -> Segment:
    if isinstance(where, Segment):
        segments: tuple[Segment, ...] = (where,)
    elif isinstance(where, Mesh | Mapping):
        m = mesh_of(where)
        if m.topology is None:
            raise MeshError(
                f"a collective step by step needs links, and {m} lies on no topology: give it one, mesh(…, on=…), or a Segment"
            )
        larger = tuple(a for a, n in m.axes if n > 1)
        segments = m.segments(larger if axes is None else axes if isinstance(axes, str) else tuple(axes))
    else:
        segments = tuple(where) if isinstance(where, Sequence) else ()
        if not segments or not all(isinstance(s, Segment) for s in segments):
            raise MeshError(
                f"a collective step by step needs links: a mesh on a topology, a Segment, or a chip such as 'v5p'; found {shown(where)}"
            )
    real = [s for s in segments if s.size > 1]
    if len(real) != 1:
        named = ", ".join(f"{s.kind} {s.physical} of {s.size}" for s in real) or "none"
        raise MeshError(f"a picture shows a collective over one ring, line or switch; found {named}. Choose one axis with axes=")
    if real[0].size > MOST_DEVICES:
        raise MeshError(f"a picture shows up to {MOST_DEVICES} devices; {real[0].physical} has {real[0].size}")
    return real[0]


class _Executed(NamedTuple):
    """A collective, executed once: the cells of every device before the first step and after each, and what is on its way in each."""

    run: Simulation
    held: list[list[list[View]]]
    rows: int
    flying: list[list[View]]


@lru_cache(maxsize=128)  # of some 105: kinds, shapes and numbers of devices
def _executed(kind: str, shape: str, k: int) -> _Executed:
    """The collective over links of one byte per second without latency."""
    run = simulate(kind, (Segment("link", k, shape, 1.0, 0.0, 0.0),), k * k)
    states = run.states()
    held = [
        [_cells(kind, state.get(d, {}), before.get(d, {}) if n else None) for d in range(k)]
        for n, (before, state) in enumerate(zip([{}, *states], states, strict=False))
    ]
    rows = max(cell["row"] for state in held for device in state for cell in device) + 1
    return _Executed(run, held, rows, [_flying(kind, x.transfers) for x in run.steps])


def _message(kind: str, k: int, follow: Sequence[int] | None) -> list[int] | None:
    if follow is None:
        return None
    pair = list(follow) if isinstance(follow, (tuple, list)) else []
    if kind != "all-to-all" or len(pair) != 2 or not all(type(d) is int and 0 <= d < k for d in pair) or pair[0] == pair[1]:
        raise ScalebookError(
            f"follow= is a message of an all-to-all, (from, to), two of its devices 0 to {k - 1}; found {shown(follow)} in {kind}"
        )
    return pair


# ---- what devices hold ----------------------------------------------------------------------------------------------------


def _cells(kind: str, blocks: Blocks, before: Blocks | None) -> list[View]:
    """What a device holds: row, colour, name, label, pieces (from, to, number of devices summed), and whether it has just come."""
    if kind == "all-to-all":  # colour: where it is going; number: where it is from
        ordered = sorted(blocks, key=lambda b: (_pair(b)[1], _pair(b)[0]))
        return [
            _cell(row, _pair(b)[1], "{}→{}".format(*_pair(b)), str(_pair(b)[0]), blocks[b], _came(b, blocks, before))
            for row, b in enumerate(ordered)
        ]
    made = []
    for b in sorted(blocks, key=_number):
        terms = {len(p.of) for p in blocks[b]}
        summed = kind in ("reduce-scatter", "all-reduce")
        label = str(_number(b)) if not summed else str(terms.pop()) if len(terms) == 1 else ""
        n, row = _number(b), 0 if kind == "permute" else _number(b)
        made.append(_cell(row, n, str(n), label, blocks[b], _came(b, blocks, before)))
    return made


def _came(block: Block, blocks: Blocks, before: Blocks | None) -> bool:
    """Whether a step has brought a part of a block, or something to add to it."""
    if before is None:
        return False
    there = before.get(block, ())
    return not all(any(q.lo <= p.lo and p.hi <= q.hi and q.of == p.of for q in there) for p in blocks[block])


def _cell(row: int, colour: int, name: str, label: str, pieces: tuple[Piece, ...], came: bool) -> View:
    undivided = len(pieces) == 1 and pieces[0].lo == 0 and pieces[0].hi == 1
    return {
        "row": row,
        "colour": colour,
        "name": name,
        "label": label if undivided else "",
        "pieces": tuple((float(p.lo), float(p.hi), len(p.of)) for p in pieces),
        "came": came,
    }


def _pair(block: Block) -> tuple[int, int]:
    return block if isinstance(block, tuple) else (block, block)


def _number(block: Block) -> int:
    return block[0] if isinstance(block, tuple) else block


# ---- what is on its way, and when -------------------------------------------------------------------------------------------


def _flying(kind: str, transfers: Sequence[Transfer]) -> list[View]:
    """What each link carries in a step: one chunk by its number, several by how many they are."""
    found: dict[tuple[int, int, str], list[Transfer]] = {}
    for t in transfers:
        found.setdefault((t.src, t.dst, t.direction), []).append(t)
    made = []
    for (src, dst, direction), some in sorted(found.items()):
        blocks = {b for t in some for b in t.blocks}
        amount = sum(len(t.blocks) * float(t.hi - t.lo) for t in some)
        lone = len(blocks) == 1 and kind != "all-to-all"
        made.append(
            {
                "src": src,
                "dst": dst,
                "direction": direction,
                "colour": _number(next(iter(blocks))) if lone else None,
                "label": str(_number(next(iter(blocks)))) if lone else mixed(amount),
                "amount": amount,
                "bytes": math.fsum(t.bytes for t in some),
            }
        )
    return made


def mixed(amount: float) -> str:
    """A number of chunks, with quarters as one character.

    >>> mixed(3.5), mixed(0.5), mixed(2.0)
    ('3½', '½', '2')
    """
    whole = int(amount)
    rest = FRACTIONS.get(round(amount - whole, 6))
    if rest is None:
        return str(whole) if abs(amount - whole) < 1e-9 else f"{amount:.1f}"
    return f"{whole or ''}{rest}"


def _lanes(s: Simulation, segment: Segment) -> list[View]:
    """For each directed link (on a switch, each device's way out), when it carries which chunk."""
    k, rate = segment.size, segment.bytes_per_s or math.inf
    busy: dict[tuple[int, str], list[View]] = {}  # by device and direction
    for number, x in enumerate(s.steps):
        clock: dict[tuple[int, str], float] = {}
        for t in x.transfers:
            lane = (t.src, t.direction)
            begin = clock.get(lane, x.start + x.hop)
            clock[lane] = begin + t.bytes / rate
            colour = _pair(t.blocks[0])[1] if s.kind == "all-to-all" else _number(t.blocks[0])
            message = list(_pair(t.blocks[0])) if s.kind == "all-to-all" else None
            busy.setdefault(lane, []).append(
                {"step": number, "start": begin, "end": clock[lane], "colour": colour, "message": message, "bytes": t.bytes}
            )
    if segment.kind == "switch":
        return [{"src": d, "dst": None, "direction": "", "busy": busy.get((d, ""), [])} for d in range(k)]
    pairs = [(d, d + 1) for d in range(k - 1)] + ([(k - 1, 0)] if segment.kind == "ring" else [])
    return [
        {"src": src, "dst": dst, "direction": way, "busy": busy.get((src, way), [])}
        for a, b in pairs
        for src, dst, way in ((a, b, "+"), (b, a, "-"))
    ]
