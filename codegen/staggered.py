# SPDX-License-Identifier: MIT
"""What machine code of pipeline staggered of mla_prefill must be: six clusters a tile, seven barriers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.machine_code import MOST_UNDER_WAY, Counts, Instruction, clusters, loop_body
from codegen.ops.mla_prefill_cdna import CdnaTile

EXPONENTIAL = re.compile("v_exp_")
SCORES = CdnaTile.bn0 // 2  # of a lane, for 32 queries
CONVERSIONS = SCORES // 2  # one makes fp8 of two
# Of a tile: loads to LDS, of waves that bring keys and of those that bring values; exponentials, of the half
# that is ahead and of the one behind, and of what these rescale O by.
LOADS, EXPONENTIALS = 6 + 4, 2 * (SCORES + 1)


@dataclass(frozen=True)
class Kind:
    """What stands up to a barrier on the way of all waves; products and waits for loads are so many."""

    name: str
    products: int = 0
    reads: bool = False  # of LDS
    waits: int = 0
    vectors: int | None = None  # other vector instructions; None: any number


def kinds(reads_v_early: bool) -> tuple[Kind, ...]:
    """Those of a tile."""
    return (
        Kind("C_PV and C_QK", products=8 + 12, reads=True),
        Kind("C_V_PREFETCH", reads=not reads_v_early),
        Kind("C_SOFTMAX_MAX"),
        Kind("C_EXP of the half behind"),
        Kind("C_EXP of the half ahead"),
        Kind("C_FP8_PACK", vectors=CONVERSIONS, waits=1),
        Kind("the beginning of C_PV", vectors=0),
    )


def complaints(code: list[Instruction], reads_v_early: bool) -> Iterator[str]:
    """Where the main loop, whose round is as many tiles as v's ring has, is not made of these."""
    expected = kinds(reads_v_early) * CdnaTile.v_ring
    found = clusters(code)
    if len(found) != len(expected):
        yield f"has {len(found)} barriers in its main loop, not {len(expected)}"
        return
    for n, (cluster, kind) in enumerate(zip(found, expected)):
        for complaint in _complaints(cluster, kind):
            yield f"{complaint} in {kind.name} of tile {n // (len(expected) // CdnaTile.v_ring)}"
    body = loop_body(code)
    for there, each, what in (
        (sum(instruction.to_lds for instruction in body), LOADS, "loads to LDS"),
        (sum(bool(EXPONENTIAL.match(one.name)) for one in body), EXPONENTIALS, "exponentials"),
    ):
        if there != each * CdnaTile.v_ring:
            yield f"has {there} {what} in its main loop, not {each * CdnaTile.v_ring}"


def _complaints(cluster: list[Instruction], kind: Kind) -> Iterator[str]:
    counts = sum((instruction.counts for instruction in cluster), Counts())
    if counts.mfma != kind.products:
        yield f"has {counts.mfma} products, not {kind.products},"
    if kind.vectors not in (None, counts.valu):
        yield f"has {counts.valu} vector instructions, not {kind.vectors},"
    if bool(counts.lds) != kind.reads:
        yield f"has {counts.lds} reads of LDS, not {'some' if kind.reads else 'none'},"
    if counts.memory:
        yield "has accesses of memory on the way of all waves"
    if (waits := _waits_for_loads(cluster)) != kind.waits:
        yield f"waits for loads {waits} times, not {kind.waits},"
    if drains := _drains(cluster):
        yield f"waits {drains} times until no read of LDS is under way"


def _waits_for_loads(cluster: list[Instruction]) -> int:
    return sum(i.under_way is not None and i.under_way < MOST_UNDER_WAY for i in cluster)


def _drains(cluster: list[Instruction]) -> int:
    """Waits for all reads of LDS before a product that is not the last."""
    products = [n for n, instruction in enumerate(cluster) if instruction.counts.mfma]
    before = cluster[: products[-2] + 1] if len(products) > 1 else []
    return sum(instruction.reads_under_way == 0 for instruction in before)
