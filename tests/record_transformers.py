"""Records what transformers itself counts: the independent side of tests/test_counted.py. Run by hand, not by the tests.

    pip install transformers==5.24.0 torch
    python tests/record_transformers.py            # every family, about two minutes on one core
    python tests/record_transformers.py llama opt  # some of them

Models are built on torch's meta device, so a model of any size takes no memory. For each family: the defaults of its class, a small
base configuration, from that every field changed once (a size doubled and one more, a flag turned, null for a value, lists turned
round), and ten changes of several fields. Where transformers refuses to build, its error is recorded. For the base, the elements that
are kept after prompts of 6, 10 and 23 tokens: `cache` of what grows with the prompt, `state` of what does not, `index` of the keys of sparse attention; a sliding window of 8 is
counted as 8 tokens (transformers keeps 7, and the new one), a convolution of 4 taps as the 3 columns that the next token needs. The defaults of the classes go to src/scalebook/data/architectures.json.
"""

from __future__ import annotations

import dataclasses
import json
import random
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

ROOT = Path(__file__).resolve().parents[1]
COUNTED = ROOT / "tests" / "data" / "counted"
CLASSES = ROOT / "src" / "scalebook" / "data" / "architectures.json"
BUFFERS = (
    "e_score_correction_bias",
    "expert_bias",
    "expert_biases",
    "router_bias",
    "balancing_biases",
)  # not trained, but in every checkpoint
SECONDS = 25  # for building one model
# encoders, speech, encoders with decoders; and models that hold a text model, which is recorded itself
LEFT_OUT = set(
    "aria_text bart beam bert bert-generation big_bird bigbird_pegasus blenderbot blenderbot-small camembert cpmant data2vec-text dots3_note "
    "electra emu3 ernie flint fuyu git got_ocr2 gpt-sw3 marian mbart megatron-bert mllama moshi moss_transcribe_diarize musicgen "
    "musicgen_melody mvp pegasus phi4_multimodal plbart prophetnet reformer rembert roberta roberta-prelayernorm roc_bert roformer trocr "
    "whisper xlm xlm-roberta xlm-roberta-xl xlnet xmod modernbert-decoder gemma4_assistant gemma4_unified gemma4_unified_assistant blt gemma3 gemma3n gemma4 llama4 qwen3_5 "
    "qwen3_5_moe qwen4_exp gemma4_unified_text".split()
)
SMALL: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "word_embed_proj_dim"), 96),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "ffn_hidden_size"), 176),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers"), 6),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads"), 4),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 64),
    **dict.fromkeys(("moe_intermediate_size", "expert_ffn_hidden_size"), 56),
    **dict.fromkeys(("shared_expert_intermediate_size", "shared_intermediate_size", "shared_expert_size"), 72),
    **dict.fromkeys(("num_experts", "num_local_experts"), 6),
    **dict.fromkeys(("mamba_d_state", "state_size", "ssm_state_size"), 10),
    **dict.fromkeys(("mamba_n_heads", "mamba_num_heads", "num_heads"), 16),
    **dict.fromkeys(("mamba_d_head", "mamba_head_dim"), 12),
    **dict.fromkeys(("n_groups", "mamba_n_groups", "expand", "mamba_expand"), 2),
    **dict.fromkeys(("conv_kernel", "mamba_d_conv"), 4),
    **dict.fromkeys(("sliding_window", "attention_chunk_size", "index_topk"), 8),
    "vocab_size": 211,
    "vocab_size_per_layer_input": 211,
    "num_key_value_heads": 2,
    "head_dim": 20,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "q_lora_rank": 28,
    "kv_lora_rank": 36,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8,
    "v_head_dim": 14,
    "first_k_dense_replace": 2,
    "n_group": 1,
    "topk_group": 1,
    "zero_expert_num": 2,
    "linear_key_head_dim": 12,
    "linear_value_head_dim": 10,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "hidden_size_per_layer_input": 16,
    "global_head_dim": 24,
    "num_global_key_value_heads": 1,
    "num_kv_shared_layers": 0,
    "laurel_rank": 8,
    "index_n_heads": 4,
    "index_head_dim": 16,
    "intermediate_size_mlp": 160,
    "full_attention_interval": 3,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
