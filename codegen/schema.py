# SPDX-License-Identifier: MIT
"""The schema of an operation's traits in the C table: members of its struct, and where their sets lie."""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.space import Box, Space

# Bits of a word of sets, and how many words and ranges tessera_served has room for.
WORD_BITS, SET_WORDS, RANGES = 64, 2, 6

Range = tuple[int, int, int]  # least, most, multiple


@dataclass(frozen=True)
class Trait:
    """A member of the traits struct that has few values: their sets are those of an axis."""

    name: str
    axis: str
    words: tuple[str, ...]  # of its values in C, in their order
    # The words that a value of the axis stands for, where that is not the same word.
    stands_for: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def value_words(self, value: str) -> tuple[str, ...]:
        """The words that a value of the axis stands for."""
        return self.stands_for.get(value, (value,))

    def set(self, space: Space, box: Box) -> int:
        """The values of the trait in a box, as a set of C's values."""
        words = {word for value in space.values(box, self.axis) for word in self.value_words(value)}
        return sum(1 << i for i, word in enumerate(self.words) if word in words)

    def tokens(self, space: Space) -> tuple[str, ...]:
        """CK's token of each of C's values: the last of several, an empty one where there is none."""
        axis = space.axes[space.index[self.axis]]
        tokens = {
            word: token for value, token in zip(axis.values, axis.tokens) for word in self.value_words(value)
        }
        return tuple(tokens.get(word, "") for word in self.words)


def flag(name: str, axis: str, no: str = "no", yes: str = "yes") -> Trait:
    """A member that is 0 or 1."""
    return Trait(name, axis, ("0", "1"), {no: ("0",), yes: ("1",)})


@dataclass(frozen=True)
class Size:
    """A member of the traits struct that any number may be: instances serve ranges of it."""

    name: str
    fills: bool = False  # data of a smaller size may be filled up with zeros to a greater one


def places(traits: tuple[Trait, ...]) -> list[tuple[int, int]]:
    """The word and the first bit of each trait's set; none lies in two words."""
    found = []
    word = bit = 0
    for trait in traits:
        assert len(trait.words) < WORD_BITS
        if bit + len(trait.words) > WORD_BITS:
            word, bit = word + 1, 0
        found.append((word, bit))
        bit += len(trait.words)
    assert word < SET_WORDS, "tessera_served has no room for so many values"
    return found


@dataclass(frozen=True)
class Product:
    """A product of sets of traits and ranges of sizes: a tessera_served of the C table."""

    about: str
    sets: tuple[int, ...]  # of each trait
    ranges: tuple[Range, ...]  # of each size
