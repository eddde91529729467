"""From a configuration's `quantization_config` to the formats of its checkpoint.

Understood are the methods of METHODS. What a method's own fields say beyond that is refused by name, not when the configuration is read, for
parameters and caches do not depend on it, but when the bytes of the checkpoint are asked for.

What is stored beside the numbers follows the code that writes it: transformers (fp8, fbgemm_fp8, mxfp4), AutoGPTQ, AutoAWQ,
compressed-tensors, NVIDIA's Model Optimizer, bitsandbytes. Uncertain are a few bytes for each matrix: of compressed-tensors' record of its shape, which some write as int32. The router of a mixture of experts is quantised by none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scalebook.errors import ModelError, ScalebookError, shown
from scalebook.transformer.configs.quantization_groups import compressed_tensors, modelopt
from scalebook.transformer.configs.quantization_options import Options, check_names, has_experts, rule
from scalebook.transformer.model import Model
from scalebook.transformer.precision import Format, Precision, Rule, Scale
from scalebook.units import dtype_name

Found = tuple[list[str], list[Rule]]  # modules that are left out, and the formats of the others
_HEAD = "lm_head"
_OURS = frozenset(
    "damp_percent damp_auto_increment desc_act sym true_sequential static_groups model_name_or_path model_file_base_name quantizer meta "
    "backend exllama_config use_exllama disable_exllama max_input_length cache_block_outputs batch_size dataset tokenizer use_cuda_fp16 "
    "model_seqlen block_name_to_quantize module_name_preceding_first_block pad_token_id do_fuse fuse_max_seq_len modules_to_fuse zero_point "
    "activation_scale_ub fmt dequantize bnb_4bit_compute_dtype llm_int8_threshold llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight "
    "_load_in_4bit _load_in_8bit".split()
)


def read_precision(quantization: Any, model: Model, config: Mapping[str, Any]) -> Precision | None:
    """None where the checkpoint is not quantised; where that cannot be read with certainty, a Precision that refuses and says why."""
    if quantization is None:
        return None
    plain = _plain(config.get("dtype") or config.get("torch_dtype"))
    try:
        left_out, rules = _rules(quantization, model, plain)
    except ScalebookError as e:
        return Precision(refusal=f"{e}. Give a dtype for all weights, such as weight_bytes('fp8')")
    kept = (("experts/router", plain), ("experts/router_bias", plain if model.family == "gpt_oss" else "fp32"))
    return Precision((rule(left_out, None), *rules), plain, kept)


def _rules(quantization: Any, model: Model, plain: str) -> Found:
    method = quantization.get("quant_method") if isinstance(quantization, Mapping) else None
    if method is None and isinstance(quantization, Mapping):
        method = next((m for key, m in _BY_FIELD.items() if quantization.get(key)), None)
    if not isinstance(method, str) or method not in METHODS:
        asked = shown(quantization if method is None else method)
        raise ModelError(f"the bytes of a checkpoint quantised by {asked} are not known; known methods: {', '.join(METHODS)}")
    options = Options(quantization, method)
    left_out, rules = METHODS[method](options, model, plain)
    options.rest(_OURS)
    check_names(left_out, model, options.what)
    return left_out, rules


def _plain(dtype: Any) -> str:
    try:
        found = dtype_name(str(dtype).removeprefix("torch."))
    except ScalebookError:
        return "bf16"
    return found if found in ("bf16", "fp16", "fp32") else "bf16"


def _all(form: Format) -> list[Rule]:
    return [rule(["re:.*"], form)]


def _fp8(c: Options, model: Model, plain: str) -> Found:
    """Blocks with an fp32 scale each (DeepSeek), or one scale per matrix where no block is given."""
    block = c.raw("weight_block_size", default=None)
    scale = Scale("fp32", *block) if _is_block(block) else Scale("fp32")
    if block is not None and not _is_block(block):
        raise ModelError(f"{c.what}: weight_block_size must be two whole numbers above 0; found {shown(block)}")
    c.only(
        "scale_fmt", "float", None, default=None
    )  # "ue8m0" stands for scales in fp32 in some checkpoints, in one byte in others
    c.only("expert_dtype", "fp8", None, default=None)
    static = c.only("activation_scheme", "dynamic", "static", default="dynamic") == "static"
    name = f"fp8, blocks of {block[0]} × {block[1]}" if _is_block(block) else "fp8, one scale"
    form = Format(name, "fp8", (scale, *([Scale("fp32")] if static else [])))
    return [_HEAD, *c.names("modules_to_not_convert", "ignored_layers")], _all(form)


def _is_block(block: Any) -> bool:
    return isinstance(block, list | tuple) and len(block) == 2 and all(type(n) is int and n > 0 for n in block)


def _fbgemm_fp8(c: Options, model: Model, plain: str) -> Found:
    """One fp32 scale per row (Llama 3.1 405B)."""
    form = Format("fp8, a scale per row", "fp8", (Scale("fp32", 1),))
    return [_HEAD, *c.names("modules_to_not_convert")], _all(form)


def _mxfp4(c: Options, model: Model, plain: str) -> Found:
    """Experts only: 4 bits, and an exponent of one byte for 32 numbers (gpt-oss)."""
    form = Format("mxfp4", "fp4", (Scale("uint8", 1, 32),))
    return [_HEAD, *c.names("modules_to_not_convert")], [rule(["mlp.experts"], form), rule(["re:.*"], None)]


def _gptq(c: Options, model: Model, plain: str) -> Found:
    """Groups of columns with a scale and a packed zero point for each row, and for each column the number of its group."""
    bits, group = c.only("bits", 4, 8), c.group("group_size")
    c.only("checkpoint_format", "gptq", "gptq_v2", default="gptq")
    c.only("is_marlin_format", False, default=False)
    c.only("pack_dtype", "int32", default="int32")
    number = f"int{bits}"
    form = Format(
        f"{number}, groups of {group or 'a row'}",
        number,
        (Scale(plain, 1, group), Scale(number, 1, group), Scale("int32", None, 1)),
    )
    only = c.names("modules_in_block_to_quantize")
    check_names(only, model, c.what)
    kept = [] if c.only("lm_head", False, True, default=False) else [_HEAD]
    return kept, [rule(only, form), rule(["re:.*"], None)] if only else _all(form)


def _awq(c: Options, model: Model, plain: str) -> Found:
    """Groups of columns with a scale and a packed zero point for each row."""
    bits, group = c.only("bits", 4, others=("w_bit",)), c.group("group_size", "q_group_size")
    c.only("version", "gemm", default="gemm")
    form = Format(
        f"int{bits}, groups of {group or 'a row'}", f"int{bits}", (Scale(plain, 1, group), Scale(f"int{bits}", 1, group))
    )
    return [_HEAD, *c.names("modules_to_not_convert")], _all(form)


def _bitsandbytes(c: Options, model: Model, plain: str) -> Found:
    """8 bits with an fp32 scale per row, or 4 bits with a scale per 64 numbers, which double quantisation keeps in a byte."""
    if has_experts(model):
        raise ModelError(f"{c.what}: which matrices of a mixture of experts it quantises depends on the version")
    four, eight = (c.only(name, True, False, default=False) for name in ("load_in_4bit", "load_in_8bit"))
    if four == eight:
        raise ModelError(f"{c.what}: one of load_in_4bit and load_in_8bit must be true")
    c.only("bnb_4bit_quant_storage", "uint8", "bfloat16", "float16", "float32", default="uint8")
    kind, double = (
        c.only("bnb_4bit_quant_type", "nf4", "fp4", default="fp4"),
        c.only("bnb_4bit_use_double_quant", True, False, default=False),
    )
    nested = (Scale("uint8", flat=64), Scale("fp32", flat=64 * 256), Scale("fp32", each=256))
    table = Scale("fp32", each=16)
    if four:
        form = Format(kind, "fp4", (table, *(nested if double else (Scale("fp32", flat=64),))))
    else:
        form = Format("int8, a scale per row", "int8", (Scale("fp32", 1), Scale("uint8")))
    return c.names("llm_int8_skip_modules") or [_HEAD], _all(form)


Reader = Callable[[Options, Model, str], Found]
METHODS: Mapping[str, Reader] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm_fp8,
    "mxfp4": _mxfp4,
    "gptq": _gptq,
    "awq": _awq,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": compressed_tensors,
    "modelopt": modelopt,
}
_BY_FIELD = {"load_in_4bit": "bitsandbytes", "load_in_8bit": "bitsandbytes"}
