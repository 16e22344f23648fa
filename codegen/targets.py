# SPDX-License-Identifier: MIT
"""A page of facts for each target that code is generated for."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from codegen import Refused


@dataclass(frozen=True, kw_only=True)
class Target:
    """What generation and ranking know of any target. The enum stands in include/tessera/device.h."""

    kind: ClassVar[str]  # kinds share templates, and in the library a driver
    compiler: ClassVar[str]  # "host", or by its name one of cmake/compilers/
    name: str
    families: tuple[str, ...]  # other words for --targets that include this one
    vocabulary: str  # header in include/tessera/isa that its kernels are written in
    macs: dict[str, float]  # peak multiply-adds a cycle and compute unit, for each compute type it has
    source: str  # where the figures come from
    fp8: str  # flavour of E4M3: "ocp", "fnuz"; "": the target has none
    clock_mhz: int
    bandwidth_gbs: float  # of memory, which all compute units share: 10^9 bytes a second
    unit_bytes: float  # a cycle, that one compute unit gets of memory at most

    @property
    def device_bytes(self) -> float:
        """Bytes a cycle that all compute units together get of memory."""
        return self.bandwidth_gbs * 1000 / self.clock_mhz

    @property
    def last_cache_bytes(self) -> int:
        """Of a GPU's cache before memory, all its parts. Caches of CPUs are the machine's."""
        return 0

    @property
    def dies(self) -> int:
        """Of a device, each with an L2 of its own, to which workgroups go in turns."""
        return 1

    @property
    def tag(self) -> str:
        """The target in names of files and symbols."""
        return self.name.replace("-", "_")

    @property
    def enum(self) -> str:
        """The target in C."""
        return f"TESSERA_TARGET_{self.tag.upper()}"

    @property
    def fp8_enum(self) -> str:
        """What a byte of fp8 means, in C."""
        return {"ocp": "TESSERA_E4M3FN", "fnuz": "TESSERA_E4M3FNUZ", "": "TESSERA_FP8_NONE"}[self.fp8]


@dataclass(frozen=True, kw_only=True)
class CpuTarget(Target):
    """An instruction set of CPUs. A compute unit is a core."""

    kind: ClassVar[str] = "cpu"
    compiler: ClassVar[str] = "host"
    fp8: str = "ocp"
    # Memory is the machine's, not the instruction set's: pages that one machine can run may not differ.
    # Measured with 512-bit loads, and stores that pass the caches, in a virtual machine on a Xeon with 300
    # MiB of L3 (family 6, model 207: Emerald Rapids) that says 2.1 GHz of itself: a triad on one core moved
    # 19.9 GB/s, a sum on 32 cores 275.
    clock_mhz: int = 2100
    bandwidth_gbs: float = 275
    unit_bytes: float = 9.5
    lanes: int  # fp32 numbers in a vector
    registers: int  # vector registers
    tiles: int = 0  # tile registers, of 16 x 16 words
    cflags: tuple[str, ...]  # gcc and clang
    zig_cflags: tuple[str, ...]  # zig cc
    l1_bytes: int  # caches that a tile may count on
    l2_bytes: int


@dataclass(frozen=True, kw_only=True)
class CdnaTarget(Target):
    """An AMD GPU. Rates are those of a compute unit (CU); a wave has 64 lanes.

    Compute types are those of MFMA's factors: fp8 is E4M3 in the target's flavour; mxfp8 and mxfp4 are
    OCP's E4M3 and E2M1 with a scale for each 32 numbers.
    """

    kind: ClassVar[str] = "cdna"
    compiler: ClassVar[str] = "amdgcn"
    vocabulary: str = "cdna.h"
    compute_units: int  # of one device as the HIP runtime shows it
    xcds: int  # dies of a device, each with an L2 of its own; workgroups go to them in turns
    # Of L2, which has 2 KB a cycle for the 32 to 38 units of a die (CDNA 3 white paper).
    unit_bytes: float = 64.0
    lds_bytes: int  # of a CU, all of which one workgroup may have
    lds_banks: int  # of 4 bytes
    lds_granule: int  # bytes that a workgroup's share is rounded up to
    lds_load_bytes: int  # most that a lane loads from memory straight to LDS at once
    l2_bytes: int  # of a die
    l3_bytes: int  # shared; 0: none
    mfma: dict[str, tuple[tuple[int, int, int], ...]]  # shapes m, n, k with one block, for each compute type
    matrix_port: int  # cycles for which MFMA holds the port that vector instructions need too: these take 4,
    transcendental: int  # and transcendental ones so many
    transposing_reads: bool  # of LDS: a lane gets what lies in a column
    bf16_conversions: bool  # from fp32, to nearest even, in one instruction
    code_object_version: int
    simds: int = 4  # of a CU
    lanes: int = 64  # fp32 results of vector instructions a cycle
    vgprs: int = 256  # of a lane of one wave at most: those that all vector instructions take,
    agprs: int = 256  # and those that only MFMA, moves and memory instructions take
    registers: int = 512  # of a lane of a SIMD for all its waves: VGPRs and AGPRs come from one file
    register_granule: int = 8
    waves: int = 8  # of a SIMD, at most
    workgroup_threads: int = 1024

    @property
    def last_cache_bytes(self) -> int:
        """L3's, or those of all dies' L2."""
        return self.l3_bytes or self.xcds * self.l2_bytes

    @property
    def product(self) -> int:
        """Cycles for which an MFMA of 32 x 32 keeps a SIMD's matrix pipe busy, the longest of 16 bits."""
        m, n, k = self.mfma["bf16"][0]
        return int(self.simds * m * n * k / self.macs["bf16"])

    @property
    def dies(self) -> int:
        """XCDs."""
        return self.xcds

    def workgroups(self, waves: int, waves_of_simd: int, lds_bytes: int) -> int:
        """How many workgroups a CU holds, where registers leave room for `waves_of_simd`."""
        by_registers = min(waves_of_simd, self.waves) * self.simds // waves
        allocated = -(-lds_bytes // self.lds_granule) * self.lds_granule
        return min(by_registers, self.lds_bytes // allocated) if allocated else by_registers

    @property
    def cflags(self) -> tuple[str, ...]:
        """Clang."""
        return (f"-mcpu={self.name}", f"-mcode-object-version={self.code_object_version}")

    @property
    def zig_cflags(self) -> tuple[str, ...]:
        """Zig's clang is one like any other."""
        return self.cflags


@dataclass(frozen=True, kw_only=True)
class NvidiaTarget(Target):
    """An NVIDIA GPU. A compute unit is a streaming multiprocessor (SM); a warp has 32 lanes.

    Compute types are those of factors that tensor cores multiply, and fp32, which they do not: there rates
    are those of fused multiply-adds in registers.
    """

    kind: ClassVar[str] = "cuda"
    compiler: ClassVar[str] = "nvptx"
    ptx: int  # version of the language that the compiler is told to write: 80 is 8.0
    compute_units: int
    unit_bytes: float = 64.0  # of L2, taken to be as on Ampere: between it and the first cache of an SM
    shared_bytes: int  # of an SM; what is left of it is its first cache
    workgroup_shared_bytes: int  # at most
    reserved_shared_bytes: int  # of each workgroup, by the system
    l2_bytes: int
    registers: int = 65536  # of an SM, 32 bits each
    thread_registers: int = 255  # at most
    register_granule: int = 8  # of a thread
    lanes: int = 128  # fp32 results of vector instructions a cycle
    warps: int = 64  # of an SM, at most
    most_workgroups: int = 32  # of an SM
    workgroup_threads: int = 1024

    @property
    def last_cache_bytes(self) -> int:
        """L2's."""
        return self.l2_bytes

    def workgroups(self, threads: int, registers: int, shared_bytes: int) -> int:
        """How many workgroups an SM holds, whose threads take that many registers each."""
        warps = -(-threads // 32)
        by_warps = min(self.most_workgroups, self.warps // warps)
        allocated = max(-(-registers // self.register_granule), 1) * self.register_granule
        by_registers = self.registers // (allocated * 32) // warps
        return min(by_warps, by_registers, self.shared_bytes // (shared_bytes + self.reserved_shared_bytes))

    @property
    def cflags(self) -> tuple[str, ...]:
        """Clang."""
        return (f"--cuda-gpu-arch={self.name}", f"--cuda-feature=+ptx{self.ptx}")

    @property
    def zig_cflags(self) -> tuple[str, ...]:
        """Zig's clang is one like any other."""
        return self.cflags


KIB = 1024
MIB = 1024 * KIB

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        CpuTarget(
            name="portable",
            families=(),
            vocabulary="cpu_portable.h",
            lanes=4,
            registers=16,
            cflags=(),
            zig_cflags=(),
            macs={"f32": 4.0},
            l1_bytes=32 * KIB,
            l2_bytes=256 * KIB,
            source="any compiler's baseline; a machine with one 128-bit multiplier and adder is assumed",
        ),
        CpuTarget(
            name="x86-64-v2",
            families=("x86-64",),
            vocabulary="cpu_portable.h",
            lanes=4,
            registers=16,
            cflags=("-march=x86-64-v2",),
            zig_cflags=("-mcpu=x86_64_v2",),
            macs={"f32": 4.0},
            l1_bytes=32 * KIB,
            l2_bytes=256 * KIB,
            source="x86-64 psABI (SSE4.2); Nehalem: one mulps and one addps a cycle, 256 KiB of L2",
        ),
        CpuTarget(
            name="x86-64-v3",
            families=("x86-64",),
            vocabulary="cpu_avx2.h",
            lanes=8,
            registers=16,
            cflags=("-march=x86-64-v3",),
            zig_cflags=("-mcpu=x86_64_v3",),
            macs={"f32": 16.0, "f32i16": 16.0},
            l1_bytes=32 * KIB,
            l2_bytes=512 * KIB,
            source="x86-64 psABI (AVX2, FMA); Haswell and later, Zen 2 and later: two 256-bit FMA a cycle",
        ),
        CpuTarget(
            name="x86-64-v4",
            families=("x86-64",),
            vocabulary="cpu_avx512.h",
            lanes=16,
            registers=32,
            cflags=("-march=x86-64-v4",),
            zig_cflags=("-mcpu=x86_64_v4",),
            macs={"f32": 32.0},
            l1_bytes=32 * KIB,
            l2_bytes=1024 * KIB,
            source="x86-64 psABI (AVX-512); Skylake-SP: two 512-bit FMA a cycle, 1 MiB of L2",
        ),
        CpuTarget(
            name="x86-64-v4-bf16",
            families=("x86-64",),
            vocabulary="cpu_avx512bf16.h",
            lanes=16,
            registers=32,
            cflags=("-march=x86-64-v4", "-mavx512bf16", "-mavx512vbmi", "-mavx512vnni"),
            zig_cflags=("-mcpu=x86_64_v4+avx512bf16+avx512vbmi+avx512vnni",),
            macs={"f32": 32.0, "bf16": 64.0},
            l1_bytes=32 * KIB,
            l2_bytes=1024 * KIB,
            source="Zen 4 and 5, which have VBMI and VNNI, too: vdpbf16ps does 32 multiply-adds at the rate "
            "of an FMA (a quarter of it on Sapphire Rapids, which has AMX)",
        ),
        CpuTarget(
            name="x86-64-v4-vp2intersect",
            families=("x86-64",),
            vocabulary="cpu_avx512bf16.h",
            lanes=16,
            registers=32,
            cflags=("-march=x86-64-v4", "-mavx512bf16", "-mavx512vbmi", "-mavx512vnni"),
            zig_cflags=("-mcpu=x86_64_v4+avx512bf16+avx512vbmi+avx512vnni",),
            macs={"f32": 32.0, "bf16": 64.0},
            l1_bytes=48 * KIB,
            l2_bytes=1024 * KIB,
            source="Zen 5, by what Zen 4 lacks, whose instructions are not used: two vdpbf16ps or FMA of 512 "
            "bits a cycle, and 48 KiB of L1",
        ),
        CpuTarget(
            name="x86-64-v4-amx",
            families=("x86-64",),
            vocabulary="cpu_amx.h",
            lanes=16,
            registers=32,
            tiles=8,
            cflags=(
                "-march=x86-64-v4",
                "-mavx512bf16",
                "-mavx512vbmi",
                "-mavx512vnni",
                "-mamx-tile",
                "-mamx-bf16",
                "-mamx-int8",
            ),
            zig_cflags=("-mcpu=x86_64_v4+avx512bf16+avx512vbmi+avx512vnni+amx_tile+amx_bf16+amx_int8",),
            macs={"f32": 32.0, "bf16": 512.0, "bf16x2": 512.0 / 3, "bf16i8": 512.0},
            l1_bytes=48 * KIB,
            l2_bytes=2048 * KIB,
            source="Sapphire Rapids: TDPBF16PS does 8,192 multiply-adds in 16 cycles; 2 MiB of L2. bf16x2 "
            "takes three of them",
        ),
        CpuTarget(
            name="x86-64-v4-fp16",
            families=("x86-64",),
            vocabulary="cpu_avx512fp16.h",
            lanes=16,
            registers=32,
            cflags=("-march=x86-64-v4", "-mavx512bf16", "-mavx512vbmi", "-mavx512vnni", "-mavx512fp16"),
            zig_cflags=("-mcpu=x86_64_v4+avx512bf16+avx512vbmi+avx512vnni+avx512fp16",),
            macs={"f32": 32.0, "bf16": 16.0, "f32f16": 32.0},
            l1_bytes=48 * KIB,
            l2_bytes=2048 * KIB,
            source="Sapphire Rapids, with or without AMX: two 512-bit FMA a cycle, of fp16, too; "
            "vdpbf16ps takes 2 cycles; 2 MiB of L2. f32f16 is counted in fp32",
        ),
        CpuTarget(
            name="armv8-a",
            families=("aarch64",),
            vocabulary="cpu_neon.h",
            lanes=4,
            registers=32,
            cflags=("-march=armv8-a",),
            zig_cflags=("-mcpu=generic",),
            macs={"f32": 8.0},
            l1_bytes=32 * KIB,
            l2_bytes=512 * KIB,
            source="Cortex-A76, Neoverse N1: two 128-bit FMA a cycle, 512 KiB of L2",
        ),
        CdnaTarget(
            name="gfx90a",
            families=("gfx9", "cdna"),
            compute_units=110,
            xcds=1,
            clock_mhz=1700,
            bandwidth_gbs=1638,
            lds_bytes=64 * KIB,
            lds_banks=32,
            lds_granule=512,
            lds_load_bytes=4,
            l2_bytes=8 * MIB,
            l3_bytes=0,
            macs={"fp32": 128.0, "fp16": 512.0, "bf16": 512.0},
            mfma={
                "fp32": ((32, 32, 2), (16, 16, 4)),
                "fp16": ((32, 32, 8), (16, 16, 16)),
                "bf16": ((32, 32, 8), (16, 16, 16)),
            },
            fp8="",
            matrix_port=4,
            transcendental=16,
            transposing_reads=False,
            bf16_conversions=False,
            code_object_version=4,
            source="One of MI250X's two dies: AMD's CDNA 2 white paper (383 TFLOP/s of fp16 are 1024 FLOP a "
            "cycle and CU, 95.7 of fp32 matrices 256) and data sheet; ROCm's table of GPU specifications; "
            "CDNA 2 ISA; LLVM's AMDGPU backend for what registers and LDS are rounded up to",
        ),
        CdnaTarget(
            name="gfx942",
            families=("gfx9", "cdna"),
            compute_units=304,
            xcds=8,
            clock_mhz=2100,
            bandwidth_gbs=5300,
            lds_bytes=64 * KIB,
            lds_banks=32,
            lds_granule=512,
            lds_load_bytes=4,
            l2_bytes=4 * MIB,
            l3_bytes=256 * MIB,
            macs={"fp32": 128.0, "fp16": 1024.0, "bf16": 1024.0, "fp8": 2048.0},
            mfma={
                "fp32": ((32, 32, 2), (16, 16, 4)),
                "fp16": ((32, 32, 8), (16, 16, 16)),
                "bf16": ((32, 32, 8), (16, 16, 16)),
                "fp8": ((32, 32, 16), (16, 16, 32)),
            },
            fp8="fnuz",
            matrix_port=4,
            transcendental=16,
            transposing_reads=False,
            bf16_conversions=False,
            code_object_version=4,
            source="MI300X: AMD's CDNA 3 white paper (1307.4 TFLOP/s of fp16 are 2048 FLOP a cycle and CU, "
            "2614.9 of fp8 4096, 163.4 of fp32 matrices 256) and data sheet (5.3 TB/s); ROCm's table of GPU "
            "specifications; CDNA 3 ISA for registers, MFMA and E4M3 FNUZ; LLVM as above",
        ),
        CdnaTarget(
            name="gfx950",
            families=("cdna",),
            compute_units=256,
            xcds=8,
            clock_mhz=2400,
            bandwidth_gbs=8000,
            lds_bytes=160 * KIB,
            lds_banks=64,
            lds_granule=1280,
            lds_load_bytes=16,
            l2_bytes=4 * MIB,
            l3_bytes=256 * MIB,
            macs={
                "fp32": 128.0,
                "fp16": 2048.0,
                "bf16": 2048.0,
                "fp8": 4096.0,
                "mxfp8": 4096.0,
                "mxfp4": 8192.0,
            },
            mfma={
                "fp32": ((32, 32, 2), (16, 16, 4)),
                "fp16": ((32, 32, 16), (16, 16, 32), (32, 32, 8), (16, 16, 16)),
                "bf16": ((32, 32, 16), (16, 16, 32), (32, 32, 8), (16, 16, 16)),
                "fp8": ((32, 32, 64), (16, 16, 128), (32, 32, 16), (16, 16, 32)),
                "mxfp8": ((32, 32, 64), (16, 16, 128)),
                "mxfp4": ((32, 32, 64), (16, 16, 128)),
            },
            fp8="ocp",
            matrix_port=8,
            transcendental=8,
            transposing_reads=True,
            bf16_conversions=True,
            code_object_version=5,
            source="MI355X: AMD's CDNA 4 white paper (2.5 PFLOP/s of fp16 are 4096 FLOP a cycle and CU, 5 of "
            "fp8 and mxfp8 8192, 10 of mxfp4 16384, 157.3 TFLOP/s of fp32 matrices 256; MFMA that CDNA 3 has "
            "too reach half of the rate of 8 and 16 bits) and data sheet (8 TB/s); ROCm's table of "
            "specifications; CDNA 4 ISA for registers, MFMA, loads to LDS, ds_read_*_tr_* and OCP's E4M3; "
            "LLVM as above",
        ),
        NvidiaTarget(
            name="sm_90a",
            families=("cuda",),
            vocabulary="sm90.h",
            ptx=80,
            compute_units=132,
            clock_mhz=1830,
            bandwidth_gbs=4800,
            shared_bytes=228 * KIB,
            workgroup_shared_bytes=227 * KIB,
            reserved_shared_bytes=1 * KIB,
            l2_bytes=50 * MIB,
            macs={"fp32": 128.0, "tf32": 1024.0, "fp16": 2048.0, "bf16": 2048.0, "fp8": 4096.0},
            fp8="ocp",
            source="H200 SXM: NVIDIA's data sheet (4.8 TB/s; H100 has 3.35) and white paper of the H100's "
            "architecture (989.4 TFLOP/s of fp16 without sparsity are 4096 FLOP a cycle and SM at 1830 MHz, "
            "1978.9 of fp8 8192, 494.7 of tf32 2048, 66.9 of fp32 256; 50 MB of L2); CUDA C++ Programming "
            "Guide, technical specifications of compute capability 9.0, for registers, warps and shared "
            "memory; Hopper Tuning Guide, 1.4.1, for the KB of it that the system takes of each workgroup; "
            "CUTLASS, cute/arch/mma_sm90_gmma.hpp, for E4M3 as OCP has it",
        ),
    )
}

# What CK's generator takes for its option of the same name.
CK_DEFAULT = ("gfx9", "gfx950")


def host_targets() -> tuple[str, ...]:
    """The CPU targets of this machine's architecture, all of which go into one library."""
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        return _family("x86-64")
    if machine in ("aarch64", "arm64"):
        return _family("aarch64")
    return ("portable",)


def _family(word: str) -> tuple[str, ...]:
    return tuple(target.name for target in TARGETS.values() if word in target.families)


def families() -> list[str]:
    """Words for --targets that stand for several targets."""
    return ["cpu", *dict.fromkeys(word for target in TARGETS.values() for word in target.families)]


FEATURED = re.compile(r"(gfx\w+)(:(sramecc|xnack)[+-])+")


def parse_targets(text: str) -> tuple[str, ...]:
    """The targets of a comma list of names and families, in the order of the pages, each once.

    Features, which ROCm writes behind names, as in gfx90a:xnack-, make no difference: code runs with any.
    """
    chosen: set[str] = set()
    for written in text.split(","):
        featured = FEATURED.fullmatch(written)
        word = featured[1] if featured else written
        if word in TARGETS:
            chosen.add(word)
        elif word == "cpu":
            chosen.update(host_targets())
        elif _family(word):
            chosen.update(_family(word))
        elif word.startswith(("gfx", "sm_")):
            raise Refused(f"target '{written}' has no instances yet; {there_is()}")
        else:
            raise Refused(f"unknown target '{written}'; {there_is()}")
    return tuple(name for name in TARGETS if name in chosen)


def there_is(names: Iterable[str] = TARGETS) -> str:
    """What may be said instead."""
    return f"there is: {', '.join(names)}, and the families {', '.join(families())}"
