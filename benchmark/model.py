#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models how long attention takes on AMD GPUs, by the simulator's clock (docs/simulator.md).

    python benchmark/model.py --build build

runs fmha_fwd in bf16, batch 1, by each instance for row-major v with the head dims that it is for, at several
lengths, with and without a causal mask, with so many heads that there are 256 Ki queries. A build without
-DTESSERA_TARGETS=cdna has none of them. Appends a line of JSON for each, with the version of the model, to
benchmark/results/model.jsonl and prints a table. All of it is modelled, nothing measured. --set NAME=NUMBER
changes a parameter of the clock.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from codegen.model import MODELLED, version  # noqa: E402
from codegen.ops.fmha_fwd import operation  # noqa: E402
from codegen.rows import read_instances  # noqa: E402
from codegen.show import print_rows  # noqa: E402

LENGTHS = (1024, 4096, 16384)
QUERIES = 256 * 1024
MASKS = {"no": "0", "causal": "b"}
COLUMNS = ("cycles", "cycles_a_mfma", "mhz", "time", "tflops")


def instances(target: str) -> dict[str, list[int]]:
    """Names, and the head dims that leave no column to spare."""
    op = operation("simplified")
    return {
        instance.name: [instance.tile.hdim_q, instance.tile.hdim_v]
        for instance in read_instances(op, ROOT / "instances", (target,))
        if instance.tile.compute == "bf16" and instance.tile.v_layout == "r"
    }


def model(build: Path, key: dict[str, Any], change: str) -> dict[str, Any]:
    """What the program says of one problem: a target, length, mask and instance."""
    length = key["length"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        hdim_q, hdim_v = key["hdim"]
        sizes = ["-b=1", f"-h={QUERIES // length}", f"-s={length}", f"-d={hdim_q}", f"-d_v={hdim_v}"]
        problem = ["-prec=bf16", *sizes, f"-mask={MASKS[key['mask']]}"]
        command = [str(build / "bin" / "tile_example_fmha_fwd"), f"-device=sim:{key['target']}", *problem]
        done = subprocess.run(
            [*command, f"-instance={key['instance']}", "-v=0", "-sample=1", "-json=1", f"-jsonfile={path}"],
            env={**os.environ, "TESSERA_SIM_PARAMETERS": change},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        result = json.loads(path.read_text())
    changes = {"set": change} if change else {}
    return key | {"model": version()} | changes | result["simulation"]["modelled"]


def row(result: dict[str, Any]) -> dict[str, str]:
    """A line of the table."""
    keys = {name: str(result[name]) for name in ("target", "length", "mask", "instance")}
    shares = {name: f"{100 * share:.0f}" for name, share in result["shares"].items()}
    return keys | {name: f"{result[name]:.5g}" for name in COLUMNS} | shares


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, required=True, help="a build with GPU instances")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmark" / "results" / "model.jsonl")
    parser.add_argument("--targets", default=",".join(MODELLED), help="a comma list")
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="a comma list")
    parser.add_argument("--match", default="", help="only instances whose names match this")
    parser.add_argument("--set", default="", help="changes of the clock's parameters, as NAME=NUMBER,...")
    arguments = parser.parse_args()
    rows = []
    problems = itertools.product(arguments.targets.split(","), map(int, arguments.lengths.split(",")), MASKS)
    for target, length, mask in problems:
        for instance, hdim in instances(target).items():
            if not re.search(arguments.match, instance):
                continue
            key = {"target": target, "hdim": hdim, "length": length, "mask": mask, "instance": instance}
            result = model(arguments.build, key, arguments.set)
            rows.append(row(result))
            with arguments.results.open("a") as results:
                results.write(json.dumps(result) + "\n")
    print(print_rows(rows, "text"), end="")


if __name__ == "__main__":
    main()
