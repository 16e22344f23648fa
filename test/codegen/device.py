# SPDX-License-Identifier: MIT
"""Code objects and PTX for tests, by the clang of the ziglang wheel."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import built
import pytest

from codegen.spec import ROOT
from codegen.targets import TARGETS, NvidiaTarget


def ziglang() -> Path:
    """The wheel's folder."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no ziglang: pip install ziglang")
    return Path(next(iter(spec.submodule_search_locations)))


def compile_object(text: str, out: Path, arch: str = "gfx942", *flags: str) -> Path:
    """Compiles a C source, which may include the vocabulary, to a code object, if the build has not."""
    zig = ziglang()
    if not flags and (made := built.find_code(out.stem, arch, text)):
        return Path(shutil.copy(made, out))
    source, compiled = out.with_suffix(".c"), out.with_suffix(".o")
    source.write_text(text)
    compile_ = [
        zig / "zig", "clang", "-nostdinc", "-isystem", zig / "lib/include", "-x", "c", "-std=c11",
        "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", "-ffreestanding", "-O3", *flags,
        f"-I{ROOT / 'include'}", "-c", source, "-o", compiled,
    ]  # fmt: skip
    subprocess.run(compile_, check=True)
    subprocess.run([zig / "zig", "ld.lld", "-shared", compiled, "-o", out], check=True)
    return out


def compile_ptx(text: str, out: Path, *flags: str) -> Path:
    """Compiles a CUDA source, which may include the vocabulary, to PTX."""
    zig = ziglang()
    source = out.with_suffix(".c")
    source.write_text(text)
    page = TARGETS["sm_90a"]
    assert isinstance(page, NvidiaTarget)
    compile_ = [
        zig / "zig", "clang", "-nostdinc", "-isystem", zig / "lib/include", "-x", "cuda", "-std=c++17",
        "--cuda-device-only", "-nocudainc", "-nocudalib", "-Wno-unknown-cuda-version", "-ffreestanding",
        "-O3", "-ffp-contract=fast-honor-pragmas", *page.cflags, *flags,
        f"-I{ROOT / 'include'}", "-S", source, "-o", out,
    ]  # fmt: skip
    subprocess.run(compile_, check=True)
    return out


def find_ptxas() -> str:
    """A ptxas, or "" where there is none."""
    places = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/cuda/bin"))
    return os.environ.get("TESSERA_PTXAS") or shutil.which("ptxas", path=places) or ""
