# SPDX-License-Identifier: MIT
"""Which values the fields of a tile on CDNA may be tried with: those that --tune goes through."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.targets import CdnaTarget

if TYPE_CHECKING:
    from codegen.ops.fmha_fwd.cdna import CdnaTile

WAVES = (1, 2, 4, 8, 16)
KEYS = (16, 32, 64, 96, 128, 192, 256)
OCCUPANCIES = (1, 2, 3, 4, 5, 6, 8)


def variants(tile: CdnaTile, target: CdnaTarget) -> Iterator[CdnaTile]:
    """Tiles for what a tile serves, in all shapes, whether or not they fit."""
    shapes = target.mfma.get(tile.compute, ())
    sizes = sorted({(m, n) for m, n, _ in shapes}, reverse=True)
    # 0 stands for an access of each half of a wave; a product may sum over more where an instruction does.
    sums = [0, *sorted({k for _, _, k in shapes if k > 2 * tile.chunk})]
    for rm0, (wm0, wn0), wk0, bn0, occupancy in itertools.product(WAVES, sizes, sums, KEYS, OCCUPANCIES):
        yield replace(tile, bm0=rm0 * wm0, rm0=rm0, wm0=wm0, wn0=wn0, wk0=wk0, bn0=bn0, occupancy=occupancy)
