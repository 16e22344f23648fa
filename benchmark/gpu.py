# SPDX-License-Identifier: MIT
"""How a GPU is timed: Tessera and rivals in one process, on one stream and the same tensors, in random turns.

Each case is timed twice: in bursts, the GPU idle before each turn, as it is when calls come now and then, and
sustained, turn upon turn without a pause, where power limits its clock. Events on the stream bound each part
of a turn. What is probed (a plain product, a copy, a read) takes turns too. torch makes tensors and streams.
"""

from __future__ import annotations

import importlib
import random
import statistics
import subprocess
import threading
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from library import Call, Refused, Tessera
from page import Case, Page, Probe, Record, median_ratio
from turns import Contestant, Entry, Unable, enter, enter_all

PARTS = 32  # of a turn, at most
PAUSE = 0.1  # seconds before each turn of a burst
BURST_MS = 25.0  # of a turn of a burst


class Meter:
    """The clock of the GPU's processors in MHz and its power in W, as NVIDIA's library or program says."""

    def __init__(self, number: int) -> None:
        self.number = number
        try:
            self.nvml: Any = importlib.import_module("pynvml")
            self.nvml.nvmlInit()
            self.handle = self.nvml.nvmlDeviceGetHandleByIndex(number)
        except Exception:  # of many kinds: there is no such module, library, driver or GPU
            self.nvml = None

    def read(self) -> tuple[float, float] | None:
        """Now; None where nobody says."""
        if self.nvml:
            clock = self.nvml.nvmlDeviceGetClockInfo(self.handle, self.nvml.NVML_CLOCK_SM)
            return float(clock), self.nvml.nvmlDeviceGetPowerUsage(self.handle) / 1e3
        words = ["nvidia-smi", "-i", str(self.number), "--query-gpu=clocks.sm,power.draw"]
        try:
            line = subprocess.run(
                [*words, "--format=csv,noheader,nounits"], check=True, capture_output=True, text=True
            ).stdout
            clock, power = map(float, line.split(","))
        except (OSError, ValueError, subprocess.CalledProcessError):
            return None
        return clock, power

    @contextmanager
    def watch(self, into: list[tuple[float, float]]) -> Iterator[None]:
        """Reads again and again meanwhile."""
        over = threading.Event()

        def run() -> None:
            while not over.wait(0.01):
                reading = self.read()
                if reading is None:
                    return
                into.append(reading)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


class Gpu:
    """The GPU: torch's and the library's."""

    def __init__(self, build: Path, device: str) -> None:
        self.build, self.device = build, device
        number = device.split(":")[1]
        self.torch: Any = importlib.import_module("torch")
        self.torch_device = f"cuda:{number}"  # which torch calls AMD's GPUs too
        self.torch.cuda.set_device(int(number))
        self.torch.zeros(1, device=self.torch_device)
        self.tessera = Tessera(build, device)
        self.stream = self.torch.cuda.current_stream().cuda_stream
        self.meter = Meter(int(number))
        self.name = str(self.torch.cuda.get_device_name())

    def tensor(self, *sizes: int, dtype: str = "bfloat16") -> Any:
        """Normally distributed numbers, others in each tensor."""
        made = self.torch.randn(*sizes, device=self.torch_device, dtype=self.torch.float32)
        return made.to(getattr(self.torch, dtype))

    def empty(self, *sizes: int, dtype: str = "bfloat16") -> Any:
        """An output, poisoned."""
        made = self.torch.empty(*sizes, device=self.torch_device, dtype=getattr(self.torch, dtype))
        made.view(self.torch.uint8).fill_(0xFF)
        return made

    def ready(self, call: Call, *kept: Any) -> tuple[str, Callable[[], None]]:
        """Gives a call its workspace: the instance, and what puts it into torch's stream. `kept`: tensors."""
        size = call.workspace_bytes()
        workspace = self.torch.empty(max(size, 1), device=self.torch_device, dtype=self.torch.uint8)
        call.set_workspace(workspace.data_ptr(), size)
        instance = call.prepare()
        tensors = (workspace, *kept)

        def run() -> None:
            assert tensors
            call(self.stream)

        return instance, run


Made = tuple[str, Callable[[], Any]]  # an instance or a version, and the call


