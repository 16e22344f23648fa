# SPDX-License-Identifier: MIT
"""Boxes and regions do what sets of tuples do."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from codegen.space import (
    Box,
    Region,
    bits,
    covers,
    meet,
    merged,
    minus,
    region_meet,
    region_minus,
    region_size,
    union,
)

AXES = (3, 2, 4)
boxes = st.tuples(*(st.integers(1, (1 << values) - 1) for values in AXES))
regions = st.lists(boxes, max_size=4).map(union)


def members(region: Region) -> set[tuple[int, ...]]:
    listed = [point for box in region for point in itertools.product(*(list(bits(mask)) for mask in box))]
    assert len(listed) == len(set(listed)), "boxes of a region meet"
    return set(listed)


@given(boxes, boxes)
def test_meet_and_minus(a: Box, b: Box) -> None:
    both = meet(a, b)
    assert members((both,) if both else ()) == members((a,)) & members((b,))
    assert members(tuple(minus(a, b))) == members((a,)) - members((b,))


@given(st.lists(boxes, max_size=5))
def test_union(parts: list[Box]) -> None:
    assert members(union(parts)) == set().union(*(members((part,)) for part in parts))


@given(regions, regions)
def test_regions(a: Region, b: Region) -> None:
    assert members(region_meet(a, b)) == members(a) & members(b)
    assert members(region_minus(a, b)) == members(a) - members(b)
    assert covers(a, b) == (members(b) <= members(a))
    assert region_size(a) == len(members(a))


@given(regions)
def test_merging_changes_nothing(region: Region) -> None:
    again = merged(region)
    assert members(again) == members(region)
    assert len(again) <= len(region)
