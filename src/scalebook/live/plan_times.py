"""The explorer of two plans that cross: a layer whose weights move or stay, as the number of tokens grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from scalebook import figures
from scalebook.explore.rivals import Rivals, fastest, rivals
from scalebook.live.controls import Choice, Slider
from scalebook.live.explorers import Explorer
from scalebook.live.inputs import mesh_from, mesh_python
from scalebook.products import Einsum, einsum
from scalebook.tables import Table
from scalebook.units import count, si

SPEC = "In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]"
LOW, HIGH = 512, 2**20
MOST = 6  # plans drawn, as many as there are colours
TOKENS = (LOW, 768, *(n * 2**k for k in range(8, 18) for n in (4, 5, 6, 7)), HIGH)  # multiples of 256 devices
SIDES = (1024, 2048, 4096, 5120, 8192, 12288, 14336, 16384, 20480, 28672, 32768)
MACHINES = {
    "v5e 16x16": ("X=16, Y=16", "v5e:16x16"),
    "v6e 16x16": ("X=16, Y=16", "v6e:16x16"),
    "v5e 4x4": ("X=4, Y=4", "v5e:4x4"),
    "v5p 4x4x4": ("X=4, Y=16", "v5p:4x4x4"),
    "v5p 4x8x8": ("X=8, Y=32", "v5p:4x8x8"),
}


DONE = {
    "all-gather": "gathered",
    "reduce-scatter": "summed",
    "all-reduce": "summed",
    "all-to-all": "re-dealt",
    "permute": "permuted",
}


def _product(machine: str, D: int, F: int) -> Einsum:
    return einsum(SPEC, {"T": LOW, "D": D, "F": F}, mesh_from(*MACHINES[machine]))


@lru_cache(maxsize=32)
def _rivals(machine: str, D: int, F: int) -> Rivals:
    """The plans that win somewhere: the same while only the marked number of tokens changes."""
    found = rivals(_product(machine, D, F), "T", LOW, HIGH, counted="tokens", most=MOST)
    return found.named(_labels(found))


def _labels(found: Rivals) -> tuple[str, ...]:
    """The plans' names. A plan has the same name whatever it competes with."""
    return tuple(name_of(c["moves"]) for c in found.view["lines"] if not c.get("dashed"))


def name_of(moves: Sequence[str]) -> str:
    """What becomes of the weights in a plan; of the other arrays only what is not as in the two plans of the chapter.

    >>> name_of(["all-to-all of In over XY", "all-gather of In over Y", "reduce-scatter of H over X"])
    'weights stay'
    >>> name_of(["all-gather of In over Y", "all-gather of W over X"])
    'weights move'
    >>> name_of(["all-to-all of W over X", "all-gather of W over YX", "all-to-all of H over Y"])
    'weights move, H re-dealt'
    """
    kinds: dict[str, list[str]] = {"In": [], "W": [], "H": []}
    for move in moves:
        kind, _, rest = move.partition(" of ")
        kinds[rest.partition(" ")[0]].append(kind)
    inputs, weights = kinds["In"], kinds["W"]
    result = " and ".join(dict.fromkeys(DONE[kind] for kind in kinds["H"]))
    if weights:
        name = "weights move" if "all-gather" in weights else "weights re-dealt"
        return f"{name}, H {result}" if result else name
    if inputs == ["all-to-all", "all-gather"] and result == "summed":
        return "weights stay"
    order = " first" if len(inputs) > 1 else ""
    others = [f"In {DONE[inputs[0]]}{order}"] if inputs else []
    return ", ".join(["weights stay", *others, *([f"H {result}"] if result not in ("", "summed") else [])])


def figure(machine: str, D: int, F: int, at: int) -> figures.Figure:
    """The curves of the plans, and the marked number of tokens."""
    view = _rivals(machine, D, F).at(at)
    return figures.draw("curves", {**view, "stops": {"key": "at", "values": list(TOKENS)}})


def python(machine: str, D: int, F: int, at: int) -> str:
    """The same in code."""
    sizes = f'{{"T": {LOW}, "D": {D}, "F": {F}}}'
    named = f", labels={_labels(_rivals(machine, D, F))!r}".replace("'", '"')
    return (
        f"import scalebook as sb\n\nmesh = {mesh_python(*MACHINES[machine])}\n"
        f'e = sb.einsum("{SPEC}", {sizes}, mesh)\nsb.figures.plan_times(e, "T", {LOW}, {HIGH}, counted="tokens", most={MOST}{named}, at={at})\n'
    )


def table(view: Mapping[str, Any]) -> Table:
    """The marked number of tokens, and every sixth of the curves' sizes: the time of each plan, and which is fastest."""
    lines = view["lines"]
    sizes = {p[0]: [c["points"][i][1] for c in lines] for i, p in enumerate(lines[0]["points"]) if i % 6 == 0}
    sizes[view["at"]["x"]] = [row["seconds"] for row in view["at"]["rows"]]
    rows = [(count(n), *(si(t, "s") for t in sizes[n]), lines[fastest(view, n, sizes[n])]["name"]) for n in sorted(sizes)]
    notes = [f"{c['name']}: {'; '.join(c['moves'])}." for c in lines if c["moves"]]
    return Table(view["subject"], ("tokens", *(c["name"] for c in lines), "fastest"), tuple(rows), tuple(notes))


EXPLORER = Explorer(
    name="plan_times",
    title="Plans of a layer as the tokens grow",
    controls=(
        Slider("at", "Tokens T", TOKENS, count),
        Slider("D", "Input width D", SIDES, count),
        Slider("F", "Output width F", SIDES, count),
        Choice(
            "machine",
            "Machine and mesh",
            tuple((name, f"{name.replace('x', '×')}: {mesh}") for name, (mesh, _) in MACHINES.items()),
            segments=False,
        ),
    ),
    start={"machine": "v5e 16x16", "D": 8192, "F": 28672, "at": 4096},
    figure=figure,
    python=python,
    table=table,
    slow=True,
)
