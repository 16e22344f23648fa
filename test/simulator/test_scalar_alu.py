# SPDX-License-Identifier: MIT
"""SOP1, SOP2, SOPC and SOPK with edge values.

Expected values are computed from the descriptions in AMD's "Instinct MI300 Instruction Set Architecture"
(CDNA3), chapter "Instructions", sections "SOP2 Instructions", "SOPK Instructions", "SOP1 Instructions" and
"SOPC Instructions"; those of MI200 and CDNA4 say the same of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import toolchain
from pieces import M32, Bench, set_scc, set_sgprs, show_sgprs
from sim import ARCHS

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

M64 = (1 << 64) - 1
Value = tuple[int, int]  # destination and SCC


@pytest.fixture(params=ARCHS)
def bench(request: pytest.FixtureRequest, library: Path, tmp_path: Path) -> Bench:
    return Bench(request.param, library, tmp_path)


def s32(value: int) -> int:
    """The signed number with these 32 bits."""
    return (value & M32) - ((value & 1 << 31) << 1)


def s64(value: int) -> int:
    """The signed number with these 64 bits."""
    return (value & M64) - ((value & 1 << 63) << 1)


def sign_extend(value: int, bits: int) -> int:
    """The low `bits` bits as a signed number."""
    return (value & (1 << bits) - 1) - ((value & 1 << bits - 1) << 1) if bits else 0


EDGES32 = [0, 1, 2, 0x7F, 0x80, 0xFFFF, 0x8000, 0x12345678, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF]
EDGES64 = [
    0,
    1,
    0xFFFFFFFF,
    1 << 32,
    0x123456789ABCDEF0,
    0x8000000080000000,
    (1 << 63) - 1,
    1 << 63,
    (1 << 63) + 1,
    M64 - 1,
    M64,
]
SHIFTS = [0, 1, 5, 31, 32, 33, 63, 64, 0xFFFFFFFF]
# First bit in 5 (6) bits, width in bits 22:16: none, one, across the top, more than there are; and bits that
# do not count.
FIRSTS, WIDTHS = (0, 1, 8, 31, 32, 63, 64), (0, 1, 5, 24, 31, 32, 33, 63, 64, 127)
FIELDS = [first | width << 16 for first in FIRSTS for width in WIDTHS]
FIELDS += [0xFF80FF88 | 4 << 16]

KEEP = None
Two = Callable[[int, int, int], tuple[int, int | None]]


def carry(value: int, scc: bool) -> tuple[int, int]:
    return value & M32, int(scc)


def field(value: int, control: int, bits: int, signed: bool) -> tuple[int, int]:
    """s_bfe: ((S0 >> first) & ((1 << width) - 1)), the sign taken from bit width - 1 of that."""
    first, width = control & bits - 1, control >> 16 & 127
    part = ((s64(value) if bits == 64 else s32(value)) if signed else value) >> first & (1 << width) - 1
    if signed and width:
        part = sign_extend(part, min(width, bits))
    if width == 0:
        part = 0
    part &= (1 << bits) - 1
    return part, int(part != 0)


def nonzero(value: int, bits: int = 32) -> tuple[int, int]:
    value &= (1 << bits) - 1
    return value, int(value != 0)


def overflow(result: int) -> tuple[int, int]:
    """A signed result of 32 bits and whether it does not fit."""
    return result & M32, int(s32(result) != result)


def absdiff(a: int, b: int) -> tuple[int, int]:
    """D = S0 - S1 in 32 bits; if D < 0 then D = -D."""
    d = s32(a - b)
    return nonzero(-d if d < 0 else d)


# Of 32 bits, all pairs of EDGES32.
TWO32: dict[str, Two] = {
    "s_add_u32": lambda a, b, c: carry(a + b, a + b > M32),
    "s_sub_u32": lambda a, b, c: carry(a - b, b > a),
    "s_add_i32": lambda a, b, c: overflow(s32(a) + s32(b)),
    "s_sub_i32": lambda a, b, c: overflow(s32(a) - s32(b)),
    "s_addc_u32": lambda a, b, c: carry(a + b + c, a + b + c > M32),
    "s_subb_u32": lambda a, b, c: carry(a - b - c, b + c > a),
    "s_min_i32": lambda a, b, c: (a if s32(a) < s32(b) else b, int(s32(a) < s32(b))),
    "s_min_u32": lambda a, b, c: (min(a, b), int(a < b)),
    "s_max_i32": lambda a, b, c: (a if s32(a) >= s32(b) else b, int(s32(a) >= s32(b))),
    "s_max_u32": lambda a, b, c: (max(a, b), int(a >= b)),
    "s_cselect_b32": lambda a, b, c: (a if c else b, KEEP),
    "s_and_b32": lambda a, b, c: nonzero(a & b),
    "s_or_b32": lambda a, b, c: nonzero(a | b),
    "s_xor_b32": lambda a, b, c: nonzero(a ^ b),
    "s_andn2_b32": lambda a, b, c: nonzero(a & ~b),
    "s_orn2_b32": lambda a, b, c: nonzero(a | ~b),
    "s_nand_b32": lambda a, b, c: nonzero(~(a & b)),
    "s_nor_b32": lambda a, b, c: nonzero(~(a | b)),
    "s_xnor_b32": lambda a, b, c: nonzero(~(a ^ b)),
    "s_mul_i32": lambda a, b, c: (a * b & M32, KEEP),
    "s_mul_hi_u32": lambda a, b, c: (a * b >> 32, KEEP),
    "s_mul_hi_i32": lambda a, b, c: (s32(a) * s32(b) >> 32 & M32, KEEP),
    "s_absdiff_i32": lambda a, b, c: absdiff(a, b),
    "s_lshl1_add_u32": lambda a, b, c: carry((a << 1) + b, (a << 1) + b > M32),
    "s_lshl2_add_u32": lambda a, b, c: carry((a << 2) + b, (a << 2) + b > M32),
    "s_lshl3_add_u32": lambda a, b, c: carry((a << 3) + b, (a << 3) + b > M32),
    "s_lshl4_add_u32": lambda a, b, c: carry((a << 4) + b, (a << 4) + b > M32),
    "s_pack_ll_b32_b16": lambda a, b, c: (a & 0xFFFF | (b & 0xFFFF) << 16, KEEP),
    "s_pack_lh_b32_b16": lambda a, b, c: (a & 0xFFFF | b & 0xFFFF0000, KEEP),
    "s_pack_hh_b32_b16": lambda a, b, c: (a >> 16 | b & 0xFFFF0000, KEEP),
}
# Of 32 bits, with a number of bits.
SHIFTS32: dict[str, Two] = {
    "s_lshl_b32": lambda a, b, c: nonzero(a << (b & 31)),
    "s_lshr_b32": lambda a, b, c: nonzero(a >> (b & 31)),
    "s_ashr_i32": lambda a, b, c: nonzero(s32(a) >> (b & 31)),
    "s_bfm_b32": lambda a, b, c: (((1 << (a & 31)) - 1) << (b & 31) & M32, KEEP),
}
TWO64: dict[str, Two] = {
    "s_cselect_b64": lambda a, b, c: (a if c else b, KEEP),
    "s_and_b64": lambda a, b, c: nonzero(a & b, 64),
    "s_or_b64": lambda a, b, c: nonzero(a | b, 64),
    "s_xor_b64": lambda a, b, c: nonzero(a ^ b, 64),
    "s_andn2_b64": lambda a, b, c: nonzero(a & ~b, 64),
    "s_orn2_b64": lambda a, b, c: nonzero(a | ~b, 64),
    "s_nand_b64": lambda a, b, c: nonzero(~(a & b), 64),
    "s_nor_b64": lambda a, b, c: nonzero(~(a | b), 64),
    "s_xnor_b64": lambda a, b, c: nonzero(~(a ^ b), 64),
}
SHIFTS64: dict[str, Two] = {
    "s_lshl_b64": lambda a, b, c: nonzero(a << (b & 63), 64),
    "s_lshr_b64": lambda a, b, c: nonzero(a >> (b & 63), 64),
    "s_ashr_i64": lambda a, b, c: nonzero(s64(a) >> (b & 63), 64),
}


def whole_quads(value: int, bits: int) -> tuple[int, int]:
    return nonzero(sum(15 << i for i in range(0, bits, 4) if value >> i & 15), 64)


def quad_mask(value: int, bits: int) -> tuple[int, int]:
    return nonzero(sum(1 << i // 4 for i in range(0, bits, 4) if value >> i & 15), 64)


def first(value: int, bits: int, wanted: int) -> int:
    """The lowest bit that is `wanted`; -1 where none is."""
    return next((i for i in range(bits) if value >> i & 1 == wanted), -1) & M32


def from_top(value: int, bits: int) -> int:
    """The highest 1, counted from the top; -1 where none is."""
    return next((i for i in range(bits) if value >> (bits - 1 - i) & 1), -1) & M32


def sign_bits(value: int, bits: int) -> int:
    """The first bit from the top that is not the sign; -1 where none is."""
    sign = value >> (bits - 1) & 1
    return next((i for i in range(1, bits) if value >> (bits - 1 - i) & 1 != sign), -1) & M32


def reverse(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def replicate(value: int) -> int:
    return sum(3 << 2 * i for i in range(32) if value >> i & 1)


# Mnemonic: bits of the destination, bits of the source, and what it does.
ONE: dict[str, tuple[int, int, Two]] = {
    "s_mov_b32": (32, 32, lambda a, d, c: (a, KEEP)),
    "s_mov_b64": (64, 64, lambda a, d, c: (a, KEEP)),
    "s_cmov_b32": (32, 32, lambda a, d, c: (a if c else d & M32, KEEP)),
    "s_cmov_b64": (64, 64, lambda a, d, c: (a if c else d, KEEP)),
    "s_not_b32": (32, 32, lambda a, d, c: nonzero(~a)),
    "s_not_b64": (64, 64, lambda a, d, c: nonzero(~a, 64)),
    "s_wqm_b32": (32, 32, lambda a, d, c: whole_quads(a, 32)),
    "s_wqm_b64": (64, 64, lambda a, d, c: whole_quads(a, 64)),
    "s_quadmask_b32": (32, 32, lambda a, d, c: quad_mask(a, 32)),
    "s_quadmask_b64": (64, 64, lambda a, d, c: quad_mask(a, 64)),
    "s_brev_b32": (32, 32, lambda a, d, c: (reverse(a, 32), KEEP)),
    "s_brev_b64": (64, 64, lambda a, d, c: (reverse(a, 64), KEEP)),
    "s_bcnt0_i32_b32": (32, 32, lambda a, d, c: nonzero(32 - a.bit_count())),
    "s_bcnt0_i32_b64": (32, 64, lambda a, d, c: nonzero(64 - a.bit_count())),
    "s_bcnt1_i32_b32": (32, 32, lambda a, d, c: nonzero(a.bit_count())),
    "s_bcnt1_i32_b64": (32, 64, lambda a, d, c: nonzero(a.bit_count())),
    "s_ff0_i32_b32": (32, 32, lambda a, d, c: (first(a, 32, 0), KEEP)),
    "s_ff0_i32_b64": (32, 64, lambda a, d, c: (first(a, 64, 0), KEEP)),
    "s_ff1_i32_b32": (32, 32, lambda a, d, c: (first(a, 32, 1), KEEP)),
    "s_ff1_i32_b64": (32, 64, lambda a, d, c: (first(a, 64, 1), KEEP)),
    "s_flbit_i32_b32": (32, 32, lambda a, d, c: (from_top(a, 32), KEEP)),
    "s_flbit_i32_b64": (32, 64, lambda a, d, c: (from_top(a, 64), KEEP)),
    "s_flbit_i32": (32, 32, lambda a, d, c: (sign_bits(a, 32), KEEP)),
    "s_flbit_i32_i64": (32, 64, lambda a, d, c: (sign_bits(a, 64), KEEP)),
    "s_sext_i32_i8": (32, 32, lambda a, d, c: (sign_extend(a, 8) & M32, KEEP)),
    "s_sext_i32_i16": (32, 32, lambda a, d, c: (sign_extend(a, 16) & M32, KEEP)),
    "s_bitset0_b32": (32, 32, lambda a, d, c: (d & M32 & ~(1 << (a & 31)), KEEP)),
    "s_bitset0_b64": (64, 32, lambda a, d, c: (d & ~(1 << (a & 63)), KEEP)),
    "s_bitset1_b32": (32, 32, lambda a, d, c: (d & M32 | 1 << (a & 31), KEEP)),
    "s_bitset1_b64": (64, 32, lambda a, d, c: (d | 1 << (a & 63), KEEP)),
    "s_abs_i32": (32, 32, lambda a, d, c: nonzero(abs(s32(a)))),
    "s_bitreplicate_b64_b32": (64, 32, lambda a, d, c: (replicate(a), KEEP)),
}
OLD = 0xA5A5C3C35A5A3C3C  # what the destination held


def check(bench: Bench, cases: list[tuple[str, str, int, int, int, int, int | None]]) -> None:
    """Cases: name, text, two values, SCC, and then the destination's 64 bits and SCC (None: as before)."""
    pieces = []
    for _, text, a, b, scc, _, _ in cases:
        setup = [set_sgprs(8, a, 2), set_sgprs(10, b, 2), set_sgprs(12, OLD, 2), set_scc(scc)]
        after = ["s_cselect_b32 s14, 1, 0", show_sgprs(["s12", "s13", "s14"])]
        pieces.append("\n".join([*setup, text, *after]))
    got = bench.run(pieces, 3, lanes=1)
    for (name, _, a, b, scc, wanted, wanted_scc), words in zip(cases, got, strict=True):
        low, high, flag = (w[0] for w in words)
        expected = (wanted, scc if wanted_scc is None else wanted_scc)
        assert (low | high << 32, flag) == expected, f"{name} {a:#x}, {b:#x}, scc {scc}"


