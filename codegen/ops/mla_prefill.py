# SPDX-License-Identifier: MIT
"""mla_prefill: attention over keys of two parts, of which heads share the rotated one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from codegen.ops import mla_prefill_cdna
from codegen.ops.fmha_fwd.traits import DTYPES, MASK_AXES, MASK_TYPE, PADS, QSCALES, flag_axis, hdim_axis
from codegen.ops.pages import CpuTile, Pages
from codegen.schema import Range, Trait, flag
from codegen.space import Axis, Box, Region, Space, region_meet
from codegen.spec import Instance, Point, Rule
from codegen.targets import CdnaTarget

HDIM = (192, 128)  # 128 without and 64 with rotation; v
TYPES = ("bf16", "fp8bf16")


class MlaPrefill(Pages):
    """The operation."""

    api = "mla_prefill"
    name = "mla_prefill"
    family = "mla_prefill"
    kernels = ("mla_prefill",)
    tiles: ClassVar[dict[str, type[Any]]] = {"cpu": CpuTile, "cdna": mla_prefill_cdna.CdnaTile}
    program = "tile_example_mla_prefill"
    head_axes = 3
    middle = "b128x128x32x{v}x32x{q}_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_async"
    traits = (
        Trait("data_type", "dtype", DTYPES),
        MASK_TYPE,
        Trait("qscale_type", "qscale", QSCALES),
        flag("is_group_mode", "mode", "batch", "group"),
        flag("has_lse", "lse"),
    )

    def __init__(self, mask: str) -> None:
        self.space = space = Space(
            (
                hdim_axis((HDIM,)),
                Axis("dtype", TYPES, TYPES),
                Axis("mode", ("batch", "group"), ("batch", "group")),
                Axis("pad", (PADS[-1],), (PADS[-1],)),
                MASK_AXES[mask],
                flag_axis("lse", "lse"),
                Axis("qscale", ("no", "pt"), ("nqscale", "pertensor")),
            )
        )
        self.rules = (Rule(space.box(qscale=("pt",), dtype=("bf16",)), "descales belong to fp8 inputs"),)

    def served(self, tile: Any) -> Region:
        """All there is, or what the row names, of the data types of its kind."""
        return region_meet(self.everything, self.space.where(f"{tile.held} {tile.serves}"))

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Which grid is the better one depends on the number of work items."""
        return one.target.kind == "cpu" and super().shadows(one, other)

    def problem(self, instance: Instance) -> tuple[str, ...]:
        """The data type."""
        return (f"-prec={instance.tile.dtypes[0]}",)

    def figure_problems(self, instance: Instance) -> dict[Point, tuple[str, ...]]:
        """On CDNA."""
        if not isinstance(instance.target, CdnaTarget):
            return {}
        return mla_prefill_cdna.figure_problems(instance)

    def figures_of(self, instance: Instance, cycles: dict[Point, float]) -> dict[str, float]:
        """How fast tiles are, and what a work item takes beside them."""
        return mla_prefill_cdna.figures_of(instance, cycles)

    def block_words(self, instance: Instance) -> str:
        """Beside its tiles."""
        return f"a work item {instance.tile.start:.1f} tiles' time beside its own"

    def row_fields(self, instance: Instance) -> dict[str, str]:
        """The fields of the table's row; of GPU instances the time of a work item, and the grid."""
        fields = super().row_fields(instance)
        if instance.target.kind != "cpu":
            fields["start"] = f"{instance.tile.start:.2f}f"
            fields["persistent"] = f"{instance.tile.persistent}"
        return fields

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """The head dims of these models."""
        yield box, tuple((hdim, hdim, 1) for hdim in HDIM)


def operation(mask: str) -> MlaPrefill:
    """This module's operation."""
    return MlaPrefill(mask)
