"""What the torus figure says: its sentence, its label, and the words over each grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scalebook.figures.roofline_words import listed
from scalebook.figures.svg import escape
from scalebook.units import count, digits, plural, si


def size_words(view: Mapping[str, Any]) -> str:
    """The chip and the shape: TPU v5e 4x4."""
    return f"{view['chip']} {view['spec'].partition(':')[2]}"


def place_words(view: Mapping[str, Any], place: Sequence[int]) -> str:
    """The coordinates of a chip in its slice, axes of one chip with them, as in the slice's name.

    >>> place_words({"whole": [2, 2, 1]}, [0, 1])
    '(0, 1, 0)'
    """
    along = iter(place)
    return f"({', '.join(str(next(along) if n > 1 else 0) for n in view['whole'])})"


def axis_words(view: Mapping[str, Any], along: int) -> tuple[str, str]:
    """An axis of the slice as the picture shows it: all of its rings or lines, and one of them.

    >>> axis_words({"shape": [4, 8]}, 0)
    ('the columns', 'each column')
    """
    last = len(view["shape"]) - 1 - along
    if last == 0 and along == 0:
        return "the row", "the row"
    return (
        ("the rows", "each row"),
        ("the columns", "each column"),
        ("the lines through the planes", "each line through the planes"),
    )[last]


def wrap_words(view: Mapping[str, Any], grid: Mapping[str, Any]) -> str:
    """Which axes close into rings."""
    wraps = [w for w, n in zip(grid["wraps"], view["shape"], strict=True) if n > 1]
    if not wraps:
        return "one chip, no links"
    if not any(wraps):
        return "no wraparound"
    if all(wraps):
        return "all axes wrap around" if len(wraps) > 2 else "both axes wrap around" if len(wraps) == 2 else "it wraps around"
    return f"only {listed([axis_words(view, i)[0] for i, w in enumerate(grid['wraps']) if w])} wrap around"


def grid_words(view: Mapping[str, Any], grid: Mapping[str, Any]) -> str:
    """The name of a grid: torus or mesh, and, beside another one, which of the two this slice is."""
    if max(view["shape"]) == 1:
        return "one chip, no links"
    name = "torus" if any(grid["wraps"]) else "mesh"
    said = f"*{name}*: {wrap_words(view, grid)}"
    return said if len(view["grids"]) == 1 else f"{said}{' (as it is)' if grid['real'] else ' (to compare)'}"


def distance_words(view: Mapping[str, Any], grid: Mapping[str, Any]) -> str:
    """How far the farthest chip is, and the mean of all."""
    what = "farthest" if view["from"] else "farthest pair"
    return f"{what} {plural(grid['farthest'], 'hop')}, mean {digits(grid['mean'])}"


def label(view: Mapping[str, Any]) -> str:
    """The fixed description of the picture."""
    shape = " by ".join(map(str, view["shape"]))
    grids = " beside ".join(f"a {grid_words(view, g).replace('*', '')}" for g in view["grids"])
    return f"{size_words(view)}: {shape} chips and the links between them, {grids}."


def describe(view: Mapping[str, Any]) -> str:
    """How far the chips are apart, who is whose neighbour, and where mesh axes lie."""
    said = [_distances(view)] if view["from"] or not view["mesh"] else []
    if any(grid["near"] for grid in view["grids"]):
        said += [_neighbours(view), _links(view)]
    if view["mesh"]:
        said.append(f"On {escape(size_words(view))}, {listed([_axis(view, m) for m in view['mesh']])}.")
    if view["slices"] > 1:
        said.append(f"This is one of {view['slices']} slices; between them there is the data-center network.")
    return " ".join(said)


def _distances(view: Mapping[str, Any]) -> str:
    start = f"From chip {place_words(view, view['from'])}" if view["from"] else "From any chip"
    first, *other = view["grids"]
    if not other:
        shown = wrap_words(view, first)
        return (
            f"{start} of {escape(size_words(view))} the farthest chip is <b>{plural(first['farthest'], 'hop')}</b> away, "
            f"the mean {digits(first['mean'])}; {shown}."
        )
    (second,) = other
    if first["hops"] == second["hops"]:
        near = f"<b>{plural(first['farthest'], 'hop')}</b>, {digits(first['mean'])} on average"
        if first["diameter"] == second["diameter"]:
            return f"{start} wraparound brings no chip nearer: at most {near}."
        return (
            f"{start} itself wraparound brings no chip nearer: at most {near}. But the slice's longest way falls from "
            f"<b>{second['diameter']}</b> to <b>{plural(first['diameter'], 'hop')}</b>, and a cut through the middle crosses "
            f"<b>{plural(first['cut']['links'], 'link')}</b> instead of <b>{second['cut']['links']}</b>."
        )
    return (
        f"{start} the farthest chip is <b>{plural(first['farthest'], 'hop')}</b> away with wraparound and "
        f"<b>{plural(second['farthest'], 'hop')}</b> without; the mean falls from {digits(second['mean'])} to {digits(first['mean'])}, "
        f"and a cut through the middle crosses <b>{plural(first['cut']['links'], 'link')}</b> instead of <b>{second['cut']['links']}</b>."
    )


def _neighbours(view: Mapping[str, Any]) -> str:
    """The chips one link away, in each grid where they differ."""

    def those(grid: Mapping[str, Any]) -> str:
        places = [place_words(view, place) for place in sorted(grid["near"])]
        return f"{places[0]} alone" if len(places) == 1 else listed(places)

    first, *other = view["grids"]
    lost = f"; without wraparound {those(other[0])}" if other and other[0]["near"] != first["near"] else ""
    return f"Its {'neighbours are' if len(first['near']) > 1 else 'neighbour is'} {those(first)}{lost}."


def _links(view: Mapping[str, Any]) -> str:
    """What the whole slice has: links, the longest way, the narrowest cut."""
    real = view["slice"]
    rate = real["cut_bytes_per_s"]
    carries = "" if rate is None else f", and its narrowest cut into halves carries <b>{si(rate, 'B/s')}</b> one way"
    return (
        f"As it is, the slice has <b>{plural(real['links'], 'link')}</b>, {count(real['closing']) if real['closing'] else 'none'} of them "
        f"around; no two chips are further apart than {plural(real['diameter'], 'hop')}{carries}."
    )


def _axis(view: Mapping[str, Any], axis: Mapping[str, Any]) -> str:
    """Where a mesh axis lies: <b>X</b> = 4 lies on the rows."""
    return f'<b class="sb-key-{axis["colour"]}">{escape(axis["axis"])}</b> = {axis["size"]} lies on {on_words(view, axis)}'


def on_words(view: Mapping[str, Any], axis: Mapping[str, Any]) -> str:
    """The physical axes under a mesh axis, outer to inner, with the share of each."""
    parts = []
    for p in axis["pieces"]:
        every, one = axis_words(view, p["along"])
        if p["size"] == view["shape"][p["along"]]:
            parts.append(every)
        elif p["stride"] > 1:
            parts.append(f"every {_nth(p['stride'])} chip of {one}")
        else:
            near = "pairs of" if p["size"] == 2 else f"runs of {p['size']}"
            parts.append(f"{near} neighbours in {one}")
    parts += [{"core": "the devices of a chip", "dcn": "the slices"}.get(name, name) for name in axis["beyond"]]
    return " and ".join(parts) or "nothing"


def _nth(n: int) -> str:
    return "other" if n == 2 else f"{n}rd" if n == 3 else f"{n}th"
