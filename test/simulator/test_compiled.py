# SPDX-License-Identifier: MIT
"""Every instruction that compilers emit decodes, and prints as what assembles to the same bytes."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import generator
import pytest
import toolchain
from conftest import Run
from generate_tables import ARCHS
from test_round_trip import assemble, text_section

KINDS = Path(__file__).parent / "programs" / "round_trip.c"
PROGRAMS = int(os.environ.get("TESSERA_SIM_PROGRAMS", "4"))

# gfx90a: clang sets glc and scc, which its assembler has no words for.
WBL2_OF_COMPILER = struct.pack("<II", 0xE0A0C000, 0)
WBL2_OF_ASSEMBLER = struct.pack("<II", 0xE0A00000, 0)


def compile_text(compiler: toolchain.Compiler, source: Path, arch: str, level: str, folder: Path) -> bytes:
    """The machine code of a C file."""
    made = folder / "made.o"
    command: list[str | Path] = [
        *compiler.command,
        *toolchain.DEVICE_FLAGS,
        f"-mcpu={arch}",
        level,
        "-c",
        source,
        "-o",
        made,
    ]
    subprocess.run(command, check=True)
    return text_section(made)


def disassemble_all(disassemble: Run, arch: str, code: bytes) -> list[str]:
    """The instructions of some code, one after the other."""
    words = [f"{word:08x}" for word in struct.unpack(f"<{len(code) // 4}I", code)]
    lines = [" ".join(words[i : i + 4]) for i in range(len(words))]
    printed = disassemble(arch, "\n".join(lines) + "\n").splitlines()
    texts, at = [], 0
    while at < len(words):
        size, text = printed[at].split(" ", 1)
        assert size != "-", f"{arch} at {4 * at:#x}: {lines[at]}: {text}"
        texts.append(text)
        at += int(size) // 4
    return texts


def check_code(disassemble: Run, clang: list[str], arch: str, code: bytes, folder: Path) -> None:
    """Disassembles code and assembles it again."""
    texts = disassemble_all(disassemble, arch, code)
    assert len(texts) > 500
    again, errors = assemble(clang, arch, texts, folder)
    assert not errors, [(texts[line], error) for line, error in errors.items()]
    if arch == "gfx90a":
        code = code.replace(WBL2_OF_COMPILER, WBL2_OF_ASSEMBLER)
    assert again == code


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
@pytest.mark.parametrize("compiler", toolchain.compilers(), ids=lambda compiler: compiler.name)
def test_random_programs(
    compiler: toolchain.Compiler, level: str, disassemble: Run, clang: list[str], tmp_path: Path
) -> None:
    source = tmp_path / "programs.c"
    source.write_text(generator.source(range(1000, 1000 + PROGRAMS)))
    for arch in compiler.archs:
        check_code(disassemble, clang, arch, compile_text(compiler, source, arch, level, tmp_path), tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_kinds_of_code(level: str, arch: str, disassemble: Run, clang: list[str], tmp_path: Path) -> None:
    newest = toolchain.compilers()[0]
    check_code(disassemble, clang, arch, compile_text(newest, KINDS, arch, level, tmp_path), tmp_path)
