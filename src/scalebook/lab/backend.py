"""Devices to try things on: real ones if the machine has enough, else simulated ones on the CPU."""

from __future__ import annotations

import os
from math import prod
from typing import Any, cast

import jax
import numpy as np
from jax.sharding import AxisType

from scalebook.errors import ScalebookError, shown
from scalebook.lab.groups import shape_of
from scalebook.units import as_number, is_array

MOST = 1024  # each simulated device has its own threads
SIMULATED = 8  # as many as the book's meshes need, whatever number is asked for first


def devices(n: int = SIMULATED) -> list[jax.Device]:
    """All real devices if the machine has at least n, else n simulated CPU devices (also beside a single TPU or GPU).

    Must be called before anything else uses jax: the number of simulated devices is settled when jax starts.

    >>> len(devices(8))
    8

    Raises ScalebookError when jax has already started with fewer, and beyond 1,024: more would take jax minutes to start.
    """
    number = None if is_array(n) else as_number(n)
    if not isinstance(number, int) or not 1 <= number <= MOST:
        raise ScalebookError(f"lab.devices(n) takes a whole number of devices, from 1 to {MOST:,}; found {shown(n)}")
    n = number
    _prepare(max(n, SIMULATED))
    real = jax.devices()
    if real[0].platform != "cpu" and len(real) >= n:
        return list(real)
    try:
        simulated = jax.devices("cpu")
    except RuntimeError as error:
        raise ScalebookError(
            f"asked for {n} devices; found {len(real)} {real[0].platform} and no CPU backend to simulate them on ({error}). "
            "jax_platforms must include cpu: unset JAX_PLATFORMS, or append ',cpu' to it, and restart Python"
        ) from None
    if len(simulated) < n:
        raise ScalebookError(
            f"asked for {n} devices; jax has already started with {len(real)} {real[0].platform} and {len(simulated)} CPU. "
            f"The number of simulated devices is settled when jax starts: restart Python (on Colab: Runtime, Restart session) and call "
            f"lab.devices({n}) before anything else uses jax" + _flag_hint()
        )
    return list(simulated[:n])


def _flag() -> bool:
    return "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")


def _flag_hint() -> str:
    return ". The environment's XLA_FLAGS sets xla_force_host_platform_device_count: remove it or raise it" if _flag() else ""


def _prepare(n: int) -> None:
    """Ask jax for n CPU devices, if it has not started yet."""
    wanted = max(n, cast(int, getattr(jax.config, "jax_num_cpu_devices", 0)))
    platforms = cast("str | None", getattr(jax.config, "jax_platforms", None))
    try:
        if not _flag():
            jax.config.update("jax_num_cpu_devices", wanted)
        if platforms and "cpu" not in platforms.split(","):
            jax.config.update("jax_platforms", f"{platforms},cpu")
    except RuntimeError:
        pass  # jax has started: what it has is what there is


def jax_mesh(mesh: Any, *, explicit: bool = False) -> jax.sharding.Mesh:
    """A jax Mesh of the same axes on `devices`: axes of type Auto (the compiler places arrays), or Explicit.

    >>> dict(jax_mesh({"X": 4, "Y": 2}).shape)
    {'X': 4, 'Y': 2}

    On simulated devices, position in the mesh is the device's number, the last axis running fastest; on real ones jax chooses an
    order that suits the wiring. Raises ScalebookError when there are too few devices.
    """
    shape = shape_of(mesh)
    kinds = (AxisType.Explicit if explicit else AxisType.Auto,) * len(shape)
    count = prod(shape.values())
    have = devices(count)
    if have[0].platform == "cpu" or count < len(have):
        return jax.sharding.Mesh(
            np.array(have[:count], dtype=object).reshape(tuple(shape.values())), tuple(shape), axis_types=kinds
        )
    return jax.make_mesh(tuple(shape.values()), tuple(shape), axis_types=kinds, devices=have)
