"""The products of a model as lines of the notation, with the axes of a mesh that split their dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from scalebook.errors import ModelError, shown, unknown, within
from scalebook.transformer.layers import kept
from scalebook.transformer.ops import Op, Size, nothing, terms
from scalebook.units import positive

if TYPE_CHECKING:
    from scalebook.transformer.model import Line, Model


def lines(
    model: Model,
    layer: str | None,
    *,
    batch: Size,
    seq_len: Size,
    kind: str,
    activations: Mapping[str, str],
    weights: Mapping[str, str],
) -> list[Line]:
    """`Model.einsums`: one line for every product of the layers of a kind, and for the head where all kinds are asked for."""
    from scalebook.transformer.model import Line

    if not within(kind, ("train", "forward", "prefill", "decode")):
        raise unknown("kind", kind, ("train", "forward", "prefill", "decode"))
    known = {d for _, _, op, _ in model.computed() if op.einsum for _, dims in terms(op.einsum) for d in dims}
    for what, axes in (("activations", activations), ("weights", weights)):
        if not isinstance(axes, Mapping) or any(not isinstance(a, str) or not a.isalnum() for a in axes.values()):
            raise ModelError(f"{what} says which axes split a letter, as {{'D': 'X'}} does; found {shown(axes)}")
        strange = [d for d in axes if not within(d, known)]
        if strange:
            raise ModelError(
                f"{what} splits {', '.join(map(shown, strange))}, which this model's products do not have; known: {', '.join(sorted(known))}"
            )
    names = [x.kind for x in model.layers]
    if layer is not None and layer not in names:
        raise unknown("kind of layer", layer, names, ModelError)
    B, S = positive(batch, "batch", whole=True), positive(seq_len, "seq_len", whole=True)
    T = 1 if kind == "decode" else S
    found: list[Line] = []
    for path, times, op, where in model.computed(decoding=kind == "decode"):
        if op.einsum and layer in (None, where):
            found.append(Line(path, placed(op, activations, weights), _sizes(op, B, T, S), times))
    return found


def placed(op: Op, activations: Mapping[str, str], weights: Mapping[str, str]) -> str:
    """The product of an operation with the axes written below the letters that they split.

    >>> from scalebook.transformer.ops import matmul
    >>> placed(matmul("up", "In[B, T, D] * W[D, F] -> Up[B, T, F]", D=8, F=16), {"B": "X"}, {"D": "X", "F": "Y"})
    'In[B_X, T, D] * W[D_X, F_Y] -> Up[B_X, T, F]'
    """
    first, second, result = (
        f"{name}[{', '.join(f'{d}_{axes[d]}' if d in axes else d for d in dims)}]"
        for name, dims in terms(op.einsum)
        for axes in (weights if name == "W" else activations,)
    )
    return f"{first} * {second} -> {result}"


def _sizes(op: Op, B: Size, T: Size, S: Size) -> dict[str, Size]:
    letters = {d for _, dims in terms(op.einsum) for d in dims}
    sizes = {d: n for d, n in op.sizes.items() if d in letters}
    known = {"B": B, "T": T, "S": kept(op.span, S)}
    if "C" in letters:
        known["C"] = -(-B * T * op.active // op.params) if not nothing(op.params) else B * T
    return {**{d: n for d, n in known.items() if d in letters}, **sizes}
