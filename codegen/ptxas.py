# SPDX-License-Identifier: MIT
"""What ptxas says of NVIDIA kernels: registers, spills, shared memory, warnings. It stays beside each image.

Forms of its lines are those of ptxas 12.9 and 13.0 with -v; the CUDA documentation, "NVCC", chapter 7.4
"Printing Code Generation Statistics", shows them too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from codegen import Refused
from codegen.nvptx import log_of, parts
from codegen.spec import symbol_of
from codegen.targets import TARGETS, NvidiaTarget

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r", (\d+) bytes smem")
# All of what is said of slow code, such as products that are done one after the other.
WARNING = re.compile(r"^ptxas \w+ *: (\(C75\d\d\) .*)$", re.M)
THREADS = re.compile(r"^\.maxntid (\d+)", re.M)
DYNAMIC = re.compile(r"^\.extern \.shared ", re.M)


@dataclass(frozen=True)
class Assembled:
    """A kernel of an image, and what ptxas said of it where it made a cubin."""

    name: str  # its instance
    target: NvidiaTarget
    threads: int
    cubin_bytes: int  # 0: there is PTX alone, of which nothing more is known
    registers: int = 0
    shared_bytes: int = 0  # those that the kernel names
    stack_bytes: int = 0
    spilled_bytes: int = 0  # stored and loaded by as many instructions as that takes
    warnings: tuple[str, ...] = ()
    dynamic: bool = False  # a launch gives it more shared memory

    @property
    def workgroups(self) -> int | None:
        """Those that an SM has room for, if that is known."""
        if not self.cubin_bytes or self.dynamic:
            return None
        return self.target.workgroups(self.threads, self.registers, self.shared_bytes)

    @property
    def row(self) -> dict[str, object]:
        """Of the report."""
        known = self.cubin_bytes > 0
        return {
            "name": self.name,
            "target": self.target.name,
            "registers": self.registers if known else None,
            "shared": self.shared_bytes if known else None,
            "stack": self.stack_bytes if known else None,
            "spilled": self.spilled_bytes if known else None,
            "warnings": len(self.warnings) if known else None,
            "workgroups_per_sm": self.workgroups,
        }

    def notes(self) -> list[str]:
        """What the report's reader may wonder at."""
        return [] if self.cubin_bytes else [f"{self.name} is PTX alone: there was no ptxas to tell more"]

    def complaints(self) -> list[str]:
        """Faults of the kernel."""
        found = list(self.warnings)
        if self.spilled_bytes:
            found.append(f"spills {self.spilled_bytes} bytes of registers")
        if self.stack_bytes:
            found.append(f"takes {self.stack_bytes} bytes of stack a thread")
        if self.shared_bytes > self.target.workgroup_shared_bytes:
            most = self.target.workgroup_shared_bytes
            found.append(f"takes {self.shared_bytes} bytes of shared memory, {self.target.name} has {most}")
        return found


def is_image(data: bytes) -> bool:
    """Whether a file begins with PTX."""
    return re.search(rb"^\.target sm_", data[:2000], re.M) is not None


def read_assembled(file: Path, target: str = "") -> Assembled:
    """The one kernel of an image, which is named after its instance."""
    ptx, cubin = parts(file.read_bytes())
    text = ptx.decode(errors="replace")
    made_for = re.findall(r"^\.target (\w+)", text, re.M)[0]
    page = TARGETS.get(made_for)
    if not isinstance(page, NvidiaTarget):
        raise Refused(f"is for {made_for}, which has no page")
    if target and target != made_for:
        raise Refused(f"is for {made_for}, not for {target}")
    symbol = symbol_of(file.stem)
    entries = re.findall(r"^(?:\.visible )?\.entry (\w+)", text, re.M)
    if entries != [symbol]:
        raise Refused(f"must have the one kernel {symbol}; it has: {', '.join(entries) or 'none'}")
    threads = int(_one(THREADS, text, "bound of its threads")[0])
    if not cubin:
        return Assembled(file.stem, page, threads, 0)
    said = log_of(file).read_text(encoding="utf-8")
    if _one(ENTRY, said, "kernel in what ptxas said") != (symbol, made_for):
        raise Refused("has beside it what ptxas said of another kernel")
    stack, stores, loads = (int(number) for number in _one(FRAME, said, "stack in what ptxas said"))
    shared = SHARED.search(said)
    return Assembled(
        file.stem,
        page,
        threads,
        len(cubin),
        registers=int(_one(USED, said, "registers in what ptxas said")[0]),
        shared_bytes=int(shared[1]) if shared else 0,
        stack_bytes=stack,
        spilled_bytes=stores + loads,
        warnings=tuple(WARNING.findall(said)),
        dynamic=DYNAMIC.search(text) is not None,
    )


def _one(form: re.Pattern[str], text: str, what: str) -> tuple[str, ...]:
    found = list(form.finditer(text))
    if len(found) != 1:
        raise Refused(f"has {len(found)} lines with the {what}, not 1")
    return found[0].groups()
