#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is each s_nop of a kernel for? Each must have a rule or a reason of simulator/check/hazards.md.

    padding.py --tools build/bin build/device    emitted kernels: build/device/gfx942/*.co, ...
    padding.py --tools build/bin programs        programs compiled from C

A rule that needs an s_nop is one that the simulator's sanitizer keeps; a spare one is LLVM's alone. Nor may
an instruction come too early after another on any path, run or not. Samples are test/sampling.py's. Exits 1
if an s_nop has neither rule nor reason, or something comes too early.
"""

from __future__ import annotations

import argparse
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test"), str(ROOT / "test" / "simulator")]

import sampling  # noqa: E402
import toolchain  # noqa: E402
from kernel_code import Instruction, disassemble, find_code, find_kernels  # noqa: E402

SKIPPED = 77  # CTest's word for it
SAMPLES = 12  # kernels of a target
MOST_PASSES = 16  # of a matrix instruction
OF_ASSEMBLY = "LLVM takes inline assembly to write a part of its registers"
SETTLED = "settled() of include/tessera/isa/cdna.h"
NOT_COUNTED = "LLVM counts no states of inline assembly"


@dataclass(frozen=True)
class Padding:
    """The s_nops before an instruction, and the strictest rule that requires them."""

    at: int
    states: int
    missing: int  # without them
    first: int  # the instruction that the one behind is kept from
    branches: bool  # the path between
    kind: str  # needed, spare; short: a rule's states are missing in spite of s_nops
    rule: str
    reason: str  # of a spare one


def paddings(tool: Path, arch: str, code: bytes, uncounted: Sequence[int] = ()) -> list[Padding]:
    """Those of a kernel where the instructions at some places take no state."""
    words = "".join(f"{word:x}\n" for (word,) in struct.iter_unpack("<I", code))
    command = [str(tool), arch, *map(str, uncounted)]
    printed = subprocess.run(command, input=words, capture_output=True, text=True, check=True).stdout
    found = []
    for line in printed.splitlines():
        at, states, missing, first, path, kind, rule, reason = line.split("\t")
        found.append(
            Padding(int(at), int(states), int(missing), int(first), path == "branch", kind, rule, reason)
        )
    return found


def is_matrix(one: Instruction) -> bool:
    return one.text.startswith(("v_mfma", "v_smfmac"))


class Kernel:
    """A kernel's s_nops with their reasons."""

    def __init__(self, tools: Path, arch: str, code: bytes) -> None:
        self.arch = arch
        self.instructions = disassemble(tools / "tessera_sim_disassemble", arch, code)
        self.index = {one.at: number for number, one in enumerate(self.instructions)}
        tool = tools / "tessera_sim_padding"
        found = paddings(tool, arch, code)
        self.short = [one for one in found if one.kind == "short"]
        self.of_nop = self.by_nop(found)
        settling = [nop.at for nop in self.nops() if self.settles(nop)]
        self.as_llvm_counts = self.by_nop(paddings(tool, arch, code, settling)) if settling else {}

    def by_nop(self, found: list[Padding]) -> dict[int, Padding]:
        return {
            nop.at: one for one in found if one.kind != "short" for nop in self.run_from(self.index[one.at])
        }

    def run_from(self, index: int) -> list[Instruction]:
        """The run of s_nops that begins with this one."""
        end = index
        while self.instructions[end].is_nop:
            end += 1
        return self.instructions[index:end]

    def nops(self) -> list[Instruction]:
        return [one for one in self.instructions if one.is_nop]

    def settles(self, nop: Instruction) -> bool:
        """Whether it is that of settled() in cdna.h: an s_nop 0 behind a product of 16 passes."""
        before = self.instructions[self.index[nop.at] - 1].text
        return self.arch == "gfx950" and nop.text == "s_nop 0" and "32x32x64_f8f6f4" in before

    def is_of_assembly(self, padding: Padding) -> bool:
        """Whether these may be those of an empty one.

        One state before it, behind a VALU that writes a part of a VGPR or is packed, for whose op_sel_hi LLVM
        has the same bit, and one before a VALU or a load to LDS that uses a VGPR.
        """
        nops = self.index[padding.at]
        before, after = (
            self.instructions[nops - 1].text,
            self.instructions[nops + len(self.run_from(nops))].text,
        )
        writes_part = "op_sel:[0,0,1]" in before or before.startswith("v_pk_")
        uses = re.search(r"\bv(\d+|\[)", after) is not None
        by_lane = after.startswith("v_") or after.endswith(" lds")
        return self.arch != "gfx90a" and padding.states <= writes_part + (uses and by_lane)

    def matrix_waits(self, padding: Padding) -> bool:
        """Whether a matrix instruction between or behind waits for another: LLVM counts one state."""
        nops = self.index[padding.at]
        behind = self.instructions[nops + len(self.run_from(nops))]
        begin = nops - MOST_PASSES if is_matrix(behind) else self.index[padding.first] + 1
        return any(is_matrix(one) for one in self.instructions[max(begin, 0) : nops])

    def reason(self, nop: Instruction) -> tuple[str, str]:
        """Whether it is needed, spare or neither, and the rule or reason."""
        padding = self.of_nop.get(nop.at)
        if padding is None:
            return "", "nothing"
        if padding.missing >= padding.states:
            return padding.kind, padding.rule
        if self.settles(nop):
            return "needed", SETTLED
        if not padding.missing and self.is_of_assembly(padding):
            return "spare", OF_ASSEMBLY
        llvms = self.as_llvm_counts.get(nop.at)
        if llvms and llvms.missing >= padding.states:
            return padding.kind if padding.missing else "spare", f"{llvms.rule}; {NOT_COUNTED}"
        return "", "nothing"

    def why_unnoticed(self, nop: Instruction) -> str | None:
        """Why a run does not show that an s_nop is missing; None: it should."""
        kind, why = self.reason(nop)
        if kind != "needed" or why == SETTLED:
            return f"{why}; hardware does not need it" if kind else None
        padding = self.of_nop[nop.at]
        if padding.branches:
            return f"on a path that is not taken here: {why}"
        return "matrix instructions wait for one another" if self.matrix_waits(padding) else None


def emitted(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    """The name, target and code of each kernel of a build."""
    paths = sorted(folder.glob("gfx*/*.co"))
    for path in sampling.sample_each(paths, lambda path: path.parent.name, SAMPLES):
        image = path.read_bytes()
        for kernel in find_kernels(image):
            begin, size = find_code(image, kernel)
            yield kernel, path.parent.name, image[begin : begin + size]


