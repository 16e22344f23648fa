# SPDX-License-Identifier: MIT
"""Runs single instructions on chosen inputs: many of them in one kernel.

A case is a line of assembly in which {a}, {b}, {c}, {e} and {f} stand for registers that are loaded
before it, {d} for the one that is stored after it (and that held what `d` says before), and {s} for an
SGPR pair that is stored as well. A column holds one number a lane; where there are fewer than 64, the
lanes go over them again and again.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import toolchain
from sim import Sim, pack

LANES = 64
FIRST = {"a": 32, "b": 64, "c": 96, "d": 128, "e": 160, "f": 192}  # VGPRs
MASK = "s[20:21]"
MODE = "hwreg(HW_REG_MODE, 0, 24)"
DEFAULT_MODE = 0x3F0  # rounds to nearest, keeps denormals; DX10_CLAMP and IEEE
Check = Callable[[int, int], bool]  # of a lane and the number it got


@dataclass
class Case:
    """An instruction, what it reads, and what it should write."""

    text: str
    columns: dict[str, Sequence[int]]
    bits: dict[str, int]  # of the registers, where not 32
    expect: Sequence[int] | Check | None
    mask: int | None  # of {s}
    before: str = ""
    mode: int | None = None  # the first 24 bits of hwreg MODE

    def register(self, name: str) -> str:
        """The operand `name` in assembly."""
        count, first = (self.bits.get(name, 32) + 31) // 32, FIRST[name]
        return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"

    def words(self, name: str) -> int:
        return (self.bits.get(name, 32) + 31) // 32


def spread(column: Sequence[int]) -> list[int]:
    """64 lanes of a column."""
    return [column[lane % len(column)] for lane in range(LANES)]


@dataclass
class Batch:
    """Cases of one architecture, run together."""

    arch: str
    cases: list[Case] = field(default_factory=list)

    def add(
        self,
        text: str,
        expect: Sequence[int] | Check | None,
        *,
        mask: int | None = None,
        before: str = "",
        mode: int | None = None,
        bits: dict[str, int] | None = None,
        **columns: Sequence[int],
    ) -> None:
        self.cases.append(Case(text, columns, bits or {}, expect, mask, before, mode))

    def table(
        self,
        text: str,
        rows: Iterable[Sequence[int]],
        *,
        bits: dict[str, int] | None = None,
        before: str = "",
        mode: int | None = None,
    ) -> None:
        """Rows of a, b and c as far as the text has them, d's old value if given, and the result."""
        names = [name for name in "abcd" if f"{{{name}}}" in text and name != "d"]
        columns = list(zip(*rows, strict=True))
        inputs = dict(zip([*names, "d"], columns[:-1], strict=False))
        self.add(text, columns[-1], bits=bits, before=before, mode=mode, **inputs)

    def assembly(self) -> str:
        """The kernel's text. Inputs and results lie one after the other, 64 words each."""
        lines = ["s_load_dwordx4 s[4:7], s[0:1], 0x0", "v_lshlrev_b32 v1, 2, v0", "s_waitcnt lgkmcnt(0)"]
        lines.append(f"s_setreg_imm32_b32 {MODE}, {DEFAULT_MODE:#x}")
        for case in self.cases:
            at = 0
            for name in case.columns:
                for word in range(case.words(name)):
                    lines.append(
                        f"global_load_dword v{FIRST[name] + word}, v1, s[4:5] offset:{256 * (at % 16)}"
                    )
                    at += 1
                    if at % 16 == 0:
                        lines += ["s_add_u32 s4, s4, 4096", "s_addc_u32 s5, s5, 0"]
            if at % 16:
                lines += [f"s_add_u32 s4, s4, {256 * (at % 16)}", "s_addc_u32 s5, s5, 0"]
            registers = {name: case.register(name) for name in FIRST}
            lines += ["s_waitcnt vmcnt(0)"]
            lines += [line.format(**registers, s=MASK) for line in case.before.splitlines()]
            lines += [f"s_setreg_imm32_b32 {MODE}, {case.mode:#x}"] if case.mode is not None else []
            lines += ["s_nop 7"]
            lines += [line.format(**registers, s=MASK) for line in case.text.splitlines()]
            lines += ["s_nop 7", "s_nop 7", "s_nop 7"]
            lines += ["s_mov_b64 exec, -1"]
            lines += [f"s_setreg_imm32_b32 {MODE}, {DEFAULT_MODE:#x}"] if case.mode is not None else []
            outputs = (
                [FIRST["d"] + word for word in range(case.words("d"))] if case.expect is not None else []
            )
            if case.mask is not None:
                lines += ["v_mov_b32 v2, s20", "v_mov_b32 v3, s21"]
                outputs += [2, 3]
            for at, register in enumerate(outputs):
                lines.append(f"global_store_dword v1, v{register}, s[6:7] offset:{256 * (at % 16)}")
                if at % 16 == 15:
                    lines += ["s_add_u32 s6, s6, 4096", "s_addc_u32 s7, s7, 0"]
            if len(outputs) % 16:
                lines += [f"s_add_u32 s6, s6, {256 * (len(outputs) % 16)}", "s_addc_u32 s7, s7, 0"]
        return "\n".join([*lines, "s_endpgm"])

    def run(self, library: Path, folder: Path) -> None:
        """Assembles and runs all cases, and compares."""
        image = toolchain.assemble(
            self.assembly(), self.arch, folder / f"{self.arch}.co", vgprs=512, accum_offset=256, kernarg=16
        )
        inputs = bytearray()
        for case in self.cases:
            for name, column in case.columns.items():
                lanes = spread(column)
                for word in range(case.words(name)):
                    inputs += struct.pack("<64I", *(value >> 32 * word & 0xFFFFFFFF for value in lanes))
        count = sum(
            (case.words("d") if case.expect is not None else 0) + 2 * (case.mask is not None)
            for case in self.cases
        )
        with Sim(library, self.arch) as sim:
            out = sim.malloc(256 * count)
            arguments = pack(sim.upload(bytes(inputs) or b"\0"), out, layout="PP")
            sim.launch(sim.load(image), "kernel", (LANES, 1, 1), (LANES, 1, 1), arguments)
            words = struct.unpack(f"<{64 * count}I", sim.download(out, 256 * count))
        wrong: list[str] = []
        at = 0
        for case in self.cases:
            if case.expect is not None:
                registers = [words[at + 64 * r : at + 64 * r + 64] for r in range(case.words("d"))]
                at += 64 * len(registers)
                got = [
                    sum(register[lane] << 32 * r for r, register in enumerate(registers))
                    for lane in range(LANES)
                ]
                wrong += compare(case, got)
            if case.mask is not None:
                mask = words[at] | words[at + 64] << 32
                at += 128
                if mask != case.mask:
                    wrong.append(f"{case.text}: mask {mask:#018x}, expected {case.mask:#018x}")
        assert not wrong, f"{self.arch}: {len(wrong)} wrong\n" + "\n".join(wrong[:40])


