"""The prose lint: no typed number with a unit in a page. Numbers come from cells; premises are marked; quotations carry a citation.

    python book/_ext/prose_lint.py book/*.md

is the same check that runs while the book is built. It reads MyST source: paragraphs, headings, tables, notes, captions (also those
in a cell's `caption="…"`), alternative texts and formulas. Code, links, citations and cited quotations are not read.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

REMEDY = "compute it in a cell and print it with {eval}`…`; a premise is marked {given}`…`; a quotation carries its {cite}"
GAP = "\x00"  # what is not prose becomes this, so that positions and lines stay


class Fault(NamedTuple):
    """One typed number: its line, the words, and the rule that it breaks."""

    line: int
    text: str
    rule: str

    def message(self) -> str:
        """The fault with its remedy."""
        return f"{self.text!r}: {self.rule}; {REMEDY}"


# ---- what counts as a number with a unit -----------------------------------------------------------------------------------

_NUMBER = (
    r"(?<![\w.,\x00^])[-−+~≈]?\d(?:[\d.,_\u202f]*\d)?(?:[eE][-+−]?\d+)?(?:\s*[×·]\s*10\s*\^?\s*[-−]?\d+)?(?:\s*\^\s*[-−]?\d+)?"
)
_SPACE = r"(?:[ \t\u00a0\u202f]*\n?[ \t\u00a0\u202f]*)"
_MEASURES = (
    r"(?:[kKMGTPEZ]i?)?B(?:/s|/FLOP)?",
    r"(?:kilo|mega|giga|tera|peta|kibi|mebi|gibi|tebi)?bytes?(?:/s)?",
    r"(?:[kKMGT]i?)?(?:bits?(?:/s)?|bps|b/s)",
    r"(?:[kKMGTPEZ])?FLOP[sS]?(?:/(?:s|byte|B))?",
    r"[mµμunp]?s(?![’'])",
    r"(?:milli|micro|nano)?seconds?",
    r"(?:minute|hour|day|week|month|year)s?",
    r"[kMGT]?Hz",
    r"[kMG]?W(?:h)?",
    r"[kM]?watts?",
    r"per ?cent(?:age points?)?",
    r"(?:US )?dollars?|USD|EUR|euros?",
    r"thousand|million|billion|trillion",
    r"times(?! table)",
    r"-?fold",
)
_NOUNS = (
    "token chip device GPU TPU accelerator host node machine server core layer head expert sequence parameter param "
    "cycle slice pod rack hop link port wire request user step row column element multiplication addition operation instruction "
    "microbatch stage bubble gradient neuron page block tile processor kernel message collective".split()
)
_STOP = "the a an of and or in on at to is are was were has have that which with by for from as if when than then per each all its this our we it"
_MEASURE = re.compile(rf"({_NUMBER})({_SPACE}|-)(?:{'|'.join(_MEASURES)})(?![\w/])")
_COUNTED = re.compile(
    rf"({_NUMBER})(?:{_SPACE}|-)(?:(?!(?:{_STOP.replace(' ', '|')})\b)[A-Za-z][\w-]*[ \t]+){{0,2}}"
    rf"(?:{'|'.join(_NOUNS)})(?:e?s)?\b",
)
_SHARE = re.compile(rf"{_NUMBER}[ \t\u00a0]*%")
_FACTOR = re.compile(rf"{_NUMBER}(?:×(?![\w(\x00{{])|x(?!\w)|[ \t]+×(?=[ \t]*(?:[.,;:)]|$)))", re.MULTILINE)
_MONEY = re.compile(r"(?:US\$|\\\$|[€£])\s?\d[\d.,]*")
_NAMED = re.compile(
    r"(?:section|chapter|part|fig(?:ure|\.)|table|equation|eq\.|step|line|page|layer|exercise|version|python|item|rule|issue|llama|no\.)\s+$",
    re.IGNORECASE,
)
_DECADE = re.compile(r"(?:1[89]|20)\d0s$")
_MODEL = re.compile(r"(?:[A-Z][A-Za-z]+[ -](?:\d(?:\.\d)?[ -])?)$")  # "LLaMA 3 70B", "Gemma 7B" are names
_UNIT_IN_HEADER = re.compile(
    rf"(?<![\w/])(?:{'|'.join(m for m in _MEASURES if not m.startswith(('-', 'times', '[mµ')))}|[mµn]?s|%|×|tokens?|chips?|devices?|GPUs?)(?![\w/])"
)


def _measures(text: str) -> Iterator[tuple[int, str, str]]:
    for match in _MEASURE.finditer(text):
        number, words = match.group(1), match.group(0)
        if _DECADE.match(words) or words.endswith("-bit"):
            continue
        if re.fullmatch(r"\d+(?:\.\d+)?B", words) and _MODEL.search(text[max(0, match.start() - 24) : match.start()]):
            continue
        if words.endswith("s") and match.group(2) == "-" and words == f"{number}-s":
            continue
        yield match.start(), words, "a typed number with a unit"
    for match in _COUNTED.finditer(text):
        if not _NAMED.search(text[max(0, match.start() - 16) : match.start()]):
            yield match.start(), match.group(0), "a typed count of things"
    for pattern, rule in ((_SHARE, "a typed percentage"), (_FACTOR, "a typed factor"), (_MONEY, "a typed price")):
        for match in pattern.finditer(text):
            yield match.start(), match.group(0), rule


# ---- reading MyST: what is prose -------------------------------------------------------------------------------------------

_FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?P<marks>`{3,}|~{3,}|:{3,})[ \t]*(?:\{(?P<name>[^}\s]+)\})?(?P<rest>.*)$")
_CODE = {
    "code-cell",
    "code",
    "code-block",
    "sourcecode",
    "literalinclude",
    "raw",
    "eval-rst",
    "toctree",
    "bibliography",
    "mermaid",
    "eval",
}
_PATH_ARGUMENT = {"figure", "image", "include", "literalinclude", "exercise", "solution", "explorer", "admonition-link"}
_TEXT_OPTIONS = ("caption", "alt", "title", "question")
_MASKED_ROLES = re.compile(
    r"eval|given|code|cite\S*|footcite\S*|ref|numref|eq|doc|term|download|py:\S+|external\S*|kbd|any|mod|func|class|meth"
)


def _blank(chars: list[str], start: int, end: int) -> None:
    chars[start:end] = [c if c == "\n" else GAP for c in chars[start:end]]


class _Page:
    """The source with everything but prose blanked, and the code of its cells apart."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.chars = list(source)
        self.cells: list[tuple[int, str]] = []  # first line (from 1), code
        self.faults: list[Fault] = []
        self._blocks()
        self._inline()

    def line(self, position: int) -> int:
        return self.source.count("\n", 0, position) + 1

    # block level: front matter, fences, comments, quotations
    def _blocks(self) -> None:
        lines = self.source.splitlines(keepends=True)
        starts = [0]
        for text in lines:
            starts.append(starts[-1] + len(text))
        number = 0
        if lines and lines[0].rstrip() == "---":
            number = next((i + 1 for i, t in enumerate(lines) if i and t.rstrip() in ("---", "...")), 0)
            _blank(self.chars, 0, starts[number])
        open_fences: list[str] = []
        while number < len(lines):
            text = lines[number].rstrip("\n")
            fence = _FENCE.match(text)
            if (
                fence
                and open_fences
                and not fence["name"]
                and not fence["rest"].strip()
                and fence["marks"].startswith(open_fences[-1])
            ):
                open_fences.pop()
                _blank(self.chars, starts[number], starts[number + 1])
            elif fence:
                number = self._fence(fence, lines, starts, number, open_fences)
                continue
            elif text.startswith("%") or re.match(r"^\([\w:-]+\)=\s*$", text) or re.match(r"^\[[^\]^][^\]]*\]:\s", text):
                _blank(self.chars, starts[number], starts[number + 1])
            elif text.startswith(">"):
                end = number
                while end < len(lines) and lines[end].startswith(">"):
                    end += 1
                if "{cite" in "".join(lines[number:end]):
                    _blank(self.chars, starts[number], starts[end])
                    number = end
                    continue
            marker = re.match(r"^\s*(?:\d+[.)]|[-*+])\s", text)
            if marker:
                _blank(self.chars, starts[number], starts[number] + marker.end())
            number += 1

    def _fence(self, fence: re.Match[str], lines: list[str], starts: list[int], number: int, open_fences: list[str]) -> int:
        """A fence that opens at line `number`: blanks what is not prose; gives the next line to look at."""
        name, marks = fence["name"] or "", fence["marks"]
        begin = starts[number]
        keep_argument = bool(name) and name not in _CODE | _PATH_ARGUMENT | {"math"}
        _blank(self.chars, begin, begin + fence.start("rest") if keep_argument else starts[number + 1])
        body = self._options(lines, starts, number + 1) if name else number + 1
        if (name or marks[0] == ":") and name not in _CODE | {"math"}:
            open_fences.append(marks)
            return body
        end = body
        while end < len(lines) and not re.match(rf"^[ \t>]*{re.escape(marks)}+[ \t]*$", lines[end].rstrip("\n")):
            end += 1
        last = min(end + 1, len(lines))
        if name == "math":
            self._math(starts[body], starts[end] if end < len(starts) else len(self.source), closing=GAP)
            _blank(self.chars, starts[end] if end < len(lines) else len(self.source), starts[last])
        else:
            if name == "code-cell":
                self.cells.append((body + 1, "".join(lines[body:end])))
            _blank(self.chars, starts[body], starts[last])
        return last

    def _options(self, lines: list[str], starts: list[int], number: int) -> int:
        """`:key: value` lines or a YAML block after the opening line: only captions and alternative texts are prose."""
        if number < len(lines) and lines[number].strip() == "---":
            end = next((i for i in range(number + 1, len(lines)) if lines[i].strip() == "---"), number)
            text_indent = None
            for i in range(number, end + 1):
                key = re.match(r"^(\s*)(\w+):", lines[i])
                indent = len(lines[i]) - len(lines[i].lstrip())
                if key and (text_indent is None or indent <= text_indent):
                    text_indent = indent if key.group(2) in _TEXT_OPTIONS else None
                    _blank(self.chars, starts[i], starts[i] + key.end() if text_indent is not None else starts[i + 1])
                elif text_indent is None:
                    _blank(self.chars, starts[i], starts[i + 1])
            return end + 1
        while number < len(lines) and (option := re.match(r"^\s*:([\w-]+):", lines[number])):
            _blank(
                self.chars,
                starts[number],
                starts[number] + option.end() if option.group(1) in _TEXT_OPTIONS else starts[number + 1],
            )
            number += 1
        return number

    # inline level: roles, code, formulas, links, tags
    def _inline(self) -> None:
        def text() -> str:
            return "".join(self.chars)

        for match in re.finditer(r"<!--.*?-->", text(), re.DOTALL):
            _blank(self.chars, *match.span())
        spans = re.compile(
            r"(?:\{(?P<role>[\w:+.-]+)\})?(?P<ticks>(?<!`)`+(?!`))(?P<inside>(?:(?!\n[ \t]*\n).)+?)(?<!`)(?P=ticks)(?!`)",
            re.DOTALL,
        )
        for match in spans.finditer(text()):
            role = match["role"]
            if role == "given" and not re.search(r"\d", match["inside"]) and match["inside"] != "given":
                self.faults.append(Fault(self.line(match.start()), match.group(0), "a premise without a number"))
            if role == "math":
                _blank(self.chars, match.start(), match.start("inside"))
                self._math(match.start("inside"), match.end("inside"), closing=None)
                _blank(self.chars, match.end("inside"), match.end())
            elif role is None or _MASKED_ROLES.fullmatch(role) or (role == "set" and match["inside"].startswith("=")):
                _blank(self.chars, *match.span())
            elif role == "set":  # its title is prose, its target is not
                _blank(self.chars, match.start(), match.start("inside"))
                _blank(self.chars, match.start("inside") + len(match["inside"].partition("<")[0]), match.end())
            else:
                _blank(self.chars, match.start(), match.start("inside"))
        quoted = re.compile(r"(?:“[^”\n]*(?:\n[^”\n]+)*”|\"[^\"\n]*(?:\n[^\"\n]+)*\")(?=[\s(,.\x00]*$)")
        for match in re.finditer(r"\{(?:foot)?cite[\w:]*\}`", self.source):
            before = quoted.search("".join(self.chars[: match.start()]))
            if before and before.end() >= match.start() - 8:
                _blank(self.chars, *before.span())
        for match in re.finditer(
            r"(?<![\\$])\$\$(.+?)\$\$|(?<![\\$\w])\$(?![\s$])((?:(?!\n[ \t]*\n)[^$])+?)(?<![\s\\])\$(?!\d)",
            text(),
            re.DOTALL,
        ):
            group = 1 if match.group(1) is not None else 2
            self.chars[match.start() : match.start(group)] = " " * (match.start(group) - match.start())
            self._math(match.start(group), match.end(group), closing=None)
            end = match.end(group)
            plain = not any(c == GAP for c in self.chars[match.start(group) : end])
            for i in range(end, match.end()):
                self.chars[i] = " " if plain else GAP
        for match in re.finditer(r"\]\([^)\s]*(?:\s+\"[^\"]*\")?\)|<[a-zA-Z/!][^<>]*>|https?://\S+", text()):
            _blank(self.chars, *match.span())

    def _math(self, start: int, end: int, closing: str | None) -> None:
        """A formula, in place: words in \\text{…} stay, spacing becomes spaces, every letter that is a symbol a gap."""
        body = "".join(self.chars[start:end])
        out = list(body)
        words = [
            m.span(1) for m in re.finditer(r"\\(?:text|mathrm|textrm|operatorname|mathit|textbf|mathbf)\s*\{([^{}]*)\}", body)
        ]
        inside = {i for a, b in words for i in range(a, b)}
        i = 0
        while i < len(body):
            c = body[i]
            if i in inside or c == "\n":
                i += 1
            elif c == "\\":
                command = re.match(r"\\(?:[A-Za-z]+|.)", body[i:], re.DOTALL)
                length = command.end() if command else 1
                name = body[i + 1 : i + length]
                drawn = {"times": " ×", "cdot": " ·", "%": " %"}.get(name, "")
                spacing = (
                    name in {",", ";", ":", "!", " ", "quad", "qquad", "text", "mathrm", "textrm", "operatorname", "mathit"}
                    or drawn
                )
                filler = (
                    " " if spacing or name in {"left", "right", "frac", "sqrt", "le", "ge", "approx", "ll", "gg", "to"} else GAP
                )
                out[i : i + length] = list((drawn + filler * length)[:length])
                i += length
            else:
                out[i] = GAP if c.isalpha() or c == "_" else " " if c in "{}~" else c
                i += 1
        self.chars[start:end] = out
        if closing and end > start:
            self.chars[end - 1] = "\n" if body.endswith("\n") else self.chars[end - 1]


