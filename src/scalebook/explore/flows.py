"""What the figures of plans show: a plan as a flow from layout to layout, and the times of competing plans as sizes change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from scalebook.collectives import prices
from scalebook.errors import MeshError, ScalebookError, shown, unknown, within
from scalebook.explore.arrays import colour_of
from scalebook.explore.checks import listed, positive, whole, words as text_of
from scalebook.explore.quantities import time_row
from scalebook.layouts import Sharding
from scalebook.meshes import Mesh
from scalebook.plans import Plan, cost, frontier, order
from scalebook.products import Einsum, Move
from scalebook.reports import why
from scalebook.settings import array_bytes, flops, limits
from scalebook.units import si

View = dict[str, Any]
MOST = 10**15  # of a size
POINTS = 49  # of a curve


# ---- a plan ---------------------------------------------------------------------------------------------------------------


def plan(product: Einsum, *, alternatives: int = 0) -> View:
    """The plan of an einsum: the walks of A and B from layout to layout, the local product, the walk of C; the best others by name.

        >>> import scalebook as sb
        >>> e = sb.einsum("A[I_X, J] * B[J_X, K] -> C[I_X, K]", {"I": 4096, "J": 1024, "K": 1024}, {"X": 4})
        >>> view = plan(e)
        >>> [len(view[walk]) for walk in ("a", "b", "c")], view["b"][0]["name"], view["b"][0]["size"]
        ([0, 1, 0], 'all-gather', '1.57\xa0MB')

    Raises ScalebookError when `product` is not an einsum.
    """
    _check_product("plan", product)
    most = whole("alternatives", alternatives, ScalebookError, least=0)
    e, names = product, product.mesh.axis_names
    a, b, c = e.local
    walks: list[list[Move]] = [[], [], []]
    for step, move in zip(e.plan.steps, e.moves, strict=True):
        walks[step.array].append(move)
    known = {r: t for r, t in e.time.parts.items() if t is not None}
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
        "times": {"rows": [time_row("", known)], "shared": True} if len(known) == 3 and e.bytes else None,
        "others": [
            {"name": ", then ".join(words(m) for m in o.collectives) or "no communication", "why": why(o, e)}
            for o in e.alternatives[:most]
        ],
    }


def _check_product(what: str, product: Any) -> None:
    if not isinstance(product, Einsum):
        raise ScalebookError(f"figures.{what} shows an Einsum, as sb.einsum(…) returns it; found {shown(product)}")


def _node(s: Sharding, e: Einsum) -> View:
    """A layout: its notation in pieces, and the bytes a device holds."""
    pieces: list[View] = [{"text": f"{s.array}["}]
    for i, (letter, axes) in enumerate(zip(s.letters, s.dims, strict=True)):
        pieces.append({"text": (", " if i else "") + letter, "axes": list(axes)})
    pieces.append({"text": "]"})
    if s.pending:
        pieces += [{"text": "{U", "axes": list(s.pending)}, {"text": "}"}]
    held = s.bytes_per_device(e.sizes, e.mesh, e.dtypes[s.array])
    return {"pieces": pieces, "held": si(held, "B")}


def _edge(m: Move, e: Einsum) -> View:
    free = m.kind == "slice"
    return {
        "name": m.kind,
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


# ---- competing plans --------------------------------------------------------------------------------------------------------


def plan_times(
    product: Einsum, letter: str, low: int, high: int, *, labels: Iterable[str] = (), counted: str = "", most: int = 4
) -> View:
    """The time of each plan that is best for some size of `letter` between `low` and `high`, others fixed; and of the arithmetic alone.

    Sizes are multiples of all devices, so that every plan exists at all of them. `labels` name the plans, in the order in which they
    win; otherwise they are named by their moves. `counted` says what `letter` counts, such as "tokens".

        >>> import scalebook as sb
        >>> mesh = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
        >>> e = sb.einsum("In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]", {"T": 4096, "D": 8192, "F": 28672}, mesh)
        >>> view = plan_times(e, "T", 256, 2**20)
        >>> len(view["regimes"]), 4096 < view["regimes"][1]["low"] < 8192
        (2, True)

    Raises ScalebookError for a letter that is unknown or a range that holds no such size, MeshError without a topology.
    """
    _check_product("plan_times", product)
    s = product.setting
    if not within(letter, s.sizes):
        raise unknown("dimension", letter, s.sizes)
    if not s.timed:
        raise MeshError(f"times of plans need links: put the mesh of {product.spec!r} on a topology whose rates are known")
    unit = math.prod(n for _, n in s.product.axes)
    least, largest = positive(f"the least size of {letter}", low), positive(f"the largest size of {letter}", high)
    given = [text_of("a label of a plan", name) for name in listed("labels", labels)]
    first, last = math.ceil(least / unit) * unit, math.floor(largest / unit) * unit
    if not unit <= first < last <= MOST:
        raise ScalebookError(
            f"sizes of {letter} from {low} to {high}, at most {MOST:,}: at least two multiples of {unit} devices are needed"
        )
    what = text_of("what the letter counts", counted)
    grid = _spaced(first, last, unit)
    p = s.product._replace(limits=limits(s.arrays, {**s.sizes, letter: unit}, s.product.axes))
    plans = frontier(p)

    def times(one: Plan, size: float) -> Any:
        at = {**s.sizes, letter: size}
        return cost(one, array_bytes(s.arrays, s.dtypes, at), flops(s.arrays, at), s.device_rates, timed=True)

    winners = [min(plans, key=lambda one: order(one, times(one, n))) for n in grid]
    best: list[Plan] = list({_moves_of(w): w for w in winners}.values())[: whole("most", most, ScalebookError)]
    regimes: list[View] = []
    for n, w in zip(grid, winners, strict=True):
        line = next((i for i, b in enumerate(best) if _moves_of(b) == _moves_of(w)), None)
        if not regimes or regimes[-1]["line"] != line:
            if regimes and line is not None and regimes[-1]["line"] is not None:
                edge = _meet(times, best[regimes[-1]["line"]], best[line], regimes[-1]["high"], n)
                regimes[-1]["high"] = edge
            regimes.append({"line": line, "low": regimes[-1]["high"] if regimes else n, "high": n})
        regimes[-1]["high"] = n
    if given and len(given) != len(best):
        raise ScalebookError(f"{len(best)} plans win somewhere in this range; labels name {len(given)}: {', '.join(given)}")
    named = [Einsum(s, b, plans) for b in best]
    lines: list[View] = [
        {
            "name": given[i] if given else _short(named[i]),
            "moves": [words(m) for m in named[i].collectives],
            "points": [[n, times(b, n).lower] for n in grid],
            "colour": f"cat-{(7, 3, 6, 5, 8, 4)[i % 6]}",
        }
        for i, b in enumerate(best)
    ]
    floor = [[n, flops(s.arrays, {**s.sizes, letter: n}) / unit / (s.device_rates["math"] or math.inf)] for n in grid]
    if s.device_rates["math"]:
        lines.append({"name": "arithmetic alone", "moves": [], "points": floor, "colour": "math", "dashed": True})
    return {
        "lines": lines,
        "regimes": [
            {**r, "name": lines[r["line"]]["name"], "colour": lines[r["line"]]["colour"]}
            for r in regimes
            if r["line"] is not None
        ],
        "marks": [],
        "x": {"name": f"{letter}{f', {what}' if what else ''} (log)", "unit": ""},
        "y": {"name": "time (log)", "unit": "s"},
        "subject": f"{product.spec.strip()} on {s.given.topology.spec if s.given.topology else 'a machine'}",
        "letter": letter,
    }


def _spaced(first: int, last: int, unit: int) -> list[int]:
    """Multiples of `unit` evenly spaced on a logarithmic axis."""
    ratio = math.log(last / first) / (POINTS - 1)
    return sorted({min(last, max(first, round(first * math.exp(i * ratio) / unit) * unit)) for i in range(POINTS)})


def _moves_of(p: Plan) -> Any:
    return tuple((s.array, s.before, s.after, s.edge.kind) for s in p.steps)


def _short(e: Einsum) -> str:
    """A plan by what it moves: gather W."""
    verbs = {
        "all-gather": "gather",
        "reduce-scatter": "scatter",
        "all-reduce": "reduce",
        "all-to-all": "re-deal",
        "permute": "permute",
    }
    said = dict.fromkeys(f"{verbs[m.kind]} {m.array}" for m in e.collectives)
    return ", ".join(said) or "move nothing"


def _meet(times: Callable[[Plan, float], Any], one: Plan, other: Plan, low: float, high: float) -> float:
    """The size between `low` and `high` at which two plans take equally long: bisection, since both times are piecewise linear."""
    for _ in range(60):
        mid = (low + high) / 2
        if times(one, mid).lower <= times(other, mid).lower:
            low = mid
        else:
            high = mid
    return (low + high) / 2


# ---- latency and bandwidth --------------------------------------------------------------------------------------------------


def latency(kind: str, mesh: Mesh, axes: str | Iterable[str] = "X", low: float = 1e3, high: float = 1e9) -> View:
    """The time of a collective against its bytes, over one or more choices of axes: flat where latency counts, then proportional.

    The dot on each line is where latency and bandwidth take equally long: fixed seconds ÷ seconds per byte.

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
    choices = [text_of("a choice of axes", some) for some in listed("axes", axes)]
    if not choices:
        raise MeshError(f"latency is over one or more choices of axes of {mesh}; found none")
    lines, marks = [], []
    for i, some in enumerate(choices):
        segments = tuple(x for x in mesh.segments(some) if x.size > 1)
        offers = [(p.rate, p.fixed) for p in prices(text_of("the kind of a collective", kind), segments) if p.rate is not None]
        if not offers:
            raise MeshError(f"a link under {some} has no known rate, so a {kind} over it cannot be timed")

        def seconds(n: float, offers: list[tuple[float, float]] = offers) -> float:
            return min(fixed + rate * n for rate, fixed in offers)

        grid = [low * (high / low) ** (j / (POINTS - 1)) for j in range(POINTS)]
        colour = f"cat-{(1, 7, 3, 4)[i % 4]}"
        name = f"{some}: {math.prod(x.size for x in segments)} devices"
        rate, fixed = min(offers)
        lines.append({"name": name, "moves": [], "points": [[n, seconds(n)] for n in grid], "colour": colour})
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
    }
