# SPDX-License-Identifier: MIT
"""What speed is asked of fmha_fwd on a CPU, and the judgement of what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shapes import SUITES, Feature, Shape

# Share of the peak of the instructions in use, by head dim, without a mask and from 1024 keys on.
SHARES = {
    "fp32": {64: 0.84, 128: 0.88, 256: 0.89},
    "bf16": {64: 0.74, 128: 0.80, 256: 0.82},
    "fp16": {64: 0.80, 128: 0.80, 256: 0.80},  # of the peak of fp32
}
CAUSAL, CAUSAL_1024 = 0.06, 0.08  # less with a causal mask, which counts as half
DECODE = 0.90  # of reading memory
RATIOS = {"fp32": 1.1, "bf16": 1.1, "fp16": 1.3}  # the best rival's time over ours


@dataclass(frozen=True)
class Judgement:
    """A figure and the least that it should be."""

    what: str
    value: float
    least: float

    @property
    def met(self) -> bool:
        """Whether it is that."""
        return self.value >= self.least

    def __str__(self) -> str:
        return f"{self.what} {self.value:.3g} of {self.least:.3g} {'met' if self.met else 'MISSED'}"


def least_share(shape: Shape, prec: str) -> float | None:
    """Of the limit; None where nothing is asked."""
    if shape.is_decode:
        return DECODE
    share = SHARES.get(prec, {}).get(shape.d)
    if share is None or shape.s_k < 1024:
        return None
    return share - (0 if not shape.causal else CAUSAL_1024 if shape.s_k == 1024 else CAUSAL)


def judge(shape: Shape, records: list[dict[str, Any]]) -> list[Judgement]:
    """Of a shape's records, Tessera's first."""
    ours, rivals = records[0], records[1:]
    judgements = []
    share = least_share(shape, ours["prec"])
    if share is not None:
        judgements.append(Judgement("share of the limit", ours["share"], share))
    if rivals and not shape.is_decode:
        least = RATIOS[ours["prec"]] if shape in SUITES["table"] else 1.0
        judgements.append(Judgement("times the best rival", min(r["ratio"] for r in rivals), least))
    return judgements


def judge_feature(feature: Feature, rate: float) -> Judgement:
    """`rate`: work a second over that of the plain call."""
    return Judgement(f"rate over plain {feature.beside}", rate, feature.least)
