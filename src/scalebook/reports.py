"""What a product's plan looks like as text, as rows and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from scalebook.layouts import Sharding
from scalebook.meshes import machine_name
from scalebook.notation import subscript
from scalebook.settings import Setting, whole
from scalebook.tables import Table
from scalebook.units import binary, digits, si

if TYPE_CHECKING:
    from scalebook.products import Einsum, Move

MOST = 4  # alternatives shown

Row = tuple[str, str, str, str]


def joined(axes: Iterable[str], s: Setting) -> tuple[str, ...]:
    """Axes as the reader named them: a run of all sub-axes of X, in order, is X; a lone sub-axis keeps its name."""
    out = list(axes)
    for axis in s.given.axis_names if s.options[0] else ():
        parts = list(s.given.sub_axes(axis))
        for i in range(len(out) - len(parts) + 1):
            if parts and out[i : i + len(parts)] == parts:
                out[i : i + len(parts)] = [axis]
                break
    return tuple(out)


def written(x: Sharding, s: Setting) -> str:
    """A sharding in the reader's own axes."""
    return str(Sharding(x.array, x.letters, tuple(joined(d, s) for d in x.dims), joined(x.pending, s)))


def name(m: Move, s: Setting) -> str:
    """A move as the book writes it: all-gather_X."""
    return m.kind + subscript(joined(m.axes, s))


def table(e: Einsum) -> list[Row]:
    """Each step: what, how the layout changes, bytes received per device (FLOPs for the product), seconds."""
    s, rows = e.setting, []
    for m in e.moves:
        free = m.kind == "slice"
        seconds = "" if m.seconds is None or free else si(m.seconds, "s")
        rows.append(
            (name(m, s), f"{written(m.before, s)} -> {written(m.after, s)}", "free" if free else si(m.bytes, "B"), seconds)
        )
    a, b, c = (written(x, s) for x in e.local)
    busy = "" if e.time.math is None else si(e.time.math, "s")
    at = sum(m.array != e.C.array for m in e.moves)
    rows.insert(at, ("local product", f"{a} * {b} -> {c}", si(e.flops_per_device, "FLOPs"), busy))
    return rows


def setting_line(e: Einsum) -> str:
    """Sizes, mesh and dtypes in one line."""
    s = e.setting
    types = dict(zip((x.array for x in s.arrays), s.dtypes, strict=True))
    dtypes = s.dtypes[0] if len(set(s.dtypes)) == 1 else ", ".join(f"{a} {dt}" for a, dt in types.items())
    mesh = ", ".join(f"{a}={n}" for a, n in s.given.shape.items()) or "one device"
    machine = f" on {machine_name(s.given.topology)}" if s.given.topology is not None else ""
    return f"{', '.join(f'{d}={n:,}' for d, n in s.sizes.items())}; mesh {mesh}{machine}; {dtypes}"


def remarks(e: Einsum) -> list[str]:
    """What a reader should know about the plan: repeated work, the dtype of sums, sub-axes, what is not known."""
    s, out = e.setting, []
    if e.waste > 1 and e.plan.split == 1:
        out.append(f"Every device does all the work: {e.waste} × the FLOPs.")
    elif e.waste > 1:
        out.append(f"Groups of {e.waste} devices do the same work: {e.waste} × the FLOPs.")
    if any(m.before.pending and m.kind in ("reduce-scatter", "all-reduce") and m.array == e.C.array for m in e.moves):
        out.append(f"Sums of {e.C.array} travel in its dtype, {s.dtypes[2]}.")
    if s.options[0]:
        parts = [f"{a} = {'·'.join(s.given.sub_axes(a))}" for a in s.given.axis_names if len(s.given.sub_axes(a)) > 1]
        out += [f"Sub-axes, major first: {', '.join(parts)}."] if parts else []
    if s.memory_limit is not None:
        out.append(f"No local block is larger than {exact_bytes(s.memory_limit)}.")
    return out