def keep_high(value: int, bits: int) -> int:
    """What s[12:13] hold when a result of 32 or 64 bits has come."""
    return value | (OLD >> 32 << 32 if bits == 32 else 0)


def two(name: str, of: Two, bits: int, pairs: Iterator[tuple[int, int]]) -> Iterator[tuple]:
    registers = ("s12", "s8", "s10") if bits == 32 else ("s[12:13]", "s[8:9]", "s[10:11]")
    for a, b in pairs:
        for scc in (0, 1):
            d, after = of(a, b, scc)
            yield name, f"{name} {', '.join(registers)}", a, b, scc, keep_high(d, bits), after


def pairs(first_values: list[int], second_values: list[int]) -> Iterator[tuple[int, int]]:
    return ((a, b) for a in first_values for b in second_values)


def test_two_words(bench: Bench) -> None:
    cases = [case for name, of in TWO32.items() for case in two(name, of, 32, pairs(EDGES32, EDGES32))]
    cases += [case for name, of in SHIFTS32.items() for case in two(name, of, 32, pairs(EDGES32, SHIFTS))]
    check(bench, cases)


def test_two_long_words(bench: Bench) -> None:
    cases = [case for name, of in TWO64.items() for case in two(name, of, 64, pairs(EDGES64, EDGES64))]
    for name, of in SHIFTS64.items():
        for _, _, *rest in two(name, of, 64, pairs(EDGES64, SHIFTS)):
            cases.append((name, f"{name} s[12:13], s[8:9], s10", *rest))
    for a, b in pairs(SHIFTS, SHIFTS):
        mask = ((1 << (a & 63)) - 1) << (b & 63) & M64
        cases.append(("s_bfm_b64", "s_bfm_b64 s[12:13], s8, s10", a, b, 1, mask, KEEP))
    check(bench, cases)


