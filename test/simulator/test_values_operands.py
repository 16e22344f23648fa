# SPDX-License-Identifier: MIT
"""How vector instructions take operands and leave results, against what AMD's documents say of it.

The documents are "AMD Instinct MI200" and "AMD Instinct MI300 Instruction Set Architecture": chapter
"Vector ALU Operations" with its sections on output modifiers, SDWA and DPP, and the tables of DPP_CTRL,
SDWA_SEL and DST_UNUSED in chapter "Microcode Formats".
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import toolchain
from sim import ARCHS
from values import DEFAULT_MODE, F16, F32, F64, NAN32, Batch, f16, f32, f64, signed

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

M32 = 0xFFFFFFFF
IEEE, DX10_CLAMP = 1 << 9, 1 << 8
LANES = range(64)


# ---- SDWA


def select(word: int, sel: str) -> tuple[int, int]:
    """The part that src0_sel names, and how many bits it has."""
    if sel == "DWORD":
        return word, 32
    width = 8 if sel.startswith("BYTE") else 16
    return word >> width * int(sel[-1]) & ((1 << width) - 1), width


@pytest.mark.parametrize("arch", ARCHS)
def test_sdwa(arch: str, library: Path, tmp_path: Path) -> None:
    t, rng = Batch(arch), random.Random(0)
    sels = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"]
    a, b = ([rng.getrandbits(32) for _ in LANES] for _ in "ab")
    for sel in sels:  # sources: a part, extended by zeros, or by its sign where sext says so
        plain = [select(v, sel)[0] for v in a]
        extended = [signed(*select(v, sel)) & M32 for v in a]
        t.add(f"v_mov_b32_sdwa {{d}}, {{a}} dst_sel:DWORD src0_sel:{sel}", plain, a=a)
        t.add(f"v_mov_b32_sdwa {{d}}, sext({{a}}) dst_sel:DWORD src0_sel:{sel}", extended, a=a)
        sums = [x + select(y, sel)[0] & M32 for x, y in zip(extended, b, strict=True)]
        t.add(
            f"v_add_u32_sdwa {{d}}, sext({{a}}), {{b}} dst_sel:DWORD src0_sel:{sel} src1_sel:{sel}",
            sums,
            a=a,
            b=b,
        )
    old = 0x44332211
    for sel in sels[:-1]:  # the result: to a part; the rest is 0, the part's sign, or as it was
        width = 8 if sel.startswith("BYTE") else 16
        at = width * int(sel[-1])
        mask = (1 << width) - 1 << at
        for unused in ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"):
            results = []
            for v in a:
                part = v << at & mask
                sign = M32 & ~((1 << at + width) - 1) if v >> (width - 1) & 1 else 0
                rest = {"UNUSED_PAD": 0, "UNUSED_SEXT": sign, "UNUSED_PRESERVE": old & ~mask}[unused]
                results.append(part | rest)
            text = f"v_mov_b32_sdwa {{d}}, {{a}} dst_sel:{sel} dst_unused:{unused} src0_sel:DWORD"
            t.add(text, results, a=a, d=[old])
    # Floats: abs and neg act on what was selected, in its own width.
    halves = [f16(1.5) | f16(-2.5) << 16]
    sel = "dst_sel:DWORD dst_unused:UNUSED_PAD"
    t.add(
        f"v_add_f16_sdwa {{d}}, |{{a}}|, -{{a}} {sel} src0_sel:WORD_1 src1_sel:WORD_0", [f16(1.0)], a=halves
    )
    t.add(f"v_cvt_f32_f16_sdwa {{d}}, -{{a}} {sel} src0_sel:WORD_1", [f32(2.5)], a=halves)
    t.add(
        f"v_mul_f32_sdwa {{d}}, {{a}}, {{b}} clamp {sel} src0_sel:DWORD src1_sel:DWORD",
        [f32(1.0)],
        a=[f32(2.0)],
        b=[f32(3.0)],
    )
    # Comparisons write VCC, or an SGPR pair.
    mask = sum(
        (select(x, "BYTE_1")[0] < select(y, "WORD_1")[0]) << i
        for i, (x, y) in enumerate(zip(a, b, strict=True))
    )
    t.add("v_cmp_lt_u32_sdwa {s}, {a}, {b} src0_sel:BYTE_1 src1_sel:WORD_1", None, mask=mask, a=a, b=b)
    t.run(library, tmp_path)


# ---- DPP


def dpp_source(control: str, lane: int) -> int | None:
    """The lane that a lane reads, from DPP_CTRL's table; None is out of bounds."""
    name, _, argument = control.partition(":")
    row, column = lane & ~15, lane & 15
    if name == "quad_perm":
        return lane & ~3 | [int(v) for v in argument.strip("[]").split(",")][lane & 3]
    count = int(argument or 0)
    inside = {
        "row_shl": column + count if column + count < 16 else None,
        "row_shr": column - count if column >= count else None,
        "row_ror": (column - count) % 16,
        "row_mirror": 15 - column,
        "row_half_mirror": (column & 8) | 7 - (column & 7),
        "row_newbcast": count,
    }
    if name in inside:
        place = inside[name]
        return None if place is None else row | place
    whole = {
        "wave_shl": lane + 1 if lane < 63 else None,
        "wave_shr": lane - 1 if lane > 0 else None,
        "wave_rol": (lane + 1) % 64,
        "wave_ror": (lane - 1) % 64,
        "row_bcast": row - 1 if count == 15 and row else (31 if count == 31 and lane >= 32 else None),
    }
    return whole[name]


