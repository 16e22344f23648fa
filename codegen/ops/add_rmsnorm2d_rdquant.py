# SPDX-License-Identifier: MIT
"""add_rmsnorm2d_rdquant: sum, root mean square normalization and quantization of rows."""

from __future__ import annotations

from codegen.ops.rows import Rows, traits
from codegen.schema import flag


def operation(mask: str) -> Rows:
    """This module's operation."""
    axes = (
        traits.input_axis(),
        traits.output_axis(int8=""),
        traits.padding_axis(),
        traits.flag_axis("save_x", "x"),
    )
    members = (traits.PREC_I, traits.PREC_O, flag("save_x", "save_x"))
    return Rows("add_rmsnorm2d_rdquant", axes, members, statistics="square")
