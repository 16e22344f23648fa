#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Renders the tables in simulator/instructions/ to instructions.h and instructions.c."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

HERE = Path(__file__).resolve().parent
ARCHS = ("gfx90a", "gfx942", "gfx950")

# File of a table -> how many opcodes its encoding has room for.
FORMATS = {
    "sop1": 256,
    "sop2": 96,
    "sopc": 128,
    "sopk": 32,
    "sopp": 128,
    "smem": 256,
    "vop1": 256,
    "vop2": 62,
    "vopc": 256,
    "vop3": 1024,
    "vop3p": 128,
    "mai": 128,
    "ds": 256,
    "mubuf": 128,
    "mtbuf": 16,
    "flat": 128,
    "global": 128,
    "scratch": 128,
}
VOP3_BASE = {"vop1": 0x140, "vop2": 0x100, "vopc": 0}
FLAGS = (
    "vop3 sdwa dpp dpp64 clamp omod op_sel op_sel4 plain neg mix bitop3 permlane fp8 "
    "cbsz abid blgp f8f6f4 scaled pair gds atomic lds lds950 lds_address bare"
).split()
IMMEDIATES = "i16 u16 branch hwreg waitcnt sendmsg gpr_idx optional probe".split()
CLASSES = {"s": "SDST", "v": "VGPR", "a": "AGPR", "lane": "LANE", "literal": "LITERAL", "vcc": "VCC"}
SLOTS = ("dst", "sdst", "src0", "src1", "src2", "scale0", "scale1", "addr", "data", "data2", "base", "offset")
TYPE = re.compile(r"^(b|i|u|f|bf)(8|16|32|64|96|128|192|256|512|1024)(?:\*(\d+))?$")
OPERAND = re.compile(r"^(\w+)=(?:(\w+):)?(\S+)$")
MAX_FIELDS = 6


class TableError(Exception):
    """A line of a table that breaks the rules of its README."""


@dataclass(frozen=True)
class Field:
    """One operand."""

    slot: str
    source: str
    type: str = "B"
    element: int = 0
    bits: int = 0


@dataclass(frozen=True)
class Row:
    """One instruction."""

    mnemonic: str
    word: str
    format: str
    opcodes: tuple[int | None, ...]
    fields: tuple[Field, ...]
    flags: tuple[str, ...]

    def c_opcodes(self) -> str:
        """The opcodes as C writes them."""
        return ", ".join("-1" if opcode is None else str(opcode) for opcode in self.opcodes)

    def c_flags(self) -> str:
        """The flags as C writes them."""
        return " | ".join(f"SIM_FLAG_{flag.upper()}" for flag in self.flags) or "0"


@dataclass
class Index:
    """Which row an opcode is: a line of C for each architecture."""

    name: str
    size: int
    rows: list[dict[int, int]] = field(default_factory=lambda: [{} for _ in ARCHS])


def source_of(fmt: str, slot: str) -> str:
    """Says where an operand comes from when its row does not."""
    if fmt == "sopk":
        return "SDST"
    if fmt.startswith("sop"):
        return "SDST" if slot == "dst" else "SSRC"
    if fmt in ("vop1", "vop2", "vopc"):
        return "SRC" if slot == "src0" else "VGPR"
    if fmt in ("vop3", "vop3p"):
        return {"dst": "VGPR", "sdst": "SDST"}.get(slot, "SRC")
    if fmt == "mai":
        special = {"dst": "MATRIX_D", "src2": "MATRIX_C", "scale0": "SRC", "scale1": "SRC"}
        return special.get(slot, "MATRIX")
    if fmt == "smem":
        return "SDST"
    return "VGPR" if slot == "addr" else "MEMORY"


