"""An array in the tiles in which a TPU keeps it: what is padded, and whether another order of its dimensions pads less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalebook.errors import SizeError, shown
from scalebook.figures import Figure, tiles
from scalebook.live.controls import Choice, Text, Toggle
from scalebook.live.explorers import Explorer
from scalebook.tables import Table
from scalebook.units import count

DTYPES = ("fp32", "bf16", "int8", "fp8", "int4")
ORDERS = {"last dimension fastest": "", "order with the fewest bytes": '"best"'}


def shape_of(text: str) -> tuple[int, ...]:
    """The sizes of an array: whole numbers, joined by commas or ×, in brackets or not.

    >>> shape_of("[2048, 128, 4]"), shape_of("8 x 100")
    ((2048, 128, 4), (8, 100))

    Raises SizeError for anything else.
    """
    inside = text.strip()
    inside = inside[1:] if inside.startswith(("[", "(")) else inside
    inside = inside[:-1] if inside.endswith(("]", ")")) else inside
    pieces = [piece.strip() for piece in inside.rstrip().removesuffix(",").replace("x", ",").replace("×", ",").split(",")]
    if not 2 <= len(pieces) <= 8 or not all(n.isascii() and n.isdigit() and len(n) <= 12 for n in pieces):
        raise SizeError(
            f"cannot read {shown(text)}: the shape of an array in a picture is two to eight whole numbers of at most 12 digits, such as [8, 100]"
        )
    return tuple(map(int, pieces))


def figure(shape: str, dtype: str, best: bool) -> Figure:
    """The array as it is written, and beside it the order that pads least."""
    sizes = shape_of(shape)
    plain, fewest = ORDERS
    return tiles({plain: (sizes, dtype), fewest: (sizes, dtype, "best")} if best else [(sizes, dtype)])


def python(shape: str, dtype: str, best: bool) -> str:
    """The same in code."""
    sizes = shape_of(shape)
    if not best:
        return f'import scalebook as sb\n\nsb.figures.tiles([({sizes}, "{dtype}")])\n'
    pairs = "".join(f'    "{name}": ({sizes}, "{dtype}"{order and f", {order}"}),\n' for name, order in ORDERS.items())
    return f"import scalebook as sb\n\nsb.figures.tiles({{\n{pairs}}})\n"


def table(view: Mapping[str, Any]) -> Table:
    """The sizes before and after, and the bytes."""
    rows = tuple(
        (
            a["name"] or a["text"],
            f"{count(a['rows'])} × {count(a['lanes'])}",
            " × ".join(map(count, a["padded"])),
            count(a["others"]),
            " × ".join(map(count, a["tile"])),
            a["bytes_text"],
            a["padded_text"],
            a["factor_text"],
        )
        for a in view["arrays"]
    )
    head = ("array", "two fastest dimensions", "padded", "copies", "tile", "data", "in memory", "factor")
    return Table(f"{view['arrays'][0]['text']} in tiles", head, rows)


EXPLORER = Explorer(
    name="tiles",
    title="An array in its tiles",
    controls=(
        Text("shape", "Shape, two dimensions or more", "[8, 100]"),
        Choice("dtype", "Numbers", tuple((name, name) for name in DTYPES)),
        Toggle("best", "beside the order with the fewest bytes"),
    ),
    start={"shape": "[8, 100]", "dtype": "bf16", "best": True},
    figure=figure,
    python=python,
    table=table,
)
