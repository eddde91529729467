"""The commands about models: `scalebook params`, `scalebook kv`, `scalebook flops`."""

from __future__ import annotations

import argparse
import math
from fractions import Fraction
from pathlib import Path

from scalebook.cli_shared import Command, Result, UsageError, as_json, number, whole
from scalebook.errors import ModelError, ScalebookError
from scalebook.tables import Table
from scalebook.transformer import ACTIVE, REMAT, Model, model
from scalebook.typed import shorten
from scalebook.units import binary, count, digits, percent, plural, si

_MODEL = "a model by name (llama-3-8b), a Hugging Face config.json or the folder that holds one, or a MaxText .yml"
_KINDS = ("train", "forward", "prefill", "decode")


def find(text: str) -> Model:
    """The model that was asked for: a known name, else a file or folder."""
    try:
        return model(text)
    except ModelError as error:
        try:
            path = Path(text)
            there = path.is_file() or path.is_dir()
        except (OSError, ValueError):  # too long for a path, or with a null in it
            there = False
        if not there:
            raise UsageError(f"{error}. Nor is {shorten(text, 60)!r} a file or a folder here") from None
    return Model.from_maxtext(path) if path.suffix.lower() in (".yml", ".yaml") else Model.from_hf(path)


def _title(x: Model, what: str) -> str:
    return f"{x.name} ({x.family}): {what}"


# ---- params ------------------------------------------------------------------------------------------------------------------


def _params(options: argparse.Namespace) -> Result:
    x = find(options.model)
    parts, active = x.params(), {name: x.active_params(name) for name in ACTIVE}  # type: ignore[arg-type]
    left_out = list(x.not_counted)
    try:
        weights = x.weight_bytes()
    except ScalebookError as error:
        weights, left_out = None, [*left_out, f"weight_bytes: {error}"]
    if options.json:
        data = {"total": x.total_params, "active": active, "parts": parts, "mtp": x.mtp_params, "weight_bytes": number(weights)}
        kept = {"assumptions": list(x.assumptions), "ignored": list(x.ignored), "not_counted": left_out}
        return 0, as_json(data | kept)
    rows = [(name, count(n), si(n), percent(n / x.total_params)) for name, n in parts.items()]
    rows += [("total", count(x.total_params), si(x.total_params), "")]
    rows += [(f"active, {name}", count(n), si(n), percent(n / x.total_params)) for name, n in active.items()]
    if x.mtp_params:
        rows.append(("further tokens (mtp), apart", count(x.mtp_params), si(x.mtp_params), ""))
    notes = ["", f"weights: {'not known' if weights is None else f'{count(weights)} bytes, {binary(weights)}'}"]
    notes += [f"active, {name}: {words}" for name, words in ACTIVE.items()]
    for what, words in (("assumed", x.assumptions), ("ignored", x.ignored), ("not counted", left_out)):
        notes += [f"{what}: {'; '.join(words)}"] if words else []
    title = _title(x, plural(x.total_params, "parameter"))
    return 0, str(Table(title, ("part", "parameters", "", "of all"), tuple(rows), tuple(notes)))


# ---- kv ----------------------------------------------------------------------------------------------------------------------


def _kv(options: argparse.Namespace) -> Result:
    x, S, B, dtype = find(options.model), options.seq_len, options.batch, options.dtype
    split = {"tp": options.tp, "page": options.page}
    nbytes, state, index = x.kv_bytes(S, B, dtype, **split), x.state_bytes(B, dtype), x.index_bytes(S, B, dtype, **split)
    constant, slope, start = affine(x, dtype, options.tp)
    line = {"constant": number(constant), "per_token": number(slope), "from": start}
    if options.json:
        data = {
            "bytes": nbytes,
            "bytes_per_token": x.kv_bytes(1, 1, dtype, tp=options.tp),
            "state_bytes": state,
            "index_bytes": index,
        }
        return 0, as_json({name: number(n) for name, n in data.items()} | {"affine": line})
    rows = [
        (name, count(n), binary(n)) for name, n in (("keys and values", nbytes), ("states", state), ("keys of indexers", index))
    ]
    rows.append(("all", count(nbytes + state + index), binary(nbytes + state + index)))
    devices = f" on each of {plural(options.tp, 'device')}" if options.tp > 1 else ""
    title = _title(x, f"{plural(B, 'sequence')} of {plural(S, 'token')}, {dtype}{devices}")
    notes = (
        "",
        f"A sequence, from {plural(start, 'token')} on: {count(float(constant))} + {digits(float(slope), 6)} bytes per token.",
    )
    return 0, str(Table(title, ("kept", "bytes", ""), tuple(rows), notes))


