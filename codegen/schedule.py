# SPDX-License-Identifier: MIT
"""The order of a main loop: products, with the pieces of other work that stand beside each.

A bundle is one product and its pieces. A product keeps the matrix pipe busy for so many cycles, for few of
which it holds the VALU port that vector instructions need too: what is left is the room for pieces. Where all
pieces take more than all products leave, products wait for the port, and bundles share it evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from codegen import Refused

VALU = 4  # cycles for which a vector instruction holds the port
QUARTERS = 4  # of a cycle: rates are multiples of one


@dataclass(frozen=True)
class Law:
    """What a SIMD takes in beside a product (docs/simulator.md, "What is modelled")."""

    product: int  # cycles that a product keeps the matrix pipe busy
    port: int  # of which it holds the VALU port
    waves: int  # of a SIMD, which share pipe and port: each has a product in so many times its cycles
    share: int = 0  # cycles of the port that pieces of a bundle take on average, at least
    most: int = 0  # instructions of a wave in a bundle, where a plan says it itself

    @property
    def issues(self) -> int:
        """Instructions of a wave that a bundle has room for, beside its product."""
        if self.most:
            return self.most
        of_32_cycles = 13 if self.waves > 1 else 8
        return of_32_cycles * self.bundle // (32 * self.waves)

    @property
    def room(self) -> int:
        """Cycles of the port for the pieces of a bundle: what its product leaves, or twice an even share."""
        left = self.product - self.port
        return left if self.share <= left else 2 * self.share

    @property
    def bundle(self) -> int:
        """Cycles of a bundle of one wave."""
        return max(self.product, self.port + self.share) * self.waves

    def shared_by(self, port: int, products: int) -> Law:
        """The law where pieces hold the port for so many cycles beside so many products."""
        return replace(self, share=-(-port // (VALU * products)) * VALU)


@dataclass(frozen=True)
class Piece:
    """Work beside products; bundles are counted from the loop's first."""

    call: str  # as the emitted loop has it
    first: int  # the bundles in which it may stand
    last: int
    port: int = 0  # cycles for which its instructions hold the VALU port
    issues: int = 1  # instructions
    kind: str = "vector"  # or reads and writes of LDS, and loads of memory: a bundle has one of each
    after: tuple[str, ...] = ()  # calls of pieces that stand before, in an earlier bundle


@dataclass
class Bundle:
    """A product and what stands beside it."""

    product: str
    pieces: list[Piece] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Cycles for which the pieces hold the VALU port."""
        return sum(piece.port for piece in self.pieces)

    @property
    def issues(self) -> int:
        """Instructions of the pieces."""
        return sum(piece.issues for piece in self.pieces)

    @property
    def calls(self) -> list[str]:
        """What the emitted bundle calls, the product first."""
        return [self.product, *(piece.call for piece in self.pieces)]


@dataclass(frozen=True)
class Schedule:
    """Bundles in their order."""

    law: Law
    bundles: tuple[Bundle, ...]
    rate: float  # cycles of the port that pieces of a bundle have on average, at most

    def place(self, call: str) -> int:
        """The bundle in which a piece stands."""
        return next(
            n for n, bundle in enumerate(self.bundles) if any(piece.call == call for piece in bundle.pieces)
        )

    def under_way(self, kinds: Iterable[str], last: str, until: int) -> int:
        """Operations of these kinds that are issued behind piece `last` and before bundle `until`.

        Where that bundle is not behind the piece, it is one of the loop's next round.
        """
        at = self.place(last)
        kinds = frozenset(kinds)
        behind = False
        count = 0
        size = len(self.bundles)
        for n in range(at, until if until > at else until + size):
            for piece in self.bundles[n % size].pieces:
                if behind and piece.kind in kinds:
                    count += piece.issues if piece.kind == "read" else 1
                behind = behind or piece.call == last
        return count


def plan(law: Law, products: Sequence[str], pieces: Sequence[Piece], *, even: bool = False) -> Schedule:
    """Spreads pieces over the bundles of products, as evenly as their bounds allow.

    Each bundle brings so many cycles of the port, the fewest with which all pieces find room. What one leaves
    the next has, too, up to the room beside a product; if `even`, that is as little as can be. With these a
    bundle has as few instructions at most as can be. Pieces that must come first are placed first.
    """
    return _plan(law, tuple(products), tuple(pieces), even)


@cache
def _plan(law: Law, products: tuple[str, ...], pieces: tuple[Piece, ...], even: bool) -> Schedule:
    """The same. Instances of different types have the same loops."""
    share = -(-sum(piece.port for piece in pieces) // (VALU * len(products))) * VALU
    least = min(share, law.room) if even else law.room
    fewest = -(-sum(piece.issues for piece in pieces) // len(products))
    slowest = -(-QUARTERS * sum(piece.port for piece in pieces) // len(products))
    in_turn = sorted(pieces, key=lambda piece: (piece.last, piece.first))
    for room in range(least, law.room + 1, VALU):
        for quarters in range(max(slowest, 1), QUARTERS * room + 1):
            for issues in range(fewest, law.issues + 1):
                bundles = _placed(room, quarters / QUARTERS, issues, products, in_turn)
                if bundles:
                    return Schedule(law, bundles, quarters / QUARTERS)
    raise Refused(
        f"{sum(piece.port for piece in pieces)} cycles of the VALU port find no room beside "
        f"{len(products)} products with {law.room} cycles each"
    )


def _placed(
    room: int, rate: float, issues: int, products: Sequence[str], waiting: list[Piece]
) -> tuple[Bundle, ...] | None:
    """The bundles, if pieces find room with `rate` cycles of the port and so many instructions for each.

    Those wait that must come first before others.
    """
    done: set[str] = set()
    bundles = []
    cycles = 0.0
    for n, product in enumerate(products):
        bundle = Bundle(product)
        kinds: set[str] = set()
        cycles = min(cycles + rate, room)
        left = issues
        later = []
        for piece in waiting:
            fits = piece.first <= n and piece.port <= cycles and piece.issues <= left
            if fits and (piece.kind == "vector" or piece.kind not in kinds) and done.issuperset(piece.after):
                bundle.pieces.append(piece)
                cycles -= piece.port
                left -= piece.issues
                kinds.add(piece.kind)
            else:
                later.append(piece)
        waiting = later
        done.update(piece.call for piece in bundle.pieces)
        bundles.append(bundle)
        if waiting and waiting[0].last <= n:
            return None
    return tuple(bundles)
