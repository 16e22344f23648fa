# SPDX-License-Identifier: MIT
"""Emitted kernels are read by people: formatted, with nothing in them that is not used."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, run_all
from sampling import sample


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("emitted")
    assert run_all("-o", folder).code == 0
    return sorted(folder.glob("*__*.c"))


# What a file defines: functions (inline ones, so that no compiler tells of one that is not called), macros,
# records, constants, arrays in LDS.
DEFINED = (
    r"^(?:static )?INLINE [^;{=]*?\b(\w+)\(",
    r"^#define (\w+)",
    r"^struct (\w+) \{",
    r"^typedef [^;{]*?(\w+);",
    r"^\} (\w+);",
    r"^LDS \w+ (\w+)",
)


def defined(code: str) -> set[str]:
    constants = " ".join(re.findall(r"enum \{(.*?)\}", code, re.S))
    found = set(re.findall(r"\b([A-Z]\w*) =", constants))
    return found.union(*(re.findall(form, code, re.M) for form in DEFINED))


def test_what_is_defined_is_found() -> None:
    code = (
        "#define BYTES(x) ((x) / 8)\nenum { BM = 1, BN = 2 };\nLDS u32x4 k_tile[BM];\nstruct part {\n};\n"
        "typedef struct x args;\ntypedef struct {\n} operand;\nINLINE struct part *find(int a) {\n}\n"
    )
    assert defined(code) == {"BYTES", "BM", "BN", "k_tile", "part", "args", "operand", "find"}


def test_everything_in_a_file_is_used(kernels: list[Path]) -> None:
    unused: list[tuple[str, str]] = []
    for file in kernels:
        code = re.sub("//.*", "", file.read_text())
        words = re.findall(r"\w+", code)
        unused += [(file.name, name) for name in sorted(defined(code)) if words.count(name) < 2]
        assert len(defined(code)) > 5
    assert unused == []


def test_no_template_loses_a_blank_line() -> None:
    """Jinja takes the blank lines after a line statement for a part of it: /*% %*/ stands there instead."""
    for template in (ROOT / "templates").rglob("*.j2"):
        assert not re.search(r"//%.*\n\n", template.read_text()), template.name


@pytest.mark.skipif(not shutil.which("clang-format"), reason="no clang-format")
def test_files_are_formatted(kernels: list[Path]) -> None:
    style = f"--style=file:{ROOT / '.clang-format'}"
    command = ["clang-format", style, "--dry-run", "-Werror", *map(str, sample(kernels, 60))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