def test_bit_fields(bench: Bench) -> None:
    cases = []
    for name, bits, signed in (("u32", 32, False), ("i32", 32, True), ("u64", 64, False), ("i64", 64, True)):
        to, source = ("s12", "s8") if bits == 32 else ("s[12:13]", "s[8:9]")
        for a, control in pairs(EDGES32[3:] if bits == 32 else EDGES64[2:], FIELDS):
            d, scc = field(a, control, bits, signed)
            text = f"s_bfe_{name} {to}, {source}, s10"
            cases.append((f"s_bfe_{name}", text, a, control, 1 - scc, keep_high(d, bits), scc))
    check(bench, cases)


def test_one_word(bench: Bench) -> None:
    cases = []
    for name, (to_bits, from_bits, of) in ONE.items():
        to, source = "s12" if to_bits == 32 else "s[12:13]", "s8" if from_bits == 32 else "s[8:9]"
        values = [*EDGES32, 0x00010000, 0x0F0F0000] if from_bits == 32 else [*EDGES64, 0x00F0000000100000]
        for a in values:
            for scc in (0, 1):
                d, after = of(a, OLD, scc)
                cases.append((name, f"{name} {to}, {source}", a, 0, scc, keep_high(d, to_bits), after))
    check(bench, cases)


COMPARES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def test_compares(bench: Bench) -> None:
    cases = []
    for name, of in COMPARES.items():
        for a, b in pairs(EDGES32, EDGES32):
            signed, unsigned = int(of(s32(a), s32(b))), int(of(a, b))
            cases.append((name, f"s_cmp_{name}_i32 s8, s10", a, b, 1 - signed, OLD, signed))
            cases.append((name, f"s_cmp_{name}_u32 s8, s10", a, b, 1 - unsigned, OLD, unsigned))
    for name in ("eq", "lg"):
        for a, b in pairs(EDGES64, EDGES64):
            scc = int(COMPARES[name](a, b))
            cases.append((name, f"s_cmp_{name}_u64 s[8:9], s[10:11]", a, b, 1 - scc, OLD, scc))
    for bits, source in ((32, "s8"), (64, "s[8:9]")):
        for a, b in pairs(EDGES64, SHIFTS):
            bit = a >> (b & bits - 1) & 1
            cases.append(("s_bitcmp0", f"s_bitcmp0_b{bits} {source}, s10", a, b, bit, OLD, 1 - bit))
            cases.append(("s_bitcmp1", f"s_bitcmp1_b{bits} {source}, s10", a, b, 1 - bit, OLD, bit))
    check(bench, cases)


