# SPDX-License-Identifier: MIT
"""The page of fmha_bwd on a GPU: whole calls, workspace and sums of dq included, beside torch's backward.

Problems and limits are those of fmha_fwd's page. Deterministic calls are timed beside the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu import Gpu, GpuCall, GpuPage, Made, Probes
from library import Call
from page import Case, Judgement, Record
from pages.fmha_fwd_gpu import TORCH, WRONG, GpuShape, ShapeCase, Tensors, call_of
from rivals import attention_gpu

# What is asked in bf16 at d 128 from 4096 keys on: the best rival's time over ours, sustained, and the rate
# of deterministic calls over that of others.
RATIO, DETERMINISTIC, LONG = 1.05, 0.85, 4096
INPUTS, OUTPUTS = ("q", "k", "v", "do"), ("o", "dq", "dk", "dv")


@dataclass(frozen=True)
class Backward(GpuShape):
    """The same, backward."""

    @property
    def flop(self) -> float:
        """Of five products, three along the head dim of Q and two along that of V."""
        of_forward = super().flop
        return of_forward * (3 * self.d + 2 * self.hdim_v) / (self.d + self.hdim_v)


def both(b: int, h: int, h_k: int, s: int, d: int) -> tuple[Backward, ...]:
    """Without a mask, and causal."""
    return tuple(Backward(b, h, h_k, s, s, d, causal) for causal in (False, True))


SUITES: dict[str, tuple[Backward, ...]] = {
    "table": (
        *both(1, 16, 16, 16384, 128),
        *both(4, 32, 32, 4096, 128),
        *both(16, 32, 32, 1024, 128),
        *both(4, 32, 32, 4096, 64),
        *both(4, 16, 16, 4096, 256),
        *(replace(shape, d_v=128) for shape in both(4, 16, 16, 4096, 192)),
    ),
    "scaling": tuple(Backward(1, 16, 16, 1 << n, 1 << n, 128) for n in range(9, 15)),
}


def tensors_of(gpu: Gpu, shape: Backward, prec: str) -> Tensors:
    """Inputs, with O and LSE of Tessera's forward, and outputs. Heads share no keys."""
    s, kind = shape, TORCH[prec]
    hdims = {name: s.d if name.endswith(("q", "k")) else s.hdim_v for name in (*INPUTS, *OUTPUTS)}
    made = {name: gpu.tensor(s.b, s.h, s.s_q, hdims[name], dtype=kind) for name in INPUTS}
    made |= {name: gpu.empty(s.b, s.h, s.s_q, hdims[name], dtype=kind) for name in OUTPUTS}
    made |= {name: gpu.empty(s.b, s.h, s.s_q, dtype="float32") for name in ("lse", "d")}
    lse = {"nhead_stride_lse": s.s_q, "batch_stride_lse": s.h * s.s_q}
    forward = {name: made[name] for name in ("q", "k", "v", "o", "lse")}
    gpu.ready(call_of(gpu, s, prec, forward, ({"has_lse": 1}, lse)), forward)[1]()
    return made


def backward_of(gpu: Gpu, shape: Backward, prec: str, tensors: Tensors, deterministic: int) -> Call:
    """Tessera's."""
    s, value = shape, gpu.tessera.value
    sizes: Record = {"seqlen_q": s.s_q, "seqlen_k": s.s_k, "batch": s.b, "hdim_q": s.d, "hdim_v": s.hdim_v}
    sizes |= {"nhead_q": s.h, "nhead_k": s.h, "mask_type": value("mask", "top_left" if s.causal else "no")}
    traits = {**sizes, "data_type": value("fmha_dtype", prec), "is_deterministic": deterministic}
    args = {
        **sizes,
        **{f"{name}_ptr": tensor.data_ptr() for name, tensor in tensors.items()},
        **{"scale": s.d**-0.5, "window_size_right": 0 if s.causal else -1},
        **{"nhead_stride_lsed": s.s_q, "batch_stride_lsed": s.h * s.s_q},
    }
    for name in (*INPUTS, *OUTPUTS):
        ways = enumerate(("batch_stride", "nhead_stride", "stride"))
        args |= {f"{way}_{name}": tensors[name].stride(axis) for axis, way in ways}
    return Call(gpu.tessera, "fmha_bwd", traits, args)


