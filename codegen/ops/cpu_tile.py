# SPDX-License-Identifier: MIT
"""What tiles of several operations on CPUs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from codegen.targets import CpuTarget

# Products of planes, the smallest first. Neighbours share an operand, which stays in its registers.
Terms = tuple[tuple[int, int], ...]
ONE: Terms = ((0, 0),)


class ComputedIn(Protocol):
    """A type that products are computed in."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Storage types whose values it holds."""

    @property
    def numerics(self) -> str:
        """How numbers are rounded and functions approximated."""

    @property
    def planes(self) -> int:
        """Numbers of that type that make up one."""

    @property
    def score_terms(self) -> Terms:
        """Products of planes that a score is the sum of."""


class CpuTile:
    """A row for a CPU: every trait is an argument."""

    held: ClassVar[str] = ""

    def needs(self, target: CpuTarget) -> str:
        """What the machine and a call must bring."""
        return f"{target.lanes} lanes, any sizes, any strides, pointers aligned to their elements"


class BlockTile(CpuTile):
    """The part of a row for blocks of queries and keys, of whose products registers hold mr x nv vectors."""

    computes: ClassVar[Mapping[str, ComputedIn]]  # all that there are
    compute: str
    bm0: int
    bn0: int
    mr: int
    nv: int
    efficiency: float
    efficiency_fp16: float

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Storage types whose values the compute type holds."""
        return self.computes[self.compute].dtypes

    @property
    def planes(self) -> int:
        """How many numbers of the type of products make up one of a tensor."""
        return self.computes[self.compute].planes

    @property
    def score_terms(self) -> Terms:
        """Products of planes of k and q, in the backward pass of v and do, too."""
        return self.computes[self.compute].score_terms

    def numerics(self, target: CpuTarget) -> str:
        """How numbers are rounded and functions approximated."""
        return self.computes[self.compute].numerics

    def type_complaint(self, target: CpuTarget) -> str:
        """Whether there are such products, and sizes."""
        if self.compute not in self.computes:
            return f"compute '{self.compute}' is none of {', '.join(self.computes)}"
        if self.compute not in target.macs:
            return f"compute '{self.compute}' is none of {', '.join(target.macs)}, which {target.name} has"
        if min(self.bm0, self.bn0, self.mr, self.nv) < 1 or not 0 < self.efficiency <= 1:
            return "bm0, bn0, mr, nv must be positive and 0 < efficiency <= 1"
        if not 0 <= self.efficiency_fp16 <= 1:
            return "0 <= efficiency_fp16 <= 1"
        return ""

    def register_complaint(self, target: CpuTarget) -> str:
        """Whether the register tile fits, beside a row of vectors and a broadcast word."""
        registers = self.mr * self.nv + self.nv + 1
        if registers > target.registers:
            return f"mr x nv + nv + 1 = {registers} vector registers, {target.name} has {target.registers}"
        return ""

    def block_complaint(self, target: CpuTarget, block_bytes: int) -> str:
        """Whether a block fits the cache that it stays in."""
        if block_bytes > target.l2_bytes:
            return f"a block takes {block_bytes} bytes, the L2 cache of {target.name} holds {target.l2_bytes}"
        return ""
