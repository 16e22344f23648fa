# SPDX-License-Identifier: MIT
"""SMEM: loads, stores, buffers, scratch and atomics of the scalar unit.

Expected values are from AMD's "Instinct MI300 Instruction Set Architecture" (CDNA3), chapter "Scalar Memory
Operations", section "Scalar Memory Addressing", and section "SMEM Instructions".
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import toolchain
from atomic_values import INTEGER, M64, PAIRS32, PAIRS64
from pieces import M32, Bench, fault_of, set_sgprs, show_sgprs
from sim import ARCHS

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

WORDS = [0x01010101 * i ^ 0x5A000000 for i in range(256)]
DATA = struct.pack("<256I", *WORDS)
WAIT = "s_waitcnt lgkmcnt(0)"


@pytest.fixture(params=ARCHS)
def bench(request: pytest.FixtureRequest, library: Path, tmp_path: Path) -> Bench:
    return Bench(request.param, library, tmp_path)


def first_lane(bench: Bench, pieces: list[str], words: int, data: bytes = DATA) -> list[list[int]]:
    return [[word[0] for word in piece] for piece in bench.run(pieces, words, lanes=1, data=data)]


def test_offsets(bench: Bench) -> None:
    """ADDR = base + offset + SGPR or M0; of every part the two lowest bits are ignored."""
    setup = "s_mov_b32 s20, 40\ns_add_u32 s10, s4, 64\ns_addc_u32 s11, s5, 0\ns_mov_b32 m0, 24\n"
    loads = {
        "s_load_dword s8, s[4:5], 0x0": 0,
        "s_load_dword s8, s[4:5], 0x3fc": 255,
        "s_load_dword s8, s[10:11], -0x3c": 1,  # 21 bits with a sign
        "s_load_dword s8, s[4:5], s20": 10,
        "s_load_dword s8, s[4:5], s20 offset:0x10": 14,
        "s_load_dword s8, s[4:5], m0": 6,
        "s_load_dword s8, s[4:5], 0x7": 1,
        "s_mov_b32 s20, 42\ns_load_dword s8, s[4:5], s20 offset:0x2": 10,
        "s_add_u32 s12, s4, 3\ns_addc_u32 s13, s5, 0\ns_load_dword s8, s[12:13], 0x5": 1,
    }
    pieces = [f"{setup}{text}\n{WAIT}\n{show_sgprs(['s8'])}" for text in loads]
    got = first_lane(bench, pieces, 1)
    assert got == [[WORDS[i]] for i in loads.values()]


def test_widths(bench: Bench) -> None:
    for count in (1, 2, 4, 8, 16):
        suffix = "" if count == 1 else f"x{count}"
        names = [f"s{16 + i}" for i in range(count)]
        to = "s16" if count == 1 else f"s[16:{15 + count}]"
        piece = f"s_load_dword{suffix} {to}, s[4:5], 0x44\n{WAIT}\n{show_sgprs(names)}"
        assert first_lane(bench, [piece], count) == [WORDS[17 : 17 + count]]


def buffer(stride: int, records: int) -> str:
    return (
        f"s_mov_b32 s12, s4\ns_or_b32 s13, s5, {stride << 16:#x}\n"
        f"s_mov_b32 s14, {records}\ns_mov_b32 s15, 0x20000\n"
    )


@pytest.mark.parametrize(("stride", "records"), [(0, 40), (4, 10), (8, 5), (0, 0), (0, 37)])
def test_buffers(bench: Bench, stride: int, records: int) -> None:
    """Bytes beyond num_records * (stride or 1) read as 0, each word by itself."""
    limit = records * (stride or 1)
    seen = [word if 4 * i + 4 <= limit else 0 for i, word in enumerate(WORDS)]
    pieces, expected = [], []
    for at in (0, 16, 24, 32, 36, 40, 1020):
        names = [f"s{16 + i}" for i in range(4)]
        pieces.append(
            f"{buffer(stride, records)}{set_sgprs(16, M64, 2)}\n{set_sgprs(18, M64, 2)}\n"
            f"s_buffer_load_dwordx4 s[16:19], s[12:15], {at:#x}\n{WAIT}\n{show_sgprs(names)}"
        )
        expected.append((seen + [0] * 4)[at // 4 : at // 4 + 4])
    for count in (8, 16):
        names = ["s16", f"s{19 + count // 2}", f"s{14 + count}", f"s{15 + count}"]
        pieces.append(
            f"{buffer(stride, records)}s_mov_b32 s47, -1\n"
            f"s_buffer_load_dwordx{count} s[16:{15 + count}], s[12:15], 0x10\n{WAIT}\n{show_sgprs(names)}"
        )
        expected.append([seen[4 + i] for i in (0, 3 + count // 2, count - 2, count - 1)])
    pieces.append(
        f"{buffer(stride, records)}s_mov_b32 s20, 8\n{set_sgprs(18, M64, 2)}\n"
        f"s_buffer_load_dwordx2 s[16:17], s[12:15], s20 offset:0x14\n{WAIT}\n"
        + show_sgprs(["s16", "s17", "s18", "s19"])
    )
    expected.append([*seen[7:9], M32, M32])
    assert first_lane(bench, pieces, 4) == expected


def test_stores(bench: Bench) -> None:
    texts = [
        f"{set_sgprs(16, 0x1122334455667788, 2)}\n{set_sgprs(18, 0x99AABBCCDDEEFF00, 2)}",
        "s_store_dword s16, s[4:5], 0x0",
        "s_store_dwordx2 s[16:17], s[4:5], 0x8",
        "s_store_dwordx4 s[16:19], s[4:5], 0x10",
        f"{buffer(0, 48)}s_buffer_store_dwordx4 s[16:19], s[12:15], 0x28",  # two words are within bounds
        f"{buffer(0, 48)}s_buffer_store_dword s16, s[12:15], 0x30",  # dropped
        "s_mov_b32 s20, 1\ns_scratch_store_dwordx2 s[16:17], s[4:5], s20",  # counts in 64 bytes
        "s_scratch_store_dword s16, s[4:5], 0x4c",  # this counts bytes
        "s_scratch_store_dwordx4 s[16:19], s[4:5], 0x80",
        f"{buffer(0, 2048)}s_buffer_store_dwordx2 s[16:17], s[12:15], 0xa0",
        "s_dcache_wb",
        WAIT,
    ]
    first_lane(bench, ["\n".join(texts)], 1)
    words = [0x55667788, 0x11223344, 0xDDEEFF00, 0x99AABBCC]
    memory = WORDS.copy()
    memory[0] = words[0]
    memory[2:4], memory[4:8], memory[10:12] = words[:2], words, words[:2]
    memory[16:18], memory[19] = words[:2], words[0]
    memory[32:36], memory[40:42] = words, words[:2]
    assert list(struct.unpack("<256I", bench.memory)) == memory


def test_scratch_loads(bench: Bench) -> None:
    """S_SCRATCH_LOAD: ADDR = SGPR[base] + inst_offset + SGPR[offset] * 64."""
    loads = {
        "s_scratch_load_dword s16, s[4:5], 0x10": 4,
        "s_mov_b32 s20, 3\ns_scratch_load_dword s16, s[4:5], s20": 48,
        "s_mov_b32 s20, 3\ns_scratch_load_dwordx2 s[16:17], s[4:5], s20 offset:0x8": 50,
        "s_mov_b32 m0, 2\ns_scratch_load_dwordx4 s[16:19], s[4:5], m0": 32,
    }
    pieces = [f"{text}\n{WAIT}\n{show_sgprs(['s16'])}" for text in loads]
    assert first_lane(bench, pieces, 1) == [[WORDS[i]] for i in loads.values()]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("form", ["", "buffer_"])
def test_atomics(bench: Bench, bits: int, form: str) -> None:
    """The old value comes back only with glc (sc0); memory has the new one."""
    size, suffix, pairs = bits // 8, "" if bits == 32 else "_x2", PAIRS32 if bits == 32 else PAIRS64
    base = "s[12:15]" if form else "s[4:5]"
    data = "s16" if bits == 32 else "s[16:17]"
    start, after, pieces, expected = b"", b"", [], []
    for name, of in INTEGER.items():
        for old, operand in pairs if name != "rsub" else []:  # DS alone has that
            for modifier in ("", " glc"):
                text = f"s_{form}atomic_{name}{suffix} {data}, {base}, {len(start):#x}{modifier}"
                setup = (buffer(0, 1 << 20) if form else "") + set_sgprs(16, operand, 2)
                pieces.append(f"{setup}\n{text}\n{WAIT}\n{show_sgprs(['s16', 's17'])}")
                back = (old if modifier else operand) | (operand >> 32 << 32 if bits == 32 else 0)
                expected.append([back & M32, back >> 32])
                start += old.to_bytes(size, "little")
                after += (of(old, operand, bits) & (1 << bits) - 1).to_bytes(size, "little")
    assert first_lane(bench, pieces, 2, start) == expected
    assert bench.memory == after


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("form", ["", "buffer_"])
def test_compare_and_swap(bench: Bench, form: str, bits: int) -> None:
    """Of the data the low part is the new value and the high part what memory is compared with."""
    size, suffix, data = bits // 8, "" if bits == 32 else "_x2", "s[16:17]" if bits == 32 else "s[16:19]"
    values = [7, 7 | 1 << bits - 1]
    start = b"".join(v.to_bytes(size, "little") for v in values)
    pieces = [
        f"{set_sgprs(16, 9 | 7 << bits, 2 * bits // 32)}\n"
        f"{buffer(0, 64) if form else ''}s_{form}atomic_cmpswap{suffix} {data}, "
        f"{'s[12:15]' if form else 's[4:5]'}, {size * i:#x} glc\n{WAIT}\n{show_sgprs(['s16'])}"
        for i in range(2)
    ]
    got = first_lane(bench, pieces, 1, start)
    assert got == [[v & M32] for v in values]
    assert bench.memory == (9).to_bytes(size, "little") + start[size:]


def test_faults(bench: Bench) -> None:
    cases = {
        "s_load_dword s8, s[4:5], 0x400": "out of bounds",
        "s_load_dwordx2 s[8:9], s[4:5], 0x3fc": "out of bounds",
        "s_store_dword s8, s[4:5], -0x4": "out of bounds",
        "s_store_dword s8, s[0:1], 0x0": "store to read-only memory",
        "s_atomic_add_x2 s[8:9], s[4:5], 0x4": "misaligned",
        f"{buffer(0, 4096)}s_buffer_load_dword s8, s[12:15], 0x400": "out of bounds",
    }
    for text, fault in cases.items():
        report = fault_of(bench, text, data=DATA)
        assert report.fault == fault and report.lane == -1
        assert report.instruction.split()[0] == text.splitlines()[-1].split()[0]
