# SPDX-License-Identifier: MIT
"""SOPP, and control instructions of SOP1, SOPC and SOPK: branches, calls, forks, modes, hardware registers.

Expected values are from AMD's "Instinct MI300 Instruction Set Architecture" (CDNA3), chapter "Program Flow
Control", sections "Hardware Registers", "STATUS" and "MODE", and the instructions' descriptions.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import toolchain
from pieces import ALL, M32, Bench, fault_of, set_scc, set_sgprs, show_sgprs
from sim import ARCHS

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)


@pytest.fixture(params=ARCHS)
def bench(request: pytest.FixtureRequest, library: Path, tmp_path: Path) -> Bench:
    return Bench(request.param, library, tmp_path)


def first_lane(bench: Bench, pieces: list[str], words: int) -> list[list[int]]:
    return [[word[0] for word in piece] for piece in bench.run(pieces, words, lanes=1)]


def test_branches(bench: Bench) -> None:
    """Each condition both ways, forwards and backwards."""
    conditions = {
        "scc0": (set_scc(0), set_scc(1)),
        "scc1": (set_scc(1), set_scc(0)),
        "vccz": ("s_mov_b64 vcc, 0", "s_mov_b32 vcc_lo, 0\ns_mov_b32 vcc_hi, 1"),
        "vccnz": ("s_mov_b32 vcc_lo, 0\ns_mov_b32 vcc_hi, 1", "s_mov_b64 vcc, 0"),
        "execz": ("s_mov_b64 exec, 0", "s_mov_b32 exec_lo, 0\ns_mov_b32 exec_hi, 0x80000000"),
        "execnz": ("s_mov_b32 exec_lo, 0\ns_mov_b32 exec_hi, 0x80000000", "s_mov_b64 exec, 0"),
    }
    pieces, expected = [], []
    for name, setups in conditions.items():
        for taken, setup in zip((1, 0), setups, strict=True):
            at = f"{name}_{taken}"
            pieces.append(
                f"""
                s_mov_b32 s8, 0
                s_branch {at}_start
                {at}_back:
                s_or_b32 s8, s8, 2
                s_branch {at}_end
                {at}_start:
                {setup}
                s_cbranch_{name} {at}_forth
                s_or_b32 s8, s8, 4
                {at}_forth:
                {setup}
                s_cbranch_{name} {at}_back
                s_or_b32 s8, s8, 8
                {at}_end:
                s_mov_b64 exec, -1
                {show_sgprs(["s8"])}
                """
            )
            expected.append([2 if taken else 12])
    assert first_lane(bench, pieces, 1) == expected


def test_no_debugger(bench: Bench) -> None:
    """STATUS.COND_DBG_USER and COND_DBG_SYS are 0, so that these do not branch."""
    names = ("cdbgsys", "cdbguser", "cdbgsys_or_user", "cdbgsys_and_user")
    steps = "\n".join(
        f"s_cbranch_{name} {name}_end\ns_or_b32 s8, s8, {1 << i}\n{name}_end:" for i, name in enumerate(names)
    )
    assert first_lane(bench, [f"s_mov_b32 s8, 0\n{steps}\n{show_sgprs(['s8'])}"], 1) == [[15]]


CALLS = """
    s_mov_b32 s8, 1
    s_getpc_b64 s[10:11]
    after_getpc:
    s_add_u32 s12, s10, {name}-after_getpc
    s_addc_u32 s13, s11, 0
    {go}
    back:
    s_sub_u32 s16, s14, s10
    s_branch done
    {name}:
    s_or_b32 s8, s8, 2
    {return_}
    done:
    s_mov_b32 s17, back-after_getpc
