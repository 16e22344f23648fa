# SPDX-License-Identifier: MIT
"""The products of warpgroups of fmha_fwd on NVIDIA's sm_90a, as inline assembly with one operand a register.

A chain is all the instructions of a product of tiles. Where operands lie: PTX ISA 8.0, "Asynchronous
Warpgroup Level Matrix Multiply-Accumulate Instructions"; CUTLASS, cute/arch/mma_sm90_gmma.hpp and
cute/atom/mma_traits_sm90_gmma.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.render import fill

if TYPE_CHECKING:
    from codegen.ops.fmha_fwd.cuda import CudaTile

SLICE = 128  # bytes of a row of an operand in shared memory that lie side by side
UNIT = 16  # bytes that addresses in descriptors count
INDENT = 15  # of an asm statement's operands


@dataclass(frozen=True)
class Step:
    """An instruction of a chain: the addresses it takes, and its operands after the sums."""

    addresses: str
    operands: str


@dataclass(frozen=True)
class Chain:
    """A function that starts a product."""

    name: str
    about: str
    parameter: str  # the factor on the left, in C
    sums: int  # registers of a thread
    instruction: str
    registers: str  # for addresses
    steps: tuple[Step, ...]
    outputs: str
    inputs: str


@dataclass(frozen=True)
class Wait:
    """A function that waits until no more than so many chains are pending."""

    name: str
    about: str
    sums: int
    pending: int
    outputs: str


@dataclass(frozen=True)
class Products:
    """What a kernel's file has of them."""

    lists: tuple[tuple[int, tuple[str, ...]], ...]
    chains: tuple[Chain, ...]
    waits: tuple[Wait, ...]


def _registers(first: int, count: int) -> str:
    return "{" + ", ".join(f"%{i}" for i in range(first, first + count)) + "}"


def _listed(count: int) -> tuple[str, ...]:
    """A list of registers in pieces for lines of C; all but the last end in a blank."""
    lines = fill(_registers(0, count).split(), 0, 100).split("\n")
    return (*(f"{line} " for line in lines[:-1]), lines[-1])


def _operands(constraint: str, name: str, count: int) -> str:
    words = [f'"{constraint}"({name}[{i}]),' for i in range(count)]
    return fill(words, INDENT).rstrip(",")


def _slices(step: int, bytes_of_step: int, rows: int, bytes_of_row: int = SLICE) -> int:
    """Where a step begins in an operand that is read along its rows, in units of addresses."""
    begin = step * bytes_of_step
    return (begin // bytes_of_row * rows * bytes_of_row + begin % bytes_of_row) // UNIT


def scores(tile: CudaTile) -> Chain:
    """S = Q K^T: both factors are read along their rows. The first step starts the sums."""
    count = tile.bn0 // 2
    bytes_of_step = tile.mma_k * tile.bits // 8
    steps = []
    for step in range(tile.dq // tile.mma_k):
        q, k = _slices(step, bytes_of_step, tile.bm0), _slices(step, bytes_of_step, tile.bn0)
        addresses = f"add.s64 x, %{count}, {q};\\n\\tadd.s64 y, %{count + 1}, {k};\\n\\t"
        # Scale of the sums before, signs of both factors, and for 16 bits: who is read across its rows.
        steps.append(Step(addresses, f"x, y, {min(step, 1)}, 1, 1{tile.major('K', 'K')}"))
    return Chain(
        "start_scores",
        f"S = Q K^T: 64 queries, {tile.bn0} keys, {tile.dq} columns in steps of {tile.mma_k}.",
        "uint64_t a",
        count,
        tile.wgmma(tile.bn0),
        "x, y",
        tuple(steps),
        _operands("=f", "sums", count),
        '"l"(a), "l"(b)',
    )


def values(tile: CudaTile) -> Chain:
    """O += P V: P is registers. V is read across rows of keys, or along rows of its columns."""
    count, words = tile.dv // 2, tile.bn0 * tile.bits // 64
    bytes_of_step = tile.mma_k * tile.bits // 8
    bytes_of_row = bytes_of_step if tile.transposes else SLICE
    steps = []
    for step in range(tile.bn0 // tile.mma_k):
        across = step * tile.mma_k * SLICE // UNIT
        v = _slices(step, bytes_of_step, tile.dv, bytes_of_row) if tile.along else across
        p = _registers(count + 4 * step, 4)
        addresses = f"add.s64 y, %{count + words}, {v};\\n\\t"
        steps.append(Step(addresses, f"{p}, y, 1, 1, 1{tile.major('', 'K' if tile.along else 'MN')}"))
    return Chain(
        "add_values",
        f"O += P V: 64 queries, {tile.dv} columns, {tile.bn0} keys in steps of {tile.mma_k}.",
        f"const uint32_t p[{words}]",
        count,
        tile.wgmma(tile.dv),
        "y",
        tuple(steps),
        _operands("+f", "sums", count),
        fill(f'{_operands("r", "p", words)}, "l"(b)'.split(), INDENT),
    )


def _wait(name: str, about: str, sums: int, pending: int) -> Wait:
    return Wait(name, about, sums, pending, _operands("+f", "sums", sums))


def products(tile: CudaTile) -> Products:
    """Those of a kernel of pipeline qr_async."""
    s, o = tile.bn0 // 2, tile.dv // 2
    return Products(
        tuple((count, _listed(count)) for count in sorted({s, o})),
        (scores(tile), values(tile)),
        (
            _wait("await_scores", "Waits for scores; the chain that was started after them may go on.", s, 1),
            _wait("finish_scores", "Waits for scores where nothing was started after them.", s, 0),
            _wait("await_values", "Waits for all chains.", o, 0),
        ),
    )
