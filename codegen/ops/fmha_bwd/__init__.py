# SPDX-License-Identifier: MIT
"""fmha_bwd: fused multi-head attention, backward. A call takes an instance of each of three sub-kernels.

dot_do_o finds the sums of do o by rows, dq_dk_dv all gradients, but dq as partial sums, and convert_dq adds
these. Each is an operation with a table of its own: what distinguishes instances of one does not multiply
those of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from codegen.ops.fmha_bwd import cdna_figures
from codegen.ops.fmha_bwd.cdna import CdnaTile
from codegen.ops.fmha_bwd.cpu import CpuTile
from codegen.ops.fmha_bwd.cuda import CudaTile
from codegen.ops.fmha_bwd.rows import GpuRowsTile, RowsTile
from codegen.ops.fmha_bwd.traits import (
    BYTES,
    DATA_TYPE,
    HDIMS,
    HDIMS_OF_ONE,
    IS_DETERMINISTIC,
    IS_GROUP_MODE,
    SIZES,
    TRAITS,
    convert_dq_space,
    dot_do_o_space,
    make_rules,
    make_space,
)
from codegen.schema import Range, Size, Trait
from codegen.space import Box, Region, Space, bits, region_meet, region_minus
from codegen.spec import Instance, Operation, Point
from codegen.targets import CdnaTarget

API = "bwd"


class Part(Operation):
    """A sub-kernel."""

    def served(self, tile: Any) -> Region:
        """The combinations of the tile's storage types, or those that the row names."""
        region = region_meet(self.everything, (self.space.box(dtype=tile.dtypes),))
        return region_meet(region, self.space.where(f"{tile.held} {tile.serves}"))

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Whether one has no smaller block and is no slower; smaller blocks may fill more threads."""
        return (
            one.tile.bm0 == other.tile.bm0
            and one.macs_per_cycle >= other.macs_per_cycle
            and one.tile_cycles <= other.tile_cycles
        )


class FmhaBwd(Part):
    """dq_dk_dv, whose table is that of the calls."""

    api = API
    name = family = "fmha_bwd"
    kernels = ("dq_dk_dv",)
    entries: ClassVar[dict[str, str]] = {"run": "run", "scratch_bytes": "scratch"}
    head_axes = 3
    traits = TRAITS
    sizes = SIZES
    buckets = tuple(sorted({max(hdim) for hdim in HDIMS}))
    tiles: ClassVar[dict[str, type[Any]]] = {"cpu": CpuTile, "cdna": CdnaTile, "cuda": CudaTile}
    optdim_field = "hdim_q"
    program = "tile_example_fmha_bwd"

    def __init__(self, mask: str) -> None:
        self.space = make_space(mask)
        self.rules = make_rules(self.space)
        self.parts = (DotDoO(), ConvertDq())

    def served(self, tile: Any) -> Region:
        """Less what a pipeline of CDNA is not written for."""
        region = super().served(tile)
        lacks = tile.lacks if isinstance(tile, CdnaTile) else ""
        return region_minus(region, self.space.where(lacks)) if lacks else region

    def shadows(self, one: Instance, other: Instance) -> bool:
        """The same of a pipeline's tiles with as many keys, which cut dq, that pad head dims no more."""
        a, b = one.tile, other.tile
        return (
            a.pipeline == b.pipeline
            and a.bn0 == b.bn0
            and a.dq <= b.dq
            and a.dv <= b.dv
            and super().shadows(one, other)
        )

    def problem(self, instance: Instance) -> tuple[str, ...]:
        """Data type and head dims, and what has parts of dq stored."""
        tile = instance.tile
        stores = isinstance(tile, CdnaTile) and tile.stores_dq
        stored = ("-mode=1", "-deterministic=1") if stores else ()
        return (f"-prec={tile.dtypes[0]}", f"-d={tile.hdim_q}", f"-d_v={tile.hdim_v}", *stored)

    def figure_problems(self, instance: Instance) -> dict[Point, tuple[str, ...]]:
        """On CDNA."""
        return cdna_figures.problems(instance) if isinstance(instance.target, CdnaTarget) else {}

    def figures_of(self, instance: Instance, cycles: dict[Point, float]) -> dict[str, float]:
        """How fast blocks are."""
        return cdna_figures.of_cycles(instance, cycles)

    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]:
        """CK's tile: bm0, bn0, what the five products reduce over, head dims; then warps and their shapes."""
        hdim_q, hdim_v = HDIMS[first]
        tile = instance.tile.ck_tile(instance.target)
        bm0, bn0 = tile["bm0"], tile["bn0"]
        shape = f"w{tile['wm']}x{tile['wn']}x{tile['wk']}"
        return (
            f"b{bm0}x{bn0}x{hdim_q}x{bm0}x{hdim_v}x{bm0}x{bn0}x{hdim_q}x{hdim_v}_",
            f"r1x1x1_r1x1x1_r1x1x1_{shape}_{shape}_o1_maxq{tile.get('max_q', 0)}",
        )

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """All head dims up to the greatest, since kernels pad every side."""
        multiple = tile.hdim_multiple
        yield box, tuple((multiple, hdim, multiple) for hdim in HDIMS[box[0].bit_length() - 1])

    def row_fields(self, instance: Instance) -> dict[str, str]:
        """The fields of the table's row; of NVIDIA GPU instances also what a launch asks for."""
        fields = super().row_fields(instance)
        if instance.target.kind == "cuda":
            fields["shared_bytes"] = f"{instance.tile.shared_bytes}"
        return fields


