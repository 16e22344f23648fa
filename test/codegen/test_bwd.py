# SPDX-License-Identifier: MIT
"""fmha_bwd: one api whose sub-kernels are operations with tables of their own."""

from __future__ import annotations

from typing import Any

import pytest

from codegen import Refused
from codegen.ops import parse_apis
from codegen.ops.fmha_bwd.cdna import CdnaTile
from codegen.ops.fmha_bwd.cpu import CpuTile
from codegen.receipts import find_receipt, read_receipts
from codegen.rows import read_instances
from codegen.select import Request, Selection, select, split_filter
from codegen.spec import ROOT
from codegen.targets import TARGETS, CdnaTarget, CpuTarget

FOLDER = ROOT / "instances"
PLAIN = "hdim_q=128 target=x86-64-v4 bias=no dropout=no"
CPUS = (
    f"target={'|'.join(name for name, target in TARGETS.items() if target.kind == 'cpu')}"  # serve all types
)
KERNELS = ["dot_do_o", "convert_dq", "dq_dk_dv"]


def selected(filter_: str = "", receipt: str = "all", where: str = "") -> list[Selection]:
    ops = parse_apis("bwd", "simplified")
    request = Request(find_receipt(read_receipts(FOLDER), receipt), where=where)
    return [
        select(op, read_instances(op, FOLDER, tuple(TARGETS)), request.of(op, ops), patterns)
        for op, patterns in zip(ops, split_filter(filter_, ops))
    ]


def counts(selections: list[Selection]) -> list[int]:
    return [len(selection.instances) for selection in selections]


def test_sub_kernels_are_in_the_order_of_filters() -> None:
    assert [op.kernels[0] for op in parse_apis("bwd", "simplified")] == KERNELS


def test_names_are_ck_s() -> None:
    dot, convert, main = (next(iter(s.ck_names())) for s in selected(where=PLAIN))
    assert dot == "fmha_bwd_dot_do_o_d32_fp32_b64_batch_o1_npad"
    assert convert == "fmha_bwd_convert_dq_d128_fp32_b64_batch_o1_npad_ndeterministic"
    assert main == (
        "fmha_bwd_d128_fp32_batch_b96x128x128x96x128x96x128x128x128_r1x1x1_r1x1x1_r1x1x1_w8x48x1_w8x48x1"
        "_o1_maxq0_npad_nbias_ndbias_nmask_ndropout_ndeterministic_ntrload"
    )


def test_names_of_all_traits() -> None:
    where = (
        "hdim_q=64 dtype=bf16 mode=group dpads=pd8dv1 bias=bias dbias=yes mask=mask dropout=yes randval=yes"
    )
    names = list(selected(where=f"{where} deterministic=yes target=x86-64-v4-bf16")[2].ck_names())
    assert len(names) == 2  # heads of dk
    assert names[0].endswith("_pd8dv1_bias_dbias_mask_dropout_wg16_storerandval_deterministic_ntrload")
    assert names[1] == f"{names[0]}_dkvk"


def test_what_filters_leave() -> None:
    everything = counts(selected(where=CPUS))
    assert all(everything)
    assert counts(selected("*", where=CPUS)) == everything
    bf16 = counts(selected("*_bf16_*@*@*_bf16_*mask*", where=CPUS))
    assert bf16 == [*everything[:2], everything[2] - 1]  # not fp16's as sums of bf16
    assert counts(selected("*v4_bf16*", where=CPUS))[0] < everything[0]
    assert counts(selected("*v4_bf16*", where=CPUS))[1:] == everything[1:]  # what is missing is *
    assert counts(selected("*@*@*_d64_fp32_group_*", where=CPUS))[2] == everything[2] - 4  # of 16 bits
    with pytest.raises(Refused, match="'nothing' matches nothing"):
        selected("*@*@*nothing*")
    with pytest.raises(Refused, match="dot_do_o@convert_dq@dq_dk_dv"):
        selected("*@*@*@*")


@pytest.mark.parametrize("filter_", [" ", " @ ", "*@@*", "@*", "*@*@ "])
def test_an_empty_pattern_leaves_nothing_of_the_api(filter_: str) -> None:
    assert counts(selected(filter_)) == [0, 0, 0]


def asked(selections: list[Selection]) -> list[int]:
    return [sum(match.matched for match in selection.matches) for selection in selections]


