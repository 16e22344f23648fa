# SPDX-License-Identifier: MIT
"""The launches that decide how fast instances of dq_dk_dv on CDNA are, and what their cycles say."""

from __future__ import annotations

from codegen.model import parameter
from codegen.spec import Instance, Point
from codegen.targets import CdnaTarget

QUERIES = (256, 1024)  # whose difference in time is that of their blocks
# Of keys of a head: so many that the time of the other sub-kernels, which grows with the queries, too, hardly
# counts.
TILES = 32
FULL = "full"


def problems(instance: Instance) -> dict[Point, tuple[str, ...]]:
    """The arguments of its launches: about as many workgroups as units hold, no more."""
    assert isinstance(instance.target, CdnaTarget)
    tile, target = instance.tile, instance.target
    room = target.workgroups(tile.waves, tile.occupancy, tile.lds_bytes)
    heads = parameter("units", target.name) * room // TILES
    sizes = ("-b=1", f"-h={heads}", f"-s_k={TILES * tile.bn0}")
    return {(FULL, queries): (*sizes, f"-s={queries}") for queries in QUERIES}


def of_cycles(instance: Instance, cycles: dict[Point, float]) -> dict[str, float]:
    """The share of the peak: five products of each query and key, three of them over q's head dim."""
    assert isinstance(instance.target, CdnaTarget)
    tile, target = instance.tile, instance.target
    few, many = QUERIES
    room = target.workgroups(tile.waves, tile.occupancy, tile.lds_bytes)
    macs = room * tile.bn0 * (many - few) * (3 * tile.dq + 2 * tile.dv)  # of a unit
    spent = cycles[FULL, many] - cycles[FULL, few]
    return {"efficiency": round(macs / (spent * target.macs[tile.compute]), 3)}
