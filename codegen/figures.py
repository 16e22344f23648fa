# SPDX-License-Identifier: MIT
"""The figures of instances on CDNA that rows leave to the simulator's clock: how fast blocks are, and starts.

    python -m codegen.figures --build build

models the instances of a build, with the code objects that it has, and writes
instances/<family>_modelled.toml. What has been modelled before is found in the build's results, so a change
of few kernels takes little time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from codegen import Refused
from codegen.model import MODELLED, ONCE, parameter, version
from codegen.ops import operations
from codegen.ops.fmha_fwd.cdna_cost import peak_cycles, workgroups
from codegen.rows import Figures, figures_path, read_figures, read_instances, read_toml
from codegen.spec import ROOT, Instance
from codegen.targets import CdnaTarget
from codegen.tasks import Runner, Task
from codegen.tune import How, make_task

# Two lengths, whose difference in time is that of their blocks; and those of planned main loops, which are
# for long sequences: at first a unit that begins two workgroups waits for memory, and these are not yet apart.
KEYS, LONG_KEYS = (128, 512), (512, 2048)
TILES = 8  # of queries of a head, whose workgroups share k and v
FEW = 4  # units that show what a workgroup alone takes
HEAD = """# SPDX-License-Identifier: MIT
# What the simulator's clock says of instances on CDNA: python -m codegen.figures makes this file.
# efficiency: the share of the target's peak that the main loop reaches where units are full; alone: where
# each has one workgroup; start: the time that a workgroup takes beside its blocks, in blocks; half: the
# share of a block's time that it takes where half of the waves have no queries.
"""


# A workgroup on each of few units; as many as units hold; so many, half of whose waves have no queries.
ALONE, FULL, HALF = "alone", "full", "half"
Point = tuple[str, int]  # one of these, and the number of keys


def keys_of(instance: Instance) -> tuple[int, int]:
    """The lengths that an instance is timed with."""
    return LONG_KEYS if instance.tile.planned else KEYS


def points_of(instance: Instance) -> tuple[Point, ...]:
    """Keys of workgroups alone would be cut, where an instance cuts keys.

    Half of fewer waves than two a SIMD would leave SIMDs idle, and the others' time as it is; in whole tiles
    all waves have queries.
    """
    assert isinstance(instance.target, CdnaTarget)
    if instance.tile.whole_tiles:
        return tuple((load, keys) for load in (ALONE, FULL) for keys in keys_of(instance))
    alone = () if instance.tile.merge else (ALONE,)
    half = (HALF,) if instance.tile.rm0 >= 2 * instance.target.simds and not instance.tile.merge else ()
    return tuple((load, keys) for load in (*alone, FULL, *half) for keys in keys_of(instance))


def _problem(instance: Instance, point: Point) -> tuple[str, ...]:
    """The arguments of a launch."""
    load, keys = point
    bm0 = instance.tile.bm0
    places = parameter("units", instance.target.name) * _room(instance)
    if instance.tile.whole_tiles:  # as many queries as keys
        heads = (FEW if load == ALONE else places) * bm0 // keys
        return ("-b=1", f"-h={max(1, heads)}", f"-s={keys}", f"-s_k={keys}", *ONCE)
    shared = -(-places // TILES)  # k and v on full units
    sizes = {
        ALONE: ("-h=1", f"-s={FEW * bm0}"),
        FULL: (f"-h={shared}", f"-s={TILES * bm0}"),
        HALF: (f"-h={TILES * shared}", f"-h_k={shared}", f"-s={bm0 // 2}"),
    }
    return ("-b=1", *sizes[load], f"-s_k={keys}", *ONCE)


def _room(instance: Instance) -> int:
    assert isinstance(instance.target, CdnaTarget)
    return workgroups(instance.tile, instance.target)


def tasks_of(instance: Instance, code: bytes) -> dict[Point, Task]:
    """The launches that decide its figures."""
    return {point: make_task(instance, code, _problem(instance, point)) for point in points_of(instance)}


def figures_of(instance: Instance, cycles: dict[Point, float]) -> dict[str, float]:
    """An instance's figures from the cycles of its launches.

    Where none is on few units, a workgroup is taken to be no faster alone than beside others.
    """
    assert isinstance(instance.target, CdnaTarget)
    launch = parameter("launch_cycles", instance.target.name)
    lengths = sorted({keys for _, keys in cycles})
    blocks = [-(-keys // instance.tile.bn0) for keys in lengths]
    block, starts = {}, {}
    for load in {load for load, _ in cycles}:
        few, many = (cycles[load, keys] - launch for keys in lengths)
        block[load] = (many - few) / (blocks[1] - blocks[0])
        starts[load] = few / block[load] - blocks[0]
    beginnings = [starts[load] for load in (ALONE, FULL) if load in starts]
    peak = peak_cycles(instance.tile, instance.target)
    figures = {
        "efficiency": round(_room(instance) * peak / block[FULL], 3),
        "alone": round(peak / block.get(ALONE, block[FULL]), 3),
        "start": round(max(sum(beginnings) / len(beginnings), 0.1), 2),
    }
    if HALF in block:
        figures["half"] = round(min(block[HALF] / block[FULL], 1), 3)
    return figures


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
        figures[instance.name] = figures_of(instance, cycles)
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


def have_figures(folder: Path) -> list[Instance]:
    """The instances that have figures: all but those of quantised caches, which no plain call reads."""
    every = read_instances(operations()["fwd"], folder, MODELLED)
    return [instance for instance in every if instance.tile.kv == "auto"]


def update(build: Path, targets: Iterable[str], progress: Callable[[int, int], None]) -> str:
    """Models all instances of some targets and writes the file. Returns what was done, in words."""
    op = operations()["fwd"]
    folder = ROOT / "instances"
    path = figures_path(folder, op.family)
    versions: dict[str, str] = read_toml(path).get("version", {}) if path.exists() else {}
    runner = How(build, (), None, progress, print).runner_of_build(op.program)
    old = read_figures(folder, op.family)
    every = have_figures(folder)
    new = model(build, [instance for instance in every if instance.target.name in targets], runner)
    names = {instance.name for instance in every}
    versions |= dict.fromkeys(targets, version())
    path.write_text(text_of({name: value for name, value in (old | new).items() if name in names}, versions))
    changed = sum(old.get(name) != value for name, value in new.items())
    return f"{path}: {len(new)} instances, {changed} of them with other figures than before"


def main(arguments: list[str]) -> int:
    """The exit code of a command line."""
    parser = argparse.ArgumentParser(prog="codegen.figures", description=__doc__, allow_abbrev=False)
    parser.add_argument("--build", type=Path, required=True, help="a build of all instances of the targets")
    parser.add_argument("--targets", default=",".join(MODELLED), help="a comma list")
    options = parser.parse_args(arguments)
    targets = options.targets.split(",")
    try:
        for target in targets:
            if target not in MODELLED:
                raise Refused(f"the clock does not model {target}, but {', '.join(MODELLED)}")
        print(update(options.build, targets, _show), file=sys.stderr)
    except Refused as refused:
        print(f"codegen.figures: {refused}", file=sys.stderr)
        return 1
    return 0


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{total} launches", end="\n" if done == total else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
