"""The site: its own styles, self-hosted MathJax, and the addresses that exist only where they are known.

Two settings in _config.yml, `book_repository` ("owner/name") and `book_address`, may stay empty; then GITHUB_REPOSITORY says both, as it does
on GitHub. Without either there is no link to a repository, no sitemap and no preview card: nothing that could be dead.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parent.parent / "_static"
MATHJAX = (  # of the package sphinx-mathjax-offline: the parts that _config.yml loads, fonts, and TeX packages on demand
    "startup.js",
    "core.js",
    "input/tex.js",
    "output/chtml.js",
    "output/chtml/fonts/tex.js",
    "output/chtml/fonts/woff-v2/*.woff",
    "input/tex/extensions/*.js",
    "a11y/assistive-mml.js",
)


def addresses(app: Any) -> tuple[str, str]:
    """The repository "owner/name" and the address of the site; "" where unknown."""
    return known_addresses(app.config.book_repository or os.environ.get("GITHUB_REPOSITORY", ""), app.config.book_address)


def known_addresses(repository: str, address: str) -> tuple[str, str]:
    """The same from the two settings: a repository on GitHub has a site of its own, if no other is named."""
    owner, _, name = repository.partition("/")
    default = f"https://{owner}.github.io/{name}/" if name else ""
    return repository, (address or default).rstrip("/") + "/" * bool(address or default)


def colab_address(repository: str, path: str) -> str:
    """Where Colab opens a notebook of a repository on GitHub."""
    return f"https://colab.research.google.com/github/{repository}/blob/main/{path}"


def apply_addresses(app: Any, config: Any) -> None:
    """Gives the theme its repository buttons, and Sphinx its base address, where there are any."""
    repository, address = addresses(app)
    if repository:
        config.html_theme_options |= {
            "repository_url": f"https://github.com/{repository}",
            "repository_branch": "main",
            "path_to_docs": "",
            "use_repository_button": True,
            "use_issues_button": True,
            "use_edit_page_button": True,
        }
    if address:
        config.html_baseurl = address
        config.ogp_site_url = address
        config.ogp_social_cards = {"enable": False}
        config.sitemap_url_scheme = "{link}"


def mend_roles(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """The list of references is a list of doc-biblioentry, which the role "list" does not allow."""
    if "body" in context:
        context["body"] = context["body"].replace('<div role="list" class="citation-list">', '<div class="citation-list">')


def copy_mathjax(app: Any, exception: Exception | None) -> None:
    """Copies what a page needs of MathJax into the site."""
    if exception is not None or app.builder.format != "html":
        return
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("the package sphinx-mathjax-offline is missing: run make book, which installs it")
    source = Path(found.submodule_search_locations[0]) / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for pattern in MATHJAX:
        for path in source.glob(pattern):
            copy = target / path.relative_to(source)
            if not copy.exists() or copy.stat().st_size != path.stat().st_size:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)


def write_again(app: Any, env: Any) -> list[str]:
    """All pages, when a style, a script or a template changed: Sphinx by itself would notice none of them."""
    files = sorted(path for folder in (STATIC, STATIC.parent / "_templates") for path in folder.rglob("*") if path.is_file())
    state = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()
    changed = getattr(env, "scalebook_static", "") != state
    env.scalebook_static = state
    return sorted(env.found_docs) if changed else []


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("book_repository", "", "html")
    app.add_config_value("book_address", "", "html")
    for unused in (
        "comments_config",
        "use_jupyterbook_latex",
    ):  # Jupyter Book sets them for extensions that this book does not load
        app.add_config_value(unused, None, "")
    if addresses(app)[1]:
        app.setup_extension("sphinx_sitemap")
        app.setup_extension("sphinxext.opengraph")
    for path in sorted(STATIC.glob("*.css")):
        app.add_css_file(path.name)
    for path in sorted(STATIC.glob("*.js")):
        app.add_js_file(path.name, type="module")
    app.connect("config-inited", apply_addresses)
    app.connect("env-updated", write_again)
    app.connect("html-page-context", mend_roles)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
