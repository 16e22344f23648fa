# SPDX-License-Identifier: MIT
"""How the smoke test of speed judges turns that are good or bad, steady or not."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

import smoke  # noqa: E402
from pages.fmha_fwd import PRODUCTS  # noqa: E402

GFLOP = smoke.SHAPE.flop / 1e9
AMX = "fmha_fwd__x86_64_v4_amx_b512x256x32_w1_qr_tile"
V4 = "fmha_fwd__x86_64_v4_b528x128x16_w1_qr"


def judge(
    monkeypatch: pytest.MonkeyPatch, instance: str, probes: Iterable[float], shares: Iterable[float]
) -> tuple[str, float | None]:
    """Ten turns with probes and shares of them, which begin anew at their ends."""
    name = "tile_bf16" if instance == AMX else "fma_avx512"
    limits, turns = itertools.cycle(probes), itertools.cycle(shares)
    limit = 0.0

    class Program:
        def __init__(self, *_: object) -> None: ...
        def prepare(self, *_: object) -> str:
            return instance

        def time(self, _: int) -> float:
            return GFLOP / (next(turns) * limit) * 1e3

    def probe(*_: object) -> dict[str, float]:
        nonlocal limit
        limit = next(limits)
        return {name: limit, "fma_avx2": 1.0}

    clock = itertools.count(0, smoke.SECONDS / 10)
    monkeypatch.setattr(smoke, "tessera", Program)
    monkeypatch.setattr(smoke, "probe", probe)
    monkeypatch.setattr(smoke.time, "monotonic", lambda: next(clock))
    return smoke.best_share(Path(), "bf16")


def test_every_limit_has_a_margin() -> None:
    assert set(smoke.LEAST) == set(PRODUCTS.values())


def test_one_good_turn_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [0.1, 0.2, 0.1, 0.7]
    assert judge(monkeypatch, V4, [100.0], turns) == ("fma_avx512", pytest.approx(0.7))


def test_tile_products_are_judged_by_their_own_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge(monkeypatch, AMX, [900.0], [0.2]) == ("tile_bf16", pytest.approx(0.2))
    assert judge(monkeypatch, V4, [100.0], [0.2]) == ("fma_avx512", pytest.approx(0.2))
    assert smoke.LEAST["tile_bf16"] < 0.2 < smoke.LEAST["fma_avx512"]


@pytest.mark.parametrize("instance, slow", [(AMX, 0.07), (V4, 0.4)])
def test_steadily_slow_is_too_slow(monkeypatch: pytest.MonkeyPatch, instance: str, slow: float) -> None:
    limit, share = judge(monkeypatch, instance, [100.0, 95.0], [slow, 0.9 * slow])
    assert share is not None and share < smoke.LEAST[limit]


@pytest.mark.parametrize("instance, slow", [(AMX, 0.07), (V4, 0.4)])
def test_noise_is_not_judged(monkeypatch: pytest.MonkeyPatch, instance: str, slow: float) -> None:
    """Noise may affect the probe too, or only the calls."""
    assert judge(monkeypatch, instance, [100.0, 40.0, 50.0], [slow])[1] is None
    assert judge(monkeypatch, instance, [100.0], [slow, slow / 2, slow / 3])[1] is None
