# SPDX-License-Identifier: MIT
"""The launches that decide how fast instances of dq_dk_dv on CDNA are, and what their cycles say."""

from __future__ import annotations

from codegen.model import parameter
from codegen.spec import Instance, Point
from codegen.targets import CdnaTarget

# Two lengths of what passes by a workgroup, whose difference in time is that of their blocks: queries by keys
# that stay, and keys by all queries of a head.
QUERIES, KEYS = (256, 1024), (1024, 4096)
# Of keys of a head: so many that the time of the other sub-kernels, which grows with the queries, too, hardly
# counts.
TILES = 32
FULL = "full"


def problems(instance: Instance) -> dict[Point, tuple[str, ...]]:
    """The arguments of its launches: about as many workgroups as units hold, no more.

    Where keys pass, memory would then be the limit, whatever the instance, which is for fewer heads: half of
    the units have one.
    """
    tile, units = instance.tile, parameter("units", instance.target.name)
    workgroups = units * _room(instance)
    if tile.max_q:
        heads = ("-b=1", f"-h={units // 2}", f"-s={tile.max_q}")
        return {(FULL, keys): (*heads, f"-s_k={keys}") for keys in KEYS}
    heads = ("-b=1", f"-h={workgroups // TILES}", f"-s_k={TILES * tile.bn0}")
    return {(FULL, queries): (*heads, f"-s={queries}") for queries in QUERIES}


def of_cycles(instance: Instance, cycles: dict[Point, float]) -> dict[str, float]:
    """The share of the peak: five products of each query and key, three of them over q's head dim."""
    assert isinstance(instance.target, CdnaTarget)
    tile = instance.tile
    few, many = sorted(length for _, length in cycles)
    stay = tile.max_q or _room(instance) * tile.bn0
    macs = stay * (many - few) * (3 * tile.dq + 2 * tile.dv)  # of a unit
    spent = cycles[FULL, many] - cycles[FULL, few]
    return {"efficiency": round(macs / (spent * instance.target.macs[tile.compute]), 3)}


def _room(instance: Instance) -> int:
    assert isinstance(instance.target, CdnaTarget)
    tile = instance.tile
    return instance.target.workgroups(tile.waves, tile.occupancy, tile.lds_bytes(instance.target))
