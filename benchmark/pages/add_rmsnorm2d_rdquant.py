# SPDX-License-Identifier: MIT
"""The page of add_rmsnorm2d_rdquant."""

from pages._rows import Rows

PAGE = Rows("add_rmsnorm2d_rdquant")
