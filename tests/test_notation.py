"""The notation: what it means, how it prints, and that each unreadable piece is named with its place."""

import itertools
import random
import string
import time

import pytest
from hypothesis import given, settings, strategies as st

from scalebook.errors import NotationError
from scalebook.grammar import pointed, run_of
from scalebook.layouts import Sharding, parse_einsum, sharding
from scalebook.notation import subscript

PRODUCT = "A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]"


@pytest.mark.parametrize(
    ("text", "mesh", "letters", "dims", "pending"),
    [
        ("A[I_X, J_YZ]{U_W}", None, "IJ", [("X",), ("Y", "Z")], ("W",)),
        ("A[]", None, "", [], ()),
        ("A[]{U_X}", None, "", [], ("X",)),
        ("  A [ I_X ,J ] { U_Y } ", None, "IJ", [("X",), ()], ("Y",)),
        ("A[I_X0X1Y]", None, "I", [("X0", "X1", "Y")], ()),
        ("A[I_X12]", None, "I", [("X12",)], ()),
        ("A[I_data]", None, "I", [("data",)], ()),
        ("A[I_data_1]", None, "I", [("data_1",)], ()),
        ("A[I_{data,model}]{U_{pod}}", None, "I", [("data", "model")], ("pod",)),
        ("A[I_{ X , Y }]", None, "I", [("X", "Y")], ()),
        ("A[I_xy]", None, "I", [("xy",)], ()),
        ("A[I_xy]", ("x", "y"), "I", [("x", "y")], ()),
        ("A[I_xy]", ("xy",), "I", [("xy",)], ()),
        ("A[I_XY]", ("XY",), "I", [("XY",)], ()),
        ("A[I_{XY}]", ("X", "Y"), "I", [("X", "Y")], ()),
        ("A[I_Tensor]", ("Tensor",), "I", [("Tensor",)], ()),
    ],
)
def test_reading(text, mesh, letters, dims, pending):
    got = sharding(text, None if mesh is None else dict.fromkeys(mesh, 2))
    assert (got.array, got.letters, got.dims, got.pending) == ("A", tuple(letters), tuple(dims), pending)


def test_names_of_arrays_and_dimensions():
    a, b, c = parse_einsum("In[B_X, T, D]*W_in[D_X2, Dff_{data,model}]->Out1[B_X,T,Dff]{U_pod}")
    assert (a.array, b.array, c.array) == ("In", "W_in", "Out1")
    assert b.letters == ("D", "Dff")
    assert b.dims == (("X2",), ("data", "model"))
    assert c.pending == ("pod",)
    assert str(c) == "Out1[B_X, T, Dff]{U_pod}"


# Every must-fail case: the text, the piece at which the carets stand, its place, and what else the message says.
BROKEN = [
    ("A[I, J, ?]", "?", 8, "a dimension is a letter"),
    ("A[5 I, J]", "5", 2, "a dimension is a letter"),
    ("A[I_X!, J]", "!", 5, "comma or ]"),
    ("A[I_X J]", "J", 6, "comma or ]"),
    ("A[I _X]", "_X", 4, "write I_X without a space"),
    ("A[I", "[", 1, "never closed"),
    ("A[I, J", "[", 1, "never closed"),
    ("A[I_X]]", "]", 6, "the array ends with A"),
    ("A[I_X", "[", 1, "never closed"),
    ("A[", "", 2, "ends too early"),
    ("A", "", 1, "ends too early"),
    ("", "", 0, "begins with its name"),
    ("[I]", "[", 0, "begins with its name"),
    ("1A[I]", "1A", 0, "begins with its name"),
    ("A(I)", "(", 1, "square brackets"),
    ("A[I;J]", ";", 3, "separate by commas"),
    ("A[I,,J]", ",", 4, "a dimension is missing"),
    ("A[I,]", "]", 4, "a dimension is missing"),
    ("A[I, I]", "I", 5, "dimension I appears twice in A"),
    ("A[I_X, J_X]", "X", 9, "mesh axis 'X' is used twice, for I and for J"),
    ("A[I_XX]", "X", 5, "used twice for I"),
    ("A[I_X]{U_X}", "X", 9, "a sum can be pending only over axes that split no dimension"),
    ("A[I]{U_XX}", "X", 8, "used twice"),
    ("A[I]{U}", "U", 5, "write {U_X}"),
    ("A[I]{U:X}", "U", 5, "write {U_X}"),
    ("A[I]{R_X}", "R_X", 5, "write {U_X}"),
    ("A[I]{}", "}", 5, "write {U_X}"),
    ("A[I]{U_X", "{", 4, "never closed"),
    ("A[I]{U_X, Y}", ",", 8, "write {U_XY}"),
    ("A[I_{X]", "]", 6, "separated by commas"),
    ("A[I_{X Y}]", "Y", 7, "separated by commas"),
    ("A[I_{X", "{", 4, "never closed"),
    ("A[I_{}]", "}", 5, "braces hold mesh axes"),
    ("A[I{X}]", "{", 3, "write I_X"),
    ("A[I_]", "]", 4, "a mesh axis must follow I_"),
    ("A[I_ X]", "X", 5, "a mesh axis must follow I_ at once"),
    ("A[I_Tensor]", "Tensor", 4, "write I_{Tensor}"),
    ("A[İ]", "İ", 2, "A-Z"),
    ("A[I, 行]", "行", 5, "A-Z"),
    ("$A[I]$", "$", 0, "not LaTeX"),
    ("A[I] * B[I]", "*", 5, "give products to einsum"),
]


