# SPDX-License-Identifier: MIT
"""Records of CDNA tiles by what MFMA reads and what o is stored in, and that emitted files have them."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import pytest
from test_names import INSTANCES

from codegen.ops.fmha_fwd.cdna import COMPUTES, CdnaTile
from codegen.render import instance_source
from codegen.spec import Instance
from codegen.targets import TARGETS, CdnaTarget


class Facts(NamedTuple):
    """Facts that follow from the type that MFMA reads."""

    bits: int
    chunk: int  # elements of 16 bytes
    product: int  # what the usual product sums over: 16 bytes of each half of a wave, or what has one scale
    multiple: int  # of head dims
    bias_bits: int
    dtypes: dict[str, str]  # type of o -> data type


FACTS = {
    "fp32": Facts(32, 4, 8, 8, 32, {"fp32": "fp32"}),
    "fp16": Facts(16, 8, 16, 8, 16, {"fp16": "fp16"}),
    "bf16": Facts(16, 8, 16, 8, 16, {"bf16": "bf16"}),
    "fp8": Facts(8, 16, 32, 16, 32, {"fp8": "fp8", "bf16": "fp8bf16", "fp32": "fp8fp32"}),
    "mxfp8": Facts(8, 16, 64, 16, 32, {"fp32": "mxfp8"}),
    "mxfp4": Facts(4, 32, 64, 32, 32, {"fp32": "mxfp4"}),
}
GPUS = [instance for instance in INSTANCES if isinstance(instance.target, CdnaTarget)]


def page(name: str) -> CdnaTarget:
    target = TARGETS[name]
    assert isinstance(target, CdnaTarget)
    return target


def tile(compute: str, **fields: object) -> CdnaTile:
    said: dict[str, object] = {
        "pipeline": "qr", "epilogue": "store", "hdim_q": 128, "hdim_v": 128, "bm0": 128, "bn0": 64, "rm0": 4,
        "wm0": 32, "wn0": 32, "occupancy": 1, "efficiency": 0.5, "why": "a test",
    }  # fmt: skip
    return CdnaTile(compute=compute, **{**said, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("compute", COMPUTES)
def test_what_follows_from_the_type(compute: str) -> None:
    facts, one = FACTS[compute], tile(compute)
    assert one.bits == facts.bits and one.chunk == facts.chunk and one.bias_bits == facts.bias_bits
    assert one.mma_k == facts.product and one.hdim_multiple == facts.multiple
    assert one.operand_chunks == facts.product * facts.bits // 8 // 32 and one.mx == (
        compute in ("mxfp8", "mxfp4")
    )
    elements = 64 * (128 + 128)  # of k and v; a power of 2 needs no room to spare
    assert one.lds_bytes == elements * facts.bits // 8 + (elements // 32 if one.mx else 0)
    assert compute in one.numerics(page("gfx950"))
    for o, dtype in facts.dtypes.items():
        assert tile(compute, o=o).dtypes == (dtype,)
    assert one.o_type == ("fp32" if one.mx else compute) and one.dtypes == (compute,)


@pytest.mark.parametrize("instance", GPUS, ids=lambda instance: instance.name)
def test_rows_are_named_by_what_they_serve(instance: Instance) -> None:
    """A row's data type is that of its name, and head dims in registers hold whole products."""
    one = instance.tile
    assert instance.name.split("__")[0].split("_")[3] == FACTS[one.compute].dtypes[one.o_type]
    assert one.dq % one.mma_k == 0 and one.hdim_q <= one.dq < one.hdim_q + one.mma_k
    assert one.hdim_q % one.hdim_multiple == 0 and one.hdim_v % one.hdim_multiple == 0
    assert (one.epilogue == "quant") == (one.o_type == "fp8")


def test_wide_products() -> None:
    """wk0 = 64 of fp8 is one MFMA of gfx950: two accesses of a lane; head dims fill it."""
    wide = tile("fp8", o="bf16", wk0=64, hdim_q=80, hdim_v=96)
    assert (wide.operand_chunks, wide.mma_k, wide.dq, wide.dv) == (2, 64, 128, 96)
    assert wide.complaint(page("gfx950")) == ""
    assert wide.complaint(page("gfx942")) == "wk0 = 64 is more than two accesses = 32, and no MFMA by itself"
    assert tile("fp8", o="bf16", hdim_q=80, hdim_v=96).dq == 96


def test_column_major_v() -> None:
    """Rows begin anywhere in a group's tensor; a thread moves what it loads, not four keys of it at once."""
    one, other = tile("fp16", v_layout="c"), tile("fp16")
    assert one.held == "hdim=128 vlayout=c mode=batch" and other.held == "hdim=128 vlayout=r"
    assert tile("mxfp4", hdim_v=64, v_layout="c").registers < tile("mxfp4", hdim_v=64).registers


