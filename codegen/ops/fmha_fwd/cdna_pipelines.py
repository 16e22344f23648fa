# SPDX-License-Identifier: MIT
"""The share of a compute unit that pipelines of fmha_fwd on CDNA need, and the tiles they are written for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codegen.ops.fmha_fwd.cdna_schedule import ring
from codegen.ops.fmha_fwd.traits import CACHE_TYPES

if TYPE_CHECKING:
    from codegen.ops.fmha_fwd.cdna import CdnaTile


LANES = 64  # of a wave
PAIRS_OF_CODES = 4 * 256  # bytes: the two numbers of each byte of codes of turbo4, of 16 bits


@dataclass(frozen=True)
class Needs:
    """LDS and registers of a tile."""

    lds_bytes: int
    registers: int  # of a lane through the main loop
    held: str  # what these hold
    complaint: str = ""  # why the pipeline is not written for the tile


def staged(tile: CdnaTile) -> Needs:
    """Pipeline qr: a tile of k and one of v; those of the next are in registers."""
    chunks = tile.dq // tile.chunk
    spare = 0 if chunks.bit_count() == 1 else (chunks + 1) % 2  # rows of k are odd or a power of 2
    moved = -(-tile.bn0 * chunks // tile.threads) * tile.threads  # there is room for all
    columns = (chunks + spare) * tile.chunk  # of a row of k
    k, v = -(-moved // chunks) * columns * tile.bits // 8, tile.bk1 * tile.dv * tile.bits // 8
    loads = -(-tile.bn0 * tile.dq // tile.chunk // tile.threads) + tile.loads_v
    registers = tile.operand_registers + tile.score_registers + 4 * loads
    return Needs(k + v + tile.scale_bytes, registers, "q, o, scores and the next tile")


def split(tile: CdnaTile) -> Needs:
    """Pipelines qr_split and qr_pages: as qr, for queries of all heads of a key head.

    Numbers of a quantised cache become 16 bits between registers and LDS.
    """
    needs = staged(tile)
    needs = replace(needs, lds_bytes=needs.lds_bytes + 4 * tile.scaled_rows)
    complaint = ""
    types = ("fp16", "bf16", "fp32", "fp8") if tile.paged and tile.kv == "auto" else ("fp16", "bf16")
    if tile.compute not in types or tile.v_layout != "r" or tile.access != 16:
        complaint = (
            f"pipeline '{tile.pipeline}' is for {' and '.join(types)}, row-major v and accesses of 16 bytes, "
            f"not {tile.compute}, {tile.v_layout}, {tile.access}"
        )
    elif tile.paged and tile.bn0 > LANES:
        complaint = f"bn0 = {tile.bn0}: of pipeline 'qr_pages' at most {LANES}, a key for each lane of a wave"
    elif tile.kv not in CACHE_TYPES:
        complaint = f"kv = '{tile.kv}' is none of {', '.join(CACHE_TYPES)}"
    elif tile.kv != "auto" and not tile.paged:
        complaint = f"kv = '{tile.kv}': pipeline 'qr_pages' alone reads quantised caches"
    elif tile.kv != "auto" and (
        tile.bn0 * tile.dq % (16 * tile.threads) or tile.bn0 * tile.dv % (32 * tile.threads)
    ):
        complaint = (
            f"kv = '{tile.kv}': {tile.threads} threads load 16 numbers of keys, and 8 of four values, each; "
            f"{tile.bn0} of {tile.dq} and {tile.dv} do not make whole ones"
        )
    return replace(needs, complaint=complaint)


def rows(tile: CdnaTile) -> Needs:
    """Pipelines qr_direct and qr_pieces: rows of a cache in registers; scales and numbers of codes in LDS."""
    bits = {"auto": tile.bits, "turbo4": 4}.get(tile.kv, 8)
    registers = tile.operand_registers + tile.score_registers + tile.bn0 * (tile.dq + tile.dv) * bits // 2048
    lds = 4 * tile.scaled_rows + (PAIRS_OF_CODES if tile.kv == "turbo4" else 0)
    complaint = ""
    if tile.compute not in ("fp16", "bf16") or tile.v_layout != "r" or tile.access != 16:
        complaint = (
            f"pipeline '{tile.pipeline}' is for fp16 and bf16, row-major v and accesses of 16 bytes, "
            f"not {tile.compute}, {tile.v_layout}, {tile.access}"
        )
    elif tile.kv not in CACHE_TYPES:
        complaint = f"kv = '{tile.kv}' is none of {', '.join(CACHE_TYPES)}"
    elif tile.pieces and bits != 8:
        complaint = f"kv = '{tile.kv}': in pipeline 'qr_pieces' a lane has 16 numbers of 8 bits of a piece"
    elif tile.parts == 2 and (tile.compute, tile.kv) != ("bf16", "fp8_e4m3"):
        complaint = f"bm0 = {tile.bm0}: two parts have the bits of bf16 for products with fp8_e4m3, no others"
    elif (tile.rm0, tile.wm0 * tile.bn0) != (1, 32 * 32):
        complaint = (
            f"rm0 = {tile.rm0}, bn0 = {tile.bn0}: in '{tile.pipeline}' one wave has tiles of 32 keys, or "
            "of 64 where products have 16 columns"
        )
    elif tile.hdim_q != tile.hdim_v or tile.hdim_q not in (64, 128, 256):
        complaint = (
            f"head dims {tile.hdim_q} and {tile.hdim_v}: lanes share out rows of 64, 128 or 256 evenly"
        )
    return Needs(lds, registers, "q, o, scores and a tile of k and v", complaint)


def direct(tile: CdnaTile) -> Needs:
    """Pipeline qr_async: two tiles of k and of v; scores of two tiles, and a share of v on its way."""
    complaint = ""
    if tile.bits != 16 or tile.v_layout != "r":
        complaint = (
            f"pipeline 'qr_async' is for fp16 and bf16 and row-major v, not {tile.compute}, {tile.v_layout}"
        )
    elif tile.rm0.bit_count() != 1:
        complaint = f"rm0 = {tile.rm0} is no power of 2, by which pipeline 'qr_async' shares out loads"
    lds = 2 * tile.bn0 * (tile.dq + tile.dv) * tile.bits // 8
    columns = max(2, 1 << (tile.bn0 * tile.dv // (4 * tile.threads) - 1).bit_length())
    registers = tile.operand_registers + 2 * tile.score_registers + min(2 * columns, 16)
    return Needs(lds, registers, "q, o, scores of two tiles and v on its way", complaint)


def bundled(tile: CdnaTile) -> Needs:
    """Pipeline qr_bundled: as qr_async, and operands that are read ahead."""
    needs = direct(tile)
    registers = needs.registers + 4 * tile.operand_chunks * ring(tile)
    complaint = ""
    if tile.compute not in ("fp16", "bf16", "fp8") or tile.v_layout != "r":
        complaint = (
            "pipeline 'qr_bundled' is for fp16, bf16 and fp8 and row-major v, not "
            f"{tile.compute}, {tile.v_layout}"
        )
    elif tile.rm0.bit_count() != 1:
        complaint = f"rm0 = {tile.rm0} is no power of 2, by which pipeline 'qr_bundled' shares out loads"
    return replace(needs, registers=registers, held=f"{needs.held}, operands", complaint=complaint)


def prefill(tile: CdnaTile) -> Needs:
    """Pipeline hk_prefill: as qr_async, but a whole tile of k or v is in registers, beside a packed p.

    Under a causal mask a tile of queries ends with the last four of its tiles of keys, which the pipeline's
    epilogue masks; the main loop masks every other one, and there is none else that a query does not see.
    """
    needs = direct(tile)
    complaint = ""
    if tile.compute != "bf16" or tile.v_layout != "r":
        complaint = f"pipeline 'hk_prefill' is for bf16 and row-major v, not {tile.compute}, {tile.v_layout}"
    elif tile.rm0 != 8:
        complaint = f"rm0 = {tile.rm0}: pipeline 'hk_prefill' has 8 waves"
    elif tile.bm0 not in (2 * tile.bn0, 4 * tile.bn0):
        complaint = (
            f"bm0 = {tile.bm0} is neither two nor four tiles of bn0 = {tile.bn0} keys: pipeline 'hk_prefill' "
            "takes two a round, and masks the last four"
        )
    elif tile.dq != tile.dv or tile.dq not in (64, 128):
        complaint = f"pipeline 'hk_prefill' is for head dims 64 and 128, not {tile.dq}, {tile.dv}"
    registers = tile.operand_registers + 2 * tile.score_registers + tile.bn0 * tile.dq // 128
    return replace(
        needs, registers=registers, held="q, o, scores of two tiles and a tile of k", complaint=complaint
    )


PIPELINES = {
    "qr": staged,
    "qr_async": direct,
    "qr_bundled": bundled,
    "qr_split": split,
    "qr_pages": split,
    "qr_direct": rows,
    "qr_pieces": rows,
    "hk_prefill": prefill,
}
