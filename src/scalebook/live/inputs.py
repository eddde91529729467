"""What text fields of explorers hold: sizes, a mesh and its machine, number formats."""

from __future__ import annotations

import json

from scalebook.errors import MeshError, ScalebookError
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
