# SPDX-License-Identifier: MIT
"""What GPU tiles of operations that move rows have in common: the bytes that a lane moves at once."""

from __future__ import annotations

UNIT_BYTES = 16  # where rows allow it: the most there are
ELEMENT_BYTES = 2  # of most elements
# Estimated cycles of a workgroup by units: only ratios matter, since bytes are the same by any instance. The
# simulator's clock says that fmha_fwd_appendkv takes three times as long by elements.
WORKGROUP_CYCLES = 50.0


def complaint_of_unit(unit_bytes: int) -> str:
    """Why lanes do not move so many bytes at once, or an empty text. 0: an element's."""
    return "" if unit_bytes in (0, UNIT_BYTES) else f"bytes = {unit_bytes} is neither 0 nor {UNIT_BYTES}"


def workgroup_cycles(unit_bytes: int) -> float:
    """Estimated cycles that a workgroup takes beside its bytes, by its instructions. 0: of elements."""
    return WORKGROUP_CYCLES * UNIT_BYTES / (unit_bytes or ELEMENT_BYTES)
