# SPDX-License-Identifier: MIT
"""FLAT, GLOBAL and SCRATCH: addresses, widths, apertures, atomics, loads to LDS; faults of memory and code.

Expected values are from AMD's "Instinct MI300 Instruction Set Architecture" (CDNA3), chapter "Flat Memory
Instructions", and the descriptions in section "FLAT, Scratch and Global Instructions".
"""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import toolchain
from atomic_values import (
    FLOAT,
    FLOATS,
    INTEGER,
    PACKED,
    PACKED_PAIRS,
    PAIRS32,
    PAIRS64,
    f32,
    f64,
    is_same,
)
from pieces import LANES, M32, Bench, fault_of
from sim import ARCHS, Sim, SimError, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)\n"
DATA = random.Random(3).randbytes(8192)
PRIVATE = 96  # bytes of a lane's scratch


def make_bench(arch: str, library: Path, folder: Path) -> Bench:
    """gfx90a's kernels set up flat_scratch, as LLVM's user guide says of GFX9; later ones find it set."""
    if arch != "gfx90a":
        return Bench(arch, library, folder, lds=1024, private=PRIVATE)
    directives = (
        ".amdhsa_user_sgpr_flat_scratch_init 1\n.amdhsa_system_sgpr_private_segment_wavefront_offset 1"
    )
    prologue = "s_add_u32 flat_scratch_lo, s2, s5\ns_addc_u32 flat_scratch_hi, s3, 0"
    return Bench(arch, library, folder, lds=1024, private=PRIVATE, directives=directives, prologue=prologue)


@pytest.fixture(params=ARCHS)
def bench(request: pytest.FixtureRequest, library: Path, tmp_path: Path) -> Bench:
    return make_bench(request.param, library, tmp_path)


def data(at: int, count: int = 4) -> int:
    return int.from_bytes(DATA[at : at + count], "little")


# v[20:21]: the address of data plus 16 bytes a lane; v22: 16 bytes a lane.
ADDRESS = (
    "v_lshlrev_b32 v22, 4, v0\nv_mov_b32 v21, s5\nv_add_co_u32 v20, vcc, s4, v22\ns_nop 1\n"
    "v_addc_co_u32 v21, vcc, 0, v21, vcc\n"
)


def test_addresses(bench: Bench) -> None:
    """A VGPR pair, or an SGPR pair and a VGPR; an offset of 13 bits with a sign, of FLAT 12 bits without."""
    loads = {
        "global_load_dword v4, v[20:21], off": 0,
        "global_load_dword v4, v[20:21], off offset:4095": 4095,
        "global_load_dword v4, v22, s[4:5]": 0,
        "global_load_dword v4, v22, s[4:5] offset:20": 20,
        "s_add_u32 s8, s4, 0x1000\ns_addc_u32 s9, s5, 0\nglobal_load_dword v4, v22, s[8:9] offset:-4096": 0,
        "s_add_u32 s8, s4, 64\ns_addc_u32 s9, s5, 0\nglobal_load_dword v4, v22, s[8:9] offset:-3": 61,
        "flat_load_dword v4, v[20:21]": 0,
        "flat_load_dword v4, v[20:21] offset:4095": 4095,
    }
    got = bench.run([f"{ADDRESS}{text}\n{WAIT}" for text in loads], 1, data=DATA)
    for (text, offset), (words,) in zip(loads.items(), got, strict=True):
        assert words == [data(16 * lane + offset) for lane in range(LANES)], text


OLD = 0x7BADF00D
NARROW = {
    # Bytes, sign, and which half of the register: 0 the whole.
    "ubyte": (1, False, 0),
    "sbyte": (1, True, 0),
    "ushort": (2, False, 0),
    "sshort": (2, True, 0),
    "ubyte_d16": (1, False, 1),
    "ubyte_d16_hi": (1, False, 2),
    "sbyte_d16": (1, True, 1),
    "sbyte_d16_hi": (1, True, 2),
    "short_d16": (2, False, 1),
    "short_d16_hi": (2, False, 2),
}


