# SPDX-License-Identifier: MIT
"""What operations on rows of keys, values and queries for turbo4 caches share: memory is the limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from codegen.ops.cpu_tile import CpuTile
from codegen.ops.gpu_units import complaint_of_unit, workgroup_cycles
from codegen.schema import Range
from codegen.space import Box, Region, region_meet
from codegen.spec import Instance, Operation
from codegen.targets import CpuTarget, Target

TYPES = ("fp32", "fp16", "bf16")
ROTATED = (64, 128, 256)  # head dims
THREADS = 256  # of a workgroup
OWN = 8  # numbers of a row that a GPU's lane has


@dataclass(frozen=True)
class RowTile(CpuTile):
    """A row for a CPU, a thread of which takes a row of numbers after another."""

    pipeline: str
    epilogue: str
    compute: str
    efficiency: float  # measured share of the target's multiply-adds
    why: str
    serves: str = ""

    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e"}
    dtypes: ClassVar[tuple[str, ...]] = TYPES

    @property
    def block(self) -> str:
        """Threads in the short name."""
        return "w1"

    def ck_tile(self, target: CpuTarget) -> dict[str, int]:
        """The tile's fields in C."""
        return {"rows": 1}

    def cycles(self, target: CpuTarget) -> float:
        """What a row costs beside its elements."""
        return 50.0

    def numerics(self, target: CpuTarget) -> str:
        """How numbers are rounded."""
        return "in fp32; what is stored is rounded to nearest even"

    def complaint(self, target: CpuTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        return "" if self.compute == "f32" else f"compute '{self.compute}' is not f32"


@dataclass(frozen=True)
class GpuTile:
    """The same for a GPU, of whose waves some lanes that follow one another share a row."""

    pipeline: str
    epilogue: str
    compute: str
    hdim: int
    why: str
    bytes: int = 0  # that a lane loads at once; 0: a number's
    serves: str = ""

    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e", "bytes": "v"}
    dtypes: ClassVar[tuple[str, ...]] = TYPES
    threads: ClassVar[int] = THREADS

    @property
    def held(self) -> str:
        """The head dim is compiled in."""
        return f"hdim={self.hdim}"

    @property
    def lanes(self) -> int:
        """Of a row."""
        return self.hdim // OWN

    @property
    def rows(self) -> int:
        """Of a workgroup."""
        return THREADS // self.lanes

    @property
    def block(self) -> str:
        """Rows of a workgroup and its threads in the short name."""
        return f"b{self.rows}_t{THREADS}"

    @property
    def alignment(self) -> int:
        """Of rows: that of a load. 0: their number's."""
        return self.bytes

    def ck_tile(self, target: Target) -> dict[str, int]:
        """The tile's fields in C."""
        return {"rows": self.rows}

    def cycles(self, target: Target) -> float:
        """What a workgroup costs beside its bytes."""
        return workgroup_cycles(self.bytes)

    def needs(self, target: Target) -> str:
        """What a call must bring."""
        start = f"rows that begin at multiples of {self.bytes} bytes" if self.bytes else "any strides"
        return f"head dims of {self.hdim}, {start}"

    def numerics(self, target: Target) -> str:
        """How numbers are rounded."""
        return "in fp32, norms within 1 ulp; what is stored is rounded to nearest even"

    def complaint(self, target: Target) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute != "fp32":
            return f"compute '{self.compute}' is not fp32"
        if self.hdim not in ROTATED:
            return f"hdim = {self.hdim} is none of {', '.join(map(str, ROTATED))}"
        return complaint_of_unit(self.bytes)


class Turbo4Rows(Operation):
    """An operation on such rows."""

    entries: ClassVar[dict[str, str]] = {"run": "run"}
    tiles: ClassVar[dict[str, type[Any]]] = {"cpu": RowTile, "cdna": GpuTile, "cuda": GpuTile}
    head_axes = 2
    cpu_range: Range  # of head dims; calls check the rest

    def served(self, tile: Any) -> Region:
        """All there is, or what the row names."""
        return region_meet(self.everything, self.space.where(f"{tile.held} {tile.serves}"))

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Whether one takes all that the other takes, and costs no more for any of it."""
        a, b = one.tile, other.tile
        if one.target.kind != "cpu" and (a.hdim != b.hdim or a.bytes > b.bytes):
            return False
        return one.macs_per_cycle >= other.macs_per_cycle and one.tile_cycles <= other.tile_cycles

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """The head dim that a GPU's kernel is compiled for; a CPU's takes all that calls may have."""
        range_ = (tile.hdim, tile.hdim, 1) if isinstance(tile, GpuTile) else self.cpu_range
        yield box, (range_,) * len(self.sizes)

    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]:
        """CK has no such operation, so no tile."""
        return ()
