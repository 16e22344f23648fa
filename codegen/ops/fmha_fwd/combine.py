# SPDX-License-Identifier: MIT
"""combine: the sub-kernel of fmha_fwd that puts the results of parts of the keys together.

An operation with a table of its own, whatever kernel left the parts: types and traits are arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from codegen.ops.fmha_fwd.traits import DTYPES, HDIMS
from codegen.schema import Range, Size, Trait
from codegen.space import Axis, Box, Region, Space, region_meet
from codegen.spec import Instance, Operation
from codegen.targets import Target

HDIM_MULTIPLE = 8  # of what kernels that cut keys take
LARGEST = max(hdim_v for _, hdim_v in HDIMS)


@dataclass(frozen=True)
class CombineTile:
    """A row of instances/fmha_fwd_combine.toml."""

    pipeline: str
    epilogue: str
    compute: str  # the type of partial results
    rows: int  # of a workgroup, each a wave's
    why: str
    serves: str = ""

    held: ClassVar[str] = ""
    alignment: ClassVar[int] = 0
    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e"}
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    wave: ClassVar[int] = 32  # lanes

    @property
    def block(self) -> str:
        """Rows of a workgroup in the short name."""
        return f"b{self.rows}"

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.wave * self.rows

    def ck_tile(self, target: Target) -> dict[str, int]:
        """The tile's fields in C."""
        return {"rows": self.rows}

    def cycles(self, target: Target) -> float:
        """What a workgroup costs beside its elements."""
        return 1000.0

    def needs(self, target: Target) -> str:
        """What the machine and a call must bring."""
        return f"head dims of v that are multiples of {HDIM_MULTIPLE}"

    def numerics(self, target: Target) -> str:
        """How numbers are rounded and functions approximated."""
        return "fp32 sums; results to nearest even"

    def complaint(self, target: Target) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute != "fp32":
            return f"compute '{self.compute}' is not fp32"
        return "" if 0 < self.rows <= 16 else f"rows = {self.rows}: 1 to 16"


@dataclass(frozen=True)
class CdnaCombineTile(CombineTile):
    """The same on CDNA."""

    wave: ClassVar[int] = 64


class Combine(Operation):
    """The sub-kernel."""

    api = "fwd_combine"
    name = family = "fmha_fwd_combine"
    kernels = ("combine",)
    entries: ClassVar[dict[str, str]] = {"run": "run"}
    head_axes = 1
    tiles: ClassVar[dict[str, type[Any]]] = {"cuda": CombineTile, "cdna": CdnaCombineTile}
    optdim_field = None
    space = Space((Axis("dtype", DTYPES, DTYPES),))
    traits = (Trait("data_type", "dtype", DTYPES),)
    sizes = (Size("hdim_v"),)
    rules = ()

    def served(self, tile: Any) -> Region:
        """All there is, or what the row names."""
        return region_meet(self.everything, self.space.where(tile.serves))

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Whether one has no larger workgroups."""
        return bool(one.tile.rows <= other.tile.rows)

    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]:
        """The tile."""
        return (f"b{instance.tile.rows}",)

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """All head dims up to the greatest."""
        yield box, ((HDIM_MULTIPLE, LARGEST, HDIM_MULTIPLE),)
