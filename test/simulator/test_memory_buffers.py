# SPDX-License-Identifier: MIT
"""MUBUF and MTBUF: addresses, what is out of range, formats, loads to LDS.

Expected values are from AMD's "Instinct MI300 Instruction Set Architecture" (CDNA3), chapter "Vector Memory
Operations", sections "Buffer Addressing", "Range Checking", "Swizzled Buffer Addressing", "Buffer Resource",
"Buffer Data Formats" and "Memory Buffer Load to LDS"; of three words to LDS "CDNA4", section 9.1.9. The
scalar offset has no part in range checks, says LLVM too (SIISelLowering.h, splitBufferOffsets).
"""

from __future__ import annotations

import itertools
import math
import random
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
import toolchain
from pieces import LANES, M32, Bench, fault_of
from sim import ARCHS

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

WAIT = "s_waitcnt vmcnt(0)\n"
DATA = random.Random(7).randbytes(1 << 16)


@pytest.fixture(params=ARCHS)
def bench(request: pytest.FixtureRequest, library: Path, tmp_path: Path) -> Bench:
    return Bench(request.param, library, tmp_path, lds=4096)


@dataclass(frozen=True)
class Buffer:
    """A descriptor."""

    records: int
    stride: int = 0
    swizzle: bool = False
    index_stride: int = 8
    add_lane: bool = False
    number: int = 7
    data: int = 4
    select: tuple[int, int, int, int] = (4, 5, 6, 7)

    def text(self) -> str:
        """Assembly that puts the descriptor into s[12:15]; the base is `data`."""
        high = (self.stride & 0x3FFF) << 16 | self.swizzle << 31
        data = self.stride >> 14 if self.add_lane else self.data
        last = sum(s << 3 * i for i, s in enumerate(self.select)) | self.number << 12 | data << 15
        last |= (self.index_stride.bit_length() - 4) << 21 | self.add_lane << 23
        words = [f"s_mov_b32 s12, s4\ns_or_b32 s13, s5, {high:#x}"]
        return "\n".join([*words, f"s_mov_b32 s14, {self.records:#x}", f"s_mov_b32 s15, {last:#x}", ""])

    def place(self, index: int, offset: int, scalar: int, idxen: bool) -> int | None:
        """A word's bytes from the base; None where it is out of range."""
        at = index * self.stride + offset
        if self.swizzle:
            group, member = divmod(index, self.index_stride)
            at = (group * self.stride + offset // 4 * 4) * self.index_stride + member * 4 + offset % 4
        if idxen and self.stride:
            return at + scalar if index < self.records else None
        if self.add_lane and not idxen:  # scratch: "For this buffer, there is no range checking"
            return at + scalar
        return at + scalar if at + 4 <= self.records else None


def word(place: int | None) -> int:
    return 0 if place is None else int.from_bytes(DATA[place : place + 4], "little")


INDICES, OFFSETS = [lane * 7 & 63 for lane in range(LANES)], [lane * 12 & 0x7C for lane in range(LANES)]
# v20: the index, v21: the offset.
ADDRESSES = (
    "v_mul_u32_u24 v20, 7, v0\nv_and_b32 v20, 63, v20\nv_mul_u32_u24 v21, 12, v0\nv_and_b32 v21, 0x7c, v21\n"
)
FORMS = {"off": (False, False), "v21": (False, True), "v20": (True, False), "v[20:21]": (True, True)}


def access(form: str, offset: int) -> str:
    idxen, offen = FORMS[form]
    modifiers = " idxen" * idxen + " offen" * offen + (f" offset:{offset}" if offset else "")
    return f"{form}, s[12:15], s20{modifiers}"


def lane_place(buffer: Buffer, form: str, scalar: int, offset: int, lane: int) -> int | None:
    idxen, offen = FORMS[form]
    index = (INDICES[lane] if idxen else 0) + (lane if buffer.add_lane else 0)
    return buffer.place(index, (OFFSETS[lane] if offen else 0) + offset, scalar, idxen)


BUFFERS = [
    Buffer(records=200),
    Buffer(records=30, stride=12),
    Buffer(records=300, stride=16),
    Buffer(records=45, stride=16, swizzle=True, index_stride=8),
    Buffer(records=40, stride=32, swizzle=True, index_stride=64),
    Buffer(records=1000, stride=0, swizzle=True, index_stride=32),
    Buffer(records=400, stride=8, add_lane=True),
    Buffer(records=50, stride=16, swizzle=True, index_stride=16, add_lane=True),
    Buffer(records=2000, stride=0, swizzle=True, index_stride=64, add_lane=True),  # as scratch is reached
    Buffer(records=0),
    Buffer(records=5000, data=0),  # an invalid data format: nothing is bound
]


def test_words(bench: Bench) -> None:
    """Each lane's word, or 0, over all ways to make an address."""
    cases = list(itertools.product(BUFFERS, FORMS, (0, 64), (0, 20)))
    pieces = [
        f"{b.text()}{ADDRESSES}s_mov_b32 s20, {scalar}\nbuffer_load_dword v4, {access(form, offset)}\n{WAIT}"
        for b, form, scalar, offset in cases
    ]
    for (b, form, scalar, offset), ((got,)) in zip(cases, bench.run(pieces, 1, data=DATA), strict=True):
        places = [lane_place(b, form, scalar, offset, lane) for lane in range(LANES)]
        expected = [0 if b.data == 0 else word(place) for place in places]
        assert got == expected, f"{b} {form} soffset {scalar} offset {offset}"


def test_bytes_of_swizzled_buffers(bench: Bench) -> None:
    """The two lowest bits of the offset stay the lowest."""
    b = Buffer(records=64, stride=32, swizzle=True, index_stride=16)
    piece = (
        f"{b.text()}v_mov_b32 v20, v0\nv_and_b32 v21, 31, v0\n"
        f"buffer_load_ubyte v4, v[20:21], s[12:15], 0 idxen offen\n{WAIT}"
    )
    ((got,),) = bench.run([piece], 1, data=DATA)
    places = [b.place(lane, lane & 31, 0, True) for lane in range(LANES)]
    assert got == [DATA[place] for place in places if place is not None]


def test_across_words_of_swizzled_buffers(bench: Bench) -> None:
    """As compilers for gfx90a reach scratch: each byte by itself. A lane that is off is not asked."""
    b = Buffer(records=64, stride=64, swizzle=True, index_stride=16)
    pieces = [
        f"{b.text()}v_mov_b32 v20, v0\nv_and_b32 v21, 31, v0\nv_mov_b32 v4, 0\ns_mov_b64 exec, 0x7fffffff\n"
        f"buffer_load_{kind} v4, v[20:21], s[12:15], 0 idxen offen\ns_mov_b64 exec, -1\n{WAIT}"
        for kind in ("ushort", "dword")
    ]
    for size, ((got,)) in zip((2, 4), bench.run(pieces, 1, data=DATA), strict=True):
        expected = []
        for lane in range(LANES):
            places = [b.place(lane, (lane & 31) + i, 0, True) for i in range(size)]
            data = bytes(DATA[place] for place in places if place is not None)
            expected.append(int.from_bytes(data, "little") if lane < 31 else 0)
        assert got == expected
    piece = (
        f"{b.text()}v_mov_b32 v20, v0\nv_and_b32 v21, 31, v0\nv_add_u32 v5, 0x1234, v0\n"
        "buffer_store_short v5, v[20:21], s[12:15], 0 idxen offen\ns_waitcnt vmcnt(0)\n"
        f"buffer_load_ushort v4, v[20:21], s[12:15], 0 idxen offen\n{WAIT}"
    )
    ((got,),) = bench.run([piece], 1, data=DATA)
    assert got == [0x1234 + lane for lane in range(LANES)]


def test_strides_of_18_bits(bench: Bench) -> None:
    """With the lane added the data format holds bits 17:14 of the stride."""
    b = Buffer(records=1 << 20, stride=0x4004, add_lane=True)
    piece = f"{b.text()}s_mov_b64 exec, 7\ns_mov_b32 s20, 0\nbuffer_load_dword v4, off, s[12:15], s20\n{WAIT}"
    ((got,),) = bench.run([piece], 1, lanes=3, data=DATA)
    assert got == [word(0x4004 * lane) for lane in range(3)]


def test_parts_out_of_range(bench: Bench) -> None:
    """Of wide accesses each word counts by itself; bytes and halves fit or not."""
    b = Buffer(records=250)
    setup = f"{b.text()}s_mov_b32 s20, 8\nv_lshlrev_b32 v21, 2, v0\n"
    pieces = [
        f"{setup}buffer_load_dwordx4 v[4:7], v21, s[12:15], s20 offen offset:4\n{WAIT}",
        f"{setup}buffer_load_ushort v4, v21, s[12:15], s20 offen offset:2\nv_mov_b32 v5, 0\n"
        f"buffer_load_sbyte v6, v21, s[12:15], s20 offen offset:1\nv_mov_b32 v7, 0\n{WAIT}",
        # A negative offset is a large one.
        f"{setup}v_subrev_u32 v21, 4, v21\nbuffer_load_dwordx4 v[4:7], v21, s[12:15], 0 offen\n{WAIT}",
    ]
    wide, narrow, negative = bench.run(pieces, 4, data=DATA)
    for lane in range(LANES):
        at = 4 * lane + 4
        expected = [word(at + 8 + 4 * k) if at + 4 * k + 4 <= 250 else 0 for k in range(4)]
        assert [w[lane] for w in wide] == expected
        half = int.from_bytes(DATA[at + 6 : at + 8], "little") if at <= 250 else 0
        byte = int.from_bytes(DATA[at + 5 : at + 6], "little", signed=True) & M32 if at - 2 <= 250 else 0
        assert [w[lane] for w in narrow] == [half, 0, byte, 0]
        at = 4 * lane - 4
        words = [word(at + 4 * k) if at + 4 * k + 4 <= 250 else 0 for k in range(4)]
        assert [w[lane] for w in negative] == (words if lane else [0] * 4)


def test_stores_out_of_range(bench: Bench) -> None:
    """Stores are dropped, word by word; atomics do nothing and return 0."""
    b = Buffer(records=100)
    returns = "glc" if bench.arch == "gfx90a" else "sc0"
    piece = (
        f"{b.text()}s_mov_b32 s20, 0\nv_lshlrev_b32 v21, 4, v0\n"
        + "\n".join(f"v_add_u32 v{24 + i}, {100 * i}, v0" for i in range(4))
        + f"\nbuffer_store_dwordx4 v[24:27], v21, s[12:15], s20 offen\n{WAIT}"
        + f"v_mov_b32 v4, 5\nbuffer_atomic_add v4, v21, s[12:15], s20 offen {returns}\n{WAIT}"
    )
    ((old,),) = bench.run([piece], 1, data=DATA)
    memory = bytearray(DATA)
    expected = []
    for lane in range(LANES):
        expected.append(lane if 16 * lane + 4 <= 100 else 0)
        for k in range(4):
            at = 16 * lane + 4 * k
            if at + 4 <= 100:
                memory[at : at + 4] = (lane + 100 * k + (5 if k == 0 else 0)).to_bytes(4, "little")
    assert old == expected
    assert bench.memory == bytes(memory)


def test_wide_atomics_out_of_range(bench: Bench) -> None:
    """They are in range as a whole or not at all."""
    returns = "glc" if bench.arch == "gfx90a" else "sc0"
    piece = (
        f"{Buffer(records=12).text()}s_mov_b64 exec, 3\nv_lshlrev_b32 v21, 3, v0\nv_mov_b32 v4, 1\n"
        f"v_mov_b32 v5, 0\nbuffer_atomic_add_x2 v[4:5], v21, s[12:15], 0 offen {returns}\n{WAIT}"
    )
    (words,) = bench.run([piece], 2, lanes=2, data=bytes(range(16)))
    assert words == [[0x03020100, 0], [0x07060504, 0]]
    assert bench.memory == b"\x01" + bytes(range(1, 16))


# ---- formats

NUMBERS = ("unorm", "snorm", "uscaled", "sscaled", "uint", "sint", "reserved", "float")
LAYOUTS = {
    # Widths from x on; x stands in the lowest bits.
    1: (8,),
    2: (16,),
    3: (8, 8),
    4: (32,),
    5: (16, 16),
    6: (11, 11, 10),
    7: (10, 11, 11),
    8: (2, 10, 10, 10),
    9: (10, 10, 10, 2),
    10: (8, 8, 8, 8),
    11: (32, 32),
    12: (16, 16, 16, 16),
    13: (32, 32, 32),
    14: (32, 32, 32, 32),
}


def is_there(data: int, number: int) -> bool:
    """Combinations that the table of buffer formats has."""
    widths = LAYOUTS[data]
    if number == 6:
        return False
    if number == 7:
        return widths[0] in (16, 32) or data in (6, 7)
    return number in (4, 5) or widths[0] < 32


COMBINATIONS = [(d, n) for d in LAYOUTS for n in range(8) if is_there(d, n)]


def f32(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def real(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def small_float(raw: int, bits: int) -> float:
    """Five bits of exponent, no sign below 16 bits."""
    if bits == 16:
        return struct.unpack("<e", raw.to_bytes(2, "little"))[0]
    fraction_bits = bits - 5
    exponent, fraction = raw >> fraction_bits, raw & (1 << fraction_bits) - 1
    if exponent == 31:
        return math.nan if fraction else math.inf
    lead = 1 if exponent else 0
    return (lead + fraction / (1 << fraction_bits)) * 2.0 ** (max(exponent, 1) - 15)


def signed(value: int, bits: int) -> int:
    return value - ((value >> bits - 1 & 1) << bits)


def decoded(raw: int, bits: int, number: int) -> int:
    """A channel as a register of 32 bits."""
    match NUMBERS[number]:
        case "unorm":
            return f32(raw / ((1 << bits) - 1))
        case "snorm":
            return f32(max(signed(raw, bits) / ((1 << bits - 1) - 1), -1.0))
        case "uscaled":
            return f32(raw)
        case "sscaled":
            return f32(signed(raw, bits))
        case "uint":
            return raw
        case "sint":
            return signed(raw, bits) & M32
        case _:
            return raw if bits == 32 else f32(small_float(raw, bits))


def channels(data: int, element: bytes) -> list[int]:
    raw, at, found = int.from_bytes(element, "little"), 0, []
    for bits in LAYOUTS[data]:
        found.append(raw >> at & (1 << bits) - 1)
        at += bits
    return found


def edges(data: int) -> list[bytes]:
    """Elements: all zeros, all ones, one channel's sign or lowest bit set, and random ones."""
    widths, rng = LAYOUTS[data], random.Random(data)
    size = sum(widths) // 8
    values, at = [0, (1 << 8 * size) - 1], 0
    for bits in widths:
        ones = (1 << bits - 1) - 1
        values += [1 << at + bits - 1, 1 << at, ones << at, (ones + 2) << at]
        at += bits
    elements = [v.to_bytes(size, "little") for v in values]
    return elements + [rng.randbytes(size) for _ in range(LANES - len(elements))]


def is_nan(bits: int) -> bool:
    return bits & 0x7FFFFFFF > 0x7F800000


def test_formats(bench: Bench) -> None:
    """Every data format with every number format, by MTBUF, and by MUBUF whose descriptor names them."""
    data, pieces, expected = b"", [], []
    for kind, number in COMBINATIONS:
        elements = edges(kind)
        size = len(elements[0])
        base = len(data)
        raw = Buffer(1 << 20).text()
        named = Buffer(1 << 20, number=number, data=kind, select=(7, 0, 1, 4)).text()
        setup = f"s_mov_b32 s20, {base}\nv_mul_u32_u24 v21, {size}, v0\n"
        where = "v21, s[12:15], {}s20 offen"
        typed = where.format(f"dfmt:{kind}, nfmt:{number}, ")
        pieces.append(
            f"{raw}{setup}tbuffer_load_format_xyzw v[4:7], {typed}\n"
            f"{named}\nbuffer_load_format_xyzw v[8:11], {where.format('')}\n{WAIT}"
        )
        one = 1 if NUMBERS[number] in ("uint", "sint") else f32(1.0)
        for element in elements:
            values = [
                decoded(c, b, number) for c, b in zip(channels(kind, element), LAYOUTS[kind], strict=True)
            ]
            values += [0] * (4 - len(values))
            expected.append(((kind, number), element, [*values, values[3], 0, one, values[0]]))
        data += b"".join(elements) + bytes(-size * LANES % 16)
    got = bench.run(pieces, 8, data=data + bytes(64))
    rows = [[piece[k][lane] for k in range(8)] for piece in got for lane in range(LANES)]
    for (names, element, wanted), row in zip(expected, rows, strict=True):
        same = [a == b or (is_nan(a) and is_nan(b)) for a, b in zip(row, wanted, strict=True)]
        assert all(same), f"data format {names[0]}, {NUMBERS[names[1]]}: {element.hex()} {row} {wanted}"


def half_of(bits: int, number: int) -> int:
    """A register of 32 bits as D16 has it."""
    if NUMBERS[number] in ("uint", "sint"):
        return bits & 0xFFFF
    try:
        return int.from_bytes(struct.pack("<e", real(bits)), "little")
    except OverflowError:
        return 0x7C00 | bits >> 16 & 0x8000


def quiet(words: list[int]) -> list[int]:
    """Four words and two pairs of halves, every NaN the same."""
    whole = [M32 if is_nan(word) else word for word in words[:4]]
    halves = [half for word in words[4:] for half in (word & 0xFFFF, word >> 16)]
    return whole + [0x7FFF if half & 0x7FFF > 0x7C00 else half for half in halves]


OLD = 0x7BAD600D
SUFFIXES = ("x", "xy", "xyz", "xyzw")


@pytest.mark.parametrize("typed", [True, False], ids=["tbuffer", "buffer"])
def test_counts_and_halves(bench: Bench, typed: bool) -> None:
    """x, xy, xyz and xyzw, whole and as D16; registers that are not named stay, and halves of them."""
    name = "tbuffer" if typed else "buffer"
    kinds = [(10, 0), (12, 7), (12, 5), (14, 7), (9, 1)]
    data, pieces, expected = b"", [], []
    old = "\n".join(f"v_mov_b32 v{4 + i}, {OLD:#x}" for i in range(6)) + "\n"
    for kind, number in kinds:
        elements, base = edges(kind), len(data)
        data += b"".join(elements)
        resource = Buffer(1 << 20) if typed else Buffer(1 << 20, number=number, data=kind)
        setup = f"{resource.text()}s_mov_b32 s20, {base}\nv_mul_u32_u24 v21, {len(elements[0])}, v0\n"
        for i, suffix in enumerate(SUFFIXES):
            to = "v4" if i == 0 else f"v[4:{4 + i}]"
            half_to = "v8" if i < 2 else "v[8:9]"
            where = f"v21, s[12:15], {f'dfmt:{kind}, nfmt:{number}, ' if typed else ''}s20 offen"
            pieces.append(
                f"{setup}{old}{name}_load_format_{suffix} {to}, {where}\n"
                f"{name}_load_format_d16_{suffix} {half_to}, {where}\n{WAIT}"
            )
            for element in elements:
                raw = zip(channels(kind, element), LAYOUTS[kind], strict=True)
                values = [decoded(c, b, number) for c, b in raw]
                words = values[: i + 1] + [OLD] * (3 - i)
                halves = [half_of(v, number) for v in values[: i + 1]]
                halves += [OLD & 0xFFFF, OLD >> 16, OLD & 0xFFFF, OLD >> 16][i + 1 :]
                words += [halves[0] | halves[1] << 16, halves[2] | halves[3] << 16]
                expected.append((kind, number, suffix, element, words))
    got = bench.run(pieces, 6, data=data)
    rows = [[piece[k][lane] for k in range(6)] for piece in got for lane in range(LANES)]
    for (kind, number, suffix, element, wanted), row in zip(expected, rows, strict=True):
        assert quiet(row) == quiet(wanted), (
            f"data format {kind}, {NUMBERS[number]}, {suffix}: {element.hex()}"
        )


def encoded(value: int, bits: int, number: int) -> int:
    """A register to a channel: what is out of range becomes the nearest, what is no number 0."""
    top, half, mask = (1 << bits) - 1, (1 << bits - 1) - 1, (1 << bits) - 1
    x = real(value)
    match NUMBERS[number]:
        case "unorm":
            return 0 if math.isnan(x) else round(min(max(x, 0.0), 1.0) * top)
        case "snorm":
            return 0 if math.isnan(x) else round(min(max(x, -1.0), 1.0) * half) & mask
        case "uscaled":
            return 0 if math.isnan(x) else int(min(max(x, 0.0), top))
        case "sscaled":
            return 0 if math.isnan(x) else int(min(max(x, -half - 1), half)) & mask
        case "uint":
            return min(value, top)
        case "sint":
            return min(max(signed(value, 32), -half - 1), half) & mask
        case _:
            return value if bits == 32 else half_of(value, 7)


VALUES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.25,
    -0.75,
    0.5,
    3.0,
    -3.5,
    100.7,
    1e6,
    -1e6,
    0.0019,
    math.inf,
    -math.inf,
    math.nan,
]
WORDS = [
    *map(f32, VALUES),
    0,
    1,
    127,
    128,
    255,
    256,
    511,
    512,
    1023,
    32767,
    32768,
    65535,
    65536,
    M32,
    M32 - 127,
]
WORDS += [1 << 31, M32 - 32767, 5]


def test_stores(bench: Bench) -> None:
    """Every combination of formats; NaN's bits and those of floats below 16 bits are not compared."""
    words = (WORDS * 3)[:LANES]
    given = b"".join(
        struct.pack("<4I", *(words[(lane + 5 * k) % LANES] for k in range(4))) for lane in range(LANES)
    )
    load = "v_lshlrev_b32 v22, 4, v0\nglobal_load_dwordx4 v[24:27], v22, s[4:5]\n" + WAIT
    at, pieces, places = len(given), [], []
    for kind, number in COMBINATIONS:
        size = sum(LAYOUTS[kind]) // 8
        raw, named = Buffer(1 << 20).text(), Buffer(1 << 20, number=number, data=kind).text()
        setup = f"s_mov_b32 s20, {at}\nv_mul_u32_u24 v21, {size}, v0\n"
        pieces.append(
            f"{raw}{setup}{load}"
            f"tbuffer_store_format_xyzw v[24:27], v21, s[12:15], dfmt:{kind}, nfmt:{number}, s20 offen\n"
            f"{named}s_add_u32 s20, s20, {size * LANES}\n"
            f"buffer_store_format_xyzw v[24:27], v21, s[12:15], s20 offen\nv_mov_b32 v4, 0\n"
        )
        places.append(at)
        at += 2 * size * LANES
        at += -at % 16
    bench.run(pieces, 1, data=given + bytes(at))
    for (kind, number), place in zip(COMBINATIONS, places, strict=True):
        widths = LAYOUTS[kind]
        size = sum(widths) // 8
        for lane, half in itertools.product(range(LANES), (0, 1)):
            start = place + size * (lane + LANES * half)
            got = channels(kind, bench.memory[start : start + size])
            values = struct.unpack_from("<4I", given, 16 * lane)
            for channel, bits in enumerate(widths):
                value = values[channel]
                if NUMBERS[number] == "float" and (is_nan(value) or bits < 16):
                    continue
                wanted = encoded(value, bits, number)
                assert got[channel] == wanted, f"{kind} {NUMBERS[number]} {value:#x} {real(value)}"


def test_small_float_stores(bench: Bench) -> None:
    """10_11_11 and 11_11_10: numbers that they hold exactly come back; what is negative becomes 0."""
    values = [0.0, 1.0, 0.5, 1.75, 6.5e4 // 2048 * 2048, 2.0**-14, 2.0**-19, math.inf, -2.0, -math.inf]
    pieces = []
    for kind in (6, 7):
        for value in values:
            moves = "\n".join(f"v_mov_b32 v{24 + i}, {f32(value):#x}" for i in range(3))
            where = f"off, s[12:15], dfmt:{kind}, nfmt:7, 0"
            pieces.append(
                f"{Buffer(64).text()}{moves}\ns_mov_b64 exec, 1\n"
                f"tbuffer_store_format_xyz v[24:26], {where}\n{WAIT}"
                f"tbuffer_load_format_xyz v[4:6], {where}\n{WAIT}"
            )
    got = [[w[0] for w in piece] for piece in bench.run(pieces, 3, lanes=1)]
    assert got == [[f32(max(v, 0.0))] * 3 for v in values] * 2


@pytest.mark.parametrize("typed", [True, False], ids=["tbuffer", "buffer"])
def test_store_counts(bench: Bench, typed: bool) -> None:
    """x, xy, xyz and xyzw, whole and as D16: channels that a store does not name stay as they were."""
    values = [1.0, -2.0, 0.5, 8.0]
    halves = [half_of(f32(value), 7) for value in values]
    setup = "\n".join(f"v_mov_b32 v{24 + i}, {f32(value):#x}" for i, value in enumerate(values))
    for i in range(2):
        setup += f"\nv_mov_b32 v{28 + i}, {halves[2 * i] | halves[2 * i + 1] << 16:#x}\n"
    piece = Buffer(1 << 10, number=7, data=12).text() + setup + "s_mov_b64 exec, 1\n"
    name, formats = ("tbuffer", "dfmt:12, nfmt:7, ") if typed else ("buffer", "")
    given = random.Random(5).randbytes(128)
    expected = bytearray(given)
    for i, suffix in enumerate(SUFFIXES):
        stored = b"".join(half.to_bytes(2, "little") for half in halves[: i + 1])
        whole, packed = ("v24", "v28") if i == 0 else (f"v[24:{24 + i}]", "v28" if i == 1 else "v[28:29]")
        for form, registers, at in (("", whole, 8 * i), ("d16_", packed, 64 + 8 * i)):
            piece += (
                f"{name}_store_format_{form}{suffix} {registers}, off, s[12:15], {formats}0 offset:{at}\n"
            )
            expected[at : at + len(stored)] = stored
    bench.run([piece + WAIT], 1, lanes=1, data=given)
    assert bench.memory == bytes(expected)


def test_high_halves(bench: Bench) -> None:
    """buffer_*_format_d16_hi_x: the register's high half alone."""
    piece = (
        f"{Buffer(64).text()}v_mov_b32 v24, 0x38001234\ns_mov_b64 exec, 1\n"
        f"buffer_store_format_d16_hi_x v24, off, s[12:15], 0 offset:12\n{WAIT}v_mov_b32 v4, 0x11112222\n"
        f"buffer_load_format_d16_hi_x v4, off, s[12:15], 0 offset:12\n{WAIT}"
    )
    assert bench.run([piece], 1, lanes=1) == [[[0x38002222]]]
    assert bench.memory[12:16] == struct.pack("<f", 0.5)


def test_caches(bench: Bench) -> None:
    """Instructions for caches change nothing that a program sees."""
    names = ["buffer_wbl2", "buffer_invl2", "buffer_wbinvl1", "buffer_wbinvl1_vol"]
    if bench.arch != "gfx90a":
        names = ["buffer_wbl2 sc1", "buffer_inv sc1"]
    assert bench.run(["v_mov_b32 v4, 6\n" + "\n".join(names) + "\n" + WAIT], 1, lanes=1) == [[[6]]]


def test_format_bounds(bench: Bench) -> None:
    """An element is in range as a whole or not at all; a component of 1 is 1 even so."""
    b = Buffer(records=40, number=7, data=14, select=(4, 5, 1, 7))
    piece = (
        f"{b.text()}v_lshlrev_b32 v21, 3, v0\ns_mov_b32 s20, 0\n"
        f"buffer_load_format_xyzw v[4:7], v21, s[12:15], s20 offen\n{WAIT}"
        f"{Buffer(records=40, data=14).text()}"
        f"buffer_store_format_xyzw v[4:7], v21, s[12:15], s20 offen offset:128\n{WAIT}"
    )
    (got,) = bench.run([piece], 4, data=DATA)
    for lane in range(LANES):
        words = [word(8 * lane + 4 * k) for k in range(4)] if 8 * lane + 16 <= 40 else [0] * 4
        words[2] = f32(1.0)
        assert [w[lane] for w in got] == words
    assert bench.memory == DATA  # nothing of the store was in range


# ---- to LDS


def test_loads_to_lds(bench: Bench) -> None:
    """LDS_ADDR = M0 + inst_offset + lane * 4, of three and four words lane * 16; parts become words."""
    wide = bench.arch == "gfx950"
    forms = {
        "dword": (4, lambda raw: raw),
        "ubyte": (1, lambda raw: raw[:1] + bytes(3)),
        "sbyte": (
            1,
            lambda raw: int.from_bytes(raw[:1], "little", signed=True).to_bytes(4, "little", signed=True),
        ),
        "ushort": (2, lambda raw: raw[:2] + bytes(2)),
        "sshort": (
            2,
            lambda raw: int.from_bytes(raw[:2], "little", signed=True).to_bytes(4, "little", signed=True),
        ),
        "format_x": (1, lambda raw: struct.pack("<f", raw[0] / 255)),
        **({"dwordx3": (12, lambda raw: raw), "dwordx4": (16, lambda raw: raw)} if wide else {}),
    }
    on = 0x5555FFFF0000FFF1
    clear = "v_mov_b32 v30, 0\nv_mov_b32 v31, 0\nv_lshlrev_b32 v32, 6, v0\n" + "\n".join(
        f"ds_write_b64 v32, v[30:31] offset:{8 * i}" for i in range(8)
    )
    pieces = []
    for name, (size, _) in forms.items():
        unit = max(4, size)
        b = Buffer(records=1000, number=0, data=1 if name == "format_x" else 4)
        pieces.append(
            f"{b.text()}{clear}\ns_waitcnt lgkmcnt(0)\ns_mov_b32 m0, 128\nv_mul_u32_u24 v21, 20, v0\n"
            f"s_mov_b32 exec_lo, {on & M32:#x}\ns_mov_b32 exec_hi, {on >> 32:#x}\n"
            f"buffer_load_{name} v21, s[12:15], 0 offen offset:12 lds\n{WAIT}s_mov_b64 exec, -1\n"
            f"v_mul_u32_u24 v32, {16 if unit == 12 else unit}, v0\n"
            + "\n".join(f"ds_read_b32 v{4 + i}, v32 offset:{140 + 4 * i}" for i in range(unit // 4))
        )
    for (name, (size, of)), piece in zip(forms.items(), bench.run(pieces, 4, data=DATA), strict=True):
        for lane in range(LANES):
            at = 20 * lane + 12
            raw = b"".join(
                DATA[at + 4 * k :][:4] if at + 4 * k + min(size, 4) <= 1000 else bytes(4) for k in range(4)
            )
            expected = of(raw[: max(size, 4)] if size > 4 else raw[:4]) if on >> lane & 1 else bytes(16)
            count = max(4, size) // 4
            got = struct.pack(f"<{count}I", *(piece[k][lane] for k in range(count)))
            assert got == expected[: 4 * count], f"{name}, lane {lane}"


# ---- faults


@pytest.mark.parametrize(
    ("text", "fault", "words"),
    [
        (Buffer(1 << 20).text() + "buffer_load_dword v4, off, s[12:15], 0 offset:64", "out of bounds", "0x"),
        (
            Buffer(1 << 20).text() + "v_mov_b32 v20, 2\nbuffer_atomic_add v4, v20, s[12:15], 0 offen",
            "misaligned",
            "an atomic of 4 bytes",
        ),
        (
            Buffer(64, stride=16, swizzle=True).text() + "buffer_load_dwordx2 v[4:5], off, s[12:15], 0",
            "unimplemented",
            "swizzled buffer",
        ),
        (
            Buffer(64, number=0).text() + "buffer_load_format_x v4, off, s[12:15], 0",
            "unimplemented",
            "data format 4 with number format unorm",
        ),
        (
            Buffer(64).text() + "tbuffer_load_format_x v4, off, s[12:15], dfmt:1, nfmt:7, 0",
            "unimplemented",
            "data format 1 with number format float",
        ),
        (
            Buffer(64, data=10, number=0, select=(6, 5, 4, 7)).text()
            + "buffer_store_format_xyzw v[4:7], off, s[12:15], 0",
            "unimplemented",
            "dst_sel",
        ),
    ],
)
def test_faults(bench: Bench, text: str, fault: str, words: str) -> None:
    report = fault_of(bench, text)
    assert report.fault == fault
    assert words in report.text
    assert report.instruction.split()[0] == text.splitlines()[-1].split()[0]