def test_receipts_are_of_the_whole_api() -> None:
    one = "target=x86-64-v4"
    everything = asked(selected(where=one))
    assert asked(selected(receipt="700", where=one)) == [n * 2 // 3 for n in everything]  # no fp32
    assert asked(selected(receipt="3", where=one))[1] * 3 == everything[1]  # nor deterministic
    assert asked(selected(receipt="300", where=one))[:2] == [n // 3 for n in everything[:2]]  # batch mode
    assert asked(selected(receipt="801", where=one))[2] < asked(selected(receipt="800", where=one))[2]


# Words of the names that each receipt leaves out: as get_bwd_blobs() does in CK's fmha_bwd.py (7a57db74);
# receipts 2 to 4 and 801 also what CK does not have, and 0 and 1 fp32, as those of other apis.
NO_RANDVAL, EVEN_PADS = {"storerandval"}, {"pd8", "pd1", "pdv8", "pdv1", "pd8dv1", "pd1dv8"}
LEFT_OUT = {
    "0": {"fp32"},
    "1": {"fp32"},
    "2": {"fp32", "bias", "dkvk", "logits"} | NO_RANDVAL | EVEN_PADS,
    "3": {"fp32", "bias", "dkvk", "logits", "deterministic"} | EVEN_PADS,
    "4": {"fp32", "alibi", "dkvk", "logits", "deterministic"} | NO_RANDVAL | EVEN_PADS,
    "300": {"fp32", "group"} | NO_RANDVAL,
    "400": {"fp32", "batch"} | NO_RANDVAL,
    "600": {"fp32"},
    "700": {"fp32"},
    "800": {"fp16", "bf16"} | EVEN_PADS,
    "801": {"fp16", "bf16", "group", "bias", "alibi", "dropout", "mask", "deterministic"}
    | {"dkvk", "logits"}
    | EVEN_PADS,
}


@pytest.mark.parametrize("receipt", LEFT_OUT)
@pytest.mark.parametrize("target", ["x86-64-v4", "gfx942"])
def test_receipts_leave_what_ck_s_do(receipt: str, target: str) -> None:
    where = f"target={target} hdim=64"
    everything = set(selected(where=where)[2].ck_names())
    left = {name for name in everything if not LEFT_OUT[receipt] & set(name.split("_"))}
    assert 0 < len(left) < len(everything)
    assert set(selected(receipt=receipt, where=where)[2].ck_names()) == left


def test_convert_dq_does_not_multiply_by_blocks_of_keys() -> None:
    """Its names do not say how dq_dk_dv cuts the keys, as they did when it read that from its own shape."""
    names = {name for selection in selected()[1:2] for name in selection.ck_names()}
    assert not any(f"b64x{bn0}" in name for name in names for bn0 in (0, 64, 128))


def resident(**fields: Any) -> CdnaTile:
    said = {
        "pipeline": "qr_qtr_dor", "epilogue": "store", "compute": "bf16", "hdim_q": 128, "hdim_v": 128,
        "bm0": 32, "bn0": 128, "occupancy": 1, "efficiency": 0.2, "why": "a test",
    }  # fmt: skip
    return CdnaTile(**{**said, **fields})


@pytest.mark.parametrize(
    ("fields", "target", "complaint"),
    [
        ({}, "gfx950", ""),
        ({"hdim_q": 120, "hdim_v": 104}, "gfx950", ""),  # padded
        ({"hdim_q": 64}, "gfx950", ""),
        ({"pipeline": "qr"}, "gfx950", "pipeline 'qr' is none of kr_ktr_vr, kr_ktr_vr_bundled, qr_qtr_dor"),
        ({}, "gfx942", "where reads of LDS transpose, not for bf16 on gfx942"),
        ({"compute": "fp32", "hdim_q": 64, "hdim_v": 64}, "gfx950", "not for fp32 on gfx950"),
        ({"bm0": 64}, "gfx950", "has 32 queries and one pass, not 64 and 1"),
        ({"passes": 2}, "gfx950", "has 32 queries and one pass, not 32 and 2"),
        ({"hdim_v": 32}, "gfx950", "head dims 64 and 128, not 128, 32"),
        ({"hdim_q": 192}, "gfx950", "head dims 64 and 128, not 192, 128"),
        ({"bn0": 256}, "gfx950", "bytes of LDS"),
        ({"occupancy": 2}, "gfx950", "room for 1 workgroups of 4 waves"),
        ({"occupancy": 3}, "gfx950", "dq, operands and scores take 240 registers"),
    ],
)
def test_tiles_of_resident_queries(fields: dict[str, Any], target: str, complaint: str) -> None:
    page = TARGETS[target]
    assert isinstance(page, CdnaTarget)
    said = resident(**fields).complaint(page)
    assert complaint in said if complaint else not said


@pytest.mark.parametrize(
    ("fields", "target", "complaint"),
    [
        ({}, "x86-64-v4-amx", ""),
        ({"compute": "bf16x2", "bm0": 128}, "x86-64-v4-amx", ""),
        ({}, "x86-64-v4-bf16", "is made of tile registers, x86-64-v4-bf16 has none"),
        ({"compute": "f32"}, "x86-64-v4-amx", "compute 'f32' is not made of bf16"),
        ({"pipeline": "kr_ktr_vr", "compute": "bf16x2"}, "x86-64-v4-amx", "only pipeline 'kr_ktr_vr_tile'"),
        ({"mr": 16}, "x86-64-v4-amx", "kr_ktr_vr_tile has mr = 32, nv = 2"),
        ({"nv": 1}, "x86-64-v4-amx", "kr_ktr_vr_tile has mr = 32, nv = 2"),
        ({"bm0": 48}, "x86-64-v4-amx", "bm0 = 48 is no multiple of two vectors"),
        ({"bn0": 160}, "x86-64-v4-amx", "bn0 = 160 is no multiple of the 64 keys"),
        ({"bm0": 1024, "bn0": 512}, "x86-64-v4-amx", "bytes, the L2 cache of x86-64-v4-amx holds"),
    ],
)
def test_tiles_of_tile_registers(fields: dict[str, Any], target: str, complaint: str) -> None:
    page = TARGETS[target]
    assert isinstance(page, CpuTarget)
    said = {
        "pipeline": "kr_ktr_vr_tile", "epilogue": "store", "compute": "bf16",
        "bm0": 256, "bn0": 256, "mr": 32, "nv": 2, "efficiency": 0.2, "why": "a test",
    }  # fmt: skip
    found = CpuTile(**{**said, **fields}).complaint(page)
    assert complaint in found if complaint else not found


def test_resident_queries_are_of_calls_without_a_mask_in_batch_mode() -> None:
    op = parse_apis("bwd", "simplified")[2]
    instances = read_instances(op, FOLDER, ("gfx950",))
    few = [instance for instance in instances if instance.tile.pipeline == "qr_qtr_dor"]
    assert [instance.tile.max_q for instance in few] == [32] * 4
    for instance in few:
        assert {op.space.values(box, "mask") for box in instance.region} == {("no",)}
        assert all("_batch_" in name and "_maxq32_" in name for name in instance.ck_names(instance.region))
