#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models how long attention takes on AMD GPUs, by the simulator's clock (docs/simulator.md).

    python benchmark/model.py --build build

runs fmha_fwd in bf16, batch 1, by each instance with the head dims and the layout of v that it is for, at
several lengths, with and without a causal mask, with so many heads that there are 256 Ki queries. Instances
that merge heads, which are for few queries, decode: a query of each of 8 sequences, of 32 heads by 8 of
keys. Those over pages, which calls of fmha_fwd do not take, are left out. A build without
-DTESSERA_TARGETS=cdna has none of them. Appends a line of JSON for each, with the version of the model, to
benchmark/results/model.jsonl and prints a table. All of it is modelled, nothing measured. --set NAME=NUMBER
changes a parameter of the clock. --missing leaves out what the results have of this version, so that the
same command goes on after an interruption. --table [VERSIONS] models nothing and prints what the results
have of this version, or of others, as docs/simulator.md shows it.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from codegen.model import MODELLED, version  # noqa: E402
from codegen.ops.fmha_fwd import operation  # noqa: E402
from codegen.rows import read_instances  # noqa: E402
from codegen.show import print_rows  # noqa: E402
from codegen.spec import Instance  # noqa: E402

LENGTHS = (1024, 4096, 16384)
QUERIES = 256 * 1024
MASKS = {"no": "0", "causal": "b"}
DECODING = ("-b=8", "-h=32", "-h_k=8", "-s=1")  # by instances that merge heads, with the length of keys
KEY = ("target", "hdim", "length", "mask", "instance")  # of a problem
COLUMNS_OF_V = "_vc_"  # in names of instances for column-major v
LIMITED = 4096  # the length of limits()
COLUMNS = ("cycles", "cycles_a_mfma", "mhz", "time", "tflops")


def instances(target: str) -> dict[str, Instance]:
    """By their names, those that calls of fmha_fwd take."""
    every = read_instances(operation("simplified"), ROOT / "instances", (target,))
    return {one.name: one for one in every if one.tile.compute == "bf16" and not one.tile.paged}


def hdim_of(instance: Instance) -> list[int]:
    """The head dims of q and v."""
    return [instance.tile.hdim_q, instance.tile.hdim_v]


def sizes_of(key: dict[str, Any]) -> tuple[str, ...]:
    """Of a problem."""
    if merges(key["instance"]):
        return (*DECODING, f"-s_k={key['length']}")
    return ("-b=1", f"-h={QUERIES // key['length']}", f"-s={key['length']}")


def merges(name: str) -> bool:
    """Whether an instance is for few queries."""
    return "qr_split" in name


def place_of(target: str, name: str, hdim: Sequence[int]) -> list[str]:
    """The first two columns of tables."""
    columns = ", columns of v" if COLUMNS_OF_V in name else ""
    return [
        f"{target} d{'x'.join(map(str, dict.fromkeys(hdim)))}{columns}",
        f"`{name.rpartition(f'{target}_')[2]}`",
    ]


