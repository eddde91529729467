"""The models of data/models.toml: real ones, each with its configuration and where that was found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from scalebook.errors import ModelError, unknown
from scalebook.sources import tables
from scalebook.transformer.configs.reader import read_hf
from scalebook.transformer.model import Model


def models() -> list[str]:
    """The names of all models that are known, as `model()` takes them.

    >>> "llama-3-8b" in models()
    True
    """
    return list(_entries())


def model(name: str) -> Model:
    """A model by its name or that of its repository; capitals, dots and dashes do not matter. ModelError for one that is not known.

    >>> model("Llama-3-8B").total_params, model("meta-llama/Meta-Llama-3-8B").name
    (8030261248, 'llama-3-8b')
    """
    asked = _plain(name) if isinstance(name, str) else ""
    found = _names().get(asked)
    if found is None:
        raise unknown("model", name, _entries(), ModelError)
    return _model(found)


@cache
def _model(name: str) -> Model:
    entry = _entries()[name]
    published = {k: v for k, v in entry.items() if isinstance(v, int)}
    config = {k: None if v == "null" else v for k, v in entry["config"].items()}  # TOML has no null
    return read_hf(config).renamed(name, entry["source"], published)


@cache
def _entries() -> Mapping[str, Mapping[str, Any]]:
    return tables("models")["models"]  # type: ignore[no-any-return]


@cache
def _names() -> Mapping[str, str]:
    """Every spelling, without marks: of the name, the repository, and the repository without its owner."""
    spellings: dict[str, str] = {}
    for name, entry in _entries().items():
        for spelling in (name, entry["repository"], entry["repository"].partition("/")[2], *entry.get("aliases", ())):
            if spellings.setdefault(_plain(spelling), name) != name:
                raise ModelError(
                    f"data/models.toml: two models are called {spelling!r}: {name} and {spellings[_plain(spelling)]}"
                )
    return spellings


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9/]", "", name.lower())
