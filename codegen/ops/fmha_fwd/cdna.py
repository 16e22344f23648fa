# SPDX-License-Identifier: MIT
"""Tiles of fmha_fwd on AMD's CDNA GPUs.

Compiled in are the data type, which MFMA reads as it lies in memory, and the head dims, which registers and
LDS are laid out by. All else is an argument at run time. Lengths, masks, head dims that use only a part, lse
and skip cost a few scalar instructions a tile; scores are masked only in tiles that a mask's edge crosses.
Soft cap, bias, alibi, dropout and sinks stand behind branches that a whole wave takes or does not; what they
need is loaded behind the branch too, so they take no registers from a call without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codegen.ops.fmha_fwd.traits import hdim_word
from codegen.targets import CdnaTarget

# Storage type of q, k, v and o, which is MFMA's too -> how numbers are rounded.
COMPUTES = {
    "fp16": "fp16 products and fp32 sums, p rounded to nearest even, exp2 within 1 ulp",
    "bf16": "bf16 products and fp32 sums, p rounded to nearest with halves up, exp2 within 1 ulp",
}
ELEMENT_BYTES = 2
ALIGNMENT = 16  # bytes of an access: every row begins at a multiple of them
CHUNK = ALIGNMENT // ELEMENT_BYTES  # elements of an access

# Vector operations for one score: scale, maximum, exp2 at a quarter of the rate, sum, half of a pack.
SOFTMAX_CYCLES = 8.0
# One tile's barriers, exchange between lanes and correction of o. Estimated.
TILE_CYCLES = 600.0


@dataclass(frozen=True)
class CdnaTile:
    """A row of instances/fmha_fwd.toml for CDNA, by CK's names."""

    pipeline: str
    epilogue: str
    compute: str  # the type that MFMA reads
    hdim_q: int  # the greatest head dims; smaller multiples of a chunk are padded
    hdim_v: int
    bm0: int  # queries of a workgroup
    bn0: int  # keys of a tile
    rm0: int  # waves, each of which has wm0 of the queries
    wm0: int  # the product that the template is written in: queries, keys, and what it sums over
    wn0: int
    wk0: int
    occupancy: int  # waves of a SIMD that registers leave room for
    efficiency: float  # estimated share of the target's peak in the main loop
    why: str  # the reason that the row is there
    serves: str = ""  # clauses, as for --where; "": all that the data type and the head dim can

    name_tokens: ClassVar[dict[str, str]] = {
        "epilogue": "e", "wm0": "wm", "wn0": "wn", "wk0": "wk", "occupancy": "o",
    }  # fmt: skip

    @property
    def bk0(self) -> int:
        """Columns of q and k that are in LDS at once: all."""
        return self.dq

    @property
    def dq(self) -> int:
        """The head dim of q and k in registers and LDS."""
        return -(-self.hdim_q // self.wk0) * self.wk0

    @property
    def dv(self) -> int:
        """The head dim of v and o in registers and LDS."""
        return -(-self.hdim_v // self.wn0) * self.wn0

    @property
    def hdim_multiple(self) -> int:
        """Head dims of a call are multiples of it."""
        return CHUNK

    @property
    def bk1(self) -> int:
        """Keys of v that are in LDS at once: all of a tile."""
        return self.bn0

    @property
    def block(self) -> str:
        """Block and waves in the short name."""
        return f"b{self.bm0}x{self.bn0}x{self.bk0}_w{self.rm0}"

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Storage types."""
        return (self.compute,)

    @property
    def held(self) -> str:
        """What the kernel is compiled for: one pair of head dims."""
        return f"hdim={hdim_word(self.hdim_q, self.hdim_v)}"

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return 64 * self.rm0

    @property
    def alignment(self) -> int:
        """Bytes that every row of q, k, v and o begins at a multiple of."""
        return ALIGNMENT

    @property
    def lds_bytes(self) -> int:
        """A tile of k and one of v. Rows of k have an odd number of chunks or a power of 2."""
        chunks = self.dq // CHUNK
        spare = 0 if chunks.bit_count() == 1 else (chunks + 1) % 2
        moved = -(-self.bn0 * chunks // self.threads) * self.threads  # there is room for all
        return ELEMENT_BYTES * (-(-moved // chunks) * CHUNK * (chunks + spare) + self.bk1 * self.dv)

    @property
    def registers(self) -> int:
        """What a lane holds through the main loop: q, o, scores, and the next tile's k and v."""
        rows = self.bm0 // self.rm0
        q, o, scores = rows * self.dq // 2, rows * self.dv, rows * self.bn0
        copies = (
            -(-self.bn0 * self.dq // CHUNK // self.threads),
            -(-self.bn0 * self.dv // (4 * CHUNK) // self.threads),
        )
        return (q + o + scores) // 64 + 4 * (copies[0] + 4 * copies[1])

    @property
    def numerics(self) -> str:
        """How numbers are rounded and functions approximated."""
        return COMPUTES[self.compute]

    def cycles(self, target: CdnaTarget) -> float:
        """What a tile of keys costs beside its multiply-adds: its softmax and its bookkeeping."""
        return SOFTMAX_CYCLES * self.bm0 * self.bn0 / target.lanes + TILE_CYCLES

    def needs(self, target: CdnaTarget) -> str:
        """What the machine and a call must bring."""
        return (
            f"{self.lds_bytes} bytes of LDS, {self.rm0} waves, head dims that are multiples of {CHUNK}, any "
            f"lengths, rows aligned to {self.alignment} bytes"
        )

    def ck_tile(self, target: CdnaTarget) -> dict[str, int]:
        """CK's fields."""
        block = {"bm0": self.bm0, "bn0": self.bn0, "bk0": self.bk0}
        block |= {"bn1": self.hdim_v, "bk1": self.bk1, "bk0max": self.hdim_q}
        waves = {f"r{side}{gemm}": self.rm0 if side == "m" else 1 for gemm in (0, 1) for side in "mnk"}
        shape = self.register_tile(target)
        return block | waves | {f"w{side}{gemm}": shape[side] for gemm in (0, 1) for side in "mnk"}

    def register_tile(self, target: CdnaTarget) -> dict[str, int]:
        """Queries and keys that are rounded up to, and what a product sums over."""
        return {"m": self.wm0, "n": self.wn0, "k": self.wk0}

    def complaint(self, target: CdnaTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute not in COMPUTES:
            return f"compute '{self.compute}' is none of {', '.join(COMPUTES)}"
        sizes = (
            self.hdim_q,
            self.hdim_v,
            self.bm0,
            self.bn0,
            self.rm0,
            self.wm0,
            self.wn0,
            self.wk0,
            self.occupancy,
        )
        if min(sizes) < 1 or not 0 < self.efficiency <= 1:
            return "sizes, rm0 and occupancy must be positive and 0 < efficiency <= 1"
        shapes = target.mfma[self.compute]
        if not any((self.wm0, self.wn0) == (m, n) and self.wk0 % k == 0 for m, n, k in shapes):
            there = ", ".join("x".join(map(str, shape)) for shape in shapes)
            shape = f"{self.wm0}x{self.wn0}x{self.wk0}"
            return f"{shape} is made of no {self.compute} MFMA of {target.name}: {there}"
        return self._uneven() or self._too_large(target)

    def _uneven(self) -> str:
        """What does not divide evenly."""
        if self.bm0 != self.rm0 * self.wm0:
            return f"bm0 = {self.bm0} is not rm0 x wm0 = {self.rm0 * self.wm0}: a wave has wm0 of the queries"
        for size, value, part, of in (
            ("bn0", self.bn0, "wn0", self.wn0),
            ("bn0", self.bn0, "wk0", self.wk0),
            ("hdim_q", self.hdim_q, "a chunk", CHUNK),
            ("hdim_v", self.hdim_v, "a chunk", CHUNK),
        ):
            if value % of:
                return f"{size} = {value} is no multiple of {part} = {of}"
        return ""

    def _too_large(self, target: CdnaTarget) -> str:
        """What the target lacks."""
        if self.threads > target.workgroup_threads:
            return (
                f"{self.rm0} waves, a workgroup of {target.name} has at most {target.workgroup_threads // 64}"
            )
        if self.lds_bytes > target.lds_bytes:
            return f"k and v take {self.lds_bytes} bytes of LDS, {target.name} has {target.lds_bytes}"
        workgroups = target.lds_bytes // self.lds_bytes
        if workgroups * self.rm0 < self.occupancy * target.simds:
            return (
                f"LDS of {target.name} has room for {workgroups} workgroups of {self.rm0} waves; "
                f"occupancy = {self.occupancy} takes {self.occupancy * target.simds} waves"
            )
        room = target.registers // self.occupancy
        if self.registers > room:
            return (
                f"q, o, scores and the next tile take {self.registers} registers of a lane; with "
                f"occupancy = {self.occupancy} there are {room} on {target.name}"
            )
        return ""
