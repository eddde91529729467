"""What several families of a configuration's fields have in common."""

from __future__ import annotations

from scalebook.errors import ModelError
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
