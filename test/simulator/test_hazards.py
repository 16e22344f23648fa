# SPDX-License-Identifier: MIT
"""Wait states: one too few is reported at its place, enough are not.

Counts are those of AMD's ISA documents of "Instinct MI200", "Instinct MI300" and "CDNA4", section "Manually
Inserted Wait States", and of LLVM's GCNHazardRecognizer.cpp.
"""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest
import toolchain
from conftest import SIMULATOR
from kernel_code import find_code
from sim import ARCHS, Report, Sim, SimError, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

# s[2:3], v10, v11: the buffer; v12: 4 * lane; v14: 16 * lane.
BEFORE = """
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    s_mov_b32 s5, s3
    v_mov_b32 v10, s2
    v_mov_b32 v11, s3
    v_lshlrev_b32 v12, 2, v0
    v_lshlrev_b32 v13, 3, v0
    v_lshlrev_b32 v14, 4, v0
    v_mov_b32 v24, 0
    v_mov_b32 v25, 0
    v_mov_b32 v26, 0
    v_mov_b32 v27, 0
    v_mov_b32 v44, 0
    v_mov_b32 v45, 0
    s_nop 7
"""
AFTER = "s_waitcnt vmcnt(0) lgkmcnt(0)\n s_endpgm"

SET_MODE = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 15"
EXEC = "v_cmpx_eq_u32 vcc, v12, v12"
PART = "dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0 src1_sel:WORD_0"
MFMA_32 = "v_mfma_f32_32x32x8f16 v[40:55], v[30:31], v[32:33], v[64:79]"
MFMA_4 = "v_mfma_f32_4x4x4f16 v[40:43], v[30:31], v[32:33], v[64:67]"
SGEMM_32 = "v_mfma_f32_32x32x2f32 v[40:55], v30, v32, v[64:79]"
DGEMM_16 = "v_mfma_f64_16x16x4f64 v[40:47], v[30:31], v[32:33], v[64:71]"
DGEMM_4 = "v_mfma_f64_4x4x4f64 v[40:41], v[30:31], v[32:33], v[64:65]"
SPARSE = "v_smfmac_f32_16x16x32_f16 v[40:43], v[30:31], v[32:35], v36"
FP8 = "v_mfma_f32_16x16x128_f8f6f4 v[40:43], v[16:23], v[24:31], v[64:67]"
FP4 = "v_mfma_f32_16x16x128_f8f6f4 v[40:43], v[16:19], v[24:27], v[64:67] cbsz:4 blgp:4"
READ, WRITE = "v_mov_b32 v20, v41", "v_mov_b32 v41, v12"
READ_20 = "v_mov_b32 v21, v20"
SGEMM_4 = "v_mfma_f32_4x4x1f32 v[20:23], v30, v32, v[42:45]"
MAD_HIGH = "v_mad_u16 v20, v12, v12, v12 op_sel:[0,0,0,1]"
SKIP = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0"
STORE, TO_LDS = "global_store_dword v12, v44, s[2:3]", "ds_write_b32 v12, v44"
READ_64 = "v_add_f64 v[20:21], v[40:41], v[40:41]"

