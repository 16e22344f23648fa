# SPDX-License-Identifier: MIT
"""How a wave starts: user and system SGPRs for every enable bit, preloaded arguments, work-item ids, MODE.

Expected values are from LLVM's "User Guide for AMDGPU Backend", sections "Initial Kernel Execution State"
(tables of the SGPR and VGPR register set up order) and "Kernel Descriptor"; for MODE from AMD's "Instinct
MI300 Instruction Set Architecture", section "Mode register".
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
import toolchain
from sim import ARCHS, Sim

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

SGPRS = 32  # that the kernel shows


def show(pointer: int) -> str:
    """Stores s0 to s31, v0 and MODE of each wave, as they come, to the argument at s[pointer:pointer + 1]."""
    keep = "\n".join(f"v_writelane_b32 v1, s{i}, {i}" for i in range(SGPRS))
    return f"""
        {keep}
        s_getreg_b32 s40, hwreg(HW_REG_MODE)
        v_writelane_b32 v1, s40, {SGPRS}
        s_mov_b64 s[42:43], exec
        v_writelane_b32 v1, s42, {SGPRS + 1}
        v_writelane_b32 v1, s43, {SGPRS + 2}
        s_mov_b64 exec, -1
        s_load_dwordx2 s[36:37], s[{pointer}:{pointer + 1}], 0x0
        s_waitcnt lgkmcnt(0)
        v_mov_b32 v2, 0
        v_mov_b32 v3, 0
        s_mov_b64 exec, 1
        v_mov_b32 v4, 1
        global_atomic_add v3, v2, v4, s[36:37] {{returns}}
        s_waitcnt vmcnt(0)
        v_readfirstlane_b32 s44, v3
        s_mov_b64 exec, -1
        v_mbcnt_lo_u32_b32 v5, -1, 0
        v_mbcnt_hi_u32_b32 v5, -1, v5
        v_lshlrev_b32 v5, 2, v5
        s_lshl_b32 s44, s44, 9
        s_add_u32 s44, s44, 256
        v_add_u32 v5, s44, v5
        s_nop 4
        global_store_dword v5, v1, s[36:37]
        global_store_dword v5, v0, s[36:37] offset:256
        s_endpgm
    """


@dataclass
class Start:
    """The registers that a wave found at its start."""

    sgprs: list[int]
    mode: int
    exec_: int
    v0: list[int]

    def pair(self, index: int) -> int:
        return self.sgprs[index] | self.sgprs[index + 1] << 32


def launch(
    arch: str,
    library: Path,
    folder: Path,
    directives: str,
    pointer: int,
    *,
    grid: tuple[int, int, int] = (64, 1, 1),
    block: tuple[int, int, int] = (64, 1, 1),
    private: int = 0,
    args: bytes = bytes(24),
) -> list[Start]:
    """Runs the kernel that shows how its waves start."""
    text = show(pointer).replace("{returns}", "sc0" if arch != "gfx90a" else "glc")
    if "kernarg_preload" in directives:
        text = ".p2align 8\ns_branch started\n.fill 63, 4, 0xbf800000\nstarted:\n" + text
    image = toolchain.assemble(
        text, arch, folder / "start.co", kernarg=32, private=private, directives=directives
    )
    groups = [-(-g // b) for g, b in zip(grid, block, strict=True)]
    waves = -(-block[0] * block[1] * block[2] // 64) * groups[0] * groups[1] * groups[2]
    with Sim(library, arch) as sim:
        out = sim.upload(bytes(256 + 512 * waves))
        given = struct.pack("<Q", out) + args
        sim.launch(sim.load(image), "kernel", grid, block, given)
        count = int.from_bytes(sim.download(out, 4), "little")
        starts = []
        for i in range(count):
            words = struct.unpack("<128I", sim.download(out + 256 + 512 * i, 512))
            exec_ = words[SGPRS + 1] | words[SGPRS + 2] << 32
            starts.append(Start(list(words[:SGPRS]), words[SGPRS], exec_, list(words[64:])))
        return starts


# In the order in which their registers come, with how many they take.
USER = {
    "private_segment_buffer": 4,
    "dispatch_ptr": 2,
    "queue_ptr": 2,
    "kernarg_segment_ptr": 2,
    "dispatch_id": 2,
    "flat_scratch_init": 2,
    "private_segment_size": 1,
}
SYSTEM = ("workgroup_id_x", "workgroup_id_y", "workgroup_id_z", "workgroup_info")


def choices(arch: str) -> list[tuple[str, ...]]:
    """Each optional register alone, all together, and none. gfx942's scratch needs no registers."""
    names = [n for n in USER if n != "kernarg_segment_ptr"]
    if arch != "gfx90a":
        names = [n for n in names if n not in ("private_segment_buffer", "flat_scratch_init")]
    return [(), *((n,) for n in names), tuple(names), *itertools.combinations(names, 2)]


