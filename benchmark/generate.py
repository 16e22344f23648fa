#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the generator on 10,000 instances and counts what each receipt selects; writes results/generate.json.

The rows are made up: traits held to one value each, as where every trait is compiled in, on eight tiles.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from codegen.ops import operations  # noqa: E402

COUNT = 10_000
FILTER = "*_fp16*_batch*_nmask*_nlse*_ndropout*"
BARS = {"list": 1.5, "list, filtered": 3.0, "emit": 5.0, "emit again, unchanged": 2.5}  # seconds
TILES = [
    (32, 0.50),
    (64, 0.55),
    (128, 0.60),
    (256, 0.65),
    (512, 0.70),
    (352, 0.68),
    (416, 0.69),
    (480, 0.695),
]


def made_up_rows() -> str:
    """The text of a rows file of COUNT instances."""
    axes = {axis.name: axis.values for axis in operations()["fwd"].space.axes}
    traits = itertools.product(*(axes[name] for name in "hdim dtype mode mask lse dropout".split()), TILES)
    rows = ['[default.qr]\nepilogue = "store"\ncompute = "f32"\nmr = 8\nnv = 2\n']
    for hdim, dtype, mode, mask, lse, dropout, (bm0, efficiency) in itertools.islice(traits, COUNT):
        rows.append(
            f'[[tile]]\ntargets = ["x86-64-v4"]\npipeline = "qr"\n'
            f"bm0 = {bm0}\nbn0 = 128\nefficiency = {efficiency}\n"
            f'serves = "hdim={hdim} dtype={dtype} mode={mode} mask={mask} lse={lse} dropout={dropout}"\n'
            'why = "made up to be timed"\n'
        )
    return "\n".join(rows)


def call(*arguments: object) -> tuple[float, float, float, str]:
    """Wall time, processor time, peak memory (MiB) of a call of the generator, and what it said."""
    command = [sys.executable, str(ROOT / "generate.py"), *map(str, arguments)]
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said, open(os.devnull, "w") as nothing:
        process = subprocess.Popen(command, stdout=nothing, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        said.seek(0)
        text = said.read().strip()
    if status:
        raise SystemExit(text)
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def timings(folder: Path, repeat: int) -> dict[str, Any]:
    """Median times of each use."""
    rows, out = folder / "rows", folder / "out"
    rows.mkdir()
    (rows / "fmha_fwd.toml").write_text(made_up_rows())
    shutil.copy(ROOT / "instances" / "receipts.toml", rows)
    select = ("--instances", rows, "--targets", "x86-64-v4")
    uses = {
        "list": (*select, "--table"),
        "list, filtered": (*select, "--table", "--filter", FILTER),
        "emit": (*select, "--output_dir", out),
        "emit again, unchanged": (*select, "--output_dir", out),
    }
    runs: dict[str, list[tuple[float, float, float, str]]] = {use: [] for use in uses}
    for _ in range(repeat):
        shutil.rmtree(out, ignore_errors=True)
        for use, arguments in uses.items():
            runs[use].append(call(*arguments))
    return {
        use: {
            "seconds": round(statistics.median(run[0] for run in done), 3),
            "bar_seconds": BARS[use],
            "processor_seconds": round(statistics.median(run[1] for run in done), 3),
            "memory_mib": round(max(run[2] for run in done), 1),
            "said": done[-1][3],
        }
        for use, done in runs.items()
    }


def counts() -> dict[str, Any]:
    """Instances and names of CK by receipt, for every target there is."""
    found = {}
    for receipt in "all ci 0 1 2 3 4 100 200 300 400 600 700 800 801 888".split():
        command = [
            sys.executable,
            str(ROOT / "generate.py"),
            "--count",
            "--format",
            "json",
            "--receipt",
            receipt,
        ]
        command += ["--targets", "portable,x86-64,aarch64"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (found[receipt],) = json.loads(done.stdout)
        del found[receipt]["api"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmark" / "results" / "generate.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = timings(Path(folder), options.repeat)
    machine = {"machine": platform.machine(), "cpus": os.cpu_count(), "python": platform.python_version()}
    result = {"machine": machine, "instances": COUNT, "times": measured, "receipts": counts()}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    for use, row in measured.items():
        bar = f"(bar {row['bar_seconds']} s)"
        print(
            f"{use:22} {row['seconds']:6.2f} s {bar}, {row['processor_seconds']:.2f} s of processors", end=""
        )
        print(f", {row['memory_mib']:.0f} MiB")
    return int(any(row["seconds"] > row["bar_seconds"] for row in measured.values()))


if __name__ == "__main__":
    sys.exit(main())
