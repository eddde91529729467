"""What holds for the repository as a whole: layers, what an import brings, public names, and what is not committed."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import scalebook

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "scalebook"

# The data flows down this list: a module imports only from lines above it, or from its own line.
LAYERS = (
    ("errors",),
    ("units", "tables", "typed"),
    (
        "sources",
        "hardware",
        "slices",
        "topologies",
        "routes",
        "systolic",
        "tiling",
        "hierarchy",
        "provenance",
        "catalogue",
        "microbench",
    ),
    ("roofline",),
    ("factors", "wiring", "meshes", "grammar", "notation", "layouts"),
    ("schedules", "collectives", "bandwidths", "transfers", "simulation"),
    ("spaces", "graph", "plans", "settings", "sweeps", "patterns", "reports", "products", "resharding", "joint", "chains"),
    ("transformer",),
    ("memory",),
    ("exercises",),
    ("explore",),
    ("figures",),
    ("live",),
    ("plots",),
    ("lab",),
    ("cli_shared",),
    ("cli_models",),
    ("cli", "__main__"),
)
CORE = {name for line in LAYERS[:13] for name in line}  # standard library only, when imported
INSIDE = {  # taken inside a function that needs it
    **{name: {"numpy"} for name in ("units", "graph", "sweeps", "patterns", "products")},
    "live": {"ipywidgets", "IPython"},
    "transformer": {"yaml"},
}
OUTSIDE = {"plots": {"matplotlib", "numpy"}, "lab": {"jax", "jaxlib", "numpy"}, "figures": {"IPython"}}


def part(path: Path) -> str:
    """The module or package of scalebook that a file belongs to; "" for the package's own __init__."""
    first = path.relative_to(SOURCE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imports(path: Path) -> list[tuple[str, bool]]:
    """Every module a file imports, absolute, and whether at module level (not under TYPE_CHECKING)."""
    tree = ast.parse(path.read_text("utf-8"))
    inner = {
        node
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        or (isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.dump(outer.test))
        for node in ast.walk(outer)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node not in inner) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"scalebook.{a.name}" for a in node.names] if node.module == "scalebook" else [node.module or ""]
            found += [(name, node not in inner) for name in names]
    return found


FILES = sorted(SOURCE.rglob("*.py"))
LEVEL = {name: i for i, line in enumerate(LAYERS) for name in line}


def wrong_layers(path: Path, here: str) -> list[str]:
    """The imports of a file that go down the list of layers, or outside the library where that is not allowed."""
    wrong = []
    for module, top in imports(path):
        first, _, rest = module.partition(".")
        if first == "scalebook":
            there = rest.split(".")[0]
            lazy = here == "cli" and not top  # the command line imports lab inside the command that needs it
            if there in LEVEL and LEVEL[there] > LEVEL[here] and not lazy:
                wrong.append(f"imports {there}, which stands below {here}")
        elif first not in sys.stdlib_module_names:
            allowed = OUTSIDE.get(here, set()) | (set() if top else INSIDE.get(here, set()))
            if first not in allowed:
                wrong.append(f"imports {first}{' at module level' if top else ''}")
    return wrong


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_layers(path: Path) -> None:
    here = part(path)
    if here:
        assert here in LEVEL, f"{here} has no place in the list of layers: give it one"
        assert wrong_layers(path, here) == []


