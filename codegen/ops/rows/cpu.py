# SPDX-License-Identifier: MIT
"""Tiles of the operations on rows on CPUs: every trait is an argument, so there is one a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codegen.ops import cpu_tile
from codegen.ops.rows.traits import INPUTS
from codegen.targets import CpuTarget


@dataclass(frozen=True)
class CpuTile(cpu_tile.CpuTile):
    """A row of instances/rows.toml for a CPU."""

    pipeline: str
    epilogue: str
    compute: str  # the type that everything is computed in
    efficiency: float  # measured share of the target's multiply-adds; memory is the limit
    why: str  # the reason that the row is there
    serves: str = ""  # clauses, as for --where; "": all there is

    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e"}
    dtypes: ClassVar[tuple[str, ...]] = INPUTS
    columns: ClassVar[int] = 2**31 - 1  # at most
    multiple: ClassVar[int] = 1
    alignment: ClassVar[int] = 0  # that of elements

    @property
    def block(self) -> str:
        """Block and threads in the short name."""
        return "w1"

    def ck_tile(self, target: CpuTarget) -> dict[str, int]:
        """CK's fields: a thread takes a row, vector by vector."""
        return {"rm": 1, "rn": 1, "tm": 1, "tn": 1, "wn": 1, "vn": target.lanes}

    def cycles(self, target: CpuTarget) -> float:
        """What a row costs beside its columns."""
        return 100.0

    def numerics(self, target: CpuTarget) -> str:
        """How numbers are rounded and functions approximated."""
        return "fp32 throughout; the variance is that of differences from a guess; results to nearest even"

    def complaint(self, target: CpuTarget) -> str:
        """Why the tile does not fit the target, if it does not."""
        if self.compute != "f32":
            return f"compute '{self.compute}' is not f32"
        if not 0 < self.efficiency <= 1:
            return "0 < efficiency <= 1"
        return ""
