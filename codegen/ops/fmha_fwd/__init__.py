# SPDX-License-Identifier: MIT
"""fmha_fwd: fused multi-head attention, forward. What instances serve, cost and are called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from codegen.ops.fmha_fwd import cdna_figures
from codegen.ops.fmha_fwd.cdna import CdnaTile
from codegen.ops.fmha_fwd.cdna_choices import variants
from codegen.ops.fmha_fwd.cdna_cost import BlockCost, block_cost
from codegen.ops.fmha_fwd.combine import Combine
from codegen.ops.fmha_fwd.cpu import CpuTile
from codegen.ops.fmha_fwd.cuda import CudaTile
from codegen.ops.fmha_fwd.traits import (
    CACHE_TYPES,
    DTYPES,
    HDIMS,
    PAD_SIDES,
    SIZES,
    TRAITS,
    make_rules,
    make_space,
)
from codegen.schema import Range
from codegen.space import Box, Region, bits, held_values, region_meet
from codegen.spec import Instance, Operation, Point
from codegen.targets import CdnaTarget

PACKED = {"mxfp4": 2}  # elements a byte: head dims are a multiple of it
# hdim_q + hdim_v: the range that costs are compared over.
HDIM_SUMS = (2, 1024)


Ranges = tuple[tuple[int, int], tuple[int, int]]  # the least and the greatest head dim of q, and of v


def _ranges(box: Box, pad_axis: int) -> list[Ranges]:
    """The head dims that a box serves, pair by pair; of a side that is not padded exactly its head dim.

    Where both sides are padded the last pair covers the others, since the pairs are a chain.
    """
    pads = 0
    for pad in bits(box[pad_axis]):  # the number of a pad is the set of its sides
        pads |= pad
    pads_q, pads_v = (pads >> PAD_SIDES.index(side) & 1 for side in ("d", "dv"))
    pairs = [HDIMS[pair] for pair in bits(box[0])]
    if pads_q and pads_v:
        pairs = pairs[-1:]
    return [((1 if pads_q else q, q), (1 if pads_v else v, v)) for q, v in pairs]


def _reads_caches_alone(instance: Instance) -> bool:
    """Whether keys lie where no plain call has them."""
    tile = instance.tile
    return isinstance(instance.target, CdnaTarget) and (tile.kv != "auto" or tile.direct)


class FmhaFwd(Operation):
    """The operation."""

    api = "fwd"
    name = family = "fmha_fwd"
    kernels = ("fwd",)
    entries: ClassVar[dict[str, str]] = {"run": "run", "combine": "combine", "scratch_bytes": "scratch"}
    head_axes = 3
    traits = TRAITS
    sizes = SIZES
    buckets = tuple(sorted({max(hdim) for hdim in HDIMS}))
    tiles: ClassVar[dict[str, type[Any]]] = {"cpu": CpuTile, "cdna": CdnaTile, "cuda": CudaTile}
    optdim_field = "hdim_q"
    program = "tile_example_fmha_fwd"
    checks = (
        ("-b=2", "-h=4", "-h_k=2", "-s=300", "-s_k=333", "-mask=b", "-lse=1"),
        ("-b=1", "-h=2", "-s=257", "-s_k=515", "-p_drop=0.2"),
    )

    def __init__(self, mask: str) -> None:
        self.space = make_space(mask)
        self.rules = make_rules(self.space)
        self.companions = (Combine(),)

    def served(self, tile: Any) -> Region:
        """The combinations of the tile's storage types, or those that the row names."""
        region = region_meet(self.everything, (self.space.box(dtype=tile.dtypes),))
        return region_meet(region, self.space.where(f"{tile.held} {tile.serves}"))

    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]:
        """Tile and pipeline in CK's names."""
        hdim_q, hdim_v = HDIMS[first]
        tile = instance.tile.ck_tile(instance.target)
        warps = (
            "_{}{}x{}x{}".format(what, *(tile[f"{what}{side}{gemm}"] for side in "mnk"))
            for what in "rw"
            for gemm in "01"
        )
        return (
            f"b{tile['bm0']}x{tile['bn0']}x{tile['bk0']}x",
            f"{tile['bn1'] or hdim_v}x{tile['bk1']}x{tile['bk0max'] or hdim_q}",
            f"{''.join(warps)}_{instance.tile.pipeline}",
        )

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Whether one's cost is at most the other's for every size and number of compute units."""
        if one.target.kind != "cpu":
            return self._shadows_on_gpu(one, other)
        return self._shadows_on_cpu(one, other)

    def _shadows_on_gpu(self, one: Instance, other: Instance) -> bool:
        """The formulas are in runtime/ops/fmha_fwd_cost_cdna.c, and fmha_fwd_cost_cuda.c.

        Where one of one's tiles takes fewer queries or keys than the other's, as many more of them as go into
        one of the other's are the worst case; where it takes more queries, as many more keys may be seen.
        Rounds repeat with the workgroups of both.
        """
        a, b = one.tile, other.tile
        if a.alignment > b.alignment or a.hdim_multiple > b.hdim_multiple:
            return False  # there are calls that only the other takes
        if not (a.efficiency and b.efficiency):
            return False  # nobody knows yet
        if a.merge != b.merge:
            return False  # the best one depends on sizes
        if a.keys_in != b.keys_in:
            return False  # and on where keys lie
        if a.kv != b.kv:
            return False  # and as what
        if one.target.kind == "cdna" and a.turns < b.turns:
            return False  # and on masks
        if one.target.kind == "cuda" and a.heads != b.heads:
            return False  # and of how many heads
        if one.target.kind == "cuda" and (a.bm0, a.bn0) != (b.bm0, b.bn0):
            return False  # and on masks
        if one.target.kind == "cuda" and any(
            (x or 1) > (y or 1) for x, y in ((a.strip, b.strip), (a.paired, b.paired))
        ):
            return False  # and on how many tasks there are, and which lie side by side
        first, second = self.block_cost(one), self.block_cost(other)
        tasks, blocks = -(-b.bm0 // a.bm0), -(-b.bn0 // a.bn0) * -(-a.bm0 // b.bm0)
        if first.workgroups < tasks * second.workgroups:
            return False  # under a mask its last workgroups may begin later
        if a.bm0 < b.bm0:
            return False  # it reads keys more often, where memory is the limit
        if a.bm0 > b.bm0 and first.workgroups == 1:
            return False  # where half of its waves have no queries memory adds to its time
        counts = range(1, first.workgroups * second.workgroups + 1)
        half = min(1.0, second.half / (first.half if a.bm0 == b.bm0 else 1.0))
        rounds = [(first.rounds(tasks * count), half * second.rounds(count)) for count in counts]
        return all(
            blocks * ours <= theirs and first.start * ours <= second.start * theirs for ours, theirs in rounds
        )

    def block_cost(self, instance: Instance) -> BlockCost:
        """The figures that a GPU instance is ranked by."""
        if isinstance(instance.target, CdnaTarget):
            return block_cost(instance.tile, instance.target)
        tile = instance.tile
        cycles = tile.heads * tile.bm0 * tile.bn0 * (tile.dq + tile.dv) / instance.macs_per_cycle
        return BlockCost(tile.workgroups, tile.alone * cycles, cycles, tile.lead)

    def program_of(self, instance: Instance) -> str:
        """Where a call has no cache, or an instance that reads nothing else attends."""
        return "tile_example_paged_attention" if _reads_caches_alone(instance) else self.program

    def problem(self, instance: Instance) -> tuple[str, ...]:
        """Data type, head dims, layout, and scales where they must be."""
        tile = instance.tile
        words: tuple[str, ...] = (f"-prec={tile.dtypes[0]}", f"-d={tile.hdim_q}", f"-d_v={tile.hdim_v}")
        if _reads_caches_alone(instance):
            layout = ("-kv_layout=vectorized",) if "PAGES" not in tile.keys_in else ()
            return (*words, f"-kv_cache_dtype={tile.kv}", *layout)
        words = (*words, f"-vlayout={tile.v_layout}")
        axis = self.space.index["qscale"]
        scales = next(bits(held_values(instance.region, axis)))
        name = self.space.axes[axis].values[scales]
        return words if name == "no" else (*words, f"-qscale={name}")

    def figure_problems(self, instance: Instance) -> dict[Point, tuple[str, ...]]:
        """On CDNA."""
        if not isinstance(instance.target, CdnaTarget):
            return {}
        over = cdna_figures.cache_problems if _reads_caches_alone(instance) else cdna_figures.problems
        return over(instance)

    def figures_of(self, instance: Instance, cycles: dict[Point, float]) -> dict[str, float]:
        """How fast blocks are, and starts."""
        return cdna_figures.of_cycles(instance, cycles)

    def variants(self, instance: Instance) -> Iterator[Any]:
        """On CDNA."""
        if isinstance(instance.target, CdnaTarget):
            return variants(instance.tile, instance.target)
        return super().variants(instance)

    def rounded(self, tile: Any, target: Any, rounding: str) -> Any:
        """The tile with --rounding, if it is a bf16 tile of a GPU whose row does not say how to round."""
        if (
            target.kind != "cdna"
            or tile.compute != "bf16"
            or tile.rounding
            or tile.p_rounding(target) == rounding
        ):
            return tile
        return replace(tile, rounding=rounding)

    def block_words(self, instance: Instance) -> str:
        """The figures that a block is ranked by, in words."""
        if instance.target.kind == "cpu":
            return super().block_words(instance)
        cost = self.block_cost(instance)
        if instance.target.kind == "cuda":
            begin = cost.start * cost.alone_cycles
            return f"a block takes {cost.busy_cycles:.0f} cycles, a task {begin:.0f} more"
        tile, busy = instance.tile, f"{cost.busy_cycles:.0f}"
        if tile.pipeline == "qr_bundled":
            busy += f" ({tile.step(instance.target).unit_cycles:.0f} as planned)"
        return (
            f"a block takes {cost.alone_cycles:.0f} cycles alone and {busy} of a unit, "
            f"where there is room for {cost.workgroups}, and {cost.start:.1f} blocks' time to begin and end"
        )

    def _shadows_on_cpu(self, one: Instance, other: Instance) -> bool:
        """The formula is in runtime/ops/fmha_fwd_cost_cpu.c.

        It is cycles of loading keys, which depend on a tile's rows alone, and cycles for each score in whole
        vectors of rows, times the share of the unit with most tasks. Cycles for each score are linear in the
        head dims; the number of scores is worst where the other's vectors are filled; shares differ by less
        than 2, or by as many of the other's tasks as go into one.
        """
        a, b = one.tile, other.tile
        if any(rate < b.cache_rates[kv] for kv, rate in a.cache_rates.items()):
            return False  # of such caches the other may be faster
        if a.heights != b.heights:
            return False  # of some rows the other may load keys less often
        steps = [(i.tile.row_step(i.target), i.tile.register_tile(i.target)["n"]) for i in (one, other)]
        of_rows, of_keys = (-(-theirs // ours) * ours / theirs for ours, theirs in zip(*steps))
        worst = of_keys * (1 if a.bm0 == b.bm0 else max(2, -(-a.bm0 // b.bm0)))
        loads = worst * -(-b.bm0 // a.bm0)
        if any(loads * load > b.cache_loads[kv] for kv, load in a.cache_loads.items()):
            return False
        worst *= of_rows
        return all(
            worst * self.score_cycles(one, hdims) <= self.score_cycles(other, hdims) for hdims in HDIM_SUMS
        )

    def score_cycles(self, instance: Instance, hdims: int) -> float:
        """Cycles for each score, where head dims of q and v add up to `hdims`, beside loading keys."""
        area: int = instance.tile.bm0 * instance.tile.bn0
        load: float = instance.tile.whole_load
        return hdims * (1 / instance.macs_per_cycle - load) + instance.tile_cycles / area

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """The ranges of head dims by data type and pair: an exact range for sides that are not padded."""
        axis = self.space.index["dtype"]
        for dtype in bits(box[axis]):
            multiple = max(tile.hdim_multiple, PACKED.get(DTYPES[dtype], 1))
            for pair in _ranges(box, self.space.index["pad"]):
                ranges = tuple((max(least, multiple), most, multiple) for least, most in pair)
                yield (*box[:axis], 1 << dtype, *box[axis + 1 :]), ranges

    def row_fields(self, instance: Instance) -> dict[str, str]:
        """The fields of the table's row; of GPU instances also the costs of a block."""
        fields = super().row_fields(instance)
        if instance.target.kind != "cpu":
            cost = self.block_cost(instance)
            fields["workgroups"] = f"{cost.workgroups}"
            fields["alone_cycles"] = f"{cost.alone_cycles:.1f}f"
            fields["busy_cycles"] = f"{cost.busy_cycles:.1f}f"
            fields["start"] = f"{cost.start:.2f}f"
            fields["half"] = f"{cost.half:.2f}f"
            fields["merged"] = f"{instance.tile.merge}"
            fields["keys_in"] = " | ".join(f"TESSERA_KEYS_IN_{place}" for place in instance.tile.keys_in)
            fields["kv"] = f"TESSERA_KV_{instance.tile.kv.upper()}"
        if instance.target.kind == "cuda":
            fields["strip"] = f"{instance.tile.strip:.2f}f"
            fields["paired"] = f"{instance.tile.paired:.2f}f"
            fields["v_first"] = f"{instance.tile.v_first}"
            fields["shared_bytes"] = f"{instance.tile.shared_bytes}"
        if instance.target.kind != "cdna":
            fields["heads"] = f"{instance.tile.heads}"
        if instance.target.kind == "cdna":
            fields["whole_tiles"] = f"{instance.tile.whole_tiles}"
            fields["turns"] = f"{instance.tile.turns}"
        if instance.target.kind == "cpu":
            tile = instance.tile
            for name, values in (("rates", tile.cache_rates), ("loads", tile.cache_loads)):
                fields[name] = f"{{{', '.join(f'{float(values[kv])}f' for kv in CACHE_TYPES)}}}"
            fields["row_step"] = f"{tile.row_step(instance.target)}"
            fields["heights"] = f"{sum(1 << height for height in tile.heights):#x}"
        return fields


def operation(mask: str) -> FmhaFwd:
    """This module's operation."""
    return FmhaFwd(mask)
