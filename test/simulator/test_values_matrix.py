# SPDX-License-Identifier: MIT
"""Every matrix instruction, dense and sparse, against products in integers.

Where entries lie follows AMD's matrix instruction calculator
(github.com/ROCm/amd_matrix_instruction_calculator), whose formulas these are: of A and B a lane holds
neighbours in k; lanes go over rows, blocks, then k. CBSZ, ABID and BLGP are those of "AMD Instinct MI300
Instruction Set Architecture", chapter "Matrix Arithmetic Instructions". The calculator knows no gfx950:
its shapes are taken to go on as those before.
"""

from __future__ import annotations

import functools
import math
import operator
import random
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
import toolchain
from conftest import SIMULATOR
from generate_tables import ARCHS, read_tables
from sim import SimError
from values import (
    BF6,
    BF8,
    BF8_FNUZ,
    BF16,
    DEFAULT_MODE,
    F16,
    F32,
    F64,
    FP4,
    FP6,
    FP8,
    FP8_FNUZ,
    Batch,
    f16,
    f32,
)

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

NAME = re.compile(r"v_s?mf\w+?_(f32|i32|f64)_(\d+)x\d+x(\d+)(?:_\d+b)?_?(\w+?)(?:_1k)?$")
Matrix = list[list[int]]


