# SPDX-License-Identifier: MIT
"""The page of the operations on rows on a GPU: problems as on CPUs, beside a copy of as many bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gpu import Gpu, GpuCall, GpuCase, GpuPage, Made, Probes
from library import Call
from page import Case, Judgement, Probe, Record, beside, median_ratio
from pages._rows import DYNAMIC, NONE, PRECS, SMALL, SMOOTH, STORE, STREAM, Problem
from rivals import rows_gpu

TORCH = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "int8": "int8", "e4m3": "float8_e4m3fn"}
SHAPES = {
    "table": ((2048, 8192), (8192, 8192), (32768, 1024)),
    "fused": ((8192, 8192),),
    "more": ((1, 4096), (131072, 256), (16384, 4097), (512, 131072)),
}
NORMS = ("layernorm2d_fwd", "rmsnorm2d_fwd")
QUANTIZING = ("add_rmsnorm2d_rdquant", "smoothquant", "moe_smoothquant")
EXPERTS, TOPK = 32, 5
MOST_ROWS = 65536  # that come out


def problems(suite: str, prec: str) -> list[Problem]:
    """Of all operations."""
    found = []
    for m, n in SHAPES[suite]:
        for op in NORMS:
            kinds = [(prec, NONE, NONE)]
            if suite == "fused":
                kinds = [(prec, STORE, NONE), ("int8", NONE, DYNAMIC), ("e4m3", STORE, SMOOTH)]
            found += [Problem(op, m, n, prec, out, fadd, fquant) for out, fadd, fquant in kinds]
        for op in QUANTIZING if suite != "fused" else ():
            experts, topk = (EXPERTS, TOPK) if op == "moe_smoothquant" else (0, 1)
            outs = SMALL if suite == "table" else SMALL[:1]
            found += [
                Problem(op, m, n, prec, out, NONE, NONE, experts, topk)
                for out in outs
                if m * topk < MOST_ROWS
            ]
    return found


def tensors_of(gpu: Gpu, p: Problem) -> dict[str, Any]:
    """Those of the formula in torch's words, on the GPU."""
    torch, dtype = gpu.torch, TORCH[p.prec]
    made = {"x": gpu.tensor(p.m, p.n, dtype=dtype)}
    if "norm" in p.op:
        made |= {name: gpu.tensor(p.n, dtype=dtype) for name in ("gamma", "beta")}
    if p.adds:
        made["residual"] = gpu.tensor(p.m, p.n, dtype=dtype)
    if p.smooths:
        sizes = (p.experts, p.n) if p.experts else (p.n,)
        made["sm_scale"] = torch.rand(*sizes, device=gpu.torch_device) + 0.5
    if p.experts:
        ids = torch.arange(p.m * p.topk, device=gpu.torch_device, dtype=torch.int32) % p.experts
        made["ids"] = ids.reshape(p.m, p.topk)
    return made


def outputs_of(gpu: Gpu, p: Problem) -> dict[str, Any]:
    """By the names of layernorm2d and rmsnorm2d."""
    made = {"y": gpu.empty(p.m * p.topk, p.n, dtype=TORCH[p.out])}
    if p.adds:
        made["y_residual"] = gpu.empty(p.m, p.n, dtype=TORCH[p.prec])
    if p.out in SMALL:
        made["y_scale"] = gpu.empty(p.m * p.topk, dtype="float32")
    return made


# What fields are called where they have another name than in layernorm2d and rmsnorm2d.
SPELLED = {
    "add_rmsnorm2d_rdquant": {"x": "a", "x_residual": "b", "y": "qy", "y_residual": "x"},
    "smoothquant": {"y": "qy"},
    "moe_smoothquant": {"y": "qy"},
}