FORMS = ("global", "flat", "buffer", "scratch")
RESOURCE = "s_mov_b32 s12, s4\ns_mov_b32 s13, s5\ns_mov_b32 s14, -1\ns_mov_b32 s15, 0x20000\n"


def load(form: str, name: str, to: str, offset: int) -> str:
    """A load from a lane's place: v[20:21] hold its address, v22 its offset in data; scratch has its own."""
    place = {
        "global": "v[20:21], off",
        "flat": "v[20:21]",
        "buffer": "v22, s[12:15], 0 offen",
        "scratch": "v23, off",
    }[form]
    return f"{form}_load_{name} {to}, {place} offset:{offset}\n"


def store(form: str, name: str, register: str, offset: int) -> str:
    place = {
        "global": f"v[20:21], {register}, off",
        "flat": f"v[20:21], {register}",
        "buffer": f"{register}, v22, s[12:15], 0 offen",
        "scratch": f"v23, {register}, off",
    }[form]
    return f"{form}_store_{name} {place} offset:{offset}\n"


def prepare(form: str, count: int) -> str:
    """Assembly that a form needs; scratch gets a copy of the lane's place."""
    if form != "scratch":
        return RESOURCE
    copies = [
        load("global", "dwordx4", "v[40:43]", at) + WAIT + store("scratch", "dwordx4", "v[40:43]", at)
        for at in range(0, count, 16)
    ]
    return "v_mov_b32 v23, 0\n" + "".join(copies) + WAIT


@pytest.mark.parametrize("form", FORMS)
def test_loads(bench: Bench, form: str) -> None:
    on = 0xF0F0F0F00FF055AA
    exec_ = f"s_mov_b32 exec_lo, {on & M32:#x}\ns_mov_b32 exec_hi, {on >> 32:#x}\n"
    setup = ADDRESS + prepare(form, 32)
    pieces = [f"{setup}v_mov_b32 v4, {OLD:#x}\n{exec_}{load(form, name, 'v4', 3)}{WAIT}" for name in NARROW]
    got = bench.run(pieces, 1, data=DATA)
    for (name, (size, sign, half)), (words,) in zip(NARROW.items(), got, strict=True):
        for lane in range(LANES):
            at = 16 * lane + 3
            value = int.from_bytes(DATA[at : at + size], "little", signed=sign) & M32
            forms = [value, OLD & 0xFFFF0000 | value & 0xFFFF, OLD & 0xFFFF | (value & 0xFFFF) << 16]
            assert words[lane] == (forms[half] if on >> lane & 1 else OLD), f"{name}, lane {lane}"
    wide = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4}
    pieces = []
    for name, count in wide.items():
        to = "v4" if count == 1 else f"v[4:{3 + count}]"
        old = "\n".join(f"v_mov_b32 v{4 + i}, {OLD:#x}" for i in range(4))
        pieces.append(f"{setup}{old}\n{load(form, name, to, 4)}{WAIT}")
    for count, words in zip(wide.values(), bench.run(pieces, 4, data=DATA), strict=True):
        for lane in range(LANES):
            expected = [data(16 * lane + 4 + 4 * k) if k < count else OLD for k in range(4)]
            assert [w[lane] for w in words] == expected


STORES = {
    # The register, and which of the bytes of v[24:27] come to stand where.
    "byte": ("v24", 0, 0, 1),
    "byte_d16_hi": ("v24", 1, 2, 1),
    "short": ("v24", 2, 0, 2),
    "short_d16_hi": ("v24", 4, 2, 2),
    "dword": ("v24", 8, 0, 4),
    "dwordx2": ("v[24:25]", 4, 0, 8),
    "dwordx3": ("v[24:26]", 4, 0, 12),
    "dwordx4": ("v[24:27]", 0, 0, 16),
}


