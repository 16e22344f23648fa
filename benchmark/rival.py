# SPDX-License-Identifier: MIT
"""Times one rival in a process of its own, which may run in a virtual environment of its own.

python rival.py MODULE NAME: calls what rivals/MODULE.py says. Reads a line of JSON for each order, and
answers with one.
{"prepare": {problem, prec, threads}}  {"version": ...}, after a call
{"time": N, "parts": P}                {"ms": of one of N calls, which are made after one: the median of
                                       the means of up to P parts; before a single call there is none}
{"forget": true}                       {}: the problem's memory is free
What fails answers {"error": ...}.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]


def time_calls(call: Call, count: int, parts: int) -> float:
    """Milliseconds of one call."""
    if count > 1:
        call()
    parts = min(parts, count)
    means = []
    for _ in range(parts):
        start = time.perf_counter()
        for _ in range(count // parts):
            call()
        means.append((time.perf_counter() - start) / (count // parts) * 1e3)
    return statistics.median(means)


def main() -> None:
    """Answers until the orders end."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print does not mix with the answers
    rival = importlib.import_module(f"rivals.{sys.argv[1]}").PREPARE[sys.argv[2]]
    call: Call | None = None
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            if "prepare" in order:
                version, call = rival(order["prepare"])
                call()
                answer["version"] = version
            elif "forget" in order:
                call = None
            else:
                assert call is not None
                answer["ms"] = time_calls(call, order["time"], order["parts"])
        except Exception as error:
            answer["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
