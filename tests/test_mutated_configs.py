"""Ten thousand broken and changed configurations: a Model with whole, non-negative counts, or one named error; never anything else."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

import scalebook as sb
from scalebook.errors import ScalebookError
from scalebook.transformer.configs.families import FAMILIES

FOLDER = Path(__file__).parent / "data" / "counted"
ODD = [
    None, True, False, 0, 1, 2, 3, 7, 8, 64, -1, -64, 10**6, 10**12, 10**40, 1.5, -0.5, math.nan, math.inf, 4096.0, "", "8", "x" * 300,
    "full_attention", [], [1], [0, 0], [None], ["full_attention"], [["a"]], {}, {"a": 1}, {"type": "x"}, b"8", (1, 2), object(),
]  # fmt: skip


def _bases() -> list[dict[str, Any]]:
    found = [row["config"] for row in json.loads((FOLDER / "real.json").read_text("utf-8"))["models"]]
    for path in sorted(FOLDER.glob("*.json")):
        if path.stem in FAMILIES:
            built = [s["config"] for s in json.loads(path.read_text("utf-8"))["samples"] if "error" not in s]
            found += built[:: max(1, len(built) // 4)]
    return found


BASES = _bases()
NAMES = sorted({name for base in BASES for name in base})
values = st.one_of(st.sampled_from(ODD), st.integers(-4, 300), st.integers(), st.text(max_size=8))


@st.composite
def mutated(draw: st.DrawFn) -> dict[Any, Any]:
    config: dict[Any, Any] = dict(draw(st.sampled_from(BASES)))
    for _ in range(draw(st.integers(1, 4))):
        action = draw(st.sampled_from(["change", "change", "change", "remove", "add", "invent", "list"]))
        if action == "invent":
            config[draw(st.one_of(st.text(max_size=12), st.integers(), st.none()))] = draw(values)
            continue
        name = draw(st.sampled_from(NAMES if action == "add" else sorted(map(str, config)) or NAMES))
        if action == "remove":
            config.pop(name, None)
        elif action == "list" and isinstance(config.get(name), list):
            entries = list(config[name])
            at = draw(st.integers(0, len(entries)))
            config[name] = [*entries[:at], draw(values), *entries[at + draw(st.integers(0, 1)) :]]
        else:
            config[name] = draw(values)
    return config


def whole(n: Any) -> bool:
    return type(n) is int and n >= 0


@settings(max_examples=10_000, derandomize=True, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_a_changed_configuration_is_counted_or_refused(config: dict[Any, Any]) -> None:
    try:
        x = sb.Model.from_hf(config)
    except ScalebookError as e:
        assert 20 < len(str(e)) < 3000
        assert "\n" not in str(e)
        return
    assert whole(x.total_params)
    assert x.total_params > 0
    assert all(whole(n) for n in x.params().values())
    assert all(whole(n) for n in (x.kv_bytes(100), x.index_bytes(100), x.state_bytes(), x.mtp_params))
    assert whole(x.flops(batch=2, seq_len=100)) and whole(x.flops(batch=2, seq_len=100, kind="decode"))
    all_, looked_up, neither = (x.active_params(c) for c in ("all", "no_input_embedding", "no_embeddings"))  # type: ignore[arg-type]
    assert x.total_params >= all_ >= looked_up >= neither >= 0
