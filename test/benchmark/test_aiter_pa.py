# SPDX-License-Identifier: MIT
"""benchmark/aiter_pa.py: what objects are given, and what their results are compared with."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark import aiter_pa
from benchmark.aiter import bf16_values, e4m3_values, e4m3fnuz_values
from benchmark.aiter_pa import HDIM, HEADS, KEY_HEADS, OBJECTS, PAGE, Decoder

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
KEYS = (70, 16, 1)
BY_KIND = {(one.target, one.kind): one for one in OBJECTS}


class Memory:
    """Allocations of a simulator that is not there: addresses of what was uploaded."""

    def __init__(self) -> None:
        self.uploads: dict[int, bytes] = {}

    def malloc(self, size: int) -> int:
        return self.upload(bytes(size))

    def upload(self, data: bytes) -> int:
        self.uploads[1000 + len(self.uploads)] = data
        return 999 + len(self.uploads)


@pytest.mark.parametrize("one", BY_KIND.values(), ids=lambda one: f"{one.target}-{one.kind}")
def test_argument_is_that_of_pa_fwd(one: Decoder) -> None:
    tensors = aiter_pa.random_tensors(one, KEYS)
    memory: Any = Memory()
    launch = aiter_pa.launch_decoder(memory, one, KEYS, tensors)
    assert launch.workgroups == (KEY_HEADS, len(KEYS), 1)
    assert len(launch.argument) == 17 * 16  # struct KernelArgs
    members = [launch.argument[at : at + 16] for at in range(0, 17 * 16, 16)]
    assert all(member[8:] == bytes(8) for member in members)
    pointers = [struct.unpack("<Q8x", member)[0] for member in members[:8]]
    given = [memory.uploads.get(pointer, b"") for pointer in pointers[1:]]
    names = ("q_ptr", "k_ptr", "v_ptr", "block_table_ptr", "seqlen_k_ptr", "k_scale_ptr", "v_scale_ptr")
    for name, data in zip(names, given):
        assert data.startswith(tensors.get(name, b"")), name
        assert bool(data) == (name in tensors), name
    assert struct.unpack("<f12x", members[8])[0] == pytest.approx(np.log2(np.e) / np.sqrt(HDIM))
    size = 2 if one.kind == "bf16" else 1
    strides = [HEADS * HDIM * 2, KEY_HEADS * PAGE * HDIM * size, PAGE * HDIM * size]
    numbers = [struct.unpack("<I12x", member)[0] for member in members[9:]]
    assert numbers == [5, KEY_HEADS, *strides, 0, HEADS // KEY_HEADS, 0]


def decode(one: Decoder, tensors: dict[str, bytes], sequence: int, head: int) -> Any:
    """In fp64, key by key; AITER says of K [page, head, D/x, P, x], of V [page, head, P/x, D, x]."""
    x = 8 if one.kind == "bf16" else 16
    kinds = {"bf16": np.uint16, "fp8": np.uint8, "int8": np.int8}
    values = {
        "bf16": bf16_values,
        "fp8": e4m3fnuz_values if one.target == "gfx942" else e4m3_values,
        "int8": lambda numbers: numbers.astype(np.float64),
    }[one.kind]
    table = np.frombuffer(tensors["block_table_ptr"], np.int32).reshape(len(KEYS), -1)[sequence]
    k = np.frombuffer(tensors["k_ptr"], kinds[one.kind]).reshape(-1, KEY_HEADS, HDIM // x, PAGE, x)
    v = np.frombuffer(tensors["v_ptr"], kinds[one.kind]).reshape(-1, KEY_HEADS, PAGE // x, HDIM, x)
    q = bf16_values(np.frombuffer(tensors["q_ptr"], np.uint16)).reshape(-1, HEADS, HDIM)[sequence, head]
    group = head // (HEADS // KEY_HEADS)
    scores, rows = [], []
    for key in range(KEYS[sequence]):
        page, row = table[key // PAGE], key % PAGE
        scale = {"k": 1.0, "v": 1.0}
        if one.kind != "bf16":
            for name in scale:
                scales = np.frombuffer(tensors[f"{name}_scale_ptr"], np.float32)
                scale[name] = float(scales.reshape(-1, KEY_HEADS, PAGE)[page, group, row])
        scores.append(values(k[page, group, :, row].ravel()) @ q * scale["k"] / np.sqrt(HDIM))
        rows.append(values(v[page, group, row // x, :, row % x]) * scale["v"])
    p = np.exp(np.array(scores) - max(scores))
    return p / p.sum() @ np.array(rows)


@pytest.mark.skipif(not (BUILD / "libtessera.so").exists(), reason="no libtessera.so is built")
@pytest.mark.parametrize("one", BY_KIND.values(), ids=lambda one: f"{one.target}-{one.kind}")
def test_what_results_are_compared_with(one: Decoder) -> None:
    tensors = aiter_pa.random_tensors(one, KEYS)
    got = aiter_pa.expected(BUILD, one, KEYS, tensors)
    for sequence in range(len(KEYS)):
        for head in (0, 3, 4, HEADS - 1):
            want = decode(one, tensors, sequence, head)
            assert np.abs(got[sequence, head] - want).max() < 0.01 * np.abs(want).max()


def test_counts_are_for_each_key_of_a_key_head() -> None:
    one = OBJECTS[0]
    run = {"cycles": 1000, "ms": 0.5, **dict.fromkeys(aiter_pa.KINDS, 2 * KEY_HEADS * aiter_pa.KEYS)}
    line = aiter_pa.figures(one, 2, "nhd", "fmha_fwd_d128_bf16_gfx942_b32_w1", run)
    assert [line[kind] for kind in aiter_pa.KINDS] == [1.0] * 5
    other = line | {"cycles": 3000, "name": "fmha_fwd_d128_bf16_gfx942_b64_w2", "vector": 2.5}
    assert aiter_pa.row([line, other]) == (
        "| gfx942 bf16 | nhd | `b32_w1`, `b64_w2` | 1, 500 | 3, 500 | 1.00 | 2.50 | 1.00 | 1.00 | 1.00 |"
    )
