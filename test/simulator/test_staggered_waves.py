# SPDX-License-Identifier: MIT
"""Pipeline staggered of mla_prefill, whose halves of waves are some barriers apart, in all its forms."""

from __future__ import annotations

import dataclasses
import functools
import struct
from pathlib import Path

import pytest
from emitted import build
from kernel_code import find_code
from mla_kernel import MlaKernel
from sampling import sample
from sim import LANDINGS, ORDERS, Sim, SimError

from codegen.machine_code import instructions
from codegen.ops import operations
from codegen.ops.mla_prefill_cdna import CdnaTile
from codegen.resources import read_resources
from codegen.rows import read_instances
from codegen.spec import ROOT, Instance

USUAL: list[dict[str, int]] = [{}, {"persistent": 1}]
OTHERS = [{"v_qktail": 0}, {"persistent": 1, "exact_stagger": 0}, {"persistent": 1, "v_qktail": 1}]
FORMS = [*USUAL, *sample(OTHERS, 1)]
ITEMS, WORKGROUPS = 6, 2
# Orders of waves, and when their loads land: two of them each day for the usual forms, one for others.
HOW = [("forward", "late"), ("random", "random"), ("backward", "late"), ("alternate", "at-once")]


@functools.cache
def form(**fields: int) -> Instance:
    """An instance with other fields than its row has."""
    made = read_instances(operations()["mla_prefill"], ROOT / "instances", ("gfx950",))
    static = next(one for one in made if not one.tile.persistent)
    return dataclasses.replace(static, tile=dataclasses.replace(static.tile, **fields))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Code objects of the day's forms, by their names."""
    folder = tmp_path_factory.mktemp("staggered")
    return {instance.name: build(instance, folder) for instance in (form(**fields) for fields in FORMS)}


def run(library: Path, image: bytes, name: str, how: tuple[str, str] | None) -> bytes:
    """What a kernel makes of the items; with `how`, under the sanitizer."""
    order, landing = how or HOW[0]
    where = {"order": ORDERS[order], "landing": LANDINGS[landing], "seed": 1, "max_instructions": 20_000_000}
    with Sim(library, "gfx950", sanitize=how is not None) as sim:
        return MlaKernel(f"tessera_k_{name.replace('__', '_')}", ITEMS, WORKGROUPS)(sim, image, where)


def test_fields_follow_from_the_grid() -> None:
    static, persistent = form().tile, form(persistent=1).tile
    assert (static.staggers_each, static.reads_v_early) == (0, 1)
    assert (persistent.staggers_each, persistent.reads_v_early) == (1, 0)
    assert CdnaTile.bm0 * 192 + 128 * (2 * 192 + 4 * 128) == static.lds_bytes == 160 * 1024
    assert form(persistent=1, exact_stagger=0).name.endswith("_staggered_persistent1_es0")


@pytest.mark.parametrize("fields", FORMS, ids=str)
def test_machine_code(fields: dict[str, int], built: dict[str, Path]) -> None:
    """No form spills, all have room for two waves a SIMD, and their loops are made of the clusters."""
    kernel = read_resources(built[form(**fields).name])
    assert kernel.complaints() == []
    assert kernel.vgprs <= 256 and kernel.agprs == 0 and kernel.lds_bytes == 160 * 1024


@pytest.mark.parametrize("fields", FORMS, ids=str)
def test_orders(fields: dict[str, int], built: dict[str, Path], library: Path) -> None:
    """Work items one after the other give what each gives alone, whatever the order of waves and loads."""
    alone = run(library, built[form().name].read_bytes(), form().name, None)
    name = form(**fields).name
    image = built[name].read_bytes()
    for how in sample(HOW, 2 if fields in USUAL else 1):
        assert run(library, image, name, how) == alone, how


@pytest.mark.parametrize("place", [0, 1, -1])
def test_missing_barriers_are_noticed(place: int, built: dict[str, Path], library: Path) -> None:
    """One of the prologue, of the stagger, or of an item's end: halves fall out of step."""
    name = form(persistent=1).name
    image = built[name].read_bytes()
    begin, size = find_code(image, f"tessera_k_{name.replace('__', '_')}")
    code = instructions(image[begin : begin + size], "gfx950")
    barriers = [one.place for one in code if one.name == "s_barrier"]
    at = begin + barriers[place]
    broken = image[:at] + struct.pack("<I", 0xBF800000) + image[at + 4 :]
    with pytest.raises(SimError):
        run(library, broken, name, HOW[0])