def affine(x: Model, dtype: str, tp: int) -> tuple[Fraction, Fraction, int]:
    """Bytes of keys and values of one sequence as constant + slope · tokens, and from how many tokens on: when all windows are full.

    >>> constant, slope, start = affine(Model.dense(L=2, D=8, F=8, N=1, H=4, V=8, window=16), "bf16", 1)
    >>> int(constant), int(slope), start
    (512, 0, 16)
    """
    spans = [cache.span for layer in x.layers for block in layer.blocks for cache in block.cache if cache.kind != "index"]
    period = math.lcm(*(span.width for span in spans if span.kind == "every"))
    start = max((span.width for span in spans if span.kind not in ("full", "every")), default=1)
    at = -(-start // period) * period
    low, high = (Fraction(x.kv_bytes(n, 1, dtype, tp=tp)) for n in (at, at + period))
    slope = (high - low) / period
    return low - slope * at, slope, start


# ---- flops -------------------------------------------------------------------------------------------------------------------


def _flops(options: argparse.Namespace) -> Result:
    x, B, T = find(options.model), options.batch, options.seq_len
    parts = x.flops_by_part(batch=B, seq_len=T, kind=options.kind, convention=options.convention, remat=options.remat)
    flops, tokens = sum(parts.values()), B * (1 if options.kind == "decode" else T)
    rule = {name: x.six_nd(tokens, name) for name in ACTIVE}  # type: ignore[arg-type]
    if options.json:
        data = {"flops": flops, "per_token": number(Fraction(flops, tokens)), "parts": parts, "six_nd": rule}
        return 0, as_json(data | {"ratio": flops / rule["all"]})
    rows = [(name, count(n), si(n, "FLOPs"), percent(n / flops)) for name, n in parts.items()]
    rows += [("all", count(flops), si(flops, "FLOPs"), ""), ("per token", count(flops / tokens), si(flops / tokens, "FLOPs"), "")]
    rows += [(f"6ND, {name}", count(n), si(n, "FLOPs"), f"× {digits(flops / n)}") for name, n in rule.items()]
    title = _title(x, f"{options.kind}, {plural(B, 'sequence')} of {plural(T, 'token')}, {options.convention} attention")
    title += f", remat {options.remat}" if options.kind == "train" else ""
    notes = ("", "6ND is the rule of thumb for training, by the parameters that are counted as N; × is how many times it all is.")
    return 0, str(Table(title, ("part", "FLOPs", "", "of all"), tuple(rows), notes))


# ---- the options of each -----------------------------------------------------------------------------------------------------


def add_commands(command: Command) -> None:
    """The three commands, each made by `command`."""
    params = command("params", _params, "count the parameters of a model, part by part", "scalebook params deepseek-v3")
    kv = command("kv", _kv, "count the bytes of a KV cache", "scalebook kv llama-3-8b --seq-len 8192 --batch 16 --dtype fp8")
    flops = command(
        "flops", _flops, "count the FLOPs of a model", "scalebook flops llama-3-8b --batch 1 --seq-len 8192 --kind train"
    )
    for sub in (params, kv, flops):
        sub.add_argument("model", metavar="MODEL", help=_MODEL)
    for sub in (kv, flops):
        sub.add_argument("--seq-len", type=whole(10**9), required=True, metavar="N", help="tokens of a sequence")
        sub.add_argument("--batch", type=whole(10**9), default=1, metavar="B", help="sequences (default 1)")
    kv.add_argument("--dtype", default="bf16", metavar="DTYPE", help="number format of the cache (default bf16)")
    kv.add_argument("--tp", type=whole(10**6), default=1, metavar="N", help="devices that split the heads (default 1)")
    kv.add_argument(
        "--page", type=whole(10**6), default=1, metavar="N", help="tokens of a page, to which lengths are rounded up (default 1)"
    )
    flops.add_argument(
        "--kind", choices=_KINDS, default="train", help="what is done (default train); decode makes the last of N tokens"
    )
    flops.add_argument(
        "--convention", choices=("causal", "full"), default="causal", help="pairs that the mask leaves, or all (default causal)"
    )
    flops.add_argument("--remat", choices=tuple(REMAT), default="none", help="what training computes twice (default none)")
