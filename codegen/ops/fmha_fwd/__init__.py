# SPDX-License-Identifier: MIT
"""fmha_fwd: fused multi-head attention, forward. What instances serve, cost and are called."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from codegen.ops.fmha_fwd.cdna import CdnaTile
from codegen.ops.fmha_fwd.cdna_cost import BlockCost, block_cost
from codegen.ops.fmha_fwd.cpu import CpuTile
from codegen.ops.fmha_fwd.traits import DTYPES, HDIMS, PAD_SIDES, make_rules, make_space
from codegen.space import Box, Region, bits, region_meet, union
from codegen.spec import Instance, Operation, Product, Slices
from codegen.targets import CdnaTarget

# The C table's sets: field of tessera_fmha_fwd_served, and what each of the axis's values sets in it.
SERVED: dict[str, tuple[str, dict[str, int]]] = {
    "dtype": ("data_type", {dtype: 1 << i for i, dtype in enumerate(DTYPES)}),
    "mask": ("mask", {"no": 0b0001, "mask": 0b1110, "causal": 0b0110, "generic": 0b1110}),
    "bias": ("bias", {"no": 0b001, "bias": 0b010, "alibi": 0b100}),
    "qscale": ("qscale", {"no": 0b00001, "pt": 0b00010, "bs": 0b00100, "mx": 0b10000}),
    "mode": ("mode", {"batch": 0b01, "group": 0b10}),
    "vlayout": ("v_rowmajor", {"r": 0b10, "c": 0b01}),
    "logits": ("soft_cap", {"no": 0b01, "yes": 0b10}),
    "lse": ("lse", {"no": 0b01, "yes": 0b10}),
    "dropout": ("dropout", {"no": 0b01, "yes": 0b10}),
    "skip": ("skip", {"no": 0b01, "yes": 0b10}),
    "sink": ("sink", {"no": 0b01, "yes": 0b10}),
}
PACKED = {"mxfp4": 2}  # elements a byte: head dims are a multiple of it
BUCKETS = sorted({max(hdim) for hdim in HDIMS})

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


def _range_fields(ranges: Ranges, multiple: int) -> dict[str, int]:
    """Ranges of head dims in C."""
    fields = {}
    for side, (least, most) in zip("qv", ranges):
        fields[f"hdim_{side}_min"] = max(least, multiple)
        fields[f"hdim_{side}_max"] = most
        fields[f"hdim_{side}_multiple"] = multiple
    return fields


def _buckets(ranges: Ranges) -> list[int]:
    """The buckets that the greater of the head dims may fall into."""
    (least_q, most_q), (least_v, most_v) = ranges
    floors = (0, *BUCKETS[:-1])
    least, most = max(least_q, least_v), max(most_q, most_v)
    return [i for i, (floor, top) in enumerate(zip(floors, BUCKETS)) if floor < most and least <= top]


class FmhaFwd(Operation):
    """The operation."""

    api = "fwd"
    name = "fmha_fwd"
    kernels = ("fwd",)
    entries: ClassVar[dict[str, str]] = {"run": "run", "combine": "combine", "scratch_bytes": "scratch"}
    head_axes = 3
    tiles: ClassVar[dict[str, type[Any]]] = {"cpu": CpuTile, "cdna": CdnaTile}
    optdim_field = "hdim_q"

    def __init__(self, mask: str) -> None:
        self.space = make_space(mask)
        self.rules = make_rules(self.space)

    def served(self, tile: Any) -> Region:
        """All traits of the storage types that the tile takes, or those that the row names."""
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
        if one.target.kind == "cdna":
            return self._shadows_on_gpu(one, other)
        return self._shadows_on_cpu(one, other)

    def _shadows_on_gpu(self, one: Instance, other: Instance) -> bool:
        """The formulas are in runtime/fmha_fwd_cost_cdna.c.

        Where one of one's tiles takes fewer queries or keys than the other's, as many more of them as go into
        one of the other's are the worst case; where it takes more queries, as many more keys may be seen.
        Rounds repeat with the workgroups of both.
        """
        a, b = one.tile, other.tile
        if a.alignment > b.alignment or a.hdim_multiple > b.hdim_multiple:
            return False  # there are calls that only the other takes
        first, second = self.block_cost(one), self.block_cost(other)
        tasks, blocks = -(-b.bm0 // a.bm0), -(-b.bn0 // a.bn0) * -(-a.bm0 // b.bm0)
        return all(
            blocks * first.rounds(tasks * count) <= second.rounds(count)
            for count in range(1, first.workgroups * second.workgroups + 1)
        )

    def block_cost(self, instance: Instance) -> BlockCost:
        """The figures that a GPU instance is ranked by."""
        assert isinstance(instance.target, CdnaTarget)
        return block_cost(instance.tile, instance.target)

    def rounded(self, tile: Any, target: Any, rounding: str) -> Any:
        """A bf16 tile of a GPU whose row says nothing of rounding."""
        if (
            target.kind != "cdna"
            or tile.compute != "bf16"
            or tile.rounding
            or tile.p_rounding(target) == rounding
        ):
            return tile
        return replace(tile, rounding=rounding)

    def block_words(self, instance: Instance) -> str:
        """The same figures in words."""
        if instance.target.kind != "cdna":
            return super().block_words(instance)
        cost = self.block_cost(instance)
        return (
            f"a block takes {cost.alone_cycles:.0f} cycles alone and {cost.busy_cycles:.0f} of a unit, "
            f"where there is room for {cost.workgroups}"
        )

    def _shadows_on_cpu(self, one: Instance, other: Instance) -> bool:
        """The formula is in runtime/fmha_fwd_select.c.

        It is cycles for each score, times scores in whole register tiles, times the share of the unit with
        most tasks. The first is linear in the head dims; the second is worst where the other's register tile
        is filled; the third differs by less than 2, or by as many of the other's tasks as go into one.
        """
        a, b = one.tile, other.tile
        ours, theirs = a.register_tile(one.target), b.register_tile(other.target)
        worst = 1.0 if a.bm0 == b.bm0 else max(2, -(-a.bm0 // b.bm0))
        for side in "mn":
            worst *= -(-theirs[side] // ours[side]) * ours[side] / theirs[side]
        return all(
            worst * self.score_cycles(one, hdims) <= self.score_cycles(other, hdims) for hdims in HDIM_SUMS
        )

    def score_cycles(self, instance: Instance, hdims: int) -> float:
        """Cycles for each score, where head dims of q and v add up to `hdims`."""
        area: int = instance.tile.bm0 * instance.tile.bn0
        return hdims / instance.macs_per_cycle + instance.tile_cycles / area

    def served_products(self, region: Region, tile: Any) -> list[Product]:
        """A region as the C table holds it: pads are no trait there, and head dims are ranges."""
        space = self.space
        dtype_axis, pad_axis = space.index["dtype"], space.index["pad"]
        dropped = {i: space.full[i] for i, axis in enumerate(space.axes) if axis.name not in SERVED}
        by_range: dict[tuple[Ranges, int], list[Box]] = {}
        for box in region:
            for dtype in bits(box[dtype_axis]):
                projected = [dropped.get(i, mask) for i, mask in enumerate(box)]
                projected[dtype_axis] = 1 << dtype
                for ranges in _ranges(box, pad_axis):
                    key = (ranges, max(tile.hdim_multiple, PACKED.get(DTYPES[dtype], 1)))
                    by_range.setdefault(key, []).append(tuple(projected))
        return [
            Product(space.describe(box), {**self._sets(box), **_range_fields(*key)})
            for key, boxes in sorted(by_range.items())
            for box in union(boxes)
        ]

    def _sets(self, box: Box) -> dict[str, int]:
        """The sets of values of a product in C."""
        sets = {}
        for axis, (field, values) in SERVED.items():
            sets[field] = 0
            for value in self.space.values(box, axis):
                sets[field] |= values[value]
        return sets

    def slices(self, instances: list[Instance]) -> Slices:
        """Rows that may serve (target, data_type, bucket of hdim), the fastest main loop first."""
        dtype_axis, pad_axis = self.space.index["dtype"], self.space.index["pad"]
        index: dict[tuple[str, str, int], list[int]] = {}
        for number in sorted(range(len(instances)), key=lambda n: (-instances[n].macs_per_cycle, n)):
            instance = instances[number]
            served = {
                (dtype, bucket)
                for box in instance.region
                for ranges in _ranges(box, pad_axis)
                for bucket in _buckets(ranges)
                for dtype in bits(box[dtype_axis])
            }
            for dtype, bucket in sorted(served):
                key = (instance.target.enum, f"TESSERA_{DTYPES[dtype].upper()}", bucket)
                index.setdefault(key, []).append(number)
        return Slices("hdim", BUCKETS, index)


def operation(mask: str) -> FmhaFwd:
    """This module's operation."""
    return FmhaFwd(mask)
