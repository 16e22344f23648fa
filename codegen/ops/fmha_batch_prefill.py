# SPDX-License-Identifier: MIT
"""fmha_batch_prefill: attention of concatenated queries over keys and values in pages."""

from __future__ import annotations

from codegen.ops.fmha_fwd.traits import (
    BIAS_TYPE,
    DTYPES,
    MASK_AXES,
    MASK_TYPE,
    PADS,
    QSCALES,
    flag_axis,
    hdim_axis,
)
from codegen.ops.pages import LAYOUTS, TYPES, Pages, rules_of
from codegen.schema import Trait, flag
from codegen.space import Axis, Space

PAGES = tuple(str(1 << power) for power in range(17))
LOOKUPS = ("sglang", "vllm")
SCALES = ("no", "pt", "kvbs", "th")


class FmhaBatchPrefill(Pages):
    """The operation."""

    api = "batch_prefill"
    name = "fmha_batch_prefill"
    kernels = ("batch_prefill",)
    head_axes = 4
    middle = "b128x128x32x{v}x32x{q}_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_async"
    traits = (
        Trait("data_type", "dtype", DTYPES),
        MASK_TYPE,
        BIAS_TYPE,
        Trait("qscale_type", "qscale", QSCALES),
        flag("is_group_mode", "mode", "batch", "group"),
        flag("is_v_rowmajor", "vlayout", "c", "r"),
        flag("has_logits_soft_cap", "logits"),
        flag("has_lse", "lse"),
        flag("has_dropout", "dropout"),
        flag("skip_min_seqlen_q", "skip"),
        flag("has_sink", "sink"),
        Trait("kv_memory_layout", "layout", LAYOUTS),
        Trait("kv_lookup_table", "lookup", LOOKUPS),
    )

    def __init__(self, mask: str) -> None:
        self.space = space = Space(
            (
                hdim_axis(),
                Axis("dtype", TYPES, TYPES),
                Axis("mode", ("group",), ("group",)),
                Axis("page", PAGES, tuple(f"ps{size}" for size in PAGES)),
                Axis("vlayout", ("r",), ("vr",)),
                Axis("pad", (PADS[-1],), (PADS[-1],)),
                flag_axis("logits", "logits"),
                Axis("bias", BIAS_TYPE.words, ("nbias", "bias", "alibi")),
                MASK_AXES[mask],
                flag_axis("lse", "lse"),
                flag_axis("dropout", "dropout"),
                flag_axis("skip", "skip"),
                Axis("qscale", SCALES, ("nqscale", "pertensor", "kv_blockscale", "pertokenhead")),
                flag_axis("sink", "sink"),
                Axis("layout", LAYOUTS, LAYOUTS),
                Axis("lookup", LOOKUPS, LOOKUPS),
            )
        )
        self.rules = rules_of(space, qscale=SCALES[1:])


def operation(mask: str) -> FmhaBatchPrefill:
    """This module's operation."""
    return FmhaBatchPrefill(mask)
