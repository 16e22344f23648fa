# SPDX-License-Identifier: MIT
"""Times fmha_fwd on this CPU side by side with whichever rivals are installed, and with the CPU's own limits.

Each round times the probe and every rival once, in turns, so that whatever else the machine does meets all of
them; medians of the rounds count, and ratios and shares are medians of the rounds' own. What limits a call
follows from the instance that Tessera chose for it (shapes.py). Writes a line of JSON for each shape and
rival to benchmark/results/fmha_fwd.jsonl, in place of what such a machine measured of the shape before, and
prints a table, each line with what is asked of it (bars.py), and at the end what was missed. The suite
"features" is of masks, biases, dropout and small types beside the plain call, and of AVX2. Needs a build
with -DTESSERA_BUILD_BENCHMARKS=ON.

Rivals run in processes of their own: in this Python, in environments that benchmark/rivals.sh makes in the
build directory, or in --env NAME=PYTHON.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bars import Judgement, judge, judge_feature
from records import processor, replace, shape_of
from rival import PREPARE
from shapes import (
    AVX2,
    AVX2_SHARE,
    PLAIN,
    SUITES,
    Feature,
    Figures,
    Shape,
    features,
    limit_of,
    median_probe,
    median_ratio,
)

ROOT = Path(__file__).resolve().parents[1]
TIMED_MS = 100.0  # of a rival in a round: calls are repeated until about then


class Unable(Exception):
    """A rival that cannot do a shape."""


class Tessera:
    """The program tile_example_fmha_fwd, which times with its own clock."""

    name = "tessera"

    def __init__(self, build: Path, extra: str = "") -> None:
        self.program = build / "bin/tile_example_fmha_fwd"
        self.extra = extra.split()
        self.words: list[str] = []

    def _run(self, *options: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "result.json"
            words = [str(self.program), *self.words, *options, "-json=1", f"-jsonfile={file}"]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            result: dict[str, Any] = json.loads(file.read_text())
        return result

    def _replaces(self, word: str) -> bool:
        """Whether an extra word is of the same argument."""
        return any(extra.split("=", 1)[0] == word.split("=", 1)[0] for extra in self.extra)

    def prepare(self, shape: Shape, prec: str, threads: int) -> str:
        """Verifies a few rows; returns the instance."""
        s = shape
        self.words = [f"-b={s.b}", f"-h={s.h}", f"-h_k={s.h_k}", f"-s={s.s_q}", f"-s_k={s.s_k}", f"-d={s.d}"]
        self.words += [f"-prec={prec}", f"-threads={threads}", *(["-mask=t"] if s.causal else [])]
        self.words = ["-device=cpu", *(word for word in self.words if not self._replaces(word)), *self.extra]
        return str(self._run("-v=1", "-warmup=0", "-repeat=1")["kernel"])

    def time(self, count: int) -> float:
        """Milliseconds of a call: the mean of `count` after one."""
        return float(self._run("-v=0", "-warmup=1", f"-repeat={count}")["perf"]["time"])

    def close(self) -> None:
        """Nothing runs."""


class Rival:
    """Another library, in a process of its own."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        self.command = [python, str(Path(__file__).with_name("rival.py")), name]
        self.process: subprocess.Popen[str] | None = None

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self.process and self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            raise Unable(answer["error"])
        return answer

    def prepare(self, shape: Shape, prec: str, threads: int) -> str:
        """Starts a process for the shape; returns the library's version."""
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        return str(self._ask({"prepare": {**asdict(shape), "prec": prec, "threads": threads}})["version"])

    def time(self, count: int) -> float:
        """Milliseconds of a call: the mean of `count` after one."""
        return float(self._ask({"time": count})["ms"])

    def close(self) -> None:
        """Ends the process."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass
class Entry:
    """A rival that can do the shape, and what its rounds took."""

    rival: Tessera | Rival
    what: str  # instance or version
    count: int = 1
    milliseconds: list[float] = field(default_factory=list)


class Bench:
    """One run of the benchmark."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.probe_program = options.build / "bin/benchmark_probe"
        self.rivals: list[Tessera | Rival] = [Tessera(options.build)]
        self.rivals += [Rival(name, python) for name, python in find_rivals(options).items()]

    def probe(self, threads: int) -> dict[str, float]:
        """The CPU's limits, now."""
        words = [str(self.probe_program), f"-threads={threads}"]
        result: dict[str, float] = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
        return result

    def entries(self, shape: Shape, prec: str, threads: int) -> list[Entry]:
        """Who can do the shape."""
        able = []
        for rival in self.rivals:
            try:
                entry = Entry(rival, rival.prepare(shape, prec, threads))
                entry.count = max(1, min(100, round(TIMED_MS / max(rival.time(1), 1e-3))))
                able.append(entry)
            except Unable as error:
                print(f"{rival.name} does not do {prec} {shape}: {error}", file=sys.stderr)
        return able

    def measure(self, shape: Shape, prec: str, threads: int) -> list[dict[str, Any]]:
        """A record for every rival."""
        entries = self.entries(shape, prec, threads)
        probes = self.rounds_of(entries, threads)
        for rival in self.rivals:
            rival.close()
        ours = entries[0]
        facts = {"instance": ours.what, "limit": limit_of(shape, ours.what)}
        common = {**asdict(shape), "prec": prec, **self.common_of(probes, threads), **facts}
        records = []
        for entry in entries:
            figures = Figures(shape, prec, tuple(entry.milliseconds))
            record = {
                "rival": entry.rival.name,
                "what": entry.what,
                "ms": figures.median,
                "gflops": figures.gflops,
                "gbytes": figures.gbytes,
                "share": figures.share(probes, facts["limit"]),
                "ratio": median_ratio(figures.milliseconds, tuple(ours.milliseconds)),
            }
            records.append({**common, **record})
        records[0]["bars"] = [asdict(j) | {"met": j.met} for j in judge(shape, records)]
        return records

    def rounds_of(self, entries: list[Entry], threads: int) -> list[dict[str, float]]:
        """Times the entries in turns; returns the rounds' probes."""
        probes = []
        for _ in range(self.options.rounds):
            probes.append(self.probe(threads))
            for entry in entries:
                entry.milliseconds.append(entry.rival.time(entry.count))
        return probes

    def common_of(self, probes: list[dict[str, float]], threads: int) -> dict[str, Any]:
        """What the records of a case share."""
        return {
            "threads": threads,
            "rounds": len(probes),
            "probe": median_probe(probes),
            "processor": processor(Path("/proc/cpuinfo").read_text()),
            "command": shlex.join(["python", "benchmark/fmha_fwd.py", *sys.argv[1:]]),
        }

    def measure_feature(self, feature: Feature, threads: int) -> list[dict[str, Any]]:
        """A record of a feature, timed beside the plain call."""
        entries = []
        for prec, words in ((feature.beside, ""), (feature.prec, feature.words)):
            tessera = Tessera(self.options.build, words)
            entry = Entry(tessera, tessera.prepare(PLAIN, prec, threads))
            entry.count = max(1, min(100, round(TIMED_MS / max(tessera.time(1), 1e-3))))
            entries.append(entry)
        common = self.common_of(self.rounds_of(entries, threads), threads)
        plain, ours = (tuple(entry.milliseconds) for entry in entries)
        bar = judge_feature(feature, feature.work * median_ratio(plain, ours))
        record = {
            "feature": feature.name,
            "prec": feature.prec,
            **common,
            "what": entries[1].what,
            "ms": statistics.median(ours),
            "plain_ms": statistics.median(plain),
            "bars": [asdict(bar) | {"met": bar.met}],
        }
        return [record]

    def measure_avx2(self, threads: int) -> list[dict[str, Any]]:
        """A record of the instances for AVX2."""
        tessera = Tessera(self.options.build, AVX2)
        entry = Entry(tessera, tessera.prepare(PLAIN, "fp32", threads))
        probes = self.rounds_of([entry], threads)
        figures = Figures(PLAIN, "fp32", tuple(entry.milliseconds))
        limit = limit_of(PLAIN, entry.what)
        bar = Judgement("share of the limit", figures.share(probes, limit), AVX2_SHARE)
        record = {
            "feature": "AVX2",
            "prec": "fp32",
            **self.common_of(probes, threads),
            "what": entry.what,
            "limit": limit,
            "ms": figures.median,
        }
        return [{**record, "bars": [asdict(bar) | {"met": bar.met}]}]


