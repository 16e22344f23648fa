#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts, for each architecture, the instructions that are decoded, implemented, and run by the tests.

    TESSERA_SIM_LIBRARY=build/libtessera_sim.so python simulator/observe/coverage.py [--list] [PYTEST...]

It runs test/simulator with pytest, which gets all other arguments. What other processes run does not count.
"""

from __future__ import annotations

import argparse
import ctypes as c
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "test" / "simulator"
sys.path.insert(0, str(TESTS))

from sim import ARCHS, find_library  # noqa: E402


class _Instruction(c.Structure):
    _fields_ = [
        ("mnemonic", c.c_char_p),
        ("encoding", c.c_char_p),
        ("implemented", c.c_bool),
        ("ran", c.c_bool),
    ]


@dataclass(frozen=True)
class Instruction:
    """The C structure tessera_sim_instruction."""

    mnemonic: str
    encoding: str
    implemented: bool
    ran: bool


def read(library: Path, arch: str) -> list[Instruction]:
    """Lists the instructions of an architecture, with those that ran in this process."""
    lib, sim, out, found = c.CDLL(str(library)), c.c_void_p(), _Instruction(), []
    lib.tessera_sim_instruction_at.restype = c.c_bool
    if lib.tessera_sim_open(arch.encode(), c.byref(sim)) != 0:
        raise SystemExit(f"coverage.py: {library} does not open {arch}")
    while lib.tessera_sim_instruction_at(sim, c.c_size_t(len(found)), c.byref(out)):
        found.append(Instruction(out.mnemonic.decode(), out.encoding.decode(), out.implemented, out.ran))
    lib.tessera_sim_close(sim)
    return found


def table(arch: str, instructions: list[Instruction]) -> str:
    """Counts instructions by encoding."""
    groups = defaultdict(list)
    for instruction in instructions:
        groups[instruction.encoding].append(instruction)
    groups["all"] = instructions
    lines = [f"{arch:8} {'decoded':>8} {'implemented':>12} {'run by a test':>14}"]
    for name, group in groups.items():
        implemented, ran = sum(i.implemented for i in group), sum(i.ran for i in group)
        lines.append(f"{name:8} {len(group):8} {implemented:12} {ran:14}")
    return "\n".join(lines)


def names(instructions: list[Instruction]) -> str:
    """Joins the mnemonics of instructions into one line."""
    return " ".join(i.mnemonic for i in instructions) or "none"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="name what is not implemented or not run")
    options, rest = parser.parse_known_args()
    library = find_library()
    if library is None:
        raise SystemExit("coverage.py: build libtessera_sim, or set TESSERA_SIM_LIBRARY")
    status = pytest.main(["-q", "-p", "no:cacheprovider", str(TESTS), *rest])
    for arch in ARCHS:
        instructions = read(library, arch)
        print("\n" + table(arch, instructions))
        if options.list:
            print("not implemented:", names([i for i in instructions if not i.implemented]))
            print("not run:", names([i for i in instructions if i.implemented and not i.ran]))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
