# SPDX-License-Identifier: MIT
"""Compilers for the simulator's tests: device code by ziglang or a clang at hand, host code by ziglang."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

DEVICE_FLAGS = (
    "-x c --target=amdgcn-amd-amdhsa -nogpulib -ffreestanding -nostdinc -fwrapv "
    "-ffp-contract=off -fno-strict-aliasing -w"
).split()
HIP_FLAGS = (
    "-x hip --cuda-device-only -nogpuinc -nogpulib -ffreestanding -fwrapv "
    "-ffp-contract=off -fno-strict-aliasing -w -Wno-c++11-narrowing"
).split()
HOST_FLAGS = (
    "-x c -shared -fPIC -O1 -DHOST -fwrapv -ffp-contract=off -fno-strict-aliasing -fno-sanitize=all -w "
    "-Xclang -ffloat16-excess-precision=none"
).split()


class CompileError(Exception):
    """A compiler's complaint."""


def _ziglang() -> Path | None:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


ZIGLANG = _ziglang()


@dataclass(frozen=True)
class Compiler:
    """A clang that compiles device code."""

    name: str
    command: tuple[str, ...]
    archs: tuple[str, ...]
    hip: bool = False  # it knows kernels only in HIP


def compilers() -> list[Compiler]:
    """All clangs at hand that know our targets; ziglang's first."""
    found = []
    archs: tuple[str, ...] = ("gfx90a", "gfx942", "gfx950")
    if ZIGLANG:
        headers = ("-isystem", str(ZIGLANG / "lib/include"))
        found.append(Compiler("ziglang", (str(ZIGLANG / "zig"), "clang", *headers), archs))
    for version in range(14, 22):
        path = shutil.which(f"clang-{version}")
        if path:
            known = 3 if version >= 20 else 2 if version >= 17 else 1
            found.append(Compiler(f"clang-{version}", (path,), archs[:known], hip=version < 17))
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise CompileError(" ".join(command) + "\n" + done.stderr)


def build_device(compiler: Compiler, source: Path, arch: str, flags: list[str], output: Path) -> bytes:
    """A linked code object."""
    assert ZIGLANG is not None
    made, assembly = output.with_suffix(".o"), output.with_suffix(".s")
    if compiler.hip:
        to_assembly = [f"--offload-arch={arch}", *flags, "-S", str(source), "-o", str(assembly)]
        _run([*compiler.command, *HIP_FLAGS, *to_assembly])
        assembler = ["-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}"]
        _run([*compiler.command, *assembler, "-c", str(assembly), "-o", str(made)])
        assembly.unlink()
    else:
        _run([*compiler.command, *DEVICE_FLAGS, f"-mcpu={arch}", *flags, "-c", str(source), "-o", str(made)])
    _run([str(ZIGLANG / "zig"), "ld.lld", "-shared", str(made), "-o", str(output)])
    made.unlink()
    return output.read_bytes()


ASSEMBLY = """
.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
.text
.globl kernel
.p2align 8
.type kernel,@function
kernel:
{text}
.rodata
.p2align 6
.amdhsa_kernel kernel
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr {vgprs}
  .amdhsa_next_free_sgpr 96
  .amdhsa_accum_offset {accum_offset}
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_kernarg_size {kernarg}
  .amdhsa_private_segment_fixed_size {private}
  {directives}
.end_amdhsa_kernel
.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: kernel
    .symbol: kernel.kd
    .kernarg_segment_size: {kernarg}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: {private}
    .wavefront_size: 64
    .sgpr_count: 96
    .vgpr_count: {vgprs}
    .max_flat_workgroup_size: 1024
    {metadata}
.end_amdgpu_metadata
"""


def assemble(
    text: str,
    arch: str,
    output: Path,
    *,
    vgprs: int = 64,
    accum_offset: int = 64,
    lds: int = 0,
    kernarg: int = 8,
    private: int = 0,
    directives: str = "",
    metadata: str = "",
) -> bytes:
    """A linked code object with one kernel, `kernel`: its arguments are at s[0:1], its work-item id in v0.

    `directives` are further lines of its descriptor, `metadata` of its metadata.
    """
    assert ZIGLANG is not None
    source, made = output.with_suffix(".s"), output.with_suffix(".o")
    names = {"arch": arch, "vgprs": vgprs, "accum_offset": accum_offset, "lds": lds, "kernarg": kernarg}
    more = {"private": private, "directives": directives, "metadata": metadata}
    source.write_text(ASSEMBLY.format(text=text, **more, **names))
    target = ["--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-mcode-object-version=5"]
    _run([str(ZIGLANG / "zig"), "clang", "-x", "assembler", *target, "-c", str(source), "-o", str(made)])
    _run([str(ZIGLANG / "zig"), "ld.lld", "-shared", str(made), "-o", str(output)])
    return output.read_bytes()


def build_host(source: Path, output: Path) -> Path:
    """The same source as a shared library for this machine, with HOST defined."""
    assert ZIGLANG is not None
    _run([str(ZIGLANG / "zig"), "cc", *HOST_FLAGS, str(source), "-o", str(output), "-lm"])
    return output
