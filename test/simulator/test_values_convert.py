# SPDX-License-Identifier: MIT
"""Conversions of the vector ALU, against what AMD's documents say of them.

The documents are "AMD Instinct MI300 Instruction Set Architecture" and "CDNA4 Instruction Set
Architecture": chapter "Instructions", pseudocode of sections VOP1, VOP2 and VOP3; of the MODE register,
FP16_OVFL. The formats of 8 bits are FNUZ on gfx942 (-0 is NaN, no infinity) and OCP's on gfx950 (e4m3
without infinity, e5m2 as IEEE), those of 6 and 4 bits are OCP's microscaling formats.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path

import pytest
import toolchain
from sim import ARCHS
from values import (
    BF6,
    BF8,
    BF8_FNUZ,
    BF16,
    DEFAULT_MODE,
    F16,
    F32,
    FP4,
    FP6,
    FP8,
    FP8_FNUZ,
    NAN16,
    NAN32,
    Batch,
    Check,
    Format,
    f16,
    f32,
    f64,
    float_of,
    floor_log2,
    signed,
)

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

M32 = 0xFFFFFFFF
FP16_OVFL = 1 << 23
ROUNDINGS = ("nearest", "up", "down", "zero")
WIDE_NAMES = {
    "fp8": FP8,
    "bf8": BF8,
    "fp6": FP6,
    "bf6": BF6,
    "fp4": FP4,
    "f16": F16,
    "bf16": BF16,
    "f32": F32,
}


def name_of_8(arch: str, name: str) -> Format:
    return {"fp8": FP8, "bf8": BF8}[name] if arch == "gfx950" else {"fp8": FP8_FNUZ, "bf8": BF8_FNUZ}[name]


@pytest.mark.parametrize("arch", ARCHS)
def test_integers(arch: str, library: Path, tmp_path: Path) -> None:
    """To integers: towards zero, out of range to the nearest there is, NaN to 0."""
    t, inf, nan = Batch(arch), math.inf, math.nan
    rows = [(1.9, 1), (-1.9, -1), (2147483648.0, 2**31 - 1), (-2147483648.0, -(2**31)), (1e20, 2**31 - 1)]
    rows += [
        (-1e20, -(2**31)),
        (inf, 2**31 - 1),
        (-inf, -(2**31)),
        (nan, 0),
        (-0.0, 0),
        (16777217.0, 16777216),
    ]
    t.table("v_cvt_i32_f32 {d}, {a}", [(f32(a), d & M32) for a, d in rows])
    unsigned = [(1.9, 1), (-0.9, 0), (-5.0, 0), (4294967296.0, M32), (4294967040.0, 4294967040), (inf, M32)]
    t.table("v_cvt_u32_f32 {d}, {a}", [(f32(a), d) for a, d in [*unsigned, (-inf, 0), (nan, 0)]])
    wide = {"a": 64}
    rows64 = [(2147483647.9, 2**31 - 1), (-2147483648.9, -(2**31)), (1e300, 2**31 - 1), (nan, 0), (-7.5, -7)]
    t.table("v_cvt_i32_f64 {d}, {a}", [(f64(a), d & M32) for a, d in rows64], bits=wide)
    t.table(
        "v_cvt_u32_f64 {d}, {a}",
        [(f64(a), d) for a, d in [(4294967295.9, M32), (-1.0, 0), (nan, 0)]],
        bits=wide,
    )
    t.table(
        "v_cvt_i16_f16 {d}, {a}",
        [(f16(a), d & 0xFFFF) for a, d in [(-2.7, -2), (60000.0, 32767), (-inf, -32768), (nan, 0)]],
    )
    t.table(
        "v_cvt_u16_f16 {d}, {a}",
        [(f16(a), d) for a, d in [(2.7, 2), (-3.0, 0), (65504.0, 65504), (inf, 65535), (nan, 0)]],
    )
    # V_CVT_RPI: floor(x + 0.5); V_CVT_FLR: floor.
    t.table(
        "v_cvt_rpi_i32_f32 {d}, {a}",
        [(f32(a), d & M32) for a, d in [(2.5, 3), (-2.5, -2), (0.49, 0), (1e10, 2**31 - 1)]],
    )
    t.table(
        "v_cvt_flr_i32_f32 {d}, {a}",
        [(f32(a), d & M32) for a, d in [(2.9, 2), (-2.1, -3), (-1e10, -(2**31)), (nan, 0)]],
    )
    # From integers.
    t.table(
        "v_cvt_f32_i32 {d}, {a}",
        [(a & M32, f32(a)) for a in (0, 1, -1, 16777217, 16777219, -(2**31), 2**31 - 1)],
    )
    t.table("v_cvt_f32_u32 {d}, {a}", [(a, f32(a)) for a in (0, 1, 16777217, M32, 2**31)])
    t.table("v_cvt_f64_i32 {d}, {a}", [(a & M32, f64(a)) for a in (0, -1, -(2**31))], bits={"d": 64})
    t.table("v_cvt_f64_u32 {d}, {a}", [(a, f64(a)) for a in (0, M32)], bits={"d": 64})
    t.table(
        "v_cvt_f16_u16 {d}, {a}",
        [(a, F16.round(Fraction(a))) for a in (0, 1, 2049, 2051, 65519, 65520, 65535)],
    )
    t.table(
        "v_cvt_f16_i16 {d}, {a}", [(a & 0xFFFF, F16.round(Fraction(a))) for a in (0, -1, 2049, -2051, -32768)]
    )
    for byte in range(4):
        t.table(f"v_cvt_f32_ubyte{byte} {{d}}, {{a}}", [(0x80FF0102, f32((0x02, 0x01, 0xFF, 0x80)[byte]))])
    # V_CVT_OFF_F32_I4: four bits with their sign, in sixteenths.
    t.table("v_cvt_off_f32_i4 {d}, {a}", [(a | 0xFFFFFFF0, f32(signed(a, 4) / 16)) for a in range(16)])
    # V_CVT_PK_U8_F32 puts a byte into the third source; V_CVT_PKACCUM_U8_F32 into the destination.
    rows = [
        (300.0, 0, 0x112233FF),
        (-1.0, 1, 0x11220044),
        (7.0, 2, 0x11073344),
        (nan, 3, 0x00223344),
        (8.0, 6, 0x11083344),
    ]
    t.table("v_cvt_pk_u8_f32 {d}, {a}, {b}, {c}", [(f32(a), b, 0x11223344, d) for a, b, d in rows])
    t.table("v_cvt_pkaccum_u8_f32 {d}, {a}, {b}", [(f32(a), b, 0x11223344, d) for a, b, d in rows])
    # Normalised integers: 1.0 is the largest; beyond it the largest, too.
    for name, low, most in (("i16", -1.0, 32767), ("u16", 0.0, 65535)):
        values = [0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 0.25, nan]
        results = [0 if math.isnan(v) else round(min(max(v, low), 1.0) * most) & 0xFFFF for v in values]
        rows = list(zip(values, reversed(values), results, reversed(results), strict=True))
        t.table(
            f"v_cvt_pknorm_{name}_f32 {{d}}, {{a}}, {{b}}",
            [(f32(a), f32(b), x | y << 16) for a, b, x, y in rows],
        )
        t.table(
            f"v_cvt_pknorm_{name}_f16 {{d}}, {{a}}, {{b}}",
            [(f16(a), f16(b), x | y << 16) for a, b, x, y in rows],
        )
        t.table(f"v_cvt_norm_{name}_f16 {{d}}, {{a}}", [(f16(a), x) for a, _, x, _ in rows])
    t.run(library, tmp_path)


def near_halves(count: int) -> list[int]:
    """Floats at and beside halves and their midpoints, denormal ones among them."""
    rng = random.Random(count)
    column = []
    for _ in range(count):
        half = rng.choice((rng.getrandbits(15), rng.getrandbits(10), 0x7BFF, 0x0400, 0x03FF)) % 0x7C00
        exact = F16.value(half) + rng.choice((0, Fraction(1, 2))) * Fraction(2) ** (max(half >> 10, 1) - 25)
        column.append((F32.round(exact) + rng.choice((-1, 0, 1))) % 0x7F800000 | rng.getrandbits(1) << 31)
    return column


@pytest.mark.parametrize("arch", ARCHS)
def test_halves(arch: str, library: Path, tmp_path: Path) -> None:
    t, inf = Batch(arch), math.inf
    for i, rounding in enumerate(ROUNDINGS):
        a = near_halves(64 + i)[:64]
        results = [F16.round(F32.value(v), rounding, sign=v >> 31) for v in a]
        t.add("v_cvt_f16_f32 {d}, {a}", results, a=a, mode=DEFAULT_MODE | i << 2)
        flushed = [v & 0x8000 if v & 0x7FFF < 0x400 else v for v in results]
        t.add("v_cvt_f16_f32 {d}, {a}", flushed, a=a, mode=(DEFAULT_MODE | i << 2) & ~0x80)
        # V_CVT_PKRTZ rounds towards zero whatever MODE says.
        b = near_halves(65 + i)[:64]
        cut = [F16.round(F32.value(v), "zero", sign=v >> 31) for v in a + b]
        t.add(
            "v_cvt_pkrtz_f16_f32 {d}, {a}, {b}",
            [x | y << 16 for x, y in zip(cut[:64], cut[64:])],
            a=a,
            b=b,
            mode=DEFAULT_MODE | i << 2,
        )
        if arch == "gfx950":  # V_CVT_PK_F16_F32, V_CVT_PK_BF16_F32: to the nearest, likewise
            for name, fmt in (("f16", F16), ("bf16", BF16)):
                near = [fmt.round(F32.value(v), sign=v >> 31) for v in a + b]
                t.add(
                    f"v_cvt_pk_{name}_f32 {{d}}, {{a}}, {{b}}",
                    [x | y << 16 for x, y in zip(near[:64], near[64:])],
                    a=a,
                    b=b,
                    mode=DEFAULT_MODE | i << 2,
                )
    specials = [
        (f32(inf), 0x7C00),
        (f32(-inf), 0xFC00),
        (f32(65520.0), 0x7C00),
        (0x7F800001, NAN16),
        (0xFFC00000, NAN16),
    ]
    t.table("v_cvt_f16_f32 {d}, {a}", [*specials, (f32(-0.0), 0x8000), (0x00000001, 0)])
    t.table("v_cvt_pkrtz_f16_f32 {d}, {a}, 0", [(f32(1e9), 0x7BFF), (f32(inf), 0x7C00), (f32(-1e9), 0xFBFF)])
    a = [*range(0, 0x7C00, 499), 1, 0x3FF, 0x400, 0x7C00, 0xFC00, 0x8000, 0x8001]
    exact = [v << 16 if v == 0x8000 else f32(float_of(v, 16)) for v in a]
    t.add("v_cvt_f32_f16 {d}, {a}", exact, a=a)
    t.table(
        "v_cvt_f32_f16 {d}, {a}", [(0x7C01, 0x7FC02000), (0xFE00, 0xFFC00000)]
    )  # a signaling NaN becomes quiet
    if arch == "gfx950":
        t.table("v_cvt_f32_bf16 {d}, {a}", [(v, v << 16) for v in (0x3F80, 0x8000, 0x0001, 0x7F80, 0x7FC0)])
        # V_CVT_PK_BF16_F32: ties to even, NaN stays NaN, the largest floats become infinity.
        rows = [
            (0x3F808000, 0x3F80),
            (0x3F818000, 0x3F82),
            (0x3F808001, 0x3F81),
            (0x7F7FFFFF, 0x7F80),
            (0x00000001, 0),
        ]
        t.table("v_cvt_pk_bf16_f32 {d}, {a}, 0", [*rows, (0x7F800000, 0x7F80), (0x80000000, 0x8000)])
        t.add("v_cvt_pk_bf16_f32 {d}, {a}, 0", lambda _, v: v & 0x7FC0 == 0x7FC0, a=[0x7F800001, 0x7FFFFFFF])
    # f64 to f32, and back.
    wide = {"a": 64}
    rng = random.Random(3)
    numbers = [f64(rng.uniform(-1, 1) * 2.0 ** rng.randint(-150, 127)) for _ in range(48)]
    for i, rounding in enumerate(ROUNDINGS):
        results = [F32.round(Fraction(float_of(v, 64)), rounding, sign=v >> 63) for v in numbers]
        t.add("v_cvt_f32_f64 {d}, {a}", results, a=numbers, bits=wide, mode=DEFAULT_MODE | i)
    t.table(
        "v_cvt_f32_f64 {d}, {a}",
        [(f64(1e39), f32(inf)), (f64(-inf), f32(-inf)), (f64(math.nan), NAN32)],
        bits=wide,
    )
    t.table(
        "v_cvt_f64_f32 {d}, {a}", [(v, f64(float_of(v))) for v in (1, f32(-0.1), f32(inf))], bits={"d": 64}
    )
    t.run(library, tmp_path)


# ---- 8 bits


def decoded(fmt: Format, code: int, scale: int = 0, to: Format = F32) -> int:
    """A code as a number of another format, times 2^scale."""
    nan = {F32: NAN32, F16: NAN16, BF16: -1}[to]
    if fmt.is_nan(code):
        return nan
    if fmt.top == "ieee" and code % fmt.sign == fmt.infinity:
        return to.infinity | (to.sign if code & fmt.sign else 0)
    return to.round(fmt.value(code) * Fraction(2) ** scale, sign=int(code & fmt.sign != 0))


def interesting(fmt: Format, seed: str, count: int) -> list[int]:
    """Floats on codes, on midpoints of codes and next to them, too small and too large ones."""
    rng, column = random.Random(seed), []
    for _ in range(count):
        code = rng.randrange(fmt.largest + 1)
        low, high = fmt.value(code), fmt.value(min(code + 1, fmt.largest))
        exact = rng.choice(
            (low, (low + high) / 2, (3 * low + high) / 4, fmt.value(fmt.largest) * rng.choice((1, 2, 100)))
        )
        bits = F32.round(exact) + rng.choice((-1, 0, 0, 1))
        column.append(max(bits, 0) | rng.getrandbits(1) << 31)
    return column


def encoded(fmt: Format, number: int, source: Format = F32, scale: int = 0, *, saturate: bool = False) -> int:
    return fmt.round(
        source.value(number) / Fraction(2) ** scale, sign=int(number & source.sign != 0), saturate=saturate
    )


@pytest.mark.parametrize("arch", ARCHS[1:])
@pytest.mark.parametrize("name", ["fp8", "bf8"])
def test_8_bits(arch: str, name: str, library: Path, tmp_path: Path) -> None:
    t, fmt = Batch(arch), name_of_8(arch, name)
    for start in range(0, 256, 64):  # every code
        codes = list(range(start, start + 64))
        t.add(f"v_cvt_f32_{name} {{d}}, {{a}}", [decoded(fmt, c) for c in codes], a=codes)
        words = [c << 16 for c in codes]
        t.add(
            f"v_cvt_f32_{name}_sdwa {{d}}, {{a}} src0_sel:BYTE_2", [decoded(fmt, c) for c in codes], a=words
        )
    pair = [0x38 | 0xB1 << 8 | 0x07 << 16 | 0xC4 << 24]
    low = decoded(fmt, 0x38) | decoded(fmt, 0xB1) << 32
    high = decoded(fmt, 0x07) | decoded(fmt, 0xC4) << 32
    t.add(f"v_cvt_pk_f32_{name} {{d}}, {{a}}", [low], a=pair, bits={"d": 64})
    t.add(f"v_cvt_pk_f32_{name}_sdwa {{d}}, {{a}} src0_sel:WORD_1", [high], a=pair, bits={"d": 64})
    for saturate in (False, True):
        a, b = (interesting(fmt, f"{name} {k} {saturate}", 64) for k in "ab")
        mode = DEFAULT_MODE | FP16_OVFL * saturate
        codes = [encoded(fmt, v, saturate=saturate) for v in a + b]
        both = [x | y << 8 for x, y in zip(codes[:64], codes[64:], strict=True)]
        t.add(
            f"v_cvt_pk_{name}_f32 {{d}}, {{a}}, {{b}}",
            [v | 0xABCD0000 for v in both],
            a=a,
            b=b,
            d=[0xABCD0000],
            mode=mode,
        )
        upper = [v << 16 | 0x5678 for v in both]
        t.add(
            f"v_cvt_pk_{name}_f32 {{d}}, {{a}}, {{b}} op_sel:[0,0,1]",
            upper,
            a=a,
            b=b,
            d=[0x12345678],
            mode=mode,
        )
    nan = 0x80 if fmt.top == "fnuz" else 0x7E if name == "bf8" else 0x7F
    infinity = 0x7C if fmt is BF8 else nan  # where there is none, NaN
    rows = [
        (f32(math.nan), nan),
        (f32(math.inf), infinity),
        (f32(0.0), 0),
        (f32(-0.0), 0 if fmt.top == "fnuz" else 0x80),
    ]
    t.table(f"v_cvt_pk_{name}_f32 {{d}}, {{a}}, 0", [(a, 0, d) for a, d in rows])
    # With FP16_OVFL infinity too is the greatest ("CDNA3" and "CDNA4", table of the FP16_OVFL rule).
    rows = [(f32(math.inf), fmt.largest), (f32(-math.inf), fmt.largest | fmt.sign), (f32(math.nan), nan)]
    mode = DEFAULT_MODE | FP16_OVFL
    t.table(f"v_cvt_pk_{name}_f32 {{d}}, {{a}}, 0", [(a, 0, d) for a, d in rows], mode=mode)
    t.run(library, tmp_path)


# ---- stochastic rounding


def stochastic(
    fmt: Format, number: int, source: Format, seed: int, scale: int = 0, *, saturate: bool = False
) -> int:
    """The random word's upper bits are added behind the last place that stays, and what is behind is cut.

    V_CVT_SR_FP8_F32 says "mantissa + S1[31 : 12]", V_CVT_SR_BF8_F32 "S1[31 : 11]": as many as places are
    lost. What the documents leave open is taken from the host code of AMD's amd_hip_ocp_host.hpp: the sum
    carries into the exponent, and a result that is a denormal is shifted before.
    """
    exact = source.value(number) / Fraction(2) ** scale
    magnitude = abs(exact)
    sign = fmt.sign if number & source.sign else 0
    if magnitude == 0:
        return 0 if fmt.top == "fnuz" else sign
    exponent = floor_log2(magnitude)
    least = 1 - fmt.bias
    places = source.mantissas - max(0, least - exponent)
    units = int(magnitude * Fraction(2) ** (places - exponent))  # the source's bits, as far as they are left
    cut = source.mantissas - fmt.mantissas
    code = (max(exponent, least) - least << fmt.mantissas) + (units + (seed >> 32 - cut) >> cut)
    if code > fmt.largest:
        if saturate or fmt.top == "finite":
            return sign | fmt.largest
        return {"ieee": sign | fmt.infinity, "ocp": sign | fmt.sign - 1, "fnuz": fmt.sign}[fmt.top]
    return 0 if code == 0 and fmt.top == "fnuz" else sign | code


def seeds(seed: str) -> list[int]:
    rng = random.Random(seed)
    return [
        rng.choice((0, M32, 0x80000000, 0x7FFFFFFF, rng.getrandbits(32), rng.getrandbits(32)))
        for _ in range(64)
    ]


@pytest.mark.parametrize("arch", ARCHS[1:])
def test_stochastic_rounding(arch: str, library: Path, tmp_path: Path) -> None:
    t = Batch(arch)
    for name in ("fp8", "bf8"):
        fmt = name_of_8(arch, name)
        a, b = interesting(fmt, f"sr {name}", 64), seeds(name)
        codes = [stochastic(fmt, x, F32, seed) for x, seed in zip(a, b, strict=True)]
        for byte, op_sel in enumerate(("", "op_sel:[0,0,1,0]", "op_sel:[0,0,0,1]", "op_sel:[0,0,1,1]")):
            kept = 0x44332211 & ~(0xFF << 8 * byte)
            t.add(
                f"v_cvt_sr_{name}_f32 {{d}}, {{a}}, {{b}} {op_sel}",
                [kept | c << 8 * byte for c in codes],
                a=a,
                b=b,
                d=[0x44332211],
            )
        # A quarter above a code: up for the upper quarter of random words.
        step = fmt.value(0x41) - fmt.value(0x40)
        number = f32(float(fmt.value(0x40) + step / 4))
        words = [i << 26 for i in range(64)]
        t.add(
            f"v_cvt_sr_{name}_f32 {{d}}, {{a}}, {{b}}",
            [0x40 + (i >= 48) for i in range(64)],
            a=[number],
            b=words,
            d=[0],
        )
    if arch == "gfx950":
        for name, fmt in (("f16", F16), ("bf16", BF16)):
            a, b = near_halves(64), seeds(name)
            codes = [stochastic(fmt, x, F32, seed) for x, seed in zip(a, b, strict=True)]
            low = [0xABCD0000 | v for v in codes]
            t.add(f"v_cvt_sr_{name}_f32 {{d}}, {{a}}, {{b}}", low, a=a, b=b, d=[0xABCD5678])
            high = [v << 16 | 0x5678 for v in codes]
            t.add(f"v_cvt_sr_{name}_f32 {{d}}, {{a}}, {{b}} op_sel:[0,0,1]", high, a=a, b=b, d=[0xABCD5678])
    t.run(library, tmp_path)


# ---- scales


SCALES = (127, 126, 130, 100, 150, 0, 1, 254)  # exponents of S1 or S2: "scale = 32'U(exponent(S1.f32))"


def scale_column() -> list[int]:
    """Sign and mantissa of a scale do not count."""
    rng = random.Random(9)
    return [rng.choice(SCALES) << 23 | rng.getrandbits(1) << 31 | rng.getrandbits(23) for _ in range(64)]


def source_column(source: Format, fmt: Format, scales: list[int], seed: str) -> list[int]:
    """Numbers that come near the format's after scaling."""
    rng, column = random.Random(seed), []
    for scale in scales:
        exact = fmt.value(rng.randrange(fmt.largest + 1)) * Fraction(rng.randrange(64, 192), 128)
        bits = source.round(exact * Fraction(2) ** ((scale >> 23 & 255) - 127), saturate=True)
        column.append(bits | (source.sign if rng.getrandbits(1) else 0))
    return column


