# SPDX-License-Identifier: MIT
"""Instructions are found and counted as LLVM has them; the main loop is the one that does the work."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from conftest import run
from device import compile_object
from sampling import sample

from codegen import Refused
from codegen.machine_code import Counts, early_waits, instructions, main_loop
from codegen.resources import Resources, read_resources

# Words of gfx942. Branches: opcode; the label follows.
WORDS = {
    "s_nop": (0xBF800000,),
    "s_endpgm": (0xBF810000,),
    "s_add_literal": (0x8000FF00, 0x12345678),
    "s_load": (0xC0020000, 0),
    "v_mov": (0x7E000280,),
    "v_mov_literal": (0x7E0002FF, 0xBF820000),  # the word would be a branch
    "v_accvgpr_read": (0xD3D84000, 0x18000100),
    "v_mfma": (0xD3CC0000, 0x04020100),
    "ds_read": (0xD86C0000, 0),
    "buffer_load": (0xE0500000, 0),
    "buffer_load_lds": (0xE0510000, 0),
    "s_barrier": (0xBF8A0000,),
}
BRANCHES = {"s_branch": 0xBF820000, "s_cbranch": 0xBF840000}


def assemble(text: str) -> bytes:
    """Words above, one a line; `name:` is a label, `s_waitcnt n` leaves n operations on memory under way."""
    places, lines, size = {}, [], 0
    for line in text.split("\n"):
        word = line.strip()
        if word.endswith(":"):
            places[word[:-1]] = size
        elif word:
            lines.append((size, word))
            size += 4 * len(WORDS.get(word, (0,)))
    code = bytearray()
    for place, line in lines:
        name, _, label = line.partition(" ")
        words = WORDS.get(name)
        if name == "s_waitcnt":
            words = (0xBF8C0F70 | int(label) & 15 | int(label) >> 4 << 14,)
        elif words is None:
            words = (BRANCHES[name] | ((places[label] - place - 4) // 4 & 0xFFFF),)
        code += struct.pack(f"<{len(words)}I", *words)
    return bytes(code)


def loop_of(text: str) -> Counts | None:
    return main_loop(instructions(assemble(text), "gfx942"))


def test_kinds() -> None:
    code = assemble("\n".join(WORDS))
    found = instructions(code, "gfx942")
    assert [i.size for i in found] == [4 * len(words) for words in WORDS.values()]
    assert [name for name, i in zip(WORDS, found, strict=True) if i.to_lds] == ["buffer_load_lds"]
    total = sum((i.counts for i in found), Counts())
    assert total == Counts(mfma=1, valu=3, accvgpr=1, scalar=5, lds=1, memory=2) and total.total == 12
    assert main_loop(found[:2] + found[1:2]) is None


def test_of_nested_loops_the_innermost_with_mfma() -> None:
    text = """
        v_mfma
    tiles:
        ds_read
    products:
        v_mfma
        v_mov
        s_cbranch products
        v_mfma
    rows:
        v_mov
        s_cbranch rows
        s_cbranch tiles
        s_endpgm
    """
    assert loop_of(text) == Counts(mfma=1, valu=1, scalar=1)
    text = text.replace("    products:\n        v_mfma\n", "    products:\n")
    assert loop_of(text) == Counts(mfma=1, valu=2, scalar=3, lds=1)  # products is no such loop: once round it


def test_of_two_loops_the_one_of_more_mfma() -> None:
    text = """
    first:
        v_mfma
        s_cbranch first
    second:
        v_mfma
        v_mfma
        v_mov
        s_cbranch second
        s_endpgm
    """
    assert loop_of(text) == Counts(mfma=2, valu=1, scalar=1)


def test_rare_code_is_not_counted() -> None:
    """It may stand behind a branch or out of line; MFMA are counted though a shorter path avoids them."""
    assert loop_of(
        """
        s_nop
    tile:
        buffer_load
        s_cbranch plain
        v_mov
        v_mov_literal
    plain:
        s_cbranch rare
    back:
        s_cbranch empty
        v_mfma
        v_accvgpr_read
    empty:
        s_cbranch tile
        s_endpgm
    rare:
        v_mov
        s_branch back
        """
    ) == Counts(mfma=1, valu=1, accvgpr=1, scalar=4, memory=1)


def test_a_loop_that_ends_in_two_places() -> None:
    assert loop_of(
        """
    tile:
        v_mfma
        s_cbranch late
        v_mov
        s_branch tile
    late:
        v_mfma
        s_cbranch tile
        s_endpgm
        """
    ) == Counts(mfma=2, scalar=2)


# ---- waits before the end of a step


def early(text: str) -> list[int | None]:
    """The numbers of operations that the early waits of a loop leave in flight."""
    return [i.under_way for i in early_waits(instructions(assemble(text), "gfx942"))]


STEP = """
    tile:
        s_waitcnt 0
        s_barrier
        buffer_load
        s_cbranch last
        buffer_load_lds
    last:
        s_cbranch plain
        s_waitcnt {other}
        v_mov
    plain:
        s_waitcnt {middle}
        v_mfma
        s_cbranch tile
        s_endpgm
