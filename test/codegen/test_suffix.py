# SPDX-License-Identifier: MIT
"""--suffix: emitted sources are C++ too, for builds that take nothing else."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, contents, refused, run, run_all
from device import ziglang
from sampling import sample

from codegen.ops import operations
from codegen.spec import SUFFIXES

COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
FLAGS = ("-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}")
DOCUMENTED = (ROOT / "docs" / "from-ck.md").read_text()


def read_sources(folder: Path, op: str = "fmha_fwd") -> list[list[str]]:
    lines = (folder / f"{op}_sources.txt").read_text().splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def read_all_sources(folder: Path) -> list[list[str]]:
    names = [path.name.removesuffix("_sources.txt") for path in sorted(folder.glob("*_sources.txt"))]
    return [row for name in names for row in read_sources(folder, name)]


def compile_all(jobs: list[list[object]]) -> None:
    for job in jobs:
        done = subprocess.run(list(map(str, job)), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{shlex.join(map(str, job))}\n{done.stderr}"


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("emitted")
    assert run_all("-d", ",".join(operations()), "-o", folder, "--suffix", ".cpp").code == 0
    return folder


@pytest.mark.skipif(not COMPILERS, reason="no C++ compiler")
def test_host_sources_are_cplusplus(emitted: Path) -> None:
    rows = [row for row in read_all_sources(emitted) if row[1] == "host" and row[2] != "armv8-a"]
    tables = [row for row in rows if row[0].endswith("_table.cpp")]
    kernels = [row for row in rows if row not in tables]
    jobs = [(compiler, kernel) for compiler in COMPILERS for kernel in sample(kernels, 4)]
    jobs += [(compiler, table) for compiler in sample(COMPILERS, 1) for table in sample(tables, 2)]
    flags = ("-x", "c++", *FLAGS, f"-I{emitted}", "-fsyntax-only")
    compile_all([[compiler, *row[3].split(), *flags, emitted / row[0]] for compiler, row in jobs])


def test_kernels_for_gpus_are_cplusplus(emitted: Path, tmp_path: Path) -> None:
    """They keep the names that the library looks for. Those of NVIDIA's, which are CUDA, always are."""
    zig = ziglang()
    rows = read_all_sources(emitted)
    gpu = [zig / "zig", "clang", "-nostdinc", "-isystem", zig / "lib" / "include", "-x", "c++"]
    gpu += ["--target=amdgcn-amd-amdhsa", "-nogpulib", "-ffreestanding", "-emit-llvm"]
    gpu += ["-Xclang", "-disable-llvm-passes"]
    for name, _, _, flags, _, _ in sample([row for row in rows if row[2].startswith("gfx")], 4):
        out = tmp_path / "kernel.ll"
        compile_all([[*gpu, *FLAGS, *flags.split(), "-S", emitted / name, "-o", out]])
        assert f"amdgpu_kernel void @tessera_k_{Path(name).stem.replace('__', '_')}(" in out.read_text()


def test_files_change_their_names_alone(tmp_path: Path) -> None:
    arguments = ("--targets", "portable,gfx942", "-r", "ci", "-o", tmp_path)
    made = {}
    for suffix in SUFFIXES:
        assert run(*arguments, "--suffix", suffix).code == 0
        made[suffix] = contents(tmp_path)
        listed = {row[0] for row in read_sources(tmp_path)}
        emitted = {name for name in made[suffix] if name.endswith(suffix)}
        along = {name for name in emitted if name.startswith("fmha_fwd_combine_")}
        assert emitted == listed | along and f"fmha_fwd_combine_table{suffix}" in along
        assert len(made[suffix]) == len(emitted) + 3 + 3  # for the operation, and for the one that goes along
        for name in listed:
            assert made[suffix][name] == made[".c"][str(Path(name).with_suffix(".c"))]
    assert run(*arguments).code == 0
    assert contents(tmp_path) == made[".c"]
    blobs = tmp_path / "blobs"
    assert run("--targets", "portable", "-l", blobs, "--suffix", ".cu").code == 0
    assert {Path(line).suffix for line in blobs.read_text().splitlines()} == {".cu"}
    assert "unknown suffix 'cpp'; there is: .c, .cpp," in refused("--count", "--suffix", "cpp")


# Commands of the documentation, by the blocks that they stand in.
BLOCKS = re.findall(r"^```\n(.*?)^```$", DOCUMENTED, re.MULTILINE | re.DOTALL)
RECIPES = [block.splitlines() for block in BLOCKS if block.startswith("generate.py ")]


def generate(command: str, fewer: str, blob: Path) -> int:
    """Runs a documented command for a folder and `fewer` instances, to be fast."""
    command = command.replace("--targets cpu", fewer).format(blob)
    return os.system(f"{sys.executable} {ROOT}/{command} 2>/dev/null")


def compile_folder(blob: Path, library: Path) -> ctypes.CDLL:
    """What aiter/jit/core.py does with a folder: it compiles the .cpp and .cu files in it."""
    found = sorted(path for path in blob.rglob("*") if path.suffix in (".cpp", ".cu"))
    flags = (*FLAGS, f"-I{blob}", "-O0", "-shared", "-fPIC", "-lm")
    compile_all([["g++", *found, *flags, "-o", library]])
    return ctypes.CDLL(str(library))


class Table(ctypes.Structure):
    """The first fields of a tessera_table."""

    _fields_ = [
        ("schema", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("row_bytes", ctypes.c_uint32),
        ("row_count", ctypes.c_uint32),
    ]


def count_rows(library: ctypes.CDLL, op: str) -> int:
    get_table = library[f"tessera_{op}_get_table"]
    get_table.restype = ctypes.POINTER(Table)
    return int(get_table().contents.row_count)


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
def test_the_recipe_of_aiter(tmp_path: Path) -> None:
    """The commands of aiter/ops/mha.py, which AITER runs for one folder, whatever they return."""
    blob = tmp_path / "blob"
    blob.mkdir()
    codes = [generate(line, "--targets portable --where pipeline=decode", blob) for line in RECIPES[0]]
    assert codes == [0, 0]  # the second one's filter leaves a table without rows
    found = sorted(path for path in blob.rglob("*") if path.suffix in (".cpp", ".cu"))
    tables = [f"fmha_fwd_{name}table.cpp" for name in ("combine_", "splitkv_", "")]
    assert [path.name for path in found][1:] == tables
    loaded = compile_folder(blob, tmp_path / "fmha.so")
    assert loaded[f"tessera_k_{found[0].stem.replace('__', '_')}"]
    assert (count_rows(loaded, "fmha_fwd"), count_rows(loaded, "fmha_fwd_splitkv")) == (1, 0)


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
def test_the_recipe_of_aiter_for_pages(tmp_path: Path) -> None:
    """Keys in pages: what AITER asks for, and with it the instances that attend."""
    blob = tmp_path / "blob"
    blob.mkdir()
    aiters, ours = RECIPES[1:3]
    ops = ("fmha_fwd", "fmha_fwd_splitkv", "fmha_batch_prefill")
    assert [generate(line, "--targets portable", blob) for line in aiters] == [0, 0, 0]
    loaded = compile_folder(blob, tmp_path / "aiters.so")
    assert [count_rows(loaded, op) for op in ops] == [0, 1, 1]
    assert [generate(line, "--targets portable --where pipeline=decode", blob) for line in ours] == [0]
    loaded = compile_folder(blob, tmp_path / "ours.so")
    assert [count_rows(loaded, op) for op in ops] == [1, 1, 1]
