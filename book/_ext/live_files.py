"""The page's own Python: Pyodide with the part of the standard library that is used, and the library, both as compiled modules.

Pyodide comes from npm (book/live/package-lock.json), put into .venv/node by `make book`. The archives are made by book/live/build.mjs,
and again only when the library or that script has changed. Every file has a hash of its content in its address, so that a browser may
keep it for ever and never mixes two versions; our own modules are named with theirs by an import map.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parents[2]
NODE = ROOT / ".venv" / "node"
PYODIDE = NODE / "node_modules" / "pyodide"
LIVE = ROOT / "book" / "live"
MODULES = ROOT / "book" / "_static" / "live"
SOURCE = ROOT / "src"
MADE = ROOT / "book" / "_build" / "live"
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")
KEPT = 86400  # seconds for which archives of a former state of the library stay


def digest(files: list[Path]) -> str:
    """Twelve letters for the contents of files."""
    found = hashlib.sha256()
    for path in sorted(files):
        found.update(f"{path.name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return found.hexdigest()[:12]


def archives() -> Path:
    """The folder with python_stdlib.zip and scalebook.zip for the library as it is, made where there is none yet."""
    if not (NODE / "installed").exists():
        raise ExtensionError(f"Pyodide is not in {NODE.relative_to(ROOT)}: run make book, which puts it there")
    library = [p for p in (SOURCE / "scalebook").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    folder = MADE / digest([*library, LIVE / "build.mjs", LIVE / "build.py", LIVE / "package-lock.json"])
    if not folder.exists():
        MADE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=MADE) as draft:
            command = [str(NODE / "node"), str(LIVE / "build.mjs"), str(PYODIDE), str(SOURCE), draft]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                raise ExtensionError(f"the library cannot be put together for the page:\n{ran.stderr.strip()}")
            if ran.stdout.strip():
                LOGGER.warning("of the page's library: %s", ran.stdout.strip())
            shutil.copytree(draft, folder, dirs_exist_ok=True)
        for former in MADE.iterdir():
            if time.time() - former.stat().st_mtime > KEPT:
                shutil.rmtree(former, ignore_errors=True)
    return folder


@cache
def contents() -> tuple[dict[str, Path], str]:
    """Every file below _static/pyodide with where it is taken from, and the module files.js, which tells the page their addresses."""
    made = archives()
    runtime = f"runtime-{digest([PYODIDE / name for name in RUNTIME])}/"
    files = {f"{runtime}{name}": PYODIDE / name for name in RUNTIME}
    told = {"runtime": runtime}
    for key, path in (("stdlib", made / "python_stdlib.zip"), ("library", made / "scalebook.zip")):
        told[key] = f"{path.stem}-{digest([path])}.zip"
        files[told[key]] = path
    info = json.loads((PYODIDE / "pyodide-lock.json").read_text("utf-8"))["info"]
    addresses = {key: f"../pyodide/{path}" for key, path in told.items()} | {
        "worker": f"./worker.js?v={digest([MODULES / 'worker.js'])}"
    }
    lines = [f"  {key}: new URL({json.dumps(address)}, import.meta.url).href," for key, address in sorted(addresses.items())]
    lines.append(f"  lock: {json.dumps({'info': info, 'packages': {}})},")
    return files, "// Made when the book is built: where Python and the library are.\nexport const files = {\n" + "\n".join(
        lines
    ) + "\n};\n"


def make_archives(app: Any) -> None:
    """At the start, so that a library which cannot be put together is told before the chapters are executed."""
    if app.builder.format == "html":
        contents()


def name_versions(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """The page's import map: our modules by addresses that change when one of them does."""
    modules = sorted(MODULES.glob("*.js"))
    version = hashlib.sha256(f"{digest(modules)}{contents()[1]}".encode()).hexdigest()[:12]
    folder = context["pathto"]("_static/live/", resource=True)
    folder = folder if folder.startswith((".", "/")) else f"./{folder}"
    imports = {f"{folder}{name}": f"{folder}{name}?v={version}" for name in ["files.js", *(path.name for path in modules)]}
    app.add_js_file(None, body=json.dumps({"imports": imports}), type="importmap", priority=1)


def copy_files(app: Any, exception: Exception | None) -> None:
    """Puts the files into the site, and takes away those of former builds."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    files, module = contents()
    for name, path in files.items():
        if not (static / "pyodide" / name).exists():
            (static / "pyodide" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, static / "pyodide" / name)
    for former in (static / "pyodide").rglob("*"):
        if former.is_file() and former.relative_to(static / "pyodide").as_posix() not in files:
            former.unlink()
    (static / "live" / "files.js").write_text(module, "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_js_file("live/main.js", type="module")
    app.connect("builder-inited", make_archives)
    app.connect("html-page-context", name_versions)
    app.connect("build-finished", copy_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
