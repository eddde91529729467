"""Every family against an independent count: transformers' own models, built without memory, as tests/record_transformers.py wrote them.

For each recorded configuration the library gives the same number of parameters, or refuses it by name; never another number.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import scalebook as sb
from scalebook.errors import ModelError, ScalebookError
from scalebook.transformer.configs.families import FAMILIES
from scalebook.transformer.configs.fields import families

FOLDER = Path(__file__).parent / "data" / "counted"
RECORDED = sorted(p.stem for p in FOLDER.glob("*.json") if p.stem != "real")


def samples(family: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / f"{family}.json").read_text("utf-8"))["samples"]  # type: ignore[no-any-return]


BOTH = [name for name in RECORDED if name in FAMILIES and any("params" in s for s in samples(name))]


def wrong(sample: dict[str, Any]) -> str | None:
    """What is wrong with the library's count of a sample; None where it is right or refused with its reason."""
    try:
        x = sb.Model.from_hf(sample["config"])
    except ScalebookError:
        return None
    if "error" in sample:
        return None  # what transformers does not build has no count to compare with
    expected = sample["params"] + sample.get("router_bias_buffers", 0)
    if x.total_params != expected:
        return f"{x.total_params:,} parameters, counted {expected:,} ({x.total_params - expected:+,}): {sample['config']}"
    state = x.state_bytes(dtype="fp8")
    for name, kept in (("cache", x.kv_bytes), ("index", x.index_bytes)):
        for length, n in sample.get(name, {}).items():
            if kept(int(length), dtype="fp8") != n:
                return (
                    f"{kept(int(length), dtype='fp8'):,} elements of {name} of {length} tokens, counted {n:,}: {sample['config']}"
                )
    if sample.get("state", state) != state:
        return f"a state of {state:,} elements, counted {sample['state']:,}: {sample['config']}"
    return None


@pytest.mark.parametrize("family", BOTH)
def test_counts_equal_an_independent_implementation(family: str) -> None:
    assert [w for s in samples(family) if (w := wrong(s))] == []


NO_MODEL = re.compile(
    "cannot share|cannot divide|must divide|must be hidden_size|a token cannot use|equal groups"
)  # transformers builds what cannot run


@pytest.mark.parametrize("family", BOTH)
def test_hardly_anything_that_can_be_built_is_refused(family: str) -> None:
    """A refusal is honest but of no use: of each family nearly every configuration that transformers builds is counted."""
    built = [s for s in samples(family) if "error" not in s]
    refused = []
    for sample in built:
        try:
            sb.Model.from_hf(sample["config"])
        except ScalebookError as e:
            if not NO_MODEL.search(str(e)):
                refused.append(str(e))
    assert len(refused) <= 0.1 * len(built) + (10 if family == "mpt" else 1), refused  # mpt: fields that its code ignores


@pytest.mark.parametrize("family", BOTH)
def test_a_field_that_changes_the_count_is_understood(family: str) -> None:
    """A field that nobody knows is refused, unless its value says that it is off."""
    base = next(s for s in samples(family)[1:] if "error" not in s)["config"]
    with pytest.raises(ModelError, match="num_secret_experts = 4"):
        sb.Model.from_hf({**base, "num_secret_experts": 4})
    x = sb.Model.from_hf({**base, "num_secret_experts": 0, "secret_dropout": 0.5})
    assert {"num_secret_experts", "secret_dropout"} <= set(x.ignored)


def test_most_recorded_families_are_known_and_the_others_refused_by_name() -> None:
    assert len(BOTH) >= 110
    assert set(families()) >= set(RECORDED)
    for family in set(RECORDED) - set(FAMILIES):  # none at all is built of what is in FAMILIES and not in BOTH
        with pytest.raises(ModelError, match=re.escape(f"unknown model family (model_type) '{family}'")):
            sb.Model.from_hf({"model_type": family, "hidden_size": 64})


def real() -> list[dict[str, Any]]:
    return json.loads((FOLDER / "real.json").read_text("utf-8"))["models"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("row", real() if (FOLDER / "real.json").exists() else [], ids=lambda row: row["name"])
def test_real_models_are_exact(row: dict[str, Any]) -> None:
    x = sb.Model.from_hf(row["config"])
    router_biases = sum(n for part, n in x.params().items() if part.endswith("experts/router_bias"))
    stored = row["exact_param_count"] + (
        0 if row["of_which_router_bias_buffers"] else router_biases * (row["name"] == "zai-org/GLM-5.3 (main)")
    )
    assert x.total_params == stored
    assert x.kv_bytes(1) == row["kv_bytes_per_token_bf16_all_kv_layers_full"]
    for field, convention in (
        ("active_param_count", "all"),
        ("active_excl_input_embedding", "no_input_embedding"),
        ("active_excl_both_embeddings", "no_embeddings"),
    ):
        if row.get(field):
            # the file leaves router biases, which are no parameters of transformers' models, out of what is active
            assert x.active_params(convention) in (row[field], row[field] + row["of_which_router_bias_buffers"])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sb.models())
def test_the_models_of_the_book_are_what_is_published(name: str) -> None:
    x = sb.model(name)
    published = dict(x.published)
    assert x.source
    assert x.total_params - published["params"] in (0, sum(n for p, n in x.params().items() if p.endswith("router_bias")))
    assert x.kv_bytes(1) == published["kv_bytes_per_token"]
