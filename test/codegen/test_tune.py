# SPDX-License-Identifier: MIT
"""--tune and --rank: what is tried, what is refused, what comes of modelled cycles. Nothing is built here."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT, run

from codegen import tune
from codegen.model import version
from codegen.ops import operations
from codegen.receipts import find_receipt, read_receipts
from codegen.rows import read_instances
from codegen.select import Request, Selection, select
from codegen.spec import Instance
from codegen.workshop import Workshop

FWD = operations()["fwd"]
TILE = "fmha_fwd_d128_bf16__gfx942_b128x64x128_w4_qr"
WHERE = "dtype=bf16 hdim=128 vlayout=r access=16"
# Says that a kernel takes as many cycles as a file beside it has for its name, and which results are wrong.
PROGRAM = """#!/bin/sh
for word; do
    case $word in
    -jsonfile=*) file=${word#*=} ;;
    -instance=*) instance=${word#*=} ;;
    -v=0) verify=no ;;
    -pack=*) [ -e "${word#*=}" ] || exit 4 ;;
    esac
done
cycles=$(sed -n "s/^$instance //p" cycles)
verification=pass
[ "$verify" = no ] || ! grep -q "^$instance wrong" wrong || verification=fail
echo "{\\"verification\\": \\"$verification\\",
    \\"simulation\\": {\\"modelled\\": {\\"cycles\\": ${cycles:-1000}}}}" > "$file"
"""


def choose(where: str, targets: tuple[str, ...] = ("gfx942",)) -> Selection:
    folder = ROOT / "instances"
    request = Request(find_receipt(read_receipts(folder), "all"), "-1", where)
    return select(FWD, read_instances(FWD, folder, targets), request, {"fwd": "*"})


def search(where: str) -> tuple[list[tune.Search], Counter[str]]:
    refusals: Counter[str] = Counter()
    return list(tune.find_searches(choose(where), refusals)), refusals


def test_all_that_fits_is_tried() -> None:
    (found,), refusals = search(f"{WHERE} pipeline=qr")
    names = [candidate.name for candidate in found.candidates]
    assert len(names) == len(set(names)) and TILE in names
    there = {instance.name for instance in found.there}
    assert there <= set(names) and any("qr_async" in name for name in there)
    assert all(not candidate.tile.complaint(candidate.target) for candidate in found.candidates)
    shapes = {(one.tile.bm0, one.tile.bn0, one.tile.occupancy) for one in found.candidates}
    assert {(128, 64, 2), (128, 32, 1), (256, 64, 2), (32, 32, 1)} <= shapes
    assert any("chunks, no power of #" in reason for reason in refusals)
    assert {one.region for one in found.candidates} == {found.there[0].region}
    assert (
        all("# bytes of LDS" in reason or "#" in reason for reason in refusals)
        and sum(refusals.values()) > 100
    )


def test_targets_and_what_is_served_are_searched_apart() -> None:
    searches = list(tune.find_searches(choose("dtype=bf16 hdim=64|128", ("gfx942", "gfx950")), Counter()))
    words = [found.words for found in searches]
    assert {" ".join(text.split()[:1] + text.split()[3:]) for text in words} == {
        f"{target} d={d} d_v={d} vlayout={v}"
        for target in ("gfx942", "gfx950")
        for d in (64, 128)
        for v in "rc"
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--tune --targets gfx942", "--tune needs --build, a folder that CMake builds in, and --shapes"),
        ("--rank --targets gfx942 --build x", "--rank needs --build"),
        ("--tune --targets gfx942 --build x --shapes ;", "--shapes names no problem, such as 'b=1"),
        ("--tune --targets gfx942 --build x --shapes b=1;-h=2", "--shapes: '-h=2' is not of the form"),
        ("--tune --targets x86-64-v3 --build x --shapes s=1", "x86-64-v3: the simulator's clock knows"),
        ("--rank --targets x86-64-v3 --build x --shapes s=1", "x86-64-v3: the simulator's clock knows"),
        ("--rank --targets gfx942 --build x --shapes s=1", "there is no x/bin/tile_example_fmha_fwd: b"),
        ("--tune --targets gfx942 --build x --shapes s=1 --where hdim=32", "x is no build folder: it has no"),
        ("--rank -d smoothquant --targets gfx942 --build x --shapes m=1", "problems of smoothquant are not"),
        ("--tune --rank --targets gfx942", "--tune and --rank exclude each other"),
    ],
)  # fmt: skip
def test_refusals(arguments: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*(word.replace(";", " ; ") for word in arguments.split()))
    assert result.code == 1 and says in result.err.splitlines()[-1], result.err


class Bench:
    """A build whose kernels are names, and whose simulator is a table."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.build = folder / "build"
        self.wrong: list[str] = []
        self.spilling: dict[str, str] = {}
        self.cycles: dict[str, int] = {}
        monkeypatch.setattr(Workshop, "make", lambda shop, instances: self.make(shop, instances))  # noqa: PLW0108

    def make(self, shop: Workshop, instances: list[Instance]) -> dict[str, str]:
        shop.kit.mkdir(parents=True, exist_ok=True)
        (shop.kit / "packs").mkdir(exist_ok=True)
        (shop.kit / "tile_example_fmha_fwd").write_text(PROGRAM)
        (shop.kit / "cycles").write_text("".join(f"{name} {n}\n" for name, n in self.cycles.items()))
        (shop.kit / "wrong").write_text("".join(f"{name} wrong\n" for name in self.wrong))
        for instance in instances:
            if instance.name not in self.spilling:
                shop.object_of(instance).parent.mkdir(parents=True, exist_ok=True)
                shop.object_of(instance).write_text(instance.name)
                (shop.kit / "packs" / f"{instance.name}.pack").touch()
        return self.spilling

    def tune(self) -> tuple[str, str]:
        where = f"{WHERE} pipeline=qr bm0=128"
        result = run(
            "--tune", "--targets", "gfx942", "--where", where, "--build", self.build, "--shapes", "b=1 s=9"
        )
        assert result.code == 0, result.err
        return result.out, result.err


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


