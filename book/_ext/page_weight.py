"""A light page: of the theme's 2,000 icons only those that the pages use, as part of its style sheet, without a script and a font for them.

The theme brings Font Awesome (https://fontawesome.com; icons CC BY 4.0) three times: as rules, as a font and as a script with every
drawing, together 700 kB compressed. The drawings of the icons in use become masks in the style sheet; the script is left empty.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pydata_sphinx_theme
from sphinx.errors import ExtensionError

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
SHEET, SCRIPT = "styles/pydata-sphinx-theme.css", "scripts/fontawesome.js"
SIZES = {"fa-lg", "fa-sm", "fa-xs", "fa-fw", "fa-solid", "fa-regular", "fa-brands"}  # classes that are no icon
GLYPHS = re.compile(r'(?:\.fa-[a-z0-9-]+:before,?)+\{content:"\\?[^"]*"\}')
USED = re.compile(r'class="[^"]*\bfa[sb]? [^"]*"|class="[^"]*\bfa-[a-z][^"]*"')
SHARED = """
.fa-solid,.fas,.fa-regular,.fa-brands,.fab{font-family:inherit}
[class*="fa-"]:where(.fa-solid,.fas,.fa-regular,.fa-brands,.fab)::before{content:"";display:inline-block;width:var(--icon-width);height:1em;\
vertical-align:-.125em;background:currentColor;mask:var(--icon) center/contain no-repeat;forced-color-adjust:none}
@media (forced-colors:active){[class*="fa-"]::before{background:CanvasText}}
"""


def used(pages: list[Path]) -> list[str]:
    """The icons that pages show, by their names without "fa-"."""
    classes = {
        name for page in pages for found in USED.findall(page.read_text("utf-8")) for name in re.findall(r"fa-[a-z0-9-]+", found)
    }
    return sorted(name.removeprefix("fa-") for name in classes - SIZES)


def drawing(name: str, script: str) -> str:
    """The rule that shows an icon, from the drawing in the theme's script."""
    found = re.search(rf'[,{{]"?{re.escape(name)}"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","(M[^"]+)"', script)
    if found is None:
        raise ExtensionError(f"the theme's script has no drawing of the icon {name!r}, which a page shows")
    width, height, path = found.groups()
    picture = quote(
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}'><path d='{path}'/></svg>", safe="/:=' "
    )
    return f'.fa-{name}{{--icon:url("data:image/svg+xml,{picture}");--icon-width:{int(width) / int(height):.4g}em}}\n'


def lighten(app: Any, exception: Exception | None) -> None:
    """Writes the theme's style sheet anew, with the icons in use and no others, and its script without any."""
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    script = (THEME / SCRIPT).read_text("utf-8")
    rules = "".join(drawing(name, script) for name in used(list(out.rglob("*.html"))))
    sheet, glyphs = GLYPHS.subn("", (THEME / SHEET).read_text("utf-8"))
    if glyphs < 1000:
        raise ExtensionError(
            f"the theme's style sheet names {glyphs} icons where it had 1,800: page_weight.py reads another theme"
        )
    (out / "_static" / SHEET).write_text(sheet + SHARED + rules, "utf-8")
    (out / "_static" / SCRIPT).write_text("// Icons are in the style sheet.\n", "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("build-finished", lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
