"""What a page may be sent by mistake or malice: long texts, huge meshes, heavy products, programs that break what grades them."""

from __future__ import annotations

import asyncio
import builtins
import json
import math
import sys
import time
from typing import Any

import pytest

import scalebook as sb
from scalebook import exercises
from scalebook.errors import ScalebookError, SizeError
from scalebook.exercises import composed, verdicts
from scalebook.exercises.answers import brief, kind_of, read
from scalebook.exercises.fields import CODE
from scalebook.exercises.kept import Kept, run
from scalebook.live import EXPLORERS, Slider, Text
from scalebook.live.controls import LONGEST
from scalebook.live.planner import MOST_LAYOUTS
from scalebook.live.requests import answer
from scalebook.live.tiles import shape_of
from scalebook.typed import MOST_PAIRS, read_pairs

MINE = "rooflines/my-time"
HEAD = "def my_time(flops, bytes, flops_per_s, bytes_per_s):\n"
RIGHT = HEAD + "    return max(flops / flops_per_s, bytes / bytes_per_s)\n"


def ask(**request: Any) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(answer(json.dumps(request)))
    return reply


def refused(name: str, **state: Any) -> str:
    """The message for a state, which comes at once."""
    start = time.process_time()
    reply = ask(do="explore", name=name, state=state)
    assert time.process_time() - start < 0.5
    assert reply["ok"] is False and "bug" not in reply, reply
    return str(reply["error"])


def checked(code: str) -> dict[str, Any]:
    """The reply to a program: one verdict, whatever it does, and the next reader finds a grader that is whole."""
    reply = ask(do="check", id=MINE, answer={"code": code})
    assert reply["ok"] is True and "bug" not in reply and reply["html"].count("sb-verdict") == 1
    after = ask(do="check", id=MINE, answer={"code": RIGHT})
    assert after["correct"] is True and "restart" not in after
    return reply


# ---- texts --------------------------------------------------------------------------------------------------------------------

FIELDS = [(name, c.key) for name in EXPLORERS for c in EXPLORERS[name].controls if isinstance(c, Text)]


@pytest.mark.parametrize(("name", "key"), FIELDS)
@pytest.mark.parametrize("piece", ["8", "X=2, ", "[", " ", "A_", "é", "0,", "x"])
def test_a_long_text_is_refused_at_once_and_briefly(name: str, key: str, piece: str) -> None:
    field = EXPLORERS[name].by_key[key]
    assert isinstance(field, Text) and field.most in (LONGEST, 20_000)
    told = refused(name, **{key: "8" + piece * 100 * LONGEST + "y"})
    assert f"{key} (" in told and f"characters: a field takes at most {field.most:,}" in told and len(told) < 500
    filled = ("8" + piece * field.most)[: field.most - 1] + "y"
    start = time.process_time()
    reply = ask(do="explore", name=name, state={key: filled})
    assert time.process_time() - start < 0.5 and not reply["ok"] and "bug" not in reply and len(reply["error"]) < 1500


def test_a_shape_is_read_without_going_back() -> None:
    for text in ("8" + " " * 100_000 + "y", "8," * 50_000, "[" * 100_000, "8 " * 50_000):
        start = time.process_time()
        with pytest.raises(SizeError, match="two to eight whole numbers of at most 12 digits, such as"):
            shape_of(text)
        assert time.process_time() - start < 0.2
    assert "two to eight whole numbers" in refused("tiles", shape="5")
    assert shape_of("[1,2,3,4,5,6,7,8]") == (1, 2, 3, 4, 5, 6, 7, 8)


def test_pairs_are_so_many() -> None:
    names = [f"a{n}" for n in range(MOST_PAIRS + 1)]
    assert len(read_pairs("sizes", ",".join(f"{n}=1" for n in names[1:]), "rule")) == MOST_PAIRS
    for given in (",".join(f"{n}=1" for n in names), [f"{n}=1" for n in names]):
        with pytest.raises(ScalebookError, match=r"sizes: 61 pairs are given, of which at most 60 are read; the rule"):
            read_pairs("sizes", given, "the rule")


