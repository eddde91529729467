"""What makes a drawn picture playable in a page: places that set the figure's state, and areas in which a handle is dragged.

Only pictures of a view with `"live": True` have them; a page that does not know them shows the same picture.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from scalebook.figures.svg import Point, h, path


def sets(**state: Any) -> str:
    """The value of `data-set` for an element that sets these keys when it is pointed at or tapped.

    >>> sets(device=5)
    '{"device": 5}'
    """
    return json.dumps(state)


def drag(x: float, y: float, width: float, height: float, key: str, stops: Iterable[tuple[float, Any]], axis: str = "x") -> str:
    """The area in which dragging sets a key: to the value of the nearest of `stops`, each a coordinate and a value.

    >>> drag(0, 0, 20, 10, "cycle", [(5, 0), (15, 1)])
    '<rect x="0" y="0" width="20" height="10" class="sb-drag" data-key="cycle" data-axis="x" data-stops="[[5,0],[15,1]]" fill="none" pointer-events="all"/>'
    """
    listed = json.dumps([[round(at, 1), value] for at, value in stops], separators=(",", ":"))
    box = {"x": x, "y": y, "width": width, "height": height}
    hook = {"cls": "sb-drag", "data_key": key, "data_axis": axis, "data_stops": listed, "fill": "none"}
    return h("rect", {**box, **hook, "pointer_events": "all"})


def play_head(x: float, top: float, bottom: float) -> str:
    """A line that is moved sideways: a triangle on top is its handle."""
    head: list[Point] = [(x - 10, top - 15), (x + 10, top - 15), (x, top)]
    stem = h("line", {"x1": x, "y1": top, "x2": x, "y2": bottom, "cls": "sb-now"})
    return stem + path(head, close=True, cls="sb-handle", style="fill:var(--sb-ink)")
