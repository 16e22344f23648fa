# SPDX-License-Identifier: MIT
"""Tiles of fmha_bwd's sub-kernels that take tensors row by row. Every trait is an argument at run time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codegen.ops import cpu_tile
from codegen.ops.fmha_bwd.traits import DTYPES
from codegen.ops.gpu_units import complaint_of_unit, workgroup_cycles
from codegen.targets import Target

THREADS = 256  # of a workgroup
ROW_LANES = 16  # of a row


@dataclass(frozen=True, kw_only=True)
class Tile(cpu_tile.CpuTile):
    """A row of instances/fmha_bwd_dot_do_o.toml or fmha_bwd_convert_dq.toml."""

    pipeline: str
    epilogue: str
    compute: str
    bm0: int  # rows of a task
    why: str
    serves: str = ""

    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e"}
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    multiple: ClassVar[int] = 1
    fp32: ClassVar[str]  # how the kind spells the type of sums

    def numerics(self, target: Target) -> str:
        """How numbers are rounded and functions approximated."""
        return "fp32 sums; results to nearest even"

    def ck_tile(self, target: Target) -> dict[str, int]:
        """The tile's fields."""
        return {"bm0": self.bm0}

    def complaint(self, target: Target) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute != self.fp32:
            return f"compute '{self.compute}' is not {self.fp32}"
        return "" if self.bm0 > 0 else "bm0 must be positive"


@dataclass(frozen=True, kw_only=True)
class RowsTile(Tile):
    """A row for a CPU."""

    efficiency: float  # measured share of the target's multiply-adds; memory is the limit

    fp32: ClassVar[str] = "f32"

    @property
    def block(self) -> str:
        """Block and threads in the short name."""
        return f"b{self.bm0}_w1"

    def cycles(self, target: Target) -> float:
        """Starting a task."""
        return 100.0

    def complaint(self, target: Target) -> str:
        """Why the tile does not fit the target, if it does not."""
        return super().complaint(target) or ("" if 0 < self.efficiency <= 1 else "0 < efficiency <= 1")


@dataclass(frozen=True, kw_only=True)
class GpuRowsTile(Tile):
    """A row for a GPU."""

    bytes: int = 0  # that a lane moves at once; 0: an element's

    name_tokens: ClassVar[dict[str, str]] = {**Tile.name_tokens, "bytes": "v"}
    threads: ClassVar[int] = THREADS
    fp32: ClassVar[str] = "fp32"

    @property
    def block(self) -> str:
        """Rows of a workgroup and its threads in the short name."""
        return f"b{self.bm0}_t{THREADS}"

    def cycles(self, target: Target) -> float:
        """What a workgroup costs beside its elements."""
        return workgroup_cycles(self.bytes)

    @property
    def multiple(self) -> int:  # type: ignore[override]
        """Of head dims, in bytes: rows are whole units."""
        return self.bytes or 1

    @property
    def alignment(self) -> int:
        """Of rows: that of a unit. 0: their element's."""
        return self.bytes

    def needs(self, target: Target) -> str:
        """What the machine and a call must bring."""
        if not self.bytes:
            return "any sizes, any strides, pointers aligned to their elements"
        return f"rows that are multiples of {self.bytes} bytes and begin at such"

    def complaint(self, target: Target) -> str:
        """Why the tile does not fit the target, if it does not."""
        if found := super().complaint(target):
            return found
        if self.bm0 * ROW_LANES != THREADS:
            return f"bm0 = {self.bm0}: {ROW_LANES} lanes have a row, and a workgroup {THREADS} threads"
        return complaint_of_unit(self.bytes)