OF_FAMILY: dict[str, dict[str, Any]] = {"helium": {"head_dim": 24}, "longcat_flash": {"moe_topk": 2, "zero_expert_num": 0}}
EXACT_COLUMNS = {"zaya"}  # keeps no column more than its convolutions need
KEPT_APART = {"deepseek_v4"}  # its compressed keys are kept elsewhere than in `keys` and `values`
# zero experts: transformers gives them matrices, the published model, which the library counts, has none
UNCHANGED = {"rope_parameters", "initializer_range", "use_cache", "zero_expert_num"}
Config = dict[str, Any]


class TooSlow(Exception):
    """A model that takes too long to build."""


def stop(*_: object) -> None:
    raise TooSlow(f"not built in {SECONDS} s")


def plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) <= 12 and all(plain(v) for v in value)
    return value is None or isinstance(value, bool | int | float | str)


def classes() -> dict[str, Any]:
    """Every family's class, its fields with their defaults, and its second names of fields."""
    common = {f.name for f in dataclasses.fields(PreTrainedConfig)} | set(PreTrainedConfig().to_dict())
    families = {}
    for family in sorted(set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) - LEFT_OUT):
        kind = CONFIG_MAPPING[family]
        fields = {}
        for f in dataclasses.fields(kind):
            value = f.default if f.default is not dataclasses.MISSING else None
            if f.default_factory is not dataclasses.MISSING:
                value = f.default_factory()
            if f.name not in common - {"tie_word_embeddings"} and not f.name.startswith("_"):
                fields[f.name] = value if plain(value) else None
        families[family] = {"class": kind.__name__, "aliases": dict(kind.attribute_map), "fields": fields}
    return {"common": sorted(common), "families": families}


def build(config: Config, **options: Any) -> Any:
    fields = json.loads(json.dumps({k: v for k, v in config.items() if k != "model_type"}))
    made = AutoConfig.for_model(config["model_type"], **fields)
    signal.alarm(SECONDS)
    try:
        with torch.device(options.pop("device", "meta")):
            return AutoModelForCausalLM.from_config(made, **options)
    finally:
        signal.alarm(0)


def count(config: Config) -> dict[str, Any]:
    """Parameters, tied ones once, and beside them the buffers that balance a router; or why there is no such model."""
    try:
        net = build(config)
    except Exception as e:  # whatever transformers does with a strange configuration is what is recorded
        return {"error": f"{type(e).__name__}: {' '.join(str(e).split())[:100]}"}
    buffers = sum(b.numel() for name, b in net.named_buffers() if name.split(".")[-1] in BUFFERS)
    return {"params": sum(p.numel() for p in net.parameters()), "router_bias_buffers": buffers}


