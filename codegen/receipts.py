# SPDX-License-Identifier: MIT
"""Receipts: named selections, kept as data in instances/receipts.toml."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from codegen import Refused, unknown
from codegen.rows import read_toml
from codegen.space import Region, bits, held_values, parse_clauses, union
from codegen.spec import Instance, Operation

DEFAULT = "all"


@dataclass(frozen=True)
class Receipt:
    """A row of the file."""

    name: str
    about: str
    number: int | None = None
    cover: tuple[str, ...] = ()  # kinds of targets of which cover() selects, others being whole
    alternatives: dict[str, list[str]] = field(default_factory=dict)  # by api

    def __str__(self) -> str:
        return self.name if self.number is None else f"{self.number} ({self.name})"

    def of(self, op: Operation, ops: Iterable[Operation]) -> Receipt:
        """The receipt for one of several apis: it wants none of one that it does not name."""
        named = op.asked_as in self.alternatives
        if self.cover or named or not any(other.asked_as in self.alternatives for other in ops):
            return self
        return replace(self, alternatives={op.asked_as: []})

    def selects_none(self, op: Operation) -> bool:
        """Whether the receipt says that it wants nothing of an api."""
        return self.alternatives.get(op.asked_as) == []

    def region(self, op: Operation) -> Region:
        """The combinations that the receipt selects by."""
        if self.cover:
            return (op.space.full,)
        if op.asked_as not in self.alternatives:
            known = ", ".join(self.alternatives)
            raise Refused(f"receipt {self} says nothing of api '{op.asked_as}'; it knows: {known}")
        texts = self.alternatives[op.asked_as]
        if op.part_of:  # what it lacks is said of the operation that it is a part of
            texts = [" ".join(c.text for c in parse_clauses(t) if c.field in op.space.fields) for t in texts]
        return union(box for text in texts for box in op.space.where(text))


def read_receipts(folder: Path) -> list[Receipt]:
    """All receipts."""
    path = folder / "receipts.toml"
    receipts = []
    for row in read_toml(path).get("receipt", []):
        apis = {key: row[key] for key in row if key not in ("name", "about", "number", "cover")}
        kinds = tuple(row.get("cover", ()))
        receipts.append(Receipt(row["name"], row["about"], row.get("number"), kinds, apis))
    return receipts


def find_receipt(receipts: Iterable[Receipt], word: str) -> Receipt:
    """The receipt of a name or number."""
    receipts = list(receipts)
    for receipt in receipts:
        if word == receipt.name or word == str(receipt.number):
            return receipt
    raise Refused(unknown("receipt", word, receipts))


def cover(instances: list[Instance]) -> list[Instance]:
    """For each target the fewest instances in which all features occur.

    These are templates, compute types, sizes of elements in caches, and values of traits. Greedy: the
    instance that adds most, the first of equals, until nothing is added; then those go that the others have
    made needless.
    """
    first: dict[frozenset[Feature], Instance] = {}
    for instance in instances:
        first.setdefault(_features(instance), instance)
    missing = frozenset[Feature]().union(*first)
    chosen: list[frozenset[Feature]] = []
    while missing:
        chosen.append(max(first, key=lambda features: len(features & missing)))
        missing -= chosen[-1]
    for features in list(chosen):
        if features <= frozenset[Feature]().union(*(other for other in chosen if other is not features)):
            chosen.remove(features)
    return [instance for features, instance in first.items() if features in chosen]


Feature = tuple[str, str, str]  # target, what, which


def _features(instance: Instance) -> frozenset[Feature]:
    """The features that an instance has of its target."""
    target = instance.target.name
    features = {
        (target, "template", instance.template),
        (target, "epilogue", instance.tile.epilogue),
        (target, "compute", instance.tile.compute),
    }
    if getattr(instance.tile, "paged", 0):
        features.add((target, "bits in caches", str(instance.tile.bits)))
    for i, axis in enumerate(instance.op.space.axes):
        features |= {
            (target, axis.name, axis.values[value]) for value in bits(held_values(instance.region, i))
        }
    return frozenset(features)
