"""The exercises of the chapter Sharded matrix multiplication: right answers, known wrong ones and what they betray."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scalebook.collectives import all_gather
from scalebook.errors import ExerciseError
from scalebook.exercises.composed import Criterion, Function, Parts, Score, WrongFunction
from scalebook.exercises.fields import ONE, Field
from scalebook.exercises.grading import Choice, Exercise, Number, Wrong
from scalebook.exercises.sharding_meaning import (
    GOOD,
    HOP,
    LINK,
    backward_means,
    both_means,
    gather,
    gathered,
    gathered_means,
    line,
    meeting,
    placed,
    placing_means,
    redeal,
    redeal_means,
    ring_means,
    summed,
    summed_means,
    turn_means,
    turning,
    turning_means,
    which_means,
)
from scalebook.products import einsum
from scalebook.units import binary, percent, si

_KINDS = {
    "none": ("no", "nothing", "no collective"),
    "all-gather": ("gather",),
    "reduce-scatter": (),
    "all-reduce": ("reduce", "psum"),
    "all-to-all": (),
}


def _which(I: str, wrong: Mapping[str, str]) -> Choice:
    """Which operand is gathered when both are split over one axis, as the cheapest plan has it."""

    def spec(**given: int) -> str:
        sizes = {"I": given[I], "J": given["J"], "K": given["K"]}
        e = einsum("A[I_X, J] * B[J, K_X] -> C[I_X, K]", sizes, {"X": given["X"]})
        return next(c.array for c in e.collectives if c.kind == "all-gather")

    return Choice(spec, options=lambda: {"A": (), "B": ()}, wrong=wrong)


def _timed(hops: int, seconds: Callable[..., float], diagnosis: str) -> tuple[Wrong, Wrong]:
    """A wrong time for the bytes, with its hops and without: the same mistake."""

    def with_hops(**given: float) -> float:
        return hops * HOP + seconds(**given)

    return Wrong(with_hops, diagnosis), Wrong(seconds, f"{diagnosis} And the hops are missing.")


def _backward(which: int, wrong: Mapping[str, str]) -> Choice:
    def spec(T: int, D: int, F: int, X: int) -> str:
        e = einsum("In[T_X, D] * W[D_X, F] -> Out[T_X, F]", {"T": T, "D": D, "F": F}, {"X": X})
        found = [c.kind for c in e.backward()[which].collectives]
        if len(found) > 1:
            raise ExerciseError(f"with these sizes the gradient takes more than one collective: {', '.join(found)}")
        return found[0] if found else "none"

    return Choice(spec, options=lambda: _KINDS, wrong=wrong)


# ---- an open question -----------------------------------------------------------------------------------------------------


def _placing(answer: object, T: int, D: int, F: int, limit: int, share: float) -> Score:
    e = placed(answer, T, D, F)
    held = {str(s): s.bytes_per_device(e.sizes, e.mesh, "bf16") for s in (e.A, e.B, e.C)}
    time = e.time
    busy = float(time.math / time.lower)
    rows = [(name, binary(n), f"≤ {binary(limit)} {'✓' if n <= limit else '✗'}") for name, n in held.items()]
    rows += [
        ("arithmetic", si(time.math, "s"), ""),
        ("network", si(time.comms, "s"), ""),
        ("arithmetic ÷ longest", percent(busy), f"≥ {percent(share)} {'✓' if busy >= share else '✗'}"),
    ]
    why = [f"{name} is too large to rest on a device: split it over more." for name, n in held.items() if n > limit]
    if busy < share:
        moved = ", ".join(f"{c.kind} of {c.array} ({si(c.seconds, 's')})" for c in e.collectives)
        why.append(f"The network binds: {moved}. Which of these could a different layout spare?")
    message = f"{e.spec.strip()}: " + ("it meets all conditions." if not why else "not yet.")
    return Score(not why, message, value=busy, rows=tuple(rows), diagnosis="\n".join(why))


def _placing_best(T: int, D: int, F: int, limit: int, share: float) -> float:
    return max(_placing(spec, T, D, F, limit, share).value for spec in GOOD)


# ---- all of them, easy first ----------------------------------------------------------------------------------------------

# fmt: off
EXERCISES: tuple[Exercise, ...] = (
    Exercise("sharding/gathered-bytes", "What comes in",
        Number(lambda **g: gathered(**g), "B", tolerance=0.005, wrong=(
                Wrong(lambda D, F, X: 2 * D * F, "That is the whole matrix: each device has its own piece of it already."),
                Wrong(lambda D, F, X: 2 * D * F / X, "That is the piece a device has before; it receives all the others."),
                Wrong(lambda D, F, X: 2 * D * F * (X - 1), "That is what all devices receive together; the question is about one."),
                Wrong(lambda D, F, X: D * F * (X - 1) / X, "A bf16 number has two bytes."),
                Wrong(lambda D, F, X: 4 * D * F * (X - 1) / X, "Twice: that is an all-reduce, or numbers of four bytes."),
            ),
        ),
        hint="How much does a device hold before, and how much afterwards?",
        code="""
