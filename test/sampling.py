# SPDX-License-Identifier: MIT
"""Samples of cases that are too many for each run: other ones every day, so that all are run in time.

TESSERA_TEST_SEED repeats the samples of another day, which every run prints; TESSERA_TEST_ALL=1 takes all.
"""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

ALL = os.environ.get("TESSERA_TEST_ALL") == "1"
SEED = int(os.environ.get("TESSERA_TEST_SEED") or f"{datetime.date.today():%Y%m%d}")

T = TypeVar("T")


def sample(items: Iterable[T], count: int) -> list[T]:
    """Some of the items, in their order."""
    return sample_each(items, lambda item: None, count)


def sample_each(items: Iterable[T], kind: Callable[[T], Hashable], count: int = 1) -> list[T]:
    """Some of the items of each kind, in their order."""
    items = list(items)
    if ALL:
        return items
    kinds: dict[Hashable, list[int]] = {}
    for number, item in enumerate(items):
        kinds.setdefault(kind(item), []).append(number)
    source = random.Random(f"{SEED} {len(items)}")
    chosen = [n for numbers in kinds.values() for n in source.sample(numbers, min(count, len(numbers)))]
    return [items[number] for number in sorted(chosen)]


def about() -> str:
    """The line that says how to repeat this run's samples."""
    return "nothing is sampled" if ALL else f"samples are those of TESSERA_TEST_SEED={SEED}"
