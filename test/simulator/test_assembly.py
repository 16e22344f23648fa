# SPDX-License-Identifier: MIT
"""Things that hand-written kernels do and compilers do not."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import toolchain
from sim import ARCHS, Sim, pack

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)


def run(
    body: str,
    arch: str,
    library: Path,
    tmp_path: Path,
    *,
    vgprs: int = 64,
    offset: int = 64,
    sanitize: bool = False,
) -> list[int]:
    """A wave runs `body`, which leaves a word of each lane in v1; v0 is the lane. Returns the words."""
    text = f"""
        s_load_dwordx2 s[2:3], s[0:1], 0x0
        s_waitcnt lgkmcnt(0)
        {body}
        v_lshlrev_b32 v0, 2, v0
        global_store_dword v0, v1, s[2:3]
        s_endpgm
    """
    image = toolchain.assemble(text, arch, tmp_path / "kernel.co", vgprs=vgprs, accum_offset=offset)
    with Sim(library, arch, sanitize=sanitize) as sim:
        out = sim.malloc(256)
        sim.launch(sim.load(image), "kernel", (64, 1, 1), (64, 1, 1), pack(out, layout="P"))
        return list(struct.unpack("64I", sim.download(out, 256)))


@pytest.mark.parametrize("arch", ARCHS)
def test_vgprs_beyond_the_accumulation_offset_are_agprs(arch: str, library: Path, tmp_path: Path) -> None:
    body = """
        v_add_u32 v11, 5, v0
        v_accvgpr_write_b32 a1, v0
        s_nop 4
        v_add_u32 v1, v9, v11
        v_accvgpr_read_b32 v2, a3
        s_nop 4
        v_lshl_add_u32 v1, v2, 16, v1
    """
    words = run(body, arch, library, tmp_path, vgprs=16, offset=8)
    assert words == [(lane + 5) << 16 | 2 * lane + 5 for lane in range(64)]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("sanitize", [False, True])
def test_setvskip_passes_vector_instructions_by(
    arch: str, sanitize: bool, library: Path, tmp_path: Path
) -> None:
    body = """
        v_mov_b32 v1, 1
        s_mov_b32 s4, 0x4
        s_setvskip s4, 2
        v_add_u32 v1, 2, v1
        s_add_u32 s4, s4, 1
        v_add_u32 v1, 4, v1
        s_setvskip s4, 1
        v_add_u32 v1, s4, v1
    """
    assert run(body, arch, library, tmp_path, sanitize=sanitize) == [6] * 64
