# SPDX-License-Identifier: MIT
"""DS: LDS with every instruction that reads, writes or exchanges, with lanes off, and moves between lanes.

Expected values are from AMD's "Instinct MI300 Instruction Set Architecture" (CDNA3) and "CDNA4 Instruction
Set Architecture", chapter "Data Share Operations" and section "DS Instructions"; the patterns of ds_swizzle
and global wave sync from "Vega Instruction Set Architecture", which has them in full.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
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
    real,
)
from pieces import ALL, LANES, M32, Bench, fault_of
from sim import ARCHS, Sim, SimError, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

LDS = 8192
WAIT = "s_waitcnt lgkmcnt(0)\n"
HALF = 0xAAAAAAAA0F0F00FF  # EXEC with some lanes off


@pytest.fixture(params=ARCHS)
def bench(request: pytest.FixtureRequest, library: Path, tmp_path: Path) -> Bench:
    return Bench(request.param, library, tmp_path, lds=LDS)


def exec_(mask: int) -> str:
    return f"s_mov_b32 exec_lo, {mask & M32:#x}\ns_mov_b32 exec_hi, {mask >> 32:#x}\n"


# v10: a lane's place in LDS, 64 bytes each; word k there is 1000 * lane + 100 + k.
FILL = (
    "v_lshlrev_b32 v10, 6, v0\nv_mul_u32_u24 v11, 1000, v0\n"
    + "\n".join(f"v_add_u32 v12, {100 + k}, v11\nds_write_b32 v10, v12 offset:{4 * k}" for k in range(16))
    + "\n"
    + WAIT
)


def filled(lane: int, at: int, count: int) -> bytes:
    """What FILL put `at` bytes into a lane's place."""
    words = struct.pack("<16I", *(1000 * lane + 100 + k for k in range(16)))
    return words[at : at + count]


OLD = 0x7BADF00D
READS = {
    "read_b32": (4, 1, 0, "u"),
    "read_b64": (8, 2, 0, "u"),
    "read_b96": (12, 3, 0, "u"),
    "read_b128": (16, 4, 0, "u"),
    "read_u8": (1, 1, 0, "u"),
    "read_i8": (1, 1, 0, "i"),
    "read_u16": (2, 1, 0, "u"),
    "read_i16": (2, 1, 0, "i"),
    "read_u8_d16": (1, 1, 1, "u"),
    "read_u8_d16_hi": (1, 1, 2, "u"),
    "read_i8_d16": (1, 1, 1, "i"),
    "read_i8_d16_hi": (1, 1, 2, "i"),
    "read_u16_d16": (2, 1, 1, "u"),
    "read_u16_d16_hi": (2, 1, 2, "u"),
}


def loaded(raw: bytes, kind: str, half: int) -> list[int]:
    """The registers after a load of `raw`; d16 forms keep the other half."""
    if len(raw) >= 4:
        return list(struct.unpack(f"<{len(raw) // 4}I", raw))
    value = int.from_bytes(raw, "little", signed=kind == "i")
    if half == 0:
        return [value & M32]
    low, high = (value & 0xFFFF, OLD >> 16) if half == 1 else (OLD & 0xFFFF, value & 0xFFFF)
    return [low | high << 16]


@pytest.mark.parametrize("mask", [ALL, HALF])
def test_reads(bench: Bench, mask: int) -> None:
    pieces = []
    for name, (size, words, _, _) in READS.items():
        to = "v4" if words == 1 else f"v[4:{3 + words}]"
        old = "\n".join(f"v_mov_b32 v{4 + i}, {OLD:#x}" for i in range(4))
        # Offsets that cross the places' words where the access allows.
        offset = 16 if size >= 8 else 5 if size == 1 else 6 if size == 2 else 20
        pieces.append(f"{FILL}{old}\n{exec_(mask)}ds_{name} {to}, v10 offset:{offset}\n{WAIT}")
    got = bench.run(pieces, 4)
    for (name, (size, words, half, kind)), piece in zip(READS.items(), got, strict=True):
        offset = 16 if size >= 8 else 5 if size == 1 else 6 if size == 2 else 20
        for lane in range(LANES):
            expected = [OLD] * 4
            if mask >> lane & 1:
                expected[:words] = loaded(filled(lane, offset, size), kind, half)
            assert [word[lane] for word in piece] == expected, f"{name}, lane {lane}"