def test_constants_of_16_bits(bench: Bench) -> None:
    """SOPK: i32 forms extend the constant's sign, u32 forms its zeros."""
    cases = []
    for k in (0, 1, 0x7FFF, 0x8000, 0xFFFF):
        signed = sign_extend(k, 16)
        for scc in (0, 1):
            cases.append(("s_movk", f"s_movk_i32 s12, {k:#x}", 0, 0, scc, keep_high(signed & M32, 32), KEEP))
            moved = keep_high(signed & M32, 32) if scc else OLD
            cases.append(("s_cmovk", f"s_cmovk_i32 s12, {k:#x}", 0, 0, scc, moved, KEEP))
        for a in [*EDGES32, 0xFFFF8000, 0xFFFF7FFF]:
            total, scc = overflow(s32(a) + signed)
            moved_in = "s_mov_b32 s12, s8\n" + set_scc(1 - scc) + "\n"
            cases.append(("s_addk", f"{moved_in}s_addk_i32 s12, {k:#x}", a, k, 0, keep_high(total, 32), scc))
            product = s32(a) * signed & M32
            text = f"s_mov_b32 s12, s8\ns_mulk_i32 s12, {k:#x}"
            cases.append(("s_mulk", text, a, k, 1, keep_high(product, 32), KEEP))
            for name, of in COMPARES.items():
                as_signed, as_unsigned = int(of(s32(a), signed)), int(of(a, k))
                cases.append((name, f"s_cmpk_{name}_i32 s8, {k:#x}", a, k, 1 - as_signed, OLD, as_signed))
                cases.append((name, f"s_cmpk_{name}_u32 s8, {k:#x}", a, k, 1 - as_unsigned, OLD, as_unsigned))
    check(bench, cases)


