# SPDX-License-Identifier: MIT
"""Matrix instructions against products of small matrices, in exact arithmetic: entries are small integers.

Where a lane's values stand in A, B, C and D follows AMD's matrix instruction calculator: lanes go over
rows (columns of B), then blocks, then groups of k; D has four rows side by side in registers, of doubles one.
"""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path

import pytest
import toolchain
from sim import ARCHS, Sim, pack
from test_values_matrix import in_lane

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

SOURCE = Path(__file__).parent / "programs" / "matrix.c"
NAME = re.compile(r"(f32|i32|f64)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_(\w+)")
BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1, "f64": 8, "xf32": 4, "fp8": 1, "bf8": 1}


def kernels(arch: str) -> list[str]:
    """The kernels that matrix.c has for an architecture, from its text."""
    found, taken = [], [True]
    for line in SOURCE.read_text().splitlines():
        if line.startswith(("#if", "#elif")):
            taken = [*taken[: (-1 if line.startswith("#elif") else None)], f"__{arch}__" in line]
        elif line.startswith("#else"):
            taken[-1] = not taken[-1]
        elif line.startswith("#endif"):
            taken.pop()
        elif line.startswith("MATRIX(") and all(taken):
            found.append(line[len("MATRIX(") :].split(",")[0])
    return found


def encode(value: int, kind: str, arch: str) -> bytes:
    """A small integer in a format."""
    if kind in ("f32", "xf32"):
        return struct.pack("<f", value)
    if kind == "f64":
        return struct.pack("<d", value)
    if kind == "f16":
        return struct.pack("<e", value)
    if kind == "bf16":
        return struct.pack("<f", value)[2:]
    if kind == "i8":
        return struct.pack("<b", value)
    mantissa, bias = (3, 7) if kind == "fp8" else (2, 15)
    bias += arch != "gfx950"  # FNUZ
    if value == 0:
        return b"\0"
    exponent = abs(value).bit_length() - 1
    fraction = (abs(value) << mantissa >> exponent) & ((1 << mantissa) - 1)
    return bytes([(value < 0) << 7 | (exponent + bias) << mantissa | fraction])


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("sanitize", [False, True], ids=["plain", "sanitized"])
def test_products(sanitize: bool, arch: str, library: Path, tmp_path: Path) -> None:
    image = toolchain.build_device(toolchain.compilers()[0], SOURCE, arch, ["-O2"], tmp_path / "matrix.co")
    with Sim(library, arch, sanitize=sanitize) as sim:
        module = sim.load(image)
        names = kernels(arch)
        assert len(names) >= 27
        for name in names:
            _check(sim, module, name, arch)


