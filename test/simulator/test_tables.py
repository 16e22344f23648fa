# SPDX-License-Identifier: MIT
"""The tables: what they hold, and what generate_tables.py refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SIMULATOR, Run
from encodings_of_rows import forms
from generate_tables import ARCHS, FORMATS, TableError, make_indexes, parse_row, read_tables

TABLES = SIMULATOR / "instructions"


def test_counts() -> None:
    """Instructions, and encodings with the VOP3, SDWA and DPP forms: as many as LLVM 22 decodes."""
    rows = read_tables(TABLES)
    counts = {}
    for i, arch in enumerate(ARCHS):
        here = [row for row in rows if row.opcodes[i] is not None]
        counts[arch] = (len(here), sum(len(forms(row)) for row in here))
    assert counts == {"gfx90a": (1109, 1813), "gfx942": (1151, 1867), "gfx950": (1247, 1973)}


def test_every_table_says_where_it_is_from() -> None:
    for fmt in FORMATS:
        head = (TABLES / f"{fmt}.txt").read_text().split("\n\n")[0]
        assert "SPDX-License-Identifier: MIT" in head
        assert "Instruction Set Architecture" in head


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("s_mov_b32 0 0 dst=b32", "invalid literal"),
        ("s_mov_b32 - - - dst=b32", "not all absent"),
        ("s_mov_b32 0 0 256 dst=b32", "below 256"),
        ("s_mov_b32 0 0 0 dst", "slot=\\[class:\\]type"),
        ("s_mov_b32 0 0 0 there=b32", "slot 'there'"),
        ("s_mov_b32 0 0 0 dst=q:b32", "class 'q'"),
        ("s_mov_b32 0 0 0 dst=b33", "type 'b33'"),
        ("s_mov_b32 0 0 0 imm=i33", "immediate 'i33'"),
        ("s_mov_b32 0 0 0 dst=b32 dst=b32", "one twice"),
        ("s_mov_b32 0 0 0 dst=b32 | quickly", "flag 'quickly'"),
    ],
)
def test_bad_lines(line: str, complaint: str) -> None:
    with pytest.raises((TableError, ValueError), match=complaint):
        parse_row("sop1", line)


def test_one_opcode_twice() -> None:
    rows = [parse_row("sop1", f"s_{name} 1 2 3 dst=b32") for name in ("first", "second")]
    with pytest.raises(SystemExit, match="sop1 opcode 1 of gfx90a: both s_first and s_second"):
        make_indexes(rows)
    rows = [parse_row("vop1", "v_one 4 4 4 dst=b32 | vop3"), parse_row("vop3", "v_two 324 - - dst=b32")]
    with pytest.raises(SystemExit, match="vop3 opcode 324 of gfx90a: both v_one and v_two"):
        make_indexes(rows)


def test_generates_the_same_twice_and_leaves_files_alone(tmp_path: Path) -> None:
    command = [sys.executable, str(TABLES / "generate_tables.py"), "--output", str(tmp_path)]
    subprocess.run(command, check=True)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    subprocess.run(command, check=True)
    after = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert before == after
    assert set(before) == {"instructions.h", "instructions.c"}


@pytest.mark.parametrize(
    ("arch", "words", "result"),
    [
        ("gfx942", "", "- the code ends within an instruction"),
        ("gfx942", "d1010004", "- the code ends within an instruction"),  # VOP3 has two words
        ("gfx942", "7e0802ff", "- the code ends within an instruction"),  # no literal
        ("gfx950", "d3ac0000 00023f1e d3ad0800", "- the code ends within an instruction"),
        ("gfx942", "f0000000 0", "- unknown encoding"),  # MIMG
        ("gfx942", "bf9f0000", "- unknown opcode"),  # SOPP 31
        ("gfx942", "d3ad0000 04622108", "- unknown opcode"),  # an MFMA of gfx950
        ("gfx90a", "7e0e7102", "- unknown opcode"),  # v_mov_b64
        ("gfx942", "7e0802fd", "4 v_mov_b32_e32 v4, src_scc"),
        ("gfx942", "7e0802d5", "- reserved operand"),  # code 213
        ("gfx942", "7e08027d", "- reserved operand"),  # code 125
        ("gfx942", "d2800005 00021908", "- reserved operand"),  # v_add_f64 v[5:6]
        ("gfx942", "be810102", "- reserved operand"),  # s_mov_b64 s[1:2]
        ("gfx942", "d1130804 00021908", "- reserved bits are set"),  # v_and_b32 with op_sel
        ("gfx942", "d1130004 20021908", "- reserved bits are set"),  # v_and_b32 with neg
        ("gfx942", "bf8a0001", "- reserved bits are set"),  # s_barrier 1
        ("gfx942", "d86c0000 04000301", "- reserved bits are set"),  # ds_read_b32 with data
    ],
)
def test_refusals(arch: str, words: str, result: str, disassemble: Run) -> None:
    assert disassemble(arch, words + "\n").strip() == result
