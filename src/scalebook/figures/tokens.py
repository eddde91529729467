"""Writes the files that follow from tokens.json, the only source of the book's colours and sizes, and checks the colours.

    python -m scalebook.figures.tokens --write    write the files that follow from tokens.json
    python -m scalebook.figures.tokens --check    change nothing; end with status 1 if one of them is stale or a colour fails

Run it at the top of the repository: it writes book/_static/tokens.css, a copy of figures.css beside it, and the styles in the package.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from scalebook.figures.colours import report
from scalebook.figures.palette import HERE, STYLE_FILES, TOKENS, css, mplstyle


def files(static: Path) -> dict[Path, str]:
    """Each file that follows from the sources, and its content."""
    styles = {path: mplstyle(theme) for theme, path in STYLE_FILES.items()}
    rules = (HERE / "figures.css").read_text(encoding="utf-8")
    copied = rules.replace("/*", "/* Copied from src/scalebook/figures/figures.css: edit that.", 1)
    return {static / "tokens.css": css(), static / "figures.css": copied, **styles}


def stale(static: Path) -> list[str]:
    """The files whose content is not what it should be."""
    wrong = [p for p, content in files(static).items() if not p.exists() or p.read_text(encoding="utf-8") != content]
    return [f"{p} is stale: run python -m scalebook.figures.tokens --write" for p in wrong]


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks the files; prints the table of contrasts."""
    parser = argparse.ArgumentParser(prog="python -m scalebook.figures.tokens", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--write", action="store_true", help="write the files")
    which.add_argument("--check", action="store_true", help="change nothing, end with status 1 on any fault")
    parser.add_argument("--static", type=Path, default=Path("book/_static"), help="where the pages' CSS lies (%(default)s)")
    options = parser.parse_args(arguments)
    if options.write:
        for path, content in files(options.static).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    table, faults = report(TOKENS)
    faults += stale(options.static)
    print("\n".join([*table, "", *(faults or ["all colours pass, all files are up to date"])]))
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
