# SPDX-License-Identifier: MIT
"""Compares our tables with those of an LLVM at hand and with the CDNA tables of PyPI's tinygrad."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import SIMULATOR, Run
from encodings_of_rows import Encoding, corpus
from generate_tables import ARCHS, make_indexes, read_tables

SENTINEL = "s_nop 0x7777"
SENTINEL_BYTES = "[0x77 0x77 0x80 0xbf]"

# AMD's name -> LLVM's, where they differ.
RENAMED = {
    "V_MAD_MIX_F32": "V_FMA_MIX_F32",
    "V_MAD_MIXLO_F16": "V_FMA_MIXLO_F16",
    "V_MAD_MIXHI_F16": "V_FMA_MIXHI_F16",
    "V_ACCVGPR_READ": "V_ACCVGPR_READ_B32",
    "V_ACCVGPR_WRITE": "V_ACCVGPR_WRITE_B32",
}
# Not here: the first half of the scaled MFMAs, which are rows as a whole; what no document describes;
# and VOP3 forms that no assembler writes.
ABSENT = {
    *("V_MFMA_LD_SCALE_B32", "S_SET_VALU_COEXEC_MODE"),
    *("VOP3 V_READFIRSTLANE_B32", "VOP3 V_CLREXCP", "VOP3 V_SWAP_B32", "VOP3 V_ACCVGPR_MOV_B32"),
}


def find_llvm_mc(version: int) -> str:
    found = shutil.which(f"llvm-mc-{version}")
    if not found:
        pytest.skip(f"needs llvm-mc-{version}")
    return found


def llvm_text(tool: str, arch: str, encodings: list[Encoding]) -> list[str]:
    """LLVM's text of each encoding; empty where it refuses."""
    lines = []
    for encoding in encodings:
        code = b"".join(word.to_bytes(4, "little") for word in encoding.words)
        lines += ["[" + " ".join(f"{byte:#04x}" for byte in code) + "]", SENTINEL_BYTES]
    command = [tool, "--disassemble", "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}"]
    source = "\n".join(lines)
    output = subprocess.run(command, input=source, capture_output=True, text=True, check=False).stdout
    texts: list[str] = []
    block: list[str] = []
    for line in output.splitlines():
        if line.startswith("\t."):
            continue
        text = re.sub(r"\s+", " ", re.split(r"//|;", line)[0]).strip()
        if text == SENTINEL:
            texts.append(" ".join(block))
            block = []
        elif text:
            block.append(text)
    return texts


def essence(text: str) -> tuple[str, list[str]]:
    """The mnemonic and the registers, which every LLVM spells alike."""
    mnemonic = re.sub(r"_(e32|e64|sdwa|dpp)$", "", text.split(" ", maxsplit=1)[0])
    registers = re.findall(r"\b(?:ttmp|[vsa])(?:\d+\b|\[\d+:\d+\])|\bm0\b|\b(?:vcc|exec)(?:_lo|_hi)?\b", text)
    return mnemonic, registers


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("version", [19, 22])
def test_llvm_disassembles_alike(version: int, arch: str, disassemble: Run) -> None:
    tool = find_llvm_mc(version)
    if arch == "gfx950" and version < 20:
        pytest.skip(f"LLVM {version} does not know gfx950")
    # Of f8f6f4 it wants eight registers whatever the format is.
    rows = [row for row in read_tables(SIMULATOR / "instructions") if "f8f6f4" not in row.flags]
    encodings = list(corpus(rows, arch, 2))
    lines = "".join(" ".join(f"{word:08x}" for word in e.words) + "\n" for e in encodings)
    ours = [line.split(" ", 1)[1] for line in disassemble(arch, lines).splitlines()]
    theirs = llvm_text(tool, arch, encodings)
    assert len(theirs) == len(ours), "LLVM crashed"
    different = [
        f"{mine} | {other}"
        for mine, other in zip(ours, theirs, strict=True)
        if other and essence(mine) != essence(other)
    ]
    assert not different, "\n".join(different[:40])
    if version < 22:
        return  # it does not know v_pk_fmac_f16 in its longer forms, nor op_sel of v_alignbit
    refused = [mine for mine, other in zip(ours, theirs, strict=True) if not other]
    assert not refused, "\n".join(refused[:40])


def test_tinygrad_has_the_same_opcodes() -> None:
    spec = importlib.util.find_spec("tinygrad")
    if spec is None or spec.origin is None:
        pytest.skip("needs PyPI's tinygrad")
    path = Path(spec.origin).parent / "runtime" / "autogen" / "amd" / "cdna" / "enum.py"
    if not path.exists():
        pytest.skip(f"this tinygrad has no {path.name} of CDNA")
    rows = read_tables(SIMULATOR / "instructions")
    # Its tables are CDNA3's and CDNA4's together.
    indexes = {index.name: index.rows[1] | index.rows[2] for index in make_indexes(rows)}
    formats = {"VOP3SD": ["vop3"], "VOP3P": ["vop3p", "mai"], "VOP3PX2": ["scaled"]}
    wrong, compared = [], 0
    for name, body in re.findall(r"^class (\w+)Op\(\w+\):\n((?: .*\n)+)", path.read_text(), re.MULTILINE):
        for mnemonic, opcode in re.findall(r"^  (\w+) = (\d+)$", body, re.MULTILINE):
            wanted = re.sub(r"_E(32|64)$", "", RENAMED.get(mnemonic, mnemonic))
            if wanted in ABSENT or f"{name} {wanted}" in ABSENT:
                continue
            tables = formats.get(name, [name.lower()])
            found = {
                rows[indexes[table][int(opcode)]].mnemonic.upper()
                for table in tables
                if int(opcode) in indexes[table]
            }
            compared += 1
            if wanted not in found:
                wrong.append(f"{name} {opcode}: {wanted}, not {found or 'anything'}")
    assert compared > 1000
    assert not wrong, "\n".join(wrong[:40])
