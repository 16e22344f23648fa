# SPDX-License-Identifier: MIT
"""The problems that are timed, and the arithmetic of what was measured."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass

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
    "x86_64_v4_amx": "tile_bf16",
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


def median_probe(probes: list[dict[str, float]]) -> dict[str, float]:
    """Figure by figure, the median of the rounds' probes."""
    return {name: statistics.median(probe[name] for probe in probes) for name in probes[0]}


def median_ratio(rival: tuple[float, ...], ours: tuple[float, ...]) -> float:
    """How many times longer a rival takes: the median over rounds, each of which meets one clock."""
    return statistics.median(theirs / mine for theirs, mine in zip(rival, ours, strict=True))
