#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models attention at the problems that others published times of on AMD GPUs, by the simulator's clock.

    python benchmark/published.py --build build

runs each once as a program's call would be, by the instance that selection takes, and writes a line of JSON
for each to benchmark/results/published.jsonl, in place of those there. Prints the tables of docs/cdna.md:
what the model says of ours beside what was measured of others. Where a tensor would be over a GiB fewer
sequences are run, and the time is multiplied: there are many times as many workgroups as places then.
--match leaves problems out. --table models nothing and prints what the results have. All of ours is modelled,
nothing measured.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmark.model import markdown, run_program  # noqa: E402
from codegen.model import version  # noqa: E402

GIB = 1 << 30
MASKS = {"": "0", " causal": "b"}


@dataclass(frozen=True)
class Problem:
    """A program's call: `words` beside the sequences; `bytes`: the most of a tensor that one of these has."""

    table: str
    name: str
    column: str
    target: str
    program: str
    words: str
    sequences: int
    bytes: int
    published: tuple[float | None, ...]

    def modelled(self, build: Path) -> dict[str, Any]:
        """What the clock says of it."""
        run = self.sequences
        while run > 1 and run * self.bytes > GIB:
            run //= 2
        words = [f"-device=sim:{self.target}", f"-b={run}", *self.words.split()]
        result = run_program(build, self.program, words)
        modelled = result["simulation"]["modelled"]
        names = {"table": self.table, "name": self.name, "column": self.column}
        half = (
            self.program == "fmha_bwd" and "-mask=b" in self.words
        )  # there the program counts hidden products
        rate = modelled["tflops"] / (2 if half else 1)
        said = {"us": 1000 * modelled["time"] * self.sequences / run, "tflops": rate}
        return {**names, "run": run, "instance": result["kernel"], "model": version(), **said}


@dataclass(frozen=True)
class Table:
    """Problems of one source."""

    name: str
    source: str
    rivals: tuple[str, ...]
    unit: str  # "tflops", "us" or "ms"
    digits: int

    def cell(self, result: dict[str, Any], published: tuple[float | None, ...]) -> str:
        """Ours, and those of others."""
        ours = result["us"] / 1000 if self.unit == "ms" else result[self.unit]
        others = ", ".join("-" if x is None else f"{x:.{self.digits}f}" for x in published)
        return f"**{ours:.{self.digits}f}**, {others}"


KITTENS = Table("MI355X", "HipKittens' paper, 16 sequences", ("AITER", "HipKittens"), "tflops", 0)
MOONMATH = Table(
    "MI300X",
    "moonmath-ai/amd-kernels, P rounded to the nearest, and cut off",
    ("theirs", "AITER", "MAX", "theirs cut off", "AITER cut off"),
    "ms",
    2,
)
DECODE = Table(
    "MI355X, decoding in bf16", "facebookexperimental/triton, pull request 2040", ("TLX", "AITER"), "us", 0
)
FP8 = Table("MI355X, decoding over fp8", "turboquant-amd", ("AITER", "their 4 bits"), "us", 0)
SPECULATIVE = Table("MI300X, decoding over fp8", "ROCm/aiter, pull request 1284", ("gluon", "asm"), "us", 0)
TABLES = (KITTENS, MOONMATH, DECODE, FP8, SPECULATIVE)

LENGTHS = (1024, 2048, 4096, 8192, 16384)
MHA, GQA = (16, 16), (64, 8)
# Direction, heads of q and of k, head dim, mask: TFLOP/s by lengths, as the table has its rivals.
OF_KITTENS: dict[tuple[str, tuple[int, int], int, str], tuple[tuple[int, int], ...]] = {
    ("fwd", MHA, 128, ""): ((828, 953), (1085, 1148), (1211, 1228), (1259, 1283), (1283, 1304)),
    ("fwd", MHA, 128, " causal"): ((555, 634), (876, 861), (1069, 1048), (1173, 1146), (1247, 1188)),
    ("fwd", GQA, 128, ""): ((1032, 1000), (1152, 1154), (1231, 1262), (1281, 1298), (1291, 1326)),
    ("fwd", GQA, 128, " causal"): ((715, 718), (941, 933), (1101, 1085), (1205, 1216), (1246, 1259)),
    ("fwd", MHA, 64, ""): ((483, 739), (679, 897), (720, 941), (747, 954), (777, 969)),
    ("fwd", MHA, 64, " causal"): ((229, 420), (311, 630), (344, 796), (493, 874), (596, 862)),
    ("bwd", MHA, 128, ""): ((590, 734), (868, 914), (1056, 1027), (1167, 1104), (1201, 1119)),
    ("bwd", MHA, 128, " causal"): ((389, 462), (673, 658), (877, 845), (1034, 941), (1109, 1028)),
    ("bwd", GQA, 128, ""): ((300, 881), (351, 1007), (375, 1106), (384, 1155), (389, 1176)),
    ("bwd", GQA, 128, " causal"): ((151, 588), (177, 753), (197, 852), (272, 933), (334, 995)),
}
# Sequences, heads, length: ms.
OF_MOONMATH: dict[tuple[int, int, int], tuple[float | None, ...]] = {
    (2, 24, 8192): (3.083, 3.792, 4.237, 2.983, 3.303),
    (2, 24, 16384): (11.670, 14.691, 17.923, None, None),
    (1, 32, 16384): (8.013, 9.031, 11.030, 7.731, 7.989),
    (4, 16, 16384): (15.591, 18.337, 22.061, None, None),
    (1, 64, 16384): (15.528, 18.333, 22.763, 15.040, 16.161),
    (2, 24, 32768): (46.002, 54.794, 69.947, None, None),
    (2, 16, 65536): (117.612, 136.301, 171.273, None, None),
}
# Keys of a sequence, sequences: us. 64 heads of q, 8 of k, pages of 64.
OF_DECODE = {
    (1024, 1): (13.9, 23.4),
    (1024, 64): (39.0, 98.9),
    (1024, 256): (130, 325),
    (8192, 1): (45.3, 51.0),
    (8192, 64): (384, 816),
    (8192, 256): (1363, 3190),
    (32768, 1): (144, 188),
    (32768, 64): (1389, 3042),
}
# Sequences, keys: us. 32 heads of q, 8 of k, pages of 16.
OF_FP8 = {(1, 4096): (32.6, 31.2), (4, 16384): (37.7, 64.4), (1, 65536): (45.9, 68.9), (4, 65536): (131, 222)}
OF_SPECULATIVE = {1: (14.8, 33.3), 3: (23.3, 88.4)}  # queries: us; 4 sequences of 4,096 keys, 16 heads by 1


