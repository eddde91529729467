"""A notebook's first cell: what there is to compute on with no, one, four and eight real devices; a jax that is missing or too old."""

from __future__ import annotations

import builtins
import importlib.metadata
import re
import types
from pathlib import Path

import jax
import pytest

from scalebook import lab
from scalebook.errors import MissingExtra, ScalebookError
from scalebook.lab.session import OLDEST

ROOT = Path(__file__).parents[2]


def real(monkeypatch: pytest.MonkeyPatch, n: int, platform: str = "tpu", kind: str = "TPU v5 lite") -> None:
    """A machine with n real devices beside its CPU."""
    cpu = jax.devices("cpu")
    chips = [types.SimpleNamespace(platform=platform, id=i, device_kind=kind) for i in range(n)]
    monkeypatch.setattr(jax, "devices", lambda name=None: cpu if name == "cpu" or not n else chips)


@pytest.mark.parametrize(
    ("n", "single", "together"),
    [
        (0, "CPU", "cpu"),
        (1, "TPU v5 lite", "cpu"),
        (4, "TPU v5 lite", "cpu"),
        (8, "TPU v5 lite", "tpu"),
    ],
)
def test_what_there_is_is_used(n: int, single: str, together: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real(monkeypatch, n)
    session = lab.setup()
    assert (session.kind, session.real, session.devices, session.simulated) == (single, max(n, 1), 8, together == "cpu")
    assert {d.platform for d in lab.devices(8)} == {together} and len(lab.devices(8)) == 8
    assert lab.devices(1)[0].platform == ("tpu" if n else "cpu")


def test_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    version = jax.__version__
    cpu = f"jax {version}. What takes one device runs on the CPU; what takes 8, on 8 devices simulated on the CPU."
    assert repr(lab.setup()) == cpu
    real(monkeypatch, 4)
    assert "one device runs on one of 4 × TPU v5 lite; what takes 8, on 8 devices simulated" in str(lab.setup())
    real(monkeypatch, 1, "gpu", "NVIDIA T4")
    assert "runs on the NVIDIA T4; what takes 8, on 8 devices simulated" in str(lab.setup())
    real(monkeypatch, 8)
    assert "runs on one of 8 × TPU v5 lite; what takes 8, on 8 of these." in str(lab.setup())


@pytest.mark.parametrize("found", ["0.4.30", "0.7.2", "0.7.2.dev20250801"])
def test_a_jax_that_is_too_old_is_not_replaced(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: found)
    with pytest.raises(
        ScalebookError, match=rf"need jax 0.8 or newer; found jax {re.escape(found)}. It is not replaced from here"
    ):
        lab.setup()


@pytest.mark.parametrize("found", ["0.8.0", "0.12.0", "1.0"])
def test_a_newer_jax_will_do(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: found)
    assert lab.setup().jax == found


def test_without_jax_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(MissingExtra, match=r"scalebook.lab.setup needs the package jax"):
        lab.setup()


@pytest.mark.parametrize(("lacking", "named"), [(None, "jaxlib"), ("jaxlib.xla", "jaxlib"), ("numpy", "numpy")])
def test_without_what_jax_needs_it_says_so_too(lacking: str | None, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jax alone, without jaxlib, fails as it is loaded, and its error names no module."""
    load = builtins.__import__

    def loading(name: str, *more: object) -> object:
        if name == "scalebook.lab.backend":
            raise ModuleNotFoundError("jax requires jaxlib to be installed", name=lacking)
        return load(name, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", loading)
    with pytest.raises(MissingExtra, match=rf"scalebook.lab.setup needs the package {named}, which is not installed"):
        lab.setup()


def test_the_oldest_jax_is_not_newer_than_the_one_that_builds_the_book() -> None:
    [pinned] = re.findall(r'"jax==(\d+)\.(\d+)', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert tuple(map(int, pinned)) >= OLDEST
