# SPDX-License-Identifier: MIT
"""Fixtures and functions that the generator's tests share."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import generate

ROOT = Path(generate.__file__).parent
ALL_TARGETS = "portable,x86-64,aarch64,cdna,cuda"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write test/codegen/golden anew, to be reviewed"
    )


@dataclass
class Result:
    """What a call of the generator did."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def run(*arguments: object) -> Result:
    """Calls the generator in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = generate.main([str(argument) for argument in arguments])
    return Result(code, out.getvalue(), err.getvalue())


def run_all(*arguments: object) -> Result:
    """Calls the generator for every target."""
    return run("--targets", ALL_TARGETS, *arguments)


def refused(*arguments: object) -> str:
    """The one line on stderr of a call that must be refused."""
    result = run(*arguments)
    assert result.code == 1, result
    assert result.out == ""
    assert result.err.endswith("\n") and result.err.count("\n") == 1, result.err
    assert result.err.startswith("generate.py: ")
    return result.err[len("generate.py: ") : -1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the generator that a test may change."""
    root = tmp_path / "checkout"
    folders = ("codegen", "templates", "instances", "include", "runtime", "cmake", "simulator/instructions")
    for folder in folders:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("generate.py", "CMakeLists.txt"):
        shutil.copy(ROOT / file, root)
    return root


def run_in(root: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Calls the generator of a checkout."""
    command = [sys.executable, str(root / "generate.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def times(folder: Path) -> dict[str, int]:
    """When every file of a folder was last written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