@pytest.mark.parametrize(
    ("target", "one", "says"),
    [
        ("gfx90a", tile("fp8", epilogue="quant"), "gfx90a has no fp8 MFMA"),
        ("gfx942", tile("fp8"), "epilogue 'store' with o of fp8, which takes 'quant'"),
        ("gfx942", tile("fp8", epilogue="quant"), ""),
        ("gfx942", tile("fp8", o="bf16"), ""),
        (
            "gfx942",
            tile("fp8", o="bf16", epilogue="quant"),
            "epilogue 'quant' with o of bf16, which takes 'store'",
        ),
        ("gfx942", tile("bf16", epilogue="quant"), "epilogue 'quant' with o of bf16, which takes 'store'"),
        ("gfx942", tile("fp8", o="fp16"), "o = 'fp16' of fp8 is none of fp8, bf16, fp32"),
        ("gfx942", tile("bf16", o="fp32"), "o = 'fp32' of bf16 is none of bf16"),
        (
            "gfx942",
            tile("fp8", o="bf16", hdim_q=72),
            "hdim_q = 72 is no multiple of what a call's may be = 16",
        ),
        (
            "gfx950",
            tile("fp16", wk0=32),
            "wk0 = 32 is more than two accesses = 16, and no MFMA by itself",
        ),
        ("gfx950", tile("fp8", o="bf16", wk0=16), "wk0 = 16 is no multiple of two accesses = 32"),
        ("gfx942", tile("mxfp8"), "gfx942 has no mxfp8 MFMA"),
        ("gfx950", tile("mxfp8"), ""),
        ("gfx950", tile("mxfp4", v_layout="c"), ""),
        (
            "gfx950",
            tile("mxfp8", bn0=128, wk0=128),
            "wk0 = 128: a product takes two scales, of 32 elements each",
        ),
        (
            "gfx950",
            tile("mxfp4", hdim_q=48),
            "hdim_q = 48 is no multiple of what a call's may be = 32",
        ),
        ("gfx950", tile("fp16", v_layout="x"), "v_layout 'x' is neither r nor c"),
        (
            "gfx950",
            tile("fp8", o="bf16", v_layout="c"),
            "fp8 with column-major v: CK has no such kernel either",
        ),
        ("gfx90a", tile("fp32"), ""),
        ("gfx90a", tile("fp32", bn0=128), "k and v take 131072 bytes of LDS, gfx90a has 65536"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.compute,
)
def test_what_fits(target: str, one: CdnaTile, says: str) -> None:
    assert one.complaint(page(target)) == says


# The greatest numbers: IEEE 754 half, OCP E4M3, and E4M3 FNUZ.
GREATEST = {"fp16": 65504.0, "ocp": 448.0, "fnuz": 240.0}


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
def test_p_uses_the_range_of_its_type(target: str) -> None:
    """P, at most 1, is stored as large as fits in fp8, half as large in fp16; others have the range."""
    flavour = page(target).fp8
    if flavour:
        for compute in ("fp8", "mxfp8", "mxfp4"):
            assert tile(compute).p_shift(page(target)) == math.floor(math.log2(GREATEST[flavour]))
    assert tile("fp16").p_shift(page(target)) == math.floor(math.log2(GREATEST["fp16"])) - 1
    assert tile("bf16").p_shift(page(target)) == tile("fp32").p_shift(page(target)) == 0


def one_of_each() -> list[Instance]:
    kinds = {
        (
            i.target.name,
            i.tile.pipeline,
            i.tile.compute,
            i.tile.v_layout,
            i.tile.o_type,
            i.tile.operand_chunks,
        ): i
        for i in GPUS
    }
    return list(kinds.values())


@pytest.mark.parametrize("instance", one_of_each(), ids=lambda instance: instance.name)
def test_emitted_files_have_the_records(instance: Instance) -> None:
    text = instance_source(instance)
    found = {name: int(value) for name, value in re.findall(r"\b([A-Z_]+)(?: =)? (-?\d+)\b", text)}
    facts, one = FACTS[instance.compute], instance.tile
    assert (found["BITS"], found["OPERAND_CHUNKS"]) == (facts.bits, one.operand_chunks)
    bits = {"fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8}[one.o_type]
    assert found["O_BITS"] == bits
    assert found["P_SHIFT"] == one.p_shift(instance.target)
    assert (found["BM"], found["BN"], found["DQ"], found["DV"]) == (one.bm0, one.bn0, one.dq, one.dv)
    assert (found["MX"], found["DESCALED"]) == (one.mx, one.compute == "fp8")
    assert (found["V_COLUMNS"], found["WHOLE_CHUNKS"]) == (one.v_layout == "c", one.access == 16)
    assert (f"MMA_OF mma_wide_{one.compute}\n" in text) == (one.operand_chunks == 2 and not one.mx)
