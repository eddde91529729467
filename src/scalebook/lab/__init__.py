"""The library's predictions held against a machine: jax on real or simulated devices. The only package that imports jax.

    >>> from scalebook import lab
    >>> len(lab.devices(8))
    8

Call `devices` before anything else that uses jax. Names are loaded when first used; without jax, those that need it raise
MissingExtra, which says what to install. Reading a compiled program's text (`collectives_of`, `compare`) needs no jax.
"""

from __future__ import annotations

import importlib
from typing import Any

from scalebook.errors import missing_extra

_WHERE = {
    "devices": "backend", "jax_mesh": "backend", "setup": "session", "Session": "session",
    "collectives_of": "hlo", "HloCollective": "hlo",
    "run": "execute", "function": "execute", "partitioned": "execute", "shapes": "execute",
    "compare": "comparison", "Comparison": "comparison",
    "measure_machine": "measure", "measure_matmul": "measure", "Measurement": "measure", "Point": "measure",
}  # fmt: skip
_SUBMODULES = ("hlo", "execute", "measure")

__all__ = sorted([*_WHERE, *_SUBMODULES])


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"scalebook.lab.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("jax", "jaxlib", "numpy"):
            raise
        raise missing_extra("jax", "lab", f"scalebook.lab.{name}") from None


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(_module(_WHERE[name]), name)
        globals()[name] = value  # found once, then an ordinary attribute
        return value
    if name in _SUBMODULES:
        return _module(name)
    raise AttributeError(f"module 'scalebook.lab' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
