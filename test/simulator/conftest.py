# SPDX-License-Identifier: MIT
"""What the tests of the simulator's tables, decoder and printer need: the disassembler and an assembler."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIMULATOR = ROOT / "simulator"
sys.path[:0] = [str(SIMULATOR / "instructions"), str(Path(__file__).parent), str(ROOT / "test" / "mutation")]

Run = Callable[[str, str], str]


@pytest.fixture(scope="session")
def clang() -> list[str]:
    """An assembler as new as clang 22: TESSERA_CLANG, or that of PyPI's ziglang."""
    import toolchain

    if "TESSERA_CLANG" in os.environ:
        return [os.environ["TESSERA_CLANG"]]
    if toolchain.ZIGLANG is None:
        pytest.skip("needs clang 22: set TESSERA_CLANG, or pip install ziglang")
    return [str(toolchain.ZIGLANG / "zig"), "clang"]


@pytest.fixture(scope="session")
def disassemble(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compiles tessera_sim_disassemble; returns a function from an architecture and lines to its output."""
    folder = tmp_path_factory.mktemp("disassemble")
    generate = SIMULATOR / "instructions" / "generate_tables.py"
    subprocess.run([sys.executable, generate, "--output", folder], check=True)
    program = folder / "disassemble"
    sources = [SIMULATOR / name for name in ("disassemble/main.c", "decode/decode.c", "decode/print.c")]
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{SIMULATOR}", f"-I{folder}"]
    command: list[str | Path] = [
        os.environ.get("CC", "cc"),
        *flags,
        *sources,
        folder / "instructions.c",
        "-o",
        program,
    ]
    subprocess.run(command, check=True)

    def run(arch: str, lines: str) -> str:
        return subprocess.run([program, arch], input=lines, capture_output=True, text=True, check=True).stdout

    return run


@pytest.fixture(scope="session")
def library() -> Path:
    """libtessera_sim: the file of TESSERA_SIM_LIBRARY, or that of a build directory."""
    import sim

    found = sim.find_library()
    if found is None:
        pytest.skip("needs libtessera_sim: build it, or set TESSERA_SIM_LIBRARY")
    return found


@pytest.fixture(scope="session")
def padding(library: Path) -> Path:
    """tessera_sim_padding: that beside the library."""
    program = library.parent / "bin" / "tessera_sim_padding"
    if not program.exists():
        pytest.skip(f"needs {program}: build all")
    return program


@pytest.fixture(scope="session")
def standin(library: Path) -> Path:
    """The folder of the stand-in's libraries."""
    folder = library.parent / "standin"
    if not (folder / "libamdhip64.so.5").exists():
        pytest.skip(f"needs {folder}/libamdhip64.so.5: build all")
    return folder