"""


def test_waits_for_the_next_tile() -> None:
    assert early(STEP.format(other=2, middle=2)) == early(STEP.format(other=63, middle=17)) == []
    assert early(STEP.format(other=2, middle=1)) == [1]
    assert early(STEP.format(other=0, middle=0)) == [0, 0]
    assert early(STEP.format(other=1, middle=0).replace("s_cbranch last", "s_nop")) == [1, 0]


def test_a_wait_for_something_else_is_not_early() -> None:
    """Whatever the way to it has loaded that others do not, until the step ends."""
    step = STEP.format(other=0, middle=63).replace("v_mov", "s_nop")
    assert early(step) == [0]
    bias = step.replace("s_waitcnt 0\n        s_nop", "buffer_load\n        s_waitcnt 0\n        s_waitcnt 0")
    assert bias != step and early(bias) == []
    assert early(bias.replace("s_waitcnt 63", "s_waitcnt 1")) == [1]  # of those that come the other way


def test_registers_loaded_in_a_branch_are_waited_for_behind_it() -> None:
    """As they are where a compiler lets both ways meet: the loads to LDS pay for it."""
    text = """
    tile:
        s_waitcnt 0
        s_barrier
        buffer_load_lds
        buffer_load_lds
        s_cbranch seen
        buffer_load
    seen:
        s_waitcnt 0
        v_mfma
        s_cbranch tile
        s_endpgm
    """
    assert early(text) == [0]


def test_a_wait_without_a_barrier_is_no_end() -> None:
    text = STEP.format(other=63, middle=63)
    assert early(text.replace("s_barrier", "s_nop")) == [0]
    assert early("s_waitcnt 0\ns_endpgm") == []


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("0000ccd3", "ends within the instruction at 0x0"),
        ("000080bf0000ccd3", "ends within the instruction at 0x4"),
        ("000000f400000000", "has an unknown instruction at 0x0"),
        ("00ffff7e", "has an unknown vop1 instruction at 0x0: opcode 255"),
        ("0000bcd300000000", "has an unknown vop3p instruction at 0x0: opcode 60"),
    ],
)
def test_unknown_code_is_refused(code: str, says: str) -> None:
    with pytest.raises(Refused, match=re.escape(says)):
        instructions(bytes.fromhex(code), "gfx942")


# ---- emitted kernels


def built(name: str, folder: Path, *flags: str) -> Resources:
    """The code object of an instance."""
    arch = re.findall("__(gfx[0-9a-f]+)_", name)[0]
    file = compile_object(run("--render", name).out, folder / f"{name}.co", arch, *flags)
    return read_resources(file)


@pytest.mark.parametrize(("arch", "k"), [("gfx90a", 8), ("gfx942", 8), ("gfx950", 16)])
def test_the_main_loop_of_an_instance(tmp_path: Path, arch: str, k: int) -> None:
    """One round is one tile of keys: both of its products, and its rows of K and V."""
    kernel = built(f"fmha_fwd_d64_bf16__{arch}_b128x64x64_w4_qr", tmp_path)
    loop = kernel.loop
    assert loop is not None
    assert loop.mfma == 2 * (64 // 32) * (64 // k)
    assert loop.memory == 3 * 2  # 16 bytes a lane: 2 of K, and 4 of V by half of the lanes, or as many of 8
    assert loop.accvgpr == 0
    # 32 scores a lane: each raised; compared, scaled, added and packed in pairs.
    assert 32 * (1 + 4 / 2) <= loop.valu < 32 * 8
    assert loop.total * 4 < len(kernel.code)


def async_names(receipt: str) -> list[str]:
    rows = run("--targets", "cdna", "--table", "-r", receipt, "--where", "pipeline=qr_async").lines[1:]
    return [row.split()[0] for row in rows]


@pytest.fixture(scope="module")
def async_kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of each target a code object of pipeline qr_async: those of the smallest receipt."""
    folder = tmp_path_factory.mktemp("async")
    kernels = [built(name, folder) for name in async_names("ci")]
    return {kernel.target.name: folder / f"{kernel.name}.co" for kernel in kernels}