def compare(case: Case, got: list[int]) -> list[str]:
    """Describes the errors in a case's results, a line for each different input."""
    wrong = []
    lanes = {name: spread(column) for name, column in case.columns.items()}
    expect = None if callable(case.expect) else spread(list(case.expect or []))
    seen = set()
    for lane, value in enumerate(got):
        good = (
            case.expect(lane, value)
            if callable(case.expect)
            else expect is not None and matches(value, expect[lane])
        )
        inputs = " ".join(f"{name}={column[lane]:#x}" for name, column in lanes.items())
        if not good and inputs not in seen:
            seen.add(inputs)
            wanted = f", expected {expect[lane]:#x}" if expect else ""
            wrong.append(f"{case.before} {case.text} (lane {lane}, {inputs}): {value:#x}{wanted}")
    return wrong


# Stands in a column of expected numbers for any quiet NaN of 16, 32 or 64 bits.
NAN16, NAN32, NAN64 = -16, -32, -64


def matches(value: int, expected: int) -> bool:
    if expected == NAN16:
        return value & 0x7E00 == 0x7E00 and value < 1 << 16
    if expected == NAN32:
        return value & 0x7FC00000 == 0x7FC00000
    if expected == NAN64:
        return value & 0x7FF8 << 48 == 0x7FF8 << 48
    return value == expected


# ---- numbers


