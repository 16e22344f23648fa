# SPDX-License-Identifier: MIT
"""What the build has made of emitted files, so that tests need not compile the same again."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from codegen.spec import ROOT

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))


@functools.cache
def entry(name: str) -> str:
    """What the build's cache says, or "" where there is none."""
    cache = BUILD / "CMakeCache.txt"
    lines = cache.read_text().splitlines() if cache.exists() else []
    return next((line.partition("=")[2] for line in lines if line.startswith(f"{name}:")), "")


@functools.cache
def newest_header() -> float:
    return max(header.stat().st_mtime for header in (ROOT / "include").rglob("*.h"))


def find(file: str, source: str, text: str) -> Path | None:
    """The build's `file`, if it is made of an emitted `source` with this text and of these headers."""
    made, emitted = BUILD / file, BUILD / "generated" / source
    if entry("CMAKE_HOME_DIRECTORY") != str(ROOT) or not made.exists() or not emitted.exists():
        return None
    newest = max(emitted.stat().st_mtime, newest_header())
    return made if emitted.read_text() == text and made.stat().st_mtime >= newest else None


def find_code(name: str, arch: str, text: str) -> Path | None:
    """The code object of an instance for AMD's GPUs, by the clang of the ziglang wheel."""
    return None if entry("TESSERA_CLANG") else find(f"device/{arch}/{name}.co", f"{name}.c", text)


def find_object(name: str, compiler: str, text: str) -> Path | None:
    """The object of an instance for CPUs as that compiler makes it for a release."""
    if entry("TESSERA_SANITIZE") or entry("CMAKE_BUILD_TYPE") != "Release":
        return None
    if os.path.realpath(entry("CMAKE_C_COMPILER")) != os.path.realpath(compiler):
        return None
    return find(f"CMakeFiles/tessera_objects.dir/generated/{name}.c.o", f"{name}.c", text)
