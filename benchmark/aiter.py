#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models AITER's public objects of attention beside ours, by the simulator's clock (docs/simulator.md).

    python benchmark/aiter.py --build build --objects hsa

hsa is that folder of ROCm/aiter (e4048607). Batch 1, 256 Ki queries in all heads, as many keys as queries,
without a mask and with a causal one: fmha_fwd with head dims 128 and 192 x 128, and mla_prefill in fp8. Each
object's results are first compared with numpy's, on few keys, in the order of waves that keeps them in step,
which some of gfx950's need (docs/cdna.md). Work of mla_prefill is dealt out as AITER does it: units get as
many tiles of keys each, and leave partial results where a block's keys are cut, which another kernel, of
HIP, puts together; that one's time is left out. Ours are what a call takes.
Appends a line of JSON for each to benchmark/results/aiter.jsonl and prints a table in Markdown. All of it
is modelled, nothing measured.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / "test" / folder) for folder in ("simulator", "reference"))]

from formats import bf16_values, e4m3_values, e4m3fnuz_values  # noqa: E402
from sim import ORDERS, Sim  # noqa: E402

from benchmark.model import run_program  # noqa: E402
from codegen.elf import CodeObject  # noqa: E402
from codegen.model import parameter, version  # noqa: E402

LENGTHS = (1024, 2048, 4096, 16384)
QUERIES = 256 * 1024
CHECKED = (2, 1024)  # heads and length of what is compared, with workgroups that cut some blocks
CUTTING = 3
# Of the greatest element: 16 bits, and 8, of which probabilities have four in fp8.
TOLERANCES = {"bf16": 0.02, "fp8": 0.05, "int8": 0.05}
BEHIND = 1 << 17  # bytes: objects load tiles behind the last one
BLOCK, TILE = 256, 128  # queries and keys of mla_prefill's objects


@dataclass(frozen=True)
class Object:
    """One of AITER's: its file in hsa without and with a causal mask, and what it computes."""

    target: str
    files: tuple[str, str]
    kind: str
    hdims: tuple[int, int]
    block: int  # queries of a workgroup
    threads: int

    @property
    def is_mla(self) -> bool:
        return "mla" in self.files[0]

    @property
    def bytes(self) -> int:
        """Of an element of q, k and v."""
        return 1 if self.kind == "fp8" else 2


def of_fwd(target: str, name: str, kind: str, hdims: tuple[int, int]) -> Object:
    """An object of fmha_v3_fwd: names of gfx942 end with how bf16 is rounded."""
    stem, _, rounding = name.partition("_rt")
    rounding = rounding and f"_rt{rounding}"
    files = [f"{target}/fmha_v3_fwd/{stem}{mask}{rounding}.co" for mask in ("", "_causal")]
    block, threads = (256, 512) if hdims[0] == hdims[1] else (128, 256)
    return Object(target, (files[0], files[1]), kind, hdims, block, threads)


MLA = "gfx950/mla/mla_pfl_qh192_vh128_m32x8_n128x1_causal{}.co"
OBJECTS = (
    of_fwd("gfx942", "MI300/fwd_hd128_bf16_rtna", "bf16", (128, 128)),
    of_fwd("gfx942", "MI300/fwd_hd192x128_bf16_rtna", "bf16", (192, 128)),
    of_fwd("gfx942", "MI300/fwd_hd128_fp8", "fp8", (128, 128)),
    of_fwd("gfx950", "fwd_hd128_bf16", "bf16", (128, 128)),
    of_fwd("gfx950", "fwd_hd192_hd128_bf16", "bf16", (192, 128)),
    of_fwd("gfx950", "fwd_hd128_fp8", "fp8", (128, 128)),
    Object("gfx950", (MLA.format(0), MLA.format(1)), "fp8", (192, 128), BLOCK, 512),
)


# ---- inputs and what attention gives for them


