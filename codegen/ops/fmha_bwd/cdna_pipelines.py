# SPDX-License-Identifier: MIT
"""The share of a compute unit that pipelines of fmha_bwd on CDNA need, and the tiles they are written for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.ops.fmha_bwd.cdna_schedule import RING
from codegen.targets import CdnaTarget

if TYPE_CHECKING:
    from codegen.ops.fmha_bwd.cdna import CdnaTile

SIDE = 32  # of a matrix product: queries, keys, columns of a head dim
SCORES = 48  # registers of a lane for a block's scores, their gradients and a product
DROPPED = 1024  # bytes of LDS of a wave for bytes of dropout
TASK = 80  # and for its task, which the compiler holds against bwd_task.h


@dataclass(frozen=True)
class Needs:
    """LDS and registers of a tile."""

    lds_bytes: int
    registers: int  # of a lane through the main loop
    held: str  # what these hold
    is_resident: bool = False
    is_planned: bool = False

    def complaint(self, tile: CdnaTile, target: CdnaTarget) -> str:
        """Why the pipeline is not written for the tile, or not for the target."""
        if self.is_planned:
            return self._planned_complaint(tile, target)
        if not self.is_resident:
            return ""
        if not target.transposing_reads or tile.bits != 16:
            return (
                f"pipeline 'qr_qtr_dor' is for fp16 and bf16 where reads of LDS transpose, not for "
                f"{tile.compute} on {target.name}"
            )
        if tile.bm0 != SIDE or tile.passes != 1:
            return f"pipeline 'qr_qtr_dor' has {SIDE} queries and one pass, not {tile.bm0} and {tile.passes}"
        if any(hdim not in (64, 128) for hdim in (tile.dq, tile.dv)):
            return f"pipeline 'qr_qtr_dor' is for head dims 64 and 128, not {tile.dq}, {tile.dv}"
        return ""

    def _planned_complaint(self, tile: CdnaTile, target: CdnaTarget) -> str:
        if tile.bits != 16:
            return f"pipeline 'kr_ktr_vr_bundled' is for fp16 and bf16, not for {tile.compute}"
        if (tile.dq, tile.dv, tile.bm0, tile.bn0, tile.passes) != (128, 128, SIDE, 128, 1):
            return "pipeline 'kr_ktr_vr_bundled' is for head dims 128, 32 queries, 128 keys and one pass"
        return ""


def _row_chunks(tile: CdnaTile, columns: int) -> int:
    chunks = columns // tile.chunk
    return chunks if chunks.bit_count() == 1 else chunks + (chunks + 1) % 2


def streamed(tile: CdnaTile, _target: CdnaTarget) -> Needs:
    """Pipeline kr_ktr_vr: in LDS tiles of q and do by rows and transposed, and gradients of scores."""
    rows, scores = _row_chunks(tile, tile.dq) + _row_chunks(tile, tile.dv), _row_chunks(tile, tile.bn0)
    columns = (tile.dq + tile.dv if tile.passes == 1 else max(tile.dq, tile.dv)) // tile.chunk
    of_passes = columns + scores if tile.passes < 3 else max(columns, scores)
    lds = tile.bm0 * (rows + of_passes) * tile.alignment + 8 * tile.bm0 + (DROPPED + TASK) * tile.waves
    sums = (tile.dq + tile.dv if tile.passes == 1 else max(tile.dq, tile.dv)) // 2
    own = max(1, -(-(tile.dq // SIDE) // tile.waves))  # blocks of columns of dq
    operands = (tile.dq + tile.dv + own * tile.bn0) * tile.bits // 64
    items = sum(-(-tile.bm0 // 4 * hdim // tile.chunk // tile.threads) for hdim in (tile.dq, tile.dv))
    return Needs(lds, sums + operands + SCORES + 16 * items, "sums, operands and tiles")


def resident(tile: CdnaTile, _target: CdnaTarget) -> Needs:
    """Pipeline qr_qtr_dor: in LDS two tiles of k and v, gradients of scores; q and do are operands, twice."""
    tiles, scores = 2 * (tile.dq + tile.dv), SIDE
    lds = (tiles + scores) * tile.bn0 * tile.bits // 8 + 8 * tile.bm0 + (DROPPED + TASK) * tile.waves
    operands = 2 * (tile.dq + tile.dv) * tile.bits // 64
    return Needs(lds, tile.dq // 2 + operands + SCORES, "dq, operands and scores", is_resident=True)


def bundled(tile: CdnaTile, target: CdnaTarget) -> Needs:
    """Pipeline kr_ktr_vr_bundled: in LDS two tiles of q and do, or one by rows and by columns."""
    scores = 2 if target.transposing_reads else 1  # tiles of their gradients
    columns = 2 * (tile.dq + tile.dv) + scores * tile.bn0
    lds = tile.bm0 * columns * tile.bits // 8 + 2 * 2 * 4 * tile.threads + TASK * tile.waves
    sums = (tile.dq + tile.dv) // 2
    operands = (tile.dq + tile.dv + tile.bn0) * tile.bits // 64
    return Needs(lds, sums + operands + SCORES + 4 * RING, "sums, operands and scores", is_planned=True)


PIPELINES = {"kr_ktr_vr": streamed, "kr_ktr_vr_bundled": bundled, "qr_qtr_dor": resident}