def test_the_test_of_layers_finds_faults(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(
        "import math\nimport numpy\nfrom scalebook.products import einsum\nfrom scalebook import lab\n\ndef f():\n    import jax\n",
        "utf-8",
    )
    assert wrong_layers(bad, "units") == [
        "imports numpy at module level",
        "imports products, which stands below units",
        "imports lab, which stands below units",
        "imports jax",
    ]


def test_modules_stay_short() -> None:
    long = {p.name: n for p in FILES if (n := len(p.read_text("utf-8").splitlines())) > 400}
    assert long == {}, "split these into well-named modules"


# ---- what an import brings --------------------------------------------------------------------------------------------------

_BROUGHT = """
import sys
before = set(sys.modules)
{code}
import json
brought = {{n: getattr(sys.modules[n], "__file__", None) or "" for n in set(sys.modules) - before}}
outside = sorted(n for n, f in brought.items() if ("site-packages" in f or "dist-packages" in f) and not n.startswith("scalebook"))
print(json.dumps(outside))
"""


def brought_from_outside(code: str) -> list[str]:
    """The modules from outside the standard library and scalebook that a piece of code loads in a fresh Python."""
    done = subprocess.run([sys.executable, "-c", _BROUGHT.format(code=code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_core_is_standard_library_only() -> None:
    names = [n for n in scalebook._WHERE if scalebook._WHERE[n] in CORE]
    modules = sorted({part(p) for p in FILES} & CORE)
    code = f"import scalebook, importlib\nfor n in {names!r}: getattr(scalebook, n)\nfor m in {modules!r}: importlib.import_module('scalebook.' + m)"
    assert brought_from_outside(code) == []


def test_the_test_of_imports_finds_numpy() -> None:
    assert "numpy" in brought_from_outside("import numpy")


def test_using_the_core_needs_nothing_else() -> None:
    code = (
        "import scalebook as sb\nm = sb.mesh({'X': 16, 'Y': 16}, on='v5e:16x16')\n"
        "e = sb.einsum('In[B_X, D] * W[D_X, F] -> Out[B_X, F]', {'B': 4096, 'D': 1024, 'F': 1024}, m)\ne.explain(), e.backward()\n"
        "sb.figures.roofline('v5e')._repr_html_()\n"
        "from scalebook.live.requests import answer\n"
        'for name in sb.live.EXPLORERS: assert \'svg\' in answer(\'{"do": "explore", "name": "%s"}\' % name)'
    )
    assert brought_from_outside(code) == []


# ---- public names -----------------------------------------------------------------------------------------------------------


def test_every_public_name_twice() -> None:
    """Also after each module was imported by its own name: a module must not take the place of a function."""
    for module in sorted({part(p) for p in FILES} - {"", "__main__", "lab", "plots", "cli"}):
        __import__(f"scalebook.{module}")
    for name in scalebook.__all__:
        once = getattr(scalebook, name)
        assert getattr(scalebook, name) is once
        if name in scalebook._WHERE:
            assert callable(once), f"scalebook.{name} is {once!r}"
    assert sorted(dir(scalebook)) == sorted(scalebook.__all__)


def test_no_module_is_named_like_a_function() -> None:
    assert {part(p) for p in FILES} & set(scalebook._WHERE) == set()


def test_unknown_public_name() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'einsums'; it has: .*einsum"):
        scalebook.einsums  # noqa: B018


# ---- what is committed ------------------------------------------------------------------------------------------------------

_HOSTS = ["pypi" + ".org", "files.python" + "hosted", "registry.npm" + "js", "deb." + "debian"]
_OF_THIS_MACHINE = re.compile(
    r"(?:^|[^A-Za-z0-9_.~])/(?:wor[k]|roo[t]|hom[e]/\w+|User[s]/\w+)/|" + "|".join(map(re.escape, _HOSTS)), re.MULTILINE
)


def committed() -> list[Path]:
    """The files that git has or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def of_this_machine(text: str) -> list[str]:
    """Paths of one machine and names of package hosts in a text."""
    return [found.strip() for found in _OF_THIS_MACHINE.findall(text)]


def test_no_path_of_one_machine_is_committed() -> None:
    wrong = {}
    for path in committed():
        try:
            found = of_this_machine(path.read_text("utf-8"))
        except UnicodeDecodeError:
            continue
        if found:
            wrong[path.relative_to(ROOT).as_posix()] = found
    assert wrong == {}


def test_the_test_of_paths_finds_them() -> None:
    assert (
        of_this_machine("x = '/" + "work/a'")
        and of_this_machine("/" + "home/me/b")
        and of_this_machine("https://" + _HOSTS[0] + "/simple")
    )
    assert of_this_machine("src/work/x, ~/work/, the workbench, a homework") == []


def test_nothing_built_is_committed() -> None:
    wrong = [
        p
        for p in committed()
        if {"_build", "node_modules", "__pycache__", ".venv"} & set(p.parts[len(ROOT.parts) :]) or p.suffix == ".pyc"
    ]
    assert wrong == []


def test_constraints_are_pinned_with_hashes_for_every_python() -> None:
    """Every requirement has an exact version and a hash; every direct one of pyproject.toml is among them."""
    text = (ROOT / "constraints.txt").read_text("utf-8")
    entries = re.split(r"\n(?=[a-z0-9])", text)[1:]
    assert len(entries) > 50
    assert [e.split()[0] for e in entries if not re.match(r"[\w.-]+==\S+", e) or "--hash=sha256:" not in e] == []
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    direct = set(re.findall(r'^    "([A-Za-z0-9-]+)', project.split("[dependency-groups]")[1].split("[tool")[0], re.MULTILINE))
    assert {d.lower() for d in direct} - {re.split("==", e)[0] for e in entries} == set()


def test_the_two_commands_are_told() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make book" in readme and "make test" in readme
    run = [line for line in (ROOT / ".ci" / "run").read_text("utf-8").splitlines() if line.startswith("make ")]
    assert run == ["make book", "make test"]


def test_every_link_of_the_documents_exists() -> None:
    """The files that README and the like point to are there."""
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / name).read_text("utf-8")):
            assert target.startswith("http") or (ROOT / target).exists(), f"{name} points to {target}"
