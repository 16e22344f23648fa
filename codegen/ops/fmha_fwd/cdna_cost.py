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

# Vector operations for one score: by --report there are 4 to 5, and its exp2 takes the time of four.
SCORE_OPERATIONS = 8
# Bytes a cycle that a unit gets of LDS (CDNA 3 white paper).
LDS_BYTES = 128
# Cycles of a block in which a wave waits: for exchange between lanes and the first reads of LDS behind a
# barrier, and at barriers for each wave of its workgroup. Estimated.
WAIT_CYCLES, BARRIER_CYCLES = 200, 100
UNKNOWN = 0.3  # what a row's efficiency is taken for that says none


@dataclass(frozen=True)
class BlockCost:
    """The figures of the C table."""

    workgroups: int  # that a compute unit has room for
    alone_cycles: float  # of a block where a workgroup has a unit for itself
    busy_cycles: float  # for which a block keeps the busiest part of a unit

    def round(self, count: int) -> float:
        """Cycles until so many workgroups of a unit have done a block each."""
        return max(self.alone_cycles, count * self.busy_cycles) if count else 0.0

    def rounds(self, count: int) -> float:
        """Cycles for any number of workgroups, of which a unit has only so many at once."""
        full, rest = divmod(count, self.workgroups)
        return full * self.round(self.workgroups) + self.round(rest)


def workgroups(tile: CdnaTile, target: CdnaTarget) -> int:
    """How many workgroups a compute unit has room for."""
    return target.workgroups(tile.rm0, tile.occupancy, tile.lds_bytes)


def softmax_cycles(tile: CdnaTile, target: CdnaTarget) -> float:
    """Cycles of a block whose work all SIMDs of a unit share."""
    return SCORE_OPERATIONS * tile.bm0 * tile.bn0 / target.lanes


def block_cost(tile: CdnaTile, target: CdnaTarget) -> BlockCost:
    """The costs of a tile's blocks."""
    products = tile.bm0 * tile.bn0 * (tile.dq + tile.dv)
    simds = products / (target.macs[tile.compute] * (tile.efficiency or UNKNOWN)) + softmax_cycles(
        tile, target
    )
    read = tile.bn0 * (tile.dq + tile.dv) * tile.bits / 8  # k and v: written once, read by each wave
    lds = (1 + tile.rm0) * read / LDS_BYTES
    waits = WAIT_CYCLES + BARRIER_CYCLES * tile.rm0
    own = simds * target.simds / min(tile.rm0, target.simds)  # a wave has but one SIMD
    return BlockCost(
        workgroups(tile, target),
        alone_cycles=max(own, lds) + waits / 2 if tile.pipeline_needs.ahead else own + lds + waits,
        busy_cycles=max(simds, lds, read / target.unit_bytes),
    )
