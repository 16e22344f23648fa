# SPDX-License-Identifier: MIT
"""Only vocabularies contain builtins and intrinsics, and kernels are written in vocabularies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include/tessera"
# A vocabulary knows no operation: of ours it includes what lies beside it, and how elements lie in memory.
SHARED = {"tessera/types.h", "tessera/status.h"}


def included(text: str) -> set[str]:
    return set(re.findall(r'#\s*include "([^"]+)"', text))


@pytest.mark.parametrize("header", sorted((HEADERS / "isa").glob("*.h")), ids=lambda path: path.name)
def test_vocabularies_know_no_operation(header: Path) -> None:
    own = {f"tessera/isa/{path.name}" for path in header.parent.glob("*.h")}
    assert included(header.read_text()) <= own | SHARED


def test_what_vocabularies_share_knows_none_either() -> None:
    assert all(included((HEADERS.parent / name).read_text()) <= SHARED for name in SHARED)


def test_kernels_of_nvidia_wait_for_the_launch_before() -> None:
    """A launch of a plan may begin before that has ended, which may have written what the kernel reads."""
    begun = re.compile(r"^KERNEL .*\n(    let_next_launch_begin\(\);\n)?    await_launch_before\(\);$", re.M)
    files = [path for path in (ROOT / "templates").rglob("*.j2") if ".cdna." not in path.name]
    kernels = {path: path.read_text().count("\nKERNEL ") for path in files}
    assert sum(kernels.values()) > 10
    assert {
        path.name for path, count in kernels.items() if len(begun.findall(path.read_text())) != count
    } == set()


def test_builtins_and_intrinsics_stand_in_vocabularies_alone() -> None:
    """Kernels are written in words only."""
    raw = re.compile(r"__builtin_\w+|\b_mm\d*_\w+|\b__asm__\b|\bllvm\.")
    files = [*(ROOT / "templates").rglob("*.j2"), *(HEADERS / "device").rglob("*.h")]
    assert len(files) > 20
    assert {(path.name, name) for path in files for name in raw.findall(path.read_text())} == set()
    assert raw.search((HEADERS / "isa/cdna.h").read_text())
