# SPDX-License-Identifier: MIT
"""Applies docs/extending.md to a copy of the tree, section by section, to test that it is correct."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from codegen.ops.fmha_fwd.cdna import CdnaTile
from codegen.ops.fmha_fwd.cpu import CpuTile
from codegen.ops.fmha_fwd.cuda import CudaTile

PAGE = (ROOT / "docs" / "extending.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
BLOCK = re.compile(r"^```(\w+)(?: (new|append)=(\S+))?\n(.*?)^```$", re.M | re.S)


def test_the_page_has_its_sections() -> None:
    things = "instance", "receipt", "target", "kind of target", "data type", "operation"
    assert list(SECTIONS) == [f"An {thing}" if thing[0] in "aeiou" else f"A {thing}" for thing in things]


def test_every_field_of_a_row_has_its_line() -> None:
    listed = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", SECTIONS["An instance"], re.M)
    records = [CpuTile, CdnaTile, CudaTile]
    fields = {"targets"} | {field.name for record in records for field in dataclasses.fields(record)}
    assert {name for cell in listed for name in re.findall(r"\w+", cell)} == fields


SIMULATOR = Path(
    os.environ.get("TESSERA_SIM_LIBRARY")
    or Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "libtessera_sim.so"
)


def lacks(command: str) -> str:
    """What a command needs and this machine lacks."""
    if command.startswith("cmake") and not (shutil.which("cmake") and shutil.which("ninja")):
        return "cmake or ninja"
    if command.startswith("cmake") and not importlib.util.find_spec("ziglang"):
        return "a compiler of GPU instances"
    return f"{SIMULATOR}" if " sim:" in command and not SIMULATOR.exists() else ""


def words_of(command: str, folder: Path) -> list[str]:
    """A command's words as a shell has them in a folder, with this Python."""
    for begin, of_this in (("python ", "{} "), ("cmake -B ", "cmake -DTESSERA_PYTHON={} -B ")):
        if command.startswith(begin):
            command = of_this.format(sys.executable) + command[len(begin) :]
    words = [sorted(map(str, folder.glob(word))) if "*" in word else [word] for word in shlex.split(command)]
    return [*itertools.chain.from_iterable(words)]


@pytest.mark.skipif(not shutil.which("cc") or not shutil.which("git"), reason="needs cc and git")
@pytest.mark.parametrize("section", SECTIONS)
def test_a_section(section: str, checkout: Path) -> None:
    commands = 0
    environment = {**os.environ, "TESSERA_SIM_LIBRARY": str(SIMULATOR)}
    for language, way, file, text in BLOCK.findall(SECTIONS[section]):
        if way == "new":
            (checkout / file).parent.mkdir(parents=True, exist_ok=True)
            assert not (checkout / file).exists()
            (checkout / file).write_text(text)
        elif way == "append":
            (checkout / file).write_text((checkout / file).read_text() + text)
        elif language == "diff":
            apply = ["git", "apply", "--recount", "-C1", "-"]
            subprocess.run(apply, input=text, text=True, cwd=checkout, check=True)
        elif language == "sh":
            for command in text.splitlines():
                commands += 1
                if missing := lacks(command):
                    pytest.skip(f"there is no {missing}")
                words = words_of(command, checkout)
                done = subprocess.run(
                    words, cwd=checkout, capture_output=True, text=True, check=False, env=environment
                )
                assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert commands


@pytest.mark.parametrize(
    "name", re.findall(r"`((?:codegen|instances|templates|include|runtime|test|docs)/[\w./]+)`", PAGE)
)
def test_named_files_exist(name: str) -> None:
    assert (ROOT / name).exists()
