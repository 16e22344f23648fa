# SPDX-License-Identifier: MIT
"""The page of fmha_bwd: a step of training, which is attention forward with its LSE, and backward.

Problems, limits and records are those of fmha_fwd's page. Beside the step there is that with the layout of
partial sums of deterministic calls: Tessera's backward on CPUs adds in one order whatever the threads, but
not in the same parts. PyTorch is the one rival that has a backward pass on CPUs: zentorch and OpenVINO are
for inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from page import Case, Judgement, Page, Probe, Record
from pages.fmha_fwd import Shape, ShapeCase, limit_of, shape_of, tessera
from turns import Contestant, Example

# The best rival's time over ours, where the processor has products of the type, and where it has none.
RATIOS = {"fp32": 1.8, "bf16": 2.5}
WITHOUT_PRODUCTS = 1.5
PRODUCTS = {"dot_bf16", "tile_bf16"}  # of bf16 with sums in fp32, in the probe; of fp16 no processor has any
DETERMINISTIC = 1.05  # the time of a step with a deterministic backward over that of others


@dataclass(frozen=True)
class Step(Shape):
    """Forward and backward."""

    @property
    def flop(self) -> float:
        """Of seven products, two of which are forward's."""
        return 3.5 * super().flop

    def intensity(self, prec: str) -> float:
        """FLOP for a byte: forward moves half of Q, K, V, O, dO, dQ, dK and dV."""
        return super().intensity(prec) / 2


def both(b: int, h: int, h_k: int, s: int, d: int) -> tuple[Step, ...]:
    """Without a mask, and causal."""
    return tuple(Step(b, h, h_k, s, s, d, causal) for causal in (False, True))


SUITES: dict[str, tuple[Step, ...]] = {
    "table": (
        *both(1, 8, 8, 1024, 128),
        *both(1, 8, 8, 2048, 128),
        *both(1, 16, 16, 2048, 64),
        *both(1, 16, 4, 1024, 128),
    ),
    "scaling": tuple(Step(1, 8, 8, 1 << n, 1 << n, 128) for n in range(7, 13)),
}


class Both:
    """Programs whose calls follow each other."""

    def __init__(self, name: str, *programs: Example) -> None:
        self.name, self.programs = name, programs

    def prepare(self, threads: int) -> str:
        """Returns the last one's instance."""
        return [program.prepare(threads) for program in self.programs][-1]

    def time(self, count: int) -> float:
        """Of all."""
        return sum(program.time(count) for program in self.programs)

    def close(self) -> None:
        """Of all."""
        for program in self.programs:
            program.close()


class StepCase(ShapeCase):
    """A step, beside rivals'."""

    def ours(self, build: Path) -> list[Contestant]:
        """Two programs, and with the backward that is asked for the same bytes in every run."""
        words = tessera(build, self.shape, self.prec).words
        forward = Example(build / "bin/tile_example_fmha_fwd", words, "-lse=1")
        program = build / "bin/tile_example_fmha_bwd"
        return [
            Both("tessera", forward, Example(program, words)),
            Both("deterministic", forward, Example(program, words, "-deterministic=1")),
        ]

    def judge(self, records: list[Record], probes: list[Probe]) -> list[Judgement]:
        """Times of rivals, and of the deterministic step."""
        ratios = {record["rival"]: record["ratio"] for record in records[1:]}
        own = self.prec == "fp32" or (self.prec == "bf16" and not PRODUCTS.isdisjoint(probes[0]))
        least = RATIOS[self.prec] if own else WITHOUT_PRODUCTS
        rivals = [ratio for name, ratio in ratios.items() if name in PAGE.rivals]
        bars = [Judgement("times the best rival", min(rivals), least)] if rivals else []
        if "deterministic" in ratios:
            bars.append(Judgement("time of deterministic steps", ratios["deterministic"], most=DETERMINISTIC))
        return bars


class Training(Page):
    """fmha_bwd."""

    name = "fmha_bwd"
    suites = tuple(SUITES)
    usual = ("table",)
    precs = ("fp32", "bf16", "fp16")
    programs = ("tile_example_fmha_fwd", "tile_example_fmha_bwd")
    rivals = {"torch": "torch"}
    rival_module = "attention_training"
    pictured = ("table",)
    scaling = "scaling"
    scale_label = "length (8 heads, d 128)"

    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """A step each."""
        return [StepCase(shape, prec) for prec in precs for shape in SUITES[suite]]

    def limit(self, record: Record) -> str:
        """As backward's instance says."""
        return limit_of(shape_of(record), record["what"])

    def intensity(self, record: Record) -> float | None:
        """Of all tensors."""
        return Step(**vars(shape_of(record))).intensity(record["prec"])

    def scale(self, record: Record) -> float:
        """The length."""
        return shape_of(record).s_q


PAGE = Training()
