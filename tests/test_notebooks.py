"""Notebooks made from pages: current, valid, plain Markdown, the same bytes everywhere, and no value in them that a machine could change."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from to_notebook.book import Book
from to_notebook.markdown import filled_in, written
from to_notebook.pages import Page
from to_notebook.parsing import ROOT, PageError, parser
from to_notebook.prose import Prose
from to_notebook.values import Values

import notebooks
from scalebook.exercises import CHAPTERS, chapter

COMMITTED = notebooks.committed()


@pytest.fixture(scope="module")
def unpublished() -> dict[str, str]:
    return notebooks.made("")


@pytest.fixture(scope="module")
def published() -> dict[str, str]:
    return notebooks.made("someone/scaling")


def sources(text: str, kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == kind]


# ---- what is committed ------------------------------------------------------------------------------------------------------


def test_committed_notebooks_are_current() -> None:
    assert notebooks.check(COMMITTED, os.environ) == []


def test_a_stale_a_missing_and_a_strange_notebook_are_told(unpublished: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    there = dict(unpublished)
    there["notebooks/notation.ipynb"] += "\n"
    del there["notebooks/exercises/tpus.ipynb"]
    there["notebooks/old.ipynb"] = "{}"
    monkeypatch.setattr(notebooks, "made", lambda repository: unpublished)
    assert notebooks.check(there, {}) == [
        "notebooks/exercises/tpus.ipynb is missing: run make notebooks and commit it",
        "notebooks/notation.ipynb is stale: run make notebooks and commit it",
        "notebooks/old.ipynb is made from no page: remove it",
    ]
    monkeypatch.setattr(notebooks, "committed", lambda: there)
    assert notebooks.main(["--check"]) == 1


def test_a_check_takes_notebooks_made_for_nobody_until_the_book_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"": {"a": "no address"}, "me/mine": {"a": "mine"}, "me/fork": {"a": "fork"}}
    monkeypatch.setattr(notebooks, "made", made.__getitem__)
    monkeypatch.setattr(notebooks, "settings", lambda: {"book_repository": ""})
    assert notebooks.check(made[""], {}) == notebooks.check(made[""], {"GITHUB_REPOSITORY": "me/mine"}) == []
    assert notebooks.check(made["me/mine"], {"GITHUB_REPOSITORY": "me/mine"}) == []
    assert notebooks.check(made["me/mine"], {}) == ["a is stale: run make notebooks and commit it"]
    monkeypatch.setattr(notebooks, "settings", lambda: {"book_repository": "me/mine"})
    assert notebooks.check(made["me/mine"], {"GITHUB_REPOSITORY": "me/fork"}) == []
    assert notebooks.check(made[""], {"GITHUB_REPOSITORY": "me/fork"}) != []


def test_writing_changes_what_changed_and_removes_what_no_page_makes(tmp_path: Path) -> None:
    notebooks.write({"notebooks/a.ipynb": "{}\n", "notebooks/exercises/a.ipynb": "[]\n"}, tmp_path)
    notebooks.write({"notebooks/a.ipynb": "{1}\n"}, tmp_path)
    assert notebooks.committed(tmp_path) == {"notebooks/a.ipynb": "{1}\n"}


def test_each_chapter_with_code_and_its_exercises_are_there() -> None:
    assert set(COMMITTED) >= {f"notebooks/{name}.ipynb" for name in (*CHAPTERS, "hardware")}
    assert set(COMMITTED) >= {f"notebooks/exercises/{name}.ipynb" for name in CHAPTERS}
    assert "notebooks/index.ipynb" not in COMMITTED


@pytest.mark.parametrize("path", COMMITTED)
def test_form(path: str) -> None:
    notebook = nbformat.reads(COMMITTED[path], as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    for cell in notebook.cells:
        assert cell.source and cell.source == cell.source.strip("\n") and not re.search(r"[ \t]\n", cell.source)
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
            folded = cell.metadata.get("cellView") == "form"
            assert cell.source.startswith("# @title ") == folded == bool(cell.metadata.get("jupyter", {}).get("source_hidden"))
    assert notebook.cells[1].source.startswith("# Setup")


# ---- nothing raw ------------------------------------------------------------------------------------------------------------

LEFTOVER = re.compile(
    r"\{[a-z][\w:+-]*\}`|^\s*:{3,}|^\s*[`~]{3,}\s*\{|^\([\w-]+\)=|^\s*:[a-z]+: |^%|^\+\+\+|\{\.[\w-]+\}|[\ue000-\uf8ff]",
    re.MULTILINE,
)


@pytest.mark.parametrize("path", COMMITTED)
def test_nothing_of_myst_is_left(path: str) -> None:
    texts = [*sources(COMMITTED[path], "markdown"), *(c for c in sources(COMMITTED[path], "code") if "Markdown(rf" in c)]
    assert [m.group(0) for text in texts for m in LEFTOVER.finditer(text)] == []


def test_the_scan_finds_leftovers() -> None:
    for left in (
        "a {eval}`x` b",
        "{cite:p}`x`",
        ":::{note}",
        "```{math}",
        "(here)=",
        ":label: eq-x",
        "% note",
        "{.wide}",
        "\ue0000\ue001",
    ):
        assert LEFTOVER.search(left), left
    assert not LEFTOVER.search("`{'a': 1}`, $A\\{U_X\\}$, {`x`}, ```python\nx\n```, (a) = b, 10% more")


def leaves(found: list) -> list[tuple[str, str]]:
    """What a reader sees, as pairs of a kind and words, texts that touch as one."""
    seen: list[tuple[str, str]] = []
    for token in found:
        for part in token.children if token.type == "inline" else [token]:
            kind = {"html_inline": "text", "softbreak": "text"}.get(part.type, part.type)
            content = (
                " " if part.type == "softbreak" else part.content if kind != "math_block" else " ".join(part.content.split())
            )
            content = (
                re.sub(r"\\v(V?)ert ", "|", content)
                if kind == "math_inline"
                else content.strip()
                if kind == "html_block"
                else content
            )
            content += str(part.attrs.get("href", ""))
            if kind == "text" and seen and seen[-1][0] == "text":
                content = seen.pop()[1] + content
            seen.append((kind, content))
    return [(kind, content) for kind, content in seen if content or kind != "text"]


@pytest.mark.parametrize("name", Book().with_notebook)
def test_markdown_says_what_the_page_says(name: str) -> None:
    """The written Markdown, read again, has the same blocks, words, formulas and links as the page's tokens had."""
    seen = []

    class Noting(Page):
        def _flush(self) -> None:
            seen.extend([list(self._pending)] if self._pending else [])
            super()._flush()

    page = Noting(name, Book())
    cells = [cell.source for cell in page.cells if cell.kind == "markdown" and not cell.source.startswith("### Exercise")]
    assert len(seen) > 5
    for tokens, cell in zip(seen, cells, strict=False):
        assert leaves(parser().parse(cell)) == leaves(tokens)


