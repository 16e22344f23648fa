# SPDX-License-Identifier: MIT
"""HIP programs, compiled by hipcc and run unmodified on the stand-in for the HIP runtime."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from sampling import sample

FOLDER = Path(__file__).parent / "hip_programs"
PROGRAMS = sample([*sorted(path.stem for path in FOLDER.glob("*.hip")), "two_files"], 5)
ARCH = "gfx90a"  # the newest one that Debian 12's hipcc knows
FLAGS = sample(["-O0", "-O2"], 1)
ORDERS = ["backward", "alternate", "random:7"]
# What programs that fail on purpose leave on stderr: words of each line.
EXPECTED_LINES = {
    "fault": [
        [
            "tessera_sim: device 0 (gfx90a): out of bounds: ",
            "kernel _Z5writePii, workgroup 0,0,0, wave 0, lane 0",
        ]
    ],
    "assertion": [
        ["(int)threadIdx.x < limit' failed."],
        ["tessera_sim: device 0 (gfx90a): trap: ", "kernel _Z5count"],
    ],
}


@pytest.fixture(scope="session")
def hipcc() -> str:
    """The compiler."""
    found = shutil.which(os.environ.get("HIPCC", "hipcc"))
    if found is None:
        pytest.skip("needs hipcc: apt-get install hipcc, or set HIPCC")
    return found


@pytest.fixture(scope="module", params=FLAGS)
def flag(request: pytest.FixtureRequest) -> str:
    """A level of optimization."""
    return str(request.param)


def build(hipcc: str, name: str, flag: str, folder: Path) -> Path:
    """Compiles a program."""
    sources = sorted((FOLDER / name).glob("*.hip")) or [FOLDER / f"{name}.hip"]
    output = folder / name
    command = [hipcc, f"--offload-arch={ARCH}", flag, "-w", *map(str, sources), "-o", str(output)]
    environment = {**os.environ, "TMPDIR": str(folder)}  # where Debian's clang leaves a folder behind
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module", params=PROGRAMS)
def program(
    request: pytest.FixtureRequest, hipcc: str, flag: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A compiled program."""
    return build(hipcc, str(request.param), flag, tmp_path_factory.mktemp("hip"))


def run(program: Path, standin: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs the program with the stand-in in place of AMD's library; returns how it ended."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(standin), **settings}
    return subprocess.run(
        [program], check=False, capture_output=True, text=True, env=environment, timeout=120
    )


def check(program: Path, done: subprocess.CompletedProcess[str]) -> None:
    """Checks that the program succeeded and that stderr has the expected text and nothing else."""
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr
    lines, expected = done.stderr.splitlines(), EXPECTED_LINES.get(program.name, [])
    assert len(lines) == len(expected), done.stderr
    for line, words in zip(lines, expected, strict=True):
        assert all(word in line for word in words), line


def test_runs(program: Path, standin: Path) -> None:
    """Each program checks its own results."""
    check(program, run(program, standin))


@pytest.mark.parametrize("order", ORDERS)
def test_runs_in_any_order(program: Path, standin: Path, order: str) -> None:
    """The programs have no races, so the order of waves does not matter."""
    check(program, run(program, standin, TESSERA_SIM_ORDER=order))


def test_is_clean_to_the_sanitizer(program: Path, standin: Path) -> None:
    """Nothing is reported about a correct program."""
    check(program, run(program, standin, TESSERA_SIM_SANITIZE="1"))


def test_needs_code_for_the_device(hipcc: str, standin: Path, tmp_path: Path) -> None:
    """A program for another architecture gets an error that says so."""
    done = run(build(hipcc, "vector_add", "-O2", tmp_path), standin, TESSERA_SIM_DEVICES="gfx942")
    assert done.returncode == 1
    assert "hipErrorNoBinaryForGpu" in done.stdout
    assert "device 0 is gfx942" in done.stderr
    assert "code only for: hip" in done.stderr and "gfx90a" in done.stderr
