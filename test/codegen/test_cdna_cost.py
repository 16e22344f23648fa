# SPDX-License-Identifier: MIT
"""Costs on CDNA: a row that would never be chosen is found; each row of this checkout is, for some size."""

from __future__ import annotations

import functools
import itertools
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT
from test_cdna_rows import DEFAULT, ROW

from codegen.ops import operations
from codegen.ops.fmha_fwd import FmhaFwd
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


def time(instance: Instance, call: Call) -> float:
    """The formulas of runtime/ops/fmha_fwd_cost_cdna.c."""
    queries, heads, keys, units, window = call
    cost = block_cost(instance)
    tile = instance.tile
    tasks = -(-queries // tile.bm0) * heads
    if window == -1:
        longest = 1 + -(-keys // tile.bn0)
        average = 1.5 + (keys - min(queries, keys) / 2) / tile.bn0
        rounds = tasks / (units * cost.workgroups) * cost.round(cost.workgroups)
        return max(longest * cost.alone_cycles, average * rounds)
    if window is not None:
        keys = min(keys, tile.bm0 + window)
    return (1 + -(-keys // tile.bn0)) * cost.rounds(-(-tasks // units))


def test_rounds() -> None:
    """One workgroup waits for itself, more for the unit; what is left over is a round too."""
    (instance,) = (
        i
        for i in read_instances(FWD, ROOT / "instances", ("gfx942",))
        if i.name == "fmha_fwd_d128_bf16__gfx942_b128x64x128_w4_qr"
    )
    cost = FWD.block_cost(instance)
    assert cost.workgroups == 2
    products, softmax = 128 * 64 * 256 / (1024 * instance.tile.efficiency), 8 * 128 * 64 / 64
    assert cost.busy_cycles == products + softmax
    assert cost.alone_cycles == products + softmax + 5 * 32768 / 128 + 600
    one, two = cost.alone_cycles, 2 * cost.busy_cycles
    assert [cost.rounds(count) for count in range(6)] == [0, one, two, two + one, 2 * two, 2 * two + one]


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
            (1, 2, 3, 8), (None, -1, 0, 100),
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
        (1024, 8, None, 32),  # 64 tiles of 128 would leave 240 units idle
        (8192, 16 * 16, None, 128),
        (8192, 16 * 16, -1, 128),
        (1024, 56, None, 64),  # 448 tiles of 128 are two rounds of units, 896 of 64 fill them three at a time
        (1, 8, None, 32),
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
    serves = {instance: (instance.region, instance.tile.alignment) for instance in instances}
    for what in set(serves.values()):
        rivals = [instance for instance in instances if serves[instance] == what]
        best = {min(rivals, key=lambda rival: time(rival, call)).name for call in calls}
        assert best == {rival.name for rival in rivals}
