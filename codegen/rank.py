# SPDX-License-Identifier: MIT
"""--rank: the instances of a build that can run given problems, modelled beside what the runtime's formula
says: the cost of runtime/ops/, by which a call's instance is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from codegen import Refused
from codegen.model import ONCE, SIMULATED, version
from codegen.spec import Operation
from codegen.targets import TARGETS
from codegen.tasks import Result, Task, hash_of
from codegen.tune import How

CANDIDATE = re.compile(r"^[* ] (\S+) +cost (\S+) cycles$", re.MULTILINE)
FAR = 1.5  # times the least cost: instances beyond are not modelled


@dataclass(frozen=True)
class Ranked:
    """A problem, and what it takes by each instance."""

    target: str
    shape: str
    chosen: str  # by the runtime
    costs: dict[str, float]  # by the runtime's formula
    cycles: dict[str, float]  # modelled, of those that are not far off

    @property
    def best(self) -> str:
        """The instance of least modelled cycles."""
        return min(self.cycles, key=lambda name: self.cycles[name])

    @property
    def loss(self) -> float:
        """What the runtime's choice takes longer than the best one, relative."""
        return self.cycles[self.chosen] / self.cycles[self.best] - 1

    @property
    def row(self) -> dict[str, object]:
        """A line of JSON."""
        numbers = {name: [round(self.cycles[name]), self.costs[name]] for name in sorted(self.cycles)}
        head = {"model": version(), "target": self.target, "shape": self.shape, "chosen": self.chosen}
        return {**head, "best": self.best, "loss": round(self.loss, 4), "cycles_and_cost": numbers}


def rank(op: Operation, targets: Sequence[str], how: How) -> list[Ranked]:
    """All shapes on all targets."""
    if not op.program:
        raise Refused(f"problems of {op.name} are not modelled yet")
    for target in targets:
        if TARGETS[target].kind != SIMULATED:
            raise Refused(f"{target}: the simulator's clock knows targets of kind {SIMULATED} alone")
    ranking = _Ranking(op, how)
    problems = [(target, shape) for target in targets for shape in how.shapes]
    lists = ranking.list_candidates(problems)
    return ranking.model(lists)


class _Ranking:
    def __init__(self, op: Operation, how: How) -> None:
        self.op = op
        self.build = how.build
        self.runner = how.runner_of_build(op.program)
        libraries = sorted(self.runner.kit.glob("libtessera.so*"))
        self.library = b"".join(file.read_bytes() for file in libraries)

    def list_candidates(self, problems: list[tuple[str, str]]) -> dict[tuple[str, str], Result]:
        """What the runtime chooses, and what else it could."""
        tasks = {problem: self._task(problem, ("-explain=1",), self.library) for problem in problems}
        results = self._run(list(tasks.values()))
        return {problem: results[task.key] for problem, task in tasks.items()}

    def model(self, lists: dict[tuple[str, str], Result]) -> list[Ranked]:
        """The modelled cycles of each candidate."""
        tasks: dict[tuple[str, str], dict[str, Task]] = {}
        costs = {problem: _costs(result["printed"]) for problem, result in lists.items()}
        for problem, result in lists.items():
            least = costs[problem][result["kernel"]]
            near = [name for name, cost in costs[problem].items() if cost <= FAR * least]
            # The library decides how many parts keys are cut into, and what a second launch does; but an
            # instance that is asked for by name does all.
            chosen = result["kernel"]
            tasks[problem] = {
                name: self._task(
                    problem,
                    () if name == chosen else (f"-instance={name}",),
                    self._code(problem[0], name) + self.library,
                )
                for name in near
            }
        results = self._run([task for of in tasks.values() for task in of.values()])
        return [
            Ranked(
                *problem,
                lists[problem]["kernel"],
                costs[problem],
                {
                    name: float(results[task.key]["simulation"]["modelled"]["cycles"])
                    for name, task in of.items()
                },
            )
            for problem, of in tasks.items()
        ]

    def _task(self, problem: tuple[str, str], arguments: Sequence[str], code: bytes) -> Task:
        target, shape = problem
        words = [f"-{word}" for word in shape.split()]
        command = (self.op.program, f"-device=sim:{target}", *words, *ONCE, *arguments)
        return Task(hash_of(version(), *command, code), command)

    @lru_cache  # noqa: B019 -- one object of this class is made in a process
    def _code(self, target: str, name: str) -> bytes:
        return (self.build / "device" / target / f"{name}.co").read_bytes()

    def _run(self, tasks: list[Task]) -> dict[str, Result]:
        results = self.runner.run(tasks)
        for task in tasks:
            if "failed" in results[task.key]:
                raise Refused(f"{' '.join(task.command)}: {results[task.key]['failed']}")
        return results


def _costs(printed: str) -> dict[str, float]:
    return {name: float(cost) for name, cost in CANDIDATE.findall(printed)}


def report(problems: list[Ranked]) -> Iterator[dict[str, object]]:
    """Rows of a table: of each problem its instances, the fastest first."""
    for problem in problems:
        order = sorted(problem.cycles, key=lambda name: problem.cycles[name])
        by_cost = sorted(problem.cycles, key=lambda name: problem.costs[name])
        for name in order:
            yield {
                "target": problem.target,
                "shape": problem.shape.replace(" ", ","),
                "instance": name,
                "modelled_cycles": f"{problem.cycles[name]:.0f}",
                "slower": f"{100 * (problem.cycles[name] / problem.cycles[order[0]] - 1):.0f}%",
                "cost": f"{problem.costs[name]:.0f}",
                "rank_by_cost": by_cost.index(name) + 1,
            }


def summary(problems: list[Ranked]) -> str:
    """How often the runtime's choice is the modelled best one, and what it costs where it is not."""
    losses = sorted(problem.loss for problem in problems)
    right = sum(problem.chosen == problem.best for problem in problems)
    worst = max(problems, key=lambda problem: problem.loss)
    return (
        f"{right} of {len(problems)} choices are the modelled best; loss median {_middle(losses):.1%}, "
        f"mean {sum(losses) / len(losses):.1%}, 95th percentile {losses[int(0.95 * (len(losses) - 1))]:.1%}, "
        f"most {worst.loss:.1%} ({worst.target}, {worst.shape})"
    )


def _middle(sorted_numbers: list[float]) -> float:
    return sorted_numbers[len(sorted_numbers) // 2]
