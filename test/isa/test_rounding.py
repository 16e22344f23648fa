# SPDX-License-Identifier: MIT
"""How p is rounded to bf16 is seen in results, in the simulator: how far off they are, to which side."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from codegen.resources import read_resources
from codegen.spec import ROOT

sys.path[:0] = [str(ROOT / folder) for folder in ("test/simulator", "test/mutation", "test/codegen")]

import waits  # noqa: E402
from device import compile_object  # noqa: E402
from sim import ARCHS, Sim, find_library  # noqa: E402

D, QUERIES, KEYS, HEADS = 64, 40, 300, 2
UNBOUNDED = 2**30 - 1


def bf16(x: np.ndarray) -> np.ndarray:
    """Rounds to nearest even, as words of 16 bits."""
    words = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((words + 0x7FFF + (words >> 16 & 1)) >> 16).astype(np.uint16)


def floats(words: np.ndarray) -> np.ndarray:
    return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def inputs() -> list[np.ndarray]:
    """q, k, v as bf16; v is positive, so that errors of p do not cancel."""
    source = np.random.default_rng(1)
    q, k = source.normal(size=(HEADS, QUERIES, D)), source.normal(size=(KEYS, D))
    return [bf16(x) for x in (q, k, source.uniform(0.5, 1, size=(KEYS, D)))]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    p = np.exp(floats(q) @ floats(k).T / np.sqrt(D))
    return p @ floats(v) / p.sum(axis=-1, keepdims=True)


def errors(arch: str, rounding: str, folder: Path) -> tuple[np.ndarray, int]:
    """Relative errors of o, and vector instructions of the main loop."""
    library = find_library()
    if library is None:
        pytest.skip("needs libtessera_sim.so")
    usual = {"gfx950": "rtne"}.get(arch, "rtna")
    name = f"fmha_fwd_d64_bf16__{arch}_b64x32x64_w2_qr_o3" + (f"_{rounding}" if rounding != usual else "")
    generate = [sys.executable, ROOT / "generate.py", "--rounding", rounding, "--render", name]
    text = subprocess.run(generate, check=True, capture_output=True, text=True).stdout
    file = compile_object(text, folder / f"{name}.co", arch)
    resources = read_resources(file)
    assert resources.loop is not None
    fmha = waits.Fmha(f"tessera_k_{name.replace('__', '_')}", "bf16", (D, D), (64, 32, 1), 2)
    fmha.heads, fmha.queries, fmha.keys = HEADS, QUERIES, KEYS
    q, k, v = inputs()
    with Sim(library, arch) as sim:
        module, args = sim.load(file.read_bytes()), fmha.tensors(sim)
        args.q, args.k, args.v = (sim.upload(x.tobytes()) for x in (q, k, v))
        args.mask_x = args.mask_y = UNBOUNDED
        sim.launch(module, fmha.kernel, (HEADS * 128, 1, 1), (128, 1, 1), bytes(args))
        assert not sim.reports
        o = np.frombuffer(sim.download(args.o, 2 * HEADS * QUERIES * D), np.uint16).reshape(HEADS, QUERIES, D)
    right = attention(q, k, v)
    return (floats(o) - right) / right, resources.loop.valu


@pytest.mark.parametrize("arch", ARCHS)
def test_rounding_of_p(arch: str, tmp_path: Path) -> None:
    """Rounding p or o to nearest costs at most 2^-9; rounding p towards zero 2^-8, and o is too small."""
    nearest, valu = errors(arch, "rtne", tmp_path)
    away, valu_away = errors(arch, "rtna", tmp_path)
    zero, valu_zero = errors(arch, "rtz", tmp_path)
    assert np.abs(nearest).max() < 2.0**-8 and np.abs(away).max() < 2.0**-8
    assert abs(nearest.mean()) < 2.0**-13 and abs(away.mean()) < 2.0**-13
    assert zero.min() > -(2.0**-8 + 2.0**-9) and zero.max() < 2.0**-9
    assert -(2.0**-8) < zero.mean() < -(2.0**-10)
    assert valu_zero <= valu_away - 16  # one addition for each of 16 scores of a lane
    assert valu_zero <= valu if arch == "gfx950" else valu_away < valu
