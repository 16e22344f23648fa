# SPDX-License-Identifier: MIT
"""Rules for the dependencies between the runtime's files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from circles import circle

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
FOLDER = BUILD / "CMakeFiles/tessera_objects.dir"
OBJECTS = [
    file
    for file in FOLDER.rglob("runtime/**/*.o")
    if (ROOT / file.relative_to(FOLDER)).with_suffix("").exists()
]


@pytest.mark.skipif(not OBJECTS or not shutil.which("nm"), reason=f"no objects in {BUILD}, or no nm")
def test_files_need_one_another_in_one_direction() -> None:
    assert circle(OBJECTS) == []


@pytest.mark.skipif(not shutil.which("cc") or not shutil.which("nm"), reason="needs cc and nm")
def test_a_circle_is_found(tmp_path: Path) -> None:
    calls = {"a": "b", "b": "c", "c": "b"}
    for name, called in calls.items():
        (tmp_path / f"{name}.c").write_text(f"void {called}(void); void {name}(void) {{ {called}(); }}")
        subprocess.run(["cc", "-c", f"{name}.c"], cwd=tmp_path, check=True)
    assert set(circle(tmp_path / f"{name}.o" for name in calls)) == {"b", "c"}
    assert circle(tmp_path / f"{name}.o" for name in "ab") == []


def test_no_operation_is_named() -> None:
    """Only files of their own name operations; all others go over lists of them."""
    headers = [
        header
        for header in (ROOT / "include/tessera").glob("*.h")
        if "\nTESSERA_CALLS(" in header.read_text()
    ]
    named = re.compile("|".join(header.stem for header in headers))
    for folder in ("", "device", "op"):
        for file in (ROOT / "runtime" / folder).glob("*.[ch]"):
            assert not named.search(re.sub(r"//.*", "", file.read_text())), file
