"""A question that is answered with an array in the notation, such as "A[I_X, J]": judged by what the devices hold, not by its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from scalebook.errors import ExerciseError, ScalebookError
from scalebook.exercises.answers import MAX_LENGTH
from scalebook.exercises.fields import ONE, Field
from scalebook.exercises.grading import Given, Wrong
from scalebook.exercises.verdicts import Verdict
from scalebook.layouts import Sharding, sharding
from scalebook.units import plural


@dataclass(frozen=True)
class ShardedArray:
    """An array of `sizes` on `mesh`: right when every device holds what it does under `spec`, whatever the array is called.

    A wrong answer is told what the device at the coordinates `device` would hold under it. All fields are functions of the
    premises; `wrong` gives arrays in the notation. What cannot be read is told in the words of the notation itself.
    """

    spec: Callable[..., str]
    mesh: Callable[..., Mapping[str, int]]
    sizes: Callable[..., Mapping[str, int]]
    device: Callable[..., tuple[int, ...]]
    wrong: tuple[Wrong, ...] = ()

    variable: ClassVar[str] = "answer"

    def expects(self) -> str:
        """What to answer, in words."""
        return 'an array in the notation, such as "A[I, J_X]"'

    def fields(self) -> tuple[Field, ...]:
        """One field for text."""
        return (Field(ONE, "Answer", "text", unit="the notation", example="A[I, J_X]"),)

    def read(self, answer: object, given: Given) -> Sharding:
        """The array that an answer writes, bound to the mesh, with the dimensions of the question."""
        if not isinstance(answer, (str, Sharding)):
            raise ExerciseError(f"the answer is of type {type(answer).__name__}; this question wants {self.expects()}")
        if isinstance(answer, str) and not answer.strip():
            raise ExerciseError(f"the answer is empty; this question wants {self.expects()}")
        if isinstance(answer, str) and len(answer) > MAX_LENGTH:
            raise ExerciseError(f"the answer has {len(answer):,} characters; this question wants {self.expects()}")
        mesh, sizes = self.mesh(**given), self.sizes(**given)
        try:
            yours = sharding(answer, mesh)
            if yours.letters == tuple(sizes):
                yours.local_shape(sizes, mesh)
        except ScalebookError as e:
            raise ExerciseError(str(e)) from None
        if yours.letters != tuple(sizes):
            raise ExerciseError(
                f"{yours} has the dimensions [{', '.join(yours.letters)}]; "
                f"the array of this question has [{', '.join(sizes)}], in this order"
            )
        return yours

    def grade(self, id: str, answer: object, given: Given) -> Verdict:
        """Right when the layouts are the same; else what the device would hold, and the diagnosis of a known wrong layout."""
        yours, mesh = self.read(answer, given), self.mesh(**given)
        layout = yours.layout(mesh)
        if layout == sharding(self.spec(**given), mesh).layout(mesh):
            return Verdict(id, "right", f"right: {yours}.")
        known = (w.diagnosis for w in self.wrong if sharding(w.value(**given), mesh).layout(mesh) == layout)
        return Verdict(id, "wrong", f"{yours} is not right: {self.held(yours, given)}.", diagnosis=next(known, ""))

    def held(self, yours: Sharding, given: Given) -> str:
        """What the device in question holds of an array, in words."""
        mesh, sizes, at = self.mesh(**given), self.sizes(**given), self.device(**given)
        block = yours.slices(sizes, mesh)[at]
        where = ", ".join(f"{axis} = {i}" for axis, i in zip(mesh, at, strict=True))
        what = " and ".join(f"{letter} from {a} to {b - 1}" for letter, (a, b) in zip(yours.letters, block, strict=True))
        others = yours.replicas(mesh) - 1
        copies = f", as {'does' if others == 1 else 'do'} {plural(others, 'other device')}" if others else ""
        part = ", as a part of a sum" if yours.summands(mesh) > 1 else ""
        return f"with it, the device at {where} holds {what}{copies}{part}"
