"""Explorers: figures with controls, each in a file of its own, and one in a state, for a notebook.

An explorer's state is a dict of plain values (str, int, float, bool), one for each control. A file `scalebook/live/<name>.py`
defines `EXPLORER`; it is loaded when that explorer is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from scalebook.errors import ScalebookError, shown, unknown, within
from scalebook.figures.figure import Figure
from scalebook.live.controls import Control, Value, depends, plain
from scalebook.tables import Table
from scalebook.units import as_number, is_array

__all__ = ["EXPLORERS", "Explorer", "Live", "Table", "explorer"]

NAMES = (
    "roofline",
    "planner",
    "plan_times",
    "latency",
    "sharded_array",
    "collective",
    "torus",
    "systolic",
    "tiles",
    "memory_levels",
    "model_anatomy",
    "attention_share",
    "kv_cache",
)
State = dict[str, Any]


def same(state: State) -> State:
    """The state as it is."""
    return state


@dataclass(frozen=True)
class Explorer:
    """A figure, and what a reader may set in it.

    - `figure(**state)` gives the figure of a state, `python(**state)` code that gives the same one, `table(view)` the same data
      as a table;
    - `settle(state)` brings keys back into range that depend on others (a number format that another chip lacks). Numbers of
      sliders and players whose range depends on the state need no settling: they are brought into it after. It never hides a mistake;
    - `slow`: it may take longer than a frame, so a page asks for it in a worker of its own.
    """

    name: str
    title: str
    controls: tuple[Control, ...]
    start: Mapping[str, Value]
    figure: Callable[..., Figure]
    python: Callable[..., str]
    table: Callable[[Mapping[str, Any]], Table]
    settle: Callable[[State], State] = same
    slow: bool = False

    def __repr__(self) -> str:
        return f"Explorer({self.name}: {', '.join(control.key for control in self.controls)})"

    @cached_property
    def by_key(self) -> dict[str, Control]:
        """The controls by their keys."""
        return {control.key: control for control in self.controls}

    def state(self, given: Mapping[str, Any] | None = None) -> State:
        """A whole state from part of one: the rest from `start`, texts read, dependent keys settled, every value checked.

        Raises ScalebookError for an unknown key, and for a value that its control cannot have.
        """
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise ScalebookError(
                f"a state of the explorer {self.name} is a mapping of keys to values; found {shown(given)} of type {type(given).__name__}"
            )
        for key in given:
            if not within(key, self.by_key):
                raise unknown(f"key of the explorer {self.name}", key, self.by_key)
        state = {**self.start, **{key: self._simple(key, value) for key, value in given.items()}}
        for control in self.controls:
            value, like = state[control.key], self.start[control.key]
            # what depends on other keys is checked at the end, once it is settled
            state[control.key] = plain(control, value, like) if depends(control) else control.check(value, state)
        state = self.settle(state)
        for control in self.controls:
            state[control.key] = control.check(control.settled(state[control.key], state), state)
        return state

    def _simple(self, key: str, value: Any) -> Value:
        """A value that a state can have; NumPy's scalars become Python's numbers."""
        if isinstance(value, str | int | float | bool):
            return value
        number = None if is_array(value) else as_number(value)
        if not isinstance(number, int | float):
            rule = f"{self.by_key[key].called} must be a text, a number or a truth value"
            raise ScalebookError(f"{rule}; found {shown(value)} of type {type(value).__name__}")
        return number

    def live(self, state: Mapping[str, Any]) -> Figure:
        """The figure of a whole state, with what makes it respond to a hand in its picture."""
        figure = self.figure(**state)
        return replace(figure, view={**figure.view, "live": True})


class _Registry(Mapping[str, Explorer]):
    """The explorers by name, each loaded when it is first asked for."""

    def __getitem__(self, name: str) -> Explorer:
        if name not in NAMES:
            raise KeyError(name)
        found: Explorer = importlib.import_module(f"scalebook.live.{name}").EXPLORER
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


EXPLORERS: Mapping[str, Explorer] = _Registry()


def named(name: object) -> Explorer:
    """The explorer of that name.

    >>> named("memory_levels")
    Explorer(memory_levels: chip, nbytes)

    Raises ScalebookError, with the nearest names, when there is none.
    """
    if not isinstance(name, str) or name not in NAMES:
        raise unknown("explorer", name, NAMES)
    return EXPLORERS[name]


@dataclass(frozen=True)
class Live:
    """An explorer in a state. A notebook shows it with its controls where ipywidgets is installed, else as a figure."""

    explorer: Explorer
    state: State

    @cached_property
    def figure(self) -> Figure:
        """The figure of this state."""
        return self.explorer.figure(**self.state)

    def python(self) -> str:
        """Code that gives the figure."""
        return self.explorer.python(**self.state)

    def table(self) -> Table:
        """What the figure shows, as a table."""
        return self.explorer.table(self.figure.view)

    def widget(self) -> Any:
        """The controls and the figure as one widget; MissingExtra without ipywidgets."""
        from scalebook.live.widgets import widget

        return widget(self)

    def _repr_html_(self) -> str:
        return self.figure._repr_html_()

    def _ipython_display_(self) -> None:
        from scalebook.live.widgets import display

        display(self)

    def __repr__(self) -> str:
        given = "".join(f", {key}={value!r}" for key, value in self.state.items())
        return f"explorer({self.explorer.name!r}{given})"


def explorer(name: str, /, **state: Any) -> Live:
    """A figure with controls, opened in a state: what is not given is as the explorer starts.

    >>> explorer("memory_levels", nbytes=10**9).state
    {'chip': 'v5e', 'nbytes': 1000000000}

    Raises ScalebookError for an unknown explorer or key, for a value that a control cannot have, and what its figure raises.
    """
    chosen = named(name)
    live = Live(chosen, chosen.state(state))
    _ = live.figure  # a mistake is told here, not when it is shown
    return live
