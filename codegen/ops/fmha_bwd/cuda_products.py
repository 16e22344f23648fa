# SPDX-License-Identifier: MIT
"""The five products of fmha_bwd on NVIDIA's sm_90a, as inline assembly with one operand a register.

Where operands lie: PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions";
CUTLASS, cute/arch/mma_sm90_gmma.hpp and cute/atom/mma_traits_sm90_gmma.hpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.ops.fmha_fwd.cuda_products import (
    INDENT,
    SLICE,
    UNIT,
    Chain,
    Products,
    Step,
    Wait,
    _listed,
    _operands,
    _registers,
    _slices,
)
from codegen.render import fill

if TYPE_CHECKING:
    from codegen.ops.fmha_bwd.cuda import CudaTile

K = 16  # elements that an instruction sums over


def _rows(step: int) -> int:
    """Where a step begins in an operand that is read across its rows, in units of addresses."""
    return step * K * SLICE // UNIT


def _of_shared(
    tile: CudaTile, name: str, about: str, columns: int, places: list[tuple[int, int]], *, across: str
) -> Chain:
    """A product of operands in shared memory: where each step begins in both, and which of them are read
    across their rows. The first step starts the sums.
    """
    count = columns // 2
    steps = []
    for step, (a, b) in enumerate(places):
        addresses = f"add.s64 x, %{count}, {a};\\n\\tadd.s64 y, %{count + 1}, {b};\\n\\t"
        steps.append(Step(addresses, f"x, y, {min(step, 1)}, 1, 1, {across}"))
    return Chain(
        name,
        f"{about} in steps of {K}.",
        "uint64_t a",
        count,
        tile.wgmma(columns),
        "x, y",
        tuple(steps),
        _operands("=f", "sums", count),
        '"l"(a), "l"(b)',
    )


def _along(tile: CudaTile, name: str, about: str, hdim: int) -> Chain:
    """A product of keys by queries: both factors are read along their rows."""
    places = [(_slices(step, 2 * K, tile.bn0), _slices(step, 2 * K, tile.bm0)) for step in range(hdim // K)]
    about = f"{about}: 64 keys, {tile.bm0} queries, {hdim} columns"
    return _of_shared(tile, name, about, tile.bm0, places, across="0, 0")


def _across(tile: CudaTile, name: str, about: str, hdim: int) -> Chain:
    """A sum over queries: the factor on the left is registers, that on the right is read across its rows."""
    count, words = hdim // 2, tile.bm0 // 4
    steps = []
    for step in range(tile.bm0 // K):
        a = _registers(count + 4 * step, 4)
        addresses = f"add.s64 y, %{count + words}, {_rows(step)};\\n\\t"
        steps.append(Step(addresses, f"{a}, y, 1, 1, 1, 1"))
    return Chain(
        name,
        f"{about}: 64 keys, {hdim} columns, {tile.bm0} queries in steps of {K}.",
        f"const uint32_t p[{words}]",
        count,
        tile.wgmma(hdim),
        "y",
        tuple(steps),
        _operands("+f", "sums", count),
        fill(f'{_operands("r", "p", words)}, "l"(b)'.split(), INDENT),
    )


def _queries(tile: CudaTile, name: str, columns: int) -> Chain:
    """dQ = dS K: both factors are read across their rows, which are keys."""
    places = [(_rows(step), _rows(step)) for step in range(tile.bn0 // K)]
    about = f"dQ = dS K: 64 queries, {columns} columns, {tile.bn0} keys"
    return _of_shared(tile, name, about, columns, places, across="1, 1")


def _queries_turned(tile: CudaTile) -> Chain:
    """dQ^T = K^T dS^T: keys are read across their rows, gradients of scores along theirs."""
    places = [(_rows(step), _slices(step, 2 * K, tile.bm0)) for step in range(tile.bn0 // K)]
    about = f"dQ^T = K^T dS^T: 64 columns, {tile.bm0} queries, {tile.bn0} keys"
    return _of_shared(tile, "start_dq", about, tile.bm0, places, across="1, 0")


def _wait(name: str, about: str, sums: int, pending: int) -> Wait:
    return Wait(name, about, sums, pending, _operands("+f", "sums", sums))


def _waits(tile: CudaTile, dq_chains: int) -> tuple[Wait, ...]:
    s, q, dk, dv = tile.bm0 // 2, tile.dq_sums, tile.dq // 2, tile.dv // 2
    tiles = _wait("await_tile", "Waits for scores or dP; the chain that was started last may go on.", s, 1)
    all_chains = _wait("finish_tile", "Waits for scores or dP, and all other chains.", s, 0)
    if tile.general:
        return (
            tiles,
            all_chains,
            _wait("finish_dv", "The same for dV.", dv, 0),
            _wait("await_dk", "Waits for dK; dQ, which was started last, may go on.", dk, dq_chains),
            _wait("finish_dq", "Waits for dQ, and all other chains.", q, 0),
        )
    of_dq = (
        _wait("await_dq", "Waits for dQ; the chain that was started last may go on.", q, 1),
        _wait("finish_dq", "Waits for dQ, and all other chains.", q, 0),
        _wait("finish_dk", "The same for dK.", dk, 0),
    )
    if tile.dq_turned:
        return (
            tiles,
            all_chains,
            _wait("await_dv", "Waits for dV; the chain that was started last may go on.", dv, 1),
            *of_dq,
        )
    return (tiles, *of_dq, _wait("finish_dv", "The same for dV.", dv, 0))


def products(tile: CudaTile) -> Products:
    """Those of a kernel of pipeline kr_ktr_vr_async."""
    if tile.dq_turned:
        of_dq = [_queries_turned(tile)]
    else:
        of_dq = [_queries(tile, "start_dq", tile.dq_columns - tile.dq_rest)]
    if tile.dq_rest:
        of_dq.append(_queries(tile, "start_dq_rest", tile.dq_rest))
    chains = (
        _along(tile, "start_scores", "S^T = K Q^T", tile.dq),
        _along(tile, "start_dp", "dP^T = V dO^T", tile.dv),
        _across(tile, "add_dv", "dV += P^T dO", tile.dv),
        _across(tile, "add_dk", "dK += dS^T Q", tile.dq),
        *of_dq,
    )
    lists = tuple((count, _listed(count)) for count in sorted({chain.sums for chain in chains}))
    return Products(lists, chains, _waits(tile, len(of_dq)))
