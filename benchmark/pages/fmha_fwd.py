# SPDX-License-Identifier: MIT
"""The page of fmha_fwd: its problems, what limits them on a CPU, what speed is asked of them, and its rivals.

What limits a call follows from the instance that Tessera chose for it. The suite "features" is of masks,
biases, dropout and small types beside the plain call, and of AVX2.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from page import Case, Judgement, Page, Probe, Record, beside, median_ratio
from turns import Contestant, Entry, Example

ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}


@dataclass(frozen=True)
class Shape:
    """A problem: batch, heads of q and of k and v, lengths, head dim. q and o are [b, h, s_q, d]."""

    b: int
    h: int
    h_k: int
    s_q: int
    s_k: int
    d: int
    causal: bool = False

    def __str__(self) -> str:
        lengths = f"s{self.s_q}" if self.s_q == self.s_k else f"s{self.s_q}x{self.s_k}"
        return f"b{self.b} h{self.h}/{self.h_k} {lengths} d{self.d}{' causal' if self.causal else ''}"

    @property
    def flop(self) -> float:
        """Of both products; a causal mask counts as half."""
        return 4.0 * self.b * self.h * self.s_q * self.s_k * self.d * (0.5 if self.causal else 1.0)

    def kv_bytes(self, prec: str) -> float:
        """Of K and V, which decoding reads once."""
        return 2.0 * self.b * self.h_k * self.s_k * self.d * ELEMENT_BYTES[prec]

    def intensity(self, prec: str) -> float:
        """FLOP for a byte, where Q, K, V and O each come or go once."""
        qo_bytes = 2.0 * self.b * self.h * self.s_q * self.d * ELEMENT_BYTES[prec]
        return self.flop / (self.kv_bytes(prec) + qo_bytes)

    @property
    def is_decode(self) -> bool:
        """One query: limited by reading K and V."""
        return self.s_q == 1


def square(b: int, h: int, h_k: int, s: int, d: int, *, causal: bool = False) -> Shape:
    """As many queries as keys."""
    return Shape(b, h, h_k, s, s, d, causal)


SUITES: dict[str, tuple[Shape, ...]] = {
    "table": (
        square(1, 8, 8, 1024, 128),
        square(1, 8, 8, 1024, 128, causal=True),
        square(2, 8, 8, 3328, 128),
        square(2, 8, 8, 3328, 128, causal=True),
        square(1, 16, 16, 4096, 64),
        square(1, 16, 16, 4096, 64, causal=True),
        square(1, 32, 8, 2048, 128, causal=True),
        square(1, 8, 8, 2048, 256),
        square(1, 8, 8, 2048, 256, causal=True),
    ),
    "short": (
        square(4, 8, 8, 512, 32),
        square(8, 12, 12, 128, 64),
        square(1, 64, 64, 256, 64),
        square(2, 40, 8, 512, 128, causal=True),
    ),
    "decode": (
        Shape(8, 32, 8, 1, 4096, 128),
        Shape(1, 32, 8, 1, 16384, 128),
    ),
    "scaling": tuple(square(1, 8, 8, 1 << n, 128) for n in range(7, 13)),
}


def window_share(s: int, window: int) -> float:
    """Of the s * s pairs, those where a query sees itself and the `window` keys before it."""
    return sum(min(i, window) + 1 for i in range(s)) / s**2


@dataclass(frozen=True)
class Feature:
    """A call that is timed beside the plain one: what Tessera alone is asked for."""

    name: str
    prec: str
    beside: str  # type of the plain call
    words: str  # for tile_example_fmha_fwd
    least: float  # of the plain call's rate
    work: float = 1.0  # over that of the plain call, PLAIN


PLAIN = square(1, 4, 4, 2048, 128)
RAGGED = (100, 700, 1500, 333, 64, 2048, 900, 1)
RAGGED_WORK = sum(s * s for s in RAGGED) / PLAIN.s_q**2


def features() -> list[Feature]:
    """Additions to a plain call of a type, and types beside bf16."""
    ragged = ",".join(map(str, RAGGED))
    group = f"-mode=1 -b={len(RAGGED)} -s={ragged} -s_k={ragged}"
    found = []
    for prec in ("fp32", "bf16"):
        found += [
            Feature("soft cap", prec, prec, "-logits_soft_cap=30", 0.9),
            Feature("bias", prec, prec, "-bias=e", 0.9),
            Feature("alibi", prec, prec, "-bias=a", 0.9),
            Feature("lse", prec, prec, "-lse=1", 0.9),
            Feature("window", prec, prec, "-mask=b:1023,0", 0.9, window_share(PLAIN.s_q, 1023)),
            Feature("group", prec, prec, group, 0.9, RAGGED_WORK),
            Feature("dropout", prec, prec, "-p_drop=0.2", 0.75),
        ]
    scales = {"fp8": "pt", "fp8bf16": "pt", "mxfp8": "mx", "mxfp4": "mx"}
    return found + [Feature(prec, prec, "bf16", f"-qscale={s}", 1.0) for prec, s in scales.items()]


AVX2 = "-device=cpu:x86-64-v3"
AVX2_SHARE = 0.80  # of the peak of AVX2, in fp32


# Which figure of the probe is the limit of products, by the target in an instance's name.
PRODUCTS = {
    "x86_64_v3": "fma_avx2",
    "x86_64_v4": "fma_avx512",
    "x86_64_v4_bf16": "dot_bf16",
    "x86_64_v4_vp2intersect": "dot_bf16",
    "x86_64_v4_amx": "tile_bf16",
    "x86_64_v4_fp16": "fma_avx512",
}


def limit_of(shape: Shape, instance: str) -> str:
    """Which figure of the probe is the limit of a call.

    That of decoding is memory, else that of the products that the instance is made of. Products of sums of
    several bf16 stand in for those of fp32, and are measured against these: they may pass 100 %.
    """
    if shape.is_decode:
        return "read"
    target = re.search(r"__(\w+?)_b\d+x", instance)
    if target is None or target[1] not in PRODUCTS:
        raise ValueError(f"the probe measures no limit of {instance}")
    return "fma_avx512" if re.search(r"_cbf16x\d", instance) else PRODUCTS[target[1]]


@dataclass(frozen=True)
class Figures:
    """A rival's times for a shape, in the rounds of one run."""

    shape: Shape
    prec: str
    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Milliseconds."""
        return statistics.median(self.milliseconds)

    @property
    def gflops(self) -> float:
        """At the median."""
        return self.shape.flop / self.median / 1e6

    @property
    def gbytes(self) -> float:
        """K and V a second, at the median."""
        return self.shape.kv_bytes(self.prec) / self.median / 1e6

    def share(self, probes: list[dict[str, float]], limit: str) -> float:
        """Of a limit: the median over rounds, each of which has a probe of its own."""
        work = self.shape.kv_bytes(self.prec) if limit == "read" else self.shape.flop
        shares = (work / ms / 1e6 / probe[limit] for ms, probe in zip(self.milliseconds, probes, strict=True))
        return statistics.median(shares)


# ---- what is asked

# Share of the peak of the instructions in use, by head dim, without a mask and from 1024 keys on.
SHARES = {
    "fp32": {64: 0.84, 128: 0.88, 256: 0.89},
    "bf16": {64: 0.74, 128: 0.80, 256: 0.82},
    "fp16": {64: 0.80, 128: 0.80, 256: 0.80},  # of the peak of fp32
}
CAUSAL, CAUSAL_1024 = 0.06, 0.08  # less with a causal mask, which counts as half
DECODE = 0.90  # of reading memory
RATIOS = {"fp32": 1.1, "bf16": 1.1, "fp16": 1.3}  # the best rival's time over ours


def least_share(shape: Shape, prec: str) -> float | None:
    """Of the limit; None where nothing is asked."""
    if shape.is_decode:
        return DECODE
    share = SHARES.get(prec, {}).get(shape.d)
    if share is None or shape.s_k < 1024:
        return None
    return share - (0 if not shape.causal else CAUSAL_1024 if shape.s_k == 1024 else CAUSAL)


def judge(shape: Shape, prec: str, records: list[Record]) -> list[Judgement]:
    """Of a shape's records, Tessera's first."""
    ours, rivals = records[0], records[1:]
    judgements = []
    share = least_share(shape, prec)
    if share is not None:
        judgements.append(Judgement("share of the limit", ours["share"], share))
    if rivals and not shape.is_decode:
        least = RATIOS[prec] if shape in SUITES["table"] else 1.0
        judgements.append(Judgement("times the best rival", min(r["ratio"] for r in rivals), least))
    return judgements


def judge_feature(feature: Feature, rate: float) -> Judgement:
    """`rate`: work a second over that of the plain call."""
    return Judgement(f"rate over plain {feature.beside}", rate, feature.least)


# ---- cases


def program(build: Path) -> Path:
    """The one that is timed."""
    return build / "bin/tile_example_fmha_fwd"


def tessera(build: Path, shape: Shape, prec: str, extra: str = "") -> Example:
    """Its call; an extra word takes the place of one of the shape's."""
    s = shape
    words = [f"-b={s.b}", f"-h={s.h}", f"-h_k={s.h_k}", f"-s={s.s_q}", f"-s_k={s.s_k}", f"-d={s.d}"]
    return Example(program(build), [*words, f"-prec={prec}", *(["-mask=t"] if s.causal else [])], extra)


