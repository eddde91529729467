"""Values in a page's text, and which of them belong to the reader's machine.

A page's cells are run statement by statement, but only those that use nothing beyond the library's core and pure parts of Python. What
comes out of anything else (jax, the lab, a clock, the platform, an array library) is of the machine that runs it, and so is
all that is made of it. Such statements are not run here, and such values are left to the reader. So what is printed into a
notebook cannot depend on the machine that makes it.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import io
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

from computed_numbers import readable

PURE = frozenset(
    "__future__ collections dataclasses fractions functools itertools json math operator re statistics string textwrap typing".split()
)
MACHINE = frozenset({"lab", "plots"})  # parts of the library that are not its core
MUTATORS = frozenset("add append clear discard extend insert pop popitem remove reverse setdefault sort update".split())


READS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
BINDS = frozenset({"STORE_NAME", "STORE_GLOBAL", "DELETE_NAME"})


class Names:
    """What a statement reads and binds among the page's names, and what its functions will read when they are called."""

    def __init__(self, node: ast.stmt) -> None:
        code = compiled(node)
        self.bound = _names(code, BINDS)
        self.later = set().union(*(_names(inner, READS) for inner in _inside(code)))
        here = _names(code, READS)
        self.now = here if isinstance(node, ast.FunctionDef) else here | self.later


def compiled(node: ast.stmt) -> CodeType:
    """A statement as code."""
    return compile(ast.fix_missing_locations(ast.Module([node], [])), "<cell>", "exec")


def _names(code: CodeType, operations: frozenset[str]) -> set[str]:
    return {step.argval for step in dis.get_instructions(code) if step.opname in operations}


def _inside(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inside(constant)


def changed(node: ast.stmt) -> set[str]:
    """The names whose objects a statement changes in place: `x[…] = …`, `x.y = …`, `x.append(…)`."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript | ast.Attribute) and not isinstance(part.ctx, ast.Load):
            found |= _base(part)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in MUTATORS:
            found |= _base(part.func)
    return found


def _base(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def pure(module: str) -> bool:
    """Whether what a module gives is the same on every machine."""
    first, *rest = module.split(".")
    return first in PURE or (first == "scalebook" and not MACHINE & set(rest))


class Values:
    """The variables of a page, and the names that only the reader's machine can give a value to."""

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {"__name__": "__main__"}
        self.reader: set[str] = set()
        self._later: dict[str, set[str]] = {}  # function: the names that it reads when called
        self.uses_lab = False

    def run(self, code: str) -> None:
        """Runs the statements of a cell that any machine answers alike."""
        for statement in ast.parse(code).body:
            for node in self._single(statement):
                if self.of_reader(node):
                    self._leave(Names(node).bound | changed(node))
                else:
                    self._execute(node)

    def _single(self, node: ast.stmt) -> Iterable[ast.stmt]:
        """An import of several things as several imports of one."""
        if isinstance(node, ast.Import):
            return [ast.Import(names=[alias]) for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            return [ast.ImportFrom(module=node.module, names=[alias], level=0) for alias in node.names]
        return [node]

    def of_reader(self, node: ast.stmt) -> bool:
        """Whether a statement uses anything that only the reader's machine can answer."""
        for part in ast.walk(node):
            if isinstance(part, ast.Import | ast.ImportFrom):
                inside = [f"{part.module}.{a.name}" for a in part.names] if isinstance(part, ast.ImportFrom) else []
                modules = inside or [a.name for a in part.names]
                if not all(map(pure, modules)):
                    self.uses_lab |= any(m.split(".")[0] in ("jax", "scalebook") for m in modules)
                    return True
            elif isinstance(part, ast.Attribute) and part.attr in MACHINE:
                self.uses_lab |= part.attr == "lab"
                return True
        return any(map(self._unknown, Names(node).now))

    def _unknown(self, name: str, seen: frozenset[str] = frozenset()) -> bool:
        if name in self.reader:
            return True
        return any(self._unknown(n, seen | {name}) for n in self._later.get(name, ()) if n not in seen)

    def _leave(self, names: set[str]) -> None:
        """These are the reader's now: an older value must not be taken for theirs."""
        self.reader |= names
        for name in names:
            self.variables.pop(name, None)

    def _execute(self, node: ast.stmt) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compiled(node), self.variables)
        names = Names(node)
        for name in names.bound & set(self.variables):
            self.reader.discard(name)
            self._later[name] = names.later

    def left_to_reader(self, expression: str) -> bool:
        """Whether only the reader's machine can answer an expression."""
        return self.of_reader(ast.Expr(ast.parse(expression.strip(), mode="eval").body))

    def text(self, expression: str) -> str:
        """An expression's value as the page prints it. Raises RetrievalError where it is none to print."""
        value = eval(compile(expression.strip(), "<text>", "eval"), self.variables)
        return readable(repr(value))
