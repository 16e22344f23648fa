# SPDX-License-Identifier: MIT
"""The page of rmsnorm2d_fwd."""

from pages._rows import Rows

PAGE = Rows("rmsnorm2d_fwd", plain=True)
