# SPDX-License-Identifier: MIT
"""Times operations on this CPU or a GPU side by side with whichever rivals are installed, and its limits.

    python benchmark/bench.py fmha_fwd --suites table,decode --prec bf16 --rounds 3
    python benchmark/bench.py fmha_fwd_gpu --device cuda:0

Each round times the probe, Tessera and every rival once, in turns, so that whatever else the machine does
meets all of them; medians of the rounds count, and ratios and shares are medians of the rounds' own. What is
timed, what limits it, who its rivals are and what is asked of it stands on the operation's page, in
benchmark/pages. Writes a line of JSON for each case and rival to benchmark/results/OPERATION.jsonl, in place
of what such a machine measured of the case before, and prints a table, each line with what is asked of it,
and at the end what was missed. Needs a build with -DTESSERA_BUILD_BENCHMARKS=ON.

Rivals run in processes of their own: in this Python, in environments that benchmark/rivals.sh makes in the
build directory, or in --env NAME=PYTHON. Those of a GPU run in this process, as gpu.py says.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import page as pages
from gpu import GpuBench, GpuCase
from page import LIMITS, Case, Page, Probe, Record, judgements, median_probe, time_of
from records import processor, replace
from turns import Library, Rival, enter, enter_all, rounds

ROOT = Path(__file__).resolve().parents[1]
LOAD = os.getloadavg()[0]  # of others, before anything is measured
BUSY = 0.25  # of the processors


def probe(build: Path, threads: int) -> Probe:
    """The CPU's limits, now."""
    words = [str(build / "bin/benchmark_probe"), f"-threads={threads}"]
    result: Probe = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    return result


def version(build: Path) -> str:
    """The commit that is measured, with a + where files differ from it; "" where git does not know.

    A build that came from elsewhere (test_gpu.sh --pack) says it.
    """
    if (build / "version").exists():
        return (build / "version").read_text().strip()
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(words, check=False, capture_output=True, text=True).stdout.strip()


class Bench:
    """One run, of one operation."""

    def __init__(
        self, page: Page, options: argparse.Namespace, libraries: dict[tuple[str, str], Library]
    ) -> None:
        """`libraries`: those of operations before, by module and name, whose processes serve this one too."""
        self.page, self.build, self.rounds = page, options.build, options.rounds
        self.libraries = []
        for name, python in find_rivals(page, options).items():
            made = Library(name, python, page.rival_module, page.rival_environment)
            self.libraries.append(libraries.setdefault((page.rival_module, name), made))
        self.common = common_of(page, self.build, processor(Path("/proc/cpuinfo").read_text()))

    def measure(self, case: Case, threads: int) -> list[Record]:
        """A record for every rival, or one."""
        start = partial(enter, threads=threads, timed_ms=self.page.timed_ms, most=self.page.most_calls)
        who = f"{case.name}, {threads} threads"
        problem = case.problem()
        rivals = [Rival(library, problem, self.page.parts) for library in self.libraries] if problem else []
        entries = [start(ours) for ours in case.ours(self.build)]
        entries += enter_all(rivals, who, start)
        try:
            probes = rounds(entries, self.rounds, partial(self.probe, case, threads))
        finally:
            for entry in entries:
                entry.contestant.close()
        common = {"threads": threads, "rounds": self.rounds, **self.common}
        if case.probed:
            common["probe"] = median_probe(probes)
        head = {"case": case.name, **case.fields(), **common}
        return [{**head, **record} for record in case.records(entries, probes)]

    def probe(self, case: Case, threads: int) -> Probe:
        """That of a round."""
        return probe(self.build, threads) if case.probed else {}


class BenchOnGpu:
    """The same of a GPU, whose rivals are calls in this process."""

    def __init__(self, page: Page, options: argparse.Namespace) -> None:
        self.rivals = list(find_rivals(page, options))
        self.bench = GpuBench(page, options.build, options.device, options.rounds)
        self.common = common_of(page, options.build, self.bench.gpu.name)

    def measure(self, case: Case, threads: int) -> list[Record]:
        """None where Tessera cannot do it."""
        assert isinstance(case, GpuCase)
        head = {"case": case.name, **case.fields(), "threads": 1, "rounds": self.bench.rounds, **self.common}
        return [{**head, **record} for record in self.bench.measure(case, self.rivals)]


def common_of(page: Page, build: Path, processor_name: str) -> Record:
    """What every record of a run says."""
    return {
        "operation": page.name,
        "processor": processor_name,
        "version": version(build),
        "date": date.today().isoformat(),
        "load": LOAD,
        "command": shlex.join(["python", "benchmark/bench.py", *sys.argv[1:]]),
    }


def find_rivals(page: Page, options: argparse.Namespace) -> dict[str, str]:
    """Rivals that are installed, and their Python."""
    pythons = dict(word.split("=", 1) for word in options.env)
    wanted = page.rivals if options.rivals is None else [name for name in options.rivals.split(",") if name]
    found = {}
    for name in wanted:
        environment = page.rivals[name]
        if environment in pythons:
            found[name] = pythons[environment]
        elif (options.build / f"rivals/{environment}/bin/python").exists():
            found[name] = str(options.build / f"rivals/{environment}/bin/python")
        elif importlib.util.find_spec(environment):
            found[name] = sys.executable
        else:
            print(f"without {name}: not installed (benchmark/rivals.sh {environment})", file=sys.stderr)
    return found


