"""Executes a derived plan on simulated devices, each holding one NumPy block, and says whether every device ends with the right data.

It knows the notation's meaning only: subscripts run major to minor, a pending sum is a full block of one summand on each device.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

Device = tuple[int, ...]
State = dict[Device, np.ndarray]


class Machine:
    """Devices in a grid with named axes."""

    def __init__(self, shape: dict[str, int]) -> None:
        self.shape, self.names = dict(shape), list(shape)
        self.devices = list(itertools.product(*(range(n) for n in shape.values())))

    def rank(self, device: Device, axes: Iterable[str]) -> int:
        """The device's number within its group along the axes, the first axis slowest."""
        out = 0
        for a in axes:
            out = out * self.shape[a] + device[self.names.index(a)]
        return out

    def size(self, axes: Iterable[str]) -> int:
        out = 1
        for a in axes:
            out *= self.shape[a]
        return out

    def group(self, device: Device, axes: tuple[str, ...]) -> list[Device]:
        """The devices that differ from this one along the axes only, in order of rank."""
        members = [d for d in self.devices if all(a in axes or d[i] == device[i] for i, a in enumerate(self.names))]
        return sorted(members, key=lambda d: self.rank(d, axes))

    def block(self, array: np.ndarray, device: Device, dims: tuple[tuple[str, ...], ...]) -> np.ndarray:
        """The part of an array that a device holds."""
        for n, axes in enumerate(dims):
            array = part(array, n, self.rank(device, axes), self.size(axes))
        return array

    def spread(self, array: np.ndarray, sharding: Any, rng: np.random.Generator) -> State:
        """Every device's block; where a sum is pending, random summands that add up to the array."""
        k = self.size(sharding.pending)
        summands = [rng.integers(-4, 5, array.shape) for _ in range(k - 1)]
        summands.append(array - sum(summands, np.zeros_like(array)))
        return {d: self.block(summands[self.rank(d, sharding.pending)], d, sharding.dims) for d in self.devices}

    def faults(self, state: State, array: np.ndarray, sharding: Any) -> list[Device]:
        """Devices that hold something else than the sharding says, replicas included."""
        wrong = []
        for d in self.devices:
            total = sum(state[m] for m in self.group(d, sharding.pending))
            if not np.array_equal(total, self.block(array, d, sharding.dims)):
                wrong.append(d)
        return wrong

    def move(self, state: State, m: Any) -> tuple[State, int]:
        """The blocks after a move, and the largest number of array elements that any device received."""
        letters = m.before.letters
        src, dst = (None if x is None else letters.index(x) for x in (m.src, m.dst))
        out, most = {}, 0
        for d in self.devices:
            group, k, me = self.group(d, m.axes), self.size(m.axes), self.rank(d, m.axes)
            if m.kind == "slice":
                out[d], got = part(state[d], dst, me, k), 0
            elif m.kind == "all-gather":
                out[d] = np.concatenate([state[g] for g in group], axis=src)
                got = out[d].size - state[d].size
            elif m.kind == "all-to-all":
                out[d] = np.concatenate([part(state[g], dst, me, k) for g in group], axis=src)
                got = out[d].size * (k - 1) // k
            elif m.kind == "all-reduce":
                out[d] = np.add.reduce([state[g] for g in group])
                got = -(-2 * out[d].size * (k - 1) // k)
            elif m.kind == "reduce-scatter":
                out[d] = np.add.reduce([part(state[g], dst, me, k) for g in group])
                got = out[d].size * (k - 1)
            elif m.kind == "permute":
                out[d] = state[self.holder(d, m)]
                got = out[d].size
            else:
                raise AssertionError(f"unknown move {m.kind}")
            most = max(most, got)
        if m.kind == "permute":
            sources = [self.holder(d, m) for d in self.devices]
            assert len(set(sources)) == len(sources), "a permute sends each block to one device"
        return out, most

    def holder(self, d: Device, m: Any) -> Device:
        """From which device of its group a device takes its new block in a permute: a one-to-one choice."""
        group = self.group(d, m.axes)

        def place(device: Device, sharding: Any) -> tuple[int, ...]:
            return tuple(self.rank(device, axes) for axes in sharding.dims)

        want = place(d, m.after)
        takers = [g for g in group if place(g, m.after) == want]
        givers = [g for g in group if place(g, m.before) == want]
        assert len(takers) == len(givers), "as many devices want a block as have it"
        return givers[takers.index(d)]


def part(array: np.ndarray, axis: Any, index: int, k: int) -> np.ndarray:
    """Part `index` of k equal parts along an axis."""
    n = array.shape[axis]
    assert n % k == 0, f"{n} is not a multiple of {k}"
    return array[tuple(slice(index * n // k, (index + 1) * n // k) if i == axis else slice(None) for i in range(array.ndim))]


def product(spec_letters: tuple[tuple[str, ...], ...], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The einsum itself, by letters."""
    number = {x: i for i, x in enumerate(dict.fromkeys(itertools.chain(*spec_letters)))}
    A, B, C = ([number[x] for x in letters] for letters in spec_letters)
    return np.asarray(np.einsum(a, A, b, B, C))


def execute(e: Any, seed: int = 0) -> dict[str, Any]:
    """Run a plan: devices that end wrong, and elements received per move, as the moves themselves say and as counted."""
    rng, machine = np.random.default_rng(seed), Machine(dict(e.mesh.shape))
    shards = (e.A, e.B, e.C)
    a, b = (rng.integers(-4, 5, tuple(e.sizes[x] for x in s.letters)) for s in shards[:2])
    letters = tuple(s.letters for s in shards)
    held = {s.array: machine.spread(x, s, rng) for s, x in ((e.A, a), (e.B, b))}
    at = {s.array: s for s in shards[:2]}
    counted = []

    def walk(m: Any) -> None:
        assert (m.before.dims, m.before.pending) == drop(at[m.array], machine), f"{m} does not continue from {at[m.array]}"
        held[m.array], most = machine.move(held[m.array], m)
        at[m.array] = m.after
        counted.append((m, most))

    for m in e.moves:
        if m.array != e.C.array:
            walk(m)
    held[e.C.array] = {d: product(letters, held[e.A.array][d], held[e.B.array][d]) for d in machine.devices}
    at[e.C.array] = e.local[2]
    for m in e.moves:
        if m.array == e.C.array:
            walk(m)
    end = drop(e.C, machine)
    assert drop(at[e.C.array], machine) == end, f"the plan ends in {at[e.C.array]}, not in {e.C}"
    return {"wrong": machine.faults(held[e.C.array], product(letters, a, b), e.C), "counted": counted}


def drop(s: Any, machine: Machine) -> tuple[Any, Any]:
    """Axes of a sharding without those of size 1."""
    dims = tuple(tuple(a for a in d if machine.shape[a] > 1) for d in s.dims)
    return dims, tuple(sorted(a for a in s.pending if machine.shape[a] > 1))
