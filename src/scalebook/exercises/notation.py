"""The exercises of the chapter Notation: right answers, known wrong ones and what they betray; statements stand in the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import permutations

from scalebook.errors import ExerciseError, SizeError
from scalebook.exercises.arrays import ShardedArray
from scalebook.exercises.composed import Parts
from scalebook.exercises.grading import Choice, Exercise, Number, Wrong
from scalebook.hardware import chip as chip_of
from scalebook.layouts import Sharding, sharding
from scalebook.products import Einsum, einsum
from scalebook.units import binary, count, digits, percent, si

# ---- blocks and copies --------------------------------------------------------------------------------------------------


def _block(text: str, D: int, F: int, X: int, Y: int, Z: int) -> int:
    """Bytes of one device's block of W in bf16."""
    return int(sharding(text).bytes_per_device({"D": D, "F": F}, {"X": X, "Y": Y, "Z": Z}, "bf16"))


def _rows(text: str, dimension: int, D: int, F: int, X: int, Y: int, Z: int) -> int:
    return int(sharding(text).local_shape({"D": D, "F": F}, {"X": X, "Y": Y, "Z": Z})[dimension])


def _part(dimension: int, *wrong: tuple[str, str]) -> Number:
    """The local size of D or F, with layouts that are taken for W[D_Z, F_X] and what to say to them."""
    return Number(
        lambda **given: _rows("W[D_Z, F_X]", dimension, **given),
        tolerance=1e-6,
        wrong=tuple(Wrong(lambda text=text, **given: _rows(text, dimension, **given), diagnosis) for text, diagnosis in wrong),
    )


def _local_block_means(D: int, F: int, X: int, Y: int, Z: int) -> str:
    held = _block("W[D_Z, F_X]", D, F, X, Y, Z)
    return (
        f"The whole matrix has {binary(2 * D * F)}; split into {X * Z} blocks, {binary(held)} of it are on each device. The {X * Y * Z} devices "
        f"together hold {binary(held * X * Y * Z)}, since each block exists {Y} times along $Y$. Splitting over $Y$ as well would free that memory, "
        "and the products with W would then have to gather it."
    )


_COPIES = {"A": "A[I_X, J]", "B": "B[J, K]", "C": "C[I_X, K_Y]{U_Z}"}


def _copies(array: str, *wrong: tuple[str, str]) -> Number:
    """The number of devices with the same block, with expressions in the sizes of the axes that are taken for it."""

    def wrong_value(axes: str) -> Wrong:
        return Wrong(lambda **mesh: math.prod(mesh[a] for a in axes), dict(wrong)[axes])

    return Number(
        lambda **mesh: sharding(_COPIES[array]).replicas(mesh), tolerance=1e-6, wrong=tuple(wrong_value(a) for a, _ in wrong)
    )


def _copies_mean(X: int, Y: int, Z: int) -> str:
    whole = sharding(_COPIES["B"]).replicas({"X": X, "Y": Y, "Z": Z})
    return (
        f"Copies are what the notation does not mention: nothing in B, so all {count(whole)} devices have the whole of it. A pending sum is the opposite of "
        "a copy: the devices along $Z$ hold arrays of the same shape with different numbers, none of which is C before they are added up."
    )


# ---- an array from what a device holds ----------------------------------------------------------------------------------


def _wanted(I: int, J: int, X: int, Y: int, x: int, y: int, first: int, last: int) -> str:
    """The one array of which no device has a copy and the device at (x, y) holds rows first to last, found by trying all."""
    mesh, sizes = {"X": X, "Y": Y}, {"I": I, "J": J}
    for axes in permutations(mesh):
        for cut in range(len(axes) + 1):
            tried = Sharding("A", ("I", "J"), (axes[:cut], axes[cut:]))
            try:
                held = tried.slices(sizes, mesh)[x, y]
            except SizeError:  # it does not divide
                continue
            if tried.replicas(mesh) == 1 and held == ((first, last + 1), (0, J)):
                return str(tried)
    raise ExerciseError(f"no array A[I, J] without copies gives the device at X = {x}, Y = {y} the rows {first} to {last}")


