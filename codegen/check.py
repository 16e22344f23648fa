# SPDX-License-Identifier: MIT
"""What must hold of the instances of an operation before anything is listed or written."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator

from codegen import Refused
from codegen.render import instance_source
from codegen.space import Region, bits, covers, held_values
from codegen.spec import NAME_LIMIT, Instance, Operation


def check(op: Operation, instances: list[Instance]) -> None:
    """Refuses names that are too long or not unique, and instances that another makes useless."""
    check_names(instances)
    check_shadows(op, instances)


def check_names(instances: list[Instance]) -> None:
    """Names and symbols are unique, and short."""
    owner: dict[str, Instance] = {}
    for instance in instances:
        if len(instance.name) > NAME_LIMIT:
            raise Refused(
                f"name {instance.name} has {len(instance.name)} characters; the limit is {NAME_LIMIT}"
            )
        other = owner.setdefault(instance.symbol, instance)
        if other is not instance:
            raise Refused(
                f"two rows are named {instance.name}: names tell tiles and traits of one value apart"
                if other.name == instance.name
                else f"{other.name} and {instance.name} share the symbol {instance.symbol}"
            )


def check_renders(instances: list[Instance]) -> None:
    """Every template renders for every target that uses it, twice the same."""
    coded = (instance for instance in instances if instance.emitted)
    for instance in {(instance.template, instance.target.name): instance for instance in coded}.values():
        if instance_source(instance) != instance_source(instance):
            raise Refused(f"templates/{instance.template} renders differently each time for {instance.name}")


def check_shadows(op: Operation, instances: list[Instance]) -> None:
    """Refuses an instance when another serves all that it does at no greater cost for every size."""
    by_target: dict[str, dict[Region, list[Instance]]] = {}
    for instance in instances:
        by_target.setdefault(instance.target.name, {}).setdefault(instance.region, []).append(instance)
    for groups in by_target.values():
        for region, wider in _covering(list(groups)):
            rivals = [rival for other in wider for rival in groups[other]]
            for instance, rival in itertools.product(groups[region], rivals):
                if rival is not instance and op.shadows(rival, instance):
                    raise Refused(
                        f"{instance.name} would never be chosen: {rival.name} serves all that it does "
                        f"and costs no more for any size"
                    )


def _covering(regions: list[Region]) -> Iterator[tuple[Region, list[Region]]]:
    """Each region with those that cover it, itself among them.

    What covers a region holds each value that occurs in it, so an index from values to the regions that hold
    them leaves few to be compared.
    """
    values = [
        [(i, v) for i in range(len(region[0])) for v in bits(held_values(region, i))] for region in regions
    ]
    holders: dict[tuple[int, int], int] = {}  # axis and value -> set of numbers of regions
    for number, held in enumerate(values):
        for value in held:
            holders[value] = holders.get(value, 0) | 1 << number
    for region, held in zip(regions, values):
        candidates = functools.reduce(operator.and_, (holders[value] for value in held))
        yield region, [regions[number] for number in bits(candidates) if covers(regions[number], region)]