CONTROLS = [
    *(
        "quad_perm:[3,2,1,0]",
        "quad_perm:[0,0,2,2]",
        "row_shl:1",
        "row_shl:15",
        "row_shr:1",
        "row_shr:7",
        "row_ror:4",
    ),
    *("row_mirror", "row_half_mirror", "wave_shl:1", "wave_shr:1", "wave_rol:1", "wave_ror:1"),
    *("row_bcast:15", "row_bcast:31", "row_newbcast:5"),
]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("exec_mask", [-1, 0x7FFF_FFFF_00FF_5AFE])
def test_dpp(arch: str, exec_mask: int, library: Path, tmp_path: Path) -> None:
    """A lane is written if EXEC, its row and its bank are on, and it has a source: one in bounds and in EXEC.

    With bound_ctrl:0 it then reads 0 instead.
    """
    t = Batch(arch)
    on = exec_mask % (1 << 64)
    before = f"s_mov_b32 exec_lo, {on & M32:#x}\ns_mov_b32 exec_hi, {on >> 32:#x}"
    a, d = [100 + lane for lane in LANES], [7000 + lane for lane in LANES]
    for control in CONTROLS:
        for rows, banks, bound in ((15, 15, False), (15, 15, True), (5, 15, False), (15, 6, True)):
            if control.startswith("row_newbcast") and (rows, banks) != (15, 15):
                continue
            results = []
            for lane in LANES:
                source = dpp_source(control, lane)
                valid = source is not None and on >> source & 1
                written = on >> lane & 1 and rows >> lane // 16 & 1 and banks >> lane // 4 % 4 & 1
                results.append(
                    a[source]
                    if written and valid and source is not None
                    else 0
                    if written and bound
                    else d[lane]
                )
            masks = f"row_mask:{rows:#x} bank_mask:{banks:#x}" + (" bound_ctrl:0" if bound else "")
            t.add(f"v_mov_b32_dpp {{d}}, {{a}} {control} {masks}", results, before=before, a=a, d=d)
    # The second source is not moved; modifiers come after the move.
    floats = [f32(float(lane)) for lane in LANES]
    moved = [f32(lane - (lane ^ 1)) for lane in LANES]
    if exec_mask == -1:
        text = "v_add_f32_dpp {d}, -{a}, {a} quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
        t.add(text, moved, a=floats)
        wide = [f64(float(lane & ~15 | 3)) for lane in LANES]
        text = "v_mov_b64_dpp" if arch != "gfx90a" else "v_ceil_f64_dpp"
        text += " {d}, {a} row_newbcast:3 row_mask:0xf bank_mask:0xf"
        t.add(text, wide, a=[f64(float(lane)) for lane in LANES], bits={"a": 64, "d": 64})
    t.run(library, tmp_path)


