"""What the stepper of a collective shows: who holds which chunk after each step, what is on its way, and how busy each link is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalebook.collectives import received
from scalebook.errors import MeshError, ScalebookError, shown
from scalebook.meshes import Mesh, mesh as mesh_of
from scalebook.simulation import Piece, Simulation, simulate
from scalebook.transfers import Block, Transfer
from scalebook.units import plural
from scalebook.wiring import Segment

View = dict[str, Any]
Where = Mesh | Segment | Sequence[Segment]
MOST_DEVICES = 8  # columns that a picture can hold, and colours that can be told apart
FRACTIONS = {0.25: "¼", 0.5: "½", 0.75: "¾"}


def collective(
    kind: str,
    where: Where,
    nbytes: float,
    axes: str | Sequence[str] | None = None,
    *,
    step: int | None = None,
    panels: Iterable[int] | None = None,
    algorithm: str | None = None,
    follow: Sequence[int] | None = None,
) -> View:
    """A collective over one ring, line or switch of up to 8 devices, from `scalebook.simulation`.

    `where`: a mesh on a topology, with `axes` (by default its only axis larger than 1), or a `Segment`. `nbytes` is the array as the
    group holds it together, as in `sb.all_gather`. `step` shows what is on its way in the step after so many; `panels` shows what
    everyone holds after each of these numbers of steps, by default at the start, half-way and at the end. `follow=(0, 3)` leaves only
    the message from 0 to 3 in full colour on the links of an all-to-all.

        >>> ring = Segment("ici0", 8, "ring", 45e9, 1e-6, 0.0)
        >>> view = collective("all-gather", ring, 8e6)
        >>> len(view["steps"]), view["panels"], [len(d) for d in view["held"][2]]
        (4, [0, 2, 4], [5, 5, 5, 5, 5, 5, 5, 5])

    Raises MeshError for a mesh without topology, or more than one segment or 8 devices, and what `simulate` raises.
    """
    segment = _segment(where, axes)
    s = simulate(kind, (segment,), nbytes, algorithm)
    count = len(s.steps)
    chosen = [0, count // 2, count] if panels is None else list(panels)
    for n in [*chosen, *([] if step is None else [step])]:
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= count:
            raise ScalebookError(
                f"this {kind} has {plural(count, 'step')}: show the state after 0 to {count} of them; found {n!r}"
            )
    k = segment.size
    message = _message(kind, k, follow)
    held = [_held(s, n) for n in range(count + 1)]
    return {
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
        "rows": max(cell["row"] for state in held for device in state for cell in device) + 1,
        "steps": [{"start": x.start, "seconds": x.seconds, "hop": x.hop} for x in s.steps],
        "held": held,
        "flying": [_flying(kind, x.transfers) for x in s.steps],
        "lanes": _lanes(s, segment),
        "step": step,
        "follow": message,
        "panels": [] if step is not None else list(dict.fromkeys(chosen)),
    }


def _segment(where: Where, axes: str | Sequence[str] | None) -> Segment:
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
        segments = tuple(where)
    real = [s for s in segments if s.size > 1]
    if len(real) != 1:
        named = ", ".join(f"{s.kind} {s.physical} of {s.size}" for s in real) or "none"
        raise MeshError(f"a picture shows a collective over one ring, line or switch; found {named}. Choose one axis with axes=")
    if real[0].size > MOST_DEVICES:
        raise MeshError(f"a picture shows up to {MOST_DEVICES} devices; {real[0].physical} has {real[0].size}")
    return real[0]


def _message(kind: str, k: int, follow: Sequence[int] | None) -> list[int] | None:
    if follow is None:
        return None
    pair = list(follow) if isinstance(follow, (tuple, list)) else []
    if kind != "all-to-all" or len(set(pair)) != 2 or len(pair) != 2 or not all(type(d) is int and 0 <= d < k for d in pair):
        raise ScalebookError(
            f"follow= is a message of an all-to-all, (from, to), two of its devices 0 to {k - 1}; found {shown(follow)} in {kind}"
        )
    return pair


# ---- what devices hold ----------------------------------------------------------------------------------------------------


def _held(s: Simulation, steps: int) -> list[list[View]]:
    """For each device its cells: row, colour, label, and pieces [from, to, number of devices summed]."""
    holdings, every = s.holdings(steps), range(len(s.devices))
    return [_cells(s.kind, holdings.get(d, {})) for d in every]


def _cells(kind: str, blocks: Mapping[Block, tuple[Piece, ...]]) -> list[View]:
    if kind == "all-to-all":  # colour: where it is going; number: where it is from
        ordered = sorted(blocks, key=lambda b: (_pair(b)[1], _pair(b)[0]))
        return [_cell(row, _pair(b)[1], str(_pair(b)[0]), blocks[b]) for row, b in enumerate(ordered)]
    made = []
    for b in sorted(blocks, key=_number):
        terms = {len(p.of) for p in blocks[b]}
        summed = kind in ("reduce-scatter", "all-reduce")
        label = str(_number(b)) if not summed else str(terms.pop()) if len(terms) == 1 else ""
        made.append(_cell(0 if kind == "permute" else _number(b), _number(b), label, blocks[b]))
    return made


def _cell(row: int, colour: int, label: str, pieces: tuple[Piece, ...]) -> View:
    whole = len(pieces) == 1 and pieces[0].lo == 0 and pieces[0].hi == 1
    return {
        "row": row,
        "colour": colour,
        "label": label if whole else "",
        "pieces": [[float(p.lo), float(p.hi), len(p.of)] for p in pieces],
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
                {"step": number, "start": begin, "end": clock[lane], "colour": colour, "message": message}
            )
    if segment.kind == "switch":
        return [{"src": d, "dst": None, "direction": "", "busy": busy.get((d, ""), [])} for d in range(k)]
    pairs = [(d, d + 1) for d in range(k - 1)] + ([(k - 1, 0)] if segment.kind == "ring" else [])
    return [
        {"src": src, "dst": dst, "direction": way, "busy": busy.get((src, way), [])}
        for a, b in pairs
        for src, dst, way in ((a, b, "+"), (b, a, "-"))
    ]
