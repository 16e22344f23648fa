# SPDX-License-Identifier: MIT
"""benchmark/ranking.py: its grid, what it sums up, and that docs/simulator.md shows that."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

import ranking  # noqa: E402


def row(target: str, shape: str, cycles: dict[str, int], chosen: str) -> ranking.Row:
    best = min(cycles, key=lambda name: cycles[name])
    loss = cycles[chosen] / cycles[best] - 1
    return {"target": target, "shape": shape, "chosen": chosen, "best": best, "loss": round(loss, 4)}


def test_summary() -> None:
    rows = [
        row("gfx942", "s=1", {"a": 100, "b": 110}, "a"),
        row("gfx942", "s=2", {"a": 100, "b": 110}, "b"),
        row("gfx90a", "s=3", {"a": 7}, "a"),
    ]
    head, rule, *lines = ranking.document(rows).splitlines()
    assert head.count("|") == rule.count("|") == lines[0].count("|") == lines[1].count("|")
    assert lines == [
        "| gfx90a | 1 | 1 | 0.0 % | 0.0 % | 0.0 % | `s=3` |",
        "| gfx942 | 2 | 1 | 5.0 % | 0.0 % | 10.0 % | `s=2` |",
    ]


def test_a_problem_is_recorded_once(tmp_path: Path) -> None:
    path = tmp_path / "ranking.jsonl"
    for model, shape in (("1", "s=1"), ("1", "s=2"), ("2", "s=1")):
        ranking.replace(path, row("gfx942", shape, {"a": 100}, "a") | {"model": model})
    assert [(one["model"], one["shape"]) for one in ranking.read(path)] == [("1", "s=2"), ("2", "s=1")]
    assert [one["shape"] for one in ranking.read(path, "1")] == ["s=2"]


def test_every_third_problem_has_all_of_each_axis() -> None:
    problems = [(target, shape) for target in ranking.MODELLED for shape in ranking.grid(target)]
    assert len(set(problems)) == len(problems)
    for axis in ("target", "prec", "d", "mask", "s", "s_k"):

        def values(some: list[tuple[str, str]], axis: str = axis) -> set[str]:
            return {
                target if axis == "target" else f" {shape} ".split(f"{axis}=")[1].split()[0]
                for target, shape in some
            }

        assert values(problems[::3]) == values(problems)


def test_what_is_recorded() -> None:
    """Problems of the grid, each once; the document sums them up, and says how many are of today."""
    text = (ROOT / "docs" / "simulator.md").read_text()
    rows = ranking.read(ranking.RESULTS)
    named = re.search(r"(\d+) of them, .* are by today's model, costs and figures \((\w+)\)", text)
    assert named and int(named[1]) == len(ranking.read(ranking.RESULTS, named[2]))
    assert len({(one["target"], one["shape"]) for one in rows}) == len(rows) > 100
    for one in rows:
        assert one["shape"] in set(ranking.grid(one["target"]))
        cycles = {name: numbers[0] for name, numbers in one["cycles_and_cost"].items()}
        assert cycles[one["best"]] == min(cycles.values())  # of some that are equal, rounded
        assert one["loss"] == pytest.approx(cycles[one["chosen"]] / cycles[one["best"]] - 1, abs=1e-3)
    assert ranking.document(rows) in text, "python benchmark/ranking.py --summary"
