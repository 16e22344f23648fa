# SPDX-License-Identifier: MIT
"""Tiles of fmha_fwd on AMD's CDNA GPUs.

Compiled in are the data type, which MFMA reads as it lies in memory, and the head dims, which registers and
LDS are laid out by. All else is an argument at run time. Lengths, masks, head dims that use only a part, lse
and skip cost a few scalar instructions a tile; scores are masked only in tiles that a mask's edge crosses.
Soft cap, bias, alibi, dropout and sinks stand behind branches that a whole wave takes or does not; what they
need is loaded behind the branch too, so they take no registers from a call without them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from codegen.ops.fmha_fwd.cdna_clusters import Clusters
from codegen.ops.fmha_fwd.cdna_pipelines import LANES, PIPELINES, Needs
from codegen.ops.fmha_fwd.cdna_schedule import Step
from codegen.ops.fmha_fwd.gpu_tile import GpuTile
from codegen.ops.fmha_fwd.traits import hdim_word
from codegen.targets import CdnaTarget

ALIGNMENT = 16  # bytes that a thread moves at a time, and that LDS is laid out by
HDIM_MULTIPLE = 8  # head dims are multiples of it


@dataclass(frozen=True)
class Compute:
    """A type that MFMA reads, which q, k and v are stored in."""

    bits: int
    dtypes: dict[str, str]  # for each type of o, the usual one first, what CK calls the data type
    numerics: str
    bias_bits: int  # of an element of an elementwise bias

    @property
    def chunk(self) -> int:
        """Elements of an access."""
        return 8 * ALIGNMENT // self.bits


COMPUTES = {
    "fp32": Compute(32, {"fp32": "fp32"}, "fp32 products and sums, exp2 within 1 ulp", 32),
    "fp16": Compute(
        16,
        {"fp16": "fp16"},
        "fp16 products and fp32 sums, p rounded to nearest even, exp2 within 1 ulp",
        16,
    ),
    "bf16": Compute(
        16,
        {"bf16": "bf16"},
        "bf16 products and fp32 sums, p rounded {rounding}, exp2 within 1 ulp",
        16,
    ),
    "fp8": Compute(
        8,
        {"fp8": "fp8", "bf16": "fp8bf16", "fp32": "fp8fp32"},
        "fp8 products and fp32 sums, p rounded to nearest even in fp8, exp2 within 1 ulp",
        32,
    ),
    "mxfp8": Compute(
        8,
        {"fp32": "mxfp8"},
        "mxfp8 products and fp32 sums, p rounded to nearest even in fp8, exp2 within 1 ulp",
        32,
    ),
    "mxfp4": Compute(
        4,
        {"fp32": "mxfp4"},
        "mxfp4 products and fp32 sums, p rounded to nearest even in fp8, exp2 within 1 ulp",
        32,
    ),
}
LAZY = 8.0  # log2 of what p may grow to in pipelines that seldom rescale,
STAYING = -32  # log2 of p where a score equals a reference that stays: p has room above and below
LAZY_OF_FP8 = 0.75  # and of fp8, whose range goes so far beyond what p is stored times: 2^8.8, FNUZ 2^7.9
SCALE_BLOCK = 32  # elements of an mx type that share a scale

# How p may become bf16, as CK's CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT has it for all conversions.
ROUNDINGS = {"rtne": "to nearest even", "rtna": "to nearest with halves up", "rtz": "towards zero"}


@dataclass(frozen=True)
class CdnaTile(GpuTile):
    """A row of instances/fmha_fwd.toml for CDNA, by CK's names."""

    pipeline: str
    epilogue: str
    compute: str  # the type that MFMA reads
    hdim_q: int  # the greatest head dims; smaller multiples of `hdim_multiple` are padded
    hdim_v: int
    bm0: int  # queries of a workgroup
    bn0: int  # keys of a tile
    rm0: int  # waves, each of which has wm0 of the queries
    wm0: int  # the product that the template is written in: queries, keys
    wn0: int
    occupancy: int  # waves of a SIMD that registers leave room for
    why: str  # the reason that the row is there
    wk0: int = 0  # and what it sums over; 0: an access of each lane that a row is shared out to
    rounding: str = ""  # of p to bf16; "": the best that takes few instructions on the target
    o: str = ""  # the type that o is stored in; "": that of q, k and v
    access: int = ALIGNMENT  # bytes of a load, which rows begin at multiples of; 4: loads word by word
    v_layout: str = "r"  # v's rows are keys; "c": columns of o
    kv: str = "auto"  # the type of a cache in pages, as tessera_kv_cache_dtype has it; "auto": that of q
    turns: int = 1  # blocks of queries that a workgroup may take, one from each end of a sequence
    serves: str = ""  # clauses, as for --where; "": all that the data type and the head dim can
    # Modelled, as instances/fmha_fwd_modelled.toml has it; 0: not yet.
    efficiency: float = 0.0  # the share of the target's peak that the main loop reaches on a full unit,
    alone: float = 0.0  # and where a workgroup has a unit for itself
    start: float = 0.0  # the time of a workgroup beside its blocks, in blocks
    half: float = 0.0  # the share of a block's time where half of the waves have no queries

    modelled: ClassVar[tuple[str, ...]] = ("efficiency", "alone", "start", "half")
    computes: ClassVar = COMPUTES
    name_tokens: ClassVar[dict[str, str]] = {
        "epilogue": "e", "wm0": "wm", "wn0": "wn", "wk0": "wk", "occupancy": "o",
        "rounding": "", "access": "a", "kv": "",
    }  # fmt: skip

    @property
    def dq(self) -> int:
        """The head dim of q and k in registers and LDS."""
        return -(-self.hdim_q // self.mma_k) * self.mma_k

    @property
    def dv(self) -> int:
        """The head dim of v and o in registers and LDS."""
        return -(-self.hdim_v // self.wn0) * self.wn0

    @property
    def bits(self) -> int:
        """Bits of an element of q, k and v."""
        return COMPUTES[self.compute].bits

    def product(self, target: CdnaTarget) -> str:
        """The type of products: of `direct` that which numbers of 8 bits become in fewest instructions."""
        by_fp16 = self.kv == "int8" or (self.kv == "fp8_e4m3" and target.fp8 != "ocp")
        if self.parts == 2:
            return "fp8"
        return "fp16" if self.direct and by_fp16 else self.compute

    @property
    def mx(self) -> bool:
        """Whether each 32 elements have a scale, of which a product takes one from each half of a wave."""
        return self.compute.startswith("mx")

    @property
    def bias_bits(self) -> int:
        """Bits of an element of an elementwise bias."""
        return COMPUTES[self.compute].bias_bits

    @property
    def takes_bias(self) -> bool:
        """Whether a call may have a bias."""
        return "bias=no" not in self.serves.split()

    @property
    def chunk(self) -> int:
        """Elements of an access."""
        return COMPUTES[self.compute].chunk

    @property
    def accesses(self) -> str:
        """Those of a row, in words."""
        return {2: "two accesses", 4: "four accesses"}[self.shares]

    @cached_property
    def mma_k(self) -> int:
        """Elements that one product sums over; with scales at least those of two scales."""
        return self.wk0 or max(self.shares * self.chunk, 2 * SCALE_BLOCK if self.mx else 0)

    @property
    def mma_rows(self) -> int:
        """Rows of a product's operands; waves of other pipelines that have fewer queries leave some empty."""
        return self.wm0 if self.direct else 32

    @property
    def shares(self) -> int:
        """Lanes that have a row of a product's operand together."""
        return LANES // self.mma_rows

    @property
    def operand_chunks(self) -> int:
        """Chunks that a lane holds of one product's operand."""
        return self.mma_k // (self.shares * self.chunk)

    @property
    def hdim_multiple(self) -> int:
        """The number that head dims of a call are multiples of."""
        together = 2 if self.direct or self.kv != "auto" else 1  # chunks of k that a lane loads
        return max(8 * self.access // self.bits, HDIM_MULTIPLE) * together

    def p_shift(self, target: CdnaTarget) -> int:
        """The power of 2 that p in [0, 1] is stored times, for the type's range; 0 where that is fp32's."""
        if COMPUTES[self.product(target)].bits < 16:
            return {"ocp": 8, "fnuz": 7}[target.fp8]
        if self.stays:
            return STAYING
        return 14 - int(self.raise_by) if self.product(target) == "fp16" else 0

    @property
    def planned(self) -> bool:
        """Whether the order of the main loop is planned, for sequences that are long."""
        return self.pipeline in ("qr_bundled", "hk_prefill")

    @property
    def stays(self) -> bool:
        """Whether the reference of p is that of a row's first tile: p has the range of fp32."""
        return self.pipeline == "qr_bundled" and self.compute == "bf16"

    @property
    def raise_by(self) -> float:
        """The power of 2 by which p may exceed that before sums are rescaled."""
        if not self.planned:
            return 0
        return LAZY if self.bits == 16 else LAZY_OF_FP8

    @property
    def merge(self) -> int:
        """1: a tile has the queries of all heads of a key head, and perhaps a part of the keys."""
        return int(self.paged or self.pipeline == "qr_split")

    @property
    def paged(self) -> int:
        """1: keys may lie in a cache."""
        return int(self.direct or self.pipeline == "qr_pages")

    @property
    def direct(self) -> bool:
        """Whether rows of a cache go to registers, where products read them."""
        return self.pipeline == "qr_direct" or self.pieces

    @property
    def pieces(self) -> bool:
        """Whether these lie in pages in pieces, and linear ones are others'."""
        return self.pipeline == "qr_pieces"

    @property
    def parts(self) -> int:
        """2: rows of a product's operand are parts of 8 bits, two of each query."""
        return 2 if self.pieces and 2 * self.bm0 == self.rm0 * self.wm0 else 1

    @property
    def keys_in(self) -> tuple[str, ...]:
        """Where keys may lie: tessera_keys_in."""
        if self.direct:
            return ("PIECES",) if self.pieces else ("PAGES",)
        return ("ROWS", "PAGES", "PIECES") if self.paged else ("ROWS",)

    @property
    def scaled_rows(self) -> int:
        """Keys and values of a tile whose scales, or norms, are in LDS."""
        return 2 * self.bn0 if self.kv != "auto" or (self.paged and self.compute == "fp8") else 0

    @property
    def whole_tiles(self) -> int:
        """1: the instance takes self-attention over whole tiles alone (runtime/ops/fmha_fwd_whole.c)."""
        return int(self.pipeline == "hk_prefill")

    @property
    def transposes_heads(self) -> bool:
        """Whether workgroups beside one another have query heads of different key heads."""
        return self.pipeline == "hk_prefill"

    def step(self, target: CdnaTarget) -> Step:
        """The main loop of a pipeline whose order is planned."""
        return Step(self, target)

    def clusters(self, target: CdnaTarget) -> Clusters:
        """The clusters of products of pipeline hk_prefill."""
        return Clusters(self, target)

    @property
    def bk1(self) -> int:
        """Keys of v that are in LDS at once: all of a tile."""
        return self.bn0

    @property
    def held(self) -> str:
        """Clauses on the traits that the kernel is compiled for.

        One pair of head dims. A row of column-major v begins at an aligned address, but a group's sequences
        begin anywhere in it. Of the pipelines that merge heads, that for caches as q is drops.
        """
        drops = not self.merge or (self.paged and self.kv == "auto" and not self.direct)
        mode = " mode=batch" if self.v_layout == "c" else "" if drops else " dropout=no"
        return f"hdim={hdim_word(self.hdim_q, self.hdim_v)} vlayout={self.v_layout}{mode}"

    @property
    def waves(self) -> int:
        """Waves of a workgroup."""
        return self.rm0

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return 64 * self.rm0

    @property
    def alignment(self) -> int:
        """Bytes that every row of q, k, v and o begins at a multiple of."""
        return self.access

    @cached_property
    def pipeline_needs(self) -> Needs:
        """LDS, registers and limits of the pipeline."""
        return PIPELINES[self.pipeline](self)

    @property
    def lds_bytes(self) -> int:
        """Bytes of LDS of a workgroup."""
        return self.pipeline_needs.lds_bytes

    @property
    def registers(self) -> int:
        """Registers that a lane holds through the main loop."""
        return self.pipeline_needs.registers

    @property
    def operand_registers(self) -> int:
        """Registers of a lane for q and o."""
        return self.wm0 * (self.dq * self.bits // 32 + self.dv) // 64

    @property
    def score_registers(self) -> int:
        """Registers of a lane for the scores of a tile."""
        return self.wm0 * self.bn0 // 64

    @property
    def scale_bytes(self) -> int:
        """Bytes of the scales of a tile of k and of one of v."""
        return self.bn0 * (self.dq + self.dv) // SCALE_BLOCK if self.mx else 0

    @property
    def loads_v(self) -> int:
        """Accesses that a thread makes for a tile of v; row-major v takes four keys together."""
        together = 4 if self.v_layout == "r" else 1
        return together * -(-self.bn0 * self.dv // (together * self.chunk) // self.threads)

    @property
    def v_words(self) -> int:
        """Words of a row of v that a thread loads, where v goes through registers and is transposed."""
        words = self.bn0 * self.dv * self.bits // (4 * 32 * self.threads)
        return 1 if words <= 1 else 2 if words <= 2 else 4

    def p_rounding(self, target: CdnaTarget) -> str:
        """How p becomes bf16."""
        return self.rounding or ("rtne" if target.bf16_conversions else "rtna")

    def numerics(self, target: CdnaTarget) -> str:
        """How numbers are rounded and functions approximated."""
        if self.parts == 2:
            return (
                "fp8 products of q and p as sums of two numbers and fp32 sums, p rounded to nearest even, "
                "exp2 within 1 ulp"
            )
        return COMPUTES[self.product(target)].numerics.format(rounding=ROUNDINGS[self.p_rounding(target)])

    def cycles(self, target: CdnaTarget) -> float:
        """Cycles of a tile of keys beside its multiply-adds: none, since efficiency counts all."""
        return 0.0

    def needs(self, target: CdnaTarget) -> str:
        """What the machine and a call must bring."""
        return (
            f"{self.lds_bytes} bytes of LDS, {self.rm0} waves, head dims that are multiples of "
            f"{self.hdim_multiple}, any lengths, rows aligned to {self.alignment} bytes"
        )

    def ck_tile(self, target: CdnaTarget) -> dict[str, int]:
        """The tile's fields by CK's names."""
        block = {"bm0": self.bm0, "bn0": self.bn0, "bk0": self.bk0}
        block |= {"bn1": self.hdim_v, "bk1": self.bk1, "bk0max": self.hdim_q}
        waves = {f"r{side}{gemm}": self.rm0 if side == "m" else 1 for gemm in (0, 1) for side in "mnk"}
        shape = self.register_tile(target)
        return block | waves | {f"w{side}{gemm}": shape[side] for gemm in (0, 1) for side in "mnk"}

    def register_tile(self, target: CdnaTarget) -> dict[str, int]:
        """The multiples that queries, keys and the reduced dimension are rounded up to."""
        return {"m": self.wm0, "n": self.wn0, "k": self.mma_k}

    def complaint(self, target: CdnaTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute not in COMPUTES:
            return f"compute '{self.compute}' is none of {', '.join(COMPUTES)}"
        if self.compute not in target.mfma:
            return f"{target.name} has no {self.compute} MFMA"
        types = COMPUTES[self.compute].dtypes
        if self.o_type not in types:
            return f"o = '{self.o}' of {self.compute} is none of {', '.join(types)}"
        if self.v_layout not in ("r", "c"):
            return f"v_layout '{self.v_layout}' is neither r nor c"
        if self.v_layout == "c" and self.compute == "fp8":
            return "fp8 with column-major v: CK has no such kernel either"
        if self.mx and self.mma_k != 2 * SCALE_BLOCK:
            return f"wk0 = {self.mma_k}: a product takes two scales, of {SCALE_BLOCK} elements each"
        epilogue = "quant" if self.o_type == "fp8" else "store"
        if self.epilogue != epilogue:
            return f"epilogue '{self.epilogue}' with o of {self.o_type}, which takes '{epilogue}'"
        if self.rounding and (self.compute != "bf16" or self.rounding not in ROUNDINGS):
            return f"rounding = '{self.rounding}' of {self.compute}: bf16 has {', '.join(ROUNDINGS)}"
        if self.rounding == replace(self, rounding="").p_rounding(target):
            return f"rounding = '{self.rounding}' is what {target.name} does without it"
        sizes = (
            self.hdim_q,
            self.hdim_v,
            self.bm0,
            self.bn0,
            self.rm0,
            self.wm0,
            self.wn0,
            self.mma_k,
            self.occupancy,
        )
        if min(sizes) < 1 or min(self.alone, self.start, self.half) < 0 or not 0 <= self.efficiency <= 1:
            return "sizes, rm0 and occupancy must be positive and 0 <= efficiency <= 1"
        shapes = target.mfma[self.compute]
        if not any((self.wm0, self.wn0) == (m, n) and self.mma_k % k == 0 for m, n, k in shapes):
            there = ", ".join("x".join(map(str, shape)) for shape in shapes)
            shape = f"{self.wm0}x{self.wn0}x{self.mma_k}"
            return f"{shape} is made of no {self.compute} MFMA of {target.name}: {there}"
        if self.operand_chunks > 1 and (self.wm0, self.wn0, self.mma_k) not in shapes:
            return (
                f"wk0 = {self.mma_k} is more than {self.accesses} = {self.shares * self.chunk}, "
                "and no MFMA by itself"
            )
        return (
            self._uneven()
            or self._not_written_for()
            or self._not_shared_out(target)
            or self._too_large(target)
        )

    def _not_written_for(self) -> str:
        """Why the pipeline cannot take the tile, or an empty text."""
        if self.pipeline not in PIPELINES:
            return f"pipeline '{self.pipeline}' is none of {', '.join(PIPELINES)}"
        if self.turns not in (1, 2 if self.pipeline == "qr_bundled" else 1):
            return f"turns = {self.turns}: a workgroup takes one block of queries, of 'qr_bundled' one or two"
        return self.pipeline_needs.complaint

    def _not_shared_out(self, target: CdnaTarget) -> str:
        """Tiles of which lanes of a planned loop would load unequal shares, or an empty text."""
        if self.pipeline != "qr_bundled":
            return ""
        straight = {"k": self.dq, "v": self.dv} if target.transposing_reads else {"k": self.dq}
        for name, hdim in straight.items():
            size, load = self.bn0 * hdim * self.bits // 8, target.lds_load_bytes * self.threads
            if size % load:
                return f"a tile of {name} has {size} bytes, no multiple of the {load} of a load of all lanes"
        words = self.bn0 * self.dv * self.bits // (4 * 32)
        if not target.transposing_reads and words != self.v_words * self.threads:
            return (
                f"a tile of v has {words} words of four keys, no 1, 2 or 4 for each of {self.threads} "
                f"threads, which transpose them on {target.name}"
            )
        return ""

    def _uneven(self) -> str:
        """Sizes that do not divide evenly, or an empty text."""
        if self.access not in (4, ALIGNMENT) or (self.access == 4 and self.v_layout == "c"):
            return f"access = {self.access} is neither {ALIGNMENT} nor, for row-major v, 4"
        if self.parts * self.bm0 != self.rm0 * self.wm0:
            return f"bm0 = {self.bm0} is not rm0 x wm0 = {self.rm0 * self.wm0}: a wave has wm0 of the queries"
        for size, value, part, of in (
            ("bn0", self.bn0, "wn0", self.wn0),
            ("bn0", self.bn0, "wk0", self.mma_k),
            ("wk0", self.mma_k, self.accesses, self.shares * self.chunk),
            ("hdim_q", self.hdim_q, "what a call's may be", self.hdim_multiple),
            ("hdim_v", self.hdim_v, "what a call's may be", self.hdim_multiple),
        ):
            if value % of:
                return f"{size} = {value} is no multiple of {part} = {of}"
        chunks = self.bn0 // self.chunk
        if chunks.bit_count() != 1:
            return f"bn0 = {self.bn0} is {chunks} chunks, no power of 2, by which LDS permutes those of v"
        return ""

    def _too_large(self, target: CdnaTarget) -> str:
        """Features that the target lacks, or an empty text."""
        if self.threads > target.workgroup_threads:
            return (
                f"{self.rm0} waves, a workgroup of {target.name} has at most {target.workgroup_threads // 64}"
            )
        if self.lds_bytes > target.lds_bytes:
            return f"k and v take {self.lds_bytes} bytes of LDS, {target.name} has {target.lds_bytes}"
        if self.rm0 > self.occupancy * target.simds:
            return (
                f"a workgroup of {self.rm0} waves is more than occupancy = {self.occupancy} leaves room for "
                f"on {target.simds} SIMDs"
            )
        workgroups = target.workgroups(self.rm0, self.occupancy, self.lds_bytes)
        if workgroups * self.rm0 < self.occupancy * target.simds:
            return (
                f"LDS of {target.name} has room for {workgroups} workgroups of {self.rm0} waves; "
                f"occupancy = {self.occupancy} takes {self.occupancy * target.simds} waves"
            )
        room = target.registers // self.occupancy
        if self.registers > room:
            return (
                f"{self.pipeline_needs.held} take {self.registers} registers of a lane; with "
                f"occupancy = {self.occupancy} there are {room} on {target.name}"
            )
        return ""
