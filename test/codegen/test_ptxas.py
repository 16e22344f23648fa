# SPDX-License-Identifier: MIT
"""What ptxas says is read correctly; kernels for NVIDIA that spill or are slow are refused by name."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pytest
from conftest import refused, run
from device import compile_ptx, find_ptxas
from sampling import sample

from codegen import Refused
from codegen.nvptx import image, log_of, make
from codegen.ptxas import Assembled
from codegen.resources import main, read_kernel, read_resources
from codegen.spec import ROOT

NAME = "fmha_fwd_test__sm_90a_b1"
SYMBOL = "tessera_k_fmha_fwd_test_sm_90a_b1"
PTX = f".version 8.0\n.target sm_90a\n.visible .entry {SYMBOL}(\n)\n.maxntid 384\n{{\n}}\n"
CLEAN = f"""ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{SYMBOL}' for 'sm_90a'
ptxas info    : Function properties for {SYMBOL}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compile time = 25.905 ms
"""
FRAME = "{} bytes stack frame, {} bytes spill stores, {} bytes spill loads"
NO_FRAME = FRAME.format(0, 0, 0)
SLOW = (
    "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry."
)


def write(folder: Path, ptx: str = PTX, said: str = CLEAN, cubin: bytes = b"cubin") -> Path:
    file = folder / f"{NAME}.co"
    file.write_bytes(image(ptx.encode(), cubin))
    log_of(file).write_text(said)
    return file


def check(file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The text of the build's check; empty if all is well."""
    code = main(["--target", "sm_90a", str(file)])
    err = capsys.readouterr().err
    assert code == (1 if err else 0)
    return err


def test_a_kernel_within_its_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path)
    assert check(file, capsys) == ""
    found = read_kernel(file)
    assert isinstance(found, Assembled)
    assert (found.name, found.threads, found.registers, found.shared_bytes) == (NAME, 384, 168, 1024)
    assert found.workgroups == 1  # 64512 of 65536 registers
    file = write(tmp_path, said=CLEAN.replace(", 1024 bytes smem", ""))
    assert read_kernel(file) == Assembled(NAME, found.target, 384, 5, 168)
    file = write(tmp_path, PTX.replace(".visible", ".extern .shared .b8 x[];\n.visible"))
    assert isinstance(found := read_kernel(file), Assembled) and found.workgroups is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (NO_FRAME, FRAME.format(40, 0, 0), "takes 40 bytes of stack a thread"),
        (NO_FRAME, FRAME.format(0, 44, 48), "spills 92 bytes of registers"),
        ("ptxas info    : 0 bytes gmem", f"ptxas info    : {SLOW}", SLOW),
        ("ptxas info    : 0 bytes gmem", f"ptxas warning : {SLOW}", SLOW),
        ("1024 bytes smem", "232449 bytes smem", "takes 232449 bytes of shared memory, sm_90a has 232448"),
    ],
)  # fmt: skip
def test_faults_are_refused(
    old: str, new: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in CLEAN
    assert check(write(tmp_path, said=CLEAN.replace(old, new)), capsys) == f"{NAME}: {says}\n"


@pytest.mark.parametrize(
    ("ptx", "said", "says"),
    [
        (PTX.replace(SYMBOL, "other"), CLEAN, f"must have the one kernel {SYMBOL}; it has: other"),
        (PTX.replace("sm_90a", "sm_100a"), CLEAN, "is for sm_100a, which has no page"),
        (PTX.replace(".maxntid 384", ""), CLEAN, "has 0 lines with the bound of its threads, not 1"),
        (PTX, CLEAN.replace(SYMBOL, "other"), "has beside it what ptxas said of another kernel"),
        (PTX, CLEAN.replace("Used", ""), "has 0 lines with the registers in what ptxas said, not 1"),
        (PTX, CLEAN + CLEAN, "has 2 lines with the kernel in what ptxas said, not 1"),
        (PTX, "", "has 0 lines with the kernel in what ptxas said, not 1"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(
    ptx: str, said: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, ptx, said)
    assert check(file, capsys) == f"{NAME}: {file} {says}\n"


def test_images_and_code_objects_are_told_apart(tmp_path: Path) -> None:
    file = write(tmp_path)
    with pytest.raises(Refused, match=f"{file} is an image for NVIDIA, no code object"):
        read_resources(file)
    log_of(file).unlink()
    with pytest.raises(Refused, match=f"cannot read {log_of(file)}: No such file"):
        read_kernel(file)


def test_the_report(tmp_path: Path) -> None:
    write(tmp_path)
    (row,) = csv.DictReader(io.StringIO(run("--report", tmp_path, "--format", "csv").out))
    assert row == {
        "name": NAME, "target": "sm_90a", "registers": "168", "shared": "1024", "stack": "0", "spilled": "0",
        "warnings": "0", "workgroups_per_sm": "1",
    }  # fmt: skip
    write(tmp_path, cubin=b"")
    result = run("--report", tmp_path)
    assert result.lines[1].split()[2:] == ["-"] * 6
    assert result.err == f"generate.py: note: {NAME} is PTX alone: there was no ptxas to tell more\n"
    assert "there is no code object" in refused("--report", tmp_path / "nowhere")


def test_what_ptxas_itself_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a kernel that spills, and of one that does not."""
    ptxas = find_ptxas()
    if not ptxas:
        pytest.skip("no ptxas: pip install nvidia-cuda-nvcc-cu12")
    for count, complaint in ((4, ""), (300, "spills")):
        each = f"UNROLL for (int i = 0; i < {count}; i++)"
        body = (
            f"uint32_t a[{count}];\n{each} a[i] = q.x[i * 384 + thread_id()];\n"
            f"for (int j = 0; j < q.n; j++) {each} a[i] = a[i] * a[(i + 1) % {count}] + (uint32_t)j;\n"
            f"{each} q.x[i * 384 + thread_id()] = a[i];\n"
        )
        ptx = compile_ptx(
            '#include "tessera/isa/sm90.h"\nstruct problem { uint32_t *x; int n; };\n'
            f"KERNEL WORKGROUP(384) void {SYMBOL}(ARGUMENT struct problem q) {{\n{body}}}\n",
            tmp_path / f"{NAME}.ptx",
        )
        make(ptx, "sm_90a", ptxas, tmp_path / f"{NAME}.co")
        found = read_kernel(tmp_path / f"{NAME}.co")
        assert isinstance(found, Assembled) and found.threads == 384 and 8 <= found.registers <= 255
        assert complaint in check(tmp_path / f"{NAME}.co", capsys)
        assert bool(found.complaints()) == bool(complaint)


# The tests' build has PTX alone, of a seventh of the instances.
PTX_OF_BUILD = sorted(
    (Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "device/sm_90a").glob("*.ptx")
)


@pytest.mark.parametrize("ptx", sample(PTX_OF_BUILD, 50), ids=lambda ptx: ptx.stem)
def test_kernels_of_this_build(ptx: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ptxas = find_ptxas()
    if not ptxas:
        pytest.skip("no ptxas")
    made = tmp_path / f"{ptx.stem}.co"
    make(ptx, "sm_90a", ptxas, made)
    assert check(made, capsys) == ""
