# SPDX-License-Identifier: MIT
"""The dispatch table of an operation: its schema, what its instances serve, and the index to them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from codegen.render import HEADERS, provenance, render
from codegen.schema import Product, Range, places
from codegen.space import Axis, Box, bits, union
from codegen.spec import Instance, Operation

Index = dict[tuple[str, int, int], list[int]]  # rows by target, value of the first trait, bucket


@lru_cache
def target_enumerators() -> list[str]:
    """The values of tessera_target. C++ cannot name elements of an array."""
    text = (HEADERS / "device.h").read_text(encoding="utf-8")
    body = re.search(r"enum tessera_target \{([^}]*)\bTESSERA_TARGET_COUNT\n", text)
    assert body
    return re.findall(r"(\w+) = \d+,", body[1])


def products(instance: Instance) -> list[Product]:
    """What an instance serves as the C table holds it: axes that are no trait there are dropped."""
    op = instance.op
    traits = {trait.axis for trait in op.traits}
    dropped = {i: op.space.full[i] for i, axis in enumerate(op.space.axes) if axis.name not in traits}
    by_range: dict[tuple[Range, ...], list[Box]] = {}
    for box in instance.region:
        for part, ranges in op.ranges(box, instance.tile):
            projected = tuple(dropped.get(i, mask) for i, mask in enumerate(part))
            by_range.setdefault(ranges, []).append(projected)
    return [
        Product(op.space.describe(box), tuple(trait.set(op.space, box) for trait in op.traits), ranges)
        for ranges, boxes in sorted(by_range.items())
        for box in union(boxes)
    ]


def buckets_of(product: Product, tops: tuple[int, ...]) -> list[int]:
    """The buckets that the greatest size of a call may fall into."""
    least = max((least for least, _, _ in product.ranges), default=0)
    most = max((most for _, most, _ in product.ranges), default=tops[0])
    floors = (-1, *tops[:-1])
    return [i for i, (floor, top) in enumerate(zip(floors, tops)) if floor < most and least <= top]


def index_of(op: Operation, instances: list[Instance], served: list[tuple[Product, ...]]) -> Index:
    """Rows that may serve (target, value of the first trait, bucket), the fastest main loop first."""
    index: Index = {}
    for number in sorted(range(len(instances)), key=lambda n: (-instances[n].macs_per_cycle, n)):
        slots = {
            (value, bucket)
            for product in served[number]
            for value in bits(product.sets[0])
            for bucket in buckets_of(product, op.buckets)
        }
        for value, bucket in sorted(slots):
            index.setdefault((instances[number].target.enum, value, bucket), []).append(number)
    return index


def stretches_of(op: Operation, index: Index) -> tuple[list[int], dict[str, list[list[tuple[int, int]]]]]:
    """Row numbers, and by target, value and bucket where in them the slice begins and how long it is."""
    first: dict[tuple[int, ...], int] = {}
    order: list[int] = []
    slices: dict[str, list[list[tuple[int, int]]]] = {target: [] for target in target_enumerators()}
    for (target, value, bucket), rows in index.items():
        if tuple(rows) not in first:
            first[tuple(rows)] = len(order)
            order.extend(rows)
        slices[target] = slices[target] or [[(0, 0)] * len(op.buckets) for _ in op.traits[0].words]
        slices[target][value][bucket] = (first[tuple(rows)], len(rows))
    return order, slices


def words_of(op: Operation) -> list[tuple[str, ...]]:
    """The lists of words and of tokens that the schema points at."""
    lists = [trait.words for trait in op.traits] + [axis_tokens(op, axis) for axis in op.space.axes]
    return list(dict.fromkeys(lists))


def axis_tokens(op: Operation, axis: Axis) -> tuple[str, ...]:
    """CK's tokens of an axis: where it is a trait, those of the trait's values in C."""
    return next((trait.tokens(op.space) for trait in op.traits if trait.axis == axis.name), axis.tokens)


def place_sets(op: Operation, product: Product) -> list[int]:
    """A product's sets as the words of C."""
    words = [0] * (1 + max(word for word, _ in places(op.traits)))
    for (word, bit), values in zip(places(op.traits), product.sets):
        words[word] |= values << bit
    return words


def dispatch_sources(op: Operation, instances: list[Instance]) -> dict[str, str]:
    """The table's .c and .h and the list of sources, by the names of the files."""
    served = [tuple(products(instance)) for instance in instances]
    distinct = {own: number for number, own in enumerate(dict.fromkeys(served))}  # each is emitted once
    order, slices = stretches_of(op, index_of(op, instances, served))
    facts: dict[str, Any] = {
        "op": op,
        "instances": instances,
        "words": words_of(op),
        "places": places(op.traits),
        "trait_of": {trait.axis: number for number, trait in enumerate(op.traits)},
        "tokens": {axis.name: axis_tokens(op, axis) for axis in op.space.axes},
        "sets": lambda product: place_sets(op, product),
        "served": list(distinct),
        "served_of": [distinct[own] for own in served],
        "order": order,
        "slices": slices,
        "combinations": sum(instance.combinations for instance in instances),
    }
    count = f"{len(instances)} instances of {op.name}, {facts['combinations']} names of CK."
    files = {}
    for file, template in op.dispatch_files.items():
        files[file] = render(template, provenance=provenance(template, count), **facts)
    return files
