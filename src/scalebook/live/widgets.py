"""An explorer in a notebook: its controls as ipywidgets, its figure redrawn at each change.

Without ipywidgets, and where a page of the book is built, the figure stands there without controls.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from scalebook.errors import ScalebookError, missing_extra
from scalebook.figures.svg import escape
from scalebook.live.controls import Choice, Control, Player, Slider, Text, Value
from scalebook.live.explorers import Live

WIDE = {"description_width": "initial"}


def display(live: Live) -> None:
    """Shows an explorer in a notebook: with its controls if that can be, else its figure, with a line on how to get them."""
    from IPython.display import HTML, display as show

    if os.environ.get("SCALEBOOK_STYLES") == "page":
        show(HTML(live._repr_html_()))
        return
    try:
        show(widget(live))
    except ScalebookError as lacking:
        show(HTML(f"{live._repr_html_()}<p>{escape(lacking)}</p>"))


def widget(live: Live) -> Any:
    """The controls above the figure, as one widget. MissingExtra without ipywidgets."""
    try:
        import ipywidgets
    except ImportError:
        raise missing_extra("ipywidgets", "widgets", "an explorer with its controls in a notebook") from None
    return _Board(ipywidgets, live).box


class _Board:
    """Controls bound to one figure. What the explorer settles is shown in the controls; a mistake is told in place."""

    def __init__(self, ipywidgets: Any, live: Live) -> None:
        self.explorer, self.state = live.explorer, live.state
        self.picture = ipywidgets.HTML(live._repr_html_())
        self.error = ipywidgets.HTML()
        self.inputs = {c.key: _made(ipywidgets, c, self.state) for c in self.explorer.controls}
        self.updating = False
        for key, made in self.inputs.items():
            made.observe(self._moved(key), "value")
        controls = [_with_buttons(ipywidgets, self.inputs[c.key]) if isinstance(c, Player) else self.inputs[c.key]
                    for c in self.explorer.controls]  # fmt: skip
        self.box = ipywidgets.VBox([*controls, self.error, self.picture])

    def _moved(self, key: str) -> Callable[[Any], None]:
        """What happens when the control of that key has a new value."""

        def moved(change: Any) -> None:
            if not self.updating:
                self._set(key, change["new"])

        return moved

    def _set(self, key: str, value: Value) -> None:
        control = self.explorer.by_key[key]
        try:
            state = self.explorer.state({**self.state, key: value})
            html = Live(self.explorer, state)._repr_html_()
        except ScalebookError as mistake:
            self.error.value = f'<p style="color:#c01f3a">{escape(mistake)}</p>'
            return
        self.state, self.error.value, self.picture.value = state, "", html
        self._follow(control)

    def _follow(self, moved: Control) -> None:
        """Brings the controls to the settled state."""
        self.updating = True
        try:
            for control in self.explorer.controls:
                _update(control, self.inputs[control.key], self.state)
        finally:
            self.updating = False


def _made(ipywidgets: Any, control: Control, state: dict[str, Any]) -> Any:
    """The widget of a control."""
    common = {"description": control.label, "style": WIDE, "value": state[control.key]}
    if isinstance(control, Slider):
        return ipywidgets.SelectionSlider(
            options=_pairs(control, state), continuous_update=True, layout={"width": "32em"}, **common
        )
    if isinstance(control, Player):
        return ipywidgets.IntSlider(min=0, max=control.end(state), layout={"width": "32em"}, **common)
    if isinstance(control, Choice):
        kind = ipywidgets.ToggleButtons if control.segments else ipywidgets.Dropdown
        return kind(options=_pairs(control, state), **common)
    if isinstance(control, Text):
        width = "48em" if control.wide else "28em"
        kind = ipywidgets.Textarea if control.lines > 1 else ipywidgets.Text
        return kind(placeholder=control.example, continuous_update=False, layout={"width": width}, **common)
    return ipywidgets.Checkbox(indent=False, **common)


def _pairs(control: Slider | Choice, state: dict[str, Any]) -> list[tuple[str, Value]]:
    """What a widget of options offers: words and values."""
    if isinstance(control, Slider):
        return [(control.shows(value), value) for value in control.allowed(state)]
    return [(words, value) for value, words in control.offered(state)]


def _update(control: Control, made: Any, state: dict[str, Any]) -> None:
    """Gives a widget its range and value in a state."""
    if isinstance(control, Player):
        made.max = control.end(state)
    elif isinstance(control, Slider | Choice) and list(made.options) != (pairs := _pairs(control, state)):
        made.options = pairs
    made.value = state[control.key]


def _with_buttons(ipywidgets: Any, slider: Any) -> Any:
    """A player's slider with buttons to step, and one to play that the reader starts."""
    play = ipywidgets.Play(value=slider.value, min=slider.min, max=slider.max, interval=700, repeat=False)
    ipywidgets.link((slider, "value"), (play, "value"))
    ipywidgets.link((slider, "max"), (play, "max"))
    return ipywidgets.HBox([play, slider])