D, F, X = $D, $F, $X
after = 2 * D * F                # bf16: two bytes each
before = after / X
answer = after - before
""",
        given={"D": 8192, "F": 28672, "X": 16},
        why=gathered_means,
    ),
    Exercise("sharding/partial-sums", "A sum for all, or a piece for each",
        Parts({
            "whole": Number(lambda I, K, X: summed(I, K, X, "all-reduce"), "B", tolerance=0.005, wrong=(
                    Wrong(lambda I, K, X: summed(I, K, X, "reduce-scatter"),
                          "That leaves each device a piece of the sum; to have all of it, the pieces must be gathered as well."),
                    Wrong(lambda I, K, X: 2 * I * K, "Each device has a part of the sum of that size; count what it receives."),
                    Wrong(lambda I, K, X: 4 * I * K, "Close: of the pieces that make up the array, a device has one already."),
                    Wrong(lambda I, K, X: 2 * I * K * (X - 1), "That is sending whole arrays to everyone; sums can be formed on the way."),
                    Wrong(lambda I, K, X: 4 * I * K / X * (X - 1) / X, "That is two pieces, less their own shares; count all that comes in, term by term."),
                ),
            ),
            "split": Number(lambda I, K, X: summed(I, K, X, "reduce-scatter"), "B", tolerance=0.005, wrong=(
                    Wrong(lambda I, K, X: summed(I, K, X, "all-reduce"), "That is an all-reduce; here each device wants a piece only."),
                    Wrong(lambda I, K, X: 2 * I * K / X, "That is the piece with which a device ends; its terms come from all the others."),
                    Wrong(lambda I, K, X: 2 * I * K / X * (X - 1) / X,
                          "That is the piece at the end, less its own share; a device receives a term of its piece from each of the others."),
                    Wrong(lambda I, K, X: 2 * I * K * (X - 1), "That is sending whole arrays to everyone; a device needs the terms of its piece only."),
                    Wrong(lambda I, K, X: 2 * I * K, "Close: of the terms of its piece, a device has one already."),
                ),
            ),
        }),
        hint="A reduce-scatter is an all-gather run backwards; an all-reduce is a reduce-scatter and then an all-gather.",
        code="""
I, K, X = $I, $K, $X
C = 2 * I * K                    # bytes of the result
answer = {"whole": 2 * C * (X - 1) / X, "split": C * (X - 1) / X}
""",
        given={"I": 4096, "K": 8192, "X": 16},
        why=summed_means,
    ),
    Exercise("sharding/ring-or-line", "A ring or a line?",
        Parts({
            "ring": Number(lambda V: gather(V), "s", tolerance=0.003, wrong=(
                    Wrong(lambda V: V * 15 / 16 / (2 * LINK), "That is the time for the bytes: add the hops."),
                    Wrong(lambda V: 15 * HOP + V * 15 / 16 / (2 * LINK), "Pieces travel both ways round: the farthest is half a ring away."),
                    *_timed(8, lambda V: V * 15 / 16 / LINK, "That uses one direction of the ring; pieces travel both ways round."),
                    *_timed(8, lambda V: V * 15 / 16 / (4 * LINK), "The rate is one way already, and a ring gives a chip two links, not four."),
                    *_timed(8, lambda V: V / (2 * LINK), "Close: each device has a sixteenth already."),
                    *_timed(8, lambda V: V / 16 / LINK, "That is one device's piece; the others' have to come in as well."),
                ),
            ),
            "line": Number(lambda V: float(all_gather(V, line(), "Y").seconds), "s", tolerance=0.003, wrong=(
                    Wrong(lambda V: V * 7 / 8 / LINK, "That is the time for the bytes: add the hops."),
                    Wrong(lambda V: 4 * HOP + V * 7 / 8 / LINK, "On a line there is one way to go: from one end to the other it is seven hops."),
                    Wrong(lambda V: 4 * HOP + V * 7 / 8 / (2 * LINK), "That is a ring of eight; the chip at the end of a line has one neighbour."),
                    *_timed(7, lambda V: V * 7 / 8 / (2 * LINK), "The chip at the end of a line has one neighbour: everything comes through one link."),
                    *_timed(7, lambda V: V / LINK, "Close: each device has an eighth already."),
                    *_timed(7, lambda V: V / 8 / LINK, "That is one device's piece; the others' have to come in as well."),
                ),
            ),
        }),
        hint="Through how many links does the device that is worst off receive? And how far away is the farthest piece?",
        code="""
