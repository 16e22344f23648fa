#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts what the main loops of fmha_bwd's dq_dk_dv issue in the simulator, and the cycles of its clock.

    python benchmark/instructions_bwd.py --build build --objects hsa

runs bf16, no mask, as many queries as keys, by the instances of the build, in batch mode unless one is for
group mode alone, and beside them AITER's public objects: hsa is that folder of ROCm/aiter (e4048607), and
without --objects they are left out. Their gradients are compared with numpy's first. Numbers are those of
the loop over queries: of two lengths, what one adds to the other. A block is 64 keys and 32 queries. Prints
a table in Markdown; the lengths are multiples of all tiles, and each unit has one workgroup.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "simulator")]

from sim import Sim  # noqa: E402

from codegen.elf import CodeObject  # noqa: E402
from codegen.model import parameter  # noqa: E402
from codegen.ops import parse_apis  # noqa: E402
from codegen.rows import read_instances  # noqa: E402
from codegen.spec import Instance, symbol_of  # noqa: E402
from codegen.targets import TARGETS  # noqa: E402

LENGTHS = (768, 1536)  # multiples of all tiles
KINDS = ("matrix", "vector", "scalar", "lds", "memory")
BLOCK = 64 * 32
THREADS = 256
# AITER's objects by target and head dim: the file, keys of a workgroup, as its lists of kernels have them.
OBJECTS = {
    ("gfx942", 64): (("bwd_hd64_bf16_a32_rtna_pssk", 192), ("bwd_hd64_bf16_a32_rtne_pssk", 192)),
    ("gfx942", 128): (("bwd_hd128_bf16_a32_rtna", 192), ("bwd_hd128_bf16_a32_rtne", 192)),
    ("gfx950", 64): (("bwd_hd64_bf16_a32_rtne_pssk", 192),),
    ("gfx950", 128): (("bwd_hd128_bf16_a32_psskddv", 256),),
}


@dataclass(frozen=True)
class Run:
    """What a launch issued, or the cycles that it took."""

    counts: dict[str, int]
    cycles: float


@dataclass(frozen=True)
class Loop:
    """The same of one block of the main loop."""

    name: str
    counts: dict[str, float]
    cycles: float

    def row(self, target: str, hdim: int) -> str:
        """A line of the table. A SIMD has a quarter of the products."""
        numbers = [f"{self.counts[kind]:.1f}" for kind in KINDS]
        least = 5 * BLOCK * hdim / TARGETS[target].macs["bf16"]
        times = [f"{4 * self.cycles / self.counts['matrix']:.0f}", f"{self.cycles:.0f}"]
        return (
            f"| {' | '.join([target, str(hdim), self.name, *numbers, *times])} | {least / self.cycles:.0%} |"
        )


def find_loop(name: str, keys: int, runs: list[Run], loaded: list[Run]) -> Loop:
    """From counts of one head, and cycles of a workgroup on each unit, of both lengths."""
    short, long = LENGTHS
    blocks = (long - short) * keys / BLOCK  # that a workgroup has more of

    def of_workgroup(run: Run, length: int, kind: str) -> float:
        return run.counts[kind] / (length / keys)

    counts = {
        kind: (of_workgroup(runs[1], long, kind) - of_workgroup(runs[0], short, kind)) / blocks
        for kind in KINDS
    }
    return Loop(name, counts, (loaded[1].cycles - loaded[0].cycles) / blocks)


def heads_of(target: str, length: int, keys: int) -> int:
    """As many as give each unit a workgroup at most."""
    return int(parameter("units", target)) // (length // keys)


def one_head(*_: object) -> int:
    """For counts, of which each head has the same."""
    return 1


# ---- ours


def run_ours(build: Path, instance: Instance, length: int, heads: int) -> Run:
    """The launch of dq_dk_dv; with several heads the clock takes a sample, and counts are of that."""
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: Path(folder) / kind for kind in ("STATS", "TIMING")}
        command = [
            str(build / "bin" / "tile_example_fmha_bwd"), f"-device=sim:{instance.target.name}",
            f"-instance={instance.name}", *instance.op.problem(instance), "-b=1", f"-h={heads}",
            f"-s={length}", "-v=0", "-warmup=0", "-repeat=1", *(["-sample=1"] if heads > 1 else []),
        ]  # fmt: skip
        environment = {f"TESSERA_SIM_{kind}": str(path) for kind, path in files.items()}
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        lines = {kind: map(json.loads, path.read_text().splitlines()) for kind, path in files.items()}
    of_instance = {
        kind: next(line for line in launches if line["kernel"] == symbol_of(instance.name))
        for kind, launches in lines.items()
    }
    counts = {kind: of_instance["STATS"][kind] for kind in KINDS}
    return Run(counts, of_instance["TIMING"]["modelled_cycles"])


# ---- AITER's


def arguments_of(tensors: dict[str, int], hdim: int, length: int, heads: int, keys: int) -> bytes:
    """The kernel's argument: each member has 16 bytes (ROCm/aiter, csrc/include/mha_bwd.h)."""
    row, head = 2 * hdim, 2 * hdim * length
    numbers = [
        length, keys * row, head, head * heads, row, 1, head, head * heads, row, row, length, hdim, hdim,
        heads, head, head * heads, row, head, head * heads, row, head, head * heads, head, head * heads, row,
        4 * length,
    ]  # fmt: skip
    data = b"".join(
        struct.pack("<QQ", tensors[name], 0) for name in ("dq", "dk", "dv", "q", "k", "v", "do", "lse", "d")
    )
    data += struct.pack("<f12xf12x", hdim**-0.5, 1.4426950408889634)
    data += b"".join(struct.pack("<I12x", number) for number in numbers)
    return data + bytes(16 * 4) + struct.pack("<I12x", length) + bytes(32)


