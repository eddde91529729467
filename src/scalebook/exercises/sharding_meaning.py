"""What the answers to the exercises of Sharded matrix multiplication mean, and the computations that they share with the exercises."""

from __future__ import annotations

from functools import lru_cache

from scalebook.collectives import all_gather, all_reduce, all_to_all, reduce_scatter
from scalebook.errors import ExerciseError, ScalebookError
from scalebook.exercises.answers import MAX_LENGTH
from scalebook.layouts import parse_einsum
from scalebook.meshes import Mesh, mesh
from scalebook.products import Einsum, einsum
from scalebook.resharding import reshard
from scalebook.roofline import Time
from scalebook.units import count, digits, percent, si

LINK, HOP = 45e9, 1e-6  # of a v5e: bytes/s one way on a link, seconds per hop; a test holds them against the catalogue
_LETTERS = (("T", "D"), ("D", "F"), ("T", "F"))
GOOD = (
    "In[T_XY, D] * W[D, F_Y] -> Out[T_X, F_Y]",
    "In[T_XY, D] * W[D_X, F_Y] -> Out[T_X, F_Y]",
    "In[T, D_XY] * W[D, F_X] -> Out[T_Y, F_X]",
)


def pod() -> Mesh:
    """A pod of v5e: two rings of 16."""
    return mesh({"X": 16, "Y": 16}, on="v5e:16x16")


def line() -> Mesh:
    """Eight chips of a v5e slice in a line: the slice is too small for wraparound links."""
    return mesh({"X": 4, "Y": 8}, on="v5e:4x8")


def gather(V: float, axes: str = "X") -> float:
    return float(all_gather(V, pod(), axes).seconds)


def gathered(D: int, F: int, X: int) -> float:
    return float(all_gather(2 * D * F, {"X": X}, "X").bytes)


def gathered_means(D: int, F: int, X: int) -> str:
    return (
        f"Each device ends with {si(2 * D * F, 'B')} and had a piece of {si(2 * D * F / X, 'B')}, so nearly the whole matrix comes in through its links. "
        f"All devices together receive {si(gathered(D, F, X) * X, 'B')}. The number of devices hardly matters once there are more than a few."
    )


def summed(I: int, K: int, X: int, kind: str) -> float:
    collective = all_reduce if kind == "all-reduce" else reduce_scatter
    return float(collective(2 * I * K, {"X": X}, "X").bytes)


def summed_means(I: int, K: int, X: int) -> str:
    return (
        f"An all-reduce is a reduce-scatter, {si(summed(I, K, X, 'reduce-scatter'), 'B')}, followed by an all-gather of the sum, as much again. "
        "If what comes next can work on pieces, leave the result split: half of the traffic is gone. The size of $J$ appears nowhere; "
        "the partial sums are as large as the result."
    )


def ring_means(V: int) -> str:
    both, one = gather(V), float(all_gather(V, line(), "Y").seconds)
    return (
        f"The ring has twice the devices and needs {si(both, 's')}, the line {si(one, 's')}: on a ring everyone receives from both sides all the time, on a "
        "line the device at the end has one neighbour, and everything comes through that link. A ring that loses one link, however many it has, loses half of "
        "its bandwidth."
    )


def turning(X: int, W: float) -> float:
    """The bytes at which an all-gather on a ring of X takes as long for its hops as for its bytes."""
    return X // 2 * HOP * 2 * W * X / (X - 1)


def turning_means(X: int, W: float) -> str:
    at = turning(X, W)
    return (
        f"Far below {si(at, 'B')}, which is {si(at / X, 'B')} on each device, the time hardly depends on the bytes; there it is twice the latency. Collectives of small arrays are best "
        "combined into one, or avoided; those of large ones are best hidden behind arithmetic."
    )


def redeal(I: int, J: int) -> float:
    return float(all_to_all(2 * I * J, pod(), "X").seconds)


def redeal_means(I: int, J: int) -> str:
    V = 2 * I * J
    return (
        f"Gathering everything and dropping most of it would take {si(gather(V), 's')}, {digits(gather(V) / redeal(I, J))} times as long. Each device receives "
        f"only {si(V / 16 * 15 / 16, 'B')}, but messages to distant devices occupy links on their way: what this ring must carry is "
        f"{percent(16 / (4 * 15), 3)} of a gather's traffic, and on larger rings nearly a quarter."
    )


def both_means(V: int) -> str:
    return (
        f"Over one ring it is {si(gather(V), 's')}: sixteen times the devices, and half of the time, since twice the links work. "
        "The array is cut in two parts; one goes round the first axis while the other goes round the second, then they change places."
    )


def which_means(few: int, many: int, J: int, K: int, X: int) -> str:
    e = einsum("A[I_X, J] * B[J, K_X] -> C[I_X, K]", {"I": few, "J": J, "K": K}, {"X": X})
    gather = float(all_gather(2 * J * K, {"X": X}, "X").bytes)
    return (
        f"With few rows the plan is {' and '.join(f'{c.kind} of {c.array}' for c in e.collectives)}, {si(e.bytes, 'B')} received in place of {si(gather, 'B')} for "
        "gathering B. The rule that one operand is gathered says nothing about which; sizes do."
    )


