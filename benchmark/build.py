#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the build of an operation's instances, one by one and all of a receipt; counts them, measures packs.

    python benchmark/build.py --targets cdna --receipt 600
    python benchmark/build.py --targets x86-64-v3,x86-64-v4 --op fmha_bwd --receipt all --jobs 1

configures a build in a temporary folder for each target, runs the commands that Ninja would run for its
instances, so many at a time as --jobs says, and for a GPU the one that packs them. Of each compiler the
operating system tells wall time, processor time and peak memory. Appends lines of JSON to
benchmark/results/build.jsonl, one for each target, and with --counts one for each receipt on it; prints them
as tables, and what is asked of a build and not met.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from codegen.show import print_rows  # noqa: E402
from codegen.targets import TARGETS, parse_targets  # noqa: E402

RECEIPTS = ("all", "ci", "0", "2", "3", "4", "100", "200", "600", "700", "800", "888")
# What is asked of each target: of fmha_fwd on a GPU, and of all else.
FORWARD_BARS = {
    "median_s": 0.5,
    "max_s": 2.0,
    "memory_mib": 150.0,
    "processor_s": 1.5 * 3600,
    "pack_mb": 40.0,
}
BARS = {"median_s": 0.8, "memory_mib": 250.0}
MB, MIB = 1e6, 2**20


@dataclass(frozen=True)
class Run:
    """A process and those that it waited for."""

    wall: float  # seconds
    processor: float
    memory: int  # bytes


def run(command: list[str], folder: Path) -> Run:
    """Runs a command; what it says is shown only if it fails."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(f"{shlex.join(command)}\n{said.read().decode(errors='replace')}")
    # Linux counts memory in KiB.
    return Run(time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def steps_of(line: str, build: Path) -> tuple[Path, list[list[str]]]:
    """The folder and the commands of a line of `ninja -t commands` in a build's folder."""
    steps = [shlex.split(step) for step in line.split(" && ")]
    if steps[0][0] != "cd":
        return build, steps
    return Path(steps[0][1]), steps[1:]


def is_compiler(step: list[str]) -> bool:
    """Whether a step makes an object of an emitted source."""
    return any(word.endswith(".c") for word in step) and "-o" in step


def build_one(line: str, build: Path) -> tuple[Run, float]:
    """An instance: its compiler, and the processor time of all its steps."""
    folder, steps = steps_of(line, build)
    compiler, processor = None, 0.0
    for step in steps:
        done = run(step, folder)
        processor += done.processor
        if is_compiler(step):
            compiler = done
    if compiler is None:
        sys.exit(f"build.py: no compiler in: {line}")
    return compiler, processor


def output(*command: str | Path) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def is_cpu(target: str) -> bool:
    """Whether instances are objects of the library instead of code objects."""
    return TARGETS[target].kind == "cpu"


