# SPDX-License-Identifier: MIT
"""Tiles of the operations on rows on NVIDIA's GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codegen.ops.rows.gpu import GpuTile

LOAD_BYTES = 16  # that a lane loads at once: the most there are


@dataclass(frozen=True)
class CudaTile(GpuTile):
    """A row of instances/rows.toml for CUDA."""

    lanes: ClassVar[int] = 32
    # They come from L1, and other workgroups hide that; their registers are room for one of these more.
    factors_first: ClassVar[bool] = False

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
