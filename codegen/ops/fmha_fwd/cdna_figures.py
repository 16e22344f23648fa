# SPDX-License-Identifier: MIT
"""The launches that decide the figures of instances on CDNA, and what their cycles say: blocks and starts."""

from __future__ import annotations

from codegen.model import parameter
from codegen.ops.fmha_fwd.cdna_cost import peak_cycles, workgroups
from codegen.spec import Instance, Point
from codegen.targets import CdnaTarget

# Two lengths, whose difference in time is that of their blocks; and those of planned main loops, which are
# for long sequences: at first a unit that begins two workgroups waits for memory, and these are not yet
# apart. So on full units of these each place has two, one after the other, of which the second begins and
# ends beside others that compute.
KEYS, LONG_KEYS, CACHE_KEYS = (128, 512), (512, 2048), (256, 1024)
ROUNDS = 2
TILES = 8  # of queries of a head, whose workgroups share k and v
FEW = 4  # units that show what a workgroup alone takes
# A workgroup on each of few units; as many as units hold; so many, half of whose waves have no queries.
ALONE, FULL, HALF = "alone", "full", "half"


def problems(instance: Instance) -> dict[Point, tuple[str, ...]]:
    """The arguments of its launches."""
    return {point: _problem(instance, point) for point in points_of(instance)}


def keys_of(instance: Instance) -> tuple[int, int]:
    """The lengths that an instance is timed with."""
    return LONG_KEYS if instance.tile.planned else KEYS


def rounds_of(instance: Instance, load: str) -> int:
    """How many workgroups follow one another at a place."""
    return ROUNDS if instance.tile.planned and load == FULL else 1


def points_of(instance: Instance) -> tuple[Point, ...]:
    """Keys of workgroups alone would be cut, where an instance cuts keys.

    Half of fewer waves than two a SIMD would leave SIMDs idle, and the others' time as it is; in whole tiles
    all waves have queries.
    """
    assert isinstance(instance.target, CdnaTarget)
    if instance.tile.whole_tiles:
        return tuple((load, keys) for load in (ALONE, FULL) for keys in keys_of(instance))
    alone = () if instance.tile.merge else (ALONE,)
    half = (HALF,) if instance.tile.rm0 >= 2 * instance.target.simds and not instance.tile.merge else ()
    return tuple((load, keys) for load in (*alone, FULL, *half) for keys in keys_of(instance))


def _problem(instance: Instance, point: Point) -> tuple[str, ...]:
    load, keys = point
    bm0, rounds = instance.tile.bm0, rounds_of(instance, load)
    places = parameter("units", instance.target.name) * _room(instance)
    if instance.tile.whole_tiles:  # as many queries as keys
        heads = (FEW if load == ALONE else rounds * places) * bm0 // keys
        return ("-b=1", f"-h={max(1, heads)}", f"-s={keys}", f"-s_k={keys}")
    shared = -(-places // TILES)  # k and v on full units
    sizes = {
        ALONE: ("-h=1", f"-s={FEW * bm0}"),
        FULL: (f"-h={shared}", f"-s={rounds * TILES * bm0}"),
        HALF: (f"-h={TILES * shared}", f"-h_k={shared}", f"-s={bm0 // 2}"),
    }
    return ("-b=1", *sizes[load], f"-s_k={keys}")


def cache_problems(instance: Instance) -> dict[Point, tuple[str, ...]]:
    """Those of an instance that attends to caches alone, each workgroup of which has all keys of a sequence.

    On full units a die's workgroups share sequences, as many as a unit has room for: an XCD gets whole ones.
    """
    dies = parameter("dies", instance.target.name)
    of_die = parameter("units", instance.target.name) // dies
    sizes = {ALONE: (FEW, 1), FULL: (dies * _room(instance), of_die)}
    return {
        (load, keys): (
            f"-b={sequences}",
            f"-h={tiles * instance.tile.bm0}",
            "-h_k=1",
            f"-ctx={keys}",
            "-num_splits=1",
        )
        for load, (sequences, tiles) in sizes.items()
        for keys in CACHE_KEYS
    }


def _room(instance: Instance) -> int:
    assert isinstance(instance.target, CdnaTarget)
    return workgroups(instance.tile, instance.target)


def block_and_start(
    instance: Instance, load: str, cycles: dict[Point, float], rounds: int = 1
) -> tuple[float, float]:
    """The cycles of a block, and the time that a workgroup takes beside its blocks, in blocks."""
    launch = parameter("launch_cycles", instance.target.name)
    lengths = sorted({keys for _, keys in cycles})
    blocks = [-(-keys // instance.tile.bn0) for keys in lengths]
    few, many = ((cycles[load, keys] - launch) / rounds for keys in lengths)
    block = (many - few) / (blocks[1] - blocks[0])
    return block, few / block - blocks[0]


def of_cycles(instance: Instance, cycles: dict[Point, float]) -> dict[str, float]:
    """An instance's figures from the cycles of its launches.

    Where none is on few units, a workgroup is taken to be no faster alone than beside others.
    What two launches differ by may make a block a hundredth faster than the peak, which no loop is.
    """
    assert isinstance(instance.target, CdnaTarget)
    block, starts = {}, {}
    for load in {load for load, _ in cycles}:
        block[load], starts[load] = block_and_start(instance, load, cycles, rounds_of(instance, load))
    loads = (FULL,) if instance.tile.planned else (ALONE, FULL)
    beginnings = [starts[load] for load in loads if load in starts]
    peak = peak_cycles(instance.tile, instance.target)
    figures = {
        "efficiency": round(min(_room(instance) * peak / block[FULL], 1), 3),
        "alone": round(peak / block.get(ALONE, block[FULL]), 3),
        "start": round(max(sum(beginnings) / len(beginnings), 0.1), 2),
    }
    if HALF in block:
        figures["half"] = round(min(block[HALF] / block[FULL], 1), 3)
    return figures