class RowsPart(Part):
    """A sub-kernel that takes tensors of one head dim row by row."""

    part_of = API
    entries: ClassVar[dict[str, str]] = {"run": "run"}
    head_axes = 2
    traits: tuple[Trait, ...] = (DATA_TYPE, IS_GROUP_MODE)
    buckets = HDIMS_OF_ONE
    rules = ()
    tiles: ClassVar[dict[str, type[Any]]] = {"cpu": RowsTile, "cdna": GpuRowsTile, "cuda": GpuRowsTile}

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Whether one takes all rows that the other takes, too."""
        return bool(one.tile.multiple <= other.tile.multiple) and super().shadows(one, other)

    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]:
        """The tile."""
        return (f"b{instance.tile.bm0}",)

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """All head dims up to the greatest; of each data type, since rows are whole units."""
        largest, axis = HDIMS_OF_ONE[max(bits(box[0]))], self.space.index["dtype"]
        if tile.multiple == 1:
            yield box, ((1, largest, 1),)
            return
        for dtype in self.space.values(box, "dtype"):
            multiple = tile.multiple // BYTES[dtype]
            one = (*box[:axis], self.space.axes[axis].mask((dtype,)), *box[axis + 1 :])
            yield one, ((multiple, largest, multiple),)


class DotDoO(RowsPart):
    """d = the sums of do o by rows; with a learned sink also its gradient."""

    api = "bwd_dot_do_o"
    name = family = "fmha_bwd_dot_do_o"
    kernels = ("dot_do_o",)
    entries: ClassVar[dict[str, str]] = {"run": "run", "d_sink": "d_sink"}
    sizes = (Size("hdim_v", fills=True),)
    optdim_field = None

    def __init__(self) -> None:
        self.space: Space = dot_do_o_space()


class ConvertDq(RowsPart):
    """dq = the sum of its parts, in the storage type."""

    api = "bwd_convert_dq"
    name = family = "fmha_bwd_convert_dq"
    kernels = ("convert_dq",)
    sizes = (Size("hdim_q", fills=True),)
    traits = (DATA_TYPE, IS_GROUP_MODE, IS_DETERMINISTIC)
    optdim_field = "hdim_q"

    def __init__(self) -> None:
        self.space: Space = convert_dq_space()


def operation(mask: str) -> FmhaBwd:
    """This module's operation."""
    return FmhaBwd(mask)
