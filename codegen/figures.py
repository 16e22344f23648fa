# SPDX-License-Identifier: MIT
"""The figures of instances on CDNA that rows leave to the simulator's clock, such as how fast blocks are.

    python -m codegen.figures --build build

models the instances of a build, with the code objects that it has, and writes
instances/<family>_modelled.toml. What has been modelled before is found in the build's results, so a change
of few kernels takes little time; --filter names them in a build without.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from codegen import Refused
from codegen.model import MODELLED, ONCE, version
from codegen.ops import operations
from codegen.rows import Figures, figures_path, read_figures, read_instances, read_toml
from codegen.spec import ROOT, Instance, Operation, Point
from codegen.tasks import Runner, Task
from codegen.tune import How, make_task

HEAD = """# SPDX-License-Identifier: MIT
# What the simulator's clock says of instances on CDNA: python -m codegen.figures makes this file.
# efficiency: the share of the target's peak that the main loop reaches where units are full; start: the time
# that a workgroup takes beside its blocks, in blocks; alone: the share of the peak where each unit has one
# workgroup; half: the share of a block's time that it takes where half of the waves have no queries.
"""


def tasks_of(instance: Instance, code: bytes) -> dict[Point, Task]:
    """The launches that decide its figures."""
    problems = instance.op.figure_problems(instance)
    return {point: make_task(instance, code, (*problem, *ONCE)) for point, problem in problems.items()}


def model(build: Path, instances: list[Instance], runner: Runner) -> Figures:
    """The figures of instances of one operation, by their names."""
    tasks: dict[str, dict[Point, Task]] = {}
    for instance in instances:
        code = build / "device" / instance.target.name / f"{instance.name}.co"
        if not code.exists():
            raise Refused(f"{build} has no {instance.name}: it must have all of a target's instances")
        tasks[instance.name] = tasks_of(instance, code.read_bytes())
    results = runner.run([task for of in tasks.values() for task in of.values()])
    figures = {}
    for instance in instances:
        cycles = {}
        for point, task in tasks[instance.name].items():
            if "failed" in results[task.key]:
                raise Refused(f"{' '.join(task.command)}: {results[task.key]['failed']}")
            cycles[point] = float(results[task.key]["simulation"]["modelled"]["cycles"])
        figures[instance.name] = instance.op.figures_of(instance, cycles)
    return figures


def text_of(figures: Figures, versions: dict[str, str]) -> str:
    """The file."""
    lines = [HEAD, "[version] # of the clock's model, by targets; docs/simulator.md says what it is of"]
    lines += [f'{target} = "{versions[target]}"' for target in sorted(versions)]
    lines += ["", "[instance]"]
    for name in sorted(figures):
        fields = ", ".join(f"{field} = {value}" for field, value in figures[name].items())
        lines.append(f"{name} = {{ {fields} }}")
    return "\n".join(lines) + "\n"


def have_figures(op: Operation, folder: Path) -> list[Instance]:
    """The instances that have figures."""
    there = read_instances(op, folder, MODELLED) if "cdna" in op.tiles else []
    return [instance for instance in there if op.figure_problems(instance)]


def programs_of(instances: Iterable[Instance]) -> list[str]:
    """Those that run the instances' problems."""
    return sorted({instance.op.program_of(instance) for instance in instances})


def modelled_apis(folder: Path) -> list[str]:
    """The operations that have such instances."""
    return [api for api, op in operations().items() if have_figures(op, folder)]


def update(
    op: Operation, build: Path, targets: Iterable[str], pattern: str, progress: Callable[[int, int], None]
) -> str:
    """Models instances of some targets, by name, and writes the file. Returns what was done, in words."""
    folder = ROOT / "instances"
    path = figures_path(folder, op.family)
    versions: dict[str, str] = read_toml(path).get("version", {}) if path.exists() else {}
    old = read_figures(folder, op.family)
    every = have_figures(op, folder)
    asked = [one for one in every if one.target.name in targets and fnmatchcase(one.name, pattern)]
    runner = How(build, (), None, progress, print).runner_of_build(*programs_of(asked))
    new = model(build, asked, runner)
    names = {instance.name for instance in every}
    if any(versions.get(target) != version() for target in targets):
        if pattern != "*":
            raise Refused(f"{path} is of another model than {version()}: all instances must be modelled")
        versions |= dict.fromkeys(targets, version())
    path.write_text(text_of({name: value for name, value in (old | new).items() if name in names}, versions))
    changed = sum(old.get(name) != value for name, value in new.items())
    return f"{path}: {len(new)} instances, {changed} of them with other figures than before"


def main(arguments: list[str]) -> int:
    """The exit code of a command line."""
    parser = argparse.ArgumentParser(prog="codegen.figures", description=__doc__, allow_abbrev=False)
    parser.add_argument("--build", type=Path, required=True, help="a build of these instances")
    parser.add_argument("--targets", default=",".join(MODELLED), help="a comma list")
    apis = ",".join(modelled_apis(ROOT / "instances"))
    parser.add_argument("-f", "--filter", default="*", help="a shell pattern on short names: %(default)s")
    parser.add_argument("--api", default=apis, help="a comma list: %(default)s")
    options = parser.parse_args(arguments)
    targets = options.targets.split(",")
    try:
        for target in targets:
            if target not in MODELLED:
                raise Refused(f"the clock does not model {target}, but {', '.join(MODELLED)}")
        for api in options.api.split(","):
            if api not in apis.split(","):
                raise Refused(f"api '{api}' has no instances that are modelled, but {apis}")
            print(update(operations()[api], options.build, targets, options.filter, _show), file=sys.stderr)
    except Refused as refused:
        print(f"codegen.figures: {refused}", file=sys.stderr)
        return 1
    return 0


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{total} launches", end="\n" if done == total else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
