# SPDX-License-Identifier: MIT
"""What the printer writes, clang 22 assembles to the bytes that were decoded."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import pytest
from conftest import SIMULATOR, Run
from encodings_of_rows import Encoding, corpus
from generate_tables import ARCHS, read_tables

SAMPLES = int(os.environ.get("TESSERA_SIM_SAMPLES", "4"))


def text_section(path: Path) -> bytes:
    """The bytes of .text of an ELF file."""
    data = path.read_bytes()
    offset = struct.unpack_from("<Q", data, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", data, offset + size * i) for i in range(count)]
    for name, _, _, _, start, length in sections:
        at = sections[names][4] + name
        if data[at : data.index(b"\0", at)] == b".text":
            return data[start : start + length]
    raise AssertionError(f"{path} has no .text")


def assemble(clang: list[str], arch: str, lines: list[str], folder: Path) -> tuple[bytes, dict[int, str]]:
    """Assembles; returns the code of the accepted lines, and the complaints about the others by line."""
    source, code = folder / f"{arch}.s", folder / f"{arch}.o"
    source.write_text("\n".join(lines) + "\n")
    command: list[str | Path] = [
        *clang,
        "--target=amdgcn-amd-amdhsa",
        f"-mcpu={arch}",
        "-ferror-limit=0",
        "-c",
        source,
        "-o",
        code,
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = {int(m[1]) - 1: m[2] for m in re.finditer(r"\.s:(\d+):\d+: error: (.*)", result.stderr)}
    if errors:
        kept = [line if i not in errors else "" for i, line in enumerate(lines)]
        return assemble(clang, arch, kept, folder)[0], errors
    assert result.returncode == 0, result.stderr[:2000]
    return text_section(code), {}


def check(
    disassemble: Run, clang: list[str], arch: str, encodings: list[Encoding], folder: Path
) -> list[str]:
    """Decodes, prints and assembles; returns what went wrong."""
    lines = "".join(" ".join(f"{word:08x}" for word in e.words) + "\n" for e in encodings)
    printed = [line.split(" ", 1) for line in disassemble(arch, lines).splitlines()]
    texts = [text if size != "-" else "" for size, text in printed]
    code, errors = assemble(clang, arch, texts, folder)
    wrong, at = [], 0
    for i, (encoding, (size, text)) in enumerate(zip(encodings, printed, strict=True)):
        words = " ".join(f"{word:08x}" for word in encoding.words)
        what = f"{arch} {encoding.row.mnemonic} {encoding.form} [{words}]"
        if size == "-" or i in errors:
            wrong.append(f"{what}: {text}: {errors.get(i, 'not decoded')}")
            continue
        want = struct.pack(f"<{len(encoding.words)}I", *encoding.words)
        got = code[at : at + int(size)]
        at += int(size)
        if got != want:
            wrong.append(f"{what}: {text}: assembles to {got.hex(' ', -4)} instead of {want.hex(' ', -4)}")
    assert at == len(code) or wrong
    return wrong


@pytest.mark.parametrize("arch", ARCHS)
def test_every_instruction(arch: str, disassemble: Run, clang: list[str], tmp_path: Path) -> None:
    rows = read_tables(SIMULATOR / "instructions")
    encodings = list(corpus(rows, arch, SAMPLES))
    assert len(encodings) > SAMPLES * 900
    wrong = check(disassemble, clang, arch, encodings, tmp_path)
    assert not wrong, f"{len(wrong)} of {len(encodings)}:\n" + "\n".join(wrong[:40])
