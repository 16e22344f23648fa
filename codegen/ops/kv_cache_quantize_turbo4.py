# SPDX-License-Identifier: MIT
"""kv_cache_quantize_turbo4: new keys and values to pages of 4-bit caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen.ops.fmha_fwd.traits import DTYPES, HDIMS, flag_axis, hdim_axis
from codegen.ops.turbo4_rows import TYPES, Turbo4Rows
from codegen.schema import Range, Size, Trait, flag
from codegen.space import Axis, Box, Space

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

    def ranges(self, box: Box, tile: Any) -> Iterator[tuple[Box, tuple[Range, ...]]]:
        """Calls check what a rotation takes."""
        yield box, ((NUMBERS, LARGEST, NUMBERS),) * 2


def operation(mask: str) -> KvCacheQuantizeTurbo4:
    """This module's operation."""
    return KvCacheQuantizeTurbo4()
