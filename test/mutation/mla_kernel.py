# SPDX-License-Identifier: MIT
"""Runs emitted kernels of mla_prefill on a sequence of few queries more than a block."""

from __future__ import annotations

import functools
import math
import random
from pathlib import Path
from typing import Any

from arguments import struct_of
from sim import Sim

ROOT = Path(__file__).resolve().parents[2]
UNBOUNDED = 2**30 - 1
THREADS, BM, BN, QK, V, ROPE = 512, 256, 128, 192, 128, 64
QUERIES, KEYS = BM + 9, 4 * BN + 5  # one round of the main loop and a tile


@functools.cache
def fill(count: int, seed: int) -> bytes:
    """Random numbers of fp8 from 2^-3 to 4, and their negatives."""
    source = random.Random(seed)
    return bytes(source.randrange(0x20, 0x49) | source.randrange(2) << 7 for _ in range(count))


class MlaKernel:
    """An item is a block of a head: two blocks of items // 2 heads, under a causal mask, so that they differ.

    `workgroups` of a persistent grid take the items; a static grid has a workgroup for each.
    """

    def __init__(self, kernel: str, items: int, workgroups: int) -> None:
        self.kernel, self.items, self.heads = kernel, items, items // 2
        self.grid = (workgroups, 1) if "persistent1" in kernel else (self.heads, 2)
        self.workgroups = workgroups
        self.call, self.more = (
            struct_of(ROOT / f"include/tessera/kernel/{name}.h", f"tessera_{name}_args")
            for name in ("fmha_fwd_gpu", "mla_prefill_cdna")
        )

    def __call__(self, sim: Sim, image: bytes, how: dict[str, int]) -> bytes:
        heads = self.heads
        call: Any = self.call(stride_q=QK, stride_k=V, stride_v=V, stride_o=V, keep_scale=1)
        call.q = sim.upload(fill(heads * QUERIES * QK, 1))
        call.k, call.v = (sim.upload(fill(KEYS * V, seed)) for seed in (2, 3))
        call.o, call.lse = sim.upload(bytes(2 * heads * QUERIES * V)), sim.upload(bytes(4 * heads * QUERIES))
        call.nhead_stride_q, call.nhead_stride_o, call.nhead_stride_lse = QUERIES * QK, QUERIES * V, QUERIES
        call.nhead_q = call.group = heads
        call.nhead_k = call.together = 1
        call.over_nhead_k = call.over_together = 2**32 - 1
        call.min_seqlen_q, call.blocks_q = -1, 2
        call.hdim_q, call.hdim_v, call.seqlen_q, call.seqlen_k = QK, V, QUERIES, KEYS
        call.scale_log2 = math.log2(math.e) / math.sqrt(QK)
        call.mask_y, call.mask_x, call.shift_x = UNBOUNDED, 1, 1
        more: Any = self.more(stride_k_rope=ROPE, items=self.items, workgroups=self.workgroups)
        more.k_rope = sim.upload(fill(KEYS * ROPE, 4))
        grid = (self.grid[0] * THREADS, self.grid[1], 1)
        sim.launch(sim.load(image), self.kernel, grid, (THREADS, 1, 1), bytes(call) + bytes(more), **how)
        return sim.download(call.o, 2 * heads * QUERIES * V) + sim.download(call.lse, 4 * heads * QUERIES)
