# SPDX-License-Identifier: MIT
"""What operations on rows of keys, values and queries for turbo4 caches share: memory is the limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from codegen.ops.cpu_tile import CpuTile
from codegen.space import Region, region_meet
from codegen.spec import Instance, Operation
from codegen.targets import CpuTarget

TYPES = ("fp32", "fp16", "bf16")
ROTATED = (64, 128, 256)  # head dims


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


class Turbo4Rows(Operation):
    """An operation on such rows."""

    entries: ClassVar[dict[str, str]] = {"run": "run"}
    tiles: ClassVar[dict[str, type[Any]]] = {"cpu": RowTile}
    head_axes = 2

    def served(self, tile: Any) -> Region:
        """All there is, or what the row names."""
        return region_meet(self.everything, self.space.where(tile.serves))

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Rows of one target would be equal."""
        return one.macs_per_cycle >= other.macs_per_cycle

    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]:
        """CK has no such operation, so no tile."""
        return ()
