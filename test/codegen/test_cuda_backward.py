# SPDX-License-Identifier: MIT
"""Instances of fmha_bwd for sm_90a: what rows are refused, registers, and how warpgroups share out dq."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from codegen.ops import operations
from codegen.ops.fmha_bwd.cuda import CudaTile
from codegen.render import instance_source
from codegen.rows import read_instances
from codegen.spec import ROOT, Instance
from codegen.targets import TARGETS

SM90 = TARGETS["sm_90a"]
TILE = CudaTile(
    pipeline="kr_ktr_vr_async",
    epilogue="store",
    compute="bf16",
    hdim_q=128,
    hdim_v=128,
    bm0=64,
    bn0=128,
    efficiency=0.5,
    why="a test",
)
INSTANCES = read_instances(
    next(op for op in operations().values() if op.name == "fmha_bwd"), ROOT / "instances", ("sm_90a",)
)
WIDE = {"general": 1, "passes": 2, "q_stages": 1, "do_stages": 1, "dq_boxes": 1}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, ""),
        ({"general": 1}, ""),
        ({"compute": "fp32"}, "compute 'fp32' is none of fp16, bf16"),
        ({"pipeline": "kr_ktr_vr"}, "pipeline 'kr_ktr_vr' is not kr_ktr_vr_async"),
        ({"epilogue": "quant"}, "epilogue 'quant' is not 'store'"),
        ({"q_stages": 0}, "head dims and stages must be positive and 0 < efficiency <= 1"),
        ({"general": 2}, "general = 2 is neither 0 nor 1"),
        ({"general": 1, "passes": 3}, "passes = 3 is none of 1, 2"),
        ({"general": 1, "ds_stages": 3}, "ds_stages = 3 is neither 1 nor 2"),
        ({"general": 1, "dq_over_ds": 1}, "dq_over_ds = 1 is neither 0 nor, with ds_stages = 1, 1"),
        ({"general": 1, "ds_stages": 1, "dq_over_ds": 1}, ""),
        ({"passes": 2}, "passes = 2 and ds_stages = 2 are not 1 and 2, and general is 0"),
        ({"ds_stages": 1}, "passes = 1 and ds_stages = 1 are not 1 and 2, and general is 0"),
        ({"bn0": 64}, "bm0 = 64 and bn0 = 64 are not 64, 80 or 128, and 128"),
        ({"bm0": 128, "hdim_q": 64, "hdim_v": 64}, ""),
        ({"bm0": 80, "q_stages": 2}, ""),
        (
            {"bm0": 80, "hdim_q": 64, "hdim_v": 64},
            "bm0 = 80: a warpgroup has 64 columns of dq, all on their way at once",
        ),
        (
            {"bm0": 128, "hdim_q": 64, "hdim_v": 64, "general": 1},
            "bm0 = 128, and general is 1: registers have room for 64",
        ),
        (
            {"bm0": 128, "q_stages": 1, "do_stages": 1, "dq_boxes": 1},
            "sums and tiles take 300 registers of a thread, which has 240",
        ),
        ({"hdim_q": 320}, "hdim_q = 320: two warpgroups share out slices of 64 up to 256 columns"),
        ({"dq_boxes": 3}, "dq_boxes = 3 of 32 columns do not divide 64"),
        ({"hdim_v": 320}, "hdim_v = 320: a product has at most 256 columns"),
        ({"hdim_q": 256, "hdim_v": 256, "ds_stages": 1, **WIDE}, ""),
        (
            {"hdim_q": 256, "hdim_v": 256, **WIDE},
            "tiles take 246552 bytes of shared memory, a workgroup of sm_90a has at most 232448",
        ),
        (
            {"hdim_q": 192, "q_stages": 1, "do_stages": 1, "dq_boxes": 1},
            "sums and tiles take 252 registers of a thread, which has 240",
        ),
    ],
)
def test_complaints(changes: dict[str, object], complaint: str) -> None:
    assert replace(TILE, **changes).complaint(SM90) == complaint  # type: ignore[arg-type]


@pytest.mark.parametrize("instance", [i for i in INSTANCES if not i.tile.dq_turned], ids=lambda i: i.name)
def test_products_of_dq(instance: Instance) -> None:
    """All columns of dq, whole slices of 64 in one product, in steps of 16 keys, whose rows are 128 bytes."""
    text = instance_source(instance)
    chains = re.findall(r"INLINE void start_dq\w*\(.*?\n}\n", text, re.S)
    columns = [int(re.findall(r"m64n(\d+)k16", chain)[0]) for chain in chains]
    shares = instance.tile.warpgroups if instance.tile.bm0 == 64 else 1
    assert sum(columns) * shares == instance.tile.dq
    assert all(count in (32, 64, 128) for count in columns)
    for chain in chains:
        assert [int(n) for n in re.findall(r"add\.s64 y, %\d+, (\d+);", chain)] == list(range(0, 1024, 128))
    assert text.count("start_dq") == 2 * len(chains)  # each is called once
    pending = re.findall(r"INLINE void await_dk.*?wait_group\S* (\d);", text, re.S)
    assert pending == ([str(len(chains))] if instance.tile.general else [])


@pytest.mark.parametrize("instance", [i for i in INSTANCES if i.tile.dq_turned], ids=lambda i: i.name)
def test_turned_products_of_dq(instance: Instance) -> None:
    """Rows are 64 of the columns of k, across its rows of 128 bytes; columns are all queries, in slices of
    64 keys. A step has 16 keys.
    """
    tile = instance.tile
    (chain,) = re.findall(r"INLINE void start_dq\w*\(.*?\n}\n", instance_source(instance), re.S)
    assert set(re.findall(r"m64n\d+k16", chain)) == {f"m64n{tile.bm0}k16"}
    assert 64 * tile.warpgroups == tile.dq
    assert [int(n) for n in re.findall(r"add\.s64 x, %\d+, (\d+);", chain)] == list(range(0, 1024, 128))
    steps = [8 * tile.bm0 * (step // 4) + 2 * (step % 4) for step in range(8)]
    assert [int(n) for n in re.findall(r"add\.s64 y, %\d+, (\d+);", chain)] == steps


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda i: i.name)
def test_registers_are_shared_out(instance: Instance) -> None:
    """No more than ptxas gives the workgroup at entry."""
    tile = instance.tile
    at_entry = 65536 // tile.threads // 8 * 8
    assert tile.producer_registers + tile.warpgroups * tile.consumer_registers <= 3 * at_entry
