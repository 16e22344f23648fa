# SPDX-License-Identifier: MIT
"""What the operations on rows share: what instances serve, cost and are called. One adds its traits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from codegen.ops.rows.cdna import CdnaTile
from codegen.ops.rows.cpu import CpuTile
from codegen.ops.rows.cuda import CudaTile
from codegen.ops.rows.traits import make_rules
from codegen.schema import Range, Size, Trait
from codegen.space import Axis, Box, Region, Space, region_meet
from codegen.spec import Instance, Operation

COLUMNS = 2**31 - 1


class Rows(Operation):
    """An operation on rows.

    `statistics`: what is found of a row before all else: none, square, mean. `by_expert`: what comes out are
    several rows of one that goes in, each with scales of its own.
    """

    statistics: str
    by_expert: bool
    family = "rows"
    entries: ClassVar[dict[str, str]] = {"run": "run"}
    optdim_field = None
    tiles: ClassVar[dict[str, type[Any]]] = {"cpu": CpuTile, "cdna": CdnaTile, "cuda": CudaTile}

    def __init__(
        self,
        name: str,
        axes: tuple[Axis, ...],
        traits: tuple[Trait, ...],
        *,
        statistics: str = "none",
        by_expert: bool = False,
        size: str = "n",
    ) -> None:
        self.api = self.name = name
        self.kernels = (name,)
        self.space = space = Space(axes)
        self.traits = traits
        self.statistics = statistics
        self.by_expert = by_expert
        self.sizes = (Size(size),)
        self.head_axes = 1 + max(space.index.get(axis, 0) for axis in ("prec_i", "prec_o", "scales"))
        self.rules = make_rules(space)

    def served(self, tile: Any) -> Region:
        """All traits of the types that the tile takes, or those that the row names."""
        region = region_meet(self.everything, (self.space.box(prec_i=tile.dtypes),))
        return region_meet(region, self.space.where(f"{tile.held} {tile.serves}"))

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Whether one takes all that the other takes, and costs no more for any of it."""
        a, b = one.tile, other.tile
        if one.target.kind != "cpu":
            return bool(a.columns >= b.columns and a.multiple <= b.multiple and a.outruns(b))
        return (
            a.columns >= b.columns
            and a.alignment <= b.alignment
            and one.macs_per_cycle >= other.macs_per_cycle
            and one.tile_cycles <= other.tile_cycles
        )

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """Columns."""
        yield box, ((tile.multiple, tile.columns, tile.multiple),)

    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]:
        """Block, warps, warp and vector, each rows x columns, and the pipeline, as in runtime/ops/rows.c."""
        tile = instance.tile.ck_tile(instance.target)
        rm, rn, tm, tn, vn = (tile[field] for field in ("rm", "rn", "tm", "tn", "vn"))
        warps = tn // tile["wn"]  # of a row
        return (
            f"{rm * tm}x{rn * tn * vn}_{tm}x{warps}_",
            f"1x{tn // warps * vn}_1x{vn}_",
            f"{'bpr' if warps > 1 else 'wpr'}_{'op' if instance.tile.pipeline == 'one_pass' else 'tp'}",
        )

    def cost_words(self, instance: Instance) -> str:
        """Of GPU instances what a piece takes, where memory does not take longer."""
        if instance.target.kind == "cpu":
            return super().cost_words(instance)
        words: str = instance.tile.cost_words(instance.target)
        return words