def random_tensor(kind: str, target: str, shape: tuple[int, ...], seed: int) -> tuple[bytes, Any]:
    """A tensor as kernels read it, and its numbers: up to 2, of fp8 1/4 and more, of int8 all but -128."""
    random = np.random.default_rng(seed)
    if kind == "fp8":
        raw = random.integers(0x28, 0x40, shape, np.uint8) | random.integers(0, 2, shape, np.uint8) << 7
        values = e4m3fnuz_values if target == "gfx942" else e4m3_values
        return raw.tobytes(), values(raw)
    if kind == "int8":
        integers = random.integers(-127, 128, shape, np.int8)
        return integers.tobytes(), integers.astype(np.float64)
    halves = (random.uniform(-2, 2, shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return halves.tobytes(), bf16_values(halves)


def reference(tensors: dict[str, Any], causal: bool) -> Any:
    """Attention of q, k and v of heads, rows and columns."""
    q, k, v = (tensors[name] for name in "qkv")
    s = q.astype(np.float64) @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


# ---- launches of objects


@dataclass(frozen=True)
class Launch:
    """The grid's workgroups, the kernel's argument, and how to read o: heads, rows and columns."""

    workgroups: tuple[int, int, int]
    argument: bytes
    result: Callable[[], Any]


def members(pointers: Iterable[int], scale: float, numbers: Iterable[int]) -> bytes:
    """Of an argument: each has 16 bytes (csrc/include/mha_fwd.h and csrc/py_itfs_cu/asm_mla.cu there)."""
    return (
        b"".join(struct.pack("<Q8x", pointer) for pointer in pointers)
        + struct.pack("<f12x", scale)
        + b"".join(struct.pack("<I12x", number) for number in numbers)
    )


def launch_fwd(sim: Sim, one: Object, at: dict[str, int], sizes: tuple[int, int], causal: bool) -> Launch:
    """Of fmha_v3_fwd, whose causal workgroups take two blocks of queries each, from both ends."""
    heads, length = sizes
    (qk, vo), row = one.hdims, one.bytes
    o, lse = sim.malloc(2 * heads * length * vo), sim.malloc(4 * heads * length)
    q_row, k_row, v_row, o_row = qk * row, qk * row, vo * row, 2 * vo
    by_heads = one.target == "gfx942" and one.hdims == (192, 128)
    option = 0 if by_heads else 3 if causal and (heads % 8 or length > 16384) else 5

    def strides(bytes_: int) -> list[int]:
        return [bytes_, bytes_ * length, bytes_ * length * heads]

    q, k, v, results = (strides(bytes_) for bytes_ in (q_row, k_row, v_row, o_row))
    argument = members(
        (o, at["q"], at["k"], at["v"], lse),
        qk**-0.5,
        [length, q[0], one.block * q_row, *q[1:], 1, *k, option, 0, length, qk, vo, heads, *v, *results],
    )
    argument += bytes(2 * 16) + struct.pack("<I12x", 4 * length) + bytes(2 * 16)
    scales = [at["one"] if one.kind == "fp8" else 0] * 3
    argument += b"".join(struct.pack("<Q8x", scale) for scale in scales) + bytes(6 * 16)
    blocks = -(-length // one.block)
    grid = (heads, blocks, 1) if by_heads else (-(-blocks // (2 if causal else 1)), heads, 1)

    def result() -> Any:
        return bf16_values(np.frombuffer(sim.download(o, o_row * heads * length), np.uint16)).reshape(
            heads, length, vo
        )

    return Launch(grid, argument, result)


@dataclass(frozen=True)
class Item:
    """Part of the keys of a block of queries; partial: where its result goes in units of blocks, -1: to o."""

    partial: int
    queries: tuple[int, int]
    keys: tuple[int, int]


def deal_out(length: int, causal: bool, workgroups: int) -> Iterator[list[Item]]:
    """The items of each workgroup of a head, as AITER's get_ps_metadata_v1_2_host() deals them out."""
    begins = range(0, length, BLOCK)
    blocks = [begins[i // 2 if i % 2 == 0 else -1 - i // 2] for i in range(len(begins))]
    keys_of = [min(begin + BLOCK, length) if causal else length for begin in blocks]
    share, rest = divmod(sum(-(-keys // TILE) for keys in keys_of), workgroups)
    block = done = partials = 0  # tiles of this block that others have
    for workgroup in range(workgroups):
        room, items = share + (workgroup < rest), []
        while room and block < len(blocks):
            begin, keys = blocks[block], keys_of[block]
            tiles = min(room, -(-keys // TILE) - done)
            end = min((done + tiles) * TILE, keys)
            partial = -1 if done == 0 and end == keys else partials
            partials += partial >= 0
            items.append(Item(partial, (begin, min(begin + BLOCK, length)), (done * TILE, end)))
            block, done = (block + 1, 0) if end == keys else (block, done + tiles)
            room -= tiles
        yield items


def launch_mla(sim: Sim, one: Object, at: dict[str, int], sizes: tuple[int, int], causal: bool) -> Launch:
    """Of mla_prefill's objects, persistent workgroups; rows of tokens, heads within."""
    (heads, length), (qk, vo) = sizes, one.hdims
    workgroups = CUTTING if sizes == CHECKED else int(parameter("units", one.target)) // heads
    of_head = list(deal_out(length, causal, workgroups))
    words: list[tuple[int, ...]] = []
    begins = [0]
    for head in range(heads):
        for items in of_head:
            for item in items:
                is_cut = item.keys[1] < (item.queries[1] if causal else length)
                behind = length - item.keys[1] if is_cut else 0
                place = -1 if item.partial < 0 else item.partial * BLOCK
                words.append((0, place, *item.queries, *item.keys, behind, head | (head + 1) << 16))
            begins.append(len(words))
    cut = [item for items in of_head for item in items if item.partial >= 0]
    o = sim.malloc(2 * length * heads * vo)
    partial_o, partial_lse = (sim.malloc(4 * max(len(cut), 1) * BLOCK * heads * n) for n in (vo, 1))

    def integers(numbers: Any) -> int:
        return sim.upload(np.array(numbers, np.int32).tobytes())

    tables = [integers(x) for x in (begins, words, (0, length), (0, length), range(length))]
    argument = members(
        [at["q"], at["k"], at["v"], o, partial_o, partial_lse, *tables, *[at["one"]] * 3],
        qk**-0.5,
        (length, heads, length, length),
    )

    def result() -> Any:
        whole = bf16_values(np.frombuffer(sim.download(o, 2 * length * heads * vo), np.uint16))
        whole = whole.reshape(length, heads, vo)
        rows = len(cut) * BLOCK
        parts = np.frombuffer(sim.download(partial_o, 4 * rows * heads * vo), np.float32)
        lse = np.frombuffer(sim.download(partial_lse, 4 * rows * heads), np.float32)
        parts, lse = parts.reshape(len(cut), BLOCK, heads, vo), lse.reshape(len(cut), BLOCK, heads, 1)
        for queries in {item.queries for item in cut}:
            mine, count = [item.partial for item in cut if item.queries == queries], queries[1] - queries[0]
            weights = np.exp(lse[mine, :count] - lse[mine, :count].max(0))
            whole[slice(*queries)] = (weights * parts[mine, :count]).sum(0) / weights.sum(0)
        return whole.transpose(1, 0, 2)

    return Launch((len(begins) - 1, 1, 1), argument, result)


def start(sim: Sim, image: bytes, launch: Launch, threads: int) -> dict[str, int]:
    """Launches an object's kernel, in the order that keeps waves in step; what it issued, by classes."""
    kernel = CodeObject(image).metadata["amdhsa.kernels"][0]
    argument = launch.argument[: kernel[".kernarg_segment_size"]]  # older ones end earlier
    x, y, z = launch.workgroups
    grid, block = (x * threads, y, z), (threads, 1, 1)
    return sim.launch(sim.load(image), kernel[".name"], grid, block, argument, order=ORDERS["alternate"])


def compare(file: str, kind: str, got: Any, want: Any) -> float:
    """How far results are from what they should be, of the greatest element: too far ends the program."""
    error = float(np.abs(got - want).max() / np.abs(want).max())
    if not error < TOLERANCES[kind]:
        sys.exit(f"{file}: off by {error:.3f} of the greatest element")
    print(f"{file}: off by {error:.4f} of the greatest element", file=sys.stderr, flush=True)
    return error


def run_object(
    library: Path, hsa: Path, one: Object, sizes: tuple[int, int], causal: bool
) -> dict[str, float]:
    """Compares the results, or with the heads of the table models the launch."""
    heads, length = sizes
    is_checked = sizes == CHECKED
    image = (hsa / one.files[causal]).read_bytes()
    with Sim(library, one.target, threads=2) as sim:
        sim.set_clock("off" if is_checked else "sample")
        shapes = {name: (heads, length, one.hdims[name == "v"]) for name in "qkv"}
        made = {
            name: random_tensor(one.kind, one.target, shape, i)
            for i, (name, shape) in enumerate(shapes.items())
        }
        if one.is_mla:  # rows of tokens, heads within
            made = {
                name: (raw, x.reshape(length, heads, -1).swapaxes(0, 1)) for name, (raw, x) in made.items()
            }
        at = {name: sim.upload(raw + bytes(BEHIND)) for name, (raw, _) in made.items()}
        at["one"] = sim.upload(struct.pack("<f", 1) * heads)
        launch = (launch_mla if one.is_mla else launch_fwd)(sim, one, at, sizes, causal)
        start(sim, image, launch, one.threads)
        if not is_checked:
            timing = sim.take_timing()
            return {"cycles": timing.cycles, "ms": timing.ms, "cycles_a_mfma": timing.cycles_a_matrix}
        want = reference({name: x for name, (_, x) in made.items()}, causal)
        return {"error": compare(one.files[causal], one.kind, launch.result(), want)}


# ---- ours


def run_ours(build: Path, one: Object, length: int, causal: bool) -> tuple[str, dict[str, float]]:
    """Name of the instance that a call takes, and its figures."""
    name = "mla_prefill" if one.is_mla else "fmha_fwd"
    problem = ["-b=1", f"-h={QUERIES // length}", f"-s={length}", f"-mask={'b' if causal else 0}"]
    problem += [f"-prec={'fp8bf16' if one.kind == 'fp8' else one.kind}"]
    problem += ["-share=0"] if one.is_mla else [f"-d={one.hdims[0]}", f"-d_v={one.hdims[1]}"]
    once = ["-warmup=0", "-repeat=1"]
    result = run_program(build, name, [f"-device=sim:{one.target}", *problem, *once])
    modelled = result["simulation"]["modelled"]
    return result["kernel"], {
        "cycles": modelled["cycles"],
        "ms": modelled["time"],
        "cycles_a_mfma": modelled["cycles_a_mfma"],
    }


# ---- the table


def figures(one: Object, length: int, causal: bool, name: str, run: dict[str, float]) -> dict[str, Any]:
    """A line of the results. Operations are counted alike: with a causal mask as half."""
    operations = 2 * QUERIES * length * sum(one.hdims) / (2 if causal else 1)
    op = "mla_prefill" if one.is_mla else "fmha_fwd"
    problem = {"target": one.target, "op": op, "kind": one.kind, "hdim": one.hdims, "length": length}
    mask = {"mask": "causal" if causal else "no", "name": name, "model": version()}
    return problem | mask | run | {"tflops": operations / run["ms"] / 1e9}


def examine(options: argparse.Namespace, one: Object, causal: bool) -> Iterator[dict[str, Any]]:
    """Lines of an object and of ours beside it, for each length."""
    library, file = options.build / "libtessera_sim.so", one.files[causal]
    run_object(library, options.objects, one, CHECKED, causal)
    for length in LENGTHS:
        run = run_object(library, options.objects, one, (QUERIES // length, length), causal)
        yield figures(one, length, causal, f"AITER {Path(file).stem}", run)
        yield figures(one, length, causal, *run_ours(options.build, one, length, causal))


def row(lines: list[dict[str, Any]]) -> str:
    """A line of the table: of one kernel, or of those that calls take, thousands of cycles and TFLOP/s."""
    first = lines[0]
    names = dict.fromkeys(re.sub(r".*_w\d+_(\w+)", r"`\1`", line["name"]) for line in lines)
    dims = "x".join(map(str, dict.fromkeys(first["hdim"])))
    place = f"{first['target']} {first['op']} {dims} {first['kind']}"
    place += ", causal" if first["mask"] == "causal" else ""
    cells = [f"{line['cycles'] / 1000:.0f}, {line['tflops']:.0f}" for line in lines]
    return " | ".join(["", place, ", ".join(names), *cells, ""]).strip()


def command_line(description: str | None) -> argparse.Namespace:
    """What a program that sets objects beside ours is asked."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, required=True, help="a build with GPU instances")
    parser.add_argument("--objects", type=Path, required=True, help="the folder hsa of ROCm/aiter")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmark" / "results" / "aiter.jsonl")
    parser.add_argument("--match", default="", help="only objects whose files' names have this")
    return parser.parse_args()


def main() -> None:
    """The command line."""
    options = command_line(__doc__)
    print(f"| thousands of cycles, TFLOP/s | | {' | '.join(map(str, LENGTHS))} |")
    print("|---" * (2 + len(LENGTHS)) + "|")
    for one in OBJECTS:
        for causal in (False, True):
            if options.match not in one.files[causal]:
                continue
            lines = list(examine(options, one, causal))
            with options.results.open("a") as results:
                results.writelines(json.dumps(line) + "\n" for line in lines)
            for mine in (lines[::2], lines[1::2]):
                print(row(mine), flush=True)


if __name__ == "__main__":
    main()
