# SPDX-License-Identifier: MIT
"""Integer and bit instructions of the vector ALU, against what AMD's documents say of them.

Expected numbers are from the pseudocode of "AMD Instinct MI300 Instruction Set Architecture" and "CDNA4
Instruction Set Architecture", chapter "Instructions", sections VOP1, VOP2, VOP3 and VOP3P, worked out by
hand or in Python's integers. Clamping is that of section "Output Modifiers": integers go to the nearest
that their type has.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import toolchain
from sim import ARCHS, SimError
from values import Batch, signed

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
EDGES = (
    0,
    1,
    2,
    31,
    32,
    33,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFF,
    0x00FFFFFF,
    0x00800000,
    0xFFFF7FFF,
)
EDGES16 = (0, 1, 15, 16, 0x7FFF, 0x8000, 0x8001, 0xFFFF)


def numbers(seed: str, count: int, bits: int = 32) -> list[int]:
    """Edge values first, then random ones."""
    rng = random.Random(seed)
    edges = (
        EDGES16 if bits == 16 else EDGES if bits == 32 else (0, 1, 1 << 63, M64, 0x7FFFFFFFFFFFFFFF, 1 << 32)
    )
    return [
        *(rng.choice(edges) for _ in range(count // 2)),
        *(rng.getrandbits(bits) for _ in range(count - count // 2)),
    ]


def sweep(
    batch: Batch,
    text: str,
    function: Callable[..., int],
    *,
    bits: dict[str, int] | None = None,
    width: int = 32,
    old: bool = False,
) -> None:
    """64 tuples of numbers through an instruction and a function; `old`: d's old value is one of them."""
    names = [name for name in "abc" if f"{{{name}}}" in text]
    columns = {name: numbers(f"{text} {name}", 64, (bits or {}).get(name, width)) for name in names}
    if old:
        columns["d"] = numbers(f"{text} d", 64)
    results = [function(*row) for row in zip(*columns.values(), strict=True)]
    batch.add(text, results, bits=bits, **columns)


def clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def i32(value: int) -> int:
    return signed(value, 32)


def i16(value: int) -> int:
    return signed(value, 16)


def i24(value: int) -> int:
    return signed(value, 24)


def leading(value: int) -> int:
    return 32 - value.bit_length() if value else M32


def sign_change(value: int) -> int:
    """V_FFBH_I32: how many bits from the top are as the sign; -1 if all."""
    return leading(value ^ (M32 if value >> 31 else 0))


def bfe_u32(a: int, b: int, c: int) -> int:
    return a >> (b & 31) & ((1 << (c & 31)) - 1)


def bfe_i32(a: int, b: int, c: int) -> int:
    width = c & 31
    return signed(i32(a) >> (b & 31) & ((1 << width) - 1), width) & M32 if width else 0


def permute(a: int, b: int, c: int) -> int:
    both, word = a << 32 | b, 0
    for i in range(4):
        select = c >> 8 * i & 255
        if select >= 13:
            byte = 255
        elif select == 12:
            byte = 0
        elif select >= 8:
            byte = 255 * (both >> (16 * (select - 8) + 15) & 1)
        else:
            byte = both >> 8 * select & 255
        word |= byte << 8 * i
    return word


def pieces(value: int, width: int, count: int) -> list[int]:
    return [value >> width * i & ((1 << width) - 1) for i in range(count)]


def sad_u8(a: int, b: int, c: int = 0, *, masked: bool = False) -> int:
    pairs = zip(pieces(a, 8, 4), pieces(b, 8, 4), strict=True)
    return c + sum(abs(x - y) for x, y in pairs if y or not masked)


def quad(a: int, b: int, c: int, *, masked: bool, width: int, top: bool = False) -> int:
    """QSAD: four sums; for each the first source is shifted by another byte."""
    most, result = (1 << width) - 1, 0
    for i in range(4):
        total = sad_u8(a >> 8 * i, b, c >> width * i & most, masked=masked)
        result |= (min(total, most) if top else total & most) << width * i
    return result


