# SPDX-License-Identifier: MIT
"""What atomics do to a word, from the descriptions in AMD's "Instinct MI300 Instruction Set Architecture",
chapter "Instructions", and edge values to try them with.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

M32 = (1 << 32) - 1
M64 = (1 << 64) - 1


def signed(value: int, bits: int) -> int:
    return (value & (1 << bits) - 1) - ((value & 1 << bits - 1) << 1)


def f32(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def f64(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def real(bits: int, size: int) -> float:
    """The float of 4 or 8 bytes."""
    return struct.unpack("<f" if size == 4 else "<d", bits.to_bytes(size, "little"))[0]


# From memory, the operand and their bits to memory; results are cut to their bits by who compares.
INTEGER: dict[str, Callable[[int, int, int], int]] = {
    "swap": lambda m, d, b: d,
    "add": lambda m, d, b: m + d,
    "sub": lambda m, d, b: m - d,
    "rsub": lambda m, d, b: d - m,
    "smin": lambda m, d, b: min(m, d, key=lambda v: signed(v, b)),
    "umin": lambda m, d, b: min(m, d),
    "smax": lambda m, d, b: max(m, d, key=lambda v: signed(v, b)),
    "umax": lambda m, d, b: max(m, d),
    "and": lambda m, d, b: m & d,
    "or": lambda m, d, b: m | d,
    "xor": lambda m, d, b: m ^ d,
    "inc": lambda m, d, b: 0 if m >= d else m + 1,
    "dec": lambda m, d, b: d if m == 0 or m > d else m - 1,
}


def add_float(memory: int, operand: int, bits: int) -> int:
    total = real(memory, bits // 8) + real(operand, bits // 8)
    return f32(total) if bits == 32 else f64(total)


def is_signaling(bits: int, width: int) -> bool:
    return math.isnan(real(bits, width // 8)) and not bits >> {32: 22, 64: 51}[width] & 1


def extreme(memory: int, operand: int, bits: int, sign: int) -> int:
    """Section "NaN Handling": a signaling NaN is the result, a quiet one gives way; -0 is less than 0."""
    for value in (memory, operand):
        if is_signaling(value, bits):
            return value | 1 << {32: 22, 64: 51}[bits]
    x, y = (real(value, bits // 8) for value in (memory, operand))
    if math.isnan(x) or math.isnan(y):
        return memory if math.isnan(y) else operand
    least, most = sorted((memory, operand), key=lambda v: (real(v, bits // 8), not v >> bits - 1))
    return most if sign > 0 else least


FLOAT: dict[str, Callable[[int, int, int], int]] = {
    "add": add_float,
    "min": lambda m, d, b: extreme(m, d, b, -1),
    "max": lambda m, d, b: extreme(m, d, b, 1),
}


def _half(bits: int) -> float:
    return struct.unpack("<e", bits.to_bytes(2, "little"))[0]


def _to_bf16(value: float) -> int:
    """To the nearest, ties to even; `value` is exact in a float."""
    bits = f32(value)
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def _packed(of: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    return lambda m, d, b: of(m & 0xFFFF, d & 0xFFFF) | of(m >> 16, d >> 16) << 16


PACKED: dict[str, Callable[[int, int, int], int]] = {
    "pk_add_f16": _packed(lambda x, y: int.from_bytes(struct.pack("<e", _half(x) + _half(y)), "little")),
    "pk_add_bf16": _packed(lambda x, y: _to_bf16(real(x << 16, 4) + real(y << 16, 4))),
}

# Memory and operand.
PAIRS32 = [(0, 0), (5, 7), (7, 5), (5, 5), (1 << 31, 1), (M32, 1), (1, M32), (0x7FFFFFFF, 1 << 31)]
PAIRS64 = [(a << 32 | a, b << 32 | b) for a, b in PAIRS32] + [(M32, 1), (1 << 32, 1), (M64, 2)]
FLOATS = [(1.5, 2.25), (2.25, 1.5), (-1.0, -1.0), (0.0, -0.0), (-0.0, 0.0), (math.inf, 1.0), (1.0, math.nan)]
FLOATS += [(math.nan, 1.0), (-math.inf, 3.0)]
PACKED_PAIRS = {
    "pk_add_f16": [(0x3C003E00, 0x40003C00), (0x7BFF0001, 0x00010001), (0xBC007C00, 0x3C003C00)],
    "pk_add_bf16": [(0x3F803FC0, 0x40003F80), (0x3F800001, 0x3B803F80), (0xBF807F80, 0x3F803F80)],
}


def is_same(got: int, expected: int, bits: int, is_sum: bool) -> bool:
    """Sums that are NaN may be any NaN."""
    if got == expected or not is_sum:
        return got == expected
    return math.isnan(real(got, bits // 8)) and math.isnan(real(expected, bits // 8))
