# SPDX-License-Identifier: MIT
"""The usual codebook of turbo4."""

from __future__ import annotations

import itertools
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

# J. Max, Quantizing for Minimum Distortion (1960), table I, 16 levels.
MAX_1960 = (0.1284, 0.3881, 0.6568, 0.9424, 1.256, 1.618, 2.069, 2.733)


@pytest.fixture(scope="module", name="tool")
def _tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "turbo4_codebook.py"))


def test_the_tool_finds_the_published_centroids(tool: dict[str, Any]) -> None:
    assert tool["centroids"]() == pytest.approx(MAX_1960, rel=5e-4)
    assert tool["distortion"](tool["centroids"]()) == pytest.approx(0.009497, rel=1e-3)


def test_no_other_codebook_nearby_has_less_error(tool: dict[str, Any]) -> None:
    best, distortion = tool["centroids"](), tool["distortion"]
    for i in range(len(best)):
        for factor in (0.99, 1.01):
            other = [c * factor if i == n else c for n, c in enumerate(best)]
            edges = [(a + b) / 2 for a, b in itertools.pairwise(other)]
            assert edges == sorted(edges)
            # The mean squared error about centroids that are not the means of their intervals.
            assert _error(other, tool) > distortion(best)


def _error(half: list[float], tool: dict[str, Any]) -> float:
    """By the trapezoidal rule, beyond 8 deviations nothing."""
    steps = 16000
    total = 0.0
    for n in range(steps):
        x = (n + 0.5) * 8 / steps
        total += min((x - c) ** 2 for c in half) * tool["density"](x) * 8 / steps
    return 2 * total


def test_the_library_has_what_the_tool_computes(tool: dict[str, Any]) -> None:
    source = (ROOT / "runtime" / "ops" / "turbo4.c").read_text()
    table = re.search(r"upper\[HALF\] = \{(.*?)\}", source, re.S)
    assert table
    numbers = [float(text.rstrip("f")) for text in re.findall(r"[\d.]+f", table[1])]
    assert numbers == pytest.approx(tool["centroids"](), abs=1e-9)