# A name, two instructions, and the wait states between them on gfx90a, gfx942 and gfx950; None: not there.
PAIRS: list[tuple[str, str, str, tuple[int | None, int | None, int | None]]] = [
    ("sgpr_memory", "v_readfirstlane_b32 s4, v10", "global_load_dword v20, v12, s[4:5]", (5, 5, 5)),
    ("dpp", "v_mov_b32 v20, v12", "v_mov_b32_dpp v21, v20 row_shr:1", (2, 2, 2)),
    ("exec_dpp", EXEC, "v_mov_b32_dpp v21, v13 row_shr:1", (5, 5, 5)),
    ("div_fmas", "v_cmp_eq_u32 vcc, v12, v13", "v_div_fmas_f32 v20, v12, v12, v12", (4, 4, 4)),
    ("vccz", "v_cmp_eq_u32 vcc, v12, v13", "v_mov_b32 v20, src_vccz", (5, 5, 5)),
    ("lane_select", "v_readfirstlane_b32 s6, v13", "v_readlane_b32 s7, v12, s6", (4, 4, 4)),
    ("sgpr_constant", "v_readfirstlane_b32 s6, v13", "v_add_u32 v20, s6, v12", (0, 2, 2)),
    ("vcc_constant", "v_cmp_eq_u32 vcc, v12, v13", "v_mov_b32 v20, vcc_hi", (0, 2, 2)),
    ("exec_constant", EXEC, "v_mov_b32 v20, exec_lo", (0, 2, 2)),
    ("sgpr_choice", "v_cmp_eq_u32 s[6:7], v12, v13", "v_cndmask_b32 v20, v12, v13, s[6:7]", (0, 0, 0)),
    ("vcc_choice", "v_cmp_eq_u32 vcc, v12, v13", "v_cndmask_b32 v20, v12, v13, vcc", (0, 0, 0)),
    ("vcc_carry", "v_add_co_u32 v20, vcc, v12, v13", "v_addc_co_u32 v21, vcc, v12, v13, vcc", (0, 0, 0)),
    ("read_lane", "v_mov_b32 v20, v12", "v_readfirstlane_b32 s6, v20", (0, 1, 1)),
    ("exec_read_lane", EXEC, "v_readlane_b32 s7, v12, 3", (0, 4, 4)),
    ("trans", "v_exp_f32 v20, v12", "v_add_f32 v21, v20, v20", (0, 1, 1)),
    ("trans_trans", "v_exp_f32 v20, v12", "v_log_f32 v21, v20", (0, 0, 0)),
    ("part", f"v_add_u16_sdwa v20, v12, v13 {PART}", "v_mov_b32 v21, v20", (0, 1, 1)),
    (
        "part_part",
        f"v_add_u16_sdwa v20, v12, v13 {PART}",
        MAD_HIGH,
        (0, 1, 1),
    ),
    ("part_all", f"v_add_u16_sdwa v20, v12, v13 {PART}", "v_mov_b32 v20, v12", (0, 0, 0)),
    ("part_byte", "v_cvt_scalef32_sr_fp8_f32 v20, v12, v13, v12 op_sel:[0,0,1,0]", READ_20, (None, None, 1)),
    ("part_none", "v_cvt_scalef32_sr_fp8_f32 v20, v12, v13, v12", READ_20, (None, None, 0)),
    ("part_fp4", "v_cvt_scalef32_pk_fp4_f32 v20, v12, v13, v12", READ_20, (None, None, 1)),
    ("packed", "v_pk_add_f32 v[20:21], v[12:13], v[12:13]", READ_20, (0, 0, 0)),
    ("wide_store", "global_store_dwordx4 v14, v[24:27], s[2:3]", "v_mov_b32 v26, v12", (1, 2, 2)),
    ("narrow_store", "global_store_dwordx2 v14, v[24:25], s[2:3]", "v_mov_b32 v25, v12", (0, 0, 0)),
    ("m0", "s_mov_b32 m0, 0", "ds_write_addtid_b32 v12", (1, 1, 1)),
    ("m0_buffer", "s_mov_b32 m0, 0", "buffer_load_dword v12, s[4:7], 0 offen lds", (0, 0, 0)),
    ("m0_global", "s_mov_b32 m0, 0", "global_load_lds_dword v12, s[2:3]", (None, 1, 1)),
    ("setreg", SET_MODE, "s_getreg_b32 s6, hwreg(HW_REG_MODE)", (2, 2, 2)),
    ("setvskip", "s_setvskip 0, 0", "s_getreg_b32 s6, hwreg(HW_REG_MODE)", (2, 2, 2)),
    ("skip", SKIP, "v_mov_b32 v20, v12", (2, 2, 2)),
    ("skip_load", SKIP, "global_load_dword v20, v12, s[2:3]", (2, 2, 2)),
    ("no_skip", SET_MODE, "v_mov_b32 v20, v12", (0, 0, 0)),
    ("dot_read", "v_dot2_f32_f16 v20, v12, v13, v13", "v_add_f32 v21, v20, v13", (3, 3, 3)),
    ("dot_write", "v_dot2_f32_f16 v20, v12, v13, v13", "v_mov_b32 v20, v13", (3, 3, 3)),
    ("dot_mfma", "v_dot2_f32_f16 v30, v12, v13, v13", MFMA_4, (3, 3, 3)),
    ("dot_sum", "v_dot2_f32_f16 v20, v12, v13, v13", "v_dot2_f32_f16 v21, v12, v13, v20", (0, 0, 0)),
    ("permlane", "v_mov_b32 v20, v12", "v_permlane32_swap_b32 v20, v21", (None, None, 2)),
    ("exec_permlane", EXEC, "v_permlane32_swap_b32 v20, v21", (None, None, 4)),
    ("exec_mfma", EXEC, MFMA_4, (4, 4, 4)),
    ("valu_mfma", "v_mov_b32 v30, v12", MFMA_4, (2, 2, 2)),
    ("valu_mfma_c", "v_mov_b32 v66, v12", MFMA_4, (2, 2, 2)),
    ("mfma_valu", MFMA_32, READ, (19, 11, 12)),
    ("mfma_store", MFMA_32, STORE, (19, 11, 12)),
    ("mfma_lds", MFMA_32, TO_LDS, (19, 11, 12)),
    ("mfma_overwritten", MFMA_32, WRITE, (19, 11, 12)),
    ("mfma_loaded", MFMA_32, "global_load_dword v41, v12, s[2:3]", (19, 11, 12)),
    ("mfma_c_overwritten", MFMA_32, "v_mov_b32 v70, v12", (15, 7, 7)),
    ("sgemm_c_overwritten", SGEMM_32, "v_mov_b32 v70, v12", (15, 0, 0)),
    ("mfma_c", MFMA_32, "v_mfma_f32_32x32x8f16 v[42:57], v[30:31], v[32:33], v[42:57]", (16, 9, 10)),
    ("mfma_same_c", MFMA_32, "v_mfma_f32_32x32x8f16 v[40:55], v[30:31], v[32:33], v[40:55]", (0, 0, 0)),
    ("mfma_a", MFMA_32, "v_mfma_f32_4x4x4f16 v[20:23], v[42:43], v[32:33], v[64:67]", (19, 11, 12)),
    ("mfma_dgemm_c", MFMA_32, "v_mfma_f64_4x4x4f64 v[20:21], v[30:31], v[32:33], v[42:43]", (17, 9, 10)),
    ("mfma4_valu", MFMA_4, READ, (5, 5, 5)),
    ("mfma4_sgemm_c", MFMA_4, SGEMM_4, (2, 3, 3)),
    ("mfma4_c", MFMA_4, "v_mfma_f32_4x4x4f16 v[20:23], v[30:31], v[32:33], v[42:45]", (2, 3, 4)),
    ("mfma_sgemm_c", MFMA_32, SGEMM_4, (16, 9, 10)),
    ("mfma4_same_c", MFMA_4, "v_mfma_f32_4x4x4f16 v[40:43], v[30:31], v[32:33], v[40:43]", (0, 2, 2)),
    ("mfma4_c", MFMA_4, "v_mfma_f32_4x4x4f16 v[20:23], v[30:31], v[32:33], v[42:45]", (2, 3, 4)),
    ("mfma4_c_overwritten", MFMA_4, "v_mov_b32 v65, v12", (1, 1, 1)),
    ("sgemm_valu", SGEMM_32, READ, (19, 18, 18)),
    ("sgemm_overwritten", SGEMM_32, WRITE, (19, 18, 18)),
    ("sgemm_c", SGEMM_32, "v_mfma_f32_32x32x2f32 v[42:57], v30, v32, v[42:57]", (16, 16, 16)),
    ("sgemm_mfma_c", SGEMM_32, "v_mfma_f32_32x32x8f16 v[42:57], v[30:31], v[32:33], v[42:57]", (16, 0, 0)),
    ("sgemm_a", SGEMM_32, "v_mfma_f32_32x32x2f32 v[64:79], v41, v32, v[64:79]", (19, 18, 18)),
    ("dgemm_valu", DGEMM_16, READ_64, (11, 11, 19)),
    ("dgemm_store", DGEMM_16, STORE, (18, 18, 18)),
    ("dgemm_overwritten", DGEMM_16, WRITE, (11, 11, 19)),
    ("dgemm_c", DGEMM_16, "v_mfma_f64_16x16x4f64 v[42:49], v[30:31], v[32:33], v[42:49]", (9, 9, 17)),
    ("dgemm_a", DGEMM_16, "v_mfma_f64_16x16x4f64 v[64:71], v[42:43], v[32:33], v[64:71]", (11, 11, 19)),
    ("dgemm_fma", DGEMM_16, "v_fma_f64 v[20:21], v[10:11], v[10:11], v[10:11]", (2, 2, 2)),
    ("dgemm4_valu", DGEMM_4, READ_64, (6, 6, 6)),
    ("dgemm4_store", DGEMM_4, "global_store_dword v12, v40, s[2:3]", (9, 9, 9)),
    ("dgemm4_same_c", DGEMM_4, "v_mfma_f64_4x4x4f64 v[40:41], v[30:31], v[32:33], v[40:41]", (4, 4, 4)),
    ("dgemm4_c", DGEMM_4, "v_mfma_f64_16x16x4f64 v[40:47], v[30:31], v[32:33], v[40:47]", (4, 4, 4)),
    ("dgemm4_overwritten", DGEMM_4, "v_mov_b32 v40, v12", (6, 6, 6)),
    ("dgemm4_b", DGEMM_4, "v_mfma_f64_4x4x4f64 v[20:21], v[30:31], v[40:41], v[64:65]", (6, 6, 6)),
    ("sparse_valu", SPARSE, READ, (None, 7, 8)),
    ("sparse_index", "v_mov_b32 v36, v12", SPARSE, (None, 2, 2)),
    ("sparse_same_c", SPARSE, SPARSE, (None, 0, 0)),
    ("fp8_valu", FP8, READ, (None, None, 12)),
    ("fp4_valu", FP4, READ, (None, None, 8)),
]


