# SPDX-License-Identifier: MIT
"""The values of narrow types' codes, in numpy: a second implementation beside test/reference/elements.c."""

from __future__ import annotations

from typing import Any

import numpy as np


def bf16_values(bits: Any) -> Any:
    with np.errstate(invalid="ignore"):  # signalling NaN
        return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def e4m3_values(bits: Any) -> Any:
    b = np.asarray(bits).astype(np.int64)
    exponent, mantissa = (b >> 3) & 15, b & 7
    value = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7))
    value = np.where((exponent == 15) & (mantissa == 7), np.nan, value)
    return np.where(b & 128, -value, value)


def e4m3fnuz_values(bits: Any) -> Any:
    """Its codes are those of OCP's with twice the exponent's bias; NaN is what would be -0."""
    b = np.asarray(bits).astype(np.int64)
    exponent, mantissa = (b >> 3) & 15, b & 7
    value = np.where(exponent == 0, mantissa / 8 * 2.0**-7, (1 + mantissa / 8) * 2.0 ** (exponent - 8))
    return np.where(b == 128, np.nan, np.where(b & 128, -value, value))


def e2m1_values(nibbles: Any) -> Any:
    n = np.asarray(nibbles).astype(np.int64)
    exponent, mantissa = (n >> 1) & 3, n & 1
    value = np.where(exponent == 0, mantissa / 2, (1 + mantissa / 2) * 2.0 ** (exponent - 1))
    return np.where(n & 8, -value, value)