def compiled() -> Iterator[tuple[str, str, bytes]]:
    """Those of programs of test/simulator, at -O2."""
    compiler = toolchain.compilers()[0]
    with tempfile.TemporaryDirectory() as folder:
        for arch in ("gfx90a", "gfx942", "gfx950"):
            source = ROOT / "test" / "simulator" / "programs" / "basics.c"
            image = toolchain.build_device(compiler, source, arch, ["-O2"], Path(folder) / "basics.co")
            for kernel in find_kernels(image):
                begin, size = find_code(image, kernel)
                yield kernel, arch, image[begin : begin + size]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("subjects", nargs="+", metavar="FOLDER|programs")
    parser.add_argument(
        "--tools", type=Path, required=True, help="folder of tessera_sim_padding and _disassemble"
    )
    args = parser.parse_args()
    if "programs" in args.subjects and toolchain.ZIGLANG is None:
        print("padding.py: programs are compiled by PyPI's ziglang")
        return SKIPPED
    counts: Counter[tuple[str, str, str]] = Counter()
    wrong = 0
    print(sampling.about())
    for subject in args.subjects:
        for name, arch, code in compiled() if subject == "programs" else emitted(Path(subject)):
            kernel = Kernel(args.tools, arch, code)
            for nop in kernel.nops():
                kind, why = kernel.reason(nop)
                counts[arch, kind, why] += 1
                if not kind:
                    wrong += 1
                    print(f"{name} on {arch}: +0x{nop.at:x} {nop.text}: no rule asks for it")
            for one in kernel.short:
                wrong += 1
                print(f"{name} on {arch}: +0x{one.at:x} comes {one.missing} too early: {one.rule}")
    for (arch, kind, why), count in sorted(counts.items()):
        print(f"{arch} {count:6} {kind:6} {why}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
