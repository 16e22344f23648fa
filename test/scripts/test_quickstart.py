# SPDX-License-Identifier: MIT
"""scripts/quickstart.sh: the targets that it takes for a processor."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = (Path(__file__).resolve().parents[2] / "scripts" / "quickstart.sh").read_text()
FOUND = re.search(r"^native_target\(\) \{\n.*?^\}\n", SCRIPT, re.M | re.S)
assert FOUND
FUNCTION = FOUND[0]

V2 = "fpu sse2 ssse3 sse4_1 sse4_2 popcnt"
V3 = f"{V2} fma movbe f16c avx bmi1 avx2 bmi2 abm"
V4 = f"{V3} avx512f avx512dq avx512cd avx512bw avx512vl"
BF16 = f"{V4} avx_vnni avx512_bf16 avx512vbmi"


@pytest.mark.parametrize(
    ("machine", "line", "target"),
    [
        ("x86_64", f"flags\t\t: {BF16} amx_bf16 amx_tile amx_int8", "x86-64-v4-amx,x86-64-v4"),
        ("x86_64", f"flags\t\t: {BF16}", "x86-64-v4"),
        ("x86_64", f"flags\t\t: {V4}", "x86-64-v4"),
        ("x86_64", f"flags\t\t: {V3} avx512f avx512bw_no avx512vl", "x86-64-v3"),
        ("x86_64", f"flags\t\t: {V3}", "x86-64-v3"),
        ("x86_64", f"flags\t\t: {V3.replace('avx2', 'avx')}", "x86-64-v2"),
        ("x86_64", f"flags\t\t: {V2}", "x86-64-v2"),
        ("x86_64", "flags\t\t: fpu sse2", "portable"),
        ("i686", f"flags\t\t: {V3}", "portable"),
        ("aarch64", "Features\t: fp asimd", "armv8-a"),
        ("riscv64", "isa\t\t: rv64imafdc", "portable"),
    ],
)
def test_native_target(tmp_path: Path, machine: str, line: str, target: str) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\n{line}\nbugs\t\t:\n\nprocessor\t: 1\n{line}\n")
    script = f"set -eu\nuname() {{ echo {machine}; }}\n{FUNCTION}native_target '{cpuinfo}'"
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == f"{target}\n" and said.stderr == ""
