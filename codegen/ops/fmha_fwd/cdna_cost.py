# SPDX-License-Identifier: MIT
"""The estimated cost of a block of keys on a CDNA GPU.

runtime/ops/fmha_fwd_cost_cdna.c makes the time of a call of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.targets import CdnaTarget

if TYPE_CHECKING:
    from codegen.ops.fmha_fwd.cdna import CdnaTile

# Of tiles that the clock has not modelled yet: a usual share of the peak; the part of a full unit's rate that
# a workgroup reaches alone, times how many fill it; and the blocks that its beginning and end take.
EFFICIENCY, ALONE, START = 0.35, 1.4, 2.5


@dataclass(frozen=True)
class BlockCost:
    """The figures of the C table."""

    workgroups: int  # that a compute unit has room for
    alone_cycles: float  # of a block where a workgroup has a unit for itself
    busy_cycles: float  # the share of a workgroup in a block's time where a unit is full
    start: float = 1.0  # blocks that the beginning and the end of a workgroup count for
    half: float = 1.0  # the share of a block's time where half of the waves have no queries

    def round(self, count: int) -> float:
        """Cycles until so many workgroups of a unit have done a block each."""
        if count == 0:
            return 0.0
        shared = count * self.busy_cycles
        if 1 < count < self.workgroups:
            return float((self.alone_cycles**4 + shared**4) ** 0.25)
        return max(self.alone_cycles, shared)

    def rounds(self, count: int) -> float:
        """Cycles for any number of workgroups, of which a unit has only so many at once."""
        full, rest = divmod(count, self.workgroups)
        return full * self.round(self.workgroups) + self.round(rest)


def workgroups(tile: CdnaTile, target: CdnaTarget) -> int:
    """How many workgroups a compute unit has room for."""
    return target.workgroups(tile.rm0, tile.occupancy, tile.lds_bytes)


def peak_cycles(tile: CdnaTile, target: CdnaTarget) -> float:
    """Cycles of a block at the target's peak."""
    return tile.bm0 * tile.bn0 * (tile.dq + tile.dv) / target.macs[tile.compute]


def block_cost(tile: CdnaTile, target: CdnaTarget) -> BlockCost:
    """The costs of a tile's blocks."""
    room = workgroups(tile, target)
    efficiency = tile.efficiency or EFFICIENCY
    alone = tile.alone or efficiency * min(1, ALONE / room)
    cycles = peak_cycles(tile, target)
    return BlockCost(room, cycles / alone, cycles / efficiency, tile.start or START, tile.half or 1.0)
