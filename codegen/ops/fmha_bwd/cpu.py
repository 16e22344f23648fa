# SPDX-License-Identifier: MIT
"""Tiles of fmha_bwd on CPUs. Every trait is an argument at run time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codegen.ops.fmha_bwd.traits import DTYPES
from codegen.targets import CpuTarget


@dataclass(frozen=True)
class Compute:
    """A type that products are computed in."""

    dtypes: tuple[str, ...]
    words: int  # elements along the reduced dimension that lie in a word
    numerics: str  # docs/vocabulary.md has the errors of each word


COMPUTES = {
    "f32": Compute(DTYPES, 1, "fp32 products and sums, exp2 within 1.7e-7"),
    "bf16": Compute(
        ("bf16",), 2, "bf16 products (p and ds rounded to nearest) and fp32 sums, exp2 within 7.5e-5"
    ),
}
# Vector operations for one vector of scores: exp2, the difference from D, the product, packing; bookkeeping.
ELEMENT_CYCLES, BLOCK_CYCLES = 16.0, 400.0


@dataclass(frozen=True)
class CpuTile:
    """A row of instances/fmha_bwd.toml for a CPU."""

    pipeline: str
    epilogue: str
    compute: str
    bm0: int  # queries of a block
    bn0: int  # keys of a block, and of a part of dq where that has several
    mr: int  # the register tile: mr broadcast words x nv vectors
    nv: int
    efficiency: float  # measured share of the target's peak in the main loop
    why: str
    serves: str = ""

    held: ClassVar[str] = ""  # every trait is an argument
    planes: ClassVar[int] = 1  # numbers of the type of products that make up one
    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e", "mr": "mr", "nv": "nv"}

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Storage types whose values the compute type holds."""
        return COMPUTES[self.compute].dtypes

    @property
    def words(self) -> int:
        """Elements of a word."""
        return COMPUTES[self.compute].words

    @property
    def block(self) -> str:
        """Block and threads in the short name."""
        return f"b{self.bm0}x{self.bn0}_w1"

    def needs(self, target: CpuTarget) -> str:
        """What the machine and a call must bring."""
        return f"{target.lanes} lanes, any sizes, any strides, pointers aligned to their elements"

    def numerics(self, target: CpuTarget) -> str:
        """How numbers are rounded and functions approximated."""
        return COMPUTES[self.compute].numerics

    def ck_tile(self, target: CpuTarget) -> dict[str, int]:
        """The tile's fields; the other of CK's follow from them."""
        return {
            "bm0": self.bm0, "bn0": self.bn0, "wm": self.mr, "wn": self.nv * target.lanes, "wk": self.words,
        }  # fmt: skip

    def cycles(self, target: CpuTarget) -> float:
        """Cycles of a block beside its products."""
        return ELEMENT_CYCLES * self.bm0 * self.bn0 / target.lanes + BLOCK_CYCLES

    def complaint(self, target: CpuTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute not in COMPUTES:
            return f"compute '{self.compute}' is none of {', '.join(COMPUTES)}"
        if self.compute not in target.macs:
            return f"compute '{self.compute}' is none of {', '.join(target.macs)}, which {target.name} has"
        if min(self.bm0, self.bn0, self.mr, self.nv) < 1 or not 0 < self.efficiency <= 1:
            return "bm0, bn0, mr, nv must be positive and 0 < efficiency <= 1"
        if self.bm0 % (2 * target.lanes):
            return f"bm0 = {self.bm0} is no multiple of two vectors, {2 * target.lanes}"
        if self.bm0 % self.mr or self.bn0 % (2 * self.mr):
            return f"bm0 = {self.bm0} is no multiple of mr = {self.mr}, or bn0 = {self.bn0} not of twice"
        registers = self.mr * self.nv + self.nv + 1
        if registers > target.registers:
            return f"mr x nv + nv + 1 = {registers} vector registers, {target.name} has {target.registers}"
        # At head dims of 128: k, v, dk, dv, and p, ds.
        block_bytes = 4 * self.bn0 * (4 * 128 + 2 * self.bm0)
        if block_bytes > target.l2_bytes:
            return f"a block takes {block_bytes} bytes, the L2 cache of {target.name} holds {target.l2_bytes}"
        return ""


@dataclass(frozen=True)
class RowsTile:
    """A row of instances/fmha_bwd_dot_do_o.toml or fmha_bwd_convert_dq.toml for a CPU."""

    pipeline: str
    epilogue: str
    compute: str
    bm0: int  # rows of a task
    efficiency: float
    why: str
    serves: str = ""

    held: ClassVar[str] = ""
    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e"}
    dtypes: ClassVar[tuple[str, ...]] = DTYPES

    @property
    def block(self) -> str:
        """Block and threads in the short name."""
        return f"b{self.bm0}_w1"

    def needs(self, target: CpuTarget) -> str:
        """What the machine and a call must bring."""
        return f"{target.lanes} lanes, any sizes, any strides, pointers aligned to their elements"

    def numerics(self, target: CpuTarget) -> str:
        """How numbers are rounded and functions approximated."""
        return "fp32 sums; results to nearest even"

    def ck_tile(self, target: CpuTarget) -> dict[str, int]:
        """The tile's fields."""
        return {"bm0": self.bm0}

    def cycles(self, target: CpuTarget) -> float:
        """Starting a task."""
        return 100.0

    def complaint(self, target: CpuTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute != "f32":
            return f"compute '{self.compute}' is not f32"
        return "" if self.bm0 > 0 and 0 < self.efficiency <= 1 else "bm0 is positive and 0 < efficiency <= 1"
