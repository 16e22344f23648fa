#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models AITER's public objects of paged decoding beside ours, and counts what they issue.

    python benchmark/aiter_pa.py --build build --objects hsa

hsa is that folder of ROCm/aiter (e4048607), whose csrc/py_itfs_cu/asm_pa.cu has the argument, the grid and
the layouts: a workgroup has all keys of a key head of a sequence. One query of 1 and 64 sequences of 8,192
keys, 32/8 heads, head dim 128, pages of 16 keys in any order, vectorized, in bf16, or quantised with a scale
for each token and head. Results of each run of an object are compared with those of our CPU's
paged_attention of the same tensors, first with few keys that fill neither pages nor tiles. Ours are what a
call takes, over pages of the same layout, and over linear ones (nhd). All workgroups are executed, so that
counts are of everything. Appends a line of JSON for each to benchmark/results/aiter.jsonl, with the counts
for each key of a key head, and prints a table in Markdown. Times are by the simulator's clock
(docs/simulator.md), nothing is measured. The build needs CPU instances, too.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / "test" / folder) for folder in ("simulator", "reference"))]

from formats import bf16_values  # noqa: E402
from sim import Sim  # noqa: E402

from benchmark.aiter import (  # noqa: E402
    BEHIND,
    Launch,
    command_line,
    compare,
    members,
    random_tensor,
    start,
)
from benchmark.library import Call, Tessera  # noqa: E402
from benchmark.model import run_program  # noqa: E402
from codegen.model import version  # noqa: E402

HEADS, KEY_HEADS, HDIM, PAGE = 32, 8, 128, 16
KEYS, SEQUENCES = 8192, (1, 64)
CHECKED = (1000, 129, 16)  # keys of the sequences that are only compared
THREADS = 256
KINDS = ("matrix", "vector", "scalar", "lds", "memory")
LAYOUTS = ("vectorized", "nhd")
SCALE = HDIM**-0.5
# For numbers of random_tensor() up to 1, as their own test has them, so that scores are a model's.
LARGEST_SCALE = {"fp8": 0.5, "int8": 1 / 127}


@dataclass(frozen=True)
class Decoder:
    """One of AITER's objects for as many as 8 query heads to a key head; kind: of the cache."""

    target: str
    kind: str
    stem: str

    @property
    def file(self) -> str:
        """In hsa."""
        return f"{self.target}/pa/{self.stem}.co"

    @property
    def bytes(self) -> int:
        """Of an element of the cache."""
        return 2 if self.kind == "bf16" else 1

    @property
    def cache_dtype(self) -> str:
        """Our name of the kind."""
        return {"bf16": "auto", "fp8": "fp8_e4m3"}.get(self.kind, self.kind)


OBJECTS = tuple(
    Decoder(target, kind, f"pa_bf16_{name}")
    for target in ("gfx942", "gfx950")
    for kind, name in (
        ("bf16", "noquant_gqa8_1tg_4w"),
        ("fp8", "pertokenFp8_gqa8_2tg_4w"),
        ("fp8", "pertokenFp8_gqa8_2tg_4w_uhp"),
        ("int8", "pertokenInt8_gqa8_2tg_4w"),
    )
)

Tensors = dict[str, bytes]


