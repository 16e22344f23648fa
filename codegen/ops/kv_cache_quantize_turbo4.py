# SPDX-License-Identifier: MIT
"""kv_cache_quantize_turbo4: new keys and values to pages of 4-bit caches."""

from __future__ import annotations

from codegen.ops.fmha_fwd.traits import DTYPES, HDIMS, flag_axis, hdim_axis
from codegen.ops.turbo4_rows import TYPES, Turbo4Rows
from codegen.schema import Size, Trait, flag
from codegen.space import Axis, Space

LARGEST = max(max(hdim) for hdim in HDIMS)
NUMBERS = 2  # of a byte


class KvCacheQuantizeTurbo4(Turbo4Rows):
    """The operation."""

    api = name = family = "kv_cache_quantize_turbo4"
    kernels = ("kv_cache_quantize_turbo4",)
    optdim_field = "hdim_q"
    space = Space((hdim_axis(), Axis("dtype", TYPES, TYPES), flag_axis("rotation", "rotation")))
    traits = (Trait("data_type", "dtype", DTYPES), flag("has_rotation", "rotation"))
    sizes = (Size("hdim_q"), Size("hdim_v"))
    rules = ()
    cpu_range = (NUMBERS, LARGEST, NUMBERS)


def operation(mask: str) -> KvCacheQuantizeTurbo4:
    """This module's operation."""
    return KvCacheQuantizeTurbo4()
