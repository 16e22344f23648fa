# SPDX-License-Identifier: MIT
"""Tiles of fmha_bwd on CPUs. Every trait is an argument at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from codegen.ops import cpu_tile
from codegen.ops.cpu_tile import ONE, Terms
from codegen.ops.fmha_bwd.traits import DTYPES
from codegen.targets import CpuTarget


@dataclass(frozen=True)
class Compute:
    """A type that products are computed in."""

    dtypes: tuple[str, ...]
    words: int  # elements along the reduced dimension that lie in a word
    numerics: str  # docs/vocabulary.md has the errors of each word
    planes: int = 1  # numbers of the type of products that make up one of q, k, v and do,
    fine_planes: int = 1  # and of p and ds
    score_terms: Terms = ONE  # products of planes that one of k and q, or v and do, is the sum of,
    sum_terms: Terms = ONE  # and of p and do, or ds and q; with k and ds it is the other way round


COMPUTES = {
    "f32": Compute(DTYPES, 1, "fp32 products and sums, exp2 within 1.7e-7"),
    "f32f16": Compute(
        ("bf16",),
        1,
        "scores of integers of 16 bits, where these are within 2^-7, and dp, within 2^-11 of its rows' "
        "lengths, where it is spread over many keys and queries, else of fp32; of p, ds, k, q and do halves "
        "times powers of 2, within 2^-28 of a row's or a block's greatest, and 2^-11 of p and ds; fp16 sums "
        "of 16 products, of four such, fp32 of these; exp2 within 7.5e-5",
    ),
    "bf16": Compute(
        ("bf16",), 2, "bf16 products (p and ds rounded to nearest) and fp32 sums, exp2 within 7.5e-5"
    ),
    "bf16x2": Compute(
        ("fp16",),
        2,
        "numbers as sums of bf16, which are exact: two of q, k, v and do, three of p and ds; products of a "
        "third with a second are left out, 2^-26 of the whole; fp32 sums, exp2 within 1.7e-7",
        planes=2,
        fine_planes=3,
        score_terms=((1, 1), (0, 1), (0, 0), (1, 0)),
        sum_terms=((2, 0), (1, 0), (1, 1), (0, 1), (0, 0)),
    ),
}
# Vector operations for one vector of scores: exp2, the difference from D, the product, packing; bookkeeping.
ELEMENT_CYCLES, BLOCK_CYCLES = 16.0, 400.0


@dataclass(frozen=True)
class CpuTile(cpu_tile.BlockTile):
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
    efficiency_fp16: float = 0  # the same where x86-64-v4-fp16 runs, too, of that page's peak; 0: no other
    serves: str = ""

    computes: ClassVar[Mapping[str, Compute]] = COMPUTES
    dq: ClassVar[int] = 0  # the head dims in products: those of the call
    dv: ClassVar[int] = 0
    hdim_multiple: ClassVar[int] = 1  # of head dims of a call
    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e", "mr": "mr", "nv": "nv"}

    @property
    def words(self) -> int:
        """Elements of a word."""
        return COMPUTES[self.compute].words

    @property
    def fine_planes(self) -> int:
        """The same of p and ds."""
        return COMPUTES[self.compute].fine_planes

    @property
    def chunk(self) -> int:
        """Keys of kr_ktr_vr_tile whose scores are found together: L1 holds these beside the operands."""
        return 64 // self.planes

    @property
    def sum_terms(self) -> Terms:
        """Products of planes of p and do, ds and q."""
        return COMPUTES[self.compute].sum_terms

    @property
    def has_short_steps(self) -> bool:
        """A step of the register tile takes so few cycles that loop control and lines from L2 count."""
        return self.mr * self.nv <= 12

    @property
    def block(self) -> str:
        """Block and threads in the short name."""
        return f"b{self.bm0}x{self.bn0}_w1"

    def ck_tile(self, target: CpuTarget) -> dict[str, int]:
        """The tile's fields; the other of CK's follow from them."""
        return {
            "bm0": self.bm0, "bn0": self.bn0, "wm": self.mr, "wn": self.nv * target.lanes, "wk": self.words,
            "dq": self.dq, "dv": self.dv,
        }  # fmt: skip

    def cycles(self, target: CpuTarget) -> float:
        """Cycles of a block beside its products."""
        return ELEMENT_CYCLES * self.bm0 * self.bn0 / target.lanes + BLOCK_CYCLES

    def complaint(self, target: CpuTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        if found := self.type_complaint(target):
            return found
        if self.bm0 % (2 * target.lanes):
            return f"bm0 = {self.bm0} is no multiple of two vectors, {2 * target.lanes}"
        if self.pipeline == "kr_ktr_vr_tile":
            return self.tile_complaint(target)
        if self.planes > 1:
            return f"compute '{self.compute}' is sums of bf16, which only pipeline 'kr_ktr_vr_tile' makes"
        if self.bm0 % self.mr or self.bn0 % (2 * self.mr):
            return f"bm0 = {self.bm0} is no multiple of mr = {self.mr}, or bn0 = {self.bn0} not of twice"
        if found := self.register_complaint(target):
            return found
        # At head dims of 128: k, v, dk, dv, and p, ds.
        return self.block_complaint(target, 4 * self.bn0 * (4 * 128 + 2 * self.bm0))

    def tile_complaint(self, target: CpuTarget) -> str:
        """The same of tile registers."""
        if not target.tiles:
            return f"pipeline 'kr_ktr_vr_tile' is made of tile registers, {target.name} has none"
        if self.words != 2:
            return f"compute '{self.compute}' is not made of bf16, as products of tiles are"
        if self.mr != 2 * target.lanes or self.nv != 2:
            return f"kr_ktr_vr_tile has mr = {2 * target.lanes}, nv = 2: 4 tiles of sums, 4 of operands"
        if self.bn0 % self.chunk:
            return f"bn0 = {self.bn0} is no multiple of the {self.chunk} keys whose scores are found together"
        # At head dims of 128: k, its columns, v, q and do; p and ds; dk and dv.
        operands = self.planes * 128 * (3 * self.bn0 + 2 * self.bm0)
        operands += self.fine_planes * 2 * self.bm0 * self.bn0
        return self.block_complaint(target, 2 * operands + 4 * 128 * 2 * self.bn0)