def _check(sim: Sim, module: object, name: str, arch: str) -> None:
    match = NAME.fullmatch(name)
    assert match is not None
    result, size, depth, blocks = match[1], int(match[2]), int(match[4]), int(match[5] or 1)
    kind_a, kind_b = match[6].split("_") if "_" in match[6] else (match[6], match[6])
    r = random.Random(name)
    a = [[[r.randint(-7, 7) for _ in range(depth)] for _ in range(size)] for _ in range(blocks)]
    b = [[[r.randint(-7, 7) for _ in range(size)] for _ in range(depth)] for _ in range(blocks)]
    c = [[[r.randint(-99, 99) for _ in range(size)] for _ in range(size)] for _ in range(blocks)]
    each, spread = size * depth * blocks // 64, size * blocks  # values of a lane; lanes of a group of k
    at = [(lane % size, lane // size % blocks, lane // spread * each) for lane in range(64)]
    image_a = b"".join(encode(a[n][i][k + e], kind_a, arch) for i, n, k in at for e in range(each))
    image_b = b"".join(encode(b[n][k + e][j], kind_b, arch) for j, n, k in at for e in range(each))

    def place(lane: int, register: int) -> tuple[int, int, int]:
        """Block, row and column of a lane's register of C and D."""
        if result == "f64":
            return lane // size % blocks, 4 * register + lane // 16, lane % size
        if size == 4:
            return lane // 4, register, lane % 4
        rows = 4 * (64 // size)  # that four registers of all lanes hold
        block, register = divmod(register, size * size // 64)
        return block, register // 4 * rows + lane // size * 4 + register % 4, lane % size

    letter = {"f32": "f", "i32": "i", "f64": "d"}[result]
    registers = size * size * blocks // 64
    places = [place(lane, register) for lane in range(64) for register in range(registers)]
    image_c = struct.pack(f"<{len(places)}{letter}", *(c[n][i][j] for n, i, j in places))
    out = sim.malloc(len(image_c))
    args = pack(sim.upload(image_a), sim.upload(image_b), sim.upload(image_c), out, layout="PPPP")
    sim.launch(module, name, (64, 1, 1), (64, 1, 1), args)  # type: ignore[arg-type]
    got = struct.unpack(f"<{len(places)}{letter}", sim.download(out, len(image_c)))
    for (n, i, j), value in zip(places, got, strict=True):
        expected = c[n][i][j] + sum(a[n][i][k] * b[n][k][j] for k in range(depth))
        assert value == expected, f"{name}: block {n}, row {i}, column {j}"


# e4m3, e5m2, e2m3, e3m2, e2m1: bits of exponent and mantissa, bias
SMALL = {0: (4, 3, 7), 1: (5, 2, 15), 2: (2, 3, 1), 3: (3, 2, 3), 4: (2, 1, 1)}


def small_value(code: int, bits: int) -> float:
    exponents, mantissas, bias = SMALL[code]
    sign = -1 if bits >> (exponents + mantissas) & 1 else 1
    exponent, mantissa = bits >> mantissas & ((1 << exponents) - 1), bits & ((1 << mantissas) - 1)
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissas)
    return sign * (mantissa + (1 << mantissas)) * 2.0 ** (exponent - bias - mantissas)


@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("formats", [(0, 0), (1, 0), (2, 3), (4, 4), (4, 0)], ids=str)
def test_scaled(size: int, formats: tuple[int, int], library: Path, tmp_path: Path) -> None:
    """gfx950's scaled instructions; values and scales so small in number that sums are exact."""
    source = tmp_path / "scaled.c"
    depth = 2048 // size
    source.write_text(
        f"""#include "{SOURCE.parent / "device.h"}"
        typedef i32 i32x8 __attribute__((ext_vector_type(8)));
        typedef f32 f32xn __attribute__((ext_vector_type({size * size // 64})));
        KERNEL scaled(GLOBAL const i32x8 *a, GLOBAL const i32x8 *b, GLOBAL const f32xn *c,
                      GLOBAL const i32 *scale_a, GLOBAL const i32 *scale_b, GLOBAL f32xn *d) {{
            d[LANE] = __builtin_amdgcn_mfma_scale_f32_{size}x{size}x{depth}_f8f6f4(a[LANE], b[LANE], c[LANE],
                {formats[0]}, {formats[1]}, 2, scale_a[LANE], 1, scale_b[LANE]);
        }}"""
    )
    image = toolchain.build_device(
        toolchain.compilers()[0], source, "gfx950", ["-O2"], tmp_path / "scaled.co"
    )
    r = random.Random(size + 10 * formats[0] + formats[1])
    registers, groups = size * size // 64, 64 // size
    matrices: list[list[list[float]]] = []  # of A rows, of B columns
    images = []
    for code in formats:
        exponents, mantissas, bias = SMALL[code]
        low, high = max(0, bias - 1), min(bias + 1, (1 << exponents) - 1)

        def element() -> int:
            top = r.randint(low, high) << mantissas  # noqa: B023
            return r.getrandbits(1) << (exponents + mantissas) | top | r.getrandbits(mantissas)  # noqa: B023

        lanes = [[element() for _ in range(32)] for _ in range(64)]
        width = 1 + exponents + mantissas
        packed = [sum(v << width * e for e, v in enumerate(lane)) for lane in lanes]
        images.append(b"".join(p.to_bytes(32, "little") for p in packed))
        matrices.append([[0.0] * depth for _ in range(size)])
        for n, lane in enumerate(lanes):
            for k, bits in zip(in_lane(size, width, n), lane, strict=True):
                matrices[-1][n % size][k] = small_value(code, bits)
    scales = [[r.randint(126, 128) for _ in range(64)] for _ in range(2)]
    c = [r.randint(-9, 9) for _ in range(64 * registers)]
    with Sim(library, "gfx950") as sim:
        shifts = (16, 8)
        scale_images = [
            struct.pack("<64I", *(s << shift for s in some))
            for some, shift in zip(scales, shifts, strict=True)
        ]
        out = sim.malloc(4 * len(c))
        inputs = [*images, struct.pack(f"<{len(c)}f", *c), *scale_images]
        args = pack(*(sim.upload(i) for i in inputs), out, layout="PPPPPP")
        sim.launch(sim.load(image), "scaled", (64, 1, 1), (64, 1, 1), args)
        got = struct.unpack(f"<{len(c)}f", sim.download(out, 4 * len(c)))
    for lane in range(64):
        for register in range(registers):
            row, column = register // 4 * 4 * groups + lane // size * 4 + register % 4, lane % size
            expected = float(c[lane * registers + register])
            for g in range(groups):  # the lanes that bring a scale
                scale = 2.0 ** (scales[0][row + size * g] + scales[1][column + size * g] - 254)
                block = range(32 * g, 32 * g + 32)
                expected += scale * sum(matrices[0][row][k] * matrices[1][column][k] for k in block)
            assert got[lane * registers + register] == expected
