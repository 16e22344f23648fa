# SPDX-License-Identifier: MIT
"""README.md and docs/from-ck.md say what the generator and the pinned wheels say."""

from __future__ import annotations

import re
from pathlib import Path

from codegen.ops import parse_apis
from codegen.ops.fmha_fwd.traits import DTYPES
from codegen.receipts import read_receipts
from codegen.rows import read_instances
from codegen.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def table(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    section = README.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_traits() -> None:
    """Each axis of the generator has a line with exactly its values."""
    (op,) = parse_apis("fwd", "generic")
    listed = {words(row[0])[0]: words(row[1]) for row in table("What is supported")}
    shown = [axis for axis in op.space.axes if len(axis.values) > 1 and axis.name != "pad"]
    assert listed == {axis.name: list(axis.values) for axis in shown}


def test_targets() -> None:
    """Each target has a line with the data types that it has instances for."""
    (op,) = parse_apis("fwd", "simplified")
    served: dict[str, set[str]] = {name: set() for name in TARGETS}
    for instance in read_instances(op, ROOT / "instances", tuple(TARGETS)):
        served[instance.target.name].update(instance.tile.dtypes)
    cells = {words(row[0])[0]: row[1] for row in table("Targets")}
    listed = {name: list(DTYPES) if cell == "all" else words(cell) for name, cell in cells.items()}
    assert listed == {name: [dtype for dtype in DTYPES if dtype in served[name]] for name in TARGETS}


def test_pins() -> None:
    """The table of dependencies has the versions that are installed."""
    pinned: dict[str, str] = {}
    for file in sorted((ROOT / "scripts").glob("requirements-*.in")):
        pinned.update(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", file.read_text(), re.M))
    listed = {row[0]: row[1] for row in table("Dependencies") if row[1][0].isdigit()}
    assert listed == pinned


def test_receipts() -> None:
    """docs/from-ck.md lists the receipts with their numbers."""
    page = (ROOT / "docs/from-ck.md").read_text().split("## Receipts\n", 1)[1].split("\n## ", 1)[0]
    listed: list[tuple[str, str]] = []
    for number, name in re.findall(r"^\| ([\d, ]*) ?\| ([^|]*) \|", page, re.M):
        names = words(name)
        numbers = number.replace(" ", "").split(",") if number.strip() else [""] * len(names)
        listed += zip(numbers, names)
    receipts = read_receipts(ROOT / "instances")
    assert listed == [("" if one.number is None else str(one.number), one.name) for one in receipts]
