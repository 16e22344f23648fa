# SPDX-License-Identifier: MIT
"""Traces for chrome://tracing and Perfetto."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import toolchain
from sim import Sim, SimError, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

# Wave 0 has 7 instructions before its barrier, wave 1 has 9.
TEXT = """
    v_lshrrev_b32 v1, 6, v0
    s_nop 0
    v_readfirstlane_b32 s2, v1
    s_nop 0
    s_cmp_eq_u32 s2, 0
    s_cbranch_scc1 2
    v_mov_b32 v2, 1
    v_mov_b32 v3, 2
    s_waitcnt vmcnt(0)
    s_barrier
    ds_read_b32 v4, v1
    v_mfma_f32_4x4x1f32 a[0:3], v2, v3, 0
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_endpgm
"""
ROWS = ["MFMA", "VALU", "SALU", "LDS", "memory", "wait", "barrier"]


def run(sim: Sim, folder: Path, groups: int = 1) -> None:
    image = toolchain.assemble(TEXT, "gfx942", folder / "kernel.co", vgprs=72, lds=64)
    out = sim.malloc(64)
    sim.launch(sim.load(image), "kernel", (128 * groups, 1, 1), (128, 1, 1), pack(out, layout="P"))


def waves(events: list[dict[str, Any]], process: int) -> list[list[dict[str, Any]]]:
    """The runs of instructions of each wave, in order."""
    runs = [e for e in events if e["ph"] == "X" and e["pid"] == process]
    found = sorted({e["tid"] // len(ROWS) for e in runs})
    return [sorted((e for e in runs if e["tid"] // 7 == w), key=lambda e: e["ts"]) for w in found]


@pytest.mark.parametrize("sanitize", [False, True])
def test_rows_of_a_wave(sanitize: bool, library: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with Sim(library, "gfx942", sanitize=sanitize) as sim:
        sim.set_trace(path)
        run(sim, tmp_path)
        run(sim, tmp_path, groups=2)
        count = sim.instructions
    events = json.loads(path.read_text())
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == 0}
    assert names == {7 * w + i: f"wave {w} {row}" for w in range(2) for i, row in enumerate(ROWS)}
    assert sum(e["args"]["instructions"] for e in events if e["ph"] == "X") == count
    assert {e["pid"] for e in events if e["ph"] == "X"} == {0, 64, 65}  # a launch, and one of two workgroups
    first, second = waves(events, 64)
    rows = [ROWS[e["tid"] % 7] for e in first]
    assert rows == ["VALU", "SALU", "VALU", "SALU", "wait", "barrier", "LDS", "MFMA", "memory", "SALU"]
    assert [ROWS[e["tid"] % 7] for e in second] == [*rows[:4], "VALU", *rows[4:]]
    # They leave the barrier together, as far as the one that came later.
    barriers = [next(e for e in wave if e["name"] == "s_barrier") for wave in (first, second)]
    assert [(e["ts"], e["dur"]) for e in barriers] == [(7, 3), (9, 1)]
    assert barriers[0]["args"]["at"] == "+0x24" and barriers[0]["args"]["first"] == "s_barrier"
    for wave in (first, second):  # one after the other, without holes
        assert all(a["ts"] + a["dur"] == b["ts"] for a, b in itertools.pairwise(wave))


def test_environment(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.json"
    monkeypatch.setenv("TESSERA_SIM_TRACE", str(path))
    with Sim(library, "gfx90a"):
        pass
    assert not path.exists()  # it launched nothing
    with Sim(library, "gfx942") as sim:
        run(sim, tmp_path)
        sim.set_trace(None)
        whole = json.loads(path.read_text())
        run(sim, tmp_path)
    assert json.loads(path.read_text()) == whole


def test_no_such_place(library: Path, tmp_path: Path) -> None:
    with Sim(library, "gfx942") as sim:
        sim.set_trace(tmp_path / "none" / "trace.json")
        with pytest.raises(SimError, match="cannot be written"):
            run(sim, tmp_path)
