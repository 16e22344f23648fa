# SPDX-License-Identifier: MIT
"""The page of fmha_fwd_splitkv: decoding over caches, whole or in pages, beside reading memory and torch.

torch attends to whole caches in place, and gathers pages first, for which it has no operator on CPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from page import Case, Page
from pages._decode import HEADS, Decode, DecodeCase


class Splits(Decode):
    """A problem of fmha_fwd_splitkv, which cuts keys as it thinks best."""

    def words(self, kv: str) -> list[str]:
        """For tile_example_fmha_fwd."""
        return [
            *(f"-b={self.b}", f"-h={self.h}", f"-h_k={self.h_k}", "-s=1", f"-s_k={self.ctx}", f"-d={self.d}"),
            *(f"-prec={kv}", "-api=fwd_splitkv", "-num_splits=0", f"-iperm={int(self.layout == 'hnd')}"),
            *((f"-page_block_size={self.page}",) if self.page else ()),
        ]


SUITES: dict[str, tuple[Splits, ...]] = {
    "table": tuple(
        Splits(b, *heads, ctx, 0, "hnd") for b, ctx, heads in product((1, 8, 64), (1024, 8192), HEADS)
    ),
    "pages": tuple(
        Splits(b, *heads, ctx, 128, layout)
        for b, ctx, heads, layout in product((1, 8, 64), (1024, 8192), HEADS, ("nhd", "hnd"))
    ),
}


class FmhaFwdSplitkv(Page):
    """fmha_fwd_splitkv."""

    name = "fmha_fwd_splitkv"
    suites = tuple(SUITES)
    usual = ("table",)
    precs = ("bf16", "fp16")
    programs = ("tile_example_fmha_fwd",)
    rivals = {"torch": "torch"}
    rival_module = "paged_attention"
    pictured = ("table",)

    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """Each problem in each type."""
        return [DecodeCase(self.programs[0], shape, kv) for shape in SUITES[suite] for kv in precs]


PAGE = FmhaFwdSplitkv()
