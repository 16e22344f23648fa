# SPDX-License-Identifier: MIT
"""Code that compilers make of emitted files: objdump of an instance of each x86-64 target and pipeline."""

from __future__ import annotations

import itertools
import json
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import built
import pytest
from sampling import sample, sample_each

from codegen.spec import ROOT
from codegen.targets import TARGETS

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
VECTOR = re.compile(r"%[xyzt]mm|\b[qv]\d")
PRODUCT = re.compile(r"vfn?madd|(v|t)dpbf16ps|mulps")  # of a register tile; mulps where there is no FMA
TERMS = {"bf16": {"scores": 1, "accumulate": 1}, "bf16x2": {"scores": 3, "accumulate": 3}}  # of tile products
AVX = re.compile(r"^v(?!err|erw)\w")
AVX512 = re.compile(r"%zmm|%k[0-7]|%[xy]mm(1[6-9]|2\d|3[01])")
AMX = re.compile(r"%tmm|tilecfg|tilerelease")

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or not COMPILERS or not shutil.which("objdump"),
    reason="needs x86-64, gcc or clang, and objdump",
)


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Line:
    address: int
    text: str

    @property
    def jumps_to(self) -> int | None:
        jump = re.match(r"j\w+ +([0-9a-f]+)", self.text)
        return int(jump[1], 16) if jump else None


@dataclass(frozen=True)
class Function:
    name: str
    lines: list[Line]

    def innermost_loops(self) -> list[list[Line]]:
        """The stretches that a jump back closes and that hold no other such stretch."""
        loops = {
            (line.jumps_to, line.address)
            for line in self.lines
            if line.jumps_to is not None and self.lines[0].address <= line.jumps_to <= line.address
        }
        inner = [
            one
            for one in loops
            if not any(one != other and one[0] <= other[0] and other[1] <= one[1] for other in loops)
        ]
        return [[line for line in self.lines if first <= line.address <= last] for first, last in inner]

    @cached_property
    def stack(self) -> re.Pattern[str]:
        """What a line has that reads or writes the stack. rbp is its pointer only where it was made so."""
        framed = any(re.match(r"mov +%rsp,%rbp", line.text) for line in self.lines)
        return re.compile(r"\(%r[sb]p" if framed else r"\(%rsp")


def disassemble(path: Path) -> dict[str, Function]:
    functions: dict[str, Function] = {}
    lines: list[Line] = []
    for text in output("objdump", "-d", "--no-show-raw-insn", path).splitlines():
        if head := re.match(r"[0-9a-f]+ <(.+)>:", text):
            lines = []
            functions[head[1]] = Function(head[1], lines)
        elif body := re.match(r" *([0-9a-f]+):\t(.*)", text):
            lines.append(Line(int(body[1], 16), body[2]))
    return functions


@dataclass(frozen=True)
class Object:
    compiler: str
    row: dict[str, str]  # of generate.py --table
    path: Path
    functions: dict[str, Function]


def compile_one(compiler: str, row: dict[str, str], folder: Path) -> Object:
    source, path = folder / f"{row['name']}.c", folder / f"{row['name']}.{compiler}.o"
    if there := built.find_object(row["name"], shutil.which(compiler) or "", source.read_text()):
        return Object(compiler, row, there, disassemble(there))
    flags = ["-std=c11", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", *TARGETS[row["target"]].cflags]
    output(compiler, *flags, f"-I{ROOT / 'include'}", "-c", source, "-o", path)
    return Object(compiler, row, path, disassemble(path))


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    folder = tmp_path_factory.mktemp("emitted")
    generate = (sys.executable, ROOT / "generate.py", "--targets", "x86-64")
    table = json.loads(output(*generate, "--table", "--format", "json"))
    rows = list({(row["target"], row["pipeline"], row["compute"]): row for row in table}.values())
    names = "x86-64-v2 x86-64-v3 x86-64-v4 x86-64-v4-bf16 x86-64-v4-vp2intersect x86-64-v4-amx x86-64-v4-fp16"
    assert {row["target"] for row in rows} >= set(names.split())
    output(*generate, "-o", folder)
    # One of decoding: these take compilers as long as all others, and the first test passes them over.
    decoding = sample([row for row in rows if row["pipeline"] == "decode"], 1)
    rows = [row for row in rows if row["pipeline"] != "decode" or row in decoding]
    pairs = sample_each(itertools.product(rows, COMPILERS), lambda pair: pair[0]["name"])
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda pair: compile_one(pair[1], pair[0], folder), pairs))


def test_register_tiles_stay_in_registers(objects: list[Object]) -> None:
    """In the innermost loops of both products no vector of the whole register tile is on the stack."""
    seen = 0
    for one in objects:
        if one.row["pipeline"] == "decode":
            continue
        mr, nv = int(one.row["mr"]), int(one.row["nv"])
        for product, vectors in itertools.product(("scores", "accumulate"), range(1, nv + 1)):
            count = mr * vectors
            if one.row["pipeline"] == "qr_tile":  # mr is two tiles
                count = 2 * vectors * TERMS[one.row["compute"]][product]
            function = one.functions[f"{product}_{vectors}"]
            loops = [
                loop
                for loop in function.innermost_loops()
                if sum(bool(PRODUCT.match(line.text)) for line in loop) >= count
            ]
            assert loops, f"{one.path.name}: {function.name} has no loop of {count} products"
            moves = [line.text for loop in loops for line in loop if function.stack.search(line.text)]
            stack = [text for text in moves if VECTOR.search(text)]
            # clang keeps one of a tile's 16 numbers there on SSE4.2, which has as many registers.
            most = 1 if one.compiler == "clang" and one.row["target"] == "x86-64-v2" else 0
            assert len(stack) <= most, f"{one.path.name}: {function.name} spills: {stack}"
            seen += 1
    assert seen >= 2 * 6


def test_only_entries_are_visible(objects: list[Object]) -> None:
    """A copy of a shared helper, compiled for one ISA, must not be what the linker takes for all."""
    for one in objects:
        defined = output("nm", "--defined-only", "--extern-only", "--format=just-symbols", one.path).split()
        symbol = f"tessera_k_{one.row['name'].replace('__', '_')}"
        assert sorted(defined) == [symbol, f"{symbol}_combine", f"{symbol}_scratch"], one.path.name


def test_instructions_are_those_of_the_target(objects: list[Object]) -> None:
    """No AVX for x86-64-v2, no AVX-512 for x86-64-v3, no AMX but for one, and what each is for is used."""
    forbidden = {"x86-64-v2": AVX, "x86-64-v3": AVX512}
    forbidden |= dict.fromkeys(
        ("x86-64-v4", "x86-64-v4-bf16", "x86-64-v4-vp2intersect", "x86-64-v4-fp16"), AMX
    )
    expected = {
        "x86-64-v3": "vfmadd",
        "x86-64-v4": "%zmm",
        "x86-64-v4-bf16": "vdpbf16ps",
        "x86-64-v4-vp2intersect": "vdpbf16ps",
        "x86-64-v4-amx": "tdpbf16ps",
        "x86-64-v4-fp16": "vfmadd231ph",
    }
    for one in objects:
        target = one.row["target"]
        purpose = expected.get(target, "mulps")
        texts = [line.text for function in one.functions.values() for line in function.lines]
        beyond = [text for text in texts if target in forbidden and forbidden[target].search(text)]
        assert not beyond, f"{one.path.name}: {beyond}"
        assert any(purpose in text for text in texts), one.path.name
