# SPDX-License-Identifier: MIT
"""Samples: as many as asked for, in order, the same for a seed, all in time."""

from __future__ import annotations

import datetime
import importlib.util
from types import ModuleType

import pytest
import sampling


def seeded(monkeypatch: pytest.MonkeyPatch, **environment: str) -> ModuleType:
    for name in ("TESSERA_TEST_SEED", "TESSERA_TEST_ALL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.find_spec("sampling")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_seeds_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    days = [seeded(monkeypatch, TESSERA_TEST_SEED=str(seed)) for seed in range(40)]
    samples = [day.sample(range(20), 3) for day in days]
    assert samples == [day.sample(range(20), 3) for day in days]
    assert all(len(set(chosen)) == 3 and chosen == sorted(chosen) for chosen in samples)
    assert set().union(*samples) == set(range(20))
    assert days[0].sample("abc", 5) == list("abc")


def test_each_kind_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    day = seeded(monkeypatch, TESSERA_TEST_SEED="1")
    chosen = day.sample_each(range(30), lambda number: number % 3, 2)
    assert sorted(number % 3 for number in chosen) == [0, 0, 1, 1, 2, 2]


def test_all_are_all(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = seeded(monkeypatch, TESSERA_TEST_ALL="1", TESSERA_TEST_SEED="7")
    assert everything.sample(range(20), 3) == list(range(20))
    assert "nothing is sampled" in everything.about()


def test_the_day_is_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = datetime.date.today()
    seed = seeded(monkeypatch).SEED
    assert f"{before:%Y%m%d}" <= str(seed) <= f"{datetime.date.today():%Y%m%d}"
    assert f"TESSERA_TEST_SEED={sampling.SEED}" in sampling.about() or sampling.ALL
