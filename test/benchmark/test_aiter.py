# SPDX-License-Identifier: MIT
"""benchmark/aiter.py: work of MLA prefill is dealt out whole, once and evenly."""

from __future__ import annotations

import pytest

from benchmark.aiter import BLOCK, TILE, deal_out


@pytest.mark.parametrize("length", [100, 256, 1024, 1000, 5000])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("workgroups", [1, 3, 16])
def test_work_is_dealt_out_once(length: int, causal: bool, workgroups: int) -> None:
    dealt = list(deal_out(length, causal, workgroups))
    assert len(dealt) == workgroups
    items = [item for mine in dealt for item in mine]
    for begin in range(0, length, BLOCK):
        end = min(begin + BLOCK, length)
        of_block = [item for item in items if item.queries == (begin, end)]
        bounds = [bound for item in of_block for bound in item.keys]
        assert bounds[0] == 0 and bounds[-1] == (end if causal else length)
        assert bounds[1:-1:2] == bounds[2:-1:2]
        assert (len(of_block) == 1) == (of_block[0].partial == -1)
    partials = [item.partial for item in items if item.partial >= 0]
    assert partials == list(range(len(partials)))
    tiles = [sum(-(-(item.keys[1] - item.keys[0]) // TILE) for item in mine) for mine in dealt]
    assert max(tiles) - min(tiles) <= 1
