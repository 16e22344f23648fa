# SPDX-License-Identifier: MIT
"""The page of fmha_fwd on a GPU: problems, what limits them, what is asked of them, and torch's backends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gpu import Gpu, GpuCall, GpuCase, GpuEntry, GpuPage, Made, Probes
from library import Call
from page import Case, Judgement, Probe, Record, beside, median_ratio
from pages.fmha_fwd import Shape
from rivals import attention_gpu
from turns import Contestant, Program, Unable

BYTES = {"fp16": 2, "bf16": 2, "fp8bf16": 1}
TORCH = {"fp16": "float16", "bf16": "bfloat16", "fp8bf16": "float8_e4m3fn"}
OUTPUT = {"fp16": "float16", "bf16": "bfloat16", "fp8bf16": "bfloat16"}
WRONG = 0.02  # the norm of the error over that of the result from which on it is wrong; NaN is too


@dataclass(frozen=True)
class GpuShape(Shape):
    """V and O may have another head dim."""

    d_v: int = 0  # 0: d

    def __str__(self) -> str:
        text = super().__str__()
        return text.replace(f"d{self.d}", f"d{self.d}x{self.d_v}") if self.d_v else text

    @property
    def hdim_v(self) -> int:
        """Of V and O."""
        return self.d_v or self.d

    @property
    def flop(self) -> float:
        """Of both products; a causal mask counts as half."""
        products = 2.0 * self.b * self.h * self.s_q * self.s_k * (self.d + self.hdim_v)
        return products * (0.5 if self.causal else 1.0)

    def kv_bytes(self, prec: str) -> float:
        """Of K and V."""
        return float(self.b * self.h_k * self.s_k * (self.d + self.hdim_v) * BYTES[prec])

    def intensity(self, prec: str) -> float:
        """FLOP for a byte."""
        qo_bytes = self.b * self.h * self.s_q * (self.d * BYTES[prec] + self.hdim_v * 2.0)
        return self.flop / (self.kv_bytes(prec) + qo_bytes)


def both(b: int, h: int, h_k: int, s: int, d: int) -> tuple[GpuShape, ...]:
    """Without a mask, and causal."""
    return tuple(GpuShape(b, h, h_k, s, s, d, causal) for causal in (False, True))


SUITES: dict[str, tuple[GpuShape, ...]] = {
    "table": (
        *both(2, 8, 8, 3328, 128),
        *both(1, 16, 16, 16384, 128),
        *both(4, 32, 32, 4096, 128),
        *both(4, 32, 8, 4096, 128),
        *both(16, 32, 32, 1024, 128),
        *both(4, 32, 32, 4096, 64),
        *both(4, 16, 16, 4096, 256),
        *(replace(shape, d_v=128) for shape in both(4, 16, 16, 4096, 192)),
    ),
    "decode": (GpuShape(64, 32, 8, 1, 8192, 128), GpuShape(8, 32, 8, 1, 8192, 128)),
    "scaling": tuple(GpuShape(1, 16, 16, 1 << n, 1 << n, 128) for n in range(9, 15)),
}

# ---- what is asked: times that of the faster of cuDNN and flash, sustained, in bf16
LONG = 4096
DECODE = 0.95  # of reading memory
FP8 = 1.5  # times the rate of bf16
RAGGED_RATE = 0.93  # of that of equal lengths
LAUNCH_US = 3.0


def least_ratio(shape: Shape, prec: str) -> float | None:
    """The best rival's time over ours; None where nothing is asked."""
    if prec != "bf16" or shape.is_decode or not isinstance(shape, GpuShape):
        return None
    if shape.hdim_v != shape.d or shape.d == 256:
        return 1.0
    if shape.d == 64 or shape.s_k < LONG:
        return 1.05
    if shape.h != shape.h_k:
        return 1.10
    return 1.15 if shape.causal else 1.08


def judge(shape: Shape, prec: str, records: list[Record]) -> list[Judgement]:
    """Of a shape's records: Tessera's, the probe's, and rivals'."""
    bars, rivals, least = [], records[2:], least_ratio(shape, prec)
    if shape.is_decode:
        bars.append(Judgement("share of the limit", records[0]["share"], least=DECODE))
    if rivals and least is not None:
        bars.append(Judgement("times the best rival", min(r["ratio"] for r in rivals), least=least))
    return bars


# ---- calls

Tensors = dict[str, Any]
More = tuple[Record, Record]  # traits and args