# ---- lanes


@pytest.mark.parametrize("arch", ARCHS)
def test_lanes(arch: str, library: Path, tmp_path: Path) -> None:
    t = Batch(arch)
    a, d = [1000 + lane for lane in LANES], [5000 + lane for lane in LANES]
    some = "s_mov_b32 exec_lo, 0xfffffff0\ns_mov_b32 exec_hi, 0"
    t.add("v_readfirstlane_b32 s20, {a}\ns_mov_b32 s21, 0", None, mask=1004, before=some, a=a)
    t.add("v_readfirstlane_b32 s20, {a}\ns_mov_b32 s21, 0", None, mask=1000, before="s_mov_b64 exec, 0", a=a)
    # V_READLANE, V_WRITELANE: "S1.u32[5 : 0]"; EXEC does not count.
    t.add("v_readlane_b32 s20, {a}, 37\ns_mov_b32 s21, 0", None, mask=1037, before="s_mov_b64 exec, 0", a=a)
    t.add("v_readlane_b32 s20, {a}, s11\ns_mov_b32 s21, 0", None, mask=1003, before="s_mov_b32 s11, 67", a=a)
    written = [77 if lane == 3 else d[lane] for lane in LANES]
    t.add("v_writelane_b32 {d}, s11, 3", written, before="s_mov_b64 exec, 0\ns_mov_b32 s11, 77", d=d)
    on = [4 <= lane < 32 for lane in LANES]
    swapped = [a[lane] if on[lane] else d[lane] for lane in LANES]
    t.add("v_swap_b32 {d}, {a}", swapped, before=some, a=a, d=d)
    t.add("v_swap_b32 {a}, {d}", swapped, before=some, a=a, d=d)
    t.add("v_mov_b32 {d}, {a}", swapped, before=some, a=a, d=d)  # lanes that are off keep what they have
    below = [
        (((1 << lane) - 1) & 0xFFFF0F0F).bit_count() if lane < 32 else 0xFFFF0F0F.bit_count()
        for lane in LANES
    ]
    t.add("v_mbcnt_lo_u32_b32 {d}, s11, 5", [v + 5 for v in below], before="s_mov_b32 s11, 0xffff0f0f")
    above = [((1 << max(lane - 32, 0)) - 1 & 0xFFFF0F0F).bit_count() for lane in LANES]
    t.add("v_mbcnt_hi_u32_b32 {d}, s11, 5", [v + 5 for v in above], before="s_mov_b32 s11, 0xffff0f0f")
    t.add("v_nop\nv_clrexcp\nv_mov_b32 {d}, {a}", a, a=a)
    t.add(
        "v_accvgpr_write_b32 a7, {a}\ns_nop 4\nv_accvgpr_mov_b32 a9, a7\ns_nop 4\nv_accvgpr_read_b32 {d}, a9",
        a,
        a=a,
    )
    if arch == "gfx950":
        add_swaps(t)
    t.run(library, tmp_path)


def add_swaps(t: Batch) -> None:
    """V_PERMLANE16_SWAP, V_PERMLANE32_SWAP: odd rows of the first register with even rows of the second.

    The CDNA4 document's pseudocode knows no EXEC, FI and BOUND_CTRL; with lanes off they are taken to be
    what they are for DPP, as LLVM's description of the instructions' operands has it.
    """
    first, second = [1000 + lane for lane in LANES], [2000 + lane for lane in LANES]
    for row in (16, 32):
        for on, modifier in (
            (2**64 - 1, ""),
            (0xFFFF_00F0_5A5A_F00F, ""),
            (0xFFFF_00F0_5A5A_F00F, " bound_ctrl:1"),
            (0x0F0F_5A5A_FF00_00F7, " fi:1"),
        ):
            got_first, got_second = list(first), list(second)
            for lane in LANES:
                odd = lane // row % 2 == 1
                partner = lane - row if odd else lane + row
                value = second[partner] if odd else first[partner]
                if not on >> lane & 1:
                    continue
                if on >> partner & 1 or "fi" in modifier:
                    pass
                elif "bound_ctrl" in modifier:
                    value = 0
                else:
                    continue
                (got_first if odd else got_second)[lane] = value
            before = f"s_mov_b32 exec_lo, {on & M32:#x}\ns_mov_b32 exec_hi, {on >> 32:#x}"
            text = f"v_permlane{row}_swap_b32{'_e64' if modifier else ''}"
            t.add(f"{text} {{d}}, {{a}}{modifier}", got_first, before=before, d=first, a=second)
            t.add(f"{text} {{a}}, {{d}}{modifier}", got_second, before=before, a=first, d=second)