V, W, hop = $V, 45e9, 1e-6
ring = 16 // 2 * hop + V * 15 / 16 / (2 * W)
line = (8 - 1) * hop + V * 7 / 8 / W
answer = {"ring": ring, "line": line}
""",
        given={"V": 16 * 2**20},
        why=ring_means,
    ),
    Exercise("sharding/turning-point", "Small or large?",
        Number(lambda X, W: turning(X, W), "B", tolerance=0.02, wrong=(
                Wrong(lambda X, W: X // 2 * HOP * 2 * W, "Close: a device has a piece already, so only (k−1)/k of the array comes in."),
                Wrong(lambda X, W: X // 2 * HOP * 2 * W / (X - 1), "That is what one device holds; the question is about the whole array."),
                Wrong(lambda X, W: X // 2 * HOP * W * X / (X - 1), "That is with one direction of the ring only."),
                Wrong(lambda X, W: (X - 1) * HOP * 2 * W * X / (X - 1), "The pieces go both ways round: the farthest is half a ring away."),
                Wrong(lambda X, W: HOP * 2 * W * X / (X - 1), "That is the latency of one hop; the pieces take several, one after the other."),
            ),
        ),
        hint="Set hops · latency equal to V(k−1)/k ÷ 2W, and solve for V.",
        code="""
k, W, hop = $X, $W, 1e-6
answer = k // 2 * hop * 2 * W * k / (k - 1)
""",
        given={"X": 8, "W": 90e9},
        why=turning_means,
    ),
    Exercise("sharding/re-deal", "From rows to columns",
        Number(lambda I, J: redeal(I, J), "s", wrong=(
                Wrong(lambda I, J: 2 * I * J / 4 / (2 * LINK), "That is the time for the bytes: add the hops."),
                *_timed(8, lambda I, J: 2 * I * J * 15 / 16 / (2 * LINK), "That gathers all of A and drops most of it: each device needs a sixteenth only."),
                *_timed(8, lambda I, J: 2 * I * J * 15 / 256 / LINK,
                        "Those are the bytes that arrive, and right on a switch. On a ring, messages pass through the devices between."),
                *_timed(8, lambda I, J: 2 * I * J / 4 / LINK, "That is with one direction only; half of the messages go the other way."),
                *_timed(8, lambda I, J: 2 * I * J * 15 / 256 / (2 * LINK),
                        "Those are the bytes that arrive; the links also carry what is passed on to others."),
            ),
        ),
        hint="How much must cross the middle of the ring, from one half of the devices to the other? Two links lead across.",
        code="""
