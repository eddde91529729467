"""Is an all-reduce really a reduce-scatter? On a CPU, XLA writes one as an all-reduce of which each device keeps its own slice.

To tell, the offset of each slice is evaluated for every device (it is a small expression of the device's number): the all-reduce is
a reduce-scatter when the devices of each group keep different slices, each no larger than 1/k of the array, and nothing else uses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scalebook.lab.groups import Groups
from scalebook.lab.text import Array, Instruction, Program, arrays_in

_PASS_ON = {"bitcast", "copy", "reshape", "transpose", "convert", "get-tuple-element", "optimization-barrier"}
_FUSED = {"fusion", "call"}
_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "minimum": min,
    "maximum": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "shift-left": lambda a, b: a << b,
    "shift-right-logical": lambda a, b: a >> b,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class _Use:
    """An instruction that uses a value, and the fusions it lies in, outermost first."""

    line: Instruction
    inside: tuple[Instruction, ...]


class _Unreadable(Exception):
    """An expression with an operation that is not evaluated here."""


def sliced_by_group(program: Program, reduced: Instruction, groups: Groups) -> bool:
    """Whether every use of the all-reduce `reduced` keeps, on each device of a group, another part of it."""
    k = max(len(g) for g in groups)
    whole = max(a.elements for a in arrays_in(reduced.shape))
    uses = list(_final_uses(program, reduced, (), None))
    if not uses or len(groups) * k != len({d for g in groups for d in g}):
        return False
    for use in uses:
        if use is None or use.line.opcode != "dynamic-slice" or not isinstance(use.line.shape, Array):
            return False
        if use.line.shape.elements * k > whole:
            return False
        try:
            for group in groups:
                starts = {
                    tuple(_value(program, use.line.computation, n, use.inside, d) for n in use.line.operands[1:]) for d in group
                }
                if len(starts) < len(group):
                    return False
        except _Unreadable:
            continue  # the sizes say that a k-th is kept; which one is written in a way that is not read here
    return True


def _final_uses(program: Program, line: Instruction, inside: tuple[Instruction, ...], name: str | None) -> Iterator[_Use | None]:
    """Where a value ends up, through copies and into and out of fusions; None for the program's own output."""
    if line.root:
        if inside:
            yield from _final_uses(program, inside[-1], inside[:-1], None)
        else:
            yield None
    for user in program.users(line):
        if user.opcode in _PASS_ON:
            yield from _final_uses(program, user, inside, None)
        elif user.opcode in _FUSED and user.called:
            body = program.computations.get(user.called[0], ())
            for position, operand in enumerate(user.operands):
                if operand == line.name:
                    for parameter in (p for p in body if p.opcode == "parameter" and p.inside.strip() == str(position)):
                        yield from _final_uses(program, parameter, (*inside, user), None)
        elif user.opcode == "dynamic-slice" and line.name in user.operands[1:]:
            yield None  # used as an offset
        else:
            yield _Use(user, inside)


def _value(program: Program, computation: str, name: str, inside: tuple[Instruction, ...], device: int) -> int:
    found = _values(program, computation, name, inside, device)
    if len(found) != 1:
        raise _Unreadable
    return found[0]


def _values(program: Program, computation: str, name: str, inside: tuple[Instruction, ...], device: int) -> Sequence[int]:
    """The integers that an instruction has on a device; `inside` are the fusions it lies in."""
    line = program.instruction(computation, name)
    if line is None:
        raise _Unreadable

    def operand(i: int) -> Sequence[int]:
        return _values(program, computation, line.operands[i], inside, device)

    match line.opcode:
        case "partition-id":
            return (device,)
        case "replica-id":
            return (0,)
        case "constant":
            if "..." in line.inside:
                raise _Unreadable
            return tuple(int(n) for n in re.findall(r"-?\d+", line.inside))
        case "parameter" if inside:
            caller = inside[-1]
            return _values(program, caller.computation, caller.operands[int(line.inside)], inside[:-1], device)
        case "bitcast" | "reshape" | "convert" | "copy":
            return operand(0)
        case "broadcast" if len(operand(0)) == 1 and isinstance(line.shape, Array):
            return tuple(operand(0)) * line.shape.elements
        case "dynamic-slice" if len(line.operands) == 2 and isinstance(line.shape, Array):
            table, (at,), width = operand(0), operand(1), line.shape.elements
            at = min(max(at, 0), len(table) - width)
            return table[at : at + width]
        case "clamp":
            low, x, high = operand(0), operand(1), operand(2)
            return tuple(min(max(v, *low), *high) for v in x)
        case "compare":
            test = _COMPARE[line.attribute("direction") or ""]
            return tuple(int(test(a, b)) for a, b in zip(operand(0), operand(1), strict=True))
        case "select":
            return tuple(a if c else b for c, a, b in zip(operand(0), operand(1), operand(2), strict=True))
        case "fusion" | "call" if line.called:
            roots = [i for i in program.computations.get(line.called[0], ()) if i.root]
            if not roots:
                raise _Unreadable
            return _values(program, line.called[0], roots[0].name, (*inside, line), device)
        case opcode if opcode in _INTEGERS:
            return tuple(_INTEGERS[opcode](a, b) for a, b in zip(operand(0), operand(1), strict=True))
    raise _Unreadable
