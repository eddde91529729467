"""scalebook: how to scale language models on TPUs and GPUs, as a small library.

    >>> import scalebook as sb
    >>> sb.chip("v5e").hbm_bytes_per_s
    819000000000.0

Public names are loaded when first used, so that importing the package takes no time and brings in nothing beyond the standard
library. `scalebook.lab` needs jax, `scalebook.plots` matplotlib.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "ScalebookError": "errors",
    "si": "units", "binary": "units", "count": "units", "percent": "units", "plural": "units", "digits": "units", "itemsize": "units",
    "Chip": "hardware", "chip": "hardware", "chips": "hardware",
    "Topology": "topologies", "topology": "topologies",
    "Work": "roofline", "Time": "roofline", "rates": "roofline", "ridge": "roofline", "attainable": "roofline",
    "matmul_work": "roofline", "matmul_time": "roofline", "dot_work": "roofline",
    "critical_batch": "roofline", "critical_batch_exact": "roofline",
    "Mesh": "layouts", "mesh": "layouts", "Sharding": "layouts", "sharding": "layouts",
    "all_gather": "collectives", "reduce_scatter": "collectives", "all_reduce": "collectives",
    "all_to_all": "collectives", "permute": "collectives",
    "Einsum": "products", "einsum": "products", "Reshard": "resharding", "reshard": "resharding",
    "chain": "chains", "pattern": "patterns", "placements": "wiring", "simulate": "simulation",
    "Model": "transformer", "model": "transformer", "models": "transformer",
    "training_state": "memory", "activation_bytes": "memory",
    "check": "exercises", "explorer": "live",
}  # fmt: skip
_SUBMODULES = ("explore", "exercises", "figures", "lab", "live", "memory", "plots", "roofline", "collectives", "units")

__all__ = sorted([*_WHERE, *_SUBMODULES])


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(f"scalebook.{_WHERE[name]}"), name)
        globals()[name] = value  # found once, then an ordinary attribute
        return value
    if name in _SUBMODULES:
        return importlib.import_module(f"scalebook.{name}")
    raise AttributeError(f"module 'scalebook' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
