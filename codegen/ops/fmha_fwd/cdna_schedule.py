# SPDX-License-Identifier: MIT
"""The main loop of pipeline qr_bundled: its pieces, and where they may stand.

A step computes the scores of the next tile by the first half of its products, beside the softmax of this
one, and the values of this tile by the second half. The pieces are functions of
include/tessera/device/attention/cdna/bundles.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from codegen.schedule import PRODUCT, VALU, Bundle, Law, Piece, Schedule, plan

if TYPE_CHECKING:
    from codegen.ops.fmha_fwd.cdna import CdnaTile
    from codegen.targets import CdnaTarget

ELEMENTS = 16  # of a lane, of a product's result
RING = 4  # operands that are read ahead


@dataclass(frozen=True)
class Step:
    """A step's products and pieces."""

    tile: CdnaTile
    target: CdnaTarget

    @property
    def law(self) -> Law:
        """The room beside a product."""
        return Law(PRODUCT, self.target.matrix_port, self.tile.occupancy)

    @property
    def ring(self) -> int:
        """Operands that are read ahead."""
        return RING

    @property
    def numbered(self) -> list[tuple[int, Bundle]]:
        """The bundles with their numbers."""
        return list(enumerate(self.schedule.bundles))

    @property
    def parts(self) -> int:
        """MFMA of a product of two operands of 16 bytes a lane."""
        return 1 if self.target.transposing_reads else 2

    @property
    def score_operands(self) -> int:
        """Operands of K of a tile."""
        return self.tile.bn0 // 32 * (self.tile.dq // self.tile.mma_k)

    @property
    def value_operands(self) -> int:
        """Operands of V of a tile."""
        return self.tile.dv // 32 * (self.tile.bn0 // self.tile.mma_k)

    @property
    def half(self) -> int:
        """The bundle of the first value."""
        return self.score_operands * self.parts

    @property
    def size(self) -> int:
        """Bundles of a step."""
        return (self.score_operands + self.value_operands) * self.parts

    @property
    def products(self) -> list[str]:
        """Calls of products in their order."""
        scores = [f"score(x, s_next, {n})" for n in range(self.half)]
        return scores + [f"value(x, {n})" for n in range(self.size - self.half)]

    @property
    def meeting(self) -> int:
        """The bundle before which waves meet: all have what they read of the tiles of this step.

        The next K and V have arrived, and the first operands of the next step are read.
        """
        return self.size + self._read_at(0)

    def _read_at(self, operand: int) -> int:
        """The bundle of whose product on an operand has a place in the ring."""
        return (operand - RING + 1) * self.parts - 1

    @cached_property
    def schedule(self) -> Schedule:
        """The bundles."""
        return plan(self.law, self.products, [*self._softmax(), *self._reads(), *self._loads()])

    def _softmax(self) -> Iterator[Piece]:
        blocks = self.tile.bn0 // 32
        per_step = ELEMENTS // (self.tile.bn0 // self.tile.mma_k // blocks)  # numbers of P of an operand
        columns = self.tile.dv // 32
        packing, packs = VALU, 1
        if not self.target.bf16_conversions:
            packing, packs = (5 * VALU if self.tile.compute == "fp16" else 3 * VALU), 3
        elif self.tile.compute == "fp16":
            packing = 2 * VALU  # conversions to fp16 take twice the time
        for e in range(0, blocks * ELEMENTS):
            # The products that take the number.
            last = self.half + e // per_step * columns * self.parts - 1
            yield Piece(f"exponential(x, s, {e})", 0, last - 2, VALU + self.target.transcendental, 2)
            yield Piece(f"add(x, s, {e})", 1, self.size - 1, VALU, after=(f"exponential(x, s, {e})",))
            if e % 2 == 1:
                both = tuple(f"exponential(x, s, {i})" for i in (e - 1, e))
                yield Piece(f"pack_two(x, s, {e - 1})", 1, last, packing, packs, after=both)
        for e in range(0, blocks * ELEMENTS, 2):
            settled = self.half + (2 if e // ELEMENTS == blocks - 1 else 0)
            yield Piece(f"maximum(x, s_next, {e})", settled, self.size - 2, VALU)

    def _reads(self) -> Iterator[Piece]:
        count = self.score_operands + self.value_operands
        for n in range(RING, count + RING):
            of_v = self.score_operands <= n < count
            issues = 2 if of_v and self.target.transposing_reads else 1
            first = self._read_at(n)
            last = min(first + 1, (self.meeting if n < count else self.size) - 1)
            yield Piece(self._read(n), first, last, 0, issues, "read")

    @property
    def loads_k(self) -> int:
        """Loads of a lane for a tile of K, and for one of V that goes straight to LDS."""
        return self.tile.bn0 * self.tile.dq * 2 // (self.target.lds_load_bytes * self.tile.threads)

    @property
    def loads_v(self) -> int:
        """Likewise of V: through registers four keys at a time."""
        if self.target.transposing_reads:
            return self.tile.bn0 * self.tile.dv * 2 // (self.target.lds_load_bytes * self.tile.threads)
        return 4

    def _loads(self) -> Iterator[Piece]:
        """Loads, apart from one another, since LDS is busy for long with what each brings.

        They begin when waves have met. Behind the last one its tile is left.
        """
        before: tuple[str, ...] = ()
        spread, end = 2 * self.parts, self.meeting
        for n in range(self.loads_k):
            call = f"load_k(x, now.k, {n})"
            yield Piece(call, spread * n, end - 2, 0, 3, "load", before)
            before = (call,)
        begin = spread * self.loads_k
        if self.target.transposing_reads:
            for n in range(self.loads_v):
                call = f"load_v(x, next.v, {n})"
                yield Piece(call, begin + spread * n, end - 2, 0, 3, "load", before)
                before = (call,)
        else:
            for n in range(2):
                call = f"store_v_pair(x, next.v, {n})"
                yield Piece(call, begin + spread * n, end - 8, 4 * VALU, 6, "write", before)
                before = (call,)
            for n in range(self.loads_v):
                call = f"fetch_v_row(x, {n})"
                yield Piece(call, begin + 4 + spread * n, end - 1, VALU, 2, "load", before)
                before = (call,)
        last = self.size - 4 * self.parts
        for call, issues in (("move_k(x)", 2), ("move_v(x)", 2), ("advance(x)", 6)):
            yield Piece(call, self.half + 1, last, 0, issues, "aim", before)
            before = (call,)

    def calls(self, n: int) -> list[str]:
        """What bundle n calls."""
        product, *pieces = self.schedule.bundles[n].calls
        return [*self._wait(n), product, *self._meeting(n), *pieces]

    def words(self, n: int) -> list[str]:
        """What bundle n's macro takes, and its end: the cycle that it is planned for, and calls."""
        *words, last = [str(n * self.law.bundle), *self.calls(n)]
        return [*(f"{word}," for word in words), f"{last});"]

    def _read(self, operand: int) -> str:
        """The call that reads an operand, counted from the step's first one; K of the next step follows."""
        count = self.score_operands + self.value_operands
        if operand < self.score_operands:
            return f"read_k(x, next.k, {operand})"
        if operand < count:
            return f"read_v(x, now.v, {operand - self.score_operands})"
        return f"read_k(x, now.k, {operand - count})"

    def _wait(self, n: int) -> list[str]:
        """The wait for an operand and the next one, before the first of their products."""
        operand = n // self.parts
        if n % self.parts or operand % 2:
            return []
        other = operand + 1 + (0 if operand >= RING else self.score_operands + self.value_operands)
        under_way = self.schedule.under_way(("read", "write"), self._read(other), n)
        return [f"WAIT_FOR_OPERANDS({under_way})"]

    def _meeting(self, n: int) -> list[str]:
        """How waves meet in a bundle, if they do."""
        return [f"MEET_AFTER_ACCESSES({self.loads_under_way})"] if n == self.meeting else []

    # ---- waits, which follow from the order

    @property
    def loads_under_way(self) -> int:
        """Loads that may be under way where waves meet: those to registers, behind all that go to LDS."""
        last = f"load_k(x, now.k, {self.loads_k - 1})"
        if self.target.transposing_reads:
            last = f"load_v(x, next.v, {self.loads_v - 1})"
        return self.schedule.under_way(("load",), last, self.meeting)
