# SPDX-License-Identifier: MIT
"""tile_example_mla_prefill from the outside: its line, JSON, exit codes, and small problems of all kinds."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(
    os.environ.get("TESSERA_BIN_DIR") or Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "bin"
)
PROGRAM = BIN / "tile_example_mla_prefill"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"it is not built in {BIN}")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], check=False, capture_output=True, text=True, timeout=300)


def test_line_and_json(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    done = run(
        "-device=cpu", "-mode=1", "-b=3", "-h=4", "-h_k=2", "-s=30", "-s_k=70", "-lse=1",
        "-prec=fp8bf16", "-warmup=0", "-repeat=1", "-json=1", f"-jsonfile={path}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    want = "[fp8bf16|group|bshd] b:3, h:4/2, s:30/70, d:192/128, mask:b, rope:shared, mla_prefill__"
    assert done.stdout.startswith(want)
    assert re.search(r" ms, \d+\.\d{2} TFlops, \d+\.\d{2} GB/s, valid:y\n$", done.stdout)
    result = json.loads(path.read_text())
    assert result["s_k"] == 70 and result["max_error_ratio"] <= 1


def test_readme_has_the_help() -> None:
    done = run("-?")
    assert done.returncode == 0
    assert f"```\n{done.stdout}```\n" in (ROOT / "example/mla_prefill/README.md").read_text()


@pytest.mark.parametrize(
    ("prec", "mode", "iperm", "keys"),
    list(
        itertools.product(("bf16", "fp8bf16"), ("0", "1"), ("0", "1"), ("-share=1", "-share=0", "-joined=1"))
    ),
)
def test_layouts(prec: str, mode: str, iperm: str, keys: str) -> None:
    for mask in "ntb":
        done = run(
            "-device=cpu", f"-prec={prec}", f"-mode={mode}", f"-iperm={iperm}", keys, f"-mask={mask}",
            "-b=2", "-h=4", "-h_k=2", "-s=35", "-s_k=131", "-lse=1", "-warmup=0", "-repeat=1",
            "-misalign=1",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "valid:y" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-b=0"], 1, "-b=0: at least 1"),
        (["-prec=fp16"], 1, "-prec=fp16: bf16 or fp8bf16"),
        (["-mask=g"], 1, "-mask=g: 0, n, t or b"),
        (["-h=3", "-h_k=2"], 1, "-h_k=2: a divisor of -h"),
        (["-device=cpu", "-instance=nobody"], 2, "nobody"),
    ],
)
def test_refusals(arguments: list[str], code: int, says: str) -> None:
    done = run(*arguments)
    assert done.returncode == code and says in done.stdout + done.stderr
    assert done.stderr.count("\n") <= 1
