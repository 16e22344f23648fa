# SPDX-License-Identifier: MIT
"""How matrix instructions round the sums of 16- and 8-bit products and of xf32, in exact arithmetic.

gfx90a and gfx942 are as microsoft/MMA-Sim (arXiv 2511.10909) describes them, which was compared with both bit
for bit. Nobody measured gfx950: it is taken to do as gfx942, its wide shapes in several of gfx942's steps,
and sparse products as the dense ones of the items that meet.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
import toolchain
from generate_tables import ARCHS
from sampling import sample
from test_values_matrix import WIDTHS, Matrix, Shape, join, shapes
from values import BF8, BF8_FNUZ, BF16, F16, F32, FP8, FP8_FNUZ, NAN32, Batch, Format, float_of, floor_log2

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

Number = Fraction | float  # a float is infinite or NaN
TWO = Fraction(2)


def format_of(kind: str, arch: str) -> Format:
    small = {"fp8": FP8, "bf8": BF8} if arch == "gfx950" else {"fp8": FP8_FNUZ, "bf8": BF8_FNUZ}
    return {"f16": F16, "bf16": BF16, "xf32": F32, "f32": F32, **small}[kind]


def number_of(fmt: Format, bits: int) -> Number:
    if fmt.is_nan(bits):
        return math.nan
    if fmt.top == "ieee" and bits % fmt.sign == fmt.infinity:
        return -math.inf if bits & fmt.sign else math.inf
    return fmt.value(bits)


def exponent_of(value: Fraction, fmt: Format) -> int:
    """A number's exponent; for a denormal that of the least normal number, for 0 that of f32's."""
    return max(floor_log2(abs(value)), 1 - fmt.bias) if value else -126


def cut(value: Fraction, exponent: int) -> Fraction:
    """Rounds to a multiple of 2^exponent, towards zero."""
    return math.trunc(value / TWO**exponent) * TWO**exponent


def down(value: Fraction, exponent: int) -> Fraction:
    return math.floor(value / TWO**exponent) * TWO**exponent


def special(products: Sequence[Number], c: Number) -> float | None:
    """The sum, where an operand makes it infinite or NaN."""
    odd = [v for v in (*products, c) if isinstance(v, float)]
    return sum(odd) if odd else None


def times(a: Number, b: Number) -> Number:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    signs = [(v > 0) - (v < 0) for v in (a, b)]  # 0 of NaN too
    return signs[0] * signs[1] * math.inf


def fused(a: list[int], b: list[int], formats: tuple[Format, Format], c: int, small: bool) -> int:
    """A step of gfx942: the bits of the new sum."""
    xs = [number_of(formats[0], v) for v in a]
    ys = [number_of(formats[1], v) for v in b]
    old = number_of(F32, c)
    products = [times(x, y) for x, y in zip(xs, ys, strict=True)]
    odd = special(products, old)
    if odd is not None:
        return bits_of(odd)
    large = {v > 0 for v in products if abs(v) >= TWO**128}
    if large:
        return bits_of(math.nan if len(large) == 2 else math.inf if large == {True} else -math.inf)
    assert isinstance(old, Fraction)
    exponents = [
        exponent_of(Fraction(x), formats[0]) + exponent_of(Fraction(y), formats[1])
        for x, y in zip(xs, ys, strict=True)
    ]
    parts = []  # sums and their exponents
    for first in range(2 if small else 1):
        mine = slice(first, None, 2 if small else 1)
        greatest = max(exponents[mine])
        parts.append((sum(cut(Fraction(p), greatest - 24) for p in products[mine]), greatest))
    step = max(e for _, e in parts)
    total = Fraction(sum(down(Fraction(v), step - 24) for v, _ in parts)) if small else Fraction(parts[0][0])
    of_c = exponent_of(old, F32)
    both = max(step, of_c)
    counted = Fraction(0) if small and of_c < both - 25 else down(old, both - 24)
    exact = down(total, both - 31) + counted
    return F32.round(exact)


def bits_of(value: float) -> int:
    return NAN32 if math.isnan(value) else 0x7F800000 | (value < 0) << 31


def flush(bits: int) -> int:
    return bits & 0x80000000 if bits & 0x7F800000 == 0 else bits


def plus(x: int, y: int) -> int:
    """The sum of two floats; denormal sums are zeros."""
    if NAN32 in (x, y):
        return NAN32
    a, b = number_of(F32, x), number_of(F32, y)
    odd = special([a], b)
    if odd is not None:
        return bits_of(odd)
    assert isinstance(a, Fraction) and isinstance(b, Fraction)
    return flush(F32.round(a + b, sign=x & y & 0x80000000 and 1))


def tree(a: list[int], b: list[int], fmt: Format) -> int:
    if len(a) > 1:
        half = len(a) // 2
        return plus(tree(a[:half], b[:half], fmt), tree(a[half:], b[half:], fmt))
    least = TWO ** (1 - fmt.bias)
    x, y = (Fraction(0) if abs(v) < least else v for v in (number_of(fmt, a[0]), number_of(fmt, b[0])))
    product = times(x, y)
    return bits_of(product) if isinstance(product, float) else flush(F32.round(product))


def entry(arch: str, shape: Shape, a: list[int], b: list[int], c: int) -> int:
    formats = (format_of(shape.kinds[0], arch), format_of(shape.kinds[1], arch))
    small = WIDTHS[shape.kinds[0]] == 8
    if shape.kinds[0] == "xf32":
        a, b = ([v & ~0x1FFF for v in row] for row in (a, b))
    if arch == "gfx90a":
        step = 4 if shape.kinds[0] == "f16" or "_1k" in shape.mnemonic else 2
        c = 0 if c & 0x7F800000 == 0 else c
    else:
        step = 16 if small else 4 if shape.kinds[0] == "xf32" else 8
    for k in range(0, len(a), step):
        x, y = a[k : k + step], b[k : k + step]
        c = plus(c, tree(x, y, formats[0])) if arch == "gfx90a" else fused(x, y, formats, nan_bits(c), small)
    return c


def nan_bits(bits: int) -> int:
    return 0x7FC00000 if bits == NAN32 else bits


# ---- operands: a kind of numbers for each row, so that all meet all


def some_bits(rng: random.Random, fmt: Format, kind: str) -> int:
    """Bits of a random number: near 1, of all exponents, often 0 or denormal, the greatest, or no number."""
    sign = rng.choice((0, fmt.sign))
    mantissa = rng.getrandbits(fmt.mantissas)
    if kind == "near":
        bits = (fmt.bias + rng.randint(-2, 2)) << fmt.mantissas | mantissa
    elif kind == "plain":  # so that all cancels
        bits = (fmt.bias + rng.randint(-1, 1)) << fmt.mantissas
    elif kind == "tiny":
        bits = rng.choice((0, mantissa, 1 << fmt.mantissas | mantissa))
    elif kind == "great":
        bits = fmt.largest - rng.getrandbits(2)
    elif kind == "odd":
        no_number = (
            fmt.infinity | rng.choice((0, 1 << fmt.mantissas - 1)) if fmt.top == "ieee" else fmt.sign - 1
        )
        return no_number | sign if rng.random() < 0.06 else rng.choice((0, fmt.bias << fmt.mantissas | sign))
    else:
        bits = rng.randrange(fmt.largest + 1)
    if fmt.top == "fnuz" and bits == 0:
        return 0
    return bits | sign


A_KINDS = ("near", "wide", "tiny", "great", "odd", "wide", "plain", "near")
B_KINDS = ("near", "wide", "near", "tiny", "plain", "great", "near", "wide", "odd")
C_KINDS = ("near", "wide", "plain", "tiny", "zero", "wide", "odd")


def some_rows(rng: random.Random, fmt: Format, kinds: Sequence[str], rows: int, depth: int) -> Matrix:
    return [[some_bits(rng, fmt, kinds[i % len(kinds)]) for _ in range(depth)] for i in range(rows)]


def add_sums(t: Batch, shape: Shape) -> None:
    rng, arch, depth = random.Random(f"sums {shape.mnemonic}"), t.arch, shape.depth
    kept = depth // 2 if shape.sparse else depth  # values of a row of A
    formats = [format_of(kind, arch) for kind in shape.kinds]
    a = [some_rows(rng, formats[0], A_KINDS, shape.size, kept) for _ in range(shape.blocks)]
    b = [some_rows(rng, formats[1], B_KINDS, shape.size, depth) for _ in range(shape.blocks)]
    c = [
        [
            [
                0 if kind == "zero" else some_bits(rng, F32, kind)
                for kind in rng.choices(C_KINDS, k=shape.size)
            ]
            for _ in range(shape.size)
        ]
        for _ in range(shape.blocks)
    ]
    columns = {}
    for name, blocks, count, kind in (("a", a, kept, shape.kinds[0]), ("b", b, depth, shape.kinds[1])):
        each = count * shape.size * shape.blocks // 64
        runs = 2 if shape.sparse and shape.bits[0] == 128 else 1  # of neighbours in k; "CDNA4", 7.5.1.3
        inside = [e // (each // runs) * (count // runs) + e % (each // runs) for e in range(each)]
        columns[name] = [
            join([blocks[n][i][k // runs + e] for e in inside], WIDTHS[kind])
            for n, i, k in shape.places(count)
        ]
    places = [[shape.of_result(lane, r) for r in range(shape.bits[2] // 32)] for lane in range(64)]
    meets = [p // 2 * 4 + 2 * (p % 2) for p in range(kept)] if shape.sparse else list(range(depth))
    some = sample(rng.sample(sorted({place for lane in places for place in lane}), 256), 64)
    sums = {
        (n, i, j): entry(arch, shape, a[n][i], [b[n][j][k] for k in meets], c[n][i][j]) for n, i, j in some
    }
    old = [join([c[n][i][j] for n, i, j in lane], 32) for lane in places]
    bits = dict(zip("abd", shape.bits, strict=True))
    if shape.sparse:
        columns |= {"c": [0x88888888], "d": old}
    else:
        columns["c"] = old
        bits["c"] = shape.bits[2]

    def right(lane: int, value: int) -> bool:
        got = [value >> 32 * r & 0xFFFFFFFF for r in range(len(places[lane]))]
        want = [sums.get(place) for place in places[lane]]
        return all(
            w in (g, None) or (w == NAN32 and g & 0x7FC00000 == 0x7FC00000)
            for g, w in zip(got, want, strict=True)
        )

    t.add(f"{shape.mnemonic} {{d}}, {{a}}, {{b}}, {{c}}", right, bits=bits, **columns)


@pytest.mark.parametrize("arch", ARCHS)
def test_sums(arch: str, library: Path, tmp_path: Path) -> None:
    t = Batch(arch)
    for sparse in (False, True):
        for shape in shapes(arch, sparse=sparse):
            if shape.result == "f32" and shape.kinds[0] != "f32":
                add_sums(t, shape)
    t.run(library, tmp_path)


def test_the_description() -> None:
    """Sums whose results are clear without the model."""
    one, half = F16.round(Fraction(1)), F16.round(Fraction(1, 2))
    formats = (F16, F16)
    # Products lose what lies 25 bits and more behind the greatest, towards zero, before they are added.
    tiny = F16.round(TWO**-13)
    big = F16.round(TWO**12)
    assert float_of(fused([big, tiny, big | 0x8000], [one, one, one], formats, 0, False)) == 0
    assert float_of(fused([one, half, one | 0x8000], [one, one, one], formats, 0, False)) == 0.5
    # A negative sum so far that is too small becomes a bit, of 16-bit products; of 8 bits it does not count.
    least = F32.round(-(TWO**-60))
    assert F32.value(fused([half], [one], formats, least, False)) == Fraction(1, 2) - TWO**-25
    one8 = FP8_FNUZ.round(Fraction(1))
    assert fused([one8] * 2, [one8] * 2, (FP8_FNUZ, FP8_FNUZ), least, True) == F32.round(Fraction(2))
