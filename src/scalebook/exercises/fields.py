"""What there is to fill in for an answer: the fields that a page shows, and that `grade_text` reads."""

from __future__ import annotations

from dataclasses import dataclass

ONE, CODE = "answer", "code"  # the key of a field that is the only one, and of one that takes a program


@dataclass(frozen=True)
class Field:
    """One field: its key, what to call it, and whether it takes text, one of `options`, or Python code.

    `unit` says in what a bare number is read; `example` is a text of the right form, or the code to begin with.

    >>> Field("lower", "lower", "text", unit="seconds").caption
    'lower, in seconds'
    """

    key: str
    label: str
    kind: str  # "text", "choice" or "code"
    options: tuple[str, ...] = ()
    unit: str = ""
    example: str = ""
    wide: bool = False  # a text longer than a number

    @property
    def caption(self) -> str:
        """The label with its unit."""
        return f"{self.label}, in {self.unit}" if self.unit not in ("", self.label) else self.label
