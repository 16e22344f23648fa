# SPDX-License-Identifier: MIT
"""README.md and docs/from-ck.md say what the generator and the pinned wheels say."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from codegen.ops import parse_apis
from codegen.ops.fmha_fwd.traits import DTYPES, HDIMS, hdim_word
from codegen.receipts import read_receipts
from codegen.rows import read_instances
from codegen.space import Box, region_meet, region_minus
from codegen.spec import Instance, Operation
from codegen.targets import TARGETS, CdnaTarget, NvidiaTarget, Target

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def table(heading: str, number: int = 0) -> list[list[str]]:
    """The cells of a table under a heading, without its head."""
    section = README.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"(?:^\|.*\n)+", section + "\n", re.M)[number].splitlines()
    cells = [re.split(r"(?<!\\)\|", row[1:-1]) for row in rows[2:]]
    return [[cell.strip().replace("\\|", "|") for cell in row] for row in cells]


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
        for box in instance.region:
            served[instance.target.name].update(op.space.values(box, "dtype"))
    cells = {words(row[0])[0]: row[1] for row in table("Targets")}
    listed = {name: list(DTYPES) if cell == "all" else words(cell) for name, cell in cells.items()}
    assert listed == {name: [dtype for dtype in DTYPES if dtype in served[name]] for name in TARGETS}


def gpu_instances(op: Operation, kind: type[Target] | tuple[type[Target], ...]) -> list[Instance]:
    instances = read_instances(op, ROOT / "instances", tuple(TARGETS))
    return [instance for instance in instances if isinstance(instance.target, kind)]


LAYOUTS = {
    "`r`": ["vlayout=r"],
    "in batch mode `c`": ["vlayout=c mode=batch"],
    "`r`, in batch mode `c`": ["vlayout=r", "vlayout=c mode=batch"],
}


def held_hdims(most: tuple[int, int], multiple: int) -> str:
    """The pairs of head dims that a kernel for the greatest pair takes, of which it pads smaller ones."""
    pairs = [(q, v) for q, v in HDIMS if q <= most[0] and v <= most[1] and q % multiple == v % multiple == 0]
    return "hdim=" + "|".join(hdim_word(*pair) for pair in pairs)


def padded_region(op: Operation, instance: Instance) -> list[Box]:
    """What an instance serves, with the smaller head dims that it pads."""
    tile, hdim = instance.tile, [axis.name for axis in op.space.axes].index("hdim")
    (taken,) = op.space.where(held_hdims((tile.hdim_q, tile.hdim_v), tile.hdim_multiple))
    return [(*box[:hdim], taken[hdim], *box[hdim + 1 :]) for box in instance.region]


def test_gpus() -> None:
    """Some instance serves each entry of the table of GPUs, and none serves more."""
    (op,) = parse_apis("fwd", "generic")
    said: dict[tuple[str, str], list[Box]] = {}
    multiples: dict[tuple[str, str, str], int] = {}
    for dtypes, targets, multiple, most, layouts in table("What is supported", 1):
        pair = [int(side) for side in most.split("x")]
        hdims = held_hdims((pair[0], pair[-1]), int(multiple))
        for dtype, target, limit in itertools.product(words(dtypes), words(targets), LAYOUTS[layouts]):
            multiples[target, dtype, limit[len("vlayout=")]] = int(multiple)
            boxes = op.space.where(f"dtype={dtype} {hdims} {limit}")
            said.setdefault((target, dtype), []).extend(region_meet(op.everything, boxes))
    served: dict[tuple[str, str], list[Box]] = {}
    least: dict[tuple[str, str, str], int] = {}
    for instance in gpu_instances(op, (CdnaTarget, NvidiaTarget)):
        if "ROWS" not in instance.tile.keys_in:
            continue  # keys in caches, of which another table says what there is
        (dtype,) = instance.tile.dtypes
        served.setdefault((instance.target.name, dtype), []).extend(padded_region(op, instance))
        for layout in {value for box in instance.region for value in op.space.values(box, "vlayout")}:
            key = (instance.target.name, dtype, layout)
            least[key] = min(least.get(key, 256), instance.tile.hdim_multiple)
    assert said.keys() == served.keys() and multiples == least
    for pair, boxes in served.items():
        assert not region_minus(said[pair], boxes) and not region_minus(boxes, said[pair]), pair


def test_row_strides() -> None:
    """Any instance for AMD's GPUs takes a stride of less than 8 MB: rows of its blocks are 31-bit offsets."""
    (op,) = parse_apis("fwd", "generic")
    tiles = [instance.tile for instance in gpu_instances(op, CdnaTarget)]
    rows = max(max(tile.bm0, tile.bn0) for tile in tiles)
    assert rows == 256  # and that is the greatest hdim_v
    assert (2**31 - 1) // rows - 4 > 8_000_000
    for document in ("README.md", "docs/devices.md", "include/tessera/fmha_fwd.h"):
        assert "less than 8 MB" in (ROOT / document).read_text().replace("Less", "less"), document


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