@pytest.mark.parametrize("form", FORMS)
def test_stores(bench: Bench, form: str) -> None:
    """A lane's place has 1024 bytes here; two lanes store."""
    bench.private = 1024
    words = [0x11223344, 0x55667788, 0x99AABBCC, 0xDDEEFF00]
    sent, memory = struct.pack("<4I", *words), bytearray(DATA)
    piece = ADDRESS.replace("v_lshlrev_b32 v22, 4", "v_lshlrev_b32 v22, 10") + "s_mov_b64 exec, 5\n"
    piece += "\n".join(f"v_mov_b32 v{24 + i}, {word:#x}" for i, word in enumerate(words)) + "\n"
    piece += prepare(form, 528)
    for i, (name, (register, at, first, count)) in enumerate(STORES.items()):
        piece += store(form, name, register, at + 64 * i)
        for lane in (0, 2):
            place = 1024 * lane + at + 64 * i
            memory[place : place + count] = sent[first : first + count]
    for at in range(0, 528, 16) if form == "scratch" else []:
        piece += WAIT + load("scratch", "dwordx4", "v[40:43]", at)
        piece += WAIT + store("global", "dwordx4", "v[40:43]", at)
    bench.run([piece + WAIT], 1, data=DATA)
    assert bench.memory == bytes(memory)


# ---- apertures and scratch


def test_flat_reaches_lds(bench: Bench) -> None:
    """Addresses in the shared aperture: loads, stores and atomics; other lanes reach memory."""
    returns = "glc" if bench.arch == "gfx90a" else "sc0"
    piece = (
        f"{ADDRESS}v_lshlrev_b32 v23, 2, v0\nv_add_u32 v24, 500, v0\nds_write_b32 v23, v24\n"
        "s_mov_b64 s[8:9], src_shared_base\nv_mov_b32 v30, v23\nv_mov_b32 v31, s9\n"
        # Even lanes keep the address of memory.
        "s_mov_b32 s10, 0xaaaaaaaa\ns_mov_b32 s11, s10\nv_cndmask_b32 v20, v20, v30, s[10:11]\n"
        f"v_cndmask_b32 v21, v21, v31, s[10:11]\n{WAIT}"
        f"flat_load_dword v4, v[20:21]\n{WAIT}v_mov_b32 v25, 7\n"
        f"flat_atomic_add v5, v[20:21], v25 {returns}\n{WAIT}flat_load_dword v6, v[20:21]\n{WAIT}"
        f"flat_store_short v[20:21], v25\n{WAIT}flat_load_dword v7, v[20:21]\n{WAIT}"
    )
    (words,) = bench.run([piece], 4, data=DATA)
    for lane in range(LANES):
        old = 500 + lane if lane % 2 else data(16 * lane)
        new = old + 7 & M32
        assert [w[lane] for w in words] == [old, old, new, new & 0xFFFF0000 | 7]


def test_flat_reaches_scratch(bench: Bench) -> None:
    """Addresses in the private aperture: each lane's own bytes."""
    piece = (
        "s_mov_b64 s[8:9], src_private_base\nv_mov_b32 v20, 0\nv_mov_b32 v21, s9\nv_mov_b32 v24, 0\n"
        "v_add_u32 v25, 900, v0\nv_add_u32 v26, 70, v0\n"
        f"flat_store_dwordx2 v[20:21], v[24:25] offset:8\n{WAIT}"
        f"flat_store_byte v[20:21], v26 offset:9\n{WAIT}"
        f"flat_load_dword v4, v[20:21] offset:12\nflat_load_dword v5, v[20:21] offset:8\n{WAIT}"
    )
    (words,) = bench.run([piece], 2)
    lanes = range(LANES)
    assert words == [[900 + lane for lane in lanes], [(70 + lane) << 8 for lane in lanes]]


@dataclass(frozen=True)
class Mode:
    """A way to make an address of 40: the VGPR, the SGPR, the offset, and what sets them."""

    vector: str
    scalar: str
    offset: int
    setup: str = ""

    def load(self, to: str) -> str:
        return f"{to}, {self.vector}, {self.scalar} offset:{self.offset}"

    def store(self, register: str, further: int) -> str:
        return f"{self.vector}, {register}, {self.scalar} offset:{self.offset + further}"