# ---- modifiers


@pytest.mark.parametrize("arch", ARCHS)
def test_modifiers(arch: str, library: Path, tmp_path: Path) -> None:
    t, inf, nan = Batch(arch), math.inf, math.nan
    two, three = [f32(2.0)], [f32(-3.0)]
    for text, result in {
        "-{a}, {b}": -5.0,
        "{a}, -{b}": 5.0,
        "{a}, |{b}|": 5.0,
        "-|{b}|, {a}": -1.0,
    }.items():
        t.add(f"v_add_f32_e64 {{d}}, {text}", [f32(result)], a=two, b=three)
    t.add("v_add_f32_e64 {d}, -{a}, 0", [f32(-0.0 + 0.0)], a=[0])
    t.add(
        "v_max_f32_e64 {d}, -{a}, -{a}", [0xFFC00000], a=[0x7FC00000]
    )  # neg and abs act on NaN's sign as well
    t.add(
        "v_add_f64 {d}, -{a}, |{b}|",
        [f64(1.5)],
        a=[f64(2.0)],
        b=[f64(-3.5)],
        bits={"a": 64, "b": 64, "d": 64},
    )
    # op_sel of VOP3: the upper half of a source; the last bit, of the result, whose other half stays.
    halves, old = [f16(1.5) | f16(-2.0) << 16], [0xABCD5678]
    t.add("v_fma_f16 {d}, {a}, {a}, {a} op_sel:[1,0,0,0]", [0xABCD0000 | f16(-1.5)], a=halves, d=old)
    t.add("v_fma_f16 {d}, {a}, -{a}, {a} op_sel:[1,1,0,1]", [f16(-2.5) << 16 | 0x5678], a=halves, d=old)
    t.add(
        "v_pack_b32_f16 {d}, {a}, -{b} op_sel:[1,0,0]", [f16(-2.0) | f16(3.0) << 16], a=halves, b=[f16(-3.0)]
    )
    # Clamp: floats to 0..1; NaN becomes 0 where MODE.DX10_CLAMP is set.
    rows = [(5.0, 1.0), (-5.0, 0.0), (0.5, 0.5), (inf, 1.0), (-inf, 0.0)]
    t.table("v_mul_f32_e64 {d}, {a}, 1.0 clamp", [*((f32(a), f32(d)) for a, d in rows), (f32(nan), 0)])
    t.table(
        "v_mul_f32_e64 {d}, {a}, 1.0 clamp",
        [(f32(nan), NAN32), (f32(2.0), f32(1.0))],
        mode=DEFAULT_MODE & ~DX10_CLAMP,
    )
    t.table("v_mul_f16_e64 {d}, {a}, 1.0 clamp", [(f16(a), f16(d)) for a, d in [*rows, (nan, 0.0)]])
    wide = {"a": 64, "d": 64}
    t.table("v_mul_f64 {d}, {a}, 1.0 clamp", [(f64(a), f64(d)) for a, d in [*rows, (nan, 0.0)]], bits=wide)
    t.table("v_pk_mul_f16 {d}, {a}, 1.0 op_sel_hi:[1,0] clamp", [(f16(2.0) | f16(-2.0) << 16, f16(1.0))])
    # Output modifiers do nothing under IEEE, or where output denormals are enabled; -0 becomes +0.
    rows = [
        (f32(3.0), {"mul:2": 6.0, "mul:4": 12.0, "div:2": 1.5}),
        (f32(-0.0), dict.fromkeys(("mul:2", "mul:4", "div:2"), 0.0)),
    ]
    free = DEFAULT_MODE & ~IEEE & ~0xF0
    for modifier in ("mul:2", "mul:4", "div:2"):
        text = f"v_mul_f32_e64 {{d}}, {{a}}, 1.0 {modifier}"
        t.add(text, [f32(row[1][modifier]) for row in rows], a=[row[0] for row in rows], mode=free)
        t.add(text, [row[0] for row in rows], a=[row[0] for row in rows], mode=DEFAULT_MODE)
        t.add(text, [row[0] for row in rows], a=[row[0] for row in rows], mode=DEFAULT_MODE & ~IEEE)
        t.add(text, [row[0] for row in rows], a=[row[0] for row in rows], mode=free | IEEE)
        factor = {"mul:2": 2.0, "mul:4": 4.0, "div:2": 0.5}[modifier]
        t.table(
            f"v_mul_f64 {{d}}, {{a}}, 1.0 {modifier}", [(f64(3.0), f64(3.0 * factor))], bits=wide, mode=free
        )
        t.table(f"v_mul_f16_e64 {{d}}, {{a}}, 1.0 {modifier}", [(f16(3.0), f16(3.0 * factor))], mode=free)
    t.table(
        "v_mul_f32_e64 {d}, {a}, 1.0 clamp mul:4", [(f32(0.125), f32(0.5)), (f32(3.0), f32(1.0))], mode=free
    )
    # Constants: an integer's bits in every type; floats by name.
    t.add("v_add_f32 {d}, 1, {a}", [1], a=[0])  # the bits of integer 1: a denormal
    t.add("v_add_u32 {d}, -16, {a}", [(-16) & M32], a=[0])
    t.add("v_add_u32 {d}, 1.0, {a}", [0x3F800000], a=[0])
    t.add("v_mul_f32 {d}, 0.15915494309189532, {a}", [0x3E22F983], a=[f32(1.0)])
    # Packed halves take a float in 16 bits, in the low half alone; packed integers the bits of one of 32.
    t.add("v_pk_add_f16 {d}, {a}, 1.0", [0x3C00], a=[0])
    t.add("v_pk_add_u16 {d}, {a}, 1.0", [0x3F800000], a=[0])
    t.run(library, tmp_path)