def test_an_empty_number_format_is_told() -> None:
    assert "dtype: the field is empty; give one number format" in refused("planner", dtype=" ")


# ---- long ranges --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [5, "5", 10**14, 1e14, 2.5, "1e300", -1])
def test_a_huge_mesh_is_refused_at_once(device: Any) -> None:
    told = refused("sharded_array", mesh="X=1000000000000000", device=device)
    assert "32 devices" in told and "1000000000000000 devices" in told


@pytest.mark.parametrize("value", [7, 7.0, 6.6, -3, 10**15 + 9, 10**400, 1e300, 0.4, math.inf])
def test_a_long_range_is_never_walked(value: float) -> None:
    """Settling in a range is what it is in a list of the same values; in a long one it takes no longer."""
    end = 20
    long, short = (Slider("n", "N", lambda s, n=n: n) for n in (range(10**15), tuple(range(end))))  # type: ignore[misc]
    start = time.process_time()
    settled = long.settled(value, {})
    assert settled == (short.settled(value, {}) if value < end else min(value, 10**15 - 1))
    assert long.check(settled, {}) == settled and long.read(str(settled), {}) == settled
    for wrong in (0.5, "0.5", 1e300, "no"):
        with pytest.raises(ScalebookError, match="from 0 to 999999999999999"):
            long.check(wrong, {})
    assert time.process_time() - start < 0.1


def test_ranges_with_steps_settle_on_the_nearest() -> None:
    stepped = Slider("n", "N", lambda s: range(3, 40, 4))
    as_list = Slider("n", "N", lambda s: tuple(range(3, 40, 4)))
    for value in [x / 7 for x in range(-20, 320)]:
        near = stepped.settled(value, {})
        assert abs(near - value) == abs(as_list.settled(value, {}) - value)  # type: ignore[operator]


# ---- heavy products -------------------------------------------------------------------------------------------------------------

HEAVY = "A[B, C, D_X, I, J_YZ, L_W] * B[B, C, D, J, L_XW, K_Y, M] -> C[B_XYW, C, D, I_Z, K, M]"


def test_a_heavy_product_is_refused_in_a_page_and_done_in_python() -> None:
    sizes = ", ".join(f"{d}=248832" for d in "BCDIJKLM")
    told = refused("planner", spec=HEAVY, sizes=sizes, mesh="X=2, Y=16, Z=16, W=2", topology="")
    assert (
        "A has 6,928 layouts: 6 dimensions that can be split, on 4 mesh axes" in told
        and f"up to {MOST_LAYOUTS[False]:,}:" in told
    )
    wide = "A[B_X, C, D, E, F_Y, G, H, I] * B[B, C, D, E, K_Z] -> C[F, G, H, I, K]"
    told = refused(
        "planner", spec=wide, sizes=", ".join(f"{d}=64" for d in "BCDEFGHIK"), mesh="X=4, Y=4, Z=4", topology="v5p:4x4x4"
    )
    assert f"up to {MOST_LAYOUTS[True]:,} on a machine: join" in told
    e = sb.einsum(wide, dict.fromkeys("BCDEFGHIK", 64), sb.mesh({"X": 4, "Y": 4, "Z": 4}, on="v5p:4x4x4"))
    assert e.collectives


