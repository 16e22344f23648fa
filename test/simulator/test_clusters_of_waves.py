# SPDX-License-Identifier: MIT
"""Pipeline hk_prefill in the simulator's trace: what waves do in each cluster, and that all meet as often."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from emitted import build
from sim import LANDINGS, ORDERS, Sim
from test_order_of_blocks import instance_of
from test_trace import ROWS
from waits import UNBOUNDED, Fmha, Problem

WAVES, TILES = 8, 8  # of a workgroup; of keys, of which the epilogue has the last four
PROLOGUE, ROUND, EPILOGUE = 4, 8, 13  # clusters; each half waits once more, so that they stay one apart
ROUNDS = (TILES - 4) // 2
SEEN = {"MFMA", "LDS", "memory"}  # what tells clusters of products and of accesses apart


@pytest.fixture(scope="module", params=[64, 128])
def clusters(
    request: pytest.FixtureRequest, library: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, list[list[Counter[str]]]]:
    """The head dim, and of each wave how many instructions of each kind its clusters have."""
    hdim, folder = request.param, tmp_path_factory.mktemp("clusters")
    instance = instance_of("hk_prefill", hdim)
    tile = (int(instance.tile.bm0), int(instance.tile.bn0), 1)
    kernel = Fmha(f"tessera_k_{instance.name.replace('__', '_')}", "bf16", (hdim, hdim), tile, WAVES)
    problem = Problem("", 0, {"mask_y": UNBOUNDED, "mask_x": UNBOUNDED})
    how = {"order": ORDERS["random"], "landing": LANDINGS["late"], "seed": 1, "max_instructions": 1_000_000}
    with Sim(library, "gfx950", sanitize=True) as sim:
        sim.set_trace(folder / "trace.json")
        kernel.run(problem, sim, build(instance, folder).read_bytes(), how)
    return hdim, of_waves(json.loads((folder / "trace.json").read_text()))


def of_waves(events: list[dict[str, Any]]) -> list[list[Counter[str]]]:
    """What stands up to each barrier, and behind the last, of each wave of a launch's workgroups."""
    runs = [e for e in events if e["ph"] == "X" and "first" in e.get("args", {})]
    found: dict[tuple[int, int], list[Counter[str]]] = {}
    for e in sorted(runs, key=lambda e: float(e["ts"])):
        wave, row = divmod(e["tid"], len(ROWS))
        own = found.setdefault((e["pid"], wave), [Counter()])
        own[-1][ROWS[row]] += e["args"]["instructions"]
        if ROWS[row] == "barrier":
            assert e["args"]["instructions"] == 1  # none follows another directly
            own.append(Counter())
    return list(found.values())


def test_all_waves_meet_as_often(clusters: tuple[int, list[list[Counter[str]]]]) -> None:
    _, waves = clusters
    assert len(waves) == 2 * WAVES  # two blocks of queries
    assert {len(own) - 1 for own in waves} == {PROLOGUE + 1 + ROUNDS * ROUND + EPILOGUE}


def test_what_clusters_have(clusters: tuple[int, list[list[Counter[str]]]]) -> None:
    """Those of products have these and vector work alone; those of accesses no product."""
    hdim, waves = clusters
    products = hdim // 8  # of 64 keys and 32 queries, in steps of 16
    behind = 0
    for own in waves:
        # The half that lags meets the other one behind the first cluster, and that one does so at the end.
        lags = not SEEN & set(own[1])
        behind += lags
        loop = own[PROLOGUE + lags : PROLOGUE + lags + ROUNDS * ROUND + EPILOGUE]
        for n, cluster in enumerate(loop):
            seen, of_epilogue = SEEN & set(cluster), n - ROUNDS * ROUND
            if n % 2 == 0:
                assert seen == {"MFMA"} and cluster["MFMA"] == products, (n, cluster)
                assert cluster["VALU"] or of_epilogue == EPILOGUE - 1, (n, cluster)
            else:  # the last tiles are loaded up to E7
                assert seen == ({"LDS"} if of_epilogue in (5, 9, 11) else {"LDS", "memory"}), (n, cluster)
                assert cluster["LDS"] >= products, (n, cluster)
    assert behind == len(waves) // 2