def nops(states: int) -> str:
    return "\n".join(f"s_nop {min(8, states - at) - 1}" for at in range(0, states, 8))


def run(text: str, arch: str, library: Path, folder: Path) -> Report | None:
    """The report of a sanitized launch of one wave."""
    image = toolchain.assemble(text, arch, folder / "kernel.co", vgprs=128, accum_offset=128, lds=4096)
    with Sim(library, arch, sanitize=True) as sim:
        args = pack(sim.upload(bytes(4096)), layout="P")
        try:
            sim.launch(sim.load(image), "kernel", (64, 1, 1), (64, 1, 1), args)
        except SimError:
            return sim.reports[0]
    return None


CASES = [
    pytest.param(arch, (first, second, states[ARCHS.index(arch)]), id=f"{arch}-{name}")
    for name, first, second, states in PAIRS
    for arch in ARCHS
    if states[ARCHS.index(arch)] is not None
]


# ---- the table of hazards.c

RULE = r'\{[A-Z0-9_ |]+,\s*[A-Z0-9_ |]+,\s*[A-Z_]+,\s*\{([^}]*)\},\s*"([^"]*)"\}'


def rules() -> tuple[list[tuple[str, list[str]]], int]:
    """Texts and states of all rules, and how many at the end hardware does not need."""
    source = (SIMULATOR / "check" / "hazards.c").read_text()
    table, reasons = (
        source.split("rules[] = {")[1].split("};")[0],
        source.split("reasons[] = {")[1].split("};")[0],
    )
    found = [
        (text, [said(one) for one in re.findall(r"\w+(?:\(-?\d\))?", states)])
        for states, text in re.findall(RULE, table)
    ]
    assert len(found) == len(re.findall(r'"[^"]*"', table))
    return found, len(re.findall(r'"[^"]*"', reasons))


