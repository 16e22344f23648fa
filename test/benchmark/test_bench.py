# SPDX-License-Identifier: MIT
"""The harness of benchmark/: turns, rivals that can do a problem and that cannot, and what it prints."""

from __future__ import annotations

import importlib
import json
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

import bench  # noqa: E402
import page as pages  # noqa: E402
import rival  # noqa: E402
from page import Case, Judgement, Page, Probe, Record, judgements  # noqa: E402
from turns import Contestant, Entry, Library, Rival, Unable, enter, enter_all, rounds  # noqa: E402


class Clock:
    """A contestant whose calls take given times, one after the other."""

    def __init__(self, name: str, times: Sequence[float], log: list[str] | None = None) -> None:
        self.name, self.times, self.log, self.counts = name, list(times), log, list[int]()
        self.closed = False

    def prepare(self, threads: int) -> str:
        if not self.times:
            raise Unable("no time")
        return f"{self.name} on {threads}"

    def time(self, count: int) -> float:
        self.counts.append(count)
        if self.log is not None:
            self.log.append(self.name)
        if len(self.counts) > len(self.times) > 1:
            raise Unable("out of time")
        return self.times[(len(self.counts) - 1) % len(self.times)]

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("each, counts", [(0.001, [1, 10]), (250.0, [1]), (20.0, [1])])
def test_calls_are_repeated_until_they_take_long_enough(each: float, counts: list[int]) -> None:
    """Of short calls a second, longer try says how many; no more than the page allows."""
    clock = Clock("x", [each])
    entry = enter(clock, 3, 100.0, 1000)
    assert entry.what == "x on 3" and clock.counts == counts
    assert entry.count == {0.001: 1000, 250.0: 1, 20.0: 5}[each]


def test_who_cannot_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    entries = enter_all([Clock("a", []), Clock("b", [1.0])], "a case", lambda c: enter(c, 1, 1.0, 1))
    assert [entry.contestant.name for entry in entries] == ["b"]
    assert "a does not do a case: no time" in capsys.readouterr().err


def test_rounds_are_turns() -> None:
    log: list[str] = []
    entries = [Entry(Clock(name, [1.0], log), "", 7) for name in "ab"]

    def probe() -> Probe:
        log.append("probe")
        return {"read": float(len(log))}

    assert rounds(entries, 2, probe) == [{"read": 1.0}, {"read": 4.0}]
    assert log == ["probe", "a", "b"] * 2
    assert [entry.milliseconds for entry in entries] == [[1.0, 1.0]] * 2


def test_who_fails_in_a_round_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    entries = [Entry(Clock("a", [1.0]), ""), Entry(Clock("b", [1.0, 1.0]), "")]
    rounds(entries, 3, dict)
    assert [(e.contestant.name, len(e.milliseconds)) for e in entries] == [("a", 3)]
    assert "b gave up: out of time" in capsys.readouterr().err


RIVALS = """
import os
def prepare(problem):
    if problem["n"] < 0:
        raise ValueError("negative")
    if problem["n"] > 9:
        os._exit(1)
    return f"{os.getpid()} {problem['threads']} {os.environ['OMP_NUM_THREADS']}", lambda: None
PREPARE = {"lib": prepare}
"""


def test_a_rival_is_one_process_for_many_problems(tmp_path: Path) -> None:
    """A number of threads has one of its own, and so has what comes after an end."""
    (tmp_path / "rivals").mkdir()
    (tmp_path / "rivals/some.py").write_text(RIVALS)
    (tmp_path / "rival.py").write_text((ROOT / "benchmark/rival.py").read_text())
    library = Library("lib", sys.executable, "some")
    library.command[1] = str(tmp_path / "rival.py")
    first = Rival(library, {"n": 1})
    pid, *threads = first.prepare(2).split()
    assert threads == ["2", "2"] and 0 <= first.time(3) < 1000
    first.close()
    with pytest.raises(Unable, match="AssertionError"):  # it has forgotten
        first.time(1)
    with pytest.raises(Unable, match="ValueError: negative"):
        Rival(library, {"n": -1}).prepare(2)
    assert Rival(library, {"n": 2}).prepare(2).split()[0] == pid
    assert Rival(library, {"n": 2}).prepare(1).split()[0] != pid
    assert Rival(library, {"n": 2}).prepare(2).split()[0] == pid
    with pytest.raises(Unable, match="the process ended"):
        Rival(library, {"n": 10}).prepare(1)
    assert Rival(library, {"n": 2}).prepare(1)
    library.close()


