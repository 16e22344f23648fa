# SPDX-License-Identifier: MIT
"""paged_attention: decoding over keys and values in pages, which may be quantised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen.ops.fmha_fwd.traits import BIAS_TYPE, CACHE_TYPES, DTYPES, flag_axis, hdim_axis
from codegen.ops.pages import LAYOUTS, Pages
from codegen.schema import Range, Trait, flag
from codegen.space import Axis, Box, Space
from codegen.spec import Rule

TYPES = ("fp32", "fp16", "bf16")


class PagedAttention(Pages):
    """The operation."""

    api = "paged_attention"
    name = "paged_attention"
    kernels = ("paged_attention",)
    head_axes = 5
    middle = "p256"
    traits = (
        Trait("data_type", "dtype", DTYPES),
        Trait("kv_cache_dtype", "kv", CACHE_TYPES),
        Trait("kv_memory_layout", "layout", LAYOUTS),
        BIAS_TYPE,
        flag("is_group_mode", "mode", "batch", "group"),
        flag("has_logits_soft_cap", "logits"),
        flag("has_lse", "lse"),
        flag("has_sink", "sink"),
    )

    def __init__(self) -> None:
        self.space = space = Space(
            (
                hdim_axis(),
                Axis("dtype", TYPES, TYPES),
                Axis("kv", CACHE_TYPES, CACHE_TYPES),
                Axis("layout", LAYOUTS, LAYOUTS),
                Axis("mode", ("batch", "group"), ("batch", "group")),
                flag_axis("logits", "logits"),
                Axis("bias", ("no", "alibi"), ("nbias", "alibi")),
                flag_axis("lse", "lse"),
                flag_axis("sink", "sink"),
            )
        )
        self.rules = (
            Rule(
                space.box(kv=("turbo4",), layout=("vectorized", "vllm")),
                "slots of turbo4 have their norms behind their numbers: pages are linear",
            ),
        )

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """All head dims that the kind takes; a GPU reads 16 numbers of a quantised row at once."""
        kv = self.space.index["kv"]
        auto = 1 << CACHE_TYPES.index("auto")
        for part, multiple in ((box[kv] & auto, tile.multiple), (box[kv] & ~auto, tile.quantised_multiple)):
            if part:
                yield (*box[:kv], part, *box[kv + 1 :]), ((multiple, tile.largest, multiple),) * 2


def operation(mask: str) -> PagedAttention:
    """This module's operation."""
    return PagedAttention()
