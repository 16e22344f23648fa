# SPDX-License-Identifier: MIT
"""What the tests of the simulator's tables, decoder and printer need: the disassembler and an assembler."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIMULATOR = ROOT / "simulator"
sys.path[:0] = [str(SIMULATOR), str(Path(__file__).parent)]

Run = Callable[[str, str], str]


@pytest.fixture(scope="session")
def clang() -> list[str]:
    """clang 22 for AMD GPUs: TESSERA_CLANG, clang-22 or that of PyPI's ziglang."""
    if "TESSERA_CLANG" in os.environ:
        return [os.environ["TESSERA_CLANG"]]
    found = shutil.which("clang-22")
    if found:
        return [found]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "clang"]
    pytest.skip("needs clang 22: set TESSERA_CLANG, or pip install ziglang")


@pytest.fixture(scope="session")
def disassemble(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compiles tessera_sim_disassemble and returns a function from an architecture and lines to its output."""
    folder = tmp_path_factory.mktemp("disassemble")
    generate = [sys.executable, str(SIMULATOR / "generate_tables.py"), "--output", str(folder)]
    subprocess.run(generate, check=True)
    program = folder / "disassemble"
    sources = [SIMULATOR / "disassemble" / "main.c", SIMULATOR / "decode.c", SIMULATOR / "print.c"]
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{SIMULATOR}", f"-I{folder}"]
    command = [os.environ.get("CC", "cc"), *flags, *sources, folder / "instructions.c", "-o", program]
    subprocess.run(command, check=True)

    def run(arch: str, lines: str) -> str:
        return subprocess.run([program, arch], input=lines, capture_output=True, text=True, check=True).stdout

    return run
