# SPDX-License-Identifier: MIT
"""moe_smoothquant: smoothing and quantization of tokens for each of their experts."""

from __future__ import annotations

from codegen.ops.rows import Rows, traits


def operation(mask: str) -> Rows:
    """This module's operation."""
    axes = (traits.input_axis(), traits.output_axis(int8="i8"), traits.padding_axis())
    return Rows("moe_smoothquant", axes, (traits.PREC_I, traits.PREC_O), by_expert=True, size="hidden_size")
