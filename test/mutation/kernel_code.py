# SPDX-License-Identifier: MIT
"""Kernels' machine code: where it is in a code object, and its instructions."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Instruction:
    at: int  # byte in the kernel
    size: int
    text: str

    @property
    def is_nop(self) -> bool:
        return self.text.startswith("s_nop")

    @property
    def removable(self) -> bool:
        return self.is_nop or self.text.startswith(("s_waitcnt", "s_barrier"))


def symbols(image: bytes) -> Iterator[tuple[str, int, int]]:
    """The names of symbols, their places in the file and sizes."""
    (start,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQII", image, start + size * i) for i in range(count)]
    for _, kind, _, _, offset, length, link, _ in sections:
        if kind != 11:  # SHT_DYNSYM
            continue
        for at in range(offset, offset + length, 24):
            name, _, _, section, value, bytes_ = struct.unpack_from("<IBBHQQ", image, at)
            first = sections[link][4] + name
            if 0 < section < count:
                text = image[first : image.index(b"\0", first)].decode()
                yield text, sections[section][4] + value - sections[section][3], bytes_


def find_code(image: bytes, kernel: str) -> tuple[int, int]:
    """Where a kernel's code is in the file, and its bytes."""
    for name, at, size in symbols(image):
        if name == kernel:
            return at, size
    raise SystemExit(f"no kernel {kernel}")


def find_kernels(image: bytes) -> list[str]:
    return sorted(name.removesuffix(".kd") for name, _, _ in symbols(image) if name.endswith(".kd"))


def disassemble(program: Path, arch: str, code: bytes) -> list[Instruction]:
    words = [f"{word:08x}" for (word,) in struct.iter_unpack("<I", code)]
    lines = "".join(" ".join(words[i : i + 4]) + "\n" for i in range(len(words)))
    printed = subprocess.run([program, arch], input=lines, capture_output=True, text=True, check=True).stdout
    found, at = [], 0
    texts = printed.splitlines()
    while at < len(words):
        size, text = texts[at].split(" ", 1)
        if size == "-":
            break  # padding behind the end
        found.append(Instruction(4 * at, int(size), text))
        at += int(size) // 4
    return found


def targets(instructions: list[Instruction]) -> set[int]:
    """The targets of branches."""
    found = set()
    for i in instructions:
        match = re.match(r"s_(?:c?branch\S*|call_b64 \S+) (\d+)$", i.text)
        if match:
            found.add(i.at + 4 + 4 * (int(match[1]) - (int(match[1]) >> 15 << 16)))
    return found
