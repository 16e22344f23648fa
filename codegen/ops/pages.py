# SPDX-License-Identifier: MIT
"""What operations on caches of keys and values share: rows are found in pages; fmha_fwd attends to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from codegen.ops.fmha_fwd.traits import (
    BIAS_TYPE,
    DTYPES,
    FP8,
    HDIMS,
    MASK_AXES,
    MASK_TYPE,
    MX,
    PADS,
    QSCALES,
    flag_axis,
    hdim_axis,
)
from codegen.schema import Range, Size, Trait, flag
from codegen.space import Axis, Box, Region, Space, region_meet
from codegen.spec import Instance, Operation, Rule
from codegen.targets import Target

TYPES = tuple(dtype for dtype in DTYPES if dtype not in MX)
LAYOUTS = ("vectorized", "linear", "vllm")
LARGEST = max(max(hdim) for hdim in HDIMS)


@dataclass(frozen=True)
class CpuTile:
    """A row of instances/attention_pages.toml for a CPU."""

    pipeline: str
    epilogue: str
    compute: str  # as rows of a CPU name one; nothing is computed
    why: str
    serves: str = ""

    held: ClassVar[str] = ""
    name_tokens: ClassVar[dict[str, str]] = {"compute": "c", "epilogue": "e"}
    dtypes: ClassVar[tuple[str, ...]] = ()
    multiple: ClassVar[int] = 1
    quantised_multiple: ClassVar[int] = 1
    largest: ClassVar[int] = LARGEST
    kind: ClassVar[str] = "cpu"
    emitted: ClassVar[bool] = True

    @property
    def block(self) -> str:
        """Threads in the short name."""
        return "w1"

    def ck_tile(self, target: Target) -> dict[str, int]:
        """The tile's fields in C."""
        return {"rows": 1}

    def cycles(self, target: Target) -> float:
        """What a page costs."""
        return 50.0

    def needs(self, target: Target) -> str:
        """What the machine and a call must bring."""
        return "any sizes, any strides, pointers aligned to their elements"

    def numerics(self, target: Target) -> str:
        """How numbers are rounded."""
        return "those of the instance of fmha_fwd that attends"

    def complaint(self, target: Target) -> str:
        """Why the tile does not fit the target, if it does not."""
        return ""


@dataclass(frozen=True)
class CdnaTile(CpuTile):
    """A row for AMD's GPUs, where an instance of fmha_fwd finds the rows by itself."""

    multiple: ClassVar[int] = 8  # of head dims
    quantised_multiple: ClassVar[int] = 16
    largest: ClassVar[int] = 256
    kind: ClassVar[str] = "cdna"
    alignment: ClassVar[int] = 16
    emitted: ClassVar[bool] = False

    def needs(self, target: Target) -> str:
        """What the machine and a call must bring."""
        return f"head dims that are multiples of {self.multiple}, rows aligned to {self.alignment} bytes"


class CudaTile(CdnaTile):
    """A row for NVIDIA's GPUs, where it is the same."""

    kind: ClassVar[str] = "cuda"


class Pages(Operation):
    """An operation on caches, whose first axis is the head dims."""

    family = "attention_pages"
    entries: ClassVar[dict[str, str]] = {"find": "run"}
    tiles: ClassVar[dict[str, type[Any]]] = {"cpu": CpuTile, "cdna": CdnaTile, "cuda": CudaTile}
    optdim_field = "hdim_q"
    sizes = (Size("hdim_q"), Size("hdim_v"))
    middle: str  # the tile in CK's names, which says nothing of CPUs

    def served(self, tile: Any) -> Region:
        """All there is, or what the row names."""
        return region_meet(self.everything, self.space.where(tile.serves))

    def shadows(self, one: Instance, other: Instance) -> bool:
        """Rows of one target would be equal."""
        return True

    def cost_words(self, instance: Instance) -> str:
        """Finding rows takes little time; kernels that attend themselves say how fast they do."""
        if hasattr(instance.tile, "efficiency"):
            return super().cost_words(instance)
        return "that of the instance of fmha_fwd that attends"

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """All head dims that the kind takes; rows of 8 bits have whole accesses of a GPU, too."""
        dtype = self.space.index["dtype"]
        fp8 = sum(1 << number for number, name in enumerate(self.space.axes[dtype].values) if name in FP8)
        for part, multiple in ((~fp8, tile.multiple), (fp8, tile.quantised_multiple)):
            if box[dtype] & part:
                served = (*box[:dtype], box[dtype] & part, *box[dtype + 1 :])
                yield served, ((multiple, tile.largest, multiple),) * 2

    def ck_middle(self, instance: Instance, first: int) -> tuple[str, ...]:
        """CK's tile for GPUs that have MFMA."""
        hdim_q, hdim_v = HDIMS[first]
        return (self.middle.format(q=hdim_q, v=hdim_v),)


class OverCache(Pages):
    """An operation with CK's arguments for caches: a block table, or indices of sequences."""

    head_axes = 3
    skips = False  # whether it has the trait skip_min_seqlen_q

    def __init__(self, mask: str) -> None:
        self.traits = (
            Trait("data_type", "dtype", DTYPES),
            MASK_TYPE,
            BIAS_TYPE,
            Trait("qscale_type", "squant", QSCALES),
            flag("is_group_mode", "mode", "batch", "group"),
            flag("is_v_rowmajor", "vlayout", "c", "r"),
            flag("has_logits_soft_cap", "logits"),
            flag("has_lse", "lse"),
            *((flag("skip_min_seqlen_q", "skip"),) if self.skips else ()),
            flag("has_sink", "sink"),
        )
        self.space = space = Space(
            (
                hdim_axis(),
                Axis("dtype", TYPES, TYPES),
                Axis("mode", ("batch", "group"), ("batch", "group")),
                Axis("vlayout", ("r",), ("vr",)),
                Axis("pad", (PADS[-1],), (PADS[-1],)),
                flag_axis("logits", "logits"),
                Axis("bias", BIAS_TYPE.words, ("nbias", "bias", "alibi")),
                MASK_AXES[mask],
                flag_axis("lse", "lse"),
                *((flag_axis("skip", "skip"),) if self.skips else ()),
                Axis("squant", ("no", "pt"), ("nsquant", "squant")),
                Axis("pagedkv", ("no", "yes"), ("npagedkv", "pagedkv")),
                flag_axis("sink", "sink"),
            )
        )
        self.rules = rules_of(space, squant=("pt",))


def rules_of(space: Space, **scales: tuple[str, ...]) -> tuple[Rule, ...]:
    """Combinations that no instance serves, with reasons. `scales`: the axis of descales, and its kinds."""
    return (
        Rule(
            space.box(logits=("yes",), bias=("bias",)),
            "a soft cap goes without an elementwise bias, as in CK",
        ),
        Rule(
            space.box(dtype=(d for d in TYPES if d not in FP8), **scales),
            "descales belong to fp8 inputs",
        ),
    )
