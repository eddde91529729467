"""Links from a chapter to its notebooks: a download of each, and Colab where the repository is known."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from website import addresses, colab_address

FOLDER = "notebooks"


def notebooks_of(app: Any, pagename: str) -> dict[str, str]:
    """The notebooks of a page, by what they are, as paths in the repository."""
    name = pagename.removeprefix("book/")
    paths = {"notebook": f"{FOLDER}/{name}.ipynb", "exercises": f"{FOLDER}/exercises/{name}.ipynb"}
    return {what: path for what, path in paths.items() if (Path(app.srcdir) / path).exists()}


def add_links(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Buttons in the page's header: .ipynb among the downloads, and the same notebooks in Colab."""
    found = notebooks_of(app, pagename)
    buttons = context.get("header_buttons")
    if not found or buttons is None:
        return
    downloads = next(group for group in buttons if group.get("label") == "download-buttons")["buttons"]
    downloads[:0] = [
        _link(
            context["pathto"](f"_static/{path}", 1),
            ".ipynb" if what == "notebook" else f"{what} .ipynb",
            f"Download the {what}",
            "fas fa-code",
        )
        for what, path in found.items()
    ]
    repository, _ = addresses(app)
    if repository:
        launch = [
            _link(
                colab_address(repository, path),
                "Colab" if what == "notebook" else f"Colab: {what}",
                f"Open the {what} in Colab",
                "_static/images/logo_colab.png",
            )
            for what, path in found.items()
        ]
        buttons.append(
            {
                "type": "group",
                "tooltip": "Run this chapter",
                "icon": "fas fa-rocket",
                "buttons": launch,
                "label": "launch-buttons",
            }
        )


def _link(url: str, text: str, tooltip: str, icon: str) -> dict[str, str]:
    label = tooltip.lower().replace(" ", "-")
    return {"type": "link", "url": url, "text": text, "tooltip": tooltip, "icon": icon, "label": label}


def copy_notebooks(app: Any, exception: Exception | None) -> None:
    """Puts the notebooks into the site."""
    source = Path(app.srcdir) / FOLDER
    if exception is None and app.builder.format == "html" and source.exists():
        ignored = shutil.ignore_patterns(".ipynb_checkpoints")
        shutil.copytree(source, Path(app.outdir) / "_static" / FOLDER, dirs_exist_ok=True, ignore=ignored)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", add_links, priority=600)  # after the theme has made its buttons
    app.connect("build-finished", copy_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
