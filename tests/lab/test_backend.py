"""Devices, real and simulated, and meshes on them; what is said when jax has already started or is not installed."""

import subprocess
import sys
import types

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

import scalebook
from scalebook import lab
from scalebook.errors import MeshError, ScalebookError
from scalebook.lab import backend


def python(code, **environment):
    import os

    env = (
        {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")} | {"JAX_PLATFORMS": "cpu"} | environment
    )
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=env, timeout=120)


def test_eight_simulated_devices_and_fewer_of_them():
    assert [d.id for d in lab.devices(8)] == list(range(8))
    assert [d.id for d in lab.devices(2)] == [0, 1]
    assert lab.devices(3)[0].platform == "cpu"


def test_a_first_call_settles_the_number():
    done = python("from scalebook import lab; print(len(lab.devices(4)), len(lab.devices()), len(lab.devices(8)))")
    assert done.stdout.split() == ["4", "8", "8"], done.stderr
    done = python("from scalebook import lab; print(len(lab.devices(16)), lab.jax_mesh({'X': 16}).size)")
    assert done.stdout.split() == ["16", "16"], done.stderr


def test_measuring_first_leaves_room_for_the_simulated_devices():
    done = python("from scalebook import lab; lab.measure_matmul(8, 8, 8); print(len(lab.devices(8)))")
    assert done.stdout.split() == ["8"], done.stderr


def test_jax_that_has_already_started_with_fewer():
    code = "import jax; jax.devices()\nfrom scalebook import lab\ntry: lab.devices(8)\nexcept ValueError as e: print(e)"
    text = python(code).stdout
    assert text.startswith("asked for 8 devices; jax has already started with 1 cpu and 1 CPU.") and "restart Python" in text
    text = python(code, XLA_FLAGS="--xla_force_host_platform_device_count=2").stdout
    assert "with 2 cpu" in text and "XLA_FLAGS sets xla_force_host_platform_device_count" in text
    with pytest.raises(
        ScalebookError, match=r"asked for 1024 devices; jax has already started with 8 cpu and 8 CPU.*lab.devices\(1024\)"
    ):
        lab.devices(1024)


def test_the_environment_flag_is_left_alone():
    done = python("from scalebook import lab; print(len(lab.devices(8)))", XLA_FLAGS="--xla_force_host_platform_device_count=8")
    assert done.stdout.split() == ["8"], done.stderr


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "8", None, [8], np.array([1, 2]), np.float64(8), 1025, 100_000, 10**30])
def test_what_is_no_number_of_devices(n):
    with pytest.raises(ScalebookError, match="whole number of devices"):
        lab.devices(n)


def test_numbers_of_numpy_count():
    assert [d.id for d in lab.devices(np.int64(3))] == [0, 1, 2]
    assert lab.jax_mesh({"X": np.int64(2), "Y": np.int32(4)}).axis_names == ("X", "Y")


def test_a_number_that_is_too_large_does_no_harm():
    code = """
from scalebook import lab
for n in (100_000, 10**30):
    try: lab.devices(n)
    except ValueError as e: print(e)
print(len(lab.devices(8)))
"""
    lines = python(code).stdout.splitlines()
    assert len(lines) == 3 and lines[-1] == "8"
    assert lines[0] == "lab.devices(n) takes a whole number of devices, from 1 to 1,024; found 100000"


@pytest.mark.parametrize(
    "shape", [{"X": 2.0}, {"X": "2"}, {"X": True}, {1: 2}, {"X": 0}, {"X": None}, {"X Y": 2}, {"X": 2, "": 2}]
)
def test_a_mesh_that_the_library_refuses_is_refused_here_too(shape):
    with pytest.raises(MeshError) as ours:
        scalebook.mesh(shape)
    with pytest.raises(MeshError) as said:
        lab.jax_mesh(shape)
    assert str(said.value) == str(ours.value)


def chips(n):
    return [types.SimpleNamespace(platform="tpu", id=i, device_kind="TPU v5 lite") for i in range(n)]


def test_a_machine_with_enough_real_devices_uses_them_and_one_chip_is_not_enough(monkeypatch):
    cpu = jax.devices("cpu")
    for real, n, expected in ((8, 8, "tpu"), (1, 8, "cpu"), (1, 1, "tpu"), (16, 8, "tpu")):
        monkeypatch.setattr(jax, "devices", lambda platform=None, real=real: cpu if platform == "cpu" else chips(real))
        found = lab.devices(n)
        assert {d.platform for d in found} == {expected} and len(found) == (real if expected == "tpu" else n)


def test_no_cpu_backend_to_simulate_on(monkeypatch):
    def devices(platform=None):
        if platform == "cpu":
            raise RuntimeError("Unknown backend cpu")
        return chips(1)

    monkeypatch.setattr(jax, "devices", devices)
    with pytest.raises(ScalebookError, match=r"found 1 tpu and no CPU backend.*append ',cpu'"):
        lab.devices(8)


def test_a_mesh_says_its_axis_types_and_numbers_devices_row_by_row():
    m = lab.jax_mesh({"X": 2, "Y": 4})
    assert m.axis_names == ("X", "Y") and set(m.axis_types) == {AxisType.Auto}
    assert [[d.id for d in row] for row in m.devices] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert set(lab.jax_mesh({"X": 2}, explicit=True).axis_types) == {AxisType.Explicit}
    assert dict(lab.jax_mesh(scalebook.mesh({"data": 2, "model": 2})).shape) == {"data": 2, "model": 2}
    assert dict(lab.jax_mesh(m).shape) == {"X": 2, "Y": 4}
    with pytest.raises(MeshError, match="a mesh is axes and sizes"):
        lab.jax_mesh([2, 4])


def test_without_jax_each_name_that_needs_it_says_what_to_install():
    code = """
import sys
sys.modules["jax"] = None  # what Python finds for a package that is not there
from scalebook import lab
for name in dir(lab):
    try:
        getattr(lab, name)
    except ValueError as e:
        print(type(e).__name__, e)
"""
    lines = python(code).stdout.splitlines()
    text_only = {"collectives_of", "HloCollective", "hlo", "compare", "Comparison", "setup", "Session"}
    assert len(lines) == len(set(dir(lab)) - text_only)
    for line in lines:
        assert line.startswith("MissingExtra scalebook.lab.")
        assert line.endswith('needs the package jax, which is not installed; install it with: pip install "scalebook[lab]"')


def test_every_public_name_is_found_twice_and_others_are_refused():
    for name in dir(lab):
        assert getattr(lab, name) is getattr(lab, name)
    assert callable(lab.devices) and callable(lab.compare) and callable(lab.measure.measure_matmul)
    with pytest.raises(AttributeError, match=r"no attribute 'device'; it has: .*devices"):
        _ = lab.device


def test_importing_the_lab_does_not_import_jax():
    done = python("import sys, scalebook; scalebook.lab; print('jax' in sys.modules, backend := 'numpy' in sys.modules)")
    assert done.stdout.split() == ["False", "False"], done.stderr
    assert backend.SIMULATED == 8
