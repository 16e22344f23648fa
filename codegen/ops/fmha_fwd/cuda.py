# SPDX-License-Identifier: MIT
"""Tiles of fmha_fwd on NVIDIA's sm_90a.

Compiled in are the data type, which products read as it lies in memory, and the head dims, which registers
and shared memory are laid out by. All else is an argument at run time. A main loop has two forms of its step:
one for tiles that every query sees whole, and one for all others, which also has soft cap, bias, alibi and
dropout behind branches that a whole warp takes or does not. So none of them costs a call without them more
than the test, and none takes registers from the products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from codegen.ops.fmha_fwd.cuda_products import Products, products
from codegen.ops.fmha_fwd.gpu_tile import GpuTile
from codegen.ops.fmha_fwd.traits import CACHE_TYPES, hdim_word
from codegen.targets import NvidiaTarget

ALIGNMENT = 16  # bytes that copies move at a time, and that rows begin at multiples of
SLICE = 128  # bytes of a row that lie side by side in shared memory
PIPELINES = ("qr_async", "qr_pages", "qr_heads")
ROWS = 64  # of a product of a warpgroup
WARPGROUP = 128  # threads
TASKS, TASK_BYTES = 4, 64  # descriptions of tasks in shared memory
UNIT_BYTES = 8  # of a warp, where o may change its unit
# Registers of a thread that the warp that brings tiles needs, and those that compute may take: ptxas gives
# all threads of a workgroup the same number at entry, and setmaxnreg moves what one kind leaves to the other.
PRODUCER_REGISTERS = {1: 96, 2: 56, 3: 32}
CONSUMER_REGISTERS = {1: 240, 2: 224, 3: 160}
# Of pipeline qr_pages, whose warps each have all of a task's rows, and keys of their own.
WARP_ROWS, STEP_KEYS = 16, 16  # rows of a product, and keys that one of P and V sums over
TABLE_BYTES = 256 * 256  # of shared memory: pairs of turbo4's numbers
CHAINS = 2  # in which a thread sums up a row (device/attention/cuda/softmax_late.h)
GREATEST_FP8 = 448.0  # of OCP's E4M3
# Beside scores, results and probabilities: maxima, sums, the task, addresses. Estimated from ptxas' figures.
OTHER_REGISTERS = 24


@dataclass(frozen=True)
class Compute:
    """A type that products read, which q, k and v are stored in."""

    bits: int
    ptx: str  # its word in instructions
    dtypes: dict[str, str]  # for each type of o, the usual one first, what CK calls the data type
    p_shift: int  # p in [0, 1] is stored times this power of 2, for the type's range
    headroom: float  # the power of 2 that p may exceed 1 by, before scores are referred to a greater one
    numerics: str


COMPUTES = {
    "fp16": Compute(
        16,
        "f16",
        {"fp16": "fp16"},
        6,
        8.0,
        "fp16 products and fp32 sums, p rounded to nearest even, exp2 within 2 ulp",
    ),
    "bf16": Compute(
        16,
        "bf16",
        {"bf16": "bf16"},
        0,
        8.0,
        "bf16 products and fp32 sums, p rounded to nearest even, exp2 within 2 ulp",
    ),
    "fp8": Compute(
        8,
        "e4m3",
        {"fp8": "fp8", "bf16": "fp8bf16"},
        8,
        0.75,  # 2^8.75 is below the greatest number, 448
        "fp8 products, sums as tensor cores make them, p rounded to nearest even in fp8, exp2 within 2 ulp",
    ),
}


@dataclass(frozen=True)
class CudaTile(GpuTile):
    """A row of instances/fmha_fwd.toml for sm_90a, by CK's names."""

    pipeline: str
    epilogue: str
    compute: str  # the type that products read
    hdim_q: int  # the greatest head dims; smaller multiples of `hdim_multiple` are padded
    hdim_v: int
    bm0: int  # queries of a task
    bn0: int  # keys of a tile
    rm0: int  # warpgroups that compute, each of which has 64 of the queries
    efficiency: float  # estimated share of the target's peak in the main loop
    why: str  # the reason that the row is there
    stages: int = 2  # tiles of k, and of v, in shared memory
    q_stages: int = 2  # tasks whose q is there: the next one's comes while one is computed
    turns: int = 0  # 1: warpgroups start products in turns, the softmax of one beside products of another
    o: str = ""  # the type that o is stored in; "": that of q, k and v
    v_layout: str = "r"  # v's rows are keys; "c": columns of o
    alone: float = 1.0  # a tile's time where a workgroup has a multiprocessor, over that of its share
    lead: float = 1.5  # the time of so many tiles that a task takes beside its tiles: begin and end
    strip: float = 0.0  # a tile's time where one warpgroup alone has queries; 0: no tasks are made of so few
    paired: float = 0.0  # a tile's time where two workgroups share tiles of k and v; 0: they never do
    v_first: int = 0  # where so many tasks read a tile of v a launch of its own transposes it; 0: never
    keeps: int = 1  # 0: what is subtracted from scores is always their maximum, which takes less registers
    late: int = 0  # 1: whether it still serves is known by sums of probabilities, not by maxima of scores
    early: int = 16  # probabilities of a thread that are made before it is known whether that follows
    fused_exp2: int = 1  # of so many exponentials one is made by multiply-adds, if they are more than 1
    general: int = 1  # 0: without soft cap, bias, alibi, dropout and descales of blocks, which take registers
    workgroups: int = 1  # that a multiprocessor has room for
    merge: int = 0  # 1: a task has queries of all heads of a key head, and perhaps a part of the keys
    heads: int = 1  # key heads of a task, whose rows in pages are copied together
    paged: int = 0  # 1: keys lie in a cache; 2: in pages in pieces, which quantised ones with 1 find too
    kv: str = "auto"  # its type, as tessera_kv_cache_dtype has it; "auto": that of q
    serves: str = ""  # clauses, as for --where; "": all that the data type and the head dim can

    computes: ClassVar = COMPUTES
    name_tokens: ClassVar[dict[str, str]] = {
        "epilogue": "e",
        "stages": "s",
        "workgroups": "o",
        "general": "g",
        "merge": "m",
        "heads": "h",
        "paged": "p",
        "kv": "",
    }

    @property
    def bits(self) -> int:
        """Bits of an element of q, k and v."""
        return COMPUTES[self.compute].bits

    @property
    def quantised(self) -> bool:
        """Whether numbers of the cache become others on their way."""
        return self.pipeline in ("qr_pages", "qr_heads")

    @property
    def numbers(self) -> str:
        """The type of such a cache's numbers, which may be that of q."""
        return "fp8_e4m3" if self.kv == "auto" else self.kv

    @property
    def keys_in(self) -> tuple[str, ...]:
        """Where keys may lie: tessera_keys_in. Products that read v in shared memory need it in one way."""
        if not self.paged:
            return ("ROWS",)
        if self.heads > 1:
            return ("PAGES",)
        return ("PAGES", "PIECES") if self.quantised else ("PIECES",) if self.in_pieces else ("PAGES",)

    @property
    def in_pieces(self) -> bool:
        """Whether columns of v are rows in shared memory, as keys of a column lie beside one another."""
        return self.paged == 2

    @property
    def turned(self) -> bool:
        """Whether rows of products are keys: fewer queries leave time for 4 bits, and registers for warps."""
        return self.kv == "turbo4" or self.heads > 1

    @property
    def factors(self) -> str:
        """The type of products' factors: numbers of quantised caches become fp16, and what goes with them."""
        return "fp16" if self.quantised else self.compute

    @property
    def factor_bits(self) -> int:
        """Bits of these."""
        return 16 if self.quantised else self.bits

    @property
    def keys(self) -> int:
        """Keys of a tile that a warpgroup has, or a warp whose keys are its own."""
        return self.bn0 // self.shares if self.quantised else self.bn0

    @property
    def shares(self) -> int:
        """Warps that share a head's keys, where they have keys of their own."""
        return self.waves // self.heads

    @property
    def along(self) -> bool:
        """Whether products read v along its rows, which are columns of o then: those of 8 bits always do."""
        return not self.quantised and (self.bits == 8 or self.v_layout == "c" or self.in_pieces)

    @property
    def transposes(self) -> bool:
        """Whether v's rows become columns on their way."""
        return not self.quantised and self.bits == 8 and self.v_layout == "r"

    @property
    def warp_rows(self) -> int:
        """Queries of a warp whose keys are its own: rows of a product, or columns."""
        return 8 if self.turned else WARP_ROWS

    @property
    def mma_k(self) -> int:
        """Elements that one instruction sums over: 32 bytes."""
        return 16 if self.quantised else 256 // self.bits

    @property
    def columns(self) -> int:
        """Elements of a slice of a row."""
        return 8 * SLICE // self.bits

    @property
    def dq(self) -> int:
        """The head dim of q and k in products."""
        return -(-self.hdim_q // self.mma_k) * self.mma_k

    @property
    def dv(self) -> int:
        """The head dim of v and o in products, whose operand is made of whole slices of 16-bit v."""
        multiple = self.columns if self.bits == 16 else 32
        return -(-self.hdim_v // multiple) * multiple

    @property
    def o_bits(self) -> int:
        """Bits of an element of o."""
        return 8 if self.o_type == "fp8" else 16

    @property
    def bias_bits(self) -> int:
        """Bits of an element of an elementwise bias."""
        return 16 if self.bits == 16 else 32

    @property
    def p_shift(self) -> int:
        """The power of 2 that p in [0, 1] is stored times: a lesser one where sums are to fit p's type."""
        most = COMPUTES[self.factors].p_shift
        chain = self.keys // 4 // CHAINS  # a thread has a quarter of a row's keys
        return min(most, int(math.log2(GREATEST_FP8 / chain))) if self.late else most

    @property
    def headroom(self) -> float:
        """The power of 2 that p may exceed 1 by."""
        return COMPUTES[self.factors].headroom

    @property
    def hdim_multiple(self) -> int:
        """The number that head dims of a call are multiples of."""
        return 16 if self.quantised else 8 * ALIGNMENT // self.bits

    @property
    def alignment(self) -> int:
        """Bytes that every row of q, k, v and o begins at a multiple of."""
        return ALIGNMENT

    @property
    def qscales(self) -> str:
        """Descales that the kernel takes."""
        return "no" if self.bits == 16 else "no|pt|bs" if self.blocks else "no|pt"

    @property
    def blocks(self) -> bool:
        """Whether blocks of rows may have descales of their own: then o's unit changes with the tile."""
        return self.bits == 8 and self.general == 1 and not self.quantised

    @property
    def adjusts_beside(self) -> bool:
        """Whether scores of whole tiles change while values are added: merged heads leave no registers."""
        return self.general == 1 and not self.merge

    @property
    def drops_beside(self) -> bool:
        """Whether probabilities are dropped then, too: at head dims 64 and 256 a few registers lack."""
        return self.adjusts_beside and 64 < self.hdim_v < 256

    @property
    def drops(self) -> bool:
        """Whether there is dropout: of instances that merge heads those for caches as q have it."""
        return self.general == 1 and (not self.merge or (self.paged > 0 and self.kv == "auto"))

    @property
    def held(self) -> str:
        """Clauses on the traits that the kernel is compiled for.

        A row of column-major v begins at an aligned address, but a group's sequences begin anywhere in it.
        """
        mode = " mode=batch" if self.v_layout == "c" else ""
        plain = "" if self.general else " logits=no bias=no"
        kept = "" if self.drops else " dropout=no"
        traits = f"hdim={hdim_word(self.hdim_q, self.hdim_v)} vlayout={self.v_layout} qscale={self.qscales}"
        return f"{traits}{mode}{plain}{kept}"

    @property
    def waves(self) -> int:
        """Warps that compute."""
        return 4 * self.rm0

    @property
    def threads(self) -> int:
        """Threads of a workgroup: one more warpgroup brings tiles, but where warps bring them in turns."""
        return WARPGROUP * (self.rm0 + (not self.quantised))

    def _slice_bytes(self, rows: int, hdim: int) -> int:
        return rows * -(-hdim // self.columns) * SLICE

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a workgroup, as device/attention/cuda/sizes.h lays them out."""
        if self.heads > 1:
            return self._shared_bytes_of_pages
        if self.quantised:
            return self._shared_bytes_of_parts
        v = (self.bn0, self.dv) if self.v_layout == "r" else (self.dv, self.bn0)
        keys = self._slice_bytes(self.bn0, self.dq) + self._slice_bytes(*v)
        barriers = 8 * (2 * self.q_stages + 2 * TASKS + 4 * self.stages)
        if self.transposes:  # into another place
            keys += self.dv * self.bn0
            barriers += 16 * self.stages
        if self.paired:
            barriers += 16 * self.stages
        queries = self.q_stages * self._slice_bytes(self.bm0, self.dq)
        units = self.threads // 32 * UNIT_BYTES if self.blocks else 0
        return queries + self.stages * keys + TASKS * TASK_BYTES + units + barriers

    @property
    def part_bytes(self) -> int:
        """Bytes of shared memory of a part of a quantised cache: a warp's rows of k or of v, and scales."""
        bits, tail, scale = (4, 16, 8) if self.kv == "turbo4" else (8, 4, 4)
        return self.keys * (self.dq * bits // 8 + tail + scale + 2)

    @property
    def _shared_bytes_of_parts(self) -> int:
        """The same, as device/attention/cuda_pages/sizes.h lays them out."""
        of_warp = max(self.stages * self.part_bytes, 4 * self.bm0 * self.dv)
        parts = 2 * self.bm0 * self.dq + self.waves * of_warp
        own = max(16 * self.bm0, 8 * self.keys)
        return parts + TABLE_BYTES * (self.kv == "turbo4") + self.waves * own + 2 * TASK_BYTES

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of all heads."""
        return self.heads * (self.dq // 2 + 2 if self.kv == "turbo4" else self.dq)

    @property
    def _shared_bytes_of_pages(self) -> int:
        """The same where parts are those of all heads."""
        part = self.bn0 * self.row_bytes
        if self.kv != "turbo4":  # with scales, where swizzles begin
            part = -(-(part + 4 * self.bn0 * self.heads) // 1024) * 1024
        parts = max(self.stages * part, self.waves * 4 * self.bm0 * self.dv)
        parts += self.heads * 2 * self.bm0 * self.dq + TABLE_BYTES * (self.kv == "turbo4")
        own = max(16 * self.bm0, 8 * self.keys)
        return parts + self.waves * own + 2 * TASK_BYTES + 16 * self.stages

    @property
    def _moved_registers(self) -> int:
        """Registers of each thread that computes which warps that bring tiles get; below 0 it gets theirs.

        Looking up pages takes more than usual, and so do descales of blocks, which 8 bits may have.
        """
        if self.rm0 == 1:
            return 0
        return 8 * self.paged - 8 * self.blocks

    @property
    def producer_registers(self) -> int:
        """Registers of a thread of the warpgroup that brings tiles."""
        return PRODUCER_REGISTERS[self.rm0] + self.rm0 * self._moved_registers

    @property
    def consumer_registers(self) -> int:
        """Registers of a thread that computes."""
        return CONSUMER_REGISTERS[self.rm0] - self._moved_registers

    @property
    def registers(self) -> int:
        """Registers that a thread holds through the main loop."""
        if self.quantised:
            return (self.keys + self.dv) // (4 if self.turned else 2) + OTHER_REGISTERS
        return (self.bn0 + self.dv) // 2 + self.bn0 * self.bits // 64 + OTHER_REGISTERS

    @cached_property
    def products(self) -> Products:
        """The product's instructions."""
        return products(self)

    def wgmma(self, columns: int) -> str:
        """The instruction for a product of so many columns."""
        kind = COMPUTES[self.compute].ptx
        return f"wgmma.mma_async.sync.aligned.m{ROWS}n{columns}k{self.mma_k}.f32.{kind}.{kind}"

    def major(self, a: str, b: str) -> str:
        """Operands that say how factors in shared memory are read, which only 16-bit types may choose."""
        if self.bits != 16:
            return ""
        return "".join(f", {int(major == 'MN')}" for major in (a, b) if major)

    def numerics(self, target: NvidiaTarget) -> str:
        """How numbers are rounded and functions approximated."""
        return COMPUTES[self.factors].numerics

    def cycles(self, target: NvidiaTarget) -> float:
        """Cycles of a tile of keys beside its multiply-adds: none, since its softmax runs beside them."""
        return 0.0

    def needs(self, target: NvidiaTarget) -> str:
        """What the machine and a call must bring."""
        bring = "" if self.quantised else " and one that brings tiles"
        return (
            f"{self.shared_bytes} bytes of shared memory, {4 * self.rm0} warps that compute{bring}, "
            f"head dims that are multiples of {self.hdim_multiple}, any lengths, rows aligned to "
            f"{self.alignment} bytes"
        )

    def ck_tile(self, target: NvidiaTarget) -> dict[str, int]:
        """The tile's fields by CK's names."""
        block = {"bm0": self.bm0, "bn0": self.bn0, "bk0": self.bk0}
        block |= {"bn1": self.hdim_v, "bk1": self.bn0, "bk0max": self.hdim_q}
        warps = {f"r{side}{gemm}": 4 * self.rm0 if side == "m" else 1 for gemm in (0, 1) for side in "mnk"}
        columns, k = (8, 8) if self.quantised else (self.bn0, self.dv), self.mma_k
        shapes = {"wm0": 16, "wn0": columns[0], "wk0": k, "wm1": 16, "wn1": columns[1], "wk1": k}
        return block | warps | shapes

    def complaint(self, target: NvidiaTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        for flag, value in (("merge", self.merge), ("turns", self.turns)):
            if value not in (0, 1):
                return f"{flag} = {value} is neither 0 nor 1"
        if self.compute not in COMPUTES:
            return f"compute '{self.compute}' is none of {', '.join(COMPUTES)}"
        if self.pipeline not in PIPELINES:
            return f"pipeline '{self.pipeline}' is none of {', '.join(PIPELINES)}"
        types = COMPUTES[self.compute].dtypes
        if self.o_type not in types:
            return f"o = '{self.o}' of {self.compute} is none of {', '.join(types)}"
        if self.late and (self.bits == 16 or not self.keeps or self.early or self.general or self.merge):
            return "late = 1 needs products of 8 bits, keeps = 1, early = 0, general = 0 and merge = 0"
        if self.v_first < 0 or (self.v_first and (not self.transposes or self.merge)):
            return f"v_first = {self.v_first} is 0, or more where v is transposed and merge = 0"
        if not 0 <= self.strip < 1 or (self.strip and (self.merge or self.paged or self.rm0 < 2)):
            return f"strip = {self.strip} is below 1, and 0 with merge = 1, caches, or one warpgroup"
        if self.paired and not (0 < self.paired <= 1 and self._may_pair):
            return f"paired = {self.paired} is at most 1, and 0 where tasks or halves of tiles are uneven"
        if complaint := self._complaint_of_layout() or self._complaint_of_heads() or self._complaint_of_kv():
            return complaint
        epilogue = "quant" if self.o_type == "fp8" else "store"
        if self.epilogue != epilogue:
            return f"epilogue '{self.epilogue}' with o of {self.o_type}, which takes '{epilogue}'"
        sizes = (self.hdim_q, self.hdim_v, self.bm0, self.bn0, self.stages, self.q_stages)
        if min(sizes) < 1 or not 0 < self.efficiency <= 1:
            return "sizes and stages must be positive and 0 < efficiency <= 1"
        return self._uneven() or self._too_large(target)

    @property
    def _may_pair(self) -> bool:
        """Whether halves of tiles are boxes of their maps, and tasks of the same keys are as long."""
        return not (self.general or self.merge or self.paged) and self.v_layout == "r" and self.bn0 % 16 == 0

    def _complaint_of_layout(self) -> str:
        """Why keys and values cannot lie so, or an empty text."""
        if self.paged not in (0, 1, 2):
            return f"paged = {self.paged} is none of 0, 1 and 2"
        if self.v_layout not in ("r", "c"):
            return f"v_layout '{self.v_layout}' is neither r nor c"
        if self.v_layout == "c" and self.paged:
            return f"v_layout 'c' with paged = {self.paged}: rows of caches are keys"
        if self.paged and self.bits != 16 and not self.quantised:
            return f"paged = {self.paged}: products of {self.compute} want the warps that would look rows up"
        return ""

    def _complaint_of_kv(self) -> str:
        """Why the type of the cache does not fit, or an empty text."""
        if self.kv not in CACHE_TYPES:
            return f"kv = '{self.kv}' is none of {', '.join(CACHE_TYPES)}"
        if self.quantised != (self.kv != "auto" or (self.paged > 0 and self.bits == 8)):
            return (
                f"kv = '{self.kv}': pipelines 'qr_pages' and 'qr_heads' read quantised caches, nothing else"
            )
        if not self.quantised:
            return ""
        if self.paged != 1 or not self.merge:
            return f"pipeline '{self.pipeline}' needs paged = 1 and merge = 1"
        if self.kv != "auto" and self.bits != 16:
            return f"kv = '{self.kv}' with queries of {self.compute}, whose caches are as they: kv = 'auto'"
        if self.hdim_q != self.hdim_v or self.hdim_q not in (64, 128, 256):
            return f"kv = '{self.kv}': head dims are both 64, 128 or 256, so that lanes share rows out evenly"
        if self.keys not in (STEP_KEYS, 2 * STEP_KEYS) or self.bn0 % self.waves:
            return f"bn0 = {self.bn0}: each of {self.waves} warps has {STEP_KEYS} or {2 * STEP_KEYS} keys"
        if self.stages < 2:
            return f"stages = {self.stages}: at least one part is on its way while one is taken"
        return ""

    def _complaint_of_heads(self) -> str:
        """Why a task cannot have so many key heads, or an empty text."""
        if (self.pipeline == "qr_heads") != (self.heads > 1):
            return f"heads = {self.heads}: tasks of pipeline 'qr_heads' have several, and of others one"
        if self.heads == 1:
            return ""
        if self.kv == "auto":
            return f"heads = {self.heads}: pipeline 'qr_heads' reads no queries of {self.compute}"
        if self.waves % self.heads or 32 % self.heads:
            return f"heads = {self.heads}: a power of 2, and as many of {self.waves} warps have each"
        if self.kv == "turbo4" and self.row_bytes % 32 != 16:
            return f"heads = {self.heads}: rows of {self.row_bytes} bytes are no odd multiple of 16"
        return ""

    def _uneven(self) -> str:
        """Sizes that do not divide evenly, or an empty text."""
        if self.rm0 not in CONSUMER_REGISTERS and not (self.quantised and self.rm0 == 4):
            return f"rm0 = {self.rm0} is none of {', '.join(map(str, CONSUMER_REGISTERS))} warpgroups"
        rows = self.warp_rows if self.quantised else ROWS * self.rm0
        if self.bm0 != rows:
            each = "a warp has them all" if self.quantised else f"a warpgroup has {ROWS} queries"
            return f"bm0 = {self.bm0} is not {'' if self.quantised else f'rm0 x {ROWS} = '}{rows}: {each}"
        for size, value, part, of in (
            ("bn0", self.bn0, "what an instruction sums over", self.mma_k),
            ("bn0", self.bn0, "what a thread draws of dropout at once", 32 if self.drops else 1),
            ("hdim_q", self.hdim_q, "what a call's may be", self.hdim_multiple),
            ("hdim_v", self.hdim_v, "what a call's may be", self.hdim_multiple),
        ):
            if value % of:
                return f"{size} = {value} is no multiple of {part} = {of}"
        if self.along and not self.transposes and self.bn0 % self.columns:
            return f"bn0 = {self.bn0} is no multiple of {self.columns}: rows of columns of v are whole slices"
        if self.v_layout == "c" and self.hdim_v != self.dv:
            return f"hdim_v = {self.hdim_v} of column-major v is not what products take, {self.dv}"
        for size, value in (("bn0", self.bn0), ("hdim_v", self.dv)):
            if value > 256 and not self.quantised:
                return f"{size} = {value}: a product has at most 256 columns"
        return ""

    def _too_large(self, target: NvidiaTarget) -> str:
        """Features that the target lacks, or an empty text."""
        if self.shared_bytes > target.workgroup_shared_bytes:
            return (
                f"q, k and v take {self.shared_bytes} bytes of shared memory, a workgroup of {target.name} "
                f"has at most {target.workgroup_shared_bytes}"
            )
        if self.quantised:
            most = target.registers // (self.threads * self.workgroups)
            most = min(most // target.register_granule * target.register_granule, target.thread_registers)
            if target.workgroups(self.threads, most, self.shared_bytes) < self.workgroups:
                return f"{self.shared_bytes} bytes of shared memory, {self.workgroups} times"
            return (
                "" if self.registers <= most else f"{self.registers} registers, of which a thread has {most}"
            )
        if self.registers > self.consumer_registers:
            return (
                f"scores, o and p take {self.registers} registers of a thread; {self.rm0} warpgroups have "
                f"{self.consumer_registers}"
            )
        return ""