@pytest.mark.parametrize(("text", "piece", "at", "says"), BROKEN)
def test_broken_array(text, piece, at, says):
    with pytest.raises(NotationError) as e:
        sharding(text)
    check_place(str(e.value), text, piece, at, says)


BROKEN_PRODUCTS = [
    ("A[I,J]*B[J,K]", "", 13, "comes -> and the result"),
    ("A[I,J]*B[J,K]->", "", 15, "ends too early"),
    ("A[I,J] -> C[I,J]", "->", 7, "two operands before the arrow"),
    ("A[I,J] B[J,K] -> C[I,K]", "B", 7, "comes * and the second operand"),
    ("A[I,J]*B[J,K]*D[K,L]->C[I,L]", "*", 13, "product of the first two"),
    ("A[I,J]*B[J,K]->C[I,K]->D[I]", "->", 21, "the product ends with C"),
    ("A[I,J]*B[J,K]→C[I,K]", "→", 13, "write the arrow as ->"),
    ("A[I,J]*B[J,K]=>C[I,K]", "=", 13, "write the arrow as ->"),
    ("A[I,J]@B[J,K]->C[I,K]", "@", 6, "write the product as *"),
    ("A[I,J]·B[J,K]->C[I,K]", "·", 6, "write the product as *"),
    ("ij,jk->ik", ",", 2, "in brackets"),
    ("A[I,J]*B[J,K]->C[I,L]", "L", 19, "dimension L of C, at position 19, is in neither A nor B"),
    ("A[I,J,M]*B[J,K]->C[I,K]", "M", 6, "sum it first"),
    ("A[I,J]*B[J,K,M]->C[I,K]", "M", 13, "is in B only, and C does not have it"),
    ("A[I,J]*A[J,K]->C[I,K]", "A", 7, "two arrays are called A"),
    ("A[I,J]*B[J,K]->C[I_X,K_X]", "X", 23, "used twice, for I and for K, in C"),
]


@pytest.mark.parametrize(("text", "piece", "at", "says"), BROKEN_PRODUCTS)
def test_broken_product(text, piece, at, says):
    with pytest.raises(NotationError) as e:
        parse_einsum(text)
    check_place(str(e.value), text, piece, at, says)


UNKNOWN = [
    ("A[I_x]", "x", 4, "did you mean 'X'"),
    ("A[I_XQ]", "Q", 5, "unknown mesh axis 'Q'"),
    ("A[I_moddel]", "moddel", 4, "did you mean 'model'"),
    ("A[I_datamodel]", "datamodel", 4, "write I_{data,model}"),
    ("A[I_data_model]", "data_model", 4, "write I_{data,model}"),
    ("A[I_{data,Q}]", "Q", 10, "In the subscript of I"),
    ("A[I]{U_Q}", "Q", 7, "In the pending sum"),
]


@pytest.mark.parametrize(("text", "piece", "at", "says"), UNKNOWN)
def test_unknown_axis(text, piece, at, says):
    mesh = {"X": 2, "Y": 2, "data": 2, "model": 2}
    with pytest.raises(NotationError) as e:
        sharding(text, mesh)
    check_place(str(e.value), text, piece, at, says)
    assert all(axis in str(e.value) for axis in mesh)
    with pytest.raises(NotationError, match="no axes"):
        sharding("A[I_X]", {})


def check_place(message, text, piece, at, says):
    """The message says so, and its last two lines are the text and carets exactly below the piece."""
    assert says in message
    *_, line, carets = message.split("\n")
    assert line == f"  {text}"
    assert text[at : at + len(piece)] == piece
    assert carets[: at + 2].strip() == ""
    assert set(carets[at + 2 :]) == {"^"}
    if text.isascii():
        assert len(carets) == at + 2 + max(1, len(piece))
    assert piece in message.split("\n")[0] or piece == ""


