"""The command line: `scalebook chips`, `einsum`, `params`, `kv`, `flops` and `check`, each as text or with `--json`.

Exit status: 0, or 1 where `check` finds an answer wrong, or 2 for a user's mistake, told in one message on standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import scalebook
from scalebook.cli_models import add_commands
from scalebook.cli_shared import Parser, Result, UsageError, as_json, number, table, whole, write
from scalebook.errors import MeshError, NotationError, ScalebookError, SizeError, TopologyError, unknown
from scalebook.topologies import MAX_SLICES
from scalebook.typed import read_pairs, read_sizes, shorten
from scalebook.units import binary, digits, si

_LONG = 120  # characters of what was typed that a message repeats
_EXAMPLES = {"--size": "I=8192,J=8192", "--mesh": "X=4,Y=8", "--dtype": "A=int8,B=bf16"}
_PIPE_CLOSED = 141  # 128 + SIGPIPE, as a program that the signal ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; never raises for what a user can do wrong.

    >>> main(["check", "rooflines/dot-product", "1/2"])
    ✓ rooflines/dot-product: right: 0.5 FLOPs/B; the library computes 0.4999 FLOPs/B.
    0
    """
    asked = list(sys.argv[1:] if argv is None else argv)
    try:
        status, text = _run(asked)
        write(sys.stdout, text)
    except ScalebookError as e:
        with contextlib.suppress(BrokenPipeError):
            write(sys.stderr, f"{shorten(shlex.join(['scalebook', *asked]))}: {_without_echo(str(e), asked)}")
        return 2
    except SystemExit as e:  # argparse has printed help or the version
        return e.code if isinstance(e.code, int) else 0
    except BrokenPipeError:  # the reader of our output has gone, as in `scalebook chips | head -1`
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    except KeyboardInterrupt:
        return 130
    return status


def _run(argv: list[str]) -> Result:
    first = argv[0] if argv else ""
    if argv and not first.startswith("-") and first not in _COMMANDS:
        raise unknown("command", shorten(first, 40), _COMMANDS, UsageError)
    parser = _parser()
    if first.startswith("-") and first not in ("-h", "--help", "--version", "--"):
        later = " (write it after the command)" if first == "--json" else ""
        parser.error(f"unknown option {shorten(first, 40)!r} before the command{later}; known there are -h, --help and --version")
    options, rest = parser.parse_known_args(argv)
    if rest:
        options.parser.error(f"unrecognized arguments: {shorten(shlex.join(rest), 80)}")
    run: Callable[[argparse.Namespace], Result] = options.run
    return run(options)


def _without_echo(message: str, asked: Iterable[str]) -> str:
    """A message in which nothing that was typed is repeated at length: long arguments, words and lines are cut."""
    for argument in sorted({a for a in asked if len(a) > _LONG}, key=len, reverse=True):
        message = message.replace(argument, shorten(argument, _LONG))
    cut = [re.sub(rf"\S{{{_LONG},}}", lambda word: shorten(word[0], _LONG), line) for line in message.split("\n")]
    return "\n".join(
        line for line in cut if len(line) <= _LONG or line.strip(" ^")
    )  # a caret far to the right points at nothing now


# ---- chips --------------------------------------------------------------------------------------------------------------

_APART = ("figures", "unknown", "notes", "measurements")


def _chip_data(c: scalebook.Chip) -> dict[str, Any]:
    return {f.name: getattr(c, f.name) for f in dataclasses.fields(c) if f.name not in _APART}


def _chips(options: argparse.Namespace) -> Result:
    if options.name:
        c = scalebook.chip(" ".join(options.name))
        if options.json:
            sources = {name: dataclasses.asdict(source) for name, source in c.figures.items()}
            notes = [dataclasses.asdict(note) for note in c.notes]
            return 0, as_json({**_chip_data(c), "sources": sources, "unknown": c.unknown, "notes": notes})
        return 0, _one_chip(c)
    if options.json:
        return 0, as_json([_chip_data(c) for c in scalebook.chips()])
    rows = [("chip", "name", "bf16", "HBM", "HBM bandwidth", "ridge, FLOPs per byte")]
    for c in scalebook.chips():
        bf16 = c.flops_per_s.get("bf16")
        ridge = "unknown" if bf16 is None or c.hbm_bytes_per_s is None else digits(bf16 / c.hbm_bytes_per_s)
        rows.append((c.key, c.name, si(bf16, "FLOPs/s"), binary(c.hbm_bytes), si(c.hbm_bytes_per_s, "B/s"), ridge))
    return 0, table(rows) + "\n\nRates are nominal, dense, per chip. Sources of each figure: scalebook chips NAME"


def _one_chip(c: scalebook.Chip) -> str:
    lines = [f"{c.name} ({c.key}), {c.vendor} {c.kind.upper()}", ""]
    rows = [(name, _figure(s.value, s.unit), s.status, "; ".join(r.title for r in s.refs)) for name, s in c.figures.items()]
    lines.append(table([("figure", "value", "status", "source"), *rows]))
    lines += ["", *(f"{name}: not known: {why}" for name, why in c.unknown.items())] if c.unknown else []
    lines += ["", *(str(note) for note in c.notes)] if c.notes else []
    lines += ["", *sorted({str(ref) for source in c.figures.values() for ref in source.refs})]
    return "\n".join(lines)


