# SPDX-License-Identifier: MIT
"""Emitted instances for gfx950, compiled for tests of what their waves do."""

from __future__ import annotations

from pathlib import Path

import pytest
import toolchain

from codegen.render import instance_source
from codegen.spec import ROOT, Instance


def build(instance: Instance, folder: Path) -> Path:
    """The instance's code object, named after it."""
    if toolchain.ZIGLANG is None:
        pytest.skip("needs PyPI's ziglang")
    source, made = folder / instance.file, folder / f"{instance.name}.co"
    source.write_text(instance_source(instance), encoding="utf-8")
    flags = ["-std=c11", "-O3", "-I", str(ROOT / "include"), "-mcode-object-version=5"]
    toolchain.build_device(toolchain.compilers()[0], source, "gfx950", flags, made)
    return made