@dataclass(frozen=True)
class Format:
    """A floating-point format; `top` says what codes with the largest exponent mean."""

    exponents: int
    mantissas: int
    bias: int
    top: str = "ieee"  # "ocp": NaN is all ones only; "fnuz": NaN is -0; "finite": neither NaN nor infinity

    @property
    def sign(self) -> int:
        return 1 << (self.exponents + self.mantissas)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponents) - 1) << self.mantissas

    @property
    def largest(self) -> int:
        return {"ieee": self.infinity - 1, "ocp": self.sign - 2}.get(self.top, self.sign - 1)

    def value(self, bits: int) -> Fraction:
        """The number of a code that is neither NaN nor infinity."""
        exponent, mantissa = bits % self.sign >> self.mantissas, bits & ((1 << self.mantissas) - 1)
        if exponent:
            mantissa += 1 << self.mantissas
        magnitude = mantissa * Fraction(2) ** (max(exponent, 1) - self.bias - self.mantissas)
        return -magnitude if bits & self.sign else magnitude

    def is_nan(self, bits: int) -> bool:
        magnitude = bits % self.sign
        if self.top == "ieee":
            return magnitude > self.infinity
        return {"ocp": magnitude == self.sign - 1, "fnuz": bits == self.sign}.get(self.top, False)

    def round(self, number: Fraction, mode: str = "nearest", *, sign: int = 0, saturate: bool = False) -> int:
        """Rounds a number to its bits; `sign` is the sign of a zero."""
        negative = number < 0 or (number == 0 and sign == 1)
        magnitude = abs(number)
        exponent = max(floor_log2(magnitude), 1 - self.bias) if magnitude else 1 - self.bias
        quantum = Fraction(2) ** (exponent - self.mantissas)
        units = magnitude / quantum
        whole = units.numerator // units.denominator
        rest = units - whole
        up = {
            "nearest": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
            "zero": False,
            "up": rest > 0 and not negative,
            "down": rest > 0 and negative,
        }[mode]
        code = ((exponent + self.bias - 1) << self.mantissas) + whole + up
        bits = self.sign if negative else 0
        if code > self.largest:
            towards_zero = mode == "zero" or (mode == "up" and negative) or (mode == "down" and not negative)
            if saturate or towards_zero or self.top == "finite":
                return bits | self.largest
            return {"ieee": bits | self.infinity, "ocp": bits | (self.sign - 1), "fnuz": self.sign}[self.top]
        return 0 if code == 0 and self.top == "fnuz" else bits | code


F16, BF16, F32, F64 = Format(5, 10, 15), Format(8, 7, 127), Format(8, 23, 127), Format(11, 52, 1023)
FP8, BF8 = Format(4, 3, 7, "ocp"), Format(5, 2, 15)
FP8_FNUZ, BF8_FNUZ = Format(4, 3, 8, "fnuz"), Format(5, 2, 16, "fnuz")
FP6, BF6, FP4 = Format(2, 3, 1, "finite"), Format(3, 2, 3, "finite"), Format(2, 1, 1, "finite")


def floor_log2(number: Fraction) -> int:
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if Fraction(2) ** guess <= number else guess - 1


def f16(value: float) -> int:
    return int.from_bytes(struct.pack("<e", value), "little")


def f32(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def f64(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def float_of(bits: int, width: int = 32) -> float:
    return float(struct.unpack({16: "<e", 32: "<f", 64: "<d"}[width], bits.to_bytes(width // 8, "little"))[0])


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def distance_in_ulp(got: int, expected: float, fmt: Format) -> float:
    """How far a result is from a number, in units of the last place of the nearest one in the format."""
    if math.isnan(expected):
        return 0.0 if fmt.is_nan(got) else math.inf
    if math.isinf(expected) or got % fmt.sign == fmt.infinity:
        right = fmt.infinity | (fmt.sign if expected < 0 else 0)
        return 0.0 if got == right and math.isinf(expected) else math.inf
    exact = Fraction(expected)
    exponent = max(floor_log2(abs(exact)), 1 - fmt.bias) if exact else 1 - fmt.bias
    return float(abs(fmt.value(got) - exact) / Fraction(2) ** (exponent - fmt.mantissas))
