# SPDX-License-Identifier: MIT
"""Tasks that each run a program and keep what it says: on all cores of this machine, or on a Ray cluster.

A file keeps a line of JSON for each task that is done, by the task's key. Who begins again after an
interruption finds there what is done.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen import Refused

Progress = Callable[[int, int], None]  # tasks done, tasks in all
Result = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A call of a program, whose result is the JSON that it writes and the text that it prints."""

    key: str  # a hash of all that the result depends on
    command: tuple[str, ...]  # relative to the kit's folder


def hash_of(*parts: str | bytes) -> str:
    """A key of all that it is made of."""
    hasher = hashlib.blake2b(digest_size=12)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode()
        hasher.update(len(data).to_bytes(8, "little") + data)
    return hasher.hexdigest()


def run_task(kit: str, command: Sequence[str]) -> Result:
    """Runs a command of a kit. Its result, or {"failed": TEXT}. It is sent to workers as it stands here."""
    kit = os.path.abspath(kit)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        libraries = os.pathsep.join(filter(None, (kit, os.environ.get("LD_LIBRARY_PATH"))))
        os.chmod(os.path.join(kit, command[0]), 0o755)  # which copies to other machines may lose
        done = subprocess.run(
            [os.path.join(kit, command[0]), *command[1:], "-json=1", f"-jsonfile={path}"],
            env={
                **os.environ,
                "LD_LIBRARY_PATH": libraries,
                "TESSERA_SIM_THREADS": "1",
                "TESSERA_NUM_THREADS": "1",
            },
            cwd=kit,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not os.path.exists(path):
            said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
            return {"failed": said[-1]}
        with open(path, encoding="utf-8") as file:
            result: Result = json.load(file)
    return {**result, "printed": done.stdout}


def processes() -> int:
    """As many as processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_results(path: Path) -> dict[str, Result]:
    """What a file keeps. The last line may be cut off."""
    results = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            kept = json.loads(line)
            results[kept["key"]] = kept["result"]
        except (ValueError, KeyError, TypeError):
            continue
    return results


class Runner:
    """Runs tasks of a kit, and keeps their results in a file."""

    def __init__(self, kit: Path, results: Path, progress: Progress, ray: str | None = None) -> None:
        self.kit = kit
        self.path = results
        self.progress = progress
        self.ray = ray

    def run(self, tasks: Sequence[Task]) -> dict[str, Result]:
        """The results of all tasks by their keys. Those that failed are not kept."""
        kept = read_results(self.path)
        there = {task.key: kept[task.key] for task in tasks if task.key in kept}
        rest = list({task.key: task for task in tasks if task.key not in there}.values())
        total = len(there) + len(rest)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" if file.tell() else "")  # behind a line that was cut off
            for key, result in self._results(rest) if rest else ():
                there[key] = result
                if "failed" not in result:
                    file.write(json.dumps({"key": key, "result": result}) + "\n")
                    file.flush()
                self.progress(len(there), total)
        return there

    def _results(self, tasks: list[Task]) -> Iterator[tuple[str, Result]]:
        return self._by_ray(tasks) if self.ray is not None else self._here(tasks)

    def _here(self, tasks: list[Task]) -> Iterator[tuple[str, Result]]:
        pool = ThreadPoolExecutor(processes())
        try:
            keys = {pool.submit(run_task, str(self.kit), task.command): task.key for task in tasks}
            for future in as_completed(keys):
                yield keys[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _by_ray(self, tasks: list[Task]) -> Iterator[tuple[str, Result]]:
        """Each task takes one CPU of the cluster; workers get the kit as their folder."""
        ray = import_ray()
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have no checkout
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # which a cluster started here would send
        try:
            ray.init(
                address=self.ray,
                runtime_env={"working_dir": str(self.kit)},
                log_to_driver=False,
                logging_level="ERROR",
            )
        except Exception as error:  # as plain as this where a node does not start
            raise Refused(f"--ray {self.ray}: {str(error).splitlines()[0]}") from None
        try:
            run = ray.remote(num_cpus=1)(run_task)
            keys = {run.remote(".", task.command): task.key for task in tasks}
            waiting = list(keys)
            while waiting:
                done, waiting = ray.wait(waiting)
                for future in done:
                    yield keys[future], ray.get(future)
        finally:
            ray.shutdown()


def import_ray() -> Any:
    """Ray, an optional extra."""
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise Refused("--ray needs Ray, which is not installed: pip install ray==2.60.0") from None
