"""The compiled program's text, read into computations of instructions: names, opcodes, shapes, operands. Pure Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from scalebook.errors import ScalebookError
from scalebook.units import dtype_name

_BITS = r"(1|2|4|8|16|32|64|128)"
_DTYPE = re.compile(rf"pred|(?:bf|f|s|u|c){_BITS}(?:e\d+m\d+\w*)?")
_NO_BITS = ("token", "opaque")


@dataclass(frozen=True)
class Array:
    """A dtype as XLA writes it and a shape: f32[16,32].

    >>> Array("bf16", (16, 32)).bytes
    1024
    """

    xla_dtype: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> str:
        """The library's name of the dtype, or XLA's where the library has none."""
        try:
            return dtype_name(self.xla_dtype)
        except ScalebookError:
            return self.xla_dtype

    @property
    def elements(self) -> int:
        """How many numbers."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of the array, a whole number: sub-byte numbers are packed and rounded up; a token has none.

        Raises ScalebookError for a dtype that XLA does not have.
        """
        if self.xla_dtype in _NO_BITS:
            return 0
        if not (known := _DTYPE.fullmatch(self.xla_dtype)):
            raise ScalebookError(
                f"unknown dtype {self.xla_dtype!r} in {self} of a compiled text, so its bytes cannot be counted; XLA's dtypes are "
                "written as f32, bf16, s8, u4, c64, pred or f8e4m3fn"
            )
        return -(-self.elements * int(known[1] or 8) // 8)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


Shape = Array | tuple["Shape", ...]


def arrays_in(shape: Shape) -> tuple[Array, ...]:
    """The arrays of a shape, tuples laid flat."""
    return (shape,) if isinstance(shape, Array) else tuple(a for s in shape for a in arrays_in(s))


@dataclass(frozen=True)
class Instruction:
    """One line: `name = shape opcode(operands), attributes`."""

    name: str
    opcode: str
    shape: Shape
    operands: tuple[str, ...]
    inside: str  # the text between the opcode's parentheses: a constant's value, a parameter's number
    attributes: str
    computation: str
    root: bool

    def attribute(self, key: str) -> str | None:
        """What follows `key=` up to the next comma, without a leading %."""
        found = re.search(rf"(?:^|[\s,]){key}=%?([^,\s]+)", self.attributes)
        return found[1] if found else None

    @property
    def called(self) -> tuple[str, ...]:
        """The computations that this instruction runs."""
        names = re.findall(r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)", self.attributes)
        for several in re.findall(r"(?:branch_computations|called_computations)=\{([^}]*)\}", self.attributes):
            names += re.findall(r"[\w.\-]+", several)
        return tuple(names)


@dataclass(frozen=True)
class Program:
    """A compiled program's computations, and how many devices it is compiled for: 0 where the text does not say."""

    computations: dict[str, tuple[Instruction, ...]] = field(hash=False)
    entry: str
    devices: int

    @cached_property
    def _by_name(self) -> dict[str, dict[str, Instruction]]:
        return {c: {i.name: i for i in lines} for c, lines in self.computations.items()}

    def instruction(self, computation: str, name: str) -> Instruction | None:
        """The instruction of that name, or None."""
        return self._by_name.get(computation, {}).get(name)

    def users(self, of: Instruction) -> Iterator[Instruction]:
        """Every instruction of the same computation that takes `of` as an operand."""
        return (i for i in self.computations[of.computation] if of.name in i.operands)

    @cached_property
    def callers(self) -> dict[str, tuple[Instruction, ...]]:
        """For each computation, the instructions that run it."""
        found: dict[str, list[Instruction]] = {}
        for lines in self.computations.values():
            for line in lines:
                for name in line.called:
                    found.setdefault(name, []).append(line)
        return {name: tuple(lines) for name, lines in found.items()}

    def trips(self, computation: str) -> int | None:
        """How often a computation runs in one run of the program: 1 outside loops, None where a loop's length is not written."""
        if computation == self.entry or computation not in self.callers:
            return 1
        total = 0
        for caller in self.callers[computation]:
            times: int | None = 1
            if caller.opcode == "while":
                known = re.search(r'known_trip_count"?\s*[:=]\s*\{\s*"?n"?\s*[:=]\s*"?(\d+)', caller.attributes)
                times = int(known[1]) if known else None
            above = self.trips(caller.computation)
            if times is None or above is None:
                return None
            total += times * above
        return total


