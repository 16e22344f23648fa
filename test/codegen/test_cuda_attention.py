# SPDX-License-Identifier: MIT
"""Instances of fmha_fwd for sm_90a: what rows are refused, registers, and the products that are emitted."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from device import compile_ptx

from codegen.ops import operations
from codegen.ops.fmha_fwd.cuda import COMPUTES, CudaTile
from codegen.render import instance_source
from codegen.rows import read_instances
from codegen.spec import ROOT, Instance
from codegen.targets import TARGETS

SM90 = TARGETS["sm_90a"]
TILE = CudaTile(
    pipeline="qr_async",
    epilogue="store",
    compute="bf16",
    hdim_q=128,
    hdim_v=128,
    bm0=128,
    bn0=128,
    rm0=2,
    efficiency=0.7,
    why="a test",
)
INSTANCES = read_instances(
    next(op for op in operations().values() if op.name == "fmha_fwd"), ROOT / "instances", ("sm_90a",)
)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, ""),
        ({"compute": "fp32"}, "compute 'fp32' is none of fp16, bf16, fp8"),
        ({"pipeline": "qr"}, "pipeline 'qr' is none of qr_async, qr_pages, qr_heads"),
        ({"o": "fp32"}, "o = 'fp32' of bf16 is none of bf16"),
        ({"epilogue": "quant"}, "epilogue 'quant' with o of bf16, which takes 'store'"),
        ({"compute": "fp8"}, "epilogue 'store' with o of fp8, which takes 'quant'"),
        ({"merge": 1}, ""),
        ({"merge": 2}, "merge = 2 is neither 0 nor 1"),
        ({"paged": 3}, "paged = 3 is none of 0, 1 and 2"),
        ({"paged": 2, "bn0": 96}, "bn0 = 96 is no multiple of 64: rows of columns of v are whole slices"),
        ({"stages": 0}, "sizes and stages must be positive and 0 < efficiency <= 1"),
        ({"q_stages": 0}, "sizes and stages must be positive and 0 < efficiency <= 1"),
        ({"turns": 2}, "turns = 2 is neither 0 nor 1"),
        ({"rm0": 4}, "rm0 = 4 is none of 1, 2, 3 warpgroups"),
        ({"bm0": 192}, "bm0 = 192 is not rm0 x 64 = 128: a warpgroup has 64 queries"),
        ({"bn0": 72}, "bn0 = 72 is no multiple of what an instruction sums over = 16"),
        ({"bn0": 80}, "bn0 = 80 is no multiple of what a thread draws of dropout at once = 32"),
        ({"bn0": 80, "general": 0}, ""),
        ({"hdim_v": 100}, "hdim_v = 100 is no multiple of what a call's may be = 8"),
        ({"bn0": 288, "stages": 1}, "bn0 = 288: a product has at most 256 columns"),
        ({"compute": "fp8", "o": "bf16", "bn0": 96}, ""),
        (
            {"compute": "fp8", "o": "bf16", "bn0": 96, "v_layout": "c"},
            "bn0 = 96 is no multiple of 128: rows of columns of v are whole slices",
        ),
        ({"v_layout": "c"}, ""),
        ({"v_layout": "col"}, "v_layout 'col' is neither r nor c"),
        ({"v_layout": "c", "paged": 1}, "v_layout 'c' with paged = 1: rows of caches are keys"),
        (
            {"v_layout": "c", "bn0": 32},
            "bn0 = 32 is no multiple of 64: rows of columns of v are whole slices",
        ),
        (
            {"v_layout": "c", "hdim_v": 120},
            "hdim_v = 120 of column-major v is not what products take, 128",
        ),
        ({"compute": "fp8", "o": "bf16", "general": 0}, ""),
        ({"compute": "fp8", "o": "bf16"}, ""),
        ({"compute": "fp8", "o": "bf16", "keeps": 0}, ""),
        ({"compute": "fp8", "o": "bf16", "general": 0, "late": 1, "early": 0}, ""),
        (
            {"compute": "fp8", "o": "bf16", "late": 1},
            "late = 1 needs products of 8 bits, keeps = 1, early = 0, general = 0 and merge = 0",
        ),
        ({"compute": "fp8", "o": "bf16", "v_first": 16}, ""),
        ({"v_first": 16}, "v_first = 16 is 0, or more where v is transposed and merge = 0"),
        ({"paired": 0.98, "general": 0}, ""),
        (
            {"paired": 1.02, "general": 0},
            "paired = 1.02 is at most 1, and 0 where tasks or halves of tiles are uneven",
        ),
        *(
            (
                {"paired": 0.98, "general": 0, **change},
                "paired = 0.98 is at most 1, and 0 where tasks or halves of tiles are uneven",
            )
            for change in ({"general": 1}, {"merge": 1}, {"paged": 1}, {"v_layout": "c"})
        ),
        ({"strip": 0.5}, ""),
        ({"strip": 1.5}, "strip = 1.5 is below 1, and 0 with merge = 1, caches, or one warpgroup"),
        (
            {"strip": 0.5, "paged": 1},
            "strip = 0.5 is below 1, and 0 with merge = 1, caches, or one warpgroup",
        ),
        (
            {"stages": 4},
            "q, k and v take 328160 bytes of shared memory, a workgroup of sm_90a has at most 232448",
        ),
        (
            {"hdim_v": 256, "stages": 1},
            "scores, o and p take 248 registers of a thread; 2 warpgroups have 224",
        ),
    ],
)
def test_complaints(changes: dict[str, object], complaint: str) -> None:
    assert replace(TILE, **changes).complaint(SM90) == complaint  # type: ignore[arg-type]


PAGES = replace(
    TILE,
    pipeline="qr_pages",
    kv="turbo4",
    bm0=8,
    rm0=1,
    merge=1,
    paged=1,
    stages=3,
    workgroups=2,
    early=0,
)

HEADS: dict[str, object] = {
    "pipeline": "qr_heads",
    "heads": 8,
    "rm0": 4,
    "bn0": 64,
    "stages": 4,
    "workgroups": 1,
}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, ""),
        ({"kv": "int8", "bm0": 16, "workgroups": 3}, ""),
        ({"kv": "int8", "bm0": 16, "workgroups": 3, "stages": 4}, ""),
        ({"kv": "int8"}, "bm0 = 8 is not 16: a warp has them all"),
        ({"kv": "int4"}, "kv = 'int4' is none of auto, fp8_e4m3, int8, turbo4"),
        (
            {"kv": "auto"},
            "kv = 'auto': pipelines 'qr_pages' and 'qr_heads' read quantised caches, nothing else",
        ),
        (
            {"pipeline": "qr_async"},
            "kv = 'turbo4': pipelines 'qr_pages' and 'qr_heads' read quantised caches, nothing else",
        ),
        ({"paged": 0}, "pipeline 'qr_pages' needs paged = 1 and merge = 1"),
        (
            {"hdim_v": 64},
            "kv = 'turbo4': head dims are both 64, 128 or 256, so that lanes share rows out evenly",
        ),
        ({"bn0": 256}, "bn0 = 256: each of 4 warps has 16 or 32 keys"),
        ({"bn0": 256, "rm0": 2, "workgroups": 1}, ""),
        ({"stages": 1}, "stages = 1: at least one part is on its way while one is taken"),
        ({"bm0": 16}, "bm0 = 16 is not 8: a warp has them all"),
        ({"paged": 2}, "pipeline 'qr_pages' needs paged = 1 and merge = 1"),
        ({"stages": 5}, "126336 bytes of shared memory, 2 times"),
        ({"workgroups": 3}, "103296 bytes of shared memory, 3 times"),
        ({"kv": "auto", "compute": "fp8", "o": "bf16", "bm0": 16}, ""),
        (
            {"kv": "int8", "compute": "fp8", "o": "bf16", "bm0": 16},
            "kv = 'int8' with queries of fp8, whose caches are as they: kv = 'auto'",
        ),
        (
            {"heads": 8},
            "heads = 8: tasks of pipeline 'qr_heads' have several, and of others one",
        ),
        ({**HEADS, "heads": 1}, "heads = 1: tasks of pipeline 'qr_heads' have several, and of others one"),
        (HEADS, ""),
        ({**HEADS, "heads": 4}, "heads = 4: rows of 264 bytes are no odd multiple of 16"),
        ({**HEADS, "rm0": 1, "bn0": 32}, "heads = 8: a power of 2, and as many of 4 warps have each"),
        (
            {**HEADS, "heads": 16, "bn0": 32},
            "heads = 16: rows of 1056 bytes are no odd multiple of 16",
        ),
        ({**HEADS, "kv": "int8", "stages": 3}, ""),
        ({**HEADS, "kv": "int8", "bn0": 32, "stages": 6}, ""),
        ({**HEADS, "kv": "int8", "bn0": 32, "rm0": 2, "heads": 4}, ""),
        (
            {**HEADS, "kv": "auto", "compute": "fp8", "o": "bf16"},
            "heads = 8: pipeline 'qr_heads' reads no queries of fp8",
        ),
        (
            {**HEADS, "stages": 5},
            "q, k and v take 255184 bytes of shared memory, a workgroup of sm_90a has at most 232448",
        ),
    ],
)
def test_complaints_of_quantised_caches(changes: dict[str, object], complaint: str) -> None:
    assert replace(PAGES, **changes).complaint(SM90) == complaint  # type: ignore[arg-type]


def chain(instance: Instance, name: str) -> str:
    found = re.search(rf"INLINE void {name}\(.*?\n}}\n", instance_source(instance), re.S)
    assert found
    return found[0]


def instances(dq: int, compute: str, layout: str) -> list[Instance]:
    found = [i for i in INSTANCES if (i.tile.dq, i.compute, i.tile.v_layout) == (dq, compute, layout)]
    return [i for i in found if not i.tile.merge and not i.tile.paged]


@pytest.mark.parametrize(("compute", "greatest"), [("fp16", 65504), ("bf16", 3e38), ("fp8", 448)])
def test_probabilities_are_in_range(compute: str, greatest: float) -> None:
    """The greatest are numbers of their type: scores exceed what is subtracted by the headroom at most."""
    of = COMPUTES[compute]
    assert 2 ** (of.p_shift + of.headroom) <= greatest


def test_products_walk_operands() -> None:
    """16 bytes a unit: 32 bytes a step within a slice of 128, rows x 128 from slice to slice."""
    (instance,) = instances(192, "bf16", "r")
    scores = chain(instance, "start_scores")
    starts = [int(n) for n in re.findall(r"add\.s64 y, %\d+, (\d+);", scores)]
    assert starts == [128 * 8 * slice_ + 2 * step for slice_ in range(3) for step in range(4)]
    assert [int(n) for n in re.findall(r", x, y, (\d), 1, 1, 0, 0;", scores)] == [0] + 11 * [1]
    values = chain(instance, "add_values")
    assert [int(n) for n in re.findall(r"add\.s64 y, %\d+, (\d+);", values)] == list(range(0, 1024, 128))
    assert values.count("y, 1, 1, 1, 1;") == 8  # V is read across its rows


def test_columns_are_read_along_rows() -> None:
    """Of 128 keys in two slices of 128 rows, which are columns of O."""
    (instance,) = instances(128, "bf16", "c")
    values = chain(instance, "add_values")
    starts = [1024 * slice_ + 2 * step for slice_ in range(2) for step in range(4)]
    assert [int(n) for n in re.findall(r"add\.s64 y, %\d+, (\d+);", values)] == starts
    assert values.count("y, 1, 1, 1, 0;") == 8


def test_pages_in_pieces_are_read_along_columns() -> None:
    """Whose rows in shared memory have 64 keys a slice."""
    (instance,) = (
        i for i in INSTANCES if i.tile.in_pieces and i.compute == "bf16" and i.tile.dq == 128 and i.tile.merge
    )
    values = chain(instance, "add_values")
    starts = [int(n) for n in re.findall(r"add\.s64 y, %\d+, (\d+);", values)]
    assert starts == [128 * 8 * slice_ + 2 * step for slice_ in range(2) for step in range(4)]
    assert values.count("y, 1, 1, 1, 0;") == 8


@pytest.mark.parametrize("layout", ["r", "c"])
def test_eight_bits_are_read_along_rows(layout: str) -> None:
    instance = next(i for i in instances(128, "fp8", layout) if i.tile.bn0 == 128)
    for name in ("start_scores", "add_values"):
        text = chain(instance, name)
        assert text.count("m64n128k32.f32.e4m3.e4m3") == 4
        slices = name == "add_values" and layout == "r"  # transposed: 128 rows of 32 bytes for each step
        starts = [256 * step if slices else 2 * step for step in range(4)]
        assert [int(n) for n in re.findall(r"add\.s64 y, %\d+, (\d+);", text)] == starts
        assert not re.search(r"(, \d){4};", text)  # no operands that choose


def test_sums_that_say_whether_probabilities_fit() -> None:
    """Sums of twelve probabilities, of which none exceeds 1, are numbers of the type."""
    (instance,) = (i for i in instances(128, "fp8", "r") if i.tile.late and i.tile.o_type == "bf16")
    assert 12 * 2**instance.tile.p_shift <= 448 < 12 * 2 ** (instance.tile.p_shift + 1)


def test_transposed_values_are_no_longer_than_others() -> None:
    """Rows of a step's 32 keys, of which 96 are three and no part of 128."""
    (instance,) = (i for i in instances(128, "fp8", "r") if i.tile.bn0 == 96 and i.tile.o_type == "bf16")
    values = chain(instance, "add_values")
    assert [int(n) for n in re.findall(r"add\.s64 y, %\d+, (\d+);", values)] == [0, 256, 512]
    tiles, barriers = 2 * 192 * 128 + 4 * 3 * 96 * 128, 4 + 8 + 24
    assert instance.tile.shared_bytes == tiles + 4 * 64 + 8 * (barriers + 8)  # those of pairs
    alone = replace(instance.tile, paired=0.0)
    assert alone.shared_bytes == tiles + 4 * 64 + 8 * barriers