@pytest.mark.parametrize(
    ("spec", "mesh", "topology"),
    [  # the slowest of some hundreds of products that are accepted
        ("A[B_W, C, D_X, E] * B[B_X, C, E_W, F_YZ] -> C[B_Y, D, F]", "X=2, Y=4, Z=4, W=2", ""),
        ("A[B_Y, E_XZW] * B[B, C_XY, D_Z] -> C[C_Z, D, E_YW]", "X=2, Y=4, Z=4, W=2", "v5p:4x4x4"),
        ("A[B, C, E_XYZW] * B[B_W, D_XY, E] -> C[C, D, E_X]", "X=2, Y=4, Z=4, W=2", "v5p:4x4x4"),
        ("A[C_XZ, D] * B[B_W, C_YZ] -> C[B_X, C_Y, D_Z]", "X=2, Y=4, Z=4, W=2", "v5p:4x4x4"),
        ("A[B, C, D_X, E_Y, F, G_Z] * B[B, E, F_X, G, H_Y] -> C[B_XZ, C, D, F, H]", "X=4, Y=4, Z=4", "v5p:4x4x4"),
        ("A[B_X, C_Y, D_Z] * B[B_Z, C_X, D_Y, E] -> C[B_X, E_YZ]", "X=4, Y=4, Z=4", "v5p:4x4x4"),
        ("In[T_XYZ, D] * W[D_X, F_YZ] -> H[T_X, F_YZ]", "X=4, Y=8, Z=8", "v5p:4x8x8"),
    ],
)
def test_what_is_accepted_takes_a_moment(spec: str, mesh: str, topology: str) -> None:
    sizes = ", ".join(f"{d}=248832" for d in "BCDEFGHT")
    start = time.process_time()
    reply = ask(do="explore", name="planner", state={"spec": spec, "sizes": sizes, "mesh": mesh, "topology": topology})
    assert reply["ok"], reply
    assert time.process_time() - start < 8  # two seconds, four times over


# ---- large slices ----------------------------------------------------------------------------------------------------------------


def test_a_comparison_counts_twice() -> None:
    told = refused("torus", topology="v5p:8x8x8", chip="0,0,0", compare=True)
    assert "v5p:8x8x8 with and without wraparound has 16 planes" in told and "leave the comparison out" in told
    offered = told.rpartition(" ")[2]
    for topology, compare in [(offered, True), ("v5p:8x8x8", False), ("v5e:16x16", True)]:
        reply = ask(do="explore", name="torus", state={"topology": topology, "compare": compare})
        assert reply["ok"] and len(reply["svg"]) < 200_000


# ---- in code ---------------------------------------------------------------------------------------------------------------------


def test_a_key_may_be_called_as_the_explorers_argument() -> None:
    with pytest.raises(ScalebookError, match="unknown key of the explorer roofline 'name'"):
        sb.explorer("roofline", name="x")


def test_numbers_of_numpy_are_numbers() -> None:
    np = pytest.importorskip("numpy")
    for value in (np.int64(64), np.array(64), np.float32(64)):
        state = sb.explorer("roofline", B=value).state
        assert state["B"] == 64 and type(state["B"]) is int
    for wrong in (np.array([64]), np.array("64"), object()):
        with pytest.raises(ScalebookError, match=r"B .* must be a text, a number or a truth value"):
            sb.explorer("roofline", B=wrong)


# ---- programs -------------------------------------------------------------------------------------------------------------------

RAISES = (
    "KeyboardInterrupt", "GeneratorExit", "SystemExit(3)", "asyncio.CancelledError", "Own", "Mute()", "Hidden()", "Odd()", "Nameless",
    "StopIteration", "MemoryError", "BaseExceptionGroup('g', [KeyboardInterrupt()])", "ExerciseError('x' * 10**6)",
)  # fmt: skip
CLASSES = """
import asyncio
from scalebook.errors import ExerciseError
class Own(BaseException): pass
class Mute(BaseException):
    def __str__(self): raise KeyboardInterrupt
    __repr__ = __str__
class Hidden(Exception):
    @property
    def __traceback__(self): raise SystemExit
class Odd(Exception):
    def __str__(self): return Text('what')
class Text(str):
    def split(self, *a): raise GeneratorExit
class Meta(type):
    @property
    def __name__(cls): raise KeyboardInterrupt
    def __getattribute__(cls, name): raise KeyboardInterrupt
class Nameless(Exception, metaclass=Meta): pass
"""


