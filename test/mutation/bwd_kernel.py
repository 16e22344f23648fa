# SPDX-License-Identifier: MIT
"""Runs emitted kernels of fmha_bwd's dq_dk_dv on few queries more than two tiles, and two blocks of keys."""

from __future__ import annotations

import functools
import math
import random
import struct
from pathlib import Path
from typing import Any

from arguments import struct_of
from sim import Sim

ROOT = Path(__file__).resolve().parents[2]
UNBOUNDED = 2**30 - 1
HEADS = 2
RESULTS = ("dq_acc", "dk", "dv")


@functools.cache
def fill(kind: str, count: int, seed: int) -> bytes:
    """Random numbers from -1 to 1."""
    source = random.Random(seed)
    numbers = [source.uniform(-1, 1) for _ in range(count)]
    if kind != "bf16":
        return struct.pack(f"<{count}{'e' if kind == 'fp16' else 'f'}", *numbers)
    return b"".join(struct.pack("<f", number)[2:] for number in numbers)


class BwdKernel:
    """Under a causal mask, so that blocks of keys differ; to an element of dq both of them add, in any order.

    An instance that stores parts of dq has a part for each. lse is any number that keeps probabilities small.
    """

    def __init__(self, kernel: str, kind: str, hdims: tuple[int, int], tile: tuple[int, int]) -> None:
        self.kernel, self.kind, self.hdims = kernel, kind, hdims
        self.queries, self.keys, self.threads = 2 * tile[0] + 9, tile[1] + 5, 2 * tile[1]
        self.parts = 2 if kernel.endswith("_sdq1") else 1
        header = ROOT / "include/tessera/kernel/fmha_bwd_gpu.h"
        self.args_of = struct_of(header, "tessera_fmha_bwd_gpu_args")

    def __call__(self, sim: Sim, image: bytes, how: dict[str, int]) -> bytes:
        dq, dv, queries, keys = *self.hdims, self.queries, self.keys
        size = 4 if self.kind == "fp32" else 2
        args: Any = self.args_of(batch=1, nhead_q=HEADS, nhead_k=HEADS, group=1, dkv_group=1, keep_scale=1)
        for name, rows, hdim in (("q", queries, dq), ("k", keys, dq), ("v", keys, dv), ("d_o", queries, dv)):
            given = fill(self.kind, HEADS * rows * hdim, len(name) + rows + hdim)
            setattr(args, name, sim.upload(given))
            short = name.replace("_", "")
            setattr(args, f"stride_{short}", hdim)
            setattr(args, f"nhead_stride_{short}", rows * hdim)
        args.lse = sim.upload(struct.pack("<f", 2 + math.log(keys)) * (HEADS * queries))
        args.d = sim.upload(fill("fp32", HEADS * queries, 5))
        args.nhead_stride_lsed = queries
        args.stride_dk, args.stride_dv = dq, dv
        args.nhead_stride_dk, args.nhead_stride_dv = keys * dq, keys * dv
        args.nsplits = sim.upload(struct.pack("<i", self.parts))
        args.is_dq_stored = args.is_dq_stored_all = int(self.parts > 1)
        args.seqlen_q, args.seqlen_k, args.hdim_q, args.hdim_v = queries, keys, dq, dv
        args.mask_y, args.mask_x, args.shift_x = UNBOUNDED, 1, 1
        args.scale = dq**-0.5
        args.scale_log2 = args.scale * math.log2(math.e)
        args.blocks_k = 2
        sizes = (4 * HEADS * self.parts * queries * dq, size * HEADS * keys * dq, size * HEADS * keys * dv)
        for name, count in zip(RESULTS, sizes, strict=True):
            setattr(args, name, sim.upload(bytes(count)))
        grid = (2 * self.threads, HEADS, 1)
        sim.launch(sim.load(image), self.kernel, grid, (self.threads, 1, 1), bytes(args), **how)
        return b"".join(
            sim.download(getattr(args, name), count) for name, count in zip(RESULTS, sizes, strict=True)
        )
