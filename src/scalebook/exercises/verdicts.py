"""What grading says: right or wrong, size and direction of the error, its likely cause; never the right answer itself."""

from __future__ import annotations

import html
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from scalebook.units import digits

_MARK = {"right": "✓", "wrong": "✗", "unit": "✗", "unreadable": "?"}


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check; true in a condition when the answer is right.

    `status` is "right", "wrong", "unit" (a quantity of another kind than asked) or "unreadable"; `ratio` is yours ÷ the right
    value where both are numbers; `rows` are parts, or inputs with your result beside the specified one, under titles `header`.

    >>> v = Verdict("rooflines/x", "wrong", "2 × too large.", diagnosis="A multiply-add is two FLOPs.", ratio=2.0)
    >>> bool(v), v.correct
    (False, False)
    >>> print(v)
    ✗ rooflines/x: 2 × too large.
      A multiply-add is two FLOPs.
    """

    exercise: str
    status: str
    message: str
    diagnosis: str = ""
    ratio: float | None = None
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def correct(self) -> bool:
        """Whether the answer is right."""
        return self.status == "right"

    @property
    def readable(self) -> bool:
        """Whether the answer could be understood at all."""
        return self.status != "unreadable"

    def __bool__(self) -> bool:
        return self.correct

    def __str__(self) -> str:
        lines = [f"{_MARK[self.status]} {self.exercise}: {self.message}"]
        lines += [f"  {line}" for line in self.diagnosis.splitlines()]
        if self.rows:
            table = [row for row in (self.header, *self.rows) if row]
            widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
            lines += ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same as HTML, with the classes sb-verdict and sb-<status>, the id as sb-id; a mark stands beside the colour."""
        e = html.escape
        parts = [
            f'<p><span aria-hidden="true">{_MARK[self.status]}</span> <code class="sb-id">{e(self.exercise)}</code> {e(self.message)}</p>'
        ]
        for fixed, lines in groupby(self.diagnosis.splitlines(), key=lambda line: line.startswith("  ")):
            if fixed:  # indented: a line of the notation and the mark beneath a piece of it
                parts.append(f"<pre>{e(chr(10).join(lines))}</pre>")
            else:
                parts.extend(f"<p>{e(line)}</p>" for line in lines)
        if self.rows:
            head = "".join(f'<th scope="col">{e(cell)}</th>' if cell else "<td></td>" for cell in self.header)
            body = "".join("<tr>" + "".join(f"<td>{e(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
            parts.append(f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>")
        return f'<div class="sb-verdict sb-{self.status}" role="status">{"".join(parts)}</div>'

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for pages and `--json`."""
        return {
            "exercise": self.exercise,
            "correct": self.correct,
            "status": self.status,
            "message": self.message,
            "diagnosis": self.diagnosis,
            "ratio": self.ratio,
            "header": list(self.header),
            "rows": [list(row) for row in self.rows],
        }


def off_by(ratio: float) -> str:
    """Size and direction of an error, from yours ÷ right.

    >>> off_by(2.0), off_by(0.125), off_by(1.04), off_by(-1.0)
    ('it is 2 × too large', 'it is 8 × too small', 'it is 4% too large', 'the sign is wrong')
    """
    if ratio == 0:
        return "it is not zero"
    if ratio < 0:
        return "the sign is wrong" if 0.99 < -ratio < 1.01 else f"the sign is wrong; without it, {off_by(-ratio)}"
    direction = "large" if ratio > 1 else "small"
    if 0.8 < ratio < 1.25:
        return f"it is {digits(100 * abs(ratio - 1), 2)}% too {direction}"
    factor = max(ratio, 1 / ratio)
    size = f"{factor:.0e}" if factor >= 9.99e6 else digits(factor, 2)
    return f"it is {size} × too {direction}"


def sentence(text: str) -> str:
    """The text with one mark at its end.

    >>> sentence("it is 2 × too large"), sentence("is a `return` missing?")
    ('it is 2 × too large.', 'is a `return` missing?')
    """
    return text if text.endswith(("?", "!", "…")) else text.rstrip(".") + "."
