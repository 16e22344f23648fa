# SPDX-License-Identifier: MIT
"""The page of paged_attention on a GPU: decoding over pages, beside reading as many bytes.

Types are those of the cache; queries are bf16. int8 has a scale for each token and head, fp8 one of the
tensor, turbo4 its norms in slots. Quantised caches are timed beside the same problem in bf16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from gpu import Gpu, GpuCall, GpuCase, GpuPage, Made, Probes
from library import Call
from page import Case, Judgement, Probe, Record, beside, median_ratio
from pages._decode import HEADS, Decode

PRECS = ("bf16", "fp8_e4m3", "int8", "turbo4")
READ = 0.95  # of reading memory, in 16 bits
LOST = 0.20  # of the ratio of bytes that a quantised cache may lose
WRONG = 0.02  # the norm of the error over that of the result from which on it is wrong; NaN is too
GIB = 2.0**30

SUITES: dict[str, tuple[Decode, ...]] = {
    "table": tuple(
        Decode(b, *HEADS[1], ctx, 16, "nhd")
        for b, ctx in product((1, 8, 64), (1024, 8192, 65536))
        if b * ctx <= 1 << 19
    ),
    "all": tuple(
        shape
        for b, ctx, heads, page, layout in product(
            (1, 8, 64), (1024, 8192, 65536), HEADS, (16, 128), ("nhd", "hnd")
        )
        if (shape := Decode(b, *heads, ctx, page, layout)).kv_bytes("bf16") <= 8 * GIB
    ),
}

Tensors = dict[str, Any]


def cache_of(gpu: Gpu, s: Decode, kv: str) -> Any:
    """Rows of K or of V: [page, row, head, byte or element], or [page, head, row, ...]."""
    torch, pages = gpu.torch, s.b * s.ctx // s.page
    sizes = (pages, s.page, s.h_k) if s.layout == "nhd" else (pages, s.h_k, s.page)
    if kv == "bf16":
        return gpu.tensor(*sizes, s.d)
    made = torch.randint(0, 256, (*sizes, s.row_bytes(kv)), device=gpu.torch_device, dtype=torch.uint8)
    if kv == "turbo4":
        norms = torch.rand(*sizes, 1, device=gpu.torch_device) + 0.5
        made[..., s.d // 2 :] = norms.half().view(torch.uint8)
    elif kv == "fp8_e4m3":
        made &= 0xBF  # numbers below 2
    return made


def decoded(gpu: Gpu, s: Decode, kv: str, tensors: Tensors, name: str) -> Any:
    """K or V as numbers of fp64, [page, row, head, d]."""
    torch, rows = gpu.torch, tensors[name]
    if kv == "bf16":
        return rows.double()
    if kv == "turbo4":
        numbers = rows[..., : s.d // 2].long()
        both = torch.stack((numbers % 16, numbers // 16), -1).flatten(-2)
        norms = rows[..., s.d // 2 :].contiguous().view(torch.float16).double()
        return tensors["centroids"].double()[both] * norms
    numbers = rows.view(torch.int8 if kv == "int8" else torch.float8_e4m3fn)
    return numbers.to(torch.float32).double() * tensors[f"{name}_scale"].double()[..., None]


def tensors_of(gpu: Gpu, s: Decode, kv: str) -> Tensors:
    """All that a call reads and writes."""
    torch, on = gpu.torch, {"device": gpu.torch_device}
    q, k, v = gpu.tensor(s.b, s.h, s.d), cache_of(gpu, s, kv), cache_of(gpu, s, kv)
    table = torch.randperm(len(k), **on).int().view(s.b, s.ctx // s.page)
    lengths = torch.full((s.b,), s.ctx, dtype=torch.int32, **on)
    made = {"q": q, "k": k, "v": v, "block_table": table, "seqlen_k": lengths}
    if kv in ("fp8_e4m3", "int8"):
        each = k.shape[:3] if kv == "int8" else (1, 1, 1)
        made |= {f"{name}_scale": torch.rand(*each, **on) * (0.01 if kv == "int8" else 1) for name in "kv"}
    if kv == "turbo4":
        made["centroids"] = torch.linspace(-2, 2, 16, **on)
    return made | {"o": gpu.empty(s.b, s.h, s.d)}


def call_of(gpu: Gpu, s: Decode, kv: str, tensors: Tensors) -> Call:
    """Tessera's."""
    value = gpu.tessera.value
    traits = {
        **{"hdim_q": s.d, "hdim_v": s.d, "data_type": value("fmha_dtype", "bf16")},
        "kv_cache_dtype": value("kv_cache_dtype", "auto" if kv == "bf16" else kv),
        "kv_memory_layout": value("kv_layout", "linear"),
    }
    args = {
        **{f"{name}_ptr": tensor.data_ptr() for name, tensor in tensors.items()},
        **{"batch": s.b, "max_seqlen_q": 1, "max_seqlen_k": s.ctx, "hdim_q": s.d, "hdim_v": s.d},
        **{"nhead_q": s.h, "nhead_k": s.h_k, "num_total_pages": len(tensors["k"]), "page_block_size": s.page},
        **{"scale_s": s.d**-0.5, "batch_stride_block_table": s.ctx // s.page},
    }
    for name in "qo":
        args |= {f"batch_stride_{name}": s.h * s.d, f"stride_{name}": s.h * s.d, f"nhead_stride_{name}": s.d}
    ways = ("batch_stride", "stride", "nhead_stride")
    order = ways if s.layout == "nhd" else (ways[0], ways[2], ways[1])
    for name in "kv":
        args |= {f"{way}_{name}": tensors[name].stride(axis) for axis, way in enumerate(order)}
        if kv == "int8":
            scale = tensors[f"{name}_scale"]
            args |= {f"{way}_{name}_scale": scale.stride(axis) for axis, way in enumerate(order)}
    return Call(gpu.tessera, "paged_attention", traits, args)


def check(gpu: Gpu, s: Decode, kv: str, tensors: Tensors) -> None:
    """Compares some rows of the result with a computation in fp64."""
    by_page = ("k", "v", *(("k_scale", "v_scale") if kv == "int8" else ()))
    for b, h in {(0, 0), (s.b - 1, s.h - 1)}:
        pages = tensors["block_table"][b].long()
        own = tensors | {name: tensors[name][pages] for name in by_page}
        numbers = (decoded(gpu, s, kv, own, name) for name in "kv")
        head = (slice(None), slice(None), h // (s.h // s.h_k))
        k, v = (x[head if s.layout == "nhd" else (head[0], head[2])].flatten(0, 1) for x in numbers)
        want = gpu.torch.softmax(k @ tensors["q"][b, h].double() * s.d**-0.5, -1) @ v
        error = float((tensors["o"][b, h].double() - want).norm() / want.norm())
        if not error < WRONG:
            raise ValueError(f"wrong result: relative error {error:.3g} in sequence {b}, head {h}")


class DecodeGpuCase(GpuCase):
    """A problem and a type of cache."""

    def __init__(self, shape: Decode, kv: str) -> None:
        self.shape, self.kv, self.name = shape, kv, f"{kv} {shape}"

    def fields(self) -> Record:
        """The shape's."""
        return {**asdict(self.shape), "prec": self.kv}

    def contestants(self, gpu: Gpu) -> Sequence[GpuCall]:
        """Ours, the same in bf16 where it is of another type, and reading as many bytes."""

        def made(kv: str, name: str) -> GpuCall:
            def make() -> Made:
                tensors = tensors_of(gpu, self.shape, kv)
                instance, run = gpu.ready(call_of(gpu, self.shape, kv, tensors), tensors)
                run()
                check(gpu, self.shape, kv, tensors)
                return instance, run

            return GpuCall(name, make, gpu)

        probes, bytes_read = Probes(gpu), int(self.shape.kv_bytes(self.kv))
        plain = [] if self.kv == "bf16" else [made("bf16", "bf16")]
        read = GpuCall("read", lambda: probes.read(bytes_read), gpu)
        return [made(self.kv, "tessera"), read, *plain]

    def records(self, entries: list[Any], probes: list[Probe]) -> list[Record]:
        """Shares are of reading the same bytes in the same rounds."""
        ours, read, records = entries[0], entries[1], []
        for entry in entries:
            kv = "bf16" if entry.contestant.name == "bf16" else self.kv
            record = entry.record(ours)
            share = median_ratio(read.milliseconds, entry.milliseconds)
            share *= self.shape.kv_bytes(kv) / self.shape.kv_bytes(self.kv)
            gbytes = self.shape.kv_bytes(kv) / record["ms"] / 1e6
            more = {"gbytes": gbytes, "share": share, "probe": probes[0]}
            records.append({"instance": ours.what, "limit": "read", **record, **more})
        records[0]["bars"] = [judgement.record() for judgement in self.judge(records)]
        return records

    def judge(self, records: list[Record]) -> list[Judgement]:
        """Reading memory, or less bytes in less time."""
        if self.kv == "bf16":
            return [Judgement("share of the limit", records[0]["share"], READ)]
        ratio = self.shape.kv_bytes("bf16") / self.shape.kv_bytes(self.kv)
        return [Judgement("times bf16", r["ratio"], ratio * (1 - LOST)) for r in records[2:]]

    def line(self, records: list[Record]) -> str:
        """Ours, then bf16's."""
        ours = records[0]
        rate = f"{ours['gbytes']:.0f} GB/s, {100 * ours['share']:.0f} % of read"
        times = f"{1e3 * ours['ms']:.1f} us, {1e3 * ours['burst_ms']:.1f} us in bursts"
        return f"{times}, {rate}; {beside(records[2:])}"


class PagedAttentionGpu(GpuPage):
    """paged_attention."""

    name = "paged_attention_gpu"
    operation = "paged_attention"
    suites = tuple(SUITES)
    usual = ("table",)
    precs = PRECS
    programs = ()
    rivals: dict[str, str] = {}
    rival_module = "paged_attention"
    pictured = ()

    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """Each problem in each type."""
        return [DecodeGpuCase(shape, kv) for shape in SUITES[suite] for kv in precs]


PAGE = PagedAttentionGpu()
