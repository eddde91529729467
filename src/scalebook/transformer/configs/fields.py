"""Reading a configuration field by field: each is checked, counted as understood, and what is left over is judged at the end.

A field that nobody reads is harmless if the family's own configuration class has it (the tests hold, by counts of an independent
implementation, that those do not matter), or if it is of the kinds listed here. Any other that looks as if it could change a count is
an error: wrong in silence is the one thing that must not happen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from scalebook.errors import ModelError, shown
from scalebook.transformer.layers import MOST_LAYERS

LARGEST = 10**9  # of one size
_NOT_GIVEN = object()
# names of what never changes a parameter or a cache: numerics, positions, training, generation, files
_HARMLESS = re.compile(
    r"(^|_)(rope|rotary|yarn|alibi|dropout|drop|pdrop|eps|epsilon|initializer|init|std|token|tokens|token_id|ids?|act|activation|theta|"
    r"temperature|softcap\w*|scal\w*|multiplier|clip\w*|limit|loss|coef|alpha|beta|gamma|cache|dtype|version|task\w*|label\w*|prefix|"
    r"path|name|revision|attentions|hidden_states|dict|torchscript|pretraining|pretrained|jitter|noise|aux|prob|scoring\w*|method|implementation|"
    r"impl|kernels?|fused|flash|summary\w*|problem\w*|max_position\w*|max_sequence\w*|seq_length|max_seq\w*|original_max\w*|length|gradient\w*|"
    r"beams?|penalty|sample|top_p|processor\w*|license|comment\w*|tokenizer\w*|chat\w*|output|return|map|sep|eos|bos|pad|unk|mask\w*|"
    r"pruned_heads|bad_words\w*|forced\w*|finetuning\w*|decoder_start\w*|decay|diversity|suppress\w*|typical_p)($|_)",
    re.I,
)
# names of sizes: never harmless, whatever else they hold, but for these few
_SIZES = re.compile(
    r"^(num|n|number|d|dim)_|_(size|sizes|dim|dims|rank|layer|layers|head|heads|expert|experts|width|block|blocks|features|channels|depth)$"
)
_NO_SIZES = frozenset(
    "n_group num_labels num_beams num_beam_groups num_return_sequences ep_size no_repeat_ngram_size encoder_no_repeat_ngram_size n_positions "
    "chunk_size_feed_forward max_window_layers use_sliding_window topk_group norm_topk_prob is_decoder is_encoder_decoder remove_invalid_values "
    "tie_encoder_decoder rotary_dim top_k best_of num_logits_to_keep time_step_rank enc_index num_classes world_size n_ctx early_stopping trust_remote_code "
    "keys_to_ignore_at_inference vocab_file language tensor_parallel_size unsloth_fixed quantization use_bfloat16 bf16 fp16 fp32 use_mrope use_flash_attn use_dynamic_ntk use_logn_attn".split()
)


def _harmless(name: str) -> bool:
    return name.startswith("_") or name in _NO_SIZES or (not _SIZES.search(name) and bool(_HARMLESS.search(name)))


@cache
def _classes() -> Mapping[str, Any]:
    text = resources.files("scalebook").joinpath("data/architectures.json").read_text(encoding="utf-8")
    known: Mapping[str, Any] = json.loads(text)
    return known


def families() -> Mapping[str, Mapping[str, Any]]:
    """Every family's own fields with their defaults, as data/architectures.json has them."""
    known: Mapping[str, Mapping[str, Any]] = _classes()["families"]
    return known