def said(states: str) -> str:
    """The notation of hazards.md: P(1) is p + 1."""
    kind, number = re.fullmatch(r"([PL]?)\(?(-?\d+)\)?", states).groups()  # type: ignore[union-attr]
    if not kind:
        return number
    passes = int(number) + (kind == "L")
    text = f"p {'-' if passes < 0 else '+'} {abs(passes)}" if passes else "p"
    return text + (f", 2 passes: {2 + int(number)}" if kind == "L" else "")


def rows(section: str) -> list[list[str]]:
    """The rows of the table of hazards.md that has the column `rule`."""
    lines = section.split("| rule |")[1].split("\n\n", maxsplit=1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_sources() -> None:
    """hazards.md has each rule with its states, and who asks for it or why not."""
    needed, spare = (SIMULATOR / "check" / "hazards.md").read_text().split("## What LLVM keeps")
    found, spares = rules()
    assert [(row[0], row[1:4]) for row in rows(needed)] == found[:-spares]
    assert [(row[0], row[1:4]) for row in rows(spare)] == found[-spares:]
    for row in rows(needed):
        assert row[4] in ("T11", "T38", "") and (row[4] or row[5]), row
    assert all(row[4] and row[5] for row in rows(spare))


def look(text: str, arch: str, padding: Path, folder: Path, *places: str) -> list[list[str]]:
    """The output of tessera_sim_padding for a kernel where the instructions at some places take no state."""
    made = folder / "kernel.co"
    image = toolchain.assemble(f"{text}\n.size kernel, . - kernel", arch, made, vgprs=128, accum_offset=128)
    begin, size = find_code(image, "kernel")
    words = "".join(f"{word:x}\n" for (word,) in struct.iter_unpack("<I", image[begin : begin + size]))
    command = [padding, arch, *places]
    printed = subprocess.run(command, input=words, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in printed.splitlines()]


@pytest.mark.parametrize("arch", ARCHS)
def test_every_rule(arch: str, padding: Path, tmp_path: Path) -> None:
    """Each rule is that of a pair above, as the program that looks at all paths sees it."""
    apart = nops(24)
    short = [
        "\n".join([first, nops(states[ARCHS.index(arch)] - 1), second, apart])
        for _, first, second, states in PAIRS
        if states[ARCHS.index(arch)]
    ]
    lines = look("\n".join([BEFORE, *short, AFTER]), arch, padding, tmp_path)
    seen = {rule for *_, kind, rule, _ in lines if kind == "short"}
    found, spares = rules()
    behind = {"VALU writes a VGPR, memory or LDS reads it behind a DGEMM"}  # test_dgemm_between
    assert seen == {text for text, states in found[:-spares] if states[ARCHS.index(arch)] != "0"} - behind


@pytest.mark.parametrize("arch", ARCHS[1:])
def test_states_that_llvm_does_not_count(arch: str, padding: Path, tmp_path: Path) -> None:
    """Those of inline assembly: so LLVM writes an s_nop more, which hardware does not need."""
    text = "\n".join([BEFORE, "v_exp_f32 v20, v12", "s_nop 0", "s_mov_b32 s20, 0", "s_nop 0", READ_20, AFTER])
    one, other = (line for line in look(text, arch, padding, tmp_path) if line[1] == "1")
    assert (one[2], other[2]) == ("0", "0")
    rule, salu = "transcendental VALU writes a VGPR, other VALU reads it", str(int(one[0]) + 4)
    lines = look(text, arch, padding, tmp_path, one[0], salu)
    assert [(line[2], *line[5:7]) for line in lines if line[0] == other[0]] == [("1", "needed", rule)]


# Of two instructions: the states that LLVM puts between them on gfx942, and the beginning of the rule.
SPARE = {
    "choice": (
        "v_cmp_eq_u32 vcc, v12, v13",
        "v_cndmask_b32 v20, v12, v13, vcc",
        2,
        "VALU writes an SGPR, VALU",
    ),
    "carry": (
        "v_add_co_u32 v20, vcc, v12, v13",
        "v_addc_co_u32 v21, vcc, v12, v13, vcc",
        2,
        "VALU writes an SGPR",
    ),
    "m0": ("s_mov_b32 m0, 0", "buffer_load_dword v12, s[4:7], 0 offen lds", 1, "SALU writes M0, buffer load"),
    "part": (f"v_add_u16_sdwa v20, v12, v13 {PART}", "v_mov_b32 v20, v12", 1, "VALU writes part of a VGPR"),
    "packed": ("v_pk_add_f32 v[20:21], v[12:13], v[12:13]", READ_20, 1, "packed VALU writes a VGPR"),
    "kept": (
        "v_mov_b32 v20, v12",
        "v_mov_b32_dpp v20, v13 row_shr:1",
        2,
        "VALU writes a VGPR, DPP overwrites",
    ),
    "clause": (
        "global_load_dword v20, v12, s[2:3]",
        "global_load_dword v12, v12, s[2:3]",
        1,
        "memory operations",
    ),
    "scalar": ("s_load_dword s6, s[0:1], 0x0", "s_load_dwordx2 s[0:1], s[0:1], 0x8", 1, "memory operations"),
    "nothing": ("v_mov_b32 v20, v12", READ_20, 0, ""),
}


@pytest.mark.parametrize("name", SPARE)
def test_spare(name: str, library: Path, padding: Path, tmp_path: Path) -> None:
    """The sanitizer passes over what LLVM alone keeps, and the program says which rule it is, and why not."""
    first, second, states, rule = SPARE[name]
    text = "\n".join([BEFORE, first, nops(max(states, 1)), second, AFTER])
    _, kept, missing, *_, kind, found, reason = look(text, "gfx942", padding, tmp_path)[1]  # 0: BEFORE's
    assert int(kept) == max(states, 1)
    assert int(missing) == states
    assert found.startswith(rule)
    assert (kind == "spare") == bool(reason) == bool(states)
    report = run("\n".join([BEFORE, first, second, AFTER]), "gfx942", library, tmp_path)
    assert report is None or report.fault != "missing wait states"


def test_paths(padding: Path, tmp_path: Path) -> None:
    """An s_nop that only the path around needs, and an instruction that comes too early there alone."""
    text = f"""{BEFORE}
        s_cmp_eq_u32 s2, 0
        v_mov_b32 v20, v12
        s_cbranch_scc1 around
        v_mov_b32 v22, v12
        v_mov_b32 v23, v12
    around:
        {{}}
        v_mov_b32_dpp v21, v20 row_shr:1
        {AFTER}"""
    *_, last = look(text.format("s_nop 0"), "gfx942", padding, tmp_path)
    assert last[2:6] == ["1", last[3], "branch", "needed"]
    *_, last = look(text.format(""), "gfx942", padding, tmp_path)
    assert last[4:6] == ["branch", "short"]


@pytest.mark.parametrize(("arch", "pair"), CASES)
def test_wait_states(arch: str, pair: tuple[str, str, int], library: Path, tmp_path: Path) -> None:
    first, second, states = pair
    enough = run("\n".join([BEFORE, first, nops(states), second, AFTER]), arch, library, tmp_path)
    assert enough is None or enough.fault != "missing wait states", enough
    if states == 0:
        return
    short = run("\n".join([BEFORE, first, nops(states - 1), second, AFTER]), arch, library, tmp_path)
    assert short is not None
    assert short.fault == "missing wait states"
    assert f"{states - 1} of {states} since" in short.text
    assert short.instruction.startswith(second[:12].split(maxsplit=1)[0])
    assert short.wave == 0


def test_place(library: Path, tmp_path: Path) -> None:
    body = "s_nop 0\n v_mov_b32 v20, v0\n s_nop 0\n v_mov_b32_dpp v21, v20 row_shr:1\n s_endpgm"
    report = run(body, "gfx942", library, tmp_path)
    assert report is not None
    assert report.pc == 12
    assert "1 of 2 since +0x4: v_mov_b32_e32 v20, v0" in report.text
    assert report.kernel == report.function == "kernel"


def test_matrix_instructions_wait_for_each_other(library: Path, tmp_path: Path) -> None:
    """Another one begins when the first one's 8 passes are over: 3 states after it make 11."""
    another = "v_mfma_f32_32x32x8f16 v[80:95], v[30:31], v[32:33], v[64:79]"
    enough = run("\n".join([BEFORE, MFMA_32, another, nops(3), READ, AFTER]), "gfx942", library, tmp_path)
    assert enough is None, enough
    short = run("\n".join([BEFORE, MFMA_32, another, nops(2), READ, AFTER]), "gfx942", library, tmp_path)
    assert short is not None
    assert "10 of 11 since" in short.text


@pytest.mark.parametrize(("arch", "missing"), [("gfx90a", True), ("gfx942", False), ("gfx950", False)])
def test_dgemm_between(arch: str, missing: bool, library: Path, tmp_path: Path) -> None:
    """On gfx90a hardware does not wait for what a store takes from a VALU where a DGEMM is between."""
    parts = [BEFORE, "v_mov_b32 v13, v12", DGEMM_4, "global_store_dword v12, v13, s[2:3]", AFTER]
    report = run("\n".join(parts), arch, library, tmp_path)
    assert (
        report is not None and "1 of 2 since" in report.text and "behind a DGEMM" in report.text
    ) == missing
    parts[3:3] = ["s_nop 0"]
    assert run("\n".join(parts), arch, library, tmp_path) is None
