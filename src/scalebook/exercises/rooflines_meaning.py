"""What the answers to the exercises of Rooflines mean: a few sentences each, shown beneath the solution, their numbers computed."""

from __future__ import annotations

from scalebook.hardware import chip as chip_of, chips
from scalebook.roofline import critical_batch, critical_batch_exact, matmul_time, matmul_work, rates, ridge
from scalebook.units import binary, digits, itemsize, si


def with_bf16() -> tuple[str, ...]:
    """The chips whose ridge in bf16 is known."""
    return tuple(c.key for c in chips() if "bf16" in c.flops_per_s and c.hbm_bytes_per_s)


def highest_ridge() -> str:
    """The chip that needs the most FLOPs per byte of HBM in bf16."""
    return max(with_bf16(), key=ridge)


def why_not_highest(option: str) -> str:
    """Its ridge and how many chips lie above it; or that nobody knows it."""
    chip = chip_of(option)
    if option not in with_bf16():
        return f"No source gives a bf16 rate for {chip.name}, so its ridge in bf16 is unknown; compare the chips that have one."
    above = sum(ridge(other) > ridge(option) for other in with_bf16())
    others = (
        "another chip of the catalogue has a higher one" if above == 1 else f"{above} chips of the catalogue have a higher one"
    )
    return f"Its ridge is {digits(ridge(option))} FLOPs per byte; {others}."


def lowest_ridge() -> str:
    """The chip that needs the fewest."""
    return min(with_bf16(), key=ridge)


def dot_product_means(J: int) -> str:
    least = chip_of(lowest_ridge())
    return (
        f"The length hardly counts: each number brings its FLOP and its two bytes along. Of all chips with a known bf16 rate "
        f"{least.name} needs the fewest FLOPs per byte, {digits(ridge(least.key))}: a dot product waits for memory on every one of them."
    )


def bias_add_means(I: int, J: int) -> str:
    least = chip_of(lowest_ridge())
    return (
        f"On no chip. Half of the peak takes half of the ridge, and even on {least.name}, the easiest to feed, that is "
        f"{digits(ridge(least.key) / 2)} FLOPs per byte. Besides, that peak is the matrix unit's, which only multiplies matrices: "
        "additions run on the vector unit, which is far slower. So this addition costs what its traffic costs, and compilers fuse it "
        "into the product before it, whose result is then still on the chip."
    )


def time_bounds_mean(I: int, J: int, K: int, chip: str) -> str:
    t = matmul_time(I, J, K, chip)
    return (
        f"Math takes {digits(t.math / t.hbm, 2)} times as long as memory, so overlapping the two can save at most "
        f"{digits(100 * (1 - t.lower / t.upper), 2)}% of the time. A measured time above {si(t.upper, 's')} has a cause that neither count contains."
    )


def which_binds_means(B: int, D: int, F: int) -> str:
    v5e, v5p, h100 = (matmul_time(B, D, F, chip) for chip in ("v5e", "v5p", "h100"))
    faster, wider = (rates("h100")[r] / rates("v5e")[r] for r in ("math", "hbm"))  # type: ignore[operator]
    return (
        f"It helps, but by its memory: {si(v5e.lower, 's')} on a v5e, {si(v5p.lower, 's')} on a v5p, {si(h100.lower, 's')} on an H100. "
        f"An H100 computes {digits(faster, 2)} times as fast as a v5e and reads {digits(wider, 2)} times as fast; where memory binds on both, "
        "only the second factor counts."
    )


def critical_batch_means() -> str:
    v5e, v5p, h100 = (digits(critical_batch(chip)) for chip in ("v5e", "v5p", "h100"))
    return (
        "With two bytes a weight and two FLOPs a multiply-add, the critical batch is the ridge itself. "
        f"It is {v5e} rows on a v5e, {v5p} on a v5p and {h100} on an H100: a rule of thumb for one chip is wrong on the next."
    )


def int8_weights_mean(chip: str) -> str:
    bf16, int8, both = (
        critical_batch(chip, compute=c, weights=w) for c, w in (("bf16", "bf16"), ("bf16", "int8"), ("int8", "int8"))
    )
    return (
        f"Half of the bytes take the critical batch from {digits(bf16)} to {digits(int8)} rows; arithmetic twice as fast takes it back to "
        f"{digits(both)}. Between the two numbers, storing the weights in int8 has already moved the product from waiting for memory to computing."
    )


def fp8_means() -> str:
    gain = {c: chip_of(c).flops_per_s["fp8"] / chip_of(c).flops_per_s["bf16"] for c in ("tpu7x", "h100")}
    return (
        f"The odd one is v5p: it multiplies fp8 at {si(rates('v5p', 'fp8')['math'], 'FLOPs/s')} and bf16 at "
        f"{si(rates('v5p', 'bf16')['math'], 'FLOPs/s')}, so the bytes halve and nothing else changes. "
        f"TPU7x multiplies fp8 {digits(gain['tpu7x'], 2)} times as fast as bf16, H100 {digits(gain['h100'], 2)} times: half of the time for the bytes, half for the FLOPs, and the "
        "critical batch is that of bf16."
    )


def exact_means(D: int, F: int, chip: str) -> str:
    exact, rule = critical_batch_exact(D, F, chip), critical_batch(chip)
    return (
        f"{digits(100 * (exact / rule - 1), 2)}% more than the rule of thumb, because each row brings activations of its own. "
        r"The denominator $D F - \text{ridge} \cdot (D + F)$ shows where it ends: with $D = F$ below "
        f"{digits(2 * ridge(chip))}, no number of rows makes the product compute-bound."
    )


def vmem_means(chip: str) -> str:
    room = chip_of(chip).vmem_bytes or 0
    return (
        f"VMEM is {digits(critical_batch(chip) / critical_batch(chip, level='vmem'), 2)} times as fast as HBM, and the critical batch is smaller by the "
        f"same factor. What limits it is room: the {binary(room)} hold one square bf16 matrix with "
        f"{digits((room / itemsize('bf16')) ** 0.5, 4)} rows, and nothing else."
    )


def batched_matvec_means(B: int, D: int, F: int) -> str:
    once = (B * matmul_work(1, D, F)).intensity()
    return (
        f"Nothing happens when you double B: FLOPs and bytes both double, and the intensity stays what it is, {digits(once, 4)}. "
        "A batch helps only where its rows share what is read. Weights are shared; each sequence's cache is not, so attention stays "
        "memory-bound however many sequences are served."
    )


def highest_ridge_means() -> str:
    best = chip_of(highest_ridge())
    faster, wider = (rates(best.key)[r] / rates("v5e")[r] for r in ("math", "hbm"))  # type: ignore[operator]
    return (
        f"{best.name} needs {digits(ridge(best.key))} FLOPs per byte. Against v5e its arithmetic grew {digits(faster, 2)} times and its memory "
        f"bandwidth {digits(wider, 2)} times: it wants large batches or long sequences, and waits for memory otherwise."
    )


def choice_means(D: int, F: int, limit: float, balance: float) -> str:
    return (
        "Left out are, among others: the price and power of the chip; whether the rest of the model fits beside this one matrix of "
        f"{binary(D * F)} in int8; activations in a narrower format; all other layers; attention, whose caches grow with B and are not "
        "shared; latency, since with more rows each user waits for all; and what the narrower weights cost in quality. "
        "Rows per second and dollar is the number to compare, and it needs a price list."
    )
