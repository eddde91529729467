"""The exercises of the chapter Rooflines: right answers, known wrong ones and what they betray; statements stand in the page."""

from __future__ import annotations

from collections.abc import Mapping

from scalebook.exercises import rooflines_meaning as meaning
from scalebook.exercises.composed import Criterion, Function, Parts, WrongFunction
from scalebook.exercises.fields import Field
from scalebook.exercises.grading import Choice, Exercise, Number, Wrong
from scalebook.exercises.proposals import FORMATS, balanced_decoder
from scalebook.hardware import chip as chip_of, chips
from scalebook.roofline import Time, Work, critical_batch, critical_batch_exact, dot_work, matmul_time, matmul_work, rates, ridge
from scalebook.units import itemsize

_BINDS = {
    "math": ("compute", "flops", "math-bound", "compute-bound"),
    "hbm": ("memory", "bandwidth", "hbm-bound", "memory-bound"),
}


def _bias_add(I: int, J: int) -> Work:
    return Work({"math": I * J, "hbm": (2 * I * J + J) * itemsize("bf16")})


def _bound(I: int, J: int, K: int, chip: str) -> Time:
    return matmul_time(I, J, K, chip)


def _half_math(I: int, J: int, K: int, chip: str) -> float:
    return float(_bound(I, J, K, chip).math / 2)


def _binds(chip: str, wrong: Mapping[str, str]) -> Choice:
    return Choice(lambda B, D, F: matmul_time(B, D, F, chip).bound_by, options=lambda: _BINDS, wrong=wrong)


def _batch_on(chip: str, *wrong: Wrong) -> Number:
    return Number(lambda: critical_batch(chip), "rows", wrong=wrong)


def _fp8_on(chip: str, *wrong: Wrong) -> Number:
    return Number(lambda: critical_batch(chip, compute="fp8", weights="fp8"), "rows", wrong=wrong)


def _exact(D: int, F: int, chip: str, bytes_per_row: int) -> float:
    """The batch at which math and HBM balance when each row brings so many bytes of activations."""
    return 2 * D * F / (2 * D * F / ridge(chip) - bytes_per_row)


# ---- all of them, easy first --------------------------------------------------------------------------------------------

