# SPDX-License-Identifier: MIT
"""TESSERA_VERBOSE: lines about calls. test/runtime/verbose_test.cc tests what the library waits for."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "bin" / "tile_example_fmha_fwd"
ONCE = ["-device=cpu", "-b=2", "-h=4", "-s=50", "-d=32", "-v=0", "-warmup=0", "-repeat=1", "-kname=1"]
CALL = re.compile(r"tessera: fmha_fwd cpu (\S+) (-prec=.*) \d+\.\d{3} ms")

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("TESSERA_VERBOSE")}
    return subprocess.run(
        [PROGRAM, *ONCE, *arguments], check=False, capture_output=True, text=True, env={**env, **variables}
    )


def call_of(*arguments: str) -> tuple[str, str]:
    """The instance and the problem of the only line."""
    done = run(*arguments, TESSERA_VERBOSE="1")
    assert done.returncode == 0
    matched = CALL.fullmatch(done.stderr.rstrip("\n"))
    assert matched and done.stderr.count("\n") == 1, done.stderr
    assert f", {matched[1]}, " in done.stdout
    return matched[1], matched[2]


@pytest.mark.parametrize("value", ["", "0"])
def test_nothing_is_printed_unless_asked_for(value: str, tmp_path: Path) -> None:
    done = run(TESSERA_VERBOSE=value, TESSERA_VERBOSE_FILE=str(tmp_path / "lines"))
    assert done.returncode == 0 and done.stderr == "" and not (tmp_path / "lines").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], ""),
        (["-prec=bf16", "-h_k=2", "-s_k=70", "-d_v=48", "-lse=1", "-mask=b:3,4,2"], " -mask=b:3,4,2 -lse=1"),
        (["-mask=t", "-bias=a", "-p_drop=0.5"], " -mask=t:-1,0 -bias=a -p_drop=0.5"),
        (["-mask=g:5,6", "-logits_soft_cap=30", "-vlayout=c"], " -mask=g:5,6 -logits_soft_cap=30 -vlayout=c"),
        (["-prec=fp8", "-qscale=pt", "-bias=e", "-init_sink=1"], " -bias=e -qscale=pt -init_sink=1"),
    ],
)
def test_a_call_can_be_repeated_from_its_line(arguments: list[str], told: str) -> None:
    instance, problem = call_of(*arguments, "-threads=1")
    assert f"{told} -threads=1" in problem
    assert call_of(*problem.split()) == (instance, problem)


def test_group_mode_tells_what_is_known_without_reading() -> None:
    _, problem = call_of("-mode=1", "-s=50,20", "-s_k=60,30", "-threads=1")
    assert problem.startswith("-prec=fp16 -mode=1 -b=2 -h=4 -h_k=4 -s=50 -s_k=")


def test_every_call_has_a_line() -> None:
    done = run("-warmup=2", "-repeat=3", TESSERA_VERBOSE="1")
    assert len(CALL.findall(done.stderr)) == done.stderr.count("\n") == 5


def test_reasons() -> None:
    done = run(TESSERA_VERBOSE="2")
    *reasons, call = done.stderr.splitlines()
    matched = CALL.fullmatch(call)
    assert matched
    assert reasons and all(line.startswith("tessera: why ") for line in reasons)
    assert any(matched[1] in line and " cost " in line for line in reasons)


def test_lines_are_added_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lines of calls"
    for count in (1, 2):
        done = run(TESSERA_VERBOSE="1", TESSERA_VERBOSE_FILE=str(path))
        assert done.returncode == 0 and done.stderr == ""
        assert len(CALL.findall(path.read_text())) == path.read_text().count("\n") == count


def test_errors() -> None:
    done = run("-device=cpu:z80", TESSERA_VERBOSE="1")
    assert done.returncode == 1
    assert done.stderr.startswith('tessera: error target "z80" is unknown: portable')


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    done = run(TESSERA_VERBOSE="yes")
    assert done.returncode == 0 and done.stderr == "tessera: TESSERA_VERBOSE=yes: 0, 1 or 2\n"
    done = run(TESSERA_VERBOSE="1", TESSERA_VERBOSE_FILE=str(tmp_path))
    wrong, call = done.stderr.splitlines()
    assert wrong.startswith(f"tessera: TESSERA_VERBOSE_FILE={tmp_path} cannot be opened: ")
    assert CALL.fullmatch(call)
