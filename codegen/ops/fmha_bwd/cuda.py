# SPDX-License-Identifier: MIT
"""Tiles of fmha_bwd on NVIDIA's sm_90a.

Compiled in are the data type and the head dims, which registers and shared memory are laid out by. All else
is an argument at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from codegen.ops.fmha_bwd.cuda_products import products
from codegen.ops.fmha_bwd.traits import HDIM_PADS
from codegen.ops.fmha_fwd.cuda_products import Products
from codegen.targets import NvidiaTarget

ALIGNMENT = 16  # bytes that copies move at a time, and that rows begin at multiples of
SLICE = 128  # bytes of a row that lie side by side in shared memory
COLUMNS = SLICE // 2  # elements of them
ROWS = 64  # of a product of a warpgroup
TURNED_ROWS = 80  # queries of a step that are columns of all its products but those of dk and dv
WARPGROUP = 128  # threads
DQ_BOX = 32  # columns of dq that are added to memory at once
TASKS, TASK_BYTES = 2, 64  # descriptions of tasks in shared memory
# Of a thread: setmaxnreg moves what the warpgroup that brings tiles leaves to the two that compute. All of a
# workgroup have no more than ptxas gives them at entry, 168 for each thread.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 24, 240
OTHER_REGISTERS = 12  # beside sums, operands and tiles
PASSES = {1: ("FOR_ALL",), 2: ("FOR_DV", "FOR_DS")}  # what each computes
PTX_TYPES = {"fp16": "f16", "bf16": "bf16"}


@dataclass(frozen=True)
class CudaTile:
    """A row of instances/fmha_bwd.toml for sm_90a."""

    pipeline: str
    epilogue: str
    compute: str  # the type that products read, which tensors are stored in
    hdim_q: int  # the greatest head dims; smaller multiples of `hdim_multiple` are padded
    hdim_v: int
    bm0: int  # queries of a step
    bn0: int  # keys of a task, and of a part of dq where that has several: 64 of each warpgroup
    efficiency: float  # measured share of the target's peak in the main loop
    why: str
    q_stages: int = 3  # tiles of q in shared memory
    do_stages: int = 2  # tiles of do
    ds_stages: int = 2  # tiles of gradients of scores
    dq_boxes: int = 0  # of 32 columns of a warpgroup's dq that are on their way to memory at once; 0: all
    dq_over_ds: int = 0  # 1: they lie where gradients of scores were before
    general: int = 0  # 1: with soft cap, bias, alibi and dropout, which take registers
    passes: int = 1  # over the queries, of a general kernel: 2 take fewer registers, see PASSES
    serves: str = ""  # clauses, as for --where

    name_tokens: ClassVar[dict[str, str]] = {
        "epilogue": "e",
        "q_stages": "q",
        "do_stages": "do",
        "general": "g",
        "passes": "p",
    }

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The type of tensors."""
        return (self.compute,)

    @property
    def held(self) -> str:
        """What the kernel lacks; names of head dims that are no multiple of `hdim_multiple` do not hold."""
        pads = "|".join(pad for pad in HDIM_PADS if "1" not in pad)
        plain = "" if self.general else " bias=no dbias=no dropout=no randval=no logits=no"
        return f"dpads={pads}{plain}"

    @property
    def hdim_multiple(self) -> int:
        """The number that head dims of a call are multiples of."""
        return ALIGNMENT // 2

    @property
    def alignment(self) -> int:
        """Bytes that every row begins at a multiple of."""
        return ALIGNMENT

    @property
    def dq(self) -> int:
        """The head dim of q and k in products."""
        return -(-self.hdim_q // COLUMNS) * COLUMNS

    @property
    def dv(self) -> int:
        """The head dim of v and do in products."""
        return -(-self.hdim_v // COLUMNS) * COLUMNS

    @property
    def warpgroups(self) -> int:
        """Those that compute."""
        return self.bn0 // ROWS

    @property
    def threads(self) -> int:
        """Threads of a workgroup: one more warpgroup brings tiles."""
        return WARPGROUP * (self.warpgroups + 1)

    @property
    def dq_turned(self) -> bool:
        """Whether rows of dq's product are columns of dq: queries are no multiple of a product's rows."""
        return self.bm0 % ROWS != 0

    @property
    def dq_rows(self) -> int:
        """Queries of dq that a warpgroup computes."""
        return self.bm0 if self.dq_turned else ROWS

    @property
    def dq_columns(self) -> int:
        """Columns of dq that a warpgroup computes: warpgroups share out those or queries."""
        return self.dq // self.warpgroups if self.bm0 < ROWS * self.warpgroups else self.dq

    @property
    def dq_sums(self) -> int:
        """Sums of dq that a thread has."""
        return self.dq_rows * self.dq_columns // WARPGROUP

    @property
    def dq_rest(self) -> int:
        """Those of them that are a product of their own: 64 columns lie side by side."""
        return self.dq_columns % COLUMNS if self.dq_columns > COLUMNS else 0

    @property
    def dq_room(self) -> int:
        """Columns of a warpgroup's dq that are on their way to memory at once."""
        return DQ_BOX * self.dq_boxes or self.dq_columns

    @property
    def pass_names(self) -> tuple[str, ...]:
        """Of the passes over the queries, in the kernels' words."""
        return PASSES[self.passes]

    @property
    def block(self) -> str:
        """Block, head dims and warps in the short name."""
        hdims = f"{self.hdim_q}" if self.hdim_q == self.hdim_v else f"{self.hdim_q}x{self.hdim_v}"
        return f"b{self.bm0}x{self.bn0}x{hdims}_w{4 * self.warpgroups}"

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a workgroup, as device/attention/cuda_bwd/sizes.h lays them out."""
        keys = self.bn0 * (self.dq + self.dv) * 2
        queries = self.bm0 * (self.dq * self.q_stages + self.dv * self.do_stages) * 2
        ds = self.ds_stages * self.bn0 * self.bm0 * 2
        sums = self.q_stages * 8 * self.bm0
        dq = self.warpgroups * self.dq_rows * self.dq_room * 4
        apart = self.warpgroups + (0 if self.general else self.ds_stages)
        barriers = 16 * (2 + TASKS + 2 * self.q_stages + self.do_stages + apart) + 8
        ds_and_dq = max(ds, dq) if self.dq_over_ds else ds + dq
        return keys + queries + ds_and_dq + sums + TASKS * TASK_BYTES + barriers

    @property
    def producer_registers(self) -> int:
        """Registers of a thread of the warpgroup that brings tiles."""
        return PRODUCER_REGISTERS

    @property
    def consumer_registers(self) -> int:
        """Registers of a thread that computes."""
        return CONSUMER_REGISTERS

    @property
    def registers(self) -> int:
        """Registers that a thread holds through the main loop."""
        sums = self.dq + self.dv if self.passes == 1 else max(self.dq, self.dv)
        return sums // 2 + self.bm0 + self.bm0 // 4 + OTHER_REGISTERS

    @cached_property
    def products(self) -> Products:
        """The products' instructions."""
        return products(self)

    def wgmma(self, columns: int) -> str:
        """The instruction for a product of so many columns."""
        kind = PTX_TYPES[self.compute]
        return f"wgmma.mma_async.sync.aligned.m{ROWS}n{columns}k16.f32.{kind}.{kind}"

    def numerics(self, target: NvidiaTarget) -> str:
        """How numbers are rounded and functions approximated."""
        return f"{self.compute} products (p and ds rounded to nearest even) and fp32 sums, exp2 within 2 ulp"

    def cycles(self, target: NvidiaTarget) -> float:
        """Cycles of a block beside its multiply-adds: none, since efficiency counts all."""
        return 0.0

    def needs(self, target: NvidiaTarget) -> str:
        """What the machine and a call must bring."""
        return (
            f"{self.shared_bytes} bytes of shared memory, {4 * self.warpgroups} warps that compute and "
            f"four that bring tiles and take dq away, head dims that are multiples of {self.hdim_multiple}, "
            f"any lengths, rows aligned to {self.alignment} bytes"
        )

    def ck_tile(self, target: NvidiaTarget) -> dict[str, int]:
        """The tile's fields; the other of CK's follow from them."""
        return {
            "bm0": self.bm0, "bn0": self.bn0, "wm": 16, "wn": self.bm0, "wk": 16,
            "dq": self.dq, "dv": self.dv, "is_ordered": 1,
        }  # fmt: skip

    def complaint(self, target: NvidiaTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute not in PTX_TYPES:
            return f"compute '{self.compute}' is none of {', '.join(PTX_TYPES)}"
        if self.pipeline != "kr_ktr_vr_async":
            return f"pipeline '{self.pipeline}' is not kr_ktr_vr_async"
        if self.epilogue != "store":
            return f"epilogue '{self.epilogue}' is not 'store'"
        if min(self.hdim_q, self.hdim_v, self.q_stages, self.do_stages) < 1 or not 0 < self.efficiency <= 1:
            return "head dims and stages must be positive and 0 < efficiency <= 1"
        return self._not_general() or self._uneven() or self._too_large(target)

    def _not_general(self) -> str:
        """Values that the kernel's forms do not have, or an empty text."""
        if self.general not in (0, 1):
            return f"general = {self.general} is neither 0 nor 1"
        if self.passes not in PASSES:
            return f"passes = {self.passes} is none of {', '.join(map(str, PASSES))}"
        if self.ds_stages not in (1, 2):
            return f"ds_stages = {self.ds_stages} is neither 1 nor 2"
        if self.dq_over_ds not in (0, 1) or (self.dq_over_ds and self.ds_stages == 2):
            return f"dq_over_ds = {self.dq_over_ds} is neither 0 nor, with ds_stages = 1, 1"
        if not self.general and (self.passes, self.ds_stages) != (1, 2):
            return (
                f"passes = {self.passes} and ds_stages = {self.ds_stages} are not 1 and 2, and general is 0"
            )
        return ""

    def _uneven(self) -> str:
        """Sizes that do not divide evenly, or an empty text."""
        if self.bm0 not in (ROWS, TURNED_ROWS, 2 * ROWS) or self.bn0 != 2 * ROWS:
            return (
                f"bm0 = {self.bm0} and bn0 = {self.bn0} are not {ROWS}, {TURNED_ROWS} or {2 * ROWS}, "
                f"and {2 * ROWS}"
            )
        if self.dq_turned and (self.dq != 2 * ROWS or self.dq_boxes):
            return f"bm0 = {self.bm0}: a warpgroup has 64 columns of dq, all on their way at once"
        if self.bm0 != ROWS and self.general:
            return f"bm0 = {self.bm0}, and general is 1: registers have room for {ROWS}"
        if self.dq not in (64, 128, 192, 256):
            return f"hdim_q = {self.hdim_q}: two warpgroups share out slices of 64 up to 256 columns"
        if self.dq_columns % self.dq_room:
            return f"dq_boxes = {self.dq_boxes} of {DQ_BOX} columns do not divide {self.dq_columns}"
        if self.dv > 256:
            return f"hdim_v = {self.hdim_v}: a product has at most 256 columns"
        return ""

    def _too_large(self, target: NvidiaTarget) -> str:
        """Features that the target lacks, or an empty text."""
        if self.shared_bytes > target.workgroup_shared_bytes:
            return (
                f"tiles take {self.shared_bytes} bytes of shared memory, a workgroup of {target.name} has at "
                f"most {target.workgroup_shared_bytes}"
            )
        if self.registers > self.consumer_registers:
            return (
                f"sums and tiles take {self.registers} registers of a thread, which has "
                f"{self.consumer_registers}"
            )
        return ""
