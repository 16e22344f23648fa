# SPDX-License-Identifier: MIT
"""fmha_fwd_splitkv: attention over caches of keys and values, whose keys are split."""

from __future__ import annotations

from codegen.ops.pages import OverCache
from codegen.spec import Instance


class FmhaFwdSplitkv(OverCache):
    """The operation."""

    api = "fwd_splitkv"
    name = "fmha_fwd_splitkv"
    kernels = ("combine", "fwd_splitkv")  # a filter's first part chooses nothing: combine is one of fwd's
    middle = "b64x128x32x{v}x32x{q}_r4x1x1_r4x1x1_w16x16x16_w16x16x16_qr"

    def kernel_of(self, instance: Instance) -> str:
        """All are the main kernel."""
        return self.kernels[1]


def operation(mask: str) -> FmhaFwdSplitkv:
    """This module's operation."""
    return FmhaFwdSplitkv(mask)
