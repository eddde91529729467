"""What fields of explorers hold: sizes, a mesh and its machine, number formats, a configuration, a model or a length."""

from __future__ import annotations

import json
from typing import Any

from scalebook.errors import MeshError, ModelError, ScalebookError, shown
from scalebook.layouts import Mesh, mesh as mesh_of
from scalebook.typed import read_pairs, read_sizes

SIZES = "sizes are pairs NAME=SIZE, joined by commas, such as B=4096, D=8192"
MESH = "a mesh is given by its axes and their sizes, joined by commas, such as X=4, Y=2"
DTYPES = "give one number format for all arrays, such as bf16, or pairs, such as In=bf16, W=int8, Out=bf16"


def sizes_of(text: str) -> dict[str, int]:
    """The sizes of dimensions.

    >>> sizes_of("B=4096, D=8192")
    {'B': 4096, 'D': 8192}
    """
    return read_sizes("sizes", text, SIZES)


def mesh_from(text: str, topology: str = "") -> Mesh:
    """A mesh, on a machine if one is named.

    >>> mesh_from("X=4, Y=2").devices
    8

    Raises MeshError for what is no mesh, and what `scalebook.mesh` raises for a machine that cannot be had or does not fit.
    """
    shape = read_sizes("mesh", text, MESH, MeshError, wrong=MeshError)
    return mesh_of(shape, on=topology.strip()) if topology.strip() else mesh_of(shape)


def mesh_python(text: str, topology: str = "") -> str:
    """The same mesh as Python code.

    >>> mesh_python("X=4, Y=2", "v5e:4x2")
    'sb.mesh({"X": 4, "Y": 2}, on="v5e:4x2")'
    """
    shape = read_sizes("mesh", text, MESH, MeshError, wrong=MeshError)
    on = f", on={quoted(topology.strip())}" if topology.strip() else ""
    return f"sb.mesh({quoted(shape)}{on})"


def quoted(value: str | dict[str, int] | dict[str, str]) -> str:
    """A text, or a dict of names, as Python code in the book's quotes.

    >>> print(quoted("v5e:4x2"), quoted({"X": 4}))
    "v5e:4x2" {"X": 4}
    """
    return json.dumps(value, ensure_ascii=False)


def dtypes_of(text: str) -> str | dict[str, str]:
    """One number format, or one for each array.

    >>> dtypes_of("bf16"), dtypes_of("A=bf16, B=int8")
    ('bf16', {'A': 'bf16', 'B': 'int8'})

    Raises ScalebookError for an empty text and for what cannot be read.
    """
    if not text.strip():
        raise ScalebookError(f"dtype: the field is empty; {DTYPES}")
    return read_pairs("dtype", text, DTYPES) if "=" in text else text.strip()


# Models that a reader may choose from: of every kind of attention and feed-forward, small and large.
MODELS = (
    "llama-3-8b", "llama-3.1-70b", "llama-3.1-405b", "gpt2-xl", "pythia-6.9b", "bloom", "falcon-40b", "mistral-7b-v0.1", "qwen2.5-7b",
    "phi-4", "olmo-2-1124-7b", "gemma-2-27b", "gemma-3-4b", "gemma-3-12b", "gemma-4-31b", "qwen3.8-27b", "mixtral-8x7b-v0.1", "qwen3-30b-a3b",
    "qwen3-235b-a22b", "gpt-oss-120b", "llama-4-scout-17b-16e", "minimax-m2", "glm-4.5-air", "deepseek-v2-lite", "deepseek-v3",
    "glm-5.3", "granite-4.0-h-small", "nemotron-nano-9b-v2",
)  # fmt: skip


def config_of(text: str) -> dict[str, Any]:
    """A configuration as it is pasted: the text of a Hugging Face config.json.

    >>> config_of('{"model_type": "llama"}')
    {'model_type': 'llama'}

    Raises ModelError for what is no JSON object.
    """

    def no_number(word: str) -> None:
        raise ValueError(f"{word} is no number of JSON")

    try:
        found = json.loads(text.removeprefix("\ufeff"), parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split())[:120] if isinstance(error, ValueError) else "it is nested too deeply"
        raise ModelError(f"the text is no config.json: {said}; it begins with {shown(text.strip())}") from None
    if not isinstance(found, dict):
        raise ModelError(f'a config.json is an object of fields, {{"model_type": …}}; found {shown(found)}')
    return found