def backward_means(T: int, D: int, F: int, X: int) -> str:
    e = einsum("In[T_X, D] * W[D_X, F] -> Out[T_X, F]", {"T": T, "D": D, "F": F}, {"X": X})
    whole = e.bytes + sum(d.bytes for d in e.backward())
    return (
        "A gather's transpose is a reduce-scatter: what was copied to many is, backwards, summed from many. The gradient of In needs the whole of W "
        f"once more. Forward and backward together, each device receives {si(whole, 'B')}, about three times the weight, whatever the number of tokens."
    )


@lru_cache(64)
def _layer(T: int, D: int, F: int) -> Einsum:
    return einsum("In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]", {"T": T, "D": D, "F": F}, pod())


def _gathers_weights(T: int, D: int, F: int) -> bool:
    return any(c.array == "W" for c in _layer(T, D, F).collectives)


def stay(T: float, D: int, F: int) -> tuple[Time, ...]:
    """The weight stays: re-deal In over both axes, gather it over Y, scatter H over X."""
    In, H, m = 2 * T * D, 2 * T * F, pod()
    return all_to_all(In, m, "XY"), all_gather(In / 16, m, "Y"), reduce_scatter(H / 16, m, "X")


def move(T: float, D: int, F: int) -> tuple[Time, ...]:
    """The weight moves: gather In over Y and W over X."""
    return all_gather(2 * T * D / 16, pod(), "Y"), all_gather(2 * D * F / 16, pod(), "X")


def meeting(D: int, F: int, *, hops: bool = True, together: bool = False) -> float:
    """The tokens at which both plans take equally long; without the latency of hops, or with the two gathers at the same time."""

    def seconds(t: Time) -> float:
        return float(t.parts["comms"] or 0) - (0 if hops else float(t.latency or 0))

    def later(T: float) -> bool:
        moving = [seconds(t) for t in move(T, D, F)]
        return sum(map(seconds, stay(T, D, F))) > (max(moving) if together else sum(moving))

    low, high = 1.0, 2.0**24
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (low, mid) if later(mid) else (mid, high)
    return high


def turn(D: int, F: int) -> int:
    """The least multiple of 256 tokens at which sb.einsum gathers W; the plans change once, so bisection finds it."""
    low, high = 0, 2**12
    while high - low > 1:
        mid = (low + high) // 2
        low, high = (low, mid) if _gathers_weights(256 * mid, D, F) else (mid, high)
    return 256 * high


def turn_means(D: int, F: int) -> str:
    T = turn(D, F)
    before, after = _layer(T - 256, D, F), _layer(T, D, F)
    return (
        f"At {count(T - 256)} tokens the plan is {', '.join(f'{c.kind} of {c.array}' for c in before.collectives)}; at {count(T)} it is "
        f"{', '.join(f'{c.kind} of {c.array}' for c in after.collectives)}. Partial sums of H grow with $T$, the weight with $D$, both are split over $Y$: they would be equal at "
        f"$T = D$, whatever $F$ is. That In is re-dealt first brings the turn down to {count(round(meeting(D, F, hops=False)))} by its bytes, and to "
        f"{count(round(meeting(D, F)))} with its hops; sizes that all {count(pod().devices)} chips can split are multiples of {count(pod().devices)}."
    )


def placed(answer: object, T: int, D: int, F: int) -> Einsum:
    if not isinstance(answer, str):
        raise ExerciseError(f"the answer is of type {type(answer).__name__}; write the product as text, with its layouts")
    if len(answer) > MAX_LENGTH:
        raise ExerciseError(f"the answer has {len(answer):,} characters; write one product with its layouts")
    try:
        arrays = parse_einsum(answer, pod())
        if tuple(s.letters for s in arrays) != _LETTERS:
            raise ExerciseError(
                f"the product is In[T, D] * W[D, F] -> Out[T, F], with subscripts of your choice; found {answer!r}"
            )
        if any(s.pending for s in arrays):
            raise ExerciseError("no sum is left pending here: neither in the operands nor in the result")
        return einsum(answer, {"T": T, "D": D, "F": F}, pod())
    except ScalebookError as e:
        raise ExerciseError(str(e)) from None


def placing_means(T: int, D: int, F: int, limit: int, share: float) -> str:
    e = placed(GOOD[0], T, D, F)
    again = reshard(f"{e.C} -> Out[T_XY, F]", {"T": T, "F": F}, pod())
    return (
        f"The best known gathers {', '.join(c.array for c in e.collectives)} alone and takes {si(e.time.lower, 's')}, for {si(e.time.math, 's')} of arithmetic. It spends memory on copies of the "
        "weight to spare its gather: whatever may rest in copies need not be moved. Were the limit on memory lower, W would have to be gathered as well. "
        f"If the next layer wants its input split as In is here, Out has to be re-dealt: {', '.join(c.kind for c in again.collectives)} in {si(again.time.comms, 's')}, "
        "which a layout of the next weight that takes Out as it lies would spare."
    )