def _write_it_means(I: int, J: int, X: int, Y: int, x: int, y: int, first: int, last: int) -> str:
    mesh, sizes = {"X": X, "Y": Y}, {"I": I, "J": J}
    other = sharding("A[I_XY, J]").slices(sizes, mesh)[x, y][0]
    return (
        f"The strips have {last - first + 1} rows, and the one that starts at row {first} is number {first // (last - first + 1)}, which is "
        rf"$y \cdot |X| + x$: $Y$ is the outer axis. $I_{{XY}}$ makes the same strips and deals them out in another order, rows {other[0]} to {other[1] - 1} "
        "to this device; going from one to the other moves nearly every block, which is a permute."
    )


# ---- products -----------------------------------------------------------------------------------------------------------

_SPECS = {
    "up": "In[B_X, D] * W_in[D, F_Y] -> H[B_X, F_Y]",
    "stored": "In[B_X, D] * W_in[D_X, F_Y] -> H[B_X, F_Y]",
    "down": "H[B_X, F_Y] * W_out[F_Y, D] -> Out[B_X, D]",
    "scattered": "H[B_X, F_Y] * W_out[F_Y, D] -> Out[B_X, D_Y]",
}
_ANSWERS = {
    "none": ("no", "nothing", "no communication", "no collective"),
    "all-gather": ("gather",),
    "reduce-scatter": (),
    "all-reduce": ("reduce", "psum"),
    "all-to-all": (),
    "permute": ("collective-permute", "ppermute"),
}


def _product(name: str, B: int, D: int, F: int, X: int, Y: int, Z: int) -> Einsum:
    return einsum(_SPECS[name], {"B": B, "D": D, "F": F}, {"X": X, "Y": Y, "Z": Z})


def _collective(name: str, wrong: Mapping[str, str]) -> Choice:
    def spec(**given: int) -> str:
        found = [c.kind for c in _product(name, **given).collectives]
        if len(found) > 1:
            raise ExerciseError(f"with these sizes {_SPECS[name]} takes more than one collective: {', '.join(found)}")
        return found[0] if found else "none"

    return Choice(spec, options=lambda: _ANSWERS, wrong=wrong)


def _collectives_mean(B: int, D: int, F: int, X: int, Y: int, Z: int) -> str:
    down, scattered, stored = (_product(n, B, D, F, X, Y, Z).bytes for n in ("down", "scattered", "stored"))
    return (
        "A summed dimension that is whole on each device costs nothing. One that is split in both operands leaves a sum to finish: "
        f"{si(down, 'B')} received per device if everyone needs the result, {si(scattered, 'B')} if each keeps a piece. One that is split only in a stored "
        f"weight has to be gathered first, {si(stored, 'B')} here. $Z$ appears nowhere: along it all devices do the same work."
    )


# ---- links --------------------------------------------------------------------------------------------------------------


def _one_way(which: str, *wrong: Wrong) -> Number:
    return Number(lambda **given: given[which] / given[f"{which}_links"] / 2, "B/s", tolerance=0.005, wrong=wrong)


def _link(which: str) -> Number:
    return _one_way(
        which,
        Wrong(lambda **given: given[which], "That is all links and both directions: divide by both."),
        Wrong(lambda **given: given[which] / given[f"{which}_links"], "That is one link, but both directions added up."),
        Wrong(lambda **given: given[which] / 2, "That is one direction, but of all links together."),
        Wrong(lambda **given: given[which] / given[f"{which}_links"] / 16,
              "The data sheet counts bytes (B), not bits (b): there is no 8 to divide by."),
        Wrong(lambda **given: given[which] / given[f"{which}_links"] / 2 * chip_of(which).link_efficiency,
              "That is what programs get of it: the question asks for the rate on the wire."),
    )  # fmt: skip


def _link_means(**given: float) -> str:
    v5p, h100 = (chip_of(c) for c in ("v5p", "h100"))
    each, many = (given[c] / given[f"{c}_links"] / 2 for c in ("v5p", "h100"))
    return (
        f"A v5p has few fast links, {si(each, 'B/s')} one way, an H100 many slow ones, {si(many, 'B/s')}. Which of these numbers counts depends on the wiring: "
        "a v5p's links lead to different neighbours, an H100's all to switches, so any partner can have all "
        f"{digits(given['h100_links'])} of them, {si(given['h100'] / 2, 'B/s')} one way. Programs get about {percent(v5p.link_efficiency or 0)} and "
        f"{percent(h100.link_efficiency or 0)} of them."
    )