def test_no_tile_is_waited_for_within_a_step(async_kernels: dict[str, Path], tmp_path: Path) -> None:
    """Pipeline qr_async loads tiles while it computes with others."""
    assert async_kernels.keys() == {"gfx90a", "gfx942", "gfx950"}
    kernels = [read_resources(file) for file in async_kernels.values()]
    kernels += [built(name, tmp_path) for name in sample(async_names("all"), 1)]
    for kernel in kernels:
        code = instructions(kernel.code, kernel.target.name)
        assert sum(i.to_lds for i in code) > sum(i.name == "s_barrier" for i in code) > 2
        assert [(hex(i.place), i.under_way) for i in early_waits(code)] == [], kernel.name


# Operations on rows, and how many tensors of a row's inputs there are: with scales, and without.
TENSORS = {"layernorm2d_fwd": 5, "rmsnorm2d_fwd": 3, "add_rmsnorm2d_rdquant": 3, "smoothquant": 1}


@pytest.mark.parametrize("vn", [1, 8])
@pytest.mark.parametrize("api", TENSORS)
def test_a_row_is_asked_for_before_any_of_it_is_waited_for(api: str, vn: int, tmp_path: Path) -> None:
    """Pipeline one_pass: its first wait for loads is behind all of them."""
    where = ("--where", f"pipeline=one_pass vn={vn}")
    for row in sample(run("--api", api, "--targets", "cdna", "--table", *where).lines[1:], 1):
        name, _, arch = row.split()[:3]
        columns = 8 * (2 if "x8192_" in name or "x4096_" in name else 1)  # of a lane
        of_row, of_scales = (
            columns * bits // 128 if vn > 1 else columns for bits in (32 if "_fp32_" in name else 16, 32)
        )
        compile_object(run("--api", api, "--render", name).out, tmp_path / f"{name}.co", arch)
        code = instructions(read_resources(tmp_path / f"{name}.co").code, arch)
        wait = next(i.place for i in code if i.under_way is not None and i.under_way < 63)
        loads = [i for i in code if i.format == "mubuf" and i.place < wait]
        assert len(loads) == TENSORS[api] * of_row + of_scales, name


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_the_second_opinion_of_llvm(async_kernels: dict[str, Path], arch: str) -> None:
    """LLVM's disassembler agrees on every instruction of an emitted kernel."""
    tools = [shutil.which(f"llvm-objdump{version}") for version in ("-22", "-21", "-20", "-19", "")]
    tool = next((tool for tool in tools if tool), None)
    if tool is None:
        pytest.skip("no llvm-objdump")
    command = [tool, "-d", f"--mcpu={arch}", str(async_kernels[arch])]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = re.findall(r"^\t(\w+)(.*)// ([0-9A-F]+):((?: [0-9A-F]{8})+)", text, re.M)
    if not lines:  # LLVM 19 aborts on gfx950
        pytest.skip(f"{tool} knows no {arch}")
    first = int(lines[0][2], 16)
    said = {int(line[2], 16) - first: line for line in lines}
    for found in instructions(read_resources(async_kernels[arch]).code, arch):
        name, operands, _, words = said[found.place]
        assert found.size == 4 * len(words.split()), name
        assert found.to_lds == operands.rstrip().endswith(" lds")
        if name == "s_waitcnt":
            waits = re.findall(r"vmcnt\((\d+)\)", operands)
            assert found.under_way == int(waits[0] if waits else 63)
        assert found.name in ("", re.sub("_(e32|e64|sdwa|dpp)$", "", name))
        assert (found.format == "mai") == name.startswith("v_mfma")
        assert (found.counts.valu > 0) == (name.startswith("v_") and found.format != "mai")
        assert (found.counts.lds > 0) == name.startswith("ds_")
        assert (found.counts.memory > 0) == name.startswith(("buffer_", "global_", "flat_", "scratch_"))
