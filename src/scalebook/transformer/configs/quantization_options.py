"""The fields of a `quantization_config`, each read once and checked, and the names of modules that they list."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from scalebook.errors import ModelError, shown
from scalebook.transformer.model import Model
from scalebook.transformer.ops import nothing
from scalebook.transformer.precision import Format, Rule
from scalebook.transformer.stored import stored

_NOT_GIVEN = object()
# modules that are no matrices of the text model: what is said of them changes nothing here
_ELSEWHERE = re.compile(
    r"vis|audio|image|img|patch|tower|projector|merger|aligner|speech|talker|mtp|nextn|draft|eh_proj|enorm|hnorm|embed|norm|rotary|conv|lm_head"
)
_TEXT = "language_model."
_ROUTERS = ("mlp.gate", "mlp.router", "mlp.router.gate", "block_sparse_moe.gate", "block_sparse_moe.router")


class Options:
    """The fields of one method; `rest` refuses what nobody has read."""

    def __init__(self, given: Mapping[str, Any], method: str) -> None:
        self.given, self.method = given, method
        self.read: set[str] = {"quant_method"}

    @property
    def what(self) -> str:
        """The words that begin a message."""
        return f"the bytes of a checkpoint with quantization_config of method {self.method!r}"

    def raw(self, name: str, *others: str, default: Any = _NOT_GIVEN) -> Any:
        """The value of a field under its name or one of `others`; null or absent, `default`."""
        self.read.update((name, *others))
        value = next((self.given[n] for n in (name, *others) if self.given.get(n) is not None), default)
        if value is _NOT_GIVEN:
            raise ModelError(f"{self.what}: {name} is not given")
        return value

    def only(self, name: str, *allowed: Any, others: tuple[str, ...] = (), default: Any = _NOT_GIVEN) -> Any:
        """A field that must have one of the `allowed` values."""
        value = self.raw(name, *others, default=default)
        if not any(value == a and isinstance(value, bool) == isinstance(a, bool) for a in allowed):
            known = ", ".join("null" if a is None else str(a) for a in allowed)
            raise ModelError(f"{self.what}: {name} = {shown(value)} is not understood; known: {known}")
        return value

    def group(self, *names: str, default: Any = _NOT_GIVEN) -> int | None:
        """The columns that share a scale; −1 or null are all of a row."""
        value = self.raw(*names, default=default)
        if value in (-1, None):
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ModelError(f"{self.what}: {names[0]} must be a whole number above 0, or -1; found {shown(value)}")
        return value

    def names(self, *names: str) -> list[str]:
        """A list of modules or patterns, empty where it is absent."""
        value = self.raw(*names, default=[])
        flat = [v for x in value for v in (x if isinstance(x, list) else [x])] if isinstance(value, list) else None
        if flat is None or any(not isinstance(v, str) or not v for v in flat):
            raise ModelError(f"{self.what}: {names[0]} must be a list of names of modules; found {shown(value)}")
        return flat

    def rest(self, harmless: Collection[str] = ()) -> None:
        """A ModelError that names the fields which are not understood and hold something."""
        left = [
            k for k, v in self.given.items() if k not in self.read and k not in harmless and v not in (None, False, "", [], {})
        ]
        if left:
            listed = ", ".join(f"{k} = {shown(self.given[k])}" for k in left[:4])
            raise ModelError(f"{self.what} depend on fields that are not understood: {listed}")


def rule(names: Collection[str], form: Format | None) -> Rule:
    """The rule for modules by name: `re:` begins a regular expression; `*` is anything; a name stands for itself and what it contains.

    >>> found = rule(["model.layers.*.self_attn", "re:.*mlp[.]gate$"], None)
    >>> found.matches("model.layers.3.self_attn.q_proj"), found.matches("model.layers.3.mlp.gate"), found.matches("lm_head")
    (True, True, False)
    """
    plain = {_plain(name) for name in names if not name.startswith("re:") and "*" not in name}
    patterns = [_regex(name) for name in names if name.startswith("re:") or "*" in name]
    return Rule(frozenset(plain), re.compile("|".join(f"(?:{p})" for p in patterns) or "(?!)"), form)


def _plain(name: str) -> str:
    return name.replace(_TEXT, "").removesuffix(".weight").removesuffix(".")


_SLOW = re.compile(r"[+*}][^()]*\)+[+*{]|\\[1-9]")  # a repeat of what repeats, or what refers back: may take for ever


def _regex(name: str) -> str:
    if len(name) > 300 or name.count("*") + name.count("+") > 12 or _SLOW.search(name):
        raise ModelError(
            f"a quantization_config names modules by {shown(name)}, which is too long or too intricate to be matched safely"
        )
    if not name.startswith("re:"):
        return rf"(?:.*\.)?{re.escape(_plain(name)).replace(re.escape('*'), '.*')}(?:\..*)?$"
    try:
        return re.compile(name[3:]).pattern
    except re.error as e:
        raise ModelError(f"a quantization_config names modules by {shown(name)}, which is no regular expression: {e}") from None


def check_names(names: Iterable[str], model: Model, what: str) -> None:
    """A ModelError for a name that is that of no module of the model, as far as modules are known, nor of what is not counted."""
    here = {_first_layer(w.name) for w in stored(model, mtp=True) if w.name} | {f"model.layers.0.{name}" for name in _ROUTERS}
    for name in dict.fromkeys(n if n.startswith("re:") else _first_layer(n) for n in names):
        if re.search(r"experts\.\d", name):
            raise ModelError(f"{what} name single experts, as {shown(name)} does; whether all are meant is not known")
        found = rule([name], None)
        if not any(found.matches(n) for n in here) and not _ELSEWHERE.search(name):
            raise ModelError(f"{what} name a module that is not known in this model: {shown(name)}")


def _first_layer(name: str) -> str:
    return re.sub(r"\blayers\.\d+", "layers.0", name)


def has_experts(model: Model) -> bool:
    """Whether a model has experts."""
    return any(op.part == "experts/router" and not nothing(op.params) for layer in model.layers for op in layer.ops)
