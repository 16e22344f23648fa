# SPDX-License-Identifier: MIT
"""Costs on CDNA: a row that would never be chosen is found; each row of this checkout is, for some size."""

from __future__ import annotations

import functools
import itertools
import math
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT
from test_cdna_rows import DEFAULT, ROW

from codegen.ops import operations
from codegen.ops.fmha_fwd import FmhaFwd
from codegen.ops.fmha_fwd.cdna_cost import BlockCost
from codegen.rows import read_instances
from codegen.spec import Instance
from codegen.targets import TARGETS, CdnaTarget

FWD = operations()["fwd"]
assert isinstance(FWD, FmhaFwd)
block_cost = functools.lru_cache(maxsize=None)(FWD.block_cost)


class Call(NamedTuple):
    """The members of a call that its cost depends on."""

    queries: int
    heads: int
    keys: int
    units: int
    window: int | None = None  # -1: a causal mask
    sequences: int = 1  # in one batch, each with so many heads


def time(instance: Instance, call: Call) -> float:
    """The formulas of runtime/ops/fmha_fwd_cost_cdna.c."""
    queries, heads, keys, units, window, sequences = call
    cost, tile = block_cost(instance), instance.tile
    tasks = -(-queries // tile.bm0) * heads * sequences
    most = -(-tasks // units)
    if window not in (None, -1):
        keys = min(keys, tile.bm0 + window)
    longest = cost.start + -(-keys // tile.bn0)
    if window != -1:
        return longest * cost.rounds(most)
    shortest = cost.start + -(-min(keys, max(keys - queries, 0) + tile.bm0) // tile.bn0)
    places, full = units * cost.workgroups, cost.round(cost.workgroups)
    even = shortest / longest
    work = even * cost.rounds(most) + (1 - even) * tasks / places * full
    wait = math.log(max(tasks * (1 - 1 / sequences) / places, 1))
    beside = cost.round(min(most, cost.workgroups))
    return max((longest + shortest) / 2 * work, longest * ((cost.round(1) + 3 * beside) / 4 + wait * full))


def test_rounds() -> None:
    """One workgroup waits for itself, more for the unit; what is left over is a round too."""
    cost = BlockCost(2, alone_cycles=5, busy_cycles=4)
    assert [cost.rounds(count) for count in range(6)] == [0, 5, 8, 13, 16, 21]


def test_shadowing_agrees_with_a_search_through_sizes(tmp_path: Path) -> None:
    """Nothing that some size takes is called useless; tiles of one size are told apart exactly."""
    shutil.copy(ROOT / "instances" / "receipts.toml", tmp_path)
    rows = [
        ROW.replace("gfx942", "gfx950")
        .replace("bm0 = 128", f"bm0 = {bm0}\nrm0 = {bm0 // 32}\ncompute = 'bf16'\noccupancy = 1")
        .replace("bn0 = 64", f"bn0 = {bn0}")
        .replace("0.5", f"{efficiency}")
        for bm0, bn0, efficiency in itertools.product((32, 64, 128), (32, 64), (0.3, 0.4))
    ]
    (tmp_path / "fmha_fwd.toml").write_text(DEFAULT + "".join(rows))
    instances = read_instances(FWD, tmp_path, ("gfx950",))
    assert len(instances) == len(rows)
    points = [
        Call(*sizes)
        for sizes in itertools.product(
            (1, 31, 32, 33, 64, 65, 128, 129, 300, 4096), (1, 5, 7), (1, 32, 33, 64, 65, 128, 1000, 4097),
            (1, 2, 3, 8), (None, -1, 0, 100), (1, 3),
        )
    ]  # fmt: skip
    found = set()
    for one, other in itertools.permutations(instances, 2):
        never_worse = all(time(one, point) <= time(other, point) for point in points)
        same = (one.tile.bm0, one.tile.bn0) == (other.tile.bm0, other.tile.bn0)
        if FWD.shadows(one, other):
            assert never_worse, (one.tile, other.tile)
        elif same:
            assert not never_worse, (one.tile, other.tile)
        found.add((FWD.shadows(one, other), same))
    assert {(True, True), (False, True), (True, False), (False, False)} <= found


@pytest.mark.parametrize(
    ("queries", "heads", "window", "bm0"),
    [
        (1024, 8, None, 128),  # alone on its unit a large tile takes a key for more queries in the same time
        (8192, 16 * 16, None, 128),
        (8192, 16 * 16, -1, 128),
        (1024, 56, None, 128),  # 448 tiles are two for some units, which hide less of each other than three
        (32, 1200, None, 32),  # all rows of larger tiles but 32 would be idle, and units are full
        (64, 1024, None, 64),
        (16384, 8, 64, 64),  # 128 keys are seen, not 192
    ],
)
def test_tiles_of_d128_on_mi300x(queries: int, heads: int, window: int | None, bm0: int) -> None:
    rows = [
        instance
        for instance in read_instances(FWD, ROOT / "instances", ("gfx942",))
        if instance.name.startswith("fmha_fwd_d128_bf16_") and instance.tile.pipeline == "qr"
    ]
    call = Call(queries, heads, max(queries, 1024), 304, window)
    times = {instance.tile.bm0: time(instance, call) for instance in rows}
    assert min(times, key=lambda size: times[size]) == bm0, times


@pytest.mark.parametrize("name", ["gfx90a", "gfx942", "gfx950"])
def test_every_row_is_the_best_for_some_size(name: str) -> None:
    page = TARGETS[name]
    assert isinstance(page, CdnaTarget)
    instances = read_instances(FWD, ROOT / "instances", (name,))
    lengths = (1, 32, 64, 96, 128, 256, 512, 1024, 2048, 4096, 16384)
    points = itertools.product(
        lengths, (1, 8, 16, 64, 256, 1000), lengths, (page.compute_units,), (None, -1, 64)
    )
    calls = [Call(*sizes) for sizes in points]
    serves = {i: (i.region, i.tile.alignment, i.tile.paged, i.tile.pieces, i.tile.kv) for i in instances}
    for what in set(serves.values()):
        rivals = [instance for instance in instances if serves[instance] == what]
        best = {min(rivals, key=lambda rival: time(rival, call)).name for call in calls}
        assert best == {rival.name for rival in rivals}
