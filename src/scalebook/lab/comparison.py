"""A prediction beside what the compiler made of the same program: bytes by kind and mesh axes, their ratio, agree or not."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

from scalebook.errors import ScalebookError, shown
from scalebook.lab.groups import shape_of
from scalebook.lab.hlo import collectives_of
from scalebook.units import as_number, digits, is_array, si


@dataclass(frozen=True)
class Row:
    """One kind of collective over one set of mesh axes: bytes that each device receives, predicted and compiled."""

    kind: str
    axes: tuple[str, ...] | None
    predicted: float | None
    compiled: float | None

    @property
    def ratio(self) -> float | None:
        """Compiled ÷ predicted; None where one of them is missing."""
        return None if not self.predicted or self.compiled is None else self.compiled / self.predicted

    def agrees(self, tolerance: float) -> bool:
        """Whether both have it, with bytes equal within the tolerance."""
        if self.predicted is None or self.compiled is None:
            return False
        return abs(self.compiled - self.predicted) <= tolerance * max(abs(self.predicted), abs(self.compiled))


@dataclass(frozen=True)
class Comparison:
    """Predicted and compiled collectives side by side. `agree`: the same kinds over the same axes with the same bytes."""

    rows: tuple[Row, ...]
    predicted_bytes: float
    compiled_bytes: float | None
    tolerance: float

    @property
    def agree(self) -> bool:
        """Whether every row agrees."""
        return all(r.agrees(self.tolerance) for r in self.rows)

    @property
    def ratio(self) -> float | None:
        """All compiled bytes ÷ all predicted bytes: 1 when both are none; None when only one is, or a loop's length is unknown."""
        if self.compiled_bytes is None:
            return None
        if not self.predicted_bytes:
            return None if self.compiled_bytes else 1.0
        return self.compiled_bytes / self.predicted_bytes

    def table(self) -> list[tuple[str, str, str, str, str, str]]:
        """(kind, axes, predicted, compiled, ratio, agree or not) for each row, as printed; then the total."""
        lines = [
            (
                r.kind,
                "not whole axes" if r.axes is None else " ".join(r.axes),
                _shown(r.predicted),
                _shown(r.compiled),
                "" if r.ratio is None else digits(r.ratio),
                "agree" if r.agrees(self.tolerance) else "differ",
            )
            for r in self.rows
        ]
        same = "agree" if self.agree else "differ"
        compiled = "unknown" if self.compiled_bytes is None else si(self.compiled_bytes, "B")
        ratio = "" if self.ratio is None else digits(self.ratio)
        return [*lines, ("all", "", si(self.predicted_bytes, "B"), compiled, ratio, same)]

    def explain(self) -> str:
        """The table as text."""
        cells = [("collective", "axes", "predicted", "compiled", "ratio", ""), *self.table()]
        widths = [max(len(row[i]) for row in cells) for i in range(6)]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)

    __str__ = explain

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{h}</th>" for h in ("collective", "axes", "predicted", "compiled", "ratio", ""))
        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in self.table())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def compare(prediction: Any, compiled: Any, *, mesh: Any = None, tolerance: float = 1e-6) -> Comparison:
    """The collectives of `prediction` (an Einsum, or anything with .collectives and .mesh) beside those of a compiled program.

    `compiled` is what jax.jit(f).lower(…).compile() returns, its text, or the result of `collectives_of`. Bytes are what each
    device receives in one run of the program, added up by kind and mesh axes (in any order). Both must be of the same dtype:
    a CPU may compute bf16 sums in fp32 and then moves twice the bytes. Raises ScalebookError for what is no prediction or no program.
    """
    if not hasattr(prediction, "mesh") or not isinstance(getattr(prediction, "collectives", None), tuple | list):
        raise ScalebookError(
            "lab.compare(prediction, compiled) takes an Einsum, or anything with .collectives and .mesh, first; "
            f"found {shown(prediction)} of type {type(prediction).__name__}"
        )
    mesh = prediction.mesh if mesh is None else mesh
    names = list(shape_of(mesh))
    if is_array(tolerance) or as_number(tolerance) is None or not 0 <= tolerance < math.inf:
        raise ScalebookError(f"the tolerance of lab.compare is a share, such as 1e-6; found {shown(tolerance)}")
    if isinstance(compiled, tuple) and not all(hasattr(c, "trips") for c in compiled):
        raise ScalebookError(f"a tuple of collectives is as lab.collectives_of returns it; found {shown(compiled)}")
    found = compiled if isinstance(compiled, tuple) else collectives_of(compiled, mesh)
    ours: dict[tuple[str, tuple[str, ...] | None], float] = {}
    theirs: dict[tuple[str, tuple[str, ...] | None], float | None] = {}
    for c in prediction.collectives:
        key = (c.kind, _ordered(c.axes, names))
        ours[key] = ours.get(key, 0) + c.bytes
    for one in found:
        key = (one.kind, _ordered(one.axes, names))
        before = theirs.get(key, 0)
        theirs[key] = None if one.trips is None or before is None else before + one.bytes * one.trips
    rows = tuple(
        Row(kind, axes, ours.get((kind, axes)), theirs.get((kind, axes))) for kind, axes in dict.fromkeys([*ours, *theirs])
    )
    compiled_bytes = None if None in theirs.values() else sum(b for b in theirs.values() if b is not None)
    return Comparison(rows, sum(ours.values()), compiled_bytes, tolerance)


def _ordered(axes: tuple[str, ...] | None, names: list[str]) -> tuple[str, ...] | None:
    if axes is None:
        return None
    return tuple(sorted(axes, key=lambda a: (names.index(a) if a in names else len(names), a)))


def _shown(value: float | None) -> str:
    return "none" if value is None else si(value, "B")
