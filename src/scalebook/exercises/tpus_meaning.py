"""What the answers to the exercises of How TPUs work mean: a few sentences each, their numbers computed."""

from __future__ import annotations

from scalebook.collectives import all_gather, all_to_all
from scalebook.hardware import chip as chip_of
from scalebook.hierarchy import level
from scalebook.meshes import mesh as mesh_of
from scalebook.routes import diameter
from scalebook.systolic import utilisation
from scalebook.tiling import matmul_padding, padded_bytes
from scalebook.topologies import topology
from scalebook.units import binary, count, digits, percent, plural, round_up, si


def peak_means(dim: int, units: int, clock: float) -> str:
    stated = chip_of("v5e").flops_per_s["bf16"]
    return (
        f"It is {percent(2 * dim * dim * units * clock / stated, 4)} of what the vendor states for a v5e. A peak is no more than cells × clock: "
        "it is reached only while every cell has a number to multiply in every cycle."
    )


def read_hbm_means(chip: str) -> str:
    c = chip_of(chip)
    seconds = (c.hbm_bytes or 0) / (c.hbm_bytes_per_s or 1)
    return (
        "A step that uses everything in memory, weights and caches, cannot be shorter, whatever it computes. A chip whose HBM is full of "
        f"weights makes at most {digits(1 / seconds)} steps of generation a second, and only a larger batch makes a step worth more."
    )


def cycles_mean(rows: int, dim: int) -> str:
    one, many = utilisation(rows, dim, dim, dim=dim), utilisation(rows, 64 * dim, 64 * dim, dim=dim)
    return (
        f"For one tile alone the array is used at {percent(one)}. A matrix of many tiles hides the loading, filling and draining of each behind "
        f"the work of the others: with the same rows, a matrix of {count(64 * 64)} tiles reaches {percent(many, 4)}."
    )


def few_rows_mean(rows: int) -> str:
    return (
        "In this chapter's model, one row of weights a cycle, a matrix unit has a critical batch of its own, the number of its rows: "
        f"{chip_of('v5e').mxu_dim} on a v5e, {chip_of('v6e').mxu_dim} on a v6e. Reading the weights from HBM asks for more rows still, so this "
        "limit shows only where the weights are already on the chip, and a unit that loads faster has a lower one."
    )


def head_width_means(H: int) -> str:
    wide = [matmul_padding(8, H, 256, c)[1] for c in ("v5e", "v6e")]
    return (
        f"A head of {wide[0]} would take no longer on a v5e, and one of {wide[1]} no longer on a v6e: that is what {H} is padded to. Newer matrix units are wider, so the same model can use a "
        "smaller share of a faster chip, and models made for TPUs have wider heads."
    )


def fp8_cache_means(tokens: int, rows: int, width: int) -> str:
    few, many = ([padded_bytes((tokens, n, width), d) for d in ("fp8", "bf16")] for n in (2, rows))
    return (
        f"Here fp8 saves half of the {binary(many[1])} of bf16, though {percent(1 - rows / round_up(rows, 8))} of either is padding. With one key head a "
        f"chip, two rows, it saves nothing: {binary(few[0])} in fp8, {binary(few[1])} in bf16. What a smaller format saves depends on how the heads are split."
    )


def _gathers(machine: str, nbytes: float) -> tuple[float, float]:
    """Seconds on the last axis of the machine, and of a ring of equally many chips."""
    t = topology(machine)
    k = t.shape[-1]
    m = mesh_of({"Y": t.devices // k, "X": k}, on=t)
    rate = (t.chip.link_bytes_per_s or 1) * (t.chip.link_efficiency or 1)
    return all_gather(nbytes, m, "X").comms or 0.0, nbytes * (k - 1) / k / (2 * rate)


def ring_means(machine: str, nbytes: float) -> str:
    seconds, _ = _gathers(machine, nbytes)
    hbm = nbytes / (topology(machine).chip.hbm_bytes_per_s or 1)
    return (
        f"Reading the gathered array from HBM takes {si(hbm, 's')}, so gathering it costs {digits(seconds / hbm)} times as much. The number of chips hardly "
        "enters: a ring of twice as many would take almost the same time, as long as its latency is small."
    )


def line_means(machine: str, nbytes: float) -> str:
    seconds, ring = _gathers(machine, nbytes)
    return (
        f"A ring of as many chips would take {si(ring, 's')}: the missing wraparound costs a factor of {digits(seconds / ring, 2)}. "
        "If only an axis as long as the pod's closes into a ring, as the catalogue has it for these TPUs, a part of a pod is slower, link for link, "
        "than the whole."
    )


def exchange_means(machine: str, each: float) -> str:
    t = topology(machine)
    k = t.shape[-1]
    m = mesh_of({"Y": t.devices // k, "X": k}, on=t)
    exchange, gather = (f(each * k, m, "X").comms or 1.0 for f in (all_to_all, all_gather))
    return (
        f"A bundle crosses {digits(k / 4)} links on average, so with the same {binary(each)} on every chip a ring of twice as many takes twice as long. "
        f"Gathering the same {binary(each * k)} on every chip takes {digits(gather / exchange)} times as long as this exchange, but that "
        "hardly depends on the size of the ring."
    )


def bisection_means(v5e: str, v5p: str) -> str:
    a, b = topology(v5e), topology(v5p)
    per = [(t.bisection_bytes_per_s or 0) / t.chips for t in (a, b)]
    return (
        f"Per chip that is {si(per[0], 'B/s')} and {si(per[1], 'B/s')}. It bounds every exchange in which each chip talks to all others, such as the "
        "all-to-all of a mixture of experts: twice the chips along the longest axis leave each of them half."
    )


def load_means(chip: str, params: float, chips: int) -> str:
    hbm, host, dcn = (level(chip, key).bytes_per_s or 1 for key in ("hbm", "host", "dcn"))
    return (
        f"PCIe is {digits(hbm / host)} times slower than HBM, and the network between slices {digits(host / dcn)} times slower than PCIe. So weights that are used in "
        "every step stay in HBM, and starting a job, or bringing a model back from the host, is counted apart from its steps."
    )


def across_means(machine: str, hop: float) -> str:
    t = topology(machine)
    latency = diameter(machine) * hop
    rate = (t.chip.link_bytes_per_s or 1) * (t.chip.link_efficiency or 1)
    return (
        f"In this time a link carries {si(latency * rate, 'B')}: smaller messages across the slice are bound by latency, not by bandwidth. The "
        f"time of a hop is an assumption, since no vendor states one; the {plural(diameter(machine), 'hop')} are not."
    )


def two_devices_mean(machine: str) -> str:
    t = topology(machine)
    return (
        f"Every share that a program computes is one of {count(t.devices)}. What a data sheet says of a chip has to be halved for a device, and its "
        "links are shared by the two. What these exchange with each other does not use the links at all."
    )


def widths_mean(target: float, tolerance: float, ways: int, fill: float) -> str:
    D, F = 4096, round(target / 4096)
    shares = {
        c: D * (F // ways) / (matmul_padding(8, D, F // ways, c)[1] * matmul_padding(8, D, F // ways, c)[2])
        for c in ("v5e", "v6e")
    }
    return (
        f"The budget is that of a widely used model with D = {count(D)} and F = {count(F)}. On {ways} chips its share of F is {count(F // ways)}, which fills "
        f"{percent(shares['v5e'])} of a v5e's tiles and {percent(shares['v6e'])} of a v6e's: sharding, not the model alone, decides what is padded."
    )
