# SPDX-License-Identifier: MIT
"""The fp64 reference against a second, naive implementation in numpy, written from the same header."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from formats import bf16_values, e2m1_values, e4m3_values, e4m3fnuz_values  # noqa: E402
from structs import struct_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
HEADER = (ROOT / "include/tessera/fmha_fwd.h").read_text()
DTYPES = ["fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32", "mxfp8", "mxfp4"]
NO_MASK, TOP_LEFT, BOTTOM_RIGHT, GENERIC = range(4)
NO_QSCALE, PER_TENSOR, BLOCK, KV_BLOCK, MX = range(5)
NO_FP8, E4M3FN, E4M3FNUZ = range(3)


Traits = struct_of(HEADER, "tessera_fmha_fwd_traits")
Args = struct_of(HEADER, "tessera_fmha_fwd_args")


class Row(ctypes.Structure):
    _fields_ = [("batch", ctypes.c_int32), ("head", ctypes.c_int32), ("query", ctypes.c_int32)]


# --- Philox -------------------------------------------------------------------------------------------------


def philox(counter: Any, key: tuple[int, int]) -> Any:
    """Philox4x32-10 on arrays of counters [..., 4] of uint64 that hold 32 bits."""
    x, y, z, w = (counter[..., n].astype(np.uint64) for n in range(4))
    low = np.uint64(0xFFFFFFFF)
    for n in range(10):
        k0 = np.uint64((key[0] + n * 0x9E3779B9) % 2**32)
        k1 = np.uint64((key[1] + n * 0xBB67AE85) % 2**32)
        a, b = x * np.uint64(0xD2511F53), z * np.uint64(0xCD9E8D57)
        x, y, z, w = (b >> np.uint64(32)) ^ y ^ k0, b & low, (a >> np.uint64(32)) ^ w ^ k1, a & low
    return np.stack([x, y, z, w], axis=-1)


def dropout_bytes(seed: int, offset: int, head: int, sq: int, sk: int) -> Any:
    i, j = np.meshgrid(np.arange(sq, dtype=np.uint64), np.arange(sk, dtype=np.uint64), indexing="ij")
    c = 2 * (j // 32) + j // 4 % 2
    mask = (1 << 32) - 1
    counter = np.stack(
        [
            np.full_like(i, offset & mask),
            np.full_like(i, offset >> 32),
            (i + (c << 24)) & mask,
            (c >> 8) + (head << 12),
        ],
        axis=-1,
    )
    words = philox(counter, (seed & mask, seed >> 32))
    number = j % 4 + 4 * (j % 32 // 8)
    word = np.take_along_axis(words, (number // 4)[..., None].astype(np.int64), axis=-1)[..., 0]
    return (word >> (number % 4 * 8) & 255).astype(np.uint8)


@pytest.mark.parametrize(
    ("counter", "key", "want"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(
    library: ctypes.CDLL, counter: tuple[int, ...], key: tuple[int, int], want: tuple[int, ...]
) -> None:
    """The answers that Random123 publishes, also of the numpy form."""
    out = (ctypes.c_uint32 * 4)()
    library.fmha_fwd_philox((ctypes.c_uint32 * 4)(*counter), (ctypes.c_uint32 * 2)(*key), out)
    assert tuple(out) == want
    assert tuple(philox(np.array(counter, dtype=np.uint64), key).tolist()) == want


def test_dropout_bytes(library: ctypes.CDLL) -> None:
    seed, offset, head = 0x123456789ABCDEF0, 0xFEDCBA9876543210, 37
    want = dropout_bytes(seed, offset, head, 5, 100)
    got = [[library.fmha_fwd_dropout_byte(seed, offset, head, i, j) for j in range(100)] for i in range(5)]
    np.testing.assert_array_equal(got, want)
    # Counters of far keys and rows carry into the upper bits and stay distinct.
    end = 2**24 - 1
    corners = [(h, i, j) for h in (0, 2**20 - 1) for i in (0, end) for j in (0, end)]
    for h, i, j in corners:
        c = 2 * (j // 32) + j // 4 % 2
        counter = np.array([7, 0, i + (c % 256 << 24), c // 256 + (h << 12)], dtype=np.uint64)
        word = int(philox(counter, (seed & 0xFFFFFFFF, seed >> 32))[j % 32 // 8])
        assert library.fmha_fwd_dropout_byte(seed, 7, h, i, j) == word >> (8 * (j % 4)) & 255


# --- attention ----------------------------------------------------------------------------------------------


def visible(mask: int, window: tuple[int, int], sink: int, sq: int, sk: int) -> Any:
    left, right = window
    i, j = np.arange(sq)[:, None], np.arange(sk)[None, :]
    if mask == NO_MASK:
        return np.ones((sq, sk), bool)
    # The window is [i - y + 1, i + x - 1], from sizes of a window around the diagonal or as it is.
    far, shift = 10**9, sk - sq if mask == BOTTOM_RIGHT else 0
    y, x = (left, right) if mask == GENERIC else (left + 1 - shift, right + 1 + shift)
    y, x = y if left >= 0 else far, x if right >= 0 else far
    seen = (j >= i - y + 1) & (j <= i + x - 1)
    if sink > 0 and y < sq:
        seen |= (j < sink) & (j < i + x) & (i < sk)
    return seen


def alibi(mask: int, window: tuple[int, int], slope: float, sq: int, sk: int) -> Any:
    left, right = window
    i, j = np.arange(sq)[:, None], np.arange(sk)[None, :]
    if mask != NO_MASK and left < 0 and right == 0:
        return slope * j * np.ones((sq, 1))
    if mask in (TOP_LEFT, GENERIC):
        return -slope * np.abs(i - j)
    return -slope * np.abs(i + max(sk - sq, 0) - j - max(sq - sk, 0))


class Problem:
    """A random problem: tensors as float64 and as bytes, args that point to the bytes."""

    def __init__(self, rng: Any, dtype: str, **fixed: Any) -> None:
        pick = lambda name, *values: fixed.get(name, values[int(rng.integers(len(values)))])  # noqa: E731
        self.dtype, self.rng = dtype, rng
        self.keep: list[Any] = []
        self.group = pick("group", 0, 1)
        self.batch, self.nhead_k = pick("batch", 1, 2, 3), pick("nhead_k", 1, 2)
        self.nhead = self.nhead_k * pick("ratio", 1, 2, 3)
        self.dq, self.dv = pick("dq", 2, 16, 40, 64, 130), pick("dv", 2, 24, 32, 72)
        self.room_q = [int(n) for n in rng.integers(1, 40, self.batch)] if self.group else [33] * self.batch
        self.room_k = [int(n) for n in rng.integers(0, 150, self.batch)] if self.group else [141] * self.batch
        self.padded = pick("padded", 0, 1, 2)  # 0: none, 1: lengths, 2: cumulative lengths
        self.sq = [int(rng.integers(0, n + 1)) for n in self.room_q] if self.padded else self.room_q
        self.sk = [int(rng.integers(0, n + 1)) for n in self.room_k] if self.padded else self.room_k
        self.mask = pick("mask", NO_MASK, TOP_LEFT, BOTTOM_RIGHT, GENERIC)
        windows = [(-1, 0), (5, 0), (-1, 7), (20, 30), (0, 0), (3, -1)]
        self.window: tuple[int, int] = pick("window", *windows) if self.mask else (-1, -1)
        self.sink_size = pick("sink_size", 0, 0, 2, 9) if self.mask else 0
        self.bias, self.cap = pick("bias", 0, 1, 2), 0.0
        if self.bias == 0:
            self.cap = pick("cap", 0.0, 0.0, 2.5)
        self.p_drop = pick("p_drop", 0.0, 0.2, 0.5)
        self.sinks = pick("sinks", 0, 1)
        self.rowmajor = pick("rowmajor", 0, 1)
        self.bshd = pick("bshd", 0, 1)
        fp8 = dtype.startswith("fp8")
        self.fp8 = pick("fp8", E4M3FN, E4M3FNUZ)
        self.qscale = (
            MX
            if dtype.startswith("mx")
            else pick("qscale", NO_QSCALE, PER_TENSOR, BLOCK)
            if fp8
            else NO_QSCALE
        )
        self.block = 16
        self.scale = 0.25
        self.seed, self.offset = 1234567890123, (1 << 40) + 5

    def pointer(self, array: Any) -> int:
        array = np.ascontiguousarray(array)
        self.keep.append(array)
        return int(array.ctypes.data)

    def random(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Values and bytes of a tensor of inputs."""
        rng = self.rng
        if self.dtype == "fp32":
            bits: Any = rng.normal(0, 1, shape).astype(np.float32)
            return bits.astype(np.float64), bits
        if self.dtype == "fp16":
            bits = rng.normal(0, 1, shape).astype(np.float16)
            return bits.astype(np.float64), bits
        if self.dtype == "bf16":
            bits = rng.integers(0x3D00, 0x4010, shape).astype(np.uint16) | (
                rng.integers(0, 2, shape) << 15
            ).astype(np.uint16)
            return bf16_values(bits), bits
        if self.dtype == "mxfp4":
            nibbles = rng.integers(0, 16, shape).astype(np.uint8)
            flat = nibbles.reshape(-1)
            return e2m1_values(nibbles), (flat[0::2] | flat[1::2] << 4).astype(np.uint8)
        bits = rng.integers(0, 0x48, shape).astype(np.uint8) | (rng.integers(0, 2, shape) << 7).astype(
            np.uint8
        )
        if self.fp8 == E4M3FNUZ and self.dtype != "mxfp8":
            bits[bits == 0x80] = 0
            return e4m3fnuz_values(bits), bits
        return e4m3_values(bits), bits

    def arrange(self, heads: int, tokens: int, columns: int, name: str, args: Any) -> Any:
        """A random tensor [batch, head, token, column], laid out as b*h*s*d or b*s*h*d."""
        count = 1 if self.group else self.batch
        shape = (count, tokens, heads, columns) if self.bshd else (count, heads, tokens, columns)
        values, bits = self.random(shape)
        setattr(args, f"{name}_ptr", self.pointer(bits))
        setattr(args, f"batch_stride_{name}", heads * tokens * columns)
        setattr(args, f"nhead_stride_{name}", columns if self.bshd else tokens * columns)
        setattr(args, f"stride_{name}", heads * columns if self.bshd else columns)
        return values.transpose(0, 2, 1, 3) if self.bshd else values

    def scales(self, heads: int, tokens: int, columns: int, name: str, args: Any) -> Any:
        """E8M0 scales [batch, head, token, column]."""
        count = 1 if self.group else self.batch
        bits = self.rng.integers(124, 130, (count, heads, tokens, columns)).astype(np.uint8)
        setattr(args, f"{name}_ptr", self.pointer(bits))
        setattr(args, f"batch_stride_{name}", heads * tokens * columns)
        setattr(args, f"nhead_stride_{name}", tokens * columns)
        setattr(args, f"stride_{name}", columns)
        return 2.0 ** (bits.astype(np.float64) - 127)

    def build(self) -> tuple[Any, Any]:
        rng = self.rng
        traits, args = Traits(), Args()
        traits.struct_size, args.struct_size = ctypes.sizeof(Traits), ctypes.sizeof(Args)
        traits.hdim_q, traits.hdim_v, traits.data_type = self.dq, self.dv, DTYPES.index(self.dtype)
        traits.is_group_mode, traits.is_v_rowmajor = self.group, self.rowmajor
        traits.has_logits_soft_cap, traits.mask_type, traits.bias_type = self.cap > 0, self.mask, self.bias
        traits.has_lse, traits.has_dropout, traits.qscale_type = 1, self.p_drop > 0, self.qscale
        traits.has_sink = self.sinks or self.sink_size > 0
        args.batch, args.nhead_q, args.nhead_k = self.batch, self.nhead, self.nhead_k
        args.hdim_q, args.hdim_v, args.scale_s, args.logits_soft_cap = self.dq, self.dv, self.scale, self.cap
        args.window_size_left, args.window_size_right = self.window
        args.sink_size, args.mask_type, args.p_drop = self.sink_size, self.mask, self.p_drop
        args.drop_seed, args.drop_offset = self.seed, self.offset
        self.set_lengths(args)
        tq, tk = (sum(self.room_q), sum(self.room_k)) if self.group else (self.room_q[0], self.room_k[0])
        tk_even = tk + tk % 2
        self.q = self.arrange(self.nhead, tq, self.dq, "q", args)
        self.k = self.arrange(self.nhead_k, max(tk, 1), self.dq, "k", args)
        if self.rowmajor:
            self.v = self.arrange(self.nhead_k, max(tk, 1), self.dv, "v", args)
        else:
            self.v = self.arrange(self.nhead_k, self.dv, max(tk_even, 2), "v", args).transpose(0, 1, 3, 2)
        self.set_descales(args, tq, tk)
        self.set_bias(args, tq)
        if self.sinks:
            self.sink_values = rng.normal(1, 2, self.nhead).astype(np.float32)
            args.sink_ptr = self.pointer(self.sink_values)
        return traits, args

    def set_lengths(self, args: Any) -> None:
        cumulate = lambda n: np.concatenate([[0], np.cumsum(n)]).astype(np.int32)  # noqa: E731
        for side, rooms, lengths in (("q", self.room_q, self.sq), ("k", self.room_k, self.sk)):
            if self.group:
                setattr(args, f"seqstart_{side}_ptr", self.pointer(cumulate(rooms)))
            else:
                setattr(args, f"seqlen_{side}", rooms[0])
            if self.padded == 1 and self.group:
                setattr(args, f"seqlen_{side}_ptr", self.pointer(np.array(lengths, np.int32)))
            elif self.padded:
                setattr(args, f"cu_seqlen_{side}_ptr", self.pointer(cumulate(lengths)))
        args.max_seqlen_q = max(self.sq)

    def set_descales(self, args: Any, tq: int, tk: int) -> None:
        rng = self.rng
        ceil = lambda n, by: -(-n // by)  # noqa: E731
        if self.qscale == PER_TENSOR:
            self.descale = rng.uniform(0.1, 1, 3).astype(np.float32)
            for name, value in zip("qkv", self.descale):
                setattr(args, f"{name}_descale_ptr", self.pointer(np.array([value], np.float32)))
        if self.qscale == BLOCK:
            args.block_scale_size_q = args.block_scale_size_kv = self.block
            self.blocks = {}
            for name, heads, lengths, rooms in (
                ("q", self.nhead, self.sq, self.room_q),
                ("k", self.nhead_k, self.sk, self.room_k),
                ("v", self.nhead_k, self.sk, self.room_k),
            ):
                counts = [ceil(n, self.block) for n in lengths]
                blocks = sum(counts) if self.group else ceil(rooms[0], self.block)
                values = rng.uniform(0.1, 1, (1 if self.group else self.batch, heads, max(blocks, 1))).astype(
                    np.float32
                )
                starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
                self.blocks[name] = (values.astype(np.float64), starts)
                setattr(args, f"{name}_descale_ptr", self.pointer(values))
                setattr(args, f"nhead_stride_{name}_descale", values.shape[2])
                setattr(args, f"batch_stride_{name}_descale", values.shape[1] * values.shape[2])
                if self.group and name != "v":
                    setattr(args, f"block_scale_seqstart_{name}_ptr", self.pointer(starts))
        if self.qscale == MX:
            columns = ceil(self.dq, 32)
            self.q = (
                self.q
                * np.repeat(self.scales(self.nhead, tq, columns, "q_descale", args), 32, 3)[..., : self.dq]
            )
            self.k = (
                self.k
                * np.repeat(self.scales(self.nhead_k, max(tk, 1), columns, "k_descale", args), 32, 3)[
                    ..., : self.dq
                ]
            )
            counts = [ceil(n, 32) for n in self.sk]
            self.v_starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            columns = max(sum(counts) if self.group else ceil(tk, 32), 1)
            self.v_scale = self.scales(self.nhead_k, self.dv, columns, "v_descale", args)
            if self.group:
                args.seqstart_v_scale_ptr = self.pointer(self.v_starts)

    def set_bias(self, args: Any, tq: int) -> None:
        if self.bias == 1:
            columns = max(self.room_k) + 3
            shape = (1 if self.group else self.batch, self.nhead, tq, columns)
            kind = {"fp16": np.float16}.get(self.dtype, np.float32)
            bits: Any = self.rng.normal(0, 1, shape).astype(kind)
            self.bias_values = bits.astype(np.float64)
            if self.dtype == "bf16":
                bits = (bits.view(np.uint32) >> 16).astype(np.uint16)
                self.bias_values = bf16_values(bits)
            args.bias_ptr = self.pointer(bits)
            args.batch_stride_bias, args.nhead_stride_bias = self.nhead * tq * columns, tq * columns
            args.stride_bias = columns
        if self.bias == 2:
            self.slopes = self.rng.uniform(0.01, 0.5, (self.batch, self.nhead)).astype(np.float32)
            args.bias_ptr, args.stride_bias = self.pointer(self.slopes), self.nhead

    def answer(self, b: int, h: int) -> tuple[Any, Any, Any]:
        """o, lse and bytes of dropout of one sequence and head: the header's equations on matrices."""
        g, sq, sk = h // (self.nhead // self.nhead_k), self.sq[b], self.sk[b]
        row = 0 if self.group else b
        q0, k0 = (sum(self.room_q[:b]), sum(self.room_k[:b])) if self.group else (0, 0)
        q, k = self.q[row, h, q0 : q0 + sq], self.k[row, g, k0 : k0 + sk]
        v = self.v[row, g, k0 : k0 + sk].copy()
        if self.qscale == PER_TENSOR:
            q, k, v = q * self.descale[0], k * self.descale[1], v * self.descale[2]
        if self.qscale == BLOCK:

            def column(name: str, head: int, count: int) -> Any:
                values, starts = self.blocks[name]
                return np.repeat(values[row, head, (starts[b] if self.group else 0) :], self.block)[
                    :count, None
                ]

            q, k, v = q * column("q", h, sq), k * column("k", g, sk), v * column("v", g, sk)
        if self.qscale == MX:
            scale = self.v_scale[row, g, :, (self.v_starts[b] if self.group else 0) :]
            v = v * np.repeat(scale, 32, 1)[:, :sk].T
        s = self.scale * (q @ k.T)
        if self.cap:
            s = self.cap * np.tanh(s / self.cap)
        if self.bias == 1:
            s = s + self.bias_values[row, h, q0 : q0 + sq, :sk]
        if self.bias == 2:
            s = s + alibi(self.mask, self.window, float(self.slopes[b, h]), sq, sk)
        s = np.where(visible(self.mask, self.window, self.sink_size, sq, sk), s, -np.inf)
        sink = np.float64(self.sink_values[h]) if self.sinks else -np.inf
        whole = np.concatenate([s, np.full((sq, 1), sink)], 1).astype(np.longdouble)
        with np.errstate(divide="ignore", invalid="ignore"):
            lse = np.log(np.exp(whole).sum(1)).astype(np.float64)
            p = np.where(np.isneginf(lse)[:, None], 0, np.exp(s - lse[:, None]))
        drawn = dropout_bytes(self.seed, self.offset, b * self.nhead + h, sq, sk)
        if self.p_drop:
            keep = np.float32(1) - np.float32(self.p_drop)
            p = np.where(drawn <= np.floor(keep * np.float32(255)), p / np.float64(keep), 0)
        return p @ v, lse, drawn


def compare(library: ctypes.CDLL, problem: Problem) -> int:
    traits, args = problem.build()
    rows = [
        (b, h, i) for b in range(problem.batch) for h in range(problem.nhead) for i in range(problem.sq[b])
    ]
    o = np.full((len(rows), problem.dv), np.nan)
    lse = np.full(len(rows), np.nan)
    widest = max([*problem.sk, 1])
    drawn = np.zeros((len(rows), widest), np.uint8)
    pointer = lambda array: ctypes.c_void_p(array.ctypes.data)  # noqa: E731
    failed = library.fmha_fwd_reference_rows(
        ctypes.byref(traits), ctypes.byref(args), problem.fp8, (Row * len(rows))(*rows),
        ctypes.c_int64(len(rows)), 3, pointer(o), pointer(lse), pointer(drawn), ctypes.c_int64(widest),
    )  # fmt: skip
    assert failed == 0
    at = 0
    for b in range(problem.batch):
        for h in range(problem.nhead):
            want_o, want_lse, want_drawn = problem.answer(b, h)
            n = problem.sq[b]
            np.testing.assert_allclose(o[at : at + n], want_o, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(lse[at : at + n], want_lse, rtol=1e-9, atol=1e-9)
            if problem.p_drop:
                np.testing.assert_array_equal(drawn[at : at + n, : problem.sk[b]], want_drawn)
            at += n
    return at


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(40))
def test_random_problems(library: ctypes.CDLL, dtype: str, seed: int) -> None:
    compare(library, Problem(np.random.default_rng([seed, DTYPES.index(dtype)]), dtype))


@pytest.mark.parametrize("mask", [TOP_LEFT, BOTTOM_RIGHT, GENERIC])
@pytest.mark.parametrize("window", [(-1, 0), (0, 0), (5, 3), (-1, 4), (4, -1), (60, 60)])
@pytest.mark.parametrize("sink_size", [0, 1, 7])
def test_masks(library: ctypes.CDLL, mask: int, window: tuple[int, int], sink_size: int) -> None:
    rng = np.random.default_rng(mask)
    problem = Problem(rng, "fp32", mask=mask, window=window, sink_size=sink_size, bias=2, group=1, batch=3)
    assert compare(library, problem) > 0
    args = problem.build()[1]
    for sq, sk in [(1, 1), (4, 9), (9, 4), (7, 7), (3, 0)]:
        seen = visible(mask, window, sink_size, sq, sk)
        for i in range(sq):
            assert library.fmha_fwd_keys_seen(ctypes.byref(args), sq, sk, i) == seen[i].sum()
            assert [library.fmha_fwd_sees(ctypes.byref(args), sq, sk, i, j) for j in range(sk)] == seen[
                i
            ].tolist()


def test_causal_masks_by_hand(library: ctypes.CDLL) -> None:
    """Two pictures that do not come from a formula."""
    args = Args()
    args.window_size_left, args.window_size_right = -1, 0
    see = lambda sq, sk: [  # noqa: E731
        "".join("*" if library.fmha_fwd_sees(ctypes.byref(args), sq, sk, i, j) else "." for j in range(sk))
        for i in range(sq)
    ]
    args.mask_type = TOP_LEFT
    assert see(3, 5) == ["*....", "**...", "***.."]
    args.mask_type = BOTTOM_RIGHT
    assert see(3, 5) == ["***..", "****.", "*****"]
    assert see(5, 3) == ["...", "...", "*..", "**.", "***"]
    args.window_size_left, args.sink_size = 1, 2
    assert see(6, 6) == ["*.....", "**....", "***...", "****..", "**.**.", "**..**"]


def test_keys_that_are_not_numbers_count_only_where_seen(library: ctypes.CDLL) -> None:
    problem = Problem(
        np.random.default_rng(1),
        "fp32",
        mask=TOP_LEFT,
        window=(-1, 0),
        sink_size=0,
        group=0,
        padded=0,
        p_drop=0.0,
    )
    traits, args = problem.build()
    hidden = problem.keep[[k.ctypes.data for k in problem.keep].index(args.k_ptr)]
    hidden.reshape(-1)[-1] = np.nan  # the last key, which no query of 33 sees among 141
    o, lse = np.zeros((1, problem.dv)), np.zeros(1)
    rows = (Row * 1)((problem.batch - 1, problem.nhead - 1, 32))
    library.fmha_fwd_reference_rows(
        ctypes.byref(traits), ctypes.byref(args), NO_FP8, rows, ctypes.c_int64(1), 1,
        ctypes.c_void_p(o.ctypes.data), ctypes.c_void_p(lse.ctypes.data), None, ctypes.c_int64(0),
    )  # fmt: skip
    assert np.isfinite(o).all() and np.isfinite(lse).all()
