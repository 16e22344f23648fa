# SPDX-License-Identifier: MIT
"""Floating-point instructions of the vector ALU, against what AMD's documents say of them.

The documents are "AMD Instinct MI200", "AMD Instinct MI300" and "CDNA4 Instruction Set Architecture":
chapter "Instructions", the pseudocode of sections VOP1, VOP2, VOP3 and VOP3P, and of chapter "Program
Organization" the table of the MODE register. Sums and products are worked out in fractions and rounded
once.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import pytest
import toolchain
from sim import ARCHS
from values import (
    DEFAULT_MODE,
    F16,
    F32,
    F64,
    NAN16,
    NAN32,
    NAN64,
    Batch,
    Check,
    Format,
    distance_in_ulp,
    f16,
    f32,
    f64,
    float_of,
)

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

FORMATS = {16: F16, 32: F32, 64: F64}
NANS = {16: NAN16, 32: NAN32, 64: NAN64}
M32 = 0xFFFFFFFF
ROUNDINGS = ("nearest", "up", "down", "zero")  # MODE.FP_ROUND: bits 1:0 for f32, 3:2 for f64 and f16
IEEE, FP16_OVFL = 1 << 9, 1 << 23


def mode_of(width: int, rounding: str, keep_in: bool, keep_out: bool) -> int:
    """MODE with a rounding and denormals of one width; the other width's stay as by default."""
    denormals = keep_in | keep_out << 1
    shift = 0 if width == 32 else 2
    value = DEFAULT_MODE & ~(3 << shift) & ~(3 << (4 + shift))
    return value | ROUNDINGS.index(rounding) << shift | denormals << (4 + shift)


def edges(fmt: Format) -> list[int]:
    """Zero, the least and largest denormal and normal, 1 and its neighbours, infinity, NaNs; both signs."""
    one = fmt.bias << fmt.mantissas
    quiet = fmt.infinity | 1 << (fmt.mantissas - 1)
    positive = [
        0,
        1,
        (1 << fmt.mantissas) - 1,
        1 << fmt.mantissas,
        one - 1,
        one,
        one + 1,
        fmt.infinity - 1,
        fmt.infinity,
    ]
    return [v | sign for v in [*positive, quiet | 5, fmt.infinity | 1] for sign in (0, fmt.sign)]


def operands(seed: str, fmt: Format, count: int) -> list[int]:
    """Edge values, and numbers whose exponents lie near each other."""
    rng = random.Random(seed)
    top = 2 * fmt.bias

    def number() -> int:
        exponent = rng.choice(
            (fmt.bias, fmt.bias, rng.randint(0, top), rng.randint(0, 6), rng.randint(top - 6, top))
        )
        exponent = min(max(exponent + rng.randint(-4, 4), 0), top)
        return rng.getrandbits(1) * fmt.sign | exponent << fmt.mantissas | rng.getrandbits(fmt.mantissas)

    return [rng.choice(edges(fmt)) if rng.random() < 0.3 else number() for _ in range(count)]


def negative(fmt: Format, bits: int) -> bool:
    return bits & fmt.sign != 0


def flush(fmt: Format, bits: int) -> int:
    return bits & fmt.sign if bits % fmt.sign < 1 << fmt.mantissas else bits


class Machine:
    """Addition, multiplication and their fused form, as IEEE 754 has them and MODE modifies them."""

    def __init__(
        self, width: int, rounding: str = "nearest", keep_in: bool = True, keep_out: bool = True
    ) -> None:
        self.fmt, self.nan = FORMATS[width], NANS[width]
        self.rounding, self.keep_in, self.keep_out = rounding, keep_in, keep_out
        self.saturate = False

    def fma(self, a: int, b: int, c: int | None, *, product_only: bool = False) -> int:
        fmt = self.fmt
        values = [v if self.keep_in else flush(fmt, v) for v in (a, b, c or 0)]
        a, b, c = values
        if any(fmt.is_nan(v) for v in values):
            return self.nan
        sign = negative(fmt, a) ^ negative(fmt, b)
        infinite = [v % fmt.sign == fmt.infinity for v in values]
        if infinite[0] or infinite[1]:
            if a % fmt.sign == 0 or b % fmt.sign == 0 or (infinite[2] and negative(fmt, c) != sign):
                return self.nan
            return fmt.infinity | sign * fmt.sign
        if infinite[2]:
            return c
        exact = fmt.value(a) * fmt.value(b)
        zero_sign = int(sign)
        if not product_only:
            both_zero = exact == 0 and fmt.value(c) == 0
            exact += fmt.value(c)
            agree = both_zero and sign == negative(fmt, c)
            zero_sign = int(sign) if agree else int(self.rounding == "down")
        result = fmt.round(exact, self.rounding, sign=zero_sign, saturate=self.saturate)
        return result if self.keep_out else flush(fmt, result)

    def add(self, a: int, b: int) -> int:
        return self.fma(a, self.fmt.bias << self.fmt.mantissas, b)

    def sub(self, a: int, b: int) -> int:
        return self.add(a, b ^ self.fmt.sign)

    def mul(self, a: int, b: int) -> int:
        return self.fma(a, b, None, product_only=True)


@functools.cache  # the same on all architectures
def arithmetic(
    width: int, rounding: str, keep_in: bool, keep_out: bool, saturate: bool
) -> list[tuple[str, dict[str, list[int]], list[int]]]:
    """Texts, inputs and results of the instructions of one width, under one MODE."""
    machine, fmt, found = Machine(width, rounding, keep_in, keep_out), FORMATS[width], []
    machine.saturate = saturate
    functions: dict[str, Callable[..., int]] = {
        f"v_add_f{width} {{d}}, {{a}}, {{b}}": machine.add,
        f"v_mul_f{width} {{d}}, {{a}}, {{b}}": machine.mul,
        f"v_fma_f{width} {{d}}, {{a}}, {{b}}, {{c}}": machine.fma,
    }
    if width != 64:
        functions[f"v_sub_f{width} {{d}}, {{a}}, {{b}}"] = machine.sub
        functions[f"v_subrev_f{width} {{d}}, {{a}}, {{b}}"] = lambda a, b: machine.sub(b, a)
    if width != 16:
        functions[f"v_fmac_f{width} {{d}}, {{a}}, {{b}}"] = machine.fma
    for text, function in functions.items():
        names = [name for name in "abc" if f"{{{name}}}" in text] + (["d"] if "fmac" in text else [])
        columns = {
            name: operands(f"{text} {rounding} {keep_in} {keep_out} {name}", fmt, 64) for name in names
        }
        results = [function(*row) for row in zip(*columns.values(), strict=True)]
        found.append((text, columns if width != 16 else columns | {"d": [0]}, results))
    return found


