# SPDX-License-Identifier: MIT
"""What pages of operations on rows share: problems, the least that a call must move, and what is asked.

A call is limited by what it moves: each tensor once from or to memory, or the cache that it stays in from
call to call. How fast this CPU does that, benchmark_stream finds out in the same rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from page import Case, Judgement, Page, Probe, Record, beside, median_ratio
from turns import Contestant, Entry, Program

BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1, "e4m3": 1}
PRECS = ("fp32", "bf16", "fp16")
SMALL = ("int8", "e4m3")
SHAPES = {
    "table": ((32, 4096), (512, 4096), (2048, 8192), (8192, 8192)),
    "launch": ((1, 4096),),
    "fused": ((2048, 8192),),
    "more": ((16384, 256), (4096, 1000), (2048, 4097), (64, 131072)),
}
STREAM = 0.9  # of what the probe moves
LAUNCH_US = 3.0  # of a row on one thread
MOST_ROWS = 16384  # that come out: a token's become several, and torch takes seconds and gigabytes for more
NONE, STORE, SMOOTH, DYNAMIC = 0, 1, 1, 2  # -fadd: 0 and 1, -fquant: 0, 1 and 2


@dataclass(frozen=True)
class Problem:
    """A call. Words are those of benchmark_calls."""

    op: str
    m: int
    n: int
    prec: str
    out: str
    fadd: int = NONE
    fquant: int = NONE
    experts: int = 0
    topk: int = 1

    def __str__(self) -> str:
        types = self.prec if self.out == self.prec else f"{self.prec}-{self.out}"
        more = " add" * self.fadd + (" smooth" if self.fquant == SMOOTH else "")
        return f"{types} {self.m}x{self.n}{more}" + f" top {self.topk} of {self.experts}" * (self.experts > 0)

    @property
    def adds(self) -> bool:
        """Two tensors, whose sum is stored too."""
        return self.fadd == STORE or self.op == "add_rmsnorm2d_rdquant"

    @property
    def smooths(self) -> bool:
        """Whether columns have scales."""
        return self.fquant == SMOOTH or "smoothquant" in self.op

    def reads(self) -> list[int]:
        """Bytes of each tensor that is read."""
        tensor, row = self.m * self.n * BYTES[self.prec], self.n * BYTES[self.prec]
        norms = {"layernorm2d_fwd": 2, "rmsnorm2d_fwd": 1, "add_rmsnorm2d_rdquant": 1}.get(self.op, 0)
        scales = [min(max(self.experts, 1), self.m * self.topk) * self.n * 4] if self.smooths else []
        ids = [self.m * self.topk * 4] if self.experts else []
        return [tensor] * (1 + self.adds) + [row] * norms + scales + ids

    def writes(self) -> list[int]:
        """Bytes of each tensor that is written."""
        rows = self.m * self.topk
        written = [rows * self.n * BYTES[self.out]] + [self.m * self.n * BYTES[self.prec]] * self.adds
        return written + ([rows * 4] if self.out in SMALL else [])

    def words(self) -> list[str]:
        """For benchmark_calls."""
        words = {"op": self.op, "m": self.m, "n": self.n, "prec_i": self.prec, "prec_o": self.out}
        words |= {"fadd": self.fadd, "fquant": self.fquant, "experts": self.experts, "topk": self.topk}
        return [f"-{name}={value}" for name, value in words.items()]


class RowsCase(Case):
    """A problem, beside a probe that moves as much, and rivals."""

    probed = False

    def __init__(self, problem: Problem, threads: int | None = None) -> None:
        self.row_problem, self.threads = problem, threads
        self.name = str(problem)

    def fields(self) -> Record:
        """The problem's."""
        return asdict(self.row_problem)

    def problem(self) -> Record:
        """With what follows from the fields."""
        p = self.row_problem
        return {**self.fields(), "adds": p.adds, "smooths": p.smooths}

    def ours(self, build: Path) -> list[Contestant]:
        """A call, and a probe that moves as much."""
        p = self.row_problem
        moved = [
            f"-{way}={','.join(map(str, sizes))}"
            for way, sizes in (("read", p.reads()), ("write", p.writes()))
        ]
        return [
            Program("tessera", build / "bin/benchmark_calls", p.words()),
            Program("stream", build / "bin/benchmark_stream", moved),
        ]

    def records(self, entries: list[Entry], probes: list[Probe]) -> list[Record]:
        """Shares are of what the probe moves."""
        ours, stream = entries[0].milliseconds, entries[1].milliseconds
        moved = sum(self.row_problem.reads() + self.row_problem.writes())
        records: list[Record] = []
        for entry in entries:
            ms = statistics.median(entry.milliseconds)
            record = {
                "rival": entry.contestant.name,
                "what": entry.what,
                "ms": ms,
                "gbytes": moved / ms / 1e6,
                "share": median_ratio(stream, entry.milliseconds),
                "ratio": median_ratio(entry.milliseconds, ours),
            }
            records.append({"instance": entries[0].what, "limit": "stream", **record})
        records[0]["bars"] = [bar.record() for bar in self.judge(records)]
        return records

    def judge(self, records: list[Record]) -> list[Judgement]:
        """A share of the limit; of a row on one thread the time, which is that of a launch; rivals' times."""
        ours, rivals = records[0], records[2:]
        bars = []
        if self.row_problem.m > 1:
            bars.append(Judgement("share of stream", ours["share"], least=STREAM))
        elif self.threads == 1:
            bars.append(Judgement("us", 1e3 * ours["ms"], most=LAUNCH_US))
        if rivals:
            bars.append(Judgement("times the best rival", min(r["ratio"] for r in rivals), least=1.0))
        return bars

    def line(self, records: list[Record]) -> str:
        """Ours, the probe, then each rival with its ratio."""
        ours, stream = records[:2]
        us = f"{1e3 * ours['ms']:.4g} us, {ours['gbytes']:.4g} GB/s"
        share = f"{100 * ours['share']:.0f} % of stream's {stream['gbytes']:.4g} ({stream['what']})"
        return f"{us}, {share}; {beside(records[2:])}"


