# SPDX-License-Identifier: MIT
"""What tiles of the operations on rows are on any GPU.

The type of the inputs and the statistics are compiled in. All else is an argument: branches that a whole wave
takes or does not cost an instruction or two each, where memory is the limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

BITS = {"fp32": 32, "fp16": 16, "bf16": 16}  # of the types of inputs
CHUNK = 8  # columns that a lane has side by side, or loads one by one
PIPELINES = {"one_pass": 1, "multi_pass": 3}  # how often they read a row at most
# Estimated vector instructions of a wave: for a chunk, where columns are loaded together or one by one; and
# beside its chunks, most of which are exchange between lanes and waves.
CHUNK_CYCLES = {CHUNK: 100, 1: 200}
ROW_CYCLES = 200


@dataclass(frozen=True)
class GpuTile:
    """A row of instances/rows.toml for a GPU, by CK's names."""

    pipeline: str
    epilogue: str
    compute: str  # the type of the inputs
    tm: int  # rows of a workgroup
    tn: int  # threads of a row
    rn: int  # repetitions of a thread along a row, or a piece of it
    vn: int  # columns that a thread loads together
    why: str  # the reason that the row is there
    serves: str = ""  # clauses, as for --where; "": all there is

    held: ClassVar[str] = ""  # beside the type
    name_tokens: ClassVar[dict[str, str]] = {"epilogue": "e", "vn": "v"}
    lanes: ClassVar[int]  # of a wave
    keeps_differences: ClassVar[bool]  # from the mean, in the place of the row; else they are found twice

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The type of the inputs."""
        return (self.compute,)

    @property
    def bits(self) -> int:
        """Of an element of the inputs."""
        return BITS[self.compute]

    @property
    def piece(self) -> int:
        """Columns that are in registers at once."""
        return self.rn * self.tn * self.vn

    @property
    def chunks(self) -> int:
        """Of a lane."""
        return self.rn * self.vn // CHUNK

    @property
    def waves(self) -> int:
        """Of a row."""
        return self.tn // self.lanes

    @property
    def threads(self) -> int:
        """Of a workgroup."""
        return self.tm * self.tn

    @property
    def bounds(self) -> str:
        """Of threads, as the vocabulary says it."""
        return f"WORKGROUP({self.threads})"

    @property
    def columns(self) -> int:
        """At most."""
        return self.piece if self.pipeline == "one_pass" else 2**31 - 1

    @property
    def multiple(self) -> int:
        """Columns are a multiple of it: those that are in a row or not together."""
        raise NotImplementedError

    @property
    def alignment(self) -> int:
        """Bytes that every row begins at a multiple of; 0: its element's."""
        raise NotImplementedError

    @property
    def block(self) -> str:
        """Rows and columns of a workgroup, and its waves, in the short name."""
        return f"b{self.tm}x{self.piece}_w{self.threads // self.lanes}"

    def ck_tile(self, target: Any) -> dict[str, int]:
        """CK's fields."""
        return {"rm": 1, "rn": self.rn, "tm": self.tm, "tn": self.tn, "wn": self.lanes, "vn": self.vn}

    def cycles(self, target: Any) -> float:
        """What a piece of a row is estimated to take of a compute unit."""
        return self.piece_cycles

    @property
    def piece_cycles(self) -> float:
        """The same of all targets, since only ratios matter: an instruction of a wave counts 1."""
        return PIPELINES[self.pipeline] * self.waves * (ROW_CYCLES + self.chunks * CHUNK_CYCLES[self.vn])

    def row_cycles(self, columns: int) -> float:
        """Of a whole row."""
        return -(-columns // self.piece) * self.piece_cycles

    def outruns(self, other: GpuTile) -> bool:
        """Whether it takes no longer for any row that the other takes. Costs step at the ends of pieces."""
        ends = {tile.piece * count for tile in (self, other) for count in (1, 2, 1000)}
        return all(self.row_cycles(n) <= other.row_cycles(n) for n in ends if n <= other.columns)

    def cost_words(self, target: Any) -> str:
        """Memory's time, which is a row's where its instructions take less."""
        return (
            f"memory's rate of {target.bandwidth_gbs:g} GB/s, but {self.piece_cycles:.0f} cycles of a "
            f"compute unit for {self.piece} columns"
        )

    def needs(self, target: Any) -> str:
        """What the machine and a call must bring."""
        most = f"at most {self.columns}" if self.pipeline == "one_pass" else "any number of"
        waves = f"{self.threads // self.lanes} waves"
        if self.vn == 1:
            return f"{waves}, {most} columns, pointers aligned to their elements"
        return (
            f"{waves}, {most} columns that are a multiple of {self.multiple}, rows aligned to "
            f"{self.alignment} bytes"
        )

    def numerics(self, target: Any) -> str:
        """How numbers are rounded and functions approximated."""
        return (
            "fp32 throughout; the variance is that of differences from the mean; 1 / sqrt within 1 ulp; "
            "results to nearest even"
        )

    def complaint(self, target: Any) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute not in BITS:
            return f"compute '{self.compute}' is none of {', '.join(BITS)}"
        if self.pipeline not in PIPELINES:
            return f"pipeline '{self.pipeline}' is none of {', '.join(PIPELINES)}"
        if self.vn not in CHUNK_CYCLES:
            return f"vn = {self.vn} is none of {', '.join(map(str, CHUNK_CYCLES))}"
        if min(self.tm, self.tn, self.rn) < 1 or self.tn % self.lanes or self.rn * self.vn % CHUNK:
            return (
                f"tn = {self.tn} is no whole waves of {self.lanes}, or rn x vn = {self.rn * self.vn} no "
                f"whole chunks of {CHUNK}"
            )
        if self.tm > 1 and self.waves > 1:
            return f"tm = {self.tm}: where a row has {self.waves} waves, a workgroup has one row"
        if self.threads > target.workgroup_threads:
            most = target.workgroup_threads
            return f"{self.threads} threads, a workgroup of {target.name} has at most {most}"
        return ""
