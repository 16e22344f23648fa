# SPDX-License-Identifier: MIT
"""What must hold of the instances of an operation before anything is listed or written."""

from __future__ import annotations

from codegen import Refused
from codegen.space import Region, covers
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


def check_shadows(op: Operation, instances: list[Instance]) -> None:
    """Refuses an instance when another serves all that it does at no greater cost for every size."""
    groups: dict[tuple[str, Region], list[Instance]] = {}
    for instance in instances:
        groups.setdefault((instance.target.name, instance.region), []).append(instance)
    for (target, region), group in groups.items():
        rivals = list(group)
        for (other_target, other_region), others in groups.items():
            if other_target == target and other_region != region and covers(other_region, region):
                rivals += others
        for instance in group:
            for rival in rivals:
                if rival is not instance and op.shadows(rival, instance):
                    raise Refused(
                        f"{instance.name} would never be chosen: {rival.name} serves all that it does "
                        f"and costs no more for any size"
                    )
