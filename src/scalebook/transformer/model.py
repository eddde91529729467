"""A Transformer as sizes: its parameters, FLOPs and caches, each the sum over its operations.

>>> x = Model.dense(L=32, D=4096, F=14336, N=32, K=8, H=128, V=128256)
>>> x.total_params, x.kv_bytes(8192)
(8030261248, 1073741824)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from scalebook.errors import ModelError, SizeError, shown, unknown, within
from scalebook.transformer.blocks import Block, attention, mlp
from scalebook.transformer.layers import MOST_LAYERS, Convention, Layer, around, attended, kept, norms
from scalebook.transformer.ops import Op, Size, Span, nothing
from scalebook.transformer.precision import Precision, bytes_of
from scalebook.units import ceil_div, is_array, largest, nbytes, positive, round_up, wide

Kind = Literal["train", "forward", "prefill", "decode"]
ACTIVE = {
    "all": "every parameter that one token uses",
    "no_input_embedding": "the same without tables that are looked up, unless a tied head multiplies by them",
    "no_embeddings": "the same without the tables and without the head",
}
REMAT = {
    "none": "nothing is computed twice",
    "selective": "the backward pass computes attention scores and their product with the values again",
    "full": "the backward pass computes every layer again, but not the head",
}


class Dims(NamedTuple):
    """The letters of the book: layers, model, feed-forward, query heads, key/value heads, head width, vocabulary."""

    L: Size
    D: Size
    F: Size
    N: Size
    K: Size
    H: Size
    V: Size


class Line(NamedTuple):
    """One product of a layer, in the notation, with its sizes: `spec` and `sizes` go to `scalebook.einsum`; `times` is how often it is done."""

    part: str
    spec: str
    sizes: Mapping[str, Size]
    times: Size


@dataclass(frozen=True, eq=False)
class Model:
    """A Transformer: kinds of layers, and around them embedding, last norm and head (`outer`).

    `mtp` are heads that predict further tokens, stated apart: no total includes them. `assumptions` are fields that were not given,
    `ignored` fields that change no count as far as we know, `not_counted` parts that are left out, such as a vision tower.
    """

    name: str
    family: str
    D: Size
    V: Size
    layers: tuple[Layer, ...]
    outer: tuple[Op, ...]
    tied: bool = False
    mtp: tuple[Op, ...] = ()
    context: int | None = None
    precision: Precision | None = None
    assumptions: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    not_counted: tuple[str, ...] = ()
    source: str = ""
    published: Mapping[str, int] = field(default_factory=dict)

    # ---- where it comes from -------------------------------------------------------------------------------------------------

    @classmethod
    def dense(
        cls,
        *,
        L: Size,
        D: Size,
        F: Size,
        N: Size,
        H: Size,
        V: Size,
        K: Size = None,
        gated: bool = True,
        tied: bool = False,
        window: Size = None,
        name: str = "by hand",
    ) -> Model:
        """A dense Transformer of L equal layers: attention, an MLP, a norm before each, no biases. Sizes may be NumPy arrays.

        >>> Model.dense(L=2, D=8, F=16, N=2, H=4, V=10).params()["embedding"]
        80
        """
        given = {
            "L": L,
            "D": D,
            "F": F,
            "N": N,
            "H": H,
            "V": V,
            "K": N if K is None else K,
            "window": 1 if window is None else window,
        }
        sizes = {n: positive(v, n, whole=True) for n, v in given.items()}
        most = {n: largest(v) for n, v in sizes.items()}
        if most["L"] > MOST_LAYERS:
            raise SizeError(f"L must be at most {MOST_LAYERS:,} layers; found {shown(L)}")
        if not isinstance(gated, bool) or not isinstance(tied, bool):
            raise ModelError(f"gated and tied must be True or False; found {shown(gated)} and {shown(tied)}")
        bound = 16 * most["D"] * (most["L"] * (most["F"] + most["N"] * most["H"]) + most["V"])
        L, D, F, N, H, V, K, window_size = wide(bound, **sizes)
        span = Span() if window is None else Span("window", window_size)
        blocks = (norms(D, D), attention(D=D, N=N, K=K, H=H, span=span), mlp(D=D, F=F, gated=gated))
        layers = (Layer("layer", blocks, L, tuple(range(L)) if isinstance(L, int) else ()),)
        return cls(name, "dense", D, V, layers, around(D=D, V=V, tied=tied), tied)

    @classmethod
    def from_hf(cls, config: Mapping[str, Any] | str | os.PathLike[str]) -> Model:
        """A model from a Hugging Face configuration: a dict, a `config.json`, or the folder that holds one.

        >>> Model.from_hf({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
        ...     "num_hidden_layers": 32, "num_attention_heads": 32}).total_params
        6738415616

        A field that changes a count and is not understood, or a family that is not known, is a ModelError that names it.
        """
        from scalebook.transformer.configs.reader import read_hf

        return read_hf(config)

    @classmethod
    def from_maxtext(cls, config: Mapping[str, Any] | str | os.PathLike[str]) -> Model:
        """A model from a MaxText configuration: a dict, or a yml file, read by PyYAML's safe loader (extra `yaml`)."""
        from scalebook.transformer.configs.maxtext import read_maxtext

        return read_maxtext(config)

    # ---- parameters ----------------------------------------------------------------------------------------------------------

    @property
    def L(self) -> Size:
        """Number of layers, all kinds together."""
        return sum(layer.count for layer in self.layers)

    @property
    def dims(self) -> Dims:
        """L, D, F, N, K, H, V: of the first attention and the first feed-forward block, where there are several kinds."""
        facts = [block.facts for layer in self.layers for block in layer.blocks]
        F, N, K, H = (next((f[letter] for f in facts if letter in f), 0) for letter in "FNKH")
        return Dims(self.L, self.D, F, N, K, H, self.V)

    def _sum(self, amount: Callable[[Op], Size]) -> dict[str, Size]:
        parts: dict[str, Size] = {}
        for path, times, op, _ in self.computed():
            n = amount(op)
            if not nothing(n):
                parts[path] = parts.get(path, 0) + times * n
        return parts

    def params(self) -> dict[str, Size]:
        """Parameters part by part; equal parts of all layers together. Their sum is the total.

        >>> Model.dense(L=2, D=8, F=16, N=2, H=4, V=10).params()["layers/mlp/up"]
        256
        """
        return self._sum(lambda op: op.params)

    @property
    def total_params(self) -> Size:
        """Σ of `params()`. Router biases, which checkpoints store, are counted; tied weights once; further-token heads not."""
        return sum(self.params().values())

    @property
    def mtp_params(self) -> Size:
        """Parameters of the heads that predict further tokens, with what they store of their own."""
        return sum(op.params for op in self.mtp)

    def active_params(self, convention: Literal["all", "no_input_embedding", "no_embeddings"] = "all") -> Size:
        """Parameters that one token uses: all but the experts that it is not sent to. Conventions: `transformer.ACTIVE`.

        >>> Model.dense(L=2, D=8, F=16, N=2, H=4, V=10).active_params("no_embeddings")
        1320
        """
        if not within(convention, ACTIVE):
            raise unknown("convention of active parameters", convention, ACTIVE)
        total = sum(self._sum(lambda op: op.active).values())
        tables = sum(op.params for op in self.outer if op.kind == "table" and not (self.tied and op.part == "embedding"))
        if convention == "all":
            return total
        if convention == "no_input_embedding":
            return total - tables
        heads = sum(op.params for op in self.outer if op.part in ("head", "head_bias"))
        return total - tables - heads - (sum(op.params for op in self.outer if op.part == "embedding") if self.tied else 0)

    # ---- FLOPs ---------------------------------------------------------------------------------------------------------------

    def flops_by_part(
        self,
        *,
        batch: Size,
        seq_len: Size,
        kind: Kind = "train",
        convention: Convention = "causal",
        remat: str = "none",
        logits: Literal["all", "last"] = "all",
        past: Size = 0,
    ) -> dict[str, Size]:
        """FLOPs of every part, of its matrix products (a norm or an activation has none); their sum is `flops()`."""
        for name, value, known in (("kind", kind, _KINDS), ("convention", convention, _CONVENTIONS), ("remat", remat, REMAT)):
            if not within(value, known):
                raise unknown(name, value, known)
        if not within(logits, ("all", "last")):
            raise unknown("logits", logits, ("all", "last"))
        B, S = positive(batch, "batch", whole=True), positive(seq_len, "seq_len", whole=True)
        past = positive(past, "past", whole=True, zero=True)
        if kind in ("train", "decode") and largest(past):
            raise SizeError(f"past = {shown(past)} is for a prefill, or a forward pass, after other tokens; kind is {kind!r}")
        if any(is_array(v) for v in (B, S, past)):
            used = [(largest(n), op) for _, n, op, _ in self.computed(decoding=kind == "decode")]
            most = sum(n * (largest(op.token_flops) + largest(op.pair_flops) * (largest(S) + largest(past))) for n, op in used)
            B, S, past = wide(8 * largest(B) * largest(S) * most, batch=B, seq_len=S, past=past)
        T, past = (1, S - 1) if kind == "decode" else (S, past)
        rounds = 3 if kind == "train" else 1  # backward: twice the products of forward, for the inputs and for the weights
        parts: dict[str, Size] = {}
        for path, times, op, _ in self.computed(decoding=kind == "decode"):
            again = (
                kind == "train"
                and path.startswith("layers/")
                and (remat == "full" or (remat == "selective" and op.kind == "mixing"))
            )
            tokens = B * (1 if op.part == "head" and logits == "last" else T)
            n = op.token_flops * tokens
            if not nothing(op.pair_flops):
                n = n + op.pair_flops * B * attended(op.span, T, past, convention)
            if not nothing(n):
                parts[path] = parts.get(path, 0) + times * n * (rounds + again)
        return parts

    def flops(
        self,
        *,
        batch: Size,
        seq_len: Size,
        kind: Kind = "train",
        convention: Convention = "causal",
        remat: str = "none",
        logits: Literal["all", "last"] = "all",
        past: Size = 0,
    ) -> Size:
        """FLOPs of `batch` sequences of `seq_len` tokens: of a training step, a forward pass, a prefill, or, for "decode", of one more token each.

        Training is 3 × forward, and what `remat` computes again (`transformer.REMAT`). Decoding makes the last of `seq_len` tokens; prefill
        is forward after `past` tokens that are there already. "causal" counts the pairs that the mask leaves, "full" all.

        >>> x = Model.dense(L=2, D=8, F=16, N=2, H=4, V=10)
        >>> x.flops(batch=1, seq_len=4), 3 * x.flops(batch=1, seq_len=4, kind="forward"), x.six_nd(4)
        (34560, 34560, 35520)
        """
        asked = {"kind": kind, "convention": convention, "remat": remat, "logits": logits, "past": past}
        return sum(self.flops_by_part(batch=batch, seq_len=seq_len, **asked).values())

    def six_nd(self, tokens: Size, convention: Literal["all", "no_input_embedding", "no_embeddings"] = "all") -> Size:
        """6·N·D, the rule of thumb: 6 FLOPs for each active parameter, of a `convention` of `ACTIVE`, and each token."""
        N, D = self.active_params(convention), positive(tokens, "tokens", zero=True)
        (D,) = wide(6 * largest(N) * largest(D), tokens=D)
        return 6 * N * D

    def computed(self, *, decoding: bool = False) -> Iterator[tuple[str, Size, Op, str]]:
        """Every operation as it is computed: path, how often, operation, kind of layer ("" around them). Decoding may mix otherwise."""
        for op in self.outer:
            yield op.part, 1, op, ""
        for layer in self.layers:
            for block in layer.blocks:
                ops = block.ops
                if decoding and block.decoding:
                    ops = (*(op for op in ops if op.kind != "mixing"), *block.decoding)
                for op in ops:
                    yield f"layers/{op.part}", layer.count, op, layer.kind

    def einsums(
        self,
        layer: str | None = None,
        *,
        batch: Size,
        seq_len: Size,
        kind: Kind = "forward",
        activations: Mapping[str, str] | None = None,
        weights: Mapping[str, str] | None = None,
    ) -> list[Line]:
        """The products of the layers of one kind (all kinds if None) as lines of the notation, to be placed on a mesh.

        `activations` and `weights` say over which axes of a mesh a letter is split in arrays without and with parameters:
        `activations={"B": "X"}, weights={"D": "X"}` is FSDP. C are the tokens that one expert gets, if all get the same.
        """
        from scalebook.transformer.lines import lines

        return lines(self, layer, batch=batch, seq_len=seq_len, kind=kind, activations=activations or {}, weights=weights or {})

    # ---- what is kept --------------------------------------------------------------------------------------------------------

    def kv_bytes(self, seq_len: Size, batch: Size = 1, dtype: str = "bf16", *, tp: Size = 1, page: Size = 1) -> Size:
        """Bytes of keys and values (or latents) of `batch` sequences of `seq_len` tokens, on each of `tp` devices that split the heads.

        Σ over layers: heads · (key + value widths) · tokens kept · bytes. A window keeps its last tokens only, so this is affine in the
        length, not linear. Fewer heads than devices are on several of them. `page`: lengths are rounded up to whole pages.

        >>> Model.dense(L=80, D=8192, F=28672, N=64, K=8, H=128, V=128256).kv_bytes(8192) // 8192
        327680
        """
        return self._kept(("kv", "latent"), seq_len, batch, dtype, tp, page)

    def index_bytes(self, seq_len: Size, batch: Size = 1, dtype: str = "bf16", *, tp: Size = 1, page: Size = 1) -> Size:
        """Bytes of the keys by which sparse attention chooses; kept beside `kv_bytes`, on every device."""
        return self._kept(("index",), seq_len, batch, dtype, tp, page)

    def expanded_kv_bytes(self, seq_len: Size, batch: Size = 1, dtype: str = "bf16", *, tp: Size = 1) -> Size:
        """Bytes of keys and values where latents are not kept but the keys and values of all heads made of them, as some engines do."""
        heads = (
            (layer.count * ceil_div(block.facts["N"], positive(tp, "tp", whole=True)), op.sizes["H"])
            for layer, block in self.blocks("latent attention")
            for op in block.ops
            if op.part in ("attention/scores", "attention/values")
        )
        S, B = positive(seq_len, "seq_len", whole=True, zero=True), positive(batch, "batch", whole=True)
        S, B = wide(2**40 * largest(S) * largest(B), seq_len=S, batch=B)
        return nbytes(B * S * sum(n * width for n, width in heads), dtype) + self._kept(("kv",), seq_len, batch, dtype, tp, 1)

    def state_bytes(self, batch: Size = 1, dtype: str = "bf16") -> Size:
        """Bytes of recurrent and convolution states of `batch` sequences, whatever their length. Engines often keep them in fp32."""
        B = positive(batch, "batch", whole=True)
        n = sum(layer.count * size for layer in self.layers for block in layer.blocks for size in block.state.values())
        (B,) = wide(8 * largest(n) * largest(B), batch=B)
        return nbytes(B * n, dtype)

    def _kept(self, kinds: tuple[str, ...], seq_len: Size, batch: Size, dtype: str, tp: Size, page: Size) -> Size:
        S, B = positive(seq_len, "seq_len", whole=True, zero=True), positive(batch, "batch", whole=True)
        tp, page = positive(tp, "tp", whole=True), positive(page, "page", whole=True)
        bound = 2**40 * (largest(S) + largest(page)) * largest(B)  # a model keeps less than 2^37 numbers of a token
        S, B, tp, page = wide(bound, seq_len=S, batch=B, tp=tp, page=page)
        n: Size = 0
        for layer in self.layers:
            for block in layer.blocks:
                for cache in block.cache:
                    if cache.kind in kinds:
                        tokens = round_up(kept(cache.span, S), page)
                        n = n + layer.count * ceil_div(cache.heads, tp) * (cache.key + cache.value) * tokens
        return nbytes(B * n, dtype)

    # ---- bytes of the weights ------------------------------------------------------------------------------------------------

    def weight_bytes(self, dtype: str | None = None, *, mtp: bool = False) -> Size:
        """Bytes of the weights: all in one `dtype`, or, without one, as the checkpoint's own mixed precision says (else bf16).

        ModelError where that precision is not understood. `mtp`: with the heads that predict further tokens.
        """
        if dtype is not None or self.precision is None:
            n = self.total_params + (self.mtp_params if mtp else 0)
            return nbytes(n, "bf16" if dtype is None else dtype)
        return sum(self.weight_bytes_by_format(mtp=mtp).values())

    def weight_bytes_by_format(self, *, mtp: bool = False) -> dict[str, Size]:
        """Bytes of the checkpoint by format, each with its scales: {"fp8, blocks of 128 × 128": ..., "bf16": ...}."""
        if self.precision is None:
            return {"bf16": self.weight_bytes("bf16", mtp=mtp)}
        return {name: bytes_of(n) for name, n in self.precision.elements(self, mtp=mtp).items()}

    def weight_elements(self, *, mtp: bool = False) -> dict[str, Size]:
        """Numbers in the checkpoint by dtype, scales among them. Hubs show these, but for 4 bits the words that hold them."""
        if self.precision is None:
            return {"bf16": self.total_params + (self.mtp_params if mtp else 0)}
        found: dict[str, Size] = {}
        for of in self.precision.elements(self, mtp=mtp).values():
            for dtype, n in of.items():
                found[dtype] = found.get(dtype, 0) + n
        return found

    def renamed(self, name: str, source: str = "", published: Mapping[str, int] | None = None) -> Model:
        """The same model under another name, with its source and what is published about it."""
        return replace(self, name=name, source=source, published=dict(published or {}))

    def blocks(self, kind: str) -> Iterator[tuple[Layer, Block]]:
        """Blocks of one kind, such as "attention", each with the layers it is in."""
        return ((layer, block) for layer in self.layers for block in layer.blocks if block.kind == kind)


_KINDS = ("train", "forward", "prefill", "decode")
_CONVENTIONS = ("causal", "full")
