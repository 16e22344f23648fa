# SPDX-License-Identifier: MIT
"""Instances for CDNA: their rows, names, filters and receipts."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from conftest import ROOT, refused, run

from codegen.targets import TARGETS, CdnaTarget

DEFAULT = """
[default.qr]
epilogue = "store"
compute = "f32"

[default.qr.cdna]
compute = ["fp16", "bf16"]
rm0 = 4
wm0 = 32
wn0 = 32
wk0 = 16
occupancy = 2
serves = "vlayout=r qscale=no"
"""
ROW = """
[[tile]]
targets = ["gfx942"]
pipeline = "qr"
hdim_q = 128
hdim_v = 128
bm0 = 128
bn0 = 64
efficiency = 0.5
why = "a test"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "instances" / "receipts.toml", tmp_path)
    return tmp_path


def write(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "fmha_fwd.toml").write_text(DEFAULT + text)
    return ("--instances", str(folder), "--targets", "gfx942", "--table", "--format", "json")


def names(folder: Path, text: str) -> list[str]:
    return [row["name"] for row in json.loads(run(*write(folder, text)).out)]


def test_names(folder: Path) -> None:
    """Data type and head dim left, block and waves right; nothing that the pipeline's default says."""
    assert names(folder, ROW) == [
        "fmha_fwd_d128_fp16__gfx942_b128x64x128_w4_qr",
        "fmha_fwd_d128_bf16__gfx942_b128x64x128_w4_qr",
    ]
    other = ROW.replace(
        "why", 'compute = "bf16"\noccupancy = 1\nserves = "vlayout=r mode=group bias=bias"\nwhy'
    )
    assert names(folder, other) == ["fmha_fwd_d128_bf16_group_nlogits_bias__gfx942_b128x64x128_w4_qr_o1"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("bm0 = 128", "bm0 = 64", "bm0 = 64 is not rm0 x wm0 = 128"),
        ("bn0 = 64", "bn0 = 48", "bn0 = 48 is no multiple of wn0 = 32"),
        ("hdim_q = 128", "hdim_q = 100", "hdim_q = 100 is no multiple of what a call's may be = 8"),
        ("hdim_v = 128", "hdim_v = 100", "hdim_v = 100 is no multiple of what a call's may be = 8"),
        ("bn0 = 64", "bn0 = 256\noccupancy = 1", "k and v take 131072 bytes of LDS, gfx942 has 65536"),
        ("bn0 = 64", "bn0 = 96", "bn0 = 96 is 12 chunks, no power of 2, by which LDS permutes those of v"),
        (
            "bm0 = 128",
            "bm0 = 256\nrm0 = 8\noccupancy = 4",
            "registers of a lane; with occupancy = 4 there are 128 on gfx942",
        ),
        ("bm0 = 128", "bm0 = 64\nrm0 = 2", "2 workgroups of 2 waves; occupancy = 2 takes 8 waves"),
        (
            "bm0 = 128",
            "bm0 = 256\nrm0 = 8\noccupancy = 1",
            "a workgroup of 8 waves is more than occupancy = 1 leaves room for on 4 SIMDs",
        ),
        ("bm0 = 128", "bm0 = 1024\nrm0 = 32", "32 waves, a workgroup of gfx942 has at most 16"),
        ("bn0 = 64", "bn0 = 64\nwk0 = 4", "32x32x4 is made of no fp16 MFMA of gfx942: 32x32x8, 16x16x16"),
        ("bn0 = 64", "bn0 = 64\nwn0 = 16", "32x16x16 is made of no fp16 MFMA of gfx942"),
        ("bn0 = 64", 'bn0 = 64\ncompute = "f32"', "compute 'f32' is none of fp32, fp16, bf16, fp8"),
        (
            "bn0 = 64",
            'bn0 = 64\ncompute = "fp16"\nrounding = "rtz"',
            "rounding = 'rtz' of fp16: bf16 has rtne, rtna, rtz",
        ),
        (
            "bn0 = 64",
            'bn0 = 64\ncompute = "bf16"\nrounding = "rtna"',
            "'rtna' is what gfx942 does without it",
        ),
        ("bn0 = 64", "bn0 = 64\nturns = 2", "turns = 2: a workgroup takes one block of queries"),
        ("bn0 = 64", "bn0 = 0", "sizes, rm0 and occupancy must be positive"),
        (
            "bn0 = 64",
            "bn0 = 64\nmr = 4",
            "unknown field 'mr'; there is: targets, pipeline, epilogue, compute, hdim_q,",
        ),
        ("hdim_q = 128\n", "", "field hdim_q is missing"),
        (
            "bn0 = 64",
            'bn0 = 64\nserves = "hdim=64"',
            "leaves nothing that compute = 'fp16' and hdim=128",
        ),
    ],
)
def test_a_wrong_row_is_refused(folder: Path, old: str, new: str, says: str) -> None:
    assert old in ROW
    message = refused(*write(folder, ROW.replace(old, new)))
    assert says in message
    assert f"{folder / 'fmha_fwd.toml'}: tile 1: " in message


