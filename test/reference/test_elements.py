# SPDX-License-Identifier: MIT
"""Conversions of elements against numpy, every code of each type."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from formats import bf16_values, e2m1_values, e4m3_values, e4m3fnuz_values  # noqa: E402


def test_decode_every_code(library: ctypes.CDLL) -> None:
    all16, all8 = np.arange(65536, dtype=np.uint16), np.arange(256, dtype=np.uint8)
    for name, codes, want in [
        ("fp16", all16, all16.view(np.float16).astype(np.float64)),
        ("bf16", all16, bf16_values(all16)),
        ("e4m3", all8, e4m3_values(all8)),
        ("e4m3fnuz", all8, e4m3fnuz_values(all8)),
        ("e2m1", all8[:16], e2m1_values(all8[:16])),
        ("e8m0", all8, np.where(all8 == 255, np.nan, 2.0 ** (all8.astype(np.float64) - 127))),
    ]:
        decode = getattr(library, f"element_decode_{name}")
        np.testing.assert_array_equal([decode(int(c)) for c in codes], want, err_msg=name)


def test_landmarks_of_fp8(library: ctypes.CDLL) -> None:
    """1, the greatest, the least normal and the least number, as the formats' descriptions give them."""
    decode = [library.element_decode_e4m3, library.element_decode_e4m3fnuz]
    assert [decode[0](code) for code in (0x38, 0x7E, 0x08, 0x01)] == [1, 448, 2.0**-6, 2.0**-9]
    assert [decode[1](code) for code in (0x40, 0x7F, 0x08, 0x01)] == [1, 240, 2.0**-7, 2.0**-10]
    assert [sum(np.isnan(one(code)) for code in range(256)) for one in decode] == [2, 1]


def nearest_code(values: Any, x: float) -> int:
    """By exhaustion: the code of 0 .. n with the nearest value, the even one where two are as near."""
    distance = np.abs(values - x)
    best = np.flatnonzero(distance == distance.min())
    return int(best[0] if best[0] % 2 == 0 else best[-1])


def test_encode_rounds_to_nearest_even(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(7)
    samples = np.concatenate([rng.normal(0, 10.0**e, 400) for e in range(-9, 8)])
    halves = (np.arange(0, 4096, dtype=np.uint16) * 8).view(np.float16).astype(np.float64)
    samples = np.concatenate([samples, halves[np.isfinite(halves)], [0.0, -0.0, 1e300, -1e300, 5e-324]])
    for name, values, sign in [
        ("e4m3", e4m3_values(np.arange(127)), 128),
        ("e4m3fnuz", e4m3fnuz_values(np.arange(128)), 128),
        ("e2m1", e2m1_values(np.arange(8)), 8),
    ]:
        encode = getattr(library, f"element_encode_{name}")
        for x in samples:
            want = nearest_code(values, min(abs(float(x)), 1e6))
            if np.signbit(x) and (want or name != "e4m3fnuz"):
                want |= sign
            assert encode(float(x)) == want, (name, x)
        # Every tie between two neighbours.
        for n, tie in enumerate((values[1:] + values[:-1]) / 2):
            assert encode(float(tie)) == n + n % 2, (name, tie)
    with np.errstate(over="ignore"):
        want16 = samples.astype(np.float16).view(np.uint16)
    assert [library.element_encode_fp16(float(x)) for x in samples] == want16.tolist()
    single = samples[np.abs(samples) < 3e38].astype(np.float32)
    bits = single.view(np.uint32).astype(np.uint64)
    want_bf16 = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    assert [library.element_encode_bf16(float(x)) for x in single] == want_bf16.tolist()
    assert np.isnan(library.element_decode_e4m3(library.element_encode_e4m3(float("nan"))))
    assert library.element_encode_e4m3(float("inf")) == 0x7E
    assert library.element_encode_e4m3fnuz(float("nan")) == 0x80
    assert library.element_encode_e4m3fnuz(float("-inf")) == 0xFF
