"""What a reader types: pairs of a name and a value, and sizes by name. The command line and the explorers read them alike."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scalebook.errors import ScalebookError, SizeError

MOST = 10**15  # of a size
MOST_PAIRS = 60  # in all texts together; the notation has 52 letters


def shorten(text: str, length: int = 160) -> str:
    """A text cut to a length, for a message that repeats what was typed.

    >>> shorten("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def read_pairs(what: str, texts: str | Iterable[str], rule: str, kind: type[ScalebookError] = ScalebookError) -> dict[str, str]:
    """NAME=VALUE pairs, joined by commas in one text or given in several; `rule` says how they are written.

    >>> read_pairs("dtypes", "A=int8, B=bf16", "write A=int8, B=bf16")
    {'A': 'int8', 'B': 'bf16'}

    Raises an error of `kind` for what cannot be read, for a name with two values and for more than 60 pairs.
    """
    pairs: dict[str, str] = {}
    given_texts = [texts] if isinstance(texts, str) else list(texts)
    if (number := sum(text.count(",") + 1 for text in given_texts)) > MOST_PAIRS:
        raise kind(f"{what}: {number:,} pairs are given, of which at most {MOST_PAIRS} are read; {rule}")
    for text in given_texts:
        for piece in text.split(","):
            match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*(\S+)\s*", piece)
            if match is None:
                raise kind(f"{what}: cannot read {shorten(piece, 40)!r} in {shorten(text, 80)!r}; {rule}")
            name, value = match.groups()
            if pairs.setdefault(name, value) != value:
                given = f"{name[:40]!r} is given as {shorten(pairs[name], 20)} and as {shorten(value, 20)}"
                raise kind(f"{what}: {given}; {rule}")
    return pairs


def read_sizes(
    what: str,
    texts: str | Iterable[str],
    rule: str,
    kind: type[ScalebookError] = ScalebookError,
    *,
    wrong: type[ScalebookError] = SizeError,
    written: str = "",
) -> dict[str, int]:
    """NAME=SIZE pairs, sizes in digits, which `_` may group; `written` stands before the example of a message.

    >>> read_sizes("sizes", "B=4096, D=8_192", "write B=4096, D=8192")
    {'B': 4096, 'D': 8192}

    Raises an error of `kind` for what is no pair, of `wrong` for what is no whole number from 1 to 10^15.
    """
    sizes: dict[str, int] = {}
    for name, value in read_pairs(what, texts, rule, kind).items():
        number = value.replace("_", "")
        if not re.fullmatch(r"[0-9]+(_[0-9]+)*", value) or len(number) > 16 or not 1 <= int(number) <= MOST:
            example = f"a size is a whole number from 1 to {MOST:,}, such as {written}{name[:40]}=8"
            raise wrong(f"{what}: {name[:40]} is {shorten(value, 40)!r}; {example}")
        sizes[name] = int(number)
    return sizes