def find_rivals(options: argparse.Namespace) -> dict[str, str]:
    """Rivals that are installed, and their Python."""
    pythons = dict(word.split("=", 1) for word in options.env)
    found = {}
    for name in options.rivals.split(","):
        if name in pythons:
            found[name] = pythons[name]
        elif (options.build / f"rivals/{name}/bin/python").exists():
            found[name] = str(options.build / f"rivals/{name}/bin/python")
        elif importlib.util.find_spec(name):
            found[name] = sys.executable
        elif name:
            print(f"without {name}: not installed (benchmark/rivals.sh {name})", file=sys.stderr)
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


def row(records: list[dict[str, Any]]) -> str:
    """A line of the table: ours, then each rival with its ratio."""
    ours = records[0]
    shape = shape_of(ours)
    rate = f"{ours['gbytes']:.1f} GB/s" if shape.is_decode else f"{ours['gflops']:.0f} GFLOP/s"
    others = ", ".join(f"{r['rival']} {r['ms']:.2f} ms ({r['ratio']:.2f}x)" for r in records[1:])
    head = f"{ours['prec']} {shape}, {ours['threads']} threads"
    limit = f"{100 * ours['share']:.0f} % of {ours['limit']}"
    return f"{head}: {ours['ms']:.2f} ms, {rate}, {limit}; {others or 'no rival'}{bars_of(ours)}"


