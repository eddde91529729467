"""From a Hugging Face configuration to a Model: find the family, let it read its fields, judge what is left."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalebook.errors import ModelError, shown, unknown
from scalebook.transformer.configs.families import FAMILIES
from scalebook.transformer.configs.fields import Fields
from scalebook.transformer.configs.quantization import read_precision
from scalebook.transformer.model import Model

_TEXT = ("text_config", "language_config", "llm_config", "thinker_config")  # where the text model of a larger one is described
_OTHER = ("vision_config", "audio_config", "vision_tower_config", "image_config", "visual", "talker_config", "code2wav_config")
_LARGEST_FILE = 10_000_000  # bytes
_DEEPEST = 4


def read_hf(source: Mapping[str, Any] | str | os.PathLike[str]) -> Model:
    """The model that a configuration describes; ModelError with the reason where that cannot be said with certainty."""
    config = source if isinstance(source, Mapping) else _load(source)
    name = config.get("_name_or_path") or config.get("name") or ""
    label = name if isinstance(name, str) and name else "this configuration" if isinstance(source, Mapping) else _label(source)
    return replace(_model(dict(config), 0), name=label)


def _model(config: dict[str, Any], depth: int) -> Model:
    inner = next((k for k in _TEXT if isinstance(config.get(k), Mapping)), None)
    if inner is not None and depth < _DEEPEST:
        text = dict(config[inner])
        _contradictions(config, text, inner)
        text.setdefault("model_type", _text_family(config.get("model_type")))
        for key in ("quantization_config", "tie_word_embeddings"):
            if key in config:
                text.setdefault(key, config[key])
        others = [
            k
            for k in config
            if k != inner
            and isinstance(config[k], Mapping)
            and (k in _OTHER or k.endswith("_config"))
            and k != "quantization_config"
        ]
        left_out = tuple(f"{k}: not counted" for k in sorted(map(str, others)))
        found = _model(text, depth + 1)
        return replace(found, not_counted=(*left_out, *found.not_counted))
    family = _family(config)
    fields = Fields({k: v for k, v in config.items() if k not in _OTHER}, family)
    fields.read.update(("model_type", "architectures", "quantization_config", "_name_or_path", "name"))
    model = FAMILIES[family](fields)
    ignored = fields.rest()
    left_out = tuple(f"{k}: not counted" for k in _OTHER if config.get(k))
    model = replace(
        model,
        family=family,
        assumptions=(*model.assumptions, *fields.assumed),
        ignored=ignored,
        not_counted=(*model.not_counted, *left_out),
    )
    return replace(model, precision=read_precision(config.get("quantization_config"), model, config))


def _contradictions(outer: Mapping[str, Any], text: Mapping[str, Any], inner: str) -> None:
    """ModelError where what stands around a text model gives it another size, or one that it does not have itself."""
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")
    other = [k for k in sizes if k in outer and outer[k] != text.get(k)]
    if other:
        listed = ", ".join(f"{k} = {shown(outer[k])} outside and {shown(text.get(k))} inside" for k in other)
        raise ModelError(
            f"the configuration describes its text model in {inner}, and differs from it: {listed}; the text model is counted, so give its sizes there"
        )


def _family(config: Mapping[str, Any]) -> str:
    asked = config.get("model_type")
    if isinstance(asked, str) and asked in FAMILIES:
        return asked
    if asked is None:
        listed = config.get("architectures")
        first = listed[0] if isinstance(listed, list) and listed else None
        if first is None:
            raise ModelError(
                'the configuration has no model_type, so its family is not known; a Hugging Face config.json has one, such as "llama". '
                f"Fields found: {', '.join(shown(k) for k in sorted(map(str, config))[:12]) or 'none'}"
            )
        asked = first
        wanted = str(first).removesuffix("ForCausalLM").removesuffix("LMHeadModel").lower()
        for family in FAMILIES:
            if family.replace("_", "").replace("-", "") == wanted:
                return family
    raise unknown("model family (model_type)", asked, FAMILIES, ModelError)


def _text_family(outer: Any) -> Any:
    """The family of the text model inside a larger one that does not name it: gemma3 holds a gemma3_text."""
    inner = f"{outer}_text" if isinstance(outer, str) else None
    return inner if inner in FAMILIES else outer


def _label(path: str | os.PathLike[str]) -> str:
    p = Path(path)
    return p.parent.name if p.name == "config.json" and p.parent.name else p.stem


def _load(source: str | os.PathLike[str]) -> dict[str, Any]:
    if not isinstance(source, str | os.PathLike):
        raise ModelError(f"a configuration is a dict, a config.json or the folder that holds one; found {shown(source)}")
    path = Path(source)
    config = read_json(path, "config.json", "a Hugging Face configuration", json.loads)
    apart = path / "hf_quant_config.json"  # where NVIDIA's exporter writes how weights are quantised
    if path.is_dir() and apart.is_file() and not config.get("quantization_config"):
        found = read_json(apart, apart.name, "a description of quantised weights", json.loads)
        config["quantization_config"] = {"quant_method": "modelopt", **found}
    return config


def read_json(path: Path, inside: str, what: str, parse: Callable[[str], Any], most: int = _LARGEST_FILE) -> dict[str, Any]:
    """The mapping in a file, or in the file named `inside` of a folder; ModelError for what cannot be read."""
    try:
        file = path / inside if path.is_dir() else path
        if file.exists() and not file.is_file():
            raise ModelError(f"{shown(str(file))} is no file that holds {what}")
        if file.stat().st_size > most:
            raise ModelError(f"{file} has {file.stat().st_size:,} bytes; {what} has at most {most:,}")
        found = parse(file.read_text(encoding="utf-8-sig"))
    except ModelError:
        raise
    except (OSError, ValueError, RecursionError, AttributeError, KeyError, TypeError) as e:
        raise ModelError(
            f"{what} cannot be read from {shown(str(path))}: {' '.join(str(e).split())[:200] or type(e).__name__}"
        ) from None
    if not isinstance(found, dict):
        raise ModelError(f"{shown(str(path))} holds {shown(found)}; {what} is a mapping of fields")
    return found