# ---- values: those of every machine, and those of the reader's --------------------------------------------------------------


def run(*cells: str) -> Values:
    values = Values()
    for code in cells:
        values.run(code)
    return values


@pytest.mark.parametrize(
    ("code", "expression"),
    [
        ("from scalebook import lab\nm = lab.measure_machine()\nx = m.ridge * 2", "x"),
        ("import scalebook as sb\nx = sb.lab.measure_machine()", "round(x.ridge)"),
        ("import jax", "jax.__version__"),
        ("import time\nbegan = time.perf_counter()", "f'{began:.2f}'"),
        ("import os, math\nx = math.pi * os.cpu_count()", "x"),
        (
            "from scalebook import lab, si\nratio = {}\nfor n in (1, 2):\n    ratio[n] = lab.measure_matmul(n, n, n).seconds",
            "ratio[1]",
        ),
        ("import random\nfound = []\nfound.append(random.random())", "len(found)"),
        ("import platform\ndef name():\n    return platform.machine()\ndef twice():\n    return name() * 2", "twice()"),
        ("def late():\n    return speed * 2\nimport time\nspeed = time.time()", "late()"),
        ("import time\nspeeds = [time.time() for _ in range(3)]\nbest = max(speeds)", "best"),
        ("x = 1\nimport time\nif time.time() > 5:\n    x = 2", "x"),
        ("import numpy as np", "np.pi"),
    ],
)
def test_values_of_the_readers_machine_are_left_to_it(code: str, expression: str) -> None:
    assert run(code).left_to_reader(expression)