def tensors(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, torch.Tensor]]:
    if id(value) in seen or path.count(".") > 6:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict | list | tuple):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors(inner, f"{path}.{key}", seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from tensors(vars(value), path, seen)


def kept(config: Config) -> dict[str, Any]:
    """Elements kept after prompts of several lengths; {} where the small model does not run."""
    found: dict[str, Any] = {"cache": {}}
    others: dict[str, int] = {}
    try:
        torch.manual_seed(0)
        net = build(config, device="cpu", attn_implementation="eager", dtype=torch.float32).eval()
        for length in (6, 10, 23):
            with torch.no_grad():
                out = net(torch.randint(3, 200, (1, length)), use_cache=True)
            held = (
                out.past_key_values if getattr(out, "past_key_values", None) is not None else getattr(out, "cache_params", None)
            )
            grows, states = 0, 0
            for path, t in tensors(held, "", set()):
                if path.endswith((".keys", ".values")):
                    tokens = t.shape[-2] + (length > t.shape[-2])  # a window keeps one token less than it sees
                    grows += t.numel() // t.shape[-2] * tokens
                elif t.dim() > 1:
                    states += (
                        t.numel() // t.shape[-1] * (t.shape[-1] - ("conv" in path and config["model_type"] not in EXACT_COLUMNS))
                    )
            found["cache"][str(length)], others[str(length)] = grows, states
    except Exception as e:
        print(f"  {config['model_type']} does not run: {type(e).__name__}: {str(e)[:100]}")
        return {}
    if len(set(others.values())) > 1:
        return found | {"index": others}  # the keys by which sparse attention chooses
    return found | {"state": others["6"]} if found["cache"]["6"] or others["6"] else {}


def changes(value: Any) -> list[Any]:
    """Other values of a field."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value * 2, value + 1, value // 2][: 3 if value > 2 else 2] if value > 0 else [1, 2]
    if isinstance(value, float):
        return [value * 0.5]
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [value[::-1], [value[0]] * len(value)]
    if isinstance(value, list) and value and type(value[0]) is int:
        return [value[:-1], [value[0]]]
    return [3, True, 12] if value is None else []


def base_of(family: str, fields: Config) -> Config:
    """A small configuration that can be built: all of SMALL that the family has, or as much of it as goes."""
    wanted = {k: v for k, v in SMALL.items() if k in fields and not (v is None and fields[k] is None)} | OF_FAMILY.get(family, {})
    if "kv_lora_rank" in wanted and "num_key_value_heads" in wanted:
        wanted["num_key_value_heads"] = wanted["num_attention_heads"]
    base = {"model_type": family, **wanted}
    for without in (None, *wanted):
        tried = {k: v for k, v in base.items() if k != without}
        if "error" not in count(tried):
            return tried
    base = {"model_type": family}
    for name, value in wanted.items():
        if "error" not in count({**base, name: value}):
            base[name] = value
    return base


def samples(family: str, fields: Config) -> Iterator[dict[str, Any]]:
    default = {"model_type": family, **OF_FAMILY.get(family, {})}
    yield {"config": default, **count(default)}
    base = base_of(family, fields)
    yield {"config": base, **count(base), **(kept(base) if family not in KEPT_APART else {})}
    full = AutoConfig.for_model(family, **{k: v for k, v in base.items() if k != "model_type"}).to_dict()
    built: list[tuple[str, Any]] = []
    for name in fields:
        if name in UNCHANGED or "token_id" in name:
            continue
        value = base.get(name, full.get(name, fields[name]))
        others = ["gelu" if value != "gelu" else "silu"] if name in ("hidden_act", "hidden_activation") else changes(value)
        if value is not None and not isinstance(value, bool | str | float):
            others.append(None)
        for other in others:
            sample = {"config": {**base, name: other}, **count({**base, name: other})}
            if "error" not in sample and other is not None:
                built.append((name, other))
            yield sample
    draw = random.Random(family)
    for _ in range(10 if len(built) > 2 else 0):
        several = {**base, **dict(draw.sample(built, min(len(built), draw.randint(3, 5))))}
        yield {"config": several, **count(several)}


def main(asked: Iterable[str]) -> None:
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    signal.signal(signal.SIGALRM, stop)
    known = classes()
    source = f"configuration classes of transformers {transformers.__version__} (Apache-2.0), https://github.com/huggingface/transformers"
    lines = [f"{json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in known["families"].items()]
    text = (
        f'{{"source": {json.dumps(source)},\n"common": {json.dumps(known["common"])},\n"families": {{\n'
        + ",\n".join(lines)
        + "\n}}\n"
    )
    CLASSES.write_text(text, "utf-8")
    for family in asked or known["families"]:
        rows = [json.dumps(s) for s in samples(family, known["families"][family]["fields"])]
        head = json.dumps({"class": known["families"][family]["class"], "transformers": transformers.__version__})[:-1]
        (COUNTED / f"{family}.json").write_text(f'{head}, "samples": [\n' + ",\n".join(rows) + "\n]}\n", "utf-8")
        print(family, len(rows), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
