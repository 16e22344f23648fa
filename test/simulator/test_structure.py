# SPDX-License-Identifier: MIT
"""How the simulator's sources hang together."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import SIMULATOR
from generate_tables import read_tables


def code(path: Path) -> str:
    """A source without its comments."""
    return re.sub(r"//[^\n]*", "", path.read_text())


def test_names() -> None:
    """What an instruction does is found by its whole name, which no macro makes of pieces.

    One that does what another does names it in its row (`is:`).
    """
    words = {
        word.removeprefix("SIM_OP_")
        for path in (SIMULATOR / "execute").glob("*.c")
        for word in re.findall(r"\w+", code(path))
    }
    readme = (SIMULATOR / "README.md").read_text()
    absent = readme.split("\nNot implemented: ")[1].split("\n\n")[0]
    found = {row.word for row in read_tables(SIMULATOR / "instructions") if row.word not in words}
    assert found == set(re.findall(r"`(\w+)`", absent))
