"""How each family of models reads its configuration: one function per family, from fields to a Model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scalebook.transformer.configs.families import (
    core,
    decoders,
    deepseek_v4,
    delta,
    experts,
    gemma,
    hybrid,
    latent,
    legacy,
    linear,
    longcat,
    mistral_large4,
    mixed,
    mixtures,
    moe,
    originals,
    qwen4,
    statespace,
    unusual,
)
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.model import Model

FAMILIES: Mapping[str, Callable[[Fields], Model]] = {
    **core.FAMILIES,
    **decoders.FAMILIES,
    **deepseek_v4.FAMILIES,
    **delta.FAMILIES,
    **experts.FAMILIES,
    **gemma.FAMILIES,
    **hybrid.FAMILIES,
    **latent.FAMILIES,
    **legacy.FAMILIES,
    **linear.FAMILIES,
    **longcat.FAMILIES,
    **mistral_large4.FAMILIES,
    **mixed.FAMILIES,
    **mixtures.FAMILIES,
    **moe.FAMILIES,
    **originals.FAMILIES,
    **qwen4.FAMILIES,
    **statespace.FAMILIES,
    **unusual.FAMILIES,
}