def test_rounding(folder: Path) -> None:
    """A row may say how p is rounded; --rounding decides for those that do not."""
    name = "fmha_fwd_d128_bf16__gfx942_b128x64x128_w4_qr"
    listed = ROW.replace("why", 'compute = "bf16"\nrounding = ["", "rtne"]\nwhy')
    assert f"{name} would never be chosen" in refused(*write(folder, listed))  # the cost is the same
    assert names(folder, listed.replace('"", ', "")) == [f"{name}_rtne"]
    both = write(folder, ROW.replace("why", 'compute = ["bf16", "fp16"]\nwhy'))
    for rounding, token in (("rtz", "_rtz"), ("rtne", "_rtne"), ("rtna", "")):
        rows = json.loads(run(*both, "--rounding", rounding).out)
        assert [row["name"] for row in rows] == [name + token, name.replace("bf16", "fp16")]
    assert "p rounded towards zero" in run(*both[:4], "--explain", "--rounding", "rtz").out
    assert "unknown rounding 'up'; there is: rtne, rtna, rtz" in refused(*both, "--rounding", "up")


def test_the_slower_of_two_is_refused(folder: Path) -> None:
    slower = ROW.replace("0.5", "0.4").replace("why", "occupancy = 1\nwhy")
    assert "would never be chosen" in refused(*write(folder, slower + ROW.replace("why", "alone = 0.5\nwhy")))


