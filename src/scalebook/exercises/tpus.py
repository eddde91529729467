"""The exercises of the chapter How TPUs work: right answers, known wrong ones and what they betray; statements stand in the page."""

from __future__ import annotations

from scalebook.exercises import tpus_meaning as meaning
from scalebook.exercises.composed import Criterion, Parts
from scalebook.exercises.fields import Field
from scalebook.exercises.grading import Exercise, Number, Wrong
from scalebook.exercises.tpus_values import (
    bisection,
    bundles,
    chip_in,
    exchange,
    gather,
    gather_over,
    hbm_seconds,
    known,
    open_lines,
    over_rings,
    share_seconds,
    used_share,
    widths,
)
from scalebook.hardware import chip as chip_of
from scalebook.hierarchy import level
from scalebook.routes import diameter
from scalebook.systolic import cycles
from scalebook.tiling import matmul_padding, padded_bytes
from scalebook.topologies import topology
from scalebook.units import round_up

# ---- all of them, easy first --------------------------------------------------------------------------------------------

# fmt: off
EXERCISES: tuple[Exercise, ...] = (
    Exercise("tpus/peak", "The peak of a chip from its matrix units",
        Number(lambda dim, units, clock: 2 * dim * dim * units * clock, "FLOPs/s", wrong=(
                Wrong(lambda dim, units, clock: dim * dim * units * clock, "Half: a multiply and an add are two FLOPs."),
                Wrong(lambda dim, units, clock: 2 * dim * dim * clock, "That is one matrix unit; the chip has several."),
                Wrong(lambda dim, units, clock: 2 * dim * units * clock,
                      "That is one row of cells: an array has as many rows as columns."),
            ),
        ),
        hint="How many cells does the chip have in all, and what does each do in a cycle?",
        code="""
dim, units, clock = $dim, $units, $clock
cells = dim * dim * units
answer = 2 * cells * clock       # a multiply and an add per cycle
""",
        given={"dim": 128, "units": 4, "clock": 1.5e9},
        why=meaning.peak_means,
    ),
    Exercise("tpus/read-hbm", "All of HBM, once",
        Number(lambda chip: hbm_seconds(chip), "s", wrong=(
                Wrong(lambda chip: hbm_seconds(chip, round(known(chip_of(chip).hbm_bytes) / 2**30) * 1e9),
                      "Capacities are in GiB, rates in GB/s: a GiB has 1,024³ bytes."),
                Wrong(lambda chip: 8 * hbm_seconds(chip), "Bits? Both figures are in bytes."),
                Wrong(lambda chip: known(chip_of(chip).hbm_bytes) / known(level(chip, "host").bytes_per_s),
                      "That is the time over PCIe, to the host's memory."),
            ),
        ),
        hint="Capacity divided by rate. Mind the units of both.",
        code="""
chip = sb.chip($chip)
answer = chip.hbm_bytes / chip.hbm_bytes_per_s
""",
        given={"chip": "v5e"},
        why=meaning.read_hbm_means,
    ),
    Exercise("tpus/systolic-cycles", "One tile through the array",
        Number(lambda rows, dim: cycles(rows, dim, dim, dim=dim), "", wrong=(
                Wrong(lambda rows, dim: rows, "That would be so if the array were always full. It has to load, to fill and to drain."),
                Wrong(lambda rows, dim: rows + dim, "The weights are loaded; but the last row has to cross the array as well."),
                Wrong(lambda rows, dim: rows + 2 * dim - 2, "The rows pass and drain; but the weights have to be loaded first."),
                Wrong(lambda rows, dim: rows + 3 * dim, "The far corner is dim − 1 cells to the right of the first and dim − 1 below it."),
                Wrong(lambda rows, dim: rows + 3 * dim - 1, "The way to the far corner is short by one cell in both directions, not in one."),
            ), tolerance=1e-9,
        ),
        hint="Three things one after the other: the weights move in, the rows enter, the last row crosses to the far corner.",
        code="""
rows, dim = $rows, $dim
answer = dim + rows + (dim - 1) + (dim - 1)
""",
        given={"rows": 256, "dim": 128},
        why=meaning.cycles_mean,
    ),
    Exercise("tpus/few-rows", "Too few rows",
        Parts({
            "v5e": Number(lambda rows: used_share(chip_of("v5e").mxu_dim or 1, rows), "", wrong=(
                    Wrong(lambda rows: rows / (rows + 2 * 128 - 2),
                          "That is one tile alone. With many, filling and draining overlap with the neighbours' work."),
                    Wrong(lambda rows: 1.0, "A tile's weights take as many cycles to load as the array has rows of cells."),
                    Wrong(lambda rows: rows / 128**2, "Rows of A compare with the rows of cells, not with all cells."),
                ),
            ),
            "v6e": Number(lambda rows: used_share(chip_of("v6e").mxu_dim or 1, rows), "", wrong=(
                    Wrong(lambda rows: rows / 128, "The matrix unit of v6e is wider than that of v5e: its weights take longer to load."),
                    Wrong(lambda rows: rows / (rows + 2 * 256 - 2),
                          "That is one tile alone. With many, filling and draining overlap with the neighbours' work."),
                    Wrong(lambda rows: 1.0, "A tile's weights take as many cycles to load as the array has rows of cells."),
                    Wrong(lambda rows: rows / 256**2, "Rows of A compare with the rows of cells, not with all cells."),
                ),
            ),
        }),
        hint="In the steady state a tile of weights takes the longer of two times: its rows passing, and the next weights loading.",
        code="""
rows = $rows
answer = {}
for name in ("v5e", "v6e"):
    dim = sb.chip(name).mxu_dim
    answer[name] = rows / max(rows, dim)
""",
        given={"rows": 16},
        why=meaning.few_rows_mean,
    ),
    Exercise("tpus/head-width", "Narrow heads",
        Parts({
            "v5e": Number(lambda H: H / matmul_padding(8, H, 128, "v5e")[1], "", wrong=(
                    Wrong(lambda H: 1.0, "H is the dimension that is summed: it lies along the rows of cells, and what it does not fill is padded."),
                    Wrong(lambda H: (H / 128) ** 2, "Only one of the two dimensions is short: the other is the length of the context."),
                    Wrong(lambda H: H / 256, "The matrix unit of v5e has half the width of a v6e's."),
                ),
            ),
            "v6e": Number(lambda H: H / matmul_padding(8, H, 256, "v6e")[1], "", wrong=(
                    Wrong(lambda H: H / 128, "The matrix unit of v6e is twice as wide."),
                    Wrong(lambda H: (H / 256) ** 2, "Only one of the two dimensions is short: the other is the length of the context."),
                    Wrong(lambda H: 1.0, "H is the dimension that is summed: it lies along the rows of cells, and what it does not fill is padded."),
                ),
            ),
        }),
        hint="Of the rows of cells, how many get a number that is not padding?",
        code="""
H = $H
answer = {}
for name in ("v5e", "v6e"):
    dim = sb.chip(name).mxu_dim
    answer[name] = H / (-(-H // dim) * dim)
""",
        given={"H": 96},
        why=meaning.head_width_means,
    ),
    Exercise("tpus/fp8-cache", "A page of a cache in fp8",
        Number(lambda tokens, rows, width: padded_bytes((tokens, rows, width), "fp8"), "B", capacity=True, wrong=(
                Wrong(lambda tokens, rows, width: tokens * rows * width,
                      "That is the data alone: the rows of each token are padded to whole tiles."),
                Wrong(lambda tokens, rows, width: tokens * round_up(rows, 4) * width,
                      "Four rows share a word, but the rows are padded to whole tiles, of up to eight."),
                Wrong(lambda tokens, rows, width: tokens * round_up(rows, 32) * width,
                      "Twice: an fp8 number has one byte, and XLA's tiles for arguments have at most eight rows."),
            ),
        ),
        hint="The second-last dimension is what is rounded up here, to the rows of a tile. How many has the tile for so many rows?",
        code="""
from scalebook.tiling import padded_bytes

shape = $tokens, $rows, $width
answer = padded_bytes(shape, "fp8")
""",
        given={"tokens": 128, "rows": 10, "width": 128},
        why=meaning.fp8_cache_means,
    ),
    Exercise("tpus/gather-ring", "Gather round a ring",
        Number(lambda machine, nbytes: gather(machine, nbytes), "s", wrong=(
                Wrong(lambda machine, nbytes: gather_over(machine, nbytes, 1),
                      "Twice: a ring is used in both directions, so a chip receives over two links at once."),
                Wrong(lambda machine, nbytes: gather_over(machine, nbytes, 4),
                      "Half: only two of a chip's links lie on this axis, and the rate of a link is that of one direction."),
                Wrong(lambda machine, nbytes: gather_over(machine, nbytes, 2) * topology(machine).shape[-1] / (topology(machine).shape[-1] - 1),
                      "A chip already has its own part: it receives (k − 1)/k of the array."),
                Wrong(lambda machine, nbytes: gather_over(machine, nbytes, 2) * known(chip_in(machine).link_efficiency),
                      "That is the nominal rate of the links; collectives get a share of it, `link_efficiency`."),
                Wrong(lambda machine, nbytes: gather_over(machine, nbytes * 1e9 / 2**30, 2), "GiB or GB? A GiB has 1,024³ bytes."),
            ),
        ),
        hint="Each chip has to receive the array less its own part, over the two links that lie on the axis, at their usable rate.",
        code="""
mesh = sb.mesh({"Y": 16, "X": 16}, on=$machine)
answer = sb.all_gather($nbytes, mesh, "X").comms
""",
        given={"machine": "v5e:16x16", "nbytes": 2**30},
        why=meaning.ring_means,
    ),
    Exercise("tpus/gather-line", "Gather along a line",
        Number(lambda machine, nbytes: gather(machine, nbytes), "s", wrong=(
                Wrong(lambda machine, nbytes: gather_over(machine, nbytes, 2),
                      "That is a ring's time. This slice is too small for wraparound: the chips at the ends have one link on this axis."),
                Wrong(lambda machine, nbytes: nbytes / (known(chip_in(machine).link_bytes_per_s) * known(chip_in(machine).link_efficiency)),
                      "A chip already has its own part: it receives (k − 1)/k of the array."),
                Wrong(lambda machine, nbytes: gather_over(machine, nbytes, 1) * known(chip_in(machine).link_efficiency),
                      "That is the nominal rate of the links; collectives get a share of it, `link_efficiency`."),
            ),
        ),
        hint="Look at the chip at the end of the line: through how many links of this axis does everything reach it?",
        code="""
mesh = sb.mesh({"Y": 8, "X": 8}, on=$machine)
answer = sb.all_gather($nbytes, mesh, "X").comms
""",
        given={"machine": "v5e:8x8", "nbytes": 2**30},
        why=meaning.line_means,
    ),
    Exercise("tpus/exchange", "Exchange round a ring",
        Number(lambda machine, each: exchange(machine, each), "s", wrong=(
                Wrong(lambda machine, each: bundles(machine, each, topology(machine).shape[-1] / 2),
                      "Twice: a ring is used in both directions, so no bundle travels further than half-way round."),
                Wrong(lambda machine, each: bundles(machine, each, topology(machine).shape[-1] / 8),
                      "Half: only two of a chip's links lie on this axis, and the rate of a link is that of one direction."),
                Wrong(lambda machine, each: bundles(machine, each, topology(machine).shape[-1] - 1),
                      "That is a gather, after which each chip has everything; here each pair of chips exchanges a bundle of its own."),
                Wrong(lambda machine, each: bundles(machine, each, 1),
                      "So it would be with a link to each of the others. A bundle for a chip further on crosses every link on its way."),
                Wrong(lambda machine, each: bundles(machine, each, topology(machine).shape[-1] / 4) * known(chip_in(machine).link_efficiency),
                      "That is the nominal rate of the links; collectives get a share of it, `link_efficiency`."),
                Wrong(lambda machine, each: bundles(machine, each * 1e6 / 2**20, topology(machine).shape[-1] / 4), "MiB or MB? A MiB has 1,024² bytes."),
            ),
        ),
        hint="How many links does a bundle cross on average, going the shorter way round? Each chip has two links for all that passes.",
        code="""
mesh = sb.mesh({"Y": 16, "X": 16}, on=$machine)
answer = sb.all_to_all($each * mesh["X"], mesh, "X").comms
""",
        given={"machine": "v5e:16x16", "each": 64 * 2**20},
        why=meaning.exchange_means,
    ),
    Exercise("tpus/bisection", "Cut a slice in half",
        Parts({
            "v5e": Number(lambda v5e, v5p: bisection(v5e), "B/s", wrong=(
                    Wrong(lambda v5e, v5p: 2 * bisection(v5e),
                          "Count one direction only, and cut a ring twice but a line once: the axis that is shorter than the pod's is open."),
                    Wrong(lambda v5e, v5p: bisection(v5e) / 2,
                          "A ring is cut in two places: the axis as long as the pod's has wraparound."),
                    Wrong(lambda v5e, v5p: bisection(v5e) * 0.9, "Nominal rates are asked for, not usable ones."),
                ),
            ),
            "v5p": Number(lambda v5e, v5p: bisection(v5p), "B/s", wrong=(
                    Wrong(lambda v5e, v5p: bisection(v5p) / 2,
                          "A ring is cut in two places: every axis of this slice has wraparound."),
                    Wrong(lambda v5e, v5p: 2 * bisection(v5p),
                          "Count one direction only, and cut across the longest axis, where a cut crosses fewest rings."),
                    Wrong(lambda v5e, v5p: over_rings(v5p, topology(v5p).shape[0] * topology(v5p).shape[2]),
                          "Cut across the longest axis, where a cut crosses fewest rings."),
                    Wrong(lambda v5e, v5p: over_rings(v5p, topology(v5p).shape[0]),
                          "That is one row of the plane that the cut crosses: the other short axis multiplies it."),
                    Wrong(lambda v5e, v5p: over_rings(v5p, topology(v5p).shape[1]),
                          "The cut is a plane: it crosses as many rings as the two other axes have chips together, their product."),
                    Wrong(lambda v5e, v5p: over_rings(v5p, 1), "That is one ring: the cut crosses as many as the two other axes have chips together."),
                    Wrong(lambda v5e, v5p: bisection(v5p) * 0.9, "Nominal rates are asked for, not usable ones."),
                ),
            ),
        }),
        hint="Which axis is cut across, how many links does the cut cross, and does it have to cut each ring once or twice?",
        code="""
answer = {
    "v5e": sb.topology($v5e).bisection_bytes_per_s,
    "v5p": sb.topology($v5p).bisection_bytes_per_s,
}
""",
        given={"v5e": "v5e:8x16", "v5p": "v5p:8x12x16"},
        why=meaning.bisection_means,
    ),
    Exercise("tpus/load-weights", "Three ways to the weights",
        Parts({
            key: Number(lambda chip, params, chips, key=key: share_seconds(key, chip, params, chips), "s", wrong=(
                    Wrong(lambda chip, params, chips, key=key: share_seconds(key, chip, params, 1),
                          "That is one chip moving the whole model; each moves its own part, all at once."),
                    Wrong(lambda chip, params, chips, key=key: share_seconds(key, chip, params, chips) / 2,
                          "A bf16 number has two bytes."),
                    *more,
                ),
            )
            for key, more in {
                "hbm": (),
                "host": (),
                "dcn": (Wrong(lambda chip, params, chips: share_seconds("dcn", chip, params, chips) * known(chip_of(chip).dcn_efficiency),
                              "That is the nominal rate; the catalogue takes a share of it as usable, `dcn_efficiency`."),),
            }.items()
        }),
        hint="How many bytes does one chip need? Then divide by the rate of each level for one chip.",
        code="""
from scalebook.hierarchy import level

each = $params * 2 / $chips
answer = {}
for key in ("hbm", "host", "dcn"):
    answer[key] = each / level($chip, key).bytes_per_s
""",
        given={"chip": "v6e", "params": 70e9, "chips": 64},
        why=meaning.load_means,
    ),
    Exercise("tpus/across-a-slice", "From one end of a slice to the other",
        Number(lambda machine, hop: diameter(machine) * hop, "s", wrong=(
                Wrong(lambda machine, hop: open_lines(machine) * hop, "With wraparound no chip is further than half-way round a ring."),
                Wrong(lambda machine, hop: sum(topology(machine).shape) * hop,
                      "No chip is further than half-way round a ring, on each axis."),
                Wrong(lambda machine, hop: max(topology(machine).shape) // 2 * hop, "The ways along all axes add up."),
            ),
        ),
        hint="On a ring of n chips, how far away is the furthest? Add up the axes.",
        code="""
shape = sb.topology($machine).shape
answer = sum(n // 2 for n in shape) * $hop
""",
        given={"machine": "v5p:8x12x16", "hop": 1e-6},
        why=meaning.across_means,
    ),
    Exercise("tpus/two-devices", "Two devices a chip",
        Parts({
            "devices": Number(lambda machine: topology(machine).devices, "devices", wrong=(
                    Wrong(lambda machine: topology(machine).chips, "Those are the chips; a program sees each core of this chip as a device."),
                    Wrong(lambda machine: topology(machine).devices * 2, "Two a chip, not four."),
                ),
            ),
            "hbm": Number(lambda machine: known(chip_in(machine).hbm_bytes) / 2, "B", capacity=True, wrong=(
                    Wrong(lambda machine: known(chip_in(machine).hbm_bytes), "That is a chip's; a device has half of it."),
                    Wrong(lambda machine: round(known(chip_in(machine).hbm_bytes) / 2**31) * 1e9, "The figure is in GiB, not in GB."),
                ),
            ),
            "rate": Number(lambda machine: known(chip_in(machine).hbm_bytes_per_s) / 2, "B/s", wrong=(
                    Wrong(lambda machine: known(chip_in(machine).hbm_bytes_per_s), "That is a chip's; the two devices share the chip's memory bandwidth."),
                    Wrong(lambda machine: known(chip_in(machine).hbm_bytes_per_s) / 4, "Two devices a chip, not four."),
                ),
            ),
        }),
        hint="Data sheets state a chip's figures. How many devices does a program see on it?",
        code="""
slice_ = sb.topology($machine)
chip = slice_.chip
answer = {
    "devices": slice_.devices,
    "hbm": chip.hbm_bytes / chip.devices_per_chip,
    "rate": chip.hbm_bytes_per_s / chip.devices_per_chip,
}
""",
        given={"machine": "tpu7x:2x2x4"},
        why=meaning.two_devices_mean,
    ),
    Exercise("tpus/choose-widths", "Widths that fit (open)",
        Criterion(
            "two whole numbers: D = …; F = …",
            asks=(Field("D", "D", "text", example="1,024"), Field("F", "F", "text", example="4 * 1024")),
            judge=widths,
            best=lambda target, tolerance, ways, fill: 1.0,
            header=("", "yours", "condition"),
        ),
        hint="What must D, and F on each chip, be a multiple of, so that no tile of the wider matrix unit is padded?",
        code="""
best = None
for D in range(256, 16385, 256):
    for F in range(256 * $ways, 65537, 256 * $ways):
        off = abs(D * F / $target - 1)
        if F >= 2 * D and (best is None or off < best[0]):
            best = off, D, F
answer = {"D": best[1], "F": best[2]}
""",
        given={"target": 45_088_768, "tolerance": 0.02, "ways": 8, "fill": 0.99},
        why=meaning.widths_mean,
    ),
)
