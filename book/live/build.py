"""Makes python_stdlib.zip and scalebook.zip in /out from the library in /source. Runs inside Pyodide, started by build.mjs.

The standard library is cut to what the library uses. What that is, is found out: every module of the core is imported, with every import
that stands inside a function, then each explorer is asked for its first figure and each exercise is graded with its own solution.
Whatever Python has loaded by then goes in. Modules go in compiled, so that a page compiles nothing when it starts.
"""

import ast
import importlib
import json
import marshal
import sys
import tomllib
import zipfile
from collections.abc import Callable
from importlib.util import MAGIC_NUMBER
from pathlib import Path

SOURCE, OUT = Path("/source"), Path("/out")
STDLIB = next(path for path in sys.path if path.endswith(".zip"))
APART = (
    "__main__",
    "cli",
    "cli_models",
    "cli_shared",
    "lab",
    "plots",
    "live.widgets",
)  # what needs more than the standard library, or a terminal
DATA = (".css", ".json")
# What an answer to an exercise may import, and what Python looks for by a name that it makes up.
ANSWERS = (
    "bisect cmath collections copy dataclasses datetime decimal enum fractions functools heapq itertools json math numbers operator "
    "pprint random re statistics string textwrap typing"
).split()
BY_NAME = ["encodings.ascii", "encodings.latin_1"]


def core() -> dict[str, Path]:
    """The modules of the library that a page can use, by name, with their files."""
    found = {}
    for path in sorted((SOURCE / "scalebook").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not any(f"{name}.".startswith(f"scalebook.{apart}.") for apart in APART):
            found[name] = path
    return found


def imported(path: Path) -> set[str]:
    """The modules of the standard library that a file imports, at its top or inside a function."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name for name in names if name.partition(".")[0] in sys.stdlib_module_names}


def tried(what: str, work: Callable[[], object]) -> None:
    """Does a piece of work; a failure is said, and the rest goes on: the build that reads this takes it for a warning."""
    try:
        work()
    except Exception as error:
        print(f"{what}: {type(error).__name__}: {error}")


def ask(**request: object) -> None:
    """A request as a page sends it; a fault of the library is raised, a verdict on rubbish is not."""
    from scalebook.live.requests import answer

    reply = json.loads(answer(json.dumps(request)))
    if "bug" in reply:
        raise RuntimeError(reply["bug"])


def solve(id: str) -> None:
    """An exercise graded with its own solution, with rubbish, and with a program that fails."""
    from scalebook import exercises

    exec(f"{exercises.solution(id)}_._repr_html_()".replace("sb.check(", "_ = sb.check("), {})
    ask(do="check", id=id, answer="3 GB/s of rubbish")
    ask(do="check", id=id, answer={"code": "def f(x):\n    raise ValueError(x)\nf(1)"})


def work_out() -> None:
    """Every explorer's first figure with all that goes with it, and every exercise."""
    from scalebook.exercises import ids
    from scalebook.live.explorers import EXPLORERS

    for name in EXPLORERS:
        first = {"do": "explore", "name": name, "state": {}, "width": 358, "with": ["table", "python"]}
        tried(f"the explorer {name}", lambda request=first: ask(**request))
    for id in ids():
        tried(f"the exercise {id}", lambda id=id: solve(id))


def compiled(text: bytes, name: str, *, optimize: int) -> bytes:
    """A module as a .pyc that is never checked against its source."""
    code = compile(text, name, "exec", dont_inherit=True, optimize=optimize)
    return MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


def write(name: str, files: dict[str, bytes]) -> None:
    """A zip with these files, the same bytes whenever the files are the same."""
    with zipfile.ZipFile(OUT / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)


def loaded() -> set[str]:
    """The files of the standard library's archive from which modules have been loaded."""
    specs = [getattr(module, "__spec__", None) for module in list(sys.modules.values())]
    origins = [spec.origin or "" for spec in specs if spec]
    return {origin.removeprefix(f"{STDLIB}/") for origin in origins if origin.startswith(f"{STDLIB}/")}


def main() -> None:
    """Both archives."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(SOURCE))
    modules = core()
    for name in [*BY_NAME, *ANSWERS, *modules, *sorted(set().union(*map(imported, modules.values())))]:
        tried(f"import {name}", lambda name=name: importlib.import_module(name))
    tried("the work-out", work_out)
    with zipfile.ZipFile(STDLIB) as archive:
        files = {f"{name}c": compiled(archive.read(name), f"{STDLIB}/{name}", optimize=2) for name in loaded()}
    write("python_stdlib.zip", files)

    files = {}
    for path in modules.values():
        name = path.relative_to(SOURCE).as_posix()
        files[f"{name}c"] = compiled(path.read_bytes(), name, optimize=0)
    for path in (SOURCE / "scalebook").rglob("*"):
        if path.suffix in DATA:
            files[path.relative_to(SOURCE).as_posix()] = path.read_bytes()
        elif path.suffix == ".toml":  # scalebook.sources.tables reads it as JSON, ten times faster
            tables = tomllib.loads(path.read_text("utf-8"))
            files[path.relative_to(SOURCE).with_suffix(".json").as_posix()] = json.dumps(
                tables, default=str
            ).encode()  # dates as texts
    write("scalebook.zip", files)


main()