# ---- comparisons


CONDITIONS: dict[str, Callable[[float, float], bool]] = {
    "f": lambda a, b: False,
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "lg": lambda a, b: a < b or a > b,
    "ge": lambda a, b: a >= b,
    "o": lambda a, b: a == a and b == b,  # noqa: PLR0124
    "u": lambda a, b: a != a or b != b,  # noqa: PLR0124
    "nge": lambda a, b: not a >= b,
    "nlg": lambda a, b: not (a < b or a > b),
    "ngt": lambda a, b: not a > b,
    "nle": lambda a, b: not a <= b,
    "neq": lambda a, b: not a == b,  # noqa: SIM201
    "nlt": lambda a, b: not a < b,
    "tru": lambda a, b: True,
}


def compare(
    t: Batch,
    name: str,
    condition: Callable[..., bool],
    pairs: Sequence[tuple[int, int]],
    *,
    keys: Sequence[tuple[float, float]],
    width: int,
) -> None:
    """v_cmp to an SGPR pair under EXEC, and v_cmpx, which writes EXEC as well."""
    bits = {"a": max(width, 32), "b": max(width, 32)}
    a, b = ([p[i] for p in pairs] for i in (0, 1))
    holds = [condition(*keys[lane % len(keys)]) for lane in LANES]
    on = 0xF0F0_FFFF_00FF_7FFE
    mask = sum(holds[lane] << lane for lane in LANES) & on
    before = f"s_mov_b32 exec_lo, {on & M32:#x}\ns_mov_b32 exec_hi, {on >> 32:#x}"
    t.add(f"v_cmp_{name} {{s}}, {{a}}, {{b}}", None, mask=mask, bits=bits, before=before, a=a, b=b)
    text = f"v_cmpx_{name} vcc, {{a}}, {{b}}\ns_nop 4\nv_mov_b32 {{d}}, 1\ns_mov_b64 {{s}}, vcc"
    t.add(text, [mask >> lane & 1 for lane in LANES], mask=mask, bits=bits, before=before, a=a, b=b, d=[0])