MODES = [
    Mode("v20", "off", 20, "v_mov_b32 v20, 20"),
    Mode("v20", "off", -8, "v_mov_b32 v20, 48"),
    Mode("off", "s8", 24, "s_mov_b32 s8, 16"),
]
LATER_MODES = [
    Mode("off", "off", 40),
    Mode("v20", "s8", 4, "v_mov_b32 v20, 20\ns_mov_b32 s8, 16"),
    Mode("off", "s8", -4, "s_mov_b32 s8, 44"),
]


def test_scratch(bench: Bench) -> None:
    """Modes SV and SS, later ST and SVS; accesses wide, narrow and not aligned; lanes do not meet."""
    modes = MODES + (LATER_MODES if bench.arch != "gfx90a" else [])
    fill = "v_mov_b32 v30, 0\n" + "\n".join(
        f"v_add_u32 v31, {1000 * k}, v0\nscratch_store_dword v30, v31, off offset:{4 * k}" for k in range(16)
    )
    pieces = [
        f"{fill}\n{mode.setup}\n{WAIT}scratch_load_dwordx4 {mode.load('v[4:7]')}\n"
        f"v_add_u32 v24, 0x12340000, v0\n"
        f"scratch_store_short_d16_hi {mode.store('v24', 3)}\n{WAIT}"
        f"scratch_load_dwordx2 v[8:9], v30, off offset:40\n{WAIT}"
        for mode in modes
    ]
    for mode, words in zip(modes, bench.run(pieces, 6), strict=True):
        for lane in range(LANES):
            before = b"".join(struct.pack("<I", 1000 * k + lane) for k in range(16))
            after = bytearray(before)
            after[43:45] = b"\x34\x12"
            expected = [*struct.unpack_from("<4I", before, 40), *struct.unpack_from("<2I", after, 40)]
            assert [w[lane] for w in words] == expected, f"{mode}, lane {lane}"


# ---- atomics


Case = tuple[str, int, Callable[[int, int, int], int], list[tuple[int, int]]]


def cases(arch: str, form: str) -> list[Case]:
    """Name, bits, function, and pairs of memory and operand."""
    found: list[Case] = []
    for name, of in INTEGER.items():
        if name != "rsub":
            found += [(name, 32, of, PAIRS32), (f"{name}_x2", 64, of, PAIRS64)]
    doubles = [(f64(m), f64(x)) for m, x in FLOATS]
    found += [(f"{name}_f64", 64, of, doubles) for name, of in FLOAT.items()]
    if form != "flat" or arch != "gfx90a":
        found.append(("add_f32", 32, FLOAT["add"], [(f32(m), f32(x)) for m, x in FLOATS]))
        found.append(("pk_add_f16", 32, PACKED["pk_add_f16"], PACKED_PAIRS["pk_add_f16"]))
    if arch == "gfx950" or (arch == "gfx942" and form != "buffer"):
        found.append(("pk_add_bf16", 32, PACKED["pk_add_bf16"], PACKED_PAIRS["pk_add_bf16"]))
    return found


SETUPS = {
    "global": "",
    "flat": "v_mov_b32 v21, s5\nv_add_co_u32 v20, vcc, s4, v20\ns_nop 1\n"
    "v_addc_co_u32 v21, vcc, 0, v21, vcc\n",
    "buffer": RESOURCE,
}