# TFLOP/s without sparsity of AMD's data sheets of MI250X (two dies), MI300X and MI355X.
PEAKS = {
    "gfx90a": {"fp32": 95.7 / 2, "fp16": 383.0 / 2, "bf16": 383.0 / 2},
    "gfx942": {"fp32": 163.4, "fp16": 1307.4, "bf16": 1307.4, "fp8": 2614.9},
    "gfx950": {
        "fp32": 157.3, "fp16": 2516.6, "bf16": 2516.6, "fp8": 5033.2, "mxfp8": 5033.2, "mxfp4": 10066.3,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PEAKS)
def test_peaks_are_those_of_amd_s_data_sheets(name: str) -> None:
    page = TARGETS[name]
    assert isinstance(page, CdnaTarget)
    peaks = {
        compute: 2e-6 * macs * page.compute_units * page.clock_mhz for compute, macs in page.macs.items()
    }
    assert peaks == pytest.approx(PEAKS[name], rel=1e-3)


@pytest.mark.parametrize("name", PEAKS)
def test_pages_agree_with_themselves(name: str) -> None:
    """A type has a rate and shapes or neither; the small shapes sum over twice as much as the large."""
    page = TARGETS[name]
    assert isinstance(page, CdnaTarget)
    assert list(page.macs) == list(page.mfma)
    assert bool(page.fp8) == ("fp8" in page.mfma)
    assert page.compute_units % page.xcds == 0 and page.lds_bytes % page.lds_granule == 0
    assert page.registers == page.vgprs + page.agprs
    for shapes in page.mfma.values():
        large, small = ([shape for shape in shapes if shape[:2] == (side, side)] for side in (32, 16))
        assert [2 * k for _, _, k in large] == [k for _, _, k in small]


# --- the rows of this checkout: what there must be for each target, whatever the tiles

HDIMS = ("32", "48", "64", "80x96", "96x128", "128", "192x128", "192", "256")
FP8 = ("fp8", "fp8bf16", "fp8fp32")
DTYPES = {
    "gfx90a": ("fp32", "fp16", "bf16"),
    "gfx942": ("fp32", "fp16", "bf16", *FP8),
    "gfx950": ("fp32", "fp16", "bf16", *FP8, "mxfp8", "mxfp4"),
}
Kinds = set[tuple[str, str]]  # pairs of head dims and a data type


def kinds(dtypes: Iterable[str], hdims: Iterable[str] = HDIMS) -> Kinds:
    return set(itertools.product(hdims, dtypes))


def selected(target: str, *arguments: str) -> Kinds:
    """What the selected instances compute, read from their names."""
    result = run("--targets", target, "--table", "--format", "json", *arguments)
    assert result.code == 0, result.err
    words = (row["name"].split("_") for row in json.loads(result.out))
    return {(hdim.removeprefix("d"), dtype) for _, _, hdim, dtype, *_ in words}


@pytest.mark.parametrize("target", DTYPES)
def test_what_there_is(target: str) -> None:
    """Every data type that the target has products for, with every pair of head dims.

    Column-major v is for all but fp8, where rows hold whole accesses, of 32 elements of mxfp4.
    """
    all_of_them = kinds(DTYPES[target])
    assert selected(target) == all_of_them
    columns = all_of_them - kinds(FP8) - kinds(("mxfp4",), ("48", "80x96"))
    assert selected(target, "--where", "vlayout=c") == columns


@pytest.mark.parametrize("target", DTYPES)
def test_large_16_bit_tiles_have_both_pipelines(target: str) -> None:
    wanted = kinds(("fp16", "bf16"), ("64", "96x128", "128", "192x128", "192", "256"))
    if target != "gfx950":  # without an instruction that rounds to bf16 qr is faster
        wanted -= kinds(("bf16",), ("64",))
    if target == "gfx90a":  # whose products take twice as long
        wanted -= kinds(("fp16",), ("64",))
    assert wanted <= selected(target, "--where", "pipeline=qr_async")
    assert wanted <= selected(target, "--where", "pipeline=qr")


@pytest.mark.parametrize("target", DTYPES)
def test_ci_is_small_and_shows_every_type_and_head_dim(target: str) -> None:
    rows = json.loads(run("--targets", target, "--table", "--format", "json", "-r", "ci").out)
    assert len(rows) <= len(HDIMS) + 5
    smallest = selected(target, "-r", "ci")
    assert {hdim for hdim, _ in smallest} == set(HDIMS)
    assert {dtype for _, dtype in smallest} == set(DTYPES[target])
    pipelines = {"qr", "qr_async", "qr_bundled", "qr_split", "qr_pages", "qr_direct", "qr_pieces"}
    assert {row["pipeline"] for row in rows} == pipelines | ({"hk_prefill"} if target == "gfx950" else set())


# A selection, and what it leaves of (data types, head dims) on gfx942.
WIDE = ("128", "192x128", "192")
SIXTEEN = kinds(("fp16", "bf16"))
AITER = SIXTEEN | kinds(("fp8bf16",), WIDE)
SELECTIONS: list[tuple[tuple[str, ...], Kinds]] = [
    (("--where", "hdim_q=128 mask=causal"), kinds(DTYPES["gfx942"], ("128",))),
    (("--where", "qscale=pt|bs"), kinds(FP8)),
    (("--where", "epilogue=quant"), kinds(("fp8",))),
    (("--where", "compute=fp8 o=bf16"), kinds(("fp8bf16",))),
    (("--optdim", "64"), kinds(DTYPES["gfx942"], ("64",))),
    (("-f", "*_fp16_*_mask_lse*"), kinds(("fp16",))),
    (("-f", "*_fp8fp32_*_blockscale_*"), kinds(("fp8fp32",))),
    (("-f", "fmha_fwd_d128_bf16__gfx942*"), kinds(("bf16",), ("128",))),
    (("-f", "fmha_fwd_d128_bf16_batch_b128x64x128x128x64x128_r4x1x1*"), kinds(("bf16",), ("128",))),
    (("-r", "0"), SIXTEEN | kinds(FP8)),
    *((("-r", receipt), SIXTEEN) for receipt in ("2", "3", "4", "700")),
    *((("-r", receipt), AITER) for receipt in ("100", "200", "600")),
    (("-r", "800"), kinds(("fp32",))),
    (("-r", "801"), kinds(("fp32",), ("48", "128"))),
    (("-r", "888"), kinds(("fp8bf16", "fp8fp32"), WIDE)),
]


@pytest.mark.parametrize(
    ("arguments", "expected"), SELECTIONS, ids=lambda value: " ".join(sorted(map(str, value)))
)
def test_selection(arguments: tuple[str, ...], expected: Kinds) -> None:
    assert selected("gfx942", *arguments) == expected


@pytest.mark.parametrize(
    ("target", "arguments", "says"),
    [
        ("gfx90a", ("-r", "888"), "receipt 888 (fp8) leaves no instance"),
        ("gfx90a", ("--where", "dtype=fp8bf16"), "clause 'dtype=fp8bf16' leaves no instance"),
        ("gfx90a", ("--where", "qscale=pt"), "clause 'qscale=pt' leaves no instance"),
        ("gfx942", ("--where", "dtype=mxfp8|mxfp4"), "clause 'dtype=mxfp8|mxfp4' leaves no instance"),
        ("gfx942", ("-f", "*_d512_*"), "'_d512_' matches nothing"),
    ],
    ids=str,
)
def test_nothing_selected_is_an_error(target: str, arguments: tuple[str, ...], says: str) -> None:
    assert says in refused("--targets", target, "--count", *arguments)


def test_ck_names_have_ck_s_form() -> None:
    where = "hdim=128 dtype=bf16 mode=group vlayout=r pipeline=qr bm0=128 bn0=64"
    lines = run("--targets", "gfx942", "--expand", "--where", where).lines
    form = re.compile(
        r"fmha_fwd_d128_bf16_group_b128x64x128x128x64x128_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_vr_pssk"
        r"d?d?v?_n?logits_(nbias|bias|alibi)_n?mask_n?lse_n?dropout_n?skip_nqscale_ntrload_n?sink"
    )
    assert len(set(lines)) == 4 * 5 * 2**5  # pads of d and dv; cap, bias, cap and alibi; five flags
    assert all(form.fullmatch(line) for line in lines)


def test_explain_says_what_a_block_takes() -> None:
    text = run(
        "--targets", "gfx942,x86-64", "--explain", "all", "--where", "target=gfx942 hdim=128 dtype=bf16"
    ).out
    assert "of the peak of 1024" in text and "32768 bytes of LDS, 4 waves" in text
    assert "- fmha_fwd__x86_64_v4_b528x128x16_w1_qr: kept out by clause 'target=gfx942'" in text
    # Beside what is modelled stands what was planned: 64 MFMA of 32 cycles of each of two waves of a SIMD.
    assert re.search(r"a block takes \d+ cycles alone and 4\d\d\d \(4096 as planned\) of a unit", text)
