# SPDX-License-Identifier: MIT
"""What the simulator's clock says of instances: where it stands, and what it is made of."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import ROOT, refused
from test_cdna_rows import DEFAULT, ROW

from codegen import figures
from codegen.model import MODELLED, parameter
from codegen.ops import operations
from codegen.ops.fmha_fwd import cdna_figures as fwd_figures
from codegen.ops.fmha_fwd.cdna_cost import block_cost, peak_cycles
from codegen.rows import figures_path, read_figures, read_instances
from codegen.spec import Instance
from codegen.targets import TARGETS, CdnaTarget
from codegen.tasks import Task

FWD, BWD, MLA = (operations()[api] for api in ("fwd", "bwd", "mla_prefill"))
INSTANCES = ROOT / "instances"


def instance_of(folder: Path, text: str = DEFAULT + ROW.replace("efficiency = 0.5\n", "")) -> Instance:
    (folder / "fmha_fwd.toml").write_text(text)
    return read_instances(FWD, folder, ("gfx942",))[0]


@pytest.mark.parametrize("api", figures.modelled_apis(INSTANCES))
def test_every_instance_on_cdna_is_modelled_or_its_row_says_how_fast_it_is(api: str) -> None:
    op = operations()[api]
    said = read_figures(INSTANCES, op.family)
    for instance in figures.have_figures(op, INSTANCES):
        unsaid = type(instance.tile).efficiency
        assert instance.name in said or instance.tile.efficiency != unsaid, instance.name
    assert said.keys() <= {instance.name for instance in read_instances(op, INSTANCES, MODELLED)}
    assert all(TARGETS[name].kind == "cdna" for name in MODELLED)


def test_what_is_ranked_by_a_speed_on_cdna_is_modelled() -> None:
    """Other rows say nothing of theirs."""
    ranked = {operations()[api].family for api in figures.modelled_apis(INSTANCES)}
    assert ranked == {"fmha_bwd", "fmha_fwd", "mla_prefill"}
    families = {op.family: op for api in operations().values() for op in (api, *api.parts, *api.companions)}
    for family, op in families.items():
        for instance in read_instances(op, INSTANCES, MODELLED) if "cdna" in op.tiles else ():
            assert hasattr(instance.tile, "efficiency") == (family in ranked), instance.name


def test_what_is_modelled_makes_the_costs(tmp_path: Path) -> None:
    plain = instance_of(tmp_path)
    said = {"efficiency": 0.25, "alone": 0.125, "start": 3.0}
    figures_path(tmp_path, "fmha_fwd").write_text(figures.text_of({plain.name: said}, {"gfx942": "0123"}))
    assert read_figures(tmp_path, "fmha_fwd") == {plain.name: said}
    (instance,) = (one for one in read_instances(FWD, tmp_path, ("gfx942",)) if one.name == plain.name)
    assert isinstance(instance.target, CdnaTarget)
    peak = peak_cycles(instance.tile, instance.target)
    cost = block_cost(instance.tile, instance.target)
    assert (cost.busy_cycles, cost.alone_cycles, cost.start) == (4 * peak, 8 * peak, 3.0)
    assert instance.macs_per_cycle == 0.25 * instance.target.macs["fp16"]


def test_a_row_does_not_say_what_is_modelled(tmp_path: Path) -> None:
    shutil.copy(INSTANCES / "receipts.toml", tmp_path)
    name = instance_of(tmp_path, DEFAULT + ROW).name
    figures_path(tmp_path, "fmha_fwd").write_text(figures.text_of({name: {"efficiency": 0.3}}, {}))
    said = refused("--count", "--targets", "gfx942", "--instances", tmp_path)
    assert f"efficiency of {name} is modelled: take it out of the row" in said


def test_unmodelled_rows_are_taken_and_shadow_none(tmp_path: Path) -> None:
    """So that a row can be built, which it must be to be modelled."""
    plain = instance_of(tmp_path)
    assert plain.tile.efficiency == 0 and FWD.shadows(plain, plain) is False
    assert isinstance(plain.target, CdnaTarget) and block_cost(plain.tile, plain.target).busy_cycles > 0


def of_waves(count: int) -> str:
    """A row with more of them, and as many more queries."""
    return DEFAULT + ROW.replace("efficiency = 0.5\n", "").replace(
        "bm0 = 128", f"bm0 = {32 * count}\nrm0 = {count}"
    )


waves = pytest.mark.parametrize("waves", [4, 8])


@waves
def test_figures_from_cycles(waves: int, tmp_path: Path) -> None:
    """Of a kernel whose blocks take 3000 cycles alone, 5000 on a full unit and 3500 where waves are empty."""
    instance = instance_of(tmp_path, of_waves(waves))
    assert isinstance(instance.target, CdnaTarget)
    launch = parameter("launch_cycles", "gfx942")
    block = {fwd_figures.ALONE: 3000, fwd_figures.FULL: 5000, fwd_figures.HALF: 3500}
    cycles = {
        (load, keys): launch + (2 + keys / instance.tile.bn0) * block[load]
        for load, keys in fwd_figures.points_of(instance)
    }
    found = FWD.figures_of(instance, cycles)
    peak = peak_cycles(instance.tile, instance.target)
    workgroups = block_cost(instance.tile, instance.target).workgroups
    assert found["efficiency"] == round(workgroups * peak / 5000, 3)
    assert (found["alone"], found["start"]) == (round(peak / 3000, 3), 2.0)
    assert found.get("half") == (0.7 if waves == 8 else None)


@waves
def test_launches_fill_all_units_or_leave_workgroups_alone(waves: int, tmp_path: Path) -> None:
    instance = instance_of(tmp_path, of_waves(waves))
    tasks = figures.tasks_of(instance, b"code")
    units, workgroups = parameter("units", "gfx942"), block_cost(instance.tile, instance.target).workgroups  # type: ignore[arg-type]
    assert len(tasks) == (6 if waves == 8 else 4)
    for (load, keys), task in tasks.items():
        sizes = dict(word[1:].split("=") for word in task.command if "=" in word)
        queries, heads = int(sizes["s"]), int(sizes["b"]) * int(sizes["h"])
        assert int(sizes["s_k"]) == keys and sizes["sample"] == "1"
        if load == fwd_figures.HALF:
            assert (queries, heads) == (instance.tile.bm0 // 2, units * workgroups)
        else:
            full = units * workgroups if load == fwd_figures.FULL else fwd_figures.FEW
            assert heads * queries // instance.tile.bm0 == full
    assert len({task.key for task in tasks.values()}) == len(tasks)
    point = fwd_figures.points_of(instance)[0]
    assert figures.tasks_of(instance, b"other")[point].key != tasks[point].key


@pytest.mark.parametrize("target", MODELLED)
def test_launches_over_caches(target: str) -> None:
    """As many workgroups as units hold, or few, each with a tile of whole keys; by their own program."""
    found = 0
    for instance in read_instances(FWD, INSTANCES, (target,)):
        tasks = figures.tasks_of(instance, b"code")
        if tasks and next(iter(tasks.values())).command[0] != "tile_example_paged_attention":
            continue
        assert isinstance(instance.target, CdnaTarget)
        cost, cycles = block_cost(instance.tile, instance.target), {}
        for (load, keys), task in tasks.items():
            sizes = sizes_of(task)
            assert (sizes["kv_cache_dtype"], sizes["num_splits"]) == (instance.tile.kv, "1")
            assert int(sizes["ctx"]) == keys and sizes["h_k"] == "1"
            full = parameter("units", target) * cost.workgroups
            groups = full if load == fwd_figures.FULL else fwd_figures.FEW
            assert int(sizes["b"]) * int(sizes["h"]) == groups * instance.tile.bm0
            block = 5000 if load == fwd_figures.FULL else 3000
            cycles[load, keys] = parameter("launch_cycles", target) + (2 + keys / instance.tile.bn0) * block
        peak = peak_cycles(instance.tile, instance.target)
        assert FWD.figures_of(instance, cycles) == {
            "efficiency": round(cost.workgroups * peak / 5000, 3),
            "alone": round(peak / 3000, 3),
            "start": 2.0,
        }
        found += 1
    assert found > 0


def sizes_of(task: Task) -> dict[str, str]:
    """The arguments of a launch that have values, of which only samples are modelled."""
    sizes = dict(word[1:].split("=") for word in task.command if "=" in word)
    assert sizes["sample"] == "1"
    return sizes


@pytest.mark.parametrize("target", MODELLED)
def test_figures_of_the_backward_pass(target: str) -> None:
    """A quarter of the peak, whatever there is beside blocks: launches are of workgroups that units hold."""
    for instance in read_instances(BWD, INSTANCES, (target,)):
        assert isinstance(instance.target, CdnaTarget)
        tile, rate = instance.tile, instance.target.macs[instance.tile.compute]
        room = instance.target.workgroups(tile.waves, tile.occupancy, tile.lds_bytes(instance.target))
        cycles = {}
        for point, task in figures.tasks_of(instance, b"code").items():
            sizes = sizes_of(task)
            queries, keys, heads = int(sizes["s"]), int(sizes["s_k"]), int(sizes["h"])
            assert point[1] == (keys if tile.max_q else queries) and queries % tile.bm0 == 0
            if tile.max_q:
                assert heads == parameter("units", target) / 2
            else:
                assert 0.9 < heads * keys / tile.bn0 / (parameter("units", target) * room) <= 1
            products = (tile.max_q or room * tile.bn0) * point[1] * (3 * tile.dq + 2 * tile.dv)
            cycles[point] = 7000 + 4 * products / rate
        assert len(cycles) == 2
        assert BWD.figures_of(instance, cycles) == {"efficiency": 0.25}


def test_figures_of_mla_prefill() -> None:
    """Tiles of 8000 cycles, and of three tiles' time whatever there is beside them; an item for each unit."""
    for instance in read_instances(MLA, INSTANCES, ("gfx950",)):
        assert isinstance(instance.target, CdnaTarget)
        tile, cycles = instance.tile, {}
        for point, task in figures.tasks_of(instance, b"code").items():
            sizes = sizes_of(task)
            assert int(sizes["h"]) * int(sizes["s"]) == tile.bm0 * parameter("units", "gfx950")
            tiles = int(sizes["s_k"]) / tile.bn0
            cycles[point] = parameter("launch_cycles", "gfx950") + 8000 * (3 + tiles)
        peak = tile.bm0 * tile.bn0 * (tile.hdim_q + tile.hdim_v) / instance.target.macs[tile.compute]
        assert MLA.figures_of(instance, cycles) == {"efficiency": round(peak / 8000, 3), "start": 3.0}
