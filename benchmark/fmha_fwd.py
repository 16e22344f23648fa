# SPDX-License-Identifier: MIT
"""Times fmha_fwd side by side with PyTorch on the same CPU, in turns, and appends what it measured to a file.

Each round times every rival once, so that whatever else the machine does meets all of them; the median of the
rounds counts. Needs a build (scripts/quickstart.sh), and PyTorch for the comparison: pip install torch.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Shape:
    """A problem: batch, heads of q and of k and v, length, head dim."""

    b: int
    h: int
    h_k: int
    s: int
    d: int
    causal: bool

    def __str__(self) -> str:
        return f"b{self.b} h{self.h}/{self.h_k} s{self.s} d{self.d}{' causal' if self.causal else ''}"


SHAPES = (
    Shape(1, 8, 8, 1024, 128, causal=False),
    Shape(4, 8, 8, 512, 32, causal=False),
    Shape(2, 8, 8, 3328, 128, causal=False),
    Shape(1, 16, 16, 4096, 64, causal=True),
    Shape(1, 32, 8, 2048, 128, causal=True),
)


class Tessera:
    """The program tile_example_fmha_fwd, which times with its own clock."""

    def __init__(self, build: Path, prec: str, threads: int) -> None:
        self.program = build / "bin/tile_example_fmha_fwd"
        if not self.program.exists():
            sys.exit(f"{self.program} does not exist; run scripts/quickstart.sh, or give --build")
        self.options = [f"-prec={prec}", f"-threads={threads}"]

    def run(self, shape: Shape, *options: str) -> dict[str, Any]:
        """One call of the program: what it writes as JSON."""
        problem = [f"-b={shape.b}", f"-h={shape.h}", f"-h_k={shape.h_k}", f"-s={shape.s}", f"-d={shape.d}"]
        mask = ["-mask=t"] if shape.causal else []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "result.json"
            words = [str(self.program), *problem, *mask, *self.options, *options]
            words += ["-json=1", f"-jsonfile={file}"]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            result: dict[str, Any] = json.loads(file.read_text())
        return result

    def prepare(self, shape: Shape) -> tuple[str, float, Callable[[], float]]:
        """Verifies; returns the instance, the FLOPs as CK counts them, and what measures milliseconds."""
        first = self.run(shape, "-v=1", "-warmup=0", "-repeat=1")
        flop = first["perf"]["tflops"] * first["perf"]["time"] * 1e9

        def measure() -> float:
            return float(self.run(shape, "-v=0", "-warmup=1", "-repeat=3")["perf"]["time"])

        return first["kernel"], flop, measure


class Torch:
    """torch.nn.functional.scaled_dot_product_attention."""

    def __init__(self, prec: str, threads: int) -> None:
        self.torch: Any = importlib.import_module("torch")
        torch = self.torch
        torch.set_num_threads(threads)
        self.dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[prec]

    def prepare(self, shape: Shape) -> Callable[[], float]:
        """Returns what measures milliseconds: the mean of three calls after one."""
        tensors = [
            self.torch.rand(shape.b, heads, shape.s, shape.d, dtype=self.dtype)
            for heads in (shape.h, shape.h_k, shape.h_k)
        ]

        def call() -> None:
            self.torch.nn.functional.scaled_dot_product_attention(
                *tensors, is_causal=shape.causal, enable_gqa=shape.h != shape.h_k
            )

        def measure() -> float:
            call()
            start = time.perf_counter()
            for _ in range(3):
                call()
            return (time.perf_counter() - start) / 3 * 1e3

        return measure


def processor() -> str:
    """What runs this."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def main() -> int:
    """Measures every shape and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
    parser.add_argument("--prec", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmark/results/fmha_fwd.jsonl")
    options = parser.parse_args()

    tessera = Tessera(options.build, options.prec, options.threads)
    try:
        torch = Torch(options.prec, options.threads)
    except ImportError as error:
        print(f"without PyTorch ({error}); pip install torch", file=sys.stderr)
        torch = None

    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("a") as output:
        for shape in SHAPES:
            kernel, flop, measure = tessera.prepare(shape)
            rivals = {"tessera": measure}
            if torch:
                rivals["torch"] = torch.prepare(shape)
            times: dict[str, list[float]] = {name: [] for name in rivals}
            for _ in range(options.rounds):
                for name, rival in rivals.items():
                    times[name].append(rival())
            medians = {name: statistics.median(values) for name, values in times.items()}
            record = {
                **asdict(shape),
                "prec": options.prec,
                "threads": options.threads,
                "rounds": options.rounds,
                "kernel": kernel,
                "ms": medians,
                "gflops": {name: flop / ms / 1e6 for name, ms in medians.items()},
                "processor": processor(),
                "torch": torch.torch.__version__ if torch else None,
                "command": shlex.join(["python", "benchmark/fmha_fwd.py", *sys.argv[1:]]),
            }
            output.write(json.dumps(record) + "\n")
            figures = ", ".join(
                f"{name} {ms:.2f} ms {flop / ms / 1e6:.0f} GFLOP/s" for name, ms in medians.items()
            )
            ratio = f", torch / tessera {medians['torch'] / medians['tessera']:.2f}" if torch else ""
            print(f"{options.prec} {shape}, {options.threads} threads: {figures}{ratio}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