def run_program(
    build: Path, name: str, words: list[str], *, sampled: bool = True, **environment: str
) -> dict[str, Any]:
    """What an example program says of a problem on a simulated GPU: of a run, or a sample, not verified."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        command = [str(build / "bin" / f"tile_example_{name}"), *words]
        done = subprocess.run(
            [*command, "-v=0", f"-sample={int(sampled)}", "-json=1", f"-jsonfile={path}"],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        result: dict[str, Any] = json.loads(path.read_text())
    return result


def model(build: Path, key: dict[str, Any], change: str) -> dict[str, Any]:
    """What the program says of one problem: a target, length, mask and instance."""
    hdim_q, hdim_v = key["hdim"]
    sizes = [*sizes_of(key), f"-d={hdim_q}", f"-d_v={hdim_v}"]
    layout = "c" if COLUMNS_OF_V in key["instance"] else "r"
    problem = ["-prec=bf16", *sizes, f"-mask={MASKS[key['mask']]}", f"-vlayout={layout}"]
    words = [f"-device=sim:{key['target']}", *problem, f"-instance={key['instance']}"]
    result = run_program(build, "fmha_fwd", words, TESSERA_SIM_PARAMETERS=change)
    changes = {"set": change} if change else {}
    return key | {"model": version()} | changes | result["simulation"]["modelled"]


def read(path: Path, change: str, models: str) -> list[dict[str, Any]]:
    """What a file has with some change by the first version of a comma list that it has of a problem."""
    results = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    found = {}
    for model in reversed(models.split(",")):
        of_model = (r for r in results if (r["model"], r.get("set", "")) == (model, change))
        found |= {json.dumps(key_of(result)): result for result in of_model}
    return list(found.values())


def key_of(result: dict[str, Any]) -> dict[str, Any]:
    """The problem."""
    return {name: result[name] for name in KEY}


def document(results: list[dict[str, Any]]) -> str:
    """The table of docs/simulator.md: a line for each modelled instance, with cycles an MFMA and TFLOP/s."""
    columns = list(itertools.product(LENGTHS, MASKS))
    heads = [f"{length} causal" if mask == "causal" else str(length) for length, mask in columns]
    lines = [["target, head dim", "instance", *heads]]
    cells: dict[tuple[str, str], dict[tuple[int, str], str]] = {}
    for result in results:
        if merges(result["instance"]):
            continue
        of_instance = cells.setdefault((result["target"], result["instance"]), {})
        cycles, rate = result["cycles_a_mfma"], result["tflops"]
        of_instance[result["length"], result["mask"]] = f"{cycles:.1f}, {rate:.0f}"
    for target in MODELLED:
        there = {name: hdim_of(instance) for name, instance in instances(target).items()}
        for name, hdim in sorted(there.items(), key=lambda item: (COLUMNS_OF_V in item[0], item[1], item[0])):
            if of_instance := cells.get((target, name), {}):
                lines.append([*place_of(target, name, hdim), *(of_instance.get(c, "") for c in columns)])
    return markdown(lines)


def decoding(results: list[dict[str, Any]]) -> str:
    """The table of instances for few queries: microseconds, and GB/s."""
    cells: dict[tuple[str, ...], dict[int, str]] = {}
    for result in results:
        if merges(result["instance"]):
            place = tuple(place_of(result["target"], result["instance"], result["hdim"]))
            microseconds, rate = 1000 * result["time"], result["gb/s"]
            cells.setdefault(place, {})[result["length"]] = f"{microseconds:.0f}, {rate:.0f}"
    lines = [["target, head dim", "instance", *map(str, LENGTHS)]]
    lines += [[*place, *(cells[place].get(length, "") for length in LENGTHS)] for place in sorted(cells)]
    return markdown(lines)


def markdown(lines: list[list[str]]) -> str:
    """A table, whose first line is its head."""
    head, *rows = (f"| {' | '.join(line)} |\n" for line in lines)
    return f"{head}|{'---|' * len(lines[0])}\n{''.join(rows)}"


def limits(results: list[dict[str, Any]]) -> str:
    """Another one: where the cycles of the fastest instance of each head dim go, with rows of v, no mask."""
    best: dict[tuple[str, tuple[int, int]], dict[str, Any]] = {}
    for result in results:
        key = result["target"], tuple(result["hdim"])
        other = COLUMNS_OF_V in result["instance"] or merges(result["instance"])
        if (result["length"], result["mask"]) == (LIMITED, "no") and not other:
            best[key] = max(best.get(key, result), result, key=lambda one: float(one["tflops"]))
    lines: list[list[str]] = []
    for (target, hdim), result in sorted(best.items()):
        shares = [f"{100 * share:.0f}" for share in result["shares"].values()]
        lines.append([*place_of(target, result["instance"], hdim), *shares])
        names = list(result["shares"])
    return markdown([["target, head dim", "instance", *names], *lines])


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
    parser.add_argument("--build", type=Path, help="a build with GPU instances")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmark" / "results" / "model.jsonl")
    parser.add_argument("--targets", default=",".join(MODELLED), help="a comma list")
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="a comma list")
    parser.add_argument("--match", default="", help="only instances whose names match this")
    parser.add_argument("--set", default="", help="changes of the clock's parameters, as NAME=NUMBER,...")
    parser.add_argument("--missing", action="store_true", help="only what the results lack")
    parser.add_argument(
        "--table", nargs="?", const=version(), metavar="VERSIONS", help="only print what the results have"
    )
    arguments = parser.parse_args()
    there = read(arguments.results, arguments.set, arguments.table or version())
    if arguments.table:
        print(document(there), decoding(there), limits(there), sep="\n", end="")
        return
    if arguments.build is None:
        parser.error("--build is missing")
    known = [key_of(result) for result in there] if arguments.missing else []
    rows = []
    problems = itertools.product(arguments.targets.split(","), map(int, arguments.lengths.split(",")), MASKS)
    for target, length, mask in problems:
        for name, instance in instances(target).items():
            without_masks = merges(name) or "mask=no" in instance.tile.serves.split()
            if not re.search(arguments.match, name) or (without_masks and mask != "no"):
                continue
            key = dict(zip(KEY, (target, hdim_of(instance), length, mask, name)))
            if key in known:
                continue
            result = model(arguments.build, key, arguments.set)
            rows.append(row(result))
            with arguments.results.open("a") as results:
                results.write(json.dumps(result) + "\n")
    print(print_rows(rows, "text"), end="")


if __name__ == "__main__":
    main()
