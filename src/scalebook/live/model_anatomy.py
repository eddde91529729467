"""The explorer of a model's parts: where its parameters sit, and where its FLOPs; of a known model, or of a config.json."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from scalebook.explore.lengths import LENGTHS
from scalebook.figures import Figure, model_anatomy as drawn
from scalebook.live.controls import Choice, Slider, Text
from scalebook.live.explorers import Explorer
from scalebook.live.inputs import MODELS, config_of
from scalebook.tables import Table
from scalebook.transformer import Model, model as model_of
from scalebook.units import count, plural, si

KINDS = (("forward", "a whole sequence"), ("decode", "one more token"))
EXAMPLE = (
    '{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "intermediate_size": 8192, '
    '"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}'
)


@lru_cache(maxsize=8)
def _pasted(text: str) -> Model:
    """The model of a configuration, kept while a reader moves along a slider."""
    return Model.from_hf(config_of(text))


def figure(model: str, config: str, at: int, kind: str) -> Figure:
    """The parts of the model of the configuration, or where there is none, of the one chosen."""
    return drawn(_pasted(config) if config else model_of(model), seq_len=at, kind=kind)


def python(model: str, config: str, at: int, kind: str) -> str:
    """The same in code."""
    options = f'seq_len={at}, kind="{kind}"'
    if not config:
        return f'import scalebook as sb\n\nsb.figures.model_anatomy("{model}", {options})\n'
    fields = "".join(f"    {name!r}: {value!r},\n" for name, value in config_of(config).items())
    return f"import scalebook as sb\n\nconfig = {{\n{fields}}}\nsb.figures.model_anatomy(sb.Model.from_hf(config), {options})\n"


def table(view: Mapping[str, Any]) -> Table:
    """Each part's amounts; below, the three conventions of active parameters, and all that was assumed, ignored or left out."""
    rows = view["rows"]
    params, used, flops = ({p["name"]: p for p in row["every"]} for row in (rows[0], rows[-2], rows[-1]))
    made = []
    for part in dict.fromkeys([*params, *flops]):
        p, u, f = params.get(part), used.get(part), flops.get(part)
        made.append(
            (part, f"{p['value']:,}" if p else "none", p["text"] if p else "none", u["text"] if u else "none",
             si(view["flops"] * f["share"], "FLOPs") if f else "none", f["text"] if f else "none")
        )  # fmt: skip
    notes = [f"Parameters that a token uses, {name}: {n:,}." for name, n in view["active"].items()]
    notes += [f"{plural(k['count'], 'layer')} {k['name']}: {k['words']}; {k['params']:,} parameters each." for k in view["kinds"]]
    notes += [
        f"Keys and values of a token in bf16: {view['token_bytes']:,} bytes."
        if view["token_bytes"]
        else "No keys and values are kept."
    ]
    notes += [f"Recurrent states of a sequence in bf16: {view['state_bytes']:,} bytes."] if view["state_bytes"] else []
    notes += ["Embedding and head share one table."] if view["tied"] else []
    notes += [f"Heads for further tokens, not counted: {view['mtp']:,} parameters."] if view["mtp"] else []
    for said, listed in (("Assumed, since not given", view["assumed"]), ("Not counted", view["not_counted"]), ("Without effect as far as known", view["ignored"])):  # fmt: skip
        notes += [f"{said}: {', '.join(listed)}."] if listed else []
    head = ("part", "parameters", "share", "share of those used", "FLOPs of a token", "share of FLOPs")
    return Table(f"{view['subject']}: {view['total']:,} parameters", head, tuple(made), tuple(notes))


EXPLORER = Explorer(
    name="model_anatomy",
    title="Where parameters and FLOPs sit",
    controls=(
        Choice("model", "Model", tuple((name, name) for name in MODELS), segments=False),
        Slider("at", "Tokens in the sequence", LENGTHS, count),
        Choice("kind", "FLOPs of", KINDS),
        Text("config", "or a config.json, pasted here", EXAMPLE, wide=True, lines=4, most=20_000),
    ),
    start={"model": "deepseek-v3", "config": "", "at": 4096, "kind": "forward"},
    figure=figure,
    python=python,
    table=table,
)