@pytest.mark.parametrize("form", ["global", "flat", "buffer"])
def test_atomics(bench: Bench, form: str) -> None:
    """All kinds, with and without the old value."""
    returns = " glc" if bench.arch == "gfx90a" else " sc0"
    start, after, pieces, wanted = b"", [], [], []
    for name, bits, of, pairs in cases(bench.arch, form):
        size = bits // 8
        operand_at, to = ("v24", "v4, ") if bits == 32 else ("v[24:25]", "v[4:5], ")
        for (old, operand), back in itertools.product(pairs, (True, False)):
            place = {
                "global": f"{to if back else ''}v20, {operand_at}, s[4:5]",
                "flat": f"{to if back else ''}v[20:21], {operand_at}",
                "buffer": f"{operand_at}, v20, s[12:15], 0 offen",
            }[form]
            copies = range(bits // 32) if form == "buffer" and back else []
            pieces.append(
                f"v_mov_b32 v24, {operand & M32:#x}\nv_mov_b32 v25, {operand >> 32:#x}\nv_mov_b32 v4, 0\n"
                f"v_mov_b32 v5, 0\nv_mov_b32 v20, {len(start):#x}\ns_mov_b64 exec, 1\n{SETUPS[form]}"
                f"{form}_atomic_{name} {place}{returns if back else ''}\n{WAIT}"
                + "\n".join(f"v_mov_b32 v{4 + i}, v{24 + i}" for i in copies)
            )
            wanted.append(old if back else 0)
            start += old.to_bytes(size, "little")
            after.append((name, size, of(old, operand, bits) & (1 << bits) - 1, (old, operand)))
    got = bench.run(pieces, 2, lanes=1, data=start)
    place = 0
    for (name, size, new, operands), old, words in zip(after, wanted, got, strict=True):
        mask = (1 << 8 * size) - 1
        assert (words[0][0] | words[1][0] << 32) & mask == old, f"{name} {operands}"
        found = int.from_bytes(bench.memory[place : place + size], "little")
        assert is_same(found, new, 8 * size, name.startswith("add_f")), (
            f"{name} {operands}: {found:#x}, {new:#x}"
        )
        place += size


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("form", ["global", "flat", "buffer"])
def test_compare_and_swap(bench: Bench, form: str, bits: int) -> None:
    """Of the data the low part is the new value, the high part what memory is compared with."""
    returns = "glc" if bench.arch == "gfx90a" else "sc0"
    size, suffix = bits // 8, "" if bits == 32 else "_x2"
    given = b"".join((lane % 5 << bits - 8 | 3).to_bytes(size, "little") for lane in range(LANES))
    operands, to = ("v[24:25]", "v4") if bits == 32 else ("v[24:27]", "v[4:5]")
    compare = (2 << bits - 8) | 3
    parts = [7, compare] if bits == 32 else [7, 0, compare & M32, compare >> 32]
    moves = "\n".join(f"v_mov_b32 v{24 + i}, {part:#x}" for i, part in enumerate(parts))
    place = {
        "global": f"{to}, v20, {operands}, s[4:5]",
        "flat": f"{to}, v[20:21], {operands}",
        "buffer": f"{operands}, v20, s[12:15], 0 offen",
    }[form]
    piece = (
        f"{moves}\nv_mov_b32 v5, 0\nv_mul_u32_u24 v20, {size}, v0\n{SETUPS[form]}"
        f"{form}_atomic_cmpswap{suffix} {place} {returns}\n{WAIT}"
    )
    if form == "buffer":
        piece += "\n".join(f"v_mov_b32 v{4 + i}, v{24 + i}" for i in range(bits // 32))
    (words,) = bench.run([piece], 2, data=given)
    for lane in range(LANES):
        old = lane % 5 << bits - 8 | 3
        assert words[0][lane] | words[1][lane] << 32 == old
        new = 7 if old == compare else old
        assert bench.memory[size * lane : size * lane + size] == new.to_bytes(size, "little")


def test_lanes_of_one_word(bench: Bench) -> None:
    """Atomics of lanes at one address happen one after another."""
    returns = "glc" if bench.arch == "gfx90a" else "sc0"
    piece = f"v_mov_b32 v20, 0\nv_mov_b32 v24, 3\nglobal_atomic_add v4, v20, v24, s[4:5] {returns}\n{WAIT}"
    ((words,),) = bench.run([piece], 1)
    assert sorted(words) == [3 * lane for lane in range(LANES)]
    assert bench.memory[:4] == (3 * LANES).to_bytes(4, "little")


# ---- loads to LDS


def test_denormals_of_sums_in_memory(library: Path, tmp_path: Path) -> None:
    """gfx90a flushes those of sources ("MI200", "Denorm Handling Rules"); the others do not, says LLVM."""
    for arch in ("gfx90a", "gfx942"):
        bench = make_bench(arch, library, tmp_path)
        piece = (
            f"{ADDRESS}v_mov_b32 v24, 0x00800000\nglobal_atomic_add_f32 v[20:21], v24, off\n{WAIT}"
            f"global_load_dword v4, v[20:21], off\n{WAIT}"
        )
        ((got,),) = bench.run([piece], 1, data=bytes([0, 0, 0x40, 0] * 256))
        assert got == [0x00800000 if arch == "gfx90a" else 0x00C00000] * LANES


TO_LDS = {
    "dword": (4, False),
    "ubyte": (1, False),
    "sbyte": (1, True),
    "ushort": (2, False),
    "sshort": (2, True),
    "dwordx3": (12, False),
    "dwordx4": (16, False),
}


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_loads_to_lds(arch: str, library: Path, tmp_path: Path) -> None:
    """LDS_ADDR = M0 + inst_offset + lane * 4, of 3 and 4 words lane * 16; memory has the offset too."""
    bench = make_bench(arch, library, tmp_path)
    bench.lds = 2048
    names = [n for n, (size, _) in TO_LDS.items() if size <= 4 or arch == "gfx950"]
    on = 0xFFFF0000FFFF7FFF
    pieces = []
    for name in names:
        unit = max(4, TO_LDS[name][0])
        clear = "v_mov_b32 v28, 0\nv_lshlrev_b32 v29, 4, v0\n" + "\n".join(
            f"ds_write_b32 v29, v28 offset:{1024 * h + 4 * k}" for h in range(2) for k in range(4)
        )
        pieces.append(
            f"{clear}\n{ADDRESS}{WAIT}s_mov_b32 m0, {256 | 1 << (18 if arch == 'gfx950' else 16):#x}\n"
            f"s_mov_b32 exec_lo, {on & M32:#x}\ns_mov_b32 exec_hi, {on >> 32:#x}\n"
            f"global_load_lds_{name} v[20:21], off offset:8\n{WAIT}s_mov_b64 exec, -1\n"
            f"v_mul_u32_u24 v29, {16 if unit == 12 else unit}, v0\n"
            + "\n".join(f"ds_read_b32 v{4 + k}, v29 offset:{264 + 4 * k}" for k in range(unit // 4))
        )
    for name, words in zip(names, bench.run(pieces, 4, data=DATA), strict=True):
        size, sign = TO_LDS[name]
        for lane in range(LANES):
            at = 16 * lane + 8
            if size < 4:
                expected = [int.from_bytes(DATA[at : at + size], "little", signed=sign) & M32]
            else:
                expected = [data(at + 4 * k) for k in range(size // 4)]
            if not on >> lane & 1:
                expected = [0] * len(expected)
            assert [w[lane] for w in words[: len(expected)]] == expected, f"{name}, lane {lane}"


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_scratch_to_lds(arch: str, library: Path, tmp_path: Path) -> None:
    bench = make_bench(arch, library, tmp_path)
    names = [name for name, (size, _) in TO_LDS.items() if size <= 4]
    pieces = [
        f"v_mov_b32 v20, 8\nv_mul_u32_u24 v24, 0xfedc, v0\n"
        f"scratch_store_dword v20, v24, off\ns_mov_b32 m0, 64\n"
        f"{WAIT}scratch_load_lds_{name} v20, off\n{WAIT}v_lshlrev_b32 v29, 2, v0\n"
        "ds_read_b32 v4, v29 offset:64\n"
        for name in names
    ]
    for name, (words,) in zip(names, bench.run(pieces, 1), strict=True):
        size, sign = TO_LDS[name]
        raws = [(0xFEDC * lane).to_bytes(4, "little")[:size] for lane in range(LANES)]
        assert words == [int.from_bytes(raw, "little", signed=sign) & M32 for raw in raws], name


# ---- faults


def test_memory_faults(bench: Bench) -> None:
    """Kind, lane, instruction and address."""
    size = 1024
    far = f"{ADDRESS}s_mov_b32 exec_hi, 0\n"
    faults = {
        f"{far}global_load_dword v4, v[20:21], off offset:{size - 16 * 10}": ("out of bounds", 10, size),
        f"{far}global_load_dwordx4 v[4:7], v22, s[4:5] offset:{size - 16 * 8 - 4}": (
            "out of bounds",
            8,
            size - 4,
        ),
        f"{far}global_store_byte v22, v0, s[4:5] offset:-17": ("out of bounds", 0, -17),
        f"{far}flat_store_dword v[20:21], v0 offset:{size - 16}": ("out of bounds", 1, size),
        f"{far}global_atomic_add v22, v0, s[4:5] offset:6": ("misaligned", 0, 6),
        f"{far}global_atomic_add_x2 v22, v[4:5], s[4:5] offset:4": ("misaligned", 0, 4),
        "v_mov_b32 v20, 0\nglobal_store_dword v20, v0, s[0:1]": ("store to read-only memory", 0, None),
        "s_getpc_b64 s[8:9]\nv_mov_b32 v20, 0\nglobal_store_dword v20, v0, s[8:9]": (
            "store to read-only memory",
            0,
            None,
        ),
        "v_lshlrev_b32 v20, 2, v0\nscratch_load_dword v4, v20, off": ("out of bounds", PRIVATE // 4, None),
        f"v_mov_b32 v20, {PRIVATE - 4}\nscratch_store_dwordx2 v20, v[4:5], off": ("out of bounds", 0, None),
        "s_mov_b64 s[8:9], src_shared_base\nv_mov_b32 v20, 0x1000\nv_mov_b32 v21, s9\n"
        "flat_load_dword v4, v[20:21]": ("out of bounds", 0, None),
        "s_mov_b64 s[8:9], src_private_base\nv_mov_b32 v20, 0x1000\nv_mov_b32 v21, s9\n"
        "flat_load_dword v4, v[20:21]": ("out of bounds", 0, None),
        "v_mov_b32 v20, 8\nv_mov_b32 v21, 0\nglobal_load_dword v4, v[20:21], off": ("out of bounds", 0, None),
    }
    for text, (fault, lane, offset) in faults.items():
        image = bench.assemble([text], 0, 1)
        with Sim(bench.library, bench.arch) as sim:
            given = sim.malloc(size)
            with pytest.raises(SimError):
                bench.launch(sim, image, pack(sim.malloc(64), given, layout="PP"))
            (report,) = sim.reports
            assert (report.fault, report.lane) == (fault, lane), text
            assert report.instruction.split()[0] == text.splitlines()[-1].split()[0]
            if offset is not None:
                assert report.address == given + offset


UNKNOWN = {
    # Exports and images, which CDNA lacks; opcodes that are not there; bits that must be 0.
    "0xc4000000, 0": "unknown encoding",
    "0xf0000000, 0": "unknown encoding",
    "0xbf9f0000": "unknown opcode",
    "0x7e00ff00": "unknown opcode",
    "0xdd680000, 0": "unknown opcode",
    "0xbf8a0001": "reserved bits",
}


@pytest.mark.parametrize("words", UNKNOWN)
@pytest.mark.parametrize("before", [0, 3])
def test_unknown_encodings(bench: Bench, words: str, before: int) -> None:
    """The bytes and where they stand, as an offset from the kernel's start."""
    report = fault_of(bench, "s_nop 0\n" * before + f".long {words}")
    first = fault_of(bench, "s_trap 2")  # stands where the piece begins
    assert report.fault == "unknown instruction"
    assert f"{int(words.split(',', maxsplit=1)[0], 16):08x}" in report.text
    assert UNKNOWN[words] in report.text
    assert report.pc == first.pc + 4 * before


@pytest.mark.parametrize(
    ("text", "fault"), [("s_nop 0", "out of bounds"), (".long 0xd1000000", "unknown instruction")]
)
def test_end_of_code(text: str, fault: str, library: Path, tmp_path: Path) -> None:
    """A kernel that runs over its end, and an instruction of which a word is missing."""
    image = toolchain.assemble(text, "gfx942", tmp_path / "end.co")
    with Sim(library, "gfx942") as sim:
        with pytest.raises(SimError):
            sim.launch(sim.load(image), "kernel", (64, 1, 1), (64, 1, 1), bytes(8))
        assert sim.reports[0].fault == fault
