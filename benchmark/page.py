# SPDX-License-Identifier: MIT
"""What bench.py knows of an operation: a page, in pages/, which lists the cases of each suite.

A case is what is timed together, in turns: Tessera's calls, and those of the rivals that can do the problem.
"""

from __future__ import annotations

import importlib
import statistics
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from turns import Contestant, Entry

Record = dict[str, Any]
Probe = dict[str, float]

LIMITS = ("stream", "product", "copy", "read")  # contestants that are no rivals


@dataclass(frozen=True)
class Judgement:
    """A figure, and the least that it should be or the most that it may be."""

    what: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def met(self) -> bool:
        """Whether it is within."""
        return (self.least is None or self.value >= self.least) and (
            self.most is None or self.value <= self.most
        )

    def __str__(self) -> str:
        bound = f"{self.least:.3g}" if self.most is None else f"at most {self.most:.3g}"
        return f"{self.what} {self.value:.3g} of {bound} {'met' if self.met else 'MISSED'}"

    def record(self) -> Record:
        """For a file of results."""
        return {name: value for name, value in asdict(self).items() if value is not None} | {"met": self.met}


def judgements(record: Record) -> list[Judgement]:
    """What was asked of a record."""
    return [Judgement(**{k: v for k, v in bar.items() if k != "met"}) for bar in record.get("bars", ())]


def median_probe(probes: Sequence[Probe]) -> Probe:
    """Figure by figure, the median of the rounds' probes."""
    return {name: statistics.median(probe[name] for probe in probes) for name in probes[0]}


def median_ratio(rival: Sequence[float], ours: Sequence[float]) -> float:
    """How many times longer a rival takes: the median over rounds, each of which meets one clock."""
    return statistics.median(theirs / mine for theirs, mine in zip(rival, ours, strict=True))


def time_of(record: Record) -> str:
    """Its milliseconds, or microseconds."""
    return f"{record['ms']:.2f} ms" if record["ms"] >= 1 else f"{1e3 * record['ms']:.3g} us"


def beside(rivals: list[Record]) -> str:
    """Rivals' times, for the end of a line."""
    return ", ".join(f"{r['rival']} {time_of(r)} ({r['ratio']:.2f}x)" for r in rivals) or "no rival"


class Case(ABC):
    """What is timed together. Its name tells it from the others of its operation."""

    name: str
    threads: int | None = None  # its own number, whatever is asked for
    probed = True  # whether the processor's limits are measured in each round

    @abstractmethod
    def fields(self) -> Record:
        """What its records say of the problem."""

    @abstractmethod
    def ours(self, build: Path) -> list[Contestant]:
        """Tessera's calls and what they are compared with beside rivals; the first is judged."""

    def problem(self) -> Record | None:
        """What a rival is told; None: the case is not for rivals."""
        return None

    @abstractmethod
    def records(self, entries: list[Entry], probes: list[Probe]) -> list[Record]:
        """What was measured: the first record is of Tessera's first call, with its bars."""

    @abstractmethod
    def line(self, records: list[Record]) -> str:
        """Its line of the table, without its name, number of threads and bars."""


class Page(ABC):
    """An operation's cases and rivals."""

    name: str
    suites: tuple[str, ...]
    usual: tuple[str, ...]  # suites that are measured unless others are asked for
    precs: tuple[str, ...]
    programs: tuple[str, ...]  # of the build's bin/
    rivals: dict[str, str]  # by name: the environment that each runs in (rivals.sh)
    rival_module: str  # of rivals/: says how each runs
    rival_environment: dict[str, str] = {}
    timed_ms: float = 100.0  # calls are repeated until about then
    most_calls: int = 100
    on_gpu = False  # cases are measured by gpu.py
    parts: int = 1  # of a rival's calls, of which the median counts; as Tessera's program does it

    @abstractmethod
    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """Those of a suite, of these types."""

    # ---- for plots.py
    pictured: tuple[str, ...]  # the suites whose cases are compared
    scaling: str | None = None  # the suite whose cases are one problem in several sizes
    scale_label = ""

    def limit(self, record: Record) -> str:
        """The figure of the probe that limits a record of Tessera's."""
        return str(record["limit"])

    def intensity(self, record: Record) -> float | None:
        """FLOP for a byte; None: there is no roofline to draw."""
        return None

    def scale(self, record: Record) -> float:
        """The size of a record of the suite `scaling`."""
        raise NotImplementedError


def names() -> list[str]:
    """The operations that have a page."""
    return sorted(file.stem for file in (Path(__file__).parent / "pages").glob("*.py") if file.stem[0] != "_")


def load(name: str) -> Page:
    """An operation's page."""
    page: Page = importlib.import_module(f"pages.{name}").PAGE
    return page