@dataclass
class GpuCall:
    """What can be timed on a GPU."""

    name: str
    make: Callable[[], Made]
    gpu: Gpu
    call: Callable[[], Any] | None = None

    def prepare(self, threads: int) -> str:
        """Makes the call once."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the error says it too
                what, self.call = self.make()
                self.call()
            self.gpu.torch.cuda.synchronize()
        except (Refused, RuntimeError, ValueError, ImportError) as error:
            raise Unable(" ".join(str(error).split())[:200]) from error
        return what

    def time(self, count: int) -> float:
        """The median of the parts' means."""
        assert self.call
        events = self.gpu.torch.cuda.Event
        parts = min(PARTS, count)
        marks = [events(enable_timing=True) for _ in range(parts + 1)]
        marks[0].record()
        for mark in marks[1:]:
            for _ in range(count // parts):
                self.call()
            mark.record()
        self.gpu.torch.cuda.synchronize()
        pairs = pairwise(marks)
        return statistics.median(first.elapsed_time(last) / (count // parts) for first, last in pairs)

    def close(self) -> None:
        """Its tensors are free."""
        self.call = None


@dataclass
class GpuEntry(Entry):
    """And what its bursts took, and the meter's readings of sustained turns."""

    bursts: list[float] = field(default_factory=list)
    readings: list[tuple[float, float]] = field(default_factory=list)

    def record(self, ours: GpuEntry) -> Record:
        """What every record says; `ours`: what ratios are to."""
        clocks, powers = zip(*self.readings, strict=True) if self.readings else ((), ())
        metered = {"mhz": clocks, "watts": powers}
        return {
            "rival": self.contestant.name,
            "what": self.what,
            "ms": statistics.median(self.milliseconds),
            "burst_ms": statistics.median(self.bursts),
            "ratio": median_ratio(self.milliseconds, ours.milliseconds),
            "burst_ratio": median_ratio(self.bursts, ours.bursts),
            **{name: statistics.median(values) for name, values in metered.items() if values},
        }


class GpuCase(Case):
    """A case whose contestants are calls in this process."""

    probed = False

    def ours(self, build: Path) -> list[Contestant]:
        """A GPU's are made by contestants()."""
        raise NotImplementedError

    @abstractmethod
    def contestants(self, gpu: Gpu) -> Sequence[Contestant]:
        """Tessera's call, the probe that limits it, and others that are judged with it."""

    def rivals(self, gpu: Gpu, names: list[str]) -> list[GpuCall]:
        """Those that can do the problem, by name."""
        return []


class GpuPage(Page):
    """The page of a GPU. Its cases are GpuCases, its rivals run in this process."""

    on_gpu = True
    operation: str
    timed_ms = 100.0
    most_calls = 2000

    def limit(self, record: Record) -> str:
        """As the record says."""
        return str(record["limit"])


# ---- probes


class Probes:
    """What the GPU can do, each as a call that takes turns with others."""

    SIDE = 8192  # of the matrices of the product
    BYTES = 4 << 30  # of what is read

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    def product(self, dtype: str = "bfloat16") -> Made:
        """A plain product of two matrices."""
        a, b = (self.gpu.tensor(self.SIDE, self.SIDE, dtype=dtype) for _ in range(2))
        out = self.gpu.torch.empty_like(a)
        return f"{dtype} {self.SIDE}^3", lambda: self.gpu.torch.matmul(a, b, out=out)

    def copy(self, bytes_moved: int) -> Made:
        """Of half so many bytes: each is read and written."""
        first = self.gpu.torch.ones(
            max(bytes_moved // 2, 1), device=self.gpu.torch_device, dtype=self.gpu.torch.uint8
        )
        second = self.gpu.torch.empty_like(first)
        return f"{bytes_moved} bytes", lambda: second.copy_(first)

    def read(self, bytes_read: int) -> Made:
        """Their sum, in fp32."""
        count = max(bytes_read // 4, 1)
        numbers = self.gpu.torch.ones(count, device=self.gpu.torch_device, dtype=self.gpu.torch.float32)
        rows = next(n for n in (132 * 64, 4096, 1024, 1) if count % n == 0)
        return f"{bytes_read} bytes", lambda: numbers.view(rows, -1).sum(dim=1)

    @cached_property
    def figures(self) -> Probe:
        """GFLOP/s and GB/s, sustained, of each alone."""
        work = {"product": 2.0 * self.SIDE**3, "copy": float(self.BYTES), "read": float(self.BYTES)}
        made = {
            "product": self.product,
            "copy": lambda: self.copy(self.BYTES),
            "read": lambda: self.read(self.BYTES),
        }
        found = {}
        for name, make in made.items():
            entry = enter(GpuCall(name, make, self.gpu), 1, 300.0, 1000)
            entry.contestant.time(entry.count)
            found[name] = work[name] / entry.contestant.time(entry.count) / 1e6
            entry.contestant.close()
        return found


# ---- turns


def in_turns(gpu: Gpu, entries: list[GpuEntry], rounds: int) -> None:
    """Times them in bursts, and then sustained, each round in another order."""
    order, chance = list(entries), random.Random(1)
    for _ in range(rounds):
        chance.shuffle(order)
        for entry in order:
            count = max(1, min(entry.count, round(entry.count * BURST_MS / 100)))
            time.sleep(PAUSE)
            entry.contestant.time(1)
            entry.bursts.append(entry.contestant.time(count))
    for entry in order:
        entry.contestant.time(entry.count)
    for _ in range(rounds):
        chance.shuffle(order)
        for entry in order:
            entry.contestant.time(max(1, entry.count // 4))
            with gpu.meter.watch(entry.readings):
                entry.milliseconds.append(entry.contestant.time(entry.count))


class GpuBench:
    """One run, of one operation."""

    gpus: ClassVar[dict[tuple[Path, str], tuple[Gpu, Probes]]] = {}  # each is opened once

    def __init__(self, page: Page, build: Path, device: str, rounds: int) -> None:
        self.page, self.rounds = page, rounds
        if (build, device) not in self.gpus:
            gpu = Gpu(build, device)
            self.gpus[build, device] = gpu, Probes(gpu)
        self.gpu, self.probes = self.gpus[build, device]

    def _start(self, contestant: Contestant) -> Entry:
        entry = enter(contestant, 1, self.page.timed_ms, self.page.most_calls)
        return GpuEntry(entry.contestant, entry.what, entry.count)

    def measure(self, case: GpuCase, rivals: list[str]) -> list[Record]:
        """A record for every contestant, or one; none where Tessera cannot do the case."""
        probe = self.probes.figures
        all_of_them = [*case.contestants(self.gpu), *case.rivals(self.gpu, rivals)]
        entries: list[Any] = enter_all(all_of_them, case.name, self._start)
        try:
            if not entries or entries[0].contestant.name != "tessera":
                return []
            in_turns(self.gpu, entries, self.rounds)
            return case.records(entries, [probe])
        finally:
            for entry in entries:
                entry.contestant.close()
            self.gpu.torch.cuda.empty_cache()