def tensors_of(gpu: Gpu, shape: GpuShape, prec: str) -> Tensors:
    """Q, K, V and O as [batch, head, token, d]."""
    s, kind = shape, TORCH[prec]
    return {
        "q": gpu.tensor(s.b, s.h, s.s_q, s.d, dtype=kind),
        "k": gpu.tensor(s.b, s.h_k, s.s_k, s.d, dtype=kind),
        "v": gpu.tensor(s.b, s.h_k, s.s_k, s.hdim_v, dtype=kind),
        "o": gpu.empty(s.b, s.h, s.s_q, s.hdim_v, dtype=OUTPUT[prec]),
    }


def call_of(gpu: Gpu, shape: GpuShape, prec: str, tensors: Tensors, more: More = ({}, {})) -> Call:
    """Tessera's, with more traits and args."""
    s, value = shape, gpu.tessera.value
    mask = value("mask", "top_left" if s.causal else "no")
    traits = {
        **{"hdim_q": s.d, "hdim_v": s.hdim_v, "data_type": value("fmha_dtype", prec)},
        **{"is_v_rowmajor": 1, "mask_type": mask, **more[0]},
    }
    args = {
        **{f"{name}_ptr": tensor.data_ptr() for name, tensor in tensors.items()},
        **{"seqlen_q": s.s_q, "seqlen_k": s.s_k, "batch": s.b, "max_seqlen_q": s.s_q},
        **{"hdim_q": s.d, "hdim_v": s.hdim_v, "nhead_q": s.h, "nhead_k": s.h_k, "scale_s": s.d**-0.5},
        **{"mask_type": traits["mask_type"], "window_size_right": 0 if s.causal else -1},
    }
    for name, tensor in tensors.items():
        if tensor.dim() == 4:
            ways = enumerate(("batch_stride", "nhead_stride", "stride"))
            args |= {f"{way}_{name}": tensor.stride(axis) for axis, way in ways}
    return Call(gpu.tessera, "fmha_fwd", traits, args | more[1])


