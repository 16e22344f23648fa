# SPDX-License-Identifier: MIT
"""Modelled times: an operation's program, asked for what the simulator's clock says of one of its problems.

docs/simulator.md describes the clock. What makes its results what they are has a version.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from functools import lru_cache
from pathlib import Path

from codegen import Refused
from codegen.spec import ROOT

CLOCK = ROOT / "simulator" / "clock"
SHOWING = ("annotate", "table", "timeline")  # files with such names show results, and do not change them
MODELLED = ("gfx90a", "gfx942", "gfx950")  # in the order of the table's columns
SIMULATED = "cdna"  # the kind of targets that it knows
ONCE = ("-v=0", "-sample=1")  # of a problem's arguments: only what the clock looks at is executed


@lru_cache
def version(folder: Path = CLOCK) -> str:
    """The version of the clock's model: a hash of its parameters and code, without comments and blanks."""
    hasher = hashlib.blake2b(digest_size=5)
    for file in sorted(folder.iterdir()):
        if file.suffix in (".c", ".h", ".def") and not file.name.startswith(SHOWING):
            plain = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*', r"\1", file.read_text(encoding="utf-8"))
            hasher.update(f"{file.name}\0{''.join(plain.split())}\0".encode())
    return hasher.hexdigest()


def parameter(name: str, target: str) -> int:
    """What the clock knows of a target by some name."""
    table = (CLOCK / "parameters.def").read_text(encoding="utf-8")
    row = re.search(rf"^P\({name}, (\d+), (\d+), (\d+),", table, re.MULTILINE)
    assert row, name
    return int(row[1 + MODELLED.index(target)])


def make_kit(build: Path, program: str, folder: Path, simulator: Path) -> None:
    """Copies into a folder what problems are run with: a build's program and library, and a simulator.

    Such a folder can be sent to another machine, and stays as it is when a build goes on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in (
        build / "bin" / program,
        _library(build, "libtessera"),
        _library(simulator, "libtessera_sim"),
    ):
        if not file.exists():
            raise Refused(f"there is no {file}: build it first")
        if not _is_copy(folder / file.name, file):
            shutil.copy2(file, folder / file.name)


def _library(build: Path, name: str) -> Path:
    """By the name that programs and the library load it by."""
    return next(iter(build.glob(f"{name}.so.[0-9]")), build / f"{name}.so.0")


def _is_copy(copy: Path, file: Path) -> bool:
    one, other = file.stat(), copy.stat() if copy.exists() else None
    return other is not None and (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
