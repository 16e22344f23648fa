# SPDX-License-Identifier: MIT
"""Operations on rows: CK's names, its generators' options, and calls for several apis.

Names are those that CK's kernels give themselves: GetName() in include/ck_tile/ops/layernorm2d/kernel/
layernorm2d_fwd_kernel.hpp, rmsnorm2d/kernel/rmsnorm2d_fwd_kernel.hpp and smoothquant/kernel/
moe_smoothquant_kernel.hpp of ROCm/composable_kernel. test/runtime/rows_check_test.cc has the same ones of the
library.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from conftest import ROOT, refused, run

from codegen.ops import operations
from codegen.rows import read_instances
from codegen.space import bits

ROWS = [name for name, op in operations().items() if op.family == "rows"]
PORTABLE = ("--targets", "portable")
TILE = "1x4_1x1_1x4_1x4_wpr_op"
NAMES = {
    "layernorm2d_fwd": f"layernorm2d_fwd_fp16_int8_sxfp32_syfp32_{TILE}_xbias_pras_smdqt_pn_mv",
    "rmsnorm2d_fwd": f"rmsnorm2d_fwd_bf16_fp8_syfp32_{TILE}_pra_dqt_pn_rms_saveunquant_t5ml",
    "add_rmsnorm2d_rdquant": f"add_rmsnorm2d_rdquant_fp16_{TILE}_pn_x",
    "smoothquant": f"smoothquant_fp32_fp8_{TILE}_pn",
    "moe_smoothquant": f"moe_smoothquant_bf16_i8_{TILE}_pn",
}


@pytest.mark.parametrize("api", ROWS)
def test_names_of_ck(api: str) -> None:
    """Each combination once, and a filter finds each by its name."""
    names = run("-d", api, *PORTABLE, "--expand").lines
    assert NAMES[api] in names
    assert len(names) == len(set(names))
    assert run("-d", api, *PORTABLE, "--expand", "-f", NAMES[api]).lines == [NAMES[api]]


def test_tiles_of_gpus_in_names_of_ck() -> None:
    """A wave of 64 lanes a row, or several."""
    names = run(
        "-d", "rmsnorm2d_fwd", "--targets", "gfx942", "--where", "prec_i=fp16 fquant=no", "--expand"
    ).out
    assert "_4x512_4x1_1x512_1x8_wpr_op_pn_nsm" in names
    assert "_1x8192_1x8_1x512_1x8_bpr_tp_pn_nsm" in names


def test_warps_of_nvidia_in_names_of_ck() -> None:
    """They have 32 lanes."""
    names = run(
        "-d", "smoothquant", "--targets", "sm_90a", "--where", "prec_i=fp16 prec_o=fp8", "--expand"
    ).out
    assert "smoothquant_fp16_fp8_4x256_4x1_1x256_1x8_wpr_op_pn" in names
    assert "smoothquant_fp16_fp8_1x4096_1x4_1x256_1x8_bpr_op_pn" in names


def served_anywhere(api: str, target: str) -> set[tuple[str, ...]]:
    """Combinations of traits that are served for any number of columns, wherever rows begin."""
    op = operations()[api]
    return {
        traits
        for instance in read_instances(op, ROOT / "instances", (target,))
        if instance.tile.multiple == 1 and not instance.tile.alignment and instance.tile.columns == 2**31 - 1
        for box in instance.region
        for traits in itertools.product(
            *([axis.values[v] for v in bits(mask)] for axis, mask in zip(op.space.axes, box))
        )
    }


@pytest.mark.parametrize("api", ROWS)
def test_nvidia_serves_what_amd_serves(api: str) -> None:
    """With the fp8 that each has."""
    amd = {
        tuple(value.replace("e4m3fnuz", "e4m3") for value in traits)
        for traits in served_anywhere(api, "gfx942")
    }
    assert served_anywhere(api, "sm_90a") == amd != set()


def test_rules() -> None:
    for where in ("fquant=no prec_o=int8", "fquant=1 prec_o=fp16", "fquant=no prec_i=fp16 prec_o=bf16"):
        assert "leaves no instance" in refused(
            "-d", "layernorm2d_fwd", *PORTABLE, "--where", where, "--count"
        )
    assert run("-d", "layernorm2d_fwd", *PORTABLE, "--where", "prec_o=fp8 fadd=1", "--count").code == 0


def test_options_of_ck_s_generators_of_norms(tmp_path: Path) -> None:
    """-w with -g is -o, and with -l a list there."""
    here, there = tmp_path / "w", tmp_path / "o"
    call = ("-a", "rmsnorm2d_fwd", *PORTABLE)
    assert run(*call, "-w", here, "-g").code == run(*call, "-o", there).code == 0
    assert {path.name: path.read_text() for path in here.iterdir()} == {
        path.name: path.read_text() for path in there.iterdir()
    }
    assert run(*call, "-w", here, "-l").code == run(*call, "-l", here / "list.txt").code == 0
    assert (here / "rmsnorm2d_fwd_blobs.txt").read_text() == (here / "list.txt").read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-g", "-g needs -w, the folder"),
        ("-l", "-l needs -w, the folder, or the name of a file"),
        ("-w x", "-w needs -g, which writes files there, or -l, which lists them there"),
        ("-w x -g -l", "-g and -l exclude each other"),
        ("-w x -g -o y", "-w and -o exclude each other"),
        ("-a smoothquant,fwd -w x -l", "-l without FILE is for one api, not 'smoothquant,fwd'"),
    ],
)
def test_what_those_options_refuse(words: str, says: str) -> None:
    assert says in refused(*words.split(), *PORTABLE)


def test_conditions_on_several_apis_are_for_those_that_have_the_field() -> None:
    both = ("-d", "fwd,smoothquant", *PORTABLE, "--format", "csv", "--count")
    everything = run(*both).lines
    assert run(*both, "--optdim", "128").lines[2] == everything[2]
    assert run(*both, "--where", "hdim_q=128").lines[2] == everything[2]
    assert run(*both, "--where", "prec_i=fp16").lines[1] == everything[1]
    assert run(*both, "--where", "prec_i=fp16").lines[2] != everything[2]
    assert "field 'hdim'" in refused("-d", "smoothquant", *PORTABLE, "--where", "hdim=128", "--count")
    assert "has no head dims" in refused("-d", "smoothquant", *PORTABLE, "--optdim", "128", "--count")


def test_a_receipt_wants_nothing_of_apis_that_it_does_not_name() -> None:
    result = run("-d", "fwd,smoothquant", *PORTABLE, "-r", "2", "--format", "csv", "--count")
    assert [line.split(",")[1] for line in result.lines[1:]] == ["3", "0"]
    assert "says nothing of api 'smoothquant'" in refused(
        "-d", "smoothquant", *PORTABLE, "-r", "2", "--count"
    )


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_a_table_of_several_operations_is_read_back(form: str, tmp_path: Path) -> None:
    """Each has fields that the others lack."""
    asked = ("--api", "fwd,smoothquant", "--targets", "gfx942,x86-64", "--receipt", "ci")
    table = run(*asked, "--table", "--format", form).out
    (tmp_path / "table").write_text(table)
    assert run("--from", tmp_path / "table", "--table", "--format", form).out == table
