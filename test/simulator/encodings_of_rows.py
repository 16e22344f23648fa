# SPDX-License-Identifier: MIT
"""Random legal encodings of every row of the tables, made from the layouts in AMD's ISA documents.

The layouts stand here a second time, next to those in simulator/decode/decode.c: one checks the other.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from generate_tables import ARCHS, VOP3_BASE, Field, Row


@dataclass(frozen=True)
class Layout:
    """An encoding: its leading bits, how many words it has, and lowest bit and width of each field."""

    base: int
    words: int
    fields: dict[str, tuple[int, int]]


THREE_SOURCES = {"dst": (0, 8), "src0": (32, 9), "src1": (41, 9), "src2": (50, 9)}
BUFFER = {"data": (40, 8), "dst": (40, 8)}
FLAT = {"op": (18, 7), "data": (40, 8), "dst": (56, 8)}
LAYOUTS = {
    "sop1": Layout(0xBE800000, 1, {"op": (8, 8), "dst": (16, 7), "src0": (0, 8)}),
    "sop2": Layout(0x80000000, 1, {"op": (23, 7), "dst": (16, 7), "src0": (0, 8), "src1": (8, 8)}),
    "sopc": Layout(0xBF000000, 1, {"op": (16, 7), "src0": (0, 8), "src1": (8, 8), "imm": (8, 8)}),
    "sopk": Layout(0xB0000000, 1, {"op": (23, 5), "dst": (16, 7), "src0": (16, 7), "imm": (0, 16)}),
    "sopp": Layout(0xBF800000, 1, {"op": (16, 7), "imm": (0, 16)}),
    "smem": Layout(0xC0000000, 2, {"op": (18, 8), "dst": (6, 7), "data": (6, 7), "imm": (6, 7)}),
    "vop1": Layout(0x7E000000, 1, {"op": (9, 8), "dst": (17, 8), "src0": (0, 9)}),
    "vop2": Layout(0x00000000, 1, {"op": (25, 6), "dst": (17, 8), "src0": (0, 9), "src1": (9, 8)}),
    "vopc": Layout(0x7C000000, 1, {"op": (17, 8), "src0": (0, 9), "src1": (9, 8)}),
    "vop3": Layout(0xD0000000, 2, {"op": (16, 10), "sdst": (8, 7)} | THREE_SOURCES),
    "vop3p": Layout(0xD3800000, 2, {"op": (16, 7)} | THREE_SOURCES),
    "mai": Layout(0xD3800000, 2, {"op": (16, 7)} | THREE_SOURCES),
    "ds": Layout(
        0xD8000000, 2, {"op": (17, 8), "addr": (32, 8), "data": (40, 8), "data2": (48, 8), "dst": (56, 8)}
    ),
    "mubuf": Layout(0xE0000000, 2, {"op": (18, 7)} | BUFFER),
    "mtbuf": Layout(0xE8000000, 2, {"op": (15, 4)} | BUFFER),
    "flat": Layout(0xDC000000, 2, FLAT),
    "global": Layout(0xDC008000, 2, FLAT),
    "scratch": Layout(0xDC004000, 2, FLAT),
}

SDWA, DPP, LITERAL, VGPR = 249, 250, 255, 256
EXEC, VCC, M0, TTMP = 126, 106, 124, 108


@dataclass(frozen=True)
class Encoding:
    """The words of an instruction, and its members."""

    arch: str
    row: Row
    form: str
    words: tuple[int, ...]


class Maker:
    """Makes one encoding; `form` is the encoding that it takes."""

    def __init__(self, rng: random.Random, arch: str, row: Row, form: str) -> None:
        self.rng, self.arch, self.row, self.form = rng, arch, row, form
        self.layout = LAYOUTS[form if form in LAYOUTS else row.format]
        opcode = row.opcodes[ARCHS.index(arch)]
        assert opcode is not None
        self.value = self.layout.base
        self.size = self.layout.words
        self.literal: int | None = None
        # One scalar value may be read by a vector instruction, and VCC counts.
        reads_vcc = (
            any(f.source == "VCC" for f in row.fields if f.slot == "SRC2") or "div_fmas" in row.mnemonic
        )
        reads_literal = any(f.source == "LITERAL" for f in row.fields) and row.format == "vop2"
        self.scalar_left = not reads_vcc and not reads_literal
        self.put("op", opcode + (VOP3_BASE[row.format] if form == "vop3" and row.format in VOP3_BASE else 0))

    def set(self, at: int, value: int) -> None:
        """Ors a value into the word, shifted to a bit."""
        self.value |= value << at

    def put(self, name: str, value: int) -> None:
        """Writes a field of the layout."""
        at, width = self.layout.fields[name]
        assert 0 <= value < 1 << width, (self.row.mnemonic, name, value)
        self.set(at, value)

    def flip(self, at: int, count: int = 1) -> int:
        """Fills some bits at random, mostly with zeros; returns them."""
        value = self.rng.randrange(1 << count) if self.rng.random() < 0.4 else 0
        self.set(at, value)
        return value

    def vgpr(self, bits: int) -> int:
        """A VGPR that holds this many bits: pairs start at even numbers."""
        count = (bits + 31) // 32
        index = self.rng.choice((self.rng.randrange(256), 0, 256 - count))
        index = min(index, 256 - count)
        return index & ~1 if count > 1 else index

    def sgpr(self, bits: int, top: int = 102) -> int:
        """An SGPR that holds this many bits."""
        count = (bits + 31) // 32
        align = 4 if count > 2 else count
        if count <= 2 and top > 100 and self.rng.random() < 0.2:
            return self.rng.choice((VCC, EXEC, TTMP + 2, M0) if count == 1 else (VCC, EXEC, TTMP + 2))
        return self.rng.randrange(0, (top - count) // align + 1) * align

    def constant(self, field: Field) -> int:
        """An inline constant that suits the type."""
        floats = field.type in ("F", "BF") or field.element >= 32
        if floats and self.rng.random() < 0.5:
            return self.rng.randrange(240, 249)
        return self.rng.randrange(128, 209)

    def make_literal(self, field: Field) -> int:
        """A word; some of them could be inline constants too."""
        if field.element == 16 and field.type in "BIU" and self.rng.random() < 0.2:
            return self.rng.choice((0xFFFF8001, 0xFFFFFFFE))
        if field.element == 16:
            return self.rng.choice((self.rng.randrange(0x10000), 1, 0xFFFF, 0x3C00, 0xB800))
        likely = (0, 64, 65, 0xFFFFFFF0, 0xFFFFFFEF, 0x3F800000, 0xC0800000, 0x3E22F983, 0x80000000)
        return self.rng.choice(
            (self.rng.randrange(1 << 32), self.rng.randrange(1 << 32), self.rng.choice(likely))
        )

    def source(self, field: Field, literal: bool) -> int:
        """A source of 8 or 9 bits."""
        vector = field.source in ("SRC", "VGPR")
        kinds = (["v", "v", "v"] if vector else []) + ["c"]
        if not vector or self.scalar_left:
            kinds += ["s", "s"] if vector else ["s", "s", "s"]
            if literal and self.literal is None:
                kinds.append("l")
        kind = self.rng.choice(kinds)
        if kind == "v":
            return VGPR + self.vgpr(field.bits)
        if kind == "c":
            return self.constant(field)
        self.scalar_left = False
        if kind == "l":
            self.literal = self.make_literal(field)
            return LITERAL
        return self.sgpr(field.bits)

    def operand(self, field: Field) -> None:
        """Writes one operand of the row into its place."""
        slot, short = field.slot.lower(), self.form.startswith(("sop", "vop1", "vop2", "vopc"))
        if slot == "imm":
            self.immediate(field)
        elif field.source == "LITERAL":
            self.literal = self.make_literal(field)
        elif field.source == "VCC":
            if self.form == "vop3":
                self.put(slot, self.sgpr(64))
        elif field.source == "SDST":
            ordinary = self.row.format == "smem" or self.row.mnemonic.startswith("v_read")
            self.put(slot, self.sgpr(field.bits, 96 if ordinary else 102))
        elif field.source == "LANE":
            choices = (self.rng.randrange(128, 192), self.rng.randrange(102), M0)
            self.put(slot, self.rng.choice(choices) if self.scalar_left else self.rng.randrange(128, 192))
            self.scalar_left = False
        elif field.source in ("SSRC", "SRC"):
            self.put(slot, self.source(field, short))
        elif field.source == "AGPR" and slot == "src0" and self.form == "vop3p":
            self.put(slot, VGPR + self.vgpr(field.bits))
        elif slot in ("src0", "src1", "src2") and (self.form == "vop3" or slot == "src0"):
            only = self.row.format == "vop3" or slot == "src0"
            self.put(slot, VGPR + self.vgpr(field.bits) if only else self.source(field, False))
        else:
            self.put(slot, self.vgpr(field.bits))

    def immediate(self, field: Field) -> None:
        """The 16 bits of SOPK and SOPP."""
        value = self.rng.choice((0, 1, self.rng.randrange(0x8000), 0xFFFF))
        if field.source == "IMM_HWREG":
            value = (
                self.rng.choice((1, 2, 3, 6, 7, 15))
                | self.rng.randrange(32) << 6
                | self.rng.randrange(32) << 11
            )
        if field.source == "IMM_WAITCNT":
            value = self.rng.randrange(0x10000) & 0xCF7F
        if field.source == "IMM_GPR_IDX":
            value = self.rng.randrange(16)
        if field.source == "IMM_SENDMSG":
            value = 1
        if field.source == "IMM_PROBE":
            value = self.rng.randrange(128)
        self.put("imm", value)

    def floats(self) -> list[int]:
        """Numbers of the sources that may be negated."""
        return [
            int(f.slot[3])
            for f in self.row.fields
            if f.slot in ("SRC0", "SRC1", "SRC2")
            and f.type in ("F", "BF")
            and f.source != "LITERAL"
            and "plain" not in self.row.flags
        ]

    def finish(self) -> Encoding:
        """Splits the value into words."""
        size = self.size
        if self.literal is not None:
            self.set(32 * size, self.literal)
            size += 1
        words = tuple(self.value >> 32 * i & 0xFFFFFFFF for i in range(size))
        return Encoding(self.arch, self.row, self.form, words)


def make_short(m: Maker) -> None:
    """VOP1, VOP2, VOPC and the scalar formats, without modifiers."""
    for field in m.row.fields:
        m.operand(field)


def make_vop3(m: Maker) -> None:
    """VOP3A and VOP3B."""
    flags = m.row.flags
    for field in m.row.fields:
        m.operand(field)
    vop3b = any(f.slot == "SDST" for f in m.row.fields)
    if "bitop3" in flags:
        m.flip(61, 3)
        m.flip(8, 3)
        m.flip(59, 2)
    else:
        for i in m.floats():
            m.flip(61 + i)
            if not vop3b:
                m.flip(8 + i)
    if "omod" in flags:
        m.flip(59, 2)
    if "clamp" in flags:
        m.flip(15)
    if "op_sel" in flags:
        for i in range(sum(f.slot.startswith("SRC") for f in m.row.fields)):
            m.flip(11 + i)
        m.flip(14)
    if "op_sel4" in flags:
        m.flip(11, 4)
    if "permlane" in flags:
        m.flip(11, 2)


def make_sdwa(m: Maker) -> None:
    """SDWA of VOP1, VOP2 and VOPC."""
    row, rng = m.row, m.rng
    m.set(0, SDWA)
    m.size = 2
    sources = [f for f in row.fields if f.slot in ("SRC0", "SRC1")]
    for field in row.fields:
        if field.slot == "DST" and field.source == "VGPR":
            m.put("dst", m.vgpr(32 if field.bits < 32 else field.bits))
    for i, field in enumerate(sources):
        at, scalar = ((32, 55), (9, 63))[i]
        if m.scalar_left and rng.random() < 0.2:
            m.scalar_left = False
            m.set(at, rng.randrange(100))
            m.set(scalar, 1)
        else:
            m.set(at, m.vgpr(32))
        m.set((48, 56)[i], rng.randrange(7))
        if field.type in ("F", "BF"):
            m.flip((52, 60)[i])
            m.flip((53, 61)[i])
        elif "fp8" not in row.flags:
            m.flip((51, 59)[i])
    if row.format == "vopc":
        if rng.random() < 0.5:
            m.set(40, rng.randrange(0, 100, 2))
            m.set(47, 1)
        return
    m.set(40, 6 if "fp8" in row.flags else rng.randrange(7))
    m.set(43, 0 if "fp8" in row.flags else rng.randrange(3))
    m.flip(45)
    if "omod" in row.flags and row.fields[0].type == "F":
        m.flip(46, 2)


def make_dpp(m: Maker) -> None:
    """DPP of VOP1 and VOP2."""
    row, rng = m.row, m.rng
    m.set(0, DPP)
    m.size = 2
    for field in row.fields:
        if field.slot == "SRC0":
            m.set(32, m.vgpr(field.bits))
        elif field.source == "VGPR":
            m.put(field.slot.lower(), m.vgpr(field.bits))
    controls = (
        rng.randrange(256),
        0x101,
        0x10F,
        0x112,
        0x121,
        0x130,
        0x134,
        0x138,
        0x13C,
        0x140,
        0x141,
        0x142,
        0x143,
    )
    m.set(40, rng.randrange(0x150, 0x160) if "dpp64" in row.flags else rng.choice((*controls, 0x155)))
    m.flip(51)
    m.set(56, rng.randrange(256))
    for i in m.floats():
        m.flip(52 + 2 * i)
        m.flip(53 + 2 * i)


def make_vop3p(m: Maker) -> None:
    """Packed math."""
    flags = m.row.flags
    for field in m.row.fields:
        m.operand(field)
    count = sum(f.slot.startswith("SRC") for f in m.row.fields)
    high = 0 if "mix" in flags else 7
    if "op_sel" in flags or "mix" in flags:
        m.flip(11, count)
        high ^= m.rng.randrange(1 << count) if m.rng.random() < 0.4 else 0
    m.set(59, high & 3)
    m.set(14, high >> 2)
    if "neg" in flags or "mix" in flags:
        m.flip(61, count)
        m.flip(8, count)
    if "clamp" in flags:
        m.flip(15)


def make_matrix(m: Maker) -> None:
    """MFMA; the scaled ones have two words in front."""
    row, rng = m.row, m.rng
    formats = {0: 256, 1: 256, 2: 192, 3: 192, 4: 128}
    widths = {}
    if "f8f6f4" in row.flags:
        a, b = rng.randrange(5), rng.randrange(5)
        m.set(8, a)
        m.set(61, b)
        widths = {"SRC0": formats[a], "SRC1": formats[b]}
    if "cbsz" in row.flags:
        m.flip(8, 3)
        m.flip(11, 4)
    if "blgp" in row.flags:
        m.flip(61, 3)
    acc_cd = rng.randrange(2)
    m.set(15, acc_cd)
    by_slot = {f.slot: f for f in row.fields}
    dst = m.vgpr(by_slot["DST"].bits)
    m.put("dst", dst)
    for i in range(2):
        m.set(59 + i, rng.randrange(2))
        m.put(f"src{i}", VGPR + m.vgpr(widths.get(f"SRC{i}", by_slot[f"SRC{i}"].bits)))
    c = by_slot["SRC2"]
    if c.source == "VGPR":
        m.put("src2", VGPR + m.vgpr(32))
    elif rng.random() < 0.3:
        m.put("src2", 242 if c.type == "F" else rng.randrange(128, 209))
    else:
        m.put("src2", VGPR + dst)
    if "scaled" in row.flags:
        m.set(11, 1)
        low = 0xD3AC0000 | rng.randrange(4) << 11
        high = rng.randrange(4) << 27 | (VGPR + m.vgpr(32)) | (VGPR + m.vgpr(32)) << 9
        m.value = m.value << 64 | high << 32 | low
        m.size = 4


def make_smem(m: Maker) -> None:
    """Scalar memory."""
    row, rng = m.row, m.rng
    if not any(f.slot == "BASE" for f in row.fields):
        for field in row.fields:
            m.operand(field)
        return
    for field in row.fields:
        if field.slot == "BASE":
            m.set(0, m.sgpr(field.bits, 100) >> 1)
        else:
            m.operand(field)
    if "dcache" not in row.mnemonic and "probe" not in row.mnemonic:
        m.flip(16)
    match rng.randrange(3):
        case 0:  # an offset
            m.set(17, 1)
            low = 0 if "buffer" in row.mnemonic else -(1 << 20)
            m.set(32, rng.choice((0, 4, rng.randrange(low, 1 << 20))) & 0x1FFFFF)
        case 1:  # an SGPR in its place
            m.set(32, rng.choice((rng.randrange(102), M0)))
        case 2:  # both
            m.set(17, 1)
            m.set(14, 1)
            m.set(32, rng.randrange(1 << 20))
            m.set(57, rng.randrange(102))


def make_ds(m: Maker) -> None:
    """LDS; GWS keeps its data in the place of the address."""
    gws = "gds" in m.row.flags
    for field in m.row.fields:
        if gws:
            m.set(32, m.vgpr(32) & ~1)
        else:
            m.put(field.slot.lower(), m.vgpr(field.bits))
    if gws:
        m.set(16, 1)
        m.flip(0, 16)
    elif m.row.fields:
        m.flip(0, 16)
        if any(f.slot != "ADDR" for f in m.row.fields):
            m.flip(25)


def is_float_atomic(row: Row) -> bool:
    """LLVM drops sc1 from these, and knows some of them with VGPRs only."""
    return "atomic" in row.flags and re.search(r"_b?f(16|32|64)$", row.mnemonic) is not None


def make_buffer(m: Maker) -> None:
    """MUBUF and MTBUF."""
    row, rng, old = m.row, m.rng, m.arch == "gfx90a"
    if "bare" in row.flags:
        if row.mnemonic in ("buffer_inv", "buffer_wbl2") and not old:
            m.flip(14)
            m.flip(15)
        return
    direct = "lds" in row.flags or ("lds950" in row.flags and m.arch == "gfx950")
    if direct and row.format == "mubuf" and rng.random() < 0.3:
        m.set(16, 1)
    else:
        data = next((f for f in row.fields if f.slot == "DATA"), row.fields[0])
        m.put("data", m.vgpr(data.bits))
        m.flip(55)
    mode = rng.randrange(4)
    m.set(12, mode)
    if mode:
        m.set(32, m.vgpr(64 if mode == 3 else 32))
    m.flip(0, 12)
    m.flip(14)
    if row.format == "mubuf":
        m.flip(17)
        if not is_float_atomic(row):
            m.flip(15)
    else:
        m.flip(54)
        m.flip(53)
        m.set(19, rng.randrange(128))
    m.set(48, m.sgpr(128, 100) >> 2)
    m.set(56, rng.choice((rng.randrange(102), M0, rng.randrange(128, 209))))


def make_flat(m: Maker) -> None:
    """FLAT, GLOBAL and SCRATCH."""
    row, rng = m.row, m.rng
    returning = "atomic" in row.flags and rng.random() < 0.5
    m.set(16, int(returning))
    for field in row.fields:
        if field.slot != "DST" or "atomic" not in row.flags or returning:
            m.put(field.slot.lower(), m.vgpr(field.bits))
    if row.fields and not (is_float_atomic(row) and returning):
        m.flip(55)
    if "atomic" not in row.flags:
        m.flip(16)
    m.flip(17)
    if not is_float_atomic(row):
        m.flip(25)
    m.flip(0, 12 if row.format == "flat" else 13)
    if row.format == "flat":
        m.set(32, m.vgpr(64))
        return
    saddr = rng.random() < 0.5
    wide = row.format == "global"
    m.set(48, m.sgpr(64 if wide else 32, 100) if saddr else 0x7F)
    vaddr = wide or not saddr
    if row.format == "scratch" and m.arch != "gfx90a":
        vaddr = rng.random() < 0.5
        m.set(13, vaddr)
    if vaddr:
        m.set(32, m.vgpr(64 if wide and not saddr else 32))


def forms(row: Row) -> list[str]:
    """The encodings that a row has."""
    found = [row.format]
    found += [form for form in ("vop3", "sdwa") if form in row.flags]
    if "dpp" in row.flags or "dpp64" in row.flags:
        found.append("dpp")
    return found


def make(rng: random.Random, arch: str, row: Row, form: str) -> Encoding:
    """One random encoding of a row."""
    m = Maker(rng, arch, row, form)
    makers = {
        **{"vop3": make_vop3, "sdwa": make_sdwa, "dpp": make_dpp, "vop3p": make_vop3p, "mai": make_matrix},
        **{"smem": make_smem, "ds": make_ds, "mubuf": make_buffer, "mtbuf": make_buffer},
        **{"flat": make_flat, "global": make_flat, "scratch": make_flat},
    }
    makers.get(form, make_short)(m)
    return m.finish()


def corpus(rows: list[Row], arch: str, samples: int) -> Iterator[Encoding]:
    """`count` encodings of every row in every form, on an architecture; the same ones every time."""
    for row in rows:
        if row.opcodes[ARCHS.index(arch)] is None:
            continue
        for form in forms(row):
            rng = random.Random(f"{arch} {row.mnemonic} {form}")
            for _ in range(samples):
                yield make(rng, arch, row, form)