V, W, hop = 2 * $I * $J, 45e9, 1e-6
answer = 16 // 2 * hop + V / 4 / (2 * W)
""",
        given={"I": 4096, "J": 4096},
        why=redeal_means,
    ),
    Exercise("sharding/two-rings", "Two axes at once",
        Number(lambda V: gather(V, "XY"), "s", tolerance=0.003, wrong=(
                Wrong(lambda V: V * 255 / 256 / (4 * LINK), "That is the time for the bytes: add the hops, along both axes."),
                Wrong(lambda V: 8 * HOP + V * 255 / 256 / (4 * LINK), "Those are the hops of one axis: each part goes round both, one after the other."),
                *_timed(16, lambda V: V * 255 / 256 / (2 * LINK), "That is one axis after the other: the links of each idle while the other works."),
                *_timed(8, lambda V: V * 15 / 16 / (2 * LINK), "That is one ring alone, in which everyone would already have a sixteenth."),
                *_timed(16, lambda V: V * 255 / 256 / LINK, "A chip receives through four links at once."),
                *_timed(16, lambda V: V * 255 / 256 / (8 * LINK), "Twice too fast: four links, and the rate of each is one way already."),
            ),
        ),
        hint="Each chip has four links, and everything it lacks can come in through all of them at the same time.",
        code="""
V, W, hop = $V, 45e9, 1e-6
answer = 2 * 8 * hop + V * 255 / 256 / (4 * W)
""",
        given={"V": 96 * 2**20},
        why=both_means,
    ),
    Exercise("sharding/which-operand", "Both want the same axis",
        Parts({
            "few": _which("few", {"B": "That is the habit. A is small here: move it, and then C, which is small as well."}),
            "many": _which("many", {"A": "A and C are large here; B is small beside them, and gathering it is all that has to be moved."}),
        }),
        hint="Compare the bytes of the two plans: gather B; or gather A, and then bring C from columns to rows.",
        code="""
spec, answer = "A[I_X, J] * B[J, K_X] -> C[I_X, K]", {}
for name, I in {"few": $few, "many": $many}.items():
    sizes = {"I": I, "J": $J, "K": $K}
    for c in sb.einsum(spec, sizes, {"X": $X}).collectives:
        if c.kind == "all-gather":
            answer[name] = c.array
""",
        given={"few": 64, "many": 16384, "J": 4096, "K": 2048, "X": 8},
        why=which_means,
    ),
    Exercise("sharding/backward", "The way back",
        Parts({
            "dIn": _backward(0, {
                "none": "dOut has all of F, and the product needs all of D of W, of which each device has a piece.",
                "reduce-scatter": "The summed dimension F is not split: there are no partial sums.",
                "all-reduce": "The summed dimension F is not split: there are no partial sums.",
            }),
            "dW": _backward(1, {
                "none": "The summed dimension is now T, which is split over X: each device has a part of every sum.",
                "all-gather": "Gathering In and dOut would do, but they are larger than the sums, and every device would do all the work.",
                "all-reduce": "It would do, but dW lies like W, split over X: each device needs its piece of the sum only.",
            }),
        }),
        hint="Write down both products: dIn = dOut · W summed over F, dW = In · dOut summed over T. Which summed dimension is split?",
        code="""
spec = "In[T_X, D] * W[D_X, F] -> Out[T_X, F]"
sizes = {"T": $T, "D": $D, "F": $F}
e, answer = sb.einsum(spec, sizes, {"X": $X}), {}
for name, d in zip(("dIn", "dW"), e.backward()):
    answer[name] = d.collectives[0].kind