@pytest.mark.parametrize(
    ("code", "expression", "text"),
    [
        ("import scalebook as sb\nfrom scalebook import si, lab\nx = sb.rates('v5e')['hbm']", "f'{x:.0f}'", "819000000000"),
        ("import time\nx = time.time()\nx = 3", "x", "3"),
        ("import time\nt = time.time()\ndef f(t):\n    return t + 1\nxs = [t for t in range(3)]", "f(1), xs", "(2, [0, 1, 2])"),
        ("x = []\nfor i in range(3):\n    x.append(i)", "x", "[0, 1, 2]"),
    ],
)
def test_values_that_are_the_same_everywhere_are_printed(code: str, expression: str, text: str) -> None:
    values = run(code)
    assert not values.left_to_reader(expression)
    assert values.text(expression) == text


def test_an_older_value_is_never_taken_for_the_readers() -> None:
    values = run("x = 1", "import time\nx = time.time()")
    assert values.left_to_reader("x") and "x" not in values.variables


def test_a_text_with_values_of_the_reader_becomes_code_that_prints_it() -> None:
    code = filled_in("Rates $A\\{U_X\\}$ of \ue0000\ue001 and \ue0001\ue001.", ['f(x, "B/s")', '{"a": 1}["a"]'])
    namespace = {"f": lambda x, unit: f"{x} {unit}", "x": 3}
    exec(code.replace("\n\nMarkdown(", "\n\nshown = Markdown("), namespace)
    assert namespace["shown"].data == "\nRates $A\\{U_X\\}$ of 3 B/s and 1.\n"
    with pytest.raises(PageError, match="compute them in a cell under a name"):
        filled_in("\ue0000\ue001", ["x if y else lambda: 3"])


def test_the_same_bytes_on_a_machine_without_jax_with_another_seed_and_from_another_folder(tmp_path: Path) -> None:
    """Where nothing can be measured, nothing that was measured can be in what is made."""
    code = f"import sys; sys.modules['jax'] = sys.modules['numpy'] = None; sys.path.insert(0, {str(ROOT / 'book/_ext')!r}); import notebooks; "
    code += "import json; print(json.dumps(notebooks.made('')))"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == notebooks.made("")


def test_two_clocks_give_one_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring stubbed to two results: the notebooks are the same, and ask the reader's machine."""
    from scalebook import lab

    cell = "```{code-cell} ipython3\nfrom scalebook import lab\nm = lab.measure_machine()\n```\n\nIt has {eval}`m.ridge` FLOPs per byte."
    found = []
    for ridge in (1, 2):
        monkeypatch.setattr(lab, "measure_machine", lambda ridge=ridge: SimpleNamespace(ridge=ridge), raising=False)
        found.append(Page("one", book(tmp_path, one=cell)).notebook().text())
    assert found[0] == found[1] and "{m.ridge} FLOPs per byte" in sources(found[0], "code")[-1]


# ---- a page of everything -----------------------------------------------------------------------------------------------------


def book(root: Path, repository: str = "", **pages: str) -> Book:
    """A small book."""
    (root / "book").mkdir(exist_ok=True)
    (root / "_toc.yml").write_text(
        f"root: book/{next(iter(pages))}\nchapters:\n" + "".join(f"- file: book/{p}\n" for p in list(pages)[1:]), "utf-8"
    )
    for name, text in pages.items():
        (root / "book" / f"{name}.md").write_text(f"# Page {name}\n\n{text}\n", "utf-8")
    (root / "book" / "references.bib").write_text((ROOT / "book" / "references.bib").read_text("utf-8"), "utf-8")
    address = "https://someone.github.io/scaling/" if repository else ""
    return Book(repository, address, root)


def markdown(root: Path, text: str, **pages: str) -> str:
    """A page's text as a notebook has it, without the title."""
    found = Page("one", book(root, one=text, **pages))
    return "\n\n".join(cell.source for cell in found.cells).removeprefix("# Page one\n\n")


