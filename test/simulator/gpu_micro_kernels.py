# SPDX-License-Identifier: MIT
"""Micro-kernels on a GPU: each runs a few times, and reads the clock before and behind the last time."""

from __future__ import annotations

import ctypes as c
import dataclasses
import statistics
import struct
from collections.abc import Sequence
from pathlib import Path

import toolchain
from hip import Hip
from measured import MFMA
from micro_kernels import WAVE, Micro

ROUNDS = 3  # in the last one the code is cached
ROOM = 1 << 16  # bytes of memory that each round has to itself
SAMPLES = 5
MOST_WAVES = 8
REAL_MHZ = (25, 100)  # of s_memrealtime
FLUSH = 64 << 20  # bytes: more than all L2 of a device, less than Infinity Cache

# Without these HIP takes no arguments.
ARGUMENTS = """.args:
      - { .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global }
      - { .size: 8, .offset: 8, .value_kind: global_buffer, .address_space: global }
      - { .size: 4, .offset: 16, .value_kind: by_value }"""

# Arguments: where times go, memory, the part's number.
HEAD = """
    s_load_dwordx4 s[48:51], s[0:1], 0x0
    s_load_dword s8, s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    s_add_u32 s50, s50, 0x1000
    s_addc_u32 s51, s51, 0
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
PART = """
.Lpart{i}:
    s_mov_b32 s52, {rounds}
.Lround{i}:
    s_mov_b64 exec, -1
    v_and_b32 v1, 63, v0
    s_mov_b64 s[4:5], s[50:51]
    s_add_u32 s50, s50, {room}
    s_addc_u32 s51, s51, 0
    v_mov_b32 v2, s4
    v_mov_b32 v3, s5
    v_mov_b32 v4, 0
    {setup}
    s_waitcnt vmcnt(0) lgkmcnt(0)
    s_memtime s[54:55]
    s_waitcnt lgkmcnt(0)
    s_branch .Lbody{i}
    .p2align 6
.Lbody{i}:
    {body}
    s_waitcnt vmcnt(0) lgkmcnt(0)
    s_memtime s[56:57]
    s_waitcnt lgkmcnt(0)
    s_sub_u32 s52, s52, 1
    s_cmp_lg_u32 s52, 0
    s_cbranch_scc1 .Lround{i}
    s_nop 15
    s_nop 15
    s_sub_u32 s54, s56, s54
    s_subb_u32 s55, s57, s55
    s_mov_b64 exec, 1
    v_lshrrev_b32 v8, 6, v0
    v_lshlrev_b32 v8, 3, v8
    v_mov_b32 v10, s54
    v_mov_b32 v11, s55
    global_store_dwordx2 v8, v[10:11], s[48:49]
    s_endpgm
"""
# Both clocks over a while in which the GPU is at work.
CLOCK_TEXT = """
.Lpart{i}:
    s_memrealtime s[54:55]
    s_memtime s[56:57]
    s_mov_b32 s52, 20000
1:  .rept 16
    v_add_f32 v2, v3, v4
    .endr
    s_sub_u32 s52, s52, 1
    s_cmp_lg_u32 s52, 0
    s_cbranch_scc1 1b
    s_memrealtime s[58:59]
    s_memtime s[60:61]
    s_waitcnt lgkmcnt(0)
    s_sub_u32 s54, s58, s54
    s_sub_u32 s56, s60, s56
    s_mov_b64 exec, 1
    v_mov_b32 v8, 0
    v_mov_b32 v10, s54
    v_mov_b32 v11, s56
    global_store_dwordx2 v8, v[10:11], s[48:49]
    s_endpgm
"""


def for_target(kernel: Micro, arch: str) -> Micro | None:
    """The micro-kernel as this target can run it: gfx950 runs gfx942's, gfx90a those of its own MFMA too."""
    if arch in kernel.archs:
        return kernel
    if arch == "gfx950" and "gfx942" in kernel.archs and "misses" not in kernel.name:
        return kernel
    if arch == "gfx90a" and isinstance(kernel.text, str) and MFMA in kernel.text and "gfx942" in kernel.archs:
        name, old = (f"v_mfma_f32_16x16x16{of}" for of in ("_bf16", "bf16_1k"))
        return dataclasses.replace(kernel, text=kernel.text.replace(name, old))
    return None


