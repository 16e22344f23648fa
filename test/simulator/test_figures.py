# SPDX-License-Identifier: MIT
"""instances/*_modelled.toml and benchmark/results/ranking.jsonl are what the clock says: samples."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest
from sampling import sample

from codegen import figures, rank, tune
from codegen.model import MODELLED, version
from codegen.ops import operations
from codegen.resources import read_resources
from codegen.rows import figures_path, read_figures, read_instances, read_toml
from codegen.spec import ROOT, Instance, Operation

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
FWD = operations()["fwd"]
MODELS = [operations()[api] for api in figures.modelled_apis(ROOT / "instances")]
INSTANCES = ROOT / "instances"
RANKING = ROOT / "benchmark" / "results" / "ranking.jsonl"
SHORT = ("s=300 ", "s=512 ")  # of problems that take little time
INSTRUCTION_CACHE = {"gfx90a": 32768, "gfx942": 65536, "gfx950": 65536}  # CDNA2 and CDNA3 white papers
# Where a process has its buffers decides which lines share a set of a cache: small tiles on gfx950 differ by
# 4 % from run to run. Of another version of the model, or of another compiler's code, results differ by more.
EXACT, NEAR = 0.05, 0.15


def find_built(op: Operation) -> list[Instance]:
    every = read_instances(op, INSTANCES, MODELLED)
    built = [one for one in every if (BUILD / "device" / one.target.name / f"{one.name}.co").exists()]
    if not built or not (BUILD / "bin" / op.program).exists():
        pytest.skip(f"{BUILD} has no instances of {op.name} for AMD's GPUs, or no program")
    return built


@pytest.fixture(scope="module")
def there() -> list[Instance]:
    """Those of fmha_fwd that are built."""
    return find_built(FWD)


def tolerance(made_by: str) -> float:
    return EXACT if made_by == version() and not os.environ.get("TESSERA_CLANG") else NEAR


def how(folder: Path, *shapes: str, ray: str | None = None) -> tune.How:
    return tune.How(BUILD, shapes, ray, lambda done, of: None, print, folder)


def near(said: dict[str, float], instance: Instance, relative: float) -> dict[str, Any]:
    """Figures that differ by so much in the times they are made of: `start` is a difference of such."""
    wanted: dict[str, Any] = {n: pytest.approx(value, rel=relative, abs=0.01) for n, value in said.items()}
    if "start" in said:
        shortest = min(length for _, length in instance.op.figure_problems(instance)) / instance.tile.bn0
        wanted["start"] = pytest.approx(said["start"], abs=relative * (said["start"] + shortest) + 0.01)
    return wanted


@pytest.mark.parametrize("op", MODELS, ids=lambda op: op.api)
def test_figures_are_up_to_date(op: Operation, tmp_path: Path) -> None:
    """An instance, another every day."""
    said = read_figures(INSTANCES, op.family)
    versions = read_toml(figures_path(INSTANCES, op.family))["version"]
    modelled_here = [one for one in find_built(op) if op.figure_problems(one)]
    chosen = sample(modelled_here, 1)
    runner = how(tmp_path).runner_of_build(*figures.programs_of(chosen))
    modelled = figures.model(BUILD, chosen, runner)
    for one in chosen:
        wanted = near(said[one.name], one, tolerance(versions[one.target.name]))
        assert modelled[one.name] == wanted, f"{one.name}: python -m codegen.figures --build {BUILD}"


def test_ranking_is_up_to_date(there: list[Instance], tmp_path: Path) -> None:
    """Two problems: their cycles, and by this version of the model the choice and what that loses."""
    rows = [json.loads(line) for line in RANKING.read_text().splitlines()]
    built = {instance.name for instance in there}
    rows = [row for row in rows if any(length in row["shape"] for length in SHORT)]
    for row in sample([row for row in rows if built.issuperset(row["cycles_and_cost"])], 2):
        (now,) = rank.rank(FWD, (row["target"],), how(tmp_path, row["shape"]))
        again = f"python benchmark/ranking.py --build {BUILD}"
        cycles = {name: numbers[0] for name, numbers in row["cycles_and_cost"].items() if name in now.cycles}
        wanted = pytest.approx(cycles, rel=tolerance(row["model"]))  # instances that came later are not there
        assert {name: now.cycles[name] for name in cycles} == wanted, again
        if tolerance(row["model"]) == EXACT:
            assert now.chosen == row["chosen"], again
            assert now.loss == pytest.approx(row["loss"], abs=EXACT), again


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="no ray: pip install ray==2.60.0")
@pytest.mark.usefixtures("there")
def test_ranking_by_ray(tmp_path: Path) -> None:
    """A cluster that is started here says the same as this process alone."""
    shape = "prec=bf16 b=1 h=2 s=130 d=64 mask=b"
    (alone,) = rank.rank(FWD, ("gfx90a",), how(tmp_path / "alone", shape))
    (spread,) = rank.rank(FWD, ("gfx90a",), how(tmp_path / "spread", shape, ray="local"))
    assert len(alone.cycles) > 1 and spread.cycles == pytest.approx(alone.cycles, rel=EXACT)
    assert (spread.chosen, spread.costs) == (alone.chosen, alone.costs)


def test_code_fits_instruction_caches(there: list[Instance]) -> None:
    """Whose misses the clock does not model."""
    for one in there:
        code = read_resources(BUILD / "device" / one.target.name / f"{one.name}.co", one.target.name).code
        assert len(code) <= INSTRUCTION_CACHE[one.target.name], one.name
