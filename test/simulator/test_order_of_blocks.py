# SPDX-License-Identifier: MIT
"""In which order kernels of fmha_fwd go through heads and blocks of queries changes no result."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import pytest
from arguments import struct_of
from emitted import build
from sampling import sample
from sim import ORDERS, Sim
from waits import UNBOUNDED, fill

from codegen.ops.fmha_fwd import operation
from codegen.rows import read_instances
from codegen.spec import ROOT, Instance

SEQUENCES, KEY_HEADS, GROUP = 3, 4, 2
HEADS = KEY_HEADS * GROUP
SUBJECTS = (("qr", 64), ("qr_bundled", 64), ("qr_bundled", 128), ("hk_prefill", 64))  # pipeline, head dim
# Key heads that take turns, blocks of a workgroup.
ORDERS_OF = ((1, 1), (2, 1), (3, 1), (6, 1), (12, 1), (4, 2), (12, 2), (3, 3), (2, 4))


@functools.cache
def instance_of(pipeline: str, hdim: int) -> Instance:
    """A row in bf16 whose workgroups have the most queries."""
    made = read_instances(operation("simplified"), ROOT / "instances", ("gfx950",))
    fitting = [
        one
        for one in made
        if (one.tile.pipeline, one.tile.compute, one.tile.hdim_q, one.tile.hdim_v, one.tile.v_layout)
        == (pipeline, "bf16", hdim, hdim, "r")
    ]
    return max(fitting, key=lambda one: int(one.tile.bm0))


@pytest.fixture(scope="module", params=sample(SUBJECTS, 1), ids=lambda subject: f"{subject[0]}_{subject[1]}")
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Instance, bytes]:
    """An instance and its code object."""
    instance = instance_of(*request.param)
    return instance, build(instance, tmp_path_factory.mktemp("order")).read_bytes()


def divisor(number: int) -> tuple[int, int]:
    """The factor and the shift that stand for it."""
    shift = number.bit_length() - 1
    return min((1 << 32 + shift) // number, 2**32 - 1), shift


def run(library: Path, instance: Instance, image: bytes, order: tuple[int, int], waves: str) -> bytes:
    """O and the logarithms of sums, under the sanitizer."""
    together, turns = order
    hdim = int(instance.tile.hdim_q)
    bm0, threads = int(instance.tile.bm0), int(instance.tile.threads)
    queries = 2 * bm0 if instance.tile.pipeline == "hk_prefill" else 2 * bm0 + 9  # whole tiles
    args: Any = struct_of(ROOT / "include/tessera/kernel/fmha_fwd_gpu.h", "tessera_fmha_fwd_gpu_args")()
    with Sim(library, "gfx950", sanitize=True) as sim:
        for name, heads, seed in (("q", HEADS, 1), ("k", KEY_HEADS, 2), ("v", KEY_HEADS, 3)):
            setattr(args, name, sim.upload(fill("bf16", SEQUENCES * heads * queries * hdim, seed)))
            setattr(args, f"stride_{name}", hdim)
            setattr(args, f"nhead_stride_{name}", queries * hdim)
            setattr(args, f"batch_stride_{name}", heads * queries * hdim)
        rows = SEQUENCES * HEADS * queries
        args.o, args.lse = sim.upload(bytes(2 * rows * hdim)), sim.upload(bytes(4 * rows))
        args.stride_o, args.nhead_stride_o, args.nhead_stride_lse = hdim, queries * hdim, queries
        args.batch_stride_o, args.batch_stride_lse = HEADS * queries * hdim, HEADS * queries
        args.seqlen_q = args.seqlen_k = queries
        args.nhead_q, args.nhead_k, args.group, args.together = HEADS, KEY_HEADS, GROUP, together
        args.over_nhead_k, args.shift_nhead_k = divisor(KEY_HEADS)
        args.over_together, args.shift_together = divisor(together)
        args.blocks_q, args.turns = -(-queries // bm0), turns
        args.rows = -(-args.blocks_q // turns)
        args.hdim_q = args.hdim_v = hdim
        args.scale_log2, args.min_seqlen_q, args.keep_scale = math.log2(math.e) / math.sqrt(hdim), -1, 1
        args.mask_y, args.mask_x, args.shift_x = UNBOUNDED, 1, 1
        grid = (together * GROUP * threads, args.rows, SEQUENCES * KEY_HEADS // together)
        name = f"tessera_k_{instance.name.replace('__', '_')}"
        how = {"order": ORDERS[waves], "seed": 1, "max_instructions": 20_000_000}
        sim.launch(sim.load(image), name, grid, (threads, 1, 1), bytes(args), **how)
        return sim.download(args.o, 2 * rows * hdim) + sim.download(args.lse, 4 * rows)


def test_each_order_gives_the_same(built: tuple[Instance, bytes], library: Path) -> None:
    """One sequence after the other, a block for each workgroup, as two others, which change every day."""
    instance, image = built
    usual = run(library, instance, image, (KEY_HEADS, 1), "forward")
    assert any(usual)
    for order in sample([one for one in ORDERS_OF if instance.tile.turns > 1 or one[1] == 1], 2):
        assert run(library, instance, image, order, "random") == usual, order
