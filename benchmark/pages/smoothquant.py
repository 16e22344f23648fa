# SPDX-License-Identifier: MIT
"""The page of smoothquant."""

from pages._rows import Rows

PAGE = Rows("smoothquant")