@dataclass(frozen=True)
class Shape:
    """What an instruction multiplies: of `blocks` pairs of matrices the products."""

    mnemonic: str
    size: int
    depth: int
    blocks: int
    kinds: tuple[str, str]  # types of A and B
    result: str
    bits: tuple[int, int, int]  # of a lane's A, B and D
    sparse: bool

    def places(self, depth: int) -> list[tuple[int, int, int]]:
        """For each lane the block, the row (of B: the column) and the first k of its elements."""
        spread = self.size * self.blocks
        each = depth * spread // 64
        return [(lane % spread // self.size, lane % self.size, lane // spread * each) for lane in range(64)]

    def of_result(self, lane: int, register: int) -> tuple[int, int, int]:
        """Block, row and column of an entry of C and D."""
        size, tall = self.size, 1 if self.result == "f64" else 4
        side = 64 // size  # strips of so many rows lie side by side in a register
        in_register = max(1, 64 * tall // (size * size))  # blocks that share it
        strip, row = register // tall, register % tall
        if in_register > 1:
            return lane // size % in_register, tall * (lane // (size * in_register)) + row, lane % size
        per_block = size // (tall * side)
        return strip // per_block, tall * (side * (strip % per_block) + lane // size) + row, lane % size


def shapes(arch: str, *, sparse: bool) -> list[Shape]:
    found = []
    for row in read_tables(SIMULATOR / "instructions"):
        prefix = "v_smfmac_" if sparse else "v_mfma_"
        if (
            not row.mnemonic.startswith(prefix)
            or row.opcodes[ARCHS.index(arch)] is None
            or "f8f6f4" in row.mnemonic
        ):
            continue
        match = NAME.match(row.mnemonic)
        assert match is not None, row.mnemonic
        result, size, depth, types = match[1], int(match[2]), int(match[3]), match[4]
        kinds = types.split("_") if "_" in types else [types, types]
        bits = {field.slot: field.bits for field in row.fields}
        blocks = 64 * bits["DST"] // (64 if result == "f64" else 32) // size**2
        widths = (bits["SRC0"], bits["SRC1"], bits["DST"])
        found.append(Shape(row.mnemonic, size, depth, blocks, (kinds[0], kinds[1]), result, widths, sparse))
    return found


@functools.cache
def encode(value: int, kind: str, arch: str) -> int:
    formats = {"f32": F32, "xf32": F32, "f16": F16, "bf16": BF16, "f64": F64}
    formats |= {"fp8": FP8, "bf8": BF8} if arch == "gfx950" else {"fp8": FP8_FNUZ, "bf8": BF8_FNUZ}
    return value & 255 if kind == "i8" else formats[kind].round(Fraction(value)) if value else 0


WIDTHS = {"f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "f64": 64, "fp8": 8, "bf8": 8, "i8": 8, "i32": 32}


def join(parts: list[int], width: int) -> int:
    return sum(part << width * i for i, part in enumerate(parts))


def lanes_of(shape: Shape, blocks: list[Matrix], which: int, depth: int, arch: str) -> list[int]:
    """A (rows by k) or B (columns by k) as the lanes hold it."""
    kind, each = shape.kinds[which], depth * shape.size * shape.blocks // 64
    places = shape.places(depth)
    return [
        join([encode(blocks[b][i][k + e], kind, arch) for e in range(each)], WIDTHS[kind])
        for b, i, k in places
    ]


def random_matrices(rng: random.Random, blocks: int, rows: int, columns: int, most: int) -> list[Matrix]:
    return [[[rng.randint(-most, most) for _ in range(columns)] for _ in range(rows)] for _ in range(blocks)]


def from_lanes(shape: Shape, blocks: list[Matrix], lane_map: list[int]) -> list[Matrix]:
    """B with each lane's values taken from the lane that the map names (BLGP)."""
    places, each = shape.places(shape.depth), shape.depth * shape.size * shape.blocks // 64
    moved = [[list(row) for row in block] for block in blocks]
    for lane, (b, i, k) in enumerate(places):
        from_b, from_i, from_k = places[lane_map[lane]]
        for e in range(each):
            moved[b][i][k + e] = blocks[from_b][from_i][from_k + e]
    return moved


def blgp_lane(pattern: int, lane: int) -> int:
    """1, 2: the first or second 32 lanes for all; 3: rotated by 16; 4 to 7: 16 lanes for all."""
    if pattern in (1, 2):
        return 32 * (pattern - 1) + lane % 32
    if pattern == 3:
        return (lane + 16) % 64
    return 16 * (pattern - 4) + lane % 16 if pattern >= 4 else lane


def add_product(
    t: Batch, shape: Shape, modifiers: dict[str, int], *, negate: tuple[int, int, int] = (0, 0, 0)
) -> None:
    arch, rng = t.arch, random.Random(f"{shape.mnemonic} {modifiers}")
    a = random_matrices(rng, shape.blocks, shape.size, shape.depth, 7)
    b = random_matrices(rng, shape.blocks, shape.size, shape.depth, 7)  # columns by k
    c = random_matrices(rng, shape.blocks, shape.size, shape.size, 99)
    columns = {"a": lanes_of(shape, a, 0, shape.depth, arch), "b": lanes_of(shape, b, 1, shape.depth, arch)}
    group = (1 << modifiers.get("cbsz", 0)) - 1
    of_block = [n & ~group | modifiers.get("abid", 0) for n in range(shape.blocks)]
    b = from_lanes(shape, b, [blgp_lane(modifiers.get("blgp", 0), lane) for lane in range(64)])
    sign_a, sign_b, sign_c = ((-1) ** v for v in negate)

    def entry(n: int, i: int, j: int) -> int:
        products = sum(x * y for x, y in zip(a[of_block[n]][i], b[n][j], strict=True))
        return sign_a * sign_b * products + sign_c * c[n][i][j]

    width = 64 if shape.result == "f64" else 32
    registers = shape.bits[2] // width
    places = [[shape.of_result(lane, r) for r in range(registers)] for lane in range(64)]

    def number(value: int) -> int:
        return value & 0xFFFFFFFF if shape.result == "i32" else encode(value, shape.result, arch)

    columns["c"] = [join([number(c[n][i][j]) for n, i, j in lane], width) for lane in places]
    results = [join([number(entry(n, i, j)) for n, i, j in lane], width) for lane in places]
    extra = "".join(f" {name}:{value}" for name, value in modifiers.items())
    extra += f" neg:[{','.join(map(str, negate))}]" if any(negate) else ""
    bits = dict(zip("abd", shape.bits, strict=True)) | {"c": shape.bits[2]}
    # EXEC does not count.
    before = "s_mov_b64 exec, 0x5a" if modifiers else ""
    t.add(f"{shape.mnemonic} {{d}}, {{a}}, {{b}}, {{c}}{extra}", results, bits=bits, before=before, **columns)


@pytest.mark.parametrize("arch", ARCHS)
def test_dense(arch: str, library: Path, tmp_path: Path) -> None:
    t = Batch(arch)
    for shape in shapes(arch, sparse=False):
        add_product(t, shape, {})
        double, few = shape.result == "f64", shape.kinds[0] in ("f32", "f16", "bf16")
        if shape.blocks > 1 and not double:
            cbsz = shape.blocks.bit_length() - 1
            add_product(t, shape, {"cbsz": cbsz, "abid": shape.blocks - 1})
            add_product(t, shape, {"cbsz": 1, "abid": 1})
        if few and shape.bits[0] <= 64 and shape.size != 4:
            for blgp in range(1, 8):
                add_product(t, shape, {"blgp": blgp})
        if double and arch != "gfx90a":  # BLGP negates A, B and C
            for negate in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)):
                add_product(t, shape, {}, negate=negate)
    t.run(library, tmp_path)


@pytest.mark.parametrize("arch", ARCHS[1:])
def test_sparse(arch: str, library: Path, tmp_path: Path) -> None:
    """V_SMFMAC: of four neighbours in k A holds two, and two bits of the index say for each which.

    The index of a lane has two bits for each value of A. With CBSZ 0, ABID says which of the register's
    sets it is, else it is the first. D is added to.
    """
    t = Batch(arch)
    for shape in shapes(arch, sparse=True):
        each = shape.depth // 2 * shape.size // 64  # values of A in a lane
        sets = 32 // (2 * each)
        for cbsz, abid in [(0, n) for n in range(sets)] + ([(1, 1)] if sets > 1 else []):
            add_sparse(t, shape, cbsz, abid, each)
    # What the index leaves out is not multiplied: not even by NaN.
    half = next(shape for shape in shapes(arch, sparse=True) if shape.mnemonic == "v_smfmac_f32_16x16x32_f16")
    b = [join([f16(2.0) if k % 4 < 2 else f16(math.nan) for k in range(8)], 16) for _ in range(64)]
    bits = {"a": 64, "b": 128, "d": 128}
    expected = [join([f32(32.0 + 5.0)] * 4, 32)]
    t.add(
        f"{half.mnemonic} {{d}}, {{a}}, {{b}}, {{c}}",
        expected,
        bits=bits,
        a=[join([f16(1.0)] * 4, 16)],
        b=b,
        c=[0b01000100],
        d=[join([f32(5.0)] * 4, 32)],
    )
    t.run(library, tmp_path)


def add_sparse(t: Batch, shape: Shape, cbsz: int, abid: int, each: int) -> None:
    arch, rng, half = t.arch, random.Random(f"{shape.mnemonic} {cbsz} {abid}"), shape.depth // 2
    a = random_matrices(rng, 1, shape.size, half, 7)
    b = random_matrices(rng, 1, shape.size, shape.depth, 7)
    d = random_matrices(rng, 1, shape.size, shape.size, 99)
    pairs = [[rng.sample(range(4), 2) for _ in range(half // 2)] for _ in range(shape.size)]
    which = [[pairs[i][e // 2][e % 2] for e in range(half)] for i in range(shape.size)]
    first = 2 * each * abid if cbsz == 0 else 0
    index = []
    for _, i, k in shape.places(half):
        mine = join([which[i][k + e] for e in range(each)], 2) << first
        others = rng.getrandbits(32) & ~((1 << 2 * each) - 1 << first)
        index.append(mine | others)

    def entry(i: int, j: int) -> int:
        return d[0][i][j] + sum(a[0][i][e] * b[0][j][e // 2 * 4 + which[i][e]] for e in range(half))

    def number(value: int) -> int:
        return value & 0xFFFFFFFF if shape.result == "i32" else encode(value, shape.result, arch)

    registers = shape.bits[2] // 32
    places = [[shape.of_result(lane, r) for r in range(registers)] for lane in range(64)]
    columns = {
        "a": lanes_of(shape, a, 0, half, arch),
        "b": lanes_of(shape, b, 1, shape.depth, arch),
        "c": index,
        "d": [join([number(d[0][i][j]) for _, i, j in lane], 32) for lane in places],
    }
    results = [join([number(entry(i, j)) for _, i, j in lane], 32) for lane in places]
    extra = (f" cbsz:{cbsz}" if cbsz else "") + (f" abid:{abid}" if abid else "")
    bits = dict(zip("abd", shape.bits, strict=True))
    t.add(f"{shape.mnemonic} {{d}}, {{a}}, {{b}}, {{c}}{extra}", results, bits=bits, **columns)


@pytest.mark.parametrize("arch", ARCHS)
def test_constants_and_rounding(arch: str, library: Path, tmp_path: Path) -> None:
    """C may be an inline constant. Sums round to the nearest whatever MODE says."""
    t = Batch(arch)
    name = "v_mfma_f32_32x32x1f32" if arch == "gfx90a" else "v_mfma_f32_32x32x1_2b_f32"
    bits = {"d": 1024}
    t.add(
        f"{name} {{d}}, {{a}}, {{b}}, 1.0", [join([f32(7.0)] * 32, 32)], bits=bits, a=[f32(2.0)], b=[f32(3.0)]
    )
    t.add(
        f"{name} {{d}}, {{a}}, {{b}}, 0", [join([f32(6.0)] * 32, 32)], bits=bits, a=[f32(2.0)], b=[f32(3.0)]
    )
    above = [f32(1.5 * 2.0**-24)]
    for mode in (DEFAULT_MODE, DEFAULT_MODE | 3):
        result = [join([f32(1.0 + 2.0**-23)] * 32, 32)]
        t.add(f"{name} {{d}}, {{a}}, {{b}}, 1.0", result, bits=bits, mode=mode, a=above, b=[f32(1.0)])
    # MODE says whether denormals of f32 matrices A and B are flushed; those of C and D are kept ("CDNA3",
    # section "Floating-point handling details and formats"; the table of MFMA in "MI200").
    text = f"{name} {{d}}, {{a}}, {{b}}, {{c}}"
    for mode, result in ((DEFAULT_MODE, 0x301), (DEFAULT_MODE & ~0xF0, 1), (DEFAULT_MODE & ~0x10, 1)):
        columns = {"a": [0x100], "b": [f32(3.0)], "c": [join([1] * 32, 32)]}
        t.add(text, [join([result] * 32, 32)], bits={"c": 1024, "d": 1024}, mode=mode, **columns)
    # Those of f16 too, but on MI200, which flushes them in and out of matrices of f16 and bf16.
    name = "v_mfma_f32_4x4x4f16" if arch == "gfx90a" else "v_mfma_f32_4x4x4_16b_f16"
    kept = 0 if arch == "gfx90a" else f32(2.0**-15)
    bits = {"a": 64, "b": 64, "d": 128}
    t.add(f"{name} {{d}}, {{a}}, {{b}}, 0", [join([kept] * 4, 32)], bits=bits, a=[0x0200], b=[f16(1.0)])
    t.run(library, tmp_path)


def test_xf32_cuts(library: Path, tmp_path: Path) -> None:
    """A and B lose 13 bits: "mantissa is truncated to 10 bits", says "CDNA3" of V_MFMA_F32_16X16X8_XF32.

    So does hardware (microsoft/MMA-Sim, mmasim/simulator/amd.py, truncate_to_tf32).
    """
    t = Batch("gfx942")
    just_below, sign = f32(1.0 + 2.0**-10) - 1, 1 << 31
    bits = {"a": 64, "b": 64, "d": 128}
    text = "v_mfma_f32_16x16x8_xf32 {d}, {a}, {b}, 0"
    t.add(
        text,
        [join([f32(-8.0)] * 4, 32)],
        bits=bits,
        a=[join([just_below] * 2, 32)],
        b=[join([f32(1.0) | sign] * 2, 32)],
    )
    t.run(library, tmp_path)


def test_halves_of_wide_sparse(library: Path, tmp_path: Path) -> None:
    """Of B's items the second eight are k 32 and up: "CDNA4", section 7.5.1.3. So they are added later.

    They are steps of their own (test_matrix_sums.py): 2^24 and then 1, twice, lose what together they keep.
    """
    t = Batch("gfx950")
    a = [0] * 16 + [0] * 32 + [f16(4096.0)] * 16
    b = list(a)
    for lane in range(16):
        a[lane] = a[lane + 32] = join([0] * 4 + [f16(1.0)], 16)
        b[lane] = b[lane + 32] = join([0] * 8 + [f16(1.0)], 16)
        a[lane + 48], b[lane + 48] = f16(4096.0), f16(4096.0)
    expected = [join([f32(2.0**24)] * 4, 32)]  # k 24, then 32 and 48; in another order they would count
    bits = {"a": 128, "b": 256, "d": 128}
    text = "v_smfmac_f32_16x16x64_f16 {d}, {a}, {b}, {c}"
    t.add(text, expected, bits=bits, a=a, b=b, c=[0x4444], d=[0])
    t.run(library, tmp_path)


FP16_OVFL = 1 << 23
LARGEST, INFINITY = 0x7F7FFFFF, 0x7F800000


@pytest.mark.parametrize("arch", ARCHS)
def test_too_large(arch: str, library: Path, tmp_path: Path) -> None:
    """With FP16_OVFL, sums that are too large become the greatest; infinite operands stay infinite.

    "CDNA3", "Rules for the MFMA instructions", row "Clamp"; "MI200" knows nothing of it.
    """
    t = Batch(arch)
    clamps = arch != "gfx90a"
    name = "v_mfma_f32_4x4x1f32" if arch == "gfx90a" else "v_mfma_f32_4x4x1_16b_f32"
    for sign in (0, 1 << 31):
        for mode in (DEFAULT_MODE, DEFAULT_MODE | FP16_OVFL):
            stays = LARGEST if clamps and mode != DEFAULT_MODE else INFINITY
            infinite = INFINITY | sign
            for a, c, d in ((f32(2.0**100), 0, stays), (INFINITY, 0, INFINITY), (0, infinite, INFINITY)):
                columns = {"a": [a | sign], "b": [f32(2.0**100)], "c": [join([c] * 4, 32)]}
                text = f"{name} {{d}}, {{a}}, {{b}}, {{c}}"
                bits = {"c": 128, "d": 128}
                t.add(text, [join([d | sign] * 4, 32)], bits=bits, mode=mode, **columns)
    name = "v_mfma_i32_4x4x4i8" if arch == "gfx90a" else "v_mfma_i32_4x4x4_16b_i8"
    for a, c, wrapped, limit in ((1, 2**31 - 2, 2**31 + 2, 2**31 - 1), (0xFF, 2**31, 2**31 - 4, 2**31)):
        for mode in (DEFAULT_MODE, DEFAULT_MODE | FP16_OVFL):
            d = limit if clamps and mode != DEFAULT_MODE else wrapped
            columns = {"a": [join([a] * 4, 8)], "b": [0x01010101], "c": [join([c] * 4, 32)]}
            text = f"{name} {{d}}, {{a}}, {{b}}, {{c}}"
            t.add(text, [join([d] * 4, 32)], bits={"c": 128, "d": 128}, mode=mode, **columns)
    if clamps:
        large = f32(2.0**100) >> 16
        for mode, d in ((DEFAULT_MODE, INFINITY), (DEFAULT_MODE | FP16_OVFL, LARGEST)):
            columns = {"a": [join([large] * 4, 16)], "b": [join([large] * 8, 16)], "c": [0x44], "d": [0]}
            text = "v_smfmac_f32_16x16x32_bf16 {d}, {a}, {b}, {c}"
            bits = {"a": 64, "b": 128, "d": 128}
            t.add(text, [join([d] * 4, 32)], bits=bits, mode=mode, **columns)
    t.run(library, tmp_path)


SMALL = (FP8, BF8, FP6, BF6, FP4)  # CBSZ's and BLGP's codes of formats

# Of F8F6F4's A and B, by the rows and by whether values are of 8 bits: for each group of as many lanes as
# there are rows, where in k the runs begin that a lane holds one after the other. Lanes of group n bring the
# scales of k = 32 n to 32 n + 31, whichever lanes hold those values.
#
# "AMD Instinct CDNA4 Instruction Set Architecture", 7.1.5.1 (values) and 7.2.1 (scales). The register maps in
# the comments of CK's test/mx_mfma_op/mx_mfma_op.hpp have both, of fp8 and fp4; its
# include/ck_tile/core/arch/mma/scale/mfma/scale_gfx9.hpp says that 6 bits go as 4 do, and that each operand
# goes by its own format. Triton's test/TritonGPU/amd/accelerate-amd-matmul-mfma-gfx950.mlir and AITER's
# mixed_moe_gemm_2stage ("col_base + 64") have fp8 in two runs likewise.
RUNS = {
    (16, True): ((0, 64), (16, 80), (32, 96), (48, 112)),
    (16, False): ((0,), (32,), (64,), (96,)),
    (32, True): ((0, 32), (16, 48)),
    (32, False): ((0,), (32,)),
}


def in_lane(size: int, width: int, lane: int) -> list[int]:
    """The k of a lane's 32 values."""
    runs = RUNS[size, width == 8][lane // size]
    return [first + e for first in runs for e in range(32 // len(runs))]


def add_scaled(t: Batch, size: int, codes: tuple[int, int], bytes_of: tuple[int, int] | None) -> None:
    """V_MFMA_F32_*_F8F6F4, and V_MFMA_SCALE_* with the bytes of its scales that are taken."""
    rng, depth = random.Random(f"{size} {codes} {bytes_of}"), 2048 // size
    name = f"{size}x{size}x{depth}_f8f6f4"
    shape = Shape(name, size, depth, 1, ("", ""), "f32", (0, 0, 32 * size * size // 64), False)
    formats = [SMALL[code] for code in codes]
    matrices = []
    for fmt in formats:  # numbers between 1/4 and 4, so that all sums are exact
        near = [
            bits
            for bits in range(2 * fmt.sign)
            if bits % fmt.sign <= fmt.largest and Fraction(1, 4) <= abs(fmt.value(bits)) <= 4
        ]
        matrices.append([[rng.choice(near) for _ in range(depth)] for _ in range(size)])
    c = [[rng.randint(-9, 9) for _ in range(size)] for _ in range(size)]
    scales = [[rng.getrandbits(32) & 0x03030303 | 0x7C7C7C7C for _ in range(64)] for _ in range(2)]
    columns: dict[str, list[int]] = {}
    values: list[list[list[float]]] = []  # doubles hold all sums
    for which, (fmt, matrix) in enumerate(zip(formats, matrices, strict=True)):
        width = fmt.sign.bit_length()
        columns["ab"[which]] = [
            join([matrix[lane % size][k] for k in in_lane(size, width, lane)], width) for lane in range(64)
        ]
        value = [[float(fmt.value(bits)) for bits in row] for row in matrix]
        for lane in range(64):
            row, k = value[lane % size], lane // size * 32
            byte = scales[which][lane] >> 8 * bytes_of[which] & 255 if bytes_of else 127
            row[k : k + 32] = [v * 2.0 ** (byte - 127) for v in row[k : k + 32]]
        values.append(value)
    entries = [[shape.of_result(lane, r) for r in range(shape.bits[2] // 32)] for lane in range(64)]

    def entry(i: int, j: int) -> int:
        return f32(c[i][j] + sum(map(operator.mul, values[0][i], values[1][j])))

    columns["c"] = [join([f32(float(c[i][j])) for _, i, j in lane], 32) for lane in entries]
    results = [join([entry(i, j) for _, i, j in lane], 32) for lane in entries]
    bits = {k: 32 * fmt.sign.bit_length() for k, fmt in zip("ab", formats, strict=True)} | dict.fromkeys(
        "cd", shape.bits[2]
    )
    modifiers = f" cbsz:{codes[0]} blgp:{codes[1]}"
    if bytes_of is None:
        t.add(f"v_mfma_f32_{name} {{d}}, {{a}}, {{b}}, {{c}}{modifiers}", results, bits=bits, **columns)
        return
    low, high = (f"[{bytes_of[0] >> n & 1},{bytes_of[1] >> n & 1},0]" for n in (0, 1))
    text = f"v_mfma_scale_f32_{name} {{d}}, {{a}}, {{b}}, {{c}}, {{e}}, {{f}} op_sel:{low} op_sel_hi:{high}"
    t.add(text + modifiers, results, bits=bits, e=scales[0], f=scales[1], **columns)


def test_8_6_and_4_bits(library: Path, tmp_path: Path) -> None:
    """Formats of A and B by CBSZ and BLGP; a scale is an exponent for 32 values."""
    t = Batch("gfx950")
    for size in (16, 32):
        for codes in [(a, b) for a in range(5) for b in range(5)]:
            plain = (codes[0] + codes[1] + size // 16) % 2
            add_scaled(t, size, codes, None if plain else ((codes[0] + codes[1]) % 4, codes[1] % 4))
    t.run(library, tmp_path)


def test_blocks_that_are_not_there(library: Path, tmp_path: Path) -> None:
    t = Batch("gfx942")
    text = "v_mfma_f32_32x32x8_f16 {d}, {a}, {b}, 0 cbsz:1 abid:1"
    t.add(text, [0], bits={"a": 64, "b": 64, "d": 512}, a=[0], b=[0])
    with pytest.raises(SimError, match="cbsz:1 where there are 1 blocks"):
        t.run(library, tmp_path)
