# SPDX-License-Identifier: MIT
"""--tune: models tiles that no row has, and proposes rows for those that are faster than all there are.

What is selected says what is looked for: for each of its pipelines, types and all else that its rows hold
fixed, the fields that the operation's variants() goes through take all values that fit. codegen/workshop.py
builds the candidates, and each problem of each is a task.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codegen import Refused
from codegen.model import ONCE, SIMULATED, make_kit, version
from codegen.select import Selection
from codegen.space import covers
from codegen.spec import Instance
from codegen.tasks import Progress, Runner, Task, hash_of
from codegen.toml import row_text
from codegen.workshop import Workshop

GAIN = 0.02  # of cycles, for which a row is proposed
SHOWN = 5  # of the fastest candidates

Say = Callable[[str], None]


@dataclass(frozen=True)
class How:
    """Where and how tasks run."""

    build: Path
    shapes: tuple[str, ...]  # arguments of the program, without their dashes: "b=1 h=16 s=4096 mask=b"
    ray: str | None
    progress: Progress
    say: Say
    folder: Path | None = None  # in which results are kept; None: tune/ of the build

    @property
    def kept(self) -> Path:
        """The folder for results, and for copies of what problems are run with."""
        return self.folder or self.build / "tune"

    def runner(self, kit: Path) -> Runner:
        """That keeps results."""
        return Runner(kit, self.kept / "results.jsonl", self.progress, self.ray)

    def runner_of_build(self, *programs: str) -> Runner:
        """With what the build has."""
        kit = self.kept / "kit"
        for program in programs:
            make_kit(self.build, program, kit, self.build)
        return self.runner(kit)


def parse_shapes(text: str) -> tuple[str, ...]:
    """The shapes of a list with semicolons."""
    shapes = tuple(" ".join(part.split()) for part in text.split(";") if part.strip())
    if not shapes:
        raise Refused("--shapes names no problem, such as 'b=1 h=16 s=4096; b=1 h=16 s=1024 mask=b'")
    for word in " ".join(shapes).split():
        if not re.fullmatch(r"\w+=\S+", word):
            raise Refused(f"--shapes: '{word}' is not of the form name=value, as in 'b=1 h=16 s=4096'")
    return shapes


def make_task(instance: Instance, code: bytes, arguments: Sequence[str]) -> Task:
    """A problem that an instance is to run, with the bytes that it is compiled to."""
    command = (
        instance.op.program_of(instance),
        f"-device=sim:{instance.target.name}",
        f"-instance={instance.name}",
        *instance.op.problem(instance),
        *arguments,
    )
    return Task(hash_of(version(), *command, code), command)


# ---- what is tried


@dataclass(frozen=True, eq=False)
class Search:
    """Candidates for what some instances serve, and those to be faster than."""

    there: list[Instance]
    candidates: list[Instance]  # `there` among them

    @property
    def words(self) -> str:
        """What they serve."""
        first = self.there[0]
        return " ".join((first.target.name, first.op.name, *(a[1:] for a in first.op.problem(first))))


def find_searches(selection: Selection, refusals: Counter[str]) -> Iterator[Search]:
    """A search for each target and set of served traits among what the operation's own program runs."""
    groups: dict[object, list[Instance]] = {}
    for instance in selection.instances:
        if instance.target.kind != SIMULATED:
            raise Refused(
                f"{instance.target.name}: the simulator's clock knows targets of kind {SIMULATED} alone"
            )
        if instance.op.program_of(instance) == instance.op.program:
            groups.setdefault(_served(instance), []).append(instance)
    known = [*selection.instances, *(instance for instance, _ in selection.refused)]
    for instances in groups.values():
        first = instances[0]
        there = [one for one in known if _serves_all_of(one, first)]
        found = {instance.name: instance for instance in there}
        for instance in instances:
            for candidate in _legal_variants(instance, refusals):
                found.setdefault(candidate.name, candidate)
        yield Search(there, list(found.values()))


def _served(instance: Instance) -> object:
    return instance.target.name, instance.region, instance.tile.alignment, instance.op.problem(instance)


def _serves_all_of(one: Instance, other: Instance) -> bool:
    return (
        one.target is other.target
        and one.op.problem(one) == other.op.problem(other)
        and one.tile.alignment <= other.tile.alignment
        and covers(one.region, other.region)
    )


