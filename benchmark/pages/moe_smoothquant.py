# SPDX-License-Identifier: MIT
"""The page of moe_smoothquant."""

from pages._rows import Rows

PAGE = Rows("moe_smoothquant", experts=32, topk=5)