def check(gpu: Gpu, shape: GpuShape, tensors: Tensors) -> None:
    """Compares some rows of the result with a computation in fp64."""
    torch, s = gpu.torch, shape
    rows = torch.unique(torch.linspace(0, s.s_q - 1, 64, device=gpu.torch_device).long())
    for b, h in {(0, 0), (s.b - 1, s.h - 1)}:
        q, k, v = (
            tensors[name][b, head].double()
            for name, head in (("q", h), ("k", h // (s.h // s.h_k)), ("v", h // (s.h // s.h_k)))
        )
        scores = q[rows] @ k.T * s.d**-0.5
        if s.causal:
            keys = torch.arange(s.s_k, device=gpu.torch_device)
            scores.masked_fill_(keys[None] > rows[:, None], float("-inf"))
        want = torch.softmax(scores, -1) @ v
        error = float((tensors["o"][b, h, rows].double() - want).norm() / want.norm())
        if not error < (WRONG if tensors["q"].element_size() > 1 else 4 * WRONG):
            raise ValueError(f"wrong result: relative error {error:.3g} in sequence {b}, head {h}")


def tessera(gpu: Gpu, shape: GpuShape, prec: str, tensors: Tensors, name: str = "tessera") -> GpuCall:
    """The call, whose result is compared once."""

    def make() -> Made:
        call = call_of(gpu, shape, prec, tensors | scales(gpu, prec), (quantized(gpu, prec), {}))
        instance, run = gpu.ready(call, tensors)
        run()
        check(gpu, shape, tensors)
        return instance, run

    return GpuCall(name, make, gpu)


def quantized(gpu: Gpu, prec: str) -> Record:
    """Traits of a type of 8 bits: one scale for each tensor."""
    return {"qscale_type": gpu.tessera.value("qscale", "pt")} if BYTES[prec] == 1 else {}


ONES: dict[str, Any] = {}  # a number of memory, which every call may read


def scales(gpu: Gpu, prec: str) -> Tensors:
    """All are 1."""
    if BYTES[prec] > 1:
        return {}
    one = ONES.setdefault(gpu.torch_device, gpu.torch.ones(1, device=gpu.torch_device))
    return dict.fromkeys(("q_descale", "k_descale", "v_descale"), one)


# ---- cases


class ShapeCase(GpuCase):
    """A shape, beside what limits it and rivals."""

    def __init__(self, shape: GpuShape, prec: str) -> None:
        self.shape, self.prec, self.name = shape, prec, f"{prec} {shape}"
        self.tensors: Tensors = {}

    def fields(self) -> Record:
        """The shape's."""
        return {**asdict(self.shape), "prec": self.prec}

    @property
    def limit(self) -> str:
        """Decoding reads K and V; else it is a plain product, of bf16 whatever the type."""
        return "read" if self.shape.is_decode else "product"

    def contestants(self, gpu: Gpu) -> list[GpuCall]:
        """Ours, and the limit."""
        probes = Probes(gpu)
        limits = {
            "read": lambda: probes.read(int(self.shape.kv_bytes(self.prec))),
            "product": probes.product,
        }
        self.tensors = tensors_of(gpu, self.shape, self.prec)
        ours = tessera(gpu, self.shape, self.prec, self.tensors)
        return [ours, GpuCall(self.limit, limits[self.limit], gpu)]

    def rivals(self, gpu: Gpu, names: list[str]) -> list[GpuCall]:
        """On the same tensors."""
        if BYTES[self.prec] == 1:
            return []
        q, k, v = (self.tensors[name] for name in "qkv")

        def maker(name: str) -> GpuCall:
            prepare = attention_gpu.PREPARE[name]
            return GpuCall(name, lambda: prepare(gpu.torch, q, k, v, causal=self.shape.causal), gpu)

        return [maker(name) for name in names]

    def work(self, rival: str) -> float:
        """FLOP, or bytes."""
        if rival == "product":
            return 2.0 * Probes.SIDE**3
        return self.shape.kv_bytes(self.prec) if self.shape.is_decode else self.shape.flop

    def records(self, entries: list[Any], probes: list[Probe]) -> list[Record]:
        """Shares are of the limit in the same rounds."""
        ours, limit = entries[0], next((e for e in entries if e.contestant.name == self.limit), entries[0])
        records = []
        for entry in entries:
            work = self.work(entry.contestant.name)
            record = entry.record(ours)
            share = median_ratio(limit.milliseconds, entry.milliseconds) * work / self.work(self.limit)
            rates = {
                "gflops": (work if entry is limit and self.limit == "product" else self.shape.flop)
                / record["ms"]
                / 1e6,
                "gbytes": self.shape.kv_bytes(self.prec) / record["ms"] / 1e6,
                "share": share,
            }
            records.append(
                {"instance": ours.what, "limit": self.limit, **record, **rates, "probe": probes[0]}
            )
        records[0]["bars"] = [bar.record() for bar in self.judge(records)]
        self.tensors = {}
        return records

    def judge(self, records: list[Record]) -> list[Judgement]:
        """What is asked of them."""
        return judge(self.shape, self.prec, records)

    def line(self, records: list[Record]) -> str:
        """Ours, sustained and in bursts, then each rival with its ratios."""
        ours = records[0]
        unit, rate = ("GB/s", "gbytes") if self.shape.is_decode else ("TFLOP/s", "gflops")
        scale = 1.0 if self.shape.is_decode else 1e-3
        burst = ours[rate] * ours["ms"] / ours["burst_ms"]
        share = f"{100 * ours['share']:.0f} % of {ours['limit']}"
        bursts = ", ".join(f"{r['rival']} {r['burst_ratio']:.2f}x" for r in records[2:])
        clock = f" at {ours['mhz']:.0f} MHz, {ours['watts']:.0f} W" if "mhz" in ours else ""
        return (
            f"{ours[rate] * scale:.0f} {unit} sustained{clock}, {burst * scale:.0f} in bursts, {share}; "
            f"{beside(records[2:])}; in bursts {bursts}"
        )


@dataclass(frozen=True)
class Feature:
    """A call that is timed beside the plain one."""

    name: str
    prec: str
    beside: str  # type of the plain call
    least: float | None = None  # of the plain call's rate
    work: float = 1.0  # over that of the plain call
    words: Record = field(default_factory=dict)  # further fields; of traits by their words

    def __hash__(self) -> int:
        return hash((self.name, self.prec))


PLAIN = GpuShape(8, 16, 16, 4096, 4096, 128)
RAGGED = (8192, 5000, 4096, 3500, 2500, 2000, 1500, 712)
RAGGED_WORK = sum(s * s for s in RAGGED) / (PLAIN.b * PLAIN.s_q**2)


def features() -> list[Feature]:
    """Additions to a plain call, and types beside bf16."""
    return [
        Feature("lse", "bf16", "bf16"),
        Feature("soft cap", "bf16", "bf16"),
        Feature("alibi", "bf16", "bf16"),
        Feature("bias", "bf16", "bf16"),
        Feature("dropout", "bf16", "bf16"),
        Feature("window", "bf16", "bf16", None, window_share(PLAIN.s_q, 1023)),
        Feature("ragged", "bf16", "bf16", RAGGED_RATE, RAGGED_WORK),
        Feature("fp16", "fp16", "bf16"),
        Feature("fp8bf16", "fp8bf16", "bf16", FP8),
        Feature("column-major v", "bf16", "bf16"),
        Feature("column-major v", "fp8bf16", "fp8bf16"),
        Feature("descales of blocks", "fp8bf16", "fp8bf16"),
    ]


BLOCK = 128  # queries, or keys, that have a descale of their own


def block_descales(gpu: Gpu) -> tuple[Tensors, Record, Record]:
    """Of each block of queries and keys: from 1/2 to 3/2."""
    s, blocks = PLAIN, PLAIN.s_k // BLOCK
    names = [f"{name}_descale" for name in "qkv"]
    tensors = {name: gpu.torch.rand(s.b, s.h, blocks, device=gpu.torch_device) + 0.5 for name in names}
    args: Record = {"block_scale_size_q": BLOCK, "block_scale_size_kv": BLOCK}
    for name in names:
        args |= {f"nhead_stride_{name}": blocks, f"batch_stride_{name}": s.h * blocks}
    return tensors, {"qscale_type": gpu.tessera.value("qscale", "bs")}, args


def window_share(s: int, window: int) -> float:
    """Of the s * s pairs, those where a query sees itself and the `window` keys before it."""
    return sum(min(i, window) + 1 for i in range(s)) / s**2


def ragged(gpu: Gpu, prec: str) -> tuple[Tensors, Record, Record]:
    """Sequences one behind the other, [token, head, d]."""
    total, kind, s = sum(RAGGED), TORCH[prec], PLAIN
    tensors = {name: gpu.tensor(total, s.h, s.d, dtype=kind) for name in "qkv"}
    tensors["o"] = gpu.empty(total, s.h, s.d, dtype=OUTPUT[prec])
    starts = [sum(RAGGED[:n]) for n in range(len(RAGGED) + 1)]
    starts_on_gpu = gpu.torch.tensor(starts, device=gpu.torch_device, dtype=gpu.torch.int32)
    tensors |= {"seqstart_q": starts_on_gpu, "seqstart_k": starts_on_gpu}
    args = {"batch": len(RAGGED), "max_seqlen_q": max(RAGGED), "seqlen_k": max(RAGGED)}
    for name in "qkvo":
        args |= {f"stride_{name}": s.h * s.d, f"nhead_stride_{name}": s.d}
    return tensors, {"is_group_mode": 1}, args


def with_feature(gpu: Gpu, feature: Feature) -> tuple[Call, Tensors]:
    """The call, and its tensors."""
    s, value = PLAIN, gpu.tessera.value
    traits: Record = quantized(gpu, feature.prec)
    args: Record = {}
    if feature.name == "ragged":
        tensors, traits, args = ragged(gpu, feature.prec)
    else:
        tensors = tensors_of(gpu, s, feature.prec) | scales(gpu, feature.prec)
    if feature.name == "lse":
        tensors["lse"] = gpu.empty(s.b * s.h * s.s_q, dtype="float32")
        traits, args = {"has_lse": 1}, {"nhead_stride_lse": s.s_q, "batch_stride_lse": s.h * s.s_q}
    if feature.name == "soft cap":
        traits, args = {"has_logits_soft_cap": 1}, {"logits_soft_cap": 30.0}
    if feature.name == "alibi":
        tensors["bias"] = gpu.torch.rand(s.h, device=gpu.torch_device)
        traits = {"bias_type": value("bias", "alibi")}
    if feature.name == "bias":
        tensors["bias"] = gpu.tensor(s.s_q, s.s_k, dtype=OUTPUT[feature.prec])
        traits, args = {"bias_type": value("bias", "bias")}, {"stride_bias": s.s_k}
    if feature.name == "dropout":
        traits, args = {"has_dropout": 1}, {"p_drop": 0.2, "drop_seed": 1}
    if feature.name == "column-major v":
        tensors["v"] = gpu.tensor(s.b, s.h, s.d, s.s_k, dtype=TORCH[feature.prec])
        traits |= {"is_v_rowmajor": 0}
    if feature.name == "descales of blocks":
        descales, traits, args = block_descales(gpu)
        tensors |= descales
    if feature.name == "window":
        mask = value("mask", "bottom_right")
        traits, args = (
            {"mask_type": mask},
            {"mask_type": mask, "window_size_left": 1023, "window_size_right": 0},
        )
    return call_of(gpu, s, feature.prec, tensors, (traits, args)), tensors


class FeatureCase(GpuCase):
    """A feature, beside the plain call."""

    def __init__(self, feature: Feature) -> None:
        self.feature, self.name = feature, f"{feature.prec} {feature.name}"

    def fields(self) -> Record:
        """The feature's name and type."""
        return {"feature": self.feature.name, "prec": self.feature.prec}

    def contestants(self, gpu: Gpu) -> list[GpuCall]:
        """The call with the feature, and the plain one."""

        def make() -> Made:
            call, tensors = with_feature(gpu, self.feature)
            return gpu.ready(call, tensors)

        plain = tensors_of(gpu, PLAIN, self.feature.beside)
        return [GpuCall("tessera", make, gpu), tessera(gpu, PLAIN, self.feature.beside, plain, "plain")]

    def records(self, entries: list[GpuEntry], probes: list[Probe]) -> list[Record]:  # type: ignore[override]
        """One, of both calls."""
        if len(entries) < 2:
            return []
        ours, plain = entries
        rate = self.feature.work * median_ratio(plain.milliseconds, ours.milliseconds)
        bars = (
            [Judgement(f"rate over plain {self.feature.beside}", rate, self.feature.least)]
            if self.feature.least
            else []
        )
        record = {"what": ours.what, "ms": ours.record(ours)["ms"], "plain_ms": plain.record(plain)["ms"]}
        return [{**record, "rate": rate, "bars": [bar.record() for bar in bars]}]

    def line(self, records: list[Record]) -> str:
        """Its time."""
        return f"{records[0]['ms']:.3f} ms, {records[0]['rate']:.2f} times the rate of the plain call"


class Launch(Program):
    """benchmark_launch, where it can make its call."""

    def prepare(self, threads: int) -> str:
        """As a program's, but its end is no end of the others."""
        try:
            return super().prepare(threads)
        except SystemExit as end:
            raise Unable(str(end)) from end


class LaunchCase(GpuCase):
    """What a call costs the host, once its code is loaded."""

    name = "launch"

    def fields(self) -> Record:
        """As those of a feature."""
        return {"feature": "launch", "prec": "bf16"}

    def contestants(self, gpu: Gpu) -> list[Contestant]:
        """A program without Python around its calls."""
        return [Launch("tessera", gpu.build / "bin/benchmark_launch", [f"-device={gpu.device}"])]

    def records(self, entries: list[Any], probes: list[Probe]) -> list[Record]:
        """One."""
        ms = entries[0].record(entries[0])["ms"]
        return [
            {"what": entries[0].what, "ms": ms, "bars": [Judgement("us", 1e3 * ms, most=LAUNCH_US).record()]}
        ]

    def line(self, records: list[Record]) -> str:
        """Its time."""
        return f"{1e3 * records[0]['ms']:.2f} us of the host"


class GpuAttention(GpuPage):
    """fmha_fwd."""

    name = "fmha_fwd_gpu"
    operation = "fmha_fwd"
    suites = (*SUITES, "features", "launch")
    usual = ("table", "decode", "features", "launch")
    precs = ("bf16", "fp16", "fp8bf16")
    programs = ("benchmark_launch",)
    rivals = {"cudnn": "torch", "flash": "torch"}
    rival_module = "attention_gpu"
    pictured = ("table", "decode")
    scaling = "scaling"
    scale_label = "length (16 heads, d 128)"

    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """Features have types of their own."""
        if suite == "features":
            return [FeatureCase(feature) for feature in features() if feature.prec in precs]
        if suite == "launch":
            return [LaunchCase()] if "bf16" in precs else []
        return [ShapeCase(shape, prec) for prec in precs for shape in SUITES[suite]]

    def intensity(self, record: Record) -> float | None:
        """Of Q, K, V and O."""
        shape = GpuShape(*(record[name] for name in GpuShape.__dataclass_fields__))
        return shape.intensity(record["prec"])

    def scale(self, record: Record) -> float:
        """The length."""
        return float(record["s_q"])


PAGE = GpuAttention()
