# SPDX-License-Identifier: MIT
"""Micro-kernels whose times somebody has measured, all of an architecture in one code object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import toolchain
from sim import Sim, Timing, pack

WAVE = 64

# The kernel jumps to the part whose number is its second argument, in the same time to all. s[4:5] and v[2:3]
# have the first argument, memory of 64 KB, plus 4 KB; v0 has the work-item, v1 its lane.
HEAD = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_load_dword s8, s[0:1], 0x8
    v_and_b32 v1, 63, v0
    s_waitcnt lgkmcnt(0)
    s_add_u32 s4, s4, 0x1000
    s_addc_u32 s5, s5, 0
    v_mov_b32 v2, s4
    v_mov_b32 v3, s5
    v_mov_b32 v4, 0
    s_getpc_b64 s[10:11]
.Lbase:
    s_lshl_b32 s8, s8, 2
    s_add_u32 s8, s8, .Ltable-.Lbase
    s_load_dword s12, s[10:11], s8
    s_waitcnt lgkmcnt(0)
    s_add_u32 s10, s10, s12
    s_addc_u32 s11, s11, 0
    s_setpc_b64 s[10:11]
"""


@dataclass(frozen=True)
class Micro:
    """Text that is repeated, and the cycles that one repetition takes, or one of the groups in it."""

    name: str
    text: str | Callable[[int], str]  # the latter gets the number of the repetition
    cycles: float
    source: str
    setup: str = ""
    lead: str = ""  # between the boundary of 64 bytes and the first repetition
    finish: str = ""  # behind the last one
    waves: int = 1
    repeat: int = 32
    groups: int = 1
    archs: tuple[str, ...] = ("gfx942",)

    def times(self, count: int) -> str:
        text = self.text
        return "\n".join(text if isinstance(text, str) else text(i) for i in range(count))


class MicroKernels:
    """The parts of an architecture; each micro-kernel has two, of which one is twice as long."""

    def __init__(self, arch: str, library: Path, folder: Path, kernels: Sequence[Micro]) -> None:
        self.arch, self.library = arch, library
        self.numbers = {kernel.name: 2 * i for i, kernel in enumerate(kernels)}
        parts = [
            (k.setup, f"{k.lead}\n{k.times(count * k.repeat)}\n{k.finish}")
            for k in kernels
            for count in (1, 2)
        ]
        text = [HEAD]
        for i, (setup, body) in enumerate(parts):
            text.append(f".Lpart{i}:\n{setup}\ns_branch .Lbody{i}\n.p2align 6\n.Lbody{i}:\n{body}\ns_endpgm")
        text.append(".p2align 2\n.Ltable:")
        text.extend(f".long .Lpart{i}-.Lbase" for i in range(len(parts)))
        # LDS of a whole unit, so that there is one workgroup.
        sizes = {"vgprs": 128, "accum_offset": 128, "lds": 65536, "kernarg": 16}
        self.image = toolchain.assemble("\n".join(text), arch, folder / f"micro_{arch}.co", **sizes)

    def time(self, kernel: Micro, part: int) -> Timing:
        with Sim(self.library, self.arch) as sim:
            sim.set_clock("on")
            memory = sim.malloc(65536)
            sim.write(memory, bytes(65536))
            size = (WAVE * kernel.waves, 1, 1)
            args = pack(memory, self.numbers[kernel.name] + part, layout="PI")
            sim.launch(sim.load(self.image), "kernel", size, size, args)
            return sim.take_timing()

    def cycles(self, kernel: Micro) -> float:
        """Of one group."""
        more = self.time(kernel, 1).cycles - self.time(kernel, 0).cycles
        return more / (kernel.repeat * kernel.groups)
