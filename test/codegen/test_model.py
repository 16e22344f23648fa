# SPDX-License-Identifier: MIT
"""The version of the clock's model, what it knows, and the folder that problems are run with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from codegen import Refused
from codegen.model import CLOCK, MODELLED, SIMULATED, make_kit, parameter, version
from codegen.targets import TARGETS, CdnaTarget


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("parameters.def", "P(issue, 4, 4, 4", "P(issue, 4, 4, 5", True),
        ("compute_unit.c", "priority", "priorities", True),
        ("compute_unit.c", "\n//", "\n// something else:", False),
        ("parameters.def", "P(issue, 4,", "P(issue,  4,", False),
        ("annotate.c", "static", "extern", False),
    ],
)
def test_the_version_is_that_of_the_model(
    tmp_path: Path, file: str, old: str, new: str, changes: bool
) -> None:
    folder = tmp_path / "clock"
    shutil.copytree(CLOCK, folder)
    text = (folder / file).read_text()
    assert old in text
    before = version.__wrapped__(folder)
    (folder / file).write_text(text.replace(old, new))
    assert (version.__wrapped__(folder) != before) == changes
    assert before == version()


def test_parameters_are_those_of_targets() -> None:
    for name in MODELLED:
        target = TARGETS[name]
        assert isinstance(target, CdnaTarget) and target.kind == SIMULATED
        assert parameter("lds_kilobytes", name) * 1024 == target.lds_bytes
        assert parameter("clock_mhz", name) == target.clock_mhz


def test_a_kit_is_made_again_where_the_build_is_newer(tmp_path: Path) -> None:
    build, kit = tmp_path / "build", tmp_path / "kit"
    (build / "bin").mkdir(parents=True)
    program = build / "bin" / "program"
    with pytest.raises(Refused, match=r"there is no .*build/bin/program: build it first"):
        make_kit(build, "program", kit, build)
    for file in (program, build / "libtessera.so.3", build / "libtessera_sim.so.3"):
        file.write_text("old")
    make_kit(build, "program", kit, build)
    assert {file.name for file in kit.iterdir()} == {"program", "libtessera.so.3", "libtessera_sim.so.3"}
    program.write_text("new")
    os.utime(program, (1, 1))
    make_kit(build, "program", kit, build)
    assert (kit / "program").read_text() == "new"