# fmt: off
EXERCISES: tuple[Exercise, ...] = (
    Exercise("rooflines/dot-product", "The intensity of a dot product",
        Number(lambda J: dot_work(J).intensity(), "FLOPs/B", wrong=(
                Wrong(lambda J: (2 * J - 1) / (2 * J + 1),
                      "Count bytes, not numbers: a bf16 number has two, and both vectors are read."),
                Wrong(lambda J: J / (2 * (2 * J + 1)),
                      "A multiply and an add are two FLOPs; and a bf16 number has two bytes, not four."),
                Wrong(lambda J: 1 / dot_work(J).intensity(), "That is bytes per FLOP: intensity is FLOPs divided by bytes."),
                Wrong(lambda J: dot_work(J).intensity() / 8, "That is FLOPs per bit: a byte has eight bits."),
            ),
        ),
        hint="Count the multiplies and adds for J numbers, then the bytes of both vectors and of the one number that comes out.",
        code="""
J = $J
flops = 2 * J - 1                # J multiplies, J - 1 adds
nbytes = (J + J + 1) * 2         # both vectors in, one number out
answer = flops / nbytes
""",
        given={"J": 4096},
        why=meaning.dot_product_means,
    ),
    Exercise("rooflines/bias-add", "The intensity of adding a bias",
        Number(lambda I, J: _bias_add(I, J).intensity(), "FLOPs/B", wrong=(
                Wrong(lambda I, J: I * J / (2 * (I * J + J)),
                      "The sum is written as well: one array comes in, one of the same size goes out."),
                Wrong(lambda I, J: I * J / (6 * I * J), "b has J numbers, not I·J: read once, it hardly counts."),
                Wrong(lambda I, J: 1 / _bias_add(I, J).intensity(),
                      "That is bytes per FLOP: intensity is FLOPs divided by bytes."),
                Wrong(lambda I, J: 2 * (I * J + J) / (I * J),
                      "Upside down: that is bytes per FLOP, and without the bytes of Y, which is written."),
                Wrong(lambda I, J: I * J / (2 * I * J + J) * 2,
                      "One add per element is one FLOP, and each number has two bytes."),
            ),
        ),
        hint="One FLOP per element. Which arrays pass through memory, and how large is each?",
        code="""
I, J = $I, $J
flops = I * J                    # one add per element
nbytes = 2 * (I * J + J + I * J) # X and b in, Y out
answer = flops / nbytes
""",
        given={"I": 4096, "J": 8192},
        why=meaning.bias_add_means,
    ),
    Exercise("rooflines/time-bounds", "Between which two times?",
        Parts({
            "lower": Number(lambda I, J, K, chip: _bound(I, J, K, chip).lower, "s", tolerance=0.005, wrong=(
                    Wrong(lambda I, J, K, chip: _bound(I, J, K, chip).hbm,
                          "That is the shorter of the two; the longer one bounds the time."),
                    Wrong(lambda I, J, K, chip: _bound(I, J, K, chip).upper,
                          "That is the sum: the time if nothing overlaps."),
                    Wrong(_half_math, "Half: a multiply-add is two FLOPs; and the peak is that of bf16, not of int8."),
                ),
            ),
            "upper": Number(lambda I, J, K, chip: _bound(I, J, K, chip).upper, "s", tolerance=0.005, wrong=(
                    Wrong(lambda I, J, K, chip: _bound(I, J, K, chip).lower,
                          "That is the longer part alone: the time if everything overlaps."),
                    Wrong(lambda I, J, K, chip: _half_math(I, J, K, chip) + _bound(I, J, K, chip).hbm,
                          "The math is half: a multiply-add is two FLOPs; and the peak is that of bf16, not of int8."),
                    Wrong(lambda I, J, K, chip: _bound(I, J, K, chip).math + 2 * (I * J + J * K) / rates(chip)["hbm"],
                          "The product C is written to memory too."),
                ),
            ),
        }),
        hint="Two times: FLOPs over FLOPs/s, and bytes over bytes/s. The lower bound lets them overlap.",
        code="""
I, J, K = $I, $J, $K
chip = sb.chip($chip)
t_math = 2 * I * J * K / chip.flops_per_s["bf16"]
t_hbm = 2 * (I * J + J * K + I * K) / chip.hbm_bytes_per_s
answer = {"lower": max(t_math, t_hbm), "upper": t_math + t_hbm}
""",
        given={"I": 512, "J": 8192, "K": 8192, "chip": "v5p"},
        why=meaning.time_bounds_mean,
    ),
    Exercise("rooflines/which-binds", "One matmul, three chips",
        Parts({
            "v5e": _binds("v5e", {"math": "B is below the critical batch: reading W takes longer than multiplying with it."}),
            "v5p": _binds("v5p", {"hbm": "v5p computes faster than v5e, but its memory gained even more: its ridge is lower."}),
            "h100": _binds("h100", {"math": "B is below the critical batch here: the ridge of H100 is higher than that of v5e."}),
        }),
        hint="On each chip, compare 2·B·D·F over FLOPs/s with the bytes of In, W and Out over bytes/s.",
        code="""
B, D, F = $B, $D, $F
answer = {}
for name in ("v5e", "v5p", "h100"):
    chip = sb.chip(name)
    t_math = 2 * B * D * F / chip.flops_per_s["bf16"]
    t_hbm = 2 * (B * D + D * F + B * F) / chip.hbm_bytes_per_s
    answer[name] = "math" if t_math > t_hbm else "hbm"
""",
        given={"B": 200, "D": 8192, "F": 8192},
        why=meaning.which_binds_means,
    ),
    Exercise("rooflines/critical-batch", "240 is true of one chip only",
        Parts({
            "v5p": _batch_on("v5p",
                Wrong(lambda: critical_batch("v5e"),
                      "That is the critical batch of v5e, the 240 that people quote: take the rates of v5p."),
                Wrong(lambda: critical_batch("v5p") * 2,
                      "Twice: that is with the int8 peak, or with a multiply-add counted as one FLOP."),
                Wrong(lambda: critical_batch("v5p") / 2,
                      "Half: a bf16 weight has two bytes, which cancel the two FLOPs of a multiply-add."),
                Wrong(lambda: 1 / critical_batch("v5p"), "Upside down: FLOPs/s ÷ bytes/s."),
            ),
            "h100": _batch_on("h100",
                Wrong(lambda: critical_batch("v5e"),
                      "That is the critical batch of v5e, the 240 that people quote: take the rates of H100."),
                Wrong(lambda: critical_batch("h100") * 2,
                      "Twice: the data sheet's larger figure is for fp8, or for bf16 with half of the weights zero."),
                Wrong(lambda: critical_batch("h100") / 2,
                      "Half: a bf16 weight has two bytes, which cancel the two FLOPs of a multiply-add."),
                Wrong(lambda: 1 / critical_batch("h100"), "Upside down: FLOPs/s ÷ bytes/s."),
            ),
        }),
        hint="Set 2·B·D·F over FLOPs/s equal to 2·D·F over bytes/s, and solve for B: D and F drop out.",
        code="""
answer = {}
for name in ("v5p", "h100"):
    chip = sb.chip(name)
    answer[name] = chip.flops_per_s["bf16"] / chip.hbm_bytes_per_s
""",
        why=meaning.critical_batch_means,
    ),
    Exercise("rooflines/int8-weights", "Weights in int8",
        Parts({
            "bf16": Number(lambda chip: critical_batch(chip, weights="int8"), "rows", wrong=(
                    Wrong(lambda chip: critical_batch(chip),
                          "The weights now have one byte each: reading them takes half as long."),
                    Wrong(lambda chip: critical_batch(chip) * 2,
                          "Fewer bytes to read need fewer rows to hide them, not more."),
                    Wrong(lambda chip: critical_batch(chip, weights="int4"),
                          "That is for half a byte per weight, or counts the saving twice."),
                ),
            ),
            "int8": Number(lambda chip: critical_batch(chip, compute="int8", weights="int8"), "rows", wrong=(
                    Wrong(lambda chip: critical_batch(chip, weights="int8"),
                          "The matrix unit is faster in int8 than in bf16: use the int8 rate."),
                    Wrong(lambda chip: critical_batch(chip, compute="int8"),
                          "The int8 rate is right, but the weights have one byte each, not two."),
                    Wrong(lambda chip: critical_batch(chip, weights="int4"),
                          "The bytes halve and the rate doubles: which of the two moves B up?"),
                ),
            ),
        }),
        hint="B = (FLOPs/s ÷ bytes/s) · (bytes per weight) ÷ 2. Which of the three change in each case?",
        code="""
chip = sb.chip($chip)
bf16, int8 = chip.flops_per_s["bf16"], chip.flops_per_s["int8"]
answer = {
    "bf16": bf16 / chip.hbm_bytes_per_s * 1 / 2,
    "int8": int8 / chip.hbm_bytes_per_s * 1 / 2,
}
""",
        given={"chip": "v5e"},
        why=meaning.int8_weights_mean,
    ),
    Exercise("rooflines/fp8", "Everything in fp8",
        Parts({
            "v5p": _fp8_on("v5p",
                Wrong(lambda: critical_batch("v5p"),
                      "v5p multiplies fp8 no faster than bf16: fp8 saves bytes there, not time."),
                Wrong(lambda: critical_batch("v5p") * 2,
                      "An fp8 weight has one byte, and v5p multiplies fp8 no faster than bf16."),
            ),
            "tpu7x": _fp8_on("tpu7x",
                Wrong(lambda: critical_batch("tpu7x", weights="fp8"), "Unlike v5p, TPU7x multiplies fp8 faster than bf16."),
                Wrong(lambda: critical_batch("tpu7x", compute="fp8"),
                      "The fp8 rate is right, but an fp8 weight has one byte, not two."),
            ),
            "h100": _fp8_on("h100",
                Wrong(lambda: critical_batch("h100", weights="fp8"),
                      "H100 multiplies fp8 faster than bf16: use the fp8 rate."),
                Wrong(lambda: critical_batch("h100", compute="fp8"),
                      "Twice: an fp8 weight has one byte; or the rate is the data sheet's with half of the weights zero."),
            ),
        }),
        hint="Look up each chip's fp8 rate beside its bf16 rate: on one of the three they are the same.",
        code="""
answer = {}
for name in ("v5p", "tpu7x", "h100"):
    chip = sb.chip(name)
    answer[name] = chip.flops_per_s["fp8"] / chip.hbm_bytes_per_s * 1 / 2
""",
        why=meaning.fp8_means,
    ),
    Exercise("rooflines/exact-critical-batch", "Counting the activations",
        Number(lambda D, F, chip: critical_batch_exact(D, F, chip), "rows", tolerance=0.005, wrong=(
                Wrong(lambda D, F, chip: critical_batch(chip), "That neglects In and Out, which also pass through memory."),
                Wrong(lambda D, F, chip: _exact(D, F, chip, 2 * D), "Out[B, F] is written as well."),
                Wrong(lambda D, F, chip: _exact(D, F, chip, 2 * F), "In[B, D] is read as well."),
                Wrong(lambda D, F, chip: _exact(D, F, chip, D + F), "Activations in bf16 have two bytes each."),
                Wrong(lambda D, F, chip: _exact(D, F, chip, -2 * (D + F)),
                      "A sign slipped: the traffic of the activations takes time away from W, so it needs more rows, not fewer."),
                Wrong(lambda D, F, chip: 2 * critical_batch(chip),
                      "That neglects In and Out, and is twice the rule of thumb: a multiply-add is two FLOPs."),
                Wrong(lambda D, F, chip: 2 * critical_batch_exact(D, F, chip),
                      "Twice: a multiply-add is two FLOPs, and these cancel the two bytes of a weight."),
                Wrong(lambda D, F, chip: critical_batch(chip) / 2,
                      "That neglects In and Out, and is half of the rule of thumb: a bf16 weight has two bytes."),
                Wrong(lambda D, F, chip: critical_batch_exact(D, F, chip) / 2, "Half: a bf16 weight has two bytes."),
            ),
        ),
        hint="2·B·D·F over FLOPs/s equals the bytes of W, In and Out over bytes/s. In and Out grow with B.",
        code="""
D, F = $D, $F
chip = sb.chip($chip)
ridge = chip.flops_per_s["bf16"] / chip.hbm_bytes_per_s
# 2 B D F = ridge * (2 D F + 2 B (D + F)), solved for B
answer = ridge * D * F / (D * F - ridge * (D + F))
""",
        given={"D": 4096, "F": 14336, "chip": "v5e"},
        why=meaning.exact_means,
    ),
    Exercise("rooflines/vmem-weights", "Weights that stay on the chip",
        Number(lambda chip: critical_batch(chip, level="vmem"), "rows", wrong=(
                Wrong(lambda chip: critical_batch(chip), "That is for weights read from HBM: here they come from VMEM."),
                Wrong(lambda chip: critical_batch(chip, level="vmem") * 2, "Twice: a multiply-add is two FLOPs."),
                Wrong(lambda chip: critical_batch(chip, level="vmem") / 2, "Half: a bf16 weight has two bytes."),
            ),
        ),
        hint="The same balance, with the bandwidth of VMEM in place of that of HBM.",
        code="""
chip = sb.chip($chip)
answer = chip.flops_per_s["bf16"] / chip.vmem_bytes_per_s
""",
        given={"chip": "v5e"},
        why=meaning.vmem_means,
    ),
    Exercise("rooflines/batched-matvec", "A matrix for every row",
        Number(lambda B, D, F: (B * matmul_work(1, D, F)).intensity(), "FLOPs/B", wrong=(
                Wrong(lambda B, D, F: matmul_work(B, D, F).intensity(),
                      "That is for one matrix shared by all rows: here each row brings its own."),
                Wrong(lambda B, D, F: B,
                      "B would be right for one large matrix shared by all rows: here each row brings its own."),
                Wrong(lambda B, D, F: (B * matmul_work(1, D, F)).intensity() / 2, "Half: a multiply-add is two FLOPs."),
                Wrong(lambda B, D, F: 2 * (B * matmul_work(1, D, F)).intensity(), "Twice: a bf16 number has two bytes."),
            ),
        ),
        hint="Write the FLOPs and the bytes of a single row with its own matrix. What if there are B of them?",
        code="""
B, D, F = $B, $D, $F
flops = B * 2 * D * F
nbytes = B * 2 * (D + D * F + F)
answer = flops / nbytes          # B cancels
""",
        given={"B": 64, "D": 4096, "F": 4096},
        why=meaning.batched_matvec_means,
    ),
    Exercise("rooflines/highest-ridge", "The chip that is hardest to feed",
        Choice(
            meaning.highest_ridge,
            options=lambda: {c.key: () for c in chips()},
            read=lambda answer: chip_of(answer).key,
            why_not=meaning.why_not_highest,
            wrong={
                **dict.fromkeys(("gb200", "gb300", "mi355x"),
                                "None computes faster, but its memory is fast too: what counts is the ratio."),
                "h100": "High, but one TPU computes nearly as fast with half of the memory bandwidth.",
                "l4": "Close: a small chip with slow memory. One chip has a higher ratio still.",
                "v5e": "The chip of the rule of thumb, not the extreme one.",
                "tpu7x": "It is the fastest of the TPUs with a known bf16 rate, but its memory grew along with it.",
            },
        ),
        hint="Compute FLOPs/s ÷ bytes/s for every chip of sb.chips() that has a bf16 rate, and take the largest.",
        code="""
ridges = {}
for c in sb.chips():
    if "bf16" in c.flops_per_s:
        ridges[c.key] = c.flops_per_s["bf16"] / c.hbm_bytes_per_s
answer = max(ridges, key=ridges.get)
""",
        why=meaning.highest_ridge_means,
    ),
    Exercise("rooflines/my-time", "The roofline as a function",
        Function(
            "my_time(flops, bytes, flops_per_s, bytes_per_s)",
            spec=lambda flops, bytes, flops_per_s, bytes_per_s: (
                Work({"math": flops, "hbm": bytes}).over({"math": flops_per_s, "hbm": bytes_per_s}).lower
            ),
            cases=(
                (2e12, 1e9, 197e12, 819e9),
                (1e9, 4e9, 197e12, 819e9),
                (5e13, 2e10, 989e12, 3.352e12),
                (0, 1e9, 459e12, 2.765e12),
                (3e6, 6e6, 918e12, 1.638e12),
            ),
            unit="s",
            wrong=(
                WrongFunction(lambda f, b, p, w: f / p + b / w,
                              "That adds the two times. The lower bound lets them overlap: take the longer."),
                WrongFunction(lambda f, b, p, w: min(f / p, b / w),
                              "That is the shorter of the two times: nothing is done before the longer ends."),
                WrongFunction(lambda f, b, p, w: f / p, "Math alone: memory takes longer when the intensity is low."),
                WrongFunction(lambda f, b, p, w: b / w, "Memory alone: math takes longer when the intensity is high."),
                WrongFunction(lambda f, b, p, w: max(f * p, b * w), "Time is work divided by rate, not times it."),
            ),
        ),
        hint="Each resource needs amount ÷ rate seconds. If both work at once, when is everything done?",
        code="""
def my_time(flops, bytes, flops_per_s, bytes_per_s):
    return max(flops / flops_per_s, bytes / bytes_per_s)
""",
        why="The maximum assumes perfect overlap. Without any, the time is the sum, and with two resources that is at most twice as long: "
        "so the lower bound is never far off, as long as nothing but these two takes time.",
    ),
    Exercise("rooflines/choose-a-chip", "A balanced decoder (open)",
        Criterion(
            "a chip, a number format for the weights and the rows: chip = …; weights = …; B = …",
            asks=(
                Field("chip", "chip", "text", example="v4"),
                Field("weights", "weights", "choice", options=FORMATS),
                Field("B", "B", "text", unit="rows", example="100 rows"),
            ),
            judge=balanced_decoder,
            best=lambda **given: 1.0,
            header=("", "yours", "condition"),
        ),
        hint="Reading W alone must fit into the limit: which chip and format allow that? Then take B near their critical batch, "
        "activations included (sb.critical_batch_exact).",
        code="""
D, F, limit = $D, $F, $limit
answer = None
for chip in sb.chips():
    if "bf16" in chip.flops_per_s:
        B = int(sb.critical_batch_exact(D, F, chip, weights="int8"))
        t = sb.matmul_time(B, D, F, chip, b="int8", compute="bf16")
        if t.lower < limit:
            answer = {"chip": chip.key, "weights": "int8", "B": B}
""",
        given={"D": 8192, "F": 28672, "limit": 150e-6, "balance": 0.8},
        why=meaning.choice_means,
    ),
)
# fmt: on
