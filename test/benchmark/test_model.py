# SPDX-License-Identifier: MIT
"""benchmark/model.py, with a program that writes what a simulated device's would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

import model  # noqa: E402

PROGRAM = """#!/bin/sh
[ "$TESSERA_SIM_PARAMETERS" = valu=5 ] || exit 3
for word; do
    case $word in
    -jsonfile=*) file=${word#*=} ;;
    -h=*) heads=${word#*=} ;;
    esac
done
echo "{\\"simulation\\": {\\"modelled\\": {\\"cycles\\": $heads, \\"cycles_a_mfma\\": 32, \\"mhz\\": 1000,
    \\"time\\": 2, \\"tflops\\": 3, \\"shares\\": {\\"mfma\\": 0.25}}}}" > "$file"
"""


@pytest.fixture
def build(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "tile_example_fmha_fwd"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return tmp_path


def test_each_instance_and_mask(build: Path) -> None:
    results = build / "model.jsonl"
    choice = ["--targets=gfx942", "--lengths=1024", "--match=_d128_.*_w8_qr_async", f"--results={results}"]
    command = [sys.executable, ROOT / "benchmark" / "model.py", f"--build={build}", *choice]
    done = subprocess.run(
        [*command, "--set=valu=5"], check=False, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(row["target"], row["mask"], row["cycles"], row["set"]) for row in rows] == [
        ("gfx942", "no", 256, "valu=5"),
        ("gfx942", "causal", 256, "valu=5"),
    ]
    header, *table = done.stdout.splitlines()
    assert (
        header.split()[-1] == "mfma" and all(line.split()[-1] == "25" for line in table) and len(table) == 2
    )
    again = subprocess.run(
        [*command, "--set=valu=5", "--missing", "--lengths=1024,2048"],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert again.returncode == 0, again.stderr
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert [row["length"] for row in rows] == [1024, 1024, 2048, 2048]
    failed = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ)
    assert failed.returncode == 1 and "-device=sim:gfx942" in failed.stderr


def test_few_queries(build: Path) -> None:
    """Each instance once a length, with all query heads: one query has no use for a mask."""
    results = build / "model.jsonl"
    choice = ["--targets=gfx950", "--match=_d128_.*qr_split", f"--results={results}", "--set=valu=5"]
    command = [sys.executable, ROOT / "benchmark" / "model.py", f"--build={build}", *choice]
    subprocess.run(command, check=True, capture_output=True, env=os.environ)
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(row["length"], row["mask"], row["cycles"]) for row in rows] == [
        (length, "no", 32) for length in model.LENGTHS
    ]


def test_document() -> None:
    """Its tables of predictions are what the results have of the versions that it names."""
    text = (ROOT / "docs" / "simulator.md").read_text()
    named = re.search(r"`--table ([\w,]+)` prints them", text)
    assert named
    there = model.read(ROOT / "benchmark" / "results" / "model.jsonl", "", named[1])
    assert len(there) > 300
    for table in (model.document(there), model.decoding(there), model.limits(there)):
        assert table in text, "python benchmark/model.py --table"


def test_results_of_several_versions(tmp_path: Path) -> None:
    """The first one that there is of a problem counts."""
    problem = {"target": "gfx942", "hdim": [64, 64], "length": 1024, "mask": "no"}
    rows = [
        problem | {"instance": name, "model": made_by, "cycles": cycles}
        for name, made_by, cycles in (("a", "old", 1), ("a", "new", 2), ("b", "old", 3), ("b", "oldest", 4))
    ]
    path = tmp_path / "model.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (*rows, rows[0] | {"set": "valu=5"})))
    assert {row["instance"]: row["cycles"] for row in model.read(path, "", "new,old")} == {"a": 2, "b": 3}
    assert [row["cycles"] for row in model.read(path, "", "new")] == [2]
