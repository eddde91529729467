"""The command line: what it prints, its exit status, and that a mistake is one message on standard error and nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

import scalebook as sb
from scalebook.cli import main

SPEC = "A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]"
SIZES = ["--size", "I=8192,J=8192", "--size", "K=28672"]
MESH = ["--mesh", "X=4,Y=8"]


def run(*argv: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(argv))
    return status, out.getvalue(), err.getvalue()


def answer(*argv: str) -> str:
    """What a command without mistakes prints."""
    status, out, err = run(*argv)
    assert (status, err) == (0, "")
    return out


def mistake(*argv: str) -> str:
    """The one message about a mistake."""
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert err.startswith("scalebook") and err.endswith("\n") and "Traceback" not in err
    return err


# ---- chips --------------------------------------------------------------------------------------------------------------


def test_chips_lists_every_chip_with_its_ridge() -> None:
    lines = answer("chips").splitlines()
    rows = {line.split()[0]: line for line in lines[1 : 1 + len(sb.chips())]}
    assert set(rows) == {c.key for c in sb.chips()}
    assert "197 TFLOPs/s" in rows["v5e"] and "819 GB/s" in rows["v5e"] and rows["v5e"].endswith("241")  # 197e12 / 819e9 = 240.5
    assert rows["tpu8t"].endswith("unknown")


def test_chips_json() -> None:
    data = {c["key"]: c for c in json.loads(answer("chips", "--json"))}
    assert len(data) == len(sb.chips())
    assert data["v5e"]["hbm_bytes"] == 16 * 2**30 and data["v5e"]["flops_per_s"] == {"bf16": 197e12, "int8": 394e12}
    assert data["h100"]["vmem_bytes"] is None


@pytest.mark.parametrize("name", [["v5p"], ["TPU", "v5p"], ["tpu_v5p"]])
def test_one_chip(name: list[str]) -> None:
    text = answer("chips", *name)
    assert text.startswith("TPU v5p (v5p)")
    assert "https://" in text and "2.765e+12 bytes/s" in text
    data = json.loads(answer("chips", "--json", *name))
    assert data["hbm_bytes_per_s"] == 2765e9
    assert data["sources"]["hbm_bytes_per_s"]["refs"][0]["url"].startswith("https://")
    assert {note["id"] for note in data["notes"]} == {note.id for note in sb.chip("v5p").notes}


def test_an_unknown_chip_names_near_ones() -> None:
    assert "v5" in mistake("chips", "v5x")


# ---- einsum -------------------------------------------------------------------------------------------------------------


def test_einsum_json_has_the_fixed_keys() -> None:
    data = json.loads(answer("einsum", SPEC, *SIZES, *MESH, "--json"))
    assert list(data) == ["collectives", "flops_per_device", "seconds"]
    assert data["seconds"] is None
    assert data["flops_per_device"] == 2 * 8192 * 8192 * 28672 // 32
    for c in data["collectives"]:
        assert list(c) == ["kind", "array", "axes", "bytes", "seconds"] and c["seconds"] is None


def test_einsum_bytes_by_hand() -> None:
    gather = "In[B_X, D] * W[D_X, F] -> Out[B_X, F]"
    data = json.loads(answer("einsum", gather, "--size", "B=4096,D=1024,F=4096", "--mesh", "X=8", "--json"))
    # W is gathered: each device receives 7/8 of 2·1024·4096 bytes
    assert data["collectives"] == [
        {"kind": "all-gather", "array": "W", "axes": ["X"], "bytes": 2 * 1024 * 4096 * 7 // 8, "seconds": None}
    ]
    int8 = json.loads(answer("einsum", gather, "--size", "B=4096,D=1024,F=4096", "--mesh", "X=8", "--dtype", "W=int8", "--json"))
    assert int8["collectives"][0]["bytes"] == 1024 * 4096 * 7 // 8


def test_einsum_with_a_topology_has_seconds() -> None:
    argv = ["einsum", SPEC, *SIZES, *MESH, "--topology", "v5e:4x8"]
    data = json.loads(answer(*argv, "--json"))
    e = sb.einsum(SPEC, {"I": 8192, "J": 8192, "K": 28672}, sb.mesh({"X": 4, "Y": 8}, on=sb.topology("v5e:4x8")))
    assert data["seconds"] == e.time.lower and data["seconds"] > 0
    assert [c["bytes"] for c in data["collectives"]] == [float(Fraction(c.bytes)) for c in e.collectives]
    assert all(c["seconds"] > 0 for c in data["collectives"])
    assert "comms" in answer(*argv)


def test_einsum_over_slices() -> None:
    argv = ["einsum", "A[I_X, J] * B[J, K_Y] -> C[I, K_Y]", *SIZES, "--mesh", "X=2,Y=32", "--topology", "v5e:4x8"]
    data = json.loads(answer(*argv, "--num-slices", "2", "--json"))
    assert data["collectives"] and data["seconds"] > 0
    assert "64" in mistake(*argv)  # one slice has 32 devices, the mesh 64


@pytest.mark.parametrize(
    "pairs",
    [
        ["--size", "I=8,J=8,K=8"],
        ["--size", "I=8", "--size", "J=8", "--size=K=8"],
        ["--size", " I = 8, J=8 ,K=8", "--size", "I=8"],
    ],
)
def test_pairs_joined_or_repeated(pairs: list[str]) -> None:
    data = json.loads(answer("einsum", "A[I, J] * B[J, K] -> C[I, K]", *pairs, "--json"))
    assert data == {"collectives": [], "flops_per_device": 1024, "seconds": None}


# ---- check --------------------------------------------------------------------------------------------------------------


def test_check_right_wrong_and_unreadable() -> None:
    assert run("check", "rooflines/dot-product", "1/2")[0] == 0
    status, out, err = run("check", "rooflines/dot-product", "2", "FLOPs/byte")
    assert (status, err) == (1, "") and "4 × too large" in out and "bytes per FLOP" in out
    assert "'half' is not a unit" in mistake("check", "rooflines/dot-product", "half")
    assert run("check", "rooflines/dot-product", "-5")[0] == 1
    assert run("check", "rooflines/dot-product", "3 s")[0] == 1


def test_check_parts_on_one_line() -> None:
    assert "right in all parts" in answer("check", "rooflines/critical-batch", "v5p=166;", "h100=295")


@pytest.mark.parametrize("argv", [["--json", "rooflines/dot-product", "0.5"], ["rooflines/dot-product", "--json", "0.5"]])
def test_check_json(argv: list[str]) -> None:
    data = json.loads(answer("check", *argv))
    assert data["correct"] is True and data["status"] == "right" and data["ratio"] == pytest.approx(1, rel=1e-3)


# ---- mistakes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "required: COMMAND"),
        (["chps"], "did you mean 'chips'"),
        (["--jsn"], "--help"),
        (["chips", "--jsn"], "scalebook chips [-h] [--json]"),
        (["chips", "--js"], "unrecognized arguments: --js"),
        (["einsum"], "EINSUM"),
        (["einsum", "A[I_X"], "A[I_X"),
        (["einsum", SPEC, *MESH], "I"),
        (["einsum", SPEC, *SIZES], "'X'"),
        (["einsum", SPEC, *SIZES], "Give the mesh with --mesh X=4,Y=8"),
        (["einsum", SPEC, *MESH], "Give the sizes with --size I=8192,J=8192"),
        (["einsum", SPEC, "--size", "I8192"], "repeated: --size I=8192,J=8192"),
        (["einsum", SPEC, "--mesh", "X4"], "repeated: --mesh X=4,Y=8"),
        (["einsum", SPEC, "--dtype", "A=int8,bf16"], "repeated: --dtype A=int8,B=bf16"),
        (["einsum", SPEC, "--size", "K=___8"], "K is '___8'; a size is a whole number"),
        (["einsum", SPEC, "--size", "K=1__8"], "K is '1__8'; a size is a whole number"),
        (["einsum", SPEC, "--size", "K=8_"], "K is '8_'; a size is a whole number"),
        (["einsum", SPEC, *SIZES, *MESH, "--topology", "v5e:4x8", "--num-slices", "1025"], "from 1 to 1,024"),
        (["-x"], "unknown option '-x'"),
        (["--json", "chips"], "unknown option '--json' before the command (write it after the command)"),
        (["einsum", SPEC, *SIZES, *MESH, "--size", "K=64"], "'K' is given as 28672 and as 64"),
        (["einsum", SPEC, "--size", "I8192"], "cannot read 'I8192'"),
        (["einsum", SPEC, "--size", "I=8,,J=8"], "cannot read ''"),
        (["einsum", SPEC, "--size", "I=0"], "whole number from 1"),
        (["einsum", SPEC, "--size", "I=-4"], "whole number from 1"),
        (["einsum", SPEC, "--size", "I=1.5"], "whole number from 1"),
        (["einsum", SPEC, "--size", "I=" + "9" * 5000], "whole number from 1"),
        (["einsum", SPEC, *SIZES, "--mesh", "X=0"], "whole number from 1"),
        (["einsum", SPEC, "--size"], "expected one argument"),
        (["einsum", SPEC, *SIZES, *MESH, "--dtype", "bf61"], "did you mean 'bf16'"),
        (["einsum", SPEC, *SIZES, *MESH, "--dtype", "bf16", "--dtype", "int8"], "given 2 times"),
        (["einsum", SPEC, *SIZES, *MESH, "--dtype", "Q=int8"], "Q"),
        (["einsum", SPEC, *SIZES, *MESH, "--num-slices", "2"], "add one, such as --topology"),
        (["einsum", SPEC, *SIZES, *MESH, "--topology", "v5e:4x8", "--num-slices", "0"], "found '0'"),
        (["einsum", SPEC, *SIZES, "--topology", "v5e:4x8"], "add its axes"),
        (["einsum", SPEC, *SIZES, *MESH, "--topology", "v5e:3x8"], "v5e:4x8"),
        (["einsum", SPEC, *SIZES, *MESH, "--topology", "v5e:8x8"], "64"),
        (["check"], "ID, ANSWER"),
        (["check", "rooflines/dot-product"], "ANSWER"),
        (["check", "rooflines/dot", "3"], "did you mean 'rooflines/dot-product'"),
        (["check", "rooflines/my-time", "max"], "a Python function my_time("),
        (["check", "rooflines/dot-product", "9**9**9"], "too large"),
        (["check", "rooflines/dot-product", "-x"], "--help"),
    ],
)
def test_mistakes(argv: list[str], says: str) -> None:
    assert says in mistake(*argv)


def test_digits_may_be_grouped() -> None:
    sizes = ["--size", "I=1_024,J=8,K=1_000_000"]
    data = json.loads(answer("einsum", "A[I, J] * B[J, K] -> C[I, K]", *sizes, "--json"))
    assert data["flops_per_device"] == 2 * 1024 * 8 * 10**6


LONG = "Q" * 4000
PLAIN = ["einsum", "A[I, J] * B[J, K] -> C[I, K]", "--size", "I=8,J=8,K=8"]


@pytest.mark.parametrize(
    "argv",
    [
        ["chips", LONG],
        ["einsum", LONG],
        ["einsum", f"A[I, {LONG}_X] * B[J, K] -> C[I, K]", "--size", "I=8,J=8,K=8"],
        ["einsum", "A[I, J] * B[J, K] -> C[I, K] " + " ." * 2000, "--size", "I=8,J=8,K=8"],
        [*PLAIN, "--size", LONG],
        [*PLAIN, "--size", f"{LONG}=x"],
        [*PLAIN, "--dtype", LONG],
        [*PLAIN, "--mesh", "X=4", "--topology", LONG],
        [*PLAIN, "--num-slices", LONG],
        ["check", LONG, "5"],
        ["check", "rooflines/dot-product", LONG],
        [f"--{LONG}"],
        ["chips", f"--{LONG}"],
        [LONG],
    ],
)
def test_what_was_typed_is_not_repeated_at_length(argv: list[str]) -> None:
    said = mistake(*argv)
    assert len(said) < 1500 and "Q" * 200 not in said


def test_as_many_slices_as_are_allowed_are_answered_soon() -> None:
    """The steps of 1,024 partners are found by bisection: walking the whole lane for each took 45 s."""
    argv = ["einsum", "A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]", "--size", "I=1048576,J=8192,K=1048576", "--mesh", "X=1024,Y=256"]
    began = time.perf_counter()
    text = answer(*argv, "--topology", "v5e:16x16", "--num-slices", "1024")
    assert time.perf_counter() - began < 5 and "all-to-all" in text


@pytest.mark.parametrize("slices", ["999999999", "1000000", "9" * 30])
def test_a_huge_number_of_slices_is_answered_at_once(slices: str) -> None:
    mesh = ["--mesh", f"X={min(int(slices), 10**15)},Y=32", "--topology", "v5e:4x8"]
    argv = ["einsum", "A[I_X, J] * B[J, K] -> C[I_X, K]", "--size", f"I={min(int(slices), 10**15)},J=8,K=8", *mesh]
    command = [sys.executable, "-m", "scalebook", *argv, "--num-slices", slices]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=30)  # it took forever once
    assert done.returncode == 2 and "from 1 to 1,024" in done.stderr


WORDS = st.sampled_from(
    [
        "chips",
        "einsum",
        "check",
        "params",
        "kv",
        "flops",
        "llama-3-8b",
        "gemma-3-4b",
        "--seq-len",
        "--batch",
        "--tp",
        "--kind",
        "decode",
        "--json",
        "--size",
        "--mesh",
        "--topology",
        "--num-slices",
        "--dtype",
        "--",
        "-",
        "-1",
        "",
        "v5e",
        "I=8",
        "I=8,J=8",
        "X=4",
        "X=2,Y=2",
        "v5e:2x2",
        "h100:1x8",
        "bf16",
        "A=int8",
        "2",
        "rooflines/dot-product",
        "rooflines/fp8",
        "1/2",
        SPEC,
        "A[I, J] * B[J, K] -> C[I, K]",
        "A[I_X]",
    ]
)


@given(st.lists(WORDS | st.text(max_size=12), max_size=9))
@example(["check", "rooflines/dot-product", "\udc80"])
@example(["check", "rooflines/dot-product", "1e308"])
@example(["kv", "gemma-3-4b", "--seq-len", "1000000000", "--batch", "1000000000", "--dtype", "int4", "--json"])
@example(["flops", "llama-3-8b", "--seq-len", "1000000000", "--batch", "1000000000", "--json"])
@example(["params", "/dev/zero"])
@example(["params", "\udc80"])
@example(["check", "rooflines/dot-product", "1e-90", "--json"])
@example(["einsum", "A[I, J] * B[J, K] -> C[I, K]", "--size", f"I={10**15},J={10**15},K={10**15}", "--json"])
@settings(max_examples=150, deadline=None)
def test_any_command_line_ends_with_a_status(argv: list[str]) -> None:
    status, out, err = run(*argv)
    assert status in (0, 1, 2)
    if status == 2:
        assert out == "" and err.strip()
    else:
        assert err == ""
    if status < 2 and "--json" in argv and "--" not in argv:
        json.loads(out)


@given(
    sizes=st.dictionaries(st.sampled_from("IJK"), st.integers(-1, 64), max_size=3),
    mesh=st.dictionaries(st.sampled_from("XYZ"), st.integers(0, 8), max_size=3),
    topology=st.none()
    | st.sampled_from(["v5e:2x2", "v5e:4x8", "v5p:2x2x2", "h100:1x8", "gb200:1x4", "v5e", "v9:1"])
    | st.text(max_size=8),
    spec=st.sampled_from(
        [SPEC, "A[I, J_X] * B[J_X, K] -> C[I, K_X]", "A[I_XY, J] * B[J, K] -> C[I, K]", "A[I_X, J] * B[J, K_X] -> C[I, K]"]
    ),
)
@settings(max_examples=60, deadline=None)
def test_any_einsum_ends_with_a_status(sizes: dict[str, int], mesh: dict[str, int], topology: str | None, spec: str) -> None:
    argv = ["einsum", spec, "--json"]
    argv += ["--size=" + ",".join(f"{k}={v}" for k, v in sizes.items())] if sizes else []
    argv += ["--mesh=" + ",".join(f"{k}={v}" for k, v in mesh.items())] if mesh else []
    argv += [f"--topology={topology}"] if topology is not None else []
    status, out, err = run(*argv)
    assert status in (0, 2)
    if status == 0:
        assert set(json.loads(out)) == {"collectives", "flops_per_device", "seconds"}
    else:
        assert out == "" and err


# ---- params, kv, flops --------------------------------------------------------------------------------------------------


def test_params_json_has_the_fixed_keys() -> None:
    data = json.loads(answer("params", "deepseek-v3", "--json"))
    assert list(data) == ["total", "active", "parts", "mtp", "weight_bytes", "assumptions", "ignored", "not_counted"]
    assert (data["total"], data["mtp"]) == (671_026_419_200, 13_463_426_304)
    assert data["active"] == {"all": 37_552_297_472, "no_input_embedding": 36_625_618_432, "no_embeddings": 35_698_939_392}
    assert sum(data["parts"].values()) == data["total"] and data["weight_bytes"] == 2 * data["total"]


def test_params_as_a_table() -> None:
    text = answer("params", "llama-3-8b")
    assert text.startswith("llama-3-8b (llama): 8,030,261,248 parameters\n")
    assert "layers/mlp/up" in text and "1,879,048,192" in text and "1.88 G" in text and "23%" in text
    assert "weights: 16,060,522,496 bytes, 15 GiB" in text


CONFIG = {
    "model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "tie_word_embeddings": True,
}  # fmt: skip


def test_a_model_is_a_name_a_file_a_folder_or_a_yml(tmp_path: Path) -> None:
    total = 2 * (4 * 64 * 64 + 3 * 64 * 96 + 2 * 64) + 100 * 64 + 64
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"vision_config": {"depth": 3}}), "utf-8")
    yml = tmp_path / "small.yml"
    yml.write_text("decoder_block: llama2\nbase_emb_dim: 64\nbase_mlp_dim: 96\nbase_num_decoder_layers: 2\nbase_num_query_heads: 4\n"
                   "base_num_kv_heads: 4\nhead_dim: 16\nvocab_size: 100\nlogits_via_embedding: true\n", "utf-8")  # fmt: skip
    for source in (tmp_path, tmp_path / "config.json", yml):
        assert json.loads(answer("params", str(source), "--json"))["total"] == total
    assert json.loads(answer("params", str(tmp_path), "--json"))["not_counted"] == ["vision_config: not counted"]
    assert answer("params", str(yml)).startswith("small (llama): ")
    assert json.loads(answer("params", "meta-llama/Llama-3.1-8B", "--json"))["total"] == 8_030_261_248


def test_bytes_that_are_not_known_are_said_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"quantization_config": {"quant_method": "hqq"}}), "utf-8")
    data = json.loads(answer("params", str(tmp_path), "--json"))
    assert data["weight_bytes"] is None and "'hqq'" in data["not_counted"][0]
    assert "weights: not known" in answer("params", str(tmp_path))


def test_kv_json_by_hand() -> None:
    data = json.loads(answer("kv", "gemma-3-4b", "--seq-len", "8192", "--batch", "3", "--json"))
    assert list(data) == ["bytes", "bytes_per_token", "state_bytes", "index_bytes", "affine"]
    token = 2 * 4 * 256 * 2  # of one layer: keys and values of 4 heads of 256, in 2 bytes
    assert data["bytes"] == 3 * token * (5 * 8192 + 29 * 1024)
    assert data["bytes_per_token"] == 34 * token
    assert data["affine"] == {"constant": 29 * 1024 * token, "per_token": 5 * token, "from": 1024}
    assert (data["state_bytes"], data["index_bytes"]) == (0, 0)


def test_kv_of_devices_pages_and_formats() -> None:
    def kv(*options: str) -> int:
        return int(json.loads(answer("kv", "llama-3.1-70b", "--seq-len", "1_000", *options, "--json"))["bytes"])

    assert kv() == 2 * 80 * 8 * 128 * 2 * 1000
    assert kv("--tp", "4") == kv() // 4 and kv("--tp", "16") == kv("--tp", "8")
    assert kv("--dtype", "fp8") == kv() // 2 and kv("--page", "256") * 1000 == kv() * 1024
    text = answer("kv", "llama-3.1-70b", "--seq-len", "1000", "--tp", "8")
    assert text.startswith("llama-3.1-70b (llama): 1 sequence of 1,000 tokens, bf16 on each of 8 devices\n")
    assert "from 1 token on: 0 + 40,960 bytes per token" in text


def test_flops_json_by_hand() -> None:
    data = json.loads(answer("flops", "llama-3-8b", "--batch", "2", "--seq-len", "4096", "--convention", "full", "--json"))
    assert list(data) == ["flops", "per_token", "parts", "six_nd", "ratio"]
    weights = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 4096 * 128256
    assert data["flops"] == 2 * 4096 * (6 * weights + 12 * 32 * 4096 * 4096) == sum(data["parts"].values())
    assert data["per_token"] == data["flops"] // 8192
    assert data["six_nd"]["all"] == 6 * 8_030_261_248 * 8192 and data["ratio"] == data["flops"] / data["six_nd"]["all"]
    decode = json.loads(answer("flops", "llama-3-8b", "--seq-len", "4096", "--kind", "decode", "--json"))
    assert decode["flops"] == decode["per_token"] == 2 * weights + 4 * 32 * 4096 * 4096
    full = json.loads(answer("flops", "llama-3-8b", "--batch", "2", "--seq-len", "4096", "--remat", "full", "--json"))
    assert full["flops"] > json.loads(answer("flops", "llama-3-8b", "--batch", "2", "--seq-len", "4096", "--json"))["flops"]
    assert "6ND, all" in answer("flops", "llama-3-8b", "--seq-len", "4096")


@pytest.mark.parametrize(
    ("argv", "messages"),
    [
        (["params", "llama-3-9b"], ["unknown model 'llama-3-9b'; did you mean 'llama-3-8b'", "Nor is 'llama-3-9b' a file or a folder here"]),
        (["params", "a\0b"], ["unknown model", "Nor is"]),
        (["params", "x" * 5000], ["unknown model", "Nor is"]),
        (["params"], ["the following arguments are required: MODEL"]),
        (["kv", "llama-3-8b"], ["--seq-len"]),
        (["kv", "llama-3-8b", "--seq-len", "0"], ["found '0', where a whole number from 1 to 1,000,000,000 is wanted"]),
        (["kv", "llama-3-8b", "--seq-len", "8", "--dtype", "bf61"], ["unknown dtype 'bf61'"]),
        (["flops", "llama-3-8b", "--seq-len", "8", "--kind", "serve"], ["--kind", "'serve'"]),
        (["flops", "llama-3-8b", "--seq-len", "8", "--remat", "some"], ["--remat", "'some'"]),
    ],
)  # fmt: skip
def test_mistakes_about_models_are_one_message(argv: list[str], messages: list[str]) -> None:
    text = mistake(*argv)
    assert all(message in text for message in messages) and text.count("\n") == 1


def test_a_file_that_is_no_configuration(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("{", "utf-8")
    assert "a Hugging Face configuration cannot be read from" in mistake("params", str(file))
    file.write_text(json.dumps(CONFIG | {"num_shared_heads": 4}), "utf-8")
    assert "num_shared_heads = 4" in mistake("params", str(file))
    (tmp_path / "empty").mkdir()
    assert "cannot be read from" in mistake("params", str(tmp_path / "empty"))


# ---- help, version, pipes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [["--help"], ["chips", "--help"], ["einsum", "-h"], ["check", "--help"], ["params", "-h"], ["kv", "-h"], ["flops", "-h"]],
)
def test_help(argv: list[str]) -> None:
    text = answer(*argv)
    assert text.startswith("usage: scalebook") and ("Example:  scalebook" in text or "COMMAND" in text)


def test_version() -> None:
    assert answer("--version") == f"scalebook {sb.__version__}\n"


class Closed(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


@pytest.mark.parametrize("argv", [["chips"], ["--help"], ["--version"], ["check", "rooflines/dot-product", "1"]])
def test_a_closed_pipe_is_no_error(argv: list[str]) -> None:
    err = io.StringIO()
    with contextlib.redirect_stdout(Closed()), contextlib.redirect_stderr(err):
        assert main(argv) == 141
    assert err.getvalue() == ""


def test_a_closed_error_pipe_is_no_error() -> None:
    with contextlib.redirect_stderr(Closed()):
        assert main(["chps"]) == 2


def test_a_narrow_encoding_is_no_error() -> None:
    raw = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(raw, encoding="ascii")) as stream:
        assert main(["check", "rooflines/dot-product", "1/2"]) == 0
        assert main(["einsum", "--help"]) == 0
        stream.flush()
    assert raw.getvalue().startswith(b"? rooflines/dot-product: right") and b"--size I=N,?" in raw.getvalue()


def test_as_a_program() -> None:
    """Through the real interpreter and a real pipe that closes early; `python -m scalebook` is the same program."""
    command = [sys.executable, "-m", "scalebook"]
    done = subprocess.run([*command, "check", "rooflines/dot-product", "3"], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 1 and "6 × too large" in done.stdout and done.stderr == ""
    with subprocess.Popen([*command, "chips", "v5p"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 141)
