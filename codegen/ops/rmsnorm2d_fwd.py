# SPDX-License-Identifier: MIT
"""rmsnorm2d_fwd: root mean square normalization of rows."""

from __future__ import annotations

from codegen.ops.rows import Rows, traits
from codegen.schema import flag


def operation(mask: str) -> Rows:
    """This module's operation."""
    axes = (
        traits.input_axis(),
        traits.any_output_axis(),
        traits.scales_axis(),
        traits.add_axis(),
        traits.quant_axis(),
        traits.padding_axis(),
        traits.flag_axis("save_rms", "rms"),
        traits.flag_axis("save_unquant", "saveunquant"),
        traits.flag_axis("s", "t5ml", "nsm"),
    )
    members = (
        traits.PREC_I,
        traits.PREC_O,
        traits.FUSED_ADD,
        traits.FUSED_QUANT,
        flag("save_rms", "save_rms"),
        flag("save_unquant", "save_unquant"),
        flag("use_model_sensitive_rmsnorm", "s"),
    )
    return Rows("rmsnorm2d_fwd", axes, members, statistics="square")