class Toy(Case):
    probed = False

    def __init__(self, name: str, contestants: list[Contestant]) -> None:
        self.name, self.contestants = name, contestants

    def fields(self) -> Record:
        return {"n": 1}

    def ours(self, build: Path) -> list[Contestant]:
        return self.contestants

    def records(self, entries: list[Entry], probes: list[Probe]) -> list[Record]:
        bars = [Judgement("ms", entries[0].milliseconds[0], most=2.0).record()]
        return [{"rival": e.contestant.name, "ms": e.milliseconds[0]} for e in entries[:1]] + [
            {"bars": bars} for _ in entries[1:]
        ]

    def line(self, records: list[Record]) -> str:
        return f"{records[0]['ms']} ms"


def test_a_case_is_measured_and_its_contestants_end() -> None:
    options = Namespace(build=Path(), rounds=2, env=[], rivals="")
    clocks = [Clock("tessera", [1.5]), Clock("other", [3.0])]
    case = Toy("toy", list(clocks))
    ours, other = bench.Bench(pages.load("fmha_fwd"), options, {}).measure(case, 4)
    assert {k: ours[k] for k in ("case", "n", "threads", "rounds", "rival", "ms")} == {
        **{"case": "toy", "n": 1, "threads": 4, "rounds": 2, "rival": "tessera", "ms": 1.5}
    }
    assert ours["command"].startswith("python benchmark/bench.py") and "probe" not in ours
    assert other["case"] == "toy" and all(clock.closed for clock in clocks)


def test_bars_are_kept_and_said() -> None:
    bars = [Judgement("share", 0.5, least=0.9), Judgement("us", 2.0, most=3.0)]
    record = {"bars": [bar.record() for bar in bars]}
    assert judgements(json.loads(json.dumps(record))) == bars
    assert bench.bars_of(record) == " [share 0.5 of 0.9 MISSED; us 2 of at most 3 met]"
    named = {**record, "operation": "op", "case": "case", "threads": 2}
    assert bench.summary([[named]]) == "1 of 2 bars met\n  op case, 2 threads: share 0.5 of 0.9 MISSED"
    assert bench.bars_of({}) == ""


@pytest.mark.parametrize(
    "words, said",
    [
        (["no_such"], "invalid choice: 'no_such'"),
        (["fmha_fwd", "--suites", "no_such"], "--suites: fmha_fwd has no 'no_such', only table,"),
        (["fmha_fwd", "--prec", "fp64"], "--prec: fmha_fwd has no 'fp64', only fp32,"),
        (["fmha_fwd", "--rivals", "mkl"], "--rivals: fmha_fwd has no 'mkl', only torch,"),
        (["fmha_fwd", "--build", "/nowhere"], "/nowhere/bin/benchmark_probe does not exist"),
    ],
)
def test_what_is_refused(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.py", *words])
    with pytest.raises(SystemExit) as stop:
        bench.main()
    assert stop.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("name", pages.names())
def test_pages(name: str) -> None:
    """Each page is that of the operation that its file names, and its members refer to one another."""
    page: Page = pages.load(name)
    assert page.name == name
    assert {*page.usual, *page.pictured} <= set(page.suites)
    assert set(page.rivals) <= set(importlib.import_module(f"rivals.{page.rival_module}").PREPARE)
    for suite in page.suites:
        assert page.cases(suite, page.precs)


@pytest.mark.parametrize("count, parts, calls", [(1, 1, 1), (5, 1, 6), (7, 3, 7), (2, 32, 3)])
def test_a_rivals_calls(count: int, parts: int, calls: int) -> None:
    """One before, but for a single one; in parts of equal size, of which the median counts."""
    made = []

    def call() -> None:
        made.append(time.sleep(0.02 if len(made) == 1 else 0.002))

    each = rival.time_calls(call, count, parts)
    assert len(made) == calls
    assert 2 <= each < (20 if parts == 3 else 40)


def test_a_table_of_ratios() -> None:
    """A rival that could do any case has a column, the probe has none; cases without rivals are left out."""

    def record(case: str, rival: str, ms: float, ratio: float) -> Record:
        return {"case": case, "threads": 2, "rival": rival, "ms": ms, "share": 0.876, "ratio": ratio}

    cases = [
        [
            record("a", "tessera", 0.0123, 1.0),
            record("a", "stream", 1.0, 0.9),
            record("a", "torch", 1.0, 1.234),
        ],
        [record("b", "tessera", 12.3, 1.0), record("b", "onednn", 1.0, 2.0)],
        [{"case": "feature", "threads": 2, "ms": 1.0}],
    ]
    assert bench.table(cases).splitlines() == [
        "| case | threads | time | of the limit | torch | onednn |",
        "| --- | --- | --- | --- | --- | --- |",
        "| a | 2 | 12.3 us | 88 % | 1.23 |  |",
        "| b | 2 | 12.30 ms | 88 % |  | 2.00 |",
    ]
    assert bench.table(cases[2:]) == ""
