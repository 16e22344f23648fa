# SPDX-License-Identifier: MIT
"""scripts/measure_gpu.sh on the stand-in for the HIP runtime, whose s_memtime counts instructions."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import toolchain
from conftest import ROOT
from measured import KERNELS
from sim import ARCHS

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)


@pytest.fixture
def build(library: Path) -> Path:
    if not (library.parent / "bin" / "tile_example_fmha_fwd").exists():
        pytest.skip(f"needs {library.parent}/bin/tile_example_fmha_fwd: build all")
    return library.parent


def measure(build: Path, standin: Path, arch: str, match: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "TESSERA_HIP_LIBRARY": str(standin / "libamdhip64.so.7"),
        "TESSERA_SIM_DEVICES": arch,
    }
    command = [str(ROOT / "scripts/measure_gpu.sh"), "--build", str(build), "--quick", "--match", match]
    return subprocess.run([*command, "hip:0"], capture_output=True, text=True, check=False, env=environment)


def cells(text: str) -> dict[str, list[str]]:
    """Of each row of the tables, by the first one."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return {row[0]: row[1:] for row in rows if row}


@pytest.mark.parametrize("arch", ARCHS)
def test_tables(build: Path, standin: Path, arch: str) -> None:
    ended = measure(build, standin, arch, "^v_add_f32$|^MFMA and 3 v_add_f32$")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert arch in ended.stdout.splitlines()[0]
    rows = cells(ended.stdout)
    assert [float(cell) for cell in rows["v_add_f32"][:3]] == [1.0, 4.0, 4.0]
    measured, modelled, published, source = rows["MFMA and 3 v_add_f32"]
    assert float(measured) == 4.0
    if arch == "gfx942":
        assert float(published) == pytest.approx(float(modelled), rel=0.05)
    else:
        assert published == source == ""  # nobody has measured it there
    problem = rows["h1 s256 d128"]
    assert problem[0].startswith(f"`{arch}_b") and float(problem[1]) > 0
    assert (build / "measure_gpu.md").read_text() == ended.stdout


def test_waves_and_memory(build: Path, standin: Path) -> None:
    """Kernels of several waves, with barriers, and those that read memory."""
    pattern = "beside 1 |latency|scalar|1 KB|of four waves|6 v_cvt_pk_bf16"
    rows = cells(measure(build, standin, "gfx950", pattern).stdout)
    mine = [
        k.name for k in KERNELS if "gfx950" in k.archs or ("gfx942" in k.archs and "misses" not in k.name)
    ]
    assert {name for name in mine if re.search(pattern, name)} <= set(rows)
    alone = rows["MFMA and 6 v_cvt_pk_bf16_f32"]
    assert [float(cell) for cell in alone[:3]] == [7.0, 32.0, 32.0]


def test_no_runtime(build: Path, tmp_path: Path) -> None:
    ended = measure(build, tmp_path, "gfx942", "")
    assert ended.returncode != 0
    assert "no HIP runtime" in ended.stderr and "TESSERA_HIP_LIBRARY" in ended.stderr