def bars_of(record: dict[str, Any]) -> str:
    """What was asked of a record, for the end of its line."""
    judgements = [Judgement(bar["what"], bar["value"], bar["least"]) for bar in record["bars"]]
    return " [" + "; ".join(map(str, judgements)) + "]" if judgements else ""


def summary(lines: list[tuple[str, dict[str, Any]]]) -> str:
    """How many bars were met, and each that was not."""
    bars = [(name, bar) for name, record in lines for bar in record["bars"]]
    missed = [
        f"  {name}: {Judgement(bar['what'], bar['value'], bar['least'])}"
        for name, bar in bars
        if not bar["met"]
    ]
    return "\n".join([f"{len(bars) - len(missed)} of {len(bars)} bars met", *missed])


def main() -> int:
    """Measures every shape and prints a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
    suites = f"of {', '.join(SUITES)}, features"
    parser.add_argument("--suites", default="table,short,decode,features", help=suites)
    parser.add_argument("--prec", default="fp32,bf16,fp16")
    parser.add_argument("--threads", default=str(len(os.sched_getaffinity(0))), help="such as 1,2")
    parser.add_argument("--rivals", default=",".join(PREPARE))
    parser.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="a rival's Python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmark/results/fmha_fwd.jsonl")
    options = parser.parse_args()
    bench = Bench(options)
    for program in (bench.probe_program, bench.rivals[0].program):
        if not program.exists():
            parser.error(
                f"{program} does not exist: build with -DTESSERA_BUILD_BENCHMARKS=ON, or give --build"
            )

    suites = options.suites.split(",")
    threads = [int(word) for word in options.threads.split(",")]
    cases: list[tuple[str, Callable[[], list[dict[str, Any]]]]] = [
        (f"{prec} {shape}, {n} threads", partial(bench.measure, shape, prec, n))
        for n in threads
        for suite in suites
        if suite != "features"
        for prec in options.prec.split(",")
        for shape in SUITES[suite]
    ]
    for n in threads if "features" in suites else []:
        cases += [
            (f"{f.prec} {f.name}, {n} threads", partial(bench.measure_feature, f, n)) for f in features()
        ]
        cases.append((f"AVX2, {n} threads", partial(bench.measure_avx2, n)))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    with progress(len(cases)) as step:
        for name, measure in cases:
            step(name)
            records = measure()
            replace(options.output, records)
            first = records[0]
            lines.append((name, first))
            print(
                f"{name}: {first['ms']:.2f} ms{bars_of(first)}" if "feature" in first else row(records),
                flush=True,
            )
    print(summary(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
