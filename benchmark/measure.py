#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures a GPU of AMD beside what the simulator's clock (docs/simulator.md) models, as tables in Markdown.

    python benchmark/measure.py --build build hip:0

runs the micro-kernels of test/simulator/measured.py on the GPU through its HIP runtime, which it opens by
itself, and a few problems of fmha_fwd by the library. Cycles are differences of s_memtime, milliseconds those
of HIP's events. The build needs the instances of the GPU's target and the simulator; scripts/measure_gpu.sh
makes one.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test" / "simulator"), str(ROOT)]

from gpu_micro_kernels import GpuMicroKernels, elapsed_ms, for_target  # noqa: E402
from hip import Hip  # noqa: E402
from library import Call, Refused, Tessera  # noqa: E402
from measured import KERNELS  # noqa: E402
from micro_kernels import MicroKernels  # noqa: E402
from sim import ARCHS  # noqa: E402

from benchmark.model import run_program  # noqa: E402

RUNTIMES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so")
NAME_BYTES = 256
DRAWN = 1 << 15  # numbers that are drawn, and repeated
WARMUP, BURSTS, BURST_MS = 5, 5, 100  # calls before timing; bursts that are timed, and how long each lasts


@dataclass(frozen=True)
class Problem:
    """Attention in bf16, batch 1."""

    heads: int
    length: int
    hdim: int
    causal: bool

    def __str__(self) -> str:
        return f"h{self.heads} s{self.length} d{self.hdim}{' causal' if self.causal else ''}"

    @property
    def flops(self) -> float:
        """As papers count them: half where the mask is causal."""
        return 4 * self.heads * self.length**2 * self.hdim / (2 if self.causal else 1)


FULL = [
    *(Problem(64, length, 128, causal) for length in (1024, 4096, 16384) for causal in (False, True)),
    *(Problem(64, 4096, 64, causal) for causal in (False, True)),
]
QUICK = [Problem(1, 256, 128, False)]


def open_hip() -> Hip:
    """The HIP runtime, as the library finds it."""
    named = os.environ.get("TESSERA_HIP_LIBRARY")
    for name in [named] if named else RUNTIMES:
        try:
            return Hip(Path(name))
        except OSError as error:
            last = error
    sys.exit(f"no HIP runtime: {last}; TESSERA_HIP_LIBRARY names another one")


def target_of(tessera: Tessera) -> str:
    """Which of the clock's targets the device is."""
    tessera.library.tessera_target_string.restype = ctypes.c_char_p
    size = ctypes.sizeof(ctypes.c_size_t)
    targets = ctypes.c_uint32.from_address(int(tessera.facts.value or 0) + size).value
    names = [tessera.library.tessera_target_string(t).decode() for t in range(32) if targets >> t & 1]
    for name in names:
        if name in ARCHS:
            return name
    sys.exit(f"a device for {', '.join(names)}: the clock models {', '.join(ARCHS)}")


def said(*words: str) -> str:
    """What a command prints; "" where it fails or is not there."""
    try:
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def driver_version() -> str:
    """Of the kernel's module, where it says that."""
    file = Path("/sys/module/amdgpu/version")
    return file.read_text().strip() if file.exists() else "not known"


# ---- micro-kernels


def number(value: float | None) -> str:
    """A cell."""
    return "" if value is None else f"{value:.1f}"


def micro_rows(hip: Hip, arch: str, library: Path, match: str) -> Iterator[str]:
    """Lines of the table."""
    adapted = [(kernel, for_target(kernel, arch)) for kernel in KERNELS if re.search(match, kernel.name)]
    kernels = [found for _, found in adapted if found]
    with tempfile.TemporaryDirectory() as folder:
        gpu = GpuMicroKernels(hip, arch, Path(folder), kernels)
        clock = MicroKernels(arch, library, Path(folder), kernels)
        yield f"clock with one wave at work: {gpu.clock_mhz():.0f} MHz"
        yield ""
        yield "| micro-kernel | measured | modelled | published | source of that |"
        yield "|---|---|---|---|---|"
        for kernel in kernels:
            published = kernel.cycles if arch in kernel.archs else None
            cells = [number(c) for c in (gpu.cycles(kernel), clock.cycles(kernel), published)]
            yield f"| {kernel.name} | {' | '.join(cells)} | {kernel.source if published else ''} |"


# ---- attention