# ---- all of them, easy first --------------------------------------------------------------------------------------------

_MESH = {"X": 4, "Y": 8, "Z": 16}

# fmt: off
EXERCISES: tuple[Exercise, ...] = (
    Exercise("notation/local-block", "What one device holds",
        Parts({
            "D": _part(0,
                ("W[D, F]", "D carries a subscript: it is split."),
                ("W[D_X, F]", "D is split over Z; X splits F."),
                ("W[D_Y, F]", "D is split over Z; Y is in no subscript and splits nothing."),
            ),
            "F": _part(1,
                ("W[D, F]", "F carries a subscript: it is split."),
                ("W[D, F_Z]", "F is split over X; Z splits D."),
                ("W[D, F_Y]", "F is split over X; Y is in no subscript and splits nothing."),
            ),
            "bytes": Number(lambda **given: _block("W[D_Z, F_X]", **given), "B", tolerance=0.002, wrong=(
                    Wrong(lambda **given: _block("W[D_Z, F_X]", **given) / 2, "A bf16 number has two bytes."),
                    Wrong(lambda **given: _block("W[D_Z, F_X]", **given) * 2, "That is for four bytes a number: bf16 has two."),
                    Wrong(lambda **given: _block("W[D_ZY, F_X]", **given),
                          "That divides by all devices; along Y, which is in no subscript, they hold copies."),
                    Wrong(lambda **given: _block("W[D, F]", **given), "That is the whole of W."),
                    Wrong(lambda **given: _block("W[D_Z, F]", **given), "F is split as well, over X."),
                    Wrong(lambda **given: _block("W[D, F_X]", **given), "D is split as well, over Z."),
                ),
            ),
        }),
        hint="Divide each dimension by the size of the axis in its subscript; then multiply, and count two bytes for each number.",
        code="""
mesh = {"X": $X, "Y": $Y, "Z": $Z}
W, sizes = sb.sharding("W[D_Z, F_X]"), {"D": $D, "F": $F}
D, F = W.local_shape(sizes, mesh)
nbytes = W.bytes_per_device(sizes, mesh, "bf16")
answer = {"D": D, "F": F, "bytes": nbytes}
""",
        given={"D": 8192, "F": 28672, **_MESH},
        why=_local_block_means,
    ),
    Exercise("notation/copies", "How many have the same?",
        Parts({
            "A": _copies("A",
                ("X", "That is the number of different blocks; the question is how many devices hold each."),
                ("Y", "Along Z there are copies, too."),
                ("Z", "Along Y there are copies, too."),
                ("XYZ", "X splits the rows: not all devices hold the same."),
            ),
            "B": _copies("B",
                ("", "Without a subscript an array is not on one device: every device holds all of it."),
                ("YZ", "X does not split B either: all three axes are axes of copies."),
            ),
            "C": _copies("C",
                ("Z", "Along Z each device holds another part of a sum: same shape, different numbers, so no copies."),
                ("XY", "That is the number of different blocks, or of parts of each sum: how many devices hold the same?"),
                ("XYZ", "X and Y split C, and along Z stand different parts of a sum."),
            ),
        }),
        hint="Devices that differ only in axes without a subscript hold the same. Is the axis of a pending sum such an axis?",
        code="""
mesh, answer = {"X": $X, "Y": $Y, "Z": $Z}, {}
for text in ("A[I_X, J]", "B[J, K]", "C[I_X, K_Y]{U_Z}"):
    array = sb.sharding(text)
    answer[array.array] = array.replicas(mesh)
""",
        given=_MESH,
        why=_copies_mean,
    ),
    Exercise("notation/write-it", "From the blocks to the notation",
        ShardedArray(
            _wanted,
            mesh=lambda X, Y, **_: {"X": X, "Y": Y},
            sizes=lambda I, J, **_: {"I": I, "J": J},
            device=lambda x, y, **_: (x, y),
            wrong=(
                Wrong(lambda **_: "A[I_XY, J]", "The right strips, dealt out in the other order: the first axis of a subscript is the outer one."),
                Wrong(lambda **_: "A[I_X, J]", "Too few strips: along Y, the devices would hold copies."),
                Wrong(lambda **_: "A[I_Y, J]", "Too few strips: along X, the devices would hold copies."),
                Wrong(lambda **_: "A[I_X, J_Y]", "The device has its rows with all their columns: J is not split."),
                Wrong(lambda **_: "A[I_Y, J_X]", "The device has its rows with all their columns: J is not split."),
                Wrong(lambda **_: "A[I, J_XY]", "That splits the columns; the device has some rows and all columns."),
                Wrong(lambda **_: "A[I, J_YX]", "That splits the columns; the device has some rows and all columns."),
                Wrong(lambda **_: "A[I, J]", "Without subscripts, every device holds everything."),
            ),
        ),
        hint="How many strips are there, and which number has this one, counted from zero? Write the number with x and y.",
        code="""
I, J, mesh = $I, $J, {"X": $X, "Y": $Y}
for answer in ("A[I_XY, J]", "A[I_YX, J]"):
    held = sb.sharding(answer).slices({"I": I, "J": J}, mesh)
    if held[$x, $y] == (($first, $last + 1), (0, J)):
        break
""",
        given={"I": 16, "J": 8, "X": 2, "Y": 4, "x": 1, "y": 2, "first": 10, "last": 11},
        why=_write_it_means,
    ),
    Exercise("notation/which-collective", "Does it have to talk?",
        Parts({
            "up": _collective("up", {
                "all-gather": "Each device has all of D, of In and of W_in: what would it gather?",
                "all-reduce": "The summed dimension D is not split: no device has only a part of a sum.",
                "reduce-scatter": "The summed dimension D is not split: no device has only a part of a sum.",
            }),
            "stored": _collective("stored", {
                "none": "D of W_in is split over X, but D of In is whole, and X is taken by its rows: the pieces of W_in do not meet all of In's columns.",
                "all-reduce": "Along X the rows of In differ, and parts of sums for different rows do not add up to anything.",
                "reduce-scatter": "Along X the rows of In differ, and parts of sums for different rows do not add up to anything.",
            }),
            "down": _collective("down", {
                "none": "The summed dimension F is split over Y: each device has a part of every sum.",
                "reduce-scatter": "That would leave D split over Y; here every device along Y wants all of D.",
                "all-gather": "Gathering H and W_out over Y would do, but the parts of the sum are smaller, and the work would be repeated.",
            }),
            "scattered": _collective("scattered", {
                "none": "The summed dimension F is split over Y: each device has a part of every sum.",
                "all-reduce": "It would do, but D stays split over Y: each device needs only its piece of the sum, at half of the traffic.",
                "all-gather": "Gathering H over Y, and with it moving W_out, would do, but the parts of the sum are smaller.",
            }),
        }),
        hint="Look at the summed dimension: whole in both operands, split alike in both, or split in one of them? Then at the result.",
        code="""
mesh = {"X": $X, "Y": $Y, "Z": $Z}
sizes, answer = {"B": $B, "D": $D, "F": $F}, {}
for name, spec in {
    "up": "In[B_X, D] * W_in[D, F_Y] -> H[B_X, F_Y]",
    "stored": "In[B_X, D] * W_in[D_X, F_Y] -> H[B_X, F_Y]",
    "down": "H[B_X, F_Y] * W_out[F_Y, D] -> Out[B_X, D]",
    "scattered": "H[B_X, F_Y] * W_out[F_Y, D] -> Out[B_X, D_Y]",
}.items():
    moves = sb.einsum(spec, sizes, mesh).collectives
    answer[name] = moves[0].kind if moves else "none"
""",
        given={"B": 65536, "D": 8192, "F": 28672, **_MESH},
        why=_collectives_mean,
    ),
    Exercise("notation/one-link", "Reading a data sheet",
        Parts({"v5p": _link("v5p"), "h100": _link("h100")}),
        hint="Both data sheets add up all links, and for each link both directions.",
        code="""
answer = {
    "v5p": $v5p / $v5p_links / 2,
    "h100": $h100 / $h100_links / 2,
}
""",
        given={"v5p": 1.2e12, "v5p_links": 6, "h100": 900e9, "h100_links": 18},
        why=_link_means,
    ),
)
# fmt: on