def test_halves_of_tiles_are_brought_to_both() -> None:
    """In rows that may pair, and in no others, between meetings of the cluster."""
    for instance in (i for i in INSTANCES if i.tile.pipeline == "qr_async"):
        text = instance_source(instance)
        assert ("produce_in_pairs(a, base)" in text) == (instance.tile.paired > 0), instance.name
        assert ("meet_cluster();" in text) == (instance.tile.paired > 0), instance.name
        assert f"#define PAIRS {int(instance.tile.paired > 0)} " in text


@pytest.mark.parametrize(
    "instance", [i for i in INSTANCES if i.tile.pipeline == "qr_async"], ids=lambda i: i.name
)
def test_registers_are_shared_out(instance: Instance) -> None:
    """setmaxnreg takes multiples of 8, and no more than ptxas gives the workgroup at entry."""
    tile = instance.tile
    at_entry = min(65536 // tile.threads // 8 * 8, 255)
    kept = (tile.producer_registers, tile.consumer_registers)
    assert all(count % 8 == 0 and 24 <= count <= 256 for count in kept)
    assert kept[0] <= at_entry <= kept[1] or tile.rm0 == 1
    assert kept[0] + tile.rm0 * kept[1] <= (tile.rm0 + 1) * at_entry


@pytest.mark.parametrize("pipeline", ["qr_pages", "qr_heads"])
def test_nan_of_codes_is_kept(pipeline: str, tmp_path: Path) -> None:
    """E4M3 is converted by the instruction for it, which keeps NaN, and nothing that follows saturates."""
    instance = next(i for i in INSTANCES if i.tile.pipeline == pipeline and i.tile.kv == "fp8_e4m3")
    ptx = compile_ptx(instance_source(instance), tmp_path / "kernel.ptx").read_text()
    assert "cvt.rn.f16x2.e4m3x2" in ptx
    assert set(re.findall(r"cvt\.\S+\.f(?:16|16x2|32)\.e4m3\S*", ptx)) <= {"cvt.rn.f16x2.e4m3x2"}
    assert not re.search(r"cvt\.\S*(?:sat|relu)\S*\.(?:f16|bf16|f32)", ptx)
