"""Bytes of a checkpoint in which not every weight has the same format: which parts are quantised, and what their scales cost.

A quantised matrix of `rows` outputs and `columns` inputs has, beside its numbers, scales: one for the whole, for each row, for a group of
columns of each row, or for a block of both. They are counted as the checkpoint stores them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalebook.errors import ModelError
from scalebook.transformer.ops import Size
from scalebook.transformer.stored import Stored, stored
from scalebook.units import ceil_div, itemsize, nbytes, positive

if TYPE_CHECKING:
    from scalebook.transformer.model import Model


@dataclass(frozen=True, slots=True)
class Scale:
    """`each` numbers for every block of `rows` × `columns` of a matrix; None is all of them. With `flat`, for so many numbers in a row."""

    dtype: str
    rows: int | None = None
    columns: int | None = None
    each: int = 1
    flat: int | None = None

    def elements(self, w: Stored) -> int:
        """How many there are for a weight.

        >>> Scale("fp32", 128, 128).elements(Stored("attention/o", 1, 7168, 16384))
        7168
        """
        if self.flat:
            return w.copies * self.each * -(-w.rows * w.columns // self.flat)
        rows = 1 if self.rows is None else -(-w.rows // self.rows)
        columns = 1 if self.columns is None else -(-w.columns // self.columns)
        return w.copies * self.each * rows * columns


@dataclass(frozen=True, slots=True)
class Format:
    """How a weight is stored: the number format of its elements, and the scales beside them."""

    name: str
    dtype: str
    scales: tuple[Scale, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """Matrices of one format: of the modules that are in `names`, or in a module that is, and those that `pattern` matches.

    A name may leave out what stands before: "mlp.gate" is that of every layer. None is the format of what is not quantised.
    """

    names: frozenset[str]
    pattern: re.Pattern[str]
    format: Format | None

    def matches(self, name: str) -> bool:
        """Whether a module is meant, as it is called here or in the text part of a larger model."""
        steps = name.split(".")
        runs = (".".join(steps[i:j]) for j in range(len(steps), 0, -1) for i in range(j))
        if self.names and any(run in self.names for run in runs):
            return True
        inside = (name, f"language_model.{name}", name.replace("model.layers.", "model.language_model.layers."))
        return any(self.pattern.match(n) for n in inside)


@dataclass(frozen=True, slots=True)
class Precision:
    """Formats of a checkpoint: of each part in `kept` its own, of each other matrix that of the first rule that matches it, of the rest `plain`.

    `refusal`, where there is one, says why the formats are not known: counting bytes then is a ModelError with it. Neither scales of a
    KV cache nor a quantiser's notes about itself, a few bytes for each layer, are counted.
    """

    rules: tuple[Rule, ...] = ()
    plain: str = "bf16"
    kept: tuple[tuple[str, str], ...] = ()
    refusal: str = ""

    def format_of(self, w: Stored) -> Format:
        """The format of one weight."""
        kept = dict(self.kept).get(w.part.removeprefix("mtp/"))
        rule = next((r for r in self.rules if r.matches(w.name)), None) if w.name and kept is None else None
        return rule.format if rule is not None and rule.format is not None else Format(kept or self.plain, kept or self.plain)

    def elements(self, model: Model, *, mtp: bool = False) -> dict[str, dict[str, Size]]:
        """Numbers by format and by the dtype that they are stored in: {format: {dtype: elements}}."""
        if self.refusal:
            raise ModelError(self.refusal)
        found: dict[str, dict[str, Size]] = {}
        for name, dtype, n in self._each(model, mtp):
            of = found.setdefault(name, {})
            of[dtype] = of.get(dtype, 0) + n
        return found

    def _each(self, model: Model, mtp: bool) -> Iterator[tuple[str, str, Size]]:
        kept = {part for part, _ in self.kept}
        for w in stored(model, mtp=mtp):
            part = w.part.removeprefix("mtp/")
            if "/" in part and part not in kept and w.rows > 1 and not w.name:
                raise ModelError(
                    f"the bytes of this checkpoint: how {w.part} of family {model.family!r} is stored is not known; give a dtype for all weights"
                )
            form = self.format_of(w)
            yield form.name, form.dtype, w.elements
            for scale in form.scales:
                yield form.name, scale.dtype, scale.elements(w)


def bytes_of(elements: dict[str, Size]) -> Size:
    """Bytes of numbers by dtype, each kind rounded up to whole bytes.

    >>> bytes_of({"fp4": 64, "uint8": 2})
    34
    """
    return sum(ceil_div(n * int(8 * itemsize(dtype)), 8) for dtype, n in elements.items())


def rope_table_bytes(positions: Size, width: Size, dtype: str = "bf16") -> Size:
    """Bytes of the table of sines and cosines that engines keep for rotary positions: positions · width numbers.

    It is no parameter, but lies beside the weights. `width` is the part of a head that is rotated.

    >>> rope_table_bytes(131072, 128) / 2**20
    32.0
    """
    return nbytes(positive(positions, "positions", whole=True) * positive(width, "width", whole=True), dtype)
