# SPDX-License-Identifier: MIT
"""Builds instances that no row of instances/ has: a library of them alone, and a pack for each.

All of it lies in a folder of a build, whose compilers it takes:

    rows/    the rows, as generate.py --instances reads them
    build/   the build, in which code objects that are up to date are not made again
    kit/     the program, the library, and packs/NAME.pack
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from codegen import Refused
from codegen.model import make_kit
from codegen.pack import pack
from codegen.resources import read_resources
from codegen.rows import read_toml
from codegen.spec import ROOT, Instance, Operation
from codegen.tasks import Progress, processes
from codegen.toml import row_text, table_text

TAKEN_OVER = re.compile(r"(CMAKE_C_COMPILER|TESSERA_CLANG|TESSERA_LLD|TESSERA_PYTHON):(\w+)=(.+)")
# What ninja says when a command is done, and when it failed.
STEP, FAILED = re.compile(r"\[(\d+)/(\d+)\]"), re.compile(r"^FAILED: (?:\[\S+\] )?(\S+)")


class Workshop:
    """A folder in which candidates of an operation and a target are built."""

    def __init__(self, build: Path, op: Operation, target: str, progress: Progress) -> None:
        self.op = op
        self.target = target
        self.outer = build.resolve()
        self.folder = self.outer / "tune" / f"{op.name}_{target}"
        self.progress = progress

    @property
    def kit(self) -> Path:
        """What problems are run with."""
        return self.folder / "kit"

    def object_of(self, instance: Instance) -> Path:
        """A candidate's code object."""
        return self.folder / "build" / "device" / self.target / f"{instance.name}.co"

    def make(self, instances: list[Instance]) -> dict[str, str]:
        """Builds all. Returns why some cannot be had, by their names."""
        self._write_rows(instances)
        self._configure()
        for name, error in self._ninja([self.op.program]).items():
            raise Refused(f"{self.folder / 'build'}: {name}: {error}")
        refused = self._ninja([f"device/{self.target}/{instance.name}.co" for instance in instances])
        make_kit(self.folder / "build", self.op.program, self.kit, self.outer)
        for instance in instances:
            if instance.name not in refused and (complaint := self._pack(instance)):
                refused[instance.name] = complaint
        return refused

    def _write_rows(self, instances: list[Instance]) -> None:
        rows = self.folder / "rows"
        rows.mkdir(parents=True, exist_ok=True)
        defaults = read_toml(ROOT / "instances" / f"{self.op.family}.toml").get("default", {})
        tables = [table_text(f"[default.{pipeline}]", values) for pipeline, values in defaults.items()]
        text = "\n".join([*tables, *(row_text(instance, whole=True) for instance in instances)])
        _write_if_new(rows / f"{self.op.family}.toml", text)
        _write_if_new(rows / "receipts.toml", (ROOT / "instances" / "receipts.toml").read_text())

    def _configure(self) -> None:
        """Compilers are those of the build."""
        cache = self.outer / "CMakeCache.txt"
        if not cache.exists():
            raise Refused(f"--build {self.outer} is no build folder: it has no CMakeCache.txt")
        taken = [f"-D{name}:{kind}={value}" for name, kind, value in TAKEN_OVER.findall(cache.read_text())]
        command = ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(self.folder / "build"), *taken]
        command += [
            f"-DTESSERA_TARGETS={self.target}",
            f"-DTESSERA_OPS={self.op.name}",
            "-DTESSERA_EMBED_PACKS=OFF",
        ]
        command += [f"-DTESSERA_ROWS={self.folder / 'rows'}", "-DTESSERA_BUILD_SIMULATOR=OFF"]
        done = _run(command)
        if done.returncode != 0:
            raise Refused(f"{' '.join(command)}: {done.stdout.strip()}")

    def _ninja(self, targets: list[str]) -> dict[str, str]:
        """Builds what can be built of some targets. Returns the first errors, by names of files."""
        command = ["ninja", "-C", str(self.folder / "build"), "-k", "0", f"-j{processes()}", *targets]
        errors: dict[str, str] = {}
        failed = ""
        with _start(command) as ninja:
            assert ninja.stdout is not None
            for line in ninja.stdout:
                if step := STEP.match(line):
                    self.progress(int(step[1]), int(step[2]))
                elif found := FAILED.search(line):
                    failed = Path(found[1]).stem
                    errors[failed] = "it does not compile"
                elif "error: " in line and errors.get(failed) == "it does not compile":
                    errors[failed] = line.partition("error: ")[2].strip()
        return errors or ({"ninja": "failed"} if ninja.returncode else {})

    def _pack(self, instance: Instance) -> str:
        """Makes a pack of one instance. Returns why it must not be."""
        made = self.object_of(instance)
        packed = self.kit / "packs" / f"{instance.name}.pack"
        if complaints := read_resources(made, self.target).complaints():
            return ", ".join(complaints)
        packed.parent.mkdir(exist_ok=True)
        packed.write_bytes(pack(self.op.name, self.target, {instance.symbol: made.read_bytes()}))
        return ""


def _write_if_new(path: Path, text: str) -> None:
    """So that nothing is made again that depends on it."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    with _start(command) as process:
        out, _ = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out)


def _start(command: list[str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError:
        tool = command[0]
        raise Refused(
            f"candidates are built with {tool}, which is not installed: pip install {tool}"
        ) from None