def dot(a: int, b: int, width: int, *, is_signed: bool) -> int:
    def read(value: int) -> list[int]:
        return [signed(v, width) if is_signed else v for v in pieces(value, width, 32 // width)]

    return sum(x * y for x, y in zip(read(a), read(b), strict=True))


def bitop3(a: int, b: int, c: int, table: int, width: int) -> int:
    """The bit of the table that the three sources' bits name, first source highest."""
    return sum((table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(width))


@pytest.mark.parametrize("arch", ARCHS)
def test_one_and_two_sources(arch: str, library: Path, tmp_path: Path) -> None:
    t = Batch(arch)
    sweep(t, "v_mov_b32 {d}, {a}", lambda a: a)
    sweep(t, "v_not_b32 {d}, {a}", lambda a: a ^ M32)
    sweep(t, "v_bfrev_b32 {d}, {a}", lambda a: int(f"{a:032b}"[::-1], 2))
    sweep(t, "v_ffbh_u32 {d}, {a}", leading)
    sweep(t, "v_ffbl_b32 {d}, {a}", lambda a: (a & -a).bit_length() - 1 if a else M32)
    sweep(t, "v_ffbh_i32 {d}, {a}", sign_change)
    sweep(t, "v_bcnt_u32_b32 {d}, {a}, {b}", lambda a, b: a.bit_count() + b & M32)
    sweep(t, "v_and_b32 {d}, {a}, {b}", lambda a, b: a & b)
    sweep(t, "v_or_b32 {d}, {a}, {b}", lambda a, b: a | b)
    sweep(t, "v_xor_b32 {d}, {a}, {b}", lambda a, b: a ^ b)
    sweep(t, "v_xnor_b32 {d}, {a}, {b}", lambda a, b: a ^ b ^ M32)
    sweep(
        t, "v_lshlrev_b32 {d}, {a}, {b}", lambda a, b: b << (a & 31) & M32
    )  # shifts of 32 and more: low five bits
    sweep(t, "v_lshrrev_b32 {d}, {a}, {b}", lambda a, b: b >> (a & 31))
    sweep(t, "v_ashrrev_i32 {d}, {a}, {b}", lambda a, b: i32(b) >> (a & 31) & M32)
    wide = {"b": 64, "d": 64}
    sweep(t, "v_lshlrev_b64 {d}, {a}, {b}", lambda a, b: b << (a & 63) & M64, bits=wide)
    sweep(t, "v_lshrrev_b64 {d}, {a}, {b}", lambda a, b: b >> (a & 63), bits=wide)
    sweep(t, "v_ashrrev_i64 {d}, {a}, {b}", lambda a, b: signed(b, 64) >> (a & 63) & M64, bits=wide)
    sweep(t, "v_bfm_b32 {d}, {a}, {b}", lambda a, b: ((1 << (a & 31)) - 1) << (b & 31) & M32)
    sweep(t, "v_min_u32 {d}, {a}, {b}", min)
    sweep(t, "v_max_u32 {d}, {a}, {b}", max)
    sweep(t, "v_min_i32 {d}, {a}, {b}", lambda a, b: min(a, b, key=i32))
    sweep(t, "v_max_i32 {d}, {a}, {b}", lambda a, b: max(a, b, key=i32))
    sweep(t, "v_mul_lo_u32 {d}, {a}, {b}", lambda a, b: a * b & M32)
    sweep(t, "v_mul_hi_u32 {d}, {a}, {b}", lambda a, b: a * b >> 32)
    sweep(t, "v_mul_hi_i32 {d}, {a}, {b}", lambda a, b: i32(a) * i32(b) >> 32 & M32)
    sweep(t, "v_mul_u32_u24 {d}, {a}, {b}", lambda a, b: (a % 2**24) * (b % 2**24) & M32)
    sweep(t, "v_mul_i32_i24 {d}, {a}, {b}", lambda a, b: i24(a) * i24(b) & M32)
    sweep(t, "v_mul_u32_u24_e64 {d}, {a}, {b} clamp", lambda a, b: min((a % 2**24) * (b % 2**24), M32))
    most = 2**31 - 1
    sweep(
        t, "v_mul_i32_i24_e64 {d}, {a}, {b} clamp", lambda a, b: clamp(i24(a) * i24(b), -most - 1, most) & M32
    )
    sweep(t, "v_mul_hi_u32_u24 {d}, {a}, {b}", lambda a, b: (a % 2**24) * (b % 2**24) >> 32)
    sweep(t, "v_mul_hi_i32_i24 {d}, {a}, {b}", lambda a, b: i24(a) * i24(b) >> 32 & M32)
    sweep(t, "v_cvt_pk_u16_u32 {d}, {a}, {b}", lambda a, b: min(a, 0xFFFF) | min(b, 0xFFFF) << 16)
    sweep(
        t,
        "v_cvt_pk_i16_i32 {d}, {a}, {b}",
        lambda a, b: clamp(i32(a), -32768, 32767) & 0xFFFF | (clamp(i32(b), -32768, 32767) & 0xFFFF) << 16,
    )
    sweep(
        t,
        "v_sat_pk_u8_i16 {d}, {a}",
        lambda a: clamp(i16(a), 0, 255) | clamp(i16(a >> 16), 0, 255) << 8,
    )
    if arch != "gfx90a":
        sweep(t, "v_mov_b64 {d}, {a}", lambda a: a, bits={"a": 64, "d": 64})
        shifted = {"a": 64, "c": 64, "d": 64}
        sweep(t, "v_lshl_add_u64 {d}, {a}, {b}, {c}", lambda a, b, c: (a << (b & 7)) + c & M64, bits=shifted)
    if arch == "gfx950":
        sweep(t, "v_prng_b32 {d}, {a}", lambda a: (a << 1 & M32) ^ (197 if a >> 31 else 0))
    t.run(library, tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
def test_sums_and_carries(arch: str, library: Path, tmp_path: Path) -> None:
    t = Batch(arch)
    sweep(t, "v_add_u32 {d}, {a}, {b}", lambda a, b: a + b & M32)
    sweep(t, "v_sub_u32 {d}, {a}, {b}", lambda a, b: a - b & M32)
    sweep(t, "v_subrev_u32 {d}, {a}, {b}", lambda a, b: b - a & M32)
    sweep(t, "v_add_u32_e64 {d}, {a}, {b} clamp", lambda a, b: min(a + b, M32))
    sweep(t, "v_sub_u32_e64 {d}, {a}, {b} clamp", lambda a, b: max(a - b, 0))
    sweep(t, "v_subrev_u32_e64 {d}, {a}, {b} clamp", lambda a, b: max(b - a, 0))
    sweep(t, "v_add_i32 {d}, {a}, {b}", lambda a, b: a + b & M32)
    sweep(t, "v_add_i32 {d}, {a}, {b} clamp", lambda a, b: clamp(i32(a) + i32(b), -(2**31), 2**31 - 1) & M32)
    sweep(t, "v_sub_i32 {d}, {a}, {b} clamp", lambda a, b: clamp(i32(a) - i32(b), -(2**31), 2**31 - 1) & M32)
    sweep(t, "v_add3_u32 {d}, {a}, {b}, {c}", lambda a, b, c: a + b + c & M32)
    sweep(t, "v_lshl_add_u32 {d}, {a}, {b}, {c}", lambda a, b, c: (a << (b & 31)) + c & M32)
    sweep(t, "v_add_lshl_u32 {d}, {a}, {b}, {c}", lambda a, b, c: (a + b & M32) << (c & 31) & M32)
    sweep(t, "v_xad_u32 {d}, {a}, {b}, {c}", lambda a, b, c: (a ^ b) + c & M32)
    carries = 0xA5A5_0F0F_1234_8001
    set_carry = f"s_mov_b32 vcc_lo, {carries & M32:#x}\ns_mov_b32 vcc_hi, {carries >> 32:#x}"
    for name, function in {
        "v_add_co_u32 {d}, {s}, {a}, {b}": lambda a, b, _: a + b,
        "v_sub_co_u32 {d}, {s}, {a}, {b}": lambda a, b, _: a - b,
        "v_subrev_co_u32 {d}, {s}, {a}, {b}": lambda a, b, _: b - a,
        "v_addc_co_u32 {d}, {s}, {a}, {b}, vcc": lambda a, b, carry: a + b + carry,
        "v_subb_co_u32 {d}, {s}, {a}, {b}, vcc": lambda a, b, carry: a - b - carry,
        "v_subbrev_co_u32 {d}, {s}, {a}, {b}, vcc": lambda a, b, carry: b - a - carry,
    }.items():
        a, b = numbers(name + "a", 64), numbers(name + "b", 64)
        sums = [function(a[i], b[i], carries >> i & 1) for i in range(64)]
        mask = sum((not 0 <= total <= M32) << i for i, total in enumerate(sums))
        t.add(name, [total & M32 for total in sums], mask=mask, before=set_carry, a=a, b=b)
        t.add(name + " clamp", [clamp(v, 0, M32) for v in sums], mask=mask, before=set_carry, a=a, b=b)
    t.add(
        "v_cndmask_b32 {d}, {a}, {b}, vcc",
        [6 - (carries >> i & 1) for i in range(64)],
        before=set_carry,
        a=[6],
        b=[5],
    )
    # V_MAD_U64_U32 and V_MAD_I64_I32: "{ D1.u1, D0.u64 } = 65'B(...)": the carry is bit 64 of the sum.
    wide = {"c": 64, "d": 64}
    a, b, c = numbers("mad64 a", 64), numbers("mad64 b", 64), numbers("mad64 c", 64, 64)
    sums = [a[i] * b[i] + c[i] for i in range(64)]
    mask = sum((total >> 64 & 1) << i for i, total in enumerate(sums))
    t.add(
        "v_mad_u64_u32 {d}, {s}, {a}, {b}, {c}", [v & M64 for v in sums], mask=mask, bits=wide, a=a, b=b, c=c
    )
    sums = [i32(a[i]) * i32(b[i]) + signed(c[i], 64) for i in range(64)]
    mask = sum((total >> 64 & 1) << i for i, total in enumerate(sums))
    t.add(
        "v_mad_i64_i32 {d}, {s}, {a}, {b}, {c}", [v & M64 for v in sums], mask=mask, bits=wide, a=a, b=b, c=c
    )
    t.run(library, tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
def test_three_sources(arch: str, library: Path, tmp_path: Path) -> None:
    t = Batch(arch)
    abc = "{d}, {a}, {b}, {c}"
    sweep(t, f"v_bfe_u32 {abc}", bfe_u32)
    sweep(t, f"v_bfe_i32 {abc}", bfe_i32)
    # A field that reaches over bit 31: V_BFE_I32's shift fills in the sign.
    t.table(
        f"v_bfe_i32 {abc}",
        [(0x80000000, 31, 4, 0xFFFFFFFF), (0x40000000, 30, 3, 1), (0xF0, 4, 4, 0xFFFFFFFF)],
    )
    sweep(t, f"v_bfi_b32 {abc}", lambda a, b, c: a & b | (a ^ M32) & c)
    sweep(t, f"v_and_or_b32 {abc}", lambda a, b, c: a & b | c)
    sweep(t, f"v_or3_b32 {abc}", lambda a, b, c: a | b | c)
    sweep(t, f"v_lshl_or_b32 {abc}", lambda a, b, c: a << (b & 31) & M32 | c)
    sweep(t, f"v_alignbit_b32 {abc}", lambda a, b, c: (a << 32 | b) >> (c & 31) & M32)
    sweep(t, f"v_alignbyte_b32 {abc}", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3) & M32)
    sweep(t, f"v_perm_b32 {abc}", permute)
    selects = [0x0B0A0908, 0x0D0C0100, 0x07060504, 0xFF0E0302]
    t.table(
        f"v_perm_b32 {abc}",
        [(0x80FF1234, 0x7F008001, c, permute(0x80FF1234, 0x7F008001, c)) for c in selects],
    )
    for name, key in (("u32", None), ("i32", i32)):
        sweep(t, f"v_min3_{name} {abc}", lambda *v, key=key: min(v, key=key))
        sweep(t, f"v_max3_{name} {abc}", lambda *v, key=key: max(v, key=key))
        sweep(t, f"v_med3_{name} {abc}", lambda *v, key=key: sorted(v, key=key)[1])
    sweep(t, f"v_mad_u32_u24 {abc}", lambda a, b, c: (a % 2**24) * (b % 2**24) + c & M32)
    sweep(t, f"v_mad_u32_u24 {abc} clamp", lambda a, b, c: min((a % 2**24) * (b % 2**24) + c, M32))
    sweep(t, f"v_mad_i32_i24 {abc}", lambda a, b, c: i24(a) * i24(b) + i32(c) & M32)
    sweep(
        t,
        f"v_mad_i32_i24 {abc} clamp",
        lambda a, b, c: clamp(i24(a) * i24(b) + i32(c), -(2**31), 2**31 - 1) & M32,
    )
    sweep(t, f"v_mad_u32_u16 {abc}", lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) + c & M32)
    sweep(t, f"v_mad_i32_i16 {abc}", lambda a, b, c: i16(a) * i16(b) + i32(c) & M32)
    sweep(t, f"v_mad_i32_i16 {abc} op_sel:[1,0,0]", lambda a, b, c: i16(a >> 16) * i16(b) + i32(c) & M32)
    sweep(t, f"v_sad_u8 {abc}", lambda a, b, c: sad_u8(a, b, c) & M32)
    sweep(t, f"v_sad_u8 {abc} clamp", lambda a, b, c: min(sad_u8(a, b, c), M32))
    sweep(t, f"v_sad_hi_u8 {abc}", lambda a, b, c: (sad_u8(a, b) << 16) + c & M32)
    sweep(
        t,
        f"v_sad_u16 {abc}",
        lambda a, b, c: abs((a & 0xFFFF) - (b & 0xFFFF)) + abs((a >> 16) - (b >> 16)) + c & M32,
    )
    sweep(t, f"v_sad_u32 {abc}", lambda a, b, c: abs(a - b) + c & M32)
    sweep(t, f"v_msad_u8 {abc}", lambda a, b, c: sad_u8(a, b, c, masked=True) & M32)
    t.table(
        f"v_msad_u8 {abc}", [(0x11223344, 0x00FF0044, 5, 0xFF - 0x22 + 5)]
    )  # zero bytes of the reference are out
    sweep(
        t,
        f"v_lerp_u8 {abc}",
        lambda a, b, c: sum(
            ((a >> k & 255) + (b >> k & 255) + (c >> k & 1) >> 1) << k for k in (0, 8, 16, 24)
        ),
    )
    wide = {"a": 64, "c": 64, "d": 64}
    sweep(t, f"v_qsad_pk_u16_u8 {abc}", lambda a, b, c: quad(a, b, c, masked=False, width=16), bits=wide)
    sweep(t, f"v_mqsad_pk_u16_u8 {abc}", lambda a, b, c: quad(a, b, c, masked=True, width=16), bits=wide)
    sweep(
        t,
        f"v_qsad_pk_u16_u8 {abc} clamp",
        lambda a, b, c: quad(a, b, c, masked=False, width=16, top=True),
        bits=wide,
    )
    sweep(
        t,
        f"v_mqsad_u32_u8 {abc}",
        lambda a, b, c: quad(a, b, c, masked=True, width=32),
        bits={"a": 64, "c": 128, "d": 128},
    )
    if arch == "gfx950":
        # V_BITOP3: TTBL = { OMOD, ABS, NEG }; bit 7 is for three ones, bit 4 for the first source alone.
        for table in (0x00, 0xFF, 0xF0, 0xCC, 0xAA, 0x80, 0x96, 0xE8, 0x1B):
            sweep(t, f"v_bitop3_b32 {abc} bitop3:{table:#x}", lambda a, b, c, n=table: bitop3(a, b, c, n, 32))
        upper = [0xABCD0000]
        results = [0xABCD0000 | bitop3(0x1234, 0xFF00, 0x0FF0, 0xCA, 16)]
        t.add(f"v_bitop3_b16 {abc} bitop3:0xca", results, a=[0x1234], b=[0xFF00], c=[0x0FF0], d=upper)
        # V_ASHR_PK: "D0[15 : 0] = tmp", so the upper half stays; op_sel writes that one.
        rows = [
            (-1000, 2000, 2, 0x7F80),
            (-1000, 2000, 34, 0x7F80),
            (5, -6, 0, 0xFA05),
            (1 << 30, -(1 << 31), 31, 0xFF00),
        ]
        cols = [[r[i] & M32 for r in rows] for i in range(4)]
        t.add(
            f"v_ashr_pk_i8_i32 {abc}",
            [0xABCD0000 | v for v in cols[3]],
            a=cols[0],
            b=cols[1],
            c=cols[2],
            d=upper,
        )
        t.add(
            f"v_ashr_pk_i8_i32 {abc} op_sel:[0,0,0,1]",
            [v << 16 | 0x5678 for v in cols[3]],
            a=cols[0],
            b=cols[1],
            c=cols[2],
            d=[0x12345678],
        )
        rows = [(-1000, 2000, 2, 0xFF00), (300, 255, 0, 0xFFFF), (5, 256, 1, 0x8002)]
        cols = [[r[i] & M32 for r in rows] for i in range(4)]
        t.add(
            f"v_ashr_pk_u8_i32 {abc}",
            [0xABCD0000 | v for v in cols[3]],
            a=cols[0],
            b=cols[1],
            c=cols[2],
            d=upper,
        )
    t.run(library, tmp_path)


def halves(function: Callable[..., int]) -> Callable[..., int]:
    """A function of 16 bits on both halves."""
    return lambda *v: (
        (function(*(x & 0xFFFF for x in v)) & 0xFFFF) | (function(*(x >> 16 for x in v)) & 0xFFFF) << 16
    )


@pytest.mark.parametrize("arch", ARCHS)
def test_16_bits(arch: str, library: Path, tmp_path: Path) -> None:
    """VOP2's and VOP3's results clear the upper half; v_mad_u16 and v_mad_i16 keep it."""
    t = Batch(arch)
    two: dict[str, Callable[..., int]] = {
        "add_u16": lambda a, b: a + b,
        "sub_u16": lambda a, b: a - b,
        "mul_lo_u16": lambda a, b: a * b,
        "lshlrev_b16": lambda a, b: b << (a & 15),
        "lshrrev_b16": lambda a, b: b >> (a & 15),
        "ashrrev_i16": lambda a, b: i16(b) >> (a & 15),
        "min_u16": min,
        "max_u16": max,
        "min_i16": lambda a, b: min(a, b, key=i16),
        "max_i16": lambda a, b: max(a, b, key=i16),
    }
    for name, function in two.items():
        sweep(t, f"v_{name} {{d}}, {{a}}, {{b}}", lambda a, b, f=function: f(a & 0xFFFF, b & 0xFFFF) & 0xFFFF)
        sweep(t, f"v_pk_{name} {{d}}, {{a}}, {{b}}", halves(function))
    sweep(t, "v_subrev_u16 {d}, {a}, {b}", lambda a, b: b - a & 0xFFFF)
    sweep(t, "v_add_i16 {d}, {a}, {b}", lambda a, b: a + b & 0xFFFF)
    sweep(t, "v_sub_i16 {d}, {a}, {b}", lambda a, b: a - b & 0xFFFF)
    sweep(t, "v_add_u16_e64 {d}, {a}, {b} clamp", lambda a, b: min((a & 0xFFFF) + (b & 0xFFFF), 0xFFFF))
    sweep(t, "v_sub_u16_e64 {d}, {a}, {b} clamp", lambda a, b: max((a & 0xFFFF) - (b & 0xFFFF), 0))
    sweep(t, "v_add_i16 {d}, {a}, {b} clamp", lambda a, b: clamp(i16(a) + i16(b), -32768, 32767) & 0xFFFF)
    sweep(t, "v_pk_add_u16 {d}, {a}, {b} clamp", halves(lambda a, b: min(a + b, 0xFFFF)))
    sweep(t, "v_pk_add_i16 {d}, {a}, {b}", halves(lambda a, b: a + b))
    sweep(t, "v_pk_add_i16 {d}, {a}, {b} clamp", halves(lambda a, b: clamp(i16(a) + i16(b), -32768, 32767)))
    sweep(t, "v_pk_sub_i16 {d}, {a}, {b} clamp", halves(lambda a, b: clamp(i16(a) - i16(b), -32768, 32767)))
    sweep(
        t,
        "v_pk_add_u16 {d}, {a}, {b} op_sel:[1,0] op_sel_hi:[0,1]",
        lambda a, b: (a >> 16) + b & 0xFFFF | ((a + (b >> 16)) & 0xFFFF) << 16,
    )
    sweep(t, "v_pk_mad_u16 {d}, {a}, {b}, {c}", halves(lambda a, b, c: a * b + c))
    sweep(t, "v_pk_mad_i16 {d}, {a}, {b}, {c}", halves(lambda a, b, c: a * b + c))
    sweep(
        t,
        "v_pk_mad_i16 {d}, {a}, {b}, {c} clamp",
        halves(lambda a, b, c: clamp(i16(a) * i16(b) + i16(c), -32768, 32767)),
    )

    def low(function: Callable[..., int]) -> Callable[..., int]:
        return lambda a, b, c, d: d & 0xFFFF0000 | function(*(v & 0xFFFF for v in (a, b, c))) & 0xFFFF

    for name, function in {
        "mad_u16": lambda a, b, c: a * b + c,
        "mad_i16": lambda a, b, c: a * b + c,
    }.items():
        sweep(t, f"v_{name} {{d}}, {{a}}, {{b}}, {{c}}", low(function), old=True)
    sweep(
        t,
        "v_mad_u16 {d}, {a}, {b}, {c} op_sel:[1,0,1,1]",
        lambda a, b, c, d: d & 0xFFFF | ((a >> 16) * (b & 0xFFFF) + (c >> 16) & 0xFFFF) << 16,
        old=True,
    )
    sweep(t, "v_mad_legacy_u16 {d}, {a}, {b}, {c}", lambda a, b, c: a * b + c & 0xFFFF)
    sweep(t, "v_mad_legacy_i16 {d}, {a}, {b}, {c}", lambda a, b, c: a * b + c & 0xFFFF)
    for name, key in (("u16", None), ("i16", i16)):
        for word, pick in (("min3", 0), ("med3", 1), ("max3", 2)):
            sweep(
                t,
                f"v_{word}_{name} {{d}}, {{a}}, {{b}}, {{c}}",
                lambda *v, key=key, pick=pick: sorted((x & 0xFFFF for x in v), key=key)[pick],
            )
    t.run(library, tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
def test_dot_products(arch: str, library: Path, tmp_path: Path) -> None:
    t = Batch(arch)
    forms = {
        "dot2_i32_i16": 16,
        "dot4_i32_i8": 8,
        "dot8_i32_i4": 4,
        "dot2_u32_u16": 16,
        "dot4_u32_u8": 8,
        "dot8_u32_u4": 4,
    }
    for name, width in forms.items():
        is_signed = "_i32" in name
        text = f"v_{name} {{d}}, {{a}}, {{b}}, {{c}}"

        def total(a: int, b: int, c: int, width: int = width, is_signed: bool = is_signed) -> int:
            return dot(a, b, width, is_signed=is_signed) + (i32(c) if is_signed else c)

        low, high = (-(2**31), 2**31 - 1) if is_signed else (0, M32)
        sweep(t, text, lambda a, b, c, f=total: f(a, b, c) & M32)
        sweep(
            t,
            text + " clamp",
            lambda a, b, c, f=total, low=low, high=high: clamp(f(a, b, c), low, high) & M32,
        )
    for name, width in {"dot2c_i32_i16": 16, "dot4c_i32_i8": 8, "dot8c_i32_i4": 4}.items():
        sweep(
            t,
            f"v_{name} {{d}}, {{a}}, {{b}}",
            lambda a, b, d, width=width: dot(a, b, width, is_signed=True) + d & M32,
            old=True,
        )
    t.run(library, tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
def test_what_is_missing_is_named(arch: str, library: Path, tmp_path: Path) -> None:
    t = Batch(arch)
    t.add("v_screen_partition_4se_b32 {d}, {a}", [0], a=[0])
    with pytest.raises(SimError, match=r"lacks this instruction .* v_screen_partition_4se_b32"):
        t.run(library, tmp_path)
