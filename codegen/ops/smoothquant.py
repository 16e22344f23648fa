# SPDX-License-Identifier: MIT
"""smoothquant: smoothing of columns and quantization of rows."""

from __future__ import annotations

from codegen.ops.rows import Rows, traits


def operation(mask: str) -> Rows:
    """This module's operation."""
    axes = (traits.input_axis(), traits.output_axis(int8=""), traits.padding_axis())
    return Rows("smoothquant", axes, (traits.PREC_I, traits.PREC_O))
