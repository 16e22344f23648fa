# SPDX-License-Identifier: MIT
"""Rows on sm_90a: tiles that do not fit are refused, and what is emitted compiles and spills nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import ROOT, refused, run
from device import compile_ptx, find_ptxas
from sampling import sample

from codegen.nvptx import make
from codegen.ops import operations
from codegen.ptxas import Assembled
from codegen.render import instance_source
from codegen.resources import read_kernel
from codegen.rows import read_instances
from codegen.spec import Instance

DEFAULT = """
[default.one_pass.cuda]
epilogue = "store"
tm = 1
vn = 8
serves = "prec_o!=e4m3fnuz"
"""
ROW = """
[[tile]]
targets = ["sm_90a"]
pipeline = "one_pass"
compute = "bf16"
tn = 256
rn = 2
why = "a test"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "instances" / "receipts.toml", tmp_path)
    return tmp_path


def write(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "rows.toml").write_text(DEFAULT + text)
    return ("--api", "smoothquant", "--instances", str(folder), "--targets", "sm_90a", "--table")


def test_names(folder: Path) -> None:
    """Waves of 32 lanes; how many workgroups there is room for stands behind the pipeline."""
    assert "smoothquant_bf16__sm_90a_b1x4096_w8_one_pass " in run(*write(folder, ROW)).out
    more = ROW.replace("why", "occupancy = 5\nwhy")
    assert "smoothquant_bf16__sm_90a_b1x4096_w8_one_pass_o5 " in run(*write(folder, more)).out


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("tn = 256", "tn = 48", "tn = 48 is no whole waves of 32, or rn x vn = 16 no whole chunks of 8"),
        ("rn = 2", "rn = 2\ntm = 2", "tm = 2: where a row has 8 waves, a workgroup has one row"),
        ("tn = 256", "tn = 2048", "2048 threads, a workgroup of sm_90a has at most 1024"),
        ("rn = 2", "rn = 2\nvn = 4", "vn = 4 is none of 8, 1"),
        ("rn = 2", "rn = 2\noccupancy = 9", "occupancy = 9: a unit of sm_90a has at most 8 such workgroups"),
        ("rn = 2", "rn = 2\noccupancy = -1", "occupancy = -1: a unit of sm_90a has at most 8"),
        ('"bf16"', '"fp8"', "compute 'fp8' is none of fp32, fp16, bf16"),
        ('"one_pass"', '"two_pass"', "field epilogue is missing"),
    ],
)
def test_a_wrong_row_is_refused(folder: Path, old: str, new: str, says: str) -> None:
    assert old in ROW
    assert says in refused(*write(folder, ROW.replace(old, new)))


def instances() -> list[Instance]:
    """All of them."""
    rows = [op for op in operations().values() if op.family == "rows"]
    return [one for op in rows for one in read_instances(op, ROOT / "instances", ("sm_90a",))]


@pytest.mark.parametrize("instance", sample(instances(), 6), ids=lambda instance: instance.name)
def test_an_instance_spills_nothing(instance: Instance, tmp_path: Path) -> None:
    """It compiles without warnings, and where there is a ptxas it takes no stack either."""
    ptx = compile_ptx(
        instance_source(instance), tmp_path / f"{instance.name}.ptx", "-Wall", "-Wextra", "-Werror"
    )
    make(ptx, "sm_90a", find_ptxas(), image := tmp_path / f"{instance.name}.co")
    kernel = read_kernel(image, "sm_90a")
    assert isinstance(kernel, Assembled)
    assert kernel.threads == instance.tile.threads and kernel.complaints() == []
    if kernel.workgroups is not None:
        assert kernel.workgroups >= instance.tile.occupancy
