# SPDX-License-Identifier: MIT
"""Commands of a build are parsed correctly; figures are those of the processes."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

import pytest  # noqa: E402

from build import BARS, FORWARD_BARS, Run, build_one, count, is_compiler, missed, run, steps_of, summary  # noqa: E402


def test_steps() -> None:
    folder, steps = steps_of("cd /a/b && cc -c 'x y.c' -o x.o && ld x.o -o x.co", Path("/c"))
    assert folder == Path("/a/b")
    assert steps == [["cc", "-c", "x y.c", "-o", "x.o"], ["ld", "x.o", "-o", "x.co"]]
    assert [is_compiler(step) for step in steps] == [True, False]
    assert steps_of("cc -c x.c -o x.o", Path("/c"))[0] == Path("/c")


def test_a_process_is_measured(tmp_path: Path) -> None:
    code = "import time; x = bytearray(200 << 20); time.sleep(0.3); sum(range(3_000_000))"
    done = run([sys.executable, "-c", code], tmp_path)
    assert done.wall >= 0.3 + done.processor / 4 and 0 < done.processor < done.wall + 0.1
    assert 200 << 20 < done.memory < 400 << 20
    with pytest.raises(SystemExit, match="no such thing"):
        run([sys.executable, "-c", "import sys; sys.exit('no such thing')"], tmp_path)


def test_of_a_code_object_the_compiler_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("")
    busy = f"{sys.executable} -c 'sum(range(5_000_000))'"
    compiler, processor = build_one(f"cd {tmp_path} && {sys.executable} x.c -o x.o && {busy}", Path("/"))
    assert processor > compiler.processor > 0


def test_bars() -> None:
    compilers = [Run(1.0, 0.2, 50 << 20), Run(2.0, 0.4, 60 << 20), Run(9.0, 3.0, 70 << 20)]
    figures = {**summary(compilers), "processor_s": 3.6, "pack_mb": 0.1}
    assert (figures["instances"], figures["median_s"], figures["max_s"], figures["memory_mib"]) == (
        3,
        0.4,
        3.0,
        70.0,
    )
    assert figures["median_wall_s"] == 2.0
    assert missed("fmha_fwd", "gfx942", figures) == ["max_s 3.0 > 2"]
    assert missed("fmha_fwd", "x86-64-v3", figures) == []
    assert missed("fmha_fwd", "x86-64-v3", {**figures, "median_s": 0.9}) == ["median_s 0.9 > 0.8"]
    assert missed("fmha_bwd", "gfx942", figures) == []
    assert set(FORWARD_BARS) | set(BARS) <= set(figures)


def test_counts() -> None:
    fp32, everything = count("gfx942", "800"), count("gfx942", "all")
    assert fp32 and everything and 0 < fp32["instances"] < everything["instances"]
    assert fp32["ck_names_asked_for"] <= fp32["ck_names"] < everything["ck_names"]
    assert count("gfx942", "no such receipt") is None
