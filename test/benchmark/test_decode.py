# SPDX-License-Identifier: MIT
"""What is asked of decoding over caches on a CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

from page import Probe  # noqa: E402
from pages._decode import DecodeCase  # noqa: E402
from pages.paged_attention import SUITES  # noqa: E402
from turns import Entry  # noqa: E402

SHAPE = SUITES["table"][0]


def records_of(kv: str, milliseconds: dict[str, float]) -> list[dict[str, Any]]:
    """Of one round, in which reading memory had 40 GB/s."""
    entries = [
        Entry(cast("Any", SimpleNamespace(name=name)), "", 1, [ms]) for name, ms in milliseconds.items()
    ]
    return DecodeCase("", SHAPE, kv).records(entries, [cast("Probe", {"read": 40.0})])


@pytest.mark.parametrize(("kv", "times"), [("fp8_e4m3", 2), ("int8", 2), ("turbo4", 256 / 66)])
def test_quantised_caches_may_lose_a_quarter_of_their_bytes(kv: str, times: float) -> None:
    least = times * 0.75
    for ratio, met in (least + 0.01, True), (least - 0.01, False):
        ours, *_ = records_of(kv, {"tessera": 1.0, "bf16": ratio, "torch": 5.0})
        bar, rival = ours["bars"]
        assert (bar["value"], bar["met"]) == (pytest.approx(ratio), met)
        assert bar["least"] == pytest.approx(least)
        assert (rival["value"], rival["met"]) == (5.0, True)


def test_16_bits_are_judged_beside_reading() -> None:
    """1 x 8 heads of 8,192 keys are 33.6 MB."""
    for ms, met in (0.9, True), (1.1, False):
        ours, *_ = records_of("bf16", {"tessera": ms})
        (bar,) = ours["bars"]
        assert (bar["value"], bar["met"]) == (pytest.approx(33554432 / ms / 1e6 / 40), met)


def test_types_are_timed_beside_bf16() -> None:
    """But for 16 bits, which stand alone."""
    for kv, names in ("turbo4", ["tessera", "bf16"]), ("bf16", ["tessera"]):
        assert [call.name for call in DecodeCase("program", SHAPE, kv).ours(Path())] == names
