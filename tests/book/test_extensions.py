"""The parts of the build that are our own, on pages made for the purpose: what they print, and that the build fails where it must."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from scalebook import exercises

ROOT = Path(__file__).parents[2]
HEADER = "---\njupytext:\n  text_representation:\n    extension: .md\n    format_name: myst\nkernelspec:\n  name: python3\n  display_name: Python 3\n---\n\n"
CONF = f"""
import sys
sys.path.append({str(ROOT / "book" / "_ext")!r})
extensions = ["myst_nb", "prose_lint", "computed_numbers", "exercise_pages", "explorers"]
nb_execution_mode = "inline"
nb_eval_name_regex = "^[A-Za-z_]"
myst_enable_extensions = ["dollarmath", "colon_fence"]
html_theme = "basic"
"""


def build(folder: Path, page: str, name: str = "rooflines") -> tuple[str, list[str]]:
    """The HTML of a page and the warnings of its build; what the kernel says of itself is left out."""
    (folder / "conf.py").write_text(CONF + f'root_doc = "{name}"\n', "utf-8")
    (folder / f"{name}.md").write_text(HEADER + page, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-E", str(folder), str(folder / "out")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"JUPYTER_PREFER_ENV_PATH": "1", "NO_COLOR": "1"},
    )
    html = folder / "out" / f"{name}.html"
    return html.read_text("utf-8") if html.exists() else "", [
        w for w in done.stderr.splitlines() if not w.startswith("[IPKernelApp]")
    ]


def test_numbers_in_prose(tmp_path: Path) -> None:
    """Strings come without quotes and with their no-break space, in a paragraph, a table, a note; a semicolon silences nothing."""
    html, warnings = build(
        tmp_path,
        "# T\n\n```{code-cell} ipython3\nfrom scalebook import si\nx = 819e9;\n```\n\n"
        'It reads {eval}`si(x, "B/s")`; given {given}`16 GiB`.\n\n| a | b |\n|---|---|\n| c | {eval}`si(2 * x, "B/s")` |\n\n'
        "```{note}\nA count: {eval}`int(x / 1e9)`.\n```\n",
        name="numbers",
    )
    assert [w for w in warnings if "[exercise]" not in w] == []
    text = re.sub(r"<[^>]+>", "", html)
    assert "It reads 819\u00a0GB/s; given 16 GiB." in text
    assert "1.64\u00a0TB/s" in text and "A count: 819." in text
    assert '<span class="sb-given">16 GiB</span>' in html


FAULTS = {
    "It reads {eval}`si(y)`.": "NameError: name 'y' is not defined",
    "It reads {eval}`'819 GB'`.": "does not begin with a name or a call",
    "It reads {eval}`print(1)`.": "it gives None",
    "It is {eval}`third`.": "too many digits to read",
    "It reads 819 GB/s.": "'819 GB/s': a typed number with a unit",
    "It has {given}`some` chips.": "a premise without a number",
}


def test_faults_are_warnings_with_their_line(tmp_path: Path) -> None:
    page = "# T\n\n```{code-cell} ipython3\nfrom scalebook import si\nthird = 1 / 3\n```\n\n" + "\n\n".join(FAULTS) + "\n"
    _, warnings = build(tmp_path, page, name="numbers")
    for prose, complaint in FAULTS.items():
        line = (HEADER + page).split(prose)[0].count("\n") + 1
        assert any(f"numbers.md:{line}: WARNING" in w and complaint in w for w in warnings), (line, complaint, warnings)


def _exercise(id: str) -> str:
    return f"```{{exercise}} {id}\nA statement about {{given}}`8` chips.\n```\n\n"


def test_exercises_are_stated_graded_and_folded(tmp_path: Path) -> None:
    """Every exercise of the chapter, in order: no warning; statement, grading line, folded hint and solution."""
    ids = [e.id for e in exercises.chapter("rooflines")]
    html, warnings = build(tmp_path, "# T\n\n" + "".join(map(_exercise, ids)))
    assert [w for w in warnings if not re.search(r"exercise (?!rooflines/)", w)] == []
    assert re.findall(r'id="exercise-rooflines-([\w-]+)"', html) == [i.partition("/")[2] for i in ids]
    text = re.sub(r"<[^>]+>", "", html).replace("&quot;", '"').replace("&#34;", '"')
    assert "On no chip. Half of the peak" in text  # what the answer means stands beneath the solution
    assert all(exercises.get(i).call in text for i in ids)
    assert html.count("<summary>Hint</summary>") == html.count("<summary>Solution</summary>") == len(ids)
    assert re.findall(r'<form class="sb-answer" data-exercise="([^"]+)"', html) == ids
    fields = re.findall(r'<(?:input type="text"|textarea|select) id="answer-([^"]+)"', html)
    assert fields == [
        f"{i.replace('/', '-')}-{f.key}" for i in ids for f in exercises.get(i).fields if f.kind != "choice" or len(f.options) > 4
    ]


def test_exercises_that_do_not_match_are_warnings(tmp_path: Path) -> None:
    """An unknown id, one stated twice, and those that the page leaves out."""
    first, second, *_ = (e.id for e in exercises.chapter("rooflines"))
    page = "# T\n\n" + _exercise(first) + _exercise(first) + _exercise("rooflines/no-such-thing")
    _, warnings = build(tmp_path, page)
    text = "\n".join(warnings)
    assert "unknown exercise 'rooflines/no-such-thing'" in text
    assert f"{first}: stands already in rooflines" in text
    assert f"exercise {second} is defined in scalebook.exercises.rooflines and not stated" in text


def test_a_list_of_all_exercises_needs_every_chapter(tmp_path: Path) -> None:
    """A section for each with its exercises in order, each linked; a chapter without a page is an error."""
    ids = [e.id for e in exercises.chapter("rooflines")]
    for name in exercises.CHAPTERS:
        (tmp_path / f"{name}.md").write_text(
            f"# Chapter {name}\n\n" + "".join(map(_exercise, (e.id for e in exercises.chapter(name))))
        )
    html, warnings = build(tmp_path, "# All\n\n```{exercise-list}\n```\n", name="all")
    assert [w for w in warnings if "toctree" not in w] == []
    assert re.findall(r"<h2>(Chapter \w+)", html) == [f"Chapter {name}" for name in exercises.CHAPTERS]
    found = re.findall(r'<li data-exercise="(rooflines/[^"]+)"><p><a [^>]*href="rooflines.html#([^"]+)"', html)
    assert found == [(id, f"exercise-{id.replace('/', '-')}") for id in ids]
    (tmp_path / "rooflines.md").unlink()
    _, warnings = build(tmp_path, "# All\n\n```{exercise-list}\n```\n", name="all")
    assert any("{exercise-list}: the chapter rooflines has exercises, and there is no page" in w for w in warnings)


def test_committed_pages_state_every_exercise() -> None:
    """One to one: the pages' statements and the library's definitions."""
    stated = [
        id
        for page in sorted((ROOT / "book").glob("*.md"))
        for id in re.findall(r"^`{3,}\{exercise\} (\S+)", page.read_text("utf-8"), re.M)
    ]
    assert sorted(stated) == sorted(exercises.ids())
