# SPDX-License-Identifier: MIT
"""Tiles of the operations on rows on NVIDIA's GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from codegen.ops.rows.gpu import GpuTile

LOAD_BYTES = 16  # that a lane loads at once: the most there are


@dataclass(frozen=True)
class CudaTile(GpuTile):
    """A row of instances/rows.toml for CUDA."""

    occupancy: int = 0  # workgroups of a compute unit that registers must be enough for; 0: as it comes

    lanes: ClassVar[int] = 32
    keeps_differences: ClassVar[bool] = True
    name_tokens: ClassVar[dict[str, str]] = {**GpuTile.name_tokens, "occupancy": "o"}

    @property
    def bounds(self) -> str:
        """Of threads and registers."""
        return f"WORKGROUPS({self.threads}, {self.occupancy})" if self.occupancy else super().bounds

    @property
    def multiple(self) -> int:
        """Loads of the inputs are in a row or not."""
        return LOAD_BYTES * 8 // self.bits if self.vn > 1 else 1

    @property
    def alignment(self) -> int:
        """A load's; 0: its element's.

        Accesses are aligned to their size: PTX ISA, "Addresses as Operands"; CUDA C++ Programming Guide,
        "Size and Alignment Requirement".
        """
        return LOAD_BYTES if self.vn > 1 else 0

    def complaint(self, target: Any) -> str:
        """Why the tile does not fit the target, if it does not."""
        if found := super().complaint(target):
            return found
        most = min(target.most_workgroups, target.warps * self.lanes // self.threads)
        if not 0 <= self.occupancy <= most:
            return f"occupancy = {self.occupancy}: a unit of {target.name} has at most {most} such workgroups"
        return ""