def parse_operand(fmt: str, token: str) -> Field:
    """Reads one `slot=[class:]type`."""
    match = OPERAND.match(token)
    if not match:
        raise TableError(f"operand {token!r} is not slot=[class:]type")
    slot, cls, kind = match.groups()
    if slot == "imm":
        if kind not in IMMEDIATES:
            raise TableError(f"immediate {kind!r}: there are {', '.join(IMMEDIATES)}")
        return Field("IMM", f"IMM_{kind.upper()}")
    if slot not in SLOTS:
        raise TableError(f"slot {slot!r}: there are {', '.join(SLOTS)}")
    if cls is not None and cls not in CLASSES:
        raise TableError(f"class {cls!r}: there are {', '.join(CLASSES)}")
    shape = TYPE.match(kind)
    if not shape:
        raise TableError(f"type {kind!r}")
    element = int(shape[2])
    source = CLASSES[cls] if cls else source_of(fmt, slot)
    return Field(slot.upper(), source, shape[1].upper(), element, element * int(shape[3] or 1))


def parse_row(fmt: str, line: str) -> Row:
    """Reads one line of a table."""
    left, _, right = line.partition("|")
    mnemonic, *rest = left.split()
    opcodes = tuple(None if text == "-" else int(text) for text in rest[: len(ARCHS)])
    if len(opcodes) < len(ARCHS) or all(opcode is None for opcode in opcodes):
        raise TableError(f"{mnemonic}: {len(ARCHS)} opcodes are needed, not all absent")
    if any(opcode is not None and not 0 <= opcode < FORMATS[fmt] for opcode in opcodes):
        raise TableError(f"{mnemonic}: opcodes of {fmt} are below {FORMATS[fmt]}")
    fields = tuple(parse_operand(fmt, token) for token in rest[len(ARCHS) :])
    if len(fields) > MAX_FIELDS or len({f.slot for f in fields}) != len(fields):
        raise TableError(f"{mnemonic}: too many operands, or one twice")
    flags = right.split()
    words = [flag.removeprefix("is:") for flag in flags if flag.startswith("is:")] or [mnemonic]
    flags = [flag for flag in flags if not flag.startswith("is:")]
    for flag in flags:
        if flag not in FLAGS:
            raise TableError(f"{mnemonic}: flag {flag!r}: there are {', '.join(FLAGS)}")
    return Row(mnemonic, words[0], fmt, opcodes, fields, tuple(flags))


def read_tables(folder: Path) -> list[Row]:
    """Reads every table, in the order of FORMATS."""
    rows = []
    for fmt in FORMATS:
        path = folder / f"{fmt}.txt"
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line and not line.startswith("#"):
                try:
                    rows.append(parse_row(fmt, line))
                except (TableError, ValueError) as error:
                    raise SystemExit(f"{path}:{number}: {error}") from None
    return rows


def make_indexes(rows: list[Row]) -> list[Index]:
    """Maps every opcode of every encoding to its row, and refuses two rows at one place."""
    indexes = {fmt: Index(fmt, size) for fmt, size in FORMATS.items()}
    indexes["scaled"] = Index("scaled", FORMATS["mai"])

    def enter(name: str, arch: int, opcode: int, number: int) -> None:
        taken = indexes[name].rows[arch]
        if opcode in taken:
            raise SystemExit(
                f"{name} opcode {opcode} of {ARCHS[arch]}: both {rows[taken[opcode]].mnemonic} and "
                f"{rows[number].mnemonic}"
            )
        taken[opcode] = number

    for number, row in enumerate(rows):
        for arch, opcode in enumerate(row.opcodes):
            if opcode is None:
                continue
            enter("scaled" if "scaled" in row.flags else row.format, arch, opcode, number)
            if "vop3" in row.flags:
                enter("vop3", arch, opcode + VOP3_BASE[row.format], number)
    return list(indexes.values())


def main() -> None:
    """Writes the two files, and leaves those alone that would not change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder for the two files")
    parser.add_argument("--tables", type=Path, default=HERE, help="folder of the tables")
    args = parser.parse_args()
    rows = read_tables(args.tables)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        undefined=jinja2.StrictUndefined,
        variable_start_string="${",
        variable_end_string="}",
        line_statement_prefix="//%",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    facts = {
        "rows": rows,
        "words": sorted({row.word for row in rows}),
        "flags": FLAGS,
        "archs": ARCHS,
        "indexes": make_indexes(rows),
    }
    args.output.mkdir(parents=True, exist_ok=True)
    for name in ("instructions.h", "instructions.c"):
        text = environment.get_template(f"{name}.j2").render(facts)
        path = args.output / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
