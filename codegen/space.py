# SPDX-License-Identifier: MIT
"""Sets of trait combinations as lists of disjoint boxes, so that counting is products and sums.

An axis has ordered values; a set of its values is an int with bit v for value v. A box is one such set for
each axis of a space, and stands for their product. A region is a tuple of boxes no two of which meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import and_

from codegen import Refused, unknown

Box = tuple[int, ...]
Region = tuple[Box, ...]


def bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True)
class Axis:
    """A trait: its values, and the token that stands for each value in CK's names; "": they say nothing."""

    name: str
    values: tuple[str, ...]
    tokens: tuple[str, ...]
    short: tuple[str, ...] = ()  # tokens in short names, where they are others
    aliases: dict[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # further words, and the values they stand for
    views: dict[str, dict[str, tuple[str, ...]]] = field(
        default_factory=dict
    )  # further names of the axis: their words
    refused: dict[str, str] = field(default_factory=dict)  # words that exist elsewhere, and why not here
    limits: tuple[tuple[int, ...], ...] = ()  # the greatest sizes of each value, where it stands for sizes

    def parse(self, word: str, view: str | None = None) -> int:
        """The set of values that a word stands for: a value, its token, or an alias."""
        if view is not None:
            words = self.views[view]
            if word not in words:
                raise Refused(unknown(view, word, words))
            return self.mask(words[word])
        if word in self.values:
            return self.mask((word,))
        if word and word in self.tokens:
            return sum(1 << v for v, token in enumerate(self.tokens) if token == word)
        if word in self.aliases:
            return self.mask(self.aliases[word])
        if word in self.refused:
            raise Refused(f"{self.name} '{word}' is refused: {self.refused[word]}")
        raise Refused(unknown(self.name, word, self.values))

    def mask(self, values: Iterable[str]) -> int:
        """A set of values."""
        return sum(1 << self.values.index(value) for value in values)


@dataclass(frozen=True)
class Clause:
    """One condition of --where, such as dtype=fp16|bf16 or mask!=no."""

    text: str
    field: str
    negated: bool
    words: tuple[str, ...]


def parse_clauses(text: str) -> list[Clause]:
    """The clauses of a text, which blanks part."""
    clauses = []
    for clause in text.split():
        field_, equals, words = clause.partition("=")
        if not equals or not words or field_ in ("", "!"):
            raise Refused(f"clause '{clause}' is not of the form field=value|value or field!=value")
        clauses.append(
            Clause(clause, field_.removesuffix("!"), field_.endswith("!"), tuple(words.split("|")))
        )
    return clauses


class Space:
    """The ordered axes that boxes of one operation range over."""

    def __init__(self, axes: Iterable[Axis]) -> None:
        self.axes = tuple(axes)
        self.index = {axis.name: i for i, axis in enumerate(self.axes)}
        self.full: Box = tuple((1 << len(axis.values)) - 1 for axis in self.axes)
        self.views = {view: axis for axis in self.axes for view in axis.views}

    @property
    def fields(self) -> list[str]:
        """All names that a clause may use."""
        return [*self.index, *self.views]

    def clause(self, clause: Clause) -> Box:
        """The box of a clause."""
        view = clause.field if clause.field in self.views else None
        axis = self.views[view] if view else self.axes[self.index[clause.field]]
        mask = 0
        for word in clause.words:
            mask |= axis.parse(word, view)
        i = self.index[axis.name]
        return self.held(i, self.full[i] & ~mask if clause.negated else mask)

    def held(self, i: int, mask: int) -> Box:
        """The box that holds axis number i to a set of values and leaves the others free."""
        return (*self.full[:i], mask, *self.full[i + 1 :])

    def where(self, text: str) -> Region:
        """The combinations that clauses on axes leave."""
        region: Region = (self.full,)
        for clause in parse_clauses(text):
            if clause.field not in self.fields:
                raise Refused(unknown("field", clause.field, self.fields))
            region = region_meet(region, (self.clause(clause),))
        return region

    def box(self, **sets: Iterable[str]) -> Box:
        """The box whose named axes are held to the given values; the others are free."""
        masks = list(self.full)
        for name, values in sets.items():
            masks[self.index[name]] = self.axes[self.index[name]].mask(values)
        return tuple(masks)

    def values(self, box: Box, name: str) -> tuple[str, ...]:
        """The values that a box holds on one axis."""
        i = self.index[name]
        return tuple(self.axes[i].values[v] for v in bits(box[i]))

    def describe(self, box: Box) -> str:
        """A box in words: the axes that it does not leave free."""
        held = [axis.name for axis, mask, full in zip(self.axes, box, self.full) if mask != full]
        return " ".join(f"{name}={'|'.join(self.values(box, name))}" for name in held) or "everything"


def meet(a: Box, b: Box) -> Box | None:
    """What two boxes share."""
    both = tuple(map(and_, a, b))
    return both if all(both) else None


def minus(a: Box, b: Box) -> list[Box]:
    """Disjoint boxes that make up a without b."""
    both = meet(a, b)
    if both is None:
        return [a]
    rest = []
    for i, (mine, shared) in enumerate(zip(a, both)):
        if mine != shared:
            rest.append((*both[:i], mine & ~shared, *a[i + 1 :]))
    return rest


def region_meet(a: Region, b: Region) -> Region:
    """What two regions share."""
    return tuple(both for x in a for y in b if (both := meet(x, y)) is not None)


def region_minus(a: Region, b: Iterable[Box]) -> Region:
    """What is left of a region without some boxes."""
    rest = list(a)
    for box in b:
        rest = [part for mine in rest for part in minus(mine, box)]
    return tuple(rest)


def union(boxes: Iterable[Box]) -> Region:
    """A region that covers boxes which may overlap, of few boxes."""
    region: list[Box] = []
    for box in boxes:
        region.extend(region_minus((box,), region))
    return merged(region)


def merged(region: Iterable[Box]) -> Region:
    """The same region with boxes joined that differ on one axis alone."""
    boxes = sorted(region)
    joined = True
    while joined:
        joined = False
        for axis in range(len(boxes[0]) if boxes else 0):
            groups: dict[Box, int] = {}
            for box in boxes:
                rest = (*box[:axis], 0, *box[axis + 1 :])
                groups[rest] = groups.get(rest, 0) | box[axis]
            joined = joined or len(groups) < len(boxes)
            boxes = sorted((*rest[:axis], mask, *rest[axis + 1 :]) for rest, mask in groups.items())
    return tuple(boxes)


def size(box: Box) -> int:
    """How many combinations a box stands for."""
    product = 1
    for mask in box:
        product *= mask.bit_count()
    return product


def region_size(region: Region) -> int:
    """How many combinations a region stands for."""
    return sum(map(size, region))


def held_values(region: Region, axis: int) -> int:
    """The values of an axis that occur in a region."""
    values = 0
    for box in region:
        values |= box[axis]
    return values


def covers(a: Region, b: Region) -> bool:
    """Whether a region holds all of another."""
    return not region_minus(b, a)
