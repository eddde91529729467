"""The controls of an explorer: what a reader may set, how it is read from text, and how it stands in a page.

A control belongs to one key of the explorer's state. `html(id, value, state)` is the control in a page, where its input has the id
`<id>-<key>`; `spec(value, state)` is what a page needs to update it:

- `value`: of a slider or a player the place on it, else the value;
- `text`: what its output says;
- what depends on the state: `max` of a slider or a player, `values` of a slider, `options` of a choice.

A slider's allowed values stand in `data-values` (JSON); without it the value is the place itself, as in a player. A page may send
any value as text, and so may an address.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalebook.errors import ScalebookError, shown, unknown
from scalebook.figures.svg import escape, h

State = Mapping[str, Any]
Value = str | int | float | bool
Spec = dict[str, Any]
LONGEST = 200  # characters of a text field, unless it says otherwise


def written(value: Value) -> str:
    """A value as text that its control reads back.

    >>> written(8192), written(0.5), written(True)
    ('8192', '0.5', 'true')
    """
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(text: str) -> float | None:
    """The number that a text is, whole where it is whole."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class _Control:
    """What all controls have: the key that they set, and the words beside them."""

    key: str
    label: str

    @property
    def called(self) -> str:
        """The control in a message."""
        return f"{self.key} ({self.label})"

    def read(self, text: str, state: State | None = None) -> Value:
        """The value that a text stands for, as in an address; ScalebookError when there is none."""
        return self.check(text.strip(), state or {})

    def check(self, value: Any, state: State) -> Value:
        """The value, if the control can have it in this state; ScalebookError otherwise."""
        raise NotImplementedError

    def settled(self, value: Value, state: State) -> Value:
        """A number brought back into a range that another key has narrowed; anything else as it is."""
        return value

    def spec(self, value: Value, state: State) -> Spec:
        """What a page needs to update the control."""
        return {"value": value, "text": written(value)}


@dataclass(frozen=True)
class Slider(_Control):
    """A row of allowed values, in order; `values` and so their number may depend on the state. `shows` writes a value.

    >>> tokens = Slider("B", "Tokens", (1, 2, 4, 8), lambda n: f"{n:,} tokens")
    >>> tokens.read("4"), tokens.spec(4, {})
    (4, {'value': 2, 'text': '4 tokens', 'max': 3})
    """

    values: Sequence[Value] | Callable[[State], Sequence[Value]]
    shows: Callable[[Any], str] = written

    def allowed(self, state: State) -> Sequence[Value]:
        """The values that it can have in a state."""
        return self.values(state) if callable(self.values) else self.values

    def check(self, value: Any, state: State) -> Value:
        """The value itself, if it is allowed."""
        allowed = self.allowed(state)
        if isinstance(value, str) and not _has_texts(allowed):
            return self._refused(value, allowed) if (number := _number(value.strip())) is None else self.check(number, state)
        if isinstance(value, str) or _is_number(value):
            at = _place(value, allowed)
            if at is not None:
                return allowed[at]
        return self._refused(value, allowed)

    def _refused(self, value: Any, allowed: Sequence[Value]) -> Value:
        if _has_texts(allowed) or not allowed:
            raise unknown(self.called, value, map(written, allowed))
        rule = f"{self.called} is one of the {len(allowed)} values of its slider, from {allowed[0]} to {allowed[-1]}"
        near = f"; the nearest is {allowed[_nearest(value, allowed)]}" if _is_number(value) and value == value else ""  # no NaN
        raise ScalebookError(f"{rule}; found {shown(value)}{near}")

    def settled(self, value: Value, state: State) -> Value:
        """The nearest allowed value, where the allowed ones depend on the state."""
        if not callable(self.values) or not _is_number(value) or value != value:
            return value
        allowed = self.values(state)
        return allowed[_nearest(value, allowed)] if allowed and all(map(_is_number, (allowed[0], allowed[-1]))) else value

    def spec(self, value: Value, state: State) -> Spec:
        """Its place, words and end; its values where they depend on the state."""
        allowed = self.allowed(state)
        spec: Spec = {"value": _place(value, allowed), "text": self.shows(value), "max": len(allowed) - 1}
        if callable(self.values) and not _counts(allowed):
            spec["values"] = list(allowed)
        return spec

    def html(self, id: str, value: Value, state: State) -> str:
        """A native range."""
        allowed = self.allowed(state)
        data = None if _counts(allowed) else json.dumps(list(allowed))
        parts = (h("label", {"for": f"{id}-{self.key}"}, escape(self.label)), *_range(self, id, self.spec(value, state)))
        return h("div", {"cls": "sb-control sb-range", "data_key": self.key, "data_values": data}, *parts)


