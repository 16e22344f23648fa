# SPDX-License-Identifier: MIT
"""The main loop of pipeline kr_ktr_vr_bundled: its pieces, and where they may stand.

A step has a tile of queries: scores, their gradients, dQ of the tile before, dV, dK. The pieces are functions
of include/tessera/device/attention/cdna/bwd_bundles.h, and of bwd_direct.h or bwd_staged.h there. Where tiles
go straight to LDS there are two of each, and waves meet once a step; else there is one, and they meet twice:
then the next tile's rows take the room of this one's, and later its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from codegen.schedule import VALU, Law, Piece, Schedule, plan

if TYPE_CHECKING:
    from codegen.ops.fmha_bwd.cdna import CdnaTile
    from codegen.targets import CdnaTarget

ELEMENTS = 16  # of a lane, of a product's result
RING = (
    5  # operands that are read ahead; the more, the earlier must gradients of scores be there for all waves
)
ISSUES = 10  # instructions of a bundle at most


@dataclass(frozen=True)
class Phase:
    """One of the five products, in operands of 16 bytes a lane."""

    product: str  # the function of a product
    read: str  # that of an operand
    tile: str  # which it reads
    first: int  # operand of a step
    count: int


@dataclass(frozen=True)
class Step:
    """A step's products and pieces."""

    tile: CdnaTile
    target: CdnaTarget

    @property
    def law(self) -> Law:
        """The room beside a product."""
        return Law(self.target.product, self.target.matrix_port, self.tile.occupancy, most=ISSUES)

    @property
    def ring(self) -> int:
        """Operands that are read ahead."""
        return RING

    @property
    def is_direct(self) -> bool:
        """Whether tiles go from memory straight to LDS, where reads transpose; else through registers."""
        return self.target.transposing_reads

    @property
    def ahead(self) -> int:
        """Tiles between that which begins and that which is loaded in its step."""
        return 2 if self.is_direct else 1

    @property
    def parts(self) -> int:
        """MFMA of a product of two operands of 16 bytes a lane."""
        return 1 if self.target.transposing_reads else 2

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The five products in their order."""
        of_head, of_block = self.tile.dq // (2 * self.tile.chunk), 32 // (2 * self.tile.chunk)
        columns, kept = self.tile.dq // 32, "" if self.is_direct else "_columns"
        found: list[Phase] = []
        for product, read, tile, count in (
            ("score", "row", "now.tiles.q", of_head),
            ("gradient", "row", "now.tiles.o", of_head),
            ("add_to_dq", "scores", "other.tiles.s", self.tile.bn0 // (2 * self.tile.chunk)),
            ("add_to_dv", "column", f"now.tiles.o{kept}", of_block * columns),
            ("add_to_dk", "column", f"now.tiles.q{kept}", of_block * columns),
        ):
            found.append(Phase(product, read, tile, sum(phase.count for phase in found), count))
        return tuple(found)

    @property
    def operands(self) -> int:
        """Of a step."""
        return sum(phase.count for phase in self.phases)

    @property
    def size(self) -> int:
        """Bundles of a step."""
        return self.operands * self.parts

    def begin(self, product: str) -> int:
        """The first bundle of a product."""
        return next(phase.first for phase in self.phases if phase.product == product) * self.parts

    @property
    def changes(self) -> int:
        """The bundle before which scores are changed that are not plain."""
        return self.begin("gradient") + 1

    @property
    def rows_meeting(self) -> int:
        """The bundle before which waves meet, too, where tiles go through registers, else 0.

        All have the rows of this tile and gradients of the one before, and its columns are there for all.
        """
        return 0 if self.is_direct else self.begin("add_to_dv") - (self.ring - 1) * self.parts - 2

    @property
    def meeting(self) -> int:
        """The bundle before which waves meet: all have what they read of the tiles of this step.

        Its gradients of scores are there for all, the next tile has arrived, and its first operands are read.
        """
        return self.size - self.ring * self.parts

    @cached_property
    def products(self) -> list[str]:
        """Calls of products in their order."""
        calls = []
        for phase in self.phases:
            for n in range(phase.count * self.parts):
                slot = (phase.first + n // self.parts) % self.ring
                calls.append(f"{phase.product}(x, x->ring[{slot}], {n})")
        return calls

    @cached_property
    def schedule(self) -> Schedule:
        """The bundles."""
        return plan(
            self.law, self.products, [*self._scores(), *self._reads(), *self._loads(), *self._of_dq()]
        )

    def _packing(self, gradients: bool) -> tuple[int, int]:
        """Cycles of the port and instructions that pack two numbers."""
        if not self.target.bf16_conversions:
            return 3 * VALU, 3
        if self.tile.compute == "fp16":
            return (2 * VALU, 1) if gradients else (4 * VALU, 3)
        return 2 * VALU, 1

    def _scores(self) -> Iterator[Piece]:
        blocks = self.tile.dq // 32
        gradients = self.begin("add_to_dq") + 1
        for e in range(ELEMENTS):
            yield Piece(f"begin_gradient(x, {e})", e * self.parts // 3, self.begin("gradient") - 2, VALU)
            p_taken = self.begin("add_to_dv") + e // 8 * blocks * self.parts - 1
            s_taken = self._put_by(e // (ELEMENTS // self.puts)) - 2
            yield Piece(f"exponent(x, {e})", self.changes, p_taken - 2, 2 * VALU, 2)
            made = f"power(x, {e})"
            yield Piece(
                made, self.changes, p_taken - 1, self.target.transcendental, after=(f"exponent(x, {e})",)
            )
            yield Piece(f"differentiate(x, {e})", gradients, s_taken, VALU, after=(made,))
            if e % 2 == 0:
                continue
            for name, of, last, packing in (
                ("pack_two_of_p", "power", p_taken, self._packing(False)),
                ("pack_two_of_ds", "differentiate", s_taken + 1, self._packing(True)),
            ):
                both = tuple(f"{of}(x, {i})" for i in (e - 1, e))
                yield Piece(f"{name}(x, {e - 1})", 1, last, *packing, after=both)
        # Where reads transpose four queries are put at once, else two, which lanes exchange.
        putting = (0, 1) if self.is_direct else (2 * VALU, 3)
        for n in range(self.puts):
            size = ELEMENTS // self.puts
            words = tuple(f"pack_two_of_ds(x, {e})" for e in range(size * n, size * (n + 1), 2))
            yield Piece(
                f"put_ds(x, now.tiles.s, {n})", self.rows_meeting, self._put_by(n), *putting, after=words
            )

    @property
    def puts(self) -> int:
        """Writes of a lane's gradients of scores to LDS."""
        return 4 if self.is_direct else 8

    def _put_by(self, n: int) -> int:
        """The last bundle of write number n: apart, and before their products and the meeting."""
        e = ELEMENTS // self.puts * n
        apart = 1 if self.is_direct else 2
        taken = self.begin("add_to_dk") + e // 8 * (self.tile.dq // 32) * self.parts
        return min(taken, self.meeting - apart * (self.puts - 1 - n) - 1)

    def _read(self, operand: int) -> str:
        """The call that reads an operand, counted from the step's first one; the next step follows."""
        if operand >= self.operands:
            return f"read_row(x, {operand % self.ring}, other.tiles.q, {operand - self.operands})"
        phase = next(phase for phase in reversed(self.phases) if phase.first <= operand)
        return f"read_{phase.read}(x, {operand % self.ring}, {phase.tile}, {operand - phase.first})"

    def _reads(self) -> Iterator[Piece]:
        for n in range(self.ring, self.operands + self.ring):
            turns = self.is_direct and self.phases[2].first <= n < self.operands
            first = (n - self.ring + 1) * self.parts - 1
            end = self.meeting if n < self.operands else self.size
            if n < self.phases[3].first and not self.is_direct:
                end = self.rows_meeting
            last = min(first + 1, end - 1)
            yield Piece(self._read(n), first, last, 0, 2 if turns else 1, "read")
        yield Piece("read_lse(x, now.lse)", 0, self.changes - 5, 0, 1, "number")
        yield Piece("read_d(x, other.d)", self.meeting, self.size - 4, 0, 1, "number")

    @property
    def loads(self) -> int:
        """Loads of a lane for a tile of Q, and for one of dO, where they go straight to LDS."""
        return self.tile.bm0 * self.tile.dq * 2 // (self.target.lds_load_bytes * self.tile.threads)

    def _loads(self) -> Iterator[Piece]:
        """The way of tiles and numbers to LDS. Loads are apart, since memory takes them in slowly."""
        yield from self._direct() if self.is_direct else self._staged()
        moved = ("move_q(&x->way)", "move_o(&x->way)") if self.is_direct else ("move_rows(&x->way)",)
        for call, issues in (*((call, 2) for call in moved), ("move_numbers(x)", 4)):
            loaded = tuple(self._calls("o")) if call.startswith("move_o") else ()
            yield Piece(call, 0, self.advance, 0, issues, "aim", loaded)
        all_moved = (*moved, "move_numbers(x)", "limit_dq(x)")
        yield Piece("advance(x)", self.changes, self.advance + 2 * self.parts, 0, 4, "aim", all_moved)
        arrived = self.meeting - (12 if self.is_direct else 10)
        yield Piece("put_lse(x, other.lse)", arrived, self.meeting - 5, 2 * VALU, 3, "write")
        yield Piece("put_d(x, other.d)", arrived, self.meeting - 6, VALU, 2, "write")

    @property
    def advance(self) -> int:
        """The bundle before whose end all pointers have moved."""
        return self.begin("add_to_dv") + 1 if self.is_direct else self.begin("add_to_dq") - 6

    def _calls(self, of: str) -> list[str]:
        tile = {"q": "now.tiles.q", "o": "other.tiles.o"}[of]
        return [f"load_{of}(&x->way, {tile}, {n})" for n in range(self.loads)]

    def _direct(self) -> Iterator[Piece]:
        """Q of the tile after the next goes to the room of this one when waves have met, dO a step later."""
        before: tuple[str, ...] = ()
        for n, call in enumerate(self._calls("o")):
            yield Piece(call, 2 + 4 * n, 5 + 4 * n, 0, 3, "memory", before)
            before = (call,)
        before = ("advance(x)",)
        for n, call in enumerate(["load_numbers(x)", *self._calls("q")]):
            first = self.meeting + (self.size - 1 - self.meeting) * n // self.loads
            yield Piece(call, first, first + 1 if n < self.loads else first, 0, 3, "memory", before)
            before = (call,)

    def _staged(self) -> Iterator[Piece]:
        """Columns of this tile go from registers to LDS, then rows of the next, which takes these."""
        columns = tuple(f"put_columns(&x->way, {word})" for word in range(4))
        for n, call in enumerate(columns):
            yield Piece(call, 5 * n + 1, 5 * n + 4, 4 * VALU, 6, "write")
        before: tuple[str, ...] = (*columns, "advance(x)")
        for n, call in enumerate([*(f"load_row(&x->way, {r})" for r in range(4)), "load_numbers(x)"]):
            yield Piece(call, 0, self.begin("add_to_dq") + 2 * n, 0, 3, "memory", before)
            before = (call,)
        for r in range(4):
            first = self.meeting - 16 + 3 * r
            yield Piece(f"put_row(&x->way, {r})", first, first + 2, 0, 1, "write")

    @property
    def late(self) -> int:
        """The first element of dQ that goes to memory in the next step."""
        return ELEMENTS // 2

    def _of_dq(self) -> Iterator[Piece]:
        """The way of dQ of the tile before to memory, apart: memory takes them in slowly."""
        made = self.begin("add_to_dv") + 1
        ends = {False: 15 if self.is_direct else 19, True: self.meeting - 1}
        firsts = {False: 0, True: made}
        before: tuple[str, ...] = ()
        for e in (*range(self.late, ELEMENTS), *range(self.late)):
            is_now, place = e < self.late, e % self.late
            first, last = firsts[is_now], ends[is_now]
            apart = (last - first) // self.late
            call = f"send(x, {e})"
            yield Piece(
                call, first + apart * place, last - apart * (self.late - 1 - place), VALU, 2, "memory", before
            )
            before = (call,)
            if e == ELEMENTS - 1:
                yield Piece("move_dq(x)", 0, self.advance - 1, 0, 2, "aim", before)
                yield Piece("limit_dq(x)", 0, self.advance - 1, 0, 8, "aim", before)
                before = ("move_dq(x)", "limit_dq(x)")

    @property
    def loads_under_way(self) -> int:
        """Accesses of memory that may be under way where waves meet: behind loads of the next tile."""
        before = [piece.call for bundle in self.schedule.bundles[: self.meeting] for piece in bundle.pieces]
        behind = before[before.index(self._calls("o")[-1]) :]
        return sum(call.startswith("send") for call in behind)

    @property
    def numbered(self) -> list[tuple[int, list[str]]]:
        """The bundles with their numbers: what each one's macro takes, and its end."""
        return [(n, self._words(n)) for n in range(self.size)]

    @property
    def first_reads(self) -> list[str]:
        """The reads of the operands of a head's first step that the step before would have read."""
        return [self._read(self.operands + n).replace("other", "even") for n in range(self.ring)]

    def _words(self, n: int) -> list[str]:
        product, *pieces = self.schedule.bundles[n].calls
        meeting = []
        if n == self.meeting and self.is_direct:
            meeting = [f"MEET_AFTER_LOADS({self.loads_under_way})"]
        elif not self.is_direct and n in (self.meeting, self.rows_meeting):
            meeting = ["MEET_AFTER_ACCESSES()"]
        *words, last = [str(n * self.law.bundle), product, *meeting, *pieces]
        return [*(f"{word}," for word in words), f"{last});"]
