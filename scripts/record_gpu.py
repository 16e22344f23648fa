# SPDX-License-Identifier: MIT
"""Writes the record of a run of test_gpu.sh: what was run where, and how it ended.

record_gpu.py FOLDER RESULTS PART: reads device.json and stages of RESULTS, and writes FOLDER/DATE_GPU.json.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def said(*words: str) -> str:
    """What a command prints; "" where it fails or is not there."""
    try:
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def gpu(device: dict[str, Any]) -> dict[str, Any]:
    """The name and the driver's version, where NVIDIA's tool says them."""
    kind, number = device["device"].split(":")
    line = said("nvidia-smi", "-i", number, "--query-gpu=name,driver_version", "--format=csv,noheader")
    if kind != "cuda" or not line:
        return {"name": device["target"]}
    name, version = line.split(", ")
    return {"name": name, "driver_version": version}


def stage(line: str) -> dict[str, Any]:
    """Of a line of the file of stages."""
    name, *numbers = line.split("|")
    fields = ("passed", "failed", "skipped", "refused", "seconds")
    return {"name": name, **dict(zip(fields, map(int, numbers), strict=True))}


def failures(results: Path) -> list[str]:
    """The names of the tests that failed, as far as their programs said them."""
    lines = [line for file in sorted(results.glob("*.counts")) for line in file.read_text().splitlines()]
    return [line.removeprefix("failed: ") for line in lines if line.startswith("failed: ")]


def version(build: Path) -> str:
    """The commit that a build says it is of, or else that of this checkout, with a + where files differ."""
    file = build / "version"
    if file.exists():
        return file.read_text().strip()
    return said("git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*")


def record(device: dict[str, Any], stages: list[dict[str, Any]], part: int) -> dict[str, Any]:
    """All but the commit and the names of what failed."""
    return {
        "date": date.today().isoformat(),
        **gpu(device),
        **device,
        "one_in": part,
        "passed": sum(one["passed"] for one in stages),
        "failed": sum(one["failed"] for one in stages),
        "stages": stages,
    }


def main() -> int:
    """Writes the file and says its name."""
    folder, results, part = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    lines = (results / "stages").read_text().splitlines()
    written = record(json.loads((results / "device.json").read_text()), list(map(stage, lines)), part)
    written |= {"version": version(results.parents[1]), "failures": failures(results)}
    slug = "_".join(re.findall(r"[a-z0-9]+", written["name"].lower()))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{written['date']}_{slug}.json"
    file.write_text(json.dumps(written, indent=1) + "\n")
    print(f"record: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