CASES = [(arch, chosen) for arch in ARCHS for chosen in choices(arch)]


@pytest.mark.parametrize(("arch", "chosen"), CASES, ids=lambda value: str(value).replace("'", ""))
def test_user_sgprs(arch: str, chosen: tuple[str, ...], library: Path, tmp_path: Path) -> None:
    """The enabled user SGPRs come in the documented order without gaps, followed by the system's."""
    at, first = 0, {}
    for name, size in USER.items():
        if name in chosen or name == "kernarg_segment_ptr":
            first[name] = at
            at += size
    directives = "\n".join(f".amdhsa_user_sgpr_{name} 1" for name in chosen)
    directives += "\n.amdhsa_system_sgpr_workgroup_id_y 1"
    block, grid, private = (64, 2, 1), (64, 4, 1), 48
    starts = launch(
        arch,
        library,
        tmp_path,
        directives,
        first["kernarg_segment_ptr"],
        grid=grid,
        block=block,
        private=private,
    )
    kernargs = {start.pair(first["kernarg_segment_ptr"]) for start in starts}
    assert len(kernargs) == 1 and kernargs.pop() % 16 == 0
    seen = set()
    for start in starts:
        seen.add((start.sgprs[at], start.sgprs[at + 1]))
        if "dispatch_id" in first:
            assert start.pair(first["dispatch_id"]) == 0
        if "private_segment_size" in first:
            assert start.sgprs[first["private_segment_size"]] == private
        for name in ("dispatch_ptr", "queue_ptr", "flat_scratch_init"):
            if name in first:
                assert start.pair(first[name]) % 4 == 0 and start.pair(first[name]) != 0
        if "private_segment_buffer" in first:
            words = start.sgprs[first["private_segment_buffer"] :]
            # Swizzled, no stride, lanes 64 words apart, the lane added.
            assert words[1] >> 31 == 1 and words[1] >> 16 & 0x3FFF == 0
            assert words[3] >> 21 & 3 == 3 and words[3] >> 23 & 1 == 1
    assert seen == {(0, 0), (0, 1)}  # workgroup ids x and y


POINTED = """
    s_load_dwordx16 s[16:31], s[0:1], 0x0
    s_load_dwordx2 s[32:33], s[2:3], 0x40
    s_load_dwordx2 s[34:35], s[4:5], 0x0
    s_waitcnt lgkmcnt(0)
    {moves}
    s_mov_b64 s[36:37], src_shared_base
    v_writelane_b32 v1, s37, 18
    s_mov_b64 s[36:37], src_private_base
    v_writelane_b32 v1, s37, 19
    v_writelane_b32 v1, s4, 20
    v_writelane_b32 v1, s5, 21
    v_lshlrev_b32 v2, 2, v0
    s_nop 4
    global_store_dword v2, v1, s[34:35]
    s_endpgm
"""


@pytest.mark.parametrize("arch", ARCHS)
def test_packet_and_queue(arch: str, library: Path, tmp_path: Path) -> None:
    """hsa_kernel_dispatch_packet_t and the apertures of amd_queue_t."""
    moves = "\n".join(f"v_writelane_b32 v1, s{16 + i}, {i}" for i in range(18))
    text = POINTED.format(moves=moves)
    directives = ".amdhsa_user_sgpr_dispatch_ptr 1\n.amdhsa_user_sgpr_queue_ptr 1"
    image = toolchain.assemble(
        text, arch, tmp_path / "packet.co", private=32, directives=directives, lds=512, kernarg=8
    )
    with Sim(library, arch) as sim:
        out = sim.malloc(256)
        args = struct.pack("<Q", out)
        sim.launch(sim.load(image), "kernel", (60, 1, 1), (64, 1, 1), args, dynamic_lds=100)
        words = struct.unpack("<64I", sim.download(out, 256))
    packet = struct.pack("<16I", *words[:16])
    header, setup, *block = struct.unpack_from("<5H", packet)
    assert header & 0xFF == 2 and setup & 3 == 1  # a kernel dispatch of one dimension
    assert block == [64, 1, 1]
    grid, private, group = struct.unpack_from("<3I", packet, 12), *struct.unpack_from("<2I", packet, 24)
    assert (grid, private, group) == ((60, 1, 1), 32, 612)
    kernel, kernarg = struct.unpack_from("<2Q", packet, 32)
    assert kernel % 64 == 0 and kernarg == words[20] | words[21] << 32
    assert (
        words[16:18] == words[18:20]
    )  # the queue's apertures are those of src_shared_base and src_private_base


