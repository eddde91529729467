"""Reads the sharding notation: `A[I_X, J_YZ]{U_W}`, and products `A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]`.

    product  =  array "*" array "->" array
    array    =  name "[" [dim {"," dim}] "]" ["{" "U_" axes "}"]
    dim      =  letter ["_" axes]                    letter: I, D, Dh; letters and digits, no underscore
    axes     =  XY | X0X1 | data | "{" name {"," name} "}"

`A[I_X, J]{U_Y}` is the array A whose dimension I is split over mesh axis X and over whose axis Y a sum is still pending.
Subscripts run from major to minor. A subscript of capitals, each with digits or none, is one axis a capital; one that begins
with a small letter is one axis; braces hold a list. Where the axes of the mesh are known, a whole axis name wins over letters.
Whatever cannot be read raises `NotationError` with the piece and a line that points at it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from scalebook.grammar import Reader, Term, misread


@lru_cache(4096)
def read_array(text: str, known: tuple[str, ...] | None = None) -> Term:
    """One array; `known` are the mesh's axis names, if there is a mesh.

    >>> [a.text for a in read_array("A[I_XY, J]").dims[0]]
    ['X', 'Y']
    """
    return Reader(text, known).one()


@lru_cache(4096)
def read_product(text: str, known: tuple[str, ...] | None = None) -> tuple[Term, Term, Term]:
    """A product of two arrays; every dimension of the result is in an operand, and what one operand alone has the result has.

    >>> [t.array.text for t in read_product("A[I, J] * B[J, K] -> C[I, K]")]
    ['A', 'B', 'C']
    """
    reader = Reader(text, known)
    a, b, c = reader.product()
    names = {a.array.text: a.array}
    for t in (b, c):
        if t.array.text in names:
            again = f"two arrays are called {t.array.text}, again at position {t.array.at}: give each its own name."
            raise misread(again, text, t.array.at, len(t.array.text))
        names[t.array.text] = t.array
    have = {name: {p.text for p in t.letters} for name, t in (("a", a), ("b", b), ("c", c))}
    for p in c.letters:
        if p.text not in have["a"] | have["b"]:
            raise misread(
                f"dimension {p.text} of {c.array.text}, at position {p.at}, is in neither {a.array.text} nor {b.array.text}: "
                "every dimension of the result comes from an operand.", text, p.at, len(p.text),
            )  # fmt: skip
    for t, other in ((a, "b"), (b, "a")):
        for p in t.letters:
            if p.text not in have[other] | have["c"]:
                raise misread(
                    f"dimension {p.text}, at position {p.at}, is in {t.array.text} only, and {c.array.text} does not have it: "
                    f"sum it first, or keep it in {c.array.text}.", text, p.at, len(p.text),
                )  # fmt: skip
    return a, b, c


def subscript(axes: tuple[str, ...]) -> str:
    """The subscript that reads back as these axes, underscore included; nothing for none.

    >>> subscript(("X", "Y0")), subscript(("data",)), subscript(("data", "model")), subscript(())
    ('_XY0', '_data', '_{data,model}', '')
    """
    if not axes:
        return ""
    if all(re.fullmatch("[A-Z][0-9]*", a) for a in axes):
        return "_" + "".join(axes)
    if len(axes) == 1 and axes[0][0].islower():
        return "_" + axes[0]
    return "_{" + ",".join(axes) + "}"