def call_of(gpu: Gpu, p: Problem, tensors: dict[str, Any]) -> Call:
    """Tessera's."""
    spelled, value = SPELLED.get(p.op, {}), gpu.tessera.value
    traits = {
        "hidden_size" if p.experts else "n": p.n,
        **{"prec_i": value("type", p.prec), "prec_o": value("type", p.out)},
    }
    args: Record = {"tokens": p.m, "experts": p.experts, "topk": p.topk} if p.experts else {"m": p.m}
    if p.op in NORMS:
        traits |= {"fused_add": p.fadd, "fused_quant": p.fquant}
    if p.op == "add_rmsnorm2d_rdquant":
        traits["save_x"] = 1
    if "norm" in p.op:
        args["epsilon"] = 1e-5
    names = {"residual": "x_residual", "ids": "topk_ids"}
    strides = {"x": "x", "x_residual": "xr", "y": "y", "y_residual": "yr"}
    if p.op == "add_rmsnorm2d_rdquant":
        strides = {"x": "a", "x_residual": "b", "y": "y", "y_residual": "x"}
    for key, tensor in tensors.items():
        name = names.get(key, key)
        if name == "beta" and p.op != "layernorm2d_fwd":
            continue
        args[f"{spelled.get(name, name)}_ptr"] = tensor.data_ptr()
        if name in strides:
            args[f"{strides[name]}_stride"] = p.n
    return Call(gpu.tessera, p.op, traits, args)


class RowsCase(GpuCase):
    """A problem, beside a copy and rivals."""

    def __init__(self, problem: Problem) -> None:
        self.row_problem = problem
        self.name = f"{problem.op} {problem}"
        self.tensors: dict[str, Any] = {}

    def fields(self) -> Record:
        """The problem's."""
        return asdict(self.row_problem)

    @property
    def moved(self) -> int:
        """Bytes: each tensor once."""
        return sum(self.row_problem.reads() + self.row_problem.writes())

    def contestants(self, gpu: Gpu) -> Sequence[GpuCall]:
        """Ours, and a copy of as many bytes."""
        p = self.row_problem
        self.tensors = tensors_of(gpu, p)

        def make() -> Made:
            everything = self.tensors | outputs_of(gpu, p)
            return gpu.ready(call_of(gpu, p, everything), everything)

        probes = Probes(gpu)
        return [GpuCall("tessera", make, gpu), GpuCall("copy", lambda: probes.copy(self.moved), gpu)]

    def rivals(self, gpu: Gpu, names: list[str]) -> Sequence[GpuCall]:
        """On the same tensors."""
        p = self.row_problem
        problem = {**self.fields(), "adds": p.adds, "smooths": p.smooths}

        def maker(name: str) -> GpuCall:
            return GpuCall(name, lambda: rows_gpu.PREPARE[name](gpu.torch, problem, self.tensors), gpu)

        return [maker(name) for name in names]

    def records(self, entries: list[Any], probes: list[Probe]) -> list[Record]:
        """Shares are of the copy."""
        ours, copy = entries[0], next((e for e in entries if e.contestant.name == "copy"), entries[0])
        records = []
        for entry in entries:
            record = entry.record(ours)
            share = median_ratio(copy.milliseconds, entry.milliseconds)
            rates = {"gbytes": self.moved / record["ms"] / 1e6, "share": share}
            records.append({"instance": ours.what, "limit": "copy", **record, **rates, "probe": probes[0]})
        bars = (
            [Judgement("share of a copy", records[0]["share"], least=STREAM)]
            if self.row_problem.m > 1
            else []
        )
        if records[2:]:
            bars.append(Judgement("times the best rival", min(r["ratio"] for r in records[2:]), least=1.0))
        records[0]["bars"] = [bar.record() for bar in bars]
        self.tensors = {}
        return records

    def line(self, records: list[Record]) -> str:
        """Ours, the copy, then each rival with its ratio."""
        ours = records[0]
        share = f"{100 * ours['share']:.0f} % of a copy"
        return f"{1e3 * ours['ms']:.4g} us, {ours['gbytes']:.4g} GB/s, {share}; {beside(records[2:])}"


class GpuRows(GpuPage):
    """All operations on rows."""

    name = "rows_gpu"
    suites = tuple(SHAPES)
    usual = ("table", "fused")
    precs = PRECS
    programs = ()
    rivals = {"torch": "torch", "torch.compile": "torch"}
    rival_module = "rows_gpu"
    pictured = ("table", "fused")

    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """Of all operations."""
        return [RowsCase(problem) for prec in precs for problem in problems(suite, prec)]


PAGE = GpuRows()
