# SPDX-License-Identifier: MIT
"""Emitted kernels are read by people: formatted, with nothing in them that is not used."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT, run_all
from sampling import sample

from codegen.ops import operations
from codegen.render import HEADERS, expanded


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("emitted")
    assert run_all("-d", ",".join(operations()), "-o", folder).code == 0
    return sorted(folder.glob("*__*.c"))


# What a file defines: functions (inline ones, so that no compiler tells of one that is not called), macros,
# records, constants, arrays in LDS. Some tell the headers that an emitted file includes what it is.
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


def without_comments(text: str) -> str:
    return re.sub("//.*", "", text)


def times_said(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", without_comments(text)))


def test_what_is_defined_is_found() -> None:
    code = (
        "#define BYTES(x) ((x) / 8)\nenum { BM = 1, BN = 2 };\nLDS u32x4 k_tile[BM];\nstruct part {\n};\n"
        "typedef struct x args;\ntypedef struct {\n} operand;\nINLINE struct part *find(int a) {\n}\n"
    )
    assert defined(code) == {"BYTES", "BM", "BN", "k_tile", "part", "args", "operand", "find"}


def test_everything_in_a_file_is_used(kernels: list[Path]) -> None:
    unused: list[tuple[str, str]] = []
    for file in sample(kernels, 400):
        names, counts = (
            defined(without_comments(file.read_text())),
            times_said(expanded(file.read_text(), set())),
        )
        unused += [(file.name, name) for name in sorted(names) if counts[name] < 2]
        assert names
    assert unused == []


def test_everything_in_the_headers_of_phases_is_used(kernels: list[Path]) -> None:
    """Each header is used by some kernel, and each of its definitions by a header or a kernel."""
    texts = [file.read_text() for file in kernels]
    headers = {path: path.read_text() for path in sorted((HEADERS / "device").rglob("*.h"))}
    taken: set[str] = set()
    for text in texts:
        expanded(text, taken)
    assert {str(path.relative_to(HEADERS)) for path in headers} == taken
    counts = times_said("".join([*headers.values(), *texts]))
    unused = {
        (path.name, name)
        for path, text in headers.items()
        for name in defined(without_comments(text))
        if counts[name] < 2
    }
    assert unused == set()


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
