# SPDX-License-Identifier: MIT
"""Line tables: those of LLVM's assembler, others by hand, broken ones, and their lines in annotations.

The format is section 6.2 of the DWARF standard (of version 5; appendices of it say what 2 to 4 had).
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import toolchain
from conftest import ROOT, SIMULATOR
from sim import Sim

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

Rows = list[tuple[int, int, str]]
Read = Callable[..., str]
NAMES = (".debug_line", ".debug_line_str", ".debug_str")


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """A function from sections to what the reader says, under sanitizers where the compiler has them."""
    folder = tmp_path_factory.mktemp("line_table")
    sources = [ROOT / "test" / "simulator" / "line_table_main.c", SIMULATOR / "code_object" / "line_table.c"]
    flags = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{SIMULATOR}"]
    program = folder / "line_table"
    for sanitize in (["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], []):
        command = [os.environ.get("CC", "cc"), *flags, *sanitize, *sources, "-o", program]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            break

    def run(sections: tuple[bytes, ...], *arguments: str) -> str:
        paths = [folder / name for name in NAMES]
        for path, section in zip(paths, (*sections, b"", b"")[:3], strict=True):
            path.write_bytes(section)
        done = subprocess.run([program, *paths, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return run


def rows(text: str) -> Rows:
    parts = (line.split(" ", 2) for line in text.splitlines())
    return [(int(address, 16), int(line), path) for address, line, path in parts]


def sections_of(image: bytes) -> tuple[bytes, ...]:
    """The sections of an ELF file that hold line tables."""
    (table,) = struct.unpack_from("<Q", image, 40)
    count, names = struct.unpack_from("<HH", image, 60)
    heads = [struct.unpack_from("<IIQQQQ", image, table + 64 * i) for i in range(count)]
    found = dict.fromkeys(NAMES, b"")
    for head in heads:
        name = image[heads[names][4] + head[0] :].split(b"\0", 1)[0].decode()
        if name in found:
            found[name] = image[head[4] : head[4] + head[5]]
    return tuple(found.values())


LOCATED = """
    .file {first} "{folder}" "one.c"
    .file {second} "{folder}/include" "two.h"
    .loc {first} 3
    s_nop 0
    s_nop 1
    .loc {second} 70000
    v_add_f32 v1, v2, v3
    .loc {first} 4
    s_nop 3
    .loc {first} 0
    s_nop 4
    .loc {second} 1
    s_endpgm
