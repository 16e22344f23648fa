# SPDX-License-Identifier: MIT
"""Undefined values: reported where they decide something, with their origin, and not where they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
import toolchain
from sim import ARCHS, Report, Sim, SimError, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)


class Kernels:
    """Runs bodies of assembly, sanitized.

    s[4:5] holds the address of 256 bytes that the host has written, s[6:7] of 256 others; v0 is the lane.
    """

    def __init__(self, arch: str, library: Path, folder: Path) -> None:
        self.arch, self.library, self.folder = arch, library, folder

    def run(self, body: str) -> list[Report]:
        """The faults: one or none."""
        text = f"s_load_dwordx4 s[4:7], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n{body}\ns_endpgm\n"
        folder = self.folder / "kernel.co"
        image = toolchain.assemble(text, self.arch, folder, kernarg=16, lds=1024, private=64)
        with Sim(self.library, self.arch, sanitize=True) as sim:
            args = pack(sim.upload(bytes(range(256))), sim.malloc(256), layout="PP")
            try:
                sim.launch(sim.load(image), "kernel", (64, 1, 1), (64, 1, 1), args, max_instructions=1000)
            except SimError:
                assert sim.reports
            return sim.reports

    def fault(self, body: str) -> Report:
        (report,) = self.run(body)
        assert report.fault == "undefined value"
        return report

    def decides(self, body: str) -> bool:
        """Whether undefined bits decide in which lanes v1, which the body makes, is 0."""
        found = self.run(f"{body}\nv_cmp_ne_u32 vcc, 0, v1\ns_nop 4\ns_mov_b64 exec, vcc\n")
        assert all(r.fault == "undefined value" and "EXEC" in r.text for r in found), found
        return bool(found)


@pytest.fixture(params=ARCHS)
def kernels(request: pytest.FixtureRequest, library: Path, tmp_path: Path) -> Kernels:
    return Kernels(request.param, library, tmp_path)


@pytest.fixture
def gfx942(library: Path, tmp_path: Path) -> Kernels:
    return Kernels("gfx942", library, tmp_path)


# ---- what they must not decide

USES = [
    ("global_load_dword v1, v[8:9], off", "an address depends on v8, which nothing has set", 0),
    ("s_load_dword s8, s[10:11], 0x0", "an address depends on s10, which nothing has set", -1),
    ("ds_read_b32 v1, v8", "an address depends on v8, which nothing has set", 0),
    ("global_store_dword v8, v0, s[4:5]", "an address depends on v8, which nothing has set", 0),
    ("global_load_dword v1, v0, s[10:11]", "an address depends on s10, which nothing has set", -1),
    ("buffer_load_dword v1, v0, s[8:11], 0 offen", "an address depends on s8, which nothing has set", -1),
    ("s_mov_b64 exec, s[10:11]", "EXEC depends on s10, which nothing has set", -1),
    ("s_and_saveexec_b64 s[10:11], vcc", "EXEC depends on vcc_lo, which nothing has set", -1),
    ("s_cbranch_scc1 0", "a branch depends on scc, which nothing has set", -1),
    (
        "s_cmp_eq_u32 s8, 0\ns_cbranch_scc1 0",
        "a branch depends on scc, and that on s8, which nothing has set",
        -1,
    ),
    ("s_cbranch_vccnz 0", "a branch depends on vcc_lo, which nothing has set", -1),
    ("s_setpc_b64 s[10:11]", "the address of a jump depends on s10, which nothing has set", -1),
    ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s8", "MODE depends on s8, which nothing has set", -1),
    ("s_movrels_b32 s8, s9", "a register's number depends on m0, which nothing has set", -1),
]


@pytest.mark.parametrize(("body", "text", "lane"), USES, ids=[use[0].split()[0] for use in USES])
def test_uses(body: str, text: str, lane: int, kernels: Kernels) -> None:
    report = kernels.fault(body)
    assert text in report.text
    assert report.instruction.split()[0] == body.splitlines()[-1].split()[0]
    assert (report.lane, report.wave) == (lane, 0)


@pytest.mark.parametrize(
    ("body", "origin"),
    [
        ("v_mov_b32 v8, 64\nds_read_b32 v8, v8", "LDS 64, which nothing has stored, loaded at +0x10"),
        ("v_mov_b32 v8, 0\nglobal_load_dword v8, v8, s[6:7] offset:12", "byte 12 of 256 at 0x"),
        ("s_load_dword s8, s[6:7], 0x20\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v8, s8", "byte 32 of 256 at 0x"),
        ("v_mov_b32 v8, s20", "s20, which nothing has set"),
        ("v_add_u32 v9, v0, v30\nv_mov_b32 v8, v9", "v30, which nothing has set"),
    ],
)
def test_origins(body: str, origin: str, kernels: Kernels) -> None:
    assert (
        origin
        in kernels.fault(f"{body}\ns_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_load_dword v1, v8, s[4:5]").text
    )


def test_stored_and_loaded_again(gfx942: Kernels) -> None:
    body = """
        v_mov_b32 v2, 0
        scratch_store_dword v2, v30, off offset:8
        s_waitcnt vmcnt(0)
        scratch_load_dword v8, v2, off offset:{}
        s_waitcnt vmcnt(0)
        global_load_dword v1, v8, s[4:5]
    """
    assert "v30, which nothing has set" in gfx942.fault(body.format(8)).text
    assert "scratch 16, which nothing has stored" in gfx942.fault(body.format(16)).text
    assert not gfx942.run(body.format(8).replace("v30", "v0"))


def test_the_lane_is_named(kernels: Kernels) -> None:
    body = """
        v_mov_b32 v8, 0
        s_mov_b32 s8, 0
        s_mov_b32 s9, 0x20
        s_mov_b64 exec, s[8:9]
        v_mov_b32 v8, v9
        s_mov_b64 exec, -1
        global_load_dword v1, v8, s[4:5]
    """
    assert kernels.fault(body).lane == 37
    assert not kernels.run(body.replace("exec, -1", "exec, 1"))


# ---- what becomes of them: v1 depends on undefined bits, or not

DEFINED = {
    "and": "v_and_b32 v1, 0, v8",
    "or": "v_or_b32 v1, -1, v8",
    "shifted out": "v_and_b32 v1, 0xff, v0\nv_lshl_or_b32 v1, v8, 8, v1\nv_lshlrev_b32 v1, 24, v1",
    "multiplied": "v_mul_lo_u32 v1, 0, v8",
    "itself": "v_xor_b32 v1, v8, v8",
    "compared": "v_or_b32 v2, 1, v8\nv_cmp_eq_u32 vcc, 0, v2\ns_nop 1\nv_cndmask_b32 v1, v0, v0, vcc",
    "other halves": "s_mov_b32 s8, 0x07060100\nv_perm_b32 v8, v9, v0, s8\nv_and_b32 v1, 0xffff, v8",
    "perm": "s_mov_b32 s8, 0x07060504\nv_perm_b32 v1, v0, v8, s8",
    "bfi": "v_bfi_b32 v1, -1, v0, v8",
    "alignbit": "v_alignbit_b32 v1, v8, v0, 0\nv_alignbyte_b32 v1, v1, v1, 1",
    "bfe": "v_lshl_or_b32 v1, v8, 16, 5\nv_bfe_u32 v1, v1, 0, 16",
    "half of a register": "v_mov_b32 v8, 0\nv_mad_u16 v8, v0, v0, v0\nv_mov_b32 v1, v8",
    "op_sel": "v_lshlrev_b32 v8, 16, v0\n"
    "s_mov_b32 s8, 0xffff\nv_bfi_b32 v8, s8, v9, v8\nv_pk_add_u16 v1, v8, v8 op_sel:[1,1]",
    "sdwa": "s_mov_b32 s8, 0x07000706\nv_perm_b32 v8, v9, v0, s8\n"
    "v_mov_b32_sdwa v1, v8 dst_sel:DWORD src0_sel:BYTE_2",
    "selected": "s_mov_b64 vcc, -1\nv_cndmask_b32 v1, v8, v0, vcc",
    "kept lanes": "v_mov_b32 v1, 0\ns_mov_b64 exec, 0\nv_mov_b32 v1, v8\ns_mov_b64 exec, -1",
    "dpp": "v_mov_b32 v1, 0\nv_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf",
    "readlane": "v_writelane_b32 v8, 7, 3\ns_nop 4\nv_readlane_b32 s8, v8, 3\ns_nop 4\nv_mov_b32 v1, s8",
    "first lane": "s_mov_b64 exec, 4\nv_mov_b32 v8, 1\ns_nop 4\nv_readfirstlane_b32 s8, v8\n"
    "s_mov_b64 exec, -1\ns_nop 4\nv_mov_b32 v1, s8",
    "scalar": "s_and_b32 s8, s8, 0\ns_cselect_b32 s8, 1, 2\nv_mov_b32 v1, s8",
    "bits of s": "s_pack_ll_b32_b16 s8, s4, s20\ns_bfe_u32 s8, s8, 0x100000\nv_mov_b32 v1, s8",
    "swizzle": "ds_swizzle_b32 v1, v0 offset:swizzle(SWAP, 16)\ns_waitcnt lgkmcnt(0)",
    "bytes of LDS": "v_lshlrev_b32 v2, 2, v0\nds_write_b8 v2, v0\ns_waitcnt lgkmcnt(0)\n"
    "ds_read_u8 v1, v2\ns_waitcnt lgkmcnt(0)",
    "d16": "v_mov_b32 v1, 0\nv_mov_b32 v2, 0\nglobal_load_short_d16 v1, v2, s[4:5]\ns_waitcnt vmcnt(0)",
    "host's memory": "v_mov_b32 v2, 0\nglobal_load_dword v1, v2, s[4:5]\ns_waitcnt vmcnt(0)",
    "atomic": "v_mov_b32 v2, 0\nglobal_atomic_add v1, v2, v0, s[4:5] {return}\ns_waitcnt vmcnt(0)",
    "no lane": "s_mov_b64 exec, 0\nglobal_load_dword v9, v8, s[4:5]\ns_mov_b64 exec, -1\nv_mov_b32 v1, 0",
}
UNDEFINED = {
    "and": "v_and_b32 v1, 4, v8",
    "sum": "v_add_u32 v1, v8, v9",
    "difference": "v_sub_u32 v1, v8, v9",
    "xor": "v_xor_b32 v1, v8, v9",
    "carried": "v_or_b32 v8, 0xffff0000, v8\nv_add_co_u32 v2, vcc, 1, v8\ns_nop 1\n"
    "v_cndmask_b32 v1, 0, 1, vcc",
    "float": "v_cvt_f32_u32 v1, v8\nv_mul_f32 v1, v1, v1",
    "compared": "v_cmp_eq_u32 vcc, 0x12345678, v8\ns_nop 1\nv_cndmask_b32 v1, 0, 1, vcc",
    "below": "v_cmp_gt_i32 vcc, 0, v8\ns_nop 1\nv_cndmask_b32 v1, 0, 1, vcc",
    "wide": "v_cmp_eq_u64 vcc, v[8:9], v[10:11]\ns_nop 1\nv_cndmask_b32 v1, 0, 1, vcc",
    "selected": "s_mov_b64 vcc, 1\nv_cndmask_b32 v1, v0, v8, vcc",
    "selecting": "v_cmp_ne_u32 vcc, v8, v0\ns_nop 1\nv_cndmask_b32 v1, 1, 2, vcc",
    "perm": "s_mov_b32 s8, 0x07060500\nv_perm_b32 v1, v0, v8, s8",
    "half of a register": "v_mad_u16 v8, v0, v0, v0\nv_mov_b32 v1, v8",
    "dpp": "v_mov_b32 v1, 0\nv_mov_b32_dpp v1, v8 row_shr:1 row_mask:0xf bank_mask:0xf",
    "writelane": "v_mov_b32 v1, 0\nv_writelane_b32 v1, s8, 3",
    "readlane": "v_writelane_b32 v8, 7, 3\ns_nop 4\nv_readlane_b32 s8, v8, 4\ns_nop 4\nv_mov_b32 v1, s8",
    "scalar": "s_add_u32 s8, s9, 1\ns_cselect_b32 s8, 1, 2\ns_add_u32 s8, s9, 0\nv_mov_b32 v1, s8",
    "swizzle": "ds_swizzle_b32 v1, v8 offset:swizzle(SWAP, 16)\ns_waitcnt lgkmcnt(0)",
    "permute": "v_lshlrev_b32 v2, 2, v0\nds_bpermute_b32 v1, v2, v8\ns_waitcnt lgkmcnt(0)",
    "sign": "v_mov_b32 v2, 0\nds_read_i8 v1, v2\ns_waitcnt lgkmcnt(0)\nv_lshrrev_b32 v1, 31, v1",
    "bytes of LDS": "v_lshlrev_b32 v2, 2, v0\nds_write_b8 v2, v0\ns_waitcnt lgkmcnt(0)\n"
    "ds_read_u16 v1, v2\ns_waitcnt lgkmcnt(0)",
    "d16": "v_mov_b32 v2, 0\nglobal_load_short_d16 v1, v2, s[4:5]\ns_waitcnt vmcnt(0)\n"
    "v_lshrrev_b32 v1, 16, v1",
    "atomic": "v_mov_b32 v2, 0\nglobal_atomic_add v1, v2, v8, s[4:5] {return}\ns_waitcnt vmcnt(0)\n"
    "global_load_dword v1, v2, s[4:5]\ns_waitcnt vmcnt(0)",
}


def _body(kernels: Kernels, body: str) -> str:
    return body.replace("{return}", "glc" if kernels.arch == "gfx90a" else "sc0")


@pytest.mark.parametrize("name", DEFINED)
def test_defined(name: str, kernels: Kernels) -> None:
    assert not kernels.decides(_body(kernels, DEFINED[name]))


@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined(name: str, kernels: Kernels) -> None:
    assert kernels.decides(_body(kernels, UNDEFINED[name]))


MFMA = """
    v_mov_b32 v4, 1.0
    v_mov_b32 v5, 1.0
    v_mov_b32 v6, 0
    v_mov_b32 v7, 0
    v_mov_b32 v8, 0
    v_mov_b32 v9, 0
    s_mov_b64 exec, {lanes}
    v_mov_b32 v{operand}, v30
    s_mov_b64 exec, -1
    s_nop 4
    v_mfma_f32_16x16x4f32 v[6:9], v4, v5, v[6:9]
    s_nop 15
    s_nop 4
    s_mov_b64 exec, {seen}
    v_mov_b32 v1, 0
    v_mov_b32 v1, v{result}
    v_cmp_ne_u32 vcc, 0, v1
    s_nop 4
    s_mov_b64 exec, vcc
"""


def test_rows_and_columns_of_a_matrix(gfx942: Kernels) -> None:
    # Row 3 of A stands in lane 3, of D in register 3 of the first 16 lanes. Column 5 of B stands in lane 5,
    # of D in lanes 5, 21, 37 and 53 of every register.
    row, column = MFMA.replace("{lanes}", "8").replace("{operand}", "4"), MFMA.replace("{lanes}", "32")
    column = column.replace("{operand}", "5")
    assert gfx942.run(row.format(result=9, seen="0xffff"))
    assert not gfx942.run(row.format(result=8, seen="-1"))
    assert not gfx942.run(row.format(result=9, seen="0xffff0000"))
    for register in range(6, 10):
        assert gfx942.run(column.format(result=register, seen="32"))
        assert not gfx942.run(column.format(result=register, seen="31"))