@pytest.mark.parametrize("mask", [ALL, HALF])
def test_pairs(bench: Bench, mask: int) -> None:
    """Two offsets that count in elements, or in 64 of them."""
    # read2st64 over the whole LDS: word w of it holds what FILL put into place w // 16.
    whole = b"".join(filled(lane, 0, 64) for lane in range(LANES))
    forms = {
        "read2_b32": (4, 1, 3, 9),
        "read2_b64": (8, 1, 2, 7),
        "read2st64_b32": (4, 64, 1, 3),
        "read2st64_b64": (8, 64, 0, 2),
    }
    pieces = []
    for name, (size, _, first, second) in forms.items():
        old = "\n".join(f"v_mov_b32 v{4 + i}, {OLD:#x}" for i in range(4))
        to = f"v[4:{3 + size // 2}]"
        address = "v_lshlrev_b32 v13, 3, v0\n"
        pieces.append(
            f"{FILL}{old}\n{address}{exec_(mask)}ds_{name} {to}, v13 offset0:{first} offset1:{second}\n{WAIT}"
        )
    for (name, (size, unit, first, second)), piece in zip(forms.items(), bench.run(pieces, 4), strict=True):
        for lane in range(LANES):
            expected = [OLD] * 4
            if mask >> lane & 1:
                both = b"".join(
                    (whole + bytes(4096))[8 * lane + k * size * unit :][:size] for k in (first, second)
                )
                expected[: size // 2] = struct.unpack(f"<{size // 2}I", both)
            assert [word[lane] for word in piece] == expected, f"{name}, lane {lane}"


WRITES = {
    # The bytes of v[20:23] (and v[24:25]) that come to stand where.
    "write_b8 v10, v20 offset:5": [(5, 0, 1)],
    "write_b8_d16_hi v10, v20 offset:7": [(7, 2, 1)],
    "write_b16 v10, v20 offset:6": [(6, 0, 2)],
    "write_b16_d16_hi v10, v20 offset:2": [(2, 2, 2)],
    "write_b32 v10, v20 offset:12": [(12, 0, 4)],
    "write_b64 v10, v[20:21] offset:8": [(8, 0, 8)],
    "write_b96 v10, v[20:22] offset:16": [(16, 0, 12)],
    "write_b128 v10, v[20:23] offset:32": [(32, 0, 16)],
    "write2_b32 v10, v20, v24 offset0:3 offset1:6": [(12, 0, 4), (24, 16, 4)],
    "write2_b64 v10, v[20:21], v[24:25] offset0:1 offset1:5": [(8, 0, 8), (40, 16, 8)],
}
SENT = struct.pack("<6I", *(0x10203040 * (i + 1) & M32 for i in range(6)))


def test_writes(bench: Bench) -> None:
    sent = "\n".join(f"v_mov_b32 v{20 + i}, {word:#x}" for i, word in enumerate(struct.unpack("<6I", SENT)))
    read = "\n".join(f"ds_read_b128 v[{4 + 4 * i}:{7 + 4 * i}], v30 offset:{16 * i}" for i in range(4))
    pieces = [
        f"{FILL}{sent}\n{exec_(HALF)}ds_{text}\n{WAIT}s_mov_b64 exec, -1\nv_mov_b32 v30, v10\n{read}\n{WAIT}"
        for text in WRITES
    ]
    for (text, moved), piece in zip(WRITES.items(), bench.run(pieces, 16), strict=True):
        for lane in range(LANES):
            expected = bytearray(filled(lane, 0, 64))
            for to, first, count in moved if HALF >> lane & 1 else []:
                expected[to : to + count] = SENT[first : first + count]
            got = struct.pack("<16I", *(word[lane] for word in piece))
            assert got == bytes(expected), f"{text}, lane {lane}"


def test_strided_writes(bench: Bench) -> None:
    piece = (
        f"{FILL}v_lshlrev_b32 v13, 2, v0\nv_add_u32 v20, 7, v0\nv_add_u32 v21, 9, v0\n"
        f"ds_write2st64_b32 v13, v20, v21 offset0:1 offset1:4\n{WAIT}"
        f"ds_read2st64_b32 v[4:5], v13 offset0:1 offset1:4\n{WAIT}"
        "v_lshlrev_b32 v13, 3, v0\nv_mov_b32 v22, v20\nv_mov_b32 v23, v21\n"
        f"ds_write2st64_b64 v13, v[20:21], v[22:23] offset0:2 offset1:3\n{WAIT}"
        f"ds_read_b64 v[6:7], v13 offset:1024\nds_read_b64 v[8:9], v13 offset:1536\n{WAIT}"
    )
    (words,) = bench.run([piece], 6)
    lanes = range(LANES)
    up = [[lane + 7 for lane in lanes], [lane + 9 for lane in lanes]]
    assert words == [*up, *up, *up]


def test_addresses_from_m0(bench: Bench) -> None:
    """ds_read_addtid and ds_write_addtid: LDS[M0[15:0] + offset + lane * 4]."""
    piece = (
        f"{FILL}s_mov_b32 m0, 256\nv_mov_b32 v4, 1\nv_mov_b32 v5, 2\ns_nop 1\n{exec_(HALF)}"
        f"ds_read_addtid_b32 v4 offset:512\n{WAIT}"
        f"s_mov_b32 m0, 1024\ns_nop 1\nds_write_addtid_b32 v0 offset:4\n{WAIT}"
        f"s_mov_b64 exec, -1\nv_lshlrev_b32 v13, 2, v0\nds_read_b32 v5, v13 offset:1028\n{WAIT}"
    )
    (words,) = bench.run([piece], 2)
    for lane in range(LANES):
        read, kept = 1000 * ((768 + 4 * lane) // 64) + 100 + (768 // 4 + lane) % 16, 1028 + 4 * lane
        on = HALF >> lane & 1
        assert words[0][lane] == (read if on else 1)
        assert words[1][lane] == (lane if on else 1000 * (kept // 64) + 100 + kept // 4 % 16)


@pytest.mark.parametrize("mask", [ALL, HALF, 1 << 63])
def test_append_and_consume(bench: Bench, mask: int) -> None:
    """The counter at M0 + offset grows or shrinks by the number of active lanes; all get its old value."""
    piece = (
        f"v_mov_b32 v13, 16\nv_mov_b32 v14, 1000\nds_write_b32 v13, v14\n{WAIT}"
        f"v_mov_b32 v4, 5\nv_mov_b32 v5, 5\ns_mov_b32 m0, 8\ns_nop 1\n{exec_(mask)}"
        f"ds_append v4 offset:8\n{WAIT}ds_append v4 offset:8\n{WAIT}ds_consume v5 offset:8\n{WAIT}"
        f"s_mov_b64 exec, -1\nds_read_b32 v6, v13\n{WAIT}"
    )
    (words,) = bench.run([piece], 3)
    count = mask.bit_count()
    on = [mask >> lane & 1 for lane in range(LANES)]
    assert words[0] == [1000 + count if o else 5 for o in on]
    assert words[1] == [1000 + 2 * count if o else 5 for o in on]
    assert words[2] == [1000 + count] * LANES


# Memory and two operands to memory.
Atomic = Callable[[int, int, int], int]
NAMES = {"smin": "min_i{}", "umin": "min_u{}", "smax": "max_i{}", "umax": "max_u{}"}
NAMES |= {name: f"{name}_u{{}}" for name in ("add", "sub", "rsub", "inc", "dec")}
NAMES |= {name: f"{name}_b{{}}" for name in ("and", "or", "xor")}


def with_one(of: Callable[[int, int, int], int], bits: int) -> Atomic:
    return lambda m, x, y: of(m, x, bits)


def atomic_cases(arch: str) -> list[tuple[str, int, Atomic, list[tuple[int, int, int]]]]:
    """Name, bits, function, and what memory and the operands hold."""
    cases: list[tuple[str, int, Atomic, list[tuple[int, int, int]]]] = []
    for bits, pairs, to in ((32, PAIRS32, f32), (64, PAIRS64, f64)):
        integers = [(m, x, 9) for m, x in pairs]
        for name, form in NAMES.items():
            cases.append((form.format(bits), bits, with_one(INTEGER[name], bits), integers))
        cases.append((f"mskor_b{bits}", bits, lambda m, x, y: m & ~x | y, integers))
        cases.append((f"cmpst_b{bits}", bits, lambda m, x, y: y if m == x else m, integers))
        floats = [(to(m), to(x), to(7.0)) for m, x in FLOATS]
        for name, of in FLOAT.items():
            cases.append((f"{name}_f{bits}", bits, with_one(of, bits), floats))
        cases.append((f"cmpst_f{bits}", bits, compare_floats(bits), floats))
    for name, of in PACKED.items() if arch != "gfx90a" else []:
        cases.append((name, 32, with_one(of, 32), [(m, x, 0) for m, x in PACKED_PAIRS[name]]))
    return cases


def test_denormals_of_float_atomics(bench: Bench) -> None:
    """MODE says whether those of sources and results are flushed: section "Float Memory Atomics"."""
    flush_all, flush_results, keep = 0, 1, 3
    tiny, least = 0x00400000, 0x00800000
    cases = [  # the instruction, memory, operand, what memory is then
        ("add_f32", flush_all, tiny, least, least),
        ("add_f32", keep, tiny, least, least + tiny),
        ("add_f32", flush_results, tiny, 1, 0),
        ("max_f32", flush_all, 1, tiny, 1),
        ("max_f32", keep, 1, tiny, tiny),
        ("max_f32", keep, 0x7FA00000, tiny, 0x7FE00000),  # signaling NaN
        ("min_f32", keep, tiny, 0x7FC00000, tiny),
    ]
    denormals = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2),"
    pieces = [
        f"v_lshlrev_b32 v10, 6, v0\nv_mov_b32 v11, {memory:#x}\nds_write_b32 v10, v11\n{WAIT}"
        f"{denormals} {mode}\nv_mov_b32 v11, {operand:#x}\nds_{name} v10, v11\n{WAIT}"
        f"{denormals} {keep}\nds_read_b32 v4, v10\n{WAIT}"
        for name, mode, memory, operand, _ in cases
    ]
    for (name, mode, _, _, expected), ((got,)) in zip(cases, bench.run(pieces, 1), strict=True):
        assert got == [expected] * LANES, f"{name}, denormals {mode}"


def compare_floats(bits: int) -> Atomic:
    return lambda m, x, y: y if real(m, bits // 8) == real(x, bits // 8) else m


def returning(name: str) -> str:
    stem, kind = name.rsplit("_", 1)
    return f"{stem}_rtn_{kind}"


def test_atomics(bench: Bench) -> None:
    """Memory afterwards, and the old value from the returning form."""
    pieces, expected = [], []
    for name, bits, of, operands in atomic_cases(bench.arch):
        words = bits // 32
        pair = "v{0}" if words == 1 else "v[{0}:{1}]"
        second = ", " + pair.format(22, 23) if name.startswith(("mskor", "cmpst")) else ""
        for old, x, y in operands:
            setup = "v_mov_b32 v13, 16\nv_mov_b32 v4, 0\nv_mov_b32 v5, 0\n"
            for register, value in ((18, old), (20, x), (22, y)):
                setup += f"v_mov_b32 v{register}, {value & M32:#x}\n"
                setup += f"v_mov_b32 v{register + 1}, {value >> 32:#x}\n"
            setup += f"ds_write_b64 v13, v[18:19]\n{WAIT}s_mov_b64 exec, 1\n"
            operand = pair.format(20, 21)
            read = f"ds_read_b64 v[6:7], v13\n{WAIT}"
            pieces.append(f"{setup}ds_{name} v13, {operand}{second}\n{WAIT}{read}")
            to = pair.format(4, 5)
            pieces.append(f"{setup}ds_{returning(name)} {to}, v13, {operand}{second}\n{WAIT}{read}")
            new = of(old, x, y) & (1 << bits) - 1
            expected += [(name, bits, 0, new, (old, x)), (name, bits, old, new, (old, x))]
    for (name, bits, back, new, operands), piece in zip(expected, bench.run(pieces, 4, lanes=1), strict=True):
        words = [word[0] for word in piece]
        mask = (1 << bits) - 1
        assert (words[0] | words[1] << 32) & mask == back, f"{name} {operands}"
        got = (words[2] | words[3] << 32) & mask
        assert is_same(got, new, bits, name.startswith("add_f")), f"{name} {operands}: {got:#x}, {new:#x}"


def test_exchanges(bench: Bench) -> None:
    """ds_wrxchg*, ds_wrap and ds_condxchg32, each lane in its place."""
    forms = {
        "wrxchg_rtn_b32 v4, v10, v20 offset:8": ([8], 4, 1),
        "wrxchg_rtn_b64 v[4:5], v10, v[20:21] offset:16": ([16], 8, 1),
        "wrxchg2_rtn_b32 v[4:5], v10, v20, v22 offset0:1 offset1:4": ([4, 16], 4, 2),
        "wrxchg2_rtn_b64 v[4:7], v10, v[20:21], v[22:23] offset0:1 offset1:4": ([8, 32], 8, 2),
    }
    sent = "\n".join(f"v_add_u32 v{20 + i}, {7000 + i}, v0" for i in range(4))
    read = "\n".join(f"ds_read_b64 v[{8 + 2 * i}:{9 + 2 * i}], v13 offset:{{{i}}}" for i in range(2))
    pieces = []
    for text, (places, _, _) in forms.items():
        keep = f"v_mov_b32 v13, v10\n{read.format(*(places * 2)[:2])}\n{WAIT}"
        pieces.append(f"{FILL}{sent}\nds_{text}\n{WAIT}{keep}")
    for (text, (places, size, _)), piece in zip(forms.items(), bench.run(pieces, 8), strict=True):
        words = size // 4
        for lane in range(LANES):
            old = [struct.unpack(f"<{words}I", filled(lane, at, size)) for at in places]
            flat = [word for one in old for word in one]
            assert [piece[i][lane] for i in range(len(flat))] == flat, text
            for k in range(len(places)):
                new = [piece[4 + 2 * k + i][lane] for i in range(words)]
                assert new == [7000 + 2 * k + i + lane for i in range(words)], text


def test_strided_exchanges(bench: Bench) -> None:
    """ds_wrxchg2st64: the old words come back, the new ones stand 64 elements apart."""
    forms = {
        "b32 v[4:5], v13, v20, v22 offset0:1 offset1:3": (4, 1, 3),
        "b64 v[4:7], v13, v[20:21], v[22:23] offset0:0 offset1:2": (8, 0, 2),
    }
    sent = "\n".join(f"v_add_u32 v{20 + i}, {7000 + i}, v0" for i in range(4))
    pieces = []
    for text, (size, first, second) in forms.items():
        address = f"v_mul_u32_u24 v13, {size}, v0\n"
        to = "v[8:9]" if size == 4 else "v[8:11]"
        pieces.append(
            f"{FILL}{sent}\n{address}ds_nop\nds_wrxchg2st64_rtn_{text}\n{WAIT}"
            f"ds_read2st64_b{8 * size} {to}, v13 offset0:{first} offset1:{second}\n{WAIT}"
        )
    whole = b"".join(filled(lane, 0, 64) for lane in range(LANES))
    for (size, *offsets), piece in zip(forms.values(), bench.run(pieces, 8), strict=True):
        words = size // 4
        for lane in range(LANES):
            places = [size * (lane + 64 * offset) for offset in offsets]
            old = [w for at in places for w in struct.unpack_from(f"<{words}I", whole, at)]
            new = [7000 + 2 * k + i + lane for k in range(2) for i in range(words)]
            assert [piece[i][lane] for i in range(2 * words)] == old
            assert [piece[4 + i][lane] for i in range(2 * words)] == new


def test_wrap(bench: Bench) -> None:
    """tmp >= DATA ? tmp - DATA : tmp + DATA2."""
    piece = (
        "v_lshlrev_b32 v13, 2, v0\nv_mov_b32 v20, 20\nv_mov_b32 v21, 1000\n"
        f"ds_write_b32 v13, v0\n{WAIT}ds_wrap_rtn_b32 v4, v13, v20, v21\n{WAIT}ds_read_b32 v5, v13\n{WAIT}"
    )
    (words,) = bench.run([piece], 2)
    lanes = range(LANES)
    assert words == [list(lanes), [lane - 20 if lane >= 20 else lane + 1000 for lane in lanes]]


def test_conditional_exchange(bench: Bench) -> None:
    """ds_condxchg32: each half is exchanged if its bit 31 is set, which is stored as 0."""
    values = [(1, 2), (1 << 31 | 3, 4), (5, 1 << 31 | 6), (1 << 31, M32)]
    pieces = [
        f"{FILL}v_mov_b32 v20, {low:#x}\nv_mov_b32 v21, {high:#x}\n"
        f"ds_condxchg32_rtn_b64 v[4:5], v10, v[20:21] offset:20\n{WAIT}"
        f"ds_read_b64 v[6:7], v10 offset:16\n{WAIT}"
        for low, high in values
    ]
    for (low, high), piece in zip(values, bench.run(pieces, 4), strict=True):
        for lane in range(LANES):
            old = list(struct.unpack("<2I", filled(lane, 16, 8)))
            new = [n & 0x7FFFFFFF if n >> 31 else o for n, o in zip((low, high), old, strict=True)]
            assert [word[lane] for word in piece] == old + new


# ---- lanes


def swizzled(pattern: int, lane: int) -> int:
    """The lane that `lane` reads."""
    column, base = lane & 31, lane & 32
    if pattern >= 0xE000:
        mask = pattern & 31
        reverse = int(f"{column:05b}"[::-1], 2)
        return base | (reverse >> mask.bit_count() | lane & mask)
    if pattern >= 0xC000:
        count, mask = pattern >> 5 & 31, pattern & 31
        if pattern >> 10 & 1:
            count = -count
        return base | (column & mask | column + count & ~mask & 31)
    if pattern >= 0x8000:
        return lane & ~3 | pattern >> 2 * (lane & 3) & 3
    return base | ((column & pattern & 31 | pattern >> 5 & 31) ^ pattern >> 10 & 31)


PATTERNS = [0, 0x1F, 0x041F, 0x7C1F, 0x0018, 0x03E0, 0x7FFF, 0x8000, 0x801B, 0x80E4, 0x80FF]
PATTERNS += [0xC000, 0xC020, 0xC3E0, 0xC420, 0xC7C3, 0xC0B8, 0xE000, 0xE010, 0xE01C, 0xE01F, 0xE003]


@pytest.mark.parametrize("mask", [ALL, HALF])
def test_swizzles(bench: Bench, mask: int) -> None:
    """A lane that is off gives 0 and gets nothing."""
    pieces = [
        f"v_add_u32 v20, 100, v0\nv_mov_b32 v4, 9\n{exec_(mask)}ds_swizzle_b32 v4, v20 offset:{p:#x}\n{WAIT}"
        for p in PATTERNS
    ]
    for pattern, ((words,)) in zip(PATTERNS, bench.run(pieces, 1), strict=True):
        for lane in range(LANES):
            source = swizzled(pattern, lane)
            given = 100 + source if mask >> source & 1 else 0
            assert words[lane] == (given if mask >> lane & 1 else 9), f"{pattern:#x}, lane {lane}"


@pytest.mark.parametrize("mask", [ALL, HALF])
def test_permutes(bench: Bench, mask: int) -> None:
    """Backwards from a lane, 0 from one that is off; forwards the highest sender wins, else 0."""
    setup = (
        "v_mul_u32_u24 v20, 20, v0\nv_xor_b32 v20, 3, v20\nv_or_b32 v20, 0x10000, v20\n"
        f"v_add_u32 v21, 100, v0\nv_mov_b32 v4, 9\n{exec_(mask)}"
    )
    crowd = f"v_and_b32 v20, 12, v0\nv_add_u32 v21, 100, v0\nv_mov_b32 v4, 9\n{exec_(mask)}"
    pieces = [
        f"{setup}ds_bpermute_b32 v4, v20, v21\n{WAIT}",
        f"{setup}ds_bpermute_b32 v4, v20, v21 offset:8\n{WAIT}",
        f"{setup}ds_permute_b32 v4, v20, v21\n{WAIT}",
        f"{crowd}ds_permute_b32 v4, v20, v21 offset:4\n{WAIT}",
    ]
    lanes, on = range(LANES), [mask >> lane & 1 for lane in range(LANES)]
    target = [(20 * lane ^ 3) // 4 % 64 for lane in lanes]
    shifted = [((20 * lane ^ 3) + 8) // 4 % 64 for lane in lanes]
    crowded = [((lane & 12) + 4) // 4 for lane in lanes]

    def back(sources: list[int]) -> list[int]:
        return [(100 + s if on[s] else 0) if on[lane] else 9 for lane, s in enumerate(sources)]

    def forth(targets: list[int]) -> list[int]:
        got = [0] * LANES
        for lane in lanes:
            if on[lane]:
                got[targets[lane]] = 100 + lane
        return [got[lane] if on[lane] else 9 for lane in lanes]

    words = [piece[0] for piece in bench.run(pieces, 1)]
    assert words == [back(target), back(shifted), forth(target), forth(crowded)]


@pytest.mark.parametrize(("bits", "size"), [(16, 8), (8, 8), (4, 8), (6, 12)])
@pytest.mark.parametrize("mask", [ALL, HALF])
def test_transposing_reads(bits: int, size: int, mask: int, library: Path, tmp_path: Path) -> None:
    """Sixteen lanes read rows of sixteen elements, each gets a column. Lanes that are off give zeros."""
    bench = Bench("gfx950", library, tmp_path, lds=LDS)
    words = size // 4
    to = f"v[4:{3 + words}]"
    old = "\n".join(f"v_mov_b32 v{4 + i}, {OLD:#x}" for i in range(words))
    piece = f"{FILL}{old}\n{exec_(mask)}ds_read_b{8 * size}_tr_b{bits} {to}, v10 offset:16\n{WAIT}"
    (got,) = bench.run([piece], words)
    each = 8 * size // bits
    rows = [
        int.from_bytes(filled(lane, 16, size), "little") if mask >> lane & 1 else 0 for lane in range(LANES)
    ]
    for lane in range(LANES):
        value = sum(word[lane] << 32 * i for i, word in enumerate(got))
        if not mask >> lane & 1:
            assert value == sum(OLD << 32 * i for i in range(words))
            continue
        group, column = lane // 16 * 16, lane % 16
        holders = [group + row * (16 // each) + column // each for row in range(each)]
        column_of = [rows[h] >> column % each * bits & (1 << bits) - 1 for h in holders]
        assert value == sum(v << bits * row for row, v in enumerate(column_of))


# ---- global wave sync


GWS = """
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    s_mov_b32 m0, 0
    v_lshrrev_b32 v20, 6, v0
    v_lshlrev_b32 v21, 2, v20
    v_xor_b32 v23, 12, v21
    v_mov_b32 v22, 3
    s_waitcnt lgkmcnt(0)
    ds_gws_init v22 offset:5 gds
    s_waitcnt lgkmcnt(0)
    s_barrier
    global_store_dword v21, v20, s[2:3] offset:1024
    s_waitcnt vmcnt(0)
    ds_gws_barrier v22 offset:5 gds
    s_waitcnt lgkmcnt(0)
    global_load_dword v4, v23, s[2:3] offset:1024
    s_waitcnt vmcnt(0)
    ds_gws_barrier v22 offset:5 gds
    s_waitcnt lgkmcnt(0)
    global_store_dword v21, v4, s[2:3] offset:1024
    s_waitcnt vmcnt(0)
    ds_gws_barrier v22 offset:5 gds
    s_waitcnt lgkmcnt(0)
    global_load_dword v4, v23, s[2:3] offset:1024
    v_lshlrev_b32 v24, 2, v0
    s_waitcnt vmcnt(0)
    global_store_dword v24, v4, s[2:3]
    s_endpgm
"""


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_gws_barrier(arch: str, order: int, library: Path, tmp_path: Path) -> None:
    """Four waves exchange words twice: the one that opens the barrier brings the count for the next time."""
    image = toolchain.assemble(GWS, arch, tmp_path / "gws.co")
    with Sim(library, arch) as sim:
        out = sim.malloc(1024 + 16)
        args = pack(out, layout="P")
        sim.launch(
            sim.load(image), "kernel", (256, 1, 1), (256, 1, 1), args, order=order, max_instructions=10**7
        )
        words = struct.unpack("<256I", sim.download(out, 1024))
    # A wave's word is exchanged with that of its opposite, and back.
    assert list(words) == [i // 64 for i in range(256)]


def test_gws_semaphores(bench: Bench) -> None:
    """What V and BR add, P takes; release_all lets waiting waves go, of which there are none."""
    piece = (
        "s_mov_b32 m0, 0\nv_mov_b32 v20, 0\nv_mov_b32 v22, 2\nv_mov_b32 v4, 1\ns_nop 1\n"
        "ds_gws_init v20 offset:1 gds\nds_gws_sema_v offset:1 gds\nds_gws_sema_p offset:1 gds\n"
        "ds_gws_sema_br v22 offset:1 gds\nds_gws_sema_p offset:1 gds\nds_gws_sema_p offset:1 gds\n"
        f"ds_gws_sema_release_all offset:1 gds\n{WAIT}v_mov_b32 v4, 7"
    )
    assert bench.run([piece], 1, lanes=1) == [[[7]]]


def test_gws_waits(bench: Bench) -> None:
    """P of an empty semaphore never ends; the fault has its place."""
    piece = (
        "s_mov_b32 m0, 0\nv_mov_b32 v20, 0\ns_nop 1\nds_gws_init v20 offset:2 gds\nds_gws_sema_p offset:2 gds"
    )
    report = fault_of(bench, piece)
    assert report.fault in ("runaway", "deadlock")  # the sanitizer knows more


def test_gws_of_several_workgroups(library: Path, tmp_path: Path) -> None:
    """They run one after another, so that a wave would wait for ever."""
    image = toolchain.assemble(GWS, "gfx90a", tmp_path / "gws.co")
    with Sim(library, "gfx90a") as sim:
        args = pack(sim.malloc(4096), layout="P")
        with pytest.raises(SimError, match="waits for waves of other workgroups: 2 of them"):
            sim.launch(sim.load(image), "kernel", (512, 1, 1), (256, 1, 1), args)
        assert sim.reports[0].instruction.startswith("ds_gws_barrier")


# ---- faults


@pytest.mark.parametrize(
    ("text", "fault", "lane", "address"),
    [
        (f"v_mov_b32 v13, {LDS - 4}\nds_read_b64 v[4:5], v13", "out of bounds", 0, LDS - 4),
        (f"v_lshlrev_b32 v13, 8, v0\nds_write_b32 v13, v0 offset:{LDS - 256 * 20}", "out of bounds", 20, LDS),
        (f"s_mov_b32 m0, {LDS - 8}\ns_nop 1\nds_read_addtid_b32 v4", "out of bounds", 2, LDS),
        (f"s_mov_b32 m0, {LDS}\ns_nop 1\nds_append v4", "out of bounds", -1, LDS),
        ("v_mov_b32 v13, 2\nds_add_u32 v13, v0", "misaligned", 0, 2),
        ("v_mov_b32 v13, 12\nds_add_u64 v13, v[4:5]", "misaligned", 0, 12),
        (f"v_mov_b32 v13, {LDS}\nds_wrxchg_rtn_b32 v4, v13, v0", "out of bounds", 0, LDS),
    ],
)
def test_faults(bench: Bench, text: str, fault: str, lane: int, address: int) -> None:
    report = fault_of(bench, text)
    assert (report.fault, report.lane, report.address) == (fault, lane, address)
    assert report.instruction.split()[0] == text.splitlines()[-1].split()[0]


def test_lanes_that_are_off_touch_nothing(bench: Bench) -> None:
    piece = (
        f"v_mov_b32 v13, -4\nv_mov_b32 v4, 3\ns_mov_b64 exec, 0\nds_read_b32 v4, v13\nds_write_b32 v13, v13\n"
        f"ds_add_u32 v13, v13\n"
        f"ds_read_b64 v[4:5], v13\ns_mov_b32 m0, -4\ns_nop 1\nds_append v4\nds_read_addtid_b32 v4\n{WAIT}"
    )
    assert bench.run([piece], 1) == [[[3] * LANES]]


def test_dynamic_lds(library: Path, tmp_path: Path) -> None:
    """Bytes asked for at the launch follow those of the kernel, and end where they end."""
    text = (
        "s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\nds_write_b32 v1, v0 offset:256\n"
        f"{WAIT}ds_read_b32 v2, v1 offset:256\n{WAIT}global_store_dword v1, v2, s[2:3]\ns_endpgm"
    )
    image = toolchain.assemble(text, "gfx942", tmp_path / "dynamic.co", lds=256)
    for dynamic, good in ((256, True), (252, False)):
        with Sim(library, "gfx942") as sim:
            out = sim.malloc(256)
            args = pack(out, layout="P")
            wave = (64, 1, 1)
            module = sim.load(image)
            if good:
                sim.launch(module, "kernel", wave, wave, args, dynamic_lds=dynamic)
                assert struct.unpack("<64I", sim.download(out, 256)) == tuple(range(64))
                continue
            with pytest.raises(SimError, match="LDS address 508"):
                sim.launch(module, "kernel", wave, wave, args, dynamic_lds=dynamic)
            assert sim.reports[0].lane == 63
