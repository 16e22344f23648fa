# SPDX-License-Identifier: MIT
"""Counts of what launches did, by the environment's TESSERA_SIM_STATS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import toolchain
from sim import Sim, SimError, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

TEXT = """
    v_lshlrev_b32 v1, 2, v0
    v_mfma_f32_4x4x1f32 a[0:3], v0, v0, 0
    ds_write_b32 v1, v0
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v0, s[2:3]
    s_endpgm
"""
# Of each wave.
COUNTS = {"scalar": 3, "vector": 1, "matrix": 1, "lds": 1, "memory": 1}


def run(sim: Sim, folder: Path, waves: int) -> None:
    image = toolchain.assemble(TEXT, "gfx942", folder / "kernel.co", vgprs=72, lds=1024)
    out = sim.malloc(1024)
    sim.launch(sim.load(image), "kernel", (64 * waves, 1, 1), (64, 1, 1), pack(out, layout="P"))


def test_a_line_for_each_launch(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "stats.jsonl"
    monkeypatch.setenv("TESSERA_SIM_STATS", str(path))
    with Sim(library, "gfx942") as sim:
        assert not path.exists()
        run(sim, tmp_path, 1)
        run(sim, tmp_path, 5)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [
        {"kernel": "kernel", "arch": "gfx942", "waves": waves}
        | {unit: waves * count for unit, count in COUNTS.items()}
        for waves in (1, 5)
    ]


def test_no_such_place(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSERA_SIM_STATS", str(tmp_path / "none" / "stats.jsonl"))
    with Sim(library, "gfx942") as sim, pytest.raises(SimError, match="cannot be written"):
        run(sim, tmp_path, 1)
