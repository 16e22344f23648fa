# SPDX-License-Identifier: MIT
"""layernorm2d_fwd: layer normalization of rows."""

from __future__ import annotations

from codegen.ops.rows import Rows, traits
from codegen.schema import flag


def operation(mask: str) -> Rows:
    """This module's operation."""
    axes = (
        traits.input_axis(),
        traits.any_output_axis(),
        traits.scales_axis(),
        traits.flag_axis("xbias", "xbias"),
        traits.add_axis(),
        traits.quant_axis(),
        traits.padding_axis(),
        traits.flag_axis("save_mv", "mv"),
    )
    members = (
        traits.PREC_I,
        traits.PREC_O,
        flag("xbias", "xbias"),
        traits.FUSED_ADD,
        traits.FUSED_QUANT,
        flag("save_mean_var", "save_mv"),
    )
    return Rows("layernorm2d_fwd", axes, members, statistics="mean")