SAVE_EXEC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, e: a & e,
    "or": lambda a, e: a | e,
    "xor": lambda a, e: a ^ e,
    "andn1": lambda a, e: ~a & e,
    "andn2": lambda a, e: a & ~e,
    "orn1": lambda a, e: ~a | e,
    "orn2": lambda a, e: a | ~e,
    "nand": lambda a, e: ~(a & e),
    "nor": lambda a, e: ~(a | e),
    "xnor": lambda a, e: ~(a ^ e),
}


def test_saved_exec(bench: Bench) -> None:
    """D takes the old EXEC (of wrexec the new one), EXEC the combination, SCC whether it is not 0."""
    masks = [0, 1, 0xFFFF0000FFFF0000, 0x0000FFFF0000FFFF, M64]
    pieces, expected = [], []
    written = {f"{name}_wrexec": SAVE_EXEC[name] for name in ("andn1", "andn2")}
    for name, of in (SAVE_EXEC | written).items():
        for a, exec_ in pairs(masks, masks):
            new = of(a, exec_) & M64
            mnemonic = f"s_{name}_b64" if "wrexec" in name else f"s_{name}_saveexec_b64"
            pieces.append(
                "\n".join(
                    [
                        set_sgprs(8, a, 2),
                        set_sgprs(10, exec_, 2),
                        set_scc(int(new == 0)),
                        "s_mov_b64 exec, s[10:11]",
                        f"{mnemonic} s[12:13], s[8:9]",
                        "s_cselect_b32 s14, 1, 0",
                        "s_mov_b64 s[16:17], exec",
                        "s_mov_b64 exec, -1",
                        show_sgprs(["s12", "s13", "s14", "s16", "s17"]),
                    ]
                )
            )
            saved = new if "wrexec" in name else exec_
            expected.append([saved & M32, saved >> 32, int(new != 0), new & M32, new >> 32])
    got = [[word[0] for word in words] for words in bench.run(pieces, 5, lanes=1)]
    assert got == expected