def make_call(tessera: Tessera, hip: Hip, problem: Problem) -> Call:
    """Its tensors lie as b*h*s*d and are normally distributed: a GPU's clock depends on that."""
    heads, length, hdim = problem.heads, problem.length, problem.hdim
    count = heads * length * hdim
    draw = random.Random(problem.length)
    drawn = b"".join(struct.pack("<f", draw.gauss(0, 1))[2:] for _ in range(min(count, DRAWN)))
    q, k, v, o = (hip.upload(drawn * (count // DRAWN or 1)) for _ in range(4))
    mask = tessera.value("mask", "top_left" if problem.causal else "no")
    traits = {"hdim_q": hdim, "hdim_v": hdim, "is_v_rowmajor": 1, "mask_type": mask}
    sizes = {"batch": 1, "nhead_q": heads, "nhead_k": heads, "seqlen_q": length, "seqlen_k": length}
    strides = {f"stride_{x}": hdim for x in "qkvo"} | {f"nhead_stride_{x}": length * hdim for x in "qkvo"}
    args = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "o_ptr": o, "hdim_q": hdim, "hdim_v": hdim, "mask_type": mask}
    args |= sizes | strides | {"scale_s": hdim**-0.5, "max_seqlen_q": length}
    args["window_size_right"] = 0 if problem.causal else -1
    call = Call(tessera, "fmha_fwd", traits | {"data_type": tessera.value("fmha_dtype", "bf16")}, args)
    workspace = call.workspace_bytes()
    call.set_workspace(hip.make("Malloc", max(workspace, 1)), workspace)
    return call


def time_call(hip: Hip, call: Call) -> float:
    """Milliseconds: the median of bursts."""
    begin, end = hip.make("EventCreate"), hip.make("EventCreate")

    def burst(count: int) -> float:
        hip.check("EventRecord", begin, 0)
        for _ in range(count):
            call()
        hip.check("EventRecord", end, 0)
        return elapsed_ms(hip, begin, end) / count

    first = burst(WARMUP)
    count = max(1, min(1000, int(BURST_MS / first)))
    return statistics.median(burst(count) for _ in range(BURSTS))


def modelled(build: Path, arch: str, problem: Problem, instance: str) -> dict[str, float]:
    """What the clock says of the problem by that instance."""
    sizes = ["-b=1", f"-h={problem.heads}", f"-s={problem.length}", f"-d={problem.hdim}"]
    mask = f"-mask={'t' if problem.causal else '0'}"
    asked = [f"-device=sim:{arch}", "-prec=bf16", *sizes, mask, f"-instance={instance}"]
    return dict(run_program(build, "fmha_fwd", asked)["simulation"]["modelled"])


def attention_rows(hip: Hip, tessera: Tessera, build: Path, problems: Sequence[Problem]) -> Iterator[str]:
    """Lines of the table."""
    arch = target_of(tessera)
    columns = (
        "| bf16 attention | instance | measured ms | TFLOP/s | modelled ms | Mcycles | clock these imply |"
    )
    yield columns
    yield "|---|---|---|---|---|---|---|"
    for problem in problems:
        call = make_call(tessera, hip, problem)
        try:
            instance = call.prepare()
        except Refused as refused:
            yield f"| {problem} | {refused} | | | | | |"
            continue
        ms = time_call(hip, call)
        model = modelled(build, arch, problem, instance)
        rate, implied = problem.flops / ms / 1e9, model["cycles"] / ms / 1e3
        times = f"{ms:.3f} | {rate:.0f} | {model['time']:.3f} +-{model['band']:.3f}"
        short = instance.split("__")[1]
        yield f"| {problem} | `{short}` | {times} | {model['cycles'] / 1e6:.2f} | {implied:.0f} MHz |"
        for name in ("q_ptr", "k_ptr", "v_ptr", "o_ptr", "workspace_ptr"):
            hip.check("Free", getattr(call.args, name))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("device", nargs="?", default="hip:0")
    parser.add_argument("--build", type=Path, required=True, help="a build with the GPU's instances")
    parser.add_argument("--match", default="", help="only micro-kernels whose names match this")
    parser.add_argument("--quick", action="store_true", help="one small problem of attention")
    arguments = parser.parse_args()
    hip, tessera = open_hip(), Tessera(arguments.build, arguments.device)
    arch = target_of(tessera)
    ordinal = int(arguments.device.split(":")[1])
    hip.check("SetDevice", ordinal)
    name = ctypes.create_string_buffer(NAME_BYTES)
    hip.check("DeviceGetName", name, NAME_BYTES, ordinal)
    commit = said("git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*")
    print(f"{name.value.decode()}, {arch}, HIP {hip.make('RuntimeGetVersion')}, driver {driver_version()}")
    print(f"Tessera {commit or 'not known'}; measured is measured here, modelled is not measured\n")
    library = next(iter(arguments.build.glob("libtessera_sim.so*")))
    for line in micro_rows(hip, arch, library, arguments.match):
        print(line, flush=True)
    print()
    for line in attention_rows(hip, tessera, arguments.build, QUICK if arguments.quick else FULL):
        print(line, flush=True)
    tessera.close()


if __name__ == "__main__":
    main()
