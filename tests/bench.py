"""Speed goals beside what this machine does: `make bench`. Each line is measured in fresh processes, the best of a few; then the pages."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from scalebook.units import si

MESH = "m = sb.mesh({'X': 16, 'Y': 16}, on='v5e:16x16')"
SIZES = "{'B': 65536, 'D': 8192, 'F': 28672}"

CONFIG = (
    "c = dict(model_type='deepseek_v3', vocab_size=129280, hidden_size=7168, intermediate_size=18432, moe_intermediate_size=2048, "
    "num_hidden_layers=61, num_attention_heads=128, n_routed_experts=256, q_lora_rank=1536, kv_lora_rank=512); sb.Model.from_hf(c)"
)

# what, goal in seconds, preparation (not timed), code (timed), runs in one process
GOALS = (
    ("import scalebook", 0.1, "", "import scalebook", 1),
    ("first chip: the catalogue is read", 0.1, "import scalebook as sb", "sb.chip('v5e')", 1),
    ("a chip, again", 10e-6, "import scalebook as sb; sb.chip('v5e')", "sb.chip('v5e')", 1000),
    ("topology and mesh on two axes", 0.05, "import scalebook as sb; sb.chip('v5e')", MESH, 1),
    ("roofline of a matmul", 50e-6, "import scalebook as sb; sb.chip('v5e')", "sb.matmul_time(1024, 8192, 8192, 'v5e')", 1000),
    (
        "einsum on two axes, first time",
        0.05,
        f"import scalebook as sb; import scalebook.products; {MESH}",
        f"sb.einsum('In[B_X, D_Y] * W[D_X, F_Y] -> Out[B_X, F_Y]', {SIZES}, m).time",
        1,
    ),
    (
        "einsum on three axes, first time",
        0.5,
        "import scalebook as sb; import scalebook.products; m = sb.mesh({'X': 4, 'Y': 4, 'Z': 4})",
        f"sb.einsum('In[B_XZ, D_Y] * W[D_X, F_Y] -> Out[B_XZ, F_Y]', {SIZES}, m).bytes",
        1,
    ),
    (
        "einsum, the same pattern again",
        1e-3,
        f"import scalebook as sb; {MESH}; sb.einsum('In[B_X, D_Y] * W[D_X, F_Y] -> Out[B_X, F_Y]', {SIZES}, m).time",
        "sb.einsum('In[B_X, D_Y] * W[D_X, F_Y] -> Out[B_X, F_Y]', {'B': 32768, 'D': 8192, 'F': 28672}, m).time",
        100,
    ),
    (
        "an all-gather's time",
        0.2e-3,
        f"import scalebook as sb; {MESH}; sb.all_gather(2**30, m, 'XY')",
        "sb.all_gather(2**29, m, 'XY')",
        200,
    ),
    (
        "first model: the table is read",
        0.1,
        "import scalebook as sb; import scalebook.transformer",
        "sb.model('llama-3-8b')",
        1,
    ),
    (
        "counting a model from its config",
        1e-3,
        f"import scalebook as sb; {CONFIG}",
        "x = sb.Model.from_hf(c); x.total_params; x.flops(batch=1, seq_len=4096); x.kv_bytes(4096)",
        200,
    ),
    (
        "drawing a roofline",
        16e-3,
        "import scalebook as sb; f = sb.figures.roofline('v5e'); f._repr_html_()",
        "sb.figures.roofline('v5e')._repr_html_()",
        50,
    ),
    (
        "scalebook chips, the whole command",
        0.4,
        "import subprocess, sys",
        "subprocess.run([sys.executable, '-m', 'scalebook', 'chips'], capture_output=True, check=True)",
        1,
    ),
)

_TIMED = """
import time
{before}
start = time.perf_counter()
for _ in range({runs}):
    {code}
print((time.perf_counter() - start) / {runs})
"""


def measure(before: str, code: str, runs: int, *, repeat: int = 3) -> float:
    """Seconds of one run of the code, the best of a few fresh processes."""
    program = _TIMED.format(before=before, code=code, runs=runs)
    seconds = []
    for _ in range(repeat):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"cannot measure {code!r}:\n{done.stderr}")
        seconds.append(float(done.stdout))
    return min(seconds)


def rows() -> Iterator[tuple[str, float, float, str]]:
    """What, goal, measured, unit: of the library in fresh processes, then of the built pages in a browser."""
    for what, goal, before, code, runs in GOALS:
        yield what, goal, measure(before, code, runs), "s"
    sys.path.append(str(Path(__file__).parent / "book"))
    import page_bench

    yield from page_bench.rows()


def main() -> None:
    """The table; a goal that is missed says so and fails nothing, since another machine would give another verdict."""
    print(f"{'':<42}{'goal':>10}{'measured':>12}")
    start = time.perf_counter()
    for what, goal, measured, unit in rows():
        verdict = "" if measured <= goal else f"   {measured / goal:.1f} times the goal"
        print(f"{what:<42}{si(goal, unit):>10}{si(measured, unit):>12}{verdict}", flush=True)
    print(f"measured in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
