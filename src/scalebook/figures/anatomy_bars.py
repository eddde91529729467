"""A model taken apart: shares of its parameters and of its FLOPs as bars, and its layers in their order in the same colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scalebook.figures import stacked_bars
from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import Picture, escape, fill, rect, stroke, text, text_width
from scalebook.units import NO_BREAK, count, plural, si

View = Mapping[str, Any]
CELL, LINE, SWATCH = 30, 17, 14
LEAST = 3.0  # pixels of a cell that is drawn apart from its neighbours


def draw(view: View, width: float) -> Picture:
    """The bars, all as long as the picture is wide; below them a strip with a cell for each layer, and what each kind of layer is."""
    bars = stacked_bars.draw(view, width)
    body, y = [bars.body], bars.height + 24
    body.append(text(0, y, _strip_words(view, width), cls="sb-tick"))
    y += 8
    if view["runs"]:
        body.append(_strip(view, y, width))
        y += CELL + 12
    for kind in view["kinds"]:
        body.append(_cell(kind["blocks"], 0, y, SWATCH - 2, SWATCH))
        for line in _wrapped(_kind_words(kind), width - SWATCH - 6):
            body.append(text(SWATCH + 6, y + 11, line, size=12))
            y += LINE
        y += 4
    return Picture(width, y, "".join(body))


def _strip_words(view: View, width: float) -> str:
    long = f"its {plural(view['layers'], 'layer')}, from the first to the last; pale: attention to a part of the keys →"
    pale = any(block["pale"] for kind in view["kinds"] for block in kind["blocks"])
    if not view["runs"]:
        return f"its {plural(view['layers'], 'layer')}"
    if pale:
        return long if text_width(long, 12) < width else f"its {plural(view['layers'], 'layer')}; pale: only a part of the keys →"
    return f"its {plural(view['layers'], 'layer')}, from the first to the last →"


def _strip(view: View, y: float, width: float) -> str:
    """One cell a layer; where they would be too narrow, one for each stretch of equal layers."""
    each = width / view["layers"]
    apart = each >= LEAST
    cells, x = [], 0.0
    for kind, n in view["runs"]:
        blocks = view["kinds"][kind]["blocks"]
        for _ in range(n if apart else 1):
            long = each if apart else each * n
            cells.append(_cell(blocks, x, y, max(long - (1 if long >= LEAST else 0), 0.5), CELL))
            x += long
    return "".join(cells)


def _cell(blocks: list[View], x: float, y: float, width: float, height: float) -> str:
    """A layer: its blocks from top to bottom, in the colours of their parts."""
    each = height / max(len(blocks), 1)
    drawn = []
    for i, block in enumerate(blocks):
        colour = block["colour"]
        if block["pale"]:
            style = f"{fill(colour)};fill-opacity:.28;{stroke(colour)};stroke-width:1"
            drawn.append(rect(x + 0.5, y + i * each + 0.5, width - 1, each - 1.5, style=style))
        else:
            drawn.append(rect(x, y + i * each, width, each - 0.5, style=fill(colour)))
    return "".join(drawn)


def _kind_words(kind: View) -> str:
    where = f" ({kind['places']})" if kind["places"] and kind["count"] > 1 else ""
    each = f"{si(kind['params'])}{NO_BREAK}parameters".replace(f"{NO_BREAK}G{NO_BREAK}", f"{NO_BREAK}billion{NO_BREAK}")
    each = each.replace(f"{NO_BREAK}M{NO_BREAK}", f"{NO_BREAK}million{NO_BREAK}")
    return f"{plural(kind['count'], 'layer')}{where}: {kind['words']}; {each}{' each' if kind['count'] > 1 else ''}"


def _wrapped(words: str, room: float) -> Iterator[str]:
    """A text in lines that fit."""
    line = ""
    for word in words.split(" "):
        longer = f"{line} {word}".strip()
        if line and text_width(longer, 12) > room:
            yield line
            longer = word
        line = longer
    yield line


def label(view: View) -> str:
    """The fixed description of the picture."""
    said = [f"{row['name']} {row['text']}: {listed([p['name'] + ' ' + p['text'] for p in row['parts']])}" for row in view["rows"]]
    kinds = listed([_kind_words(kind) for kind in view["kinds"]])
    return f"The parts of {view['subject']} as shares of bars. {'; '.join(said)}. Below, its layers: {kinds}."


def describe(view: View) -> str:
    """How large it is, which part holds most and what that does, what a token costs and leaves behind; what was assumed or left out."""
    params, flops = view["rows"][0]["every"], view["rows"][-1]["every"]
    most = max(params, key=lambda p: p["value"])
    does = {p["name"]: p for p in flops}
    active = view["active"]["all"]
    used = f", of which a token uses {active:,}" if active != view["total"] else ""
    work = does[most["name"]]["text"] if most["name"] in does else "none"
    sentences = [
        f"{escape(view['subject'])} has <b>{view['total']:,}</b> parameters{used}. "
        f"<b>{escape(most['name'][0].upper() + most['name'][1:])}</b>: {most['text']} of the parameters and {work} of the FLOPs"
    ]
    mixing = does.get("scores and values")
    if mixing:
        sentences[0] += f"; scores and values: none and {mixing['text']}"
    S = count(view["seq_len"])
    each = f"The last of {S} tokens, made alone," if view["kind"] == "decode" else f"In a sequence of {S} tokens each"
    until = ", fewer once a window is full" if view["windows"] else ""
    kept = (
        f"leaves {si(view['token_bytes'], 'B')} of cache in bf16{until}" if view["token_bytes"] else "leaves no keys and values"
    )
    sentences.append(f"{each} costs {si(view['flops'], 'FLOPs')} and {kept}")
    if view["state_bytes"]:
        sentences[-1] += f"; a sequence has {si(view['state_bytes'], 'B')} of recurrent state besides"
    if view["assumed"] and not view["known"]:
        sentences.append(f"Not given and assumed: {escape(_few(view['assumed']))}")
    left_out = [*view["not_counted"], *([f"heads for further tokens, {count(view['mtp'])} parameters"] if view["mtp"] else [])]
    if left_out:
        sentences.append(f"Left out: {escape(_few(left_out))}")
    return ". ".join(sentences) + "."


def _few(names: list[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return listed(names) if not more else ", ".join(names[:most]) + more
