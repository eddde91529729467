"""A plan as a flow: the operands walk from layout to layout, meet in the local product, and the result walks on to where it is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scalebook.figures import time_bars
from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, escape, fill, line, path, raw_text, rect, shortened, text, text_width
from scalebook.units import plural, si

__all__ = ["describe", "draw", "label"]

View = Mapping[str, Any]
BOX, EDGE, PRODUCT, GAP = 46, 58, 50, 14
SIZES, SUB = (16, 14, 12), 12  # of the notation, in pixels, and of its subscripts


def draw(view: View, width: float) -> Picture:
    """A at the left, B at the right, the product across, C below; then the three times."""
    wide = (width - GAP) / 2
    deep = max(len(view["a"]), len(view["b"]))
    meet = deep * (BOX + EDGE) + BOX + EDGE / 2.0
    body = []
    for i, walk in enumerate(("a", "b")):
        left = i * (wide + GAP)
        nodes = [view["start"][i], *(e["after"] for e in view[walk])]
        y = 0.0
        for n, node in enumerate(nodes):
            body.append(_node(node, view, left, y, wide))
            y += BOX
            if n < len(view[walk]):
                body.append(_edge(view[walk][n], left + wide / 2, y, wide))
                y += EDGE
        body.append(_arrow(left + wide / 2, y, meet, free=True))
    body.append(_product(view, meet, width))
    y, middle, broad = meet + PRODUCT, width / 2, wide if width >= 480 else 0.75 * width
    nodes = [view["local"][2], *(e["after"] for e in view["c"])]
    body.append(_arrow(middle, y, y + 24, free=True))
    y += 24
    for n, node in enumerate(nodes):
        body.append(_node(node, view, middle - broad / 2, y, broad))
        y += BOX
        if n < len(view["c"]):
            body.append(_edge(view["c"][n], middle, y, width))
            y += EDGE
    if view["times"]:
        drawn, y = time_bars.rows(view["times"], width, y + 20)
        body.append(drawn)
    return Picture(width, y + 4, "".join(body))


def _node(node: View, view: View, left: float, y: float, wide: float) -> str:
    """A layout and what a device holds of it."""
    middle = left + wide / 2
    return (
        rect(left, y, wide, BOX, cls="sb-step-box", rx=5)
        + _notation(node, view, middle, y + 20, wide - 10)
        + text(middle, y + 38, f"{node['held']} on each device", cls="sb-note", text_anchor="middle")
    )


def _notation(node: View, view: View, x: float, y: float, room: float) -> str:
    """The layout with its mesh axes in their colours; in smaller letters where it is long, and without its end where it is longer."""
    letters = "".join(p["text"] for p in node["pieces"])
    subs = "".join(_apart(p).join(p.get("axes", ())) for p in node["pieces"])
    sub_width = text_width(subs, SUB, bold=True)
    size = next((s for s in SIZES if text_width(letters, s, bold=True) + sub_width <= room), None)
    if size is None:
        return text(x, y, shortened(node["layout"], room, SUB, bold=True), size=SUB, cls="sb-strong", text_anchor="middle")
    made = []
    for p in node["pieces"]:
        axes = p.get("axes", ())
        inner = _apart(p).join(f'<tspan style="{_ink(view["axes"][a])}">{escape(a)}</tspan>' for a in axes)
        sub = f'<tspan dy="3" style="font-size:{SUB}px">{inner}</tspan><tspan dy="-3">\u200a</tspan>' if axes else ""
        made.append(escape(p["text"]) + sub)
    style = None if size == SIZES[0] else f"font-size:{size}px"
    return raw_text(x, y, "".join(made), cls="sb-dim", text_anchor="middle", style=style)


def _apart(piece: View) -> str:
    """What stands between the axes of a subscript."""
    return "," if any(len(a) > 1 for a in piece.get("axes", ())) else ""


def _ink(colour: str) -> str:
    return fill("ink" if colour == "ink" else f"{colour}-text")


def _arrow(x: float, y: float, end: float, *, free: bool = False) -> str:
    cls = "sb-arrow sb-arrow-free" if free else "sb-arrow"
    style = fill("idle" if free else "ici")
    return line(x, y, x, end - 7, cls=cls) + path([(x - 5, end - 8), (x + 5, end - 8), (x, end - 1)], close=True, style=style)


def _edge(e: View, x: float, y: float, wide: float) -> str:
    """A move: what, over which axes, bytes received by each device, seconds; in two lines beside its arrow."""
    axes = ("" if all(len(a) == 1 for a in e["axes"]) else " ").join(e["axes"])
    spelt = (f"{e['name']} over {axes}", f"{e['name']}, {axes}")
    name = next((n for n in spelt if text_width(n, 13, bold=True) <= wide - 18), shortened(spelt[1], wide - 18, bold=True))
    room = wide / 2 - 14
    amount = "free: a part is kept" if e["free"] else " · ".join(t for t in (e["size"], e["seconds"]) if t)
    at = (
        x - min(room, max(text_width(name, 13, bold=True), text_width(amount, 12)) - room)
        if text_width(name, 13, bold=True) > room
        else x
    )
    at = max(at, x - wide / 2 + 7)
    colour = "idle-text" if e["free"] else "ici-text"
    return (
        _arrow(at, y, y + EDGE, free=bool(e["free"]))
        + text(at + 10, y + 23, name, cls="sb-strong", style=fill(colour))
        + text(at + 10, y + 41, amount, cls="sb-note")
    )


def _product(view: View, y: float, width: float) -> str:
    p = view["product"]
    parts = [f"{p['flops']} on each device", p["seconds"]]
    words = " · ".join(t for t in parts if t) + (f" · each is done {p['waste']} ×" if p["waste"] > 1 else "")
    return (
        rect(0.75, y, width - 1.5, PRODUCT, cls="sb-product-box", rx=5)
        + text(width / 2, y + 20, "local product", cls="sb-strong", text_anchor="middle")
        + text(width / 2, y + 38, shortened(words, width - 16, 12), size=12, text_anchor="middle")
    )


def _moves(view: View) -> Sequence[str]:
    return [
        f"{e['name']} of {e['after']['pieces'][0]['text'].rstrip('[')}"
        for walk in ("a", "b", "c")
        for e in view[walk]
        if not e["free"]
    ]


def label(view: View) -> str:
    """The fixed description of the picture."""
    moves = _moves(view)
    return f"The plan for {view['spec']} as a flow from layout to layout: {listed(list(moves)) if moves else 'no communication'}."


def describe(view: View) -> str:
    """The einsum, how many collectives, bytes and the times; and the best other plans."""
    moves = _moves(view)
    said = f"<code>{escape(view['spec'])}</code>: "
    if not moves:
        said += f"nothing is communicated, each device does {escape(view['product']['flops'])}"
    else:
        said += f'{plural(len(moves), "collective")}, each device receives <b class="sb-key-ici">{si(view["bytes"], "B")}</b>'
    if view["times"]:
        row = view["times"]["rows"][0]
        binding = next(p for p in row["parts"] if p["seconds"] == row["bound"])
        said += f"; {escape(binding['name'])} binds at {binding['text']}"
    if view["beside_best"]:
        said += f". Beside the best plan: {escape(view['beside_best'])}"
    others = "; ".join(f"{escape(o['name'])}: {escape(o['why'])}" for o in view["others"])
    return said + (f". Instead: {others}." if others else ".")
