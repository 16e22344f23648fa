#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Computes the usual codebook of turbo4: 16 centroids of least squared error for N(0, 1).

    python scripts/turbo4_codebook.py

prints the upper half of it, as runtime/ops/turbo4.c has it; the lower half mirrors it. The method is
Lloyd's, with the conditions of J. Max, Quantizing for Minimum Distortion (1960): each centroid is the mean
of the numbers that are nearest to it, and thresholds lie midway. It is repeated until nothing moves.
"""

from __future__ import annotations

import itertools
import math

LEVELS = 16


def density(x: float) -> float:
    """Of N(0, 1)."""
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def above(x: float) -> float:
    """The probability of numbers greater than x."""
    return math.erfc(x / math.sqrt(2)) / 2


def mean(low: float, high: float) -> float:
    """The mean of the numbers between two."""
    return (density(low) - density(high)) / (above(low) - above(high))


def centroids() -> list[float]:
    """The upper half, in ascending order."""
    half = [(i + 0.5) * 4 / LEVELS for i in range(LEVELS // 2)]
    while True:
        edges = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(half)), math.inf]
        moved = [mean(low, high) for low, high in itertools.pairwise(edges)]
        if max(abs(a - b) for a, b in zip(half, moved, strict=True)) < 1e-15:
            return moved
        half = moved


def distortion(half: list[float]) -> float:
    """The mean squared error: 1 less the mean square of what numbers become."""
    edges = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(half)), math.inf]
    shares = [above(low) - above(high) for low, high in itertools.pairwise(edges)]
    return 1 - 2 * sum(c * c * share for c, share in zip(half, shares, strict=True))


if __name__ == "__main__":
    print(", ".join(f"{c:.9f}f" for c in centroids()))
    print(f"mean squared error {distortion(centroids()):.6f}")
