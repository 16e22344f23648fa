#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the library's ranking of attention's instances on AMD GPUs against the simulator's clock.

    python benchmark/ranking.py --build build

asks the library for each problem of a grid, of targets, types, head dims, lengths, heads and masks, which
instance it chooses, and models that and all others whose cost is at most half as much again. What the choice
takes longer than the modelled best one is its loss. Writes a line of JSON for each problem to
benchmark/results/ranking.jsonl, in place of an older one; what that has of this version of the model is not
done again. --every N takes each Nth problem; --summary [VERSION] models nothing, without VERSION of all
versions. All of it is modelled, nothing measured.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from codegen.model import MODELLED, version  # noqa: E402
from codegen.ops import operations  # noqa: E402
from codegen.rank import rank  # noqa: E402
from codegen.tune import How  # noqa: E402

RESULTS = ROOT / "benchmark" / "results" / "ranking.jsonl"
HDIMS = {"bf16": ((64, 64), (128, 128), (192, 128), (256, 256)), "fp16": ((64, 64), (128, 128))}
FP8 = {"fp8bf16": ((128, 128),)}  # which gfx90a does not have
# Batch, heads, queries, keys: few and many workgroups, short and long, decoding, more keys than queries.
SIZES = (
    (1, 2, 300, 300),
    (1, 8, 512, 512),
    (2, 16, 1024, 1024),
    (1, 16, 4096, 4096),
    (1, 64, 2048, 2048),
    (8, 32, 128, 1024),
    (16, 32, 1, 2048),
    (1, 40, 256, 8192),
)
MASKS = ("0", "b")
Row = dict[str, Any]


def grid(target: str) -> Iterator[str]:
    """The problems of a target, as arguments of the program."""
    for dtype, hdims in (HDIMS if target == "gfx90a" else HDIMS | FP8).items():
        for (hdim_q, hdim_v), (b, h, s, s_k), mask in itertools.product(hdims, SIZES, MASKS):
            scales = " qscale=pt" if dtype in FP8 else ""
            sizes = f"b={b} h={h} s={s} s_k={s_k} d={hdim_q} d_v={hdim_v}"
            yield f"prec={dtype}{scales} {sizes} mask={mask}"


def read(path: Path, model: str = "") -> list[Row]:
    """What a file has by a version of the model, or by any."""
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return [row for row in rows if model in ("", row["model"])]


def replace(path: Path, row: Row) -> None:
    """Writes what came of a problem in place of what a file has of it."""
    others = [one for one in read(path) if (one["target"], one["shape"]) != (row["target"], row["shape"])]
    path.write_text("".join(json.dumps(one) + "\n" for one in [*others, row]))


def check(build: Path, path: Path, problems: Iterable[tuple[str, str]]) -> None:
    """Models problems, each a target and a shape, and writes what comes of it, one by one."""
    op = operations()["fwd"]
    done = {(row["target"], row["shape"]) for row in read(path, version())}
    rest = [problem for problem in problems if problem not in done]
    for number, (target, shape) in enumerate(rest, 1):
        how = How(build, (shape,), None, lambda done, of: None, print)
        (ranked,) = rank(op, (target,), how)
        replace(path, ranked.row)
        print(f"{number}/{len(rest)} {target} {shape}: {ranked.loss:.1%}", file=sys.stderr, flush=True)


def document(rows: list[Row]) -> str:
    """The table of docs/simulator.md: a line for each target, with how often the choice is the best one."""
    text = "| target | problems | best one chosen | mean loss | 95th percentile | most | of |\n"
    text += f"|{'---|' * 7}\n"
    for target in sorted({row["target"] for row in rows}):
        of_target = sorted(
            (row for row in rows if row["target"] == target), key=lambda row: float(row["loss"])
        )
        losses = [row["loss"] for row in of_target]
        best = sum(row["chosen"] == row["best"] for row in of_target)
        words = [target, len(losses), best, f"{100 * sum(losses) / len(losses):.1f} %"]
        words += [f"{100 * losses[int(0.95 * (len(losses) - 1))]:.1f} %", f"{100 * losses[-1]:.1f} %"]
        text += f"| {' | '.join(map(str, words))} | `{of_target[-1]['shape']}` |\n"
    return text


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, help="a build with all instances of the targets")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--targets", default=",".join(MODELLED), help="a comma list")
    parser.add_argument("--every", type=int, default=1, help="only each Nth problem")
    parser.add_argument(
        "--summary", nargs="?", const="", metavar="VERSION", help="only sum up what the results have"
    )
    arguments = parser.parse_args()
    if arguments.summary is None:
        if arguments.build is None:
            parser.error("--build is missing")
        problems = [(target, shape) for target in arguments.targets.split(",") for shape in grid(target)]
        check(arguments.build, arguments.results, problems[:: arguments.every])
    model = version() if arguments.summary is None else arguments.summary
    print(document(read(arguments.results, model)), end="")


if __name__ == "__main__":
    main()
