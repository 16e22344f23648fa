# SPDX-License-Identifier: MIT
"""The pages of the operations on rows: what a call must move, what is asked, and the probe that moves it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

import page as pages  # noqa: E402
from page import judgements  # noqa: E402
from pages._rows import DYNAMIC, SMOOTH, STORE, Problem, Rows, RowsCase  # noqa: E402
from turns import Entry, Program  # noqa: E402

STREAM = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build")) / "bin/benchmark_stream"
NAMES = ("layernorm2d_fwd", "rmsnorm2d_fwd", "add_rmsnorm2d_rdquant", "smoothquant", "moe_smoothquant")


@pytest.mark.parametrize(
    "problem, reads, writes",
    [
        (Problem("layernorm2d_fwd", 8, 100, "bf16", "bf16"), [1600, 200, 200], [1600]),
        (Problem("rmsnorm2d_fwd", 8, 100, "fp32", "fp32"), [3200, 400], [3200]),
        (Problem("rmsnorm2d_fwd", 8, 100, "bf16", "bf16", STORE), [1600, 1600, 200], [1600, 1600]),
        (Problem("layernorm2d_fwd", 8, 100, "fp16", "int8", 0, DYNAMIC), [1600, 200, 200], [800, 32]),
        (
            Problem("layernorm2d_fwd", 8, 100, "fp16", "e4m3", STORE, SMOOTH),
            [1600, 1600, 200, 200, 400],
            [800, 1600, 32],
        ),
        (Problem("add_rmsnorm2d_rdquant", 8, 100, "fp32", "int8"), [3200, 3200, 400], [800, 3200, 32]),
        (Problem("smoothquant", 8, 100, "bf16", "int8"), [1600, 400], [800, 32]),
        (
            Problem("moe_smoothquant", 8, 100, "bf16", "int8", experts=32, topk=5),
            [1600, 32 * 400, 160],
            [4000, 160],
        ),
        (  # of few tokens not all experts
            Problem("moe_smoothquant", 1, 100, "bf16", "e4m3", experts=32, topk=5),
            [200, 5 * 400, 20],
            [500, 20],
        ),
    ],
)
def test_what_must_be_moved(problem: Problem, reads: list[int], writes: list[int]) -> None:
    """Each tensor once, by hand; of a sum both summands, and the sum is kept."""
    assert (sorted(problem.reads()), sorted(problem.writes())) == (sorted(reads), sorted(writes))


def test_words_are_read_by_benchmark_calls() -> None:
    source = "".join(file.read_text() for file in (ROOT / "benchmark/calls").glob("calls.c"))
    words = Problem("smoothquant", 8, 100, "bf16", "int8").words()
    assert all(f'"{word[1:].split("=")[0]}"' in source for word in words)


@pytest.mark.parametrize("name", NAMES)
def test_cases(name: str) -> None:
    """Every type goes in and comes out, from a row to 8192 x 8192; each case has a name of its own."""
    page = pages.load(name)
    assert isinstance(page, Rows)
    cases: list[Any] = [case for suite in page.suites for case in page.cases(suite, page.precs)]
    problems = {case.row_problem for case in cases}
    assert len({case.name for case in cases}) == len(problems)
    assert {p.prec for p in problems} == {"fp32", "fp16", "bf16"}
    assert {"int8", "e4m3"} <= {p.out for p in problems}
    assert (1, 4096) in {(p.m, p.n) for p in problems}
    assert max(p.m * p.topk * p.n for p in problems) >= 8192 * 8192
    assert {case.threads for case in page.cases("launch", page.precs)} == {1}


def entries(**milliseconds: float) -> list[Entry]:
    """One round of each."""
    contestants = [Program(name, Path("none"), []) for name in milliseconds]
    return [Entry(c, c.name, 1, [ms]) for c, ms in zip(contestants, milliseconds.values(), strict=True)]


def judged(m: int, threads: int | None, **milliseconds: float) -> list[str]:
    case = RowsCase(Problem("rmsnorm2d_fwd", m, 4096, "bf16", "bf16"), threads)
    return [str(bar) for bar in judgements(case.records(entries(**milliseconds), [])[0])]


def test_bars() -> None:
    """Many rows are limited by what they move, one row on one thread by the launch; no rival is faster."""
    assert judged(2, None, tessera=1.0, stream=0.95) == ["share of stream 0.95 of 0.9 met"]
    assert judged(2, None, tessera=1.0, stream=0.5, torch=3.0, onednn=0.9) == [
        "share of stream 0.5 of 0.9 MISSED",
        "times the best rival 0.9 of 1 MISSED",
    ]
    assert judged(1, 1, tessera=0.0029, stream=0.0001) == ["us 2.9 of at most 3 met"]
    assert judged(1, 1, tessera=0.0031, stream=0.0001) == ["us 3.1 of at most 3 MISSED"]
    assert judged(1, None, tessera=1.0, stream=0.1, torch=2.0) == ["times the best rival 2 of 1 met"]


def test_records_and_their_line() -> None:
    case = RowsCase(Problem("smoothquant", 1000, 1000, "fp16", "int8"))
    records = case.records(entries(tessera=0.5, stream=0.25, torch=2.0), [])
    assert [r["rival"] for r in records] == ["tessera", "stream", "torch"]
    assert [r["share"] for r in records] == [0.5, 1.0, 0.125]
    assert [r["ratio"] for r in records] == [1.0, 0.5, 4.0]
    assert records[0]["gbytes"] == pytest.approx((2e6 + 4e3 + 1e6 + 4e3) / 5e-4 / 1e9)
    assert case.line(records) == "500 us, 6.016 GB/s, 50 % of stream's 12.03 (stream); torch 2.00 ms (4.00x)"
    assert case.name == "fp16-int8 1000x1000"


@pytest.mark.skipif(not STREAM.exists(), reason="built with -DTESSERA_BUILD_BENCHMARKS=ON")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", [("1", "1"), ("1000,64", "500,70000"), ("3000000", "1,2000001")])
def test_the_probe_moves_everything(threads: int, sizes: tuple[str, str]) -> None:
    """It looks itself whether all was written."""
    probe = Program("stream", STREAM, [f"-read={sizes[0]}", f"-write={sizes[1]}"])
    assert f" {threads} threads" in probe.prepare(threads) or sizes[0] != "3000000"
    assert 0 < probe.time(3) < 1000 and 0 < probe.time(1) < 1000
    probe.close()


@pytest.mark.skipif(not STREAM.exists(), reason="built with -DTESSERA_BUILD_BENCHMARKS=ON")
@pytest.mark.parametrize("words", [[], ["-read=0"], ["-write=12x"], ["-read=" + ",".join("1" * 17)]])
def test_the_probe_refuses(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="ended"):
        Program("stream", STREAM, words).prepare(1)


def test_a_launch_is_of_one_row() -> None:
    cases: list[Any] = pages.load("moe_smoothquant").cases("launch", ["bf16"])
    assert [case.name for case in cases] == ["bf16-int8 1x4096 top 1 of 32"]
    assert {case.row_problem.m * case.row_problem.topk for case in cases} == {1}
