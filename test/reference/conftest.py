# SPDX-License-Identifier: MIT
"""The references as a shared library."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("reference") / "libreference.so"
    sources = [str(source) for source in sorted((ROOT / "test/reference").glob("*.c"))]
    flags = ["-std=c11", "-O2", "-shared", "-fPIC", f"-I{ROOT / 'include'}"]
    subprocess.run([*compiler.split(), *flags, "-o", str(path), *sources, "-lm", "-lpthread"], check=True)
    lib = ctypes.CDLL(str(path))
    for name in ("fp16", "bf16", "e4m3", "e4m3fnuz", "e2m1", "e8m0"):
        integer = ctypes.c_uint16 if name.endswith("16") else ctypes.c_uint8
        decode = getattr(lib, f"element_decode_{name}")
        decode.argtypes, decode.restype = [integer], ctypes.c_double
        if name != "e8m0":
            encode = getattr(lib, f"element_encode_{name}")
            encode.argtypes, encode.restype = [ctypes.c_double], integer
    lib.fmha_fwd_dropout_byte.argtypes = [ctypes.c_uint64] * 2 + [ctypes.c_uint32] * 3
    lib.fmha_fwd_dropout_byte.restype = ctypes.c_uint8
    return lib
