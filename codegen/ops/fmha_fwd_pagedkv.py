# SPDX-License-Identifier: MIT
"""fmha_fwd_pagedkv: attention over caches of keys and values, for many queries."""

from __future__ import annotations

from codegen.ops.pages import OverCache


class FmhaFwdPagedkv(OverCache):
    """The operation."""

    api = "pagedkv_prefill"
    name = "fmha_fwd_pagedkv"
    kernels = ("pagedkv_prefill",)
    skips = True
    middle = "b128x128x32x{v}x32x{q}_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_pagedkv"


def operation(mask: str) -> FmhaFwdPagedkv:
    """This module's operation."""
    return FmhaFwdPagedkv(mask)