def _captions(first_line: int, code: str) -> Iterator[tuple[int, str]]:
    """The texts of `caption=`, `alt=`, `title=` and `question=` in a cell; what an f-string computes is a gap."""
    try:
        tree = ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", code, flags=re.MULTILINE))
    except SyntaxError:
        return  # the cell itself will fail
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in _TEXT_OPTIONS:
            pieces = [
                piece.value if isinstance(piece, ast.Constant) and isinstance(piece.value, str) else GAP
                for piece in (node.value.values if isinstance(node.value, ast.JoinedStr) else [node.value])
            ]
            yield first_line + node.value.lineno - 1, "".join(pieces)


def _tables(text: str) -> Iterator[tuple[int, str, str]]:
    """Typed numbers in a column whose header names a unit."""
    position, header, ruled = 0, [], False
    for line in text.splitlines(keepends=True):
        row = line.strip()
        if not row.startswith("|"):
            header, ruled = [], False
        elif not header:
            header = row.strip("|").split("|")
        elif re.fullmatch(r"[|:\- ]+", row):
            ruled = True
        elif ruled:
            for name, cell in zip(header, row.strip("|").split("|"), strict=False):
                if re.fullmatch(r"\s*[-−~≈]?\d[\d.,]*\s*", cell) and _UNIT_IN_HEADER.search(name):
                    where = position + max(0, line.find(cell))
                    yield where, f"{cell.strip()} under {name.strip()!r}", "a typed number in a column with a unit"
        position += len(line)


