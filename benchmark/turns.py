# SPDX-License-Identifier: MIT
"""Who is timed, each in a process of its own, and the turns in which they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


class Unable(Exception):
    """A rival that cannot do a problem."""


class Contestant(Protocol):
    """What can be timed."""

    name: str

    def prepare(self, threads: int) -> str:
        """Makes ready for the calls; returns what makes them: an instance, or a library's version."""

    def time(self, count: int) -> float:
        """Milliseconds of a call, one of `count`."""

    def close(self) -> None:
        """Ends what prepare began."""


class Example:
    """A program of example/, which times with its own clock and says in JSON what it did."""

    name = "tessera"

    def __init__(self, program: Path, words: list[str], extra: str = "") -> None:
        self.program, self.extra = program, extra.split()
        replaced = {word.split("=", 1)[0] for word in self.extra}  # an extra word takes the place of a word
        self.words = [word for word in ["-device=cpu", *words] if word.split("=", 1)[0] not in replaced]
        self.threads = 1

    def _run(self, *options: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "result.json"
            words = [*self.words, *self.extra, f"-threads={self.threads}", *options]
            words = [str(self.program), *words, "-json=1", f"-jsonfile={file}"]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            result: dict[str, Any] = json.loads(file.read_text())
        return result

    def prepare(self, threads: int) -> str:
        """Verifies a call; returns the instance."""
        self.threads = threads
        return str(self._run("-v=1", "-warmup=0", "-repeat=1")["kernel"])

    def time(self, count: int) -> float:
        """As the program says."""
        return float(self._run("-v=0", "-warmup=1", f"-repeat={count}")["perf"]["time"])

    def close(self) -> None:
        """Nothing runs."""


class Process:
    """A process that answers each line with one, of JSON."""

    def __init__(self, command: list[str], more: dict[str, str], errors: int | None = None) -> None:
        pipe, environment = subprocess.PIPE, os.environ | more
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, text=True, env=environment
        )

    def ask(self, order: str | None) -> dict[str, Any] | None:
        """Its answer, without an order what it says by itself; None where it has ended."""
        assert self.process.stdin and self.process.stdout
        try:
            if order is not None:
                self.process.stdin.write(order + "\n")
                self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] | None = json.loads(line) if line else None
        return answer

    def end(self) -> None:
        """At once."""
        self.process.kill()
        self.process.communicate()


class Program:
    """A program of benchmark/, which answers as answer.h says."""

    def __init__(self, name: str, program: Path, words: list[str]) -> None:
        self.name, self.command = name, [str(program), *words]
        self.process: Process | None = None

    def _ask(self, order: str | None) -> dict[str, Any]:
        answer = self.process.ask(order) if self.process else None
        if answer is None:
            raise SystemExit(f"{' '.join(self.command)} ended")
        return answer

    def prepare(self, threads: int) -> str:
        """Starts it; returns what it runs."""
        self.process = Process([*self.command, f"-threads={threads}"], {})
        return str(self._ask(None)["what"])

    def time(self, count: int) -> float:
        """As the program says."""
        return float(self._ask(str(count))["ms"])

    def close(self) -> None:
        """Ends it."""
        if self.process:
            self.process.end()
            self.process = None


class Library:
    """Another library, in a process for each number of threads, which does one problem after the other."""

    def __init__(
        self, name: str, python: str, module: str, environment: dict[str, str] | None = None
    ) -> None:
        self.name, self.environment = name, environment or {}
        self.command = [python, str(Path(__file__).with_name("rival.py")), module, name]
        self.processes: dict[int, Process] = {}

    def ask(self, threads: int, order: dict[str, Any]) -> dict[str, Any]:
        """An answer that is not an error."""
        if threads not in self.processes:
            more = {"OMP_NUM_THREADS": str(threads), **self.environment}
            self.processes[threads] = Process(self.command, more, subprocess.DEVNULL)
        answer = self.processes[threads].ask(json.dumps(order))
        if answer is None:
            self.processes.pop(threads).end()
            raise Unable("the process ended")
        if "error" in answer:
            raise Unable(answer["error"])
        return answer

    def close(self) -> None:
        """Ends the processes."""
        for process in self.processes.values():
            process.end()
        self.processes = {}


class Rival:
    """A library's call for a problem."""

    def __init__(self, library: Library, problem: dict[str, Any], parts: int = 1) -> None:
        self.name, self.library, self.problem, self.parts = library.name, library, problem, parts
        self.threads = 1

    def prepare(self, threads: int) -> str:
        """Returns the library's version."""
        self.threads = threads
        order = {"prepare": {**self.problem, "threads": threads}}
        return str(self.library.ask(threads, order)["version"])

    def time(self, count: int) -> float:
        """As rival.py times."""
        return float(self.library.ask(self.threads, {"time": count, "parts": self.parts})["ms"])

    def close(self) -> None:
        """The library stays, for the next problem, without this one's memory."""
        with suppress(Unable):
            self.library.ask(self.threads, {"forget": True})


@dataclass
class Entry:
    """Who can do a case, and what its rounds took."""

    contestant: Contestant
    what: str  # instance or version
    count: int = 1
    milliseconds: list[float] = field(default_factory=list)


def enter(contestant: Contestant, threads: int, timed_ms: float, most: int) -> Entry:
    """Prepares it, and finds how many calls take about so long."""
    entry = Entry(contestant, contestant.prepare(threads))
    for _ in range(2):  # a first call of few is slower than one of many
        each = max(contestant.time(min(entry.count, 10)), 1e-6)
        entry.count = max(1, min(most, round(timed_ms / each)))
        if entry.count <= 10:
            break
    return entry


def enter_all(
    contestants: Sequence[Contestant], who: str, start: Callable[[Contestant], Entry]
) -> list[Entry]:
    """Those that can do the problem."""
    able = []
    for contestant in contestants:
        try:
            able.append(start(contestant))
        except Unable as error:
            print(f"{contestant.name} does not do {who}: {error}", file=sys.stderr)
    return able


def rounds(entries: list[Entry], count: int, probe: Callable[[], dict[str, float]]) -> list[dict[str, float]]:
    """Times the entries in turns, and leaves out a rival that fails; returns the rounds' probes."""
    probes = []
    for _ in range(count):
        probes.append(probe())
        for entry in list(entries):
            try:
                entry.milliseconds.append(entry.contestant.time(entry.count))
            except Unable as error:
                print(f"{entry.contestant.name} gave up: {error}", file=sys.stderr)
                entries.remove(entry)
    return probes