def test_carets_below_wide_and_long_text():
    assert pointed("日本?", 2).split("\n")[1] == "      ^"  # two wide characters are four columns
    line, carets = pointed("A" * 300 + "?" + "B" * 300, 300).split("\n")
    assert len(line) < 140
    assert line[carets.index("^")] == "?"
    assert pointed("a\n\x00?", 3).split("\n")[0] == "  a \ufffd?"


@pytest.mark.parametrize("text", [None, 5, b"A[I]", ["A[I]"]])
def test_not_text(text):
    with pytest.raises(NotationError, match="is text"):
        sharding(text)
    with pytest.raises(NotationError, match="is text"):
        parse_einsum(text)


def test_checks_of_a_sharding_made_by_hand():
    with pytest.raises(NotationError, match="twice"):
        Sharding("A", ("I", "J"), (("X",), ("X",)))
    with pytest.raises(NotationError, match="2 dimensions"):
        Sharding("A", ("I", "J"), (("X",),))


# ---- laws ---------------------------------------------------------------------------------------------------------------

NAMES = st.one_of(st.from_regex(r"[A-Z][0-9]{0,2}", fullmatch=True), st.from_regex(r"[A-Za-z][a-zA-Z0-9_]{0,5}", fullmatch=True))
LETTERS = st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,3}", fullmatch=True), max_size=4, unique=True)


@st.composite
def shardings(draw, array="A"):
    letters, axes = draw(LETTERS), draw(st.lists(NAMES, max_size=5, unique=True))
    where = [draw(st.integers(0, len(letters))) for _ in axes]
    dims = tuple(tuple(a for a, w in zip(axes, where, strict=True) if w == i) for i in range(len(letters) + 1))
    return Sharding(array, tuple(letters), dims[:-1], dims[-1])


@given(shardings())
@settings(max_examples=150, deadline=None)
def test_text_reads_back(s):
    assert sharding(str(s)) == s
    assert sharding(str(s).replace(" ", "").replace(",", " ,  ")) == s
    assert sharding(s) is s


@given(st.lists(NAMES, min_size=1, max_size=4, unique=True))
@settings(max_examples=100, deadline=None)
def test_subscript_reads_back(axes):
    assert sharding(f"A[I{subscript(tuple(axes))}]").dims == (tuple(axes),)


def only_named_errors(text, mesh=None):
    for read in (sharding, parse_einsum):
        try:
            read(text, mesh)
        except NotationError as e:
            message = str(e)
        else:
            continue
        assert message.split("\n")[-1].strip(" ^") == ""  # the last line points


@given(st.one_of(st.text(max_size=40), st.text(alphabet="ABIJKUXY_[]{}*->, 0a?", max_size=40)))
@settings(max_examples=200, deadline=None)
def test_random_text(text):
    only_named_errors(text)
    only_named_errors(text, {"X": 2, "Y": 2, "data": 2})


@given(st.integers(0, 2**32), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_mutated_text(seed, changes):
    rng, text = random.Random(seed), list(PRODUCT)
    for _ in range(changes):
        i, c = rng.randrange(len(text)), rng.choice(string.printable + "→日İ")
        text[i : i + rng.randrange(2)] = [c] * rng.randrange(3) or [""]
    only_named_errors("".join(text))
    only_named_errors("".join(text), {"X": 2, "Y": 2})


def test_runs_of_names_by_trying_all():
    """Every text of up to six letters over a, b and _, with names that are parts of each other."""
    names = ["a", "aa", "ab", "ba"]
    runs = {"": []}
    for _ in range(6):
        runs |= {t + sep + n: [*r, n] for t, r in runs.items() for n in names for sep in ("", "_") if t or not sep}
    runs = {t for t in runs if t and len(t) <= 6}
    for length in range(1, 7):
        for text in map("".join, itertools.product("ab_", repeat=length)):
            found = run_of(text, names)
            assert bool(found) == (text in runs), text
            assert not found or "".join(found) == text.replace("_", "")


def test_reading_takes_no_longer_than_the_text_is_long():
    start = time.process_time()
    for text in ("a" * 45 + "_z", "a" * 20000 + "_z", "a_" * 5000 + "z"):
        with pytest.raises(NotationError, match="unknown mesh axis"):
            sharding(f"A[I_{text}]", {"a": 2, "aa": 2})
    assert time.process_time() - start < 2  # 0.1 s; the first alone was 8 s
