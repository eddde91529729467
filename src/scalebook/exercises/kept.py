"""What a reader's program may have changed in the library that runs it, set back: a program runs in the same Python as its grader.

A program is its reader's own, so this guards against accidents, such as a name of Python's or of the library's that is assigned to, not
against one who hides what he does.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, TypeVar

T = TypeVar("T")
_ABSENT = object()
_LATER = {"__annotations__", "__annotations_cache__", "__warningregistry__"}  # that Python fills in when they are first needed


def run(program: Callable[..., T], *given: Any) -> T:
    """Calls what a reader has written, and sets back Python's own names, tracing and depth; raises whatever it raises.

    >>> run(max, 1, 3)
    3

    Nothing after the call looks up a name of Python's before they are all back.
    """
    names, depth = vars(builtins), sys.getrecursionlimit()
    before, traced, profiled = names.copy(), sys.gettrace(), sys.getprofile()
    set_depth, set_trace, set_profile = sys.setrecursionlimit, sys.settrace, sys.setprofile
    try:
        return program(*given)
    finally:
        names.update(before)
        for added in names.keys() - before.keys():
            del names[added]
        if sys.gettrace() is not traced:
            set_trace(traced)
        if sys.getprofile() is not profiled:
            set_profile(profiled)
        set_depth(depth)


class Kept:
    """The library as it is now: the names of its modules, of the modules that these use, and of its classes.

    >>> from scalebook.exercises import verdicts
    >>> kept, verdicts.digits = Kept(), None
    >>> kept.restore(), kept.restore(), verdicts.digits is None
    (True, False, False)
    """

    def __init__(self) -> None:
        self.modules = [(m, dict(vars(m))) for m in _modules()]
        owned = [x for m, names in self.modules for x in names.values() if _own(x, m)]
        self.classes = [(x, dict(vars(x))) for x in owned if isinstance(x, type)]
        inside = [x for _, names in self.classes for x in names.values()]
        self.functions = [(x, _insides(x)) for x in (*owned, *inside) if isinstance(x, FunctionType)]

    def restore(self) -> bool:
        """Sets back what differs; whether anything did. Modules loaded since, and names loaded when first used, are no difference."""
        differs = False
        for module, before in self.modules:
            now = vars(module)
            for name, old, new in _differences(before, now):
                if old is _ABSENT and (isinstance(new, ModuleType) or name in before.get("_WHERE", ())):
                    continue
                differs = True
                if old is _ABSENT:
                    del now[name]
                else:
                    now[name] = old
            if sys.modules.get(module.__name__) is not module:
                differs, sys.modules[module.__name__] = True, module
        for owner, before in self.classes:
            for name, old, _ in _differences(before, dict(vars(owner))):
                differs = True
                if old is _ABSENT:
                    delattr(owner, name)
                else:
                    setattr(owner, name, old)
        for function, (code, defaults, named) in self.functions:
            if any(a is not b for a, b in zip(_insides(function), (code, defaults, named), strict=True)):
                differs = True
                function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, named
        return differs


def _modules() -> list[ModuleType]:
    """The library's modules, and those that they have imported by name; `sys` changes by itself."""
    own = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "scalebook" and isinstance(m, ModuleType)]
    used = [x for m in own for x in vars(m).values() if isinstance(x, ModuleType) and x is not sys]
    return list(dict.fromkeys((*own, *used)))


def _own(value: Any, module: ModuleType) -> bool:
    """Whether a module of the library defines this class or function."""
    own = module.__name__.startswith("scalebook")
    return own and isinstance(value, (type, FunctionType)) and value.__module__ == module.__name__


def _insides(function: FunctionType) -> tuple[Any, Any, Any]:
    return function.__code__, function.__defaults__, function.__kwdefaults__


def _differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Names whose value is not the same object as before, with the old and the new value."""
    for name in [*before, *(now.keys() - before.keys())]:
        old, new = before.get(name, _ABSENT), now.get(name, _ABSENT)
        if old is not new and name not in _LATER:
            yield name, old, new