def random_tensors(hdim: int, length: int, heads: int) -> dict[str, Any]:
    """Inputs, and what attention gives for them."""
    random = np.random.default_rng(7)

    def bf16(x: Any) -> Any:
        return (x.astype(np.float32).view(np.uint32) + 0x8000 >> 16 << 16).astype(np.uint32).view(np.float32)

    q, k, v, do = (bf16(random.standard_normal((heads, length, hdim))) for _ in range(4))
    s = q @ k.transpose(0, 2, 1) * hdim**-0.5
    lse = np.log(np.exp(s).sum(-1))
    p = np.exp(s - lse[..., None])
    d = (p @ v * do).sum(-1)
    ds = p * (do @ v.transpose(0, 2, 1) - d[..., None])
    gradients = {
        "dq": ds @ k * hdim**-0.5,
        "dk": ds.transpose(0, 2, 1) @ q * hdim**-0.5,
        "dv": p.transpose(0, 2, 1) @ do,
    }
    return {"q": q, "k": k, "v": v, "do": do, "lse": lse, "d": d, **gradients}


def stored(x: Any, half: bool) -> bytes:
    """A tensor as the kernel reads it."""
    x = np.ascontiguousarray(x, np.float32)
    return (x.view(np.uint32) >> 16).astype(np.uint16).tobytes() if half else x.tobytes()


def check(sim: Sim, name: str, at: dict[str, int], want: dict[str, Any]) -> None:
    """Whether a run gave the gradients: dq is left in fp32, before its last scaling."""
    for tensor in ("dk", "dv", "dq"):
        size = want[tensor].size
        if tensor == "dq":
            got = np.frombuffer(sim.download(at[tensor], 4 * size), np.float32)
        else:
            halves = np.frombuffer(sim.download(at[tensor], 2 * size), np.uint16)
            got = (halves.astype(np.uint32) << 16).view(np.float32)
        error = np.abs(got - want[tensor].ravel()).max() / np.abs(want[tensor]).max()
        if not error < 0.02:
            sys.exit(f"{name}: {tensor} is off by {error:.3f} of its greatest element")


def run_object(library: Path, path: Path, target: str, sizes: tuple[int, int, int, int], clock: bool) -> Run:
    """One launch of an object; without the clock its results are compared."""
    hdim, length, heads, keys = sizes
    tensors = random_tensors(hdim, length, 1)
    with tempfile.TemporaryDirectory() as folder:
        stats = Path(folder) / "stats"
        os.environ["TESSERA_SIM_STATS"] = str(stats)
        with Sim(library, target, threads=2) as sim:
            sim.set_clock("sample" if clock else "off")
            half = {"q", "k", "v", "do", "dk", "dv"}
            at = {
                name: sim.upload(stored(x, name in half) * heads if name[0] != "d" or name in ("do", "d")
                                 else bytes(x.size * heads * (2 if name in half else 4)))
                for name, x in tensors.items()
            }  # fmt: skip
            image = path.read_bytes()
            kernel = next(name for name in CodeObject(image).functions)
            grid = (THREADS * -(-length // keys), heads, 1)
            argument = arguments_of(at, hdim, length, heads, keys)
            sim.launch(sim.load(image), kernel, grid, (THREADS, 1, 1), argument)
            cycles = sim.take_timing().cycles if clock else 0.0
            if not clock:
                check(sim, path.name, at, tensors)
        line = json.loads(stats.read_text().splitlines()[-1])
    return Run({kind: line[kind] for kind in KINDS}, cycles)


# ---- the table


def instances(target: str, hdim: int) -> list[Instance]:
    """Those for bf16 that serve any number of queries."""
    op = parse_apis("bwd", "simplified")[2]
    return [
        instance
        for instance in read_instances(op, ROOT / "instances", (target,))
        if (instance.tile.compute, instance.tile.hdim_q, instance.tile.hdim_v) == ("bf16", hdim, hdim)
        and not instance.tile.max_q
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, required=True, help="a build with GPU instances")
    parser.add_argument("--objects", type=Path, help="the folder hsa of ROCm/aiter")
    parser.add_argument("--targets", default="gfx90a,gfx942,gfx950")
    options = parser.parse_args()
    print(f"| target | head dim | | {' | '.join(KINDS)} | cycles an MFMA | cycles | of the peak |")
    print("|---" * 11 + "|")
    for target in options.targets.split(","):
        for hdim in (64, 128):
            for instance in instances(target, hdim):
                keys = instance.tile.bn0
                runs, loaded = (
                    [run_ours(options.build, instance, n, heads(target, n, keys)) for n in LENGTHS]
                    for heads in (one_head, heads_of)
                )
                print(find_loop(instance.name, keys, runs, loaded).row(target, hdim), flush=True)
            for name, keys in OBJECTS.get((target, hdim), ()) if options.objects else ():
                path = options.objects / target / "fmha_v3_bwd" / f"{name}.co"
                library = options.build / "libtessera_sim.so"
                runs = [run_object(library, path, target, (hdim, n, 1, keys), False) for n in LENGTHS]
                loaded = [
                    run_object(library, path, target, (hdim, n, heads_of(target, n, keys), keys), True)
                    for n in LENGTHS
                ]
                print(find_loop(f"AITER {name}", keys, runs, loaded).row(target, hdim), flush=True)


if __name__ == "__main__":
    main()
