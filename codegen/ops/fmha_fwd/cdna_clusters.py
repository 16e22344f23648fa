# SPDX-License-Identifier: MIT
"""The clusters of products of pipeline hk_prefill: which vector work stands beside which product.

The scores of a tile have the tail of the softmax of the tile before beside them, and the values of a tile the
first part of the softmax of the next. The pieces are functions of
include/tessera/device/attention/cdna/bundles.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen import Refused
from codegen.schedule import VALU, Bundle, Law, Piece, Schedule, plan

if TYPE_CHECKING:
    from codegen.ops.fmha_fwd.cdna import CdnaTile
    from codegen.targets import CdnaTarget

ELEMENTS = 16  # of a lane, of a product's result
EARLY = 21  # exponentials that the first part of softmax has, of 32: both parts hold the port about as long


@dataclass(frozen=True)
class Clusters:
    """The bundles of each kind of cluster, with what they call."""

    tile: CdnaTile
    target: CdnaTarget

    @property
    def numbers(self) -> range:
        """The scores of a lane for a tile."""
        return range(self.tile.score_registers)

    @property
    def registers(self) -> int:
        """Operands of a tile of K or V, which are in registers at once."""
        return self.tile.bn0 // 32 * (self.tile.dq // self.tile.mma_k)

    @property
    def strip(self) -> int:
        """Products of a strip of V: 16 keys."""
        return self.tile.dv // 32

    @property
    def early(self) -> int:
        """Exponentials of the first part of softmax."""
        return EARLY * len(self.numbers) // 32

    @property
    def scores(self) -> list[list[str]]:
        """Scores of `next`, beside the tail of the softmax of `now`."""
        products = [f"score(x, next, {n})" for n in range(self.registers)]
        return _lines(self._plan(products, list(self._tail(len(products)))))

    @property
    def tail(self) -> list[str]:
        """The tail of the softmax of `now` by itself."""
        return [piece.call for piece in self._tail(1)]

    @property
    def first_strip(self) -> list[list[str]]:
        """Values of strip 0, beside the maximum of `next`."""
        products = [f"value(x, {n})" for n in range(self.strip)]
        return _lines(self._plan(products, list(self._maxima(len(products)))))

    @property
    def other_strips(self) -> list[list[str]]:
        """Values of the other strips, beside the first exponentials of `next`."""
        products = [f"value(x, {n})" for n in range(self.strip, self.registers)]
        begin = self.strip * self.target.product
        return _lines(self._plan(products, list(self._first_part(len(products)))), begin)

    @property
    def maxima(self) -> list[str]:
        """The maximum by itself."""
        return [piece.call for piece in self._maxima(1)]

    @property
    def first_part(self) -> list[str]:
        """The first exponentials by themselves."""
        return [piece.call for piece in self._first_part(1)]

    def _plan(self, products: Sequence[str], pieces: Sequence[Piece]) -> Schedule:
        """As evenly as they go; where they hold the port longer than the products last, each gets more."""
        cycles = self.target.product
        while True:
            try:
                return plan(Law(cycles, self.target.matrix_port, 1), products, pieces)
            except Refused:
                cycles += VALU

    @property
    def _exponential(self) -> int:
        """Cycles of the port for an exponential and its argument."""
        return self.target.transcendental + VALU

    def _maxima(self, products: int) -> Iterator[Piece]:
        for e in self.numbers[::2]:
            yield Piece(f"maximum(x, next, {e})", 0, _last(products), VALU)

    def _first_part(self, products: int) -> Iterator[Piece]:
        for e in self.numbers[: self.early]:
            yield Piece(f"exponential(x, next, {e})", 0, _last(products), self._exponential, 2)

    def _tail(self, products: int) -> Iterator[Piece]:
        """Exponentials come first where they can, then sums and packs in the order of scores."""
        made = {e: f"exponential(x, now, {e})" for e in self.numbers[self.early :]}
        for n, call in enumerate(made.values()):
            yield Piece(call, 0, (n + 1) * products // (len(made) + 2), self._exponential, 2)
        last = _last(products)
        for e in self.numbers:
            before = (made[e],) if e in made else ()
            yield Piece(f"add(x, now, {e})", 0, last, VALU, after=before)
            if e % 2:
                yield Piece(f"pack_word(x, now, {e - 1})", 0, last, VALU, after=before)


def _last(products: int) -> int:
    """The bundle up to which softmax stands: behind the last product waves meet, or part for rescaling."""
    return max(0, products - 2)


def _lines(schedule: Schedule, begin: int = 0) -> list[list[str]]:
    """Bundles as words of AT(): the cycle that each is planned for, and calls."""
    return [_words(begin + n * schedule.law.product, bundle) for n, bundle in enumerate(schedule.bundles)]


def _words(cycle: int, bundle: Bundle) -> list[str]:
    *words, last = [str(cycle), *bundle.calls]
    return [*(f"{word}," for word in words), f"{last});"]
