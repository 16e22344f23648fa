# SPDX-License-Identifier: MIT
"""fmha_fwd_appendkv: appends new keys and values to the caches of sequences, and rotates keys and queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from codegen.ops.fmha_fwd.traits import DTYPES, FP8, HDIMS, MX, PADS, hdim_axis
from codegen.ops.gpu_units import complaint_of_unit, workgroup_cycles
from codegen.schema import Range, Size, Trait, flag
from codegen.space import Axis, Box, Region, Space, region_meet
from codegen.spec import Instance, Operation, Rule
from codegen.targets import Target

ROPES = ("no", "inter", "half")
TYPES = tuple(dtype for dtype in DTYPES if dtype not in MX)
LARGEST = max(max(hdim) for hdim in HDIMS)
THREADS = 256  # of a workgroup


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A row of instances/fmha_fwd_appendkv.toml."""

    pipeline: str
    epilogue: str
    compute: str  # the type that is rotated in
    why: str
    serves: str = ""

    held: ClassVar[str] = ""
    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e"}
    dtypes: ClassVar[tuple[str, ...]] = TYPES
    multiple: ClassVar[int] = 1
    alignment: ClassVar[int] = 0
    fp32: ClassVar[str]  # how the kind spells the only type that is rotated in

    def needs(self, target: Target) -> str:
        """What the machine and a call must bring."""
        return "any sizes, any strides, pointers aligned to their elements"

    def numerics(self, target: Target) -> str:
        """How numbers are rounded."""
        return "rotated in fp32, to nearest even; what is not rotated is copied"

    def complaint(self, target: Target) -> str:
        """Why the tile does not fit the target, if it does not."""
        return "" if self.compute == self.fp32 else f"compute '{self.compute}' is not {self.fp32}"


@dataclass(frozen=True, kw_only=True)
class CpuTile(Tile):
    """A row for a CPU, a thread of which takes a row of numbers after another."""

    efficiency: float  # measured share of the target's multiply-adds; memory is the limit

    fp32: ClassVar[str] = "f32"

    @property
    def block(self) -> str:
        """Threads in the short name."""
        return "w1"

    def ck_tile(self, target: Target) -> dict[str, int]:
        """The tile's fields in C."""
        return {"rows": 1, "lanes": 1, "bytes": 0}

    def cycles(self, target: Target) -> float:
        """What a row costs beside its elements."""
        return 50.0


@dataclass(frozen=True, kw_only=True)
class GpuTile(Tile):
    """A row for a GPU."""

    lanes: int = 16  # of a row
    bytes: int = 0  # that a lane moves at once; 0: an element's

    name_tokens: ClassVar[dict[str, str]] = {**Tile.name_tokens, "bytes": "v"}
    threads: ClassVar[int] = THREADS
    fp32: ClassVar[str] = "fp32"

    @property
    def rows(self) -> int:
        """Of a workgroup."""
        return THREADS // self.lanes

    @property
    def block(self) -> str:
        """Rows of a workgroup and its threads in the short name."""
        return f"b{self.rows}_t{THREADS}"

    @property
    def multiple(self) -> int:  # type: ignore[override]
        """Of head dims, in bytes: rows are whole units."""
        return self.bytes or 1

    @property
    def alignment(self) -> int:  # type: ignore[override]
        """Of rows: that of a unit. 0: their element's."""
        return self.bytes

    def ck_tile(self, target: Target) -> dict[str, int]:
        """The tile's fields in C."""
        return {"rows": self.rows, "lanes": self.lanes, "bytes": self.bytes}

    def cycles(self, target: Target) -> float:
        """What a workgroup costs beside its bytes."""
        return workgroup_cycles(self.bytes)

    def needs(self, target: Target) -> str:
        """What the machine and a call must bring."""
        if not self.bytes:
            return super().needs(target)
        return f"rows that are multiples of {self.bytes} bytes and begin at such"

    def complaint(self, target: Target) -> str:
        """Why the tile does not fit the target, if it does not."""
        if found := super().complaint(target):
            return found
        if self.lanes < 1 or THREADS % self.lanes:
            return f"lanes = {self.lanes}: rows share the {THREADS} threads of a workgroup evenly"
        return complaint_of_unit(self.bytes)


BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, **dict.fromkeys(FP8, 1)}


class FmhaFwdAppendkv(Operation):
    """The operation."""

    api = "fwd_appendkv"
    name = family = "fmha_fwd_appendkv"
    kernels = ("fwd_appendkv",)
    entries: ClassVar[dict[str, str]] = {"run": "run"}
    head_axes = 2
    tiles: ClassVar[dict[str, type[Any]]] = {"cpu": CpuTile, "cdna": GpuTile, "cuda": GpuTile}
    optdim_field = "hdim_q"
    space = Space(
        (
            hdim_axis(),
            Axis("dtype", TYPES, TYPES),
            Axis("vlayout", ("r",), ("vr",)),
            Axis("pad", (PADS[-1],), (PADS[-1],)),
            Axis("rope", ROPES, ("", "inter", "half"), short=("nrope", "inter", "half")),
            Axis("pagedkv", ("no", "yes"), ("", "pagedkv"), short=("npagedkv", "pagedkv")),
        )
    )
    traits = (
        Trait("data_type", "dtype", DTYPES),
        Trait("rope_type", "rope", ROPES),
        flag("is_v_rowmajor", "vlayout", "c", "r"),
    )
    sizes = (Size("hdim_q"), Size("hdim_v"))
    rules = (Rule(space.box(dtype=FP8, rope=ROPES[1:]), "fp8 is not rotated: it has too few digits"),)

    def served(self, tile: Any) -> Region:
        """All there is, or what the row names."""
        return region_meet(self.everything, self.space.where(tile.serves))

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Whether one takes all that the other takes, and costs no more for any of it."""
        a, b = one.tile, other.tile
        return bool(
            a.multiple <= b.multiple
            and one.macs_per_cycle >= other.macs_per_cycle
            and one.tile_cycles <= other.tile_cycles
        )

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """Head dims of each data type: rows are whole units."""
        axis = self.space.index["dtype"]
        for dtype in self.space.values(box, "dtype"):
            multiple = max(1, tile.multiple // BYTES[dtype])
            range_ = (multiple, LARGEST, multiple)
            yield (*box[:axis], self.space.axes[axis].mask((dtype,)), *box[axis + 1 :]), (range_, range_)

    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]:
        """CK's tile: 64 queries or keys of a workgroup, whole rows of q and v."""
        hdim_q, hdim_v = HDIMS[first]
        return (f"b64x64x{hdim_q}x{hdim_v}",)


def operation(mask: str) -> FmhaFwdAppendkv:
    """This module's operation."""
    return FmhaFwdAppendkv()