def test_relative_moves(bench: Bench) -> None:
    """s_movrels reads, and s_movreld writes, the register that lies M0 further."""
    setup = "\n".join(f"s_mov_b32 s{20 + i}, {100 + i}" for i in range(8)) + "\ns_mov_b32 m0, 5\ns_nop 1\n"
    pieces = [
        setup + "s_movrels_b32 s8, s20\n" + show_sgprs(["s8", "s20"]),
        setup + "s_mov_b32 m0, 4\ns_nop 1\ns_movrels_b64 s[8:9], s[20:21]\n" + show_sgprs(["s8", "s9"]),
        setup + "s_movreld_b32 s20, 7\n" + show_sgprs(["s20", "s25"]),
        setup + "s_mov_b32 m0, 2\ns_nop 1\ns_movreld_b64 s[20:21], -2\n" + show_sgprs(["s22", "s23"]),
    ]
    got = [[word[0] for word in words] for words in bench.run(pieces, 2, lanes=1)]
    assert got == [[105, 100], [104, 105], [100, 7], [M32 - 1, M32]]


def test_inline_constants_and_special_registers(bench: Bench) -> None:
    """Section "SGPRs and inline constants": integers, floats as their type has them, flags as sources."""
    pieces = [
        "s_mov_b64 s[8:9], -16\n" + show_sgprs(["s8", "s9"]),
        "s_mov_b64 s[8:9], 1.0\n" + show_sgprs(["s8", "s9"]),  # a double where 64 bits are read
        "s_mov_b32 s8, 0.15915494\ns_mov_b32 s9, -4.0\n" + show_sgprs(["s8", "s9"]),
        "s_mov_b64 vcc, 0\ns_mov_b32 s8, src_vccz\ns_mov_b32 s9, src_execz\n" + show_sgprs(["s8", "s9"]),
        "s_cmp_eq_u32 0, 0\ns_mov_b32 s8, src_scc\ns_mov_b32 vcc_lo, 1\ns_mov_b32 s9, src_vccz\n"
        + show_sgprs(["s8", "s9"]),
    ]
    got = [[word[0] for word in words] for words in bench.run(pieces, 2, lanes=1)]
    assert got == [[M32 - 15, M32], [0, 0x3FF00000], [0x3E22F983, 0xC0800000], [1, 0], [1, 0]]
