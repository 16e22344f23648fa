# SPDX-License-Identifier: MIT
"""Tiles of fmha_fwd on CPUs.

Every trait is an argument at run time: head dims and storage types are a matter of packing, and the rest
costs a few percent of the main loop at most. So instances differ in target, compute type and tile alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from codegen.ops.cpu_tile import ONE, BlockTile, Terms
from codegen.ops.fmha_fwd.traits import DTYPES, FP8, MX
from codegen.targets import TARGETS, CpuTarget


@dataclass(frozen=True)
class Compute:
    """A type that products are computed in."""

    dtypes: tuple[str, ...]  # storage types whose values it holds
    bk0: int  # elements along the reduced dimension that are packed together
    wk: int  # multiply-adds of one lane of one instruction
    numerics: str  # docs/vocabulary.md has the errors of each word
    planes: int = 1  # numbers of that type that make up one
    score_terms: Terms = ONE  # products of planes of k and q that a score is the sum of
    output_terms: Terms = ONE  # and of v and p for o


COMPUTES = {
    "f32": Compute(
        DTYPES,
        bk0=16,
        wk=1,
        numerics="fp32 products and sums, exp2 within 1.7e-7, soft cap by tanh within 3.9e-7",
    ),
    "bf16": Compute(
        ("bf16", *FP8, *MX),
        bk0=32,
        wk=2,
        numerics="bf16 products (p rounded to nearest) and fp32 sums, exp2 within 7.5e-5, "
        "soft cap by tanh within 3.9e-7",
    ),
    "f32f16": Compute(
        ("bf16",),
        bk0=16,
        wk=1,
        numerics="fp32 products and sums; of quantised rows scores of integers of 16 bits (q within 2^-15 of "
        "its greatest, e4m3 within 2^-13, centroids within 2^-14), and o of fp16 products, p, and sums of at "
        "most 32; exp2 within 7.5e-5, soft cap by tanh within 3.9e-7",
    ),
    "f32i16": Compute(
        ("bf16",),
        bk0=16,
        wk=1,
        numerics="fp32 products and sums; of int8 and turbo4 rows of integers of 16 bits (q within 2^-15 of "
        "its greatest, p of a block's, of turbo4 within 2^-18 of their sum, centroids within 2^-14); exp2 "
        "within 1.7e-7, soft cap by tanh within 3.9e-7",
    ),
    "bf16i8": Compute(
        ("bf16",),
        bk0=32,
        wk=2,
        numerics="bf16 products (p rounded to nearest) and fp32 sums; of int8 rows of integers of 8 bits, of "
        "which q and p have two (q within 2^-15 of its greatest, p of a block's); exp2 within 7.5e-5, soft "
        "cap by tanh within 3.9e-7",
    ),
    "bf16x2": Compute(
        ("fp16",),
        bk0=32,
        wk=2,
        numerics="numbers as sums of two bf16: q, k, v exact, p within 2^-15; q k within 2^-18, "
        "p v within 2^-14; fp32 sums, exp2 within 1.7e-7, soft cap by tanh within 3.9e-7",
        planes=2,
        score_terms=((0, 1), (0, 0), (1, 0)),
        output_terms=((0, 1), (0, 0), (1, 0)),
    ),
}

# Of "f32f16" in the pipeline qr, where rows are not quantised.
HALVES = (
    "scores of fp32, without lse of integers of 16 bits where these are within 2^-7; of p and v halves times "
    "powers of 2, within 2^-29 of 1 and of a block's greatest, and 2^-11 of p; fp16 sums of 16 products, of "
    "four such, fp32 of these; exp2 within 7.5e-5, soft cap by tanh within 3.9e-7"
)

# Of "bf16" in the pipeline decode, beside its own.
INTEGERS = (
    "of int8 rows products of integers of 16 bits (q within 2^-15 of its greatest, p within 2^-16 of the sum "
    "of a block's)"
)

# Vector operations for one vector of scores: scale, maximum, the 8 steps of exp2, sum, pack.
SOFTMAX_CYCLES = 8.0
# Bookkeeping of one block: corrections of o and of the sums, the next block's addresses.
BLOCK_CYCLES = 400.0


@dataclass(frozen=True)
class CpuTile(BlockTile):
    """A row of instances/fmha_fwd.toml for a CPU."""

    pipeline: str
    epilogue: str
    compute: str  # the type that products are computed in
    bm0: int  # rows of q that a task takes
    bn0: int  # keys that a block takes
    mr: int  # the register tile: mr keys (or columns of v) x nv vectors of rows
    nv: int
    efficiency: float  # measured share of the target's peak in the main loop
    why: str  # the reason that the row is there
    ahead: int = 1  # decode: the cache that K and V of the next block are prefetched to; 3: L1, side by side
    efficiency_fp16: float = 0  # the same where x86-64-v4-fp16 runs, too, of that page's peak; 0: no other
    heads: int = 1  # decode: so many times bm0 rows are a task, where they are those of several key heads
    load: float = 0  # cycles of a number of K or V, once for all rows that it is multiplied with
    load_fp8_e4m3: float = 0  # decode: the same of such caches; 0: as those of q's type
    load_int8: float = 0
    load_turbo4: float = 0
    rate_fp8_e4m3: float = 1.0  # decode: how fast products of such caches are, of those of q's type
    rate_int8: float = 1.0
    rate_turbo4: float = 1.0
    serves: str = ""  # clauses, as for --where; "": all that the compute type can

    hdim_multiple: ClassVar[int] = 1
    computes: ClassVar[Mapping[str, Compute]] = COMPUTES
    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e", "mr": "mr", "nv": "nv"}

    @property
    def bk0(self) -> int:
        """Elements along the reduced dimension that go into registers together."""
        return COMPUTES[self.compute].bk0

    @property
    def output_terms(self) -> Terms:
        """Products of planes of v and p."""
        return COMPUTES[self.compute].output_terms

    @property
    def block(self) -> str:
        """Block and threads in the short name."""
        return f"b{self.bm0}x{self.bn0}x{self.bk0}_w1"

    def ck_tile(self, target: CpuTarget) -> dict[str, int]:
        """The tile's fields by CK's names. bn1 and bk0max are 0, which stands for the call's head dims."""
        block = {"bm0": self.bm0, "bn0": self.bn0, "bk0": self.bk0, "bn1": 0, "bk1": self.bn0, "bk0max": 0}
        warps = {f"r{side}{gemm}": 1 for gemm in (0, 1) for side in "mnk"}
        shape = self.register_tile(target)
        return block | warps | {f"w{side}{gemm}": shape[side] for gemm in (0, 1) for side in "mnk"}

    @property
    def fp16_rate(self) -> float:
        """Multiply-adds a cycle where x86-64-v4-fp16 runs, too; 0: no other."""
        return self.efficiency_fp16 and self.efficiency_fp16 * TARGETS["x86-64-v4-fp16"].macs[self.compute]

    @property
    def halves(self) -> bool:
        """Whether o is the sum of halves, of which a vector has twice as many."""
        return self.pipeline == "qr" and self.compute == "f32f16"

    def numerics(self, target: CpuTarget) -> str:
        """How numbers are rounded and functions approximated."""
        if self.pipeline == "decode" and self.compute == "bf16":
            return f"{super().numerics(target)}; {INTEGERS}"
        return HALVES if self.halves else super().numerics(target)

    def register_tile(self, target: CpuTarget) -> dict[str, int]:
        """Rows, keys and multiply-adds of a lane in a step of the main loop. In qr lanes are rows."""
        rows, keys = self.nv * target.lanes * (2 if self.halves else 1), self.mr
        if self.pipeline == "decode":
            rows, keys = keys, rows
        return {"m": rows, "n": keys, "k": COMPUTES[self.compute].wk}

    @property
    def heights(self) -> tuple[int, ...]:
        """In decode: of how many rows there is a loop that multiplies them together."""
        if self.pipeline != "decode":
            return ()
        powers = {"f32f16": (1, 2, 4, 8), "f32i16": (1, 2, 4)}
        if self.compute in powers:
            return powers[self.compute]
        if self.compute == "bf16i8":
            return tuple(range(1, self.bm0 + 1))
        return (*range(1, self.mr + 1), *((2 * self.mr,) if self.compute == "bf16" else ()))

    def row_step(self, target: CpuTarget) -> int:
        """What rows of a tile are rounded up to: in qr vectors, since the last strip may have fewer."""
        if self.pipeline == "decode":
            return 1
        return self.register_tile(target)["m"] // (1 if self.pipeline == "qr_tile" else self.nv)

    def count_loads(self, rows: int) -> int:
        """How often keys are loaded for so many rows of a tile."""
        if not self.heights:
            return 1
        count = 0
        while rows > 0:
            rows -= max(height for height in self.heights if height <= rows)
            count += 1
        return count

    @property
    def whole_load(self) -> float:
        """What loading adds to the cycles of a row's product with a number, in whole tiles."""
        return self.count_loads(self.bm0) * self.load / self.bm0

    @property
    def cache_loads(self) -> dict[str, float]:
        """By the type of a cache: cycles of a number, once for all rows that it is multiplied with."""
        codes = {"fp8_e4m3": self.load_fp8_e4m3, "int8": self.load_int8, "turbo4": self.load_turbo4}
        return {"auto": self.load} | {kv: load or self.load for kv, load in codes.items()}

    @property
    def cache_rates(self) -> dict[str, float]:
        """By the type of a cache: how fast its products are; 0: rows are copied as numbers first."""
        codes = {"fp8_e4m3": self.rate_fp8_e4m3, "int8": self.rate_int8, "turbo4": self.rate_turbo4}
        return {"auto": 1.0} | (codes if self.pipeline == "decode" else dict.fromkeys(codes, 0.0))

    def cycles(self, target: CpuTarget) -> float:
        """Cycles of a block of keys beside its multiply-adds: its softmax and its bookkeeping."""
        return SOFTMAX_CYCLES * self.bm0 * self.bn0 / target.lanes + BLOCK_CYCLES

    def cost_complaint(self, target: CpuTarget) -> str:
        """Whether loads leave time for products, and only decode reads codes."""
        rates = (self.rate_fp8_e4m3, self.rate_int8, self.rate_turbo4)
        if min(rates) <= 0 or (self.pipeline != "decode" and rates != (1.0, 1.0, 1.0)):
            return f"rates of caches {rates} are above 0, and those of pipeline 'decode'"
        loads = (self.load_fp8_e4m3, self.load_int8, self.load_turbo4)
        if min(self.load, *loads) < 0 or (self.pipeline != "decode" and any(loads)):
            return f"loads {self.load}, and of caches {loads}, are 0 at least, and these of pipeline 'decode'"
        peak = max(self.efficiency * target.macs[self.compute], self.fp16_rate)
        if self.whole_load * peak >= 1:
            return f"load = {self.load} leaves no time for products: a whole tile makes {peak:.3g} a cycle"
        return ""

    def complaint(self, target: CpuTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        if found := self.type_complaint(target):
            return found
        if self.ahead not in (1, 2, 3) or (self.ahead > 1 and self.pipeline != "decode"):
            return f"ahead = {self.ahead} is none of 1 and, in pipeline 'decode', 2 and 3"
        if self.ahead == 3 and self.compute != "bf16":
            return f"ahead = 3 is for products of bf16, not of {self.compute}"
        if found := self.cost_complaint(target):
            return found
        if self.heads < 1 or (self.heads > 1 and self.ahead == 1):
            return f"heads = {self.heads}: more than 1 go with ahead = 2 or 3, and there is 1 at least"
        rows = self.register_tile(target)["m"]
        if self.bm0 % rows:
            return f"bm0 = {self.bm0} is no multiple of the {rows} rows of the register tile"
        if self.planes > 1 and self.pipeline != "qr_tile":
            return f"compute '{self.compute}' is sums of bf16, which only pipeline 'qr_tile' makes"
        if self.pipeline == "qr_tile":
            if not target.tiles:
                return f"pipeline 'qr_tile' is made of tile registers, {target.name} has none"
            if self.mr != 2 * target.lanes or self.nv > 2:
                return f"qr_tile has mr = {2 * target.lanes}, nv = 1 or 2: 4 tiles of sums, 4 of operands"
        if self.pipeline != "qr_tile" and (found := self.register_complaint(target)):
            return found
        strip_bytes = 4 * self.bn0 * rows
        if strip_bytes > target.l1_bytes:
            return (
                f"a strip's scores take {strip_bytes} bytes, the L1 cache of {target.name} {target.l1_bytes}"
            )
        # Scores, packed keys and values at head dims of 128.
        return self.block_complaint(target, 4 * self.bn0 * (self.bm0 + 128 + 128))