@pytest.mark.parametrize("what", RAISES)
def test_whatever_a_program_raises_is_one_verdict(what: str) -> None:
    lines = CLASSES.count("\n")
    reply = checked(f"{CLASSES}raise {what}\n")
    assert reply["status"] == "unreadable" and f"(line {lines + 1} of your code) before it can be tried" in reply["html"]
    reply = checked(f"{CLASSES}{HEAD}    raise {what}\n")
    assert reply["status"] == "wrong" and f"(line {lines + 2} of your code)" in reply["html"]
    reply = checked(
        f"{CLASSES}calls = []\n{HEAD}    calls.append(1)\n    if len(calls) > 1: raise {what}\n    return 1\n"
    )  # while it is diagnosed
    assert reply["status"] == "wrong" and "restart" not in reply


METHODS = (
    "__float__",
    "__repr__",
    "__str__",
    "__index__",
    "__len__",
    "__iter__",
    "__eq__",
    "__hash__",
    "__bool__",
    "__class__",
    "__getattribute__",
)


@pytest.mark.parametrize("base", ["", "float", "int", "str", "list", "dict", "Exception"])
@pytest.mark.parametrize("raised", ["SystemExit", "KeyboardInterrupt", "RecursionError", "ValueError"])
def test_whatever_a_program_returns_is_one_verdict(base: str, raised: str) -> None:
    body = "".join(f"    def {name}(self, *a): raise {raised}\n" for name in METHODS if name != "__class__")
    code = f"class Thing({base}):\n{body}    __class__ = property(__len__)\n    __array__ = __len__\n{HEAD}    return Thing()\n"
    assert checked(code)["status"] == "wrong"
    assert checked(f"{CLASSES}class Thing(metaclass=Meta): pass\n{HEAD}    return Thing()\n")["status"] == "wrong"


@pytest.mark.parametrize(
    "value",
    ["10**10**4", "[0] * 10**6", "'x' * 10**7", "float('nan')", "1j", "(x for x in [1])", "b'1' * 10**7", "{n: n for n in range(10**5)}",
     "lambda: 1", "my_time", "...", "NotImplemented", "[[[[0] * 99] * 99] * 99] * 99", "10**400", "-0.0", "True"],
)  # fmt: skip
def test_strange_results_are_told_quickly(value: str) -> None:
    start = time.process_time()
    reply = checked(f"{HEAD}    return {value}\n")
    assert reply["status"] == "wrong" and len(reply["html"]) < 1500
    assert time.process_time() - start < 2


def test_a_program_may_use_any_key_of_its_namespace() -> None:
    assert checked("globals()[5] = 1\n" + RIGHT)["correct"] is True
    told = checked("globals()[5] = 1\nglobals()[None] = 2\nother = 1")["html"]
    assert "defines no function my_time, only other; this exercise" in told
    key = "class Key(str):\n    def __hash__(self): return hash('my_time')\n    def __eq__(self, other): raise SystemExit\nglobals()[Key('my_time')] = 1\n"
    assert checked(key)["status"] == "unreadable"


def test_what_is_no_function_is_said() -> None:
    assert (
        "in the program my_time is 5, which is no function; this exercise wants a Python function my_time"
        in checked("my_time = 5")["html"]
    )


POISONS = (
    "del builtins.callable", "del builtins.len, builtins.isinstance, builtins.getattr, builtins.Exception", "builtins.float = None",
    "vars(builtins).clear()", "builtins.max = builtins.min", "builtins.__import__ = None", "builtins.new = 1",
    "sys.setrecursionlimit(60)", "sys.settrace(lambda *a: 1 / 0)", "sys.setprofile(lambda *a: 1 / 0)",
)  # fmt: skip


@pytest.mark.parametrize("poison", POISONS)
def test_pythons_own_names_are_set_back(poison: str) -> None:
    before, depth = dict(vars(builtins)), sys.getrecursionlimit()
    reply = checked(f"import builtins, sys\n{RIGHT}{poison}\n")
    assert reply["status"] in ("right", "unreadable") and "restart" not in reply
    checked(f"import builtins, sys\n{HEAD}    {poison}\n    return 1\n")
    assert dict(vars(builtins)) == before and sys.getrecursionlimit() == depth