"""


@pytest.mark.parametrize(
    ("go", "return_"),
    [
        ("s_swappc_b64 s[14:15], s[12:13]", "s_setpc_b64 s[14:15]"),
        ("s_call_b64 s[14:15], callee", "s_swappc_b64 s[18:19], s[14:15]"),
        ("s_call_b64 s[14:15], callee", "s_rfe_b64 s[14:15]"),
    ],
    ids=["swappc", "call", "rfe"],
)
def test_calls(bench: Bench, go: str, return_: str) -> None:
    """s_getpc, s_swappc and s_call give the address of the next instruction."""
    piece = CALLS.format(name="callee", go=go, return_=return_) + show_sgprs(["s8", "s16", "s17"])
    ((seen, offset, wanted),) = first_lane(bench, [piece], 3)
    assert (seen, offset) == (3, wanted)


@pytest.mark.parametrize("form", ["g", "i"])
@pytest.mark.parametrize("condition", [0, ALL, 0xFFFF, ALL ^ 0xFF, 1, 0xFFFFFFFF])
def test_forks(bench: Bench, form: str, condition: int) -> None:
    """s_cbranch_g_fork, s_cbranch_i_fork and s_cbranch_join: each lane takes its way, the smaller part first.

    Both ways end in one join, which is reached with MODE.CSP as it was before the fork when all is done.
    """
    fork = "s_cbranch_i_fork s[24:25], yes" if form == "i" else "s_cbranch_g_fork s[24:25], s[26:27]"
    piece = f"""
        {set_sgprs(24, condition, 2)}
        s_mov_b32 s30, 0
        v_mov_b32 v5, 0
        s_getreg_b32 s20, hwreg(HW_REG_MODE, 29, 3)
        s_getpc_b64 s[26:27]
        here:
        s_add_u32 s26, s26, yes-here
        s_addc_u32 s27, s27, 0
        {fork}
        v_mov_b32 v4, 1
        s_add_u32 s30, s30, 1
        v_add_u32 v5, s30, v5
        s_branch meet
        yes:
        v_mov_b32 v4, 2
        s_add_u32 s30, s30, 1
        v_add_u32 v5, s30, v5
        meet:
        s_cbranch_join s20
        s_getreg_b32 s21, hwreg(HW_REG_MODE, 29, 3)
        s_mov_b64 s[22:23], exec
        v_mov_b32 v6, s21
        v_mov_b32 v7, s22
        v_mov_b32 v8, s23
    """
    # The stack of forks starts at s0: what Bench needs there is kept aside.
    save = "s_mov_b64 s[40:41], s[0:1]\ns_mov_b64 s[42:43], s[2:3]\n"
    restore = "s_mov_b64 exec, -1\ns_mov_b64 s[0:1], s[40:41]\ns_mov_b64 s[2:3], s[42:43]\n"
    exec_back = "v_readfirstlane_b32 s44, v7\nv_readfirstlane_b32 s45, v8\n"
    tail = f"{exec_back}{restore}v_mov_b32 v7, s44\nv_mov_b32 v8, s45\nv_mov_b32 v6, s21"
    ((ways, turns, csp, low, high),) = bench.run([save + piece + tail], 5)
    passing = condition.bit_count()
    yes_first = 2 * passing <= 64 or passing == 64
    for lane in range(64):
        yes = condition >> lane & 1
        assert ways[lane] == 1 + yes
        alone = passing in (0, 64)
        assert turns[lane] == (1 if alone or bool(yes) == yes_first else 2)
    assert csp[0] == 0
    last = ALL if passing in (0, 64) else ALL ^ condition if yes_first else condition
    assert low[0] | high[0] << 32 == last


def test_gpr_index(bench: Bench) -> None:
    """s_set_gpr_idx_*: M0[7:0] is added to the VGPRs of src0, src1, src2, dst as M0[15:12] say."""
    fill = (
        "\n".join(f"v_mov_b32 v{20 + i}, {100 + i}" for i in range(8)) + "\ns_mov_b32 s8, 3\nv_mov_b32 v4, 0"
    )
    pieces = [
        f"{fill}\ns_set_gpr_idx_on s8, gpr_idx(SRC0)\nv_mov_b32 v4, v20\ns_set_gpr_idx_off",
        f"{fill}\ns_set_gpr_idx_on s8, gpr_idx(DST)\nv_mov_b32 v20, 7\ns_set_gpr_idx_off\nv_mov_b32 v4, v23",
        f"{fill}\ns_set_gpr_idx_on s8, gpr_idx(SRC1)\nv_sub_u32 v4, v24, v20\ns_set_gpr_idx_off",
        f"{fill}\ns_set_gpr_idx_on s8, 1\ns_set_gpr_idx_idx 5\nv_mov_b32 v4, v20\ns_set_gpr_idx_off",
        f"{fill}\ns_set_gpr_idx_on s8, 0\ns_set_gpr_idx_mode 1\nv_mov_b32 v4, v20\ns_set_gpr_idx_off",
        f"{fill}\ns_mov_b32 m0, -1\ns_set_gpr_idx_on s8, 9\ns_set_gpr_idx_off\nv_mov_b32 v4, m0",
        f"{fill}\ns_set_gpr_idx_on s8, 1\ns_getreg_b32 s9, hwreg(HW_REG_MODE, 27, 1)\n"
        "s_set_gpr_idx_off\nv_mov_b32 v4, s9",
        f"{fill}\ns_set_gpr_idx_on s8, 1\ns_set_gpr_idx_off\nv_mov_b32 v4, v20",
        f"{fill}\ns_set_gpr_idx_on s8, gpr_idx(DST)\nv_writelane_b32 v20, 9, 0\ns_set_gpr_idx_off\n"
        "v_mov_b32 v4, v23",
        f"{fill}\ns_set_gpr_idx_on s8, 1\nv_readlane_b32 s9, v20, 0\ns_set_gpr_idx_off\nv_mov_b32 v4, s9",
    ]
    got = [piece[0] for piece in first_lane(bench, pieces, 1)]
    assert got == [103, 7, 104 - 103 & M32, 105, 103, 0xFFFF9F03, 1, 100, 9, 103]


def test_mode(bench: Bench) -> None:
    """s_setreg writes a field and leaves the others; s_getreg reads one."""
    pieces = [
        "s_getreg_b32 s8, hwreg(HW_REG_MODE)",
        "s_setreg_imm32_b32 hwreg(1, 0, 4), 0xff6\ns_nop 1\ns_getreg_b32 s8, hwreg(HW_REG_MODE, 0, 8)",
        "s_movk_i32 s9, 5\ns_setreg_b32 hwreg(1, 4, 4), s9\ns_nop 1\ns_getreg_b32 s8, hwreg(1, 4, 3)",
        "s_setreg_imm32_b32 hwreg(1, 0, 8), 0xf0\ns_nop 1\ns_getreg_b32 s8, hwreg(HW_REG_MODE, 0, 10)",
        "s_setreg_imm32_b32 hwreg(1, 23, 1), 1\ns_nop 1\ns_getreg_b32 s8, hwreg(HW_REG_MODE, 20, 4)",
        "s_setreg_imm32_b32 hwreg(1, 23, 1), 0\ns_nop 1\ns_getreg_b32 s8, hwreg(HW_REG_MODE, 20, 4)",
    ]
    got = first_lane(bench, [piece + "\n" + show_sgprs(["s8"]) for piece in pieces], 1)
    # The assembler's descriptor: denormals of 16 and 64 bits kept, of 32 bits flushed; DX10_CLAMP and IEEE.
    assert got == [[0x3C0], [0xC6], [5], [0x3F0], [8], [0]]


def test_hardware_registers(bench: Bench) -> None:
    on_die = "s_getreg_b32 s8, hwreg(20, 0, 4)" if bench.arch != "gfx90a" else "s_mov_b32 s8, 0"
    pieces = [
        # STATUS: VALID, USER_PRIO, and SCC, EXECZ, VCCZ as they are; a wave alone in its workgroup is not
        # IN_TG.
        f"s_setprio 2\n{set_scc(1)}\ns_mov_b64 vcc, 0\ns_mov_b64 exec, 0\n"
        "s_getreg_b32 s8, hwreg(HW_REG_STATUS)\n"
        "s_mov_b64 exec, -1\ns_setprio 0",
        f"{set_scc(0)}\ns_mov_b64 vcc, 2\ns_getreg_b32 s8, hwreg(HW_REG_STATUS)",
        "s_getreg_b32 s8, hwreg(HW_REG_TRAPSTS)",
        "s_setreg_imm32_b32 hwreg(3, 0, 9), 0\ns_nop 1\ns_getreg_b32 s8, hwreg(HW_REG_TRAPSTS, 0, 9)",
        "s_getreg_b32 s8, hwreg(HW_REG_HW_ID)",
        "s_getreg_b32 s8, hwreg(HW_REG_GPR_ALLOC, 0, 18)",
        "s_getreg_b32 s8, hwreg(HW_REG_IB_STS, 0, 12)",
        # SH_MEM_BASES: bits 63:48 of the private and of the shared aperture.
        "s_getreg_b32 s8, hwreg(15, 16, 16)\ns_mov_b64 s[10:11], src_shared_base\n"
        "s_lshr_b32 s11, s11, 16\ns_sub_u32 s8, s8, s11",
        "s_getreg_b32 s8, hwreg(15, 0, 16)\ns_mov_b64 s[10:11], src_private_base\n"
        "s_lshr_b32 s11, s11, 16\ns_sub_u32 s8, s8, s11",
        on_die,
    ]
    got = [piece[0] for piece in first_lane(bench, [p + "\n" + show_sgprs(["s8"]) for p in pieces], 1)]
    valid = 1 << 16
    assert got[:5] == [valid | 2 << 3 | 1 | 1 << 9 | 1 << 10, valid, 0, 0, 0]
    # 64 VGPRs in eights less one, and those of the accumulation offset in fours less one.
    assert got[5] == (64 // 8 - 1) << 6 | (64 // 4 - 1) << 12
    assert got[6:] == [0, 0, 0, 0]


def test_clocks(bench: Bench) -> None:
    """s_memtime and s_memrealtime do not go back."""
    pieces = [
        f"s_{clock} s[8:9]\ns_waitcnt lgkmcnt(0)\ns_nop 7\ns_{clock} s[10:11]\ns_waitcnt lgkmcnt(0)\n"
        f"s_sub_u32 s8, s10, s8\ns_subb_u32 s9, s11, s9\n{show_sgprs(['s8', 's9'])}"
        for clock in ("memtime", "memrealtime")
    ]
    for low, high in first_lane(bench, pieces, 2):
        assert high == 0 and 0 < low < 1000


@pytest.mark.parametrize(
    ("text", "fault", "words"),
    [
        ("s_sethalt 1", "unimplemented", "halts"),
        ("s_sendmsghalt sendmsg(MSG_INTERRUPT)", "unimplemented", "halts"),
        ("s_sendmsg sendmsg(MSG_GS_DONE, GS_OP_NOP)", "unimplemented", "message 3"),
        ("s_setkill 1", "unimplemented", "kills"),
        ("s_rfe_restore_b64 s[8:9], s10", "unimplemented", "lacks this instruction"),
        ("s_getreg_b32 s8, hwreg(17, 0, 32)", "unimplemented", "SQ_SHADER_TBA_HI"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_STATUS, 0, 1), 1", "unimplemented", "STATUS"),
        ("s_trap 2", "trap", "trap 2"),
        ("s_mov_b32 m0, 200\ns_nop 0\ns_movrels_b32 s8, s20", "out of bounds", "out of the SGPRs"),
        ("s_mov_b64 s[8:9], 0\ns_setpc_b64 s[8:9]", "out of bounds", "left the code"),
    ],
)
def test_refused(bench: Bench, text: str, fault: str, words: str) -> None:
    report = fault_of(bench, text)
    assert report.fault == fault
    assert words in report.text
    if words != "left the code":  # there is no instruction there
        assert report.instruction.split()[0] == text.splitlines()[-1].split()[0]


def test_harmless(bench: Bench) -> None:
    """Instructions without an effect that a program sees."""
    texts = "nop 15|sleep 1|sethalt 0|setkill 0|setvskip 0, 0|setprio 3|sendmsg sendmsg(MSG_INTERRUPT)|trap 3"
    texts += "|icache_inv|dcache_inv|dcache_wb|dcache_inv_vol|incperflevel 1|decperflevel 1|ttracedata"
    texts += "|dcache_wb_vol|dcache_discard_x2 s[4:5], 0x0|mov_b64 s[12:13], 0|mov_b64 s[14:15], 0"
    texts += "|atc_probe_buffer 3, s[12:15], 0x0"
    texts += "|atc_probe 3, s[4:5], 0x0|dcache_discard s[4:5], 0x0|wakeup|barrier|waitcnt 0"
    piece = "s_mov_b32 s8, 5\n" + "\n".join(f"s_{text}" for text in texts.split("|"))
    assert first_lane(bench, [piece + "\n" + show_sgprs(["s8"])], 1) == [[5]]


@pytest.mark.parametrize("end", ["endpgm", "endpgm_saved", "endpgm_ordered_ps_done"])
def test_ends(bench: Bench, end: str) -> None:
    """Nothing behind the end runs, so that the word stays as memory was."""
    assert bench.run([f"s_{end}\nv_mov_b32 v4, 1"], 1, lanes=1) == [[[0xCDCDCDCD]]]