@dataclass(frozen=True)
class Player(_Control):
    """Steps from 0 to `last`: back, play and pause, forward, and a scrubber. It never starts by itself.

    >>> Player("step", "Step", 3, lambda i: f"step {i}").spec(2, {})
    {'value': 2, 'text': 'step 2', 'max': 3}
    """

    last: int | Callable[[State], int]
    shows: Callable[[Any], str] = written

    def end(self, state: State) -> int:
        """The last step in a state."""
        return self.last(state) if callable(self.last) else self.last

    def allowed(self, state: State) -> Sequence[Value]:
        """The steps that it has in a state."""
        return range(self.end(state) + 1)

    def check(self, value: Any, state: State) -> Value:
        """The step itself, if there is one of that number."""
        if isinstance(value, str) and (number := _number(value.strip())) is not None:
            value = number
        end = self.end(state)
        if not _is_number(value) or _place(value, range(end + 1)) is None:
            raise ScalebookError(f"{self.called} is a whole number from 0 to {end}; found {shown(value)}")
        return int(value)

    def settled(self, value: Value, state: State) -> Value:
        """The last step instead of one beyond it."""
        return self.end(state) if isinstance(value, int | float) and _is_number(value) and value > self.end(state) else value

    def spec(self, value: Value, state: State) -> Spec:
        """Its step, words and end."""
        return {"value": value, "text": self.shows(value), "max": self.end(state)}

    def html(self, id: str, value: Value, state: State) -> str:
        """Three buttons and a native range."""
        buttons = (
            h("button", {"type": "button", "cls": "sb-button", "data_do": do, "aria_label": spoken}, words)
            for do, spoken, words in (("back", "Step back", "‹"), ("play", None, "Play"), ("forward", "Step forward", "›"))
        )
        scrubber = _range(self, id, self.spec(value, state), aria_label=self.label)
        named = {"cls": "sb-control sb-player", "data_key": self.key, "role": "group", "aria_label": self.label}
        return h("div", named, *buttons, *scrubber)


@dataclass(frozen=True)
class Choice(_Control):
    """One of a few: pairs of a value and its words, which may depend on the state. A row of segments, or a list to open.

    >>> Choice("dtype", "Numbers", (("bf16", "bf16"), ("int8", "int8"))).read("int8")
    'int8'
    """

    options: Sequence[tuple[Value, str]] | Callable[[State], Sequence[tuple[Value, str]]]
    segments: bool = True

    def offered(self, state: State) -> Sequence[tuple[Value, str]]:
        """The options in a state."""
        return self.options(state) if callable(self.options) else self.options

    def allowed(self, state: State) -> Sequence[Value]:
        """The values of the options in a state."""
        return [value for value, _ in self.offered(state)]

    def check(self, value: Any, state: State) -> Value:
        """The value itself, if it is offered."""
        allowed = self.allowed(state)
        for known in allowed:
            if (value == known and isinstance(value, bool) == isinstance(known, bool)) or value == written(known):
                return known
        raise unknown(self.called, value, map(written, allowed))

    def spec(self, value: Value, state: State) -> Spec:
        """Its value and words; the options where they depend on the state."""
        offered = self.offered(state)
        spec: Spec = {"value": written(value), "text": next((words for v, words in offered if v == value), written(value))}
        if callable(self.options):
            spec["options"] = [[written(v), words] for v, words in offered]
        return spec

    def html(self, id: str, value: Value, state: State) -> str:
        """Native radio buttons in a fieldset, or a native select."""
        made = []
        for option, words in self.offered(state):
            attributes = {"value": written(option)}
            if self.segments:
                chosen = {"checked": "checked"} if option == value else {}
                radio = h("input", {"type": "radio", "name": f"{id}-{self.key}", **attributes, **chosen})
                made.append(h("label", {}, radio, h("span", {}, escape(words))))
            else:
                chosen = {"selected": "selected"} if option == value else {}
                made.append(h("option", attributes | chosen, escape(words)))
        if self.segments:
            inside = h("legend", {}, escape(self.label)) + h("div", {"cls": "sb-segments"}, *made)
            return h("fieldset", {"cls": "sb-control sb-choice", "data_key": self.key}, inside)
        field = f"{id}-{self.key}"
        inside = h("label", {"for": field}, escape(self.label)) + h("select", {"id": field}, *made)
        return h("div", {"cls": "sb-control sb-select", "data_key": self.key}, inside)


