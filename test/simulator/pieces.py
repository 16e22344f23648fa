# SPDX-License-Identifier: MIT
"""Pieces of assembly, many in one kernel, and the words that each leaves in registers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import toolchain
from sim import Report, Sim, SimError, pack

LANES = 64
ALL = (1 << 64) - 1
M32 = (1 << 32) - 1


@dataclass
class Bench:
    """A bench that runs pieces: an architecture, the library, a folder, and the kernel's resources.

    A piece may use s[8:95] and v[4:63]; its lane is in v0 and the address of `data` in s[4:5]. It starts with
    EXEC all ones and leaves its results in v4 and following.
    """

    arch: str
    library: Path
    folder: Path
    lds: int = 0
    private: int = 0
    directives: str = ""
    prologue: str = ""  # runs first; may use what the directives ask for
    memory: bytes = field(default=b"", init=False)  # `data` afterwards

    def assemble(self, pieces: Sequence[str], words: int, lanes: int) -> bytes:
        """One kernel of all pieces."""
        assert words * 4 * lanes <= 4096
        text = [
            self.prologue,
            "s_load_dwordx4 s[4:7], s[0:1], 0x0",
            "s_waitcnt lgkmcnt(0)",
            "s_mov_b64 s[2:3], s[4:5]",
            "s_mov_b64 s[4:5], s[6:7]",
            "v_lshlrev_b32 v2, 2, v0",
        ]
        stride = 4 * lanes
        for piece in pieces:
            text.append(f"s_mov_b64 exec, -1\n{piece}\ns_waitcnt vmcnt(0) lgkmcnt(0)")
            text.append(f"s_mov_b64 exec, {hex((1 << lanes) - 1) if lanes < 32 else -1}\ns_nop 4")
            for word in range(words):
                text.append(f"global_store_dword v2, v{4 + word}, s[2:3] offset:{word * stride}")
            text.append(f"v_add_u32 v2, {words * stride}, v2")
        text.append("s_endpgm")
        return toolchain.assemble(
            "\n".join(text),
            self.arch,
            self.folder / "pieces.co",
            lds=self.lds,
            kernarg=16,
            private=self.private,
            directives=self.directives,
        )

    def launch(self, sim: Sim, image: bytes, args: bytes) -> None:
        """Runs one wave."""
        wave = (LANES, 1, 1)
        sim.launch(sim.load(image), "kernel", wave, wave, args, max_instructions=1_000_000)

    def run(
        self, pieces: Sequence[str], words: int, *, lanes: int = LANES, data: bytes = bytes(64)
    ) -> list[list[list[int]]]:
        """Runs one wave; returns for each piece, and each of its words, the first lanes' values."""
        image = self.assemble(pieces, words, lanes)
        size = len(pieces) * words * 4 * lanes
        with Sim(self.library, self.arch) as sim:
            out, given = sim.malloc(size), sim.upload(data)
            self.launch(sim, image, pack(out, given, layout="PP"))
            flat = struct.unpack(f"<{size // 4}I", sim.download(out, size))
            self.memory = sim.download(given, len(data))
        rows = [list(flat[i : i + lanes]) for i in range(0, len(flat), lanes)]
        return [rows[i : i + words] for i in range(0, len(rows), words)]


def fault_of(bench: Bench, piece: str, *, data: bytes = bytes(64)) -> Report:
    """Runs a piece that must end in a fault, and returns its report."""
    image = bench.assemble([piece], 0, 1)
    with Sim(bench.library, bench.arch) as sim:
        args = pack(sim.malloc(4096), sim.upload(data), layout="PP")
        with pytest.raises(SimError) as raised:
            bench.launch(sim, image, args)
        (report,) = sim.reports
        assert report.text == str(raised.value)
        return report


def set_sgprs(first: int, value: int, count: int = 1) -> str:
    """Puts a value into SGPRs."""
    return "\n".join(f"s_mov_b32 s{first + i}, {value >> 32 * i & M32:#x}" for i in range(count))


def set_scc(value: int) -> str:
    """Sets SCC."""
    return f"s_cmp_eq_u32 0, {1 - value}"


def show_sgprs(registers: Sequence[str]) -> str:
    """Leaves scalar registers where Bench.run() looks."""
    return "\n".join(f"v_mov_b32 v{4 + i}, {name}" for i, name in enumerate(registers))
