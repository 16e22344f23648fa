# SPDX-License-Identifier: MIT
"""The clock takes as long over micro-kernels as GPUs were measured to take, within 5 %."""

from __future__ import annotations

from pathlib import Path

import pytest
import toolchain
from measured import KERNELS, WAIT_SLOT
from micro_kernels import MicroKernels
from sim import ARCHS

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

NAMED = {kernel.name: kernel for kernel in KERNELS}


@pytest.fixture(scope="module")
def built(library: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, MicroKernels]:
    folder = tmp_path_factory.mktemp("micro")
    return {
        arch: MicroKernels(arch, library, folder, [k for k in KERNELS if arch in k.archs]) for arch in ARCHS
    }


@pytest.mark.parametrize(("name", "arch"), [(k.name, arch) for k in KERNELS for arch in k.archs])
def test_cycles(built: dict[str, MicroKernels], name: str, arch: str) -> None:
    kernel = NAMED[name]
    assert built[arch].cycles(kernel) == pytest.approx(kernel.cycles, rel=0.05), kernel.source


def test_latency_of_hbm(built: dict[str, MicroKernels], monkeypatch: pytest.MonkeyPatch) -> None:
    """gcnasm measured 622 cycles over 512 MB, half of which Infinity Cache holds."""
    kernel = NAMED["latency of Infinity Cache"]
    cached = built["gfx942"].cycles(kernel)
    monkeypatch.setenv("TESSERA_SIM_PARAMETERS", "mall_megabytes=0")
    assert (cached + built["gfx942"].cycles(kernel)) / 2 == pytest.approx(622 + WAIT_SLOT, rel=0.05)
