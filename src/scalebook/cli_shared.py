"""What the commands of the command line share: the parser with its errors, tables and JSON, whole numbers."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn, TextIO

from scalebook.errors import ScalebookError
from scalebook.typed import MOST, shorten

Result = tuple[int, str]  # exit status, what to print
Run = Callable[[argparse.Namespace], Result]
Command = Callable[[str, Run, str, str], argparse.ArgumentParser]  # name, what runs it, help, an example


class UsageError(ScalebookError):
    """A command line that does not follow the rules of the command."""


class Parser(argparse.ArgumentParser):
    """argparse, with its errors as one message of ours."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def print_help(self, file: Any = None) -> None:
        write(file or sys.stdout, self.format_help())

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        sys.stdout.flush()  # argparse ignores a closed pipe; we say so by the status
        raise SystemExit(status)

    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().removeprefix("usage:").split())
        raise UsageError(f"{message}. The rule: {usage}. More: {self.prog} --help")


def write(stream: TextIO, text: str) -> None:
    """Text and a line end, in whatever the stream can encode."""
    text = text.replace("\u00a0", " ").rstrip("\n") + "\n"
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


def as_json(data: Any) -> str:
    """JSON for people: indented, as Unicode, without NaN."""
    return json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    """What json does not know: a mapping that is not a dict, or an exact fraction."""
    return dict(value) if isinstance(value, Mapping) else float(value)


def number(value: Any) -> int | float | None:
    """An int where it is whole, as JSON has no fractions."""
    if value is None or isinstance(value, int):
        return value
    exact = Fraction(value)
    return int(exact) if exact.denominator == 1 and abs(exact) >= 1 else float(exact)


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows in columns as wide as their widest cell."""
    lines = list(rows)
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in lines)


def whole(most: int = MOST) -> Callable[[str], int]:
    """A reader of whole numbers from 1 to `most`, written in digits that `_` may group.

    >>> whole()("131_072")
    131072
    """

    def read(text: str) -> int:
        digits = text.replace("_", "")
        if not re.fullmatch(r"[0-9]+(_[0-9]+)*", text) or len(digits) > len(str(most)) or not 1 <= int(digits) <= most:
            raise argparse.ArgumentTypeError(f"found {shorten(text, 40)!r}, where a whole number from 1 to {most:,} is wanted")
        return int(digits)

    return read