CELL = "```{code-cell} ipython3\n1 + 1\n```"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```{math}\n:label: eq-a\nx = y\n```\n\nSee {eq}`eq-a`.", "$$\nx = y \\tag{1}\n$$\n\nSee (1)."),
        ("$$\nx = y\n$$ (eq-a)\n\nSee {eq}`eq-a`.", "$$\nx = y \\tag{1}\n$$\n\nSee (1)."),
        ("{given}`16 GiB` of {math}`x_1`, \\$3", "16 GiB of $x_1$, \\$3"),
        (":::{note}\nMind *this*.\n:::", "> **Note**\n>\n> Mind *this*."),
        ("```{admonition} A rule\nMind it.\n```", "> **A rule**\n>\n> Mind it."),
        ("```{dropdown} More\nHidden.\n```", "<details><summary>More</summary>\n\nHidden.\n\n</details>"),
        ("```{figure} a.svg\n:alt: A line\nThe **finding**.\n```", "![A line](a.svg)\n\nThe **finding**."),
        ("```{code-block} python\nx = 1\n```", "```python\nx = 1\n```"),
        ("```python\nx = 1\n```", "```python\nx = 1\n```"),
        ("| a | b |\n|---|---|\n| $\\|X\\|$ | `x \\| y` |", "| a | b |\n| --- | --- |\n| $\\vert X\\vert $ | `x \\| y` |"),
        ("```{table} Sizes\n| a |\n|---|\n| b |\n```", "**Sizes**\n\n| a |\n| --- |\n| b |"),
        ("Word\n: Meaning.", "**Word**\n\nMeaning."),
        ("% a remark\n\nText", "Text"),
        ("{.wide}\nText [words]{.small}", "Text words"),
        ("(here)=\n## A part\n\n[there](#here), {ref}`here`, {ref}`so <here>`", '<a name="A-part"></a>\n\n## A part\n\n[there](#A-part), [A part](#A-part), [so](#A-part)'),
        ("[two](two.md), [its part](two.md#part-b), {doc}`two`", "[two](two.ipynb), [its part](two.ipynb#Part-B), [Page two](two.ipynb)"),
        ("[three](three.md)", "[three](../book/three.md)"),
        ("{cite}`kung1982systolic`", "[[Kung, 1982](https://doi.org/10.1109/MC.1982.1653825)]"),
        ("```{explorer} roofline\n:name: fig-r\n:question: Which binds?\n:set: chip=v5e B=64\n**So.** Drag.\n```\n\nTo {set}`the ridge <fig-r?B=256>`, {set}`here <fig-r?B=64>`.",
         'Which binds?\n\nsb.explorer("roofline", chip="v5e", B=64)\n\n**So.** Drag.\n\nTo the ridge (`B=256`), here.'),
    ],
)  # fmt: skip
def test_what_each_thing_becomes(text: str, expected: str, tmp_path: Path) -> None:
    pages = {"two": f"## Part B\n\n{CELL}", "three": "No cells."}
    assert markdown(tmp_path, text, **pages).split("\n\n## References")[0] == expected


def test_known_addresses_lead_to_the_site_and_unknown_ones_nowhere(tmp_path: Path) -> None:
    text = f"[two](two.md#part-b)\n\n{CELL}"
    page = Page("one", book(tmp_path, "someone/scaling", one=text, two=f"## Part B\n\n{CELL}"))
    assert "[two](https://someone.github.io/scaling/book/two.html#part-b)" in page.cells[0].source
    notebook = page.notebook()
    assert "colab.research.google.com/github/someone/scaling/blob/main/notebooks/one.ipynb" in notebook.cells[0].source


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```{mermaid}\na\n```", r"book/one.md:3: the directive \{mermaid\} has no form in a notebook yet"),
        ("{kbd}`x`", r"the role \{kbd\}`x` has no form in a notebook yet"),
        ("{eval}`x`", r"book/one.md:3: \{eval\}`x` raises NameError"),
        ("{eval}`None`", "it gives None"),
        ("{eval}`1 / 3`", "too many digits"),
        ("```{code-cell} ipython3\n1 / 0\n```", "book/one.md:3: this cell raises ZeroDivisionError"),
        ("[x](nowhere.md)", "the link nowhere.md leads to nothing"),
        ("{cite}`nobody`", "no entry 'nobody'"),
        ("{eq}`eq-none`", "no equation has the label eq-none"),
        ("{ref}`none`", "no page has the label none"),
        ("{set}`a <fig-none?B=1>`", "no explorer has the name fig-none"),
        ("- a\n\n  ```{note}\n  b\n  ```", "inside a list"),
        ("```{explorer} roof\n```", "unknown explorer 'roof'"),
    ],
)
def test_what_cannot_become_a_notebook_is_told(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=message):
        markdown(tmp_path, text)


