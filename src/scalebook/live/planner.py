"""The planner: type a product of sharded arrays, get its plan, the plans beside it, and what every intermediate array takes up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from scalebook import figures
from scalebook.live.controls import Choice, Text
from scalebook.live.explorers import Explorer
from scalebook.live.inputs import dtypes_of, mesh_from, mesh_python, quoted, sizes_of
from scalebook.products import Einsum, solve
from scalebook.settings import read
from scalebook.tables import Table
from scalebook.units import si

MOST_LAYOUTS = {
    False: 2_500,
    True: 1_250,
}  # of one array, as in scalebook.settings: some two seconds, in a page several times that
SHOWN = 4  # plans to choose from
NAMES = ("the best", "the second", "the third", "the fourth")


@lru_cache(maxsize=32)
def product(spec: str, sizes: str, mesh: str, topology: str, dtype: str) -> Einsum:
    """The einsum that the fields spell.

    >>> product("A[I_X, J] * B[J, K] -> C[I_X, K]", "I=8, J=8, K=8", "X=2", "", "bf16").bytes
    0

    Raises what `scalebook.einsum` raises, and MeshError already for a product that would keep a page waiting.
    """
    on, dtypes = mesh_from(mesh, topology), dtypes_of(dtype)
    return solve(read(spec, sizes_of(sizes), on, dtypes, sub_axes=False, idle_axes=False, memory_limit=None, most=MOST_LAYOUTS))


def ranked(spec: str, sizes: str, mesh: str, topology: str, dtype: str) -> tuple[Einsum, ...]:
    """The best plan and those after it, at most four."""
    best = product(spec, sizes, mesh, topology, dtype)
    return (best, *best.alternatives[: SHOWN - 1])


def _plans(state: Mapping[str, Any]) -> tuple[tuple[int, str], ...]:
    found = ranked(**{key: value for key, value in state.items() if key != "plan"})
    return tuple((n + 1, NAMES[n]) for n in range(len(found)))


def settle(state: dict[str, Any]) -> dict[str, Any]:
    """A product with fewer plans than the last one shows its best."""
    return {**state, "plan": 1} if state["plan"] in range(len(_plans(state)) + 1, SHOWN + 1) else state


def figure(plan: int, **fields: str) -> figures.Figure:
    """The plan as a flow from layout to layout."""
    return figures.plan(ranked(**fields)[plan - 1], alternatives=SHOWN - 1 if plan == 1 else 0)


def python(plan: int, spec: str, sizes: str, mesh: str, topology: str, dtype: str) -> str:
    """The same in code."""
    shown = f"e, alternatives={SHOWN - 1}" if plan == 1 else f"e.alternatives[{plan - 2}]"
    return (
        f"import scalebook as sb\n\nmesh = {mesh_python(mesh, topology)}\n"
        f"e = sb.einsum({quoted(spec)}, {quoted(sizes_of(sizes))}, mesh, {quoted(dtypes_of(dtype))})\nsb.figures.plan({shown})\n"
    )


def table(view: Mapping[str, Any]) -> Table:
    """Every step: its array, axes, bytes received by each device, seconds, and the layout after it with the bytes it takes up."""
    head = ("step", "array", "over", "received", "time", "layout after", "held by each device")
    rows: list[tuple[str, ...]] = [("as given", _array(n), "", "", "", n["layout"], n["held"]) for n in view["start"]]
    rows += [_row(e) for e in (*view["a"], *view["b"])]
    c = view["local"][2]
    rows.append(("local product", _array(c), "", "", view["product"]["seconds"], c["layout"], c["held"]))
    rows += [_row(e) for e in view["c"]]
    notes = [f"Each device does {view['product']['flops']} and receives {si(view['bytes'], 'B')}."]
    if view["times"]:
        parts = [f"{p['name']} {p['text']}" for p in view["times"]["rows"][0]["parts"]]
        notes.append(f"Times: {', '.join(parts)}.")
    if view["beside_best"]:
        notes.append(f"Beside the best plan: {view['beside_best']}.")
    notes += [f"Instead: {other['name']}: {other['why']}." for other in view["others"]]
    return Table(view["spec"], head, tuple(rows), tuple(notes))


def _array(node: Mapping[str, Any]) -> str:
    return str(node["layout"]).partition("[")[0]


def _row(e: Mapping[str, Any]) -> tuple[str, ...]:
    after = e["after"]
    return e["name"], e["array"], " ".join(e["axes"]), e["size"] or "none", e["seconds"], after["layout"], after["held"]


EXPLORER = Explorer(
    name="planner",
    title="The plan of a sharded product",
    controls=(
        Text("spec", "Product", "In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]", wide=True),
        Text("sizes", "Sizes", "T=4096, D=8192, F=28672", wide=True),
        Text("mesh", "Mesh", "X=16, Y=16"),
        Text("topology", "Machine", "none, or one such as v5e:16x16"),
        Text("dtype", "Number format", "bf16"),
        Choice("plan", "Plan", _plans),
    ),
    start={
        "spec": "In[T_XY, D] * W[D_X, F_Y] -> H[T_X, F_Y]",
        "sizes": "T=4096, D=8192, F=28672",
        "mesh": "X=16, Y=16",
        "topology": "v5e:16x16",
        "dtype": "bf16",
        "plan": 1,
    },
    figure=figure,
    python=python,
    table=table,
    settle=settle,
    slow=True,
)
