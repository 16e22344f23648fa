# SPDX-License-Identifier: MIT
"""hadamard_rotate: rows by the normalised Walsh-Hadamard transform."""

from __future__ import annotations

from codegen.ops.fmha_fwd.traits import DTYPES
from codegen.ops.turbo4_rows import ROTATED, TYPES, Turbo4Rows
from codegen.schema import Size, Trait
from codegen.space import Axis, Space

HDIM = Axis(
    "hdim",
    tuple(f"{hdim}" for hdim in ROTATED),
    tuple(f"d{hdim}" for hdim in ROTATED),
    limits=tuple((hdim,) for hdim in ROTATED),
)


class HadamardRotate(Turbo4Rows):
    """The operation."""

    api = name = family = "hadamard_rotate"
    kernels = ("hadamard_rotate",)
    optdim_field = "hdim"
    space = Space((HDIM, Axis("dtype", TYPES, TYPES)))
    traits = (Trait("data_type", "dtype", DTYPES),)
    sizes = (Size("hdim"),)
    rules = ()
    cpu_range = (ROTATED[0], ROTATED[-1], ROTATED[0])


def operation(mask: str) -> HadamardRotate:
    """This module's operation."""
    return HadamardRotate()