# ---- reading ------------------------------------------------------------------------------------------------------------

_HEADER = re.compile(r"^(ENTRY\s+)?%?([\w.\-]+)\s*(?:\(.*)?\{\s*$")
_NAME = re.compile(r"^\s*(ROOT\s+)?%?([\w.\-]+)\s*=\s*")
_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\]\s*(?:\{[^{}]*\})?")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_CLOSES = {"(": ")", "{": "}", "[": "]"}


def parse(text: str) -> Program:
    """The program in a compiled module's text.

    Raises ScalebookError when there is no entry computation in the text.
    """
    devices = [int(n) for n in re.findall(r"\b(?:num_partitions|replica_count)=(\d{1,9})\b", text.split("\n", 1)[0])]
    computations: dict[str, tuple[Instruction, ...]] = {}
    entry, current, lines = "", None, list[Instruction]()
    for line in text.splitlines():
        if (header := _HEADER.match(line)) and " = " not in line.split("(", 1)[0]:
            current, lines = header[2], []
            entry = current if header[1] else entry
        elif line.strip() in ("}", "})") and current:
            computations[current] = tuple(lines)
            current = None
        elif current and (one := _instruction(line, current)):
            lines.append(one)
    if not entry:
        raise ScalebookError(f"this is not the text of a compiled program, it has no ENTRY computation: {text[:80]!r}")
    return Program(computations, entry, prod(devices) if devices else 0)


def _instruction(line: str, computation: str) -> Instruction | None:
    line = re.sub(r"/\*.*?\*/", "", line)
    if not (start := _NAME.match(line)):
        return None
    read = _shape(line, start.end())
    if read is None:
        return None
    shape, at = read
    if not (opcode := _OPCODE.match(line, at)):
        return None
    end = _closing(line, opcode.end() - 1)
    inside = line[opcode.end() : end]
    attributes = line[end + 1 :].lstrip(", ")
    names = tuple(p.split()[-1].lstrip("%") for p in _commas(inside) if p.strip())
    return Instruction(start[2], opcode[1], shape, names, inside, attributes, computation, bool(start[1]))


def _shape(line: str, at: int) -> tuple[Shape, int] | None:
    """The shape that begins at a position, and where it ends."""
    if line[at : at + 1] == "(":
        parts: list[Shape] = []
        at += 1
        while True:
            at += len(line[at:]) - len(line[at:].lstrip(" ,"))
            if line[at : at + 1] == ")":
                return tuple(parts), at + 1
            read = _shape(line, at)
            if read is None:
                return None
            part, at = read
            parts.append(part)
    if not (found := _ARRAY.match(line, at)):
        return None
    dims = tuple(int(re.sub(r"\D", "", d)) for d in found[2].split(",") if d.strip())
    return Array(found[1], dims), found.end()


def _closing(line: str, at: int) -> int:
    """Where the bracket that opens at a position closes; text in quotes is passed over."""
    stack: list[str] = []
    quoted = False
    for i in range(at, len(line)):
        c = line[i]
        if c == '"' and line[i - 1] != "\\":
            quoted = not quoted
        elif not quoted and c in _CLOSES:
            stack.append(_CLOSES[c])
        elif not quoted and stack and c == stack[-1]:
            stack.pop()
            if not stack:
                return i
    return len(line)


def _commas(text: str) -> Iterator[str]:
    """The pieces between commas that lie outside brackets."""
    depth, start = 0, 0
    for i, c in enumerate(text):
        depth += (c in "({[") - (c in ")}]")
        if c == "," and depth == 0:
            yield text[start:i]
            start = i + 1
    yield text[start:]