CHANGES = (
    "composed.Function.same = lambda *a: True",
    "del composed.Function.same",
    "composed.Function.new = 1",
    "composed.read = None",
    "composed.abs = None",
    "composed.Function.same.__code__ = (lambda self, yours, spec: True).__code__",
    "composed.Function.same.__defaults__ = (1,)",
    "vars(composed).clear()",
    "vars(composed)[5] = 1",
    "verdicts.Verdict.correct = True",
    "verdicts.html.escape = None",
    "json.dumps = None",
    "sys.modules['scalebook.exercises.composed'] = None",
    "requests.KINDS = {}",
    "units.digits = lambda *a: 'x'",
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_library_is_set_back_and_told(change: str) -> None:
    use = "import json, sys\nfrom scalebook.exercises import composed, verdicts\nfrom scalebook.live import requests\nfrom scalebook import units\n"
    for code in (f"{use}{RIGHT}{change}\n", f"{use}{HEAD}    {change}\n    return 1\n"):
        reply = ask(do="check", id=MINE, answer={"code": code})
        assert reply.get("restart") is True or "bug" in reply, reply
        checked(RIGHT)
    assert not Kept().restore()


def test_no_restart_without_need() -> None:
    """Programs that use Python and the library as they are; and answers without a program."""
    for use in (
        "import statistics, asyncio, csv, decimal",
        "import scalebook as sb\nsb.einsum, sb.chip('v5e'), sb.figures, sb.placements",
        "import re, typing\nre.compile('a+')",
    ):
        assert "restart" not in checked(f"{use}\n{RIGHT}")
    for name in exercises.CHAPTERS:
        for exercise in exercises.chapter(name):
            reply = ask(do="check", id=exercise.id, answer={field.key: "1" for field in exercise.fields})
            assert reply["ok"] and "restart" not in reply


def test_running_sets_back_whatever_is_raised() -> None:
    def broken() -> None:
        vars(builtins)["len"] = None
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run(broken)
    assert len("ab") == 2 and run(divmod, 7, 2) == (3, 1)


def test_everything_that_grades_is_kept() -> None:
    kept = Kept()
    modules = {m.__name__ for m, _ in kept.modules}
    assert {"scalebook.exercises.composed", "scalebook.live.requests", "json", "math", "html", "builtins"} <= modules
    assert {composed.Function, verdicts.Verdict} <= {c for c, _ in kept.classes}
    assert any(field.kind == CODE for field in exercises.get(MINE).fields)


# ---- faults ----------------------------------------------------------------------------------------------------------------------


class Unspeakable(BaseException):
    def __str__(self) -> str:
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", [Unspeakable, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_no_fault_is_raised(monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]) -> None:
    def broken(_: Any) -> Any:
        raise kind

    monkeypatch.setattr("scalebook.live.requests.named", broken)
    reply = ask(do="explore", name="roofline")
    assert reply["ok"] is False and reply["error"].startswith("the library failed on this") and reply["bug"]


# ---- values in messages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        ("a" * 100, "'" + "a" * 38 + "…"),
        ([0] * 10**7, "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,…"),
        (tuple(range(10)), "(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"),
        ({"a": 1, "b": [1, 2]}, "{'a': 1, 'b': [1, 2]}"),
        ({n: n for n in range(10**6)}, "a dict of 1,000,000 entries"),
        (set(range(10**6)), "a set of 1,000,000 entries"),
        (b"\0" * 10**7, "b'" + r"\x00" * 9 + "\\…"),
        (10**5000, "of type int"),
        (10**300, "1" + "0" * 38 + "…"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_brief(value: object, text: str) -> None:
    start = time.process_time()
    assert brief(value) == text
    assert time.process_time() - start < 0.1


def test_a_type_that_hides_its_name() -> None:
    class Meta(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]
            raise SystemExit

    class Thing(metaclass=Meta):
        def __float__(self) -> float:
            raise SystemExit

        def __repr__(self) -> str:
            raise KeyboardInterrupt

    assert kind_of(Thing()) == "Thing" and brief(Thing()) == "of type Thing"
    with pytest.raises(ScalebookError, match="the answer is of type Thing; this question wants a number"):
        read(Thing())
    assert len(kind_of(type("x" * 1000, (), {})())) == 60