""",
        given={"T": 65536, "D": 4096, "F": 16384, "X": 16},
        why=backward_means,
    ),
    Exercise("sharding/my-all-gather", "The all-gather as a function",
        Function(
            "my_all_gather(nbytes, k, bytes_per_s, hop)",
            spec=lambda nbytes, k, bytes_per_s, hop: k // 2 * hop + nbytes * (k - 1) / k / (2 * bytes_per_s),
            cases=((1e9, 16, 45e9, 1e-6), (1e3, 16, 45e9, 1e-6), (5e7, 4, 90e9, 2e-6), (3e6, 5, 45e9, 1e-6), (2**20, 64, 50e9, 1e-7)),
            unit="s",
            wrong=(
                WrongFunction(lambda V, k, W, hop: k // 2 * hop + V * (k - 1) / k / W, "A ring has two directions, and both are used."),
                WrongFunction(lambda V, k, W, hop: k // 2 * hop + V / (2 * W), "A device does not receive its own piece: (k − 1)/k."),
                WrongFunction(lambda V, k, W, hop: (k - 1) * hop + V * (k - 1) / k / (2 * W),
                              "Pieces go both ways round: the farthest travels half of the ring."),
                WrongFunction(lambda V, k, W, hop: (k - 1) * hop + V * (k - 1) / k / W, "That is the line: on a ring pieces arrive from both sides."),
                WrongFunction(lambda V, k, W, hop: -(-k // 2) * hop + V * (k - 1) / k / (2 * W),
                              "With an odd number of devices, the farthest is (k − 1)/2 hops away: round down."),
                WrongFunction(lambda V, k, W, hop: k // 2 * hop + V * (k - 1) / (2 * W),
                              "That is k − 1 whole arrays: nbytes is the gathered array, and each piece is nbytes/k."),
                WrongFunction(lambda V, k, W, hop: V * (k - 1) / k / (2 * W), "For small arrays the hops count: add their latency."),
                WrongFunction(lambda V, k, W, hop: k / 2 * hop + V * (k - 1) / k / (2 * W),
                              "With an odd number of devices, the farthest is (k − 1)/2 hops away: round down."),
                WrongFunction(lambda V, k, W, hop: k // 2 * hop + V / k / (2 * W), "That is one piece; all the others must come in."),
            ),
        ),
        hint="The farthest piece is ⌊k/2⌋ hops away. What comes in, all but a device's own piece, comes through two links.",
        code="""
def my_all_gather(nbytes, k, bytes_per_s, hop):
    latency = k // 2 * hop
    return latency + nbytes * (k - 1) / k / (2 * bytes_per_s)
""",
        why="The same function with one link in place of two, and all the hops, is the line. What a real machine adds is the time to launch the operation, and "
        "protocols that change with the size of the array.",
    ),
    Exercise("sharding/weights-stay", "When to move the weights",
        Number(lambda D, F: meeting(D, F), "tokens", tolerance=0.035, wrong=(
                Wrong(lambda D, F: meeting(D, F, hops=False), "Near: that is where the bytes take equally long. Count the hops of the re-deal as well."),
                Wrong(lambda D, F: meeting(D, F, together=True),
                      "That lets the two gathers run together; here collectives of one plan are counted one after another."),
                Wrong(lambda D, F: F, "F nearly cancels: both the partial sums and the weight have it, split over Y."),
                Wrong(lambda D, F: D / 16, "That splits the weight once more than the sums: both are split over Y alone when they move."),
                Wrong(lambda D, F: 16 * D, "That leaves the weight whole beside split sums: both are split over Y and move over X."),
                Wrong(lambda D, F: D, "Near: when sums and weight are equally large. But In, too, is re-dealt before it is gathered."),
            ),
        ),
        hint="Ask sb.einsum for its plan at several T, and see from which on W is gathered.",
        code="""
spec = "In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]"
mesh = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
for T in range(256, 65536, 256):
    e = sb.einsum(spec, {"T": T, "D": $D, "F": $F}, mesh)
    if any(c.array == "W" for c in e.collectives):
        break
answer = T
""",
        given={"D": 4096, "F": 14336},
        why=turn_means,
    ),
    Exercise("sharding/choose-layouts", "Lay out a layer (open)",
        Criterion(
            'a product with its layouts, such as "In[T_X, D] * W[D, F] -> Out[T_X, F]"',
            asks=(Field(ONE, "Answer", "text", unit="the notation", example="In[T_X, D] * W[D, F] -> Out[T_X, F]", wide=True),),
            judge=_placing,
            best=_placing_best,
        ),
        hint="What rests in copies need not be moved. Which of the three arrays can afford copies, and which one has to be split over both axes?",
        code="""
mesh = sb.mesh({"X": 16, "Y": 16}, on="v5e:16x16")
sizes, found = {"T": $T, "D": $D, "F": $F}, {}
for W in ("W[D, F_Y]", "W[D_X, F_Y]", "W[D_XY, F]"):
    spec = f"In[T_XY, D] * {W} -> Out[T_X, F_Y]"
    if sb.sharding(W).bytes_per_device(sizes, mesh) <= $limit:
        found[spec] = sb.einsum(spec, sizes, mesh).time.lower
answer = min(found, key=found.get)
""",
        given={"T": 65536, "D": 8192, "F": 28672, "limit": 32 * 2**20, "share": 0.65},
        why=placing_means,
    ),
)
# fmt: on