def add_arithmetic(
    t: Batch, width: int, rounding: str, *, keep_in: bool, keep_out: bool, saturate: bool
) -> None:
    mode = mode_of(width, rounding, keep_in, keep_out) | (FP16_OVFL if saturate else 0)
    for text, columns, results in arithmetic(width, rounding, keep_in, keep_out, saturate):
        t.add(text, results, bits=dict.fromkeys("abcd", max(width, 32)), mode=mode, **columns)


@pytest.mark.parametrize("arch", ARCHS)
def test_sums_and_products(arch: str, library: Path, tmp_path: Path) -> None:
    """All roundings and denormal settings of MODE, for 16, 32 and 64 bits."""
    t = Batch(arch)
    for width in (16, 32, 64):
        for rounding in ROUNDINGS:
            for keep_in, keep_out in ((True, True), (False, False), (True, False), (False, True)):
                add_arithmetic(t, width, rounding, keep_in=keep_in, keep_out=keep_out, saturate=False)
    t.run(library, tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
def test_halves_stay_finite(arch: str, library: Path, tmp_path: Path) -> None:
    """MODE.FP16_OVFL: results of halves that overflow are clamped to +-MAX; true infinities stay."""
    t = Batch(arch)
    for rounding in ROUNDINGS:
        add_arithmetic(t, 16, rounding, keep_in=True, keep_out=True, saturate=True)
    inf, most = F16.infinity, F16.largest
    rows = [
        (most, most, most),
        (inf, most, inf),
        (inf, inf, inf),
        (most | 0x8000, most | 0x8000, most | 0x8000),
    ]
    t.table("v_add_f16 {d}, {a}, {b}", rows, mode=DEFAULT_MODE | FP16_OVFL)
    rows32 = [(f32(1e6), most), (f32(-1e6), most | 0x8000), (f32(math.inf), inf), (f32(65520.0), most)]
    t.table("v_cvt_f16_f32 {d}, {a}", rows32, mode=DEFAULT_MODE | FP16_OVFL)
    t.run(library, tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
def test_packed(arch: str, library: Path, tmp_path: Path) -> None:
    """VOP3P: halves and words are picked by op_sel and op_sel_hi, negated by neg_lo and neg_hi."""
    t, m = Batch(arch), Machine(16)

    def column(seed: str) -> list[int]:
        low, high = (operands(f"{seed} {k}", F16, 64) for k in "lh")
        finite = [
            v if v % F16.sign < F16.infinity else f16(1.5) for v in low + high
        ]  # NaNs have no one result here
        return [x | y << 16 for x, y in zip(finite[:64], finite[64:], strict=True)]

    a, b, c = column("a"), column("b"), column("c")

    def both(function: Callable[..., int]) -> list[int]:
        return [
            function(*(v & 0xFFFF for v in row)) | function(*(v >> 16 for v in row)) << 16
            for row in zip(a, b, c, strict=True)
        ]

    pairs: dict[str, Callable[..., int]] = {
        "v_pk_add_f16 {d}, {a}, {b}": lambda x, y, _: m.add(x, y),
        "v_pk_mul_f16 {d}, {a}, {b}": lambda x, y, _: m.mul(x, y),
        "v_pk_fma_f16 {d}, {a}, {b}, {c}": m.fma,
        "v_pk_add_f16 {d}, {a}, {b} neg_lo:[0,1] neg_hi:[0,1]": lambda x, y, _: m.sub(x, y),
        "v_pk_min_f16 {d}, {a}, {b}": lambda x, y, _: least(F16, x, y),
        "v_pk_max_f16 {d}, {a}, {b}": lambda x, y, _: most(F16, x, y),
    }
    for text, function in pairs.items():
        t.add(text, both(function), a=a, b=b, c=c)
    for rounding in ROUNDINGS[1:]:
        m = Machine(16, rounding, keep_in=False, keep_out=False)
        mode = mode_of(16, rounding, keep_in=False, keep_out=False)
        t.add("v_pk_fma_f16 {d}, {a}, {b}, {c}", both(m.fma), a=a, b=b, c=c, mode=mode)
        t.add("v_pk_add_f16 {d}, {a}, {b}", both(lambda x, y, _, m=m: m.add(x, y)), a=a, b=b, mode=mode)
        m = Machine(32, rounding, keep_in=False, keep_out=False)
        mode = mode_of(32, rounding, keep_in=False, keep_out=False)
        x, y, z = ([v for v in operands(k, F32, 200) if not F32.is_nan(v)][:128] for k in "xyz")
        rows = [(*row, m.fma(*row)) for row in zip(x, y, z, strict=True)]
        rows = [row for row in rows if row[3] >= 0][:64]  # NaN has no one result
        pair = [[v | column[i - 1] << 32 for i, v in enumerate(column)] for column in zip(*rows, strict=True)]
        wide = dict.fromkeys("abcd", 64)
        t.add(
            "v_pk_fma_f32 {d}, {a}, {b}, {c}", pair[3], a=pair[0], b=pair[1], c=pair[2], bits=wide, mode=mode
        )
    m = Machine(16)
    crossed = [
        m.mul(x >> 16, y & 0xFFFF) | m.mul(x & 0xFFFF, (y >> 16) ^ 0x8000) << 16
        for x, y in zip(a, b, strict=True)
    ]
    t.add("v_pk_mul_f16 {d}, {a}, {b} op_sel:[1,0] op_sel_hi:[0,1] neg_hi:[0,1]", crossed, a=a, b=b)
    d = [0x3C00_4000]
    t.table(
        "v_pk_fmac_f16 {d}, {a}, {b}",
        [(f16(2.0) | f16(3.0) << 16, f16(4.0) | f16(5.0) << 16, d[0], f16(10.0) | f16(16.0) << 16)],
    )
    # Pairs of words: the second source's words exchanged, the first's low one negated for the low result.
    wide = dict.fromkeys("abcd", 64)
    x, y, z = f32(1.5) | f32(-2.0) << 32, f32(3.0) | f32(0.25) << 32, f32(10.0) | f32(20.0) << 32

    def words(low: float, high: float) -> int:
        return f32(low) | f32(high) << 32

    t.table("v_pk_add_f32 {d}, {a}, {b}", [(x, y, words(4.5, -1.75))], bits=wide)
    t.table("v_pk_mul_f32 {d}, {a}, {b}", [(x, y, words(4.5, -0.5))], bits=wide)
    t.table("v_pk_fma_f32 {d}, {a}, {b}, {c}", [(x, y, z, words(14.5, 19.5))], bits=wide)
    t.table(
        "v_pk_fma_f32 {d}, {a}, {b}, {c} op_sel:[0,1,0] op_sel_hi:[1,0,1] neg_lo:[1,0,0]",
        [(x, y, z, words(-1.5 * 0.25 + 10, -2.0 * 3 + 20))],
        bits=wide,
    )
    t.table("v_pk_mov_b32 {d}, {a}, {b} op_sel:[1,0]", [(x, y, x >> 32 | (y & M32) << 32)], bits=wide)
    t.table("v_pk_mov_b32 {d}, {a}, {b} op_sel:[0,1]", [(x, y, x & M32 | y >> 32 << 32)], bits=wide)
    t.run(library, tmp_path)


def order(fmt: Format, bits: int) -> int:
    """Numbers in their order, -0 below +0."""
    magnitude = bits % fmt.sign
    return -magnitude - 1 if bits & fmt.sign else magnitude


def least(fmt: Format, *values: int) -> int:
    return min(values, key=lambda v: order(fmt, v))


def most(fmt: Format, *values: int) -> int:
    return max(values, key=lambda v: order(fmt, v))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("width", [16, 32, 64])
def test_minimum_and_maximum(arch: str, width: int, library: Path, tmp_path: Path) -> None:
    """V_MIN, V_MAX: with IEEE a signaling NaN comes out quiet; else of a NaN and a number the number."""
    t, fmt, bits = Batch(arch), FORMATS[width], dict.fromkeys("abcd", max(width, 32))
    quiet_bit = 1 << (fmt.mantissas - 1)
    signaling, quiet = fmt.infinity | 5, fmt.infinity | quiet_bit | 9
    one, two = fmt.bias << fmt.mantissas, (fmt.bias + 1) << fmt.mantissas
    zero, minus_zero = 0, fmt.sign
    for name, pick in (("min", least), ("max", most)):
        text = f"v_{name}_f{width} {{d}}, {{a}}, {{b}}"
        pairs = [(one, two), (two, one), (zero, minus_zero), (minus_zero, zero), (one | fmt.sign, two)]
        rows = [(a, b, pick(fmt, a, b)) for a, b in pairs]
        rows += [(quiet, one, one), (one, quiet, one), (fmt.infinity, quiet, fmt.infinity)]
        ieee = [(signaling, one, signaling | quiet_bit), (one, signaling, signaling | quiet_bit)]
        ieee += [(quiet, signaling, signaling | quiet_bit)]
        t.table(text, rows + ieee, bits=bits, mode=DEFAULT_MODE)
        t.table(
            text, [*rows, (signaling, one, one), (one, signaling, one)], bits=bits, mode=DEFAULT_MODE & ~IEEE
        )
    if width != 64:
        three = "{d}, {a}, {b}, {c}"
        rng = random.Random(width)
        triples = [
            tuple(rng.choice([one, two, zero, minus_zero, one | fmt.sign, fmt.infinity]) for _ in "abc")
            for _ in range(30)
        ]
        t.table(f"v_min3_f{width} {three}", [(*v, least(fmt, *v)) for v in triples])
        t.table(f"v_max3_f{width} {three}", [(*v, most(fmt, *v)) for v in triples])
        t.table(
            f"v_med3_f{width} {three}", [(*v, sorted(v, key=lambda x: order(fmt, x))[1]) for v in triples]
        )
        # V_MED3: with a NaN among them the result is V_MIN3's.
        t.table(
            f"v_med3_f{width} {three}",
            [(quiet, two, one, one), (two, quiet, one, one), (two, one, quiet, one)],
        )
        # V_MIN3 is V_MIN of V_MIN and the third: a NaN that the first made quiet loses against it.
        t.table(
            f"v_min3_f{width} {three}",
            [(signaling, one, two, two), (one, two, signaling, signaling | quiet_bit)],
        )
    if arch == "gfx950" and width != 64:
        # V_MINIMUM3, V_MAXIMUM3: IEEE 754-2019's minimum and maximum: NaN wins.
        if width == 32:
            rows = [(one, two, zero, zero), (one, quiet, two, NAN32), (signaling, one, two, NAN32)]
            t.table("v_minimum3_f32 {d}, {a}, {b}, {c}", [*rows, (zero, minus_zero, one, minus_zero)])
            t.table(
                "v_maximum3_f32 {d}, {a}, {b}, {c}",
                [(one, two, zero, two), *rows[1:], (zero, minus_zero, minus_zero, zero)],
            )
        else:
            row = (one | two << 16, two | one << 16, zero | two << 16)
            t.table("v_pk_minimum3_f16 {d}, {a}, {b}, {c}", [(*row, zero | one << 16)])
            t.table("v_pk_maximum3_f16 {d}, {a}, {b}, {c}", [(*row, two | two << 16)])
            t.add(
                "v_pk_minimum3_f16 {d}, {a}, {b}, {c}",
                lambda _, v: v & 0x7E00 == 0x7E00,
                a=[quiet],
                b=[one],
                c=[two],
            )
    t.run(library, tmp_path)


def whole(fmt: Format, name: str, bits: int) -> int:
    """Rounding to an integer; zeros keep the sign."""
    if fmt.is_nan(bits):
        return NANS[1 + fmt.exponents + fmt.mantissas]
    if bits % fmt.sign == fmt.infinity:
        return bits
    exact = fmt.value(bits)
    number = {"trunc": math.trunc, "ceil": math.ceil, "floor": math.floor, "rndne": round}[name](exact)
    return fmt.round(Fraction(number), sign=int(negative(fmt, bits)))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("width", [16, 32, 64])
def test_parts_of_numbers(arch: str, width: int, library: Path, tmp_path: Path) -> None:
    t, fmt, bits = Batch(arch), FORMATS[width], dict.fromkeys("abcd", max(width, 32))
    one = fmt.bias << fmt.mantissas
    a = [
        *edges(fmt),
        *(fmt.round(Fraction(v, 4)) for v in range(-20, 21)),
        fmt.round(Fraction(1 << fmt.mantissas) + Fraction(1, 2)),
    ]
    a = [v for v in a if not fmt.is_nan(v) or v & 1 << (fmt.mantissas - 1)]
    for name in ("trunc", "ceil", "floor", "rndne"):
        t.add(f"v_{name}_f{width} {{d}}, {{a}}", [whole(fmt, name, v) for v in a], bits=bits, a=a)
    nan = NANS[width]
    # V_FRACT: "S0 + -floor(S0)". Of small negative numbers that rounds to 1; the greatest number below is
    # what LLVM's AMDGPUCodeGenPrepare.cpp (matchFractPat) takes the instruction for, and what it gives
    # here.
    fractions = []
    for v in a:
        special = fmt.is_nan(v) or v % fmt.sign == fmt.infinity
        fractions.append(nan if special else min(fmt.round(fmt.value(v) - math.floor(fmt.value(v))), one - 1))
    t.add(f"v_fract_f{width} {{d}}, {{a}}", fractions, bits=bits, a=a)
    # V_FREXP_MANT, V_FREXP_EXP: value = mantissa * 2^exponent, mantissa in [0.5, 1); of infinity itself,
    # and 0.
    numbers = [v for v in a if not fmt.is_nan(v)]
    mantissas, exponents = [], []
    for v in numbers:
        if v % fmt.sign in (0, fmt.infinity):
            mantissas.append(v)
            exponents.append(0)
            continue
        fraction, exponent = math.frexp(float_of(v, width))
        mantissas.append(fmt.round(Fraction(fraction)))
        exponents.append(exponent & (0xFFFF if width == 16 else M32))
    t.add(f"v_frexp_mant_f{width} {{d}}, {{a}}", mantissas, bits=bits, a=numbers)
    kind = "i16" if width == 16 else "i32"
    t.add(f"v_frexp_exp_{kind}_f{width} {{d}}, {{a}}", exponents, bits={"a": bits["a"]}, a=numbers)
    # V_LDEXP: "S0 * 2 ** S1", rounded where it becomes a denormal, infinity beyond.
    rows = []
    for v in numbers:
        for power in (0, 1, -1, 5, -20, 40, -2000, 3000, -fmt.bias - fmt.mantissas):
            if v % fmt.sign == fmt.infinity or (width == 16 and abs(power) > 32767):
                result = v
            else:
                result = fmt.round(fmt.value(v) * Fraction(2) ** power, sign=int(negative(fmt, v)))
            rows.append((v, power & (0xFFFF if width == 16 else M32), result))
    for start in range(0, len(rows), 64):
        t.table(f"v_ldexp_f{width} {{d}}, {{a}}, {{b}}", rows[start : start + 64], bits={**bits, "b": 32})
    t.run(library, tmp_path)


def reference(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function of math that knows infinity and NaN where math raises."""

    def value(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return value


def near(expected: Sequence[float], width: int, ulp: float, *, trig: bool) -> Check:
    """Whether results are so near; sines and cosines near their zeros within an absolute error."""
    fmt = FORMATS[width]

    def check(lane: int, got: int) -> bool:
        if trig and abs(expected[lane]) < 2.0**-8:
            return abs(float_of(got, width) - expected[lane]) < 2.0 ** (-22 if width == 32 else -11)
        return distance_in_ulp(got, expected[lane], fmt) <= ulp

    return check


@pytest.mark.parametrize("arch", ARCHS)
def test_transcendental(arch: str, library: Path, tmp_path: Path) -> None:
    """Within 1 ulp of the true value, which LLVM's AMDGPUUsage and the documents name; f16 within 0.51."""
    t, rng = Batch(arch), random.Random(1)
    inf, nan = math.inf, math.nan

    def rsq(x: float) -> float:
        return 1 / math.sqrt(x)

    functions: dict[str, tuple[Callable[[float], float], float, float]] = {
        "exp": (lambda x: 2.0**x, -120, 120),
        "log": (math.log2, 1e-30, 1e30),
        "rcp": (lambda x: 1 / x, -1e30, 1e30),
        "rsq": (rsq, 1e-30, 1e30),
        "sqrt": (math.sqrt, 0, 1e30),
        "sin": (lambda x: math.sin(2 * math.pi * (x - math.floor(x))), -1, 1),
        "cos": (lambda x: math.cos(2 * math.pi * (x - math.floor(x))), -1, 1),
    }
    for name, (function, low, high) in functions.items():
        for width, ulp in ((32, 1.0), (16, 0.51)):
            fmt = FORMATS[width]
            top = 60000.0 if width == 16 else high
            column = []
            for _ in range(128):
                scale = rng.uniform(-1, 1) if name in ("exp", "sin", "cos") else 2.0 ** rng.uniform(-14, 14)
                x = scale * (14 if width == 16 else 120) if name == "exp" else scale
                x = -x if name == "rcp" and rng.random() < 0.5 else x
                column.append(fmt.round(Fraction(min(max(x, low, -top), high, top))))

            for start in (0, 64):
                inputs = [float_of(v, width) for v in column[start : start + 64]]
                trig = name in ("sin", "cos")
                check = near([reference(function)(x) for x in inputs], width, ulp, trig=trig)
                t.add(f"v_{name}_f{width} {{d}}, {{a}}", check, a=column[start : start + 64])
    # Special values: the tables of the documents' VOP1 section. Denormals count as zeros, in and out.
    tiny = 0x00000001
    specials: dict[str, list[tuple[int, int]]] = {
        "v_rcp_f32": [
            (f32(0.0), f32(inf)),
            (f32(-0.0), f32(-inf)),
            (f32(inf), 0),
            (f32(-inf), f32(-0.0)),
            (f32(nan), NAN32),
        ],
        "v_rcp_iflag_f32": [(f32(0.0), f32(inf)), (f32(4.0), f32(0.25))],
        "v_rsq_f32": [
            (f32(0.0), f32(inf)),
            (f32(inf), 0),
            (f32(-1.0), NAN32),
            (f32(nan), NAN32),
            (tiny, f32(inf)),
        ],
        "v_sqrt_f32": [
            (f32(0.0), 0),
            (f32(-0.0), f32(-0.0)),
            (f32(inf), f32(inf)),
            (f32(-1.0), NAN32),
            (tiny, 0),
        ],
        "v_log_f32": [
            (f32(0.0), f32(-inf)),
            (f32(inf), f32(inf)),
            (f32(-1.0), NAN32),
            (f32(1.0), 0),
            (tiny, f32(-inf)),
        ],
        "v_exp_f32": [
            (f32(-inf), 0),
            (f32(inf), f32(inf)),
            (f32(0.0), f32(1.0)),
            (f32(-140.0), 0),
            (f32(128.0), f32(inf)),
        ],
        "v_exp_legacy_f32": [(f32(3.0), f32(8.0))],
        "v_log_legacy_f32": [(f32(8.0), f32(3.0))],
        # "Denormals are supported", and the documents' examples.
        "v_sin_f32": [
            *(
                (f32(inf), NAN32),
                (f32(257.0), 0),
                (f32(0.25), f32(1.0)),
                (f32(0.0), 0),
                (f32(-0.0), f32(-0.0)),
            ),
            *((0xFF7FFFFF, 0), (0x00100000, 0x006487ED), (f32(0.5), 0)),
        ],
        "v_cos_f32": [
            *((f32(inf), NAN32), (f32(257.0), f32(1.0)), (f32(0.5), f32(-1.0)), (f32(0.0), f32(1.0))),
            *((f32(0.25), 0), (0xFF7FFFFF, f32(1.0)), (f32(-0.0), f32(1.0))),
        ],
        "v_sin_f16": [(0x8000, 0x8000), (0x3400, 0x3C00), (0x7BFF, 0), (0xFC00, NAN16)],
        "v_cos_f16": [(0x8000, 0x3C00), (0x3400, 0), (0x7BFF, 0x3C00), (0xFC00, NAN16)],
        "v_rcp_f16": [
            (f16(0.0), f16(inf)),
            (f16(-inf), 0x8000),
            (f16(3.0), f16(1 / 3)),
            (0x0200, f16(32768.0)),
        ],
        "v_rsq_f16": [(f16(4.0), f16(0.5)), (f16(-1.0), NAN16)],
        "v_sqrt_f16": [(f16(2.0), f16(math.sqrt(2))), (0x8000, 0x8000), (f16(-2.0), NAN16)],
        "v_log_f16": [(0, f16(-inf)), (0x0001, f16(-24.0))],
        "v_exp_f16": [(f16(-24.0), 0x0001), (f16(16.0), f16(inf))],
    }
    for name, rows in specials.items():
        t.table(f"{name} {{d}}, {{a}}", rows)
    wide = {"a": 64, "d": 64}
    for name, function in (("rcp", lambda x: 1 / x), ("rsq", rsq), ("sqrt", math.sqrt)):
        xs = [2.0 ** rng.uniform(-900, 900) for _ in range(64)]

        def close(lane: int, got: int, xs: list[float] = xs, f: Callable[[float], float] = function) -> bool:
            return abs(float_of(got, 64) / f(xs[lane]) - 1) < 2.0**-22

        t.add(f"v_{name}_f64 {{d}}, {{a}}", close, bits=wide, a=[f64(x) for x in xs])
    t.table(
        "v_rcp_f64 {d}, {a}", [(f64(0.0), f64(inf)), (f64(-inf), f64(-0.0)), (f64(nan), NAN64)], bits=wide
    )
    t.run(library, tmp_path)


def two_over_pi(bits: int) -> int:
    """The first bits of 2 / pi behind the point, by Machin's formula."""
    scale = 1 << (bits + 64)

    def arctan(n: int) -> int:
        total = term = scale // n
        k = 3
        while term:
            term //= n * n
            total += -(term // k) if k % 4 == 3 else term // k
            k += 2
        return total

    pi = 4 * (4 * arctan(5) - arctan(239))
    return (2 * scale * scale // pi) >> 64


@pytest.mark.parametrize("arch", ARCHS)
def test_trig_preop(arch: str, library: Path, tmp_path: Path) -> None:
    """V_TRIG_PREOP_F64: 53 bits of 2 / pi; the document's pseudocode in integers."""
    t, rows, table = Batch(arch), [], two_over_pi(1201)
    for exponent in (0, 1000, 1077, 1078, 1100, 1500, 1967, 1968, 2046):
        for segment in (0, 1, 2, 7, 32):
            shift = (segment & 31) * 53 + max(0, exponent - 1077)
            if shift > 1201 - 53:
                continue
            whole_part = table << shift >> 1201 - 53 & ((1 << 53) - 1) if shift else table >> 1201 - 53
            scale = -53 - shift + (128 if exponent >= 1968 else 0)
            expected = F64.round(whole_part * Fraction(2) ** scale)
            rows.append((exponent << 52, segment, expected))
    t.table("v_trig_preop_f64 {d}, {a}, {b}", rows, bits={"a": 64, "d": 64})
    t.run(library, tmp_path)


def scale32(rows: Sequence[tuple[float, float, float, float]]) -> list[tuple[int, int, int, int]]:
    return [(f32(a), f32(b), f32(c), NAN32 if math.isnan(d) else f32(d)) for a, b, c, d in rows]


@pytest.mark.parametrize("arch", ARCHS)
def test_division(arch: str, library: Path, tmp_path: Path) -> None:
    """V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP, of the documents' VOP3 section.

    Where they are at odds with what a division needs: V_DIV_FMAS is said to multiply by 2^32 (2^64), but
    V_DIV_SCALE scales by 2^64 (2^128), and only its inverse (up where the addend is large, down where it is
    small, as the RDNA documents have it) gives quotients; and of f32 "1.0 / S1" would never be a denormal
    as the double that it is written as.
    """
    t, inf, nan = Batch(arch), math.inf, math.nan
    text = "v_div_scale_f32 {d}, {s}, {a}, {b}, {c}"
    cases = [  # what is scaled, denominator, numerator, result, and whether VCC is set
        (3.0, 3.0, 6.0, 3.0, 0),
        (6.0, 3.0, 6.0, 6.0, 0),
        (0.0, 0.0, 6.0, nan, 0),
        (3.0, 3.0, 0.0, nan, 0),
        (2.0**-60, 2.0**-60, 2.0**40, 2.0**4, 1),  # the quotient is near the largest: only the denominator
        (2.0**40, 2.0**-60, 2.0**40, 2.0**40, 1),
        (2.0**-140, 2.0**-140, 2.0**-100, 2.0**-76, 0),  # a denormal denominator
        (2.0**-100, 2.0**-140, 2.0**-100, 2.0**-36, 0),
        (2.0**127, 2.0**127, 2.0**126, 2.0**63, 0),  # 1 / denominator is a denormal
        (2.0**-90, 2.0**50, 2.0**-90, 2.0**-26, 1),  # the quotient alone: only the numerator
        (2.0**50, 2.0**50, 2.0**-90, 2.0**50, 1),
        (2.0**-110, 2.0**-100, 2.0**-110, 2.0**-46, 0),  # a tiny numerator
        (2.0**-104, 2.0**-100, 2.0**-104, 2.0**-40, 0),  # its exponent is 23: the last of those
        (2.0**-103, 2.0**-100, 2.0**-103, 2.0**-103, 0),
        (2.0**-48, 2.0**-48, 2.0**48, 2.0**16, 1),  # exponents 96 apart, and 95
        (2.0**-47, 2.0**-47, 2.0**48, 2.0**-47, 0),
    ]
    columns = list(zip(*scale32([case[:4] for case in cases]), strict=True))
    vcc = [case[4] for case in cases]
    mask = sum(vcc[lane % len(vcc)] << lane for lane in range(64))
    t.add(text, columns[3], mask=mask, a=columns[0], b=columns[1], c=columns[2])
    wide = dict.fromkeys("abcd", 64)
    cases64 = [
        (3.0, 3.0, 6.0, f64(3.0), 0),
        (0.0, 0.0, 6.0, NAN64, 0),
        (2.0**-500, 2.0**-500, 2.0**300, f64(2.0**-372), 1),
        (2.0**-1060, 2.0**-1060, 2.0**-900, f64(2.0**-932), 0),
        (2.0**1023, 2.0**1023, 2.0**1000, f64(2.0**895), 0),
        (2.0**-1000, 2.0**60, 2.0**-1000, f64(2.0**-872), 1),
        (2.0**-990, 2.0**-980, 2.0**-990, f64(2.0**-862), 0),
    ]
    vcc = [case[4] for case in cases64]
    t.add(
        "v_div_scale_f64 {d}, {s}, {a}, {b}, {c}",
        [case[3] for case in cases64],
        mask=sum(vcc[lane % len(vcc)] << lane for lane in range(64)),
        bits=wide,
        a=[f64(case[0]) for case in cases64],
        b=[f64(case[1]) for case in cases64],
        c=[f64(case[2]) for case in cases64],
    )
    on, off = "s_mov_b64 vcc, -1", "s_mov_b64 vcc, 0"
    rows = [(f32(3.0), f32(2.0), f32(1.0), f32(7.0))]
    t.table("v_div_fmas_f32 {d}, {a}, {b}, {c}", rows, before=off)
    rows = [
        (f32(3.0), f32(2.0), f32(1.0), f32(7.0 * 2.0**-64)),
        (f32(1.0), f32(1.0), f32(2.0), f32(3 * 2.0**64)),
    ]
    t.table("v_div_fmas_f32 {d}, {a}, {b}, {c}", rows, before=on)
    rows = [
        (f64(3.0), f64(2.0), f64(1.0), f64(7.0 * 2.0**-128)),
        (f64(1.0), f64(1.0), f64(2.0), f64(3 * 2.0**128)),
    ]
    t.table("v_div_fmas_f64 {d}, {a}, {b}, {c}", rows, before=on, bits=wide)
    t.table(
        "v_div_fmas_f64 {d}, {a}, {b}, {c}", [(f64(3.0), f64(2.0), f64(1.0), f64(7.0))], before=off, bits=wide
    )
    fixups = [  # quotient, denominator, numerator
        (5.0, nan, 1.0, nan),
        (5.0, 1.0, nan, nan),
        (5.0, 0.0, 0.0, nan),
        (5.0, inf, -inf, nan),
        (5.0, 0.0, 3.0, inf),
        (5.0, -0.0, 3.0, -inf),
        (5.0, 2.0, -inf, -inf),
        (5.0, inf, 3.0, 0.0),
        (5.0, -inf, 3.0, -0.0),
        (5.0, 3.0, -0.0, -0.0),
        (-5.0, 2.0, 10.0, 5.0),  # the sign is that of the operands
        (5.0, -2.0, 10.0, -5.0),
    ]
    t.table("v_div_fixup_f32 {d}, {a}, {b}, {c}", scale32(fixups))
    t.table(
        "v_div_fixup_f32 {d}, {a}, {b}, {c}", scale32([(5.0, 2.0**100, 2.0**-100, 0.0)])
    )  # exponents 200 apart
    rows16 = [(*(f16(v) for v in row[:3]), NAN16 if math.isnan(row[3]) else f16(row[3])) for row in fixups]
    t.add(
        "v_div_fixup_f16 {d}, {a}, {b}, {c}",
        [row[3] for row in rows16],
        a=[row[0] for row in rows16],
        b=[row[1] for row in rows16],
        c=[row[2] for row in rows16],
        d=[0],
    )
    t.table("v_div_fixup_legacy_f16 {d}, {a}, {b}, {c}", rows16)
    rows64 = [(*(f64(v) for v in row[:3]), NAN64 if math.isnan(row[3]) else f64(row[3])) for row in fixups]
    t.table("v_div_fixup_f64 {d}, {a}, {b}, {c}", rows64, bits=wide)
    t.run(library, tmp_path)


def add_mix_modes(t: Batch) -> None:
    """V_MAD_MIX under MODE: denormals by a source's own type, the sum rounds as f32, the half as f16."""
    tiny16, tiny32, one = 0x0200, 0x00400000, f32(1.0)
    text = "v_fma_mix_f32 {d}, {a}, {b}, 0"
    no_halves, no_singles = mode_of(16, "nearest", False, False), mode_of(32, "nearest", False, False)
    t.table(text + " op_sel_hi:[1,0,0]", [(tiny16, one, f32(2.0**-15))], mode=no_singles)
    t.table(text + " op_sel_hi:[1,0,0]", [(tiny16, one, 0)], mode=no_halves)
    t.table(text, [(tiny32, one, tiny32)], mode=no_halves)
    t.table(text, [(tiny32, one, 0)], mode=no_singles)
    up32, up16 = mode_of(32, "up", True, True), mode_of(16, "up", True, True)
    t.table("v_fma_mix_f32 {d}, {a}, {b}, 1.0", [(f32(2.0**-40), one, f32(1.0 + 2.0**-23))], mode=up32)
    text = "v_fma_mixlo_f16 {d}, {a}, {b}, 0"
    t.add(text, [f16(1.0 + 2.0**-10)], a=[f32(1.0 + 2.0**-12)], b=[one], d=[0], mode=up16)
    t.add(text, [f16(1.0)], a=[f32(1.0 + 2.0**-12)], b=[one], d=[0], mode=up32)


@pytest.mark.parametrize("arch", ARCHS)
def test_other_forms(arch: str, library: Path, tmp_path: Path) -> None:
    t, inf, nan = Batch(arch), math.inf, math.nan
    # V_MUL_LEGACY_F32: "DX9 rules, 0.0 * x = 0.0".
    rows = [(0.0, inf, 0.0), (-0.0, nan, 0.0), (nan, 0.0, 0.0), (2.0, -3.0, -6.0), (2.0, inf, inf)]
    t.table("v_mul_legacy_f32 {d}, {a}, {b}", [(f32(a), f32(b), f32(d)) for a, b, d in rows])
    # V_CUBE*: the longest axis, z before y before x; the face's number, coordinates, and twice the axis.
    cube = [(3.0, 1.0, 2.0, 0, -2.0, -1.0), (-3.0, 1.0, 2.0, 1, 2.0, -1.0), (1.0, 3.0, 2.0, 2, 1.0, 2.0)]
    cube += [(1.0, -3.0, 2.0, 3, 1.0, -2.0), (1.0, 2.0, 3.0, 4, 1.0, -2.0), (1.0, 2.0, -3.0, 5, -1.0, -2.0)]
    cube += [(2.0, 2.0, 2.0, 4, 2.0, -2.0), (2.0, 2.0, 1.0, 2, 2.0, 1.0)]
    axes = [6.0, -6.0, 6.0, -6.0, 6.0, -6.0, 4.0, 4.0]
    columns = {name: [f32(row[i]) for row in cube] for i, name in enumerate("abc")}
    for name, results in {
        "id": [float(row[3]) for row in cube],
        "sc": [row[4] for row in cube],
        "tc": [row[5] for row in cube],
        "ma": axes,
    }.items():
        t.add(f"v_cube{name}_f32 {{d}}, {{a}}, {{b}}, {{c}}", [f32(v) for v in results], **columns)
    # V_MAD_MIX of the documents, v_fma_mix to LLVM: each source a float, or the half that op_sel picks;
    # the result a float, or a half of the register.
    halves, single = f16(1.5) | f16(-2.0) << 16, f32(10.0)
    t.table(
        "v_fma_mix_f32 {d}, {a}, {b}, {c} op_sel:[0,1,0] op_sel_hi:[1,1,0]",
        [(halves, halves, single, f32(7.0))],
    )
    t.table(
        "v_fma_mix_f32 {d}, |{a}|, -{b}, {c} op_sel:[1,0,0] op_sel_hi:[1,1,0]",
        [(halves, halves, single, f32(7.0))],
    )
    for part, result in (("lo", 0xABCD0000 | f16(7.0)), ("hi", f16(7.0) << 16 | 0x5678)):
        t.add(
            f"v_fma_mix{part}_f16 {{d}}, {{a}}, {{b}}, {{c}} op_sel:[0,1,0] op_sel_hi:[1,1,0]",
            [result],
            a=[halves],
            b=[halves],
            c=[single],
            d=[0xABCD5678],
        )
    t.table("v_fma_mix_f32 {d}, {a}, {b}, {c} clamp", [(f32(2.0), f32(3.0), f32(1.0), f32(1.0))])
    add_mix_modes(t)
    # Constants behind the instruction: a * K + b, and a * b + K.
    ab = (f32(3.0), f32(2.0))
    if arch == "gfx90a":
        t.table("v_madmk_f32 {d}, {a}, 0x41200000, {b}", [(*ab, f32(32.0))])
        t.table(
            "v_madak_f32 {d}, {a}, {b}, 0x41200000",
            [(*ab, f32(16.0)), (f32(2.0**-70), f32(2.0**-70), f32(10.0))],
        )
        t.add("v_mac_f32 {d}, {a}, {b}", [f32(13.0)], a=[ab[0]], b=[ab[1]], d=[f32(7.0)])
        # Not fused: the product is rounded first. (1 + 2^-12)^2 - 1 loses its last bit.
        x = f32(1 + 2.0**-12)
        t.table("v_mad_f32 {d}, {a}, {b}, -1.0", [(x, x, f32(2.0**-11))])
        t.table("v_fma_f32 {d}, {a}, {b}, -1.0", [(x, x, f32(2.0**-11 + 2.0**-24))])
        t.table(
            "v_mad_legacy_f32 {d}, {a}, {b}, {c}",
            [(f32(0.0), f32(inf), f32(2.0), f32(2.0)), (*ab, f32(1.0), f32(7.0))],
        )
        t.table("v_mad_f32 {d}, {a}, {b}, {c}", [(0x00400000, f32(1.0), 0, 0)])  # denormals are zeros
    else:
        t.table("v_fmamk_f32 {d}, {a}, 0x41200000, {b}", [(*ab, f32(32.0))])
        t.table("v_fmaak_f32 {d}, {a}, {b}, 0x41200000", [(*ab, f32(16.0))])
    half = (f16(3.0), f16(2.0))
    t.table("v_madmk_f16 {d}, {a}, 0x4900, {b}", [(*half, f16(32.0))])
    t.table("v_madak_f16 {d}, {a}, {b}, 0x4900", [(*half, f16(16.0))])
    t.add("v_mac_f16 {d}, {a}, {b}", [f16(13.0)], a=[half[0]], b=[half[1]], d=[f16(7.0) | 0xABCD0000])
    t.table("v_mad_legacy_f16 {d}, {a}, {b}, {c}", [(*half, f16(1.0), f16(7.0))])
    t.table("v_fma_legacy_f16 {d}, {a}, {b}, {c}", [(*half, f16(1.0), f16(7.0))])
    x = f16(1 + 2.0**-6)
    t.add("v_mad_f16 {d}, {a}, {b}, -1.0", [f16(2.0**-5) | 0xABCD0000], a=[x], b=[x], d=[0xABCD0000])
    t.add(
        "v_fma_f16 {d}, {a}, {b}, -1.0", [f16(2.0**-5 + 2.0**-12) | 0xABCD0000], a=[x], b=[x], d=[0xABCD0000]
    )
    t.run(library, tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
def test_dot_products(arch: str, library: Path, tmp_path: Path) -> None:
    t = Batch(arch)
    # V_DOT2: products of halves and a float.
    a, b = f16(3.0) | f16(5.0) << 16, f16(7.0) | f16(-2.0) << 16
    t.table("v_dot2_f32_f16 {d}, {a}, {b}, {c}", [(a, b, f32(0.5), f32(11.5))])
    t.table("v_dot2_f32_f16 {d}, {a}, {b}, {c} neg_lo:[1,0,0]", [(a, b, f32(0.5), f32(-30.5))])
    t.add("v_dot2c_f32_f16 {d}, {a}, {b}", [f32(11.5)], a=[a], b=[b], d=[f32(0.5)])
    if arch == "gfx950":
        a, b = f32(3.0) >> 16 | f32(5.0), f32(7.0) >> 16 | f32(-2.0)
        t.table("v_dot2_f32_bf16 {d}, {a}, {b}, {c}", [(a, b, f32(0.5), f32(11.5))])
        t.add("v_dot2c_f32_bf16 {d}, {a}, {b}", [f32(11.5)], a=[a], b=[b], d=[f32(0.5)])
    # In the documents' order: the addend, the low product, the high one; v_dot2_f32_bf16's addend comes last.
    a, b, c = f16(1.25) | f16(1.0) << 16, f16(1.0) | f16(1.0) << 16, f32(2.0**24)
    t.table("v_dot2_f32_f16 {d}, {a}, {b}, {c}", [(a, b, c, f32(2.0**24 + 4))])
    if arch == "gfx950":
        a = b = f32(1.0) >> 16 | f32(1.0)
        t.table("v_dot2_f32_bf16 {d}, {a}, {b}, {c}", [(a, b, c, f32(2.0**24 + 2))])
        t.add("v_dot2c_f32_bf16 {d}, {a}, {b}", [f32(2.0**24)], a=[a], b=[b], d=[c])
    # Denormals become 0 on both sides, whatever MODE says: the documents' "Denormalized and Rounding Modes",
    # and LLVM's SIISelLowering.cpp, performFMACombine.
    rows = [(0x0200, f16(1.0), 0), (0, 0, 0x00000200), (f16(1.0), f16(0.0), 0x00400000)]
    t.table("v_dot2_f32_f16 {d}, {a}, {b}, {c}", [(*row, 0) for row in rows])
    if arch == "gfx950":
        for row in ((0x0040, f32(8.0) >> 16, 0), (f32(2.0**-100) >> 16, f32(2.0**-30) >> 16, 0)):
            t.table("v_dot2_f32_bf16 {d}, {a}, {b}, {c}", [(*row, 0)])
            t.add("v_dot2c_f32_bf16 {d}, {a}, {b}", [0], a=[row[0]], b=[row[1]], d=[0])
    t.run(library, tmp_path)