def _legal_variants(instance: Instance, refusals: Counter[str]) -> Iterator[Instance]:
    """Counts reasons without their numbers."""
    for tile in instance.op.variants(instance):
        if complaint := tile.complaint(instance.target):
            refusals[re.sub(r"\b\d+\b", "#", complaint)] += 1
        else:
            yield Instance(instance.op, instance.target, tile, instance.default, instance.region)


# ---- what comes of it


def tune(selection: Selection, how: How) -> Iterator[str]:
    """Models all candidates of all searches. Lines of TOML: what was found, as comments, and rows."""
    refusals: Counter[str] = Counter()
    searches = list(find_searches(selection, refusals))
    by_target: dict[str, list[Search]] = {}
    for search in searches:
        by_target.setdefault(search.there[0].target.name, []).append(search)
    for target, of_target in by_target.items():
        workshop = Workshop(how.build, selection.op, target, how.progress)
        every = list({one.name: one for search in of_target for one in search.candidates}.values())
        how.say(f"{target}: {len(every)} candidates; building them in {workshop.folder}")
        failed = workshop.make(every)
        refusals.update(re.sub(r"\b\d+\b", "#", reason) for reason in failed.values())
        for search in of_target:
            built = [candidate for candidate in search.candidates if candidate.name not in failed]
            yield from _report(search, _Trial(built, workshop, how))
    for reason, count in refusals.most_common():
        how.say(f"{count} refused: {reason}")


class _Trial:
    """The candidates of a search that could be built, and their cycles."""

    def __init__(self, built: list[Instance], workshop: Workshop, how: How) -> None:
        self.built = built
        self.workshop = workshop
        self.how = how
        self.runner = how.runner(workshop.kit)
        self.cycles = {shape: self._model(shape) for shape in how.shapes}

    def _model(self, shape: str) -> dict[str, float]:
        words = [f"-{word}" for word in shape.split()]
        tasks = {one.name: self._task(one, (*words, *ONCE)) for one in self.built}
        self.how.say(f"{shape}: {len(tasks)} candidates")
        results = self.runner.run(list(tasks.values()))
        cycles = {}
        for name, task in tasks.items():
            result = results[task.key]
            if "failed" in result:
                self.how.say(f"{name}: {result['failed']}")
            else:
                cycles[name] = float(result["simulation"]["modelled"]["cycles"])
        return cycles

    def _task(self, instance: Instance, arguments: Sequence[str]) -> Task:
        packed = f"-pack=packs/{instance.name}.pack"
        return make_task(instance, self.workshop.object_of(instance).read_bytes(), (packed, *arguments))

    def is_right(self, instance: Instance) -> bool:
        """Whether small problems come out right, all of whose workgroups are executed."""
        tasks = [self._task(instance, words) for words in instance.op.checks]
        results = self.runner.run(tasks)
        wrong = [task for task in tasks if results[task.key].get("verification") != "pass"]
        for task in wrong:
            self.how.say(f"{' '.join(task.command)}: {results[task.key].get('failed', 'wrong')}")
        return not wrong


def _report(search: Search, trial: _Trial) -> Iterator[str]:
    """For each shape the fastest candidates, and a row for each that is the fastest of some, and right."""
    there = {instance.name for instance in search.there}
    by_name = {instance.name: instance for instance in trial.built}
    reasons: dict[str, list[str]] = {}
    for shape, cycles in trial.cycles.items():
        order = sorted(cycles, key=lambda name: cycles[name])
        best = min((cycles[name] for name in there if name in cycles), default=float("inf"))
        rival = next((name for name in order if name in there), "none")
        yield f"# {search.words}, {shape}: modelled cycles\n"
        for name in order[:SHOWN]:
            yield f"#   {cycles[name]:12.0f}  {name}{' (there)' if name in there else ''}\n"
        if order and rival not in order[:SHOWN]:
            yield f"#   {best:12.0f}  {rival} (there)\n"
        faster = (name for name in order if cycles[name] < (1 - GAIN) * best)
        if (chosen := next((name for name in faster if trial.is_right(by_name[name])), None)) is not None:
            gain = f"{100 * (1 - cycles[chosen] / best):.0f} % less than {rival}"
            reasons.setdefault(chosen, []).append(f"{shape}: {cycles[chosen]:.0f} cycles, {gain}")
    for name, why in reasons.items():
        instance = by_name[name]
        text = f"modelled ({version()}): {'; '.join(why)}"
        yield "\n" + row_text(replace(instance, tile=replace(instance.tile, why=text)))
    yield "\n"