def check(gpu: Gpu, shape: Backward, tensors: Tensors) -> None:
    """Compares the gradients of the last head with a computation in fp64."""
    torch, s = gpu.torch, shape
    q, k, v = (tensors[name][-1, -1].double().requires_grad_() for name in "qkv")
    scores = q @ k.T * s.d**-0.5
    if s.causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    o = torch.softmax(scores, -1) @ v
    wanted = torch.autograd.grad(o, (q, k, v), tensors["do"][-1, -1].double())
    for name, want in zip(("dq", "dk", "dv"), wanted, strict=True):
        error = float((tensors[name][-1, -1].double() - want).norm() / want.norm())
        if not error < WRONG:
            raise ValueError(f"wrong result: relative error {error:.3g} in {name} of the last head")


class BackwardCase(ShapeCase):
    """A shape, beside a plain product and rivals."""

    shape: Backward

    def contestants(self, gpu: Gpu) -> list[GpuCall]:
        """Ours, the limit, and ours where every run has to give the same."""
        self.tensors = tensors_of(gpu, self.shape, self.prec)

        def made(deterministic: int) -> Made:
            call = backward_of(gpu, self.shape, self.prec, self.tensors, deterministic)
            instance, run = gpu.ready(call, self.tensors)
            run()
            check(gpu, self.shape, self.tensors)
            return instance, run

        return [
            GpuCall("tessera", lambda: made(0), gpu),
            GpuCall(self.limit, Probes(gpu).product, gpu),
            GpuCall("deterministic", lambda: made(1), gpu),
        ]

    def rivals(self, gpu: Gpu, names: list[str]) -> list[GpuCall]:
        """On the same tensors."""
        inputs, gradient = [self.tensors[name] for name in "qkv"], self.tensors["do"]

        def maker(name: str) -> GpuCall:
            prepare = attention_gpu.BACKWARD[name]
            return GpuCall(name, lambda: prepare(gpu.torch, inputs, gradient, causal=self.shape.causal), gpu)

        return [maker(name) for name in names]

    def judge(self, records: list[Record]) -> list[Judgement]:
        """Of the rivals, and of deterministic calls."""
        ratios = {record["rival"]: record["ratio"] for record in records[1:]}
        rivals = [ratio for name, ratio in ratios.items() if name in PAGE.rivals]
        if self.prec != "bf16" or self.shape.d != 128 or self.shape.s_k < LONG:
            return []
        bars = [Judgement("times the best rival", min(rivals), least=RATIO)] if rivals else []
        if "deterministic" in ratios:
            bars.append(
                Judgement("rate of deterministic calls", 1 / ratios["deterministic"], least=DETERMINISTIC)
            )
        return bars


class GpuBackward(GpuPage):
    """fmha_bwd."""

    name = "fmha_bwd_gpu"
    operation = "fmha_bwd"
    suites = tuple(SUITES)
    usual = ("table",)
    precs = ("bf16", "fp16")
    programs: tuple[str, ...] = ()
    rivals = {"cudnn": "torch", "flash": "torch"}
    rival_module = "attention_gpu"
    pictured = ("table",)
    scaling = "scaling"
    scale_label = "length (16 heads, d 128)"

    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """A shape each."""
        return [BackwardCase(shape, prec) for prec in precs for shape in SUITES[suite]]

    def intensity(self, record: Record) -> float | None:
        """Backward moves twice what forward does."""
        shape = Backward(*(record[name] for name in Backward.__dataclass_fields__))
        return shape.intensity(record["prec"]) / 2

    def scale(self, record: Record) -> float:
        """The length."""
        return float(record["s_q"])


PAGE = GpuBackward()