@pytest.mark.parametrize("arch", ARCHS)
def test_comparisons(arch: str, library: Path, tmp_path: Path) -> None:
    t, rng, inf, nan = Batch(arch), random.Random(4), math.inf, math.nan
    numbers = [-inf, -1.0, -0.0, 0.0, 1.0, inf, nan, 0.5]
    floats = [(a, b) for a in numbers for b in numbers]
    for width, make, fmt in ((16, f16, F16), (32, f32, F32), (64, f64, F64)):
        encoded = [(make(a), make(b)) for a, b in floats]
        signaling = fmt.infinity | 1  # compares as any NaN
        nans = [
            (signaling if math.isnan(a) else x, y) for (a, _), (x, y) in zip(floats, encoded, strict=True)
        ]
        for name, condition in CONDITIONS.items():
            compare(t, f"{name}_f{width}", condition, nans, keys=floats, width=width)
    edges = {
        16: (0, 1, 0x7FFF, 0x8000, 0xFFFF),
        32: (0, 1, 0x7FFFFFFF, 0x80000000, M32),
        64: (0, 1, 1 << 63, (1 << 64) - 1, 1 << 32),
    }
    words = {"lt": "lt", "eq": "eq", "le": "le", "gt": "gt", "ne": "neq", "ge": "ge", "f": "f", "t": "tru"}
    for width, values in edges.items():
        pairs = [(rng.choice(values), rng.choice(values)) for _ in LANES]
        for kind in "iu":
            keys = [tuple(signed(v, width) if kind == "i" else v for v in pair) for pair in pairs]
            for word, condition in words.items():
                compare(t, f"{word}_{kind}{width}", CONDITIONS[condition], pairs, keys=keys, width=width)  # type: ignore[arg-type]
    t.run(library, tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
def test_classes(arch: str, library: Path, tmp_path: Path) -> None:
    """V_CMP_CLASS: bits for signaling NaN, quiet NaN, -inf, -normal, -denormal, -0, and from +0 to +inf."""
    t = Batch(arch)
    for width, fmt in ((16, F16), (32, F32), (64, F64)):
        normal, denormal = fmt.bias << fmt.mantissas, 1
        positive = [0, denormal, normal, fmt.infinity]
        numbers = [fmt.infinity | 1, fmt.infinity | 1 << (fmt.mantissas - 1)]
        numbers += [v | fmt.sign for v in reversed(positive)] + positive
        a = [numbers[lane % 10] for lane in LANES]
        b = [1 << lane // 10 for lane in range(60)] + [0, 0x3FF, 0x204, 0x1F8]
        for bits, column in ((b, a), ([0x3FF ^ v for v in b], a)):
            holds = sum((bits[lane] >> lane % 10 & 1) << lane for lane in LANES)
            sizes = {"a": max(width, 32)}
            t.add(f"v_cmp_class_f{width} {{s}}, {{a}}, {{b}}", None, mask=holds, bits=sizes, a=column, b=bits)
            text = f"v_cmpx_class_f{width} vcc, {{a}}, {{b}}\ns_mov_b64 {{s}}, exec"
            t.add(text, None, mask=holds, bits=sizes, a=column, b=bits)
    # Comparisons see zeros where MODE flushes denormals of sources; classes see bits.
    flushing = DEFAULT_MODE & ~0x50
    for name, holds in (("eq", 2**64 - 1), ("lg", 0)):
        t.add(f"v_cmp_{name}_f32 {{s}}, {{a}}, 0", None, mask=holds, mode=flushing, a=[1, 0x80000001])
        t.add(f"v_cmp_{name}_f16 {{s}}, {{a}}, 0", None, mask=holds, mode=flushing, a=[1, 0x8001])
    t.add("v_cmp_class_f32 {s}, {a}, {b}", None, mask=2**64 - 1, mode=flushing, a=[1], b=[1 << 7])
    t.add("v_cmp_class_f32 {s}, -|{a}|, {b}", None, mask=2**64 - 1, a=[f32(2.0)], b=[1 << 3])
    t.run(library, tmp_path)
