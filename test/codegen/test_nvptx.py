# SPDX-License-Identifier: MIT
"""Images of NVIDIA GPUs, and the page that they are made for."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen import Refused, nvptx
from codegen.targets import TARGETS, NvidiaTarget


@pytest.mark.parametrize("length", [1, 62, 63, 64, 65, 200])
@pytest.mark.parametrize("cubin", [b"", b"\x7fELF\0\0more\0"])
def test_an_image_is_taken_apart(length: int, cubin: bytes) -> None:
    ptx = bytes(range(1, 251))[:length]
    made = nvptx.image(ptx, cubin)
    assert (len(made) - len(cubin)) % nvptx.ALIGNMENT == 0
    assert made[length] == 0, "the driver reads PTX up to a zero byte"
    assert nvptx.parts(made) == (ptx, cubin)


def test_what_is_no_text_makes_no_image() -> None:
    for ptx in (b"", b".version\0"):
        with pytest.raises(Refused, match="the PTX is empty, or no text"):
            nvptx.image(ptx, b"")
    with pytest.raises(Refused, match="the PTX has no end"):
        nvptx.parts(b".version 8.0")


def stand_in(folder: Path, lines: str) -> Path:
    """A ptxas of a few lines of shell: $3 is the PTX, $5 the cubin."""
    path = folder / "ptxas"
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


def run(folder: Path, *options: str) -> int:
    ptx = folder / "kernel.ptx"
    return nvptx.main(["--target", "sm_90a", *options, "--out", str(folder / "kernel.co"), str(ptx)])


def test_ptxas_makes_the_cubin_and_its_words_stay(tmp_path: Path) -> None:
    (tmp_path / "kernel.ptx").write_text(".version 8.0")
    ptxas = stand_in(tmp_path, 'test "$1 $2" = "-arch=sm_90a -v" && sed s/8/9/ "$3" > "$5" && echo used >&2')
    assert run(tmp_path, "--ptxas", str(ptxas)) == 0
    assert nvptx.parts((tmp_path / "kernel.co").read_bytes()) == (b".version 8.0", b".version 9.0")
    assert (tmp_path / "kernel.ptxas.txt").read_text() == "used\n"
    assert run(tmp_path) == 0, "without ptxas"
    assert nvptx.parts((tmp_path / "kernel.co").read_bytes()) == (b".version 8.0", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kernel.co", "kernel.ptx", "ptxas"]


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 1
    assert f"codegen.nvptx: cannot read {tmp_path}/kernel.ptx: No such file" in capsys.readouterr().err
    (tmp_path / "kernel.ptx").write_text(".version 8.0")
    assert run(tmp_path, "--ptxas", str(tmp_path / "none")) == 1
    assert f"codegen.nvptx: cannot run {tmp_path}/none: No such file" in capsys.readouterr().err
    assert run(tmp_path, "--ptxas", str(stand_in(tmp_path, "echo no such target >&2; exit 3"))) == 1
    assert f"fails for {tmp_path}/kernel.ptx\nno such target\n" in capsys.readouterr().err
    assert not (tmp_path / "kernel.co").exists()
    (tmp_path / "kernel.co").mkdir()
    assert run(tmp_path) == 1
    assert f"codegen.nvptx: cannot write {tmp_path}/kernel.co" in capsys.readouterr().err


def test_workgroups_of_an_sm() -> None:
    """By the rules of CUDA's occupancy calculator: 64 warps, 65536 registers, 228 KB."""
    page = TARGETS["sm_90a"]
    assert isinstance(page, NvidiaTarget)
    assert page.workgroups(128, 32, 0) == 16  # warps
    assert page.workgroups(32, 16, 0) == 32  # workgroups
    assert page.workgroups(384, 168, 0) == 1  # registers: 12 warps of 168 x 32 are 64512
    assert page.workgroups(384, 160, 0) == 1
    assert page.workgroups(128, 165, 0) == 3  # 168
    assert page.workgroups(128, 32, 113 * 1024) == 2
    assert page.workgroups(128, 32, 113 * 1024 + 1) == 1
    assert page.workgroups(128, 32, page.workgroup_shared_bytes) == 1
    assert page.workgroups(128, 32, page.workgroup_shared_bytes + 1) == 0
