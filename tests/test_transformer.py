"""The Model: sums of its parts, pairs of attention by brute force, laws of scaling, sweeps, lines of the notation, errors."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

import scalebook as sb
from scalebook.errors import ModelError, ScalebookError, SizeError
from scalebook.transformer import ACTIVE, REMAT
from scalebook.transformer.blocks import attention, experts, latent_attention, mlp
from scalebook.transformer.layers import Layer, around, attended, kept, norms, stacked
from scalebook.transformer.model import Model
from scalebook.transformer.ops import Span

sizes = st.integers(1, 40)
spans = st.one_of(st.just(Span()), st.builds(Span, st.sampled_from(["window", "chunk", "top", "every"]), st.integers(1, 12)))


def small(**changes: object) -> Model:
    given = {"L": 3, "D": 16, "F": 40, "N": 4, "K": 2, "H": 6, "V": 50} | changes
    return Model.dense(**given)


def seen(span: Span, at: int) -> int:
    """Keys that the query at a place (from 0) sees, counted one by one."""
    keys = range(at + 1)
    if span.kind == "window":
        return sum(at - s < span.width for s in keys)
    if span.kind == "chunk":
        return sum(s // span.width == at // span.width for s in keys)
    if span.kind == "top":
        return len(list(keys)[: span.width])
    if span.kind == "every":
        return sum((s + 1) % span.width == 0 for s in keys)
    return len(keys)


@given(spans, sizes, st.integers(0, 40))
def test_pairs_are_what_a_mask_leaves(span: Span, T: int, past: int) -> None:
    assert attended(span, T, past) == sum(seen(span, at) for at in range(past, past + T))
    if span.kind != "chunk":  # of a chunk, the last query sees less than the chunk holds
        assert kept(span, past + T) == seen(span, past + T - 1)
    assert attended(span, T, past, "full") == T * kept(span, past + T) >= attended(span, T, past) or span.kind == "chunk"


def test_parts_sum_to_the_total_and_to_a_count_by_hand() -> None:
    x = small()
    assert x.total_params == sum(x.params().values())
    D, F, N, K, H, V, L = 16, 40, 4, 2, 6, 50, 3
    assert x.total_params == L * (2 * D + 2 * D * N * H + 2 * D * K * H + 3 * D * F) + 2 * V * D + D
    assert x.dims == (L, D, F, N, K, H, V)
    assert small(tied=True).total_params == x.total_params - V * D
    assert small(gated=False).total_params == x.total_params - L * D * F


def test_flops_are_counted_product_by_product() -> None:
    x, B, T = small(), 2, 5
    D, F, N, K, H, V, L = 16, 40, 4, 2, 6, 50, 3
    weights = L * (2 * D * N * H + 2 * D * K * H + 3 * D * F) + D * V
    forward = 2 * B * T * weights + L * 4 * N * H * B * T * (T + 1) // 2
    assert x.flops(batch=B, seq_len=T, kind="forward") == forward
    assert x.flops(batch=B, seq_len=T) == 3 * forward
    assert x.flops(batch=B, seq_len=T, convention="full", kind="forward") == 2 * B * T * weights + L * 4 * N * H * B * T * T
    assert x.flops(batch=B, seq_len=T, kind="decode") == 2 * B * weights + L * 4 * N * H * B * T
    assert x.flops(batch=B, seq_len=T, remat="full") == 4 * forward - 2 * B * T * D * V
    assert x.flops(batch=B, seq_len=T, remat="selective") == 3 * forward + L * 4 * N * H * B * T * (T + 1) // 2
    assert x.flops(batch=B, seq_len=T, kind="prefill", logits="last") == forward - 2 * B * (T - 1) * D * V


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 12))
def test_prefill_in_pieces_costs_what_it_costs_at_once(first: int, second: int, W: int) -> None:
    x = small(window=W)
    pieces = x.flops(batch=1, seq_len=first, kind="prefill") + x.flops(batch=1, seq_len=second, kind="prefill", past=first)
    assert pieces == x.flops(batch=1, seq_len=first + second, kind="prefill")
    one_by_one = sum(x.flops(batch=1, seq_len=t, kind="decode") for t in range(1, first + 1))
    assert one_by_one == x.flops(batch=1, seq_len=first, kind="forward")


def test_conventions_of_active_parameters() -> None:
    E, k, D, F, V = 8, 2, 16, 10, 50
    layer = Layer(
        "experts", (norms(D, D), attention(D=D, N=2, K=2, H=8), experts(D=D, F=F, E=E, k=k, shared=6, router_bias=True)), 3
    )
    x = Model("", "", D, V, (layer,), around(D=D, V=V, tied=False))
    assert x.total_params - x.active_params("all") == 3 * (E - k) * 3 * D * F
    assert x.active_params("all") - x.active_params("no_input_embedding") == V * D
    assert x.active_params("no_input_embedding") - x.active_params("no_embeddings") == V * D
    tied = Model("", "", D, V, (layer,), around(D=D, V=V, tied=True), True)
    assert tied.active_params("no_input_embedding") == tied.active_params("all")  # the head multiplies by the table
    assert tied.active_params("no_embeddings") == x.active_params("no_embeddings")
    with pytest.raises(ScalebookError, match=r"unknown convention of active parameters 'none'.*no_embeddings"):
        x.active_params("none")  # type: ignore[arg-type]
    assert set(ACTIVE) == {"all", "no_input_embedding", "no_embeddings"}
    assert set(REMAT) == {"none", "selective", "full"}


def test_cache_windows_pages_and_devices() -> None:
    plain = small()
    assert plain.kv_bytes(10, batch=3) == 3 * 3 * 2 * (6 + 6) * 10 * 2
    assert plain.kv_bytes(10, dtype="fp8") * 2 == plain.kv_bytes(10)
    assert plain.kv_bytes(10, tp=2) * 2 == plain.kv_bytes(10)
    assert plain.kv_bytes(10, tp=8) == plain.kv_bytes(10, tp=2)  # two heads: four devices hold copies of each
    assert plain.kv_bytes(10, page=16) == plain.kv_bytes(16)
    assert small(window=4).kv_bytes(10) == plain.kv_bytes(4)
    assert plain.state_bytes() == plain.index_bytes(10) == 0
    latent = latent_attention(D=16, N=4, kv_rank=8, nope=6, rope=2, v=5)
    x = Model("", "", 16, 50, (Layer("layer", (latent,), 2),), around(D=16, V=50, tied=False))
    assert x.kv_bytes(7) == x.kv_bytes(7, tp=4) == 2 * (8 + 2) * 7 * 2
    absorbed = x.flops_by_part(batch=1, seq_len=7, kind="decode")["layers/attention/scores"]
    assert absorbed == 2 * 2 * 4 * (8 + 2) * 7
    assert x.flops_by_part(batch=1, seq_len=7, kind="forward", convention="full")["layers/attention/values"] == 2 * 2 * 4 * 5 * 49


def test_sweeps_give_the_same_numbers() -> None:
    lengths = np.array([1, 3, 10, 1000])
    L, D, F = np.array([1, 2, 3, 4]), 16, np.array([8, 16, 24, 32])
    wide = Model.dense(L=L, D=D, F=F, N=4, K=2, H=6, V=50, window=4)
    alone = [Model.dense(L=int(a), D=D, F=int(f), N=4, K=2, H=6, V=50, window=4) for a, f in zip(L, F, strict=True)]
    assert list(wide.total_params) == [x.total_params for x in alone]
    for kind in ("train", "decode"):
        found = wide.flops(batch=2, seq_len=lengths, kind=kind)  # type: ignore[arg-type]
        assert list(found) == [x.flops(batch=2, seq_len=int(n), kind=kind) for x, n in zip(alone, lengths, strict=True)]  # type: ignore[arg-type]
    assert list(wide.kv_bytes(lengths, tp=4, page=8)) == [
        x.kv_bytes(int(n), tp=4, page=8) for x, n in zip(alone, lengths, strict=True)
    ]


@pytest.mark.parametrize("kind", ["forward", "decode"])
@pytest.mark.parametrize("name", ["llama-3-8b", "mixtral-8x7b-v0.1", "deepseek-v3", "gemma-3-4b", "gpt2-xl"])
def test_lines_of_the_notation_cost_what_the_model_costs(name: str, kind: str) -> None:
    """Each line as an einsum of the library: 2 × the product of its sizes, together the FLOPs of the model (all pairs)."""
    x, B, S = sb.model(name), 64, 4096
    parts: dict[str, int] = {}
    for line in x.einsums(batch=B, seq_len=S, kind=kind):  # type: ignore[arg-type]
        parts[line.part] = parts.get(line.part, 0) + line.times * sb.einsum(line.spec, line.sizes).flops
    counted = x.flops_by_part(batch=B, seq_len=S, kind=kind, convention="full")  # type: ignore[arg-type]
    assert parts == {part: n for part, n in counted.items() if part in parts}
    assert sum(parts.values()) == pytest.approx(sum(counted.values()), rel=1e-3)  # convolutions and scans are no products


def test_lines_on_a_mesh_are_fsdp_and_tensor_parallelism() -> None:
    lines = sb.model("llama-3-8b").einsums(batch=8, seq_len=4096, activations={"B": "X", "F": "Y"}, weights={"D": "X", "F": "Y"})
    up = next(line for line in lines if line.part == "layers/mlp/up")
    e = sb.einsum(up.spec, up.sizes, {"X": 4, "Y": 2})
    assert [(c.kind, c.array, c.axes) for c in e.collectives] == [("all-gather", "W", ("X",))]
    with pytest.raises(ModelError, match=r"unknown kind of layer .global..*layer"):
        sb.model("llama-3-8b").einsums("global", batch=1, seq_len=1)


def test_layers_of_a_kind_are_put_together_with_their_places() -> None:
    a, b = Layer("", (mlp(D=4, F=8),)), Layer("", (mlp(D=4, F=16),))
    local, whole = stacked([("local", a), ("local", a), ("global", b), ("local", a)])
    assert (local.kind, local.count, local.at, whole.kind, whole.at) == ("local", 3, (0, 1, 3), "global", (2,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: small(N=3), r"3 query heads cannot share 2 key/value heads: N must be a multiple of K"),
        (lambda: small(D=0), r"D must be a whole number above 0.*found 0"),
        (lambda: small(F=2.5), r"F must be a whole number above 0.*found 2.5"),
        (lambda: experts(D=4, F=4, E=4, k=5), r"a token cannot use 5 of 4 experts"),
        (lambda: small().flops(batch=0, seq_len=5), r"batch must be .*found 0"),
        (lambda: small().flops(batch=1, seq_len=5, kind="serve"), r"unknown kind 'serve'"),
        (lambda: small().flops(batch=1, seq_len=5, convention="half"), r"unknown convention 'half'"),
        (lambda: small().flops(batch=1, seq_len=5, remat="some"), r"unknown remat 'some'"),
        (lambda: small().flops(batch=1, seq_len=5, logits="first"), r"unknown logits 'first'"),
        (lambda: small().kv_bytes(5, dtype="bf61"), r"unknown dtype 'bf61'"),
        (lambda: small().kv_bytes(5, tp=0), r"tp must be .*found 0"),
    ],
)
def test_mistakes_are_named(call: object, message: str) -> None:
    with pytest.raises((ModelError, SizeError, ScalebookError), match=message):
        call()  # type: ignore[operator]


def test_counting_takes_a_millisecond() -> None:
    """`make bench` prints the time; here only that it is not several times more."""
    x = sb.model("deepseek-v3")
    times = []
    for _ in range(20):
        start = time.perf_counter()
        x.total_params, x.flops(batch=1, seq_len=4096), x.kv_bytes(4096)
        times.append(time.perf_counter() - start)
    assert min(times) < 5e-3
    assert math.isfinite(x.total_params)


def test_sweeps_do_not_wrap_around_and_say_what_does_not_fit() -> None:
    x = sb.model("llama-3.1-405b")
    assert x.flops(batch=np.array([1024]), seq_len=8192)[0] == pytest.approx(x.flops(batch=1024, seq_len=8192))
    assert x.six_nd(np.array([2**23]))[0] == pytest.approx(x.six_nd(2**23))
    assert x.kv_bytes(np.array([2**30]), 2**20)[0] == pytest.approx(x.kv_bytes(2**30, 2**20))
    big = Model.dense(L=2, D=np.array([2**33]), F=np.array([2**33]), N=2, H=4, V=10)
    assert big.total_params[0] == pytest.approx(Model.dense(L=2, D=2**33, F=2**33, N=2, H=4, V=10).total_params)
    assert x.flops(batch=np.array([2]), seq_len=8192).dtype == np.int64  # exact where there is room
    with pytest.raises(SizeError, match=r"broadcastable.*batch \(2,\), seq_len \(3,\)"):
        x.flops(batch=np.array([1, 2]), seq_len=np.array([1, 2, 3]))
    with pytest.raises(SizeError, match="N must be a multiple of K"):
        Model.dense(L=2, D=8, F=8, N=np.array([4, 6]), K=np.array([3, 3]), H=4, V=10)
    with pytest.raises(SizeError, match="past = 3 is for a prefill"):
        x.flops(batch=1, seq_len=5, kind="decode", past=3)
