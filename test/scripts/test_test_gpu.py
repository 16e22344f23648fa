# SPDX-License-Identifier: MIT
"""scripts/test_gpu.sh on a build whose programs are a few lines of shell: what it counts, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEVICE = '{"device": "hip:0", "target": "gfx942", "compute_units": 304, "driver": "none"}'
SUITE = """for word; do case $word in --gtest_output=xml:*) file=${word#*xml:} ;; esac; done
echo '<testsuites><testsuite><testcase classname="Suite" name="a" status="run"></testcase>' >"$file"
[ -z "$FAIL" ] || echo '<testcase classname="Suite" name="b"><failure message="no"/></testcase>' >>"$file"
echo '</testsuite></testsuites>' >>"$file"
echo "3 problems of the covers have no instance in this build and were refused by name"
"""


def program(folder: Path, name: str, text: str) -> None:
    file = folder / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("#!/bin/bash\n" + text)
    file.chmod(0o755)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    absent = 'echo "$1: none" >&2; exit 4'
    program(tmp_path, "gpu_device", f"[ $1 = hip:0 ] && echo '{DEVICE}' || {{ {absent}; }}\n")
    caches = ("paged_attention", "splitkv", "pagedkv", "append_first", "batch_prefill", "turbo4")
    others = ("gpu_streams", "fmha_fwd_gpu", "fmha_bwd_gpu", "rows_gpu")
    for name in (*others, *(f"kv_cache_{cache}" for cache in caches)):
        program(tmp_path, f"{name}_test", SUITE)
    for name in ("fmha_fwd_numerics_test", "rows_numerics_test", "gpu_cuda_test"):
        program(tmp_path, name, "exit 77\n")
    for name in (
        "example_fmha_fwd",
        "example_kv_cache",
        "example_layernorm2d_fwd",
        "rmsnorm2d_fwd",
        "add_rmsnorm2d_rdquant_fwd",
    ):
        program(tmp_path, f"tile_{name}_smoke", "echo '5 passed, 0 failed, 2 not served'\n")
    for name in ("smoothquant", "example_moe_smoothquant"):
        program(tmp_path, f"tile_{name}_smoke", "echo '0 passed, 0 failed, 2 not served'; exit 2\n")
    return tmp_path


def run(build: Path, *words: str, fail: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts/test_gpu.sh"), "--build", str(build), "--results", str(build / "records")]
    environment = {**os.environ, "FAIL": fail}
    return subprocess.run(
        [*command, *words], capture_output=True, text=True, check=False, env=environment, timeout=120
    )


def test_the_first_device_that_there_is(build: Path) -> None:
    ended = run(build)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (file,) = (build / "records").iterdir()
    record = json.loads(file.read_text())
    assert record["name"] == record["target"] == "gfx942" and record["failed"] == 0
    stages = {stage["name"]: stage for stage in record["stages"]}
    parts = stages["fmha_fwd, matrix"]["passed"]
    assert stages["fmha_fwd, matrix"]["refused"] == 3 * parts
    assert stages["CK's smoke matrix of fmha_fwd"]["passed"] == 5 * parts
    assert stages["CK's smoke matrices of rows"]["refused"] == 2 * 5 * parts
    assert "numerics of rows" not in stages
    assert ended.stdout.splitlines()[-1] == f"{record['passed']} passed, 0 failed"


def test_failures_are_counted(build: Path) -> None:
    ended = run(build, "--only", "streams", "hip:0", fail="1")
    assert ended.returncode == 1 and "failed: Suite.b" in ended.stdout
    assert ended.stdout.splitlines()[-1] == "1 passed, 1 failed"
    assert not (build / "records").exists()


def test_a_program_that_dies_is_a_failure(build: Path) -> None:
    program(build, "rows_gpu_test", "kill -9 $$\n")
    ended = run(build, "--only", "rows, matrix")
    assert ended.returncode == 1 and ended.stdout.splitlines()[-1] == "0 passed, 1 failed"


@pytest.mark.parametrize(
    "words, status, said",
    [
        (["cuda:0"], 4, "no GPU: cuda:0: none"),
        (["--part", "0"], 1, "--part 0: a number"),
        (["sim:gfx942"], 1, "sim:gfx942: no such option"),
        (["--only", "nothing"], 1, "no stage has that in its name"),
    ],
)
def test_what_cannot_be(build: Path, words: list[str], status: int, said: str) -> None:
    ended = run(build, *words)
    assert ended.returncode == status and said in ended.stderr


def test_a_build_for_another_machine(build: Path, tmp_path: Path) -> None:
    """It has the library and every program, and records are of its commit."""
    there = tmp_path / "there"
    program(tmp_path, "benchmark_launch", "exit 0\n")
    for name in ("libtessera.so", "libtessera.so.0", "libtessera.so.0.1"):
        (build / name).write_bytes(Path("/bin/true").read_bytes())
    for file in (build / "bin").iterdir():  # which strip knows
        file.write_bytes(Path("/bin/true").read_bytes())
    ended = run(build, "--pack", str(there))
    assert ended.returncode == 0, ended.stderr
    assert {file.name for file in (there / "bin").iterdir()} == {f.name for f in (build / "bin").iterdir()}
    assert (there / "libtessera.so.0.1").exists()
    (build / "version").write_text("1234567\n")
    program(build, "gpu_device", f"echo '{DEVICE}'\n")
    assert run(build, "hip:0").returncode == 0
    (file,) = (build / "records").iterdir()
    assert json.loads(file.read_text())["version"] == "1234567"


def test_a_build_without_tests(tmp_path: Path) -> None:
    ended = run(tmp_path)
    assert ended.returncode == 1 and "it has no bin/gpu_device" in ended.stderr