def shape_of(record: Record) -> Shape:
    """The problem that was timed."""
    return Shape(*(record[name] for name in Shape.__dataclass_fields__))


class ShapeCase(Case):
    """A shape, beside rivals."""

    def __init__(self, shape: Shape, prec: str) -> None:
        self.shape, self.prec, self.name = shape, prec, f"{prec} {shape}"

    def fields(self) -> Record:
        """The shape's."""
        return {**asdict(self.shape), "prec": self.prec}

    def problem(self) -> Record:
        """The same."""
        return self.fields()

    def ours(self, build: Path) -> list[Contestant]:
        """A call."""
        return [tessera(build, self.shape, self.prec)]

    def records(self, entries: list[Entry], probes: list[Probe]) -> list[Record]:
        """Shares are of the limit of Tessera's instance."""
        ours = entries[0]
        facts = {"instance": ours.what, "limit": limit_of(self.shape, ours.what)}
        records = []
        for entry in entries:
            figures = Figures(self.shape, self.prec, tuple(entry.milliseconds))
            record = {
                "rival": entry.contestant.name,
                "what": entry.what,
                "ms": figures.median,
                "gflops": figures.gflops,
                "gbytes": figures.gbytes,
                "share": figures.share(probes, facts["limit"]),
                "ratio": median_ratio(figures.milliseconds, ours.milliseconds),
            }
            records.append({**facts, **record})
        records[0]["bars"] = [j.record() for j in self.judge(records, probes)]
        return records

    def judge(self, records: list[Record], probes: list[Probe]) -> list[Judgement]:
        """What is asked of them, on a processor with these limits."""
        return judge(self.shape, self.prec, records)

    def line(self, records: list[Record]) -> str:
        """Ours, then each rival with its ratio."""
        ours = records[0]
        rate = f"{ours['gbytes']:.1f} GB/s" if self.shape.is_decode else f"{ours['gflops']:.0f} GFLOP/s"
        limit = f"{100 * ours['share']:.0f} % of {ours['limit']}"
        return f"{ours['ms']:.2f} ms, {rate}, {limit}; {beside(records[1:])}"


