"""What a notebook's first cell asks: whether jax can do what the book's programs need, and which devices they will run on."""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass

from scalebook.errors import ScalebookError, missing_extra

OLDEST = (0, 8)  # of jax: the first in which every program of the book was seen to run (0.7 lacks jax.set_mesh)


@dataclass(frozen=True)
class Session:
    """The version of jax, the kind of the device that single-device work runs on and how many there are, and those for meshes.

    >>> Session("0.10.2", "TPU v5 lite", 1, 8, True)
    jax 0.10.2. What takes one device runs on the TPU v5 lite; what takes 8, on 8 devices simulated on the CPU.
    """

    jax: str
    kind: str
    real: int
    devices: int
    simulated: bool

    def __str__(self) -> str:
        alone = f"the {self.kind}" if self.real == 1 else f"one of {self.real} × {self.kind}"
        together = f"{self.devices} devices simulated on the CPU" if self.simulated else f"{self.devices} of these"
        return f"jax {self.jax}. What takes one device runs on {alone}; what takes {self.devices}, on {together}."

    __repr__ = __str__


def setup(n: int = 8) -> Session:
    """Settles on which devices this session's programs run, before anything else uses jax: call it first.

    >>> setup().devices
    8

    A TPU or GPU does what takes one device; n simulated CPU devices stand in wherever there are fewer than n real ones. Nothing is
    installed or replaced. Raises MissingExtra without jax and what it needs, and ScalebookError when it is too old or has already started with fewer devices.
    """
    try:
        found = importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        raise missing_extra("jax", "lab", "scalebook.lab.setup") from None
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if numbers < OLDEST:
        raise ScalebookError(
            f"the book's programs need jax {'.'.join(map(str, OLDEST))} or newer; found jax {found}. It is not replaced from here, since it has to "
            "fit this machine's drivers: choose a newer runtime (on Colab: Runtime, Change runtime type), or run pip install --upgrade jax, "
            "then restart Python"
        )
    try:
        from scalebook.lab.backend import devices
    except ModuleNotFoundError as error:  # jax without jaxlib names no module
        package = (error.name or "jaxlib").partition(".")[0]
        if package == "scalebook":
            raise
        raise missing_extra(package, "lab", "scalebook.lab.setup") from None

    together = devices(n)
    alone = devices(1)
    simulated = together[0].platform == "cpu"
    cpu = alone[0].platform == "cpu"
    return Session(found, "CPU" if cpu else str(alone[0].device_kind), 1 if cpu else len(alone), n, simulated)
