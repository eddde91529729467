"""Checkpoints of compressed-tensors, whose groups say what is quantised how, and of NVIDIA's Model Optimizer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scalebook.errors import ModelError, shown
from scalebook.transformer.configs.quantization_options import Options, check_names, rule
from scalebook.transformer.model import Model
from scalebook.transformer.precision import Format, Rule, Scale

Found = tuple[list[str], list[Rule]]
_PACKED, _NVFP4 = "pack-quantized", "nvfp4-pack-quantized"
_FORMATS = (_PACKED, "int-quantized", "float-quantized", "naive-quantized", _NVFP4)
_OBSERVED = ("observer", "observer_kwargs", "dynamic", "scale_dtype", "zp_dtype")


def compressed_tensors(c: Options, model: Model, plain: str) -> Found:
    """Every group's targets, in their order, with the format that its `weights` describe."""
    groups = c.raw("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise ModelError(f"{c.what}: config_groups must name groups; found {shown(groups)}")
    whole = (
        c.only("format", *_FORMATS, "mixed-precision", default=_PACKED if len(groups) > 1 else None)
        if "format" in c.given
        else None
    )
    rules, linear = [], []
    for given in groups.values():
        if not isinstance(given, Mapping):
            raise ModelError(f"{c.what}: a group must be a mapping; found {shown(given)}")
        group = Options(given, c.method)
        targets = group.names("targets")
        named = [t for t in targets if t != "Linear"]
        if any(re.fullmatch(r"[A-Z]\w*", t) for t in named) or not targets:
            raise ModelError(
                f"{c.what}: targets = {shown(targets)} is not understood; known are Linear, names and patterns of modules"
            )
        check_names(named, model, c.what)
        form = _group(group, plain, whole)
        group.rest(("output_activations",))
        rules += [rule(named, form)] if named else []
        linear += [rule(["re:.*"], form)] if "Linear" in targets else []
    c.read.update(("kv_cache_scheme", "quantization_status", "global_compression_ratio", "version"))
    for name in ("sparsity_config", "transform_config"):
        c.only(name, {}, None, default=None)
    return c.names("ignore"), [*rules, *(linear or [rule(["re:.*"], None)])]


def _group(group: Options, plain: str, whole: str | None) -> Format:
    given = group.raw("weights")
    if not isinstance(given, Mapping):
        raise ModelError(f"{group.what}: weights must be a mapping; found {shown(given)}")
    w = Options(given, group.method)
    layout = group.only("format", *_FORMATS, default=whole)
    kind, bits = w.only("type", "int", "float", default="int"), w.only("num_bits", 4, 8)
    strategy = w.only("strategy", "tensor", "channel", "group", "block", "tensor_group")
    static = _static(group, plain)
    size = w.group("group_size", default=None)
    w.only("actorder", None, "weight", "static", "dynamic", "group", default=None)
    if (strategy in ("group", "tensor_group")) != (size is not None):
        raise ModelError(f"{group.what}: strategy = {strategy!r} with group_size = {shown(size)} is not understood")
    if layout == _NVFP4:
        w.only("type", "float")
        w.only("num_bits", 4)
        scales = [
            Scale("fp8", 1, size),
            Scale("fp32"),
            *([Scale("fp32")] if group.raw("input_activations", default=None) else []),
        ]
        form = Format("nvfp4", "fp4", tuple(scales))
    else:
        block = _block(w) if strategy == "block" else (None, None) if strategy == "tensor" else (1, size)
        number = f"int{bits}" if kind == "int" else {8: "fp8"}.get(bits)
        if number is None or (layout == _PACKED and kind != "int"):
            raise ModelError(f"{group.what}: {kind} of {bits} bits in the format {layout!r} is not understood")
        if number == "int4" and layout != _PACKED:
            raise ModelError(f"{group.what}: int of 4 bits in the format {layout!r} is not understood; known: {_PACKED}")
        scales = [Scale(plain, *block), *static]
        if not w.only("symmetric", True, False, default=True):
            scales.append(Scale(number if layout == _PACKED else "int8", *block))
        if layout == _PACKED:
            scales.append(Scale("int64", each=2))
        if given.get("actorder") == "group":
            scales.append(Scale("int32", None, 1))
        form = Format(f"{number}, {_words(strategy, size, block)}", number, tuple(scales))
    w.read.add("symmetric")
    w.read.add("block_structure")
    w.rest(_OBSERVED)
    return form


def _static(group: Options, plain: str) -> list[Scale]:
    """The scale of the inputs, where it is stored: not where it is found as they come."""
    inputs = group.raw("input_activations", default=None)
    if inputs is None or (isinstance(inputs, Mapping) and inputs.get("dynamic") in (True, "local")):
        return []
    if not isinstance(inputs, Mapping) or inputs.get("symmetric") is False or inputs.get("strategy") not in (None, "tensor"):
        raise ModelError(
            f"{group.what}: input_activations = {shown(inputs)} is not understood; known are dynamic ones, and one scale per matrix"
        )
    return [Scale(plain)]


def _block(w: Options) -> tuple[int, int]:
    found = w.raw("block_structure")
    sizes = re.fullmatch(r"(\d+)x(\d+)", found) if isinstance(found, str) else None
    pair = [int(n) for n in sizes.groups()] if sizes else found
    if not isinstance(pair, list) or len(pair) != 2 or any(type(n) is not int or n < 1 for n in pair):
        raise ModelError(f"{w.what}: block_structure must be two whole numbers above 0; found {shown(found)}")
    return pair[0], pair[1]


def _words(strategy: str, size: int | None, block: tuple[int | None, int | None]) -> str:
    if strategy == "block":
        return f"blocks of {block[0]} × {block[1]}"
    return {"tensor": "one scale", "channel": "a scale per row"}.get(strategy, f"groups of {size}")


def modelopt(c: Options, model: Model, plain: str) -> Found:
    """NVFP4: 4 bits, an fp8 scale for 16 numbers, an fp32 scale for the matrix and one for its inputs. FP8: the last two alone."""
    inner = c.raw("quantization", default=None)
    if isinstance(inner, Mapping):
        c.given = {**c.given, **inner}
    algorithm = c.only("quant_algo", "NVFP4", "FP8")
    size = c.group("group_size", default=_group_size(c)) if algorithm == "NVFP4" else c.raw("group_size", default=None)
    forms = {
        "NVFP4": Format("nvfp4", "fp4", (Scale("fp8", 1, size), Scale("fp32"), Scale("fp32"))),
        "FP8": Format("fp8, one scale", "fp8", (Scale("fp32"), Scale("fp32"))),
    }
    c.read.update(("kv_cache_quant_algo", "kv_cache_scheme", "producer", "config_groups"))
    return c.names("exclude_modules", "ignore"), [rule(["re:.*"], forms[algorithm])]


def _group_size(c: Options) -> Any:
    """The group size as `config_groups` give it, else 16, NVFP4's own."""
    groups = c.raw("config_groups", default={})
    sizes = {str(g["weights"].get("group_size", 16)) for g in groups.values()} if isinstance(groups, Mapping) else set()
    if len(sizes) > 1:
        raise ModelError(f"{c.what}: config_groups with group sizes {', '.join(sorted(sizes))} are not understood")
    return int(sizes.pop()) if sizes else 16