# ---- published or not ---------------------------------------------------------------------------------------------------------


def test_without_a_repository_there_is_no_badge_and_no_address_of_one(unpublished: dict[str, str]) -> None:
    for text in unpublished.values():
        assert "colab.research.google.com" not in text
        assert not re.search(r"github\.com/(?!OWNER/NAME )[^/]+/scal", text)


def test_with_a_repository_there_is_a_badge_and_the_library_comes_from_it_alone(published: dict[str, str]) -> None:
    for path, text in published.items():
        assert f"https://colab.research.google.com/github/someone/scaling/blob/main/{path}" in sources(text, "markdown")[0]
        assert (
            '    %pip install --quiet --no-deps "scalebook @ git+https://github.com/someone/scaling"' in sources(text, "code")[0]
        )
        assert "someone.github.io/scaling/book/" in sources(text, "markdown")[0]


@pytest.mark.parametrize("path", COMMITTED)
def test_links_inside_the_repository_exist(path: str, unpublished: dict[str, str]) -> None:
    for text in sources(unpublished[path], "markdown"):
        for token in (child for t in parser().parse(text) for child in t.children or () if child.type == "link_open"):
            target, _, place = str(token.attrs["href"]).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            file = ROOT / path if not target else (ROOT / path).parent / target
            assert file.exists(), target
            if place and file.suffix == ".ipynb":
                there = unpublished[file.resolve().relative_to(ROOT).as_posix()]
                assert f'<a name="{place}"></a>' in "".join(sources(there, "markdown")), place


@pytest.mark.parametrize("known", [False, True])
def test_the_setup_cell_installs_only_where_the_library_is_missing(
    known: bool, published: dict[str, str], unpublished: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    from IPython.core.interactiveshell import InteractiveShell

    cell = sources((published if known else unpublished)["notebooks/notation.ipynb"], "code")[0]
    shell, asked = InteractiveShell(), []
    shell.register_magic_function(asked.append, magic_name="pip")
    shell.run_cell(cell).raise_error()
    assert asked == []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = shell.run_cell(cell, silent=True)
    if known:
        assert found.success and asked == ['install --quiet --no-deps "scalebook @ git+https://github.com/someone/scaling"']
    else:
        assert isinstance(found.error_in_exec, ModuleNotFoundError) and "pip install --no-deps ." in str(found.error_in_exec)
        assert asked == []


def test_only_chapters_that_use_jax_ask_for_it(unpublished: dict[str, str]) -> None:
    asking = [path for path, text in unpublished.items() if "lab.setup()" in sources(text, "code")[0]]
    assert asking == [f"notebooks/{name}.ipynb" for name in ("rooflines", "tpus", "sharding", "transformers")]


# ---- exercises ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHAPTERS)
def test_each_exercise_has_statement_hint_blank_and_check_and_its_solution_is_not_in_sight(name: str) -> None:
    text = COMMITTED[f"notebooks/exercises/{name}.ipynb"]
    statements, code = sources(text, "markdown")[1:-1], sources(text, "code")[2:-1]
    exercises = chapter(name)
    assert len(statements) == len(code) == len(exercises)
    for exercise, statement, blank in zip(exercises, statements, code, strict=True):
        assert exercise.title in statement and "<summary>Hint</summary>" in statement
        assert f'sb.exercises.solution("{exercise.id}")' in statement
        assert "..." in blank and blank.endswith(exercise.call)
        for line in exercise.code.splitlines():
            assert len(line) < 25 or line not in statement


def test_an_exercise_cannot_ask_for_what_a_machine_measures(tmp_path: Path) -> None:
    text = "```{code-cell} ipython3\nimport time\n```\n\n```{exercise} rooflines/dot-product\nIt is {eval}`time.time()`.\n```"
    with pytest.raises(PageError, match="an exercise cannot ask for a value of the reader's machine"):
        markdown(tmp_path, text)


def test_prose_without_cells_keeps_its_words(tmp_path: Path) -> None:
    prose = Prose("one", book(tmp_path, one="Nothing."), Values())
    tricky = "1\\. no list, a_b_c, *\\*starred\\**, `` a ` b ``, \\<tag>, [not a link], 3 * 4 * 5"
    assert leaves(parser().parse(written(prose.plain(tricky)))) == leaves(parser().parse(tricky))
