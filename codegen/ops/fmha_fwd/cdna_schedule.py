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

from codegen.schedule import VALU, Bundle, Law, Piece, Schedule, plan

if TYPE_CHECKING:
    from codegen.ops.fmha_fwd.cdna import CdnaTile
    from codegen.targets import CdnaTarget

ELEMENTS = 16  # of a lane, of a product's result
RINGS = {1: 8, 2: 4}  # operands that are read ahead, by waves of a SIMD: one alone waits for each


def ring(tile: CdnaTile) -> int:
    """Operands that are read ahead; of those of products that take longer, fewer."""
    return 2 if tile.operand_chunks > 1 else RINGS[min(tile.occupancy, max(RINGS))]


@dataclass(frozen=True)
class Step:
    """A step's products and pieces."""

    tile: CdnaTile
    target: CdnaTarget

    @property
    def law(self) -> Law:
        """The room beside a product."""
        product = self.target.product * self.tile.operand_chunks
        law = Law(product, self.target.matrix_port, self.tile.occupancy)
        port = sum(piece.port for piece in self._softmax())
        return law.shared_by(port, self.size)

    @property
    def early(self) -> int:
        """Exponentials of the next tile that stand beside the values of this one.

        Where one product takes all of P, half of them: what is left of the softmax would stand beside half of
        the products. Where the reference stays, those of an even share of the bundles behind the others.
        """
        numbers = self.tile.score_registers
        if self.tile.operand_chunks > 1:
            return numbers // 2
        return numbers * (self.size - 1 - self._made_by(numbers - 1)) // self.size if self.tile.stays else 0

    def _taken_by(self, e: int) -> int:
        """The last bundle before the products that take number e of P."""
        per_step = self.tile.score_registers // (self.tile.bn0 // self.tile.mma_k)  # numbers of an operand
        return self.half + e // per_step * (self.tile.dv // 32) * self.parts - 1

    def _made_by(self, e: int) -> int:
        """The last bundle for its exponential."""
        return self._taken_by(e) - (1 if self.tile.operand_chunks > 1 else 2)

    @property
    def check(self) -> int:
        """The bundle behind which early exponentials may stand: the greatest score is known."""
        return self.half + 1

    @property
    def ring(self) -> int:
        """Operands that are read ahead."""
        return ring(self.tile)

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
    def unit_cycles(self) -> float:
        """Cycles of a compute unit for a step of all of a workgroup's waves."""
        return self.size * self.law.bundle / self.law.waves * self.tile.rm0 / self.target.simds

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
        return (operand - self.ring + 1) * self.parts - 1

    @cached_property
    def schedule(self) -> Schedule:
        """The bundles."""
        pieces = [*self._softmax(), *self._reads(), *self._loads()]
        return plan(self.law, self.products, pieces, even=self.tile.stays)

    def _softmax(self) -> Iterator[Piece]:
        blocks = self.tile.bn0 // 32
        numbers = 32 // self.tile.bits  # of P in a word
        packing, packs = VALU, 1
        if self.tile.compute == "fp8":
            packing, packs = 4 * VALU, 2  # conversions of two numbers take twice the time
        elif not self.target.bf16_conversions:
            packing, packs = (5 * VALU if self.tile.compute == "fp16" else 3 * VALU), 3
        elif self.tile.compute == "fp16":
            packing = 2 * VALU  # conversions to fp16 take twice the time
        exponential = VALU + self.target.transcendental
        moves = self.early and not self.tile.stays
        added = self.half - 1 if moves else self.size - 1  # before the reference moves
        for e in range(0, blocks * ELEMENTS):
            made: tuple[str, ...] = ()
            if e < self.early:
                yield Piece(f"exponential(x, s_next, {e})", self.check + 1, self.size - 1, exponential, 2)
            else:
                made = (f"exponential(x, s, {e})",)
                yield Piece(*made, 0, self._made_by(e), exponential, 2)
            yield Piece(f"add(x, s, {e})", 0, added, VALU, after=made)
            if e % numbers == numbers - 1:
                first = e - numbers + 1
                of_word = tuple(f"exponential(x, s, {i})" for i in range(max(first, self.early), e + 1))
                yield Piece(f"pack_word(x, s, {first})", 0, self._taken_by(e), packing, packs, after=of_word)
        for e in range(0, 0 if self.tile.stays else blocks * ELEMENTS, 2):
            settled = self.half + (2 if e // ELEMENTS == blocks - 1 else 0)
            if self.early:
                settled = self.half + (1 if e // ELEMENTS == blocks - 1 else 0)
            known = self.check if self.early else self.size - 2
            yield Piece(f"maximum(x, s_next, {e})", settled, known, VALU)

    def _reads(self) -> Iterator[Piece]:
        count = self.score_operands + self.value_operands
        for n in range(self.ring, count + self.ring):
            of_v = self.score_operands <= n < count
            issues = self.tile.operand_chunks * (2 if of_v and self.target.transposing_reads else 1)
            first = self._read_at(n)
            last = min(first + 1, (self.meeting if n < count else self.size) - 1)
            yield Piece(self._read(n), first, last, 0, issues, "read")

    @property
    def loads_k(self) -> int:
        """Loads of a lane for a tile of K, and for one of V that goes straight to LDS."""
        return self._loads_of(self.tile.dq)

    @property
    def loads_v(self) -> int:
        """Likewise of V: through registers four keys at a time."""
        if self.target.transposing_reads:
            return self._loads_of(self.tile.dv)
        return 4

    def _loads_of(self, hdim: int) -> int:
        """Loads of a lane for a tile that goes straight to LDS."""
        tile = self.tile
        return tile.bn0 * hdim * tile.bits // (8 * self.target.lds_load_bytes * tile.threads)

    def _loads(self) -> Iterator[Piece]:
        """Loads, apart from one another, since LDS is busy for long with what each brings.

        They begin when waves have met. Behind the last one its tile is left.
        """
        before: tuple[str, ...] = ()
        end, last = self.meeting, self.size - min(self.ring, 4) * self.parts
        calls = [(f"load_k(x, now.k, {n})", "load", 0, 3) for n in range(self.loads_k)]
        if self.target.transposing_reads:
            calls += [(f"load_v(x, next.v, {n})", "load", 0, 3) for n in range(self.loads_v)]
        else:
            # A word of each of four keys: two columns, or four of bytes.
            port, issues = (8 * VALU, 12) if self.tile.bits == 8 else (4 * VALU, 6)
            words = range(self.tile.v_words)
            calls += [(f"store_word(x, next.v, {n})", "write", port, issues) for n in words]
            calls += [(f"fetch_v_row(x, {n})", "load", VALU, 2) for n in range(self.loads_v)]
        for n, (call, kind, port, issues) in enumerate(calls):
            first = min(2 * self.parts * n, (min(last, end) - 4) * n // (len(calls) - 1))
            by = end - (4 * self.parts if kind == "write" else 2)
            yield Piece(call, first, by, port, issues, kind, before)
            before = (call,)
        for call, issues in (("move_k(x)", 2), ("move_v(x)", 2), ("advance(x)", 6)):
            yield Piece(call, min(self.half + 1, last - 2), last, 0, issues, "aim", before)
            before = (call,)

    def calls(self, n: int) -> list[str]:
        """What bundle n calls."""
        bundle = self.schedule.bundles[n]
        calls = [piece.call for piece in self._in_order(bundle.pieces)]
        return [*self._wait(n), bundle.product, *self._meeting(n), *calls]

    def _in_order(self, pieces: list[Piece]) -> list[Piece]:
        """The pieces of a bundle in the order in which they are issued.

        Where products hold the port for longer, pieces leave little of it: accesses go first, then what holds
        the port longest, so that a wave is seldom in the midst of that when the next product could begin.
        """
        if self.target.matrix_port == VALU:
            return pieces
        return sorted(pieces, key=lambda piece: (piece.kind == "vector", -piece.port))

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
        """The wait for an operand, and for the next one where there is room for it, before their products."""
        operand, together = n // self.parts, min(self.ring // 2, 2)
        if n % self.parts or operand % together:
            return []
        round_ = 0 if operand >= self.ring else self.score_operands + self.value_operands
        other = operand + together - 1 + round_
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