FAST = "fmha_fwd_d128_bf16__gfx942_b64x64x128_w2_qr_o1"


def rows_of(out: str, tmp_path: Path) -> list[Instance]:
    """Proposed rows, read behind the defaults of this checkout."""
    text = (ROOT / "instances" / "fmha_fwd.toml").read_text()
    (tmp_path / "fmha_fwd.toml").write_text(text[: text.index("[[tile]]")] + out)
    return read_instances(FWD, tmp_path, ("gfx942",))


def test_the_fastest_becomes_a_row(bench: Bench, tmp_path: Path) -> None:
    bench.cycles = {FAST: 700, TILE: 900}
    out, _ = bench.tune()
    (row,) = rows_of(out, tmp_path)
    assert row.name == FAST
    assert row.tile.why == f"modelled ({version()}): b=1 s=9: 700 cycles, 22 % less than {TILE}"
    assert re.search(rf"^# +700  {FAST}$", out, re.MULTILINE) and f"900  {TILE} (there)\n" in out


def test_what_is_there_may_be_the_fastest(bench: Bench, tmp_path: Path) -> None:
    bench.cycles = {FAST: 990, TILE: 1000}
    assert rows_of(bench.tune()[0], tmp_path) == []  # 1 % is too little


def test_wrong_results_are_no_row(bench: Bench, tmp_path: Path) -> None:
    bench.cycles, bench.wrong = {FAST: 700}, [FAST]
    out, err = bench.tune()
    assert rows_of(out, tmp_path) == [] and err.count(f"-instance={FAST}") == 2 and ": wrong\n" in err


def test_what_cannot_be_built_is_counted(bench: Bench, tmp_path: Path) -> None:
    bench.cycles, bench.spilling = {FAST: 700}, {FAST: "spills 12 VGPRs and 0 SGPRs"}
    out, err = bench.tune()
    assert rows_of(out, tmp_path) == [] and "\n1 refused: spills # VGPRs and # SGPRs\n" in err


def test_what_is_modelled_is_kept(bench: Bench) -> None:
    bench.cycles = {FAST: 700}
    first = bench.tune()[0]
    kept = [
        json.loads(line) for line in (bench.build / "tune" / "results.jsonl").read_text().split("\n") if line
    ]
    assert len(kept) == len({line["key"] for line in kept}) > 20
    bench.cycles = {FAST: 1500}  # which nobody asks for again
    assert bench.tune()[0] == first