@dataclass(frozen=True)
class Text(_Control):
    """A field to type in, such as the sharding notation; what it means, the figure's function reads, with its own errors.

    Of several `lines` it is for what is pasted, up to `most` characters; a page keeps long texts out of its address.

    >>> Text("mesh", "Mesh", "X=2, Y=4").read(" X=4 ")
    'X=4'
    """

    example: str
    wide: bool = False
    lines: int = 1
    most: int = LONGEST

    def check(self, value: Any, state: State) -> Value:
        """The text, if it is one."""
        if not isinstance(value, str):
            raise ScalebookError(
                f"{self.called} must be a text, such as {self.example!r}; found {shown(value)} of type {type(value).__name__}"
            )
        if len(value) > self.most:
            raise ScalebookError(
                f"{self.called} has {len(value):,} characters: a field takes at most {self.most:,}, such as {self.example!r}"
            )
        return value.strip()

    def html(self, id: str, value: Value, state: State) -> str:
        """A native field; mistakes are told in the figure's error line."""
        field = f"{id}-{self.key}"
        attributes = {
            "id": field, "placeholder": self.example, "aria_describedby": f"{id}-error",
            "spellcheck": "false", "autocomplete": "off", "autocapitalize": "off",
        }  # fmt: skip
        cls = "sb-control sb-text" + " sb-text-wide" * self.wide
        if self.lines > 1:
            made = h(
                "textarea", {**attributes, "rows": self.lines}, f"\n{escape(value)}"
            )  # a browser takes the first line feed away
        else:
            made = h("input", {**attributes, "type": "text", "value": value})
        inside = h("label", {"for": field}, escape(self.label)) + made
        return h("div", {"cls": cls, "data_key": self.key}, inside)


@dataclass(frozen=True)
class Toggle(_Control):
    """Something that is on or off.

    >>> Toggle("compare", "beside a mesh").read("true")
    True
    """

    def allowed(self, state: State) -> Sequence[Value]:
        """Off and on."""
        return (False, True)

    def check(self, value: Any, state: State) -> Value:
        """The truth value, if it is one."""
        known = {"true": True, "1": True, "false": False, "0": False}
        if isinstance(value, str) and value.lower() in known:
            return known[value.lower()]
        if not isinstance(value, bool):
            raise ScalebookError(f"{self.called} is true or false; found {shown(value)}")
        return value

    def spec(self, value: Value, state: State) -> Spec:
        """Whether it is on."""
        return {"value": value, "text": "on" if value else "off"}

    def html(self, id: str, value: Value, state: State) -> str:
        """A native checkbox."""
        box = h("input", {"id": f"{id}-{self.key}", "type": "checkbox", "checked": "checked" if value else None})
        return h("div", {"cls": "sb-control sb-toggle", "data_key": self.key}, h("label", {}, box, f" {escape(self.label)}"))


Control = Slider | Player | Choice | Text | Toggle


def depends(control: Control) -> bool:
    """Whether what a control can have depends on the rest of the state."""
    return any(callable(getattr(control, name, None)) for name in ("values", "options", "last"))


def plain(control: Control, value: Any, like: Value) -> Any:
    """A value of the kind of `like`, a number or a text, which may be sent as text; ScalebookError for another kind.

    >>> plain(Player("step", "Step", 3), "4", 0)
    4
    """
    if _is_number(like) and isinstance(value, str):
        number = _number(value.strip())
        value = value if number is None else number
    if _is_number(value) != _is_number(like) or isinstance(value, str) != isinstance(like, str):
        kind = "a text" if isinstance(like, str) else "a number" if _is_number(like) else "true or false"
        raise ScalebookError(f"{control.called} must be {kind}, such as {written(like)}; found {shown(value)}")
    return value


def _range(control: Slider | Player, id: str, spec: Spec, **more: Any) -> tuple[str, str]:
    """A range at its place, and the output that says its value."""
    field = f"{id}-{control.key}"
    attributes = {"id": field, "type": "range", "min": 0, "max": spec["max"], "step": 1, "value": spec["value"]}
    return h("input", {**attributes, "aria_valuetext": spec["text"], **more}), h("output", {"for": field}, escape(spec["text"]))


def _has_texts(allowed: Sequence[Value]) -> bool:
    """Whether there are texts among the allowed values; a range, which may be long, has none."""
    return not isinstance(allowed, range) and any(isinstance(v, str) for v in allowed)


def _place(value: Any, allowed: Sequence[Value]) -> int | None:
    """The place of a value among the allowed ones."""
    if isinstance(allowed, range) and isinstance(
        value, float
    ):  # a range looks for a whole number without a walk, for others with one
        if not value.is_integer():
            return None
        value = int(value)
    try:
        return allowed.index(value)
    except ValueError:
        return None


def _nearest(value: Any, allowed: Sequence[Any]) -> int:
    """The place of the allowed number that is nearest."""
    if value <= allowed[0] or value >= allowed[-1]:
        return 0 if value <= allowed[0] else len(allowed) - 1
    if isinstance(allowed, range):
        at: int = round((value - allowed.start) / allowed.step)
        return at
    return min(range(len(allowed)), key=lambda i: abs(allowed[i] - value))


def _counts(allowed: Sequence[Value]) -> bool:
    """Whether each value is its own place: 0, 1, 2, …"""
    return isinstance(allowed, range) and allowed.start == 0 and allowed.step == 1