def attention() -> Iterator[Problem]:
    """Of KITTENS and MOONMATH."""
    for (direction, heads, hdim, mask), rates in OF_KITTENS.items():
        name = f"{direction}, {heads[0]}/{heads[1]} heads, {hdim}{mask}"
        for length, rate in zip(LENGTHS, rates):
            words = f"-prec=bf16 -h={heads[0]} -h_k={heads[1]} -s={length} -d={hdim} -mask={MASKS[mask]}"
            most = heads[0] * length * hdim * (4 if direction == "bwd" else 2)
            program = f"fmha_{direction}"
            yield Problem(KITTENS.name, name, str(length), "gfx950", program, words, 16, most, rate)
    for (sequences, heads_of_q, length), times in OF_MOONMATH.items():
        name = f"{sequences} x {length}"
        words = f"-prec=bf16 -h={heads_of_q} -s={length} -d=128 -iperm=0 -operm=0"
        most, column = heads_of_q * length * 128 * 2, f"{heads_of_q} heads"
        yield Problem(MOONMATH.name, name, column, "gfx942", "fmha_fwd", words, sequences, most, times)


def decoding() -> Iterator[Problem]:
    """Of the tables of decoding."""
    for (keys, sequences), times in OF_DECODE.items():
        words = f"-prec=bf16 -h=64 -h_k=8 -d=128 -ctx={keys} -block_size=64"
        name = f"{keys} keys"
        most = keys * 8 * 128 * 2
        yield Problem(
            DECODE.name, name, str(sequences), "gfx950", "paged_attention", words, sequences, most, times
        )
    for (sequences, keys), (time, of_4_bits) in OF_FP8.items():
        sizes = f"-prec=bf16 -h=32 -h_k=8 -d=128 -ctx={keys} -block_size=16"
        column = f"{sequences} of {keys}"
        most = keys * 8 * 128
        for kv, times in (("fp8_e4m3", (time, None)), ("turbo4", (time, of_4_bits))):
            words = f"{sizes} -kv_cache_dtype={kv} -kv_scale={'tensor' if kv == 'fp8_e4m3' else 'none'}"
            yield Problem(FP8.name, kv, column, "gfx950", "paged_attention", words, sequences, most, times)
    for queries, times in OF_SPECULATIVE.items():
        words = f"-prec=bf16 -h=16 -h_k=1 -d=128 -ctx=4096 -qlen={queries} -block_size=16"
        words += " -kv_cache_dtype=fp8_e4m3 -kv_scale=tensor"
        name, most = "4 sequences of 4,096 keys, 16/1 heads", 4096 * 128
        column = f"queries of a sequence: {queries}"
        yield Problem(SPECULATIVE.name, name, column, "gfx942", "paged_attention", words, 4, most, times)


def key_of(one: dict[str, Any] | Problem) -> tuple[str, str, str]:
    """The problem's place in the tables."""
    named = one if isinstance(one, dict) else vars(one)
    return named["table"], named["name"], named["column"]


def document(results: list[dict[str, Any]]) -> str:
    """The tables."""
    there = {key_of(result): result for result in results}
    problems = [one for one in (*attention(), *decoding()) if key_of(one) in there]
    texts = []
    for table in TABLES:
        own = [one for one in problems if one.table == table.name]
        columns = list(dict.fromkeys(one.column for one in own))
        cells: dict[str, dict[str, str]] = {}
        for one in own:
            cells.setdefault(one.name, {})[one.column] = table.cell(there[key_of(one)], one.published)
        lines = [[name, *(row.get(column, "") for column in columns)] for name, row in cells.items()]
        head = [f"{table.name}: **ours**, {', '.join(table.rivals)}", *columns]
        unit = {"tflops": "TFLOP/s"}.get(table.unit, table.unit)
        texts.append(f"{table.source}, {unit}:\n\n{markdown([head, *lines])}")
    return "\n".join(texts)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, help="a build with GPU instances")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmark" / "results" / "published.jsonl")
    parser.add_argument("--match", default="", help="only problems whose table, name and column match this")
    parser.add_argument("--table", action="store_true", help="only print what the results have")
    arguments = parser.parse_args()
    path = arguments.results
    results = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if not arguments.table:
        if arguments.build is None:
            parser.error("--build is missing")
        for problem in (*attention(), *decoding()):
            if not re.search(arguments.match, " ".join(key_of(problem))):
                continue
            modelled = problem.modelled(arguments.build)
            print(json.dumps(modelled), file=sys.stderr)
            results = [one for one in results if key_of(one) != key_of(problem)] + [modelled]
            path.write_text("".join(json.dumps(one) + "\n" for one in results))
    print(document(results), end="")


if __name__ == "__main__":
    main()