def exponent(scale: int) -> int:
    return (scale >> 23 & 255) - 127


@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_scaled_to_few_bits(name: str, library: Path, tmp_path: Path) -> None:
    """V_CVT_SCALEF32_PK_*, V_CVT_SCALEF32_SR_*: divided by 2^(exponent - 127), rounded once."""
    t, fmt = Batch("gfx950"), WIDE_NAMES[name]
    width, old, scales = fmt.sign.bit_length(), 0x44332211, scale_column()
    places = (0, 1) if width == 8 else (0, 1, 2, 3)
    for source_name in ("f32", "f16", "bf16"):
        source = WIDE_NAMES[source_name]
        x, y = (source_column(source, fmt, scales, f"{name} {source_name} {k}") for k in "xy")

        def code(value: int, scale: int, source: Format = source) -> int:
            return encoded(fmt, value, source, exponent(scale))

        pairs = [code(u, s) | code(v, s) << width for u, v, s in zip(x, y, scales, strict=True)]
        for place in places:
            shift = 2 * width * place
            results = [old & ~((1 << 2 * width) - 1 << shift) | p << shift for p in pairs]
            if source_name == "f32":
                op_sel = f"op_sel:[0,0,0,{place}]" if width == 8 else f"op_sel:[0,0,{place & 1},{place >> 1}]"
                text = f"v_cvt_scalef32_pk_{name}_f32 {{d}}, {{a}}, {{b}}, {{c}} {op_sel}"
                t.add(text, results, a=x, b=y, c=scales, d=[old])
            else:
                op_sel = f"op_sel:[0,0,{place}]" if width == 8 else f"op_sel:[0,0,{place & 1},{place >> 1}]"
                text = f"v_cvt_scalef32_pk_{name}_{source_name} {{d}}, {{a}}, {{b}} {op_sel}"
                t.add(text, results, a=[u | v << 16 for u, v in zip(x, y, strict=True)], b=scales, d=[old])
        random_words = seeds(name + source_name)
        if name == "fp4":  # a pair: the second value's random word is V_PRNG_B32 of the first's
            results = []
            for u, v, s, r in zip(x, y, scales, random_words, strict=True):
                first = stochastic(fmt, u, source, r, exponent(s))
                second = stochastic(fmt, v, source, prng(r), exponent(s))
                results.append(old & ~0xFF0000 | (first | second << 4) << 16)
            size = 64 if source_name == "f32" else 32
            both = [u | v << size // 2 for u, v in zip(x, y, strict=True)]
            text = f"v_cvt_scalef32_sr_pk_fp4_{source_name} {{d}}, {{a}}, {{b}}, {{c}} op_sel:[0,0,0,1]"
            t.add(text, results, a=both, b=random_words, c=scales, d=[old], bits={"a": size})
        else:
            codes = [
                stochastic(fmt, u, source, r, exponent(s))
                for u, r, s in zip(x, random_words, scales, strict=True)
            ]
            results = [old & ~0xFF00 | c << 8 for c in codes]
            text = f"v_cvt_scalef32_sr_{name}_{source_name} {{d}}, {{a}}, {{b}}, {{c}} op_sel:[0,0,1,0]"
            t.add(text, results, a=x, b=random_words, c=scales, d=[old])
    # Too large: NaN or infinity, or the largest under FP16_OVFL; fp4 has only the largest.
    huge, one = [f32(3e38), f32(-3e38)], [127 << 23]
    over = {"fp8": (0x7F, 0xFF), "bf8": (0x7C, 0xFC), "fp4": (0x7, 0xF)}[name]
    text = f"v_cvt_scalef32_pk_{name}_f32 {{d}}, {{a}}, {{b}}, {{c}}"
    t.add(text, [over[0], over[1]], a=huge, b=[0], c=one, d=[0])
    most = [fmt.largest, fmt.largest | fmt.sign]
    t.add(text, most, a=huge, b=[0], c=one, d=[0], mode=DEFAULT_MODE | FP16_OVFL)
    # A scale of all ones is NaN; NaN has no code in fp4, and is its largest number there.
    nan = {"fp8": 0x7F, "bf8": 0x7E, "fp4": 0x7}[name]
    t.add(text, [nan | nan << width], a=[f32(1.0)], b=[f32(1.0)], c=[0x7F800000], d=[0])
    t.run(library, tmp_path)


def prng(word: int) -> int:
    """V_PRNG_B32: "(in << 1) ^ (in[31] ? 197 : 0)"."""
    return (word << 1 & M32) ^ (197 if word >> 31 else 0)


@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_scaled_from_few_bits(name: str, library: Path, tmp_path: Path) -> None:
    t, fmt, scales = Batch("gfx950"), WIDE_NAMES[name], scale_column()
    width, rng = fmt.sign.bit_length(), random.Random(name)
    words = [rng.getrandbits(32) for _ in range(64)]
    for to_name in ("f32", "f16", "bf16"):
        to = WIDE_NAMES[to_name]
        to_width = to.sign.bit_length()

        def value(word: int, at: int, scale: int, to: Format = to) -> int:
            return decoded(fmt, word >> at & ((1 << width) - 1), exponent(scale), to)

        for place in range(32 // (2 * width)):
            op_sel = f"op_sel:[{place},0,0]" if width == 8 else f"op_sel:[{place & 1},{place >> 1},0]"
            at = 2 * width * place
            rows = [(value(w, at, s), value(w, at + width, s)) for w, s in zip(words, scales, strict=True)]
            text = f"v_cvt_scalef32_pk_{to_name}_{name} {{d}}, {{a}}, {{b}} {op_sel}"
            t.add(text, pairs_match(rows, to_width, to), a=words, b=scales, bits={"d": 2 * to_width})
        if width == 8 and to_name != "bf16":
            for place in range(4):
                text = (
                    f"v_cvt_scalef32_{to_name}_{name} {{d}}, {{a}}, {{b}} op_sel:[{place & 1},{place >> 1},0]"
                )
                rows = [(value(w, 8 * place, s), 0xABCD) for w, s in zip(words, scales, strict=True)]
                if to_name == "f32":
                    t.add(text, [row[0] for row in rows], a=words, b=scales)
                else:
                    t.add(text, pairs_match(rows, 16, to), a=words, b=scales, d=[0xABCD5678])
    t.add(
        f"v_cvt_scalef32_pk_f32_{name} {{d}}, {{a}}, {{b}}",
        lambda _, v: math.isnan(float_of(v & M32)),
        a=[1],
        b=[0x7F800000],
        bits={"d": 64},
    )
    t.run(library, tmp_path)


def pairs_match(rows: list[tuple[int, int]], width: int, fmt: Format) -> Check:
    """Whether both parts of a result are as expected; a negative number there stands for NaN."""

    def check(lane: int, got: int) -> bool:
        parts = (got & (1 << width) - 1, got >> width)
        return all(fmt.is_nan(p) if e < 0 else p == e for p, e in zip(parts, rows[lane], strict=True))

    return check


@pytest.mark.parametrize("name", ["fp6", "bf6"])
def test_32_values(name: str, library: Path, tmp_path: Path) -> None:
    """V_CVT_SCALEF32_*PK32*, V_CVT_SCALEF32_2XPK16*: 32 values of a lane, 6 bits each one after the other."""
    t, fmt, scales = Batch("gfx950"), WIDE_NAMES[name], scale_column()
    for source_name in ("f32", "f16", "bf16"):
        source = WIDE_NAMES[source_name]
        width = source.sign.bit_length()
        columns = [source_column(source, fmt, scales, f"{name} {source_name} {i}") for i in range(32)]
        words = [join([column[lane] for column in columns], width) for lane in range(64)]
        codes = [
            [encoded(fmt, c[lane], source, exponent(scales[lane])) for c in columns] for lane in range(64)
        ]
        if source_name == "f32":
            even = [join([c[lane] for c in columns[0::2]], 32) for lane in range(64)]
            odd = [join([c[lane] for c in columns[1::2]], 32) for lane in range(64)]
            t.add(
                f"v_cvt_scalef32_2xpk16_{name}_f32 {{d}}, {{a}}, {{b}}, {{c}}",
                [join(c, 6) for c in codes],
                a=even,
                b=odd,
                c=scales,
                bits={"a": 512, "b": 512, "d": 192},
            )
        else:
            t.add(
                f"v_cvt_scalef32_pk32_{name}_{source_name} {{d}}, {{a}}, {{b}}",
                [join(c, 6) for c in codes],
                a=words,
                b=scales,
                bits={"a": 512, "d": 192},
            )
        random_words, results = seeds(name), []
        for lane in range(64):
            word, lanes = random_words[lane], []
            for column in columns:
                lanes.append(stochastic(fmt, column[lane], source, word, exponent(scales[lane])))
                word = prng(word)
            results.append(join(lanes, 6))
        t.add(
            f"v_cvt_scalef32_sr_pk32_{name}_{source_name} {{d}}, {{a}}, {{b}}, {{c}}",
            results,
            a=words,
            b=random_words,
            c=scales,
            bits={"a": 32 * width, "d": 192},
        )
        packed = [join([(17 * lane + 5 * i) % 64 for i in range(32)], 6) for lane in range(64)]
        wide = [
            join(
                [decoded(fmt, (17 * lane + 5 * i) % 64, exponent(scales[lane]), source) for i in range(32)],
                width,
            )
            for lane in range(64)
        ]
        t.add(
            f"v_cvt_scalef32_pk32_{source_name}_{name} {{d}}, {{a}}, {{b}}",
            wide,
            a=packed,
            b=scales,
            bits={"a": 192, "d": 32 * width},
        )
    t.run(library, tmp_path)


def join(parts: list[int], width: int) -> int:
    return sum(part << width * i for i, part in enumerate(parts))
