# SPDX-License-Identifier: MIT
"""Tiles of fmha_bwd on AMD's CDNA GPUs.

Compiled in are the data type and the head dims, which registers and LDS are laid out by. All else is an
argument at run time, behind branches that a whole wave takes or does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codegen.ops.fmha_bwd.cdna_pipelines import PIPELINES, SIDE, TASK, Needs
from codegen.ops.fmha_bwd.cdna_schedule import Step
from codegen.ops.fmha_bwd.traits import BYTES, HDIM_PADS
from codegen.targets import CdnaTarget

ALIGNMENT = 16  # bytes that a lane loads at once
NUMERICS = {
    "fp32": "fp32 products and sums, exp2 within 1 ulp",
    "fp16": "fp16 products (p and ds rounded to nearest even) and fp32 sums, exp2 within 1 ulp",
    "bf16": "bf16 products (p and ds rounded {rounding}) and fp32 sums, exp2 within 1 ulp",
}
PASSES = {1: ("FOR_ALL",), 2: ("FOR_DV", "FOR_DS"), 3: ("FOR_DV", "FOR_DK", "FOR_DQ")}  # what each computes
PARTS_STORED = "deterministic=yes mode=group"  # calls that have parts of dq stored; others have them added to
ROUNDINGS = {"rtne": "to nearest even", "rtna": "to nearest with halves up"}


@dataclass(frozen=True)
class CdnaTile:
    """A row of instances/fmha_bwd.toml for CDNA."""

    pipeline: str
    epilogue: str
    compute: str  # the type that MFMA reads, which tensors are stored in
    hdim_q: int  # the greatest head dims; smaller multiples of `hdim_multiple` are padded
    hdim_v: int
    bm0: int  # queries of a tile
    bn0: int  # keys of a workgroup, and of a part of dq where that has several: 32 of each wave
    occupancy: int  # waves of a SIMD that registers leave room for
    why: str
    serves: str = ""  # clauses, as for --where
    passes: int = 1  # over the queries: several take fewer registers and less LDS, see PASSES
    stores_dq: int = 0  # a planned loop stores parts of dq, each of one workgroup; else it adds to them
    # The share of the target's peak where units are full. Modelled, as instances/fmha_bwd_modelled.toml has
    # it; this where it is not yet.
    efficiency: float = 0.2

    modelled: ClassVar[tuple[str, ...]] = ("efficiency",)
    # Vectors are written out; looking for more takes 5 % of the compiler's time and finds none in loops.
    cflags: ClassVar[tuple[str, ...]] = ("-fno-slp-vectorize",)
    name_tokens: ClassVar[dict[str, str]] = {
        "epilogue": "e",
        "occupancy": "o",
        "passes": "p",
        "stores_dq": "sdq",
    }

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The type of tensors."""
        return (self.compute,)

    @property
    def held(self) -> str:
        """Head dims are multiples of `hdim_multiple`: names that say of any do not hold."""
        pads = f"dpads={'|'.join(pad for pad in HDIM_PADS if '1' not in pad)}"
        return f"{pads} {PARTS_STORED}" if self.stores_dq else pads

    @property
    def lacks(self) -> str:
        """Clauses of what the kernel is not written for: planned loops add to dq, or they store it."""
        return PARTS_STORED if self.pipeline == "kr_ktr_vr_bundled" and not self.stores_dq else ""

    @property
    def bits(self) -> int:
        """Of an element."""
        return 8 * BYTES[self.compute]

    @property
    def chunk(self) -> int:
        """Elements of a load."""
        return 8 * ALIGNMENT // self.bits

    @property
    def hdim_multiple(self) -> int:
        """The number that head dims of a call are multiples of: results are stored by eight."""
        return 8

    @property
    def alignment(self) -> int:
        """Bytes that every row begins at a multiple of."""
        return ALIGNMENT

    @property
    def dq(self) -> int:
        """The head dim of q and k in registers and LDS."""
        return -(-self.hdim_q // SIDE) * SIDE

    @property
    def dv(self) -> int:
        """The head dim of v and do in registers and LDS."""
        return -(-self.hdim_v // SIDE) * SIDE

    @property
    def waves(self) -> int:
        """Of a workgroup."""
        return self.bn0 // SIDE

    @property
    def task_bytes(self) -> int:
        """LDS of a wave's task, which the header holds against what it keeps there."""
        return TASK

    @property
    def threads(self) -> int:
        """Of a workgroup."""
        return 64 * self.waves

    @property
    def block(self) -> str:
        """Block, head dims and waves in the short name."""
        hdims = f"{self.hdim_q}" if self.hdim_q == self.hdim_v else f"{self.hdim_q}x{self.hdim_v}"
        return f"b{self.bm0}x{self.bn0}x{hdims}_w{self.waves}"

    @property
    def pass_names(self) -> tuple[str, ...]:
        """Of the passes over the queries, in the kernels' words."""
        return PASSES[self.passes]

    @property
    def max_q(self) -> int:
        """The most queries of a call, which are one tile, so that dq has no parts; 0: any number."""
        return self.bm0 if self.pipeline == "qr_qtr_dor" else 0

    def pipeline_needs(self, target: CdnaTarget) -> Needs:
        """LDS, registers and limits of the pipeline."""
        return PIPELINES[self.pipeline](self, target)

    def step(self, target: CdnaTarget) -> Step:
        """The main loop of the pipeline whose order is planned."""
        return Step(self, target)

    def lds_bytes(self, target: CdnaTarget) -> int:
        """Bytes of LDS of a workgroup."""
        return self.pipeline_needs(target).lds_bytes

    def p_rounding(self, target: CdnaTarget) -> str:
        """How p becomes bf16, and ds."""
        return "rtne" if target.bf16_conversions else "rtna"

    def numerics(self, target: CdnaTarget) -> str:
        """How numbers are rounded and functions approximated."""
        return NUMERICS[self.compute].format(rounding=ROUNDINGS[self.p_rounding(target)])

    def cycles(self, target: CdnaTarget) -> float:
        """Cycles of a block beside its multiply-adds: none, since efficiency counts all."""
        return 0.0

    def needs(self, target: CdnaTarget) -> str:
        """What the machine and a call must bring."""
        return (
            f"{self.lds_bytes(target)} bytes of LDS, {self.waves} waves, head dims that are multiples of "
            f"{self.hdim_multiple}, {f'at most {self.max_q} queries' if self.max_q else 'any lengths'}, "
            f"rows aligned to {self.alignment} bytes"
        )

    def ck_tile(self, target: CdnaTarget) -> dict[str, int]:
        """The tile's fields; the other of CK's follow from them."""
        return {
            "bm0": self.bm0, "bn0": self.bn0, "wm": SIDE, "wn": SIDE, "wk": 2 * self.chunk,
            "dq": self.dq, "dv": self.dv, "max_q": self.max_q,
        }  # fmt: skip

    def complaint(self, target: CdnaTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.pipeline not in PIPELINES:
            return f"pipeline '{self.pipeline}' is none of {', '.join(PIPELINES)}"
        if self.compute not in NUMERICS:
            return f"compute '{self.compute}' is none of {', '.join(NUMERICS)}"
        if self.epilogue != "store":
            return f"epilogue '{self.epilogue}' is not 'store'"
        if self.stores_dq not in (0, 1) or (self.stores_dq and self.pipeline != "kr_ktr_vr_bundled"):
            return f"stores_dq = {self.stores_dq} is not 0, nor 1 of pipeline 'kr_ktr_vr_bundled'"
        sizes = (self.hdim_q, self.hdim_v, self.bm0, self.bn0, self.occupancy)
        if self.passes not in PASSES:
            return f"passes = {self.passes} is none of {', '.join(map(str, PASSES))}"
        if min(sizes) < 1 or not 0 < self.efficiency <= 1:
            return "sizes and occupancy must be positive and 0 < efficiency <= 1"
        if self.bm0 % SIDE or self.bm0.bit_count() != 1 or self.bn0 % SIDE or self.bn0.bit_count() != 1:
            return f"bm0 = {self.bm0} and bn0 = {self.bn0} must be powers of 2 from {SIDE} on"
        if self.threads > target.workgroup_threads:
            most = target.workgroup_threads // 64
            return f"{self.waves} waves, a workgroup of {target.name} has at most {most}"
        needs = self.pipeline_needs(target)
        if complaint := needs.complaint(self, target):
            return complaint
        if needs.lds_bytes > target.lds_bytes:
            return f"tiles take {needs.lds_bytes} bytes of LDS, {target.name} has {target.lds_bytes}"
        room = target.registers // self.occupancy
        if needs.registers > room:
            return (
                f"{needs.held} take {needs.registers} registers of a lane; with "
                f"occupancy = {self.occupancy} there are {room} on {target.name}"
            )
        workgroups = target.workgroups(self.waves, self.occupancy, needs.lds_bytes)
        if workgroups * self.waves < self.occupancy * target.simds:
            return (
                f"LDS of {target.name} has room for {workgroups} workgroups of {self.waves} waves; "
                f"occupancy = {self.occupancy} takes {self.occupancy * target.simds} waves"
            )
        return ""