@contextmanager
def progress(total: int) -> Iterator[Any]:
    """A bar on stderr where that is a terminal: call with a step's name as it begins."""
    start, done = time.monotonic(), 0
    shown = sys.stderr.isatty()

    def step(name: str) -> None:
        nonlocal done
        if shown:
            rest = (time.monotonic() - start) / done * (total - done) if done else 0
            bar = "#" * (30 * done // total)
            print(f"\r[{bar:30}] {done}/{total}, {rest:.0f} s left: {name:40}", end="", file=sys.stderr)
        done += 1

    yield step
    if shown:
        print("\r" + " " * 100 + "\r", end="", file=sys.stderr)


def name_of(record: Record) -> str:
    """Of a case, for people."""
    return f"{record['operation']} {record['case']}, {record['threads']} threads"


def bars_of(record: Record) -> str:
    """What was asked of a record, for the end of its line."""
    found = judgements(record)
    return " [" + "; ".join(map(str, found)) + "]" if found else ""


def table(cases: list[list[Record]]) -> str:
    """In Markdown: of each case for rivals Tessera's time, its share of the limit, rivals' times over it."""
    compared = [records for records in cases if "rival" in records[0]]
    everyone = dict.fromkeys(r["rival"] for records in compared for r in records)
    rivals = [name for name in everyone if name not in ("tessera", *LIMITS)]
    rows = [["case", "threads", "time", "of the limit", *rivals]]
    for records in compared:
        ours, ratio = records[0], {r["rival"]: f"{r['ratio']:.2f}" for r in records}
        head = [ours["case"], str(ours["threads"]), time_of(ours), f"{100 * ours['share']:.0f} %"]
        rows.append(head + [ratio.get(rival, "") for rival in rivals])
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) if compared else ""


def summary(cases: list[list[Record]]) -> str:
    """How many bars were met, and each that was not."""
    bars = [(name_of(records[0]), bar) for records in cases for bar in judgements(records[0])]
    missed = [f"  {name}: {bar}" for name, bar in bars if not bar.met]
    return "\n".join([f"{len(bars) - len(missed)} of {len(bars)} bars met", *missed])


def run(
    page: Page, options: argparse.Namespace, libraries: dict[tuple[str, str], Library]
) -> list[list[Record]]:
    """Measures an operation's cases and prints a line for each, and a table of all; returns their records."""
    suites = page.usual if options.suites is None else options.suites.split(",")
    precs = page.precs if options.prec is None else options.prec.split(",")
    threads = [1] if page.on_gpu else [int(word) for word in options.threads.split(",")]
    cases = [
        (case, case.threads or n) for n in threads for suite in suites for case in page.cases(suite, precs)
    ]
    cases = list({(case.name, n): (case, n) for case, n in cases}.values())  # once each
    output = options.output / f"{page.name}.jsonl"
    bench = BenchOnGpu(page, options) if page.on_gpu else Bench(page, options, libraries)
    done = []
    with progress(len(cases)) as step:
        for case, n in cases:
            step(f"{page.name} {case.name}, {n} threads")
            records = bench.measure(case, n)
            if not records:
                continue
            replace(output, records)
            done.append(records)
            print(f"{name_of(records[0])}: {case.line(records)}{bars_of(records[0])}", flush=True)
    print(table(done), flush=True)
    return done


def check(parser: argparse.ArgumentParser, page: Page, options: argparse.Namespace) -> None:
    """Refuses what the operation's page does not know, and a build without its programs."""
    lists = {"--suites": (options.suites, page.suites), "--prec": (options.prec, page.precs)}
    lists["--rivals"] = (options.rivals or None, tuple(page.rivals))
    for option, (words, known) in lists.items():
        for word in words.split(",") if words is not None else ():
            if word not in known:
                parser.error(f"{option}: {page.name} has no '{word}', only {', '.join(known)}")
    for program in page.programs if page.on_gpu else ("benchmark_probe", *page.programs):
        if not (options.build / "bin" / program).exists():
            parser.error(
                f"{options.build / 'bin' / program} does not exist: build with "
                "-DTESSERA_BUILD_BENCHMARKS=ON, or give --build"
            )


def main() -> int:
    """Measures the operations asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [pages.load(name) for name in pages.names()]
    parser.add_argument("operations", nargs="+", choices=[page.name for page in every], metavar="OPERATION")
    parser.add_argument("--build", type=Path, default=os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
    suites = "; ".join(f"{page.name}: {','.join(page.suites)}" for page in every)
    parser.add_argument("--suites", help=f"a list ({suites})")
    precs = "; ".join(f"{page.name}: {','.join(page.precs)}" for page in every)
    parser.add_argument("--prec", help=f"a list ({precs})")
    parser.add_argument("--threads", default=str(len(os.sched_getaffinity(0))), help="such as 1,2")
    parser.add_argument("--rivals", help="a list, '' for none; left out: all that are installed")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="a rival's Python")
    parser.add_argument("--device", default="cuda:0", help="of pages of GPUs: cuda:N or hip:N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmark/results", help="folder of records")
    options = parser.parse_args()
    chosen = [page for page in every if page.name in options.operations]
    for page in chosen:
        check(parser, page, options)
    options.output.mkdir(parents=True, exist_ok=True)
    if LOAD / (os.cpu_count() or 1) > BUSY:
        print(f"this machine is busy (load {LOAD:.1f}): figures will not be its own", file=sys.stderr)
    libraries: dict[tuple[str, str], Library] = {}
    print(summary([records for page in chosen for records in run(page, options, libraries)]))
    for library in libraries.values():
        library.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
