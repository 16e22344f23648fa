#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions that kernels for AMD GPUs issue, by kind, in the simulator.

    python benchmark/instructions.py --build build

runs fmha_fwd in bf16, head dim 128, one head without mask, by each instance of the build that serves it, on
gfx942 and gfx950. A build without -DTESSERA_TARGETS=cdna has none of them. Appends a line of JSON for each
to benchmark/results/instructions.jsonl and prints a table: counts of all waves, and how many of a kind there
are for each MFMA. Beside them AITER's hand-written kernels (fmha_v3_fwd), whose scalar instructions are
counted without waits and barriers. Counts are no times.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from codegen.ops.fmha_fwd import operation  # noqa: E402
from codegen.rows import read_instances  # noqa: E402
from codegen.show import print_rows  # noqa: E402

TARGETS = ("gfx942", "gfx950")
LENGTHS = (256, 1024)
KINDS = ("matrix", "vector", "scalar", "lds", "memory")
# By target and length, in the order of KINDS.
AITER = {
    ("gfx942", 256): (2048, 18452, 2716, 2088, 920),
    ("gfx950", 256): (1024, 8752, 1960, 1728, 304),
}


def instances(target: str) -> list[str]:
    """Names of those that serve the problem with no column to spare, by one launch: none for few queries."""
    op = operation("simplified")
    return [
        instance.name
        for instance in read_instances(op, ROOT / "instances", (target,))
        if (instance.tile.compute, instance.tile.hdim_q, instance.tile.hdim_v) == ("bf16", 128, 128)
        and instance.tile.v_layout == "r"
        and not instance.tile.merge
    ]


def count(build: Path, target: str, instance: str, length: int) -> dict[str, Any]:
    """What one launch issues."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stats.jsonl"
        problem = ["-prec=bf16", "-b=1", "-h=1", f"-s={length}", "-d=128", "-v=0", "-warmup=0", "-repeat=1"]
        command = [str(build / "bin" / "tile_example_fmha_fwd"), f"-device=sim:{target}", *problem]
        done = subprocess.run(
            [*command, f"-instance={instance}"],
            env={**os.environ, "TESSERA_SIM_STATS": str(path)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        launches = [json.loads(line) for line in path.read_text().splitlines()]
    if len(launches) != 1:
        sys.exit(f"{instance}: {len(launches)} launches, one was asked for")
    return {"target": target, "length": length, "instance": instance, **{k: launches[0][k] for k in KINDS}}


def row(counts: dict[str, Any]) -> dict[str, str]:
    """A line of the table."""
    per_mfma = {f"{kind}/mfma": f"{counts[kind] / counts['matrix']:.2f}" for kind in KINDS[1:]}
    return {name: str(value) for name, value in counts.items()} | per_mfma


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, required=True, help="a build with GPU instances")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmark" / "results" / "instructions.jsonl")
    arguments = parser.parse_args()
    rows = []
    for target, length in itertools.product(TARGETS, LENGTHS):
        if (target, length) in AITER:
            numbers = dict(zip(KINDS, AITER[target, length]))
            rows.append(row({"target": target, "length": length, "instance": "AITER", **numbers}))
        for instance in instances(target):
            counts = count(arguments.build, target, instance, length)
            rows.append(row(counts))
            with arguments.results.open("a") as results:
                results.write(json.dumps(counts) + "\n")
    print(print_rows(rows, "text"), end="")


if __name__ == "__main__":
    main()