def _figure(value: Any, unit: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{value} {unit}".rstrip()
    return f"{value:,} {unit}".rstrip() if isinstance(value, int) or abs(value) < 1e3 else f"{value:.6g} {unit}".rstrip()


# ---- einsum -------------------------------------------------------------------------------------------------------------


def _rule(option: str) -> str:
    return f"{option} takes NAME=VALUE pairs, joined by commas or with the option repeated: {option} {_EXAMPLES[option]}"


def _whole(option: str, texts: Sequence[str]) -> dict[str, int]:
    wrong = MeshError if option == "--mesh" else SizeError
    return read_sizes(option, texts, _rule(option), UsageError, wrong=wrong, written=f"{option} ")


def _mesh(options: argparse.Namespace) -> scalebook.Mesh | None:
    shape = _whole("--mesh", options.mesh)
    if options.topology is None:
        if options.num_slices is not None:
            raise TopologyError(
                f"--num-slices {options.num_slices} is given without a machine; add one, such as --topology v5e:4x8"
            )
        return scalebook.mesh(shape) if shape else None
    if not shape:
        raise MeshError(
            f"--topology {shorten(options.topology, 40)} is given without a mesh; add its axes, such as --mesh {_EXAMPLES['--mesh']}"
        )
    return scalebook.mesh(shape, on=scalebook.topology(options.topology, num_slices=options.num_slices or 1))


def _einsum(options: argparse.Namespace) -> Result:
    dtype: str | dict[str, str] = "bf16"
    if options.dtype:
        named = any("=" in text for text in options.dtype)
        if not named and len(options.dtype) > 1:
            raise UsageError(
                f"--dtype is given {len(options.dtype)} times; give one for all arrays, or pairs: --dtype A=int8,B=bf16"
            )
        dtype = read_pairs("--dtype", options.dtype, _rule("--dtype"), UsageError) if named else options.dtype[0]
    sizes, mesh = _whole("--size", options.size), _mesh(options)
    try:
        e = scalebook.einsum(options.spec, sizes, mesh, dtype)
    except NotationError as error:
        if mesh is None and "the mesh has no axes" in str(error):
            message, *caret = str(error).split("\n")
            raise MeshError("\n".join([f"{message} Give the mesh with --mesh {_EXAMPLES['--mesh']}", *caret])) from None
        raise
    except SizeError as error:
        if not options.size:
            raise SizeError(f"{error}. Give the sizes with --size {_EXAMPLES['--size']}") from None
        raise
    seconds = e.time.lower if options.topology else None
    if not options.json:
        return 0, e.explain()
    collectives = [
        {"kind": c.kind, "array": c.array, "axes": list(c.axes), "bytes": number(c.bytes), "seconds": number(c.seconds)}
        for c in e.collectives
    ]
    return 0, as_json({"collectives": collectives, "flops_per_device": number(e.flops_per_device), "seconds": number(seconds)})


# ---- check --------------------------------------------------------------------------------------------------------------


def _check(options: argparse.Namespace) -> Result:
    verdict = scalebook.check(options.id, " ".join(options.answer))
    if not verdict.readable:
        raise ScalebookError(verdict.message)
    return (0 if verdict.correct else 1), as_json(verdict.as_dict()) if options.json else str(verdict)


# ---- the options of each ------------------------------------------------------------------------------------------------

_COMMANDS = ("chips", "einsum", "params", "kv", "flops", "check")


def _parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="scalebook",
        description="How to scale language models on TPUs and GPUs: work, bytes and seconds from the command line.",
        epilog="With --json, bytes and seconds are in base units. Exit status: 0; 1 for a wrong answer; 2 for a mistake.",
    )
    top.add_argument("--version", action="version", version=f"scalebook {scalebook.__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], Result], help: str, example: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=help,
            description=help[0].upper() + help[1:] + ".",
            epilog=f"Example:  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=run, parser=sub)
        sub.add_argument("--json", action="store_true", help="print JSON instead of text")
        return sub

    chips = command("chips", _chips, "list the chips, or show one with the source of every figure", "scalebook chips v5p")
    chips.add_argument("name", nargs="*", metavar="NAME", help='a chip, such as v5p, "H100 SXM" or trillium')

    spec = '"A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]"'
    options = "--size I=8192,J=8192,K=28672 --mesh X=4,Y=8 --topology v5e:4x8"
    einsum = command(
        "einsum", _einsum, "derive the collectives of a product of sharded arrays", f"scalebook einsum {spec} {options}"
    )
    einsum.add_argument("spec", metavar="EINSUM", help=f"the product in the notation of the book: {spec}")
    einsum.add_argument("--size", action="append", default=[], metavar="I=N,…", help="size of each dimension; may be repeated")
    einsum.add_argument(
        "--mesh", action="append", default=[], metavar="X=N,…", help="devices along each mesh axis; may be repeated"
    )
    einsum.add_argument(
        "--topology", metavar="CHIP:SHAPE", help="the machine, such as v5e:4x8 or h100:2x8; without it, bytes but no seconds"
    )
    einsum.add_argument(
        "--num-slices", type=whole(MAX_SLICES), metavar="N", help="slices joined by the data-center network (default 1)"
    )
    einsum.add_argument(
        "--dtype", action="append", metavar="DTYPE", help="number format of all arrays, or pairs A=int8,… (default bf16)"
    )

    add_commands(command)

    check = command("check", _check, "grade an answer to an exercise", "scalebook check rooflines/dot-product 1/2")
    check.add_argument("id", metavar="ID", help="the exercise, as chapter/name")
    check.add_argument(
        "answer", nargs="+", metavar="ANSWER", help="a number, with a unit if you like (3.2 GB), or parts: 'v5p = …; h100 = …'"
    )
    return top