def lint(source: str) -> list[Fault]:
    """Every typed number with a unit in the MyST source of a page, in order."""
    page = _Page(source)
    prose = "".join(page.chars)
    faults = list(page.faults)
    for position, words, rule in (*_measures(prose), *_tables(prose)):
        faults.append(Fault(page.line(position), " ".join(words.split()), rule))
    for first_line, code in page.cells:
        for number, caption in _captions(first_line, code):
            faults += [Fault(number, " ".join(words.split()), rule) for _, words, rule in _measures(caption)]
    return sorted(set(faults))


# ---- in the build, and by hand ---------------------------------------------------------------------------------------------


def setup(app: Any) -> dict[str, bool]:
    """Runs the lint on each page that Sphinx reads; a fault is a warning, and warnings fail the build."""
    from sphinx.util import logging

    def check(app: Any, docname: str, content: list[str]) -> None:
        for fault in lint(content[0]):
            logging.getLogger(__name__).warning("%s [prose lint]", fault.message(), location=(docname, fault.line))

    app.connect("source-read", check)
    return {"parallel_read_safe": True}


def main(paths: list[str]) -> int:
    """Prints `file:line: fault` for each fault; the exit status is 1 if there is one."""
    found = [(path, fault) for path in paths for fault in lint(Path(path).read_text("utf-8"))]
    for path, fault in found:
        print(f"{path}:{fault.line}: {fault.message()}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