class Fields:
    """One configuration. A field that is absent has the default of its family's class, which is noted as assumed."""

    def __init__(self, config: Mapping[str, Any], family: str) -> None:
        self.family = family
        own = families().get(family, {})
        fields: Mapping[str, Any] = own.get("fields", {})
        pairs = own.get("aliases", {}).items()
        aliases = {b if a in fields and b not in fields else a: a if a in fields and b not in fields else b for a, b in pairs}
        self.config: dict[str, Any] = {}
        for key, value in config.items():
            name = aliases.get(key, key) if isinstance(key, str) else key
            if name in self.config and name != key and self.config[name] != value:
                raise ModelError(
                    f"{self._what} gives {key} = {shown(value)}, another name of {name} = {shown(self.config[name])}: give one of them"
                )
            if not (name in self.config and name != key):
                self.config[name] = value
        self.defaults = fields
        self.read: set[str] = set()
        self.assumed: list[str] = []

    @property
    def _what(self) -> str:
        return f"the configuration of family {self.family!r}"

    # ---- one field -----------------------------------------------------------------------------------------------------------

    def given(self, name: str) -> bool:
        """Whether a field is there and is not null."""
        return self.config.get(name) is not None

    def raw(self, name: str, *others: str, default: Any = _NOT_GIVEN, absent: Any = _NOT_GIVEN) -> Any:
        """The value of a field under its name or one of `others`. If it is not there: `absent` where given, else the default of the
        family's class where that has the field, else `default`."""
        self.read.update((name, *others))
        here = [n for n in (name, *others) if n in self.config]
        values = [self.config[n] for n in here]
        if any(v != values[0] for v in values[1:]):
            pairs = ", ".join(f"{n} = {shown(v)}" for n, v in zip(here, values, strict=True))
            raise ModelError(f"{self._what} has two names of one thing with two values: {pairs}; give one of them")
        if here:
            return values[0]
        if absent is not _NOT_GIVEN:
            self._assume(name, absent)
            return absent
        if name in self.defaults:
            value = self.defaults[name]
            if value is not None:
                self._assume(name, value)
            return value
        if default is not _NOT_GIVEN:
            return default
        raise ModelError(f"{self._what} has no {' or '.join((name, *others))}; it is needed to count the model")

    def _assume(self, name: str, value: Any) -> None:
        text = f"{name} = {json.dumps(value)}"
        if text not in self.assumed:
            self.assumed.append(text)

    def size(
        self,
        name: str,
        *others: str,
        default: Any = _NOT_GIVEN,
        absent: Any = _NOT_GIVEN,
        zero: bool = False,
        most: int = LARGEST,
    ) -> int:
        """A whole number above 0 (from 0 with `zero`); where the field, or the default of the class, is null: `default`."""
        value = self.raw(name, *others, default=default, absent=absent)
        if value is None and default is not _NOT_GIVEN:
            value = default
        return self._checked(name, value, zero=zero, most=most)

    def maybe(self, name: str, *others: str, default: Any = _NOT_GIVEN) -> int | None:
        """A size, or None where the field is null."""
        value = self.raw(name, *others, default=default)
        return None if value is None else self._checked(name, value)

    def context(self, *names: str) -> int | None:
        """The longest sequence that a model is made for, if the configuration says: it changes no count, so it is not assumed."""
        value = self.raw(*names) if any(n in self.config for n in names) else None
        return None if value is None else self._checked(names[0], value)

    def flag(self, name: str, *others: str, default: Any = _NOT_GIVEN, absent: Any = _NOT_GIVEN) -> bool:
        """A boolean; null is False."""
        value = self.raw(name, *others, default=default, absent=absent)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise ModelError(f"{self._what}: {name} must be true or false; found {shown(value)}")
        return value

    def word(self, name: str, allowed: Collection[str], *, default: Any = _NOT_GIVEN) -> str:
        """One of the `allowed` words."""
        value = self.raw(name, default=default)
        if not isinstance(value, str) or value not in allowed:
            raise ModelError(f"{self._what}: {name} = {shown(value)} is not understood; known: {', '.join(sorted(allowed))}")
        return value

    def number(self, name: str, *, default: Any = _NOT_GIVEN) -> float:
        """A finite real number above 0."""
        value = self.raw(name, default=default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LARGEST:
            raise ModelError(f"{self._what}: {name} must be a number above 0; found {shown(value)}")
        return value

    def must(self, name: str, value: Any, why: str) -> None:
        """A field that may only have one value here, for the reason given; absent is as good."""
        found = self.raw(name, default=value)
        if found != value or isinstance(found, bool) != isinstance(value, bool):
            raise ModelError(f"{self._what}: {name} = {shown(found)} is not understood ({why}); only {json.dumps(value)} is")

    # ---- lists ---------------------------------------------------------------------------------------------------------------

    def layers(self, *names: str) -> int:
        """The number of layers."""
        return self.size(*(names or ("num_hidden_layers",)), most=MOST_LAYERS)

    def kinds(self, name: str, L: int, allowed: Collection[str], *, otherwise: Callable[[int], str] | None = None) -> list[str]:
        """One word per layer, from a list as long as there are layers; where the field is null or absent, `otherwise(i)` says."""
        value = self.raw(name, default=None)
        if value is None and otherwise is not None:
            return [otherwise(i) for i in range(L)]
        if not isinstance(value, list | tuple) or len(value) != L:
            found = f"a list of {len(value)}" if isinstance(value, list | tuple) else shown(value)
            raise ModelError(f"{self._what}: {name} must be a list with one word for each of the {L} layers; found {found}")
        strange = sorted({shown(v) for v in value if not isinstance(v, str) or v not in allowed})
        if strange:
            raise ModelError(
                f"{self._what}: {name} has {', '.join(strange[:5])}, which is not understood; known: {', '.join(sorted(allowed))}"
            )
        return list(value)

    def places(self, name: str, L: int, *, default: Iterable[int] = ()) -> set[int]:
        """Layers by number, from 0, as a list; null or absent is the default."""
        value = self.raw(name, default=None)
        if value is None:
            return set(default)
        if not isinstance(value, list | tuple) or any(
            isinstance(v, bool) or not isinstance(v, int) or not 0 <= v < L for v in value
        ):
            raise ModelError(f"{self._what}: {name} must be a list of layers from 0 to {L - 1}; found {shown(value)}")
        return set(value)

    def per_layer(self, name: str, L: int, *, default: Any = _NOT_GIVEN, zero: bool = False) -> list[int]:
        """One size for all layers, or a list with one for each."""
        value = self.raw(name, default=default)
        if not isinstance(value, list | tuple):
            return [self._checked(name, value, zero=zero)] * L
        if len(value) != L:
            raise ModelError(
                f"{self._what}: {name} must be one number, or a list of {L}, one for each layer; found a list of {len(value)}"
            )
        return [self._checked(name, v, zero=zero) for v in value]

    def _checked(self, name: str, value: Any, *, zero: bool = False, most: int = LARGEST) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not (0 if zero else 1) <= value <= most:
            rule = f"a whole number from {0 if zero else 1} to {most:,}"
            raise ModelError(f"{self._what}: {name} must be {rule}; found {shown(value)}")
        return value

    # ---- the end -------------------------------------------------------------------------------------------------------------

    def rest(self) -> tuple[str, ...]:
        """Fields that neither the family's class nor anybody here knows, if none could change a count; else a ModelError naming those."""
        left = [k for k in self.config if k not in self.read]
        odd = [k for k in left if not isinstance(k, str)]
        if odd:
            raise ModelError(f"{self._what} has a field whose name is no text: {shown(odd[0])}")
        unknown = [k for k in left if k not in self.defaults and k not in _classes()["common"]]
        bad = [k for k in unknown if not _harmless(k) and _could_count(self.config[k])]
        if bad:
            listed = ", ".join(f"{k if k.isidentifier() else shown(k)} = {shown(self.config[k])}" for k in bad[:6]) + (
                f" and {len(bad) - 6} more" if len(bad) > 6 else ""
            )
            raise ModelError(
                f"{self._what} has fields that are not understood and could change a count: {listed}. "
                "Take out what does not belong to this family; if they do, this model is not known yet"
            )
        return tuple(sorted(unknown))


def _could_count(value: Any) -> bool:
    """Whether a value could change a count: anything but nothing, false, 0, or an empty list."""
    return not (value is None or value is False or value == 0 or value in ("", [], {}, ()))