class GpuMicroKernels:
    """The micro-kernels of a GPU through its HIP runtime."""

    def __init__(self, hip: Hip, arch: str, folder: Path, kernels: Sequence[Micro]) -> None:
        self.hip = hip
        self.numbers = {kernel.name: 2 * i for i, kernel in enumerate(kernels)}
        bodies = [
            (k.setup, f"{k.lead}\n{k.times(n * k.repeat)}\n{k.finish}") for k in kernels for n in (1, 2)
        ]
        text = [HEAD]
        for i, (setup, body) in enumerate(bodies):
            text.append(PART.format(i=i, rounds=ROUNDS, room=ROOM, setup=setup, body=body))
        self.clock_part = len(bodies)
        text.append(CLOCK_TEXT.format(i=self.clock_part))
        text.append(".p2align 2\n.Ltable:")
        text.extend(f".long .Lpart{i}-.Lbase" for i in range(self.clock_part + 1))
        sizes = {"vgprs": 128, "accum_offset": 128, "lds": 65536, "kernarg": 24, "metadata": ARGUMENTS}
        image = toolchain.assemble("\n".join(text), arch, folder / f"gpu_micro_{arch}.co", **sizes)
        self.module = hip.make("ModuleLoadData", image)
        self.function = hip.make("ModuleGetFunction", self.module, b"kernel")
        self.out = hip.make("Malloc", 8 * MOST_WAVES)
        self.memory = hip.make("Malloc", ROOM * (ROUNDS + 1))
        self.flushed = hip.make("Malloc", FLUSH)
        hip.check("Memset", self.memory, 0, ROOM * (ROUNDS + 1))

    def flush(self) -> None:
        """Drives out of L2 what is there."""
        self.hip.check("Memset", self.flushed, 0, FLUSH)
        self.hip.check("DeviceSynchronize")

    def run(self, part: int, waves: int) -> list[int]:
        """Words that the waves stored, two each."""
        packed = struct.pack("<QQI", self.out, self.memory, part)
        result = self.hip.launch(self.function, packed=packed, block=(WAVE * waves, 1, 1))
        assert result == "hipSuccess", result
        self.hip.check("DeviceSynchronize")
        return self.hip.words(self.out, 2 * waves)

    def time(self, kernel: Micro, longer: bool) -> float:
        """Cycles of the slowest wave: the median of a few launches."""
        samples = []
        for _ in range(SAMPLES):
            if "global_load" in kernel.times(1):
                self.flush()
            words = self.run(self.numbers[kernel.name] + longer, kernel.waves)
            samples.append(max(low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)))
        return statistics.median(samples)

    def cycles(self, kernel: Micro) -> float:
        """Of one group."""
        more = self.time(kernel, True) - self.time(kernel, False)
        return more / (kernel.repeat * kernel.groups)

    def clock_mhz(self) -> float:
        """Of the engine, while one wave is at work, by s_memrealtime, which counts at one of two rates."""
        begin, end = self.hip.make("EventCreate"), self.hip.make("EventCreate")
        self.run(self.clock_part, 1)
        self.hip.check("EventRecord", begin, 0)
        real, engine = self.run(self.clock_part, 1)
        self.hip.check("EventRecord", end, 0)
        about = real / (1e3 * elapsed_ms(self.hip, begin, end))
        return engine / real * min(REAL_MHZ, key=lambda rate: abs(rate - about))


def elapsed_ms(hip: Hip, begin: int, end: int) -> float:
    """Between two events that were recorded."""
    ms = c.c_float()
    hip.check("EventSynchronize", end)
    hip.check("EventElapsedTime", c.byref(ms), begin, end)
    return ms.value