AXES = [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 1), (1, 0, 1, 0), (1, 1, 1, 1), (0, 0, 0, 1)]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("axes", AXES)
def test_system_sgprs(arch: str, axes: tuple[int, int, int, int], library: Path, tmp_path: Path) -> None:
    """Workgroup ids and info, in this order, behind the user SGPRs; gfx90a's scratch offset behind them."""
    directives = "\n".join(f".amdhsa_system_sgpr_{name} {on}" for name, on in zip(SYSTEM, axes, strict=True))
    scratch = arch == "gfx90a"
    if scratch:
        directives += "\n.amdhsa_system_sgpr_private_segment_wavefront_offset 1"
    grid, block = (200, 2, 3), (100, 1, 1)  # workgroups of two waves
    starts = launch(arch, library, tmp_path, directives, 0, grid=grid, block=block, private=16)
    got = []
    enabled = [i for i in range(4) if axes[i]]
    for start in starts:
        got.append(tuple(start.sgprs[2 : 2 + len(enabled) + scratch]))
    expected = []
    for x, y, z, wave in itertools.product(range(2), range(2), range(3), range(2)):
        # Info: the first wave's flag in bit 31, how many waves in the low bits.
        every = (x, y, z, (wave == 0) << 31 | 2)
        expected.append((*(every[i] for i in enabled), *([64 * 16 * wave] if scratch else [])))
    assert sorted(got) == sorted(expected)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dimensions", [0, 1, 2])
def test_work_item_ids(arch: str, dimensions: int, library: Path, tmp_path: Path) -> None:
    """v0 packs x, y and z in 10 bits each; partial workgroups number their own work-items."""
    directives = f".amdhsa_system_vgpr_workitem_id {dimensions}"
    starts = launch(arch, library, tmp_path, directives, 0, grid=(7, 5, 3), block=(4, 4, 3))
    seen, expected = [], []
    for start in starts:
        active = [lane for lane in range(64) if start.exec_ >> lane & 1]
        assert active == list(range(len(active)))
        seen.append([start.v0[lane] for lane in active])
    for width, height in itertools.product((4, 3), (4, 1)):
        items = itertools.product(range(3), range(height), range(width))
        parts = [(x, y if dimensions > 0 else 0, z if dimensions > 1 else 0) for z, y, x in items]
        expected.append([x | y << 10 | z << 20 for x, y, z in parts])
    assert sorted(seen) == sorted(expected)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(("length", "offset"), [(1, 0), (2, 0), (6, 0), (3, 2), (4, 4)])
def test_preloaded_arguments(arch: str, length: int, offset: int, library: Path, tmp_path: Path) -> None:
    """Words of the kernarg segment follow the other user SGPRs; the kernel starts 256 bytes further."""
    directives = (
        f".amdhsa_user_sgpr_kernarg_preload_length {length}\n"
        f".amdhsa_user_sgpr_kernarg_preload_offset {offset}"
    )
    words = [0x11111111 * i for i in range(1, 7)]
    args = struct.pack("<6I", *words)
    (start,) = launch(arch, library, tmp_path, directives, 0, args=args)
    kernarg = [None, None, *words]  # behind the pointer for the results
    for got, wanted in zip(start.sgprs[2 : 2 + length], kernarg[offset : offset + length], strict=True):
        assert wanted is None or got == wanted
    assert start.sgprs[2 + length] == 0  # the workgroup's id


MODES = {
    # Of the descriptor: the bits of MODE that they become.
    "float_round_mode_32 1": (0, 3, 1),
    "float_round_mode_32 3": (0, 3, 3),
    "float_round_mode_16_64 2": (2, 3, 2),
    "float_denorm_mode_32 3": (4, 3, 3),
    "float_denorm_mode_32 1": (4, 3, 1),
    "float_denorm_mode_16_64 0": (6, 3, 0),
    "dx10_clamp 0": (8, 1, 0),
    "ieee_mode 0": (9, 1, 0),
    "exception_fp_ieee_invalid_op 1": (12, 1, 1),
    "exception_fp_denorm_src 1": (13, 1, 1),
    "exception_fp_ieee_div_zero 1": (14, 1, 1),
    "exception_fp_ieee_overflow 1": (15, 1, 1),
    "exception_fp_ieee_underflow 1": (16, 1, 1),
    "exception_fp_ieee_inexact 1": (17, 1, 1),
    "exception_int_div_zero 1": (18, 1, 1),
    "fp16_overflow 1": (23, 1, 1),
}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("directive", MODES)
def test_mode(arch: str, directive: str, library: Path, tmp_path: Path) -> None:
    (start,) = launch(arch, library, tmp_path, f".amdhsa_{directive}", 0)
    shift, mask, value = MODES[directive]
    default = 0x3C0  # denormals of 16 and 64 bits, DX10_CLAMP, IEEE
    assert start.mode == default & ~(mask << shift) | value << shift
