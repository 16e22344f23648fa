# SPDX-License-Identifier: MIT
"""Tiles of the operations on rows on AMD's CDNA GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codegen.ops.rows.gpu import GpuTile


@dataclass(frozen=True)
class CdnaTile(GpuTile):
    """A row of instances/rows.toml for CDNA."""

    lanes: ClassVar[int] = 64
    keeps_differences: ClassVar[bool] = False

    @property
    def multiple(self) -> int:
        """Words of four bytes of every tensor are in a row or not."""
        return 4 if self.vn > 1 else 1

    @property
    def alignment(self) -> int:
        """A word's; 0: its element's.

        Loads of several words need the alignment of one: CDNA 3 ISA, 9.1.7 "Alignment"; LLVM,
        SITargetLowering::allowsMisalignedMemoryAccessesImpl.
        """
        return 4 if self.vn > 1 else 0
