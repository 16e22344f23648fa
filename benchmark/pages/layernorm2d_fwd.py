# SPDX-License-Identifier: MIT
"""The page of layernorm2d_fwd."""

from pages._rows import Rows

PAGE = Rows("layernorm2d_fwd", plain=True)
