"""What several families of a configuration's fields have in common."""

from __future__ import annotations

from scalebook.errors import ModelError, shown
from scalebook.transformer.configs.fields import Fields, families


def head_width(c: Fields, D: int, N: int) -> int:
    """H = D ÷ N, of a family whose heads divide the model's width; ModelError unless it is whole.

    >>> head_width(Fields({}, "gpt2"), 768, 12)
    64
    """
    if D % N:
        raise ModelError(
            f"the configuration of family {c.family!r}: {N} heads cannot divide a width of {D}; it must be a multiple"
        )
    return D // N


def like(c: Fields, family: str) -> None:
    """Fields that are absent have the defaults of another family's class: this one's checkpoints have its shape."""
    c.defaults = families().get(family, {}).get("fields", {})


def no_count(c: Fields, *names: str) -> None:
    """Fields of the original configurations that change neither parameters nor caches: masks, kernels, the order of sums."""
    c.read.update(names)


def wrong(c: Fields, name: str, rule: str) -> ModelError:
    """An error that says what a field must be, and what was found."""
    return ModelError(f"the configuration of family {c.family!r}: {name} must be {rule}; found {shown(c.config.get(name))}")


def switched(c: Fields, name: str, into: str, L: int, words: tuple[str, str]) -> None:
    """A list of 0 or 1 for each layer, as the original configurations have it, becomes the list of `words` that `into` is.

    >>> c = Fields({"moe_layer_freq": [0, 1]}, "mimo_v2_flash")
    >>> switched(c, "moe_layer_freq", "mlp_layer_types", 2, ("dense", "sparse"))
    >>> c.config["mlp_layer_types"]
    ['dense', 'sparse']
    """
    given = c.raw(name, default=None)
    if given is None:
        return
    if not isinstance(given, list | tuple) or len(given) != L or any(v not in (0, 1) for v in given):
        raise wrong(c, name, f"a list of 0 or 1 for each of the {L} layers")
    found = [words[v] for v in given]
    if c.config.get(into) not in (None, found):
        raise ModelError(
            f"the configuration of family {c.family!r}: {name} and {into} do not say the same about the layers; give one of them"
        )
    c.config[into] = found
