"""Icons without the theme's script and fonts: each that a page shows has its drawing."""

from __future__ import annotations

import page_weight
import pytest
from built_site import OpenPage
from sphinx.errors import ExtensionError


@pytest.mark.parametrize("path", ["book/rooflines.html", "book/tpus.html", "search.html"])
def test_every_icon_is_drawn(path: str, open_page: OpenPage) -> None:
    with open_page(path) as seen:
        drawn = seen.page.evaluate(
            """[...document.querySelectorAll('[class*="fa-"]')].map((e) => [e.className, getComputedStyle(e, "::before").maskImage.slice(0, 24)])"""
        )
        assert len(drawn) > 8
        assert [name for name, picture in drawn if picture != 'url("data:image/svg+xml,'] == []
        fonts = seen.page.evaluate(
            "performance.getEntriesByType('resource').map((r) => r.name).filter((n) => n.includes('/webfonts/'))"
        )
        assert fonts == []


def test_an_icon_that_the_theme_lacks() -> None:
    script = (page_weight.THEME / page_weight.SCRIPT).read_text("utf-8")
    assert page_weight.drawing("bars", script).startswith(".fa-bars{--icon:url(")
    with pytest.raises(ExtensionError, match="no drawing of the icon 'no-such-thing'"):
        page_weight.drawing("no-such-thing", script)
