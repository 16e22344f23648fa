# SPDX-License-Identifier: MIT
"""instances/fmha_fwd_modelled.toml is what the clock says: a sample."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sampling import sample_each

from codegen import figures, tune
from codegen.model import MODELLED, version
from codegen.ops import operations
from codegen.rows import read_figures, read_instances, read_toml
from codegen.spec import ROOT, Instance

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
FWD = operations()["fwd"]
INSTANCES = ROOT / "instances"
# Of another version of the model, or of another compiler's code, results differ by more.
EXACT, NEAR = 0.01, 0.15


@pytest.fixture(scope="module")
def there() -> list[Instance]:
    """Those that are built."""
    every = read_instances(FWD, INSTANCES, MODELLED)
    built = [one for one in every if (BUILD / "device" / one.target.name / f"{one.name}.co").exists()]
    if not built or not (BUILD / "bin" / FWD.program).exists():
        pytest.skip(f"{BUILD} has no instances for AMD's GPUs, or no program")
    return built


def tolerance(made_by: str) -> float:
    return EXACT if made_by == version() and not os.environ.get("TESSERA_CLANG") else NEAR


def how(folder: Path, *shapes: str) -> tune.How:
    return tune.How(BUILD, shapes, None, lambda done, of: None, print, folder)


def test_figures_are_up_to_date(there: list[Instance], tmp_path: Path) -> None:
    """Two instances of each target, others every day."""
    said = read_figures(INSTANCES, "fmha_fwd")
    versions = read_toml(INSTANCES / "fmha_fwd_modelled.toml")["version"]
    chosen = sample_each(there, lambda instance: instance.target.name, 2)
    runner = how(tmp_path).runner_of_build(FWD.program)
    for name, now in figures.model(BUILD, chosen, runner).items():
        target = next(one.target.name for one in chosen if one.name == name)
        near = pytest.approx(said[name], rel=tolerance(versions[target]), abs=0.01)
        assert now == near, f"{name}: python -m codegen.figures --build {BUILD}"