class Rows(Page):
    """An operation on rows."""

    precs = PRECS
    programs = ("benchmark_calls", "benchmark_stream")
    rivals = {"torch": "torch", "torch.compile": "torch"}
    rival_module = "rows"
    # What a call of torch's gave back stays the process's: the system would take long to clear it again.
    rival_environment = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
    timed_ms = 40.0
    most_calls = 20000
    parts = 32

    def __init__(self, name: str, *, plain: bool = False, experts: int = 0, topk: int = 1) -> None:
        """`plain`: it need not quantize, and more may be fused to it."""
        self.name, self.plain, self.experts, self.topk = name, plain, experts, topk
        self.pictured = ("table", "fused") if plain else ("table",)
        self.usual = (*self.pictured, "launch")
        self.suites = (*self.usual, "more")
        if name == "layernorm2d_fwd":
            self.rivals = {**self.rivals, "onednn": "onednn"}

    def kinds(self, suite: str, prec: str) -> list[tuple[str, int, int]]:
        """Output type, -fadd and -fquant of a suite's cases."""
        if not self.plain:  # always quantizes
            return [(out, NONE, NONE) for out in (SMALL[:1] if suite == "launch" else SMALL)]
        if suite != "fused":
            return [(prec, NONE, NONE)]
        return [
            (prec, STORE, NONE),
            ("int8", NONE, DYNAMIC),
            ("int8", STORE, SMOOTH),
            ("e4m3", NONE, DYNAMIC),
        ]

    def problems(self, suite: str, precs: Sequence[str]) -> list[Problem]:
        """Shape by shape, so that pictures are."""
        topk = 1 if suite == "launch" else self.topk
        return [
            Problem(self.name, m, n, prec, out, fadd, fquant, self.experts, topk)
            for prec in precs
            for m, n in SHAPES[suite]
            if m * topk <= MOST_ROWS
            for out, fadd, fquant in self.kinds(suite, prec)
        ]

    def cases(self, suite: str, precs: Sequence[str]) -> list[Case]:
        """A launch is of one row, on one thread."""
        threads = 1 if suite == "launch" else None
        return [RowsCase(problem, threads) for problem in self.problems(suite, precs)]