"""


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_assembled(read: Read, tmp_path: Path, version: int) -> None:
    """Tables as LLVM writes them, of each version."""
    first = int(version < 5)
    text = LOCATED.format(first=first, second=first + 1, folder="/work")
    source, made, linked = (tmp_path / f"located.{end}" for end in ("s", "o", "co"))
    source.write_text(f".text\n.globl kernel\n.p2align 8\n.type kernel,@function\nkernel:\n{text}\n")
    assert toolchain.ZIGLANG is not None
    zig = str(toolchain.ZIGLANG / "zig")
    target = ["-x", "assembler", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx942", f"-gdwarf-{version}"]
    subprocess.run([zig, "clang", *target, "-c", source, "-o", made], check=True)
    subprocess.run([zig, "ld.lld", "-shared", made, "-o", linked], check=True)
    sections = sections_of(linked.read_bytes())
    assert struct.unpack_from("<H", sections[0], 4) == (version,)
    found = rows(read(sections))
    start = found[0][0]
    one, two = "/work/one.c", "/work/include/two.h"
    lines = [(address - start, line, path) for address, line, path in found]
    assert lines == [(0, 3, one), (8, 70000, two), (12, 4, one), (16, 0, ""), (20, 1, two), (24, 0, "")]
    whole, changed = map(int, read(sections, "spoil").split())
    assert whole == 0  # whatever is cut off is missed
    assert 0 < changed < 4 * len(sections[0])


@pytest.mark.skipif(not shutil.which("readelf"), reason="needs binutils' readelf")
def test_as_readelf_does(read: Read, tmp_path: Path) -> None:
    """A kernel of ours, with the headers that it includes."""
    (compiler, *_) = toolchain.compilers()
    source = tmp_path / "kernel.c"
    (tmp_path / "twice.h").write_text("static inline int twice(int x) {\n    return 2 * x + (x >> 3);\n}\n")
    source.write_text(
        '#include "twice.h"\n'
        "__attribute__((amdgpu_kernel)) void kernel(int *x, int n) {\n"
        "    for (int i = 0; i < n; i++)\n        x[i] = twice(x[i + 1]);\n}\n"
    )
    flags = ["-O2", "-gline-directives-only", "-gno-column-info"]
    image = tmp_path / "kernel.co"
    toolchain.build_device(compiler, source, "gfx942", flags, image)
    ours = {(address, line) for address, line, _ in rows(read(sections_of(image.read_bytes()))) if line}
    decoded = subprocess.run(
        ["readelf", "--debug-dump=rawline", "-W", image], capture_output=True, text=True, check=True
    ).stdout
    theirs, address, line = set(), 0, 1
    for text in decoded.split("Line Number Statements:", 1)[1].splitlines():
        if found := re.search(
            r"(?:Advance PC by .* to|set Address to|[aA]ddress by \d+ to) 0x([0-9a-f]+)", text
        ):
            address = int(found[1], 16)
        if found := re.search(r"(?:[lL]ine by -?\d+ to) (\d+)", text):
            line = int(found[1])
        if "Special opcode" in text or re.search(r"\bCopy\b", text):
            theirs.add((address, line))
    assert ours == {(address, line) for address, line in theirs if line}
    assert len(ours) > 5


# ---- tables by hand


def leb(value: int) -> bytes:
    parts = bytearray()
    while True:
        parts.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(parts)


def unit(lists: bytes, program: bytes, version: int = 5, wide: bool = False, **fields: int) -> bytes:
    """A unit of line table: minimum step 4, line base -3, range 12, opcodes to 13."""
    size = "<Q" if wide else "<I"
    longest = bytes([fields.get("operations", 1)]) if version >= 4 else b""
    numbers = struct.pack("<BbBB", 1, -3, fields.get("line_range", 12), fields.get("first_special", 13))
    operands = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    rest = b"\x04" + longest + numbers + operands + lists
    header = struct.pack("<H", version) + (b"\x08\x00" if version == 5 else b"")
    body = header + struct.pack(size, fields.get("header", len(rest))) + rest + program
    return (b"\xff\xff\xff\xff" if wide else b"") + struct.pack(size, len(body)) + body


FOLDER = b"\x01\x01\x08" + b"\x01/src\0"  # one column: a path as a string
FILES = b"\x02\x01\x1f\x02\x0b" + b"\x02" + struct.pack("<IBIB", 0, 0, 4, 0)  # line_strp, folder as a byte
STRINGS = b"a.c\0b.h\0"
ADDRESS = b"\x00\x09\x02" + struct.pack("<Q", 0x1000)
END = b"\x00\x01\x01"
STEP = bytes([13 + 3 + 12 + 1])  # a line and four bytes on
# Of each version, the same: line 1 of the first file at 0x1000, line 2 from 0x1004 to 0x1008.
PROGRAM = ADDRESS + b"\x01" + STEP + b"\x02\x01" + END
ROWS = [(0x1000, 1, "/src/b.h"), (0x1004, 2, "/src/b.h"), (0x1008, 0, "")]


def test_forms(read: Read) -> None:
    """Values of all forms; both sizes of offsets; units one behind the other; files by opcode."""
    assert rows(read((unit(FOLDER + FILES, PROGRAM), STRINGS))) == ROWS
    wide = b"\x02\x01\x1f\x02\x0b" + b"\x02" + struct.pack("<QBQB", 0, 0, 4, 0)
    assert rows(read((unit(FOLDER + wide, PROGRAM, wide=True), STRINGS))) == ROWS
    other = b"\x05\x01\x0e\x02\x0f\x03\x1e\x04\x09\x05\x07" + b"\x02"  # strp, udata, data16, block, data8
    other += b"".join(struct.pack("<IB16s2sQ", at, 0, b"", b"\x01x", 0) for at in (0, 4))
    assert rows(read((unit(FOLDER + other, PROGRAM), b"", STRINGS))) == ROWS
    short = b"\x03\x01\x08\x02\x05\x03\x06" + b"\x02" + b"a.c\0\0\0\0\0\0\0" + b"b.h\0\0\0\0\0\0\0"
    assert rows(read((unit(FOLDER + short, PROGRAM), b"", STRINGS))) == ROWS
    old = b"/src\0\0" + b"b.h\0\x01\0\0" + b"\0"
    for version in (2, 3, 4):
        assert rows(read((unit(old, PROGRAM, version=version),))) == ROWS
    both = unit(FOLDER + FILES, PROGRAM) + unit(old, PROGRAM.replace(b"\x10", b"\x20", 1), version=3)
    assert rows(read((both, STRINGS))) == ROWS + [(0x1000 + at, *rest) for at, *rest in ROWS]
    defined = b"\x00\x08\x03c.h\0\x01\x00\x00" + b"\x04\x02" + PROGRAM
    assert {path for *_, path in rows(read((unit(old, defined, version=3),)))} == {"/src/c.h", ""}


def test_opcodes(read: Read) -> None:
    """Each opcode of the state machine, and unknown ones that are passed over."""
    program = (
        ADDRESS + b"\x03\xe4\x00\x01" + b"\x08" + b"\x03\x7f\x01"
    )  # line +100; pc by that of opcode 255; -1
    program += (
        b"\x09\x10\x00\x04\x00\x01" + b"\x05\x07\x06\x07\x0a\x0b\x0c\x01" + b"\x00\x03\x80ab" + STEP + END
    )
    assert rows(read((unit(FOLDER + FILES, program), STRINGS))) == [
        (0x1000, 101, "/src/b.h"),
        (0x1000 + 4 * ((255 - 13) // 12), 100, "/src/b.h"),
        (0x1060, 100, "/src/a.c"),
        (0x1064, 0, ""),
        (0x1064, 101, "/src/a.c"),
    ]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (unit(FOLDER + FILES, PROGRAM)[:-1], "a unit lies outside of its section"),
        (unit(FOLDER + FILES, PROGRAM, version=6), "its version is none of 2 to 5"),
        (unit(FOLDER + FILES, PROGRAM, version=1), "its version is none of 2 to 5"),
        (unit(FOLDER + FILES, PROGRAM, line_range=0), "its header has a zero where none may be"),
        (unit(FOLDER + FILES, PROGRAM, first_special=0), "its header has a zero where none may be"),
        (unit(FOLDER + FILES, PROGRAM, operations=4), "it is of a machine with long instruction words"),
        (unit(FOLDER + FILES, PROGRAM, header=1000), "something in it lies outside of its unit or section"),
        (unit(b"\x01\x01\x77\x01", PROGRAM), "a list of files has values of a form that is not known"),
        (unit(b"\x00\xff\xff\xff\x7f", PROGRAM), "a list of files has entries of no format"),
        (unit(b"\x01\x01\x08" + leb(20000) + b"x\0" * 20000, PROGRAM), "it has too many files"),
        (unit(FOLDER + b"\x01\x01\x08\x01" + b"x" * 5000 + b"\0", PROGRAM), "it has a path that is too long"),
        (unit(FOLDER + FILES[:-5] + b"\xff\0\0\0\0", PROGRAM), "something in it lies outside"),
        (unit(FOLDER + FILES, PROGRAM + b"\x00\x40\x02"), "something in it lies outside"),
        (unit(FOLDER + FILES, PROGRAM + b"\x02\x80\x80"), "something in it lies outside"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused(read: Read, made: bytes, says: str) -> None:
    assert read((made, STRINGS)).startswith(says)


def test_spoilt(read: Read) -> None:
    """Nothing outside is read, whatever byte is another one."""
    for made in (unit(FOLDER + FILES, PROGRAM), unit(b"/src\0\0b.h\0\x01\0\0\0", PROGRAM, version=4)):
        whole, changed = map(int, read((made, STRINGS), "spoil").split())
        assert whole == 0 and 0 < changed < 4 * len(made)


# ---- in annotations


def annotate(library: Path, folder: Path, text: str) -> list[str]:
    image = toolchain.assemble(text, "gfx942", folder / "kernel.co")
    path = folder / "annotated.txt"
    path.unlink(missing_ok=True)
    with Sim(library, "gfx942") as sim:
        sim.set_clock("on")
        sim.set_output("annotation", path)
        sim.launch(sim.load(image), "kernel", (64, 1, 1), (64, 1, 1), b"")
    return path.read_text().splitlines()


def test_annotation(library: Path, tmp_path: Path) -> None:
    """Lines stand above their instructions, with their text where the file is there, and once in a row."""
    (tmp_path / "one.c").write_text("first\nsecond\n\t third(x);  \nlast")
    text = LOCATED.format(first=1, second=2, folder=tmp_path)
    lines = annotate(library, tmp_path, text)
    begin = next(i for i, line in enumerate(lines) if line.endswith("place  instruction"))
    below = [line if line.startswith(";") else line.split()[4] for line in lines[begin + 1 :]]
    assert below == [
        "; one.c:3: third(x);",
        "s_nop",
        "s_nop",
        "; two.h:70000",
        "v_add_f32_e32",
        "; one.c:4: last",
        "s_nop",
        "s_nop",
        "; two.h:1",
        "s_endpgm",
    ]
    assert [line for line in lines if line.startswith("# source ")] == [
        f"# source {tmp_path}/one.c",
        f"# source {tmp_path}/include/two.h",
    ]
    costs = re.findall(r"^# +([\d.]+)% (\S+:\d+)", "\n".join(lines), re.MULTILINE)
    shares = [float(share) for share, _ in costs]
    assert shares == sorted(shares, reverse=True) and 50 < sum(shares) < 100  # an instruction has no line
    assert {place for _, place in costs} == {"one.c:3", "two.h:70000", "one.c:4", "two.h:1"}


def test_no_lines(library: Path, tmp_path: Path) -> None:
    lines = annotate(library, tmp_path, "s_endpgm")
    assert "# no lines of C: the code object has no line table (-DTESSERA_GPU_LINES=ON makes them)" in lines
    assert any(line.endswith("s_endpgm") for line in lines)


def test_broken_lines(library: Path, tmp_path: Path) -> None:
    """They are no reason not to show the rest."""
    text = '.section .debug_line,"",@progbits\n.long 2\n.short 9\n.text\ns_endpgm'
    lines = annotate(library, tmp_path, text)
    assert "# no lines of C: its version is none of 2 to 5" in lines
    assert any(line.endswith("s_endpgm") for line in lines)