def exact_bytes(nbytes: float) -> str:
    """A memory limit with a binary prefix, and to the byte where the prefix rounds it.

    >>> [exact_bytes(n).replace("\u00a0", " ") for n in (4096, 4095)]
    ['4 KiB', '4 KiB (4095 bytes)']
    """
    if nbytes >= 10**18:
        return binary(nbytes)
    power = next((p for p in range(5, 0, -1) if nbytes >= 1024**p), 0)
    exact = nbytes * 100 % 1024**power == 0 and nbytes < 1000 * 1024**power
    return binary(nbytes) if exact else f"{binary(nbytes)} ({whole(nbytes)} bytes)"


def summary(e: Einsum) -> str:
    """A plan's moves in a few words."""
    said = [f"{name(m, e.setting)} of {m.array}" for m in e.collectives]
    return ", ".join(said) or "no communication"


def why(e: Einsum, best: Einsum, names: Mapping[str, str] | None = None) -> str:
    """What a plan costs beside the best one, and what makes it dearer; `names` may rename resources."""
    waste = f"; {digits(best.plan.split / e.plan.split)} × the FLOPs per device" if e.plan.split < best.plan.split else ""
    if e.setting.timed:
        mine, its = seconds(e), seconds(best)
        binds = max((t, r) for r, t in e.time.parts.items() if t is not None)[1]
        binds = (names or {}).get(binds, binds)
        if its > 0 and mine / its > 1.0005:
            return f"{digits(mine / its)} × slower, {binds} binds{waste}"
        extra = (
            f"{digits(e.time.comms / best.time.comms)} × the communication"
            if best.time.comms
            else f"{si(e.time.comms, 's')} of communication"
        )
        return f"as fast while {binds} binds, but {extra}{waste}"
    if not best.bytes:
        return (f"{si(e.bytes, 'B')} instead of none" if e.bytes else "as few bytes") + waste
    return (f"{digits(e.bytes / best.bytes)} × the bytes" if e.bytes != best.bytes else "as many bytes") + waste


def seconds(e: Einsum) -> float:
    """The longest of the times that are known."""
    return max((t for t in e.time.parts.values() if t is not None), default=0.0)


def explain(e: Einsum) -> str:
    """The einsum, its steps, what binds, remarks, and the plans that lost."""
    rows = table(e)
    width = [max(len(r[n]) for r in rows) for n in range(4)]
    lines = [e.spec.strip(), setting_line(e)]
    lines += [f"  {r[0]:<{width[0]}}  {r[1]:<{width[1]}}  {r[2]:>{width[2]}}  {r[3]:>{width[3]}}".rstrip() for r in rows]
    lines.append(times_line(e))
    lines += remarks(e)
    others = [o for o in e.alternatives if o.plan.count <= max(4, e.plan.count + 1)][:MOST] if e.plan is e.ranked[0] else []
    if others:
        more = len(e.alternatives) > len(others)
        lines.append("Other plans" + (f" ({len(others)} of {len(e.alternatives)})" if more else "") + ":")
        lines += [f"  {summary(o)}: {why(o, e)}" for o in others]
    return "\n".join(lines)


def times_line(e: Einsum) -> str:
    """Bytes received, and the times side by side where they are known."""
    received = f"Each device receives {si(e.bytes, 'B')}" if e.bytes else "Nothing is communicated"
    known = {r: t for r, t in e.time.parts.items() if t is not None}
    if not known:
        return f"{received}; seconds need a mesh on a topology."
    parts = ", ".join(f"{r} {si(t, 's')}" for r, t in known.items())
    unknown = [r for r in e.time.parts if r not in known]
    tail = f" ({', '.join(unknown)} unknown)" if unknown else ""
    binds = max(known, key=lambda r: known[r])
    return f"{received}. {parts}{tail}: {binds} binds, {si(max(known.values()), 's')} if all overlap, {si(sum(known.values()), 's')} if nothing does."


def html(e: Einsum) -> str:
    """The table as HTML, for notebooks."""
    notes = " ".join([times_line(e), *remarks(e)])
    return html_table(e.spec.strip(), ("step", "layout", "per device", "time"), table(e), notes, setting_line(e))


def html_table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]], notes: str, small: str = "") -> str:
    """Rows as an HTML table with a caption and lines below."""
    table = Table(caption, tuple(head), tuple(tuple(row) for row in rows), tuple(n for n in (small, notes) if n))
    return table._repr_html_()
