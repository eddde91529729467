"""What the figure of competing plans shows: the time of each plan that wins somewhere as one size changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scalebook.errors import MeshError, ScalebookError, unknown, within
from scalebook.explore.checks import MOST, listed, positive, whole, words as text_of
from scalebook.explore.flows import POINTS, check_product, words
from scalebook.plans import Plan, cost, frontier, order
from scalebook.products import Einsum
from scalebook.settings import array_bytes, flops, limits
from scalebook.units import count

View = dict[str, Any]
TIE = 0.01  # plans whose times differ by less than this share are equally fast


class Rivals(NamedTuple):
    """Plans that compete: what is drawn of them, and the seconds of each line at a size."""

    view: View
    unit: int  # sizes are multiples of it
    seconds: Callable[[int], list[float]]

    def named(self, labels: Iterable[str]) -> Rivals:
        """The same with names for the plans, in the order in which they win."""
        given = [text_of("a label of a plan", name) for name in listed("labels", labels)]
        plans = [c for c in self.view["lines"] if not c.get("dashed")]
        if len(given) != len(plans):
            raise ScalebookError(f"{len(plans)} plans win somewhere in this range; labels name {len(given)}: {', '.join(given)}")
        lines = [{**c, "name": name} for c, name in zip(plans, given, strict=True)] + self.view["lines"][len(plans) :]
        regimes = [{**r, "name": lines[r["line"]]["name"]} for r in self.view["regimes"]]
        return self._replace(view={**self.view, "lines": lines, "regimes": regimes})

    def at(self, size: int) -> View:
        """The view with a size marked: the seconds of each line there, and which plan is fastest."""
        letter, drawn = self.view["letter"], self.view["lines"]
        first, last = drawn[0]["points"][0][0], drawn[0]["points"][-1][0]
        n = whole(f"the marked size of {letter}", size, ScalebookError)
        if n % self.unit or not first <= n <= last:
            rule = f"a multiple of {self.unit} devices from {count(first)} to {count(last)}"
            raise ScalebookError(f"the marked size of {letter} is {rule}; found {n:,}")
        rows = [
            {"name": line["name"], "seconds": t, "colour": line["colour"]} for line, t in zip(drawn, self.seconds(n), strict=True)
        ]
        best = fastest(self.view, n, [row["seconds"] for row in rows])
        return {**self.view, "at": {"x": n, "name": f"{letter} = {count(n)}", "rows": rows, "best": best}}


def fastest(view: Mapping[str, Any], size: float, seconds: Sequence[float]) -> int:
    """The line of the plan that wins at a size: the one of the range in which it lies; outside of all, the one with the least seconds."""
    plans = [i for i, c in enumerate(view["lines"]) if not c.get("dashed")]
    inside = (int(r["line"]) for r in view["regimes"] if r["low"] <= size <= r["high"])
    return next(inside, min(plans, key=lambda i: seconds[i]))


def plan_times(
    product: Einsum,
    letter: str,
    low: int,
    high: int,
    *,
    labels: Iterable[str] = (),
    counted: str = "",
    most: int = 4,
    at: int | None = None,
) -> View:
    """The time of each plan that is best for some size of `letter` between `low` and `high`, others fixed; and of the arithmetic alone.

    Sizes are multiples of all devices, so that every plan exists at all of them. A range in which another plan is less than 1% faster
    than the plan of the range beside it belongs to that one: plans that coincide do not take turns. `labels` name the plans, in the order in which they
    win; otherwise they are named by their moves. `counted` says what `letter` counts, such as "tokens". `at` marks a size.

        >>> import scalebook as sb
        >>> mesh = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
        >>> e = sb.einsum("In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]", {"T": 4096, "D": 8192, "F": 28672}, mesh)
        >>> view = plan_times(e, "T", 256, 2**20)
        >>> len(view["regimes"]), 4096 < view["regimes"][1]["low"] < 8192
        (2, True)

    Raises ScalebookError for a letter that is unknown or a range that holds no such size, MeshError without a topology.
    """
    found = rivals(product, letter, low, high, counted=counted, most=most)
    if given := listed("labels", labels):
        found = found.named(given)
    return found.view if at is None else found.at(at)


def rivals(product: Einsum, letter: str, low: int, high: int, *, counted: str = "", most: int = 4) -> Rivals:
    """The plans of `plan_times`, once for all sizes that may be marked."""
    check_product("plan_times", product)
    s = product.setting
    if not within(letter, s.sizes):
        raise unknown("dimension", letter, s.sizes)
    if not s.timed:
        raise MeshError(f"times of plans need links: put the mesh of {product.spec!r} on a topology whose rates are known")
    unit = math.prod(n for _, n in s.product.axes)
    least, largest = positive(f"the least size of {letter}", low), positive(f"the largest size of {letter}", high)
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
    winners = _settled(winners, grid, times)
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
    named = [Einsum(s, b, plans) for b in best]
    lines: list[View] = [
        {
            "name": _short(named[i]),
            "moves": [words(m) for m in named[i].collectives],
            "points": [[n, times(b, n).lower] for n in grid],
            "colour": f"cat-{(7, 3, 6, 5, 8, 4)[i % 6]}",
        }
        for i, b in enumerate(best)
    ]
    peak = s.device_rates["math"]

    def alone(n: int) -> list[float]:
        return [flops(s.arrays, {**s.sizes, letter: n}) / unit / peak] if peak else []

    if peak:
        floor = [[n, *alone(n)] for n in grid]
        lines.append({"name": "arithmetic alone", "moves": [], "points": floor, "colour": "math", "dashed": True})
    view: View = {
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
        "at": None,
    }
    return Rivals(view, unit, lambda n: [*(times(b, n).lower for b in best), *alone(n)])


def _spaced(first: int, last: int, unit: int) -> list[int]:
    """Multiples of `unit` evenly spaced on a logarithmic axis."""
    ratio = math.log(last / first) / (POINTS - 1)
    return sorted({min(last, max(first, round(first * math.exp(i * ratio) / unit) * unit)) for i in range(POINTS)})


def _settled(winners: Sequence[Plan], grid: Sequence[int], times: Callable[[Plan, float], Any]) -> list[Plan]:
    """The winner at each size, without the turns that gain less than a tie's share anywhere in their range."""

    def ties(one: Plan, run: tuple[Plan, list[int]]) -> bool:
        return all(times(one, n).lower <= (1 + TIE) * times(run[0], n).lower for n in run[1])

    runs: list[tuple[Plan, list[int]]] = []
    for n, winner in zip(grid, winners, strict=True):
        if runs and _moves_of(runs[-1][0]) == _moves_of(winner):
            runs[-1][1].append(n)
        else:
            runs.append((winner, [n]))
    kept: list[tuple[Plan, list[int]]] = []
    for run in runs:
        if kept and ties(kept[-1][0], run):
            kept[-1][1].extend(run[1])
        elif kept and ties(run[0], kept[-1]):
            kept[-1] = (run[0], kept[-1][1] + run[1])
        else:
            kept.append(run)
    return [plan for plan, sizes in kept for _ in sizes]


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
