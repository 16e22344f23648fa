#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates kernel instances, their dispatch table and the list of their sources. Thin path; more options follow."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codegen import Refused
from codegen.spec import ROOT
from codegen.emit import emit
from codegen.ops import parse_apis
from codegen.rows import read_instances
from codegen.targets import host_targets, parse_targets


def main() -> int:
    parser = argparse.ArgumentParser(prog="generate.py", allow_abbrev=False)
    parser.add_argument("-d", "--direction", "-a", "--api", default="fwd")
    parser.add_argument("--targets")
    parser.add_argument("-o", "--output_dir", type=Path, required=True)
    parser.add_argument("-r", "--receipt", default="all")
    parser.add_argument("-f", "--filter", default="")
    options = parser.parse_args()
    targets = parse_targets(options.targets) if options.targets else host_targets()
    for op in parse_apis(options.direction, "simplified"):
        instances = read_instances(op, ROOT / "instances", targets)
        report = emit(op, instances, options.output_dir, lambda done, count: None)
        print(f"{op.api}: {len(instances)} instances, {report}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refused as refused:
        print(f"generate.py: {refused}", file=sys.stderr)
        sys.exit(1)
