"""What the figures of moves show: a plan as a flow from layout to layout, and a collective's time against its bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from scalebook.collectives import prices
from scalebook.errors import MeshError, ScalebookError, shown
from scalebook.explore.arrays import colour_of
from scalebook.explore.checks import listed, positive, whole, words as text_of
from scalebook.explore.quantities import RESOURCES, time_row
from scalebook.layouts import Sharding
from scalebook.meshes import Mesh
from scalebook.products import Einsum, Move
from scalebook.reports import why
from scalebook.units import binary, plural, si

View = dict[str, Any]
POINTS = 49  # of a curve


# ---- a plan ---------------------------------------------------------------------------------------------------------------


def plan(product: Einsum, *, alternatives: int = 0) -> View:
    """The plan of an einsum: the walks of A and B from layout to layout, the local product, the walk of C; the best others by name.

    An alternative of an einsum is shown likewise, with what it costs beside the best plan.

        >>> import scalebook as sb
        >>> e = sb.einsum("A[I_X, J] * B[J_X, K] -> C[I_X, K]", {"I": 4096, "J": 1024, "K": 1024}, {"X": 4})
        >>> view = plan(e)
        >>> [len(view[walk]) for walk in ("a", "b", "c")], view["b"][0]["name"], view["b"][0]["size"]
        ([0, 1, 0], 'all-gather', '1.57\xa0MB')

    Raises ScalebookError when `product` is not an einsum.
    """
    check_product("plan", product)
    most = whole("alternatives", alternatives, ScalebookError, least=0)
    e, names = product, product.mesh.axis_names
    a, b, c = e.local
    walks: list[list[Move]] = [[], [], []]
    for step, move in zip(e.plan.steps, e.moves, strict=True):
        walks[step.array].append(move)
    times = {r: t for r, t in e.time.parts.items() if r != "comms" or e.bytes}
    return {
        "spec": e.spec.strip(),
        "start": [_node(s, e) for s in (e.A, e.B)],
        "a": [_edge(m, e) for m in walks[0]],
        "b": [_edge(m, e) for m in walks[1]],
        "c": [_edge(m, e) for m in walks[2]],
        "local": [_node(s, e) for s in (a, b, c)],
        "product": {
            "flops": si(e.flops_per_device, "FLOPs"),
            "seconds": "" if e.time.math is None else si(e.time.math, "s"),
            "waste": e.waste,
        },
        "axes": {x: colour_of(names, x) for x in names} if len(names) <= 3 else dict.fromkeys(names, "ink"),
        "bytes": e.bytes,
        "times": {"rows": [time_row("", times)], "shared": True} if e.time.known else None,
        "others": [
            {"name": ", then ".join(words(m) for m in o.collectives) or "no communication", "why": why(o, e, RESOURCES)}
            for o in e.alternatives[:most]
        ],
        "beside_best": "" if e.plan is e.ranked[0] else why(e, Einsum(e.setting, e.ranked[0], e.ranked), RESOURCES),
    }


def check_product(what: str, product: Any) -> None:
    """ScalebookError for what is no einsum."""
    if not isinstance(product, Einsum):
        raise ScalebookError(f"figures.{what} shows an Einsum, as sb.einsum(…) returns it; found {shown(product)}")


def _node(s: Sharding, e: Einsum) -> View:
    """A layout: its notation, whole and in pieces, and the bytes a device holds, a capacity and so in binary units."""
    pieces: list[View] = [{"text": f"{s.array}["}]
    for i, (letter, axes) in enumerate(zip(s.letters, s.dims, strict=True)):
        pieces.append({"text": (", " if i else "") + letter, "axes": list(axes)})
    pieces.append({"text": "]"})
    if s.pending:
        pieces += [{"text": "{U", "axes": list(s.pending)}, {"text": "}"}]
    held = s.bytes_per_device(e.sizes, e.mesh, e.dtypes[s.array])
    return {"pieces": pieces, "layout": str(s), "held": binary(held)}


def _edge(m: Move, e: Einsum) -> View:
    free = m.kind == "slice"
    return {
        "name": m.kind,
        "array": m.array,
        "axes": list(m.axes),
        "free": free,
        "size": "" if free else si(m.bytes, "B"),
        "seconds": "" if free or m.seconds is None else si(m.seconds, "s"),
        "after": _node(m.after, e),
    }


def words(m: Move) -> str:
    """A move in words: all-gather of W over X."""
    return f"{m.kind} of {m.array} over {'' if all(len(a) == 1 for a in m.axes) else ' '}".rstrip() + " " + _joined(m.axes)


def _joined(axes: Sequence[str]) -> str:
    return ("" if all(len(a) == 1 for a in axes) else " ").join(axes)


# ---- latency and bandwidth --------------------------------------------------------------------------------------------------


def latency(
    kind: str, mesh: Mesh, axes: str | Iterable[str] = "X", low: float = 1e3, high: float = 1e9, *, at: float | None = None
) -> View:
    """The time of a collective against its bytes, over one or more choices of axes: flat where latency counts, then proportional.

    The dot on each line is where latency and bandwidth take equally long: fixed seconds ÷ seconds per byte. `at` marks a number of
    bytes, with the time of each choice there and what it is made of.

        >>> import scalebook as sb
        >>> view = latency("all-gather", sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16"), ["X"])
        >>> [round(m["x"]) for m in view["marks"]]  # 8 hops · 1 µs ÷ (15/16 ÷ 90 GB/s)
        [768000]

    Raises MeshError for a mesh without a topology or whose link rates are unknown, ScalebookError for an unknown kind.
    """
    if not isinstance(mesh, Mesh):
        raise MeshError(f"latency is of a mesh on a machine, such as mesh({{'X': 4}}, on='v5e:2x2'); found {shown(mesh)}")
    low, high = positive("the least number of bytes, low,", low), positive("the largest number of bytes, high,", high)
    if low >= high:
        raise ScalebookError(f"bytes go from low to high, low below high; found low={low}, high={high}")
    if mesh.topology is None:
        raise MeshError(f"latency needs links, and {mesh} lies on no topology: give it one, mesh(…, on=…)")
    here = None if at is None else positive("the number of bytes, at,", at)
    if here is not None and not low <= here <= high:
        raise ScalebookError(
            f"the marked number of bytes lies from low to high, {si(low, 'B')} to {si(high, 'B')}; found at={at}"
        )
    choices = [text_of("a choice of axes", some) for some in listed("axes", axes)]
    if not choices:
        raise MeshError(f"latency is over one or more choices of axes of {mesh}; found none")
    lines, marks, rows = [], [], []
    for i, some in enumerate(choices):
        segments = tuple(x for x in mesh.segments(some) if x.size > 1)
        offers = [(p.rate, p.fixed) for p in prices(text_of("the kind of a collective", kind), segments) if p.rate is not None]
        if not offers:
            raise MeshError(f"a link under {some} has no known rate, so a {kind} over it cannot be timed")

        def seconds(n: float, offers: list[tuple[float, float]] = offers) -> float:
            return min(fixed + rate * n for rate, fixed in offers)

        grid = [low * (high / low) ** (j / (POINTS - 1)) for j in range(POINTS)]
        colour = f"cat-{(1, 7, 3, 4)[i % 4]}"
        name = f"{some}: {plural(math.prod(x.size for x in segments), 'device')}"
        rate, fixed = min(offers)
        lines.append({"name": name, "moves": [], "points": [[n, seconds(n)] for n in grid], "colour": colour})
        if here is not None:
            started = min((f + r * here, f) for r, f in offers)[1]
            rows.append({"name": name, "seconds": seconds(here), "latency": started, "colour": colour})
        if fixed > 0 and low < fixed / rate < high:
            marks.append(
                {"x": fixed / rate, "y": 2 * fixed, "text": si(fixed / rate, "B"), "colour": colour, "fixed": fixed, "name": name}
            )
    return {
        "lines": lines,
        "regimes": [],
        "marks": marks,
        "x": {"name": "array as a group holds it (log)", "unit": "B"},
        "y": {"name": f"{kind}, time (log)", "unit": "s"},
        "subject": f"{kind} on {mesh.topology.spec}",
        "letter": "",
        "at": None if here is None else {"x": here, "name": si(here, "B"), "rows": rows},
    }