def configure(op: str, target: str, receipt: str, folder: Path) -> Run:
    """A build of an operation's instances for a target alone; emits the sources."""
    options = {
        "TESSERA_OPS": op,
        "TESSERA_TARGETS": target,
        "TESSERA_RECEIPT": receipt,
        "CMAKE_BUILD_TYPE": "Release",
    }
    defines = [f"-D{name}={value}" for name, value in options.items()]
    return run(["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(folder), *defines], ROOT)


def commands(op: str, target: str, folder: Path) -> tuple[list[str], list[str]]:
    """Lines that make the instances, and those that pack them."""
    if is_cpu(target):
        listed = (folder / "generated" / f"{op}_sources.txt").read_text().splitlines()
        names = [line.split("\t")[0] for line in listed if f"\thost\t{target}\t" in line]
        lines = output("ninja", "-C", folder, "-t", "commands", "libtessera.so").splitlines()
        return [line for line in lines if any(line.endswith(f"/{name}") for name in names)], []
    pack = f"packs/{op}_{target}.pack"
    lines = output("ninja", "-C", folder, "-t", "commands", pack).splitlines()
    packing = [line for line in lines if "codegen.pack" in line]
    return [line for line in lines if line not in packing], packing


def build(op: str, target: str, receipt: str, folder: Path, jobs: int) -> dict[str, Any]:
    """Builds the instances and for a GPU their pack, and says what that took."""
    generated = configure(op, target, receipt, folder)
    objects, packing = commands(op, target, folder)
    begin = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        built = list(pool.map(lambda line: build_one(line, folder), objects))
    packed = [run(step, at) for at, steps in (steps_of(line, folder) for line in packing) for step in steps]
    wall = time.monotonic() - begin
    processor = sum(all_steps for _, all_steps in built) + sum(step.processor for step in packed)
    figures = {
        **summary([compiler for compiler, _ in built]),
        "generate_s": round(generated.processor, 2),
        "jobs": jobs,
        "wall_s": round(wall, 1),
        "processor_s": round(processor, 1),
    }
    if is_cpu(target):
        return figures
    pack = folder / "packs" / f"{op}_{target}.pack"
    return {
        **figures,
        "pack_mb": round(pack.stat().st_size / MB, 3),
        "code_mb": round(sum(file.stat().st_size for file in folder.rglob("*.co")) / MB, 3),
    }


def summary(compilers: list[Run]) -> dict[str, Any]:
    """Processor time and memory of compilers."""
    seconds = [compiler.processor for compiler in compilers]
    return {
        "instances": len(compilers),
        "median_s": round(statistics.median(seconds), 3),
        "max_s": round(max(seconds), 3),
        "median_wall_s": round(statistics.median(compiler.wall for compiler in compilers), 3),
        "memory_mib": round(max(compiler.memory for compiler in compilers) / MIB, 1),
    }


def missed(op: str, target: str, figures: dict[str, Any]) -> list[str]:
    """Bars that a build is above."""
    bars = FORWARD_BARS if op == "fmha_fwd" and not is_cpu(target) else BARS
    return [f"{name} {figures[name]} > {bar:g}" for name, bar in bars.items() if figures[name] > bar]


def count(target: str, receipt: str) -> dict[str, Any] | None:
    """Instances of a receipt and the names of CK that they cover; None if it has none there."""
    command = [sys.executable, str(ROOT / "generate.py"), "--targets", target, "--receipt", receipt]
    done = subprocess.run(
        [*command, "--count", "--format", "json"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return None
    (row,) = json.loads(done.stdout)
    return {name: row[name] for name in ("instances", "ck_names", "ck_names_asked_for")}


def measure(
    options: argparse.Namespace, record: Callable[[dict[str, Any]], None]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Builds, and counts."""
    builds, counts = [], []
    for target in parse_targets(options.targets):
        with tempfile.TemporaryDirectory() as folder:
            figures = build(options.op, target, options.receipt, Path(folder), options.jobs)
        builds.append({"target": target, "op": options.op, "receipt": options.receipt, **figures})
        record({"what": "build", **builds[-1], "missed": missed(options.op, target, figures)})
        for receipt in RECEIPTS if options.counts else ():
            found = count(target, receipt)
            if found:
                counts.append({"target": target, "receipt": receipt, **found})
                record({"what": "count", **counts[-1]})
    return builds, counts


def table(rows: list[dict[str, Any]]) -> str:
    """Rows for people."""
    return print_rows([{name: str(value) for name, value in row.items()} for row in rows], "text")


def main() -> int:
    """1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", default="cdna", help="comma list, default cdna")
    parser.add_argument("--op", default="fmha_fwd", help="whose instances, default fmha_fwd")
    parser.add_argument("--receipt", default="600", help="what is built, default 600")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="default: one a processor")
    parser.add_argument("--counts", action="store_true", help="count the instances of every receipt too")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmark" / "results" / "build.jsonl")
    options = parser.parse_args()
    facts = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "command": shlex.join(["python", "benchmark/build.py", *sys.argv[1:]]),
    }

    def record(figures: dict[str, Any]) -> None:
        with options.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**facts, **figures}) + "\n")

    builds, counts = measure(options, record)
    for rows in (builds, counts):
        if rows:
            print(table(rows))
    above = [
        f"{figures['target']}: {miss}"
        for figures in builds
        for miss in missed(options.op, figures["target"], figures)
    ]
    print("\n".join(above) or "every bar is met")
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