class FeatureCase(Case):
    """A feature, beside the plain call."""

    def __init__(self, feature: Feature) -> None:
        self.feature, self.name = feature, f"{feature.prec} {feature.name}"

    def fields(self) -> Record:
        """The feature's name and type."""
        return {"feature": self.feature.name, "prec": self.feature.prec}

    def ours(self, build: Path) -> list[Contestant]:
        """The call with the feature, and the plain one."""
        f = self.feature
        return [tessera(build, PLAIN, f.prec, f.words), tessera(build, PLAIN, f.beside)]

    def records(self, entries: list[Entry], probes: list[Probe]) -> list[Record]:
        """One, of both calls."""
        ours, plain = (entry.milliseconds for entry in entries)
        bar = judge_feature(self.feature, self.feature.work * median_ratio(plain, ours))
        times = {"ms": statistics.median(ours), "plain_ms": statistics.median(plain)}
        return [{"what": entries[0].what, **times, "bars": [bar.record()]}]

    def line(self, records: list[Record]) -> str:
        """Its time."""
        return f"{records[0]['ms']:.2f} ms"


class Avx2Case(Case):
    """The instances for AVX2."""

    name = "AVX2"

    def fields(self) -> Record:
        """As those of a feature."""
        return {"feature": "AVX2", "prec": "fp32"}

    def ours(self, build: Path) -> list[Contestant]:
        """The plain call."""
        return [tessera(build, PLAIN, "fp32", AVX2)]

    def records(self, entries: list[Entry], probes: list[Probe]) -> list[Record]:
        """One, with the share of the limit."""
        figures = Figures(PLAIN, "fp32", tuple(entries[0].milliseconds))
        limit = limit_of(PLAIN, entries[0].what)
        bar = Judgement("share of the limit", figures.share(probes, limit), AVX2_SHARE)
        return [{"what": entries[0].what, "limit": limit, "ms": figures.median, "bars": [bar.record()]}]

    def line(self, records: list[Record]) -> str:
        """Its time."""
        return f"{records[0]['ms']:.2f} ms"


class Attention(Page):
    """fmha_fwd."""

    name = "fmha_fwd"
    suites = (*SUITES, "features")
    usual = ("table", "short", "decode", "features")
    precs = ("fp32", "bf16", "fp16")
    programs = ("tile_example_fmha_fwd",)
    rivals = {name: name for name in ("torch", "zentorch", "onnxruntime", "openvino")}
    rival_module = "attention"
    pictured = ("table", "short", "decode")
    scaling = "scaling"
    scale_label = "length (8 heads, d 128)"

    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """Features have types of their own."""
        if suite == "features":
            return [*map(FeatureCase, features()), Avx2Case()]
        return [ShapeCase(shape, prec) for prec in precs for shape in SUITES[suite]]

    def limit(self, record: Record) -> str:
        """As its instance says."""
        return limit_of(shape_of(record), record["what"])

    def intensity(self, record: Record) -> float | None:
        """Of Q, K, V and O."""
        return shape_of(record).intensity(record["prec"])

    def scale(self, record: Record) -> float:
        """The length."""
        return shape_of(record).s_q


PAGE = Attention()