def random_tensors(one: Decoder, keys: tuple[int, ...]) -> Tensors:
    """By the fields of tessera_paged_attention_args; caches of several sequences repeat one's pages."""
    columns = -(-max(keys) // PAGE)
    random = np.random.default_rng(7)
    tensors = {"q_ptr": random_tensor("bf16", one.target, (len(keys), HEADS, HDIM), 0)[0]}
    for seed, name in enumerate("kv", 1):
        rows = (columns, KEY_HEADS, PAGE)
        tensors[f"{name}_ptr"] = random_tensor(one.kind, one.target, (*rows, HDIM), seed)[0] * len(keys)
        if largest := LARGEST_SCALE.get(one.kind):
            scales = random.uniform(largest / 2, largest, rows).astype(np.float32)
            tensors[f"{name}_scale_ptr"] = scales.tobytes() * len(keys)
    table = random.permutation(columns * len(keys)).astype(np.int32)
    return tensors | {"block_table_ptr": table.tobytes(), "seqlen_k_ptr": np.array(keys, np.int32).tobytes()}


def halve(scales: bytes) -> bytes:
    """Of tokens."""
    return (np.frombuffer(scales, np.float32) / 2).tobytes()


def expected(build: Path, one: Decoder, keys: tuple[int, ...], tensors: Tensors) -> Any:
    """What our CPU's paged_attention gives. A byte of gfx942's e4m3 is half of what it is of OCP's."""
    if one.kind == "fp8" and one.target == "gfx942":
        tensors = tensors | {name: halve(tensors[name]) for name in ("k_scale_ptr", "v_scale_ptr")}
    o = np.empty((len(keys), HEADS, HDIM), np.uint16)
    tessera = Tessera(build, "cpu")
    traits = {
        "hdim_q": HDIM, "hdim_v": HDIM, "data_type": tessera.value("fmha_dtype", "bf16"),
        "kv_cache_dtype": tessera.value("kv_cache_dtype", one.cache_dtype),
        "kv_memory_layout": tessera.value("kv_layout", "vectorized"),
    }  # fmt: skip
    columns, row = -(-max(keys) // PAGE), HEADS * HDIM
    args = {
        "batch": len(keys), "max_seqlen_q": 1, "max_seqlen_k": max(keys), "hdim_q": HDIM, "hdim_v": HDIM,
        "nhead_q": HEADS, "nhead_k": KEY_HEADS, "num_total_pages": columns * len(keys),
        "page_block_size": PAGE, "scale_s": SCALE, "batch_stride_block_table": columns,
        "stride_q": row, "stride_o": row, "batch_stride_q": row, "batch_stride_o": row,
        "nhead_stride_q": HDIM, "nhead_stride_o": HDIM, "o_ptr": o.ctypes.data,
    }  # fmt: skip
    for x in "kv":
        args |= {f"nhead_stride_{x}": PAGE * HDIM, f"batch_stride_{x}": KEY_HEADS * PAGE * HDIM}
        if f"{x}_scale_ptr" in tensors:
            args |= {f"stride_{x}_scale": 1, f"nhead_stride_{x}_scale": PAGE}
            args |= {f"batch_stride_{x}_scale": KEY_HEADS * PAGE}
    args |= {name: np.frombuffer(raw, np.uint8).ctypes.data for name, raw in tensors.items()}
    call = Call(tessera, "paged_attention", traits, args)
    workspace = np.empty(call.workspace_bytes() + 64, np.uint8)
    call.set_workspace(workspace.ctypes.data + -workspace.ctypes.data % 64, workspace.size - 64)
    call()
    tessera.close()
    return bf16_values(o)


def launch_decoder(sim: Sim, one: Decoder, keys: tuple[int, ...], tensors: Tensors) -> Launch:
    """Of pa_fwd()."""
    shape = len(keys), HEADS, HDIM
    o = sim.malloc(2 * math.prod(shape))
    at = {name: sim.upload(raw + bytes(BEHIND)) for name, raw in tensors.items()}
    order = ("q_ptr", "k_ptr", "v_ptr", "block_table_ptr", "seqlen_k_ptr", "k_scale_ptr", "v_scale_ptr")
    head = PAGE * HDIM * one.bytes
    more_queries = 0  # that a sequence has than one
    argument = members(
        [o, *(at.get(name, 0) for name in order)],
        SCALE * math.log2(math.e),
        [-(-max(keys) // PAGE), KEY_HEADS, HEADS * HDIM * 2, KEY_HEADS * head, head, more_queries,
         HEADS // KEY_HEADS],
    )  # fmt: skip

    def result() -> Any:
        return bf16_values(np.frombuffer(sim.download(o, 2 * math.prod(shape)), np.uint16)).reshape(shape)

    return Launch((KEY_HEADS, len(keys), 1), argument + bytes(16), result)


def run_object(build: Path, hsa: Path, one: Decoder, keys: tuple[int, ...], clock: str) -> dict[str, float]:
    """Compares the results; counts, and what the clock says."""
    tensors = random_tensors(one, keys)
    with Sim(build / "libtessera_sim.so", one.target, threads=2) as sim:
        sim.set_clock(clock)
        launch = launch_decoder(sim, one, keys, tensors)
        counts = start(sim, (hsa / one.file).read_bytes(), launch, THREADS)
        compare(one.file, one.kind, launch.result(), expected(build, one, keys, tensors))
        timing = sim.take_timing()
    return {"cycles": timing.cycles, "ms": timing.ms} | {kind: counts[kind] for kind in KINDS}


def run_ours(build: Path, one: Decoder, sequences: int, layout: str) -> tuple[str, dict[str, float]]:
    """Name of the instance that a call takes, and its figures, of all launches."""
    cache = [f"-kv_cache_dtype={one.cache_dtype}", "-kv_scale=token"]
    problem = [f"-b={sequences}", f"-h={HEADS}", f"-h_k={KEY_HEADS}", f"-ctx={KEYS}", f"-d={HDIM}"]
    problem += [f"-block_size={PAGE}", f"-kv_layout={layout}", *(cache if one.kind != "bf16" else ())]
    words = [f"-device=sim:{one.target}", *problem, "-warmup=0", "-repeat=1"]
    with tempfile.TemporaryDirectory() as folder:
        stats = Path(folder) / "stats"
        result = run_program(build, "paged_attention", words, sampled=False, TESSERA_SIM_STATS=str(stats))
        launches = [json.loads(line) for line in stats.read_text().splitlines()]
    modelled = result["simulation"]["modelled"]
    figures = {"cycles": modelled["cycles"], "ms": modelled["time"]}
    attends = next(line["kernel"] for line in launches if line["matrix"])
    return attends, figures | {kind: sum(line[kind] for line in launches) for kind in KINDS}


def figures(one: Decoder, sequences: int, layout: str, name: str, run: dict[str, float]) -> dict[str, Any]:
    """A line of the results."""
    problem = {"target": one.target, "op": "paged_attention", "kind": one.kind, "sequences": sequences}
    a_key = {kind: run[kind] / (sequences * KEYS * KEY_HEADS) for kind in KINDS}
    return problem | {"length": KEYS, "layout": layout, "name": name, "model": version()} | run | a_key


def examine(build: Path, hsa: Path, objects: list[Decoder]) -> Iterator[list[dict[str, Any]]]:
    """Lines of objects for the same caches, and of ours beside them: of each for all numbers of sequences."""
    for one in objects:
        runs = [run_object(build, hsa, one, (KEYS,) * sequences, "on") for sequences in SEQUENCES]
        name = f"AITER {one.stem}"
        yield [figures(one, n, LAYOUTS[0], name, run) for n, run in zip(SEQUENCES, runs)]
    one = objects[0]
    for layout in LAYOUTS:
        yield [figures(one, n, layout, *run_ours(build, one, n, layout)) for n in SEQUENCES]


def row(lines: list[dict[str, Any]]) -> str:
    """A line of the table; counts are those with most sequences."""
    first, last = lines[0], lines[-1]
    prefix = f"_{first['target']}_"
    names = dict.fromkeys(f"`{line['name'].rpartition(prefix)[2]}`" for line in lines)
    times = [f"{line['cycles'] / 1000:.0f}, {line['ms'] * 1000:.0f}" for line in lines]
    counts = [f"{last[kind]:.2f}" for kind in KINDS]
    place = [f"{first['target']} {first['kind']}", first["layout"], ", ".join(names)]
    return " | ".join(["", *place, *times, *counts, ""]).strip()


def main() -> None:
    """The command line."""
    options = command_line(__doc__)
    chosen = [one for one in OBJECTS if options.match in one.file]
    for one in chosen:
        run_object(options.build, options.objects, one, CHECKED, "off")
    heads = [f"{n} sequence{'s' if n > 1 else ''}" for n in SEQUENCES]
    print(f"| thousands of cycles, us | pages | | {' | '.join([*heads, *KINDS])} |")
    print("|---" * (3 + len(heads) + len(KINDS)) + "|")
    for _, objects in groupby(chosen, key=attrgetter("target", "kind")):
        for lines in examine(options.build, options.objects, list(objects)):
            with options.results.open("a") as results:
                results.writelines(json.dumps(line) + "\n" for line in lines)
            print(row(lines), flush=True)


if __name__ == "__main__":
    main()
